//! A lead's pane: what stands on its screen and what runs there. Looking only.

pub mod draw;

use std::cell::Cell;

use super::list::Scroll;
use crate::console::intent::Intent;
use crate::contract::{SessionId, Untrusted};
use crate::model::Model;

/// What the operator sees of it.
#[derive(Debug)]
pub struct State {
    lead: SessionId,
    scroll: Scroll,
    /// Whether the last row is in sight, and stays so when the screen changes.
    at_end: Cell<bool>,
}

impl State {
    /// Of this lead, at the end of its screen.
    pub fn of(lead: SessionId) -> Self {
        Self { lead, scroll: Scroll::default(), at_end: Cell::new(true) }
    }

    /// Whose pane it is.
    pub fn lead(&self) -> &SessionId {
        &self.lead
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent) {
        self.at_end.set(intent == Intent::Last);
        self.scroll.intent(intent);
    }

    /// What is shown of its screen.
    pub fn text<'a>(&self, model: &'a Model) -> Option<&'a Untrusted> {
        model.lead(&self.lead)?;
        model.peek(&self.lead)?.seen.as_ref().map(|seen| &seen.output)
    }
}
