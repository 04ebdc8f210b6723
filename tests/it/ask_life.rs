//! The life of an ask over restarts of either side, with Chiefs and leads that are processes of their
//! own.

use std::path::{Path, PathBuf};

use headman::chief::state_dir::Identity;
use headman::contract::role::Role;
use headman::contract::{Kind, LeadRecord, Message, Timestamp, Uuid};
use headman::disk::{inbox, records};

use crate::cli_support::until;
use crate::programs::{Program, Setting};
use crate::stage::{Post, Stage};

/// A Chief and a lead that asks, each a process.
struct Scene {
    stage: Stage,
    home: PathBuf,
    post: Post,
    lead: Program,
    ask: Uuid,
}

impl Scene {
    /// The lead asks while no Chief is there, so that its message never comes.
    async fn new() -> Self {
        let stage = Stage::new().await;
        let home = stage.home("home");
        let post = stage.post(&Uuid::random().to_string());
        let mut lead = Program::lead(&stage.lead_setting(&home, &post), None);
        lead.hear("instance").unwrap();
        stage.list_lead(&post).await;
        let asked = lead.does("ask Ship it?").unwrap();
        let (ask, published) = asked.split_once(' ').unwrap();
        assert_eq!(published, "false");
        let ask = Uuid::parse(ask).unwrap();
        Self { stage, home, post, lead, ask }
    }

    fn chief(&self) -> Program {
        let chief = Program::chief(&self.stage.chief_setting(&self.home, false), None);
        chief.hear("chief").unwrap();
        chief
    }

    fn record(&self) -> LeadRecord {
        records::read_lead(&self.stage.runtime(&self.home), &self.post.session).unwrap()
    }

    fn asks(&self) -> bool {
        self.record().pending_ask.is_some_and(|ask| ask.ask == self.ask)
    }

    /// What the lead was handed, as its session has it.
    fn handed_over(&self, text: &str) -> usize {
        let session = std::fs::read_to_string(&self.post.session_file).unwrap();
        session.matches(&format!(": {text}\"")).count()
    }

    /// When the ask was put, as the journal of that state directory knows.
    fn asked_at(&self, home: &Path) -> Option<Timestamp> {
        self.stage.journal(home).index().asked_at(&self.post.session, self.ask)
    }

    /// How often the ask is listed as received there.
    fn listed(&self, home: &Path) -> usize {
        let journal = self.stage.journal(home);
        journal.index().received().filter(|it| it.ask == Some(self.ask)).count()
    }

    /// The last reply that was sent from there.
    fn last_reply(&self, home: &Path) -> Message {
        let journal = self.stage.journal(home);
        let replies = journal.index().sent().filter(|entry| entry.kind == Kind::ChiefReply);
        journal.message(replies.max_by_key(|entry| entry.created_at).unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chief_that_comes_after_a_crash_answers_under_its_own_lease() {
    let scene = Scene::new().await;
    let mut first = scene.chief();
    first.does("mail 1").unwrap();
    let lease = records::read_descriptor(&scene.stage.runtime(&scene.home)).unwrap().lease;
    let asked_at = scene.asked_at(&scene.home);
    assert!(asked_at.is_some());
    first.kill();
    assert!(scene.asks());

    let mut second = scene.chief();
    second.does("reply Yes.").unwrap();
    second.does("settled").unwrap();
    scene.lead.hear("received Yes.").unwrap();
    until("the ask is cleared", || scene.record().pending_ask.is_none());
    second.quit();
    let reply = scene.last_reply(&scene.home);
    assert_ne!(reply.lease, lease);
    assert_eq!((reply.ask, reply.to.clone()), (Some(scene.ask), scene.post.session.clone()));
    assert_eq!(scene.handed_over("Yes."), 1);
    // Once, though each Chief saw it; and as old as when it was seen first.
    assert_eq!(scene.listed(&scene.home), 1);
    assert_eq!(scene.asked_at(&scene.home), asked_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_chief_answers_with_the_same_ask_id() {
    let scene = Scene::new().await;
    let mut first = scene.chief();
    first.does("mail 1").unwrap();
    first.kill();
    // Of another state directory, and so another session.
    let identity = Identity::new(Role::Chief);
    let other =
        Setting { state: scene.home.join("other/state"), ..scene.stage.chief_setting(&scene.home, false) };
    let other_home = scene.home.join("other");
    std::fs::create_dir(&other_home).unwrap();
    scene.stage.state(&other_home).write_identity(&identity).unwrap();
    scene.stage.list_chief(&identity).await;
    let mut second = Program::chief(&other, None);
    second.does("mail 1").unwrap();
    second.does("reply Yes.").unwrap();
    second.does("settled").unwrap();
    scene.lead.hear("received Yes.").unwrap();
    until("the ask is cleared", || scene.record().pending_ask.is_none());
    second.quit();
    let reply = scene.last_reply(&other_home);
    assert_eq!((reply.ask, reply.from), (Some(scene.ask), identity.session()));
    assert_eq!((scene.handed_over("Yes."), scene.listed(&other_home)), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_an_ask_that_is_over_is_refused_here_and_deleted_there() {
    let mut scene = Scene::new().await;
    let mut chief = scene.chief();
    chief.does("reply Yes.").unwrap();
    scene.lead.hear("received Yes.").unwrap();
    chief.does("settled").unwrap();
    let why = chief.refuses(&format!("answer {} No.", scene.ask));
    assert!(why.contains("not pending"), "{why}");
    // As if it had been on its way.
    let lease = records::read_descriptor(&scene.stage.runtime(&scene.home)).unwrap().lease;
    let late = Message { id: Uuid::random(), lease, text: "No.".into(), ..scene.last_reply(&scene.home) };
    let inbox = scene.stage.runtime(&scene.home).inbox(&scene.post.session);
    inbox::publish(scene.stage.agent_dir(&scene.home).path(), &inbox, &late).unwrap();
    until("the lead deletes it", || !inbox.message(late.id).exists());
    chief.quit();
    scene.lead.quit();
    let session = std::fs::read_to_string(&scene.post.session_file).unwrap();
    assert_eq!(session.matches(": Yes.\"").count(), 1);
    assert!(!session.contains("No."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_that_is_started_again_keeps_its_ask_and_how_old_it_is() {
    let mut scene = Scene::new().await;
    let mut chief = scene.chief();
    chief.does("mail 1").unwrap();
    let (before, asked_at) = (scene.record(), scene.asked_at(&scene.home));
    scene.lead.kill();
    scene.lead = Program::lead(&scene.stage.lead_setting(&scene.home, &scene.post), None);
    scene.lead.hear("instance").unwrap();
    let after = scene.record();
    assert_ne!(after.instance, before.instance);
    assert_eq!(after.pending_ask, before.pending_ask);
    // It is answered as the instance that it is now.
    chief.does("reply Yes.").unwrap();
    scene.lead.hear("received Yes.").unwrap();
    chief.quit();
    assert_eq!((scene.listed(&scene.home), scene.handed_over("Yes.")), (1, 1));
    assert_eq!(scene.asked_at(&scene.home), asked_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_that_comes_by_record_and_by_message_is_shown_once() {
    let scene = Scene::new().await;
    let mut chief = scene.chief();
    chief.does("mail 1").unwrap();
    let runtime = scene.stage.runtime(&scene.home);
    let us = scene.stage.identity.session();
    // The lead's own message comes only now: under the lease that stands and, as a straggler, under one
    // that ended.
    let lease = records::read_descriptor(&runtime).unwrap().lease;
    for lease in [lease, Uuid::random()] {
        let message = Message {
            id: Uuid::of_ask(&scene.post.session, scene.ask, lease),
            lease,
            kind: Kind::LeadAsk,
            from: scene.post.session.clone(),
            to: us.clone(),
            lead: scene.post.session.clone(),
            ask: Some(scene.ask),
            text: "Ship it?".into(),
            created_at: Timestamp::from_millis(1_796_000_000_000),
        };
        let inbox = runtime.inbox(&us);
        inbox::publish(scene.stage.agent_dir(&scene.home).path(), &inbox, &message).unwrap();
    }
    chief.does("settled").unwrap();
    chief.kill();
    let mut again = scene.chief();
    assert_eq!(again.does("mail 1").as_deref(), Some("1 1"));
    again.quit();
    assert_eq!(scene.listed(&scene.home), 1);
}
