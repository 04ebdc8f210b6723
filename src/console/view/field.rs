//! A text field of one line: what a list is filtered by, or searched for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Characters it takes.
const MAX: usize = 200;

/// What was typed, and whether more goes into it.
#[derive(Debug, Default, Clone)]
pub struct Field {
    text: String,
    editing: bool,
}

impl Field {
    /// One that says `text`.
    pub fn with(text: &str) -> Self {
        Self { text: text.to_owned(), editing: false }
    }

    /// Has what is typed go into it.
    pub fn edit(&mut self) {
        self.editing = true;
    }

    /// Leaves it as it is.
    pub fn keep(&mut self) {
        self.editing = false;
    }

    /// Empties and leaves it; says whether there was anything to do.
    pub fn clear(&mut self) -> bool {
        let was = self.editing || !self.text.is_empty();
        *self = Self::default();
        was
    }

    /// What stands in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what is typed goes into it.
    pub fn is_editing(&self) -> bool {
        self.editing
    }

    /// As it is shown: with a cursor while it is written in; nothing while it is not in use.
    pub fn shown(&self) -> Option<String> {
        match (self.text.as_str(), self.editing) {
            ("", false) => None,
            (text, true) => Some(format!("/ {text}\u{2581}")),
            (text, false) => Some(format!("/ {text}")),
        }
    }

    /// What a key that is text does; says whether the text is another now.
    pub fn typed(&mut self, key: KeyEvent) -> bool {
        if !self.editing {
            return false;
        }
        let before = self.text.len();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char('w') if control => {
                let end = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(end);
            }
            KeyCode::Char(character) if !control => self.push(character),
            KeyCode::Backspace => drop(self.text.pop()),
            _ => {}
        }
        self.text.len() != before
    }

    /// Pasted text goes in as one line; says whether the text is another now.
    pub fn pasted(&mut self, text: &str) -> bool {
        let before = self.text.len();
        if self.editing {
            text.chars().filter(|character| !character.is_control()).for_each(|it| self.push(it));
        }
        self.text.len() != before
    }

    fn push(&mut self, character: char) {
        if self.text.chars().count() < MAX {
            self.text.push(character);
        }
    }
}
