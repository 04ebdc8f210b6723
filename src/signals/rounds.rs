//! A round: one message of a model that calls tools, with what they all gave.

use super::keys::{Key, is_path, normalised};
use super::self_report::{self, Report};
use super::shell::{Guess, exit_code};
use crate::pi::said::{Answer, Call, Given, Step};

/// Tools that run a shell command; it stands in the argument `command`.
const SHELLS: [&str; 3] = ["bash", "shell", "sh"];
/// Tools that write to files.
const WRITERS: [&str; 2] = ["edit", "write"];
/// Tools that read them.
const READERS: [&str; 1] = ["read"];
/// What Pi writes where a command printed nothing.
const NO_OUTPUT: &str = "(no output)";
/// Characters of a command that are kept to name it.
const NAMED: usize = 100;

/// What one call did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// The tool's name.
    pub tool: String,
    /// What it was about, shortened: its command, else its paths.
    pub about: String,
    /// The arguments that are paths, in order of their text.
    pub paths: Vec<String>,
    /// What result it gave.
    pub result: Key,
    /// What was called: the tool with all its arguments.
    pub call: Key,
    /// Whether it failed.
    pub is_error: bool,
    /// The exit code that a failed command names.
    pub exit: Option<i32>,
    /// What it is to the supervisor.
    pub deed: Deed,
}

/// What kind of act it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It writes to files.
    Edit,
    /// It reads them.
    Read,
    /// A command that, by its words, changes something.
    Change,
    /// A command that does not, named by tool and command.
    Check {
        /// Which check it is.
        key: Key,
        /// Whether it failed, as far as its exit code is no answer.
        failed: bool,
    },
    /// Anything else.
    Other,
}

impl Act {
    /// Whether it wrote to a file for certain.
    pub fn edited(&self) -> bool {
        self.deed == Deed::Edit && !self.is_error
    }

    /// Whether it changed something, or may have: of a command one can't tell how far it came.
    pub fn changed(&self) -> bool {
        self.edited() || self.deed == Deed::Change
    }

    /// The act of `call` that gave `given`; without that it failed, and said nothing.
    fn of(call: &Called, given: Option<&Given>) -> Self {
        let is_error = given.is_none_or(|given| given.is_error);
        let text = given.map(|given| normalised(&given.text)).unwrap_or_default();
        let images = given.map(|given| &given.images[..]).unwrap_or_default();
        let command = call.command.as_ref();
        let is_silent = images.is_empty() && (text.is_empty() || text == NO_OUTPUT);
        let said = command.filter(|_| is_silent).map(|command| command.text.as_bytes());
        let result = Key::of(
            [call.tool.as_bytes(), text.as_bytes(), &[u8::from(is_error)]]
                .into_iter()
                .chain(call.paths.iter().map(String::as_bytes))
                .chain([&b"\0"[..]])
                .chain(images.iter().map(String::as_bytes))
                .chain(said),
        );
        let exit = exit_code(&text).filter(|_| is_error && command.is_some());
        let deed = match command {
            Some(command) if command.guess.mutates => Deed::Change,
            Some(command) if !command.text.is_empty() => Deed::Check {
                key: Key::of([call.tool.as_bytes(), command.text.as_bytes()]),
                failed: is_error && !(exit == Some(1) && command.guess.answers_by_one),
            },
            Some(_) => Deed::Other,
            None if WRITERS.contains(&call.tool.as_str()) => Deed::Edit,
            None if READERS.contains(&call.tool.as_str()) => Deed::Read,
            None => Deed::Other,
        };
        let about = match command {
            Some(command) => command.text.chars().take(NAMED).collect(),
            None => call.paths.join(" ").chars().take(NAMED).collect(),
        };
        let (tool, paths) = (call.tool.clone(), call.paths.clone());
        Self { tool, about, paths, result, call: call.key, is_error, exit, deed }
    }
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The entry of the message.
    pub entry: String,
    /// Where that begins in the file, in bytes.
    pub offset: u64,
    /// When it was written, in milliseconds since the epoch.
    pub at: Option<u64>,
    /// What was done, in the order of the calls.
    pub acts: Vec<Act>,
    /// What the message reports of itself.
    pub report: Option<Report>,
}

impl Round {
    /// What it did, whatever the order.
    pub fn signature(&self) -> Key {
        Key::of_all(self.acts.iter().map(|act| act.result))
    }

    /// What was called, whatever the order.
    pub fn calls(&self) -> Key {
        Key::of_all(self.acts.iter().map(|act| act.call))
    }

    /// Whether anything was changed, or may have been.
    pub fn mutated(&self) -> bool {
        self.acts.iter().any(Act::changed)
    }
}

/// A call whose result is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Called {
    id: String,
    tool: String,
    paths: Vec<String>,
    command: Option<Command>,
    key: Key,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Command {
    /// Trimmed.
    text: String,
    guess: Guess,
}

impl Called {
    fn of(call: &Call) -> Self {
        let is_shell = SHELLS.contains(&call.tool.as_str());
        let command = call.arguments.iter().find(|(name, _)| is_shell && name == "command");
        let command = command.map(|(_, text)| text.trim().to_owned());
        // A shell that is given no command is given a blank one.
        let command = command.or(is_shell.then(String::new));
        let mut paths: Vec<String> =
            call.arguments.iter().filter(|(name, _)| is_path(name)).map(|(_, value)| value.clone()).collect();
        paths.sort_unstable();
        let mut arguments: Vec<&(String, String)> = call.arguments.iter().collect();
        arguments.sort_unstable();
        let parts = arguments.into_iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        Self {
            id: call.id.clone(),
            tool: call.tool.clone(),
            paths,
            command: command.map(|text| Command { guess: Guess::of(&text), text }),
            key: Key::of([call.tool.as_bytes()].into_iter().chain(parts)),
        }
    }
}

/// Puts rounds together from a session's entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rounds {
    open: Option<Open>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    entry: String,
    offset: u64,
    at: Option<u64>,
    report: Option<Report>,
    calls: Vec<(Called, Option<Act>)>,
}

impl Rounds {
    /// Takes a message of a model, which `step` says; the round before it, where results of that never came.
    pub fn answer(&mut self, step: &Step, answer: &Answer) -> Option<Round> {
        let before = self.close();
        if !answer.calls.is_empty() {
            self.open = Some(Open {
                entry: step.entry.clone(),
                offset: step.offset,
                at: step.at,
                report: self_report::read(&answer.text).report,
                calls: answer.calls.iter().map(|call| (Called::of(call), None)).collect(),
            });
        }
        before
    }

    /// Takes a result; the round, if that was the last one it waited for.
    pub fn given(&mut self, given: &Given) -> Option<Round> {
        let open = self.open.as_mut()?;
        let waits = |(called, act): &&mut (Called, Option<Act>)| act.is_none() && called.id == given.call;
        let (called, act) = open.calls.iter_mut().find(waits)?;
        *act = Some(Act::of(called, Some(given)));
        if open.calls.iter().all(|(_, act)| act.is_some()) { self.close() } else { None }
    }

    /// Ends the round that still waits for results: those count as failures without a text.
    pub fn close(&mut self) -> Option<Round> {
        let Open { entry, offset, at, report, calls } = self.open.take()?;
        let acts = calls.into_iter().map(|(called, act)| act.unwrap_or_else(|| Act::of(&called, None)));
        Some(Round { entry, offset, at, acts: acts.collect(), report })
    }

    /// Whether results are waited for.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}
