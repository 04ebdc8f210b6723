//! What the supervisor takes to read a long session from cold, against what its index takes.
//!
//! Prints times and ratios; fails where a ratio is over its limit. Times are the best of several rounds.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use headman::pi::tail::{Progress, Tail, Unsettled};
use headman::signals::watch::Watch;

const BYTES: u64 = 100 << 20;
const ROUNDS: usize = 5;
/// The whole may take so many times what the index takes.
const LIMIT: f64 = 3.0;

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let entries = write(&path);
    let bytes = path.metadata().unwrap().len();
    println!("{entries} entries, {} MB", bytes / 1_000_000);
    let [mut index, mut whole] = [Duration::MAX; 2];
    let mut kept = 0;
    for _ in 0..ROUNDS {
        index = index.min(timed(|| {
            let mut tail = Tail::new(&path);
            assert_eq!(tail.look(u64::MAX, Unsettled::AtOnce).unwrap(), Progress::Done);
            tail.index().entries().len()
        }));
        whole = whole.min(timed(|| {
            // As the console does, in one pass.
            let mut tail = Tail::<Watch>::folding(&path, None);
            assert_eq!(tail.look(u64::MAX, Unsettled::AtOnce).unwrap(), Progress::Done);
            let watch = tail.fold();
            kept = watch.kept();
            watch.count()
        }));
    }
    println!("the index                          {index:>10.1?}");
    println!("index, and all signals             {whole:>10.1?}");
    println!("keys, rows and names kept          {kept:>10}");
    let ratio = whole.as_secs_f64() / index.as_secs_f64();
    let verdict = if ratio <= LIMIT { "ok" } else { "FAILED" };
    println!("{:<34} {ratio:>10.4}  at most {LIMIT}  {verdict}", "all signals : index");
    if ratio <= LIMIT { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

/// A session of [`BYTES`] bytes: turns of reads, commands and edits, with outputs short and long, some of
/// them kept a second time beside their text, as Pi does.
fn write(path: &Path) -> usize {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut written = 0;
    let mut put = |line: String| {
        writeln!(file, "{line}").unwrap();
        written += line.len() as u64 + 1;
        written
    };
    put("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}".to_owned());
    let mut nth = 0_usize;
    let mut entry = |message: String| {
        let parent = if nth == 0 { "null".to_owned() } else { format!("\"{:08x}\"", nth - 1) };
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"{nth:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-03-01T12:30:45.000Z\",\"message\":{message}}}"
        );
        nth += 1;
        (put(line), nth)
    };
    loop {
        let turn = entry(
            "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Go on. Never stop.\"}]}"
                .to_owned(),
        );
        if turn.0 > BYTES {
            return turn.1;
        }
        for round in 0..20 {
            let of = turn.1 * 100 + round;
            let (tool, arguments) = match round % 3 {
                0 => ("read", format!("{{\"path\":\"src/file-{of}.rs\"}}")),
                1 => {
                    ("bash", format!("{{\"command\":\"cd /w && cargo test --test t{of} 2>&1 | tail -40\"}}"))
                }
                _ => {
                    ("edit", format!("{{\"path\":\"src/file-{of}.rs\",\"oldText\":\"a\",\"newText\":\"b\"}}"))
                }
            };
            entry(format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"Next.\"}},{{\"type\":\"toolCall\",\"id\":\"c{of}\",\"name\":\"{tool}\",\"arguments\":{arguments}}}],\"provider\":\"p\",\"model\":\"m\",\"usage\":{{\"input\":1,\"output\":2,\"cacheRead\":0,\"cacheWrite\":0,\"totalTokens\":3,\"cost\":{{\"total\":0.1}}}}}}"
            ));
            let lines = if round % 3 == 2 { 1 } else { 10 + of % 150 };
            let text: String =
                (0..lines).map(|line| format!("{of}: line {line} of what \\\"it\\\" printed  \\n")).collect();
            let again = if of % 4 == 0 {
                format!("{{\"truncation\":{{\"content\":\"{text}\"}}}}")
            } else {
                "{}".to_owned()
            };
            entry(format!(
                "{{\"role\":\"toolResult\",\"toolCallId\":\"c{of}\",\"toolName\":\"{tool}\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"details\":{again},\"isError\":false}}"
            ));
        }
    }
}
