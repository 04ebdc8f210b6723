//! Small files of the console's own in the state directory: JSON with a version, read and replaced
//! whole. What stands in the place of one and is none is never replaced.
//!
//! Synchronous: called on the disk thread.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::durable::{self, DiskError, Unreadable};
use crate::disk::leftovers::{self, Swept};

/// The version of all of them.
const VERSION: u32 = 1;

/// Why such a file can't be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What stands there can't be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        reason: Unreadable,
    },
    /// What stands there is something else.
    #[error("{path}: {why}. Move it away to begin with none")]
    Other {
        /// Which file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize)]
struct Versioned {
    v: f64,
}

#[derive(Serialize)]
struct Kept<'a, T> {
    v: u32,
    #[serde(flatten)]
    what: &'a T,
}

/// Reads what is kept at `path`, of at most so many bytes; none where nothing is.
///
/// # Errors
/// [`KeepError`]
pub fn read<T: DeserializeOwned>(path: &Path, max: usize) -> Result<Option<T>, KeepError> {
    let shown = || durable::shown(path).to_string();
    let other = |why: String| KeepError::Other { path: shown(), why };
    let bytes = match durable::read_private(path, max) {
        Ok(bytes) => bytes,
        Err(Unreadable::Missing) => return Ok(None),
        Err(reason) => return Err(KeepError::Unreadable { path: shown(), reason }),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Versioned { v }) if v == f64::from(VERSION) => {}
        Ok(_) => return Err(other("another release wrote it".to_owned())),
        Err(error) => return Err(other(error.to_string())),
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| other(error.to_string()))
}

/// Makes `what` durable at `path`.
///
/// # Errors
/// [`KeepError`], also where what stands there is none of these.
pub fn write<T: Serialize + DeserializeOwned>(path: &Path, what: &T, max: usize) -> Result<(), KeepError> {
    read::<T>(path, max)?;
    let kept = Kept { v: VERSION, what };
    let mut bytes = serde_json::to_vec(&kept).map_err(|error| KeepError::Other {
        path: durable::shown(path).to_string(),
        why: error.to_string(),
    })?;
    bytes.push(b'\n');
    Ok(durable::publish(path, &bytes)?)
}

/// Removes what is kept at `path`, if it is that.
///
/// # Errors
/// As [`write()`].
pub fn remove<T: DeserializeOwned>(path: &Path, max: usize) -> Result<(), KeepError> {
    if read::<T>(path, max)?.is_some() && durable::unlink(path)? {
        durable::sync_parent(path)?;
    }
    Ok(())
}

/// Removes what a crash left beside `path`, half written. Should another console be writing that very
/// file, it is told that it failed.
pub fn clear_up(path: &Path) {
    let mut swept = Swept::default();
    if let Err(error) = leftovers::remove_temporaries(path, &mut swept) {
        tracing::warn!(%error, "clearing up what the console keeps");
    }
}
