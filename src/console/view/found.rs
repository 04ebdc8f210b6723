//! A text in lines, what a search finds in it marked.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::Line;
use crate::contract::Untrusted;
use crate::contract::rendered::Parts;
use crate::fact::Needle;

/// How many places of `needle` can be seen in `text`. One that goes over a line break can't.
pub(super) fn count(text: &Untrusted, needle: &Needle) -> usize {
    let Parts { said, attached } = Parts::of(text);
    count_in(&said, needle) + attached.map_or(0, |attached| count_in(&attached, needle))
}

fn count_in(text: &Untrusted, needle: &Needle) -> usize {
    text.to_str_lossy().lines().map(|line| needle.places(text::line(line).as_str()).len()).sum()
}

/// The lines of `text` in `room` columns, what is said before the files that go along, and the line in
/// which each place of `needle` begins; the `current` one is marked as the cursor is.
pub(super) fn lines(
    text: &Untrusted,
    needle: Option<&Needle>,
    current: usize,
    room: usize,
) -> (Vec<Line>, Vec<usize>) {
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    let Parts { said, attached } = Parts::of(text);
    let places = |line: &str| needle.map(|needle| needle.places(line)).unwrap_or_default();
    add(&said.to_str_lossy(), &places, current, room, Role::Text, &mut lines, &mut rows);
    if let Some(attached) = attached {
        lines.push(Line::Rule(text::line("attached"), Role::Heading));
        add(&attached.to_str_lossy(), &places, current, room, Role::Muted, &mut lines, &mut rows);
    }
    (lines, rows)
}

/// Adds the lines of one part, and in `rows` the line in which each of its places begins; all but the
/// `places` of a line are drawn as `plain`.
pub(super) fn add(
    text: &str,
    places: &dyn Fn(&str) -> Vec<Range<usize>>,
    current: usize,
    room: usize,
    plain: Role,
    lines: &mut Vec<Line>,
    rows: &mut Vec<usize>,
) {
    for line in text.lines() {
        let line = text::line(line);
        let places = places(line.as_str());
        let wrapped = line.wrap(room);
        if places.is_empty() {
            lines.extend(wrapped.into_iter().map(|line| Line::plain(line, plain)));
            continue;
        }
        let first = rows.len();
        rows.resize(first + places.len(), lines.len());
        let mut seen = 0;
        let mut source = line.as_str().grapheme_indices(true).peekable();
        for row in wrapped {
            let mut pieces: Vec<(String, Role)> = Vec::new();
            for (grapheme, _) in row.graphemes() {
                // Spaces vanish where a line is broken, and stand before the rows after it.
                let skips = |it: &str| it != grapheme && it.trim().is_empty();
                while source.next_if(|(_, it)| skips(it)).is_some() {}
                let is_here =
                    source.peek().is_some_and(|(_, it)| *it == grapheme || !grapheme.trim().is_empty());
                let at = if is_here { source.next().map(|(at, _)| at) } else { None };
                let place = at.and_then(|at| places.iter().position(|place| place.contains(&at)));
                let role = match place {
                    Some(place) => {
                        if place >= seen {
                            rows[first + place] = lines.len();
                            seen = place + 1;
                        }
                        if first + place == current { Role::Selection } else { Role::Match }
                    }
                    None => plain,
                };
                match pieces.last_mut() {
                    Some((piece, its_role)) if *its_role == role => piece.push_str(grapheme),
                    _ => pieces.push((grapheme.to_owned(), role)),
                }
            }
            let visible = |(piece, role): (String, Role)| -> (Visible, Role) { (text::line(&piece), role) };
            lines.push(Line::Pieces(pieces.into_iter().map(visible).collect()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places in brackets, the current one in angle brackets.
    fn shown(text: &str, needle: &str, current: usize, room: usize) -> (Vec<String>, Vec<usize>) {
        let (lines, rows) = lines(&text.into(), Needle::new(needle).as_ref(), current, room);
        let one = |line: &Line| {
            let Line::Pieces(pieces) = line else { return String::new() };
            let pieces = pieces.iter().map(|(piece, role)| match role {
                Role::Match => format!("[{piece}]"),
                Role::Selection => format!("<{piece}>"),
                _ => piece.as_str().to_owned(),
            });
            pieces.collect()
        };
        (lines.iter().map(one).collect(), rows)
    }

    #[test]
    fn places_are_marked_where_they_stand_however_lines_are_broken() {
        for (text, needle, current, room, lines, rows) in [
            ("a Token and token", "token", 1, 40, &["a [Token] and <token>"][..], &[0, 0][..]),
            ("a Token and token", "token", 0, 9, &["a <Token>", "and [token]"], &[0, 1]),
            // Over a break between words, and within a long word.
            ("one two three", "two three", 0, 8, &["one <two>", "<three>"], &[0]),
            ("abcdefghij", "defg", 0, 5, &["abc<de>", "<fg>hij"], &[0]),
            // Indented lines keep their indentation.
            ("  one two two", "two", 1, 7, &["  one", "  [two]", "  <two>"], &[1, 2]),
            ("x\ty\nx\u{1b}y", "y", 9, 20, &["x   [y]", "x\u{241b}[y]"], &[0, 1]),
            ("今日は今日", "今日", 0, 6, &["<今日>は", "[今日]"], &[0, 1]),
            ("none", "x", 0, 9, &["none"], &[]),
        ] {
            let (drawn, found) = shown(text, needle, current, room);
            assert_eq!(
                (drawn, &found[..]),
                (lines.iter().map(|it| it.to_string()).collect(), rows),
                "{text:?}"
            );
            assert_eq!(count(&text.into(), &Needle::new(needle).unwrap()), rows.len(), "{text:?}");
        }
    }
}
