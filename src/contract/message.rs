//! The message record, `inbox/<sha256(receiver)>/<id>.json`.

use super::ids::{SessionId, Timestamp, Uuid};
use super::json::{Document, ObjectWriter};
use super::record::{Fields, Invalid, Rule, check_size};
use super::text::Untrusted;

/// Largest message, in bytes: the file as it stands, and the record written again.
pub const MAX_BYTES: usize = 8_192;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Chief to lead.
    ChiefMessage,
    /// Chief to lead, answering an ask.
    ChiefReply,
    /// Lead to Chief.
    LeadMessage,
    /// Lead to Chief, waiting for a reply.
    LeadAsk,
    /// Lead to lead.
    PeerMessage,
}

impl Kind {
    /// Its name on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::ChiefMessage => "chief_message",
            Kind::ChiefReply => "chief_reply",
            Kind::LeadMessage => "lead_message",
            Kind::LeadAsk => "lead_ask",
            Kind::PeerMessage => "peer_message",
        }
    }

    fn parse(text: &Untrusted) -> Option<Self> {
        Self::from_name(std::str::from_utf8(text.as_wtf8()).ok()?)
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Kind::ChiefMessage, Kind::ChiefReply, Kind::LeadMessage, Kind::LeadAsk, Kind::PeerMessage]
            .into_iter()
            .find(|kind| name == kind.as_str())
    }

    /// Whether a message of this kind belongs to an ask.
    pub fn has_ask(self) -> bool {
        matches!(self, Kind::ChiefReply | Kind::LeadAsk)
    }
}

/// One message, from one session to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id and, in an inbox, its file name.
    pub id: Uuid,
    /// The Chief's lease it was written under (for peers: the sender's presence claim).
    pub lease: Uuid,
    /// What it is.
    pub kind: Kind,
    /// The sender.
    pub from: SessionId,
    /// The receiver.
    pub to: SessionId,
    /// The lead among the two (for peers: the sender).
    pub lead: SessionId,
    /// The ask it belongs to, exactly where the kind has one.
    pub ask: Option<Uuid>,
    /// What it says, attachments rendered.
    pub text: Untrusted,
    /// When it was written.
    pub created_at: Timestamp,
}

impl Message {
    /// Judges the bytes of a message file. The file name need not equal the id inside.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        const WHAT: &str = "the message";
        check_size(WHAT, bytes.len(), MAX_BYTES)?;
        let document = Document::decode(bytes);
        let fields = Fields::of_document(WHAT, &document)?;
        fields.closed(
            1.0,
            &[
                "version",
                "id",
                "leaseId",
                "kind",
                "fromSessionId",
                "toSessionId",
                "leadSessionId",
                "askId",
                "text",
                "createdAt",
            ],
        )?;
        let kind = (fields.require("kind")?.string())
            .and_then(|text| Kind::parse(&text))
            .ok_or_else(|| fields.refuse(Rule::Kind, "is of no known kind"))?;
        let ask = match (kind.has_ask(), fields.get("askId").is_some()) {
            (true, true) => Some(fields.uuid("askId", Rule::AskId)?),
            (false, false) => None,
            (true, false) => return Err(fields.refuse(Rule::AskId, "has no askId")),
            (false, true) => return Err(fields.refuse(Rule::AskId, "has an askId, which its kind has not")),
        };
        let message = Self {
            id: fields.uuid("id", Rule::Uuid)?,
            lease: fields.uuid("leaseId", Rule::Uuid)?,
            kind,
            from: fields.session("fromSessionId")?,
            to: fields.session("toSessionId")?,
            lead: fields.session("leadSessionId")?,
            ask,
            text: fields.text("text")?,
            created_at: fields.time("createdAt")?,
        };
        message.to_bytes()?;
        Ok(message)
    }

    /// The file's content; refused when it would be too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Invalid> {
        let bytes = self.serialize();
        if bytes.len() > MAX_BYTES {
            return Err(Invalid::new(
                Rule::ReserializedTooLarge,
                format!("the message written has {} bytes, {MAX_BYTES} are allowed", bytes.len()),
            ));
        }
        Ok(bytes)
    }

    /// Bytes the record takes on disk, whether or not they are allowed.
    pub fn byte_len(&self) -> usize {
        self.serialize().len()
    }

    fn serialize(&self) -> Vec<u8> {
        let mut object = ObjectWriter::new();
        object
            .number("version", 1.0)
            .string("id", &self.id.to_string().into())
            .string("leaseId", &self.lease.to_string().into())
            .string("kind", &self.kind.as_str().into())
            .string("fromSessionId", self.from.as_untrusted())
            .string("toSessionId", self.to.as_untrusted())
            .string("leadSessionId", self.lead.as_untrusted());
        if let Some(ask) = self.ask {
            object.string("askId", &ask.to_string().into());
        }
        let mut bytes =
            object.string("text", &self.text).number("createdAt", self.created_at.as_number()).finish();
        bytes.push(b'\n');
        bytes
    }
}
