//! Replies and messages: opening the composer with its draft, and handing what was written to the
//! service.

use std::time::Duration;

use super::app::{App, Effect, Layer, Pending};
use super::broadcasting::writer_of;
use super::drafts::{Draft, DraftKey};
use super::files::{Answer, Question};
use super::intent::Intent;
use super::theme::Role;
use super::view::ask;
use crate::chief::service::Request;
use crate::contract::SessionId;
use crate::fact::{Fact, Now, Standing};

impl App {
    pub(super) fn reply(&mut self, now: Now) {
        if self.is_barred(now) {
            return;
        }
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
        if self.is_barred(now) {
            return;
        }
        let Some(lead) = self.selected().cloned() else { return };
        self.open_message(&lead, now);
    }

    /// Opens the composer for a message to `lead`, in place of another; none where that can't be.
    pub(super) fn open_message(&mut self, lead: &SessionId, now: Now) -> Option<&mut ask::State> {
        self.keep_draft(now);
        let Some(mut state) = ask::State::message(&self.model, lead, &self.settings.place) else {
            self.say(format_args!("That lead is not listed now."), Role::Notice, now);
            return None;
        };
        let key = state.key();
        if self.pending.iter().any(|(_, pending)| *pending == Pending::Reply(key.clone())) {
            self.say(format_args!("A message to this lead is being sent."), Role::Notice, now);
            return None;
        }
        if let Some(draft) = self.drafts.get(&key) {
            state.resume(draft, &self.model);
        }
        state.offer(self.recital(lead));
        self.layers.retain(|layer| !matches!(layer, Layer::Ask(_)));
        self.layers.push(Layer::Ask(Box::new(state)));
        match self.layers.last_mut() {
            Some(Layer::Ask(state)) => Some(state),
            _ => None,
        }
    }

    /// Whether a message to `lead` is being written.
    pub(super) fn is_writing_to(&self, lead: &SessionId) -> bool {
        let is_it = |state: &ask::State| state.is_message() && state.is_composing() && state.lead() == lead;
        self.layers.iter().any(|layer| matches!(layer, Layer::Ask(state) if is_it(state)))
    }

    /// Whether nothing can be written here, which is said then.
    pub(super) fn is_barred(&mut self, now: Now) -> bool {
        let Standing::Barred { .. } = self.model.standing() else { return false };
        self.say(
            format_args!("You only watch: what you write could be neither sent nor kept."),
            Role::Warning,
            now,
        );
        true
    }

    /// Opens the ask of `lead` in place of another that is open.
    pub(super) fn open_ask(&mut self, lead: &SessionId, compose: bool, now: Now) {
        self.keep_draft(now);
        let Some(mut state) = ask::State::open(&self.model, lead, &self.settings.place) else { return };
        let key = state.key();
        if self.pending.iter().any(|(_, pending)| *pending == Pending::Reply(key.clone())) {
            self.say(format_args!("A reply to this ask is being sent."), Role::Notice, now);
            return;
        }
        if let Some(draft) = self.drafts.get(&key) {
            state.resume(draft, &self.model);
        }
        state.offer(self.recital(lead));
        if compose && !state.is_sent() {
            state.compose(&self.model);
        }
        self.layers.retain(|layer| !matches!(layer, Layer::Ask(_)));
        self.layers.push(Layer::Ask(Box::new(state)));
        self.roster.select(lead, &self.model, now);
    }

    /// Enter in the composer: sends once it is known to be no part of a paste.
    pub(super) fn enter(&mut self, now: Now) {
        if let Some(state) = self.writer() {
            state.enter(now.mono);
            self.keep_draft(now);
        }
    }

    /// Takes back what was written last, or does it again.
    pub(super) fn undo(&mut self, back: bool, now: Now) {
        let Some(state) = self.writer() else { return };
        let done = state.undo(back, now.mono);
        self.keep_draft(now);
        if !done {
            let what = if back { "undo" } else { "do again" };
            self.say(format_args!("There is nothing to {what}."), Role::Notice, now);
        }
    }

    /// Takes the chosen path, or chooses another.
    pub(super) fn paths(&mut self, intent: Intent, now: Now) {
        let Some(state) = self.writer() else { return };
        let problem = match intent {
            Intent::Complete => state.complete(now.mono),
            _ => {
                state.choose(intent == Intent::NextPath, now.mono);
                None
            }
        };
        self.keep_draft(now);
        if let Some(problem) = problem {
            self.say(format_args!("{problem}"), Role::Notice, now);
        }
    }

    /// Inserts a snippet.
    pub(super) fn snippet(&mut self, number: u8, now: Now) {
        match self.settings.snippets.get(number).map(str::to_owned) {
            Some(text) => self.paste(&text, now),
            None => self.say(
                format_args!("There is no snippet {number}; [snippets] in config.toml makes one."),
                Role::Notice,
                now,
            ),
        }
    }

    /// Has found out what is to be known of files; one question of each kind at a time.
    pub(super) fn find(&mut self) {
        let Some(state) = writer_of(&mut self.layers, &mut self.broadcast) else { return };
        let (looks, lists) = self.finding;
        for question in state.questions(!looks, !lists) {
            match question {
                Question::Look(..) => self.finding.0 = true,
                Question::List(..) => self.finding.1 = true,
            }
            self.effects.push_back(Effect::Find(question));
        }
    }

    /// What was found out of files; it may be of a text that is not on the screen any more.
    pub fn found(&mut self, answer: Answer, now: Now) {
        let mut state = writer_of(&mut self.layers, &mut self.broadcast);
        match answer {
            Answer::List(key, listing) => {
                self.finding.1 = false;
                if let Some(state) = state.filter(|state| state.key() == key) {
                    state.listed(listing);
                }
            }
            Answer::Look(key, look) => {
                self.finding.0 = false;
                let sends = state.take_if(|state| state.key() == key).is_some_and(|state| state.looked(look));
                if sends && self.confirm.is_none() {
                    self.send(true, now);
                }
            }
        }
        self.find();
    }

    /// Hands the text to the operator's editor.
    pub(super) fn edit(&mut self) {
        if let Some(state) = self.writer()
            && let Some(text) = state.editable()
        {
            self.effects.push_back(Effect::SaveDraftsNow);
            self.effects.push_back(Effect::Edit(text));
        }
    }

    /// What came of the editor: the text it left, none if it is the same; or why there is none.
    pub fn edited(&mut self, result: Result<Option<String>, String>, now: Now) {
        let Some(state) = self.writer() else { return };
        match result.map(|text| text.map(|text| state.edited(&text))) {
            Ok(None) => self.say(format_args!("The editor changed nothing."), Role::Notice, now),
            Ok(Some(None)) => {}
            Ok(Some(Some(problem))) => self.say(format_args!("{problem}"), Role::Warning, now),
            Err(why) => {
                self.say(format_args!("The draft is kept as it was: {why}"), Role::Warning, now);
            }
        }
        self.keep_draft(now);
        self.find();
    }

    /// Whether an Enter stood alone by `now`: what was written is sent then.
    pub fn settle(&mut self, now: Now) -> bool {
        let asked = self.confirm.is_some();
        let Some(state) = self.writer() else { return false };
        let sends = !asked && state.settle(now.mono);
        if sends {
            self.send(false, now);
        }
        sends
    }

    /// When to ask [`App::settle`], should nothing be typed.
    pub fn settle_at(&self) -> Option<Duration> {
        match self.layers.last()? {
            Layer::Ask(state) => state.settle_at(),
            Layer::Broadcast => self.broadcast.as_ref()?.writer.settle_at(),
            _ => None,
        }
    }

    /// Sends what was written, once its files were `seen`.
    pub(super) fn send(&mut self, seen: bool, now: Now) {
        let is_broadcast = self.shows_broadcast();
        let Some(state) = writer_of(&mut self.layers, &mut self.broadcast) else { return };
        match state.send(&self.model, seen) {
            ask::Sending::Refused | ask::Sending::Underway => {}
            ask::Sending::Looking => self.find(),
            ask::Sending::Reply(reply) => {
                let key = state.key();
                self.keep_draft(now);
                self.request(Pending::Reply(key), |ticket| Request::Reply { ticket, reply });
            }
            ask::Sending::Message(letter) if is_broadcast => {
                self.keep_draft(now);
                self.ask_to_broadcast(letter);
            }
            ask::Sending::Message(letter) => {
                let key = state.key();
                self.keep_draft(now);
                self.request(Pending::Reply(key), |ticket| Request::Message { ticket, letter });
            }
        }
    }

    /// Takes a message of an earlier run for what a draft says: that run ended before it could remove
    /// the draft.
    pub(super) fn recognise(&mut self, fact: &Fact) {
        let Fact::Sent(sent) = fact else { return };
        let key = DraftKey { session: sent.lead.clone(), ask: sent.ask };
        let is_it = |draft: &&Draft| draft.at <= sent.at && draft.is_said_by(sent);
        if self.drafts.get(&key).filter(is_it).is_some()
            && !self.on_their_way.iter().any(|(id, _)| *id == sent.id)
            // Of one that is being sent now, the outcome tells.
            && !self.pending.iter().any(|(_, pending)| *pending == Pending::Reply(key.clone()))
        {
            self.on_their_way.push((sent.id, key));
        }
    }
}
