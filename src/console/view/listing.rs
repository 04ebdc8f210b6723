//! The state of a screen that is a list of what the model holds, with the detail of what is under its
//! cursor.

use ratatui::layout::Position;

use super::browse::Browser;
use crate::console::intent::Intent;
use crate::model::Model;

/// What a screen lists.
pub trait Listing {
    /// What one thing is known by.
    type Key: Clone + PartialEq;

    /// The keys of all there is, in the order of the list.
    fn keys(model: &Model) -> Vec<Self::Key>;

    /// Which of them row `row` is, if it is no heading.
    fn of_row(model: &Model, row: usize) -> Option<usize>;
}

/// What the operator sees of it.
#[derive(Debug)]
pub struct Screen<L: Listing> {
    pub(super) browser: Browser<L::Key>,
}

impl<L: Listing> Screen<L> {
    /// The list as the model has it.
    pub fn open(model: &Model) -> Self {
        let mut screen = Self { browser: Browser::default() };
        screen.follow(model);
        screen
    }

    /// Takes over what changed in the model: the cursor stays on its row, or where that one stood.
    pub fn follow(&mut self, model: &Model) {
        self.browser.follow(&L::keys(model));
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        self.browser.intent(intent, &L::keys(model));
    }

    /// Puts the cursor on what is drawn there.
    pub fn click(&mut self, at: Position, model: &Model) {
        let Some(row) = self.browser.click(at) else { return };
        if let Some(at) = L::of_row(model, row) {
            self.browser.put(at, &L::keys(model));
        }
    }

    /// Whether something is under the cursor whose detail is not open.
    pub fn can_open(&self) -> bool {
        self.browser.selected().is_some() && !self.browser.is_in_detail()
    }

    /// Backs out of the detail; says whether the screen stays open.
    pub fn back(&mut self) -> bool {
        self.browser.back()
    }

    /// The key of what is under the cursor.
    pub fn selected(&self) -> Option<&L::Key> {
        self.browser.selected()
    }
}
