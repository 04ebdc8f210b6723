//! A session's branch in the pager, while the console stands back.

use super::{Console, Ended, News, RunError};
use crate::console::pager::{self, Copy, Paging};
use crate::console::terminal::{Events, HandedOver, Screen, Signals};
use crate::console::theme::Role;

impl Console {
    /// Writes a session out for the pager, which takes as long as it is long.
    pub(super) fn write_copy(&self, paging: Paging) {
        let troubles = self.troubles.clone();
        tokio::task::spawn_blocking(move || {
            let (text, role) = (String::new(), Role::Warning);
            let news = match pager::write_out(&paging) {
                Ok(copy) => News { text, role, unsaved: None, paged: Some((paging, Some(copy))) },
                Err(why) => {
                    let text = format!("Not opened: {why}.");
                    News { text, role, unsaved: None, paged: Some((paging, None)) }
                }
            };
            // The console may have ended meanwhile.
            let _ = troubles.send(news);
        });
    }

    /// Has the pager show `copy`; gives how we end, if that is what came meanwhile.
    pub(super) async fn page(
        &mut self,
        copy: Copy,
        screen: &mut Screen,
        events: &mut Events,
        signals: &mut Signals,
    ) -> Result<Option<Ended>, RunError> {
        let failed = match screen.hand_over(events, signals, || pager::start(copy)).await? {
            HandedOver::Ended(status) if status.success() => None,
            HandedOver::Ended(status) => Some(status.to_string()),
            HandedOver::NotStarted(error) => Some(error.to_string()),
            HandedOver::Signal(signal) => return Ok(Some(Ended::Signal(signal))),
        };
        let now = self.now();
        match failed {
            None => self.app.quiet(),
            Some(why) => {
                self.app.say(format_args!("The pager failed ({why}): set PAGER to one."), Role::Warning, now);
            }
        }
        self.dirty = true;
        Ok(None)
    }
}
