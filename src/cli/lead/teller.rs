//! Telling the program that reads standard output what came, so that it is never lost on the way: a
//! message is accepted only once its line is written. A reader that is slow makes the message wait in
//! the inbox, not the lead.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rustix::io::Errno;

use crate::cli::failure::Failure;
use crate::cli::out;
use crate::console::text;
use crate::contract::Uuid;
use crate::contract::json::ObjectWriter;
use crate::disk::DiskError;
use crate::lead::Received;

/// How long one line may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of a line.
enum Written {
    Whole,
    /// The reader has gone away.
    Closed,
    Failed(Failure),
}

/// Why nothing more can be told.
#[derive(Debug)]
pub(super) enum Silent {
    /// The reader has gone away.
    Closed,
    /// Writing failed.
    Failed(Failure),
}

/// Standard output, on a thread of its own.
pub(super) struct Teller {
    lines: Sender<(String, Sender<Written>)>,
    /// A line that takes long, and whose it is.
    under_way: Option<(Uuid, Receiver<Written>)>,
    /// What was told, and is not known to be in the session.
    told: HashSet<Uuid>,
    silent: Option<Silent>,
}

impl Teller {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start() -> std::io::Result<Self> {
        let (lines, queue) = mpsc::channel::<(String, Sender<Written>)>();
        // Nothing of a line may wait in a buffer.
        let mut stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
            while let Ok((line, done)) = queue.recv() {
                // Whoever waited may have given up.
                let _ = done.send(put(&mut stdout, &line));
            }
        })?;
        Ok(Self { lines, under_way: None, told: HashSet::new(), silent: None })
    }

    /// Prints a message that came, once.
    ///
    /// # Errors
    /// It is not known to be told: it has to come again.
    pub(super) fn tell(&mut self, received: &Received) -> Result<(), DiskError> {
        let id = received.message.id;
        if let Some((earlier, written)) = self.under_way.take() {
            // It was waited for once; what else came must not wait as long again.
            self.await_line(earlier, written, Duration::ZERO)?;
        }
        if self.told.contains(&id) {
            return Ok(());
        }
        let (done, written) = mpsc::channel();
        if self.silent.is_some() || self.lines.send((line(received), done)).is_err() {
            return Err(not_written(Errno::PIPE));
        }
        self.await_line(id, written, PATIENCE)
    }

    fn await_line(
        &mut self,
        id: Uuid,
        written: Receiver<Written>,
        patience: Duration,
    ) -> Result<(), DiskError> {
        match written.recv_timeout(patience) {
            Ok(Written::Whole) => {
                self.told.insert(id);
                Ok(())
            }
            Ok(Written::Closed) => {
                self.silent = Some(Silent::Closed);
                Err(not_written(Errno::PIPE))
            }
            Ok(Written::Failed(failure)) => {
                self.silent = Some(Silent::Failed(failure));
                Err(not_written(Errno::IO))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.under_way = Some((id, written));
                Err(not_written(Errno::TIMEDOUT))
            }
            Err(RecvTimeoutError::Disconnected) => Err(not_written(Errno::PIPE)),
        }
    }

    /// These are in the session now, so they won't come again.
    pub(super) fn forget(&mut self, received: &[Received]) {
        for it in received {
            self.told.remove(&it.message.id);
        }
    }

    /// Why nothing more can be told, once it can't.
    pub(super) fn silent(&mut self) -> Option<Silent> {
        self.silent.take()
    }
}

/// Writes one line, whole or, into a file, not at all: what a full disk cut off would swallow the line
/// that is written next.
fn put(stdout: &mut File, line: &str) -> Written {
    let length = stdout.metadata().ok().filter(Metadata::is_file).map(|found| found.len());
    let mut bytes = text::json_document(line).into_bytes();
    bytes.push(b'\n');
    match stdout.write_all(&bytes) {
        Ok(()) => Written::Whole,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Written::Closed,
        Err(error) => {
            if let Some(Err(error)) = length.map(|length| stdout.set_len(length)) {
                tracing::warn!(%error, "cutting off what was written of a line");
            }
            Written::Failed(out::not_written(&error))
        }
    }
}

fn not_written(reason: Errno) -> DiskError {
    DiskError { operation: "write", path: PathBuf::from("standard output"), reason }
}

fn line(received: &Received) -> String {
    let Received { message, answers } = received;
    let mut object = ObjectWriter::new();
    object
        .string("id", &message.id.to_string().into())
        .string("kind", &message.kind.as_str().into())
        .string("from", message.from.as_untrusted())
        .optional("ask_id", message.ask.map(|ask| ask.to_string().into()).as_ref())
        .optional("question", answers.as_ref().map(|ask| &ask.question))
        .string("text", &message.text)
        .number("created_at", message.created_at.as_number());
    String::from_utf8_lossy(&object.finish()).into_owned()
}
