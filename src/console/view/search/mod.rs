//! Searching in the sessions of all leads.

pub mod draw;

use std::cell::Cell;
use std::sync::Arc;

use crossterm::event::KeyEvent;

use super::browse::Browser;
use super::field::Field;
use crate::chief::staff::path_of;
use crate::console::intent::{Context, Intent};
use crate::fact::{SearchQuery, Searched};
use crate::model::Model;
use crate::pi::discover::Wanted;
use crate::pi::search::{Case, Hit, Pattern, Syntax};

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    field: Field,
    /// What the search is for, once there is anything.
    query: Option<Arc<SearchQuery>>,
    /// The same, to mark it in texts.
    pattern: Option<Pattern>,
    /// A hit is known by its place among those of one query.
    browser: Browser<usize>,
    /// Whether the place in the text is to be brought in sight.
    jumps: Cell<bool>,
}

impl State {
    /// An empty search, into which what is typed goes.
    pub fn open() -> Self {
        let mut state = Self::default();
        state.field.edit();
        state
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        if self.field.is_editing() { Context::Filter } else { Context::Search }
    }

    /// What is to be searched for.
    pub fn query(&self) -> Option<&Arc<SearchQuery>> {
        self.query.as_ref()
    }

    /// Takes over what was found meanwhile.
    pub fn follow(&mut self, model: &Model) {
        self.moved(model, |browser, keys| browser.follow(keys));
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        match intent {
            Intent::Search => self.field.edit(),
            Intent::KeepFilter => self.field.keep(),
            _ => self.moved(model, |browser, keys| browser.intent(intent, keys)),
        }
    }

    /// What a key that is text does; where the text is another then, `number` is that of its query.
    pub fn typed(&mut self, key: KeyEvent, model: &Model, number: u64) {
        if self.field.typed(key) {
            self.ask(model, number);
        }
    }

    /// Pasted text goes in as one line.
    pub fn pasted(&mut self, text: &str, model: &Model, number: u64) {
        if self.field.pasted(text) {
            self.ask(model, number);
        }
    }

    /// The leads are those of now: who comes later is searched by the next query.
    fn ask(&mut self, model: &Model, number: u64) {
        self.browser = Browser::default();
        let text = self.field.text();
        self.pattern =
            Pattern::new(text, Syntax::Literal, Case::Smart).ok().filter(|_| !text.trim().is_empty());
        self.query = self.pattern.as_ref().map(|_| {
            let wanted = model.roster().leads.iter().map(|lead| Wanted {
                session: lead.session.clone(),
                file: lead.session_file.as_ref().map(path_of),
                cwd: lead.cwd.as_ref().map(path_of),
            });
            Arc::new(SearchQuery { number, text: text.to_owned(), wanted: wanted.collect() })
        });
    }

    /// Backs out of the text field or the text beside the list; says whether the search stays open.
    pub fn back(&mut self) -> bool {
        if self.field.is_editing() && self.query.is_some() {
            self.field.keep();
            return true;
        }
        self.browser.back()
    }

    /// Whether a hit is under the cursor.
    pub fn hit<'a>(&self, model: &'a Model) -> Option<&'a Arc<Hit>> {
        self.searched(model)?.hits.get(*self.browser.selected()?)
    }

    /// What was found so far of what is searched for now.
    fn searched<'a>(&self, model: &'a Model) -> Option<&'a Searched> {
        let number = self.query.as_ref()?.number;
        model.searched().filter(|searched| searched.number == number)
    }

    fn moved(&mut self, model: &Model, by: impl FnOnce(&mut Browser<usize>, &[usize])) {
        let count = self.searched(model).map_or(0, |searched| searched.hits.len());
        let before = self.browser.selected().copied();
        by(&mut self.browser, &(0..count).collect::<Vec<_>>());
        if self.browser.selected().copied() != before {
            self.jumps.set(true);
        }
    }
}
