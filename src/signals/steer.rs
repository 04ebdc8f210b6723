//! Drafts that steer a lead: what they say, when they are offered, when they are void. Sending is the
//! operator's.

use std::collections::VecDeque;

use super::detect::Signal;
use super::keys::Key;
use super::secrets::masked;
use crate::contract::Uuid;

/// Steering messages that may be sent by themselves in an hour, to one lead.
pub const AN_HOUR: usize = 3;
const HOUR: u64 = 3_600_000;

/// A round as a draft names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its entry.
    pub entry: String,
    /// Where that begins in the session file, in bytes.
    pub offset: u64,
    /// When it was written, in milliseconds since the epoch.
    pub at: Option<u64>,
    /// What was called.
    pub what: String,
}

/// The text of a draft about `rounds`, the earliest first.
pub fn draft(signal: Signal, rounds: &[Named], disagrees: bool) -> String {
    let entries: Vec<&str> = rounds.iter().map(|round| round.entry.as_str()).collect();
    let entries = entries.join(", ");
    let what = rounds.last().map(|round| line(&round.what)).unwrap_or_default();
    let count = rounds.len();
    let mut text = match signal {
        Signal::Loop => format!(
            "Your last {count} rounds (entries {entries}) did the same and got the same: {what}. If you wait for \
             something, say what it is, and wait longer before you look again. If not, say what you expected \
             and try another way."
        ),
        Signal::NoProgress => format!(
            "Your last {count} rounds (entries {entries}) brought nothing that was not known before; the last one: \
             {what}. Say what you are looking for and what you know by now, then take a step that can change it."
        ),
        Signal::Recovery => format!(
            "Checks failed in {count} rounds (entries {entries}) and one of them still fails; the last one: {what}. \
             Stop changing things. Read the first failure from its beginning, say what causes it, and only then go on."
        ),
    };
    if disagrees {
        text += " You report that you get on; the session does not show it.";
    }
    text
}

/// One line of what a lead did, without what is nobody's business.
fn line(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    masked(text.trim())
}

/// When a draft is offered again: at attempts 0, 1, 3, 7 and so on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackOff(Option<Attempts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Attempts {
    signal: Signal,
    calls: Key,
    count: u32,
    delivered: bool,
}

impl BackOff {
    /// Takes a round, by its signal and what it called; whether a draft is to be offered. An attempt
    /// is a round that does the same after a draft was delivered.
    pub fn round(&mut self, signal: Option<Signal>, calls: Key) -> bool {
        let Some(signal) = signal else {
            self.0 = None;
            return false;
        };
        match &mut self.0 {
            Some(attempts) if attempts.signal == signal => {
                let repeats = attempts.calls == calls && attempts.delivered;
                attempts.calls = calls;
                if repeats {
                    attempts.count = attempts.count.saturating_add(1);
                }
                repeats && attempts.count.saturating_add(1).is_power_of_two()
            }
            before => {
                *before = Some(Attempts { signal, calls, count: 0, delivered: false });
                true
            }
        }
    }

    /// A draft about the current signal was delivered.
    pub fn delivered(&mut self) {
        if let Some(attempts) = &mut self.0 {
            attempts.delivered = true;
        }
    }
}

/// What a draft rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// The signal; none where there is none any more.
    pub signal: Option<Signal>,
    /// The instance of the lead.
    pub instance: Uuid,
    /// The lease under which it was drafted.
    pub lease: Uuid,
}

/// Why a draft is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Void {
    /// What it is about is over.
    #[error("what it is about is over")]
    Signal,
    /// The lead was started anew.
    #[error("the lead was started anew")]
    Instance,
    /// Another lease holds.
    #[error("the lease is another one")]
    Lease,
}

impl Basis {
    /// Why a draft with this basis must not be sent `now`, if it must not.
    pub fn void(&self, now: &Self) -> Option<Void> {
        if self.lease != now.lease {
            Some(Void::Lease)
        } else if self.instance != now.instance {
            Some(Void::Instance)
        } else {
            (self.signal != now.signal).then_some(Void::Signal)
        }
    }
}

/// How much may be sent to one lead by itself, where the operator has chosen that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowance {
    /// The user's turn, and the signals that were answered in it.
    turn: u64,
    answered: Vec<Signal>,
    /// When something was sent within the last hour, in milliseconds.
    sent: VecDeque<u64>,
}

impl Allowance {
    /// Whether a message about `signal` may be sent at `now`, in the user's turn number `turn`; if so it
    /// is counted as sent.
    pub fn take(&mut self, signal: Signal, turn: u64, now: u64) -> bool {
        if self.turn != turn {
            self.turn = turn;
            self.answered.clear();
        }
        // A clock that is set back frees nothing.
        while self.sent.front().is_some_and(|at| now >= at.saturating_add(HOUR)) {
            self.sent.pop_front();
        }
        if self.answered.contains(&signal) || self.sent.len() >= AN_HOUR {
            return false;
        }
        self.answered.push(signal);
        self.sent.push_back(now);
        true
    }
}
