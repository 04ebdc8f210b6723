//! Drafts that steer, what is recited, and what holds of any session.

use std::fs;

use headman::contract::Uuid;
use headman::pi::said::{Said, Step};
use headman::signals::detect::{LEDGER, REMEMBERED, Signal};
use headman::signals::self_report::Circumstances;
use headman::signals::steer::{Allowance, BackOff, Basis, Void};
use headman::signals::watch::{Outcome, ROWS, Watch};
use proptest::prelude::*;

use crate::cli_support::Place;
use crate::signals::{Did, all, answer, session_file, steps, user, watched};

#[test]
fn drafts_are_offered_less_and_less_often_and_only_after_delivery() {
    let calls = watched(&all(&[vec![Did::read("a")]])).1[0].calls;
    let others = watched(&all(&[vec![Did::read("b")]])).1[0].calls;
    let mut back_off = BackOff::default();
    let looped = Some(Signal::Loop);
    assert!(back_off.round(looped, calls), "attempt 0");
    assert!((0..5).all(|_| !back_off.round(looped, calls)), "nothing was delivered");
    back_off.delivered();
    let offered: Vec<u32> = (1..=40).filter(|_| back_off.round(looped, calls)).collect();
    assert_eq!(offered, [1, 3, 7, 15, 31]);
    assert!(!back_off.round(looped, others), "it tries something else");
    assert!(back_off.round(Some(Signal::NoProgress), others), "another signal");
    assert!(!back_off.round(None, others));
    assert!(back_off.round(Some(Signal::NoProgress), others), "anew after a clean round");
}

#[test]
fn a_draft_is_void_once_what_it_rests_on_is_over() {
    let [a, b] = ["6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b", "7ec0bd7f-11c0-43da-975e-2a8ad9ebae0b"]
        .map(|id| Uuid::parse(id).unwrap());
    let basis = Basis { signal: Some(Signal::Loop), instance: a, lease: a };
    assert_eq!(basis.void(&basis.clone()), None);
    assert_eq!(basis.void(&Basis { signal: None, ..basis.clone() }), Some(Void::Signal));
    assert_eq!(basis.void(&Basis { signal: Some(Signal::Recovery), ..basis.clone() }), Some(Void::Signal));
    assert_eq!(basis.void(&Basis { instance: b, ..basis.clone() }), Some(Void::Instance));
    assert_eq!(basis.void(&Basis { lease: b, instance: b, signal: None }), Some(Void::Lease));
}

#[test]
fn what_sends_itself_is_rationed() {
    let hour = 3_600_000;
    let mut allowance = Allowance::default();
    assert!(allowance.take(Signal::Loop, 1, 0));
    assert!(!allowance.take(Signal::Loop, 1, 2 * hour), "once a turn");
    assert!(allowance.take(Signal::Recovery, 1, 2 * hour));
    assert!(allowance.take(Signal::Loop, 2, 2 * hour + 1));
    assert!(allowance.take(Signal::Loop, 3, 2 * hour + 2));
    assert!(!allowance.take(Signal::Loop, 4, 3 * hour - 1), "three an hour");
    assert!(!allowance.take(Signal::Loop, 4, 0), "a clock that was set back");
    assert!(allowance.take(Signal::Loop, 4, 3 * hour));
}

#[test]
fn a_draft_names_the_entries_it_is_about() {
    let draft = |rounds: &[Vec<Did>]| watched(&all(rounds)).0.standing(&Circumstances::default()).draft;
    let poll = || vec![Did::bash("gh run view 7 --token=abc", "in_progress", false)];
    let text = draft(&[vec![Did::read("x")], poll(), poll(), poll()]).unwrap();
    assert!(text.contains("Your last 3 rounds (entries 00000001, 00000002, 00000003)"), "{text}");
    assert!(text.contains("If you wait for something") && text.contains("gh run view 7"), "{text}");
    assert!(!text.contains("abc"), "{text}");
    let fail = |nth: usize| vec![Did::bash(&format!("c{nth}\u{1b}[2J"), &format!("{nth}"), true)];
    let mut rounds: Vec<Vec<Did>> = (0..4).map(fail).collect();
    rounds.push(vec![Did::read("x")]);
    rounds.push(fail(9));
    let text = draft(&rounds).unwrap();
    assert!(text.contains("(entries 00000000, 00000001, 00000002, 00000003, 00000005)"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(draft(&rounds[..3]), None);
    // Who says that it gets on is told that it does not look so.
    let mut steps = all(&(0..8).map(|nth| vec![Did::read(["a", "b"][nth % 2])]).collect::<Vec<_>>());
    let own = "<sup>{\"state\":\"progressing\",\"focus\":\"\",\"next\":null,\"carry\":[]}</sup>";
    let last = steps.iter_mut().rev().find_map(|step| match &mut step.said {
        Said::Answer(answer) => Some(answer),
        _ => None,
    });
    last.unwrap().text = own.to_owned();
    let text = watched(&steps).0.standing(&Circumstances::default()).draft.unwrap();
    assert!(text.contains("You report that you get on"), "{text}");
}

#[test]
fn constraints_are_offered_once_a_session_was_compacted() {
    let file = session_file(&[], "Refactor it. Never push to main!", Some("Yes."));
    let place = Place::new();
    fs::write(place.path("s.jsonl"), &file).unwrap();
    assert!(!place.run(&["signals", "--file", "s.jsonl"]).stdout.contains("Never push"));
    let compaction = "{\"type\":\"compaction\",\"id\":\"0000000c\",\"parentId\":\"00000001\",\"summary\":\"s\",\"firstKeptEntryId\":\"0000000c\"}\n";
    fs::write(place.path("s.jsonl"), file + compaction).unwrap();
    let ran = place.run(&["signals", "--file", "s.jsonl"]);
    assert!(
        ran.stdout.contains("> Never push to main!") && !ran.stdout.contains("Refactor"),
        "{}",
        ran.stdout
    );
}

/// A round of a few acts out of few.
fn some_round() -> impl Strategy<Value = Vec<Did>> {
    let act = (0..9_usize, 0..3_usize).prop_map(|(which, nth)| {
        let name = ["a", "b", "c"][nth];
        match which {
            0 | 1 => Did::read(name),
            2 => Did::edit(name, false),
            3 => Did::edit(name, true),
            4 => Did::bash(name, "ok", false),
            5 => Did::bash(name, &format!("{nth} failed"), true),
            6 => Did::bash(&format!("rm {name}"), "(no output)", false),
            7 => Did::bash("rg x", "Command exited with code 1", true),
            _ => Did::bash("", "", nth == 0),
        }
    });
    proptest::collection::vec(act, 1..4)
}

fn some_steps(turns: &[(Vec<Vec<Did>>, bool)]) -> Vec<Step> {
    let mut whole = Vec::new();
    for (nth, (rounds, compacts)) in turns.iter().enumerate() {
        whole.push(user("Never do it."));
        for (at, round) in rounds.iter().enumerate() {
            whole.extend(steps(&format!("{nth}-{at}"), "", round));
        }
        if *compacts {
            whole.push(Step { entry: "c".to_owned(), offset: 0, at: Some(1), said: Said::Compaction });
        }
        whole.push(answer("Well."));
    }
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_prefix_and_what_comes_after_it_are_the_whole(
        turns in proptest::collection::vec((proptest::collection::vec(some_round(), 0..12), any::<bool>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let steps = some_steps(&turns);
        let (before, after) = steps.split_at(cut.index(steps.len()));
        let mut watch = Watch::default();
        let mut outcomes: Vec<Outcome> = before.iter().filter_map(|step| watch.take(step)).collect();
        // Who looks in between changes nothing.
        let mut looked = watch.clone();
        looked.close();
        let _ = looked.standing(&Circumstances::default());
        outcomes.extend(after.iter().filter_map(|step| watch.take(step)));
        let mut fresh = Watch::default();
        let all: Vec<Outcome> = steps.iter().filter_map(|step| fresh.take(step)).collect();
        prop_assert_eq!(outcomes, all);
        prop_assert_eq!(watch, fresh);
    }

    #[test]
    fn the_order_within_a_batch_changes_nothing(
        rounds in proptest::collection::vec(some_round(), 1..20),
        turn in any::<prop::sample::Index>(),
    ) {
        let turned: Vec<Vec<Did>> = rounds
            .iter()
            .map(|round| {
                let mut round = round.clone();
                let by = turn.index(round.len());
                round.rotate_left(by);
                round
            })
            .collect();
        let (a, of_a) = watched(&all(&rounds));
        let (b, of_b) = watched(&all(&turned));
        prop_assert_eq!(of_a, of_b);
        prop_assert_eq!((a.mark(), a.badges(), a.kept()), (b.mark(), b.badges(), b.kept()));
    }
}

fn is_bounded_over(rounds: u64) {
    let mut watch = Watch::default();
    watch.take(&user("Never stop. You must go on."));
    let mut most = 0;
    for nth in 0..rounds {
        let name = format!("{nth}");
        let round = match nth % 3 {
            0 => Did::read(&name),
            1 => Did::edit(&name, false),
            _ => Did::bash(&name, &name, true),
        };
        for step in steps(&name, "", &[round]) {
            watch.take(&step);
        }
        most = most.max(watch.kept());
    }
    assert_eq!(watch.count(), rounds);
    // All of it is used, and no more.
    let limit = REMEMBERED + LEDGER + 32 + ROWS + 16 + 2;
    assert_eq!(most, limit);
    assert!(watch.rows().all(|row| row.chars().count() <= 120));
}

#[test]
fn what_is_kept_of_thousands_of_rounds_is_bounded() {
    is_bounded_over(3_000);
}

#[test]
#[ignore = "5 s of a core"]
fn what_is_kept_of_a_hundred_thousand_rounds_is_bounded() {
    is_bounded_over(100_000);
}
