//! Drafts on disk, after `docs/state.md`: one file a lead and ask, kept until it is sent.
//!
//! Synchronous: called on the disk thread.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::contract::json::{Document, ObjectWriter};
use crate::contract::rendered::Parts;
use crate::contract::{SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::durable::{self, DiskError, Unreadable};
use crate::disk::{crash_point, crash_steps_of, leftovers};
use crate::fact::Sent;

/// Largest draft file: any text that could be sent, and much more.
const MAX_BYTES: usize = 256 * 1024;

/// Most files looked at: a directory that someone filled must not hold up the start.
const MAX_FILES: usize = 2_000;

/// Of the file's form.
const VERSION: f64 = 1.0;

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
    /// Where the files that it mentions are looked for; none where it mentions none.
    pub from: Option<PathBuf>,
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

    /// Whether it is what was `sent`, with the files it mentions or without.
    pub fn is_said_by(&self, sent: &Sent) -> bool {
        sent.text == self.text.as_str() || Parts::of(&sent.text).said == self.text.as_str()
    }
}

/// The file of a draft in the drafts directory.
pub fn path(directory: &Path, key: &DraftKey) -> PathBuf {
    let what = key.ask.map_or_else(|| "message".to_owned(), |ask| ask.to_string());
    directory.join(format!("{}.{what}.json", key.session.hash()))
}

/// The bytes of a draft's file.
fn to_bytes(draft: &Draft) -> Vec<u8> {
    let mut file = ObjectWriter::new();
    file.number("v", VERSION).string("session", draft.session.as_untrusted());
    for (key, id) in [("ask", draft.ask), ("instance", draft.instance), ("lease", draft.lease)] {
        match id {
            Some(id) => file.string(key, &Untrusted::from(id.to_string())),
            None => file.raw(key, b"null"),
        };
    }
    if let Some(from) = draft.from.as_ref().and_then(|from| from.to_str()) {
        file.string("from", &Untrusted::from(from));
    }
    file.string("text", &Untrusted::from(draft.text.as_str())).number("at", draft.at.as_number());
    let mut bytes = file.finish();
    bytes.push(b'\n');
    bytes
}

/// Reads a draft's file. Only what says whose it is and what was written has to be right: members
/// of later releases are passed over, and a wrong time is none.
fn parse(bytes: &[u8]) -> Result<Draft, &'static str> {
    let document = Document::decode(bytes);
    let value = document.value().map_err(|_| "it is torn, or no JSON")?;
    let members = value.object().ok_or("it is no draft")?;
    let get = |key: &str| members.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    match get("v").and_then(|version| version.number()) {
        Some(VERSION) => {}
        Some(_) => return Err("another release wrote it"),
        None => return Err("it is no draft"),
    }
    let id = |key| match get(key).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => {
            value.string().and_then(|id| Uuid::from_untrusted(&id)).map(Some).ok_or("one of its ids is none")
        }
    };
    let string = |key: &str| get(key).and_then(|value| value.string());
    let at = get("at").and_then(|at| at.number()).and_then(Timestamp::from_number);
    Ok(Draft {
        session: string("session").and_then(SessionId::new).ok_or("its session is none")?,
        ask: id("ask")?,
        instance: id("instance")?,
        lease: id("lease")?,
        // As text: one that is not UTF-8 was not written, and one with a lone surrogate is none.
        from: string("from")
            .map(|from| PathBuf::from(&*from.to_str_lossy()))
            .filter(|from| from.is_absolute()),
        text: string("text").ok_or("it has no text")?.to_str_lossy().into_owned(),
        at: at.unwrap_or(Timestamp::from_millis(0)),
    })
}

/// Makes a draft durable; one without any text is removed. What stands in its place and is no
/// draft for the same is moved aside first, under a name that [`load_all`] reports.
pub fn save(directory: &Path, draft: &Draft) -> Result<(), DiskError> {
    let key = draft.key();
    if draft.text.is_empty() {
        return remove(directory, &key);
    }
    durable::ensure_directory(directory)?;
    let path = path(directory, &key);
    if !is_ours(&path, directory) {
        let aside = directory.join(format!("{}.{}.aside", durable::shown(&path_name(&path)), Uuid::random()));
        durable::rename(&path, &aside)?;
    }
    crash_steps_of!("draft");
    durable::publish(&path, &to_bytes(draft))
}

/// Removes a draft that was sent. What stands in its place and is no draft for the same stays.
pub fn remove(directory: &Path, key: &DraftKey) -> Result<(), DiskError> {
    let path = path(directory, key);
    if is_ours(&path, directory) && durable::unlink(&path)? {
        crash_point!("draft:removed");
        durable::sync_parent(&path)?;
    }
    Ok(())
}

/// Whether nothing stands there, or a draft for the same.
fn is_ours(path: &Path, directory: &Path) -> bool {
    match durable::read_private(path, MAX_BYTES) {
        Err(Unreadable::Missing) => true,
        Err(_) => false,
        Ok(bytes) => parse(&bytes).is_ok_and(|draft| self::path(directory, &draft.key()) == path),
    }
}

fn path_name(path: &Path) -> PathBuf {
    path.file_name().map(PathBuf::from).unwrap_or_default()
}

/// Puts drafts in their place that a crash left beside it: written whole, and newer than what stands
/// there. Older ones and empty files go. What is torn stays, since its text may be in it. Should another
/// console be writing that very file, it is told that it failed, and writes again.
pub fn take_up(directory: &Path) {
    // What can't be listed is told by loading.
    for name in durable::list(directory).unwrap_or_default() {
        if let Some(of) = leftovers::temporary_of(&name)
            && let Err(error) = take_up_one(&directory.join(&name), &directory.join(of), directory)
        {
            tracing::warn!(%error, "taking up a draft");
        }
    }
}

fn take_up_one(left: &Path, place: &Path, directory: &Path) -> Result<(), DiskError> {
    let read = |path: &Path| durable::read_private(path, MAX_BYTES);
    let Ok(bytes) = read(left) else { return Ok(()) };
    let Ok(draft) = parse(&bytes) else {
        return if bytes.is_empty() { durable::unlink(left).map(drop) } else { Ok(()) };
    };
    if path(directory, &draft.key()) != place || !is_ours(place, directory) {
        return Ok(());
    }
    let stands = read(place).ok().and_then(|bytes| parse(&bytes).ok());
    if stands.is_some_and(|stands| stands.at >= draft.at) {
        return durable::unlink(left).map(drop);
    }
    durable::rename(left, place)?;
    durable::sync_parent(place)
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
        Ok(mut names) => {
            names.sort();
            names
        }
        Err(error) => {
            kept.skipped.push(format!("the drafts can't be listed: {error}"));
            return kept;
        }
    };
    for name in names.iter().take(MAX_FILES) {
        let path = directory.join(name);
        match load(&path, directory) {
            Ok(draft) => kept.drafts.push(draft),
            Err(why) => kept.skipped.push(format!("{}: {why}", durable::shown(Path::new(name)))),
        }
    }
    if names.len() > MAX_FILES {
        kept.skipped.push(format!("{} more files: only {MAX_FILES} are read", names.len() - MAX_FILES));
    }
    kept
}

fn load(path: &Path, directory: &Path) -> Result<Draft, String> {
    let name = path_name(path);
    let name = name.as_os_str().as_encoded_bytes();
    if name.starts_with(b".") {
        return Err("it was left half written; its text may be in it".to_owned());
    }
    if name.ends_with(b".aside") {
        return Err("it stood in a draft's place and was moved aside".to_owned());
    }
    let bytes = durable::read_private(path, MAX_BYTES).map_err(|error| error.to_string())?;
    let draft = parse(&bytes)?;
    if self::path(directory, &draft.key()) != path {
        return Err("its name is of another draft".to_owned());
    }
    Ok(draft)
}

/// When to save what is being written: within a second of the first change that is not saved, so
/// that steady typing is saved, too; at once on Esc, a signal or a lost terminal. Times are
/// monotonic.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Debounce {
    due: Option<Duration>,
}

impl Debounce {
    /// Longest time a change may wait.
    pub const WITHIN: Duration = Duration::from_secs(1);
    /// How long after saving failed it is tried again.
    pub const AGAIN: Duration = Duration::from_secs(5);

    /// Something changed.
    pub fn changed(&mut self, now: Duration) {
        self.due.get_or_insert(now + Self::WITHIN);
    }

    /// Saving failed.
    pub fn failed(&mut self, now: Duration) {
        self.due.get_or_insert(now + Self::AGAIN);
    }

    /// Esc, a signal, or the terminal is lost: what is not saved is due now.
    pub fn at_once(&mut self, now: Duration) {
        self.due = self.due.map(|due| due.min(now));
    }

    /// When to ask [`Debounce::take`] again.
    pub fn deadline(&self) -> Option<Duration> {
        self.due
    }

    /// Whether to save now; counts as saved then.
    pub fn take(&mut self, now: Duration) -> bool {
        let due = self.due.is_some_and(|due| due <= now);
        if due {
            self.due = None;
        }
        due
    }
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
            from: None,
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

    /// A private directory with one draft in it.
    fn with_draft() -> (tempfile::TempDir, PathBuf, Draft, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let drafts = dir.path().join("drafts");
        let good = draft("kept");
        save(&drafts, &good).unwrap();
        let file = path(&drafts, &good.key());
        (dir, drafts, good, file)
    }

    #[test]
    fn the_file_has_the_form_of_the_state_directory() {
        let good = Draft { ask: None, text: "a\"\n\u{1b}é".to_owned(), ..draft("") };
        let instance = good.instance.unwrap();
        assert_eq!(
            String::from_utf8(to_bytes(&good)).unwrap(),
            format!(
                "{{\"v\":1,\"session\":\"lead \\u001b[2J\",\"ask\":null,\"instance\":\"{instance}\",\"lease\":null,\
                 \"text\":\"a\\\"\\n\\u001bé\",\"at\":12}}\n"
            )
        );
        let session = SessionId::new(Untrusted::from_wtf8(b"\xED\xA0\x80x")).unwrap();
        let odd = Draft { session, ..draft("text") };
        assert_eq!(parse(&to_bytes(&odd)).unwrap(), odd, "a lone surrogate in the session survives");
    }

    #[test]
    fn files_and_directory_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, drafts, _, file) = with_draft();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&drafts), mode(&file)), (0o700, 0o600));
    }

    #[test]
    fn reading_is_tolerant_where_nothing_depends_on_it() {
        for text in [
            r#"{"v":1,"session":"s","text":"t"}"#,
            r#"{"v":1.0,"session":"s","ask":null,"text":"old","text":"t","at":-3,"later":[{}]}"#,
            r#" {"v":1,"session":"s","instance":null,"text":"t","at":"noon"} "#,
        ] {
            let draft = parse(text.as_bytes()).unwrap();
            assert_eq!((draft.text.as_str(), draft.at), ("t", Timestamp::from_millis(0)), "{text}");
        }
        for text in [
            "",
            "[]",
            r#"{"v":1,"session":"s","text":"t""#,
            r#"{"session":"s","text":"t"}"#,
            r#"{"v":2,"session":"s","text":"t"}"#,
            r#"{"v":1,"session":"","text":"t"}"#,
            r#"{"v":1,"session":"s","ask":"x","text":"t"}"#,
            r#"{"v":1,"session":"s"}"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn no_prefix_of_a_draft_is_read_as_one() {
        let bytes = to_bytes(&draft("long enough to be cut anywhere"));
        for end in 0..bytes.len() - 2 {
            assert!(parse(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn what_stands_in_a_drafts_place_is_never_deleted() {
        let foreign: [&[u8]; 3] = [b"{\"v\":1,\"se", b"{\"v\":2,\"session\":\"s\"}", b"someone's notes"];
        for bytes in foreign {
            let (_dir, drafts, good, file) = with_draft();
            std::fs::write(&file, bytes).unwrap();
            remove(&drafts, &good.key()).unwrap();
            save(&drafts, &Draft { text: String::new(), ..good.clone() }).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), bytes, "removing took it");
            save(&drafts, &good).unwrap();
            let kept = load_all(&drafts);
            assert_eq!(kept.drafts, [good]);
            assert!(kept.skipped[0].contains("was moved aside"), "{:?}", kept.skipped);
            let found: Vec<_> = std::fs::read_dir(&drafts)
                .unwrap()
                .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
                .filter(|found| found == bytes)
                .collect();
            assert_eq!(found.len(), 1, "saving took it");
        }
    }

    #[test]
    fn a_link_in_a_drafts_place_is_not_followed() {
        let (dir, drafts, good, file) = with_draft();
        let target = dir.path().join("target");
        std::fs::write(&target, "untouched").unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        save(&drafts, &good).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
        assert_eq!(load_all(&drafts).drafts, [good]);
    }

    #[test]
    fn what_a_crash_left_half_written_is_named_and_stays() {
        let (_dir, drafts, good, file) = with_draft();
        let left = durable::temporary(&file, "tmp");
        std::fs::write(&left, b"{\"v\":1,\"text\":\"ha").unwrap();
        let kept = load_all(&drafts);
        assert_eq!(kept.drafts, [good]);
        assert!(kept.skipped.len() == 1 && kept.skipped[0].contains("half written"), "{:?}", kept.skipped);
        assert!(left.exists());
    }

    #[test]
    fn what_a_crash_left_whole_is_taken_up_unless_it_is_older() {
        let (_dir, drafts, good, file) = with_draft();
        let newer = Draft { text: "newer".to_owned(), at: Timestamp::from_millis(13), ..good.clone() };
        let older = Draft { text: "older".to_owned(), at: Timestamp::from_millis(11), ..good.clone() };
        let first = draft("never in its place");
        for draft in [&older, &newer, &first] {
            let place = path(&drafts, &draft.key());
            durable::create(&durable::temporary(&place, "tmp"), &to_bytes(draft)).unwrap();
        }
        durable::create(&durable::temporary(&file, "tmp"), b"").unwrap();
        // Of another draft than its name says: not to be judged.
        let misnamed = durable::temporary(&drafts.join("other.json"), "tmp");
        durable::create(&misnamed, &to_bytes(&newer)).unwrap();
        take_up(&drafts);
        let kept = load_all(&drafts);
        let mut texts: Vec<&str> = kept.drafts.iter().map(|draft| &*draft.text).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["never in its place", "newer"]);
        assert!(misnamed.exists() && kept.skipped.len() == 1, "{:?}", kept.skipped);
    }

    #[test]
    fn a_change_waits_a_second_at_most_and_less_on_esc() {
        let second = Duration::from_secs(1);
        let millis = Duration::from_millis;
        let mut save = Debounce::default();
        assert!(!save.take(second));
        for key in 0..20 {
            save.changed(second + millis(100 * key));
        }
        assert_eq!(save.deadline(), Some(second * 2), "steady typing does not put it off");
        assert!(!save.take(millis(1_999)));
        assert!(save.take(second * 2));
        assert!(!save.take(second * 3));
        save.at_once(second * 3);
        assert!(!save.take(second * 3), "nothing changed");
        save.changed(second * 3);
        save.at_once(second * 3 + millis(1));
        assert!(save.take(second * 3 + millis(1)));
    }
}
