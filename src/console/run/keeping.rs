//! What the loop has kept: drafts, and what is copied; and what became of work that nobody waits for.

use std::fmt::Display;
use std::path::PathBuf;

use super::{Console, News};
use crate::chief::state_dir::StateDir;
use crate::console::broadcast::{self, Broadcast};
use crate::console::drafts::{self, Draft};
use crate::console::keep::KeepError;
use crate::console::pins;
use crate::console::terminal::Screen;
use crate::console::theme::Role;
use crate::contract::{SessionId, Untrusted};
use crate::disk::durable;
use crate::disk::thread::DiskThreadGone;

/// What earlier runs kept.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) drafts: Vec<Draft>,
    pub(super) pins: Vec<SessionId>,
    pub(super) broadcast: Option<Broadcast>,
    /// What was passed over, and why; safe to print.
    pub(super) skipped: Vec<String>,
}

impl Kept {
    pub(super) fn load(state: &StateDir) -> Self {
        drafts::take_up(&state.drafts());
        let drafts = drafts::load_all(&state.drafts());
        let mut skipped: Vec<_> =
            drafts.skipped.iter().map(|why| format!("A draft was not read: {why}")).collect();
        let pins = pins::load(&state.pins()).unwrap_or_else(|why| {
            skipped.push(format!("The pins were not read: {why}"));
            Vec::new()
        });
        let broadcast = match state.barred() {
            // It could not be sent, and what a crash left of it must stay.
            Some(_) => None,
            None => broadcast::load(&state.broadcast()).unwrap_or_else(|why| {
                skipped.push(format!("The broadcast was not read: {why}"));
                None
            }),
        };
        Self { drafts: drafts.drafts, pins, broadcast, skipped }
    }
}

/// What is written and not durable yet.
#[derive(Clone)]
pub(super) enum Unsaved {
    Draft(Draft),
    Broadcast(Broadcast),
}

impl Unsaved {
    fn path(&self, state: &StateDir) -> PathBuf {
        match self {
            Unsaved::Draft(draft) => drafts::path(&state.drafts(), &draft.key()),
            Unsaved::Broadcast(_) => state.broadcast(),
        }
    }

    /// Makes it durable. Blocking.
    pub(super) fn save(&self, state: &StateDir) -> Result<(), KeepError> {
        match self {
            Unsaved::Draft(draft) => Ok(drafts::save(&state.drafts(), draft)?),
            Unsaved::Broadcast(broadcast) => broadcast::save(&state.broadcast(), broadcast),
        }
    }
}

impl Console {
    /// Has it made durable within a second.
    pub(super) fn save_soon(&mut self, unsaved: Unsaved) {
        self.unsaved.insert(unsaved.path(&self.host.state), unsaved);
        self.save.changed(self.now().mono);
    }

    /// Makes the drafts durable, without waiting for it; the disk thread keeps the order.
    pub(super) fn save_drafts(&mut self) {
        for unsaved in std::mem::take(&mut self.unsaved).into_values() {
            let (state, saved) = (self.host.state.clone(), unsaved.clone());
            let saved = self.host.disk.run(move || saved.save(&state));
            self.tell_trouble("The draft is not saved", Some(unsaved), saved);
        }
    }

    /// Saving failed: tried again in a while, unless the draft changed or went meanwhile.
    pub(super) fn save_again(&mut self, unsaved: Unsaved) {
        let is_kept = match &unsaved {
            Unsaved::Draft(draft) => self.app.keeps(&draft.key()),
            Unsaved::Broadcast(_) => self.app.broadcast().is_some_and(|state| state.is_writing()),
        };
        if is_kept {
            self.unsaved.entry(unsaved.path(&self.host.state)).or_insert(unsaved);
            self.save.failed(self.now().mono);
        }
    }

    /// Makes the broadcast durable that goes out, and has the app told.
    pub(super) fn keep_broadcast(&mut self, broadcast: Broadcast) {
        let path = self.host.state.broadcast();
        // What was to be saved is older.
        self.unsaved.remove(&path);
        let saved = self.host.disk.run(move || broadcast::save(&path, &broadcast));
        let told = self.kept_broadcast.clone();
        tokio::spawn(async move {
            let result = match saved.await {
                Ok(saved) => saved.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            // The console may have ended meanwhile.
            let _ = told.send(result);
        });
    }

    pub(super) fn remove_broadcast(&mut self) {
        let path = self.host.state.broadcast();
        self.unsaved.remove(&path);
        let removed = self.host.disk.run(move || broadcast::remove(&path));
        self.tell_trouble("The broadcast stays where it is kept", None, removed);
    }

    pub(super) fn keep_pin(&mut self, lead: SessionId, pinned: bool) {
        let path = self.host.state.pins();
        let kept = self.host.disk.run(move || pins::set(&path, &lead, pinned));
        self.tell_trouble("The pin is not kept", None, kept);
    }

    /// Says in the footer if `work` fails, whenever that is known.
    pub(super) fn tell_trouble(
        &self,
        what: &'static str,
        unsaved: Option<Unsaved>,
        work: impl Future<Output = Result<Result<(), impl Display + Send + 'static>, DiskThreadGone>>
        + Send
        + 'static,
    ) {
        let troubles = self.troubles.clone();
        tokio::spawn(async move {
            let why = match work.await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            tracing::warn!(why, what);
            // The console may have ended meanwhile.
            let _ = troubles.send(News {
                text: format!("{what}: {why}"),
                role: Role::Alarm,
                unsaved,
                paged: None,
            });
        });
    }

    /// Puts text on the terminal's clipboard, and always into a file of ours.
    pub(super) fn copy(&mut self, text: Untrusted, screen: &mut Screen) {
        let path = self.host.state.copied();
        let shown = durable::shown(&path).to_string();
        let bytes = text.to_str_lossy().into_owned().into_bytes();
        let offered = screen.copy(&bytes).is_ok();
        if self.host.state.barred().is_some() {
            let (said, role) = match offered {
                true => ("Copied", Role::Good),
                false => ("Not copied: the terminal takes no text", Role::Warning),
            };
            return self.app.say(format_args!("{said}."), role, self.now());
        }
        let written = self.host.disk.run(move || durable::publish(&path, &bytes));
        let troubles = self.troubles.clone();
        tokio::spawn(async move {
            let told = match written.await {
                Ok(Ok(())) if offered => (format!("Copied; also in {shown}"), Role::Good),
                Ok(Ok(())) => (format!("Copied to {shown}"), Role::Good),
                Ok(Err(error)) => (format!("Not copied: {error}"), Role::Warning),
                Err(error) => (format!("Not copied: {error}"), Role::Warning),
            };
            // The console may have ended meanwhile.
            let (text, role) = told;
            let _ = troubles.send(News { text, role, unsaved: None, paged: None });
        });
    }
}
