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
