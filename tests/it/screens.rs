//! Every screen as it is drawn, from a model made of facts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::console::app::{App, Effect, Settings};
use headman::console::files::Place;
use headman::console::gating::Supervision;
use headman::console::keymap::Keymap;
use headman::console::snippets::Snippets;
use headman::console::theme::{GlyphChoice, Theme};
use headman::console::view::frame;
use headman::contract::{
    Claim, Descriptor, Kind, LeadRecord, PendingAsk, SessionId, Timestamp, Untrusted, Uuid,
};
use headman::fact::{
    AskTime, ChangesLost, Done, Fact, Fate, LeadRead, Now, OtherChief, Outcome, Sent, Standing, Watching,
};
use headman::herd::evidence::{AgentSession, LiveAgent, Provenance, State};
use headman::herd::inventory::Inventory;
use headman::herdr::Registration;
use headman::model::Model;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const LEASE: &str = "11111111-2222-4333-8444-555555555555";
/// 09:12 of some day.
pub(crate) const START: u64 = 1_796_029_920_000;

pub(crate) fn uuid(last: u32) -> Uuid {
    Uuid::parse(&format!("00000000-0000-4000-8000-{last:012}")).unwrap()
}

pub(crate) fn at(seconds: u64) -> Now {
    Now { wall: Timestamp::from_millis(START + seconds * 1000), mono: Duration::from_secs(1000 + seconds) }
}

#[derive(Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) session: &'static str,
    pub(crate) workspace: &'static str,
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) question: Option<&'static str>,
}

pub(crate) const LEADS: &[Lead] = &[
    Lead {
        session: "s-auth",
        workspace: "w1",
        name: "auth-rewrite",
        state: State::Working,
        question: Some(
            "Do we reject refresh tokens that have expired, or rotate them? Rejecting logs everyone out once.",
        ),
    },
    Lead {
        session: "s-checkout",
        workspace: "w2",
        name: "checkout",
        state: State::Blocked,
        question: Some("May I drop the legacy coupon table?"),
    },
    Lead { session: "s-tf", workspace: "w3", name: "tf-upgrade", state: State::Working, question: None },
    Lead { session: "s-docs", workspace: "w4", name: "site", state: State::Idle, question: None },
    Lead { session: "s-ops", workspace: "w5", name: "", state: State::Unknown, question: None },
];

pub(crate) fn inventory(leads: &[Lead]) -> Inventory {
    let mut inventory = Inventory { version: Some("0.8.2".into()), ..Inventory::default() };
    for lead in leads {
        inventory.agents.push(LiveAgent {
            workspace: Some(lead.workspace.into()),
            tab: Some(format!("{}:t1", lead.workspace).as_str().into()),
            pane: Some(format!("{}:p1", lead.workspace).as_str().into()),
            state: lead.state,
            token_name: Some(lead.name.into()),
            ..LiveAgent::new(AgentSession::Known(lead.session.into()))
        });
    }
    for (workspace, repo, branch) in
        [("w1", "api", "main"), ("w2", "web", "release/2.4"), ("w3", "infra", "main"), ("w4", "docs", "main")]
    {
        inventory.provenance.insert(
            workspace.into(),
            Provenance { repo: Some(repo.into()), branch: Some(branch.into()), ..Provenance::default() },
        );
    }
    inventory
}

pub(crate) fn records(leads: &[Lead]) -> Vec<(String, LeadRead)> {
    let record = |(at, lead): (usize, &Lead)| {
        let session = SessionId::new(lead.session).unwrap();
        let pending_ask = lead.question.map(|question| PendingAsk {
            ask: uuid(100 + at as u32),
            question: question.into(),
            text: question.into(),
        });
        let hash = session.hash();
        let record = LeadRecord {
            instance: uuid(at as u32),
            session,
            pending_ask,
            updated_at: Timestamp::from_millis(1),
        };
        (hash, LeadRead::Valid(record))
    };
    leads.iter().enumerate().map(record).collect()
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn empty(theme: Theme) -> App {
    let model = Model::new(session("chief"), Registration::Registered);
    let settings = Settings {
        herdr_session: "default".into(),
        looked_for: "/run/h.sock (--socket)".to_owned(),
        keymap: Keymap::new(&BTreeMap::new()).unwrap(),
        theme,
        clock: |_| "09:12".to_owned(),
        snippets: Snippets::default(),
        place: Place { from: "/work".into(), home: None },
        supervision: Supervision::default(),
        guided: false,
    };
    App::new(model, settings, [])
}

pub(crate) fn theme() -> Theme {
    Theme::load(None, GlyphChoice::Unicode, |_| None).unwrap()
}

/// A Chief with five leads; the asks wait for 4 minutes and for 40 seconds.
pub(crate) fn app() -> App {
    app_in(theme())
}

pub(crate) fn app_in(theme: Theme) -> App {
    let mut app = empty(theme);
    app.facts(
        vec![
            Fact::Standing(Standing::Chief {
                lease: Uuid::parse(LEASE).unwrap(),
                since: Timestamp::from_millis(START),
            }),
            Fact::Inventory(Arc::new(inventory(LEADS))),
            Fact::Leads(Arc::new(records(LEADS))),
            Fact::AskTimes(Arc::new(vec![
                AskTime {
                    lead: session("s-auth"),
                    ask: uuid(100),
                    at: Timestamp::from_millis(START - 240_000),
                },
                AskTime {
                    lead: session("s-checkout"),
                    ask: uuid(101),
                    at: Timestamp::from_millis(START - 40_000),
                },
            ])),
        ],
        at(0),
    );
    app.take_effects();
    app
}

pub(crate) fn press(app: &mut App, keys: &str, now: Now) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            other => KeyCode::Char(other),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE), now);
        // A hand takes longer than that between two keys.
        app.settle(Now { mono: now.mono + Duration::from_millis(20), ..now });
    }
}

pub(crate) fn shown(app: &App, width: u16, height: u16, now: Now) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            frame::draw(app, now, frame);
        })
        .unwrap();
    let buffer = terminal.backend().buffer();
    let mut out = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            skip = headman::console::text::line(symbol).width().saturating_sub(1);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (40, 15), (20, 6)];

fn snapshot(name: &str, app: &App, now: Now) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, now));
    }
}

#[test]
fn home() {
    snapshot("home", &app(), at(0));
}

#[test]
fn ask_with_a_reply_being_written() {
    let mut app = app();
    press(&mut app, "nr", at(1));
    press(&mut app, "Reject them; we announce it", at(2));
    snapshot("ask_composing", &app, at(3));
}

#[test]
fn reply_on_its_way() {
    let mut app = app();
    press(&mut app, "nrYes.", at(1));
    press(&mut app, "\n", at(2));
    let effects = app.take_effects();
    let ticket = effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Request(headman::chief::service::Request::Reply { ticket, reply }) => {
                assert_eq!(reply.text, "Yes.");
                assert_eq!(reply.lead, session("s-auth"));
                assert_eq!(reply.ask, uuid(100));
                assert_eq!(reply.lease.to_string(), LEASE);
                Some(*ticket)
            }
            _ => None,
        })
        .unwrap();
    let sent = |fate| {
        Fact::Sent(Sent {
            id: uuid(500),
            kind: Kind::ChiefReply,
            lead: session("s-auth"),
            ask: Some(uuid(100)),
            text: "Yes.".into(),
            at: Timestamp::from_millis(START + 2_000),
            fate,
        })
    };
    app.facts(
        vec![sent(Fate::Queued), Fact::Outcome(Outcome { ticket, result: Ok(Done::Sent(uuid(500))) })],
        at(2),
    );
    let removed = |app: &mut App| app.take_effects().iter().any(|it| matches!(it, Effect::RemoveDraft(_)));
    assert!(!removed(&mut app), "no lead has it yet");
    snapshot("reply_queued", &app, at(3));
    app.facts(vec![sent(Fate::Answered)], at(4));
    assert!(removed(&mut app));
    assert!(shown(&app, 80, 24, at(4)).contains("● answered"));
    // Straight to the next ask's composer.
    press(&mut app, "n", at(5));
    let screen = shown(&app, 80, 24, at(5));
    assert!(screen.contains("coupon table") && screen.contains("Reply"), "{screen}");
}

#[test]
fn help_and_diagnostics() {
    let mut app = app();
    press(&mut app, "?", at(1));
    snapshot("help", &app, at(1));
    press(&mut app, "\u{1b}d", at(2));
    snapshot("diagnostics", &app, at(2));
}

#[test]
fn states_it_must_show_well() {
    let other = Descriptor {
        lease: uuid(900),
        claim: Claim { pid: headman::contract::Pid::from_number(4711.0).unwrap(), id: uuid(901) },
        session: session("another-chief"),
        pane: "w9:p1".into(),
        tab: Some("w9:t1".into()),
        workspace: "w9".into(),
        created_at: Timestamp::from_millis(START),
    };
    let held = OtherChief::Held(Box::new(other.clone()));
    let observer = Standing::Observer { chief: OtherChief::None, refused: None };
    for (name, facts) in [
        ("starting", vec![]),
        (
            "no_leads",
            vec![
                Fact::Standing(observer.clone()),
                Fact::Inventory(Arc::default()),
                Fact::Leads(Arc::default()),
            ],
        ),
        (
            "herdr_never_up",
            vec![
                Fact::Standing(observer.clone()),
                Fact::HerdrDown {
                    reason: "Herdr refused the connection at /run/h.sock: nobody listens there".to_owned(),
                },
            ],
        ),
    ] {
        let mut app = empty(theme());
        app.facts(facts, at(0));
        insta::assert_snapshot!(format!("state_{name}"), shown(&app, 80, 12, at(5)));
    }
    for (name, fact) in [
        ("observer", Fact::Standing(observer)),
        ("suspended", Fact::Standing(Standing::Suspended(held.clone()))),
        ("suspended_by_own", Fact::Standing(Standing::Suspended(OtherChief::OwnConsole(Box::new(other))))),
        ("suspended_in_progress", Fact::Standing(Standing::Suspended(OtherChief::InProgressBy(4_194_303)))),
        ("suspended_free", Fact::Standing(Standing::Suspended(OtherChief::None))),
        ("lost", Fact::Standing(Standing::Lost { reason: "its lock is gone".to_owned(), chief: held })),
        (
            "herdr_down",
            Fact::HerdrDown { reason: "Herdr did not answer session.snapshot within 2000 ms".to_owned() },
        ),
        (
            "unregistered",
            Fact::Registration(Registration::NotTried { why: "not started in a Herdr pane".to_owned() }),
        ),
        ("polling", Fact::Watching(Watching::Polling("the limit on inotify watches is reached".to_owned()))),
        ("polling_as_configured", Fact::Watching(Watching::SwitchedOff)),
        ("changes_lost", Fact::ChangesLost(ChangesLost { times: 2, last: at(53) })),
        ("changes_lost_a_minute_ago", Fact::ChangesLost(ChangesLost { times: 2, last: at(5) })),
        ("records_unreadable", Fact::LeadsUnreadable("it belongs to user 1234".to_owned())),
        (
            "a_record_refused",
            Fact::Lead(session("s-tf").hash(), LeadRead::Refused("it is a symbolic link".to_owned())),
        ),
    ] {
        let mut app = app();
        app.facts(vec![fact], at(1));
        insta::assert_snapshot!(format!("state_{name}"), shown(&app, 80, 16, at(65)));
    }
}

#[test]
fn without_colour_and_without_unicode() {
    let mono = Theme::load(None, GlyphChoice::Auto, |key| match key {
        "NO_COLOR" => Some("1".to_owned()),
        "TERM" => Some("linux".to_owned()),
        _ => None,
    })
    .unwrap();
    let app = app_in(mono);
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!("home_ascii_80x24", screen);
    // State is never colour alone: word, group or glyph say it, too.
    for word in ["NEEDS YOU", "WORKING", "IDLE", "UNKNOWN"] {
        assert!(screen.contains(word));
    }
}

#[test]
fn nothing_breaks_at_any_size_with_hostile_names() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}evil\u{200b}\u{300}\u{300}\u{300}\u{300}\u{300}\u{300}日本\u{1f468}\u{200d}\u{1f469}";
    let leads: Vec<Lead> = (0..30)
        .map(|_| Lead {
            session: "x",
            workspace: "w1",
            name: hostile,
            state: State::Working,
            question: Some(hostile),
        })
        .collect();
    let mut inventory = inventory(&leads);
    let mut records = records(&leads);
    for (at, agent) in inventory.agents.iter_mut().enumerate() {
        let id = format!("{hostile}{at}");
        agent.session = AgentSession::Known(id.as_str().into());
        agent.pane = Some(format!("p{at}").as_str().into());
        let LeadRead::Valid(record) = &mut records[at].1 else { panic!() };
        record.session = SessionId::new(id.as_str()).unwrap();
        records[at].0 = record.session.hash();
    }
    let mut app = empty(theme());
    app.facts(vec![Fact::Inventory(Arc::new(inventory)), Fact::Leads(Arc::new(records))], at(0));
    assert_eq!(app.model.roster().leads.len(), 30);
    for keys in ["", "\n", "r", "zzz", "\u{1b}\u{1b}d", "\u{1b}?"] {
        press(&mut app, keys, at(1));
        for (width, height) in [
            (1, 1),
            (2, 2),
            (3, 1),
            (19, 6),
            (20, 5),
            (20, 6),
            (21, 7),
            (49, 9),
            (50, 12),
            (79, 24),
            (80, 6),
            (200, 50),
        ] {
            let screen = shown(&app, width, height, at(1));
            let bad =
                screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
            assert_eq!(bad, None, "{width}x{height}: {screen:?}");
        }
    }
}

/// The selection follows its session when the order changes around it.
#[test]
fn the_cursor_stays_on_its_lead() {
    let mut app = app();
    press(&mut app, "jj", at(0));
    assert_eq!(app.roster.selected(), Some(&session("s-tf")));
    let mut records = records(LEADS);
    for (_, read) in &mut records {
        let LeadRead::Valid(record) = read else { panic!() };
        record.pending_ask = None;
    }
    app.facts(vec![Fact::Leads(Arc::new(records))], at(1));
    assert_eq!(app.roster.selected(), Some(&session("s-tf")));
    // It is gone: the cursor goes to one that is there.
    app.facts(vec![Fact::Lead(session("s-tf").hash(), LeadRead::Absent)], at(2));
    assert_ne!(app.roster.selected(), Some(&session("s-tf")));
    assert!(app.roster.selected().is_some());
}

#[test]
fn a_draft_survives_esc_and_refusals() {
    let mut app = app();
    press(&mut app, "nrSome thought", at(1));
    press(&mut app, "\u{1b}", at(2));
    let saved: Vec<_> = app
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::SaveDraft(draft) => Some(draft.text),
            _ => None,
        })
        .collect();
    assert_eq!(saved.last().map(String::as_str), Some("Some thought"));
    press(&mut app, "\u{1b}r", at(3));
    assert!(shown(&app, 80, 24, at(3)).contains("Some thought"));
    // The lease is gone: refused at once, and still there.
    app.facts(
        vec![Fact::Standing(Standing::Lost {
            reason: "its lock is gone".to_owned(),
            chief: OtherChief::None,
        })],
        at(4),
    );
    press(&mut app, "\n", at(5));
    let screen = shown(&app, 80, 24, at(5));
    assert!(screen.contains("not Chief") && screen.contains("Some thought"), "{screen}");
    assert!(
        app.take_effects()
            .iter()
            .all(|effect| !matches!(effect, Effect::Request(headman::chief::service::Request::Reply { .. })))
    );
}

#[test]
fn filter_and_waiting_only() {
    let mut app = app();
    press(&mut app, "/site\n", at(1));
    let screen = shown(&app, 80, 24, at(1));
    assert!(screen.contains("docs/main/site") && !screen.contains("tf-upgrade"), "{screen}");
    press(&mut app, "\u{1b}w", at(2));
    let screen = shown(&app, 80, 24, at(2));
    assert!(screen.contains("checkout") && !screen.contains("tf-upgrade"), "{screen}");
}

#[test]
fn leaving_and_quitting_ask_when_something_is_at_stake() {
    let mut app = app();
    press(&mut app, "c", at(1));
    let screen = shown(&app, 100, 24, at(1));
    assert!(screen.contains("Leave Chief mode? 2 open asks stay pending."), "{screen}");
    press(&mut app, "n", at(2));
    assert!(app.take_effects().is_empty());
    press(&mut app, "q", at(3));
    assert!(matches!(app.take_effects()[..], [Effect::Quit]));
    let text: Untrusted = "x".into();
    app.facts(
        vec![Fact::Sent(Sent {
            id: uuid(1),
            kind: Kind::ChiefReply,
            lead: session("s-auth"),
            ask: None,
            text,
            at: Timestamp::from_millis(START),
            fate: Fate::Queued,
        })],
        at(4),
    );
    press(&mut app, "q", at(5));
    assert!(app.take_effects().is_empty());
    assert!(shown(&app, 100, 24, at(5)).contains("Quit? 1 queued message:"));
    press(&mut app, "y", at(6));
    assert!(matches!(app.take_effects()[..], [Effect::Quit]));
}

#[test]
fn a_demo_names_the_next_key_to_try() {
    let mut app = app();
    assert!(!shown(&app, 80, 24, at(1)).contains("Demo:"), "not outside a demo");
    let settings = Settings {
        herdr_session: "default".into(),
        looked_for: String::new(),
        keymap: Keymap::new(&BTreeMap::new()).unwrap(),
        theme: theme(),
        clock: |_| "09:12".to_owned(),
        snippets: Snippets::default(),
        place: Place { from: "/work".into(), home: None },
        supervision: Supervision::default(),
        guided: true,
    };
    let model = std::mem::replace(&mut app.model, Model::new(session("nobody"), Registration::Registered));
    let mut app = App::new(model, settings, []);
    app.facts(Vec::new(), at(1));
    let hint = |app: &App, width, height| {
        let screen = shown(app, width, height, at(2));
        let lines: Vec<&str> = screen.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.contains("Demo:"))?;
        Some(lines[at..lines.len() - 1].join(" "))
    };
    for width in [60, 49, 40] {
        let whole = "Demo: n goes to the ask that waits longest, and to the next from there.";
        assert_eq!(hint(&app, width, 24).as_deref(), Some(whole), "{}", shown(&app, width, 24, at(2)));
    }
    assert_eq!(hint(&app, 20, 12), None, "half of it is none");
    assert_eq!(
        hint(&app, 80, 24).as_deref(),
        Some("Demo: n goes to the ask that waits longest, and to the next from there.")
    );
    assert_eq!(hint(&app, 80, 9), None, "the list needs the room");
    press(&mut app, "n", at(2));
    assert!(hint(&app, 80, 24).unwrap().contains("Demo: r answers"));
    press(&mut app, "r", at(2));
    assert!(hint(&app, 80, 24).unwrap().contains("Demo: enter sends"), "what can be done in the composer");
    press(&mut app, "\u{1b}\u{1b}i", at(2));
    press(&mut app, "r\u{1b}\u{1b}wi", at(2));
    assert!(hint(&app, 80, 24).unwrap().contains("Demo: / searches"), "in the inbox that is no filter");
    press(&mut app, "idd??cn/", at(2));
    assert_eq!(hint(&app, 80, 24), None, "{}", shown(&app, 80, 24, at(2)));
    // Whoever left finds back.
    app.facts(vec![Fact::Standing(Standing::Observer { chief: OtherChief::None, refused: None })], at(3));
    press(&mut app, "\u{1b}", at(3));
    assert!(hint(&app, 80, 24).unwrap().contains("Demo: c makes you Chief again"));
    // Where a letter is text, that is another way.
    press(&mut app, "nr", at(3));
    assert!(hint(&app, 80, 24).unwrap().contains("Demo: esc, then c makes you Chief again"));
}
