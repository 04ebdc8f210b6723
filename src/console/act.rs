//! What keys do to what is selected, without writing anything.

use super::app::{App, Effect, Layer, Pending};
use super::intent::Intent;
use super::theme::Role;
use super::view::{diagnostics, peek};
use crate::chief::inquiry::Which;
use crate::chief::service::Request;
use crate::contract::{SessionId, Untrusted};
use crate::fact::Now;

impl App {
    pub(super) fn next_ask(&mut self, forward: bool, now: Now) {
        let asking: Vec<SessionId> =
            self.model.asking(now).into_iter().map(|lead| lead.session.clone()).collect();
        // Where we put the cursor ourselves, nobody has seen that ask yet.
        let current = match self.layers.last() {
            Some(Layer::Ask(state)) => Some(state.lead().clone()),
            _ => self.roster.placed().cloned(),
        };
        let open = match self.layers.last() {
            Some(Layer::Ask(state)) => Some(state.is_sent()),
            _ => None,
        };
        // What was answered just now may still be pending on disk for a moment.
        let answered = match self.layers.last() {
            Some(Layer::Ask(state)) if state.is_sent() => Some(state.lead().clone()),
            _ => None,
        };
        let others: Vec<SessionId> =
            asking.into_iter().filter(|lead| Some(lead) != answered.as_ref()).collect();
        let at = current.and_then(|lead| others.iter().position(|other| *other == lead));
        let next = match (at, others.len()) {
            (_, 0) => {
                self.say(format_args!("No other lead asks anything now."), Role::Notice, now);
                return;
            }
            (None, count) => {
                if forward {
                    0
                } else {
                    count - 1
                }
            }
            (Some(at), count) => {
                if forward {
                    (at + 1) % count
                } else {
                    (at + count - 1) % count
                }
            }
        };
        let lead = others[next].clone();
        match open {
            // After sending, straight to the next composer.
            Some(sent) => self.open_ask(&lead, sent, now),
            None => self.roster.select(&lead, &self.model, now),
        }
    }

    pub(super) fn open(&mut self, now: Now) {
        if let Some(Layer::Inbox(state)) = self.layers.last_mut() {
            if let Some(seq) = state.read() {
                self.mark(Which::Letter(seq), true);
            }
            return;
        }
        if let Some(Layer::Timeline(_)) = self.layers.last() {
            self.go_to_event(now);
            return;
        }
        if let Some(Layer::Peers(state)) = self.layers.last_mut() {
            state.intent(Intent::Open, &self.model);
            return;
        }
        if let Some(Layer::Turns(state)) = self.layers.last_mut() {
            state.intent(Intent::Open, &self.model);
            return;
        }
        if let Some(Layer::Signals(_)) = self.layers.last() {
            self.open_signal();
            return;
        }
        if let Some(Layer::Lessons(state)) = self.layers.last_mut() {
            state.intent(Intent::Open);
            return;
        }
        if let Some(Layer::Search(_)) = self.layers.last() {
            self.open_found();
            return;
        }
        if let Some(Layer::Transcript(state)) = self.layers.last_mut() {
            // A branch of the list.
            state.intent(Intent::Open, &self.model);
            return;
        }
        match self.selected().cloned() {
            Some(lead) if self.model.lead(&lead).is_some_and(crate::herd::Lead::needs_you) => {
                self.open_ask(&lead, false, now);
            }
            Some(_) => self.roster.intent(Intent::Open, &self.model, now),
            None => {}
        }
    }

    pub(super) fn focus_pane(&mut self, now: Now) {
        let pane = self.selected().and_then(|lead| self.model.lead(lead)).map(|lead| lead.pane.clone());
        match pane {
            Some(pane) => {
                let pane = pane.as_untrusted().clone();
                self.request(Pending::Focus, |ticket| Request::Focus { ticket, pane });
            }
            None => self.say(format_args!("No lead is selected."), Role::Notice, now),
        }
    }

    /// Shows the selected lead's pane; where it is shown, not any more.
    pub(super) fn peek(&mut self, now: Now) {
        if let Some(Layer::Peek(_)) = self.layers.last() {
            self.layers.pop();
            return;
        }
        match self.selected().filter(|lead| self.model.lead(lead).is_some()).cloned() {
            Some(lead) => {
                self.layers.retain(|layer| !matches!(layer, Layer::Peek(_)));
                self.layers.push(Layer::Peek(peek::State::of(lead)));
            }
            None => self.say(format_args!("No lead is selected."), Role::Notice, now),
        }
    }

    pub(super) fn copy(&mut self, now: Now) {
        let text = match self.layers.last_mut() {
            Some(Layer::Ask(state)) => state.question().cloned(),
            Some(Layer::Diagnostics(_)) => Some(Untrusted::from(diagnostics::lines(self, now).join("\n"))),
            Some(Layer::Inbox(state)) => {
                state.text().filter(|(_, whole)| *whole).map(|(text, _)| text.clone())
            }
            Some(Layer::Peers(state)) => state.session(&self.model).cloned(),
            Some(Layer::Turns(state)) => state.seat().map(Untrusted::from),
            Some(Layer::Signals(state)) => state.lead().map(|lead| lead.as_untrusted().clone()),
            Some(Layer::Peek(state)) => state.text(&self.model).cloned(),
            Some(Layer::Timeline(state)) => state.text(self.history.timeline()),
            Some(Layer::Transcript(state)) => {
                if !state.lists_branches() && state.copy(&self.model) {
                    return;
                }
                None
            }
            Some(Layer::Search(state)) => state.hit(&self.model).map(|hit| hit.text.as_str().into()),
            Some(Layer::Lessons(state)) => state.text().map(Untrusted::from),
            Some(Layer::Broadcast) => self.broadcast.as_ref().map(|state| state.text().clone()),
            Some(Layer::Help(_)) => None,
            None => self.roster.selected().map(|lead| match self.model.lead(lead) {
                Some(crate::herd::Lead { pending_ask: Some(ask), .. }) => ask.question.clone(),
                _ => lead.as_untrusted().clone(),
            }),
        };
        match text {
            Some(text) => self.effects.push_back(Effect::Copy(text)),
            None => self.say(format_args!("There is nothing to copy here."), Role::Notice, now),
        }
    }
}
