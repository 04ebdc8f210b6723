//! How supervised turns went, a row a seat, and what runs. Looking only.

pub mod draw;

use super::listing::{Listing, Screen};
use crate::model::Model;
use crate::turn::statistics::Seat;

/// The seats, each known by its name.
#[derive(Debug)]
pub struct Seats;

/// What the operator sees of them.
pub type State = Screen<Seats>;

impl Listing for Seats {
    type Key = String;

    fn keys(model: &Model) -> Vec<String> {
        listed(model).into_iter().map(|seat| seat.name.clone()).collect()
    }

    fn of_row(model: &Model, row: usize) -> Option<usize> {
        draw::seat_of_row(&listed(model), row)
    }
}

impl Screen<Seats> {
    /// The name of the seat under the cursor.
    pub fn seat(&self) -> Option<&str> {
        self.selected().map(String::as_str)
    }
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
