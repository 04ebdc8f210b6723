//! What is done beside the loop, or instead of it for a while: finding files, and the operator's editor.

use std::sync::Arc;

use super::{Console, RunError};
use crate::chief::service::Request;
use crate::console::editor::{self, Sheet};
use crate::console::files::Question;
use crate::console::terminal::{Events, HandedOver, Screen, Signal, Signals};

impl Console {
    /// Finds something out about files, beside the loop and the disk thread: it may take long.
    pub(super) fn find(&self, question: Question) {
        let (office, found) = (Arc::clone(&self.host.office), self.found.clone());
        tokio::task::spawn_blocking(move || {
            // The console may have ended meanwhile.
            let _ = found.send(question.answer(&office));
        });
    }

    /// Has the operator's editor work on `text`; the signal that ends us, if one came.
    pub(super) async fn edit(
        &mut self,
        text: &str,
        screen: &mut Screen,
        events: &mut Events,
        signals: &mut Signals,
    ) -> Result<Option<Signal>, RunError> {
        let (directory, text) = (self.host.state.edits(), text.to_owned());
        let put = self.host.disk.run(move || Sheet::put(&directory, &text)).await;
        let sheet = match put.map_err(|gone| gone.to_string()).and_then(|put| put.map_err(|e| e.to_string()))
        {
            Ok(sheet) => sheet,
            Err(why) => {
                self.app.edited(Err(why), self.now());
                return Ok(None);
            }
        };
        let handed_over = screen.hand_over(events, signals, || sheet.command(&self.editor).spawn()).await?;
        let (signal, failed) = match &handed_over {
            HandedOver::Ended(status) => (None, editor::failed(&self.editor, *status)),
            HandedOver::NotStarted(error) => (None, Some(format!("no shell for the editor: {error}"))),
            HandedOver::Signal(signal) => (Some(*signal), None),
        };
        let taken = self.host.disk.run(move || match failed {
            None => sheet.take(),
            Some(why) => Err(match sheet.drop_unless_changed() {
                None => why,
                Some(place) => format!("{why}; what it wrote is in {place}"),
            }),
        });
        let taken = taken.await.unwrap_or_else(|gone| Err(gone.to_string()));
        self.app.edited(taken, self.now());
        // The shell may have stopped us together with the editor.
        self.host.request(Request::RegisterAgain).await;
        Ok(signal)
    }
}
