//! What becomes of what was sent: proofs of delivery, over restarts; sending again; how it is shown.

use std::sync::Arc;
use std::time::Duration;

use headman::chief::journal::{Event, Journal};
use headman::chief::service::Request;
use headman::chief::staff::Letter;
use headman::console::app::{App, Effect};
use headman::contract::{Kind, LeadRecord, Message, Timestamp, Uuid};
use headman::disk::inbox;
use headman::fact::{Done, Fact, Fate, Outcome, Sent, Standing};
use headman::herd::evidence::State;
use headman::herdr::Registration;

use crate::chief_service::{Service, World};
use crate::screens::{LEADS, START, app, at, inventory, press, records, session, shown, uuid};
use crate::support::until;

impl World {
    /// A message of ours of an earlier lease.
    fn earlier(&self, nth: u64, ask: Option<Uuid>) -> Message {
        Message {
            id: Uuid::random(),
            lease: uuid(900),
            kind: if ask.is_some() { Kind::ChiefReply } else { Kind::ChiefMessage },
            from: self.state("state").identity().unwrap().session(),
            to: self.lead.session.clone(),
            lead: self.lead.session.clone(),
            ask,
            text: format!("text {nth}").as_str().into(),
            created_at: Timestamp::from_millis(START + nth),
        }
    }

    /// Has the journal tell of messages as an earlier run left them.
    fn journalled(&self, sent: &[(&Message, Option<Fate>)]) {
        let mut journal = Journal::open(&self.state("state").journal()).unwrap();
        for (message, fate) in sent {
            journal.append(&[Event::Sent(message)], message.created_at).unwrap();
            if let Some(fate) = fate {
                journal.append(&[Event::Fate { id: message.id, fate: *fate }], message.created_at).unwrap();
            }
        }
    }

    fn take_out(&self, id: Uuid) {
        inbox::remove(&self.runtime().inbox(&self.lead.session), id).unwrap();
    }

    fn fate_of(&self, id: Uuid) -> Option<Fate> {
        self.journal().index().sent_entry(id).unwrap().fate
    }
}

impl Service {
    async fn send_again(&mut self, world: &World, id: Uuid) -> Result<Done, String> {
        let lead = world.lead.session.clone();
        self.ask(|ticket| Request::SendAgain { ticket, lead, id }).await
    }

    /// Waits until that is what was told of it last.
    async fn last_fate(&mut self, id: Uuid, wanted: Fate) {
        let of_it = |fact: &Fact| match fact {
            Fact::Sent(sent) if sent.id == id => Some(sent.fate),
            _ => None,
        };
        until("the fate", || {
            self.has_told(|_| false);
            let last = self.seen.iter().rev().find_map(of_it);
            async move { last == Some(wanted) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_is_delivered_once_the_session_shows_it() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let Ok(Done::Sent(id)) = service.message(world.to_lead(&service, lease, "Go on.")).await else {
        panic!()
    };
    let message = world.inbox().remove(0);
    // Gone is not delivered.
    world.take_out(id);
    service.fate(id, Fate::Taken).await;
    world.hand_over(&message);
    service.fate(id, Fate::Delivered).await;
    // A reply, in the order in which leads do it: the session, the record, the inbox. Who answers an
    // ask has seen it.
    service.mail("the ask", |mail| mail.unread == 1).await;
    let Ok(Done::Sent(id)) = service.send(world.reply(lease)).await else { panic!() };
    service.mail("the ask read", |mail| mail.unread == 0).await;
    let reply = world.inbox().remove(0);
    world.hand_over(&reply);
    world.take_out(id);
    service.fate(id, Fate::Delivered).await;
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    service.fate(id, Fate::Answered).await;
    // Several at once: what the session shows before it is taken out counts, too.
    let mut ids = Vec::new();
    for at in 0..5 {
        let letter = world.to_lead(&service, lease, &format!("message {at}"));
        let Ok(Done::Sent(id)) = service.message(letter).await else { panic!() };
        ids.push(id);
    }
    let queued = world.inbox();
    queued.iter().for_each(|message| world.hand_over(message));
    for id in &ids {
        world.take_out(*id);
        service.fate(*id, Fate::Delivered).await;
    }
    service.end().await;
    assert_eq!(world.fate_of(message.id), Some(Fate::Delivered));
    assert_eq!(world.fate_of(reply.id), Some(Fate::Answered));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_run_left_open_is_followed_and_told_with_counts() {
    let world = World::new().await;
    let ask = world.lead.record.pending_ask.as_ref().unwrap().ask;
    let old: Vec<Message> = (0..12).map(|nth| world.earlier(nth, None)).collect();
    let unknown = world.earlier(20, None);
    let taken = world.earlier(21, Some(ask));
    let fates = old.iter().map(|message| (message, Some(Fate::Delivered)));
    let open = [(&unknown, Some(Fate::Unknown)), (&taken, Some(Fate::Taken))];
    world.journalled(&fates.chain(open).collect::<Vec<_>>());
    // Who only watches is told the newest of it, and how much there is in all.
    let mut service = world.service("state");
    let counts = service
        .wait("the counts", |fact| match fact {
            Fact::SentCounts(counts) => Some(Arc::clone(counts)),
            _ => None,
        })
        .await;
    let of_lead: Vec<_> = counts[&world.lead.session].clone().into_iter().collect();
    assert_eq!(of_lead, [(Fate::Taken, 1), (Fate::Delivered, 12), (Fate::Unknown, 1)]);
    service.fate(unknown.id, Fate::Unknown).await;
    service.fate(taken.id, Fate::Taken).await;
    service.fate(old[4].id, Fate::Delivered).await;
    let told = service.has_told(|fact| matches!(fact, Fact::Sent(sent) if sent.id == old[3].id));
    assert!(!told, "ten of one lead are enough");
    // A Chief goes on with them: the session shows both by now.
    world.hand_over(&unknown);
    world.hand_over(&taken);
    service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    service.fate(unknown.id, Fate::Delivered).await;
    service.fate(taken.id, Fate::Delivered).await;
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    service.fate(taken.id, Fate::Answered).await;
    service.end().await;
    assert_eq!(world.fate_of(unknown.id), Some(Fate::Delivered));
    assert_eq!(world.fate_of(taken.id), Some(Fate::Answered));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_been_discarded_is_sent_again_once_and_only_if_it_still_makes_sense() {
    let world = World::new().await;
    let ask = world.lead.record.pending_ask.as_ref().unwrap().ask;
    let message = world.earlier(1, None);
    let reply = world.earlier(2, Some(ask));
    let other = world.earlier(3, Some(Uuid::random()));
    let shown = world.earlier(4, None);
    let unsent = world.earlier(5, None);
    world.journalled(&[
        (&message, Some(Fate::Unknown)),
        (&reply, Some(Fate::Unknown)),
        (&other, Some(Fate::Unknown)),
        (&shown, Some(Fate::Unknown)),
        (&unsent, Some(Fate::Unsent)),
    ]);
    let mut service = world.service("state");
    service.standing("to watch", |standing| matches!(standing, Standing::Observer { .. })).await;
    assert!(service.send_again(&world, message.id).await.unwrap_err().contains("not Chief"));
    service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let lease = service.chief().await;

    let Ok(Done::Sent(again)) = service.send_again(&world, message.id).await else { panic!() };
    service.fate(message.id, Fate::Again).await;
    service.fate(again, Fate::Queued).await;
    let Ok(Done::Sent(reply_again)) = service.send_again(&world, reply.id).await else { panic!() };
    let Ok(Done::Sent(late)) = service.send_again(&world, unsent.id).await else { panic!() };
    let queued = world.inbox();
    let texts: Vec<_> = queued.iter().map(|it| (it.id, it.text.clone(), it.ask, it.lease)).collect();
    let expected = [(again, &message), (reply_again, &reply), (late, &unsent)];
    assert_eq!(texts, expected.map(|(id, old)| (id, old.text.clone(), old.ask, lease)));
    assert!(queued.iter().zip(expected).all(|(new, (_, old))| new.created_at > old.created_at));

    for (id, why) in [
        (message.id, "it is sent again"),
        (again, "it is queued"),
        (other.id, "asks something else"),
        (Uuid::random(), "no such message"),
    ] {
        let told = service.send_again(&world, id).await.unwrap_err();
        assert!(told.contains(why), "{told}");
    }
    // The last look before it would be there twice.
    world.hand_over(&shown);
    let told = service.send_again(&world, shown.id).await.unwrap_err();
    assert!(told.contains("it is delivered"), "{told}");
    service.fate(shown.id, Fate::Delivered).await;
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    let told = service.send_again(&world, other.id).await.unwrap_err();
    assert!(told.contains("not pending any more"), "{told}");
    assert_eq!(world.inbox().len(), 3);
    service.end().await;
    let journal = world.journal();
    assert_eq!(journal.index().sent_entry(message.id).unwrap().again, Some(again));
    assert_eq!(journal.index().sent_entry(reply.id).unwrap().again, Some(reply_again));
}

fn sent(id: u32, lead: &str, ask: Option<u32>, text: &str, second: u64, fate: Fate) -> Fact {
    Fact::Sent(Sent {
        id: uuid(id),
        kind: if ask.is_some() { Kind::ChiefReply } else { Kind::ChiefMessage },
        lead: session(lead),
        ask: ask.map(uuid),
        text: text.into(),
        at: Timestamp::from_millis(START + second * 1_000),
        fate,
    })
}

fn snapshot(name: &str, app: &App, second: u64) {
    for (width, height) in [(120, 40), (80, 24), (60, 30), (40, 15)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, at(second)));
    }
}

/// A lead that works, with messages of every fate.
fn with_messages() -> App {
    let mut app = app();
    let counts =
        [(Fate::Queued, 1), (Fate::Taken, 1), (Fate::Delivered, 14), (Fate::Unknown, 2), (Fate::Again, 3)];
    app.facts(
        vec![
            Fact::SentCounts(Arc::new([(session("s-tf"), counts.into_iter().collect())].into())),
            sent(501, "s-tf", None, "Keep the plan in the repository, please.", 1, Fate::Delivered),
            sent(502, "s-tf", Some(77), "Two zones are enough.", 10, Fate::Answered),
            sent(
                503,
                "s-tf",
                None,
                "Take the newer provider; the old one drops the tags.",
                20,
                Fate::Unknown,
            ),
            sent(504, "s-tf", None, "Say when it is through.", 30, Fate::Taken),
            sent(505, "s-tf", None, "And tell me what it costs a month.", 200, Fate::Queued),
        ],
        at(201),
    );
    press(&mut app, "gg", at(201));
    press(&mut app, "jj", at(201));
    app
}

#[test]
fn the_detail_shows_what_was_sent_and_what_is_known_of_it() {
    let mut app = with_messages();
    press(&mut app, "\n", at(202));
    snapshot("messages", &app, 240);
    assert!(shown(&app, 120, 40, at(240)).contains("the lead works, and takes it when its turn ends"));
    assert!(!shown(&app, 120, 40, at(203)).contains("it waits"), "not at once");
    // What else may be the matter.
    let state = |state| {
        let mut leads = inventory(LEADS);
        leads.agents[2].state = state;
        Fact::Inventory(Arc::new(leads))
    };
    for (fact, word) in [
        (state(State::Blocked), "the lead is blocked, and takes it"),
        (state(State::Idle), "the lead is idle and should have it"),
        (state(State::Unknown), "the lead is unknown"),
        (
            Fact::Registration(Registration::NotTried { why: "no pane".to_owned() }),
            "before it saw its Chief in Herdr once",
        ),
    ] {
        app.facts(vec![fact], at(240));
        let screen = shown(&app, 160, 40, at(240));
        assert!(screen.contains(word), "{word}: {screen}");
    }
}

#[test]
fn one_key_sends_it_again_and_says_what_came_of_that() {
    let mut app = with_messages();
    let again = |app: &mut App| {
        app.take_effects().into_iter().find_map(|effect| match effect {
            Effect::Request(Request::SendAgain { ticket, lead, id }) => Some((ticket, lead, id)),
            _ => None,
        })
    };
    press(&mut app, "R", at(202));
    let (ticket, lead, id) = again(&mut app).unwrap();
    assert_eq!((lead, id), (session("s-tf"), uuid(503)));
    // It is asked for once, however often the key is pressed.
    press(&mut app, "R", at(202));
    assert!(again(&mut app).is_none());
    app.facts(
        vec![
            sent(503, "s-tf", None, "Take the newer provider; the old one drops the tags.", 20, Fate::Again),
            sent(
                506,
                "s-tf",
                None,
                "Take the newer provider; the old one drops the tags.",
                203,
                Fate::Queued,
            ),
            Fact::Outcome(Outcome { ticket, result: Ok(Done::Sent(uuid(506))) }),
        ],
        at(203),
    );
    let screen = shown(&app, 120, 40, at(203));
    assert!(screen.contains("Sent again.") && !screen.contains("R send it again"), "{screen}");
    press(&mut app, "R", at(204));
    assert!(shown(&app, 120, 40, at(204)).contains("Nothing here may have been discarded."));

    app.facts(vec![sent(507, "s-tf", None, "x", 205, Fate::Unsent)], at(205));
    press(&mut app, "R", at(205));
    let (ticket, ..) = again(&mut app).unwrap();
    let refused = Outcome { ticket, result: Err("the lease is lost".to_owned()) };
    app.facts(vec![Fact::Outcome(refused)], at(206));
    assert!(shown(&app, 120, 40, at(206)).contains("Not sent again: the lease is lost"));
}

#[test]
fn a_reply_that_may_have_been_discarded_is_sent_again_or_written_anew() {
    let mut app = app();
    press(&mut app, "nrYes, reject them.", at(1));
    press(&mut app, "\n", at(2));
    let ticket = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Request(Request::Reply { ticket, .. }) => Some(ticket),
        _ => None,
    });
    let outcome = |ticket: Option<u64>, id| {
        Fact::Outcome(Outcome { ticket: ticket.unwrap(), result: Ok(Done::Sent(uuid(id))) })
    };
    let reply = |id, second, fate| sent(id, "s-auth", Some(100), "Yes, reject them.", second, fate);
    app.facts(vec![reply(500, 2, Fate::Queued), outcome(ticket, 500)], at(2));
    press(&mut app, "r", at(3));
    assert!(shown(&app, 80, 24, at(3)).contains("Your reply is on its way."));
    app.facts(vec![reply(500, 2, Fate::Unknown)], at(4));
    press(&mut app, "x", at(12));
    snapshot("reply_unknown", &app, 13);
    press(&mut app, "R", at(14));
    let ticket = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Request(Request::SendAgain { ticket, id, .. }) if id == uuid(500) => Some(ticket),
        _ => None,
    });
    app.facts(vec![reply(500, 2, Fate::Again), reply(501, 15, Fate::Queued), outcome(ticket, 501)], at(15));
    assert!(shown(&app, 80, 24, at(16)).contains("\u{25cf} queued   \u{25cb} taken   \u{25cb} delivered"));
    // The draft goes with the one that arrives.
    let removed = |app: &mut App| app.take_effects().iter().any(|it| matches!(it, Effect::RemoveDraft(_)));
    assert!(!removed(&mut app));
    app.facts(vec![reply(501, 15, Fate::Delivered)], at(16));
    assert!(removed(&mut app));
    snapshot("reply_delivered", &app, 17);
    // Once its ask is gone nothing sends it again.
    app.facts(vec![reply(501, 15, Fate::Unknown)], at(18));
    let mut gone = records(LEADS);
    let headman::fact::LeadRead::Valid(record) = &mut gone[0].1 else { panic!() };
    record.pending_ask = None;
    app.facts(vec![Fact::Leads(Arc::new(gone))], at(19));
    let screen = shown(&app, 80, 24, at(19));
    assert!(screen.contains("the ask it answers is gone") && !screen.contains("R send"), "{screen}");
}

/// The disk thread is kept busy, so that the look at what was sent is waiting behind the send, and the
/// lead takes it between the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_at_once_is_told_as_taken() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    for nth in 1..=8 {
        let letter = Letter {
            lead: world.lead.session.clone(),
            instance: world.lead.record.instance,
            lease,
            text: format!("text {nth}").as_str().into(),
            files: Vec::new(),
            id: None,
        };
        let ticket = 1_000 + nth;
        service.requests.send(Request::Message { ticket, letter }).await.unwrap();
        // Served by now, while Herdr is still asked.
        tokio::task::yield_now().await;
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let disk = service.disk.clone();
        let busy = tokio::spawn(async move { disk.run(move || gone.recv()).await });
        // Long enough for the send to be next, mostly, and for the look to come behind this. Where it
        // is not, this round shows nothing.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (disk, inbox_dir) = (service.disk.clone(), world.runtime().inbox(&world.lead.session));
        let taking = tokio::spawn(async move {
            disk.run(move || match &inbox::list(&inbox_dir).unwrap()[..] {
                [entry] => inbox::remove(&inbox_dir, entry.name).is_ok(),
                _ => false,
            })
            .await
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        go.send(()).unwrap();
        busy.await.unwrap().unwrap().unwrap();
        let taken = taking.await.unwrap().unwrap();
        let id = service
            .wait("an outcome", |fact| match fact {
                Fact::Outcome(outcome) if outcome.ticket == ticket => Some(outcome.result.clone()),
                _ => None,
            })
            .await;
        let Ok(Done::Sent(id)) = id else { panic!("{id:?}") };
        if !taken {
            world.take_out(id);
        }
        service.last_fate(id, Fate::Taken).await;
    }
    service.end().await;
}

/// A batch under way as the lease changes: the last one is handed over and removed while it is worked
/// out what became of those before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_handed_over_while_the_queue_is_carried_over_is_not_sent_again() {
    let world = World::new().await;
    world.make_chief("state");
    let messages: Vec<Message> = (0..40).map(|nth| world.earlier(nth, None)).collect();
    world.journalled(&messages.iter().map(|message| (message, None)).collect::<Vec<_>>());
    let (last, before) = messages.split_last().unwrap();
    for message in before {
        world.hand_over(message);
    }
    let inbox = world.runtime().inbox(&world.lead.session);
    inbox::publish(world.agent_dir().path(), &inbox, last).unwrap();
    let mut service = world.service("state");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::cli_support::until("the first is known", || world.fate_of(before[0].id).is_some());
            world.hand_over(last);
            world.take_out(last.id);
        });
    });
    service.fate(last.id, Fate::Delivered).await;
    service.end().await;
    assert!(world.inbox().is_empty());
    let journal = world.journal();
    assert!(journal.index().sent().all(|it| it.fate == Some(Fate::Delivered) && it.again.is_none()));
}
