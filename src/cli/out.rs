//! Standard output: nothing leaves here that could drive a terminal, and a reader who has seen
//! enough ends us quietly.

use std::io::{ErrorKind, StdoutLock, Write};

use super::failure::{Exit, Failure};
use crate::console::text;

/// Standard output, locked.
pub struct Out {
    stdout: StdoutLock<'static>,
    json: bool,
    /// Whether the reader has gone away.
    closed: bool,
}

impl Out {
    /// Locks it; `json` is whether the verb answers in JSON.
    pub fn new(json: bool) -> Self {
        Self { stdout: std::io::stdout().lock(), json, closed: false }
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
