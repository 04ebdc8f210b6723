//! The rows a text takes on the screen, and where the cursor is in them.

use crate::console::text::{self, Visible, walk};

/// A grapheme on the screen and the bytes of its line that it stands for; none for the further
/// spaces of a tab.
struct Piece {
    text: String,
    width: usize,
    start: usize,
    end: usize,
}

/// A part of one line that stands in one row.
struct Row {
    line: usize,
    pieces: Vec<Piece>,
}

impl Row {
    fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.start)
    }
}

/// A text broken into rows: between words where that can be, nothing left out.
pub(super) struct Layout<'a> {
    lines: &'a [String],
    rows: Vec<Row>,
    columns: u16,
}

impl<'a> Layout<'a> {
    /// For an area of `columns`. The last one is for the cursor at the end of a full row.
    pub(super) fn new(lines: &'a [String], columns: u16) -> Self {
        let width = usize::from(columns).saturating_sub(1).max(1);
        let rows = lines.iter().enumerate().flat_map(|(at, line)| break_line(at, line, width)).collect();
        Self { lines, rows, columns }
    }

    /// How many rows there are; at least one.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What a row shows.
    pub(super) fn row(&self, row: usize) -> Visible {
        let pieces = self.rows.get(row).map_or(&[][..], |row| &row.pieces);
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        text::line(&text)
    }

    /// The row and column of the place before the given character of a line.
    pub(super) fn place(&self, line: usize, character: usize) -> (usize, usize) {
        let Some(text) = self.lines.get(line) else { return (0, 0) };
        let byte = text.char_indices().nth(character).map_or(text.len(), |(at, _)| at);
        let at = self.rows.iter().rposition(|row| row.line == line && row.start() <= byte).unwrap_or(0);
        let Some(row) = self.rows.get(at) else { return (0, 0) };
        let before = |piece: &&Piece| piece.start < byte || (piece.start == piece.end && piece.end <= byte);
        let column: usize = row.pieces.iter().take_while(before).map(|piece| piece.width).sum();
        (at, column.min(usize::from(self.columns.saturating_sub(1))))
    }

    /// The line and character at a column of a row, or the nearest before it.
    pub(super) fn at(&self, row: usize, column: usize) -> (usize, usize) {
        let at = row.min(self.rows.len().saturating_sub(1));
        let Some(row) = self.rows.get(at) else { return (0, 0) };
        let text = self.lines.get(row.line).map_or("", String::as_str);
        let mut right = 0;
        let byte = row.pieces.iter().find_map(|piece| {
            right += piece.width;
            (right > column).then_some(piece.start)
        });
        let byte = byte.unwrap_or_else(|| match self.rows.get(at + 1) {
            // The end of this row is the start of the next, where the cursor would stand.
            Some(next) if next.line == row.line => row.pieces.last().map_or(0, |piece| piece.start),
            _ => text.len(),
        });
        (row.line, text[..byte].chars().count())
    }
}

fn break_line(line: usize, text: &str, width: usize) -> Vec<Row> {
    let mut pieces = Vec::new();
    walk(text, |grapheme, columns, range| {
        pieces.push(Piece {
            text: grapheme.to_owned(),
            width: usize::from(columns),
            start: range.start,
            end: range.end,
        });
    });
    let mut rows = Vec::new();
    loop {
        let mut end = 0;
        let mut used = 0;
        let mut after_space = None;
        while let Some(piece) = pieces.get(end) {
            let space = piece.text == " ";
            if used + piece.width > width && end > 0 {
                if space && used == width {
                    // A space after a full row stands in the cursor's column.
                    after_space = Some(end + 1);
                }
                break;
            }
            used += piece.width;
            end += 1;
            if space {
                after_space = Some(end);
            }
        }
        if end >= pieces.len() {
            rows.push(Row { line, pieces });
            return rows;
        }
        let rest = pieces.split_off(after_space.unwrap_or(end));
        rows.push(Row { line, pieces: std::mem::replace(&mut pieces, rest) });
        if pieces.is_empty() {
            // The space that ended the line hung over; the cursor after it still has that row.
            return rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, columns: u16) -> Vec<String> {
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let layout = Layout::new(&lines, columns);
        (0..layout.len()).map(|row| layout.row(row).as_str().to_owned()).collect()
    }

    fn place(line: &str, columns: u16, before: &str) -> (usize, usize) {
        let lines = [line.to_owned()];
        Layout::new(&lines, columns).place(0, before.chars().count())
    }

    #[test]
    fn rows_break_between_words_and_lose_nothing() {
        assert_eq!(rows("one two threeeeeeee four", 9), ["one two ", "threeeee", "eee four"]);
        assert_eq!(rows("one abcd efg", 9), ["one abcd ", "efg"]);
        assert_eq!(rows("", 9), [""]);
        assert_eq!(rows("a\n\nb", 9), ["a", "", "b"]);
        assert_eq!(rows("😀😀😀", 4), ["😀", "😀", "😀"]);
        assert_eq!(rows("abc ", 4), ["abc "]);
        assert_eq!(rows("漢", 1), ["漢"]);
        assert_eq!(rows("a\tb\x1b", 9), ["a   b␛"]);
    }

    #[test]
    fn the_cursor_stands_where_the_next_character_goes() {
        assert_eq!(place("one two three", 9, "one two"), (0, 7));
        assert_eq!(place("one two three", 9, "one two "), (1, 0));
        assert_eq!(place("one two three", 9, "one two three"), (1, 5));
        assert_eq!(place("漢字x", 9, "漢"), (0, 2));
        assert_eq!(place("漢字漢字", 9, "漢字漢字"), (0, 8));
        assert_eq!(place("a\tb", 9, "a\t"), (0, 4));
        assert_eq!(place("👩\u{200D}👧x", 9, "👩\u{200D}👧"), (0, 2));
        assert_eq!(place("👩\u{200D}👧x", 9, "👩\u{200D}"), (0, 2));
        assert_eq!(place("a\u{200b}\u{200b}b", 9, "a\u{200b}\u{200b}"), (0, 2));
        assert_eq!(place("e\u{301}x", 9, "e\u{301}"), (0, 1));
        assert_eq!(place("abc ", 4, "abc "), (0, 3), "it never leaves the area");
        assert_eq!(place("漢", 1, "漢"), (0, 0));
    }

    proptest! {
        #[test]
        fn places_and_rows_agree(text in "[a-c 漢😀\t\u{301}\u{200D}\u{200b}]{0,30}", columns in 0..12_u16) {
            let lines = [text.clone()];
            let layout = Layout::new(&lines, columns);
            let joined: String = (0..layout.len()).map(|row| layout.row(row).as_str().to_owned()).collect();
            let whole = text::line(&text);
            prop_assert_eq!(joined.as_str(), whole.as_str());
            let count = text.chars().count();
            let mut last = (0, 0);
            for character in 0..=count {
                let (row, column) = layout.place(0, character);
                prop_assert!(row < layout.len() && column < usize::from(columns.max(1)));
                prop_assert!((row, column) >= last, "the cursor went backwards");
                last = (row, column);
                let (line, back) = layout.at(row, column);
                prop_assert!(line == 0 && back <= count);
            }
        }
    }
}
