//! Managed agents: which lead each belongs to, and how many a lead has.

use std::collections::{HashMap, HashSet};

use super::evidence::{ManagedAgent, State};
use super::left_out::{LeftOut, Reason, Subject};
use crate::contract::{SessionId, Untrusted};

/// Most agents of a lead that are listed by name; the counts are of all.
pub const MAX_LISTED: usize = 32;

/// How many agents a lead has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Those working, settling or starting.
    pub active: usize,
    /// Those blocked.
    pub blocked: usize,
    /// All.
    pub total: usize,
}

/// A managed agent as its lead lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its session.
    pub session: SessionId,
    /// The session that owns it: the lead, or another of its agents.
    pub owner: SessionId,
    /// What its owner calls it, else its session.
    pub label: Untrusted,
    /// Its workspace, where known.
    pub workspace: Option<Untrusted>,
    /// Its pane, where known.
    pub pane: Option<Untrusted>,
    /// What it does.
    pub state: State,
}

/// The agents of one lead: at most [`MAX_LISTED`] listed, all counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Herd {
    /// How many.
    pub counts: Counts,
    /// The listed ones, in the order of the evidence.
    pub agents: Vec<Agent>,
}

/// Where an owner chain ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Lead(usize),
    Ambiguous,
    Cycle,
    Nobody,
}

/// Gives each lead its agents: one [`Herd`] for each of `leads`, in their order. An agent whose id
/// is not unique, or whose owner chain runs in a circle, over such an id or to no lead, is nobody's
/// and is named instead.
pub fn assign(leads: &[&SessionId], managed: &[ManagedAgent]) -> (Vec<Herd>, Vec<LeftOut>) {
    let mut herds = vec![Herd::default(); leads.len()];
    let mut left_out = Vec::new();
    let mut owners = Owners::new(leads, managed);
    for agent in managed {
        let end = if owners.ambiguous.contains(&agent.session) {
            End::Ambiguous
        } else {
            owners.end_of(&agent.owner)
        };
        let reason = match end {
            End::Lead(lead) => {
                add(&mut herds[lead], agent);
                continue;
            }
            End::Ambiguous => Reason::AmbiguousAgent,
            End::Cycle => Reason::AgentCycle,
            End::Nobody if agent.state == State::Lost => Reason::Elsewhere,
            End::Nobody => Reason::NoOwner,
        };
        left_out.push(LeftOut {
            subject: Subject::ManagedAgent { session: agent.session.clone(), label: agent.label.clone() },
            reason,
        });
    }
    (herds, left_out)
}

fn add(herd: &mut Herd, agent: &ManagedAgent) {
    herd.counts.total += 1;
    herd.counts.active += usize::from(agent.state.is_active());
    herd.counts.blocked += usize::from(agent.state == State::Blocked);
    if herd.agents.len() < MAX_LISTED {
        herd.agents.push(Agent {
            session: agent.session.clone(),
            owner: agent.owner.clone(),
            label: agent.label.clone().unwrap_or_else(|| agent.session.as_untrusted().clone()),
            workspace: agent.workspace.clone(),
            pane: agent.pane.clone(),
            state: agent.state,
        });
    }
}

struct Owners<'a> {
    /// Ends already known; leads are their own.
    known: HashMap<&'a SessionId, End>,
    owner: HashMap<&'a SessionId, &'a SessionId>,
    ambiguous: HashSet<&'a SessionId>,
}

impl<'a> Owners<'a> {
    fn new(leads: &[&'a SessionId], managed: &'a [ManagedAgent]) -> Self {
        let mut owner = HashMap::with_capacity(managed.len());
        let mut ambiguous = HashSet::new();
        for agent in managed {
            if owner.insert(&agent.session, &agent.owner).is_some() {
                ambiguous.insert(&agent.session);
            }
        }
        let known = leads.iter().enumerate().map(|(at, lead)| (*lead, End::Lead(at))).collect();
        Self { known, owner, ambiguous }
    }

    /// Every session on the way is remembered, so that long chains cost their length once.
    fn end_of(&mut self, start: &'a SessionId) -> End {
        let mut way = HashSet::new();
        let mut at = start;
        let end = loop {
            if let Some(end) = self.known.get(at) {
                break *end;
            }
            if self.ambiguous.contains(at) {
                break End::Ambiguous;
            }
            if !way.insert(at) {
                break End::Cycle;
            }
            match self.owner.get(at) {
                Some(owner) => at = owner,
                None => break End::Nobody,
            }
        };
        self.known.extend(way.into_iter().map(|session| (session, end)));
        end
    }
}
