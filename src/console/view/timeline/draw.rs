//! The timeline on the screen.

use ratatui::layout::Rect;

use super::State;
use crate::console::age::Ages;
use crate::console::app::App;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::timeline::{Event, EventKind, MAX_EVENTS};
use crate::console::view::browse::{Above, draw_nothing};
use crate::fact::Now;

/// From so many columns on a row has room for what it is about.
const WIDE: u16 = 60;
/// Columns of the longest word, `answered elsewhere`.
const WORD: usize = 18;
/// Columns of a name beside the text.
const NAME: usize = 32;

/// Draws the list into `area`.
pub fn draw(state: &State, app: &App, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let timeline = app.timeline();
    let count = timeline.newest_first().len();
    let title = text::line("Timeline");
    if count == 0 {
        let words = ["Nothing has happened since this console looks."];
        draw_nothing("Timeline", &words, Role::Muted, area, pen);
        return;
    }
    let since = match timeline.since() {
        Some(since) => format!("seen since {}; before that, messages only", (app.settings.clock)(since.wall)),
        None => "of the journal; the leads were not seen yet".to_owned(),
    };
    let right = match count {
        MAX_EVENTS => format!("the last {MAX_EVENTS}"),
        1 => "1 event".to_owned(),
        _ => format!("{count} events"),
    };
    let above = Above { left: text::line(&since), right: text::line(&right) };
    let at = state.browser.at();
    let events: Vec<&Event> = timeline.newest_first().collect();
    state.browser.draw_list(&title, Some(&above), count, at, area, pen, |at, line, pen| {
        draw_event(events[at], app, now, line, pen, ages);
    });
}

/// One row: the time of day, how long ago, what, who, and what about.
fn draw_event(event: &Event, app: &App, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let (y, end) = (line.y, line.right());
    let clock = text::line((app.settings.clock)(event.at).as_str());
    let x = pen.put(line.x + 1, y, end, &clock, Role::Muted);
    let age = text::line(ages.show(event.age(now)).as_str()).pad_start(4);
    let mut x = pen.put(x + 1, y, end, &age, Role::Muted) + 1;
    let kind = event.what.kind();
    let word = text::line(kind.word());
    let is_wide = line.width >= WIDE;
    x = pen.put(x, y, end, &if is_wide { word.pad_end(WORD) } else { word }, role(kind)) + 1;
    let rest = usize::from(end.saturating_sub(x + 1));
    let name =
        if is_wide { event.name.truncate_middle(NAME.min(rest)) } else { event.name.truncate_middle(rest) };
    x = pen.put(x, y, end, &name, Role::Text);
    if is_wide && !event.about.is_empty() {
        // A cut sentence begins where the eye expects it: after the longest name.
        let gap = Visible::default().pad_end(if event.name.is_empty() { 0 } else { 2 });
        let x = pen.put(x, y, end, &gap, Role::Text);
        pen.put(x, y, end.saturating_sub(1), &event.about, Role::Muted);
    }
}

fn role(kind: EventKind) -> Role {
    match kind {
        EventKind::Asked => Role::NeedsYou,
        EventKind::LeaseLost | EventKind::Lost => Role::Alarm,
        EventKind::Blocked => Role::Blocked,
        EventKind::Finished | EventKind::Answered | EventKind::BecameChief => Role::Good,
        EventKind::Message | EventKind::AnsweredElsewhere => Role::Notice,
        EventKind::Fired => Role::Warning,
        EventKind::Over | EventKind::Joined | EventKind::Left | EventKind::LeftChief => Role::Muted,
    }
}
