//! Clearing up after consoles of ours that were killed, as a new lease begins.

use super::lease::Lease;
use super::staff::Office;
use super::state_dir::StateDir;
use crate::disk::layout::InboxDir;
use crate::disk::leftovers::{self, Swept};
use crate::disk::{Unreadable, durable};

impl Office {
    /// Removes what dead consoles of ours left half done in the directories shared with leads, and
    /// undoes the removals they had begun in our own inbox. Their claims are in the file of the
    /// advisory lock; what bears none of those stays, whoever left it. So goes an identity that was not
    /// put in its place: nobody but the holder of that lock writes one. Blocking.
    pub(super) fn sweep(&self, state: &StateDir) {
        let mut swept = Swept::default();
        {
            let lease = self.lease();
            let Some(lease) = lease.as_ref() else { return };
            if let Err(error) = self.sweep_under(lease, state, &mut swept) {
                swept.stays.push(error.to_string());
            }
        }
        if swept != Swept::default() {
            let Swept { removed, restored, stays } = swept;
            tracing::info!(removed, restored, ?stays, "swept what dead consoles left");
        }
    }

    fn sweep_under(&self, lease: &Lease, state: &StateDir, swept: &mut Swept) -> Result<(), Unreadable> {
        let (dead, by) = (lease.dead_claims(), lease.own_claim().id);
        let is_dead = |id| dead.contains(&id);
        leftovers::sweep(self.runtime().root(), by, &is_dead, swept)?;
        let inboxes = self.runtime().inboxes();
        for name in durable::list(&inboxes)? {
            // What is no inbox, or can't be used as one, is named by the doctor.
            let inbox = inboxes.join(name);
            if let Err(error) = leftovers::sweep(&inbox, by, &is_dead, swept) {
                swept.stays.push(format!("{}: {error}", durable::shown(&inbox)));
            }
        }
        leftovers::undo_removals(&self.own_inbox(lease), by, swept)?;
        leftovers::remove_temporaries(&state.identity_file(), swept)
    }

    /// Our inbox, worked on by our claim.
    pub(super) fn own_inbox(&self, lease: &Lease) -> InboxDir {
        self.runtime().inbox(self.session()).worked_on_by(lease.own_claim())
    }
}
