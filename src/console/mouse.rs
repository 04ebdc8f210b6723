//! The mouse: a click selects, the wheel scrolls. Nothing is ever sent, opened or confirmed by it.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;
use serde::{Deserialize, Serialize};

use super::app::{App, Layer};
use super::intent::Intent;
use super::view::roster::Pane;
use crate::fact::Now;

/// Rows that one notch of the wheel moves.
const NOTCH: usize = 3;

/// Whether the terminal reports the mouse. It takes selecting text away from the terminal then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum MouseChoice {
    /// Where the terminal is on this machine: over SSH, copying from the terminal matters more.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl MouseChoice {
    /// Whether to ask the terminal for it, in this environment.
    pub fn is_on(self, env: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Auto => {
                ["SSH_CONNECTION", "SSH_TTY"].iter().all(|name| env(name).is_none_or(|it| it.is_empty()))
            }
        }
    }
}

/// How it is written in the configuration.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Switch(bool),
    Word(String),
}

impl From<MouseChoice> for Written {
    fn from(choice: MouseChoice) -> Self {
        match choice {
            MouseChoice::Auto => Self::Word("auto".to_owned()),
            MouseChoice::On => Self::Switch(true),
            MouseChoice::Off => Self::Switch(false),
        }
    }
}

impl TryFrom<Written> for MouseChoice {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Switch(true) => Ok(Self::On),
            Written::Switch(false) => Ok(Self::Off),
            Written::Word(word) if word == "auto" => Ok(Self::Auto),
            Written::Word(_) => Err("`true`, `false` or \"auto\" is wanted"),
        }
    }
}

impl App {
    /// What the mouse does; says whether anything may look different now.
    pub fn mouse(&mut self, event: MouseEvent, now: Now) -> bool {
        let at = Position::new(event.column, event.row);
        let by = match event.kind {
            MouseEventKind::ScrollUp => Intent::Up,
            MouseEventKind::ScrollDown => Intent::Down,
            MouseEventKind::Down(MouseButton::Left) => {
                self.touched(now);
                self.click(at, now);
                self.inquire();
                return true;
            }
            // It only moved, or does what nothing is bound to.
            _ => return false,
        };
        self.touched(now);
        if self.confirm.is_some() || self.context().takes_text() {
            return true;
        }
        for _ in 0..NOTCH {
            self.intent(by, now);
        }
        self.inquire();
        true
    }

    /// Selects what is at `at`, if something there can be.
    fn click(&mut self, at: Position, now: Now) {
        if self.confirm.is_some() || self.context().takes_text() {
            return;
        }
        match self.layers.last_mut() {
            Some(Layer::Inbox(state)) => state.click(at),
            Some(Layer::Peers(state)) => state.click(at, &self.model),
            Some(Layer::Turns(state)) => state.click(at, &self.model),
            Some(Layer::Signals(state)) => state.click(at, &self.model),
            Some(Layer::Lessons(state)) => state.click(at),
            Some(Layer::Timeline(state)) => state.click(at, self.history.timeline()),
            Some(
                Layer::Ask(_)
                | Layer::Broadcast
                | Layer::Help(_)
                | Layer::Diagnostics(_)
                | Layer::Peek(_)
                | Layer::Transcript(_)
                | Layer::Search(_),
            ) => {}
            None => {
                if let Some(lead) = self.roster.lead_at(at).cloned() {
                    self.roster.pane = Pane::Leads;
                    self.roster.select(&lead, &self.model, now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_ssh_it_is_off_unless_wanted() {
        let ssh = |name: &str| (name == "SSH_TTY").then(|| "/dev/pts/1".to_owned());
        let here = |_: &str| None;
        assert!(MouseChoice::Auto.is_on(here) && !MouseChoice::Auto.is_on(ssh));
        assert!(MouseChoice::On.is_on(ssh) && !MouseChoice::Off.is_on(here));
    }
}
