//! A lead's session: a file as Pi writes it, in which the lead keeps its state and what it was
//! delivered. After "session files" in `docs/contract.md`.
//!
//! Several processes may work for one lead: the one that holds it open, and others that ask or tell
//! for it. Whoever writes holds the file's advisory lock, and has read what stands there by then.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::STATE_TYPE;
use crate::contract::json::{Document, Json, ObjectWriter};
use crate::contract::{
    Invalid, Kind, LeadState, Message, PendingAsk, Rule, SessionId, Timestamp, Untrusted, Uuid, delivered,
};
use crate::disk::{DiskError, Unreadable, durable};
use crate::pi::session::{HeaderError, header_of_file};

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// How long the lock is waited for. It is held for the time of a few writes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries for it.
const RETRY: Duration = Duration::from_millis(5);
/// What the types of our custom messages begin with.
const MESSAGE_TYPES: &str = "pi-herdsman-";

/// Why a session file can't be used now. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It can't be read.
    #[error("the session file {} can't be used: {why}", durable::shown(path))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: Unreadable,
    },
    /// Its beginning is no session's.
    #[error("{}: {why}", durable::shown(path))]
    NoHeader {
        /// Which.
        path: PathBuf,
        /// Why.
        why: HeaderError,
    },
    /// It is another session's.
    #[error("the session file {} is of session {}", durable::shown(path), found.escaped())]
    OtherSession {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        found: SessionId,
    },
    /// Another process holds its lock and does not let go of it.
    #[error("another process keeps the session file {} locked", durable::shown(.0))]
    Busy(PathBuf),
    /// Its last state entry is malformed, so what the lead waits for is not known.
    #[error("the state in the session file {} is malformed: {why}", durable::shown(path))]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: Invalid,
    },
}

impl SessionError {
    /// Whether a later try may well succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreadable { why, .. } => why.is_passing(),
            Self::NoHeader { why, .. } => matches!(why, HeaderError::NotThere | HeaderError::Unreadable(_)),
            Self::Busy(_) => true,
            Self::OtherSession { .. } | Self::Malformed { .. } => false,
        }
    }

    /// Whether nothing stands where the file is to be.
    pub(super) fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { why: Unreadable::Missing, .. }
                | Self::NoHeader { why: HeaderError::NotThere, .. }
        )
    }
}

/// A session file that is written to.
pub struct SessionFile {
    path: PathBuf,
    session: SessionId,
    /// Gives the ids of new entries.
    ids: Box<dyn FnMut() -> String + Send>,
    /// The file that was read. It stays open, so that no other one can be taken for it: not even an
    /// inode tells a file from one that was made right after it was removed.
    file: Option<Arc<File>>,
    seen: Seen,
    patience: Duration,
}

impl fmt::Debug for SessionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFile").field("path", &self.path).field("seen", &self.seen).finish()
    }
}

/// What was read of it.
#[derive(Debug, Default)]
struct Seen {
    /// Up to where, in bytes; a line begins there.
    end: u64,
    /// How long it was, in bytes: more where its last line has no end.
    length: u64,
    /// Whether what follows is a line without an end.
    torn: bool,
    /// The last entry, which the next one hangs on.
    leaf: Option<String>,
    /// The last state entry.
    state: Option<Result<LeadState, Invalid>>,
    /// The messages that were handed over.
    delivered: HashSet<Uuid>,
    /// The asks in any state entry.
    asks: HashSet<Uuid>,
}

/// The file's lock, until dropped. Whoever writes shows it.
#[derive(Debug)]
pub struct Held(Arc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        // By its path: the standard library has a method of the same name. What can't be unlocked is
        // once the process ends.
        let _ = fs2::FileExt::unlock(&*self.0);
    }
}

impl SessionFile {
    /// Begins the session file of `session` at `path`, where nothing may stand, in a directory that
    /// exists.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(
        path: &Path,
        session: &SessionId,
        cwd: &Untrusted,
        begun: Timestamp,
    ) -> Result<(), DiskError> {
        let mut line = ObjectWriter::new()
            .string("type", &"session".into())
            .number("version", 3.0)
            .string("id", session.as_untrusted())
            .string("timestamp", &iso(begun).into())
            .string("cwd", cwd)
            .finish();
        line.push(b'\n');
        durable::create(path, &line)?;
        durable::sync_parent(path)
    }

    /// The file of `session` at `path`. Nothing is read before it is locked.
    pub fn new(path: &Path, session: SessionId) -> Self {
        let ids = || Uuid::random().to_string().chars().take(8).collect();
        Self {
            path: path.to_owned(),
            session,
            ids: Box::new(ids),
            file: None,
            seen: Seen::default(),
            patience: PATIENCE,
        }
    }

    /// The same with entries whose ids `ids` gives: 8 hex digits, none twice.
    pub fn with_ids(self, ids: impl FnMut() -> String + Send + 'static) -> Self {
        Self { ids: Box::new(ids), ..self }
    }

    /// Waits so long for the lock from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Locks the file, and reads what others wrote since it was last read.
    ///
    /// # Errors
    /// Every kind of [`SessionError`] but a malformed state, which [`SessionFile::state`] tells.
    pub fn lock(&mut self) -> Result<Held, SessionError> {
        let deadline = Instant::now() + self.patience;
        let file = loop {
            let file = self.open()?;
            // By its path, for the same reason.
            match fs2::FileExt::try_lock_exclusive(&*file) {
                Ok(()) => break Held(file),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        return Err(SessionError::Busy(self.path.clone()));
                    }
                    std::thread::sleep(RETRY);
                }
                Err(error) => {
                    let reason = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(self.unreadable(Unreadable::Disk(DiskError::flock(&self.path, reason))));
                }
            }
        };
        self.read(&file.0)?;
        Ok(file)
    }

    /// Reads what others wrote since it was last read, without locking it.
    ///
    /// # Errors
    /// As [`SessionFile::lock`].
    pub fn look(&mut self) -> Result<(), SessionError> {
        let file = self.open()?;
        self.read(&file)
    }

    /// The file that stands there now: the one that was read, or another, of which nothing was.
    fn open(&mut self) -> Result<Arc<File>, SessionError> {
        let found = durable::open_existing_to_append(&self.path).map_err(|why| self.unreadable(why))?;
        let identity = |file: &File| file.metadata().map(|it| (it.dev(), it.ino()));
        let new = identity(&found).map_err(|error| self.failed("look at", error))?;
        if let Some(file) = &self.file
            && identity(file).is_ok_and(|known| known == new)
        {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(found);
        (self.file, self.seen) = (Some(Arc::clone(&file)), Seen::default());
        Ok(file)
    }

    fn read(&mut self, file: &File) -> Result<(), SessionError> {
        let found = file.metadata().map_err(|error| self.failed("look at", error))?;
        if found.len() > MAX_BYTES {
            return Err(self.unreadable(Unreadable::TooLarge(MAX_BYTES as usize)));
        }
        if found.len() < self.seen.end {
            self.seen = Seen::default();
        }
        if self.seen.end == 0 {
            // Of the file that is read, not of what stands at the path by now.
            let header = header_of_file(file)
                .map_err(|why| SessionError::NoHeader { path: self.path.clone(), why })?;
            if header.session != self.session {
                return Err(SessionError::OtherSession { path: self.path.clone(), found: header.session });
            }
        }
        self.seen.length = self.seen.end;
        let mut file = file;
        file.seek(SeekFrom::Start(self.seen.end)).map_err(|error| self.failed("read", error))?;
        // What is appended meanwhile waits for the next time: it may never end.
        let mut reader = BufReader::with_capacity(1 << 16, file.take(found.len() - self.seen.end));
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(|error| self.failed("read", error))?;
            self.seen.torn = length > 0 && line.last() != Some(&b'\n');
            // Pi takes a last line without an end where it is whole.
            self.seen.take(&line);
            self.seen.length += length as u64;
            if length == 0 || self.seen.torn {
                return Ok(());
            }
            self.seen.end = self.seen.length;
        }
    }

    /// What the last state entry says, as of the last reading; nothing where there is none.
    ///
    /// # Errors
    /// [`SessionError::Malformed`].
    pub fn state(&self) -> Result<LeadState, SessionError> {
        match &self.seen.state {
            None => Ok(LeadState::default()),
            Some(Ok(state)) => Ok(state.clone()),
            Some(Err(why)) => Err(SessionError::Malformed { path: self.path.clone(), why: why.clone() }),
        }
    }

    /// The messages that were handed over, as of the last reading.
    pub fn delivered(&self) -> &HashSet<Uuid> {
        &self.seen.delivered
    }

    /// How many different asks it tells of, as of the last reading.
    pub fn asks(&self) -> usize {
        self.seen.asks.len()
    }

    /// The reply to `ask` that was handed over last, by its id and its text.
    ///
    /// # Errors
    /// As [`SessionFile::lock`].
    pub fn reply_to(&self, ask: Uuid) -> Result<Option<(Uuid, Untrusted)>, SessionError> {
        let file = durable::open_existing_to_append(&self.path).map_err(|why| self.unreadable(why))?;
        let mut reader = BufReader::with_capacity(1 << 16, file.take(MAX_BYTES));
        let mut reply = None;
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(|error| self.failed("read", error))? > 0 {
            reply = reply_in(&line, ask, &self.session).or(reply);
            line.clear();
        }
        Ok(reply)
    }

    /// Appends a state entry, durably.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep_state(
        &mut self,
        held: &Held,
        instance: Uuid,
        pending_ask: Option<&PendingAsk>,
        now: Timestamp,
    ) -> Result<(), DiskError> {
        let state = LeadState { instance: Some(instance), pending_ask: pending_ask.cloned() };
        let own = [("customType", json_of(&STATE_TYPE.into())), ("data", state.to_bytes())];
        self.append(held, "custom", &own, now)?;
        held.sync(&self.path)?;
        self.seen.asks.extend(pending_ask.map(|ask| ask.ask));
        self.seen.state = Some(Ok(state));
        Ok(())
    }

    /// Appends a message as a custom message, durably: the only proof of its delivery.
    ///
    /// # Errors
    /// The disk's.
    pub fn hand_over(&mut self, held: &Held, message: &Message, now: Timestamp) -> Result<(), DiskError> {
        let about = delivered::details(message);
        let details = ObjectWriter::new()
            .string("id", &about.id.to_string().into())
            .string("leaseId", &about.lease.to_string().into())
            .string("leadSessionId", &about.lead)
            .optional("askId", about.ask.map(|ask| ask.to_string().into()).as_ref())
            .finish();
        let own = [
            ("customType", json_of(&delivered::custom_type(message.kind).into())),
            ("content", json_of(&delivered::content(message).into())),
            ("display", b"true".to_vec()),
            ("details", details),
        ];
        self.append(held, "custom_message", &own, now)?;
        held.sync(&self.path)?;
        self.seen.delivered.insert(message.id);
        Ok(())
    }

    /// Appends an entry of the type `kind` with the members `own`, each as JSON text: one write, as
    /// others may read meanwhile.
    ///
    /// # Errors
    /// The disk's.
    pub fn append(
        &mut self,
        held: &Held,
        kind: &str,
        own: &[(&str, Vec<u8>)],
        at: Timestamp,
    ) -> Result<(), DiskError> {
        let id = (self.ids)();
        let mut object = ObjectWriter::new();
        object.string("type", &kind.into());
        // Extensions' entries have what is theirs before what all have.
        let (first, last) = if kind.starts_with("custom") { (own, &[][..]) } else { (&[][..], own) };
        for (key, value) in first {
            object.raw(key, value);
        }
        object.string("id", &id.as_str().into());
        let parent = self.seen.leaf.as_deref().map_or(b"null".to_vec(), |leaf| json_of(&leaf.into()));
        object.raw("parentId", &parent).string("timestamp", &iso(at).into());
        for (key, value) in last {
            object.raw(key, value);
        }
        let mut line = if self.seen.torn { b"\n".to_vec() } else { Vec::new() };
        line.extend(object.finish());
        line.push(b'\n');
        self.seen.torn = true;
        (&*held.0).write_all(&line).map_err(DiskError::io("write", &self.path))?;
        self.seen.torn = false;
        self.seen.leaf = Some(id);
        // Read already, unless somebody wrote without the lock: then all of it is read again.
        let length = self.seen.length + line.len() as u64;
        if held.0.metadata().is_ok_and(|found| found.len() == length) {
            (self.seen.end, self.seen.length) = (length, length);
        }
        Ok(())
    }

    fn unreadable(&self, why: Unreadable) -> SessionError {
        SessionError::Unreadable { path: self.path.clone(), why }
    }

    fn failed(&self, operation: &'static str, error: io::Error) -> SessionError {
        self.unreadable(Unreadable::Disk(DiskError::io(operation, &self.path)(error)))
    }
}

impl Held {
    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.0.sync_data().map_err(DiskError::io("sync", path))
    }
}

impl Seen {
    /// Takes one line, which may be anything.
    fn take(&mut self, line: &[u8]) {
        let document = Document::decode(line);
        let Some(entry) = document.value().ok().and_then(Entry::of) else { return };
        if entry.kind == "session" {
            return;
        }
        if entry.kind == "custom" && entry.custom_type.as_ref().is_some_and(|it| it == STATE_TYPE) {
            let state = match entry.get("data") {
                Some(data) => LeadState::from_json(data),
                None => Err(Invalid::new(Rule::MissingKey, "the state entry has no data")),
            };
            let asks = state.as_ref().ok().and_then(|state| state.pending_ask.as_ref());
            self.asks.extend(asks.map(|ask| ask.ask));
            self.state = Some(state);
        } else if entry.kind == "custom_message" && entry.is_ours() {
            self.delivered.extend(entry.detail("id"));
        }
        self.leaf = entry.id.map(|id| id.to_str_lossy().into_owned()).or_else(|| self.leaf.take());
    }
}

/// What an entry of any type may have.
struct Entry<'a> {
    kind: Untrusted,
    custom_type: Option<Untrusted>,
    id: Option<Untrusted>,
    members: Vec<(Untrusted, Json<'a>)>,
}

impl<'a> Entry<'a> {
    fn of(value: Json<'a>) -> Option<Self> {
        let members = value.object()?;
        let text =
            |key: &str| members.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.string());
        Some(Self { kind: text("type")?, custom_type: text("customType"), id: text("id"), members })
    }

    fn get(&self, key: &str) -> Option<Json<'a>> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Whether it is a delivered message of the contract.
    fn is_ours(&self) -> bool {
        let begins = |it: &Untrusted| it.as_wtf8().starts_with(MESSAGE_TYPES.as_bytes());
        self.custom_type.as_ref().is_some_and(begins)
    }

    /// An id in a delivered message's details.
    fn detail(&self, key: &str) -> Option<Uuid> {
        let details = self.get("details")?.object()?;
        let value = details.iter().find(|(name, _)| name == key).map(|(_, value)| *value)?;
        Uuid::from_untrusted(&value.string()?)
    }
}

/// The id and text of the reply to `ask` that a line delivers, if it does.
fn reply_in(line: &[u8], ask: Uuid, lead: &SessionId) -> Option<(Uuid, Untrusted)> {
    let document = Document::decode(line);
    let entry = Entry::of(document.value().ok()?)?;
    let is_reply = entry.kind == "custom_message"
        && entry.custom_type.as_ref().is_some_and(|it| *it == *delivered::custom_type(Kind::ChiefReply))
        && entry.detail("askId") == Some(ask);
    if !is_reply {
        return None;
    }
    let text = delivered::text_from_chief(&entry.get("content")?.string()?, lead);
    Some((entry.detail("id")?, text))
}

fn json_of(text: &Untrusted) -> Vec<u8> {
    let mut bytes = Vec::new();
    text.write_json(&mut bytes);
    bytes
}

/// A time as sessions have it: `2026-11-30T07:59:22.011Z`.
pub fn iso(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(0);
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests;
