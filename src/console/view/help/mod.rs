//! What every key does, made from the keymap.

use crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::detail::{Line, draw_lines};
use super::field::Field;
use super::list::Scroll;
use crate::console::intent::{Context, Intent};
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text;
use crate::console::theme::{Mark, Role};

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    scroll: Scroll,
    filter: Field,
}

impl State {
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
pub fn draw(state: &State, keymap: &Keymap, area: Rect, pen: &mut Pen<'_>) {
    let title = match state.filter.shown() {
        None => text::line("Help"),
        Some(filter) => text::line(format_args!("Help {filter}")),
    };
    let inside = pen.pane(area, &title, true);
    if inside.is_empty() {
        return;
    }
    let wanted = state.filter.text().to_lowercase();
    let mut lines = Vec::new();
    for (context, help) in keymap.help() {
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
        lines.push(Line::plain(text::line(context.title()), Role::Heading));
        for line in fitting {
            let keys = if line.keys.is_empty() { "(no key)".to_owned() } else { line.keys.join(", ") };
            lines.push(Line::Pieces(vec![
                (text::line(format_args!("  {keys}")).pad_end(30), Role::Key),
                (text::line(line.help), Role::Text),
            ]));
        }
        lines.push(Line::empty());
    }
    if wanted.is_empty() {
        lines.push(Line::plain(text::line("Signs"), Role::Heading));
        for mark in Mark::ALL {
            lines.push(Line::Pieces(vec![
                (text::line(format_args!("  {}", pen.glyphs().mark(mark))).pad_end(30), mark.role()),
                (text::line(mark.word()), Role::Text),
            ]));
        }
        lines.push(Line::Pieces(vec![
            (text::line("  3/5").pad_end(30), Role::Working),
            (text::line("agents: active / all of this lead"), Role::Text),
        ]));
    }
    if lines.is_empty() {
        lines.push(Line::plain(text::line("Nothing matches; Esc shows all."), Role::Muted));
    }
    draw_lines(&lines, &state.scroll, inside, pen);
}
