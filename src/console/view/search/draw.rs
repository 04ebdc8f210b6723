//! The search in sessions on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::State;
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::browse::Above;
use crate::console::view::detail::Line;
use crate::console::view::found;
use crate::contract::Timestamp;
use crate::fact::{Now, Searched};
use crate::model::Model;
use crate::pi::search::{Hit, Progress};

/// Columns of a lead's name in a row, in a narrow one and in a wide one.
const NAME: (usize, usize) = (10, 16);
/// From so many columns on a row is wide.
const WIDE: u16 = 46;
/// Columns of a line that are shown before what was found.
const BEFORE: usize = 12;
/// Bytes that are looked at of a line in a row, on each side.
const NEAR: usize = 400;

/// Draws list and text into `area`.
pub fn draw(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let nothing = Searched::default();
    let searched = state.searched(model).unwrap_or(&nothing);
    let rows = searched.hits.len();
    let (list, beside) = state.browser.split(area, rows + 1);
    if let Some(list) = list {
        let above = Above {
            left: text::line(&state.field.shown().unwrap_or_else(|| "/".to_owned())),
            right: text::line(&count(state, searched)),
        };
        let title = title(state, searched.progress, searched.is_done);
        state.browser.draw_list(
            &title,
            Some(&above),
            rows,
            state.browser.at(),
            list,
            pen,
            |at, line, pen| {
                draw_hit(&searched.hits[at], model, now, line, pen, ages);
            },
        );
        if rows == 0 {
            instead(state, searched, list, pen);
        }
    }
    let Some(beside) = beside else { return };
    let hit = searched.hits.get(state.browser.at());
    let title = hit.map_or_else(|| text::line("Text"), |hit| name(hit, model));
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    let mut lines = Vec::new();
    if let Some(hit) = hit {
        let row = detail(&mut lines, state, hit, now, beside.room, pen, ages);
        if state.jumps.take() {
            let height = usize::from(beside.inside.height);
            // From its beginning, where the place is in sight then.
            let row = if row < height { 0 } else { row };
            state.browser.detail().top_with(row, lines.len(), height);
        }
    }
    troubles(&mut lines, searched, beside.room);
    state.browser.draw_detail(&lines, &beside, pen);
}

/// How far the search came.
fn title(state: &State, progress: Progress, is_done: bool) -> Visible {
    if state.query.is_none() {
        return text::line("Search in sessions");
    }
    let more = if is_done { "" } else { " \u{2026}" };
    let megabytes = progress.bytes.div_ceil(1_000_000);
    let (searched, files) = (progress.searched, progress.files);
    text::line(format_args!("Searched {searched} of {files} files, {megabytes} MB{more}"))
}

fn count(state: &State, searched: &Searched) -> String {
    match (&state.query, searched.is_full) {
        (None, _) => String::new(),
        (Some(_), true) => format!("the first {}", searched.hits.len()),
        (Some(_), false) => format!("{} found", searched.hits.len()),
    }
}

/// What stands in an empty list.
fn instead(state: &State, searched: &Searched, list: Rect, pen: &mut Pen<'_>) {
    let words = match &state.query {
        None => "What was said in the sessions of all leads is searched as you type.",
        Some(query) if query.wanted.is_empty() => "There are no leads.",
        Some(_) if searched.is_done => "Nothing is found.",
        Some(_) => "Searching \u{2026}",
    };
    let room = usize::from(list.width.saturating_sub(4));
    for (y, line) in (list.y + 2..list.bottom().saturating_sub(1)).zip(text::line(words).wrap(room)) {
        pen.put(list.x + 2, y, list.right().saturating_sub(1), &line, Role::Muted);
    }
}

/// The lead's name, the last one where it is not listed now.
fn name(hit: &Hit, model: &Model) -> Visible {
    match (model.lead(&hit.session), model.last_names(&hit.session)) {
        (Some(lead), _) => text::line(&lead.display_name),
        (None, Some(names)) => text::line(&names.display_name),
        (None, None) => text::line(&hit.session),
    }
}

/// On the wall clock: others wrote the time.
fn age(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(at.as_millis()))
}

/// One row: whose it is, what stands around the place, how old.
fn draw_hit(hit: &Hit, model: &Model, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let (y, end) = (line.y, line.right());
    let right = end.saturating_sub(5);
    let old = hit.at.map(|at| ages.show(age(at, now))).unwrap_or_default();
    pen.put(right, y, end, &text::line(format_args!("{old:>4}")), Role::Muted);
    let room = if line.width < WIDE { NAME.0 } else { NAME.1 };
    let name = match model.lead(&hit.session) {
        Some(lead) if !lead.name.is_empty() => text::line(&lead.name),
        _ => name(hit, model),
    };
    let x = line.x + 2;
    pen.put(x, y, right, &name.truncate_middle(room), Role::Text);
    let end = right.saturating_sub(1);
    let mut x = x + room as u16 + 1;
    for (piece, role) in snippet(hit) {
        x = pen.put(x, y, end, &piece, role);
    }
}

/// The place with what stands around it in its line.
fn snippet(hit: &Hit) -> Vec<(Visible, Role)> {
    let (line, place) = hit.line();
    let from = line.floor_char_boundary(place.start.saturating_sub(NEAR));
    let before = text::line(line[from..place.start].trim_start());
    let mut kept = 0;
    let mut shown: Vec<&str> = before
        .graphemes()
        .rev()
        .take_while(|(_, width)| {
            kept += width;
            kept <= BEFORE
        })
        .map(|(grapheme, _)| grapheme)
        .collect();
    shown.reverse();
    let is_cut = before.width() > BEFORE || from > 0;
    let before = format!("{}{}", if is_cut { "\u{2026}" } else { "" }, shown.concat());
    let to = line.ceil_char_boundary((place.end + NEAR).min(line.len()));
    vec![
        (text::line(&before), Role::Muted),
        (text::line(&line[place.clone()]), Role::Match),
        (text::line(&line[place.end..to]), Role::Muted),
    ]
}

/// The text of one hit with what stands over it; gives the row of the first place.
fn detail(
    lines: &mut Vec<Line>,
    state: &State,
    hit: &Hit,
    now: Now,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> usize {
    let separator = pen.glyphs().separator;
    let mut told = match &hit.tool {
        Some(tool) => format!("{} {}", hit.role.word(), text::line(tool)),
        None => hit.role.word().to_owned(),
    };
    if let Some(at) = hit.at {
        told += &format!(" {separator} {} ago", ages.show(age(at, now)));
    }
    if hit.places > 1 {
        told += &format!(" {separator} {} places", hit.places);
    }
    let wrapped = |text: &str, role| {
        text::line(text).wrap(room.max(1)).into_iter().map(move |it| Line::plain(it, role))
    };
    lines.extend(wrapped(&told, Role::Muted));
    lines.push(Line::Rule(text::line("text"), Role::Heading));
    if hit.cut.0 {
        lines.extend(wrapped("\u{2026} (more stands before)", Role::Muted));
    }
    let before = lines.len();
    let places = |line: &str| match &state.pattern {
        Some(pattern) => pattern.places(line).collect(),
        None => Vec::new(),
    };
    let mut rows = Vec::new();
    let current =
        hit.text[..hit.place.start].lines().map(|line| places(text::line(line).as_str()).len()).sum();
    found::add(&hit.text, &places, current, room.max(8), Role::Text, lines, &mut rows);
    if hit.cut.1 {
        lines.extend(wrapped("\u{2026} (more follows)", Role::Muted));
    }
    rows.get(current).copied().unwrap_or(before)
}

/// What was not searched.
fn troubles(lines: &mut Vec<Line>, searched: &Searched, room: usize) {
    if searched.troubles.is_empty() {
        return;
    }
    lines.push(Line::Rule(text::line("to know"), Role::Warning));
    for why in &searched.troubles {
        lines.extend(
            text::line(why).wrap(room.max(1)).into_iter().map(|line| Line::plain(line, Role::Warning)),
        );
    }
}
