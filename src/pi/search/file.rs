//! Searching one session file from its end to its beginning.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::parts::{self, Part};
use super::{AROUND, Filter, Hit, Pattern, SearchError, Target};
use crate::contract::json::Document;
use crate::contract::{SessionId, Timestamp};
use crate::pi::entry::{Envelope, fused};
use crate::pi::session::{identity, open, read_at};
use crate::pi::tail::MAX_LINE;

/// Bytes read at once.
const CHUNK: u64 = 1 << 20;

/// What was found in one entry, in the order of its texts; at least one.
pub(super) struct EntryHits {
    pub(super) hits: Vec<Hit>,
}

/// The search of one file, of what it held when it was opened.
#[derive(Debug)]
pub(super) struct FileSearch {
    path: Arc<Path>,
    file: File,
    session: SessionId,
    size: u64,
    /// Everything from here on was read.
    begun: u64,
    /// Where the line ends of which `begun` is a place.
    line_end: u64,
    /// Whether that line is the last and nothing says that it is whole.
    is_last: bool,
    bad_lines: u64,
    long_lines: u64,
}

impl FileSearch {
    /// Opens it, and looks whose it is.
    pub(super) fn open(target: &Target) -> Result<Self, SearchError> {
        let (file, stamp) = open(&target.file)?;
        let size = stamp.size();
        let header = identity(&file, size)?;
        if target.session.as_ref().is_some_and(|wanted| *wanted != header.session) {
            return Err(SearchError::OtherSession);
        }
        Ok(Self {
            path: target.file.as_path().into(),
            file,
            session: header.session,
            size,
            begun: size,
            line_end: size,
            is_last: true,
            bad_lines: 0,
            long_lines: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.size - self.begun
    }

    pub(super) fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    pub(super) fn long_lines(&self) -> u64 {
        self.long_lines
    }

    /// Searches the chunk before; says whether there is more, or breaks where `take` does.
    pub(super) fn step(
        &mut self,
        pattern: &Pattern,
        filter: &Filter,
        take: &mut dyn FnMut(EntryHits) -> ControlFlow<()>,
    ) -> Result<ControlFlow<(), bool>, SearchError> {
        let begin = self.begun.saturating_sub(CHUNK);
        let chunk = self.read(begin, self.begun)?;
        let end = std::mem::replace(&mut self.begun, begin);
        let starts = memchr::memrchr_iter(b'\n', &chunk).map(|at| at as u64 + 1);
        for start in starts.chain((begin == 0).then_some(0)) {
            let (start, line_end) = (begin + start, self.line_end);
            self.line_end = start.saturating_sub(1);
            let is_last = std::mem::replace(&mut self.is_last, false);
            if line_end - start > MAX_LINE {
                self.long_lines += 1;
                continue;
            }
            let read;
            let line = if line_end <= end {
                &chunk[(start - begin) as usize..(line_end - begin) as usize]
            } else {
                read = self.read(start, line_end)?;
                &read
            };
            if !pattern.may_stand_in(line) {
                continue;
            }
            if let Some(hits) = self.line(line, start, is_last, pattern, filter)
                && take(hits).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(begin > 0))
    }

    fn read(&self, from: u64, to: u64) -> Result<Vec<u8>, SearchError> {
        let length = (to - from) as usize;
        let bytes = read_at(&self.file, from, length)?;
        if bytes.len() < length { Err(SearchError::Changed) } else { Ok(bytes) }
    }

    /// What is found in the line at `offset`, or in an entry that was written right behind a torn one.
    fn line(
        &mut self,
        line: &[u8],
        offset: u64,
        is_last: bool,
        pattern: &Pattern,
        filter: &Filter,
    ) -> Option<EntryHits> {
        let document = Document::decode(line);
        if let Ok(value) = document.value() {
            return self.entry(&Envelope::of(value)?, offset, pattern, filter);
        }
        // One that is not whole yet is not bad.
        self.bad_lines += u64::from(!is_last);
        let at = fused(line)?;
        let document = Document::decode(&line[at..]);
        let envelope = document.value().ok().and_then(Envelope::of)?;
        self.entry(&envelope, offset + at as u64, pattern, filter)
    }

    fn entry(
        &self,
        entry: &Envelope<'_>,
        offset: u64,
        pattern: &Pattern,
        filter: &Filter,
    ) -> Option<EntryHits> {
        let at = time_of(entry);
        if filter.since.is_some_and(|since| at.is_none_or(|at| at < since)) {
            return None;
        }
        let kind = entry.facts(&mut Vec::new()).kind;
        let is_wanted = |part: &Part| filter.only.is_none_or(|group| group.has(part.role));
        let mut hits = Vec::new();
        for part in parts::of(kind, entry, filter.thinking).into_iter().filter(is_wanted) {
            let mut places = pattern.places(&part.text);
            let Some(place) = places.next() else { continue };
            let places = 1 + places.count();
            let from = part.text.floor_char_boundary(place.start.saturating_sub(AROUND));
            let to = part.text.ceil_char_boundary(place.end.min(place.start + AROUND) + AROUND);
            hits.push(Hit {
                session: self.session.clone(),
                file: Arc::clone(&self.path),
                offset,
                entry: entry.text("id"),
                at,
                role: part.role,
                tool: part.tool,
                text: part.text[from..to].to_owned(),
                cut: (from > 0, to < part.text.len()),
                place: place.start - from..place.end.min(to) - from,
                places,
            });
        }
        (!hits.is_empty()).then_some(EntryHits { hits })
    }
}

/// When the entry was written: its own time, else that of its message.
fn time_of(entry: &Envelope<'_>) -> Option<Timestamp> {
    let text = entry.text("timestamp").and_then(|text| text.to_str_lossy().parse::<jiff::Timestamp>().ok());
    match text {
        Some(at) => u64::try_from(at.as_millisecond()).ok().map(Timestamp::from_millis),
        None => entry.object("message")?.get("timestamp")?.number().and_then(Timestamp::from_number),
    }
}
