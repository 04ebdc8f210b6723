//! The files of the journal: one a month, appended to at the end, read on from where one was.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::Errno;

use crate::contract::Timestamp;
use crate::disk::crash_point;
use crate::disk::durable::{self, DiskError, Unreadable};

/// Longest line read: a record of 8,192 bytes, escaped at worst, and what is around it.
const MAX_LINE: usize = 128 * 1024;
/// Bytes read at once: more than a line has, and few enough to stay near the processor.
const BLOCK: usize = 256 * 1024;

/// A month of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Month {
    year: i16,
    month: i8,
}

impl Month {
    /// The month of a moment.
    pub fn of(at: Timestamp) -> Self {
        let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        let date = jiff::tz::TimeZone::UTC.to_datetime(at);
        Self { year: date.year(), month: date.month() }
    }

    /// The name of its segment: `YYYY-MM.jsonl`.
    pub fn segment(self) -> String {
        format!("{self}.jsonl")
    }

    /// The month of the segment of that name; none where no segment is called so.
    pub fn of_segment(name: &str) -> Option<Self> {
        name.strip_suffix(".jsonl")?.parse().ok()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// It is no `YYYY-MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a month as 2026-11 is needed")]
pub struct NoMonth;

impl FromStr for Month {
    type Err = NoMonth;

    fn from_str(text: &str) -> Result<Self, NoMonth> {
        let (year, month) = text.split_once('-').ok_or(NoMonth)?;
        let digits = |text: &str, count| text.len() == count && text.bytes().all(|it| it.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) {
            return Err(NoMonth);
        }
        let month = month.parse().map_err(|_| NoMonth)?;
        let year = year.parse().map_err(|_| NoMonth)?;
        if (1..=12).contains(&month) { Ok(Self { year, month }) } else { Err(NoMonth) }
    }
}

/// Why the journal can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Its directory or a segment is not ours alone.
    #[error("{}: {reason}", durable::shown(path))]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: Unreadable,
    },
}

impl JournalError {
    fn of(path: &Path, reason: Unreadable) -> Self {
        match reason {
            Unreadable::Disk(error) => Self::Disk(error),
            reason => Self::NotOurs { path: path.to_owned(), reason },
        }
    }

    /// The same as an error of appending: it was ours when it was read.
    pub(super) fn while_appending(self) -> DiskError {
        match self {
            Self::Disk(error) => error,
            Self::NotOurs { path, .. } => DiskError { operation: "append to", path, reason: Errno::PERM },
        }
    }
}

/// The months of which there are segments in `directory`, in their order.
pub(super) fn months(directory: &Path) -> Result<Vec<Month>, JournalError> {
    let names = durable::list(directory).map_err(|reason| JournalError::of(directory, reason))?;
    let mut months: Vec<Month> = names.iter().filter_map(|name| Month::of_segment(name.to_str()?)).collect();
    months.sort();
    Ok(months)
}

/// What a segment holds, counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Lines that could be read.
    pub events: usize,
    /// Lines that could not.
    pub damaged: usize,
    /// Lines that a later release wrote.
    pub later: usize,
}

/// A file as it was looked at: its length and when it was written.
type Seen = (u64, i64, i64);

/// What is done with a line, and where it stands; none is one that is too long.
pub(super) type EachLine<'a> = dyn FnMut(&mut Tally, Option<&[u8]>, u64) + 'a;

/// What became of a segment since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// Something follows what was read.
    Grown,
    /// What was read is not there any more.
    Replaced,
}

/// One file of the journal.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) month: Month,
    pub(super) tally: Tally,
    path: PathBuf,
    file: File,
    /// The end of the last whole line that was read.
    read: u64,
    /// That line, to know again what was read; of one that is too long its end.
    last: Vec<u8>,
    seen: Seen,
}

impl Segment {
    /// Opens the segment of `month`, of which nothing is read yet.
    pub(super) fn open(directory: &Path, month: Month) -> Result<Self, JournalError> {
        let path = directory.join(month.segment());
        let file = durable::open_to_read(&path).map_err(|reason| JournalError::of(&path, reason))?;
        let (tally, last) = (Tally::default(), Vec::new());
        Ok(Self { month, tally, path, file, read: 0, last, seen: (0, 0, 0) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What became of the file since it was read.
    pub(super) fn change(&self) -> Result<Change, DiskError> {
        let found = match std::fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Change::Replaced),
            Err(error) => return Err(failed("look at", &self.path)(error)),
        };
        let ours = self.file.metadata().map_err(failed("look at", &self.path))?;
        if (found.dev(), found.ino()) != (ours.dev(), ours.ino()) {
            return Ok(Change::Replaced);
        }
        if seen(&ours) == self.seen {
            return Ok(Change::None);
        }
        // The writer cuts off again what it could not make durable, and then writes something else.
        let begin = self.read - self.last.len() as u64;
        let mut now = vec![0; self.last.len()];
        match self.file.read_exact_at(&mut now, begin) {
            Ok(()) if now == self.last => Ok(Change::Grown),
            Ok(()) => Ok(Change::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Change::Replaced),
            Err(error) => Err(failed("read", &self.path)(error)),
        }
    }

    /// Hands out the whole lines after what was read, each without its end and with where it
    /// stands; none for one that is too long. What follows the last line end is just being written,
    /// or was cut off by a crash. What is appended meanwhile is left for the next time, or whoever
    /// appends without a pause would keep us here.
    pub(super) fn read_on(&mut self, each: &mut EachLine<'_>) -> Result<(), DiskError> {
        self.seen = seen(&self.file.metadata().map_err(failed("look at", &self.path))?);
        let waiting = self.seen.0.saturating_sub(self.read);
        let mut block = vec![0; (waiting as usize).clamp(4096, BLOCK)];
        let mut filled = 0;
        loop {
            let at = self.read + filled as u64;
            let room = until(self.seen.0, at, &mut block[filled..]);
            let got = self.file.read_at(room, at).map_err(failed("read", &self.path))?;
            if got == 0 {
                return Ok(());
            }
            filled += got;
            let taken = self.take(&block[..filled], each);
            block.copy_within(taken..filled, 0);
            filled -= taken;
            if filled == BLOCK {
                // Longer than anything we write: passed over, once its end is there.
                let Some(end) = self.end_of_line(self.read + filled as u64, &mut block)? else {
                    return Ok(());
                };
                each(&mut self.tally, None, self.read);
                self.last = b"\n".to_vec();
                self.read = end;
                filled = 0;
            } else if filled == block.len() {
                block.resize(BLOCK.min(2 * filled), 0);
            }
        }
    }

    /// The same for lines that were just appended.
    pub(super) fn wrote(&mut self, lines: &[u8], each: &mut EachLine<'_>) {
        self.take(lines, each);
        if let Ok(found) = self.file.metadata() {
            self.seen = seen(&found);
        }
    }

    /// Takes the whole lines that `block` begins with; says how many bytes they are.
    fn take(&mut self, block: &[u8], each: &mut EachLine<'_>) -> usize {
        let mut begin = 0;
        let mut last = 0..0;
        for end in memchr::memchr_iter(b'\n', block) {
            let line = Some(&block[begin..end]).filter(|line| line.len() <= MAX_LINE);
            each(&mut self.tally, line, self.read + begin as u64);
            last = begin..end + 1;
            begin = end + 1;
        }
        if !last.is_empty() {
            self.last.clear();
            self.last.extend_from_slice(&block[last]);
        }
        self.read += begin as u64;
        begin
    }

    /// Whether bytes follow that are no whole line.
    pub(super) fn is_torn(&self) -> bool {
        self.seen.0 > self.read
    }

    /// Where the line ends that goes on at `from`, past its line end.
    fn end_of_line(&self, mut from: u64, block: &mut [u8]) -> Result<Option<u64>, DiskError> {
        loop {
            let room = until(self.seen.0, from, block);
            let got = self.file.read_at(room, from).map_err(failed("read", &self.path))?;
            if got == 0 {
                return Ok(None);
            }
            match memchr::memchr(b'\n', &block[..got]) {
                Some(end) => return Ok(Some(from + end as u64 + 1)),
                None => from += got as u64,
            }
        }
    }

    /// What stands at a place.
    pub(super) fn bytes(&self, offset: u64, length: u32) -> Result<Vec<u8>, DiskError> {
        let mut line = vec![0; length as usize];
        self.file.read_exact_at(&mut line, offset).map_err(failed("read", &self.path))?;
        Ok(line)
    }
}

/// As much of `room` as lies before `end` from `at` on.
fn until(end: u64, at: u64, room: &mut [u8]) -> &mut [u8] {
    let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
    let length = room.len().min(left);
    &mut room[..length]
}

fn seen(found: &std::fs::Metadata) -> Seen {
    (found.len(), found.mtime(), found.mtime_nsec())
}

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Writer {
    /// Opens the segment of `month` to append, made if it is missing. A torn end is cut; says
    /// whether there was one.
    pub(super) fn open(directory: &Path, month: Month) -> Result<(Self, bool), DiskError> {
        durable::ensure_directory(directory)?;
        let path = directory.join(month.segment());
        let is_new = durable::kind(&path)?.is_none();
        let opened = durable::open_to_append(&path);
        let file = opened.map_err(|reason| JournalError::of(&path, reason).while_appending())?;
        crash_point!("journal:made");
        let (length, torn) = cut_torn_end(&file).map_err(failed("repair", &path))?;
        if is_new {
            durable::sync_parent(&path)?;
        }
        Ok((Self { file, path, length }, torn))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file still stands where it was opened, and is ours alone.
    pub(super) fn stands(&self) -> bool {
        let opened = self.file.metadata();
        durable::open_to_read(&self.path)
            .ok()
            .and_then(|found| found.metadata().ok())
            .zip(opened.ok())
            .is_some_and(|(found, opened)| {
                (found.dev(), found.ino(), found.len()) == (opened.dev(), opened.ino(), self.length)
            })
    }

    /// Appends `bytes`, durable once this returns, or leaves the file as it was; whether that
    /// succeeded says the second half of an error.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), (DiskError, bool)> {
        use std::io::Write;
        let written = self.file.write_all(bytes).and_then(|()| {
            crash_point!("journal:written");
            self.file.sync_data()
        });
        if let Err(error) = written {
            // A part of it may stand there: cut, or a later line would be fused to it.
            let cut = self.file.set_len(self.length).is_ok();
            return Err((failed("append to", &self.path)(error), cut));
        }
        crash_point!("journal:synced");
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Cuts what follows the last line end; gives the length then, and whether there was anything.
fn cut_torn_end(file: &File) -> std::io::Result<(u64, bool)> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut block = [0; 4096];
    while end > 0 {
        let begin = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - begin) as usize];
        file.read_exact_at(part, begin)?;
        match memchr::memrchr(b'\n', part) {
            Some(at) => {
                end = begin + at as u64 + 1;
                break;
            }
            None => end = begin,
        }
    }
    if end < length {
        file.set_len(end)?;
        crash_point!("journal:cut");
        file.sync_data()?;
    }
    Ok((end, end < length))
}

pub(super) fn failed<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> DiskError + use<'a> {
    move |error| DiskError {
        operation,
        path: path.to_owned(),
        reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}
