//! The signals that end a verb in order.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// All of them: interrupt, terminate, hang-up.
#[derive(Default)]
pub(super) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    /// Holds them off from here on.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn new() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        kinds.into_iter().map(|kind| Ok((kind, signal(kind)?))).collect::<std::io::Result<_>>().map(Self)
    }

    /// Waits for one of them.
    pub(super) async fn any(&mut self) -> SignalKind {
        std::future::poll_fn(|context| {
            let came = self
                .0
                .iter_mut()
                .find_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
