//! What a long session file costs: to its first screen, to its whole index, in memory, and while it grows.
//!
//! Times depend on the machine, so only ratios within one run can fail, and memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use headman::console::app::{App, Settings};
use headman::console::files::Place;
use headman::console::keymap::Keymap;
use headman::console::snippets::Snippets;
use headman::console::theme::{GlyphChoice, Theme};
use headman::console::view::frame;
use headman::contract::{SessionId, Timestamp};
use headman::fact::{self, Condition, Fact, FactReceiver, Now, Reading, SessionFile, Wanted};
use headman::herdr::Registration;
use headman::model::Model;
use headman::pi::growth::Branch;
use headman::source::transcript::{self, Reader};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use tokio::sync::watch;

const BYTES: u64 = 100_000_000;
const ROUNDS: usize = 7;
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;
const LAST: &str = "the very last words";
/// Appended while it is followed, so many a second.
const APPENDS: usize = 3_000;
const A_SECOND: usize = 1_000;
/// So many of them may not be known yet, so long after the last was written.
const OUTSTANDING: usize = 1_000;
const AFTERWARDS: Duration = Duration::from_secs(2);
/// The first screen should take no longer. It depends on the machine, so it is only told.
const FIRST_SCREEN: Duration = Duration::from_millis(30);
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
            first(&path),
            less(&path).unwrap_or(Duration::MAX),
            timed(|| whole(&path)),
            timed(|| Command::new("wc").arg("-l").arg(&path).stdout(Stdio::null()).status().unwrap()),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    let [first, less, whole, wc] = best;
    let verdict = if first <= FIRST_SCREEN { "within" } else { "beyond" };
    println!("to the first screen, drawn         {first:>10.1?}  {verdict} {FIRST_SCREEN:.0?}");
    match less {
        Duration::MAX => println!("less +G to its last line           less is not here"),
        less => println!("less +G to its last line, in a pty {less:>10.1?}"),
    }
    println!("the whole index                    {whole:>10.1?}");
    println!("wc -l                              {wc:>10.1?}");
    let Lag { middle, most, p99, outstanding } = follow(&path, entries);
    println!(
        "an append is known, of {A_SECOND} a second  {middle:>7.1?}  99 of 100 {p99:.1?}, at most {most:.1?}"
    );
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).arg("--memory").arg(&path).output().unwrap();
    print!("{}", String::from_utf8_lossy(&ran.stdout));
    let mut failed = !ran.status.success();
    let mut check = |what: &str, ratio: f64, limit: f64| {
        let verdict = if ratio <= limit { "ok" } else { "FAILED" };
        println!("{what:<34} {ratio:>10.3}  at most {limit}  {verdict}");
        failed |= ratio > limit;
    };
    check("whole index : wc -l", whole.as_secs_f64() / wc.as_secs_f64(), 2.0);
    if less < Duration::MAX {
        check("first screen : less +G", first.as_secs_f64() / less.as_secs_f64(), 1.5);
    }
    check("appends not known after 2 s", outstanding as f64, OUTSTANDING as f64);
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

fn now() -> Now {
    Now { wall: Timestamp::from_millis(1_796_029_920_000), mono: Duration::from_secs(1000) }
}

/// A console that shows the session.
fn console(path: &Path) -> App {
    let settings = Settings {
        herdr_session: "default".into(),
        looked_for: "/run/h.sock".to_owned(),
        keymap: Keymap::new(&BTreeMap::new()).unwrap(),
        theme: Theme::load(None, GlyphChoice::Unicode, |_| None).unwrap(),
        clock: |_| "09:12".to_owned(),
        supervision: Default::default(),
        guided: false,
        snippets: Snippets::default(),
        place: Place { from: "/".into(), home: None },
    };
    let model = Model::new(SessionId::new("chief").unwrap(), Registration::Registered);
    let mut app = App::new(model, settings, []);
    app.open_transcript(wanted(path).file, None);
    app
}

/// From the start of a thread that reads until the end of the file is drawn.
fn first(path: &Path) -> Duration {
    let mut app = console(path);
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS)).unwrap();
    let mut draw = |app: &App| {
        terminal
            .draw(|frame| {
                frame::draw(app, now(), frame);
            })
            .unwrap();
        terminal.backend().buffer().content.iter().map(|cell| cell.symbol()).collect::<String>()
    };
    assert!(!draw(&app).contains(LAST));
    let wanted = app.wanted().unwrap();
    let started = Instant::now();
    let (tell, told) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let step = Reader::of(wanted.file.clone()).step(&wanted, Instant::now());
        tell.send(step.news.unwrap()).unwrap();
    });
    app.facts(vec![Fact::Reading(Arc::new(told.recv().unwrap()))], now());
    let screen = draw(&app);
    let took = started.elapsed();
    assert!(screen.contains(LAST), "{screen}");
    reader.join().unwrap();
    took
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

/// How long after they were written entries are known.
struct Lag {
    middle: Duration,
    p99: Duration,
    most: Duration,
    /// Entries that were not, after all.
    outstanding: usize,
}

/// Follows the file as the console does, while entries are appended that follow the last one, `last`.
fn follow(path: &Path, last: u32) -> Lag {
    let (facts, received) = fact::channel();
    let (_wants, wanted) = watch::channel(Some(wanted(path)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let task = runtime.spawn(transcript::run(facts, wanted));
    let before = loop {
        match newest(&received) {
            Some(reading) if reading.condition == Condition::Following => break reading.items.len(),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let (tell, told) = mpsc::channel();
    let writer = {
        let path = path.to_owned();
        std::thread::spawn(move || {
            let begun = Instant::now();
            let mut file = File::options().append(true).open(path).unwrap();
            for nth in 0..APPENDS as u32 {
                let due = Duration::from_secs_f64(f64::from(nth) / A_SECOND as f64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                let id = last + 1 + nth;
                file.write_all(line(id, Some(id - 1), "appended").as_bytes()).unwrap();
                tell.send(Instant::now()).unwrap();
            }
        })
    };
    let (mut written, mut lags) = (Vec::new(), Vec::new());
    while lags.len() < APPENDS {
        let reading = newest(&received);
        let seen = Instant::now();
        written.extend(told.try_iter());
        let known = reading.map_or(0, |reading| reading.items.len() - before);
        // What was read before its writer could say when it wrote it, is known at once.
        for nth in lags.len()..known {
            lags.push(written.get(nth).map_or(Duration::ZERO, |at| seen.saturating_duration_since(*at)));
        }
        let is_over = written.len() == APPENDS && written.last().is_some_and(|at| at.elapsed() > AFTERWARDS);
        if is_over {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    writer.join().unwrap();
    task.abort();
    lags.sort();
    let at = |part: usize| lags.get((lags.len() * part / 100).min(lags.len().saturating_sub(1)));
    let at = |part: usize| at(part).copied().unwrap_or(Duration::MAX);
    Lag { middle: at(50), p99: at(99), most: at(100), outstanding: APPENDS - lags.len() }
}

fn newest(received: &FactReceiver) -> Option<Arc<Reading>> {
    received.take().into_iter().rev().find_map(|fact| match fact {
        Fact::Reading(reading) => Some(reading),
        _ => None,
    })
}

/// In a process of its own: what one that wrote before has freed would hide it.
fn memory(path: &Path) -> ExitCode {
    let before = kib("VmRSS:");
    let kept = whole(path);
    let taken = kib("VmRSS:").saturating_sub(before);
    let most = kib("VmHWM:").saturating_sub(before);
    println!("the transcript open                {taken:>7} KiB  {} entries", kept.1.items.len());
    println!("at most while it was read          {most:>7} KiB  at most {MEMORY}");
    if most <= MEMORY { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
