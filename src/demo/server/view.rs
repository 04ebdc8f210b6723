//! How things look on the wire. What is optional there is left out here where there is nothing.

use serde_json::{Map, Value, json};

use super::reports::{Metadata, PI_SOURCE};
use super::state::{Pane, State, Workspace};
use crate::herdr::Status;

/// Rows of every viewport.
pub(super) const VIEWPORT_ROWS: usize = 39;
/// Where panes begin, right of the side bar and below the tabs, and how wide they are together.
const AREA: (usize, usize, usize) = (26, 1, 94);

impl State {
    pub(super) fn snapshot_json(&self) -> Value {
        let mut snapshot = json!({
            "version": super::methods::VERSION,
            "protocol": self.protocol,
            "workspaces": self.workspaces.iter().map(|it| self.workspace_json(&it.id)).collect::<Vec<_>>(),
            "tabs": self.tabs.iter().map(|it| self.tab_json(&it.id)).collect::<Vec<_>>(),
            "panes": self.panes.iter().map(|it| self.pane_json(&it.id)).collect::<Vec<_>>(),
            "layouts": self.tabs.iter().map(|it| self.layout_json(&it.id)).collect::<Vec<_>>(),
            "agents": self.agents_json(),
        });
        if let (Some(tab), Some(pane)) = (self.focused_tab(), &self.focused) {
            snapshot["focused_workspace_id"] = tab.workspace.clone().into();
            snapshot["focused_tab_id"] = tab.id.clone().into();
            snapshot["focused_pane_id"] = pane.clone().into();
        }
        snapshot
    }

    pub(super) fn agents_json(&self) -> Vec<Value> {
        (0..self.panes.len()).filter_map(|at| self.agent_json(at)).collect()
    }

    pub(super) fn workspace_json(&self, id: &str) -> Value {
        let Some(workspace) = self.workspace(id) else { return Value::Null };
        let mut shown = json!({
            "workspace_id": workspace.id,
            "number": workspace.number,
            "label": workspace.label,
            "focused": self.focused_tab().is_some_and(|tab| tab.workspace == workspace.id),
            "pane_count": self.panes.iter().filter(|pane| pane.workspace == workspace.id).count(),
            "tab_count": self.tabs.iter().filter(|tab| tab.workspace == workspace.id).count(),
            "active_tab_id": workspace.active_tab,
            "agent_status": self.most_urgent(|pane| pane.workspace == workspace.id).as_str(),
        });
        if !workspace.tokens.is_empty() {
            shown["tokens"] = json!(workspace.tokens);
        }
        if workspace.shows_worktree
            && let Some(checkout) = self.checkouts.iter().find(|it| it.path == workspace.cwd)
        {
            shown["worktree"] = json!({
                "repo_key": format!("{}/.git", checkout.repo_root),
                "repo_name": checkout.repo_name,
                "repo_root": checkout.repo_root,
                "checkout_path": checkout.path,
                "is_linked_worktree": checkout.is_linked,
            });
        }
        shown
    }

    pub(super) fn tab_json(&self, id: &str) -> Value {
        let Some(tab) = self.tab(id) else { return Value::Null };
        json!({
            "tab_id": tab.id,
            "workspace_id": tab.workspace,
            "number": tab.number,
            "label": tab.label,
            "focused": self.focused_tab().is_some_and(|focused| focused.id == tab.id),
            "pane_count": self.panes.iter().filter(|pane| pane.tab == tab.id).count(),
            "agent_status": self.most_urgent(|pane| pane.tab == tab.id).as_str(),
        })
    }

    pub(super) fn pane_json(&self, id: &str) -> Value {
        let Some(pane) = self.pane(id) else { return Value::Null };
        let mut shown = self.place_json(pane);
        shown.insert("agent_status".into(), pane.status.as_str().into());
        shown.insert(
            "scroll".into(),
            json!({
                "offset_from_bottom": 0,
                "max_offset_from_bottom": if pane.full_screen { 0 } else { pane.scrollback.len() },
                "viewport_rows": VIEWPORT_ROWS,
            }),
        );
        if let Some(label) = &pane.label {
            shown.insert("label".into(), label.clone().into());
        }
        add_agent(&mut shown, pane);
        add_heading(&mut shown, &pane.shown());
        add_tokens(&mut shown, &pane.shown());
        Value::Object(shown)
    }

    pub(super) fn agent_json(&self, at: usize) -> Option<Value> {
        let pane = &self.panes[at];
        let listed = pane.listed()?;
        let mut shown = self.place_json(pane);
        shown.insert("agent_status".into(), pane.status.as_str().into());
        shown.insert("state_change_seq".into(), pane.change_seq.into());
        if let Some(name) = &pane.name {
            shown.insert("name".into(), name.clone().into());
        }
        if listed.by_report {
            shown.insert("screen_detection_skipped".into(), true.into());
        }
        add_agent(&mut shown, pane);
        add_heading(&mut shown, &pane.shown());
        add_tokens(&mut shown, &pane.shown());
        Some(Value::Object(shown))
    }

    pub(super) fn status_json(&self, at: usize) -> Value {
        let pane = &self.panes[at];
        let mut shown = Map::new();
        shown.insert("pane_id".into(), pane.id.clone().into());
        shown.insert("workspace_id".into(), pane.workspace.clone().into());
        shown.insert("agent_status".into(), pane.status.as_str().into());
        if let Some(listed) = pane.listed() {
            shown.insert("agent".into(), listed.agent.into());
        }
        add_heading(&mut shown, &pane.shown());
        Value::Object(shown)
    }

    fn place_json(&self, pane: &Pane) -> Map<String, Value> {
        let mut shown = Map::new();
        shown.insert("pane_id".into(), pane.id.clone().into());
        shown.insert("terminal_id".into(), pane.terminal_id.clone().into());
        shown.insert("workspace_id".into(), pane.workspace.clone().into());
        shown.insert("tab_id".into(), pane.tab.clone().into());
        shown.insert("focused".into(), (self.focused.as_deref() == Some(&*pane.id)).into());
        shown.insert("cwd".into(), pane.cwd.clone().into());
        shown.insert("foreground_cwd".into(), pane.cwd.clone().into());
        shown.insert("revision".into(), pane.revision.into());
        shown
    }

    /// Panes of a tab stand side by side.
    pub(super) fn layout_json(&self, tab: &str) -> Value {
        let Some(tab) = self.tab(tab) else { return Value::Null };
        let (x, y, width) = AREA;
        let panes: Vec<&Pane> = self.panes.iter().filter(|pane| pane.tab == tab.id).collect();
        let each = width / panes.len().max(1);
        let area = json!({"x": x, "y": y, "width": width, "height": VIEWPORT_ROWS});
        let splits: Vec<Value> = (1..panes.len())
            .map(|nth| {
                let id = if nth == 1 { "split_0_root".to_owned() } else { format!("split_{}", nth - 1) };
                json!({"id": id, "direction": "right", "ratio": 0.5, "rect": area})
            })
            .collect();
        let places: Vec<Value> = panes
            .iter()
            .enumerate()
            .map(|(nth, pane)| {
                json!({
                    "pane_id": pane.id,
                    "focused": pane.id == tab.active_pane,
                    "rect": {"x": x + nth * each, "y": y, "width": each, "height": VIEWPORT_ROWS},
                })
            })
            .collect();
        json!({
            "workspace_id": tab.workspace, "tab_id": tab.id, "zoomed": false, "area": area,
            "focused_pane_id": tab.active_pane, "panes": places, "splits": splits,
        })
    }

    fn most_urgent(&self, of: impl Fn(&Pane) -> bool) -> Status {
        let statuses: Vec<Status> =
            self.panes.iter().filter(|pane| of(pane)).map(|pane| pane.status).collect();
        [Status::Blocked, Status::Working, Status::Done, Status::Idle]
            .into_iter()
            .find(|status| statuses.contains(status))
            .unwrap_or(Status::Unknown)
    }

    /// The checkouts of the repository that `path` is a checkout of.
    pub(super) fn worktrees_json(&self, path: &str) -> Option<Value> {
        let source = self.checkouts.iter().find(|it| it.path == path)?;
        let open_on =
            |path: &str| self.workspaces.iter().find(|it| it.cwd == path).map(|it: &Workspace| it.id.clone());
        let worktrees: Vec<Value> = self
            .checkouts
            .iter()
            .filter(|it| it.repo_root == source.repo_root)
            .map(|it| {
                let mut entry = json!({
                    "path": it.path, "branch": it.branch, "label": it.repo_name, "is_bare": false,
                    "is_detached": false, "is_prunable": false, "is_linked_worktree": it.is_linked,
                });
                if let Some(workspace) = open_on(&it.path) {
                    entry["open_workspace_id"] = workspace.into();
                }
                entry
            })
            .collect();
        let mut shown_source = json!({
            "repo_key": format!("{}/.git", source.repo_root),
            "repo_name": source.repo_name,
            "repo_root": source.repo_root,
            "source_checkout_path": source.path,
        });
        if let Some(workspace) = open_on(path) {
            shown_source["source_workspace_id"] = workspace.into();
        }
        Some(json!({"type": "worktree_list", "source": shown_source, "worktrees": worktrees}))
    }
}

fn add_agent(shown: &mut Map<String, Value>, pane: &Pane) {
    let Some(listed) = pane.listed() else { return };
    shown.insert("agent".into(), listed.agent.into());
    if let Some(session) = listed.session {
        let session =
            json!({"source": PI_SOURCE, "agent": listed.agent, "kind": session.kind, "value": session.value});
        shown.insert("agent_session".into(), session);
    }
}

fn add_heading(shown: &mut Map<String, Value>, metadata: &Metadata) {
    if let Some(title) = &metadata.title {
        shown.insert("title".into(), title.clone().into());
    }
    if let Some(display_agent) = &metadata.display_agent {
        shown.insert("display_agent".into(), display_agent.clone().into());
    }
    if !metadata.state_labels.is_empty() {
        shown.insert("state_labels".into(), json!(metadata.state_labels));
    }
}

fn add_tokens(shown: &mut Map<String, Value>, metadata: &Metadata) {
    if !metadata.tokens.is_empty() {
        shown.insert("tokens".into(), json!(metadata.tokens));
    }
}
