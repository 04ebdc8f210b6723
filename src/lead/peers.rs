//! A lead's presence among its peers: a record that stands for as long as its process lock does.

use crate::contract::{Claim, PeerRecord, SessionId, Timestamp};
use crate::disk::records::{self, RecordError};
use crate::disk::{AgentDir, DiskError, LockError, ProcessLock, Runtime, Unreadable, durable};

use super::{About, Place};

/// Why a presence was not published. Nothing of it is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresenceError {
    /// Another process is this session's presence.
    #[error("this session is present already: {0}")]
    Lock(#[from] LockError),
    /// The disk failed, or the record is not valid.
    #[error("the presence can't be written: {0}")]
    Record(#[from] RecordError),
}

impl From<DiskError> for PresenceError {
    fn from(error: DiskError) -> Self {
        Self::Record(RecordError::Unreadable(Unreadable::Disk(error)))
    }
}

/// A presence that this process holds, or joined.
#[derive(Debug)]
pub struct Presence {
    runtime: Runtime,
    /// None where another process holds it.
    lock: Option<ProcessLock>,
    record: PeerRecord,
}

impl Presence {
    /// Publishes the presence of `session`: the lock, a record of where it is, and then, under the
    /// same claim, what it works on.
    ///
    /// # Errors
    /// [`PresenceError`].
    pub fn publish(
        agent_dir: &AgentDir,
        runtime: &Runtime,
        session: &SessionId,
        place: &Place,
        about: &About,
        now: Timestamp,
    ) -> Result<Self, PresenceError> {
        durable::ensure_directories(agent_dir.path(), &runtime.peer_records())?;
        let lock = ProcessLock::acquire(&runtime.peer_lock(session), Claim::own(), &|_| false)?;
        let record = PeerRecord {
            session: session.clone(),
            pane: place.pane.clone(),
            tab: place.tab.clone(),
            workspace: place.workspace.clone(),
            claim: lock.claim(),
            updated_at: now,
            name: about.name.clone(),
            cwd: about.cwd.clone(),
            repo: None,
            branch: None,
            workspace_label: None,
        };
        let mut presence = Self { runtime: runtime.clone(), lock: Some(lock), record };
        // Should either fail, the lock is released as it is dropped, which voids the record.
        presence.write()?;
        presence.record.repo.clone_from(&about.repo);
        presence.record.branch.clone_from(&about.branch);
        presence.record.workspace_label.clone_from(&about.workspace_label);
        presence.write()?;
        Ok(presence)
    }

    /// The presence of `session` that another process holds.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of_another(runtime: &Runtime, session: &SessionId) -> Result<Self, RecordError> {
        let record = records::read_peer(runtime, session)?;
        Ok(Self { runtime: runtime.clone(), lock: None, record })
    }

    fn write(&self) -> Result<(), PresenceError> {
        let bytes = self.record.to_bytes().map_err(RecordError::from)?;
        Ok(durable::publish(&self.runtime.peer(&self.record.session), &bytes)?)
    }

    /// The claim that proves it.
    pub fn claim(&self) -> Claim {
        self.record.claim
    }

    /// Whether this process holds it.
    pub fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether the record stands exactly as it was written, under our claim; one that another
    /// process holds, whether it still does.
    pub fn stands(&self) -> bool {
        records::read_peer(&self.runtime, &self.record.session).is_ok_and(|record| match self.lock {
            Some(_) => record == self.record,
            None => record.claim == self.record.claim,
        })
    }

    /// Withdraws it, if this process holds it: the record if it is still ours, then the lock.
    ///
    /// # Errors
    /// The disk's; the lock is released nevertheless.
    pub fn withdraw(mut self) -> Result<(), DiskError> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        let path = self.runtime.peer(&self.record.session);
        let removed = if self.stands() {
            durable::unlink(&path).and_then(|_| durable::sync_parent(&path))
        } else {
            Ok(())
        };
        lock.release()?;
        removed
    }
}
