//! What the operator does to the list itself: marks, pins, and asks that are put off.

use std::time::Duration;

use super::app::{App, Confirm, Effect, Pending};
use super::intent::Intent;
use super::text;
use super::theme::Role;
use super::view::become_chief_first;
use crate::chief::service::Request;
use crate::contract::{SessionId, Timestamp, Uuid};
use crate::fact::{Now, Standing, Until};
use crate::herd::order;

const SHORT: Duration = Duration::from_secs(10 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);

impl App {
    /// Takes the marks off leads that are gone, and says so. While the list itself can't be made, nobody
    /// is.
    pub(super) fn unmark_gone(&mut self, now: Now) {
        if !self.model.is_complete() || self.model.records_problem().is_some() {
            return;
        }
        let gone = self.roster.unmark_gone(&self.model);
        let Some(first) = gone.first() else { return };
        let name = match self.model.last_names(first) {
            Some(names) => text::line(&names.display_name),
            None => text::line(&order::unnamed(first)),
        };
        let others = match gone.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.say(format_args!("Gone, and not marked any more: {name}{others}."), Role::Notice, now);
    }

    pub(super) fn unmark_all(&mut self, now: Now) {
        let marked = self.roster.marked();
        self.roster.unmark_all();
        let told = match marked {
            0 => "No lead is marked.".to_owned(),
            1 => "1 lead is not marked any more.".to_owned(),
            _ => format!("{marked} leads are not marked any more."),
        };
        self.say(format_args!("{told}"), Role::Notice, now);
    }

    /// Pins the selected lead, or not any more.
    pub(super) fn toggle_pin(&mut self, now: Now) {
        if let Standing::Barred { .. } = self.model.standing() {
            return self.say(format_args!("You only watch: a pin could not be kept."), Role::Warning, now);
        }
        if let Some((lead, pinned)) = self.roster.toggle_pin(&self.model, now) {
            self.effects.push_back(Effect::Pin(lead, pinned));
        }
    }

    /// Takes up the pins of earlier runs.
    pub fn pin(&mut self, leads: impl IntoIterator<Item = SessionId>) {
        self.roster.pin(leads);
    }

    /// Asks for how long the selected ask is to be put off; one that is, comes back.
    pub(super) fn snooze(&mut self, now: Now) {
        let asking = self.selected().and_then(|lead| self.model.lead(lead));
        let asked = asking.and_then(|lead| lead.pending_ask.as_ref().map(|ask| (lead, ask.ask)));
        let Some((lead, ask)) = asked else {
            return self.say(format_args!("This lead asks nothing now."), Role::Notice, now);
        };
        let (is_snoozed, lead) = (!self.model.needs_you(lead), lead.session.clone());
        if let Some(first) = become_chief_first(&self.model, &self.settings.keymap) {
            return self.say(
                format_args!("Only a Chief can put asks off: {first} first."),
                Role::Notice,
                now,
            );
        }
        if is_snoozed {
            self.request_snooze(lead, ask, None);
        } else {
            self.confirm = Some(Confirm::Snooze { lead, ask });
        }
    }

    /// The operator said for how long.
    pub(super) fn snooze_for(&mut self, intent: Intent, now: Now) {
        let Some(Confirm::Snooze { lead, ask }) = self.confirm.take() else { return };
        let after = |time: Duration| {
            Until::At(Timestamp::from_millis(now.wall.as_millis().saturating_add(time.as_millis() as u64)))
        };
        let until = match intent {
            Intent::SnoozeShort => after(SHORT),
            Intent::SnoozeHour => after(HOUR),
            _ => Until::Change,
        };
        self.request_snooze(lead, ask, Some(until));
    }

    fn request_snooze(&mut self, lead: SessionId, ask: Uuid, until: Option<Until>) {
        let pending = Pending::Snooze { ends: until.is_none() };
        self.request(pending, |ticket| Request::Snooze { ticket, lead, ask, until });
    }

    /// Has asks come back whose time is over.
    pub(super) fn wake(&mut self, now: Now) {
        if self.model.wake(now) {
            self.follow(now);
        }
    }
}
