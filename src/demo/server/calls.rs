//! Requests as they come in. What does not fit these shapes is refused before its id is known.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One request.
#[derive(Deserialize)]
pub(super) struct Request {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) method: Method,
}

/// Its method with its parameters.
#[derive(Deserialize)]
#[serde(tag = "method", content = "params")]
pub(super) enum Method {
    #[serde(rename = "ping")]
    Ping(Nothing),
    #[serde(rename = "session.snapshot")]
    SessionSnapshot(Nothing),
    #[serde(rename = "workspace.list")]
    WorkspaceList(Nothing),
    #[serde(rename = "workspace.get")]
    WorkspaceGet(OfWorkspace),
    #[serde(rename = "tab.list")]
    TabList(InWorkspace),
    #[serde(rename = "tab.get")]
    TabGet(OfTab),
    #[serde(rename = "pane.list")]
    PaneList(InWorkspace),
    #[serde(rename = "pane.get")]
    PaneGet(OfPane),
    #[serde(rename = "pane.read")]
    PaneRead(Read),
    #[serde(rename = "pane.process_info")]
    PaneProcessInfo(OfPane),
    #[serde(rename = "pane.focus")]
    PaneFocus(OfPane),
    #[serde(rename = "pane.report_agent")]
    PaneReportAgent(Agent),
    #[serde(rename = "pane.report_agent_session")]
    PaneReportAgentSession(AgentSession),
    #[serde(rename = "pane.report_metadata")]
    PaneReportMetadata(Metadata),
    #[serde(rename = "pane.clear_agent_authority")]
    PaneClearAgentAuthority(Clear),
    #[serde(rename = "pane.release_agent")]
    PaneReleaseAgent(Release),
    #[serde(rename = "agent.list")]
    AgentList(Nothing),
    #[serde(rename = "agent.get")]
    AgentGet(Target),
    #[serde(rename = "worktree.list")]
    WorktreeList(OfCheckout),
    #[serde(rename = "events.subscribe")]
    EventsSubscribe(Subscribe),
    #[serde(rename = "notification.show")]
    NotificationShow(Notification),
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

#[derive(Deserialize)]
pub(super) struct OfWorkspace {
    pub(super) workspace_id: String,
}

#[derive(Deserialize)]
pub(super) struct InWorkspace {
    pub(super) workspace_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct OfTab {
    pub(super) tab_id: String,
}

#[derive(Deserialize)]
pub(super) struct OfPane {
    pub(super) pane_id: String,
}

#[derive(Deserialize)]
pub(super) struct Target {
    pub(super) target: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Visible,
    Recent,
    RecentUnwrapped,
    Detection,
}

impl Source {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Recent => "recent",
            Self::RecentUnwrapped => "recent_unwrapped",
            Self::Detection => "detection",
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Read {
    pub(super) pane_id: String,
    pub(super) source: Source,
    pub(super) lines: Option<usize>,
    pub(super) format: Option<String>,
}

/// What can be reported; `done` is Herdr's own to say.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Idle,
    Working,
    Blocked,
    Unknown,
}

#[derive(Deserialize)]
pub(super) struct Agent {
    pub(super) pane_id: String,
    pub(super) source: String,
    pub(super) agent: String,
    pub(super) state: State,
    pub(super) seq: Option<u64>,
    pub(super) agent_session_id: Option<String>,
    pub(super) agent_session_path: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AgentSession {
    pub(super) pane_id: String,
    pub(super) source: String,
    pub(super) agent: String,
    pub(super) seq: Option<u64>,
    pub(super) agent_session_id: Option<String>,
    pub(super) agent_session_path: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) pane_id: String,
    pub(super) source: String,
    pub(super) seq: Option<u64>,
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) clear_title: bool,
    pub(super) display_agent: Option<String>,
    #[serde(default)]
    pub(super) clear_display_agent: bool,
    pub(super) state_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) clear_state_labels: bool,
    pub(super) tokens: Option<BTreeMap<String, Option<String>>>,
    pub(super) ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Clear {
    pub(super) pane_id: String,
    pub(super) source: Option<String>,
    pub(super) seq: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Release {
    pub(super) pane_id: String,
    pub(super) source: String,
    pub(super) seq: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OfCheckout {
    pub(super) workspace_id: Option<String>,
    pub(super) cwd: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Subscribe {
    pub(super) subscriptions: Vec<Subscription>,
}

#[derive(Deserialize)]
pub(super) struct Subscription {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) pane_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Notification {
    pub(super) title: String,
}
