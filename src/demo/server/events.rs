//! What subscribers are told.

use serde_json::{Value, json};

use super::state::State;

/// How many old global events a new subscription is told first.
const REPLAYED: usize = 512;
/// How many events are kept for streams to fetch.
const KEPT: usize = 2048;

/// The kind that tells an agent's status, for one pane and never from the past.
pub(super) const STATUS_KIND: &str = "pane.agent_status_changed";

/// The global kinds there are.
pub(super) const GLOBAL_KINDS: [&str; 24] = [
    "workspace.created",
    "workspace.updated",
    "workspace.metadata_updated",
    "workspace.renamed",
    "workspace.moved",
    "workspace.reordered",
    "workspace.closed",
    "workspace.focused",
    "worktree.created",
    "worktree.opened",
    "worktree.removed",
    "tab.created",
    "tab.closed",
    "tab.focused",
    "tab.renamed",
    "tab.moved",
    "pane.created",
    "pane.closed",
    "pane.updated",
    "pane.focused",
    "pane.moved",
    "pane.exited",
    "pane.agent_detected",
    "layout.updated",
];

/// One event that happened.
pub(super) struct Logged {
    number: u64,
    kind: &'static str,
    /// The pane, for those told only to its subscribers.
    pane: Option<String>,
    line: String,
}

/// What one connection has asked to be told, and how far it was told.
pub(super) struct Stream {
    kinds: Vec<(String, Option<String>)>,
    next: u64,
}

impl State {
    pub(super) fn latest_event(&self) -> u64 {
        self.next_event - 1
    }

    /// Tells a global event.
    pub(super) fn tell(&mut self, kind: &'static str, mut data: Value) {
        let name = kind.replace('.', "_");
        data["type"] = name.clone().into();
        let line = json!({"event": name, "data": data}).to_string();
        self.log_event(kind, None, line);
    }

    /// Tells those who watch this pane what its agent does.
    pub(super) fn tell_status(&mut self, at: usize) {
        let data = self.status_json(at);
        let pane = self.panes[at].id.clone();
        let line = json!({"event": STATUS_KIND, "data": data}).to_string();
        self.log_event(STATUS_KIND, Some(pane), line);
    }

    fn log_event(&mut self, kind: &'static str, pane: Option<String>, line: String) {
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        self.log.push_back(Logged { number: self.next_event, kind, pane, line });
        self.next_event += 1;
    }

    /// Checks a subscription as a whole: one unknown kind refuses all of it.
    pub(super) fn open_stream(
        &self,
        kinds: Vec<(String, Option<String>)>,
    ) -> Result<(Stream, Vec<String>), String> {
        let known = |kind: &str| {
            (GLOBAL_KINDS.contains(&kind) || kind == STATUS_KIND)
                && !self.unknown_kinds.iter().any(|it| it == kind)
        };
        if let Some((unknown, _)) = kinds.iter().find(|(kind, _)| !known(kind)) {
            let all: Vec<String> = GLOBAL_KINDS
                .iter()
                .chain([&STATUS_KIND])
                .filter(|kind| known(kind))
                .map(|kind| format!("`{kind}`"))
                .collect();
            return Err(format!("unknown variant `{unknown}`, expected one of {}", all.join(", ")));
        }
        if kinds.iter().any(|(kind, pane)| kind == STATUS_KIND && pane.is_none()) {
            return Err("missing field `pane_id`".to_owned());
        }
        let stream = Stream { kinds, next: self.next_event };
        let old: Vec<&Logged> =
            self.log.iter().filter(|event| event.pane.is_none() && stream.wants(event)).collect();
        let replayed =
            old[old.len().saturating_sub(REPLAYED)..].iter().map(|event| event.line.clone()).collect();
        Ok((stream, replayed))
    }

    /// What has happened since the stream was last asked.
    pub(super) fn news(&self, stream: &mut Stream) -> Vec<String> {
        let news = self
            .log
            .iter()
            .filter(|event| event.number >= stream.next && stream.wants(event))
            .map(|event| event.line.clone())
            .collect();
        stream.next = self.next_event;
        news
    }
}

impl Stream {
    fn wants(&self, event: &Logged) -> bool {
        self.kinds
            .iter()
            .any(|(kind, pane)| kind == event.kind && (event.pane.is_none() || *pane == event.pane))
    }
}
