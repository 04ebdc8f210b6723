//! What can be asked about what was received, and the answers. The list is found in slices, so that
//! no question, however long the journal is, holds up anything else: whoever asks goes on with
//! [`Found::rest`].

use std::ops::Range;

use memchr::memmem;

use super::Letter;
use crate::contract::{SessionId, Untrusted};

/// Most letters given at once.
pub const MAX_LETTERS: usize = 400;

/// Which of what was received is wanted. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// From this lead.
    pub lead: Option<SessionId>,
    /// Not seen yet; refused ones need nobody's eye.
    pub unread: bool,
    /// With this in its text; small letters stand for capitals, too.
    pub text: Option<String>,
}

impl Query {
    /// Whether `letter` is wanted, as far as that can be told without its text.
    pub fn takes(&self, letter: &Letter) -> bool {
        self.lead.as_ref().is_none_or(|lead| letter.lead.as_ref() == Some(lead))
            && (!self.unread || letter.is_unread())
    }
}

/// A question about what was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inquiry {
    /// Which letters a query takes, the newest first: one slice of those between two numbers.
    Find {
        /// What is wanted.
        query: Query,
        /// Below this number.
        below: u64,
        /// Above this one.
        above: u64,
    },
    /// These letters, as they are now; at most [`MAX_LETTERS`].
    Letters(Vec<u64>),
    /// The whole text of one.
    Text(u64),
}

/// What was found in one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The letters' numbers, the newest first.
    pub seqs: Vec<u64>,
    /// Below which number to go on; none: this was all.
    pub rest: Option<u64>,
}

/// The answer to an inquiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Inquiry::Find`].
    Found(Found),
    /// To [`Inquiry::Letters`]: those that are there.
    Letters(Vec<Letter>),
    /// To [`Inquiry::Text`]. Of what is no message, its bytes.
    Text(Untrusted),
}

/// What is looked for in texts: exactly this, but that small letters stand for capitals, too, unless
/// there is a capital in it.
#[derive(Debug, Clone)]
pub struct Needle {
    finder: memmem::Finder<'static>,
    folds: bool,
}

impl Needle {
    /// One for `text`; nothing where that is blank.
    pub fn new(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return None;
        }
        let folds = !text.chars().any(char::is_uppercase);
        let text = if folds { fold(text) } else { text.to_owned() };
        Some(Self { finder: memmem::Finder::new(text.as_bytes()).into_owned(), folds })
    }

    /// Whether it stands in `text`.
    pub fn is_in(&self, text: &Untrusted) -> bool {
        let text = text.to_str_lossy();
        if self.folds {
            self.finder.find(fold(&text).as_bytes()).is_some()
        } else {
            self.finder.find(text.as_bytes()).is_some()
        }
    }

    /// Where it stands in `text`, in bytes; no two overlap.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        let length = self.finder.needle().len();
        if !self.folds {
            return self.finder.find_iter(text.as_bytes()).map(|at| at..at + length).collect();
        }
        // Folding may change lengths: each byte of the folded text knows whose character it is.
        let mut folded = String::with_capacity(text.len());
        let mut origin = Vec::with_capacity(text.len() + 1);
        for (at, character) in text.char_indices() {
            folded.extend(character.to_lowercase());
            origin.resize(folded.len(), at..at + character.len_utf8());
        }
        let found = self.finder.find_iter(folded.as_bytes());
        found.map(|at| origin[at].start..origin[at + length - 1].end).collect()
    }
}

/// Character by character, as [`Needle::places`] does it.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().flat_map(char::to_lowercase).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_stand_for_capitals_and_capitals_for_themselves() {
        let needle = |text| Needle::new(text).unwrap();
        for (text, hay, places) in [
            ("token", "Token, TOKEN", &[(0, 5), (7, 12)][..]),
            ("Token", "Token, TOKEN", &[(0, 5)]),
            ("a.b", "axb a.b", &[(4, 7)]),
            // Folded, it takes a byte more than before.
            ("i", "\u{130}xI", &[(0, 2), (3, 4)]),
            ("straße", "STRAßE STRASSE", &[(0, 7)]),
            ("aa", "aaa", &[(0, 2)]),
            ("日", "今日は", &[(3, 6)]),
            ("x", "", &[]),
        ] {
            let found: Vec<_> = needle(text).places(hay).into_iter().map(|it| (it.start, it.end)).collect();
            assert_eq!(found, places, "{text} in {hay}");
            assert_eq!(needle(text).is_in(&hay.into()), !places.is_empty(), "{text} in {hay}");
        }
        assert!(Needle::new(" \t").is_none());
    }
}
