//! `headman demo`: a simulated herd, and the console on it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, Globals};
use crate::demo::{self, DemoError, Options};

/// What it is asked.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Print the environment to use, and serve until interrupted
    #[arg(long, conflicts_with = "command")]
    pub serve: bool,
    /// Where the herd lives [default: a temporary directory]; removed at the end if it was made
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How many times faster than life the script runs, at most 1000; 0: it stands still
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// How many leads there are, at most 400
    #[arg(long, value_name = "N", default_value = "7")]
    pub leads: usize,
    /// What chance is drawn from: the same seed makes the same herd
    #[arg(long, value_name = "S", default_value = "1")]
    pub seed: u64,
    /// Run this in the herd's environment in place of the console, once all leads are there
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const WHAT: &str = "can't run the demo";

/// Runs the herd until what runs in it ends, or a signal asks to.
///
/// # Errors
/// [`Failure`] where it can't start.
pub(super) fn run(arguments: &Arguments, globals: &Globals) -> Result<Exit, Failure> {
    let system = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, "system", format!("{WHAT}: {error}"), "Try again")
    };
    let options = Options {
        dir: arguments.dir.clone(),
        speed: arguments.speed,
        leads: arguments.leads,
        seed: arguments.seed,
        serve: arguments.serve,
        command: arguments.command.clone(),
        for_console: for_console(arguments, globals)?,
        program: None,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(system)?;
    runtime.block_on(demo::run(options)).map(Exit::Code).map_err(|error| {
        let exit = match &error {
            DemoError::Option(_) | DemoError::Command { .. } => Exit::Usage,
            _ => Exit::Unavailable,
        };
        Failure::new(exit, error.code(), format!("{WHAT}: {error}"), error.hint())
    })
}

/// Those of the global options that are the console's; the others would mean nothing here.
fn for_console(arguments: &Arguments, globals: &Globals) -> Result<Vec<OsString>, Failure> {
    for (given, option) in [
        (globals.socket.is_some(), "--socket"),
        (globals.agent_dir.is_some(), "--agent-dir"),
        (globals.state_dir.is_some(), "--state-dir"),
    ] {
        if given {
            let message = format!("{WHAT}: it has a Herdr and directories of its own, {option} does not fit");
            return Err(Failure::usage(message, format!("Leave {option} out, or leave `demo` out")));
        }
    }
    let for_command = |option: &str| {
        let message = format!("{WHAT}: nothing in it would heed {option}");
        let hint = format!("Give it to a command, as in `headman demo -- headman list {option}`");
        Err(Failure::usage(message, hint))
    };
    for (given, option) in [(globals.json, "--json"), (globals.plain, "--plain")] {
        if given {
            return for_command(option);
        }
    }
    let no_console = arguments.serve || !arguments.command.is_empty();
    for (given, option) in [(globals.config.is_some(), "--config"), (globals.no_register, "--no-register")] {
        if given && no_console {
            let message = format!("{WHAT}: {option} is for the console, and none is started");
            return Err(Failure::usage(message, format!("Leave {option} out, or give it to the command")));
        }
    }
    let mut all = Vec::new();
    for (option, path) in [("--config", &globals.config), ("--log", &globals.log)] {
        if let Some(path) = path {
            all.extend([option.into(), path.clone().into()]);
        }
    }
    if globals.no_register {
        all.push("--no-register".into());
    }
    Ok(all)
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if f64::is_finite(speed) && speed >= 0.0 => Ok(speed),
        _ => Err("a number from 0 on is needed".to_owned()),
    }
}
