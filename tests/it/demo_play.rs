//! What the demo's leads do with each other and with the Chief: everything the console has a screen
//! for happens.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use headman::chief::staff::Office;
use headman::contract::{Claim, Descriptor, Kind, Message, Pid, SessionId, Timestamp, Uuid};
use headman::demo::{Options, World};
use headman::disk::inbox::{self, Content};
use headman::disk::{ProcessLock, records};
use headman::herd::Roster;
use headman::herdr::client::AgentReport;
use headman::herdr::{Client, Status};
use serde_json::Value;

use crate::support::{Program, until};

const CHIEF: &str = "0a8b4f0e-5d5a-4c63-9a55-1d6a0f6e2b22";

/// A herd, and a Chief on its console's pane who reads nothing.
struct Play {
    world: World,
    client: Client,
    office: Office,
    // Before the directory it is in.
    _lock: ProcessLock,
    _console: Program,
    _directory: tempfile::TempDir,
}

impl Play {
    async fn begin(speed: f64, seed: u64) -> Self {
        let directory = tempfile::Builder::new().prefix("hm-").tempdir_in("/tmp").unwrap();
        let options = Options {
            dir: Some(directory.path().join("d")),
            program: Some(env!("CARGO_BIN_EXE_headman").into()),
            speed,
            seed,
            ..Options::default()
        };
        let world = World::start(&options).await.unwrap();
        let socket = world.server().socket().to_owned();
        let runtime = world.agent_dir().runtime(socket.as_os_str());
        let console = Program::hinted();
        let claim = Claim { pid: Pid::from_number(f64::from(console.pid())).unwrap(), id: Uuid::random() };
        headman::disk::durable::ensure_directories(world.agent_dir().path(), runtime.root()).unwrap();
        let lock = ProcessLock::acquire(&runtime.lock(), claim, &|_| false).unwrap();
        let place = world.console().clone();
        let chief = SessionId::new(CHIEF).unwrap();
        let descriptor = Descriptor {
            lease: Uuid::random(),
            claim,
            session: chief.clone(),
            pane: place.pane.as_str().into(),
            tab: Some(place.tab.as_str().into()),
            workspace: place.workspace.as_str().into(),
            created_at: Timestamp::from_millis(1),
        };
        records::write_descriptor(&runtime, &descriptor).unwrap();
        let client = Client::new(socket).with_timeout(std::time::Duration::from_secs(10));
        let report = AgentReport {
            pane: &place.pane,
            source: "herdr:pi",
            agent: "pi",
            state: Status::Idle,
            seq: 1,
            session: Some(CHIEF),
        };
        client.report_agent(report).await.unwrap();
        let office = Office::new(world.agent_dir().clone(), runtime, chief, Instant::now());
        Self { world, client, office, _lock: lock, _console: console, _directory: directory }
    }

    async fn roster(&self) -> Roster {
        self.office.roster(&self.client.snapshot().await.unwrap()).unwrap()
    }

    /// What leads sent to the Chief so far.
    fn came_up(&self) -> Vec<Message> {
        let inbox = self.office.runtime().inbox(self.office.session());
        let entries = inbox::list(&inbox).unwrap_or_default();
        entries
            .into_iter()
            .filter_map(|entry| match entry.content {
                Content::Valid(message) => Some(*message),
                _ => None,
            })
            .collect()
    }

    /// The session files of the leads, by name.
    async fn sessions(&self) -> BTreeMap<String, PathBuf> {
        let file = |lead: &headman::herd::Lead| {
            let file = lead.session_file.as_ref().unwrap().to_str_lossy().into_owned();
            (lead.name.to_str_lossy().into_owned(), PathBuf::from(file))
        };
        self.roster().await.leads.iter().map(file).collect()
    }
}

fn entries(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The last one may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What peers wrote into a session, in order.
fn from_peers(file: &std::path::Path) -> Vec<String> {
    let is_from_peer = |entry: &Value| entry["customType"] == "pi-herdsman-peer_message";
    let content = |entry: Value| entry["content"].as_str().unwrap().to_owned();
    entries(file).into_iter().filter(is_from_peer).map(content).collect()
}

/// How often running the same tool was called in the same way with the same result.
fn longest_loop(file: &std::path::Path) -> usize {
    let (mut longest, mut running, mut last) = (0, 0, None);
    let mut call = Value::Null;
    for entry in entries(file) {
        let message = &entry["message"];
        match message["role"].as_str() {
            Some("assistant") => {
                let blocks = message["content"].as_array().unwrap();
                let block = blocks.iter().find(|block| block["type"] == "toolCall");
                call = block.map_or(Value::Null, |block| block["arguments"].clone());
            }
            Some("toolResult") => {
                let round = Some((call.clone(), message["content"].clone(), message["isError"].clone()));
                running = if round == last { running + 1 } else { 1 };
                longest = longest.max(running);
                last = round;
            }
            _ => {}
        }
    }
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_write_to_each_other_and_up_loop_and_lose_an_agent() {
    let play = Play::begin(30.0, 1).await;
    until("all leads are there", async || play.roster().await.leads.len() == 7).await;
    let sessions = play.sessions().await;
    // From the very beginning, for whoever looks for it.
    assert!(longest_loop(&sessions["flaky-tests"]) >= 3);
    assert!(longest_loop(&sessions["auth-rewrite"]) < 3);
    // What peers write waits until their turn ends, and is answered where it asks something.
    let peers = play.office.runtime().peer_inboxes();
    let queued = || {
        let inboxes = std::fs::read_dir(&peers).into_iter().flatten();
        let files = inboxes.flat_map(|inbox| std::fs::read_dir(inbox.unwrap().path()).into_iter().flatten());
        files.into_iter().any(|file| file.unwrap().path().extension().is_some_and(|it| it == "json"))
    };
    until("something is queued for a peer", async || queued()).await;
    until("the question is answered", async || {
        from_peers(&sessions["auth-rewrite"]).iter().any(|text| text.ends_with("touch src/orders?"))
            && from_peers(&sessions["flaky-tests"]).iter().any(|text| text.contains("I only touch src/auth"))
    })
    .await;
    until("messages with files came up", async || {
        let told: Vec<String> = play
            .came_up()
            .iter()
            .filter(|message| message.kind == Kind::LeadMessage)
            .map(|message| message.text.to_str_lossy().into_owned())
            .collect();
        told.iter().any(|text| text.contains("/reports/march.csv\" bytes=\"228000\" />\n\nMessage:\n"))
            && told.iter().any(|text| text.contains("/plan.txt\" bytes=\"") && text.contains("</file>"))
    })
    .await;
    until("an agent dies", async || {
        let roster = play.roster().await;
        let mut agents = roster.leads.iter().flat_map(|lead| &lead.agents);
        agents.any(|agent| agent.label == "browser" && agent.state.as_str() == "lost")
    })
    .await;
    assert!(play.world.trouble().borrow().is_empty(), "{:?}", play.world.trouble().borrow());
    play.world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_seed_makes_the_same_herd() {
    let names = async |seed| {
        let play = Play::begin(0.0, seed).await;
        until("all leads are there", async || play.roster().await.leads.len() == 7).await;
        let mut told = Vec::new();
        for (name, file) in play.sessions().await {
            // All but what the time makes of it.
            told.extend(entries(&file).iter().filter(|entry| entry["type"] != "session").map(|entry| {
                let message = &entry["message"];
                format!(
                    "{name} {} {} {} {} {}",
                    entry["id"], entry["type"], message["content"], message["usage"], message["durationMs"]
                )
            }));
        }
        play.world.end().await;
        told
    };
    let first = names(5).await;
    assert!(first.len() > 40, "{first:?}");
    assert_eq!(first, names(5).await);
    assert_ne!(first, names(6).await);
}
