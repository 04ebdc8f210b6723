//! One message to several leads: to whom, what goes out, and what is left of it after a refusal, Esc or a
//! crash.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headman::chief::service::Request;
use headman::chief::staff::Letter;
use headman::console::app::{App, Confirm, Effect};
use headman::console::broadcast::Broadcast;
use headman::console::intent::Context;
use headman::console::view::broadcast::Counts;
use headman::contract::{Kind, Timestamp, Uuid};
use headman::fact::{Done, Fact, Fate, Now, OtherChief, Outcome, Sent, Standing};

use crate::demo_console;
use crate::pty::Harness;
use crate::screens::{LEADS, Lead, START, app, at, inventory, press, records, session, shown, uuid};
use crate::support::below;

/// A console, and what it asked for.
struct Desk {
    app: App,
    letters: Vec<(u64, Letter)>,
    kept: Vec<Broadcast>,
    removed: usize,
}

impl Desk {
    fn new(app: App) -> Self {
        Self { app, letters: Vec::new(), kept: Vec::new(), removed: 0 }
    }

    fn press(&mut self, keys: &str, seconds: u64) {
        // Not so fast that an Enter is taken for a paste's.
        for (key, millis) in keys.chars().zip((0..).step_by(20)) {
            let mono = at(seconds).mono + Duration::from_millis(millis);
            press(&mut self.app, &key.to_string(), Now { mono, ..at(seconds) });
        }
        self.take();
    }

    fn take(&mut self) {
        for effect in self.app.take_effects() {
            match effect {
                Effect::Request(Request::Message { ticket, letter }) => self.letters.push((ticket, letter)),
                Effect::SaveBroadcast(kept) | Effect::KeepBroadcast(kept) => self.kept.push(kept),
                Effect::RemoveBroadcast => self.removed += 1,
                _ => {}
            }
        }
    }

    /// Writes `text` to the marked ones and has it go out.
    fn send(&mut self, text: &str, seconds: u64) {
        self.press("b", seconds);
        self.press(&format!("{text}\n"), seconds);
        assert_eq!(self.app.confirm, Some(Confirm::Broadcast));
        self.press("y", seconds);
        assert_eq!(self.letters.len(), 0, "nothing goes out before it is kept");
        self.app.broadcast_kept(Ok(()), at(seconds));
        self.take();
    }

    fn facts(&mut self, facts: Vec<Fact>, seconds: u64) {
        self.app.facts(facts, at(seconds));
        self.take();
    }

    /// The oldest message that is under way is put into the lead's inbox, or refused.
    fn answer(&mut self, result: Result<Fate, &str>, seconds: u64) -> Letter {
        let (ticket, letter) = self.letters.remove(0);
        let id = letter.id.unwrap();
        let mut facts = Vec::new();
        if let Ok(fate) = result {
            facts.push(sent(&letter, id, fate));
        }
        let result = result.map(|_| Done::Sent(id)).map_err(str::to_owned);
        facts.push(Fact::Outcome(Outcome { ticket, result }));
        self.facts(facts, seconds);
        letter
    }

    fn counts(&self) -> (usize, usize, usize) {
        let Counts { open, sent, refused } = self.app.broadcast().unwrap().counts();
        (open, sent, refused)
    }

    fn shows(&self, text: &str) -> bool {
        shown(&self.app, 120, 40, at(9)).contains(text)
    }
}

fn sent(letter: &Letter, id: Uuid, fate: Fate) -> Fact {
    Fact::Sent(Sent {
        id,
        kind: Kind::ChiefMessage,
        lead: letter.lead.clone(),
        ask: None,
        text: letter.text.clone(),
        at: Timestamp::from_millis(START),
        fate,
    })
}

fn herd(leads: &[Lead]) -> Vec<Fact> {
    vec![Fact::Inventory(Arc::new(inventory(leads))), Fact::Leads(Arc::new(records(leads)))]
}

fn snapshot(name: &str, app: &App, now: Now) {
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, now));
    }
}

#[test]
fn it_is_to_the_marked_else_to_the_filters_and_never_to_all() {
    let mut desk = Desk::new(app());
    desk.press("b", 1);
    assert!(
        desk.app.layers.is_empty() && desk.shows("Mark the leads it is for (space), or filter the list (/).")
    );
    let to = |desk: &Desk| -> Vec<String> {
        let recipients = desk.app.broadcast().unwrap().recipients().iter();
        recipients.map(|it| it.lead().as_untrusted().to_str_lossy().into_owned()).collect()
    };
    desk.press("/infra\n", 2);
    desk.press("b", 2);
    assert_eq!(to(&desk), ["s-tf"]);
    desk.press("\u{1b}", 2);
    assert!(desk.app.broadcast().is_none(), "nothing was written");
    // What is marked counts, whatever the filter shows.
    desk.press("\u{1b} G ", 3);
    desk.press("/infra\n", 3);
    desk.press("b", 3);
    assert_eq!(to(&desk), ["s-auth", "s-ops"]);
    desk.press("Rebase.", 3);
    // Esc keeps it with its recipients; other marks are other recipients.
    desk.press("\u{1b}\u{1b}u", 4);
    desk.press("b", 4);
    assert_eq!(to(&desk), ["s-auth", "s-ops"]);
    assert!(desk.shows("Rebase."));
    desk.press("\u{1b}", 5);
    desk.press("ggj ", 5);
    desk.press("b", 5);
    assert_eq!(to(&desk), ["s-checkout"]);
    assert!(desk.shows("Rebase."));
    assert_eq!(desk.kept.last().unwrap().to.len(), 1);
    // Emptied, nothing is left of it.
    for _ in 0..7 {
        let key = crossterm::event::KeyCode::Backspace;
        desk.app.key(key.into(), at(6));
    }
    desk.press("\u{1b}", 6);
    assert_eq!((desk.removed, desk.app.broadcast().is_none()), (1, true));
}

#[test]
fn each_has_a_message_of_its_own_and_only_the_refused_have_it_again() {
    let mut desk = Desk::new(app());
    desk.press(" j j ", 1);
    desk.press("b", 1);
    desk.facts(herd(&[LEADS[0], LEADS[1], LEADS[3], LEADS[4]]), 2);
    snapshot("broadcast_preview", &desk.app, at(2));
    desk.facts(herd(LEADS), 3);
    desk.press("Stop at once\n", 3);
    assert!(desk.shows("Send it to 3 leads? y / n") && desk.letters.is_empty());
    desk.press("n", 3);
    assert!(desk.app.confirm.is_none() && desk.app.context() == Context::Composer);
    desk.press(", please.\n", 3);
    desk.press("y", 3);
    let kept = desk.kept.last().unwrap().clone();
    assert!(kept.begun && kept.text == "Stop at once, please." && desk.letters.is_empty());
    desk.app.broadcast_kept(Ok(()), at(3));
    desk.take();
    let letters = desk.letters.clone();
    let leads: Vec<_> = letters.iter().map(|(_, letter)| letter.lead.clone()).collect();
    assert_eq!(leads, [session("s-auth"), session("s-tf"), session("s-checkout")]);
    for ((_, letter), kept) in letters.iter().zip(&kept.to) {
        assert_eq!((letter.id, &letter.lead), (Some(kept.id), &kept.lead));
        assert_eq!((&letter.text, letter.files.len()), (&"Stop at once, please.".into(), 0));
    }
    assert_eq!(letters[1].1.instance, uuid(2));
    desk.answer(Ok(Fate::Queued), 4);
    desk.answer(Err("session s-tf is no lead that Herdr shows now"), 4);
    // It goes on while nobody looks.
    desk.press("\u{1b}", 4);
    desk.answer(Ok(Fate::Queued), 5);
    assert!(desk.shows("The message was not sent to 1 of 3 leads: b says why."));
    assert_eq!((desk.counts(), desk.removed), ((0, 2, 1), 0));
    desk.press("b", 6);
    desk.facts(vec![sent(&letters[0].1, kept.to[0].id, Fate::Delivered)], 6);
    snapshot("broadcast_sent", &desk.app, at(6));
    desk.press("R", 7);
    let again = desk.answer(Ok(Fate::Queued), 7);
    assert_eq!((&again.lead, again.id), (&session("s-tf"), Some(kept.to[1].id)));
    assert_eq!((desk.counts(), desk.removed, desk.letters.len()), ((0, 3, 0), 1, 0));
    assert!(desk.shows("The message is in the inboxes of all 3 leads."));
    assert_eq!(desk.app.roster.marked(), 0, "the next one is to others");
    desk.press("R", 8);
    assert!(desk.shows("Nothing of it was refused.") && desk.letters.is_empty());
    desk.press("\u{1b}", 8);
    desk.press("b", 8);
    assert!(desk.app.layers.is_empty(), "it is done");
}

#[test]
fn sixty_go_out_a_few_at_a_time_and_a_lost_lease_stops_them() {
    let mut desk = Desk::new(app());
    let names: Vec<&'static str> =
        (0..60).map(|at| &*Box::leak(format!("s-{at:02}").into_boxed_str())).collect();
    let leads: Vec<Lead> = names
        .iter()
        .map(|name| Lead { session: name, workspace: name, name, question: None, ..LEADS[3] })
        .collect();
    desk.facts(herd(&leads), 1);
    desk.press("/s-\n", 1);
    desk.send("Commit.", 2);
    assert_eq!(desk.letters.len(), 4);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..40 {
        assert!(seen.insert(desk.answer(Ok(Fate::Queued), 3).lead));
        assert_eq!(desk.letters.len(), 4);
    }
    let chief = OtherChief::None;
    let lost = Standing::Lost { reason: "gone".to_owned(), chief };
    desk.facts(vec![Fact::Standing(lost)], 4);
    while !desk.letters.is_empty() {
        desk.answer(Err("the Chief lease is lost"), 4);
    }
    assert_eq!(desk.counts(), (0, 40, 20));
    desk.press("R", 5);
    assert!(desk.shows("Only a Chief can send: become Chief (c) first.") && desk.letters.is_empty());
    let lease = uuid(77);
    desk.facts(vec![Fact::Standing(Standing::Chief { lease, since: Timestamp::from_millis(START) })], 6);
    desk.press("R", 6);
    while !desk.letters.is_empty() {
        let letter = desk.answer(Ok(Fate::Queued), 7);
        assert!(seen.insert(letter.lead) && letter.lease == lease);
    }
    assert_eq!((desk.counts(), seen.len(), desk.removed), ((0, 60, 0), 60, 1));
}

#[test]
fn after_a_crash_it_goes_on_under_the_same_ids_and_what_was_sent_is_known() {
    let mut desk = Desk::new(app());
    desk.press(" j j ", 1);
    desk.send("Rebase.", 2);
    let kept = desk.kept.last().unwrap().clone();
    let first = desk.letters[0].1.clone();
    // The next run: of one the journal tells that it was sent.
    let mut next = Desk::new(app());
    next.app.resume_broadcast(kept.clone(), at(10));
    assert!(next.shows("A broadcast to 3 leads was not finished: b shows it."));
    next.facts(vec![sent(&first, kept.to[0].id, Fate::Taken)], 11);
    next.press("b", 11);
    assert_eq!((next.counts(), next.letters.len()), ((0, 1, 2), 0), "nothing goes out by itself");
    next.press("R", 12);
    let again: Vec<_> = next.letters.iter().map(|(_, letter)| letter.id.unwrap()).collect();
    assert_eq!(again, [kept.to[1].id, kept.to[2].id]);
    next.answer(Ok(Fate::Queued), 13);
    next.answer(Ok(Fate::Queued), 13);
    assert_eq!(next.removed, 1);
    // One that was only written is a draft again.
    let mut written = Desk::new(app());
    let draft = Broadcast { begun: false, ..kept };
    written.app.resume_broadcast(draft, at(20));
    written.press("b", 20);
    assert!(written.app.broadcast().unwrap().is_writing() && written.shows("Rebase."));
    assert!(written.shows("Broadcast to 3 leads"));
}

#[test]
fn what_nobody_has_can_be_written_on_or_forgotten() {
    let mut desk = Desk::new(app());
    desk.press(" j ", 1);
    desk.press("b", 1);
    desk.press("Rebase.\n", 1);
    desk.press("y", 1);
    desk.app.broadcast_kept(Err("the disk is full".to_owned()), at(1));
    desk.take();
    assert!(desk.letters.is_empty() && desk.shows("Not sent, the draft is kept: the disk is full."));
    desk.press("\n", 2);
    desk.press("y", 2);
    desk.app.broadcast_kept(Ok(()), at(2));
    desk.take();
    let before = desk.kept.last().unwrap().to.clone();
    desk.press("x", 2);
    assert!(desk.shows("It is being sent."));
    desk.answer(Err("the disk is full"), 3);
    desk.answer(Err("the disk is full"), 3);
    desk.press("b", 4);
    desk.press(" Now.\n", 4);
    desk.press("y", 4);
    desk.app.broadcast_kept(Ok(()), at(4));
    desk.take();
    let after = desk.kept.last().unwrap();
    assert_eq!(after.text, "Rebase. Now.");
    assert!(before.iter().zip(&after.to).all(|(old, new)| old.lead == new.lead && old.id != new.id));
    desk.answer(Ok(Fate::Queued), 5);
    desk.answer(Err("it is away"), 5);
    desk.press("b", 6);
    assert!(desk.shows("It can't be written on: somebody may have it."));
    desk.press("x", 6);
    assert_eq!((desk.removed, desk.app.broadcast().is_none(), desk.app.layers.len()), (1, true, 0));
    // Whoever is no Chief writes it, and it stays.
    let chief = OtherChief::None;
    desk.facts(vec![Fact::Standing(Standing::Observer { chief, refused: None })], 7);
    desk.press("b", 7);
    desk.press("Rebase.\n", 7);
    assert!(desk.app.confirm.is_none() && desk.shows("You are not Chief: the draft is kept."));
}

#[test]
fn a_person_writes_to_several_leads_one_of_which_is_gone_by_then() {
    let home = demo_console::home();
    let served = demo_console::Served::start(home.path(), &["--speed", "0"]);
    let start = || {
        let mut console =
            Harness::start_in(demo_console::headman(home.path(), &[], &served.environment), 120, 40);
        console.wait_for("an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
        console
    };
    let agent_dir = &served.environment.iter().find(|(name, _)| name == "PI_CODING_AGENT_DIR").unwrap().1;
    let files = || below(Path::new(agent_dir)).into_iter().map(|path| Path::new(agent_dir).join(path));
    let records = || -> Vec<_> {
        files()
            .filter(|file| file.parent().is_some_and(|of| of.ends_with("leads")) && file.is_file())
            .collect()
    };
    let mut console = start();
    // Every name has one.
    demo_console::press(&mut console, "/", "the filter", |it| it.shows("Leads /"));
    demo_console::press(&mut console, "/", "it", |it| it.shows("/ /"));
    demo_console::press(&mut console, "\r", "it kept", |it| it.shows("b broadcast"));
    let count = records().len();
    demo_console::press(&mut console, "b", "to whom", |it| it.shows(&format!("Broadcast to {count} leads")));
    demo_console::press(&mut console, "Commit what you have.", "the text", |it| it.shows("Commit what you"));
    demo_console::press(&mut console, "\r", "the question", |it| it.shows("Send it to"));
    std::fs::remove_file(&records()[0]).unwrap();
    console.wait_for("it gone", |it| it.shows("not listed now"));
    let (sent, refused) = (format!("{} sent", count - 1), "1 not sent");
    demo_console::press(&mut console, "y", "what came of it", |it| it.shows(&sent) && it.shows(refused));
    assert!(console.shows("it is not listed now"));
    rustix::process::kill_process(console.pid(), rustix::process::Signal::KILL).unwrap();
    console.wait_for_exit();
    // The next one knows who has it, and sends it to none of them again.
    let mut next = start();
    demo_console::press(&mut next, "b", "what came of it", |it| it.shows(&sent) && it.shows(refused));
    let holders = || {
        let said = files().filter(|file| file.extension().is_some_and(|it| it == "jsonl"));
        said.map(|file| {
            std::fs::read_to_string(file).unwrap_or_default().matches("Commit what you have.").count()
        })
        .filter(|count| *count > 0)
        .collect::<Vec<_>>()
    };
    assert!(holders().len() < count, "{:?}", holders());
}
