use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::chief::attach::FileArgument;
use crate::chief::inquiry::Which;
use crate::chief::staff;
use crate::contract::Untrusted;
use crate::contract::{Claim, Descriptor, Kind, Timestamp, Uuid};
use crate::fact::{Answer, AskTime, Done, Fate, Found, Inquiry, Letter, OtherChief, Query, Until};

/// With what JSON and terminals trip over: a lone surrogate, controls, bidi marks.
fn hostile() -> Untrusted {
    serde_json::from_str(r#""a\ud800\u001b[2J\u202e\u0000\n\"\\""#).unwrap()
}

fn session() -> SessionId {
    SessionId::new(hostile()).unwrap()
}

fn told(fact: &Told) -> Told {
    let line = say(&FromService::Fact(fact.clone())).unwrap();
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(!line.contains(&0x1B));
    match said(std::str::from_utf8(&line).unwrap().trim_end()).unwrap() {
        FromService::Fact(fact) => fact,
        other => panic!("{other:?}"),
    }
}

fn descriptor() -> Box<Descriptor> {
    Box::new(Descriptor {
        lease: Uuid::random(),
        claim: Claim::own(),
        session: session(),
        pane: hostile(),
        tab: Some(hostile()),
        workspace: hostile(),
        created_at: Timestamp::from_millis(1_796_043_600_000),
    })
}

#[test]
fn every_fact_of_the_service_arrives_as_it_was() {
    let at = Timestamp::from_millis(1_796_043_600_000);
    let letter = Letter {
        seq: u64::MAX,
        at,
        id: Uuid::random(),
        kind: Some(Kind::LeadAsk),
        lead: Some(session()),
        ask: Some(Uuid::random()),
        created_at: Some(at),
        preview: hostile(),
        refused: Some("why".to_owned()),
        read: true,
        whole: false,
    };
    let mail = Mail {
        newest: vec![
            letter.clone(),
            Letter { kind: None, lead: None, ask: None, created_at: None, ..letter },
        ],
        total: 2,
        unread: 1,
        unread_by_lead: BTreeMap::from([(session(), 7)]),
        asks: vec![AskTime { lead: session(), ask: Uuid::random(), at }],
        kept: vec!["kept".to_owned()],
        stopped: Some("stopped".to_owned()),
        ..Mail::default()
    };
    let sent = Sent {
        id: Uuid::random(),
        kind: Kind::ChiefReply,
        lead: session(),
        ask: Some(Uuid::random()),
        text: hostile(),
        at,
        fate: Fate::Unknown,
    };
    let standings = [
        Standing::Starting,
        Standing::Chief { lease: Uuid::random(), since: at },
        Standing::Observer { chief: OtherChief::None, refused: Some("no".to_owned()) },
        Standing::Suspended(OtherChief::Held(descriptor())),
        Standing::Suspended(OtherChief::OwnConsole(descriptor())),
        Standing::Lost { reason: "lost".to_owned(), chief: OtherChief::InProgress },
        Standing::Suspended(OtherChief::InProgressBy(7)),
        Standing::Lost { reason: "lost".to_owned(), chief: OtherChief::Unverifiable("?".to_owned()) },
    ];
    for standing in standings {
        assert!(matches!(told(&Told::Standing(standing.clone())), Told::Standing(it) if it == standing));
    }
    assert!(matches!(told(&Told::Mail(Arc::new(mail.clone()))), Told::Mail(it) if *it == mail));
    assert!(matches!(told(&Told::Sent(sent.clone())), Told::Sent(it) if it == sent));
    let found = Found { seqs: vec![3, 1], rest: Some(1) };
    let answers = [Answer::Text(hostile()), Answer::Letters(mail.newest.clone()), Answer::Found(found)];
    for result in answers.into_iter().map(Ok).chain([Err("no".to_owned())]) {
        let answered = Answered { ticket: 3, result };
        assert!(matches!(told(&Told::Answered(answered.clone())), Told::Answered(it) if it == answered));
    }
    let counts = SentCounts::from([(session(), BTreeMap::from([(Fate::Queued, 2), (Fate::Delivered, 7)]))]);
    assert!(matches!(told(&Told::SentCounts(counts.clone())), Told::SentCounts(it) if it == counts));
    let snoozes = [Until::Change, Until::At(at)].map(|until| Snooze {
        lead: session(),
        ask: Uuid::random(),
        at,
        until,
    });
    let snoozes = Arc::new(snoozes.to_vec());
    assert!(matches!(told(&Told::Snoozes(Arc::clone(&snoozes))), Told::Snoozes(it) if it == snoozes));
    for result in [Ok(Done::Sent(Uuid::random())), Ok(Done::Left), Ok(Done::Snoozed), Err("no".to_owned())] {
        let outcome = Outcome { ticket: u64::MAX, result };
        assert!(matches!(told(&Told::Outcome(outcome.clone())), Told::Outcome(it) if it == outcome));
    }
    for registration in [
        Registration::Registered,
        Registration::NotTried { why: "no pane".to_owned() },
        Registration::Failed { why: "no".to_owned() },
    ] {
        assert!(matches!(
            told(&Told::Registration(registration.clone())),
            Told::Registration(it) if it == registration
        ));
    }
}

#[test]
fn every_request_arrives_as_it_was() {
    use std::os::unix::ffi::OsStringExt;
    let name = std::ffi::OsString::from_vec(b"/srv/\xFF.txt".to_vec());
    let letter = staff::Letter {
        lead: session(),
        instance: Uuid::random(),
        lease: Uuid::random(),
        text: hostile(),
        files: vec![FileArgument::new(name, "/srv")],
        id: Some(Uuid::random()),
    };
    let reply = staff::Reply {
        lead: session(),
        instance: Uuid::random(),
        ask: Uuid::random(),
        question: hostile(),
        lease: Uuid::random(),
        text: hostile(),
        files: Vec::new(),
        id: None,
    };
    let all = [
        Request::BecomeChief { ticket: 1 },
        Request::Leave { ticket: 2 },
        Request::Reply { ticket: 3, reply },
        Request::Message { ticket: u64::MAX, letter },
        Request::SendAgain { ticket: 5, lead: session(), id: Uuid::random() },
        Request::Inquire { ticket: 6, inquiry: Inquiry::Letters(vec![1, 2]) },
        Request::Inquire {
            ticket: 7,
            inquiry: Inquiry::Find {
                query: Query { lead: Some(session()), unread: true, text: Some("x".to_owned()) },
                below: u64::MAX,
                above: 0,
            },
        },
        Request::Mark { ticket: 8, which: Which::Lead(session()), read: false },
        Request::Snooze { ticket: 9, lead: session(), ask: Uuid::random(), until: Some(Until::Change) },
        Request::Snooze { ticket: 9, lead: session(), ask: Uuid::random(), until: None },
        Request::Focus { ticket: 4, pane: hostile() },
        Request::Waiting(true),
        Request::RegisterAgain,
    ];
    for request in all {
        let wanted = format!("{request:?}");
        let line = ask(request).unwrap();
        let found = asked(std::str::from_utf8(&line).unwrap()).unwrap();
        assert_eq!(format!("{found:?}"), wanted);
    }
    let shutdown = Request::Shutdown(tokio::sync::oneshot::channel().0);
    assert!(matches!(ask(shutdown), Err(WireError::Unwritable(_))));
}

#[test]
fn a_hello_says_how_often_it_comes_again_or_nothing_of_that() {
    for (line, again_ms) in [
        (r#"{"v":1,"hello":{"pid":7,"release":"0.1.0","session":"s","again_ms":1000}}"#, Some(1000)),
        (r#"{"v":1,"hello":{"pid":7,"release":"0.1.0","session":"s"}}"#, None),
        (r#"{"v":1,"hello":{"pid":7,"release":"9.1.0","session":"s","again_ms":null,"later":[]}}"#, None),
    ] {
        assert!(
            matches!(said(line).unwrap(), FromService::Hello(hello) if hello.again_ms == again_ms),
            "{line}"
        );
    }
    // What is asked under no id of its own, as before there were such.
    let letter = format!(
        r#"{{"v":1,"request":{{"message":{{"ticket":1,"letter":{{"lead":"s","instance":"{0}","lease":"{0}","text":"x","files":[]}}}}}}}}"#,
        Uuid::random()
    );
    assert!(matches!(asked(&letter).unwrap(), Request::Message { letter, .. } if letter.id.is_none()));
}

#[test]
fn what_is_not_understood_is_told() {
    assert_eq!(asked(r#"{"v":2,"request":"register_again"}"#).unwrap_err(), WireError::Version(2));
    for line in [
        "",
        "null",
        "[]",
        r#"{"v":1}"#,
        r#"{"v":1,"request":"shutdown"}"#,
        r#"{"v":1,"request":{"shutdown":null}}"#,
        r#"{"v":1,"request":{"become_chief":{}}}"#,
        r#"{"v":1,"request":{"leave":{"ticket":-1}}}"#,
        r#"{"v":1,"request":{"message":{"ticket":1,"letter":{"lead":""}}}}"#,
    ] {
        assert!(matches!(asked(line), Err(WireError::Malformed(_))), "{line}");
    }
    for line in [r#"{"v":1}"#, r#"{"v":1,"fact":{"sent":{}}}"#, r#"{"v":1,"hello":{"pid":-1}}"#] {
        assert!(said(line).is_err(), "{line}");
    }
}

proptest! {
    #[test]
    fn no_line_makes_a_reader_panic(line in ".{0,200}") {
        let _ = asked(&line);
        let _ = said(&line);
    }

    #[test]
    fn nor_does_one_that_begins_well(rest in r#"[\[\]{}":,a-z0-9_ \\u]{0,80}"#) {
        let _ = asked(&format!(r#"{{"v":1,"request":{rest}"#));
        let _ = said(&format!(r#"{{"v":1,"fact":{rest}"#));
    }
}
