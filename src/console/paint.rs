//! Putting safe text on a buffer: the only pen the views draw with.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

use super::text::{self, Visible};
use super::theme::{Glyphs, Mark, Role, Theme};

/// A pen for one area of a frame.
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: &'a Theme,
}

impl<'a> Pen<'a> {
    /// A pen of `theme` on `buffer`.
    pub fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self { buffer, theme }
    }

    /// The glyphs in use.
    pub fn glyphs(&self) -> &'static Glyphs {
        self.theme.glyphs()
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Fills an area with a style.
    pub fn fill(&mut self, area: Rect, role: Role) {
        let area = area.intersection(self.buffer.area);
        self.buffer.set_style(area, self.theme.style(role));
    }

    /// Empties an area, for what lies over it.
    pub fn blank(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        Clear.render(area, self.buffer);
        self.buffer.set_style(area, self.theme.style(Role::Text));
    }

    /// Writes `text` at (`x`, `y`), at most up to column `end`; gives the column after it.
    pub fn put(&mut self, x: u16, y: u16, end: u16, text: &Visible, role: Role) -> u16 {
        if y >= self.buffer.area.bottom() || x >= end.min(self.buffer.area.right()) {
            return x;
        }
        let room = usize::from(end.min(self.buffer.area.right()) - x);
        // Cut first: the ellipsis is no ASCII either.
        let shown = text.truncate_end(room);
        let shown = if self.theme.ascii_text() { shown.to_ascii() } else { shown };
        let mut style = self.theme.style(role);
        // The row's own background shows through: selection is a background.
        style.bg = style.bg.filter(|_| role == Role::Selection || role == Role::SelectionUnfocused);
        let (next, _) = self.buffer.set_stringn(x, y, shown.as_str(), room, style);
        next
    }

    /// The same with text of ours.
    pub fn say(&mut self, x: u16, y: u16, end: u16, text: &str, role: Role) -> u16 {
        self.put(x, y, end, &text::line(text), role)
    }

    /// Writes the glyph of a state.
    pub fn mark(&mut self, x: u16, y: u16, end: u16, mark: Mark) -> u16 {
        let glyph = text::line(self.glyphs().mark(mark));
        self.put(x, y, end, &glyph, mark.role())
    }

    /// Draws a pane's frame with its title, and gives the area inside.
    pub fn pane(&mut self, area: Rect, title: &Visible, focused: bool) -> Rect {
        let role = if focused { Role::BorderFocused } else { Role::Border };
        let block = Block::bordered().border_set(self.glyphs().border).border_style(self.theme.style(role));
        let inner = block.inner(area);
        block.render(area.intersection(self.buffer.area), self.buffer);
        if area.width > 4 {
            let end = area.right().saturating_sub(1);
            let x = self.say(area.x + 1, area.y, end, " ", role);
            let x = self.put(
                x,
                area.y,
                end.saturating_sub(1),
                &title.truncate_middle(usize::from(end - x) - 1),
                Role::Heading,
            );
            self.say(x, area.y, end, " ", role);
        }
        inner
    }

    /// A rule with a word in it, from `x` to `end`.
    pub fn rule(&mut self, x: u16, y: u16, end: u16, word: &Visible, role: Role) {
        let rule = self.glyphs().rule;
        let mut at = x;
        for _ in 0..2 {
            at = self.say(at, y, end, rule, Role::Border);
        }
        if !word.is_empty() {
            at = self.say(at, y, end, " ", Role::Border);
            at = self.put(at, y, end.saturating_sub(2), word, role);
            at = self.say(at, y, end, " ", Role::Border);
        }
        while at < end {
            let next = self.say(at, y, end, rule, Role::Border);
            if next == at {
                break;
            }
            at = next;
        }
    }
}
