//! The mailboxes of managed agents on disk: what is one, what is read of it, and when.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use headman::contract::mailbox::{Mailbox, Post, directory_name, is_directory_name};
use headman::contract::{Rule, Untrusted};
use headman::disk::mailboxes::{Looker, Scan, scan};
use headman::herd::presence::managed_agents;
use serde_json::{Value, json};

use crate::managed::{OTHER, REQUEST, ack, agent_of, inventory, post, request, result_error, state_of, with};

/// Mailboxes in a directory of their own.
pub(crate) struct Boxes(pub(crate) PathBuf);

impl Boxes {
    pub(crate) fn of(state: &Value) -> String {
        let text = |key: &str| Untrusted::from(state[key].as_str().unwrap());
        directory_name(&text("workspaceId"), &text("agentLabel"))
    }

    /// Writes a mailbox as its owner does, by a rename; its directory.
    pub(crate) fn put(&self, state: &Value) -> PathBuf {
        let directory = self.0.join(Self::of(state));
        self.put_in(&directory, "state.json", state.to_string().as_bytes());
        directory
    }

    pub(crate) fn put_in(&self, directory: &Path, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(directory).unwrap();
        let temporary = directory.join(format!(".{name}.tmp"));
        std::fs::write(&temporary, bytes).unwrap();
        std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&temporary, directory.join(name)).unwrap();
    }
}

#[test]
fn a_mailbox_is_judged_as_its_writers_do() {
    let judge = |value: &Value| {
        Mailbox::parse_any(value.to_string().as_bytes()).map(drop).map_err(|error| error.rule)
    };
    let full = with(
        state_of("scout", "lead"),
        json!({
            "piSessionFile": "/s.jsonl", "agentDefinition": "explorer", "activeRequestId": REQUEST,
            "pendingAskId": OTHER, "lastActivityAt": 1.0, "lastAck": ack(REQUEST),
        }),
    );
    assert_eq!(judge(&full), Ok(()));
    let mut refused = ack(OTHER);
    refused["accepted"] = false.into();
    refused["code"] = "busy".into();
    refused["message"] = "at work".into();
    let base = state_of("scout", "lead");
    let error = result_error(&base);
    let changed = |value: &Value, key: &str, to: Value| with(value.clone(), json!({key: to}));
    for (what, members, verdict) in [
        ("a refusal", json!({"lastAck": refused}), Ok(())),
        (
            "a refusal without its code",
            json!({"lastAck": changed(&ack(OTHER), "accepted", json!(false))}),
            Err(Rule::Mailbox),
        ),
        (
            "an acceptance with a code",
            json!({"lastAck": changed(&ack(OTHER), "code", json!("busy"))}),
            Err(Rule::Mailbox),
        ),
        (
            "a lastAck that knows more",
            json!({"lastAck": changed(&ack(OTHER), "x", json!(1))}),
            Err(Rule::UnknownKey),
        ),
        ("a lastAck that is text", json!({"lastAck": OTHER}), Err(Rule::NotObject)),
        ("an error", json!({"resultError": error}), Ok(())),
        (
            "an error of another run",
            json!({"resultError": changed(&error, "runId", json!(OTHER))}),
            Err(Rule::Mailbox),
        ),
        (
            "an error beside a request",
            json!({"resultError": error, "completedRequestId": OTHER}),
            Err(Rule::Mailbox),
        ),
        ("an id that is none", json!({"activeRequestId": "../x"}), Err(Rule::Uuid)),
        ("blank text", json!({"cwd": "\u{feff} "}), Err(Rule::Mailbox)),
        ("a blank session", json!({"piSessionId": " "}), Err(Rule::Mailbox)),
        ("a broken time", json!({"lastActivityAt": 1.5}), Err(Rule::Time)),
        ("an ask without a request", json!({"pendingAskId": OTHER}), Err(Rule::Mailbox)),
        ("one id twice", json!({"activeRequestId": OTHER, "completedRequestId": OTHER}), Err(Rule::Mailbox)),
        ("a later version", json!({"version": 5}), Err(Rule::Version)),
    ] {
        assert_eq!(judge(&with(base.clone(), members)), verdict, "{what}");
    }
}

fn labels(scan: &Scan) -> Vec<String> {
    scan.posts.iter().map(|post| post.mailbox.label.to_str_lossy().into_owned()).collect()
}

fn broken(scan: &Scan) -> Vec<(String, String)> {
    scan.broken
        .iter()
        .map(|broken| (broken.directory.clone().unwrap_or_default(), broken.error.to_string()))
        .collect()
}

#[test]
fn a_broken_mailbox_is_named_and_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let boxes = Boxes(dir.path().join("mailboxes-v4"));
    assert_eq!(scan(&boxes.0), Scan::default(), "none at all");
    boxes.put(&state_of("zoe", "lead"));
    boxes.put(&state_of("ann", "lead"));
    let at = |first: char| boxes.0.join(first.to_string().repeat(32));
    boxes.put_in(&at('1'), "state.json", b"{\"version\":4");
    boxes.put_in(&at('2'), "state.json", &vec![b' '; 64 * 1024 + 1]);
    // A good one in a directory that is not its own, and one of a later release.
    boxes.put_in(&at('3'), "state.json", state_of("moved", "lead").to_string().as_bytes());
    let later = with(state_of("later", "newer-lead"), json!({"version": 5, "build": "x"}));
    boxes.put_in(&at('4'), "state.json", later.to_string().as_bytes());
    std::fs::create_dir(at('5')).unwrap();
    symlink(boxes.0.join(Boxes::of(&state_of("ann", "lead"))), at('6')).unwrap();
    std::fs::create_dir(at('7')).unwrap();
    symlink("/dev/zero", at('7').join("state.json")).unwrap();
    boxes.put_in(&at('8'), "state.json", state_of("open", "lead").to_string().as_bytes());
    std::fs::set_permissions(at('8').join("state.json"), std::fs::Permissions::from_mode(0o622)).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at('9').with_extension("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::fs::create_dir(at('9')).unwrap();
    std::fs::rename(at('9').with_extension("fifo"), at('9').join("state.json")).unwrap();
    // Whatever else stands there is nobody's business.
    std::fs::write(boxes.0.join(".DS_Store"), "x").unwrap();
    boxes.put_in(&boxes.0.join("old"), "state.json", b"nothing");

    let found = scan(&boxes.0);
    assert_eq!(labels(&found), ["ann", "zoe"]);
    let whys = broken(&found);
    let directories: Vec<char> = whys.iter().map(|(name, _)| name.chars().next().unwrap()).collect();
    assert_eq!(directories, ['1', '2', '3', '4', '6', '7', '8', '9']);
    assert!(whys.iter().all(|(name, _)| is_directory_name(name)));
    for (at, word) in
        ["not JSON", "65536", "another agent", "another version", "link", "link", "0622", "FIFO"]
            .into_iter()
            .enumerate()
    {
        assert!(whys[at].1.contains(word), "{:?}", whys[at]);
    }
    // A broken one still says whose it is, where it can; and that session is managed.
    let sessions: Vec<_> = found.sessions().map(|session| session.to_str_lossy().into_owned()).collect();
    assert_eq!(sessions, ["s-ann", "s-zoe", "s-moved", "s-later"]);
    let session = |name: &str| headman::contract::SessionId::new(name).unwrap();
    assert!(!found.broken[3].could_be_of(&session("lead")), "the later one names another owner");
    assert!(found.broken[3].could_be_of(&session("newer-lead")));
    assert!(found.broken[0].could_be_of(&session("anyone")));

    // A directory that can't be used is told of itself.
    let link = dir.path().join("link");
    symlink(&boxes.0, &link).unwrap();
    assert_eq!(broken(&scan(&link)), [(String::new(), "it is a symbolic link".to_owned())]);
}

#[test]
fn what_stands_beside_a_state_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let boxes = Boxes(dir.path().to_owned());
    let state = with(
        state_of("scout", "lead"),
        json!({"completedRequestId": REQUEST, "lastAck": ack(REQUEST), "cwd": "/proc/self/../1/.."}),
    );
    let directory = boxes.put(&state);
    let look = || {
        let found = scan(&boxes.0);
        (found.posts[0].unacknowledged, found.posts[0].undelivered)
    };
    assert_eq!(look(), (false, false));
    assert_eq!(scan(&boxes.0).posts[0].real_cwd, Untrusted::from("/proc"));
    // The result of another request is not this one's.
    boxes.put_in(&directory, &format!("result-{OTHER}.json"), b"{}");
    assert_eq!(look(), (false, false));
    let result = format!("result-{REQUEST}.json");
    boxes.put_in(&directory, &result, b"not even JSON");
    assert_eq!(look(), (false, true));
    std::fs::remove_file(directory.join(&result)).unwrap();

    // A request that was answered for, then in other ways.
    let asked = format!("request-{REQUEST}.json");
    let good = request(&state, REQUEST);
    for (what, bytes, waits) in [
        ("answered for", good.to_string(), false),
        ("no JSON", "{".to_owned(), true),
        ("of another agent", with(good.clone(), json!({"paneId": "w9:p9"})).to_string(), true),
        ("under another id", with(good.clone(), json!({"requestId": OTHER})).to_string(), true),
        ("of another kind", with(good.clone(), json!({"kind": "order"})).to_string(), true),
        ("a reply to nothing", with(good.clone(), json!({"kind": "reply"})).to_string(), true),
    ] {
        boxes.put_in(&directory, &asked, bytes.as_bytes());
        assert_eq!(look(), (waits, false), "{what}");
    }
    boxes.put_in(&directory, &asked, good.to_string().as_bytes());
    assert_eq!(look(), (false, false));
    std::fs::set_permissions(directory.join(&asked), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(look(), (true, false), "not private");
    std::fs::remove_file(directory.join(&asked)).unwrap();
    boxes.put_in(&directory, "request-x.json", b"{}");
    assert_eq!(look(), (true, false), "under no id");
    std::fs::remove_file(directory.join("request-x.json")).unwrap();
    boxes.put_in(&directory, &format!("request-{OTHER}.json"), request(&state, OTHER).to_string().as_bytes());
    assert_eq!(look(), (true, false), "not answered for");
}

#[test]
fn looking_again_sees_every_change_and_reads_nothing_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let boxes = Boxes(dir.path().join("a/mailboxes-v4"));
    let mut looker = Looker::new(boxes.0.clone());
    let nothing = looker.look();
    assert_eq!(*nothing, Scan::default());
    assert!(Arc::ptr_eq(&nothing, &looker.look()));
    let mut same = |what: &str| {
        let seen = looker.look();
        assert_eq!(*seen, scan(&boxes.0), "{what}");
        // Read twice, and not again.
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&seen, &looker.look()), "{what}");
        }
        seen
    };
    let state = state_of("scout", "lead");
    let directory = boxes.put(&state);
    assert_eq!(same("the first").posts.len(), 1);
    // Changes so quick that the clock may not tell them apart.
    for nth in 0..50 {
        let id = format!("{nth:08}-1111-4111-8111-111111111111");
        boxes.put(&with(state.clone(), json!({"activeRequestId": id})));
        let first = looker_label(&mut same, "a change");
        boxes.put(&with(state.clone(), json!({"completedRequestId": id})));
        boxes.put_in(&directory, &format!("result-{id}.json"), b"{}");
        let second = looker_label(&mut same, "a change right after");
        assert!(!first.undelivered && second.undelivered);
    }
    boxes.put(&state_of("other", "lead"));
    assert_eq!(same("another").posts.len(), 2);
    boxes.put_in(&boxes.0.join("1".repeat(32)), "state.json", b"{");
    assert_eq!(same("a broken one").broken.len(), 1);
    std::fs::remove_file(boxes.0.join("1".repeat(32)).join("state.json")).unwrap();
    assert_eq!(same("a broken one gone").broken.len(), 0);
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(labels(&same("one removed")), ["other"]);
    std::fs::remove_dir_all(&boxes.0).unwrap();
    assert_eq!(*same("all removed"), Scan::default());
    boxes.put(&state);
    assert_eq!(labels(&same("there again")), ["scout"]);

    // A second change that leaves the directory's times as they are, as one within the same tick.
    let directory = boxes.put(&with(state.clone(), json!({"activeRequestId": REQUEST})));
    assert_eq!(looker.look().posts[0].mailbox.active_request, Some(REQUEST.into()));
    let second = with(state.clone(), json!({"activeRequestId": OTHER}));
    std::fs::write(directory.join("state.json"), second.to_string()).unwrap();
    assert_eq!(looker.look().posts[0].mailbox.active_request, Some(OTHER.into()));

    // What only changes its times is no change.
    boxes.put(&state);
    let before = looker.look();
    boxes.put(&with(state.clone(), json!({"updatedAt": 2, "lastActivityAt": 5})));
    assert!(Arc::ptr_eq(&before, &looker.look()));
}

fn looker_label(same: &mut impl FnMut(&str) -> Arc<Scan>, what: &str) -> Post {
    same(what).posts[0].clone()
}

/// Two hundred leads with five agents each. The times depend on the machine, their ratio does not.
#[test]
fn looking_at_a_thousand_mailboxes_costs_little_where_nothing_changed() {
    let dir = tempfile::tempdir().unwrap();
    let boxes = Boxes(dir.path().to_owned());
    let mut agents = Vec::new();
    for nth in 0..1_000 {
        let mut state = state_of(&format!("agent-{nth}"), &format!("lead-{}", nth / 5));
        state["activeRequestId"] = REQUEST.into();
        boxes.put(&state);
        agents.push(agent_of(&post(state)));
    }
    let median = |what: &str, work: &mut dyn FnMut()| {
        let mut times: Vec<_> = (0..11)
            .map(|_| {
                let started = Instant::now();
                work();
                started.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("{what}: {:?}", times[5]);
        times[5]
    };
    let whole = median("a whole scan", &mut || {
        scan(&boxes.0);
    });
    let mut looker = Looker::new(boxes.0.clone());
    looker.look();
    looker.look();
    let look = median("a look without a change", &mut || {
        looker.look();
    });
    let changed = state_of("agent-7", "lead-1");
    median("a look after one change", &mut || {
        boxes.put(&changed);
        looker.look();
    });
    let seen = looker.look();
    let shown = inventory(agents);
    median("what they do", &mut || {
        assert_eq!(managed_agents(&seen.posts, &shown).len(), 1_000);
    });
    assert!(look * 5 < whole, "a look takes {look:?}, a scan {whole:?}");
}
