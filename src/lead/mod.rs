//! The lead's side of `docs/contract.md`: any program can be a lead through it.
//!
//! What a lead must remember over a restart lives in its session, of which only [`SessionLog`] is
//! known here; everything shared with the Chief is on disk and in Herdr.

pub mod coordination;
pub mod peers;
pub mod upward;

use std::collections::HashSet;

use crate::contract::{Message, NativeId, PendingAsk, Uuid};
use crate::disk::DiskError;

pub use coordination::{AskError, Asked, Coordination, Opening, Received};
pub use upward::NotUp;

/// The `customType` of the entry in which a lead's session keeps its instance and pending ask.
pub const STATE_TYPE: &str = "pi-herdsman-lead-state";

/// Where a lead works, as Herdr names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The pane.
    pub pane: NativeId,
    /// Its tab.
    pub tab: NativeId,
    /// Its workspace.
    pub workspace: NativeId,
}

/// What a lead tells its peers about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What it calls itself.
    pub name: Option<NativeId>,
    /// Its working directory.
    pub cwd: Option<NativeId>,
    /// Its repository.
    pub repo: Option<NativeId>,
    /// Its branch.
    pub branch: Option<NativeId>,
    /// Its workspace's label.
    pub workspace_label: Option<NativeId>,
}

/// What a session remembered when the lead starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The ask of the last [`STATE_TYPE`] entry.
    pub pending_ask: Option<PendingAsk>,
    /// The ids of all messages that were handed over.
    pub delivered: HashSet<Uuid>,
}

/// The session of a lead, as far as coordination writes to it.
///
/// Both calls return only once the entry is durable: a message is removed from the inbox, and a
/// record rewritten, on the strength of it.
pub trait SessionLog {
    /// Appends a [`STATE_TYPE`] entry.
    ///
    /// # Errors
    /// The disk's.
    fn keep_state(&mut self, instance: Uuid, pending_ask: Option<&PendingAsk>) -> Result<(), DiskError>;

    /// Appends a received message as a custom message, after [`crate::contract::delivered`]: the only
    /// proof of its delivery.
    ///
    /// # Errors
    /// The disk's; the message then stays in the inbox.
    fn hand_over(&mut self, message: &Message) -> Result<(), DiskError>;
}
