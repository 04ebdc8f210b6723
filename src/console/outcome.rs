//! What came of requests: what is said about it, and what becomes of drafts.

use super::app::{App, Effect, Layer, Pending};
use super::theme::Role;
use crate::fact::{Done, Fate, Now};

impl App {
    /// Takes note of how a request ended.
    pub(super) fn outcome(&mut self, pending: Pending, result: Result<Done, String>, now: Now) {
        match (pending, result) {
            (Pending::Reply(key), Ok(Done::Sent(id))) => {
                self.lessons_sent(&key);
                // The draft stays until the lead has it: a lease that ends first voids what is queued.
                self.on_their_way.push((id, key.clone()));
                for layer in &mut self.layers {
                    if let Layer::Ask(state) = layer
                        && state.key() == key
                    {
                        state.sent(id);
                    }
                }
            }
            (Pending::Reply(key), Err(why)) => {
                let shown = self.layers.iter_mut().find_map(|layer| match layer {
                    Layer::Ask(state) if state.key() == key => Some(state),
                    _ => None,
                });
                match shown {
                    Some(state) => state.refused(why),
                    None => self.say(format_args!("Not sent, the draft is kept: {why}"), Role::Alarm, now),
                }
            }
            (Pending::BecomeChief, Ok(_)) => {
                self.say(format_args!("You are Chief."), Role::Good, now);
                if !self.is_attached() {
                    self.effects.push_back(Effect::BecameChief);
                }
            }
            (Pending::BecomeChief, Err(why)) => {
                self.say(format_args!("Not Chief: {why}"), Role::Alarm, now);
            }
            (Pending::Leave, Ok(_)) => {
                self.say(format_args!("You are not Chief any more: watching."), Role::Notice, now);
                if !self.is_attached() {
                    self.effects.push_back(Effect::Left);
                }
            }
            (Pending::Leave, Err(why)) => self.say(format_args!("Leaving failed: {why}"), Role::Alarm, now),
            (Pending::Focus, Err(why)) => {
                self.say(format_args!("Herdr can't show that pane: {why}"), Role::Warning, now);
            }
            (Pending::Focus, Ok(_)) => self.say(format_args!("Herdr shows its pane now."), Role::Good, now),
            (Pending::Again(old), Ok(Done::Sent(new))) => self.sent_again(old, new, now),
            (Pending::Again(_), Err(why)) => {
                self.say(format_args!("Not sent again: {why}"), Role::Alarm, now);
            }
            (Pending::Mark, Err(why)) => self.say(format_args!("Not marked: {why}"), Role::Warning, now),
            (Pending::Broadcast(lead), result) => self.broadcast_outcome(&lead, result),
            (Pending::Snooze { ends: true }, Ok(_)) => {
                self.say(format_args!("The ask needs you again."), Role::Notice, now);
            }
            (Pending::Snooze { ends: false }, Ok(_)) => {
                self.say(format_args!("The ask is put off."), Role::Notice, now);
            }
            (Pending::Snooze { .. }, Err(why)) => {
                self.say(format_args!("Not done: {why}"), Role::Warning, now)
            }
            (Pending::Again(_) | Pending::Mark, Ok(_)) => {}
            (Pending::Reply(_), Ok(_)) => {}
        }
    }

    /// Drops the drafts of what its lead has.
    pub(super) fn drop_drafts_of_what_arrived(&mut self) {
        for (id, key) in std::mem::take(&mut self.on_their_way) {
            let Some(sent) = self.model.sent(id) else {
                self.on_their_way.push((id, key));
                continue;
            };
            match sent.fate {
                // Unknown: it may be gone, so what was written is offered again; or it may turn up.
                Fate::Queued | Fate::Unknown => self.on_their_way.push((id, key)),
                Fate::Again => {
                    let new = self.model.successor(sent).map_or(id, |new| new.id);
                    self.on_their_way.push((new, key));
                }
                Fate::Unsent => {}
                Fate::Taken | Fate::Delivered | Fate::Answered => {
                    // What was written since is another text.
                    if self.drafts.get(&key).is_none_or(|draft| draft.is_said_by(sent)) {
                        self.drafts.remove(&key);
                        self.effects.push_back(Effect::RemoveDraft(key));
                    }
                }
            }
        }
    }
}
