//! The texts of an entry that a reader sees, each by itself.

use crate::contract::Untrusted;
use crate::contract::json::Json;
use crate::pi::entry::{Envelope, Kind};
use crate::pi::transcript::is_control_marker;

/// So deep the arguments of a tool are looked into; what is deeper is taken as its JSON stands.
const MAX_DEPTH: usize = 16;

/// Who says a text, or what it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A user.
    User,
    /// A model.
    Assistant,
    /// What a model thought.
    Thinking,
    /// The name of a tool that is called, or a value of its arguments.
    ToolCall,
    /// What a tool gave.
    ToolResult,
    /// A command that a user ran, or what it gave.
    Bash,
    /// The summary that stands for what came before, or of a branch that was left.
    Summary,
    /// An extension's message that Pi shows.
    Custom,
}

impl Role {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Thinking => "thinking",
            Role::ToolCall => "tool_call",
            Role::ToolResult => "tool_result",
            Role::Bash => "bash",
            Role::Summary => "summary",
            Role::Custom => "custom",
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Role::ToolCall => "tool",
            Role::ToolResult => "result",
            role => role.as_str(),
        }
    }
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) role: Role,
    /// Of a call or a result the tool's name.
    pub(super) tool: Option<Untrusted>,
    pub(super) text: String,
}

/// The texts of `entry`, which is of `kind`, in their order; thoughts only if they are wanted.
pub(super) fn of(kind: Kind, entry: &Envelope<'_>, thinking: bool) -> Vec<Part> {
    let mut parts = Parts(Vec::new());
    let message = || entry.object("message");
    match kind {
        Kind::Compaction | Kind::BranchSummary => parts.text(Role::Summary, entry.text("summary")),
        Kind::CustomMessage => parts.content(Role::Custom, None, entry.get("content")),
        Kind::User => {
            let content = message().and_then(|message| message.get("content"));
            parts.content(Role::User, None, content);
            parts.0.retain(|part| !is_control_marker(part.text.trim()));
        }
        Kind::Assistant => {
            let content = message().and_then(|message| message.get("content"));
            let said = content.and_then(|content| content.array()).unwrap_or_default();
            said.into_iter().filter_map(Envelope::of).for_each(|part| parts.said(&part, thinking));
        }
        Kind::ToolResult => {
            let Some(message) = message() else { return parts.0 };
            parts.content(Role::ToolResult, message.text("toolName"), message.get("content"));
        }
        Kind::Bash => {
            let Some(message) = message() else { return parts.0 };
            parts.text(Role::Bash, message.text("command"));
            parts.text(Role::Bash, message.text("output"));
        }
        Kind::Setting | Kind::Other => {}
    }
    parts.0
}

struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, role: Role, tool: Option<Untrusted>, text: String) {
        if !text.is_empty() {
            self.0.push(Part { role, tool, text });
        }
    }

    fn text(&mut self, role: Role, text: Option<Untrusted>) {
        self.add(role, None, text.map(|text| lossy(&text)).unwrap_or_default());
    }

    /// A content that is a text, or has texts among its parts.
    fn content(&mut self, role: Role, tool: Option<Untrusted>, content: Option<Json<'_>>) {
        let Some(content) = content else { return };
        if let Some(text) = content.string() {
            return self.add(role, tool, lossy(&text));
        }
        for part in content.array().unwrap_or_default().into_iter().filter_map(Envelope::of) {
            if part.text("type").is_some_and(|kind| kind == "text") {
                let text = part.text("text").map(|text| lossy(&text)).unwrap_or_default();
                self.add(role, tool.clone(), text);
            }
        }
    }

    /// One part of what a model said.
    fn said(&mut self, part: &Envelope<'_>, thinking: bool) {
        match part.text("type").map(|kind| lossy(&kind)).as_deref() {
            Some("text") => self.text(Role::Assistant, part.text("text")),
            Some("thinking") if thinking => self.text(Role::Thinking, part.text("thinking")),
            Some("toolCall") => {
                let name = part.text("name");
                let shown = name.as_ref().map(lossy).unwrap_or_default();
                self.add(Role::ToolCall, name.clone(), shown);
                if let Some(arguments) = part.get("arguments") {
                    self.values(name.as_ref(), arguments, 0);
                }
            }
            _ => {}
        }
    }

    /// The values of a tool's arguments.
    fn values(&mut self, tool: Option<&Untrusted>, value: Json<'_>, depth: usize) {
        if let Some(text) = value.string() {
            self.add(Role::ToolCall, tool.cloned(), lossy(&text));
        } else if depth == MAX_DEPTH {
            self.add(Role::ToolCall, tool.cloned(), value.raw().to_owned());
        } else if let Some(members) = value.object() {
            members.into_iter().for_each(|(_, value)| self.values(tool, value, depth + 1));
        } else if let Some(values) = value.array() {
            values.into_iter().for_each(|value| self.values(tool, value, depth + 1));
        } else if !value.is_null() {
            self.add(Role::ToolCall, tool.cloned(), value.raw().to_owned());
        }
    }
}

fn lossy(text: &Untrusted) -> String {
    text.to_str_lossy().into_owned()
}
