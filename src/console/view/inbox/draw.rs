//! The inbox on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::{State, listed};
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::{Line, draw_lines};
use crate::console::view::frame;
use crate::contract::{Kind, Timestamp};
use crate::fact::{Letter, Now};
use crate::model::Model;

/// Draws list and detail into `area`.
pub fn draw(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let count = model.mail().newest.len();
    if count == 0 {
        nothing(model, area, pen);
        return;
    }
    let (list, beside) = frame::split(area, count, state.in_detail);
    if let Some(list) = list {
        draw_list(state, model, now, list, pen, ages);
    }
    let Some(beside) = beside else { return };
    let letter = state.letter(model);
    let title = letter.map_or_else(|| text::line("Message"), |letter| sender(letter, model));
    let inside = pen.pane(beside, &title, state.in_detail);
    if let (Some(letter), false) = (letter, inside.is_empty()) {
        let room = usize::from(inside.width).saturating_sub(2);
        draw_lines(&detail(letter, model, now, room, ages), &state.detail, inside, pen);
    }
}

/// The lead's name where it is listed now, else its session.
fn sender(letter: &Letter, model: &Model) -> Visible {
    let Some(session) = &letter.lead else { return text::line("from nobody known") };
    match model.lead(session) {
        Some(lead) => text::line(&lead.display_name),
        None => text::line(session.as_untrusted()),
    }
}

fn kind(letter: &Letter) -> (&'static str, Role) {
    match (&letter.refused, letter.kind) {
        (Some(_), _) => ("refused", Role::Warning),
        (None, Some(Kind::LeadAsk)) => ("ask", Role::NeedsYou),
        (None, _) => ("message", Role::Muted),
    }
}

fn draw_list(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let mail = model.mail();
    let title = text::line(format_args!("Inbox {} unread, {} in all", mail.unread, mail.total));
    let inside = pen.pane(area, &title, !state.in_detail);
    let height = usize::from(inside.height);
    let count = mail.newest.len();
    let top = state.list.top_with(state.at, count, height);
    for (y, (at, letter)) in (inside.y..).zip(listed(model).enumerate().skip(top).take(height)) {
        let line = Rect { y, height: 1, ..inside };
        if at == state.at {
            pen.fill(line, if state.in_detail { Role::SelectionUnfocused } else { Role::Selection });
            pen.say(line.x, y, line.right(), pen.glyphs().cursor, Role::Key);
        }
        if !letter.read && letter.refused.is_none() {
            pen.say(line.x + 1, y, line.right(), pen.glyphs().on, Role::Notice);
        }
        let (word, role) = kind(letter);
        let age = ages.show(age(letter.at, now));
        let right = line.right().saturating_sub(5);
        pen.put(right, y, line.right(), &text::line(format_args!("{age:>4}")), Role::Muted);
        let right = right.saturating_sub(word.len() as u16 + 1);
        pen.say(right, y, line.right(), word, role);
        let x = line.x + 3;
        let room = usize::from(right.saturating_sub(x + 1));
        pen.put(x, y, right, &sender(letter, model).truncate_middle(room), Role::Text);
    }
    let right = area.right().saturating_sub(3);
    if top > 0 {
        pen.say(right, area.y, area.right(), pen.glyphs().more_above, Role::Key);
    }
    if top + height < count {
        pen.say(right, area.bottom() - 1, area.right(), pen.glyphs().more_below, Role::Key);
    }
}

/// On the wall clock: the journal's times are kept over restarts.
fn age(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(at.as_millis()))
}

fn detail(letter: &Letter, model: &Model, now: Now, room: usize, ages: &mut Ages) -> Vec<Line> {
    let (word, role) = kind(letter);
    let ago = ages.show(age(letter.at, now));
    let mut lines = vec![Line::Pieces(vec![
        (text::line(word), role),
        (text::line(format_args!(" received {ago} ago")), Role::Muted),
    ])];
    if let Some(why) = &letter.refused {
        let told = text::line(format_args!("Not accepted: {why}."));
        lines.extend(told.wrap(room).into_iter().map(|line| Line::plain(line, Role::Warning)));
    }
    lines.push(Line::Rule(text::line("text"), Role::Heading));
    let body = text::wrap(model.letter_text(letter), room.max(8));
    lines.extend(body.into_iter().map(|line| Line::plain(line, Role::Text)));
    lines
}

/// What stands in place of an empty list.
fn nothing(model: &Model, area: Rect, pen: &mut Pen<'_>) {
    let inside = pen.pane(area, &text::line("Inbox"), true);
    let (word, role) = match &model.mail().stopped {
        Some(why) => (format!("Nothing is received: {why}."), Role::Alarm),
        None => ("Nothing came yet. What leads send to the Chief is kept here.".to_owned(), Role::Text),
    };
    let room = usize::from(inside.width.saturating_sub(4));
    for (y, line) in (inside.y + 1..inside.bottom()).zip(text::line(&word).wrap(room)) {
        pen.put(inside.x + 2, y, inside.right(), &line, role);
    }
}
