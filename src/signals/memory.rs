//! Lessons and orientation: what they are, what their files say, which of them are worth repeating.

use std::collections::BTreeMap;

use super::gate::json_texts;
use crate::contract::Untrusted;
use crate::contract::json::{Document, Json, number_text};

/// Characters of the slug in a file's name.
const SLUG: usize = 40;
/// Characters of a project or role in a path.
const PLACE: usize = 64;
/// What is kept of one run at most.
pub const LESSONS: usize = 3;
/// The same of orientation.
pub const ORIENTATIONS: usize = 2;
/// What is inserted at once at most.
pub const INSERTED: usize = 5;
/// The directory of what holds everywhere. No project is called so.
pub const EVERYWHERE: &str = "_";
/// Damps the first ranks.
const K: f64 = 60.0;
const DAY: u64 = 86_400_000;

/// What kind of memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What to do otherwise.
    Lesson,
    /// Where things are.
    Orientation,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Lesson => "lesson",
            Kind::Orientation => "orientation",
        }
    }

    /// That of a name.
    pub fn of(name: &str) -> Option<Self> {
        [Kind::Lesson, Kind::Orientation].into_iter().find(|kind| kind.as_str() == name)
    }

    /// Importance and confidence of a new one.
    pub fn weights(self) -> (f64, f64) {
        match self {
            Kind::Lesson => (0.9, 0.6),
            Kind::Orientation => (0.8, 0.55),
        }
    }

    /// How many one run may leave.
    pub fn most(self) -> usize {
        match self {
            Kind::Lesson => LESSONS,
            Kind::Orientation => ORIENTATIONS,
        }
    }
}

/// How a run ended in which it was inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was verified.
    Pass,
    /// Its budget was used up.
    Exhausted,
    /// Nothing can be said.
    Indeterminate,
}

/// One memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// What it is called.
    pub title: String,
    /// What the operator said, verbatim.
    pub content: String,
    /// What kind it is.
    pub kind: Kind,
    /// 0 to 1.
    pub importance: f64,
    /// 0 to 1.
    pub confidence: f64,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Session and entry that it is from.
    pub source: String,
    /// The role it is for.
    pub role: String,
    /// The project it is for.
    pub project: String,
    /// Whether it holds everywhere.
    pub is_global: bool,
    /// When it was made, in milliseconds since the epoch.
    pub created: u64,
}

impl Memory {
    /// Its file: front matter, in this order, its values as JSON.
    pub fn to_file(&self) -> String {
        let text = |text: &str| {
            let mut json = Vec::new();
            Untrusted::from(text).write_json(&mut json);
            String::from_utf8_lossy(&json).into_owned()
        };
        let scope = if self.is_global { "global" } else { "project" };
        let members = [
            ("title", text(&self.title)),
            ("content", text(&self.content)),
            ("memory_type", text(self.kind.as_str())),
            ("importance", number_text(self.importance)),
            ("confidence", number_text(self.confidence)),
            ("tags", String::from_utf8_lossy(&json_texts(&self.tags)).into_owned()),
            ("source", text(&self.source)),
            ("role", text(&self.role)),
            ("project", text(&self.project)),
            ("scope", text(scope)),
            ("created", text(&time(self.created).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        ];
        let lines: String = members.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("---\n{lines}---\n")
    }

    /// Reads a file. Values may be JSON, or a plain text to the line's end; what stands below the front
    /// matter is the operator's own.
    pub fn parse(file: &str) -> Option<Self> {
        let body = file.strip_prefix("---\n")?;
        let end = if body.starts_with("---") { 0 } else { body.find("\n---")? };
        let mut members = BTreeMap::new();
        for line in body[..end].lines() {
            let (name, value) = line.split_once(':')?;
            members.insert(name.trim(), value.trim());
        }
        let text = |name: &str| members.get(name).map(|value| plain(value));
        let number = |name: &str| {
            let number: f64 = members.get(name)?.parse().ok()?;
            (0.0..=1.0).contains(&number).then_some(number)
        };
        let created: jiff::Timestamp = text("created")?.parse().ok()?;
        Some(Self {
            title: text("title")?,
            content: text("content")?,
            kind: Kind::of(&text("memory_type")?)?,
            importance: number("importance")?,
            confidence: number("confidence")?,
            tags: texts(members.get("tags")?)?,
            source: text("source")?,
            role: text("role")?,
            project: text("project")?,
            is_global: match text("scope")?.as_str() {
                "global" => true,
                "project" => false,
                _ => return None,
            },
            // Only whole seconds are written.
            created: u64::try_from(created.as_second()).ok()? * 1000,
        })
    }

    /// The directories of its file below that of all.
    pub fn place(&self) -> Vec<String> {
        if self.is_global {
            return vec![EVERYWHERE.to_owned()];
        }
        let role = self.role.split(':').next().unwrap_or_default();
        vec![sanitised(&self.project), sanitised(role)]
    }

    /// The name of its file; `nth` tells it from others of the same second and title.
    pub fn file_name(&self, nth: usize) -> String {
        let suffix = if nth == 0 { String::new() } else { format!("-{}", nth + 1) };
        let slug: String = slug(&self.title).chars().take(SLUG - suffix.len()).collect();
        format!("{}-{}{suffix}.md", time(self.created).strftime("%Y%m%d%H%M%S"), slug.trim_end_matches('-'))
    }

    /// Learns how a run ended.
    pub fn learn(&mut self, outcome: Outcome) {
        let change = match outcome {
            Outcome::Pass => 0.05,
            Outcome::Exhausted => -0.15,
            Outcome::Indeterminate => -0.05,
        };
        // In hundredths, so that what is added and taken comes out even.
        self.importance = ((self.importance + change) * 100.0).round().clamp(0.0, 100.0) / 100.0;
    }

    /// Whether it is to be put away.
    pub fn is_spent(&self, now: u64) -> bool {
        self.importance <= 0.1 || self.importance <= 0.4 && now.saturating_sub(self.created) > 90 * DAY
    }

    fn words(&self) -> Vec<String> {
        words(&format!("{} {} {}", self.title, self.content, self.tags.join(" ")))
    }
}

/// A time, which shows as that of UTC.
fn time(millis: u64) -> jiff::Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
}

/// A value of front matter.
fn plain(value: &str) -> String {
    let document = Document::decode(value.as_bytes());
    let text = document.value().ok().and_then(|value| value.string());
    text.map_or_else(|| value.to_owned(), |text| text.to_str_lossy().into_owned())
}

fn texts(value: &str) -> Option<Vec<String>> {
    let document = Document::decode(value.as_bytes());
    let items = document.value().ok()?.array()?;
    let text = |item: Json<'_>| item.string().map(|text| text.to_str_lossy().into_owned());
    items.into_iter().map(text).collect()
}

/// The name of a project or role as that of a directory: nothing that leads elsewhere, is hidden, or is
/// reserved.
pub fn sanitised(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let name: String =
        name.trim().chars().map(|it| if is_plain(it) { it } else { '-' }).take(PLACE).collect();
    let name = name.trim_start_matches('.');
    match name {
        "" => "unnamed".to_owned(),
        EVERYWHERE => "__".to_owned(),
        // The directory of what was put away.
        "archive" => "archive-".to_owned(),
        name => name.to_owned(),
    }
}

fn slug(title: &str) -> String {
    let mut slug = String::new();
    for character in title.chars().map(|it| it.to_ascii_lowercase()) {
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "untitled".to_owned() } else { slug.to_owned() }
}

/// The words of a text, of three characters or more.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|it: char| !it.is_alphanumeric()).filter(|word| word.chars().count() >= 3);
    words.map(str::to_owned).collect()
}

/// Which of `memories` to insert into a message about `text`, the best first: by the ranks they have for
/// each word of it, the newer more; then those that hold everywhere, by importance, if `with_global`.
pub fn ranked(memories: &[Memory], text: &str, now: u64, with_global: bool) -> Vec<usize> {
    let local: Vec<(usize, Vec<String>)> = memories
        .iter()
        .enumerate()
        .filter(|(_, memory)| !memory.is_global)
        .map(|(at, it)| (at, it.words()))
        .collect();
    let mut terms = words(text);
    terms.sort_unstable();
    terms.dedup();
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    for term in &terms {
        let count = |words: &[String]| words.iter().filter(|word| *word == term).count();
        let mut found: Vec<(usize, usize)> =
            local.iter().map(|(at, words)| (*at, count(words))).filter(|(_, count)| *count > 0).collect();
        found.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), *at));
        for (rank, (at, _)) in found.iter().enumerate() {
            *scores.entry(*at).or_default() += 1.0 / (K + rank as f64 + 1.0);
        }
    }
    let weighed = |at: usize, score: f64| {
        let days = now.saturating_sub(memories[at].created) as f64 / DAY as f64;
        score * (1.0 + 0.5 / (1.0 + days / 30.0))
    };
    let mut found: Vec<(usize, f64)> =
        scores.into_iter().map(|(at, score)| (at, weighed(at, score))).collect();
    found.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then(a.cmp(b)));
    let mut chosen: Vec<usize> = found.into_iter().map(|(at, _)| at).collect();
    if with_global {
        let mut global: Vec<usize> = (0..memories.len()).filter(|at| memories[*at].is_global).collect();
        global.sort_by(|a, b| memories[*b].importance.total_cmp(&memories[*a].importance).then(a.cmp(b)));
        chosen.extend(global);
    }
    chosen.truncate(INSERTED);
    chosen
}
