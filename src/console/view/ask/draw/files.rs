//! The files of what is written, on the screen: which go along and how, and the paths listed.

use ratatui::layout::Rect;

use super::super::State;
use crate::chief::attach::Form;
use crate::console::files::list::{Listing, What};
use crate::console::files::size;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;

/// Most rows that say what goes along.
const FILES: usize = 4;
/// Most rows of the list of paths.
const PATHS: u16 = 8;

/// How many rows say what goes along.
pub(super) fn rows(state: &State) -> u16 {
    u16::try_from(lines(state, 0).len()).unwrap_or(u16::MAX)
}

/// Draws them at the bottom of `area`, below the text and in half of it where that is long; gives how
/// many rows that took.
pub(super) fn attached(state: &State, area: Rect, pen: &mut Pen<'_>) -> u16 {
    let lines = lines(state, usize::from(area.width.saturating_sub(2)));
    let text = state.composer.rows(area.width.saturating_sub(2)).max(1);
    let room = area.height.saturating_sub(text).max(area.height / 2);
    let shown = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(room);
    for (y, (line, role)) in (area.bottom() - shown..area.bottom()).zip(lines) {
        pen.put(area.x + 1, y, area.right().saturating_sub(1), &line, role);
    }
    shown
}

/// What is known of the files, one line each, for so many columns.
fn lines(state: &State, width: usize) -> Vec<(Visible, Role)> {
    let Some(look) = state.files.last_look().filter(|look| look.mentions_any()) else { return Vec::new() };
    if let Some(why) = &look.problem {
        return vec![(text::line(why), Role::Alarm)];
    }
    let more = look.attached.len().saturating_sub(FILES);
    let mut lines: Vec<(Visible, Role)> = (look.attached.iter().take(FILES))
        .map(|file| {
            let (how, role) = form(file.form);
            let how = text::line(format_args!("  {}, {how}", size(file.bytes)));
            let name = text::line(&file.name).truncate_middle(width.saturating_sub(how.width() + 2).max(8));
            (text::line(format_args!("+ {name}{how}")), role)
        })
        .collect();
    if more > 0 {
        lines.push((text::line(format_args!("+ {more} more files")), Role::Notice));
    }
    // What is being typed is no file yet.
    if !look.only_text.is_empty() && state.files.list().is_none() {
        let names: Vec<String> = look.only_text.iter().map(|name| format!("@{name}")).collect();
        lines.push((text::line(format_args!("no file, only text: {}", names.join(" "))), Role::Muted));
    }
    lines
}

fn form(form: Form) -> (String, Role) {
    match form {
        Form::Inline => ("with its content".to_owned(), Role::Good),
        Form::Reference(why) => (format!("by its path: {}", why.as_str()), Role::Notice),
    }
}

/// Draws the paths that are offered over the bottom of `area`, above the field.
pub(super) fn list(state: &State, area: Rect, pen: &mut Pen<'_>) {
    let Some(listing) = state.files.list() else { return };
    let count = u16::try_from(listing.entries.len()).unwrap_or(u16::MAX);
    let told = told(listing);
    let height = (count.min(PATHS) + u16::from(told.is_some()) + 2).min(area.height);
    if height < 3 {
        return;
    }
    let area = Rect { y: area.bottom() - height, height, ..area };
    pen.blank(area);
    let title = text::line(format_args!("Attach @{}", listing.typed));
    let mut inside = pen.pane(area, &title, true);
    if let Some((told, role)) = told
        && inside.height > 0
    {
        inside.height -= 1;
        pen.put(inside.x + 1, inside.bottom(), inside.right(), &told, role);
    }
    let chosen = state.files.chosen;
    let top = (chosen + 1).saturating_sub(usize::from(inside.height));
    for (y, (at, entry)) in (inside.y..inside.bottom()).zip(listing.entries.iter().enumerate().skip(top)) {
        let role = |role| if at == chosen { Role::Selection } else { role };
        if at == chosen {
            pen.fill(Rect { y, height: 1, ..inside }, Role::Selection);
        }
        let (name, how, how_role) = match &entry.what {
            What::Directory => (format!("{}/", entry.name), String::new(), Role::Muted),
            What::File(bytes, form) => {
                let (how, role) = self::form(*form);
                (entry.name.clone(), format!("{}, {how}", size(*bytes)), role)
            }
            What::Not(why) => (entry.name.clone(), format!("can't go along: {why}"), Role::Warning),
        };
        let how = text::line(&how).truncate_end(usize::from(inside.width).saturating_sub(12));
        let end = inside.right().saturating_sub(how.width() as u16 + 2);
        let room = usize::from(end.saturating_sub(inside.x + 1));
        pen.put(inside.x + 1, y, end, &text::line(&name).truncate_middle(room), role(Role::Text));
        pen.put(end + 1, y, inside.right(), &how, role(how_role));
    }
}

/// What the list lacks.
fn told(listing: &Listing) -> Option<(Visible, Role)> {
    if let Some(why) = &listing.problem {
        return Some((text::line(format_args!("It can't be read: {why}")), Role::Warning));
    }
    let mut told = Vec::new();
    if listing.more > 0 {
        told.push(format!("{} more: type on", listing.more));
    }
    if listing.cut {
        told.push("the directory is too large to be read whole".to_owned());
    }
    if listing.unwritable > 0 {
        told.push(format!("{} have names that no text can hold", listing.unwritable));
    }
    (!told.is_empty()).then(|| (text::line(&told.join("; ")), Role::Muted))
}
