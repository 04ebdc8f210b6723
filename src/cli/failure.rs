//! How a verb ends: exit codes and errors.

use std::io::Write;
use std::process::ExitCode;

use crate::console::text;
use crate::contract::Uuid;
use crate::contract::json::ObjectWriter;
use crate::herdr::{HerdrError, Located};

/// The exit codes that help and manual name, with what they say.
pub const MEANINGS: [(u8, &str); 6] = [
    (0, "done; the answer, if there is one, is yes"),
    (1, "the answer is no: invalid, not delivered, not found, something is bad"),
    (2, "the command line or the configuration is wrong"),
    (3, "we are not the Chief, or somebody else is"),
    (4, "Herdr or the disk is unavailable"),
    (130, "interrupted"),
];

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done; the answer, if there is one, is yes.
    Done,
    /// 1: the answer is no: invalid, not delivered, not found.
    No,
    /// 2: the command line or the configuration is wrong.
    Usage,
    /// 3: we are not the Chief, or somebody else is.
    NotChief,
    /// 4: Herdr or the disk is unavailable.
    Unavailable,
    /// 130: interrupted.
    Interrupted,
    /// That of a signal, or of a program run for the user.
    Code(u8),
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::NotChief => 3,
            Exit::Unavailable => 4,
            Exit::Interrupted => 130,
            Exit::Code(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a verb did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The kind of failure: a stable name in snake case.
    pub code: &'static str,
    /// What failed and why, without a full stop.
    pub message: String,
    /// Whatever else is wrong, each as the message is.
    pub more: Vec<String>,
    /// The next step, without a full stop.
    pub hint: String,
    /// The id of the message of which it is not known what became.
    pub id: Option<Uuid>,
}

impl Failure {
    /// A failure of the kind `code`.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, code, message: message.into(), more: Vec::new(), hint: hint.into(), id: None }
    }

    /// Several mistakes of one kind, of which there is at least one.
    pub fn of_several(
        exit: Exit,
        code: &'static str,
        messages: Vec<String>,
        hint: impl Into<String>,
    ) -> Self {
        let mut messages = messages.into_iter();
        let first = messages.next().unwrap_or_default();
        Self { more: messages.collect(), ..Self::new(exit, code, first, hint) }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message, hint)
    }

    /// `what` could not be done because of Herdr at `socket`.
    pub fn herdr(what: &str, error: &HerdrError, socket: &Located) -> Self {
        if matches!(error, HerdrError::NoSocket { .. }) {
            return Self::new(
                Exit::Unavailable,
                "no_socket",
                format!("can't {what}: Herdr is not running, no socket at {}", socket.looked_for()),
                "Start `herdr`, name its socket with --socket, or try `headman demo`",
            );
        }
        let code = match error {
            HerdrError::NoSocket { .. } | HerdrError::Refused { .. } => "herdr_refused",
            HerdrError::TimedOut { .. } => "herdr_timed_out",
            HerdrError::ForeignPeer { .. } => "herdr_foreign_peer",
            HerdrError::Garbage { .. } => "herdr_garbage",
            HerdrError::Closed { .. } => "herdr_closed",
            HerdrError::TooLarge { .. } => "herdr_too_large",
            HerdrError::TooOld { .. } => "herdr_too_old",
            HerdrError::Server { .. } => "herdr_error",
            HerdrError::Io { .. } => "herdr_io",
        };
        let hint = error.hint().unwrap_or("See `headman doctor`");
        Self::new(Exit::Unavailable, code, format!("can't {what}: {}", error.why()), hint)
    }

    /// `what` could not be done because the disk failed.
    pub fn disk(what: &str, error: &dyn std::fmt::Display, hint: impl Into<String>) -> Self {
        Self::new(Exit::Unavailable, "disk", format!("can't {what}: {error}"), hint)
    }

    /// Tells it on stderr, a line each and the next step in the last; with `json` also on stdout.
    pub fn tell(&self, json: bool) {
        let messages: Vec<&str> = std::iter::once(&self.message)
            .chain(&self.more)
            .map(|message| message.trim_end_matches('.'))
            .collect();
        let mut stderr = std::io::stderr().lock();
        for (nth, message) in messages.iter().enumerate() {
            let is_last = nth + 1 == messages.len();
            let hint = if is_last { format!(". {}", self.hint) } else { String::new() };
            let line = format!("headman: {message}{hint}");
            // Nobody is left to tell where these fail.
            let _ = writeln!(stderr, "{}", text::plain(line.trim_end_matches('.')));
        }
        if json {
            let error = ObjectWriter::new()
                .string("code", &self.code.into())
                .string("message", &messages.join("; ").into())
                .string("hint", &self.hint.as_str().into())
                .optional("id", self.id.map(|id| id.to_string().into()).as_ref())
                .finish();
            let object = ObjectWriter::new().raw("error", &error).finish();
            let object = text::json_document(&String::from_utf8_lossy(&object));
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{object}").and_then(|()| out.flush());
        }
    }
}
