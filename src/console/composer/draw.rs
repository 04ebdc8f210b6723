//! The text field on the screen: what is shown is safe, whatever was typed.

use ratatui::layout::Rect;

use super::Composer;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;

/// A row of the screen: the graphemes of one line that stand in it.
struct Row {
    line: usize,
    from: usize,
    text: Visible,
}

impl Composer {
    /// Draws the text into `area`, the cursor in sight; gives the cursor's place.
    pub(in crate::console) fn draw(&self, area: Rect, pen: &mut Pen<'_>) -> Option<(u16, u16)> {
        if area.is_empty() {
            return None;
        }
        // One column is left for the cursor at the end of a full row.
        let width = usize::from(area.width).saturating_sub(1).max(1);
        let lines = self.area.lines();
        let rows: Vec<Row> =
            lines.iter().enumerate().flat_map(|(at, line)| rows_of(at, line, width)).collect();
        let cursor = self.area.cursor();
        let before: String = lines.get(cursor.0).map_or("", String::as_str).chars().take(cursor.1).collect();
        let grapheme = text::line(&before).graphemes().count();
        let at = rows.iter().rposition(|row| row.line == cursor.0 && row.from <= grapheme).unwrap_or(0);
        let column: usize = (rows.get(at))
            .map_or(0, |row| row.text.graphemes().take(grapheme - row.from).map(|(_, width)| width).sum());
        let height = usize::from(area.height);
        let top = (at + 1).saturating_sub(height);
        for (y, row) in (area.y..area.bottom()).zip(&rows[top..]) {
            pen.put(area.x, y, area.right(), &row.text, Role::Input);
        }
        Some((area.x + column as u16, area.y + (at - top) as u16))
    }
}

/// Breaks one line into rows of at most `width` columns, between words where that can be.
fn rows_of(line: usize, text_of_line: &str, width: usize) -> Vec<Row> {
    let shown = text::line(text_of_line);
    let graphemes: Vec<(&str, usize)> = shown.graphemes().collect();
    let mut rows = Vec::new();
    let mut from = 0;
    loop {
        let mut end = from;
        let mut used = 0;
        let mut after_space = None;
        while let Some((grapheme, columns)) = graphemes.get(end) {
            if used + columns > width && end > from {
                break;
            }
            used += columns;
            end += 1;
            if *grapheme == " " {
                after_space = Some(end);
            }
        }
        if end < graphemes.len() {
            end = after_space.unwrap_or(end);
        }
        let row: String = graphemes[from..end].iter().map(|(grapheme, _)| *grapheme).collect();
        rows.push(Row { line, from, text: text::line(&row) });
        from = end;
        if from >= graphemes.len() {
            return rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_between_words_and_lose_nothing() {
        let rows = rows_of(0, "one two threeeeeeee four", 8);
        let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["one two ", "threeeee", "eee four"]);
        assert_eq!(rows_of(0, "", 8).len(), 1);
        assert_eq!(rows_of(0, "😀😀😀", 3).len(), 3);
    }
}
