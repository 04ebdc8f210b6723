//! What is to be seen of a session as of its last entry, and what follows from it together with what
//! else is known of the lead.

use super::detect::{Badge, Signal};
use super::dirty::Mark;
use super::fuse::{Advice, advise};
use super::recite::Recital;
use super::self_report::{Circumstances, Origin, Report, State};
use super::steer::{self, Named};
use super::watch::Fired;

/// What a session shows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sight {
    /// The signal that stands.
    pub fired: Option<Fired>,
    /// The rounds it is about, the earliest first.
    pub rounds: Vec<Named>,
    /// What the lead reports of itself.
    pub report: Option<Report>,
    /// Whether it changed something since the user's turn and has ended its own.
    pub stopped_changed: bool,
    /// The mark of unchecked changes.
    pub mark: Mark,
    /// What is only shown.
    pub badges: Vec<Badge>,
    /// The constraints to insert into a draft.
    pub recital: Option<Recital>,
    /// When the user's last turn was written, in milliseconds since the epoch.
    pub asked_at: Option<u64>,
    /// When the last entry was written, if it leaves something to be done.
    pub waits_since: Option<u64>,
    /// The entry of the last round.
    pub last_round: Option<String>,
    /// Whether the branch was seen from its root.
    pub is_whole: bool,
}

/// What is advised, and on what grounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The signal that stands.
    pub signal: Option<Signal>,
    /// The lead's report, or what follows from what else is known.
    pub report: Option<Report>,
    /// What is advised.
    pub advice: Option<Advice>,
    /// A draft, where steering is advised.
    pub draft: Option<String>,
    /// Whether it is done for all it says, or has stopped, and nothing shows that it is.
    pub is_unverified: bool,
}

impl Standing {
    /// Why that is advised, as a sentence without its end, where the signal alone does not say it.
    pub fn reason(&self) -> Option<&'static str> {
        let origin = self.report.as_ref().map(|report| (report.state, report.origin));
        Some(match self.advice? {
            Advice::Steer { disagrees: true } => {
                "it reports that it gets on, and its session does not show it"
            }
            Advice::Steer { disagrees: false } => return None,
            Advice::Wait => "nothing is new, but it reports that it explores",
            Advice::Gate => match origin {
                Some((State::Done, Origin::Reported)) => "it reports that it is done, which is no evidence",
                Some((State::Done, Origin::Derived)) => "it wrote that it is done, which is no evidence",
                _ => "it changed something and has stopped",
            },
        })
    }
}

impl Sight {
    /// What is advised, with what else is `seen`.
    pub fn standing(&self, seen: &Circumstances<'_>) -> Standing {
        let signal = self.fired.map(|fired| fired.signal);
        let report = self.report.clone().or_else(|| Report::derived(seen));
        let state = report.as_ref().map(|report| report.state);
        let advice = advise(signal, state, self.stopped_changed && !seen.is_working);
        let draft = match (advice, signal) {
            (Some(Advice::Steer { disagrees }), Some(signal)) => {
                Some(steer::draft(signal, &self.rounds, disagrees))
            }
            _ => None,
        };
        let is_unverified =
            advice == Some(Advice::Gate) && (state == Some(State::Done) || self.mark != Mark::Clean);
        Standing { signal, report, advice, draft, is_unverified }
    }
}

/// The word that a lead is marked with, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// See [`Signal::Loop`].
    Loop,
    /// See [`Signal::NoProgress`].
    NoProgress,
    /// See [`Signal::Recovery`].
    FailingChecks,
    /// See [`Standing::is_unverified`].
    Unverified,
    /// See [`Badge::Alternation`].
    Alternation,
    /// See [`Badge::Monologue`].
    Monologue,
    /// See [`Badge::Compactions`].
    Compactions,
    /// Nothing came for long from a lead that works.
    Silent,
}

impl Word {
    /// The word itself.
    pub fn as_str(self) -> &'static str {
        match self {
            Word::Loop => "loop",
            Word::NoProgress => "no progress",
            Word::FailingChecks => "failing checks",
            Word::Unverified => "unverified",
            Word::Alternation => "alternation",
            Word::Monologue => "monologue",
            Word::Compactions => "compactions",
            Word::Silent => "silent",
        }
    }

    /// What it means, as a sentence without its end.
    pub fn meaning(self) -> &'static str {
        match self {
            Word::Loop => "the same round again and again, with the same results",
            Word::NoProgress => "rounds in which nothing is new",
            Word::FailingChecks => "checks keep failing, and one of them still does",
            Word::Unverified => "it is done as it says, or has stopped, and nothing shows that it is",
            Word::Alternation => "two rounds take turns, ten times and more",
            Word::Monologue => "the same text again and again, without a call",
            Word::Compactions => "compacted again and again, and nothing new in between",
            Word::Silent => "nothing came for long; idle is not a fault",
        }
    }

    /// That of a signal.
    pub fn of(signal: Signal) -> Self {
        match signal {
            Signal::Loop => Word::Loop,
            Signal::NoProgress => Word::NoProgress,
            Signal::Recovery => Word::FailingChecks,
        }
    }

    /// Whether a detector fired it.
    pub fn is_signal(self) -> bool {
        self <= Word::FailingChecks
    }

    /// All that a session shows, the gravest first; how long it is silent its file does not say.
    pub fn all(sight: &Sight, standing: &Standing) -> Vec<Self> {
        let badge = |badge: &Badge| match badge {
            Badge::Alternation => Word::Alternation,
            Badge::Monologue => Word::Monologue,
            Badge::Compactions => Word::Compactions,
        };
        let mut words: Vec<Self> = standing.signal.map(Word::of).into_iter().collect();
        words.extend(standing.is_unverified.then_some(Word::Unverified));
        words.extend(sight.badges.iter().map(badge));
        words
    }
}
