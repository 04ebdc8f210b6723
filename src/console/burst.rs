//! Typed text is never a command.
//!
//! Programs can type into a listed pane, and people paste into the wrong window. Outside a text
//! field a key therefore counts only when no other key comes within [`APART`] of it, before or
//! after: it is held for that long first, so that not even the first character of a text gets
//! through. After a burst, keys are dropped until none came for [`QUIET`]: a long text arrives in
//! several reads. A held-down key repeats at 30 a second, 33 ms apart, and passes.
//!
//! Ctrl-c passes at once: two that wait for a busy console come in one read.
//!
//! Arrow and paging keys are no text, only move the cursor, and come several at once from a mouse
//! wheel in the alternate screen: among themselves they pass at once.
//!
//! Times are monotonic, since any start. They are taken when a key is read, one for all that are read
//! in one go: however late the system lets any thread go on, a text is never taken for single keys.

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Keys closer together than this were not pressed by a hand.
pub const APART: Duration = Duration::from_millis(5);

/// A burst is over when no key came for this long: shorter than the fastest usual key repeat.
pub const QUIET: Duration = Duration::from_millis(25);

/// How soon a second Ctrl-c has to follow the first.
pub const TWICE_WITHIN: Duration = Duration::from_secs(2);

/// What came of the keys pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// This one counts.
    Key(KeyEvent),
    /// A burst is over; this many keys of it were dropped. To be shown as a notice.
    Dropped(usize),
}

#[derive(Debug, Clone, Copy)]
enum State {
    Open,
    /// A key that may be the first of a burst.
    Held(KeyEvent, Duration),
    /// Dropping; how many so far.
    Burst(usize),
}

/// Holds keys back outside text fields. In a text field keys go past it.
#[derive(Debug)]
pub struct BurstGuard {
    state: State,
    last: Option<Duration>,
    passed: VecDeque<Passed>,
}

impl Default for BurstGuard {
    fn default() -> Self {
        Self { state: State::Open, last: None, passed: VecDeque::new() }
    }
}

impl BurstGuard {
    /// Takes a key read at `now`.
    pub fn press(&mut self, key: KeyEvent, now: Duration) {
        // A release belongs to the press before it.
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.settle(now);
        // No text has it, and it must get through whatever else does not: twice, it quits.
        if is_interrupt(key) {
            self.passed.push_back(Passed::Key(key));
            return;
        }
        let close = self.last.is_some_and(|last| now.saturating_sub(last) < APART);
        self.last = Some(now);
        self.state = match self.state {
            State::Burst(dropped) => State::Burst(dropped + 1),
            State::Held(..) => State::Burst(2),
            State::Open if is_motion(key) => {
                self.passed.push_back(Passed::Key(key));
                State::Open
            }
            State::Open if close => State::Burst(1),
            State::Open => State::Held(key, now),
        };
    }

    /// The next key that counts by `now`, or that a burst is over.
    pub fn next(&mut self, now: Duration) -> Option<Passed> {
        self.settle(now);
        self.passed.pop_front()
    }

    /// When to ask [`BurstGuard::next`] again, should no key come.
    pub fn deadline(&self) -> Option<Duration> {
        match (self.state, self.last) {
            (State::Held(_, since), _) => Some(since + APART),
            (State::Burst(_), Some(last)) => Some(last + QUIET),
            _ => None,
        }
    }

    fn settle(&mut self, now: Duration) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Open) {
            State::Held(key, _) => self.passed.push_back(Passed::Key(key)),
            State::Burst(dropped) => self.passed.push_back(Passed::Dropped(dropped)),
            State::Open => {}
        }
    }
}

fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL
}

fn is_motion(key: KeyEvent) -> bool {
    matches!(
        key.code,
        KeyCode::Up
            | KeyCode::Down
            | KeyCode::Left
            | KeyCode::Right
            | KeyCode::PageUp
            | KeyCode::PageDown
            | KeyCode::Home
            | KeyCode::End
    )
}

/// Ctrl-c counts when it comes twice.
#[derive(Debug, Default)]
pub struct Twice(Option<Duration>);

impl Twice {
    /// Whether this press is the second.
    pub fn press(&mut self, now: Duration) -> bool {
        match self.0.take() {
            Some(first) if now.saturating_sub(first) <= TWICE_WITHIN => true,
            _ => {
                self.0 = Some(now);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn two_interrupts_read_at_once_both_count_and_text_around_them_does_not() {
        let mut guard = BurstGuard::default();
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for key in [key(KeyCode::Char('x')), interrupt, interrupt, key(KeyCode::Char('y'))] {
            guard.press(key, micros(1));
        }
        let passed: Vec<_> = std::iter::from_fn(|| guard.next(micros(1_000_000))).collect();
        assert_eq!(passed, [Passed::Key(interrupt), Passed::Key(interrupt), Passed::Dropped(2)]);
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Presses keys at their times, asking for what passed after each and at each deadline.
    fn run(keys: &[(KeyCode, u64)]) -> Vec<Passed> {
        let mut guard = BurstGuard::default();
        let mut passed = Vec::new();
        for (at, (code, time)) in keys.iter().enumerate() {
            guard.press(key(*code), micros(*time));
            let until = keys.get(at + 1).map_or(u64::MAX, |(_, time)| *time);
            let mut now = micros(*time);
            loop {
                while let Some(next) = guard.next(now) {
                    passed.push(next);
                }
                match guard.deadline() {
                    Some(deadline) if deadline <= micros(until) => now = deadline,
                    _ => break,
                }
            }
        }
        passed
    }

    fn typed(text: &str, start: u64, apart: u64) -> Vec<(KeyCode, u64)> {
        text.chars()
            .zip(0..)
            .map(|(character, nth)| {
                let code = if character == '\n' { KeyCode::Enter } else { KeyCode::Char(character) };
                (code, start + nth * apart)
            })
            .collect()
    }

    #[test]
    fn one_key_passes_after_it_was_held() {
        let mut guard = BurstGuard::default();
        guard.press(key(KeyCode::Char('q')), micros(100));
        assert_eq!(guard.next(micros(5_099)), None);
        assert_eq!(guard.deadline(), Some(micros(5_100)));
        assert_eq!(guard.next(micros(5_100)), Some(Passed::Key(key(KeyCode::Char('q')))));
        assert_eq!((guard.next(micros(9_000)), guard.deadline()), (None, None));
    }

    #[test]
    fn a_held_down_key_and_a_fast_typist_pass() {
        for apart in [33_333, 10_000, 5_000] {
            let keys = typed("jjjjjjjjjj", 0, apart);
            let expected: Vec<_> = keys.iter().map(|(code, _)| Passed::Key(key(*code))).collect();
            assert_eq!(run(&keys), expected);
        }
    }

    #[test]
    fn pasted_text_is_no_command_not_even_its_first_or_last_character() {
        for apart in [0, 1, 4_999] {
            assert_eq!(run(&typed("rqq\ny", 0, apart)), [Passed::Dropped(5)], "{apart} µs apart");
        }
    }

    #[test]
    fn a_text_in_several_reads_is_one_burst() {
        let mut keys = typed("abc", 0, 0);
        keys.extend(typed("q", 24_000, 0));
        keys.extend(typed("cd", 48_000, 0));
        keys.extend(typed("j", 73_001, 0));
        assert_eq!(run(&keys), [Passed::Dropped(6), Passed::Key(key(KeyCode::Char('j')))]);
    }

    #[test]
    fn a_wheel_moves_but_motions_do_not_cover_for_text() {
        let wheel = [(KeyCode::Up, 0), (KeyCode::Up, 0), (KeyCode::Up, 10)];
        assert_eq!(run(&wheel), [Passed::Key(key(KeyCode::Up)); 3]);
        assert_eq!(
            run(&[(KeyCode::Up, 0), (KeyCode::Char('q'), 10)]),
            [Passed::Key(key(KeyCode::Up)), Passed::Dropped(1)]
        );
        assert_eq!(run(&[(KeyCode::Char('q'), 0), (KeyCode::Up, 10)]), [Passed::Dropped(2)]);
    }

    #[test]
    fn a_loop_that_was_busy_still_counts_by_when_keys_were_read() {
        let mut guard = BurstGuard::default();
        guard.press(key(KeyCode::Char('j')), micros(0));
        guard.press(key(KeyCode::Char('k')), micros(8_000));
        assert_eq!(guard.next(micros(20_000)), Some(Passed::Key(key(KeyCode::Char('j')))));
        assert_eq!(guard.next(micros(20_000)), Some(Passed::Key(key(KeyCode::Char('k')))));
        let release = KeyEvent { kind: KeyEventKind::Release, ..key(KeyCode::Char('k')) };
        guard.press(release, micros(20_001));
        assert_eq!(guard.next(micros(90_000)), None);
    }

    #[test]
    fn only_a_prompt_second_ctrl_c_counts() {
        let mut twice = Twice::default();
        assert!(!twice.press(micros(0)));
        assert!(!twice.press(micros(2_000_001)));
        assert!(twice.press(micros(3_000_000)));
        assert!(!twice.press(micros(3_000_001)));
    }

    proptest! {
        #[test]
        fn what_passes_stood_alone_and_nothing_is_lost(gaps in prop::collection::vec(0..40_000_u64, 1..40)) {
            let mut now = 0;
            let keys: Vec<_> = gaps.iter().zip('\u{4E00}'..).map(|(gap, character)| {
                now += gap;
                (KeyCode::Char(character), now)
            }).collect();
            let passed = run(&keys);
            let mut count = 0;
            for one in &passed {
                match one {
                    Passed::Dropped(dropped) => count += dropped,
                    Passed::Key(event) => {
                        count += 1;
                        let at = keys.iter().position(|(code, _)| *code == event.code).unwrap();
                        let alone = |other: Option<&(KeyCode, u64)>| {
                            other.is_none_or(|(_, time)| time.abs_diff(keys[at].1) >= 5_000)
                        };
                        prop_assert!(alone(keys.get(at + 1)) && (at == 0 || alone(keys.get(at - 1))));
                    }
                }
            }
            prop_assert_eq!(count, keys.len());
        }
    }
}
