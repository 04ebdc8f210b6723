//! Which process Herdr sees in the foreground of the operator's panes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::server::Server;
use crate::disk::Runtime;
use crate::disk::records::{self, Holding};

/// How often it is looked who is Chief on the console's pane.
const LOOK: Duration = Duration::from_millis(150);
/// How often it is looked who is a lead on the free pane: that takes reading all of them.
const LOOK_FOR_LEAD: Duration = Duration::from_millis(500);

/// Has the process that is Chief on the console's pane in its foreground, as Herdr would see it;
/// else the one the demo runs there.
pub(super) async fn follow_chief(
    server: Arc<Server>,
    runtime: Runtime,
    pane: String,
    mut console: watch::Receiver<Option<u32>>,
) {
    let mut attached = None;
    loop {
        let chief = match records::read_holding(&runtime) {
            Ok(Holding::Held(descriptor)) if descriptor.pane == pane.as_str() => {
                descriptor.claim.pid.as_raw().and_then(|pid| u32::try_from(pid).ok())
            }
            _ => None,
        };
        let foreground = chief.or(*console.borrow_and_update());
        if foreground != attached {
            match foreground {
                Some(pid) => server.attach(&pane, pid, true),
                None => server.detach(&pane),
            }
            attached = foreground;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            changed = console.changed() => if changed.is_err() { return },
        }
    }
}

/// Has the process that holds a lead open on the free pane in its foreground, as Herdr would see it.
pub(super) async fn follow_lead(server: Arc<Server>, runtime: Runtime, pane: String) {
    let mut attached = None;
    loop {
        // A broken record is told by whoever looks for it.
        let peers = records::scan_peers(&runtime).unwrap_or_default();
        let mut here =
            peers.into_iter().filter_map(|(_, peer)| peer.ok()).filter(|it| *it.pane.as_untrusted() == *pane);
        let foreground = here.next().and_then(|it| u32::try_from(it.claim.pid.as_raw()?).ok());
        if foreground != attached {
            match foreground {
                Some(pid) => server.attach(&pane, pid, true),
                None => server.detach(&pane),
            }
            attached = foreground;
        }
        tokio::time::sleep(LOOK_FOR_LEAD).await;
    }
}
