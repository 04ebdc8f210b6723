//! Our own memory of the Chief claims we made, beside the contract's lock.
//!
//! A claim names a process by its pid alone. When a console dies and its pid is taken by another
//! process, the contract's lock looks held for ever. Every console therefore holds an advisory lock
//! on one file of its state directory for as long as it holds (or tries for) the lease, and writes
//! its claims there first, each with the start of its process and the boot of the system. Who holds
//! that lock, and finds that the process of that pid started at another time or under another boot,
//! knows that whoever wrote the claim is dead. The lock alone proves nothing: a copy of the state
//! directory has a lock of its own.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::durable::{self, DiskError, Unreadable};
use crate::contract::{Claim, Uuid};

/// Claims remembered; older ones are dropped.
const MAX_LINES: usize = 32;

/// Why the advisory lock can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SidecarError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Its file is not one of ours alone.
    #[error("{}: {reason}. Move it away to start with a new one", path.display())]
    NotOurs {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: Unreadable,
    },
}

/// The advisory lock, held until dropped.
#[derive(Debug)]
pub struct Sidecar {
    file: File,
    path: PathBuf,
    claims: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    v: u32,
    claim: String,
    pid: u32,
    /// Clock ticks between boot and the start of the process, where the system tells.
    start: Option<u64>,
    boot: Option<String>,
}

impl Line {
    fn is_of_another_process(&self) -> bool {
        let (boot, start) = (boot_id(), start_time(self.pid));
        let rebooted = self.boot.is_some() && boot.is_some() && self.boot != boot;
        rebooted || (self.start.is_some() && start.is_some() && self.start != start)
    }

    fn is_of_nobody(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // A process that another thread is just starting has this file too, until it is executed.
        let _ = fs2::FileExt::unlock(&self.file);
    }
}

impl Sidecar {
    /// Takes the advisory lock on `path`, or says that another process of ours has it.
    pub fn take(path: &Path) -> Result<Option<Self>, SidecarError> {
        let failed = |operation: &'static str| {
            move |error: std::io::Error| DiskError {
                operation,
                path: path.to_owned(),
                reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            }
        };
        // Never replaced or removed: the lock belongs to this very file.
        let mut file = match durable::open_private(path) {
            Ok(file) => file,
            Err(Unreadable::Disk(error)) => return Err(error.into()),
            Err(reason) => return Err(SidecarError::NotOurs { path: path.to_owned(), reason }),
        };
        // By its full path: the standard library has methods of the same name.
        match fs2::FileExt::try_lock_exclusive(&file) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                return Ok(None);
            }
            Err(error) => {
                let reason = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(DiskError::flock(path, reason).into());
            }
        }
        let mut text = String::new();
        (&mut file).take(64 * 1024).read_to_string(&mut text).map_err(failed("read"))?;
        let claims = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Some(Self { file, path: path.to_owned(), claims }))
    }

    /// The process that made the last claim there, if it lives: where another has the advisory lock, most
    /// likely that one.
    pub fn last_claimant(path: &Path) -> Option<u32> {
        let bytes = durable::read_private(path, 64 * 1024).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let last: Line = serde_json::from_str(text.lines().next_back()?).ok()?;
        (!last.is_of_nobody() && !last.is_of_another_process()).then_some(last.pid)
    }

    /// Whether `claim` was made by a process of ours that is dead now: its pid belongs to a process
    /// that started at another time, or the system was booted since. What can't be told is no proof.
    pub fn is_of_the_dead(&self, claim: &Claim) -> bool {
        let (id, pid) = (claim.id.to_string(), claim.pid.as_number());
        let of_claim = |line: &&Line| line.claim == id && f64::from(line.pid) == pid;
        self.claims.iter().filter(of_claim).any(Line::is_of_another_process)
    }

    /// The ids of the claims made by processes of ours that are dead now, also those whose pid nobody
    /// has.
    pub fn dead(&self) -> HashSet<Uuid> {
        let dead = self.claims.iter().filter(|line| line.is_of_another_process() || line.is_of_nobody());
        dead.filter_map(|line| Uuid::parse(&line.claim)).collect()
    }

    /// Remembers `claim` as ours, before it is published.
    pub fn remember(&mut self, claim: &Claim) -> Result<(), DiskError> {
        let pid = std::process::id();
        self.claims.push(Line {
            v: 1,
            claim: claim.id.to_string(),
            pid,
            start: start_time(pid),
            boot: boot_id(),
        });
        let surplus = self.claims.len().saturating_sub(MAX_LINES);
        self.claims.drain(..surplus);
        let mut text = String::new();
        for line in &self.claims {
            let line = serde_json::to_string(line).map_err(|_| DiskError {
                operation: "write",
                path: self.path.clone(),
                reason: Errno::INVAL,
            })?;
            text.push_str(&line);
            text.push('\n');
        }
        let path = self.path.clone();
        let mut write = || -> std::io::Result<()> {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)?;
            self.file.sync_all()
        };
        write().map_err(|error| DiskError {
            operation: "write",
            path,
            reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })
    }
}

/// Which boot of the system this is; none where the system does not tell.
fn boot_id() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned())
}

/// When a process started, in clock ticks since boot; none where the system does not tell.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold some.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(19)?.parse().ok()
}
