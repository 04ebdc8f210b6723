//! A managed agent's mailbox, `mailboxes-v4/<hash>/state.json`. Read only: headman never writes
//! one.

use super::ids::{SessionId, Uuid};
use super::json::{Document, Json};
use super::record::{Fields, Invalid, Rule, check_size};
use super::text::{Untrusted, sha256_hex};

/// Largest mailbox state, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// What the owning lead keeps of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Mailbox {
    /// One run of the agent; a UUID of any version or case.
    pub run: Untrusted,
    /// The session that owns the agent.
    pub owner: SessionId,
    /// Its workspace.
    pub workspace: Untrusted,
    /// What its owner calls it.
    pub label: Untrusted,
    /// Its pane.
    pub pane: Untrusted,
    /// Its own session.
    pub session: SessionId,
    /// Its working directory.
    pub cwd: Untrusted,
    /// When the state was written.
    pub updated_at: f64,
    /// Its session file.
    pub session_file: Option<Untrusted>,
    /// The request it works on.
    pub active_request: Option<Untrusted>,
    /// What it asks meanwhile.
    pub pending_ask: Option<Untrusted>,
    /// The request it finished last.
    pub completed_request: Option<Untrusted>,
    /// Why its last result is none.
    pub result_error: Option<Untrusted>,
    /// The request it acknowledged last.
    pub last_ack: Option<Untrusted>,
}

impl Mailbox {
    /// Judges the bytes of a `state.json` in the directory `directory` (its last part).
    pub fn parse(bytes: &[u8], directory: &str) -> Result<Self, Invalid> {
        let mailbox = Self::parse_any(bytes)?;
        if directory != directory_name(&mailbox.workspace, &mailbox.label) {
            return Err(Invalid::new(Rule::FileName, "the mailbox is of another agent than its directory"));
        }
        Ok(mailbox)
    }

    /// The same where the directory is not known.
    pub fn parse_any(bytes: &[u8]) -> Result<Self, Invalid> {
        const WHAT: &str = "the mailbox";
        check_size(WHAT, bytes.len(), MAX_BYTES)?;
        let document = Document::decode(bytes);
        let fields = Fields::of_document(WHAT, &document)?;
        fields.closed(
            4.0,
            &[
                "version",
                "runId",
                "ownerSessionId",
                "workspaceId",
                "agentLabel",
                "paneId",
                "piSessionId",
                "cwd",
                "updatedAt",
                "piSessionFile",
                "agentDefinition",
                "activeRequestId",
                "pendingAskId",
                "completedRequestId",
                "lastActivityAt",
                "resultError",
                "lastAck",
            ],
        )?;
        let text = |key: &str| {
            (fields.require(key)?.string())
                .filter(|text| !text.is_empty())
                .ok_or_else(|| fields.refuse(Rule::Mailbox, &format!("has no text as {key}")))
        };
        let optional = |key: &str| if fields.get(key).is_some() { text(key).map(Some) } else { Ok(None) };
        let time = |value: Json<'_>, key: &str| {
            (value.number())
                .filter(|number| number.is_finite() && *number >= 0.0)
                .ok_or_else(|| fields.refuse(Rule::Time, &format!("has no time ≥ 0 as {key}")))
        };
        let run = text("runId")?.to_str_lossy().to_ascii_lowercase();
        if !is_run_id(&run) {
            return Err(fields.refuse(Rule::Uuid, "has no UUID as runId"));
        }
        let mailbox = Self {
            run: text("runId")?,
            owner: fields.session("ownerSessionId")?,
            workspace: text("workspaceId")?,
            label: text("agentLabel")?,
            pane: text("paneId")?,
            session: fields.session("piSessionId")?,
            cwd: text("cwd")?,
            updated_at: time(fields.require("updatedAt")?, "updatedAt")?,
            session_file: optional("piSessionFile")?,
            active_request: optional("activeRequestId")?,
            pending_ask: optional("pendingAskId")?,
            completed_request: optional("completedRequestId")?,
            result_error: optional("resultError")?,
            last_ack: optional("lastAck")?,
        };
        if let Some(value) = fields.get("lastActivityAt") {
            time(value, "lastActivityAt")?;
        }
        let exclusive = |clash: bool, message: &str| {
            if clash { Err(fields.refuse(Rule::Mailbox, message)) } else { Ok(()) }
        };
        exclusive(
            mailbox.pending_ask.is_some() && mailbox.active_request.is_none(),
            "has a pendingAskId without an activeRequestId",
        )?;
        exclusive(
            mailbox.pending_ask.is_some() && mailbox.completed_request.is_some(),
            "has both a pendingAskId and a completedRequestId",
        )?;
        exclusive(
            mailbox.completed_request.is_some() && mailbox.completed_request == mailbox.active_request,
            "has one id as activeRequestId and completedRequestId",
        )?;
        exclusive(
            mailbox.result_error.is_some()
                && (mailbox.active_request.is_some() || mailbox.completed_request.is_some()),
            "has a resultError beside a request id",
        )?;
        Ok(mailbox)
    }

    /// The name Herdr shows for a live run of this agent.
    pub fn herdr_name(&self) -> String {
        let hash = sha256_hex(
            format!(
                "{}\0{}\0{}",
                self.workspace.to_str_lossy(),
                self.label.to_str_lossy(),
                self.run.to_str_lossy()
            )
            .as_bytes(),
        );
        format!("{}_{}", self.label.first_units(15).to_str_lossy(), &hash[..16])
    }
}

/// The directory an agent's mailbox stands in.
pub fn directory_name(workspace: &Untrusted, label: &Untrusted) -> String {
    let hash = sha256_hex(format!("{}\0{}", workspace.to_str_lossy(), label.to_str_lossy()).as_bytes());
    hash[..32].to_owned()
}

/// A UUID of any version, variant 8–b; `text` is lower-case.
fn is_run_id(text: &str) -> bool {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.len() != 36 {
        return false;
    }
    bytes[14] = if bytes[14].is_ascii_hexdigit() { b'4' } else { b'-' };
    std::str::from_utf8(&bytes).ok().and_then(Uuid::parse).is_some()
}
