//! The journal: everything received and sent, for ever, after `docs/state.md`.
//!
//! One line an event, appended and fsynced, in a segment a month: read in the order of the months,
//! the lines stand in the order they were written in. One writer, the holder of the lease; anybody
//! of ours may read, also while it writes. What is kept in memory is an index; texts are read on
//! demand.

mod index;
mod line;
mod prune;
mod segments;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use index::{Index, Received, SentEntry};
pub use line::Event;
pub use prune::{Gone, Kept, Needed, Plan, Why};
pub use segments::{JournalError, Month, NoMonth, Tally};

use index::{Folded, Place};
use line::Preview;
use segments::{Change, Segment, Writer, failed};

use rustix::io::Errno;

use crate::contract::{Message, Timestamp, Untrusted};
use crate::disk::{DiskError, Unreadable};
use crate::fact::{Letter, Mail};

/// Received messages that the screens are given without asking: enough for any of them.
const NEWEST: usize = 100;

/// The journal of one socket.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    /// How often it was read from its beginning.
    readings: u64,
    /// By month.
    segments: Vec<Segment>,
    index: Index,
    /// Of the last segment.
    writer: Option<Writer>,
    /// What the screens were given, until something comes.
    mail: Option<Arc<Mail>>,
    /// How the newest texts begin.
    previews: BTreeMap<u64, Preview>,
}

impl Journal {
    /// Reads the journal in `directory`, which is made with the first event.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        let mut journal = Self {
            directory: directory.to_owned(),
            readings: 0,
            segments: Vec::new(),
            index: Index::default(),
            writer: None,
            mail: None,
            previews: BTreeMap::new(),
        };
        for month in segments::months(directory)? {
            journal.add(month)?;
        }
        Ok(journal)
    }

    /// Reads what another console of ours appended since, or everything anew where what was read is
    /// not there any more; says whether anything changed. Whoever writes knows without.
    pub fn follow(&mut self) -> Result<bool, JournalError> {
        self.writer = None;
        let newest = self.newest();
        let mut months = segments::months(&self.directory)?;
        months.retain(|month| self.segments.iter().all(|segment| segment.month != *month));
        if months.first().copied() < newest && !months.is_empty() {
            // Somebody put an older one there.
            return self.read_anew();
        }
        let mut grown = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            match segment.change()? {
                Change::None => {}
                Change::Grown => grown.push(at),
                Change::Replaced => return self.read_anew(),
            }
        }
        let changed = !grown.is_empty() || !months.is_empty();
        for segment in grown {
            self.read_on(segment)?;
        }
        for month in months {
            self.add(month)?;
        }
        Ok(changed)
    }

    fn read_anew(&mut self) -> Result<bool, JournalError> {
        *self = Self { readings: self.readings + 1, ..Self::open(&self.directory)? };
        Ok(true)
    }

    /// Reads the segment of `month`, which is later than all those known. One that went since it was
    /// listed is none: somebody prunes.
    fn add(&mut self, month: Month) -> Result<(), JournalError> {
        match Segment::open(&self.directory, month) {
            Ok(segment) => self.segments.push(segment),
            Err(JournalError::NotOurs { reason: Unreadable::Missing, .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        Ok(self.read_on(self.segments.len() - 1)?)
    }

    fn newest(&self) -> Option<Month> {
        self.segments.last().map(|segment| segment.month)
    }

    fn read_on(&mut self, segment: usize) -> Result<(), DiskError> {
        self.mail = None;
        let index = &mut self.index;
        self.segments[segment].read_on(&mut |tally, line, offset| fold(index, tally, line, segment, offset))
    }

    /// Changes with every event, and with every time all of it was read anew.
    pub fn revision(&self) -> (u64, u64) {
        (self.readings, self.index.revision())
    }

    /// What it holds.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Whether there are no events at all, readable or not.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Lines that could not be read, and ends that were torn off and will never be whole.
    pub fn damaged(&self) -> usize {
        let torn = self.segments.iter().rev().skip(1).filter(|segment| segment.is_torn()).count();
        self.segments.iter().map(|segment| segment.tally.damaged).sum::<usize>() + torn
    }

    /// Lines that a later release wrote.
    pub fn later(&self) -> usize {
        self.segments.iter().map(|segment| segment.tally.later).sum()
    }

    /// Appends events, durable once this returns. On an error none of them counts.
    pub fn append(&mut self, events: &[Event<'_>], at: Timestamp) -> Result<(), DiskError> {
        if self.writer.as_ref().is_some_and(|writer| !writer.stands()) {
            // Somebody moved it away, or put something else there: what is there now is what counts,
            // if it is ours at all. No number is given twice all the same.
            let next = self.index.next_seq();
            self.writer = None;
            self.read_anew().map_err(JournalError::while_appending)?;
            self.index.go_on_at(next);
        }
        let mut writer = self.take_writer(at)?;
        if self.index.next_seq().saturating_add(events.len() as u64) > line::MAX_SEQ + 1 {
            // Written under a number that is not read, they would be missing for ever.
            let path = writer.path().to_owned();
            self.writer = Some(writer);
            return Err(DiskError { operation: "number what is appended to", path, reason: Errno::OVERFLOW });
        }
        let mut bytes = Vec::new();
        for (event, seq) in events.iter().zip(self.index.next_seq()..) {
            bytes.extend_from_slice(&line::written(event, seq, at));
        }
        if let Err((error, is_whole)) = writer.append(&bytes) {
            if is_whole {
                self.writer = Some(writer);
            }
            return Err(error);
        }
        self.mail = None;
        let (at, index) = (self.segments.len().saturating_sub(1), &mut self.index);
        if let Some(segment) = self.segments.last_mut() {
            segment.wrote(&bytes, &mut |tally, line, offset| fold(index, tally, line, at, offset));
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// The writer of the segment of the month of `at`, or of the newest there is where the clock was
    /// set back; its torn end is cut.
    fn take_writer(&mut self, at: Timestamp) -> Result<Writer, DiskError> {
        let month = self.newest().map_or(Month::of(at), |newest| newest.max(Month::of(at)));
        if let Some(writer) = self.writer.take()
            && self.newest() == Some(month)
        {
            return Ok(writer);
        }
        let (writer, torn) = Writer::open(&self.directory, month)?;
        if self.newest() != Some(month) {
            self.add(month).map_err(JournalError::while_appending)?;
        }
        let Some(last) = self.segments.iter().position(|segment| segment.month == month) else {
            let path = self.directory.join(month.segment());
            return Err(DiskError { operation: "append to", path, reason: Errno::NOENT });
        };
        // Whole lines after what was read were written by somebody before us.
        self.read_on(last)?;
        self.segments[last].tally.damaged += usize::from(torn);
        Ok(writer)
    }

    /// What the screens show of it: the newest messages, and counts of all.
    pub fn mail(&mut self) -> Arc<Mail> {
        if let Some(mail) = &self.mail {
            return Arc::clone(mail);
        }
        let received = self.index.received();
        let newest: Vec<&Received> =
            received.skip(self.index.received().len().saturating_sub(NEWEST)).collect();
        let mut previews = BTreeMap::new();
        for entry in &newest {
            let known = self.previews.remove(&entry.seq);
            // What can't be read now says so once it is opened.
            let preview = known.unwrap_or_else(|| self.preview(entry).unwrap_or_else(|_| Preview::nothing()));
            previews.insert(entry.seq, preview);
        }
        let mail = Arc::new(Mail {
            newest: newest.iter().map(|entry| entry.letter(previews[&entry.seq].clone())).collect(),
            total: self.index.received().len(),
            newest_unread: self.index.newest_unread(),
            unread: self.index.unread(),
            unread_by_lead: self.index.unread_by_lead().clone(),
            asks: self.index.newest_asks(NEWEST),
            damaged: self.damaged(),
            ..Mail::default()
        });
        self.previews = previews;
        self.mail = Some(Arc::clone(&mail));
        mail
    }

    fn line(&self, place: Place) -> Result<Vec<u8>, DiskError> {
        self.segments[place.segment as usize].bytes(place.offset, place.length)
    }

    fn garbled(&self, place: Place) -> impl FnOnce(serde_json::Error) -> DiskError {
        let path = self.segments[place.segment as usize].path();
        |error| failed("understand", path)(error.into())
    }

    fn preview(&self, received: &Received) -> Result<Preview, DiskError> {
        line::preview(&self.line(received.place)?).map_err(self.garbled(received.place))
    }

    /// What was received, with how its text begins.
    pub fn letter(&self, received: &Received) -> Result<Letter, DiskError> {
        Ok(received.letter(self.preview(received)?))
    }

    /// The whole message of a received event, as it came.
    pub fn record(&self, received: &Received) -> Result<Vec<u8>, DiskError> {
        line::record(&self.line(received.place)?).map_err(self.garbled(received.place))
    }

    /// The text of what was received, whole; of what is no message, its bytes.
    pub fn text(&self, received: &Received) -> Result<Untrusted, DiskError> {
        let bytes = self.record(received)?;
        Ok(match Message::parse(&bytes) {
            Ok(message) => message.text,
            Err(_) => Untrusted::from_bytes_lossy(&bytes),
        })
    }

    /// A message of ours, as it was written.
    pub fn message(&self, sent: &SentEntry) -> Result<Message, DiskError> {
        let garbled = |error: String| self.garbled(sent.place)(serde::de::Error::custom(error));
        let bytes = line::record(&self.line(sent.place)?).map_err(self.garbled(sent.place))?;
        Message::parse(&bytes).map_err(|error| garbled(error.to_string()))
    }
}

fn fold(index: &mut Index, tally: &mut Tally, line: Option<&[u8]>, segment: usize, offset: u64) {
    let folded = match line {
        Some(line) => {
            let place = Place { segment: segment as u32, length: line.len() as u32, offset };
            index.fold(line, place)
        }
        None => Folded::Damaged,
    };
    match folded {
        Folded::Known => tally.events += 1,
        Folded::Later => tally.later += 1,
        Folded::Damaged => tally.damaged += 1,
    }
}

#[cfg(test)]
mod tests;
