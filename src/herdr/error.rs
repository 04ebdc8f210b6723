//! What can go wrong with Herdr, told apart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::contract::Untrusted;

/// Why a request got no usable answer. The text of each says what failed, on what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HerdrError {
    /// Nothing stands at the socket's path.
    #[error(
        "Herdr is not running: no socket at {}. Start `herdr`, or name its socket with --socket",
        show(path)
    )]
    NoSocket {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The socket file is there, but nobody listens.
    #[error("Herdr refused the connection at {}: nobody listens there. Start `herdr` again", show(path))]
    Refused {
        /// The path that was tried.
        path: PathBuf,
    },
    /// No whole answer within the time allowed.
    #[error("Herdr did not answer {method} within {} ms. It may be busy; trying again helps", after.as_millis())]
    TimedOut {
        /// The method asked for.
        method: String,
        /// The time allowed over connecting, writing and reading.
        after: Duration,
    },
    /// Another user's process listens there.
    #[error(
        "the socket {} belongs to user {theirs}, not to user {ours}: not used. Check --socket",
        show(path)
    )]
    ForeignPeer {
        /// The path that was tried.
        path: PathBuf,
        /// The listener's user id.
        theirs: u32,
        /// Our own effective user id.
        ours: u32,
    },
    /// The answer is not what the protocol says.
    #[error(
        "Herdr answered {method} with something else than a reply ({why}): {}. Is this a Herdr socket?",
        short(excerpt)
    )]
    Garbage {
        /// The method asked for.
        method: String,
        /// What was expected and not found.
        why: &'static str,
        /// The beginning of the answer.
        excerpt: Untrusted,
    },
    /// The connection ended before a whole line came.
    #[error(
        "Herdr closed the connection before it answered {method}. It may be stopping; trying again helps"
    )]
    Closed {
        /// The method asked for.
        method: String,
    },
    /// The request or its answer is larger than is ever read or sent.
    #[error("{what} of {method} is larger than {limit} bytes: given up")]
    TooLarge {
        /// The method asked for.
        method: String,
        /// `the request` or `the reply`.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// Herdr speaks an older protocol than this program needs.
    #[error("Herdr speaks protocol {protocol}, at least {minimum} is needed. Update Herdr")]
    TooOld {
        /// What it speaks.
        protocol: u64,
        /// What is needed.
        minimum: u64,
    },
    /// Herdr understood and said no.
    #[error("Herdr refused {method}: {} ({})", short(message), short(code))]
    Server {
        /// The method asked for.
        method: String,
        /// Its error code.
        code: Untrusted,
        /// Its own words.
        message: Untrusted,
    },
    /// The system failed a call.
    #[error("talking to Herdr at {} failed: {why}. Check the path and its permissions", show(path))]
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
}

impl HerdrError {
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
