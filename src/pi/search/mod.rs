//! Searching session files: the newest file first, and each from its end.
//!
//! What is searched is what a reader sees, decoded; only lines that may hold it are parsed. A search
//! goes on from step to step, each bounded, so whoever has it can end it at any time. Nothing is kept
//! of what was found but what tells copies apart.

mod file;
mod parts;
mod pattern;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::file::{EntryHits, FileSearch};
pub use self::parts::Role;
pub use self::pattern::{Case, Pattern, PatternError, Syntax};
use super::session::{HeaderError, Stamp};
use crate::contract::{SessionId, Timestamp, Untrusted};

/// Bytes of a text that are kept on each side of what was found.
const AROUND: usize = 8 * 1024;

/// Which texts are searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these.
    pub only: Option<Group>,
    /// Also what a model thought.
    pub thinking: bool,
    /// Only of entries from this time on; those without a time are left out then.
    pub since: Option<Timestamp>,
}

/// Several roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What a user said.
    User,
    /// What a model said and thought.
    Assistant,
    /// What tools were called with and gave, and commands that the user ran.
    Tool,
    /// Summaries.
    Summary,
    /// Messages of extensions.
    Custom,
}

impl Group {
    fn has(self, role: Role) -> bool {
        let group = match role {
            Role::User => Group::User,
            Role::Assistant | Role::Thinking => Group::Assistant,
            Role::ToolCall | Role::ToolResult | Role::Bash => Group::Tool,
            Role::Summary => Group::Summary,
            Role::Custom => Group::Custom,
        };
        self == group
    }
}

/// A file to be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub file: PathBuf,
    /// Whose it must be; nothing: whoever's it is.
    pub session: Option<SessionId>,
}

/// One text in which something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Whose.
    pub session: SessionId,
    /// In which file.
    pub file: Arc<Path>,
    /// Where its entry begins there, in bytes.
    pub offset: u64,
    /// The entry's id; entries of the first version have none.
    pub entry: Option<Untrusted>,
    /// When the entry was written, if that is said.
    pub at: Option<Timestamp>,
    /// Who said it.
    pub role: Role,
    /// The tool it is of.
    pub tool: Option<Untrusted>,
    /// The text, or what stands around the first place in it.
    pub text: String,
    /// Whether something stands before and after it.
    pub cut: (bool, bool),
    /// The first place, in bytes of `text`.
    pub place: Range<usize>,
    /// How many places there are in the whole text.
    pub places: usize,
}

impl Hit {
    /// The line of the text in which the first place begins, and that place in it as far as it goes.
    pub fn line(&self) -> (&str, Range<usize>) {
        let begin = self.text[..self.place.start].rfind('\n').map_or(0, |at| at + 1);
        let end =
            self.text[self.place.start..].find('\n').map_or(self.text.len(), |at| self.place.start + at);
        // What begins with the end of a line goes on in the next.
        let line = &self.text[begin..end];
        let line = line.strip_suffix('\r').unwrap_or(line);
        let within = |at: usize| (at - begin).min(line.len());
        (line, within(self.place.start)..within(self.place.end))
    }
}

/// Why a file was not searched, or not wholly. Ends with the next step, and names no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// It can't be read, or is no session's.
    #[error(transparent)]
    File(#[from] HeaderError),
    /// It is another session's.
    #[error("the session file is of another session. Look who has that session now with `headman list`")]
    OtherSession,
    /// It became shorter meanwhile.
    #[error("the session file was written anew meanwhile. Search again")]
    Changed,
}

/// How far a search came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Files there are to search.
    pub files: usize,
    /// Those of them that were searched to their beginning.
    pub searched: usize,
    /// Bytes searched.
    pub bytes: u64,
    /// Entries with something found that are copies of ones shown.
    pub copies: u64,
    /// Lines that might have it and are no JSON.
    pub bad_lines: u64,
    /// Lines that are too long to be parsed.
    pub long_lines: u64,
}

/// A search under way.
#[derive(Debug)]
pub struct Search {
    pattern: Pattern,
    filter: Filter,
    /// Whether an entry that stands in several files is shown of each.
    all_copies: bool,
    /// The newest last.
    left: Vec<Target>,
    current: Option<FileSearch>,
    /// Entries in which something was found, as hashes.
    shown: HashSet<u64>,
    progress: Progress,
    troubles: Vec<(PathBuf, SearchError)>,
}

impl Search {
    /// One of these files; of one that stands there twice once. Looks when each was last changed: one
    /// that was not since the filter's time has nothing of interest.
    pub fn new(pattern: Pattern, filter: Filter, all_copies: bool, targets: Vec<Target>) -> Self {
        let mut troubles = Vec::new();
        let mut named = HashSet::new();
        let mut dated = Vec::new();
        let mut unchanged = 0;
        for target in targets {
            if !named.insert(target.file.clone()) {
                continue;
            }
            match Stamp::of_path(&target.file) {
                Ok(stamp) if filter.since.is_some_and(|since| stamp.is_older_than(since)) => unchanged += 1,
                Ok(stamp) => dated.push((stamp.modified(), target)),
                Err(error) => troubles.push((target.file, error.into())),
            }
        }
        // Those of one time in the order of their names, whatever the order they came in.
        dated.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| other.file.cmp(&one.file)));
        let files = dated.len() + troubles.len() + unchanged;
        let progress = Progress { files, searched: unchanged, ..Progress::default() };
        let left = dated.into_iter().map(|(_, target)| target).collect();
        let shown = HashSet::new();
        Self { pattern, filter, all_copies, left, current: None, shown, progress, troubles }
    }

    /// How far it came.
    pub fn progress(&self) -> Progress {
        let current =
            self.current.as_ref().map_or((0, 0), |current| (current.bad_lines(), current.long_lines()));
        let (bad, long) = current;
        let bytes = self.current.as_ref().map_or(0, FileSearch::bytes);
        let progress = self.progress;
        Progress {
            bytes: progress.bytes + bytes,
            bad_lines: progress.bad_lines + bad,
            long_lines: progress.long_lines + long,
            ..progress
        }
    }

    /// Takes what is known by now of files that were not searched, or not wholly.
    pub fn take_troubles(&mut self) -> Vec<(PathBuf, SearchError)> {
        std::mem::take(&mut self.troubles)
    }

    /// Searches a little further, about a chunk or a line; says whether there is more. Where `found`
    /// breaks, the search is over.
    pub fn step(&mut self, found: &mut dyn FnMut(Hit) -> ControlFlow<()>) -> bool {
        let Some(current) = &mut self.current else {
            let Some(target) = self.left.pop() else { return false };
            match FileSearch::open(&target) {
                Ok(opened) => self.current = Some(opened),
                Err(error) => self.troubles.push((target.file, error)),
            }
            return true;
        };
        let (shown, copies, all_copies) = (&mut self.shown, &mut self.progress.copies, self.all_copies);
        let mut take = |hits: EntryHits| {
            if !all_copies
                && let Some(key) = key(&hits)
                && !shown.insert(key)
            {
                *copies += 1;
                return ControlFlow::Continue(());
            }
            hits.hits.into_iter().try_for_each(&mut *found)
        };
        match current.step(&self.pattern, &self.filter, &mut take) {
            Ok(ControlFlow::Continue(true)) => return true,
            Ok(ControlFlow::Continue(false)) => self.progress.searched += 1,
            Ok(ControlFlow::Break(())) => {
                self.left.clear();
            }
            Err(error) => self.troubles.push((current.path().to_owned(), error)),
        }
        self.progress = self.progress();
        self.current = None;
        !self.left.is_empty()
    }
}

/// What is the same of an entry and its copies in forks; nothing for one without id or time.
fn key(hits: &EntryHits) -> Option<u64> {
    let hit = hits.hits.first()?;
    let mut hasher = DefaultHasher::new();
    (hit.entry.as_ref()?, hit.at?.as_millis(), &hit.text).hash(&mut hasher);
    Some(hasher.finish())
}
