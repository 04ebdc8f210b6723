//! Writing a reply: a text field that keeps what was typed exactly and shows it safely.

mod draw;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, TextArea};

/// An Enter this soon after other input belongs to a paste that came as keys.
const PASTE_GAP: Duration = Duration::from_millis(10);

/// Most text taken in, in bytes: far more than a record takes, so that a counter can say so.
const MAX_TEXT: usize = 64 * 1024;

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
    last_input: Option<Duration>,
}

impl Composer {
    /// An empty text; `measure` gives the bytes a record with it takes.
    pub fn new(measure: impl Fn(&str) -> usize + Send + 'static) -> Self {
        let bytes = measure("");
        Self { area: TextArea::default(), measure: Box::new(measure), bytes, last_input: None }
    }

    /// What was written.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The bytes a record with the text takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces the text, cursor at its end.
    pub fn set_text(&mut self, text: &str) {
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.changed();
    }

    fn changed(&mut self) {
        self.bytes = (self.measure)(&self.text());
    }

    fn has_room(&self, more: usize) -> bool {
        let used: usize = self.area.lines().iter().map(|line| line.len() + 1).sum();
        used + more <= MAX_TEXT
    }

    /// A key that is no command.
    pub fn key(&mut self, key: KeyEvent, mono: Duration) -> Result<(), Refused> {
        self.last_input = Some(mono);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char(character) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                if character.is_control() {
                    return Err(Refused::Controls);
                }
                if !self.has_room(character.len_utf8()) {
                    return Err(Refused::TooLong);
                }
                self.area.insert_char(character);
            }
            KeyCode::Tab => {
                self.area.insert_char('\t');
            }
            // The widget's own Ctrl-j deletes; a new line is the keymap's.
            KeyCode::Enter | KeyCode::Char('j' | 'm') if control || key.code == KeyCode::Enter => {}
            // What it would paste is its own yank, which may hold anything.
            _ => {
                self.area.input(key);
            }
        }
        self.changed();
        Ok(())
    }

    /// Pasted text, whole; line ends of any kind are new lines.
    pub fn paste(&mut self, text: &str, mono: Duration) -> Result<(), Refused> {
        self.last_input = Some(mono);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if !self.has_room(text.len()) {
            return Err(Refused::TooLong);
        }
        let kept: String = text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect();
        self.area.insert_str(&kept);
        self.changed();
        if kept.len() == text.len() { Ok(()) } else { Err(Refused::Controls) }
    }

    /// A new line.
    pub fn newline(&mut self, mono: Duration) {
        self.last_input = Some(mono);
        if self.has_room(1) {
            self.area.insert_newline();
            self.changed();
        }
    }

    /// Whether an Enter at `mono` comes too soon after other input to have been pressed by a hand.
    pub fn enter_is_newline(&self, mono: Duration) -> bool {
        self.last_input.is_some_and(|last| mono.saturating_sub(last) < PASTE_GAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const LATER: Duration = Duration::from_secs(1);

    fn composer() -> Composer {
        Composer::new(str::len)
    }

    fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) -> Result<(), Refused> {
        composer.key(KeyEvent::new(code, modifiers), LATER)
    }

    #[test]
    fn text_is_kept_exactly_and_measured() {
        let mut composer = composer();
        for character in "a\u{202e}é😀".chars() {
            press(&mut composer, KeyCode::Char(character), KeyModifiers::NONE).unwrap();
        }
        composer.newline(LATER);
        press(&mut composer, KeyCode::Tab, KeyModifiers::NONE).unwrap();
        assert_eq!(composer.text(), "a\u{202e}é😀\n\t");
        assert_eq!(composer.bytes(), composer.text().len());
    }

    #[test]
    fn a_paste_is_inserted_whole_and_controls_are_left_out() {
        let mut composer = composer();
        composer.paste("one\r\ntwo\rthree", LATER).unwrap();
        assert_eq!(composer.text(), "one\ntwo\nthree");
        assert_eq!(composer.paste("\u{1b}[2J\u{9b}x", LATER), Err(Refused::Controls));
        assert_eq!(composer.text(), "one\ntwo\nthree[2Jx");
        assert_eq!(composer.paste(&"y".repeat(MAX_TEXT), LATER), Err(Refused::TooLong));
        assert_eq!(composer.text(), "one\ntwo\nthree[2Jx");
    }

    #[test]
    fn an_enter_amid_other_input_is_a_new_line() {
        let mut composer = composer();
        assert!(!composer.enter_is_newline(LATER));
        composer.key(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE), LATER).unwrap();
        assert!(composer.enter_is_newline(LATER + SOON));
        assert!(!composer.enter_is_newline(LATER + PASTE_GAP));
    }

    #[test]
    fn the_widgets_own_ctrl_j_deletes_nothing() {
        let mut composer = composer();
        composer.paste("keep this", LATER).unwrap();
        press(&mut composer, KeyCode::Char('j'), KeyModifiers::CONTROL).unwrap();
        press(&mut composer, KeyCode::Char('m'), KeyModifiers::CONTROL).unwrap();
        assert_eq!(composer.text(), "keep this");
        press(&mut composer, KeyCode::Char('u'), KeyModifiers::CONTROL).unwrap();
        assert_eq!(composer.text(), "");
        composer.set_text("again");
        press(&mut composer, KeyCode::Backspace, KeyModifiers::NONE).unwrap();
        assert_eq!(composer.text(), "agai");
    }
}
