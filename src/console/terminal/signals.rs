//! What ends or interrupts the console from outside.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal as RawSignal;
use tokio::io::Interest;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use super::{GONE, TerminalError, failed};

/// How long the loop may take to end after the terminal hung up: drafts are saved and the lease
/// released. The thread that reads the terminal burns a core meanwhile.
const GRACE: Duration = Duration::from_secs(2);

static PANICKED: Notify = Notify::const_new();

/// Tells the loop that something panicked and the screen was given back for it.
pub(super) fn panicked() {
    PANICKED.notify_one();
}

/// Something from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT or SIGQUIT: end. (Ctrl-c is a key, not this.)
    Interrupt,
    /// SIGTERM: end.
    Terminate,
    /// SIGHUP: end.
    Hangup,
    /// The terminal hung up: end within two seconds, print nothing.
    TerminalGone,
    /// A task or thread panicked: end; the message is on the screen.
    Panicked,
    /// SIGCONT: the process had been stopped, and the terminal may be in any mode.
    Continued,
}

impl Signal {
    /// Whether the console ends on it.
    pub fn ends(self) -> bool {
        self != Signal::Continued
    }

    /// The exit code after it: 128 and the signal's number, as shells have it.
    pub fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
            Signal::Hangup | Signal::TerminalGone => 129,
            Signal::Panicked => 101,
            Signal::Continued => 0,
        }
    }
}

/// Yields signals as they come. From its making on they don't end the process any more.
pub struct Signals {
    interrupt: Stream,
    quit: Stream,
    terminate: Stream,
    hangup: Stream,
    continued: Stream,
    gone: mpsc::Receiver<()>,
}

impl Signals {
    /// Starts to listen, and to watch the terminal for a hang-up. Needs a tokio runtime.
    pub fn listen() -> Result<Self, TerminalError> {
        let on = |kind| signal(kind).map_err(failed("be watched"));
        let (sender, gone) = mpsc::channel(1);
        let watch = move || watch_for_hangup(&sender);
        std::thread::Builder::new().name("hang-up".to_owned()).spawn(watch).map_err(failed("be watched"))?;
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            quit: on(SignalKind::quit())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
            continued: on(SignalKind::from_raw(RawSignal::CONT.as_raw()))?,
            gone,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        // A watch that could not be set up ends without a word; the signals go on.
        let gone = async {
            match self.gone.recv().await {
                Some(()) => {}
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The end comes first: a hang-up sends SIGHUP and SIGCONT.
            biased;
            () = gone => Signal::TerminalGone,
            () = PANICKED.notified() => Signal::Panicked,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.hangup.recv() => Signal::Hangup,
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.quit.recv() => Signal::Interrupt,
            Some(()) = self.continued.recv() => Signal::Continued,
            else => std::future::pending().await,
        }
    }

    /// SIGINT or SIGQUIT.
    pub(super) async fn interrupted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }

    pub(super) async fn continued(&mut self) {
        let _ = self.continued.recv().await;
    }

    /// Drops a continuation that came earlier.
    pub(super) fn forget_continued(&mut self) {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while self.continued.poll_recv(&mut context).is_ready() {}
    }
}

/// Waits until the terminal hangs up, tells the loop, and ends the process should the loop not.
fn watch_for_hangup(sender: &mpsc::Sender<()>) {
    if wait_for_hangup().is_err() {
        // Not every system can wait for that; SIGHUP remains.
        return;
    }
    GONE.store(true, Ordering::SeqCst);
    let _ = sender.try_send(());
    std::thread::sleep(GRACE);
    std::process::exit(i32::from(Signal::TerminalGone.exit_code()));
}

fn wait_for_hangup() -> io::Result<()> {
    let tty: OwnedFd = match File::open("/dev/tty") {
        Ok(tty) => tty.into(),
        Err(_) => io::stdin().as_fd().try_clone_to_owned()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        // Not a pipe, but all that is asked of it is when it can be read, and it is never read: the
        // input is another's.
        let tty = Receiver::from_owned_fd_unchecked(tty)?;
        loop {
            if tty.ready(Interest::READABLE).await?.is_read_closed() {
                return Ok(());
            }
            // There is input; wait for the next change.
            let _ = tty.try_io(|| Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_the_console_has_a_code_that_says_so() {
        for signal in
            [Signal::Interrupt, Signal::Terminate, Signal::Hangup, Signal::TerminalGone, Signal::Panicked]
        {
            assert!(signal.ends() && signal.exit_code() > 100, "{signal:?}");
        }
        assert!(!Signal::Continued.ends());
    }
}
