//! What the projection is made from, and its JSON form as `headman roster --evidence` takes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::json::{Document, Json, NotJson};
use crate::contract::{LeadRecord, SessionId, Untrusted};

/// What a lead or a managed agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum State {
    /// A turn runs.
    Working,
    /// It waits for someone.
    Blocked,
    /// Its last result or request is not taken yet.
    Settling,
    /// It is being launched; only its owner sees that.
    Starting,
    /// It waits for a prompt.
    Idle,
    /// The same, and nobody has looked since it finished.
    Done,
    /// Nothing certain is known.
    #[default]
    Unknown,
    /// Its pane is gone.
    Lost,
}

impl State {
    const ALL: [Self; 8] = [
        State::Working,
        State::Blocked,
        State::Settling,
        State::Starting,
        State::Idle,
        State::Done,
        State::Unknown,
        State::Lost,
    ];

    /// Its name in records and output.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Working => "working",
            State::Blocked => "blocked",
            State::Settling => "settling",
            State::Starting => "starting",
            State::Idle => "idle",
            State::Done => "done",
            State::Unknown => "unknown",
            State::Lost => "lost",
        }
    }

    /// By its name; any other is [`State::Unknown`].
    pub fn parse(name: &Untrusted) -> Self {
        Self::ALL.into_iter().find(|state| name == state.as_str()).unwrap_or_default()
    }

    /// A live agent's `agent_status` in Herdr. Only four of the states are Herdr's to say: anything
    /// else, nothing included, is [`State::Unknown`].
    pub fn of_lifecycle(status: Option<&Untrusted>) -> Self {
        match status.map(Self::parse) {
            Some(state @ (State::Idle | State::Working | State::Blocked | State::Done)) => state,
            _ => State::Unknown,
        }
    }

    /// Whether a managed agent in this state counts as active.
    pub fn is_active(self) -> bool {
        matches!(self, State::Working | State::Settling | State::Starting)
    }
}

/// Which session a live agent runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSession {
    /// This one: as Herdr gave it, or as the header of its session file says. Not yet checked.
    Known(Untrusted),
    /// It could not be found out; the text says why, names no path and is safe to print.
    Unknown(String),
}

/// A Pi agent that Herdr shows, whatever else it turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveAgent {
    /// Its session.
    pub session: AgentSession,
    /// Its workspace's id, not yet checked, as the next two.
    pub workspace: Option<Untrusted>,
    /// Its tab's id.
    pub tab: Option<Untrusted>,
    /// Its pane's id.
    pub pane: Option<Untrusted>,
    /// What it does.
    pub state: State,
    /// Its metadata token `pi_herdsman_name`.
    pub token_name: Option<Untrusted>,
    /// What its session file calls it.
    pub session_name: Option<Untrusted>,
    /// What Herdr calls it.
    pub herdr_name: Option<Untrusted>,
    /// Its tab's label, where it says more than the tab's number ([`super::order::tab_label`]).
    pub tab_label: Option<Untrusted>,
    /// Its working directory.
    pub cwd: Option<Untrusted>,
    /// The same, links followed, where that was found out.
    pub real_cwd: Option<Untrusted>,
    /// Its session file.
    pub session_file: Option<Untrusted>,
}

impl LiveAgent {
    /// An agent of which nothing but its session is known.
    pub fn new(session: AgentSession) -> Self {
        Self {
            session,
            workspace: None,
            tab: None,
            pane: None,
            state: State::Unknown,
            token_name: None,
            session_name: None,
            herdr_name: None,
            tab_label: None,
            cwd: None,
            real_cwd: None,
            session_file: None,
        }
    }

    fn from_json(value: Json<'_>) -> Self {
        let members = Object::lenient(value);
        let session = match members.text("sessionId") {
            Some(session) if members.text("sessionKind").is_some_and(|kind| kind == "id") => {
                AgentSession::Known(session)
            }
            Some(_) => AgentSession::Unknown("the evidence gives no session id for it".to_owned()),
            None => AgentSession::Unknown("the evidence gives no session for it".to_owned()),
        };
        Self {
            session,
            workspace: members.text("workspaceId"),
            tab: members.text("tabId"),
            pane: members.text("paneId"),
            state: members.text("runtimeState").map_or(State::Unknown, |state| State::parse(&state)),
            token_name: (members.get("tokens"))
                .and_then(|tokens| Object::lenient(tokens).text("pi_herdsman_name")),
            session_name: members.text("sessionName"),
            herdr_name: members.text("herdrName"),
            tab_label: members.text("tabLabel"),
            cwd: members.text("workspaceCwd"),
            real_cwd: None,
            session_file: members.text("piSessionFile").filter(|file| !file.is_empty()),
        }
    }
}

/// A lead record that could not be judged valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnreadableRecord {
    /// *sha256(session)*, its file's name without the ending, where it is known.
    pub hash: Option<String>,
    /// Why; safe to print, without a path.
    pub why: String,
}

/// An agent that some session owns, judged from its mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedAgent {
    /// Its own session, which is its id.
    pub session: SessionId,
    /// The lead or managed agent that owns it.
    pub owner: SessionId,
    /// What its owner calls it; an empty label stays.
    pub label: Option<Untrusted>,
    /// Its workspace, where known.
    pub workspace: Option<Untrusted>,
    /// Its pane, where known.
    pub pane: Option<Untrusted>,
    /// What it does.
    pub state: State,
}

impl ManagedAgent {
    fn from_json(value: Json<'_>) -> Result<Self, String> {
        let members = Object::lenient(value);
        let session = |key: &str| {
            (members.text(key))
                .and_then(SessionId::new)
                .ok_or_else(|| format!("it has no session of 1–512 UTF-16 units as {key}"))
        };
        Ok(Self {
            session: session("piSessionId")?,
            owner: session("ownerSessionId")?,
            label: members.text("agentLabel"),
            workspace: members.text("workspaceId"),
            pane: members.text("paneId"),
            state: members.text("runtimeState").map_or(State::Unknown, |state| State::parse(&state)),
        })
    }
}

/// A mailbox, or evidence of a managed agent, that is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BrokenMailbox {
    /// Its directory's name, where it is known.
    pub directory: Option<String>,
    /// Why; safe to print, without a path.
    pub why: String,
}

/// Where a workspace's files come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    /// The repository's name.
    pub repo: Option<Untrusted>,
    /// The branch checked out.
    pub branch: Option<Untrusted>,
    /// The workspace's label in Herdr.
    pub label: Option<Untrusted>,
    /// The workspace's directory.
    pub cwd: Option<Untrusted>,
}

/// Everything one projection is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Live Pi agents.
    pub agents: Vec<LiveAgent>,
    /// Agents that are owned, in the order in which they shall be listed.
    pub managed: Vec<ManagedAgent>,
    /// Sessions that stand in any mailbox: never leads, whatever else they show.
    pub managed_session_ids: BTreeSet<Untrusted>,
    /// Valid lead records.
    pub leads: Vec<LeadRecord>,
    /// Lead records that are there and not valid.
    pub unreadable_leads: Vec<UnreadableRecord>,
    /// Mailboxes that are there and not valid.
    pub broken_mailboxes: Vec<BrokenMailbox>,
    /// By workspace id.
    pub provenance: BTreeMap<Untrusted, Provenance>,
    /// The Chief's own session.
    pub chief_session: Option<SessionId>,
}

/// Why a text is no evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// It is no JSON text.
    #[error("the evidence is {0}")]
    NotJson(#[from] NotJson),
    /// It is no object.
    #[error("the evidence is not a JSON object")]
    NotObject,
    /// One of its members is of another type.
    #[error("in the evidence {key} is not {expected}")]
    Malformed {
        /// The member.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

impl EvidenceError {
    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "Give one JSON object, as captured",
            Self::NotObject => "Give one object with agents and coordinationStates",
            Self::Malformed { .. } => "Correct it or leave it out",
        }
    }
}

impl Evidence {
    /// Reads the JSON form: `agents`, `managedAgents`, `managedAgentSessionIds`,
    /// `coordinationStates`, `workspaceProvenance`, `chiefSessionId`, each of them optional.
    ///
    /// A broken entry of a list does not break the whole: it is kept as what it is, so that the
    /// projection names it. Lead records are judged as their files would be.
    pub fn from_json(bytes: &[u8]) -> Result<Self, EvidenceError> {
        let document = Document::decode(bytes);
        let Some(members) = Object::of(document.value()?) else { return Err(EvidenceError::NotObject) };
        let mut evidence = Self::default();
        for agent in members.list("agents")? {
            evidence.agents.push(LiveAgent::from_json(agent));
        }
        for agent in members.list("managedAgents")? {
            match ManagedAgent::from_json(agent) {
                Ok(agent) => evidence.managed.push(agent),
                Err(why) => evidence.broken_mailboxes.push(BrokenMailbox { directory: None, why }),
            }
        }
        for session in members.list("managedAgentSessionIds")? {
            let session = session.string().ok_or(EvidenceError::Malformed {
                key: "managedAgentSessionIds",
                expected: "a list of strings",
            })?;
            evidence.managed_session_ids.insert(session);
        }
        for record in members.list("coordinationStates")? {
            match lead_record(record) {
                Ok(record) => evidence.leads.push(record),
                Err(unreadable) => evidence.unreadable_leads.push(unreadable),
            }
        }
        if let Some(value) = members.get("workspaceProvenance") {
            let workspaces = value.object().ok_or(EvidenceError::Malformed {
                key: "workspaceProvenance",
                expected: "an object of objects",
            })?;
            // One that says nothing stands in the way of the agent's directory; `null` does not.
            for (workspace, value) in workspaces.into_iter().filter(|(_, value)| !value.is_null()) {
                let members = Object::lenient(value);
                let provenance = Provenance {
                    repo: members.text("repoName"),
                    branch: members.text("branch"),
                    label: members.text("workspaceLabel"),
                    cwd: members.text("workspaceCwd"),
                };
                evidence.provenance.insert(workspace, provenance);
            }
        }
        if let Some(value) = members.get("chiefSessionId") {
            let session = value.string().and_then(SessionId::new).ok_or(EvidenceError::Malformed {
                key: "chiefSessionId",
                expected: "a session of 1–512 UTF-16 units",
            })?;
            evidence.chief_session = Some(session);
        }
        Ok(evidence)
    }
}

fn lead_record(value: Json<'_>) -> Result<LeadRecord, UnreadableRecord> {
    let named = Object::lenient(value).text("piSessionId");
    let hash = named.as_ref().map(Untrusted::sha256_hex);
    match named.and_then(SessionId::new) {
        Some(session) => LeadRecord::parse(value.raw().as_bytes(), &session)
            .map_err(|invalid| UnreadableRecord { hash, why: invalid.to_string() }),
        None => Err(UnreadableRecord { hash, why: "the lead record names no session".to_owned() }),
    }
}

/// The members of an object; `null` is as good as absent.
struct Object<'a>(Vec<(Untrusted, Json<'a>)>);

impl<'a> Object<'a> {
    fn of(value: Json<'a>) -> Option<Self> {
        value.object().map(Self)
    }

    /// What is no object has no members.
    fn lenient(value: Json<'a>) -> Self {
        Self(value.object().unwrap_or_default())
    }

    fn get(&self, key: &str) -> Option<Json<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Option<Untrusted> {
        self.get(key)?.string()
    }

    fn list(&self, key: &'static str) -> Result<Vec<Json<'a>>, EvidenceError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(value) => value.array().ok_or(EvidenceError::Malformed { key, expected: "a list" }),
        }
    }
}
