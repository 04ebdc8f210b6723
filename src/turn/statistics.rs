//! What many turns of a seat say together. Pure.

use super::failure::{Advice, Class};
use super::running::{Left, Running};
use crate::contract::Timestamp;

/// Turns shown one by one, the newest last.
pub const MAX_BARS: usize = 60;

/// One turn, as far as it counts here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When it ended.
    pub at: Timestamp,
    /// What became of it.
    pub outcome: &'static str,
    /// Whether that is as it should be.
    pub ok: bool,
    /// What failed.
    pub failure: Option<&'static str>,
    /// What kind of trouble that is.
    pub class: Option<Class>,
    /// Whether the stall window fired.
    pub stalled: bool,
    /// Milliseconds it took.
    pub took: u64,
}

/// One seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Its name.
    pub name: String,
    /// How many turns are counted.
    pub turns: usize,
    /// How many of them went well.
    pub ok: usize,
    /// The newest one.
    pub last: Option<Turn>,
    /// How many failed by each name, the most frequent first.
    pub failures: Vec<(&'static str, usize)>,
    /// How many stalled.
    pub stalls: usize,
    /// Half of them took at most so many milliseconds.
    pub median: Option<u64>,
    /// Nineteen of twenty did.
    pub p95: Option<u64>,
    /// The newest ones, at most [`MAX_BARS`]: how long each took, and whether it went well.
    pub bars: Vec<(u64, bool)>,
    /// How many failed in a row, the newest included.
    pub in_a_row: u32,
    /// When to try again, if the newest failed.
    pub advice: Option<Advice>,
    /// What runs, and what a killed supervisor left.
    pub running: Vec<Running>,
    /// Whether there are older turns that are not counted.
    pub is_partial: bool,
}

impl Seat {
    /// What `turns` say, in the order in which they ended.
    pub fn of(name: String, turns: &[Turn], running: Vec<Running>, is_partial: bool) -> Self {
        let mut failures: Vec<(&'static str, usize)> = Vec::new();
        for failure in turns.iter().filter_map(|turn| turn.failure) {
            match failures.iter_mut().find(|(name, _)| *name == failure) {
                Some((_, count)) => *count += 1,
                None => failures.push((failure, 1)),
            }
        }
        failures.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let mut times: Vec<u64> = turns.iter().map(|turn| turn.took).collect();
        times.sort_unstable();
        let last = turns.last().copied();
        let in_a_row = turns.iter().rev().take_while(|turn| turn.failure.is_some()).count();
        let in_a_row = u32::try_from(in_a_row).unwrap_or(u32::MAX);
        let advice = last.filter(|turn| turn.failure.is_some());
        let advice = advice.map(|turn| turn.class.unwrap_or(Class::Runtime).advice(in_a_row));
        Self {
            name,
            turns: turns.len(),
            ok: turns.iter().filter(|turn| turn.ok).count(),
            last,
            failures,
            stalls: turns.iter().filter(|turn| turn.stalled).count(),
            median: rank(&times, 50),
            p95: rank(&times, 95),
            bars: turns[turns.len().saturating_sub(MAX_BARS)..].iter().map(|it| (it.took, it.ok)).collect(),
            in_a_row,
            advice,
            running,
            is_partial,
        }
    }

    /// Whether its supervisor is at work.
    pub fn runs(&self) -> bool {
        self.running.iter().any(|running| running.left == Left::Supervised)
    }

    /// Percent of turns that went well, rounded down.
    pub fn ok_percent(&self) -> Option<usize> {
        (self.ok * 100).checked_div(self.turns)
    }
}

/// The smallest of the sorted times that `percent` of them do not exceed.
fn rank(times: &[u64], percent: usize) -> Option<u64> {
    let nth = (times.len() * percent).div_ceil(100).max(1);
    times.get(nth - 1).copied()
}

/// The heights, 0 to 7, of the newest `room` bars: the longest time among them is 7.
pub fn heights(bars: &[(u64, bool)], room: usize) -> Vec<(usize, bool)> {
    let shown = &bars[bars.len().saturating_sub(room)..];
    let longest = shown.iter().map(|bar| bar.0).max().unwrap_or(0).max(1);
    let height = |took: u64| usize::try_from(u128::from(took) * 7 / u128::from(longest)).unwrap_or(7);
    shown.iter().map(|(took, ok)| (height(*took), *ok)).collect()
}

/// A time a turn takes: `340ms`, `4.2s`, `12m 5s`, `3h 2m`.
pub fn shown(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!("{}h {}m", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(took: u64, failure: Option<&'static str>) -> Turn {
        Turn {
            at: Timestamp::from_millis(took),
            outcome: if failure.is_some() { "failed" } else { "delivered" },
            ok: failure.is_none(),
            failure,
            class: failure.map(|_| Class::RateLimit),
            stalled: failure == Some("stalled"),
            took,
        }
    }

    #[test]
    fn many_turns_say_one_thing_each() {
        let mut turns: Vec<Turn> = (1..=100).map(|took| turn(took, None)).collect();
        turns[3].failure = Some("stalled");
        turns.extend([
            turn(7, Some("stalled")),
            turn(8, Some("adapter_exit")),
            turn(9, Some("adapter_exit")),
        ]);
        let seat = Seat::of("s".to_owned(), &turns[..100], Vec::new(), false);
        assert_eq!((seat.median, seat.p95, seat.advice), (Some(50), Some(95), None));
        let seat = Seat::of("s".to_owned(), &turns, Vec::new(), true);
        assert_eq!((seat.turns, seat.ok, seat.stalls, seat.in_a_row), (103, 100, 1, 3));
        assert_eq!(seat.failures, [("adapter_exit", 2), ("stalled", 2)]);
        assert_eq!((seat.bars.len(), seat.bars[59]), (MAX_BARS, (9, false)));
        assert_eq!(seat.advice.map(|it| it.after.as_secs()), Some(240));
        assert_eq!(seat.ok_percent(), Some(97));
        let none = Seat::of("s".to_owned(), &[], Vec::new(), false);
        assert_eq!((none.median, none.ok_percent(), none.last), (None, None, None));
    }

    #[test]
    fn bars_are_as_high_as_the_longest_lets_them() {
        assert_eq!(heights(&[(0, true), (50, false), (100, true)], 9), [(0, true), (3, false), (7, true)]);
        assert_eq!(heights(&[(9, true), (1, true), (2, true)], 2), [(3, true), (7, true)]);
        assert_eq!(heights(&[(0, true), (u64::MAX, true)], 2)[1], (7, true));
        assert!(heights(&[], 5).is_empty());
    }

    #[test]
    fn times_are_shown_in_two_units_at_most() {
        for (millis, text) in
            [(0, "0ms"), (999, "999ms"), (4_290, "4.2s"), (725_000, "12m 5s"), (10_920_000, "3h 2m")]
        {
            assert_eq!(shown(millis), text);
        }
    }
}
