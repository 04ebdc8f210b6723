//! How supervised turns went, a row a seat, and what runs. Looking only.

pub mod draw;

use ratatui::layout::Position;

use super::browse::Browser;
use crate::console::intent::Intent;
use crate::model::Model;
use crate::turn::statistics::Seat;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    browser: Browser<String>,
}

impl State {
    /// The seats as they were last looked at.
    pub fn open(model: &Model) -> Self {
        let mut state = Self::default();
        state.follow(model);
        state
    }

    /// Takes over what changed in the model: the cursor stays on its seat, or where that one stood.
    pub fn follow(&mut self, model: &Model) {
        self.browser.follow(&names(model));
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        self.browser.intent(intent, &names(model));
    }

    /// Puts the cursor on the seat that is drawn there.
    pub fn click(&mut self, at: Position, model: &Model) {
        let Some(row) = self.browser.click(at) else { return };
        if let Some(seat) = draw::seat_of_row(&listed(model), row) {
            self.browser.put(seat, &names(model));
        }
    }

    /// Whether a seat is under the cursor whose detail is not open.
    pub fn can_open(&self) -> bool {
        self.browser.selected().is_some() && !self.browser.is_in_detail()
    }

    /// Backs out of the detail; says whether the turns stay open.
    pub fn back(&mut self) -> bool {
        self.browser.back()
    }

    /// The name of the seat under the cursor.
    pub fn seat(&self) -> Option<&str> {
        self.browser.selected().map(String::as_str)
    }
}

fn names(model: &Model) -> Vec<String> {
    listed(model).into_iter().map(|seat| seat.name.clone()).collect()
}

/// What stands together in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Running,
    Failed,
    Well,
}

impl Group {
    fn of(seat: &Seat) -> Self {
        match &seat.last {
            _ if seat.runs() => Self::Running,
            Some(last) if last.ok => Self::Well,
            Some(_) | None => Self::Failed,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Failed => "LAST TURN FAILED",
            Self::Well => "WELL",
        }
    }
}

/// The seats in the order of the list.
fn listed(model: &Model) -> Vec<&Seat> {
    let mut seats: Vec<&Seat> = model.turns().map(|turns| turns.seats.iter().collect()).unwrap_or_default();
    seats.sort_by_key(|seat| Group::of(seat));
    seats
}
