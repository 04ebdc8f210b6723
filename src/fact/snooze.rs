//! Asks that are put off for a while.

use serde::{Deserialize, Serialize};

use crate::contract::{SessionId, Timestamp, Uuid};

/// When an ask that is put off comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// At this time of day.
    At(Timestamp),
    /// Never by itself: only what the lead asks next is shown again.
    Change,
}

/// One ask that is put off. Another ask of the same lead is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snooze {
    /// Who asks.
    pub lead: SessionId,
    /// The ask.
    pub ask: Uuid,
    /// When it was put off.
    pub at: Timestamp,
    /// When it comes back.
    pub until: Until,
}
