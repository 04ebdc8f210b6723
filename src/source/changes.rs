//! That something in a directory changed, as the system tells it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Changes of the files in one directory, which need not be there yet.
pub struct Changes {
    directory: PathBuf,
    changed: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Those in `directory`.
    pub fn of(directory: PathBuf) -> Self {
        let mut changes = Self { directory, changed: Arc::default(), watcher: None };
        changes.arm();
        changes
    }

    /// Watches, if that is possible now. Whether the directory is still the one that is watched is
    /// not asked: whoever looks does so in any case after a while.
    fn arm(&mut self) {
        let changed = Arc::clone(&self.changed);
        let told = move |event: notify::Result<notify::Event>| match event {
            // Our own reading would wake us for ever.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(_) | Err(_) => changed.notify_one(),
        };
        let Ok(mut watcher) = notify::recommended_watcher(told) else { return };
        if watcher.watch(&self.directory, RecursiveMode::NonRecursive).is_ok() {
            self.watcher = Some(watcher);
        }
    }

    /// Waits until something may have changed, at most for `at_most`: not every change is told.
    pub async fn next(&mut self, at_most: Duration) {
        if self.watcher.is_none() {
            self.arm();
        }
        // Whether it was told or the time is over, it is to be looked.
        let _ = tokio::time::timeout(at_most, self.changed.notified()).await;
    }
}
