//! When the service sees to what earlier leases left undelivered.

use std::time::{Duration, Instant};

use super::Service;
use crate::contract::Message;
use crate::fact::Fact;

/// How often what earlier leases left is looked at while leads are about to let go of it; they look
/// into their inboxes twice a second.
const LOOK_AT_QUEUE: Duration = Duration::from_millis(300);
/// The same while it waits for leads that are not here.
const LOOK_FOR_LEADS: Duration = Duration::from_secs(5);
/// How long a lead is given to let go of what stands in its inbox: longer than it takes to hand over all
/// that it takes at once, on a slow disk.
const LET_GO: Duration = Duration::from_secs(30);
/// What may not be delivered yet of earlier leases; never empty.
pub(super) struct Queue {
    messages: Vec<Message>,
    /// When to see to it.
    at: Instant,
    /// Until when leads are given time to let go of it.
    patient_until: Instant,
}

impl Queue {
    /// To be seen to at once; none if there is nothing.
    pub(super) fn of(messages: Vec<Message>) -> Option<Self> {
        let now = Instant::now();
        (!messages.is_empty()).then(|| Self { messages, at: now, patient_until: now + LET_GO })
    }

    /// When to see to it.
    pub(super) fn at(&self) -> Instant {
        self.at
    }
}

impl Service {
    /// Sends again what earlier leases left undelivered, as far as it is known now. Without Herdr it
    /// waits.
    pub(super) async fn carry_over(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        let now = Instant::now();
        queue.at = now + LOOK_AT_QUEUE;
        let Some(snapshot) = self.setup.snapshots.borrow().clone() else {
            self.queue = Some(queue);
            return;
        };
        let (messages, patient) = (std::mem::take(&mut queue.messages), now < queue.patient_until);
        let carried = self.on_disk(move |office| {
            let carried = match office.roster(&snapshot) {
                Ok(roster) => {
                    office.carry_over(&messages, &roster, patient).map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            carried.map_err(|error| (error, messages))
        });
        match carried.await {
            Ok(Ok(carried)) => {
                let is_new = !carried.told.is_empty();
                self.looking |= is_new;
                for sent in carried.told {
                    self.setup.facts.put(Fact::Sent(sent));
                }
                if is_new {
                    self.tell_journal_again().await;
                }
                queue.messages = carried.left;
                if !carried.soon {
                    queue.at = now + LOOK_FOR_LEADS;
                }
            }
            Ok(Err((error, messages))) => {
                tracing::warn!(error, "carrying over the queue");
                queue.messages = messages;
            }
            Err(error) => tracing::warn!(%error, "carrying over the queue"),
        }
        self.queue = Some(queue).filter(|queue| !queue.messages.is_empty());
    }
}
