//! One message under one id: sent again by whoever does not know what became of it, it is not sent
//! twice, whenever the Chief was stopped or killed.

use std::io::Write;

use headman::chief::journal::Journal;
use headman::chief::state_dir::StateDir;
use headman::contract::{Kind, Message, SessionId, Timestamp, Uuid};
use headman::disk::records::{self, Holding};
use headman::disk::{durable, inbox};

use rustix::process::Signal;

use crate::cli_support::{Herd, Ran, until};
use crate::control::{ASK, Serve, herd, inbox_of, take_all};

const ID: &str = "0b9d2b1c-6f43-4c5e-9c0a-8a5d4d9f7e10";

fn send(herd: &Herd, arguments: &[&str]) -> Ran {
    let arguments = [arguments, &["--id", ID, "--json"]].concat();
    herd.place.run(&arguments)
}

fn refused(ran: &Ran) -> String {
    assert_eq!(ran.code, 1, "{} {}", ran.stdout, ran.stderr);
    let error = ran.json()["error"].clone();
    assert_eq!(error["code"], "refused", "{error}");
    error["message"].as_str().unwrap().to_owned()
}

/// How many messages were ever journalled, but for those that went in place of others.
fn ever_sent(herd: &Herd) -> usize {
    let state = StateDir::at(&herd.place.state_dir(), herd.server.socket().as_os_str());
    let journal = Journal::open(&state.journal()).unwrap();
    journal.index().sent().filter(|entry| entry.again.is_none()).count()
}

/// Those that the lead takes under the lease that stands.
fn valid(herd: &Herd) -> Vec<Message> {
    let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    inbox_of(herd, "s-1").into_iter().filter(|message| message.lease == chief.lease).collect()
}

#[test]
fn the_same_id_is_sent_once_and_another_message_under_it_is_refused() {
    let mut herd = herd();
    herd.agent("s-2", "web", None);
    herd.record("s-2", None);
    let serve = Serve::start(&herd);
    for _ in 0..3 {
        let ran = send(&herd, &["message", "s-1", "hello"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!((&ran.json()["id"], &ran.json()["fate"]), (&ID.into(), &"queued".into()));
    }
    let queued = inbox_of(&herd, "s-1");
    assert_eq!((queued.len(), queued[0].id), (1, Uuid::parse(ID).unwrap()));
    for other in
        [&["message", "s-1", "goodbye"][..], &["message", "s-2", "hello"], &["reply", "s-1", ASK, "hello"]]
    {
        let why = refused(&send(&herd, other));
        assert!(why.contains(&format!("another message was sent under the id {ID}")), "{why}");
    }
    let ran = herd.place.run(&["message", "s-1", "hello", "--id", "no-uuid"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("a UUID of version 1 to 5 is needed"), "{}", ran.stderr);
    // As other programs write it.
    let ran = herd.place.run(&["message", "s-1", "hello", "--id", &ID.to_uppercase()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ever_sent(&herd), 1);

    // What became of it is told when the lead is away, too.
    take_all(&herd, "s-1");
    until("it to be taken", || send(&herd, &["message", "s-1", "hello"]).json()["fate"] == "taken");
    std::fs::remove_file(crate::cli_support::record_path(&herd.runtime(), "s-1")).unwrap();
    assert_eq!(send(&herd, &["message", "s-1", "hello"]).json()["fate"], "taken");
    assert_eq!(herd.place.run(&["message", "s-1", "hello"]).code, 1);
    assert_eq!((ever_sent(&herd), inbox_of(&herd, "s-1").len()), (1, 0));
    assert_eq!(serve.end().0, 0);
    assert_eq!(send(&herd, &["message", "s-1", "hello"]).code, 3, "only a Chief says what became of it");
}

#[test]
fn a_reply_is_asked_after_by_its_id_once_the_ask_is_gone() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let reply = ["reply", "s-1", &ASK[..8], "Rotate"];
    for _ in 0..2 {
        let ran = send(&herd, &reply);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!((&ran.json()["id"], &ran.json()["ask_id"]), (&ID.into(), &ASK.into()));
    }
    assert_eq!(inbox_of(&herd, "s-1").len(), 1);
    take_all(&herd, "s-1");
    herd.record("s-1", None);
    until("it to be answered", || send(&herd, &reply).json()["fate"] == "answered");
    assert!(refused(&send(&herd, &["reply", "s-1", ASK, "Drop it"])).contains("another message"));
    assert_eq!((ever_sent(&herd), inbox_of(&herd, "s-1").len()), (1, 0));
    assert_eq!(serve.end().0, 0);
}

/// Has Herdr list the lead by a session file, in which what it was given can be looked for.
#[cfg(debug_assertions)]
fn with_a_session_file() -> Herd {
    let mut herd = Herd::new();
    let pane = herd.agent("s-1", "api", Some("auth"));
    herd.record("s-1", Some((Uuid::parse(ASK).unwrap(), "Rotate them?")));
    let file = herd.place.path("s-1.jsonl");
    let header = serde_json::json!({"type": "session", "version": 3, "id": "s-1",
        "timestamp": "2026-11-30T08:00:00.000Z", "cwd": "/"});
    std::fs::write(&file, format!("{header}\n")).unwrap();
    let client = headman::herdr::Client::new(herd.server.socket().to_owned());
    let params = serde_json::json!({"pane_id": pane, "source": "herdr:pi", "agent": "pi", "state": "idle",
        "seq": 1_000_000, "agent_session_path": file});
    herd.block_on(client.request("pane.report_agent_session", params)).unwrap();
    until("the session file", || {
        let (agents, _) = herd.block_on(client.agent_list()).unwrap();
        let sessions = agents.into_iter().filter_map(|agent| agent.agent_session);
        sessions.into_iter().any(|session| session.value == file.to_str().unwrap())
    });
    herd
}

#[cfg(debug_assertions)]
#[test]
fn a_chief_that_is_killed_while_it_sends_is_asked_again_by_the_id_and_its_message_comes_once() {
    let (message, reply) =
        (["message", "s-1", "hello"].as_slice(), ["reply", "s-1", ASK, "Rotate"].as_slice());
    for (arguments, at) in [
        (message, "send:journalled"),
        (message, "publish:placed"),
        (message, "send:published"),
        (reply, "send:journalled"),
        (reply, "send:published"),
    ] {
        let herd = with_a_session_file();
        let mut command = herd.place.command(&["serve"]);
        command.env(headman::disk::crash::VARIABLE, at);
        let serve = Serve::run(&herd, command.spawn().unwrap());
        let ran = herd.place.run(&[arguments, &["--json"]].concat());
        let error = ran.json()["error"].clone();
        assert_eq!((ran.code, &error["code"]), (1, &"unknown".into()), "{at}: {error}");
        let id = error["id"].as_str().unwrap().to_owned();
        assert!(error["hint"].as_str().unwrap().contains(&format!("again with --id {id}")), "{error}");
        drop(serve);

        let serve = Serve::start(&herd);
        let again = || {
            let ran = herd.place.run(&[arguments, &["--json", "--id", &id]].concat());
            assert_eq!(
                (ran.code, &ran.json()["fate"]),
                (0, &"queued".into()),
                "{at}: {} {}",
                ran.stdout,
                ran.stderr
            );
            ran.json()["id"].as_str().unwrap().to_owned()
        };
        again();
        // The lead discards what is void; then it goes again, under the lease that stands.
        let valid_now = valid(&herd);
        let inbox = herd.runtime().inbox(&SessionId::new("s-1").unwrap());
        for void in inbox_of(&herd, "s-1").iter().filter(|it| !valid_now.contains(it)) {
            inbox::remove(&inbox, void.id).unwrap();
        }
        until("it under the new lease", || !valid(&herd).is_empty());
        let told = again();
        let queued = inbox_of(&herd, "s-1");
        assert_eq!((queued.len(), queued[0].id.to_string(), ever_sent(&herd)), (1, told, 1), "{at}");
        assert_eq!(serve.end().0, 0);
    }
}

#[test]
fn what_a_stopped_chief_was_asked_is_done_once_when_it_goes_on_or_by_the_next() {
    for goes_on in [true, false] {
        let herd = herd();
        let lead = herd.record("s-1", None);
        let serve = Serve::start(&herd);
        let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
        let (mut stream, _reader) = serve.connect();
        serve.signal(Signal::STOP);
        let letter = serde_json::json!({"lead": "s-1", "instance": lead.instance, "lease": chief.lease,
            "text": "hello", "files": [], "id": ID});
        let asked = serde_json::json!({"v": 1, "request": {"message": {"ticket": 1, "letter": letter}}});
        stream.write_all(format!("{asked}\n").as_bytes()).unwrap();
        assert_eq!(send(&herd, &["message", "s-1", "hello"]).json()["error"]["code"], "chief_silent");
        assert_eq!(inbox_of(&herd, "s-1"), []);
        let serve = match goes_on {
            true => {
                serve.signal(Signal::CONT);
                serve
            }
            false => {
                drop(serve);
                Serve::start(&herd)
            }
        };
        for _ in 0..2 {
            let ran = send(&herd, &["message", "s-1", "hello"]);
            assert_eq!((ran.code, &ran.json()["id"]), (0, &ID.into()), "{}", ran.stderr);
        }
        assert_eq!((ever_sent(&herd), valid(&herd).len()), (1, 1), "{goes_on}");
        assert_eq!(serve.end().0, 0);
    }
}

#[test]
fn what_could_not_be_put_into_the_inbox_is_sent_by_asking_again() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let inbox = herd.runtime().inbox(&SessionId::new("s-1").unwrap());
    durable::ensure_directories(&herd.place.path("home"), inbox.path().parent().unwrap()).unwrap();
    std::fs::write(inbox.path(), "no directory").unwrap();
    for _ in 0..2 {
        let ran = send(&herd, &["message", "s-1", "hello"]);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
    }
    std::fs::remove_file(inbox.path()).unwrap();
    for _ in 0..2 {
        let ran = send(&herd, &["message", "s-1", "hello"]);
        assert_eq!((ran.code, &ran.json()["fate"]), (0, &"queued".into()), "{}", ran.stderr);
    }
    assert_eq!(inbox_of(&herd, "s-1").len(), 1);
    assert_eq!(serve.end().0, 0);
}

#[test]
fn an_id_under_which_the_inbox_has_something_else_is_refused() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    let lead = SessionId::new("s-1").unwrap();
    let message = Message {
        id: Uuid::parse(ID).unwrap(),
        lease: chief.lease,
        kind: Kind::ChiefMessage,
        from: SessionId::new("another").unwrap(),
        to: lead.clone(),
        lead: lead.clone(),
        ask: None,
        text: "not ours".into(),
        created_at: Timestamp::from_millis(1_796_043_600_000),
    };
    let inbox = herd.runtime().inbox(&lead);
    inbox::publish(herd.place.agent_dir().path(), &inbox, &message).unwrap();
    assert!(refused(&send(&herd, &["message", "s-1", "hello"])).contains("something else under the id"));
    assert_eq!(inbox_of(&herd, "s-1"), [message]);
    assert_eq!((ever_sent(&herd), serve.end().0), (0, 0));
}
