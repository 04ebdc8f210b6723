//! What comes in heaps, twice, or late is received once and in order.

use headman::chief::inquiry::Which;
use headman::chief::service::Request;
use headman::contract::{Kind, Message, Timestamp, Uuid};
use headman::disk::inbox;
use headman::fact::{Fact, Mail};

use crate::chief_service::{Tmpfs, World};
use crate::cli_support::until;
use crate::reception::files;

/// A message is the same one by its id, however its file is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_message_under_several_names_is_received_once() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let message = world.up(&service, Kind::LeadMessage, lease, "once");
    let inbox = world.our_inbox(&service);
    for _ in 0..2 {
        std::fs::write(inbox.message(Uuid::random()), message.to_bytes().unwrap()).unwrap();
    }
    until("they are removed", || files(&inbox).is_empty());
    world.put(&service, &message);
    until("it is removed as well", || files(&inbox).is_empty());
    service.end().await;
    // Nor is it after a restart.
    let mut service = world.service("state");
    service.chief().await;
    std::fs::write(inbox.message(Uuid::random()), message.to_bytes().unwrap()).unwrap();
    until("it is removed again", || files(&inbox).is_empty());
    service.end().await;
    let journal = world.journal();
    let texts: Vec<_> = journal.index().received().map(|it| journal.text(it).unwrap()).collect();
    assert_eq!(texts.iter().filter(|text| **text == "once").count(), 1, "{texts:?}");
}

/// More than are journalled at once, that came while nobody received: the oldest first. They are of
/// an earlier lease, so refused: they wait to be seen until they are marked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_is_received_in_the_order_it_was_written_and_can_be_marked() {
    let world = World::new().await;
    world.make_chief("state");
    let us = world.state("state").identity().unwrap().session();
    let inbox = world.runtime().inbox(&us);
    for nth in 0..200_u64 {
        let message = Message {
            id: Uuid::random(),
            lease: Uuid::random(),
            kind: Kind::LeadMessage,
            from: world.lead.session.clone(),
            to: us.clone(),
            lead: world.lead.session.clone(),
            ask: None,
            text: format!("number {nth}").as_str().into(),
            created_at: Timestamp::from_millis(1_796_000_000_000 + nth),
        };
        inbox::publish(world.agent_dir().path(), &inbox, &message).unwrap();
    }
    let mut service = world.service("state");
    service.chief().await;
    let mail = service.mail("all of them", |mail| mail.total == 201).await;
    assert_eq!(mail.unread, 201);
    let seq = mail.newest.iter().find(|it| it.preview == "number 199").unwrap().seq;
    service.ask(|ticket| Request::Mark { ticket, which: Which::Letter(seq), read: true }).await.unwrap();
    service.mail("one is read", |mail| mail.unread == 200).await;
    let which = Which::Lead(world.lead.session.clone());
    service.ask(|ticket| Request::Mark { ticket, which, read: true }).await.unwrap();
    service.mail("all are read", |mail| mail.unread == 0).await;
    service.ask(|ticket| Request::Mark { ticket, which: Which::Letter(seq), read: false }).await.unwrap();
    service.mail("one is not", |mail| mail.unread == 1).await;
    service.end().await;
    let journal = world.journal();
    let texts: Vec<String> = (journal.index().received())
        .filter(|it| it.kind == Some(Kind::LeadMessage))
        .map(|it| journal.text(it).unwrap().to_str_lossy().into_owned())
        .collect();
    assert_eq!(texts, (0..200).map(|nth| format!("number {nth}")).collect::<Vec<_>>());
}

/// The contract knows a message by its id, and would have the second removed unread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_message_of_an_id_that_was_received_is_journalled_and_marked() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let first = world.up(&service, Kind::LeadMessage, lease, "first");
    let inbox = world.our_inbox(&service);
    world.put(&service, &first);
    until("it is received", || files(&inbox).is_empty());
    for text in ["second", "third", "third"] {
        world.put(&service, &Message { text: text.into(), ..first.clone() });
        until("it is received, too", || files(&inbox).is_empty());
    }
    world.put(&service, &Message { created_at: Timestamp::from_millis(1), ..first.clone() });
    until("the first is known", || files(&inbox).is_empty());
    service.end().await;
    let journal = world.journal();
    let texts: Vec<_> = (journal.index().received())
        .filter(|it| it.id == first.id)
        .map(|it| (journal.text(it).unwrap().to_str_lossy().into_owned(), it.refused.is_some()))
        .collect();
    let wanted = [("first", false), ("second", true), ("third", true)];
    assert_eq!(texts[..3], wanted.map(|(text, refused)| (text.to_owned(), refused)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_comes_again_with_something_else_is_journalled_too() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let message = world.up(&service, Kind::LeadMessage, lease, "whole");
    let inbox = world.our_inbox(&service);
    let torn = &message.to_bytes().unwrap()[..40];
    std::fs::write(inbox.message(message.id), torn).unwrap();
    service.mail("the torn one", |mail| mail.total == 2).await;
    until("it is removed", || files(&inbox).is_empty());
    std::fs::write(inbox.message(message.id), torn).unwrap();
    until("it is removed again", || files(&inbox).is_empty());
    world.put(&service, &message);
    let mail = service.mail("the whole one", |mail| mail.total == 3).await;
    assert_eq!(mail.newest[2].preview, "whole");
    service.end().await;
}

/// Nothing tells of it: neither Herdr's snapshot nor a record is another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_of_a_lead_whose_session_file_comes_late_is_received_soon() {
    let world = World::new().await;
    world.make_chief("state");
    let header = std::fs::read(&world.lead.session_file).unwrap();
    std::fs::remove_file(&world.lead.session_file).unwrap();
    let mut service = world.service("state");
    service.chief().await;
    // Several snapshots, each of which is looked at, and finds nothing missing.
    let snapshots = || world.herdr.server.calls().iter().filter(|it| it.method == "session.snapshot").count();
    let before = snapshots();
    until("several looks", || snapshots() > before + 3);
    assert!(!service.has_told(|fact| matches!(fact, Fact::Mail(mail) if mail.total > 0)));
    std::fs::write(&world.lead.session_file, header).unwrap();
    service.mail("the ask", |mail| mail.total == 1).await;
    service.end().await;
}

/// The journal's disk is full: what comes waits in the inbox, and can be read there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_journal_cant_take_is_shown_and_received_once_it_can() {
    let world = World::new().await;
    world.make_chief("state");
    let journal = world.state("state").journal();
    std::fs::create_dir_all(&journal).unwrap();
    let Some(mount) = Tmpfs::mount(&journal) else { return };
    let mut service = world.service("state");
    let lease = service.chief().await;
    service.mail("the ask", |mail| mail.total == 1).await;
    let fill = journal.join("fill");
    let mut filled = std::fs::File::create(&fill).unwrap();
    while std::io::Write::write_all(&mut filled, &[0; 512]).is_ok() {}
    world.put(&service, &world.up(&service, Kind::LeadMessage, lease, "x".repeat(5_000).as_str()));
    let is_shown =
        |mail: &Mail| matches!(&mail.kept[..], [one] if one.contains("lead-session-1: \u{201c}xxx"));
    let mail = service.mail("it waits", |mail| mail.stopped.is_some() && is_shown(mail)).await;
    assert_eq!(mail.total, 1);
    drop(filled);
    std::fs::remove_file(&fill).unwrap();
    service.mail("it is received", |mail| mail.total == 2 && mail.stopped.is_none()).await;
    service.end().await;
    drop(mount);
}
