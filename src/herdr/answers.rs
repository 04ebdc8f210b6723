//! The smaller replies: a ping, a pane's text and programs, a repository's checkouts, a notice.

use serde_json::value::RawValue;

use super::fields::{elements, flag, member, members, text, whole};
use crate::contract::Untrusted;

/// The answer to `ping`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pong {
    /// Herdr's release.
    pub version: Option<Untrusted>,
    /// The protocol it speaks.
    pub protocol: u64,
}

/// One entry of `worktree.list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorktreeEntry {
    /// The checkout.
    pub path: Option<Untrusted>,
    /// The branch checked out there.
    pub branch: Option<Untrusted>,
    /// The workspace open on it.
    pub open_workspace_id: Option<Untrusted>,
    /// Whether it is a linked one rather than the main one.
    pub is_linked_worktree: Option<bool>,
    /// Whether no branch is checked out.
    pub is_detached: Option<bool>,
}

/// Text of a pane (`pane.read`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRead {
    /// Rows joined by newlines.
    pub text: Untrusted,
    /// `visible` or `recent_unwrapped`: what was asked for.
    pub source: &'static str,
    /// Whether there was more above.
    pub truncated: Option<bool>,
}

/// The programs in a pane (`pane.process_info`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessInfo {
    /// The pane's shell.
    pub shell_pid: Option<u64>,
    /// The group that has the terminal.
    pub foreground_process_group_id: Option<u64>,
    /// The programs of that group.
    pub foreground_processes: Vec<Process>,
}

/// One program in a pane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Its process id.
    pub pid: Option<u64>,
    /// Its name.
    pub name: Option<Untrusted>,
    /// Its own `argv0` if Herdr gives one, else the first of `argv`.
    pub argv0: Option<Untrusted>,
    /// Its arguments, the program's name included.
    pub argv: Vec<Untrusted>,
    /// The arguments as one line.
    pub cmdline: Option<Untrusted>,
    /// Where it is.
    pub cwd: Option<Untrusted>,
    /// What the system says of it, where Herdr tells; 0.8.2 does not.
    pub state: Option<Untrusted>,
}

/// What became of a notice (`notification.show`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Whether Herdr showed it.
    pub shown: bool,
    /// Why not; `disabled` is what Herdr does unless it was configured.
    pub reason: Option<Untrusted>,
}

impl WorktreeEntry {
    /// The entries of a `worktree.list` result; what is no object is passed over.
    pub fn read_all(result: &RawValue) -> Vec<Self> {
        let entries = member(result, b"worktrees").and_then(elements).unwrap_or_default();
        entries.into_iter().filter_map(Self::read).collect()
    }

    fn read(raw: &RawValue) -> Option<Self> {
        let mut found = Self::default();
        members(raw, |key, value| match key {
            b"path" => found.path = text(value),
            b"branch" => found.branch = text(value),
            b"open_workspace_id" => found.open_workspace_id = text(value),
            b"is_linked_worktree" => found.is_linked_worktree = flag(value),
            b"is_detached" => found.is_detached = flag(value),
            _ => {}
        })
        .then_some(found)
    }
}

impl PaneRead {
    /// From the `result` of `pane.read` that was asked for `source`.
    pub fn of_result(result: &RawValue, source: &'static str) -> Option<Self> {
        let (mut body, mut truncated) = (None, None);
        members(member(result, b"read")?, |key, value| match key {
            b"text" => body = text(value),
            b"truncated" => truncated = flag(value),
            _ => {}
        });
        Some(Self { text: body?, source, truncated })
    }
}

impl ProcessInfo {
    /// From the `result` of `pane.process_info`.
    pub fn of_result(result: &RawValue) -> Option<Self> {
        let mut found = Self::default();
        members(member(result, b"process_info")?, |key, value| match key {
            b"shell_pid" => found.shell_pid = whole(value),
            b"foreground_process_group_id" => found.foreground_process_group_id = whole(value),
            b"foreground_processes" => {
                let all = elements(value).unwrap_or_default();
                found.foreground_processes = all.into_iter().filter_map(Process::read).collect();
            }
            _ => {}
        })
        .then_some(found)
    }
}

impl Process {
    fn read(raw: &RawValue) -> Option<Self> {
        let mut found = Self::default();
        let is_object = members(raw, |key, value| match key {
            b"pid" => found.pid = whole(value),
            b"name" => found.name = text(value),
            b"argv0" => found.argv0 = text(value),
            b"argv" => {
                found.argv = elements(value).unwrap_or_default().into_iter().filter_map(text).collect()
            }
            b"cmdline" => found.cmdline = text(value),
            b"cwd" => found.cwd = text(value),
            b"state" => found.state = text(value),
            _ => {}
        });
        found.argv0 = found.argv0.or_else(|| found.argv.first().cloned());
        is_object.then_some(found)
    }
}

impl Pong {
    /// From the `result` of `ping`; none without a protocol.
    pub fn of_result(result: &RawValue) -> Option<Self> {
        let protocol = member(result, b"protocol").and_then(whole)?;
        Some(Self { version: member(result, b"version").and_then(text), protocol })
    }
}

impl Shown {
    /// From the `result` of `notification.show`.
    pub fn of_result(result: &RawValue) -> Option<Self> {
        let shown = member(result, b"shown").and_then(flag)?;
        Some(Self { shown, reason: member(result, b"reason").and_then(text) })
    }
}
