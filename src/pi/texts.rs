//! The texts of an entry in their order: the one list that the screen, the search and the transcript
//! are made from, so that none of them misses what another has.

use super::entry::{Envelope, Kind};
use crate::contract::json::Json;
use crate::contract::{Untrusted, Uuid};

/// What a lead's request to its agent begins with.
const CONTROL_MARKER: &str = "__PI_HERDSMAN_AGENT_V4__:";

/// One text of an entry, or what stands among them. A text may be empty.
pub(super) enum Text<'a> {
    /// What somebody said, or a summary.
    Said(Untrusted),
    /// What a model thought.
    Thought(Untrusted),
    /// A call of a tool.
    Call {
        /// The tool's.
        name: Option<Untrusted>,
        /// What it is called with.
        arguments: Option<Json<'a>>,
    },
    /// What a tool or command gave.
    Output(Untrusted),
    /// The command a user ran.
    Command(Untrusted),
    /// A picture.
    Image {
        /// Its type.
        mime: Untrusted,
        /// Its bytes, more or less.
        bytes: u64,
    },
    /// Why an answer broke off.
    Failure(Untrusted),
    /// In place of a lead's request to its agent, which reads it from elsewhere.
    Request,
}

/// Those of `entry`, which is of `kind`.
pub(super) fn of<'a>(kind: Kind, entry: &Envelope<'a>) -> Vec<Text<'a>> {
    let message = entry.message();
    let of = message.as_ref().unwrap_or(entry);
    let text = |key: &str| of.text(key).unwrap_or_default();
    match kind {
        Kind::Compaction | Kind::CompactionSummary | Kind::BranchSummary => vec![Text::Said(text("summary"))],
        Kind::CustomMessage => content(of, Text::Said),
        Kind::User => {
            let texts = content(of, Text::Said);
            if is_control_marker(&joined(&texts)) { vec![Text::Request] } else { texts }
        }
        Kind::Assistant => {
            let mut texts = content(of, Text::Said);
            texts.push(Text::Failure(text("errorMessage")));
            texts
        }
        Kind::ToolResult => content(of, Text::Output),
        Kind::Bash => vec![Text::Command(text("command")), Text::Output(text("output"))],
        Kind::Setting | Kind::Other => Vec::new(),
    }
}

/// What was said or given, with nothing between the texts, trimmed as a whole.
pub(super) fn joined(texts: &[Text<'_>]) -> String {
    let mut joined = String::new();
    for text in texts {
        if let Text::Said(text) | Text::Output(text) = text {
            joined.push_str(&text.to_str_lossy());
        }
    }
    Untrusted::from(joined).trim().to_str_lossy().into_owned()
}

/// A content that is a text, or blocks of text, thoughts, calls and pictures.
fn content<'a>(of: &Envelope<'a>, said: fn(Untrusted) -> Text<'a>) -> Vec<Text<'a>> {
    let Some(content) = of.get("content") else { return Vec::new() };
    if let Some(text) = content.string() {
        return vec![said(text)];
    }
    let blocks = content.array().unwrap_or_default().into_iter().filter_map(Envelope::of);
    blocks.filter_map(|block| of_block(&block, said)).collect()
}

fn of_block<'a>(block: &Envelope<'a>, said: fn(Untrusted) -> Text<'a>) -> Option<Text<'a>> {
    let text = |key: &str| block.text(key).unwrap_or_default();
    match block.text("type")?.to_str_lossy().as_ref() {
        "text" => Some(said(text("text"))),
        "thinking" => Some(Text::Thought(text("thinking"))),
        "toolCall" => Some(Text::Call { name: block.text("name"), arguments: block.get("arguments") }),
        "image" => {
            // Of base64 every four characters are three bytes, padding aside.
            let data = block.get("data").map_or(0, |data| data.raw().trim_matches(['"', '=']).len());
            Some(Text::Image { mime: text("mimeType"), bytes: data as u64 * 3 / 4 })
        }
        _ => None,
    }
}

fn is_control_marker(text: &str) -> bool {
    text.strip_prefix(CONTROL_MARKER).is_some_and(|id| Uuid::parse(id).is_some())
}
