//! Reception: our inbox into the journal, durably, and only then out of the inbox. Nothing anyone
//! sent is ever lost: what the contract would have deleted unread is journalled first, with why.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::SystemTime;

use super::journal::{Event, Journal};
use super::staff::Office;
use crate::contract::record::Invalid;
use crate::contract::{Kind, Message, Rule, SessionId, Untrusted, Uuid, message};
use crate::disk::inbox::{self, InboxError};
use crate::disk::layout::InboxDir;
use crate::disk::{DiskError, Unreadable, crash_point, durable, records};
use crate::fact::Now;
use crate::herd::{Lead, Roster};

/// Messages journalled with one fsync.
const BATCH: usize = 64;
/// UTF-16 units shown of what can't be received.
const WAITING_SHOWN: usize = 1_000;
/// Why a message is refused whose id is another's.
const OTHER_OF_ITS_ID: &str = "another message of the same id was received before";
/// Messages that are read to put them in order, each time.
const MAX_ORDERED: usize = 4_096;

/// Why reception stopped. What stands in the inbox stays there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceptionError {
    /// The journal can't be written.
    #[error("the journal can't be written, what leads sent stays in the inbox: {0}")]
    Journal(DiskError),
    /// The inbox can't be listed.
    #[error("our inbox can't be used: {0}")]
    Inbox(Unreadable),
    /// The lease can't be checked.
    #[error(transparent)]
    Lease(#[from] DiskError),
}

/// What one look at the inbox did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reception {
    /// Journalled and removed.
    pub accepted: usize,
    /// Journalled, marked as refused, and removed.
    pub refused: usize,
    /// There before: removed again.
    pub again: usize,
    /// Left where they are; safe to print why.
    pub kept: Vec<String>,
    /// Whether more waits.
    pub more: bool,
}

/// Asks whose messages had not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many.
    pub asks: usize,
    /// Whether some were left for the next time.
    pub more: bool,
}

enum Judged {
    Accept(Box<Message>),
    Refuse(Option<Box<Message>>, String),
    Again,
    Keep(String),
}

impl Office {
    /// Receives what stands in our inbox, one batch. Without a roster that is fresh nothing that
    /// has to be verified is judged. Blocking: for the disk thread.
    pub fn receive(&self, roster: Option<&Roster>) -> Result<Reception, ReceptionError> {
        let lease = self.lease();
        let Some(lease) = lease.as_ref() else { return Ok(Reception::default()) };
        if lease.check()?.is_err() {
            return Ok(Reception::default());
        }
        let mut journal = self.journal();
        let Some(journal) = journal.as_mut() else { return Ok(Reception::default()) };
        self.pay(journal, None, self.now().wall).map_err(ReceptionError::Journal)?;
        let inbox = self.own_inbox(lease);
        let mut reception = Reception::default();
        let mut journalled: Vec<(Uuid, Vec<u8>, Judged)> = Vec::new();
        let mut settled: Vec<Uuid> = Vec::new();
        let mut accepted: HashMap<(Option<SessionId>, Uuid), Untrusted> = HashMap::new();
        let names: Vec<Uuid> = (durable::list(inbox.path()).map_err(ReceptionError::Inbox)?.iter())
            .filter_map(|name| InboxDir::message_id(name))
            .collect();
        for name in in_order(&inbox, names) {
            if journalled.len() == BATCH {
                reception.more = true;
                break;
            }
            let (bytes, judged) = match durable::read_private(&inbox.message(name), message::MAX_BYTES) {
                Ok(bytes) => {
                    let judged = self.judge(name, &bytes, lease.id(), journal, roster, &inbox);
                    (bytes, judged)
                }
                Err(Unreadable::Missing) => continue,
                Err(error) => (Vec::new(), Judged::Keep(error.to_string())),
            };
            // The same under another name, in this very batch.
            let judged = match judged {
                Judged::Accept(message) => match accepted.entry(identity(&message)) {
                    Entry::Vacant(first) => {
                        first.insert(message.text.clone());
                        Judged::Accept(message)
                    }
                    Entry::Occupied(first) => came_again(message, first.get()),
                },
                judged => judged,
            };
            match judged {
                Judged::Keep(why) => reception.kept.push(format!("message {name}: {why}")),
                Judged::Again => {
                    reception.again += 1;
                    settled.push(name);
                }
                judged => journalled.push((name, bytes, judged)),
            }
        }
        let events: Vec<Event<'_>> = (journalled.iter())
            .map(|(name, bytes, judged)| Event::Received {
                id: *name,
                bytes,
                message: message_of(judged),
                refused: match judged {
                    Judged::Refuse(_, why) => Some(why),
                    _ => None,
                },
            })
            .collect();
        if !events.is_empty() {
            journal.append(&events, self.now().wall).map_err(ReceptionError::Journal)?;
            crash_point!("reception:journalled");
        }
        for (name, _, judged) in &journalled {
            match judged {
                Judged::Accept(_) => reception.accepted += 1,
                _ => reception.refused += 1,
            }
            settled.push(*name);
        }
        for name in settled {
            if let Err(error) = inbox::remove(&inbox, name) {
                // It stands there still, and is known: the next look removes it.
                tracing::warn!(%error, id = %name, "removing a received message");
                reception.kept.push(format!("message {name} is received, but not removed: {error}"));
            }
            crash_point!("reception:removed");
        }
        Ok(reception)
    }

    fn judge(
        &self,
        name: Uuid,
        bytes: &[u8],
        lease: Uuid,
        journal: &Journal,
        roster: Option<&Roster>,
        inbox: &InboxDir,
    ) -> Judged {
        let index = journal.index();
        // Journalled as it stands here, it only failed to be removed.
        let known = match index.file(name).map(|received| journal.record(received)) {
            Some(Ok(known)) => known == bytes,
            Some(Err(error)) => return Judged::Keep(error.to_string()),
            None => false,
        };
        let message = match Message::parse(bytes) {
            Ok(message) => Box::new(message),
            Err(error) if error.is_of_another_release() => return Judged::Keep(error.to_string()),
            Err(Invalid { rule: Rule::ReserializedTooLarge, message }) => return Judged::Keep(message),
            Err(_) if known => return Judged::Again,
            Err(error) => return Judged::Refuse(None, error.to_string()),
        };
        if index.has(&message) {
            return match received_text(journal, &message) {
                _ if known => Judged::Again,
                Some(Err(error)) => Judged::Keep(error.to_string()),
                Some(Ok(text)) => came_again(message, &text),
                None if index.file(message.id).is_some_and(|last| last.refused.is_some()) => {
                    Judged::Refuse(Some(message), OTHER_OF_ITS_ID.to_owned())
                }
                // Its file had another name, or is pruned.
                None => Judged::Again,
            };
        }
        let quarantined = inbox::is_quarantined(inbox, name);
        match self.verify(message, lease, roster) {
            // An ask that was refused may be one to be answered by now.
            Judged::Accept(ask) if known && ask.kind == Kind::LeadAsk && !quarantined => Judged::Accept(ask),
            Judged::Accept(_) | Judged::Refuse(..) if known => Judged::Again,
            Judged::Accept(_) | Judged::Refuse(..) if quarantined => {
                Judged::Keep("it is quarantined".to_owned())
            }
            judged => judged,
        }
    }

    /// Whether a message is one that the contract has us accept.
    fn verify(&self, message: Box<Message>, lease: Uuid, roster: Option<&Roster>) -> Judged {
        let refuse = |why: &str| Judged::Refuse(Some(message.clone()), why.to_owned());
        if message.to != *self.session() {
            return refuse("it is addressed to another session");
        }
        if !matches!(message.kind, Kind::LeadMessage | Kind::LeadAsk) || message.from != message.lead {
            return refuse("it is not from a lead");
        }
        if message.lease != lease {
            return refuse("it was written under an earlier lease");
        }
        let Some(roster) = roster else {
            return Judged::Keep("Herdr does not answer, so the lead can't be verified".to_owned());
        };
        let Some(lead) = roster.lead(&message.lead) else {
            let unreadable = roster.left_out.iter().any(|left| {
                matches!(left.reason, crate::herd::Reason::UnreadableRecord(_))
                    && left.subject.session().is_none_or(|it| it == message.lead.as_untrusted())
            });
            return if unreadable {
                Judged::Keep("the lead's record can't be read".to_owned())
            } else {
                refuse("it is from a lead that Herdr did not show then")
            };
        };
        match (message.kind, &lead.pending_ask) {
            (Kind::LeadAsk, Some(pending)) if Some(pending.ask) == message.ask => {}
            (Kind::LeadAsk, _) => return refuse("the ask was not pending any more"),
            _ => {}
        }
        Judged::Accept(message)
    }

    /// Whether something stands in our inbox. Blocking.
    ///
    /// # Errors
    /// The inbox can't be listed.
    pub fn has_mail(&self) -> Result<bool, ReceptionError> {
        let names = durable::list(self.runtime().inbox(self.session()).path());
        Ok(names.map_err(ReceptionError::Inbox)?.iter().any(|name| InboxDir::message_id(name).is_some()))
    }

    /// What stands in our inbox while it can't be received, the oldest first and of very much the
    /// first; safe to print. Blocking.
    pub fn what_waits(&self) -> Vec<String> {
        let inbox = self.runtime().inbox(self.session());
        let names = durable::list(inbox.path()).unwrap_or_default();
        let names = names.iter().filter_map(|name| InboxDir::message_id(name)).collect();
        let waits = in_order(&inbox, names).into_iter().take(BATCH).map(|name| {
            let read = durable::read_private(&inbox.message(name), message::MAX_BYTES);
            match read.ok().and_then(|bytes| Message::parse(&bytes).ok()) {
                Some(message) => format!(
                    "from {}: \u{201c}{}\u{201d}",
                    message.lead.escaped(),
                    message.text.first_units(WAITING_SHOWN).escaped()
                ),
                None => format!("message {name}"),
            }
        });
        waits.collect()
    }

    /// When a record of a lead was last put up or taken away, if that can be told. Blocking.
    pub fn records_changed(&self) -> Option<SystemTime> {
        std::fs::metadata(self.runtime().leads()).and_then(|found| found.modified()).ok()
    }

    /// Puts the messages of pending asks that never came into our own inbox, as the contract has
    /// it, one batch, and remembers when each ask was first seen. Blocking.
    pub fn publish_missing_asks(&self, roster: &Roster, now: Now) -> Result<Missing, ReceptionError> {
        let lease = self.lease();
        let Some(lease) = lease.as_ref() else { return Ok(Missing::default()) };
        if lease.check()?.is_err() {
            return Ok(Missing::default());
        }
        let mut journal = self.journal();
        let Some(journal) = journal.as_mut() else { return Ok(Missing::default()) };
        let missing: Vec<(&Lead, Uuid)> = (roster.leads.iter())
            .filter_map(|lead| Some((lead, lead.pending_ask.as_ref()?.ask)))
            .filter(|(lead, ask)| !journal.index().has_ask(&lead.session, *ask))
            .collect();
        let unseen: Vec<Event<'_>> = (missing.iter())
            .filter(|(lead, ask)| journal.index().asked_at(&lead.session, *ask).is_none())
            .map(|(lead, ask)| Event::AskSeen { lead: &lead.session, ask: *ask })
            .collect();
        if !unseen.is_empty() {
            journal.append(&unseen, now.wall).map_err(ReceptionError::Journal)?;
        }
        let inbox = self.own_inbox(lease);
        let mut published = 0;
        let mut result = Missing { asks: missing.len(), more: false };
        for (lead, ask) in missing {
            if published == BATCH {
                result.more = true;
                break;
            }
            let Some(pending) = &lead.pending_ask else { continue };
            let id = Uuid::of_ask(&lead.session, ask, lease.id());
            if matches!(durable::kind(&inbox.message(id)), Ok(Some(_))) {
                continue;
            }
            // Right before it is written, as a screen's picture is no evidence.
            let stands = records::read_lead(self.runtime(), &lead.session)
                .is_ok_and(|now| now.instance == lead.instance && now.pending_ask.as_ref() == Some(pending));
            if !stands || lease.check()?.is_err() {
                continue;
            }
            let message = Message {
                id,
                lease: lease.id(),
                kind: Kind::LeadAsk,
                from: lead.session.clone(),
                to: self.session().clone(),
                lead: lead.session.clone(),
                ask: Some(ask),
                text: pending.text.clone(),
                created_at: journal.index().asked_at(&lead.session, ask).unwrap_or(now.wall),
            };
            match inbox::publish_ask(self.agent_dir().path(), &inbox, &message) {
                Ok(_) => published += 1,
                // Its text is shown from the record all the same.
                Err(InboxError::Invalid(_) | InboxError::Conflict(_) | InboxError::Quarantined(_)) => {}
                Err(error) => tracing::warn!(%error, "publishing the message of an ask"),
            }
        }
        Ok(result)
    }
}

/// The names of files in our inbox in the order in which they are received: by the time they were
/// written, as a person would read them; what is no message comes last. Of very many the first are
/// put in order.
fn in_order(inbox: &InboxDir, mut names: Vec<Uuid>) -> Vec<Uuid> {
    names.sort_unstable();
    let ordered = names.len().min(MAX_ORDERED);
    names[..ordered].sort_by_cached_key(|name| {
        let read = durable::read_private(&inbox.message(*name), message::MAX_BYTES);
        let written = read.ok().and_then(|bytes| Message::parse(&bytes).ok()).map(|it| it.created_at);
        (written.is_none(), written, *name)
    });
    names
}

/// The text of the message that was accepted as the one which `message` is.
fn received_text(journal: &Journal, message: &Message) -> Option<Result<Untrusted, DiskError>> {
    let is_ask = message.kind == Kind::LeadAsk && message.ask.is_some();
    let accepted = match is_ask {
        true => journal.index().received().rev().find(|it| {
            it.refused.is_none() && it.ask == message.ask && it.lead.as_ref() == Some(&message.lead)
        }),
        false => journal.index().file(message.id).filter(|it| it.refused.is_none()),
    };
    accepted.map(|accepted| journal.text(accepted))
}

/// What to do with a message that was accepted before with that text.
fn came_again(message: Box<Message>, text: &Untrusted) -> Judged {
    match message.text == *text {
        true => Judged::Again,
        false => Judged::Refuse(Some(message), OTHER_OF_ITS_ID.to_owned()),
    }
}

fn message_of(judged: &Judged) -> Option<&Message> {
    match judged {
        Judged::Accept(message) | Judged::Refuse(Some(message), _) => Some(message),
        _ => None,
    }
}

/// What makes it the same message: an ask is known by lead and ask, another by its id.
fn identity(message: &Message) -> (Option<SessionId>, Uuid) {
    match (message.kind, message.ask) {
        (Kind::LeadAsk, Some(ask)) => (Some(message.lead.clone()), ask),
        _ => (None, message.id),
    }
}
