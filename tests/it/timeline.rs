//! What happened, who is told of it, and how it is shown.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use headman::console::app::{App, Effect, Layer};
use headman::console::notify::delivery::{Means, Report, Sequence, bytes};
use headman::console::notify::{APART, Notice, Notifier, Quiet, Settings};
use headman::console::text;
use headman::console::timeline::{MAX_EVENTS, What, summary};
use headman::contract::{Kind, SessionId, Timestamp, Uuid};
use headman::fact::{Fact, Fate, LeadRead, Letter, Mail, Now, OtherChief, Sent, Standing};
use headman::herd::evidence::State;

use crate::screens::{
    LEADS, Lead, START, app, at, empty, inventory, press, records, session, shown, theme, uuid,
};

fn told(app: &App) -> Vec<String> {
    let mut told: Vec<String> = (app.timeline().newest_first())
        .map(|event| format!("{} {}", event.name, event.what.kind().word()).trim().to_owned())
        .collect();
    told.reverse();
    told
}

/// What happened since this was called last.
fn new(app: &App, from: &mut u64) -> Vec<String> {
    let since = std::mem::replace(from, app.timeline().next_number());
    app.timeline()
        .new_from(since)
        .map(|event| format!("{} {}", event.name, event.what.kind().word()).trim().to_owned())
        .collect()
}

fn herd(leads: &[Lead]) -> Vec<Fact> {
    vec![Fact::Inventory(Arc::new(inventory(leads))), Fact::Leads(Arc::new(records(leads)))]
}

fn changed(session: &str, change: impl Fn(&mut Lead)) -> Vec<Lead> {
    let mut leads = LEADS.to_vec();
    leads.iter_mut().filter(|lead| lead.session == session).for_each(change);
    leads
}

fn standing(lease: u32) -> Fact {
    Fact::Standing(Standing::Chief { lease: uuid(lease), since: Timestamp::from_millis(START) })
}

#[test]
fn each_transition_happens_once_and_what_stood_already_is_no_news() {
    let mut app = app();
    let mut from = 0;
    assert_eq!(new(&app, &mut from), ["became Chief"]);
    assert_eq!(told(&app), ["api/main/auth-rewrite asked", "web/release/2.4/checkout asked", "became Chief"]);

    // The same again is nothing.
    app.facts(herd(LEADS), at(1));
    assert_eq!(new(&app, &mut from), [""; 0]);
    app.facts(herd(&changed("s-tf", |lead| lead.state = State::Idle)), at(2));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade finished"]);
    app.facts(herd(&changed("s-tf", |lead| lead.state = State::Blocked)), at(3));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade blocked"]);
    // Who asks waits for us, and is not told of as blocked besides.
    let asks = changed("s-tf", |lead| {
        lead.state = State::Blocked;
        lead.question = Some("Which region?");
    });
    app.facts(herd(LEADS), at(4));
    app.facts(herd(&asks), at(5));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade asked"]);
    app.facts(herd(LEADS), at(6));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade answered elsewhere"]);
    // The same ask once more was told.
    app.facts(herd(&asks), at(7));
    assert_eq!(new(&app, &mut from), [""; 0]);

    // A reply of ours.
    let sent = Sent {
        id: uuid(500),
        kind: Kind::ChiefReply,
        lead: session("s-auth"),
        ask: Some(uuid(100)),
        text: "Yes.".into(),
        at: Timestamp::from_millis(START),
        fate: Fate::Taken,
    };
    let mut facts = herd(&changed("s-auth", |lead| lead.question = None));
    facts.insert(0, Fact::Sent(sent));
    app.facts(facts, at(8));
    // Only what differs from the round before: the lead that asked a moment ago does not any more.
    assert_eq!(
        new(&app, &mut from),
        ["api/main/auth-rewrite answered", "infra/main/tf-upgrade answered elsewhere"]
    );
}

#[test]
fn who_goes_is_lost_or_has_withdrawn_and_what_cannot_be_read_is_neither() {
    let mut app = app();
    let mut from = app.timeline().next_number();
    let without = |name: &str| LEADS.iter().filter(|lead| lead.session != name).copied().collect::<Vec<_>>();
    // Its record stays: it did not withdraw.
    app.facts(vec![Fact::Inventory(Arc::new(inventory(&without("s-tf"))))], at(1));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade lost"]);
    app.facts(vec![Fact::Inventory(Arc::new(inventory(LEADS)))], at(2));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade joined"]);
    // It removes its record, then ends.
    app.facts(vec![Fact::Lead(session("s-tf").hash(), LeadRead::Absent)], at(3));
    assert_eq!(new(&app, &mut from), ["infra/main/tf-upgrade left"]);
    app.facts(vec![Fact::Inventory(Arc::new(inventory(&without("s-tf"))))], at(4));
    assert_eq!(new(&app, &mut from), [""; 0]);
    // Nobody is lost by a directory that can't be read, nor by a Herdr that is away.
    app.facts(vec![Fact::LeadsUnreadable("it belongs to user 1234".to_owned())], at(5));
    app.facts(vec![Fact::HerdrDown { reason: "no answer".to_owned() }], at(6));
    assert_eq!(new(&app, &mut from), [""; 0]);
    app.facts(herd(&without("s-tf")), at(7));
    assert_eq!(new(&app, &mut from), [""; 0]);
}

#[test]
fn the_lease_comes_and_goes() {
    let mut app = app();
    let mut from = app.timeline().next_number();
    let free = OtherChief::None;
    app.facts(
        vec![Fact::Standing(Standing::Lost { reason: "its lock is gone".to_owned(), chief: free.clone() })],
        at(1),
    );
    app.facts(vec![Fact::Standing(Standing::Suspended(free.clone()))], at(2));
    app.facts(vec![standing(901)], at(3));
    app.facts(vec![standing(901)], at(4));
    app.facts(vec![Fact::Standing(Standing::Observer { chief: free, refused: None })], at(5));
    assert_eq!(new(&app, &mut from), ["lease lost", "became Chief", "left Chief mode"]);
    let lost = app.timeline().newest_first().find(|event| event.what == What::LeaseLost).unwrap();
    assert_eq!(lost.about.as_str(), "its lock is gone");
}

fn letter(seq: u64, kind: Kind, ask: Option<Uuid>, text: &str) -> Letter {
    Letter {
        seq,
        at: Timestamp::from_millis(START - 3_600_000 + seq * 1000),
        id: uuid(600 + seq as u32),
        kind: Some(kind),
        lead: Some(session("s-docs")),
        ask,
        created_at: None,
        preview: text.into(),
        whole: true,
        refused: None,
        read: false,
    }
}

fn mail(letters: &[Letter]) -> Fact {
    Fact::Mail(Arc::new(Mail { newest: letters.to_vec(), total: letters.len(), ..Mail::default() }))
}

#[test]
fn it_begins_with_what_the_journal_has_received_and_goes_on_with_what_comes() {
    let mut app = app();
    let mut from = app.timeline().next_number();
    let old = [
        letter(1, Kind::LeadMessage, None, "The links are fixed."),
        // It stands in the list already, and so is listed once.
        letter(2, Kind::LeadAsk, Some(uuid(100)), "Do we reject?"),
        letter(3, Kind::LeadAsk, Some(uuid(777)), "An older one?"),
    ];
    app.facts(vec![mail(&old)], at(1));
    assert_eq!(new(&app, &mut from), [""; 0], "they came before");
    assert_eq!(
        told(&app)[..4],
        [
            "docs/main/site wrote",
            "docs/main/site asked",
            "api/main/auth-rewrite asked",
            "web/release/2.4/checkout asked"
        ]
    );
    let age = app.timeline().newest_first().last().unwrap().age(at(61));
    assert_eq!(age, Duration::from_secs(3600 - 1 + 61), "by its own time");
    let mut all = old.to_vec();
    all.push(letter(4, Kind::LeadMessage, None, "Done."));
    all.push(letter(5, Kind::LeadAsk, Some(uuid(778)), "What its record tells?"));
    app.facts(vec![mail(&all)], at(2));
    app.facts(vec![mail(&all)], at(3));
    assert_eq!(new(&app, &mut from), ["docs/main/site wrote"]);
}

#[test]
fn however_much_happens_so_much_is_kept() {
    let mut app = app();
    for round in 0..MAX_EVENTS as u64 {
        let state = if round % 2 == 0 { State::Idle } else { State::Working };
        app.facts(herd(&changed("s-tf", |lead| lead.state = state)), at(round));
        app.facts(vec![standing(1000 + round as u32)], at(round));
    }
    assert_eq!(app.timeline().newest_first().len(), MAX_EVENTS);
    assert!(app.timeline().newest_first().all(|event| event.is_new));
    press(&mut app, "ga", at(2000));
    assert!(shown(&app, 120, 40, at(2000)).contains("the last 1000"));
}

/// All notices that there are, with what happens at those times.
fn notices(settings: &Settings, focused: Option<bool>, minute: u16) -> Vec<String> {
    let mut app = app();
    let mut notifier = Notifier::new(settings.clone());
    let mut out = Vec::new();
    let mut look = |app: &App, now: Now, out: &mut Vec<String>| {
        notifier.consider(app.timeline(), focused, || minute, now.mono);
        let later = now.mono + Duration::from_millis(300);
        if let Some(notice) = notifier.take_due(later) {
            out.push(format!("{} | {}", notice.title, notice.body));
        }
        assert_eq!(notifier.deadline(), None, "what was due is told");
    };
    look(&app, at(0), &mut out);
    let asks = changed("s-tf", |lead| lead.question = Some("Which region?"));
    // It flaps: asked, lost, there again, lost, there again.
    for (seconds, leads) in
        [(1, &asks[..]), (2, &LEADS[..2]), (3, &asks[..]), (4, &LEADS[..2]), (5, &asks[..])]
    {
        app.facts(
            vec![Fact::Inventory(Arc::new(inventory(leads))), Fact::Leads(Arc::new(records(&asks)))],
            at(seconds),
        );
        look(&app, at(seconds), &mut out);
    }
    let apart = 4 + APART.as_secs();
    app.facts(vec![Fact::Inventory(Arc::new(inventory(&LEADS[..2])))], at(apart));
    look(&app, at(apart), &mut out);
    let idle: Vec<Lead> =
        LEADS[..2].iter().map(|lead| Lead { state: State::Idle, question: None, ..*lead }).collect();
    app.facts(herd(&idle), at(apart + 1));
    look(&app, at(apart + 1), &mut out);
    let lost = Standing::Lost { reason: "its lock is gone".to_owned(), chief: OtherChief::None };
    app.facts(vec![Fact::Standing(lost)], at(apart + 2));
    look(&app, at(apart + 2), &mut out);
    out
}

#[test]
fn notices_come_once_for_each_lead_and_kind_within_a_minute() {
    let three = "docs/main/site, w5/lead-s-ops, infra/main/tf-upgrade";
    let expected = [
        "infra/main/tf-upgrade asked | Which region?".to_owned(),
        format!("headman: 3 lost | {three}"),
        format!("headman: 3 lost | {three}"),
        "headman: lease lost | its lock is gone".to_owned(),
    ];
    assert_eq!(notices(&Settings::default(), None, 0), expected);
    // Of those that finish, by choice alone.
    let finished = Settings { finished: true, lost: false, lease: false, ..Settings::default() };
    assert_eq!(
        notices(&finished, Some(false), 0)[1..],
        ["api/main/auth-rewrite finished | "],
        "the other was blocked, not at work"
    );
}

#[test]
fn there_are_none_while_somebody_looks_or_wants_quiet() {
    assert_eq!(notices(&Settings::default(), Some(true), 0), [""; 0]);
    let focused = Settings { while_focused: true, ..Settings::default() };
    assert_eq!(notices(&focused, Some(true), 0).len(), 4);
    let quiet = |text: &str| Quiet::try_from(text.to_owned());
    let night = Settings { quiet: Some(quiet("22:00-07:30").unwrap()), ..Settings::default() };
    assert_eq!(notices(&night, None, 23 * 60), [""; 0]);
    assert_eq!(notices(&night, None, 12 * 60).len(), 4);
    let noon = quiet("12:00-13:00").unwrap();
    assert!(noon.has(12 * 60) && !noon.has(13 * 60) && !noon.has(11 * 60 + 59));
    for wrong in
        ["", "22:00", "22-7", "24:00-07:00", "22:60-07:00", "7:00-8:00", "07:00-07:00", "+7:00-08:00"]
    {
        assert!(quiet(wrong).is_err(), "{wrong:?}");
    }
    let off = Settings { ask: false, lost: false, lease: false, ..Settings::default() };
    assert_eq!(notices(&off, None, 0), [""; 0]);
}

#[test]
fn a_terminal_is_told_only_what_cannot_drive_it() {
    let hostile = "a;b\u{1b}]0;x\u{7}\u{202e}c\u{9c}\n";
    let notice = Notice { title: text::title(hostile), body: text::notice(&"ä;".repeat(500)) };
    for (sequence, begins, semicolons) in
        [(Sequence::Osc9, "\x1b]9;", 1), (Sequence::Osc777, "\x1b]777;notify;", 3)]
    {
        let out = String::from_utf8(bytes(sequence, false, &notice, false)).unwrap();
        assert!(out.starts_with(begins) && out.ends_with('\x07'), "{out:?}");
        let inside = &out[1..out.len() - 1];
        assert!(!inside.chars().any(|it| it.is_control() || it == '\u{202e}'), "{out:?}");
        assert_eq!(inside.matches(';').count(), semicolons, "{out:?}");
        assert!(inside.chars().count() <= 80 + 240 + 20, "{}", inside.len());
        let passed = String::from_utf8(bytes(sequence, true, &notice, true)).unwrap();
        assert!(passed.starts_with("\x1bPtmux;\x1b\x1b]") && passed.ends_with("\x07\x1b\\"), "{passed:?}");
        assert!(passed.is_ascii());
    }
}

#[test]
fn notices_go_where_they_are_seen() {
    let means = |settings: &Settings, env: &[(&str, &str)]| {
        Means::of(settings, |name| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let auto = Settings::default();
    let terminal = |sequence, tmux| Means::Terminal { sequence, tmux };
    let wezterm = ("TERM_PROGRAM", "WezTerm");
    assert_eq!(means(&auto, &[("HERDR_ENV", "1"), wezterm]), Means::Herdr);
    assert_eq!(means(&auto, &[wezterm]), terminal(Sequence::Osc9, false));
    assert_eq!(means(&auto, &[("TERM", "xterm-kitty")]), terminal(Sequence::Osc9, false));
    assert_eq!(means(&auto, &[("TERM", "foot")]), terminal(Sequence::Osc777, false));
    assert_eq!(
        means(&auto, &[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]),
        terminal(Sequence::Osc777, false)
    );
    let nobody = |means: Means, word: &str| match means {
        Means::Nobody(why) => assert!(why.contains(word), "{why}"),
        other => panic!("{other:?}"),
    };
    nobody(means(&auto, &[("TERM", "xterm-256color")]), "not known");
    nobody(means(&auto, &[("TERM", "linux")]), "not known");
    let tmux = [("TMUX", "/tmp/tmux-0/default,1,0"), ("TERM", "tmux-256color"), ("VTE_VERSION", "7600")];
    nobody(means(&auto, &tmux), "allow-passthrough");
    let passed = Settings { tmux_passthrough: true, ..Settings::default() };
    assert_eq!(means(&passed, &tmux), terminal(Sequence::Osc777, true));
    let chosen = |terminal| Settings { terminal, ..Settings::default() };
    use headman::console::notify::TerminalWay::{Off, Osc9};
    assert_eq!(means(&chosen(Osc9), &[("TERM", "foot")]), terminal(Sequence::Osc9, false));
    nobody(means(&chosen(Off), &[("TERM", "foot")]), "switched off");
}

/// Everything that can happen while nobody looks.
fn eventful() -> App {
    let mut app = app();
    app.facts(vec![mail(&[letter(1, Kind::LeadMessage, None, "The links are fixed.")])], at(10));
    app.focus(false, at(20));
    let gone: Vec<Lead> = changed("s-tf", |lead| lead.state = State::Idle)
        .into_iter()
        .filter(|lead| lead.session != "s-ops")
        .collect();
    app.facts(
        vec![
            Fact::Inventory(Arc::new(inventory(&gone))),
            mail(&[
                letter(1, Kind::LeadMessage, None, "The links are fixed."),
                letter(2, Kind::LeadMessage, None, "All pages build again; the old theme is gone."),
            ]),
        ],
        at(140),
    );
    let asks = changed("s-docs", |lead| lead.question = Some("Publish now, or after the release?"));
    app.facts(vec![Fact::Leads(Arc::new(records(&asks)))], at(600));
    app.facts(
        vec![Fact::Standing(Standing::Lost {
            reason: "its lock is gone".to_owned(),
            chief: OtherChief::None,
        })],
        at(700),
    );
    app.focus(true, at(20 + 42 * 60));
    app.take_effects();
    app
}

#[test]
fn who_comes_back_is_told_and_the_timeline_has_the_whole() {
    let mut app = eventful();
    let now = at(20 + 42 * 60);
    for (width, height) in [(120, 40), (80, 24)] {
        insta::assert_snapshot!(format!("away_{width}x{height}"), shown(&app, width, height, now));
    }
    press(&mut app, "ga", now);
    for (width, height) in [(120, 40), (80, 24), (40, 15)] {
        insta::assert_snapshot!(format!("timeline_{width}x{height}"), shown(&app, width, height, now));
    }
    // It was seen.
    press(&mut app, "ga", now);
    assert!(matches!(app.layers[..], []) && app.away().is_none());
}

#[test]
fn the_line_goes_by_itself_or_with_esc_and_does_not_come_for_nothing() {
    let later = |seconds: u64| at(20 + 42 * 60 + seconds);
    let mut app = eventful();
    app.tick(later(59));
    assert_eq!(app.next_frame(None, later(59)), Some(Duration::from_secs(1)));
    assert!(app.away().is_some());
    app.tick(later(60));
    assert!(app.away().is_none());
    let mut app = eventful();
    press(&mut app, "j", later(1));
    assert!(app.away().is_some(), "a key alone does not take it away");
    press(&mut app, "\u{1b}", later(2));
    assert!(app.away().is_none());
    // Away again, and nothing happened.
    app.focus(false, later(10));
    app.focus(true, later(3000));
    assert!(app.away().is_none());
    // Without a word of the terminal: the first key after ten minutes.
    app.facts(herd(&changed("s-tf", |lead| lead.state = State::Working)), later(3100));
    let asks = changed("s-tf", |lead| lead.question = Some("Which region?"));
    app.facts(herd(&asks), later(3200));
    press(&mut app, "j", later(3000 + 599));
    assert!(app.away().is_none());
    app.facts(herd(LEADS), later(4000));
    press(&mut app, "j", later(3599 + 660));
    assert_eq!(app.away().unwrap().as_str(), "away 11m: 1 answered elsewhere; g a shows");
}

#[test]
fn enter_goes_to_where_it_happened() {
    let now = at(3000);
    let go = |name: &str| {
        let mut app = eventful();
        press(&mut app, "ga", now);
        let row = app
            .timeline()
            .newest_first()
            .position(|event| format!("{} {}", event.name, event.what.kind().word()).trim() == name);
        press(&mut app, &"j".repeat(row.unwrap()), now);
        press(&mut app, "\n", now);
        app
    };
    let mut app = go("docs/main/site asked");
    assert!(matches!(app.layers[..], [Layer::Timeline(_), Layer::Ask(_)]));
    assert!(shown(&app, 120, 40, now).contains("Publish now, or after the release?"));
    press(&mut app, "\u{1b}", now);
    assert!(matches!(app.layers[..], [Layer::Timeline(_)]), "back to the timeline");

    let app = go("infra/main/tf-upgrade finished");
    assert!(app.layers.is_empty());
    assert_eq!(app.selected(), Some(&session("s-tf")));

    let app = go("docs/main/site wrote");
    assert!(matches!(app.layers[..], [Layer::Timeline(_), Layer::Inbox(_)]));
    assert!(shown(&app, 120, 40, now).contains("the old theme is gone"));

    let app = go("lease lost");
    assert!(matches!(app.layers[..], [Layer::Timeline(_), Layer::Diagnostics(_)]));

    let app = go("w5/lead-s-ops lost");
    assert!(shown(&app, 120, 40, now).contains("That lead is not listed now."));
}

#[test]
fn the_diagnostics_say_how_notices_fare() {
    let mut app = app();
    press(&mut app, "d", at(1));
    assert!(!shown(&app, 120, 40, at(1)).contains("notices"));
    let report = Report {
        way: Means::Herdr.sentence(),
        trouble: Some("Herdr does not show notices: disabled".to_owned()),
    };
    app.notices_fare(report);
    let screen = shown(&app, 120, 40, at(1));
    assert!(screen.contains("note Notices go through Herdr."), "{screen}");
    assert!(screen.contains("warn Herdr does not show notices: disabled."), "{screen}");
}

#[test]
fn a_summary_counts_the_gravest_first() {
    let kinds = [What::Joined, What::Lost, What::Asked(uuid(1)), What::Asked(uuid(2)), What::Message(7)];
    assert_eq!(summary(kinds.iter().map(What::kind)), "2 asked, 1 lost, 1 wrote, 1 joined");
    assert_eq!(summary([].into_iter()), "");
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
    MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
}

#[test]
fn the_mouse_selects_and_scrolls_and_never_sends() {
    let click = |column, row| mouse(MouseEventKind::Down(MouseButton::Left), column, row);
    let mut app = app();
    let screen = shown(&app, 120, 40, at(0));
    let row_of =
        |screen: &str, text: &str| screen.lines().position(|line| line.contains(text)).unwrap() as u16;
    let docs = row_of(&screen, "docs/main/site");
    assert!(app.mouse(click(8, docs), at(1)));
    assert_eq!(app.selected(), Some(&session("s-docs")));
    // A heading, the frame and what is beside the list select nothing.
    for (column, row) in [(8, row_of(&screen, "WORKING")), (0, docs), (100, docs), (8, 39), (119, 0)] {
        app.mouse(click(column, row), at(1));
        assert_eq!(app.selected(), Some(&session("s-docs")), "{column}, {row}");
    }
    app.mouse(mouse(MouseEventKind::ScrollUp, 8, docs), at(2));
    assert_eq!(app.selected(), Some(&session("s-auth")), "three rows up");
    assert!(!app.mouse(mouse(MouseEventKind::Moved, 8, docs), at(2)), "nothing has to be drawn");
    // In the inbox the same, and nothing is read by it.
    app.facts(
        vec![mail(&[
            letter(1, Kind::LeadMessage, None, "The links are fixed."),
            letter(2, Kind::LeadMessage, None, "All pages build again."),
        ])],
        at(3),
    );
    app.take_effects();
    press(&mut app, "i", at(3));
    let screen = shown(&app, 120, 40, at(3));
    app.mouse(click(8, row_of(&screen, "The links")), at(4));
    let Some(Layer::Inbox(state)) = app.layers.last() else { panic!() };
    assert_eq!(state.letter().map(|letter| letter.seq), Some(1));
    press(&mut app, "q", at(5));
    // While something is written or asked, it does nothing.
    press(&mut app, "r", at(6));
    press(&mut app, "Yes.", at(6));
    app.take_effects();
    let before = shown(&app, 120, 40, at(7));
    for row in 0..40 {
        app.mouse(click(8, row), at(7));
        app.mouse(mouse(MouseEventKind::ScrollDown, 60, row), at(7));
    }
    assert_eq!(shown(&app, 120, 40, at(7)), before);
    assert!(!app.take_effects().iter().any(|it| matches!(it, Effect::Request(_))));
}

/// Of equal sessions nothing else is told apart.
#[test]
fn the_name_of_a_sender_that_was_never_listed_is_its_session() {
    let mut app = app();
    let unknown =
        Letter { lead: SessionId::new("0123456789abcdef"), ..letter(1, Kind::LeadMessage, None, "Hello.") };
    app.facts(vec![mail(&[unknown])], at(1));
    assert_eq!(told(&app)[0], "01234567 wrote");
}

#[test]
fn what_the_journal_has_is_named_once_its_lead_is_known() {
    let mut app = empty(theme());
    app.facts(vec![standing(1), mail(&[letter(1, Kind::LeadMessage, None, "The links are fixed.")])], at(1));
    assert_eq!(told(&app)[0], "s-docs wrote");
    app.facts(herd(LEADS), at(2));
    let told = told(&app);
    assert!(told.contains(&"docs/main/site wrote".to_owned()), "{told:?}");
    assert!(!told.contains(&"s-docs wrote".to_owned()), "{told:?}");
}
