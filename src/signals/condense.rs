//! A long text folded to some of its lines, each as it stands. Nothing is ever put in other words.

use std::ops::RangeInclusive;

/// Lines kept at either end where nobody says which.
pub const ENDS: usize = 40;
/// Lines kept around one that tells of an error.
const AROUND: usize = 2;
/// What a line that tells of an error holds, in lower case.
const ERRORS: [&str; 9] =
    ["error", "panic", "fail", "fatal", "exception", "traceback", "assert", "warning", "exited with code"];

/// The tokens that `text` may take: a character in four bytes or so.
pub fn estimated_tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// The lines at both ends of `text`, by number from 1.
pub fn ends(text: &str) -> Vec<RangeInclusive<usize>> {
    let count = text.lines().count();
    if count <= 2 * ENDS { vec![1..=count.max(1)] } else { vec![1..=ENDS, count - ENDS + 1..=count] }
}

/// `text` without the lines that are in none of `ranges`, if it has more than `threshold` estimated
/// tokens. Nothing where it is to be left as it is: it is short, a range is none of its lines, or nothing
/// is gained.
pub fn fold(text: &str, ranges: &[RangeInclusive<usize>], threshold: u64) -> Option<String> {
    if estimated_tokens(text) <= threshold {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_valid = |range: &RangeInclusive<usize>| {
        *range.start() >= 1 && range.start() <= range.end() && *range.end() <= lines.len()
    };
    if !ranges.iter().all(is_valid) {
        return None;
    }
    let mut kept = vec![false; lines.len()];
    for range in ranges {
        kept[range.start() - 1..*range.end()].fill(true);
    }
    for at in (0..lines.len()).filter(|at| tells_error(lines[*at])) {
        kept[at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())].fill(true);
    }
    let mut folded = String::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        if kept[at] {
            folded.push_str(lines[at]);
            at += 1;
        } else {
            let omitted = kept[at..].iter().take_while(|kept| !**kept).count();
            folded.push_str(&format!("[... {omitted} lines omitted]"));
            at += omitted;
        }
        folded.push('\n');
    }
    if !text.ends_with('\n') {
        folded.pop();
    }
    (folded.len() < text.len()).then_some(folded)
}

fn tells_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ERRORS.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> String {
        (1..=count).map(|nth| format!("line number {nth} of many\n")).collect()
    }

    #[test]
    fn lines_stay_verbatim_and_errors_with_what_is_around_them() {
        let mut text = numbered(300);
        text = text.replace("line number 150 of many", "  ERROR[E1]: \u{1b}[1mhere");
        let folded = fold(&text, &ends(&text), 100).unwrap();
        assert!(
            folded.starts_with("line number 1 of many\n") && folded.ends_with("line number 300 of many\n")
        );
        assert!(folded.contains(
            "line number 40 of many\n[... 107 lines omitted]\nline number 148 of many\nline number 149 of many\n  ERROR[E1]: \u{1b}[1mhere\n"
        ));
        assert!(folded.contains("line number 152 of many\n[... 108 lines omitted]\nline number 261"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(folded.lines().all(|line| lines.contains(&line) || line.starts_with("[... ")));
    }

    #[test]
    fn what_is_short_or_wrong_or_gains_nothing_is_left_alone() {
        let text = numbered(300);
        assert_eq!(fold(&text, &ends(&text), 5_000), None);
        assert!(fold(&text, &[1..=1], 100).is_some());
        for wrong in [0..=1, 1..=301, RangeInclusive::new(5, 4)] {
            assert_eq!(fold(&text, &[1..=1, wrong], 100), None);
        }
        assert_eq!(fold(&text, &[1..=300], 100), None);
        assert_eq!(fold(&text, &[1..=1, 3..=300], 100), None, "the note is longer than the line");
        assert_eq!(fold(&"x".repeat(100_000), &ends("x"), 100), None, "one line");
        assert_eq!(fold("", &ends(""), 0), None);
    }
}
