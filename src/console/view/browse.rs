//! A list and, beside it or in its place, the detail of what is under its cursor.

use std::cell::Cell;

use ratatui::layout::{Position, Rect};

use super::detail::{Line, draw_lines};
use super::frame;
use super::list::Scroll;
use crate::console::intent::Intent;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;

/// Where the operator is in a list of things, each known by a key of its own.
#[derive(Debug)]
pub struct Browser<K> {
    selected: Option<K>,
    /// Where it stands, or stood when it was still there.
    at: usize,
    list: Scroll,
    detail: Scroll,
    in_detail: bool,
    /// Where the rows were drawn last, and the first of them.
    drawn: Cell<(Rect, usize)>,
}

impl<K> Default for Browser<K> {
    fn default() -> Self {
        Self {
            selected: None,
            at: 0,
            list: Scroll::default(),
            detail: Scroll::default(),
            in_detail: false,
            drawn: Cell::default(),
        }
    }
}

/// What stands over the rows of a list.
pub struct Above {
    /// Cut where there is no room.
    pub left: Visible,
    /// At the other end.
    pub right: Visible,
}

/// What stands where the detail of a list is drawn.
pub struct Beside {
    /// Its area inside its frame.
    pub inside: Rect,
    /// Columns of a line.
    pub room: usize,
}

impl<K: Clone + PartialEq> Browser<K> {
    /// Takes over what is listed now: the cursor stays on what it stands on, or where that stood.
    pub fn follow(&mut self, keys: &[K]) {
        let selected = self.selected.as_ref();
        match selected.and_then(|selected| keys.iter().position(|key| key == selected)) {
            Some(at) => self.at = at,
            None => self.put(self.at, keys),
        }
    }

    /// Puts the cursor on row `at` or the last one.
    pub fn put(&mut self, at: usize, keys: &[K]) {
        self.at = at.min(keys.len().saturating_sub(1));
        let selected = keys.get(self.at);
        if selected != self.selected.as_ref() {
            self.selected = selected.cloned();
            self.detail = Scroll::default();
        }
    }

    /// What an intent that moves does.
    pub fn intent(&mut self, intent: Intent, keys: &[K]) {
        match intent {
            Intent::NextPane | Intent::PreviousPane => self.in_detail = !self.in_detail,
            Intent::Open => self.in_detail = self.selected.is_some(),
            _ if self.in_detail => self.detail.intent(intent),
            Intent::First => self.put(0, keys),
            Intent::Last => self.put(usize::MAX, keys),
            _ => self.put(self.at.saturating_add_signed(self.list.step(intent)), keys),
        }
    }

    /// Backs out of the detail; says whether it was open.
    pub fn back(&mut self) -> bool {
        std::mem::take(&mut self.in_detail)
    }

    /// Whether the keys go to the detail.
    pub fn is_in_detail(&self) -> bool {
        self.in_detail
    }

    /// The key under the cursor.
    pub fn selected(&self) -> Option<&K> {
        self.selected.as_ref()
    }

    /// The row under the cursor.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The detail's position.
    pub fn detail(&self) -> &Scroll {
        &self.detail
    }

    /// The row drawn at `at`, if it was one of the list; the keys go to the list then.
    pub fn click(&mut self, at: Position) -> Option<usize> {
        let (area, top) = self.drawn.get();
        let row = area.contains(at).then(|| top + usize::from(at.y - area.y))?;
        self.in_detail = false;
        Some(row)
    }

    /// Where a list of `rows` and its detail stand in `area`.
    pub fn split(&self, area: Rect, rows: usize) -> (Option<Rect>, Option<Rect>) {
        self.drawn.set((Rect::default(), 0));
        frame::split(area, rows, self.in_detail)
    }

    /// Draws the list's frame, `rows` rows of which `cursor` is the one under the cursor, and `above`
    /// over all of them. Only rows in sight are asked for.
    #[allow(clippy::too_many_arguments)]
    pub fn draw_list<'p>(
        &self,
        title: &Visible,
        above: Option<&Above>,
        rows: usize,
        cursor: usize,
        area: Rect,
        pen: &mut Pen<'p>,
        mut row: impl FnMut(usize, Rect, &mut Pen<'p>),
    ) {
        let mut inside = pen.pane(area, title, !self.in_detail);
        if let Some(above) = above
            && inside.height > 1
        {
            let right = inside.right().saturating_sub(above.right.width() as u16 + 1);
            pen.put(right, inside.y, inside.right(), &above.right, Role::Muted);
            pen.put(inside.x + 1, inside.y, right.saturating_sub(1), &above.left, Role::Notice);
            inside = Rect { y: inside.y + 1, height: inside.height - 1, ..inside };
        }
        let height = usize::from(inside.height);
        // A heading above the first one stays in sight.
        let top = self.list.top_with(if cursor == 1 && height > 1 { 0 } else { cursor }, rows, height);
        self.drawn.set((inside, top));
        for (y, at) in (inside.y..inside.bottom()).zip(top..rows) {
            let line = Rect { y, height: 1, ..inside };
            if at == cursor {
                pen.fill(line, if self.in_detail { Role::SelectionUnfocused } else { Role::Selection });
                pen.say(line.x, y, line.right(), pen.glyphs().cursor, Role::Key);
            }
            row(at, line, pen);
        }
        let right = area.right().saturating_sub(3);
        if top > 0 {
            pen.say(right, area.y, area.right(), pen.glyphs().more_above, Role::Key);
        }
        if top + height < rows {
            pen.say(right, area.bottom() - 1, area.right(), pen.glyphs().more_below, Role::Key);
        }
    }

    /// Draws the detail's frame; where its lines go, if there is room for any.
    pub fn draw_frame(&self, title: &Visible, area: Rect, pen: &mut Pen<'_>) -> Option<Beside> {
        let inside = pen.pane(area, title, self.in_detail);
        let room = usize::from(inside.width).saturating_sub(2);
        (!inside.is_empty()).then_some(Beside { inside, room })
    }

    /// Draws the detail's lines.
    pub fn draw_detail(&self, lines: &[Line], beside: &Beside, pen: &mut Pen<'_>) {
        draw_lines(lines, &self.detail, beside.inside, pen);
    }
}

/// What stands in place of an empty list.
pub fn draw_nothing(title: &str, words: &[&str], role: Role, area: Rect, pen: &mut Pen<'_>) {
    let inside = pen.pane(area, &text::line(title), true);
    let mut y = inside.y + 1;
    for word in words {
        let room = usize::from(inside.width.saturating_sub(4));
        for line in text::line(*word).wrap(room) {
            if y < inside.bottom() {
                pen.put(inside.x + 2, y, inside.right(), &line, role);
            }
            y += 1;
        }
    }
}
