//! Sending, in the order asked for to each lead, and what becomes of it.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;

use super::Service;
use crate::chief::staff::{Letter, Refusal, Reply};
use crate::contract::{SessionId, Uuid};
use crate::fact::{Done, Fact, Sent};

/// Of one send: to whom, its ticket, and what is known of messages then, the new one last.
pub(super) type SendResult = (SessionId, u64, Result<Vec<Sent>, Refusal>);

/// What waits to be sent.
pub(super) enum Outgoing {
    Reply(Reply),
    Message(Letter),
    Again { lead: SessionId, id: Uuid },
}

impl Outgoing {
    fn lead(&self) -> &SessionId {
        match self {
            Outgoing::Reply(reply) => &reply.lead,
            Outgoing::Message(letter) => &letter.lead,
            Outgoing::Again { lead, .. } => lead,
        }
    }
}

impl Service {
    pub(super) fn queue(&mut self, ticket: u64, outgoing: Outgoing) {
        match self.queues.get_mut(outgoing.lead()) {
            Some(queue) => queue.push_back((ticket, outgoing)),
            None => {
                self.queues.insert(outgoing.lead().clone(), VecDeque::new());
                self.send(ticket, outgoing);
            }
        }
    }

    fn send(&mut self, ticket: u64, outgoing: Outgoing) {
        let herdr = self.setup.herdr.clone();
        let disk = self.setup.disk.clone();
        let office = Arc::clone(&self.setup.office);
        self.sending.spawn(async move {
            let lead = outgoing.lead().clone();
            let sent = async {
                match herdr.snapshot().await {
                    Err(error) => Err(Refusal::Herdr(error)),
                    Ok(snapshot) => {
                        let done = disk.run(move || match &outgoing {
                            Outgoing::Reply(reply) => office.reply(&snapshot, reply),
                            Outgoing::Message(letter) => office.message(&snapshot, letter),
                            Outgoing::Again { id, .. } => office.send_again(&snapshot, *id),
                        });
                        done.await.unwrap_or_else(|gone| Err(gone.into()))
                    }
                }
            };
            // What waits behind it must not wait for ever.
            let sent = std::panic::AssertUnwindSafe(sent).catch_unwind().await;
            (lead, ticket, sent.unwrap_or(Err(Refusal::Panicked)))
        });
    }

    pub(super) async fn sent(&mut self, lead: &SessionId, ticket: u64, result: Result<Vec<Sent>, Refusal>) {
        match result {
            Ok(sent) => {
                let id = sent.last().map(|sent| sent.id);
                // Since then the lead may have taken it, and that may have been told already.
                let known = self.on_disk(move |office| {
                    let outbox = office.outbox();
                    sent.into_iter().map(|sent| outbox.get(sent.id).cloned().unwrap_or(sent)).collect()
                });
                let known: Vec<Sent> = known.await.unwrap_or_default();
                for sent in known {
                    self.setup.facts.put(Fact::Sent(sent));
                }
                self.looking = true;
                // An empty list is of a journal that is closed.
                self.tell(ticket, id.map(Done::Sent).ok_or_else(|| Refusal::NoJournal.to_string()));
            }
            Err(refusal) => self.tell(ticket, Err(refusal.to_string())),
        }
        match self.queues.get_mut(lead).and_then(VecDeque::pop_front) {
            Some((ticket, outgoing)) => self.send(ticket, outgoing),
            None => {
                self.queues.remove(lead);
            }
        }
    }

    pub(super) async fn look_at_sent(&mut self) {
        let snapshot = self.setup.snapshots.borrow().clone();
        let looked = self.on_disk(move |office| {
            let changed = office.look_at_outbox(snapshot.as_deref());
            (changed, office.outbox().is_waiting(office.now().mono))
        });
        if let Ok((changed, waiting)) = looked.await {
            self.looking = waiting;
            let is_new = !changed.is_empty();
            for sent in changed {
                self.setup.facts.put(Fact::Sent(sent));
            }
            if is_new {
                self.tell_journal_again().await;
            }
        }
    }
}
