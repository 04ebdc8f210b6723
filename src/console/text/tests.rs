use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::Paragraph;
use unicode_segmentation::UnicodeSegmentation;

use super::*;

/// More than 200 texts that try to drive a terminal, hide, or upset a layout.
fn payloads() -> Vec<Untrusted> {
    let mut texts: Vec<String> = Vec::new();
    for code in (0..0x20).chain(0x7F..=0x9F) {
        let control = char::from_u32(code).unwrap();
        texts.push(format!("a{control}b"));
        texts.push(format!("{control}[31m{control}"));
    }
    for introducer in ["\x1b[", "\u{9b}", "\x1b]", "\u{9d}", "\x1bP", "\u{90}", "\x1b_", "\x1b^", "\x1bX"] {
        for body in
            ["2J", "0;title\x07", "8;;http://x\x1b\\", "52;c;YQ==\u{9c}", "?1049h", "6n", "1337;File=:"]
        {
            texts.push(format!("x{introducer}{body}y"));
        }
    }
    let hidden = [
        0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F,
        0x2028, 0x2029, 0x202A, 0x202D, 0x202E, 0x2060, 0x2064, 0x2066, 0x2069, 0x206F, 0x3164, 0xFE00,
        0xFE0D, 0xFE0E, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFE, 0xFFFF, 0xFDD0, 0x1BCA0, 0x1D173,
        0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xE01EF, 0xE0FFF, 0x1FFFE, 0x10FFFF,
    ];
    for code in hidden {
        let character = char::from_u32(code).unwrap();
        texts.push(character.to_string());
        texts.push(format!("a{character}b"));
        texts.push(format!("{character}{character}a{character}"));
        texts.push(format!("😀{character}😀"));
        texts.push(format!("가{character}\u{301}"));
    }
    for stack in
        ["\u{301}", "\u{489}", "\u{20DD}", "\u{903}", "\u{FE0F}", "\u{200D}", "\u{1F3FB}", "\u{FF9E}"]
    {
        texts.push(format!("a{}b", stack.repeat(200)));
        texts.push(stack.repeat(200));
    }
    for repeated in ["ᄀ", "ᅡ", "ᆨ", "क्", "\u{600}", "🇩", "👩\u{200D}", "\u{E0067}", "ﷺ", "漢", "\u{2800}"]
    {
        texts.push(repeated.repeat(200));
    }
    for sound in [
        "👨\u{200D}👩\u{200D}👧\u{200D}👦",
        "❤\u{FE0F}\u{200D}🔥",
        "🏳\u{FE0F}\u{200D}🌈",
        "👍🏽",
        "🇩🇪🇫🇷",
        "🇩🇪🇫",
        "1\u{FE0F}\u{20E3}",
        "⌚\u{FE0E}",
        "1\u{FE0F}2",
        "🏴\u{E0067}\u{E0062}\u{E007F}",
        "각",
        "क्षि",
        "स्त्री",
        "ก็",
        "שָׁ",
        "لا",
        "ｶﾞ",
        "e\u{301}",
        "\u{1161}\u{1161}\u{1161}\u{1161}\u{1161}\u{1F3FB}",
    ] {
        texts.push(sound.to_owned());
    }
    texts.push("/\u{301}x/\u{301}y".repeat(9));
    texts.push(format!("{}\t{}\r\n\ttail\r", "w".repeat(70), "漢".repeat(70)));
    let mut all: Vec<Untrusted> = texts.into_iter().map(Untrusted::from).collect();
    all.push(Untrusted::from_wtf8(b"a\xED\xA0\x80b\xED\xB0\x80"));
    all.push(Untrusted::from_bytes_lossy(b"a\xff\xfe\xc3(\xf0\x9f"));
    assert!(all.len() >= 200, "{}", all.len());
    all
}

/// Judged by its own list, apart from the code under test.
fn assert_harmless(text: &str) {
    let emoji =
        |character: char| matches!(u32::from(character), 0xA9 | 0xAE | 0x203C..=0x3299 | 0x1F000..=0x1FAFF);
    for grapheme in text.graphemes(true) {
        let characters: Vec<char> = grapheme.chars().collect();
        let mut marks = 0;
        for (at, character) in characters.iter().enumerate() {
            match u32::from(*character) {
                0..=0x1F
                | 0x7F..=0x9F
                | 0xAD
                | 0x34F
                | 0x61C
                | 0x115F
                | 0x1160
                | 0x17B4
                | 0x17B5
                | 0x180B..=0x180F
                | 0x200B
                | 0x200C
                | 0x200E
                | 0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x3164
                | 0xFDD0..=0xFDEF
                | 0xFE00..=0xFE0D
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFB
                | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A
                | 0xE0000..=0xE0FFF => {
                    panic!("{character:?} in {text:?}")
                }
                0x200D => {
                    let before = characters[..at].iter().rev().find(|near| {
                        !matches!(u32::from(**near), 0xFE0F | 0x1F3FB..=0x1F3FF | 0x300..=0x36F | 0x20DD | 0x489)
                    });
                    assert!(before.is_some_and(|near| emoji(*near)), "{text:?}");
                    assert!(characters.get(at + 1).is_some_and(|near| emoji(*near)), "{text:?}");
                }
                0xFE0E | 0xFE0F => {
                    let keycap = characters.get(at + 1) == Some(&'\u{20E3}');
                    assert!(at > 0 && (keycap || emoji(characters[at - 1])), "{text:?}");
                }
                _ => {
                    let width = character.encode_utf8(&mut [0; 4]).cell_width();
                    marks = if width == 0 { marks + 1 } else { 0 };
                    assert!(marks <= 4, "{text:?}");
                }
            }
        }
        assert!(
            !(characters.len() == 1 && (0x1F1E6..=0x1F1FF).contains(&u32::from(characters[0]))),
            "{text:?}"
        );
    }
}

/// Draws it with room to spare and with too little; the columns used must be those reported.
fn assert_lays_out(visible: &Visible) {
    assert_harmless(visible.as_str());
    for (grapheme, width) in visible.graphemes() {
        assert!((1..=8).contains(&width), "{grapheme:?} is {width} wide");
    }
    let width = visible.width();
    assert!(width < 60_000);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width as u16 + 3, 1));
    buffer.set_string(0, 0, "#".repeat(width + 3), Style::new());
    let (end, _) = buffer.set_stringn(0, 0, visible.as_str(), usize::MAX, Style::new());
    assert_eq!(usize::from(end), width, "{visible:?}");
    let shown: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
    assert!(shown.ends_with("###"));
    assert_eq!(shown.matches('#').count(), 3 + visible.as_str().matches('#').count(), "{visible:?}");
    buffer.content().iter().for_each(|cell| assert_harmless(cell.symbol()));

    let mut terminal = Terminal::new(TestBackend::new(7, 2)).unwrap();
    terminal
        .draw(|frame| {
            let line = ratatui::text::Line::from(Span::from(visible.clone()));
            frame.render_widget(Paragraph::new(line), Rect::new(0, 0, 5, 1));
        })
        .unwrap();
    let drawn = terminal.backend().buffer();
    for x in 5..7 {
        assert_eq!(drawn[(x, 0)].symbol(), " ", "{visible:?} left its area");
    }
}

fn assert_every_sink(text: &Untrusted) {
    let whole = line(text);
    assert_lays_out(&whole);
    assert_eq!(line(&whole), whole, "showing it again changes it");
    for shown in lines(text) {
        assert_lays_out(&shown);
    }
    for width in [0, 1, 2, 3, 5, 8, 13, 40, 400] {
        for cut in [whole.truncate_end(width), whole.truncate_middle(width)] {
            assert!(cut.width() <= width, "{cut:?} in {width}");
            assert!(whole.width() > width || cut == whole);
            assert_lays_out(&cut);
        }
        for padded in [whole.pad_end(width), whole.pad_start(width)] {
            assert_eq!(padded.width(), width);
            assert_lays_out(&padded);
        }
        for row in wrap(text, width) {
            assert!(row.width() <= width, "{row:?} in {width}");
            assert_lays_out(&row);
        }
    }
    let ascii = whole.to_ascii();
    assert!(ascii.as_str().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    assert_eq!((ascii.width(), ascii.as_str().len()), (whole.width(), whole.width()));
    assert_lays_out(&title(text));
    assert!(title(text).width() <= MAX_TITLE);
    assert_lays_out(&notice(text));
    assert!(notice(text).width() <= MAX_NOTICE);
    assert_harmless(&plain(text));
    plain_block(text).split('\n').for_each(assert_harmless);

    let literal = json_string(text);
    assert!(literal.chars().all(|character| !character.is_control()));
    assert!(!literal.contains(['\u{200D}', '\u{FE0E}', '\u{FE0F}']));
    assert_harmless_json(&literal);
    let back: Untrusted = serde_json::from_str(&literal).unwrap();
    assert_eq!(&back, text, "{literal}");

    let mut covered = 0;
    walk(&text.to_str_lossy(), |_, _, range| {
        assert_eq!(range.start, covered, "{text:?}");
        covered = range.end;
    });
    assert_eq!(covered, text.utf8_len(), "{text:?}");
}

fn assert_harmless_json(literal: &str) {
    assert!(!literal.chars().any(crate::contract::text::is_unsafe_to_show), "{literal:?}");
    let mut marks = 0;
    for character in literal.chars() {
        marks = if cluster::is_mark(character) && !character.is_ascii() { marks + 1 } else { 0 };
        assert!(marks <= 4, "{literal:?}");
    }
}

#[test]
fn no_payload_gets_through_any_function() {
    for payload in payloads() {
        assert_every_sink(&payload);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn mixed_payloads_get_through_no_function(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0..3_u8), 1..8),
    ) {
        let payloads = payloads();
        let text: String = picks
            .iter()
            .map(|(pick, character, kind)| match kind {
                0 => character.to_string(),
                1 => pick.get(&payloads).to_str_lossy().chars().take(5).collect(),
                _ => pick.get(&payloads).to_str_lossy().chars().rev().take(5).collect(),
            })
            .collect();
        assert_every_sink(&Untrusted::from(text));
    }

    #[test]
    fn wrapped_words_are_all_there(text in "[a-z漢 ]{0,60}", width in 4..20_usize) {
        let words = |text: &str| text.chars().filter(|character| *character != ' ').collect::<String>();
        let rows: String = wrap(&text, width).iter().map(|row| row.as_str().to_owned()).collect();
        prop_assert_eq!(words(&rows), words(&text));
    }
}

#[test]
fn controls_show_as_short_pictures() {
    assert_eq!(line("\x1b[2Ja\x7f\0\r").as_str(), "␛[2Ja␡␀␍");
    assert_eq!(line("a\nb\r\nc").as_str(), "a⏎b⏎c");
    assert_eq!(line("a\tb\t\tc").as_str(), "a   b       c");
    assert_eq!(line("\u{200b}\ta").as_str(), "�   a");
    assert_eq!(line("a\u{202e}\u{2066}\u{200b}b\u{9b}c").as_str(), "a�b�c");
    assert_eq!(line("\u{FFFD}\u{FFFD}").as_str(), "\u{FFFD}\u{FFFD}");
    assert_eq!(lines("a\r\n\nb\n").iter().map(Visible::as_str).collect::<Vec<_>>(), ["a", "", "b"]);
    assert!(lines("").is_empty());
    assert_eq!(plain_block("a\tb\n\x1bc\n"), "a   b\n␛c");
}

#[test]
fn stacked_marks_are_limited_and_say_so() {
    let tower = format!("a{}b", "\u{301}".repeat(200));
    assert_eq!(line(&tower).as_str(), format!("a{}�b", "\u{301}".repeat(4)));
    assert_eq!(line("e\u{301}x").as_str(), "e\u{301}x");
    assert_eq!(line("\u{301}\u{302}x").as_str(), "�x");
    assert_eq!(line("a\t\u{301}x").as_str(), "a   �x");
}

#[test]
fn all_characters_that_attach_forwards_are_in_the_blocks_looked_at() {
    for character in ('\u{80}'..=char::MAX).filter(|character| !cluster::is_prefix(*character)) {
        let text = format!("{character}a");
        assert_eq!(text.graphemes(true).count(), 2, "{character:?}");
    }
}

#[test]
fn sound_emoji_stay_and_false_ones_do_not() {
    for sound in [
        "👨\u{200D}👩\u{200D}👧",
        "❤\u{FE0F}\u{200D}🔥",
        "🏳\u{FE0F}\u{200D}🌈",
        "👍🏽",
        "1\u{FE0F}\u{20E3}",
        "🇩🇪",
        "©",
    ] {
        assert_eq!(line(sound).as_str(), sound);
    }
    assert_eq!(line("👨\u{200D}👩\u{200D}👧").width(), 2);
    assert_eq!(line("a\u{200D}b").as_str(), "a�b");
    assert_eq!(line("a\u{FE0F}b").as_str(), "a�b");
    assert_eq!(line("1\u{FE0F}2").as_str(), "1�2");
    assert_eq!(line("👩\u{200D}").as_str(), "👩�");
    assert_eq!(line("क\u{94d}\u{200D}ष").as_str(), "क\u{94d}ष�");
    assert_eq!(line("🇩🇪🇫").as_str(), "🇩🇪�");
    assert_eq!(line("🏴\u{E0067}\u{E0062}\u{E007F}x").as_str(), "🏴�x");
    assert_eq!(line("😀\u{E0100}\u{E0101}").as_str(), "😀�");
}

#[test]
fn scripts_in_use_are_left_as_they_are() {
    for text in
        ["각각", "क्षि स्त्री", "ก็น้ำ", "שָׁלוֹם", "السلام", "Tiếng Việt", "ｶﾞｷﾞ", "漢字かな", "ᄒ\u{1161}\u{11AB}글"]
    {
        assert_eq!(line(text).as_str(), text);
    }
}

#[test]
fn a_cut_name_keeps_its_last_part() {
    let name = line("api/auth-rewrite/implementer");
    assert_eq!(name.truncate_middle(28).as_str(), "api/auth-rewrite/implementer");
    assert_eq!(name.truncate_middle(20).as_str(), "api/aut…/implementer");
    assert_eq!(name.truncate_middle(13).as_str(), "…/implementer");
    assert_eq!(name.truncate_middle(12).as_str(), "…implementer");
    assert_eq!(name.truncate_middle(11).as_str(), "implementer");
    assert_eq!(name.truncate_middle(7).as_str(), "imp…ter");
    assert_eq!(name.truncate_middle(1).as_str(), "…");
    assert_eq!(line("abcdefgh").truncate_middle(5).as_str(), "ab…gh");
    assert_eq!(name.truncate_end(6).as_str(), "api/a…");
    assert_eq!(line("漢字").truncate_end(2).as_str(), "…");
    assert_eq!(line("漢").pad_start(4).as_str(), "  漢");
    assert_eq!(line("漢").pad_end(4).as_str(), "漢  ");
}

#[test]
fn lines_break_between_words_and_keep_their_indentation() {
    let rows =
        |text: &str, width| wrap(text, width).iter().map(|row| row.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(rows("one two three", 8), ["one two", "three"]);
    assert_eq!(rows("  one two three", 7), ["  one", "  two", "  three"]);
    assert_eq!(rows("  - unbreakable", 6), ["  -", "  unbr", "  eaka", "  ble"]);
    assert_eq!(rows("        deep word", 10), ["deep word"]);
    assert_eq!(rows("one\n\ntwo   three", 8), ["one", "", "two", "three"]);
    assert_eq!(rows("ab 漢字漢字", 7), ["ab 漢字", "漢字"]);
    assert_eq!(rows("漢", 1), ["�"]);
    assert_eq!(rows("x", 0), [""; 0]);
}

#[test]
fn parts_that_meet_are_judged_together() {
    let joined: Visible = [line("🇩🇪"), line("ᄀ"), line("가\u{301}")].into_iter().collect();
    assert_lays_out(&joined);
    assert_eq!(line(format_args!("{} · {}", 2, "\x1b")).as_str(), "2 · ␛");
}

#[test]
fn json_is_exact_and_shows_nothing_hidden() {
    let text = Untrusted::from_wtf8("\x1b\u{7f}\u{85}\u{202e}\u{200d}\u{e0041}\"\\\t\ne\u{301}".as_bytes());
    assert_eq!(
        json_string(&text),
        "\"\\u001b\\u007f\\u0085\\u202e\\u200d\\udb40\\udc41\\\"\\\\\\t\\ne\u{301}\""
    );
    assert_eq!(json_string(&Untrusted::from_wtf8(b"\xED\xA0\x80")), r#""\ud800""#);
    assert_eq!(json_document("{\n \"a\u{202e}\": \"\u{7f}\"\n}"), "{\n \"a\\u202e\": \"\\u007f\"\n}");
}

#[test]
fn a_title_from_a_huge_text_is_bounded() {
    let huge = "\u{200b}x".repeat(1_000_000);
    assert_eq!(title(&huge).width(), MAX_TITLE);
    assert!(notice(&"\u{200b}".repeat(1_000_000)).width() <= 1);
}

#[test]
fn the_ascii_likeness_has_the_same_width() {
    assert_eq!(line("“ok” – 漢 …").to_ascii().as_str(), "\"ok\" - ?? ~");
    assert_eq!(line("\x1b[0m").to_ascii().as_str(), "^[0m");
}
