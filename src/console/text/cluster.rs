//! From outside text to graphemes that are safe to show and of known width.

use std::ops::Range;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

pub(crate) use crate::contract::text::attaches as is_mark;
use crate::contract::text::is_unsafe_to_show;

/// Stands for whatever was left out. One for a whole run, so that hidden text stays short.
pub(crate) const MARKER: &str = "\u{FFFD}";

/// Stands for a line break where only one line is shown.
const NEWLINE: &str = "\u{23CE}";

/// Columns between tab stops.
const TAB: usize = 4;

/// Combining marks a base may carry: scripts in use need no more, and taller stacks run into the
/// lines above and below.
const MAX_MARKS: usize = 4;

/// Columns a single grapheme may take. Indic conjuncts and old Hangul reach six; without a limit
/// one "character" could fill the screen.
const MAX_WIDTH: u16 = 8;

/// Joiners in an emoji: the longest in use (two people with skin tones, kissing) has four.
const MAX_JOINERS: usize = 6;

const JOINER: char = '\u{200D}';
const TEXT_STYLE: char = '\u{FE0E}';
const EMOJI_STYLE: char = '\u{FE0F}';
const KEYCAP: char = '\u{20E3}';

/// Walks `source` as one line and hands every visible grapheme to `emit`: its text, its width in
/// columns, and the bytes of `source` it stands for. The ranges are in order and cover `source`.
pub(crate) fn walk(source: &str, mut emit: impl FnMut(&str, u16, Range<usize>)) {
    let mut column = 0_usize;
    // A run of hidden characters that gets its marker once it ends.
    let mut hidden: Option<Range<usize>> = None;
    // What stands first, or after a control character, may be a mark without a base.
    let mut may_lack_base = true;
    let mut piece = String::new();

    for (start, cluster) in source.grapheme_indices(true) {
        let range = start..start + cluster.len();
        let first = cluster.chars().next().unwrap_or_default();
        let mut put = |text: &str, width: u16, hidden: &mut Option<Range<usize>>| {
            if let Some(run) = hidden.take() {
                emit(MARKER, 1, run);
                column += 1;
            }
            emit(text, width, range.clone());
            column += usize::from(width);
        };
        if matches!(cluster.as_bytes(), [b' '..=b'~']) {
            put(cluster, 1, &mut hidden);
            may_lack_base = false;
            continue;
        }
        match first {
            '\n' => put(NEWLINE, 1, &mut hidden),
            '\r' if cluster.len() == 2 => put(NEWLINE, 1, &mut hidden),
            '\t' => {
                // The pending marker takes a column too.
                let at = column + usize::from(hidden.is_some());
                let width = TAB - at % TAB;
                if let Some(run) = hidden.take() {
                    emit(MARKER, 1, run);
                    column += 1;
                }
                // The first space stands for the tab; the others for nothing.
                for nth in 0..width {
                    emit(" ", 1, if nth == 0 { range.clone() } else { range.end..range.end });
                    column += 1;
                }
            }
            '\0'..='\x1F' => {
                put(picture(0x2400 + u32::from(first)).encode_utf8(&mut [0; 4]), 1, &mut hidden);
            }
            '\x7F' => put("\u{2421}", 1, &mut hidden),
            _ => {
                let complete = sift(cluster, may_lack_base, &mut piece);
                let width = piece.as_str().cell_width();
                let sound = width > 0
                    && (cluster.len() == first.len_utf8() || is_one(&piece))
                    && !piece.chars().next_back().is_some_and(is_prefix);
                if sound {
                    put(&piece, width, &mut hidden);
                }
                if !sound || !complete {
                    // What this marker stands for is already covered when a part was shown.
                    let from = if sound { range.end } else { range.start };
                    hidden = Some(match hidden.take() {
                        Some(run) => run.start..range.end,
                        None => from..range.end,
                    });
                }
                may_lack_base = !sound;
                continue;
            }
        }
        may_lack_base = true;
    }
    if let Some(run) = hidden {
        emit(MARKER, 1, run);
    }
}

/// Copies what may be shown of one grapheme cluster into `piece`; whether that was all of it.
fn sift(cluster: &str, may_lack_base: bool, piece: &mut String) -> bool {
    piece.clear();
    let mut complete = true;
    let mut marks = 0;
    let mut joiners = 0;
    let mut previous = None;
    let mut characters = cluster.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let Some(before) = previous else {
            if is_hidden(character) {
                complete = false;
            } else {
                let lone_flag_half = is_flag_half(character) && next.is_none_or(|next| !is_flag_half(next));
                if lone_flag_half || ((may_lack_base || !complete) && is_mark(character)) {
                    return false;
                }
                piece.push(character);
                previous = Some(character);
                // A vowel of old Hangul without a consonant is a base, and stacks like a mark.
                marks = usize::from(piece.as_str().cell_width() == 0);
            }
            continue;
        };
        match character {
            JOINER => match next {
                Some(next) if is_pictograph(next) => {
                    joiners += 1;
                    if joiners > MAX_JOINERS {
                        return false;
                    }
                    piece.push(character);
                }
                _ => complete = false,
            },
            EMOJI_STYLE => {
                let keycap = matches!(before, '0'..='9' | '#' | '*') && next == Some(KEYCAP);
                if keycap || is_pictograph(before) {
                    piece.push(character);
                } else {
                    complete = false;
                }
            }
            TEXT_STYLE => {
                if is_pictograph(before) {
                    // Terminals that ignore it would draw two columns where one was counted; as
                    // it only changes the look, it goes without a marker there.
                    let width = piece.as_str().cell_width();
                    piece.push(character);
                    if piece.as_str().cell_width() != width {
                        piece.pop();
                    }
                } else {
                    complete = false;
                }
            }
            _ if is_hidden(character) => complete = false,
            _ => {
                let mut buffer = [0; 4];
                if character.encode_utf8(&mut buffer).cell_width() == 0 {
                    marks += 1;
                    if marks > MAX_MARKS {
                        complete = false;
                        continue;
                    }
                    piece.push(character);
                } else {
                    piece.push(character);
                    marks = 0;
                    if piece.as_str().cell_width() > MAX_WIDTH {
                        piece.pop();
                        return false;
                    }
                }
            }
        }
        previous = Some(character);
    }
    complete
}

/// Characters never shown as themselves, whatever stands around them.
fn is_hidden(character: char) -> bool {
    let code = u32::from(character);
    is_unsafe_to_show(character)
        || matches!(character, JOINER | '\u{FE00}'..='\u{FE0F}')
        // Noncharacters: terminals differ in whether they take a column.
        || code & 0xFFFE == 0xFFFE
        || (0xFDD0..=0xFDEF).contains(&code)
}

fn is_flag_half(character: char) -> bool {
    ('\u{1F1E6}'..='\u{1F1FF}').contains(&character)
}

fn picture(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn is_one(text: &str) -> bool {
    text.graphemes(true).nth(1).is_none()
}

/// Whether `character` attaches to what follows it: at an end, it would take in the marker, the
/// ellipsis or the next text.
pub(super) fn is_prefix(character: char) -> bool {
    // All of them are in these blocks; the others need no look.
    if !matches!(character, '\u{600}'..='\u{10FF}' | '\u{11000}'..='\u{11FFF}') {
        return false;
    }
    let mut text = String::from(character);
    text.push('a');
    is_one(&text)
}

/// Whether `character` can be part of an emoji: then, and only then, the segmentation rules join
/// it to another one over a zero-width joiner.
fn is_pictograph(character: char) -> bool {
    if character.is_ascii() {
        return false;
    }
    let mut text = String::from("\u{1F600}\u{200D}");
    text.push(character);
    is_one(&text) && !is_mark(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control takes no column, so [`walk`] would not show it as a cluster of its own either; what hides
    /// it whatever stands around it is seen here alone.
    #[test]
    fn what_is_never_shown_is_left_out_of_every_cluster() {
        let ranges = [
            0x80..=0x9F,
            0xAD..=0xAD,
            0x61C..=0x61C,
            0x180E..=0x180E,
            0x200B..=0x200C,
            0x200E..=0x200F,
            0x2028..=0x202E,
            0x2060..=0x206F,
            0xFE00..=0xFE0D,
            0xFEFF..=0xFEFF,
            0xFFF9..=0xFFFB,
            0xFFFE..=0xFFFF,
            0xE0001..=0xE0001,
            0xE0020..=0xE007F,
        ];
        let mut piece = String::new();
        for hidden in ranges.into_iter().flatten().filter_map(char::from_u32) {
            assert!(!sift(&format!("{hidden}"), false, &mut piece), "{hidden:?}");
            assert_eq!(piece, "", "{hidden:?}");
            assert!(!sift(&format!("a{hidden}"), false, &mut piece), "{hidden:?}");
            assert_eq!(piece, "a", "{hidden:?}");
        }
    }
}
