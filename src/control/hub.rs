//! Passes the facts of the service on to everybody who is connected.
//!
//! What waits for one of them is bounded by ids, as in any channel of facts, so a client that does
//! not read holds nobody up.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::contract::Uuid;
use crate::fact::{self, Answered, Fact, FactReceiver, FactSender, Outcome, Relay, Sent};

/// Our own tickets are far below; those of the connected begin here.
const FIRST_TICKET: u64 = 1 << 48;
/// Messages of ours that a new client is told of.
const MAX_SENT: usize = 500;

/// The connected, and what they are told first.
#[derive(Default)]
pub(super) struct Hub(Mutex<State>);

#[derive(Default)]
struct State {
    connected: HashMap<u64, FactSender>,
    /// By our ticket: whose request it was, and under which ticket.
    tickets: HashMap<u64, (u64, u64)>,
    next: u64,
    standing: Option<Fact>,
    registration: Option<Fact>,
    mail: Option<Fact>,
    sent_counts: Option<Fact>,
    snoozes: Option<Fact>,
    sent: BTreeMap<Uuid, Sent>,
}

/// One that is connected, until dropped.
pub(super) struct Connected {
    hub: Arc<Hub>,
    id: u64,
    /// What it is to be told, beginning with how things stand.
    pub facts: FactReceiver,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connect(self: &Arc<Self>) -> Connected {
        let mut state = self.state();
        let (sender, facts) = fact::channel();
        let known = [&state.standing, &state.registration, &state.mail, &state.sent_counts, &state.snoozes];
        known.into_iter().flatten().for_each(|fact| sender.put(fact.clone()));
        state.sent.values().for_each(|sent| sender.put(Fact::Sent(sent.clone())));
        state.next += 1;
        let id = state.next;
        state.connected.insert(id, sender);
        Connected { hub: Arc::clone(self), id, facts }
    }
}

impl Connected {
    /// A ticket of ours for one of theirs.
    pub(super) fn ticket(&self, theirs: u64) -> u64 {
        let mut state = self.hub.state();
        state.next += 1;
        let ours = FIRST_TICKET + state.next;
        state.tickets.insert(ours, (self.id, theirs));
        ours
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.connected.remove(&self.id);
        state.tickets.retain(|_, (id, _)| *id != self.id);
    }
}

impl Relay for Hub {
    fn pass(&self, fact: &Fact) -> bool {
        let mut state = self.state();
        match fact {
            Fact::Outcome(Outcome { ticket, .. }) | Fact::Answered(Answered { ticket, .. }) => {
                if *ticket < FIRST_TICKET {
                    return true;
                }
                // Whoever asked may have gone.
                if let Some((id, ticket)) = state.tickets.remove(ticket)
                    && let Some(sender) = state.connected.get(&id)
                {
                    sender.put(match fact.clone() {
                        Fact::Outcome(outcome) => Fact::Outcome(Outcome { ticket, ..outcome }),
                        Fact::Answered(answered) => Fact::Answered(Answered { ticket, ..answered }),
                        other => other,
                    });
                }
                return false;
            }
            Fact::Standing(_) => state.standing = Some(fact.clone()),
            Fact::Registration(_) => state.registration = Some(fact.clone()),
            Fact::Mail(_) => state.mail = Some(fact.clone()),
            Fact::SentCounts(_) => state.sent_counts = Some(fact.clone()),
            Fact::Snoozes(_) => state.snoozes = Some(fact.clone()),
            Fact::Sent(sent) => {
                state.sent.insert(sent.id, sent.clone());
                if state.sent.len() > MAX_SENT {
                    let settled = state.sent.values().filter(|sent| sent.fate.is_final(sent.kind));
                    let oldest = settled.min_by_key(|sent| (sent.at, sent.id)).map(|sent| sent.id);
                    oldest.map(|id| state.sent.remove(&id));
                }
            }
            _ => {}
        }
        state.connected.values().for_each(|sender| sender.put(fact.clone()));
        true
    }
}
