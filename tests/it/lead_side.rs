//! The lead's side of the contract, played by real lead processes under a Chief of the test's own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use headman::chief::lease::{Lease, Place};
use headman::contract::{Kind, LeadRecord, Message, SessionId, Timestamp, Uuid};
use headman::demo::lead::{Options, Seat};
use headman::demo::server::Created;
use headman::disk::inbox::{self, Content};
use headman::disk::records::{self, RecordError};
use headman::disk::{AgentDir, Runtime};
use headman::herdr::client::AgentReport;
use headman::herdr::{Client, Status};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Herdr, Program, until};

const CHIEF: &str = "0a8b4f0e-5d5a-4c63-9a55-1d6a0f6e2b22";
const LEAD: &str = "01a22b77-339a-7241-9ef5-b7ff2b23890b";

/// A Herdr, a Chief's pane and a lead's pane, all in one temporary directory.
struct Scene {
    herdr: Herdr,
    client: Client,
    directory: tempfile::TempDir,
    agent_dir: AgentDir,
    runtime: Runtime,
    /// A pane listed before the Chief's.
    other_pane: Created,
    chief_pane: Created,
    seat: Seat,
}

/// A lead's process, which ends with the test.
struct Lead(Child);

impl Lead {
    async fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the lead's process does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn ends_with_its_input(&mut self) -> ExitStatus {
        drop(self.0.stdin.take());
        self.ended().await
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // Already ended and waited for is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The Chief: its lease and the process that Herdr takes for it.
struct Chief {
    lease: Lease,
    _program: Program,
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap())
}

impl Scene {
    async fn new() -> Self {
        let herdr = Herdr::start().await;
        let directory = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::resolve(Some(directory.path().join("agent").as_os_str()), directory.path());
        let runtime = agent_dir.runtime(herdr.socket.as_os_str());
        let other_pane = herdr.server.create_workspace("other", "/tmp", None, false);
        let chief_pane = herdr.server.create_workspace("ops", "/tmp", None, true);
        let pane = herdr.server.create_workspace("api", "/tmp", None, false);
        let seat = Seat {
            crew: Vec::new(),
            // The one that asks at once.
            nth: 0,
            session: LEAD.to_owned(),
            session_file: directory.path().join("sessions/lead.jsonl"),
            begun: now().as_millis() - 60_000,
            cwd: directory.path().to_str().unwrap().to_owned(),
            pane: pane.pane,
            tab: pane.tab,
            workspace: pane.workspace,
            workspace_label: "api".to_owned(),
        };
        let client = herdr.client();
        Self { herdr, client, directory, agent_dir, runtime, other_pane, chief_pane, seat }
    }

    /// Starts the lead's process and has Herdr see it on its pane.
    fn lead(&self) -> Lead {
        let options = Options {
            socket: self.herdr.socket.to_str().unwrap().to_owned(),
            agent_dir: self.agent_dir.path().to_owned(),
            speed: 0.0,
            seed: 1,
            seats: vec![self.seat.clone()],
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_headman"))
            .arg("demo-lead")
            .env("HERDR_AGENT", "pi")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::options().create(true).append(true).open(self.complaints()).unwrap())
            .spawn()
            .unwrap();
        let input = child.stdin.as_mut().unwrap();
        input.write_all(format!("{}\n", serde_json::to_string(&options).unwrap()).as_bytes()).unwrap();
        self.herdr.server.attach(&self.seat.pane, child.id(), true);
        Lead(child)
    }

    /// Where leads complain.
    fn complaints(&self) -> PathBuf {
        self.directory.path().join("complaints")
    }

    /// Waits until a lead complained of this once more.
    async fn complained(&self, of: &str) {
        let count = || std::fs::read_to_string(self.complaints()).unwrap().matches(of).count();
        let before = count();
        until("it complains", async || count() > before).await;
    }

    /// Takes the lease as `id`, without anyone in Herdr.
    fn claim(&self, id: &str) -> Lease {
        let place = Place {
            pane: self.chief_pane.pane.as_str().into(),
            tab: self.chief_pane.tab.as_str().into(),
            workspace: self.chief_pane.workspace.as_str().into(),
        };
        let sidecar = self.directory.path().join("chief.flock");
        Lease::claim(&self.runtime, &self.agent_dir.data_root(), &sidecar, &session(id), &place, now())
            .unwrap()
    }

    /// Has Herdr list `id` on the Chief's pane.
    async fn list_chief(&self, id: &str) -> Program {
        let program = Program::hinted();
        self.herdr.server.attach(&self.chief_pane.pane, program.pid(), true);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let report = AgentReport {
            pane: &self.chief_pane.pane,
            source: "herdr:pi",
            agent: "pi",
            state: Status::Idle,
            seq: u64::try_from(now.as_micros()).unwrap(),
            session: Some(id),
        };
        self.client.report_agent(report).await.unwrap();
        until("the Chief is listed", async || {
            self.client
                .agent_list()
                .await
                .unwrap()
                .0
                .iter()
                .any(|agent| agent.agent_session.as_ref().is_some_and(|session| session.value == *id))
        })
        .await;
        program
    }

    async fn chief(&self) -> Chief {
        let program = self.list_chief(CHIEF).await;
        Chief { lease: self.claim(CHIEF), _program: program }
    }

    fn record(&self) -> Result<LeadRecord, RecordError> {
        records::read_lead(&self.runtime, &session(LEAD))
    }

    /// Waits for the ask that the lead opens with.
    async fn asked(&self) -> LeadRecord {
        until("the lead asks", async || self.record().is_ok_and(|record| record.pending_ask.is_some())).await;
        self.record().unwrap()
    }

    /// Puts a message into the lead's inbox.
    fn send(&self, message: &Message) {
        inbox::publish(self.agent_dir.path(), &self.runtime.inbox(&message.to), message).unwrap();
    }

    fn stands(&self, message: &Message) -> bool {
        self.runtime.inbox(&session(LEAD)).message(message.id).exists()
    }

    async fn taken(&self, message: &Message) {
        until("the message is taken", async || !self.stands(message)).await;
    }

    /// The entries of the lead's session of this type, in order.
    fn entries(&self, kind: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.seat.session_file).unwrap_or_default();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["type"] == kind).collect()
    }

    /// The ids handed over to the lead's session, in order.
    fn delivered(&self) -> Vec<String> {
        let id = |entry: &Value| entry["details"]["id"].as_str().unwrap().to_owned();
        self.entries("custom_message").iter().map(id).collect()
    }
}

fn message(kind: Kind, lease: Uuid, ask: Option<Uuid>, text: &str) -> Message {
    Message {
        id: Uuid::random(),
        lease,
        kind,
        from: session(CHIEF),
        to: session(LEAD),
        lead: session(LEAD),
        ask,
        text: text.into(),
        created_at: now(),
    }
}

/// Blocks appending to `file` by having a directory in its place; what is there is put aside.
fn block(file: &Path) -> PathBuf {
    let aside = file.with_extension("aside");
    std::fs::rename(file, &aside).unwrap();
    std::fs::create_dir(file).unwrap();
    // Not empty, so that nothing can be renamed onto it.
    std::fs::create_dir(file.join("in-the-way")).unwrap();
    aside
}

fn unblock(file: &Path, aside: &Path) {
    std::fs::remove_dir_all(file).unwrap();
    std::fs::rename(aside, file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_is_recorded_and_its_message_is_in_the_chiefs_inbox() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let _lead = scene.lead();
    let ask = scene.asked().await.pending_ask.unwrap();
    let inbox = scene.runtime.inbox(&session(CHIEF));
    until("its message is published", async || inbox::list(&inbox).unwrap().len() == 1).await;
    let Content::Valid(message) = inbox::list(&inbox).unwrap().remove(0).content else { panic!() };
    assert_eq!(message.id, Uuid::of_ask(&session(LEAD), ask.ask, chief.lease.id()));
    assert_eq!((message.kind, message.lease, message.ask), (Kind::LeadAsk, chief.lease.id(), Some(ask.ask)));
    assert_eq!((&message.from, &message.to, &message.text), (&session(LEAD), &session(CHIEF), &ask.text));
    // The session has it, too: that is what counts when the lead starts again.
    let state = scene.entries("custom").pop().unwrap();
    assert_eq!(state["customType"], "pi-herdsman-lead-state");
    assert_eq!(state["data"]["pendingAsk"]["askId"], ask.ask.to_string());
    // Its presence is that of a live peer, and Herdr knows its session by its file.
    let peer = records::read_peer(&scene.runtime, &session(LEAD)).unwrap();
    assert_eq!(peer.pane.as_untrusted(), &*scene.seat.pane);
    assert_eq!(peer.branch.unwrap().as_untrusted(), &"auth-rewrite");
    until("Herdr lists it", async || {
        let (agents, _) = scene.client.agent_list().await.unwrap();
        agents.iter().any(|agent| {
            agent.agent_session.as_ref().is_some_and(|session| {
                session.kind == "path" && session.value == *scene.seat.session_file.to_str().unwrap()
            })
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_listed_chief_an_ask_stays_in_the_record_and_nothing_is_written_up() {
    let scene = Scene::new().await;
    // The lease stands, but Herdr lists nobody of that session.
    let _lease = scene.claim(CHIEF);
    let _lead = scene.lead();
    let record = scene.asked().await;
    // Only after the decision not to write does it look into its inbox and find this one, which it
    // keeps for the same reason.
    let kept = message(Kind::ChiefReply, _lease.id(), record.pending_ask.as_ref().map(|ask| ask.ask), "Yes.");
    scene.send(&kept);
    let asked = || scene.herdr.server.calls().iter().filter(|call| call.method == "agent.list").count();
    until("it has looked in Herdr again and again", async || asked() > 3).await;
    assert!(scene.stands(&kept));
    assert!(inbox::list(&scene.runtime.inbox(&session(CHIEF))).unwrap().is_empty());
    assert_eq!(scene.record().unwrap(), record);

    // Once the Chief is listed, what was kept is taken.
    let _program = scene.list_chief(CHIEF).await;
    scene.taken(&kept).await;
    assert_eq!(scene.delivered(), [kept.id.to_string()]);
    assert_eq!(scene.record().unwrap().pending_ask, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chief_listed_twice_or_elsewhere_is_not_believed() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let other = scene.other_pane.clone();
    let second = Program::hinted();
    scene.herdr.server.attach(&other.pane, second.pid(), true);
    let report = AgentReport {
        pane: &other.pane,
        source: "herdr:pi",
        agent: "pi",
        state: Status::Idle,
        seq: 1,
        session: Some(CHIEF),
    };
    scene.client.report_agent(report).await.unwrap();
    let listed = async || {
        let (agents, _) = scene.client.agent_list().await.unwrap();
        let named = |it: &&headman::herdr::Agent| {
            it.agent_session.as_ref().is_some_and(|session| session.value == CHIEF)
        };
        agents.iter().filter(named).count()
    };
    until("the session is listed twice", async || listed().await == 2).await;
    let _lead = scene.lead();
    let record = scene.asked().await;
    let reply = message(Kind::ChiefReply, chief.lease.id(), record.pending_ask.map(|ask| ask.ask), "Yes.");
    scene.send(&reply);
    let looked = || scene.herdr.server.calls().iter().filter(|call| call.method == "agent.list").count();
    let keeps = async |until_then: &str| {
        let before = looked();
        until(until_then, async || looked() > before + 3).await;
        assert!(scene.stands(&reply), "{until_then}");
    };
    keeps("it looked while there were two").await;
    // Only elsewhere than the descriptor says.
    scene.herdr.server.detach(&scene.chief_pane.pane);
    until("it is listed once", async || listed().await == 1).await;
    keeps("it looked while there was one elsewhere").await;
    assert!(inbox::list(&scene.runtime.inbox(&session(CHIEF))).unwrap().is_empty());
    // Only here.
    scene.herdr.server.detach(&other.pane);
    let _program = scene.list_chief(CHIEF).await;
    scene.taken(&reply).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_is_in_the_session_before_the_ask_is_cleared_and_cleared_before_the_file_goes() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let _lead = scene.lead();
    let before = scene.asked().await;
    let ask = before.pending_ask.clone().unwrap().ask;
    let reply = message(Kind::ChiefReply, chief.lease.id(), Some(ask), "Rotate them.\nSilently.");

    // A session that can't be used: nothing happens, however often it is tried. Not even what is
    // not the Chief's goes: without the session it is not known what is asked.
    let aside = scene.seat.session_file.with_extension("aside");
    std::fs::rename(&scene.seat.session_file, &aside).unwrap();
    scene.send(&reply);
    let second = message(Kind::ChiefMessage, Uuid::random(), None, "of no lease of ours");
    scene.send(&second);
    scene.complained("session file").await;
    scene.complained("session file").await;
    assert!(scene.stands(&reply) && scene.stands(&second));
    assert_eq!(scene.record().unwrap(), before);

    // A record that can't be written: the session has the reply, and the file stays.
    let record_file = scene.runtime.lead(&session(LEAD));
    let record_aside = block(&record_file);
    std::fs::rename(&aside, &scene.seat.session_file).unwrap();
    until("the session has the reply", async || scene.delivered() == [reply.id.to_string()]).await;
    let third = message(Kind::ChiefMessage, Uuid::random(), None, "of no lease of ours");
    scene.send(&third);
    scene.taken(&third).await;
    assert!(scene.stands(&reply));

    // Healed: the ask is cleared under the same instance, the file goes, nothing is there twice.
    unblock(&record_file, &record_aside);
    scene.taken(&reply).await;
    let after = scene.record().unwrap();
    assert_eq!((after.pending_ask, after.instance), (None, before.instance));
    assert_eq!(scene.delivered(), [reply.id.to_string()]);
    let entry = scene.entries("custom_message").remove(0);
    assert_eq!(entry["customType"], "pi-herdsman-chief_reply");
    assert_eq!(entry["content"], format!("From chief {CHIEF} to lead {LEAD}: Rotate them.\nSilently."));
    let details = json!({"id": reply.id.to_string(), "leaseId": chief.lease.id().to_string(),
                         "leadSessionId": LEAD, "askId": ask.to_string()});
    assert_eq!(entry["details"], details);
    let states: Vec<bool> =
        scene.entries("custom").iter().map(|entry| entry["data"].get("pendingAsk").is_some()).collect();
    assert_eq!(states, [false, true, false], "opened, asked, cleared; each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_the_chiefs_is_removed_unread() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let _lead = scene.lead();
    let before = scene.asked().await;
    let (lease, ask) = (chief.lease.id(), before.pending_ask.clone().map(|ask| ask.ask));
    let right = message(Kind::ChiefReply, lease, ask, "no");
    let elsewhere = session("another");
    let fresh = |(what, message)| (what, Message { id: Uuid::random(), ..message });
    let wrong = [
        ("another lease", Message { lease: Uuid::random(), ..right.clone() }),
        ("another ask", Message { ask: Some(Uuid::random()), ..right.clone() }),
        ("another sender", Message { from: elsewhere.clone(), ..right.clone() }),
        ("another lead", Message { lead: elsewhere.clone(), ..right.clone() }),
        ("a message of a lead", Message { kind: Kind::LeadMessage, ask: None, ..right.clone() }),
        ("an ask", Message { kind: Kind::LeadAsk, ..right.clone() }),
        ("a peer's", Message { kind: Kind::PeerMessage, ask: None, ..right.clone() }),
        ("a message under another lease", {
            Message { kind: Kind::ChiefMessage, ask: None, lease: Uuid::random(), ..right.clone() }
        }),
    ]
    .map(fresh);
    for (_, wrong) in &wrong {
        scene.send(wrong);
    }
    // Addressed to another, in this lead's inbox.
    let stray = Message { id: Uuid::random(), to: elsewhere, ..right.clone() };
    inbox::publish(scene.agent_dir.path(), &scene.runtime.inbox(&session(LEAD)), &stray).unwrap();
    scene.taken(&stray).await;
    for (what, wrong) in &wrong {
        scene.taken(wrong).await;
        assert!(!scene.delivered().contains(&wrong.id.to_string()), "{what}");
    }
    assert_eq!(scene.record().unwrap(), before);
    assert!(scene.delivered().is_empty());
    // The right ones are taken all the same, a message beside the ask as well as the reply.
    let told = Message { id: Uuid::random(), kind: Kind::ChiefMessage, ask: None, ..right.clone() };
    scene.send(&told);
    scene.taken(&told).await;
    assert_eq!(scene.record().unwrap(), before);
    scene.send(&right);
    scene.taken(&right).await;
    assert_eq!(scene.delivered(), [told.id.to_string(), right.id.to_string()]);
    assert_eq!(scene.record().unwrap().pending_ask, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_under_a_lease_that_ended_is_kept_until_another_chief_stands() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let _lead = scene.lead();
    let ask = scene.asked().await.pending_ask.map(|ask| ask.ask);
    // Verified once, so that only lease and descriptor count from here on.
    let told = message(Kind::ChiefMessage, chief.lease.id(), None, "Hello.");
    scene.send(&told);
    scene.taken(&told).await;

    let old = message(Kind::ChiefReply, chief.lease.id(), ask, "Under the old lease.");
    chief.lease.release().unwrap();
    scene.send(&old);
    // Malformed ones can be told without a Chief, but while none stands nothing at all is removed.
    let inbox = scene.runtime.inbox(&session(LEAD));
    let malformed = inbox.message(Uuid::random());
    std::fs::write(&malformed, "{").unwrap();
    // It looks twice a second; that it leaves something alone shows in nothing but time.
    let end = Instant::now() + Duration::from_millis(1_600);
    while Instant::now() < end {
        assert!(scene.stands(&old) && malformed.exists());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let lease = scene.claim(CHIEF);
    scene.taken(&old).await;
    until("the malformed one goes as well", async || !malformed.exists()).await;
    assert_eq!(scene.delivered(), [told.id.to_string()], "the old one was discarded");
    let new = message(Kind::ChiefReply, lease.id(), ask, "Under the new one.");
    scene.send(&new);
    scene.taken(&new).await;
    assert_eq!(scene.delivered(), [told.id.to_string(), new.id.to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_that_was_killed_comes_back_with_its_ask_and_inbox_under_a_fresh_instance() {
    let scene = Scene::new().await;
    let mut lead = scene.lead();
    let before = scene.asked().await;
    lead.0.kill().unwrap();
    lead.0.wait().unwrap();
    // Nothing was withdrawn, but nobody takes it for present.
    assert_eq!(scene.record().unwrap(), before);
    assert!(matches!(records::read_peer(&scene.runtime, &session(LEAD)), Err(RecordError::Unclaimed(_))));
    let chief = scene.chief().await;
    let ask = before.pending_ask.as_ref().map(|ask| ask.ask);
    let reply = message(Kind::ChiefReply, chief.lease.id(), ask, "While you were away.");
    scene.send(&reply);

    let aside = scene.seat.session_file.with_extension("copy");
    std::fs::copy(&scene.seat.session_file, &aside).unwrap();
    let _lead = scene.lead();
    scene.taken(&reply).await;
    let after = scene.record().unwrap();
    assert_ne!(after.instance, before.instance);
    assert_eq!(after.pending_ask, None);
    assert_eq!(scene.delivered(), [reply.id.to_string()]);
    // It went on in the same session, with the ask as it was.
    let old = std::fs::read(&aside).unwrap();
    assert!(std::fs::read(&scene.seat.session_file).unwrap().starts_with(&old));
    let reopened = &scene.entries("custom")[2];
    assert_eq!(reopened["data"]["pendingAsk"]["askId"], ask.unwrap().to_string());
    assert_eq!(reopened["data"]["instanceId"], after.instance.to_string());
    assert!(records::read_peer(&scene.runtime, &session(LEAD)).is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_handed_over_before_the_end_clears_the_ask_and_is_not_handed_over_twice() {
    let scene = Scene::new().await;
    let chief = scene.chief().await;
    let mut lead = scene.lead();
    let ask = scene.asked().await.pending_ask.map(|ask| ask.ask);
    let reply = message(Kind::ChiefReply, chief.lease.id(), ask, "Yes.");
    // As a crash right after the hand-over leaves it: in the session, and nothing else.
    lead.0.kill().unwrap();
    lead.0.wait().unwrap();
    let last = scene.entries("custom").pop().unwrap()["id"].clone();
    let entry = json!({"type": "custom_message", "customType": "pi-herdsman-chief_reply", "content": "x",
                       "display": true, "details": {"id": reply.id.to_string()}, "id": "0badcafe",
                       "parentId": last, "timestamp": "2026-11-30T07:59:22.011Z"});
    let mut file = std::fs::OpenOptions::new().append(true).open(&scene.seat.session_file).unwrap();
    file.write_all(format!("{entry}\n").as_bytes()).unwrap();
    scene.send(&reply);
    let _lead = scene.lead();
    scene.taken(&reply).await;
    assert_eq!(scene.record().unwrap().pending_ask, None);
    assert_eq!(scene.delivered(), [reply.id.to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_its_input_withdraws_record_and_presence_and_keeps_what_is_queued() {
    let scene = Scene::new().await;
    let mut lead = scene.lead();
    scene.asked().await;
    let queued = message(Kind::ChiefMessage, Uuid::random(), None, "for later");
    scene.send(&queued);
    assert!(lead.ends_with_its_input().await.success());
    assert!(scene.record().unwrap_err().is_missing());
    assert!(!scene.runtime.peer(&session(LEAD)).exists());
    assert!(!scene.runtime.peer_lock(&session(LEAD)).exists());
    assert!(scene.stands(&queued));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_that_ends_leaves_another_instances_record_alone() {
    let scene = Scene::new().await;
    let mut lead = scene.lead();
    let record = scene.asked().await;
    let other = LeadRecord { instance: Uuid::random(), ..record };
    records::write_lead(&scene.runtime, &other).unwrap();
    lead.ends_with_its_input().await;
    assert_eq!(scene.record().unwrap(), other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_of_the_same_session_does_not_become_its_presence() {
    let scene = Scene::new().await;
    let _lead = scene.lead();
    let record = scene.asked().await;
    let peer = records::read_peer(&scene.runtime, &session(LEAD)).unwrap();
    let mut second = scene.lead();
    assert!(!second.ended().await.success());
    assert_eq!(scene.record().unwrap(), record);
    assert_eq!(records::read_peer(&scene.runtime, &session(LEAD)).unwrap(), peer);
}
