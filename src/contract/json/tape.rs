//! One pass over a JSON text: whether it is one, and where the values in it stand.
//!
//! A session's line is looked into on several levels, and nearly all of it is one text in the deepest.
//! Without the places each level would be a pass of its own.

use memchr::memchr2;

/// Objects and arrays within each other whose values are told apart, at most.
const MAX_DEPTH: usize = 5;
/// Places at most: of a text with more, those of fewer levels are kept.
const MAX_PLACES: usize = 4096;

/// So many bytes are looked through in a way that is fast for short texts, as keys and the lines in a
/// text are, before the way that is fast for long ones.
const SHORT: usize = 64;

/// Where a value, or a key, stands in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its first byte.
    pub(super) start: u32,
    /// The byte after its last.
    pub(super) end: u32,
    /// How many places after this one are within it: of an object a key and its value in turn, each
    /// followed by those within. 0 where they were not told apart.
    pub(super) within: u32,
    /// Whether it is a string with escapes.
    pub(super) is_escaped: bool,
}

/// The places in the one JSON value that `text` is, its own first.
///
/// Nothing where it is none, and also where that is left to another reader to say: of texts with raw
/// control characters, line ends between values among them, and of over 4 GiB.
pub(super) fn places(text: &str) -> Option<Vec<Place>> {
    let bytes = text.as_bytes();
    if u32::try_from(bytes.len()).is_err() || has_controls(bytes) {
        return None;
    }
    for depth in (0..=MAX_DEPTH).rev() {
        let places = Vec::with_capacity(64);
        let mut tape = Tape { bytes, at: 0, open: Vec::with_capacity(8), places, depth, is_full: false };
        match tape.read() {
            Some(()) => return Some(tape.places),
            None if tape.is_full => {}
            None => return None,
        }
    }
    None
}

/// The least of many bytes is found faster than the first that is small enough.
fn has_controls(bytes: &[u8]) -> bool {
    bytes.chunks(4096).any(|chunk| chunk.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ')
}

/// Bytes up to the next quotation mark or escape.
fn plain(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes[..bytes.len().min(SHORT)].as_chunks::<8>();
    for (nth, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = marks(word, b'"') | marks(word, b'\\');
        if found != 0 {
            return Some(nth * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let looked = words.len() * 8;
    memchr2(b'"', b'\\', &bytes[looked..]).map(|length| looked + length)
}

/// Marks each byte of a word that is `byte` by its highest bit; bytes above the lowest such one may be
/// marked wrongly.
fn marks(word: u64, byte: u8) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let zeroed = word ^ (LOWEST * u64::from(byte));
    zeroed.wrapping_sub(LOWEST) & !zeroed & (LOWEST << 7)
}

struct Tape<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Of each object and array around here, whether it is an object, and its place.
    open: Vec<(bool, u32)>,
    places: Vec<Place>,
    /// Objects and arrays within each other whose values are told apart.
    depth: usize,
    is_full: bool,
}

impl Tape<'_> {
    fn read(&mut self) -> Option<()> {
        loop {
            self.value()?;
            // What follows a value: the end of what is around it, or the next one.
            loop {
                self.spaces();
                let Some((is_object, place)) = self.open.last().copied() else {
                    return (self.at == self.bytes.len()).then_some(());
                };
                match (self.byte()?, is_object) {
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        self.close(place);
                    }
                    _ => return None,
                }
            }
        }
    }

    /// One value, or the beginning of an object or array up to its first.
    fn value(&mut self) -> Option<()> {
        loop {
            self.spaces();
            let start = self.at;
            match self.byte()? {
                b'"' => {
                    let is_escaped = self.string()?;
                    return self.place(start, is_escaped);
                }
                b'{' => {
                    self.at += 1;
                    self.spaces();
                    if self.byte()? != b'}' {
                        self.enter(true, start)?;
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    self.spaces();
                    if self.byte()? != b']' {
                        self.enter(false, start)?;
                        continue;
                    }
                    self.at += 1;
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            return self.place(start, false);
        }
    }

    fn key(&mut self) -> Option<()> {
        self.spaces();
        let start = self.at;
        if self.byte()? != b'"' {
            return None;
        }
        let is_escaped = self.string()?;
        self.place(start, is_escaped)?;
        self.spaces();
        if self.byte()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// A string, from its quotation mark on; whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.at += 1;
        let mut is_escaped = false;
        loop {
            self.at += plain(&self.bytes[self.at..])?;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Some(is_escaped);
            }
            is_escaped = true;
            self.at += match self.bytes.get(self.at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                b'u' if self.bytes.get(self.at + 2..self.at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
        }
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while self.byte() == Some(b' ') {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let is_there = self.bytes[self.at..].starts_with(word);
        self.at += word.len();
        is_there.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.skip(b"-");
        if !self.skip(b"0") {
            self.digits()?;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        Some(())
    }

    fn skip(&mut self, one_of: &[u8]) -> bool {
        let is_there = self.byte().is_some_and(|byte| one_of.contains(&byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn enter(&mut self, is_object: bool, start: usize) -> Option<()> {
        let place = self.places.len() as u32;
        self.place(start, false)?;
        self.open.push((is_object, place));
        Some(())
    }

    fn close(&mut self, place: u32) {
        self.open.pop();
        if self.open.len() <= self.depth {
            let within = self.places.len() as u32 - place - 1;
            let place = &mut self.places[place as usize];
            (place.end, place.within) = (self.at as u32, within);
        }
    }

    /// Keeps the place of what begins at `start` and ends here, if such are told apart.
    fn place(&mut self, start: usize, is_escaped: bool) -> Option<()> {
        if self.open.len() > self.depth {
            return Some(());
        }
        self.is_full = self.places.len() == MAX_PLACES;
        if self.is_full {
            return None;
        }
        self.places.push(Place { start: start as u32, end: self.at as u32, within: 0, is_escaped });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::super::{Document, Json};
    use super::*;

    /// Looks into everything by the places, and by passes of their own.
    fn assert_the_same(told: Json<'_>, read: Json<'_>) {
        assert_eq!(told.raw(), read.raw());
        assert_eq!(told.string(), read.string());
        let (members, wanted) = (told.object(), read.object());
        assert_eq!(members.is_some(), wanted.is_some());
        for ((key, value), (wanted_key, wanted)) in members.iter().flatten().zip(wanted.iter().flatten()) {
            assert_eq!(key, wanted_key);
            assert_the_same(*value, *wanted);
            let key = key.to_str_lossy();
            assert_eq!(told.member(&key).map(|it| it.raw()), read.member(&key).map(|it| it.raw()));
        }
        assert_eq!(members.map(|it| it.len()), wanted.map(|it| it.len()));
        let (elements, wanted) = (told.array(), read.array());
        assert_eq!(elements.as_ref().map(Vec::len), wanted.as_ref().map(Vec::len));
        for (element, wanted) in elements.iter().flatten().zip(wanted.iter().flatten()) {
            assert_the_same(*element, *wanted);
        }
    }

    fn check(text: &str) {
        let read = serde_json::from_str::<&RawValue>(text);
        let document = Document::decode(text.as_bytes());
        assert_eq!(document.value().is_ok(), read.is_ok(), "{text}");
        if !text.bytes().any(|byte| byte < b' ') {
            assert_eq!(places(text).is_some(), read.is_ok(), "{text}");
        }
        if let Ok(read) = read {
            assert_the_same(document.value().unwrap(), read.into());
        }
    }

    #[test]
    fn what_is_json_and_what_is_not_is_as_serde_json_says() {
        for text in [
            "",
            " ",
            "null",
            " null ",
            "nul",
            "nulll",
            "true false",
            "0",
            "-0",
            "01",
            "-",
            "1.",
            ".1",
            "1.5e+3",
            "1e",
            "1e+",
            "1E5",
            "+1",
            "1e400",
            "--1",
            "0x1",
            "NaN",
            "Infinity",
            "\"\"",
            "\"a",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12zz\"",
            "\"\\ud800\"",
            "\"\\u00e9\\/\\b\"",
            "'a'",
            "\"a\tb\"",
            "\"\u{7f}\"",
            "{}",
            "{ }",
            "[ ]",
            "[]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1",
            "]",
            "{",
            "}",
            "{]",
            "[}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\" : [ {} , [ ] ] , \"a\" : { \"b\" : 0 } }",
            "{\"a\":1,\"\\u0061\":2}",
            "{\"\\ud83d\":1,\"\u{FFFD}\":2}",
            "{\n\"a\": 1\n}",
            "[1]\n",
            "\u{FEFF}{}",
            "[1]x",
            "[[[[[[[[[{\"a\":[[[1,2],{\"b\":{\"c\":3}}]]}]]]]]]]]]",
            "{1:2}",
            "{null:1}",
            "[\"é\",\"😀\\n\"]",
        ] {
            check(text);
        }
    }

    #[test]
    fn of_very_many_values_fewer_levels_are_told_apart() {
        let many = format!("[{}1]", "1,".repeat(MAX_PLACES));
        let deep = format!("{{\"a\":{{\"b\":{many}}},\"c\":[{many}]}}");
        assert_eq!(places(&many).unwrap().len(), 1);
        assert_eq!(places(&deep).unwrap().len(), 8);
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(places(&nested).unwrap().len(), 1 + MAX_DEPTH);
        for text in [&many, &deep] {
            check(text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_and_looked_into_as_by_serde_json(text in "[\\[\\]{}:,\"\\\\au0e1. -]{0,24}") {
            check(&text);
        }

        #[test]
        fn any_value_is_looked_into_as_by_serde_json(value in value(), cut in any::<prop::sample::Index>()) {
            let text = value.to_string();
            check(&text);
            let mut torn = text.clone();
            let at = (0..=text.len()).rev().find(|at| *at <= cut.index(text.len() + 1) && text.is_char_boundary(*at));
            torn.truncate(at.unwrap());
            check(&torn);
            check(&format!("{torn}{text}"));
        }
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            "[a\"\\\\\n\t é😀]{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(8, 64, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[ab\"é]{0,2}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
