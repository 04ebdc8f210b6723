//! Writing JSON as JavaScript's `JSON.stringify` does.

use std::collections::HashMap;

use super::Json;
use crate::contract::text::Untrusted;

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
    use super::super::Document;
    use super::*;

    fn again(text: &str) -> String {
        String::from_utf8(reserialize(Document::decode(text.as_bytes()).value().unwrap())).unwrap()
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
}
