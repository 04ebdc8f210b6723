//! What was said and done on a session's branch, entry by entry, for whoever folds it.

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
            at: at(line),
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
        let step = match (entry.kind, usual::given(&text)) {
            (Kind::ToolResult, Some((at, said))) => {
                Some(Step { entry: id_text(&entry.id), offset: entry.offset, at, said })
            }
            _ => {
                let document = Document::decode(&text);
                let Some(envelope) = document.value().ok().and_then(Envelope::of) else { return Ok(false) };
                Step::of(entry, &envelope)
            }
        };
        if let Some(step) = step {
            take(step);
        }
    }
    Ok(true)
}

/// Results of tools in the form they nearly always have, read in one go: they are most of a file.
mod usual {
    use std::borrow::Cow;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::{Given, Said, millis};
    use crate::contract::text::sha256_hex;

    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        timestamp: Cow<'a, str>,
        #[serde(borrow)]
        message: Message<'a>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'a> {
        tool_call_id: String,
        is_error: bool,
        #[serde(borrow)]
        content: Vec<Part<'a>>,
    }

    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        text: Option<String>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }

    /// When it was written and what it says; nothing where it is in another form, which the general
    /// reader knows: doubled keys, surrogates, what nests without limit.
    pub(super) fn given(text: &[u8]) -> Option<(Option<u64>, Said)> {
        let line: Line<'_> = serde_json::from_slice(text).ok()?;
        let Message { tool_call_id, is_error, mut content } = line.message;
        let images = content.iter().filter(|part| part.kind == "image");
        let images =
            images.map(|part| sha256_hex(part.data.map_or(&[][..], |data| data.get().as_bytes()))).collect();
        content.retain(|part| part.kind == "text");
        let text = match &mut content[..] {
            [part] => part.text.take().unwrap_or_default(),
            parts => parts.iter().filter_map(|part| part.text.as_deref()).collect(),
        };
        Some((millis(&line.timestamp), Said::Given(Given { call: tool_call_id, text, images, is_error })))
    }
}

fn at(envelope: &Envelope<'_>) -> Option<u64> {
    millis(&envelope.text("timestamp")?.to_str_lossy())
}

fn millis(timestamp: &str) -> Option<u64> {
    let time: jiff::Timestamp = timestamp.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
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
            call: message.text("toolCallId").map(|id| lossy(&id)).unwrap_or_default(),
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
    part.text("type").is_some_and(|of| of == kind)
}

fn texts(content: Option<Json<'_>>, between: &str) -> String {
    if let Some(text) = content.and_then(|content| content.string()) {
        return lossy(&text);
    }
    let parts = parts(content);
    let texts = parts.iter().filter(|part| is_of(part, "text")).filter_map(|part| part.text("text"));
    texts.map(|text| lossy(&text)).collect::<Vec<_>>().join(between)
}

fn call(part: &Envelope<'_>) -> Option<Call> {
    if !is_of(part, "toolCall") {
        return None;
    }
    let text = |key: &str| part.text(key).map(|text| lossy(&text)).unwrap_or_default();
    let arguments = part.get("arguments").and_then(|arguments| arguments.object()).unwrap_or_default();
    let arguments = arguments.into_iter().map(|(name, value)| {
        let value = match value.string() {
            Some(text) => lossy(&text),
            None => String::from_utf8_lossy(&reserialize(value)).into_owned(),
        };
        (lossy(&name), value)
    });
    Some(Call { id: text("id"), tool: text("name"), arguments: arguments.collect() })
}

fn image(part: &Envelope<'_>) -> Option<String> {
    (is_of(part, "image")).then(|| sha256_hex(part.get("data").map_or(&[][..], |data| data.raw().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(line: &[u8]) -> Option<(Option<u64>, Said)> {
        let document = Document::decode(line);
        let envelope = document.value().ok().and_then(Envelope::of)?;
        Some((at(&envelope), said(Kind::ToolResult, &envelope)))
    }

    #[test]
    fn what_is_read_in_one_go_is_what_the_general_reader_reads() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi");
        let mut seen = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|it| it != "jsonl") {
                continue;
            }
            for line in std::fs::read(&path).unwrap().split(|byte| *byte == b'\n') {
                if memchr::memmem::find(line, b"\"role\":\"toolResult\"").is_some() {
                    let found = usual::given(line);
                    assert!(found.is_none() || found == general(line), "{}", path.display());
                    seen += usize::from(found.is_some());
                }
            }
        }
        assert!(seen > 50, "{seen}");
        let line =
            |message: &str| format!("{{\"timestamp\":\"2026-03-01T12:30:45Z\",\"message\":{message}}}");
        for message in [
            "{\"toolCallId\":\"c\",\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":\"a\\nb\"},{\"type\":\"image\",\"data\":\"x\"},{\"type\":\"text\",\"text\":\"c\"},{\"type\":\"text\"}]}",
            "{\"toolCallId\":\"c\",\"isError\":true,\"content\":[]}",
        ] {
            let line = line(message);
            assert_eq!(usual::given(line.as_bytes()), general(line.as_bytes()));
        }
        for odd in [
            "{\"toolCallId\":\"c\",\"isError\":true,\"isError\":false,\"content\":[]}",
            "{\"toolCallId\":\"c\",\"isError\":true,\"content\":null}",
            "{\"toolCallId\":\"c\",\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"\\ud800\"}]}",
        ] {
            assert_eq!(usual::given(line(odd).as_bytes()), None, "{odd}");
            assert!(general(line(odd).as_bytes()).is_some());
        }
    }
}
