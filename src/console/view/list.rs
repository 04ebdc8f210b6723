//! A position in a list that is longer than its pane.

use std::cell::Cell;

use crate::console::intent::Intent;

/// What is scrolled: the first row shown. The height of the pane is known from the last frame.
#[derive(Debug, Default, Clone)]
pub struct Scroll {
    top: Cell<usize>,
    height: Cell<usize>,
}

impl Scroll {
    /// The first row to show of `count` in a pane of `height` rows.
    pub fn top(&self, count: usize, height: usize) -> usize {
        self.height.set(height);
        let top = self.top.get().min(count.saturating_sub(height));
        self.top.set(top);
        top
    }

    /// Whether so many rows have not all been in the pane's last frame.
    pub fn overflows(&self, count: usize) -> bool {
        count > self.height.get()
    }

    /// The same, with row `at` in sight.
    pub fn top_with(&self, at: usize, count: usize, height: usize) -> usize {
        let mut top = self.top.get();
        if at < top {
            top = at;
        } else if height > 0 && at >= top + height {
            top = at + 1 - height;
        }
        self.top.set(top);
        self.top(count, height)
    }

    /// Shows row `row` where row `was` stood, so that what is under the cursor does not move.
    pub fn keep_line(&self, was: usize, row: usize) {
        self.top.set((self.top.get() + row).saturating_sub(was));
    }

    /// Scrolls by an intent; the bottom is found out by the next frame.
    pub fn intent(&mut self, intent: Intent) {
        let by = self.step(intent);
        let top = self.top.get();
        self.top.set(match intent {
            Intent::First => 0,
            Intent::Last => usize::MAX / 2,
            _ if by < 0 => top.saturating_sub(by.unsigned_abs()),
            _ => top + by.unsigned_abs(),
        });
    }

    /// How many rows an intent moves.
    pub fn step(&self, intent: Intent) -> isize {
        let page = self.height.get().max(1) as isize;
        match intent {
            Intent::Up => -1,
            Intent::Down => 1,
            Intent::HalfPageUp => -(page / 2).max(1),
            Intent::HalfPageDown => (page / 2).max(1),
            Intent::PageUp => -page,
            Intent::PageDown => page,
            _ => 0,
        }
    }
}
