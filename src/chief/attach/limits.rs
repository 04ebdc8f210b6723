//! How much a message may hold: what the user set for all of Pi Herdsman, in
//! `<data root>/config.json`. Only two of its keys are ours; the file is never written.

use std::path::{Path, PathBuf};

use crate::contract::json::{Document, Json, is_integer};
use crate::contract::{Untrusted, message};
use crate::disk::{Unreadable, durable, named};

/// The key of the largest file that is put into a message, in bytes.
pub const INLINE_KEY: &str = "inlineAttachmentLimitBytes";
/// The key of the largest record of any kind, in bytes.
pub const RECORD_KEY: &str = "mailboxPayloadLimitBytes";

/// Either limit where the file does not set it, in bytes.
const DEFAULT: usize = 131_072;
const SMALLEST: usize = 1_024;
const LARGEST: usize = 1_048_576;
/// Largest configuration read, in bytes. It has a handful of keys.
const MAX_FILE_BYTES: usize = 1 << 20;

/// What a message may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file that is put into the message, in bytes.
    pub inline: usize,
    /// Largest record of the message, in bytes as serialised; at most 8,192.
    pub record: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inline: DEFAULT, record: DEFAULT.min(message::MAX_BYTES) }
    }
}

/// Why the limits are not known. Then nothing is sent: what the user forbade might be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// The file can't be read.
    #[error("{} can't be read: {why}", durable::shown(path))]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: Unreadable,
    },
    /// It is no JSON object.
    #[error("{} is no JSON object", durable::shown(path))]
    NotObject {
        /// Which file.
        path: PathBuf,
    },
    /// One of our keys has another value than it may have.
    #[error("in {} `{key}` is no integer from {SMALLEST} to {LARGEST}", durable::shown(path))]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// Which key.
        key: &'static str,
    },
}

impl LimitsError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Make it readable, or move it away for the default limits",
            Self::NotObject { .. } => "Correct it, or move it away for the default limits",
            Self::Invalid { .. } => "Correct the value, or remove the key for the default of 131072",
        }
    }
}

impl Limits {
    /// Reads them from the `config.json` in `data_root`; without that file the defaults hold.
    /// Blocking.
    ///
    /// # Errors
    /// [`LimitsError`].
    pub fn load(data_root: &Path) -> Result<Self, LimitsError> {
        let path = data_root.join("config.json");
        match named::read(&path, MAX_FILE_BYTES) {
            Ok(bytes) => Self::parse(&bytes, &path),
            Err(Unreadable::Missing) => Ok(Self::default()),
            Err(why) => Err(LimitsError::Unreadable { path, why }),
        }
    }

    /// Judges the file's bytes; `path` is only named in errors. Keys that are not ours are not
    /// looked at: other releases have others (a named difference).
    ///
    /// # Errors
    /// [`LimitsError::NotObject`] and [`LimitsError::Invalid`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, LimitsError> {
        let document = Document::decode(bytes);
        let members = (document.value().ok())
            .and_then(|value| value.object())
            .ok_or_else(|| LimitsError::NotObject { path: path.to_owned() })?;
        let inline = limit(&members, INLINE_KEY, path)?;
        let record = limit(&members, RECORD_KEY, path)?.min(message::MAX_BYTES);
        Ok(Self { inline, record })
    }
}

fn limit(members: &[(Untrusted, Json<'_>)], key: &'static str, path: &Path) -> Result<usize, LimitsError> {
    let Some((_, value)) = members.iter().find(|(name, _)| name == key) else { return Ok(DEFAULT) };
    (value.number())
        .filter(|number| is_integer(*number))
        .filter(|number| (SMALLEST as f64..=LARGEST as f64).contains(number))
        .map(|number| number as usize)
        .ok_or_else(|| LimitsError::Invalid { path: path.to_owned(), key })
}
