//! Signals on the screens: what a lead is marked with, their own screen, drafts that steer, what is
//! recited.

use std::fs;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::chief::service::Request;
use headman::console::app::{App, Effect, Layer};
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{LeadRecord, Timestamp};
use headman::fact::{Fact, LeadRead, SessionRead, Standing};
use headman::pi::activity::{Activity, Said as Words};
use headman::pi::said::{Said, Step};
use headman::signals::detect::Signal;
use headman::signals::sight::Sight;
use headman::signals::watch::{SILENCE, Watch};
use serde_json::json;

use crate::demo_console::{headman, home, press as type_key};
use crate::pty::Harness;
use crate::screens::{LEADS, START, app, app_in, at, inventory, press, records, session, shown, uuid};
use crate::signals::{Did, all, answer, user, watched};
use crate::transcript_screen::{HEADER, Scene, entry, file};

/// The steps, each written five seconds after the one before, the last one when the tests begin.
fn timed(mut steps: Vec<Step>) -> Vec<Step> {
    let count = steps.len() as u64;
    for (step, nth) in steps.iter_mut().zip(0..) {
        step.at = Some(START - (count - nth) * 5_000);
        step.offset = nth * 1_000;
    }
    steps
}

fn sight_of(steps: Vec<Step>) -> Sight {
    watched(&timed(steps)).0.sight()
}

fn check(nth: usize) -> Vec<Did> {
    vec![Did::bash(
        "cargo test -p orders",
        &format!("failed in {nth} ms\n\nCommand exited with code 101"),
        true,
    )]
}

fn looping() -> Sight {
    let same = || vec![Did::bash("cargo test --test replay", "replays_in_order ... FAILED", true)];
    sight_of(all(&[vec![Did::read("tests/replay.rs")], same(), same(), same()]))
}

fn failing() -> Sight {
    sight_of(all(&(0..6).map(check).collect::<Vec<_>>()))
}

fn quiet() -> Sight {
    sight_of(all(&[vec![Did::read("a")]]))
}

/// It changed something, says that it is done, and checked nothing.
fn done() -> Sight {
    let report = r#"<sup>{"state":"done","focus":"the checkout","next":null,"carry":["flag is off"]}</sup>"#;
    let mut steps = all(&[vec![Did::edit("src/cart.ts", false)]]);
    steps.push(answer(&format!("All done.\n{report}")));
    sight_of(steps)
}

fn shows(lead: &str, sight: Sight) -> [Fact; 2] {
    let read = SessionRead::Activity(Activity { is_whole: true, ..Activity::default() });
    [Fact::Activity(session(lead), Arc::new(read)), Fact::Signals(session(lead), Arc::new(sight))]
}

/// One loops, one is done for all it says, one fails, one is quiet, one can't be watched.
fn told(mut app: App) -> App {
    app.facts(shows("s-tf", looping()).into(), at(0));
    app.facts(shows("s-checkout", done()).into(), at(0));
    app.facts(shows("s-auth", failing()).into(), at(0));
    app.facts(shows("s-docs", quiet()).into(), at(0));
    let none = SessionRead::Unread("Herdr names no session file of it".to_owned());
    app.facts(vec![Fact::Activity(session("s-ops"), Arc::new(none))], at(0));
    app
}

const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (60, 30)];

fn snapshot(name: &str, app: &App) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, at(0)));
    }
}

/// The row of that lead in the list.
fn row(app: &App, name: &str, seconds: u64) -> String {
    let screen = shown(app, 120, 40, at(seconds));
    let mut rows = screen.lines().skip(2).map(|line| line.chars().take(54).collect::<String>());
    rows.find(|row| row.contains(name)).unwrap()
}

/// The messages that the service shall send.
fn letters(app: &mut App) -> Vec<(u64, String)> {
    let effects = app.take_effects().into_iter();
    let letters = effects.filter_map(|effect| match effect {
        Effect::Request(Request::Message { ticket, letter }) => {
            Some((ticket, letter.text.to_str_lossy().into_owned()))
        }
        _ => None,
    });
    letters.collect()
}

/// The text in the composer, as the app would hand it to an editor.
fn written(app: &App) -> String {
    let Some(Layer::Ask(state)) = app.layers.last() else { panic!("no composer is open") };
    state.editable().unwrap()
}

#[test]
fn leads_are_marked_with_a_word_and_listed_with_their_rounds() {
    let mut app = told(app());
    snapshot("watched", &app);
    for (name, word) in
        [("tf-upgrade", "loop"), ("checkout", "unverified"), ("auth-rewrite", "failing checks")]
    {
        assert!(row(&app, name, 0).contains(word), "{}", row(&app, name, 0));
    }
    assert!(!row(&app, "site", 0).contains("no"), "a quiet one has none");
    // Asks stand above, whatever fires below.
    let screen = shown(&app, 120, 40, at(0));
    let at_of = |text: &str| screen.lines().position(|line| line.contains(text)).unwrap();
    assert!(at_of("checkout") < at_of("tf-upgrade"));
    press(&mut app, "gs", at(0));
    snapshot("signals", &app);
    // On a round: Enter reads on there.
    let tf = shown(&app, 120, 40, at(0));
    assert!(tf.contains("cargo test --test replay"), "{tf}");
    press(&mut app, "jjjjjj", at(0));
    let Some(Layer::Signals(state)) = app.layers.last() else { panic!() };
    assert!(state.entry(&app.model).is_some() || state.lead().is_some());
    press(&mut app, "gs", at(0));
    assert!(app.layers.is_empty());
}

#[test]
fn nothing_that_fires_is_said_with_what_is_watched_and_what_is_not() {
    let mut app = app();
    press(&mut app, "gs", at(0));
    let screen = shown(&app, 120, 40, at(0));
    assert!(screen.contains("nothing fires") && screen.contains("0 watched, 5 not"), "{screen}");
    assert!(screen.contains("Its session was not looked at yet."), "{screen}");
    app.facts(shows("s-docs", quiet()).into(), at(0));
    let none = SessionRead::Unread("it is a pipe".to_owned());
    app.facts(vec![Fact::Activity(session("s-auth"), Arc::new(none))], at(0));
    press(&mut app, "gg", at(0));
    let screen = shown(&app, 120, 40, at(0));
    assert!(screen.contains("1 watched, 4 not") && screen.contains("Nothing fires. Watched for"), "{screen}");
    press(&mut app, "j", at(0));
    assert!(shown(&app, 120, 40, at(0)).contains("It is not watched: it is a pipe."));
    // What can't be read any more is not watched, whatever it showed.
    app.facts(shows("s-tf", looping()).into(), at(0));
    assert!(app.model.signals().sight(&session("s-tf")).is_some());
    let gone = SessionRead::Unread("it is gone".to_owned());
    app.facts(vec![Fact::Activity(session("s-tf"), Arc::new(gone))], at(1));
    assert!(app.model.signals().sight(&session("s-tf")).is_none());
}

#[test]
fn a_round_opens_the_transcript_at_its_entry() {
    let mut app = app();
    let mut seen = inventory(LEADS);
    seen.agents[2].session_file = Some("/w/s.jsonl".into());
    app.facts(vec![Fact::Inventory(Arc::new(seen))], at(0));
    app.facts(shows("s-tf", looping()).into(), at(0));
    press(&mut app, "gsggj\n", at(0));
    let Some(Layer::Transcript(state)) = app.layers.last() else { panic!("no transcript") };
    let wanted = app.wanted().unwrap();
    // The first of the three rounds is the fourth entry.
    assert_eq!((wanted.top, state.lead()), (Some(3_000), Some(&session("s-tf"))));
    press(&mut app, "\u{1b}", at(0));
    assert!(matches!(app.layers.last(), Some(Layer::Signals(_))));
}

#[test]
fn a_lead_that_works_and_is_silent_is_told_and_an_idle_one_is_not() {
    let mut app = app();
    app.facts(shows("s-tf", quiet()).into(), at(0));
    app.facts(shows("s-docs", quiet()).into(), at(0));
    let long = SILENCE / 1000;
    assert!(!row(&app, "tf-upgrade", long - 10).contains("silent"));
    assert!(row(&app, "tf-upgrade", long).contains("silent"));
    assert!(!row(&app, "site", long).contains("silent"));
}

#[test]
fn a_draft_is_one_key_away_and_sent_by_the_operator_alone() {
    let mut app = told(app());
    app.take_effects();
    press(&mut app, "jj", at(1));
    assert!(shown(&app, 120, 40, at(1)).lines().last().unwrap().contains("s steer"));
    press(&mut app, "s", at(1));
    let text = written(&app);
    assert!(text.starts_with("Your last 3 rounds (entries 00000001, 00000002, 00000003)"), "{text}");
    assert!(letters(&mut app).is_empty(), "nothing is sent by itself");
    snapshot("steering", &app);
    press(&mut app, "\n", at(2));
    let sent = letters(&mut app);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1, text);
    // Once the session has it, none is offered until the lead goes on the same.
    let mut held_back = looping();
    held_back.fired.as_mut().unwrap().is_offered = false;
    let mut app = told(crate::screens::app());
    app.facts(shows("s-tf", held_back).into(), at(3));
    press(&mut app, "jjs", at(3));
    let screen = shown(&app, 120, 40, at(3));
    assert!(app.layers.is_empty() && screen.contains("You wrote to it since."), "{screen}");
    // Nor where nothing calls for it, nor by who is not Chief.
    press(&mut app, "js", at(3));
    assert!(shown(&app, 120, 40, at(3)).contains("Nothing it shows calls for steering it."));
    press(&mut app, "js", at(3));
    assert!(shown(&app, 120, 40, at(3)).contains("It is not watched: Herdr names no session file"));
    let observer = Standing::Observer { chief: headman::fact::OtherChief::None, refused: None };
    app.facts([shows("s-tf", looping()).into(), vec![Fact::Standing(observer)]].concat(), at(3));
    press(&mut app, "ggjjs", at(3));
    assert!(shown(&app, 120, 40, at(3)).contains("Only a Chief can steer a lead."));
}

#[test]
fn a_stale_draft_is_withdrawn_and_what_the_operator_wrote_stays() {
    let over = |app: &mut App| {
        app.facts(shows("s-tf", quiet()).into(), at(2));
        assert!(shown(app, 120, 40, at(2)).contains("What this is about is over"));
    };
    // Untouched, it goes.
    let mut app = told(app());
    press(&mut app, "jjs", at(1));
    over(&mut app);
    press(&mut app, "\n", at(3));
    assert!(letters(&mut app).is_empty());
    let screen = shown(&app, 120, 40, at(3));
    assert!(screen.contains("Withdrawn, not sent: what it is about is over."), "{screen}");
    assert_eq!(written(&app), "");
    // Changed, it stays as any draft, and a second Enter sends it.
    let mut app = told(crate::screens::app());
    press(&mut app, "jjs", at(1));
    press(&mut app, " Look at the worker.", at(1));
    over(&mut app);
    press(&mut app, "\n", at(3));
    assert!(letters(&mut app).is_empty());
    let screen = shown(&app, 120, 40, at(3));
    assert!(screen.contains("What you wrote is kept as any draft"), "{screen}");
    assert!(written(&app).ends_with("Look at the worker."));
    press(&mut app, "\n", at(4));
    assert!(letters(&mut app)[0].1.ends_with("Look at the worker."));
    // So with a lead that was started anew, and with another lease.
    let mut app = told(crate::screens::app());
    press(&mut app, "jjs", at(1));
    let (hash, _) = records(LEADS).swap_remove(2);
    let anew = LeadRecord {
        instance: uuid(77),
        session: session("s-tf"),
        pending_ask: None,
        updated_at: Timestamp::from_millis(2),
    };
    app.facts(vec![Fact::Lead(hash, LeadRead::Valid(anew))], at(2));
    press(&mut app, "\n", at(3));
    assert!(letters(&mut app).is_empty());
    assert!(shown(&app, 120, 40, at(3)).contains("not sent: the lead was started anew"));
    let mut app = told(crate::screens::app());
    press(&mut app, "jjs", at(1));
    let other = Standing::Chief { lease: uuid(9), since: Timestamp::from_millis(START) };
    app.facts(vec![Fact::Standing(other)], at(2));
    press(&mut app, "\n", at(3));
    assert!(letters(&mut app).is_empty());
    assert!(shown(&app, 120, 40, at(3)).contains("not sent: the lease is another one"));
}

#[test]
fn a_draft_that_was_kept_stands_before_what_is_suggested_and_that_alone_is_not_kept() {
    let mut app = told(app());
    let kept = |app: &mut App| {
        app.take_effects().into_iter().rev().find_map(|effect| match effect {
            Effect::SaveDraft(draft) => Some(draft.text),
            _ => None,
        })
    };
    press(&mut app, "jjs\u{1b}\u{1b}", at(1));
    assert_eq!(kept(&mut app), None, "a suggestion is made again, not kept");
    press(&mut app, "mMind the lock.\u{1b}\u{1b}", at(2));
    assert_eq!(kept(&mut app).as_deref(), Some("Mind the lock."));
    press(&mut app, "s", at(3));
    let text = written(&app);
    assert!(text.starts_with("Mind the lock.\n\nYour last 3 rounds"), "{text}");
    press(&mut app, "\u{1b}\u{1b}m", at(4));
    assert_eq!(written(&app), "Mind the lock.");
    press(&mut app, "\u{1b}\u{1b}s!", at(5));
    assert!(kept(&mut app).unwrap().ends_with('!'), "the operator made it theirs");
    // What is sent is kept until the lead has it.
    press(&mut app, "\n", at(6));
    let (_, sent) = letters(&mut app).remove(0);
    assert!(sent.starts_with("Mind the lock.") && sent.ends_with('!'), "{sent}");
}

#[test]
fn a_lead_that_was_started_anew_is_not_held_to_what_it_did_before() {
    let mut app = told(app());
    let (hash, _) = records(LEADS).swap_remove(2);
    let anew = |instance| {
        let record = LeadRecord {
            instance: uuid(instance),
            session: session("s-tf"),
            pending_ask: None,
            updated_at: Timestamp::from_millis(2),
        };
        Fact::Lead(hash.clone(), LeadRead::Valid(record))
    };
    let marked = |app: &App| row(app, "tf-upgrade", 2).contains("loop");
    assert!(marked(&app));
    app.facts(vec![anew(77)], at(1));
    assert!(!marked(&app));
    press(&mut app, "jjgs", at(1));
    // The same session again is nothing new.
    app.facts(shows("s-tf", looping()).into(), at(1));
    press(&mut app, "\u{1b}", at(1));
    assert!(!marked(&app));
    // A round of its own is.
    let same = || vec![Did::bash("cargo test --test replay", "replays_in_order ... FAILED", true)];
    let on = sight_of(all(&[vec![Did::read("tests/replay.rs")], same(), same(), same(), same()]));
    app.facts(shows("s-tf", on.clone()).into(), at(2));
    assert!(marked(&app));
    // Gone meanwhile, and back as another.
    app.facts(vec![Fact::Lead(hash.clone(), LeadRead::Absent)], at(3));
    assert!(app.model.lead(&session("s-tf")).is_none());
    app.facts(vec![anew(78)], at(4));
    app.facts(shows("s-tf", on.clone()).into(), at(4));
    assert!(!marked(&app));
    // And as the same.
    app.facts(vec![Fact::Lead(hash.clone(), LeadRead::Absent)], at(5));
    app.facts(vec![anew(78)], at(6));
    app.facts(shows("s-tf", on).into(), at(6));
    assert!(!marked(&app), "it has done nothing since");
}

#[test]
fn each_change_of_a_signal_is_one_row_of_the_timeline() {
    let mut app = told(app());
    let rows = |app: &App| {
        let events = app.timeline().newest_first().filter(|event| event.is_new);
        let told = events.map(|event| format!("{} {}", event.what.kind().word(), event.about));
        told.filter(|it| it.starts_with("signal")).collect::<Vec<_>>()
    };
    assert!(rows(&app).is_empty(), "it stood already: {:?}", rows(&app));
    app.facts(shows("s-tf", looping()).into(), at(1));
    app.facts(shows("s-tf", quiet()).into(), at(2));
    app.facts(shows("s-docs", looping()).into(), at(3));
    app.facts(shows("s-docs", failing()).into(), at(4));
    let told = rows(&app);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("signal failing checks: bash cargo test"), "{told:?}");
    assert!(told[1].starts_with("signal loop: bash cargo test --test replay"), "{told:?}");
    assert_eq!(told[2], "signal over loop");
    // A lead that is gone has nothing to be over.
    let without: Vec<_> = LEADS.iter().filter(|lead| lead.session != "s-docs").copied().collect();
    app.facts(vec![Fact::Inventory(Arc::new(inventory(&without)))], at(5));
    assert_eq!(rows(&app).len(), 3);
}

#[test]
fn what_is_to_hold_after_a_compaction_is_inserted_by_a_key_and_not_again() {
    let compacted = |turns: &[&str]| {
        let mut steps: Vec<Step> = turns.iter().map(|turn| user(turn)).collect();
        steps.push(Step { said: Said::Compaction, ..user("") });
        sight_of(steps)
    };
    let mut app = app();
    app.facts(shows("s-tf", compacted(&["Upgrade it. Never apply without asking."])).into(), at(0));
    let recite = |app: &mut App| {
        app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::ALT), at(1));
    };
    press(&mut app, "jjm", at(1));
    let screen = shown(&app, 120, 40, at(1));
    assert!(screen.contains("alt-c inserts 1 sentence of its user's"), "{screen}");
    recite(&mut app);
    assert_eq!(written(&app), "> Never apply without asking.\n");
    recite(&mut app);
    assert_eq!(written(&app), "> Never apply without asking.\n");
    assert!(shown(&app, 120, 40, at(1)).contains("nothing to recite"));
    press(&mut app, "\u{1b}\u{1b}m", at(2));
    assert!(!shown(&app, 120, 40, at(2)).contains("alt-c"));
    // Others are offered at once.
    app.facts(shows("s-tf", compacted(&["Never apply.", "Don't touch the state."])).into(), at(3));
    press(&mut app, "\u{1b}\u{1b}m", at(4));
    assert!(shown(&app, 120, 40, at(4)).contains("alt-c inserts 2 sentences"));
}

#[test]
fn reports_are_no_part_of_what_is_shown() {
    const REPORT: &str = r#"<sup>{"state":"progressing","focus":"f","next":null,"carry":[]}</sup>"#;
    // Of what was said last, also where only its end is known.
    let said = |text: String, is_cut| {
        let said = Some(Words { text: text.as_str().into(), is_cut });
        let activity = Activity { said, is_whole: true, ..Activity::default() };
        Fact::Activity(session("s-auth"), Arc::new(SessionRead::Activity(activity)))
    };
    let mut app = app();
    app.facts(vec![said(format!("The water is H<sub>2</sub>O<sup>2</sup>.\n{REPORT}"), false)], at(0));
    press(&mut app, "nr", at(0));
    let screen = shown(&app, 120, 40, at(0));
    assert!(screen.contains("O<sup>2</sup>.") && !screen.contains("progressing"), "{screen}");
    app.facts(vec![said(format!("xxx{}", &REPORT[20..]), true)], at(0));
    assert!(!shown(&app, 120, 40, at(0)).contains("focus"));
    app.facts(vec![said(REPORT.to_owned(), false)], at(0));
    assert!(!shown(&app, 120, 40, at(0)).contains("it said last"));
    // In the transcript, until it is unfolded or searched for.
    let message = json!({"role": "assistant", "model": "m", "content": [
        {"type": "text", "text": format!("Half of it stands.\n{REPORT}")}]});
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, format!("{HEADER}{}", entry(1, &message.to_string()))).unwrap();
    let mut scene = Scene::of(file(&path, "s-1"));
    let screen = scene.screen(100, 24);
    assert!(screen.contains("Half of it stands.") && !screen.contains("progressing"), "{screen}");
    scene.keys("/progressing\n");
    assert!(scene.screen(100, 24).contains("<sup>{"));
    scene.keys("\u{1b}\n");
    assert!(scene.screen(100, 24).contains("<sup>{\"state\":\"progressing\""));
}

#[test]
fn a_recovery_stands_until_its_checks_succeed_and_is_offered_again_after_delivery() {
    let mut steps = all(&(0..5).map(check).collect::<Vec<_>>());
    let mut watch = Watch::default();
    for step in steps.drain(..) {
        watch.take(&step);
    }
    let fired = |watch: &Watch| watch.sight().fired.map(|fired| (fired.signal, fired.is_offered));
    let mut nth = 100;
    let mut round = |watch: &mut Watch, did: Did| {
        nth += 1;
        for step in crate::signals::steps(&format!("{nth:08x}"), "", &[did]) {
            watch.take(&step);
        }
    };
    let recovery = |is_offered| Some((Signal::Recovery, is_offered));
    assert_eq!(fired(&watch), recovery(true));
    round(&mut watch, Did::edit("a", false));
    assert_eq!(fired(&watch), recovery(true), "a check still fails");
    watch.take(&Step { said: Said::Chief("Read the first failure.".to_owned()), ..user("") });
    assert_eq!(fired(&watch), recovery(false));
    for nth in 5..9 {
        round(&mut watch, check(nth).remove(0));
    }
    assert_eq!(fired(&watch), recovery(false));
    round(&mut watch, check(9).remove(0));
    assert_eq!(fired(&watch), recovery(true), "five more of the same after it was delivered");
    round(&mut watch, Did::bash("cargo test -p orders", "ok", false));
    assert_eq!(fired(&watch), None);
}

#[test]
fn no_screen_of_signals_breaks_at_any_size_with_hostile_text() {
    let hostile = "\u{202e}a\u{1b}]52;c;eA==\u{7}\n\t\u{9b}2J\u{200b}👩‍👩‍👧\u{301}\u{301}界".repeat(20);
    let same = || vec![Did::bash(&hostile, &hostile, true)];
    let report = json!({"state": "progressing", "focus": hostile, "next": hostile, "carry": [hostile]});
    let mut steps = vec![user(&format!("Never {hostile}. Never do."))];
    steps.extend((0..20).flat_map(|nth| crate::signals::steps(&format!("{hostile}{nth}"), "", &same())));
    steps.push(answer(&format!("<sup>{report}</sup>")));
    steps.push(Step { said: Said::Compaction, ..user("") });
    let sight = sight_of(steps);
    for glyphs in [GlyphChoice::Unicode, GlyphChoice::Ascii] {
        let mut app = app_in(Theme::load(None, glyphs, |_| None).unwrap());
        app.facts([shows("s-auth", sight.clone()), shows("s-tf", sight.clone())].concat(), at(0));
        for keys in ["", "gs", "j", "s"] {
            press(&mut app, keys, at(1));
            for (width, height) in [(1, 1), (20, 6), (33, 9), (50, 20), (80, 24), (200, 60)] {
                let screen = shown(&app, width, height, at(2));
                let is_unsafe = headman::contract::text::is_unsafe_to_show;
                assert!(!screen.chars().any(|it| it != '\n' && is_unsafe(it)));
            }
        }
    }
}

#[test]
fn a_person_steers_a_lead_that_loops_with_two_keys_and_it_recovers() {
    let home = home();
    let mut terminal = Harness::start_in(headman(home.path(), &["demo", "--speed", "0"], &[]), 120, 40);
    let row = |it: &Harness| {
        let rows = it.screen.screen().rows(0, 54);
        rows.into_iter().find(|row| row.contains("flaky-tests")).unwrap_or_default()
    };
    terminal.wait_for("the lead marked", |it| row(it).contains("loop") && it.shows("chief since"));
    terminal.wait_for("to be registered", |it| !it.shows("can't write up"));
    type_key(&mut terminal, "/", "the filter", |it| it.shows("Leads /"));
    type_key(&mut terminal, "flaky", "the lead alone", |it| {
        !it.shows("auth-rewrite") && row(it).contains("loop")
    });
    type_key(&mut terminal, "\r", "it kept", |it| it.shows("s steer"));
    type_key(&mut terminal, "s", "the draft", |it| it.shows("Your last 3 rounds"));
    type_key(&mut terminal, "\r", "it delivered", |it| it.shows("● delivered"));
    type_key(&mut terminal, "\u{1b}", "the list, and the lead not marked any more", |it| {
        let row = row(it);
        !row.is_empty() && !row.contains("loop")
    });
    type_key(&mut terminal, "\u{1b}", "all leads", |it| it.shows("auth-rewrite"));
    type_key(&mut terminal, "q", "anything", |_| true);
    assert!(terminal.finish().success());
}
