//! The index of one session file, kept up to date by reading what was appended.
//!
//! A file may grow while it is read, end in the middle of a line, be written anew in place, with the
//! same size even, or be another one by now. Of each entry only its place and a few facts are kept;
//! what else is made of them, a [`Fold`] sees as they are read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::branch::{Seen, Tree};
use super::entry::{Entry, Envelope, Id, Model, Told};
use super::lines::{self, CHUNK, Line, Span, Sweep};
use super::session::{HEAD_WINDOW, Header, HeaderError, Stamp, header_of, open, parse_header, read_at};
use crate::contract::json::Document;
use crate::contract::text::is_js_space;

/// The longest line that is parsed, in bytes; of a longer one nothing is kept but that it was there.
pub const MAX_LINE: u64 = 64 << 20;
/// After so long without a change an unterminated line counts, and a file that shrank is read.
pub const QUIET: Duration = Duration::from_secs(1);
/// Bytes from the beginning, and before the place where reading goes on, that must still be the same.
const ANCHOR: u64 = 1024;

/// How what may still change is taken.
#[derive(Debug, Clone, Copy)]
pub enum Unsettled {
    /// As it stands: whoever reads but once can't wait.
    AtOnce,
    /// Once nothing changed for [`QUIET`]; it is this late now.
    AfterQuiet(Instant),
}

/// How far a look came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The budget is used up, and there is more to read.
    More,
    /// Everything was read.
    Done,
    /// The file shrank, as it does while it is written anew; what was known of it is kept until it is quiet.
    Waiting,
}

/// What a session file holds, in the file's order.
#[derive(Debug, Clone, Default)]
pub struct Index {
    header: Option<Result<Header, HeaderError>>,
    entries: Vec<Entry>,
    models: Vec<Arc<Model>>,
    /// Lines that are JSON.
    parsed: u32,
    bad_lines: u32,
    long_lines: u32,
    /// Whether entries stand before the first one here.
    is_cut: bool,
}

impl Index {
    /// The header, or why the first line that is JSON is none; nothing while there is no such line.
    /// Its name is not looked for here: [`super::branch::Tree::name`] has it.
    pub fn header(&self) -> Option<&Result<Header, HeaderError>> {
        self.header.as_ref()
    }

    /// The format's version; a header without one is of the first. Above 3 it is a newer Pi's.
    pub fn version(&self) -> Option<f64> {
        self.header.as_ref()?.as_ref().ok().map(|header| header.version.unwrap_or(1.0))
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many lines are neither JSON nor blank; one with an entry at its end is among them.
    pub fn bad_lines(&self) -> u32 {
        self.bad_lines
    }

    /// How many lines are longer than [`MAX_LINE`].
    pub fn long_lines(&self) -> u32 {
        self.long_lines
    }

    /// A fold of this file that has taken nothing.
    fn begin<F: Fold>(&self) -> F {
        self.header.as_ref().and_then(|header| header.as_ref().ok()).map_or_else(F::default, F::begin)
    }

    /// Takes the line at `offset`. One that is not whole yet counts if it is JSON; nothing is said of
    /// it and nothing looked for in it otherwise.
    fn take<F: Fold>(&mut self, line: &[u8], offset: u64, is_whole: bool, folding: &mut Folding<F>) {
        let mut document = Document::decode(line);
        let trimmed;
        if offset == 0 {
            // At the very beginning, and only there, Pi passes over what JavaScript calls blank: a BOM.
            trimmed = String::from_utf8_lossy(line).trim_start_matches(is_js_space).to_owned();
            document = Document::decode(trimmed.as_bytes());
        }
        if self.header.is_none() {
            if let Ok(value) = document.value() {
                self.parsed = self.parsed.saturating_add(1);
                self.header = Some(header_of(value));
                folding.fold = self.begin();
            } else {
                self.bad_lines += u32::from(is_whole && !line.iter().all(u8::is_ascii_whitespace));
            }
            return;
        }
        let mut models = std::mem::take(&mut self.models);
        lines::read(line, &document, is_whole, &mut models, |line, envelope| {
            self.add(line, offset, is_whole, |before, entry| {
                if let Some(envelope) = envelope {
                    folding.see(before, entry, envelope);
                }
            });
        });
        self.models = models;
    }

    /// Adds what was read of the line at `offset`, behind the header; `see` is shown the entry in it,
    /// and the one before.
    fn add(&mut self, line: Line, offset: u64, is_whole: bool, see: impl FnOnce(Option<&Entry>, &Entry)) {
        let number = self.parsed;
        let (found, is_recovered) = match line {
            Line::Blank => return,
            Line::Bad(found) => {
                self.bad_lines += u32::from(is_whole);
                (found, true)
            }
            Line::Json(found) => {
                self.parsed = self.parsed.saturating_add(1);
                (found, false)
            }
        };
        // Old bugs left several headers: the first one counts.
        let Some(found) = found.filter(|found| !found.is_header) else { return };
        let is_first_version = self.version().is_some_and(|version| version < 2.0);
        let (id, parent) = if is_first_version {
            let before = self.entries.last().map(|before| before.id.clone());
            (Id::Line(number), before.or(self.is_cut.then_some(Id::Line(0))))
        } else {
            (found.id.unwrap_or(Id::Line(number)), found.parent)
        };
        let Told { kind, fact, is_error, calls } = found.told;
        let (offset, length) = (offset + found.from as u64, u32::try_from(found.length).unwrap_or(u32::MAX));
        let (fact, at) = (fact.map(Box::new), found.at);
        let entry = Entry { offset, length, id, parent, kind, is_error, calls, at, is_recovered, fact };
        see(self.entries.last(), &entry);
        push(&mut self.entries, entry);
    }
}

/// Pushes onto what may become very long: an eighth more is made room for, not as much again.
pub(super) fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 32);
    }
    list.push(one);
}

/// What is made of the entries of a branch: of the one that the file's last entry ends, each entry
/// once, from the root on. Entries that were recovered from behind torn lines are among them.
///
/// It begins as [`Fold::begin`] says: at the first entry, when the file is read anew, and when the last
/// entry is on another branch. What an unterminated line did to it is undone when the line goes on.
pub trait Fold: Clone + Default {
    /// Whether it makes anything of them at all: else nothing is read again for it.
    const TAKES: bool = true;

    /// One of a file with that header.
    fn begin(_: &Header) -> Self {
        Self::default()
    }

    /// Takes the next entry, whose members are `line`.
    fn take(&mut self, entry: &Entry, line: &Envelope<'_>);
}

/// Nothing is made of them.
impl Fold for () {
    const TAKES: bool = false;

    fn take(&mut self, _: &Entry, _: &Envelope<'_>) {}
}

/// Both are made of them, in one pass.
impl<A: Fold, B: Fold> Fold for (A, B) {
    const TAKES: bool = A::TAKES || B::TAKES;

    fn begin(header: &Header) -> Self {
        (A::begin(header), B::begin(header))
    }

    fn take(&mut self, entry: &Entry, line: &Envelope<'_>) {
        self.0.take(entry, line);
        self.1.take(entry, line);
    }
}

/// A fold, and whether it is that of the branch.
#[derive(Debug, Clone, Default)]
struct Folding<F> {
    fold: F,
    /// The last entry is on another branch than the fold: it is to be made anew.
    is_stale: bool,
}

impl<F: Fold> Folding<F> {
    fn see(&mut self, before: Option<&Entry>, entry: &Entry, line: &Envelope<'_>) {
        let goes_on = before.is_none_or(|before| entry.parent.as_ref() == Some(&before.id));
        self.is_stale |= F::TAKES && !goes_on;
        if !self.is_stale {
            self.fold.take(entry, line);
        }
    }
}

/// A fold that is being made anew.
#[derive(Debug)]
struct Refolding<F> {
    fold: F,
    /// The entries it took, by their numbers.
    taken: Vec<usize>,
}

/// What an unterminated line put into the index, to be taken out again when the line goes on.
#[derive(Debug)]
struct Provisional<F> {
    entries: usize,
    parsed: u32,
    had_header: bool,
    folding: Folding<F>,
}

/// The index of the session file at one path, and what is folded from it.
#[derive(Debug)]
pub struct Tail<F = ()> {
    path: PathBuf,
    index: Index,
    folding: Folding<F>,
    refolding: Option<Refolding<F>>,
    /// Of a larger file, besides the header only so many bytes at its end are read.
    window: Option<u64>,
    /// Where reading began: in the middle of a line, unless at the file's beginning.
    begun: u64,
    /// The file as it was at the last look.
    file: Option<Stamp>,
    /// What it begins with.
    head: Vec<u8>,
    /// What stands right before `scanned`.
    anchor: Vec<u8>,
    /// Where the line begins that is not complete.
    line: u64,
    /// Up to where that line was looked through for its end.
    scanned: u64,
    /// The size at which nothing changed, and since when.
    quiet: Option<(u64, Instant)>,
    provisional: Option<Provisional<F>>,
    read: u64,
    /// How often entries were taken out of the index.
    withdrawn: u64,
}

impl Tail {
    /// One that has not looked yet.
    pub fn new(path: &Path) -> Self {
        Self::folding(path, None)
    }
}

impl<F: Fold> Tail<F> {
    /// One that has not looked yet and folds. With a `window`, of a file that is larger only the header
    /// and the entries in so many bytes at its end are read, and what is appended from then on.
    pub fn folding(path: &Path, window: Option<u64>) -> Self {
        Self {
            path: path.to_owned(),
            index: Index::default(),
            folding: Folding::default(),
            refolding: None,
            window,
            begun: 0,
            file: None,
            head: Vec::new(),
            anchor: Vec::new(),
            line: 0,
            scanned: 0,
            quiet: None,
            provisional: None,
            read: 0,
            withdrawn: 0,
        }
    }

    /// What is known of the file.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What is folded from the branch, as of the last look that was [`Progress::Done`].
    pub fn fold(&self) -> &F {
        &self.folding.fold
    }

    /// Whether entries at the file's beginning were not read.
    pub fn is_cut(&self) -> bool {
        self.index.is_cut
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// How often entries were taken out of the index again, since the file went on otherwise or was
    /// written anew. While it stays the same, entries are only added.
    pub fn withdrawn(&self) -> u64 {
        self.withdrawn
    }

    /// Up to where the file was read, in bytes.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// The size of the file at the last look, in bytes.
    pub fn size(&self) -> u64 {
        self.file.map_or(0, |stamp| stamp.size())
    }

    /// Reads what is new, `budget` bytes, up to a line and a chunk more, and never beyond the size that
    /// the file has when it is opened. An unchanged file is not opened.
    ///
    /// # Errors
    /// Those of the file; what was known of it is kept.
    pub fn look(&mut self, budget: u64, unsettled: Unsettled) -> Result<Progress, HeaderError> {
        let is_all_read = self.file.is_some_and(|file| file.size() == self.scanned) && !self.folding.is_stale;
        if is_all_read && self.file == Some(Stamp::of_path(&self.path)?) && self.is_settled() {
            return Ok(Progress::Done);
        }
        let (file, stamp) = open(&self.path)?;
        match self.changed(&file, &stamp)? {
            Change::None => {}
            Change::Shrunk if !self.is_quiet(stamp.size(), unsettled) => return Ok(Progress::Waiting),
            Change::Shrunk | Change::Anew => {
                let anew = Self::folding(&self.path, self.window);
                let (read, withdrawn) = (self.read, self.withdrawn + 1);
                *self = Self { read, withdrawn, quiet: self.quiet.take(), ..anew };
            }
        }
        if self.file.is_none() {
            self.begin(&file, stamp.size())?;
        }
        self.file = Some(stamp);
        let begun = self.read;
        let more = self.read_lines(&file, stamp.size(), budget);
        // Also after an error: what was taken must not be taken again.
        self.anchor_at(&file)?;
        if more? {
            return Ok(Progress::More);
        }
        if self.line < self.scanned && self.provisional.is_none() && self.is_quiet(stamp.size(), unsettled) {
            self.take_unterminated(&file)?;
        }
        if self.folding.is_stale && self.refold(&file, (begun + budget).saturating_sub(self.read).max(1))? {
            return Ok(Progress::More);
        }
        Ok(Progress::Done)
    }

    /// Goes to where the window begins, if there is one and the file is larger.
    fn begin(&mut self, file: &File, size: u64) -> Result<(), HeaderError> {
        let Some(window) = self.window.filter(|window| size > window + HEAD_WINDOW as u64) else {
            return Ok(());
        };
        let head = read_at(file, 0, HEAD_WINDOW)?;
        self.read += head.len() as u64;
        self.index.header = Some(parse_header(&head, false).map(|(header, _)| header));
        self.folding.fold = self.index.begin();
        self.index.is_cut = true;
        // The header was the first line.
        self.index.parsed = 1;
        // From one byte before, to see whether a line begins with the window.
        self.begun = size - window - 1;
        (self.line, self.scanned) = (self.begun, self.begun);
        Ok(())
    }

    /// Whether the file still holds what was read of it, whatever was appended.
    ///
    /// # Errors
    /// Those of the file.
    pub fn holds(&self) -> Result<bool, HeaderError> {
        let (file, stamp) = open(&self.path)?;
        Ok(self.changed(&file, &stamp)? == Change::None)
    }

    /// Whether no unterminated line waits to be taken.
    pub fn is_settled(&self) -> bool {
        self.line == self.scanned
            || self.provisional.is_some()
            || self.scanned - self.line > MAX_LINE
            || (self.line == self.begun && self.begun > 0)
    }

    fn is_quiet(&mut self, size: u64, unsettled: Unsettled) -> bool {
        let now = match unsettled {
            Unsettled::AtOnce => return true,
            Unsettled::AfterQuiet(now) => now,
        };
        let since = match self.quiet {
            Some((known, since)) if known == size => since,
            _ => {
                self.quiet = Some((size, now));
                now
            }
        };
        now.saturating_duration_since(since) >= QUIET
    }

    fn changed(&self, file: &File, stamp: &Stamp) -> Result<Change, HeaderError> {
        let Some(before) = &self.file else { return Ok(Change::None) };
        if stamp == before {
            return Ok(Change::None);
        }
        if !stamp.is_of_same_file(before) {
            return Ok(Change::Anew);
        }
        if stamp.size() < before.size() {
            return Ok(Change::Shrunk);
        }
        // The same size, written at another time: a migration may keep it.
        let is_same = stamp.size() > before.size()
            && read_at(file, 0, self.head.len())? == self.head
            && read_at(file, self.scanned - self.anchor.len() as u64, self.anchor.len())? == self.anchor;
        Ok(if is_same { Change::None } else { Change::Anew })
    }

    fn anchor_at(&mut self, file: &File) -> Result<(), HeaderError> {
        let length = self.scanned.min(ANCHOR);
        self.head = read_at(file, 0, length as usize)?;
        self.anchor = read_at(file, self.scanned - length, length as usize)?;
        Ok(())
    }

    /// Reads lines up to `size`; says whether the budget ended before.
    fn read_lines(&mut self, file: &File, size: u64, budget: u64) -> Result<bool, HeaderError> {
        let begun = self.read;
        while self.scanned < size {
            let left = budget.saturating_sub(self.read - begun).min(size - self.scanned);
            if left == 0 {
                return Ok(true);
            }
            if let Some(provisional) = self.provisional.take() {
                self.roll_back(provisional);
            }
            let read = self.read;
            if !F::TAKES && self.index.header.is_some() && left >= lines::WORTH_PARTS {
                self.read_in_parts(file, self.scanned + left)?;
            } else {
                let to = self.scanned + left.max(CHUNK).min(size - self.scanned);
                self.read_on(|sweep, each| sweep.over(file, to, each))?;
            }
            if self.read == read {
                // It shrank meanwhile: the next look sees that.
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Takes the lines on one way through the file.
    fn read_on(
        &mut self,
        way: impl FnOnce(&mut Sweep, &mut dyn FnMut(Span<'_>)) -> Result<(), HeaderError>,
    ) -> Result<(), HeaderError> {
        let mut sweep = self.sweep();
        let (index, folding) = (&mut self.index, &mut self.folding);
        let went = way(&mut sweep, &mut |span| match span {
            Span::Line(line, offset) => index.take(line, offset, true, folding),
            Span::TooLong => index.long_lines += 1,
            Span::End(_) => {}
        });
        self.swept(&sweep);
        went
    }

    /// Takes the lines up to `end`, read in parts side by side.
    fn read_in_parts(&mut self, file: &File, end: u64) -> Result<(), HeaderError> {
        let (parts, outcome) = lines::in_parts(file, self.sweep(), end, &self.index.models);
        for part in parts {
            if let Some(end) = part.first_end {
                // The line that goes over from the part before.
                self.read_on(|sweep, each| sweep.end_line(file, end, (&[], end), each))?;
            }
            for (line, offset) in part.lines {
                self.index.add(line, offset, true, |_, _| {});
            }
            for model in part.models {
                if !self.index.models.contains(&model) {
                    self.index.models.push(model);
                }
            }
            self.index.long_lines += part.long_lines;
            self.swept(&part.sweep);
        }
        outcome
    }

    fn sweep(&self) -> Sweep {
        let is_begun = self.line > self.begun || self.begun == 0;
        Sweep { line: is_begun.then_some(self.line), scanned: self.scanned, read: 0 }
    }

    fn swept(&mut self, sweep: &Sweep) {
        self.line = sweep.line.unwrap_or(self.line);
        self.scanned = sweep.scanned;
        self.read += sweep.read;
    }

    fn take_unterminated(&mut self, file: &File) -> Result<(), HeaderError> {
        if self.scanned - self.line > MAX_LINE || (self.line == self.begun && self.begun > 0) {
            return Ok(());
        }
        let line = read_at(file, self.line, (self.scanned - self.line) as usize)?;
        self.read += line.len() as u64;
        let index = &mut self.index;
        let (entries, parsed, had_header) = (index.entries.len(), index.parsed, index.header.is_some());
        let before = self.folding.clone();
        index.take(&line, self.line, false, &mut self.folding);
        self.provisional = Some(Provisional { entries, parsed, had_header, folding: before });
        Ok(())
    }

    fn roll_back(&mut self, to: Provisional<F>) {
        self.withdrawn += u64::from(self.index.entries.len() > to.entries);
        self.index.entries.truncate(to.entries);
        self.index.parsed = to.parsed;
        if !to.had_header {
            self.index.header = None;
        }
        self.folding = to.folding;
        self.refolding = None;
    }

    /// Makes the fold anew from the entries of the branch, `budget` bytes and an entry more; says
    /// whether the budget ended before.
    fn refold(&mut self, file: &File, budget: u64) -> Result<bool, HeaderError> {
        let branch = Tree::of(&self.index, Seen::WithRecovered).branch();
        // The branch may have gone on meanwhile, or be another again.
        let known = self.refolding.take().filter(|known| branch.starts_with(&known.taken));
        let mut refolding =
            known.unwrap_or_else(|| Refolding { fold: self.index.begin(), taken: Vec::new() });
        let begun = self.read;
        for at in &branch[refolding.taken.len()..] {
            if self.read - begun >= budget {
                self.refolding = Some(refolding);
                return Ok(true);
            }
            let entry = &self.index.entries[*at];
            let line = read_at(file, entry.offset, entry.length as usize)?;
            self.read += line.len() as u64;
            // Anything else is not what was read before: the next look sees that.
            if let Some(envelope) = Document::decode(&line).value().ok().and_then(Envelope::of) {
                refolding.fold.take(entry, &envelope);
            }
            refolding.taken.push(*at);
        }
        self.folding = Folding { fold: refolding.fold, is_stale: false };
        Ok(false)
    }
}

/// What became of the file since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing but that it may have grown.
    None,
    /// It became smaller.
    Shrunk,
    /// It was written anew, or another stands in its place.
    Anew,
}
