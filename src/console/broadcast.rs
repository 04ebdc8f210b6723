//! The broadcast that is written, or was not sent to all, in `broadcast.json` after `docs/state.md`.
//!
//! Synchronous: called on the disk thread.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::keep::{self, KeepError};
use crate::chief::attach::FileArgument;
use crate::contract::{SessionId, Timestamp, Uuid};

/// Leads that one broadcast may be to.
pub const MAX_RECIPIENTS: usize = 200;
/// Largest file: any text for so many of the longest sessions, and more.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// One text to several leads, each of which has a message of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// To whom.
    pub to: Vec<Addressee>,
    /// Whether sending has begun: since then text and files are what they are.
    pub begun: bool,
    /// Where the files that the text mentions are looked for; none where it mentions none.
    #[serde(default)]
    pub from: Option<String>,
    /// What was written.
    pub text: String,
    /// What goes along, once sending has begun.
    #[serde(default)]
    pub files: Vec<FileArgument>,
    /// When it was written.
    pub at: Timestamp,
}

/// A lead, and the id that its message has: asked for again, even by another run, it is not sent twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    /// To whom.
    pub lead: SessionId,
    /// The message's id.
    pub id: Uuid,
}

/// The broadcast kept, if one is.
///
/// # Errors
/// [`KeepError`]
pub fn load(path: &Path) -> Result<Option<Broadcast>, KeepError> {
    keep::clear_up(path);
    let mut kept = keep::read::<Broadcast>(path, MAX_BYTES)?;
    if let Some(broadcast) = &mut kept {
        let mut seen = std::collections::HashSet::new();
        broadcast.to.retain(|addressee| seen.insert(addressee.lead.clone()));
        broadcast.to.truncate(MAX_RECIPIENTS);
    }
    Ok(kept.filter(|broadcast| !broadcast.to.is_empty()))
}

/// Makes it durable.
///
/// # Errors
/// [`KeepError`]
pub fn save(path: &Path, broadcast: &Broadcast) -> Result<(), KeepError> {
    keep::write(path, broadcast, MAX_BYTES)
}

/// Removes the one that is kept.
///
/// # Errors
/// [`KeepError`]
pub fn remove(path: &Path) -> Result<(), KeepError> {
    keep::remove::<Broadcast>(path, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_is_kept_with_its_recipients() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("broadcast.json");
        assert_eq!(load(&path), Ok(None));
        let odd: SessionId = serde_json::from_str(r#""a\ud800\u001b\"""#).unwrap();
        let addressee = Addressee { lead: odd, id: Uuid::random() };
        let broadcast = Broadcast {
            to: vec![addressee.clone()],
            begun: true,
            from: Some("/work".to_owned()),
            text: "line\n\t\"two\" \u{e9}\u{1f600}".to_owned(),
            files: vec![FileArgument::new("a", "/work")],
            at: Timestamp::from_millis(12),
        };
        save(&path, &broadcast).unwrap();
        std::fs::write(dir.path().join(format!(".broadcast.json.{}.tmp", Uuid::random())), "torn").unwrap();
        assert_eq!(load(&path), Ok(Some(broadcast.clone())));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "what a crash left is gone");
        // Nobody has it twice, whatever the file says.
        let twice = Broadcast { to: vec![addressee.clone(), addressee], ..broadcast.clone() };
        save(&path, &twice).unwrap();
        assert_eq!(load(&path), Ok(Some(broadcast.clone())));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(load(&path), Ok(None));
        std::fs::write(&path, r#"{"v":2}"#).unwrap();
        assert!(load(&path).is_err() && save(&path, &broadcast).is_err() && remove(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"v":2}"#);
    }
}
