//! Peers: who is present, what is queued for whom; on disk, from the command line, on the screen.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use headman::console::app::{App, Effect};
use headman::console::text;
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{Claim, Kind, Message, NativeId, PeerRecord, Timestamp, Uuid};
use headman::disk::peers::{self, MAX_LISTED, Peer, Queue};
use headman::disk::{AgentDir, DiskThread, ProcessLock, RecordError, Runtime, Unreadable, durable, inbox};
use headman::fact::{self, Fact};
use headman::source;
use serde_json::Value;
use tokio::sync::watch;

use crate::cli_support::{DEADLINE, Place};
use crate::screens::{START, app, app_in, at, press, session, shown, theme};

const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}evil\u{200b}\n<b>";

fn native(text: &str) -> NativeId {
    NativeId::new(text).unwrap()
}

fn record(name: &str, claim: Claim) -> PeerRecord {
    PeerRecord {
        session: session(name),
        pane: native("w1:p1"),
        tab: native("w1:t1"),
        workspace: native("w1"),
        claim,
        updated_at: Timestamp::from_millis(1),
        name: Some(native(&format!("n-{name}"))),
        cwd: Some(native("/r/api")),
        repo: Some(native("api")),
        branch: Some(native("main")),
        workspace_label: None,
    }
}

fn message(from: &str, to: &str, text: &str, at: u64) -> Message {
    Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::PeerMessage,
        from: session(from),
        to: session(to),
        lead: session(from),
        ask: None,
        text: text.into(),
        created_at: Timestamp::from_millis(at),
    }
}

/// The peers of a home directory of its own.
struct Home {
    place: Place,
    runtime: Runtime,
    locks: Vec<ProcessLock>,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        let runtime = place.agent_dir().runtime("".as_ref());
        durable::ensure_directories(&place.path("home"), &runtime.peer_records()).unwrap();
        Self { place, runtime, locks: Vec::new() }
    }

    /// Publishes a presence with a lock of this process.
    fn present(&mut self, name: &str) -> PeerRecord {
        let lock = ProcessLock::acquire(&self.runtime.peer_lock(&session(name)), Claim::own(), &|_| false);
        let lock = lock.unwrap();
        let record = record(name, lock.claim());
        self.locks.push(lock);
        self.write(&record);
        record
    }

    fn write(&self, record: &PeerRecord) {
        durable::publish(&self.runtime.peer(&record.session), &record.to_bytes().unwrap()).unwrap();
    }

    /// A presence whose process is gone.
    fn dead(&self, name: &str) -> PeerRecord {
        let text = format!("{{\"pid\":{},\"id\":\"{}\"}}", i32::MAX, Uuid::random());
        let claim = Claim::parse_any(text.as_bytes()).unwrap();
        let lock = self.runtime.peer_lock(&session(name));
        durable::create_directory(&lock).unwrap();
        durable::create(&lock.join(claim.file_name()), &claim.to_bytes()).unwrap();
        let record = record(name, claim);
        self.write(&record);
        record
    }

    fn put(&self, message: &Message) {
        let inbox = self.runtime.peer_inbox(&message.to);
        inbox::publish(&self.place.path("home"), &inbox, message).unwrap();
    }

    fn look(&self) -> Vec<Peer> {
        source::peers::look(&self.runtime).unwrap()
    }
}

fn of<'a>(peers: &'a [Peer], name: &str) -> &'a Peer {
    peers.iter().find(|peer| peer.hash == session(name).hash()).unwrap()
}

#[test]
fn everyone_is_seen_with_what_is_queued_and_nothing_hides_another() {
    let mut home = Home::new();
    let one = home.present("one");
    let gone = home.dead("gone");
    durable::create(&home.runtime.peer(&session("torn")), b"{\"version\":1,").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", home.runtime.peer(&session("link"))).unwrap();
    durable::create(&home.runtime.peer_records().join("no hash.json"), b"x").unwrap();

    let second = message("gone", "one", "second", 2);
    let first = message("gone", "one", "first", 1);
    let marked = message("gone", "one", "quarantined", 0);
    for message in [&second, &first, &marked] {
        home.put(message);
    }
    let inbox_dir = home.runtime.peer_inbox(&session("one"));
    inbox::quarantine(&inbox_dir, marked.id).unwrap();
    durable::create(&inbox_dir.message(Uuid::random()), b"no message").unwrap();
    // What its receiver would refuse does not wait for it: of another kind, to somebody else, from itself.
    for wrong in [
        Message { kind: Kind::ChiefMessage, lead: session("one"), ..message("chief", "one", "no", 3) },
        message("one", "one", "no", 3),
        Message { to: session("other"), ..message("gone", "one", "no", 3) },
    ] {
        durable::create(&inbox_dir.message(wrong.id), &wrong.to_bytes().unwrap()).unwrap();
    }
    home.put(&message("one", "never there", "to nobody", 7));
    durable::ensure_directories(&home.place.path("home"), home.runtime.peer_inbox(&session("empty")).path())
        .unwrap();

    let before = home.place.picture();
    let peers = home.look();
    let seen = of(&peers, "one");
    assert_eq!((&seen.record, &seen.presence), (&Some(one), &Ok(())));
    assert_eq!(
        seen.queue,
        Ok(Queue {
            waiting: 2,
            oldest: Some(Timestamp::from_millis(1)),
            unusable: 5,
            messages: vec![first, second],
        })
    );
    let seen = of(&peers, "gone");
    assert_eq!(seen.record, Some(gone), "it still tells who it was");
    let Err(RecordError::Unclaimed(why)) = &seen.presence else { panic!("{seen:?}") };
    assert!(why.contains("2147483647 is gone"), "{why}");
    assert_eq!(of(&peers, "torn").presence.as_ref().unwrap_err().verdict(), "torn");
    assert_eq!(of(&peers, "link").presence, Err(Unreadable::Symlink.into()));
    let never = of(&peers, "never there");
    assert_eq!((&never.session, &never.record), (&Some(session("never there")), &None));
    assert_eq!(never.queue.as_ref().unwrap().waiting, 1);
    assert_eq!(peers.len(), 5, "neither a file that is no record's nor an empty inbox counts: {peers:?}");
    assert_eq!(home.place.picture(), before, "looking changed something");
}

#[test]
fn a_full_inbox_is_counted_and_listed_from_the_oldest_on() {
    let mut home = Home::new();
    home.present("one");
    for at in (0..MAX_LISTED as u64 + 3).rev() {
        home.put(&message("two", "one", &format!("nr {at}"), at));
    }
    let peers = home.look();
    let queue = of(&peers, "one").queue.clone().unwrap();
    assert_eq!((queue.waiting, queue.messages.len()), (MAX_LISTED + 3, MAX_LISTED));
    assert_eq!((&queue.messages[0].text, queue.oldest), (&"nr 0".into(), Some(Timestamp::from_millis(0))));
}

#[test]
fn an_inbox_or_directory_that_can_not_be_used_is_told() {
    let mut home = Home::new();
    home.present("one");
    home.present("two");
    let inboxes = home.runtime.peer_inboxes();
    durable::ensure_directories(&home.place.path("home"), &inboxes).unwrap();
    std::os::unix::fs::symlink("/tmp", home.runtime.peer_inbox(&session("one")).path()).unwrap();
    let peers = home.look();
    assert_eq!(of(&peers, "one").queue, Err(Unreadable::Symlink));
    assert_eq!(of(&peers, "two").queue, Ok(Queue::default()));

    let replace = |path: &Path| {
        std::fs::rename(path, home.place.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
        std::os::unix::fs::symlink("/tmp", path).unwrap();
    };
    replace(&inboxes);
    let peers = home.look();
    assert_eq!(peers.len(), 2, "who is present is seen nevertheless");
    assert!(peers.iter().all(|peer| peer.presence.is_ok() && peer.queue == Err(Unreadable::Symlink)));
    replace(&home.runtime.peer_records());
    assert_eq!(peers::look(&home.runtime), Err(Unreadable::Symlink));
    let ran = home.place.run(&["peers", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (4, &"disk".into()), "{}", ran.stderr);
}

#[test]
fn the_verb_tells_them_in_both_forms_and_needs_no_herdr() {
    let mut home = Home::new();
    let mut one = home.present("one");
    home.dead("gone");
    home.put(&message("gone", "one", HOSTILE, 1_700_000_000_000));
    home.put(&message("x", "nobody", "still there", 5));
    one.name = Some(native(&format!("n{HOSTILE}")));
    home.write(&one);
    let before = home.place.picture();
    let ran = home.place.run(&["peers", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.assert_harmless();
    let all = ran.json();
    let peers = all["peers"].as_array().unwrap();
    assert_eq!(peers.len(), 3);
    let by = |name: &str| -> &Value { peers.iter().find(|it| it["session"] == name).unwrap() };
    let one = by("one");
    for (key, value) in [
        ("name", format!("n{HOSTILE}").as_str()),
        ("cwd", "/r/api"),
        ("repo", "api"),
        ("branch", "main"),
        ("workspace_label", ""),
        ("pane_id", "w1:p1"),
        ("presence", "valid"),
    ] {
        assert_eq!(one[key], value, "{key}");
    }
    assert_eq!(one["queued"]["count"], 1);
    assert_eq!(one["queued"]["oldest"], 1_700_000_000_000_u64);
    assert_eq!(one["queued"]["messages"][0]["from"], "gone");
    assert_eq!(one["queued"]["messages"][0]["text"], HOSTILE, "exact, though escaped");
    assert_eq!(
        (&by("gone")["presence"], &by("gone")["queued"]["count"]),
        (&"no_live_process".into(), &0.into())
    );
    assert!(by("gone")["message"].as_str().unwrap().contains("is gone"));
    assert_eq!(
        (&by("nobody")["presence"], &by("nobody")["name"]),
        (&"missing".into(), &"lead-nobody".into())
    );

    let ran = home.place.run(&["peers"]);
    assert_eq!(ran.code, 0);
    ran.assert_harmless();
    let heads: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads.len(), 3, "{}", ran.stdout);
    // Each column begins at the same place on the screen, whatever names take.
    for (word, lines) in [("present", 3), ("1 queued", 2), ("pane w1:p1", 2)] {
        let columns: Vec<usize> = (heads.iter())
            .filter_map(|head| {
                let at =
                    head.find(word)? - if head.contains("not present") && word == "present" { 4 } else { 0 };
                Some(text::line(&head[..at]).width())
            })
            .collect();
        assert_eq!(columns.len(), lines, "{}", ran.stdout);
        assert!(columns.iter().all(|column| *column == columns[0]), "{word}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("1 queued, oldest "), "{}", ran.stdout);
    assert!(ran.stdout.contains("    from api/main/n-gone, "), "{}", ran.stdout);
    assert_eq!(home.place.picture(), before, "peers wrote something");

    let empty = Place::new();
    let ran = empty.run(&["peers"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "No peers.\n"));
    assert_eq!(empty.run(&["peers", "--json"]).json(), serde_json::json!({"peers": []}));
}

/// Nothing is read while nobody looks; once somebody does, changes come by themselves.
#[tokio::test]
async fn the_source_looks_only_while_the_screen_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime("".as_ref());
    let (facts, received) = fact::channel();
    let (open, is_open) = watch::channel(false);
    let disk = DiskThread::spawn().unwrap();
    let task = tokio::spawn(source::peers::run(runtime.clone(), disk.clone(), facts, is_open));
    let next = async |what: &str| {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(Fact::Peers(read)) = received.take().pop() {
                return read.as_ref().clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}");
            let _ = tokio::time::timeout(left, received.ready()).await;
        }
    };
    // Whatever it had asked the disk thread for would be done by then.
    tokio::task::yield_now().await;
    disk.run(|| ()).await.unwrap();
    tokio::task::yield_now().await;
    assert!(received.take().is_empty(), "it looked although nobody did");

    open.send_replace(true);
    assert_eq!(next("the first look").await, Ok(Vec::new()));
    durable::ensure_directories(dir.path(), &runtime.peer_records()).unwrap();
    let sent = message("a", "b", "hello", 1);
    inbox::publish(dir.path(), &runtime.peer_inbox(&sent.to), &sent).unwrap();
    let peers = next("the message").await.unwrap();
    assert_eq!(peers[0].queue.as_ref().unwrap().messages, std::slice::from_ref(&sent));
    // Closed and opened again: at once, and only what changed.
    open.send_replace(false);
    inbox::remove(&runtime.peer_inbox(&sent.to), sent.id).unwrap();
    open.send_replace(true);
    assert_eq!(next("its end").await, Ok(Vec::new()));
    drop(open);
    tokio::time::timeout(DEADLINE, task).await.expect("it ends with the screen").unwrap();
}

/// The claim of some process, always the same.
fn claim() -> Claim {
    let text = "{\"pid\":4242,\"id\":\"11111111-2222-4333-8444-555555555555\"}";
    Claim::parse_any(text.as_bytes()).unwrap()
}

fn peer(name: &str, queue: Queue) -> Peer {
    Peer {
        hash: session(name).hash(),
        record: Some(record(name, claim())),
        presence: Ok(()),
        queue: Ok(queue),
        session: Some(session(name)),
    }
}

fn some_peers() -> Vec<Peer> {
    let sent = |from: &str, to: &str, text: &str, ago: u64| message(from, to, text, START - ago * 1000);
    let queued = vec![
        sent(
            "auth",
            "checkout",
            "The token endpoint answers 401 now where it gave 403. Your retry has to tell the two apart, else it asks for the password again.",
            240,
        ),
        sent("a-session-nobody-knows", "checkout", "ping\nin two lines", 40),
    ];
    let mut checkout = peer(
        "checkout",
        Queue { waiting: 3, oldest: Some(queued[0].created_at), unusable: 1, messages: queued },
    );
    let mut record = record("checkout", claim());
    record.repo = Some(native("web"));
    record.branch = Some(native("release/2.4"));
    record.workspace_label = Some(native("web"));
    record.cwd = Some(native("/home/ada/work/web"));
    checkout.record = Some(record);
    let mut gone = peer("gone", Queue::default());
    gone.presence = Err(RecordError::Unclaimed("its process 4711 is gone".to_owned()));
    let nobody = Peer {
        record: None,
        presence: Err(Unreadable::Missing.into()),
        ..peer(
            "nobody",
            Queue {
                waiting: 1,
                oldest: Some(Timestamp::from_millis(START - 7_200_000)),
                unusable: 0,
                messages: vec![sent("auth", "nobody", "Are you there?", 7_200)],
            },
        )
    };
    vec![peer("auth", Queue::default()), checkout, gone, nobody]
}

fn opened(peers: Vec<Peer>) -> App {
    let mut app = app();
    app.facts(vec![Fact::Peers(Arc::new(Ok(peers)))], at(0));
    press(&mut app, "v", at(0));
    app
}

#[test]
fn the_screen() {
    let mut app = opened(some_peers());
    press(&mut app, "j", at(0));
    for (width, height) in [(120, 40), (80, 24), (60, 20), (40, 15), (20, 6)] {
        let screen = shown(&app, width, height, at(0));
        insta::assert_snapshot!(format!("peers_{width}x{height}"), screen);
    }
    press(&mut app, "\n", at(0));
    insta::assert_snapshot!("peers_detail_40x15", shown(&app, 40, 15, at(0)));
    press(&mut app, "\u{1b}jj", at(0));
    insta::assert_snapshot!("peers_nobody_80x24", shown(&app, 80, 24, at(0)));
}

#[test]
fn what_stands_there_when_there_is_nothing_to_list() {
    let mut app = app();
    press(&mut app, "v", at(0));
    insta::assert_snapshot!("peers_not_looked_80x12", shown(&app, 80, 12, at(0)));
    app.facts(vec![Fact::Peers(Arc::new(Ok(Vec::new())))], at(0));
    insta::assert_snapshot!("peers_none_80x12", shown(&app, 80, 12, at(0)));
    app.facts(vec![Fact::Peers(Arc::new(Err("it is a symbolic link".to_owned())))], at(0));
    insta::assert_snapshot!("peers_error_80x12", shown(&app, 80, 12, at(0)));
    let mut unreadable = some_peers();
    unreadable[0].queue = Err(Unreadable::Symlink);
    app.facts(vec![Fact::Peers(Arc::new(Ok(unreadable)))], at(0));
    let screen = shown(&app, 120, 24, at(0));
    assert!(screen.contains("inbox?") && screen.contains("can't be read: it is a symbolic link"), "{screen}");
}

#[test]
fn it_opens_and_closes_and_asks_to_be_looked_at_only_then() {
    let mut app = opened(some_peers());
    assert!(app.shows_peers());
    press(&mut app, "v", at(1));
    assert!(!app.shows_peers(), "the same key closes it");
    press(&mut app, "v?v", at(1));
    assert!(app.shows_peers(), "it is still there below the help");
    assert_eq!(app.layers.len(), 2, "and once only");
    press(&mut app, "\u{1b}q", at(1));
    assert!(!app.shows_peers());
    assert!(app.take_effects().iter().all(|it| !matches!(it, Effect::Quit)));
    press(&mut app, "?", at(2));
    let help = shown(&app, 120, 60, at(2));
    let line = help.lines().find(|line| line.contains("The leads' peers")).unwrap();
    assert!(line.contains("  v  "), "{line}");
    // No key of it does anything to a lead.
    let mut app = opened(some_peers());
    app.take_effects();
    press(&mut app, "rnNfw", at(3));
    assert!(app.take_effects().is_empty());
    assert_eq!(app.layers.len(), 1);
}

#[test]
fn the_cursor_stays_on_its_peer_and_copies_its_session() {
    let mut app = opened(some_peers());
    press(&mut app, "j", at(0));
    let copied = |app: &mut App| {
        app.take_effects();
        press(app, "y", at(1));
        app.take_effects().into_iter().find_map(|it| match it {
            Effect::Copy(text) => Some(text.to_str_lossy().into_owned()),
            _ => None,
        })
    };
    assert_eq!(copied(&mut app).as_deref(), Some("checkout"));
    // One before it goes, and it is not present any more.
    let mut peers = some_peers().split_off(1);
    peers[0].presence = Err(RecordError::Unclaimed("its process is gone".to_owned()));
    app.facts(vec![Fact::Peers(Arc::new(Ok(peers.clone())))], at(2));
    assert_eq!(copied(&mut app).as_deref(), Some("checkout"));
    press(&mut app, "G", at(2));
    assert_eq!(copied(&mut app).as_deref(), Some("nobody"));
    // It goes itself: the one that stands there now.
    peers.pop();
    app.facts(vec![Fact::Peers(Arc::new(Ok(peers)))], at(3));
    assert_eq!(copied(&mut app).as_deref(), Some("gone"));
    app.facts(vec![Fact::Peers(Arc::new(Ok(Vec::new())))], at(4));
    assert_eq!(copied(&mut app), None);
    press(&mut app, "jkGgg\t\n", at(5));
}

#[test]
fn a_long_message_is_scrolled_in_the_detail() {
    let mut peers = some_peers();
    let text: String = (0..200).map(|at| format!("line {at}\n")).collect();
    let Ok(queue) = &mut peers[0].queue else { panic!() };
    *queue =
        Queue { waiting: 1, messages: vec![message("checkout", "auth", &text, START)], ..Queue::default() };
    let mut app = opened(peers);
    assert!(shown(&app, 80, 24, at(0)).contains("line 0 "));
    press(&mut app, "\tG", at(0));
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.contains("line 199") && !screen.contains("line 0 "), "{screen}");
    // Another peer's detail begins at its beginning.
    press(&mut app, "\u{1b}j", at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("session  checkout"));
}

#[test]
fn nothing_breaks_at_any_size_with_hostile_peers() {
    let mut peers = Vec::new();
    for at in 0..40 {
        let name = format!("{HOSTILE}{at}{}", "\u{301}".repeat(30));
        let mut peer = peer(&name, Queue::default());
        let mut record = record(&name, claim());
        for field in [&mut record.name, &mut record.repo, &mut record.branch, &mut record.cwd] {
            *field = Some(native(HOSTILE));
        }
        record.pane = native(HOSTILE);
        peer.record = Some(record);
        let sent = message(&name, "x", &HOSTILE.repeat(50), START + 5_000);
        peer.queue =
            Ok(Queue { waiting: 1, oldest: Some(sent.created_at), unusable: at, messages: vec![sent] });
        if at % 2 == 0 {
            peer.presence = Err(RecordError::Unclaimed(HOSTILE.to_owned()));
        }
        peers.push(peer);
    }
    let mono = Theme::load(None, GlyphChoice::Ascii, |_| None).unwrap();
    for theme in [theme(), mono] {
        let is_ascii = theme.ascii_text();
        let mut app = app_in(theme);
        app.facts(vec![Fact::Peers(Arc::new(Ok(peers.clone())))], at(0));
        for keys in ["v", "jjj", "\tG", "\u{1b}G"] {
            press(&mut app, keys, at(1));
            for (width, height) in
                [(1, 1), (19, 6), (20, 6), (21, 7), (49, 9), (50, 12), (79, 24), (80, 7), (200, 50)]
            {
                let screen = shown(&app, width, height, at(1));
                let bad =
                    screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
                assert_eq!(bad, None, "{width}x{height}: {screen:?}");
                assert!(!is_ascii || screen.is_ascii(), "{screen}");
            }
        }
    }
}
