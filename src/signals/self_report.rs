//! What a lead says of itself: the last line of a message, `<sup>{JSON}</sup>`. It is never evidence.

use super::secrets::masked;
use crate::contract::Untrusted;
use crate::contract::json::{Document, Json, ObjectWriter, reserialize};

const OPEN: &str = "<sup>";
const CLOSE: &str = "</sup>";
/// Bytes of a block from which on it is no report, but still taken out.
const MAX_BLOCK: usize = 16 * 1024;
/// Items of `carry` that are kept.
const MAX_CARRY: usize = 32;

/// Where a lead says it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It looks around.
    Exploring,
    /// It gets on.
    Progressing,
    /// It can't go on.
    Blocked,
    /// It needs something from the operator.
    NeedInput,
    /// It is done.
    Done,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] =
        [State::Exploring, State::Progressing, State::Blocked, State::NeedInput, State::Done];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Exploring => "exploring",
            State::Progressing => "progressing",
            State::Blocked => "blocked",
            State::NeedInput => "need_input",
            State::Done => "done",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "need-input" | "needinput" => Some(State::NeedInput),
            text => Self::ALL.into_iter().find(|state| state.as_str() == text),
        }
    }
}

/// Where a report is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The lead wrote it.
    Reported,
    /// It follows from what else is known of a lead that wrote none.
    Derived,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Where it is from.
    pub origin: Origin,
    /// Where the lead stands.
    pub state: State,
    /// What it is at.
    pub focus: String,
    /// What it means to do next.
    pub next: Option<String>,
    /// What it wants to keep in mind, with credentials masked.
    pub carry: Vec<String>,
    /// Its plan, as JSON.
    pub plan: Option<String>,
}

impl Report {
    fn short(origin: Origin, state: State, focus: &str) -> Self {
        Self { origin, state, focus: focus.to_owned(), next: None, carry: Vec::new(), plan: None }
    }

    /// What follows from `seen` where a lead reports nothing.
    pub fn derived(seen: &Circumstances<'_>) -> Option<Self> {
        let (state, focus) = if let Some(ask) = seen.pending_ask {
            (State::NeedInput, ask)
        } else if seen.is_blocked {
            (State::Blocked, "")
        } else {
            let message = seen.last_message.filter(|message| says_finished(message))?;
            (State::Done, message.lines().next().unwrap_or_default())
        };
        Some(Self::short(Origin::Derived, state, focus))
    }

    /// As JSON. `derived` stands in it only where it is.
    pub fn to_json(&self) -> Vec<u8> {
        let text = |text: &str| {
            let mut json = Vec::new();
            Untrusted::from(text).write_json(&mut json);
            json
        };
        let carry: Vec<Vec<u8>> = self.carry.iter().map(|item| text(item)).collect();
        let mut object = ObjectWriter::new();
        object
            .raw("state", &text(self.state.as_str()))
            .raw("focus", &text(&self.focus))
            .raw("next", &self.next.as_ref().map_or_else(|| b"null".to_vec(), |next| text(next)))
            .raw("carry", &[b"[", &carry.join(&b","[..])[..], b"]"].concat());
        if let Some(plan) = &self.plan {
            object.raw("plan", plan.as_bytes());
        }
        if self.origin == Origin::Derived {
            object.raw("derived", b"true");
        }
        object.finish()
    }
}

/// What else is known of a lead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// The question it has asked and that is not answered.
    pub pending_ask: Option<&'a str>,
    /// Whether Herdr shows it as blocked.
    pub is_blocked: bool,
    /// Whether Herdr shows that it works: then it has not stopped, whatever it said last.
    pub is_working: bool,
    /// What it last wrote to the Chief.
    pub last_message: Option<&'a str>,
}

/// Whether a message says that the work is finished. A word before it that denies it counts.
fn says_finished(message: &str) -> bool {
    let text = message.to_lowercase();
    let words: Vec<&str> = text
        .split(|character: char| !character.is_alphanumeric() && character != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let denied = words[at.saturating_sub(3)..at].iter().any(|before| {
            matches!(*before, "not" | "never" | "no" | "nothing" | "until" | "when" | "once" | "if" | "be")
                || before.ends_with("n't")
        });
        matches!(*word, "done" | "finished" | "completed" | "complete") && !denied
    })
}

/// A message without its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What is shown of it.
    pub text: String,
    /// What it reports.
    pub report: Option<Report>,
}

/// Reads the report at the end of `message`, and takes the blocks of reports out of it. Of several the
/// last one counts; one that can't be understood is no report, and is taken out all the same.
pub fn read(message: &str) -> Message {
    let mut text = message.trim_end();
    let mut last: Option<Option<Report>> = None;
    while let Some((before, block)) = last_block(text) {
        let report = if block.trim_start().starts_with('{') {
            of_json(block)
        } else {
            match legacy(block) {
                Some(report) => Some(report),
                None => break,
            }
        };
        last.get_or_insert(report);
        text = before.trim_end();
    }
    match last {
        None => Message { text: message.to_owned(), report: None },
        Some(report) => Message { text: text.to_owned(), report },
    }
}

/// What is shown of the end of a message: without its reports. Where it `is_cut`, that may begin amid one.
pub fn shown(end: &str, is_cut: bool) -> String {
    let text = read(end).text;
    if is_cut && text.trim_end().ends_with(CLOSE) && !text.contains(OPEN) { String::new() } else { text }
}

/// What is shown of a screen: without reports, wherever they stand and however they are wrapped, and without
/// the lines that are blank for that.
pub fn shown_screen(screen: &str) -> String {
    let mut shown = String::with_capacity(screen.len());
    let mut rest = screen;
    while let Some(at) = rest.find(OPEN) {
        let block = &rest[at + OPEN.len()..];
        let end = block.find(CLOSE).filter(|end| *end <= MAX_BLOCK && block.trim_start().starts_with('{'));
        let Some(end) = end else {
            shown.push_str(&rest[..at + OPEN.len()]);
            rest = block;
            continue;
        };
        shown.push_str(&rest[..at]);
        rest = &block[end + CLOSE.len()..];
        let line = shown.rfind('\n').map_or(0, |at| at + 1);
        let after = rest.find('\n').map_or(rest.len(), |at| at + 1);
        if shown[line..].trim().is_empty() && rest[..after].trim().is_empty() {
            shown.truncate(line);
            rest = &rest[after..];
        }
    }
    shown.push_str(rest);
    shown
}

/// The block that ends `text`, and what stands before it.
fn last_block(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix(CLOSE)?;
    let at = inner.rfind(OPEN)?;
    Some((&inner[..at], &inner[at + OPEN.len()..]))
}

fn of_json(block: &str) -> Option<Report> {
    if block.len() > MAX_BLOCK {
        return None;
    }
    let document = Document::decode(block.as_bytes());
    let members = document.value().ok()?.object()?;
    let known = ["state", "focus", "next", "carry", "plan"];
    if members.iter().any(|(name, _)| !known.iter().any(|known| name == *known)) {
        return None;
    }
    let get = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let text = |value: Json<'_>| value.string().map(|text| text.to_str_lossy().into_owned());
    let next = get("next")?;
    let carry = get("carry")?.array()?;
    Some(Report {
        origin: Origin::Reported,
        state: State::parse(&text(get("state")?)?)?,
        focus: text(get("focus")?)?,
        next: if next.is_null() { None } else { Some(text(next)?) },
        carry: {
            let items: Option<Vec<String>> = carry.into_iter().map(text).collect();
            items?.into_iter().take(MAX_CARRY).map(|item| masked(&item)).collect()
        },
        plan: get("plan").map(|plan| String::from_utf8_lossy(&reserialize(plan)).into_owned()),
    })
}

/// The form before JSON: a state, a middle dot and a reason.
fn legacy(block: &str) -> Option<Report> {
    let (state, reason) = block.split_once('\u{b7}')?;
    Some(Report::short(Origin::Reported, State::parse(state)?, reason.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_shown_without_reports() {
        for (screen, shown) in [
            ("one\n<sup>{\"state\":\"done\"}</sup>\ntwo", "one\ntwo"),
            ("one\n  <sup>{\"sta\nte\":\"done\"}</sup>  \ntwo <sup>2</sup>", "one\ntwo <sup>2</sup>"),
            ("said <sup>{}</sup> on\n<sup>{}</sup>\n<sup>{}</sup>", "said  on\n"),
            ("<sup>{ never ended", "<sup>{ never ended"),
            ("", ""),
        ] {
            assert_eq!(shown_screen(screen), shown, "{screen}");
        }
        let long = format!("<sup>{{{}</sup>", "x".repeat(MAX_BLOCK));
        assert_eq!(shown_screen(&long), long);
    }
}
