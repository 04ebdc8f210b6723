//! Carrying over the queue: a new lease makes leads delete what is still queued under the old one,
//! so what was not delivered is sent again.

use std::collections::BTreeMap;

use super::journal::Event;
use super::staff::Office;
use crate::contract::{Kind, Message, SessionId, Uuid};
use crate::disk::inbox::{self, Content};
use crate::disk::layout::InboxDir;
use crate::disk::{DiskError, durable};
use crate::fact::{Fate, Sent};
use crate::herd::Roster;
use crate::pi::delivered::delivered;

impl Office {
    /// Our messages that stand in leads' inboxes. To be asked before a new lease begins, after which
    /// leads delete them. Blocking.
    pub fn queued(&self) -> Vec<Message> {
        let mut found = Vec::new();
        for inbox in self.inboxes() {
            for entry in inbox::list(&inbox).unwrap_or_default() {
                if let Content::Valid(message) = entry.content
                    && message.from == *self.session()
                    && matches!(message.kind, Kind::ChiefMessage | Kind::ChiefReply)
                    && !entry.quarantined
                {
                    found.push(*message);
                }
            }
        }
        found
    }

    /// Our messages of earlier leases that may not be delivered yet, the oldest first: those `queued`
    /// and those the journal knows, without those it knows to be settled.
    pub fn undelivered(&self, queued: Vec<Message>) -> Vec<Message> {
        let mut found: BTreeMap<Uuid, Message> =
            queued.into_iter().map(|message| (message.id, message)).collect();
        if let Some(journal) = self.journal().as_ref() {
            for entry in journal.index().sent() {
                if entry.is_open() {
                    found.insert(entry.message.id, (*entry.message).clone());
                } else {
                    found.remove(&entry.message.id);
                }
            }
        }
        let mut messages: Vec<Message> = found.into_values().collect();
        messages.sort_by_key(|message| (message.created_at, message.id));
        messages
    }

    fn inboxes(&self) -> Vec<InboxDir> {
        let root = self.runtime().inboxes();
        let names = durable::list(&root).unwrap_or_default();
        names.iter().filter_map(|name| Some(self.runtime().inbox_of_hash(name.to_str()?))).collect()
    }

    /// Sends what was not delivered again under the lease we hold now; what is doubtful is left to
    /// the operator. Gives what became of each, and what was sent. Blocking.
    pub fn carry_over(&self, messages: &[Message], roster: &Roster) -> Result<Vec<Sent>, DiskError> {
        let lease = self.lease();
        let Some(lease) = lease.as_ref() else { return Ok(Vec::new()) };
        if lease.check()?.is_err() {
            return Ok(Vec::new());
        }
        let mut told = Vec::new();
        let mut proofs: BTreeMap<SessionId, Option<Vec<Uuid>>> = BTreeMap::new();
        for message in messages {
            // An attempt before this one may have come so far.
            let is_settled = self.journal().as_ref().is_some_and(|journal| {
                journal.index().sent_entry(message.id).is_some_and(|entry| !entry.is_open())
            });
            if message.lease == lease.id() || is_settled {
                continue;
            }
            let proof = proofs.entry(message.lead.clone()).or_insert_with(|| {
                let ids: Vec<Uuid> =
                    messages.iter().filter(|it| it.lead == message.lead).map(|it| it.id).collect();
                let file = roster.lead(&message.lead)?.session_file.as_ref()?;
                delivered(&super::staff::path_of(file), &ids).ok()
            });
            let lead = roster.lead(&message.lead);
            let asks = lead.and_then(|lead| lead.pending_ask.as_ref()).map(|ask| ask.ask);
            let fate = match proof {
                Some(ids) if ids.contains(&message.id) => Fate::Delivered,
                // Its session can't be asked, or the ask it answers is gone: the operator decides.
                None => Fate::Unknown,
                Some(_) if message.kind == Kind::ChiefReply && asks != message.ask => Fate::Unknown,
                Some(_) => Fate::Again,
            };
            if fate == Fate::Again
                && let Some(lead) = lead
            {
                self.expect(lead);
            }
            told.extend(self.settle(message, fate, lease.id())?);
        }
        Ok(told)
    }

    fn settle(&self, message: &Message, fate: Fate, lease: Uuid) -> Result<Vec<Sent>, DiskError> {
        if fate == Fate::Again {
            return self.publish_again(message, lease);
        }
        let mut journal = self.journal();
        let Some(journal) = journal.as_mut() else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        if journal.index().sent_entry(message.id).is_none() {
            // Published, and the journal never came to know.
            events.push(Event::Sent(message));
        }
        events.push(Event::Fate { id: message.id, fate });
        journal.append(&events, self.now().wall)?;
        let sent = sent_of(message, fate);
        // A proof of what is unknown may turn up.
        self.outbox().settle(message.id, fate);
        self.outbox().add_earlier(sent.clone(), message.lease);
        Ok(vec![sent])
    }

    /// Puts a message into its lead's inbox under a new id and this lease. Gives what became of the
    /// old one, and the new one.
    pub(super) fn publish_again(&self, message: &Message, lease: Uuid) -> Result<Vec<Sent>, DiskError> {
        let now = self.now().wall;
        let mut journal = self.journal();
        let Some(journal) = journal.as_mut() else { return Ok(Vec::new()) };
        let again = Message { id: Uuid::random(), lease, created_at: now, ..message.clone() };
        let mut events = Vec::new();
        if journal.index().sent_entry(message.id).is_none() {
            events.push(Event::Sent(message));
        }
        events.push(Event::Sent(&again));
        events.push(Event::Requeued { old: message.id, new: again.id });
        events.push(Event::Fate { id: message.id, fate: Fate::Again });
        journal.append(&events, now)?;
        self.outbox().settle(message.id, Fate::Again);
        let fate = match inbox::publish(self.agent_dir().path(), &self.runtime().inbox(&again.lead), &again) {
            Ok(_) => Fate::Queued,
            Err(error) => {
                tracing::warn!(%error, id = %again.id, "sending a message again");
                journal.append(&[Event::Fate { id: again.id, fate: Fate::Unsent }], now)?;
                Fate::Unsent
            }
        };
        let sent = sent_of(&again, fate);
        self.outbox().add(sent.clone(), lease);
        Ok(vec![sent_of(message, Fate::Again), sent])
    }
}

/// What is known of a message of ours.
pub(super) fn sent_of(message: &Message, fate: Fate) -> Sent {
    Sent {
        id: message.id,
        kind: message.kind,
        lead: message.lead.clone(),
        ask: message.ask,
        text: message.text.clone(),
        at: message.created_at,
        fate,
    }
}
