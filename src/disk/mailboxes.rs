//! The mailboxes of managed agents, read only: headman never writes below them.
//!
//! There can be a thousand of them, and they are looked at as often as Herdr's inventory is taken.
//! Whoever changes a mailbox does so by a rename within its directory, which gives the directory
//! another time: a [`Looker`] asks each directory for its times and reads only those that differ.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{self, AtFlags};

use super::durable::{self, Unreadable};
use super::records::RecordError;
use crate::contract::mailbox::{self, Mailbox, Post};
use crate::contract::{SessionId, Untrusted};

/// Most mailboxes that are read; the user's leads of all sockets together have fewer.
pub const MAX_MAILBOXES: usize = 10_000;
/// Most files looked at in one mailbox. In use, one has five.
const MAX_FILES: usize = 1_000;
/// How often a [`Looker`] reads everything all the same: a change in place, as of a mode, gives no
/// directory another time.
const SAFETY: Duration = Duration::from_secs(120);

/// A mailbox that is there and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its directory's name; none if it is all of them.
    pub directory: Option<String>,
    /// Why.
    pub error: RecordError,
    /// Whom it names as its owner all the same.
    pub owner: Option<Untrusted>,
    /// Which session it names as its agent's all the same.
    pub session: Option<Untrusted>,
}

impl Broken {
    /// Whether it can't be ruled out that `session` owns it.
    pub fn could_be_of(&self, session: &SessionId) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner == session.as_untrusted())
    }
}

/// All mailboxes at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// The valid ones, by label, then session.
    pub posts: Vec<Post>,
    /// The others, by directory.
    pub broken: Vec<Broken>,
}

impl Scan {
    /// The sessions that stand in a mailbox, be it a broken one: managed, whatever else they show.
    pub fn sessions(&self) -> impl Iterator<Item = &Untrusted> {
        let valid = self.posts.iter().map(|post| post.mailbox.session.as_untrusted());
        valid.chain(self.broken.iter().filter_map(|broken| broken.session.as_ref()))
    }
}

/// Reads all mailboxes below `root`, now. One that is broken hides no other.
pub fn scan(root: &Path) -> Scan {
    let (names, mut broken) = names(root);
    let mut scan = Scan::default();
    for name in names {
        match read(root, &name) {
            None => {}
            Some(Ok(post)) => scan.posts.push(post),
            Some(Err(found)) => broken.push(found),
        }
    }
    scan.broken = broken;
    scan.sort();
    scan
}

impl Scan {
    fn sort(&mut self) {
        self.posts.sort_by(|a, b| {
            let key = |post: &Post| (post.mailbox.label.clone(), post.mailbox.session.clone());
            key(a).cmp(&key(b)).then_with(|| a.mailbox.workspace.cmp(&b.mailbox.workspace))
        });
        self.broken.sort_by(|a, b| a.directory.cmp(&b.directory));
    }
}

fn names(root: &Path) -> (Vec<OsString>, Vec<Broken>) {
    let all =
        |error: Unreadable| vec![Broken { directory: None, error: error.into(), owner: None, session: None }];
    match durable::list_at_most(root, MAX_MAILBOXES) {
        Ok((names, true)) => (names, Vec::new()),
        Ok((names, false)) => (names, all(Unreadable::TooMany(MAX_MAILBOXES))),
        Err(error) => (Vec::new(), all(error)),
    }
}

/// The mailbox in the directory `name`; none where there is no state (yet), or the directory is none
/// of theirs.
fn read(root: &Path, name: &OsStr) -> Option<Result<Post, Broken>> {
    let path = root.join(name);
    let name = name.to_string_lossy().into_owned();
    let is_theirs = mailbox::is_directory_name(&name);
    let broken = |error: RecordError, named: (Option<Untrusted>, Option<Untrusted>)| {
        let (owner, session) = named;
        let names_someone = session.is_some();
        let broken = Broken { directory: Some(name.clone()), error, owner, session };
        (is_theirs || names_someone).then_some(Err(broken))
    };
    // Never through a link, as it may lead anywhere.
    match durable::kind(&path) {
        Ok(Some(fs::FileType::Directory)) => {}
        Ok(None) => return None,
        Ok(Some(fs::FileType::Symlink)) => return broken(Unreadable::Symlink.into(), (None, None)),
        Ok(Some(_)) => return broken(Unreadable::NotRegular("not a directory").into(), (None, None)),
        Err(error) => return broken(Unreadable::Disk(error).into(), (None, None)),
    }
    let bytes = match durable::read_private(&path.join("state.json"), mailbox::MAX_BYTES) {
        Ok(bytes) => bytes,
        // Being started, or being removed.
        Err(Unreadable::Missing) => return None,
        Err(error) => return broken(error.into(), (None, None)),
    };
    match Mailbox::parse(&bytes, &name) {
        Ok(state) => Some(Ok(post(&path, state))),
        Err(invalid) => broken(invalid.into(), mailbox::named_in(&bytes)),
    }
}

/// What stands beside a state. In doubt something does: it is only ever said to be settling.
fn post(path: &Path, state: Mailbox) -> Post {
    let (unacknowledged, undelivered) = match durable::list_at_most(path, MAX_FILES) {
        Ok((names, true)) => {
            let result = state.completed_request.as_ref().map(|id| file_of("result", id));
            let has_result = result.is_some_and(|result| names.iter().any(|name| *name == *result));
            (names.iter().any(|name| waits(path, name, &state)), has_result)
        }
        Ok((_, false)) | Err(_) => (true, state.completed_request.is_some()),
    };
    let cwd = durable::real_directory(&state.cwd);
    Post { alias: state.herdr_name().into(), real_cwd: cwd, mailbox: state, unacknowledged, undelivered }
}

fn file_of(kind: &str, id: &Untrusted) -> String {
    format!("{kind}-{}.json", id.to_str_lossy())
}

/// Whether the file `name` is a request that the agent has not answered for.
fn waits(path: &Path, name: &OsStr, state: &Mailbox) -> bool {
    let Some(name) = name.to_str().filter(|it| it.starts_with("request-") && it.ends_with(".json")) else {
        return false;
    };
    let Some(acknowledged) = state.last_ack.as_ref().filter(|id| name == file_of("request", id)) else {
        return true;
    };
    match durable::read_private(&path.join(name), mailbox::MAX_REQUEST_BYTES) {
        Ok(bytes) => state.check_request(&bytes, acknowledged).is_err(),
        Err(Unreadable::Missing) => false,
        Err(_) => true,
    }
}

/// What tells one state of a directory from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp([u64; 6]);

impl Stamp {
    // The fields have other types on other systems.
    #[allow(clippy::unnecessary_cast)]
    fn of(stat: &fs::Stat) -> Self {
        Self([
            stat.st_dev as u64,
            stat.st_ino as u64,
            stat.st_mtime as u64,
            stat.st_mtime_nsec as u64,
            stat.st_ctime as u64,
            stat.st_ctime_nsec as u64,
        ])
    }
}

/// What was read of one directory.
struct Known {
    stamp: Option<Stamp>,
    /// Whether it was read again since: a second change within one tick of the clock leaves the
    /// times as they are, so one reading of a new time is not enough.
    settled: bool,
    found: Option<Result<Post, Broken>>,
}

/// Looks at the mailboxes again and again, and reads what changed.
pub struct Looker {
    root: PathBuf,
    root_stamp: Option<Stamp>,
    root_settled: bool,
    root_broken: Vec<Broken>,
    known: HashMap<OsString, Known>,
    all_read: Option<Instant>,
    current: Arc<Scan>,
}

impl Looker {
    /// One that has not looked yet.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            root_stamp: None,
            root_settled: false,
            root_broken: Vec::new(),
            known: HashMap::new(),
            all_read: None,
            current: Arc::default(),
        }
    }

    /// All mailboxes as they are now; the same [`Arc`] as before where nothing differs.
    pub fn look(&mut self) -> Arc<Scan> {
        if self.all_read.is_none_or(|at| at.elapsed() >= SAFETY) {
            self.all_read = Some(Instant::now());
            self.root_settled = false;
            for known in self.known.values_mut() {
                known.settled = false;
            }
        }
        if self.refresh() {
            let mut scan = Scan { posts: Vec::new(), broken: self.root_broken.clone() };
            for known in self.known.values() {
                match &known.found {
                    None => {}
                    Some(Ok(post)) => scan.posts.push(post.clone()),
                    Some(Err(broken)) => scan.broken.push(broken.clone()),
                }
            }
            scan.sort();
            self.current = Arc::new(scan);
        }
        Arc::clone(&self.current)
    }

    /// Whether anything differs.
    fn refresh(&mut self) -> bool {
        let directory = durable::open_directory(&self.root).ok();
        let stamp = directory.as_ref().and_then(|it| fs::fstat(it).ok()).map(|stat| Stamp::of(&stat));
        let mut changed = false;
        if !self.root_settled || stamp != self.root_stamp {
            self.root_settled = stamp == self.root_stamp;
            self.root_stamp = stamp;
            let (names, broken) = names(&self.root);
            changed |= broken != self.root_broken;
            self.root_broken = broken;
            let mut before = std::mem::take(&mut self.known);
            for name in names {
                let known =
                    before.remove(&name).unwrap_or(Known { stamp: None, settled: false, found: None });
                self.known.insert(name, known);
            }
            changed |= before.values().any(|gone| gone.found.is_some());
        }
        let Some(directory) = directory else { return changed };
        for (name, known) in &mut self.known {
            let stamp = fs::statat(directory.as_fd(), name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)
                .ok()
                .map(|stat| Stamp::of(&stat));
            if known.settled && stamp == known.stamp {
                continue;
            }
            known.settled = stamp == known.stamp;
            known.stamp = stamp;
            let found = read(&self.root, name);
            if found != known.found {
                known.found = found;
                changed = true;
            }
        }
        changed
    }
}
