//! The list of a session's branches.

use ratatui::layout::Rect;

use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::paint::Pen;
use crate::console::text;
use crate::console::theme::Role;
use crate::console::view::list::Scroll;
use crate::fact::{Now, Reading, TipRead};
use crate::pi::growth::Branch;

/// Where the operator is in it.
#[derive(Debug, Default)]
pub(super) struct Branches {
    at: usize,
    scroll: Scroll,
}

impl Branches {
    /// What an intent does; gives the branch that was chosen.
    pub(super) fn intent(&mut self, intent: Intent, reading: &Reading) -> Option<Branch> {
        let tips = reading.tips.as_deref()?;
        let last = tips.len().saturating_sub(1);
        self.at = match intent {
            Intent::First => 0,
            Intent::Last => last,
            _ => self.at.saturating_add_signed(self.scroll.step(intent)).min(last),
        };
        let chosen = tips.get(self.at).filter(|_| intent == Intent::Unfold)?;
        Some(if chosen.tip.is_latest { Branch::Latest } else { Branch::Through(chosen.tip.offset) })
    }

    /// Draws it.
    pub(super) fn draw(
        &self,
        reading: Option<&Reading>,
        now: Now,
        area: Rect,
        pen: &mut Pen<'_>,
        ages: &mut Ages,
    ) {
        let tips = reading.and_then(|reading| reading.tips.as_deref());
        let Some(tips) = tips else {
            pen.say(area.x + 1, area.y, area.right(), "Reading \u{2026}", Role::Muted);
            return;
        };
        let height = usize::from(area.height);
        let at = self.at.min(tips.len().saturating_sub(1));
        let top = self.scroll.top_with(at, tips.len(), height);
        for (y, nth) in (area.y..area.bottom()).zip(top..tips.len()) {
            let line = Rect { y, height: 1, ..area };
            if nth == at {
                pen.fill(line, Role::Selection);
                pen.say(line.x, y, line.right(), pen.glyphs().cursor, Role::Key);
            }
            draw_tip(&tips[nth], now, line, pen, ages);
        }
    }
}

fn draw_tip(read: &TipRead, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let (y, end) = (line.y, line.right());
    let age = match read.tip.at {
        0 => String::new(),
        at => ages.show(std::time::Duration::from_millis(now.wall.as_millis().saturating_sub(at))),
    };
    let mark = if read.tip.is_latest { "latest " } else { "       " };
    let x = pen.say(line.x + 2, y, end, mark, Role::Good);
    let own = format!("{age:>4} {:>5} own  ", read.tip.own);
    let x = pen.put(x, y, end, &text::line(&own), Role::Muted);
    pen.put(x, y, end, &text::line(&read.words), Role::Text);
}
