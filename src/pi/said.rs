//! What was said and done on a session's branch, entry by entry, for whoever folds it.

use std::borrow::Cow;
use std::path::Path;

use super::branch::{Seen, Tree};
use super::entry::{Entry, Envelope, Id, Kind, Model};
use super::session::{Header, HeaderError, open, read_at};
use super::tail::{Progress, Tail, Unsettled};
use super::transcript::TranscriptError;
use crate::contract::json::{Document, Json, reserialize};
use crate::contract::text::sha256_hex;
use crate::contract::{SessionId, Untrusted};

/// How often a file that is written anew meanwhile is begun again.
const ATTEMPTS: usize = 3;
/// Messages of the operator that came through the Chief.
const BY_CHIEF: [&str; 2] = ["pi-herdsman-chief_message", "pi-herdsman-chief_reply"];

/// One entry of the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its id, as the file has it; of entries without one `line N`.
    pub entry: String,
    /// Where its text begins, in bytes from the file's beginning.
    pub offset: u64,
    /// When it was written, in milliseconds since the epoch.
    pub at: Option<u64>,
    /// What it says.
    pub said: Said,
}

impl Step {
    /// What `entry` says, whose members are `line`; nothing where it is of a kind that is not told.
    pub fn of(entry: &Entry, line: &Envelope<'_>) -> Option<Self> {
        let is_told = is_told(entry.kind);
        is_told.then(|| Self {
            entry: id_text(&entry.id),
            offset: entry.offset,
            at: (entry.at > 0).then_some(entry.at),
            said: said(entry.kind, line),
        })
    }
}

fn is_told(kind: Kind) -> bool {
    matches!(kind, Kind::User | Kind::Assistant | Kind::ToolResult | Kind::Compaction | Kind::CustomMessage)
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The user wrote.
    User(String),
    /// The operator wrote, through the Chief.
    Chief(String),
    /// A model answered.
    Answer(Answer),
    /// A tool gave something.
    Given(Given),
    /// What came before was replaced by a summary.
    Compaction,
    /// Anything else.
    Other,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its texts, a line each; thoughts are left out.
    pub text: String,
    /// The tools it calls, in order.
    pub calls: Vec<Call>,
    /// Which model answered.
    pub model: Option<Model>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What its result is found by.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: text as it is, anything else as JSON.
    pub arguments: Vec<(String, String)>,
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Of which call.
    pub call: String,
    /// Its texts, with nothing between them.
    pub text: String,
    /// The digests of its images.
    pub images: Vec<String>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// What was read of a file beside its entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The file's header.
    pub header: Header,
    /// Lines that could not be read as entries.
    pub bad_lines: u32,
    /// Lines that are too long to be read.
    pub long_lines: u32,
}

/// Folds the branch of the session file at `path`, from its root to its leaf, entries behind torn
/// lines among it. `begin` makes the state that `take` adds each entry to; it is called again where
/// the file is written anew meanwhile. Blocking, and as long as the file takes.
///
/// # Errors
/// [`TranscriptError`]; no bad line is one. With a `session` the file must be that one's.
pub fn fold<S>(
    path: &Path,
    session: Option<&SessionId>,
    begin: impl Fn(&Header) -> S,
    mut take: impl FnMut(&mut S, Step),
) -> Result<(S, Read), TranscriptError> {
    for _ in 0..ATTEMPTS {
        let mut tail = Tail::new(path);
        // One look ends at the size that the file had, however fast it grows.
        if tail.look(u64::MAX, Unsettled::AtOnce)? != Progress::Done {
            continue;
        }
        if tail.size() == 0 {
            return Err(TranscriptError::Empty);
        }
        let index = tail.index();
        let header = match index.header() {
            Some(Ok(header)) => header.clone(),
            Some(Err(error)) => return Err(error.clone().into()),
            None => return Err(HeaderError::NoHeader("no line of it is JSON").into()),
        };
        if session.is_some_and(|session| header.session != *session) {
            return Err(TranscriptError::OtherSession);
        }
        let mut state = begin(&header);
        let read = Read { header, bad_lines: index.bad_lines(), long_lines: index.long_lines() };
        if steps(&tail, path, |step| take(&mut state, step))? && tail.holds()? {
            return Ok((state, read));
        }
    }
    Err(TranscriptError::Changing)
}

/// Gives each entry of the branch to `take`; says whether the file still held them all.
fn steps(tail: &Tail, path: &Path, mut take: impl FnMut(Step)) -> Result<bool, HeaderError> {
    let (file, _) = open(path)?;
    let tree = Tree::of(tail.index(), Seen::WithRecovered);
    for entry in tree.branch().into_iter().filter_map(|at| tree.entry(at)) {
        if !is_told(entry.kind) {
            continue;
        }
        let length = entry.length as usize;
        let text = read_at(&file, entry.offset, length)?;
        if text.len() != length {
            return Ok(false);
        }
        let document = Document::decode(&text);
        let Some(envelope) = document.value().ok().and_then(Envelope::of) else { return Ok(false) };
        if let Some(step) = Step::of(entry, &envelope) {
            take(step);
        }
    }
    Ok(true)
}

/// An entry's id as the file has it.
fn id_text(id: &Id) -> String {
    match id {
        Id::Hex(number) => format!("{number:08x}"),
        Id::Line(number) => format!("line {number}"),
        Id::Other(text) => lossy(text),
    }
}

fn said(kind: Kind, envelope: &Envelope<'_>) -> Said {
    let message = match kind {
        Kind::Compaction => return Said::Compaction,
        Kind::CustomMessage => {
            let is_chief = envelope.text("customType").is_some_and(|of| BY_CHIEF.iter().any(|by| of == *by));
            let text = || texts(envelope.get("content"), "");
            return if is_chief { Said::Chief(text()) } else { Said::Other };
        }
        _ => envelope.object("message"),
    };
    let Some(message) = message else { return Said::Other };
    let content = message.get("content");
    match kind {
        Kind::User => Said::User(texts(content, "")),
        Kind::Assistant => Said::Answer(Answer {
            text: texts(content, "\n"),
            calls: parts(content).iter().filter_map(call).collect(),
            model: message
                .text("provider")
                .zip(message.text("model"))
                .map(|(provider, id)| Model { provider, id }),
        }),
        Kind::ToolResult => Said::Given(Given {
            call: owned(message.lossy("toolCallId")),
            text: texts(content, ""),
            images: parts(content).iter().filter_map(image).collect(),
            is_error: message.is_true("isError"),
        }),
        _ => Said::Other,
    }
}

fn lossy(text: &Untrusted) -> String {
    text.to_str_lossy().into_owned()
}

fn parts(content: Option<Json<'_>>) -> Vec<Envelope<'_>> {
    let parts = content.and_then(|content| content.array()).unwrap_or_default();
    parts.into_iter().filter_map(Envelope::of).collect()
}

fn is_of(part: &Envelope<'_>, kind: &str) -> bool {
    part.lossy("type").is_some_and(|of| of == kind)
}

fn owned(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

fn texts(content: Option<Json<'_>>, between: &str) -> String {
    if let Some(text) = content.and_then(|content| content.lossy()) {
        return text.into_owned();
    }
    let parts = parts(content);
    let mut texts = parts.iter().filter(|part| is_of(part, "text")).filter_map(|part| part.lossy("text"));
    let mut all = owned(texts.next());
    for text in texts {
        all.push_str(between);
        all.push_str(&text);
    }
    all
}

fn call(part: &Envelope<'_>) -> Option<Call> {
    if !is_of(part, "toolCall") {
        return None;
    }
    let arguments = part.get("arguments").and_then(|arguments| arguments.object()).unwrap_or_default();
    let arguments = arguments.into_iter().map(|(name, value)| {
        let value = match value.lossy() {
            Some(text) => text.into_owned(),
            None => String::from_utf8_lossy(&reserialize(value)).into_owned(),
        };
        (lossy(&name), value)
    });
    Some(Call {
        id: owned(part.lossy("id")),
        tool: owned(part.lossy("name")),
        arguments: arguments.collect(),
    })
}

fn image(part: &Envelope<'_>) -> Option<String> {
    (is_of(part, "image")).then(|| sha256_hex(part.get("data").map_or(&[][..], |data| data.raw().as_bytes())))
}
