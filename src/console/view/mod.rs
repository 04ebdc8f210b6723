//! The views: each has its state, what keys do to it, and how it is drawn.

pub mod ask;
pub mod broadcast;
pub mod browse;
pub mod detail;
pub mod diagnostics;
pub mod field;
mod found;
pub mod frame;
pub mod help;
pub mod inbox;
pub mod lessons;
pub mod list;
pub mod listing;
pub mod peek;
pub mod peers;
pub mod roster;
pub mod search;
pub mod signals;
pub mod timeline;
pub mod transcript;
pub mod turns;

use super::intent::Intent;
use super::keymap::Keymap;
use super::theme::Mark;
use crate::herd::State;
use crate::model::Model;

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

/// What somebody who is not Chief does before anything that only a Chief may; none for the Chief.
pub fn become_chief_first(model: &Model, keymap: &Keymap) -> Option<String> {
    let key = keymap.key_of(Intent::ToggleChief);
    match model.standing().lease() {
        Some(_) => None,
        None if key.is_empty() => Some("become Chief".to_owned()),
        None => Some(format!("become Chief ({key})")),
    }
}
