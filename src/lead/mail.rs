//! Whether something came for a lead, told by the system's file watcher. It only hastens: a lead
//! looks into its inboxes every half second anyway.

use std::sync::Arc;
use std::time::Duration;

use notify::event::EventKind;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::disk::layout::InboxDir;

/// How often a lead looks into its inboxes whatever is told.
pub const LOOK: Duration = Duration::from_millis(500);

/// A watch on inboxes, until dropped.
pub struct Mail {
    changed: Arc<Notify>,
    /// None where the system tells no changes.
    _watcher: Option<RecommendedWatcher>,
}

impl Mail {
    /// Watches these inboxes, which exist. Where the system can't, nothing is ever told.
    pub fn watch(inboxes: &[InboxDir]) -> Self {
        let changed = Arc::new(Notify::new());
        let tell = Arc::clone(&changed);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own opens and reads would wake us for ever; of what is written and removed only
            // messages count.
            let came = event.is_ok_and(|event| {
                event.need_rescan()
                    || matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_))
                        && event.paths.iter().any(|path| {
                            path.file_name().is_some_and(|name| InboxDir::message_id(name).is_some())
                        })
            });
            if came {
                tell.notify_one();
            }
        });
        let armed = watcher.and_then(|mut watcher| {
            for inbox in inboxes {
                watcher.watch(inbox.path(), RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        if let Err(error) = &armed {
            tracing::info!(%error, "inboxes are polled: the system tells no changes of them");
        }
        Self { changed, _watcher: armed.ok() }
    }

    /// Waits until something came.
    pub async fn came(&self) {
        self.changed.notified().await;
    }
}
