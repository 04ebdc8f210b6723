//! The text field on the screen: what is shown is safe, whatever was typed.

use ratatui::layout::Rect;

use super::Composer;
use super::layout::Layout;
use crate::console::paint::Pen;
use crate::console::theme::Role;

impl Composer {
    /// Rows the text takes in `columns`.
    pub(in crate::console) fn rows(&self, columns: u16) -> u16 {
        u16::try_from(Layout::new(self.area.lines(), columns).len()).unwrap_or(u16::MAX)
    }

    /// Draws the text into `area`, the cursor in sight; gives the cursor's place.
    pub(in crate::console) fn draw(&self, area: Rect, pen: &mut Pen<'_>) -> Option<(u16, u16)> {
        if area.is_empty() {
            return None;
        }
        self.shown.set((area.width, area.height));
        let layout = Layout::new(self.area.lines(), area.width);
        let cursor = self.area.cursor();
        let (at, column) = layout.place(cursor.0, cursor.1);
        let top = (at + 1).saturating_sub(usize::from(area.height));
        for (y, row) in (area.y..area.bottom()).zip(top..layout.len()) {
            pen.put(area.x, y, area.right(), &layout.row(row), Role::Input);
        }
        Some((area.x + column as u16, area.y + (at - top) as u16))
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;

    use super::*;
    use crate::console::theme::{GlyphChoice, Theme};

    /// Draws into the middle of a buffer; gives its rows and the cursor.
    fn draw(composer: &Composer, width: u16, height: u16) -> (Vec<String>, Option<(u16, u16)>) {
        let theme = Theme::load(None, GlyphChoice::Unicode, |_| None).unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width + 4, height + 2));
        let area = Rect::new(2, 1, width, height);
        let cursor = composer.draw(area, &mut Pen::new(&mut buffer, &theme));
        let row = |y| (0..width + 4).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        ((0..height + 2).map(|y| row(y).trim_end().to_owned()).collect(), cursor)
    }

    #[test]
    fn hostile_text_stays_in_its_area_and_the_cursor_in_sight() {
        let mut composer = Composer::new(str::len);
        let text = format!("one\ttwo \u{202e}{} 漢字漢字 end", "a\u{301}".repeat(9));
        let _ = composer.paste(&text, std::time::Duration::ZERO);
        for width in 0..30 {
            for height in 0..6 {
                let (rows, cursor) = draw(&composer, width, height);
                let shown = rows.concat();
                assert!(!shown.chars().any(crate::contract::text::is_unsafe_to_show), "{shown:?}");
                assert!(rows[0].is_empty() && rows[usize::from(height) + 1].is_empty());
                assert!(rows.iter().all(|row| row.is_empty() || row.starts_with("  ")));
                let inside = |(x, y)| (2..2 + width).contains(&x) && (1..=height).contains(&y);
                assert_eq!(cursor.map(inside), (width > 0 && height > 0).then_some(true), "{width}×{height}");
            }
        }
    }

    #[test]
    fn the_last_rows_are_shown_when_there_are_too_many() {
        let mut composer = Composer::new(str::len);
        composer.set_text("1\n2\n3\n4\n5 漢");
        let (rows, cursor) = draw(&composer, 10, 3);
        assert_eq!(rows, ["", "  3", "  4", "  5 漢", ""]);
        assert_eq!(cursor, Some((6, 3)));
    }
}
