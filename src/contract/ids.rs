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

impl From<Uuid> for SessionId {
    /// A UUID's 36 characters are always a session.
    fn from(id: Uuid) -> Self {
        Self(id.to_string().into())
    }
}

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

    /// What stands for the ids of a place in Herdr outside of it.
    pub fn none() -> Self {
        Self("none".into())
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

    /// As the public derivation gives them, which also takes parts that are no ids.
    #[test]
    fn ask_message_ids_are_derived_as_recorded() {
        let (three, four) = ("00000003-1111-4222-8333-444444444444", "00000004-1111-4222-8333-444444444444");
        for (lead, ask, lease, recorded) in [
            (
                "lead",
                "00000001-1111-4222-8333-444444444444",
                "00000002-1111-4222-8333-444444444444",
                "758df3e8-93b2-5453-8dc1-cdf7fd45a62e",
            ),
            (
                "019f951b-deda-7ad6-8303-d6f22deccf3e",
                "d7bcf49f-b508-47ae-a9c8-6de2112ef412",
                "2f4ea2ae-a517-4c33-aae2-b65459d2f7d8",
                "9bf6fe14-fe51-5367-825a-d4db36957155",
            ),
            ("", "", "", "96a296d2-24f2-55c6-8bee-93c30f8a3091"),
            ("ünï", three, four, "24377072-8339-5d6d-81d7-fdfd24bcf340"),
            ("a\0b", three, four, "4135bdf9-19e2-5142-8939-4b273e3a1d20"),
            ("a", "b\0c", "d", "cf92326f-85f5-5aa8-85be-765403a20d1b"),
            ("a\0b", "c", "d", "cf92326f-85f5-5aa8-85be-765403a20d1b"),
        ] {
            let id = Uuid::of_ask_parts(lead, ask, lease);
            assert_eq!(id.to_string(), recorded, "{lead:?}");
            assert_eq!(Uuid::parse(recorded), Some(id));
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
