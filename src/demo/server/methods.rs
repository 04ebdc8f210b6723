//! What each method answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{self, Method, Source};
use super::events::Stream;
use super::reports::{Display, PI_SOURCE, Session};
use super::state::State;
use super::view::VIEWPORT_ROWS;
use crate::herdr::Status;

/// The release whose wire this is.
pub(super) const VERSION: &str = "0.8.2";
/// Longest text of a source or name that is accepted in metadata.
const MAX_SOURCE: usize = 128;

/// An error's code and words.
pub(super) type Refusal = (&'static str, String);

/// What goes back.
pub(super) enum Answer {
    /// One result, then the connection ends.
    Result(Value),
    /// A stream: first the result, then old events, then new ones.
    Stream(Value, Vec<String>, Stream),
}

impl State {
    pub(super) fn answer(&mut self, method: Method) -> Result<Answer, Refusal> {
        let result = match method {
            Method::Ping(_) => json!({
                "type": "pong", "version": VERSION, "protocol": self.protocol,
                "capabilities": {"live_handoff": true, "detached_server_daemon": true},
            }),
            Method::SessionSnapshot(_) => {
                json!({"type": "session_snapshot", "snapshot": self.snapshot_json()})
            }
            Method::WorkspaceList(_) => {
                let all: Vec<Value> = self.workspaces.iter().map(|it| self.workspace_json(&it.id)).collect();
                json!({"type": "workspace_list", "workspaces": all})
            }
            Method::WorkspaceGet(of) => {
                let id =
                    &self.workspace(&of.workspace_id).ok_or_else(|| no("workspace", &of.workspace_id))?.id;
                json!({"type": "workspace_info", "workspace": self.workspace_json(id)})
            }
            Method::TabList(of) => {
                let tabs = self
                    .tabs
                    .iter()
                    .filter(|it| of.workspace_id.as_ref().is_none_or(|id| *id == it.workspace));
                let all: Vec<Value> = tabs.map(|it| self.tab_json(&it.id)).collect();
                json!({"type": "tab_list", "tabs": all})
            }
            Method::TabGet(of) => {
                let id = &self.tab(&of.tab_id).ok_or_else(|| no("tab", &of.tab_id))?.id;
                json!({"type": "tab_info", "tab": self.tab_json(id)})
            }
            Method::PaneList(of) => {
                let panes = self
                    .panes
                    .iter()
                    .filter(|it| of.workspace_id.as_ref().is_none_or(|id| *id == it.workspace));
                let all: Vec<Value> = panes.map(|it| self.pane_json(&it.id)).collect();
                json!({"type": "pane_list", "panes": all})
            }
            Method::PaneGet(of) => {
                self.find(&of.pane_id)?;
                json!({"type": "pane_info", "pane": self.pane_json(&of.pane_id)})
            }
            Method::PaneFocus(of) => {
                self.find(&of.pane_id)?;
                self.focus(&of.pane_id);
                json!({"type": "pane_info", "pane": self.pane_json(&of.pane_id)})
            }
            Method::PaneRead(read) => self.read_pane(&read)?,
            Method::PaneProcessInfo(of) => self.process_info(&of.pane_id)?,
            Method::PaneReportAgent(report) => {
                let at = self.find(&report.pane_id)?;
                let session = session(report.agent_session_id, report.agent_session_path);
                self.report_agent(at, &report.source, report.seq, report.agent, state(report.state), session);
                ok()
            }
            Method::PaneReportAgentSession(report) => {
                let at = self.find(&report.pane_id)?;
                let session = session(report.agent_session_id, report.agent_session_path);
                self.report_session(at, &report.source, report.seq, report.agent, session);
                ok()
            }
            Method::PaneReportMetadata(report) => {
                let at = self.find(&report.pane_id)?;
                let change = display(report)?;
                self.report_metadata(at, change);
                ok()
            }
            Method::PaneClearAgentAuthority(clear) => {
                let at = self.find(&clear.pane_id)?;
                self.clear_authority(at, clear.source.as_deref().unwrap_or(PI_SOURCE), clear.seq);
                ok()
            }
            Method::PaneReleaseAgent(release) => {
                let at = self.find(&release.pane_id)?;
                self.release(at, &release.source, release.seq);
                ok()
            }
            Method::AgentList(_) => json!({"type": "agent_list", "agents": self.agents_json()}),
            Method::AgentGet(of) => {
                // By name or pane; neither the kind nor the id before a move will do.
                let at = self
                    .panes
                    .iter()
                    .position(|it| it.id == of.target || it.name.as_ref() == Some(&of.target));
                let agent = at.and_then(|at| self.agent_json(at));
                let missing = || ("agent_not_found", format!("agent target {} not found", of.target));
                json!({"type": "agent_info", "agent": agent.ok_or_else(missing)?})
            }
            Method::WorktreeList(of) => self.worktree_list(of)?,
            Method::NotificationShow(notice) => {
                if notice.title.trim().is_empty() {
                    return Err(("invalid_params", "notification title is empty".to_owned()));
                }
                let reason = if self.notices { "shown" } else { "disabled" };
                json!({"type": "notification_show", "shown": self.notices, "reason": reason})
            }
            Method::EventsSubscribe(subscribe) => {
                let kinds = subscribe.subscriptions.into_iter().map(|it| (it.kind, it.pane_id)).collect();
                let opened = self.open_stream(kinds);
                let (stream, old) =
                    opened.map_err(|why| ("invalid_request", format!("invalid request: {why}")))?;
                return Ok(Answer::Stream(json!({"type": "subscription_started"}), old, stream));
            }
        };
        Ok(Answer::Result(result))
    }

    fn find(&self, pane: &str) -> Result<usize, Refusal> {
        self.pane_at(pane).ok_or_else(|| no("pane", pane))
    }

    fn read_pane(&mut self, read: &calls::Read) -> Result<Value, Refusal> {
        let at = self.find(&read.pane_id)?;
        let pane = &mut self.panes[at];
        let looks_back = matches!(read.source, Source::Recent | Source::RecentUnwrapped);
        let lines = if looks_back { read.lines.unwrap_or(usize::MAX) } else { VIEWPORT_ROWS };
        if looks_back && pane.full_screen && lines > VIEWPORT_ROWS {
            // The program gets wheel movements it never asked for.
            pane.disturbed += 1;
        }
        let above = if looks_back { &pane.scrollback[..] } else { &[] };
        let blank = VIEWPORT_ROWS.saturating_sub(pane.screen.len());
        let mut rows: Vec<&str> = above.iter().chain(&pane.screen).map(String::as_str).collect();
        // Rows of the grid count whether or not anything stands in them.
        rows.extend(std::iter::repeat_n("", blank));
        let taken = &rows[rows.len().saturating_sub(lines)..];
        Ok(json!({"type": "pane_read", "read": {
            "pane_id": pane.id, "workspace_id": pane.workspace, "tab_id": pane.tab,
            "source": read.source.as_str(), "format": read.format.as_deref().unwrap_or("text"),
            "text": taken.join("\n").trim_end_matches('\n'), "revision": 0,
            "truncated": taken.len() < rows.len(),
        }}))
    }

    fn process_info(&self, pane: &str) -> Result<Value, Refusal> {
        let pane = &self.panes[self.find(pane)?];
        let process = match &pane.process {
            Some(process) => {
                let (name, argv, cwd) = process.describe();
                let cwd = if cwd.is_empty() { pane.cwd.clone() } else { cwd };
                json!({"pid": process.pid, "name": name, "argv": argv, "cmdline": argv.join(" "), "cwd": cwd})
            }
            None => json!({"pid": pane.shell_pid, "name": "bash", "argv": ["/bin/bash"],
                           "cmdline": "/bin/bash", "cwd": pane.cwd}),
        };
        Ok(json!({"type": "pane_process_info", "process_info": {
            "pane_id": pane.id, "shell_pid": pane.shell_pid,
            "foreground_process_group_id": process["pid"], "foreground_processes": [process],
        }}))
    }

    fn worktree_list(&self, of: calls::OfCheckout) -> Result<Value, Refusal> {
        let path = match of.workspace_id {
            Some(id) => self.workspace(&id).map(|it| it.cwd.clone()).ok_or_else(|| no("workspace", &id))?,
            None => of.cwd.unwrap_or_default(),
        };
        self.worktrees_json(&path).ok_or_else(|| {
            ("not_git_worktree", "Herdr worktree actions require a path inside a Git work tree".to_owned())
        })
    }
}

fn ok() -> Value {
    json!({"type": "ok"})
}

fn no(what: &'static str, id: &str) -> Refusal {
    let code = match what {
        "workspace" => "workspace_not_found",
        "tab" => "tab_not_found",
        _ => "pane_not_found",
    };
    (code, format!("{what} {id} not found"))
}

fn state(state: calls::State) -> Status {
    match state {
        calls::State::Idle => Status::Idle,
        calls::State::Working => Status::Working,
        calls::State::Blocked => Status::Blocked,
        calls::State::Unknown => Status::Unknown,
    }
}

fn session(id: Option<String>, path: Option<String>) -> Option<Session> {
    let by_id = id.map(|value| Session { kind: "id", value });
    by_id.or_else(|| path.map(|value| Session { kind: "path", value }))
}

fn display(report: calls::Metadata) -> Result<Display, Refusal> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
    if report.source.is_empty() || report.source.len() > MAX_SOURCE || !report.source.bytes().all(fits) {
        let why =
            "metadata source may contain only ASCII letters, digits, colon, dot, underscore, and hyphen";
        return Err(("invalid_metadata_source", why.to_owned()));
    }
    let set_or_clear = |value: Option<String>, clear: bool| match (value, clear) {
        (_, true) => Some(None),
        (Some(value), false) => Some(Some(value)),
        (None, false) => None,
    };
    let change = Display {
        source: report.source,
        seq: report.seq,
        title: set_or_clear(report.title, report.clear_title),
        display_agent: set_or_clear(report.display_agent, report.clear_display_agent),
        state_labels: report.state_labels.or_else(|| report.clear_state_labels.then(Default::default)),
        tokens: report.tokens,
        ttl: report.ttl_ms.map(Duration::from_millis),
    };
    let changes_something = change.title.is_some()
        || change.display_agent.is_some()
        || change.state_labels.is_some()
        || change.tokens.is_some();
    if !changes_something {
        return Err(("invalid_metadata_request", "missing metadata field to set or clear".to_owned()));
    }
    Ok(change)
}
