//! `headman demo`: a simulated herd, and the console on it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure};
use crate::demo::{self, DemoError, Options};

/// What it is asked.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Prints the environment to use and serves until interrupted
    #[arg(long, conflicts_with = "command")]
    pub serve: bool,
    /// Where the herd lives [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How fast the script runs; 0: it stands still
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// How many leads there are
    #[arg(long, value_name = "N", default_value = "7")]
    pub leads: usize,
    /// What chance is drawn from
    #[arg(long, value_name = "S", default_value = "1")]
    pub seed: u64,
    /// Runs this in the herd's environment in place of the console, and ends with it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Runs the herd until what runs in it ends, or a signal asks to.
///
/// # Errors
/// [`Failure`] where it can't start.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    const WHAT: &str = "can't run the demo";
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
        program: None,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(system)?;
    runtime.block_on(demo::run(options)).map(Exit::Code).map_err(|error| {
        let exit = match &error {
            DemoError::Option(_) | DemoError::Command { .. } => Exit::Usage,
            _ => Exit::Unavailable,
        };
        let text = error.to_string();
        let (why, hint) = text.rsplit_once(". ").unwrap_or((&text, "See `headman demo --help`"));
        Failure::new(exit, error.code(), format!("{WHAT}: {why}"), hint)
    })
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if f64::is_finite(speed) && speed >= 0.0 => Ok(speed),
        _ => Err("a number from 0 on is needed".to_owned()),
    }
}
