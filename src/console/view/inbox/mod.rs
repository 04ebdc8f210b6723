//! What leads sent, as the journal keeps it: read and unread, the newest first.

pub mod draw;

use super::list::Scroll;
use crate::console::intent::Intent;
use crate::contract::Untrusted;
use crate::fact::Letter;
use crate::model::Model;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    /// The letter under the cursor, by its number in the journal.
    selected: Option<u64>,
    /// Where it stands.
    at: usize,
    list: Scroll,
    detail: Scroll,
    /// Whether the keys go to the detail.
    in_detail: bool,
}

impl State {
    /// The letters as they are known.
    pub fn open(model: &Model) -> Self {
        let mut state = Self::default();
        state.follow(model);
        state
    }

    /// Takes over what changed in the model: the cursor stays on its letter.
    pub fn follow(&mut self, model: &Model) {
        match listed(model).position(|letter| Some(letter.seq) == self.selected) {
            Some(at) => self.at = at,
            None => self.select(self.at, model),
        }
    }

    fn select(&mut self, at: usize, model: &Model) {
        self.at = at.min(model.mail().newest.len().saturating_sub(1));
        let selected = listed(model).nth(self.at).map(|letter| letter.seq);
        if selected != self.selected {
            self.selected = selected;
            self.detail = Scroll::default();
        }
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        match intent {
            Intent::NextPane | Intent::PreviousPane => self.in_detail = !self.in_detail,
            _ if self.in_detail => self.detail.intent(intent),
            Intent::First => self.select(0, model),
            Intent::Last => self.select(usize::MAX, model),
            _ => self.select(self.at.saturating_add_signed(self.list.step(intent)), model),
        }
    }

    /// Gives the keys to the detail; the number of the letter that is to be read whole.
    pub fn read(&mut self) -> Option<u64> {
        self.in_detail = self.selected.is_some();
        self.selected
    }

    /// Backs out of the detail; says whether the inbox stays open.
    pub fn back(&mut self) -> bool {
        std::mem::take(&mut self.in_detail)
    }

    /// The text of the letter under the cursor, as far as it is known.
    pub fn text<'a>(&self, model: &'a Model) -> Option<&'a Untrusted> {
        self.letter(model).map(|letter| model.letter_text(letter))
    }

    fn letter<'a>(&self, model: &'a Model) -> Option<&'a Letter> {
        listed(model).nth(self.at).filter(|letter| Some(letter.seq) == self.selected)
    }
}

/// The letters in the order of the list.
fn listed(model: &Model) -> impl Iterator<Item = &Letter> {
    model.mail().newest.iter().rev()
}
