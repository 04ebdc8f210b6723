//! Putting asks off, as the journal keeps it.

use super::journal::Event;
use super::staff::Office;
use crate::contract::{SessionId, Uuid};
use crate::disk::{DiskError, records};
use crate::fact::Until;

/// Why an ask is not put off, or does not come back. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnoozeError {
    /// Only the holder of the lease writes.
    #[error("only the Chief keeps what is put off")]
    NotChief,
    /// The journal is not open.
    #[error("the journal is not open: see headman doctor")]
    NoJournal,
    /// The lead does not ask that.
    #[error("the ask is not pending any more: it was answered or withdrawn")]
    NotPending,
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl Office {
    /// Puts an ask off that is pending now, or has it back where `until` is none. Blocking.
    ///
    /// # Errors
    /// [`SnoozeError`]
    pub fn snooze(&self, lead: &SessionId, ask: Uuid, until: Option<Until>) -> Result<(), SnoozeError> {
        let lease = self.lease();
        if !lease.as_ref().is_some_and(|lease| matches!(lease.check(), Ok(Ok(())))) {
            return Err(SnoozeError::NotChief);
        }
        let is_pending = || {
            let record = records::read_lead(self.runtime(), lead).ok();
            record.and_then(|record| record.pending_ask).is_some_and(|pending| pending.ask == ask)
        };
        let event = match until {
            Some(until) if is_pending() => Event::Snoozed { lead, ask, until },
            Some(_) => return Err(SnoozeError::NotPending),
            None => Event::Unsnoozed { lead, ask },
        };
        let mut journal = self.journal();
        let journal = journal.as_mut().ok_or(SnoozeError::NoJournal)?;
        journal.append(&[event], self.now().wall)?;
        Ok(())
    }
}
