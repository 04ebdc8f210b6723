//! Which keys the footer names: those that do something now.

use super::app::{App, Layer};
use super::intent::Intent;
use crate::herd::Lead;

impl App {
    /// Whether the footer names the key of `intent`: not where it does nothing, or something else.
    /// `beside` is whether list and detail both are on the screen.
    pub fn offers(&self, intent: Intent, beside: bool) -> bool {
        match (intent, self.layers.last()) {
            // It backs out.
            (Intent::Quit, layer) => layer.is_none(),
            (Intent::Send, _) => self.model.standing().lease().is_some(),
            (Intent::NextMatch, Some(Layer::Inbox(state))) => state.has_search(),
            (Intent::Peek, Some(Layer::Peek(_))) | (Intent::Transcript, Some(Layer::Transcript(_))) => false,
            (Intent::NextMatch, Some(Layer::Transcript(state))) => state.has_matches(&self.model),
            (Intent::Branches, Some(Layer::Transcript(state))) => !state.lists_branches(),
            (Intent::Copy, Some(Layer::Transcript(state))) => !state.lists_branches(),
            (Intent::PageDown, Some(Layer::Ask(state))) => state.has_more_question(),
            (Intent::PageDown, _) => false,
            (Intent::Reply, _) => {
                self.selected().and_then(|lead| self.model.lead(lead)).is_some_and(Lead::needs_you)
            }
            (Intent::Broadcast, None) => {
                !self.roster.chosen(&self.model).is_empty()
                    || self.broadcast().is_some_and(|state| !state.is_done())
            }
            (Intent::Broadcast, Some(_)) => false,
            (Intent::SendAgain, Some(Layer::Broadcast)) => {
                self.broadcast().is_some_and(|state| !state.is_under_way() && !state.is_done())
            }
            (Intent::Forget, _) => self.broadcast().is_some_and(|state| !state.is_under_way()),
            (Intent::Back, None) => self.roster.can_back(),
            (Intent::Open, Some(Layer::Search(state))) => state.hit(&self.model).is_some(),
            (Intent::Open, Some(Layer::Peers(state))) => !beside && state.can_open(),
            (Intent::Open, Some(Layer::Turns(state))) => !beside && state.can_open(),
            (Intent::Open, Some(Layer::Signals(state))) => {
                state.entry(&self.model).is_some() || (!beside && state.can_open())
            }
            (Intent::Steer, _) => self.steered().is_some(),
            (Intent::Open, Some(Layer::Lessons(state))) => !beside && state.can_open(),
            (Intent::ArchiveLesson, Some(Layer::Lessons(state))) => state.selected().is_some(),
            (Intent::Gate, _) => self.settings.supervision.gate,
            (Intent::OfferLessons, _) => self.settings.supervision.learning,
            _ => true,
        }
    }
}
