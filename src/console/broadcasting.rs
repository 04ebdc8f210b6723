//! One message to several leads: opening it, handing it over, and what becomes of it.

use super::app::{App, Confirm, Effect, Layer, Pending};
use super::broadcast::{Broadcast, MAX_RECIPIENTS};
use super::intent::Intent;
use super::theme::Role;
use super::view::broadcast::{Counts, State};
use super::view::{ask, become_chief_first};
use crate::chief::service::Request;
use crate::chief::staff::Letter;
use crate::contract::SessionId;
use crate::fact::{Done, Now};

/// The text field that is open, of one lead or of several.
pub(super) fn writer_of<'a>(
    layers: &'a mut [Layer],
    broadcast: &'a mut Option<Box<State>>,
) -> Option<&'a mut ask::State> {
    match layers.last_mut()? {
        Layer::Ask(state) => Some(state),
        Layer::Broadcast => broadcast.as_mut().filter(|it| it.is_writing()).map(|it| &mut it.writer),
        _ => None,
    }
}

impl App {
    pub(super) fn writer(&mut self) -> Option<&mut ask::State> {
        writer_of(&mut self.layers, &mut self.broadcast)
    }

    /// The broadcast that is written or goes out, whether it is on the screen or not.
    pub fn broadcast(&self) -> Option<&State> {
        self.broadcast.as_deref()
    }

    /// Takes up the broadcast that an earlier run kept.
    pub fn resume_broadcast(&mut self, kept: Broadcast, now: Now) {
        let (count, begun) = (kept.to.len(), kept.begun);
        let state = State::resume(&self.model, kept, &self.settings.place);
        self.broadcast = Some(Box::new(state));
        if begun {
            let key = self.settings.keymap.key_of(Intent::Broadcast);
            self.say(
                format_args!("A broadcast to {count} leads was not finished: {key} shows it."),
                Role::Warning,
                now,
            );
        }
    }

    /// Whether a text to several leads is on the screen, written or going out.
    pub(super) fn shows_broadcast(&self) -> bool {
        matches!(self.layers.last(), Some(Layer::Broadcast))
    }

    /// Opens the broadcast to those that are marked or that the filter shows; one that was begun is to
    /// whom it was. Where it is open already, it is written on.
    pub(super) fn open_broadcast(&mut self, now: Now) {
        if self.shows_broadcast() {
            return self.write_broadcast_on(now);
        }
        if self.is_barred(now) {
            return;
        }
        self.broadcast.take_if(|state| state.is_done());
        let chosen = self.roster.chosen(&self.model);
        if chosen.len() > MAX_RECIPIENTS {
            let text = format_args!("A broadcast is to at most {MAX_RECIPIENTS} leads: mark fewer.");
            return self.say(text, Role::Warning, now);
        }
        match &mut self.broadcast {
            Some(state) if state.is_writing() => {
                if !chosen.is_empty() {
                    state.readdress(&self.model, chosen);
                }
                state.writer.rebind(&self.model);
            }
            Some(_) => {}
            None if chosen.is_empty() => {
                let key = |intent| self.settings.keymap.key_of(intent);
                let (mark, filter) = (key(Intent::Mark), key(Intent::Filter));
                let text = format!("Mark the leads it is for ({mark}), or filter the list ({filter}).");
                return self.say(format_args!("{text}"), Role::Notice, now);
            }
            None => {
                let state = State::to(&self.model, chosen, &self.settings.place);
                self.broadcast = Some(Box::new(state));
            }
        }
        self.layers.push(Layer::Broadcast);
        self.keep_draft(now);
    }

    fn write_broadcast_on(&mut self, now: Now) {
        if let Some(state) = &mut self.broadcast
            && !state.is_writing()
            && !state.write_on(&self.model)
        {
            self.say(format_args!("It can't be written on: somebody may have it."), Role::Notice, now);
        }
        self.keep_draft(now);
    }

    /// Has what is written kept if it changed; nothing is left of it once it is empty.
    pub(super) fn keep_broadcast(&mut self, now: Now) {
        let Some(unkept) = self.broadcast.as_mut().and_then(|state| state.unkept(now.wall)) else { return };
        self.effects.push_back(match unkept.text.is_empty() {
            true => Effect::RemoveBroadcast,
            false => Effect::SaveBroadcast(unkept),
        });
    }

    /// Backs out of the broadcast; says whether it stays on the screen.
    pub(super) fn back_from_broadcast(&mut self) -> bool {
        let Some(state) = self.broadcast.as_mut().filter(|state| state.is_writing()) else { return false };
        let stays = state.writer.close_list();
        if !stays && state.writer.text().is_empty() {
            self.broadcast = None;
        }
        stays
    }

    /// What was written is to go out, if the operator says so.
    pub(super) fn ask_to_broadcast(&mut self, letter: Letter) {
        if let Some(state) = &mut self.broadcast {
            state.prepare(letter.text, letter.files);
            self.confirm = Some(Confirm::Broadcast);
        }
    }

    /// The operator says so: first it is made durable, with the ids of its messages, so that no crash has
    /// anybody get it twice.
    pub(super) fn begin_broadcast(&mut self, now: Now) {
        if let Some(state) = self.broadcast.as_mut().filter(|state| state.is_writing()) {
            state.begin(&self.model);
            self.effects.push_back(Effect::KeepBroadcast(state.broadcast(now.wall)));
        }
    }

    /// The broadcast that goes out is durable, or why it can't be.
    pub fn broadcast_kept(&mut self, result: Result<(), String>, now: Now) {
        if let Some(state) = &mut self.broadcast {
            state.kept(result);
        }
        self.hand_over();
        self.tell_broadcast(now);
    }

    /// Hands over as many messages as may be under way.
    fn hand_over(&mut self) {
        while let Some(letter) = self.broadcast.as_mut().and_then(|state| state.next_letter()) {
            let pending = Pending::Broadcast(letter.lead.clone());
            self.request(pending, |ticket| Request::Message { ticket, letter });
        }
    }

    pub(super) fn broadcast_outcome(&mut self, lead: &SessionId, result: Result<Done, String>) {
        let result = match result {
            Ok(Done::Sent(id)) => Ok(id),
            Ok(_) => return,
            Err(why) => Err(why),
        };
        if let Some(state) = &mut self.broadcast {
            state.outcome(lead, result);
        }
        self.hand_over();
    }

    /// Says once what came of it; what all have is kept no more.
    pub(super) fn tell_broadcast(&mut self, now: Now) {
        let Some(state) = &mut self.broadcast else { return };
        state.follow(&self.model);
        let Some(Counts { sent, refused, .. }) = state.take_news() else { return };
        if refused == 0 {
            let recipients = state.recipients().iter().map(|it| it.lead().clone());
            self.roster.unmark(&recipients.collect::<Vec<_>>());
            self.effects.push_back(Effect::RemoveBroadcast);
            self.say(format_args!("The message is in the inboxes of all {sent} leads."), Role::Good, now);
        } else if !self.shows_broadcast() {
            let key = self.settings.keymap.key_of(Intent::Broadcast);
            let all = sent + refused;
            let text = format!("The message was not sent to {refused} of {all} leads: {key} says why.");
            self.say(format_args!("{text}"), Role::Alarm, now);
        }
    }

    /// Sends to those again that it was not sent to.
    pub(super) fn retry_broadcast(&mut self, now: Now) {
        if let Some(first) = become_chief_first(&self.model, &self.settings.keymap) {
            return self.say(format_args!("Only a Chief can send: {first} first."), Role::Warning, now);
        }
        let Some(state) = &mut self.broadcast else { return };
        match state.retry(&self.model) {
            true => self.hand_over(),
            false => self.say(format_args!("Nothing of it was refused."), Role::Notice, now),
        }
        self.tell_broadcast(now);
    }

    /// Forgets the broadcast, for whomever it was not sent to.
    pub(super) fn forget_broadcast(&mut self, now: Now) {
        let Some(state) = &self.broadcast else { return };
        if state.is_under_way() {
            return self.say(format_args!("It is being sent."), Role::Notice, now);
        }
        if !state.is_done() {
            self.effects.push_back(Effect::RemoveBroadcast);
            self.say(format_args!("The broadcast is forgotten."), Role::Notice, now);
        }
        self.broadcast = None;
        self.layers.pop();
    }
}
