//! The transcript: opening it, and what keys do to it beyond moving in it.

use super::app::{App, Effect, Layer};
use super::pager::Paging;
use super::theme::Role;
use super::view::transcript::{Place, Purpose, State, file_of};
use crate::fact::{Now, SessionFile, Wanted};

impl App {
    /// Shows the transcript of the selected lead; where it is shown, not any more.
    pub(super) fn transcript(&mut self, now: Now) {
        if let Some(Layer::Transcript(_)) = self.layers.last() {
            self.layers.pop();
            return;
        }
        match self.selected().filter(|lead| self.model.lead(lead).is_some()).cloned() {
            Some(session) => {
                let file = self.model.lead(&session).and_then(file_of);
                self.push_transcript(State::of_lead(session, file));
            }
            None => self.say(format_args!("No lead is selected."), Role::Notice, now),
        }
    }

    /// Shows the transcript of a session file, at an entry of it if `place` is given, on the newest
    /// branch that holds that.
    pub fn open_transcript(&mut self, file: SessionFile, place: Option<Place>) {
        self.push_transcript(State::of_file(file, place));
    }

    fn push_transcript(&mut self, state: State) {
        self.layers.retain(|layer| !matches!(layer, Layer::Transcript(_)));
        self.model.close_reading();
        self.layers.push(Layer::Transcript(Box::new(state)));
    }

    /// What has to be read, if somebody reads.
    pub fn wanted(&self) -> Option<Wanted> {
        let Some(Layer::Transcript(state)) = self.layers.last() else { return None };
        state.wanted()
    }

    /// Takes it that what was written out for the pager is there, or could not be; says whether it is
    /// still what is on the screen. Whoever went on to something else does not want it any more.
    pub fn takes_page(&mut self, paged: &Paging) -> bool {
        let is_awaited = self.paging.take_if(|paging| paging == paged).is_some();
        let Some(Layer::Transcript(state)) = self.layers.last() else { return false };
        let is_shown = state.shown() == Some((&paged.session, paged.branch));
        is_awaited && is_shown && self.confirm.is_none()
    }

    pub(super) fn transcript_on_top(&mut self) -> Option<&mut State> {
        match self.layers.last_mut() {
            Some(Layer::Transcript(state)) => Some(state),
            _ => None,
        }
    }

    /// What was asked of the transcript, and has come.
    pub(super) fn follow_transcript(&mut self, now: Now) {
        let model = &self.model;
        let states = self.layers.iter_mut().filter_map(|layer| match layer {
            Layer::Transcript(state) => Some(state),
            _ => None,
        });
        let file = |state: &State| state.shown().map(|(file, _)| file.clone());
        let taken = states.filter_map(|state| Some((state.follow(model)?, file(state)?)));
        for ((purpose, text), file) in taken.collect::<Vec<_>>() {
            match (purpose, text) {
                (Purpose::Copy, Ok(text)) => self.effects.push_back(Effect::Copy(text)),
                (Purpose::Copy, Err(why)) => {
                    self.say(format_args!("Not copied: {why}."), Role::Warning, now);
                }
                (Purpose::Quote, Ok(text)) => self.choose_quote(file, &text, now),
                (Purpose::Quote, Err(why)) => {
                    self.say(format_args!("Not quoted: {why}."), Role::Warning, now);
                }
            }
        }
    }

    /// Opens the branch that is on the screen in the pager.
    pub(super) fn page(&mut self, now: Now) {
        let Some(Layer::Transcript(state)) = self.layers.last() else { return };
        match state.paging(&self.model) {
            Some(paging)
                if self
                    .paging
                    .as_ref()
                    .is_some_and(|it| (&it.session, it.branch) == (&paging.session, paging.branch)) =>
            {
                self.say(format_args!("It is being written out for the pager."), Role::Notice, now);
            }
            Some(paging) => {
                self.paging = Some(paging.clone());
                self.effects.push_back(Effect::Page(paging));
                self.say(format_args!("Writing it out for the pager \u{2026}"), Role::Notice, now);
            }
            None => self.say(format_args!("There is nothing to read here."), Role::Notice, now),
        }
    }
}
