//! Which of our directories changed, told by one file watcher of the system.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::disk::Runtime;
use crate::disk::layout::InboxDir;

/// What may have changed since the last look; bounded by the number of records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dirty {
    /// These lead records, by file name.
    pub leads: BTreeSet<OsString>,
    /// Any lead record.
    pub all_leads: bool,
    /// Our inbox.
    pub inbox: bool,
    /// The Chief lease.
    pub lease: bool,
    /// All of it, since there was more than the system tells.
    pub overflowed: bool,
    /// At or below these paths directories appeared or went: watches must be set anew. Not even an
    /// inode tells a directory from one that was made right after it went.
    moved: BTreeSet<PathBuf>,
}

impl Dirty {
    /// Everything.
    pub fn all() -> Self {
        let moved = BTreeSet::from([PathBuf::from("/")]);
        Self { leads: BTreeSet::new(), all_leads: true, inbox: true, lease: true, overflowed: false, moved }
    }

    /// Everything, and nobody knows what.
    fn overflowed() -> Self {
        Self { overflowed: true, ..Self::all() }
    }

    fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

struct Shared {
    dirty: Mutex<Dirty>,
    changed: Notify,
    targets: Targets,
}

impl Shared {
    fn mark(&self, mark: impl FnOnce(&mut Dirty)) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        mark(&mut dirty);
        if !dirty.is_clean() {
            self.changed.notify_one();
        }
    }
}

#[derive(Clone)]
struct Targets {
    root: PathBuf,
    leads: PathBuf,
    inbox: PathBuf,
}

impl Targets {
    fn all(&self) -> [&Path; 3] {
        [&self.root, &self.leads, &self.inbox]
    }

    /// Marks what an event on `path` may have changed.
    fn mark(&self, path: &Path, dirty: &mut Dirty) {
        if self.all().iter().any(|target| target.starts_with(path)) {
            // One of them, or a directory above: made, moved or removed.
            dirty.moved.insert(path.to_owned());
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if parent == self.leads {
            // Temporary files come and go before every rename.
            if !name.as_encoded_bytes().starts_with(b".") {
                dirty.leads.insert(name.to_owned());
            }
        } else if parent == self.inbox {
            dirty.inbox |= InboxDir::message_id(name).is_some();
        } else if parent == self.root {
            dirty.lease |= name == "chief.json" || name == "chief.lock";
        }
    }
}

/// Watches the lead records, our inbox and the lease of one runtime.
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Option<RecommendedWatcher>,
    /// The directory watched for each target: itself, or its nearest ancestor that exists.
    armed: Vec<PathBuf>,
}

impl Watch {
    /// Watches `runtime` and `inbox`. Where the system can't, the error says why; whoever reads
    /// must then look again and again by itself.
    pub fn new(runtime: &Runtime, inbox: &InboxDir) -> (Self, Result<(), String>) {
        let mut watch = Self::polled(runtime, inbox);
        let shared = Arc::clone(&watch.shared);
        let told = match notify::recommended_watcher(move |event| on_event(&shared, event)) {
            Ok(watcher) => {
                watch.watcher = Some(watcher);
                watch.rearm(&BTreeSet::new())
            }
            Err(error) => Err(error.to_string()),
        };
        if told.is_err() {
            watch.watcher = None;
        }
        (watch, told)
    }

    /// Watches nothing: whoever reads must look again and again by itself.
    pub fn polled(runtime: &Runtime, inbox: &InboxDir) -> Self {
        let targets = Targets {
            root: runtime.root().to_owned(),
            leads: runtime.leads(),
            inbox: inbox.path().to_owned(),
        };
        let shared = Arc::new(Shared { dirty: Mutex::new(Dirty::all()), changed: Notify::new(), targets });
        shared.changed.notify_one();
        Self { shared, watcher: None, armed: Vec::new() }
    }

    /// Waits for changes and takes them. Directories that appeared are watched before this returns,
    /// and what they hold counts as changed.
    pub async fn changed(&mut self) -> (Dirty, Result<(), String>) {
        loop {
            let waiting = {
                let mut dirty = self.shared.dirty.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *dirty)
            };
            if waiting.is_clean() {
                self.shared.changed.notified().await;
                continue;
            }
            let told = if waiting.moved.is_empty() { Ok(()) } else { self.rearm(&waiting.moved) };
            let mut dirty = self.shared.dirty.lock().unwrap_or_else(PoisonError::into_inner);
            let mut found = std::mem::take(&mut *dirty);
            found.leads.extend(waiting.leads);
            found.all_leads |= waiting.all_leads;
            found.inbox |= waiting.inbox;
            found.lease |= waiting.lease;
            found.overflowed |= waiting.overflowed;
            if !found.moved.is_empty() {
                // More of them meanwhile: next time.
                dirty.moved = std::mem::take(&mut found.moved);
                self.shared.changed.notify_one();
            }
            return (found, told);
        }
    }

    /// Watches each target, or the nearest directory above it that exists; anew where something
    /// moved.
    fn rearm(&mut self, moved: &BTreeSet<PathBuf>) -> Result<(), String> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let (stale, still) = self
            .armed
            .drain(..)
            .partition(|armed: &PathBuf| moved.iter().any(|path| armed.starts_with(path)));
        self.armed = still;
        for path in &stale {
            // The system has dropped the watch of one that is gone itself.
            let _ = watcher.unwatch(path);
        }
        let targets = self.shared.targets.clone();
        // A directory may appear between the look and the watch: look again until nothing moves.
        for _ in 0..16 {
            let mut wanted: Vec<PathBuf> = Vec::new();
            for target in targets.all() {
                if let Some(found) = nearest(target)
                    && !wanted.contains(&found)
                {
                    wanted.push(found);
                }
            }
            if wanted == self.armed {
                return Ok(());
            }
            for path in self.armed.iter().filter(|armed| !wanted.contains(armed)) {
                let _ = watcher.unwatch(path);
            }
            for path in &wanted {
                if self.armed.contains(path) {
                    continue;
                }
                if let Err(error) = watcher.watch(path, RecursiveMode::NonRecursive) {
                    if matches!(error.kind, notify::ErrorKind::PathNotFound) {
                        continue;
                    }
                    return Err(error.to_string());
                }
            }
            self.armed = wanted;
            self.shared.mark(|dirty| {
                dirty.all_leads = true;
                dirty.inbox = true;
                dirty.lease = true;
            });
        }
        Ok(())
    }
}

fn nearest(target: &Path) -> Option<PathBuf> {
    let is_directory = |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    target.ancestors().find(is_directory).map(Path::to_owned)
}

fn on_event(shared: &Shared, event: notify::Result<notify::Event>) {
    match event {
        Ok(event) if event.need_rescan() => shared.mark(|dirty| *dirty = Dirty::overflowed()),
        Ok(event) => {
            match event.kind {
                // Our own opens and reads would wake us for ever.
                EventKind::Access(_) => return,
                // The pair follows its two halves.
                EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
                _ => {}
            }
            shared.mark(|dirty| {
                for path in &event.paths {
                    shared.targets.mark(path, dirty);
                }
            });
        }
        // What failed is nobody's change; what it would have told is lost.
        Err(_) => shared.mark(|dirty| *dirty = Dirty::overflowed()),
    }
}
