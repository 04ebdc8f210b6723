//! Reading one session file step by step: its end first, then all of it, then what is appended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::search::Search;
use crate::chief::staff::path_of;
use crate::contract::Untrusted;
use crate::fact::{Condition, Reading, SessionFile, Sheet, Summary, Taken, TipRead, Wanted};
use crate::pi::body::{Body, Folding, Lines, MAX_WHOLE, PartKind};
use crate::pi::ending;
use crate::pi::entry::Kind;
use crate::pi::growth::{Branch, Growth, Item, Tip};
use crate::pi::session::{Header, HeaderError};
use crate::pi::tail::{Progress, Tail, Unsettled};
use crate::pi::transcript::TranscriptError;

/// Bytes that one step reads for the index, for a search, and for what is in sight; each a line more.
const SLICE: u64 = 4 << 20;
/// From so many bytes on the end of a file is read first.
const LONG: u64 = 1 << 20;
/// Items that are read at the end first.
const FIRST: usize = 200;
/// Items beyond the screen, on either side, whose texts are kept.
const AROUND: usize = 24;
/// An entry of more bytes is read only when it is unfolded.
const LARGE: u32 = 1 << 20;
/// Bytes of the unfolded entries whose texts are kept at once.
const UNFOLDED: u64 = 4 * MAX_WHOLE as u64;
/// Columns, more or less, of a branch's last words.
const WORDS: usize = 200;

/// What one step came to.
#[derive(Debug)]
pub struct Step {
    /// What is known now, if it is anything new.
    pub news: Option<Reading>,
    /// Whether there is more to do at once.
    pub has_more: bool,
}

/// Reads one file.
#[derive(Debug)]
pub struct Reader {
    file: SessionFile,
    path: PathBuf,
    tail: Tail,
    growth: Growth,
    /// Until all of the file is in the index.
    ending: Option<Arc<Vec<Item>>>,
    ending_is_whole: bool,
    begun: bool,
    is_indexed: bool,
    withdrawn: u64,
    sheets: Arc<BTreeMap<u64, Arc<Sheet>>>,
    search: Option<Search>,
    tips: Option<(u64, usize, Arc<Vec<TipRead>>)>,
    taken: Option<Taken>,
    told: Option<Reading>,
}

impl Reader {
    /// One that has not looked yet.
    pub fn of(file: SessionFile) -> Self {
        let path = path_of(&file.path);
        Self {
            tail: Tail::new(&path),
            path,
            file,
            growth: Growth::default(),
            ending: None,
            ending_is_whole: false,
            begun: false,
            is_indexed: false,
            withdrawn: 0,
            sheets: Arc::default(),
            search: None,
            tips: None,
            taken: None,
            told: None,
        }
    }

    /// The file.
    pub fn file(&self) -> &SessionFile {
        &self.file
    }

    /// Bytes read for the index so far.
    pub fn bytes_read(&self) -> u64 {
        self.tail.bytes_read()
    }

    /// Reads a bounded part of what is not known yet: first what is in sight.
    pub fn step(&mut self, wanted: &Wanted, now: Instant) -> Step {
        let (mut condition, mut has_more) = match self.look(wanted, now) {
            Ok(looked) => looked,
            Err(why) => {
                if why.is_of_content() {
                    self.forget();
                }
                (Condition::Trouble(why.to_string()), false)
            }
        };
        let items = self.items();
        match self.read(wanted, &items) {
            Ok(more) => has_more |= more,
            Err(error) => condition = Condition::Trouble(error.to_string()),
        }
        let reading = self.reading(wanted, condition, items);
        let is_news = self.told.as_ref() != Some(&reading);
        if is_news {
            self.told = Some(reading.clone());
        }
        Step { news: is_news.then_some(reading), has_more }
    }

    /// What is shown of the branch, as far as that is known.
    fn items(&self) -> Arc<Vec<Item>> {
        self.ending.as_ref().map_or_else(|| Arc::clone(self.growth.items()), Arc::clone)
    }

    /// One slice of the index. Of a long file the end is read before.
    fn look(&mut self, wanted: &Wanted, now: Instant) -> Result<(Condition, bool), Failure> {
        if !std::mem::replace(&mut self.begun, true) && wanted.branch == Branch::Latest {
            let size =
                rustix::fs::lstat(&self.path).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
            if size > LONG {
                let ending = ending::read(&self.path, FIRST)?;
                self.check(&ending.header)?;
                self.ending = Some(Arc::new(ending.items));
                self.ending_is_whole = ending.is_whole;
                return Ok((Condition::Indexing(0), true));
            }
        }
        let progress = self.tail.look(SLICE, Unsettled::AfterQuiet(now))?;
        if self.tail.size() == 0 {
            self.forget();
            return Err(TranscriptError::Empty.into());
        }
        match self.tail.index().header() {
            Some(Ok(header)) => self.check(header)?,
            Some(Err(error)) => return Err(error.clone().into()),
            None if progress == Progress::Done => {
                return Err(HeaderError::NoHeader("no line of it is JSON").into());
            }
            None => {}
        }
        if std::mem::replace(&mut self.withdrawn, self.tail.withdrawn()) != self.tail.withdrawn() {
            // What stood at an offset may be another entry now.
            self.sheets = Arc::default();
            self.is_indexed &= self.tail.scanned() == self.tail.size();
        }
        self.growth.follow(&self.tail, wanted.branch);
        Ok(match progress {
            Progress::More if self.is_indexed => (Condition::Following, true),
            Progress::More => (Condition::Indexing(self.percent()), true),
            Progress::Waiting => (Condition::Rewritten, false),
            Progress::Done => {
                self.is_indexed = true;
                self.ending = None;
                (Condition::Following, false)
            }
        })
    }

    fn check(&self, header: &Header) -> Result<(), TranscriptError> {
        if header.session == self.file.session { Ok(()) } else { Err(TranscriptError::OtherSession) }
    }

    fn percent(&self) -> u8 {
        let percent = (self.tail.scanned() * 100).checked_div(self.tail.size()).unwrap_or(0);
        u8::try_from(percent).unwrap_or(100)
    }

    /// What was read is not what is to be shown.
    fn forget(&mut self) {
        let tail = std::mem::replace(&mut self.tail, Tail::new(&self.path));
        let (told, taken) = (self.told.take(), self.taken.take());
        *self = Self { begun: true, tail, told, taken, ..Self::of(self.file.clone()) };
    }

    /// Texts, search, branches, and what is to be taken; says whether there is more to do.
    fn read(&mut self, wanted: &Wanted, items: &[Item]) -> Result<bool, HeaderError> {
        let mut file = Lazy { path: self.path.clone(), lines: None };
        let mut has_more = self.read_sheets(wanted, items, &mut file)?;
        if self.is_indexed {
            has_more |= self.look_for(wanted, items, &mut file)?;
            self.read_tips(wanted, &mut file)?;
        }
        match wanted.take {
            None => self.taken = None,
            Some((offset, number)) if self.taken.as_ref().is_none_or(|(known, _)| *known != number) => {
                let item = items.iter().find(|item| item.offset == offset);
                let body = match item {
                    Some(item) => file.body(item, Folding::Whole)?,
                    None => None,
                };
                let gone = || "the session file does not hold it any more".to_owned();
                self.taken = Some((number, body.map(|body| body.text()).ok_or_else(gone)));
            }
            Some(_) => {}
        }
        Ok(has_more)
    }

    fn read_sheets(&mut self, wanted: &Wanted, items: &[Item], file: &mut Lazy) -> Result<bool, HeaderError> {
        let rows = usize::from(wanted.rows);
        let (first, last) = match wanted.top {
            Some(top) => {
                let at = items.partition_point(|item| item.offset < top);
                (at.saturating_sub(AROUND), at + rows + AROUND)
            }
            None => (items.len().saturating_sub(rows + AROUND), items.len()),
        };
        let window = &items[first.min(items.len())..last.min(items.len())];
        let mut unfolded = UNFOLDED;
        let mut budget = SLICE;
        let mut sheets = BTreeMap::new();
        let mut has_more = false;
        // From the end, or from the top of the screen on.
        let begin = wanted.top.map_or(0, |top| window.partition_point(|item| item.offset < top));
        let (above, in_sight) = window.split_at(begin);
        let in_order: Box<dyn Iterator<Item = &Item>> = match wanted.top {
            Some(_) => Box::new(in_sight.iter().chain(above.iter().rev())),
            None => Box::new(in_sight.iter().rev()),
        };
        for item in in_order {
            let is_unfolded = wanted.unfolded.contains(&item.offset) && unfolded > 0;
            let folding = if is_unfolded { Folding::Whole } else { Folding::Folded };
            if is_unfolded {
                unfolded = unfolded.saturating_sub(u64::from(item.length).min(MAX_WHOLE as u64));
            }
            let known = self.sheets.get(&item.offset);
            let sheet = match known.map(|sheet| (sheet, &**sheet)) {
                Some((sheet, Sheet::Body(_, known))) if *known == folding => Arc::clone(sheet),
                Some((sheet, Sheet::Large)) if !is_unfolded => Arc::clone(sheet),
                _ if !is_unfolded && item.length > LARGE => Arc::new(Sheet::Large),
                _ if budget == 0 => {
                    has_more = true;
                    continue;
                }
                _ => {
                    budget = budget.saturating_sub(u64::from(item.length));
                    Arc::new(match file.body(item, folding)? {
                        Some(body) => Sheet::Body(body, folding),
                        None => Sheet::Gone,
                    })
                }
            };
            sheets.insert(item.offset, sheet);
        }
        if *self.sheets != sheets {
            self.sheets = Arc::new(sheets);
        }
        Ok(has_more)
    }

    fn look_for(&mut self, wanted: &Wanted, items: &[Item], file: &mut Lazy) -> Result<bool, HeaderError> {
        let Some(text) = &wanted.search else {
            self.search = None;
            return Ok(false);
        };
        let of = self.growth.rebuilt();
        let search = match self.search.take() {
            Some(search) if search.is(text, wanted.thoughts, of) => search,
            _ => Search::new(text, wanted.thoughts, of, items.len()),
        };
        let search = self.search.insert(search);
        if !search.is_done(items) {
            search.go_on(items, file.open()?, SLICE)?;
        }
        Ok(!search.is_done(items))
    }

    fn read_tips(&mut self, wanted: &Wanted, file: &mut Lazy) -> Result<(), HeaderError> {
        if !wanted.tips {
            self.tips = None;
            return Ok(());
        }
        let entries = self.tail.index().entries().len();
        let of = (self.withdrawn, entries);
        if self.tips.as_ref().is_some_and(|(withdrawn, entries, _)| (*withdrawn, *entries) == of) {
            return Ok(());
        }
        let mut tips = Vec::new();
        for tip in self.growth.tips(&self.tail) {
            let words = words(&tip, file)?;
            tips.push(TipRead { tip, words });
        }
        self.tips = Some((of.0, of.1, Arc::new(tips)));
        Ok(())
    }

    fn reading(&self, wanted: &Wanted, condition: Condition, items: Arc<Vec<Item>>) -> Reading {
        let index = self.tail.index();
        let is_known = self.is_indexed;
        Reading {
            file: self.file.clone(),
            branch: wanted.branch,
            condition,
            summary: Summary {
                name: self.growth.name().filter(|_| is_known).cloned(),
                model: self.growth.model().filter(|_| is_known).cloned(),
                totals: is_known.then(|| self.growth.totals()),
                version: index.version(),
                size: self.tail.size(),
                bad_lines: index.bad_lines(),
                long_lines: index.long_lines(),
            },
            hits: self.search.as_ref().map(|search| search.found(&items)),
            items,
            is_whole: is_known || self.ending.is_some() && self.ending_is_whole,
            is_latest: !is_known || self.growth.is_latest(),
            labels: Arc::clone(self.growth.labels()),
            sheets: Arc::clone(&self.sheets),
            tips: self.tips.as_ref().map(|(_, _, tips)| Arc::clone(tips)),
            taken: self.taken.clone(),
        }
    }
}

/// How the last words of a branch begin.
fn words(tip: &Tip, file: &mut Lazy) -> Result<Untrusted, HeaderError> {
    let item = tip.words.filter(|item| item.length <= LARGE);
    let Some(item) = item else { return Ok(Untrusted::default()) };
    let body = file.body(&item, Folding::Folded)?;
    let part = body.and_then(|body| body.parts.into_iter().find(|part| part.kind != PartKind::Thought));
    let words = part.map(|part| part.head.first_units(WORDS)).unwrap_or_default();
    let who = if item.kind == Kind::User { "user: " } else { "" };
    Ok(format!("{who}{}", words.to_str_lossy()).into())
}

/// The file, opened when something has to be read of it.
struct Lazy {
    path: PathBuf,
    lines: Option<Lines>,
}

impl Lazy {
    fn open(&mut self) -> Result<&Lines, HeaderError> {
        let lines = match self.lines.take() {
            Some(lines) => lines,
            None => Lines::of(&self.path)?,
        };
        Ok(self.lines.insert(lines))
    }

    fn body(&mut self, item: &Item, folding: Folding) -> Result<Option<Body>, HeaderError> {
        let line = self.open()?.read(item.offset, item.length)?;
        Ok(line.and_then(|line| Body::of(&line, item.kind, folding)))
    }
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    File(#[from] HeaderError),
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
}

impl Failure {
    /// Whether it is another file by now, or none of Pi's: nothing of it is to be shown.
    fn is_of_content(&self) -> bool {
        match self {
            Self::File(error) => !matches!(error, HeaderError::NotThere | HeaderError::Unreadable(_)),
            Self::Transcript(_) => true,
        }
    }
}
