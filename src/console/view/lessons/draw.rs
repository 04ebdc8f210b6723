//! Lessons, drawn.

use std::time::Duration;

use ratatui::layout::Rect;

use super::{Group, Quote, State, What};
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::browse::draw_nothing;
use crate::console::view::detail::Line;
use crate::fact::Now;
use crate::signals::memory::{Kind, Memory};
use crate::signals::quote::title_of;
use crate::signals::store::Kept;

/// Columns of a label in the detail.
const LABEL: usize = 12;
/// Columns of a lesson's importance, and of its age.
const WORTH: usize = 4;
const AGE: usize = 4;

/// Draws list and detail into `area`.
pub fn draw(state: &State, keymap: &Keymap, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    if state.keys().is_empty() {
        return nothing(state, keymap, area, pen);
    }
    let rows = rows(state);
    let at = state.browser.at();
    let cursor = rows.iter().position(|row| matches!(row, Row::Entry(entry) if *entry == at)).unwrap_or(0);
    let (list, beside) = state.browser.split(area, rows.len());
    if let Some(list) = list {
        let title = match state.what {
            What::Kept(_) => "Lessons",
            What::Quote(_) => "What is to be kept",
            What::Offered(..) => "Lessons that fit",
        };
        state.browser.draw_list(&text::line(title), None, rows.len(), cursor, list, pen, |at, line, pen| {
            match &rows[at] {
                Row::Heading(word) => drop(pen.put(line.x + 1, line.y, line.right(), word, Role::Heading)),
                Row::Entry(entry) => match &state.what {
                    What::Quote(quote) => draw_part(quote, *entry, line, pen),
                    _ => draw_kept(&state.kept()[*entry], now, line, pen, ages),
                },
            }
        });
    }
    let Some(beside) = beside else { return };
    let title = match (&state.what, state.selected()) {
        (What::Quote(quote), _) => text::line(word(quote.kind)),
        (_, Some(Kept { memory: Ok(memory), .. })) => text::line(&*memory.title),
        (_, _) => text::line("Lesson"),
    };
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    let lines = match (&state.what, state.selected()) {
        (What::Quote(quote), _) => quote_lines(state, quote, keymap, beside.room),
        (_, Some(kept)) => kept_lines(kept, now, beside.room, ages),
        (_, None) => Vec::new(),
    };
    state.browser.draw_detail(&lines, &beside, pen);
}

enum Row {
    Heading(Visible),
    Entry(usize),
}

/// The entries, with headings between them where all lessons are listed.
fn rows(state: &State) -> Vec<Row> {
    if !state.shows_all() {
        return (0..state.keys().len()).map(Row::Entry).collect();
    }
    let mut rows = Vec::new();
    let mut last = None;
    for (at, kept) in state.kept().iter().enumerate() {
        let group = Group::of(kept);
        if last.as_ref() != Some(&group) {
            rows.push(Row::Heading(text::line(&group.title())));
            last = Some(group);
        }
        rows.push(Row::Entry(at));
    }
    rows
}

/// The entry of row `at`, if that is no heading.
pub(super) fn entry_of_row(state: &State, at: usize) -> Option<usize> {
    match rows(state).get(at)? {
        Row::Entry(entry) => Some(*entry),
        Row::Heading(_) => None,
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Lesson => "Lesson",
        Kind::Orientation => "Orientation",
    }
}

/// One row: what it is worth, its title, and how old it is.
fn draw_kept(kept: &Kept, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let (y, end) = (line.y, line.right().saturating_sub(1));
    let x = line.x + 2;
    let Ok(memory) = &kept.memory else {
        let room = usize::from(end.saturating_sub(x));
        pen.put(x, y, end, &text::line(&*kept.name).truncate_middle(room), Role::Warning);
        return;
    };
    let worth = text::line(format_args!("{:.2}", memory.importance)).pad_end(WORTH + 1);
    let x = pen.put(x, y, end, &worth, Role::Muted);
    let age = text::line(&*ages.show(age(memory, now))).pad_start(AGE);
    let right = end.saturating_sub(age.width() as u16);
    let role = if kept.is_archived { Role::Muted } else { Role::Text };
    let room = usize::from(right.saturating_sub(x + 1));
    pen.put(x, y, right, &text::line(&*memory.title).truncate_end(room), role);
    pen.put(right, y, end, &age, Role::Muted);
}

fn draw_part(quote: &Quote, at: usize, line: Rect, pen: &mut Pen<'_>) {
    let part = text::line(&*quote.parts[at]);
    let room = usize::from(line.width).saturating_sub(3);
    pen.put(line.x + 2, line.y, line.right(), &part.truncate_end(room), Role::Text);
}

fn age(memory: &Memory, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(memory.created))
}

fn wrapped(what: &str, room: usize, role: Role) -> Vec<Line> {
    text::wrap(what, room.max(8)).into_iter().map(|line| Line::plain(line, role)).collect()
}

fn labelled(lines: &mut Vec<Line>, label: &str, value: &str, room: usize) {
    for (at, line) in text::line(value).wrap(room.saturating_sub(LABEL).max(8)).into_iter().enumerate() {
        let label = if at == 0 { text::line(label) } else { Visible::default() };
        lines.push(Line::Pieces(vec![(label.pad_end(LABEL), Role::Muted), (line, Role::Text)]));
    }
}

fn kept_lines(kept: &Kept, now: Now, room: usize, ages: &mut Ages) -> Vec<Line> {
    let memory = match &kept.memory {
        Ok(memory) => memory,
        Err(why) => {
            let mut lines = wrapped(&format!("It can't be used: {why}."), room, Role::Warning);
            lines.extend(wrapped("Correct the file in an editor, or move it away.", room, Role::Text));
            lines.push(Line::empty());
            labelled(&mut lines, "file", &format!("learning/{}.md", kept.name), room);
            return lines;
        }
    };
    let mut lines = wrapped(&memory.content, room, Role::Text);
    lines.push(Line::empty());
    let mut say = |label: &str, value: &str| labelled(&mut lines, label, value, room);
    say("is", if kept.is_archived { "put away" } else { memory.kind.as_str() });
    let scope = if memory.is_global { "everywhere" } else { &memory.project };
    say("holds in", scope);
    say("for", &memory.role);
    say("importance", &format!("{:.2}", memory.importance));
    say("confidence", &format!("{:.2}", memory.confidence));
    say("made", &format!("{} ago", ages.show(age(memory, now))));
    if !memory.tags.is_empty() {
        say("tags", &memory.tags.join(", "));
    }
    say("from", &memory.source);
    say("file", &format!("learning/{}.md", kept.name));
    lines
}

fn quote_lines(state: &State, quote: &Quote, keymap: &Keymap, room: usize) -> Vec<Line> {
    let part = state.text().unwrap_or_default();
    let mut lines = wrapped(part, room, Role::Text);
    lines.push(Line::empty());
    let scope = if quote.is_global { "everywhere" } else { "the project: the session's directory" };
    labelled(&mut lines, "title", &title_of(part), room);
    let mut say = |label: &str, value: &str, key: String| {
        labelled(&mut lines, label, &format!("{value} ({key} changes it)"), room);
    };
    say("kept as", quote.kind.as_str(), keymap.key_of(Intent::LessonKind));
    say("holds in", scope, keymap.key_of(Intent::LessonScope));
    lines.push(Line::empty());
    let key = keymap.key_of(Intent::KeepLesson);
    lines.extend(wrapped(&format!("{key} keeps it, word for word."), room, Role::Muted));
    lines
}

/// What stands in place of an empty list.
fn nothing(state: &State, keymap: &Keymap, area: Rect, pen: &mut Pen<'_>) {
    match &state.what {
        What::Kept(None) => draw_nothing("Lessons", &["Reading \u{2026}"], Role::Text, area, pen),
        What::Kept(Some(Err(why))) => {
            draw_nothing("Lessons", &["The lessons can't be read:", why], Role::Warning, area, pen);
        }
        What::Kept(Some(Ok(_))) | What::Quote(_) | What::Offered(..) => {
            let (transcript, learn) = (keymap.key_of(Intent::Transcript), keymap.key_of(Intent::Learn));
            let how = format!(
                "In a lead's transcript ({transcript}) {learn} keeps what you wrote, word for word, on a message of \
                 the user's or of the Chief's. So does headman memory add in a shell."
            );
            let words =
                ["No lessons.", "", "A lesson is what you told a lead and want others to know.", &how];
            draw_nothing("Lessons", &words, Role::Text, area, pen);
        }
    }
}
