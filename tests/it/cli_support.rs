//! The real binary in a world of its own: its environment is scrubbed, its Herdr simulated.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use headman::contract::{LeadRecord, PendingAsk, SessionId, Timestamp, Uuid};
use headman::demo::server::{Checkout, Server};
use headman::disk::{AgentDir, Runtime, durable, records};
use headman::herdr::client::AgentReport;
use headman::herdr::{Client, Status};
use serde_json::Value;

/// Whatever takes longer has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// What a run of the binary left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout.clone()).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr.clone()).expect("UTF-8 on stderr"),
        }
    }

    /// Its one line of JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Nothing in it drives a terminal or hides.
    pub(crate) fn assert_harmless(&self) {
        for text in [&self.stdout, &self.stderr] {
            let bad = text.chars().find(|it| {
                (it.is_control() && *it != '\n')
                    || matches!(it, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}')
            });
            assert_eq!(bad, None, "{text:?}");
            assert!(!text.contains(&"\u{301}".repeat(9)), "a tower of marks: {text:?}");
        }
    }
}

/// A directory with nothing in it, and the binary in it.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    vars: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("hm").tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        Self { dir, vars: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The agent directory of the home in it.
    pub(crate) fn agent_dir(&self) -> AgentDir {
        AgentDir::resolve(None, &self.path("home"))
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.path("home/.local/state/headman")
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.vars.push((name.to_owned(), value.into()));
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headman"));
        // Nothing of the caller's: no HOME, XDG_*, PI_*, HERDR_* or TMUX.
        command.env_clear().current_dir(self.dir.path()).args(arguments);
        command.env("HOME", self.path("home")).env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // It may have refused before it read everything.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        Ran::of(&child.wait_with_output().unwrap())
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Everything in it: kind, mode, owner, size, times and content.
    pub(crate) fn picture(&self) -> BTreeMap<PathBuf, String> {
        let mut picture = BTreeMap::new();
        let mut pending = vec![self.dir.path().to_owned()];
        while let Some(path) = pending.pop() {
            let found = std::fs::symlink_metadata(&path).unwrap();
            let content = if found.is_file() { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
            picture.insert(
                path.clone(),
                format!(
                    "{:o} {} {} {}.{} {}",
                    found.mode(),
                    found.uid(),
                    found.ino(),
                    found.mtime(),
                    found.mtime_nsec(),
                    headman::contract::text::sha256_hex(&content)
                ),
            );
            if found.is_dir() {
                pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        picture
    }
}

/// A simulated Herdr with Pi agents in it, and their records.
pub(crate) struct Herd {
    pub(crate) place: Place,
    pub(crate) server: Server,
    tokio: tokio::runtime::Runtime,
    programs: Vec<Child>,
    seq: u64,
}

impl Herd {
    pub(crate) fn new() -> Self {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut place = Place::new();
        let socket = place.path("herdr.sock");
        let server = tokio.block_on(Server::start(&socket)).unwrap();
        place.set("HERDR_SOCKET_PATH", socket.to_str().unwrap());
        Self { place, server, tokio, programs: Vec::new(), seq: 1 }
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.place.agent_dir().runtime(self.server.socket().as_os_str())
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.tokio.block_on(future)
    }

    /// A pane in which a Pi with the session `session` runs; its pane.
    pub(crate) fn agent(&mut self, session: &str, label: &str, branch: Option<&str>) -> String {
        let checkout = branch.map(|branch| Checkout {
            repo_name: label.to_owned(),
            repo_root: format!("/r/{label}"),
            path: format!("/r/{label}"),
            branch: branch.to_owned(),
            is_linked: false,
        });
        let cwd = checkout.as_ref().map_or_else(|| "/tmp".to_owned(), |it| it.path.clone());
        let created = self.server.create_workspace(label, &cwd, checkout, false);
        let program = Command::new("sleep").arg("600").env("HERDR_AGENT", "pi").spawn().unwrap();
        self.server.attach(&created.pane, program.id(), true);
        self.programs.push(program);
        let client = Client::new(self.server.socket().to_owned());
        let started = Instant::now();
        loop {
            self.seq += 2;
            let report = AgentReport {
                pane: &created.pane,
                source: "herdr:pi",
                agent: "pi",
                state: Status::Working,
                seq: self.seq,
                session: Some(session),
            };
            let listed = self.tokio.block_on(async {
                client.report_agent_session(report).await.unwrap();
                client.report_agent(AgentReport { seq: report.seq + 1, ..report }).await.unwrap();
                let (agents, _) = client.agent_list().await.unwrap();
                agents.iter().any(|it| it.agent_session.as_ref().is_some_and(|it| it.value == session))
            });
            if listed {
                return created.pane;
            }
            assert!(started.elapsed() < DEADLINE, "Herdr does not list {session}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Publishes the lead record of `session`.
    pub(crate) fn record(&self, session: &str, ask: Option<(Uuid, &str)>) -> LeadRecord {
        let record = LeadRecord {
            instance: Uuid::random(),
            session: SessionId::new(session).unwrap(),
            pending_ask: ask.map(|(ask, question)| PendingAsk {
                ask,
                question: question.into(),
                text: question.into(),
            }),
            updated_at: Timestamp::from_millis(1_700_000_000_000),
        };
        self.write(&record);
        record
    }

    pub(crate) fn write(&self, record: &LeadRecord) {
        let runtime = self.runtime();
        durable::ensure_directories(&self.place.path("home"), &runtime.leads()).unwrap();
        records::write_lead(&runtime, record).unwrap();
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // It may have ended already.
            let _ = program.kill();
            let _ = program.wait();
        }
        // The server's tasks need their runtime to end.
        let _guard = self.tokio.enter();
    }
}

/// Waits for `condition`.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The runtime of another spelling of the socket.
pub(crate) fn runtime_of(agent_dir: &AgentDir, socket: &str) -> Runtime {
    agent_dir.runtime(OsStr::new(socket))
}

/// Where a lead's record stands.
pub(crate) fn record_path(runtime: &Runtime, session: &str) -> PathBuf {
    runtime.lead(&SessionId::new(session).unwrap())
}

/// Sets a mode.
pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}
