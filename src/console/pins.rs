//! Which leads are pinned, in `pins.json` after `docs/state.md`.
//!
//! Synchronous: called on the disk thread.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::keep::{self, KeepError};
use crate::contract::SessionId;

/// Pins kept; who was pinned first goes first.
const MAX: usize = 200;
/// Largest file: so many of the longest sessions, and more.
const MAX_BYTES: usize = 512 * 1024;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pins {
    /// In the order in which they were pinned.
    pinned: Vec<SessionId>,
}

/// The pinned leads.
///
/// # Errors
/// [`KeepError`]
pub fn load(path: &Path) -> Result<Vec<SessionId>, KeepError> {
    Ok(keep::read::<Pins>(path, MAX_BYTES)?.unwrap_or_default().pinned)
}

/// Keeps that `lead` is pinned, or is not. What other consoles pinned meanwhile stays.
///
/// # Errors
/// [`KeepError`]
pub fn set(path: &Path, lead: &SessionId, pinned: bool) -> Result<(), KeepError> {
    let mut pins = load(path)?;
    pins.retain(|known| known != lead);
    if pinned {
        pins.push(lead.clone());
    }
    let surplus = pins.len().saturating_sub(MAX);
    pins.drain(..surplus);
    keep::write(path, &Pins { pinned: pins }, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_kept_in_order_and_what_is_none_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pins.json");
        let session = |name: &str| SessionId::new(name).unwrap();
        assert_eq!(load(&path), Ok(Vec::new()));
        let odd: SessionId = serde_json::from_str(r#""a\ud800\u001b\"""#).unwrap();
        for (lead, pinned) in
            [(&session("a"), true), (&odd, true), (&session("b"), true), (&session("a"), false)]
        {
            set(&path, lead, pinned).unwrap();
        }
        assert_eq!(load(&path).unwrap(), [odd, session("b")]);
        for at in 0..MAX {
            set(&path, &session(&format!("lead-{at}")), true).unwrap();
        }
        let pins = load(&path).unwrap();
        assert_eq!((pins.len(), &pins[0]), (MAX, &session("lead-0")));
        for other in ["", "[]", r#"{"v":2,"pinned":[]}"#, r#"{"v":1,"pinned":[""]}"#, r#"{"pinned":[]}"#] {
            std::fs::write(&path, other).unwrap();
            assert!(load(&path).is_err() && set(&path, &session("a"), true).is_err(), "{other}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
        std::fs::write(&path, r#"{"later":1,"v":1,"pinned":["x"]}"#).unwrap();
        assert_eq!(load(&path).unwrap(), [session("x")]);
    }
}
