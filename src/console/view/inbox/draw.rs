//! The inbox on the screen.

use std::time::Duration;

use ratatui::layout::Rect;

use super::{Place, State};
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::become_chief_first;
use crate::console::view::browse::{Above, draw_nothing};
use crate::console::view::detail::Line;
use crate::console::view::found;
use crate::contract::{Kind, SessionId, Timestamp, Untrusted};
use crate::fact::{Letter, Now};
use crate::model::Model;

/// From so many columns on a row also says how the text begins: of several from one lead, nothing else
/// tells which is which.
const WITH_TEXT: u16 = 30;
/// From so many on the sender's name has room beside it.
const WIDE: u16 = 46;
/// Columns of the sender beside the text, in a narrow row and in a wide one.
const SENDER: (usize, usize) = (10, 16);

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
    let above = narrowing(state, model, pen);
    if state.listed.is_empty() && above.is_none() {
        nothing(state, model, area, pen);
        return;
    }
    let rows = state.listed.len();
    let (list, beside) = state.browser.split(area, rows + usize::from(above.is_some()));
    if let Some(list) = list {
        let mail = model.mail();
        let title = text::line(format_args!("Inbox {} unread, {} in all", mail.unread, mail.total));
        let at = state.browser.at();
        state.browser.draw_list(&title, above.as_ref(), rows, at, list, pen, |at, line, pen| {
            match state.letters.get(&state.listed[at]) {
                Some(letter) => draw_letter(letter, state.lead.is_some(), model, now, line, pen, ages),
                None => drop(pen.say(line.x + 3, line.y, line.right(), "\u{2026}", Role::Muted)),
            }
        });
        if rows == 0 {
            let word = if state.is_searching() { "Searching \u{2026}" } else { "Nothing matches." };
            pen.say(list.x + 2, list.y + 2, list.right().saturating_sub(1), word, Role::Muted);
        }
    }
    let Some(beside) = beside else { return };
    let letter = state.letter();
    let title = match letter {
        Some(letter) => sender(letter.lead.as_ref(), model),
        None => text::line("Message"),
    };
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    if let Some(letter) = letter {
        let (lines, jump) = detail(state, letter, model, now, keymap, beside.room, pen, ages);
        if let Some(row) = jump {
            let height = usize::from(beside.inside.height);
            // From its beginning, where the place is in sight then.
            let row = if row < height { 0 } else { row };
            state.browser.detail().top_with(row, lines.len(), height);
        }
        state.browser.draw_detail(&lines, &beside, pen);
    }
}

/// What the list is narrowed to, if it is.
fn narrowing(state: &State, model: &Model, pen: &Pen<'_>) -> Option<Above> {
    let mut parts = Vec::new();
    if let Some(why) = &state.problem {
        parts.push(format!("Not all is shown: {why}"));
    }
    if let Some(search) = state.search.shown() {
        parts.push(search);
    }
    if state.unread {
        parts.push("unread".to_owned());
    }
    if let Some(lead) = &state.lead {
        parts.push(format!("from {}", sender(Some(lead), model)));
    }
    if parts.is_empty() {
        return None;
    }
    let more = if state.is_searching() { " \u{2026}" } else { "" };
    Some(Above {
        left: text::line(&parts.join(&format!(" {} ", pen.glyphs().separator))),
        right: text::line(format_args!("{} found{more}", state.listed.len())),
    })
}

/// The lead's name, the last one where it is not listed now; its session where it never was.
fn sender(lead: Option<&SessionId>, model: &Model) -> Visible {
    let Some(session) = lead else { return text::line("from nobody known") };
    match (model.lead(session), model.last_names(session)) {
        (Some(lead), _) => text::line(&lead.display_name),
        (None, Some(names)) => text::line(&names.display_name),
        (None, None) => text::line(session.as_untrusted()),
    }
}

/// The same where there is little room: where no lead listed is called so as well, the last part of
/// the name will do.
fn short_sender(lead: Option<&SessionId>, model: &Model) -> Visible {
    let listed = lead.and_then(|session| model.lead(session));
    let name = match (listed, lead) {
        (Some(lead), _) => Some(&lead.name),
        (None, Some(session)) => model.last_names(session).map(|names| &names.name),
        (None, None) => None,
    };
    let others = |name: &Untrusted| {
        let leads = model.roster().leads.iter();
        leads.filter(|it| it.name == *name && Some(&it.session) != lead).count()
    };
    match name {
        Some(name) if others(name) == 0 => text::line(name),
        _ => sender(lead, model),
    }
}

fn kind(letter: &Letter) -> (&'static str, Role) {
    match (&letter.refused, letter.kind) {
        // Somebody's word all the same: what is doubtful is told beside it.
        (Some(_), Some(kind)) if kind.has_ask() => ("ask?", Role::Warning),
        (Some(_), Some(_)) => ("message?", Role::Warning),
        (Some(_), None) => ("refused", Role::Warning),
        (None, Some(Kind::LeadAsk)) => ("ask", Role::NeedsYou),
        (None, _) => ("message", Role::Muted),
    }
}

/// One row: whether it is unread, who sent it unless all are of one, how it begins, what it is, how
/// old.
fn draw_letter(
    letter: &Letter,
    is_of_one: bool,
    model: &Model,
    now: Now,
    line: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let (y, end) = (line.y, line.right());
    if letter.is_unread() {
        pen.say(line.x + 1, y, end, pen.glyphs().on, Role::Notice);
    }
    let mut right = end.saturating_sub(5);
    let age = ages.show(age(letter.at, now));
    pen.put(right, y, end, &text::line(format_args!("{age:>4}")), Role::Muted);
    let (word, role) = kind(letter);
    let with_text = line.width >= WITH_TEXT;
    // What is the rule needs no word.
    if role != Role::Muted {
        right = right.saturating_sub(word.len() as u16 + 1);
        pen.say(right, y, end, word, role);
    }
    let x = line.x + 3;
    let lead = letter.lead.as_ref().and_then(|session| model.lead(session));
    if !is_of_one && !with_text {
        let room = usize::from(right.saturating_sub(x + 1));
        pen.put(x, y, right, &sender(letter.lead.as_ref(), model).truncate_middle(room), Role::Text);
        return;
    }
    // The bare question, not the attachments before it.
    let asks = lead.and_then(|lead| lead.pending_ask.as_ref()).filter(|ask| Some(ask.ask) == letter.ask);
    let begin = text::line(asks.map_or(&letter.preview, |ask| &ask.question));
    if is_of_one {
        pen.put(x, y, right.saturating_sub(1), &begin, Role::Text);
        return;
    }
    let room = if line.width < WIDE { SENDER.0 } else { SENDER.1 };
    let name = short_sender(letter.lead.as_ref(), model).truncate_middle(room);
    pen.put(x, y, right, &name, Role::Text);
    pen.put(x + room as u16 + 1, y, right.saturating_sub(1), &begin, Role::Muted);
}

/// On the wall clock: the journal's times are kept over restarts.
fn age(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(at.as_millis()))
}

/// The lines of one letter, and which one is to be brought in sight.
#[allow(clippy::too_many_arguments)]
fn detail(
    state: &State,
    letter: &Letter,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> (Vec<Line>, Option<usize>) {
    let (word, role) = kind(letter);
    let ago = ages.show(age(letter.at, now));
    let mut lines = vec![Line::Pieces(vec![
        (text::line(word), role),
        (text::line(format_args!(" received {ago} ago")), Role::Muted),
    ])];
    let mut say = |word: &str, role: Role| {
        lines.extend(text::line(word).wrap(room).into_iter().map(|line| Line::plain(line, role)));
    };
    if let Some(why) = &letter.refused {
        let not = if letter.kind.is_some() { "verified" } else { "accepted" };
        say(&format!("Not {not}: {why}."), Role::Warning);
    }
    let lead = letter.lead.as_ref().map(|session| (session, model.lead(session)));
    if let Some((session, None)) = lead {
        let session = text::line(session).truncate_middle(room.saturating_sub(32).max(8));
        say(&format!("Its lead is not listed now: {session}."), Role::Muted);
    }
    let first = become_chief_first(model, keymap);
    // Of a lead that is not listed nobody knows what it asks.
    if let Some((_, Some(lead))) = lead
        && letter.kind == Some(Kind::LeadAsk)
        && letter.refused.is_none()
    {
        let is_open = lead.pending_ask.as_ref().map(|ask| ask.ask) == letter.ask;
        match &first {
            _ if !is_open => say("It does not ask this any more.", Role::Muted),
            None => {
                say(
                    &format!("It still asks this: {} replies.", keymap.key_of(Intent::Reply)),
                    Role::NeedsYou,
                );
            }
            Some(first) => say(&format!("It still asks this: {first} to reply."), Role::NeedsYou),
        }
    }
    if letter.is_unread() {
        let on = pen.glyphs().on;
        match &first {
            None => {
                let open = keymap.key_of(Intent::Open);
                say(&format!("{on} unread: {open} marks it as read."), Role::Notice);
            }
            Some(first) => say(&format!("{on} unread: {first} to mark it as read."), Role::Notice),
        }
    }
    lines.push(Line::Rule(text::line("text"), Role::Heading));
    let Some((body, whole)) = state.text() else { return (lines, None) };
    let count = state.needle.as_ref().map_or(0, |needle| found::count(body, needle));
    let current = match state.place {
        Place::First => 0,
        Place::Nth(at) => at,
        Place::Last => count.saturating_sub(1),
    };
    let before = lines.len();
    let (body, places) = found::lines(body, state.needle.as_ref(), current, room.max(8));
    lines.extend(body);
    if let Some(Err(why)) = state.known_text(letter.seq) {
        let told = format!("\u{2026} The rest can't be read: {why}.");
        lines.extend(text::line(&told).wrap(room).into_iter().map(|line| Line::plain(line, Role::Warning)));
    } else if !whole {
        lines.push(Line::plain(text::line("\u{2026} (the rest is being read)"), Role::Muted));
    }
    // The place is known only once all of it is.
    let jump = places.get(current).filter(|_| whole && state.jumps.take()).map(|row| before + row);
    (lines, jump)
}

/// What stands in place of an empty list.
fn nothing(state: &State, model: &Model, area: Rect, pen: &mut Pen<'_>) {
    let (word, role) = match &model.mail().stopped {
        Some(why) => (format!("Nothing is received: {why}."), Role::Alarm),
        None if state.is_searching() => ("Reading the journal \u{2026}".to_owned(), Role::Muted),
        None => ("Nothing came yet. What leads send to the Chief is kept here.".to_owned(), Role::Text),
    };
    draw_nothing("Inbox", &[&word], role, area, pen);
}
