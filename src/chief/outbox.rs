//! What we sent and what became of it: queued → taken → answered, as far as it can be known.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contract::{Kind, SessionId, Uuid};
use crate::disk::inbox;
use crate::disk::records;
use crate::disk::{Runtime, durable};
use crate::fact::{Fate, Sent};

/// Messages whose fate is final that are still remembered.
const MAX_SETTLED: usize = 200;

/// How long a marker may stand before it is taken for a quarantine: a removal puts one up for its
/// own duration, too.
const REMOVAL_TAKES_AT_MOST: Duration = Duration::from_secs(2);

/// The messages of this run, by id.
#[derive(Debug, Default, Clone)]
pub struct Outbox {
    sent: BTreeMap<Uuid, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    sent: Sent,
    lease: Uuid,
    /// Since when a quarantine marker is seen, on the monotonic clock.
    marked: Option<Duration>,
}

impl Outbox {
    /// Adds what was just made durable under `lease`.
    pub fn add(&mut self, sent: Sent, lease: Uuid) {
        self.sent.insert(sent.id, Entry { sent, lease, marked: None });
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let mut settled: Vec<_> = (self.sent.values())
            .filter(|entry| entry.sent.fate.is_final(entry.sent.kind))
            .map(|entry| (entry.sent.at, entry.sent.id))
            .collect();
        settled.sort();
        let surplus = settled.len().saturating_sub(MAX_SETTLED);
        for (_, id) in &settled[..surplus] {
            self.sent.remove(id);
        }
    }

    /// Whether anything may still become known.
    pub fn is_waiting(&self) -> bool {
        self.sent.values().any(|entry| !entry.sent.fate.is_final(entry.sent.kind))
    }

    /// Whether a reply to that ask stands in the lead's inbox.
    pub fn is_answering(&self, lead: &SessionId, ask: Uuid) -> bool {
        self.sent.values().any(|entry| {
            entry.sent.fate == Fate::Queued && entry.sent.ask == Some(ask) && entry.sent.lead == *lead
        })
    }

    /// How many stand in inboxes.
    pub fn queued(&self) -> usize {
        self.sent.values().filter(|entry| entry.sent.fate == Fate::Queued).count()
    }

    /// Looks again at what is not final, and gives back what changed. `lease` is the one that
    /// stands unbroken, if any does. Blocking: for the disk thread.
    pub fn look(&mut self, runtime: &Runtime, lease: Option<Uuid>, mono: Duration) -> Vec<Sent> {
        let mut changed = Vec::new();
        for entry in self.sent.values_mut().filter(|entry| !entry.sent.fate.is_final(entry.sent.kind)) {
            let fate = entry.next_fate(runtime, lease, mono);
            if fate != entry.sent.fate {
                entry.sent.fate = fate;
                changed.push(entry.sent.clone());
            }
        }
        self.forget_oldest();
        changed
    }
}

impl Entry {
    fn next_fate(&mut self, runtime: &Runtime, lease: Option<Uuid>, mono: Duration) -> Fate {
        let mut fate = self.sent.fate;
        if fate == Fate::Queued {
            if lease != Some(self.lease) {
                return Fate::Unknown;
            }
            fate = self.after_queued(runtime, mono);
        }
        if fate == Fate::Taken && self.sent.kind == Kind::ChiefReply {
            match records::read_lead(runtime, &self.sent.lead) {
                Ok(record) if record.pending_ask.as_ref().map(|ask| ask.ask) != self.sent.ask => {
                    return Fate::Answered;
                }
                // It still asks; or it is gone or can't be read, which answers nothing.
                Ok(_) | Err(_) => {}
            }
        }
        fate
    }

    fn after_queued(&mut self, runtime: &Runtime, mono: Duration) -> Fate {
        let inbox = runtime.inbox(&self.sent.lead);
        if inbox::is_quarantined(&inbox, self.sent.id) {
            let since = *self.marked.get_or_insert(mono);
            return if mono.saturating_sub(since) > REMOVAL_TAKES_AT_MOST {
                Fate::Unknown
            } else {
                Fate::Queued
            };
        }
        self.marked = None;
        match durable::kind(&inbox.message(self.sent.id)) {
            Ok(None) => Fate::Taken,
            // It stands there, or it can't be told now.
            Ok(Some(_)) | Err(_) => Fate::Queued,
        }
    }
}
