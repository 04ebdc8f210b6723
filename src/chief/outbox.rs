//! What we sent and what became of it: queued → taken → delivered → answered, as far as it can be
//! known.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::contract::{Kind, SessionId, Uuid};
use crate::disk::inbox;
use crate::disk::records;
use crate::disk::{Runtime, durable};
use crate::fact::{Fate, Sent};
use crate::pi::delivered::Follower;

/// Messages whose fate is final that are still remembered.
const MAX_SETTLED: usize = 200;

/// How long a marker may stand before it is taken for a quarantine: a removal puts one up for its
/// own duration, too.
const REMOVAL_TAKES_AT_MOST: Duration = Duration::from_secs(2);

/// How long what was taken is looked at closely: most leads have it in their session by then.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Bytes of sessions looked through in one look.
const BUDGET: usize = 4 << 20;

/// The messages whose fate is followed, by id: those of this run, and some of earlier ones.
#[derive(Debug, Default, Clone)]
pub struct Outbox {
    sent: BTreeMap<Uuid, Entry>,
    /// Where proofs of delivery are looked for, while any may turn up.
    sessions: HashMap<SessionId, Follower>,
    /// Whether some session is not looked through to its end yet.
    is_behind: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    sent: Sent,
    lease: Uuid,
    /// Since when a quarantine marker is seen, on the monotonic clock.
    marked: Option<Duration>,
    /// Since when it is taken, on the same; none for what was taken in an earlier run.
    taken: Option<Duration>,
    /// Whether the lead's session holds it; it may while the lead has not taken it out yet.
    proven: bool,
}

impl Outbox {
    /// Adds what was just made durable under `lease`.
    pub fn add(&mut self, sent: Sent, lease: Uuid) {
        self.sent.insert(sent.id, Entry { sent, lease, marked: None, taken: None, proven: false });
        self.forget_oldest();
    }

    /// Something is about to be sent to `lead`, whose session is at `session_file`: what stands there
    /// by now proves nothing of it.
    pub fn expect(&mut self, lead: &SessionId, session_file: &Path) {
        if !self.sessions.contains_key(lead) {
            self.sessions.insert(lead.clone(), Follower::from_end(session_file));
        }
    }

    /// Adds what was sent earlier, under `lease`, unless it is known: its lead's session may hold it
    /// already.
    pub fn add_earlier(&mut self, sent: Sent, lease: Uuid) {
        if !self.sent.contains_key(&sent.id) {
            self.sessions.remove(&sent.lead);
            self.add(sent, lease);
        }
    }

    /// What is known of one message.
    pub fn get(&self, id: Uuid) -> Option<&Sent> {
        self.sent.get(&id).map(|entry| &entry.sent)
    }

    /// What was found out of one message otherwise.
    pub fn settle(&mut self, id: Uuid, fate: Fate) {
        if let Some(entry) = self.sent.get_mut(&id) {
            entry.sent.fate = fate;
        }
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

    /// Whether something may become known any moment.
    pub fn is_waiting(&self, mono: Duration) -> bool {
        self.is_behind
            || self.sent.values().any(|entry| match entry.sent.fate {
                Fate::Queued => true,
                Fate::Taken => entry.taken.is_some_and(|since| mono.saturating_sub(since) < HAND_OVER),
                _ => false,
            })
    }

    /// Whether something may become known some day.
    pub fn is_watching(&self) -> bool {
        self.sent.values().any(Entry::is_open)
    }

    /// Whether a proof may turn up in a session whose file is not known.
    pub fn lacks_a_session(&self) -> bool {
        self.sent
            .values()
            .any(|entry| entry.sent.fate.is_provable() && !self.sessions.contains_key(&entry.sent.lead))
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

    /// Looks again at what is open, and gives back what changed. `lease` is the one that stands
    /// unbroken, if any does; `files` are the leads' session files as far as they are known. Blocking:
    /// for the disk thread. Sessions are read only while something was taken or is unknown, and of
    /// each only what was appended.
    pub fn look(
        &mut self,
        runtime: &Runtime,
        lease: Option<Uuid>,
        mono: Duration,
        files: &HashMap<SessionId, PathBuf>,
    ) -> Vec<Sent> {
        let mut open: Vec<(Uuid, Fate)> = Vec::new();
        for entry in self.sent.values_mut().filter(|entry| entry.is_open()) {
            open.push((entry.sent.id, entry.sent.fate));
            entry.look_at_inbox(runtime, lease, mono);
        }
        self.look_for_proofs(files);
        let mut changed = Vec::new();
        for (id, before) in open {
            let Some(entry) = self.sent.get_mut(&id) else { continue };
            if entry.sent.fate.is_provable() && entry.proven {
                entry.sent.fate = Fate::Delivered;
            }
            entry.look_at_ask(runtime);
            if entry.sent.fate != before {
                changed.push(entry.sent.clone());
            }
        }
        self.forget_oldest();
        let leads: HashSet<&SessionId> =
            self.sent.values().filter(|entry| entry.is_open()).map(|entry| &entry.sent.lead).collect();
        self.sessions.retain(|lead, _| leads.contains(lead));
        changed
    }

    fn look_for_proofs(&mut self, files: &HashMap<SessionId, PathBuf>) {
        let mut left = BUDGET;
        self.is_behind = false;
        let leads: HashSet<SessionId> = (self.sent.values())
            .filter(|entry| entry.sent.fate.is_provable() && !entry.proven)
            .map(|entry| entry.sent.lead.clone())
            .collect();
        for lead in leads {
            if left == 0 {
                self.is_behind = true;
                return;
            }
            if !self.sessions.contains_key(&lead) {
                let Some(file) = files.get(&lead) else { continue };
                self.sessions.insert(lead.clone(), Follower::from_beginning(file));
            }
            let Some(session) = self.sessions.get_mut(&lead) else { continue };
            let before = session.bytes_read();
            let looked = session.look(left, |id| {
                if let Some(entry) = self.sent.get_mut(&id) {
                    entry.proven = true;
                }
            });
            let read = usize::try_from(session.bytes_read() - before).unwrap_or(usize::MAX);
            left = left.saturating_sub(read);
            match looked {
                Ok(more) => self.is_behind |= more,
                // Its place may be another by now: that is asked for again.
                Err(_) => drop(self.sessions.remove(&lead)),
            }
        }
    }
}

impl Entry {
    /// Whether its fate may change.
    fn is_open(&self) -> bool {
        self.sent.fate.is_provable() || !self.sent.fate.is_final(self.sent.kind)
    }

    fn look_at_inbox(&mut self, runtime: &Runtime, lease: Option<Uuid>, mono: Duration) {
        if self.sent.fate != Fate::Queued {
            return;
        }
        if lease != Some(self.lease) {
            self.sent.fate = Fate::Unknown;
            return;
        }
        let inbox = runtime.inbox(&self.sent.lead);
        if inbox::is_quarantined(&inbox, self.sent.id) {
            let since = *self.marked.get_or_insert(mono);
            if mono.saturating_sub(since) > REMOVAL_TAKES_AT_MOST {
                self.sent.fate = Fate::Unknown;
            }
            return;
        }
        self.marked = None;
        // Otherwise it stands there, or it can't be told now.
        if let Ok(None) = durable::kind(&inbox.message(self.sent.id)) {
            self.sent.fate = Fate::Taken;
            self.taken = Some(mono);
        }
    }

    fn look_at_ask(&mut self, runtime: &Runtime) {
        if !matches!(self.sent.fate, Fate::Taken | Fate::Delivered) || self.sent.kind != Kind::ChiefReply {
            return;
        }
        match records::read_lead(runtime, &self.sent.lead) {
            Ok(record) if record.pending_ask.as_ref().map(|ask| ask.ask) != self.sent.ask => {
                self.sent.fate = Fate::Answered;
            }
            // It still asks; or it is gone or can't be read, which answers nothing.
            Ok(_) | Err(_) => {}
        }
    }
}
