//! The only way text from outside becomes visible.
//!
//! Whatever came from disk, Herdr or a session may hold escapes, bidi overrides, invisible
//! characters or towers of combining marks. The functions here turn it into [`Visible`]: nothing in
//! it drives a terminal or hides, and its width is the number of columns ratatui gives it. Control
//! characters show as their pictures (`␛`), runs of hidden ones as a single `�`, a line break within
//! one line as `⏎`. Drawing code takes `Visible` or `&'static str`, nothing else.
//!
//! [`plain`], [`plain_block`] and [`json_string`] do the same for pipes and files.

mod cluster;
mod json;
mod wrap;

use std::borrow::Cow;
use std::fmt;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

use crate::contract::{NativeId, SessionId, Untrusted};

pub(crate) use cluster::walk;
pub use json::{json_document, json_string};

/// Stands where text was cut.
const ELLIPSIS: &str = "\u{2026}";

/// Columns of a window title; more would be cut by the window's own bar.
pub const MAX_TITLE: usize = 80;

/// Columns of a notice outside the screen; desktop notices show a few lines of it.
pub const MAX_NOTICE: usize = 240;

/// Text to be shown, not yet safe: made from [`Untrusted`], ids and strings.
pub struct Raw<'a>(Cow<'a, str>);

impl<'a> From<&'a Untrusted> for Raw<'a> {
    fn from(text: &'a Untrusted) -> Self {
        Self(text.to_str_lossy())
    }
}

impl<'a> From<&'a SessionId> for Raw<'a> {
    fn from(id: &'a SessionId) -> Self {
        Self::from(id.as_untrusted())
    }
}

impl<'a> From<&'a NativeId> for Raw<'a> {
    fn from(id: &'a NativeId) -> Self {
        Self::from(id.as_untrusted())
    }
}

impl<'a> From<&'a str> for Raw<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Raw<'a> {
    fn from(text: &'a String) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a Visible> for Raw<'a> {
    fn from(text: &'a Visible) -> Self {
        Self(Cow::Borrowed(&text.text))
    }
}

impl From<fmt::Arguments<'_>> for Raw<'_> {
    fn from(arguments: fmt::Arguments<'_>) -> Self {
        Self(Cow::Owned(arguments.to_string()))
    }
}

/// One line that is safe to show, with its width in columns.
///
/// Nothing in it is a control, bidi, zero-width or other hidden character (joiners and variation
/// selectors stand only inside emoji), and each grapheme is 1–8 columns wide.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Visible {
    text: String,
    width: usize,
}

impl Visible {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its width in columns, as ratatui's buffer lays it out. (`Line::width` may differ: it
    /// measures ligatures across graphemes.)
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Its graphemes, each with its width.
    pub fn graphemes(&self) -> impl DoubleEndedIterator<Item = (&str, usize)> {
        self.text.graphemes(true).map(|grapheme| (grapheme, usize::from(grapheme.cell_width())))
    }

    /// At most `width` columns, an ellipsis at the end when something was cut.
    pub fn truncate_end(&self, width: usize) -> Self {
        if self.width <= width {
            return self.clone();
        }
        match width {
            0 => Self::default(),
            _ => self.head(width - 1).followed_by(ELLIPSIS, 1),
        }
    }

    /// At most `width` columns, cut in the middle. The last part of a path-like name
    /// (`repo/branch/name`) is kept for as long as it fits.
    pub fn truncate_middle(&self, width: usize) -> Self {
        if self.width <= width {
            return self.clone();
        }
        if width == 0 {
            return Self::default();
        }
        // A slash that carries marks is no separator: cut off, it would leave them without a base.
        let slash = self.text.grapheme_indices(true).rfind(|(at, grapheme)| *at > 0 && *grapheme == "/");
        let name = slash.map(|(at, _)| Self::of_safe(&self.text[at..]));
        match name {
            Some(name) if name.width < width => {
                self.head(width - 1 - name.width).followed_by(ELLIPSIS, 1).followed_by(&name.text, name.width)
            }
            Some(name) if name.width == width + 1 => Self::of_safe(&name.text[1..]),
            Some(name) if name.width == width => {
                Self::of_safe(ELLIPSIS).followed_by(&name.text[1..], width - 1)
            }
            Some(name) => Self::of_safe(&name.text[1..]).cut_middle(width),
            None => self.cut_middle(width),
        }
    }

    /// Exactly `width` columns: filled with spaces after it, or cut at the end.
    pub fn pad_end(&self, width: usize) -> Self {
        let mut padded = self.truncate_end(width);
        padded.text.extend(std::iter::repeat_n(' ', width - padded.width));
        padded.width = width;
        padded
    }

    /// Exactly `width` columns: filled with spaces before it, or cut at the end.
    pub fn pad_start(&self, width: usize) -> Self {
        let cut = self.truncate_end(width);
        Self { text: format!("{}{}", " ".repeat(width - cut.width), cut.text), width }
    }

    /// The lines it takes in `width` columns, broken between words; a word that is longer than a
    /// line is broken anywhere. Further lines keep the indentation of the first.
    pub fn wrap(&self, width: usize) -> Vec<Self> {
        wrap::wrap(self, width)
    }

    /// The same width in ASCII alone, for terminals without UTF-8: what has no likeness is `?`.
    pub fn to_ascii(&self) -> Self {
        if self.text.is_ascii() {
            return self.clone();
        }
        let mut text = String::with_capacity(self.text.len());
        for (grapheme, width) in self.graphemes() {
            match likeness(grapheme) {
                Some(ascii) if width == 1 => text.push(ascii),
                _ if grapheme.is_ascii() => text.push_str(grapheme),
                _ => text.extend(std::iter::repeat_n('?', width)),
            }
        }
        Self { text, width: self.width }
    }

    /// The first graphemes that fit into `width` columns.
    fn head(&self, width: usize) -> Self {
        let mut head = Self::default();
        for (grapheme, columns) in self.graphemes() {
            if head.width + columns > width {
                break;
            }
            head.text.push_str(grapheme);
            head.width += columns;
        }
        head
    }

    /// At least one column.
    fn cut_middle(&self, width: usize) -> Self {
        if self.width <= width {
            return self.clone();
        }
        let room = width - 1;
        let mut tail_start = self.text.len();
        let mut tail_width = 0;
        for (grapheme, columns) in self.graphemes().rev() {
            if tail_width + columns > room / 2 {
                break;
            }
            tail_start -= grapheme.len();
            tail_width += columns;
        }
        self.head(room - tail_width)
            .followed_by(ELLIPSIS, 1)
            .followed_by(&self.text[tail_start..], tail_width)
    }

    /// Safe text with a known width after it. The parts come from different graphemes, and an
    /// ellipsis joins to neither side.
    fn followed_by(mut self, text: &str, width: usize) -> Self {
        self.text.push_str(text);
        self.width += width;
        self
    }

    /// From text that is a part of a `Visible`.
    fn of_safe(text: &str) -> Self {
        let width = text.graphemes(true).map(|grapheme| usize::from(grapheme.cell_width())).sum();
        Self { text: text.to_owned(), width }
    }
}

impl fmt::Display for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Makes it a `Span`, too.
impl From<Visible> for Cow<'_, str> {
    fn from(visible: Visible) -> Self {
        Cow::Owned(visible.text)
    }
}

impl FromIterator<Visible> for Visible {
    /// Joined anew: what ends one and what begins the next may be one grapheme.
    fn from_iter<I: IntoIterator<Item = Visible>>(parts: I) -> Self {
        let joined: String = parts.into_iter().map(|part| part.text).collect();
        line(&joined)
    }
}

/// Text as one line: line breaks show as `⏎`, tabs as spaces to the next stop.
pub fn line<'a>(text: impl Into<Raw<'a>>) -> Visible {
    let Raw(text) = text.into();
    let mut line = Visible::default();
    walk(&text, |grapheme, width, _| {
        line.text.push_str(grapheme);
        line.width += usize::from(width);
    });
    line
}

/// Text as the lines it has; a final line break makes no further one.
pub fn lines<'a>(text: impl Into<Raw<'a>>) -> Vec<Visible> {
    let Raw(text) = text.into();
    text.lines().map(line).collect()
}

/// Text in lines of at most `width` columns, broken between words ([`Visible::wrap`]).
pub fn wrap<'a>(text: impl Into<Raw<'a>>, width: usize) -> Vec<Visible> {
    let Raw(text) = text.into();
    text.lines().flat_map(|text| line(text).wrap(width)).collect()
}

/// Text for the window's title.
pub fn title<'a>(text: impl Into<Raw<'a>>) -> Visible {
    bounded(text, MAX_TITLE)
}

/// Text for a notice outside the screen.
pub fn notice<'a>(text: impl Into<Raw<'a>>) -> Visible {
    bounded(text, MAX_NOTICE)
}

/// Text as one line for a pipe or `--plain`.
pub fn plain<'a>(text: impl Into<Raw<'a>>) -> String {
    line(text).text
}

/// Text as its lines for a pipe or `--plain`, joined by line feeds, without a final one.
pub fn plain_block<'a>(text: impl Into<Raw<'a>>) -> String {
    lines(text).into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
}

fn bounded<'a>(text: impl Into<Raw<'a>>, width: usize) -> Visible {
    let Raw(text) = text.into();
    // Only the part that can matter is walked: a title may come from a whole file.
    let longest = width * 32;
    let end = if text.len() <= longest { text.len() } else { text.floor_char_boundary(longest) };
    line(&text[..end]).truncate_end(width)
}

/// An ASCII character that reads like `grapheme`.
fn likeness(grapheme: &str) -> Option<char> {
    Some(match grapheme.chars().next()? {
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' => ' ',
        '\u{2018}' | '\u{2019}' | '\u{2032}' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2500}' | '\u{2501}' => '-',
        '\u{2022}' | '\u{B7}' => '*',
        '\u{2026}' => '~',
        '\u{2190}' => '<',
        '\u{2192}' => '>',
        '\u{2502}' | '\u{2503}' => '|',
        '\u{23CE}' => '\\',
        '\u{2400}'..='\u{2421}' => '^',
        '\u{D7}' => 'x',
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
