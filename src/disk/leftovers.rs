//! What processes that were killed left half done, and what may be done about it: only what a name or
//! a claim proves to be of a dead process of ours is removed, and a removal that began is undone, so
//! that whoever receives there judges anew. Anything else stays.

use std::ffi::OsStr;
use std::path::Path;

use rustix::fs::FileType;

use super::durable::{self, DiskError, Unreadable};
use super::layout::InboxDir;
use super::lock::{self, Holder, Liveness, LockError};
use super::{crash_point, crash_steps_of};
use crate::contract::Uuid;

/// What was done about leftovers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Files and locks that are gone.
    pub removed: usize,
    /// Messages of our own inbox that stand in their place again.
    pub restored: usize,
    /// What stays although it is ours; safe to print.
    pub stays: Vec<String>,
}

impl Swept {
    fn count(&mut self, path: &Path, removed: Result<bool, LeftoverError>) {
        match removed {
            Ok(true) => self.removed += 1,
            Ok(false) => {}
            Err(error) => self.stays.push(format!("{}: {error}", durable::shown(path))),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LeftoverError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("it is not what its name says: {0}")]
    Unlike(String),
}

/// What a hidden name is that ends in an id and this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    /// A file or a lock that was never put in its place.
    Temporary,
    /// A lock that was moved aside.
    Stale,
    /// A message that was being removed.
    Cleanup,
}

/// `.<of>.<id>.<suffix>`: of what it is, the id, and what it is.
fn hidden(name: &OsStr) -> Option<(&str, Uuid, Suffix)> {
    let (rest, suffix) = name.to_str()?.strip_prefix('.')?.rsplit_once('.')?;
    let suffix = match suffix {
        "tmp" => Suffix::Temporary,
        "stale" => Suffix::Stale,
        "cleanup" => Suffix::Cleanup,
        _ => return None,
    };
    let (of, id) = rest.rsplit_once('.')?;
    Some((of, Uuid::parse(id)?, suffix))
}

/// The name of what the temporary file or lock of that name was to become.
pub fn temporary_of(name: &OsStr) -> Option<&OsStr> {
    match hidden(name) {
        Some((of, _, Suffix::Temporary)) => Some(OsStr::new(of)),
        _ => None,
    }
}

/// Removes from `directory` what processes left whose claims `is_dead` knows to be ours and of the
/// dead: temporary files, locks that were being taken or released, and locks of messages that stand.
/// `by` is the claim that moves a lock aside.
///
/// # Errors
/// The directory can't be listed.
pub fn sweep(
    directory: &Path,
    by: Uuid,
    is_dead: &dyn Fn(Uuid) -> bool,
    swept: &mut Swept,
) -> Result<(), Unreadable> {
    crash_steps_of!("sweep");
    for name in durable::list(directory)? {
        let path = directory.join(&name);
        if let Some((_, id, suffix)) = hidden(&name) {
            if is_dead(id) && suffix != Suffix::Cleanup {
                swept.count(&path, remove_hidden(&path, id));
            }
        } else if locked(&name).is_some() {
            swept.count(&path, remove_lock(&path, by, is_dead));
        }
    }
    Ok(())
}

/// The message that a lock is of.
fn locked(name: &OsStr) -> Option<Uuid> {
    InboxDir::message_id(OsStr::new(name.to_str()?.strip_suffix(".lock")?))
}

/// Removes the temporary files of `path`, which nobody else can be writing.
///
/// # Errors
/// Its directory can't be listed.
pub fn remove_temporaries(path: &Path, swept: &mut Swept) -> Result<(), Unreadable> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    for name in durable::list(directory)? {
        if temporary_of(&name).is_some_and(|of| path.file_name() == Some(of)) {
            let left = directory.join(name);
            swept.count(&left, durable::unlink(&left).map_err(LeftoverError::from));
        }
    }
    Ok(())
}

/// Removes a temporary file, or the directory of a lock that nobody can come to hold any more.
fn remove_hidden(path: &Path, id: Uuid) -> Result<bool, LeftoverError> {
    match durable::kind(path)? {
        None => return Ok(false),
        Some(FileType::Directory) => {
            // Either our own claim, or one that was found to be of the dead and moved aside.
            match lock::holder(path)? {
                Holder::Claimed(claim, liveness) if claim.id == id || liveness == Liveness::Dead => {
                    durable::unlink(&path.join(claim.file_name()))?;
                }
                Holder::Claimed(claim, _) => {
                    return Err(LeftoverError::Unlike(format!("it holds a claim of process {}", claim.pid)));
                }
                // Empty, or with a claim that was not written whole.
                Holder::Absent | Holder::Unverifiable(_) => remove_unwritten(path, id)?,
            }
            durable::remove_directory(path)?;
        }
        Some(_) => {
            durable::unlink(path)?;
        }
    }
    crash_point!("sweep:removed");
    durable::sync_parent(path)?;
    Ok(true)
}

/// Removes the owner file of the claim `id` that was created and not written.
fn remove_unwritten(path: &Path, id: Uuid) -> Result<(), LeftoverError> {
    let names = durable::list(path).map_err(|error| LeftoverError::Unlike(error.to_string()))?;
    for name in names {
        let claim = name.to_str().and_then(|name| name.split_once('-'));
        if claim.and_then(|(_, of)| Uuid::parse(of)) != Some(id) {
            return Err(LeftoverError::Unlike("it holds something else".to_owned()));
        }
        durable::unlink(&path.join(name))?;
    }
    Ok(())
}

/// Removes the lock of a message if its claim is of a dead process of ours.
fn remove_lock(path: &Path, by: Uuid, is_dead: &dyn Fn(Uuid) -> bool) -> Result<bool, LeftoverError> {
    match lock::holder(path)? {
        Holder::Claimed(claim, _) if is_dead(claim.id) => {
            lock::clear_stale(path, &claim, by)?;
            Ok(true)
        }
        Holder::Claimed(..) | Holder::Absent | Holder::Unverifiable(_) => Ok(false),
    }
}

/// In an inbox of our own, which nobody but its receiver removes messages from: puts back what was
/// being removed when the process ended, and clears markers and locks of dead processes that stand for
/// nothing, also those they were about to take. What was received is known to be, and is removed again; what was not is judged for the
/// first time. `by` is the claim that moves a lock aside.
///
/// # Errors
/// The directory can't be listed.
pub fn undo_removals(inbox: &InboxDir, by: Uuid, swept: &mut Swept) -> Result<(), Unreadable> {
    crash_steps_of!("sweep");
    let names = durable::list(inbox.path())?;
    for name in &names {
        let path = inbox.path().join(name);
        if let Some((of, _, Suffix::Cleanup)) = hidden(name) {
            match Uuid::parse(of).map(|id| restore(inbox, &path, id)) {
                Some(Ok(true)) => swept.restored += 1,
                Some(Ok(false)) | None => {}
                Some(Err(error)) => swept.stays.push(format!("{}: {error}", durable::shown(&path))),
            }
        } else if temporary_of(name).is_some_and(|of| marked(of).is_some()) {
            // A marker that was never put in its place.
            swept.count(&path, durable::unlink(&path).map_err(LeftoverError::from));
        } else if let Some((of, id, Suffix::Temporary)) = hidden(name)
            && locked(OsStr::new(of)).is_some()
        {
            swept.count(&path, remove_prepared(&path, id));
        } else if let Some(id) = locked(name).filter(|id| is_gone(inbox, *id)) {
            swept.count(&path, remove_stale(&inbox.lock(id), by));
        } else if let Some(id) = marked(name).filter(|id| is_gone(inbox, *id))
            && !names.iter().any(|name| is_cleanup_of(name, id))
        {
            swept.count(&path, durable::unlink(&path).map_err(LeftoverError::from));
            crash_point!("sweep:unmarked");
        }
    }
    Ok(())
}

fn is_gone(inbox: &InboxDir, id: Uuid) -> bool {
    matches!(durable::kind(&inbox.message(id)), Ok(None))
}

fn remove_stale(lock: &Path, by: Uuid) -> Result<bool, LeftoverError> {
    match lock::holder(lock)? {
        Holder::Claimed(claim, Liveness::Dead) => {
            lock::clear_stale(lock, &claim, by)?;
            Ok(true)
        }
        Holder::Claimed(..) | Holder::Absent | Holder::Unverifiable(_) => Ok(false),
    }
}

/// Removes the lock that a process was about to take, if its claim in it says that this one is dead: nobody
/// else looks there. Without a claim it can't be told.
fn remove_prepared(path: &Path, id: Uuid) -> Result<bool, LeftoverError> {
    match lock::holder(path)? {
        Holder::Claimed(claim, Liveness::Dead) if claim.id == id => remove_hidden(path, id),
        Holder::Claimed(..) | Holder::Absent | Holder::Unverifiable(_) => Ok(false),
    }
}

/// The message that a marker is of.
fn marked(name: &OsStr) -> Option<Uuid> {
    InboxDir::message_id(OsStr::new(name.to_str()?.strip_suffix(".quarantine")?))
}

fn is_cleanup_of(name: &OsStr, id: Uuid) -> bool {
    matches!(hidden(name), Some((of, _, Suffix::Cleanup)) if Uuid::parse(of) == Some(id))
}

/// Puts a message back that was being removed. The marker goes first: without it the message would be
/// taken for one that must never be delivered.
fn restore(inbox: &InboxDir, aside: &Path, id: Uuid) -> Result<bool, LeftoverError> {
    if durable::kind(&inbox.message(id))?.is_some() {
        // Sent again meanwhile: that one first.
        return Ok(false);
    }
    durable::unlink(&inbox.quarantine(id))?;
    crash_point!("sweep:unmarked");
    let restored = durable::rename_new(aside, &inbox.message(id))?;
    crash_point!("sweep:restored");
    durable::sync_directory(inbox.path())?;
    Ok(restored)
}
