//! The ways out: of a layer, of Chief mode, of the console, with what has to be asked before.

use super::app::{App, Confirm, Effect, Layer, Pending};
use super::errand::Errand;
use super::theme::Role;
use crate::chief::service::Request;
use crate::fact::{Desk, Now, Standing};

impl App {
    pub(super) fn interrupt(&mut self, now: Now) {
        let again =
            self.interrupted.is_some_and(|at| now.mono.saturating_sub(at) < super::burst::TWICE_WITHIN);
        if again && self.quitting_voids() && self.confirm != Some(Confirm::Quit) {
            self.keep_draft(now);
            self.interrupted = Some(now.mono);
            self.confirm = Some(Confirm::Quit);
        } else if again {
            self.keep_draft(now);
            self.effects.push_back(Effect::Quit);
        } else {
            self.interrupted = Some(now.mono);
            self.say(format_args!("Ctrl-c again quits."), Role::Notice, now);
        }
    }

    pub(super) fn back(&mut self, now: Now) {
        if self.confirm.take().is_some() {
            return;
        }
        self.history.dismiss();
        self.keep_draft(now);
        let stays = match self.layers.last_mut() {
            Some(Layer::Ask(state)) => state.back(),
            Some(Layer::Help(state)) => state.back(),
            Some(Layer::Diagnostics(_) | Layer::Peek(_) | Layer::Timeline(_)) => false,
            Some(Layer::Inbox(state)) => state.back(&self.model),
            Some(Layer::Peers(state)) => state.back(),
            Some(Layer::Turns(state)) => state.back(),
            Some(Layer::Signals(state)) => state.back(),
            Some(Layer::Transcript(state)) => state.back(),
            Some(Layer::Search(state)) => state.back(),
            Some(Layer::Lessons(state)) => state.back(),
            Some(Layer::Broadcast) => self.back_from_broadcast(),
            None => {
                self.roster.back(&self.model, now);
                return;
            }
        };
        self.effects.push_back(Effect::SaveDraftsNow);
        if !stays {
            self.layers.pop();
            self.roster.follow(&self.model, now, false);
        }
    }

    /// Whether another process of ours is the Chief service.
    pub(super) fn is_attached(&self) -> bool {
        matches!(self.model.desk(), Some(Desk::Of { .. }))
    }

    /// Whether what is queued is void once this process ends, and its lease with it.
    fn quitting_voids(&self) -> bool {
        !self.is_attached() && self.model.queued() > 0 && self.model.standing().lease().is_some()
    }

    pub(super) fn quit(&mut self) {
        if self.layers.pop().is_some() {
            // At the root only: elsewhere it backs out.
            return;
        }
        if self.quitting_voids() {
            self.confirm = Some(Confirm::Quit);
        } else {
            self.effects.push_back(Effect::Quit);
        }
    }

    pub(super) fn toggle_chief(&mut self) {
        match self.model.standing() {
            Standing::Chief { .. } => self.confirm = Some(Confirm::Leave),
            Standing::Starting => {}
            Standing::Observer { .. }
            | Standing::Barred { .. }
            | Standing::Suspended(_)
            | Standing::Lost { .. } => {
                self.request(Pending::BecomeChief, |ticket| Request::BecomeChief { ticket });
            }
        }
    }

    pub(super) fn confirmed(&mut self, yes: bool, now: Now) {
        match self.confirm.take() {
            Some(Confirm::Leave) if yes => self.request(Pending::Leave, |ticket| Request::Leave { ticket }),
            Some(Confirm::Quit) if yes => self.effects.push_back(Effect::Quit),
            Some(Confirm::Archive(name)) if yes => {
                self.effects.push_back(Effect::Errand(Errand::Archive(name)));
            }
            Some(Confirm::Broadcast) if yes => self.begin_broadcast(now),
            Some(_) | None => {}
        }
    }
}
