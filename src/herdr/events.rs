//! The stream of events, after the section "Watching" of `docs/herdr.md`.
//!
//! An event only says that it is time to look again. Old ones are replayed first, global ones never
//! tell a status change, and what an event carries may be outdated when it arrives.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::api::Status;
use super::client::Lines;
use super::error::{HerdrError, excerpt};
use super::fields::{member, text};
use crate::contract::Untrusted;

/// The global kinds worth a fresh look at the inventory.
pub const GLOBAL_KINDS: [&str; 23] = [
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
];

/// Kinds that every supported Herdr has; what is left to ask for when a refusal names no culprit.
const BASIC_KINDS: [&str; 9] = [
    "workspace.created",
    "workspace.closed",
    "workspace.renamed",
    "tab.created",
    "tab.closed",
    "pane.created",
    "pane.closed",
    "pane.exited",
    "pane.agent_detected",
];

/// The kind that tells a pane's agent's status; it costs the server, so: panes on screen, at most
/// [`MAX_WATCHED_PANES`].
const STATUS_KIND: &str = "pane.agent_status_changed";
/// See [`Subscription::status_of`].
pub const MAX_WATCHED_PANES: usize = 10;

/// One kind of event to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    kind: String,
    pane: Option<String>,
}

impl Subscription {
    /// A global kind, as `pane.created`.
    pub fn global(kind: &str) -> Self {
        Self { kind: kind.to_owned(), pane: None }
    }

    /// The status changes of the agent in one pane.
    pub fn status_of(pane: &str) -> Self {
        Self { kind: STATUS_KIND.to_owned(), pane: Some(pane.to_owned()) }
    }

    /// All of [`GLOBAL_KINDS`].
    pub fn all_global() -> Vec<Self> {
        GLOBAL_KINDS.iter().map(|kind| Self::global(kind)).collect()
    }

    /// The kind's name.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn params(&self) -> Value {
        match &self.pane {
            Some(pane) => json!({"type": self.kind, "pane_id": pane}),
            None => json!({"type": self.kind}),
        }
    }

    /// Splits `kinds` after a refusal into what to ask for again and the kinds left out: those the
    /// refusal names as unknown, else everything newer than the basic ones.
    pub(super) fn without_unknown(kinds: &[Self], refusal: &Untrusted) -> (Vec<Self>, Vec<String>) {
        let refusal = refusal.to_str_lossy();
        // What stands after "expected" are the kinds it does know.
        let complaint = refusal.split("expected").next().unwrap_or_default();
        let is_named = |kind: &Self| complaint.contains(&format!("`{}`", kind.kind));
        let is_newer = |kind: &Self| kind.pane.is_none() && !BASIC_KINDS.contains(&kind.kind.as_str());
        let split = |leave: &dyn Fn(&Self) -> bool| {
            let (left, kept): (Vec<Self>, Vec<Self>) = kinds.iter().cloned().partition(leave);
            (kept, left.into_iter().map(|kind| kind.kind).collect::<Vec<_>>())
        };
        let by_name = split(&is_named);
        if by_name.1.is_empty() { split(&is_newer) } else { by_name }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name: snake-cased for global kinds, dotted for those of a pane.
    pub name: Untrusted,
    /// The pane it is about.
    pub pane_id: Option<Untrusted>,
    /// The status it tells.
    pub agent_status: Option<Status>,
}

/// A running subscription. It ends with an error; open another one after a pause.
pub struct Events {
    lines: Lines,
    refused: Vec<String>,
}

impl Events {
    pub(super) fn new(lines: Lines, refused: Vec<String>) -> Self {
        Self { lines, refused }
    }

    /// The kinds this Herdr does not know.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Waits for the next event, without a time-out. May be dropped and called again.
    ///
    /// # Errors
    /// [`HerdrError::Closed`] when the stream ends, [`HerdrError::Garbage`] for what is no event;
    /// after the latter the stream can still be read.
    pub async fn next(&mut self) -> Result<Event, HerdrError> {
        const METHOD: &str = "events.subscribe";
        let line = self.lines.next(METHOD).await?;
        Event::of_line(&line).ok_or_else(|| HerdrError::Garbage {
            method: METHOD.to_owned(),
            why: "no event",
            excerpt: excerpt(&line),
        })
    }
}

impl Event {
    /// From a line of the stream.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let decoded = String::from_utf8_lossy(line);
        let raw: &RawValue = serde_json::from_str(&decoded).ok()?;
        let name = member(raw, b"event").and_then(text)?;
        let data = member(raw, b"data");
        Some(Self {
            name,
            pane_id: data.and_then(|data| member(data, b"pane_id")).and_then(text),
            agent_status: data.and_then(|data| member(data, b"agent_status")).map(Status::read),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> Vec<Subscription> {
        names.iter().map(|name| Subscription::global(name)).collect()
    }

    #[test]
    fn a_refusal_costs_only_the_kind_it_names() {
        let asked = kinds(&["pane.created", "layout.updated", "pane.closed"]);
        let refusal = Untrusted::from(
            "invalid request: unknown variant `layout.updated`, expected one of `pane.created`, `pane.closed`",
        );
        let (kept, left_out) = Subscription::without_unknown(&asked, &refusal);
        assert_eq!(kept, kinds(&["pane.created", "pane.closed"]));
        assert_eq!(left_out, ["layout.updated"]);
    }

    #[test]
    fn a_refusal_that_names_none_costs_the_newer_kinds() {
        let mut asked = kinds(&["pane.created", "pane.updated"]);
        asked.push(Subscription::status_of("w1:p1"));
        let (kept, left_out) = Subscription::without_unknown(&asked, &Untrusted::from("no"));
        assert_eq!(kept, [Subscription::global("pane.created"), Subscription::status_of("w1:p1")]);
        assert_eq!(left_out, ["pane.updated"]);
    }
}
