//! Whether the operator looks, and what happened while not.

use std::time::Duration;

/// Without a key for this long somebody was away, whatever the terminal says of its focus.
const IDLE: Duration = Duration::from_secs(600);

/// A moment, and the number that the next event got then.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Duration,
    next: u64,
}

/// Somebody is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// How long they were away.
    pub away: Duration,
    /// The number of the first event since.
    pub from: u64,
}

/// Follows focus and keys. Times are monotonic; `next` is the number that the next event gets.
#[derive(Debug, Default)]
pub struct Attention {
    focused: Option<bool>,
    /// The last key, or the start.
    last: Option<Mark>,
    /// When the focus went.
    left: Option<Mark>,
}

impl Attention {
    /// The console runs: from here on keys are missed.
    pub fn begin(&mut self, at: Duration, next: u64) {
        self.last.get_or_insert(Mark { at, next });
    }

    /// Whether the terminal has the focus, where it tells.
    pub fn focused(&self) -> Option<bool> {
        self.focused
    }

    /// The terminal lost the focus.
    pub fn focus_lost(&mut self, at: Duration, next: u64) {
        self.focused = Some(false);
        self.left.get_or_insert(Mark { at, next });
    }

    /// It has the focus; says since when somebody was away, if they were.
    pub fn focus_gained(&mut self, at: Duration, next: u64) -> Option<Back> {
        self.focused = Some(true);
        self.is_here(at, next)
    }

    /// A key was pressed; says since when somebody was away, if they were.
    pub fn key(&mut self, at: Duration, next: u64) -> Option<Back> {
        // A terminal that told once that the focus went has it, as there is a key.
        self.focused = self.focused.map(|_| true);
        self.is_here(at, next)
    }

    fn is_here(&mut self, at: Duration, next: u64) -> Option<Back> {
        let last = self.last.replace(Mark { at, next });
        let idle = last.filter(|last| at.saturating_sub(last.at) >= IDLE);
        let from = match (self.left.take(), idle) {
            // Nobody looked since the last key, though the focus went later.
            (Some(left), Some(idle)) if idle.at < left.at => idle,
            (left, idle) => left.or(idle)?,
        };
        Some(Back { away: at.saturating_sub(from.at), from: from.next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn who_was_away_comes_back_once() {
        let mut attention = Attention::default();
        attention.begin(at(0), 0);
        assert_eq!(attention.focused(), None, "the terminal did not tell");
        assert_eq!(attention.key(at(10), 1), None);
        // By the focus.
        attention.focus_lost(at(20), 2);
        attention.focus_lost(at(25), 3);
        assert_eq!(attention.focused(), Some(false));
        assert_eq!(attention.focus_gained(at(50), 7), Some(Back { away: at(30), from: 2 }));
        assert_eq!(attention.focused(), Some(true));
        assert_eq!(attention.key(at(51), 7), None);
        assert_eq!(attention.focus_gained(at(52), 7), None);
        // By the keys alone.
        assert_eq!(attention.key(at(51 + 600), 9), None, "it is 599 s since it got the focus");
        assert_eq!(attention.key(at(651 + 600), 12), Some(Back { away: at(600), from: 9 }));
    }

    #[test]
    fn the_earlier_of_both_counts() {
        let mut attention = Attention::default();
        attention.begin(at(0), 0);
        attention.focus_lost(at(700), 5);
        assert_eq!(attention.key(at(800), 6), Some(Back { away: at(800), from: 0 }));
        assert_eq!(attention.focused(), Some(true), "a key means focus, where the terminal tells of it");
        attention.focus_lost(at(810), 6);
        assert_eq!(attention.focus_gained(at(2000), 9), Some(Back { away: at(1200), from: 6 }));
    }
}
