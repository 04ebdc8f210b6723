//! What a session tells of what its agent does: when it did something last, which tools run, what it
//! touched and what failed since it was told something last. Made of the entries of the branch, which
//! cost nothing more than reading them.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, Envelope, Fact, Kind, Model};
use super::tail::Fold;
use crate::contract::delivered::{custom_type, text_from_chief};
use crate::contract::json::Json;
use crate::contract::{Kind as Message, SessionId, Timestamp, Untrusted};

/// The most bytes that are kept of one text that was said.
pub const MAX_SAID: usize = 2048;
/// The most files that are remembered; those touched longest ago go first.
pub const MAX_FILES: usize = 256;
/// The most calls of one answer that are told apart.
const MAX_CALLS: usize = 64;
/// The most bytes kept of a call's id, a tool's name, its argument and why an answer failed.
const MAX_ID: usize = 512;
const MAX_NAME: usize = 64;
const MAX_ARGUMENT: usize = 256;
const MAX_WHY: usize = 256;
/// A longer path is nobody's.
const MAX_PATH: usize = 4096;

/// Arguments of tools that name the file they work on.
const PATHS: [&str; 4] = ["path", "file_path", "filePath", "file"];
/// The argument that says most of a call, the first there is; else it is the first that is a text.
const TELLING: [&str; 8] = ["command", "path", "file_path", "filePath", "file", "pattern", "query", "url"];
/// Words in the names of tools that change the file they are given.
const CHANGES: [&str; 5] = ["edit", "multiedit", "write", "create", "replace"];

/// What an agent does, as far as its session tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    /// When the last entry was written.
    pub last: Option<Timestamp>,
    /// The calls of the last answer that have no result yet. Whether the agent that made them still
    /// runs, the file can't tell.
    pub running: Vec<Call>,
    /// Results since the turn began that say that a tool failed.
    pub errors: u32,
    /// Files that were changed, or are being, the newest first, at most [`MAX_FILES`].
    pub files: Vec<Touched>,
    /// How many more were changed since the turn began than `files` has.
    pub more_files: u32,
    /// Tokens that the last answer took, what it was given among them; none after a compaction.
    pub context: Option<f64>,
    /// What the agent was told last, the beginning of it.
    pub told: Option<Said>,
    /// What it said last, the end of it.
    pub said: Option<Said>,
    /// How the last answer ended, if it did not end as it should.
    pub stop: Option<Stop>,
    /// The model in use.
    pub model: Option<Arc<Model>>,
    /// Whether all since the turn began was read. Else there is at least this.
    pub is_whole: bool,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub tool: Untrusted,
    /// Its argument that says most; may have several lines.
    pub argument: Option<Untrusted>,
    /// When it was made.
    pub since: Option<Timestamp>,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its path, absolute where the session's directory is known and no `~` stands before it.
    pub path: Untrusted,
    /// When, the last time.
    pub at: Option<Timestamp>,
    /// Whether since the turn began.
    pub in_turn: bool,
    /// Where it really is, links followed, once that was looked for.
    pub real: Option<Untrusted>,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// At most [`MAX_SAID`] bytes of it.
    pub text: Untrusted,
    /// Whether that is not all.
    pub is_cut: bool,
}

/// How an answer ended that did not end as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It failed; why, where that is said.
    Error(Option<Untrusted>),
    /// Somebody interrupted it.
    Aborted,
    /// It became too long.
    Length,
}

/// The fold that [`Activity`] is made of.
#[derive(Debug, Clone, Default)]
pub struct Doings {
    last: Option<Timestamp>,
    /// Whether the branch was seen from its root.
    from_root: bool,
    /// Rises with what the agent is told.
    turn: u32,
    calls: Vec<Pending>,
    errors: u32,
    /// In the order in which they were changed.
    files: Vec<File>,
    more_files: u32,
    context: Option<f64>,
    told: Option<Said>,
    said: Option<Said>,
    stop: Option<Stop>,
    model: Option<Arc<Model>>,
}

/// A call without a result.
#[derive(Debug, Clone)]
struct Pending {
    id: Option<Untrusted>,
    call: Call,
    /// The file it changes.
    file: Option<Untrusted>,
}

/// A file as the call named it.
#[derive(Debug, Clone)]
struct File {
    path: Untrusted,
    at: Option<Timestamp>,
    turn: u32,
}

impl Fold for Doings {
    fn take(&mut self, entry: &Entry, line: &Envelope<'_>) {
        self.from_root |= entry.parent.is_none();
        let at = line.text("timestamp").and_then(|text| time(&text));
        self.last = at.or(self.last);
        match entry.fact.as_deref() {
            Some(Fact::Answer { model, usage }) => {
                self.model = Some(Arc::clone(model));
                // What failed or was interrupted says 0.
                self.context =
                    usage.map(|usage| usage.tokens).filter(|tokens| *tokens > 0.0).or(self.context);
            }
            Some(Fact::Model(model)) => self.model = Some(Arc::clone(model)),
            _ => {}
        }
        match (entry.kind, line.object("message")) {
            (Kind::User, Some(message)) => self.turn(text_of(message.get("content"))),
            (Kind::Assistant, Some(message)) => self.answer(&message, at),
            (Kind::ToolResult, Some(message)) => self.result(&message),
            (Kind::CustomMessage, _) => {
                if let Some(text) = from_chief(line) {
                    self.turn(Some(text));
                }
            }
            (Kind::Compaction, _) => self.context = None,
            _ => {}
        }
    }
}

impl Doings {
    /// What the agent does, in a session of the working directory `cwd`.
    pub fn activity(&self, cwd: Option<&Untrusted>) -> Activity {
        let pending = self.calls.iter().filter_map(|call| {
            let file = File { path: call.file.clone()?, at: call.call.since, turn: self.turn };
            Some(file)
        });
        let mut places = HashMap::new();
        let mut files: Vec<Touched> = Vec::new();
        for file in self.files.iter().cloned().chain(pending).rev() {
            let in_turn = file.turn == self.turn;
            let path = resolved(cwd, &file.path);
            let place = *places.entry(path.clone()).or_insert(files.len());
            match files.get_mut(place) {
                // The newest counts.
                Some(known) => known.in_turn |= in_turn,
                None => files.push(Touched { path, at: file.at, in_turn, real: None }),
            }
        }
        let over = files.split_off(files.len().min(MAX_FILES));
        let over = over.iter().filter(|file| file.in_turn).count();
        Activity {
            last: self.last,
            running: self.calls.iter().map(|pending| pending.call.clone()).collect(),
            errors: self.errors,
            files,
            more_files: self.more_files.saturating_add(u32::try_from(over).unwrap_or(u32::MAX)),
            context: self.context,
            told: self.told.clone(),
            said: self.said.clone(),
            stop: self.stop.clone(),
            model: self.model.clone(),
            is_whole: self.is_whole(),
        }
    }

    /// Whether all since the turn began was seen, and what was said before it.
    pub fn is_whole(&self) -> bool {
        self.from_root || (self.turn > 0 && self.said.is_some())
    }

    /// The agent is told something.
    fn turn(&mut self, text: Option<Untrusted>) {
        self.settle();
        self.turn += 1;
        (self.errors, self.more_files, self.stop) = (0, 0, None);
        self.told =
            text.map(|text| Said { text: text.first_bytes(MAX_SAID), is_cut: text.utf8_len() > MAX_SAID });
    }

    fn answer(&mut self, message: &Envelope<'_>, at: Option<Timestamp>) {
        self.settle();
        if let Some(text) = text_of(message.get("content")) {
            self.said = Some(Said { text: text.last_bytes(MAX_SAID), is_cut: text.utf8_len() > MAX_SAID });
        }
        self.stop = match message.text("stopReason") {
            Some(reason) if reason == "error" => {
                Some(Stop::Error(message.text("errorMessage").map(|why| why.first_bytes(MAX_WHY))))
            }
            Some(reason) if reason == "aborted" => Some(Stop::Aborted),
            Some(reason) if reason == "length" => Some(Stop::Length),
            _ => None,
        };
        if matches!(self.stop, Some(Stop::Error(_) | Stop::Aborted)) {
            // Calls in it are not made.
            return;
        }
        let blocks = message.get("content").and_then(|content| content.array()).unwrap_or_default();
        let calls = blocks.into_iter().filter_map(Envelope::of).filter(|block| is(block, "type", "toolCall"));
        self.calls = calls.take(MAX_CALLS).filter_map(|block| Pending::of(&block, at)).collect();
    }

    fn result(&mut self, message: &Envelope<'_>) {
        let failed = message.is_true("isError");
        self.errors = self.errors.saturating_add(u32::from(failed));
        let Some(id) = message.text("toolCallId").map(|id| id.first_bytes(MAX_ID)) else { return };
        let Some(at) = self.calls.iter().position(|call| call.id.as_ref() == Some(&id)) else { return };
        let call = self.calls.remove(at);
        if !failed {
            self.touch(call);
        }
    }

    /// No result comes any more for calls without one. They may well have done something.
    fn settle(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.touch(call);
        }
    }

    fn touch(&mut self, call: Pending) {
        let Some(path) = call.file else { return };
        self.files.retain(|file| file.path != path);
        if self.files.len() == MAX_FILES {
            let gone = self.files.remove(0);
            self.more_files = self.more_files.saturating_add(u32::from(gone.turn == self.turn));
        }
        self.files.push(File { path, at: call.call.since, turn: self.turn });
    }
}

impl Pending {
    fn of(block: &Envelope<'_>, at: Option<Timestamp>) -> Option<Self> {
        let tool = block.text("name")?.first_bytes(MAX_NAME);
        let arguments = block.object("arguments");
        let text = |name: &str| arguments.as_ref()?.text(name).filter(|text| !text.is_blank());
        let file = changes_files(&tool).then(|| PATHS.iter().find_map(|name| text(name))).flatten();
        let argument = TELLING.iter().find_map(|name| text(name));
        let argument = argument.or_else(|| arguments.as_ref()?.first_text());
        Some(Self {
            id: block.text("id").map(|id| id.first_bytes(MAX_ID)),
            file: file.filter(|file| file.utf8_len() <= MAX_PATH),
            call: Call { tool, argument: argument.map(|text| text.first_bytes(MAX_ARGUMENT)), since: at },
        })
    }
}

fn is(members: &Envelope<'_>, key: &str, value: &str) -> bool {
    members.text(key).is_some_and(|text| text == value)
}

/// Whether a tool of that name changes the file it is given. Reading is not touching.
fn changes_files(tool: &Untrusted) -> bool {
    let name = tool.to_str_lossy().to_ascii_lowercase();
    name.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| CHANGES.contains(&word))
}

/// The texts in a message's content, a blank line between them; nothing where they are blank.
fn text_of(content: Option<Json<'_>>) -> Option<Untrusted> {
    let content = content?;
    if let Some(text) = content.string() {
        return Some(text.trim()).filter(|text| !text.is_empty());
    }
    let mut all = String::new();
    for block in content.array()?.into_iter().filter_map(Envelope::of) {
        if let Some(text) = block.text("text").filter(|_| is(&block, "type", "text"))
            && !text.is_blank()
        {
            all.push_str(if all.is_empty() { "" } else { "\n\n" });
            all.push_str(&text.trim().to_str_lossy());
        }
    }
    (!all.is_empty()).then(|| all.into())
}

/// What the Chief wrote to the lead, if the entry is such a message that was delivered: as good as a
/// user's.
fn from_chief(line: &Envelope<'_>) -> Option<Untrusted> {
    let kind = line.text("customType")?;
    if ![Message::ChiefReply, Message::ChiefMessage].into_iter().any(|it| kind == *custom_type(it)) {
        return None;
    }
    let content = text_of(line.get("content"))?;
    let lead = line.object("details").and_then(|details| SessionId::new(details.text("lead")?));
    Some(lead.map_or_else(|| content.clone(), |lead| text_from_chief(&content, &lead)))
}

fn time(text: &Untrusted) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.to_str_lossy().parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Timestamp::from_millis)
}

/// `path` as a tool takes it in `cwd`, without `.` and `..`; no link is followed. What is of somebody's
/// home stays as it stands.
fn resolved(cwd: Option<&Untrusted>, path: &Untrusted) -> Untrusted {
    let path = path.to_str_lossy();
    // Written so in prompts, and taken so by the tools.
    let path = path.strip_prefix('@').unwrap_or(&path);
    let cwd = cwd.map(Untrusted::to_str_lossy);
    let whole = match &cwd {
        _ if path.starts_with(['/', '~']) => path.to_owned(),
        Some(cwd) => format!("{cwd}/{path}"),
        None => path.to_owned(),
    };
    let is_absolute = whole.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "~")) => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if is_absolute { format!("/{joined}").into() } else { joined.into() }
}
