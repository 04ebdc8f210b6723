//! What Herdr shows, as evidence: its snapshot with the sessions of its Pi agents found out.

use std::collections::BTreeMap;

use super::evidence::{AgentSession, LiveAgent, Provenance, State};
use super::order;
use crate::contract::{NativeId, SessionId, Untrusted};
use crate::herdr::api::{self, Snapshot};

/// Herdr's inventory at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Herdr's release.
    pub version: Option<Untrusted>,
    /// Its Pi agents.
    pub agents: Vec<LiveAgent>,
    /// Its workspaces, by id.
    pub provenance: BTreeMap<Untrusted, Provenance>,
    /// Agents that are not Pi's, which headman does not supervise.
    pub other_agents: Vec<OtherAgent>,
    /// Its panes, each with its workspace.
    pub panes: Vec<(Untrusted, Untrusted)>,
    /// Parts of the snapshot that could not be used; safe to print why.
    pub dropped: Vec<String>,
}

/// An agent that is not Pi's, or not known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherAgent {
    /// What Herdr calls it.
    pub name: Option<Untrusted>,
    /// Its workspace's id.
    pub workspace: Untrusted,
    /// Its pane's id.
    pub pane: Untrusted,
}

/// What a session file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// The session in its header.
    pub session: SessionId,
    /// What it was named.
    pub name: Option<Untrusted>,
}

/// The session files that a snapshot's agents run.
pub fn session_paths(snapshot: &Snapshot) -> impl Iterator<Item = &Untrusted> {
    snapshot.agents.iter().filter_map(pi_session).filter(|session| session.kind == "path").map(|it| &it.value)
}

fn pi_session(agent: &api::Agent) -> Option<&api::AgentSession> {
    agent.agent_session.as_ref().filter(|session| session.source == "herdr:pi" && session.agent == "pi")
}

impl Inventory {
    /// From a snapshot, the branches of its workspaces, and what `session_file` says of each path
    /// ([`session_paths`]); the error says why it could not be found out and is safe to print.
    pub fn of_snapshot(
        snapshot: &Snapshot,
        branches: &BTreeMap<Untrusted, Branch>,
        mut session_file: impl FnMut(&Untrusted) -> Result<SessionFacts, String>,
    ) -> Self {
        let tabs: BTreeMap<_, _> = snapshot.tabs.iter().map(|tab| (&tab.tab_id, tab)).collect();
        let mut inventory = Self {
            version: snapshot.version.clone(),
            dropped: snapshot.dropped.iter().map(ToString::to_string).collect(),
            panes: (snapshot.panes.iter())
                .map(|pane| (pane.workspace_id.clone(), pane.pane_id.clone()))
                .collect(),
            ..Self::default()
        };
        for agent in &snapshot.agents {
            let Some(session) = pi_session(agent) else {
                inventory.other_agents.push(OtherAgent {
                    name: agent.name.clone(),
                    workspace: agent.workspace_id.clone(),
                    pane: agent.pane_id.clone(),
                });
                continue;
            };
            let mut name = None;
            let mut path = None;
            let known = if session.kind == "id" {
                AgentSession::Known(session.value.clone())
            } else if session.kind == "path" {
                path = Some(session.value.clone());
                match session_file(&session.value) {
                    Ok(facts) => {
                        name = facts.name;
                        AgentSession::Known(facts.session.as_untrusted().clone())
                    }
                    Err(why) => AgentSession::Unknown(why),
                }
            } else {
                AgentSession::Unknown("Herdr names its session in an unknown way".to_owned())
            };
            let tab = tabs.get(&agent.tab_id);
            inventory.agents.push(LiveAgent {
                workspace: Some(agent.workspace_id.clone()),
                tab: Some(agent.tab_id.clone()),
                pane: Some(agent.pane_id.clone()),
                state: State::of_lifecycle(Some(&agent.agent_status.as_str().into())),
                token_name: agent.tokens.get(&Untrusted::from("pi_herdsman_name")).cloned(),
                session_name: name,
                herdr_name: agent.name.clone(),
                tab_label: tab.and_then(|tab| order::tab_label(tab.label.as_ref()?, tab.number)),
                cwd: agent.cwd.clone(),
                session_file: path,
                ..LiveAgent::new(known)
            });
        }
        for workspace in &snapshot.workspaces {
            let branch = branches.get(&workspace.workspace_id);
            let worktree = workspace.worktree.as_ref();
            inventory.provenance.insert(
                workspace.workspace_id.clone(),
                Provenance {
                    repo: (branch.and_then(|branch| branch.repo.clone()))
                        .or_else(|| worktree.and_then(|worktree| worktree.repo_name.clone())),
                    branch: branch.and_then(|branch| branch.branch.clone()),
                    label: workspace.label.clone(),
                    cwd: worktree.and_then(|worktree| worktree.checkout_path.clone()),
                },
            );
        }
        inventory
    }

    /// Adds where the agents' directories really are, as `real` says.
    pub fn resolve_directories(&mut self, mut real: impl FnMut(&Untrusted) -> Untrusted) {
        for agent in &mut self.agents {
            agent.real_cwd = agent.cwd.as_ref().filter(|cwd| !cwd.is_empty()).map(&mut real);
        }
    }

    /// The one Pi agent of `session`, if exactly one shows it: its workspace, tab and pane.
    pub fn place_of(&self, session: &SessionId) -> Option<(NativeId, NativeId, NativeId)> {
        let mut found = self.agents.iter().filter(
            |agent| matches!(&agent.session, AgentSession::Known(known) if known == session.as_untrusted()),
        );
        let agent = found.next().filter(|_| found.next().is_none())?;
        let id = |id: &Option<Untrusted>| id.clone().and_then(NativeId::new);
        Some((id(&agent.workspace)?, id(&agent.tab)?, id(&agent.pane)?))
    }
}

/// What is checked out in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// The repository's name.
    pub repo: Option<Untrusted>,
    /// The branch.
    pub branch: Option<Untrusted>,
}
