//! The command that a demo runs: what is passed on to it, and how it ends.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

/// How long the command may take to end once it was asked to.
const ENDS: Duration = Duration::from_secs(5);

/// What asks a demo to end, and what is passed on to the command it runs.
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            child: signal(SignalKind::child())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hang_up.recv() => Signal::HUP,
            _ = self.interrupt.recv() => Signal::INT,
        }
    }

    /// Any of them, or one that tells of a child.
    async fn next_with_child(&mut self) -> Option<Signal> {
        tokio::select! {
            _ = self.terminate.recv() => Some(Signal::TERM),
            _ = self.hang_up.recv() => Some(Signal::HUP),
            // A key at the terminal, which the command got as well.
            _ = self.interrupt.recv() => None,
            _ = self.child.recv() => None,
        }
    }
}

/// Waits for the command, passing on what asks to end, and stopping when it stops.
pub(super) async fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) else {
        return child.wait().await;
    };
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            asked = signals.next_with_child() => match asked {
                Some(signal) => {
                    rustix::process::kill_process(pid, signal)?;
                    if let Ok(ended) = tokio::time::timeout(ENDS, child.wait()).await {
                        return ended;
                    }
                    child.start_kill()?;
                }
                None => stop_with(pid)?,
            },
        }
    }
}

/// If the command was stopped (Ctrl-Z), stops this process too, so that the shell has its terminal
/// back; and lets it go on when this one does.
fn stop_with(child: Pid) -> io::Result<()> {
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let stopped = match rustix::process::waitid(WaitId::Pid(child), look) {
        // It has ended, and waits to be waited for: it will never stop.
        Err(rustix::io::Errno::CHILD) => return Ok(()),
        looked => looked?,
    };
    if stopped.is_some_and(|status| status.stopped()) {
        rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
        rustix::process::kill_process(child, Signal::CONT)?;
    }
    Ok(())
}

pub(super) fn code_of(ended: ExitStatus) -> u8 {
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
