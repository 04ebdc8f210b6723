//! What must hold of any bytes that others may write, one function for each kind. It asserts more
//! than that nothing panics: what is understood is written again and then means the same, it is judged
//! as a second, plainer rule says, and nothing that comes out can drive a terminal.

mod files;
mod judge;
mod lines;
mod records;
mod supervisor;

pub use files::{config, journal, session};
pub use lines::{control, herdr};
pub use records::{claim, json, mailbox, message, record};
pub use supervisor::supervisor;

/// A check: it panics where something does not hold.
pub type Check = fn(&[u8]);

/// Every check, by the name of its target and its directory in `corpus/`.
pub const ALL: [(&str, Check); 11] = [
    ("claim", claim),
    ("config", config),
    ("control", control),
    ("herdr", herdr),
    ("journal", journal),
    ("json", json),
    ("mailbox", mailbox),
    ("message", message),
    ("record", record),
    ("session", session),
    ("supervisor", supervisor),
];

/// What is told of bytes that are not understood: one line, nothing in it that drives a terminal, and
/// no longer than what it tells of allows.
fn is_safe_to_print(told: &str, bytes: &[u8]) {
    let hostile =
        |it: char| it.is_control() || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!told.contains(hostile), "{told:?}");
    assert!(told.len() <= 512 + 8 * bytes.len(), "{} bytes tell of {}", told.len(), bytes.len());
}
