//! A Herdr, a Chief and leads that `headman lead open` holds open, for the tests of both.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headman::chief::lease::{Lease, LeaseError, Place};
use headman::contract::{Kind, LeadRecord, Message, SessionId, Timestamp, Uuid};
use headman::demo::server::{Checkout, Created};
use headman::disk::inbox::{self, Content};
use headman::disk::records::{self, RecordError};
use headman::disk::{AgentDir, Runtime};
use headman::herdr::client::AgentReport;
use headman::herdr::{Client, Status};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{DEADLINE, Herdr, Program, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headman");
pub(crate) const CHIEF: &str = "0a8b4f0e-5d5a-4c63-9a55-1d6a0f6e2b22";
/// Not even a UUID, and with something in it that drives terminals.
pub(crate) const A: &str = "build robot \u{1b}[31m \"A\"";
pub(crate) const B: &str = "deploy-bot";

/// A Herdr with a pane for the Chief and one for each of two leads; everything below one directory.
pub(crate) struct Scene {
    pub(crate) herdr: Herdr,
    pub(crate) client: Client,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) agent_dir: AgentDir,
    pub(crate) runtime: Runtime,
    chief_pane: Created,
    pub(crate) panes: [Created; 2],
}

/// What a run of the binary left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A `headman lead open`, which ends with the test.
pub(crate) struct Open {
    pub(crate) child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    said: Arc<Mutex<String>>,
}

fn collect(stdout: ChildStdout, lines: &Arc<Mutex<Vec<Value>>>) {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let line = line.unwrap();
            assert!(!line.contains('\u{1b}'), "{line:?}");
            lines.lock().unwrap().push(serde_json::from_str(&line).unwrap());
        }
    });
}

impl Open {
    pub(crate) fn start(command: &mut Command, reads: bool) -> Self {
        let mut child = command.spawn().unwrap();
        let (lines, said) = (Arc::default(), Arc::new(Mutex::new(String::new())));
        let (errors, all) = (child.stderr.take().unwrap(), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines() {
                *all.lock().unwrap() += &format!("{}\n", line.unwrap());
            }
        });
        let mut open = Self { child, lines, said };
        if reads {
            open.read();
        }
        open
    }

    /// Reads what it prints from now on.
    pub(crate) fn read(&mut self) {
        collect(self.child.stdout.take().unwrap(), &self.lines);
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits until it has printed so many lines.
    pub(crate) async fn printed(&self, count: usize) -> Vec<Value> {
        until("lines are printed", async || self.lines().len() >= count).await;
        assert_eq!(self.lines().len(), count, "{:?}", self.lines());
        self.lines()
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) async fn says(&self, what: &str) {
        until(what, async || self.said().contains(what)).await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end: {}", self.said());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Already ended and waited for is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap())
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let herdr = Herdr::start().await;
        // In memory, where there is such: nothing here outlives a loss of power.
        let mut builder = tempfile::Builder::new();
        let directory = builder.prefix("hm").tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let agent_dir = AgentDir::resolve(Some(directory.path().join("agent").as_os_str()), directory.path());
        let runtime = agent_dir.runtime(herdr.socket.as_os_str());
        let chief_pane = herdr.server.create_workspace("ops", "/tmp", None, true);
        let checkout = Checkout {
            repo_name: "api".to_owned(),
            repo_root: "/r/api".to_owned(),
            path: "/r/api".to_owned(),
            branch: "robots".to_owned(),
            is_linked: false,
        };
        let first = herdr.server.create_workspace("api", "/r/api", Some(checkout), false);
        let second = herdr.server.create_workspace("shop", "/tmp", None, false);
        let client = herdr.client();
        Self { herdr, client, directory, agent_dir, runtime, chief_pane, panes: [first, second] }
    }

    /// The binary below `work`, outside of any pane.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .env_clear()
            .current_dir(self.directory.path().join("work"))
            .env("HOME", self.directory.path())
            .env("HERDR_SOCKET_PATH", &self.herdr.socket)
            .env("PI_CODING_AGENT_DIR", self.agent_dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// `headman lead …` for the session.
    pub(crate) fn lead(&self, verb: &str, id: &str, more: &[&str]) -> Ran {
        self.run(&[&["lead", verb, "--session", id], more].concat())
    }

    /// Opens the lead in one of the panes.
    pub(crate) fn open_in(&self, pane: &Created, id: &str, more: &[&str]) -> Open {
        let mut command = self.command(&[&["lead", "open", "--session", id], more].concat());
        command.envs(self.herdr.server.environment(&pane.pane));
        let open = Open::start(&mut command, true);
        self.herdr.server.attach(&pane.pane, open.child.id(), true);
        open
    }

    /// Opens it outside of Herdr.
    pub(crate) fn open(&self, id: &str, more: &[&str]) -> Open {
        Open::start(&mut self.command(&[&["lead", "open", "--session", id], more].concat()), true)
    }

    /// Waits until the lead is open.
    pub(crate) async fn opened(&self, id: &str) -> LeadRecord {
        until("the lead is open", async || self.record(id).is_ok() && self.is_present(id)).await;
        self.record(id).unwrap()
    }

    pub(crate) fn record(&self, id: &str) -> Result<LeadRecord, RecordError> {
        records::read_lead(&self.runtime, &session(id))
    }

    pub(crate) fn is_present(&self, id: &str) -> bool {
        records::read_peer(&self.runtime, &session(id)).is_ok()
    }

    /// Nothing of the lead is published any more.
    pub(crate) fn is_withdrawn(&self, id: &str) -> bool {
        let (id, runtime) = (session(id), &self.runtime);
        ![runtime.lead(&id), runtime.peer(&id), runtime.peer_lock(&id)].iter().any(|path| path.exists())
    }

    /// Where headman keeps the session of a lead that names no file.
    pub(crate) fn session_file(&self, id: &str) -> PathBuf {
        let leads = self.directory.path().join(".local/state/headman/leads");
        leads.join(format!("{}.jsonl", session(id).hash()))
    }

    pub(crate) fn entries(&self, id: &str, kind: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.session_file(id)).unwrap_or_default();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["type"] == kind).collect()
    }

    /// Takes the lease as a Chief that Herdr lists on its pane.
    pub(crate) async fn chief(&self) -> (Lease, Program) {
        let program = self.list_chief().await;
        (self.claim(), program)
    }

    /// Has Herdr list the Chief.
    pub(crate) async fn list_chief(&self) -> Program {
        let program = Program::hinted();
        self.herdr.server.attach(&self.chief_pane.pane, program.pid(), true);
        let report = AgentReport {
            pane: &self.chief_pane.pane,
            source: "herdr:pi",
            agent: "pi",
            state: Status::Idle,
            seq: now().as_millis() * 1_000,
            session: Some(CHIEF),
        };
        self.client.report_agent(report).await.unwrap();
        until("the Chief is listed", async || self.lists("id", CHIEF).await).await;
        program
    }

    /// Takes the lease, whatever Herdr lists.
    pub(crate) fn claim(&self) -> Lease {
        let place = Place {
            pane: self.chief_pane.pane.as_str().into(),
            tab: self.chief_pane.tab.as_str().into(),
            workspace: self.chief_pane.workspace.as_str().into(),
        };
        let sidecar = self.directory.path().join("chief.flock");
        let end = Instant::now() + DEADLINE;
        loop {
            let data_root = self.agent_dir.data_root();
            match Lease::claim(&self.runtime, &data_root, &sidecar, &session(CHIEF), &place, now()) {
                Ok(lease) => return lease,
                // A process that another test just starts still has the file of an earlier one open.
                Err(LeaseError::OwnConsole { .. }) => {
                    assert!(Instant::now() < end, "the lease is not released")
                }
                Err(error) => panic!("{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) async fn lists(&self, kind: &str, value: &str) -> bool {
        let (agents, _) = self.client.agent_list().await.unwrap();
        let names = |it: &headman::herdr::AgentSession| it.kind == kind && it.value == *value;
        agents.iter().any(|agent| agent.agent_session.as_ref().is_some_and(names))
    }

    /// Puts a message of the Chief into a lead's inbox.
    pub(crate) fn send(&self, to: &str, lease: Uuid, text: &str) -> Message {
        let message = Message {
            id: Uuid::random(),
            lease,
            kind: Kind::ChiefMessage,
            from: session(CHIEF),
            to: session(to),
            lead: session(to),
            ask: None,
            text: text.into(),
            created_at: now(),
        };
        inbox::publish(self.agent_dir.path(), &self.runtime.inbox(&message.to), &message).unwrap();
        message
    }

    pub(crate) fn stands(&self, message: &Message) -> bool {
        self.runtime.inbox(&message.to).message(message.id).exists()
    }

    /// What came up to the Chief.
    pub(crate) fn came_up(&self) -> Vec<Message> {
        let entries = inbox::list(&self.runtime.inbox(&session(CHIEF))).unwrap();
        entries
            .into_iter()
            .map(|entry| match entry.content {
                Content::Valid(message) => *message,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join("work").join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::canonicalize(path).unwrap().to_str().unwrap().to_owned()
    }
}
