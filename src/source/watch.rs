//! The one file watcher of the system, and which of our directories changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::disk::Runtime;
use crate::disk::layout::InboxDir;

/// The most directories that are watched at once.
const MAX_WATCHED: usize = 512;

type Told = notify::Result<notify::Event>;
type Listener = Box<dyn Fn(&Told) + Send>;

/// How changes of files are noticed.
#[derive(Clone)]
pub enum Noticing {
    /// The system tells.
    Told(Arc<Notifier>),
    /// The system can't; safe to print why. Whoever reads looks again and again by itself.
    Untold(String),
    /// The same, as it is configured.
    SwitchedOff,
}

impl Noticing {
    /// As the system tells, where it can; `notified` says whether it is to be asked at all.
    pub fn new(notified: bool) -> Self {
        match notified.then(Notifier::new) {
            Some(Ok(notifier)) => Self::Told(Arc::new(notifier)),
            Some(Err(why)) => Self::Untold(why),
            None => Self::SwitchedOff,
        }
    }
}

/// The file watcher. What it tells, it tells everyone who listens.
pub struct Notifier {
    watched: Mutex<Watched>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

struct Watched {
    watcher: RecommendedWatcher,
    /// How many watch each directory.
    directories: BTreeMap<PathBuf, usize>,
}

impl Notifier {
    /// One that watches nothing yet.
    ///
    /// # Errors
    /// Why the system can't tell.
    pub fn new() -> Result<Self, String> {
        let listeners: Arc<Mutex<Vec<Listener>>> = Arc::default();
        let told = Arc::clone(&listeners);
        let watcher = notify::recommended_watcher(move |event: Told| {
            // Our own opens and reads would wake us for ever.
            if !event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                let listeners = told.lock().unwrap_or_else(PoisonError::into_inner);
                listeners.iter().for_each(|listener| listener(&event));
            }
        });
        let watcher = watcher.map_err(|error| error.to_string())?;
        let watched = Mutex::new(Watched { watcher, directories: BTreeMap::new() });
        Ok(Self { watched, listeners })
    }

    /// Has `listener` told of everything from now on. It runs on the watcher's own thread.
    pub fn listen(&self, listener: impl Fn(&Told) + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Watches the directory at `path`, not what is below those in it, until it is unwatched as often.
    ///
    /// # Errors
    /// Those of the system; also that very many are watched.
    pub fn watch(&self, path: &Path) -> notify::Result<()> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.directories.contains_key(path) && watched.directories.len() >= MAX_WATCHED {
            return Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch));
        }
        // Also where it is watched: it may be another directory by now.
        watched.watcher.watch(path, RecursiveMode::NonRecursive)?;
        *watched.directories.entry(path.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Watches it no more, unless others do.
    pub fn unwatch(&self, path: &Path) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = watched.directories.get_mut(path) else { return };
        *count -= 1;
        if *count == 0 {
            watched.directories.remove(path);
            // The system has dropped the watch of one that is gone itself.
            let _ = watched.watcher.unwatch(path);
        }
    }
}

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
    notifier: Option<Arc<Notifier>>,
    /// The directory watched for each target: itself, or its nearest ancestor that exists.
    armed: Vec<PathBuf>,
}

impl Watch {
    /// Watches `runtime` and `inbox`. Where the system can't, the error says why; whoever reads
    /// must then look again and again by itself.
    pub fn new(notifier: &Arc<Notifier>, runtime: &Runtime, inbox: &InboxDir) -> (Self, Result<(), String>) {
        let mut watch = Self::polled(runtime, inbox);
        let shared = Arc::clone(&watch.shared);
        notifier.listen(move |event| on_event(&shared, event));
        watch.notifier = Some(Arc::clone(notifier));
        let told = watch.rearm(&BTreeSet::new());
        if told.is_err() {
            watch.notifier = None;
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
        Self { shared, notifier: None, armed: Vec::new() }
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
        let Some(notifier) = &self.notifier else { return Ok(()) };
        let (stale, still) = self
            .armed
            .drain(..)
            .partition(|armed: &PathBuf| moved.iter().any(|path| armed.starts_with(path)));
        self.armed = still;
        for path in &stale {
            notifier.unwatch(path);
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
                notifier.unwatch(path);
            }
            for path in &wanted {
                if self.armed.contains(path) {
                    continue;
                }
                if let Err(error) = notifier.watch(path) {
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

fn on_event(shared: &Shared, event: &Told) {
    match event {
        Ok(event) if event.need_rescan() => shared.mark(|dirty| *dirty = Dirty::overflowed()),
        // The pair follows its two halves.
        Ok(event) if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {}
        Ok(event) => shared.mark(|dirty| {
            for path in &event.paths {
                shared.targets.mark(path, dirty);
            }
        }),
        // What failed is nobody's change; what it would have told is lost.
        Err(_) => shared.mark(|dirty| *dirty = Dirty::overflowed()),
    }
}
