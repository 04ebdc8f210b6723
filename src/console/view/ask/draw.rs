//! One ask on the screen: the question above, the reply below.

mod files;

use ratatui::layout::Rect;

use super::State;
use super::files::Count;
use crate::console::age::Ages;
use crate::console::intent::{Context, Intent};
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::{self, Line, draw_lines};
use crate::contract::PendingAsk;
use crate::fact::{Fate, Now, Sent};
use crate::model::Model;

/// Fewest and most rows of the composer, frame included, unless the screen is low.
const COMPOSER_ROWS: (u16, u16) = (5, 12);
/// Files listed.
const MAX_FILES: usize = 6;
/// From so many columns on its title says that the bytes are those of the whole record.
const WITH_AS_SENT: u16 = 38;
/// The last so many parts of what a record may take are told as what is left.
const NEAR: usize = 10;

/// Draws the ask into `area`; gives the place of the cursor while a reply is written.
pub fn draw(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) -> Option<(u16, u16)> {
    let below = if state.composing {
        writing_rows(state, model, keymap, area)
    } else if state.sent.is_some() || !state.composer.is_empty() {
        5.min(area.height / 2)
    } else {
        0
    };
    let above = Rect { height: area.height - below, ..area };
    let below = Rect { y: area.y + above.height, height: below, ..area };
    question(state, model, now, keymap, above, pen, ages);
    if below.height == 0 {
        return None;
    }
    if state.composing {
        return writing(state, model, keymap, (above, below), pen);
    }
    outcome(state, model, now, keymap, below, pen, ages);
    None
}

/// Rows of `area` that the text field takes, frame included.
pub fn writing_rows(state: &State, model: &Model, keymap: &Keymap, area: Rect) -> u16 {
    let told_rows = u16::from(told(state, model, keymap).is_some()) * 2;
    let wanted = (state.composer.rows(area.width.saturating_sub(4)))
        .saturating_add(2 + told_rows + files::rows(state));
    wanted.clamp(COMPOSER_ROWS.0, COMPOSER_ROWS.1).min(area.height / 2).max(3)
}

/// Draws the text field below, and paths to choose from above it; gives the place of the cursor.
pub fn writing(
    state: &State,
    model: &Model,
    keymap: &Keymap,
    (above, below): (Rect, Rect),
    pen: &mut Pen<'_>,
) -> Option<(u16, u16)> {
    let cursor = composer(state, told(state, model, keymap), below, pen);
    files::list(state, above, pen);
    cursor
}

fn question(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let inside = pen.pane(area, &state.name, !state.composing);
    if inside.is_empty() {
        return;
    }
    let room = usize::from(inside.width).saturating_sub(2);
    let key = |intent: Intent| keymap.key_of(intent);
    let mut lines = Vec::new();
    let lead = state.lead_in(model);
    match lead {
        Some(lead) => lines.push(detail::state_line(lead, model, now, pen, ages)),
        None => lines.push(Line::plain(text::line("This lead is not listed now."), Role::Warning)),
    }
    if state.is_message() {
        let earlier = model.sent_to(&state.lead);
        lines.push(Line::Rule(text::line("from you"), Role::Heading));
        if earlier.is_empty() {
            lines.push(Line::plain(text::line("Nothing yet."), Role::Muted));
        }
        lines.extend(earlier.into_iter().take(50).map(|sent| detail::sent::line(sent, room, now, ages)));
        state.rows.set(lines.len());
        draw_lines(&lines, &state.scroll, inside, pen);
        return;
    }
    let age = lead.filter(|_| state.pending).and_then(|lead| model.ask_age(lead, now));
    let (word, role) = match age {
        Some(age) => (text::line(format_args!("asks, {} ago", ages.show(age))), Role::NeedsYou),
        None if state.sent.is_some() => (text::line("asked"), Role::Heading),
        None => (text::line("no longer asks this"), Role::Warning),
    };
    lines.push(Line::Rule(word, role));
    let Some(ask) = &state.ask else { return };
    lines.extend(text::wrap(&ask.question, room).into_iter().map(|line| Line::plain(line, Role::Text)));
    if let Some(lead) = lead.filter(|_| state.composing) {
        detail::activity::last_words(&mut lines, lead, model, room);
    }
    if let Some(attached) = attached(ask) {
        lines.push(Line::Rule(text::line("attached"), Role::Heading));
        lines.extend(text::wrap(&attached, room).into_iter().map(|line| Line::plain(line, Role::Muted)));
    }
    if state.wants_reply() && !state.composing {
        lines.push(Line::empty());
        lines.push(Line::Pieces(vec![
            (text::line(key(Intent::Reply).as_str()), Role::Key),
            (text::line(" reply   "), Role::Muted),
            (text::line(key(Intent::NextAsk).as_str()), Role::Key),
            (text::line(" next ask"), Role::Muted),
        ]));
    }
    if let Some(lead) = lead {
        let mut does = Vec::new();
        detail::activity::summary(&mut does, lead, model, now, room, pen, ages);
        if !does.is_empty() {
            lines.push(Line::Rule(text::line("what it does"), Role::Heading));
            lines.append(&mut does);
        }
        detail::activity::exchange(&mut lines, lead, model, room, state.composing);
        detail::activity::files(&mut lines, lead, model, now, MAX_FILES, room, pen, ages);
    }
    let earlier: Vec<&Sent> =
        model.sent_to(&state.lead).into_iter().filter(|sent| Some(sent.id) != state.sent).collect();
    if !earlier.is_empty() {
        lines.push(Line::Rule(text::line("earlier from you"), Role::Heading));
        for sent in earlier.into_iter().take(5) {
            lines.push(detail::sent::line(sent, room, now, ages));
        }
    }
    state.rows.set(lines.len());
    draw_lines(&lines, &state.scroll, inside, pen);
}

/// What its message holds besides the question: the attachments, rendered.
fn attached(ask: &PendingAsk) -> Option<String> {
    if ask.text == ask.question {
        return None;
    }
    let (text, question) = (ask.text.to_str_lossy(), ask.question.to_str_lossy());
    let before = text.strip_suffix(&*question).unwrap_or(&text);
    let before = before.trim_end().trim_end_matches("Question:").trim_end();
    (!before.is_empty()).then(|| before.to_owned())
}

/// What there is to know before this is sent.
fn told(state: &State, model: &Model, keymap: &Keymap) -> Option<(Visible, Role)> {
    if state.underway {
        Some((text::line("Sending \u{2026}"), Role::Notice))
    } else if state.files.is_waiting(&state.composer.text()) {
        Some((text::line("Looking at the files \u{2026}"), Role::Notice))
    } else if let Some(problem) = &state.problem {
        Some((text::line(problem), Role::Alarm))
    } else if !state.pending && !state.is_message() {
        Some((text::line("The lead does not ask this any more: the draft is kept."), Role::Warning))
    } else if model.standing().lease().is_none() {
        let way = keymap.way_to(Intent::ToggleChief, Context::Composer);
        let way = way.map(|way| format!(" To become it: {way}.")).unwrap_or_default();
        Some((text::line(format_args!("Only a Chief can send; a draft is kept.{way}")), Role::Notice))
    } else {
        let recital = || state.recited_by(&keymap.key_of(Intent::Recite));
        let note = state.note.map(text::line).or_else(|| recital().map(|told| text::line(&told)));
        note.map(|note| (note, Role::Notice))
    }
}

/// The text being written, with the bytes it takes and why it can't be sent.
fn composer(
    state: &State,
    told: Option<(Visible, Role)>,
    area: Rect,
    pen: &mut Pen<'_>,
) -> Option<(u16, u16)> {
    let Count { bytes, limit, is_exact } = state.files.count(&state.composer);
    let what = if state.is_message() { "Message" } else { "Reply" };
    // What is counted is more than what is typed.
    let as_sent = if area.width < WITH_AS_SENT { "" } else { " as sent" };
    // Until its files are seen with this very text, they take what they took before.
    let goes_on = if is_exact { "" } else { " \u{2026}" };
    let title = text::line(format_args!("{what} {bytes} / {limit} bytes{as_sent}{goes_on}"));
    let inside = pen.pane(area, &title, true);
    let told_of = match bytes.checked_sub(limit) {
        Some(over @ 1..) => Some((text::line(format_args!(" {over} too many ")), Role::Alarm)),
        _ if bytes >= limit - limit / NEAR => {
            Some((text::line(format_args!(" {} left ", limit - bytes)), Role::Warning))
        }
        _ => None,
    };
    if let Some((told, role)) = told_of {
        let x = area.right().saturating_sub(told.width() as u16 + 2);
        pen.put(x, area.y, area.right(), &told, role);
    }
    let mut rows = inside;
    if let Some((told, role)) = told
        && rows.height > 1
    {
        for line in told
            .wrap(usize::from(rows.width.saturating_sub(2)))
            .into_iter()
            .take(usize::from(rows.height / 2).max(1))
        {
            rows.height -= 1;
            pen.put(rows.x + 1, rows.y, rows.right(), &line, role);
            rows.y += 1;
        }
    }
    rows.height -= files::attached(state, rows, pen);
    // As far from the frame as the question.
    let rows = Rect { x: rows.x + 1, width: rows.width.saturating_sub(2), ..rows };
    state.composer.draw(rows, pen)
}

/// What became of the reply, or that a draft waits.
fn outcome(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let key = |intent: Intent| keymap.key_of(intent);
    let Some(sent) = state.sent.and_then(|id| model.sent(id)) else {
        let inside = pen.pane(area, &text::line("Draft"), false);
        let intent = if state.is_message() { Intent::Message } else { Intent::Reply };
        let begin = text::line(format_args!("{}  {}", key(intent), state.composer.text()));
        pen.put(inside.x + 1, inside.y, inside.right(), &begin, Role::Muted);
        return;
    };
    let what = if state.is_message() { "Your message" } else { "Your reply" };
    let inside = pen.pane(area, &text::line(what), false);
    let room = usize::from(inside.width).saturating_sub(2);
    let mut lines = vec![fate_line(sent, pen), detail::sent::line(sent, room, now, ages)];
    if let Some(why) = detail::sent::lack(sent, model, now) {
        lines.extend(text::line(&why).wrap(room).into_iter().map(|line| Line::plain(line, Role::Muted)));
    }
    if sent.fate.is_doubtful() {
        lines.push(detail::sent::again(sent, model, keymap));
    }
    let y = inside.y;
    for (y, line) in (y..inside.bottom()).zip(lines) {
        if let Line::Pieces(pieces) = line {
            let mut x = inside.x + 1;
            for (piece, role) in pieces {
                x = pen.put(x, y, inside.right(), &piece, role);
            }
        }
    }
}

/// `queued → taken → delivered → answered`, as far as it has come.
fn fate_line(sent: &Sent, pen: &Pen<'_>) -> Line {
    let all = [Fate::Queued, Fate::Taken, Fate::Delivered, Fate::Answered];
    let steps = if sent.ask.is_some() { &all[..] } else { &all[..3] };
    let Some(reached) = steps.iter().position(|fate| *fate == sent.fate) else {
        return Line::plain(text::line(sent.fate.as_str()), Role::Warning);
    };
    let on = text::line(pen.glyphs().on);
    let off = text::line(pen.glyphs().off);
    let mut pieces = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let role = if at <= reached { Role::Good } else { Role::Muted };
        pieces.push((if at <= reached { on.clone() } else { off.clone() }, role));
        pieces.push((text::line(format_args!(" {}   ", step.as_str())), role));
    }
    Line::Pieces(pieces)
}
