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

/// The constraints, and when they were offered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    kept: VecDeque<String>,
    offered: Option<(Vec<String>, u64)>,
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

    /// What to offer once the session has taken `tokens`; nothing where there is nothing, or the same was
    /// offered lately.
    pub fn offer(&mut self, tokens: u64) -> Option<String> {
        let kept: Vec<String> = self.kept.iter().cloned().collect();
        let is_known =
            |(before, at): &(Vec<String>, u64)| *before == kept && tokens.saturating_sub(*at) < AGAIN;
        if kept.is_empty() || self.offered.as_ref().is_some_and(is_known) {
            return None;
        }
        let text = kept.iter().map(|sentence| format!("> {sentence}\n")).collect();
        self.offered = Some((kept, tokens));
        Some(text)
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
        assert_eq!(constraints.offer(0), None);
        constraints.turn("Never a. Never b.");
        assert_eq!(constraints.offer(10).as_deref(), Some("> Never a.\n> Never b.\n"));
        assert_eq!(constraints.offer(10 + AGAIN - 1), None);
        assert!(constraints.offer(10 + AGAIN).is_some());
        for nth in 0..20 {
            constraints.turn(&format!("Never {nth}. Never b."));
        }
        assert_eq!(constraints.all().count(), MOST);
        assert_eq!(constraints.all().last(), Some("Never b."));
        assert!(constraints.offer(10 + AGAIN).is_some(), "others at once");
    }
}
