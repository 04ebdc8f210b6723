//! How a delivered message appears in the receiver's Pi session: a custom message, the only proof
//! of delivery.

use super::ids::{SessionId, Uuid};
use super::message::{Kind, Message};
use super::text::Untrusted;

/// Longest content, in bytes.
pub const MAX_CONTENT_BYTES: usize = 8_192;

/// The custom message's `customType` for messages of `kind`.
pub fn custom_type(kind: Kind) -> String {
    format!("pi-herdsman-{}", kind.as_str())
}

/// The custom message's `content`: who writes to whom, then the text, cut at 8,192 bytes on a
/// character boundary. Lone surrogates are U+FFFD in it.
pub fn content(message: &Message) -> String {
    let [from, to, lead, text] =
        [message.from.as_untrusted(), message.to.as_untrusted(), message.lead.as_untrusted(), &message.text]
            .map(Untrusted::to_str_lossy);
    let mut content = match message.kind {
        Kind::ChiefMessage | Kind::ChiefReply => format!("From chief {from} to lead {lead}: {text}"),
        Kind::LeadMessage | Kind::LeadAsk => format!("From lead {lead} to chief {to}: {text}"),
        Kind::PeerMessage => format!("Peer message from {from}: {text}"),
    };
    content.truncate(content.floor_char_boundary(MAX_CONTENT_BYTES));
    content
}

/// What a custom message of `custom_type` is, if one of these.
pub fn kind_of(custom_type: &Untrusted) -> Option<Kind> {
    Kind::from_name(custom_type.to_str_lossy().strip_prefix("pi-herdsman-")?)
}

/// The text in the content of a message of `kind` between `lead` and another; all of it where it does
/// not begin as such a content does.
pub fn text_alone(kind: Kind, content: &Untrusted, lead: &SessionId) -> Untrusted {
    let content = content.to_str_lossy();
    let lead = lead.as_untrusted().to_str_lossy();
    let after = |begin: &str, between: &str| {
        content.strip_prefix(begin).and_then(|rest| rest.split_once(between)).map(|(_, text)| text)
    };
    let text = match kind {
        Kind::ChiefMessage | Kind::ChiefReply => after("From chief ", &format!(" to lead {lead}: ")),
        Kind::LeadMessage | Kind::LeadAsk => after(&format!("From lead {lead} to chief "), ": "),
        Kind::PeerMessage => content.strip_prefix(&*format!("Peer message from {lead}: ")),
    };
    text.unwrap_or(&content).into()
}

/// The custom message's `details`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The message.
    pub id: Uuid,
    /// Its lease.
    pub lease: Uuid,
    /// The lead it is between.
    pub lead: Untrusted,
    /// The ask it belongs to.
    pub ask: Option<Uuid>,
}

/// The details of `message`.
pub fn details(message: &Message) -> Details {
    Details {
        id: message.id,
        lease: message.lease,
        lead: message.lead.as_untrusted().clone(),
        ask: message.ask,
    }
}
