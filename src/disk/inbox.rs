//! Inboxes: publishing, listing, removing and quarantining messages, and the receiver's drain.

use std::path::Path;

use super::durable::{self, DiskError, Unreadable};
use super::layout::InboxDir;
use super::lock::{LockError, ProcessLock};
use super::{crash_step, crash_steps_of};
use crate::contract::record::Invalid;
use crate::contract::{Message, Timestamp, Uuid, message};

/// Messages delivered at most in one drain.
pub const BATCH: usize = 32;

const QUARANTINE_MARKER: &[u8] = b"quarantined\n";

/// Why an inbox operation failed. The message, if it was there, is still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The message is not valid, or too large.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Another process works on that message.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The inbox can't be used.
    #[error("the inbox can't be used: {0}")]
    Unreadable(#[from] Unreadable),
    /// The ask stands there already, with another content.
    #[error("another ask stands under the id {0}")]
    Conflict(Uuid),
    /// The ask is quarantined.
    #[error("message {0} is quarantined")]
    Quarantined(Uuid),
    /// The file's message has another id than its name.
    #[error("the file {name}.json holds message {inside}")]
    Misnamed {
        /// The id its name says.
        name: Uuid,
        /// The id inside.
        inside: Uuid,
    },
}

impl InboxError {
    /// Whether the disk (or a quota) is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            InboxError::Disk(error) | InboxError::Lock(LockError::Disk(error)) => error.is_full(),
            _ => false,
        }
    }
}

/// One message file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id its name says.
    pub name: Uuid,
    /// What it holds.
    pub content: Content,
    /// Whether a marker (or anything that can't be ruled out to be one) stands beside it.
    pub quarantined: bool,
}

/// What a message file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A valid message.
    Valid(Box<Message>),
    /// Conclusively no message: too large, not JSON or not valid.
    Malformed(Invalid),
    /// Not to be judged now, or not ours to judge.
    Unreadable(Unreadable),
}

/// Every message file in `inbox`, valid ones first by time then id, the others by name.
pub fn list(inbox: &InboxDir) -> Result<Vec<Entry>, Unreadable> {
    let mut entries = Vec::new();
    for file in durable::list(inbox.path())? {
        let Some(name) = InboxDir::message_id(&file) else { continue };
        let content = match read(inbox, name) {
            Ok(message) => Content::Valid(Box::new(message)),
            Err(ReadError::Gone) => continue,
            Err(ReadError::Malformed(invalid)) => Content::Malformed(invalid),
            Err(ReadError::Unreadable(error)) => Content::Unreadable(error),
        };
        entries.push(Entry { name, content, quarantined: is_quarantined(inbox, name) });
    }
    entries.sort_by(|a, b| {
        let key = |entry: &Entry| match &entry.content {
            Content::Valid(message) => (0, Some(message.created_at), message.id, entry.name),
            _ => (1, None::<Timestamp>, entry.name, entry.name),
        };
        key(a).cmp(&key(b))
    });
    Ok(entries)
}

enum ReadError {
    Gone,
    Malformed(Invalid),
    Unreadable(Unreadable),
}

fn read(inbox: &InboxDir, name: Uuid) -> Result<Message, ReadError> {
    let bytes = match durable::read_private(&inbox.message(name), message::MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(Unreadable::Missing) => return Err(ReadError::Gone),
        Err(Unreadable::TooLarge(limit)) => {
            return Err(ReadError::Malformed(Invalid::new(
                crate::contract::Rule::TooLarge,
                format!("the message has more than {limit} bytes"),
            )));
        }
        Err(error) => return Err(ReadError::Unreadable(error)),
    };
    Message::parse(&bytes).map_err(ReadError::Malformed)
}

/// Whether the message `id` is quarantined. Any answer but "not there" counts as yes.
pub fn is_quarantined(inbox: &InboxDir, id: Uuid) -> bool {
    !matches!(durable::kind(&inbox.quarantine(id)), Ok(None))
}

/// What became of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The message stands there now, durably.
    New,
    /// The message stands there now and its receiver will take it, but something after that failed:
    /// it may not survive a loss of power, or a marker or lock of it is left.
    Unsettled(Box<InboxError>),
    /// The same ask stood there already.
    Already,
}

/// Publishes `message` in `inbox`, below the data root `base`, durably; a quarantine marker of its
/// id is cleared. An error means that it does not stand there.
pub fn publish(base: &Path, inbox: &InboxDir, message: &Message) -> Result<Published, InboxError> {
    crash_steps_of!("publish");
    let bytes = message.to_bytes()?;
    durable::ensure_directories(base, inbox.path())?;
    let lock = ProcessLock::acquire(&inbox.lock(message.id), inbox.claim(), &|_| false)?;
    let temporary = inbox.temporary(message.id, lock.claim().id);
    durable::place(&temporary, &inbox.message(message.id), &bytes)?;
    let settle = || -> Result<(), InboxError> {
        durable::unlink(&inbox.quarantine(message.id))?;
        crash_step!("unmarked");
        durable::sync_directory(inbox.path())?;
        crash_step!("synced");
        lock.release()?;
        Ok(())
    };
    Ok(match settle() {
        Ok(()) => Published::New,
        Err(error) => Published::Unsettled(Box::new(error)),
    })
}

/// Publishes an ask under its derived id: a no-op where the same ask stands already (its time
/// aside), a conflict where another does, refused where it is quarantined.
pub fn publish_ask(base: &Path, inbox: &InboxDir, message: &Message) -> Result<Published, InboxError> {
    crash_steps_of!("ask");
    let bytes = message.to_bytes()?;
    durable::ensure_directories(base, inbox.path())?;
    locked(inbox, message.id, |by| {
        if is_quarantined(inbox, message.id) {
            return Err(InboxError::Quarantined(message.id));
        }
        match read(inbox, message.id) {
            Ok(found) if (Message { created_at: message.created_at, ..found.clone() }) == *message => {
                Ok(Published::Already)
            }
            Ok(_) | Err(ReadError::Malformed(_)) => Err(InboxError::Conflict(message.id)),
            Err(ReadError::Unreadable(error)) => Err(error.into()),
            Err(ReadError::Gone) => {
                durable::place(&inbox.temporary(message.id, by), &inbox.message(message.id), &bytes)?;
                Ok(match durable::sync_directory(inbox.path()) {
                    Ok(()) => {
                        crash_step!("synced");
                        Published::New
                    }
                    Err(error) => Published::Unsettled(Box::new(error.into())),
                })
            }
        }
    })
}

/// Removes the message `id` so that a crash at any point leaves a marker, on which every check
/// fails closed.
pub fn remove(inbox: &InboxDir, id: Uuid) -> Result<(), InboxError> {
    crash_steps_of!("remove");
    locked(inbox, id, |_| {
        if durable::kind(&inbox.message(id))?.is_none() {
            // Gone already. A marker that stands is not this removal's.
            return Ok(());
        }
        {
            crash_steps_of!("marker");
            mark(inbox, id)?;
        }
        let aside = inbox.cleanup(id);
        match durable::rename_new(&inbox.message(id), &aside) {
            Ok(true) => {
                crash_step!("aside");
                durable::unlink(&aside)?;
                crash_step!("unlinked");
            }
            Ok(false) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
        durable::unlink(&inbox.quarantine(id))?;
        crash_step!("unmarked");
        durable::sync_directory(inbox.path())?;
        crash_step!("synced");
        Ok(())
    })
}

fn mark(inbox: &InboxDir, id: Uuid) -> Result<(), DiskError> {
    durable::publish(&inbox.quarantine(id), QUARANTINE_MARKER)
}

/// Marks the message `id` never to be delivered.
pub fn quarantine(inbox: &InboxDir, id: Uuid) -> Result<(), InboxError> {
    crash_steps_of!("quarantine");
    locked(inbox, id, |_| Ok(mark(inbox, id)?))
}

fn locked<T>(
    inbox: &InboxDir,
    id: Uuid,
    work: impl FnOnce(Uuid) -> Result<T, InboxError>,
) -> Result<T, InboxError> {
    let lock = ProcessLock::acquire(&inbox.lock(id), inbox.claim(), &|_| false)?;
    let result = work(lock.claim().id);
    lock.release()?;
    result
}

/// What a receiver decides of a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Authorised and new: hand it over.
    Deliver,
    /// Handed over before: just remove it.
    Delivered,
    /// Not authorised: remove it unread.
    Reject,
    /// Can't be judged now: leave it.
    Keep,
}

/// What one drain did.
#[derive(Debug, Default)]
pub struct Drained {
    /// Handed over and removed.
    pub delivered: Vec<Uuid>,
    /// Removed unread.
    pub rejected: Vec<Uuid>,
    /// What failed; those messages stay for the next try.
    pub errors: Vec<InboxError>,
}

/// Drains an inbox as its receiver: judges each message, hands over what is authorised, and removes
/// it only after `deliver` made its acceptance durable. Quarantined messages are passed over before
/// the batch is cut, so that old ones never block an inbox.
pub fn drain(
    inbox: &InboxDir,
    mut judge: impl FnMut(&Message) -> Verdict,
    mut deliver: impl FnMut(&Message) -> Result<(), DiskError>,
) -> Result<Drained, Unreadable> {
    let mut drained = Drained::default();
    let ready = list(inbox)?.into_iter().filter(|entry| !entry.quarantined);
    // What can't be settled now never stands in the way of what can.
    let mut settled = 0;
    for entry in ready {
        if settled == BATCH {
            break;
        }
        let message = match entry.content {
            Content::Valid(message) => message,
            // Of another release: not ours to remove. Grown past the limit by writing it again:
            // neither delivered nor removed.
            Content::Malformed(invalid)
                if invalid.is_of_another_release()
                    || invalid.rule == crate::contract::Rule::ReserializedTooLarge =>
            {
                continue;
            }
            Content::Malformed(_) => {
                settled += 1;
                settle(inbox, entry.name, &mut drained.rejected, &mut drained.errors);
                continue;
            }
            Content::Unreadable(_) => continue,
        };
        let verdict = judge(&message);
        match verdict {
            Verdict::Keep => continue,
            Verdict::Deliver => {
                if let Err(error) = deliver(&message) {
                    drained.errors.push(error.into());
                    continue;
                }
            }
            Verdict::Delivered | Verdict::Reject => {}
        }
        if message.id != entry.name {
            // Its removal would be that of another message.
            drained.errors.push(InboxError::Misnamed { name: entry.name, inside: message.id });
            continue;
        }
        settled += 1;
        let done = if verdict == Verdict::Reject { &mut drained.rejected } else { &mut drained.delivered };
        settle(inbox, message.id, done, &mut drained.errors);
    }
    Ok(drained)
}

fn settle(inbox: &InboxDir, id: Uuid, done: &mut Vec<Uuid>, errors: &mut Vec<InboxError>) {
    match remove(inbox, id) {
        Ok(()) => done.push(id),
        Err(error) => errors.push(error),
    }
}
