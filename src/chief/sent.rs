//! What was sent, as the journal keeps it over restarts, and sending again what may have been
//! discarded.

use std::collections::HashMap;

use super::journal::{Journal, SentEntry};
use super::requeue::sent_of;
use super::staff::{Office, Refusal, path_of, target};
use crate::contract::rendered::Parts;
use crate::contract::{Kind, Message, SessionId, Untrusted, Uuid};
use crate::fact::{Fate, Sent, SentCounts};
use crate::herdr::Snapshot;
use crate::pi::delivered::delivered;

/// Messages to one lead that are told of after a restart.
const OF_ONE_LEAD: usize = 10;
/// Messages to all of them.
const OF_ALL: usize = 400;
/// Leases that one message is followed over.
const CARRIED_OVER: usize = 10_000;
/// Messages of earlier runs whose fate is still followed.
const FOLLOWED: usize = 200;

impl SentEntry {
    /// What is known of it; what nothing is known of stands in the lead's inbox.
    fn told_fate(&self) -> Fate {
        match self.again {
            Some(_) => Fate::Again,
            None => self.fate.unwrap_or(Fate::Queued),
        }
    }
}

impl Office {
    /// The newest messages that were sent to each lead, the oldest first, with their fates. Blocking.
    pub fn sent_before(&self) -> Vec<Sent> {
        let journal = self.journal();
        let Some(journal) = journal.as_ref() else { return Vec::new() };
        let mut entries: Vec<&SentEntry> = journal.index().sent().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, entry.id)));
        let mut of_lead: HashMap<_, usize> = HashMap::new();
        entries.retain(|entry| {
            let count = of_lead.entry(&entry.lead).or_default();
            *count += 1;
            *count <= OF_ONE_LEAD
        });
        entries.truncate(OF_ALL);
        let outbox = self.outbox();
        // What is followed is known better.
        let told = |entry: &SentEntry| match outbox.get(entry.id) {
            Some(sent) => Some(sent.clone()),
            None => written(journal, entry).map(|message| sent_of(&message, entry.told_fate())),
        };
        entries.into_iter().rev().filter_map(told).collect()
    }

    /// How many messages of ours have which fate, over the whole journal. Blocking.
    pub fn sent_counts(&self) -> SentCounts {
        let mut counts = SentCounts::new();
        if let Some(journal) = self.journal().as_ref() {
            for entry in journal.index().sent() {
                let of_lead = counts.entry(entry.lead.clone()).or_default();
                *of_lead.entry(entry.told_fate()).or_default() += 1;
            }
        }
        counts
    }

    /// Takes up again what the journal leaves open of earlier runs: what was taken, or may have been
    /// discarded, may turn out to be delivered. Blocking.
    pub fn follow_earlier(&self) {
        let journal = self.journal();
        let Some(journal) = journal.as_ref() else { return };
        let mut entries: Vec<&SentEntry> = (journal.index().sent())
            .filter(|entry| {
                let fate = entry.told_fate();
                // What is queued is carried over.
                fate != Fate::Queued && (fate.is_provable() || !fate.is_final(entry.kind))
            })
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, entry.id)));
        for entry in entries.into_iter().take(FOLLOWED) {
            if let Some(message) = written(journal, entry) {
                self.outbox().add_earlier(sent_of(&message, entry.told_fate()), message.lease);
            }
        }
    }

    /// What became of the message that was sent as `id`, by whatever process of ours and under whatever
    /// lease: of that in its place, if it was carried over. None if none was sent so. One that could
    /// not be put into the inbox is sent now, as by [`Office::send_again`]. Blocking.
    ///
    /// # Errors
    /// [`Refusal::OtherUnderId`] if it was to another lead, another ask, or another text.
    pub(super) fn sent_already(
        &self,
        snapshot: &Snapshot,
        id: Uuid,
        (lead, ask): (&SessionId, Option<Uuid>),
        (text, has_files): (&Untrusted, bool),
    ) -> Result<Option<Vec<Sent>>, Refusal> {
        let last = {
            let journal = self.journal();
            let journal = journal.as_ref().ok_or(Refusal::NoJournal)?;
            let index = journal.index();
            let Some(first) = index.sent_entry(id) else { return Ok(None) };
            let message = journal.message(first)?;
            // Files may be others by now, or gone.
            let says_it = match has_files {
                false => message.text == *text,
                true => {
                    let Parts { said, attached } = Parts::of(&message.text);
                    attached.is_some() && said == *text
                }
            };
            if (&message.lead, message.ask) != (lead, ask) || !says_it {
                return Err(Refusal::OtherUnderId(id));
            }
            let next = |entry: &&SentEntry| index.sent_entry(entry.again?);
            // However a journal was damaged, this ends.
            let last = std::iter::successors(Some(first), next).take(CARRIED_OVER).last().unwrap_or(first);
            let known = self.outbox().get(last.id).map(|sent| sent.fate);
            let fate = self.owed(last.id).or(known).unwrap_or_else(|| last.told_fate());
            sent_of(&journal.message(last)?, fate)
        };
        match last.fate {
            Fate::Unsent => self.send_again(snapshot, last.id).map(Some),
            _ => Ok(Some(vec![last])),
        }
    }

    /// Sends what may have been discarded, or was not sent, again: as a new message under the lease
    /// we hold, and a reply only while its very ask is pending. Gives what became of the old one, and
    /// the new one. Blocking: for the disk thread, with a snapshot taken just before.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was written then.
    pub fn send_again(&self, snapshot: &Snapshot, id: Uuid) -> Result<Vec<Sent>, Refusal> {
        let message = {
            let journal = self.journal();
            let journal = journal.as_ref().ok_or(Refusal::NoJournal)?;
            let entry = journal.index().sent_entry(id).ok_or(Refusal::NotSent)?;
            // What is queued in the journal is carried over, whatever became known since.
            let known = self.outbox().get(id).map(|sent| sent.fate);
            let fates = [Some(self.owed(id).unwrap_or_else(|| entry.told_fate())), known];
            if let Some(fate) = fates.into_iter().flatten().find(|fate| !fate.is_doubtful()) {
                return Err(Refusal::NotDoubtful(fate.as_str()));
            }
            journal.message(entry)?
        };
        let roster = self.roster(snapshot).map_err(Refusal::Records)?;
        let lead = target(&roster, &message.lead)?;
        if message.kind == Kind::ChiefReply {
            match &lead.pending_ask {
                Some(ask) if Some(ask.ask) == message.ask => {}
                Some(_) => return Err(Refusal::AnotherAsk),
                None => return Err(Refusal::NotPending),
            }
        }
        let file = lead.session_file.as_ref().map(path_of);
        if let Some(Ok(found)) = file.map(|file| delivered(&file, &[id]))
            && found.contains(&id)
        {
            // The next look tells so.
            return Err(Refusal::NotDoubtful(Fate::Delivered.as_str()));
        }
        let lease = self.lease();
        let lease = lease.as_ref().ok_or(Refusal::NotChief)?;
        lease.check()?.map_err(Refusal::Lost)?;
        if message.ask.is_some_and(|ask| self.outbox().is_answering(&message.lead, ask)) {
            return Err(Refusal::AlreadyReplied);
        }
        self.expect(lead);
        let sent = self.settle_again(&message, lease);
        sent.map_err(|error| if error.is_full() { Refusal::DiskFull } else { Refusal::Disk(error) })
    }
}

/// What was written; none where it can't be read any more.
fn written(journal: &Journal, entry: &SentEntry) -> Option<Message> {
    journal
        .message(entry)
        .inspect_err(|error| tracing::warn!(%error, id = %entry.id, "reading what was sent"))
        .ok()
}
