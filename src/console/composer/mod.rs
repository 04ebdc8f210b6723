//! Writing a reply: a text field that keeps what was typed exactly and shows it safely.
//!
//! The text and its history are the widget's; how it is shown, and so what a row is, is `layout`'s:
//! the widget would show escapes and bidi marks raw.

mod draw;
mod layout;

use std::cell::Cell;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_textarea::{CursorMove, TextArea};

use super::files::mention;
use layout::Layout;

/// An Enter this soon after other input belongs to a paste that came as keys.
const PASTE_GAP: Duration = Duration::from_millis(10);

/// Most text taken in, in bytes: far more than a record takes, so that a counter can say so.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// Steps that can be undone; the widget counts each character as one.
const UNDO_STEPS: usize = 2_000;

/// Why input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It holds control characters.
    #[error("Control characters were left out of the text.")]
    Controls,
    /// It is longer than anything that could be sent.
    #[error("That is more text than can ever be sent; it was not taken.")]
    TooLong,
}

/// A text being written.
pub struct Composer {
    area: TextArea<'static>,
    /// The bytes a record with that text takes.
    measure: Box<dyn Fn(&str) -> usize + Send>,
    bytes: usize,
    /// Whether it mentions files.
    mentions: bool,
    last_input: Option<Duration>,
    /// An Enter that may be the first of a paste.
    held: Option<Duration>,
    /// Columns and rows of the last drawing: what up and down mean depends on it.
    shown: Cell<(u16, u16)>,
    /// The column that going up and down keeps to, past shorter rows.
    goal: Option<usize>,
    /// What whole texts were replaced by: to the widget that is two steps.
    replacements: Vec<String>,
}

impl Composer {
    /// An empty text; `measure` gives the bytes a record with it takes.
    pub fn new(measure: impl Fn(&str) -> usize + Send + 'static) -> Self {
        let bytes = measure("");
        Self {
            area: field(Vec::new()),
            measure: Box::new(measure),
            bytes,
            mentions: false,
            last_input: None,
            held: None,
            shown: Cell::new((80, 8)),
            goal: None,
            replacements: Vec::new(),
        }
    }

    /// What was written.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Whether it mentions files.
    pub fn mentions_any(&self) -> bool {
        self.mentions
    }

    /// The bytes a record with the text takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces the text, cursor at its end. It may come from a file, so control characters are
    /// left out here, too; what they are is no part of what can be undone.
    pub fn set_text(&mut self, text: &str) {
        let text = without_controls(text);
        self.area = field(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.goal = None;
        self.held = None;
        self.replacements.clear();
        self.changed();
    }

    fn changed(&mut self) {
        self.bytes = (self.measure)(&self.text());
        let mentions = |line: &String| line.contains('@') && !mention::mentions(line).is_empty();
        self.mentions = self.area.lines().iter().any(mentions);
    }

    fn has_room(&self, more: usize) -> bool {
        let used: usize = self.area.lines().iter().map(|line| line.len() + 1).sum();
        used + more <= MAX_TEXT
    }

    /// A key that is no command. What the widget would do with keys that mark a range is left
    /// out: the range would not be seen, and the next key would replace it.
    pub fn key(&mut self, key: KeyEvent, mono: Duration) -> Result<(), Refused> {
        if key.kind == KeyEventKind::Release {
            return Ok(());
        }
        self.input_at(mono);
        let goal = self.goal.take();
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let modifiers = key.modifiers - KeyModifiers::SHIFT;
        let page = isize::from(i16::try_from(self.shown.get().1).unwrap_or(i16::MAX)).max(1);
        let (control, alt) = (KeyModifiers::CONTROL, KeyModifiers::ALT);
        match (key.code, modifiers) {
            (KeyCode::Char(character), KeyModifiers::NONE) => return self.typed(character),
            (KeyCode::Tab, KeyModifiers::NONE) if !shift => return self.typed('\t'),
            (KeyCode::Up, KeyModifiers::NONE) | (KeyCode::Char('p'), KeyModifiers::CONTROL) => {
                self.move_rows(-1, goal);
            }
            (KeyCode::Down, KeyModifiers::NONE) | (KeyCode::Char('n'), KeyModifiers::CONTROL) => {
                self.move_rows(1, goal);
            }
            (KeyCode::PageUp, _) => self.move_rows(-page, goal),
            (KeyCode::PageDown, _) => self.move_rows(page, goal),
            (KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End, _)
            | (KeyCode::Backspace | KeyCode::Delete, _) => {
                self.area.input(KeyEvent::new(key.code, modifiers));
            }
            // Its Ctrl-j and Ctrl-m are not among them: one deletes, and a new line is the keymap's; so
            // are undoing and doing again.
            (KeyCode::Char('a' | 'b' | 'd' | 'e' | 'f' | 'h' | 'k' | 'w' | 'y'), only) if only == control => {
                self.area.input(KeyEvent::new(key.code, only));
            }
            (KeyCode::Char('b' | 'd' | 'f' | 'h' | '<' | '>'), only) if only == alt => {
                self.area.input(KeyEvent::new(key.code, only));
            }
            _ => return Ok(()),
        }
        self.changed();
        Ok(())
    }

    fn typed(&mut self, character: char) -> Result<(), Refused> {
        if character.is_control() && character != '\t' {
            return Err(Refused::Controls);
        }
        if !self.has_room(character.len_utf8()) {
            return Err(Refused::TooLong);
        }
        self.area.insert_char(character);
        self.changed();
        Ok(())
    }

    /// Moves the cursor by rows as they are shown, not by lines.
    fn move_rows(&mut self, rows: isize, goal: Option<usize>) {
        let layout = Layout::new(self.area.lines(), self.shown.get().0);
        let cursor = self.area.cursor();
        let (row, column) = layout.place(cursor.0, cursor.1);
        let goal = goal.unwrap_or(column);
        let (line, character) = layout.at(row.saturating_add_signed(rows), goal);
        let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(small(line), small(character)));
        self.goal = Some(goal);
    }

    /// Pasted text, whole; line ends of any kind are new lines.
    pub fn paste(&mut self, text: &str, mono: Duration) -> Result<(), Refused> {
        self.input_at(mono);
        self.goal = None;
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = without_controls(&text);
        if !self.has_room(kept.len()) {
            return Err(Refused::TooLong);
        }
        self.area.insert_str(&kept);
        self.changed();
        if kept.len() == text.len() { Ok(()) } else { Err(Refused::Controls) }
    }

    /// Replaces the text by one that was written elsewhere, as a step that can be undone. Control
    /// characters are left out.
    pub fn replace(&mut self, text: &str) -> Result<(), Refused> {
        let kept = without_controls(text);
        if kept.len() > MAX_TEXT {
            return Err(Refused::TooLong);
        }
        (self.goal, self.held) = (None, None);
        if !self.is_empty() && !kept.is_empty() {
            self.replacements.push(kept.clone());
        }
        self.area.select_all();
        self.area.cut();
        self.area.insert_str(&kept);
        self.changed();
        if kept.len() == text.len() { Ok(()) } else { Err(Refused::Controls) }
    }

    /// The cursor's line, and what stands before the cursor there.
    pub fn before_cursor(&self) -> (usize, String) {
        let cursor = self.area.cursor();
        let (line, column) = (cursor.0, cursor.1);
        let text = self.area.lines().get(line).map(|line| line.chars().take(column).collect());
        (line, text.unwrap_or_default())
    }

    /// Puts `text` in place of what stands between the column `from`, in characters, and the cursor,
    /// and a space behind what is `whole`, unless one stands there.
    pub fn complete(&mut self, from: usize, text: &str, whole: bool) -> Result<(), Refused> {
        let (line, before) = self.before_cursor();
        let typed: String = before.chars().skip(from).collect();
        let follows = self.area.lines().get(line).and_then(|line| line.chars().nth(before.chars().count()));
        let space = if whole && !follows.is_some_and(char::is_whitespace) { " " } else { "" };
        if !self.has_room(text.len() + space.len()) {
            return Err(Refused::TooLong);
        }
        self.goal = None;
        // What is only continued is one step.
        let rest = text.strip_prefix(&typed).unwrap_or_else(|| {
            for _ in typed.chars() {
                self.area.delete_char();
            }
            text
        });
        self.area.insert_str(format!("{rest}{space}"));
        self.changed();
        Ok(())
    }

    /// The bytes a record with another text takes.
    pub fn bytes_of(&self, text: &str) -> usize {
        (self.measure)(text)
    }

    /// Whether a Tab at `mono` is part of a paste, as an Enter would be.
    pub fn is_amid_input(&self, mono: Duration) -> bool {
        self.held.is_some() || self.enter_is_newline(mono)
    }

    /// Takes back what was done last; says whether there was anything.
    pub fn undo(&mut self, mono: Duration) -> bool {
        self.input_at(mono);
        self.goal = None;
        let replacement = self.replacements.contains(&self.text());
        let undone = self.area.undo();
        if replacement && self.is_empty() {
            self.area.undo();
        }
        self.changed();
        undone
    }

    /// Does again what was taken back last; says whether there was anything.
    pub fn redo(&mut self, mono: Duration) -> bool {
        self.input_at(mono);
        self.goal = None;
        let done = self.area.redo();
        if done && self.is_empty() && self.area.redo() && !self.replacements.contains(&self.text()) {
            self.area.undo();
        }
        self.changed();
        done
    }

    /// A new line.
    pub fn newline(&mut self, mono: Duration) {
        self.input_at(mono);
        self.break_line();
    }

    fn break_line(&mut self) {
        self.goal = None;
        if self.has_room(1) {
            self.area.insert_newline();
            self.changed();
        }
    }

    /// Enter, where it is the key that sends. Amid other input it is a new line at once; else it
    /// is held until [`Composer::settle`] says that nothing followed it either: a paste may begin
    /// with a line's end, and what stood there before must not go out for it.
    pub fn enter(&mut self, mono: Duration) {
        if self.held.is_some() || self.enter_is_newline(mono) {
            self.newline(mono);
        } else {
            self.last_input = Some(mono);
            self.held = Some(mono);
        }
    }

    /// Whether an Enter stood alone and the text is to be sent now. To be asked before input of
    /// `mono` is handed in, and at [`Composer::deadline`].
    pub fn settle(&mut self, mono: Duration) -> bool {
        let alone = self.held.is_some_and(|held| mono.saturating_sub(held) >= PASTE_GAP);
        if alone {
            self.held = None;
        }
        alone
    }

    /// When to ask [`Composer::settle`], should nothing be typed.
    pub fn deadline(&self) -> Option<Duration> {
        self.held.map(|held| held + PASTE_GAP)
    }

    /// Notes input; an Enter still held was a line's end before it.
    fn input_at(&mut self, mono: Duration) {
        self.last_input = Some(mono);
        if self.held.take().is_some() {
            self.break_line();
        }
    }

    /// Whether an Enter at `mono` comes too soon after other input to have been pressed by a hand.
    pub fn enter_is_newline(&self, mono: Duration) -> bool {
        self.last_input.is_some_and(|last| mono.saturating_sub(last) < PASTE_GAP)
    }
}

fn field(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_max_histories(UNDO_STEPS);
    area
}

/// What may be typed: everything but control characters other than new line and tab.
fn without_controls(text: &str) -> String {
    text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests;
