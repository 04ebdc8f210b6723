//! The session file that somebody reads on the screen: what is wanted of it, and what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::{SessionId, Untrusted};
use crate::pi::body::{Body, Folding};
use crate::pi::entry::Model;
use crate::pi::growth::{Branch, Item, Tip, Totals};

/// A session file, and the session it has to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Its path.
    pub path: Untrusted,
    /// The session.
    pub session: SessionId,
}

/// What a screen wants of a session file. The facts are answers to the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The file.
    pub file: SessionFile,
    /// The branch.
    pub branch: Branch,
    /// The entry at the top of the screen, by its offset; none at the branch's end.
    pub top: Option<u64>,
    /// Rows of the screen.
    pub rows: u16,
    /// The entries that are unfolded, by their offsets.
    pub unfolded: BTreeSet<u64>,
    /// What is searched for.
    pub search: Option<String>,
    /// Whether thoughts are shown, and so searched.
    pub thoughts: bool,
    /// Whether the branches are wanted.
    pub tips: bool,
    /// The entry whose whole text is wanted, by its offset, and the number of that wish.
    pub take: Option<(u64, u64)>,
}

/// How the reading stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// So many hundredths of the file are in the index.
    Indexing(u8),
    /// All of it is, and what is appended is followed.
    Following,
    /// The file became smaller, as it does while it is written anew.
    Rewritten,
    /// It can't be read now; safe to print why, with the next step.
    Trouble(String),
}

/// What one entry says, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sheet {
    /// This.
    Body(Body, Folding),
    /// It is so long that it is read only when it is unfolded.
    Large,
    /// The file does not hold it any more.
    Gone,
}

/// What stands above the entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// The session's name.
    pub name: Option<Untrusted>,
    /// The model in use at the branch's end.
    pub model: Option<Model>,
    /// What the file holds; none before all of it is read.
    pub totals: Option<Totals>,
    /// The format's version.
    pub version: Option<f64>,
    /// Bytes of the file.
    pub size: u64,
    /// Lines that are neither entries nor blank.
    pub bad_lines: u32,
    /// Lines that are too long to be read.
    pub long_lines: u32,
}

/// Places of what is searched for in one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The entry.
    pub offset: u64,
    /// How many there are.
    pub count: u32,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// What is searched for.
    pub text: String,
    /// Where it stands, in the branch's order.
    pub hits: Vec<Hit>,
    /// How many places there are in all of them.
    pub places: u64,
    /// How many hundredths of the branch were looked through.
    pub percent: u8,
}

/// The end of a branch, with how its last words begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TipRead {
    /// The end.
    pub tip: Tip,
    /// The words.
    pub words: Untrusted,
}

/// The whole text of one entry, or why there is none; safe to print.
pub type Taken = (u64, Result<Untrusted, String>);

/// What is known of a session file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The file.
    pub file: SessionFile,
    /// The branch it is of, as it was wanted.
    pub branch: Branch,
    /// How the reading stands.
    pub condition: Condition,
    /// What stands above.
    pub summary: Summary,
    /// The branch's items, of which the first ones may still lack.
    pub items: Arc<Vec<Item>>,
    /// Whether none lacks.
    pub is_whole: bool,
    /// Whether it is the branch that the file's last entry ends.
    pub is_latest: bool,
    /// Labels, by the offset of their entry.
    pub labels: Arc<BTreeMap<u64, Untrusted>>,
    /// What the entries around the screen say.
    pub sheets: Arc<BTreeMap<u64, Arc<Sheet>>>,
    /// What the search found.
    pub hits: Option<Arc<Hits>>,
    /// The branches.
    pub tips: Option<Arc<Vec<TipRead>>>,
    /// What was taken last.
    pub taken: Option<Taken>,
}
