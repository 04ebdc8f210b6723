//! Seeded chance, so that a herd can be seen again.

use std::time::Duration;

/// A small generator (splitmix64). Not for anything that must not be guessed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The same `seed` and `stream` give the same numbers; each lead has a stream of its own.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        // Neighbouring seeds would otherwise begin alike.
        mixed.number();
        mixed
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to below `high`; `low` where that is nothing.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % high.saturating_sub(low).max(1)
    }

    /// About `seconds`: four fifths to six fifths of it.
    pub fn about(&mut self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * (0.8 + 0.4 * (self.between(0, 1_000) as f64 / 1_000.0)))
    }

    /// `digits` hex digits.
    pub fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            text += &format!("{:016x}", self.number());
        }
        text.truncate(digits);
        text
    }

    /// A session id as Pi makes them (a version 7 UUID) of a session begun at `millis`.
    pub fn session_id(&mut self, millis: u64) -> String {
        let time = format!("{:012x}", millis & 0xFFFF_FFFF_FFFF);
        let (a, b, c) = (self.hex(3), self.hex(3), self.hex(12));
        let variant = ["8", "9", "a", "b"][self.between(0, 4) as usize];
        format!("{}-{}-7{a}-{variant}{b}-{c}", &time[..8], &time[8..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_again_and_another_seed_something_else() {
        let id = |seed, stream| Random::new(seed, stream).session_id(1_796_025_562_011);
        assert_eq!(id(1, 2), id(1, 2));
        assert_ne!(id(1, 2), id(1, 3));
        assert_ne!(id(1, 2), id(2, 2));
        let id = id(1, 2);
        assert_eq!((id.len(), &id[..9], &id[14..15]), (36, "01a22b77-", "7"));
    }

    #[test]
    fn what_is_about_a_time_is_near_it() {
        let mut random = Random::new(7, 0);
        for _ in 0..1_000 {
            let about = random.about(10.0).as_secs_f64();
            assert!((8.0..=12.0).contains(&about), "{about}");
        }
    }
}
