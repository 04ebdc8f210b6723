//! The command line: what `docs/cli.md` says. One module a verb.

pub mod check;
pub mod console;
pub mod demo;
pub mod doctor;
pub mod failure;
pub mod input;
pub mod list;
pub mod out;
pub mod peers;
pub mod reply;
pub mod roster;
pub mod state;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};

pub use failure::{Exit, Failure};
use out::Out;

use crate::config::paths::Named;
use crate::config::{Config, Environment, Places};
use crate::herdr::Located;
use crate::herdr::reexec::{self, Decision, GoOn};

/// Largest evidence read, in bytes.
const MAX_EVIDENCE_BYTES: usize = 64 << 20;

/// A terminal console through which one person is the Chief of many coding-agent leads
#[derive(Debug, Parser)]
#[command(name = "headman", version, subcommand_required = false)]
struct CommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
struct Globals {
    /// Herdr's socket [default: as Herdr itself finds it]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<OsString>,
    /// Pi's agent directory [default: PI_CODING_AGENT_DIR, else ~/.pi/agent]
    #[arg(long, global = true, value_name = "DIR")]
    agent_dir: Option<OsString>,
    /// Where headman keeps its own state [default: HEADMAN_STATE_DIR, else ~/.local/state/headman]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The configuration [default: ~/.config/headman/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Writes a log to this file; it never holds what a message, ask or transcript says
    #[arg(long, global = true, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Lines of text in place of a screen
    #[arg(long, global = true)]
    plain: bool,
    /// Answers in JSON
    #[arg(long, global = true)]
    json: bool,
    /// Does not have the console listed in Herdr: leads then can't write up
    #[arg(long, global = true)]
    no_register: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// A simulated herd, and the console on it
    Demo(demo::Arguments),
    /// The leads, and what was left out
    List,
    /// The projection of captured evidence
    Roster {
        /// The evidence; `-` is standard input
        #[arg(long, value_name = "FILE|-")]
        evidence: PathBuf,
    },
    /// The leads' peers, and what is queued between them
    Peers,
    /// The leads as a block of text for a program: at most 16 KiB
    State,
    /// Replies to a lead's ask
    Reply(reply::Arguments),
    /// Judges one record
    Check(check::Arguments),
    /// What is found where; never writes
    Doctor,
    /// Completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual page
    Man,
    #[command(hide = true)]
    DemoLead,
}

/// A length of time as `30s`, `500ms` or `2m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let number_ends = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let factor = match unit {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a time as 30s, 500ms or 2m is needed".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a time as 30s, 500ms or 2m is needed".to_owned())?;
    number.checked_mul(factor).map(Duration::from_millis).ok_or_else(|| "that is too long".to_owned())
}

/// One parsed command line.
#[derive(Debug)]
pub struct Invocation(CommandLine);

impl Invocation {
    /// Parses. What there is to say of it (help, version, an error) is said.
    ///
    /// # Errors
    /// The exit code to end with.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, ExitCode> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        CommandLine::try_parse_from(&arguments).map(Self).map_err(|error| {
            if !error.use_stderr() {
                let said = Out::new(false).own(error.render().to_string().as_bytes());
                return told(said.map(|()| Exit::Done), false);
            }
            let json = arguments.iter().take_while(|it| *it != "--").any(|it| it == "--json");
            told(Err(usage(&error)), json)
        })
    }

    /// Executes the program again where that lets Herdr see the console as the Chief; else why
    /// not. To be called before any thread is started.
    pub fn reexecute(&self) -> Option<GoOn> {
        let globals = &self.0.globals;
        if self.0.verb.is_some() || globals.plain || globals.json {
            return None;
        }
        // What is wrong with either is told once the console starts.
        let register = !self.0.globals.no_register
            && self.places().ok().and_then(|places| configured(&places).ok()).is_none_or(|it| it.register);
        match reexec::decide(|name| std::env::var_os(name), register, std::process::id()) {
            Decision::GoOn(go_on) => Some(go_on),
            Decision::Again(again) => {
                let error = again.exec(std::env::args_os().skip(1));
                Some(GoOn::Failed(format!("headman can't execute itself again: {error}")))
            }
        }
    }

    /// Does what is asked; what there is to say of a failure is said.
    pub fn run(self, go_on: Option<GoOn>) -> ExitCode {
        let json = self.0.globals.json;
        told(self.dispatch(go_on), json)
    }

    fn dispatch(self, go_on: Option<GoOn>) -> Result<Exit, Failure> {
        if let Some(log) = &self.0.globals.log {
            start_log(log)?;
        }
        let mut out = Out::new(self.0.globals.json);
        match &self.0.verb {
            None => {
                let places = self.places()?;
                let config = configured(&places)?;
                let socket = located(&places, "start the console")?;
                let go_on = go_on.unwrap_or(GoOn::SwitchedOff);
                if self.0.globals.plain || self.0.globals.json {
                    return list::run(&places, &mut out);
                }
                drop(out);
                console::run(places, socket, config, go_on)
            }
            Some(Verb::Demo(arguments)) => {
                drop(out);
                demo::run(arguments)
            }
            Some(Verb::DemoLead) => {
                drop(out);
                Ok(Exit::Code(crate::demo::lead::run()))
            }
            Some(Verb::List) => list::run(&self.places()?, &mut out),
            Some(Verb::Peers) => peers::run(&self.places()?, &mut out),
            Some(Verb::State) => state::run(&self.places()?, &mut out),
            Some(Verb::Roster { evidence }) => captured(evidence, &mut out),
            Some(Verb::Reply(arguments)) => reply::run(&self.places()?, arguments, &mut out),
            Some(Verb::Check(arguments)) => check::run(arguments, &mut out),
            Some(Verb::Doctor) => doctor::run(
                &self.places()?,
                !self.0.globals.no_register,
                &Environment::of_process(),
                &mut out,
            ),
            Some(Verb::Completions { shell }) => {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut CommandLine::command(), "headman", &mut text);
                out.own(&text).map(|()| Exit::Done)
            }
            Some(Verb::Man) => {
                let mut text = Vec::new();
                let rendered = clap_mangen::Man::new(CommandLine::command()).render(&mut text);
                rendered.map_err(|error| Failure::disk("write the manual", &error, "Try again"))?;
                out.own(&text).map(|()| Exit::Done)
            }
        }
    }

    fn places(&self) -> Result<Places, Failure> {
        let globals = &self.0.globals;
        let named = Named {
            socket: globals.socket.clone(),
            agent_dir: globals.agent_dir.clone(),
            state_dir: globals.state_dir.clone(),
            config: globals.config.clone(),
        };
        Places::find(&named, &Environment::of_process()).map_err(|error| {
            Failure::new(Exit::Usage, "no_home", format!("can't start: {error}"), format!("Give {}", error.0))
        })
    }
}

fn captured(evidence: &std::path::Path, out: &mut Out) -> Result<Exit, Failure> {
    let bytes = input::read(evidence, MAX_EVIDENCE_BYTES)?;
    if bytes.len() > MAX_EVIDENCE_BYTES {
        return Err(Failure::new(
            Exit::No,
            "too_large",
            format!("can't project the evidence: it has more than {MAX_EVIDENCE_BYTES} bytes"),
            "Capture less of it",
        ));
    }
    let form = if out.is_json() { roster::Form::Json } else { roster::Form::Plain };
    let text = roster::run(&bytes, form).map_err(|error| {
        let text = error.to_string();
        let (why, hint) = text.rsplit_once(". ").unwrap_or((&text, "Give one JSON object, as captured"));
        Failure::new(Exit::No, "evidence", format!("can't project the evidence: {why}"), hint)
    })?;
    if out.is_json() {
        out.json(&text)?
    } else {
        out.text(&text)?
    }
    Ok(Exit::Done)
}

fn told(result: Result<Exit, Failure>, json: bool) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.tell(json);
            failure.exit.into()
        }
    }
}

/// What clap says, in one line.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line is wrong");
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    // Which arguments are missing stands in the lines below.
    for line in lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")) {
        message.push(' ');
        message.push_str(line);
    }
    Failure::usage(format!("can't read the command line: {message}"), "See `headman --help`")
}

fn configured(places: &Places) -> Result<Config, Failure> {
    Config::load(&places.config, places.config_is_named).map_err(|error| {
        Failure::new(
            Exit::Usage,
            "configuration",
            format!("can't use the configuration: {error}"),
            error.hint(),
        )
    })
}

/// The socket to use.
fn located(places: &Places, what: &str) -> Result<Located, Failure> {
    places.socket.clone().map_err(|error| {
        let text = error.to_string();
        let (why, hint) = text.rsplit_once(". ").unwrap_or((&text, "Use --socket"));
        Failure::new(Exit::Usage, "no_socket", format!("can't {what}: {why}"), hint)
    })
}

/// One thread is enough for a verb.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::disk("start", &error, "Try again"))?;
    Ok(runtime.block_on(future))
}

/// Logs to `path`, private to the user.
fn start_log(path: &std::path::Path) -> Result<(), Failure> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let open = || -> std::io::Result<std::fs::File> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(crate::disk::durable::FILE_MODE)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        file.set_permissions(std::fs::Permissions::from_mode(crate::disk::durable::FILE_MODE))?;
        Ok(file)
    };
    let file = open().map_err(|error| {
        Failure::disk(&format!("log to {}", path.display()), &error, "Name another file with --log")
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::sync::Mutex::new(file))
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| Failure::disk("log", &error, "Leave --log out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, millis) in [("30s", 30_000), ("5", 5_000), ("500ms", 500), ("2m", 120_000), ("0", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "1.5s", "1d", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
