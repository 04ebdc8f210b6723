//! What holds of the projection for any evidence.

use std::collections::HashSet;

use headman::contract::{SessionId, Untrusted};
use headman::herd::evidence::UnreadableRecord;
use headman::herd::{
    AgentSession, Evidence, LeftOut, LiveAgent, Reason, Roster, State, Subject, order, project,
};
use proptest::prelude::*;

use crate::herd_rules::{managed, record};

const STATES: [State; 8] = [
    State::Working,
    State::Blocked,
    State::Settling,
    State::Starting,
    State::Idle,
    State::Done,
    State::Unknown,
    State::Lost,
];

/// Few sessions and places, so that they meet often.
fn any_session() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "A", "\0a", "", "😀😀😀😀😀"])
        .prop_map(String::from)
}

fn any_agent() -> impl Strategy<Value = LiveAgent> {
    let session = prop_oneof![
        9 => any_session().prop_map(|session| AgentSession::Known(session.as_str().into())),
        1 => Just(AgentSession::Unknown("why".to_owned())),
    ];
    let pane = prop::sample::select(vec!["p1", "p2", "p3", "p4", "p5", "p6", "p7", " "]);
    let name = prop::option::of(prop::sample::select(vec!["n", "N", "m"]));
    (session, pane, name, prop::sample::select(STATES.to_vec())).prop_map(|(session, pane, name, state)| {
        LiveAgent {
            workspace: Some("w".into()),
            tab: Some("t".into()),
            pane: Some(pane.into()),
            token_name: name.map(Untrusted::from),
            state,
            ..LiveAgent::new(session)
        }
    })
}

fn some_session() -> impl Strategy<Value = SessionId> {
    any_session().prop_filter_map("empty", |session| SessionId::new(session.as_str()))
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let managed = (some_session(), some_session(), prop::sample::select(STATES.to_vec())).prop_map(
        |(session, owner, state)| {
            managed(
                &format!("m{}", session.as_untrusted().to_str_lossy()),
                // Owned by a lead or by an agent.
                &match state {
                    State::Lost | State::Idle => format!("m{}", owner.as_untrusted().to_str_lossy()),
                    _ => owner.as_untrusted().to_str_lossy().into_owned(),
                },
                state,
            )
        },
    );
    (
        prop::collection::vec(any_agent(), 0..10),
        prop::collection::vec(some_session(), 0..10),
        prop::collection::vec(managed, 0..30),
        prop::collection::btree_set(any_session(), 0..2),
        prop::option::of(some_session()),
        prop::option::weighted(0.2, some_session()),
    )
        .prop_map(|(agents, records, managed, ids, chief_session, broken)| Evidence {
            agents,
            leads: records.iter().map(|session| record(&session.as_untrusted().to_str_lossy())).collect(),
            managed,
            managed_session_ids: ids.iter().map(|session| session.as_str().into()).collect(),
            unreadable_leads: (broken.iter())
                .map(|session| UnreadableRecord { hash: Some(session.hash()), why: "why".to_owned() })
                .collect(),
            chief_session,
            ..Evidence::default()
        })
}

/// Agents are listed in the order of the evidence; all else must not depend on it.
fn without_agent_order(mut roster: Roster) -> Roster {
    for lead in &mut roster.leads {
        lead.agents.sort_by(|a, b| a.session.cmp(&b.session));
    }
    roster
}

proptest! {
    #[test]
    fn the_projection_is_independent_of_the_order_of_its_inputs(
        (evidence, shuffled) in any_evidence().prop_flat_map(|evidence| {
            let parts = (
                Just(evidence.agents.clone()).prop_shuffle(),
                Just(evidence.leads.clone()).prop_shuffle(),
                Just(evidence.managed.clone()).prop_shuffle(),
            );
            (Just(evidence), parts).prop_map(|(evidence, (agents, leads, managed))| {
                let shuffled = Evidence { agents, leads, managed, ..evidence.clone() };
                (evidence, shuffled)
            })
        })
    ) {
        prop_assert_eq!(
            without_agent_order(project(&evidence)),
            without_agent_order(project(&shuffled))
        );
    }

    #[test]
    fn no_session_leads_twice_and_every_agent_is_a_lead_or_named(evidence in any_evidence()) {
        let roster = project(&evidence);
        let sessions: HashSet<_> = roster.leads.iter().map(|lead| &lead.session).collect();
        prop_assert_eq!(sessions.len(), roster.leads.len());
        let panes: HashSet<_> = roster.leads.iter().map(|lead| &lead.pane).collect();
        prop_assert_eq!(panes.len(), roster.leads.len());
        for lead in &roster.leads {
            prop_assert!(Some(&lead.session) != evidence.chief_session.as_ref());
            prop_assert!(!evidence.managed_session_ids.contains(lead.session.as_untrusted()));
            prop_assert_eq!(evidence.leads.iter().filter(|it| it.session == lead.session).count(), 1);
        }
        for agent in &evidence.agents {
            let named = roster.left_out.iter().any(|LeftOut { subject, .. }| {
                matches!(subject, Subject::Agent { pane, session, .. }
                    if *pane == agent.pane && match &agent.session {
                        AgentSession::Known(it) => session.as_ref() == Some(it),
                        AgentSession::Unknown(_) => session.is_none(),
                    })
            });
            let leads = roster.leads.iter().any(|lead| match &agent.session {
                AgentSession::Known(it) => {
                    lead.session.as_untrusted() == it && agent.pane.as_ref() == Some(lead.pane.as_untrusted())
                }
                AgentSession::Unknown(_) => false,
            });
            prop_assert!(named != leads, "{:?} named {} leads {}", agent, named, leads);
        }
    }

    #[test]
    fn counts_add_up(evidence in any_evidence()) {
        let roster = project(&evidence);
        let mut owned = 0;
        for lead in &roster.leads {
            let counts = lead.counts;
            prop_assert!(counts.active + counts.blocked <= counts.total);
            prop_assert!(lead.agents.len() == counts.total.min(32));
            owned += counts.total;
        }
        // Each agent is one lead's, or named; equal ones are named once.
        let named = roster.left_out.iter().filter(|left| matches!(
            left.reason, Reason::AmbiguousAgent | Reason::AgentCycle | Reason::NoOwner | Reason::Elsewhere
        ));
        let named: HashSet<_> = named.filter_map(|left| left.subject.session()).collect();
        let all: HashSet<_> = evidence.managed.iter().map(|agent| &agent.session).collect();
        prop_assert_eq!(owned + named.len(), all.len());
    }

    #[test]
    fn shown_names_are_all_different(evidence in any_evidence()) {
        let roster = project(&evidence);
        let names = order::shown_names(&roster.leads);
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), roster.leads.len());
    }
}
