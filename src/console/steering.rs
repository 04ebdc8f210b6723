//! Signals in the console: their screen, the draft that steers a lead, what is recited to it.

use super::app::{App, Layer};
use super::theme::Role;
use super::view::signals;
use super::view::transcript::{Place, file_of};
use crate::contract::SessionId;
use crate::fact::{Now, SessionRead};
use crate::model::signals::Judged;
use crate::signals::recite::Recital;

impl App {
    /// Opens the signals, or closes them.
    pub(super) fn toggle_signals(&mut self) {
        match self.layers.last() {
            Some(Layer::Signals(_)) => drop(self.layers.pop()),
            _ => {
                self.layers.retain(|layer| !matches!(layer, Layer::Signals(_)));
                self.layers.push(Layer::Signals(signals::State::open(&self.model)));
            }
        }
    }

    /// Opens the transcript at the entry under the cursor; on a lead its detail.
    pub(super) fn open_signal(&mut self) {
        let Some(Layer::Signals(state)) = self.layers.last_mut() else { return };
        let lead = state.lead().and_then(|lead| self.model.lead(lead));
        match (state.entry(&self.model), lead.and_then(file_of)) {
            (Some(round), Some(file)) => {
                let place = Place { offset: round.offset, found: None };
                self.open_transcript(file, Some(place));
            }
            _ => state.intent(super::intent::Intent::Open, &self.model),
        }
    }

    /// The selected lead, if a draft that steers it is offered.
    pub(super) fn steered(&self) -> Option<&SessionId> {
        let lead = self.selected().and_then(|lead| self.model.lead(lead))?;
        self.model.judged(lead).filter(Judged::offers_draft).map(|_| &lead.session)
    }

    /// Opens the composer with what a signal of the selected lead suggests.
    pub(super) fn steer(&mut self, now: Now) {
        if self.is_barred(now) {
            return;
        }
        let Some(lead) = self.selected().and_then(|lead| self.model.lead(lead)) else {
            self.say(format_args!("No lead is selected."), Role::Notice, now);
            return;
        };
        let session = lead.session.clone();
        let judged = self.model.judged(lead);
        let offered = judged.as_ref().is_some_and(Judged::offers_draft);
        let draft = judged.as_ref().and_then(|judged| judged.standing.draft.clone());
        match (draft, self.model.basis(&session)) {
            (Some(_), _) if !offered => self.say(
                format_args!("You wrote to it since. A draft is offered again if it goes on the same."),
                Role::Notice,
                now,
            ),
            (Some(_), None) => {
                self.say(format_args!("Only a Chief can steer a lead."), Role::Notice, now);
            }
            (Some(draft), Some(basis)) => {
                if let Some(state) = self.open_message(&session, now) {
                    state.suggest(&draft, basis);
                }
            }
            (None, _) if judged.is_some() => {
                self.say(format_args!("Nothing it shows calls for steering it."), Role::Notice, now);
            }
            (None, _) => match self.model.sessions().read(&session) {
                Some(SessionRead::Unread(why)) => {
                    let why = why.clone();
                    self.say(format_args!("It is not watched: {why}."), Role::Notice, now);
                }
                _ => self.say(format_args!("Nothing is known of its session yet."), Role::Notice, now),
            },
        }
    }

    /// What is due to be recited to `lead`.
    pub(super) fn recital(&self, lead: &SessionId) -> Option<Recital> {
        let recital = self.model.signals().sight(lead)?.recital.clone()?;
        recital.is_due(self.recited.get(lead)).then_some(recital)
    }

    /// Inserts what is offered to be recited.
    pub(super) fn recite(&mut self, now: Now) {
        let Some(Layer::Ask(state)) = self.layers.last_mut() else { return };
        let lead = state.lead().clone();
        let Some(recital) = state.take_recital() else {
            self.say(format_args!("There is nothing to recite to this lead now."), Role::Notice, now);
            return;
        };
        let problem = state.pasted(&recital.text, now.mono);
        self.recited.insert(lead, recital);
        self.keep_draft(now);
        if let Some(problem) = problem {
            self.say(format_args!("{problem}"), Role::Warning, now);
        }
    }
}
