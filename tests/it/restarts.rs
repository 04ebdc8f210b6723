//! What is queued outlives the Chief, with Chiefs and leads that are processes of their own.

use headman::contract::Uuid;
use headman::disk::inbox;

use crate::cli_support::until;
use crate::programs::Program;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_twenty_survives_a_crash_of_the_chief() {
    queue_of_twenty(Program::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_twenty_survives_the_chief_quitting() {
    queue_of_twenty(Program::quit).await;
}

async fn queue_of_twenty(end: fn(&mut Program)) {
    let stage = Stage::new().await;
    let home = stage.home("home");
    let post = stage.post(&Uuid::random().to_string());
    let (chief, lead) = (stage.chief_setting(&home, false), stage.lead_setting(&home, &post));
    let inbox = stage.runtime(&home).inbox(&post.session);
    // A lead that was killed is still one by its record, and takes nothing.
    let mut first = Program::lead(&lead, None);
    first.hear("instance").unwrap();
    stage.list_lead(&post).await;
    first.kill();
    let mut before = Program::chief(&chief, None);
    let old = before.hear("chief").unwrap();
    let texts: Vec<String> = (0..20).map(|nth| format!("queued {nth}")).collect();
    for text in &texts {
        before.does(&format!("message {text}")).unwrap();
    }
    assert_eq!(inbox::list(&inbox).unwrap().len(), 20);
    end(&mut before);

    let mut after = Program::chief(&chief, None);
    assert_ne!(after.hear("chief").unwrap(), old, "a lease of its own");
    let mut again = Program::lead(&lead, None);
    for text in &texts {
        let received = again.hear("received").unwrap();
        assert_eq!(received, format!("received {text}"), "in the order they were written");
    }
    after.does("settled").unwrap();
    until("nothing waits", || inbox::list(&inbox).unwrap().is_empty());
    // Another lease sends nothing of it again.
    after.quit();
    let mut last = Program::chief(&chief, None);
    last.does("settled").unwrap();
    last.quit();
    again.quit();
    let session = std::fs::read_to_string(&post.session_file).unwrap();
    for text in texts {
        assert_eq!(session.matches(&format!(": {text}\"")).count(), 1, "{text}");
    }
    let journal = stage.journal(&home);
    assert_eq!(journal.index().sent().count(), 40, "each once under either lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_waits_for_a_lead_that_comes_later() {
    let stage = Stage::new().await;
    let home = stage.home("home");
    let post = stage.post(&Uuid::random().to_string());
    let (chief, lead) = (stage.chief_setting(&home, false), stage.lead_setting(&home, &post));
    let mut first = Program::lead(&lead, None);
    first.hear("instance").unwrap();
    stage.list_lead(&post).await;
    first.kill();
    let mut before = Program::chief(&chief, None);
    before.hear("chief").unwrap();
    for text in ["message one", "message two"] {
        before.does(text).unwrap();
    }
    before.kill();
    // While there is no Chief it takes nothing; and it goes.
    let mut second = Program::lead(&lead, None);
    second.hear("instance").unwrap();
    second.quit();

    let mut after = Program::chief(&chief, None);
    after.hear("chief").unwrap();
    let open = || stage.journal(&home).index().sent().filter(|entry| entry.is_open()).count();
    // Nothing is given up; that shows in nothing but time.
    let end = std::time::Instant::now() + std::time::Duration::from_millis(700);
    while std::time::Instant::now() < end {
        assert_eq!(open(), 2);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut third = Program::lead(&lead, None);
    for text in ["received one", "received two"] {
        assert_eq!(third.hear("received").as_deref(), Some(text));
    }
    after.does("settled").unwrap();
    after.quit();
    third.quit();
    let session = std::fs::read_to_string(&post.session_file).unwrap();
    assert_eq!((session.matches(": one\"").count(), session.matches(": two\"").count()), (1, 1));
}
