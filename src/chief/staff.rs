//! The actions of a Chief on its leads. Each revalidates lease, target and ask right before it
//! writes, whatever a screen showed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::attach::{self, AttachError, Draft, FileArgument, Heading, Limits, LimitsError, Rendered};
use super::journal::{Event, Journal};
use super::lease::{Lease, Lost};
use super::outbox::Outbox;
use crate::contract::{Invalid, Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::inbox::{self, InboxError};
use crate::disk::mailboxes::{self, Looker, Scan};
use crate::disk::thread::DiskThreadGone;
use crate::disk::{AgentDir, DiskError, Runtime, Unreadable, crash_point, durable, records};
use crate::fact::{Fate, Now, Sent};
use crate::herd::evidence::{AgentSession, BrokenMailbox, Evidence, UnreadableRecord};
use crate::herd::inventory::{Inventory, SessionFacts};
use crate::herd::roster::{self, Lead, Roster};
use crate::herd::{LeftOut, presence};
use crate::herdr::{HerdrError, Snapshot};
use crate::pi::session::HeaderCache;

/// Why an action was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// We are not Chief.
    #[error("you are not Chief")]
    NotChief,
    /// We were until now.
    #[error("the Chief lease is lost: {0}")]
    Lost(Lost),
    /// The lease is another than the one the text was written under.
    #[error("the Chief lease changed since this was opened: open it again to send under the new one")]
    AnotherLease,
    /// The target is no supervised lead now.
    #[error("{0}")]
    NoLead(String),
    /// The lead was started again.
    #[error("the lead was restarted since this was opened: open it again to see what it asks now")]
    AnotherInstance,
    /// The ask is not pending.
    #[error("the ask is not pending any more: it was answered or withdrawn")]
    NotPending,
    /// Another ask is.
    #[error("the lead asks something else now: open its ask to see it")]
    AnotherAsk,
    /// A reply to this ask is on its way.
    #[error(
        "a reply to this ask is in the lead's inbox already: wait until the lead takes it, or write a message"
    )]
    AlreadyReplied,
    /// Another message was sent under the id that was chosen for this one.
    #[error("another message was sent under the id {0}: its lead, its ask or its text is another")]
    OtherUnderId(Uuid),
    /// The lead's inbox has something under the id that was chosen.
    #[error("the lead's inbox has something else under the id {0}")]
    IdTaken(Uuid),
    /// Nothing of that id was sent from here.
    #[error("the journal has no such message")]
    NotSent,
    /// Sending it again would have it there twice.
    #[error("it is {0}: only what may have been discarded, or was not sent, goes out again")]
    NotDoubtful(&'static str),
    /// The journal is not open.
    #[error("the journal is not open: see headman doctor")]
    NoJournal,
    /// There is nothing to send.
    #[error("there is no text to send")]
    Blank,
    /// The files can't be attached, or the record would be too large.
    #[error("{0}. {hint}", hint = .0.hint())]
    Attach(AttachError),
    /// The record would be too large or is not valid.
    #[error("{0}")]
    Invalid(Invalid),
    /// The lead's inbox can't be written.
    #[error("can't put it into the lead's inbox: {0}")]
    Inbox(InboxError),
    /// The disk is full.
    #[error("the disk is full: free some space, then send again")]
    DiskFull,
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The lead records can't be read.
    #[error("the lead records can't be read: {0}")]
    Records(Unreadable),
    /// The disk thread ended.
    #[error(transparent)]
    Gone(#[from] DiskThreadGone),
    /// A bug of ours, before anything was written.
    #[error("headman failed before anything was written; its log says where. Send it again")]
    Panicked,
    /// Herdr does not answer, so the lead can't be verified.
    #[error("can't verify the lead, Herdr does not answer: {0}")]
    Herdr(HerdrError),
}

impl From<AttachError> for Refusal {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Blank => Refusal::Blank,
            error => Refusal::Attach(error),
        }
    }
}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        match error {
            error if error.is_disk_full() => Refusal::DiskFull,
            InboxError::Invalid(invalid) => Refusal::Invalid(invalid),
            error => Refusal::Inbox(error),
        }
    }
}

/// A reply to one ask of one instance of a lead, as it was when the text was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The lead.
    pub lead: SessionId,
    /// Its instance.
    pub instance: Uuid,
    /// The ask.
    pub ask: Uuid,
    /// What was asked: another question under the same id is not answered with this.
    pub question: Untrusted,
    /// Our lease.
    pub lease: Uuid,
    /// What to say.
    pub text: Untrusted,
    /// What to attach to it, in this order.
    pub files: Vec<FileArgument>,
    /// The id it is to have, so that it can be asked for again and is not sent twice; else a fresh one.
    #[serde(default)]
    pub id: Option<Uuid>,
}

/// A message to one instance of a lead, as it was when the text was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The lead.
    pub lead: SessionId,
    /// Its instance.
    pub instance: Uuid,
    /// Our lease.
    pub lease: Uuid,
    /// What to say.
    pub text: Untrusted,
    /// What to attach to it, in this order.
    pub files: Vec<FileArgument>,
    /// The id it is to have, so that it can be asked for again and is not sent twice; else a fresh one.
    #[serde(default)]
    pub id: Option<Uuid>,
}

/// What the actions work on: shared between the service and its disk thread.
pub struct Office {
    agent_dir: AgentDir,
    runtime: Runtime,
    session: SessionId,
    started: Instant,
    lease: Mutex<Option<Lease>>,
    outbox: Mutex<Outbox>,
    journal: Mutex<Option<Journal>>,
    /// Fates that the journal does not know yet.
    owed: Mutex<Vec<(Uuid, Fate)>>,
    headers: Mutex<HeaderCache>,
    /// Where directories really are, of those that Herdr names.
    directories: Mutex<HashMap<Untrusted, Untrusted>>,
    mailboxes: Mutex<Looker>,
}

impl Office {
    /// The office of `session` on `runtime`; ages count from `started`.
    pub fn new(agent_dir: AgentDir, runtime: Runtime, session: SessionId, started: Instant) -> Self {
        Self {
            mailboxes: Mutex::new(Looker::new(agent_dir.mailboxes())),
            agent_dir,
            runtime,
            session,
            started,
            lease: Mutex::default(),
            outbox: Mutex::default(),
            journal: Mutex::default(),
            owed: Mutex::default(),
            headers: Mutex::new(HeaderCache::new()),
            directories: Mutex::default(),
        }
    }

    /// Our session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The runtime of our socket.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The agent directory.
    pub fn agent_dir(&self) -> &AgentDir {
        &self.agent_dir
    }

    /// From when ages count.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Now { wall: Timestamp::from_millis(wall.as_millis() as u64), mono: self.started.elapsed() }
    }

    /// The lease, if we hold one.
    pub fn lease(&self) -> MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What we sent.
    pub fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The journal, once it was opened.
    pub fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out the sessions of a snapshot's agents. Blocking.
    pub fn inventory(
        &self,
        snapshot: &Snapshot,
        branches: &std::collections::BTreeMap<Untrusted, crate::herd::inventory::Branch>,
    ) -> Inventory {
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inventory = Inventory::of_snapshot(snapshot, branches, |path| {
            let header = headers.header(&path_of(path)).map_err(|error| error.to_string())?;
            Ok(SessionFacts { session: header.session, name: header.name })
        });
        let shown: std::collections::HashSet<PathBuf> =
            crate::herd::inventory::session_paths(snapshot).map(path_of).collect();
        headers.retain(|path| shown.contains(path));
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *directories);
        inventory.resolve_directories(|cwd| {
            let known = directories.get(cwd).cloned().or_else(|| before.remove(cwd));
            let real = known.unwrap_or_else(|| durable::real_directory(cwd));
            directories.insert(cwd.clone(), real.clone());
            real
        });
        inventory
    }

    /// The managed agents' mailboxes as they are now, reading those that changed since the last
    /// call. Blocking.
    pub fn mailboxes(&self) -> Arc<Scan> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner).look()
    }

    /// Projects a snapshot with records and mailboxes as they are on disk now. Blocking.
    pub fn roster(&self, snapshot: &Snapshot) -> Result<Roster, Unreadable> {
        self.roster_of(&self.inventory(snapshot, &Default::default()))
    }

    /// Projects an inventory with records and mailboxes as they are on disk now. Blocking.
    pub fn roster_of(&self, inventory: &Inventory) -> Result<Roster, Unreadable> {
        // All of them anew: whether a session is managed must not hang on what was read before.
        let mailboxes = mailboxes::scan(&self.agent_dir.mailboxes());
        let mut evidence = evidence_of(inventory, &mailboxes, self.session.clone());
        for (name, read) in records::scan_leads(&self.runtime)? {
            match read {
                Ok(record) => evidence.leads.push(record),
                Err(error) if error.is_missing() => {}
                Err(error) => {
                    evidence.unreadable_leads.push(unreadable(&name.to_string_lossy(), error.to_string()))
                }
            }
        }
        Ok(roster::project(&evidence))
    }

    /// What a message may hold, as it is configured now. Blocking.
    ///
    /// # Errors
    /// [`LimitsError`].
    pub fn limits(&self) -> Result<Limits, LimitsError> {
        Limits::load(&self.agent_dir.data_root())
    }

    /// The text of a message from us to `lead` as its record will hold it, with the files attached,
    /// under the limits configured now. Blocking: files are read.
    ///
    /// # Errors
    /// [`AttachError`]; with files or without, the record has to fit.
    pub fn render(
        &self,
        kind: Kind,
        lead: &SessionId,
        text: &Untrusted,
        files: &[FileArgument],
    ) -> Result<Rendered, AttachError> {
        let limits = self.limits()?;
        let data_root = self.agent_dir.data_root();
        let draft = Draft { text, heading: Heading::of(kind), files };
        let id = Uuid::random();
        attach::render(&draft, &data_root, limits, |text| record_bytes(&self.session, lead, kind, id, text))
    }

    /// Replies to an ask: `staff_reply` of `docs/contract.md`. Success means queued, not read, unless
    /// one of that id was sent already: then what became of that. Blocking: for the disk thread, with
    /// a snapshot taken just before.
    pub fn reply(&self, snapshot: &Snapshot, reply: &Reply) -> Result<Vec<Sent>, Refusal> {
        let words = (&reply.text, !reply.files.is_empty());
        if let Some(id) = reply.id
            && let Some(sent) = self.sent_already(snapshot, id, (&reply.lead, Some(reply.ask)), words)?
        {
            return Ok(sent);
        }
        // Early, because reading files may take long: nothing may come between what is checked
        // below and the write.
        let text = self.render(Kind::ChiefReply, &reply.lead, &reply.text, &reply.files)?.text;
        let lead = self.roster(snapshot).map_err(Refusal::Records)?;
        let lead = target(&lead, &reply.lead)?;
        if lead.instance != reply.instance {
            return Err(Refusal::AnotherInstance);
        }
        match &lead.pending_ask {
            Some(ask) if ask.ask == reply.ask && ask.question == reply.question => {}
            Some(_) => return Err(Refusal::AnotherAsk),
            None => return Err(Refusal::NotPending),
        }
        self.send(Kind::ChiefReply, lead, Some(reply.ask), reply.lease, text, reply.id)
    }

    /// Sends a message: `staff_message` of `docs/contract.md`. As for [`Office::reply`].
    pub fn message(&self, snapshot: &Snapshot, letter: &Letter) -> Result<Vec<Sent>, Refusal> {
        let words = (&letter.text, !letter.files.is_empty());
        if let Some(id) = letter.id
            && let Some(sent) = self.sent_already(snapshot, id, (&letter.lead, None), words)?
        {
            return Ok(sent);
        }
        let text = self.render(Kind::ChiefMessage, &letter.lead, &letter.text, &letter.files)?.text;
        let roster = self.roster(snapshot).map_err(Refusal::Records)?;
        let lead = target(&roster, &letter.lead)?;
        if lead.instance != letter.instance {
            return Err(Refusal::AnotherInstance);
        }
        self.send(Kind::ChiefMessage, lead, None, letter.lease, text, letter.id)
    }

    /// Writes a message whose text is rendered.
    fn send(
        &self,
        kind: Kind,
        lead: &Lead,
        ask: Option<Uuid>,
        bound_to: Uuid,
        text: Untrusted,
        id: Option<Uuid>,
    ) -> Result<Vec<Sent>, Refusal> {
        let lead_session = &lead.session;
        let guard = self.lease();
        let lease = guard.as_ref().ok_or(Refusal::NotChief)?;
        lease.check()?.map_err(Refusal::Lost)?;
        if lease.id() != bound_to {
            return Err(Refusal::AnotherLease);
        }
        if ask.is_some_and(|ask| self.outbox().is_answering(lead_session, ask)) {
            return Err(Refusal::AlreadyReplied);
        }
        let inbox = self.runtime.inbox(lead_session).worked_on_by(lease.own_claim());
        // Whose id it is, if not of a message of ours, nobody can say.
        if let Some(id) = id
            && (durable::kind(&inbox.message(id))?.is_some() || inbox::is_quarantined(&inbox, id))
        {
            return Err(Refusal::IdTaken(id));
        }
        let message = Message {
            id: id.unwrap_or_else(Uuid::random),
            lease: lease.id(),
            kind,
            from: self.session.clone(),
            to: lead_session.clone(),
            lead: lead_session.clone(),
            ask,
            text,
            created_at: self.now().wall,
        };
        // Journalled first: whatever happens next, it is known that this was to be sent.
        let mut journal = self.journal();
        let journal = journal.as_mut().ok_or(Refusal::NoJournal)?;
        // Who answers an ask has seen it.
        let seen: Vec<u64> = (journal.index().received())
            .filter(|it| ask.is_some() && it.ask == ask && it.lead.as_ref() == Some(lead_session) && !it.read)
            .map(|letter| letter.seq)
            .collect();
        let mut events = vec![Event::Sent(&message)];
        if !seen.is_empty() {
            events.push(Event::Read(&seen));
        }
        self.pay(journal, events, message.created_at)
            .map_err(|error| if error.is_full() { Refusal::DiskFull } else { Refusal::Disk(error) })?;
        crash_point!("send:journalled");
        self.expect(lead);
        let published = inbox::publish(self.agent_dir.path(), &inbox, &message);
        crash_point!("send:published");
        if published.is_err() {
            self.owe(message.id, Fate::Unsent);
            if let Err(error) = self.pay(journal, None, message.created_at) {
                tracing::warn!(%error, id = %message.id, "journalling what was not sent");
            }
        }
        match published? {
            inbox::Published::Unsettled(error) => {
                tracing::warn!(%error, id = %message.id, "after publishing")
            }
            inbox::Published::New | inbox::Published::Already => {}
        }
        let sent = Sent {
            id: message.id,
            kind,
            lead: message.to,
            ask,
            text: message.text,
            at: message.created_at,
            fate: Fate::Queued,
        };
        self.outbox().add(sent.clone(), message.lease);
        Ok(vec![sent])
    }

    /// Has the journal know a fate as soon as it can: what was refused because the disk is full must
    /// not be taken for queued by the next lease.
    pub(super) fn owe(&self, id: Uuid, fate: Fate) {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner).push((id, fate));
    }

    /// The fate of that message where the journal is still to know it.
    pub(super) fn owed(&self, id: Uuid) -> Option<Fate> {
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        owed.iter().rev().find(|(owed, _)| *owed == id).map(|(_, fate)| *fate)
    }

    /// Appends what is owed to the journal, and `also` with it.
    pub(super) fn pay<'a>(
        &self,
        journal: &mut Journal,
        also: impl IntoIterator<Item = Event<'a>>,
        at: Timestamp,
    ) -> Result<(), DiskError> {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events: Vec<Event<'a>> =
            owed.iter().map(|(id, fate)| Event::Fate { id: *id, fate: *fate }).collect();
        events.extend(also);
        if !events.is_empty() {
            journal.append(&events, at)?;
            owed.clear();
        }
        Ok(())
    }

    /// Something is about to be sent to `lead`: what its session holds by now proves nothing of it.
    pub(super) fn expect(&self, lead: &Lead) {
        if let Some(file) = &lead.session_file {
            self.outbox().expect(&lead.session, &path_of(file));
        }
    }

    /// Looks again at what we sent; where the leads' sessions are, `snapshot` tells. Blocking.
    pub fn look_at_outbox(&self, snapshot: Option<&Snapshot>) -> Vec<Sent> {
        if !self.outbox().is_watching() {
            return Vec::new();
        }
        let lease = self.lease();
        let unbroken = match lease.as_ref().map(|lease| (lease.id(), lease.check())) {
            Some((id, Ok(Ok(())))) => Some(id),
            Some((_, Ok(Err(_)))) | None => None,
            // The disk fails: nothing can be told now.
            Some((_, Err(_))) => return Vec::new(),
        };
        let files = match snapshot {
            Some(snapshot) if self.outbox().lacks_a_session() => self.session_files(snapshot),
            _ => HashMap::new(),
        };
        let now = self.now();
        let changed = self.outbox().look(&self.runtime, unbroken, now.mono, &files);
        // Without the lease another console may be writing: the next lease works it out anew.
        if unbroken.is_some()
            && let Some(journal) = self.journal().as_mut()
        {
            for sent in &changed {
                self.owe(sent.id, sent.fate);
            }
            if let Err(error) = self.pay(journal, None, now.wall) {
                tracing::warn!(%error, "journalling fates");
            }
        }
        changed
    }

    /// Where the session of each live Pi agent is, unless two say that they are the same.
    fn session_files(&self, snapshot: &Snapshot) -> HashMap<SessionId, PathBuf> {
        let mut files: HashMap<SessionId, Option<PathBuf>> = HashMap::new();
        for agent in self.inventory(snapshot, &Default::default()).agents {
            let (AgentSession::Known(session), Some(file)) = (agent.session, agent.session_file) else {
                continue;
            };
            let Some(session) = SessionId::new(session) else { continue };
            let file = path_of(&file);
            let known = files.entry(session).or_insert_with(|| Some(file.clone()));
            if known.as_ref() != Some(&file) {
                *known = None;
            }
        }
        files.into_iter().filter_map(|(session, file)| Some((session, file?))).collect()
    }
}

/// The bytes our reply of `text` takes of the 8,192.
pub fn reply_bytes(us: &SessionId, lead: &SessionId, ask: Uuid, text: &str) -> usize {
    record_bytes(us, lead, Kind::ChiefReply, ask, &text.into())
}

/// The bytes our message of `text` takes of the 8,192.
pub fn message_bytes(us: &SessionId, lead: &SessionId, text: &str) -> usize {
    record_bytes(us, lead, Kind::ChiefMessage, Uuid::random(), &text.into())
}

/// The bytes that a record of ours to `lead` takes with that text. Any `id` has as many characters
/// as those it will have.
fn record_bytes(us: &SessionId, lead: &SessionId, kind: Kind, id: Uuid, text: &Untrusted) -> usize {
    Message {
        id,
        lease: id,
        kind,
        from: us.clone(),
        to: lead.clone(),
        lead: lead.clone(),
        ask: kind.has_ask().then_some(id),
        text: text.clone(),
        // Any time of this century has this many digits.
        created_at: Timestamp::from_millis(1_700_000_000_000),
    }
    .byte_len()
}

/// The evidence that an inventory and the mailboxes give, without records.
pub fn evidence_of(inventory: &Inventory, mailboxes: &Scan, chief: SessionId) -> Evidence {
    let broken = mailboxes
        .broken
        .iter()
        .map(|broken| BrokenMailbox { directory: broken.directory.clone(), why: broken.error.to_string() });
    Evidence {
        agents: inventory.agents.clone(),
        provenance: inventory.provenance.clone(),
        managed: presence::managed_agents(&mailboxes.posts, inventory),
        managed_session_ids: mailboxes.sessions().cloned().collect(),
        broken_mailboxes: broken.collect(),
        chief_session: Some(chief),
        ..Evidence::default()
    }
}

/// A record in the file `name` that can't be used.
pub fn unreadable(name: &str, why: String) -> UnreadableRecord {
    UnreadableRecord { hash: name.strip_suffix(".json").map(str::to_owned), why }
}

pub(super) fn target<'a>(roster: &'a Roster, session: &SessionId) -> Result<&'a Lead, Refusal> {
    roster.lead(session).ok_or_else(|| {
        let why = roster.why_not(session).map_or_else(
            || format!("session {} is no lead that Herdr shows now", session.escaped()),
            LeftOut::sentence,
        );
        Refusal::NoLead(why)
    })
}

/// The path that Herdr's inventory names.
pub(crate) fn path_of(path: &Untrusted) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(path.to_str_lossy().into_owned().into_bytes()).into()
}
