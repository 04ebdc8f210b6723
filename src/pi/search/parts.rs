//! The texts of an entry that a reader sees, each by itself.

use crate::contract::Untrusted;
use crate::contract::json::Json;
use crate::pi::entry::{Envelope, Kind};
use crate::pi::texts::{self, Text};

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
    let role = match kind {
        Kind::User => Role::User,
        Kind::Assistant => Role::Assistant,
        Kind::ToolResult => Role::ToolResult,
        Kind::Bash => Role::Bash,
        Kind::Compaction | Kind::CompactionSummary | Kind::BranchSummary => Role::Summary,
        Kind::CustomMessage => Role::Custom,
        Kind::Setting | Kind::Other => return parts.0,
    };
    let tool = entry.message().filter(|_| kind == Kind::ToolResult).and_then(|it| it.text("toolName"));
    for text in texts::of(kind, entry) {
        match text {
            Text::Said(text) | Text::Output(text) | Text::Command(text) | Text::Failure(text) => {
                parts.add(role, tool.clone(), lossy(&text));
            }
            Text::Thought(text) if thinking => parts.add(Role::Thinking, None, lossy(&text)),
            Text::Call { name, arguments } => {
                parts.add(Role::ToolCall, name.clone(), name.as_ref().map(lossy).unwrap_or_default());
                if let Some(arguments) = arguments {
                    parts.values(name.as_ref(), arguments, 0);
                }
            }
            Text::Thought(_) | Text::Image { .. } | Text::Request => {}
        }
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
