//! The timeline within the console, and what is told to somebody who was away.

use std::time::Duration;

use super::age;
use super::app::{App, Layer};
use super::away::{Attention, Back};
use super::intent::Intent;
use super::notify::delivery::Report;
use super::text::{self, Visible};
use super::theme::Role;
use super::timeline::{Timeline, What, summary};
use super::view::{diagnostics, inbox, timeline};
use crate::fact::Now;

/// How long the line stays that says what happened.
const LINE: Duration = Duration::from_secs(60);

/// What happened, whether somebody looks, and how notices of it fare.
#[derive(Debug, Default)]
pub(super) struct History {
    timeline: Timeline,
    attention: Attention,
    /// What happened while nobody looked, and until when that is shown.
    away: Option<(Visible, Duration)>,
    report: Option<Report>,
}

impl History {
    pub(super) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// When the line goes.
    pub(super) fn until(&self) -> Option<Duration> {
        self.away.as_ref().map(|(_, until)| *until)
    }

    /// Time passed: the line may be over.
    pub(super) fn tick(&mut self, now: Now) {
        self.away.take_if(|(_, until)| *until <= now.mono);
    }

    /// It was seen, or does not matter.
    pub(super) fn dismiss(&mut self) {
        self.away = None;
    }
}

impl App {
    /// What happened.
    pub fn timeline(&self) -> &Timeline {
        &self.history.timeline
    }

    /// Whether the terminal has the focus, where it tells.
    pub fn focused(&self) -> Option<bool> {
        self.history.attention.focused()
    }

    /// How notices fare, once there are any to be given.
    pub fn notices(&self) -> Option<&Report> {
        self.history.report.as_ref()
    }

    /// Takes note of how notices fare.
    pub fn notices_fare(&mut self, report: Report) {
        self.history.report = Some(report);
    }

    /// What happened while nobody looked, for the line above the footer.
    pub fn away(&self) -> Option<&Visible> {
        self.history.away.as_ref().map(|(line, _)| line)
    }

    /// Finds out what happened since the last time.
    pub(super) fn remember(&mut self, now: Now) {
        self.history.timeline.follow(&self.model, now);
        self.history.attention.begin(now.mono, self.history.timeline.next_number());
    }

    /// The terminal got the focus, or lost it.
    pub fn focus(&mut self, focused: bool, now: Now) {
        let next = self.history.timeline.next_number();
        if focused {
            let back = self.history.attention.focus_gained(now.mono, next);
            self.welcome(back, now);
        } else {
            self.history.attention.focus_lost(now.mono, next);
        }
    }

    /// Somebody pressed a key.
    pub(super) fn touched(&mut self, now: Now) {
        let next = self.history.timeline.next_number();
        let back = self.history.attention.key(now.mono, next);
        self.welcome(back, now);
    }

    fn welcome(&mut self, back: Option<Back>, now: Now) {
        let Some(Back { away, from }) = back else { return };
        let told = summary(self.history.timeline.new_from(from).map(|event| event.what.kind()));
        if told.is_empty() {
            return;
        }
        let key = self.settings.keymap.key_of(Intent::Timeline);
        let shows = if key.is_empty() { String::new() } else { format!("; {key} shows") };
        let line = text::line(format_args!("away {}: {told}{shows}", age::shown(away)));
        self.history.away = Some((line, now.mono + LINE));
    }

    /// Opens the timeline, or closes it.
    pub(super) fn toggle_timeline(&mut self) {
        self.history.dismiss();
        match self.layers.last() {
            Some(Layer::Timeline(_)) => drop(self.layers.pop()),
            _ => {
                self.layers.retain(|layer| !matches!(layer, Layer::Timeline(_)));
                self.layers.push(Layer::Timeline(timeline::State::open(&self.history.timeline)));
            }
        }
    }

    /// Goes from the timeline to where it happened: the ask while it is put, the message, the lead.
    pub(super) fn go_to_event(&mut self, now: Now) {
        let Some(Layer::Timeline(state)) = self.layers.last() else { return };
        let Some(event) = state.event(&self.history.timeline) else { return };
        let (what, lead) = (event.what.clone(), event.lead.clone());
        let listed = lead.and_then(|lead| self.model.lead(&lead));
        let pending = listed.and_then(|lead| lead.pending_ask.as_ref()).map(|pending| pending.ask);
        let session = listed.map(|lead| lead.session.clone());
        match (what, session) {
            (What::Message(seq), _) => {
                self.layers.retain(|layer| !matches!(layer, Layer::Inbox(_)));
                self.layers.push(Layer::Inbox(Box::new(inbox::State::open_at(&self.model, seq))));
            }
            (What::Asked(ask), Some(lead)) if pending == Some(ask) => self.open_ask(&lead, false, now),
            (What::BecameChief | What::LeftChief | What::LeaseLost, _) => {
                self.layers.push(Layer::Diagnostics(diagnostics::State::default()));
            }
            (_, Some(lead)) => {
                self.keep_draft(now);
                self.layers.clear();
                self.roster.select(&lead, &self.model, now);
            }
            (_, None) => self.say(format_args!("That lead is not listed now."), Role::Notice, now),
        }
    }
}
