//! Ending where the loop can't.

use std::sync::Arc;
use std::time::Duration;

use super::terminal::Signal;
use crate::chief::staff::Office;
use crate::herdr::register::Releaser;

/// How long after a signal the process ends whatever holds it up: longer than ending takes.
const LAST_RESORT: Duration = Duration::from_secs(7);
/// How long releasing may take.
const SHUTDOWN: Duration = Duration::from_secs(3);

/// Ends the process if a signal asked for that and the loop does not: a terminal that takes no
/// output holds it up. Whoever waits for us must not wait for ever.
pub(super) async fn end(office: Arc<Office>, releaser: Option<Releaser>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return;
    };
    let signal = tokio::select! {
        _ = terminate.recv() => Signal::Terminate,
        _ = hangup.recv() => Signal::Hangup,
    };
    tokio::time::sleep(LAST_RESORT).await;
    let released = tokio::task::spawn_blocking(move || {
        if let Some(releaser) = releaser {
            // Title and tokens lapse by themselves if this fails.
            let _ = releaser.release_blocking();
        }
        drop(office.lease().take());
    });
    let _ = tokio::time::timeout(SHUTDOWN, released).await;
    std::process::exit(i32::from(signal.exit_code()));
}
