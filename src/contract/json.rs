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
mod write;

use tape::Place;
pub use write::{ObjectWriter, number_text, reserialize};

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

#[cfg(test)]
mod tests {
    use super::*;

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
