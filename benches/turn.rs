//! What supervision costs: a turn of `true` beside a bare `true`, and beside a start of this program
//! that does nothing, which a turn needs twice.
//!
//! The limit is in milliseconds, since that is what a turn is delayed by; ratios tell machines apart.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 101;
const LIMIT: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_headman"));
    let mut commands = [
        ("a bare `true`", Command::new("true")),
        ("a start of headman", Command::new(own)),
        ("a turn of `true`", Command::new(own)),
    ];
    commands[1].1.arg("--version");
    commands[2].1.args(["turn", "--seat", "bench", "--", "true"]);
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        // In turns, so that what else the machine does concerns all of them.
        for ((_, command), times) in commands.iter_mut().zip(&mut times) {
            command.env("HOME", dir.path()).env_remove("XDG_STATE_HOME").env_remove("HEADMAN_TURN_LOG_DIR");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            assert!(command.status().unwrap().success());
            times.push(started.elapsed());
        }
    }
    let medians = times.each_mut().map(|times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    for ((what, _), median) in commands.iter().zip(medians) {
        println!("{what:<20} {median:>10.1?}");
    }
    let [bare, _, turn] = medians;
    let over = turn.saturating_sub(bare);
    let ratio = turn.as_secs_f64() / bare.as_secs_f64();
    let verdict = if over <= LIMIT { "ok" } else { "FAILED" };
    println!("a turn over a bare one {over:>8.1?}  at most {LIMIT:?}  {verdict}  (ratio {ratio:.1})");
    if over <= LIMIT { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
