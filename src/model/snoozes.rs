//! Asks that are put off, and when each comes back: counted on the monotonic clock, as ages are.

use std::collections::HashMap;
use std::time::Duration;

use super::Model;
use crate::contract::{SessionId, Uuid};
use crate::fact::{Now, Snooze, Until};
use crate::herd::Lead;

/// How long an ask stays put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// So long.
    Time(Duration),
    /// Until the lead asks something else.
    Change,
}

#[derive(Debug, Clone)]
struct Timer {
    snooze: Snooze,
    /// When it comes back, on the monotonic clock; never by itself without.
    due: Option<Duration>,
    /// Whether it came back. It stays so, whatever the time of day does.
    is_over: bool,
}

/// What is put off.
#[derive(Debug, Default, Clone)]
pub(super) struct Snoozes(HashMap<(SessionId, Uuid), Timer>);

impl Snoozes {
    /// Takes over what is put off now.
    pub(super) fn fold(&mut self, told: &[Snooze], now: Now) {
        let mut before = std::mem::take(&mut self.0);
        for snooze in told {
            let key = (snooze.lead.clone(), snooze.ask);
            let timer = before.remove(&key).filter(|timer| timer.snooze == *snooze);
            self.0.insert(key, timer.unwrap_or_else(|| Timer::new(snooze, now)));
        }
    }

    /// Has those come back whose time is over; says whether there were any.
    pub(super) fn wake(&mut self, now: Now) -> bool {
        let mut any = false;
        for timer in self.0.values_mut().filter(|timer| !timer.is_over) {
            timer.is_over = timer.due.is_some_and(|due| due <= now.mono);
            any |= timer.is_over;
        }
        any
    }

    /// When [`Snoozes::wake`] has something to do, on the monotonic clock.
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.values().filter(|timer| !timer.is_over).filter_map(|timer| timer.due).min()
    }

    /// How long that ask stays put off, if it is.
    pub(super) fn left(&self, lead: &SessionId, ask: Uuid, now: Now) -> Option<Left> {
        let timer = self.0.get(&(lead.clone(), ask)).filter(|timer| !timer.is_over)?;
        Some(timer.due.map_or(Left::Change, |due| Left::Time(due.saturating_sub(now.mono))))
    }

    /// Whether that ask is put off.
    pub(super) fn contains(&self, lead: &SessionId, ask: Uuid) -> bool {
        self.0.get(&(lead.clone(), ask)).is_some_and(|timer| !timer.is_over)
    }
}

impl Model {
    /// Whether `lead` waits for an answer, and its ask is not put off.
    pub fn needs_you(&self, lead: &Lead) -> bool {
        lead.pending_ask.as_ref().is_some_and(|ask| !self.snoozes.contains(&lead.session, ask.ask))
    }

    /// How long the open ask of `lead` stays put off, if it is.
    pub fn snoozed(&self, lead: &Lead, now: Now) -> Option<Left> {
        self.snoozes.left(&lead.session, lead.pending_ask.as_ref()?.ask, now)
    }

    /// How many open asks are put off.
    pub fn snoozed_asks(&self) -> usize {
        self.roster.leads.iter().filter(|lead| lead.needs_you() && !self.needs_you(lead)).count()
    }

    /// Has asks come back whose time is over; says whether there were any.
    pub fn wake(&mut self, now: Now) -> bool {
        let any = self.snoozes.wake(now);
        if any {
            self.project(now);
        }
        any
    }

    /// When the next ask comes back, on the monotonic clock.
    pub fn wakes_at(&self) -> Option<Duration> {
        self.snoozes.next()
    }
}

impl Timer {
    fn new(snooze: &Snooze, now: Now) -> Self {
        let due = match snooze.until {
            Until::At(until) => {
                let millis = |from: crate::contract::Timestamp| {
                    Duration::from_millis(until.as_millis().saturating_sub(from.as_millis()))
                };
                // A clock that was set back makes it no longer than it was meant to be.
                Some(now.mono + millis(now.wall).min(millis(snooze.at)))
            }
            Until::Change => None,
        };
        Self { snooze: snooze.clone(), due, is_over: due.is_some_and(|due| due <= now.mono) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Timestamp;

    fn now(wall: u64, mono: u64) -> Now {
        Now { wall: Timestamp::from_millis(wall * 1000), mono: Duration::from_secs(mono) }
    }

    #[test]
    fn it_is_over_when_its_time_is_whatever_the_clock_does() {
        let (lead, ask) = (SessionId::new("lead").unwrap(), Uuid::random());
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        let snooze = Snooze { lead: lead.clone(), ask, at: at(1_000), until: Until::At(at(1_600)) };
        let mut snoozes = Snoozes::default();
        snoozes.fold(std::slice::from_ref(&snooze), now(1_100, 50));
        assert_eq!(snoozes.next(), Some(Duration::from_secs(550)));
        // Told again after the clock was set back: its time goes on as it did.
        snoozes.fold(std::slice::from_ref(&snooze), now(10, 100));
        assert_eq!(snoozes.left(&lead, ask, now(10, 100)), Some(Left::Time(Duration::from_secs(450))));
        assert!(!snoozes.wake(now(10, 549)) && snoozes.contains(&lead, ask));
        assert!(snoozes.wake(now(10, 550)) && !snoozes.contains(&lead, ask));
        assert!(!snoozes.wake(now(10, 551)) && snoozes.next().is_none());
        snoozes.fold(std::slice::from_ref(&snooze), now(10, 600));
        assert!(!snoozes.contains(&lead, ask), "what came back stays");
        // Seen first with a clock that was set back: no longer than it was meant to be.
        let mut fresh = Snoozes::default();
        fresh.fold(std::slice::from_ref(&snooze), now(10, 0));
        assert_eq!(fresh.left(&lead, ask, now(10, 0)), Some(Left::Time(Duration::from_secs(600))));
        fresh.fold(&[Snooze { until: Until::Change, ..snooze }], now(10, 700));
        assert!(!fresh.wake(now(99_999, 99_999)));
        assert_eq!(fresh.left(&lead, ask, now(99_999, 99_999)), Some(Left::Change));
        assert!(!fresh.contains(&lead, Uuid::random()), "another ask of that lead is not put off");
        fresh.fold(&[], now(10, 700));
        assert!(!fresh.contains(&lead, ask));
    }
}
