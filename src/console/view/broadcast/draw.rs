//! The broadcast on the screen: to whom above, the text below.

use ratatui::layout::Rect;

use super::{Counts, Progress, Recipient, State};
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};
use crate::console::view::detail::{Line, draw_lines};
use crate::console::view::{ask, mark_of};
use crate::contract::SessionId;
use crate::fact::{Fate, Now};
use crate::herd::order;
use crate::model::Model;

/// Columns a name may take.
const MAX_NAME: usize = 48;
/// Rows of the text once it goes out, frame included.
const TEXT_ROWS: u16 = 5;

/// Draws it into `area`; gives the place of the cursor while it is written.
pub fn draw(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    area: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) -> Option<(u16, u16)> {
    let writes = state.is_writing();
    let below = match writes {
        true => ask::draw::writing_rows(&state.writer, model, keymap, area),
        false => TEXT_ROWS.min(area.height / 2),
    };
    let above = Rect { height: area.height - below, ..area };
    let below = Rect { y: area.y + above.height, height: below, ..area };
    let inside = pen.pane(above, &title(state, pen), !writes);
    if !inside.is_empty() {
        let room = usize::from(inside.width).saturating_sub(2);
        draw_lines(&lines(state, model, now, keymap, room, pen, ages), &state.scroll, inside, pen);
    }
    if writes {
        return ask::draw::writing(&state.writer, model, keymap, (above, below), pen);
    }
    let inside = pen.pane(below, &text::line("Message"), false);
    let room = usize::from(inside.width).saturating_sub(2);
    for (y, line) in (inside.y..inside.bottom()).zip(text::wrap(state.text(), room)) {
        pen.put(inside.x + 1, y, inside.right(), &line, Role::Muted);
    }
    None
}

fn title(state: &State, pen: &Pen<'_>) -> Visible {
    let count = state.recipients().len();
    let leads = if count == 1 { "lead" } else { "leads" };
    if state.is_writing() {
        return text::line(format_args!("Broadcast to {count} {leads}"));
    }
    let Counts { open, sent, refused } = state.counts();
    let told: Vec<String> = [(open, "open"), (sent, "sent"), (refused, "not sent")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let told = told.join(&format!(" {} ", pen.glyphs().separator));
    text::line(format_args!("Broadcast to {count} {leads}: {told}"))
}

#[allow(clippy::too_many_arguments)]
fn lines(
    state: &State,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> Vec<Line> {
    let leads = &model.roster().leads;
    let names = order::shown_names(leads);
    let name_of = |session: &SessionId| match leads.iter().position(|lead| lead.session == *session) {
        Some(at) => text::line(&names[at]),
        None => match model.last_names(session) {
            Some(names) => text::line(&names.display_name),
            None => text::line(&order::unnamed(session)),
        },
    };
    let names: Vec<Visible> = state.recipients().iter().map(|it| name_of(it.lead())).collect();
    // The sign and the word beside it have their room.
    let most = MAX_NAME.min(room.saturating_sub(14)).max(8);
    let column = names.iter().map(Visible::width).max().unwrap_or(0).min(most);
    let mut lines = Vec::new();
    for (recipient, name) in state.recipients().iter().zip(names) {
        let (sign, word, role) = match state.is_writing() {
            true => before(recipient, model, now, pen, ages),
            false => after(recipient, model, pen),
        };
        lines.push(Line::Pieces(vec![
            (text::line(format_args!("{sign} ")), role),
            (name.truncate_middle(column).pad_end(column + 2), Role::Text),
            (text::line(&word), role),
        ]));
        if let Progress::Refused(why) = recipient.progress()
            && !state.is_writing()
        {
            let why = text::line(why).wrap(room.saturating_sub(4));
            lines.extend(
                why.into_iter()
                    .map(|line| Line::Pieces(vec![(text::line("    "), Role::Text), (line, Role::Muted)])),
            );
        }
    }
    if !state.is_writing() && state.counts().refused > 0 && !state.is_under_way() {
        lines.push(Line::empty());
        lines.push(Line::Pieces(vec![
            (text::line(keymap.key_of(Intent::SendAgain).as_str()), Role::Key),
            (text::line(" send it where it was not sent"), Role::Muted),
        ]));
    }
    lines
}

/// Whether a lead can be written to, and what it does, before anything is sent.
fn before(
    recipient: &Recipient,
    model: &Model,
    now: Now,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> (&'static str, String, Role) {
    let Some(lead) = model.lead(recipient.lead()) else {
        let sign = pen.glyphs().mark(Mark::Lost);
        return (sign, "not listed now: nothing can be sent to it".to_owned(), Role::Warning);
    };
    let mark = mark_of(lead.state, lead.counts.active);
    let since = model.state_age(&lead.session, now).map(|(age, _)| ages.show(age)).unwrap_or_default();
    let asks = if lead.needs_you() { ", asks" } else { "" };
    (pen.glyphs().mark(mark), format!("{} {since}{asks}", mark.word()), mark.role())
}

/// What became of its message.
fn after(recipient: &Recipient, model: &Model, pen: &Pen<'_>) -> (&'static str, String, Role) {
    let glyphs = pen.glyphs();
    match recipient.progress() {
        Progress::Waiting => (glyphs.off, "waits".to_owned(), Role::Muted),
        Progress::Underway => (glyphs.off, "being sent".to_owned(), Role::Notice),
        Progress::Refused(_) => (glyphs.mark(Mark::Lost), "not sent".to_owned(), Role::Alarm),
        Progress::Sent(id) => {
            let fate = model.sent(*id).map_or(Fate::Queued, |sent| sent.fate);
            let role = if fate.is_doubtful() { Role::Warning } else { Role::Good };
            (glyphs.on, fate.as_str().to_owned(), role)
        }
    }
}
