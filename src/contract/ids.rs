//! Identifiers and times of `docs/contract.md`.

use std::fmt;

use super::json::{is_integer, number_text};
use super::text::{Untrusted, sha256_hex};

/// Longest session or native id, in UTF-16 units.
pub const MAX_ID_UNITS: usize = 512;

/// A lower-case UUID with version digit 1–5 and variant digit 8, 9, a or b.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(uuid::Uuid);

impl Uuid {
    /// A fresh random one (version 4).
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4())
    }

    /// Parses exactly the form above; a version 7 or upper-case one is refused.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 36
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                14 => matches!(byte, b'1'..=b'5'),
                19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        if shaped { uuid::Uuid::try_parse(text).ok().map(Self) } else { None }
    }

    /// The same from outside text.
    pub fn from_untrusted(text: &Untrusted) -> Option<Self> {
        Self::parse(std::str::from_utf8(text.as_wtf8()).ok()?)
    }

    /// The message id that lead and Chief both derive for an ask under a lease, so that they name
    /// the same file.
    pub fn of_ask(lead: &SessionId, ask: Uuid, lease: Uuid) -> Self {
        Self::of_ask_parts(&lead.as_untrusted().to_str_lossy(), &ask.to_string(), &lease.to_string())
    }

    fn of_ask_parts(lead: &str, ask: &str, lease: &str) -> Self {
        let hex = sha256_hex(format!("{lead}\0{ask}\0{lease}").as_bytes());
        let text =
            format!("{}-{}-5{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32]);
        // The shape is fixed above, so it always parses.
        Self(uuid::Uuid::try_parse(&text).unwrap_or(uuid::Uuid::nil()))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A Pi session id: 1–512 UTF-16 units, any characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Untrusted);

impl SessionId {
    /// Checks the length.
    pub fn new(text: impl Into<Untrusted>) -> Option<Self> {
        let text = text.into();
        (1..=MAX_ID_UNITS).contains(&text.utf16_len()).then_some(Self(text))
    }

    /// The id's text.
    pub fn as_untrusted(&self) -> &Untrusted {
        &self.0
    }

    /// *sha256(session)*: the name of its record file and inbox directory.
    pub fn hash(&self) -> String {
        self.0.sha256_hex()
    }

    /// Safe to print in errors and logs.
    pub fn escaped(&self) -> impl fmt::Display + '_ {
        self.0.escaped()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A workspace, tab or pane id, or a peer's name and the like: 1–512 UTF-16 units, not blank.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NativeId(Untrusted);

impl NativeId {
    /// Checks length and blankness.
    pub fn new(text: impl Into<Untrusted>) -> Option<Self> {
        let text = text.into();
        ((1..=MAX_ID_UNITS).contains(&text.utf16_len()) && !text.is_blank()).then_some(Self(text))
    }

    /// The id's text.
    pub fn as_untrusted(&self) -> &Untrusted {
        &self.0
    }

    /// Safe to print in errors and logs.
    pub fn escaped(&self) -> impl fmt::Display + '_ {
        self.0.escaped()
    }
}

impl fmt::Debug for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Integer milliseconds since the epoch, ≥ 0. Others may write any integer a double holds.
#[derive(Clone, Copy, PartialEq)]
pub struct Timestamp(f64);

impl Timestamp {
    /// From a clock reading.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis as f64)
    }

    /// From a JSON number.
    pub fn from_number(number: f64) -> Option<Self> {
        // Adding zero turns -0 into 0.
        (is_integer(number) && number >= 0.0).then_some(Self(number + 0.0))
    }

    /// As the double it is.
    pub fn as_number(self) -> f64 {
        self.0
    }

    /// As milliseconds, saturating.
    pub fn as_millis(self) -> u64 {
        self.0 as u64
    }
}

// Never NaN, by construction.
impl Eq for Timestamp {}
impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number_text(self.0))
    }
}

/// The process id in a claim: any positive integer a double holds.
#[derive(Clone, Copy, PartialEq)]
pub struct Pid(f64);

impl Pid {
    /// From a JSON number.
    pub fn from_number(number: f64) -> Option<Self> {
        (is_integer(number) && number > 0.0).then_some(Self(number))
    }

    /// This process.
    pub fn own() -> Self {
        Self(f64::from(std::process::id()))
    }

    /// As the double it is.
    pub fn as_number(self) -> f64 {
        self.0
    }

    /// As a process id the system can be asked about; one beyond 31 bits can't be.
    pub fn as_raw(self) -> Option<i32> {
        (self.0 <= f64::from(i32::MAX)).then_some(self.0 as i32)
    }
}

impl Eq for Pid {}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number_text(self.0))
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public derivation also takes parts that are no ids; the golden vectors have some.
    #[test]
    fn ask_message_ids_match_the_golden_vectors() {
        let vectors: serde_json::Value =
            serde_json::from_slice(include_bytes!("../../tests/fixtures/golden/vectors.json")).unwrap();
        let cases = vectors["ask_message_id"].as_array().unwrap();
        assert_eq!(cases.len(), 7);
        for case in cases {
            let part = |key: &str| case[key].as_str().unwrap();
            let id = Uuid::of_ask_parts(part("lead"), part("ask"), part("lease"));
            assert_eq!(id.to_string(), part("id"));
            assert_eq!(Uuid::parse(part("id")), Some(id));
        }
    }

    #[test]
    fn uuids_outside_the_form_are_refused() {
        assert!(Uuid::parse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee").is_some());
        for text in [
            "019f951b-deda-7ad6-8303-d6f22deccf3e",
            "AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE",
            "aaaaaaaa-bbbb-4ccc-cddd-eeeeeeeeeeee",
            "00000000-0000-0000-0000-000000000000",
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\n",
            "aaaaaaaabbbb4ccc8dddeeeeeeeeeeee",
            "",
        ] {
            assert_eq!(Uuid::parse(text), None, "{text:?}");
        }
    }
}
