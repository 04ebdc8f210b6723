//! The demo's hint: which key to try next, until it was tried.

use std::collections::HashSet;

use super::intent::{Context, Intent};
use super::keymap::Keymap;

/// What is worth trying, in this order, and what it does.
const STEPS: &[(Intent, &str)] = &[
    (Intent::NextAsk, "goes to the ask that waits longest, and to the next from there"),
    (Intent::Reply, "answers the ask of the lead under the cursor"),
    (Intent::Send, "sends what you wrote; the lead takes it and goes on"),
    (Intent::WaitingOnly, "shows only the leads that wait for you, and all again"),
    (Intent::Inbox, "shows what leads sent you, read and unread"),
    (Intent::Filter, "filters the list by what you type"),
    (Intent::Search, "searches in the whole texts of the messages"),
    (Intent::Diagnostics, "shows what was left out of the list, and why"),
    (Intent::Help, "shows every key"),
    (Intent::ToggleChief, "leaves Chief mode, or takes the lease again"),
    (Intent::Transcript, "shows what was said in the session of the lead under the cursor"),
    (Intent::Peek, "shows what is on that lead's pane"),
    (Intent::Signals, "shows which leads go in circles or get no further, and the rounds that show it"),
    (Intent::SearchSessions, "searches what was said in the sessions of all leads"),
];

/// Who is Chief, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Office {
    /// We are.
    Ours,
    /// Nobody is.
    Free,
    /// Somebody else, or it is not known.
    Other,
}

/// Which keys were tried.
#[derive(Debug, Default)]
pub struct Guide {
    tried: HashSet<Intent>,
}

impl Guide {
    /// The operator asked for `intent`.
    pub fn tried(&mut self, intent: Intent) {
        self.tried.insert(intent);
    }

    /// What to try next in `context`; nothing once all that can be tried here was. Without being
    /// Chief that is to become it again, since nothing else leads on.
    pub fn next(&self, context: Context, chief: Office, has_asks: bool, keymap: &Keymap) -> Option<String> {
        if chief == Office::Free
            && context != Context::Confirm
            && let Some(way) = keymap.way_to(Intent::ToggleChief, context)
        {
            return Some(format!("Demo: {way} makes you Chief again; only a Chief can answer."));
        }
        let (intent, what) = STEPS.iter().find(|(intent, _)| {
            let needs_asks = matches!(intent, Intent::NextAsk | Intent::Reply);
            let needs_chief = matches!(intent, Intent::Reply | Intent::Send);
            !self.tried.contains(intent)
                && (has_asks || !needs_asks)
                && (chief == Office::Ours || !needs_chief)
                && keymap.reaches(*intent, context)
        })?;
        Some(format!("Demo: {} {what}.", keymap.key_of(*intent)))
    }
}
