//! The `headman` command.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use headman::demo;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(|verb| verb.to_str()) {
        Some("demo-lead") => demo::lead::run(),
        Some("demo") => run_demo(arguments),
        _ => ExitCode::SUCCESS,
    }
}

fn run_demo(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match demo_options(arguments) {
        Ok(options) => options,
        Err(why) => return fail(&why, 2),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, 1),
    };
    match runtime.block_on(demo::run(options)) {
        Ok(code) => ExitCode::from(code),
        Err(error @ demo::DemoError::Option(_)) => fail(&error, 2),
        Err(error) => fail(&error, 1),
    }
}

fn demo_options(mut arguments: impl Iterator<Item = OsString>) -> Result<demo::Options, String> {
    let mut options = demo::Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{} takes a value", argument.display()));
        let number = |value: OsString| value.to_string_lossy().into_owned();
        match argument.to_str() {
            Some("--serve") => options.serve = true,
            Some("--dir") => options.dir = Some(PathBuf::from(value()?)),
            Some("--speed") => {
                options.speed = number(value()?).parse().map_err(|_| "--speed takes a number")?
            }
            Some("--leads") => {
                options.leads = number(value()?).parse().map_err(|_| "--leads takes a number")?
            }
            Some("--seed") => options.seed = number(value()?).parse().map_err(|_| "--seed takes a number")?,
            Some("--") => options.command = arguments.by_ref().collect(),
            _ => return Err(format!("demo does not know {}", argument.display())),
        }
    }
    Ok(options)
}

fn fail(why: &dyn std::fmt::Display, code: u8) -> ExitCode {
    // Where nobody reads it there is nothing more to be done about it.
    let _ = writeln!(std::io::stderr().lock(), "headman: {why}");
    ExitCode::from(code)
}
