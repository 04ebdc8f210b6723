//! The peers as facts, looked at only while somebody looks at them on the screen.
//!
//! They are polled, not watched: whether a process still lives, which is what a presence stands
//! and falls with, no file system tells.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::disk::peers::{self, Peer};
use crate::disk::{DiskThread, Runtime, Unreadable};
use crate::fact::{Fact, FactSender, PeersRead};
use crate::herd::order;

/// Between two looks.
const POLL: Duration = Duration::from_secs(2);

/// Emits the peers of `runtime` while `open` is true and they changed, until the other end of `open`
/// is dropped.
pub async fn run(runtime: Runtime, disk: DiskThread, facts: FactSender, mut open: watch::Receiver<bool>) {
    let mut told: Option<Arc<PeersRead>> = None;
    loop {
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        let runtime = runtime.clone();
        let looked = disk.run(move || look(&runtime).map_err(|error| error.to_string())).await;
        let Ok(read) = looked else { return };
        if told.as_deref() != Some(&read) {
            let read = Arc::new(read);
            told = Some(Arc::clone(&read));
            facts.put(Fact::Peers(read));
        }
        // Closed meanwhile, it shall not wait for the next look.
        if let Ok(Err(_)) = tokio::time::timeout(POLL, open.changed()).await {
            return;
        }
    }
}

/// The peers by name, then session; those nobody knows the name of last.
///
/// # Errors
/// As [`peers::look`].
pub fn look(runtime: &Runtime) -> Result<Vec<Peer>, Unreadable> {
    let mut peers = peers::look(runtime)?;
    let name = |peer: &Peer| peer.record.as_ref().map(order::peer_display_name);
    peers.sort_by(|a, b| {
        let by_name = match (name(a), name(b)) {
            (Some(a), Some(b)) => order::collate(&a, &b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        by_name.then_with(|| a.session.cmp(&b.session)).then_with(|| a.hash.cmp(&b.hash))
    });
    Ok(peers)
}
