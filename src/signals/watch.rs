//! The fold of one session: an entry at a time, in bounded memory. A branch that is switched is folded
//! anew from its root.

use std::collections::{BTreeSet, VecDeque};

use super::condense::estimated_tokens;
use super::detect::{Badge, Detectors, Found, Signal};
use super::dirty::{Changes, Mark};
use super::keys::Key;
use super::recite::{Constraints, Recital};
use super::rounds::{Act, Deed, Round, Rounds};
use super::secrets::masked;
use super::self_report::{self, Circumstances, Report};
use super::sight::{Sight, Standing};
use super::steer::{BackOff, Named};
use crate::pi::entry::{Entry, Envelope, Model};
use crate::pi::said::{Said, Step};
use crate::pi::session::Header;
use crate::pi::tail::Fold;

/// Rows of what was done that are kept, and characters of one.
pub const ROWS: usize = 128;
const ROW: usize = 120;
/// Rounds that a draft can name.
const NAMED: usize = 16;
/// Bytes kept of a request and of an answer.
const KEPT: usize = 64 * 1024;
/// Models that are told apart.
const MODELS: usize = 16;
/// After so long without an entry a lead that has something to do is silent, in milliseconds.
pub const SILENCE: u64 = 10 * 60 * 1000;

/// What is said of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number, from 1.
    pub round: u64,
    /// The entry of the model's message.
    pub entry: String,
    /// Whether anything in it is new.
    pub novel: bool,
    /// Whether it changed something, or may have.
    pub mutated: bool,
    /// What it sets off.
    pub signal: Option<Signal>,
    /// What the message reports of itself.
    pub report: Option<Report>,
    /// What was called.
    pub calls: Key,
}

/// A message of a model that calls nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Its entry.
    pub entry: String,
    /// Its text without its report.
    pub text: String,
}

/// A signal that stands. A failing recovery does so until its checks succeed, the others in the rounds
/// that set them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired {
    /// Which.
    pub signal: Signal,
    /// Since when, in milliseconds since the epoch.
    pub since: Option<u64>,
    /// Whether a draft about it is to be offered: not while it was written about and the lead was not
    /// seen to go on the same for long enough.
    pub is_offered: bool,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watch {
    rounds: Rounds,
    detectors: Detectors,
    changes: Changes,
    count: u64,
    turns: u64,
    fired: Option<Fired>,
    back_off: BackOff,
    report: Option<Report>,
    request: String,
    /// When the user's last turn was written.
    asked_at: Option<u64>,
    answer: Option<Answered>,
    /// Whether anything was changed since the user's turn.
    mutated: bool,
    rows: VecDeque<String>,
    /// The last rounds, and whether a check failed in them.
    recent: VecDeque<(Named, bool)>,
    constraints: Constraints,
    compactions: u64,
    tokens: u64,
    models: BTreeSet<Model>,
    last_at: Option<u64>,
    /// Whether the last entry leaves something to be done.
    expects: bool,
}

impl Watch {
    /// Of a session that works in `cwd`.
    pub fn new(cwd: Option<String>) -> Self {
        Self { changes: Changes::new(cwd), ..Self::default() }
    }

    /// Takes the next entry of the branch; the round that ends with it, if one does.
    pub fn take(&mut self, step: &Step) -> Option<Outcome> {
        self.last_at = step.at.or(self.last_at);
        match &step.said {
            Said::User(text) => {
                self.tokens += estimated_tokens(text);
                let before = self.close();
                self.turn(text);
                self.asked_at = step.at;
                before
            }
            Said::Chief(text) => {
                self.tokens += estimated_tokens(text);
                self.expects = true;
                if let Some(fired) = &mut self.fired {
                    self.back_off.delivered();
                    fired.is_offered = false;
                }
                None
            }
            Said::Answer(answer) => {
                self.tokens += estimated_tokens(&answer.text);
                if let Some(model) = answer.model.as_ref().filter(|_| self.models.len() < MODELS) {
                    self.models.insert(model.clone());
                }
                let before = self.rounds.answer(step, answer);
                let before = before.map(|round| self.round(&round));
                let message = self_report::read(&answer.text);
                self.report = message.report;
                self.expects = !answer.calls.is_empty();
                self.answer = None;
                if answer.calls.is_empty() {
                    self.detectors.said(&message.text);
                    self.answer = Some(Answered { entry: step.entry.clone(), text: bounded(&message.text) });
                } else {
                    self.detectors.acted();
                }
                before
            }
            Said::Given(given) => {
                self.tokens += estimated_tokens(&given.text);
                self.expects = true;
                let round = self.rounds.given(given)?;
                Some(self.round(&round))
            }
            Said::Compaction => {
                self.compactions += 1;
                self.detectors.compacted();
                None
            }
            Said::Other => None,
        }
    }

    /// Ends the round whose results did not all come, as there will be none: it counts as failed. For
    /// whoever looks but once, and where the lead is gone.
    pub fn close(&mut self) -> Option<Outcome> {
        let round = self.rounds.close()?;
        Some(self.round(&round))
    }

    fn turn(&mut self, text: &str) {
        self.detectors.turn();
        self.changes.turn();
        self.constraints.turn(text);
        self.turns += 1;
        self.fired = None;
        self.back_off = BackOff::default();
        self.report = None;
        self.answer = None;
        self.mutated = false;
        self.rows.clear();
        self.recent.clear();
        self.request = bounded(text);
        self.expects = true;
    }

    fn round(&mut self, round: &Round) -> Outcome {
        let Found { novel, signal } = self.detectors.round(round);
        self.changes.round(round);
        self.count += 1;
        self.fire(signal, round.calls());
        self.mutated |= round.mutated();
        for act in &round.acts {
            push(&mut self.rows, row(act), ROWS);
        }
        let what = round.acts.iter().map(|act| format!("{} {}", act.tool, act.about).trim().to_owned());
        let what = what.collect::<Vec<_>>().join("; ").chars().take(ROW).collect();
        let failed = round.acts.iter().any(|act| matches!(act.deed, Deed::Check { failed: true, .. }));
        let named = Named { entry: round.entry.clone(), offset: round.offset, at: round.at, what };
        push(&mut self.recent, (named, failed), NAMED);
        let (entry, report) = (round.entry.clone(), round.report.clone());
        Outcome {
            round: self.count,
            entry,
            novel,
            mutated: round.mutated(),
            signal,
            report,
            calls: round.calls(),
        }
    }

    /// Takes what a round sets off, with what it called.
    fn fire(&mut self, signal: Option<Signal>, calls: Key) {
        let before = self.fired.take();
        let Some(signal) = signal else {
            // Its next round is no clean one while a check stays failed.
            self.fired = before.filter(|it| it.signal == Signal::Recovery && self.detectors.fails());
            if self.fired.is_none() {
                self.back_off.round(None, calls);
            }
            return;
        };
        let offers = self.back_off.round(Some(signal), calls);
        self.fired = Some(match before.filter(|before| before.signal == signal) {
            Some(before) => Fired { is_offered: before.is_offered || offers, ..before },
            None => Fired { signal, since: self.last_at, is_offered: offers },
        });
    }

    /// What is advised as of now.
    pub fn standing(&self, seen: &Circumstances<'_>) -> Standing {
        self.sight().standing(seen)
    }

    /// What is to be seen of the session.
    pub fn sight(&self) -> Sight {
        Sight {
            fired: self.fired,
            rounds: self.fired.map(|fired| self.named(fired.signal)).unwrap_or_default(),
            report: self.report.clone(),
            stopped_changed: self.answer.is_some() && self.mutated,
            mark: self.mark(),
            badges: self.badges(),
            recital: self.recital(),
            asked_at: self.asked_at,
            waits_since: self.last_at.filter(|_| self.expects),
            last_round: self.recent.back().map(|(named, _)| named.entry.clone()),
            is_whole: true,
        }
    }

    /// The rounds that `signal` is about.
    fn named(&self, signal: Signal) -> Vec<Named> {
        let all = self.recent.iter();
        let (running, stale) = self.detectors.running();
        let last = |count: u32| self.recent.len().saturating_sub(count as usize);
        match signal {
            Signal::Loop => all.skip(last(running)).map(|(named, _)| named.clone()).collect(),
            Signal::NoProgress => all.skip(last(stale)).map(|(named, _)| named.clone()).collect(),
            Signal::Recovery => {
                let failed: Vec<Named> =
                    all.filter(|(_, failed)| *failed).map(|(named, _)| named.clone()).collect();
                failed[failed.len().saturating_sub(super::detect::RECOVERY as usize)..].to_vec()
            }
        }
    }

    /// The mark of unchecked changes.
    pub fn mark(&self) -> Mark {
        self.changes.mark()
    }

    /// The changes since the user's turn.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// What is only shown.
    pub fn badges(&self) -> Vec<Badge> {
        self.detectors.badges()
    }

    /// For how long nothing came from a lead that has something to do, in milliseconds, where that is
    /// long. The file can't tell whether it works or is dead; one that has nothing to do is not silent.
    pub fn silence(&self, now: u64) -> Option<u64> {
        let quiet = now.saturating_sub(self.last_at?);
        (self.expects && quiet >= SILENCE).then_some(quiet)
    }

    /// Rounds so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Turns of the user so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// What the user asked last.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// When, in milliseconds since the epoch.
    pub fn asked_at(&self) -> Option<u64> {
        self.asked_at
    }

    /// The answer that ended the lead's turn, if it has ended.
    pub fn answer(&self) -> Option<&Answered> {
        self.answer.as_ref()
    }

    /// What was done since the user's turn, a row each: outcomes only.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(String::as_str)
    }

    /// The models that answered.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.iter()
    }

    /// The constraints to insert into a draft; only for a session that was compacted.
    pub fn recital(&self) -> Option<Recital> {
        if self.compactions == 0 {
            return None;
        }
        self.constraints.recital(self.tokens)
    }

    /// How many keys, rows and names are kept, all in all.
    pub fn kept(&self) -> usize {
        self.detectors.kept()
            + self.changes.paths().count()
            + self.rows.len()
            + self.recent.len()
            + self.constraints.all().count()
            + self.models.len()
    }
}

impl Fold for Watch {
    fn begin(header: &Header) -> Self {
        Self::new(header.cwd.as_ref().map(|cwd| cwd.to_str_lossy().into_owned()))
    }

    fn take(&mut self, entry: &Entry, line: &Envelope<'_>) {
        if let Some(step) = Step::of(entry, line) {
            Watch::take(self, &step);
        }
    }
}

fn push<T>(kept: &mut VecDeque<T>, item: T, most: usize) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(item);
}

/// One act as a row: what came of it, and of what.
fn row(act: &Act) -> String {
    let outcome = match (act.is_error, act.exit) {
        (false, _) => "ok".to_owned(),
        (true, Some(exit)) => format!("exit {exit}"),
        (true, None) => "failed".to_owned(),
    };
    let about: String = act.about.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let row = format!("{} {outcome}: {}", act.tool, masked(&about));
    row.trim_end_matches([' ', ':']).chars().take(ROW).collect()
}

/// A text without its middle where it is very long.
fn bounded(text: &str) -> String {
    if text.len() <= KEPT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(KEPT / 2);
    let tail = text.ceil_char_boundary(text.len() - KEPT / 2);
    format!("{}\n[... {} bytes omitted]\n{}", &text[..head], tail - head, &text[tail..])
}
