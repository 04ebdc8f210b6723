//! What every key does, made from the keymap.

use crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::detail::{Line, draw_lines};
use super::field::Field;
use super::list::Scroll;
use crate::console::intent::{Context, Intent};
use crate::console::keymap::{HelpLine, Keymap};
use crate::console::paint::Pen;
use crate::console::snippets::Snippets;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};

/// Columns of a snippet that are shown.
const SNIPPET: usize = 60;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    /// The screen it was opened on.
    here: Option<Context>,
    scroll: Scroll,
    filter: Field,
}

impl State {
    /// One that begins with what keys do on the screen `here`.
    pub fn of(here: Context) -> Self {
        Self { here: Some(here), ..Self::default() }
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        if self.filter.is_editing() { Context::Filter } else { Context::Help }
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent) {
        match intent {
            Intent::Filter => self.filter.edit(),
            Intent::KeepFilter => self.filter.keep(),
            _ => self.scroll.intent(intent),
        }
    }

    /// What a key that is text does to the filter.
    pub fn typed(&mut self, key: KeyEvent) {
        if self.filter.typed(key) {
            self.scroll = Scroll::default();
        }
    }

    /// Pasted text goes into the filter as one line.
    pub fn pasted(&mut self, text: &str) {
        if self.filter.pasted(text) {
            self.scroll = Scroll::default();
        }
    }

    /// Backs out of the filter; says whether the help stays open.
    pub fn back(&mut self) -> bool {
        self.filter.clear()
    }
}

/// Draws the help into `area`, frame included.
pub fn draw(state: &State, keymap: &Keymap, snippets: &Snippets, area: Rect, pen: &mut Pen<'_>) {
    let title = match state.filter.shown() {
        None => text::line("Help"),
        Some(filter) => text::line(format_args!("Help {filter}")),
    };
    let inside = pen.pane(area, &title, true);
    if inside.is_empty() {
        return;
    }
    let wanted = state.filter.text().to_lowercase();
    let help = help(keymap.help(state.here), snippets);
    let room = usize::from(inside.width).saturating_sub(2);
    let shown = |keys: &[String]| match keys {
        [] => text::line("(no key)"),
        keys => text::line(&keys.join(", ")),
    };
    let longest = help.iter().flat_map(|(_, help)| help).map(|line| shown(&line.keys).width()).max();
    // What the keys do has half of the width at least.
    let column = longest.unwrap_or(0).min((room / 2).saturating_sub(4)).max(1);
    let mut lines = Vec::new();
    for (context, help) in help {
        let fitting: Vec<_> = help
            .into_iter()
            .filter(|line| {
                wanted.is_empty()
                    || line.help.to_lowercase().contains(&wanted)
                    || line.name.contains(&wanted)
                    || line.keys.iter().any(|key| key.to_lowercase() == wanted)
            })
            .collect();
        if fitting.is_empty() {
            continue;
        }
        let title = text::line(context.title()).wrap(room);
        lines.extend(title.into_iter().map(|line| Line::plain(line, Role::Heading)));
        for line in fitting {
            table_row(&mut lines, (&shown(&line.keys), Role::Key), &line.help, column, room);
        }
        lines.push(Line::empty());
    }
    if wanted.is_empty() {
        lines.push(Line::plain(text::line("Signs"), Role::Heading));
        for mark in Mark::ALL {
            let sign = text::line(pen.glyphs().mark(mark));
            table_row(&mut lines, (&sign, mark.role()), mark.word(), column, room);
        }
        let agents = "agents: active / all of this lead";
        table_row(&mut lines, (&text::line("3/5"), Role::Working), agents, column, room);
    }
    if lines.is_empty() {
        lines.push(Line::plain(text::line("Nothing matches; Esc shows all."), Role::Muted));
    }
    draw_lines(&lines, &state.scroll, inside, pen);
}

/// The help of what there is: a snippet is told by its text.
fn help(mut help: Vec<(Context, Vec<HelpLine>)>, snippets: &Snippets) -> Vec<(Context, Vec<HelpLine>)> {
    for (_, lines) in &mut help {
        lines.retain_mut(|line| {
            let Intent::Snippet(number) = line.intent else { return true };
            let Some(text) = snippets.get(number) else { return false };
            line.help = format!("Insert: {}", text::line(text).truncate_end(SNIPPET));
            true
        });
    }
    help
}

/// Keys or a sign in a column of their own, and beside it what is said of them; each is wrapped where it
/// does not fit.
fn table_row(lines: &mut Vec<Line>, (left, role): (&Visible, Role), right: &str, column: usize, room: usize) {
    let mut left = left.wrap(column).into_iter();
    let mut right = text::line(right).wrap(room.saturating_sub(column + 4).max(8)).into_iter();
    loop {
        let (keys, told) = (left.next(), right.next());
        if keys.is_none() && told.is_none() {
            return;
        }
        let keys = text::line(format_args!("  {}", keys.unwrap_or_default()));
        lines.push(Line::Pieces(vec![
            (keys.pad_end(column + 4), role),
            (told.unwrap_or_default(), Role::Text),
        ]));
    }
}
