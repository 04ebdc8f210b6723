//! What the service tells of the journal: what was received, what was sent.

use std::sync::Arc;

use super::{Service, Standing};
use crate::chief::inquiry::Which;
use crate::fact::{Answered, Done, Fact, Inquiry, Mail, SentCounts};

/// Received messages that are told without being asked for: enough for any screen.
const NEWEST: usize = 100;

/// What was told last.
#[derive(Default)]
pub(super) struct Told {
    revision: Option<u64>,
    mail: Option<Arc<Mail>>,
    sent: Option<Arc<SentCounts>>,
}

impl Service {
    /// Receives what stands in our inbox, and puts the messages of asks there that never came.
    pub(super) async fn receive(&mut self) {
        if !matches!(self.standing, Standing::Chief { .. }) {
            return;
        }
        let snapshot = self.setup.snapshots.borrow().clone();
        let received = self.on_disk(move |office| {
            let roster = snapshot.and_then(|snapshot| office.roster(&snapshot).ok());
            if let Some(roster) = &roster {
                office.publish_missing_asks(roster, office.now())?;
            }
            office.receive(roster.as_ref())
        });
        match received.await {
            Ok(Ok(reception)) => {
                if reception.more {
                    self.setup.mail_changed.notify_one();
                }
                self.tell_journal(reception.kept, None).await;
            }
            Ok(Err(error)) => self.tell_journal(Vec::new(), Some(error.to_string())).await,
            Err(error) => self.tell_journal(Vec::new(), Some(error.to_string())).await,
        }
    }

    /// Tells what was received and how much was sent, if either is another than was told last.
    pub(super) async fn tell_journal(&mut self, kept: Vec<String>, stopped: Option<String>) {
        let told = self.told.revision;
        let read = self.on_disk(move |office| {
            let (revision, mail) = {
                let journal = office.journal();
                let index = journal.as_ref()?.index();
                if told == Some(index.revision()) {
                    return None;
                }
                (index.revision(), index.mail(NEWEST))
            };
            Some((revision, mail, office.sent_counts()))
        });
        let mut mail = self.told.mail.as_deref().cloned().unwrap_or_default();
        if let Ok(Some((revision, read, sent))) = read.await {
            self.told.revision = Some(revision);
            mail = read;
            if self.told.sent.as_deref() != Some(&sent) {
                let sent = Arc::new(sent);
                self.told.sent = Some(Arc::clone(&sent));
                self.setup.facts.put(Fact::SentCounts(sent));
            }
        }
        let mail = Arc::new(Mail { kept, stopped, ..mail });
        if self.told.mail.as_ref() != Some(&mail) {
            self.told.mail = Some(Arc::clone(&mail));
            self.setup.facts.put(Fact::Mail(mail));
        }
    }

    /// The same, with nothing new of the inbox.
    pub(super) async fn tell_journal_again(&mut self) {
        let (kept, stopped) = (self.told.mail.as_ref())
            .map(|mail| (mail.kept.clone(), mail.stopped.clone()))
            .unwrap_or_default();
        self.tell_journal(kept, stopped).await;
    }

    /// Tells what was sent to each lead in earlier runs, the newest of it.
    pub(super) async fn tell_sent_before(&self) {
        for sent in self.on_disk(|office| office.sent_before()).await.unwrap_or_default() {
            self.setup.facts.put(Fact::Sent(sent));
        }
    }

    pub(super) async fn inquire(&self, ticket: u64, inquiry: Inquiry) {
        let result = match self.on_disk(move |office| office.answer(&inquiry)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.setup.facts.put(Fact::Answered(Answered { ticket, result }));
    }

    pub(super) async fn mark(&mut self, ticket: u64, which: Which, read: bool) {
        let result = match self.on_disk(move |office| office.mark(&which, read)).await {
            Ok(marked) => marked.map(|()| Done::Marked).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(ticket, result);
        self.tell_journal_again().await;
    }
}
