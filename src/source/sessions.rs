//! What the leads' sessions tell, as facts: their files are followed as they grow.
//!
//! Read on a thread of its own, in slices, so that a long file holds up neither what changes now nor
//! anybody else's work. Of a large file only the end is read, and more of it as long as that does not
//! reach back to where the turn began. While nothing changes, nothing is done.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, watch};

use super::watch::{Noticing, Notifier};
use crate::chief::staff::path_of;
use crate::contract::{SessionId, Untrusted};
use crate::disk::DiskThread;
use crate::fact::{Fact, FactSender, SessionRead};
use crate::herd::{Lead, State};
use crate::model::Model;
use crate::pi::activity::{Activity, Doings};
use crate::pi::session::HeaderError;
use crate::pi::tail::{Progress, QUIET, Tail, Unsettled};
use crate::signals::sight::Sight;
use crate::signals::watch::Watch;

/// How often a file is looked at that the system does not tell of, and one that can't be read.
const POLL: Duration = Duration::from_secs(3);
/// How often one of a lead that works is looked at all the same: some file systems tell no changes and
/// give no error either.
const SAFETY: Duration = Duration::from_secs(30);
/// Between two looks at one file: what is appended comes in bursts.
const SPACING: Duration = Duration::from_millis(100);
/// Bytes read of one file before it is another's turn.
const SLICE: u64 = 1 << 20;
/// Of a large file so many bytes at its end are read first, and so many at most.
const FIRST_WINDOW: u64 = 1 << 20;
const LAST_WINDOW: u64 = 16 << 20;
/// Each time by so much more.
const WIDER: u64 = 4;
/// Files touched longer ago are not looked for on the disk: nobody compares them.
pub const RECENT: Duration = Duration::from_secs(60 * 60);

/// A lead whose session is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The lead.
    pub session: SessionId,
    /// Its session file, where that is known.
    pub file: Option<PathBuf>,
    /// Whether it works.
    pub works: bool,
    /// Whether something is known of its session; else it is told again.
    pub is_known: bool,
}

impl Followed {
    /// Those that `model` lists.
    pub fn of(model: &Model) -> Vec<Self> {
        let of = |lead: &Lead| Self {
            session: lead.session.clone(),
            file: lead.session_file.as_ref().map(path_of),
            works: lead.state == State::Working,
            is_known: model.sessions().read(&lead.session).is_some(),
        };
        model.roster().leads.iter().map(of).collect()
    }
}

/// Emits what the sessions of `wanted` tell, whenever that changed, until the other end of `wanted` is
/// dropped. They are read on `reader`.
pub async fn run(
    noticing: Noticing,
    reader: DiskThread,
    facts: FactSender,
    mut wanted: watch::Receiver<Vec<Followed>>,
) {
    let changes = Arc::new(Changes::default());
    let notifier = match noticing {
        Noticing::Told(notifier) => {
            let told = Arc::clone(&changes);
            notifier.listen(move |event| told.mark(event));
            Some(notifier)
        }
        Noticing::Untold(_) | Noticing::SwitchedOff => None,
    };
    let mut following = Following { notifier, files: BTreeMap::new(), changed_last: false };
    loop {
        let due = following.next_due();
        let asleep = async {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let wanted = wanted.borrow_and_update().clone();
                changes.follow(&wanted);
                if following.follow(wanted, &reader, &facts).await.is_err() {
                    return;
                }
            }
            () = changes.told.notified() => following.mark(&changes.take()),
            () = asleep => {
                if following.look(&reader, &facts).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Which of the files may have changed, as the system tells.
#[derive(Default)]
struct Changes {
    state: Mutex<(HashSet<PathBuf>, Dirty)>,
    told: Notify,
}

#[derive(Default)]
struct Dirty {
    files: HashSet<PathBuf>,
    /// Directories that are others now.
    moved: HashSet<PathBuf>,
    all: bool,
}

impl Changes {
    /// Only these files matter from now on.
    fn follow(&self, wanted: &[Followed]) {
        let files = wanted.iter().filter_map(|it| it.file.clone()).collect();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = files;
    }

    fn mark(&self, event: &notify::Result<notify::Event>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (files, dirty) = &mut *state;
        let Some(event) = event.as_ref().ok().filter(|event| !event.need_rescan()) else {
            dirty.all = true;
            return self.told.notify_one();
        };
        for path in &event.paths {
            if files.contains(path) {
                dirty.files.insert(path.clone());
            } else if files.iter().any(|file| file.parent() == Some(path)) {
                dirty.moved.insert(path.clone());
            } else {
                continue;
            }
            self.told.notify_one();
        }
    }

    fn take(&self) -> Dirty {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// What is told of a session; of what looks did not change, nothing.
#[derive(Clone, Default)]
struct Told {
    read: Option<Arc<SessionRead>>,
    sight: Option<Arc<Sight>>,
}

impl Told {
    fn put(&self, session: &SessionId, facts: &FactSender) {
        // In this order: what it shows is nobody's once it can't be read.
        if let Some(read) = &self.read {
            facts.put(Fact::Activity(session.clone(), Arc::clone(read)));
        }
        if let Some(sight) = &self.sight {
            facts.put(Fact::Signals(session.clone(), Arc::clone(sight)));
        }
    }

    /// Takes over what is told later.
    fn take(&mut self, later: Self) {
        if matches!(later.read.as_deref(), Some(SessionRead::Unread(_))) {
            self.sight = None;
        }
        self.read = later.read.or_else(|| self.read.take());
        self.sight = later.sight.or_else(|| self.sight.take());
    }

    /// What `later` tells that this does not.
    fn changed(&self, later: Self) -> Self {
        let differs = |later: &Arc<SessionRead>| self.read.as_ref() != Some(later);
        let shows = |later: &Arc<Sight>| self.sight.as_ref() != Some(later);
        Self { read: later.read.filter(differs), sight: later.sight.filter(shows) }
    }
}

/// The thread that reads is gone.
struct Gone;

struct Following {
    notifier: Option<Arc<Notifier>>,
    files: BTreeMap<SessionId, One>,
    /// Whether a file was looked at last that had been read before.
    changed_last: bool,
}

/// One file that is followed.
struct One {
    file: PathBuf,
    works: bool,
    reader: Arc<Mutex<Reader>>,
    /// What was told of it last.
    told: Told,
    /// When it is to be looked at.
    due: Option<Instant>,
    looked: Option<Instant>,
    /// How many slices it was read in before all was; nothing once it is.
    slices: Option<u32>,
    /// When it was written last before it was first looked at.
    modified: Option<SystemTime>,
}

impl One {
    fn new(file: PathBuf, works: bool, reader: Reader, now: Instant) -> Self {
        Self {
            file,
            works,
            reader: Arc::new(Mutex::new(reader)),
            told: Told::default(),
            due: Some(now),
            looked: None,
            slices: Some(0),
            modified: None,
        }
    }

    fn due_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Following {
    fn next_due(&self) -> Option<Instant> {
        self.files.values().filter_map(|one| one.due).min()
    }

    /// Follows those that are wanted, and the others no more.
    async fn follow(
        &mut self,
        wanted: Vec<Followed>,
        reader: &DiskThread,
        facts: &FactSender,
    ) -> Result<(), Gone> {
        let mut before = std::mem::take(&mut self.files);
        let mut new = Vec::new();
        let now = Instant::now();
        for Followed { session, file, works, is_known } in wanted {
            let before = before.remove(&session);
            let was_followed = before.is_some();
            let known = before.filter(|one| Some(&one.file) == file.as_ref());
            let one = match (file, known) {
                (None, _) => {
                    if !is_known || was_followed {
                        facts.put(Fact::Activity(session, Arc::new(SessionRead::Unread(NO_FILE.to_owned()))));
                    }
                    continue;
                }
                (Some(_), Some(mut one)) => {
                    one.works = works;
                    if works && one.due.is_none() {
                        one.due = Some(now + SAFETY);
                    }
                    if !is_known {
                        one.told.put(&session, facts);
                    }
                    one
                }
                (Some(file), None) => {
                    new.push((session.clone(), file.clone()));
                    let reader = Reader::new(session.clone(), file.clone(), self.notifier.clone());
                    One::new(file, works, reader, now)
                }
            };
            self.files.insert(session, one);
        }
        let (gone, found) = (before, new);
        let surveyed = reader.run(move || {
            // Their directories are unwatched.
            drop(gone);
            found.into_iter().map(|(session, file)| (session, modified(&file))).collect::<Vec<_>>()
        });
        for (session, modified) in surveyed.await.map_err(|_| Gone)? {
            if let Some(one) = self.files.get_mut(&session) {
                one.modified = modified;
            }
        }
        Ok(())
    }

    /// Has those looked at that may have changed.
    fn mark(&mut self, dirty: &Dirty) {
        let now = Instant::now();
        for one in self.files.values_mut() {
            let moved = one.file.parent().is_some_and(|parent| dirty.moved.contains(parent));
            if moved {
                one.reader.lock().unwrap_or_else(PoisonError::into_inner).watch.moved = true;
            }
            if dirty.all || moved || dirty.files.contains(&one.file) {
                one.due_by(one.looked.map_or(now, |looked| now.max(looked + SPACING)));
            }
        }
    }

    /// Whose turn it is: what changed, and by turns with that what was never read to its end, the least
    /// read and newest first.
    fn next(&self, now: Instant) -> Option<SessionId> {
        let due = || self.files.iter().filter(|(_, one)| one.due.is_some_and(|due| due <= now));
        let changed = due().filter(|(_, one)| one.slices.is_none()).min_by_key(|(_, one)| one.due);
        let unread = due().filter(|(_, one)| one.slices.is_some());
        let unread = unread.min_by_key(|(_, one)| (one.slices, std::cmp::Reverse(one.modified)));
        let (first, second) = if self.changed_last { (unread, changed) } else { (changed, unread) };
        first.or(second).map(|(session, _)| session.clone())
    }

    /// Looks at the one whose turn it is.
    async fn look(&mut self, reader: &DiskThread, facts: &FactSender) -> Result<(), Gone> {
        let now = Instant::now();
        let Some(session) = self.next(now) else { return Ok(()) };
        let Some(one) = self.files.get_mut(&session) else { return Ok(()) };
        self.changed_last = one.slices.is_none();
        let reading = Arc::clone(&one.reader);
        let look = move || reading.lock().unwrap_or_else(PoisonError::into_inner).look(now);
        let Looked { told, next, is_watched } = reader.run(look).await.map_err(|_| Gone)?;
        let now = Instant::now();
        one.looked = Some(now);
        one.due = match next {
            Next::More => Some(now),
            Next::Unsettled => Some(now + QUIET),
            Next::Unreadable => Some(now + POLL),
            Next::Changed if !is_watched => Some(now + POLL),
            Next::Changed => one.works.then(|| now + SAFETY),
        };
        one.slices = match (next, one.slices) {
            (Next::More, Some(slices)) => Some(slices.saturating_add(1)),
            _ => None,
        };
        told.put(&session, facts);
        one.told.take(told);
        Ok(())
    }
}

/// Said where Herdr names none.
const NO_FILE: &str = "Herdr names no session file of it. A Pi session has one from its first message on; \
                       other agents have none that headman can read";

fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::symlink_metadata(file).and_then(|metadata| metadata.modified()).ok()
}

/// A file's directory, watched until this is dropped.
struct WatchedParent {
    notifier: Option<Arc<Notifier>>,
    directory: Option<PathBuf>,
    is_watched: bool,
    /// It may be another directory by now.
    moved: bool,
}

impl WatchedParent {
    fn arm(&mut self) {
        if std::mem::take(&mut self.moved) {
            self.disarm();
        }
        if !self.is_watched
            && let (Some(notifier), Some(directory)) = (&self.notifier, &self.directory)
        {
            self.is_watched = notifier.watch(directory).is_ok();
        }
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.is_watched)
            && let (Some(notifier), Some(directory)) = (&self.notifier, &self.directory)
        {
            notifier.unwatch(directory);
        }
    }
}

impl Drop for WatchedParent {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// What reads one file, on the thread for that.
struct Reader {
    session: SessionId,
    file: PathBuf,
    tail: Tail<(Doings, Watch)>,
    window: u64,
    watch: WatchedParent,
    told: Told,
    /// Where the files really are that were touched.
    real: BTreeMap<Untrusted, Option<Untrusted>>,
}

/// What came of a look.
struct Looked {
    /// What the session tells, where that is something else than before.
    told: Told,
    next: Next,
    is_watched: bool,
}

/// When to look again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// At once: there is more to read.
    More,
    /// Once it may be quiet.
    Unsettled,
    /// When it changed.
    Changed,
    /// In a while: it can't be read.
    Unreadable,
}

impl Reader {
    fn new(session: SessionId, file: PathBuf, notifier: Option<Arc<Notifier>>) -> Self {
        let directory = file.parent().map(Path::to_owned);
        let watch = WatchedParent { notifier, directory, is_watched: false, moved: false };
        let tail = Tail::folding(&file, Some(FIRST_WINDOW));
        Self {
            session,
            file,
            tail,
            window: FIRST_WINDOW,
            watch,
            told: Told::default(),
            real: BTreeMap::new(),
        }
    }

    fn look(&mut self, now: Instant) -> Looked {
        // Before the look, so that no change is missed.
        self.watch.arm();
        let (told, next) = match self.tail.look(SLICE, Unsettled::AfterQuiet(now)) {
            Ok(Progress::More) => (Told::default(), Next::More),
            Ok(Progress::Waiting) => (Told::default(), Next::Unsettled),
            Ok(Progress::Done) => self.done(),
            Err(error) => {
                // Perhaps it is there again in another directory of the same path.
                self.watch.moved |= error == HeaderError::NotThere;
                (unread(error.to_string()), Next::Unreadable)
            }
        };
        let told = self.told.changed(told);
        self.told.take(told.clone());
        Looked { told, next, is_watched: self.watch.is_watched }
    }

    fn done(&mut self) -> (Told, Next) {
        let header = match self.tail.index().header() {
            Some(Ok(header)) if header.session != self.session => {
                return (unread(OTHER_SESSION.to_owned()), Next::Changed);
            }
            Some(Ok(header)) => header,
            Some(Err(error)) => return (unread(error.to_string()), Next::Changed),
            None => {
                let next = if self.tail.is_settled() { Next::Changed } else { Next::Unsettled };
                return (unread(EMPTY.to_owned()), next);
            }
        };
        let (doings, watch) = self.tail.fold();
        let mut activity = doings.activity(header.cwd.as_ref());
        let sight = Sight { is_whole: !self.tail.is_cut(), ..watch.sight() };
        activity.is_whole |= !self.tail.is_cut();
        self.find(&mut activity);
        let next = if !activity.is_whole && self.window < LAST_WINDOW {
            self.window *= WIDER;
            self.tail = Tail::folding(&self.file, Some(self.window));
            Next::More
        } else if self.tail.is_settled() {
            Next::Changed
        } else {
            Next::Unsettled
        };
        let read = Some(Arc::new(SessionRead::Activity(activity)));
        (Told { read, sight: Some(Arc::new(sight)) }, next)
    }

    /// Finds out where files really are that were touched not long ago.
    fn find(&mut self, activity: &mut Activity) {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since = wall.saturating_sub(RECENT).as_millis();
        let mut before = std::mem::take(&mut self.real);
        for touched in &mut activity.files {
            if touched.at.is_some_and(|at| u128::from(at.as_millis()) >= since) {
                let real = before.remove(&touched.path).unwrap_or_else(|| real(&touched.path));
                touched.real.clone_from(&real);
                self.real.insert(touched.path.clone(), real);
            }
        }
    }
}

fn unread(why: String) -> Told {
    Told { read: Some(Arc::new(SessionRead::Unread(why))), sight: None }
}

/// Said where the file is not the lead's.
const OTHER_SESSION: &str =
    "the session file is of another session. Start that lead anew, so that Herdr names its own";
/// Said where nothing stands in it yet.
const EMPTY: &str = "the session file is empty. It is filled with the session's first message";

/// Where the file at an absolute path is, links followed; that which is not there, in its directory.
fn real(path: &Untrusted) -> Option<Untrusted> {
    use std::os::unix::ffi::OsStrExt;
    let path = path_of(path);
    if !path.is_absolute() {
        return None;
    }
    let beside = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    let real = std::fs::canonicalize(&path).ok().or_else(beside).unwrap_or_else(|| path.clone());
    Some(Untrusted::from_bytes_lossy(real.as_os_str().as_bytes()))
}
