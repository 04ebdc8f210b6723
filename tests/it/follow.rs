//! The sessions of leads, followed on a real disk with the system's own watcher.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headman::contract::SessionId;
use headman::disk::DiskThread;
use headman::fact::{self, Fact, FactReceiver, SessionRead};
use headman::pi::activity::Activity;
use headman::signals::detect::Signal;
use headman::signals::sight::Sight;
use headman::source::sessions::{self, Followed};
use headman::source::watch::Noticing;
use notify::event::{AccessKind, EventKind};
use notify::{RecursiveMode, Watcher};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::signals::{Did, session_file};
use crate::support::DEADLINE;

struct Scene {
    dir: tempfile::TempDir,
    wanted: watch::Sender<Vec<Followed>>,
    received: FactReceiver,
    task: JoinHandle<()>,
    read: BTreeMap<String, Arc<SessionRead>>,
    sights: BTreeMap<String, Arc<Sight>>,
    facts: usize,
}

impl Scene {
    fn start(notified: bool) -> Self {
        let (facts, received) = fact::channel();
        let (wanted, seen) = watch::channel(Vec::new());
        let reader = DiskThread::named("sessions").unwrap();
        let task = tokio::spawn(sessions::run(Noticing::new(notified), reader, facts, seen));
        let dir = tempfile::tempdir().unwrap();
        Self { dir, wanted, received, task, read: BTreeMap::new(), sights: BTreeMap::new(), facts: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn follow(&self, leads: &[(&str, &Path)]) {
        let of = |(session, file): &(&str, &Path)| followed(session, file);
        self.wanted.send_replace(leads.iter().map(of).collect());
    }

    fn take(&mut self) {
        for fact in self.received.take() {
            self.facts += 1;
            let name = |session: SessionId| session.as_untrusted().to_str_lossy().into_owned();
            match fact {
                Fact::Activity(session, read) => drop(self.read.insert(name(session), read)),
                Fact::Signals(session, sight) => drop(self.sights.insert(name(session), sight)),
                fact => panic!("{fact:?}"),
            }
        }
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.take();
            if holds(self) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}: {:?}", self.read);
            let _ = tokio::time::timeout(left, self.received.ready()).await;
        }
    }

    async fn told(&mut self, session: &str, text: &str) {
        let what = format!("{session} was told {text}");
        self.until(&what, |it| it.activity(session).is_some_and(|activity| told(activity) == text)).await;
    }

    async fn unread(&mut self, session: &str, why: &str) {
        let says = |read: &SessionRead| matches!(read, SessionRead::Unread(told) if told.contains(why));
        self.until(why, |it| it.read.get(session).is_some_and(|read| says(read))).await;
    }

    fn activity(&self, session: &str) -> Option<&Activity> {
        match &**self.read.get(session)? {
            SessionRead::Activity(activity) => Some(activity),
            SessionRead::Unread(_) => None,
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn followed(session: &str, file: &Path) -> Followed {
    Followed {
        session: SessionId::new(session).unwrap(),
        file: Some(file.to_owned()),
        works: false,
        is_known: true,
    }
}

fn told(activity: &Activity) -> String {
    activity.told.as_ref().map(|told| told.text.to_str_lossy().into_owned()).unwrap_or_default()
}

fn header(session: &str, cwd: &Path) -> String {
    format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{session}\",\"cwd\":\"{}\"}}\n", cwd.display())
}

fn user(text: &str) -> String {
    let message = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
    format!("{{\"type\":\"message\",\"id\":\"00000001\",\"parentId\":null,\"message\":{message}}}\n")
}

fn edit(path: &str) -> String {
    let now = jiff::Timestamp::now();
    let call = format!(
        "{{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"edit\",\"arguments\":{{\"path\":\"{path}\"}}}}"
    );
    format!(
        "{{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"timestamp\":\"{now}\",\"message\":{{\"role\":\"assistant\",\"content\":[{call}]}}}}\n"
    )
}

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn what_becomes_of_a_file_is_told() {
    let mut scene = Scene::start(true);
    let (one, cwd) = (scene.path("one.jsonl"), scene.path("work"));
    fs::write(&one, header("one", &cwd) + &user("first")).unwrap();
    scene.follow(&[("one", &one)]);
    scene.told("one", "first").await;
    append(&one, &user("second"));
    scene.told("one", "second").await;
    // In place, smaller.
    fs::write(&one, header("one", &cwd) + &user("3")).unwrap();
    scene.told("one", "3").await;
    // Another in its place.
    let other = scene.path("other");
    fs::write(&other, header("one", &cwd) + &user("fourth")).unwrap();
    fs::rename(&other, &one).unwrap();
    scene.told("one", "fourth").await;
    fs::remove_file(&one).unwrap();
    scene.unread("one", "is not there").await;
    fs::write(&one, header("one", &cwd) + &user("fifth")).unwrap();
    scene.told("one", "fifth").await;
    // Without its end, which does not come.
    append(&one, user("sixth").trim_end());
    scene.told("one", "sixth").await;
}

/// This takes the time between two looks.
#[tokio::test]
async fn what_becomes_of_a_file_is_found_where_the_system_tells_nothing() {
    let mut scene = Scene::start(false);
    let (one, cwd) = (scene.path("one.jsonl"), scene.path("work"));
    fs::write(&one, header("one", &cwd) + &user("first")).unwrap();
    scene.follow(&[("one", &one)]);
    scene.told("one", "first").await;
    append(&one, &user("second"));
    scene.told("one", "second").await;
}

#[tokio::test]
async fn what_is_no_session_of_the_lead_says_why_and_is_taken_up_when_it_is() {
    let mut scene = Scene::start(true);
    let dir = scene.path("d");
    fs::create_dir(&dir).unwrap();
    let place = |name: &str| dir.join(name);
    let (pipe, link, other, empty, text, absent) =
        (place("pipe"), place("link"), place("other"), place("empty"), place("text"), place("absent"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    fs::write(&other, header("somebody", &dir) + &user("x")).unwrap();
    fs::write(&empty, "").unwrap();
    fs::write(&text, "no session at all\n{}\n").unwrap();
    let mut leads: Vec<_> = [
        ("pipe", &pipe),
        ("link", &link),
        ("other", &other),
        ("empty", &empty),
        ("text", &text),
        ("absent", &absent),
    ]
    .map(|(session, file)| followed(session, file))
    .into();
    leads.push(Followed { file: None, is_known: false, ..followed("none", &pipe) });
    scene.wanted.send_replace(leads);
    scene.unread("pipe", "a pipe, not a regular file").await;
    scene.unread("link", "a symbolic link").await;
    scene.unread("other", "of another session").await;
    scene.unread("empty", "is empty").await;
    scene.unread("text", "has no header").await;
    scene.unread("absent", "is not there").await;
    scene.unread("none", "Herdr names no session file").await;
    for (session, file) in [("empty", &empty), ("absent", &absent), ("other", &other), ("text", &text)] {
        let new = dir.join("new");
        fs::write(&new, header(session, &dir) + &user(session)).unwrap();
        fs::rename(&new, file).unwrap();
        scene.told(session, session).await;
    }
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, header("pipe", &dir) + &user("a file by now")).unwrap();
    scene.told("pipe", "a file by now").await;
}

/// The directory goes with the file, and both come again.
#[tokio::test]
async fn a_directory_that_goes_and_comes_is_watched_again() {
    let mut scene = Scene::start(true);
    let dir = scene.path("d");
    let file = dir.join("one.jsonl");
    scene.follow(&[("one", &file)]);
    scene.unread("one", "is not there").await;
    for round in ["first", "second"] {
        let new = scene.path("new");
        fs::create_dir(&new).unwrap();
        fs::write(new.join("one.jsonl"), header("one", &dir) + &user(round)).unwrap();
        fs::rename(&new, &dir).unwrap();
        scene.told("one", round).await;
        append(&file, &user("more"));
        scene.told("one", "more").await;
        fs::rename(&dir, scene.path(round)).unwrap();
        scene.unread("one", "is not there").await;
    }
}

#[tokio::test]
async fn who_is_followed_no_more_tells_nothing_and_who_is_asked_for_again_is_told_again() {
    let mut scene = Scene::start(true);
    let (one, two) = (scene.path("one"), scene.path("two"));
    fs::write(&one, header("one", &two) + &user("1")).unwrap();
    fs::write(&two, header("two", &two) + &user("2")).unwrap();
    scene.follow(&[("one", &one), ("two", &two)]);
    scene.told("one", "1").await;
    scene.told("two", "2").await;
    scene.follow(&[("two", &two)]);
    append(&one, &user("more"));
    append(&two, &user("more"));
    scene.told("two", "more").await;
    assert_eq!(told(scene.activity("one").unwrap()), "1");
    // It is listed anew: what was known of it is nobody's, and what it did meanwhile is known.
    scene.follow(&[("one", &one), ("two", &two)]);
    scene.told("one", "more").await;
    // Whoever says that nothing is known of it is told without a look.
    scene.read.clear();
    scene.wanted.send_replace(vec![Followed { is_known: false, ..followed("two", &two) }]);
    scene.told("two", "more").await;
    // Another file of the same lead, and then none.
    let other = scene.path("other");
    fs::write(&other, header("two", &two) + &user("other")).unwrap();
    scene.follow(&[("two", &other)]);
    scene.told("two", "other").await;
    scene.wanted.send_replace(vec![Followed { file: None, ..followed("two", &two) }]);
    scene.unread("two", "Herdr names no session file").await;
}

/// Long files don't hold up short ones, the newest is read first, and of each only what is needed.
#[tokio::test]
async fn long_sessions_are_read_from_their_end_and_hold_up_nobody() {
    let mut scene = Scene::start(true);
    let long = scene.path("long");
    let mut content = header("long", &long) + &user("begun");
    let padding = format!(
        "{{\"type\":\"message\",\"id\":\"00000003\",\"parentId\":\"00000001\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}\n",
        "x".repeat(100_000)
    );
    content.push_str(&padding);
    let more = padding.replace("parentId\":\"00000001", "parentId\":\"00000003");
    (0..30).for_each(|_| content.push_str(&more));
    fs::write(&long, &content).unwrap();
    // The turn began three megabytes before the end: its window becomes wider until that is seen.
    scene.follow(&[("long", &long)]);
    scene.told("long", "begun").await;
    assert!(scene.activity("long").unwrap().is_whole);
    // One whose turn began earlier than is read: what is there is told.
    let longer = scene.path("longer");
    fs::write(&longer, header("longer", &longer) + &user("begun") + &padding + &more.repeat(200)).unwrap();
    scene.follow(&[("longer", &longer)]);
    scene.until("what the end says", |it| it.activity("longer").is_some_and(|it| it.said.is_some())).await;
    append(&longer, &user("now"));
    scene.told("longer", "now").await;
}

#[tokio::test]
async fn files_are_where_their_links_lead() {
    let mut scene = Scene::start(true);
    let (real, link, file) = (scene.path("real"), scene.path("link"), scene.path("s"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    fs::write(real.join("a"), "").unwrap();
    std::os::unix::fs::symlink(real.join("a"), real.join("b")).unwrap();
    fs::write(&file, header("s", &link) + &user("x")).unwrap();
    scene.follow(&[("s", &file)]);
    scene.told("s", "x").await;
    let canonical = fs::canonicalize(&real).unwrap();
    // A link; one that is not there, in a directory that is; one in none.
    for (path, found) in
        [("b", canonical.join("a")), ("new", canonical.join("new")), ("no/where", link.join("no/where"))]
    {
        append(&file, &edit(path));
        let (path, found) = (link.join(path), found.to_str().unwrap().to_owned());
        scene
            .until(&found, |it| {
                let touched = it.activity("s").and_then(|activity| activity.files.first());
                touched.is_some_and(|touched| {
                    touched.path == path.to_str().unwrap() && touched.real == Some(found.as_str().into())
                })
            })
            .await;
    }
}

#[tokio::test]
async fn a_loop_is_told_with_its_entries_and_made_anew_on_another_branch() {
    let mut scene = Scene::start(true);
    let (file, session) = (scene.path("s.jsonl"), "s-1");
    let same = || vec![Did::bash("make", "no rule", true)];
    let content = session_file(&[same(), same(), same()], "do it", None);
    fs::write(&file, &content).unwrap();
    scene.follow(&[(session, &file)]);
    let fired = |it: &Scene| it.sights.get(session).and_then(|sight| sight.fired).map(|it| it.signal);
    scene.until("the loop", |it| fired(it) == Some(Signal::Loop)).await;
    let sight = Arc::clone(&scene.sights[session]);
    let entries: Vec<&str> = sight.rounds.iter().map(|round| round.entry.as_str()).collect();
    assert_eq!(entries, ["00000001", "00000003", "00000005"]);
    for round in &sight.rounds {
        let line = content[round.offset as usize..].lines().next().unwrap();
        assert!(line.contains(&format!("\"id\":\"{}\"", round.entry)), "{line}");
    }
    // Of another branch none of it is known, and all of it once it is this one again.
    let entry = |id: &str, parent: &str| {
        let message = "{\"role\":\"assistant\",\"content\":\"hm\"}";
        format!("{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"message\":{message}}}\n")
    };
    append(&file, &entry("0000000a", "00000000"));
    scene
        .until("the other branch", |it| it.sights[session].last_round.is_none() && fired(it).is_none())
        .await;
    append(&file, &entry("0000000b", "00000006"));
    scene.until("the branch again", |it| fired(it) == Some(Signal::Loop)).await;
    // What can't be read shows nothing, and what is there again is told again.
    fs::remove_file(&file).unwrap();
    scene.unread(session, "is not there").await;
    scene.sights.clear();
    fs::write(&file, &content).unwrap();
    scene.until("it again", |it| it.sights.get(session).is_some_and(|sight| sight.fired.is_some())).await;
}

/// Counted from outside: the system tells of each file that is opened.
#[tokio::test]
async fn two_hundred_idle_leads_cost_nothing() {
    let mut scene = Scene::start(true);
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let EventKind::Access(AccessKind::Open(_)) = event.unwrap().kind {
            count.fetch_add(1, Ordering::Relaxed);
        }
    })
    .unwrap();
    let mut leads = Vec::new();
    for at in 0..200 {
        let (dir, session) = (scene.path(&format!("d{}", at % 20)), format!("s{at}"));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join(&session);
        fs::write(&file, header(&session, &dir) + &user("x")).unwrap();
        leads.push(followed(&session, &file));
    }
    watcher.watch(scene.dir.path(), RecursiveMode::Recursive).unwrap();
    scene.wanted.send_replace(leads.clone());
    scene.until("all of them", |it| it.read.len() == 200).await;
    let first = leads[0].file.clone().unwrap();
    let seen = Arc::clone(&opened);
    // What was told of is over once this is.
    let settled = async |scene: &mut Scene, text: &str| {
        append(&first, &user(text));
        scene.told("s0", text).await;
        let end = Instant::now() + DEADLINE;
        let mut last = usize::MAX;
        while std::mem::replace(&mut last, seen.load(Ordering::Relaxed)) != last {
            assert!(Instant::now() < end, "files are opened again and again");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    settled(&mut scene, "settled").await;
    let (before, facts) = (opened.load(Ordering::Relaxed), scene.facts);
    assert!(before >= 200, "{before}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.take();
    assert_eq!((opened.load(Ordering::Relaxed), scene.facts), (before, facts), "while nothing changed");
    // The same leads again are no change, and one that changes is the only one that is opened.
    scene.wanted.send_replace(leads);
    settled(&mut scene, "again").await;
    let (after, told) = (opened.load(Ordering::Relaxed), scene.facts);
    assert!(after - before <= 4 && told - facts <= 2, "{} opened, {} told", after - before, told - facts);
}
