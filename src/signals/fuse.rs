//! What a signal and a report together advise. Nothing here is ever carried out by itself.

use super::detect::Signal;
use super::self_report::State;

/// What is advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Check whether what is claimed to be done is.
    Gate,
    /// Leave it alone for now.
    Wait,
    /// Write to the lead.
    Steer {
        /// Whether the lead reports otherwise than the session shows.
        disagrees: bool,
    },
}

impl Advice {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Advice::Gate => "gate",
            Advice::Wait => "wait",
            Advice::Steer { .. } => "steer",
        }
    }
}

/// The advice; none where nothing is to be done. `stopped_changed` is whether the lead changed
/// something since the user's turn and has ended its own.
pub fn advise(signal: Option<Signal>, report: Option<State>, stopped_changed: bool) -> Option<Advice> {
    let steer = Some(Advice::Steer { disagrees: false });
    match (signal, report) {
        (_, Some(State::Done)) => Some(Advice::Gate),
        (None, None) => stopped_changed.then_some(Advice::Gate),
        (None, Some(_)) => None,
        (Some(Signal::NoProgress), Some(State::Exploring)) => Some(Advice::Wait),
        (Some(Signal::NoProgress), Some(State::Progressing)) => Some(Advice::Steer { disagrees: true }),
        (Some(Signal::NoProgress), Some(State::NeedInput)) => None,
        (Some(_), _) => steer,
    }
}
