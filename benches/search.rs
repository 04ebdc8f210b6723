//! How long a search of one long session takes, to its first hit and to its end, against `jq`, which
//! parses all of it.
//!
//! Times depend on the machine, so only ratios within one run can fail.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the session, about.
const SIZE: usize = 100 << 20;
const ROUNDS: usize = 5;
/// The first hit may take this part of what the other takes.
const MOST: f64 = 0.2;
const NEEDLE: &str = "quokka crossing";

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long.jsonl");
    write(&file);
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!("{} MB, what is looked for stands at its beginning only", bytes / 1_000_000);

    let mut best = [Duration::MAX; 4];
    let has_jq = Command::new("jq").arg("--version").output().is_ok_and(|output| output.status.success());
    for _ in 0..ROUNDS {
        let times = [
            if has_jq { timed(|| jq(&file)) } else { timed(|| parse(&file)) },
            timed(|| first_hit(&file, &[])),
            timed(|| first_hit(&file, &["--ignore-case"])),
            timed(|| first_hit(&file, &["--regex"])),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    let [other, exact, folded, regex] = best;
    println!(
        "{:<34} {other:>10.1?}",
        if has_jq { "jq, all of it" } else { "every line parsed by serde_json" }
    );
    println!("headman grep, first hit            {exact:>10.1?}");
    println!("the same, any case                 {folded:>10.1?}");
    println!("the same, as a regular expression  {regex:>10.1?}");
    let ratio = exact.as_secs_f64() / other.as_secs_f64();
    println!("first hit: {ratio:.3} of the other, at most {MOST}");
    if ratio > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A session as they are: most of it is what tools gave, twice, and some of it escaped.
fn write(path: &Path) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(
        out,
        r#"{{"type":"session","version":3,"id":"long","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}}"#
    )
    .unwrap();
    let result =
        "\\u001b[32mok\\u001b[0m  test auth::expired_tokens_are_refused ... \\\"fine\\\"\\n".repeat(60);
    let mut written = 0;
    let mut at = 0;
    while written < SIZE {
        let said = if at == 0 { NEEDLE } else { "go on" };
        let line = format!(
            r#"{{"type":"message","id":"{at:08x}","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"toolResult","toolCallId":"c{at}","toolName":"bash","content":[{{"type":"text","text":"{said} {result}"}}],"details":{{"truncation":{{"content":"{result}"}}}},"isError":false}}}}"#
        );
        writeln!(out, "{line}").unwrap();
        written += line.len();
        at += 1;
    }
    out.flush().unwrap();
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn jq(file: &Path) {
    let filter = format!("select(tostring | contains(\"{NEEDLE}\"))");
    let output = Command::new("jq").args(["-c", &filter]).arg(file).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
}

fn parse(file: &Path) {
    let lines = BufReader::new(std::fs::File::open(file).unwrap()).lines();
    let found = lines.filter(|line| {
        let line = line.as_ref().unwrap();
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value.to_string().contains(NEEDLE)
    });
    assert_eq!(found.count(), 1);
}

fn first_hit(file: &Path, options: &[&str]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_headman"))
        .args(["grep", NEEDLE, "--file"])
        .arg(file)
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(NEEDLE), "{line}");
    child.wait().unwrap();
}
