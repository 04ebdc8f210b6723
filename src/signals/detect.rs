//! The detectors: what rounds that follow each other show. Their constants are behaviour, no settings.

use std::collections::VecDeque;

use super::keys::Key;
use super::rounds::{Act, Deed, Round};

/// How many result keys are remembered.
pub const REMEMBERED: usize = 128;
/// So many equal rounds running are a loop.
pub const LOOP: u32 = 3;
/// So many rounds running without anything new are no progress.
pub const NO_PROGRESS: u32 = 5;
/// So many rounds with a failed check, while one stays failed, are a failing recovery.
pub const RECOVERY: u32 = 5;
/// How many failed checks are kept.
pub const LEDGER: usize = 64;
/// So many changes between two rounds, back and forth, are worth a badge.
pub const ALTERNATIONS: u32 = 10;
/// So many equal texts running.
pub const MONOLOGUE: u32 = 3;
/// So many compactions while nothing new came.
pub const COMPACTIONS: u32 = 3;

/// What a round sets off. The first of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// The same round again and again.
    Loop,
    /// Rounds in which nothing is new.
    NoProgress,
    /// Checks that keep failing.
    Recovery,
}

impl Signal {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::Loop => "loop",
            Signal::NoProgress => "no_progress",
            Signal::Recovery => "recovery",
        }
    }
}

/// What is only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Badge {
    /// Two rounds take turns.
    Alternation,
    /// The same text without a call, again and again.
    Monologue,
    /// Compactions, and nothing new in between.
    Compactions,
}

impl Badge {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Badge::Alternation => "alternation",
            Badge::Monologue => "monologue",
            Badge::Compactions => "compactions",
        }
    }
}

/// What the detectors say of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Whether anything in it is new.
    pub novel: bool,
    /// What it sets off.
    pub signal: Option<Signal>,
}

/// The state of all detectors. Its size is bounded, however long the session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detectors {
    /// The last result keys, the latest at the end.
    seen: VecDeque<Key>,
    /// The rounds before: the last one, and how often it came running.
    last: Option<(Key, u32)>,
    /// The one before the last.
    before: Option<Key>,
    alternations: u32,
    /// Rounds running without anything new.
    stale: u32,
    /// Checks that failed and did not succeed since, the latest at the end.
    failed: VecDeque<Key>,
    failing: u32,
    /// The last text without a call, and how often it came running.
    said: Option<(Key, u32)>,
    compactions: u32,
}

impl Detectors {
    /// A user's turn: what came before is over, but what was seen stays seen.
    pub fn turn(&mut self) {
        self.last = None;
        self.before = None;
        self.alternations = 0;
        self.stale = 0;
        self.failed.clear();
        self.failing = 0;
        self.said = None;
        self.compactions = 0;
    }

    /// Takes a round.
    pub fn round(&mut self, round: &Round) -> Found {
        let novel = self.see(round);
        let signature = round.signature();
        let (before, running) = match self.last {
            Some((last, running)) if last == signature => (Some(last), running + 1),
            last => (last.map(|(last, _)| last), 1),
        };
        let alternates = running == 1 && before.is_some() && self.before == Some(signature);
        self.alternations = match (alternates, before) {
            (true, _) => self.alternations + 1,
            // The first change of what may become a turn-taking.
            (false, Some(_)) if running == 1 => 1,
            _ => 0,
        };
        self.before = before;
        self.last = Some((signature, running));
        self.stale = if novel { 0 } else { self.stale + 1 };
        if novel {
            self.compactions = 0;
        }
        let recovery = self.check(&round.acts);
        let signal = if running >= LOOP && !novel {
            Some(Signal::Loop)
        } else if self.stale >= NO_PROGRESS {
            Some(Signal::NoProgress)
        } else {
            recovery.then_some(Signal::Recovery)
        };
        Found { novel, signal }
    }

    /// Whether the round has a result that is new, or wrote to a file. The order within it does not
    /// count.
    fn see(&mut self, round: &Round) -> bool {
        let mut keys: Vec<Key> = round.acts.iter().map(|act| act.result).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_new = keys.iter().any(|key| !self.seen.contains(key));
        self.seen.retain(|seen| keys.binary_search(seen).is_err());
        self.seen.extend(keys);
        let too_many = self.seen.len().saturating_sub(REMEMBERED);
        self.seen.drain(..too_many);
        is_new || round.acts.iter().any(Act::edited)
    }

    /// Takes the round's checks; whether they have failed often enough.
    fn check(&mut self, acts: &[Act]) -> bool {
        let mut failed = Vec::new();
        let mut succeeded = Vec::new();
        for act in acts {
            match act.deed {
                Deed::Check { key, failed: true } => failed.push(key),
                // An exit code that is an answer is no success either.
                Deed::Check { key, failed: false } if !act.is_error => succeeded.push(key),
                _ => {}
            }
        }
        failed.sort_unstable();
        failed.dedup();
        self.failed.retain(|key| !failed.contains(key) && !succeeded.contains(key));
        self.failing += u32::from(!failed.is_empty());
        self.failed.extend(failed);
        let too_many = self.failed.len().saturating_sub(LEDGER);
        self.failed.drain(..too_many);
        if self.failed.is_empty() {
            self.failing = 0;
        }
        let fires = self.failing >= RECOVERY;
        if fires {
            self.failing = 0;
        }
        fires
    }

    /// Takes a text that came without a call.
    pub fn said(&mut self, text: &str) {
        let key = Key::of([text.trim().as_bytes()]);
        self.said = match self.said {
            _ if text.trim().is_empty() => None,
            Some((last, running)) if last == key => Some((key, running + 1)),
            _ => Some((key, 1)),
        };
    }

    /// A message with calls ends a monologue.
    pub fn acted(&mut self) {
        self.said = None;
    }

    /// The session was compacted.
    pub fn compacted(&mut self) {
        self.compactions += 1;
    }

    /// What is only shown, as of now.
    pub fn badges(&self) -> Vec<Badge> {
        let said = self.said.map_or(0, |(_, running)| running);
        [
            (self.alternations >= ALTERNATIONS, Badge::Alternation),
            (said >= MONOLOGUE, Badge::Monologue),
            (self.compactions >= COMPACTIONS, Badge::Compactions),
        ]
        .into_iter()
        .filter_map(|(shows, badge)| shows.then_some(badge))
        .collect()
    }

    /// How many equal rounds, and how many without anything new, came running.
    pub fn running(&self) -> (u32, u32) {
        (self.last.map_or(0, |(_, running)| running), self.stale)
    }

    /// Whether a check failed that did not succeed since.
    pub fn fails(&self) -> bool {
        !self.failed.is_empty()
    }

    /// How many keys are kept, all in all.
    pub fn kept(&self) -> usize {
        self.seen.len() + self.failed.len()
    }
}
