//! Text from outside, as the other side holds it.
//!
//! Records, session files and Herdr replies are written by JavaScript, whose strings are sequences
//! of UTF-16 units and may hold lone surrogates. [`Untrusted`] keeps such a string exactly (as
//! WTF-8), measures and trims it as JavaScript does, and has no `Display`: it can reach a terminal
//! only through `console::text`, or through [`Untrusted::escaped`] in errors and logs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use unicode_segmentation::UnicodeSegmentation;

/// A string that someone else wrote: WTF-8 bytes, cheap to clone.
///
/// Invariant: the bytes are UTF-8, except that a lone surrogate stands as its three-byte form;
/// a high surrogate is never directly followed by a low one.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Untrusted(Arc<[u8]>);

impl Untrusted {
    /// From WTF-8 bytes as `serde_json` yields them. Surrogate halves that meet are joined, as
    /// JavaScript would read them; any other ill-formed byte becomes U+FFFD.
    pub(crate) fn from_wtf8(bytes: &[u8]) -> Self {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Self::from(text);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some((high, low)) = surrogate_at(rest, 0).zip(surrogate_at(rest, 3))
                && (0xD800..0xDC00).contains(&high)
                && low >= 0xDC00
            {
                let scalar = 0x1_0000 + ((u32::from(high) - 0xD800) << 10) + u32::from(low) - 0xDC00;
                let joined = char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(joined.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[6..];
            } else if surrogate_at(rest, 0).is_some() {
                out.extend_from_slice(&rest[..3]);
                rest = &rest[3..];
            } else {
                let valid = match std::str::from_utf8(rest) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                out.extend_from_slice(&rest[..valid]);
                rest = &rest[valid..];
                if !rest.is_empty() && surrogate_at(rest, 0).is_none() {
                    out.extend_from_slice("\u{FFFD}".as_bytes());
                    rest = &rest[1..];
                }
            }
        }
        Self(out.into())
    }

    /// From bytes read off a file or socket: ill-formed UTF-8 becomes U+FFFD, as the other side
    /// decodes it.
    pub fn from_bytes_lossy(bytes: &[u8]) -> Self {
        Self::from(String::from_utf8_lossy(bytes).as_ref())
    }

    /// The WTF-8 bytes.
    pub fn as_wtf8(&self) -> &[u8] {
        &self.0
    }

    /// Length in UTF-16 code units: what JavaScript calls `length`.
    pub fn utf16_len(&self) -> usize {
        // One unit for every character that begins, one more for those of four bytes.
        self.0.iter().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(*byte >= 0xF0)).sum()
    }

    /// Length in bytes when written as UTF-8 (a lone surrogate takes the three bytes of U+FFFD).
    pub fn utf8_len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no character at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether JavaScript's `trim` would leave nothing.
    pub fn is_blank(&self) -> bool {
        self.trimmed().is_empty()
    }

    /// What JavaScript's `trim` leaves.
    pub fn trim(&self) -> Self {
        let trimmed = self.trimmed();
        if trimmed.len() == self.0.len() { self.clone() } else { Self(trimmed.into()) }
    }

    fn trimmed(&self) -> &[u8] {
        let mut bytes = &self.0[..];
        while let Some(length) = leading_space(bytes) {
            bytes = &bytes[length..];
        }
        while let Some(length) = trailing_space(bytes) {
            bytes = &bytes[..bytes.len() - length];
        }
        bytes
    }

    /// The first `units` UTF-16 units, as JavaScript's `slice(0, units)`; a pair cut in half
    /// leaves its high surrogate.
    pub fn first_units(&self, units: usize) -> Self {
        let mut seen = 0;
        let mut end = 0;
        for (at, byte) in self.0.iter().enumerate() {
            if byte & 0xC0 == 0x80 {
                continue;
            }
            let width = 1 + usize::from(*byte >= 0xF0);
            if seen + width > units {
                if seen < units {
                    let mut cut = self.0[..at].to_vec();
                    let scalar = decode_four(&self.0[at..]);
                    let high = 0xD800 + ((scalar - 0x1_0000) >> 10) as u16;
                    cut.extend_from_slice(&encode_surrogate(high));
                    return Self(cut.into());
                }
                end = at;
                return Self(self.0[..end].into());
            }
            seen += width;
            end = at;
        }
        let _ = end;
        self.clone()
    }

    /// The first `bytes` bytes of the UTF-8 form, less what they would cut of a character.
    pub fn first_bytes(&self, bytes: usize) -> Self {
        let begins = |at: &usize| self.0.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        match (0..=bytes.min(self.0.len())).rev().find(begins) {
            Some(end) if end < self.0.len() => Self(self.0[..end].into()),
            _ => self.clone(),
        }
    }

    /// The last `bytes` bytes of the UTF-8 form, less what they would cut of a character.
    pub fn last_bytes(&self, bytes: usize) -> Self {
        let begins = |at: &usize| self.0.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        match (self.0.len().saturating_sub(bytes)..=self.0.len()).find(begins) {
            Some(start) if start > 0 => Self(self.0[start..].into()),
            _ => self.clone(),
        }
    }

    /// As Rust text; lone surrogates become U+FFFD (which is also what the other side hashes and
    /// writes to files).
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                let mut out = self.0.to_vec();
                let mut at = 0;
                while at < out.len() {
                    if surrogate_at(&out, at).is_some() {
                        out[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
                        at += 3;
                    } else {
                        at += 1;
                    }
                }
                Cow::Owned(String::from_utf8_lossy(&out).into_owned())
            }
        }
    }

    /// Lower-case hex SHA-256 of the UTF-8 form: *sha256(x)* of `docs/contract.md`.
    pub fn sha256_hex(&self) -> String {
        sha256_hex(self.to_str_lossy().as_bytes())
    }

    /// Safe to print anywhere: controls, bidi marks, zero-width and lone surrogates as `\u{…}`.
    pub fn escaped(&self) -> impl fmt::Display + '_ {
        Escaped(self)
    }

    /// The JSON string literal that JavaScript's `JSON.stringify` writes, quotes included.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        let mut at = 0;
        while at < self.0.len() {
            let byte = self.0[at];
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                0x08 => out.extend_from_slice(b"\\b"),
                0x09 => out.extend_from_slice(b"\\t"),
                0x0A => out.extend_from_slice(b"\\n"),
                0x0C => out.extend_from_slice(b"\\f"),
                0x0D => out.extend_from_slice(b"\\r"),
                0x00..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => {
                    if let Some(unit) = surrogate_at(&self.0, at) {
                        out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                        at += 3;
                        continue;
                    }
                    out.push(byte);
                }
            }
            at += 1;
        }
        out.push(b'"');
    }
}

/// Lower-case hex SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl From<&str> for Untrusted {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Untrusted {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl PartialEq<str> for Untrusted {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Untrusted {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escaped())
    }
}

struct Escaped<'a>(&'a Untrusted);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = &self.0.0;
        let mut at = 0;
        while at < bytes.len() {
            if let Some(unit) = surrogate_at(bytes, at) {
                write!(f, "\\u{{{unit:x}}}")?;
                at += 3;
                continue;
            }
            let end = (at + 1..bytes.len()).find(|next| bytes[*next] & 0xC0 != 0x80).unwrap_or(bytes.len());
            let text = std::str::from_utf8(&bytes[at..end]).unwrap_or("\u{FFFD}");
            for character in text.chars() {
                match character {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    _ if is_unsafe_to_show(character) => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                    _ => write!(f, "{character}")?,
                }
            }
            at = end;
        }
        Ok(())
    }
}

/// Characters that can drive a terminal or make text read other than it is: C0, DEL, C1, bidi
/// controls, zero-width and other invisible format characters, line separators, tags.
///
/// Zero-width joiner and variation selectors belong to emoji; they are judged in context by
/// `console::text`.
pub fn is_unsafe_to_show(character: char) -> bool {
    matches!(character,
        '\u{00}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{AD}' | '\u{034F}' | '\u{061C}'
        | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}' | '\u{200C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether `character` attaches to what stands before it, as a combining mark does.
pub fn attaches(character: char) -> bool {
    let mut text = String::from("a");
    text.push(character);
    text.graphemes(true).nth(1).is_none()
}

/// The surrogate whose three-byte form stands at `at`, if one does.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<u16> {
    match bytes.get(at..at + 3)? {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF] => {
            Some(0xD000 | (u16::from(second & 0x3F) << 6) | u16::from(third & 0x3F))
        }
        _ => None,
    }
}

fn encode_surrogate(unit: u16) -> [u8; 3] {
    [0xED, 0x80 | ((unit >> 6) & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}

fn decode_four(bytes: &[u8]) -> u32 {
    match bytes {
        [a, b, c, d, ..] => {
            (u32::from(a & 0x07) << 18)
                | (u32::from(b & 0x3F) << 12)
                | (u32::from(c & 0x3F) << 6)
                | u32::from(d & 0x3F)
        }
        _ => 0x1_0000,
    }
}

/// JavaScript's white space and line terminators. U+FEFF is among them, U+0085 and U+180E are not.
pub fn is_js_space(character: char) -> bool {
    matches!(character,
        '\u{09}'..='\u{0D}' | ' ' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}'
        | '\u{2028}' | '\u{2029}' | '\u{202F}' | '\u{205F}' | '\u{3000}' | '\u{FEFF}')
}

fn leading_space(bytes: &[u8]) -> Option<usize> {
    let end = (1..=4).find(|end| bytes.get(*end).is_none_or(|byte| byte & 0xC0 != 0x80))?;
    space_length(bytes.get(..end)?)
}

fn trailing_space(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80)?;
    space_length(&bytes[start..])
}

fn space_length(bytes: &[u8]) -> Option<usize> {
    let character = std::str::from_utf8(bytes).ok()?.chars().next()?;
    is_js_space(character).then_some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_cuts_count_utf16_units() {
        let text = Untrusted::from("aé😀z");
        assert_eq!(text.utf16_len(), 5);
        assert_eq!(text.first_units(2), "aé");
        assert_eq!(text.first_units(4), "aé😀");
        assert_eq!(text.first_units(9), text);
        let cut = text.first_units(3);
        assert_eq!(cut.utf16_len(), 3);
        assert_eq!(cut.as_wtf8()[3..], [0xED, 0xA0, 0xBD]);
    }

    #[test]
    fn cuts_by_bytes_keep_characters_whole() {
        let text = Untrusted::from("aé😀z");
        let cut = |bytes| (text.first_bytes(bytes), text.last_bytes(bytes));
        for (bytes, first, last) in [
            (0, "", ""),
            (1, "a", "z"),
            (2, "a", "z"),
            (3, "aé", "z"),
            (5, "aé", "😀z"),
            (7, "aé😀", "é😀z"),
            (8, "aé😀z", "aé😀z"),
            (9, "aé😀z", "aé😀z"),
        ] {
            assert_eq!(cut(bytes), (Untrusted::from(first), Untrusted::from(last)), "{bytes}");
        }
        let half = Untrusted::from_wtf8(&[b'a', 0xED, 0xA0, 0xBD, b'z']);
        assert_eq!((half.first_bytes(3), half.last_bytes(3)), (Untrusted::from("a"), Untrusted::from("z")));
    }

    #[test]
    fn surrogate_halves_that_meet_are_joined() {
        let joined = Untrusted::from_wtf8(&[0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80]);
        assert_eq!(joined, "😀");
        let reversed = Untrusted::from_wtf8(&[0xED, 0xB8, 0x80, 0xED, 0xA0, 0xBD]);
        assert_eq!(reversed.utf16_len(), 2);
        assert_eq!(reversed.to_str_lossy(), "\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn blank_is_what_trim_calls_blank() {
        for blank in ["", " ", "\t\n", "\u{A0}", "\u{FEFF}", "\u{2028} "] {
            assert!(Untrusted::from(blank).is_blank(), "{blank:?}");
        }
        for text in ["\u{85}", "\u{180E}", "\u{200B}", "\0"] {
            assert!(!Untrusted::from(text).is_blank(), "{text:?}");
        }
        assert_eq!(Untrusted::from(" \u{FEFF}a b\u{3000}").trim(), "a b");
    }

    #[test]
    fn escaped_text_holds_nothing_that_drives_a_terminal() {
        let hostile = Untrusted::from("a\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{7f}é");
        assert_eq!(hostile.escaped().to_string(), "a\\u{1b}[2J\\u{9b}31m\\u{202e}\\u{200b}\\u{7f}é");
    }
}
