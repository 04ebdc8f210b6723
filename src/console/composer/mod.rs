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

    /// Hands in a paste as keys, from `at` on, as the loop does; counts what would be sent.
    fn keys(composer: &mut Composer, text: &str, mut at: Duration, apart: Duration) -> usize {
        let mut sent = 0;
        for character in text.chars() {
            sent += usize::from(composer.settle(at));
            match character {
                '\r' => composer.enter(at),
                _ => composer.key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE), at).unwrap(),
            }
            at += apart;
        }
        sent + composer.deadline().map_or(0, |deadline| usize::from(composer.settle(deadline)))
    }

    #[test]
    fn no_enter_of_a_paste_sends_not_even_the_first_or_last() {
        for text in ["\rone\r\rtwo", "one\r", "\r\r"] {
            for apart in [0, 1, 9] {
                let mut composer = composer();
                composer.set_text("half written ");
                let sent = keys(&mut composer, text, LATER, Duration::from_millis(apart));
                assert_eq!(sent, 0, "{text:?}, {apart} ms apart");
                assert_eq!(composer.text(), format!("half written {}", text.replace('\r', "\n")));
            }
        }
    }

    #[test]
    fn an_enter_alone_sends_once_and_is_no_part_of_the_text() {
        let mut composer = composer();
        assert_eq!(keys(&mut composer, "ok\r", LATER, PASTE_GAP), 1);
        assert_eq!(composer.text(), "ok");
        assert_eq!((composer.deadline(), composer.settle(LATER * 9)), (None, false));
        composer.enter(LATER * 2);
        assert!(!composer.settle(LATER * 2 + SOON));
        assert_eq!(composer.deadline(), Some(LATER * 2 + PASTE_GAP));
        composer.set_text("another");
        assert!(!composer.settle(LATER * 3), "an Enter belongs to the text it was pressed in");
    }

    #[test]
    fn the_widgets_own_ctrl_j_deletes_nothing() {
        let mut composer = composer();
        composer.paste("keep this", LATER).unwrap();
        press(&mut composer, KeyCode::Char('j'), KeyModifiers::CONTROL).unwrap();
        press(&mut composer, KeyCode::Char('m'), KeyModifiers::CONTROL).unwrap();
        assert_eq!(composer.text(), "keep this");
        composer.undo(LATER);
        assert_eq!(composer.text(), "");
        composer.set_text("again");
        press(&mut composer, KeyCode::Backspace, KeyModifiers::NONE).unwrap();
        assert_eq!(composer.text(), "agai");
    }

    fn type_text(composer: &mut Composer, text: &str) {
        for character in text.chars() {
            press(composer, KeyCode::Char(character), KeyModifiers::NONE).unwrap();
        }
    }

    /// The text with the cursor in it.
    fn shown(composer: &Composer) -> String {
        let cursor = composer.area.cursor();
        let mut lines: Vec<String> = composer.area.lines().to_vec();
        let at = lines[cursor.0].char_indices().nth(cursor.1).map_or(lines[cursor.0].len(), |(at, _)| at);
        lines[cursor.0].insert(at, '|');
        lines.join("\n")
    }

    #[test]
    fn control_characters_are_refused_wherever_they_come_from() {
        let mut composer = composer();
        for code in (0..0x20).chain(0x7f..=0x9f).filter(|code| !matches!(code, 9 | 10)) {
            let control = char::from_u32(code).unwrap();
            let typed = press(&mut composer, KeyCode::Char(control), KeyModifiers::NONE);
            assert_eq!(typed, Err(Refused::Controls), "{control:?}");
            composer.set_text(&format!("a{control}b\n\tc"));
            assert_eq!(composer.text(), "ab\n\tc", "{control:?}, as from a draft's file");
            composer.set_text("");
        }
    }

    #[test]
    fn what_was_typed_and_pasted_can_be_undone_and_done_again() {
        let mut composer = composer();
        type_text(&mut composer, "one two three four five six seven eight nine ten eleven twelve");
        let typed = composer.text();
        composer.paste(" and\nmore", LATER).unwrap();
        let all = composer.text();
        composer.undo(LATER);
        assert_eq!(composer.text(), typed, "a paste is one step");
        assert_eq!(composer.bytes(), typed.len());
        composer.redo(LATER);
        assert_eq!(composer.text(), all);
        for _ in 0..=typed.len() {
            composer.undo(LATER);
        }
        assert_eq!((composer.text().as_str(), composer.bytes()), ("", 0));
    }

    #[test]
    fn a_text_from_elsewhere_is_one_step_and_has_no_controls() {
        let mut composer = composer();
        type_text(&mut composer, "a");
        assert_eq!(composer.replace("b\u{1b}[1m\nc"), Err(Refused::Controls));
        assert_eq!((composer.text().as_str(), composer.bytes()), ("b[1m\nc", 6));
        assert_eq!(composer.replace(&"y".repeat(MAX_TEXT + 1)), Err(Refused::TooLong));
        composer.undo(LATER);
        assert_eq!(composer.text(), "a");
        composer.redo(LATER);
        assert_eq!(composer.text(), "b[1m\nc");
        composer.replace("").unwrap();
        composer.undo(LATER);
        assert_eq!(composer.text(), "b[1m\nc");
        assert!(composer.undo(LATER) && composer.undo(LATER) && !composer.undo(LATER));
        assert!(composer.redo(LATER) && composer.text() == "a");
    }

    #[test]
    fn up_and_down_go_by_the_rows_shown() {
        let mut composer = composer();
        composer.shown.set((9, 3));
        composer.paste("one two three four\nx\n漢字漢字漢字", LATER).unwrap();
        let mut go = |code| {
            press(&mut composer, code, KeyModifiers::NONE).unwrap();
            shown(&composer)
        };
        // The rows: `one two `, `three `, `four`, `x`, `漢字漢字`, `漢字`.
        assert_eq!(go(KeyCode::Up), "one two three four\nx\n漢字|漢字漢字");
        assert_eq!(go(KeyCode::Up), "one two three four\nx|\n漢字漢字漢字");
        assert_eq!(go(KeyCode::Up), "one two three four|\nx\n漢字漢字漢字");
        assert_eq!(go(KeyCode::Up), "one two thre|e four\nx\n漢字漢字漢字");
        assert_eq!(go(KeyCode::Up), "one |two three four\nx\n漢字漢字漢字");
        assert_eq!(go(KeyCode::Up), "one |two three four\nx\n漢字漢字漢字");
        assert_eq!(go(KeyCode::PageDown), "one two three four\nx|\n漢字漢字漢字");
        assert_eq!(go(KeyCode::PageDown), "one two three four\nx\n漢字漢字漢字|");
        assert_eq!(go(KeyCode::PageUp), "one two three four|\nx\n漢字漢字漢字");
    }

    #[test]
    fn keys_that_would_mark_text_unseen_only_move() {
        let mut composer = composer();
        type_text(&mut composer, "keep all of this");
        for code in [KeyCode::Left, KeyCode::Home, KeyCode::Up, KeyCode::PageUp] {
            press(&mut composer, code, KeyModifiers::SHIFT).unwrap();
        }
        press(&mut composer, KeyCode::Left, KeyModifiers::SHIFT | KeyModifiers::CONTROL).unwrap();
        type_text(&mut composer, "I ");
        assert_eq!(composer.text(), "I keep all of this");
    }

    #[test]
    fn other_keys_type_nothing() {
        let mut composer = composer();
        let mut release = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        composer.key(release, LATER).unwrap();
        assert!(!composer.enter_is_newline(LATER), "a release is no input");
        for (code, modifiers) in [
            (KeyCode::Char('q'), KeyModifiers::SUPER),
            (KeyCode::Char('q'), KeyModifiers::META),
            (KeyCode::Char('x'), KeyModifiers::CONTROL | KeyModifiers::ALT),
            (KeyCode::BackTab, KeyModifiers::SHIFT),
            (KeyCode::Tab, KeyModifiers::SHIFT),
            (KeyCode::F(5), KeyModifiers::NONE),
            (KeyCode::Esc, KeyModifiers::NONE),
            (KeyCode::Enter, KeyModifiers::NONE),
        ] {
            press(&mut composer, code, modifiers).unwrap();
            assert_eq!(composer.text(), "", "{code:?} {modifiers:?}");
        }
    }

    #[test]
    fn no_key_makes_the_text_longer_than_is_taken() {
        let mut composer = composer();
        composer.paste(&"y".repeat(MAX_TEXT - 1), LATER).unwrap();
        assert_eq!(press(&mut composer, KeyCode::Char('z'), KeyModifiers::NONE), Err(Refused::TooLong));
        assert_eq!(press(&mut composer, KeyCode::Tab, KeyModifiers::NONE), Err(Refused::TooLong));
        composer.newline(LATER);
        assert_eq!(composer.text().len(), MAX_TEXT - 1);
    }

    proptest::proptest! {
        #[test]
        fn no_keys_upset_it_and_the_count_is_right(
            keys in proptest::collection::vec((0..40_usize, 0..8_u8, proptest::char::any()), 0..60),
            width in 0..20_u16,
        ) {
            let mut composer = composer();
            composer.shown.set((width, width / 4));
            let codes = [
                KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End,
                KeyCode::PageUp, KeyCode::PageDown, KeyCode::Backspace, KeyCode::Delete, KeyCode::Tab,
                KeyCode::Esc, KeyCode::Enter,
            ];
            for (pick, modifiers, character) in keys {
                let code = match pick {
                    0..13 => codes[pick],
                    13..33 => KeyCode::Char(char::from(b'a' + (pick as u8 - 13))),
                    _ => KeyCode::Char(character),
                };
                let _ = press(&mut composer, code, KeyModifiers::from_bits_truncate(modifiers));
                if pick == 39 {
                    composer.newline(LATER);
                    let _ = composer.paste("a\r\nb 漢\tx\u{301}", LATER);
                }
                let text = composer.text();
                proptest::prop_assert_eq!(composer.bytes(), text.len());
                proptest::prop_assert!(!text.chars().any(|it| it.is_control() && !matches!(it, '\n' | '\t')));
            }
        }
    }
}
