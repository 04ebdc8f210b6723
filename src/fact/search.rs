//! A search in sessions, and what it found so far.

use std::sync::Arc;

use crate::pi::discover::Wanted;
use crate::pi::search::{Hit, Progress};

/// Hits of one search that are kept; at that many it ends.
pub const MAX_HITS: usize = 500;
/// Files of one search that are named as not searched.
pub const MAX_TROUBLES: usize = 20;

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// A number of its own: an answer has the same.
    pub number: u64,
    /// The text, not empty.
    pub text: String,
    /// The sessions that are searched.
    pub wanted: Vec<Wanted>,
}

/// What a search found so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Searched {
    /// That of its query.
    pub number: u64,
    /// In the order they were found: the newest file first, each from its end.
    pub hits: Vec<Arc<Hit>>,
    /// How far it came.
    pub progress: Progress,
    /// Whether it is over.
    pub is_done: bool,
    /// Whether it is over because of [`MAX_HITS`].
    pub is_full: bool,
    /// What was not searched, and why, at most [`MAX_TROUBLES`].
    pub troubles: Vec<String>,
}
