//! JSON as the other side judges it.
//!
//! Records are written and read with JavaScript's `JSON.parse` and `JSON.stringify`. This reader
//! agrees with them where a plain `serde_json::Value` does not: of a duplicate key the last counts,
//! lone surrogates are legal in escapes, ill-formed UTF-8 reads as U+FFFD, a BOM is refused,
//! `1e400` is a number (and no integer), values that are not looked at may nest without limit.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::text::Untrusted;

/// Why bytes are not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct NotJson(String);

/// A JSON document decoded as the other side decodes a file: bytes, then text, then values.
pub struct Document<'a>(Cow<'a, str>);

impl<'a> Document<'a> {
    /// Decodes `bytes`; ill-formed UTF-8 becomes U+FFFD.
    pub fn decode(bytes: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(bytes))
    }

    /// Bytes after decoding: more than the file's where ill-formed UTF-8 grew into U+FFFD.
    pub fn decoded_len(&self) -> usize {
        self.0.len()
    }

    /// The value, if the whole text is one.
    pub fn value(&self) -> Result<Json<'_>, NotJson> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(|error| NotJson(error.to_string()))?;
        Ok(Json(raw))
    }
}

/// One JSON value, looked into on demand.
#[derive(Clone, Copy)]
pub struct Json<'a>(&'a RawValue);

impl<'a> Json<'a> {
    /// Its text as it stands.
    pub fn raw(&self) -> &'a str {
        self.0.get()
    }

    /// The members of an object, each key once, in order of first appearance, with its last value.
    pub fn object(&self) -> Option<Vec<(Untrusted, Json<'a>)>> {
        if !self.raw().starts_with('{') {
            return None;
        }
        serde_json::from_str::<Members>(self.raw()).ok().map(|members| members.0)
    }

    /// The elements of an array.
    pub fn array(&self) -> Option<Vec<Json<'a>>> {
        if !self.raw().starts_with('[') {
            return None;
        }
        serde_json::from_str::<Elements>(self.raw()).ok().map(|elements| elements.0)
    }

    /// A string.
    pub fn string(&self) -> Option<Untrusted> {
        if !self.raw().starts_with('"') {
            return None;
        }
        serde_json::from_str(self.raw()).ok()
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

struct Members<'a>(Vec<(Untrusted, Json<'a>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Untrusted, Json<'de>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Untrusted, &RawValue>()? {
                    match members.iter_mut().find(|(known, _)| *known == key) {
                        Some(member) => member.1 = Json(value),
                        None => members.push((key, Json(value))),
                    }
                }
                Ok(Members(members))
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
                    elements.push(Json(value));
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn escaped_surrogate_pairs_are_one_character_and_lone_ones_stay() {
        let document = Document::decode(br#"["\ud83d\ude00","\ude00\ud83d"]"#);
        let elements = document.value().unwrap().array().unwrap();
        assert_eq!(elements[0].string().unwrap(), "😀");
        assert_eq!(elements[1].string().unwrap().utf16_len(), 2);
    }
}
