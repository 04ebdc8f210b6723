//! What was said in a session, as text: bounded as `staff_transcript` has it, or whole.
//!
//! The text is that of others and not fit for a terminal. No path is part of it or of an error.

use std::path::Path;

use super::body::Lines;
use super::branch::{Seen, Tree};
use super::entry::{Entry, Envelope, Id, Kind};
use super::session::HeaderError;
use super::tail::{Progress, Tail, Unsettled};
use super::texts::{self, Text, joined};
use crate::contract::json::{Document, reserialize};
use crate::contract::{SessionId, Untrusted};

/// The newest version of the format that is known.
pub const VERSION: f64 = 3.0;
/// The most bytes of the bounded transcript.
pub const MAX_BYTES: usize = 16_384;
/// The most lines of it.
pub const MAX_LINES: usize = 2_000;
/// The most bytes of one tool result in it.
const MAX_TOOL_BYTES: usize = 4_096;
/// Stands for the middle of a longer one.
const OMITTED: &str = "\n[... middle of tool result omitted ...]\n";
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
    /// The whole branch, also commands the user ran, messages of extensions that Pi shows, why answers
    /// broke off and what stood behind torn lines; also of files in another version of the format.
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
#[derive(Debug, Clone, PartialEq)]
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
    /// The version of the file's format.
    pub version: f64,
}

impl Transcript {
    /// The version of the format, where it is newer than what is known.
    pub fn newer_version(&self) -> Option<f64> {
        (self.version > VERSION).then_some(self.version)
    }

    /// Whether anything of what could be read was left out.
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
    if extent == Extent::Bounded && header.version != Some(VERSION) {
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
            version: index.version().unwrap_or(VERSION),
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
        let first = compaction.get("firstKeptEntryId").and_then(Id::of);
        let kept = branch[..at].iter().position(|entry| Some(&entry.id) == first.as_ref()).unwrap_or(at);
        let mut since = vec![branch[at]];
        since.extend(&branch[kept..at]);
        since.extend(&branch[at + 1..]);
        Ok(Some(since))
    }

    fn entry(&mut self, kind: Kind, entry: &Envelope<'_>) {
        if self.extent == Extent::Bounded && is_left_out(kind, entry) {
            return;
        }
        let message = entry.message();
        let of = message.as_ref().unwrap_or(entry);
        let named = |key: &str| of.text(key).unwrap_or_default();
        let texts = texts::of(kind, entry);
        match kind {
            Kind::Compaction | Kind::CompactionSummary => self.headed("compaction summary", &joined(&texts)),
            Kind::BranchSummary => self.headed("branch summary", &joined(&texts)),
            Kind::CustomMessage => {
                self.headed(&format!("custom {}", shown(&named("customType"))), &joined(&texts));
            }
            Kind::User => self.headed("user", &joined(&texts)),
            Kind::ToolResult => {
                let error = if of.is_true("isError") { " [error]" } else { "" };
                let heading = format!("tool result {}{error}", named("toolName").to_str_lossy());
                let mut text = joined(&texts);
                if self.extent == Extent::Bounded && text.len() > MAX_TOOL_BYTES {
                    self.tool_truncated = true;
                    text = without_middle(&text);
                }
                match text.as_str() {
                    "" => self.block(&format!("{heading}:")),
                    text => self.headed(&heading, text),
                }
            }
            Kind::Bash => {
                let both = format!("{}\n{}", shown(&named("command")), shown(&named("output")));
                self.headed("bash", both.trim_end());
            }
            Kind::Assistant | Kind::Setting | Kind::Other => {}
        }
        // Of others than models a call is among what they said only where a file is odd.
        if kind == Kind::Assistant || self.extent == Extent::Full {
            texts.iter().for_each(|text| self.said(kind, text));
        }
    }

    /// One text of what a model said; thoughts and pictures are left out.
    fn said(&mut self, kind: Kind, text: &Text<'_>) {
        match text {
            Text::Said(text) if kind == Kind::Assistant => self.headed("assistant", &shown(text)),
            Text::Call { name, arguments } => {
                let name = name.as_ref().map(Untrusted::to_str_lossy).unwrap_or_default();
                let arguments = arguments.map(reserialize).unwrap_or_else(|| b"{}".to_vec());
                self.headed(&format!("tool {name}"), &String::from_utf8_lossy(&arguments));
            }
            Text::Failure(text) if self.extent == Extent::Full => {
                self.headed("assistant [error]", &shown(text));
            }
            _ => {}
        }
    }
}

/// What the contract leaves out of the bounded transcript, beside thoughts and failures of answers.
fn is_left_out(kind: Kind, entry: &Envelope<'_>) -> bool {
    match kind {
        Kind::CompactionSummary | Kind::CustomMessage | Kind::Bash => true,
        Kind::BranchSummary => entry.message().is_some(),
        Kind::Assistant => {
            let content = entry.message().and_then(|message| message.get("content"));
            content.is_some_and(|content| content.string().is_some())
        }
        _ => false,
    }
}

fn shown(text: &Untrusted) -> String {
    text.trim().to_str_lossy().into_owned()
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
