//! `headman doctor`: names what is wrong, and leaves it as it is.

use headman::console::drafts::{self, Draft};
use headman::contract::{Claim, Descriptor, Kind, Message, SessionId, Timestamp, Uuid};
use headman::disk::{Runtime, durable, inbox, records};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;

use crate::cli_support::{Herd, Place, Ran, chmod, record_path, runtime_of};
use crate::golden::is_root;

const ID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

fn lead(session: &str) -> String {
    format!("{{\"version\":1,\"instanceId\":\"{ID}\",\"piSessionId\":\"{session}\",\"updatedAt\":1}}\n")
}

/// The findings of a section at a level.
fn findings<'a>(report: &'a Value, section: &str, level: &str) -> Vec<&'a str> {
    let all = report[section]["findings"].as_array().unwrap_or_else(|| panic!("no {section}: {report}"));
    all.iter().filter(|it| it["level"] == level).map(|it| it["message"].as_str().unwrap()).collect()
}

fn doctor(place: &Place) -> (Ran, Value) {
    let ran = place.run(&["doctor", "--json"]);
    assert_eq!(ran.stderr, "");
    ran.assert_harmless();
    let report = ran.json();
    (ran, report)
}

fn message(to: &str, text: &str) -> Message {
    let session = |text: &str| SessionId::new(text).unwrap();
    Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::ChiefMessage,
        from: session("chief"),
        to: session(to),
        lead: session(to),
        ask: None,
        text: text.into(),
        created_at: Timestamp::from_millis(1),
    }
}

fn put(herd: &Herd, message: &Message) {
    let runtime = herd.runtime();
    inbox::publish(&herd.place.path("home"), &runtime.inbox(&message.to), message).unwrap();
}

#[test]
fn a_sound_herd_has_nothing_bad() {
    let mut herd = Herd::new();
    herd.agent("s-1", "api", Some("main"));
    herd.record("s-1", None);
    let before = herd.place.picture();
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 0, "{report}");
    assert_eq!(report["available"], true);
    assert_eq!(report["herdr"]["answers"], true);
    assert_eq!(report["herdr"]["protocol"], 20);
    assert_eq!(report["herdr"]["origin"], "variable");
    assert_eq!(report["lead_records"]["valid"], 1);
    assert_eq!(report["lease"]["state"], "free");
    assert_eq!(report["state_dir"]["exists"], false);
    assert_eq!(report["terminal"]["can_register"], false);
    assert_eq!(report["watching"]["notified"], true);
    for section in report.as_object().unwrap().values().filter(|it| it.is_object()) {
        let all = section["findings"].as_array().unwrap();
        assert!(!all.is_empty());
        assert!(all.iter().all(|it| it["level"] != "bad"), "{section}");
    }

    let text = herd.place.run(&["doctor"]);
    assert_eq!(text.code, 0);
    for title in ["Herdr", "Chief lease", "Lead records", "Permissions", "Terminal"] {
        assert!(text.stdout.lines().any(|line| line == title), "{title}: {}", text.stdout);
    }
    assert!(text.stdout.lines().any(|line| line.starts_with("  ok    ")));
    assert!(text.stdout.ends_with(" ok\n"));
    assert_eq!(herd.place.picture(), before, "doctor wrote something");
}

#[test]
fn without_herdr_it_ends_with_four_and_looks_at_the_rest_all_the_same() {
    let mut place = Place::new();
    place.set("HERDR_SOCKET_PATH", place.path("none.sock").to_str().unwrap());
    let runtime = runtime_of(&place.agent_dir(), place.path("none.sock").to_str().unwrap());
    durable::ensure_directories(&place.path("home"), &runtime.leads()).unwrap();
    durable::create(&record_path(&runtime, "s-1"), lead("s-1").as_bytes()).unwrap();
    let (ran, report) = doctor(&place);
    assert_eq!(ran.code, 4);
    assert_eq!(report["verdict"], "bad");
    assert_eq!(report["available"], false);
    assert!(findings(&report, "herdr", "bad")[0].contains("none.sock (named by HERDR_SOCKET_PATH)"));
    assert_eq!(report["lead_records"]["valid"], 1);
}

#[test]
fn every_hostile_record_is_named_and_left_as_it_is() {
    let mut herd = Herd::new();
    herd.agent("sound", "api", None);
    herd.record("sound", None);
    let runtime = herd.runtime();
    let path = |session: &str| record_path(&runtime, session);
    let write = |session: &str, bytes: &[u8]| durable::create(&path(session), bytes).unwrap();
    write("oversize", lead("oversize").replace("}", &format!("{}}}", " ".repeat(16 * 1024))).as_bytes());
    write("torn", &lead("torn").as_bytes()[..40]);
    write("binary", b"\x7fELF\x00\x01\x1b]0;pwned\x07");
    write("version", lead("version").replace("\"version\":1", "\"version\":2").as_bytes());
    write("unknown", lead("unknown").replace("}", ",\"\u{202e}build\\u001b[2J\":1}").as_bytes());
    write("elsewhere", lead("another session").as_bytes());
    write("mode", lead("mode").as_bytes());
    chmod(&path("mode"), 0o620);
    write("linked", lead("linked").as_bytes());
    std::fs::hard_link(path("linked"), herd.place.path("second name")).unwrap();
    std::fs::write(herd.place.path("target"), lead("symlink")).unwrap();
    std::os::unix::fs::symlink(herd.place.path("target"), path("symlink")).unwrap();
    rustix::fs::mknodat(CWD, path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    chmod(&path("directory"), 0o700);
    if is_root() {
        write("owner", lead("owner").as_bytes());
        std::os::unix::fs::chown(path("owner"), Some(12345), None).unwrap();
    }
    let before = herd.place.picture();

    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 1, "{report}");
    assert_eq!(report["lead_records"]["valid"], 1);
    let files = report["lead_records"]["files"].as_array().unwrap();
    let mut expected = vec![
        ("sound", "valid"),
        ("oversize", "too_large"),
        ("torn", "torn"),
        ("binary", "not_json"),
        ("version", "version"),
        ("unknown", "unknown_key"),
        ("elsewhere", "file_name"),
        ("mode", "writable_by_others"),
        ("linked", "hard_linked"),
        ("symlink", "symlink"),
        ("fifo", "not_regular"),
        ("directory", "not_regular"),
    ];
    if is_root() {
        expected.push(("owner", "other_owner"));
    }
    assert_eq!(files.len(), expected.len());
    let told = [findings(&report, "lead_records", "bad"), findings(&report, "lead_records", "warn")].concat();
    for (session, verdict) in expected {
        let name = format!("{}.json", SessionId::new(session).unwrap().hash());
        let file = files
            .iter()
            .find(|file| file["file"] == *name)
            .unwrap_or_else(|| panic!("{session} is not named"));
        assert_eq!(file["verdict"], verdict, "{session}");
        if verdict != "valid" {
            assert!(
                told.iter().any(|line| line.contains(&name) && line.contains(verdict)),
                "{session}: {told:?}"
            );
            assert!(!file["message"].as_str().unwrap().is_empty());
        }
    }
    // Those of another release are no fault of anybody.
    assert_eq!(findings(&report, "lead_records", "warn").len(), 2);

    let text = herd.place.run(&["doctor"]);
    assert_eq!(text.code, 1);
    text.assert_harmless();
    assert!(text.stdout.contains("a FIFO"), "{}", text.stdout);
    assert!(text.stdout.contains("symbolic link"));

    // The others are listed in spite of them.
    let list = herd.place.run(&["list", "--json"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    list.assert_harmless();
    assert_eq!(list.json()["leads"].as_array().unwrap().len(), 1);
    let unreadable = list.json()["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["reason"] == "unreadable_record")
        .count();
    assert_eq!(unreadable, files.len() - 1);
    herd.place.run(&["list"]).assert_harmless();
    assert_eq!(herd.place.picture(), before, "something was written, moved or removed");
}

#[test]
fn the_lease_is_told_in_each_of_its_states() {
    let herd = Herd::new();
    let runtime = herd.runtime();
    durable::ensure_directories(&herd.place.path("home"), runtime.root()).unwrap();
    let hold = |pid: u32, with_descriptor: bool| {
        let text = format!("{{\"pid\":{pid},\"id\":\"{ID}\"}}");
        let claim = Claim::parse_any(text.as_bytes()).unwrap();
        let _ = std::fs::remove_dir_all(runtime.lock());
        durable::create_directory(&runtime.lock()).unwrap();
        durable::create(&runtime.lock().join(claim.file_name()), &claim.to_bytes()).unwrap();
        let descriptor = Descriptor {
            lease: Uuid::random(),
            claim,
            session: SessionId::new("the\u{1b}chief").unwrap(),
            pane: "w9:p9".into(),
            tab: Some("w9:t9".into()),
            workspace: "w9".into(),
            created_at: Timestamp::from_millis(1_700_000_000_000),
        };
        if with_descriptor {
            records::write_descriptor(&runtime, &descriptor).unwrap();
        } else {
            let _ = std::fs::remove_file(runtime.descriptor());
        }
    };
    let state = |expected: &str, level: &str, holds: &str, code: i32| {
        let (ran, report) = doctor(&herd.place);
        assert_eq!(report["lease"]["state"], expected);
        assert_eq!(ran.code, code, "{report}");
        let told = findings(&report, "lease", level);
        assert!(told.iter().any(|line| line.contains(holds)), "{expected}: {told:?}");
        report
    };
    state("free", "ok", "free", 0);
    hold(std::process::id(), true);
    let report = state("held", "ok", "on pane w9:p9", 0);
    assert_eq!(report["lease"]["pid"], f64::from(std::process::id()));
    assert_eq!(report["lease"]["session"], "the\u{1b}chief");
    assert_eq!(report["lease"]["listed_in_herdr"], false);
    assert!(findings(&report, "lease", "ok")[0].contains("2023-11-14 22:13:20Z"));
    hold(std::process::id(), false);
    state("in_progress", "warn", "without a valid descriptor", 0);
    hold(i32::MAX as u32, true);
    state("stale", "warn", "process 2147483647 is gone", 0);
    durable::create(&runtime.lock().join("second"), b"").unwrap();
    state("unverifiable", "bad", "has 2 entries", 1);
}

#[test]
fn a_blocked_inbox_and_what_stands_in_one_are_told() {
    let mut herd = Herd::new();
    herd.agent("s-1", "api", None);
    herd.record("s-1", None);
    let lead = SessionId::new("s-1").unwrap();
    let inbox_dir = herd.runtime().inbox(&lead);
    for nth in 0..32 {
        let old = message("s-1", &format!("old {nth}"));
        put(&herd, &old);
        if nth < 31 {
            inbox::quarantine(&inbox_dir, old.id).unwrap();
        }
    }
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 0, "31 do not block: {report}");
    let inboxes = report["inboxes"]["inboxes"].as_array().unwrap();
    assert_eq!(inboxes.len(), 1);
    assert_eq!(inboxes[0]["session"], "s-1");
    assert_eq!((&inboxes[0]["quarantined"], &inboxes[0]["waiting"]), (&31.into(), &1.into()));

    let last = message("s-1", "the 32nd");
    put(&herd, &last);
    inbox::quarantine(&inbox_dir, last.id).unwrap();
    let bad_name = Uuid::random();
    durable::create(&inbox_dir.message(bad_name), b"no message").unwrap();
    let newer = Uuid::random();
    durable::create(&inbox_dir.message(newer), b"{\"version\":2}").unwrap();
    let link = Uuid::random();
    std::os::unix::fs::symlink("/etc/passwd", inbox_dir.message(link)).unwrap();
    let before = herd.place.picture();
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 1);
    let inbox = &report["inboxes"]["inboxes"][0];
    assert_eq!(inbox["blocked"], true);
    for (key, count) in
        [("quarantined", 32), ("waiting", 1), ("malformed", 1), ("other_release", 1), ("unreadable", 1)]
    {
        assert_eq!(inbox[key], count, "{key}");
    }
    let bad = findings(&report, "inboxes", "bad");
    assert!(
        bad.iter().any(|line| line.contains("s-1 is blocked, if its lead is a Pi: 32 quarantined")),
        "{bad:?}"
    );
    assert!(bad.iter().any(|line| line.contains(&link.to_string()) && line.contains("symlink")), "{bad:?}");
    assert_eq!(herd.place.picture(), before);
}

#[test]
fn modes_that_differ_are_named() {
    let herd = Herd::new();
    herd.record("s-1", None);
    let runtime = herd.runtime();
    chmod(&record_path(&runtime, "s-1"), 0o640);
    chmod(&runtime.leads(), 0o755);
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 0, "readable by others is no fault yet: {report}");
    assert_eq!(report["permissions"]["differing"], 2);
    let told = findings(&report, "permissions", "warn");
    assert!(told.iter().any(|line| line.contains("has mode 0640, 0600 is right")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("has mode 0755, 0700 is right")), "{told:?}");
    chmod(&runtime.leads(), 0o777);
    let (ran, _) = doctor(&herd.place);
    assert_eq!(ran.code, 1);
}

#[test]
fn a_newer_generation_and_another_spelling_are_told() {
    let mut herd = Herd::new();
    herd.agent("strayed", "api", None);
    herd.agent("here", "web", None);
    herd.record("here", None);
    let socket = herd.server.socket().to_str().unwrap().to_owned();
    let spelled = socket.replace("/herdr.sock", "/./herdr.sock");
    let link = herd.place.path("link.sock");
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    let place = |runtime: &Runtime, session: &str| {
        durable::ensure_directories(&herd.place.path("home"), &runtime.leads()).unwrap();
        durable::create(&record_path(runtime, session), lead(session).as_bytes()).unwrap();
    };
    let agent_dir = herd.place.agent_dir();
    // Of another Herdr altogether: none of our business.
    place(&runtime_of(&agent_dir, "/elsewhere/herdr.sock"), "somebody");
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 0, "{report}");

    place(&runtime_of(&agent_dir, &spelled), "strayed");
    let newer = agent_dir.newer_generations();
    durable::ensure_directories(
        &herd.place.path("home"),
        &newer[0].join(herd.runtime().hash()).join("leads"),
    )
    .unwrap();
    durable::create(&newer[0].join(herd.runtime().hash()).join("leads/x.json"), b"{\"version\":2}").unwrap();
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 1);
    let runtimes = report["other_spellings"]["runtimes"].as_array().unwrap();
    assert_eq!(runtimes.len(), 1);
    assert_eq!(runtimes[0]["sessions"], serde_json::json!(["strayed"]));
    assert_eq!(runtimes[0]["spelling"], Value::Null, "that spelling can't be guessed");
    assert_eq!(report["newer_generations"]["found"][0]["records"], 1);
    assert!(findings(&report, "newer_generations", "warn")[0].contains("not supervised"));

    // Found the other way round it can be: the plain one is among what it stands for.
    let ran = herd.place.run(&["doctor", "--json", "--socket", link.to_str().unwrap()]);
    let report = ran.json();
    let runtimes = report["other_spellings"]["runtimes"].as_array().unwrap();
    let here = runtimes.iter().find(|it| it["sessions"] == serde_json::json!(["here"])).unwrap();
    assert_eq!(here["spelling"], *socket);
}

#[test]
fn the_state_directory_and_the_place_in_herdr_are_told() {
    let mut herd = Herd::new();
    let socket = herd.server.socket().to_owned();
    let state =
        headman::chief::state_dir::StateDir::open(&herd.place.state_dir(), socket.as_os_str()).unwrap();
    let identity = state.identity().unwrap();
    durable::create(&state.drafts().join("x.message.json"), b"{}").unwrap();
    let draft = Draft {
        session: SessionId::new("s-1").unwrap(),
        ask: Some(Uuid::random()),
        instance: None,
        lease: None,
        from: None,
        text: "so far".to_owned(),
        at: Timestamp::from_millis(1),
    };
    drafts::save(&state.drafts(), &draft).unwrap();
    for (name, value) in [
        ("HERDR_ENV", "1"),
        ("HERDR_PANE_ID", "w1:p1"),
        ("HERDR_TAB_ID", "w1:t1"),
        ("HERDR_WORKSPACE_ID", "w1"),
    ] {
        herd.place.set(name, value);
    }
    let before = herd.place.picture();
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 0, "{report}");
    assert_eq!(report["state_dir"]["session"], identity.session().as_untrusted().to_str_lossy().as_ref());
    assert_eq!(report["state_dir"]["role"], "lead");
    assert_eq!(report["state_dir"]["drafts"], 1);
    assert!(findings(&report, "state_dir", "warn")[0].contains("x.message.json"));
    assert_eq!(report["terminal"]["can_register"], true);
    assert_eq!(report["terminal"]["pane"]["pane_id"], "w1:p1");
    assert_eq!(herd.place.picture(), before);

    let off = herd.place.run(&["doctor", "--json", "--no-register"]);
    assert!(off.json()["terminal"]["why_not"].as_str().unwrap().starts_with("it is switched off; leave out"));
    herd.place.set("TMUX", "/tmp/tmux,1,0");
    let (_, report) = doctor(&herd.place);
    assert_eq!(report["terminal"]["can_register"], false);
    assert!(
        findings(&report, "terminal", "warn")
            .iter()
            .any(|line| line.contains("start it in a pane without tmux"))
    );
    // Outside of Herdr leads can't write up either: that is never as it should be.
    let (_, report) = doctor(&Place::new());
    let told = findings(&report, "terminal", "warn");
    assert!(
        told.iter().any(|line| line.ends_with("not started in a Herdr pane; start it in one")),
        "{told:?}"
    );
    assert!(findings(&report, "lease", "ok")[0].contains("or run `headman serve`"));

    std::fs::write(herd.place.state_dir().join("VERSION"), "2\n").unwrap();
    let (ran, report) = doctor(&herd.place);
    assert_eq!(ran.code, 1);
    assert!(findings(&report, "state_dir", "bad")[0].contains("version 2"));
}
