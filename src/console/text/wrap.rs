//! Breaking a line between words.

use super::Visible;
use super::cluster::MARKER;

/// A stretch of graphemes that stay together while they fit.
struct Word<'a> {
    /// Spaces before it; they vanish where a line is broken.
    gap: &'a str,
    gap_width: usize,
    text: &'a str,
    width: usize,
}

/// See [`Visible::wrap`].
pub(super) fn wrap(line: &Visible, width: usize) -> Vec<Visible> {
    if width == 0 {
        return Vec::new();
    }
    if line.width() <= width {
        return vec![line.clone()];
    }
    let words = words(line);
    // Deep indentation would leave no room for words.
    let indent = words.first().map_or(0, |word| word.gap_width);
    let indent = if indent * 2 > width { 0 } else { indent };
    let room = width - indent;
    let empty = || Visible { text: " ".repeat(indent), width: indent };

    let mut rows = Vec::new();
    let mut row = empty();
    let mut has_words = false;
    for word in words {
        let gap_width = if has_words { word.gap_width } else { 0 };
        if row.width + gap_width + word.width <= width {
            if has_words {
                row.text.push_str(word.gap);
                row.width += gap_width;
            }
            row.text.push_str(word.text);
            row.width += word.width;
        } else {
            if has_words {
                rows.push(std::mem::replace(&mut row, empty()));
            }
            for (grapheme, columns) in Visible::of_safe(word.text).graphemes() {
                let (grapheme, columns) = if columns > room { (MARKER, 1) } else { (grapheme, columns) };
                if row.width + columns > width {
                    rows.push(std::mem::replace(&mut row, empty()));
                }
                row.text.push_str(grapheme);
                row.width += columns;
            }
        }
        has_words = true;
    }
    rows.push(row);
    rows
}

/// The words of a line. A wide grapheme is a word of its own: scripts that have them break
/// anywhere. Spaces at the end belong to no word.
fn words(line: &Visible) -> Vec<Word<'_>> {
    let text = line.as_str();
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut at = 0;
    let mut gap_start = 0;
    let mut gap_width = 0;
    let mut joins = false;
    for (grapheme, width) in line.graphemes() {
        let end = at + grapheme.len();
        if is_space(grapheme) {
            gap_width += width;
            joins = false;
        } else {
            match words.last_mut().filter(|_| joins && width == 1) {
                Some(word) => {
                    word.text = &text[end - grapheme.len() - word.text.len()..end];
                    word.width += width;
                }
                None => {
                    words.push(Word { gap: &text[gap_start..at], gap_width, text: &text[at..end], width })
                }
            }
            joins = width == 1;
            gap_start = end;
            gap_width = 0;
        }
        at = end;
    }
    words
}

fn is_space(grapheme: &str) -> bool {
    // Those that forbid a break are no spaces here.
    grapheme.chars().all(|character| character.is_whitespace() && !matches!(character, '\u{A0}' | '\u{202F}'))
}
