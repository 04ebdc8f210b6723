//! The Chief descriptor, `chief.json`.

use super::claim::Claim;
use super::ids::{MAX_ID_UNITS, SessionId, Timestamp, Uuid};
use super::json::{Document, ObjectWriter};
use super::record::{Fields, Invalid, Rule, check_size};
use super::text::Untrusted;

/// Largest descriptor, in bytes, as it stands and as decoded.
pub const MAX_BYTES: usize = 2_048;

const WHAT: &str = "the Chief descriptor";

/// Who is Chief, on which pane, under which lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The lease; every message carries it.
    pub lease: Uuid,
    /// The claim of the lock `chief.lock`.
    pub claim: Claim,
    /// The Chief's session.
    pub session: SessionId,
    /// Where it runs; `none` outside Herdr.
    pub pane: Untrusted,
    /// Leads compare it with Herdr's: always written, though others may leave it out.
    pub tab: Option<Untrusted>,
    /// Its workspace.
    pub workspace: Untrusted,
    /// When the lease began.
    pub created_at: Timestamp,
}

impl Descriptor {
    /// Judges the bytes of a `chief.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        check_size(WHAT, bytes.len(), MAX_BYTES)?;
        let document = Document::decode(bytes);
        check_size(WHAT, document.decoded_len(), MAX_BYTES)?;
        Self::of_document(&document)
    }

    /// The same without a limit: written again, one that was just short enough may be longer.
    pub(super) fn of_document(document: &Document<'_>) -> Result<Self, Invalid> {
        let fields = Fields::of_document(WHAT, document)?;
        fields.closed(
            1.0,
            &["version", "leaseId", "claim", "piSessionId", "paneId", "tabId", "workspaceId", "createdAt"],
        )?;
        // Unlike native ids these may be blank.
        let place = |key: &str| {
            (fields.require(key)?.string())
                .filter(|text| (1..=MAX_ID_UNITS).contains(&text.utf16_len()))
                .ok_or_else(|| {
                    fields.refuse(Rule::NativeId, &format!("has no id of 1–512 UTF-16 units as {key}"))
                })
        };
        Ok(Self {
            lease: fields.uuid("leaseId", Rule::Uuid)?,
            claim: Claim::from_json(fields.require("claim")?)?,
            session: fields.session("piSessionId")?,
            pane: place("paneId")?,
            tab: if fields.get("tabId").is_some() { Some(place("tabId")?) } else { None },
            workspace: place("workspaceId")?,
            created_at: fields.time("createdAt")?,
        })
    }

    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = ObjectWriter::new()
            .number("version", 1.0)
            .string("leaseId", &self.lease.to_string().into())
            .raw("claim", &self.claim.to_bytes())
            .string("piSessionId", self.session.as_untrusted())
            .string("paneId", &self.pane)
            .optional("tabId", self.tab.as_ref())
            .string("workspaceId", &self.workspace)
            .number("createdAt", self.created_at.as_number())
            .finish();
        bytes.push(b'\n');
        bytes
    }
}
