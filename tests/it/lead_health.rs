//! What a lead that is open does when something of it is taken away, held, or can't be written.

use std::time::{Duration, Instant};

use headman::contract::{Kind, Message, Uuid};
use headman::disk::AgentDir;
use headman::disk::inbox::{self, InboxError};
use rustix::process::Signal;
use serde_json::Value;

use crate::chief_service::Tmpfs;
use crate::lead_scene::{A, B, Open, Scene, now, session};
use crate::support::until;

/// Nobody would see it any more, and it would not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_whose_record_or_presence_is_taken_away_withdraws_and_says_so() {
    let scene = Scene::new().await;
    for what in ["record", "presence"] {
        let mut lead = scene.open(A, &[]);
        scene.opened(A).await;
        lead.says("open as instance").await;
        let path = match what {
            "record" => scene.runtime.lead(&session(A)),
            _ => scene.runtime.peer(&session(A)),
        };
        std::fs::remove_file(path).unwrap();
        assert_eq!(lead.ended().await, Some(1), "{what}");
        let said = lead.said();
        assert!(said.contains(&format!("the lead's {what} is not there any more")), "{said}");
        assert!(said.contains("Open it again"), "{said}");
        assert!(scene.is_withdrawn(A), "{what}");
    }
}

/// What it asked and was told stood there alone. One that is replaced is away for a moment only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_whose_session_file_is_removed_withdraws_and_says_so() {
    let scene = Scene::new().await;
    let mut lead = scene.open(A, &[]);
    scene.opened(A).await;
    lead.says("open as instance").await;
    let file = scene.session_file(A);
    let away = file.with_extension("away");
    std::fs::rename(&file, &away).unwrap();
    lead.says("what is queued stays for now").await;
    std::fs::rename(&away, &file).unwrap();
    let sender = scene.open(B, &[]);
    scene.opened(B).await;
    sender.says("open as instance").await;
    assert_eq!(scene.lead("peer-message", B, &[A, "still there?"]).code, 0);
    lead.printed(1).await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(lead.ended().await, Some(1));
    let said = lead.said();
    assert!(said.contains("is not there any more: something else removed it"), "{said}");
    assert!(said.contains("what is queued for it stays"), "{said}");
    assert!(scene.is_withdrawn(A));
}

/// Another program that holds the session file for long must not keep it from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_whose_session_file_is_held_ends_soon_when_asked_to() {
    let scene = Scene::new().await;
    let mut lead = scene.open(A, &[]);
    scene.opened(A).await;
    lead.says("open as instance").await;
    let file = std::fs::File::open(scene.session_file(A)).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while fs2::FileExt::try_lock_exclusive(&file).is_err() {
        assert!(Instant::now() < end, "the session file stays locked");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lead.says("what is queued stays for now").await;
    lead.signal(Signal::TERM);
    let asked = Instant::now();
    assert_eq!(lead.ended().await, Some(0), "{}", lead.said());
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(scene.is_withdrawn(A));
}

/// What a full disk cuts off is no part of the file, so that the line written next is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_does_not_fit_is_not_written_in_part() {
    let scene = Scene::new().await;
    let disk = tempfile::tempdir().unwrap();
    let Some(mount) = Tmpfs::mount(disk.path()) else { return };
    let (lines, fill) = (disk.path().join("lines"), disk.path().join("fill"));
    let open = || {
        let file = std::fs::File::options().create(true).append(true).open(&lines).unwrap();
        let mut command = scene.command(&["lead", "open", "--session", A]);
        command.stdout(file);
        Open::start(&mut command, false)
    };
    let sender = scene.open(B, &[]);
    scene.opened(B).await;
    sender.says("open as instance").await;
    let mut lead = open();
    scene.opened(A).await;
    let write = |text: &str| {
        let ran = scene.lead("peer-message", B, &[A, text]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    write("first");
    until("the first line", async || std::fs::read_to_string(&lines).unwrap().ends_with('\n')).await;
    // A page and a little stays: less than the next line takes.
    let first = std::fs::metadata(&lines).unwrap().len();
    let mut filled = std::fs::File::create(&fill).unwrap();
    while std::io::Write::write_all(&mut filled, &[0; 512]).is_ok() {}
    let text = "x".repeat(6_000);
    write(&text);
    assert_eq!(lead.ended().await, Some(4), "{}", lead.said());
    assert_eq!(std::fs::metadata(&lines).unwrap().len(), first);
    drop(filled);
    std::fs::remove_file(&fill).unwrap();
    let mut again = open();
    scene.opened(A).await;
    until("the second line", async || std::fs::read_to_string(&lines).unwrap().lines().count() == 2).await;
    again.signal(Signal::TERM);
    assert_eq!(again.ended().await, Some(0), "{}", again.said());
    let written = std::fs::read_to_string(&lines).unwrap();
    let texts: Vec<Value> =
        written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].clone()).collect();
    assert_eq!(texts, ["first", &text]);
    drop(mount);
}

/// Killed while it takes a message out of its inbox, a marker stands, on which every check fails closed.
#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_is_killed_leaves_a_marker() {
    use headman::disk::{crash, records};

    let scene = Scene::new().await;
    let sender = scene.open(B, &[]);
    scene.opened(B).await;
    sender.says("open as instance").await;
    for point in ["marker:placed", "remove:aside", "remove:unlinked"] {
        let mut lead = scene.open(A, &[]);
        scene.opened(A).await;
        lead.says("open as instance").await;
        lead.signal(Signal::TERM);
        assert_eq!(lead.ended().await, Some(0));
        let message = Message {
            id: Uuid::random(),
            lease: records::read_peer(&scene.runtime, &session(B)).unwrap().claim.id,
            kind: Kind::PeerMessage,
            from: session(B),
            to: session(A),
            lead: session(B),
            ask: None,
            text: point.into(),
            created_at: now(),
        };
        let inbox = scene.runtime.peer_inbox(&session(A));
        inbox::publish(scene.agent_dir.path(), &inbox, &message).unwrap();
        let mut drain = scene.command(&["lead", "drain", "--session", A]);
        let killed = drain.env(crash::VARIABLE, point).output().unwrap();
        assert_eq!(killed.status.code(), None, "{point}: {killed:?}");
        assert!(inbox::is_quarantined(&inbox, message.id), "{point}");
    }
}

/// As its receiver refused it.
#[test]
fn an_ask_whose_id_is_quarantined_is_not_put_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), dir.path());
    let inbox = agent_dir.runtime("s".as_ref()).inbox(&session("chief"));
    let message = Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::LeadAsk,
        from: session("lead"),
        to: session("chief"),
        lead: session("lead"),
        ask: Some(Uuid::random()),
        text: "Go on?".into(),
        created_at: now(),
    };
    inbox::publish_ask(agent_dir.path(), &inbox, &message).unwrap();
    inbox::quarantine(&inbox, message.id).unwrap();
    std::fs::remove_file(inbox.message(message.id)).unwrap();
    let again = inbox::publish_ask(agent_dir.path(), &inbox, &message);
    assert!(matches!(again, Err(InboxError::Quarantined(id)) if id == message.id), "{again:?}");
    assert!(!inbox.message(message.id).exists());
}
