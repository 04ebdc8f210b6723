//! What is left out and why, and where the leads stand.

use std::collections::{BTreeSet, HashSet};

use headman::cli::roster::{Form, run};
use headman::contract::{LeadRecord, PendingAsk, SessionId, Timestamp, Uuid};
use headman::herd::evidence::{BrokenMailbox, UnreadableRecord};
use headman::herd::order::{self, Group};
use headman::herd::{
    AgentSession, Evidence, Lead, LiveAgent, ManagedAgent, Provenance, Roster, State, project,
};

pub(crate) fn record(session: &str) -> LeadRecord {
    LeadRecord {
        instance: Uuid::parse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee").unwrap(),
        session: SessionId::new(session).unwrap(),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    }
}

pub(crate) fn agent(session: &str, pane: &str) -> LiveAgent {
    LiveAgent {
        workspace: Some("w".into()),
        tab: Some("t".into()),
        pane: Some(pane.into()),
        ..LiveAgent::new(AgentSession::Known(session.into()))
    }
}

pub(crate) fn managed(session: &str, owner: &str, state: State) -> ManagedAgent {
    ManagedAgent {
        session: SessionId::new(session).unwrap(),
        owner: SessionId::new(owner).unwrap(),
        label: None,
        workspace: None,
        pane: None,
        state,
    }
}

/// The names of the reasons, with the session each is of.
fn reasons(roster: &Roster) -> Vec<(&'static str, String)> {
    (roster.left_out.iter())
        .map(|left| {
            let session = left.subject.session().map(|text| text.to_str_lossy().into_owned());
            (left.reason.name(), session.unwrap_or_default())
        })
        .collect()
}

fn listed(roster: &Roster) -> Vec<String> {
    roster.leads.iter().map(|lead| lead.session.as_untrusted().to_str_lossy().into_owned()).collect()
}

fn named(reason: &'static str, session: &str) -> (&'static str, String) {
    (reason, session.to_owned())
}

#[test]
fn everything_left_out_is_named_once_with_its_reason() {
    let long = "x".repeat(513);
    let evidence = Evidence {
        agents: vec![
            agent("ok", "p1"),
            agent("twice", "p2"),
            agent("twice", "p3"),
            agent("shared-a", "p4"),
            agent("shared-b", "p4"),
            agent("chief", "p5"),
            agent("managed", "p6"),
            agent("no-record", "p7"),
            agent("two-records", "p8"),
            agent("broken", "p9"),
            agent(&long, "p10"),
            agent("blank-pane", " "),
            LiveAgent { pane: Some("p11".into()), ..LiveAgent::new(AgentSession::Unknown("why".to_owned())) },
        ],
        leads: ["ok", "twice", "shared-a", "shared-b", "chief", "managed", "two-records", "two-records"]
            .iter()
            .chain(&["blank-pane", "gone"])
            .map(|session| record(session))
            .collect(),
        unreadable_leads: vec![UnreadableRecord {
            hash: Some(SessionId::new("broken").unwrap().hash()),
            why: "it has the unknown key \"x\"".to_owned(),
        }],
        managed: vec![
            managed("m1", "ok", State::Working),
            managed("m2", "m2", State::Working),
            managed("m3", "gone", State::Working),
            managed("m4", "ok", State::Working),
            managed("m4", "ok", State::Working),
        ],
        managed_session_ids: BTreeSet::from(["managed".into()]),
        broken_mailboxes: vec![BrokenMailbox { directory: Some("00ff".to_owned()), why: "why".to_owned() }],
        chief_session: SessionId::new("chief"),
        ..Evidence::default()
    };
    let roster = project(&evidence);
    assert_eq!(listed(&roster), ["ok"]);
    assert_eq!(roster.leads[0].counts.total, 1);
    let expected = [
        named("unreadable_record", "broken"),
        named("unreadable_record", ""),
        named("duplicate_record", "two-records"),
        named("duplicate_session", "twice"),
        named("duplicate_session", "twice"),
        named("shared_pane", "shared-a"),
        named("shared_pane", "shared-b"),
        named("unknown_session", ""),
        named("unusable_session", &long),
        named("unusable_place", "blank-pane"),
        named("no_record", "no-record"),
        named("no_agent", "gone"),
        named("ambiguous_agent", "m4"),
        named("agent_cycle", "m2"),
        named("no_owner", "m3"),
        named("broken_mailbox", ""),
        named("managed", "managed"),
        named("is_chief", "chief"),
    ];
    assert_eq!(reasons(&roster), expected);
    for left_out in &roster.left_out {
        let sentence = left_out.sentence();
        assert!(sentence.ends_with('.') && sentence.contains(". "), "no next step: {sentence}");
    }
}

#[test]
fn an_unreadable_record_leaves_out_that_lead_only() {
    let mut input = String::from("{\"agents\":[");
    for (at, session) in ["one", "two", "three"].iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        input += &format!(
            "{comma}{{\"sessionId\":\"{session}\",\"sessionKind\":\"id\",\"workspaceId\":\"w\",\
             \"tabId\":\"t\",\"paneId\":\"{session}\"}}"
        );
    }
    let record = |session: &str, rest: &str| {
        format!(
            "{{\"version\":1,\"instanceId\":\"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\",\
             \"piSessionId\":\"{session}\",\"updatedAt\":1{rest}}}"
        )
    };
    input += &format!(
        "],\"coordinationStates\":[{},{},{}]}}",
        record("one", ""),
        record("two", ",\"build\":\"later\""),
        record("three", "")
    );
    let roster = project(&Evidence::from_json(input.as_bytes()).unwrap());
    assert_eq!(listed(&roster), ["one", "three"]);
    assert_eq!(reasons(&roster)[0], named("unreadable_record", "two"));
    assert!(roster.left_out[0].sentence().contains("build"));
}

#[test]
fn a_broken_record_beside_a_good_one_leaves_the_session_out() {
    let mut evidence =
        Evidence { agents: vec![agent("s", "p")], leads: vec![record("s")], ..Evidence::default() };
    assert_eq!(listed(&project(&evidence)), ["s"]);
    evidence.unreadable_leads.push(UnreadableRecord {
        hash: Some(SessionId::new("s").unwrap().hash()),
        why: "it is torn".to_owned(),
    });
    assert!(project(&evidence).leads.is_empty());
}

#[test]
fn an_agent_of_unknown_session_kind_is_no_lead() {
    for kind in ["\"path\"", "\"ID\"", "null", "7"] {
        let input = format!(
            "{{\"agents\":[{{\"sessionId\":\"s\",\"sessionKind\":{kind},\"workspaceId\":\"w\",\"tabId\":\"t\",\
             \"paneId\":\"p\"}}],\"coordinationStates\":[{{\"version\":1,\"piSessionId\":\"s\",\
             \"instanceId\":\"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\",\"updatedAt\":1}}]}}"
        );
        let roster = project(&Evidence::from_json(input.as_bytes()).unwrap());
        assert!(roster.leads.is_empty(), "{kind}");
        assert_eq!(reasons(&roster)[0].0, "unknown_session");
    }
}

#[test]
fn evidence_that_is_none_is_refused_with_the_member_named() {
    for (input, told) in [
        (&b"{"[..], "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{\"agents\":{}}", "agents is not a list"),
        (b"{\"managedAgentSessionIds\":[1]}", "managedAgentSessionIds"),
        (b"{\"workspaceProvenance\":[]}", "workspaceProvenance"),
        (b"{\"chiefSessionId\":\"\"}", "chiefSessionId"),
    ] {
        let error = run(input, Form::Json).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    // Members that are not there, or null, are empty.
    assert_eq!(run(b"{\"agents\":null,\"later\":1}", Form::Json).unwrap(), "{\"leads\":[]}");
}

#[test]
fn an_empty_provenance_hides_the_agents_directory_and_null_does_not() {
    let of = |provenance: &str| {
        let input = format!(
            "{{\"agents\":[{{\"sessionId\":\"12345678-90\",\"sessionKind\":\"id\",\"workspaceId\":\"w\",\
             \"tabId\":\"t\",\"paneId\":\"p\",\"workspaceCwd\":\"/a/b//\"}}],\"workspaceProvenance\":{provenance},\
             \"coordinationStates\":[{{\"version\":1,\"piSessionId\":\"12345678-90\",\
             \"instanceId\":\"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\",\"updatedAt\":1}}]}}"
        );
        project(&Evidence::from_json(input.as_bytes()).unwrap()).leads[0].display_name.clone()
    };
    assert_eq!(of("{}"), "b/lead-12345678");
    assert_eq!(of("{\"w\":null}"), "b/lead-12345678");
    assert_eq!(of("{\"w\":{}}"), "w/lead-12345678");
    assert_eq!(of("{\"w\":{\"workspaceCwd\":\"///\"}}"), "w/lead-12345678");
    assert_eq!(of("{\"w\":{\"workspaceLabel\":\"\",\"workspaceCwd\":\"x\"}}"), "x/lead-12345678");
}

#[test]
fn a_tab_label_that_is_only_its_number_names_nobody() {
    assert_eq!(order::tab_label(&"3".into(), Some(3)), None);
    assert_eq!(order::tab_label(&" 3 ".into(), Some(3)), None);
    assert_eq!(order::tab_label(&"3".into(), Some(4)), Some("3".into()));
    assert_eq!(order::tab_label(&" logs".into(), Some(3)), Some("logs".into()));
    assert_eq!(order::tab_label(&" ".into(), None), None);
}

// ── order and looks ─────────────────────────────────────────────────────────────────────────────

/// One lead for each session, with its name token and state; those whose session begins with `ask`
/// have a pending one.
fn roster_of(leads: &[(&str, &str, State)]) -> Roster {
    let mut evidence = Evidence::default();
    for (session, name, state) in leads {
        evidence.agents.push(LiveAgent {
            token_name: Some((*name).into()),
            state: *state,
            ..agent(session, &format!("p-{session}"))
        });
        let mut record = record(session);
        if session.starts_with("ask") {
            record.pending_ask = Some(PendingAsk {
                ask: Uuid::parse("99999999-8888-4777-a666-555555555555").unwrap(),
                question: "Now?".into(),
                text: "Question: Now?".into(),
            });
        }
        evidence.leads.push(record);
    }
    project(&evidence)
}

#[test]
fn attention_comes_first_and_the_oldest_ask_foremost() {
    let roster = roster_of(&[
        ("idle", "a", State::Idle),
        ("lost", "b", State::Lost),
        ("blocked", "c", State::Blocked),
        ("working", "d", State::Working),
        ("done", "e", State::Done),
        ("ask-new", "f", State::Working),
        ("ask-old", "g", State::Idle),
        ("ask-unknown", "a0", State::Idle),
        ("settling", "h", State::Settling),
    ]);
    let names = |asked: &dyn Fn(&Lead) -> Option<Timestamp>| -> Vec<String> {
        let order = order::by_attention(&roster.leads, asked);
        order.iter().map(|at| roster.leads[*at].session.escaped().to_string()).collect()
    };
    let rest = ["working", "blocked", "idle", "done", "lost", "settling"];
    let asked = |lead: &Lead| match lead.session.escaped().to_string().as_str() {
        "ask-new" => Some(Timestamp::from_millis(200)),
        "ask-old" => Some(Timestamp::from_millis(100)),
        // Not asking now: of no effect.
        "done" => Some(Timestamp::from_millis(1)),
        _ => None,
    };
    assert_eq!(names(&asked), [&["ask-old", "ask-new", "ask-unknown"][..], &rest].concat());
    assert_eq!(names(&|_| None), [&["ask-unknown", "ask-new", "ask-old"][..], &rest].concat());
    let groups: BTreeSet<Group> = roster.leads.iter().map(Group::of).collect();
    assert_eq!(groups.len(), 5);
}

#[test]
fn sessions_that_icu_calls_equal_still_have_one_order() {
    let (a, b) = (("a", "same", State::Idle), ("\0a", "same", State::Idle));
    assert_eq!(listed(&roster_of(&[a, b])), ["\0a", "a"]);
    assert_eq!(listed(&roster_of(&[b, a])), ["\0a", "a"]);
}

#[test]
fn every_state_has_its_glyph() {
    let glyphs = |active| {
        [
            State::Working,
            State::Blocked,
            State::Settling,
            State::Starting,
            State::Idle,
            State::Done,
            State::Unknown,
            State::Lost,
        ]
        .map(|state| order::glyph(state, active))
        .iter()
        .collect::<String>()
    };
    assert_eq!(glyphs(0), "●◐◌◌○○?×");
    assert_eq!(glyphs(2), "●◐◌◌◉◉?×");
}

#[test]
fn equal_names_are_told_apart_by_as_much_of_the_session_as_it_takes() {
    let shown = |leads: &[(&str, &str, State)]| -> Vec<String> {
        let names = order::shown_names(&roster_of(leads).leads);
        names.iter().map(|name| name.to_str_lossy().into_owned()).collect()
    };
    let idle = State::Idle;
    assert_eq!(
        shown(&[
            ("11111111-2", "a", idle),
            ("11111111-3", "a", idle),
            ("22222222-2", "a", idle),
            ("x", "b", idle)
        ]),
        ["w/a · 11111111-2", "w/a · 11111111-3", "w/a · 22222222", "w/b"]
    );
    // One session is the beginning of another.
    assert_eq!(shown(&[("s", "a", idle), ("s2", "a", idle)]), ["w/a · s", "w/a · s2"]);
    // A lead that takes another's longer form for a name can't pass for it.
    let names =
        shown(&[("11111111-2", "a", idle), ("22222222-2", "a", idle), ("33333333-3", "a · 11111111", idle)]);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 3, "{names:?}");
    assert_eq!(names[2], "w/a · 11111111 · 33333333");
}

#[test]
fn no_output_holds_what_drives_a_terminal_or_a_path() {
    let hostile = "\u{1b}]52;c;aGk=\u{7}\u{9b}2J\u{202e}\u{200b}\u{7f}\n\u{2028}";
    let mut evidence = Evidence::default();
    let pane = format!("p{hostile}");
    evidence.agents.push(LiveAgent {
        token_name: Some(hostile.into()),
        session_file: Some("/secret/path.jsonl".into()),
        ..agent(hostile, &pane)
    });
    evidence.agents.push(agent(&format!("without{hostile}"), &format!("q{hostile}")));
    let mut record = record(hostile);
    record.pending_ask = Some(PendingAsk {
        ask: Uuid::random(),
        question: format!("why {hostile}?").into(),
        text: "x".into(),
    });
    evidence.leads.push(record);
    evidence.managed.push(ManagedAgent {
        label: Some(hostile.into()),
        ..managed(&format!("m{hostile}"), hostile, State::Working)
    });
    evidence.provenance.insert("w".into(), Provenance { label: Some(hostile.into()), ..Default::default() });
    let roster = project(&evidence);
    assert_eq!((roster.leads.len(), roster.left_out.len()), (1, 1));

    let json = roster.to_json_with_diagnostics();
    let plain = headman::cli::roster::plain(&roster, |_| None);
    for output in [&json, &plain] {
        let raw: String = output.chars().filter(|it| *it != '\n').collect();
        assert!(!raw.chars().any(headman::contract::text::is_unsafe_to_show), "{output:?}");
        assert!(!output.contains("secret"));
    }
    assert!(!json.contains('\n'));
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["leads"][0]["session"], hostile);
    assert_eq!(read["leads"][0]["agents"][0]["label"], hostile);
    assert_eq!(read["diagnostics"][0]["reason"], "no_record");
    assert_eq!(read["diagnostics"][0]["pane_id"], format!("q{hostile}"));
}

#[test]
fn the_plain_form_shows_groups_counts_asks_and_what_was_left_out() {
    let mut evidence = Evidence::default();
    for (session, state) in [("one", State::Done), ("two", State::Working)] {
        evidence.agents.push(LiveAgent { state, ..agent(session, session) });
        evidence.leads.push(record(session));
    }
    evidence.leads[1].pending_ask = Some(PendingAsk {
        ask: Uuid::parse("99999999-8888-4777-a666-555555555555").unwrap(),
        question: "Which\nway?".into(),
        text: "x".into(),
    });
    evidence.managed = vec![managed("m1", "one", State::Working), managed("m2", "one", State::Blocked)];
    evidence.leads.push(record("three"));
    assert_eq!(
        headman::cli::roster::plain(&project(&evidence), |_| None),
        "NEEDS YOU\n\
         ! ● w/lead-two  working  0/0 agents             two\n\
         \x20   asks 99999999-8888-4777-a666-555555555555: Which\\nway?\n\
         IDLE\n\
         \x20 ◉ w/lead-one  done     1/2 agents, 1 blocked  one\n\
         LEFT OUT\n\
         \x20 The lead record of \"three\" belongs to no agent that Herdr shows. Resume that session in a \
         Herdr pane, or leave it."
    );
    assert_eq!(run(b"{}", Form::Plain).unwrap(), "No leads.");
}
