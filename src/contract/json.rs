//! JSON as the other side judges it.
//!
//! Records are written and read with JavaScript's `JSON.parse` and `JSON.stringify`. This reader
//! agrees with them where a plain `serde_json::Value` does not: of a duplicate key the last counts,
//! lone surrogates are legal in escapes, ill-formed UTF-8 reads as U+FFFD, a BOM is refused,
//! `1e400` is a number (and no integer), values that are not looked at may nest without limit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::text::Untrusted;

mod tape;

use tape::Place;

/// Why bytes are not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct NotJson(String);

/// A JSON document decoded as the other side decodes a file: bytes, then text, then values.
pub struct Document<'a> {
    text: Cow<'a, str>,
    places: Option<Vec<Place>>,
}

impl<'a> Document<'a> {
    /// Decodes `bytes`; ill-formed UTF-8 becomes U+FFFD.
    pub fn decode(bytes: &'a [u8]) -> Self {
        // Far faster than the other where it is well-formed.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let places = tape::places(&text);
        Self { text, places }
    }

    /// Bytes after decoding: more than the file's where ill-formed UTF-8 grew into U+FFFD.
    pub fn decoded_len(&self) -> usize {
        self.text.len()
    }

    /// The value, if the whole text is one.
    pub fn value(&self) -> Result<Json<'_>, NotJson> {
        if let Some((place, within)) = self.places.as_ref().and_then(|places| places.split_first()) {
            let raw = &self.text[place.start as usize..place.end as usize];
            return Ok(Json { raw, start: place.start, within, is_escaped: place.is_escaped });
        }
        let raw: &RawValue = serde_json::from_str(&self.text).map_err(|error| NotJson(error.to_string()))?;
        Ok(raw.into())
    }
}

/// One JSON value, looked into on demand.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    raw: &'a str,
    /// Where it stands in the text that the places are of.
    start: u32,
    /// The places within it; none where they were not told apart.
    within: &'a [Place],
    /// Of a string, whether escapes may be in it.
    is_escaped: bool,
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self { raw: raw.get(), start: 0, within: &[], is_escaped: true }
    }
}

impl<'a> Json<'a> {
    /// Its text as it stands.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.raw.starts_with('{')
    }

    /// Whether the places within an object or array are known.
    fn is_told_apart(&self) -> bool {
        !self.within.is_empty()
    }

    /// The value at a place within it, followed by those within that.
    fn at(self, place: &Place, within: &'a [Place]) -> Json<'a> {
        let raw = &self.raw[(place.start - self.start) as usize..(place.end - self.start) as usize];
        Json { raw, start: place.start, within, is_escaped: place.is_escaped }
    }

    /// What is directly within it, keys among it.
    fn parts(self) -> impl Iterator<Item = Json<'a>> {
        let mut rest = self.within;
        std::iter::from_fn(move || {
            let (place, after) = rest.split_first()?;
            let (within, next) = after.split_at(place.within as usize);
            rest = next;
            Some(self.at(place, within))
        })
    }

    /// The members of an object, each key once, in order of first appearance, with its last value.
    pub fn object(&self) -> Option<Vec<(Untrusted, Json<'a>)>> {
        if !self.is_object() {
            return None;
        }
        if !self.is_told_apart() {
            return serde_json::from_str::<Members>(self.raw).ok().map(|members| members.known);
        }
        let mut members = Members::default();
        let mut parts = self.parts();
        while let Some((key, value)) = parts.next().zip(parts.next()) {
            members.put(key.string()?, value);
        }
        Some(members.known)
    }

    /// The value of the last member of that name, if it is an object that has one.
    pub fn member(&self, name: &str) -> Option<Json<'a>> {
        if !self.is_told_apart() {
            let members = self.object()?;
            return members.into_iter().find(|(key, _)| key == name).map(|(_, value)| value);
        }
        if !self.is_object() {
            return None;
        }
        // Keys are compared as they stand: this is asked for each line many times.
        let is_it = |key: &Place| {
            if key.is_escaped {
                return self.at(key, &[]).string().is_some_and(|key| key == name);
            }
            let (start, end) = ((key.start - self.start) as usize + 1, (key.end - self.start) as usize - 1);
            end - start == name.len() && self.raw.as_bytes()[start..end] == *name.as_bytes()
        };
        let (mut rest, mut last) = (self.within, None);
        while let [key, value, after @ ..] = rest {
            if is_it(key) {
                last = Some((value, after));
            }
            rest = &after[value.within as usize..];
        }
        last.map(|(value, after)| self.at(value, &after[..value.within as usize]))
    }

    /// The elements of an array.
    pub fn array(&self) -> Option<Vec<Json<'a>>> {
        if !self.raw.starts_with('[') {
            return None;
        }
        if !self.is_told_apart() {
            return serde_json::from_str::<Elements>(self.raw).ok().map(|elements| elements.0);
        }
        Some(self.parts().collect())
    }

    /// A string.
    pub fn string(&self) -> Option<Untrusted> {
        if !self.raw.starts_with('"') {
            return None;
        }
        self.unescaped().map_or_else(|| serde_json::from_str(self.raw).ok(), |text| Some(text.into()))
    }

    /// A string that is known to be written without escapes.
    fn unescaped(&self) -> Option<&'a str> {
        if self.is_escaped { None } else { self.raw.strip_prefix('"')?.strip_suffix('"') }
    }

    /// Whether it is that string.
    pub fn is(&self, text: &Untrusted) -> bool {
        match self.unescaped() {
            Some(own) => own.as_bytes() == text.as_wtf8(),
            None => self.string().as_ref() == Some(text),
        }
    }

    /// A string as text: lone surrogates in it are U+FFFD.
    pub fn lossy(&self) -> Option<Cow<'a, str>> {
        if let Some(text) = self.unescaped() {
            return Some(Cow::Borrowed(text));
        }
        if !self.raw.starts_with('"') {
            return None;
        }
        // A lone surrogate is an error there.
        let text = serde_json::from_str::<String>(self.raw).ok();
        text.or_else(|| self.string().map(|text| text.to_str_lossy().into_owned())).map(Cow::Owned)
    }

    /// A number, infinite where it is too large.
    pub fn number(&self) -> Option<f64> {
        let first = self.raw().as_bytes().first()?;
        if first.is_ascii_digit() || *first == b'-' { self.raw().parse().ok() } else { None }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        match self.raw() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.raw() == "null"
    }
}

/// Up to so many members are looked through one by one; no record has more.
const FEW_MEMBERS: usize = 32;

#[derive(Default)]
struct Members<'a> {
    known: Vec<(Untrusted, Json<'a>)>,
    /// Where each key stands, once there are many.
    places: HashMap<Untrusted, usize>,
}

impl<'a> Members<'a> {
    fn put(&mut self, key: Untrusted, value: Json<'a>) {
        if self.known.len() == FEW_MEMBERS && self.places.is_empty() {
            self.places.extend(self.known.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)));
        }
        let at = if self.places.is_empty() {
            self.known.iter().position(|(known, _)| *known == key)
        } else {
            self.places.get(&key).copied()
        };
        match at {
            Some(at) => self.known[at].1 = value,
            None => {
                if !self.places.is_empty() {
                    self.places.insert(key.clone(), self.known.len());
                }
                self.known.push((key, value));
            }
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some((key, value)) = map.next_entry::<Untrusted, &RawValue>()? {
                    members.put(key, value.into());
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

struct Elements<'a>(Vec<Json<'a>>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Elements<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(value) = seq.next_element::<&RawValue>()? {
                    elements.push(value.into());
                }
                Ok(Elements(elements))
            }
        }
        deserializer.deserialize_seq(Visit)
    }
}

impl<'de> Deserialize<'de> for Untrusted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Untrusted;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Untrusted::from_wtf8(bytes))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Untrusted::from(text))
            }
        }
        // As bytes, serde_json keeps lone surrogates; as a string it refuses them.
        deserializer.deserialize_bytes(Visit)
    }
}

/// Whether JavaScript's `Number.isInteger` holds.
pub fn is_integer(number: f64) -> bool {
    number.is_finite() && number.trunc() == number
}

/// The text JavaScript writes for a finite number (ECMA-262, Number::toString).
pub fn number_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if number < 0.0 { "-" } else { "" };
    let count = digits.len() as i32;
    let point = exponent + 1;
    let text = if count <= point && point <= 21 {
        format!("{digits}{}", "0".repeat((point - count) as usize))
    } else if 0 < point && point <= 21 {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else {
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{}{}", &digits[..1], if exponent < 0 { '-' } else { '+' }, exponent.abs())
    };
    format!("{sign}{text}")
}

/// Writes one object as `JSON.stringify` does: compact, keys in the order given.
#[derive(Default)]
pub struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    /// An object with no member yet.
    pub fn new() -> Self {
        Self(vec![b'{'])
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        Untrusted::from(key).write_json(&mut self.0);
        self.0.push(b':');
    }

    /// Adds a string member.
    pub fn string(&mut self, key: &str, value: &Untrusted) -> &mut Self {
        self.key(key);
        value.write_json(&mut self.0);
        self
    }

    /// Adds a string member where there is one.
    pub fn optional(&mut self, key: &str, value: Option<&Untrusted>) -> &mut Self {
        if let Some(value) = value {
            self.string(key, value);
        }
        self
    }

    /// Adds a number member.
    pub fn number(&mut self, key: &str, value: f64) -> &mut Self {
        self.key(key);
        self.0.extend_from_slice(number_text(value).as_bytes());
        self
    }

    /// Adds a member that is JSON text already.
    pub fn raw(&mut self, key: &str, value: &[u8]) -> &mut Self {
        self.key(key);
        self.0.extend_from_slice(value);
        self
    }

    /// The object's text.
    pub fn finish(&mut self) -> Vec<u8> {
        self.0.push(b'}');
        std::mem::take(&mut self.0)
    }
}

/// The text that JavaScript's `JSON.stringify` writes of what `JSON.parse` reads from `value`:
/// compact, each key once with its last value at its first place, but keys that are array indices
/// first and in their order; a number too large for a double is `null`.
///
/// Without recursion: what nests without limit is written all the same.
pub fn reserialize(value: Json<'_>) -> Vec<u8> {
    Reserializer { text: value.raw(), at: 0, out: Vec::with_capacity(value.raw().len()) }.write()
}

/// One object or array that is not closed yet.
enum Open {
    Array,
    Object {
        /// Where its first member begins in what is written.
        start: usize,
        /// Each member's key, and where its text begins.
        members: Vec<(Untrusted, usize)>,
    },
}

struct Reserializer<'a> {
    /// A JSON text, known to be one.
    text: &'a str,
    at: usize,
    out: Vec<u8>,
}

impl Reserializer<'_> {
    fn write(mut self) -> Vec<u8> {
        let mut open: Vec<Open> = Vec::new();
        // Whether a string here is a key.
        let mut key_next = false;
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            match byte {
                b'{' => {
                    self.out.push(byte);
                    open.push(Open::Object { start: self.out.len(), members: Vec::new() });
                    key_next = true;
                    self.at += 1;
                }
                b'[' => {
                    self.out.push(byte);
                    open.push(Open::Array);
                    key_next = false;
                    self.at += 1;
                }
                b'}' | b']' => {
                    if let Some(Open::Object { start, members }) = open.pop() {
                        self.settle(start, members);
                    }
                    self.out.push(byte);
                    self.at += 1;
                }
                b',' => {
                    self.out.push(byte);
                    key_next = matches!(open.last(), Some(Open::Object { .. }));
                    self.at += 1;
                }
                b':' => {
                    self.out.push(byte);
                    key_next = false;
                    self.at += 1;
                }
                b'"' => {
                    let token = self.token(string_len);
                    let text: Untrusted = serde_json::from_str(token).unwrap_or_else(|_| "".into());
                    if let (true, Some(Open::Object { members, .. })) = (key_next, open.last_mut()) {
                        members.push((text.clone(), self.out.len()));
                    }
                    text.write_json(&mut self.out);
                }
                b'-' | b'0'..=b'9' => {
                    let number: f64 = self.token(number_len).parse().unwrap_or(f64::INFINITY);
                    let text = if number.is_finite() { number_text(number) } else { "null".to_owned() };
                    self.out.extend_from_slice(text.as_bytes());
                }
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                // `true`, `false` and `null` stand as they are.
                other => {
                    self.out.push(other);
                    self.at += 1;
                }
            }
        }
        self.out
    }

    fn token(&mut self, length: impl FnOnce(&[u8]) -> usize) -> &str {
        let from = self.at;
        self.at += length(&self.text.as_bytes()[from..]);
        &self.text[from..self.at]
    }

    /// Puts the members of an object that was just read into the order and number that JavaScript
    /// gives them; nothing is to be done for nearly every object.
    fn settle(&mut self, start: usize, members: Vec<(Untrusted, usize)>) {
        let mut kept: Vec<(&Untrusted, std::ops::Range<usize>)> = Vec::with_capacity(members.len());
        let mut places: HashMap<&Untrusted, usize> = HashMap::with_capacity(members.len());
        for (nth, (key, begins)) in members.iter().enumerate() {
            // Up to the comma before the next, or the end.
            let ends = members.get(nth + 1).map_or(self.out.len(), |(_, next)| next - 1);
            match places.get(key) {
                Some(place) => kept[*place].1 = *begins..ends,
                None => {
                    places.insert(key, kept.len());
                    kept.push((key, *begins..ends));
                }
            }
        }
        let indices = kept.iter().filter(|(key, _)| array_index(key).is_some()).count();
        if kept.len() == members.len() && indices == 0 {
            return;
        }
        kept.sort_by_key(|(key, _)| array_index(key).map_or(u64::MAX, u64::from));
        let mut again = Vec::with_capacity(self.out.len() - start);
        for (nth, (_, range)) in kept.into_iter().enumerate() {
            if nth > 0 {
                again.push(b',');
            }
            again.extend_from_slice(&self.out[range]);
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&again);
    }
}

/// The bytes of the string literal that `bytes` begin with.
fn string_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The bytes of the number that `bytes` begin with.
fn number_len(bytes: &[u8]) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len())
}

/// The array index a key is: JavaScript lists those first.
fn array_index(key: &Untrusted) -> Option<u32> {
    let text = std::str::from_utf8(key.as_wtf8()).ok()?;
    let is_canonical = text == "0" || text.starts_with(|digit: char| matches!(digit, '1'..='9'));
    let number: u32 = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    (is_canonical && number < u32::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> String {
        String::from_utf8(reserialize(Document::decode(text.as_bytes()).value().unwrap())).unwrap()
    }

    /// One by one they would take a minute.
    #[test]
    fn an_object_of_very_many_keys_is_read_in_little_time() {
        let members: Vec<String> = (0..100_000).map(|at| format!("\"{}\":{at}", at % 99_990)).collect();
        let text = format!("{{{}}}", members.join(","));
        let begun = std::time::Instant::now();
        let document = Document::decode(text.as_bytes());
        let members = document.value().unwrap().object().unwrap();
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(members.len(), 99_990);
        for (at, (key, value)) in members.iter().enumerate() {
            let wanted = if at < 10 { at + 99_990 } else { at };
            assert!(*key == *at.to_string() && value.number() == Some(wanted as f64));
        }
    }

    #[test]
    fn a_value_is_written_again_as_javascript_writes_it() {
        for (read, written) in [
            (" { \"a\" : [ 1.0 , -0 , 1e3 , true ,null ] } ", r#"{"a":[1,0,1000,true,null]}"#),
            (r#"{"a":1,"b":2,"a":{"c":[],"c":3}}"#, r#"{"a":{"c":3},"b":2}"#),
            (
                r#"{"b":0,"10":1,"2":2,"01":3,"-1":4,"4294967295":5,"2":6}"#,
                r#"{"2":6,"10":1,"b":0,"01":3,"-1":4,"4294967295":5}"#,
            ),
            (r#"[1e400,-1e400,9007199254740993,1e21]"#, "[null,null,9007199254740992,1e+21]"),
            (r#"["\u00e9\/\ud800","\ud83d\ude00","\u0007\"{,:}"]"#, r#"["é/\ud800","😀","\u0007\"{,:}"]"#),
            (r#"{"\u0061":1,"a":2}"#, r#"{"a":2}"#),
            ("{}", "{}"),
            ("\"x\"", "\"x\""),
            ("-1.50", "-1.5"),
        ] {
            assert_eq!(again(read), written);
        }
    }

    #[test]
    fn what_nests_without_limit_is_written_again() {
        let text = format!("{}0{}", "[{\"a\":".repeat(20_000), "}]".repeat(20_000));
        assert_eq!(again(&text), text);
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (1796026361029.0, "1796026361029"),
            (9007199254740992.0, "9007199254740992"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (-2.5, "-2.5"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }

    #[test]
    fn what_is_not_looked_at_may_nest_without_limit() {
        let text = format!("{{\"a\":{}{},\"a\":1}}", "[".repeat(5000), "]".repeat(5000));
        let document = Document::decode(text.as_bytes());
        let members = document.value().unwrap().object().unwrap();
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].1.number(), Some(1.0));
    }

    #[test]
    fn a_lone_surrogate_is_a_replacement_character_in_text() {
        let document = Document::decode(br#"["a\ud83d","\ud83d\ude00","\n",1]"#);
        let elements = document.value().unwrap().array().unwrap();
        let texts: Vec<_> = elements.iter().map(Json::lossy).collect();
        assert_eq!(texts, [Some("a\u{FFFD}".into()), Some("😀".into()), Some("\n".into()), None]);
    }

    #[test]
    fn escaped_surrogate_pairs_are_one_character_and_lone_ones_stay() {
        let document = Document::decode(br#"["\ud83d\ude00","\ude00\ud83d"]"#);
        let elements = document.value().unwrap().array().unwrap();
        assert_eq!(elements[0].string().unwrap(), "😀");
        assert_eq!(elements[1].string().unwrap().utf16_len(), 2);
    }
}
