//! What was seen of a lead by looking at its pane: text and programs, as Herdr has them.

use std::time::Duration;

use crate::contract::{SessionId, Timestamp, Untrusted};

/// One look at a lead's pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// When.
    pub captured_at: Timestamp,
    /// The end of the text there.
    pub output: Untrusted,
    /// Whether something before it was cut off for its bytes.
    pub truncated: bool,
    /// The programs there; else why they are not known, safe to print.
    pub process: Result<ProcessEvidence, String>,
}

/// The programs on a pane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessEvidence {
    /// The pane's shell.
    pub shell: Option<u64>,
    /// The process group that has the terminal.
    pub group: Option<u64>,
    /// The first programs of that group.
    pub foreground: Vec<Foreground>,
}

/// One program that has the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreground {
    /// Its process id.
    pub pid: u64,
    /// The name it was started by.
    pub argv0: Option<Untrusted>,
    /// Its arguments as one line.
    pub cmdline: Option<Untrusted>,
    /// What the system says of it.
    pub state: Option<Untrusted>,
}

/// What is known of the pane that somebody looks at on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// Whose.
    pub session: SessionId,
    /// What was seen last; nothing of a pane that is not the lead's any more.
    pub seen: Option<Inspection>,
    /// Why it could not be looked at just now; safe to print.
    pub trouble: Option<String>,
}

impl Peek {
    /// How old what was seen is, by the wall clock that dated it.
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        Some(Duration::from_millis(now.as_millis().saturating_sub(seen.captured_at.as_millis())))
    }
}
