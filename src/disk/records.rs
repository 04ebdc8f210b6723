//! Lead records, peer presence and the Chief descriptor on disk.

use std::ffi::{OsStr, OsString};

use super::durable::{self, DiskError, Unreadable};
use super::layout::Runtime;
use super::lock::{self, Holder};
use super::{crash_step, crash_steps_of};
use crate::contract::record::{Invalid, Rule};
use crate::contract::{Claim, Descriptor, LeadRecord, PeerRecord, SessionId, Uuid, descriptor, lead, peer};

/// Why a record is not used. It is left where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The file is not read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// What it holds is not valid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Its process lock does not carry it.
    #[error("{0}")]
    Unclaimed(String),
}

impl RecordError {
    /// Whether it is simply not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, RecordError::Unreadable(Unreadable::Missing))
    }

    /// Why the record is not used: a stable name.
    pub fn verdict(&self) -> &'static str {
        match self {
            RecordError::Unreadable(error) => error.verdict(),
            // What a crash in the middle of a plain write leaves.
            RecordError::Invalid(invalid)
                if invalid.rule == Rule::NotJson && invalid.message.contains("EOF") =>
            {
                "torn"
            }
            RecordError::Invalid(invalid) => invalid.rule.as_str(),
            RecordError::Unclaimed(_) => "no_live_process",
        }
    }
}

/// Records by file name, each read or refused on its own.
pub type Scanned<T> = Vec<(OsString, Result<T, RecordError>)>;

/// Reads the Chief descriptor.
pub fn read_descriptor(runtime: &Runtime) -> Result<Descriptor, RecordError> {
    Ok(Descriptor::parse(&durable::read_private(&runtime.descriptor(), descriptor::MAX_BYTES)?)?)
}

/// Publishes the Chief descriptor, through a temporary file that its claim names.
pub fn write_descriptor(runtime: &Runtime, descriptor: &Descriptor) -> Result<(), DiskError> {
    crash_steps_of!("descriptor");
    let path = runtime.descriptor();
    let temporary = durable::hidden(&path, descriptor.claim.id, "tmp");
    durable::publish_through(&temporary, &path, &descriptor.to_bytes())
}

/// Removes the descriptor if it is exactly `ours`; says whether it was.
pub fn remove_descriptor(runtime: &Runtime, ours: &Descriptor) -> Result<bool, DiskError> {
    if read_descriptor(runtime).ok().as_ref() != Some(ours) {
        return Ok(false);
    }
    durable::unlink(&runtime.descriptor())?;
    crash_step!("undescribed");
    durable::sync_parent(&runtime.descriptor())?;
    Ok(true)
}

/// Who is Chief, read fresh from lock and descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Nobody claims the lease.
    Free,
    /// A live process claims it, and the descriptor is its own.
    Held(Descriptor),
    /// A live process claims it, and has no valid descriptor (yet).
    InProgress(Claim),
    /// The process that claimed it is gone.
    Stale(Claim),
    /// It can't be told; safe to print why.
    Unverifiable(String),
}

/// Reads who is Chief.
pub fn read_holding(runtime: &Runtime) -> Result<Holding, DiskError> {
    Ok(match lock::holder(&runtime.lock())? {
        Holder::Absent => Holding::Free,
        Holder::Unverifiable(reason) => Holding::Unverifiable(reason),
        Holder::Claimed(claim, lock::Liveness::Dead) => Holding::Stale(claim),
        Holder::Claimed(claim, lock::Liveness::Unverifiable) => {
            Holding::Unverifiable(format!("process {} can't be asked about", claim.pid))
        }
        Holder::Claimed(claim, lock::Liveness::Alive) => match read_descriptor(runtime) {
            Ok(descriptor) if descriptor.claim == claim => Holding::Held(descriptor),
            _ => Holding::InProgress(claim),
        },
    })
}

/// Reads the record of the lead `session`.
pub fn read_lead(runtime: &Runtime, session: &SessionId) -> Result<LeadRecord, RecordError> {
    Ok(LeadRecord::parse(&durable::read_private(&runtime.lead(session), lead::MAX_BYTES)?, session)?)
}

/// Reads every lead record, each by its file name. Temporary files are passed over.
pub fn scan_leads(runtime: &Runtime) -> Result<Scanned<LeadRecord>, Unreadable> {
    let mut records = Vec::new();
    for name in durable::list(&runtime.leads())? {
        if let Some(record) = read_lead_named(runtime, &name) {
            records.push((name, record));
        }
    }
    records.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(records)
}

/// Reads the lead record in the file `name`; none where the name is no record's.
pub fn read_lead_named(runtime: &Runtime, name: &OsString) -> Option<Result<LeadRecord, RecordError>> {
    let text = name.to_str()?;
    is_record_name(text).then(|| {
        let bytes = durable::read_private(&runtime.leads().join(text), lead::MAX_BYTES)?;
        Ok(LeadRecord::parse_named(&bytes, text)?)
    })
}

fn is_record_name(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_hash)
}

/// Whether it is a hash as those that name records and inboxes.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Publishes a lead record.
pub fn write_lead(runtime: &Runtime, record: &LeadRecord) -> Result<(), RecordError> {
    let bytes = record.to_bytes()?;
    durable::publish(&runtime.lead(&record.session), &bytes)
        .map_err(|error| RecordError::Unreadable(Unreadable::Disk(error)))
}

/// Removes a lead's record if it is still of `instance`; says whether it was.
pub fn remove_lead(runtime: &Runtime, session: &SessionId, instance: Uuid) -> Result<bool, DiskError> {
    match read_lead(runtime, session) {
        Ok(record) if record.instance == instance => {
            let removed = durable::unlink(&runtime.lead(session))?;
            durable::sync_parent(&runtime.lead(session))?;
            Ok(removed)
        }
        _ => Ok(false),
    }
}

/// Reads the presence of `session`, proved by its process lock.
pub fn read_peer(runtime: &Runtime, session: &SessionId) -> Result<PeerRecord, RecordError> {
    let bytes = durable::read_private(&runtime.peer(session), peer::MAX_BYTES)?;
    let record = PeerRecord::parse(&bytes, session)?;
    check_peer_lock(runtime, &record)?;
    Ok(record)
}

/// Reads every valid presence; the others hide none.
pub fn scan_peers(runtime: &Runtime) -> Result<Scanned<PeerRecord>, Unreadable> {
    let mut peers = Vec::new();
    for name in durable::list(&runtime.peer_records())? {
        if let Some((record, presence)) = read_presence_named(runtime, &name) {
            // Where there is no record, its presence says why.
            peers.push((name, presence.and_then(|()| record.ok_or(Unreadable::Missing.into()))));
        }
    }
    peers.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(peers)
}

/// What stands in the presence file `name`, where it is a record at all, and whether it counts: one
/// whose process is gone still tells who it was. None where the name is no record's.
pub fn read_presence_named(
    runtime: &Runtime,
    name: &OsStr,
) -> Option<(Option<PeerRecord>, Result<(), RecordError>)> {
    let text = name.to_str().filter(|text| is_record_name(text))?;
    let read = || -> Result<PeerRecord, RecordError> {
        let bytes = durable::read_private(&runtime.peer_records().join(text), peer::MAX_BYTES)?;
        Ok(PeerRecord::parse_named(&bytes, text)?)
    };
    Some(match read() {
        Ok(record) => {
            let presence = check_peer_lock(runtime, &record);
            (Some(record), presence)
        }
        Err(error) => (None, Err(error)),
    })
}

fn check_peer_lock(runtime: &Runtime, record: &PeerRecord) -> Result<(), RecordError> {
    let holder = lock::holder(&runtime.peer_lock(&record.session))
        .map_err(|error| RecordError::Unreadable(Unreadable::Disk(error)))?;
    match holder {
        Holder::Claimed(claim, lock::Liveness::Alive) if claim == record.claim => Ok(()),
        Holder::Claimed(_, lock::Liveness::Alive) => {
            Err(RecordError::Unclaimed("another process took its lock".to_owned()))
        }
        Holder::Claimed(claim, lock::Liveness::Dead) => {
            Err(RecordError::Unclaimed(format!("its process {} is gone", claim.pid)))
        }
        Holder::Claimed(claim, lock::Liveness::Unverifiable) => {
            Err(RecordError::Unclaimed(format!("its process {} can't be asked about", claim.pid)))
        }
        Holder::Absent => Err(RecordError::Unclaimed("its lock is not there".to_owned())),
        Holder::Unverifiable(reason) => Err(RecordError::Unclaimed(reason)),
    }
}
