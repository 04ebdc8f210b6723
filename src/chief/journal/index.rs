//! What of the journal is kept in memory: enough to know what was received and sent, no text.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::line::{self, Line, Preview};
use crate::contract::{Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::{AskTime, Fate, Letter, Snooze, Until, is_unread};

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: u32,
    pub length: u32,
    pub offset: u64,
}

/// One message that came, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its number in the journal.
    pub seq: u64,
    /// When it was received.
    pub at: Timestamp,
    /// Its file's id.
    pub id: Uuid,
    /// What it is; none for what is no valid message.
    pub kind: Option<Kind>,
    /// The lead it came from, where that could be read.
    pub lead: Option<SessionId>,
    /// Its ask.
    pub ask: Option<Uuid>,
    /// When it was written.
    pub created_at: Option<Timestamp>,
    /// Why it was not accepted; safe to print.
    pub refused: Option<Box<str>>,
    /// Whether the operator has seen it.
    pub read: bool,
    pub(super) place: Place,
}

impl Received {
    /// As [`Letter::is_unread`].
    pub fn is_unread(&self) -> bool {
        is_unread(self.read, self.refused.is_some(), self.kind)
    }

    /// It as a fact, with how it begins.
    pub(super) fn letter(&self, preview: Preview) -> Letter {
        Letter {
            whole: self.kind.is_some() && preview.whole,
            seq: self.seq,
            at: self.at,
            id: self.id,
            kind: self.kind,
            lead: self.lead.clone(),
            ask: self.ask,
            created_at: self.created_at,
            preview: preview.text,
            refused: self.refused.as_deref().map(str::to_owned),
            read: self.read,
        }
    }
}

/// One message of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEntry {
    /// Its id.
    pub id: Uuid,
    /// What it is.
    pub kind: Kind,
    /// To whom.
    pub lead: SessionId,
    /// When it was written.
    pub created_at: Timestamp,
    /// What is known of it; none while nothing but its writing is.
    pub fate: Option<Fate>,
    /// Under which id it was sent again.
    pub again: Option<Uuid>,
    pub(super) place: Place,
}

impl SentEntry {
    /// Whether it may not be delivered yet, and was not sent again.
    pub fn is_open(&self) -> bool {
        self.again.is_none() && matches!(self.fate, None | Some(Fate::Queued))
    }
}

/// What is known of an ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// When it was put, as far as is known.
    pub at: Timestamp,
    /// Whether its message was accepted.
    pub accepted: bool,
    /// The segment it is first spoken of in.
    pub segment: u32,
}

/// That an ask is put off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snoozed {
    at: Timestamp,
    until: Until,
    /// The segment that says so.
    pub segment: u32,
}

/// What a line was.
pub(super) enum Folded {
    /// One of ours.
    Known,
    /// One that a later release wrote.
    Later,
    /// None at all.
    Damaged,
}

/// What the journal holds, by what it is asked for.
#[derive(Debug, Default)]
pub struct Index {
    /// By their number.
    received: Vec<Received>,
    unread: usize,
    unread_by_lead: BTreeMap<SessionId, usize>,
    /// By file, under which number it was journalled last, and whether it ever was accepted.
    files: HashMap<Uuid, (u64, bool)>,
    /// Of accepted messages whose files were called otherwise.
    misnamed: HashSet<Uuid>,
    /// Under which number an ask was journalled that was not accepted.
    refused_asks: HashMap<(SessionId, Uuid), u64>,
    asks: HashMap<(SessionId, Uuid), Asked>,
    snoozes: HashMap<(SessionId, Uuid), Snoozed>,
    sent: BTreeMap<Uuid, SentEntry>,
    next_seq: u64,
    /// By how they are written, so that each is kept once.
    sessions: HashMap<Box<str>, SessionId>,
    reader: line::Reader,
}

impl Index {
    /// What was received, the oldest first.
    pub fn received(&self) -> impl DoubleEndedIterator<Item = &Received> + ExactSizeIterator {
        self.received.iter()
    }

    /// What was received under a number.
    pub fn received_as(&self, seq: u64) -> Option<&Received> {
        self.received.get(self.position(seq)?)
    }

    fn position(&self, seq: u64) -> Option<usize> {
        self.received.binary_search_by_key(&seq, |entry| entry.seq).ok()
    }

    /// What was received under numbers between two, without them, the newest first.
    pub fn received_between(&self, above: u64, below: u64) -> impl Iterator<Item = &Received> {
        let begin = self.received.partition_point(|entry| entry.seq <= above);
        let end = self.received.partition_point(|entry| entry.seq < below).max(begin);
        self.received[begin..end].iter().rev()
    }

    /// Rises with every event.
    pub fn revision(&self) -> u64 {
        self.next_seq
    }

    /// The number of the newest one that waits to be seen.
    pub fn newest_unread(&self) -> Option<u64> {
        self.received.iter().rev().find(|entry| entry.is_unread()).map(|entry| entry.seq)
    }

    /// How many wait to be seen.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// The same by lead.
    pub fn unread_by_lead(&self) -> &BTreeMap<SessionId, usize> {
        &self.unread_by_lead
    }

    /// Whether this message was accepted before: an ask by lead and ask, another by its id.
    pub fn has(&self, message: &Message) -> bool {
        match message.ask {
            Some(ask) if message.kind == Kind::LeadAsk => self.has_ask(&message.lead, ask),
            _ => {
                self.misnamed.contains(&message.id)
                    || self.files.get(&message.id).is_some_and(|(_, accepted)| *accepted)
            }
        }
    }

    /// What the file of that name held when it was journalled last, accepted or not.
    pub fn file(&self, name: Uuid) -> Option<&Received> {
        self.received_as(self.files.get(&name)?.0)
    }

    /// Whether the message of that ask was accepted.
    pub fn has_ask(&self, lead: &SessionId, ask: Uuid) -> bool {
        self.asked(lead, ask).is_some_and(|asked| asked.accepted)
    }

    /// When that ask was put, as far as is known: its message's time, else when it was first seen.
    pub fn asked_at(&self, lead: &SessionId, ask: Uuid) -> Option<Timestamp> {
        self.asked(lead, ask).map(|asked| asked.at)
    }

    /// The asks, with what is known of each.
    pub(super) fn asks(&self) -> impl Iterator<Item = (&(SessionId, Uuid), &Asked)> {
        self.asks.iter()
    }

    fn asked(&self, lead: &SessionId, ask: Uuid) -> Option<&Asked> {
        self.asks.get(&(lead.clone(), ask))
    }

    /// The asks that were put last, at most `newest` of them, the last one first.
    pub(super) fn newest_asks(&self, newest: usize) -> Vec<AskTime> {
        let mut asks: Vec<_> = self.asks.iter().map(|((lead, ask), asked)| (asked.at, *ask, lead)).collect();
        if asks.len() > newest {
            asks.select_nth_unstable_by(newest, |a, b| b.cmp(a));
            asks.truncate(newest);
        }
        asks.sort_unstable_by(|a, b| b.cmp(a));
        asks.into_iter().map(|(at, ask, lead)| AskTime { lead: lead.clone(), ask, at }).collect()
    }

    /// What is said last of each ask that was put off, also of those that came back.
    pub(super) fn snoozes(&self) -> impl Iterator<Item = (&(SessionId, Uuid), &Snoozed)> {
        self.snoozes.iter()
    }

    /// The asks that are put off at `now`, at most `newest` of them, in the order in which they were.
    pub fn snoozed(&self, newest: usize, now: Timestamp) -> Vec<Snooze> {
        let is_over = |until| matches!(until, Until::At(until) if until <= now);
        let mut snoozes: Vec<_> = (self.snoozes.iter())
            .filter(|(_, snoozed)| !is_over(snoozed.until))
            .map(|((lead, ask), snoozed)| Snooze {
                lead: lead.clone(),
                ask: *ask,
                at: snoozed.at,
                until: snoozed.until,
            })
            .collect();
        snoozes.sort_unstable_by(|a, b| (a.at, a.ask, &a.lead).cmp(&(b.at, b.ask, &b.lead)));
        snoozes.split_off(snoozes.len().saturating_sub(newest))
    }

    /// The sessions that anything was received from.
    pub fn leads(&self) -> impl Iterator<Item = &SessionId> {
        self.sessions.values()
    }

    /// Our messages by id.
    pub fn sent(&self) -> impl Iterator<Item = &SentEntry> {
        self.sent.values()
    }

    /// One of them.
    pub fn sent_entry(&self, id: Uuid) -> Option<&SentEntry> {
        self.sent.get(&id)
    }

    /// The number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq.max(1)
    }

    /// Has the next event a number that is not below `seq`.
    pub(super) fn go_on_at(&mut self, seq: u64) {
        self.next_seq = self.next_seq.max(seq);
    }

    /// Folds one line in, and says what it was.
    pub(super) fn fold(&mut self, bytes: &[u8], place: Place) -> Folded {
        let mut reader = std::mem::take(&mut self.reader);
        let folded = match reader.read(bytes) {
            Some(line) => self.fold_line(line, place),
            None => line::is_later(bytes).then_some(Folded::Later),
        };
        self.reader = reader;
        folded.unwrap_or(Folded::Damaged)
    }

    /// None where it is damaged.
    fn fold_line(&mut self, line: Line<'_>, place: Place) -> Option<Folded> {
        if line.seq > line::MAX_SEQ {
            return None;
        }
        // Of a later release as well: no number is ever given twice.
        self.next_seq = self.next_seq.max(line.seq + 1);
        if line.v != line::VERSION {
            return Some(Folded::Later);
        }
        let at = Timestamp::from_number(line.at)?;
        let id = line.id.as_deref().and_then(Uuid::parse);
        let ask = line.ask.as_deref().and_then(Uuid::parse);
        let lead = line.lead.and_then(|raw| self.session(raw.get()));
        match &*line.kind {
            "received" => {
                if line.refused.is_none() {
                    self.misnamed.extend(line.message_id.as_deref().and_then(Uuid::parse));
                }
                let received = Received {
                    seq: line.seq,
                    at,
                    id: id?,
                    kind: line.message.as_deref().and_then(Kind::from_name),
                    lead,
                    ask,
                    created_at: line.created_at.and_then(Timestamp::from_number),
                    refused: line.refused.map(Box::from),
                    read: false,
                    place,
                };
                self.receive(received);
            }
            "ask_seen" => self.ask(lead?, ask?, at, false, place),
            "sent" | "requeued" => {
                let sent = SentEntry {
                    id: id?,
                    kind: line.message.as_deref().and_then(Kind::from_name)?,
                    lead: lead?,
                    created_at: line.created_at.and_then(Timestamp::from_number)?,
                    fate: None,
                    again: None,
                    place,
                };
                if line.kind == "requeued" {
                    let old = line.old.as_deref().and_then(Uuid::parse)?;
                    if let Some(entry) = self.sent.get_mut(&old) {
                        entry.again = Some(sent.id);
                        entry.fate = Some(Fate::Again);
                    }
                }
                self.sent.insert(sent.id, sent);
            }
            "fate" => {
                let (id, fate) = (id?, Fate::from_name(line.fate.as_deref()?)?);
                if let Some(entry) = self.sent.get_mut(&id) {
                    entry.fate = Some(fate);
                }
            }
            "read" | "unread" => {
                let read = line.kind == "read";
                line.seqs.iter().for_each(|seq| self.mark(*seq, read));
            }
            "snoozed" => {
                let until = match line.until {
                    Some(until) => Until::At(Timestamp::from_number(until)?),
                    None => Until::Change,
                };
                self.snoozes.insert((lead?, ask?), Snoozed { at, until, segment: place.segment });
            }
            "unsnoozed" => drop(self.snoozes.remove(&(lead?, ask?))),
            // What is gone is not there; its numbers were counted above.
            "pruned" => {}
            _ => return Some(Folded::Later),
        }
        Some(Folded::Known)
    }

    fn receive(&mut self, received: Received) {
        let accepted = received.refused.is_none();
        let file = self.files.entry(received.id).or_default();
        *file = (received.seq, file.1 || accepted);
        if let (Some(Kind::LeadAsk), Some(lead), Some(ask)) = (received.kind, &received.lead, received.ask) {
            let before = self.has_ask(lead, ask);
            let at = received.created_at.map_or(received.at, |created| created.min(received.at));
            self.ask(lead.clone(), ask, at, accepted, received.place);
            // An ask is shown once: as it was accepted, else as it came last.
            let key = (lead.clone(), ask);
            if let Some(refused) = self.refused_asks.remove(&key) {
                self.forget(refused);
            }
            if !accepted && before {
                return;
            }
            if !accepted {
                self.refused_asks.insert(key, received.seq);
            }
        }
        self.count(&received, true);
        // At the end, as all are written in their order.
        let at = self.received.partition_point(|entry| entry.seq < received.seq);
        self.received.insert(at, received);
    }

    fn forget(&mut self, seq: u64) {
        if let Some(position) = self.position(seq) {
            let entry = self.received.remove(position);
            self.count(&entry, false);
        }
    }

    /// Counts it among what waits to be seen, or not any more, if it does.
    fn count(&mut self, entry: &Received, waits: bool) {
        if !entry.is_unread() {
            return;
        }
        let by = |count: usize| if waits { count + 1 } else { count.saturating_sub(1) };
        self.unread = by(self.unread);
        if let Some(lead) = &entry.lead {
            let of_lead = self.unread_by_lead.entry(lead.clone()).or_default();
            *of_lead = by(*of_lead);
            if *of_lead == 0 {
                self.unread_by_lead.remove(lead);
            }
        }
    }

    fn ask(&mut self, lead: SessionId, ask: Uuid, at: Timestamp, accepted: bool, place: Place) {
        let new = Asked { at, accepted: false, segment: place.segment };
        let asked = self.asks.entry((lead, ask)).or_insert(new);
        asked.accepted |= accepted;
        asked.at = asked.at.min(at);
    }

    fn mark(&mut self, seq: u64, read: bool) {
        let Some(position) = self.position(seq) else { return };
        let before = self.received[position].clone();
        self.count(&before, false);
        let entry = Received { read, ..before };
        self.count(&entry, true);
        self.received[position] = entry;
    }

    /// The session that is written so.
    fn session(&mut self, literal: &str) -> Option<SessionId> {
        if let Some(session) = self.sessions.get(literal) {
            return Some(session.clone());
        }
        let session = serde_json::from_str::<Untrusted>(literal).ok().and_then(SessionId::new)?;
        self.sessions.insert(literal.into(), session.clone());
        Some(session)
    }
}
