//! Drafts on disk, after `docs/state.md`: one file a lead and ask, kept until it is sent.
//!
//! Synchronous: called on the disk thread.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::contract::{SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::durable::{self, DiskError, Unreadable};

/// Largest draft file: any text that could be sent, and much more.
const MAX_BYTES: usize = 256 * 1024;

/// What a draft is for. Not the lease: a draft outlives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DraftKey {
    /// To whom.
    pub session: SessionId,
    /// The ask it answers; none for a message.
    pub ask: Option<Uuid>,
}

/// What was written and not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// To whom.
    pub session: SessionId,
    /// The ask it answers; none for a message.
    pub ask: Option<Uuid>,
    /// The lead's instance it was begun for.
    pub instance: Option<Uuid>,
    /// The lease it was begun under.
    pub lease: Option<Uuid>,
    /// What was written.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

impl Draft {
    /// What it is for.
    pub fn key(&self) -> DraftKey {
        DraftKey { session: self.session.clone(), ask: self.ask }
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    v: u32,
    session: Untrusted,
    ask: Option<String>,
    instance: Option<String>,
    lease: Option<String>,
    text: String,
    at: u64,
}

impl Serialize for Untrusted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut json = Vec::new();
        self.write_json(&mut json);
        let text = String::from_utf8(json).map_err(S::Error::custom)?;
        serde_json::value::RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// The file of a draft in the drafts directory.
pub fn path(directory: &Path, key: &DraftKey) -> PathBuf {
    let what = key.ask.map_or_else(|| "message".to_owned(), |ask| ask.to_string());
    directory.join(format!("{}.{what}.json", key.session.hash()))
}

/// Makes a draft durable; one without any text is removed.
pub fn save(directory: &Path, draft: &Draft) -> Result<(), DiskError> {
    if draft.text.is_empty() {
        return remove(directory, &draft.key());
    }
    let id = |id: Option<Uuid>| id.map(|id| id.to_string());
    let file = File {
        v: 1,
        session: draft.session.as_untrusted().clone(),
        ask: id(draft.ask),
        instance: id(draft.instance),
        lease: id(draft.lease),
        text: draft.text.clone(),
        at: draft.at.as_millis(),
    };
    let mut bytes = serde_json::to_vec(&file).unwrap_or_default();
    bytes.push(b'\n');
    durable::ensure_directory(directory)?;
    durable::publish(&path(directory, &draft.key()), &bytes)
}

/// Removes a draft that was sent.
pub fn remove(directory: &Path, key: &DraftKey) -> Result<(), DiskError> {
    let path = path(directory, key);
    if durable::unlink(&path)? {
        durable::sync_parent(&path)?;
    }
    Ok(())
}

/// The drafts kept, and what stands there that is none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The drafts.
    pub drafts: Vec<Draft>,
    /// What was passed over, and why; safe to print.
    pub skipped: Vec<String>,
}

/// Reads every draft. What is none stays where it is.
pub fn load_all(directory: &Path) -> Kept {
    let mut kept = Kept::default();
    let names = match durable::list(directory) {
        Ok(names) => names,
        Err(error) => {
            kept.skipped.push(format!("the drafts can't be listed: {error}"));
            return kept;
        }
    };
    for name in names {
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = directory.join(&name);
        match load(&path, directory) {
            Ok(draft) => kept.drafts.push(draft),
            Err(why) => kept.skipped.push(format!("{}: {why}", durable::shown(Path::new(&name)))),
        }
    }
    kept
}

fn load(path_of_file: &Path, directory: &Path) -> Result<Draft, String> {
    let bytes =
        durable::read_private(path_of_file, MAX_BYTES).map_err(|error: Unreadable| error.to_string())?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| format!("it is no draft: {error}"))?;
    if file.v != 1 {
        return Err("another release wrote it".to_owned());
    }
    let id = |id: Option<String>| match id {
        None => Ok(None),
        Some(id) => Uuid::parse(&id).map(Some).ok_or("one of its ids is none"),
    };
    let draft = Draft {
        session: SessionId::new(file.session).ok_or("its session is none")?,
        ask: id(file.ask)?,
        instance: id(file.instance)?,
        lease: id(file.lease)?,
        text: file.text,
        at: Timestamp::from_millis(file.at),
    };
    if path(directory, &draft.key()) != path_of_file {
        return Err("its name is of another draft".to_owned());
    }
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(text: &str) -> Draft {
        Draft {
            session: SessionId::new("lead \u{1b}[2J").unwrap(),
            ask: Some(Uuid::random()),
            instance: Some(Uuid::random()),
            lease: None,
            text: text.to_owned(),
            at: Timestamp::from_millis(12),
        }
    }

    #[test]
    fn what_was_saved_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let drafts = dir.path().join("drafts");
        let one = draft("line\n\t\"two\" é😀");
        let other = Draft { ask: None, ..draft("message") };
        save(&drafts, &one).unwrap();
        save(&drafts, &other).unwrap();
        save(&drafts, &Draft { text: "again".to_owned(), ..other.clone() }).unwrap();
        let mut kept = load_all(&drafts);
        kept.drafts.sort_by_key(|draft| draft.ask.is_none());
        assert_eq!(kept.drafts, [one.clone(), Draft { text: "again".to_owned(), ..other }]);
        assert_eq!(kept.skipped, [""; 0]);
        remove(&drafts, &one.key()).unwrap();
        save(&drafts, &Draft { text: String::new(), ..kept.drafts[1].clone() }).unwrap();
        assert_eq!(load_all(&drafts), Kept::default());
    }

    #[test]
    fn what_is_no_draft_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let drafts = dir.path().join("drafts");
        let good = draft("kept");
        save(&drafts, &good).unwrap();
        let bytes = std::fs::read(path(&drafts, &good.key())).unwrap();
        std::fs::write(drafts.join("torn.json"), &bytes[..bytes.len() / 2]).unwrap();
        std::fs::write(drafts.join("other.json"), &bytes).unwrap();
        std::fs::write(drafts.join("huge.json"), vec![b' '; MAX_BYTES + 1]).unwrap();
        std::os::unix::fs::symlink("torn.json", drafts.join("link.json")).unwrap();
        let kept = load_all(&drafts);
        assert_eq!(kept.drafts, [good]);
        assert_eq!(kept.skipped.len(), 4, "{:?}", kept.skipped);
        assert_eq!(std::fs::read_dir(&drafts).unwrap().count(), 5);
    }
}
