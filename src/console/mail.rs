//! The inbox, and sending again what may have been discarded.

use super::app::{App, Effect, Layer, Pending};
use super::drafts::DraftKey;
use super::theme::Role;
use super::view::inbox;
use crate::chief::inquiry::Which;
use crate::chief::service::Request;
use crate::contract::{SessionId, Uuid};
use crate::fact::{Fate, Now};

impl App {
    /// Opens the inbox with everything in it, or closes it.
    pub(super) fn toggle_inbox(&mut self) {
        match self.layers.last() {
            Some(Layer::Inbox(_)) => drop(self.layers.pop()),
            _ => self.open_inbox(None),
        }
    }

    fn open_inbox(&mut self, lead: Option<SessionId>) {
        self.layers.retain(|layer| !matches!(layer, Layer::Inbox(_)));
        self.layers.push(Layer::Inbox(Box::new(inbox::State::open(&self.model, lead))));
    }

    /// Opens the inbox with what the selected lead sent.
    pub(super) fn lead_inbox(&mut self, now: Now) {
        match self.selected().cloned() {
            Some(lead) => self.open_inbox(Some(lead)),
            None => self.say(format_args!("No lead is selected."), Role::Notice, now),
        }
    }

    /// Narrows the inbox to the lead of one letter, or widens it again.
    pub(super) fn lead_only(&mut self, now: Now) {
        if let Some(Layer::Inbox(state)) = self.layers.last_mut()
            && !state.narrow_to_lead(&self.model)
        {
            self.say(format_args!("Nothing says which lead sent this."), Role::Notice, now);
        }
    }

    fn inbox_on_top(&mut self) -> Option<&mut inbox::State> {
        match self.layers.last_mut() {
            Some(Layer::Inbox(state)) => Some(state),
            _ => None,
        }
    }

    pub(super) fn toggle_read(&mut self, now: Now) {
        let letter = self.inbox_on_top().and_then(|state| state.letter());
        match letter.map(|letter| (letter.seq, letter.read, letter.kind.is_none())) {
            Some((seq, read, false)) => self.mark(Which::Letter(seq), !read),
            Some((_, _, true)) => {
                self.say(format_args!("What is no message is neither read nor unread."), Role::Notice, now);
            }
            None => {}
        }
    }

    pub(super) fn read_all(&mut self, now: Now) {
        let letter = self.inbox_on_top().and_then(|state| state.letter());
        match letter.map(|letter| letter.lead.clone()) {
            Some(Some(lead)) => self.mark(Which::Lead(lead), true),
            Some(None) => self.say(format_args!("Nothing says which lead sent this."), Role::Notice, now),
            None => {}
        }
    }

    pub(super) fn mark(&mut self, which: Which, read: bool) {
        self.request(Pending::Mark, |ticket| Request::Mark { ticket, which, read });
    }

    pub(super) fn next_match(&mut self, forward: bool, now: Now) {
        let searches = self.inbox_on_top().is_some_and(|state| state.next_match(forward));
        if !searches {
            let key = self.settings.keymap.key_of(super::intent::Intent::Search);
            self.say(format_args!("Nothing is searched for: {key} begins."), Role::Notice, now);
        }
    }

    /// Asks for what the inbox lacks to be shown. One question of each kind is under way at a time,
    /// so that no key waits behind them.
    pub(super) fn inquire(&mut self) {
        for layer in &mut self.layers {
            let Layer::Inbox(state) = layer else { continue };
            while let Some(inquiry) = state.inquiry(self.next_ticket + 1) {
                self.next_ticket += 1;
                let ticket = self.next_ticket;
                self.effects.push_back(Effect::Request(Request::Inquire { ticket, inquiry }));
            }
        }
    }

    pub(super) fn take_answers(&mut self) {
        let answers = self.model.take_answers();
        let inbox = self.layers.iter_mut().find_map(|layer| match layer {
            Layer::Inbox(state) => Some(state),
            _ => None,
        });
        if let Some(state) = inbox {
            answers.into_iter().for_each(|answered| state.answered(answered));
        }
    }

    /// Sends again the newest message that the selected lead may not have; in an ask or message that
    /// was sent, this one.
    pub(super) fn send_again(&mut self, now: Now) {
        if self.shows_broadcast() {
            return self.retry_broadcast(now);
        }
        let open = match self.layers.last() {
            Some(Layer::Ask(state)) => state.sent_id(),
            _ => None,
        };
        let doubtful = match open {
            Some(id) => self.model.sent(id).filter(|sent| sent.fate.is_doubtful()),
            None => self.selected().and_then(|lead| self.model.doubtful(lead)),
        };
        let Some((id, lead)) = doubtful.map(|sent| (sent.id, sent.lead.clone())) else {
            self.say(format_args!("Nothing here may have been discarded."), Role::Notice, now);
            return;
        };
        if !self.pending.iter().any(|(_, pending)| *pending == Pending::Again(id)) {
            self.request(Pending::Again(id), |ticket| Request::SendAgain { ticket, lead, id });
        }
    }

    /// What was sent as `old` is on its way as `new`: a draft of the same text goes with it.
    pub(super) fn sent_again(&mut self, old: Uuid, new: Uuid, now: Now) {
        for layer in &mut self.layers {
            if let Layer::Ask(state) = layer
                && state.sent_id() == Some(old)
            {
                state.sent(new);
            }
        }
        let Some(sent) = self.model.sent(new) else { return };
        let key = DraftKey { session: sent.lead.clone(), ask: sent.ask };
        let is_followed = self.on_their_way.iter().any(|(_, followed)| *followed == key);
        if !is_followed && self.drafts.get(&key).is_some_and(|draft| draft.is_said_by(sent)) {
            self.on_their_way.push((new, key));
        }
        match sent.fate {
            Fate::Unsent => {
                self.say(format_args!("It can't be put into the lead's inbox."), Role::Alarm, now);
            }
            _ => self.say(format_args!("Sent again."), Role::Good, now),
        }
    }
}
