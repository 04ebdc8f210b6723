//! `headman list` and `headman reply` against a simulated Herdr and real records.

use headman::chief::journal::{Event, Journal};
use headman::chief::lease::{Lease, Place as Seat};
use headman::chief::state_dir::StateDir;
use headman::contract::role::Role;
use headman::contract::{Kind, LeadRecord, Message, SessionId, Timestamp, Uuid};
use headman::demo::server::Fault;
use headman::disk::inbox::{self, Content};
use headman::disk::records::{self, Holding};
use headman::fact::Fate;

use crate::cli_support::{Herd, Place, until};

const ASK: &str = "99999999-8888-4777-a666-555555555555";

fn ask() -> Uuid {
    Uuid::parse(ASK).unwrap()
}

#[test]
fn the_leads_are_listed_and_nothing_is_written() {
    let mut herd = Herd::new();
    herd.agent("s-1", "api", Some("auth"));
    let tower = format!("e{}", "\u{301}".repeat(40));
    herd.agent("s-2", &format!("web\u{1b}]0;x\u{7}\u{202e}{tower}"), None);
    herd.agent("no record", "ops", None);
    herd.record("s-1", None);
    herd.record("s-2", Some((ask(), "May I\u{9b}2J \u{200b}go on?")));
    let before = herd.place.picture();

    let ran = herd.place.run(&["list", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.assert_harmless();
    let list = ran.json();
    let leads = list["leads"].as_array().unwrap();
    assert_eq!(leads.len(), 2);
    let one = leads.iter().find(|lead| lead["session"] == "s-1").unwrap();
    assert_eq!(one["workspace_label"], "api/auth");
    assert_eq!(one["runtime_state"], "working");
    assert_eq!(one["needs_you"], false);
    let two = leads.iter().find(|lead| lead["session"] == "s-2").unwrap();
    assert_eq!(two["needs_you"], true);
    assert_eq!(two["pending_ask_id"], ASK);
    assert_eq!(two["pending_ask_question"], "May I\u{9b}2J \u{200b}go on?", "exact, though escaped");
    let diagnostics = list["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(
        (&diagnostics[0]["reason"], &diagnostics[0]["session"]),
        (&"no_record".into(), &"no record".into())
    );

    let ran = herd.place.run(&["list"]);
    assert_eq!(ran.code, 0);
    ran.assert_harmless();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "NEEDS YOU");
    assert!(ran.stdout.contains("api/auth/"), "{}", ran.stdout);
    assert!(ran.stdout.contains("LEFT OUT"), "{}", ran.stdout);
    assert_eq!(herd.place.picture(), before, "list wrote something");
}

#[test]
fn the_columns_of_a_list_are_aligned() {
    let mut herd = Herd::new();
    for (session, label) in [("s-1", "api"), ("s-2", "storefront-of-the-shop"), ("s-3", "übersetzung-翻訳")]
    {
        herd.agent(session, label, Some("main"));
        herd.record(session, None);
    }
    let ran = herd.place.run(&["list"]);
    let columns: Vec<usize> = (ran.stdout.lines())
        .filter_map(|line| Some(headman::console::text::line(&line[..line.find("  working")?]).width()))
        .collect();
    assert_eq!(columns.len(), 3, "{}", ran.stdout);
    assert!(columns.iter().all(|column| *column == columns[0]), "{}", ran.stdout);
}

#[test]
fn the_beginning_of_a_session_and_of_an_ask_is_enough_if_no_other_begins_so() {
    let mut herd = Herd::new();
    let asking = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let other = "01a22b77-5555-7241-9ef5-b7ff2b23890b";
    for (session, label) in [(asking, "api"), (other, "web")] {
        herd.agent(session, label, None);
    }
    herd.record(asking, Some((ask(), "Go on?")));
    herd.record(other, None);
    let lead = SessionId::new(asking).unwrap();
    for (session, ask, code, why) in [
        ("01a22b77-", "99999999", 1, "2 leads' sessions begin so: "),
        ("01a22b7", "99999999", 1, "is no lead that Herdr shows"),
        ("01a22b77-3", "9999999", 2, "no ask id"),
        ("01a22b77-3", "99999999-9", 1, "asks something else now"),
    ] {
        let ran = herd.place.run(&["reply", session, ask, "--take-lease", "--wait", "0", "yes"]);
        assert_eq!(ran.code, code, "{session} {ask}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{session} {ask}: {}", ran.stderr);
        assert_eq!(inbox::list(&herd.runtime().inbox(&lead)).unwrap(), []);
    }
    let ran = herd.place.run(&[
        "reply",
        "01a22b77-3",
        "99999999-8",
        "--take-lease",
        "--wait",
        "0",
        "--json",
        "yes",
    ]);
    assert_eq!(ran.code, 1, "not taken: {}", ran.stderr);
    assert_eq!((&ran.json()["session"], &ran.json()["ask_id"]), (&asking.into(), &ASK.into()));
    assert_eq!(inbox::list(&herd.runtime().inbox(&lead)).unwrap().len(), 1);
}

#[test]
fn the_chief_itself_is_no_lead_and_no_riddle() {
    let mut herd = Herd::new();
    let state = StateDir::open(&herd.place.state_dir(), herd.server.socket().as_os_str()).unwrap();
    let us = state.identity().unwrap().session();
    let us = us.as_untrusted().to_str_lossy().into_owned();
    herd.agent(&us, "ops", None);
    let list = herd.place.run(&["list", "--json"]).json();
    assert_eq!(list["diagnostics"][0]["reason"], "is_chief");
}

#[test]
fn without_herdr_it_says_what_was_looked_for() {
    let place = Place::new();
    let ran = place.run(&["list", "--json"]);
    assert_eq!(ran.code, 4);
    assert_eq!(ran.json()["error"]["code"], "no_socket");
    assert!(ran.stderr.contains("home/.config/herdr/herdr.sock (the default"), "{}", ran.stderr);
    assert!(ran.stderr.contains("headman demo"), "{}", ran.stderr);
    assert!(!place.state_dir().exists());

    let ran = place.run(&["list", "--socket", "\u{1b}[2J.sock"]);
    assert_eq!(ran.code, 4);
    ran.assert_harmless();
    assert!(ran.stderr.contains("named by --socket"));
}

#[test]
fn a_herdr_that_fails_is_told_apart() {
    let herd = Herd::new();
    for (fault, code) in [
        (Fault::Refuse, "herdr_refused"),
        (Fault::Silent, "herdr_timed_out"),
        (Fault::Cut, "herdr_closed"),
        (Fault::Garbage(b"\x1b]0;x\x07 no json\n".to_vec()), "herdr_garbage"),
        (
            Fault::Error { code: "server_unavailable".into(), message: "\u{1b}[31mno. way".into() },
            "herdr_error",
        ),
    ] {
        herd.block_on(herd.server.set_fault(fault.clone())).unwrap();
        let ran = herd.place.run(&["list", "--json"]);
        assert_eq!(ran.code, 4, "{fault:?}");
        assert_eq!(ran.json()["error"]["code"], code, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("headman: can't list the leads: "), "{}", ran.stderr);
        ran.assert_harmless();
    }
    herd.block_on(herd.server.set_fault(Fault::None)).unwrap();
    herd.server.set_protocol(9);
    let ran = herd.place.run(&["list", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (4, &"herdr_too_old".into()));
}

#[test]
fn lead_records_that_can_not_be_read_at_all_are_a_failure() {
    let herd = Herd::new();
    let leads = herd.runtime().leads();
    std::fs::create_dir_all(leads.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/tmp", &leads).unwrap();
    let ran = herd.place.run(&["list", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (4, &"disk".into()));
    assert!(ran.stderr.contains("symbolic link"), "{}", ran.stderr);
}

/// A lead that takes what stands in its inbox; then it goes on, or keeps asking.
fn take_reply(herd: &Herd, record: &LeadRecord, goes_on: bool) -> Message {
    let inbox_dir = herd.runtime().inbox(&record.session);
    let mut found = None;
    until("the reply", || {
        let entries = inbox::list(&inbox_dir).unwrap();
        found = entries.into_iter().find_map(|entry| match entry.content {
            Content::Valid(message) if message.kind == Kind::ChiefReply => Some(*message),
            _ => None,
        });
        found.is_some()
    });
    let message = found.unwrap();
    if goes_on {
        herd.write(&LeadRecord { pending_ask: None, ..record.clone() });
    }
    // Whoever published it may still hold its lock.
    until("the reply's lock", || inbox::remove(&inbox_dir, message.id).is_ok());
    message
}

fn asking() -> (Herd, LeadRecord) {
    let mut herd = Herd::new();
    herd.agent("s-1", "api", None);
    let record = herd.record("s-1", Some((ask(), "Go on?")));
    (herd, record)
}

fn is_free(herd: &Herd) -> bool {
    records::read_holding(&herd.runtime()).unwrap() == Holding::Free && !herd.runtime().descriptor().exists()
}

fn role(herd: &Herd) -> Option<Role> {
    let state = StateDir::at(&herd.place.state_dir(), herd.server.socket().as_os_str());
    state.known_identity().unwrap().map(|identity| identity.role)
}

#[test]
fn a_reply_needs_a_chief() {
    let (herd, record) = asking();
    let before = herd.place.picture();
    let ran = herd.place.run(&["reply", "s-1", ASK, "yes", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (3, &"not_chief".into()));
    assert!(ran.stderr.contains("--take-lease"), "{}", ran.stderr);
    assert_eq!(herd.place.picture(), before);

    // Somebody else is.
    let runtime = herd.runtime();
    let chief = SessionId::new("other\u{1b}chief").unwrap();
    let lease = Lease::claim(
        &runtime,
        &herd.place.agent_dir().data_root(),
        &herd.place.path("sidecar"),
        &chief,
        &Seat { pane: "w7:p7".into(), tab: "w7:t7".into(), workspace: "w7".into() },
        Timestamp::from_millis(1),
    )
    .unwrap();
    for arguments in [&["reply", "s-1", ASK, "yes"][..], &["reply", "s-1", ASK, "yes", "--take-lease"]] {
        let ran = herd.place.run(arguments);
        assert_eq!(ran.code, 3);
        ran.assert_harmless();
        let pid = std::process::id().to_string();
        for holds in ["other", "w7:p7", pid.as_str()] {
            assert!(ran.stderr.contains(holds), "{holds}: {}", ran.stderr);
        }
    }
    assert_eq!(lease.check().unwrap(), Ok(()), "it was not disturbed");
    lease.release().unwrap();
    assert_eq!(inbox::list(&runtime.inbox(&record.session)).unwrap(), []);
}

/// An earlier reply of ours to the same ask, which becomes answered together with the next one: that is
/// none of what is told of the next one.
fn taken_earlier(herd: &Herd, record: &LeadRecord) {
    let state = StateDir::open(&herd.place.state_dir(), herd.server.socket().as_os_str()).unwrap();
    let message = Message {
        id: Uuid::parse("ffffffff-ffff-4fff-bfff-ffffffffffff").unwrap(),
        lease: Uuid::random(),
        kind: Kind::ChiefReply,
        from: state.identity().unwrap().session(),
        to: record.session.clone(),
        lead: record.session.clone(),
        ask: Some(ask()),
        text: "earlier".into(),
        created_at: Timestamp::from_millis(1),
    };
    let mut journal = Journal::open(&state.journal()).unwrap();
    let fate = Event::Fate { id: message.id, fate: Fate::Taken };
    journal.append(&[Event::Sent(&message), fate], message.created_at).unwrap();
}

#[test]
fn a_reply_with_the_lease_taken_is_delivered_and_the_lease_given_back() {
    let (herd, record) = asking();
    taken_earlier(&herd, &record);
    let child = herd.place.start(&["reply", "s-1", ASK, "--take-lease", "--json", "yes, ünd more"]);
    // While the message stands there: once it is taken, the lease may be gone any time.
    let inbox_dir = herd.runtime().inbox(&record.session);
    until("the reply", || !inbox::list(&inbox_dir).unwrap().is_empty());
    let Ok(Holding::Held(descriptor)) = records::read_holding(&herd.runtime()) else {
        panic!("no lease held")
    };
    let message = take_reply(&herd, &record, true);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(message.text, "yes, ünd more");
    assert_eq!(message.ask, Some(ask()));
    assert_eq!(message.lease, descriptor.lease);
    assert_eq!(message.from, descriptor.session);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["id"], message.id.to_string());
    assert_eq!(told["fate"], "answered");
    assert_eq!(told["session"], "s-1");
    assert_eq!(told["ask_id"], ASK);
    assert!(is_free(&herd));
    assert_eq!(role(&herd), Some(Role::Lead), "the next console does not start as Chief for this");
}

#[test]
fn a_reply_that_is_taken_or_not_in_time_says_so() {
    let (herd, record) = asking();
    let child = herd.place.start(&["reply", "s-1", ASK, "--take-lease", "--wait", "20s", "yes"]);
    take_reply(&herd, &record, false);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains(" taken: "), "{output:?}");

    let ran = herd.place.run(&["reply", "s-1", ASK, "--take-lease", "--wait", "50ms", "yes"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains(" queued: "), "{}", ran.stdout);
    assert_eq!(
        inbox::list(&herd.runtime().inbox(&record.session)).unwrap().len(),
        1,
        "it stays for the lead"
    );
    assert!(is_free(&herd));

    // What that left is named before the next lease makes it void.
    let ran = herd.place.run_with(&["reply", "s-1", ASK, "--take-lease", "--wait", "0", "-"], b"again\n");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("taking the lease voids message "), "{}", ran.stderr);
    let entries = inbox::list(&herd.runtime().inbox(&record.session)).unwrap();
    let texts: Vec<String> = (entries.iter())
        .map(|entry| match &entry.content {
            Content::Valid(message) => message.text.to_str_lossy().into_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(texts.contains(&"again".to_owned()), "without the newline that echo adds: {texts:?}");

    // The third makes only the second void: the first has been void since that, and was named then.
    let ran = herd.place.run(&["reply", "s-1", ASK, "--take-lease", "--wait", "0", "once more"]);
    let voided: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("voids")).collect();
    assert_eq!(voided.len(), 1, "{}", ran.stderr);
    let second = entries.iter().find_map(|entry| match &entry.content {
        Content::Valid(message) if message.text == "again" => Some(message.id.to_string()),
        _ => None,
    });
    assert!(voided[0].contains(&second.unwrap()), "{}", ran.stderr);
}

#[test]
fn a_reply_to_nobody_or_to_no_ask_voids_nothing() {
    let (herd, record) = asking();
    let other_ask = Uuid::random().to_string();
    let long = "x".repeat(9_000);
    let huge = "x".repeat(70_000);
    for (session, ask, text, code, why) in [
        ("nobody", ASK, "yes", 1, "is no lead that Herdr shows"),
        ("s-1", &*other_ask, "yes", 1, "asks something else now"),
        ("s-1", ASK, &*huge, 2, "too long"),
        ("s-1", ASK, &*long, 1, "8192 are allowed"),
    ] {
        let ran = herd.place.run(&["reply", session, ask, "--take-lease", text]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert!(is_free(&herd));
        let state = StateDir::at(&herd.place.state_dir(), herd.server.socket().as_os_str());
        assert!(!state.sidecar().exists(), "the lease was taken for it");
    }
    let ran = herd.place.run_with(&["reply", "s-1", ASK, "--take-lease", "-"], b"\xff\xfe");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("not UTF-8"));
    herd.write(&LeadRecord { pending_ask: None, ..record.clone() });
    let ran = herd.place.run(&["reply", "s-1", ASK, "--take-lease", "yes"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("asks nothing now"), "{}", ran.stderr);
    assert_eq!(inbox::list(&herd.runtime().inbox(&record.session)).unwrap(), []);
    assert_ne!(role(&herd), Some(Role::Chief));
}

#[test]
fn files_go_with_a_reply_or_nothing_is_voided_for_it() {
    let (herd, record) = asking();
    let here = herd.place.dir.path().canonicalize().unwrap();
    std::fs::write(here.join("a.md"), "hello\n").unwrap();
    std::fs::write(here.join("-b\u{1b}"), b"\xff").unwrap();
    let config = herd.place.agent_dir().data_root().join("config.json");
    let of_nobody = "result:0123abcd-1111-4222-8333-444444444444";
    for (file, limit, code, kind, why) in [
        ("none", "8192", 4, "disk", "can't attach none: it is not there. Name a file"),
        ("", "8192", 4, "disk", "not a regular file"),
        ("result:nope", "8192", 2, "usage", "lower-case UUID"),
        ("result:writer#1", "8192", 2, "usage", "within one Pi session"),
        (of_nobody, "8192", 1, "not_found", "no such result"),
        ("a.md", "1e9", 2, "configuration", "`mailboxPayloadLimitBytes`"),
    ] {
        std::fs::write(&config, format!("{{\"mailboxPayloadLimitBytes\":{limit}}}")).unwrap();
        let ran = herd.place.run(&["reply", "s-1", ASK, "yes", "--take-lease", "--json", "--file", file]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (code, &kind.into()), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
        let state = StateDir::at(&herd.place.state_dir(), herd.server.socket().as_os_str());
        assert!(is_free(&herd) && !state.sidecar().exists(), "the lease was taken for it");
    }
    std::fs::remove_file(&config).unwrap();

    let files = ["--file", "a.md", "--file=-b\u{1b}", "--file", "./a.md"];
    let arguments = [&["reply", "s-1", ASK, "--take-lease"][..], &files, &["yes"]].concat();
    let child = herd.place.start(&arguments);
    let message = take_reply(&herd, &record, true);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("goes by its path and size, because it is not text"), "{told}");
    assert!(!told.contains('\u{1b}'), "{told:?}");
    let here = here.to_str().unwrap();
    let expected = format!(
        "<file name=\"{here}/a.md\" bytes=\"6\">\nhello\n\n</file>\n\n\
         <file name=\"{here}/-b&#x1b;\" bytes=\"1\" />\n\nReply:\nyes"
    );
    assert_eq!(message.text, expected.as_str());
}

#[test]
fn interrupted_it_gives_the_lease_back() {
    let (herd, _) = asking();
    let child = herd.place.start(&["reply", "s-1", ASK, "--take-lease", "--wait", "20s", "yes"]);
    let lead = SessionId::new("s-1").unwrap();
    until("the reply", || !inbox::list(&herd.runtime().inbox(&lead)).unwrap().is_empty());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(is_free(&herd));
}
