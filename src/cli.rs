//! The command line: what `docs/cli.md` says. One module a verb.

pub mod check;
pub mod config;
pub mod console;
mod counter;
pub mod demo;
pub mod doctor;
pub mod failure;
pub mod gate;
pub mod grep;
pub mod inbox;
pub mod input;
pub mod inspect;
pub mod lead;
mod letter;
pub mod list;
pub mod man;
pub mod memory;
pub mod message;
pub mod out;
pub mod peers;
mod prefix;
pub mod reply;
pub mod roster;
mod send;
pub mod serve;
mod signals;
pub mod state;
pub mod supervise;
pub mod transcript;
pub mod turn;
pub mod turns;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};

pub use failure::{Exit, Failure};
use out::Out;

use crate::config::paths::Named;
use crate::config::{Config, ConfigError, Environment, Places};
use crate::demo::stage;
use crate::herdr::Located;
use crate::herdr::reexec::{self, Decision, GoOn, Reexec};

/// Largest evidence read, in bytes.
const MAX_EVIDENCE_BYTES: usize = 64 << 20;

/// A terminal console through which one person is the Chief of many coding-agent leads
#[derive(Debug, Parser)]
#[command(name = "headman", version, subcommand_required = false, after_help = after_help())]
struct CommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What options of every verb stand under. Each names it, since one for all of them would also hold
/// for the options that follow.
const GLOBAL: &str = "Global options";

/// Options of every verb.
#[derive(Debug, Clone, Args)]
struct Globals {
    /// Herdr's socket [default: as Herdr itself finds it]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    socket: Option<OsString>,
    /// Pi's agent directory [default: PI_CODING_AGENT_DIR, else ~/.pi/agent]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    agent_dir: Option<OsString>,
    /// Where headman keeps its own state [default: HEADMAN_STATE_DIR, else ~/.local/state/headman]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The configuration [default: ~/.config/headman/config.toml]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Append a log to this file; it never holds what a message, ask or transcript says
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print lines of text in place of a screen
    #[arg(long, global = true, help_heading = GLOBAL)]
    plain: bool,
    /// Answer in JSON
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Don't have the console (or a lead) listed in Herdr: leads then can't write up
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_register: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Try the console on a simulated herd; touches nothing of yours
    Demo(demo::Arguments),
    /// List the leads, and what was left out
    List,
    /// Show the last text on a lead's pane, and the programs there
    Inspect(inspect::Arguments),
    /// List the leads of captured evidence
    Roster {
        /// The evidence; `-` is standard input
        #[arg(long, value_name = "FILE|-")]
        evidence: PathBuf,
    },
    /// List the leads' peers, and what is queued between them
    Peers,
    /// Print what leads sent, read and unread
    Inbox(inbox::Arguments),
    /// Print what was said in a lead's session
    Transcript(transcript::Arguments),
    /// Search what was said in the leads' sessions
    Grep(grep::Arguments),
    /// Show what a lead's session shows by itself: loops, no progress, failing checks, reports
    Signals(supervise::Subject),
    /// Hold what a lead claims to be done against the gate, and have your verifier judge it
    Gate(gate::Arguments),
    /// Keep lessons and orientation, and find those that fit
    #[command(subcommand)]
    Memory(memory::Verb),
    /// Print the leads as one block of text for a program
    State,
    /// Be Chief without a screen, for the other verbs
    Serve,
    /// Send a message to a lead
    Message(message::Arguments),
    /// Answer a lead's ask
    Reply(reply::Arguments),
    /// Be a lead, ask and tell the Chief, write to other leads
    #[command(subcommand)]
    Lead(lead::Verb),
    /// Run one turn of an agent (any command), so that it ends and leaves nothing running
    Turn(turn::Arguments),
    /// Show how the turns of each seat went, and what runs
    Turns(turns::Arguments),
    /// Check a record file against the contract
    Check(check::Arguments),
    /// Diagnose the setup (read-only)
    Doctor,
    /// Write, show or find the configuration
    #[command(subcommand)]
    Config(config::Verb),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// What stands below the help.
fn after_help() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for (code, meaning) in failure::MEANINGS {
        text += &format!("  {code:<4} {meaning}\n");
    }
    text += "\nExamples:\n";
    for (line, meaning) in EXAMPLES {
        text += &format!("  {line:<24} {meaning}\n");
    }
    text
}

const EXAMPLES: [(&str, &str); 2] = [
    ("headman demo", "the console on a simulated herd"),
    ("headman list --json", "the leads of your Herdr, for a script"),
];

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
pub struct Invocation(Asked);

#[derive(Debug)]
enum Asked {
    CommandLine(Box<CommandLine>),
    /// A process of the demo's: no verb, so that neither help nor completions know of it.
    DemoLead,
    /// A command of a turn, not begun yet; likewise.
    #[cfg(target_os = "linux")]
    TurnStage(Vec<OsString>),
}

impl Invocation {
    /// Parses. What there is to say of it (help, version, an error) is said.
    ///
    /// # Errors
    /// The exit code to end with.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, ExitCode> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        if arguments.len() == 2 && arguments[1] == stage::VERB {
            return Ok(Self(Asked::DemoLead));
        }
        #[cfg(target_os = "linux")]
        if let [_, verb, rest @ ..] = &arguments[..]
            && verb == crate::turn::stage::VERB
        {
            return Ok(Self(Asked::TurnStage(rest.to_vec())));
        }
        let parsed = CommandLine::try_parse_from(&arguments);
        parsed.map(|it| Self(Asked::CommandLine(Box::new(it)))).map_err(|error| {
            if !error.use_stderr() {
                let said = Out::new(false).own(error.render().to_string().as_bytes());
                return told(said.map(|()| Exit::Done), false);
            }
            let json = arguments.iter().take_while(|it| *it != "--").any(|it| it == "--json");
            told(Err(usage(&error, &arguments)), json)
        })
    }

    /// Executes the program again where that lets Herdr see the console as the Chief, or an open lead
    /// as one; else why not. To be called before any thread is started.
    pub fn reexecute(&self) -> Option<GoOn> {
        let Asked::CommandLine(command_line) = &self.0 else { return None };
        let CommandLine { globals, verb } = &**command_line;
        let to_be_listed = match verb {
            None => !globals.plain && !globals.json,
            Some(Verb::Serve) => true,
            Some(Verb::Lead(lead)) => lead.is_open(),
            Some(_) => false,
        };
        if !to_be_listed {
            return None;
        }
        // What is wrong with either is told once the console starts.
        let register = !globals.no_register
            && globals.places().ok().and_then(|places| configured(&places).ok()).is_none_or(|it| it.register);
        match reexec::decide(|name| std::env::var_os(name), register, std::process::id()) {
            Decision::GoOn(go_on) => Some(go_on),
            Decision::Again(again) => {
                // A program that nobody looks at takes the name at once, rather than start anew later.
                let again = if verb.is_some() { Reexec::named(std::process::id()) } else { again };
                let error = again.exec(std::env::args_os().skip(1));
                Some(GoOn::Failed(format!("headman can't execute itself again: {error}")))
            }
        }
    }

    /// Does what is asked; what there is to say of a failure is said.
    pub fn run(self, go_on: Option<GoOn>) -> ExitCode {
        match self.0 {
            #[cfg(target_os = "linux")]
            Asked::TurnStage(arguments) => Exit::Code(crate::turn::stage::become_command(&arguments)).into(),
            Asked::DemoLead => Exit::Code(crate::demo::lead::run()).into(),
            Asked::CommandLine(command_line) => {
                let json = command_line.globals.json;
                told(command_line.run(go_on), json)
            }
        }
    }
}

impl CommandLine {
    fn run(self, go_on: Option<GoOn>) -> Result<Exit, Failure> {
        let Self { globals, verb } = &self;
        #[cfg(debug_assertions)]
        crate::disk::crash::check().map_err(|why| Failure::usage(why, "The points are in disk/crash.rs"))?;
        if let Some(log) = &globals.log {
            start_log(log)?;
        }
        // One that was named is used or told, whether the verb needs it or not. The doctor tells it
        // among what else it finds, and `config` may be about to write it.
        if let (Some(path), false) = (&globals.config, matches!(verb, Some(Verb::Doctor | Verb::Config(_)))) {
            Config::load(path, true).map_err(|error| misconfigured(&error))?;
        }
        let mut out = Out::new(globals.json);
        match verb {
            None => {
                let places = globals.places()?;
                let config = configured(&places)?;
                let socket = located(&places, "start the console")?;
                let go_on = go_on.unwrap_or(GoOn::SwitchedOff);
                if globals.plain || globals.json {
                    return list::run(&places, &mut out);
                }
                drop(out);
                console::run(places, socket, config, go_on)
            }
            Some(Verb::Demo(arguments)) => {
                drop(out);
                demo::run(arguments, globals)
            }
            Some(Verb::List) => list::run(&globals.places()?, &mut out),
            Some(Verb::Inspect(arguments)) => inspect::run(&globals.places()?, arguments, &mut out),
            Some(Verb::Peers) => peers::run(&globals.places()?, &mut out),
            Some(Verb::Inbox(arguments)) => inbox::run(&globals.places()?, arguments, &mut out),
            Some(Verb::Transcript(arguments)) => transcript::run(|| globals.places(), arguments, &mut out),
            Some(Verb::Grep(arguments)) => grep::run(|| globals.places(), arguments, &mut out),
            Some(Verb::Signals(subject)) => supervise::run(|| globals.places(), subject, &mut out),
            Some(Verb::Gate(arguments)) => gate::run(|| globals.places(), arguments, &mut out),
            Some(Verb::Memory(verb)) => memory::run(&globals.places()?, verb, &mut out),
            Some(Verb::Config(verb)) => config::run(&globals.places()?, *verb, &mut out),
            Some(Verb::State) => state::run(&globals.places()?, &mut out),
            Some(Verb::Roster { evidence }) => captured(evidence, &mut out),
            Some(Verb::Serve) => {
                let places = globals.places()?;
                let config = configured(&places)?;
                let socket = located(&places, "serve")?;
                serve::run(places, socket, &config, &go_on.unwrap_or(GoOn::SwitchedOff), &mut out)
            }
            Some(Verb::Message(arguments)) => message::run(&globals.places()?, arguments, &mut out),
            Some(Verb::Reply(arguments)) => reply::run(&globals.places()?, arguments, &mut out),
            Some(Verb::Lead(verb)) => {
                let places = globals.places()?;
                if verb.is_open() {
                    configured(&places)?;
                }
                lead::run(&places, verb, out, go_on.unwrap_or(GoOn::SwitchedOff))
            }
            Some(Verb::Turn(arguments)) => {
                let places = globals.places()?;
                let config = configured(&places)?;
                // It is the command's.
                drop(out);
                turn::run(&places, &config, arguments)
            }
            Some(Verb::Turns(arguments)) => turns::run(&globals.places()?, arguments, &mut out),
            Some(Verb::Check(arguments)) => check::run(arguments, &mut out),
            Some(Verb::Doctor) => {
                doctor::run(&globals.places()?, !globals.no_register, &Environment::of_process(), &mut out)
            }
            Some(Verb::Completions { shell }) => {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut Self::command(), "headman", &mut text);
                out.own(&text).map(|()| Exit::Done)
            }
            Some(Verb::Man) => {
                let text = man::page(Self::command())
                    .map_err(|error| Failure::disk("write the manual", &error, "Try again"))?;
                out.own(&text).map(|()| Exit::Done)
            }
        }
    }
}

impl Globals {
    fn places(&self) -> Result<Places, Failure> {
        let named = Named {
            socket: self.socket.clone(),
            agent_dir: self.agent_dir.clone(),
            state_dir: self.state_dir.clone(),
            config: self.config.clone(),
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
        Failure::new(Exit::No, "evidence", format!("can't project the evidence: {error}"), error.hint())
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

/// What clap says, in one line; its hints become ours.
fn usage(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line is wrong");
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    // Which arguments are missing stands in the lines below.
    let below = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    for line in below.filter(|line| !line.starts_with("tip:")) {
        message.push(' ');
        message.push_str(line);
    }
    let verb = verb_of(arguments).map(|verb| format!("{verb} ")).unwrap_or_default();
    let mut hint = format!("See `headman {verb}--help`");
    if let Some(meant) = meant(error) {
        hint = format!("Did you mean `{meant}`? {hint}");
    }
    Failure::usage(format!("can't read the command line: {message}"), hint)
}

/// What is most like what was not understood.
fn meant(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(all) => all.first().map(String::as_str),
        _ => None,
    }
}

/// The verb of a command line that can't be parsed.
fn verb_of(arguments: &[OsString]) -> Option<String> {
    let command = CommandLine::command();
    let mut rest = arguments.iter().skip(1).map(|it| it.to_string_lossy());
    while let Some(argument) = rest.next() {
        match argument.strip_prefix("--") {
            Some("") => return None,
            Some(option) => {
                let mut all = command.get_arguments();
                if all.any(|it| it.get_long() == Some(option) && it.get_action().takes_values()) {
                    rest.next();
                }
            }
            None if argument.starts_with('-') => {}
            None => {
                let verb = command.find_subcommand(&*argument)?;
                let below = rest.next().and_then(|next| verb.find_subcommand(&*next));
                return Some(match below {
                    Some(below) => format!("{} {}", verb.get_name(), below.get_name()),
                    None => verb.get_name().to_owned(),
                });
            }
        }
    }
    None
}

fn configured(places: &Places) -> Result<Config, Failure> {
    Config::load(&places.config, places.config_is_named).map_err(|error| misconfigured(&error))
}

fn misconfigured(error: &ConfigError) -> Failure {
    let mistakes = error.mistakes().into_iter().map(|it| format!("can't use the configuration: {it}"));
    Failure::of_several(Exit::Usage, "configuration", mistakes.collect(), error.hint())
}

/// The socket to use.
fn located(places: &Places, what: &str) -> Result<Located, Failure> {
    places.socket.clone().map_err(|error| {
        Failure::new(Exit::Usage, "no_socket", format!("can't {what}: {error}"), error.hint())
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
    fn the_verb_is_found_behind_options_and_their_values() {
        for (line, verb) in [
            ("headman --socket list reply x", Some("reply")),
            ("headman --json --socket=list check", Some("check")),
            ("headman -x list", Some("list")),
            ("headman lead ask x", Some("lead ask")),
            ("headman lead frob", Some("lead")),
            ("headman lst", None),
            ("headman -- list", None),
            ("headman --frob", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(verb_of(&arguments).as_deref(), verb, "{line}");
        }
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
