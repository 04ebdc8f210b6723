//! Turns at a terminal, by chance, in a race, and as a library.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use headman::contract::Uuid;
use serde_json::Value;

use crate::programs;
use crate::pty;
use crate::turns::{Turns, of};

/// A shell that has just begun a child may pass over the key, so it becomes what is interrupted.
#[test]
fn a_terminal_is_the_commands_and_its_keys_reach_it() {
    let turns = Turns::new();
    let mut command = pty::command(
        env!("CARGO_BIN_EXE_headman"),
        &["turn", "--seat", "s", "--", "sh", "-c", "echo ready; read a; echo got $a; exec sleep 600"],
    );
    command.env_clear();
    for (key, value) in turns.place.command(&[]).get_envs() {
        command.env(key, value.unwrap());
    }
    let mut terminal = pty::Harness::start(command);
    terminal.wait_for("the command", |it| it.shows("ready"));
    terminal.type_text("hello\r");
    terminal.wait_for("what was typed", |it| it.shows("got hello"));
    terminal.type_text("\u{3}");
    assert_eq!(terminal.finish().exit_code(), 130);
    assert_eq!(
        of(&turns.last(), &["failure", "cancelled", "killed"]),
        ["cancelled".into(), true.into(), Value::Bool(false)]
    );
    turns.assert_gone();
}

/// The window begins anew once it can be looked at again.
#[test]
fn silence_while_the_supervisor_is_stopped_is_no_stall() {
    let turns = Turns::new();
    let mut child =
        turns.command(&["--stall", "1s", "--grace", "0"], &["sh", "-c", "echo x; sleep 3"]).spawn().unwrap();
    let mut begin = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut begin).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(2_600));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", turns.last());
    turns.assert_gone();
}

#[test]
fn an_end_that_races_the_kill_settles_once() {
    let turns = Turns::new();
    for nth in 1..=12 {
        let (code, line) = turns.sh(&["--stall", "100ms", "--grace", "0"], "sleep 0.1");
        assert_eq!(turns.lines().len(), nth);
        match code {
            Some(0) => assert_eq!(
                of(&line, &["ok", "killed", "exitCode"]),
                [true.into(), false.into(), Value::from(0)]
            ),
            _ => assert_eq!(of(&line, &["failure", "ok"]), ["stalled".into(), Value::Bool(false)]),
        }
    }
    turns.assert_gone();
}

/// Turns that misbehave by chance, `count` of them.
fn misbehave(count: u32) {
    let turns = Turns::new();
    let pieces = [
        "setsid sleep 600 &",
        "(setsid sleep 600 &) &",
        "trap '' INT TERM HUP",
        "sleep 600 &",
        "yes | head -c 200000",
        "sh -c 'sleep 600 & exit' &",
        "exec 3>&1; setsid sleep 600 3>&3 &",
        "echo x",
        "setsid sh -c 'trap \"\" INT; while :; do sleep 0.01; done' &",
    ];
    let ends =
        ["exit 0", "exit 9", "sleep 600", "kill -9 $$", "while :; do sleep 600; done", "kill -STOP $$"];
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut failures = BTreeSet::new();
    for nth in 1..=count {
        let mut script: Vec<&str> = (0..random(4)).map(|_| pieces[random(pieces.len())]).collect();
        script.push(ends[random(ends.len())]);
        let script = script.join("\n");
        let (_, line) = turns.sh(&["--stall", "60ms", "--grace", "20ms"], &script);
        assert_eq!(turns.lines().len(), nth as usize, "{script}");
        assert_eq!(line["childLeftRunning"], false, "{script}");
        assert_eq!(turns.survivors(), [""; 0], "{script}");
        failures.insert(line["failure"].to_string());
    }
    turns.assert_gone();
    assert!(failures.len() >= 3, "{failures:?}");
}

#[test]
fn turns_that_misbehave_leave_nothing_but_their_lines() {
    misbehave(50);
}

#[test]
#[ignore = "takes a minute"]
fn five_hundred_turns_that_misbehave_leave_nothing_but_their_lines() {
    misbehave(500);
}

/// Not a test: a process that runs turns as a library, and has no other children.
#[test]
#[ignore = "a program of other tests"]
fn runner_program() {
    use headman::turn::{Input, Job, run, settings};
    let Some(()) = programs::setting() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let once = |command: &[&str], input: Vec<u8>, timeout: u64| {
        let command: Vec<std::ffi::OsString> = command.iter().map(Into::into).collect();
        let flags = settings::Flags { grace: Some(Duration::ZERO), ..Default::default() };
        let config = settings::TurnConfig { wall_backstop_ms: Some(timeout), ..Default::default() };
        let (settings, _) = headman::turn::Settings::resolve("check", &flags, |_| None, &config);
        let job = Job {
            command: &command,
            settings: &settings,
            turn: Uuid::random(),
            input: Input::Bytes(input),
            stdout: None,
            stderr: None,
            keep: 10_000,
            most: None,
            in_our_group: false,
            program: env!("CARGO_BIN_EXE_headman").into(),
        };
        runtime.block_on(async {
            let (_asked, mut asked) = tokio::sync::mpsc::unbounded_channel();
            run(job, &mut asked).await
        })
    };
    let input: Vec<u8> = (0..250_000_u32).flat_map(u32::to_le_bytes).collect();
    let settled = once(&["cat"], input.clone(), 20_000);
    assert!(settled.failure.is_none() && settled.bytes == 1_000_000, "{settled:?}");
    assert!(settled.stdout.bytes() == &input[990_000..], "the end is kept");
    programs::say(format_args!("cat {:?}", settled.trace.iter().map(|it| it.what).collect::<Vec<_>>()));
    let settled = once(
        &["sh", "-c", "trap '' INT; setsid sleep 600 & echo out; echo err >&2; sleep 600"],
        Vec::new(),
        1_000,
    );
    let said = (settled.stdout.bytes(), settled.stderr.bytes());
    assert_eq!(said, (&b"out\n"[..], &b"err\n"[..]));
    programs::say(format_args!(
        "late {:?} {:?} {:?}",
        settled.failure,
        settled.left,
        settled.trace.iter().map(|it| it.what).collect::<Vec<_>>()
    ));
    // It does not read what it is given.
    let settled = once(&["true"], input, 20_000);
    programs::say(format_args!("deaf {:?}", settled.failure));
}

#[test]
fn a_program_runs_turns_with_bytes_in_and_bounded_bytes_out() {
    let program = programs::Program::start("turns_wild::runner_program", &(), &[]);
    assert_eq!(program.hear("cat").unwrap(), "cat [Settled]");
    assert_eq!(program.hear("late").unwrap(), "late Some(WallClock) [] [Kill, Settled]");
    assert_eq!(program.hear("deaf").unwrap(), "deaf None");
}
