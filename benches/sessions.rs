//! What a long session file costs: to its first screen, to its whole index, in memory, and while it grows.
//!
//! Times depend on the machine, so only ratios within one run can fail, and memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headman::contract::SessionId;
use headman::fact::{Reading, SessionFile, Wanted};
use headman::pi::growth::Branch;
use headman::source::transcript::Reader;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::json;

const BYTES: u64 = 100_000_000;
const ROUNDS: usize = 7;
const ROWS: u16 = 40;
const LAST: &str = "the very last words";
/// Appended while it is followed, so many a second.
const APPENDS: usize = 3_000;
const A_SECOND: usize = 1_000;
/// The most that the transcript of such a file may take, in KiB.
const MEMORY: u64 = 16 << 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, verb, path] = &arguments[..]
        && verb == "--memory"
    {
        return memory(Path::new(path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.jsonl");
    let entries = write(&path);
    println!("{} MB, {entries} entries", path.metadata().unwrap().len() / 1_000_000);

    let mut best = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        let times = [
            timed(|| first(&path)),
            less(&path).unwrap_or(Duration::MAX),
            timed(|| whole(&path)),
            timed(|| Command::new("wc").arg("-l").arg(&path).stdout(Stdio::null()).status().unwrap()),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    let [first, less, whole, wc] = best;
    println!("what the first screen needs        {first:>10.1?}");
    match less {
        Duration::MAX => println!("less +G to its last line           less is not here"),
        less => println!("less +G to its last line           {less:>10.1?}"),
    }
    println!("the whole index                    {whole:>10.1?}");
    println!(
        "wc -l                              {wc:>10.1?}  {:.1} times",
        whole.as_secs_f64() / wc.as_secs_f64()
    );
    let lag = follow(&path);
    println!("behind {A_SECOND} appends a second, at most  {lag:>7.1?}");
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).arg("--memory").arg(&path).output().unwrap();
    print!("{}", String::from_utf8_lossy(&ran.stdout));
    let mut failed = !ran.status.success();
    let mut check = |what: &str, ratio: f64, limit: f64| {
        let verdict = if ratio <= limit { "ok" } else { "FAILED" };
        println!("{what:<34} {ratio:>10.4}  at most {limit}  {verdict}");
        failed |= ratio > limit;
    };
    check("first screen : whole index", first.as_secs_f64() / whole.as_secs_f64(), 0.1);
    if less < Duration::MAX {
        check("first screen : less +G", first.as_secs_f64() / less.as_secs_f64(), 1.0);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

fn wanted(path: &Path) -> Wanted {
    Wanted {
        file: SessionFile { path: path.to_str().unwrap().into(), session: SessionId::new("s-1").unwrap() },
        branch: Branch::Latest,
        top: None,
        rows: ROWS,
        unfolded: Default::default(),
        search: None,
        thoughts: false,
        tips: false,
        take: None,
    }
}

/// The end of the file, and what its entries say.
fn first(path: &Path) -> Reading {
    let wanted = wanted(path);
    let reading = Reader::of(wanted.file.clone()).step(&wanted, Instant::now()).news.unwrap();
    assert!(reading.sheets.len() >= usize::from(ROWS));
    reading
}

fn whole(path: &Path) -> (Reader, Reading) {
    let wanted = wanted(path);
    let mut reader = Reader::of(wanted.file.clone());
    let mut last = None;
    loop {
        let step = reader.step(&wanted, Instant::now());
        last = step.news.or(last);
        if !step.has_more {
            return (reader, last.unwrap());
        }
    }
}

/// From its start until a pager has drawn the last line; nothing where there is none.
fn less(path: &Path) -> Option<Duration> {
    let pair = native_pty_system()
        .openpty(PtySize { rows: ROWS, cols: 120, pixel_width: 0, pixel_height: 0 })
        .ok()?;
    let mut command = CommandBuilder::new("less");
    command.args(["-S", "+G"]);
    command.arg(path);
    command.env("TERM", "xterm-256color");
    command.env("LESSHISTFILE", "-");
    let started = Instant::now();
    let mut child = pair.slave.spawn_command(command).ok()?;
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().ok()?;
    let (mut seen, mut buffer) = (Vec::new(), [0; 65_536]);
    let mut took = None;
    while let Ok(length @ 1..) = reader.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..length]);
        // The prompt at the end follows the last line.
        if memchr::memmem::find(&seen, b"(END)").is_some() {
            took = Some(started.elapsed());
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    took
}

/// The longest that an entry is not known yet after it was written.
fn follow(path: &Path) -> Duration {
    let (mut reader, reading) = whole(path);
    let wanted = wanted(path);
    let before = reading.items.len();
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            let mut file = File::options().append(true).open(path).unwrap();
            for nth in 0..APPENDS {
                let due = Duration::from_micros((nth * 1_000_000 / A_SECOND) as u64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                file.write_all(line(1 << 24 | nth as u32, None, "appended").as_bytes()).unwrap();
                written.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (mut lag, mut known) = (Duration::ZERO, 0);
        while known < APPENDS {
            let begun = Instant::now();
            let there = written.load(Ordering::SeqCst);
            let step = reader.step(&wanted, Instant::now());
            known = step.news.map_or(known, |reading| reading.summary.totals.unwrap().turns as usize);
            known = known.saturating_sub(before).min(APPENDS).max(there.min(known));
            lag = lag.max(begun.elapsed());
            if there == APPENDS {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        lag
    })
}

/// In a process of its own: what one that wrote before has freed would hide it.
fn memory(path: &Path) -> ExitCode {
    let before = kib("VmRSS:");
    let kept = whole(path);
    let taken = kib("VmRSS:").saturating_sub(before);
    println!("the transcript open                {taken:>7} KiB  {} entries", kept.1.items.len());
    println!("at most while it was read          {:>7} KiB  at most {MEMORY}", kib("VmHWM:") - before);
    if taken <= MEMORY { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A figure of this process; 0 where the system does not tell.
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn line(id: u32, parent: Option<u32>, text: &str) -> String {
    let parent = parent.map(|parent| format!("{parent:08x}"));
    let entry = json!({"type": "message", "id": format!("{id:08x}"), "parentId": parent,
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": text}});
    format!("{entry}\n")
}

/// Turns of a question, calls of tools with results of all lengths, and answers.
fn write(path: &PathBuf) -> u32 {
    let mut out = BufWriter::new(File::create(path).unwrap());
    writeln!(out, "{}", json!({"type": "session", "version": 3, "id": "s-1", "cwd": "/w"})).unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let usage =
        json!({"input": 900, "output": 80, "cacheRead": 9000, "cacheWrite": 0, "cost": {"total": 0.01}});
    let (mut id, mut written) = (0, 0);
    while written < BYTES {
        let message = match id % 5 {
            0 => json!({"role": "user", "content": "Do the next step, please, and say what you found."}),
            1 | 3 => {
                json!({"role": "assistant", "provider": "p", "model": "m", "usage": usage, "stopReason": "toolUse",
                "content": [{"type": "text", "text": "Looking."},
                    {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "rg -n token src"}}]})
            }
            _ => {
                let lines = 1 + random(if id % 50 == 2 { 900 } else { 60 });
                let text: String = (0..lines)
                    .map(|nth| format!("src/file_{nth}.rs:{}: let token = 1;\n", random(999)))
                    .collect();
                json!({"role": "toolResult", "toolName": "bash", "isError": random(20) == 0,
                    "content": [{"type": "text", "text": text}]})
            }
        };
        let parent = (id > 0).then(|| format!("{id:08x}"));
        id += 1;
        let entry = json!({"type": "message", "id": format!("{id:08x}"), "parentId": parent,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
        let text = format!("{entry}\n");
        written += text.len() as u64;
        out.write_all(text.as_bytes()).unwrap();
    }
    out.write_all(line(id + 1, Some(id), LAST).as_bytes()).unwrap();
    out.flush().unwrap();
    id + 1
}
