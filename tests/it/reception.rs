//! What comes goes into the journal, and only then out of the inbox; what is queued outlives a lease.

use std::path::PathBuf;
use std::sync::Arc;

use headman::chief::inquiry::Which;
use headman::chief::journal::{Event, Journal, Month};
use headman::chief::service::Request;
use headman::chief::staff::Letter as ChiefLetter;
use headman::contract::{Kind, LeadRecord, Message, Timestamp, Uuid, delivered};
use headman::disk::inbox;
use headman::disk::layout::InboxDir;
use headman::fact::{Answer, Done, Fact, Fate, Inquiry, Mail, OtherChief, Standing};

use crate::chief_service::{Service, World};
use crate::cli_support::until;

impl World {
    pub(crate) fn our_inbox(&self, service: &Service) -> InboxDir {
        self.runtime().inbox(service.office.session())
    }

    pub(crate) fn up(&self, service: &Service, kind: Kind, lease: Uuid, text: &str) -> Message {
        let ask = self.lead.record.pending_ask.as_ref().unwrap().ask;
        Message {
            id: Uuid::random(),
            lease,
            kind,
            from: self.lead.session.clone(),
            to: service.office.session().clone(),
            lead: self.lead.session.clone(),
            ask: kind.has_ask().then_some(ask),
            text: text.into(),
            created_at: Timestamp::from_millis(1_796_000_000_000),
        }
    }

    pub(crate) fn put(&self, service: &Service, message: &Message) {
        inbox::publish(self.agent_dir().path(), &self.our_inbox(service), message).unwrap();
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(&self.state("state").journal()).unwrap()
    }

    pub(crate) fn to_lead(&self, service: &Service, lease: Uuid, text: &str) -> ChiefLetter {
        assert_ne!(service.office.session(), &self.lead.session);
        ChiefLetter {
            lead: self.lead.session.clone(),
            instance: self.lead.record.instance,
            lease,
            text: text.into(),
            files: Vec::new(),
            id: None,
        }
    }

    /// The lead hands a message over: into its session first.
    pub(crate) fn hand_over(&self, message: &Message) {
        use std::io::Write;
        let entry = serde_json::json!({"type": "custom_message", "customType": delivered::custom_type(message.kind),
            "content": delivered::content(message), "display": true,
            "details": {"id": message.id.to_string(), "leaseId": message.lease.to_string(),
                "leadSessionId": "lead-session-1"},
            "id": "0000000a", "parentId": null, "timestamp": "2026-11-30T08:00:00.000Z"});
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.lead.session_file).unwrap();
        writeln!(file, "{entry}").unwrap();
    }
}

impl Service {
    pub(crate) async fn mail(&mut self, what: &str, wanted: impl Fn(&Mail) -> bool) -> Arc<Mail> {
        self.wait(what, |fact| match fact {
            Fact::Mail(mail) if wanted(mail) => Some(Arc::clone(mail)),
            _ => None,
        })
        .await
    }

    pub(crate) async fn message(&mut self, letter: ChiefLetter) -> Result<Done, String> {
        self.ask(|ticket| Request::Message { ticket, letter }).await
    }
}

pub(crate) fn files(inbox: &InboxDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(inbox.path()).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lead_sends_is_journalled_and_leaves_the_inbox() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    // The message of the pending ask never came: it is put there, and received.
    let mail = service.mail("the missing ask", |mail| mail.total == 1).await;
    let ask = world.lead.record.pending_ask.clone().unwrap();
    assert_eq!(mail.newest[0].kind, Some(Kind::LeadAsk));
    assert_eq!(mail.newest[0].id, Uuid::of_ask(&world.lead.session, ask.ask, lease));
    assert_eq!(mail.newest[0].preview, ask.text);

    let message = world.up(&service, Kind::LeadMessage, lease, "Build \u{1b}[2J done");
    world.put(&service, &message);
    let mail = service.mail("the message", |mail| mail.total == 2).await;
    assert_eq!((mail.unread, mail.unread_by_lead[&world.lead.session]), (2, 2));
    until("the inbox is empty", || files(&world.our_inbox(&service)).is_empty());
    // The same ask and the same message again: removed, and there once.
    world.put(&service, &message);
    world.put(&service, &Message { text: ask.text.clone(), ..world.up(&service, Kind::LeadAsk, lease, "x") });
    until("both are removed", || files(&world.our_inbox(&service)).is_empty());
    let which = Which::Letter(mail.newest[1].seq);
    assert_eq!(service.ask(|ticket| Request::Mark { ticket, which, read: true }).await, Ok(Done::Marked));
    service.mail("it read", |mail| mail.unread == 1).await;
    for (which, read, unread) in [
        (Which::Letter(mail.newest[1].seq), false, 2),
        (Which::Lead(world.lead.session.clone()), true, 0),
        (Which::Letter(mail.newest[0].seq), false, 1),
    ] {
        service.ask(|ticket| Request::Mark { ticket, which, read }).await.unwrap();
        service.mail("the mark", |mail| mail.unread == unread).await;
    }
    service.end().await;
    let journal = world.journal();
    let all: Vec<_> = journal.index().received().collect();
    assert_eq!(all.len(), 2);
    assert_eq!(journal.record(all[1]).unwrap(), message.to_bytes().unwrap());
    assert!(all[1].read && !all[0].read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_journalled_with_why_and_what_is_of_another_release_stays() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let inbox = world.our_inbox(&service);
    let earlier = world.up(&service, Kind::LeadMessage, Uuid::random(), "late");
    let stranger = Message {
        from: headman::contract::SessionId::new("nobody").unwrap(),
        lead: headman::contract::SessionId::new("nobody").unwrap(),
        ..world.up(&service, Kind::LeadMessage, lease, "who am I")
    };
    let old_ask = Message { ask: Some(Uuid::random()), ..world.up(&service, Kind::LeadAsk, lease, "old?") };
    for message in [&earlier, &stranger, &old_ask] {
        world.put(&service, message);
    }
    let torn = Uuid::random();
    std::fs::write(inbox.message(torn), b"{\"version\":1,\xff").unwrap();
    let newer = Uuid::random();
    let bytes = String::from_utf8(earlier.to_bytes().unwrap()).unwrap().replace(":1,", ":2,");
    std::fs::write(inbox.message(newer), bytes).unwrap();
    let oversize = Uuid::random();
    std::fs::write(inbox.message(oversize), "x".repeat(9_000)).unwrap();
    let mail = service.mail("four refusals", |mail| mail.total == 5 && mail.kept.len() == 2).await;
    assert_eq!(mail.unread, 4, "all but what is no message wait to be seen");
    let mut stay = [inbox.message(newer), inbox.message(oversize)];
    stay.sort();
    until("only the newer and the large one are left", || {
        let mut left = files(&inbox);
        left.sort();
        left == stay
    });
    service.end().await;
    let journal = world.journal();
    let why = |id: Uuid| {
        let it = journal.index().received().find(|it| it.id == id).unwrap();
        (it.refused.clone().unwrap(), journal.record(it).unwrap())
    };
    for (id, word, bytes) in [
        (earlier.id, "earlier lease", earlier.to_bytes().unwrap()),
        (stranger.id, "did not show", stranger.to_bytes().unwrap()),
        (old_ask.id, "not pending", old_ask.to_bytes().unwrap()),
        (torn, "not JSON", b"{\"version\":1,\xff".to_vec()),
    ] {
        let (told, kept) = why(id);
        assert!(told.contains(word), "{told}");
        assert_eq!(kept, bytes);
    }
}

/// Refused while its lead was not listed, an ask comes again under the very same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_that_was_refused_is_received_once_its_lead_is_listed() {
    let world = World::new().await;
    world.make_chief("state");
    let record = world.runtime().lead(&world.lead.session);
    std::fs::remove_file(&record).unwrap();
    let mut service = world.service("state");
    let lease = service.chief().await;
    let ask = world.lead.record.pending_ask.clone().unwrap();
    let id = Uuid::of_ask(&world.lead.session, ask.ask, lease);
    let message = Message { id, text: ask.text.clone(), ..world.up(&service, Kind::LeadAsk, lease, "x") };
    world.put(&service, &message);
    let is_refused = |mail: &Mail| mail.newest.iter().any(|it| it.id == id && it.refused.is_some());
    service.mail("the refusal", |mail| mail.total == 1 && is_refused(mail)).await;
    world.write(&world.lead.record);
    let mail = service.mail("the ask", |mail| mail.total == 1 && !is_refused(mail)).await;
    assert_eq!((mail.unread, mail.newest[0].preview.clone()), (1, ask.text));
    // It is as old as its first message.
    assert_eq!(mail.asks[0].at, message.created_at);
    until("the inbox is empty", || files(&world.our_inbox(&service)).is_empty());
    service.end().await;
    let lines = std::fs::read_dir(world.state("state").journal()).unwrap().next().unwrap().unwrap().path();
    let lines = std::fs::read_to_string(lines).unwrap();
    assert_eq!(lines.matches(r#""kind":"received""#).count(), 2, "as refused, and as received: {lines}");
}

/// What could not be published when the queue was carried over still has to make sense once it can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_carried_over_late_goes_only_while_its_ask_is_pending() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let Ok(Done::Sent(reply)) = service.send(world.reply(lease)).await else { panic!() };
    service.task.abort();
    drop(service);
    // The lead took nothing, and its inbox can't be used.
    let inbox = world.runtime().inbox(&world.lead.session);
    inbox::remove(&inbox, reply).unwrap();
    let aside = inbox.path().with_extension("aside");
    std::fs::rename(inbox.path(), &aside).unwrap();
    std::os::unix::fs::symlink("/nowhere", inbox.path()).unwrap();
    let mut service = world.service("state");
    service.chief().await;
    let again = || world.journal().index().sent_entry(reply).and_then(|entry| entry.again);
    until("it is to be sent again", || again().is_some());
    // That is journalled before the inbox is tried: once the disk is free again, that has failed.
    service.disk.run(|| ()).await.unwrap();
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    std::fs::remove_file(inbox.path()).unwrap();
    std::fs::rename(&aside, inbox.path()).unwrap();
    service.fate(again().unwrap(), Fate::Unknown).await;
    assert!(world.inbox().is_empty(), "{:?}", world.inbox());
    service.end().await;
}

/// Killed between journalling and removing: there once, and gone from the inbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_journal_and_removal_doubles_nothing() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let message = world.up(&service, Kind::LeadMessage, lease, "once");
    world.put(&service, &message);
    service.mail("the message", |mail| mail.total == 2).await;
    let inbox = world.our_inbox(&service);
    service.end().await;
    // As if the removal had not come to pass, or stopped halfway.
    inbox::publish(world.agent_dir().path(), &inbox, &message).unwrap();
    inbox::quarantine(&inbox, message.id).unwrap();
    let mut service = world.service("state");
    service.chief().await;
    until("it is removed", || !inbox.message(message.id).exists());
    service.end().await;
    let journal = world.journal();
    let texts: Vec<_> = journal.index().received().map(|it| journal.text(it).unwrap()).collect();
    assert_eq!(texts.iter().filter(|text| **text == "once").count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_twenty_is_carried_over_and_each_is_delivered_once() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    for at in 0..20 {
        let letter = world.to_lead(&service, lease, &format!("message {at}"));
        assert!(matches!(service.message(letter).await, Ok(Done::Sent(_))));
    }
    let reply = world.reply(lease);
    let Ok(Done::Sent(reply)) = service.send(reply).await else { panic!() };
    let queued = world.inbox();
    assert_eq!(queued.len(), 21);
    // The lead took one, and the console never saw it; the ask of the reply is gone meanwhile.
    service.task.abort();
    world.hand_over(&queued[3]);
    inbox::remove(&world.runtime().inbox(&world.lead.session), queued[3].id).unwrap();
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    drop(service);

    let mut service = world.service("state");
    let again = service.chief().await;
    assert_ne!(again, lease);
    let fresh = || {
        let mut texts: Vec<String> = (world.inbox().into_iter())
            .filter(|message| message.lease == again)
            .map(|message| message.text.to_str_lossy().into_owned())
            .collect();
        texts.sort_by_key(|text| text.trim_start_matches("message ").parse::<u32>().unwrap());
        texts
    };
    // The lead may be just handing over what stands there: that shows in nothing but time.
    let end = std::time::Instant::now() + std::time::Duration::from_millis(800);
    while std::time::Instant::now() < end {
        assert_eq!(fresh(), [""; 0]);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Then it removes what is of the old lease.
    let inbox = world.runtime().inbox(&world.lead.session);
    let take = |handed_over: bool| {
        for message in world.inbox() {
            if handed_over {
                world.hand_over(&message);
            }
            inbox::remove(&inbox, message.id).unwrap();
        }
    };
    take(false);
    service.fate(queued[3].id, Fate::Delivered).await;
    service.fate(reply, Fate::Unknown).await;
    until("nineteen under the new lease", || fresh().len() == 19);
    let expected: Vec<String> = (0..20).filter(|at| *at != 3).map(|at| format!("message {at}")).collect();
    assert_eq!(fresh(), expected);
    // In the order in which they were written.
    let listed = world.inbox().into_iter().map(|message| message.text.to_str_lossy().into_owned());
    assert_eq!(listed.collect::<Vec<_>>(), expected);
    take(true);
    service.end().await;
    // The next lease carries nothing over.
    let mut service = world.service("state");
    service.chief().await;
    let open = || world.journal().index().sent().filter(|entry| entry.is_open()).count();
    until("what became of all is known", || open() == 0);
    assert!(world.inbox().is_empty(), "{:?}", world.inbox());
    service.end().await;
    let session = std::fs::read_to_string(&world.lead.session_file).unwrap();
    for at in 0..20 {
        assert_eq!(session.matches(&format!("lead lead-session-1: message {at}\"")).count(), 1, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_consoles_in_turn_write_one_journal_and_neither_loses_a_line() {
    let world = World::new().await;
    world.make_chief("state");
    let mut first = world.service("state");
    let lease = first.chief().await;
    first.mail("the ask", |mail| mail.total == 1).await;
    world.put(&first, &world.up(&first, Kind::LeadMessage, lease, "to the first"));
    first.mail("what the first received", |mail| mail.total == 2).await;
    first.ask(|ticket| Request::Leave { ticket }).await.unwrap();

    // Another console of the same state directory, while the first still watches.
    let mut second = world.service("state");
    second.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let lease = second.chief().await;
    world.put(&second, &world.up(&second, Kind::LeadMessage, lease, "to the second"));
    let mail = second.mail("what the second received", |mail| mail.total == 3).await;
    // Who only watches reads without writing.
    let which = Which::Letter(mail.newest[0].seq);
    assert!(first.ask(|ticket| Request::Mark { ticket, which, read: true }).await.is_err());
    second.end().await;

    first.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let lease = first.chief().await;
    world.put(&first, &world.up(&first, Kind::LeadMessage, lease, "to the first again"));
    first.mail("all of it", |mail| mail.total == 4 && mail.damaged == 0).await;
    first.end().await;
    let journal = world.journal();
    let all: Vec<_> = journal.index().received().map(|it| journal.text(it).unwrap()).collect();
    let ask = world.lead.record.pending_ask.clone().unwrap();
    assert_eq!(all, [ask.text, "to the first".into(), "to the second".into(), "to the first again".into()]);
    assert!(journal.index().received().all(|it| !it.read));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_watches_sees_what_the_chief_receives_and_reads() {
    let world = World::new().await;
    world.make_chief("state");
    let mut chief = world.service("state");
    let lease = chief.chief().await;
    let mut watcher = world.service("state");
    watcher.standing("to be suspended", |standing| matches!(standing, Standing::Suspended(_))).await;
    chief.mail("the ask", |mail| mail.total == 1).await;
    watcher.mail("the ask as well", |mail| mail.total == 1 && mail.unread == 1).await;
    world.put(&chief, &world.up(&chief, Kind::LeadMessage, lease, "to both"));
    let mail = watcher.mail("the message as well", |mail| mail.total == 2).await;
    assert_eq!(mail.newest[1].preview, "to both");
    assert_eq!(text_of(&mut watcher, mail.newest[1].seq).await, "to both");
    let which = Which::Letter(mail.newest[0].seq);
    chief.ask(|ticket| Request::Mark { ticket, which, read: true }).await.unwrap();
    let mail = watcher.mail("that the chief has read the ask", |mail| mail.unread == 1).await;
    assert_eq!(mail.newest.iter().map(|it| it.read).collect::<Vec<_>>(), [true, false]);
    // Another one becomes Chief, and the first one watches.
    chief.ask(|ticket| Request::Leave { ticket }).await.unwrap();
    watcher.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let lease = watcher.chief().await;
    world.put(&watcher, &world.up(&watcher, Kind::LeadMessage, lease, "to both again"));
    let mail = chief.mail("what the second received", |mail| mail.total == 3).await;
    assert_eq!(mail.newest[2].preview, "to both again");
    watcher.end().await;
    chief.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn months_that_are_old_enough_go_as_one_becomes_chief() {
    let world = World::new().await;
    world.make_chief("state");
    let now = Timestamp::from_millis(millis());
    let ago = |days: u64| Timestamp::from_millis(now.as_millis() - days * 24 * 3600 * 1000);
    let mut journal = world.journal();
    for days in [100, 65, 1] {
        let seen = Uuid::random();
        journal.append(&[Event::AskSeen { lead: &world.lead.session, ask: seen }], ago(days)).unwrap();
    }
    let months = |world: &World| {
        let names = headman::disk::durable::list(&world.state("state").journal()).unwrap();
        let mut months: Vec<Month> = names.iter().filter_map(|it| Month::of_segment(it.to_str()?)).collect();
        months.sort();
        months
    };
    let before = months(&world);
    // For ever, if nothing else is said; and never by one who only watches.
    let mut chief = world.service("state");
    chief.chief().await;
    let mut watcher = world.service_keeping("state", Some(1));
    watcher.standing("to be suspended", |standing| matches!(standing, Standing::Suspended(_))).await;
    watcher.end().await;
    chief.end().await;
    assert_eq!(months(&world)[..2], before[..2]);
    // A month of which a day is young enough stays.
    let mut chief = world.service_keeping("state", Some(66));
    chief.chief().await;
    chief.end().await;
    assert!(!months(&world).contains(&before[0]) && months(&world).contains(&before[1]));
    let mut chief = world.service_keeping("state", Some(31));
    chief.chief().await;
    chief.mail("the ask", |mail| mail.total == 1).await;
    chief.end().await;
    assert!(!months(&world).contains(&before[1]) && months(&world).contains(&Month::of(now)));
}

/// The whole text of what was received under that number.
async fn text_of(service: &mut Service, seq: u64) -> String {
    let inquiry = Inquiry::Text(seq);
    service.requests.send(Request::Inquire { ticket: 7_000 + seq, inquiry }).await.unwrap();
    let answer = |fact: &Fact| match fact {
        Fact::Answered(answered) if answered.ticket == 7_000 + seq => match &answered.result {
            Ok(Answer::Text(text)) => Some(text.to_str_lossy().into_owned()),
            other => panic!("{other:?}"),
        },
        _ => None,
    };
    service.wait("its text", answer).await
}

fn millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() as u64
}

/// What a later release wrote is looked at, and not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_directory_of_a_later_release_is_only_watched() {
    let world = World::new().await;
    world.make_chief("state");
    let mut chief = world.service("state");
    chief.chief().await;
    chief.mail("the ask", |mail| mail.total == 1).await;
    let session = chief.office.session().clone();
    chief.end().await;
    let root = world.dir.path().join("state");
    std::fs::write(root.join("VERSION"), "2\n").unwrap();
    let picture = || {
        let mut entries = Vec::new();
        let mut pending = vec![root.clone()];
        while let Some(path) = pending.pop() {
            let found = std::fs::symlink_metadata(&path).unwrap();
            entries.push((path.clone(), found.modified().unwrap(), std::fs::read(&path).ok()));
            if found.is_dir() {
                pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        entries.sort();
        entries
    };
    let before = picture();
    let mut watcher = world.service_keeping("state", Some(1));
    let standing = watcher.standing("not to be let", |it| matches!(it, Standing::Barred { .. })).await;
    let Standing::Barred { why, chief: OtherChief::None } = standing else { panic!("{standing:?}") };
    assert!(why.contains("is of version 2, this headman writes version 1"), "{why}");
    assert_eq!(*watcher.office.session(), session);
    let mail = watcher.mail("what was received", |mail| mail.total == 1).await;
    text_of(&mut watcher, mail.newest[0].seq).await;
    let which = Which::Letter(mail.newest[0].seq);
    assert!(watcher.ask(|ticket| Request::Mark { ticket, which, read: true }).await.is_err());
    assert_eq!(watcher.ask(|ticket| Request::BecomeChief { ticket }).await, Err(why));
    // Who else is Chief is seen all the same.
    let mut other = world.service("other");
    other.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let held = |it: &Standing| matches!(it, Standing::Barred { chief: OtherChief::Held(_), .. });
    watcher.standing("the other one", held).await;
    other.end().await;
    watcher.end().await;
    assert_eq!(picture(), before);
    // An identity that is not understood is nobody's.
    std::fs::write(root.join("VERSION"), "1\n").unwrap();
    let identity = world.state("state").of_socket().join("identity.json");
    std::fs::write(&identity, r#"{"v":2,"session":"someone"}"#).unwrap();
    let before = picture();
    let mut watcher = world.service("state");
    watcher.standing("not to be let", |it| matches!(it, Standing::Barred { .. })).await;
    assert_ne!(*watcher.office.session(), session);
    watcher.end().await;
    assert_eq!(picture(), before);
}
