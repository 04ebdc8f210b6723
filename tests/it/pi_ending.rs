//! The end of a session file read backwards, and its branch as it grows: both say what the whole index
//! says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use headman::pi::branch::{Seen, Tree};
use headman::pi::ending;
use headman::pi::growth::{Branch, Growth, Item};
use headman::pi::session::HeaderError;
use headman::pi::tail::{Progress, Tail, Unsettled};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

/// Every real session file that has entries.
fn fixtures() -> Vec<PathBuf> {
    let entries = fs::read_dir(FIXTURES).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    paths.sort();
    assert!(paths.len() > 25);
    paths
}

/// What is complete in the file at `path`.
fn indexed(path: &Path) -> Tail {
    let mut tail = Tail::new(path);
    while tail.look(u64::MAX, Unsettled::AfterQuiet(Instant::now())).unwrap() == Progress::More {}
    tail
}

fn grown(tail: &Tail, branch: Branch) -> Growth {
    let mut growth = Growth::default();
    growth.follow(tail, branch);
    growth
}

/// Without what only the whole file tells.
fn plain(items: &[Item]) -> Vec<Item> {
    items.iter().map(|item| Item { branches: 0, ..*item }).collect()
}

fn user(id: u32, parent: Option<u32>, text: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent:08x}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

#[test]
fn of_every_real_file_it_is_what_the_index_says() {
    for path in fixtures() {
        let name = path.file_name().unwrap().to_owned();
        let tail = indexed(&path);
        let all = plain(grown(&tail, Branch::Latest).items());
        let read = ending::read(&path, usize::MAX).unwrap();
        assert_eq!((read.items.as_slice(), read.is_whole), (&all[..], true), "{name:?}");
        assert_eq!(
            Some(read.header.session),
            tail.index().header().map(|it| it.as_ref().unwrap().session.clone())
        );
        for count in [1, 3, 7] {
            let read = ending::read(&path, count).unwrap();
            assert_eq!(read.items, all[all.len().saturating_sub(count)..], "{name:?}, the last {count}");
        }
    }
}

#[test]
fn lines_of_any_length_and_ends_of_any_kind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    // Lines that end right before, at and after the edge of what is read at once.
    for length in [1, 65_400, 65_536 - 120, 65_537, 200_000, 3 << 20] {
        let lines: String = (1..=9)
            .map(|id| user(id, id.checked_sub(1).filter(|it| *it > 0), &"x".repeat(length / 3)))
            .collect();
        for end in ["", "{\"type\":\"mess", user(10, Some(9), "unterminated").trim_end()] {
            fs::write(&path, format!("{HEADER}{lines}{end}")).unwrap();
            let all = plain(grown(&indexed(&path), Branch::Latest).items());
            let read = ending::read(&path, 100).unwrap();
            assert!(all.ends_with(&read.items), "{length} {end}");
            assert_eq!(
                (read.items.len() == 9, read.items.len() == 9),
                (read.is_whole, lines.len() < 4 << 20),
                "{length}"
            );
            assert_eq!(ending::read(&path, 2).unwrap().items, all[7..], "{length} {end}");
        }
    }
    // A line of 64 MB at the end is not read at all, and one before it ends what is known.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    fs::write(&path, format!("{HEADER}{}", user(1, None, "before"))).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    file.set_len(size + (64 << 20)).unwrap();
    let read = ending::read(&path, 100).unwrap();
    assert_eq!((read.items.len(), read.is_whole, read.size), (0, false, size + (64 << 20)));
    // Two entries fused to torn lines, blank lines, and a header alone.
    let fused = format!("{{\"type\":\"message\",\"id\":\"0{}", user(2, Some(1), "fused"));
    fs::write(&path, format!("{HEADER}{}\n\n{fused}{}", user(1, None, "a"), user(3, Some(2), "b"))).unwrap();
    let read = ending::read(&path, 100).unwrap();
    assert_eq!(read.items, plain(grown(&indexed(&path), Branch::Latest).items()));
    assert_eq!(read.items.iter().map(|item| item.is_recovered).collect::<Vec<_>>(), [false, true, false]);
    fs::write(&path, HEADER).unwrap();
    let read = ending::read(&path, 100).unwrap();
    assert_eq!((read.items.len(), read.is_whole), (0, true));
    fs::write(&path, "").unwrap();
    assert!(matches!(ending::read(&path, 1), Err(HeaderError::NoHeader(_))));
    assert_eq!(ending::read(&dir.path().join("no"), 1), Err(HeaderError::NotThere));
}

#[test]
fn a_branch_that_grows_is_the_branch_of_the_tree_at_every_line() {
    let dir = tempfile::tempdir().unwrap();
    for path in fixtures() {
        let name = path.file_name().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        let copy = dir.path().join(&name);
        let (mut tail, mut growth) = (Tail::new(&copy), Growth::default());
        let mut file = fs::File::create(&copy).unwrap();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            std::io::Write::write_all(&mut file, line).unwrap();
            while tail.look(u64::MAX, Unsettled::AfterQuiet(Instant::now())).unwrap() == Progress::More {}
            growth.follow(&tail, Branch::Latest);
            let at_once = grown(&tail, Branch::Latest);
            assert_eq!(growth.items(), at_once.items(), "{name:?}");
            assert_eq!(growth.totals(), at_once.totals(), "{name:?}");
        }
        let tree = Tree::of(tail.index(), Seen::WithRecovered);
        let branch = tree.branch();
        let shown: Vec<u64> = branch
            .iter()
            .map(|at| tree.entry(*at).unwrap())
            .filter_map(Item::of)
            .map(|it| it.offset)
            .collect();
        assert_eq!(growth.items().iter().map(|item| item.offset).collect::<Vec<_>>(), shown, "{name:?}");
        assert_eq!(growth.name(), tree.name().as_ref(), "{name:?}");
        assert_eq!(growth.model(), tree.model(&branch).as_ref(), "{name:?}");
        let labels = tree.labels().into_iter().map(|(at, label)| (tree.entry(at).unwrap().offset, label));
        assert_eq!(**growth.labels(), labels.collect(), "{name:?}");
        assert_eq!(growth.totals().roots as usize, tree.shape().roots, "{name:?}");
        let usage = Tree::of(tail.index(), Seen::ByPi).usage();
        let cost: f64 = usage.values().map(|it| it.cost).sum();
        let tokens: f64 = usage.values().map(|it| it.tokens).sum();
        assert!((growth.totals().usage.cost - cost).abs() < 1e-9, "{name:?}");
        assert!((growth.totals().usage.tokens - tokens).abs() < 1e-6, "{name:?}");
        // Every branch can be chosen, by its end and by any entry of it.
        let tips = growth.tips(&tail);
        assert_eq!(tips.iter().filter(|tip| tip.is_latest).count(), 1, "{name:?}");
        for tip in tips.iter().filter(|tip| !tip.is_latest) {
            growth.follow(&tail, Branch::Through(tip.offset));
            assert!(!growth.is_latest(), "{name:?}");
            assert!(growth.items().last().unwrap().offset <= tip.offset);
        }
        growth.follow(&tail, Branch::Through(growth.items()[0].offset));
        assert!(growth.items().len() <= shown.len().max(growth.items().len()));
        growth.follow(&tail, Branch::Latest);
        assert_eq!(growth.items().iter().map(|item| item.offset).collect::<Vec<_>>(), shown, "{name:?}");
    }
}
