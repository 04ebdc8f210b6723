//! Texts that are inserted with one key, from `[snippets]` of the configuration.

use std::collections::BTreeMap;

use crate::contract::message;

/// How many there can be: one for each digit.
pub const COUNT: u8 = 9;

/// The texts by their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snippets(BTreeMap<u8, String>);

impl Snippets {
    /// Judges what is configured; every mistake is told, each beginning with its key.
    ///
    /// # Errors
    /// The mistakes.
    pub fn new(configured: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut known = BTreeMap::new();
        let mut mistakes = Vec::new();
        for (name, text) in configured {
            match number(name) {
                None => mistakes.push(format!(
                    "snippets.{}: no such snippet; they are called 1 to {COUNT}",
                    name.escape_debug()
                )),
                Some(number) if text.len() > message::MAX_BYTES => mistakes.push(format!(
                    "snippets.{number}: it has more than the {} bytes of a message",
                    message::MAX_BYTES
                )),
                Some(number) if text.trim().is_empty() => {
                    mistakes.push(format!("snippets.{number}: there is no text; remove the line"));
                }
                Some(number) => drop(known.insert(number, text.clone())),
            }
        }
        if mistakes.is_empty() { Ok(Self(known)) } else { Err(mistakes) }
    }

    /// The text of that number.
    pub fn get(&self, number: u8) -> Option<&str> {
        self.0.get(&number).map(String::as_str)
    }
}

fn number(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [digit @ b'1'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_told_with_its_key() {
        let long = "x".repeat(message::MAX_BYTES + 1);
        let configured = [("1", "ok"), ("0", "a"), ("10", "b"), ("a\u{1b}", "c"), ("2", " \n"), ("3", &long)];
        let configured = |count| {
            let texts = configured.iter().take(count);
            texts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let snippets = Snippets::new(&configured(1)).unwrap();
        assert_eq!((snippets.get(1), snippets.get(2)), (Some("ok"), None));
        let mistakes = Snippets::new(&configured(6)).unwrap_err();
        let begins = ["snippets.0:", "snippets.10:", "snippets.2:", "snippets.3:", "snippets.a\\u{1b}:"];
        assert_eq!(mistakes.len(), begins.len());
        for (mistake, begins) in mistakes.iter().zip(begins) {
            assert!(mistake.starts_with(begins), "{mistake}");
        }
    }
}
