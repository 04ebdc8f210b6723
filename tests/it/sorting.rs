//! The list as the operator arranges it: marks, pins, and asks that are put off.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use headman::chief::service::Request;
use headman::console::app::{App, Effect};
use headman::console::theme::{GlyphChoice, Theme};
use headman::console::view::roster::Row;
use headman::contract::{SessionId, Timestamp, Uuid};
use headman::fact::{Done, Fact, Now, Outcome, Snooze, Standing, Until};
use headman::herd::evidence::State;
use headman::herd::order::Group;
use proptest::prelude::*;

use crate::chief_service::World;
use crate::screens::{LEADS, Lead, START, app, app_in, at, inventory, press, records, session, shown, uuid};

fn snapshot(name: &str, app: &App, now: Now) {
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, now));
    }
}

fn herd(app: &mut App, leads: &[Lead], now: Now) {
    let facts = vec![Fact::Inventory(Arc::new(inventory(leads))), Fact::Leads(Arc::new(records(leads)))];
    app.facts(facts, now);
}

/// That these asks are put off, since 09:12.
fn snoozes(of: &[(&str, u32, Until)]) -> Fact {
    let snooze = |(lead, ask, until): &(&str, u32, Until)| Snooze {
        lead: session(lead),
        ask: uuid(*ask),
        at: Timestamp::from_millis(START),
        until: *until,
    };
    Fact::Snoozes(Arc::new(of.iter().map(snooze).collect()))
}

fn after(seconds: u64) -> Until {
    Until::At(Timestamp::from_millis(START + seconds * 1000))
}

/// The request to put an ask off that the app made last, with its ticket.
fn asked(app: &mut App) -> Option<(u64, SessionId, Uuid, Option<Until>)> {
    app.take_effects().into_iter().rev().find_map(|effect| match effect {
        Effect::Request(Request::Snooze { ticket, lead, ask, until }) => Some((ticket, lead, ask, until)),
        _ => None,
    })
}

fn names(app: &App) -> Vec<String> {
    let rows = app.roster.rows().iter().map(|row| match row {
        Row::Group(group) => group.title().to_owned(),
        Row::Lead { session, .. } => session.as_untrusted().to_str_lossy().into_owned(),
    });
    rows.collect()
}

#[test]
fn marks_survive_what_the_list_does_and_go_with_their_lead() {
    let mut app = app();
    press(&mut app, " jj ", at(1));
    assert!(app.roster.is_marked(&session("s-auth")) && app.roster.is_marked(&session("s-tf")));
    snapshot("marked", &app, at(1));
    // A filter that hides them, then the list sorted anew, then the cursor on another.
    press(&mut app, "/site\n", at(2));
    assert_eq!(app.roster.marked(), 2);
    let mut leads = LEADS.to_vec();
    leads[2].state = State::Blocked;
    leads[0].question = None;
    herd(&mut app, &leads, at(3));
    assert_eq!((app.roster.marked(), app.roster.selected()), (2, Some(&session("s-docs"))));
    // While the records can't be read nobody is gone.
    app.facts(vec![Fact::LeadsUnreadable("no".to_owned())], at(4));
    assert_eq!(app.roster.marked(), 2);
    herd(&mut app, &leads[1..], at(5));
    assert_eq!(app.roster.marked(), 1);
    assert!(shown(&app, 120, 40, at(5)).contains("Gone, and not marked any more: api/main/auth-rewrite."));
    // Back it comes unmarked.
    herd(&mut app, &leads, at(6));
    assert_eq!(app.roster.marked(), 1);
    press(&mut app, "\u{1b}\u{1b}\u{1b}", at(7));
    assert_eq!(app.roster.marked(), 1, "Esc does not take marks off");
    press(&mut app, "u", at(8));
    assert_eq!(app.roster.marked(), 0);
    assert!(shown(&app, 120, 40, at(8)).contains("1 lead is not marked any more."));
    press(&mut app, " ", at(9));
    press(&mut app, " ", at(9));
    assert_eq!(app.roster.marked(), 0, "the second takes it off");
}

#[test]
fn the_pinned_come_first_in_their_group_and_the_cursor_stays_on_them() {
    let mut app = app();
    assert_eq!(names(&app)[..3], ["NEEDS YOU", "s-auth", "s-checkout"]);
    press(&mut app, "jP", at(1));
    assert_eq!(names(&app)[..3], ["NEEDS YOU", "s-checkout", "s-auth"]);
    assert_eq!(app.roster.selected(), Some(&session("s-checkout")));
    let pins = |app: &mut App| -> Vec<(SessionId, bool)> {
        let effects = app.take_effects().into_iter();
        effects
            .filter_map(|it| if let Effect::Pin(lead, pinned) = it { Some((lead, pinned)) } else { None })
            .collect()
    };
    assert_eq!(pins(&mut app), [(session("s-checkout"), true)]);
    assert!(shown(&app, 120, 40, at(1)).contains("! ◐▴web/release/2.4/checkout"));
    // The next ask is the oldest all the same.
    press(&mut app, "n", at(2));
    assert_eq!(app.roster.selected(), Some(&session("s-auth")));
    press(&mut app, "nP", at(3));
    assert_eq!(pins(&mut app), [(session("s-checkout"), false)]);
    assert_eq!(names(&app)[..3], ["NEEDS YOU", "s-auth", "s-checkout"]);
    let mut next = crate::screens::app();
    next.pin([session("s-checkout")]);
    herd(&mut next, &LEADS[..2], at(1));
    assert_eq!(names(&next)[..3], ["NEEDS YOU", "s-checkout", "s-auth"], "pins of an earlier run");
}

#[test]
fn an_ask_that_is_put_off_is_out_of_the_way_and_comes_back_by_itself() {
    let mut app = app();
    press(&mut app, "z", at(1));
    snapshot("snooze_asked", &app, at(1));
    press(&mut app, "q", at(1));
    assert!(app.confirm.is_some(), "another key does nothing");
    press(&mut app, "\u{1b}", at(1));
    assert!(app.confirm.is_none() && asked(&mut app).is_none());
    for (key, until) in [('m', after(601)), ('h', after(3601)), ('c', Until::Change)] {
        press(&mut app, &format!("z{key}"), at(1));
        let (_, lead, ask, asked) = asked(&mut app).unwrap();
        assert_eq!((lead, ask, asked), (session("s-auth"), uuid(100), Some(until)));
    }
    app.facts(vec![snoozes(&[("s-auth", 100, after(600)), ("s-checkout", 7, after(600))])], at(2));
    assert_eq!(names(&app)[..2], ["NEEDS YOU", "s-checkout"]);
    assert_eq!(names(&app)[names(&app).len() - 2..], ["SNOOZED", "s-auth"]);
    // Its time is told, and it is no ask in title, header, and on the way through them.
    assert_eq!(app.title().as_str(), "1 ask · headman");
    press(&mut app, "n", at(3));
    assert_eq!(app.roster.selected(), Some(&session("s-checkout")));
    press(&mut app, "n", at(3));
    assert_eq!(app.roster.selected(), Some(&session("s-checkout")));
    press(&mut app, "G", at(4));
    let screen = shown(&app, 120, 40, at(4));
    assert!(screen.contains("1 ask (oldest 44s) · 1 snoozed") && screen.contains("snoozed, 10m left"));
    snapshot("snoozed", &app, at(121));
    press(&mut app, "w", at(5));
    assert_eq!(names(&app), ["NEEDS YOU", "s-checkout"]);
    press(&mut app, "w", at(5));
    // Nobody has to look for it: the next frame is due when it comes back.
    app.take_effects();
    let due = app.next_frame(None, at(590)).unwrap();
    assert_eq!(due, Duration::from_secs(10));
    app.tick(at(599));
    assert_eq!(names(&app)[..2], ["NEEDS YOU", "s-checkout"]);
    app.tick(at(600));
    assert_eq!(names(&app)[..3], ["NEEDS YOU", "s-auth", "s-checkout"]);
    assert_eq!(app.next_frame(None, at(600)), None);
    assert_eq!(app.title().as_str(), "2 asks · headman");
}

#[test]
fn a_new_ask_of_the_same_lead_is_not_put_off_and_a_key_has_it_back() {
    let mut app = app();
    app.facts(vec![snoozes(&[("s-auth", 100, Until::Change), ("s-checkout", 101, after(600))])], at(1));
    assert!(!names(&app).contains(&"NEEDS YOU".to_owned()));
    let told = app.take_effects();
    let waits = |wanted: bool| move |it: &Effect| matches!(it, Effect::Request(Request::Waiting(waiting)) if *waiting == wanted);
    assert!(told.iter().any(waits(false)), "no ask waits as far as Herdr is told");
    press(&mut app, "G", at(2));
    let screen = shown(&app, 120, 40, at(2));
    assert!(screen.contains("2 snoozed") && !screen.contains("oldest"), "{screen}");
    press(&mut app, "gg", at(2));
    // Another ask, or the same lead's next: it needs the operator at once.
    let mut leads = LEADS.to_vec();
    leads.swap(0, 1);
    let mut read = records(&leads);
    read.retain(|(hash, _)| *hash == session("s-auth").hash());
    app.facts(read.into_iter().map(|(hash, read)| Fact::Lead(hash, read)).collect(), at(3));
    assert_eq!(names(&app)[..2], ["NEEDS YOU", "s-auth"]);
    assert!(app.take_effects().iter().any(waits(true)));
    // The same key has the other one back.
    press(&mut app, "Gz", at(4));
    let (ticket, lead, ask, until) = asked(&mut app).unwrap();
    assert_eq!((lead, ask, until), (session("s-checkout"), uuid(101), None));
    app.facts(vec![Fact::Outcome(Outcome { ticket, result: Ok(Done::Snoozed) }), snoozes(&[])], at(5));
    assert_eq!(names(&app)[..3], ["NEEDS YOU", "s-auth", "s-checkout"]);
    assert!(shown(&app, 120, 40, at(5)).contains("The ask needs you again."));
    // It can be answered while it is put off, and only a Chief puts off.
    app.facts(vec![snoozes(&[("s-checkout", 101, after(600))])], at(6));
    press(&mut app, "Gr", at(6));
    assert!(shown(&app, 120, 40, at(6)).contains("bytes as sent"));
    press(&mut app, "\u{1b}\u{1b}", at(7));
    let chief = headman::fact::OtherChief::None;
    app.facts(vec![Fact::Standing(Standing::Observer { chief, refused: None })], at(8));
    press(&mut app, "z", at(8));
    assert!(app.confirm.is_none() && asked(&mut app).is_none());
    assert!(shown(&app, 120, 40, at(8)).contains("Only a Chief can put asks off: become Chief (c) first."));
    let ascii = Theme::load(None, GlyphChoice::Ascii, |_| None).unwrap();
    let mut plain = app_in(ascii);
    plain.pin([session("s-auth")]);
    press(&mut plain, " ", at(1));
    plain.facts(vec![snoozes(&[("s-auth", 100, Until::Change)])], at(1));
    assert!(shown(&plain, 120, 40, at(1)).contains("z+*^api/main/auth-rewrite"));
}

#[tokio::test]
async fn what_is_put_off_is_kept_by_the_journal_and_told_to_every_console() {
    let world = World::new().await;
    world.make_chief("home");
    let mut service = world.service("home");
    service.chief().await;
    let lead = world.lead.session.clone();
    let ask = world.lead.record.pending_ask.as_ref().unwrap().ask;
    let told = |count: usize| {
        move |fact: &Fact| match fact {
            Fact::Snoozes(snoozes) if snoozes.len() == count => Some(snoozes.as_ref().clone()),
            _ => None,
        }
    };
    let until = Until::At(Timestamp::from_millis(1 << 42));
    let snooze = |ask, until| {
        let lead = lead.clone();
        move |ticket| Request::Snooze { ticket, lead, ask, until }
    };
    let why = service.ask(snooze(Uuid::random(), Some(until))).await.unwrap_err();
    assert!(why.contains("not pending any more"), "{why}");
    assert_eq!(service.ask(snooze(ask, Some(Until::Change))).await, Ok(Done::Snoozed));
    assert_eq!(service.ask(snooze(ask, Some(until))).await, Ok(Done::Snoozed));
    let all = service.wait("it to be told", |fact| told(1)(fact).filter(|all| all[0].until == until)).await;
    assert_eq!((&all[0].lead, all[0].ask), (&lead, ask));
    // A console that only watches reads it from the journal, and puts nothing off.
    let mut other = world.service("home");
    assert_eq!(other.wait("it in the other", told(1)).await, all);
    let why = other.ask(snooze(ask, None)).await.unwrap_err();
    assert!(why.contains("only the Chief"), "{why}");
    other.end().await;
    service.end().await;
    // So does the next one, and has it back.
    let mut next = world.service("home");
    next.chief().await;
    assert_eq!(next.wait("it after a restart", told(1)).await, all);
    assert_eq!(next.ask(snooze(ask, None)).await, Ok(Done::Snoozed));
    next.wait("none", told(0)).await;
    next.end().await;
}

#[derive(Debug, Clone)]
enum Step {
    Keys(&'static str),
    /// The lead of that number is there or not, in that state, with that ask.
    Lead(usize, Option<(State, Option<u32>)>),
    Snooze(usize, u32, Option<u64>),
    Time(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![Just(State::Working), Just(State::Idle), Just(State::Blocked), Just(State::Lost)];
    let keys = ["j", "k", " ", "u", "P", "w", "/s\n", "/e\n", "\u{1b}", "n", "m", "G", "gg", "b"];
    prop_oneof![
        3 => prop::sample::select(keys.to_vec()).prop_map(Step::Keys),
        3 => (0..5_usize, prop::option::weighted(0.8, (state, prop::option::of(0..3_u32))))
            .prop_map(|(lead, what)| Step::Lead(lead, what)),
        2 => (0..5_usize, 0..3_u32, prop::option::of(1..90_u64)).prop_map(|(lead, ask, left)| Step::Snooze(lead, ask, left)),
        1 => (1..60_u64).prop_map(Step::Time),
    ]
}

fn row_group(app: &App) -> Vec<(Group, &SessionId)> {
    let mut group = None;
    let rows = app.roster.rows().iter().filter_map(|row| match row {
        Row::Group(next) => {
            group = Some(*next);
            None
        }
        Row::Lead { session, .. } => group.map(|group| (group, session)),
    });
    rows.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_changes_the_cursor_stays_and_the_order_says_the_truth(steps in prop::collection::vec(step(), 1..40)) {
        let mut app = app();
        let mut herd: Vec<Option<(State, Option<u32>)>> =
            LEADS.iter().enumerate().map(|(at, it)| Some((it.state, it.question.map(|_| at as u32)))).collect();
        let mut put_off: HashMap<(usize, u32), Snooze> = HashMap::new();
        let mut seconds = 1;
        let mut asks: Vec<Option<u32>> = vec![Some(100), Some(101), None, None, None];
        for step in steps {
            let before: Vec<SessionId> = row_group(&app).into_iter().map(|(_, lead)| lead.clone()).collect();
            let composing = app.context().takes_text();
            let selected = app.roster.placed().cloned();
            let mut by_facts = true;
            match step {
                Step::Keys(keys) => {
                    press(&mut app, if composing { "\u{1b}" } else { keys }, at(seconds));
                    by_facts = false;
                }
                Step::Lead(lead, what) => {
                    herd[lead] = what;
                    asks[lead] = what.and_then(|(_, ask)| ask.map(|ask| 200 + 10 * lead as u32 + ask));
                    let there: Vec<(usize, Lead)> = (LEADS.iter().enumerate())
                        .filter_map(|(at, it)| herd[at].map(|(state, _)| (at, Lead { state, question: asks[at].map(|_| "Well?"), ..*it })))
                        .collect();
                    let leads: Vec<Lead> = there.iter().map(|(_, lead)| *lead).collect();
                    let mut read = records(&leads);
                    for ((_, read), (at, _)) in read.iter_mut().zip(&there) {
                        if let headman::fact::LeadRead::Valid(record) = read
                            && let (Some(pending), Some(ask)) = (&mut record.pending_ask, asks[*at])
                        {
                            pending.ask = uuid(ask);
                        }
                    }
                    app.facts(vec![Fact::Inventory(Arc::new(inventory(&leads))), Fact::Leads(Arc::new(read))], at(seconds));
                }
                Step::Snooze(lead, ask, left) => {
                    let key = (lead, 200 + 10 * lead as u32 + ask);
                    let now = at(seconds).wall;
                    let until = left.map_or(Until::Change, |left| Until::At(Timestamp::from_millis(now.as_millis() + left * 1000)));
                    put_off.insert(key, Snooze { lead: session(LEADS[lead].session), ask: uuid(key.1), at: now, until });
                    app.facts(vec![Fact::Snoozes(Arc::new(put_off.values().cloned().collect()))], at(seconds));
                }
                Step::Time(more) => {
                    seconds += more;
                    app.tick(at(seconds));
                }
            }
            let listed: BTreeSet<&SessionId> = app.model.roster().leads.iter().map(|lead| &lead.session).collect();
            let rows = row_group(&app);
            if by_facts {
                // The cursor stays on its lead as long as the list has it.
                if let Some(selected) = selected.filter(|selected| rows.iter().any(|(_, lead)| *lead == selected)) {
                    prop_assert_eq!(app.roster.selected(), Some(&selected));
                }
                if composing {
                    let after: Vec<&SessionId> = rows.iter().map(|(_, lead)| *lead).collect();
                    let kept: Vec<&SessionId> = before.iter().filter(|lead| listed.contains(lead)).collect();
                    prop_assert_eq!(after, kept, "nothing moves while something is written");
                }
            }
            for lead in LEADS {
                prop_assert!(!app.roster.is_marked(&session(lead.session)) || listed.contains(&session(lead.session)));
            }
            if app.context().takes_text() || !app.layers.is_empty() {
                continue;
            }
            let mut seen = BTreeSet::new();
            let mut last: Option<(Group, bool)> = None;
            for (group, lead) in &rows {
                prop_assert!(seen.insert(*lead), "twice");
                let unpinned = !app.roster.is_pinned(lead);
                prop_assert!(last.is_none_or(|last| last <= (*group, unpinned)), "groups in order, the pinned first");
                last = Some((*group, unpinned));
                let number = LEADS.iter().position(|it| session(it.session) == **lead).unwrap();
                let ask = asks[number];
                let is_off = ask.and_then(|ask| put_off.get(&(number, ask))).is_some_and(|snooze| match snooze.until {
                    Until::At(until) => until > at(seconds).wall,
                    Until::Change => true,
                });
                prop_assert_eq!(*group == Group::NeedsYou, ask.is_some() && !is_off);
                prop_assert_eq!(*group == Group::Snoozed, ask.is_some() && is_off);
            }
        }
    }
}
