//! A simulated Herdr and directories for Chiefs and leads that are processes, or threads, of the test.

use std::path::{Path, PathBuf};

use headman::chief::journal::Journal;
use headman::chief::state_dir::{Identity, StateDir};
use headman::contract::role::Role;
use headman::contract::{NativeId, SessionId};
use headman::demo::server::Created;
use headman::disk::layout::InboxDir;
use headman::disk::{AgentDir, Runtime};
use headman::lead::{About, Opening, Place};

use crate::programs::Setting;
use crate::support::{Herdr, Program, directory_in_memory, until};

/// A Herdr that lists one Chief, whose pane's process only sleeps.
pub(crate) struct Stage {
    pub(crate) herdr: Herdr,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) chief: Created,
    /// Who resumes as Chief in every home.
    pub(crate) identity: Identity,
    /// In the Chief's pane.
    pub(crate) program: Program,
}

/// A pane in which Herdr sees a lead; its process only sleeps.
pub(crate) struct Post {
    pub(crate) pane: Created,
    pub(crate) session: SessionId,
    pub(crate) session_file: PathBuf,
    program: Program,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let herdr = Herdr::start().await;
        let chief = herdr.server.create_workspace("ops", "/tmp", None, true);
        let program = Program::hinted();
        herdr.server.attach(&chief.pane, program.pid(), true);
        let (directory, identity) = (directory_in_memory(), Identity::new(Role::Chief));
        let stage = Self { herdr, directory, chief, identity, program };
        stage.list_chief(&stage.identity).await;
        stage
    }

    /// Has Herdr list the Chief of that identity, and no other.
    pub(crate) async fn list_chief(&self, identity: &Identity) {
        let session = identity.session().as_untrusted().to_str_lossy().into_owned();
        self.list(&self.chief.pane, serde_json::json!({ "agent_session_id": session })).await;
    }

    /// A pane for the lead `session`, whose session file may come to be later.
    pub(crate) fn post(&self, session: &str) -> Post {
        let pane = self.herdr.server.create_workspace("api", "/tmp", None, false);
        let program = Program::hinted();
        self.herdr.server.attach(&pane.pane, program.pid(), true);
        let session_file = self.directory.path().join(format!("{session}.jsonl"));
        Post { pane, session: SessionId::new(session).unwrap(), session_file, program }
    }

    /// Has Herdr list the lead there, by its session file.
    pub(crate) async fn list_lead(&self, post: &Post) {
        self.herdr.server.attach(&post.pane.pane, post.program.pid(), true);
        self.list(&post.pane.pane, serde_json::json!({ "agent_session_path": post.session_file })).await;
    }

    /// Reports a Pi on `pane` until Herdr lists it.
    async fn list(&self, pane: &str, session: serde_json::Value) {
        let client = self.herdr.client();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        for (method, seq) in [("pane.report_agent_session", 1), ("pane.report_agent", 2)] {
            let mut params = serde_json::json!({"pane_id": pane, "source": "herdr:pi", "agent": "pi",
                "state": "idle", "seq": u64::try_from(now).unwrap() + seq});
            params.as_object_mut().unwrap().extend(session.as_object().unwrap().clone());
            client.request(method, params).await.unwrap();
        }
        let wanted = session.as_object().unwrap().values().next().unwrap().as_str().unwrap();
        until("it is listed", async || {
            let (agents, _) = client.agent_list().await.unwrap();
            agents.iter().any(|agent| {
                agent.pane_id == *pane
                    && agent.agent_session.as_ref().is_some_and(|session| session.value == wanted)
            })
        })
        .await;
    }

    /// Of a Chief at home there, where `registers` says whether it has itself listed.
    pub(crate) fn chief_setting(&self, home: &Path, registers: bool) -> Setting {
        Setting {
            socket: self.herdr.socket.clone(),
            agent_dir: home.join("agent"),
            state: home.join("state"),
            pane: self.chief.pane.clone(),
            tab: self.chief.tab.clone(),
            workspace: self.chief.workspace.clone(),
            registers,
            session: String::new(),
        }
    }

    /// Of a lead at that post.
    pub(crate) fn lead_setting(&self, home: &Path, post: &Post) -> Setting {
        Setting {
            state: post.session_file.clone(),
            pane: post.pane.pane.clone(),
            tab: post.pane.tab.clone(),
            workspace: post.pane.workspace.clone(),
            session: post.session.as_untrusted().to_str_lossy().into_owned(),
            ..self.chief_setting(home, false)
        }
    }

    /// The same for one in this process.
    pub(crate) fn opening(&self, home: &Path, post: &Post) -> Opening {
        let native = |id: &str| NativeId::new(id).unwrap();
        Opening {
            agent_dir: self.agent_dir(home),
            socket: self.herdr.socket.clone().into(),
            place: Place {
                pane: native(&post.pane.pane),
                tab: native(&post.pane.tab),
                workspace: native(&post.pane.workspace),
            },
            about: About::default(),
        }
    }

    /// A home in which the next start resumes as Chief.
    pub(crate) fn home(&self, name: &str) -> PathBuf {
        let home = self.directory.path().join(name);
        std::fs::create_dir(&home).unwrap();
        self.state(&home).write_identity(&self.identity).unwrap();
        home
    }

    pub(crate) fn state(&self, home: &Path) -> StateDir {
        StateDir::open(&home.join("state"), self.herdr.socket.as_os_str()).unwrap()
    }

    pub(crate) fn agent_dir(&self, home: &Path) -> AgentDir {
        AgentDir::resolve(Some(home.join("agent").as_os_str()), Path::new("/"))
    }

    pub(crate) fn runtime(&self, home: &Path) -> Runtime {
        self.agent_dir(home).runtime(self.herdr.socket.as_os_str())
    }

    pub(crate) fn our_inbox(&self, home: &Path) -> InboxDir {
        self.runtime(home).inbox(&self.identity.session())
    }

    pub(crate) fn journal(&self, home: &Path) -> Journal {
        Journal::open(&self.state(home).journal()).unwrap()
    }
}
