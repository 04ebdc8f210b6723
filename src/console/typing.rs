//! What is typed and pasted where a text field is open.

use crossterm::event::KeyEvent;

use super::app::{App, Layer};
use super::intent::Context;
use super::theme::Role;
use crate::fact::Now;

impl App {
    /// A key that is text where a text field is open.
    pub(super) fn typed(&mut self, key: KeyEvent, now: Now) {
        let problem = match self.layers.last_mut() {
            _ if self.confirm.is_some() => None,
            Some(Layer::Ask(_) | Layer::Broadcast) => {
                let problem = self.writer().and_then(|state| state.typed(key, now.mono));
                self.keep_draft(now);
                problem
            }
            Some(Layer::Help(state)) => {
                state.typed(key);
                None
            }
            Some(Layer::Inbox(state)) => {
                state.typed(key, &self.model);
                None
            }
            Some(Layer::Transcript(state)) => {
                state.typed(key);
                None
            }
            Some(Layer::Search(state)) => {
                self.next_ticket += 1;
                state.typed(key, &self.model, self.next_ticket);
                None
            }
            Some(
                Layer::Diagnostics(_)
                | Layer::Peers(_)
                | Layer::Turns(_)
                | Layer::Signals(_)
                | Layer::Peek(_)
                | Layer::Timeline(_)
                | Layer::Lessons(_),
            ) => None,
            None => {
                self.roster.typed(key, &self.model, now);
                None
            }
        };
        if let Some(problem) = problem {
            self.say(format_args!("{problem}"), Role::Warning, now);
        }
    }

    /// Pasted text: kept in a text field, ignored elsewhere.
    pub fn paste(&mut self, text: &str, now: Now) {
        self.settle(now);
        let is_filter = self.context() == Context::Filter;
        let asked = self.confirm.is_some();
        let writes = self.writer().is_some_and(|state| state.is_composing()) && !asked;
        match self.layers.last_mut() {
            Some(Layer::Ask(_) | Layer::Broadcast) if writes => {
                let problem = self.writer().and_then(|state| state.pasted(text, now.mono));
                self.keep_draft(now);
                if let Some(problem) = problem {
                    self.say(format_args!("{problem}"), Role::Warning, now);
                }
            }
            _ if !is_filter => {
                self.say(format_args!("Pasted text is ignored outside a text field."), Role::Notice, now);
            }
            Some(Layer::Help(state)) => state.pasted(text),
            Some(Layer::Inbox(state)) => state.pasted(text, &self.model),
            Some(Layer::Transcript(state)) => state.pasted(text),
            Some(Layer::Search(state)) => {
                self.next_ticket += 1;
                state.pasted(text, &self.model, self.next_ticket);
            }
            _ => self.roster.pasted(text, &self.model, now),
        }
        self.inquire();
        self.find();
    }

    /// A burst of keys was dropped.
    pub fn dropped(&mut self, keys: usize, now: Now) {
        self.say(
            format_args!("{keys} keys came faster than a hand types and were ignored."),
            Role::Notice,
            now,
        );
    }
}
