//! What was said in a session, as text: bounded as `staff_transcript` has it, or whole.
//!
//! The text is that of others and not fit for a terminal. No path is part of it or of an error.

use std::path::Path;

use super::body::Lines;
use super::branch::{Seen, Tree};
use super::entry::{Entry, Envelope, Id, Kind};
use super::session::HeaderError;
use super::tail::{Progress, Tail, Unsettled};
use crate::contract::json::{Document, Json, reserialize};
use crate::contract::{SessionId, Untrusted, Uuid};

/// The most bytes of the bounded transcript.
pub const MAX_BYTES: usize = 16_384;
/// The most lines of it.
pub const MAX_LINES: usize = 2_000;
/// The most bytes of one tool result in it.
const MAX_TOOL_BYTES: usize = 4_096;
/// Stands for the middle of a longer one.
const OMITTED: &str = "\n[... middle of tool result omitted ...]\n";
/// What a lead's request to its agent begins with; the agent reads it from elsewhere.
const CONTROL_MARKER: &str = "__PI_HERDSMAN_AGENT_V4__:";
/// Bytes of text from which on the beginning is dropped where only the end is wanted.
const KEPT: usize = 1 << 20;
/// How often a file that is written anew meanwhile is begun again.
const ATTEMPTS: usize = 3;

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What `staff_transcript` gives: from the last compaction on, long tool results without their
    /// middle, the end of it all.
    Bounded,
    /// The whole branch, also commands the user ran, messages of extensions that Pi shows and what
    /// stood behind torn lines; also of files in another version of the format.
    Full,
}

/// What cut the end off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`MAX_BYTES`].
    Bytes,
    /// [`MAX_LINES`].
    Lines,
}

impl Limit {
    /// Its name in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Limit::Bytes => "bytes",
            Limit::Lines => "lines",
        }
    }
}

/// The transcript of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Blocks with a blank line between them.
    pub text: String,
    /// The bytes there were before the end was cut off.
    pub full_bytes: usize,
    /// What cut the end off, if it was.
    pub truncated_by: Option<Limit>,
    /// Whether the middle of a tool result was left out.
    pub tool_truncated: bool,
    /// Lines of the file that could not be read as entries.
    pub bad_lines: u32,
    /// Lines of the file that are too long to be read.
    pub long_lines: u32,
}

impl Transcript {
    /// Whether anything was left out.
    pub fn is_truncated(&self) -> bool {
        self.tool_truncated || self.truncated_by.is_some()
    }
}

/// Why there is no transcript. Ends with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The file can't be read, or is no session's.
    #[error(transparent)]
    File(#[from] HeaderError),
    /// There is nothing in it.
    #[error("the session file is empty. It is filled with the session's first message")]
    Empty,
    /// It is another session's.
    #[error("the session file is of another session. Look who has that session now with `headman list`")]
    OtherSession,
    /// It is in a version of the format whose transcript the contract does not define.
    #[error("the session file is not in version 3 of the format. Read it with --full")]
    OtherVersion,
    /// It was written anew again and again.
    #[error("the session file is being written anew. Try again in a moment")]
    Changing,
}

/// Reads the transcript of `session` from its file at `path`: what the file holds as it is opened. An
/// unterminated last line counts if it is JSON. Blocking, and as long as the file takes.
///
/// # Errors
/// [`TranscriptError`]; no bad line is one.
pub fn read(path: &Path, session: &SessionId, extent: Extent) -> Result<Transcript, TranscriptError> {
    for _ in 0..ATTEMPTS {
        let mut tail = Tail::new(path);
        // One look ends at the size that the file had, however fast it grows.
        if tail.look(u64::MAX, Unsettled::AtOnce)? != Progress::Done {
            continue;
        }
        if tail.size() == 0 {
            return Err(TranscriptError::Empty);
        }
        check(&tail, session, extent)?;
        let written = Writer::new(Lines::of(path)?, extent).write(&tail)?;
        if let Some(transcript) = written
            && tail.holds()?
        {
            return Ok(transcript);
        }
    }
    Err(TranscriptError::Changing)
}

fn check(tail: &Tail, session: &SessionId, extent: Extent) -> Result<(), TranscriptError> {
    let header = match tail.index().header() {
        Some(Ok(header)) => header,
        Some(Err(error)) => return Err(error.clone().into()),
        None => return Err(HeaderError::NoHeader("no line of it is JSON").into()),
    };
    if header.session != *session {
        return Err(TranscriptError::OtherSession);
    }
    if extent == Extent::Bounded && header.version != Some(3.0) {
        return Err(TranscriptError::OtherVersion);
    }
    Ok(())
}

struct Writer {
    lines: Lines,
    extent: Extent,
    /// What was written, or the end of it where no more is wanted.
    text: String,
    /// The bytes of all that was written.
    full_bytes: usize,
    tool_truncated: bool,
}

impl Writer {
    fn new(lines: Lines, extent: Extent) -> Self {
        Self { lines, extent, text: String::new(), full_bytes: 0, tool_truncated: false }
    }

    /// Adds a block, with a blank line before it.
    fn block(&mut self, block: &str) {
        let gap = if self.full_bytes > 0 { "\n\n" } else { "" };
        self.text.push_str(gap);
        self.text.push_str(block);
        self.full_bytes += gap.len() + block.len();
        if self.extent == Extent::Bounded && self.text.len() > KEPT {
            // Still more than fits, so that the end is found as it would be in the whole.
            let begin = self.text.floor_char_boundary(self.text.len() - 2 * MAX_BYTES);
            self.text.drain(..begin);
        }
    }

    /// The same where there is a text.
    fn headed(&mut self, heading: &str, text: &str) {
        if !text.is_empty() {
            self.block(&format!("{heading}:\n{text}"));
        }
    }

    /// The transcript; nothing where the file is not the one of the index any more.
    fn write(mut self, tail: &Tail) -> Result<Option<Transcript>, HeaderError> {
        let index = tail.index();
        let seen = if self.extent == Extent::Full { Seen::WithRecovered } else { Seen::ByPi };
        let tree = Tree::of(index, seen);
        let mut branch: Vec<&Entry> = tree.branch().into_iter().filter_map(|at| tree.entry(at)).collect();
        if self.extent == Extent::Bounded {
            branch = match self.since_compaction(branch)? {
                Some(branch) => branch,
                None => return Ok(None),
            };
        }
        for entry in branch.into_iter().filter(|entry| !matches!(entry.kind, Kind::Setting | Kind::Other)) {
            let Some(text) = self.lines.read(entry.offset, entry.length)? else { return Ok(None) };
            let document = Document::decode(&text);
            let Some(envelope) = document.value().ok().and_then(Envelope::of) else { return Ok(None) };
            self.entry(entry.kind, &envelope);
        }
        let (cut, truncated_by) = match self.extent {
            Extent::Bounded => end_of(&self.text),
            Extent::Full => (self.text.as_str(), None),
        };
        Ok(Some(Transcript {
            text: cut.to_owned(),
            full_bytes: self.full_bytes,
            truncated_by,
            tool_truncated: self.tool_truncated,
            bad_lines: index.bad_lines(),
            long_lines: index.long_lines(),
        }))
    }

    /// The last compaction on the branch, what it kept, and what follows.
    fn since_compaction<'a>(&self, branch: Vec<&'a Entry>) -> Result<Option<Vec<&'a Entry>>, HeaderError> {
        let Some(at) = branch.iter().rposition(|entry| entry.kind == Kind::Compaction) else {
            return Ok(Some(branch));
        };
        let Some(text) = self.lines.read(branch[at].offset, branch[at].length)? else { return Ok(None) };
        let document = Document::decode(&text);
        let Some(compaction) = document.value().ok().and_then(Envelope::of) else { return Ok(None) };
        let first = compaction.text("firstKeptEntryId").map(Id::of);
        let kept = branch[..at].iter().position(|entry| Some(&entry.id) == first.as_ref()).unwrap_or(at);
        let mut since = vec![branch[at]];
        since.extend(&branch[kept..at]);
        since.extend(&branch[at + 1..]);
        Ok(Some(since))
    }

    fn entry(&mut self, kind: Kind, entry: &Envelope<'_>) {
        let text = |key: &str| entry.text(key).map(|text| shown(&text)).unwrap_or_default();
        match kind {
            Kind::Compaction => self.headed("compaction summary", &text("summary")),
            Kind::BranchSummary => self.headed("branch summary", &text("summary")),
            Kind::CustomMessage if self.extent == Extent::Full => {
                self.headed(&format!("custom {}", text("customType")), &joined(entry.get("content")));
            }
            Kind::CustomMessage | Kind::Setting | Kind::Other => {}
            Kind::User | Kind::Assistant | Kind::ToolResult | Kind::Bash => {
                if let Some(message) = entry.object("message") {
                    self.message(kind, &message);
                }
            }
        }
    }

    fn message(&mut self, kind: Kind, message: &Envelope<'_>) {
        let content = message.get("content");
        match kind {
            Kind::User => {
                let text = joined(content);
                if !is_control_marker(&text) {
                    self.headed("user", &text);
                }
            }
            Kind::Assistant => {
                let parts = content.and_then(|content| content.array()).unwrap_or_default();
                for part in parts.into_iter().filter_map(Envelope::of) {
                    self.said(&part);
                }
            }
            Kind::ToolResult => {
                let name = message.text("toolName").map(|name| lossy(&name)).unwrap_or_default();
                let error = if message.is_true("isError") { " [error]" } else { "" };
                let heading = format!("tool result {name}{error}");
                let mut text = joined(content);
                if self.extent == Extent::Bounded && text.len() > MAX_TOOL_BYTES {
                    self.tool_truncated = true;
                    text = without_middle(&text);
                }
                match text.as_str() {
                    "" => self.block(&format!("{heading}:")),
                    text => self.headed(&heading, text),
                }
            }
            Kind::Bash if self.extent == Extent::Full => {
                let text = |key: &str| message.text(key).map(|text| shown(&text)).unwrap_or_default();
                self.headed("bash", format!("{}\n{}", text("command"), text("output")).trim_end());
            }
            Kind::Bash
            | Kind::Compaction
            | Kind::BranchSummary
            | Kind::CustomMessage
            | Kind::Setting
            | Kind::Other => {}
        }
    }

    /// One part of what a model said; thoughts are left out.
    fn said(&mut self, part: &Envelope<'_>) {
        match part.text("type").map(|kind| lossy(&kind)).as_deref() {
            Some("text") => {
                let text = part.text("text").map(|text| shown(&text)).unwrap_or_default();
                self.headed("assistant", &text);
            }
            Some("toolCall") => {
                let name = part.text("name").map(|name| lossy(&name)).unwrap_or_default();
                let arguments = part.get("arguments").map(reserialize).unwrap_or_else(|| b"{}".to_vec());
                self.headed(&format!("tool {name}"), &String::from_utf8_lossy(&arguments));
            }
            _ => {}
        }
    }
}

fn lossy(text: &Untrusted) -> String {
    text.to_str_lossy().into_owned()
}

fn shown(text: &Untrusted) -> String {
    lossy(&text.trim())
}

/// The texts of a content with nothing between them, trimmed as a whole.
fn joined(content: Option<Json<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if let Some(text) = content.string() {
        return shown(&text);
    }
    let parts = content.array().unwrap_or_default().into_iter().filter_map(Envelope::of);
    let texts = parts.filter(|part| part.text("type").is_some_and(|kind| kind == "text"));
    let texts: String = texts.filter_map(|part| part.text("text")).map(|text| lossy(&text)).collect();
    shown(&texts.into())
}

pub(super) fn is_control_marker(text: &str) -> bool {
    text.strip_prefix(CONTROL_MARKER).is_some_and(|id| Uuid::parse(id).is_some())
}

fn without_middle(text: &str) -> String {
    let room = MAX_TOOL_BYTES - OMITTED.len();
    let head = text.floor_char_boundary(room.div_ceil(2));
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    format!("{}{OMITTED}{}", &text[..head], &text[tail..])
}

/// As many whole lines from the end as fit, and what the others were too much for; of a last line
/// that does not fit by itself its end.
fn end_of(text: &str) -> (&str, Option<Limit>) {
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    if text.len() <= MAX_BYTES && lines <= MAX_LINES {
        return (text, None);
    }
    let mut begin = text.len();
    let mut before = text;
    for nth in 0..MAX_LINES {
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        if text.len() - line > MAX_BYTES {
            if nth == 0 {
                begin = text.ceil_char_boundary(text.len() - MAX_BYTES);
            }
            return (&text[begin..], Some(Limit::Bytes));
        }
        begin = line;
        before = &text[..line.saturating_sub(1)];
    }
    (&text[begin..], Some(Limit::Lines))
}
