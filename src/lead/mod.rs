//! The lead's side of `docs/contract.md`: any program can be a lead through it.
//!
//! What a lead must remember over a restart lives in its session file; everything shared with the
//! Chief and with peers is on disk and in Herdr.

pub mod coordination;
pub mod errors;
pub mod mail;
pub mod peer_mail;
pub mod peers;
pub mod session;
pub mod upward;
pub mod writing;

use crate::contract::NativeId;

pub use coordination::{Asked, Coordination, Opening, Received};
pub use errors::{AskError, JoinError, OpenError, Unable};
pub use peer_mail::NotToPeer;
pub use session::{SessionError, SessionFile};
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

impl Place {
    /// Outside Herdr.
    pub fn none() -> Self {
        Self { pane: NativeId::none(), tab: NativeId::none(), workspace: NativeId::none() }
    }
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
