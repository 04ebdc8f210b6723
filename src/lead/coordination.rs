//! One lead on disk: its record, what it asks, what it takes from its inbox.
//!
//! One process holds a lead open; others may join it to ask or tell something. What all of them
//! know is in the session file, under its lock. File work is done where it is called, so a lead runs
//! on a task of its own.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::errors::{AskError, JoinError, OpenError, Unable};
use super::peers::Presence;
use super::session::{Held, SessionError, SessionFile};
use super::upward::{self, NotUp};
use super::{About, Place};
use crate::contract::record::Invalid;
use crate::contract::{
    Claim, Descriptor, Kind, LeadRecord, Message, PendingAsk, Rule, SessionId, Timestamp, Untrusted, Uuid,
    lead,
};
use crate::disk::inbox::{self, InboxError, Verdict};
use crate::disk::layout::InboxDir;
use crate::disk::leftovers::{self, Swept};
use crate::disk::records::{self, Holding, RecordError};
use crate::disk::{AgentDir, DiskError, Runtime, Unreadable, crash_point, durable};
use crate::herdr::Client;
use crate::pi::session::HeaderCache;

/// How long the session file may be away before it counts as removed.
const REPLACED_WITHIN: Duration = Duration::from_secs(2);

/// Who a lead is, and where.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The agent directory shared with the Chief.
    pub agent_dir: AgentDir,
    /// Herdr's socket, spelt as in the lead's environment: the spelling names the directory shared
    /// with the Chief.
    pub socket: OsString,
    /// Where it works.
    pub place: Place,
    /// What its peers are told.
    pub about: About,
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
pub struct Coordination {
    pub(super) agent_dir: AgentDir,
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    pub(super) headers: HeaderCache,
    pub(super) session: SessionId,
    /// As it was last written.
    record: LeadRecord,
    pub(super) presence: Presence,
    pub(super) file: SessionFile,
    /// The ask that the session no longer has while the record still does: the disk failed between.
    cleared: Option<Uuid>,
    /// Whether the Chief was fully verified since the start; later looks are content with its lease.
    verified: bool,
    /// Since when the session file is not there.
    gone_since: Option<Instant>,
}

impl Coordination {
    /// Opens the lead under a fresh instance, with the ask that its session file remembers: its
    /// presence, the instance into the session, then the record.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(opening: Opening, mut file: SessionFile) -> Result<Self, OpenError> {
        let Opening { agent_dir, socket, place, about } = opening;
        let runtime = agent_dir.runtime(&socket);
        let session = file.session().clone();
        if matches!(records::read_holding(&runtime)?, Holding::Held(chief) if chief.session == session) {
            return Err(OpenError::SelfChief);
        }
        // Before anything else is written, since its lock keeps a second process of the same session out.
        let presence = Presence::publish(&agent_dir, &runtime, &session, &place, &about, now())?;
        let mut recorded = || -> Result<LeadRecord, OpenError> {
            let held = file.lock()?;
            let record = LeadRecord {
                instance: Uuid::random(),
                session: session.clone(),
                pending_ask: file.state()?.pending_ask,
                updated_at: now(),
            };
            file.keep_state(&held, record.instance, record.pending_ask.as_ref(), now())?;
            durable::ensure_directories(agent_dir.path(), &runtime.leads())?;
            records::write_lead(&runtime, &record)?;
            Ok(record)
        };
        let record = match recorded() {
            Ok(record) => record,
            Err(error) => {
                presence.withdraw()?;
                return Err(error);
            }
        };
        for inbox in [runtime.inbox(&session), runtime.peer_inbox(&session)] {
            if let Err(error) = finish_removals(&inbox, presence.claim(), file.delivered()) {
                // It will be told by every look into it.
                tracing::warn!(%error, "an inbox can't be used");
            }
        }
        Ok(Self {
            client: Client::new(PathBuf::from(socket)),
            headers: HeaderCache::new(),
            agent_dir,
            runtime,
            session,
            record,
            presence,
            file,
            cleared: None,
            verified: false,
            gone_since: None,
        })
    }

    /// Joins the lead that another process holds open, to ask or tell something for it. Nothing is
    /// written, and nothing is to be closed.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(agent_dir: AgentDir, socket: OsString, mut file: SessionFile) -> Result<Self, JoinError> {
        let runtime = agent_dir.runtime(&socket);
        let session = file.session().clone();
        let presence = Presence::of_another(&runtime, &session).map_err(JoinError::NotOpen)?;
        let held = file.lock()?;
        let record = records::read_lead(&runtime, &session).map_err(JoinError::Record)?;
        if file.state()?.instance != Some(record.instance) {
            return Err(JoinError::OtherFile(file.path().to_owned()));
        }
        drop(held);
        Ok(Self {
            client: Client::new(PathBuf::from(socket)),
            headers: HeaderCache::new(),
            agent_dir,
            runtime,
            session,
            record,
            presence,
            file,
            cleared: None,
            verified: false,
            gone_since: None,
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

    /// Whether its presence stands, by whichever process holds it.
    pub fn is_present(&self) -> bool {
        self.presence.stands()
    }

    /// The session file, for what else is written to it.
    pub fn file(&mut self) -> &mut SessionFile {
        &mut self.file
    }

    /// Its two inboxes: what the Chief sends, and what its peers do. Made if missing, so that they
    /// can be watched.
    ///
    /// # Errors
    /// The disk's.
    pub fn inboxes(&self) -> Result<[InboxDir; 2], DiskError> {
        let inboxes = [self.runtime.inbox(&self.session), self.runtime.peer_inbox(&self.session)];
        for inbox in &inboxes {
            durable::ensure_directories(self.agent_dir.path(), inbox.path())?;
        }
        Ok(inboxes)
    }

    /// Takes over what other processes that work for the lead wrote since; who holds the lead open
    /// also finishes what one that died left undone: the session counts. What the disk does not let
    /// it finish stays for the next time.
    pub(super) fn sync(&mut self) -> Result<Held, Unable> {
        let held = self.file.lock().map_err(|error| self.unable(error))?;
        self.gone_since = None;
        let state = self.file.state()?;
        if state.instance != Some(self.record.instance) {
            return Err(Unable::AnotherInstance);
        }
        if self.presence.is_held() {
            self.stands()?;
        }
        if state.pending_ask == self.record.pending_ask {
            return Ok(held);
        }
        match records::read_lead(&self.runtime, &self.session) {
            Ok(record)
                if record.instance == self.record.instance && record.pending_ask == state.pending_ask =>
            {
                self.record = record;
            }
            // Not ours to change: sending up will be refused for it.
            Ok(record) if record.instance != self.record.instance => {}
            _ if !self.presence.is_held() => self.record.pending_ask = state.pending_ask,
            _ => {
                if state.pending_ask.is_none() {
                    self.cleared = self.record.pending_ask.as_ref().map(|ask| ask.ask);
                }
                if let Err(error) = self.write_record(state.pending_ask) {
                    tracing::warn!(%error, "writing the lead record anew");
                }
            }
        }
        Ok(held)
    }

    /// What a session file that can't be used means. One that is not there may be just being replaced; not
    /// for long, though.
    fn unable(&mut self, error: SessionError) -> Unable {
        if !error.is_gone() {
            self.gone_since = None;
        } else if self.gone_since.get_or_insert_with(Instant::now).elapsed() >= REPLACED_WITHIN {
            return Unable::Forgotten(self.file.path().to_owned());
        }
        error.into()
    }

    /// Whether who holds the lead open still is what others see of it: its record's instance, whatever
    /// ask that has, and its presence.
    fn stands(&self) -> Result<(), Unable> {
        match records::read_lead(&self.runtime, &self.session) {
            Ok(record) if record.instance != self.record.instance => {
                return Err(Unable::Withdrawn("record"));
            }
            Err(error) if error.is_missing() => return Err(Unable::Withdrawn("record")),
            // What can't be read now may be again; sending up is refused meanwhile.
            _ => {}
        }
        if self.presence.stands() { Ok(()) } else { Err(Unable::Withdrawn("presence")) }
    }

    /// Asks the Chief `question`, whose message says `text` (the same, or with attachments
    /// rendered). The ask is recorded first, in session and record; then, if there is a Chief who
    /// may be written to, its message is put into the Chief's inbox.
    ///
    /// # Errors
    /// [`AskError`]; that it could not be put into the inbox is none, since the Chief sees an ask by
    /// its record.
    pub async fn ask(
        &mut self,
        question: impl Into<Untrusted>,
        text: impl Into<Untrusted>,
    ) -> Result<Asked, AskError> {
        let held = self.sync()?;
        // Closing takes the same lock: no record is written that nobody withdraws.
        if !self.presence.stands() {
            return Err(AskError::Closed);
        }
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
        if ask.text.is_empty() {
            return Err(AskError::Invalid(Invalid::new(Rule::Text, "the text of an ask is empty")));
        }
        // Judged with our own id in place of the Chief's, which may not be known now.
        self.ask_message(&ask, &self.session, ask.ask).to_bytes().map_err(AskError::Invalid)?;
        let instance = self.record.instance;
        self.file.keep_state(&held, instance, Some(&ask), now())?;
        crash_point!("lead:ask_remembered");
        if let Err(error) = self.write_record(Some(ask.clone())) {
            self.file.keep_state(&held, instance, None, now())?;
            return Err(error.into());
        }
        drop(held);
        crash_point!("lead:ask_recorded");
        let published = self.publish(&ask).await;
        Ok(Asked { ask: ask.ask, published })
    }

    async fn publish(&mut self, ask: &PendingAsk) -> Result<Uuid, NotUp> {
        let chief = self.authority().await?;
        let message = self.ask_message(ask, &chief.session, chief.lease);
        upward::publish_ask(&self.agent_dir, &self.runtime.inbox(&chief.session), &message).await?;
        Ok(message.id)
    }

    pub(super) fn ask_message(&self, ask: &PendingAsk, chief: &SessionId, lease: Uuid) -> Message {
        Message {
            id: Uuid::of_ask(&self.session, ask.ask, lease),
            lease,
            kind: Kind::LeadAsk,
            from: self.session.clone(),
            to: chief.clone(),
            lead: self.session.clone(),
            ask: Some(ask.ask),
            text: ask.text.clone(),
            created_at: now(),
        }
    }

    /// Writes the Chief a message that waits for nothing.
    ///
    /// # Errors
    /// [`NotUp`]; nothing was written then.
    pub async fn tell(&mut self, text: impl Into<Untrusted>) -> Result<Message, NotUp> {
        let text = text.into();
        if text.is_blank() {
            let blank = Invalid::new(Rule::Text, "there is no text to send");
            return Err(NotUp::Inbox(InboxError::Invalid(blank)));
        }
        let chief = self.authority().await?;
        let message = self.message(Kind::LeadMessage, &chief.session, chief.lease, &text);
        inbox::publish(self.agent_dir.path(), &self.runtime.inbox(&chief.session), &message)?;
        Ok(message)
    }

    /// A message of ours that belongs to no ask.
    pub(super) fn message(&self, kind: Kind, to: &SessionId, lease: Uuid, text: &Untrusted) -> Message {
        Message {
            id: Uuid::random(),
            lease,
            kind,
            from: self.session.clone(),
            to: to.clone(),
            lead: self.session.clone(),
            ask: None,
            text: text.clone(),
            created_at: now(),
        }
    }

    /// The Chief that may be written to now: its lease, its place in Herdr and our own health are
    /// looked at, and its lease once more at the end.
    async fn authority(&mut self) -> Result<Descriptor, NotUp> {
        let chief = upward::standing_chief(&self.runtime, &self.session)?;
        upward::verify_listed(&self.client, &mut self.headers, &chief).await?;
        // The ask in it may be answered already, or be another process's.
        match records::read_lead(&self.runtime, &self.session) {
            Ok(record) if record.instance == self.record.instance => {}
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
    /// lease goes to `tell` and into the session, a reply also clears the ask it answers, and only
    /// then the file goes. What is not the Chief's is removed unread. While no Chief can be verified
    /// everything stays; the first time since the start that takes a look into Herdr.
    ///
    /// A message may come to `tell` again, if it could not be written into the session after it.
    ///
    /// # Errors
    /// [`Unable`]; nothing was taken then.
    pub async fn drain(
        &mut self,
        mut tell: impl FnMut(&Received) -> Result<(), DiskError>,
    ) -> Result<Drain, Unable> {
        // What others wrote is noticed, also where nothing came.
        drop(self.sync()?);
        let mut drain = Drain::default();
        let inbox = self.runtime.inbox(&self.session);
        if is_empty(&inbox)? {
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
        let held = self.sync()?;
        // Judging and handing over look at the same state in turn, never at once.
        let lead = RefCell::new(self);
        let drained = inbox::drain(
            &inbox,
            |message| lead.borrow().judge(message, &chief),
            |message| lead.borrow_mut().accept(&held, message, received, &mut tell),
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
        } else if self.file.delivered().contains(&message.id) {
            Verdict::Delivered
        } else if is_ours && message.kind == Kind::ChiefMessage {
            Verdict::Deliver
        } else {
            Verdict::Reject
        }
    }

    fn accept(
        &mut self,
        held: &Held,
        message: &Message,
        received: &mut Vec<Received>,
        tell: &mut impl FnMut(&Received) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let answers = self
            .record
            .pending_ask
            .clone()
            .filter(|ask| message.kind.has_ask() && message.ask == Some(ask.ask));
        if !self.file.delivered().contains(&message.id) {
            let new = Received { message: message.clone(), answers: answers.clone() };
            tell(&new)?;
            self.file.hand_over(held, message, now())?;
            crash_point!("lead:handed_over");
            received.push(new);
        }
        if let Some(ask) = answers {
            if self.cleared != Some(ask.ask) {
                self.file.keep_state(held, self.record.instance, None, now())?;
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
    pub fn close(mut self) -> Result<(), DiskError> {
        // So that nobody who joined is just writing the record. Who does not let go of it is not
        // waited for.
        let _held = self.file.lock();
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

/// Whether no message stands in it.
pub(super) fn is_empty(inbox: &InboxDir) -> Result<bool, Unreadable> {
    Ok(!durable::list(inbox.path())?.iter().any(|name| InboxDir::message_id(name).is_some()))
}

pub(super) fn now() -> Timestamp {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}
