//! What programs report about themselves, and what is made of it.
//!
//! Every report of the right shape about a pane that exists is answered `ok`. Whether it has any
//! effect is another matter.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::state::{Pane, State};
use crate::herdr::Status;

/// The source that speaks for Pi; such reports need a Pi in the pane to show.
pub(super) const PI_SOURCE: &str = "herdr:pi";

/// What one source last reported about the program in a pane.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) agent: String,
    pub(super) state: Status,
    pub(super) session: Option<Session>,
}

/// The session in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) kind: &'static str,
    pub(super) value: String,
}

/// What one source last reported for display.
#[derive(Debug, Clone, Default)]
pub(super) struct Metadata {
    pub(super) title: Option<String>,
    pub(super) display_agent: Option<String>,
    pub(super) state_labels: BTreeMap<String, String>,
    pub(super) tokens: BTreeMap<String, String>,
    ends: Option<Instant>,
}

/// A change of what is shown.
pub(super) struct Display {
    pub(super) source: String,
    pub(super) seq: Option<u64>,
    /// Set, cleared, or left alone.
    pub(super) title: Option<Option<String>>,
    pub(super) display_agent: Option<Option<String>>,
    pub(super) state_labels: Option<BTreeMap<String, String>>,
    pub(super) tokens: Option<BTreeMap<String, Option<String>>>,
    pub(super) ttl: Option<Duration>,
}

/// The agent listed on a pane.
pub(super) struct Listed<'a> {
    pub(super) agent: &'a str,
    pub(super) session: Option<&'a Session>,
    /// Whether a report says what it does, rather than a look at the screen.
    pub(super) by_report: bool,
    state: Status,
}

impl Pane {
    /// The agent on this pane, if one is to be listed: a Pi that is really there, or what another
    /// source says is.
    pub(super) fn listed(&self) -> Option<Listed<'_>> {
        if self.is_pi {
            return Some(match self.reports.get(PI_SOURCE) {
                Some(report) => Listed {
                    agent: "pi",
                    session: report.session.as_ref(),
                    by_report: true,
                    state: report.state,
                },
                None => Listed { agent: "pi", session: None, by_report: false, state: Status::Idle },
            });
        }
        let (_, report) = self.reports.iter().find(|(source, _)| *source != PI_SOURCE)?;
        Some(Listed { agent: &report.agent, session: None, by_report: false, state: report.state })
    }

    /// Whether the report is newer than all from that source; if so it is now the newest.
    fn is_news(&mut self, source: &str, seq: Option<u64>) -> bool {
        let Some(seq) = seq else { return true };
        match self.seqs.get_mut(source) {
            Some(last) if *last >= seq => false,
            Some(last) => {
                *last = seq;
                true
            }
            None => {
                self.seqs.insert(source.to_owned(), seq);
                true
            }
        }
    }
}

impl State {
    pub(super) fn report_agent(
        &mut self,
        at: usize,
        source: &str,
        seq: Option<u64>,
        agent: String,
        state: Status,
        session: Option<Session>,
    ) {
        if !self.panes[at].is_news(source, seq) {
            return;
        }
        let was_listed = self.panes[at].listed().is_some();
        // Only sources of Herdr's own may say which session it is, and it is whatever this report
        // says: none, if it says none.
        let session = session.filter(|_| source == PI_SOURCE);
        self.panes[at].reports.insert(source.to_owned(), Report { agent, state, session });
        self.after_report(at, was_listed);
    }

    pub(super) fn report_session(
        &mut self,
        at: usize,
        source: &str,
        seq: Option<u64>,
        agent: String,
        session: Option<Session>,
    ) {
        if !self.panes[at].is_news(source, seq) || source != PI_SOURCE {
            return;
        }
        let was_listed = self.panes[at].listed().is_some();
        let before = self.panes[at].reports.get(source);
        if before.is_none_or(|report| report.session != session) {
            if before.is_some() {
                self.panes[at].name = None;
            }
            let report = Report { agent, state: Status::Unknown, session };
            self.panes[at].reports.insert(source.to_owned(), report);
        }
        self.after_report(at, was_listed);
    }

    /// Does nothing for a Pi, though the answer is `ok`.
    pub(super) fn release(&mut self, at: usize, source: &str, seq: Option<u64>) {
        if source == PI_SOURCE || !self.panes[at].is_news(source, seq) {
            return;
        }
        if let Some(report) = self.panes[at].reports.remove(source) {
            self.tell_released(at, &report.agent);
        }
        self.settle(at);
    }

    pub(super) fn clear_authority(&mut self, at: usize, source: &str, seq: Option<u64>) {
        if !self.panes[at].is_news(source, seq) {
            return;
        }
        let had = self.panes[at].reports.remove(source).is_some();
        if had && self.panes[at].listed().is_none() {
            let data = json!({"pane_id": self.panes[at].id, "workspace_id": self.panes[at].workspace});
            self.tell("pane.agent_detected", data);
        }
        self.settle(at);
    }

    fn after_report(&mut self, at: usize, was_listed: bool) {
        if !was_listed {
            self.tell_detected(at);
        }
        self.settle(at);
    }

    fn tell_detected(&mut self, at: usize) {
        let pane = &self.panes[at];
        if let Some(listed) = pane.listed() {
            let data = json!({"pane_id": pane.id, "workspace_id": pane.workspace, "agent": listed.agent});
            self.tell("pane.agent_detected", data);
        }
    }

    fn tell_released(&mut self, at: usize, agent: &str) {
        let pane = &self.panes[at];
        let data = json!({"pane_id": pane.id, "workspace_id": pane.workspace, "agent": agent,
                          "released": true, "final_status": pane.status.as_str()});
        self.tell("pane.agent_detected", data);
    }

    /// Shows what the reports now amount to.
    fn settle(&mut self, at: usize) {
        let seen = self.focused.as_deref() == Some(&*self.panes[at].id);
        let pane = &mut self.panes[at];
        let state = pane.listed().map(|listed| listed.state);
        pane.unseen |= matches!(state, Some(Status::Working | Status::Blocked));
        let shown = match state {
            None => {
                pane.unseen = false;
                Status::Unknown
            }
            Some(Status::Idle) if pane.unseen && !seen => Status::Done,
            Some(Status::Idle) => {
                pane.unseen = false;
                Status::Idle
            }
            Some(state) => state,
        };
        if pane.status != shown {
            pane.status = shown;
            self.changes += 1;
            self.panes[at].change_seq = self.changes;
            self.tell_status(at);
        }
    }

    pub(super) fn report_metadata(&mut self, at: usize, change: Display) {
        let pane = &mut self.panes[at];
        // Display and authority are numbered apart, even from one source.
        if !pane.is_news(&format!("display:{}", change.source), change.seq) {
            return;
        }
        let before = pane.shown();
        let metadata = pane.metadata.entry(change.source).or_default();
        if let Some(title) = change.title {
            metadata.title = title;
        }
        if let Some(display_agent) = change.display_agent {
            metadata.display_agent = display_agent;
        }
        if let Some(labels) = change.state_labels {
            metadata.state_labels = labels;
        }
        for (name, value) in change.tokens.unwrap_or_default() {
            match value {
                Some(value) => metadata.tokens.insert(name, value),
                None => metadata.tokens.remove(&name),
            };
        }
        metadata.ends = change.ttl.map(|ttl| Instant::now() + ttl);
        self.after_display(at, &before);
    }

    fn after_display(&mut self, at: usize, before: &Metadata) {
        let now = self.panes[at].shown();
        let heading_same = now.title == before.title
            && now.display_agent == before.display_agent
            && now.state_labels == before.state_labels;
        if heading_same && now.tokens == before.tokens {
            return;
        }
        self.panes[at].revision += 1;
        let shown = self.pane_json(&self.panes[at].id);
        self.tell("pane.updated", json!({"pane": shown}));
        if !heading_same {
            self.tell_status(at);
        }
    }

    /// Looks after processes that came or went and what has lasted long enough.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        for at in 0..self.panes.len() {
            self.follow_process(at);
            let pane = &mut self.panes[at];
            let before = pane.shown();
            pane.metadata.retain(|_, metadata| metadata.ends.is_none_or(|end| end > now));
            self.after_display(at, &before);
        }
    }

    fn follow_process(&mut self, at: usize) {
        let pane = &mut self.panes[at];
        let is_pi = pane.process.as_ref().is_some_and(super::process::Process::is_pi);
        if is_pi == pane.is_pi {
            return;
        }
        if is_pi {
            pane.is_pi = true;
            self.tell_detected(at);
        } else {
            self.tell_released(at, "pi");
            let pane = &mut self.panes[at];
            pane.is_pi = false;
            pane.name = None;
            // Title and tokens stay; so do the sequence numbers.
            pane.reports.remove(PI_SOURCE);
        }
        self.settle(at);
    }
}

impl Pane {
    /// What all sources together have shown.
    pub(super) fn shown(&self) -> Metadata {
        let mut all = Metadata::default();
        for metadata in self.metadata.values() {
            all.title = metadata.title.clone().or(all.title);
            all.display_agent = metadata.display_agent.clone().or(all.display_agent);
            all.state_labels.extend(metadata.state_labels.clone());
            all.tokens.extend(metadata.tokens.clone());
        }
        all
    }
}
