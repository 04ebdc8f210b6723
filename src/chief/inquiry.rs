//! Answers about what was received, from the journal: each is bounded, so that the disk thread is
//! soon free for what must not wait.

use serde::{Deserialize, Serialize};

use super::journal::{Event, Journal};
use super::staff::Office;
use crate::contract::SessionId;
use crate::disk::DiskError;
use crate::fact::{Answer, Found, Inquiry, MAX_LETTERS, Needle, Query};

/// Letters looked at for one answer, where no text has to be read.
const MAX_LOOKED_AT: usize = 50_000;
/// Texts read for one answer: some milliseconds.
const MAX_READ: usize = 512;
/// Letters marked by one event: its line must stay readable.
const MARKED_AT_ONCE: usize = 1_000;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InquiryError {
    /// The journal is not open.
    #[error("the journal is not open: see headman doctor")]
    NoJournal,
    /// Nothing was received under that number, or it was removed since.
    #[error("it is not in the journal any more")]
    NotThere,
    /// Only the holder of the lease writes.
    #[error("only the Chief keeps what was read")]
    NotChief,
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Which letters are to be marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// This one.
    Letter(u64),
    /// All that this lead sent.
    Lead(SessionId),
}

impl Office {
    /// Answers an inquiry. Blocking.
    ///
    /// # Errors
    /// [`InquiryError`]
    pub fn answer(&self, inquiry: &Inquiry) -> Result<Answer, InquiryError> {
        let journal = self.journal();
        let journal = journal.as_ref().ok_or(InquiryError::NoJournal)?;
        Ok(match inquiry {
            Inquiry::Find { query, below, above } => Answer::Found(find(journal, query, *below, *above)?),
            Inquiry::Letters(seqs) => {
                let known = seqs.iter().take(MAX_LETTERS).filter_map(|seq| journal.index().received_as(*seq));
                Answer::Letters(known.map(|it| journal.letter(it)).collect::<Result<_, _>>()?)
            }
            Inquiry::Text(seq) => {
                let received = journal.index().received_as(*seq).ok_or(InquiryError::NotThere)?;
                Answer::Text(journal.text(received)?)
            }
        })
    }

    /// Marks letters as seen, or as not seen yet. Blocking.
    ///
    /// # Errors
    /// [`InquiryError`]
    pub fn mark(&self, which: &Which, read: bool) -> Result<(), InquiryError> {
        let lease = self.lease();
        if !lease.as_ref().is_some_and(|lease| matches!(lease.check(), Ok(Ok(())))) {
            return Err(InquiryError::NotChief);
        }
        let mut journal = self.journal();
        let journal = journal.as_mut().ok_or(InquiryError::NoJournal)?;
        let seqs: Vec<u64> = (journal.index().received())
            .filter(|letter| match which {
                Which::Letter(seq) => letter.seq == *seq,
                Which::Lead(lead) => letter.lead.as_ref() == Some(lead),
            })
            .filter(|letter| if read { letter.is_unread() } else { letter.read })
            .map(|letter| letter.seq)
            .collect();
        let events: Vec<Event<'_>> = (seqs.chunks(MARKED_AT_ONCE))
            .map(|seqs| if read { Event::Read(seqs) } else { Event::Unread(seqs) })
            .collect();
        if !events.is_empty() {
            journal.append(&events, self.now().wall)?;
        }
        Ok(())
    }
}

fn find(journal: &Journal, query: &Query, below: u64, above: u64) -> Result<Found, InquiryError> {
    let needle = query.text.as_deref().and_then(Needle::new);
    let mut found = Found { seqs: Vec::new(), rest: None };
    let mut read = 0;
    for (looked_at, letter) in journal.index().received_between(above, below).enumerate() {
        if looked_at == MAX_LOOKED_AT || read == MAX_READ {
            found.rest = Some(letter.seq + 1);
            break;
        }
        if !query.takes(letter.lead.as_ref(), letter.is_unread()) {
            continue;
        }
        let fits = match &needle {
            None => true,
            Some(needle) => {
                read += 1;
                needle.is_in(&journal.text(letter)?)
            }
        };
        if fits {
            found.seqs.push(letter.seq);
        }
    }
    Ok(found)
}
