//! The projection itself: from evidence to the leads, fail closed.

use std::collections::{HashMap, HashSet};

use super::evidence::{AgentSession, Evidence, LiveAgent, State};
use super::left_out::{LeftOut, Reason, Subject};
use super::managed::{self, Agent, Counts};
use super::order;
use crate::contract::{LeadRecord, NativeId, PendingAsk, SessionId, Untrusted, Uuid};

/// A lead that is supervised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// Its session: the only thing that names it exactly.
    pub session: SessionId,
    /// Of its lead record; another one means that the lead was started anew.
    pub instance: Uuid,
    /// Workspace label `/` name.
    pub display_name: Untrusted,
    /// The name alone.
    pub name: Untrusted,
    /// Its workspace's id.
    pub workspace: NativeId,
    /// Repository and branch, else the workspace's label, directory or id.
    pub workspace_label: Untrusted,
    /// The repository's name, where known.
    pub repo: Option<Untrusted>,
    /// The branch checked out, where known.
    pub branch: Option<Untrusted>,
    /// Its tab's id.
    pub tab: NativeId,
    /// Its pane's id.
    pub pane: NativeId,
    /// What it does itself.
    pub state: State,
    /// What it waits to be told.
    pub pending_ask: Option<PendingAsk>,
    /// How many agents it has.
    pub counts: Counts,
    /// Its agents, at most [`managed::MAX_LISTED`].
    pub agents: Vec<Agent>,
    /// Its session file, not empty. Never part of any output.
    pub session_file: Option<Untrusted>,
    /// Its working directory.
    pub cwd: Option<Untrusted>,
}

impl Lead {
    /// Whether an ask of it is pending.
    pub fn needs_you(&self) -> bool {
        self.pending_ask.is_some()
    }

    /// The staff tools that make sense for it now, in the contract's order. Advice: every action
    /// checks again.
    pub fn available_tools(&self) -> Vec<&'static str> {
        [
            ("staff_inspect", true),
            ("staff_transcript", self.session_file.is_some()),
            ("staff_message", true),
            ("staff_reply", self.needs_you()),
        ]
        .into_iter()
        .filter_map(|(tool, makes_sense)| makes_sense.then_some(tool))
        .collect()
    }
}

/// The leads, and what is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roster {
    /// By display name, then session; each session once.
    pub leads: Vec<Lead>,
    /// By reason, gravest first, then by what it is.
    pub left_out: Vec<LeftOut>,
}

impl Roster {
    /// The lead of exactly this session.
    pub fn lead(&self, session: &SessionId) -> Option<&Lead> {
        self.leads.iter().find(|lead| lead.session == *session)
    }

    /// Why `session` is no lead, if anything of it was left out: of several reasons rather one that
    /// concerns it as a lead than one that concerns it as somebody's agent.
    pub fn why_not(&self, session: &SessionId) -> Option<&LeftOut> {
        let of_it = || self.left_out.iter().filter(|it| it.subject.session() == Some(session.as_untrusted()));
        of_it().find(|it| !matches!(it.subject, Subject::ManagedAgent { .. })).or_else(|| of_it().next())
    }

    /// How many live agents are left out because another session owns them, and everything else that
    /// is left out. There may be hundreds of the former, which is how it should be.
    pub fn managed_and_others(&self) -> (usize, impl Iterator<Item = &LeftOut>) {
        let managed = self.left_out.iter().filter(|left| left.reason == Reason::Managed).count();
        (managed, self.left_out.iter().filter(|left| left.reason != Reason::Managed))
    }
}

/// An agent whose ids can be used.
struct Candidate<'a> {
    agent: &'a LiveAgent,
    session: SessionId,
    workspace: NativeId,
    tab: NativeId,
    pane: NativeId,
}

impl<'a> Candidate<'a> {
    fn of(agent: &'a LiveAgent) -> Result<Self, Reason> {
        let place = |id: &Option<Untrusted>, which| {
            id.clone().and_then(NativeId::new).ok_or(Reason::UnusablePlace(which))
        };
        let session = match &agent.session {
            AgentSession::Known(session) => session.clone(),
            AgentSession::Unknown(why) => return Err(Reason::UnknownSession(why.clone())),
        };
        Ok(Self {
            agent,
            session: SessionId::new(session).ok_or(Reason::UnusableSession)?,
            workspace: place(&agent.workspace, "workspace")?,
            tab: place(&agent.tab, "tab")?,
            pane: place(&agent.pane, "pane")?,
        })
    }

    fn place(&self) -> (&NativeId, &NativeId, &NativeId) {
        (&self.workspace, &self.tab, &self.pane)
    }
}

/// Who is a lead, after `docs/contract.md`: one live Pi agent of a known session on a pane of its
/// own, with exactly one valid lead record, that is neither the Chief nor anybody's managed agent.
///
/// The leads, their counts and what is left out do not depend on the order of the evidence; a
/// lead's agents are listed in the order of [`Evidence::managed`].
pub fn project(evidence: &Evidence) -> Roster {
    let mut left_out = Vec::new();
    let mut candidates = Vec::new();
    for agent in &evidence.agents {
        match Candidate::of(agent) {
            Ok(candidate) => candidates.push(candidate),
            Err(reason) => left_out.push(LeftOut { subject: subject_of(agent), reason }),
        }
    }
    let records = Records::of(evidence);
    let crowd = Crowd::of(&candidates);

    let mut leads = Vec::new();
    for candidate in &candidates {
        match judge(candidate, evidence, &records, &crowd) {
            Ok(record) => leads.push(lead(candidate, record, evidence)),
            Err(reason) => left_out.push(LeftOut { subject: subject_of(candidate.agent), reason }),
        }
    }
    leads.sort_by(order::compare_leads);

    let sessions: Vec<&SessionId> = leads.iter().map(|lead| &lead.session).collect();
    let (herds, without_lead) = managed::assign(&sessions, &evidence.managed);
    left_out.extend(without_lead);
    for (lead, herd) in leads.iter_mut().zip(herds) {
        lead.counts = herd.counts;
        lead.agents = herd.agents;
    }

    left_out.extend(records.left_over(evidence));
    left_out.extend(evidence.broken_mailboxes.iter().map(|mailbox| LeftOut {
        subject: Subject::Mailbox { directory: mailbox.directory.clone() },
        reason: Reason::BrokenMailbox(mailbox.why.clone()),
    }));
    left_out.sort_by(|a, b| (&a.reason, &a.subject).cmp(&(&b.reason, &b.subject)));
    left_out.dedup();
    Roster { leads, left_out }
}

/// Whether the agent is a lead, and by which record.
fn judge<'a>(
    candidate: &Candidate<'_>,
    evidence: &Evidence,
    records: &Records<'a>,
    crowd: &Crowd<'_>,
) -> Result<&'a LeadRecord, Reason> {
    let session = &candidate.session;
    if evidence.chief_session.as_ref() == Some(session) {
        return Err(Reason::IsChief);
    }
    if evidence.managed_session_ids.contains(session.as_untrusted()) {
        return Err(Reason::Managed);
    }
    // A broken record beside a good one leaves the session out too: which of them counts is open.
    if !records.unreadable.is_empty()
        && let Some(why) = records.unreadable.get(session.hash().as_str())
    {
        return Err(Reason::UnreadableRecord((*why).to_owned()));
    }
    let record = match records.valid.get(session).map(Vec::as_slice) {
        None | Some([]) => return Err(Reason::NoRecord),
        Some([record]) => *record,
        Some(_) => return Err(Reason::DuplicateRecord),
    };
    if crowd.of_session.get(session).is_some_and(|count| *count > 1) {
        return Err(Reason::DuplicateSession);
    }
    if crowd.of_pane.get(&candidate.place()).is_some_and(|sessions| sessions.len() > 1) {
        return Err(Reason::SharedPane);
    }
    Ok(record)
}

fn lead(candidate: &Candidate<'_>, record: &LeadRecord, evidence: &Evidence) -> Lead {
    let agent = candidate.agent;
    let provenance = evidence.provenance.get(candidate.workspace.as_untrusted());
    let names = order::names(agent, &candidate.session, &candidate.workspace, provenance);
    let present = |text: Option<&Untrusted>| text.filter(|text| !text.is_empty()).cloned();
    Lead {
        session: candidate.session.clone(),
        instance: record.instance,
        display_name: names.display_name,
        name: names.name,
        workspace: candidate.workspace.clone(),
        workspace_label: names.workspace_label,
        repo: present(provenance.and_then(|it| it.repo.as_ref())),
        branch: present(provenance.and_then(|it| it.branch.as_ref())),
        tab: candidate.tab.clone(),
        pane: candidate.pane.clone(),
        state: agent.state,
        pending_ask: record.pending_ask.clone(),
        counts: Counts::default(),
        agents: Vec::new(),
        session_file: present(agent.session_file.as_ref()),
        cwd: present(agent.cwd.as_ref()),
    }
}

fn subject_of(agent: &LiveAgent) -> Subject {
    Subject::Agent {
        session: match &agent.session {
            AgentSession::Known(session) => Some(session.clone()),
            AgentSession::Unknown(_) => None,
        },
        workspace: agent.workspace.clone(),
        tab: agent.tab.clone(),
        pane: agent.pane.clone(),
    }
}

/// How many usable agents show a session, and how many sessions show on a pane.
struct Crowd<'a> {
    of_session: HashMap<&'a SessionId, usize>,
    of_pane: HashMap<(&'a NativeId, &'a NativeId, &'a NativeId), HashSet<&'a SessionId>>,
}

impl<'a> Crowd<'a> {
    fn of(candidates: &'a [Candidate<'_>]) -> Self {
        let mut crowd = Self { of_session: HashMap::new(), of_pane: HashMap::new() };
        for candidate in candidates {
            *crowd.of_session.entry(&candidate.session).or_default() += 1;
            crowd.of_pane.entry(candidate.place()).or_default().insert(&candidate.session);
        }
        crowd
    }
}

/// The lead records by session, and by hash where they are not valid.
struct Records<'a> {
    valid: HashMap<&'a SessionId, Vec<&'a LeadRecord>>,
    unreadable: HashMap<&'a str, &'a str>,
}

impl<'a> Records<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let mut valid: HashMap<_, Vec<_>> = HashMap::new();
        for record in &evidence.leads {
            valid.entry(&record.session).or_default().push(record);
        }
        let mut unreadable: HashMap<&str, &str> = HashMap::new();
        for record in &evidence.unreadable_leads {
            if let Some(hash) = record.hash.as_deref() {
                // Of several reasons the same one is told, whatever the order.
                let why = unreadable.entry(hash).or_insert(&record.why);
                *why = (*why).min(&record.why);
            }
        }
        Self { valid, unreadable }
    }

    /// Records that belong to no live agent. Where an agent shows the session, what is wrong was
    /// told of the agent already, except that an unreadable record is always named itself.
    fn left_over(&self, evidence: &Evidence) -> Vec<LeftOut> {
        let shown: HashSet<&Untrusted> = (evidence.agents.iter())
            .filter_map(|agent| match &agent.session {
                AgentSession::Known(session) => Some(session),
                AgentSession::Unknown(_) => None,
            })
            .collect();
        let mut left_out: Vec<LeftOut> = (evidence.unreadable_leads.iter())
            .map(|record| LeftOut {
                subject: Subject::Record { session: None, hash: record.hash.clone() },
                reason: Reason::UnreadableRecord(record.why.clone()),
            })
            .collect();
        for (session, records) in &self.valid {
            if shown.contains(session.as_untrusted()) {
                continue;
            }
            let reason = if evidence.chief_session.as_ref() == Some(*session) {
                Reason::IsChief
            } else if records.len() > 1 {
                Reason::DuplicateRecord
            } else {
                Reason::NoAgent
            };
            left_out.push(LeftOut {
                subject: Subject::Record { session: Some((*session).clone()), hash: Some(session.hash()) },
                reason,
            });
        }
        left_out
    }
}
