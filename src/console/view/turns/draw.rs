//! The turns on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::{Group, State, listed};
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::browse::draw_nothing;
use crate::console::view::detail::Line;
use crate::contract::Timestamp;
use crate::fact::Now;
use crate::model::Model;
use crate::turn::running::Left;
use crate::turn::statistics::{Seat, Turn, heights, shown};

/// Columns of a label in the detail.
const LABEL: usize = 10;

/// Draws list and detail into `area`.
pub fn draw(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let seats = listed(model);
    if seats.is_empty() {
        nothing(model, area, pen);
        return;
    }
    let (rows, cursor) = rows(&seats, state.browser.at());
    let (list, beside) = state.browser.split(area, rows.len());
    if let Some(list) = list {
        state.browser.draw_list(
            &text::line("Turns"),
            None,
            rows.len(),
            cursor,
            list,
            pen,
            |at, line, pen| match &rows[at] {
                Row::Heading(word) => drop(pen.say(line.x + 1, line.y, line.right(), word, Role::Heading)),
                Row::Seat(seat) => draw_seat(seats[*seat], line, pen),
            },
        );
    }
    let Some(beside) = beside else { return };
    let seat = seats.get(state.browser.at()).filter(|seat| Some(seat.name.as_str()) == state.seat());
    let title = seat.map_or_else(|| text::line("Seat"), |seat| text::line(&*seat.name));
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    if let Some(seat) = seat {
        let mut lines = detail(seat, now, beside.room, pen, ages);
        let troubles = model.turns().map(|turns| turns.troubles.as_slice()).unwrap_or_default();
        if !troubles.is_empty() {
            lines.push(Line::Rule(text::line("not read"), Role::Heading));
            for trouble in troubles {
                lines.extend(plain(trouble, beside.room, Role::Warning));
            }
        }
        state.browser.draw_detail(&lines, &beside, pen);
    }
}

enum Row {
    Heading(&'static str),
    Seat(usize),
}

/// The rows with the headings between them, and which one is that of seat `selected`.
fn rows(seats: &[&Seat], selected: usize) -> (Vec<Row>, usize) {
    let mut rows = Vec::new();
    let mut cursor = 0;
    for (at, seat) in seats.iter().enumerate() {
        let group = Group::of(seat);
        if at == 0 || Group::of(seats[at - 1]) != group {
            rows.push(Row::Heading(group.word()));
        }
        if at == selected {
            cursor = rows.len();
        }
        rows.push(Row::Seat(at));
    }
    (rows, cursor)
}

/// The seat of row `at`, if that is no heading.
pub(super) fn seat_of_row(seats: &[&Seat], at: usize) -> Option<usize> {
    match rows(seats, 0).0.get(at) {
        Some(Row::Seat(seat)) => Some(*seat),
        Some(Row::Heading(_)) | None => None,
    }
}

/// One row: how the last turn ended, the seat's name, how many went well and what a turn takes.
fn draw_seat(seat: &Seat, line: Rect, pen: &mut Pen<'_>) {
    let (y, end) = (line.y, line.right());
    let (glyph, role) = match Group::of(seat) {
        Group::Running => (pen.glyphs().on, Role::Working),
        Group::Failed => ("!", Role::Warning),
        Group::Well => (pen.glyphs().off, Role::Good),
    };
    pen.say(line.x + 1, y, end, glyph, role);
    let x = line.x + 3;
    let figures = match (seat.ok_percent(), seat.median) {
        (Some(percent), Some(median)) => text::line(format_args!("{percent:>3}% {:>7}", shown(median))),
        _ => Visible::default(),
    };
    let mut right = end.saturating_sub(1);
    // A name of a few characters says less than no figures.
    if usize::from(right.saturating_sub(x)) > figures.width() + 9 {
        right = right.saturating_sub(figures.width() as u16);
        pen.put(right, y, end, &figures, Role::Muted);
        right = right.saturating_sub(1);
    }
    let room = usize::from(right.saturating_sub(x));
    pen.put(x, y, right, &text::line(&*seat.name).truncate_middle(room), Role::Text);
}

/// On the wall clock: others wrote the time.
fn age(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(at.as_millis()))
}

fn plain(told: &str, room: usize, role: Role) -> Vec<Line> {
    text::line(told).wrap(room.max(8)).into_iter().map(|line| Line::plain(line, role)).collect()
}

fn detail(seat: &Seat, now: Now, room: usize, pen: &Pen<'_>, ages: &mut Ages) -> Vec<Line> {
    let mut lines = Vec::new();
    for running in &seat.running {
        let since = running.since.map_or_else(|| "?".to_owned(), |since| ages.show(age(since, now)));
        let role = if running.left == Left::Supervised { Role::Working } else { Role::Warning };
        lines.extend(plain(&running.told(&since), room, role));
    }
    let Some(last) = &seat.last else { return lines };
    let mut say = |what: &str, value: String, role: Role| {
        for (at, line) in text::line(&*value).wrap(room.saturating_sub(LABEL).max(8)).into_iter().enumerate()
        {
            let label = if at == 0 { text::line(what) } else { Visible::default() };
            lines.push(Line::Pieces(vec![(label.pad_end(LABEL), Role::Muted), (line, role)]));
        }
    };
    let role = if last.ok { Role::Good } else { Role::Warning };
    say(
        "last",
        format!("{} {} ago, took {}", ended(last), ages.show(age(last.at, now)), shown(last.took)),
        role,
    );
    if let Some(advice) = seat.advice {
        let circuit = if advice.circuit_open { ", and nothing more until one goes well" } else { "" };
        let wait = shown(u64::try_from(advice.after.as_millis()).unwrap_or(u64::MAX));
        say("advice", format!("failed {} in a row: wait {wait}{circuit}", seat.in_a_row), Role::Notice);
    }
    let older = if seat.is_partial { ", older ones not counted" } else { "" };
    let percent = seat.ok_percent().unwrap_or(0);
    say("well", format!("{} of {} ({percent}%{older})", seat.ok, seat.turns), Role::Text);
    if let (Some(median), Some(p95)) = (seat.median, seat.p95) {
        let separator = pen.glyphs().separator;
        say("took", format!("median {} {separator} p95 {}", shown(median), shown(p95)), Role::Text);
    }
    say("stalls", seat.stalls.to_string(), Role::Text);
    for (at, (failure, count)) in seat.failures.iter().enumerate() {
        say(if at == 0 { "failures" } else { "" }, format!("{failure} {count}"), Role::Text);
    }
    lines.push(Line::Rule(text::line("how long the last ones took"), Role::Heading));
    let bar = |(height, ok): &(usize, bool)| {
        (text::line(pen.glyphs().bars[*height]), if *ok { Role::Good } else { Role::Warning })
    };
    let bars = heights(&seat.bars, room);
    lines.push(Line::Pieces(bars.iter().map(bar).collect()));
    if bars.iter().any(|(_, ok)| !ok) {
        // Colour alone does not tell it.
        let below = |(_, ok): &(usize, bool)| (text::line(if *ok { " " } else { "!" }), Role::Warning);
        lines.push(Line::Pieces(bars.iter().map(below).collect()));
    }
    lines
}

/// How a turn ended, in a word.
fn ended(turn: &Turn) -> &'static str {
    turn.failure.unwrap_or(turn.outcome)
}

/// What stands in place of an empty list.
fn nothing(model: &Model, area: Rect, pen: &mut Pen<'_>) {
    let Some(turns) = model.turns() else {
        draw_nothing("Turns", &["Looking for turns \u{2026}"], Role::Text, area, pen);
        return;
    };
    let mut words = vec![
        "No turns.",
        "",
        "headman turn --seat NAME -- COMMAND runs one turn of an agent under supervision.",
        "How it went is shown here.",
    ];
    if !turns.troubles.is_empty() {
        words.push("");
    }
    words.extend(turns.troubles.iter().map(String::as_str));
    draw_nothing("Turns", &words, Role::Text, area, pen);
}
