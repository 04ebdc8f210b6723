//! Which draft goes when something arrives.

use headman::chief::service::Request;
use headman::console::app::{App, Effect};
use headman::console::drafts::DraftKey;
use headman::contract::{Kind, Timestamp};
use headman::fact::{Done, Fact, Fate, Outcome, Sent};

use crate::screens::{START, app, at, press, session, uuid};

fn sent(text: &str, seconds: u64, fate: Fate) -> Fact {
    Fact::Sent(Sent {
        id: uuid(500),
        kind: Kind::ChiefMessage,
        lead: session("s-auth"),
        ask: None,
        text: text.into(),
        at: Timestamp::from_millis(START + seconds * 1000),
        fate,
    })
}

fn key() -> DraftKey {
    DraftKey { session: session("s-auth"), ask: None }
}

fn removed(app: &mut App) -> bool {
    app.take_effects().iter().any(|it| matches!(it, Effect::RemoveDraft(removed) if *removed == key()))
}

#[test]
fn a_draft_goes_when_an_earlier_run_proves_to_have_sent_it() {
    for (text, written, goes) in [("Wait.", 2, true), ("Wait!", 2, false), ("Wait.", 0, false)] {
        for fate in [Fate::Again, Fate::Taken, Fate::Queued, Fate::Unknown] {
            let mut app = app();
            press(&mut app, "n", at(1));
            press(&mut app, "mWait.", at(1));
            press(&mut app, "\u{1b}\u{1b}", at(1));
            assert!(app.keeps(&key()));
            app.facts(vec![sent(text, written, fate)], at(3));
            // What is sent again keeps it until a lead has that.
            let goes = goes && fate == Fate::Taken;
            assert_eq!((removed(&mut app), app.keeps(&key())), (goes, !goes), "{text} {written} {fate:?}");
        }
    }
}

#[test]
fn what_was_written_since_stays_when_what_was_sent_arrives() {
    let mut app = app();
    press(&mut app, "n", at(1));
    press(&mut app, "mWait.", at(1));
    press(&mut app, "\n", at(2));
    let ticket = app.take_effects().iter().find_map(|effect| match effect {
        Effect::Request(Request::Message { ticket, .. }) => Some(*ticket),
        _ => None,
    });
    let outcome = Outcome { ticket: ticket.unwrap(), result: Ok(Done::Sent(uuid(500))) };
    app.facts(vec![sent("Wait.", 2, Fate::Queued), Fact::Outcome(outcome)], at(2));
    press(&mut app, "\u{1b}\u{1b}", at(3));
    press(&mut app, "m Really.", at(4));
    press(&mut app, "\u{1b}\u{1b}", at(5));
    app.facts(vec![sent("Wait.", 2, Fate::Taken)], at(6));
    assert!(!removed(&mut app) && app.keeps(&key()));
}
