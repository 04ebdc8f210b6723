//! What the service tells of the journal: what was received, what was sent.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::{Service, Standing};
use crate::chief::inquiry::Which;
use crate::chief::reception::{Missing, Reception, ReceptionError};
use crate::chief::staff::Office;
use crate::contract::{SessionId, Uuid};
use crate::disk::mailboxes::Scan;
use crate::fact::{Answered, Done, Fact, Inquiry, Mail, SentCounts, Snooze, Until};
use crate::herd::inventory::Inventory;

/// How long it may go unnoticed that an ask's message is missing where nothing told of a change.
const PROJECT_AGAIN: Duration = Duration::from_secs(30);

/// Asks told as put off; of more than that the oldest come back.
const MAX_SNOOZES: usize = 500;

/// What was told last.
#[derive(Default)]
pub(super) struct Told {
    revision: Option<(u64, u64)>,
    mail: Option<Arc<Mail>>,
    sent: Option<Arc<SentCounts>>,
    snoozes: Option<Arc<Vec<Snooze>>>,
    /// On what it was found last that no message of an ask is missing.
    no_ask_missing: Option<Basis>,
}

/// What tells which messages of asks are missing.
struct Basis {
    lease: Uuid,
    inventory: Inventory,
    mailboxes: Arc<Scan>,
    records: Option<SystemTime>,
    /// When it was looked at.
    at: Instant,
}

impl Basis {
    /// Whether what was found on it holds on that later one too.
    fn holds(&self, later: &Self) -> bool {
        later.at.duration_since(self.at) < PROJECT_AGAIN
            && self.lease == later.lease
            && self.records.is_some()
            && self.records == later.records
            && Arc::ptr_eq(&self.mailboxes, &later.mailboxes)
            && self.inventory == later.inventory
    }
}

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
        self.tell_journal(Vec::new(), stopped).await;
    }

    /// Receives what stands in our inbox, and puts the messages of asks there that never came.
    ///
    /// Unless something is `told` to have changed, or stands in the inbox, the herd is projected only
    /// where its inventory or the directory of the records is another, and now and then all the same:
    /// a file system may tell changes too coarsely.
    pub(super) async fn receive(&mut self, told: bool) {
        let Standing::Chief { lease, .. } = self.standing else { return };
        let snapshot = self.setup.snapshots.borrow().clone();
        let last = self.told.no_ask_missing.take().filter(|_| !told);
        let received = self.on_disk(move |office| -> Result<_, ReceptionError> {
            // Looked at before the records are read: what changes meanwhile is noticed the next time.
            let now = snapshot.map(|snapshot| Basis {
                lease,
                records: office.records_changed(),
                mailboxes: office.mailboxes(),
                inventory: office.inventory(&snapshot, &Default::default()),
                at: Instant::now(),
            });
            let holds = last.as_ref().zip(now.as_ref()).is_some_and(|(last, now)| last.holds(now));
            if holds && !office.has_mail()? {
                return Ok((Reception::default(), last));
            }
            let roster = now.as_ref().and_then(|now| office.roster_of(&now.inventory).ok());
            let missing = match &roster {
                Some(roster) => office.publish_missing_asks(roster, office.now())?,
                None => Missing::default(),
            };
            let mut reception = office.receive(roster.as_ref())?;
            reception.more |= missing.more;
            Ok((reception, now.filter(|_| roster.is_some() && missing.asks == 0)))
        });
        match received.await {
            Ok(Ok((reception, basis))) => {
                self.told.no_ask_missing = basis;
                if reception.more {
                    self.setup.mail_changed.notify_one();
                }
                self.tell_journal(reception.kept, None).await;
            }
            Ok(Err(error)) => {
                let waits = self.on_disk(Office::what_waits).await.unwrap_or_default();
                self.tell_journal(waits, Some(error.to_string())).await;
            }
            Err(error) => self.tell_journal(Vec::new(), Some(error.to_string())).await,
        }
    }

    /// Tells what was received, how much was sent, and what is put off, where it is other than was told
    /// last.
    pub(super) async fn tell_journal(&mut self, kept: Vec<String>, stopped: Option<String>) {
        let told = self.told.revision;
        let read = self.on_disk(move |office| {
            let now = office.now().wall;
            let (revision, mail, snoozes) = {
                let mut journal = office.journal();
                let journal = journal.as_mut()?;
                let revision = journal.revision();
                if told == Some(revision) {
                    return None;
                }
                (revision, journal.mail(), journal.index().snoozed(MAX_SNOOZES, now))
            };
            Some((revision, mail, office.sent_counts(), snoozes))
        });
        let mut mail = self.told.mail.as_deref().cloned().unwrap_or_default();
        if let Ok(Some((revision, read, sent, snoozes))) = read.await {
            self.told.revision = Some(revision);
            mail = (*read).clone();
            if self.told.sent.as_deref() != Some(&sent) {
                let sent = Arc::new(sent);
                self.told.sent = Some(Arc::clone(&sent));
                self.setup.facts.put(Fact::SentCounts(sent));
            }
            if self.told.snoozes.as_deref() != Some(&snoozes) {
                let snoozes = Arc::new(snoozes);
                self.told.snoozes = Some(Arc::clone(&snoozes));
                self.setup.facts.put(Fact::Snoozes(snoozes));
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

    pub(super) async fn snooze(&mut self, ticket: u64, lead: SessionId, ask: Uuid, until: Option<Until>) {
        let result = match self.on_disk(move |office| office.snooze(&lead, ask, until)).await {
            Ok(snoozed) => snoozed.map(|()| Done::Snoozed).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(ticket, result);
        self.tell_journal_again().await;
    }
}
