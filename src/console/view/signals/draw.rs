//! The signals on the screen.

use ratatui::layout::Rect;

use super::{Group, Row, State, listed};
use crate::console::age::Ages;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::browse::{Above, draw_nothing};
use crate::console::view::detail::{self, Line};
use crate::contract::Timestamp;
use crate::fact::{Now, SessionRead};
use crate::herd::Lead;
use crate::model::Model;
use crate::model::signals::Judged;
use crate::signals::dirty::Mark;
use crate::signals::self_report::{Origin, Report};
use crate::signals::steer::Named;

/// Columns of an age in the list.
const AGE: usize = 4;

/// Draws list and detail into `area`.
pub fn draw(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let listed = listed(model);
    if listed.is_empty() {
        let words = ["No leads yet, so nobody is watched."];
        draw_nothing("Signals", &words, Role::Muted, area, pen);
        return;
    }
    let lines = lines(&listed);
    let at = state.browser.at();
    let cursor = lines.iter().position(|line| *line == Drawn::Listed(at)).unwrap_or_default();
    let (list, beside) = state.browser.split(area, lines.len() + 1);
    if let Some(list) = list {
        let above = above(&listed);
        let title = text::line("Signals");
        state.browser.draw_list(&title, Some(&above), lines.len(), cursor, list, pen, |at, line, pen| {
            match lines[at] {
                Drawn::Heading(word) => drop(pen.say(line.x + 1, line.y, line.right(), word, Role::Heading)),
                Drawn::Listed(at) => match &listed[at] {
                    Row::Lead { lead, judged } => {
                        draw_lead(lead, judged.as_ref(), model, now, line, pen, ages)
                    }
                    Row::Round { lead, round } => draw_round(lead, round, model, now, line, pen, ages),
                },
            }
        });
    }
    let Some(beside) = beside else { return };
    let lead = state.lead().and_then(|lead| model.lead(lead));
    let title = lead.map_or_else(|| text::line("Lead"), |lead| text::line(&lead.display_name));
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    if let Some(lead) = lead {
        let lines = told(lead, model, now, keymap, beside.room, pen, ages);
        state.browser.draw_detail(&lines, &beside, pen);
    }
}

/// What a row of the list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drawn {
    Heading(&'static str),
    Listed(usize),
}

fn lines(listed: &[Row<'_>]) -> Vec<Drawn> {
    let mut lines = Vec::new();
    let mut group = None;
    for (at, row) in listed.iter().enumerate() {
        if let Row::Lead { judged, .. } = row {
            let its = Group::of(judged.as_ref());
            if group.replace(its) != Some(its) {
                lines.push(Drawn::Heading(its.word()));
            }
        }
        lines.push(Drawn::Listed(at));
    }
    lines
}

/// Which of those listed row `at` is, if that is no heading.
pub(super) fn listed_of_row(listed: &[Row<'_>], at: usize) -> Option<usize> {
    match lines(listed).get(at) {
        Some(Drawn::Listed(at)) => Some(*at),
        Some(Drawn::Heading(_)) | None => None,
    }
}

/// How many are watched, and whether anything fired.
fn above(listed: &[Row<'_>]) -> Above {
    let judged: Vec<_> = (listed.iter())
        .filter_map(|row| match row {
            Row::Lead { judged, .. } => Some(judged.as_ref()),
            Row::Round { .. } => None,
        })
        .collect();
    let watched = judged.iter().flatten().count();
    let fired = judged.iter().flatten().filter(|it| it.standing.signal.is_some()).count();
    let left = match fired {
        0 => "nothing fires".to_owned(),
        1 => "1 lead to look at".to_owned(),
        _ => format!("{fired} leads to look at"),
    };
    let right = match judged.len() - watched {
        0 => format!("{watched} watched"),
        not => format!("{watched} watched, {not} not"),
    };
    Above { left: text::line(&left), right: text::line(&right) }
}

fn age(lead: &Lead, at: Option<u64>, model: &Model, now: Now, ages: &mut Ages) -> Option<String> {
    at.map(|at| ages.show(model.sessions().age(&lead.session, Timestamp::from_millis(at), now)))
}

/// One row: the lead's name, what it is marked with, since when.
fn draw_lead(
    lead: &Lead,
    judged: Option<&Judged<'_>>,
    model: &Model,
    now: Now,
    line: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let y = line.y;
    let fired = judged.and_then(|judged| judged.sight.fired);
    let mut right = line.right().saturating_sub(1);
    if let Some(age) = fired.and_then(|fired| age(lead, fired.since, model, now, ages)) {
        let age = text::line(&age).pad_start(AGE);
        right = right.saturating_sub(age.width() as u16);
        pen.put(right, y, line.right(), &age, Role::Muted);
        right = right.saturating_sub(1);
    }
    if let Some(word) = detail::signals::word(lead, model, now) {
        let shown = text::line(word.as_str());
        right = right.saturating_sub(shown.width() as u16);
        pen.put(right, y, line.right(), &shown, detail::signals::role(word));
        right = right.saturating_sub(1);
    }
    let x = line.x + 2;
    let room = usize::from(right.saturating_sub(x));
    pen.put(x, y, right, &text::line(&lead.display_name).truncate_middle(room), Role::Text);
}

/// One row: how long ago a round was, and what it called.
fn draw_round(
    lead: &Lead,
    round: &Named,
    model: &Model,
    now: Now,
    line: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let age = age(lead, round.at, model, now, ages).unwrap_or_default();
    let x = pen.put(line.x + 3, line.y, line.right(), &text::line(&age).pad_start(AGE), Role::Muted) + 1;
    let room = usize::from(line.right().saturating_sub(x + 1));
    pen.put(x, line.y, line.right(), &text::line(&round.what).truncate_end(room), Role::Muted);
}

/// Everything about one lead.
fn told(
    lead: &Lead,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> Vec<Line> {
    let mut lines = vec![detail::state_line(lead, model, now, pen, ages)];
    let Some(judged) = model.judged(lead) else {
        let why = match model.sessions().read(&lead.session) {
            Some(SessionRead::Unread(why)) => format!("It is not watched: {why}."),
            Some(SessionRead::Activity(_)) => {
                "It was started anew and has done nothing since: what it did before is not held against it."
                    .to_owned()
            }
            None => "Its session was not looked at yet.".to_owned(),
        };
        wrapped(&mut lines, &why, room, Role::Muted);
        return lines;
    };
    detail::signals::section(&mut lines, lead, model, now, keymap, room, ages);
    if judged.words.is_empty() {
        let watched = "Nothing fires. Watched for: the same round again and again, rounds with nothing new, \
                       checks that keep failing, work that nobody verified.";
        wrapped(&mut lines, watched, room, Role::Muted);
    }
    if let Some(advice) = judged.standing.advice {
        let reason = judged.standing.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        wrapped(&mut lines, &format!("Advice: {}{reason}.", advice.as_str()), room, Role::Text);
    }
    if let Some(report) = &judged.standing.report {
        reported(&mut lines, report, room);
    }
    let mark = match judged.sight.mark {
        Mark::Clean => None,
        Mark::ContentOnly => Some("What it changed was read again and not checked: content, not behaviour."),
        Mark::Dirty => Some("What it changed was not checked since."),
    };
    if let Some(mark) = mark {
        wrapped(&mut lines, mark, room, Role::Notice);
    }
    if !judged.sight.is_whole {
        let cut = "Only the end of its session was read: what stands before it counts as new.";
        wrapped(&mut lines, cut, room, Role::Muted);
    }
    if !judged.sight.rounds.is_empty() {
        lines.push(Line::Rule(text::line("the rounds"), Role::Heading));
    }
    for round in &judged.sight.rounds {
        let age = age(lead, round.at, model, now, ages).map(|age| format!("{age} ago ")).unwrap_or_default();
        let what = text::line(format_args!("{} {age}", text::line(&round.entry)));
        let left = room.saturating_sub(what.width());
        let called = text::line(&round.what).truncate_end(left);
        lines.push(Line::Pieces(vec![(what, Role::Muted), (called, Role::Text)]));
    }
    if let Some(draft) = judged.standing.draft.as_ref().filter(|_| judged.offers_draft()) {
        lines.push(Line::Rule(text::line("the draft"), Role::Heading));
        wrapped(&mut lines, draft, room, Role::Text);
    }
    if let Some(recital) = &judged.sight.recital {
        lines.push(Line::Rule(text::line("to hold after the compaction"), Role::Heading));
        for sentence in recital.text.lines() {
            wrapped(&mut lines, sentence, room, Role::Text);
        }
    }
    lines
}

fn reported(lines: &mut Vec<Line>, report: &Report, room: usize) {
    let origin = match report.origin {
        Origin::Reported => "It reports",
        Origin::Derived => "It reports nothing; as far as it is known it is",
    };
    let mut told = format!("{origin} {}", report.state.as_str());
    if !report.focus.is_empty() {
        told.push_str(&format!(": {}", text::line(&report.focus)));
    }
    wrapped(lines, &told, room, Role::Text);
    if let Some(next) = &report.next {
        wrapped(lines, &format!("Next: {}", text::line(next)), room, Role::Text);
    }
    for carried in &report.carry {
        wrapped(lines, &format!("Carries: {}", text::line(carried)), room, Role::Muted);
    }
}

fn wrapped(lines: &mut Vec<Line>, told: &str, room: usize, role: Role) {
    let wrapped: Vec<Visible> = text::line(told).wrap(room.max(8));
    lines.extend(wrapped.into_iter().map(|line| Line::plain(line, role)));
}
