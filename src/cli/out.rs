//! Standard output: nothing leaves here that could drive a terminal, and a reader who has seen
//! enough ends us quietly.

use std::io::{ErrorKind, IsTerminal, StdoutLock, Write};

use super::failure::{Exit, Failure};
use crate::console::text;

/// Standard output, locked.
pub struct Out {
    stdout: StdoutLock<'static>,
    json: bool,
    /// Whether pieces of a line are told apart by colour.
    tints: bool,
    /// Whether the reader has gone away.
    closed: bool,
}

/// How a piece of a line stands out on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// What something is called.
    Name,
    /// What matters less.
    Quiet,
    /// What was searched for.
    Match,
}

impl Tint {
    /// The parameters of its escape sequence, after which the colours of any terminal do.
    fn parameters(self) -> &'static str {
        match self {
            Tint::Name => "36",
            Tint::Quiet => "2",
            Tint::Match => "1;31",
        }
    }
}

impl Out {
    /// Locks it; `json` is whether the verb answers in JSON.
    pub fn new(json: bool) -> Self {
        let stdout = std::io::stdout().lock();
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let tints = stdout.is_terminal() && !is_set("NO_COLOR") && !is_dumb;
        Self { stdout, json, tints, closed: false }
    }

    /// Whether the answer is to be JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a write found that the reader has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the reader has gone without a write: of a pipe the system tells.
    pub fn has_lost_its_reader(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut asked = [PollFd::new(&self.stdout, PollFlags::empty())];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let answered = poll(&mut asked, Some(&at_once)).is_ok_and(|answered| answered > 0);
        answered && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// Writes text for a reader, as its lines.
    ///
    /// # Errors
    /// [`Failure`] where writing fails otherwise than by a reader that has gone.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.write(text::plain_block(text).as_bytes())
    }

    /// Writes one line of pieces for a reader, tinted on a terminal only.
    ///
    /// # Errors
    /// As [`Out::text`].
    pub fn tinted(&mut self, pieces: &[(&str, Option<Tint>)]) -> Result<(), Failure> {
        let mut line = String::new();
        for (piece, tint) in pieces {
            let piece = text::plain(*piece);
            match tint.filter(|_| self.tints && !piece.is_empty()) {
                Some(tint) => line += &format!("\u{1b}[{}m{piece}\u{1b}[0m", tint.parameters()),
                None => line += &piece,
            }
        }
        self.write(line.as_bytes())
    }

    /// Writes one JSON text as it stands, but for what would drive a terminal.
    ///
    /// # Errors
    /// As [`Out::text`].
    pub fn json(&mut self, json: &str) -> Result<(), Failure> {
        self.write(text::json_document(json).as_bytes())
    }

    /// Writes what we made ourselves and no outside text is in: completions, the manual.
    ///
    /// # Errors
    /// As [`Out::text`].
    pub fn own(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes.strip_suffix(b"\n").unwrap_or(bytes))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        let written = (self.stdout.write_all(bytes))
            .and_then(|()| self.stdout.write_all(b"\n"))
            .and_then(|()| self.stdout.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(not_written(&error)),
        }
    }
}

/// Standard output can't be written.
pub fn not_written(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Unavailable,
        "output",
        format!("can't write the answer: {error}"),
        "Check where standard output goes",
    )
}

/// Tells something beside the answer, on stderr.
pub fn note(text: &str) {
    // Nobody is left to tell where this fails.
    let _ = writeln!(std::io::stderr().lock(), "headman: {}", text::plain(text));
}
