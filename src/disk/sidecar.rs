//! Our own memory of the Chief claims we made, beside the contract's lock.
//!
//! A claim names a process by its pid alone. When a console dies and its pid is taken by another
//! process, the contract's lock looks held for ever. Every console therefore holds an advisory lock
//! on one file of its state directory for as long as it holds (or tries for) the lease, and writes
//! its claims there first. Who holds that lock knows that whoever wrote those claims is dead.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::durable::DiskError;
use crate::contract::Claim;

/// Claims remembered; older ones are dropped.
const MAX_LINES: usize = 32;

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

impl Sidecar {
    /// Takes the advisory lock on `path`, or says that another process of ours has it.
    pub fn take(path: &Path) -> Result<Option<Self>, DiskError> {
        let failed = |operation: &'static str| {
            move |error: std::io::Error| DiskError {
                operation,
                path: path.to_owned(),
                reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            }
        };
        // Never replaced or removed: the lock belongs to this very file.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(path)
            .map_err(failed("open"))?;
        // By its full path: the standard library has methods of the same name.
        match fs2::FileExt::try_lock_exclusive(&file) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                return Ok(None);
            }
            Err(error) => return Err(failed("lock")(error)),
        }
        let mut text = String::new();
        (&mut file).take(64 * 1024).read_to_string(&mut text).map_err(failed("read"))?;
        let claims = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Some(Self { file, path: path.to_owned(), claims }))
    }

    /// Whether `claim` was made by a process of ours that is dead now.
    pub fn made(&self, claim: &Claim) -> bool {
        let (id, pid) = (claim.id.to_string(), claim.pid.as_number());
        self.claims.iter().any(|line| line.claim == id && f64::from(line.pid) == pid)
    }

    /// Remembers `claim` as ours, before it is published.
    pub fn remember(&mut self, claim: &Claim) -> Result<(), DiskError> {
        let pid = std::process::id();
        self.claims.push(Line {
            v: 1,
            claim: claim.id.to_string(),
            pid,
            start: start_time(pid),
            boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .ok()
                .map(|boot| boot.trim().to_owned()),
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

/// When a process started, in clock ticks since boot; none where the system does not tell.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold some.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(19)?.parse().ok()
}
