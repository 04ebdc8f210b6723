//! Reading back whether Herdr lists us: what a lead will look for before it writes up.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::api::{Agent, AgentSession, Status};
use super::locate::PaneContext;
use crate::contract::Untrusted;

/// The source under which Pi's own sessions are reported; leads accept no other.
pub const SOURCE: &str = "herdr:pi";
/// The kind of agent leads accept.
pub const AGENT: &str = "pi";

/// A place in Herdr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The pane.
    pub pane: Untrusted,
    /// Its tab.
    pub tab: Untrusted,
    /// Its workspace.
    pub workspace: Untrusted,
}

/// What the agent list says about one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Exactly once, on our pane, with this status.
    Here(Status),
    /// Exactly once, but on another pane, tab or workspace.
    Elsewhere(Place),
    /// More than once.
    Several(Vec<Place>),
    /// Not at all.
    Absent(OnOurPane),
}

/// What is on our pane instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnOurPane {
    /// No agent: Herdr does not take the pane's program for one.
    Nothing,
    /// A Pi of which Herdr knows no session.
    NoSession,
    /// Something of another kind or session.
    Another {
        /// Its kind.
        agent: Untrusted,
    },
}

impl fmt::Display for OnOurPane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Herdr does not take this pane's program for Pi"),
            Self::NoSession => f.write_str("Herdr lists this pane's Pi without a session"),
            Self::Another { agent } => {
                write!(f, "Herdr lists another session ({}) on this pane", agent.first_units(40).escaped())
            }
        }
    }
}

/// Looks for `session` in the list as a lead does: source, agent and kind must fit, and it must be
/// there once.
pub fn find(agents: &[Agent], session: &Untrusted, here: &PaneContext) -> Listing {
    find_by(agents, |listed| names(listed, session), here)
}

/// The same for a session that is reported by its file, whatever that is called.
pub fn find_file(agents: &[Agent], file: &str, session: &Untrusted, here: &PaneContext) -> Listing {
    let is_file = |it: &AgentSession| {
        it.source == SOURCE && it.agent == AGENT && it.kind == "path" && it.value == *file
    };
    find_by(agents, |listed| is_file(listed) || names(listed, session), here)
}

fn find_by(agents: &[Agent], is_meant: impl Fn(&AgentSession) -> bool, here: &PaneContext) -> Listing {
    let naming: Vec<&Agent> =
        agents.iter().filter(|agent| agent.agent_session.as_ref().is_some_and(&is_meant)).collect();
    match naming.as_slice() {
        [] => Listing::Absent(on_our_pane(agents, here)),
        [only] => {
            let place = place(only);
            let is_here =
                place.pane == *here.pane && place.tab == *here.tab && place.workspace == *here.workspace;
            if is_here { Listing::Here(only.agent_status) } else { Listing::Elsewhere(place) }
        }
        several => Listing::Several(several.iter().map(|agent| place(agent)).collect()),
    }
}

/// Whether the listed session is ours. A restarted Herdr may have typed a command with our id into a
/// pane; what that started has a file whose name ends in the id, so such a path counts too.
fn names(listed: &AgentSession, session: &Untrusted) -> bool {
    if listed.source != SOURCE || listed.agent != AGENT {
        return false;
    }
    match listed.kind.as_wtf8() {
        b"id" => listed.value == *session,
        b"path" => {
            let file = listed.value.as_wtf8().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let stem = file.strip_suffix(b".jsonl").unwrap_or(file);
            stem.strip_suffix(session.as_wtf8()).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"_"))
        }
        _ => false,
    }
}

fn place(agent: &Agent) -> Place {
    Place { pane: agent.pane_id.clone(), tab: agent.tab_id.clone(), workspace: agent.workspace_id.clone() }
}

fn on_our_pane(agents: &[Agent], here: &PaneContext) -> OnOurPane {
    let Some(agent) = agents.iter().find(|agent| agent.pane_id == *here.pane) else {
        return OnOurPane::Nothing;
    };
    match (&agent.agent, &agent.agent_session) {
        (Some(kind), None) if *kind == AGENT => OnOurPane::NoSession,
        (kind, _) => OnOurPane::Another { agent: kind.clone().unwrap_or_else(|| Untrusted::from("agent")) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    fn agents(list: Value) -> Vec<Agent> {
        let raw = RawValue::from_string(json!({"agents": list}).to_string()).unwrap();
        Agent::read_all(&raw).unwrap().0
    }

    fn listed(pane: &str, session: Value) -> Value {
        json!({"pane_id": pane, "tab_id": "w1:t1", "workspace_id": "w1", "agent": "pi",
               "agent_status": "done", "agent_session": session})
    }

    fn judged(list: Value) -> Listing {
        let here = PaneContext { pane: "w1:p1".into(), tab: "w1:t1".into(), workspace: "w1".into() };
        find(&agents(list), &Untrusted::from("s-1"), &here)
    }

    #[test]
    fn only_one_fitting_entry_on_our_pane_counts() {
        let ours = json!({"source": "herdr:pi", "agent": "pi", "kind": "id", "value": "s-1"});
        assert_eq!(judged(json!([listed("w1:p1", ours.clone())])), Listing::Here(Status::Done));
        let Listing::Elsewhere(place) = judged(json!([listed("w1:p2", ours.clone())])) else { panic!() };
        assert_eq!(place.pane, "w1:p2");
        let path = json!({"source": "herdr:pi", "agent": "pi", "kind": "path", "value": "/s/2026_s-1.jsonl"});
        let Listing::Several(places) = judged(json!([listed("w1:p1", ours), listed("w1:p9", path)])) else {
            panic!()
        };
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn what_is_not_ours_is_told_apart() {
        assert_eq!(judged(json!([])), Listing::Absent(OnOurPane::Nothing));
        assert_eq!(judged(json!([listed("w1:p1", Value::Null)])), Listing::Absent(OnOurPane::NoSession));
        for (field, value) in
            [("source", "custom:pi"), ("agent", "claude"), ("kind", "name"), ("value", "s-12")]
        {
            let mut session = json!({"source": "herdr:pi", "agent": "pi", "kind": "id", "value": "s-1"});
            session[field] = value.into();
            let another = OnOurPane::Another { agent: Untrusted::from("pi") };
            assert_eq!(judged(json!([listed("w1:p1", session)])), Listing::Absent(another), "{field}");
        }
        let other_file =
            json!({"source": "herdr:pi", "agent": "pi", "kind": "path", "value": "/s/x_as-1.jsonl"});
        assert!(matches!(judged(json!([listed("w1:p2", other_file)])), Listing::Absent(OnOurPane::Nothing)));
    }
}
