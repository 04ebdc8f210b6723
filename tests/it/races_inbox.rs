//! Several processes that write into one inbox, and several that take from it for one lead, killed at every
//! point of either: each message is handed over once.
//!
//! What makes it once is the lead's session file: who hands over holds its lock and has read what the
//! others wrote. The locks of messages keep a writer and a remover apart, no more.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use headman::contract::{Kind, Message, NativeId, SessionId, Timestamp, Uuid};
use headman::disk::inbox::{self, InboxError, Published};
use headman::disk::layout::InboxDir;
use headman::disk::{AgentDir, crash, durable};
use headman::lead::session::SessionFile;
use headman::lead::{About, Coordination, Opening, Place};
use serde::{Deserialize, Serialize};

use crate::programs::{Program, say, setting};
use crate::support::{below, directory_in_memory};

/// Processes of each kind at once.
const AT_ONCE: usize = 3;
/// Messages that may wait; a writer that finds more waits, too.
const FULL: usize = 64;
/// How often a point is passed before a process is killed there.
const PASSES: usize = 2;

const LEAD: &str = "the lead";
const SOCKET: &str = "socket";

/// Where a program is at home, and who it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Post {
    root: PathBuf,
    name: String,
}

impl Post {
    fn agent_dir(&self) -> AgentDir {
        AgentDir::resolve(Some(self.root.join("agent").as_os_str()), Path::new("/"))
    }

    fn inbox(&self) -> InboxDir {
        self.agent_dir().runtime(SOCKET.as_ref()).peer_inbox(&session(LEAD))
    }

    fn session_file(&self) -> SessionFile {
        SessionFile::new(&self.root.join("lead.jsonl"), session(LEAD))
    }

    fn open(&self) -> Coordination {
        let native = |id: &str| NativeId::new(id).unwrap();
        let opening = Opening {
            agent_dir: self.agent_dir(),
            socket: SOCKET.into(),
            place: Place { pane: native("p"), tab: native("t"), workspace: native("w") },
            about: About::default(),
        };
        Coordination::open(opening, self.session_file()).unwrap()
    }

    /// The message files that stand, but for those marked by who was killed as it removed them, where
    /// they are not `all` to be counted: they stand until the lead is opened again.
    fn standing(&self, all: bool) -> usize {
        let inbox = self.inbox();
        let names = durable::list(inbox.path()).unwrap();
        let ids = names.iter().filter_map(|name| InboxDir::message_id(name));
        ids.filter(|id| all || !inbox::is_quarantined(&inbox, *id)).count()
    }
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

/// Tells once standard input has ended.
fn input_ends() -> mpsc::Receiver<()> {
    let (ended, ends) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(ended);
    });
    ends
}

/// Whether it has, after at most that time.
fn has_ended(ends: &mpsc::Receiver<()>, at_most: Duration) -> bool {
    matches!(ends.recv_timeout(at_most), Err(mpsc::RecvTimeoutError::Disconnected))
}

/// Not a test: a process that writes one message after the other.
#[test]
#[ignore = "a program of other tests"]
fn writer_program() {
    let Some(post) = setting::<Post>() else { return };
    let (ends, inbox, agent_dir) = (input_ends(), post.inbox(), post.agent_dir());
    let us = session(&post.name);
    while !has_ended(&ends, Duration::ZERO) {
        if post.standing(false) >= FULL {
            // Looks again.
            has_ended(&ends, Duration::from_millis(2));
            continue;
        }
        let message = Message {
            id: Uuid::random(),
            lease: Uuid::random(),
            kind: Kind::PeerMessage,
            from: us.clone(),
            to: session(LEAD),
            lead: us.clone(),
            ask: None,
            text: "a message".into(),
            created_at: Timestamp::from_millis(1_796_000_000_000),
        };
        say(format_args!("begun {}", message.id));
        match inbox::publish(agent_dir.path(), &inbox, &message) {
            Ok(Published::New) => say(format_args!("written {}", message.id)),
            other => say(format_args!("no {other:?}")),
        }
    }
}

/// Not a test: a process that takes what came for the lead.
#[test]
#[ignore = "a program of other tests"]
fn taker_program() {
    let Some(post) = setting::<Post>() else { return };
    let ends = input_ends();
    let mut lead = Coordination::join(post.agent_dir(), SOCKET.into(), post.session_file()).unwrap();
    while !has_ended(&ends, Duration::from_millis(1)) {
        match lead.drain_peers(|_| Ok(())) {
            Ok(drain) => {
                let other = drain
                    .errors
                    .iter()
                    .find(|it| !matches!(it, InboxError::Lock(error) if error.is_occupied()));
                if let Some(error) = other {
                    say(format_args!("no {error}"));
                }
            }
            Err(error) => say(format_args!("no {error}")),
        }
    }
}

/// What writers said of their messages.
#[derive(Default)]
struct Said {
    begun: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl Said {
    /// Hears it until its end.
    fn hear(&mut self, writer: &Program) {
        while let Some(line) = writer.hear("") {
            match line.split_once(' ').unwrap() {
                ("begun", id) => self.begun.insert(id.to_owned()),
                ("written", id) => self.written.insert(id.to_owned()),
                other => panic!("{other:?}"),
            };
        }
    }
}

fn points<'a>(of: &'a [&'a str]) -> impl Iterator<Item = &'static str> + 'a {
    let points = crash::POINTS.iter().copied().filter(|point| of.iter().any(|of| point.starts_with(of)));
    // The lock of a dead process: whoever comes first recovers it.
    points.filter(|point| !point.contains(":stale_"))
}

/// Kills writers and takers at each of their points in turn, all of it `times`, several at once.
fn fight(times: usize) {
    let begun = Instant::now();
    let directory = directory_in_memory();
    let post = |name: &str| Post { root: directory.path().to_owned(), name: name.to_owned() };
    let ours = post("us");
    std::fs::create_dir(directory.path().join("agent")).unwrap();
    let now = Timestamp::from_millis(1_796_000_000_000);
    SessionFile::create(&directory.path().join("lead.jsonl"), &session(LEAD), &"/tmp".into(), now).unwrap();
    let lead = ours.open();
    lead.inboxes().unwrap();
    let repeat = |of: &[&str]| -> Vec<String> {
        let all = points(of).map(|point| format!("{point}:{PASSES}"));
        let all: Vec<String> = all.collect();
        all.iter().cycle().take(all.len() * times).cloned().collect()
    };
    let (write_points, take_points) = (repeat(&["publish:"]), repeat(&["remove:", "marker:"]));
    let (next_write, next_take) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = |name: &str, program: &str, at: Option<&str>| {
        let variables: Vec<_> = at.map(|at| (crash::VARIABLE, at)).into_iter().collect();
        Program::start(program, &post(name), &variables)
    };
    let mut said = Said::default();
    let (stop, stops) = mpsc::channel::<()>();
    let stops = std::sync::Mutex::new(stops);
    std::thread::scope(|scope| {
        let takers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(point) = take_points.get(next_take.fetch_add(1, Ordering::SeqCst)) {
                        let mut taker = start(LEAD, "races_inbox::taker_program", Some(point));
                        assert_eq!(taker.hear(""), None, "{point}");
                        assert_eq!(taker.ended().signal(), Some(9), "{point} is never reached");
                    }
                })
            })
            .collect();
        let (stops, next_write, write_points, start) = (&stops, &next_write, &write_points, &start);
        let writers: Vec<_> = (0..AT_ONCE)
            .map(|at| {
                scope.spawn(move || {
                    let (name, mut said) = (format!("writer {at}"), Said::default());
                    while let Some(point) = write_points.get(next_write.fetch_add(1, Ordering::SeqCst)) {
                        let mut writer = start(&name, "races_inbox::writer_program", Some(point));
                        said.hear(&writer);
                        assert_eq!(writer.ended().signal(), Some(9), "{point} is never reached");
                    }
                    // As long as there are takers to be killed.
                    let mut writer = start(&name, "races_inbox::writer_program", None);
                    assert!(stops.lock().is_ok_and(|it| it.recv().is_err()));
                    writer.quit();
                    said.hear(&writer);
                    said
                })
            })
            .collect();
        let taken: Vec<_> = takers.into_iter().map(|it| it.join()).collect();
        drop(stop);
        for writer in writers {
            let of_one = writer.join().unwrap();
            said.begun.extend(of_one.begun);
            said.written.extend(of_one.written);
        }
        assert!(taken.iter().all(Result::is_ok));
    });
    // Whoever opens it next finishes what the killed left.
    lead.close().unwrap();
    let mut lead = ours.open();
    while ours.standing(true) > 0 {
        let drain = lead.drain_peers(|_| Ok(())).unwrap();
        assert!(drain.errors.is_empty(), "{:?}", drain.errors);
    }
    lead.close().unwrap();
    let mut handed: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(directory.path().join("lead.jsonl")).unwrap().lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        if entry["type"] == "custom_message" {
            *handed.entry(entry["details"]["id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    let twice: Vec<_> = handed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "handed over more than once: {twice:?}");
    let lost: Vec<_> = said.written.iter().filter(|id| !handed.contains_key(*id)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert!(handed.keys().all(|id| said.begun.contains(id)), "nobody wrote it");
    let left = below(ours.inbox().path());
    let marked: Vec<_> = left.iter().filter(|path| path.to_str().unwrap().ends_with(".quarantine")).collect();
    assert!(marked.is_empty(), "{marked:?}");
    println!(
        "{} written, {} of them by killed writers' last act, {} handed over; {} writers and {} takers killed; {:?}",
        said.begun.len(),
        handed.len() - said.written.len(),
        handed.len(),
        write_points.len(),
        take_points.len(),
        begun.elapsed()
    );
}

#[test]
fn writers_and_takers_of_one_inbox_that_are_killed_lose_and_double_nothing() {
    fight(8);
}

#[test]
#[ignore = "takes a minute"]
fn writers_and_takers_of_one_inbox_that_are_killed_again_and_again_lose_and_double_nothing() {
    fight(40);
}
