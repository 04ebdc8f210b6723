//! What is remembered of a lead's claims: how often a verifier was asked, what it found, and which
//! lessons went along. A file a session, below the state directory.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::gate::{Attempts, Verdict, json_texts};
use crate::contract::json::{Document, Json, ObjectWriter};
use crate::contract::{SessionId, Untrusted};
use crate::disk::durable::{self, DiskError, Unreadable};

/// The format's version.
const VERSION: f64 = 1.0;
/// Largest file read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Lessons remembered of one session; more at once are never offered, and a verdict clears them.
const MAX_INSERTED: usize = 64;

/// What is remembered of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// The runs of the verifier within one turn of the user's, the last there were.
    pub runs: Option<Runs>,
    /// The names of the lessons that were inserted since the last verdict that ended a budget.
    pub inserted: Vec<String>,
    /// Whether any that hold everywhere were ever inserted.
    pub everywhere: bool,
}

/// The runs of a verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// The number of the user's turn, from 1.
    pub turn: u64,
    /// When it was written, in milliseconds since the epoch.
    pub asked_at: Option<u64>,
    /// How many there were.
    pub used: u32,
    /// The gaps that were found last.
    pub gaps: Vec<String>,
    /// After so many rounds of the lead.
    pub gaps_at: u64,
    /// What the last one led to, by its name.
    pub next: String,
    /// The entry of the answer that was judged last.
    pub entry: Option<String>,
}

impl Runs {
    /// None so far, in that turn of the user's.
    pub fn new(turn: u64, asked_at: Option<u64>) -> Self {
        let (gaps, next) = (Vec::new(), String::new());
        Self { turn, asked_at, used: 0, gaps, gaps_at: 0, next, entry: None }
    }

    /// Whether they are of that turn.
    pub fn are_of(&self, turn: u64, asked_at: Option<u64>) -> bool {
        (self.turn, self.asked_at) == (turn, asked_at)
    }

    /// What counts them.
    pub fn attempts(&self) -> Attempts {
        Attempts::resumed(self.used, &self.gaps, self.gaps_at)
    }

    /// Takes what came of one more.
    pub fn take(&mut self, verdict: &Verdict, next: &str, actions: u64, entry: Option<&str>) {
        self.used = self.used.saturating_add(1);
        if let Verdict::Gaps(gaps) = verdict {
            (self.gaps, self.gaps_at) = (gaps.clone(), actions);
        }
        self.next = next.to_owned();
        self.entry = entry.map(str::to_owned);
    }
}

/// Why it can't be remembered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimsError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file can't be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: Unreadable,
    },
    /// The file is none of ours, or of another release.
    #[error("{}: it is not what headman writes there", .0.display())]
    Other(PathBuf),
    /// Another gate looks at the same session.
    #[error("another gate looks at this session")]
    Busy,
}

/// The files.
#[derive(Debug, Clone)]
pub struct Claims {
    /// What is ours above them.
    base: PathBuf,
    root: PathBuf,
}

/// Whoever holds it is the only one who asks about a session.
#[derive(Debug)]
pub struct Held(#[allow(dead_code, reason = "its end unlocks")] File);

impl Claims {
    /// Those below `root`, which is below `base`; it need not be there.
    pub fn new(base: &Path, root: PathBuf) -> Self {
        Self { base: base.to_owned(), root }
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.root.join(format!("{}.json", session.hash()))
    }

    /// Keeps others from asking about `session` meanwhile.
    ///
    /// # Errors
    /// [`ClaimsError`], `Busy` where somebody does.
    pub fn hold(&self, session: &SessionId) -> Result<Held, ClaimsError> {
        durable::ensure_directories(&self.base, &self.root)?;
        let path = self.root.join(format!("{}.lock", session.hash()));
        let file = durable::open_to_append(&path)
            .map_err(|why| ClaimsError::Unreadable { path: path.clone(), why })?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Held(file)),
            Err(Errno::WOULDBLOCK) => Err(ClaimsError::Busy),
            Err(reason) => Err(DiskError::flock(&path, reason).into()),
        }
    }

    /// What is remembered of `session`; nothing where there is no file.
    ///
    /// # Errors
    /// [`ClaimsError`] where there is one that can't be used.
    pub fn read(&self, session: &SessionId) -> Result<Remembered, ClaimsError> {
        let path = self.path(session);
        match durable::read_private(&path, MAX_BYTES) {
            Ok(bytes) => parse(&bytes, session).ok_or(ClaimsError::Other(path)),
            Err(Unreadable::Missing) => Ok(Remembered::default()),
            Err(why) => Err(ClaimsError::Unreadable { path, why }),
        }
    }

    /// Remembers `remembered` of `session`.
    ///
    /// # Errors
    /// [`ClaimsError`]; what was remembered before stays then.
    pub fn write(&self, session: &SessionId, remembered: &Remembered) -> Result<(), ClaimsError> {
        durable::ensure_directories(&self.base, &self.root)?;
        Ok(durable::publish(&self.path(session), &to_bytes(session, remembered))?)
    }

    /// Remembers that lessons of these names went to `session`.
    ///
    /// # Errors
    /// [`ClaimsError`]; then it is not.
    pub fn inserted(
        &self,
        session: &SessionId,
        names: Vec<String>,
        everywhere: bool,
    ) -> Result<(), ClaimsError> {
        let mut remembered = self.read(session)?;
        remembered.everywhere |= everywhere;
        for name in names {
            if !remembered.inserted.contains(&name) && remembered.inserted.len() < MAX_INSERTED {
                remembered.inserted.push(name);
            }
        }
        self.write(session, &remembered)
    }
}

fn to_bytes(session: &SessionId, remembered: &Remembered) -> Vec<u8> {
    let mut file = ObjectWriter::new();
    file.number("v", VERSION).string("session", session.as_untrusted());
    match &remembered.runs {
        None => drop(file.raw("runs", b"null")),
        Some(runs) => {
            let mut object = ObjectWriter::new();
            object.number("turn", runs.turn as f64);
            match runs.asked_at {
                Some(at) => object.number("askedAt", at as f64),
                None => object.raw("askedAt", b"null"),
            };
            object
                .number("used", runs.used.into())
                .raw("gaps", &json_texts(&runs.gaps))
                .number("gapsAt", runs.gaps_at as f64)
                .string("next", &runs.next.as_str().into());
            match &runs.entry {
                Some(entry) => object.string("entry", &entry.as_str().into()),
                None => object.raw("entry", b"null"),
            };
            file.raw("runs", &object.finish());
        }
    }
    file.raw("inserted", &json_texts(&remembered.inserted))
        .raw("everywhere", if remembered.everywhere { b"true" } else { b"false" });
    let mut bytes = file.finish();
    bytes.push(b'\n');
    bytes
}

fn parse(bytes: &[u8], session: &SessionId) -> Option<Remembered> {
    let document = Document::decode(bytes);
    let members = Members(document.value().ok()?.object()?);
    if members.get("v")?.number()? != VERSION || members.get("session")?.string()? != *session.as_untrusted()
    {
        return None;
    }
    let runs = match members.get("runs")? {
        runs if runs.is_null() => None,
        runs => {
            let members = Members(runs.object()?);
            let nullable = |key: &str| members.get(key).filter(|value| !value.is_null());
            Some(Runs {
                turn: members.whole("turn")?,
                asked_at: nullable("askedAt").is_some().then(|| members.whole("askedAt")).flatten(),
                used: u32::try_from(members.whole("used")?).ok()?,
                gaps: members.texts("gaps")?,
                gaps_at: members.whole("gapsAt")?,
                next: text(members.get("next")?)?,
                entry: nullable("entry").and_then(text),
            })
        }
    };
    let (inserted, everywhere) = (members.texts("inserted")?, members.get("everywhere")?.bool()?);
    Some(Remembered { runs, inserted, everywhere })
}

fn text(value: Json<'_>) -> Option<String> {
    value.string().map(|text| text.to_str_lossy().into_owned())
}

struct Members<'a>(Vec<(Untrusted, Json<'a>)>);

impl<'a> Members<'a> {
    fn get(&self, key: &str) -> Option<Json<'a>> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn whole(&self, key: &str) -> Option<u64> {
        let number = self.get(key)?.number()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        self.get(key)?.array()?.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> (tempfile::TempDir, Claims, SessionId) {
        let dir = tempfile::tempdir().unwrap();
        let claims = Claims::new(dir.path(), dir.path().join("claims"));
        (dir, claims, SessionId::new("s-1").unwrap())
    }

    #[test]
    fn what_is_written_is_read_again_and_nothing_else_is() {
        let (dir, claims, session) = claims();
        assert_eq!(claims.read(&session), Ok(Remembered::default()));
        let mut runs = Runs::new(3, Some(1_772_368_245_123));
        runs.take(&Verdict::Gaps(vec!["no \"test\"".into()]), "draft", 7, Some("0000000a"));
        let kept = Remembered { runs: Some(runs), inserted: vec!["api/lead/x".into()], everywhere: true };
        claims.write(&session, &kept).unwrap();
        assert_eq!(claims.read(&session), Ok(kept.clone()));
        claims.inserted(&session, vec!["api/lead/x".into(), "_/y".into()], false).unwrap();
        let more = claims.read(&session).unwrap();
        assert_eq!((more.inserted.len(), more.everywhere, more.runs), (2, true, kept.runs));
        let path = dir.path().join("claims").join(format!("{}.json", session.hash()));
        let whole = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [("\"v\":1", "\"v\":2"), ("s-1", "s-2"), ("\"used\":1", "\"used\":-1"), ("}", "")] {
            std::fs::write(&path, whole.replacen(from, to, 1)).unwrap();
            assert_eq!(claims.read(&session), Err(ClaimsError::Other(path.clone())), "{to}");
        }
    }

    #[test]
    fn one_asks_at_a_time() {
        let (_dir, claims, session) = claims();
        let held = claims.hold(&session).unwrap();
        assert_eq!(claims.hold(&session).err(), Some(ClaimsError::Busy));
        claims.hold(&SessionId::new("s-2").unwrap()).unwrap();
        drop(held);
        claims.hold(&session).unwrap();
    }
}
