//! The transcript on the screen: what is drawn of real sessions, what keys do, and what is said when a
//! file is not what it should be. The reader is driven step by step, on files that change meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::console::app::{App, Effect};
use headman::console::view::transcript::Place;
use headman::contract::{SessionId, Untrusted};
use headman::fact::{Fact, Reading, SessionFile};
use headman::herd::inventory::Inventory;
use headman::pi::session::read_header;
use headman::source;
use headman::source::transcript::Reader;
use notify::Watcher;
use tokio::sync::watch;

use crate::demo_console::{self, Served, headman};
use crate::pty::Harness;
use crate::screens::{app, at, press, shown};
use crate::support::until;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
pub(crate) const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";
/// Steps until everything is read; each reads megabytes.
const STEPS: usize = 200;

pub(crate) fn file(path: &Path, session: &str) -> SessionFile {
    SessionFile { path: path.to_str().unwrap().into(), session: SessionId::new(session).unwrap() }
}

fn entry(id: u32, message: &str) -> String {
    let parent = match id {
        1 => "null".to_owned(),
        _ => format!("\"{:08x}\"", id - 1),
    };
    format!("{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent},\"message\":{message}}}\n")
}

pub(crate) fn user(id: u32, text: &str) -> String {
    entry(id, &serde_json::json!({"role": "user", "content": text}).to_string())
}

fn result(id: u32, text: &str) -> String {
    entry(
        id,
        &serde_json::json!({"role": "toolResult", "toolName": "bash", "isError": false,
            "content": [{"type": "text", "text": text}]})
        .to_string(),
    )
}

/// A console whose transcript is open, and what reads for it.
pub(crate) struct Scene {
    pub(crate) app: App,
    reader: Option<Reader>,
    now: Instant,
}

impl Scene {
    pub(crate) fn of(file: SessionFile) -> Self {
        Self::at(file, None)
    }

    fn at(file: SessionFile, place: Option<Place>) -> Self {
        let mut app = app();
        app.open_transcript(file, place);
        Self { app, reader: None, now: Instant::now() }
    }

    fn of_fixture(name: &str) -> Self {
        let path = Path::new(FIXTURES).join(name);
        let session = read_header(&path).unwrap().session;
        Self::of(SessionFile { path: path.to_str().unwrap().into(), session })
    }

    /// One step of the reading; says whether there is more, and whether anything was new.
    fn step(&mut self) -> (bool, bool) {
        let Some(wanted) = self.app.wanted() else { return (false, false) };
        let reader = match self.reader.take() {
            Some(reader) if *reader.file() == wanted.file => reader,
            _ => Reader::of(wanted.file.clone()),
        };
        let step = self.reader.insert(reader).step(&wanted, self.now);
        let is_news = step.news.is_some();
        if let Some(news) = step.news {
            self.app.facts(vec![Fact::Reading(Arc::new(news))], at(0));
        }
        (step.has_more, is_news)
    }

    /// Reads until nothing is new.
    pub(crate) fn read(&mut self) {
        for _ in 0..STEPS {
            if self.step() == (false, false) {
                return;
            }
        }
        panic!("it never ends");
    }

    /// The screen with everything read that it needs.
    pub(crate) fn screen(&mut self, width: u16, height: u16) -> String {
        self.read();
        shown(&self.app, width, height, at(0));
        self.read();
        shown(&self.app, width, height, at(0))
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            press(&mut self.app, &key.to_string(), at(0));
            self.read();
        }
    }

    fn control(&mut self, key: char) {
        self.app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL), at(0));
        self.read();
    }

    fn after(&mut self, time: Duration) {
        self.now += time;
    }

    fn copied(&mut self) -> Option<Untrusted> {
        self.read();
        self.app.take_effects().into_iter().find_map(|it| match it {
            Effect::Copy(text) => Some(text),
            _ => None,
        })
    }
}

fn scene(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf, Scene) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, content).unwrap();
    let scene = Scene::of(file(&path, "s-1"));
    (dir, path, scene)
}

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn cursor_row(screen: &str) -> &str {
    screen.lines().find(|line| line.contains('▸')).unwrap_or_default()
}

#[test]
fn the_screens_of_real_sessions() {
    for name in ["02-tools", "06-branch-tree", "10-unicode", "05b-compaction-auto-x2-plus-manual"] {
        let mut scene = Scene::of_fixture(&format!("{name}.jsonl"));
        for (width, height) in [(120, 40), (60, 30)] {
            let screen = scene.screen(width, height);
            insta::assert_snapshot!(format!("transcript_{name}_{width}x{height}"), screen);
        }
        scene.keys("gg");
        insta::assert_snapshot!(format!("transcript_{name}_beginning"), scene.screen(100, 30));
    }
    let mut scene = Scene::of_fixture("06-branch-tree.jsonl");
    scene.keys("b");
    insta::assert_snapshot!("transcript_branches", scene.screen(100, 20));
    for name in [
        "09-errors",
        "13-user-bash",
        "15-image",
        "12-custom-entries",
        "30-v1-pi-0.13.2",
        "20b-torn-then-same-writer",
    ] {
        let mut scene = Scene::of_fixture(&format!("{name}.jsonl"));
        insta::assert_snapshot!(format!("transcript_{name}"), scene.screen(90, 40));
    }
}

#[test]
fn results_are_folded_and_unfold_whole_and_verbatim() {
    let lines: Vec<String> = (1..=40).map(|nth| format!("line {nth}  with\ttab")).collect();
    let text = lines.join("\n");
    let (_dir, _path, mut scene) = scene(format!("{HEADER}{}{}", user(1, "run it"), result(2, &text)));
    let screen = scene.screen(80, 60);
    assert!(
        screen.contains("line 3 ") && screen.contains("line 40") && !screen.contains("line 20"),
        "{screen}"
    );
    assert!(screen.contains("… 35 more lines"), "{screen}");
    scene.keys("\n");
    let screen = scene.screen(80, 60);
    assert!((1..=40).all(|nth| screen.contains(&format!("line {nth}  with"))), "{screen}");
    assert!(cursor_row(&screen).contains("result bash"), "{screen}");
    scene.keys("\n");
    assert!(!scene.screen(80, 60).contains("line 20"));
    // Copied is all of it, as it was written.
    scene.keys("y");
    assert_eq!(scene.copied(), Some(text.as_str().into()));
    // What was thought is hidden until it is asked for.
    let thought = serde_json::json!({"role": "assistant", "model": "m", "content": [
        {"type": "thinking", "thinking": "secretly"}, {"type": "text", "text": "openly"}]});
    let (_dir, _path, mut scene) = self::scene(format!("{HEADER}{}", entry(1, &thought.to_string())));
    assert!(!scene.screen(80, 24).contains("secretly"));
    scene.keys("T");
    assert!(scene.screen(80, 24).contains("secretly"));
    scene.keys("T");
    let screen = scene.screen(80, 24);
    assert!(!screen.contains("secretly") && screen.contains("openly"));
}

#[test]
fn it_follows_at_the_end_and_stays_where_one_looks() {
    let lines: String = (1..=100).map(|id| user(id, &format!("message {id}."))).collect();
    let (_dir, path, mut scene) = scene(format!("{HEADER}{lines}"));
    assert!(scene.screen(80, 24).contains("message 100."));
    append(&path, &user(101, "message 101."));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("message 101.") && cursor_row(&screen).contains("message 101."), "{screen}");
    // A line that is not complete is nothing yet, and counts after a quiet second.
    append(&path, user(102, "message 102.").trim_end());
    assert!(!scene.screen(80, 24).contains("message 102."));
    scene.after(Duration::from_secs(1));
    assert!(scene.screen(80, 24).contains("message 102."));
    append(&path, "\n");
    scene.control('u');
    scene.control('u');
    let before = scene.screen(80, 24);
    append(&path, &format!("{}{}", user(103, "message 103."), user(104, "message 104.")));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("2 new below ↓"), "{screen}");
    let rows = |screen: &str| screen.lines().skip(4).take(16).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&screen), rows(&before));
    scene.keys("G");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("message 104.") && !screen.contains("new below"), "{screen}");
    // Up and down again is at the end again.
    scene.keys("kkjj");
    append(&path, &user(105, "message 105."));
    assert!(scene.screen(80, 24).contains("message 105."));
    scene.keys("gg");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("message 1.") && cursor_row(&screen).trim().len() > 4, "{screen}");
}

#[test]
fn turns_errors_and_matches_are_gone_to() {
    let mut lines = String::new();
    for turn in 0..30_u32 {
        lines += &user(3 * turn + 1, &format!("Turn {turn}: Token here"));
        let is_error = turn == 10 || turn == 20;
        let message = serde_json::json!({"role": "toolResult", "toolName": "bash", "isError": is_error,
            "content": format!("a\nb\nc\nd\nhidden token {turn}\nf\ng\nh\ni\nj\nk")});
        lines += &entry(3 * turn + 2, &message.to_string());
        lines += &user(3 * turn + 3, "more");
    }
    let (_dir, _path, mut scene) = scene(format!("{HEADER}{lines}"));
    scene.screen(80, 24);
    scene.keys("[");
    assert!(cursor_row(&scene.screen(80, 24)).contains("user"));
    scene.keys("{");
    let screen = scene.screen(80, 24);
    assert!(cursor_row(&screen).contains("result error bash") && screen.contains("Turn 21"), "{screen}");
    scene.keys("{{");
    assert!(scene.screen(80, 24).contains("There is none further up."));
    scene.keys("}");
    assert!(scene.screen(80, 24).contains("Turn 21"));
    scene.keys("]");
    assert!(cursor_row(&scene.screen(80, 24)).contains("user"));
    // Small letters find capitals, too; also what is folded away.
    scene.keys("G/token\n");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("/ token  60 of 60 matches"), "{screen}");
    assert!(cursor_row(&screen).contains("hidden token 29"), "it is unfolded: {screen}");
    scene.keys("N");
    let screen = scene.screen(80, 24);
    assert!(cursor_row(&screen).contains("Turn 29: Token") && screen.contains("59 of 60"), "{screen}");
    scene.keys("nn");
    let screen = scene.screen(80, 24);
    assert!(
        cursor_row(&screen).contains("Turn 0: Token") && screen.contains("1 of 60"),
        "over the end: {screen}"
    );
    scene.keys("N");
    assert!(scene.screen(80, 24).contains("60 of 60"));
    scene.keys("\u{1b}");
    assert!(!scene.screen(80, 24).contains("matches"));
    scene.keys("/Token\n");
    assert!(scene.screen(80, 24).contains("30 of 30 matches"), "capitals find themselves only");
    scene.keys("\u{1b}/nowhere\nn");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("It stands nowhere here.") && screen.contains("0 matches"), "{screen}");
    scene.keys("\u{1b}n");
    assert!(scene.screen(80, 24).contains("Nothing is searched for."));
}

#[test]
fn other_branches_are_listed_shown_and_left() {
    let mut scene = Scene::of_fixture("06-branch-tree.jsonl");
    let latest = scene.screen(100, 30);
    scene.keys("bj\n");
    let other = scene.screen(100, 30);
    assert!(other.contains("Not the branch that the session is on: b lists them."), "{other}");
    assert!(other != latest);
    scene.keys("\u{1b}");
    assert_eq!(scene.screen(100, 30), latest);
    scene.keys("b\u{1b}");
    assert_eq!(scene.screen(100, 30), latest);
    scene.keys("\u{1b}");
    assert!(scene.app.layers.is_empty());
}

#[test]
fn it_opens_at_any_entry_on_the_newest_branch_that_holds_it() {
    let other = "{\"type\":\"message\",\"id\":\"0000ffff\",\"parentId\":\"00000002\",\"message\":{\"role\":\"user\",\"content\":\"left behind\"}}\n";
    let lines: String = (1..=60).map(|id| user(id, &format!("message {id}."))).collect();
    let (_dir, path, _) = scene(format!(
        "{HEADER}{}{other}{}",
        user(1, "a") + &user(2, "b"),
        &lines[lines
            .find("message 3.")
            .map_or(0, |_| { user(1, "message 1.").len() + user(2, "message 2.").len() })..]
    ));
    let text = fs::read_to_string(&path).unwrap();
    let offset = |what: &str| {
        let at = text.find(what).unwrap();
        text[..at].rfind('\n').map_or(0, |it| it + 1) as u64
    };
    let mut scene = Scene::at(file(&path, "s-1"), Some(Place { offset: offset("left behind") }));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("left behind") && !screen.contains("message 3."), "{screen}");
    assert!(screen.contains("Not the branch that the session is on"), "{screen}");
    let mut scene = Scene::at(file(&path, "s-1"), Some(Place { offset: offset("message 30.") }));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("message 30.") && !screen.contains("message 60."), "{screen}");
    assert!(!screen.contains("Not the branch"), "{screen}");
    scene.keys("\u{1b}");
    assert!(scene.app.layers.is_empty(), "back to whoever opened it");
}

#[test]
fn what_is_no_session_file_is_said_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut scene = Scene::of(file(&path, "s-1"));
    let says = |scene: &mut Scene, what: &str| {
        let screen = scene.screen(200, 24);
        assert!(screen.contains(what), "{what}: {screen}");
    };
    says(&mut scene, "Not read: the session file is not there. It appears with the session's first message.");
    fs::create_dir(&path).unwrap();
    says(&mut scene, "Not read: the session file is a directory, not a regular file.");
    fs::remove_dir(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    says(&mut scene, "Not read: the session file is a pipe, not a regular file.");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    says(&mut scene, "a symbolic link");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    says(&mut scene, "Not read: the session file is empty.");
    fs::write(&path, "hello\nworld\n").unwrap();
    says(&mut scene, "Not read: the session file has no header: no line of it is JSON.");
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("{}{}", HEADER.replace("s-1", "s-2"), user(1, "another's"))).unwrap();
    says(&mut scene, "Not read: the session file is of another session.");
    assert!(!scene.screen(200, 24).contains("another's"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("{HEADER}{}torn\n", user(1, "ours again"))).unwrap();
    says(&mut scene, "ours again");
    says(&mut scene, "1 bad line");
    assert!(!scene.screen(200, 24).contains("Not read"));
    // Gone while it is read: what was seen stays, and goes on when it comes back.
    let content = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    says(
        &mut scene,
        "is not there. It appears with the session's first message. What you see is as it was before.",
    );
    says(&mut scene, "ours again");
    fs::write(&path, content).unwrap();
    append(&path, &user(2, "and on"));
    says(&mut scene, "and on");
    assert!(!scene.screen(200, 24).contains("as it was before"));
    // Written anew in place: first smaller, then another.
    fs::write(&path, HEADER).unwrap();
    says(&mut scene, "The file became smaller");
    scene.after(Duration::from_secs(2));
    says(&mut scene, "Nothing was said so far.");
    fs::write(&path, format!("{}{}", HEADER.replace(":3", ":4"), user(1, "newer"))).unwrap();
    says(&mut scene, "newer version 4: tried");
    if !rustix::process::geteuid().is_root() {
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        says(&mut scene, "can't be read");
    }
    // A lead without a file, as of an agent that is no Pi.
    let mut app = app();
    press(&mut app, "t", at(0));
    assert_eq!(app.wanted(), None);
    assert!(shown(&app, 80, 24, at(0)).contains("No session file of this lead is known"));
    press(&mut app, "t", at(0));
    assert!(app.layers.is_empty());
    app.facts(vec![Fact::Inventory(Arc::new(Inventory::default()))], at(0));
    press(&mut app, "t", at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("No lead is selected."));
}

#[test]
fn a_long_file_shows_its_end_first_and_no_more_is_kept_than_is_near() {
    let filling = "x".repeat(4_000);
    let mut content = HEADER.to_owned();
    for id in 1..=3_000 {
        content += &user(id, &format!("message {id}. {filling}"));
    }
    let (_dir, _path, mut scene) = scene(&content);
    assert_eq!(scene.step(), (true, true));
    let reader = scene.reader.as_ref().unwrap();
    assert_eq!(reader.bytes_read(), 0, "the index has not begun");
    let screen = shown(&scene.app, 80, 24, at(0));
    assert!(screen.contains("reading, 0 %"), "{screen}");
    scene.step();
    let read = scene.reader.as_ref().unwrap().bytes_read();
    assert!(read > 0 && read < 6 << 20, "a slice: {read}");
    let reading = |scene: &Scene| -> Arc<Reading> {
        let wanted = scene.app.wanted().unwrap();
        Arc::clone(scene.app.model.reading(&wanted.file).unwrap())
    };
    for keys in ["", "gg", "jjj", "G"] {
        scene.keys(keys);
        scene.screen(80, 24);
        let kept = reading(&scene).sheets.len();
        assert!(kept > 0 && kept < 120, "{keys:?}: {kept} texts");
    }
    assert_eq!(reading(&scene).items.len(), 3_000);
    // An entry too long to be read in passing is read when it is unfolded.
    let long = format!("{HEADER}{}{}", user(1, &"long ".repeat(400_000)), user(2, "end"));
    let (_dir, _path, mut scene) = self::scene(long);
    let screen = scene.screen(80, 24);
    assert!(screen.contains("[2.0 MB: unfolded it is read]"), "{screen}");
    scene.keys("[[\n");
    assert!(scene.screen(80, 24).contains("long long"));
}

/// Everything that tells whether a directory was changed.
fn listing(directory: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, i64, i64, u32)> {
    let entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    let stat = |path: &Path| {
        let it = fs::symlink_metadata(path).unwrap();
        (it.len(), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec(), it.mode())
    };
    entries.chain([directory.to_owned()]).map(|path| (path.clone(), stat(&path))).collect()
}

#[test]
fn nothing_is_written_and_no_neighbour_is_opened() {
    let lines: String = (1..=200).map(|id| user(id, &format!("token {id}"))).collect();
    let (dir, path, mut scene) = scene(format!("{HEADER}{lines}"));
    for neighbour in ["auth.json", "other.jsonl"] {
        fs::write(dir.path().join(neighbour), "{}").unwrap();
    }
    let before = listing(dir.path());
    let bytes = fs::read(&path).unwrap();
    let opened = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&opened);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        told.lock().unwrap().extend(event.unwrap().paths);
    })
    .unwrap();
    watcher.watch(dir.path(), notify::RecursiveMode::NonRecursive).unwrap();
    scene.screen(80, 24);
    scene.keys("ggj\n[]{}/token\nnN\u{1b}bj\n\u{1b}Ty");
    scene.screen(80, 24);
    scene.copied();
    // The watch tells of openings in order: once it tells of this one, it has told of all before.
    let last = dir.path().join("last");
    assert_eq!(listing(dir.path()), before);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    fs::write(&last, "").unwrap();
    let deadline = Instant::now() + crate::support::DEADLINE;
    while !opened.lock().unwrap().contains(&last) {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let opened = opened.lock().unwrap();
    assert!(opened.contains(&path), "the watch sees openings");
    assert!(opened.iter().all(|it| *it == path || *it == last || *it == dir.path()), "{opened:?}");
}

#[tokio::test]
async fn the_source_reads_only_what_is_wanted_and_keeps_up() {
    let (_dir, path, scene) = scene(format!("{HEADER}{}", user(1, "first")));
    let (facts, received) = headman::fact::channel();
    let (wants, wanted) = watch::channel(None);
    let task = tokio::spawn(source::transcript::run(facts, wanted));
    tokio::task::yield_now().await;
    assert!(received.take().is_empty(), "it read although nobody did");
    wants.send_replace(scene.app.wanted());
    let last = Mutex::new(None);
    let items = async |count: usize| {
        for fact in received.take() {
            if let Fact::Reading(reading) = fact {
                *last.lock().unwrap() = Some(reading);
            }
        }
        last.lock().unwrap().as_ref().is_some_and(|reading: &Arc<Reading>| reading.items.len() == count)
    };
    until("the first entry", async || items(1).await).await;
    for id in 2..=1_001 {
        append(&path, &user(id, "more"));
    }
    until("all of them", async || items(1_001).await).await;
    drop(wants);
    tokio::time::timeout(crate::support::DEADLINE, task).await.expect("it ends with the screen").unwrap();
}

#[test]
fn a_person_reads_searches_and_pages_in_a_terminal() {
    let home = demo_console::home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut environment = served.environment.clone();
    environment.push(("PAGER".to_owned(), "sh -c 'grep -c Rewrite; head -c1 < /dev/tty'".to_owned()));
    let mut terminal = Harness::start_in(headman(home.path(), &[], &environment), 120, 40);
    terminal.wait_for("the leads", |it| it.shows("NEEDS YOU"));
    demo_console::press(&mut terminal, "t", "the session", |it| {
        it.shows("Transcript (read only)") && it.shows("demo-large") && it.shows("Rewrite the session")
    });
    demo_console::press(&mut terminal, "e", "the pager, in an ordinary terminal", |it| {
        !it.screen.screen().alternate_screen()
            && it.is_cooked()
            && it.screen.screen().contents().contains("1")
    });
    demo_console::press(&mut terminal, "\r", "the screen again", |it| {
        it.screen.screen().alternate_screen() && it.shows("Transcript (read only)")
    });
    terminal.assert_taken();
    demo_console::press(&mut terminal, "\u{1b}", "the leads", |it| {
        it.shows("Leads") && !it.shows("Transcript")
    });
    demo_console::press(&mut terminal, "q", "anything", |_| true);
    assert!(terminal.finish().success());
    terminal.assert_given_back();
    let left = fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with("headman-page")).collect();
    assert_eq!(left, [""; 0], "the copy has no name by then");
}
