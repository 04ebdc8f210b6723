//! Messages that a signal suggests, and what can be recited in any.

use super::State;
use crate::model::Model;
use crate::signals::recite::Recital;
use crate::signals::steer::{Basis, Void};

/// Said while such a draft is open.
const SUGGESTED: &str = "A signal suggests this: change it as you like. Nothing is sent but by you.";
/// Said once what it rests on is over.
const STALE: &str = "What this is about is over: it is withdrawn when you send it.";

/// What a signal suggested.
pub(super) struct Steered {
    basis: Basis,
    /// What was written before.
    before: String,
    /// The text with what was suggested.
    text: String,
}

impl State {
    /// Suggests `draft`, which rests on `basis`, after what is written already.
    pub fn suggest(&mut self, draft: &str, basis: Basis) {
        let before = self.composer.text();
        let text = match before.trim_end() {
            "" => draft.to_owned(),
            // It was taken up before, and changed elsewhere.
            kept if kept.contains(draft) => before.clone(),
            kept => format!("{kept}\n\n{draft}"),
        };
        if self.composer.replace(&text).is_err() {
            return;
        }
        self.note = Some(SUGGESTED);
        self.steered = Some(Steered { basis, before, text: self.composer.text() });
    }

    /// What is worth keeping of the text: what a signal suggests now it may not suggest later, unless the
    /// operator made it their own.
    pub(super) fn kept_text(&self) -> String {
        let text = self.composer.text();
        match &self.steered {
            Some(steered) if steered.text == text && !self.underway => steered.before.clone(),
            _ => text,
        }
    }

    fn void(&self, model: &Model) -> Option<Void> {
        let steered = self.steered.as_ref()?;
        model.basis(&self.lead).map_or(Some(Void::Lease), |now| steered.basis.void(&now))
    }

    /// Says whether what the draft rests on is over.
    pub(super) fn follow_signal(&mut self, model: &Model) {
        if self.steered.is_some() && self.sent.is_none() {
            self.note = Some(if self.void(model).is_some() { STALE } else { SUGGESTED });
        }
    }

    /// Withdraws a draft that must not be sent any more, and says why. What the operator changed is
    /// theirs, and stays as any other draft.
    pub(super) fn withdraw(&mut self, model: &Model) -> Option<String> {
        let why = self.void(model)?;
        let steered = self.steered.take()?;
        self.note = None;
        if self.composer.text() != steered.text {
            return Some(format!(
                "Not sent: {why}. What you wrote is kept as any draft; sending it again sends it."
            ));
        }
        // It was there before, so there is room for it.
        let _ = self.composer.replace(&steered.before);
        Some(format!("Withdrawn, not sent: {why}."))
    }

    /// Offers to insert `recital`.
    pub fn offer(&mut self, recital: Option<Recital>) {
        self.recital = recital;
    }

    /// Takes what is offered to be inserted.
    pub fn take_recital(&mut self) -> Option<Recital> {
        self.recital.take()
    }

    /// What is offered, and by which key.
    pub(super) fn recited_by(&self, key: &str) -> Option<String> {
        let count = self.recital.as_ref().filter(|_| !key.is_empty())?.text.lines().count();
        let what = if count == 1 { "sentence" } else { "sentences" };
        Some(format!("Compacted: {key} inserts {count} {what} of its user's that are to hold."))
    }
}
