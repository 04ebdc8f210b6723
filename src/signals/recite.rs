//! The standing constraints of a user, quoted, so that they outlive a compaction.

use std::collections::VecDeque;

/// Constraints that are kept, the latest.
pub const MOST: usize = 8;
/// Characters of one at most; a longer sentence is no constraint to recite, and a part could say the
/// opposite.
pub const LONGEST: usize = 200;
/// Estimated tokens before the same are offered again.
pub const AGAIN: u64 = 8_000;
/// What a constraint says.
const CUES: [&str; 6] = ["do not", "don't", "never", "must", "not allowed", "forbidden"];

/// Constraints as they are inserted into a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recital {
    /// The text, a line each.
    pub text: String,
    /// The estimated tokens that the session has taken.
    pub tokens: u64,
}

impl Recital {
    /// Whether to offer it after `before`: not the same within [`AGAIN`] tokens.
    pub fn is_due(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            before.text != self.text || self.tokens.saturating_sub(before.tokens) >= AGAIN
        })
    }
}

/// The constraints that stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    kept: VecDeque<String>,
}

impl Constraints {
    /// Takes a turn of the user's.
    pub fn turn(&mut self, text: &str) {
        for sentence in constraints(text) {
            self.kept.retain(|kept| *kept != sentence);
            self.kept.push_back(sentence);
            if self.kept.len() > MOST {
                self.kept.pop_front();
            }
        }
    }

    /// The constraints that stand, the earliest first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(String::as_str)
    }

    /// What there is to recite once the session has taken `tokens`.
    pub fn recital(&self, tokens: u64) -> Option<Recital> {
        let text: String = self.kept.iter().map(|sentence| format!("> {sentence}\n")).collect();
        (!text.is_empty()).then_some(Recital { text, tokens })
    }
}

/// The sentences of `text` that constrain.
fn constraints(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_some() { None } else { mark };
            continue;
        }
        if fence.is_some() || line.starts_with('>') {
            continue;
        }
        let line = line.trim_start_matches(['-', '*', '+', '\u{2022}']).trim_start();
        found.extend(sentences(line).filter(|sentence| constrains(sentence)).map(str::to_owned));
    }
    found
}

/// The sentences of a line, with what ends them.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, end): &(usize, char)| {
            matches!(end, '.' | '!' | '?' | ';')
                && rest[at + end.len_utf8()..].chars().next().is_none_or(char::is_whitespace)
        };
        let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, end)| at + end.len_utf8());
        let sentence = rest[..end].trim_end();
        rest = &rest[end..];
        Some(sentence)
    })
}

fn constrains(sentence: &str) -> bool {
    if sentence.ends_with('?') || sentence.chars().count() > LONGEST {
        return false;
    }
    let plain = outside_quotes(sentence).to_lowercase().replace('\u{2019}', "'");
    CUES.iter().any(|cue| {
        plain.match_indices(cue).any(|(at, _)| {
            let is_word = |character: char| character.is_alphanumeric() || character == '_';
            !plain[..at].chars().next_back().is_some_and(is_word)
                && !plain[at + cue.len()..].chars().next().is_some_and(is_word)
        })
    })
}

/// `sentence` with a space in place of everything in quotes.
fn outside_quotes(sentence: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for character in sentence.chars() {
        match (quote, character) {
            (Some(end), character) if character == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(character),
            (None, '\u{201c}') => quote = Some('\u{201d}'),
            (None, '\u{ab}') => quote = Some('\u{bb}'),
            (None, character) => {
                out.push(character);
                continue;
            }
        }
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_constrains_is_quoted() {
        let text = "Please refactor it. Never push to main! Must I wait? You must keep src/a.rs as it is.\n\
                    > never quoted\n```\ndo not fence\n```\n- Don\u{2019}t touch the schema\nThe file says \"do not edit\".\n\
                    Whatever, nevertheless mustard.\nIt is not allowed to use unwrap; forbidden too";
        assert_eq!(
            constraints(text),
            [
                "Never push to main!",
                "You must keep src/a.rs as it is.",
                "Don\u{2019}t touch the schema",
                "It is not allowed to use unwrap;",
                "forbidden too",
            ]
        );
        assert!(constraints(&format!("never {}", "x".repeat(LONGEST))).is_empty());
    }

    #[test]
    fn the_same_is_offered_again_only_after_a_while() {
        let mut constraints = Constraints::default();
        assert_eq!(constraints.recital(0), None);
        constraints.turn("Never a. Never b.");
        let first = constraints.recital(10).unwrap();
        assert_eq!(first.text, "> Never a.\n> Never b.\n");
        assert!(first.is_due(None));
        assert!(!constraints.recital(10 + AGAIN - 1).unwrap().is_due(Some(&first)));
        assert!(constraints.recital(10 + AGAIN).unwrap().is_due(Some(&first)));
        for nth in 0..20 {
            constraints.turn(&format!("Never {nth}. Never b."));
        }
        assert_eq!(constraints.all().count(), MOST);
        assert_eq!(constraints.all().last(), Some("Never b."));
        assert!(constraints.recital(10).unwrap().is_due(Some(&first)), "others at once");
    }
}
