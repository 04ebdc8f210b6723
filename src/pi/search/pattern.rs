//! What is looked for, in decoded texts and, to pass over lines quickly, in their JSON as it stands.

use std::ops::Range;

use memchr::memmem;
use regex::{Regex, RegexBuilder, bytes};

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// As exactly this text.
    Literal,
    /// As a regular expression, in which `^` and `$` are the ends of a line.
    Regex,
}

/// When small letters stand for capitals and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Unless there is a capital in the pattern.
    Smart,
    /// Always.
    Ignored,
}

/// Why nothing can be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It is no regular expression; says where and why, in one line.
    #[error("{0}")]
    Malformed(String),
}

/// A pattern that is ready to be looked for.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    /// What a line must have; nothing: each may match.
    raw: Option<Raw>,
}

impl Pattern {
    /// Makes `text` ready.
    ///
    /// # Errors
    /// [`PatternError`]
    pub fn new(text: &str, syntax: Syntax, case: Case) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let folds = match case {
            Case::Ignored => true,
            Case::Smart => !has_capital(text, syntax),
        };
        let expression = match syntax {
            Syntax::Literal => regex::escape(text),
            Syntax::Regex => text.to_owned(),
        };
        let regex = RegexBuilder::new(&expression)
            .case_insensitive(folds)
            .multi_line(true)
            .build()
            .map_err(|error| PatternError::Malformed(in_one_line(&error)))?;
        let raw = match syntax {
            Syntax::Literal => Raw::of(text, folds),
            // What it needs of a line is not worked out.
            Syntax::Regex => None,
        };
        Ok(Self { regex, raw })
    }

    /// Where it stands in `text`, in bytes, in order; no two overlap and none is empty.
    pub fn places<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        self.regex.find_iter(text).map(|found| found.range()).filter(|range| !range.is_empty())
    }

    /// Whether a string in this line of JSON may hold it. Never no where one does, however it is
    /// written.
    pub(super) fn may_stand_in(&self, line: &[u8]) -> bool {
        self.raw.as_ref().is_none_or(|raw| raw.may_stand_in(line))
    }
}

/// A capital that is no part of an escape as `\W`.
fn has_capital(text: &str, syntax: Syntax) -> bool {
    let mut is_escaped = false;
    text.chars().any(|character| {
        let counts = !is_escaped;
        is_escaped = syntax == Syntax::Regex && character == '\\' && !is_escaped;
        counts && character.is_uppercase()
    })
}

/// The last line says what is wrong; those before it show where.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// What a line of JSON must have where a string in it holds a literal text.
///
/// Most of a string stands in JSON as it is. What must be or may be escaped by one letter is not looked
/// for; any other character may be escaped by `\u` and its number, which nearly nobody does: a line
/// with such an escape of a character of the text may hold it, too.
#[derive(Debug, Clone)]
struct Raw {
    core: Core,
    escape: memmem::Finder<'static>,
    /// The characters of the text, in the forms that count.
    letters: Regex,
    /// The same for the first 128.
    ascii: [bool; 128],
    /// Whether a lone surrogate, or half of a pair, may be a part of it.
    has_halves: bool,
}

#[derive(Debug, Clone)]
enum Core {
    Exact(Box<memmem::Finder<'static>>),
    Folded(bytes::Regex),
}

impl Raw {
    fn of(text: &str, folds: bool) -> Option<Self> {
        let may_be_escaped = |it: char| matches!(it, '"' | '\\' | '/' | '\u{FFFD}') || it.is_control();
        let core =
            text.split(may_be_escaped).max_by_key(|part| part.len()).filter(|part| !part.is_empty())?;
        let core_finder = if folds {
            let builder = bytes::RegexBuilder::new(&regex::escape(core)).case_insensitive(true).build();
            Core::Folded(builder.ok()?)
        } else {
            Core::Exact(Box::new(memmem::Finder::new(core.as_bytes()).into_owned()))
        };
        let each: Vec<String> = text.chars().map(|it| regex::escape(it.encode_utf8(&mut [0; 4]))).collect();
        let letters = RegexBuilder::new(&each.join("|")).case_insensitive(folds).build().ok()?;
        let mut ascii = [false; 128];
        for (code, stands) in (0_u8..).zip(&mut ascii) {
            *stands = letters.is_match(char::from(code).encode_utf8(&mut [0; 4]));
        }
        Some(Self {
            core: core_finder,
            escape: memmem::Finder::new(b"\\u").into_owned(),
            letters,
            ascii,
            has_halves: text.chars().any(|it| it > '\u{FFFF}' || it == '\u{FFFD}'),
        })
    }

    fn may_stand_in(&self, line: &[u8]) -> bool {
        let stands = match &self.core {
            Core::Exact(finder) => finder.find(line).is_some(),
            Core::Folded(regex) => regex.is_match(line),
        };
        stands || self.escape.find_iter(line).any(|at| self.is_letter(line.get(at + 2..at + 6)))
    }

    /// Whether these four digits are the number of a character that counts.
    fn is_letter(&self, digits: Option<&[u8]>) -> bool {
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(code) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else { return false };
        match (self.ascii.get(code as usize), char::from_u32(code)) {
            (Some(stands), _) => *stands,
            (None, Some(character)) => self.letters.is_match(character.encode_utf8(&mut [0; 4])),
            (None, None) => self.has_halves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Pattern {
        Pattern::new(text, Syntax::Literal, Case::Smart).unwrap()
    }

    #[test]
    fn small_letters_stand_for_capitals_unless_there_is_one() {
        for (pattern, syntax, text, found) in [
            ("token", Syntax::Literal, "TOKEN", true),
            ("Token", Syntax::Literal, "token", false),
            ("a.b", Syntax::Literal, "axb", false),
            ("a.b", Syntax::Regex, "AxB", true),
            (r"\Wb", Syntax::Regex, " B", true),
            (r"\\Wb", Syntax::Regex, "\\wb", false),
            ("^b$", Syntax::Regex, "a\nb\nc", true),
            ("straße", Syntax::Literal, "STRAẞE", true),
            ("k", Syntax::Literal, "\u{212A}", true),
            ("x*", Syntax::Regex, "abc", false),
        ] {
            let pattern = Pattern::new(pattern, syntax, Case::Smart).unwrap();
            assert_eq!(pattern.places(text).next().is_some(), found, "{pattern:?} in {text}");
        }
        let ignored = Pattern::new("Token", Syntax::Literal, Case::Ignored).unwrap();
        assert_eq!(ignored.places("a token").next(), Some(2..7));
    }

    #[test]
    fn what_is_no_pattern_says_why_in_one_line() {
        assert_eq!(Pattern::new("", Syntax::Literal, Case::Smart).unwrap_err(), PatternError::Empty);
        let Err(PatternError::Malformed(why)) = Pattern::new("a(", Syntax::Regex, Case::Smart) else {
            panic!()
        };
        assert_eq!(why, "unclosed group");
    }

    /// Every way in which JSON can write a string that holds the text.
    #[test]
    fn no_way_of_writing_hides_a_text_from_the_quick_look() {
        for (text, holds) in [
            ("need", "a need b"),
            ("need", "NEED"),
            ("k", "\u{212A}elvin"),
            ("é", "caf\u{e9}"),
            ("É", "\u{c9}"),
            ("é", "\u{c9}"),
            ("say \"hi\"", "they say \"hi\" often"),
            ("a/b\\c", "x a/b\\c y"),
            ("two\nlines", "of two\nlines"),
            ("\t", "a\tb"),
            ("😀", "x😀y"),
            ("x\u{FFFD}", "ax\u{FFFD}b"),
        ] {
            let pattern = literal(text);
            assert!(pattern.places(holds).next().is_some(), "{text:?}");
            let as_it_is = serde_json::to_string(holds).unwrap();
            let escaped: String = holds.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            let slashes = as_it_is.replace('/', "\\/");
            // Each character in turn.
            let mut ways = vec![as_it_is, format!("\"{escaped}\""), slashes];
            for (at, character) in holds.char_indices() {
                let units: String =
                    character.encode_utf16(&mut [0; 2]).iter().map(|it| format!("\\u{it:04x}")).collect();
                let json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
                let after = &holds[at + character.len_utf8()..];
                // A quote or backslash at an end would be trimmed, too.
                if !holds[..at].ends_with(['"', '\\']) && !after.starts_with(['"', '\\']) {
                    ways.push(format!("\"{}{units}{}\"", json(&holds[..at]), json(after)));
                }
            }
            for way in ways {
                assert!(pattern.may_stand_in(way.as_bytes()), "{text:?} in {way}");
            }
        }
        // As a lone half reads as U+FFFD.
        assert!(literal("x\u{FFFD}").may_stand_in(br#""x\ud83d""#));
    }

    #[test]
    fn lines_without_it_are_passed_over() {
        for (text, line) in [
            ("need", r#"{"text":"nothing here"}"#),
            ("need", r#"{"text":"\u001b[31mred\u001b[0m"}"#),
            ("need", r#"{"text":"\ud83d\ude00"}"#),
            ("Need", r#"{"text":"need"}"#),
            ("need", "\\u00"),
            ("need", "\\u"),
        ] {
            assert!(!literal(text).may_stand_in(line.as_bytes()), "{text} in {line}");
        }
    }
}
