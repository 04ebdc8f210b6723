//! Chiefs and leads that are killed between any two system calls, and what the next start makes of it:
//! nothing anyone sent is lost or doubled, and nothing of a dead process of ours is left lying about.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headman::chief::journal::Journal;
use headman::chief::lease::{Lease, Place};
use headman::console::drafts;
use headman::contract::{Claim, Kind, Message, PendingAsk, Pid, SessionId, Timestamp, Uuid, delivered};
use headman::demo::random::Random;
use headman::disk::records::{self, RecordError};
use headman::disk::{DiskError, crash, durable, inbox, sidecar};
use headman::lead::Coordination;
use headman::lead::session::SessionFile;
use rustix::io::Errno;

use crate::cli_support::until;
use crate::programs::{LEAD, Program, draft_key};
use crate::stage::{Post, Stage};
use crate::support::{below, copy_tree};

/// Cases that run at once: they mostly wait.
const AT_ONCE: usize = 8;

/// The post of the lead of all cases, and its session file.
fn post(stage: &Stage) -> Post {
    let post = stage.post(LEAD);
    let header = format!(
        r#"{{"type":"session","version":3,"id":"{LEAD}","timestamp":"2026-11-30T08:00:00.000Z","cwd":"/"}}"#
    );
    std::fs::write(&post.session_file, format!("{header}\n")).unwrap();
    post
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

const QUESTION: &str = "Ship it?";

fn ask() -> PendingAsk {
    let ask = Uuid::parse("7a1c0c1e-58a5-4d5f-9d3a-6f3f6d0e1b11").unwrap();
    PendingAsk { ask, question: QUESTION.into(), text: QUESTION.into() }
}

/// The session file that Herdr shows, which all cases share: whole lines, appended. Each lead keeps its
/// state and what was handed over in its case in one of its own.
struct Log {
    file: PathBuf,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Log {
    fn hand_over(&self, message: &Message) -> Result<(), DiskError> {
        let entry = serde_json::json!({"type": "custom_message",
            "customType": delivered::custom_type(message.kind), "content": delivered::content(message),
            "display": true, "details": {"id": message.id.to_string()}, "id": "0000000a", "parentId": null});
        let failed = |_| DiskError { operation: "append to", path: self.file.clone(), reason: Errno::IO };
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.file).map_err(failed)?;
        file.write_all(format!("{entry}\n").as_bytes()).map_err(failed)?;
        self.taken.lock().unwrap().push(message.text.to_str_lossy().into_owned());
        Ok(())
    }
}

/// The session file of one case, begun if it is not there, with that ask in it.
fn session_file(path: &Path, ask: Option<&PendingAsk>) -> SessionFile {
    let now = Timestamp::from_millis(1_796_043_600_000);
    if !path.exists() {
        SessionFile::create(path, &session(LEAD), &"/tmp".into(), now).unwrap();
    }
    let mut file = SessionFile::new(path, session(LEAD));
    let held = file.lock().unwrap();
    file.keep_state(&held, Uuid::random(), ask, now).unwrap();
    file
}

/// A lead on a thread of its own.
struct LeadThread {
    ends: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<String>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LeadThread {
    /// A lead with that ask, which tells the Chief something.
    fn start(stage: &Stage, home: &Path, post: &Post, pending_ask: Option<PendingAsk>) -> Self {
        let (opening, own) = (stage.opening(home, post), home.join("lead.jsonl"));
        let (ends, taken) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let log = Log { file: post.session_file.clone(), taken: Arc::clone(&taken) };
        let ending = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio.block_on(async {
                let file = session_file(&own, pending_ask.as_ref());
                let mut lead = Coordination::open(opening, file).unwrap();
                let mut told = false;
                while !ending.load(Ordering::SeqCst) {
                    // As soon as there is a Chief.
                    told = told || lead.tell("told by the lead").await.is_ok();
                    lead.drain(|received| log.hand_over(&received.message)).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                lead.close().unwrap();
            });
        });
        Self { ends, taken, thread: Some(thread) }
    }

    /// Withdraws; what it was given, in order.
    fn end(mut self) -> Vec<String> {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        self.taken.lock().unwrap().clone()
    }
}

impl Drop for LeadThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

/// The process id of nobody: one that ended and was waited for.
pub(crate) fn dead_pid() -> Pid {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    Pid::from_number(f64::from(pid)).unwrap()
}

pub(crate) fn write_lock(directory: &Path, claim: Claim) {
    std::fs::create_dir(directory).unwrap();
    std::fs::write(directory.join(claim.file_name()), claim.to_bytes()).unwrap();
}

fn count<'a>(texts: impl IntoIterator<Item = &'a String>, text: &str) -> usize {
    texts.into_iter().filter(|it| *it == text).count()
}

fn received(journal: &Journal, text: &str) -> usize {
    journal.index().received().filter(|it| journal.text(it).unwrap() == text).count()
}

/// Runs `case` for each name, several at once.
fn for_each(names: &[&str], case: impl Fn(&str) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(name)));
                    if caught.is_err() {
                        failed.lock().unwrap().push((*name).to_owned());
                    }
                }
            });
        }
    });
    assert_eq!(failed.into_inner().unwrap(), [""; 0], "of {}", names.len());
}

/// What a killed Chief left, and besides everything else that one could have: the home every case
/// begins with.
struct Template {
    home: PathBuf,
    /// Of others: they stay for ever.
    foreign: Vec<PathBuf>,
}

impl Template {
    fn new(stage: &Stage, post: &Post) -> Self {
        let home = stage.home("template");
        let runtime = stage.runtime(&home);
        let lead = LeadThread::start(stage, &home, post, None);
        let setting = stage.chief_setting(&home, false);
        let mut chief = Program::chief(&setting, Some("send:published"));
        chief.hear("chief").unwrap();
        // Who withdraws takes nothing any more, and a record has to be there for what is sent.
        let record = records::read_lead(&runtime, &session(LEAD)).unwrap();
        assert_eq!(chief.does("mail 1").as_deref(), Some("1 1"));
        lead.end();
        records::write_lead(&runtime, &record).unwrap();
        chief.ask("message queued");
        chief.ended();
        let [lock] = &std::fs::read_dir(runtime.lock()).unwrap().collect::<Vec<_>>()[..] else { panic!() };
        let dead = lock.as_ref().unwrap().file_name();
        let dead =
            Claim::parse(&std::fs::read(lock.as_ref().unwrap().path()).unwrap(), dead.to_str().unwrap());
        let dead = dead.unwrap();
        let lease = records::read_descriptor(&runtime).unwrap().lease;
        // What bears its claim, in the inbox of a lead that is not here.
        let absent = runtime.inbox(&session("a lead that is not here"));
        std::fs::create_dir(absent.path()).unwrap();
        let [one, two, three] = [(); 3].map(|()| Uuid::random());
        std::fs::write(absent.temporary(one, dead.id), "{").unwrap();
        write_lock(&absent.lock(one), dead);
        write_lock(&durable::hidden(&absent.lock(two), dead.id, "tmp"), dead);
        std::fs::create_dir(durable::hidden(&absent.lock(three), dead.id, "stale")).unwrap();
        std::fs::write(durable::hidden(&runtime.descriptor(), dead.id, "tmp"), "{").unwrap();
        std::fs::create_dir(durable::hidden(&runtime.lock(), dead.id, "tmp")).unwrap();
        let identity = stage.state(&home).of_socket().join("identity.json");
        std::fs::write(durable::temporary(&identity, "tmp"), "{").unwrap();
        let segment =
            std::fs::read_dir(stage.state(&home).journal()).unwrap().next().unwrap().unwrap().path();
        std::fs::OpenOptions::new().append(true).open(segment).unwrap().write_all(b"{\"v\":1,\"se").unwrap();
        // In our own inbox: a message that came too late, with the lock of a dead sender, one that was
        // being removed, and a marker of one that was.
        let ours = stage.our_inbox(&home);
        let message = |text: &str| Message {
            id: Uuid::random(),
            lease,
            kind: Kind::LeadMessage,
            from: session(LEAD),
            to: stage.identity.session(),
            lead: session(LEAD),
            ask: None,
            text: text.into(),
            created_at: Timestamp::from_millis(1_796_000_000_000),
        };
        let late = message("too late");
        inbox::publish(stage.agent_dir(&home).path(), &ours, &late).unwrap();
        let stranger = || Claim { pid: dead_pid(), id: Uuid::random() };
        write_lock(&ours.lock(late.id), stranger());
        let half = message("half removed");
        std::fs::write(ours.cleanup(half.id), half.to_bytes().unwrap()).unwrap();
        for id in [half.id, Uuid::random()] {
            std::fs::write(ours.quarantine(id), "quarantined\n").unwrap();
        }
        std::fs::write(durable::temporary(&ours.quarantine(one), "tmp"), "").unwrap();
        // A claim of ours whose process lives: as in a state directory that was copied.
        let live = Uuid::random();
        let pid = stage.program.pid();
        let line = serde_json::json!({"v": 1, "claim": live.to_string(), "pid": pid,
            "start": sidecar::start_time(pid), "boot": null});
        let mut claims = std::fs::OpenOptions::new().append(true).open(stage.state(&home).sidecar()).unwrap();
        writeln!(claims, "{line}").unwrap();
        // Of others, dead or not.
        let foreign = [
            absent.temporary(two, live),
            absent.temporary(one, Uuid::random()),
            durable::temporary(&absent.lock(two), "tmp"),
            absent.cleanup(three),
            absent.lock(three),
            absent.quarantine(three),
            durable::temporary(&runtime.descriptor(), "tmp"),
            durable::temporary(&runtime.lock(), "stale"),
            ours.temporary(two, Uuid::random()),
            durable::temporary(&ours.lock(two), "tmp"),
        ];
        for path in &foreign {
            if path.file_name().unwrap().to_str().unwrap().contains("lock") {
                write_lock(path, stranger());
            } else {
                std::fs::write(path, "{").unwrap();
            }
        }
        let foreign = foreign.map(|path| path.strip_prefix(&home).unwrap().to_owned()).into();
        Self { home, foreign }
    }
}

/// What a Chief does in a case, in order; each line is begun when the one before is done.
const SCRIPT: [&str; 9] = [
    "mail 5",
    "draft hello",
    "message hello",
    "undraft hello",
    "reply yes",
    "settled",
    "quarantine",
    "leave",
    "become",
];

/// When a Chief is killed.
enum Kill {
    /// Where it reaches that point.
    At(String),
    /// That long after it was started.
    After(Duration),
}

/// Runs `cases` over a Herdr and what a killed Chief left.
async fn chiefs(cases: impl FnOnce(&(dyn Fn(&str, Kill) -> bool + Sync))) {
    let stage = Stage::new().await;
    let post = post(&stage);
    stage.list_lead(&post).await;
    tokio::task::block_in_place(|| {
        let template = Template::new(&stage, &post);
        cases(&|name, kill| kill_chief(&stage, &template, &post, name, kill));
    });
}

/// Every point that a Chief reaches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chief_killed_at_any_point_loses_and_doubles_nothing() {
    chiefs(|kill| {
        for_each(&points_of_a_chief(), |point| {
            assert!(kill(point, Kill::At(point.to_owned())), "never reached");
        });
    })
    .await;
}

/// The same for each time that a point is reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn a_chief_killed_at_any_point_for_the_nth_time_loses_and_doubles_nothing() {
    let killed = AtomicUsize::new(0);
    chiefs(|kill| {
        for_each(&points_of_a_chief(), |point| {
            let again = |nth: &usize| kill(&format!("{point}-{nth}"), Kill::At(format!("{point}:{nth}")));
            killed.fetch_add((2..20).take_while(again).count(), Ordering::SeqCst);
        });
    })
    .await;
    println!("{killed:?} killed");
}

/// The same a thousand times at no point in particular.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn a_chief_killed_at_any_moment_loses_and_doubles_nothing() {
    let names: Vec<String> = (0..1_000).map(|nth| nth.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let killed = AtomicUsize::new(0);
    chiefs(|kill| {
        for_each(&names, |name| {
            let micros = Random::new(3, name.parse().unwrap()).between(5_000, 600_000);
            killed.fetch_add(kill(name, Kill::After(Duration::from_micros(micros))).into(), Ordering::SeqCst);
        });
    })
    .await;
    println!("{killed:?} killed");
}

fn points_of_a_chief() -> Vec<&'static str> {
    crash::POINTS.iter().filter(|point| !point.starts_with("lead:")).copied().collect()
}

/// One case; whether the Chief was killed before it came to its end.
fn kill_chief(stage: &Stage, template: &Template, post: &Post, name: &str, kill: Kill) -> bool {
    let home = stage.directory.path().join(name.replace(':', "-"));
    copy_tree(&template.home, &home);
    let setting = stage.chief_setting(&home, false);
    let lead = LeadThread::start(stage, &home, post, Some(ask()));
    let (point, after) = match kill {
        Kill::At(point) => (Some(point), None),
        Kill::After(after) => (None, Some(after)),
    };
    let mut killed = Program::chief(&setting, point.as_deref());
    // What it got to tell that it did.
    let done: Vec<&str> = std::thread::scope(|scope| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(killed.pid()).unwrap()).unwrap();
        // Nobody waits for the process meanwhile, so that no other has its id.
        scope.spawn(move || {
            if let Some(after) = after {
                std::thread::sleep(after);
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        });
        SCRIPT.into_iter().take_while(|line| killed.does(line).is_some()).collect()
    });
    let status = killed.ends();
    let was_killed = status.signal() == Some(9);
    assert!(was_killed || status.success(), "{status:?}");

    let mut next = Program::chief(&setting, None);
    for line in ["become", "mail 5", "settled"] {
        next.does(line).unwrap();
    }
    next.quit();
    let taken = lead.end();
    let journal = stage.journal(&home);
    let index = journal.index();
    assert_eq!(journal.damaged(), 0);

    // To the Chief: everything once.
    for text in [QUESTION, "told by the lead", "too late", "half removed"] {
        let expected = if text == "told by the lead" { 2 } else { 1 };
        assert_eq!(received(&journal, text), expected, "{text}: {:?}", index.received().collect::<Vec<_>>());
    }
    // To the lead: everything once that was said to be sent, and nothing twice.
    assert_eq!(count(&taken, "queued"), 1, "{taken:?}");
    for (line, text) in [("message hello", "hello"), ("reply yes", "yes")] {
        let times = count(&taken, text);
        let journalled = index.sent().any(|entry| journal.message(entry).unwrap().text == text);
        assert_eq!(times, usize::from(journalled), "{text}: {taken:?}");
        assert!(journalled || !done.contains(&line), "{text}");
    }
    // A draft is kept until it is sent.
    let kept = drafts::load_all(&stage.state(&home).drafts());
    assert_eq!(kept.skipped, [""; 0]);
    let has_draft = kept.drafts.iter().any(|draft| draft.key() == draft_key() && draft.text == "hello");
    if done.contains(&"draft hello") && !done.contains(&"undraft hello") {
        assert!(has_draft || count(&taken, "hello") == 1);
    }
    assert!(!done.contains(&"undraft hello") || !has_draft);
    nothing_is_left(stage, template, &home);
    was_killed
}

/// Whatever is hidden, marked or locked is of others.
fn nothing_is_left(stage: &Stage, template: &Template, home: &Path) {
    let left: BTreeSet<PathBuf> = (below(home).into_iter())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_claim = path
                .parent()
                .unwrap()
                .extension()
                .is_some_and(|it| it == "lock" || it == "stale" || it == "tmp");
            name.starts_with('.') || name.ends_with(".lock") || name.ends_with(".quarantine") && !is_claim
        })
        .collect();
    let foreign: BTreeSet<PathBuf> = template.foreign.iter().cloned().collect();
    let differ: Vec<_> = left.symmetric_difference(&foreign).collect();
    assert!(differ.is_empty(), "hidden, locked or marked: {differ:?}");
    let runtime = stage.runtime(home);
    assert!(!runtime.descriptor().exists());
    for inbox in [stage.our_inbox(home), runtime.inbox(&session(LEAD))] {
        assert_eq!(inbox::list(&inbox).unwrap(), [], "in an inbox");
    }
    assert!(
        matches!(records::read_lead(&runtime, &session(LEAD)), Err(error) if RecordError::is_missing(&error))
    );
}

/// Every point that a lead reaches, killed there and started again, while one Chief stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_killed_at_any_point_loses_and_doubles_nothing() {
    let stage = Stage::new().await;
    let is_a_leads =
        |point: &&&str| ["lead:", "ask:", "remove:", "marker:"].iter().any(|of| point.starts_with(of));
    // The lock of a dead process on a message: nothing that this lead takes has one.
    let points = crash::POINTS.iter().filter(is_a_leads).filter(|point| !point.contains(":stale_"));
    let points: Vec<&str> = points.copied().collect();
    let posts: Vec<Post> = points.iter().map(|_| stage.post(&Uuid::random().to_string())).collect();
    tokio::task::block_in_place(|| {
        for_each(&points, |point| {
            let at = points.iter().position(|it| *it == point).unwrap();
            kill_lead(&stage, &posts[at], point);
        });
    });
}

fn kill_lead(stage: &Stage, post: &Post, point: &str) {
    let home = stage.home(&point.replace(':', "-"));
    let (runtime, setting) = (stage.runtime(&home), stage.lead_setting(&home, post));
    let lead = &post.session;
    // While it asks, a Chief stands that does nothing, and so does not come first with the ask.
    let place = Place {
        pane: stage.chief.pane.as_str().into(),
        tab: stage.chief.tab.as_str().into(),
        workspace: stage.chief.workspace.as_str().into(),
    };
    let (us, now) = (stage.identity.session(), Timestamp::from_millis(1));
    let (data_root, flock) = (stage.agent_dir(&home).data_root(), home.join("idle.flock"));
    let idle = Lease::claim(&runtime, &data_root, &flock, &us, &place, now).unwrap();
    let mut killed = Program::lead(&setting, Some(point));
    // By its file, which the lead begins.
    killed.hear("instance").unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(stage.list_lead(post));
    let asked = killed.does(&format!("ask {QUESTION}")).is_some();
    idle.release().unwrap();
    let mut restart = || {
        assert_eq!(killed.ended().signal(), Some(9), "never reached");
        let again = Program::lead(&setting, None);
        again.hear("instance").unwrap();
        again
    };
    let mut again = None;
    if !asked {
        again = Some(restart());
        assert!(records::read_lead(&runtime, lead).unwrap().pending_ask.is_some(), "what it asked is kept");
    }
    let mut chief = Program::chief(&stage.chief_setting(&home, false), None);
    chief.does("message hello").unwrap();
    chief.does("reply yes").unwrap();
    let mut again = again.unwrap_or_else(restart);
    chief.does("settled").unwrap();
    chief.quit();
    let inbox = runtime.inbox(lead);
    until("the inbox is empty", || inbox::list(&inbox).unwrap().is_empty());
    assert_eq!(records::read_lead(&runtime, lead).unwrap().pending_ask, None);
    let session_file = || std::fs::read_to_string(&setting.state).unwrap();
    again.quit();
    for text in ["hello", "yes"] {
        let whole = format!("to lead {}: {text}\"", setting.session);
        assert_eq!(session_file().matches(&whole).count(), 1, "{text}: {}", session_file());
    }
    let journal = stage.journal(&home);
    assert_eq!(received(&journal, QUESTION), 1, "{:?}", journal.index().received().collect::<Vec<_>>());
    // What it was removing is gone; what it never held is nobody's, and stays.
    let left = below(inbox.path());
    let was_never_held = |path: &PathBuf| path.to_str().unwrap().contains(".json.lock.");
    assert!(left.iter().all(was_never_held), "{left:?}");
}
