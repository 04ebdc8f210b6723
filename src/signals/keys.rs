//! What makes two results the same: keys, and what is left out of a text before it is compared.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use memchr::memmem;

/// Where Pi keeps the whole of an output that it cut; the middle is chance.
const LOG: (&str, &str) = ("/tmp/pi-bash-", ".log");

/// A digest by which results, calls and rounds are compared, within one process. Who makes two that are the
/// same on purpose fools nobody but the detectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// That of parts, which can't run into each other.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = FixedState::default().build_hasher();
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        Self(hasher.finish())
    }

    /// That of several keys in whatever order; how often each occurs counts.
    pub fn of_all(keys: impl IntoIterator<Item = Self>) -> Self {
        let mut keys: Vec<Self> = keys.into_iter().collect();
        keys.sort_unstable();
        let keys: Vec<[u8; 8]> = keys.into_iter().map(|key| key.0.to_le_bytes()).collect();
        Self::of(keys.iter().map(|key| &key[..]))
    }
}

/// Whether the name of an argument says that it is a path.
pub fn is_path(argument: &str) -> bool {
    let name = argument.to_ascii_lowercase();
    name.contains("path") || name.contains("file")
}

/// `text` without what differs by chance: escapes for a terminal, carriage returns, spaces at the ends
/// of lines, and the names of Pi's logs.
pub fn normalised(text: &str) -> String {
    let plain = without_escapes(text);
    let has_logs = memmem::find(plain.as_bytes(), LOG.0.as_bytes()).is_some();
    let mut out = String::with_capacity(plain.len());
    let mut begin = 0;
    let ends = memchr::memchr_iter(b'\n', plain.as_bytes()).chain([plain.len()]);
    for end in ends {
        if begin > 0 {
            out.push('\n');
        }
        let line = &plain[begin..end];
        let line = line.strip_suffix('\r').unwrap_or(line).trim_end_matches([' ', '\t']);
        if has_logs {
            push_without_logs(&mut out, line);
        } else {
            out.push_str(line);
        }
        begin = end + 1;
    }
    out
}

fn push_without_logs(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(at) = rest.find(LOG.0) {
        let (before, after) = rest.split_at(at + LOG.0.len());
        out.push_str(before);
        let digits = after.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(after.len());
        rest = if digits > 0 && after[digits..].starts_with(LOG.1) { &after[digits..] } else { after };
    }
    out.push_str(rest);
}

/// `text` without the escape sequences of ECMA-48: CSI, strings with their terminators, and those of two
/// or three characters.
fn without_escapes(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if memchr::memchr(0x1b, bytes).is_none() && memmem::find(bytes, "\u{9b}".as_bytes()).is_none() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let introducer = match character {
            '\u{9b}' => '[',
            '\u{1b}' => match characters.next() {
                Some(introducer) => introducer,
                None => break,
            },
            other => {
                out.push(other);
                continue;
            }
        };
        match introducer {
            '[' => {
                while characters.next_if(|it| ('\u{20}'..='\u{3f}').contains(it)).is_some() {}
                characters.next_if(|it| ('\u{40}'..='\u{7e}').contains(it));
            }
            ']' | 'P' | 'X' | '^' | '_' => {
                // To the terminator, or to the line's end where there is none.
                while let Some(inner) = characters.next_if(|it| *it != '\n') {
                    let is_end = inner == '\u{7}' || inner == '\u{9c}';
                    if is_end || inner == '\u{1b}' && characters.next_if_eq(&'\\').is_some() {
                        break;
                    }
                }
            }
            '\u{20}'..='\u{2f}' => {
                characters.next();
            }
            _ => {}
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_is_left_out() {
        for (text, wanted) in [
            ("a  \r\nb\t\n c", "a\nb\n c"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\", "red link"),
            ("\u{1b}(Bplain\u{9b}2K\u{1b}", "plain"),
            ("\u{1b}]0;no end\nnext", "\nnext"),
            ("see /tmp/pi-bash-0af3.log.", "see /tmp/pi-bash-.log."),
            ("/tmp/pi-bash-xyz.log /tmp/pi-bash-.log", "/tmp/pi-bash-xyz.log /tmp/pi-bash-.log"),
            ("lone \r stays\n\n", "lone \r stays\n\n"),
        ] {
            assert_eq!(normalised(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn keys_tell_parts_from_each_other_and_multisets_from_sets() {
        let of = |parts: &[&str]| Key::of(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
        let (a, b) = (of(&["a"]), of(&["b"]));
        assert_eq!(Key::of_all([a, b]), Key::of_all([b, a]));
        assert_ne!(Key::of_all([a, b]), Key::of_all([a, b, b]));
    }

    #[test]
    fn paths_are_known_by_the_name_of_their_argument() {
        assert!(is_path("path") && is_path("filePath") && is_path("FILE") && is_path("old_file_name"));
        assert!(!is_path("pattern") && !is_path("command"));
    }
}
