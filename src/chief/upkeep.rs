//! The journal's upkeep: following it, and removing what is old.

use std::path::Path;

use super::journal::{Journal, JournalError, Month, Needed, Plan};
use super::staff::Office;
use crate::contract::Timestamp;
use crate::disk::layout::InboxDir;
use crate::disk::{Unreadable, durable, records};

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Why nothing was removed, or not all that should have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpkeepError {
    /// What else needs the journal can't be told.
    #[error("our inbox can't be read, so it can't be told what is still needed: {0}")]
    Inbox(Unreadable),
    /// The journal can't be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The month from which on everything of the last `days` days lies.
pub fn kept_from(days: u32, now: Timestamp) -> Month {
    Month::of(Timestamp::from_millis(now.as_millis().saturating_sub(u64::from(days) * DAY)))
}

impl Office {
    /// Reads the journal in `directory`, or what was appended to it since; says whether anything
    /// changed. Blocking.
    pub fn read_journal(&self, directory: &Path) -> Result<bool, JournalError> {
        let mut journal = self.journal();
        match journal.as_mut() {
            Some(known) => known.follow(),
            None => {
                *journal = Some(Journal::open(directory)?);
                Ok(true)
            }
        }
    }

    /// Removes the months that end before the last `days` days, as far as nothing needs them. A
    /// failure is no reason not to be Chief. Only while the advisory lock is held. Blocking.
    pub fn prune_older(&self, days: u32) {
        let plan = self.plan_pruning(kept_from(days, self.now().wall));
        match plan.and_then(|plan| self.prune(&plan).map(|()| plan)) {
            Ok(plan) => {
                for gone in plan.gone {
                    tracing::info!(month = %gone.month, events = gone.tally.events, "removed from the journal");
                }
            }
            Err(error) => tracing::warn!(%error, "removing what is old from the journal"),
        }
    }

    /// What would go of the months before `before`; nothing without a journal. Blocking.
    pub fn plan_pruning(&self, before: Month) -> Result<Plan, UpkeepError> {
        let now = self.now().wall;
        let journal = self.journal();
        let Some(journal) = journal.as_ref() else { return Ok(Plan::default()) };
        let inbox = self.runtime().inbox(self.session());
        let names = durable::list(inbox.path()).map_err(UpkeepError::Inbox)?;
        let in_inbox = names.iter().filter_map(|name| InboxDir::message_id(name)).collect();
        let mut needed = Needed { in_inbox, ..Needed::default() };
        for lead in journal.index().leads() {
            match records::read_lead(self.runtime(), lead) {
                Ok(record) => {
                    needed.pending.extend(record.pending_ask.map(|pending| (lead.clone(), pending.ask)));
                }
                Err(error) if error.is_missing() => {}
                Err(_) => drop(needed.unreadable.insert(lead.clone())),
            }
        }
        Ok(journal.plan(before, &needed, now))
    }

    /// Removes what `plan` says. Only while the advisory lock is held. Blocking.
    pub fn prune(&self, plan: &Plan) -> Result<(), UpkeepError> {
        let now = self.now().wall;
        match self.journal().as_mut() {
            Some(journal) => Ok(journal.prune(plan, now)?),
            None => Ok(()),
        }
    }
}
