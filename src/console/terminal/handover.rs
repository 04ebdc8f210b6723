//! The terminal in the hands of another program for a while: an editor, a pager.
//!
//! The program is in our process group: Ctrl-z in it stops the console, too, and the shell continues
//! both. What the terminal sends to the group because of a key is the program's.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal as RawSignal, kill_process};
use tokio::process::Child;

use super::{Events, Screen, Signal, Signals, TerminalError};

/// How long the program may take to end once we have to.
const END_WITHIN: Duration = Duration::from_secs(1);

/// How long after the program our own SIGINT may come, where one key ended it.
const SAME_KEY: Duration = Duration::from_millis(100);

/// How the program had the terminal.
#[derive(Debug)]
pub enum HandedOver {
    /// It could not be started.
    NotStarted(io::Error),
    /// It ended.
    Ended(ExitStatus),
    /// We have to end, and it has ended or was killed. The terminal is not taken back.
    Signal(Signal),
}

impl Screen {
    /// Gives the terminal to the program that `start` starts until that ends, then takes it back and
    /// reads it again. What was typed ahead is the program's; everything has to be drawn anew.
    ///
    /// # Errors
    /// [`TerminalError`] where the terminal can't be taken back.
    pub async fn hand_over(
        &mut self,
        events: &mut Events,
        signals: &mut Signals,
        start: impl FnOnce() -> io::Result<Child>,
    ) -> Result<HandedOver, TerminalError> {
        events.stop();
        self.give_back();
        let handed_over = match start() {
            Err(error) => HandedOver::NotStarted(error),
            Ok(child) => wait(child, signals).await,
        };
        if !matches!(handed_over, HandedOver::Signal(_)) {
            self.take_back()?;
            *events = Events::start()?;
        }
        Ok(handed_over)
    }
}

async fn wait(mut child: Child, signals: &mut Signals) -> HandedOver {
    loop {
        let signal = tokio::select! {
            biased;
            signal = signals.next() => signal,
            ended = child.wait() => return match ended {
                Ok(status) => {
                    if status.signal().is_some() {
                        let _ = tokio::time::timeout(SAME_KEY, signals.interrupted()).await;
                    }
                    HandedOver::Ended(status)
                }
                Err(error) => HandedOver::NotStarted(error),
            },
        };
        // A key of the program's, or the shell continued us both.
        if !matches!(signal, Signal::Interrupt | Signal::Continued) {
            end(child).await;
            return HandedOver::Signal(signal);
        }
    }
}

/// Has the program end, so that it does not share the terminal with the shell.
async fn end(mut child: Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // As when the terminal goes: editors keep what they can then. It may have ended already.
        let _ = kill_process(pid, RawSignal::HUP);
        // Should it be stopped, it hears nothing of that.
        let _ = kill_process(pid, RawSignal::CONT);
    }
    if tokio::time::timeout(END_WITHIN, child.wait()).await.is_err() {
        let _ = child.start_kill();
        let _ = tokio::time::timeout(END_WITHIN, child.wait()).await;
    }
}
