//! What the leads' sessions tell, on the screen.

use std::sync::Arc;

use headman::console::app::App;
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{Timestamp, Untrusted};
use headman::fact::{Fact, Now, SessionRead};
use headman::pi::activity::{Activity, Call, Said, Stop, Touched};
use headman::pi::entry::Model;

use crate::screens::{LEADS, START, app, app_in, at, inventory, press, session, shown};

/// So many seconds before the start.
fn ago(seconds: u64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(START - seconds * 1000))
}

fn touched(path: &str, seconds: u64) -> Touched {
    Touched { path: path.into(), at: ago(seconds), in_turn: true, real: Some(path.into()) }
}

fn said(text: &str) -> Option<Said> {
    Some(Said { text: text.into(), is_cut: false })
}

fn tells(lead: &str, activity: Activity) -> Fact {
    Fact::Activity(session(lead), Arc::new(SessionRead::Activity(activity)))
}

fn auth() -> Activity {
    let call = |tool: &str, argument: &str| Call {
        tool: tool.into(),
        argument: Some(argument.into()),
        since: ago(40),
    };
    let mut files = vec![touched("/work/api/src/auth.rs", 12), touched("/work/web/cart.ts", 300)];
    files.extend((0..20).map(|nth| touched(&format!("/work/api/src/part_{nth:02}.rs"), 400 + nth * 60)));
    files.push(Touched { in_turn: false, ..touched("/work/api/of_the_turn_before.rs", 3000) });
    Activity {
        last: ago(12),
        running: vec![call("bash", "cargo test -p auth --all-features -- --nocapture\n"), call("read", "x")],
        errors: 2,
        files,
        more_files: 3,
        context: Some(84_312.0),
        told: said(
            "Rewrite the session handling so that refresh tokens are rotated. Keep the old clients working, and tell me before you touch the schema.",
        ),
        said: said(
            "The rotation is in, behind a flag.\n\nWhat is left is what happens to a token that has expired: today it is accepted for one more day by the old clients, which is how most of them come back after a weekend.",
        ),
        stop: None,
        model: Some(Arc::new(Model { provider: "p".into(), id: "large-5".into() })),
        is_whole: true,
    }
}

/// The checkout touched a file of the first lead's, four minutes ago.
fn checkout() -> Activity {
    let files = vec![touched("/work/web/cart.ts", 240)];
    Activity { last: ago(240), files, is_whole: true, ..Activity::default() }
}

fn with_activity() -> App {
    told(app())
}

fn told(mut app: App) -> App {
    let mut seen = inventory(LEADS);
    for (agent, cwd) in seen.agents.iter_mut().zip(["/work/api", "/work/web"]) {
        agent.cwd = Some(cwd.into());
    }
    app.facts(vec![Fact::Inventory(Arc::new(seen))], at(0));
    let none = SessionRead::Unread("Herdr names no session file of it. Wait".to_owned());
    app.facts(
        vec![
            tells("s-auth", auth()),
            tells("s-checkout", checkout()),
            Fact::Activity(session("s-ops"), Arc::new(none)),
        ],
        at(0),
    );
    app
}

fn snapshot(name: &str, app: &App, now: Now) {
    for (width, height) in [(120, 40), (80, 24), (40, 15)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, now));
    }
}

#[test]
fn the_detail_tells_what_a_lead_does_and_whose_file_it_shares() {
    let mut app = with_activity();
    snapshot("activity", &app, at(0));
    press(&mut app, "\n", at(0));
    insta::assert_snapshot!("activity_detail_40x15", shown(&app, 40, 15, at(0)));
    // Ages go on; the badge is there for an hour.
    let later = shown(&app, 120, 40, at(60));
    assert!(later.contains("last activity 1m ago") && later.contains("for 1m"), "{later}");
    assert!(later.contains("also by web/release/2.4/checkout 5m ago"), "{later}");
    // One whose session can't be read says why, and is otherwise as ever.
    press(&mut app, "\u{1b}G", at(60));
    let screen = shown(&app, 120, 40, at(60));
    assert!(screen.contains("What it does is not known: Herdr names no session"), "{screen}");
}

#[test]
fn an_ask_has_around_it_what_was_said_last_and_the_files() {
    let mut app = with_activity();
    press(&mut app, "n\n", at(1));
    press(&mut app, "r", at(2));
    snapshot("activity_ask", &app, at(3));
    press(&mut app, "\u{1b}", at(4));
    insta::assert_snapshot!("activity_ask_120x40_read", shown(&app, 120, 40, at(5)));
    // Words that stand whole with the question are not said again below.
    for (words, written, read) in [("Done.", 1, 1), ("One.\n\nTwo.\n\nThree.", 2, 1)] {
        let mut app = with_activity();
        app.facts(vec![tells("s-auth", Activity { said: said(words), ..auth() })], at(5));
        press(&mut app, "nr", at(5));
        let count = |app: &App| shown(app, 120, 40, at(5)).matches("it said last").count();
        assert_eq!(count(&app), written, "{words}");
        press(&mut app, "\u{1b}", at(5));
        assert_eq!(count(&app), read, "{words}");
    }
}

#[test]
fn a_collision_is_told_to_both_for_an_hour_and_goes_with_the_lead() {
    let collides = |app: &App, now: Now| {
        let screen = shown(app, 120, 40, now);
        let badges = screen.lines().filter(|line| line.contains('⇄') && line.contains('│')).count();
        let rows = screen.lines().map(|line| line.chars().take(54).collect::<String>());
        (rows.filter(|row| row.contains('⇄')).count(), badges > 0)
    };
    let mut app = with_activity();
    assert_eq!(collides(&app, at(0)), (2, true));
    // The older of both touches was five minutes before the start.
    let edge = 3600 - 300;
    assert_eq!(collides(&app, at(edge)).0, 2);
    assert_eq!(collides(&app, at(edge + 1)).0, 0);
    // A third one, and one of the files by another path.
    let mut third = checkout();
    third.files.push(Touched { path: "link".into(), ..touched("/work/web/cart.ts", 100) });
    app.facts(vec![tells("s-tf", third.clone())], at(0));
    assert_eq!(collides(&app, at(0)).0, 3);
    press(&mut app, "j", at(0));
    let screen = shown(&app, 120, 40, at(0));
    assert!(screen.contains("⇄ also by infra/main/tf-upgrade 1m ago and 1 more  cart.ts"), "{screen}");
    // It touches others from now on: nobody collides with it.
    third.files = vec![touched("/elsewhere", 1)];
    app.facts(vec![tells("s-tf", third)], at(0));
    assert_eq!(collides(&app, at(0)).0, 2);
    // The same file name is not the same file, nor is one that can't be found.
    let unfound = Touched { real: None, ..touched("/work/web/cart.ts", 1) };
    let other = Activity { files: vec![unfound, touched("/other/cart.ts", 1)], ..Activity::default() };
    app.facts(vec![tells("s-docs", other)], at(0));
    assert_eq!(collides(&app, at(0)).0, 2);
    // A lead that is gone collides with nobody, and nothing of it is known when it comes again.
    let without: Vec<_> = LEADS.iter().filter(|lead| lead.session != "s-checkout").copied().collect();
    app.facts(vec![Fact::Inventory(Arc::new(inventory(&without)))], at(1));
    assert_eq!(collides(&app, at(1)).0, 0);
    app.facts(vec![tells("s-checkout", checkout())], at(1));
    app.facts(vec![Fact::Inventory(Arc::new(inventory(LEADS)))], at(2));
    assert_eq!(collides(&app, at(2)).0, 0);
    assert!(app.model.sessions().read(&session("s-checkout")).is_none());
}

#[test]
fn ages_are_those_of_when_it_became_known_whatever_the_clock_does() {
    let mut app = app();
    app.facts(vec![tells("s-auth", Activity { last: ago(10), ..Activity::default() })], at(0));
    let set_back = Now { mono: at(5).mono, ..at(0) };
    for (now, age) in [(at(0), "10s"), (at(5), "15s"), (set_back, "15s")] {
        let screen = shown(&app, 120, 40, now);
        assert!(screen.contains(&format!("last activity {age} ago")), "{screen}");
    }
    // What is in the future was just now.
    let future = Some(Timestamp::from_millis(START + 60_000));
    app.facts(vec![tells("s-auth", Activity { last: future, ..Activity::default() })], at(0));
    assert!(shown(&app, 120, 40, at(0)).contains("last activity 0s ago"));
}

#[test]
fn each_part_is_told_as_far_as_it_is_known() {
    let detail = |lead: usize, activity: Activity| {
        let mut app = app();
        app.facts(vec![tells(LEADS[lead].session, activity)], at(0));
        press(&mut app, &"j".repeat(lead), at(0));
        shown(&app, 120, 40, at(0))
    };
    let one = |tool: &str, argument: Option<&str>, since| Activity {
        running: vec![Call { tool: tool.into(), argument: argument.map(Untrusted::from), since }],
        is_whole: true,
        ..Activity::default()
    };
    assert!(detail(0, one("bash", Some("ls"), ago(3))).contains("bash `ls` for 3s"));
    assert!(detail(0, one("bash", None, ago(3))).contains("bash for 3s"));
    assert!(detail(0, one("bash", None, None)).contains("bash now"));
    // Nobody is there to end it.
    assert!(detail(3, one("bash", Some("ls"), ago(3))).contains("bash `ls` without a result"));
    let some = Activity { errors: 1, more_files: 2, ..Activity::default() };
    let screen = detail(0, some.clone());
    assert!(screen.contains("at least 1 error · at least 2 files") && screen.contains("+2 more"), "{screen}");
    assert!(detail(0, Activity { is_whole: true, ..some }).contains("│ 1 error · 2 files"));
    for (tokens, text) in [
        (0.4, "0 context"),
        (999.0, "999 context"),
        (1500.0, "2k context"),
        (999_499.0, "999k"),
        (999_500.0, "1.0M context"),
        (1_234_567.0, "1.2M context"),
    ] {
        let screen = detail(0, Activity { context: Some(tokens), ..Activity::default() });
        assert!(screen.contains(text), "{text}: {screen}");
    }
    for (stop, text) in [
        (Stop::Error(Some("over\u{1b}[2Jloaded".into())), "Its last answer failed: over"),
        (Stop::Error(None), "Its last answer failed."),
        (Stop::Aborted, "Its last answer was interrupted."),
        (Stop::Length, "too long"),
    ] {
        let screen = detail(0, Activity { stop: Some(stop), ..Activity::default() });
        assert!(screen.contains(text) && !screen.contains('\u{1b}'), "{text}: {screen}");
    }
    let screen = detail(0, Activity::default());
    assert!(!screen.contains("activity") && !screen.contains("files"), "{screen}");
}

#[test]
fn nothing_breaks_at_any_size_with_hostile_text() {
    let hostile = "\u{202e}a\u{1b}]52;c;eA==\u{7}\n\t\u{9b}2J\u{200b}👩‍👩‍👧\u{301}\u{301}\u{301}界".repeat(40);
    let text = Untrusted::from(hostile.as_str());
    let said = Some(Said { text: text.clone(), is_cut: true });
    let files: Vec<_> = (0..300).map(|nth| touched(&format!("/w/{nth}{hostile}"), 5)).collect();
    let activity = Activity {
        last: ago(1),
        running: vec![Call { tool: text.clone(), argument: Some(text.clone()), since: ago(1) }; 60],
        errors: u32::MAX,
        files,
        more_files: u32::MAX,
        context: Some(f64::MAX),
        told: said.clone(),
        said,
        stop: Some(Stop::Error(Some(text.clone()))),
        model: Some(Arc::new(Model { provider: text.clone(), id: text })),
        is_whole: false,
    };
    for glyphs in [GlyphChoice::Unicode, GlyphChoice::Ascii] {
        let mut app = app_in(Theme::load(None, glyphs, |_| None).unwrap());
        app.facts(vec![tells("s-auth", activity.clone()), tells("s-tf", activity.clone())], at(0));
        for keys in ["", "n\n", "r"] {
            press(&mut app, keys, at(1));
            for (width, height) in
                [(1, 1), (19, 6), (20, 6), (33, 9), (49, 12), (50, 20), (80, 24), (200, 60)]
            {
                let screen = shown(&app, width, height, at(2));
                assert!(
                    !screen.chars().any(|it| it != '\n' && headman::contract::text::is_unsafe_to_show(it))
                );
            }
        }
        assert!(app.model.sessions().colliding(at(1)).len() == 2);
        assert_eq!(
            app.model.sessions().age(&session("s-auth"), Timestamp::from_millis(0), at(0)).as_secs(),
            START / 1000
        );
    }
}
