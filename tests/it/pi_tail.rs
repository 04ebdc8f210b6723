//! The index of a session file while the file grows, tears, shrinks and is written anew.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headman::pi::branch::{Seen, Tree};
use headman::pi::entry::{Id, Kind};
use headman::pi::session::HeaderError;
use headman::pi::tail::{MAX_LINE, Progress, QUIET, Tail, Unsettled};

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

struct Scene {
    dir: tempfile::TempDir,
    path: PathBuf,
    tail: Tail,
    /// The time that is told, which is nobody's clock.
    now: Instant,
}

impl Scene {
    fn new(content: impl AsRef<[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        fs::write(&path, content).unwrap();
        let tail = Tail::new(&path);
        Self { dir, path, tail, now: Instant::now() }
    }

    fn append(&self, content: impl AsRef<[u8]>) {
        fs::OpenOptions::new().append(true).open(&self.path).unwrap().write_all(content.as_ref()).unwrap();
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        fs::write(&self.path, content).unwrap();
    }

    /// Looks until everything is read, after `later`; which entries there are then.
    fn look(&mut self, later: Duration) -> Vec<u32> {
        self.now += later;
        while self.tail.look(u64::MAX, Unsettled::AfterQuiet(self.now)).unwrap() == Progress::More {}
        ids(&self.tail)
    }
}

fn ids(tail: &Tail) -> Vec<u32> {
    let number = |id: &Id| match id {
        Id::Hex(number) | Id::Line(number) => *number,
        Id::Other(_) => u32::MAX,
    };
    tail.index().entries().iter().map(|entry| number(&entry.id)).collect()
}

fn user(id: u32, parent: Option<u32>) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent:08x}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"text {id}\"}}}}\n"
    )
}

fn at_once(content: impl AsRef<[u8]>) -> Tail {
    let scene = Scene::new(content);
    let mut tail = Tail::new(&scene.path);
    while tail.look(1, Unsettled::AtOnce).unwrap() == Progress::More {}
    tail
}

#[test]
fn only_what_was_appended_is_read_and_a_look_is_bounded() {
    let lines: String = (1..=40_000).map(|id| user(id, Some(id - 1))).collect();
    let mut scene = Scene::new(format!("{HEADER}{lines}"));
    let size = fs::metadata(&scene.path).unwrap().len();
    assert!(size > 3 << 20);
    assert_eq!(scene.tail.look(1, Unsettled::AtOnce).unwrap(), Progress::More);
    assert!(scene.tail.bytes_read() < (1 << 20) + 1024, "{}", scene.tail.bytes_read());
    assert_eq!(scene.look(Duration::ZERO).len(), 40_000);
    // What crosses a chunk is read twice, and nothing else is.
    let chunks = size / (64 << 10) + 1;
    assert!(scene.tail.bytes_read() < size + chunks * 128, "{} of {size}", scene.tail.bytes_read());
    let before = scene.tail.bytes_read();
    assert_eq!(scene.look(QUIET).len(), 40_000);
    assert_eq!(scene.tail.bytes_read(), before, "nothing changed, nothing is read");
    let more = user(40_001, Some(40_000));
    scene.append(&more);
    assert_eq!(scene.look(Duration::ZERO).len(), 40_001);
    assert_eq!(scene.tail.bytes_read(), before + more.len() as u64);
    let tree = Tree::of(scene.tail.index(), Seen::ByPi);
    assert_eq!(tree.branch().len(), 40_001);
}

#[test]
fn an_unterminated_line_counts_after_a_quiet_second_and_again_when_it_goes_on() {
    let line = user(2, Some(1));
    let mut scene = Scene::new(format!("{HEADER}{}{}", user(1, None), line.trim_end()));
    assert_eq!(scene.look(Duration::ZERO), [1]);
    assert_eq!(scene.look(QUIET / 2), [1]);
    assert_eq!(scene.look(QUIET / 2), [1, 2]);
    assert_eq!(scene.look(QUIET), [1, 2], "once");
    scene.append("\n");
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    // Torn: it is nothing, however long it stays, and becomes what it is when its end comes.
    let line = user(3, Some(2));
    scene.append(&line[..30]);
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![1, 2], vec![1, 2]));
    assert_eq!(scene.tail.index().bad_lines(), 0);
    scene.append(&line[30..]);
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 3]);
    // What counted as it stood, and goes on otherwise, was nothing.
    scene.append(user(4, Some(3)).trim_end());
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![1, 2, 3], vec![1, 2, 3, 4]));
    scene.append(" torn\n");
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 3]);
    assert_eq!(scene.tail.index().bad_lines(), 1);
    // Whoever reads but once takes it at once.
    assert_eq!(ids(&at_once(format!("{HEADER}{}", user(7, None).trim_end()))), [7]);
}

#[test]
fn every_cut_of_a_file_that_grows_ends_in_the_same_index() {
    let whole =
        format!("\u{FEFF}{HEADER}{}\n\r\nnot json\n{}{}", user(1, None), user(2, Some(1)), user(3, None));
    let mut scene = Scene::new("");
    let bytes = whole.as_bytes();
    for at in 0..bytes.len() {
        scene.append(&bytes[at..=at]);
        scene.look(QUIET * u32::from(at % 3 == 0));
    }
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 3]);
    assert_eq!(scene.tail.index().bad_lines(), 1);
    assert_eq!(scene.tail.index().entries(), at_once(&whole).index().entries());
}

#[test]
fn a_file_written_anew_with_the_same_size_is_read_again() {
    // More around the middle than is compared at both ends.
    let filling = |from: u32| -> String { (from..from + 20).map(|id| user(id, Some(1))).collect() };
    let content = |middle: u32| format!("{HEADER}{}{}{}", filling(100), user(middle, None), filling(200));
    let mut scene = Scene::new(content(1));
    assert_eq!(scene.look(Duration::ZERO)[20], 1);
    assert!(content(1).find("text 1\"").is_some_and(|at| at > 1100 && at + 1100 < content(1).len()));
    scene.write(content(2));
    assert_eq!(fs::metadata(&scene.path).unwrap().len(), content(1).len() as u64);
    assert_eq!((scene.look(Duration::ZERO)[20], ids(&scene.tail).len()), (2, 41));
    // The same with another header, and longer by now.
    scene.write(content(3).replace("\"version\":3", "\"version\":2") + &user(4, None));
    assert_eq!((scene.look(Duration::ZERO)[20], ids(&scene.tail).len()), (3, 42));
    assert_eq!(scene.tail.index().version(), Some(2.0));
}

#[test]
fn a_file_that_shrank_is_kept_until_it_is_quiet_and_read_again_when_it_grew_back() {
    let long = format!("{HEADER}{}{}", user(1, None), user(2, Some(1)));
    let mut scene = Scene::new(&long);
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    scene.write(HEADER);
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    scene.now += QUIET / 2;
    assert_eq!(scene.tail.look(1, Unsettled::AfterQuiet(scene.now)).unwrap(), Progress::Waiting);
    // It goes on being written: quiet begins anew.
    scene.append(user(5, None));
    assert_eq!((scene.look(QUIET / 2), scene.look(QUIET / 2)), (vec![1, 2], vec![1, 2]));
    assert_eq!(scene.look(QUIET / 2), [5]);
    // Shrunk and grown beyond what it was between two looks.
    scene.write(format!("{HEADER}{}{}{}", user(6, None), user(7, Some(6)), user(8, Some(7))));
    assert_eq!(scene.look(Duration::ZERO), [6, 7, 8]);
    // Empty, and then nothing: whoever reads once sees that at once.
    scene.write("");
    assert_eq!(scene.tail.look(1, Unsettled::AtOnce).unwrap(), Progress::Done);
    assert!(scene.tail.index().header().is_none() && ids(&scene.tail).is_empty());
}

#[test]
fn another_file_in_its_place_is_read_from_its_beginning() {
    let mut scene = Scene::new(format!("{HEADER}{}", user(1, None)));
    assert_eq!(scene.look(Duration::ZERO), [1]);
    let other = scene.dir.path().join("other");
    fs::write(&other, format!("{HEADER}{}{}", user(1, None), user(9, Some(1)))).unwrap();
    fs::rename(&other, &scene.path).unwrap();
    assert!(!scene.tail.holds().unwrap());
    assert_eq!(scene.look(Duration::ZERO), [1, 9]);
    assert!(scene.tail.holds().unwrap());
    fs::remove_file(&scene.path).unwrap();
    let now = Unsettled::AfterQuiet(scene.now);
    assert_eq!(scene.tail.look(1, now).unwrap_err(), HeaderError::NotThere);
    assert_eq!(ids(&scene.tail), [1, 9], "what was known is kept");
}

#[test]
fn circles_orphans_doubles_and_several_roots_have_a_branch() {
    let branch = |lines: &[String]| {
        let tail = at_once(format!("{HEADER}{}", lines.concat()));
        let tree = Tree::of(tail.index(), Seen::ByPi);
        (tree.branch(), tree.shape().roots, tree.shape().orphans)
    };
    // A circle, and an entry that follows itself.
    assert_eq!(branch(&[user(1, Some(2)), user(2, Some(1))]), (vec![0, 1], 0, 0));
    assert_eq!(branch(&[user(1, Some(1))]), (vec![0], 0, 0));
    assert_eq!(branch(&[user(1, None), user(2, Some(99)), user(3, Some(2))]), (vec![1, 2], 2, 1));
    // Of one id twice the last counts, for whoever follows it.
    assert_eq!(
        branch(&[user(1, None), user(2, Some(1)), user(1, None), user(3, Some(1))]),
        (vec![2, 3], 1, 0)
    );
    // A parent that comes later in the file.
    assert_eq!(branch(&[user(2, Some(1)), user(1, None), user(3, Some(2))]), (vec![1, 0, 2], 1, 0));
    assert_eq!(branch(&[]), (vec![], 0, 0));
}

#[test]
fn odd_lines_are_entries_or_passed_over() {
    let nested = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let lines = [
        "{\"type\":\"custom\",\"data\":{\"id\":\"wrong\",\"type\":\"label\"},\"id\":\"00000001\",\"parentId\":null}",
        &format!("{{\"type\":\"custom\",\"data\":{nested},\"id\":\"00000002\",\"parentId\":\"00000001\"}}"),
        "{\"type\":\"message\",\"id\":\"00000003\",\"parentId\":\"00000002\",\"message\":{\"role\":\"user\",\"content\":\"a\\ud800b\"}}",
        "{\"type\":\"of tomorrow\",\"id\":\"00000004\",\"parentId\":\"00000003\"}",
        // A second header, values that are no entries, and NUL.
        HEADER.trim_end(),
        "null",
        "\0\0",
        "[]",
        // Without an id: a place in the tree all the same.
        "{\"type\":\"message\",\"parentId\":\"00000004\",\"message\":null}",
        "{\"type\":7,\"id\":\"\\ud800\",\"parentId\":\"00000004\"}",
    ];
    let tail = at_once(HEADER.to_owned() + &lines.join("\n"));
    let entries = tail.index().entries();
    assert_eq!(ids(&tail), [1, 2, 3, 4, 8, u32::MAX]);
    assert_eq!(entries[2].kind, Kind::User);
    assert!(entries.iter().enumerate().all(|(at, entry)| at == 2 || entry.kind == Kind::Other));
    assert_eq!(Tree::of(tail.index(), Seen::ByPi).branch(), [0, 1, 2, 3, 5]);
    assert_eq!(tail.index().bad_lines(), 1);
    // A newer version is tried all the same.
    let newer = at_once(HEADER.replace("\"version\":3", "\"version\":4") + &user(1, None));
    assert_eq!((newer.index().version(), ids(&newer)), (Some(4.0), vec![1]));
    // What does not begin with a header is no session.
    let none = at_once(user(1, None) + HEADER);
    assert!(matches!(none.index().header(), Some(Err(HeaderError::NoHeader(_)))));
}

#[test]
fn entries_behind_torn_lines_are_found_wherever_they_begin() {
    let fused = |torn: &str| {
        let tail = at_once(format!("{HEADER}{torn}{}", user(5, Some(4))));
        let entries = tail.index().entries();
        entries.iter().map(|entry| (ids(&tail)[0], entry.is_recovered, entry.kind)).collect::<Vec<_>>()
    };
    for torn in [
        "{\"type\":\"message\",\"id\":\"0",
        "x",
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"te",
    ] {
        assert_eq!(fused(torn), [(5, true, Kind::User)], "{torn}");
    }
    // A part of a torn entry is none, though it goes to the end: it has no parent.
    let part = "{\"type\":\"mess {\"type\":\"text\",\"id\":\"00000001\"}\n";
    assert_eq!(at_once(format!("{HEADER}{part}")).index().entries(), []);
}

#[test]
fn a_line_beyond_the_longest_is_passed_over_and_told() {
    let mut scene = Scene::new(format!("{HEADER}{}", user(1, None)));
    // Sparse: it takes no room on the disk.
    let end = fs::metadata(&scene.path).unwrap().len() + MAX_LINE + 1;
    fs::OpenOptions::new().write(true).open(&scene.path).unwrap().set_len(end).unwrap();
    scene.look(Duration::ZERO);
    assert_eq!(scene.look(QUIET), [1]);
    let before = scene.tail.bytes_read();
    assert_eq!(scene.look(QUIET), [1]);
    assert_eq!(scene.tail.bytes_read(), before, "it is not read again and again");
    scene.append(format!("\n{}", user(2, Some(1))));
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    assert_eq!((scene.tail.index().long_lines(), scene.tail.index().bad_lines()), (1, 0));
    assert!(scene.tail.bytes_read() < before + 4096);
}

#[test]
fn two_megabytes_on_one_line_are_one_entry() {
    let long = user(1, None).replace("text 1", &"x".repeat(2_000_000));
    let tail = at_once(format!("{HEADER}{long}{}", user(2, Some(1))));
    assert_eq!(ids(&tail), [1, 2]);
    assert_eq!(tail.index().entries()[0].length as usize, long.len() - 1);
}

#[test]
fn an_entry_takes_few_bytes_of_memory() {
    // With a vector's room for as many again, 100,000 of them stay below 16 MB.
    assert!(std::mem::size_of::<headman::pi::entry::Entry>() <= 64);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let scene = Scene::new("");
    let refused = |path: &Path| Tail::new(path).look(1, Unsettled::AtOnce).unwrap_err();
    assert!(matches!(refused(scene.dir.path()), HeaderError::NotRegular("a directory")));
    let link = scene.dir.path().join("link");
    std::os::unix::fs::symlink(&scene.path, &link).unwrap();
    assert!(matches!(refused(&link), HeaderError::NotRegular("a symbolic link")));
}
