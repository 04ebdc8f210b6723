//! The process lock of `docs/contract.md`: a directory whose one entry is its holder's claim.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;

use super::crash_step;
use super::durable::{self, Created, DiskError, Unreadable};
use crate::contract::{Claim, Uuid};

/// Largest owner file read, in bytes; a claim takes less than 100.
pub const MAX_CLAIM_BYTES: usize = 1_024;

/// How often a lock directory is found empty before it counts as that.
const LOOKS: usize = 3;

/// Whether a claim's process exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It does.
    Alive,
    /// It does not.
    Dead,
    /// It can't be told: not our process, or no process id of this system.
    Unverifiable,
}

/// What a lock directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Nobody holds it.
    Absent,
    /// Someone claims it.
    Claimed(Claim, Liveness),
    /// It can't be told who does; safe to print why.
    Unverifiable(String),
}

impl Holder {
    /// The claim, if its process is alive.
    pub fn live(&self) -> Option<Claim> {
        match self {
            Holder::Claimed(claim, Liveness::Alive) => Some(*claim),
            _ => None,
        }
    }
}

/// Why a lock was not acquired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A live process holds it, or took it meanwhile.
    #[error("process {} holds {}", claim.pid, lock.display())]
    Occupied {
        /// Whose it is.
        claim: Claim,
        /// The lock.
        lock: PathBuf,
    },
    /// Its holder is dead, and another process is just recovering it. Such a process is soon done, unless
    /// it is stopped.
    #[error("{} is being recovered by {}", lock.display(), named(by.as_ref()))]
    Recovering {
        /// That process, where it can be told.
        by: Option<Claim>,
        /// The lock.
        lock: PathBuf,
    },
    /// Its holder can't be verified; it is never repaired.
    #[error("can't verify who holds {}: {reason}", lock.display())]
    Unverifiable {
        /// The lock.
        lock: PathBuf,
        /// Why.
        reason: String,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl LockError {
    /// Whether another process was first, so that a later try may find the lock free.
    pub fn is_occupied(&self) -> bool {
        matches!(self, Self::Occupied { .. } | Self::Recovering { .. })
    }
}

/// The process of a claim that is being made, and what helps if it does not get on.
fn named(by: Option<&Claim>) -> String {
    match by {
        Some(Claim { pid, .. }) => {
            format!("process {pid}. If that lasts, it is stopped: continue it (`kill -CONT {pid}`) or end it")
        }
        None => "another process. If that lasts, it is stopped: continue it or end it".to_owned(),
    }
}

/// Whether the process of `claim` exists.
pub fn liveness(claim: &Claim) -> Liveness {
    let Some(pid) = claim.pid.as_raw().and_then(rustix::process::Pid::from_raw) else {
        return Liveness::Unverifiable;
    };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => Liveness::Alive,
        Err(Errno::SRCH) => Liveness::Dead,
        Err(_) => Liveness::Unverifiable,
    }
}

/// Reads who holds the lock at `path`.
pub fn holder(path: &Path) -> Result<Holder, DiskError> {
    match read_claim(path) {
        Ok(Some(claim)) => Ok(Holder::Claimed(claim, liveness(&claim))),
        Ok(None) => Ok(Holder::Absent),
        Err(NoClaim::Invalid(reason)) => Ok(Holder::Unverifiable(reason)),
        Err(NoClaim::Disk(error)) => Err(error),
    }
}

enum NoClaim {
    Invalid(String),
    Disk(DiskError),
}

fn read_claim(path: &Path) -> Result<Option<Claim>, NoClaim> {
    match durable::kind(path).map_err(NoClaim::Disk)? {
        None => return Ok(None),
        Some(FileType::Directory) => {}
        Some(_) => return Err(NoClaim::Invalid("it is not a directory".to_owned())),
    }
    let mut looks = 0;
    let name = loop {
        let names = durable::list(path).map_err(|error| match error {
            Unreadable::Disk(error) => NoClaim::Disk(error),
            other => NoClaim::Invalid(other.to_string()),
        })?;
        looks += 1;
        match &names[..] {
            [name] => break name.clone(),
            [] if matches!(durable::kind(path), Ok(None)) => return Ok(None),
            // What was listed may have been moved aside and emptied, and another stand there by now.
            [] if looks < LOOKS => {}
            [] => return Err(NoClaim::Invalid("the lock directory is empty".to_owned())),
            _ => return Err(NoClaim::Invalid(format!("the lock directory has {} entries", names.len()))),
        }
    };
    let Some(text) = name.to_str() else {
        return Err(NoClaim::Invalid("its entry is no claim".to_owned()));
    };
    let bytes = match durable::read_private(&path.join(&name), MAX_CLAIM_BYTES) {
        Ok(bytes) => bytes,
        Err(Unreadable::Missing) => return Ok(None),
        Err(Unreadable::Disk(error)) => return Err(NoClaim::Disk(error)),
        Err(error) => return Err(NoClaim::Invalid(format!("its owner file can't be used: {error}"))),
    };
    Claim::parse(&bytes, text).map(Some).map_err(|error| NoClaim::Invalid(error.to_string()))
}

/// A lock that this process holds. Dropping it releases it.
#[derive(Debug)]
pub struct ProcessLock {
    path: PathBuf,
    claim: Claim,
    released: bool,
}

impl ProcessLock {
    /// Acquires the lock at `path` with `claim`, a fresh one of this process.
    ///
    /// A stale claim, one whose process is gone, is recovered. So is one that `ours_and_dead` knows
    /// to be a dead process of ours whose pid belongs to another process now.
    pub fn acquire(
        path: &Path,
        claim: Claim,
        ours_and_dead: &dyn Fn(&Claim) -> bool,
    ) -> Result<Self, LockError> {
        let prepared = Prepared::build(path, &claim)?;
        if durable::rename_new(&prepared.0, path)? {
            return Self::published(path, claim, prepared);
        }
        let stale = match holder(path)? {
            Holder::Absent => None,
            Holder::Claimed(found, Liveness::Dead) => Some(found),
            Holder::Claimed(found, _) if ours_and_dead(&found) => Some(found),
            Holder::Claimed(found, Liveness::Alive) => {
                return Err(LockError::Occupied { claim: found, lock: path.to_owned() });
            }
            Holder::Claimed(found, Liveness::Unverifiable) => {
                return Err(LockError::Unverifiable {
                    lock: path.to_owned(),
                    reason: format!("process {} can't be asked about", found.pid),
                });
            }
            Holder::Unverifiable(reason) => {
                return Err(LockError::Unverifiable { lock: path.to_owned(), reason });
            }
        };
        if let Some(stale) = stale {
            clear_stale(path, &stale, claim.id)?;
        }
        if durable::rename_new(&prepared.0, path)? {
            Self::published(path, claim, prepared)
        } else {
            Err(lost_race(path, claim))
        }
    }

    fn published(path: &Path, claim: Claim, prepared: Prepared) -> Result<Self, LockError> {
        std::mem::forget(prepared);
        crash_step!("lock_published");
        let lock = Self { path: path.to_owned(), claim, released: false };
        durable::sync_parent(path)?;
        Ok(lock)
    }

    /// Our claim.
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// Whether the lock still stands with our claim.
    pub fn stands(&self) -> Result<bool, DiskError> {
        Ok(matches!(holder(&self.path)?, Holder::Claimed(claim, _) if claim == self.claim))
    }

    /// Releases the lock, if it is still ours; says whether it was.
    pub fn release(mut self) -> Result<bool, DiskError> {
        self.released = true;
        self.remove()
    }

    /// Moves the directory aside before it is emptied: an empty lock directory at the canonical
    /// name could never be recovered by anyone.
    fn remove(&self) -> Result<bool, DiskError> {
        if !self.stands()? {
            return Ok(false);
        }
        let aside = unused(&self.path, self.claim.id, "stale")?;
        if !durable::rename_new(&self.path, &aside)? {
            return Ok(false);
        }
        crash_step!("lock_aside");
        if !matches!(holder(&aside)?, Holder::Claimed(claim, _) if claim == self.claim) {
            // Replaced between the look and the move: it is not ours to take away.
            give_back(&aside, &self.path)?;
            return Ok(false);
        }
        durable::unlink(&aside.join(self.claim.file_name()))?;
        crash_step!("lock_emptied");
        durable::remove_directory(&aside)?;
        crash_step!("lock_removed");
        durable::sync_parent(&self.path)?;
        Ok(true)
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        if !self.released {
            // Nobody is left to tell; the claim of a dead process is recovered by the next one.
            let _ = self.remove();
        }
    }
}

/// A lock directory ready to be published; removed again unless it was.
struct Prepared(PathBuf);

impl Prepared {
    fn build(path: &Path, claim: &Claim) -> Result<Self, DiskError> {
        let prepared = Self(unused(path, claim.id, "tmp")?);
        durable::create_directory(&prepared.0)?;
        crash_step!("lock_made");
        let owner = prepared.0.join(claim.file_name());
        let created = Created::new(&owner)?;
        crash_step!("lock_created");
        created.write(&claim.to_bytes())?;
        crash_step!("lock_written");
        durable::sync_directory(&prepared.0)?;
        Ok(prepared)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        remove_lock_directory(&self.0);
    }
}

fn remove_lock_directory(path: &Path) {
    if let Ok(names) = durable::list(path) {
        for name in names {
            let _ = durable::unlink(&path.join(name));
        }
    }
    let _ = durable::remove_directory(path);
}

/// The hidden sibling of that id, so that whoever knows the id knows whose it is; if an error left
/// one of that name there before, any other.
fn unused(path: &Path, id: Uuid, suffix: &str) -> Result<PathBuf, DiskError> {
    let ours = durable::hidden(path, id, suffix);
    Ok(if durable::kind(&ours)?.is_none() { ours } else { durable::temporary(path, suffix) })
}

/// Moves the stale lock at `path` aside, under a name with the id `by`, and deletes it, provided that
/// it is still the very same claim.
///
/// # Errors
/// [`LockError::Occupied`] if another process came first.
pub fn clear_stale(path: &Path, stale: &Claim, by: Uuid) -> Result<(), LockError> {
    // Kept until it is gone.
    let Some(_recovery) = Recovery::begin(path)? else {
        return Err(match holder(path)? {
            Holder::Claimed(found, _) if found == *stale => {
                LockError::Recovering { by: claimant(path, by), lock: path.to_owned() }
            }
            _ => lost_race(path, *stale),
        });
    };
    match holder(path)? {
        Holder::Claimed(found, _) if found == *stale => {}
        Holder::Absent => return Ok(()),
        Holder::Claimed(found, _) => return Err(LockError::Occupied { claim: found, lock: path.to_owned() }),
        Holder::Unverifiable(reason) => {
            return Err(LockError::Unverifiable { lock: path.to_owned(), reason });
        }
    }
    let aside = unused(path, by, "stale")?;
    crash_step!("stale_found");
    match durable::rename_new(path, &aside) {
        Ok(true) => {}
        Ok(false) => return Err(lost_race(path, *stale)),
        // Another process moved it first.
        Err(error) if error.reason == Errno::NOENT => return Err(lost_race(path, *stale)),
        Err(error) => return Err(error.into()),
    }
    crash_step!("stale_aside");
    match holder(&aside)? {
        Holder::Claimed(found, _) if found == *stale => {
            durable::unlink(&aside.join(stale.file_name()))?;
            crash_step!("stale_emptied");
            durable::remove_directory(&aside)?;
            crash_step!("stale_removed");
            durable::sync_parent(path)?;
            Ok(())
        }
        _ => {
            // Between the look and the move another process recovered it and took it.
            give_back(&aside, path)?;
            Err(lost_race(path, *stale))
        }
    }
}

/// An advisory lock on a lock directory, for as long as it lives: who recovers it moves by name what it
/// looked at by name, and no other process of ours moves it meanwhile. Without that one could take the
/// lock of the living who recovered it in between, and a third would find the name free.
///
/// Others than headman don't know of it; against them stands the look at what was moved.
struct Recovery {
    _directory: Option<OwnedFd>,
}

impl Recovery {
    /// Begins to recover the lock at `path`; none if another process is just doing that.
    fn begin(path: &Path) -> Result<Option<Self>, DiskError> {
        let directory = match durable::open_directory(path) {
            Ok(directory) => directory,
            // What it is instead is judged by whoever looks.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Some(Self { _directory: None })),
            Err(reason) => return Err(DiskError { operation: "open", path: path.to_owned(), reason }),
        };
        let locked = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive);
        Self::begun(directory, path, locked)
    }

    /// What the advisory lock's answer means. Without such locks nothing is recovered: two of us could.
    fn begun(directory: OwnedFd, path: &Path, locked: Result<(), Errno>) -> Result<Option<Self>, DiskError> {
        match locked {
            Ok(()) => Ok(Some(Self { _directory: Some(directory) })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(reason) => Err(DiskError::flock(path, reason)),
        }
    }
}

/// The claim of a living process, other than that of the id `us`, that is about to take the lock at `path`.
/// It stands in a temporary sibling until then.
pub fn claimant(path: &Path, us: Uuid) -> Option<Claim> {
    let (parent, own) = (path.parent()?, durable::hidden(path, us, "tmp"));
    let prefix = format!(".{}.", path.file_name()?.to_str()?);
    let is_prepared = |name: &std::ffi::OsString| {
        name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".tmp"))
    };
    let prepared = durable::list(parent).ok()?.into_iter().filter(is_prepared).map(|name| parent.join(name));
    prepared.filter(|it| *it != own).find_map(|it| holder(&it).ok()?.live())
}

/// Puts a lock that was moved by mistake back. If yet another stands there by now, the moved one is
/// nobody's any more and is left for a person to see.
fn give_back(aside: &Path, path: &Path) -> Result<(), DiskError> {
    if !durable::rename_new(aside, path)? {
        tracing::warn!(lock = %durable::shown(aside), "a lock was taken twice; its copy stays");
    }
    Ok(())
}

fn lost_race(path: &Path, fallback: Claim) -> LockError {
    let claim = match holder(path) {
        Ok(Holder::Claimed(found, _)) => found,
        _ => fallback,
    };
    LockError::Occupied { claim, lock: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_can_be_locked_nothing_is_recovered() {
        let dir = tempfile::tempdir().unwrap();
        for (answer, said) in [
            (Errno::NOLCK, "can't use flock, which its file system lacks, on "),
            (Errno::OPNOTSUPP, "can't use flock, which its file system lacks, on "),
            (Errno::IO, "can't lock "),
        ] {
            let directory = durable::open_directory(dir.path()).unwrap();
            let refused = Recovery::begun(directory, dir.path(), Err(answer)).map(|_| ()).unwrap_err();
            assert!(refused.to_string().contains(said), "{refused}");
            assert_eq!(refused.reason, answer);
        }
        let directory = durable::open_directory(dir.path()).unwrap();
        assert!(Recovery::begun(directory, dir.path(), Err(Errno::WOULDBLOCK)).unwrap().is_none());
    }
}
