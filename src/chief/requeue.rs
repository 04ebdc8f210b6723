//! Carrying over the queue: a new lease makes leads delete what is still queued under the old one,
//! so what was not delivered is sent again.

use std::collections::{BTreeMap, HashSet};

use super::journal::Event;
use super::lease::Lease;
use super::staff::Office;
use crate::contract::{Kind, Message, SessionId, Timestamp, Uuid};
use crate::disk::inbox::{self, Content};
use crate::disk::layout::InboxDir;
use crate::disk::{DiskError, crash_point, durable};
use crate::fact::{Fate, Sent};
use crate::herd::{Lead, Roster};
use crate::pi::delivered::delivered;

/// What one look at the queue of earlier leases came to.
#[derive(Debug, Default)]
pub struct CarriedOver {
    /// What became of messages, and which were sent.
    pub told: Vec<Sent>,
    /// What is to be looked at again: its lead is not here, or has not let go of it, or it could not be
    /// written.
    pub left: Vec<Message>,
    /// Whether some of that waits for nothing but a lead's next look into its inbox.
    pub soon: bool,
}

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
                if !entry.is_open() || self.owed(entry.id).is_some() {
                    found.remove(&entry.id);
                    continue;
                }
                match journal.message(entry) {
                    Ok(message) => drop(found.insert(message.id, message)),
                    // If it still stands in the inbox, it was found there.
                    Err(error) => tracing::warn!(%error, id = %entry.id, "reading what was sent"),
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

    /// Sends again, under the lease we hold now, what no lead was given; what is doubtful is left to the
    /// operator. Each lead's messages keep their order. While `patient`, what stands in an inbox is left
    /// to its lead, who removes it, or is just handing it over. Blocking.
    ///
    /// # Errors
    /// The lease can't be checked.
    pub fn carry_over(
        &self,
        messages: &[Message],
        roster: &Roster,
        patient: bool,
    ) -> Result<CarriedOver, DiskError> {
        let mut carried = CarriedOver::default();
        let lease = self.lease();
        let Some(lease) = lease.as_ref() else { return Ok(carried) };
        if lease.check()?.is_err() {
            return Ok(carried);
        }
        // What stands is looked at before the session is read, and only once: what is handed over and
        // removed between the two would else be in neither.
        let mut standing: BTreeMap<&SessionId, HashSet<Uuid>> = BTreeMap::new();
        let mut proofs: BTreeMap<&SessionId, Option<Vec<Uuid>>> = BTreeMap::new();
        let mut waiting: HashSet<&SessionId> = HashSet::new();
        for message in messages {
            if message.lease == lease.id() {
                // Journalled before this, and not published.
                let lead = roster.lead(&message.lead);
                if lead.is_none() || waiting.contains(&message.lead) {
                    carried.left.push(message.clone());
                    waiting.insert(&message.lead);
                    continue;
                }
                if !self.may_answer(message, lead) {
                    self.owe(message.id, Fate::Unknown);
                    carried.told.push(sent_of(message, Fate::Unknown));
                    continue;
                }
                if !self.publish_again(message.clone(), lease, &mut carried) {
                    waiting.insert(&message.lead);
                }
                continue;
            }
            // An attempt before this one may have come so far.
            let is_settled = self.journal().as_ref().is_some_and(|journal| {
                journal.index().sent_entry(message.id).is_some_and(|entry| !entry.is_open())
            });
            if is_settled {
                continue;
            }
            let lead = roster.lead(&message.lead);
            let standing = standing.entry(&message.lead).or_insert_with(|| {
                let of_lead = messages.iter().filter(|it| it.lead == message.lead);
                of_lead.filter(|it| self.stands(it)).map(|it| it.id).collect()
            });
            let stands = standing.contains(&message.id);
            if waiting.contains(&message.lead) || lead.is_none() || patient && stands {
                carried.soon |= patient && stands;
                carried.left.push(message.clone());
                waiting.insert(&message.lead);
                continue;
            }
            let proof = proofs.entry(&message.lead).or_insert_with(|| {
                let ids: Vec<Uuid> =
                    messages.iter().filter(|it| it.lead == message.lead).map(|it| it.id).collect();
                delivered(&super::staff::path_of(lead?.session_file.as_ref()?), &ids).ok()
            });
            let fate = match proof {
                Some(ids) if ids.contains(&message.id) => Fate::Delivered,
                // Its session can't be asked, or the ask it answers is gone: the operator decides.
                None => Fate::Unknown,
                Some(_) if !self.may_answer(message, lead) => Fate::Unknown,
                Some(_) => Fate::Again,
            };
            if fate == Fate::Again
                && let Some(lead) = lead
            {
                self.expect(lead);
            }
            let settled = self.settle(message, fate, lease, &mut carried).unwrap_or_else(|error| {
                tracing::warn!(%error, id = %message.id, "journalling what became of a message");
                carried.left.push(message.clone());
                false
            });
            if !settled {
                waiting.insert(&message.lead);
            }
        }
        Ok(carried)
    }

    /// Whether it may still be taken by its lead. One that can't be told of may.
    fn stands(&self, message: &Message) -> bool {
        let inbox = self.runtime().inbox(&message.lead);
        !matches!(durable::kind(&inbox.message(message.id)), Ok(None))
            && !inbox::is_quarantined(&inbox, message.id)
    }

    /// Whether a reply answers what its lead asks now, and nothing else does already.
    fn may_answer(&self, message: &Message, lead: Option<&Lead>) -> bool {
        let asks = lead.and_then(|lead| lead.pending_ask.as_ref()).map(|ask| ask.ask);
        match message.ask {
            Some(ask) => asks == Some(ask) && !self.outbox().is_answering(&message.lead, ask),
            None => true,
        }
    }

    /// Journals what becomes of a message, and does it; whether all of it is done.
    fn settle(
        &self,
        message: &Message,
        fate: Fate,
        lease: &Lease,
        carried: &mut CarriedOver,
    ) -> Result<bool, DiskError> {
        // Written when the old one was: leads put what they take in the order of its time.
        self.settle_as(message, fate, message.created_at, lease, carried)
    }

    /// The same, where what is sent again is written at that time.
    fn settle_as(
        &self,
        message: &Message,
        fate: Fate,
        at: Timestamp,
        lease: &Lease,
        carried: &mut CarriedOver,
    ) -> Result<bool, DiskError> {
        let again = Message { id: Uuid::random(), lease: lease.id(), created_at: at, ..message.clone() };
        {
            let mut journal = self.journal();
            let Some(journal) = journal.as_mut() else { return Ok(true) };
            let mut events = Vec::new();
            if journal.index().sent_entry(message.id).is_none() {
                // Published, and the journal never came to know.
                events.push(Event::Sent(message));
            }
            events.push(match fate {
                Fate::Again => Event::Requeued { old: message.id, again: &again },
                fate => Event::Fate { id: message.id, fate },
            });
            journal.append(&events, self.now().wall)?;
        }
        let sent = sent_of(message, fate);
        self.outbox().settle(message.id, fate);
        carried.told.push(sent.clone());
        if fate != Fate::Again {
            // A proof of what is unknown may turn up.
            self.outbox().add_earlier(sent, message.lease);
            return Ok(true);
        }
        crash_point!("carry_over:journalled");
        Ok(self.publish_again(again, lease, carried))
    }

    /// Sends one message again, under the lease we hold. Gives what became of the old one, and the new
    /// one.
    pub(super) fn settle_again(&self, message: &Message, lease: &Lease) -> Result<Vec<Sent>, DiskError> {
        let mut carried = CarriedOver::default();
        self.settle_as(message, Fate::Again, self.now().wall, lease, &mut carried)?;
        // The operator asked for it now, and is told that it is not done.
        for message in &carried.left {
            self.owe(message.id, Fate::Unsent);
            carried.told.push(sent_of(message, Fate::Unsent));
        }
        if let (false, Some(journal)) = (carried.left.is_empty(), self.journal().as_mut()) {
            self.pay(journal, None, self.now().wall)?;
        }
        Ok(carried.told)
    }

    /// Publishes what is journalled; what can't be now is left for the next look. Whether it is there.
    fn publish_again(&self, again: Message, lease: &Lease, carried: &mut CarriedOver) -> bool {
        let inbox = self.runtime().inbox(&again.lead).worked_on_by(lease.own_claim());
        match inbox::publish(self.agent_dir().path(), &inbox, &again) {
            Ok(_) => {
                crash_point!("carry_over:published");
                let sent = sent_of(&again, Fate::Queued);
                self.outbox().add(sent.clone(), lease.id());
                carried.told.push(sent);
                true
            }
            Err(error) => {
                tracing::warn!(%error, id = %again.id, "carrying over a message");
                carried.left.push(again);
                false
            }
        }
    }
}

/// A message of ours as it is told.
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::time::Instant;

    use super::*;
    use crate::chief::journal::Journal;
    use crate::contract::Timestamp;
    use crate::disk::AgentDir;

    #[test]
    fn what_could_not_be_sent_is_not_taken_for_queued_before_the_journal_knows() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/"));
        let runtime = agent_dir.runtime(OsStr::new("/h.sock"));
        let [us, lead] = ["us", "lead"].map(|id| SessionId::new(id).unwrap());
        let office = Office::new(agent_dir, runtime, us.clone(), Instant::now());
        let at = Timestamp::from_millis(1);
        let message = Message {
            id: Uuid::random(),
            lease: Uuid::random(),
            kind: Kind::ChiefMessage,
            from: us,
            to: lead.clone(),
            lead,
            ask: None,
            text: "never written".into(),
            created_at: at,
        };
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        journal.append(&[Event::Sent(&message)], at).unwrap();
        *office.journal() = Some(journal);
        assert_eq!(office.undelivered(Vec::new()), std::slice::from_ref(&message));
        // The disk was full, also for this.
        office.owe(message.id, Fate::Unsent);
        assert_eq!(office.undelivered(Vec::new()), []);
        let journal = &mut *office.journal();
        let journal = journal.as_mut().unwrap();
        office.pay(journal, None, at).unwrap();
        let known = Journal::open(&dir.path().join("journal")).unwrap();
        assert_eq!(known.index().sent_entry(message.id).unwrap().fate, Some(Fate::Unsent));
        assert!(office.owed(message.id).is_none());
    }
}
