//! Lessons and the gate in the console: what is drawn, what keys do, what is asked for.

use std::ffi::OsStr;
use std::fs;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::chief::service::Request;
use headman::chief::state_dir::StateDir;
use headman::console::app::{App, Effect};
use headman::console::errand::{Came, Errand};
use headman::console::gating::{Gated, Next, Outcome, Supervision};
use headman::fact::{self, Done, Fact};
use headman::signals::claims::Claims;
use headman::signals::memory::{Kind, Memory};
use headman::signals::store::{Kept, Store};

use crate::screens::{START, app, at, press, session, shown, uuid};
use crate::transcript_screen::{HEADER, scene, user};

const DAY: u64 = 86_400_000;

fn memory(title: &str, content: &str, project: &str, days: u64) -> Memory {
    Memory {
        title: title.into(),
        content: content.into(),
        kind: Kind::Lesson,
        importance: 0.9,
        confidence: 0.6,
        tags: vec!["git".into()],
        source: "s-auth#0000000a".into(),
        role: "lead".into(),
        project: project.into(),
        is_global: project.is_empty(),
        created: START - days * DAY,
    }
}

fn kept(name: &str, memory: Memory) -> Kept {
    Kept { name: name.into(), memory: Ok(memory), is_archived: false }
}

fn some() -> Vec<Kept> {
    let push = memory("Never push to main", "Never push to main; open a pull request.", "api", 3);
    let where_it_is = Memory {
        kind: Kind::Orientation,
        importance: 0.8,
        ..memory("Migrations", "Migrations are in db/, one a file.", "api", 40)
    };
    vec![
        kept("_/20260101000000-tests", memory("Run the tests", "Run the tests before you say done.", "", 0)),
        kept("api/lead/20260102000000-never-push", push),
        kept("api/lead/20260103000000-migrations", where_it_is),
        Kept {
            is_archived: true,
            ..kept(
                "web/lead/archive/20250101000000-old",
                memory("Old \u{1b}[2J", "Use yarn here.", "web", 300),
            )
        },
        Kept {
            name: "web/lead/20260104000000-broken".into(),
            memory: Err("its front matter is not what it should be".into()),
            is_archived: false,
        },
    ]
}

fn errands(app: &mut App) -> Vec<Errand> {
    let errand = |effect| if let Effect::Errand(errand) = effect { Some(errand) } else { None };
    app.take_effects().into_iter().filter_map(errand).collect()
}

fn alt(app: &mut App, key: char) {
    app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::ALT), at(1));
}

#[test]
fn all_lessons_are_listed_broken_ones_named_and_put_away_after_a_question() {
    let mut app = app();
    press(&mut app, "M", at(1));
    assert_eq!(errands(&mut app), [Errand::List]);
    assert!(shown(&app, 80, 24, at(1)).contains("Reading"));
    app.came(Came::Listed(Ok(Vec::new())), at(1));
    let screen = shown(&app, 80, 24, at(1));
    assert!(screen.contains("No lessons.") && screen.contains("L keeps what you wrote"), "{screen}");
    app.came(Came::Listed(Ok(some())), at(1));
    press(&mut app, "j", at(1));
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        insta::assert_snapshot!(format!("lessons_{width}x{height}"), shown(&app, width, height, at(1)));
    }
    press(&mut app, "G", at(1));
    let screen = shown(&app, 120, 40, at(1));
    assert!(screen.contains("It can't be used: its front matter"), "{screen}");
    press(&mut app, "k", at(1));
    press(&mut app, "a", at(1));
    assert!(shown(&app, 80, 24, at(1)).contains("It is put away already."));
    press(&mut app, "gg", at(1));
    press(&mut app, "an", at(1));
    assert_eq!(errands(&mut app), []);
    press(&mut app, "ay", at(1));
    let name = "_/20260101000000-tests".to_owned();
    assert_eq!(errands(&mut app), [Errand::Archive(name)]);
    app.came(Came::Archived(Ok("_/archive/x".into())), at(1));
    assert_eq!(errands(&mut app), [Errand::List]);
    app.came(Came::Listed(Err("the disk failed".into())), at(1));
    assert!(shown(&app, 80, 24, at(1)).contains("the disk failed"));
    press(&mut app, "M", at(1));
    assert!(app.layers.is_empty());
}

#[test]
fn what_fits_is_offered_inserted_and_remembered_once_it_is_sent() {
    let mut app = app();
    press(&mut app, "m", at(1));
    press(&mut app, "push it", at(1));
    alt(&mut app, 'l');
    assert_eq!(errands(&mut app), []);
    assert!(shown(&app, 80, 24, at(1)).contains("Lessons are not offered"));
    app.settings.supervision = Supervision { learning: true, ..Supervision::default() };
    alt(&mut app, 'l');
    let lead = app.selected().unwrap().clone();
    assert_eq!(errands(&mut app), [Errand::Offer(lead.clone())]);
    app.came(Came::Offered(lead.clone(), Ok((some(), true))), at(1));
    let screen = shown(&app, 120, 30, at(1));
    assert!(screen.contains("No lesson fits"), "no directory of the lead is known: {screen}");
    app.came(Came::Offered(lead.clone(), Ok((some(), false))), at(1));
    let screen = shown(&app, 120, 30, at(1));
    assert!(screen.contains("Lessons that fit") && screen.contains("Run the tests before"), "{screen}");
    assert!(!screen.contains("yarn"), "what was put away is not offered: {screen}");
    press(&mut app, "\n", at(1));
    assert!(shown(&app, 120, 30, at(1)).contains("Run the tests before you say done."));
    // Once a session.
    app.came(Came::Offered(lead.clone(), Ok((some(), false))), at(1));
    assert!(shown(&app, 120, 30, at(1)).contains("No lesson fits"));
    press(&mut app, "\n", at(2));
    let ticket = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Request(Request::Message { ticket, letter }) => {
            assert_eq!(letter.text, "push it\nRun the tests before you say done.");
            Some(ticket)
        }
        _ => None,
    });
    let result = Ok(Done::Sent(uuid(500)));
    app.facts(vec![Fact::Outcome(fact::Outcome { ticket: ticket.unwrap(), result })], at(2));
    let names = vec!["_/20260101000000-tests".to_owned()];
    assert_eq!(errands(&mut app), [Errand::Inserted { lead, names, everywhere: true }]);
}

#[test]
fn what_an_operator_wrote_becomes_a_lesson_and_nothing_else_does() {
    let text = "Fix it. Never push to main, whatever happens.";
    let answer = "{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"message\":{\"role\":\
                  \"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A sentence of the model.\"}]}}\n";
    let (dir, path, mut scene) = scene([HEADER, &user(1, text), answer].concat());
    scene.screen(100, 30);
    scene.keys("L");
    assert!(scene.screen(100, 30).contains("A lesson is quoted from a message of the user's"));
    scene.keys("gg");
    scene.keys("L");
    let screen = scene.screen(100, 30);
    assert!(screen.contains("What is to be kept") && screen.contains("kept as"), "{screen}");
    scene.keys("jKS");
    let screen = scene.screen(100, 30);
    assert!(screen.contains("orientation (K changes it)") && screen.contains("everywhere (S"), "{screen}");
    scene.keys("KS\n");
    let errand = errands(&mut scene.app).pop().unwrap();
    let state = StateDir::at(&dir.path().join("state"), OsStr::new(""));
    StateDir::make(state.root()).unwrap();
    let Some(Came::Kept(Ok(kept))) = errand.clone().run(&state) else { panic!("{errand:?}") };
    let file = fs::read_to_string(&kept).unwrap();
    assert!(file.contains("content: \"Never push to main, whatever happens.\"") && kept.contains("/w/lead/"));
    scene.app.came(Came::Kept(Ok(kept)), at(1));
    assert!(shown(&scene.app, 200, 30, at(1)).contains("Kept in "));
    // It has to stand there when it is kept.
    fs::write(&path, [HEADER, &user(1, "Another text here.")].concat()).unwrap();
    let Some(Came::Kept(Err(why))) = errand.run(&state) else { panic!("kept") };
    assert!(why.contains("word for word"), "{why}");
    // What else files are enough for.
    let store = Store::new(state.root(), state.learning());
    let name = store.list().unwrap()[0].name.clone();
    let lead = session("s-1");
    let inserted = Errand::Inserted { lead: lead.clone(), names: vec![name.clone()], everywhere: true };
    assert_eq!(inserted.run(&state), None);
    assert_eq!(Claims::new(state.root(), state.claims()).read(&lead).unwrap().inserted, [name.as_str()]);
    assert!(
        matches!(Errand::Offer(lead).run(&state), Some(Came::Offered(_, Ok((all, true)))) if all.len() == 1)
    );
    assert!(matches!(Errand::Archive(name).run(&state), Some(Came::Archived(Ok(_)))));
    assert!(matches!(Errand::List.run(&state), Some(Came::Listed(Ok(all))) if all[0].is_archived));
}

#[test]
fn the_gate_runs_for_one_lead_at_a_time_and_its_verdict_stands_beside_the_lead() {
    let mut app = app();
    press(&mut app, "V", at(1));
    assert!(shown(&app, 120, 30, at(1)).contains("The gate is off"));
    app.settings.supervision = Supervision { gate: true, ..Supervision::default() };
    press(&mut app, "V", at(1));
    let lead = app.selected().unwrap().clone();
    assert_eq!(errands(&mut app), [Errand::Gate(lead.clone(), None)], "git looks nowhere unless allowed");
    let screen = shown(&app, 120, 30, at(3));
    assert!(
        screen.contains("verifying") && screen.contains("looks at its claim since 2s; V ends it"),
        "{screen}"
    );
    press(&mut app, "jV", at(3));
    assert!(shown(&app, 120, 30, at(3)).contains("one claim at a time"));
    press(&mut app, "kV", at(3));
    assert_eq!(errands(&mut app), [Errand::EndGate]);
    app.came(Came::Gated(lead.clone(), Ok(None)), at(4));
    let screen = shown(&app, 120, 30, at(4));
    assert!(screen.contains("that run is not counted") && !screen.contains("verifying"), "{screen}");
    press(&mut app, "V", at(5));
    let gap = "nothing shows 'cargo test' \u{1b}[2J".to_owned();
    let gaps = Outcome::Gaps(vec![gap], Next("draft".into()));
    let note = "the verifier's command names the family of the lead's own model, m".to_owned();
    app.came(Came::Gated(lead.clone(), Ok(Some(Gated { outcome: gaps, notes: vec![note] }))), at(6));
    let drafted = app.take_effects().into_iter().any(|it| {
        matches!(it, Effect::SaveDraft(draft) if draft.session == lead && draft.ask.is_none() && draft.text.contains("cargo test"))
    });
    assert!(drafted);
    let screen = shown(&app, 120, 40, at(20));
    insta::assert_snapshot!("gate_gaps", screen);
    press(&mut app, "m", at(20));
    assert!(shown(&app, 120, 40, at(20)).contains("The work is not done yet."));
    press(&mut app, "\u{1b}\u{1b}", at(20));
    for (outcome, word, sentence) in [
        (Outcome::Verified, "verified", "found nothing missing"),
        (
            Outcome::Indeterminate("it died".into(), Next("exhausted".into())),
            "indeterminate",
            "runs are used up",
        ),
        (Outcome::Objections(vec!["not checked".into()]), "unverified", "- not checked"),
        (Outcome::NotAsked(Next("no_verifier".into())), "unverified", "There is no verifier"),
        (Outcome::NotAsked(Next("no_claim".into())), "", "neither claims"),
    ] {
        press(&mut app, "V", at(20));
        app.came(Came::Gated(lead.clone(), Ok(Some(Gated { outcome, notes: vec![] }))), at(20));
        let screen = shown(&app, 120, 40, at(40));
        assert!(screen.contains(word) && screen.contains(sentence), "{sentence}: {screen}");
        let row = screen.lines().find(|row| row.contains("auth-rewrite") && row.contains("0/0")).unwrap();
        assert_eq!(row.contains("verified"), word.ends_with("verified"), "{screen}");
    }
    press(&mut app, "V", at(20));
    let passed = Gated { outcome: Outcome::Verified, notes: vec![] };
    app.came(Came::Gated(lead.clone(), Ok(Some(passed))), at(20));
    // The lead does something more: the word goes.
    let activity = headman::pi::activity::Activity {
        last: Some(headman::contract::Timestamp::from_millis(START + 30_000)),
        ..Default::default()
    };
    app.facts(
        vec![Fact::Activity(lead.clone(), std::sync::Arc::new(fact::SessionRead::Activity(activity)))],
        at(50),
    );
    let screen = shown(&app, 120, 40, at(50));
    assert!(!screen.contains(" verified") && screen.contains("worked on since the verdict"), "{screen}");
}

#[test]
fn what_the_gate_writes_is_read_or_refused() {
    let read = |json: &str| Gated::parse(json.as_bytes(), vec![]).map(|gated| gated.outcome);
    let next = |name: &str| Next(name.into());
    let with = |more: &str| format!("{{\"objections\":[],\"content_only\":false{more}}}");
    for (more, outcome) in [
        (",\"verdict\":\"pass\",\"gaps\":[],\"next\":\"verified\"", Outcome::Verified),
        (",\"verdict\":null,\"next\":\"verified\"", Outcome::Verified),
        (",\"verdict\":null,\"next\":\"no_claim\"", Outcome::NotAsked(next("no_claim"))),
        (
            ",\"verdict\":\"gaps\",\"gaps\":[\"a\"],\"next\":\"draft\"",
            Outcome::Gaps(vec!["a".into()], next("draft")),
        ),
        (
            ",\"verdict\":\"indeterminate\",\"gaps\":[],\"why\":\"it hung\",\"next\":\"again\"",
            Outcome::Indeterminate("it hung".into(), next("again")),
        ),
    ] {
        assert_eq!(read(&with(more)), Some(outcome), "{more}");
    }
    let objection = "{\"objections\":[{\"code\":\"c\",\"message\":\"m\"}],\"content_only\":false}";
    assert_eq!(read(objection), Some(Outcome::Objections(vec!["m".into()])));
    for wrong in [
        "",
        "{}",
        &with(""),
        &with(",\"verdict\":\"fine\",\"next\":\"x\""),
        "{\"error\":{\"code\":\"busy\"}}",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}
