//! What the service tells of what was received.

use std::sync::Arc;

use super::Service;
use crate::chief::journal::Journal;
use crate::fact::{Fact, Mail};

impl Service {
    /// Reads what another console appended to the journal, and tells it.
    pub(super) async fn follow_journal(&mut self) {
        let directory = self.setup.state.journal();
        let followed = self.on_disk(move |office| office.read_journal(&directory)).await;
        let stopped = match followed {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        self.tell_mail(Vec::new(), stopped).await;
    }

    /// Tells the whole text of what was received under that number, which the operator then has
    /// seen.
    pub(super) async fn read(&mut self, seq: u64) {
        let read = self.on_disk(move |office| {
            let text = match office.journal().as_ref() {
                Some(journal) => journal.index().received_as(seq).map(|it| journal.text(it)).transpose(),
                None => Ok(None),
            };
            (text, office.mark_read(&[seq]))
        });
        let Ok((text, marked)) = read.await else { return };
        match text {
            Ok(Some(text)) => self.setup.facts.put(Fact::LetterText(seq, text)),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "reading what was received"),
        }
        if let Err(error) = marked {
            tracing::warn!(%error, "marking what was read");
        }
        let told = self.mail.as_ref().map(|(_, told)| (told.kept.clone(), told.stopped.clone()));
        let (kept, stopped) = told.unwrap_or_default();
        self.tell_mail(kept, stopped).await;
    }

    /// Tells what was received, if it is another than was told last.
    pub(super) async fn tell_mail(&mut self, kept: Vec<String>, stopped: Option<String>) {
        let mail = self.on_disk(|office| office.journal().as_mut().map(Journal::mail));
        let mail = mail.await.ok().flatten().unwrap_or_default();
        if let Some((known, told)) = &self.mail
            && Arc::ptr_eq(known, &mail)
            && told.kept == kept
            && told.stopped == stopped
        {
            return;
        }
        let told = Arc::new(Mail { kept, stopped, ..(*mail).clone() });
        let is_new = self.mail.as_ref().is_none_or(|(_, before)| *before != told);
        self.mail = Some((mail, Arc::clone(&told)));
        if is_new {
            self.setup.facts.put(Fact::Mail(told));
        }
    }
}
