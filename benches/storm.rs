//! How long a key waits for its frame: in quiet, and while 1,000 records a second change.
//!
//! The whole console in a pseudo-terminal, over the simulated herd. Times depend on the machine, so it
//! fails only where the storm makes them both long and longer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headman::contract::{LeadRecord, SessionId, Timestamp, Uuid};
use headman::disk::{AgentDir, Runtime, records};
use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};

#[allow(dead_code)]
#[path = "../tests/it/pty.rs"]
mod pty;

const HEADMAN: &str = env!("CARGO_BIN_EXE_headman");
/// Keys measured in each part.
const KEYS: usize = 300;
/// Changed records a second.
const RATE: u64 = 1000;
/// How long a key may take in a storm, of a hundred at most one longer.
const BOUND: Duration = Duration::from_millis(50);
/// How many times as long as in quiet.
const RATIO: u32 = 3;

fn main() -> ExitCode {
    let home = tempfile::Builder::new().prefix("hm").tempdir().unwrap();
    let variables = |name: &str| match name {
        "PATH" => std::env::var("PATH").unwrap(),
        "TERM" => "xterm-256color".to_owned(),
        "LANG" => "C.UTF-8".to_owned(),
        _ => home.path().to_str().unwrap().to_owned(),
    };
    let base = ["HOME", "TMPDIR", "PATH", "TERM", "LANG"].map(|name| (name.to_owned(), variables(name)));
    let mut herd = Command::new(HEADMAN)
        .args(["demo", "--serve", "--speed", "0", "--leads", "40"])
        .env_clear()
        .envs(base.clone())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut environment = base.to_vec();
    for line in BufReader::new(herd.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
        environment.push((name.to_owned(), value.trim_matches('\'').to_owned()));
        if name == "HEADMAN_STATE_DIR" {
            break;
        }
    }
    let setting = |name: &str| environment.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let agent_dir = AgentDir::resolve(Some(setting("PI_CODING_AGENT_DIR").as_ref()), home.path());
    let runtime = agent_dir.runtime(setting("HERDR_SOCKET_PATH").as_ref());
    let mut command = CommandBuilder::new(HEADMAN);
    command.env_clear();
    for (name, value) in &environment {
        command.env(name, value);
    }
    command.cwd("/");
    let mut console = pty::Harness::start_in(command, 120, 40);
    console.wait_for("the herd", |it| it.shows("40 leads"));

    let quiet = measure(&mut console);
    let (ends, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let storm = {
        let (ends, written) = (Arc::clone(&ends), Arc::clone(&written));
        std::thread::spawn(move || storm(&runtime, &ends, &written))
    };
    let started = Instant::now();
    let stormy = measure(&mut console);
    let rate = written.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    ends.store(true, Ordering::Relaxed);
    storm.join().unwrap();

    // In order, so that nothing of the herd is left.
    kill_process(console.pid(), Signal::TERM).unwrap();
    console.wait_for_exit();
    kill_process(Pid::from_raw(i32::try_from(herd.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    herd.wait().unwrap();

    for (what, times) in [("in quiet", &quiet), ("in a storm", &stormy)] {
        let [half, most, all] =
            [50, 99, 100].map(|part| times[(times.len() * part / 100).min(times.len() - 1)]);
        println!("key to frame, {what:<10}  p50 {half:>8.1?}  p99 {most:>8.1?}  longest {all:>8.1?}");
    }
    println!("{rate:.0} changes a second");
    let [quiet, stormy] = [&quiet, &stormy].map(|times| times[times.len() * 99 / 100]);
    if stormy > BOUND && stormy > quiet * RATIO {
        println!("p99 is more than {BOUND:?} and {RATIO} times that in quiet");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The times from a key to the frame that shows what it did, the shortest first.
fn measure(console: &mut pty::Harness) -> Vec<Duration> {
    let mut times = Vec::new();
    for nth in 0..KEYS {
        std::thread::sleep(Duration::from_millis(40));
        while let Ok(bytes) = console.output.try_recv() {
            console.screen.process(&bytes);
        }
        console.raw.clear();
        let opens = nth % 2 == 0;
        let started = Instant::now();
        console.type_text(if opens { "?" } else { "q" });
        console.wait_for("what the key does", |it| it.shows("Outside text fields") == opens);
        times.push(started.elapsed());
    }
    times.sort_unstable();
    times
}

/// Changes records until told to end.
fn storm(runtime: &Runtime, ends: &AtomicBool, written: &AtomicU64) {
    let scratch = tempfile::tempdir().unwrap();
    let source = AgentDir::resolve(Some(scratch.path().as_os_str()), Path::new("/")).runtime("s".as_ref());
    std::fs::create_dir_all(source.leads()).unwrap();
    let files: Vec<(PathBuf, [Vec<u8>; 2])> = (0..50)
        .map(|nth| {
            let session = SessionId::new(format!("storm-{nth}")).unwrap();
            let bytes = [0, 1].map(|turn| {
                let instance = Uuid::parse(&format!("0000000{turn}-0000-4000-8000-{nth:012}")).unwrap();
                let record = LeadRecord {
                    instance,
                    session: session.clone(),
                    pending_ask: None,
                    updated_at: Timestamp::from_millis(1),
                };
                records::write_lead(&source, &record).unwrap();
                std::fs::read(source.lead(&session)).unwrap()
            });
            (runtime.lead(&session), bytes)
        })
        .collect();
    let started = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        let due = u64::try_from(started.elapsed().as_micros()).unwrap() * RATE / 1_000_000;
        while written.load(Ordering::Relaxed) < due {
            let nth = usize::try_from(written.fetch_add(1, Ordering::Relaxed)).unwrap();
            let (path, bytes) = &files[nth % 50];
            let beside = path.with_extension("tmp");
            std::fs::write(&beside, &bytes[nth / 50 % 2]).unwrap();
            rustix::fs::chmod(&beside, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
            std::fs::rename(&beside, path).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
