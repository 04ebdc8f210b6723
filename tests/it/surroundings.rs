//! Leads that are here and not ours to see are named, on the screen too, and nothing of theirs is
//! touched. What `doctor` says of them stands in `cli_doctor`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

use headman::chief::staff::Office;
use headman::contract::{LeadRecord, SessionId, Timestamp, Untrusted, Uuid};
use headman::disk::{DiskThread, Runtime, durable, inbox, records};
use headman::fact::{self, Fact};
use headman::herd::surroundings::{Elsewhere, Newer, Surroundings};
use headman::herdr::locate::{Located, Origin};
use headman::herdr::{Client, Snapshot};
use headman::source::surroundings;
use tokio::sync::watch;

use crate::cli_support::{DEADLINE, Herd, Place};
use crate::screens::{app, at, press, session, shown};

fn located(path: &OsStr) -> Located {
    Located { path: path.to_owned(), origin: Origin::Option }
}

fn publish(place: &Place, runtime: &Runtime, name: &str) {
    durable::ensure_directories(&place.path("home"), &runtime.leads()).unwrap();
    let record = LeadRecord {
        instance: Uuid::random(),
        session: session(name),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    records::write_lead(runtime, &record).unwrap();
}

#[test]
fn only_leads_that_herdr_shows_and_that_have_no_record_here_are_strayed() {
    let place = Place::new();
    let agent_dir = place.agent_dir();
    let socket = place.path("a/../h.sock");
    let runtime = agent_dir.runtime(socket.as_os_str());
    let plain = place.path("h.sock");
    let theirs = agent_dir.runtime(plain.as_os_str());
    let unknown = agent_dir.runtime("somewhere else".as_ref());
    for name in ["both", "strayed", "not shown", "zzz"] {
        publish(&place, &theirs, name);
    }
    publish(&place, &runtime, "both");
    publish(&place, &runtime, "ours");
    publish(&place, &unknown, "far");
    // A record that is none is no sign of a lead.
    let broken = unknown.lead(&session("broken"));
    durable::create(&broken, b"{}").unwrap();
    let shown: BTreeSet<SessionId> =
        ["both", "strayed", "ours", "far", "broken", "zzz", "nowhere"].map(session).into();
    let look = |env: &dyn Fn(&str) -> Option<std::ffi::OsString>| {
        surroundings::look(&agent_dir, &runtime, &session("chief"), &located(socket.as_os_str()), &shown, env)
    };
    let before = place.picture();
    let found = look(&|_| None);
    assert_eq!(found.newer, []);
    assert_eq!(found.elsewhere.len(), 2);
    let strayed = found.elsewhere.iter().find(|it| it.hash == theirs.hash()).unwrap();
    assert_eq!(strayed.sessions, [session("strayed"), session("zzz")]);
    assert_eq!(strayed.spelling, Some(plain.to_str().unwrap().into()));
    let far = found.elsewhere.iter().find(|it| it.hash == unknown.hash()).unwrap();
    assert_eq!((&far.sessions[..], &far.spelling), (&[session("far")][..], &None));
    // What the environment says is among the likely ones.
    let found = look(&|name| (name == "HERDR_SOCKET_PATH").then(|| "somewhere else".into()));
    assert!(found.elsewhere.iter().all(|it| it.spelling.is_some()));
    assert_eq!(place.picture(), before);
}

/// As many quarantined messages as a lead looks at at a time; in our own inbox they block nothing.
#[test]
fn an_inbox_that_quarantined_messages_block_is_named_and_not_touched() {
    let place = Place::new();
    let runtime = place.agent_dir().runtime("ours".as_ref());
    let quarantined = |of: &str, count: usize| {
        let inbox_dir = runtime.inbox(&session(of));
        durable::ensure_directories(&place.path("home"), inbox_dir.path()).unwrap();
        for nth in 0..count {
            let id = Uuid::random();
            durable::create(&inbox_dir.message(id), format!("message {nth}").as_bytes()).unwrap();
            inbox::quarantine(&inbox_dir, id).unwrap();
        }
        // Markers of what is gone, and what is not marked, block nothing.
        inbox::quarantine(&inbox_dir, Uuid::random()).unwrap();
        durable::create(&inbox_dir.message(Uuid::random()), b"message").unwrap();
    };
    for (of, count) in [("free", 31), ("blocked", 32), ("away", 40), ("chief", 50)] {
        quarantined(of, count);
    }
    let before = place.picture();
    let shown_ones: BTreeSet<SessionId> = ["free", "blocked"].map(session).into();
    let mut found = surroundings::blocked(&runtime, &session("chief"), &shown_ones);
    found.sort_by_key(|it| it.quarantined);
    assert_eq!(place.picture(), before);
    let told: Vec<_> = found.iter().map(|it| (it.session.clone(), it.quarantined)).collect();
    assert_eq!(told, [(Some(session("blocked")), 32), (None, 40)]);

    let mut app = app();
    let surroundings = Surroundings {
        socket: "/run/h.sock".into(),
        newer: Vec::new(),
        elsewhere: Vec::new(),
        blocked: found,
    };
    app.facts(vec![Fact::Surroundings(Arc::new(surroundings))], at(0));
    let screen = shown(&app, 120, 40, at(0));
    assert!(
        screen.contains("The inboxes of 2 leads are blocked by old quarantined messages: d says"),
        "{screen}"
    );
    press(&mut app, "d", at(0));
    let screen = shown(&app, 160, 40, at(0));
    assert!(
        screen.contains("The inbox of lead blocked is blocked, if that is a Pi: 32 quarantined records"),
        "{screen}"
    );
    assert!(screen.contains("The inbox of a lead that Herdr does not show"), "{screen}");
}

#[test]
fn a_newer_generation_is_counted_for_this_socket() {
    let place = Place::new();
    let agent_dir = place.agent_dir();
    let runtime = agent_dir.runtime("ours".as_ref());
    assert_eq!(surroundings::newer(&agent_dir, &runtime), []);
    let [supervision, peers] = agent_dir.newer_generations();
    let put = |directory: std::path::PathBuf, name: &str| {
        durable::ensure_directories(&place.path("home"), &directory).unwrap();
        durable::create(&directory.join(name), b"{\"version\":2}").unwrap();
    };
    put(supervision.join(runtime.hash()).join("leads"), "a.json");
    put(supervision.join("of another socket").join("leads"), "b.json");
    put(peers.join("peers"), "c.json");
    put(peers.join("peers"), "d.json");
    let newer = surroundings::newer(&agent_dir, &runtime);
    assert_eq!(newer.iter().map(|it| it.records).collect::<Vec<_>>(), [1, 2]);
    assert!(newer[0].directory.ends_with("supervision-v2") && newer[1].directory.ends_with("peers-v2"));
}

#[test]
fn the_console_says_so_above_everything_and_in_the_diagnostics() {
    let mut app = app();
    let told = |newer, elsewhere| {
        Fact::Surroundings(Arc::new(Surroundings {
            socket: "/run/h.sock".into(),
            newer,
            elsewhere,
            blocked: Vec::new(),
        }))
    };
    app.facts(vec![told(Vec::new(), Vec::new())], at(0));
    let quiet = shown(&app, 120, 40, at(0));
    let newer = Newer { directory: "/d/supervision-v2".to_owned(), records: 3 };
    let strayed = |count: usize, spelling: Option<&str>| Elsewhere {
        hash: "ab".repeat(32),
        sessions: (0..count).map(|at| session(&format!("s-{at}"))).collect(),
        spelling: spelling.map(Untrusted::from),
    };
    app.facts(vec![told(vec![newer.clone()], vec![strayed(2, Some("/tmp/\u{1b}[2Jh.sock"))])], at(0));
    insta::assert_snapshot!("surroundings_120x40", shown(&app, 120, 40, at(0)));
    insta::assert_snapshot!("surroundings_80x24", shown(&app, 80, 24, at(0)));
    press(&mut app, "d", at(0));
    insta::assert_snapshot!("surroundings_diagnostics_80x24", shown(&app, 80, 24, at(0)));

    // One, spelt nobody knows how; a directory without records is no lead.
    let empty = Newer { records: 0, ..newer };
    app.facts(vec![told(vec![empty], vec![strayed(1, None)])], at(1));
    let screen = shown(&app, 120, 40, at(1));
    assert!(screen.contains("1 live lead uses another spelling of this socket and is not"), "{screen}");
    assert!(!screen.contains("newer generation"), "{screen}");
    assert!(screen.contains("note /d/supervision-v2 belongs to a later release"), "{screen}");
    press(&mut app, "\u{1b}", at(1));
    app.facts(vec![told(Vec::new(), Vec::new())], at(2));
    assert_eq!(shown(&app, 120, 40, at(0)), quiet, "and is quiet again");
}

/// The source waits for what Herdr shows, and says everything once.
#[test]
fn the_source_tells_what_it_finds_once_herdr_was_seen() {
    let mut herd = Herd::new();
    herd.agent("strayed", "api", None);
    let agent_dir = herd.place.agent_dir();
    let socket = herd.place.path("./herdr.sock");
    let real = herd.server.socket().to_owned();
    let runtime = agent_dir.runtime(socket.as_os_str());
    publish(&herd.place, &agent_dir.runtime(real.as_os_str()), "strayed");
    let newer = agent_dir.newer_generations()[1].join("peers");
    durable::ensure_directories(&herd.place.path("home"), &newer).unwrap();
    let office = Arc::new(Office::new(agent_dir, runtime, session("chief"), Instant::now()));
    herd.block_on(async {
        let (facts, received) = fact::channel();
        let (snapshots, seen) = watch::channel(None::<Arc<Snapshot>>);
        let disk = DiskThread::spawn().unwrap();
        let task = tokio::spawn(surroundings::run(office, located(socket.as_os_str()), disk, facts, seen));
        let next = async |what: &str| {
            let end = Instant::now() + DEADLINE;
            loop {
                if let Some(Fact::Surroundings(found)) = received.take().pop() {
                    return found;
                }
                let left = end.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}");
                let _ = tokio::time::timeout(left, received.ready()).await;
            }
        };
        let first = next("what is on disk").await;
        assert_eq!((first.newer.len(), first.elsewhere.len()), (1, 0));
        let snapshot = Client::new(real.clone()).snapshot().await.unwrap();
        snapshots.send_replace(Some(Arc::new(snapshot)));
        let second = next("what Herdr shows").await;
        assert_eq!(second.elsewhere[0].sessions, [session("strayed")]);
        assert_eq!(second.elsewhere[0].spelling, Some(real.to_str().unwrap().into()));
        task.abort();
    });
}
