//! What flows upward: facts are whole values keyed by id, the latest wins, so what waits to be
//! folded is bounded by the number of ids.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

pub use inquiry::{Answer, Found, Inquiry, MAX_LETTERS, Needle, Query};
pub use inspection::{Foreground, Inspection, Peek, ProcessEvidence};
pub use reading::{Condition, Hit, Hits, Reading, SessionFile, Sheet, Summary, Taken, TipRead, Wanted};
pub use search::{MAX_HITS, MAX_TROUBLES, SearchQuery, Searched};
pub use snooze::{Snooze, Until};

use crate::contract::{Descriptor, Kind, LeadRecord, SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::mailboxes::Scan;
use crate::disk::peers::Peer;
use crate::herd::inventory::Inventory;
use crate::herd::surroundings::Surroundings;
use crate::herdr::Registration;
use crate::pi::activity::Activity;
use crate::signals::sight::Sight;
use crate::turn::history::Picture;

mod inquiry;
mod inspection;
mod reading;
mod search;
mod snooze;

/// A reading of both clocks. Ages are counted on the monotonic one, which no clock change moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The time of day.
    pub wall: Timestamp,
    /// Since some fixed moment of this process.
    pub mono: Duration,
}

/// One thing that became known.
#[derive(Debug, Clone)]
pub enum Fact {
    /// What Herdr shows.
    Inventory(Arc<Inventory>),
    /// Herdr did not answer; the last inventory stays, stale.
    HerdrDown {
        /// Why and what to do; safe to print.
        reason: String,
    },
    /// One lead record, by the hash in its file name.
    Lead(String, LeadRead),
    /// All lead records; those not among them are gone.
    Leads(Arc<Vec<(String, LeadRead)>>),
    /// The directory of lead records can't be used; safe to print why.
    LeadsUnreadable(String),
    /// All mailboxes of managed agents.
    Mailboxes(Arc<Scan>),
    /// When the asks that stand in our inbox were written.
    AskTimes(Arc<Vec<AskTime>>),
    /// What was received.
    Mail(Arc<Mail>),
    /// The answer to one inquiry about what was received.
    Answered(Answered),
    /// What we are.
    Standing(Standing),
    /// Whether leads see us in Herdr.
    Registration(Registration),
    /// Where the service is.
    Desk(Desk),
    /// One thing we sent.
    Sent(Sent),
    /// How many messages of ours have which fate, by lead.
    SentCounts(Arc<SentCounts>),
    /// The asks that are put off.
    Snoozes(Arc<Vec<Snooze>>),
    /// What became of one request to the service.
    Outcome(Outcome),
    /// How changes of the records are noticed.
    Watching(Watching),
    /// Changes of the records that the system did not tell.
    ChangesLost(ChangesLost),
    /// The leads' peers, while they are looked at.
    Peers(Arc<PeersRead>),
    /// The pane of one lead, while it is looked at.
    Peek(Arc<Peek>),
    /// How turns went, while that is looked at.
    Turns(Arc<Picture>),
    /// What a lead's session tells.
    Activity(SessionId, Arc<SessionRead>),
    /// What a lead's session shows by itself.
    Signals(SessionId, Arc<Sight>),
    /// A session file, while its transcript is read.
    Reading(Arc<Reading>),
    /// Leads that are here and are not ours to see.
    Surroundings(Arc<Surroundings>),
    /// What a search in sessions found so far.
    Searched(Arc<Searched>),
}

/// What was read of a lead's session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRead {
    /// What its agent does.
    Activity(Activity),
    /// Nothing; safe to print why, and what to do.
    Unread(String),
}

/// The peers by name, or why their directory can't be used; safe to print.
pub type PeersRead = Result<Vec<Peer>, String>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Herdr,
    Lead(String),
    Leads,
    Mailboxes,
    AskTimes,
    Mail,
    Answered(u64),
    Standing,
    Registration,
    Desk,
    Sent(Uuid),
    SentCounts,
    Snoozes,
    Outcome(u64),
    Watching,
    ChangesLost,
    Peers,
    Peek,
    Turns,
    Activity(SessionId),
    Signals(SessionId),
    Reading,
    Surroundings,
    Searched,
}

impl Fact {
    fn key(&self) -> Key {
        match self {
            Fact::Inventory(_) | Fact::HerdrDown { .. } => Key::Herdr,
            Fact::Lead(hash, _) => Key::Lead(hash.clone()),
            Fact::Leads(_) | Fact::LeadsUnreadable(_) => Key::Leads,
            Fact::Mailboxes(_) => Key::Mailboxes,
            Fact::AskTimes(_) => Key::AskTimes,
            Fact::Mail(_) => Key::Mail,
            Fact::Answered(answered) => Key::Answered(answered.ticket),
            Fact::Standing(_) => Key::Standing,
            Fact::Registration(_) => Key::Registration,
            Fact::Desk(_) => Key::Desk,
            Fact::Sent(sent) => Key::Sent(sent.id),
            Fact::SentCounts(_) => Key::SentCounts,
            Fact::Snoozes(_) => Key::Snoozes,
            Fact::Outcome(outcome) => Key::Outcome(outcome.ticket),
            Fact::Watching(_) => Key::Watching,
            Fact::ChangesLost(_) => Key::ChangesLost,
            Fact::Peers(_) => Key::Peers,
            Fact::Peek(_) => Key::Peek,
            Fact::Turns(_) => Key::Turns,
            Fact::Activity(session, _) => Key::Activity(session.clone()),
            Fact::Signals(session, _) => Key::Signals(session.clone()),
            Fact::Reading(_) => Key::Reading,
            Fact::Surroundings(_) => Key::Surroundings,
            Fact::Searched(_) => Key::Searched,
        }
    }
}

/// What a lead record's file held when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadRead {
    /// A valid record.
    Valid(LeadRecord),
    /// Something else, left where it is; safe to print why.
    Refused(String),
    /// Nothing: the file is not there.
    Absent,
}

/// When an ask was written, as its message in our inbox says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskTime {
    /// Who asks.
    pub lead: SessionId,
    /// The ask.
    pub ask: Uuid,
    /// When its message was written.
    pub at: Timestamp,
}

/// Where the Chief service is that this process uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Desk {
    /// In this process, and others of ours may use it through this socket.
    Own {
        /// The control socket.
        socket: PathBuf,
    },
    /// In this process alone; safe to print why.
    Alone(String),
    /// In another process of ours.
    Of {
        /// Its id.
        pid: u32,
        /// Whether it speaks; while it does not, nothing of the service is known to be so still.
        answers: bool,
    },
}

/// What we are on this Herdr socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Not known yet.
    Starting,
    /// Watching without authority.
    Observer {
        /// Who is Chief instead.
        chief: OtherChief,
        /// Why we can't even become Chief, where that is known; safe to print.
        refused: Option<String>,
    },
    /// We watch, and can't become Chief: our state directory is of a later release.
    Barred {
        /// Why; safe to print.
        why: String,
        /// Who is Chief.
        chief: OtherChief,
    },
    /// We hold the lease.
    Chief {
        /// The lease.
        lease: Uuid,
        /// Since when.
        since: Timestamp,
    },
    /// We were Chief and another holds the lease. It is never taken over.
    Suspended(OtherChief),
    /// We were Chief until just now; safe to print why not any more.
    Lost {
        /// Why.
        reason: String,
        /// Who holds it now.
        chief: OtherChief,
    },
}

impl Standing {
    /// The lease, while we hold it.
    pub fn lease(&self) -> Option<Uuid> {
        match self {
            Standing::Chief { lease, .. } => Some(*lease),
            _ => None,
        }
    }
}

/// Who else holds the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OtherChief {
    /// Nobody: it is free to take.
    None,
    /// This one.
    Held(Box<Descriptor>),
    /// Another console with our own identity.
    OwnConsole(Box<Descriptor>),
    /// A process that is about to, it can't be told which.
    InProgress,
    /// This process is about to.
    InProgressBy(u32),
    /// It can't be told; safe to print why.
    Unverifiable(String),
}

impl OtherChief {
    /// Whether a process is about to take the lease, which is nobody's yet.
    pub fn is_in_progress(&self) -> bool {
        matches!(self, OtherChief::InProgress | OtherChief::InProgressBy(_))
    }

    /// Who it is, as the end of a sentence; safe to print.
    pub fn sentence(&self) -> String {
        match self {
            OtherChief::None => "nobody is Chief".to_owned(),
            OtherChief::Held(descriptor) => format!(
                "session {} is Chief, on pane {}, process {}",
                descriptor.session.as_untrusted().first_units(40).escaped(),
                descriptor.pane.first_units(40).escaped(),
                descriptor.claim.pid
            ),
            OtherChief::OwnConsole(descriptor) => format!(
                "another headman of yours is Chief, process {} on pane {}",
                descriptor.claim.pid,
                descriptor.pane.first_units(40).escaped()
            ),
            OtherChief::InProgress => "another process is becoming Chief".to_owned(),
            OtherChief::InProgressBy(pid) => {
                format!("process {pid} is becoming Chief (if it is stopped, `kill -CONT {pid}` continues it)")
            }
            OtherChief::Unverifiable(why) => format!("who is Chief can't be verified: {why}"),
        }
    }
}

/// One message of ours and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id.
    pub id: Uuid,
    /// What it is.
    pub kind: Kind,
    /// To whom.
    pub lead: SessionId,
    /// The ask it answers.
    pub ask: Option<Uuid>,
    /// What it says.
    pub text: Untrusted,
    /// When it was written.
    pub at: Timestamp,
    /// What became of it.
    pub fate: Fate,
}

/// How many messages have which fate, by lead.
pub type SentCounts = BTreeMap<SessionId, BTreeMap<Fate, usize>>;

/// What became of a message, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fate {
    /// It stands in the lead's inbox.
    Queued,
    /// It was taken out while our lease stood unbroken.
    Taken,
    /// The lead's session holds it.
    Delivered,
    /// A reply: the ask is gone after it was taken.
    Answered,
    /// It went around a change of lease, or is quarantined: it may have been discarded.
    Unknown,
    /// It was sent again under another id, since its lease ended before the lead took it.
    Again,
    /// It could not be put into the lead's inbox after all.
    Unsent,
}

impl Fate {
    /// All of them, in the order in which they come.
    pub const ALL: [Self; 7] = [
        Fate::Queued,
        Fate::Taken,
        Fate::Delivered,
        Fate::Answered,
        Fate::Unknown,
        Fate::Again,
        Fate::Unsent,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Queued => "queued",
            Fate::Taken => "taken",
            Fate::Delivered => "delivered",
            Fate::Answered => "answered",
            Fate::Unknown => "unknown, may have been discarded",
            Fate::Again => "sent again",
            Fate::Unsent => "not sent",
        }
    }

    /// Its name in the journal.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Queued => "queued",
            Fate::Taken => "taken",
            Fate::Delivered => "delivered",
            Fate::Answered => "answered",
            Fate::Unknown => "unknown",
            Fate::Again => "again",
            Fate::Unsent => "unsent",
        }
    }

    /// The fate of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.name() == name)
    }

    /// Whether nothing more is waited for. Of what is unknown a proof may still turn up.
    pub fn is_final(self, kind: Kind) -> bool {
        match self {
            Fate::Queued | Fate::Taken => false,
            Fate::Delivered => kind != Kind::ChiefReply,
            Fate::Answered | Fate::Unknown | Fate::Again | Fate::Unsent => true,
        }
    }

    /// Whether the lead's session may prove that it was delivered.
    pub fn is_provable(self) -> bool {
        matches!(self, Fate::Taken | Fate::Unknown)
    }

    /// Whether the lead may not have it, and does not get it unless it is sent again.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Fate::Unknown | Fate::Unsent)
    }

    /// Whether the lead has it for all that is known.
    pub fn has_arrived(self) -> bool {
        matches!(self, Fate::Taken | Fate::Delivered | Fate::Answered)
    }
}

/// One message that was received, or could not be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
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
    /// How what it says begins, without the files that go along.
    pub preview: Untrusted,
    /// Whether that is its whole text.
    pub whole: bool,
    /// Why it was not accepted; safe to print.
    pub refused: Option<String>,
    /// Whether the operator has seen it.
    pub read: bool,
}

impl Letter {
    /// Whether it waits to be seen: not what is no message at all, but also one that was not accepted,
    /// as when its lease had ended by the time it came. Somebody wrote it to us all the same.
    pub fn is_unread(&self) -> bool {
        is_unread(self.read, self.refused.is_some(), self.kind)
    }
}

/// See [`Letter::is_unread`].
pub(crate) fn is_unread(read: bool, refused: bool, kind: Option<Kind>) -> bool {
    !read && (!refused || kind.is_some())
}

/// What was received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The newest ones, the oldest of them first; the others are given on inquiry.
    pub newest: Vec<Letter>,
    /// The newest one not seen yet, by its number.
    pub newest_unread: Option<u64>,
    /// How many there are in all.
    pub total: usize,
    /// How many wait to be seen.
    pub unread: usize,
    /// The same by lead.
    #[serde(with = "crate::contract::serial::pairs")]
    pub unread_by_lead: BTreeMap<SessionId, usize>,
    /// When asks were put, as the journal knows.
    pub asks: Vec<AskTime>,
    /// Lines of the journal that could not be read.
    pub damaged: usize,
    /// What stays in our inbox, and why; safe to print.
    pub kept: Vec<String>,
    /// Why nothing is received now; safe to print.
    pub stopped: Option<String>,
}

/// The answer to one inquiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The request's ticket.
    pub ticket: u64,
    /// The answer, or why there is none; safe to print.
    pub result: Result<Answer, String>,
}

/// What became of one request to the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The request's ticket.
    pub ticket: u64,
    /// Done, or why not; safe to print.
    pub result: Result<Done, String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// A message is durable in the lead's inbox.
    Sent(Uuid),
    /// We are Chief.
    BecameChief,
    /// We are not Chief any more.
    Left,
    /// Herdr shows the pane.
    Focused,
    /// What was seen is known as that, or as unseen.
    Marked,
    /// An ask is put off, or is not any more.
    Snoozed,
}

/// How changes of the records are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// The system tells.
    Notified,
    /// By looking again and again; safe to print why.
    Polling(String),
    /// The same, as it is configured.
    SwitchedOff,
}

/// That more changed at once than the system tells. Everything was read again each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesLost {
    /// How often since the start.
    pub times: u64,
    /// When last.
    pub last: Now,
}

#[derive(Default)]
struct Waiting {
    facts: Vec<Fact>,
    places: HashMap<Key, usize>,
}

/// Sees every fact on its way, and says whether it goes on.
pub trait Relay: Send + Sync {
    /// Called with every fact that is put in.
    fn pass(&self, fact: &Fact) -> bool;
}

/// Where facts are put.
#[derive(Clone)]
pub struct FactSender {
    channel: Arc<(Mutex<Waiting>, Notify)>,
    relay: Option<Arc<dyn Relay>>,
}

/// Where they are taken.
pub struct FactReceiver(Arc<(Mutex<Waiting>, Notify)>);

/// A channel of facts that holds at most one for each id.
pub fn channel() -> (FactSender, FactReceiver) {
    let shared = Arc::new((Mutex::new(Waiting::default()), Notify::new()));
    (FactSender { channel: Arc::clone(&shared), relay: None }, FactReceiver(shared))
}

impl FactSender {
    /// The same channel, past `relay`.
    pub fn relayed(&self, relay: Arc<dyn Relay>) -> Self {
        Self { channel: Arc::clone(&self.channel), relay: Some(relay) }
    }

    /// Puts a fact in; it replaces an earlier one of the same id that was not taken yet.
    pub fn put(&self, fact: Fact) {
        if self.relay.as_ref().is_some_and(|relay| !relay.pass(&fact)) {
            return;
        }
        let (waiting, notify) = &*self.channel;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Fact::Leads(_) | Fact::LeadsUnreadable(_) = fact {
            // A whole scan is newer than every single record before it.
            waiting.facts.retain(|fact| !matches!(fact, Fact::Lead(..)));
            waiting.places = waiting.facts.iter().enumerate().map(|(at, fact)| (fact.key(), at)).collect();
        }
        let key = fact.key();
        let next = waiting.facts.len();
        match waiting.places.get(&key).copied() {
            Some(at) => waiting.facts[at] = fact,
            None => {
                waiting.places.insert(key, next);
                waiting.facts.push(fact);
            }
        }
        notify.notify_one();
    }
}

impl FactReceiver {
    /// All facts that wait; empty if none does.
    pub fn take(&self) -> Vec<Fact> {
        let mut waiting = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.places.clear();
        std::mem::take(&mut waiting.facts)
    }

    /// Waits until a fact was put in.
    pub async fn ready(&self) {
        self.0.1.notified().await;
    }
}
