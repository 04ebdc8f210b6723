//! Ages as they are shown, and when the next one will be another.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// An age in its largest unit: `40s`, `4m`, `3h`, `2d`.
pub fn shown(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

/// How long until [`shown`] gives something else.
pub fn next_change(age: Duration) -> Duration {
    let unit = match age.as_secs() {
        0..MINUTE => 1,
        MINUTE..HOUR => MINUTE,
        HOUR..DAY => HOUR,
        _ => DAY,
    };
    let unit = Duration::from_secs(unit);
    let into = age.as_nanos() % unit.as_nanos();
    unit - Duration::from_nanos(u64::try_from(into).unwrap_or(0))
}

/// How long something goes on, in minutes and, above one hour, in hours, begun ones counted: `8m`, `2h`.
pub fn left(left: Duration) -> String {
    let (unit, sign) = unit_left(left);
    format!("{}{sign}", units_left(left, unit))
}

fn unit_left(left: Duration) -> (Duration, char) {
    if left > Duration::from_secs(HOUR) {
        (Duration::from_secs(HOUR), 'h')
    } else {
        (Duration::from_secs(MINUTE), 'm')
    }
}

fn units_left(left: Duration, unit: Duration) -> u32 {
    u32::try_from(left.as_nanos().div_ceil(unit.as_nanos()).max(1)).unwrap_or(u32::MAX)
}

/// How long until [`left`] gives something else, or nothing is left.
fn next_change_left(left: Duration) -> Duration {
    let (unit, _) = unit_left(left);
    left.saturating_sub(unit.saturating_mul(units_left(left, unit) - 1))
}

/// Collects the visible ages of one frame, to know when the next frame is due.
#[derive(Debug, Default)]
pub struct Ages {
    next: Option<Duration>,
}

impl Ages {
    /// An age that is drawn now.
    pub fn show(&mut self, age: Duration) -> String {
        let next = next_change(age);
        self.next = Some(self.next.map_or(next, |known| known.min(next)));
        shown(age)
    }

    /// What is left, drawn now.
    pub fn show_left(&mut self, time: Duration) -> String {
        let next = next_change_left(time);
        self.next = Some(self.next.map_or(next, |known| known.min(next)));
        left(time)
    }

    /// How long until one of them will be another; none where none is drawn.
    pub fn next(&self) -> Option<Duration> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_changes_exactly_when_it_says() {
        for (millis, wanted) in
            [(1, "1m"), (60_000, "1m"), (60_001, "2m"), (3_600_000, "60m"), (3_600_001, "2h"), (0, "1m")]
        {
            let time = Duration::from_millis(millis);
            assert_eq!(left(time), wanted);
            let next = next_change_left(time);
            assert_eq!(left(time - next + next.min(Duration::from_millis(1))), wanted);
            assert!(time == next || left(time - next) != wanted, "{millis}");
        }
    }

    #[test]
    fn an_age_changes_exactly_when_it_says() {
        for seconds in [0, 1, 59, 60, 61, 119, 3599, 3600, 86_399, 86_400, 200_000] {
            let age = Duration::from_millis(seconds * 1000 + 250);
            let then = age + next_change(age);
            assert_ne!(shown(age), shown(then), "{seconds}");
            assert_eq!(shown(age), shown(then - Duration::from_millis(1)), "{seconds}");
        }
    }
}
