//! Heads of session files: real ones, and what else may stand at such a path.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headman::contract::Untrusted;
use headman::pi::session::{HEAD_WINDOW, Header, HeaderCache, HeaderError, TAIL_WINDOW, read_header};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

fn header_of(content: impl AsRef<[u8]>) -> Result<Header, HeaderError> {
    let (_dir, path) = file(content);
    read_header(&path)
}

fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, content).unwrap();
    (dir, path)
}

fn append(path: &Path, content: impl AsRef<[u8]>) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(content.as_ref()).unwrap();
}

fn info(name: &str) -> String {
    format!("{{\"type\":\"session_info\",\"id\":\"0000000a\",\"parentId\":null,\"name\":\"{name}\"}}\n")
}

/// A line of exactly `bytes` bytes, its end included.
fn filler(bytes: usize) -> String {
    let line = "{\"type\":\"custom\",\"data\":\"\"}\n";
    let (before, after) = line.split_at(line.len() - 3);
    format!("{before}{}{after}", "x".repeat(bytes - line.len()))
}

fn name_of(content: impl AsRef<[u8]>) -> Option<Untrusted> {
    header_of(content).unwrap().name
}

#[test]
fn real_session_files_have_the_ids_and_names_that_pi_finds() {
    let oracle: serde_json::Value =
        serde_json::from_slice(&fs::read(format!("{FIXTURES}/oracle.json")).unwrap()).unwrap();
    let oracle = oracle.as_object().unwrap();
    assert_eq!(oracle.len(), 8);
    for (name, expected) in oracle {
        let path = Path::new(FIXTURES).join(name);
        let before = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap());
        let header = read_header(&path).unwrap();
        assert_eq!(header.session.as_untrusted().to_str_lossy(), expected["sessionId"].as_str().unwrap());
        let found = header.name.as_ref().map(|name| name.to_str_lossy().into_owned());
        assert_eq!(found.as_deref(), expected["name"].as_str(), "{name}");
        let found = header.cwd.as_ref().map(|cwd| cwd.to_str_lossy().into_owned());
        assert_eq!(found.as_deref(), expected["cwd"].as_str(), "{name}");
        assert_eq!(header.version.unwrap_or(1.0), expected["fileVersion"].as_f64().unwrap(), "{name}");
        assert!(header.name_is_certain);
        let after = fs::metadata(&path).unwrap();
        assert_eq!(before.0, fs::read(&path).unwrap());
        let times = |it: &fs::Metadata| (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
        assert_eq!(times(&before.1), times(&after));
    }
}

#[test]
fn the_first_line_that_is_json_must_be_the_header() {
    for before in
        ["", "\u{FEFF}", "\n\n \n", "not json\n", "{\"type\":\"ses\n", "\u{FEFF}\n\0\n", "\u{A0}\r\n"]
    {
        let header = header_of(format!("{before}{HEADER}")).unwrap();
        assert_eq!(*header.session.as_untrusted(), "s-1", "{before:?}");
        assert_eq!(header.cwd, Some("/w".into()));
    }
    // Several: the first one wins. No end of line: it counts if it is whole.
    assert_eq!(*header_of(HEADER.replace("s-1", "s-0") + HEADER).unwrap().session.as_untrusted(), "s-0");
    assert_eq!(*header_of(HEADER.trim_end()).unwrap().session.as_untrusted(), "s-1");
    for (before, why) in [
        ("{\"type\":\"message\",\"id\":\"x\"}\n", "not of the type session"),
        ("{\"type\":\"session\"}\n", "no id"),
        ("{\"type\":\"session\",\"id\":7}\n", "no id"),
        ("null\n", "no object"),
        ("\"session\"\n", "no object"),
    ] {
        let error = header_of(format!("{before}{HEADER}")).unwrap_err();
        assert!(matches!(error, HeaderError::NoHeader(_)), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
    for none in ["", "\n", "torn {\"type\":\"session\"", "{\"type\":\"session\",\"id\":\"s"] {
        assert!(matches!(header_of(none), Err(HeaderError::NoHeader(_))), "{none:?}");
    }
    // A BOM is passed over at the very beginning only.
    assert!(matches!(header_of(format!("\n\u{FEFF}{HEADER}")), Err(HeaderError::NoHeader(_))));
}

#[test]
fn ids_are_held_to_the_length_of_a_session() {
    let of = |id: &str| header_of(HEADER.replace("s-1", id));
    assert_eq!(of(&"é".repeat(512)).unwrap().session.as_untrusted().utf16_len(), 512);
    assert_eq!(of(&"😀".repeat(257)).unwrap_err(), HeaderError::UnusableId);
    assert_eq!(of("").unwrap_err(), HeaderError::UnusableId);
    // Any characters: a lone surrogate, NUL, an escape.
    assert_eq!(of("\\ud800\\u0000\\u001b").unwrap().session.as_untrusted().utf16_len(), 3);
}

#[test]
fn odd_headers_are_read() {
    let nested = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let header = format!("{{\"x\":{nested},\"id\":\"no\",\"type\":\"session\",\"cwd\":\"\",\"id\":\"s\"}}\n");
    let header = header_of(header).unwrap();
    assert_eq!(*header.session.as_untrusted(), "s");
    assert_eq!((header.cwd, header.version, header.name), (None, None, None));
}

#[test]
fn a_header_that_does_not_end_within_the_window_is_refused() {
    let of = |length: usize| {
        let line = HEADER.trim_end().len() + 1;
        format!("{}{}", HEADER.replace("/w", &"w".repeat(length - line + 2)), filler(400_000))
    };
    assert!(header_of(of(HEAD_WINDOW)).is_ok());
    assert_eq!(header_of(of(HEAD_WINDOW + 2)).unwrap_err(), HeaderError::HeaderTooLong);
    let blank = "\n".repeat(HEAD_WINDOW + 1) + HEADER;
    assert_eq!(header_of(&blank).unwrap_err(), HeaderError::HeaderTooLong);
    assert_eq!(header_of(blank + &filler(400_000)).unwrap_err(), HeaderError::HeaderTooLong);
    assert_eq!(header_of("x".repeat(1_000_000)).unwrap_err(), HeaderError::HeaderTooLong);
}

#[test]
fn the_newest_name_counts_and_an_empty_one_clears() {
    assert_eq!(name_of(HEADER), None);
    assert_eq!(name_of(format!("{HEADER}{}{}", info("one"), info("two"))), Some("two".into()));
    assert_eq!(name_of(format!("{HEADER}{}{}", info("one"), info(""))), None);
    assert_eq!(name_of(format!("{HEADER}{}{}", info("one"), info(" \\t"))), None);
    let absent = "{\"type\":\"session_info\",\"id\":\"b\"}\n";
    assert_eq!(name_of(format!("{HEADER}{}{absent}", info("one"))), None);
    // Exactly as written, padded or hostile.
    let odd = name_of(format!("{HEADER}{}", info(" a\\u001b[2J\\ud800\\u0000 "))).unwrap();
    assert_eq!(odd.utf16_len(), 9);
    assert_eq!(odd.to_str_lossy(), " a\u{1b}[2J\u{FFFD}\0 ");
}

#[test]
fn only_whole_entries_of_the_type_name_a_session() {
    let named = format!("{HEADER}{}", info("right"));
    for after in [
        "{\"type\":\"custom\",\"data\":{\"type\":\"session_info\",\"name\":\"wrong\"}}\n".to_owned(),
        "{\"type\":\"message\",\"message\":{\"content\":\"session_info\"}}\n".to_owned(),
        "[\"session_info\"]\n\"session_info\"\n".to_owned(),
        // Torn, and torn with another entry after it on the same line.
        info("wrong").trim_end_matches("\"}\n").to_owned(),
        format!("{{\"type\":\"message\",\"mess{}", info("wrong")),
        format!("{{\"type\":\"custom\",\"data\":{}{}}}\n", "[".repeat(50_000), "]".repeat(50_000)),
        "\0\0session_info\0\n".to_owned(),
    ] {
        assert_eq!(name_of(format!("{named}{after}")), Some("right".into()), "{after:.80}");
    }
    let mut invalid = named.into_bytes();
    invalid.extend_from_slice(b"\xff\xfesession_info\xff\n{\"type\":\"session_info\",\"name\":\"a\xffb\"}");
    assert_eq!(name_of(invalid), Some("a\u{FFFD}b".into()));
}

#[test]
fn in_a_large_file_the_name_is_looked_for_at_both_ends() {
    let large = filler(HEAD_WINDOW + TAIL_WINDOW);
    let certain = |content: &str| {
        let header = header_of(content).unwrap();
        (header.name.map(|name| name.to_str_lossy().into_owned()), header.name_is_certain)
    };
    assert_eq!(certain(&format!("{HEADER}{}{large}", info("head"))), (Some("head".to_owned()), false));
    assert_eq!(
        certain(&format!("{HEADER}{}{large}{}", info("head"), info("tail"))),
        (Some("tail".to_owned()), true)
    );
    assert_eq!(certain(&format!("{HEADER}{}{large}{}", info("head"), info(""))), (None, true));
    // In the middle it is missed, and that is said.
    assert_eq!(certain(&format!("{HEADER}{large}{}{large}", info("middle"))), (None, false));
    // The line with which the tail window begins counts, one that begins before it doesn't.
    let last = info("edge");
    let rest = filler(TAIL_WINDOW - last.len());
    assert_eq!(certain(&format!("{HEADER}{large}{last}{rest}")), (Some("edge".to_owned()), true));
    let rest = filler(TAIL_WINDOW - last.len() + 1);
    assert_eq!(certain(&format!("{HEADER}{large}{last}{rest}")), (None, false));
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let (dir, path) = file(HEADER);
    let at = |name: &str| dir.path().join(name);
    symlink(&path, at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let started = Instant::now();
    for (name, kind) in [
        ("link", "a symbolic link"),
        ("dangling", "a symbolic link"),
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        (".", "a directory"),
    ] {
        assert_eq!(read_header(&at(name)).unwrap_err(), HeaderError::NotRegular(kind), "{name}");
        assert_eq!(HeaderCache::new().header(&at(name)).unwrap_err(), HeaderError::NotRegular(kind));
    }
    assert_eq!(read_header(Path::new("/dev/null")).unwrap_err(), HeaderError::NotRegular("a device"));
    assert_eq!(read_header(&at("none")).unwrap_err(), HeaderError::NotThere);
    assert_eq!(read_header(&path.join("below")).unwrap_err(), HeaderError::NotThere);
    let long = at(&"x".repeat(300));
    assert!(matches!(read_header(&long), Err(HeaderError::Unreadable(_))));
    assert!(started.elapsed() < Duration::from_secs(5), "waited for another end");
}

#[test]
fn errors_name_no_path() {
    let (dir, path) = file("null\n");
    for path in [&path, &dir.path().join("none"), dir.path()] {
        let text = read_header(path).unwrap_err().to_string();
        assert!(!text.contains(dir.path().to_str().unwrap()) && text.contains(". "), "{text}");
    }
}

#[test]
fn the_cache_reads_again_only_what_changed() {
    let (_dir, path) = file(format!("{HEADER}{}", info("one")));
    let mut cache = HeaderCache::new();
    let name = |cache: &mut HeaderCache| cache.header(&path).unwrap().name;
    for _ in 0..3 {
        assert_eq!(name(&mut cache), Some("one".into()));
    }
    assert_eq!(cache.opened(), 1);

    append(&path, info("two"));
    assert_eq!(name(&mut cache), Some("two".into()));
    // Same size, same inode, and the modification time set back.
    let before = fs::metadata(&path).unwrap();
    let content = fs::read_to_string(&path).unwrap().replace("two", "owt");
    let changed = |it: &fs::Metadata| (it.ctime(), it.ctime_nsec());
    while changed(&fs::metadata(&path).unwrap()) == changed(&before) {
        fs::write(&path, &content).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before.modified().unwrap());
    assert_eq!(name(&mut cache), Some("owt".into()));
    // Another file in its place.
    let other = path.with_extension("other");
    fs::write(&other, HEADER.replace("s-1", "s-2")).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(*cache.header(&path).unwrap().session.as_untrusted(), "s-2");
    assert_eq!(cache.len(), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(cache.header(&path).unwrap_err(), HeaderError::NotThere);
    assert!(cache.is_empty());
}

#[test]
fn the_cache_remembers_what_is_wrong_with_a_content_until_it_changes() {
    let (_dir, path) = file("");
    let mut cache = HeaderCache::new();
    assert!(matches!(cache.header(&path), Err(HeaderError::NoHeader(_))));
    assert_eq!(cache.len(), 1);
    assert!(matches!(cache.header(&path), Err(HeaderError::NoHeader(_))));
    assert_eq!(cache.opened(), 1);
    append(&path, HEADER);
    assert_eq!(*cache.header(&path).unwrap().session.as_untrusted(), "s-1");
    cache.retain(|_| false);
    assert!(cache.is_empty());
}

#[test]
fn a_name_seen_once_stays_while_the_file_outgrows_the_windows() {
    let large = filler(HEAD_WINDOW + TAIL_WINDOW);
    let (_dir, path) = file(format!("{HEADER}{large}{}", info("seen")));
    let mut cache = HeaderCache::new();
    assert_eq!(cache.header(&path).unwrap().name, Some("seen".into()));
    for _ in 0..6 {
        append(&path, filler(100_000));
        let header = cache.header(&path).unwrap();
        assert_eq!((header.name, header.name_is_certain), (Some("seen".into()), true));
    }
    assert_eq!(read_header(&path).unwrap().name, None);
    // Too much at once: a name could have come and gone unseen.
    append(&path, filler(300_000));
    let header = cache.header(&path).unwrap();
    assert_eq!((header.name, header.name_is_certain), (None, false));
    append(&path, info("new"));
    assert_eq!(cache.header(&path).unwrap().name, Some("new".into()));

    // What was doubtful before stays so.
    let (_dir, path) = file(format!("{HEADER}{large}{}{large}", info("middle")));
    for _ in 0..2 {
        let header = cache.header(&path).unwrap();
        assert_eq!((header.name, header.name_is_certain), (None, false));
        append(&path, filler(1_000));
    }
}
