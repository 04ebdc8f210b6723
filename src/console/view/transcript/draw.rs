//! The transcript on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::layout::Layout;
use super::{Spot, State};
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::Line;
use crate::contract::Timestamp;
use crate::fact::{Condition, Now, Reading};
use crate::model::Model;
use crate::pi::body::size;

/// From this age on an entry's is shown instead of its time of day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The newest version of the format that Pi writes.
const VERSION: f64 = 3.0;

/// What a frame is drawn from beside the state.
pub struct Scene<'a> {
    /// Everything known.
    pub model: &'a Model,
    /// Now.
    pub now: Now,
    /// Keys, to name them.
    pub keymap: &'a Keymap,
    /// A time of day as the operator's clock shows it.
    pub clock: fn(Timestamp) -> String,
}

/// Draws it into `area`: what is to be said of the session above, and its entries below.
pub fn draw(state: &State, scene: &Scene<'_>, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let name = name(state, scene.model);
    let what = if state.lists_branches() { "Branches" } else { "Transcript (read only)" };
    let inside = pen.pane(area, &text::line(format_args!("{what} {name}")), true);
    if inside.is_empty() {
        return;
    }
    let reading = state.reading(scene.model);
    let room = usize::from(inside.width).saturating_sub(2);
    let mut head = head(state, reading, scene, room, pen);
    head.truncate(usize::from(inside.height / 2));
    for (y, (line, role)) in (inside.y..).zip(&head) {
        pen.put(inside.x + 1, y, inside.right(), line, *role);
    }
    let mut top = inside.y + head.len() as u16;
    if !head.is_empty() && top + 2 < inside.bottom() {
        pen.rule(inside.x, top, inside.right(), &Visible::default(), Role::Border);
        top += 1;
    }
    let rest = Rect { y: top, height: inside.bottom() - top, ..inside };
    if let Some(branches) = &state.branches {
        return branches.draw(reading, scene.now, rest, pen, ages);
    }
    let room = (room, usize::from(rest.height));
    state.room.set(room);
    let Some(reading) = reading else { return };
    let (Some(last), Some(cursor)) = (state.last(reading), state.spot(reading)) else { return };
    let (top, cursor) = settle(state, reading, last, cursor, room.1);
    entries(state, reading, (top, cursor), scene, rest, pen, ages);
    foot(state, reading, cursor, area, pen);
    if top > (Spot { item: 0, row: 0 }) || !reading.is_whole {
        pen.say(rest.right() - 1, rest.y, rest.right(), pen.glyphs().more_above, Role::Key);
    }
    let below = state.moved(reading, top, rest.height as isize - 1);
    if below < last {
        let y = rest.bottom() - 1;
        pen.say(rest.right() - 1, y, rest.right(), pen.glyphs().more_below, Role::Key);
    }
}

/// Has the cursor in sight and the screen full, and remembers where that is.
fn settle(state: &State, reading: &Reading, last: Spot, cursor: Spot, rows: usize) -> (Spot, Spot) {
    let page = isize::try_from(rows).unwrap_or(1).max(1);
    let lowest = state.moved(reading, last, 1 - page);
    let mut top = state.top_spot(reading).unwrap_or(lowest).min(lowest).min(cursor);
    if state.moved(reading, top, page - 1) < cursor {
        top = state.moved(reading, cursor, 1 - page);
    }
    state.top.set(state.anchor(reading, top));
    state.cursor.set(state.anchor(reading, cursor));
    let newest = reading.items.last().map(|item| item.offset);
    if state.at_end.get() || state.seen.get().is_none() {
        state.seen.set(newest);
    }
    (top, cursor)
}

fn entries(
    state: &State,
    reading: &Reading,
    (top, cursor): (Spot, Spot),
    scene: &Scene<'_>,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let mut y = area.y;
    let mut row = top.row;
    for (at, item) in reading.items.iter().enumerate().skip(top.item) {
        let layout = state.layout(reading, at);
        for (nth, line) in layout.lines.iter().enumerate().skip(row) {
            if y >= area.bottom() {
                return;
            }
            let line_area = Rect { y, height: 1, ..area };
            if (Spot { item: at, row: nth }) == cursor {
                pen.fill(line_area, Role::Selection);
                pen.say(area.x, y, area.right(), pen.glyphs().cursor, Role::Key);
            }
            if let Line::Pieces(pieces) = line {
                let mut x = area.x + 1;
                for (piece, role) in pieces {
                    x = pen.put(x, y, area.right(), piece, *role);
                }
            }
            if nth == usize::from(Layout::has_gap(item.kind)) {
                let time = text::line(&time(item.at, scene, ages));
                let x = (area.right() - 1).saturating_sub(time.width() as u16);
                pen.put(x, y, area.right(), &time, Role::Muted);
            }
            y += 1;
        }
        row = 0;
    }
}

/// When something was: the time of day, or its age in days.
fn time(at: u64, scene: &Scene<'_>, ages: &mut Ages) -> String {
    let age = Duration::from_millis(scene.now.wall.as_millis().saturating_sub(at));
    match at {
        0 => String::new(),
        _ if age < DAY => (scene.clock)(Timestamp::from_millis(at)),
        _ => ages.show(age),
    }
}

/// Whose it is: the lead's name, else the session's id.
fn name(state: &State, model: &Model) -> Visible {
    let lead = state.lead.as_ref();
    match lead.and_then(|lead| model.lead(lead)) {
        Some(lead) => return text::line(&lead.display_name),
        None => {
            if let Some(names) = lead.and_then(|lead| model.last_names(lead)) {
                return text::line(&names.display_name);
            }
        }
    }
    let session = state.file.as_ref().map(|file| &file.session).or(lead);
    session.map(text::line).unwrap_or_default()
}

/// What is said of the session, and what is wrong.
fn head(
    state: &State,
    reading: Option<&Reading>,
    scene: &Scene<'_>,
    room: usize,
    pen: &Pen<'_>,
) -> Vec<(Visible, Role)> {
    let mut lines = Vec::new();
    let mut say = |words: &str, role: Role| {
        lines.extend(text::line(words).wrap(room).into_iter().map(|line| (line, role)));
    };
    if state.file.is_none() {
        let peek = scene.keymap.key_of(Intent::Peek);
        say(
            &format!(
                "No session file of this lead is known: Herdr names that of a Pi once it has begun, and none of other \
                 agents. {peek} shows its pane."
            ),
            Role::Warning,
        );
        return lines;
    }
    let Some(reading) = reading else {
        say("Reading \u{2026}", Role::Muted);
        return lines;
    };
    let told = summary(reading, pen);
    say(&told, Role::Muted);
    if !state.lists_branches() && !reading.is_latest {
        let branches = scene.keymap.key_of(Intent::Branches);
        say(&format!("Not the branch that the session is on: {branches} lists them."), Role::Notice);
    }
    match &reading.condition {
        Condition::Trouble(why) => {
            let old = if reading.items.is_empty() { "" } else { " What you see is as it was before." };
            say(&format!("Not read: {why}.{old}"), Role::Warning);
        }
        Condition::Rewritten => {
            say("The file became smaller: it is read again once nothing changes.", Role::Warning)
        }
        Condition::Following if reading.items.is_empty() => say("Nothing was said so far.", Role::Text),
        Condition::Following | Condition::Indexing(_) => {}
    }
    lines
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn summary(reading: &Reading, pen: &Pen<'_>) -> String {
    let summary = &reading.summary;
    let mut parts = Vec::new();
    parts.extend(summary.name.as_ref().map(|name| text::line(name).to_string()));
    parts.extend(summary.model.as_ref().map(|model| text::line(&model.id).to_string()));
    if let Some(totals) = summary.totals {
        parts.push(counted(totals.turns.into(), "turn"));
        parts.push(counted(totals.calls.into(), "tool call"));
        if totals.errors > 0 {
            parts.push(counted(totals.errors.into(), "error"));
        }
        parts.push(format!("{} tokens", thousands(totals.usage.tokens)));
        if totals.usage.cost > 0.0 {
            parts.push(format!("${:.2}", totals.usage.cost));
        }
        if totals.roots > 1 {
            parts.push(format!("{} beginnings", totals.roots));
        }
    }
    if let Condition::Indexing(percent) = reading.condition {
        parts.push(format!("reading, {percent} %"));
    }
    if summary.size > 0 {
        parts.push(size(summary.size));
    }
    match summary.version {
        Some(version) if version > VERSION => parts.push(format!("newer version {version}: tried")),
        Some(version) if version < VERSION => parts.push(format!("read as from version {version}")),
        _ => {}
    }
    if summary.bad_lines > 0 {
        parts.push(counted(summary.bad_lines.into(), "bad line"));
    }
    if summary.long_lines > 0 {
        parts.push(format!("{} too long to be read", counted(summary.long_lines.into(), "line")));
    }
    parts.join(&format!(" {} ", pen.glyphs().separator))
}

/// A number of tokens as people say it.
fn thousands(number: f64) -> String {
    match number {
        0.0..1e3 => format!("{number:.0}"),
        1e3..1e6 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// The search, and what came below, on the frame's lower edge.
fn foot(state: &State, reading: &Reading, cursor: Spot, area: Rect, pen: &mut Pen<'_>) {
    let (y, end) = (area.bottom() - 1, area.right() - 1);
    let mut x = area.x + 2;
    if let Some(search) = state.search.shown() {
        let found = reading.hits.as_deref().filter(|hits| hits.text == state.search.text());
        let told = match found {
            Some(hits) => {
                let before =
                    hits.hits.iter().take_while(|hit| Some(hit.offset) < state.current.map(|it| it.0));
                let before: u64 = before.map(|hit| u64::from(hit.count)).sum();
                let nth = state.current.map(|(_, nth)| format!("{} of ", before + nth as u64 + 1));
                let more =
                    if hits.percent < 100 { format!(", {} % searched", hits.percent) } else { String::new() };
                let matches = if hits.places == 1 { "match" } else { "matches" };
                format!("{}{} {matches}{more}", nth.unwrap_or_default(), hits.places)
            }
            None if state.needle.is_some() => "searching \u{2026}".to_owned(),
            None => String::new(),
        };
        x = pen.put(x, y, end, &text::line(format_args!(" {search} ")), Role::Notice);
        x = pen.put(x, y, end, &text::line(format_args!(" {told} ")), Role::Muted) + 1;
    }
    let seen = state.seen.get().unwrap_or(u64::MAX);
    let new = reading.items.len() - reading.items.partition_point(|item| item.offset <= seen);
    if new > 0 && cursor.item + 1 < reading.items.len() {
        let told = text::line(format_args!(" {new} new below {} ", pen.glyphs().more_below));
        let at = end.saturating_sub(told.width() as u16 + 1).max(x);
        pen.put(at, y, end, &told, Role::Notice);
    }
}
