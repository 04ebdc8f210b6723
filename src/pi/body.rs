//! What one entry says, in the parts that a reader shows: folded to a few lines each, or whole.

use std::fs::File;
use std::path::Path;

use super::entry::{Envelope, Kind};
use super::session::{HeaderError, open, read_at};
use crate::contract::Untrusted;
use crate::contract::json::{Document, Json, reserialize};

/// The most bytes of text that is given of one entry unfolded.
pub const MAX_WHOLE: usize = 4 << 20;
/// The same folded.
const MAX_FOLDED: usize = 128 << 10;
/// The most bytes of a call's arguments on one line.
const MAX_SUMMARY: usize = 400;

/// How much of an entry is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folding {
    /// Long parts without their middle.
    Folded,
    /// All of it, up to [`MAX_WHOLE`].
    Whole,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// What somebody said, or a summary.
    Said,
    /// What a model thought.
    Thought,
    /// A call of a tool: its name and arguments.
    Call,
    /// What a tool or command gave.
    Output,
    /// The command a user ran.
    Command,
    /// A picture, named and not shown.
    Image,
    /// Why an answer broke off.
    Failure,
}

/// One part of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its text, or the beginning of it.
    pub head: Untrusted,
    /// Whole lines left out after that.
    pub omitted_lines: usize,
    /// Bytes left out there; without any the text is whole.
    pub omitted_bytes: usize,
    /// How it ends, where something is left out.
    pub tail: Untrusted,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    /// The tool, the model, the type of an extension's message, or what was changed to.
    pub title: Untrusted,
    /// What else is to be said in its heading, in words of ours.
    pub notes: Vec<String>,
    /// Its parts.
    pub parts: Vec<Part>,
    /// Whether unfolded there is more of it, or a call's arguments one by one.
    pub is_folded: bool,
}

/// How much of a part stays when it is folded.
struct Limit {
    head: usize,
    tail: usize,
    bytes: usize,
}

const SAID: Limit = Limit { head: 150, tail: 20, bytes: 24 << 10 };
const OUTPUT: Limit = Limit { head: 3, tail: 2, bytes: 2 << 10 };
const SUMMARY: Limit = Limit { head: 6, tail: 0, bytes: 2 << 10 };

impl Body {
    /// What the entry of `kind` says whose line is `line`; nothing if that is no entry.
    pub fn of(line: &[u8], kind: Kind, folding: Folding) -> Option<Self> {
        let document = Document::decode(line);
        let envelope = document.value().ok().and_then(Envelope::of)?;
        let room = if folding == Folding::Whole { MAX_WHOLE } else { MAX_FOLDED };
        let mut reader = Reader { body: Self::default(), folding, room };
        reader.entry(kind, &envelope);
        Some(reader.body)
    }

    /// Its text, part by part, as it is copied.
    pub fn text(&self) -> Untrusted {
        let mut text = String::new();
        for part in &self.parts {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&part.head.to_str_lossy());
            if part.omitted_bytes > 0 {
                text.push_str(&format!("\n[{} bytes left out]\n", part.omitted_bytes));
                text.push_str(&part.tail.to_str_lossy());
            }
        }
        if text.is_empty() { self.title.clone() } else { text.into() }
    }
}

/// A session file, open to read entries from.
#[derive(Debug)]
pub struct Lines(File);

impl Lines {
    /// Those of the file at `path`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn of(path: &Path) -> Result<Self, HeaderError> {
        Ok(Self(open(path)?.0))
    }

    /// The text of an entry; nothing where the file ends before it by now.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read(&self, offset: u64, length: u32) -> Result<Option<Vec<u8>>, HeaderError> {
        let text = read_at(&self.0, offset, length as usize)?;
        Ok((text.len() == length as usize).then_some(text))
    }
}

struct Reader {
    body: Body,
    folding: Folding,
    /// Bytes of text that may still be given.
    room: usize,
}

impl Reader {
    fn entry(&mut self, kind: Kind, entry: &Envelope<'_>) {
        match kind {
            Kind::Compaction => {
                if let Some(before) = entry.get("tokensBefore").and_then(|tokens| tokens.number()) {
                    self.body.notes.push(format!("of {before} tokens"));
                }
                self.part(PartKind::Said, &text(entry, "summary"), &SUMMARY);
            }
            Kind::BranchSummary => self.part(PartKind::Said, &text(entry, "summary"), &SUMMARY),
            Kind::CustomMessage => {
                self.body.title = entry.text("customType").unwrap_or_default();
                self.content(entry.get("content"), PartKind::Said, &SAID);
            }
            Kind::Setting => self.body.title = setting(entry),
            Kind::User | Kind::Assistant | Kind::ToolResult | Kind::Bash => {
                if let Some(message) = entry.object("message") {
                    self.message(kind, &message);
                }
            }
            Kind::Other => {}
        }
    }

    fn message(&mut self, kind: Kind, message: &Envelope<'_>) {
        match kind {
            Kind::Assistant => {
                self.body.title = message.text("model").unwrap_or_default();
                self.content(message.get("content"), PartKind::Said, &SAID);
                match message.text("stopReason") {
                    Some(stop) if stop == "aborted" => self.body.notes.push("aborted".to_owned()),
                    Some(stop) if stop == "error" => self.body.notes.push("error".to_owned()),
                    Some(stop) if stop == "length" => self.body.notes.push("cut off".to_owned()),
                    _ => {}
                }
                self.part(PartKind::Failure, &text(message, "errorMessage"), &SUMMARY);
            }
            Kind::ToolResult => {
                self.body.title = message.text("toolName").unwrap_or_default();
                if message.is_true("isError") {
                    self.body.notes.push("error".to_owned());
                }
                self.content(message.get("content"), PartKind::Output, &OUTPUT);
            }
            Kind::Bash => {
                let code = message.get("exitCode").and_then(|code| code.number());
                match code {
                    _ if message.is_true("cancelled") => self.body.notes.push("cancelled".to_owned()),
                    Some(code) if code != 0.0 => self.body.notes.push(format!("error, exit code {code}")),
                    _ => {}
                }
                self.part(PartKind::Command, &text(message, "command"), &OUTPUT);
                self.part(PartKind::Output, &text(message, "output"), &OUTPUT);
            }
            _ => self.content(message.get("content"), PartKind::Said, &SAID),
        }
    }

    /// A text, or blocks of text, thoughts, calls and pictures.
    fn content(&mut self, content: Option<Json<'_>>, kind: PartKind, limit: &Limit) {
        let Some(content) = content else { return };
        if let Some(text) = content.string() {
            return self.part(kind, &text, limit);
        }
        for block in content.array().unwrap_or_default().into_iter().filter_map(Envelope::of) {
            match block.text("type").map(|kind| kind.to_str_lossy().into_owned()).as_deref() {
                Some("text") => self.part(kind, &text(&block, "text"), limit),
                Some("thinking") => self.part(PartKind::Thought, &text(&block, "thinking"), limit),
                Some("toolCall") => self.call(&block),
                Some("image") => self.image(&block),
                _ => {}
            }
        }
    }

    fn call(&mut self, block: &Envelope<'_>) {
        let name = text(block, "name").to_str_lossy().into_owned();
        let arguments = block.get("arguments");
        let members = arguments.and_then(|arguments| arguments.object()).unwrap_or_default();
        let mut shown = name;
        if self.folding == Folding::Whole {
            for (key, value) in &members {
                let value = argument(*value);
                let gap = if value.contains('\n') { "\n" } else { " " };
                shown.push_str(&format!("\n{}:{gap}{value}", key.to_str_lossy()));
            }
        } else {
            self.body.is_folded |= !members.is_empty();
            for (nth, (key, value)) in members.iter().enumerate() {
                let value = argument(*value);
                let line = value.lines().next().unwrap_or_default();
                let more = if line.len() < value.trim_end().len() { "\u{2026}" } else { "" };
                let gap = if nth == 0 { "  " } else { ", " };
                shown.push_str(&match members.len() {
                    1 => format!("{gap}{line}{more}"),
                    _ => format!("{gap}{}={line}{more}", key.to_str_lossy()),
                });
                if shown.len() > MAX_SUMMARY {
                    shown.truncate(shown.floor_char_boundary(MAX_SUMMARY));
                    shown.push('\u{2026}');
                    break;
                }
            }
        }
        self.part(PartKind::Call, &shown.into(), &SAID);
    }

    fn image(&mut self, block: &Envelope<'_>) {
        let mime = text(block, "mimeType");
        // Of base64 every four characters are three bytes, padding aside.
        let data = block.get("data").map_or(0, |data| data.raw().trim_matches(['"', '=']).len());
        let named = format!("[image, {}, {}]", mime.to_str_lossy(), size(data as u64 * 3 / 4));
        self.part(PartKind::Image, &named.into(), &SAID);
    }

    fn part(&mut self, kind: PartKind, text: &Untrusted, limit: &Limit) {
        let text = text.to_str_lossy();
        let text = match (kind, self.folding) {
            (PartKind::Output, Folding::Whole) => text.as_ref(),
            (PartKind::Output, Folding::Folded) => text.trim_end(),
            _ => text.trim(),
        };
        if text.is_empty() {
            return;
        }
        let part = match self.folding {
            Folding::Whole => cut(kind, text, &Limit { head: usize::MAX, tail: 0, bytes: self.room }),
            Folding::Folded => {
                cut(kind, text, &Limit { bytes: limit.bytes.min(self.room), ..Limit { ..*limit } })
            }
        };
        self.room -= (part.head.utf8_len() + part.tail.utf8_len()).min(self.room);
        self.body.is_folded |= self.folding == Folding::Folded && part.omitted_bytes > 0;
        self.body.parts.push(part);
    }
}

/// `text` without its middle, where it is longer than the limit by more than the line that says so.
fn cut(kind: PartKind, text: &str, limit: &Limit) -> Part {
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let whole = |head: &str| Part {
        kind,
        head: head.into(),
        omitted_lines: 0,
        omitted_bytes: 0,
        tail: Untrusted::default(),
    };
    if text.len() <= limit.bytes && lines <= limit.head.saturating_add(limit.tail + 1) {
        return whole(text);
    }
    let by_lines = memchr::memchr_iter(b'\n', text.as_bytes()).nth(limit.head.saturating_sub(1));
    let most = if limit.tail == 0 { limit.bytes } else { limit.bytes / 4 * 3 };
    let head = by_lines.unwrap_or(text.len()).min(text.floor_char_boundary(most));
    let last = match limit.tail {
        0 => text.len(),
        tail => memchr::memrchr_iter(b'\n', text.as_bytes()).nth(tail - 1).map_or(0, |at| at + 1),
    };
    let last = last.max(text.ceil_char_boundary(text.len().saturating_sub(limit.bytes - most))).max(head);
    let between = &text[head..last];
    Part {
        kind,
        head: text[..head].into(),
        omitted_lines: memchr::memchr_iter(b'\n', between.as_bytes()).count().saturating_sub(1),
        omitted_bytes: between.len(),
        tail: text[last..].into(),
    }
}

fn text(of: &Envelope<'_>, key: &str) -> Untrusted {
    of.text(key).unwrap_or_default()
}

/// A string as it is, anything else as JSON.
fn argument(value: Json<'_>) -> String {
    match value.string() {
        Some(text) => text.to_str_lossy().into_owned(),
        None => String::from_utf8_lossy(&reserialize(value)).into_owned(),
    }
}

fn setting(entry: &Envelope<'_>) -> Untrusted {
    let text = |key: &str| text(entry, key).to_str_lossy().into_owned();
    let told = match entry.text("type").map(|kind| kind.to_str_lossy().into_owned()).as_deref() {
        Some("model_change") => format!("model {}/{}", text("provider"), text("modelId")),
        Some("thinking_level_change") => format!("thinking level {}", text("thinkingLevel")),
        _ if entry.text("name").is_none_or(|name| name.is_blank()) => "name cleared".to_owned(),
        _ => format!("named {}", text("name")),
    };
    told.into()
}

/// A number of bytes as people say it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: &str, kind: Kind, folding: Folding) -> Body {
        let line = format!("{{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{message}}}");
        Body::of(line.as_bytes(), kind, folding).unwrap()
    }

    #[test]
    fn long_results_lose_their_middle_and_nothing_when_unfolded() {
        let lines: Vec<String> = (1..=50).map(|nth| format!("line {nth}")).collect();
        let message = serde_json::json!({"role": "toolResult", "toolName": "bash", "isError": true,
            "content": [{"type": "text", "text": lines.join("\n") + "\n"}]});
        let body = shown(&message.to_string(), Kind::ToolResult, Folding::Folded);
        let [part] = &body.parts[..] else { panic!("{body:?}") };
        assert_eq!(
            (part.head.clone(), part.tail.clone()),
            ("line 1\nline 2\nline 3".into(), "line 49\nline 50".into())
        );
        assert_eq!((part.omitted_lines, body.is_folded), (45, true));
        assert_eq!((body.title, &body.notes[..]), ("bash".into(), &["error".to_owned()][..]));
        let body = shown(&message.to_string(), Kind::ToolResult, Folding::Whole);
        assert_eq!(body.text(), (lines.join("\n") + "\n").as_str());
        // One line too many to be said is shown instead.
        for (count, omitted) in [(6, 0), (7, 2)] {
            let message = serde_json::json!({"content": lines[..count].join("\n")});
            let body = shown(&message.to_string(), Kind::ToolResult, Folding::Folded);
            assert_eq!(body.parts[0].omitted_lines, omitted, "{count}");
        }
        // However long a line is, it is cut on a character.
        let message = serde_json::json!({"content": "\u{1f600}".repeat(100_000)});
        let body = shown(&message.to_string(), Kind::ToolResult, Folding::Folded);
        let part = &body.parts[0];
        assert_eq!(part.head.utf8_len() + part.tail.utf8_len() + part.omitted_bytes, 400_000);
        assert!(part.head.utf8_len() + part.tail.utf8_len() <= 2048 && part.omitted_bytes > 0);
    }

    #[test]
    fn calls_stand_on_one_line_and_whole_with_every_argument() {
        // As a text: the order of the arguments is the model's.
        let message = r#"{"role": "assistant", "model": "m", "stopReason": "aborted", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "toolCall", "name": "write", "arguments": {"path": "a.md", "content": "one\ntwo", "n": 3}},
            {"type": "toolCall", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "toolCall", "name": "odd", "arguments": null},
            {"type": "image", "mimeType": "image/png", "data": "AAAABBBBCCCC"}
        ]}"#;
        let texts = |folding| -> Vec<String> {
            let body = shown(message, Kind::Assistant, folding);
            assert_eq!(body.notes, ["aborted"]);
            body.parts.iter().map(|part| part.head.to_str_lossy().into_owned()).collect()
        };
        assert_eq!(
            texts(Folding::Folded),
            [
                "hm",
                "write  path=a.md, content=one\u{2026}, n=3",
                "bash  ls",
                "odd",
                "[image, image/png, 9 B]"
            ]
        );
        assert_eq!(texts(Folding::Whole)[1], "write\npath: a.md\ncontent:\none\ntwo\nn: 3");
    }
}
