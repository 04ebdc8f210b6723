//! The terminal in a real pseudo-terminal: taken over, and given back on every way out.
//!
//! The program in it is this test binary, run again with the ignored test [`child`] alone.

use std::io::Write;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode};
use headman::console::terminal::{Events, Options, Screen, Signal, Signals};
use headman::console::text;
use portable_pty::{ExitStatus, PtySize, native_pty_system};
use rustix::process::{Signal as RawSignal, kill_process};

use crate::pty::{DEADLINE, Harness, cells, command};

/// The command line of the child.
const CHILD: [&str; 4] = ["--exact", "terminal_pty::child", "--ignored", "--nocapture"];

/// What the child shows once keys and signals reach it.
const READY: &str = "ready";

/// The child, once it is ready.
fn start_child() -> Harness {
    let mut harness = Harness::start(command(std::env::current_exe().unwrap().to_str().unwrap(), &CHILD));
    harness.wait_for("the first frame", |harness| harness.shows(READY));
    harness
}

/// The program in the terminal. Keys: `q` quits, `p` panics, `t` lets another thread panic, `s`
/// suspends; anything else is shown.
#[test]
#[ignore = "it is the program that the other tests run in a terminal"]
fn child() {
    if std::env::var_os("HEADMAN_TEST_TERMINAL").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
    let code = runtime.block_on(run());
    if !headman::console::terminal::is_gone() {
        // After a hang-up the terminal may be gone although nobody has noticed yet.
        let _ = writeln!(std::io::stdout(), "ended with {code}");
    }
    // The thread that reads the terminal may never come back.
    std::process::exit(code);
}

async fn run() -> i32 {
    let mut screen = match Screen::enter(Options { mouse: true, ..Options::default() }) {
        Ok(screen) => screen,
        Err(error) => {
            println!("{error}. {}", error.hint());
            return 4;
        }
    };
    let mut signals = Signals::listen().unwrap();
    let mut events = Events::start().unwrap();
    screen.set_title(&text::title("two \x1b]asks")).unwrap();
    let mut status = READY.to_owned();
    let mut refused = 0;
    let ignored = std::env::var("HEADMAN_TEST_IGNORES").unwrap_or_default();
    loop {
        let shown = text::line(&status);
        if screen.draw(|frame| frame.render_widget(shown.as_str(), frame.area())).is_err() {
            // A terminal that hung up refuses before anybody has noticed.
            refused += 1;
            assert!(refused < 9, "it draws on and on");
        }
        tokio::select! {
            signal = signals.next() => {
                if ignored.contains(&format!("{signal:?}")) {
                    continue;
                }
                if signal.ends() {
                    return i32::from(signal.exit_code());
                }
                assert_eq!(signal, Signal::Continued);
                let _ = screen.take_back();
                status = "continued".to_owned();
            }
            read = events.next() => match read.map(|read| read.event) {
                Some(Event::Key(key)) => match key.code {
                    KeyCode::Char('q') => return 0,
                    KeyCode::Char('p') => panic!("on purpose"),
                    KeyCode::Char('t') => drop(std::thread::spawn(|| panic!("elsewhere"))),
                    KeyCode::Char('s') => {
                        screen.suspend(&mut signals).await.unwrap();
                        status = "resumed".to_owned();
                    }
                    code => status = format!("key {code}"),
                },
                Some(Event::Paste(pasted)) => status = format!("paste {pasted:?}"),
                Some(Event::Resize(columns, rows)) => status = format!("size {columns}x{rows}"),
                Some(_) => {}
                None if ignored.contains("TerminalGone") => std::future::pending().await,
                None => return i32::from(Signal::TerminalGone.exit_code()),
            },
        }
    }
}

#[test]
fn quitting_gives_the_terminal_back() {
    let mut harness = start_child();
    harness.assert_taken();
    let raw = String::from_utf8_lossy(&harness.raw).into_owned();
    assert!(raw.contains("\x1b]0;two ␛]asks\x07"), "the title is set, neutralised");
    harness.type_text("q");
    let status = harness.finish();
    assert_eq!(status.exit_code(), 0);
    assert!(harness.shows("ended with 0"));
    harness.assert_given_back();
}

#[test]
fn keys_pastes_and_sizes_arrive() {
    let mut harness = start_child();
    harness.type_text("x");
    harness.wait_for("key", |harness| harness.shows("key x"));
    harness.type_text("\x1b[200~one\rq\x1b[201~");
    harness.wait_for("paste", |harness| harness.shows(r#"paste "one\rq""#));
    let size = |rows, cols| PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
    for (rows, cols) in [(1, 1), (30, 90)] {
        harness.master.as_ref().unwrap().resize(size(rows, cols)).unwrap();
        harness.screen.screen_mut().set_size(cells(rows), cells(cols));
        if rows > 1 {
            harness.wait_for("resize", |harness| harness.shows("size 90x30"));
        }
    }
    harness.type_text("q");
    assert_eq!(harness.finish().exit_code(), 0);
    harness.assert_given_back();
}

#[test]
fn a_panic_shows_its_message_on_the_restored_screen() {
    for (key, message) in [("p", "on purpose"), ("t", "elsewhere")] {
        let mut harness = start_child();
        harness.type_text(key);
        let status = harness.finish();
        assert_eq!(status.exit_code(), 101, "{message}");
        harness.assert_given_back();
        assert!(harness.shows(message), "{}", harness.screen.screen().contents());
        let raw = String::from_utf8_lossy(&harness.raw);
        assert!(raw.find(message) > raw.find("\x1b[?1049l"), "the message came before the restoring");
    }
}

#[test]
fn signals_end_it_in_the_ordinary_way() {
    for (signal, code) in
        [(RawSignal::TERM, 143), (RawSignal::HUP, 129), (RawSignal::INT, 130), (RawSignal::QUIT, 130)]
    {
        let mut harness = start_child();
        kill_process(harness.pid(), signal).unwrap();
        let status = harness.finish();
        assert_eq!(status.exit_code(), code, "{signal:?}: {status:?}");
        assert!(harness.shows(&format!("ended with {code}")));
        harness.assert_given_back();
    }
}

#[test]
fn being_stopped_from_outside_takes_the_terminal_back() {
    let mut harness = start_child();
    kill_process(harness.pid(), RawSignal::STOP).unwrap();
    harness.raw.clear();
    kill_process(harness.pid(), RawSignal::CONT).unwrap();
    harness.wait_for("continuation", |harness| harness.shows("continued"));
    harness.assert_taken();
    harness.type_text("q");
    assert_eq!(harness.finish().exit_code(), 0);
    harness.assert_given_back();
}

/// No shell, so nobody who could continue it: the process group is orphaned and is not stopped.
#[test]
fn suspending_without_a_shell_goes_on() {
    let mut harness = start_child();
    harness.type_text("s");
    harness.wait_for("resumption", |harness| harness.shows("resumed"));
    harness.assert_taken();
    harness.type_text("q");
    assert_eq!(harness.finish().exit_code(), 0);
}

#[test]
fn suspending_gives_the_shell_its_terminal_and_takes_it_back() {
    let Some(bash) = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| std::fs::exists(path).unwrap())
    else {
        eprintln!("not run: there is no bash");
        return;
    };
    let mut shell = command(bash, &["--norc", "--noprofile", "-i"]);
    shell.env("PS1", "shell> ");
    let mut harness = Harness::start(shell);
    harness.wait_for("prompt", |harness| harness.shows("shell> "));
    let program = std::env::current_exe().unwrap();
    harness.type_text(&format!("'{}' {}\r", program.display(), CHILD.join(" ")));
    harness.wait_for("the first frame", |harness| {
        harness.shows(READY) && harness.screen.screen().alternate_screen()
    });
    for round in 0..3 {
        harness.type_text("s");
        harness.wait_for("the shell", |harness| {
            !harness.screen.screen().alternate_screen() && harness.shows("Stopped")
        });
        assert!(!harness.screen.screen().hide_cursor());
        // The shell reads what is typed, not we.
        harness.type_text(&format!("clear; echo $((6 * 7)){round}\r"));
        let echoed = format!("42{round}");
        harness.wait_for("the shell's answer", |harness| harness.shows(&echoed));
        harness.type_text("fg\r");
        harness.wait_for("resumption", |harness| {
            harness.screen.screen().alternate_screen() && harness.shows("resumed")
        });
        harness.wait_for("the modes", |harness| {
            harness.screen.screen().hide_cursor() && harness.screen.screen().bracketed_paste()
        });
        assert!(!harness.is_cooked());
        harness.type_text("x");
        harness.wait_for("key", |harness| harness.shows("key x"));
    }
    harness.type_text("q");
    harness.wait_for("the end", |harness| harness.shows("ended with 0"));
    harness.type_text("exit\r");
    harness.finish();
}

/// Starts the child, lets its terminal hang up as closing a window does, and waits for its end.
fn hang_up(ignores: &str) -> (ExitStatus, Duration) {
    let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = command(std::env::current_exe().unwrap().to_str().unwrap(), &CHILD);
    command.env("HEADMAN_TEST_IGNORES", ignores);
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    // Not on another thread: that one's copy would keep the terminal alive.
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains(READY) {
        let mut buffer = [0; 4096];
        let length = reader.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..length]);
    }
    drop(reader);
    drop(pair.master);
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, started.elapsed());
        }
        if started.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it runs on without a terminal");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_terminal_that_is_gone_ends_it_at_once() {
    // With SIGHUP, and without it, by watching the terminal alone.
    for ignores in ["", "Hangup"] {
        let (status, took) = hang_up(ignores);
        assert_eq!(status.exit_code(), 129, "{status:?}, ignoring {ignores:?}");
        assert!(took < Duration::from_millis(1_500), "{took:?}, ignoring {ignores:?}");
    }
}

#[test]
fn a_loop_that_does_not_end_is_ended_once_the_terminal_is_gone() {
    let (status, took) = hang_up("Hangup TerminalGone");
    assert_eq!(status.exit_code(), 129);
    assert!(took >= Duration::from_millis(1_500), "{took:?}: it ended by itself");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .args(CHILD)
        .env("HEADMAN_TEST_TERMINAL", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("standard input is none. Use `headman list`"), "{shown}");
    assert_eq!(output.status.code(), Some(4));
    assert!(!shown.contains('\x1b'));
}
