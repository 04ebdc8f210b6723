//! Notices outside the screen: what they are about, when there is one, and what they say. How they are
//! given is [`delivery`]'s.

pub mod delivery;

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::{self, Visible};
use super::timeline::{Event, EventKind, Timeline, summary};
use crate::contract::SessionId;

/// Of one lead and kind there is at most one notice in this time.
pub const APART: Duration = Duration::from_secs(60);
/// What happens within this time is one notice.
const GATHER: Duration = Duration::from_millis(300);
/// How many leads a notice of several names.
const NAMED: usize = 5;

/// How a terminal is given notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalWay {
    /// As it is known to take them; not at all where it is not known.
    Auto,
    /// By the sequence OSC 9.
    Osc9,
    /// By the sequence OSC 777.
    Osc777,
    /// Not at all.
    Off,
}

/// Hours without notices, in minutes of the day; the end is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quiet {
    from: u16,
    to: u16,
}

impl Quiet {
    /// Whether `minute` of the day is in it, across midnight too.
    pub fn has(self, minute: u16) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

impl From<Quiet> for String {
    fn from(Quiet { from, to }: Quiet) -> Self {
        format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl TryFrom<String> for Quiet {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let number = |text: &str, below: u16| {
                let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|number: &u16| is_number && *number < below)
            };
            Some(60 * number(hour, 24)? + number(minute, 60)?)
        };
        let times = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match times {
            Some((from, to)) if from != to => Ok(Self { from, to }),
            _ => Err("two times of day are wanted, as \"22:00-07:30\""),
        }
    }
}

/// What is configured of notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Of a new ask.
    pub ask: bool,
    /// Of a lead that is blocked and asks nothing.
    pub blocked: bool,
    /// Of a lead that is gone and did not withdraw.
    pub lost: bool,
    /// That we are not Chief any more, and did not leave.
    pub lease: bool,
    /// Of a lead that worked and does not any more.
    pub finished: bool,
    /// Also while the terminal has the focus.
    pub while_focused: bool,
    /// When there are none, on the operator's clock.
    pub quiet: Option<Quiet>,
    /// Outside of Herdr: how the terminal is given them.
    pub terminal: TerminalWay,
    /// Whether tmux passes the terminal's sequences on (its option `allow-passthrough`).
    pub tmux_passthrough: bool,
    /// Whether the terminal's bell rings with each.
    pub bell: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ask: true,
            blocked: true,
            lost: true,
            lease: true,
            finished: false,
            while_focused: false,
            quiet: None,
            terminal: TerminalWay::Auto,
            tmux_passthrough: false,
            bell: false,
        }
    }
}

impl Settings {
    fn wants(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Asked => self.ask,
            EventKind::Blocked => self.blocked,
            EventKind::Lost => self.lost,
            EventKind::LeaseLost => self.lease,
            EventKind::Finished => self.finished,
            EventKind::Answered
            | EventKind::AnsweredElsewhere
            | EventKind::Message
            | EventKind::Fired
            | EventKind::Over
            | EventKind::Joined
            | EventKind::Left
            | EventKind::BecameChief
            | EventKind::LeftChief => false,
        }
    }
}

/// One notice, neutralised and of bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// At most 80 columns.
    pub title: Visible,
    /// At most 240 columns; may be empty.
    pub body: Visible,
}

/// One event that is worth a notice.
#[derive(Debug)]
struct Told {
    kind: EventKind,
    name: Visible,
    about: Visible,
}

/// Decides which events become notices. Pure: times are passed in, monotonic ones and, for the quiet
/// hours, the minute of the day.
#[derive(Debug)]
pub struct Notifier {
    settings: Settings,
    /// The first event not looked at.
    next: u64,
    last: HashMap<(Option<SessionId>, EventKind), Duration>,
    gathered: Vec<Told>,
    due: Option<Duration>,
}

impl Notifier {
    /// One that has told nothing.
    pub fn new(settings: Settings) -> Self {
        Self { settings, next: 0, last: HashMap::new(), gathered: Vec::new(), due: None }
    }

    /// Takes what happened since it was last called. Where the terminal does not tell whether it has the
    /// focus, it counts as not having it.
    pub fn consider(
        &mut self,
        timeline: &Timeline,
        focused: Option<bool>,
        minute: impl Fn() -> u16,
        at: Duration,
    ) {
        let from = std::mem::replace(&mut self.next, timeline.next_number());
        if from == self.next {
            return;
        }
        let silent = (focused == Some(true) && !self.settings.while_focused)
            || self.settings.quiet.is_some_and(|quiet| quiet.has(minute()));
        if silent {
            return;
        }
        for event in timeline.new_from(from) {
            self.take(event, at);
        }
    }

    fn take(&mut self, event: &Event, at: Duration) {
        let kind = event.what.kind();
        if !self.settings.wants(kind) {
            return;
        }
        self.last.retain(|_, last| at.saturating_sub(*last) < APART);
        let key = (event.lead.clone(), kind);
        if self.last.contains_key(&key) {
            return;
        }
        self.last.insert(key, at);
        self.due.get_or_insert(at + GATHER);
        self.gathered.push(Told { kind, name: event.name.clone(), about: event.about.clone() });
    }

    /// When [`Notifier::take_due`] has one.
    pub fn deadline(&self) -> Option<Duration> {
        self.due
    }

    /// The notice that is due, if one is.
    pub fn take_due(&mut self, at: Duration) -> Option<Notice> {
        self.due.take_if(|due| *due <= at)?;
        let told = std::mem::take(&mut self.gathered);
        Some(match &told[..] {
            [only] => Notice {
                title: match only.name.is_empty() {
                    true => text::title(format_args!("headman: {}", only.kind.word())),
                    false => text::title(format_args!("{} {}", only.name, only.kind.word())),
                },
                body: only.about.clone(),
            },
            several => {
                let counts = summary(several.iter().map(|told| told.kind));
                let mut names: Vec<&str> = Vec::new();
                for told in several.iter().filter(|told| !told.name.is_empty()) {
                    if !names.contains(&told.name.as_str()) {
                        names.push(told.name.as_str());
                    }
                }
                let more = if names.len() > NAMED { ", \u{2026}" } else { "" };
                names.truncate(NAMED);
                Notice {
                    title: text::title(format_args!("headman: {counts}")),
                    body: text::notice(format_args!("{}{more}", names.join(", "))),
                }
            }
        })
    }
}
