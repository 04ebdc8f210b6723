//! How something that an operator wrote to a lead becomes a lesson: only word for word, and only where
//! nothing of it looks like a credential.

use std::ops::RangeInclusive;
use std::path::Path;

use super::memory::{Kind, Memory};
use super::secrets::masked;
use super::store::{Kept, Store, StoreError};
use crate::contract::SessionId;
use crate::pi::said::{self, Said};
use crate::pi::session::Header;
use crate::pi::transcript::TranscriptError;

/// Characters that a quote has.
pub const LENGTH: RangeInclusive<usize> = 8..=4_000;
/// Characters of a title that is made of the quote.
const TITLE: usize = 60;

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What the operator wrote, word for word.
    pub quote: String,
    /// What it is called.
    pub title: String,
    /// What kind it is.
    pub kind: Kind,
    /// The project it is for; else that of the session's directory.
    pub project: Option<String>,
    /// The role it is for.
    pub role: String,
    /// Whether it holds everywhere.
    pub is_global: bool,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// Why it is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// It is too short, or too long.
    #[error("it has less than 8 or more than 4,000 characters")]
    Length,
    /// It has no title.
    #[error("it has no title")]
    NoTitle,
    /// It may hold a credential.
    #[error("it holds what looks like a credential")]
    Secret,
    /// It does not stand in the session.
    #[error("no operator wrote it in that session, word for word")]
    NotQuoted,
    /// That many are kept already.
    #[error("{0} of that kind are kept of this session already")]
    Enough(usize),
    /// The session can't be read.
    #[error(transparent)]
    Session(#[from] TranscriptError),
    /// The store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The memory that `wanted` makes, quoted from the session file at `path`, at `now`, in milliseconds since
/// the epoch. Blocking, and as long as the file takes.
///
/// # Errors
/// [`NotKept`]
pub fn quoted(
    wanted: &Wanted,
    path: &Path,
    session: Option<&SessionId>,
    now: u64,
) -> Result<Memory, NotKept> {
    let (quote, title) = (wanted.quote.trim(), wanted.title.trim());
    if !LENGTH.contains(&quote.chars().count()) {
        return Err(NotKept::Length);
    }
    if title.is_empty() {
        return Err(NotKept::NoTitle);
    }
    if masked(quote) != quote || masked(title) != title {
        return Err(NotKept::Secret);
    }
    // The session's directory, and the entry of the operator's that holds it, the latest.
    let begin = |header: &Header| (header.cwd.as_ref().map(|cwd| cwd.to_str_lossy().into_owned()), None);
    let ((cwd, entry), read) = said::fold(path, session, begin, |(_, entry), step| {
        if let Said::User(text) | Said::Chief(text) = &step.said
            && text.contains(quote)
        {
            *entry = Some(step.entry);
        }
    })?;
    let entry = entry.ok_or(NotKept::NotQuoted)?;
    let of_session = read.header.session.as_untrusted().to_str_lossy().into_owned();
    let project = wanted.project.clone().or_else(|| cwd.as_deref().map(project_of));
    let (importance, confidence) = wanted.kind.weights();
    Ok(Memory {
        title: title.to_owned(),
        content: quote.to_owned(),
        kind: wanted.kind,
        importance,
        confidence,
        tags: wanted.tags.clone(),
        source: format!("{of_session}#{entry}"),
        role: wanted.role.clone(),
        project: project.unwrap_or_default(),
        is_global: wanted.is_global,
        created: now / 1000 * 1000,
    })
}

/// Keeps `memory`, unless as many are kept of its session as may be; its name.
///
/// # Errors
/// [`NotKept`]
pub fn keep(store: &Store, memory: &Memory) -> Result<String, NotKept> {
    let session_of = |it: &Memory| it.source.rsplit_once('#').map(|(session, _)| session.to_owned());
    let session = session_of(memory);
    let is_of_it = |kept: &&Kept| {
        kept.memory.as_ref().is_ok_and(|it| it.kind == memory.kind && session_of(it) == session)
    };
    let most = memory.kind.most();
    if store.list()?.iter().filter(is_of_it).count() >= most {
        return Err(NotKept::Enough(most));
    }
    Ok(store.add(memory)?)
}

/// The project that works in `cwd`: the directory's name.
pub fn project_of(cwd: &str) -> String {
    cwd.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

/// How a lesson is called that nobody gave a title: by its first words.
pub fn title_of(quote: &str) -> String {
    let mut title = String::new();
    for word in quote.split_whitespace() {
        if !title.is_empty() && title.chars().count() + 1 + word.chars().count() > TITLE {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    title.chars().take(TITLE).collect::<String>().trim_end_matches(['.', ',', ';', ':']).to_owned()
}

/// What can be quoted of `text`: all of it, then its lines and the sentences in them, none twice.
pub fn parts(text: &str) -> Vec<&str> {
    let mut parts = vec![text.trim()];
    for line in text.lines() {
        let mut rest = line;
        while !rest.trim().is_empty() {
            let (sentence, behind) = rest.split_at(sentence_end(rest));
            parts.push(sentence.trim());
            rest = behind;
        }
    }
    let mut known = std::collections::HashSet::new();
    parts.retain(|part| LENGTH.contains(&part.chars().count()) && known.insert(*part));
    parts
}

/// Where the first sentence of a line ends.
fn sentence_end(line: &str) -> usize {
    let ends = line.char_indices().find(|(at, it)| {
        let behind = &line[at + it.len_utf8()..];
        matches!(it, '.' | '!' | '?') && behind.starts_with([' ', '\t'])
    });
    ends.map_or(line.len(), |(at, it)| at + it.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_quoted_whole_or_by_its_sentences() {
        let text = "Fix it. Never push to main! Use e.g. v1.2 of it\n\n  - run the tests first\nok\n";
        assert_eq!(
            parts(text),
            [text.trim(), "Never push to main!", "Use e.g.", "v1.2 of it", "- run the tests first"]
        );
        assert_eq!(parts("One line only"), ["One line only"]);
        assert_eq!(parts(" short "), [""; 0]);
        let long = "x".repeat(5_000);
        assert_eq!(parts(&format!("{long}\nA sentence here.")), ["A sentence here."]);
        for part in parts(text) {
            assert!(text.contains(part));
        }
    }

    #[test]
    fn a_title_is_made_of_the_first_words() {
        assert_eq!(title_of("Never push to main."), "Never push to main");
        let title = title_of(&"words and more ".repeat(20));
        assert!(title.chars().count() <= 60 && title.ends_with("words and more"), "{title}");
        assert_eq!(title_of(&"y".repeat(100)).len(), 60);
    }
}
