//! The replies we read, after the section "Reading" of `docs/herdr.md`.
//!
//! Reading is lenient field by field: an unknown field is passed over, a field of another type than
//! expected counts as absent, of a duplicate key the last counts. Only an element without the ids it
//! is known by is left out; it is named in [`Snapshot::dropped`] and hides no other.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

pub use super::answers::{PaneRead, Pong, Process, ProcessInfo, Shown, WorktreeEntry};
use super::fields::{elements, first_elements, flag, member, members, text, text_map, whole};
use crate::contract::Untrusted;

/// What Herdr says an agent does. There are no times with it: "since" is for us to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Status {
    /// Waits for the next prompt, and was seen.
    Idle,
    /// Is at work.
    Working,
    /// Needs someone.
    Blocked,
    /// Idle, and nobody has looked since.
    Done,
    /// Anything else, absence included.
    #[default]
    Unknown,
}

impl Status {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn read(raw: &RawValue) -> Self {
        match raw.get() {
            "\"idle\"" => Self::Idle,
            "\"working\"" => Self::Working,
            "\"blocked\"" => Self::Blocked,
            "\"done\"" => Self::Done,
            _ => Self::Unknown,
        }
    }
}

/// One whole inventory (`session.snapshot`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Herdr's release.
    pub version: Option<Untrusted>,
    /// The protocol it speaks.
    pub protocol: Option<u64>,
    /// Where the operator is.
    pub focused_workspace_id: Option<Untrusted>,
    /// Where the operator is.
    pub focused_tab_id: Option<Untrusted>,
    /// Where the operator is.
    pub focused_pane_id: Option<Untrusted>,
    /// In Herdr's order.
    pub workspaces: Vec<Workspace>,
    /// In Herdr's order.
    pub tabs: Vec<Tab>,
    /// In Herdr's order.
    pub panes: Vec<Pane>,
    /// In Herdr's order.
    pub agents: Vec<Agent>,
    /// What was left out, for the diagnostics.
    pub dropped: Vec<Dropped>,
}

/// Elements of one list that can't be used and are told one by one.
const MAX_DROPPED: usize = 100;

/// An element, or a whole list, that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// `workspace`, `tab`, `pane` or `agent`.
    pub what: &'static str,
    /// Its place in its list, from 0; none if the list itself is missing or is no list.
    pub at: Option<usize>,
    /// The ids it does have, so that it can be found.
    pub known: Vec<Untrusted>,
    /// The first field it lacks.
    pub lacks: &'static str,
    /// None if it is one; else so many further ones of its list, which are not told one by one.
    pub further: Option<usize>,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(further) = self.further {
            return write!(f, "{further} further {}s of Herdr's snapshot are left out", self.what);
        }
        let Some(at) = self.at else {
            return write!(f, "Herdr's snapshot has no list of {}s", self.what);
        };
        write!(f, "{} {} of Herdr's snapshot has no usable {}", self.what, at + 1, self.lacks)?;
        for (nth, id) in self.known.iter().enumerate() {
            write!(f, "{}{}", if nth == 0 { ": " } else { ", " }, id.first_units(64).escaped())?;
        }
        Ok(())
    }
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its opaque id.
    pub workspace_id: Untrusted,
    /// What the operator called it.
    pub label: Option<Untrusted>,
    /// Its place in Herdr's list, from 1.
    pub number: Option<u64>,
    /// Whether the operator is there.
    pub focused: Option<bool>,
    /// The tab in front.
    pub active_tab_id: Option<Untrusted>,
    /// The most urgent of its agents.
    pub agent_status: Status,
    /// The checkout it stands in.
    pub worktree: Option<Worktree>,
}

/// The checkout a workspace stands in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktree {
    /// What checkouts of one repository share.
    pub repo_key: Option<Untrusted>,
    /// The repository's name.
    pub repo_name: Option<Untrusted>,
    /// The main checkout.
    pub repo_root: Option<Untrusted>,
    /// This checkout.
    pub checkout_path: Option<Untrusted>,
    /// Whether it is a linked one rather than the main one.
    pub is_linked_worktree: Option<bool>,
}

/// A tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    /// Its opaque id.
    pub tab_id: Untrusted,
    /// The workspace it is in.
    pub workspace_id: Untrusted,
    /// What the operator called it; by default its number.
    pub label: Option<Untrusted>,
    /// Its place in the workspace, from 1.
    pub number: Option<u64>,
    /// Whether the operator is there.
    pub focused: Option<bool>,
    /// The most urgent of its agents.
    pub agent_status: Status,
}

/// A pane (also the answer to `pane.get` and `pane.focus`). Asked for by an old id after a move, it
/// answers with its new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Its opaque id; survives a restart of the server.
    pub pane_id: Untrusted,
    /// The tab it is in.
    pub tab_id: Untrusted,
    /// The workspace it is in.
    pub workspace_id: Untrusted,
    /// Changes with a restart of the server.
    pub terminal_id: Option<Untrusted>,
    /// Whether the operator is there.
    pub focused: Option<bool>,
    /// What the operator called it.
    pub label: Option<Untrusted>,
    /// Where its shell started.
    pub cwd: Option<Untrusted>,
    /// Where its foreground program is.
    pub foreground_cwd: Option<Untrusted>,
    /// The kind of agent in it.
    pub agent: Option<Untrusted>,
    /// What that agent does.
    pub agent_status: Status,
    /// Which session it runs.
    pub agent_session: Option<AgentSession>,
    /// Lines scrolled out above the viewport; 0 on an alternate screen.
    pub max_offset_from_bottom: Option<u64>,
    /// Rows of the viewport.
    pub viewport_rows: Option<u64>,
    /// Counts changes of what Herdr shows about it.
    pub revision: Option<u64>,
}

/// An agent Herdr lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The pane it is in.
    pub pane_id: Untrusted,
    /// The tab it is in.
    pub tab_id: Untrusted,
    /// The workspace it is in.
    pub workspace_id: Untrusted,
    /// Changes with a restart of the server.
    pub terminal_id: Option<Untrusted>,
    /// What it does.
    pub agent_status: Status,
    /// Whether the operator is there.
    pub focused: Option<bool>,
    /// Counts changes of what Herdr shows about it.
    pub revision: Option<u64>,
    /// Orders status changes within one server's life.
    pub state_change_seq: Option<u64>,
    /// The name it was given in Herdr.
    pub name: Option<Untrusted>,
    /// Its kind.
    pub agent: Option<Untrusted>,
    /// Reported for display.
    pub title: Option<Untrusted>,
    /// Reported for display in place of the kind.
    pub display_agent: Option<Untrusted>,
    /// What its program set as the terminal's title.
    pub terminal_title: Option<Untrusted>,
    /// Reported for display.
    pub tokens: BTreeMap<Untrusted, Untrusted>,
    /// Where its shell started.
    pub cwd: Option<Untrusted>,
    /// Where it is.
    pub foreground_cwd: Option<Untrusted>,
    /// Which session it runs.
    pub agent_session: Option<AgentSession>,
}

/// Which session an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentSession {
    /// Who said so, as `herdr:pi`.
    pub source: Untrusted,
    /// The kind of agent, as `pi`.
    pub agent: Untrusted,
    /// `id`, or `path`: then the value is the session's file.
    pub kind: Untrusted,
    /// The id or the path.
    pub value: Untrusted,
}

impl Snapshot {
    /// From the `result` of `session.snapshot`; none if there is no snapshot in it.
    pub fn read(result: &RawValue) -> Option<Self> {
        let raw = member(result, b"snapshot")?;
        let mut snapshot = Self::default();
        let (mut workspaces, mut tabs, mut panes, mut agents) = (None, None, None, None);
        let is_object = members(raw, |key, value| match key {
            b"version" => snapshot.version = text(value),
            b"protocol" => snapshot.protocol = whole(value),
            b"focused_workspace_id" => snapshot.focused_workspace_id = text(value),
            b"focused_tab_id" => snapshot.focused_tab_id = text(value),
            b"focused_pane_id" => snapshot.focused_pane_id = text(value),
            b"workspaces" => workspaces = Some(value),
            b"tabs" => tabs = Some(value),
            b"panes" => panes = Some(value),
            b"agents" => agents = Some(value),
            _ => {}
        });
        if !is_object {
            return None;
        }
        let dropped = &mut snapshot.dropped;
        snapshot.workspaces = list("workspace", workspaces, Workspace::read, dropped);
        snapshot.tabs = list("tab", tabs, Tab::read, dropped);
        snapshot.panes = list("pane", panes, Pane::read, dropped);
        snapshot.agents = list("agent", agents, Agent::read, dropped);
        Some(snapshot)
    }
}

/// The ids an element has, and the first that is missing.
type Lacking = (Vec<Untrusted>, &'static str);

impl Workspace {
    fn read(raw: &RawValue) -> Result<Self, Lacking> {
        let mut id = None;
        let mut found = Self {
            workspace_id: Untrusted::from(""),
            label: None,
            number: None,
            focused: None,
            active_tab_id: None,
            agent_status: Status::Unknown,
            worktree: None,
        };
        members(raw, |key, value| match key {
            b"workspace_id" => id = text(value),
            b"label" => found.label = text(value),
            b"number" => found.number = whole(value),
            b"focused" => found.focused = flag(value),
            b"active_tab_id" => found.active_tab_id = text(value),
            b"agent_status" => found.agent_status = Status::read(value),
            b"worktree" => found.worktree = Worktree::read(value),
            _ => {}
        });
        let [workspace_id] = need([("workspace_id", id)])?;
        Ok(Self { workspace_id, ..found })
    }
}

impl Worktree {
    fn read(raw: &RawValue) -> Option<Self> {
        let mut found = Self::default();
        members(raw, |key, value| match key {
            b"repo_key" => found.repo_key = text(value),
            b"repo_name" => found.repo_name = text(value),
            b"repo_root" => found.repo_root = text(value),
            b"checkout_path" => found.checkout_path = text(value),
            b"is_linked_worktree" => found.is_linked_worktree = flag(value),
            _ => {}
        })
        .then_some(found)
    }
}

impl Tab {
    fn read(raw: &RawValue) -> Result<Self, Lacking> {
        let (mut tab, mut workspace) = (None, None);
        let mut found = Self {
            tab_id: Untrusted::from(""),
            workspace_id: Untrusted::from(""),
            label: None,
            number: None,
            focused: None,
            agent_status: Status::Unknown,
        };
        members(raw, |key, value| match key {
            b"tab_id" => tab = text(value),
            b"workspace_id" => workspace = text(value),
            b"label" => found.label = text(value),
            b"number" => found.number = whole(value),
            b"focused" => found.focused = flag(value),
            b"agent_status" => found.agent_status = Status::read(value),
            _ => {}
        });
        let [tab_id, workspace_id] = need([("tab_id", tab), ("workspace_id", workspace)])?;
        Ok(Self { tab_id, workspace_id, ..found })
    }
}

impl Pane {
    /// From one pane's object.
    fn read(raw: &RawValue) -> Result<Self, Lacking> {
        let (mut pane, mut tab, mut workspace) = (None, None, None);
        let mut found = Self {
            pane_id: Untrusted::from(""),
            tab_id: Untrusted::from(""),
            workspace_id: Untrusted::from(""),
            terminal_id: None,
            focused: None,
            label: None,
            cwd: None,
            foreground_cwd: None,
            agent: None,
            agent_status: Status::Unknown,
            agent_session: None,
            max_offset_from_bottom: None,
            viewport_rows: None,
            revision: None,
        };
        members(raw, |key, value| match key {
            b"pane_id" => pane = text(value),
            b"tab_id" => tab = text(value),
            b"workspace_id" => workspace = text(value),
            b"terminal_id" => found.terminal_id = text(value),
            b"focused" => found.focused = flag(value),
            b"label" => found.label = text(value),
            b"cwd" => found.cwd = text(value),
            b"foreground_cwd" => found.foreground_cwd = text(value),
            b"agent" => found.agent = text(value),
            b"agent_status" => found.agent_status = Status::read(value),
            b"agent_session" => found.agent_session = AgentSession::read(value),
            b"revision" => found.revision = whole(value),
            b"scroll" => {
                found.max_offset_from_bottom = member(value, b"max_offset_from_bottom").and_then(whole);
                found.viewport_rows = member(value, b"viewport_rows").and_then(whole);
            }
            _ => {}
        });
        let [pane_id, tab_id, workspace_id] =
            need([("pane_id", pane), ("tab_id", tab), ("workspace_id", workspace)])?;
        Ok(Self { pane_id, tab_id, workspace_id, ..found })
    }

    /// From the `result` of `pane.get` or `pane.focus`.
    pub fn of_result(result: &RawValue) -> Option<Self> {
        Self::read(member(result, b"pane")?).ok()
    }
}

impl Agent {
    fn read(raw: &RawValue) -> Result<Self, Lacking> {
        let (mut pane, mut tab, mut workspace) = (None, None, None);
        let mut found = Self {
            pane_id: Untrusted::from(""),
            tab_id: Untrusted::from(""),
            workspace_id: Untrusted::from(""),
            terminal_id: None,
            agent_status: Status::Unknown,
            focused: None,
            revision: None,
            state_change_seq: None,
            name: None,
            agent: None,
            title: None,
            display_agent: None,
            terminal_title: None,
            tokens: BTreeMap::new(),
            cwd: None,
            foreground_cwd: None,
            agent_session: None,
        };
        members(raw, |key, value| match key {
            b"pane_id" => pane = text(value),
            b"tab_id" => tab = text(value),
            b"workspace_id" => workspace = text(value),
            b"terminal_id" => found.terminal_id = text(value),
            b"agent_status" => found.agent_status = Status::read(value),
            b"focused" => found.focused = flag(value),
            b"revision" => found.revision = whole(value),
            b"state_change_seq" => found.state_change_seq = whole(value),
            b"name" => found.name = text(value),
            b"agent" => found.agent = text(value),
            b"title" => found.title = text(value),
            b"display_agent" => found.display_agent = text(value),
            b"terminal_title" => found.terminal_title = text(value),
            b"tokens" => found.tokens = text_map(value),
            b"cwd" => found.cwd = text(value),
            b"foreground_cwd" => found.foreground_cwd = text(value),
            b"agent_session" => found.agent_session = AgentSession::read(value),
            _ => {}
        });
        let [pane_id, tab_id, workspace_id] =
            need([("pane_id", pane), ("tab_id", tab), ("workspace_id", workspace)])?;
        Ok(Self { pane_id, tab_id, workspace_id, ..found })
    }

    /// The agents of an `agent.list` result, and what was left out; none if there is no list.
    pub fn read_all(result: &RawValue) -> Option<(Vec<Self>, Vec<Dropped>)> {
        let raw = member(result, b"agents")?;
        elements(raw)?;
        let mut dropped = Vec::new();
        let agents = list("agent", Some(raw), Self::read, &mut dropped);
        Some((agents, dropped))
    }
}

impl AgentSession {
    fn read(raw: &RawValue) -> Option<Self> {
        let (mut source, mut agent, mut kind, mut session) = (None, None, None, None);
        members(raw, |key, value| match key {
            b"source" => source = text(value),
            b"agent" => agent = text(value),
            b"kind" => kind = text(value),
            b"value" => session = text(value),
            _ => {}
        });
        Some(Self { source: source?, agent: agent?, kind: kind?, value: session? })
    }
}

/// Every id named, or which ones there are and the first that is not.
fn need<const N: usize>(fields: [(&'static str, Option<Untrusted>); N]) -> Result<[Untrusted; N], Lacking> {
    let missing = fields.iter().find(|(_, value)| value.is_none()).map(|(name, _)| *name);
    let known: Vec<Untrusted> = fields.into_iter().filter_map(|(_, value)| value).collect();
    match <[Untrusted; N]>::try_from(known) {
        Ok(all) => Ok(all),
        Err(known) => Err((known, missing.unwrap_or("id"))),
    }
}

fn list<T>(
    what: &'static str,
    raw: Option<&RawValue>,
    read: impl Fn(&RawValue) -> Result<T, Lacking>,
    dropped: &mut Vec<Dropped>,
) -> Vec<T> {
    let one = Dropped { what, at: None, known: Vec::new(), lacks: "list", further: None };
    let Some((all, mut further)) = raw.and_then(first_elements) else {
        dropped.push(one);
        return Vec::new();
    };
    let told = dropped.len() + MAX_DROPPED;
    let mut found = Vec::with_capacity(all.len());
    for (at, element) in all.into_iter().enumerate() {
        match read(element) {
            Ok(element) => found.push(element),
            Err((known, lacks)) if dropped.len() < told => {
                dropped.push(Dropped { at: Some(at), known, lacks, ..one.clone() });
            }
            Err(_) => further += 1,
        }
    }
    if further > 0 {
        dropped.push(Dropped { further: Some(further), ..one });
    }
    found
}
