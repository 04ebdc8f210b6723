//! What can go wrong with Herdr, told apart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::contract::Untrusted;

/// Why a request got no usable answer. [`HerdrError::why`] says what failed and on what,
/// [`HerdrError::hint`] what to do; as text it is both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HerdrError {
    /// Nothing stands at the socket's path.
    NoSocket {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The socket file is there, but nobody listens.
    Refused {
        /// The path that was tried.
        path: PathBuf,
    },
    /// No whole answer within the time allowed.
    TimedOut {
        /// The method asked for.
        method: String,
        /// The time allowed over connecting, writing and reading.
        after: Duration,
    },
    /// Another user's process listens there.
    ForeignPeer {
        /// The path that was tried.
        path: PathBuf,
        /// The listener's user id.
        theirs: u32,
        /// Our own effective user id.
        ours: u32,
    },
    /// The answer is not what the protocol says.
    Garbage {
        /// The method asked for.
        method: String,
        /// What was expected and not found.
        why: &'static str,
        /// The beginning of the answer.
        excerpt: Untrusted,
    },
    /// The connection ended before a whole line came.
    Closed {
        /// The method asked for.
        method: String,
    },
    /// The request or its answer is larger than is ever read or sent.
    TooLarge {
        /// The method asked for.
        method: String,
        /// `the request` or `the reply`.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// Herdr speaks an older protocol than this program needs.
    TooOld {
        /// What it speaks.
        protocol: u64,
        /// What is needed.
        minimum: u64,
    },
    /// Herdr understood and said no.
    Server {
        /// The method asked for.
        method: String,
        /// Its error code.
        code: Untrusted,
        /// Its own words.
        message: Untrusted,
    },
    /// The system failed a call.
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
}

impl HerdrError {
    /// What failed, on what, without a full stop.
    pub fn why(&self) -> String {
        match self {
            Self::NoSocket { path } => format!("Herdr is not running: no socket at {}", show(path)),
            Self::Refused { path } => {
                format!("Herdr refused the connection at {}: nobody listens there", show(path))
            }
            Self::TimedOut { method, after } => {
                format!("Herdr did not answer {method} within {} ms", after.as_millis())
            }
            Self::ForeignPeer { path, theirs, ours } => {
                format!("the socket {} belongs to user {theirs}, not to user {ours}: not used", show(path))
            }
            Self::Garbage { method, why, excerpt } => format!(
                "Herdr answered {method} with something else than a reply ({why}): {}",
                short(excerpt)
            ),
            Self::Closed { method } => format!("Herdr closed the connection before it answered {method}"),
            Self::TooLarge { method, what, limit } => {
                format!("{what} of {method} is larger than {limit} bytes: given up")
            }
            Self::TooOld { protocol, minimum } => {
                format!("Herdr speaks protocol {protocol}, at least {minimum} is needed")
            }
            Self::Server { method, code, message } => {
                format!("Herdr refused {method}: {} ({})", short(message), short(code))
            }
            Self::Io { path, why } => format!("talking to Herdr at {} failed: {why}", show(path)),
        }
    }

    /// The next step, without a full stop, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSocket { .. } => "Start `herdr`, or name its socket with --socket",
            Self::Refused { .. } => "Start `herdr` again",
            Self::TimedOut { .. } => "It may be busy; trying again helps",
            Self::ForeignPeer { .. } => "Check --socket",
            Self::Garbage { .. } => "Is this a Herdr socket?",
            Self::Closed { .. } => "It may be stopping; trying again helps",
            Self::TooOld { .. } => "Update Herdr",
            Self::Io { .. } => "Check the path and its permissions",
            Self::TooLarge { .. } | Self::Server { .. } => return None,
        })
    }

    /// The server's error code, if it was the server that refused.
    pub fn code(&self) -> Option<&Untrusted> {
        match self {
            Self::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    pub(super) fn from_connect(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_path_buf();
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NoSocket { path },
            std::io::ErrorKind::ConnectionRefused => Self::Refused { path },
            _ => Self::Io { path, why: error.to_string() },
        }
    }
}

impl fmt::Display for HerdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why())?;
        match self.hint() {
            Some(hint) => write!(f, ". {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for HerdrError {}

pub(super) const REQUEST: &str = "the request";
pub(super) const REPLY: &str = "the reply";

/// Longest piece of someone else's text in a message, in UTF-16 units.
const EXCERPT: usize = 160;

pub(super) fn excerpt(bytes: &[u8]) -> Untrusted {
    let head = &bytes[..bytes.len().min(EXCERPT)];
    Untrusted::from_bytes_lossy(head)
}

fn short(text: &Untrusted) -> String {
    text.first_units(EXCERPT).escaped().to_string()
}

/// A path may hold anything but NUL; in a message it is neutralised like other outside text.
fn show(path: &Path) -> String {
    Untrusted::from(path.to_string_lossy().as_ref()).escaped().to_string()
}
