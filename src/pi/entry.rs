//! One entry of a session file: what its line says of its place in the tree, and the few facts that
//! are kept of it. What it holds otherwise is read when it is needed.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use crate::contract::Untrusted;
use crate::contract::json::{Document, Json};

/// Suffixes of one bad line that are tried at most.
const MAX_SUFFIXES: usize = 1_000;

/// What names an entry within its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// Eight lower-case hex digits, as nearly all are.
    Hex(u32),
    /// The number among the lines that are JSON, the header's being 0: of entries without an id, and
    /// of all in files of the first version.
    Line(u32),
    /// Any other text.
    Other(Box<Untrusted>),
}

impl Id {
    /// The one that a string names.
    pub(super) fn of(text: Json<'_>) -> Option<Self> {
        match text.lossy().and_then(|text| eight_digits(&text)) {
            Some(number) => Some(Self::Hex(number)),
            None => text.string().map(|text| Self::Other(Box::new(text))),
        }
    }
}

/// The number that exactly eight lower-case hex digits are.
fn eight_digits(text: &str) -> Option<u32> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let are_digits = text.len() == 8 && text.bytes().all(is_digit);
    are_digits.then(|| u32::from_str_radix(text, 16).ok())?
}

/// What an entry is, as far as that decides how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A user's message.
    User,
    /// A model's.
    Assistant,
    /// What a tool gave.
    ToolResult,
    /// A command that the user ran.
    Bash,
    /// The summary that stands for what came before.
    Compaction,
    /// The same as a message: nothing was replaced by it.
    CompactionSummary,
    /// The summary of a branch that was left.
    BranchSummary,
    /// An extension's message that Pi shows.
    CustomMessage,
    /// A change of model, thinking level or name.
    Setting,
    /// Anything else, types that are not known among it: a place in the tree and nothing to show.
    Other,
}

/// A model and who provides it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Model {
    /// The provider.
    pub provider: Untrusted,
    /// The model's id.
    pub id: Untrusted,
}

/// What something took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Tokens in, out, read from the cache and written to it.
    pub tokens: f64,
    /// As Pi works it out, in dollars.
    pub cost: f64,
}

/// What is kept of an entry beside its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fact {
    /// A model answered.
    Answer { model: Arc<Model>, usage: Option<Usage> },
    /// Something else took this; no model is named for tools and summaries.
    Spent { model: Option<Arc<Model>>, usage: Usage },
    /// The model was changed.
    Model(Arc<Model>),
    /// The thinking level was.
    Thinking(Untrusted),
    /// An entry was labelled; without a label its label is cleared.
    Label { target: Id, label: Option<Untrusted> },
    /// The session was named; without a name its name is cleared.
    Name(Option<Untrusted>),
}

/// An entry in the index: where its line is, and what is known without reading it again.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where its text begins, in bytes from the file's beginning.
    pub offset: u64,
    /// The bytes of its text.
    pub length: u32,
    /// What names it.
    pub id: Id,
    /// The entry it follows; of a root none.
    pub parent: Option<Id>,
    /// What it is.
    pub kind: Kind,
    /// Whether it tells of a failure: of a tool, a command, or an answer that broke off.
    pub is_error: bool,
    /// How many tools it calls; 255 stand for more as well.
    pub calls: u8,
    /// When it was written, in milliseconds since the epoch; 0 where it does not say.
    pub at: u64,
    /// Whether it stood behind a torn line, on the same line. Pi does not see such an entry.
    pub is_recovered: bool,
    pub(super) fact: Option<Box<Fact>>,
}

/// What a line says of its entry beside its place.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) fact: Option<Fact>,
    pub(super) is_error: bool,
    pub(super) calls: u8,
}

impl From<(Kind, Option<Fact>)> for Told {
    fn from((kind, fact): (Kind, Option<Fact>)) -> Self {
        Self { kind, fact, is_error: false, calls: 0 }
    }
}

/// One line that is an object, or an object within it.
#[derive(Clone, Copy)]
pub struct Envelope<'a>(Json<'a>);

impl<'a> Envelope<'a> {
    /// The object that `value` is.
    pub(super) fn of(value: Json<'a>) -> Option<Self> {
        value.is_object().then_some(Self(value))
    }

    pub(super) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.0.member(key)
    }

    pub(super) fn text(&self, key: &str) -> Option<Untrusted> {
        self.get(key)?.string()
    }

    /// The same with lone surrogates replaced, to be compared or looked through.
    pub(super) fn lossy(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.lossy()
    }

    /// The first text among its members.
    pub(super) fn first_text(&self) -> Option<Untrusted> {
        self.0.object()?.iter().find_map(|(_, value)| value.string())
    }

    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.get(key)?)
    }

    /// The message that it is, where it is one.
    pub(super) fn message(&self) -> Option<Self> {
        self.lossy("type").filter(|kind| kind == "message")?;
        self.object("message")
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.get(key).and_then(|value| value.bool()) == Some(true)
    }

    /// The `id`, where it has one.
    pub(super) fn id(&self) -> Option<Id> {
        self.get("id").and_then(Id::of)
    }

    /// The `parentId`, where it is not null.
    pub(super) fn parent(&self) -> Option<Id> {
        self.get("parentId").and_then(Id::of)
    }

    /// The model whose id is the member `id`. Equal ones are kept once, in `models`.
    fn model(&self, id: &str, models: &mut Vec<Arc<Model>>) -> Option<Arc<Model>> {
        let (provider, id) = (self.get("provider")?, self.get(id)?);
        let known = models.iter().find(|known| provider.is(&known.provider) && id.is(&known.id));
        if let Some(known) = known {
            return Some(Arc::clone(known));
        }
        let model = Arc::new(Model { provider: provider.string()?, id: id.string()? });
        models.push(Arc::clone(&model));
        Some(model)
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.object("usage")?;
        let number = |of: &Self, key: &str| of.get(key).and_then(|value| value.number()).unwrap_or(0.0);
        let parts = ["input", "output", "cacheRead", "cacheWrite"];
        Some(Usage {
            tokens: parts.iter().map(|part| number(&usage, part)).sum(),
            cost: usage.object("cost").map_or(0.0, |cost| number(&cost, "total")),
        })
    }

    /// When it was written, in milliseconds since the epoch; 0 where it does not say.
    pub(super) fn at(&self) -> u64 {
        let Some(text) = self.lossy("timestamp") else { return 0 };
        as_javascript_writes(text.as_bytes())
            .or_else(|| u64::try_from(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()).ok())
            .unwrap_or(0)
    }

    /// What the entry is, and what is kept of it. Equal models are kept once, in `models`.
    pub(super) fn facts(&self, models: &mut Vec<Arc<Model>>) -> Told {
        let spent = |of: &Self| of.usage().map(|usage| Fact::Spent { model: None, usage });
        let filled = |key: &str| self.text(key).filter(|text| !text.is_empty());
        match self.lossy("type").as_deref() {
            Some("message") => return self.message_facts(models),
            Some("compaction") => (Kind::Compaction, spent(self)),
            Some("branch_summary") => (Kind::BranchSummary, spent(self)),
            Some("custom_message") if self.is_true("display") => (Kind::CustomMessage, None),
            Some("model_change") => (Kind::Setting, self.model("modelId", models).map(Fact::Model)),
            Some("thinking_level_change") => (Kind::Setting, self.text("thinkingLevel").map(Fact::Thinking)),
            Some("label") => {
                let target = self.get("targetId").and_then(Id::of);
                let fact = target.map(|target| Fact::Label { target, label: filled("label") });
                (Kind::Other, fact)
            }
            Some("session_info") => {
                (Kind::Setting, Some(Fact::Name(self.text("name").filter(|name| !name.is_blank()))))
            }
            Some("usage") => {
                let model = self.model("model", models);
                (Kind::Other, self.usage().map(|usage| Fact::Spent { model, usage }))
            }
            _ => (Kind::Other, None),
        }
        .into()
    }

    fn message_facts(&self, models: &mut Vec<Arc<Model>>) -> Told {
        let other = Told::from((Kind::Other, None));
        let Some(message) = self.object("message") else { return other };
        match message.lossy("role").as_deref() {
            Some("user") => Told { kind: Kind::User, ..other },
            Some("assistant") => {
                let usage = message.usage();
                let model = message.model("model", models);
                let stop = message.lossy("stopReason");
                Told {
                    kind: Kind::Assistant,
                    fact: model.map(|model| Fact::Answer { model, usage }),
                    is_error: stop.is_some_and(|stop| stop == "error" || stop == "aborted"),
                    calls: message.calls(),
                }
            }
            Some("toolResult") => Told {
                kind: Kind::ToolResult,
                fact: message.usage().map(|usage| Fact::Spent { model: None, usage }),
                is_error: message.is_true("isError"),
                calls: 0,
            },
            Some("bashExecution") => {
                let code = message.get("exitCode").and_then(|code| code.number());
                let is_error = message.is_true("cancelled") || code.is_some_and(|code| code != 0.0);
                Told { kind: Kind::Bash, is_error, ..other }
            }
            // Until version 3 the former was called so.
            Some("custom" | "hookMessage") if message.is_true("display") => {
                Told { kind: Kind::CustomMessage, ..other }
            }
            Some("branchSummary") => Told { kind: Kind::BranchSummary, ..other },
            Some("compactionSummary") => Told { kind: Kind::CompactionSummary, ..other },
            _ => other,
        }
    }

    /// How many tools a message calls.
    fn calls(&self) -> u8 {
        let parts = self.get("content").and_then(|content| content.array()).unwrap_or_default();
        let calls = parts
            .into_iter()
            .filter_map(Self::of)
            .filter(|part| part.lossy("type").is_some_and(|kind| kind == "toolCall"))
            .count();
        u8::try_from(calls).unwrap_or(u8::MAX)
    }
}

/// The milliseconds since the epoch that `2026-01-31T12:00:00.000Z` says, in exactly that form and from
/// 1970 on: as nearly every entry has one, and a reader of all forms takes several times as long.
fn as_javascript_writes(text: &[u8]) -> Option<u64> {
    let form = text.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte });
    if !form.eq(*b"0000-00-00T00:00:00.000Z") {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        text[range].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let (hour, minute, second) = (number(11..13), number(14..16), number(17..19));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let month_before = usize::try_from(month.checked_sub(1)?).ok()?;
    let (first, next) = (*days_before.get(month_before)?, *days_before.get(month_before + 1)?);
    let leap_day = u64::from(is_leap);
    let days_of_month = next - first + if month == 2 { leap_day } else { 0 };
    if year < 1970 || day == 0 || day > days_of_month || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let leap_years = |year: u64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leap_years(year - 1) - leap_years(1969) + first + day - 1
        + if month > 2 { leap_day } else { 0 };
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20..23))
}

/// Where an entry begins in a line that is no JSON: one that was written right behind a torn one. It
/// goes to the line's end and has an id and a parent.
pub(super) fn fused(line: &[u8]) -> Option<usize> {
    memmem::find_iter(line, b"{\"type\":\"").take(MAX_SUFFIXES).find(|at| {
        let document = Document::decode(&line[*at..]);
        let envelope = document.value().ok().and_then(Envelope::of);
        envelope.is_some_and(|it| it.text("id").is_some() && it.get("parentId").is_some())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_jiff(text: &str) -> Option<u64> {
        u64::try_from(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()).ok()
    }

    proptest! {
        #[test]
        fn a_time_in_the_usual_form_is_what_the_reader_of_all_forms_says(millis in 0..253_402_207_200_000_i64) {
            let text = format!("{:.3}", jiff::Timestamp::from_millisecond(millis).unwrap());
            prop_assert_eq!(as_javascript_writes(text.as_bytes()), Some(millis as u64));
        }

        #[test]
        fn what_is_no_time_is_left_to_the_reader_of_all_forms(
            year in 1960..2110_u32, month in 0..15_u32, day in 0..34_u32, hour in 0..26_u32, second in 0..62_u32
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:59:{second:02}.123Z");
            let own = as_javascript_writes(text.as_bytes());
            prop_assert!(own.is_none() || own == by_jiff(&text), "{} {:?}", text, own);
            prop_assert!(own.is_some() || by_jiff(&text).is_none() || year < 1970 || second > 59, "{}", text);
        }
    }
}
