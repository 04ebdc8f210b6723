//! What happened, the newest first. Enter goes to where it happened.

pub mod draw;

use ratatui::layout::Position;

use crate::console::intent::Intent;
use crate::console::timeline::{Event, Timeline};
use crate::console::view::browse::Browser;
use crate::contract::Untrusted;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    /// An event is known by its number.
    browser: Browser<u64>,
}

impl State {
    /// The cursor on the newest.
    pub fn open(timeline: &Timeline) -> Self {
        let mut state = Self::default();
        state.follow(timeline);
        state
    }

    /// Takes over what happened since: the cursor stays on its event.
    pub fn follow(&mut self, timeline: &Timeline) {
        self.browser.follow(&numbers(timeline));
    }

    /// What an intent does; there is one pane.
    pub fn intent(&mut self, intent: Intent, timeline: &Timeline) {
        if !matches!(intent, Intent::NextPane | Intent::PreviousPane | Intent::Open) {
            self.browser.intent(intent, &numbers(timeline));
        }
    }

    /// Puts the cursor on what is drawn there.
    pub fn click(&mut self, at: Position, timeline: &Timeline) {
        let numbers = numbers(timeline);
        if let Some(row) = self.browser.click(at).filter(|row| *row < numbers.len()) {
            self.browser.put(row, &numbers);
        }
    }

    /// The event under the cursor.
    pub fn event<'a>(&self, timeline: &'a Timeline) -> Option<&'a Event> {
        timeline.event(*self.browser.selected()?)
    }

    /// The row under the cursor, to be copied.
    pub fn text(&self, timeline: &Timeline) -> Option<Untrusted> {
        let event = self.event(timeline)?;
        let parts = [event.name.as_str(), event.what.kind().word(), event.about.as_str()];
        let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Some(Untrusted::from(told.join(" ")))
    }
}

fn numbers(timeline: &Timeline) -> Vec<u64> {
    timeline.newest_first().map(|event| event.number).collect()
}
