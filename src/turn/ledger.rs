//! When a turn's line is written: once. A run that failed is told at once; one that ended well is
//! held until it is known what became of its reply.

use super::metrics::{Line, Outcome, time};
use crate::contract::Timestamp;

/// The turn that is held, and where its line goes.
pub struct Ledger<W: FnMut(&Line)> {
    write: W,
    held: Option<Line>,
}

impl<W: FnMut(&Line)> Ledger<W> {
    /// One without a turn; lines go to `write`.
    pub fn new(write: W) -> Self {
        Self { write, held: None }
    }

    /// A run settled. One that failed is written as it is.
    pub fn settled(&mut self, line: Line) {
        // What was held before has lost its reply: nobody can say more of it.
        self.finish(Outcome::ReplyLost, now());
        match line.failure {
            Some(_) => (self.write)(&line),
            None => self.held = Some(line),
        }
    }

    /// What became of the reply of the turn that is held; says whether there was one. Only the first
    /// counts.
    pub fn finish(&mut self, outcome: Outcome, at: Timestamp) -> bool {
        let Some(mut line) = self.held.take() else { return false };
        line.outcome = outcome;
        line.ok = outcome.is_ok();
        line.ts = time(at.as_millis());
        (self.write)(&line);
        true
    }
}

impl<W: FnMut(&Line)> Drop for Ledger<W> {
    /// Whoever was to deliver did not get to say so.
    fn drop(&mut self) {
        self.finish(Outcome::ReplyLost, now());
    }
}

/// The time of day.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::turn::failure::Failure;

    fn line(failure: Option<Failure>) -> Line {
        Line {
            v: 1,
            ts: time(0),
            seat: "s".to_owned(),
            adapter: "a".to_owned(),
            path: "supervised",
            event_type: None,
            turn_start: time(0),
            turn_end: time(5),
            duration_ms: 5,
            outcome: Outcome::Failed,
            ok: false,
            failure,
            failure_source: failure.map(Failure::source),
            failure_class: None,
            stalled: false,
            cancelled: false,
            killed: false,
            exit_code: Some(0),
            signal: None,
            exit_observed: true,
            child_left_running: false,
            attempts: 1,
            stall_ms: 0,
            cancel_grace_ms: 15_000,
            timeout_ms: 900_000,
        }
    }

    #[test]
    fn a_turn_is_written_once_with_the_first_that_is_said_of_it() {
        let lines = RefCell::new(Vec::new());
        let mut ledger = Ledger::new(|line: &Line| lines.borrow_mut().push(line.outcome));
        assert!(!ledger.finish(Outcome::Delivered, now()), "there is no turn yet");
        ledger.settled(line(None));
        assert!(lines.borrow().is_empty(), "it is held");
        assert!(ledger.finish(Outcome::ServerRefused, now()));
        assert!(!ledger.finish(Outcome::Delivered, now()));
        ledger.settled(line(Some(Failure::SpawnFailed)));
        assert!(!ledger.finish(Outcome::Delivered, now()), "it failed and was told");
        drop(ledger);
        assert_eq!(*lines.borrow(), [Outcome::ServerRefused, Outcome::Failed]);
    }

    #[test]
    fn a_delivery_that_never_says_anything_has_lost_the_reply() {
        let lines = RefCell::new(Vec::new());
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut ledger = Ledger::new(|line: &Line| lines.borrow_mut().push((line.outcome, line.ok)));
            ledger.settled(line(None));
            std::panic::resume_unwind(Box::new("delivering failed"));
        }));
        assert!(unwound.is_err());
        assert_eq!(*lines.borrow(), [(Outcome::ReplyLost, false)]);
    }

    #[test]
    fn every_outcome_but_two_is_not_ok() {
        let names = [
            "delivered",
            "silent",
            "reply_lost",
            "claim_lost",
            "server_skipped",
            "server_refused",
            "upstream_refused",
        ];
        for name in names {
            let outcome = Outcome::delivery(name).unwrap();
            assert_eq!(serde_json::to_value(outcome).unwrap(), name);
            assert_eq!(outcome.is_ok(), ["delivered", "silent"].contains(&name), "{name}");
        }
        assert_eq!(Outcome::delivery("failed"), None);
        let keys: Vec<String> = String::from_utf8(line(None).to_bytes())
            .unwrap()
            .split("\":")
            .filter_map(|it| Some(it.rsplit_once('"')?.1.to_owned()))
            .collect();
        assert_eq!(keys.len(), 25, "{keys:?}");
    }
}
