//! Who is to be listed by Herdr, and how it is shown there.

use serde_json::Value;

use super::api::{Agent, Status};
use super::client::{AgentReport, report_params, session_params};
use super::listing::{self, AGENT, Listing, SOURCE};
use super::locate::PaneContext;
use crate::contract::{SessionId, Untrusted};

/// The title of a Chief's pane.
pub const TITLE: &str = "chief";

/// One entry of Herdr's list, as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    session: SessionId,
    /// The session file, for those that are reported by it.
    file: Option<String>,
    /// What its pane's token says it is.
    pub(super) role: &'static str,
    pub(super) title: String,
    pub(super) name: String,
}

impl Entry {
    /// A Chief, which is reported by its session.
    pub fn chief(session: SessionId, name: &str) -> Self {
        Self { session, file: None, role: "chief", title: TITLE.to_owned(), name: name.to_owned() }
    }

    /// A lead, which is reported by its session file, as Pi reports its own: so that a Chief can read
    /// there what was delivered. The path is absolute.
    pub fn lead(session: SessionId, file: &str, name: &str) -> Self {
        let file = Some(file.to_owned());
        Self { session, file, role: "lead", title: name.to_owned(), name: name.to_owned() }
    }

    /// What the list says of it.
    pub fn listing(&self, agents: &[Agent], here: &PaneContext) -> Listing {
        match &self.file {
            None => listing::find(agents, self.session.as_untrusted(), here),
            Some(file) => listing::find_file(agents, file, self.session.as_untrusted(), here),
        }
    }

    /// The parameters that report its state.
    pub(super) fn state_params(&self, pane: &str, state: Status, seq: u64) -> Value {
        let session = text(&self.session);
        self.by_file(report_params(report(pane, state, seq, &session)))
    }

    /// The parameters that report its session.
    pub(super) fn session_params(&self, pane: &str, seq: u64) -> Value {
        let session = text(&self.session);
        self.by_file(session_params(report(pane, Status::Idle, seq, &session)))
    }

    fn by_file(&self, mut params: Value) -> Value {
        if let (Some(file), Some(members)) = (&self.file, params.as_object_mut()) {
            members.remove("agent_session_id");
            members.insert("agent_session_path".to_owned(), file.as_str().into());
        }
        params
    }
}

fn report<'a>(pane: &'a str, state: Status, seq: u64, session: &'a str) -> AgentReport<'a> {
    AgentReport { pane, source: SOURCE, agent: AGENT, state, seq, session: Some(session) }
}

fn text(session: &SessionId) -> String {
    let text: &Untrusted = session.as_untrusted();
    text.to_str_lossy().into_owned()
}
