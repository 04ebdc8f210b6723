//! What the loop has kept: drafts, and what is copied; and what became of work that nobody waits for.

use super::{Console, News};
use crate::console::drafts::{self, Draft};
use crate::console::terminal::Screen;
use crate::console::theme::Role;
use crate::contract::Untrusted;
use crate::disk::thread::DiskThreadGone;
use crate::disk::{DiskError, durable};

impl Console {
    /// Makes the drafts durable, without waiting for it; the disk thread keeps the order.
    pub(super) fn save_drafts(&mut self) {
        for draft in std::mem::take(&mut self.unsaved).into_values() {
            let (directory, saved) = (self.host.state.drafts(), draft.clone());
            let saved = self.host.disk.run(move || drafts::save(&directory, &saved));
            self.tell_trouble("The draft is not saved", Some(draft), saved);
        }
    }

    /// Saving failed: tried again in a while, unless the draft changed or went meanwhile.
    pub(super) fn save_again(&mut self, draft: Draft) {
        let key = draft.key();
        if self.app.keeps(&key) {
            self.unsaved.entry(drafts::path(&self.host.state.drafts(), &key)).or_insert(draft);
            self.save.failed(self.now().mono);
        }
    }

    /// Says in the footer if `work` fails, whenever that is known.
    pub(super) fn tell_trouble(
        &self,
        what: &'static str,
        unsaved: Option<Draft>,
        work: impl Future<Output = Result<Result<(), DiskError>, DiskThreadGone>> + Send + 'static,
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
