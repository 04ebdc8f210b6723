//! Searching in the sessions of all leads, and going to what was found.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use super::app::{App, Layer};
use super::view::search;
use super::view::transcript::Place;
use crate::contract::Untrusted;
use crate::fact::{SearchQuery, SessionFile};

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

    /// Opens the transcript at what is under the cursor of the search, which stays below it.
    pub(super) fn open_found(&mut self) {
        let Some(Layer::Search(state)) = self.layers.last() else { return };
        if let Some(hit) = state.hit(&self.model) {
            let path = Untrusted::from_bytes_lossy(hit.file.as_os_str().as_bytes());
            let place = Place { offset: hit.offset };
            self.open_transcript(SessionFile { path, session: hit.session.clone() }, Some(place));
        }
    }
}
