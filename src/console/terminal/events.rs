//! Keys, pastes, resizes and focus, read apart from the loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{Notify, mpsc};

use super::{TerminalError, failed, is_gone};

/// Reads waiting for a loop that is busy; a paste in pieces takes some.
const WAITING: usize = 64;
/// Events of one read at most.
const AT_ONCE: usize = 1024;

/// How long the end of reading is waited for; it takes less than one.
const END_WITHIN: Duration = Duration::from_millis(250);

/// One event and when it was read.
#[derive(Debug, Clone)]
pub struct Read {
    /// What came.
    pub event: Event,
    /// When.
    pub at: Instant,
}

/// Reads the terminal on a thread of its own: once the terminal hung up, reading never returns
/// again, and that must not be the loop's thread.
///
/// What is there at once is handed over at once and with one time. If it were not, a system under load
/// could stop this thread between the first key of a text and the second, and the first would look like
/// one pressed by hand.
pub struct Events {
    reads: mpsc::Receiver<Vec<Read>>,
    /// Of the last read, what was not asked for yet.
    read: VecDeque<Read>,
    stop: Arc<Notify>,
    ended: std::sync::mpsc::Receiver<()>,
}

impl Events {
    /// Starts reading. The screen has to be entered.
    pub fn start() -> Result<Self, TerminalError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(failed("be read"))?;
        let (sender, reads) = mpsc::channel(WAITING);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let (ending, ended) = std::sync::mpsc::channel();
        let read = move || {
            // Dropped, and so noticed, however this ends.
            let _ending = ending;
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = forward(sender) => {}
                }
            });
        };
        std::thread::Builder::new().name("terminal".to_owned()).spawn(read).map_err(failed("be read"))?;
        Ok(Self { reads, read: VecDeque::new(), stop, ended })
    }

    /// The next event; nothing when the terminal can't be read any more: the console ends then, as
    /// on [`Signal::TerminalGone`](super::Signal::TerminalGone).
    pub async fn next(&mut self) -> Option<Read> {
        if self.read.is_empty() {
            self.read.extend(self.reads.recv().await?);
        }
        self.read.pop_front()
    }

    /// The next event that is there already: everything ready has to be taken before a frame.
    pub fn ready(&mut self) -> Option<Read> {
        if self.read.is_empty() {
            self.read.extend(self.reads.try_recv().ok()?);
        }
        self.read.pop_front()
    }

    /// Stops reading, so that another program can. What is read but not taken is lost. Afterwards
    /// there are no events until others are started.
    pub fn stop(&mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.reads.close();
        self.stop.notify_one();
        if !is_gone() {
            // It may be stuck in a terminal whose hang-up nobody has noticed yet.
            let _: Result<(), RecvTimeoutError> = self.ended.recv_timeout(END_WITHIN);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.end();
    }
}

async fn forward(sender: mpsc::Sender<Vec<Read>>) {
    // Making the stream panics when the terminal can't be opened for reading; asking doesn't.
    if crossterm::event::poll(Duration::ZERO).is_err() {
        return;
    }
    let mut stream = EventStream::new();
    loop {
        let mut read = Vec::new();
        let goes_on = std::future::poll_fn(|context| take_ready(&mut stream, &mut read, context)).await;
        if sender.send(read).await.is_err() || !goes_on {
            return;
        }
    }
}

/// Takes everything that is there, as soon as there is something; whether the terminal still is.
fn take_ready(stream: &mut EventStream, read: &mut Vec<Read>, context: &mut Context<'_>) -> Poll<bool> {
    let mut at = None;
    while read.len() < AT_ONCE {
        match stream.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(event))) => {
                let at = *at.get_or_insert_with(Instant::now);
                read.push(Read { event, at });
            }
            Poll::Ready(_) => return Poll::Ready(false),
            Poll::Pending if read.is_empty() => return Poll::Pending,
            Poll::Pending => break,
        }
    }
    Poll::Ready(true)
}
