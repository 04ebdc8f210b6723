//! Replies and messages: opening the composer with its draft, and handing what was written to the
//! service.

use std::time::Duration;

use super::app::{App, Layer, Pending};
use super::theme::Role;
use super::view::ask;
use crate::chief::service::Request;
use crate::contract::SessionId;
use crate::fact::Now;

impl App {
    pub(super) fn reply(&mut self, now: Now) {
        if let Some(Layer::Ask(state)) = self.layers.last_mut() {
            if state.may_reply() {
                state.compose(&self.model);
            } else if state.is_message() {
                let lead = state.lead().clone();
                if self.model.lead(&lead).is_some_and(crate::herd::Lead::needs_you) {
                    self.open_ask(&lead, true, now);
                }
            } else if state.is_sent() {
                self.say(format_args!("Your reply is on its way."), Role::Notice, now);
            } else {
                self.say(format_args!("This ask needs no answer any more."), Role::Notice, now);
            }
            return;
        }
        let Some(lead) = self.selected().cloned() else { return };
        if self.model.lead(&lead).is_some_and(crate::herd::Lead::needs_you) {
            self.open_ask(&lead, true, now);
        } else {
            self.say(format_args!("This lead asks nothing now."), Role::Notice, now);
        }
    }

    /// Opens the composer for a message, with its draft.
    pub(super) fn message(&mut self, now: Now) {
        let Some(lead) = self.selected().cloned() else { return };
        self.keep_draft(now);
        let Some(mut state) = ask::State::message(&self.model, &lead) else {
            self.say(format_args!("That lead is not listed now."), Role::Notice, now);
            return;
        };
        let key = state.key();
        if self.pending.iter().any(|(_, pending)| *pending == Pending::Reply(key.clone())) {
            self.say(format_args!("A message to this lead is being sent."), Role::Notice, now);
            return;
        }
        if let Some(draft) = self.drafts.get(&key) {
            state.resume(draft, &self.model);
        }
        self.layers.retain(|layer| !matches!(layer, Layer::Ask(_)));
        self.layers.push(Layer::Ask(Box::new(state)));
    }

    /// Opens the ask of `lead` in place of another that is open.
    pub(super) fn open_ask(&mut self, lead: &SessionId, compose: bool, now: Now) {
        self.keep_draft(now);
        let Some(mut state) = ask::State::open(&self.model, lead) else { return };
        let key = state.key();
        if self.pending.iter().any(|(_, pending)| *pending == Pending::Reply(key.clone())) {
            self.say(format_args!("A reply to this ask is being sent."), Role::Notice, now);
            return;
        }
        if let Some(draft) = self.drafts.get(&key) {
            state.resume(draft, &self.model);
        }
        if compose && !state.is_sent() {
            state.compose(&self.model);
        }
        self.layers.retain(|layer| !matches!(layer, Layer::Ask(_)));
        self.layers.push(Layer::Ask(Box::new(state)));
        self.roster.select(lead, &self.model, now);
    }

    /// Enter in the composer: sends once it is known to be no part of a paste.
    pub(super) fn enter(&mut self, now: Now) {
        if let Some(Layer::Ask(state)) = self.layers.last_mut() {
            state.enter(now.mono);
            self.keep_draft(now);
        }
    }

    /// Whether an Enter stood alone by `now`: what was written is sent then.
    pub fn settle(&mut self, now: Now) -> bool {
        let Some(Layer::Ask(state)) = self.layers.last_mut() else { return false };
        let sends = self.confirm.is_none() && state.settle(now.mono);
        if sends {
            self.send(now);
        }
        sends
    }

    /// When to ask [`App::settle`], should nothing be typed.
    pub fn settle_at(&self) -> Option<Duration> {
        match self.layers.last() {
            Some(Layer::Ask(state)) => state.settle_at(),
            _ => None,
        }
    }

    pub(super) fn send(&mut self, now: Now) {
        let Some(Layer::Ask(state)) = self.layers.last_mut() else { return };
        match state.send(&self.model) {
            ask::Sending::Refused | ask::Sending::Underway => {}
            ask::Sending::Reply(reply) => {
                let key = state.key();
                self.keep_draft(now);
                self.request(Pending::Reply(key), |ticket| Request::Reply { ticket, reply });
            }
            ask::Sending::Message(letter) => {
                let key = state.key();
                self.keep_draft(now);
                self.request(Pending::Reply(key), |ticket| Request::Message { ticket, letter });
            }
        }
    }
}
