//! What is open in the simulated Herdr, and how it changes.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::events::Logged;
use super::process::Process;
use super::reports::{Metadata, Report};
use crate::herdr::Status;

/// One checkout of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The repository's name.
    pub repo_name: String,
    /// Its main checkout.
    pub repo_root: String,
    /// This checkout.
    pub path: String,
    /// The branch checked out here.
    pub branch: String,
    /// Whether it is a linked one rather than the main one.
    pub is_linked: bool,
}

/// What opening something has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The workspace.
    pub workspace: String,
    /// The tab.
    pub tab: String,
    /// The pane.
    pub pane: String,
}

pub(super) struct Workspace {
    pub(super) id: String,
    pub(super) number: usize,
    pub(super) label: String,
    pub(super) cwd: String,
    pub(super) active_tab: String,
    pub(super) shows_worktree: bool,
    pub(super) tokens: BTreeMap<String, String>,
    tabs_made: usize,
    panes_made: usize,
}

pub(super) struct Tab {
    pub(super) id: String,
    pub(super) workspace: String,
    pub(super) number: usize,
    pub(super) label: String,
    pub(super) active_pane: String,
}

pub(super) struct Pane {
    pub(super) id: String,
    /// Ids it had before it was moved.
    aliases: Vec<String>,
    pub(super) terminal_id: String,
    pub(super) workspace: String,
    pub(super) tab: String,
    pub(super) cwd: String,
    pub(super) label: Option<String>,
    /// The agent's name.
    pub(super) name: Option<String>,
    pub(super) screen: Vec<String>,
    pub(super) scrollback: Vec<String>,
    pub(super) full_screen: bool,
    pub(super) disturbed: usize,
    pub(super) revision: u64,
    pub(super) shell_pid: u32,
    pub(super) process: Option<Process>,
    /// Whether that process is taken for Pi; follows it with a little delay.
    pub(super) is_pi: bool,
    /// By source. Kept while no process fits, and used once one does.
    pub(super) reports: BTreeMap<String, Report>,
    /// The latest sequence number by source; outlives reports and processes.
    pub(super) seqs: BTreeMap<String, u64>,
    pub(super) metadata: BTreeMap<String, Metadata>,
    /// What is shown, and its place among all changes.
    pub(super) status: Status,
    pub(super) change_seq: u64,
    /// Whether it has been at work since the operator last saw it at rest.
    pub(super) unseen: bool,
}

pub(super) struct State {
    pub(super) protocol: u64,
    pub(super) unknown_kinds: Vec<String>,
    pub(super) notices: bool,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) tabs: Vec<Tab>,
    pub(super) panes: Vec<Pane>,
    pub(super) checkouts: Vec<Checkout>,
    pub(super) focused: Option<String>,
    pub(super) log: VecDeque<Logged>,
    pub(super) next_event: u64,
    pub(super) changes: u64,
    workspaces_made: usize,
    terminals_made: u64,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            protocol: 20,
            unknown_kinds: Vec::new(),
            notices: false,
            workspaces: Vec::new(),
            tabs: Vec::new(),
            panes: Vec::new(),
            checkouts: Vec::new(),
            focused: None,
            log: VecDeque::new(),
            next_event: 1,
            changes: 0,
            workspaces_made: 0,
            terminals_made: 0,
        }
    }

    /// By its id, or one it had before it was moved.
    pub(super) fn pane(&self, id: &str) -> Option<&Pane> {
        self.panes.iter().find(|pane| pane.id == id || pane.aliases.iter().any(|alias| alias == id))
    }

    pub(super) fn pane_at(&self, id: &str) -> Option<usize> {
        self.panes.iter().position(|pane| pane.id == id || pane.aliases.iter().any(|alias| alias == id))
    }

    pub(super) fn with_pane(&mut self, id: &str, change: impl FnOnce(&mut Pane)) {
        if let Some(at) = self.pane_at(id) {
            change(&mut self.panes[at]);
        }
    }

    pub(super) fn workspace(&self, id: &str) -> Option<&Workspace> {
        self.workspaces.iter().find(|workspace| workspace.id == id)
    }

    pub(super) fn tab(&self, id: &str) -> Option<&Tab> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    /// The tab the operator is in.
    pub(super) fn focused_tab(&self) -> Option<&Tab> {
        let pane = self.pane(self.focused.as_deref()?)?;
        self.tab(&pane.tab)
    }

    pub(super) fn create_workspace(
        &mut self,
        label: &str,
        cwd: &str,
        worktree: Option<Checkout>,
        focus: bool,
    ) -> Created {
        self.workspaces_made += 1;
        let id = format!("w{}", self.workspaces_made);
        let shows_worktree = worktree.is_some();
        if let Some(checkout) = worktree {
            self.add_checkout(checkout);
        }
        self.workspaces.push(Workspace {
            id: id.clone(),
            number: self.workspaces_made,
            label: label.to_owned(),
            cwd: cwd.to_owned(),
            active_tab: String::new(),
            shows_worktree,
            tokens: BTreeMap::new(),
            tabs_made: 0,
            panes_made: 0,
        });
        let (tab, pane) = self.add_tab(&id, None, cwd);
        let workspace = self.workspace_json(&id);
        self.tell("workspace.created", json!({"workspace": workspace}));
        self.tell_tab_and_pane(&tab, &pane);
        if focus || self.focused.is_none() {
            self.focus(&pane);
        }
        Created { workspace: id, tab, pane }
    }

    pub(super) fn create_tab(&mut self, workspace: &str, label: Option<&str>, cwd: &str) -> Option<Created> {
        self.workspace(workspace)?;
        let (tab, pane) = self.add_tab(workspace, label, cwd);
        self.tell_tab_and_pane(&tab, &pane);
        Some(Created { workspace: workspace.to_owned(), tab, pane })
    }

    pub(super) fn create_pane(&mut self, tab: &str, cwd: &str) -> Option<String> {
        let workspace = self.tab(tab)?.workspace.clone();
        let pane = self.add_pane(&workspace, tab, cwd);
        let (pane_json, layout) = (self.pane_json(&pane), self.layout_json(tab));
        self.tell("pane.created", json!({"pane": pane_json}));
        self.tell("layout.updated", json!({"layout": layout}));
        Some(pane)
    }

    fn tell_tab_and_pane(&mut self, tab: &str, pane: &str) {
        let (tab_json, pane_json, layout) = (self.tab_json(tab), self.pane_json(pane), self.layout_json(tab));
        self.tell("tab.created", json!({"tab": tab_json}));
        self.tell("pane.created", json!({"pane": pane_json}));
        self.tell("layout.updated", json!({"layout": layout}));
    }

    fn add_tab(&mut self, workspace: &str, label: Option<&str>, cwd: &str) -> (String, String) {
        let Some(at) = self.workspaces.iter().position(|it| it.id == workspace) else {
            return (String::new(), String::new());
        };
        self.workspaces[at].tabs_made += 1;
        let number = self.workspaces[at].tabs_made;
        let id = format!("{workspace}:t{number}");
        if self.workspaces[at].active_tab.is_empty() {
            self.workspaces[at].active_tab.clone_from(&id);
        }
        self.tabs.push(Tab {
            id: id.clone(),
            workspace: workspace.to_owned(),
            number,
            label: label.map_or_else(|| number.to_string(), str::to_owned),
            active_pane: String::new(),
        });
        self.sort();
        let pane = self.add_pane(workspace, &id, cwd);
        (id, pane)
    }

    fn add_pane(&mut self, workspace: &str, tab: &str, cwd: &str) -> String {
        let number = self.next_pane_number(workspace);
        let id = format!("{workspace}:p{number}");
        self.terminals_made += 1;
        if let Some(tab) = self.tabs.iter_mut().find(|it| it.id == tab && it.active_pane.is_empty()) {
            tab.active_pane.clone_from(&id);
        }
        self.panes.push(Pane {
            id: id.clone(),
            aliases: Vec::new(),
            terminal_id: format!("term_{:014x}", 0x0006_617a_0000_0000_u64 + self.terminals_made),
            workspace: workspace.to_owned(),
            tab: tab.to_owned(),
            cwd: cwd.to_owned(),
            label: None,
            name: None,
            screen: Vec::new(),
            scrollback: Vec::new(),
            full_screen: false,
            disturbed: 0,
            revision: 0,
            shell_pid: std::process::id(),
            process: None,
            is_pi: false,
            reports: BTreeMap::new(),
            seqs: BTreeMap::new(),
            metadata: BTreeMap::new(),
            status: Status::Unknown,
            change_seq: 0,
            unseen: false,
        });
        self.sort();
        id
    }

    fn next_pane_number(&mut self, workspace: &str) -> usize {
        match self.workspaces.iter_mut().find(|it| it.id == workspace) {
            Some(workspace) => {
                workspace.panes_made += 1;
                workspace.panes_made
            }
            None => 0,
        }
    }

    /// Lists go by workspace, then tab, then age.
    fn sort(&mut self) {
        let number = |id: &str| self.workspaces.iter().position(|it| it.id == *id).unwrap_or(usize::MAX);
        self.tabs.sort_by_key(|tab| (number(&tab.workspace), tab.number));
        let place = |id: &str| self.tabs.iter().position(|it| it.id == *id).unwrap_or(usize::MAX);
        self.panes.sort_by_key(|pane| place(&pane.tab));
    }

    pub(super) fn focus(&mut self, pane: &str) {
        let Some(at) = self.pane_at(pane) else { return };
        let (id, tab, workspace) =
            (self.panes[at].id.clone(), self.panes[at].tab.clone(), self.panes[at].workspace.clone());
        let before = self.focused_tab().map(|tab| (tab.id.clone(), tab.workspace.clone()));
        let was_there = self.focused.as_deref() == Some(&*id);
        self.focused = Some(id.clone());
        if let Some(it) = self.workspaces.iter_mut().find(|it| it.id == workspace) {
            it.active_tab.clone_from(&tab);
        }
        if let Some(it) = self.tabs.iter_mut().find(|it| it.id == tab) {
            it.active_pane.clone_from(&id);
        }
        let (before_tab, before_workspace) = before.unzip();
        if before_workspace.as_ref() != Some(&workspace) {
            self.tell("workspace.focused", json!({"workspace_id": workspace}));
        }
        if before_tab.as_ref() != Some(&tab) {
            self.tell("tab.focused", json!({"tab_id": tab, "workspace_id": workspace}));
        }
        if !was_there {
            self.tell("pane.focused", json!({"pane_id": id, "workspace_id": workspace}));
        }
        if self.panes[at].status == Status::Done {
            self.panes[at].unseen = false;
            self.panes[at].status = Status::Idle;
            self.tell_status(at);
        }
    }

    pub(super) fn close_pane(&mut self, pane: &str) {
        let Some(at) = self.pane_at(pane) else { return };
        let gone = self.panes.remove(at);
        self.tell("pane.closed", json!({"pane_id": gone.id, "workspace_id": gone.workspace}));
        self.forget_empty(&gone.tab, &gone.workspace);
        self.refocus();
    }

    pub(super) fn close_workspace(&mut self, workspace: &str) {
        if self.workspace(workspace).is_none() {
            return;
        }
        let shown = self.workspace_json(workspace);
        self.panes.retain(|pane| pane.workspace != workspace);
        self.tabs.retain(|tab| tab.workspace != workspace);
        self.workspaces.retain(|it| it.id != workspace);
        self.tell("workspace.closed", json!({"workspace": shown, "workspace_id": workspace}));
        self.refocus();
    }

    fn forget_empty(&mut self, tab: &str, workspace: &str) {
        match self.panes.iter().find(|pane| pane.tab == tab).map(|pane| pane.id.clone()) {
            Some(other) => {
                let panes = &self.panes;
                if let Some(tab) = self.tabs.iter_mut().find(|it| it.id == tab)
                    && !panes.iter().any(|pane| pane.id == tab.active_pane)
                {
                    tab.active_pane = other;
                }
                return;
            }
            None => self.tabs.retain(|it| it.id != tab),
        }
        match self.tabs.iter().find(|it| it.workspace == workspace).map(|it| it.id.clone()) {
            Some(other) => {
                if let Some(it) =
                    self.workspaces.iter_mut().find(|it| it.id == workspace && it.active_tab == tab)
                {
                    it.active_tab = other;
                }
                self.tell("tab.closed", json!({"tab_id": tab, "workspace_id": workspace}));
            }
            None => {
                let shown = self.workspace_json(workspace);
                self.workspaces.retain(|it| it.id != workspace);
                self.tell("workspace.closed", json!({"workspace": shown, "workspace_id": workspace}));
            }
        }
    }

    /// Goes to the last workspace if the one the operator was in is gone.
    fn refocus(&mut self) {
        if self.focused.as_deref().is_some_and(|pane| self.pane(pane).is_some()) {
            return;
        }
        self.focused = None;
        let next =
            self.workspaces.last().and_then(|it| self.tab(&it.active_tab)).map(|it| it.active_pane.clone());
        if let Some(pane) = next {
            self.focus(&pane);
        }
    }

    pub(super) fn move_pane(&mut self, pane: &str, label: &str) -> Option<String> {
        let at = self.pane_at(pane)?;
        let (old, cwd) = (self.panes[at].id.clone(), self.panes[at].cwd.clone());
        let (old_tab, old_workspace) = (self.panes[at].tab.clone(), self.panes[at].workspace.clone());
        let was_focused = self.focused.as_deref() == Some(&*old);
        let created = self.create_workspace(label, &cwd, None, false);
        // The pane made with the workspace gives way to the moved one.
        self.panes.retain(|it| it.id != created.pane);
        let at = self.pane_at(&old)?;
        let moved = &mut self.panes[at];
        moved.aliases.push(old.clone());
        moved.id.clone_from(&created.pane);
        moved.tab.clone_from(&created.tab);
        moved.workspace.clone_from(&created.workspace);
        if was_focused {
            self.focused = Some(created.pane.clone());
        }
        self.sort();
        self.forget_empty(&old_tab, &old_workspace);
        let shown = self.pane_json(&created.pane);
        self.tell(
            "pane.moved",
            json!({"pane": shown, "previous_pane_id": old, "previous_tab_id": old_tab,
                   "previous_workspace_id": old_workspace}),
        );
        Some(created.pane)
    }

    pub(super) fn rename_workspace(&mut self, workspace: &str, label: &str) {
        if let Some(it) = self.workspaces.iter_mut().find(|it| it.id == workspace) {
            label.clone_into(&mut it.label);
            self.tell("workspace.renamed", json!({"workspace_id": workspace, "label": label}));
        }
    }

    pub(super) fn rename_tab(&mut self, tab: &str, label: &str) {
        if let Some(it) = self.tabs.iter_mut().find(|it| it.id == tab) {
            label.clone_into(&mut it.label);
            let workspace = it.workspace.clone();
            self.tell("tab.renamed", json!({"tab_id": tab, "workspace_id": workspace, "label": label}));
        }
    }

    pub(super) fn set_workspace_tokens(&mut self, workspace: &str, tokens: BTreeMap<String, String>) {
        if let Some(it) = self.workspaces.iter_mut().find(|it| it.id == workspace) {
            it.tokens = tokens;
            let shown = self.workspace_json(workspace);
            self.tell("workspace.metadata_updated", json!({"workspace": shown}));
        }
    }

    pub(super) fn add_checkout(&mut self, checkout: Checkout) {
        match self.checkouts.iter_mut().find(|it| it.path == checkout.path) {
            Some(known) => *known = checkout,
            None => self.checkouts.push(checkout),
        }
    }

    pub(super) fn show_worktree(&mut self, workspace: &str) {
        if let Some(it) = self.workspaces.iter_mut().find(|it| it.id == workspace) {
            it.shows_worktree = true;
            let shown: Value = self.workspace_json(workspace);
            self.tell("workspace.updated", json!({"workspace": shown}));
        }
    }
}
