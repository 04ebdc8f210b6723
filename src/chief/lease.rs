//! The Chief lease: claiming it, checking it, ending it.

use std::collections::HashSet;

use crate::contract::{Claim, Descriptor, SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::lock::{Holder, LockError};
use crate::disk::records::{self, Holding};
use crate::disk::sidecar::{Sidecar, SidecarError};
use crate::disk::{DiskError, ProcessLock, RecordError, Runtime, Unreadable, durable};
use crate::disk::{crash_step, crash_steps_of};

/// Where the Chief runs, as leads compare it with Herdr's listing; `none` outside a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The pane.
    pub pane: Untrusted,
    /// Its tab.
    pub tab: Untrusted,
    /// Its workspace.
    pub workspace: Untrusted,
}

impl Place {
    /// Outside Herdr.
    pub fn none() -> Self {
        let none = || Untrusted::from("none");
        Self { pane: none(), tab: none(), workspace: none() }
    }
}

/// Why the lease was not claimed. Everything is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// Another console of this state directory holds it or is about to.
    #[error("{} holds the lease or is about to take it", another(*.by))]
    OwnConsole {
        /// The process that most likely does.
        by: Option<u32>,
    },
    /// The file of the advisory lock can't be used.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// The lock can't be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

fn another(by: Option<u32>) -> String {
    let another = "another headman with this identity";
    match by {
        None => another.to_owned(),
        Some(pid) => {
            format!("{another} (process {pid}: if it is stopped, `kill -CONT {pid}` continues it)")
        }
    }
}

impl LeaseError {
    /// Whether another process holds the lease, or is about to.
    pub fn is_occupied(&self) -> bool {
        match self {
            Self::OwnConsole { .. } => true,
            Self::Lock(error) => error.is_occupied(),
            Self::Sidecar(_) | Self::Disk(_) => false,
        }
    }
}

/// The lease, held by this process.
#[derive(Debug)]
pub struct Lease {
    runtime: Runtime,
    lock: Option<ProcessLock>,
    descriptor: Descriptor,
    released: bool,
    // Held for as long as the lease is.
    sidecar: Sidecar,
}

impl Lease {
    /// Claims the lease of `runtime`, whose directories are made below `data_root`.
    pub fn claim(
        runtime: &Runtime,
        data_root: &std::path::Path,
        sidecar_path: &std::path::Path,
        session: &SessionId,
        place: &Place,
        now: Timestamp,
    ) -> Result<Self, LeaseError> {
        crash_steps_of!("lease");
        durable::ensure_directories(parent_of_data_root(data_root), runtime.root())?;
        let own = || LeaseError::OwnConsole { by: Sidecar::last_claimant(sidecar_path) };
        let mut sidecar = Sidecar::take(sidecar_path)?.ok_or_else(own)?;
        let claim = Claim::own();
        sidecar.remember(&claim)?;
        crash_step!("remembered");
        let lock = ProcessLock::acquire(&runtime.lock(), claim, &|stale| sidecar.is_of_the_dead(stale))?;
        let descriptor = Descriptor {
            lease: Uuid::random(),
            claim: lock.claim(),
            session: session.clone(),
            pane: place.pane.clone(),
            tab: Some(place.tab.clone()),
            workspace: place.workspace.clone(),
            created_at: now,
        };
        // On failure the lock is released as it is dropped.
        records::write_descriptor(runtime, &descriptor)?;
        Ok(Self { runtime: runtime.clone(), lock: Some(lock), descriptor, released: false, sidecar })
    }

    /// The lease's id.
    pub fn id(&self) -> Uuid {
        self.descriptor.lease
    }

    /// Our claim, by which all is done under this lease.
    pub fn own_claim(&self) -> Claim {
        self.descriptor.claim
    }

    /// The ids of claims of ours whose processes are dead.
    pub fn dead_claims(&self) -> HashSet<Uuid> {
        self.sidecar.dead()
    }

    /// The descriptor that stands on disk.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Reads lock and descriptor again: whether both are still exactly ours, or who took them. An
    /// error says that it can't be told now.
    pub fn check(&self) -> Result<Result<(), Lost>, DiskError> {
        let holder = crate::disk::lock::holder(&self.runtime.lock())?;
        let standing = match holder {
            Holder::Claimed(claim, _) if claim == self.descriptor.claim => {
                match records::read_descriptor(&self.runtime) {
                    Ok(descriptor) if descriptor == self.descriptor => Ok(()),
                    Ok(descriptor) => Err(Lost::Replaced(Box::new(descriptor))),
                    // A disk that fails for a moment takes no lease.
                    Err(RecordError::Unreadable(Unreadable::Disk(error))) => return Err(error),
                    Err(error) => Err(Lost::Descriptor(error.to_string())),
                }
            }
            Holder::Claimed(claim, _) => Err(Lost::Claimed(claim)),
            Holder::Absent => Err(Lost::Gone),
            Holder::Unverifiable(reason) => Err(Lost::Unverifiable(reason)),
        };
        Ok(standing)
    }

    /// Ends the lease: the descriptor goes if it is still exactly ours, then the lock.
    pub fn release(mut self) -> Result<(), DiskError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DiskError> {
        crash_steps_of!("release");
        self.released = true;
        records::remove_descriptor(&self.runtime, &self.descriptor)?;
        if let Some(lock) = self.lock.take() {
            lock.release()?;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released
            && let Err(error) = self.end()
        {
            // The claim of a dead process is recovered by the next one.
            tracing::warn!(%error, "releasing the lease");
        }
    }
}

/// How a lease was lost while we ran.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The lock directory is gone.
    #[error("its lock is gone")]
    Gone,
    /// Another process claims it.
    #[error("process {} claims it now", .0.pid)]
    Claimed(Claim),
    /// Another descriptor stands.
    #[error("session {} wrote another descriptor", .0.session.escaped())]
    Replaced(Box<Descriptor>),
    /// Our descriptor is gone or unreadable.
    #[error("our descriptor can't be read: {0}")]
    Descriptor(String),
    /// The lock can't be verified.
    #[error("its lock can't be verified: {0}")]
    Unverifiable(String),
}

/// Reads who is Chief.
pub fn holding(runtime: &Runtime) -> Result<Holding, DiskError> {
    records::read_holding(runtime)
}

fn parent_of_data_root(data_root: &std::path::Path) -> &std::path::Path {
    data_root.parent().unwrap_or(data_root)
}
