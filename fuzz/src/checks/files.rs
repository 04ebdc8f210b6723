//! What stands in files that are read piece by piece: sessions, the journal, the configuration.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use headman::chief::attach::limits::Limits;
use headman::chief::journal::{Event, Journal};
use headman::config::Config;
use headman::contract::{SessionId, Timestamp, Uuid};
use headman::lead::session::SessionFile;
use headman::pi::delivered::Follower;
use headman::pi::session::{HEAD_WINDOW, read_header};
use serde_json::Value;
use tempfile::TempDir;

use super::{is_safe_to_print, judge};

thread_local! {
    /// Where each thread writes the bytes that are read as a file.
    static ROOM: TempDir = tempfile::tempdir().expect("a temporary directory");
}

fn in_room(check: impl FnOnce(&Path)) {
    ROOM.with(|room| check(room.path()));
}

fn write(path: &Path, bytes: &[u8], appended: bool) {
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(appended).truncate(!appended).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(bytes)).expect("it is written");
}

/// Some end of a line near the middle.
fn middle(bytes: &[u8]) -> usize {
    let half = bytes.len() / 2;
    bytes[half..].iter().position(|byte| *byte == b'\n').map_or(0, |at| half + at + 1)
}

/// A session file: read at once and in two parts it is the same.
pub fn session(bytes: &[u8]) {
    in_room(|room| {
        let path = room.join("session.jsonl");
        let (first, rest) = bytes.split_at(middle(bytes));
        write(&path, first, false);
        let mut grown = Follower::from_beginning(&path);
        let mut found = Vec::new();
        let _ = grown.look(1, |id| found.push(id));
        let early = read_header(&path).ok().map(|header| SessionFile::new(&path, header.session));
        let early = early.and_then(|mut file| file.look().is_ok().then_some(file));
        write(&path, rest, true);
        while grown.look(1, |id| found.push(id)).expect("a readable file") {}
        let mut whole = Vec::new();
        while Follower::look(&mut Follower::from_beginning(&path), usize::MAX, |id| whole.push(id))
            .expect("the same")
        {}
        assert_eq!(found, whole);

        let header = read_header(&path);
        if let Some((session, name)) = plain_header(bytes) {
            let header = header.as_ref().expect("a header");
            assert_eq!(header.session, session);
            assert_eq!(header.name.as_ref().map(|it| it.to_str_lossy().into_owned()), name);
        }
        match header {
            Ok(header) => {
                assert!(header.name_is_certain || bytes.len() > HEAD_WINDOW);
                let mut file = SessionFile::new(&path, header.session.clone());
                file.look().expect("its own session");
                let _ = file.state().map_err(|error| is_safe_to_print(&error.to_string(), bytes));
                if let Some(mut early) = early.filter(|early| *early.session() == header.session) {
                    early.look().expect("its own session");
                    assert_eq!(early.state().map_err(drop), file.state().map_err(drop));
                    assert_eq!((early.delivered(), early.asks()), (file.delivered(), file.asks()));
                }
            }
            Err(error) => is_safe_to_print(&error.to_string(), &[]),
        }
    });
}

/// The session and its name as a general reader finds them; nothing where it can't be of the same mind
/// about each line.
fn plain_header(bytes: &[u8]) -> Option<(SessionId, Option<String>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.contains("\\u") || text.contains('\u{feff}') || text.len() > HEAD_WINDOW {
        return None;
    }
    let is_json = |line: &&str| serde_json::from_str::<&serde_json::value::RawValue>(line).is_ok();
    let mut lines = text.split('\n').filter(is_json).map(serde_json::from_str::<Value>);
    let header = lines.next()?.ok().filter(|header| header["type"] == "session")?;
    let mut name = None;
    for line in lines {
        let line = line.ok()?;
        if line["type"] == "session_info" {
            name =
                line["name"].as_str().filter(|it| !it.trim_matches(js_space).is_empty()).map(str::to_owned);
        }
    }
    Some((SessionId::new(header["id"].as_str()?)?, name))
}

fn js_space(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}

/// A segment of the journal: followed it is what it is read at once, and it can be written on.
pub fn journal(bytes: &[u8]) {
    in_room(|room| {
        let path = room.join("2026-11.jsonl");
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        write(&path, first, false);
        let mut followed = Journal::open(room).expect("a readable journal");
        write(&path, rest, true);
        followed.follow().expect("a readable journal");
        let mut whole = Journal::open(room).expect("a readable journal");
        let seen = |journal: &Journal| {
            let index = journal.index();
            let received: Vec<_> = index.received().cloned().collect();
            let sent: Vec<_> = index.sent().cloned().collect();
            let unread = (index.unread(), index.unread_by_lead().clone(), index.newest_unread());
            (received, sent, unread, journal.damaged(), journal.later())
        };
        let known = seen(&whole);
        assert_eq!(seen(&followed), known);
        assert!(known.0.is_sorted_by_key(|received| received.seq));
        assert_eq!(known.0.iter().filter(|received| received.is_unread()).count(), known.2.0);
        assert_eq!(known.2.1.values().sum::<usize>(), {
            known.0.iter().filter(|received| received.is_unread() && received.lead.is_some()).count()
        });
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert!(known.3 + known.4 + known.0.len() <= lines);
        for received in &known.0 {
            // Each may tell that it can't be read; none may hide another.
            let _ = whole.letter(received).map(|letter| assert!(letter.preview.utf16_len() <= bytes.len()));
            let _ = whole.text(received);
        }
        let mail = whole.mail();
        assert_eq!((mail.total, mail.unread), (known.0.len(), known.2.0));
        let at = Timestamp::from_millis(1_796_043_600_000);
        let session = SessionId::new("a new one").expect("a session");
        let lease = Uuid::parse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee").expect("a UUID");
        let ask = Uuid::of_ask(&session, lease, lease);
        // Where the numbers have run out it says so; what it takes is there for good.
        if let Err(error) = whole.append(&[Event::AskSeen { lead: &session, ask }], at) {
            assert!(String::from_utf8_lossy(bytes).contains("9007199254740991"), "{error}");
            // A torn end was cut all the same.
            let now = seen(&whole);
            assert_eq!((now.0, now.1, now.2), (known.0, known.1, known.2));
            return;
        }
        assert!(whole.index().asked_at(&session, ask).is_some());
        let again = Journal::open(room).expect("a readable journal");
        assert!(again.index().asked_at(&session, ask).is_some());
        assert_eq!(again.index().received().count(), known.0.len());
    });
}

/// The two configurations: ours, and the other program's of which two keys count.
pub fn config(bytes: &[u8]) {
    let path = Path::new("/c");
    let limits = Limits::parse(bytes, path);
    if let Ok(general) = serde_json::from_str::<Value>(&String::from_utf8_lossy(bytes)) {
        assert_eq!(limits.is_ok(), judge::limits(&general), "{limits:?}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let general = text.parse::<toml::Table>();
    match Config::parse(text, path) {
        Ok(config) => {
            let general = general.expect("it is TOML");
            let again = Config::parse(&general.to_string(), path).expect("written again it is one");
            assert_eq!(again, config);
            let known = ["register", "theme", "glyphs", "keep_days", "keys"];
            assert!(general.keys().all(|key| known.contains(&key.as_str())));
            in_room(|room| {
                let path = room.join("config.toml");
                write(&path, bytes, false);
                // What the console can't use of it is told by what it says.
                match Config::load(&path, true) {
                    Ok(loaded) => assert_eq!(loaded, config),
                    Err(error) => error.mistakes().iter().for_each(|told| is_safe_to_print(told, bytes)),
                }
            });
            assert_eq!(config.register, general.get("register").is_none_or(|it| it.as_bool() == Some(true)));
        }
        Err(error) => {
            is_safe_to_print(&error.to_string(), bytes);
            let headman::config::ConfigError::Invalid { line, .. } = error else { panic!("{error}") };
            assert!((1..=1 + text.matches('\n').count()).contains(&line));
        }
    }
}
