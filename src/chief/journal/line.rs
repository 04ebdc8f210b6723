//! One line of the journal: what is written, and what of it the index needs.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::contract::json::ObjectWriter;
use crate::contract::rendered::{self, Parts};
use crate::contract::{Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::{Fate, Until};

/// The version of a line.
pub(super) const VERSION: f64 = 1.0;
/// The highest number of an event: JSON has none above it that every reader keeps exactly.
pub(super) const MAX_SEQ: u64 = (1 << 53) - 1;
/// Characters of a text that stand apart, so that a list needs no record.
pub(super) const PREVIEW: usize = 240;

/// What one event is about, to be appended.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A file of our inbox, byte for byte; why, if it was refused.
    Received {
        /// Its file's id.
        id: Uuid,
        /// Its bytes.
        bytes: &'a [u8],
        /// The message, if it is one.
        message: Option<&'a Message>,
        /// Why it was not accepted.
        refused: Option<&'a str>,
    },
    /// An ask that was seen in a lead's record.
    AskSeen {
        /// Who asks.
        lead: &'a SessionId,
        /// The ask.
        ask: Uuid,
    },
    /// A message of ours, before it is published.
    Sent(&'a Message),
    /// A message is sent again as another one, before that is published. One event, so that no crash
    /// can leave both open, or neither.
    Requeued {
        /// The old id.
        old: Uuid,
        /// What is sent in its place.
        again: &'a Message,
    },
    /// What became of a message of ours.
    Fate {
        /// Which.
        id: Uuid,
        /// What.
        fate: Fate,
    },
    /// The operator has seen these.
    Read(&'a [u64]),
    /// They count as not seen again.
    Unread(&'a [u64]),
    /// An ask is put off.
    Snoozed {
        /// Who asks.
        lead: &'a SessionId,
        /// The ask.
        ask: Uuid,
        /// Until when.
        until: Until,
    },
    /// It is not any more.
    Unsnoozed {
        /// Who asks.
        lead: &'a SessionId,
        /// The ask.
        ask: Uuid,
    },
    /// The segments of these names were removed.
    Pruned(&'a [String]),
}

/// The line of an event, line end included.
pub(super) fn written(event: &Event<'_>, seq: u64, at: Timestamp) -> Vec<u8> {
    let mut line = ObjectWriter::new();
    line.number("v", VERSION).number("seq", seq as f64).number("at", at.as_number());
    let id = |id: Uuid| Untrusted::from(id.to_string());
    match event {
        Event::Received { id: file, bytes, message, refused } => {
            line.string("kind", &"received".into()).string("id", &id(*file));
            if let Some(message) = message {
                about(&mut line, message);
                if message.id != *file {
                    line.string("messageId", &id(message.id));
                }
                line.string("preview", &message.text.first_units(PREVIEW));
            }
            if let Some(refused) = refused {
                line.string("refused", &Untrusted::from(*refused));
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => line.string("record", &text.into()),
                Err(_) => line.string("hex", &hex(bytes).into()),
            };
        }
        Event::AskSeen { lead, ask } => {
            line.string("kind", &"ask_seen".into())
                .string("lead", lead.as_untrusted())
                .string("ask", &id(*ask));
        }
        Event::Sent(message) => {
            line.string("kind", &"sent".into()).string("id", &id(message.id));
            about(&mut line, message);
            line.string("record", &record_of(message));
        }
        Event::Requeued { old, again } => {
            line.string("kind", &"requeued".into()).string("old", &id(*old)).string("id", &id(again.id));
            about(&mut line, again);
            line.string("record", &record_of(again));
        }
        Event::Fate { id: message, fate } => {
            line.string("kind", &"fate".into())
                .string("id", &id(*message))
                .string("fate", &fate.name().into());
        }
        Event::Read(seqs) | Event::Unread(seqs) => {
            let kind = if matches!(event, Event::Read(_)) { "read" } else { "unread" };
            let list = seqs.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            line.string("kind", &kind.into()).raw("seqs", format!("[{list}]").as_bytes());
        }
        Event::Snoozed { lead, ask, until } => {
            line.string("kind", &"snoozed".into())
                .string("lead", lead.as_untrusted())
                .string("ask", &id(*ask));
            if let Until::At(until) = until {
                line.number("until", until.as_number());
            }
        }
        Event::Unsnoozed { lead, ask } => {
            line.string("kind", &"unsnoozed".into())
                .string("lead", lead.as_untrusted())
                .string("ask", &id(*ask));
        }
        Event::Pruned(names) => {
            // Names of ours: nothing in them needs an escape.
            let list = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
            line.string("kind", &"pruned".into()).raw("segments", format!("[{list}]").as_bytes());
        }
    }
    let mut bytes = line.finish();
    bytes.push(b'\n');
    bytes
}

/// What is known of a message without its text.
fn about(line: &mut ObjectWriter, message: &Message) {
    line.string("message", &message.kind.as_str().into())
        .string("lead", message.lead.as_untrusted())
        .number("createdAt", message.created_at.as_number());
    if let Some(ask) = message.ask {
        line.string("ask", &Untrusted::from(ask.to_string()));
    }
}

fn record_of(message: &Message) -> Untrusted {
    // It was checked to be writable before.
    Untrusted::from_bytes_lossy(&message.to_bytes().unwrap_or_default())
}

/// What the index needs of a line.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    pub v: f64,
    pub seq: u64,
    pub at: f64,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub message: Option<Cow<'a, str>>,
    /// Of a message whose file is called otherwise.
    #[serde(borrow, rename = "messageId", default)]
    pub message_id: Option<Cow<'a, str>>,
    /// As it is written: the same session is read once.
    #[serde(borrow, default)]
    pub lead: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub ask: Option<Cow<'a, str>>,
    #[serde(rename = "createdAt", default)]
    pub created_at: Option<f64>,
    #[serde(borrow, default)]
    pub refused: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub old: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub fate: Option<Cow<'a, str>>,
    #[serde(default)]
    pub seqs: Vec<u64>,
    #[serde(default)]
    pub until: Option<f64>,
}

static RECORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","record":""#));
/// A further member begins so, and nothing within a string does.
static MEMBER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#",""#));

/// Reads lines, none of which need stay in memory.
#[derive(Debug, Default)]
pub(super) struct Reader {
    head: Vec<u8>,
}

impl Reader {
    /// Reads a line without its end; none where it is damaged.
    pub(super) fn read<'a>(&'a mut self, line: &'a [u8]) -> Option<Line<'a>> {
        // The record is most of a line, stands last, and is read when somebody asks for it. Quotes
        // are escaped within strings, so this is no part of one.
        if let Some(at) = RECORD.find(line)
            && ends_as_string(&line[at + RECORD.needle().len()..])
        {
            self.head.clear();
            self.head.extend_from_slice(&line[..at]);
            self.head.push(b'}');
            return serde_json::from_slice(&self.head).ok();
        }
        serde_json::from_slice(line).ok()
    }
}

/// Whether a later release wrote a line that is none of ours.
pub(super) fn is_later(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Versioned {
        v: f64,
    }
    serde_json::from_slice::<Versioned>(line).is_ok_and(|line| line.v > VERSION)
}

/// Whether the string that `rest` is within ends where `rest` does, but for one brace, as in every
/// line of ours. What is wrong within it shows once it is read.
fn ends_as_string(rest: &[u8]) -> bool {
    let Some(text) = rest.strip_suffix(b"\"}") else { return false };
    let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    backslashes % 2 == 0 && MEMBER.find(text).is_none()
}

/// The record that a line holds, as it came; nothing where it holds none.
///
/// # Errors
/// Where the line is no JSON.
pub(super) fn record(line: &[u8]) -> serde_json::Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        record: Option<Untrusted>,
        #[serde(default)]
        hex: Option<String>,
    }
    let record: Record = serde_json::from_slice(line)?;
    Ok(match (record.record, record.hex) {
        (Some(text), _) => text.to_str_lossy().into_owned().into_bytes(),
        (None, Some(hex)) => unhex(&hex),
        (None, None) => Vec::new(),
    })
}

/// How a received message begins.
#[derive(Debug, Clone)]
pub(super) struct Preview {
    /// What it says first; files that go along are left out.
    pub text: Untrusted,
    /// Whether that is all of it.
    pub whole: bool,
}

impl Preview {
    /// Of what can't be read, or is no message.
    pub(super) fn nothing() -> Self {
        Self { text: "".into(), whole: false }
    }
}

/// How the received message of `line` begins.
///
/// # Errors
/// As [`record`].
pub(super) fn preview(line: &[u8]) -> serde_json::Result<Preview> {
    #[derive(Deserialize)]
    struct Begin {
        #[serde(default)]
        preview: Option<Untrusted>,
    }
    let Some(text) = serde_json::from_slice::<Begin>(line)?.preview else { return Ok(Preview::nothing()) };
    if rendered::may_have_files(&text)
        && let Ok(message) = Message::parse(&record(line)?)
    {
        let Parts { said, attached } = Parts::of(&message.text);
        if attached.is_some() && !said.is_blank() {
            return Ok(Preview { text: said.first_units(PREVIEW), whole: false });
        }
    }
    let whole = text.utf16_len() < PREVIEW;
    Ok(Preview { text, whole })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|it| it as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_passed_over_only_where_it_is_the_whole_rest() {
        for (text, read) in [
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":"a","record":"{\"x\":\"\\\\\"}"}"#, Some("a")),
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":"a","record":"x","id2":"y"}"#, Some("a")),
            // What follows it counts all the same.
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","record":"x","id":"b"}"#, Some("b")),
            (
                r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":",\"record\":\"","record":"x"}"#,
                Some(",\"record\":\""),
            ),
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":"a","record":"x\"}"#, None),
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":"a","record":"x"#, None),
            // Two lines that were fused.
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":"a","record":"x{"v":1,"record":"x"}"#, None),
            (r#"{"v":1,"seq":1,"at":1,"kind":"sent","id":7,"record":"x"}"#, None),
        ] {
            let mut reader = Reader::default();
            let line = reader.read(text.as_bytes());
            assert_eq!(line.as_ref().and_then(|line| line.id.as_deref()), read, "{text}");
        }
    }
}
