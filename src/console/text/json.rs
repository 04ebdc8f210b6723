//! Strings in JSON output: exact, yet safe to look at in a terminal.

use std::fmt::Write;

use super::cluster::is_mark;
use crate::contract::Untrusted;
use crate::contract::text::is_unsafe_to_show;

/// Marks in a row that are written as they are; further ones are escaped.
const MAX_MARKS: usize = 4;

/// A JSON string literal, quotes included, that reads back as exactly this text. Whatever could
/// drive a terminal or hide (C0, DEL, C1, bidi, zero-width, tags, joiners, variation selectors,
/// towers of marks, lone surrogates) is written `\uXXXX`.
pub fn json_string(text: &Untrusted) -> String {
    let mut literal = Vec::with_capacity(text.utf8_len() + 2);
    text.write_json(&mut literal);
    // Lone surrogates are escaped by now, so this is UTF-8.
    json_document(&String::from_utf8_lossy(&literal))
}

/// A whole JSON document with the same characters escaped. They stand only inside strings there,
/// so the document's meaning stays.
pub fn json_document(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    let mut marks = 0;
    for character in json.chars() {
        // Line feeds and tabs in a document are its layout; inside strings they are escaped already.
        let layout = matches!(character, '\n' | '\r' | '\t');
        let hidden = !layout && is_unsafe_to_show(character)
            || matches!(character, '\u{200D}' | '\u{FE00}'..='\u{FE0F}');
        let mark = !character.is_ascii() && is_mark(character);
        marks = if mark { marks + 1 } else { 0 };
        if hidden || marks > MAX_MARKS {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string can't fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}
