//! One stream of what is run: what was read of it, and where it goes.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use super::passage::Passage;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// Bytes taken after the run has ended, at most: more than a pipe holds.
const MAX_REST: usize = 4 << 20;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

impl Tail {
    fn of(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    fn push(&mut self, more: &[u8]) {
        let more = &more[more.len().saturating_sub(self.limit)..];
        self.bytes.extend_from_slice(more);
        // Not with every chunk.
        if self.bytes.len() > 2 * self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    /// The last bytes, at most as many as were to be kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.limit)..]
    }
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Bytes came, and whether a line ended among them.
    Came { line_ended: bool },
    /// What had come was passed on.
    Passed,
    /// There will be no more.
    Ended,
}

/// One stream.
pub(super) struct Lane {
    source: Option<Receiver>,
    passage: Option<Passage>,
    /// Came, and not passed on.
    waiting: Option<Vec<u8>>,
    pub(super) tail: Tail,
    /// Bytes that came.
    pub(super) bytes: u64,
}

impl Lane {
    pub(super) fn new(source: OwnedFd, passage: Option<Passage>, keep: usize) -> std::io::Result<Self> {
        let source = Receiver::from_owned_fd(source)?;
        Ok(Self { source: Some(source), passage, waiting: None, tail: Tail::of(keep), bytes: 0 })
    }

    /// Passes on what came, else waits for more. Nothing is lost where it is dropped before its end.
    pub(super) async fn step(&mut self) -> Step {
        if self.waiting.is_some() {
            let Some(passage) = &self.passage else {
                self.waiting = None;
                return Step::Passed;
            };
            match passage.room().await {
                Some(room) => room.send(self.waiting.take().unwrap_or_default()),
                None => {
                    // As if it were written to directly: the next write finds its reader gone.
                    self.waiting = None;
                    self.source = None;
                }
            }
            return Step::Passed;
        }
        loop {
            let Some(source) = &self.source else { return std::future::pending().await };
            let mut chunk = vec![0; CHUNK];
            let read = match source.readable().await {
                Ok(()) => source.try_read(&mut chunk),
                Err(error) => Err(error),
            };
            match read {
                Ok(length @ 1..) => {
                    chunk.truncate(length);
                    return self.came(chunk);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Ok(0) | Err(_) => {
                    self.source = None;
                    return Step::Ended;
                }
            }
        }
    }

    fn came(&mut self, chunk: Vec<u8>) -> Step {
        self.bytes += chunk.len() as u64;
        self.tail.push(&chunk);
        let line_ended = memchr::memchr(b'\n', &chunk).is_some();
        self.waiting = Some(chunk);
        Step::Came { line_ended }
    }

    /// Whether nothing can come any more.
    pub(super) fn is_over(&self) -> bool {
        self.source.is_none()
    }

    /// Takes what is still in the pipe after the run has ended, until `end` at most: another process
    /// may hold it open. It goes to the passage's rest.
    pub(super) async fn drain(&mut self, end: Instant) {
        let mut taken = 0;
        loop {
            if let Some(chunk) = self.waiting.take()
                && let Some(passage) = &mut self.passage
            {
                passage.keep(chunk);
            }
            if self.is_over() || taken > MAX_REST || Instant::now() >= end {
                return;
            }
            let before = self.bytes;
            if tokio::time::timeout_at(end, self.step()).await.is_err() {
                return;
            }
            taken += (self.bytes - before) as usize;
        }
    }

    /// Where it went.
    pub(super) fn into_passage(self) -> Option<Passage> {
        self.passage
    }
}

/// What is written to the run's standard input.
pub(super) struct Feed {
    to: Sender,
    bytes: Vec<u8>,
    written: usize,
}

impl Feed {
    pub(super) fn new(to: OwnedFd, bytes: Vec<u8>) -> std::io::Result<Self> {
        Ok(Self { to: Sender::from_owned_fd(to)?, bytes, written: 0 })
    }

    /// Writes some; whether there is nothing left to do.
    pub(super) async fn step(&mut self) -> bool {
        let left = &self.bytes[self.written..];
        if left.is_empty() {
            return true;
        }
        let written = match self.to.writable().await {
            Ok(()) => self.to.try_write(left),
            Err(error) => Err(error),
        };
        match written {
            Ok(length) => self.written += length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // It wants no more.
            Err(_) => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_holds_the_last_bytes_and_no_more() {
        let mut tail = Tail::of(4);
        for (more, last) in
            [("ab", "ab"), ("cd", "abcd"), ("e", "bcde"), ("0123456789", "6789"), ("", "6789")]
        {
            tail.push(more.as_bytes());
            assert_eq!(tail.bytes(), last.as_bytes());
            assert!(tail.bytes.len() <= 8);
        }
    }
}
