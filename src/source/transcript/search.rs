//! Looking for a text in the entries of a branch, from its end on, in slices.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::fact::{Hit, Hits, Needle};
use crate::pi::body::{Body, Folding, Lines, PartKind};
use crate::pi::growth::Item;
use crate::pi::session::HeaderError;

/// A search under way, or done so far.
#[derive(Debug)]
pub(super) struct Search {
    text: String,
    thoughts: bool,
    needle: Option<Needle>,
    /// Of which branch: [`Growth::rebuilt`](crate::pi::growth::Growth::rebuilt).
    of: u64,
    /// The items looked through.
    done: Range<usize>,
    hits: VecDeque<Hit>,
    places: u64,
}

impl Search {
    /// One for `text` on the branch `of`, which has so many items.
    pub(super) fn new(text: &str, thoughts: bool, of: u64, items: usize) -> Self {
        let needle = Needle::new(text);
        let done = items..items;
        Self { text: text.to_owned(), thoughts, needle, of, done, hits: VecDeque::new(), places: 0 }
    }

    /// Whether it is this one.
    pub(super) fn is(&self, text: &str, thoughts: bool, of: u64) -> bool {
        (self.text.as_str(), self.thoughts, self.of) == (text, thoughts, of)
    }

    /// Whether all of `items` is looked through.
    pub(super) fn is_done(&self, items: &[Item]) -> bool {
        self.done == (0..items.len())
    }

    /// Looks through what is new, then what is older, `budget` bytes or an entry more.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn go_on(&mut self, items: &[Item], lines: &Lines, budget: u64) -> Result<(), HeaderError> {
        let mut read = 0;
        while read < budget && !self.is_done(items) {
            let is_new = self.done.end < items.len();
            let item = if is_new { items[self.done.end] } else { items[self.done.start - 1] };
            read += u64::from(item.length);
            let count = self.count(&item, lines)?;
            if is_new {
                self.done.end += 1;
            } else {
                self.done.start -= 1;
            }
            if count > 0 {
                let hit = Hit { offset: item.offset, count };
                self.places += u64::from(count);
                if is_new {
                    self.hits.push_back(hit);
                } else {
                    self.hits.push_front(hit);
                }
            }
        }
        Ok(())
    }

    fn count(&self, item: &Item, lines: &Lines) -> Result<u32, HeaderError> {
        let Some(needle) = &self.needle else { return Ok(0) };
        let Some(line) = lines.read(item.offset, item.length)? else { return Ok(0) };
        let Some(body) = Body::of(&line, item.kind, Folding::Whole) else { return Ok(0) };
        let parts = body.parts.iter().filter(|part| self.thoughts || part.kind != PartKind::Thought);
        let places = parts.filter(|part| needle.is_in(&part.head)).map(|part| {
            let text = part.head.to_str_lossy();
            text.lines().map(|line| needle.places(line).len()).sum::<usize>()
        });
        Ok(u32::try_from(places.sum::<usize>()).unwrap_or(u32::MAX))
    }

    /// What it found so far, of `items`.
    pub(super) fn found(&self, items: &[Item]) -> Arc<Hits> {
        let percent = (self.done.len() * 100).checked_div(items.len()).unwrap_or(100);
        Arc::new(Hits {
            text: self.text.clone(),
            hits: self.hits.iter().copied().collect(),
            places: self.places,
            percent: u8::try_from(percent).unwrap_or(100),
        })
    }
}
