//! The whole console in a real terminal, as the terminal lives: notices, sizes, stops, storms.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headman::contract::{LeadRecord, SessionId, Timestamp, Uuid};
use headman::disk::{AgentDir, Runtime, records};
use portable_pty::{PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::demo_console::{Served, headman, home, press};
use crate::pty::{DEADLINE, Harness, cells};

/// How each frame begins.
const FRAME: &str = "\x1b[?2026h";
/// Frames between a key and what it does, at most, with everything that waits in the terminal.
const FRAMES: usize = 60;
/// Changed records a second in a storm.
const RATE: u64 = 1000;

type Set = Vec<(String, String)>;

/// The herd's environment with some of it set otherwise.
fn environment(served: &Served, set: &[(&str, &str)]) -> Set {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    served.environment.iter().cloned().chain(set).collect()
}

fn setting(served: &Served, name: &str) -> String {
    served.environment.iter().find(|(known, _)| known == name).unwrap().1.clone()
}

fn agent_dir(served: &Served, home: &Path) -> AgentDir {
    AgentDir::resolve(Some(setting(served, "PI_CODING_AGENT_DIR").as_ref()), home)
}

fn runtime(served: &Served, home: &Path) -> Runtime {
    agent_dir(served, home).runtime(setting(served, "HERDR_SOCKET_PATH").as_ref())
}

/// Kills the lead of one repository, as a crash would, until `seen`. The herd starts it again, on a busy
/// machine before anybody has looked.
fn lose_a_lead(
    served: &Served,
    home: &Path,
    console: &mut Harness,
    what: &str,
    seen: impl Fn(&Harness) -> bool,
) {
    let peers = agent_dir(served, home).runtime("".as_ref());
    let deadline = Instant::now() + DEADLINE;
    while !seen(console) {
        assert!(Instant::now() < deadline, "no {what}:\n{}", console.screen.screen().contents());
        for peer in headman::source::peers::look(&peers).unwrap_or_default() {
            let Some(record) = peer.record.filter(|_| peer.presence.is_ok()) else { continue };
            if record.repo.is_some_and(|repo| *repo.as_untrusted() == "infra") {
                // It may have ended since.
                let _ =
                    kill_process(Pid::from_raw(record.claim.pid.as_raw().unwrap()).unwrap(), Signal::KILL);
            }
        }
        let again = Instant::now() + Duration::from_secs(2);
        while !seen(console) && Instant::now() < again {
            if let Ok(bytes) = console.output.recv_timeout(Duration::from_millis(50)) {
                console.raw.extend_from_slice(&bytes);
                console.screen.process(&bytes);
            }
        }
    }
}

fn frames(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).matches(FRAME).count()
}

fn resize(terminal: &mut Harness, rows: u16, cols: u16) {
    let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
    terminal.screen.screen_mut().set_size(cells(rows), cells(cols));
    terminal.master.as_ref().unwrap().resize(size).unwrap();
}

#[test]
fn a_lead_that_dies_while_nobody_looks_is_told_by_the_terminal_and_to_who_comes_back() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let outside = environment(&served, &[("HERDR_ENV", ""), ("TERM_PROGRAM", "WezTerm")]);
    let mut console = Harness::start_in(headman(home.path(), &[], &outside), 120, 40);
    console.wait_for("the herd", |it| it.shows("7 leads") && it.shows("NEEDS YOU"));
    press(&mut console, "\x1b[O", "anything", |_| true);
    // What comes after it in the same stream comes after it in the console.
    press(&mut console, "j", "anything", |_| true);
    press(&mut console, "\x1b[O", "anything", |_| true);
    lose_a_lead(&served, home.path(), &mut console, "notice", |it| {
        let raw = String::from_utf8_lossy(&it.raw);
        raw.split("\x1b]9;")
            .skip(1)
            .any(|rest| rest.split('\x07').next().is_some_and(|it| it.ends_with("lost")))
    });
    press(&mut console, "\x1b[I", "the line", |it| {
        it.shows("away") && it.shows(" lost") && it.shows("; g a shows")
    });
    press(&mut console, "g", "the key", |it| it.shows("g …"));
    press(&mut console, "a", "the timeline", |it| it.shows("Timeline") && !it.shows("away"));
    let raw = String::from_utf8_lossy(&console.raw).into_owned();
    assert_eq!(raw.matches("\x1b]9;").count(), 1, "one notice: what asked already is none");
    press(&mut console, "q", "the roster", |it| it.shows("Leads"));
    press(&mut console, "q", "anything", |_| true);
    assert!(console.finish().success());
    console.assert_given_back();
}

#[test]
fn in_herdr_the_diagnostics_say_that_it_shows_no_notices_and_why() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("the herd", |it| it.shows("7 leads") && it.shows("NEEDS YOU"));
    press(&mut console, "d", "the way", |it| it.shows("Notices go through Herdr."));
    lose_a_lead(&served, home.path(), &mut console, "reason", |it| {
        it.shows("Herdr does not show notices: disabled.")
    });
    assert!(!String::from_utf8_lossy(&console.raw).contains("\x1b]9;"));
}

#[test]
fn sizes_of_all_kinds_one_after_the_other_leave_a_whole_screen() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("the herd", |it| it.shows("7 leads") && it.shows("NEEDS YOU"));
    for round in 0..40_u16 {
        for (rows, cols) in [(1, 1), (1 + round, 200 - round), (60 - round, 1 + 3 * round), (6, 20)] {
            resize(&mut console, rows, cols);
        }
    }
    resize(&mut console, 40, 120);
    press(&mut console, "\x0c", "the whole screen", |it| {
        it.shows("7 leads") && it.shows("NEEDS YOU") && it.shows("? help") && it.shows("next ask")
    });
    press(&mut console, "q", "anything", |_| true);
    assert!(console.finish().success());
    console.assert_given_back();
}

#[test]
fn on_a_linux_console_everything_is_ascii() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let linux = environment(&served, &[("TERM", "linux"), ("LANG", "C")]);
    let mut console = Harness::start_in(headman(home.path(), &[], &linux), 80, 24);
    console.wait_for("the herd", |it| it.shows("NEEDS YOU") && it.shows("* chief since"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "\x1b", "the question", |it| !it.shows("8192 bytes"));
    let raw = String::from_utf8_lossy(&console.raw).into_owned();
    assert!(raw.is_ascii(), "{:?}", raw.chars().find(|it| !it.is_ascii()));
    assert!(!raw.contains("\x1b[>1u"), "it would print that");
}

#[test]
fn shift_enter_of_a_terminal_that_tells_it_is_a_new_line() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
    console.wait_for("an ask", |it| it.shows("NEEDS YOU") && it.shows("chief since"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "first", "the text", |it| it.shows("first"));
    press(&mut console, "\x1b[13;2u", "anything", |_| true);
    press(&mut console, "second", "both lines", |it| {
        let rows: Vec<String> = it.screen.screen().rows(0, 80).collect();
        let first = rows.iter().position(|row| row.contains("first"));
        first.is_some_and(|at| rows[at + 1].contains("second"))
    });
    assert!(!console.shows("queued"), "nothing is sent");
}

/// A console that was stopped and goes on looks at its lease before anything else is sent under it.
#[test]
fn a_console_that_was_stopped_loses_the_lease_that_was_taken_from_it_meanwhile() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("to be Chief", |it| it.shows("● chief since") && it.shows("NEEDS YOU"));
    console.wait_for("to be listed", |it| !it.shows("can't write up"));
    kill_process(console.pid(), Signal::STOP).unwrap();
    kill_process(console.pid(), Signal::CONT).unwrap();
    console.wait_for("to be Chief still, and listed", |it| {
        it.shows("● chief since") && it.shows("NEEDS YOU") && !it.shows("can't write up")
    });
    console.assert_taken();

    kill_process(console.pid(), Signal::STOP).unwrap();
    std::fs::remove_file(runtime(&served, home.path()).descriptor()).unwrap();
    kill_process(console.pid(), Signal::CONT).unwrap();
    console.wait_for("the loss", |it| it.shows("○ lease lost") && it.shows("The Chief lease was lost"));
    press(&mut console, "q", "anything", |_| true);
    assert!(console.finish().success());
    console.assert_given_back();
}

/// User and system time of a process so far, in clock ticks of a hundredth of a second.
fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[test]
fn a_console_whose_terminal_is_gone_ends_without_burning_a_core() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut child = pair.slave.spawn_command(headman(home.path(), &[], &served.environment)).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("chief since") {
        let mut buffer = [0; 4096];
        let length = reader.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..length]);
    }
    let pid = child.process_id().unwrap();
    let before = ticks(pid).unwrap();
    let mut last = before;
    drop(reader);
    drop(pair.master);
    let started = Instant::now();
    let status = loop {
        last = ticks(pid).unwrap_or(last).max(last);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it runs on without a terminal");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.exit_code(), 129);
    assert!(last - before <= 100, "{} hundredths of a second", last - before);
}

/// Where no age is on the screen, nothing is drawn.
#[test]
fn idle_it_draws_nothing() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
    console.wait_for("an ask", |it| it.shows("NEEDS YOU") && it.shows("chief since"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "Yes.", "the text", |it| it.shows("Yes."));
    press(&mut console, "\r", "the answer", |it| it.shows("● answered"));
    press(&mut console, "?", "the help", |it| it.shows("┌ Help"));
    // Until five seconds went without one; a frame that comes again and again would not let them.
    let (deadline, mut quiet_since) = (Instant::now() + DEADLINE, Instant::now());
    while quiet_since.elapsed() < Duration::from_secs(5) {
        assert!(
            Instant::now() < deadline,
            "it draws again and again:\n{}",
            console.screen.screen().contents()
        );
        if let Ok(bytes) = console.output.recv_timeout(Duration::from_millis(100)) {
            console.screen.process(&bytes);
            quiet_since = Instant::now();
        }
    }
    assert!(console.shows("┌ Help"));
}

/// Records of leads that Herdr does not list, changed again and again by a thread of its own.
fn storm(runtime: Runtime, lasts: Duration) -> std::thread::JoinHandle<u64> {
    let template = |nth: u32, turn: u32| LeadRecord {
        instance: Uuid::parse(&format!("00000000-0000-4000-8000-{turn:06}{nth:06}")).unwrap(),
        session: SessionId::new(format!("storm-{nth}").as_str()).unwrap(),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    let scratch = tempfile::tempdir().unwrap();
    let source = AgentDir::resolve(Some(scratch.path().as_os_str()), Path::new("/")).runtime("s".as_ref());
    std::fs::create_dir_all(source.leads()).unwrap();
    let mut files: Vec<(PathBuf, [Vec<u8>; 2])> = Vec::new();
    for nth in 0..50 {
        let session = template(nth, 0).session;
        let bytes = [0, 1].map(|turn| {
            records::write_lead(&source, &template(nth, turn)).unwrap();
            std::fs::read(source.lead(&session)).unwrap()
        });
        files.push((runtime.lead(&session), bytes));
    }
    std::thread::spawn(move || {
        let (started, mut written) = (Instant::now(), 0);
        while started.elapsed() < lasts {
            let due = u64::try_from(started.elapsed().as_micros()).unwrap() * RATE / 1_000_000;
            while written < due {
                let (path, bytes) = &files[usize::try_from(written % 50).unwrap()];
                let turn = usize::try_from(written / 50 % 2).unwrap();
                let beside = path.with_extension("tmp");
                std::fs::write(&beside, &bytes[turn]).unwrap();
                rustix::fs::chmod(&beside, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
                std::fs::rename(&beside, path).unwrap();
                written += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // What is there at the end.
        for (path, _) in &files[3..] {
            std::fs::remove_file(path).unwrap();
        }
        written
    })
}

fn keys_in_a_storm(lasts: Duration) {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("the herd", |it| it.shows("7 leads") && it.shows("NEEDS YOU"));
    let storm = storm(runtime(&served, home.path()), lasts);
    console.wait_for("the storm", |it| it.shows("things are left out"));
    let (mut most, mut keys) = (0, 0);
    while !storm.is_finished() {
        for (key, open) in [("?", true), ("q", false)] {
            std::thread::sleep(Duration::from_millis(50));
            // What was drawn before the key is not counted.
            while let Ok(bytes) = console.output.try_recv() {
                console.screen.process(&bytes);
            }
            console.raw.clear();
            console.type_text(key);
            console.wait_for("what the key does", |it| it.shows("┌ Help") == open);
            most = most.max(frames(&console.raw));
            keys += 1;
        }
    }
    let written = storm.join().unwrap();
    assert!(keys >= 4 && most <= FRAMES, "{most} frames until a key of {keys} did something");
    assert!(written > 500, "only {written} changes");
    console.wait_for("what is there at the end", |it| it.shows("3 things are left out"));
    press(&mut console, "d", "those three", |it| {
        ["storm-0", "storm-1", "storm-2"].iter().all(|lead| it.shows(lead)) && !it.shows("storm-3")
    });
}

#[test]
fn in_a_storm_of_changes_keys_are_taken_and_the_end_is_what_is_there() {
    keys_in_a_storm(Duration::from_secs(3));
}

#[test]
#[ignore = "takes half a minute"]
fn in_a_storm_of_half_a_minute_it_is_so_too() {
    keys_in_a_storm(Duration::from_secs(30));
}
