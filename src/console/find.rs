//! Searching in the sessions of all leads, and going to what was found.

use std::path::Path;
use std::sync::Arc;

use super::app::{App, Layer};
use super::intent::Intent;
use super::theme::Role;
use super::view::search;
use crate::contract::SessionId;
use crate::fact::{Now, SearchQuery};

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHit {
    /// In whose session.
    pub session: SessionId,
    /// In which file.
    pub file: Arc<Path>,
    /// Where its entry begins there, in bytes.
    pub offset: u64,
}

impl App {
    /// Opens the search, or closes it.
    pub(super) fn toggle_search(&mut self) {
        match self.layers.last() {
            Some(Layer::Search(_)) => drop(self.layers.pop()),
            _ => {
                self.layers.retain(|layer| !matches!(layer, Layer::Search(_)));
                self.layers.push(Layer::Search(Box::new(search::State::open())));
            }
        }
    }

    /// What is to be searched for.
    pub fn searched_for(&self) -> Option<&Arc<SearchQuery>> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Search(state) => state.query(),
            _ => None,
        })
    }

    /// Goes to what is under the cursor of the search.
    pub(super) fn open_found(&mut self, now: Now) {
        let Some(Layer::Search(state)) = self.layers.last() else { return };
        if let Some(hit) = state.hit(&self.model) {
            let place =
                OpenHit { session: hit.session.clone(), file: Arc::clone(&hit.file), offset: hit.offset };
            self.open_hit(&place, now);
        }
    }

    /// Goes to where something was found: to its lead.
    pub fn open_hit(&mut self, place: &OpenHit, now: Now) {
        if self.model.lead(&place.session).is_none() {
            self.say(format_args!("This lead is not listed any more."), Role::Notice, now);
            return;
        }
        self.layers.retain(|layer| !matches!(layer, Layer::Search(_)));
        self.roster.select(&place.session, &self.model, now);
        self.roster.intent(Intent::Open, &self.model, now);
    }
}
