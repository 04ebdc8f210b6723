//! Why a lead can't be opened or joined, ask, or go on.

use std::path::PathBuf;

use super::peers::PresenceError;
use super::session::SessionError;
use crate::contract::record::Invalid;
use crate::disk::records::RecordError;
use crate::disk::{DiskError, Unreadable, durable};

/// Why a lead could not be opened. Its record is not there then.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This session holds the Chief lease.
    #[error("this session is the Chief itself")]
    SelfChief,
    /// The session file can't be used, or its state is malformed.
    #[error(transparent)]
    Session(#[from] SessionError),
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

/// Why there is no open lead to join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No process holds it open.
    #[error("the lead is not open: {0}")]
    NotOpen(RecordError),
    /// Its record is not there or not valid.
    #[error("the lead's own record can't be used: {0}")]
    Record(RecordError),
    /// The lead was opened with another session file.
    #[error("the lead is open with another session file than {}", durable::shown(.0))]
    OtherFile(PathBuf),
    /// The session file can't be used, or its state is malformed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Why nothing was asked. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// One ask at a time.
    #[error("an ask is pending already")]
    Pending,
    /// Nobody holds the lead open any more.
    #[error("the lead was closed just now")]
    Closed,
    /// The question or its text is not allowed.
    #[error("{0}")]
    Invalid(Invalid),
    /// It could not be made durable.
    #[error("the ask can't be recorded: {0}")]
    Record(#[from] RecordError),
    /// The session can't be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The session can't be used.
    #[error(transparent)]
    Session(#[from] Unable),
}

/// Why a lead can't go on just now, or at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unable {
    /// The inbox can't be read.
    #[error("the inbox can't be read: {0}")]
    Inbox(#[from] Unreadable),
    /// The session file can't be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Another process opened the same session.
    #[error("the session file names another instance of the lead: something else opened it")]
    AnotherInstance,
    /// The session file was removed, and nothing came in its place for a while: what the lead asked and
    /// was told is not known any more.
    #[error("its session file {} is not there any more: something else removed it", durable::shown(.0))]
    Forgotten(PathBuf),
    /// Something took its record or its presence away, or put another in its place.
    #[error("the lead's {0} is not there any more as it was written: something else removed or changed it")]
    Withdrawn(&'static str),
}

impl Unable {
    /// Whether the coordination is unhealthy: what the lead waits for is not known any more, and no
    /// later try will tell. Such a lead withdraws.
    pub fn is_unhealthy(&self) -> bool {
        match self {
            Self::Inbox(_) => false,
            Self::Session(error) => !error.is_passing(),
            Self::AnotherInstance | Self::Forgotten(_) | Self::Withdrawn(_) => true,
        }
    }
}
