//! How long to leave a Herdr alone that does not answer.

use std::time::Duration;

/// The first pause.
pub const FIRST: Duration = Duration::from_millis(500);
/// The longest pause: a server that comes back is found again within it.
pub const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double from [`FIRST`] to [`LONGEST`], after the section "Failing" of `docs/herdr.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Nothing failed yet.
    pub fn new() -> Self {
        Self { next: FIRST }
    }

    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }

    /// It answered: the next failure pauses briefly again.
    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_seconds_and_start_over() {
        let mut backoff = Backoff::new();
        let pauses: Vec<u128> = (0..7).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        backoff.reset();
        assert_eq!(backoff.pause(), FIRST);
    }
}
