//! The lead record, `leads/<sha256(session)>.json`.

use super::ids::{SessionId, Timestamp, Uuid};
use super::json::{Document, Json, ObjectWriter};
use super::record::{Fields, Invalid, Rule, check_size};
use super::text::Untrusted;

/// Largest lead record, in bytes.
pub const MAX_BYTES: usize = 16 * 1024;

/// Longest question, in UTF-16 units and in bytes.
pub const MAX_QUESTION: usize = 1_024;

/// What a lead waits to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAsk {
    /// Stays the same over changes of Chief and restarts of the lead.
    pub ask: Uuid,
    /// The bare question.
    pub question: Untrusted,
    /// Exactly the text of its message, attachments rendered.
    pub text: Untrusted,
}

impl PendingAsk {
    fn from_json(value: Json<'_>) -> Result<Self, Invalid> {
        let fields = Fields::of("the pending ask", value)?;
        fields.no_other_than(&["askId", "question", "text"])?;
        let question = (fields.require("question")?.string()).filter(is_question).ok_or_else(|| {
            fields.refuse(Rule::Question, "has no question of 1–1,024 bytes that is not blank")
        })?;
        Ok(Self { ask: fields.uuid("askId", Rule::AskId)?, question, text: fields.text("text")? })
    }

    fn to_bytes(&self) -> Vec<u8> {
        ObjectWriter::new()
            .string("askId", &self.ask.to_string().into())
            .string("question", &self.question)
            .string("text", &self.text)
            .finish()
    }
}

/// What a lead's session keeps of its coordination: the data of its last entry of that kind counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeadState {
    /// Whose record stands, while the lead is open.
    pub instance: Option<Uuid>,
    /// What it waits to be told.
    pub pending_ask: Option<PendingAsk>,
}

impl LeadState {
    /// Judges the `data` of such an entry. A malformed one is an error, not a default.
    pub fn from_json(value: Json<'_>) -> Result<Self, Invalid> {
        let fields = Fields::of("the lead state", value)?;
        fields.no_other_than(&["instanceId", "pendingAsk"])?;
        let instance = fields.get("instanceId").map(|_| fields.uuid("instanceId", Rule::Uuid)).transpose()?;
        Ok(Self { instance, pending_ask: fields.get("pendingAsk").map(PendingAsk::from_json).transpose()? })
    }

    /// The entry's `data`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut object = ObjectWriter::new();
        object.optional("instanceId", self.instance.map(|it| it.to_string().into()).as_ref());
        if let Some(ask) = &self.pending_ask {
            object.raw("pendingAsk", &ask.to_bytes());
        }
        object.finish()
    }
}

/// Whether a lead may ask it: not blank, at most 1,024 UTF-16 units and 1,024 bytes.
pub fn is_question(text: &Untrusted) -> bool {
    !text.is_blank() && text.utf16_len() <= MAX_QUESTION && text.utf8_len() <= MAX_QUESTION
}

/// What a lead publishes of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadRecord {
    /// Fresh on every initialisation of the lead.
    pub instance: Uuid,
    /// The lead's session.
    pub session: SessionId,
    /// Its one open ask.
    pub pending_ask: Option<PendingAsk>,
    /// When it was written.
    pub updated_at: Timestamp,
}

impl LeadRecord {
    /// Judges the bytes of a lead record that stands under the hash of `session`.
    pub fn parse(bytes: &[u8], session: &SessionId) -> Result<Self, Invalid> {
        let record = Self::parse_any(bytes)?;
        if record.session != *session {
            return Err(Invalid::new(
                Rule::FileName,
                "the lead record is of another session than its file name",
            ));
        }
        Ok(record)
    }

    /// The same for a file of which only the name is known, `<sha256(session)>.json`.
    pub fn parse_named(bytes: &[u8], file_name: &str) -> Result<Self, Invalid> {
        let record = Self::parse_any(bytes)?;
        if file_name.strip_suffix(".json") != Some(record.session.hash().as_str()) {
            return Err(Invalid::new(
                Rule::FileName,
                "the lead record is of another session than its file name",
            ));
        }
        Ok(record)
    }

    /// The same where neither session nor file name is known.
    pub fn parse_any(bytes: &[u8]) -> Result<Self, Invalid> {
        const WHAT: &str = "the lead record";
        check_size(WHAT, bytes.len(), MAX_BYTES)?;
        let document = Document::decode(bytes);
        check_size(WHAT, document.decoded_len(), MAX_BYTES)?;
        let fields = Fields::of_document(WHAT, &document)?;
        fields.closed(1.0, &["version", "instanceId", "piSessionId", "updatedAt", "pendingAsk"])?;
        Ok(Self {
            instance: fields.uuid("instanceId", Rule::Uuid)?,
            session: fields.session("piSessionId")?,
            pending_ask: fields.get("pendingAsk").map(PendingAsk::from_json).transpose()?,
            updated_at: fields.time("updatedAt")?,
        })
    }

    /// The file's content; refused when it would be too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Invalid> {
        let mut object = ObjectWriter::new();
        object
            .number("version", 1.0)
            .string("instanceId", &self.instance.to_string().into())
            .string("piSessionId", self.session.as_untrusted());
        if let Some(ask) = &self.pending_ask {
            object.raw("pendingAsk", &ask.to_bytes());
        }
        let mut bytes = object.number("updatedAt", self.updated_at.as_number()).finish();
        bytes.push(b'\n');
        check_size("the lead record", bytes.len(), MAX_BYTES)?;
        Ok(bytes)
    }
}
