//! The form of an event's line.

use super::{Event, VERSION};
use crate::contract::json::ObjectWriter;
use crate::contract::{Message, Timestamp, Untrusted, Uuid};

/// Characters of a text kept in memory.
pub(super) const PREVIEW: usize = 240;

/// The line of `event`, with its end.
pub(super) fn line_of(event: &Event<'_>, seq: u64, at: Timestamp) -> Vec<u8> {
    let mut line = ObjectWriter::new();
    line.number("v", VERSION).number("seq", seq as f64).number("at", at.as_number());
    let id = |id: Uuid| Untrusted::from(id.to_string());
    match event {
        Event::Received { id: file, bytes, message, refused } => {
            line.string("kind", &"received".into()).string("id", &id(*file));
            if let Some(message) = message {
                line.string("message", &message.kind.as_str().into())
                    .string("lead", message.lead.as_untrusted())
                    .number("createdAt", message.created_at.as_number())
                    .string("preview", &message.text.first_units(PREVIEW));
                if let Some(ask) = message.ask {
                    line.string("ask", &id(ask));
                }
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
            line.string("record", &record(message));
        }
        Event::Requeued { old, again } => {
            line.string("kind", &"requeued".into()).string("old", &id(*old)).string("id", &id(again.id));
            line.string("record", &record(again));
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
    }
    let mut bytes = line.finish();
    bytes.push(b'\n');
    bytes
}

/// A record of ours; it was checked to be writable before.
fn record(message: &Message) -> Untrusted {
    Untrusted::from_bytes_lossy(&message.to_bytes().unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that [`hex`] wrote.
pub(super) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|it| it as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
