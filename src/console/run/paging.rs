//! A session's branch in the pager, while the console stands back.

use std::fs::File;

use super::{Console, Ended, News, RunError};
use crate::console::pager;
use crate::console::terminal::{Events, Lent, Screen, Signals};
use crate::console::theme::Role;
use crate::fact::SessionFile;
use crate::pi::growth::Branch;

impl Console {
    /// Writes a session out for the pager, which takes as long as it is long.
    pub(super) fn write_copy(&self, file: SessionFile, branch: Branch) {
        let troubles = self.troubles.clone();
        tokio::task::spawn_blocking(move || {
            let (text, role) = (String::new(), Role::Warning);
            let news = match pager::write_out(&file, branch) {
                Ok(copy) => News { text, role, unsaved: None, copy: Some(copy) },
                Err(why) => News { text: format!("Not opened: {why}."), role, unsaved: None, copy: None },
            };
            // The console may have ended meanwhile.
            let _ = troubles.send(news);
        });
    }

    /// Has the pager show `copy`; gives how we end, if that is what came meanwhile.
    pub(super) async fn page(
        &mut self,
        copy: File,
        screen: &mut Screen,
        events: &mut Events,
        signals: &mut Signals,
    ) -> Result<Option<Ended>, RunError> {
        if !self.app.is_reading() {
            // Whoever went on to something else does not want it any more.
            return Ok(None);
        }
        let lent = screen.lend(events, signals, || pager::start(copy)).await?;
        let now = self.now();
        match lent {
            Lent::Done => self.app.quiet(),
            Lent::Failed(why) => {
                self.app.say(format_args!("The pager failed ({why}): set PAGER to one."), Role::Warning, now);
            }
            Lent::Ended(signal) => return Ok(Some(Ended::Signal(signal))),
        }
        self.dirty = true;
        Ok(None)
    }
}
