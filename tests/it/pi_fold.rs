//! What is folded from a session file while it is read: the entries of its branch, each once.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use headman::pi::branch::{Seen, Tree};
use headman::pi::entry::{Entry, Envelope, Id};
use headman::pi::session::HeaderError;
use headman::pi::tail::{Fold, Progress, QUIET, Tail, Unsettled};
use proptest::prelude::*;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

/// The entries in the order in which they were taken.
#[derive(Debug, Clone, Default)]
struct Taken(Vec<u32>);

fn number(id: &Id) -> u32 {
    match id {
        Id::Hex(number) | Id::Line(number) => *number,
        Id::Other(_) => u32::MAX,
    }
}

impl Fold for Taken {
    fn take(&mut self, entry: &Entry, _: &Envelope<'_>) {
        self.0.push(number(&entry.id));
    }
}

struct Scene {
    _dir: tempfile::TempDir,
    path: PathBuf,
    tail: Tail<Taken>,
    /// The time that is told, which is nobody's clock.
    now: Instant,
}

impl Scene {
    fn new(content: impl AsRef<[u8]>) -> Self {
        Self::with_window(content, None)
    }

    fn with_window(content: impl AsRef<[u8]>, window: Option<u64>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        fs::write(&path, content).unwrap();
        let tail = Tail::folding(&path, window);
        Self { _dir: dir, path, tail, now: Instant::now() }
    }

    fn append(&self, content: impl AsRef<[u8]>) {
        fs::OpenOptions::new().append(true).open(&self.path).unwrap().write_all(content.as_ref()).unwrap();
    }

    /// Looks until everything is read, after `later`; what was taken then.
    fn look(&mut self, later: Duration) -> Vec<u32> {
        self.now += later;
        while self.tail.look(1, Unsettled::AfterQuiet(self.now)).unwrap() == Progress::More {}
        self.tail.fold().0.clone()
    }

    fn branch(&self) -> Vec<u32> {
        let tree = Tree::of(self.tail.index(), Seen::WithRecovered);
        tree.branch().into_iter().map(|at| number(&tree.entry(at).unwrap().id)).collect()
    }
}

fn user(id: u32, parent: Option<u32>) -> String {
    padded(id, parent, 0)
}

fn padded(id: u32, parent: Option<u32>, length: usize) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent:08x}\""));
    let text = "x".repeat(length);
    format!(
        "{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

#[test]
fn each_entry_is_taken_once_and_another_branch_from_its_root() {
    let mut scene = Scene::new(format!("{HEADER}{}{}", user(1, None), user(2, Some(1))));
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    scene.append(user(3, Some(2)) + &user(4, Some(3)));
    let before = scene.tail.bytes_read();
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 3, 4]);
    let appended = (user(3, Some(2)) + &user(4, Some(3))).len() as u64;
    assert_eq!(scene.tail.bytes_read() - before, appended, "nothing is read twice while the branch goes on");
    // Back to the second entry, on from there, and to the former branch again.
    scene.append(user(5, Some(2)));
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 5]);
    scene.append(user(6, Some(5)));
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 5, 6]);
    scene.append(user(7, Some(4)) + &user(8, Some(7)));
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 3, 4, 7, 8]);
    // A second root, and one whose parent is nowhere.
    scene.append(user(9, None));
    assert_eq!(scene.look(Duration::ZERO), [9]);
    scene.append(user(10, Some(99)) + &user(11, Some(10)));
    assert_eq!(scene.look(Duration::ZERO), [10, 11]);
    let before = scene.tail.bytes_read();
    assert_eq!((scene.look(QUIET), scene.tail.bytes_read()), (vec![10, 11], before), "and nothing again");
    // The first version has no ids: it is one line of entries.
    let first = HEADER.replace("\"version\":3,", "");
    let mut scene = Scene::new(first + "{\"type\":\"message\"}\n{\"type\":\"message\"}\n");
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    // Behind a torn line.
    let mut scene = Scene::new(format!("{HEADER}{}{{\"type\":\"mess{}", user(1, None), user(3, Some(1))));
    assert_eq!(scene.look(Duration::ZERO), [1, 3]);
}

#[test]
fn what_an_unterminated_line_did_is_undone_when_it_goes_on() {
    let mut scene = Scene::new(format!("{HEADER}{}{}", user(1, None), user(2, Some(1)).trim_end()));
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![1], vec![1, 2]));
    scene.append("\n");
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    // One that goes to another branch, and turns out to be nothing.
    scene.append(user(3, None).trim_end());
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![1, 2], vec![3]));
    scene.append(" torn\n");
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    scene.append(user(4, Some(2)));
    assert_eq!(scene.look(Duration::ZERO), [1, 2, 4]);
}

#[test]
fn a_file_written_anew_is_folded_anew() {
    let mut scene = Scene::new(format!("{HEADER}{}{}", user(1, None), user(2, Some(1))));
    assert_eq!(scene.look(Duration::ZERO), [1, 2]);
    fs::write(&scene.path, format!("{HEADER}{}{}", user(5, None), user(6, Some(5)))).unwrap();
    assert_eq!(scene.look(Duration::ZERO), [5, 6], "of the same size");
    fs::write(&scene.path, format!("{HEADER}{}", user(7, None))).unwrap();
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![5, 6], vec![7]), "smaller");
    let other = scene.path.with_extension("other");
    fs::write(&other, format!("{HEADER}{}{}", user(7, None), user(8, Some(7)))).unwrap();
    fs::rename(&other, &scene.path).unwrap();
    assert_eq!(scene.look(Duration::ZERO), [7, 8], "another file");
    fs::remove_file(&scene.path).unwrap();
    assert_eq!(scene.tail.look(1, Unsettled::AtOnce), Err(HeaderError::NotThere));
    assert_eq!(scene.tail.fold().0, [7, 8], "what was known is kept");
}

/// Ten entries of 300 kB on a branch that is taken up again.
#[test]
fn going_to_another_branch_is_bounded_by_look_and_goes_on_when_the_branch_does() {
    let mut content = HEADER.to_owned();
    for id in 1..=10 {
        content.push_str(&padded(id, (id > 1).then(|| id - 1), 300_000));
    }
    let mut scene = Scene::new(content + &user(20, Some(2)));
    let look = |scene: &mut Scene| scene.tail.look(1 << 20, Unsettled::AtOnce).unwrap();
    while look(&mut scene) == Progress::More {}
    assert_eq!(scene.tail.fold().0, [1, 2, 20]);
    scene.append(user(21, Some(10)));
    let before = scene.tail.bytes_read();
    assert_eq!(look(&mut scene), Progress::More);
    let first = scene.tail.bytes_read() - before;
    assert!(first <= (1 << 20) + 301_000, "{first}");
    assert_eq!(scene.tail.fold().0, [1, 2, 20], "as it was, until it is done");
    // It goes on meanwhile: what was taken is not taken again.
    scene.append(user(22, Some(21)));
    while look(&mut scene) == Progress::More {}
    assert_eq!(scene.tail.fold().0, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 21, 22]);
    let all = scene.tail.bytes_read() - before;
    assert!(all < 10 * 300_000 + 10_000, "{all}");
    // It goes elsewhere meanwhile: all begins again.
    scene.append(user(23, Some(20)));
    scene.append(user(24, Some(10)));
    assert_eq!(look(&mut scene), Progress::More);
    scene.append(user(25, Some(20)));
    while look(&mut scene) == Progress::More {}
    assert_eq!(scene.tail.fold().0, [1, 2, 20, 25]);
}

#[test]
fn of_a_large_file_only_the_end_is_read() {
    let lines: String = (1..=400).map(|id| padded(id, (id > 1).then(|| id - 1), 1000)).collect();
    let whole = format!("{HEADER}{lines}");
    let line = padded(2, Some(1), 1000).len() as u64;
    // With each place at which the window may begin in a line, beginning and end of one among them.
    for window in [10 * line, 10 * line - 1, 10 * line + 1, 10 * line + 500] {
        let mut scene = Scene::with_window(&whole, Some(window));
        let first = if window < 10 * line { 392 } else { 391 };
        assert_eq!(scene.look(Duration::ZERO), (first..=400).collect::<Vec<_>>(), "{window}");
        assert!(scene.tail.is_cut());
        assert!(scene.tail.bytes_read() <= window + 65_536 + 1, "{}", scene.tail.bytes_read());
        let header = scene.tail.index().header().unwrap().as_ref().unwrap();
        assert_eq!(header.cwd.as_ref().unwrap(), &"/w");
        scene.append(user(401, Some(400)));
        assert_eq!(scene.look(Duration::ZERO).last(), Some(&401));
        // A branch that begins before the window is known from where it comes into it.
        scene.append(user(402, Some(3)) + &user(403, Some(402)));
        assert_eq!(scene.look(Duration::ZERO), [402, 403]);
    }
    // Anew, and again only its end.
    let mut scene = Scene::with_window(&whole, Some(line));
    assert_eq!(scene.look(Duration::ZERO), [400]);
    fs::write(&scene.path, whole.replacen("s-1", "s-2", 1)).unwrap();
    let before = scene.tail.bytes_read();
    assert_eq!(scene.look(Duration::ZERO), [400]);
    assert!(scene.tail.bytes_read() - before < 70_000);
    // One that is not larger is read whole; one line may be more than the window.
    let mut small = Scene::with_window(format!("{HEADER}{}", user(1, None)), Some(100));
    assert_eq!((small.look(Duration::ZERO), small.tail.is_cut()), (vec![1], false));
    let long = format!("{HEADER}{}", padded(1, None, 300_000));
    let mut scene = Scene::with_window(&long, Some(1000));
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![], vec![]));
    scene.append(user(2, Some(1)));
    assert_eq!(scene.look(Duration::ZERO), [2]);
    let mut scene = Scene::with_window(long.trim_end(), Some(1000));
    assert_eq!((scene.look(Duration::ZERO), scene.look(QUIET)), (vec![], vec![]), "nor while it is torn");
    // The first version: what stands before the window is missing, not nothing.
    let first = whole.replacen("\"version\":3,", "", 1);
    let mut scene = Scene::with_window(first, Some(10 * line));
    assert_eq!(scene.look(Duration::ZERO).len(), 10);
    let entries = scene.tail.index().entries();
    assert!(entries[0].parent.is_some() && entries[1].parent == Some(entries[0].id.clone()));
    // Something that is no session.
    let mut scene = Scene::with_window("x".repeat(200_000), Some(1000));
    scene.look(Duration::ZERO);
    assert_eq!(scene.tail.index().header(), Some(&Err(HeaderError::HeaderTooLong)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Entries that follow any earlier one or none, appended in pieces that end anywhere.
    #[test]
    fn however_a_file_grows_what_is_folded_is_its_branch(
        parents in proptest::collection::vec(0_u32..40, 1..40),
        cuts in proptest::collection::vec((1_usize..400, any::<bool>()), 1..40),
    ) {
        let mut text = String::new();
        for (at, parent) in parents.iter().enumerate() {
            let id = at as u32 + 1;
            // Mostly on and on, as sessions do.
            let parent = if *parent > 30 { at as u32 } else if *parent < id { *parent } else { at as u32 };
            text.push_str(&user(id, (parent > 0).then_some(parent)));
        }
        let mut scene = Scene::new(HEADER);
        let mut rest = text.as_bytes();
        for (length, is_quiet) in cuts {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            scene.append(piece);
            rest = after;
            let taken = scene.look(QUIET * u32::from(is_quiet));
            let taken = if is_quiet { scene.look(QUIET) } else { taken };
            prop_assert_eq!(taken, scene.branch());
        }
        scene.append(rest);
        prop_assert_eq!(scene.look(Duration::ZERO), scene.branch());
        prop_assert_eq!(scene.tail.index().entries().len(), parents.len());
    }
}
