//! One lead on disk: its record, what it asks, what it takes from its inbox.
//!
//! File work is done where it is called, so a lead runs on a task of its own.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::peers::{Presence, PresenceError};
use super::upward::{self, NotUp};
use super::{About, Place, Remembered, SessionLog};
use crate::contract::record::Invalid;
use crate::contract::{
    Claim, Descriptor, Kind, LeadRecord, Message, PendingAsk, Rule, SessionId, Timestamp, Uuid, lead,
};
use crate::disk::inbox::{self, InboxError, Verdict};
use crate::disk::layout::InboxDir;
use crate::disk::leftovers::{self, Swept};
use crate::disk::records::{self, RecordError};
use crate::disk::{AgentDir, DiskError, Runtime, Unreadable, crash_point, durable};
use crate::herdr::Client;
use crate::pi::session::HeaderCache;

/// Who a lead is, and where.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The agent directory shared with the Chief.
    pub agent_dir: AgentDir,
    /// Herdr's socket, spelt as in the lead's environment: the spelling names the directory shared
    /// with the Chief.
    pub socket: OsString,
    /// The lead's session.
    pub session: SessionId,
    /// Where it works.
    pub place: Place,
    /// What its peers are told.
    pub about: About,
}

/// Why a lead could not be opened. Its record is not there then.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The record can't be written.
    #[error("the lead record can't be written: {0}")]
    Record(#[from] RecordError),
    /// The session can't be written, or a directory not be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// It can't be present among its peers.
    #[error(transparent)]
    Presence(#[from] PresenceError),
}

/// Why nothing was asked. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// One ask at a time.
    #[error("an ask is pending already: wait for its reply")]
    Pending,
    /// The question or its text is not allowed.
    #[error("{0}")]
    Invalid(Invalid),
    /// It could not be made durable.
    #[error("the ask can't be recorded: {0}")]
    Record(#[from] RecordError),
    /// The session can't be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// An ask that is recorded and stays pending until it is answered.
#[derive(Debug)]
pub struct Asked {
    /// The ask.
    pub ask: Uuid,
    /// Its message in the Chief's inbox, or why there is none.
    pub published: Result<Uuid, NotUp>,
}

/// A message that was handed over to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// The ask it answers.
    pub answers: Option<PendingAsk>,
}

/// What one look into the inbox did.
#[derive(Debug, Default)]
pub struct Drain {
    /// Handed over, oldest first.
    pub received: Vec<Received>,
    /// Why what is there stays there, if the Chief could not be verified.
    pub waits: Option<NotUp>,
    /// What failed; those messages stay for the next try.
    pub errors: Vec<InboxError>,
}

/// A lead's part in the coordination, open until [`Coordination::close`]. Dropped without that, it
/// looks as if its process had died: the record stays, the presence is void.
#[derive(Debug)]
pub struct Coordination<S> {
    agent_dir: AgentDir,
    runtime: Runtime,
    client: Client,
    headers: HeaderCache,
    session: SessionId,
    /// As it was last written.
    record: LeadRecord,
    delivered: HashSet<Uuid>,
    presence: Presence,
    log: S,
    /// The ask that the session no longer has while the record still does: the disk failed between.
    cleared: Option<Uuid>,
    /// Whether the Chief was fully verified since the start; later looks are content with its lease.
    verified: bool,
}

impl<S: SessionLog> Coordination<S> {
    /// Opens the lead under a fresh instance, with what its session remembers: its presence, the
    /// instance into the session, then the record.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(opening: Opening, mut log: S, remembered: Remembered) -> Result<Self, OpenError> {
        let Opening { agent_dir, socket, session, place, about } = opening;
        let runtime = agent_dir.runtime(&socket);
        let record = LeadRecord {
            instance: Uuid::random(),
            session: session.clone(),
            pending_ask: remembered.pending_ask,
            updated_at: now(),
        };
        // First of all, since its lock keeps a second process of the same session out.
        let presence = Presence::publish(&agent_dir, &runtime, &session, &place, &about, now())?;
        let mut recorded = || -> Result<(), OpenError> {
            log.keep_state(record.instance, record.pending_ask.as_ref())?;
            durable::ensure_directories(agent_dir.path(), &runtime.leads())?;
            Ok(records::write_lead(&runtime, &record)?)
        };
        if let Err(error) = recorded() {
            presence.withdraw()?;
            return Err(error);
        }
        if let Err(error) = finish_removals(&runtime.inbox(&session), presence.claim(), &remembered.delivered)
        {
            // It will be told by every look into it.
            tracing::warn!(%error, "the inbox can't be used");
        }
        Ok(Self {
            client: Client::new(PathBuf::from(socket)),
            headers: HeaderCache::new(),
            agent_dir,
            runtime,
            session,
            record,
            delivered: remembered.delivered,
            presence,
            log,
            cleared: None,
            verified: false,
        })
    }

    /// The ask that waits for a reply.
    pub fn pending_ask(&self) -> Option<&PendingAsk> {
        self.record.pending_ask.as_ref()
    }

    /// The instance of this opening.
    pub fn instance(&self) -> Uuid {
        self.record.instance
    }

    /// The session, for what else is written to it.
    pub fn log(&mut self) -> &mut S {
        &mut self.log
    }

    /// Asks the Chief `question`, whose message says `text` (the same, or with attachments
    /// rendered). The ask is recorded first, in session and record; then, if there is a Chief who
    /// may be written to, its message is put into the Chief's inbox.
    ///
    /// # Errors
    /// [`AskError`]; that it could not be put into the inbox is none, since the Chief sees an ask by
    /// its record.
    pub async fn ask(&mut self, question: &str, text: &str) -> Result<Asked, AskError> {
        if self.record.pending_ask.is_some() {
            return Err(AskError::Pending);
        }
        let ask = PendingAsk { ask: Uuid::random(), question: question.into(), text: text.into() };
        if !lead::is_question(&ask.question) {
            return Err(AskError::Invalid(Invalid::new(
                Rule::Question,
                format!("a question has 1–{} bytes and is not blank", lead::MAX_QUESTION),
            )));
        }
        // Judged with our own id in place of the Chief's, which may not be known now.
        self.ask_message(&ask, &self.session, ask.ask)
            .and_then(|it| it.to_bytes())
            .map_err(AskError::Invalid)?;
        self.log.keep_state(self.record.instance, Some(&ask))?;
        crash_point!("lead:ask_remembered");
        if let Err(error) = self.write_record(Some(ask.clone())) {
            self.log.keep_state(self.record.instance, None)?;
            return Err(error.into());
        }
        crash_point!("lead:ask_recorded");
        let published = self.publish(&ask).await;
        Ok(Asked { ask: ask.ask, published })
    }

    async fn publish(&mut self, ask: &PendingAsk) -> Result<Uuid, NotUp> {
        let chief = self.authority().await?;
        let message = self.ask_message(ask, &chief.session, chief.lease).map_err(InboxError::Invalid)?;
        inbox::publish_ask(self.agent_dir.path(), &self.runtime.inbox(&chief.session), &message)?;
        Ok(message.id)
    }

    fn ask_message(&self, ask: &PendingAsk, chief: &SessionId, lease: Uuid) -> Result<Message, Invalid> {
        if ask.text.is_empty() {
            return Err(Invalid::new(Rule::Text, "the text of an ask is empty"));
        }
        Ok(Message {
            id: Uuid::of_ask(&self.session, ask.ask, lease),
            lease,
            kind: Kind::LeadAsk,
            from: self.session.clone(),
            to: chief.clone(),
            lead: self.session.clone(),
            ask: Some(ask.ask),
            text: ask.text.clone(),
            created_at: now(),
        })
    }

    /// Writes the Chief a message that waits for nothing.
    ///
    /// # Errors
    /// [`NotUp`]; nothing was written then.
    pub async fn tell(&mut self, text: &str) -> Result<Uuid, NotUp> {
        if text.trim().is_empty() {
            let blank = Invalid::new(Rule::Text, "there is no text to send");
            return Err(NotUp::Inbox(InboxError::Invalid(blank)));
        }
        let chief = self.authority().await?;
        let message = Message {
            id: Uuid::random(),
            lease: chief.lease,
            kind: Kind::LeadMessage,
            from: self.session.clone(),
            to: chief.session.clone(),
            lead: self.session.clone(),
            ask: None,
            text: text.into(),
            created_at: now(),
        };
        inbox::publish(self.agent_dir.path(), &self.runtime.inbox(&chief.session), &message)?;
        Ok(message.id)
    }

    /// The Chief that may be written to now: its lease, its place in Herdr and our own health are
    /// looked at, and its lease once more at the end.
    async fn authority(&mut self) -> Result<Descriptor, NotUp> {
        let chief = upward::standing_chief(&self.runtime, &self.session)?;
        upward::verify_listed(&self.client, &mut self.headers, &chief).await?;
        match records::read_lead(&self.runtime, &self.session) {
            Ok(record) if record == self.record => {}
            Ok(_) => return Err(NotUp::Unhealthy("another instance wrote it".to_owned())),
            Err(error) => return Err(NotUp::Unhealthy(error.to_string())),
        }
        let again = upward::standing_chief(&self.runtime, &self.session)?;
        if again != chief {
            return Err(NotUp::NoChief("the lease went to another just now".to_owned()));
        }
        Ok(chief)
    }

    /// Takes what is in the inbox, as the contract says: what the Chief sent under its standing
    /// lease goes into the session, a reply also clears the ask it answers, and only then the file
    /// goes. What is not the Chief's is removed unread. While no Chief can be verified everything
    /// stays; the first time since the start that takes a look into Herdr.
    ///
    /// # Errors
    /// The inbox can't be read.
    pub async fn drain(&mut self) -> Result<Drain, Unreadable> {
        let mut drain = Drain::default();
        let inbox = self.runtime.inbox(&self.session);
        let names = durable::list(inbox.path())?;
        if !names.iter().any(|name| InboxDir::message_id(name).is_some()) {
            return Ok(drain);
        }
        let chief = match self.chief_to_receive_from().await {
            Ok(chief) => chief,
            Err(why) => {
                drain.waits = Some(why);
                return Ok(drain);
            }
        };
        let Drain { received, errors, .. } = &mut drain;
        // Judging and handing over look at the same state in turn, never at once.
        let lead = RefCell::new(self);
        let drained = inbox::drain(
            &inbox,
            |message| lead.borrow().judge(message, &chief),
            |message| lead.borrow_mut().accept(message, received),
        )?;
        *errors = drained.errors;
        Ok(drain)
    }

    async fn chief_to_receive_from(&mut self) -> Result<Descriptor, NotUp> {
        let chief = upward::standing_chief(&self.runtime, &self.session)?;
        if !self.verified {
            upward::verify_listed(&self.client, &mut self.headers, &chief).await?;
            self.verified = true;
        }
        Ok(chief)
    }

    fn judge(&self, message: &Message, chief: &Descriptor) -> Verdict {
        let answers_pending = message.kind == Kind::ChiefReply
            && self.record.pending_ask.as_ref().map(|ask| ask.ask) == message.ask;
        let is_ours = message.to == self.session
            && message.lead == self.session
            && message.from == chief.session
            && message.lease == chief.lease;
        if is_ours && answers_pending {
            // Also where it was handed over before an end that came before the ask was cleared.
            Verdict::Deliver
        } else if self.delivered.contains(&message.id) {
            Verdict::Delivered
        } else if is_ours && message.kind == Kind::ChiefMessage {
            Verdict::Deliver
        } else {
            Verdict::Reject
        }
    }

    fn accept(&mut self, message: &Message, received: &mut Vec<Received>) -> Result<(), DiskError> {
        let answers = self
            .record
            .pending_ask
            .clone()
            .filter(|ask| message.kind.has_ask() && message.ask == Some(ask.ask));
        if !self.delivered.contains(&message.id) {
            self.log.hand_over(message)?;
            crash_point!("lead:handed_over");
            self.delivered.insert(message.id);
            received.push(Received { message: message.clone(), answers: answers.clone() });
        }
        if let Some(ask) = answers {
            if self.cleared != Some(ask.ask) {
                self.log.keep_state(self.record.instance, None)?;
                crash_point!("lead:ask_forgotten");
                self.cleared = Some(ask.ask);
            }
            self.write_record(None).map_err(|error| self.as_disk_error(error))?;
            crash_point!("lead:ask_cleared");
        }
        Ok(())
    }

    fn write_record(&mut self, pending_ask: Option<PendingAsk>) -> Result<(), RecordError> {
        let record = LeadRecord { pending_ask, updated_at: now(), ..self.record.clone() };
        records::write_lead(&self.runtime, &record)?;
        self.record = record;
        Ok(())
    }

    fn as_disk_error(&self, error: RecordError) -> DiskError {
        match error {
            RecordError::Unreadable(Unreadable::Disk(error)) => error,
            _ => {
                DiskError { operation: "write", path: self.runtime.lead(&self.session), reason: Errno::INVAL }
            }
        }
    }

    /// Ends the lead: its record goes if it is still this instance's, then its presence. What is
    /// queued for it stays, for when its session is opened again.
    ///
    /// # Errors
    /// The first that the disk gave; the rest was tried nevertheless.
    pub fn close(self) -> Result<(), DiskError> {
        let removed = records::remove_lead(&self.runtime, &self.session, self.record.instance);
        self.presence.withdraw()?;
        removed.map(drop)
    }
}

/// Goes on where a process of this session was killed while it removed something: what it had handed
/// over goes, anything else is judged again.
fn finish_removals(inbox: &InboxDir, by: Claim, delivered: &HashSet<Uuid>) -> Result<(), Unreadable> {
    let mut swept = Swept::default();
    leftovers::undo_removals(inbox, by.id, &mut swept)?;
    let marked = inbox::list(inbox)?.into_iter().filter(|entry| entry.quarantined);
    for entry in marked.filter(|entry| delivered.contains(&entry.name)) {
        if let Err(error) = inbox::remove(inbox, entry.name) {
            swept.stays.push(error.to_string());
        }
    }
    if !swept.stays.is_empty() {
        tracing::warn!(stays = ?swept.stays, "what a killed process left");
    }
    Ok(())
}

fn now() -> Timestamp {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}
