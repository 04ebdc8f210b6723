//! The pane of a lead on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::State;
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::{Line, draw_lines, state_line};
use crate::console::view::list::Scroll;
use crate::contract::Untrusted;
use crate::fact::{Foreground, Now, Peek, ProcessEvidence};
use crate::herd::{Lead, LeftOut};
use crate::model::Model;
use crate::signals::self_report;

/// From this age on what is shown is said to be old: looks are a second apart.
const OLD: Duration = Duration::from_secs(3);

/// Draws it into `area`: who it is and what runs there, and below that the end of its screen.
pub fn draw(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let lead = model.lead(&state.lead);
    let name = match (lead, model.last_names(&state.lead)) {
        (Some(lead), _) => text::line(&lead.display_name),
        (None, Some(names)) => text::line(&names.display_name),
        (None, None) => text::line(&state.lead),
    };
    // The name last: it is what stays when the title is cut.
    let inside = pen.pane(area, &text::line(format_args!("Peek (read only) {name}")), true);
    if inside.is_empty() {
        return;
    }
    let room = usize::from(inside.width).saturating_sub(2);
    let Some(lead) = lead else {
        let why = model.roster().why_not(&state.lead).map(LeftOut::sentence);
        let why = why.unwrap_or_else(|| "This lead is not listed any more".to_owned());
        let lines = wrapped(&text::line(format_args!("{why}. Its pane is not read.")), room, Role::Warning);
        draw_lines(&lines, &Scroll::default(), inside, pen);
        return;
    };
    let peek = model.peek(&state.lead);
    let most = usize::from(inside.height / 2).max(1);
    let mut head = head(lead, peek, model, now, (room, most), pen, ages);
    head.truncate(most);
    let (above, below) = (head.len() as u16, usize::from(inside.height) - head.len());
    draw_lines(&head, &Scroll::default(), Rect { height: above, ..inside }, pen);
    let rest = Rect { y: inside.y + above, height: below as u16, ..inside };
    let rows = rows(peek);
    if state.at_end.get() {
        state.scroll.top_with(rows.len().saturating_sub(1), rows.len(), below);
    }
    draw_lines(&rows, &state.scroll, rest, pen);
    state.at_end.set(state.scroll.top(rows.len(), below) + below >= rows.len());
}

/// What stands above the lead's screen, in at most so many lines of so many columns.
fn head(
    lead: &Lead,
    peek: Option<&Peek>,
    model: &Model,
    now: Now,
    (room, most): (usize, usize),
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> Vec<Line> {
    let mut lines = vec![state_line(lead, model, now, pen, ages)];
    let age = peek.and_then(|peek| peek.age(now.wall)).map(|age| (age, ages.show(age)));
    let trouble = peek.and_then(|peek| peek.trouble.as_ref()).map(|why| format!("Not read: {why}. "));
    let old = age.filter(|(age, _)| trouble.is_some() || *age >= OLD);
    let old = old.map(|(_, shown)| format!("What you see is as of {shown} ago."));
    if trouble.is_some() || old.is_some() {
        let told = format!("{}{}", trouble.unwrap_or_default(), old.unwrap_or_default());
        lines.extend(wrapped(&text::line(told.trim_end()), room, Role::Warning));
    }
    let process = peek.and_then(|peek| peek.seen.as_ref()).map(|seen| &seen.process);
    let mut place = format!("pane {}", text::line(&lead.pane));
    if let Some(Ok(process)) = process {
        for (what, pid) in [("shell", process.shell), ("foreground group", process.group)] {
            if let Some(pid) = pid {
                place += &format!(" {} {what} {pid}", pen.glyphs().separator);
            }
        }
    }
    lines.extend(wrapped(&text::line(&place), room, Role::Muted));
    match process {
        Some(Ok(process)) => programs(&mut lines, process, room, most.saturating_sub(1)),
        Some(Err(why)) => {
            let told = text::line(format_args!("The programs there are not known: {why}."));
            lines.extend(wrapped(&told, room, Role::Muted));
        }
        None => {}
    }
    lines.truncate(most.saturating_sub(1).max(1));
    lines.push(Line::Rule(text::line("screen"), Role::Heading));
    lines
}

/// The programs, a line each, as far as there are lines up to `most`.
fn programs(lines: &mut Vec<Line>, process: &ProcessEvidence, room: usize, most: usize) {
    let left = most.saturating_sub(lines.len());
    let all = process.foreground.len();
    let shown = if all > left { left.saturating_sub(1) } else { all };
    for program in &process.foreground[..shown] {
        let (pid, command) = (format!("{} ", program.pid), command(program));
        let command = command.truncate_end(room.saturating_sub(pid.len()));
        lines.push(Line::Pieces(vec![(text::line(&pid), Role::Muted), (command, Role::Text)]));
    }
    if shown < all {
        let what = if all - shown == 1 { "program" } else { "programs" };
        let more = text::line(format_args!("and {} more {what}", all - shown));
        lines.push(Line::plain(more, Role::Muted));
    }
}

fn command(program: &Foreground) -> Visible {
    let command = program.cmdline.as_ref().or(program.argv0.as_ref());
    let command = command.map(text::line).unwrap_or_default();
    match &program.state {
        Some(state) => text::line(format_args!("({}) {command}", text::line(state))),
        None => command,
    }
}

/// The rows of the lead's screen, as they stand there: what is too wide is cut, not wrapped.
fn rows(peek: Option<&Peek>) -> Vec<Line> {
    match peek {
        None => vec![Line::plain(text::line("Looking \u{2026}"), Role::Muted)],
        Some(Peek { seen: None, .. }) => Vec::new(),
        Some(Peek { seen: Some(seen), .. }) if seen.output.is_empty() => {
            vec![Line::plain(text::line("The pane shows no text."), Role::Muted)]
        }
        Some(Peek { seen: Some(seen), .. }) => {
            let screen = self_report::shown_screen(&seen.output.to_str_lossy());
            text::lines(&Untrusted::from(screen))
                .into_iter()
                .map(|row| Line::plain(row, Role::Text))
                .collect()
        }
    }
}

fn wrapped(text: &Visible, room: usize, role: Role) -> Vec<Line> {
    text.wrap(room.max(1)).into_iter().map(|line| Line::plain(line, role)).collect()
}
