//! Keys, pastes, resizes and focus, read apart from the loop.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{Notify, mpsc};

use super::{TerminalError, failed, is_gone};

/// Events waiting for a loop that is busy; a paste in pieces takes some.
const WAITING: usize = 4096;

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
pub struct Events {
    events: mpsc::Receiver<Read>,
    stop: Arc<Notify>,
    ended: std::sync::mpsc::Receiver<()>,
}

impl Events {
    /// Starts reading. The screen has to be entered.
    pub fn start() -> Result<Self, TerminalError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(failed("be read"))?;
        let (sender, events) = mpsc::channel(WAITING);
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
        Ok(Self { events, stop, ended })
    }

    /// The next event; nothing when the terminal can't be read any more: the console ends then, as
    /// on [`Signal::TerminalGone`](super::Signal::TerminalGone).
    pub async fn next(&mut self) -> Option<Read> {
        self.events.recv().await
    }

    /// The next event that is there already: everything ready has to be taken before a frame.
    pub fn ready(&mut self) -> Option<Read> {
        self.events.try_recv().ok()
    }

    /// Stops reading, so that another program can. What is read but not taken is lost.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.events.close();
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

async fn forward(sender: mpsc::Sender<Read>) {
    // Making the stream panics when the terminal can't be opened for reading; asking doesn't.
    if crossterm::event::poll(Duration::ZERO).is_err() {
        return;
    }
    let mut stream = EventStream::new();
    while let Some(Ok(event)) = stream.next().await {
        let at = Instant::now();
        if sender.send(Read { event, at }).await.is_err() {
            return;
        }
    }
}
