//! A lead's pane on the screen: what is drawn, what keys do, and when it is looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::inspection::Subject;
use headman::console::app::{App, Effect};
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{Timestamp, Untrusted};
use headman::demo::server::Fault;
use headman::fact::{self, Fact, Foreground, Inspection, OtherChief, Peek, ProcessEvidence, Standing};
use headman::herd::inventory::Inventory;
use headman::source;
use tokio::sync::watch;

use crate::demo_console::{self, Served, headman};
use crate::inspect::lead;
use crate::pty::Harness;
use crate::screens::{START, app, app_in, at, press, session, shown, theme};
use crate::stage::{Post, Stage};
use crate::support::{DEADLINE, until};

const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}evil\u{200b}\t<b>";

fn seen(output: &str) -> Inspection {
    let program = |pid, cmdline: &str| Foreground {
        pid,
        argv0: Some("node".into()),
        cmdline: Some(cmdline.into()),
        state: None,
    };
    Inspection {
        captured_at: Timestamp::from_millis(START),
        output: output.into(),
        truncated: false,
        process: Ok(ProcessEvidence {
            shell: Some(4700),
            group: Some(4711),
            foreground: vec![
                program(4711, "node /usr/local/bin/pi --session-dir /home/ada/.pi/agent/sessions"),
                program(4720, "cargo test --workspace"),
            ],
        }),
    }
}

fn screen_of_a_lead() -> String {
    let mut rows = vec!["> Rewrite the token check so that expired refresh tokens are told apart".to_owned()];
    rows.extend((1..=30).map(|nth| format!("  test auth::case_{nth:02} ... ok")));
    rows.push(format!("{HOSTILE} a row that is much wider than the pane it is shown in, so that it has to be cut somewhere at its end, and not wrapped"));
    rows.push(String::new());
    rows.push("> _".to_owned());
    rows.join("\n")
}

fn told(lead: &str, seen: Option<Inspection>, trouble: Option<&str>) -> Fact {
    let trouble = trouble.map(str::to_owned);
    Fact::Peek(Arc::new(Peek { session: session(lead), seen, trouble }))
}

/// The pane of the first lead, opened.
fn opened() -> App {
    let mut app = app();
    press(&mut app, "p", at(0));
    app.facts(vec![told("s-auth", Some(seen(&screen_of_a_lead())), None)], at(0));
    app
}

#[test]
fn the_screen() {
    let app = opened();
    for (width, height) in [(120, 40), (80, 24), (60, 30), (40, 15)] {
        insta::assert_snapshot!(format!("peek_{width}x{height}"), shown(&app, width, height, at(1)));
    }
}

#[test]
fn a_console_that_only_watches_shows_it_too() {
    let mut app = opened();
    app.facts(vec![Fact::Standing(Standing::Observer { chief: OtherChief::None, refused: None })], at(0));
    assert!(app.peeked().is_some());
    for (width, height) in [(80, 24), (40, 15)] {
        insta::assert_snapshot!(format!("peek_observer_{width}x{height}"), shown(&app, width, height, at(1)));
    }
}

#[test]
fn what_stands_there_when_it_can_not_be_read() {
    let mut app = app();
    press(&mut app, "p", at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("Looking …"));
    // What was seen of another lead is not this one's.
    app.facts(vec![told("s-tf", Some(seen("somebody else's")), None)], at(0));
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.contains("Looking …") && !screen.contains("somebody else's"), "{screen}");
    app.facts(vec![told("s-auth", None, Some("the lead is not on pane w1:p1 any more"))], at(0));
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.contains("Not read: the lead is not on pane w1:p1 any more."), "{screen}");
    // As Herdr can't be asked, the last picture stays, with its age.
    app.facts(vec![told("s-auth", Some(seen("last words")), Some("Herdr is away"))], at(7));
    let screen = shown(&app, 80, 24, at(7));
    assert!(screen.contains("Not read: Herdr is away. What you see is as of 7s ago."), "{screen}");
    assert!(screen.contains("last words"), "{screen}");
    // Nor is it taken for new if nothing is told any more.
    app.facts(vec![told("s-auth", Some(seen("")), None)], at(0));
    assert!(!shown(&app, 80, 24, at(2)).contains("as of"));
    let screen = shown(&app, 80, 24, at(3));
    assert!(screen.contains("What you see is as of 3s ago.") && screen.contains("The pane shows no text."));
    let unknown = Inspection { process: Err("Herdr refused it".to_owned()), ..seen("text") };
    app.facts(vec![told("s-auth", Some(unknown), None)], at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("The programs there are not known: Herdr refused it."));
    // Who is no lead any more is not looked at, and nothing of its pane is shown.
    app.facts(vec![Fact::Inventory(Arc::new(Inventory::default()))], at(0));
    assert_eq!(app.peeked(), None);
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.contains("Its pane is not read.") && !screen.contains("text"), "{screen}");
    assert!(screen.contains("Peek (read only) api/main/auth-rewrite"), "{screen}");
    press(&mut app, "y", at(1));
    assert!(app.take_effects().iter().all(|it| !matches!(it, Effect::Copy(_))));
}

#[test]
fn it_opens_closes_and_is_looked_at_only_then() {
    let mut app = app();
    assert_eq!(app.peeked(), None);
    press(&mut app, "p", at(0));
    assert_eq!(app.peeked().map(|it| it.session().clone()), Some(session("s-auth")));
    press(&mut app, "?", at(0));
    assert_eq!(app.peeked(), None, "nobody sees it below the help");
    let help = shown(&app, 120, 70, at(0));
    let line = help.lines().find(|line| line.contains("What is on the lead's pane")).unwrap();
    assert!(line.contains("  p  "), "{line}");
    press(&mut app, "\u{1b}", at(1));
    assert!(app.peeked().is_some());
    press(&mut app, "\u{1b}", at(1));
    assert_eq!((app.peeked(), app.layers.len()), (None, 0));
    press(&mut app, "pp", at(2));
    assert_eq!((app.peeked(), app.layers.len()), (None, 0), "the same key closes it");
    press(&mut app, "pq", at(2));
    assert_eq!(app.layers.len(), 0);
    assert!(app.take_effects().iter().all(|it| !matches!(it, Effect::Quit)), "q backs out");
    // From an ask, and once only.
    press(&mut app, "\np", at(3));
    assert_eq!((app.peeked().is_some(), app.layers.len()), (true, 2));
    press(&mut app, "\u{1b}\u{1b}", at(3));
    // The lead there can be written to at once, and its pane be gone to.
    press(&mut app, "pr", at(4));
    assert!(shown(&app, 120, 40, at(4)).contains("8192 bytes"));
    assert_eq!(app.peeked(), None);
    press(&mut app, "\u{1b}\u{1b}", at(4));
    app.take_effects();
    press(&mut app, "f", at(4));
    let asked = format!("{:?}", app.take_effects());
    assert!(asked.contains("Focus") && asked.contains("w1:p1"), "{asked}");
    // Where nobody is selected there is nothing to look at.
    let mut app = app_in(theme());
    app.facts(vec![Fact::Inventory(Arc::new(Inventory::default()))], at(0));
    press(&mut app, "p", at(0));
    assert_eq!(app.layers.len(), 0);
    assert!(shown(&app, 80, 24, at(0)).contains("No lead is selected."));
}

#[test]
fn it_stays_at_the_end_until_one_scrolls_and_copies_what_stands_there() {
    let mut app = opened();
    let rows = |app: &App| shown(app, 80, 24, at(1));
    assert!(rows(&app).contains("> _") && !rows(&app).contains("Rewrite the token"));
    let longer = format!("{}\nnew at the end", screen_of_a_lead());
    app.facts(vec![told("s-auth", Some(seen(&longer)), None)], at(1));
    assert!(rows(&app).contains("new at the end"));
    press(&mut app, "k", at(1));
    assert!(!rows(&app).contains("new at the end"), "one row up");
    app.facts(vec![told("s-auth", Some(seen(&format!("{longer}\nand more"))), None)], at(1));
    assert!(!rows(&app).contains("and more"), "it stays where one looks");
    press(&mut app, "gg", at(1));
    assert!(rows(&app).contains("Rewrite the token"));
    press(&mut app, "G", at(1));
    assert!(rows(&app).contains("and more"));
    app.facts(vec![told("s-auth", Some(seen("short now")), None)], at(1));
    assert!(rows(&app).contains("short now"));
    app.take_effects();
    press(&mut app, "y", at(1));
    let copied = app.take_effects().into_iter().find_map(|it| match it {
        Effect::Copy(text) => Some(text),
        _ => None,
    });
    assert_eq!(copied, Some(Untrusted::from("short now")));
}

#[test]
fn nothing_breaks_at_any_size_with_a_hostile_pane() {
    let mut hostile = seen(&format!("{HOSTILE}\n").repeat(80));
    let program = Foreground {
        pid: u64::MAX >> 11,
        argv0: None,
        cmdline: Some(HOSTILE.repeat(50).into()),
        state: Some(HOSTILE.into()),
    };
    hostile.process = Ok(ProcessEvidence { shell: None, group: None, foreground: vec![program; 8] });
    let mono = Theme::load(None, GlyphChoice::Ascii, |_| None).unwrap();
    for theme in [theme(), mono] {
        let is_ascii = theme.ascii_text();
        let mut app = app_in(theme);
        press(&mut app, "p", at(1));
        app.facts(vec![told("s-auth", Some(hostile.clone()), Some(&HOSTILE.replace('\t', " ")))], at(1));
        for keys in ["", "k", "gg", "\u{4}", "G"] {
            press(&mut app, keys, at(1));
            for (width, height) in
                [(1, 1), (19, 6), (20, 6), (21, 7), (40, 15), (49, 9), (50, 12), (79, 24), (80, 7), (200, 50)]
            {
                let screen = shown(&app, width, height, at(9));
                let bad =
                    screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
                assert_eq!(bad, None, "{width}x{height}: {screen:?}");
                assert!(!is_ascii || screen.is_ascii(), "{screen}");
            }
        }
    }
}

/// The lead at that post.
fn lead_at(post: &Post) -> headman::herd::Lead {
    let native = |id: &str| headman::contract::NativeId::new(id).unwrap();
    headman::herd::Lead {
        session: post.session.clone(),
        workspace: native(&post.pane.workspace),
        tab: native(&post.pane.tab),
        pane: native(&post.pane.pane),
        ..lead(Some(post.session_file.to_str().unwrap()))
    }
}

/// Two leads of a simulated Herdr, looked at one after the other.
#[tokio::test]
async fn the_source_looks_only_at_whom_it_is_told_and_touches_nothing() {
    let stage = Stage::new().await;
    let (one, two) = (stage.post("s-1"), stage.post("s-2"));
    for (post, text) in [(&one, "screen of one"), (&two, "screen of two")] {
        std::fs::write(
            &post.session_file,
            format!(
                "{{\"type\":\"session\",\"version\":3,\"id\":\"{}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/tmp\"}}\n",
                post.session.as_untrusted().to_str_lossy()
            ),
        )
        .unwrap();
        stage.list_lead(post).await;
        stage.herdr.server.set_screen(&post.pane.pane, text);
        stage.herdr.server.set_full_screen(&post.pane.pane, true);
    }
    let subject = |post: &Post| Subject::of(&lead_at(post));
    let (facts, received) = fact::channel();
    let (peeked, subjects) = watch::channel(None);
    stage.herdr.server.forget_calls();
    let task = tokio::spawn(source::peek::run(stage.herdr.client(), facts, subjects));
    let next = async |what: &str, wanted: &dyn Fn(&Peek) -> bool| {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(Fact::Peek(peek)) = received.take().pop()
                && wanted(&peek)
            {
                return peek;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}");
            let _ = tokio::time::timeout(left.min(Duration::from_millis(50)), received.ready()).await;
        }
    };
    let shows =
        |text: &'static str| move |peek: &Peek| peek.seen.as_ref().is_some_and(|it| it.output == text);
    tokio::task::yield_now().await;
    assert_eq!(stage.herdr.server.calls(), [], "it looked although nobody did");

    peeked.send_replace(Some(subject(&one)));
    next("the first look", &shows("screen of one")).await;
    stage.herdr.server.set_screen(&one.pane.pane, "another screen");
    next("what changed", &shows("another screen")).await;
    peeked.send_replace(None);
    tokio::task::yield_now().await;
    stage.herdr.server.forget_calls();
    peeked.send_replace(Some(subject(&two)));
    let peek = next("the other lead", &shows("screen of two")).await;
    assert_eq!((&peek.session, &peek.trouble), (&two.session, &None));

    // Herdr away: the last picture stays. Another on the pane: nothing does.
    stage.herdr.server.set_fault_on(Some("pane.read"), Fault::Cut).await.unwrap();
    let peek = next("the trouble", &|peek| peek.trouble.is_some()).await;
    assert!(
        shows("screen of two")(&peek) && peek.trouble.as_ref().unwrap().contains("pane.read"),
        "{peek:?}"
    );
    stage.herdr.server.set_fault(Fault::None).await.unwrap();
    next("it back", &|peek| peek.trouble.is_none()).await;
    stage.herdr.server.detach(&two.pane.pane);
    until("the lead is gone", async || stage.herdr.client().agent_list().await.unwrap().0.len() == 2).await;
    let peek = next("that it is gone", &|peek| peek.seen.is_none()).await;
    assert!(peek.trouble.as_ref().unwrap().contains("not on pane"), "{peek:?}");

    let calls = stage.herdr.server.calls();
    let reads = calls.iter().filter(|call| call.method.starts_with("pane."));
    assert!(reads.clone().all(|call| call.params["pane_id"] == *two.pane.pane), "{calls:?}");
    let passive = ["pane.get", "pane.read", "pane.process_info", "agent.list"];
    assert!(calls.iter().all(|call| passive.contains(&&*call.method)), "{calls:?}");
    for post in [&one, &two] {
        assert_eq!(stage.herdr.server.disturbances(&post.pane.pane), 0);
    }
    drop(peeked);
    tokio::time::timeout(DEADLINE, task).await.expect("it ends with the screen").unwrap();
}

#[test]
fn a_person_looks_at_a_leads_pane_and_goes_back() {
    let home = demo_console::home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut terminal = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    terminal.wait_for("the leads", |it| it.shows("NEEDS YOU"));
    demo_console::press(&mut terminal, "p", "the lead's screen and its program", |it| {
        it.shows("Peek (read only)") && it.shows("demo-lead") && it.shows("└") && it.shows("● bash")
    });
    demo_console::press(&mut terminal, "\u{1b}", "the leads", |it| it.shows("Leads") && !it.shows("Peek"));
    demo_console::press(&mut terminal, "q", "anything", |_| true);
    assert!(terminal.finish().success());
    terminal.assert_given_back();
}
