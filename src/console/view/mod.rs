//! The views: each has its state, what keys do to it, and how it is drawn.

pub mod ask;
pub mod browse;
pub mod detail;
pub mod diagnostics;
pub mod field;
pub mod frame;
pub mod help;
pub mod inbox;
pub mod list;
pub mod peers;
pub mod roster;

use super::theme::Mark;
use crate::herd::State;

/// What a state shows; `active` is how many active agents a lead has.
pub fn mark_of(state: State, active: usize) -> Mark {
    match state {
        State::Working => Mark::Working,
        State::Blocked => Mark::Blocked,
        State::Settling => Mark::Settling,
        State::Starting => Mark::Starting,
        State::Idle | State::Done if active > 0 => Mark::IdleActive,
        State::Idle => Mark::Idle,
        State::Done => Mark::Done,
        State::Unknown => Mark::Unknown,
        State::Lost => Mark::Lost,
    }
}
