//! `@path` in a text: where one begins and ends, and how one is written.
//!
//! A mention begins at `@` after a space, a bracket or a quotation mark, or at the beginning of a line:
//! so no mail address is one, and nothing within backticks. Its path goes up to the next space, or from
//! one `"` to the next, where `\` stands before a `"` or `\` that is part of it.

/// What may stand before a mention, besides space.
const OPENING: [char; 7] = ['(', '[', '{', '<', '"', '\'', '='];
/// What ends a sentence rather than a path.
const TRAILING: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\''];

/// A path mentioned in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// What it may name, the longest first: what is behind a path may belong to the sentence.
    pub paths: Vec<String>,
}

/// The mentions in `text`, in order.
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut all = Vec::new();
    for line in text.split('\n') {
        let mut rest = line;
        while let Some(found) = next(rest) {
            let paths = match found.quoted {
                // Without its end it is none.
                true if !found.closed => Vec::new(),
                true => vec![found.path],
                false => meant(&found.path),
            };
            if !paths.is_empty() {
                all.push(Mention { paths });
            }
            rest = &rest[found.end..];
        }
    }
    all
}

/// A mention that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Where its `@` stands in the line, in characters.
    pub at: usize,
    /// The path as far as it is typed.
    pub path: String,
}

/// The mention that ends where `before`, the line up to the cursor, does.
pub fn partial(before: &str) -> Option<Partial> {
    let mut from = 0;
    while let Some(found) = next(&before[from..]) {
        let (at, end) = (from + found.at, from + found.end);
        if end == before.len() && !found.closed {
            return Some(Partial { at: before[..at].chars().count(), path: found.path });
        }
        from = end;
    }
    None
}

/// How `path` is mentioned; `whole` unless more of it follows. None if it can't be: a text has no
/// control characters.
pub fn written(path: &str, whole: bool) -> Option<String> {
    if path.chars().any(char::is_control) {
        return None;
    }
    let quoted =
        path.starts_with('"') || path.chars().any(char::is_whitespace) || (whole && path.ends_with(TRAILING));
    if !quoted {
        return Some(format!("@{path}"));
    }
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("@\"{escaped}{}", if whole { "\"" } else { "" }))
}

/// One mention in a line, or in its rest.
struct Found {
    at: usize,
    end: usize,
    path: String,
    quoted: bool,
    closed: bool,
}

fn next(line: &str) -> Option<Found> {
    let mut before = None;
    for (at, character) in line.char_indices() {
        let begins = before.is_none_or(|it: char| it.is_whitespace() || OPENING.contains(&it));
        before = Some(character);
        if character != '@' || !begins {
            continue;
        }
        let rest = &line[at + 1..];
        if let Some(quoted) = rest.strip_prefix('"') {
            let (path, end) = unquoted(quoted);
            let (closed, length) = (end.is_some(), end.unwrap_or(quoted.len()));
            return Some(Found { at, end: at + 2 + length, path, quoted: true, closed });
        }
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let path = rest[..length].to_owned();
        return Some(Found { at, end: at + 1 + length, path, quoted: false, closed: false });
    }
    None
}

/// What stands up to the closing `"`, and where it ends, if it does.
fn unquoted(text: &str) -> (String, Option<usize>) {
    let mut path = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (path, Some(at + 1)),
            '\\' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => path.push(escaped),
                None => path.push('\\'),
            },
            other => path.push(other),
        }
    }
    (path, None)
}

/// The paths that `path` may stand for, the longest first.
fn meant(path: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut path = path;
    while !path.is_empty() {
        paths.push(path.to_owned());
        match path.strip_suffix(TRAILING) {
            Some(shorter) => path = shorter,
            None => break,
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        mentions(text).into_iter().map(|mention| mention.paths.join("|")).collect()
    }

    #[test]
    fn a_mention_begins_a_word_and_ends_at_a_space() {
        assert_eq!(found("see @src/a.rs and\n@~/b\tnow"), ["src/a.rs", "~/b"]);
        assert_eq!(found("(@a) \"@b\" =@c"), ["a)|a", "b\"|b", "c"]);
        assert_eq!(found("@a.rs, @b?!"), ["a.rs,|a.rs", "b?!|b?|b"]);
        assert_eq!(found("@@x @\u{e4}\u{a0}y"), ["@x", "\u{e4}"]);
    }

    #[test]
    fn mail_addresses_and_code_are_none() {
        for text in ["", "@", "a @ b", "op@host.org", "<op@host>", "`@a` x`@b", "a@b @", "@\"\" @...\n"] {
            let all = found(text);
            assert!(all.iter().all(|it| it.is_empty() || it.starts_with("...")), "{text:?}: {all:?}");
        }
    }

    #[test]
    fn what_is_between_quotes_is_one_path() {
        assert_eq!(found(r#"@"a b" @"c \"d\" \\ \e." @"open"#), ["a b", r#"c "d" \ \e."#]);
        assert_eq!(found("@\"a\nb\" @c"), ["c"], "a path has no line's end");
    }

    #[test]
    fn the_mention_before_the_cursor_is_being_typed() {
        let of = |before: &str| partial(before).map(|it| (it.at, it.path));
        assert_eq!(of("\u{e4} @src/a"), Some((2, "src/a".to_owned())));
        assert_eq!(of("@a @"), Some((3, String::new())));
        assert_eq!(of("@\"my f"), Some((0, "my f".to_owned())));
        for before in ["", "a@b", "@a ", "@\"a b\"", "x"] {
            assert_eq!(of(before), None, "{before:?}");
        }
    }

    #[test]
    fn what_is_written_is_mentioned() {
        for path in ["a", "a b", "a\"b", "a\\", "\"a", "a.", "a\\\" b)", "\u{e4}\u{a0}", "@", "~/x,"] {
            let written = written(path, true).unwrap();
            assert_eq!(mentions(&written)[0].paths[0], path, "{written}");
            assert_eq!(mentions(&format!("x {written} y")).len(), 1, "{written}");
            let open = super::written(path, false).unwrap();
            assert_eq!(partial(&open).map(|it| it.path).as_deref(), Some(path), "{open}");
        }
        assert_eq!(written("a\u{1b}b", true), None);
        assert_eq!(written("a\nb", false), None);
    }

    proptest::proptest! {
        #[test]
        fn every_path_without_controls_is_read_back(path in "[^\\x00-\\x1f\\x7f-\\x9f]{1,20}") {
            let written = written(&path, true).unwrap();
            proptest::prop_assert_eq!(&mentions(&written)[0].paths[0], &path);
        }

        #[test]
        fn no_text_upsets_it(text in "[@\"\\\\ a\\n.\u{e4}]{0,30}") {
            mentions(&text);
            partial(text.split('\n').next_back().unwrap_or_default());
        }
    }
}
