//! A managed agent's mailbox, `mailboxes-v4/<hash>/state.json`. Read only: headman never writes
//! one.

use super::ids::{SessionId, Uuid};
use super::json::{Document, is_integer};
use super::record::{Fields, Invalid, Rule, check_size};
use super::text::{Untrusted, sha256_hex};

/// Largest mailbox state, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// Largest request beside it, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// What the owning lead keeps of one agent. Its times are judged and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Its session file.
    pub session_file: Option<Untrusted>,
    /// The request it works on.
    pub active_request: Option<Untrusted>,
    /// What it asks meanwhile.
    pub pending_ask: Option<Untrusted>,
    /// The request it finished last.
    pub completed_request: Option<Untrusted>,
    /// Why its last result could not be kept.
    pub result_error: Option<Untrusted>,
    /// The request it took or refused last.
    pub last_ack: Option<Untrusted>,
}

/// A mailbox with what stands beside its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The state.
    pub mailbox: Mailbox,
    /// [`Mailbox::herdr_name`].
    pub alias: Untrusted,
    /// Where its working directory really is, links followed.
    pub real_cwd: Untrusted,
    /// Whether a request waits that it neither took nor refused, or one can't be read.
    pub unacknowledged: bool,
    /// Whether the result of [`Mailbox::completed_request`] still lies there, readable or not.
    pub undelivered: bool,
}

impl Post {
    /// Whether its owner has something to wait for.
    pub fn has_pending_work(&self) -> bool {
        self.mailbox.result_error.is_some() || self.mailbox.active_request.is_some() || self.undelivered
    }
}

const WHAT: &str = "the mailbox";

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
        let session = |key: &str| text(&fields, key).and_then(|_| fields.session(key));
        time(&fields, "updatedAt")?;
        if fields.get("lastActivityAt").is_some() && !is_integer(time(&fields, "lastActivityAt")?) {
            return Err(fields.refuse(Rule::Time, "has no integer time as lastActivityAt"));
        }
        let mailbox = Self {
            run: run_id(&fields, "runId")?,
            owner: session("ownerSessionId")?,
            workspace: text(&fields, "workspaceId")?,
            label: text(&fields, "agentLabel")?,
            pane: text(&fields, "paneId")?,
            session: session("piSessionId")?,
            cwd: text(&fields, "cwd")?,
            session_file: optional(&fields, "piSessionFile", text)?,
            active_request: optional(&fields, "activeRequestId", run_id)?,
            pending_ask: optional(&fields, "pendingAskId", run_id)?,
            completed_request: optional(&fields, "completedRequestId", run_id)?,
            result_error: optional(&fields, "resultError", result_error)?,
            last_ack: optional(&fields, "lastAck", acknowledgement)?,
        };
        optional(&fields, "agentDefinition", text)?;
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

    /// Judges the bytes of a `request-<id>.json` beside this state.
    pub fn check_request(&self, bytes: &[u8], id: &Untrusted) -> Result<(), Invalid> {
        const WHAT: &str = "the request";
        check_size(WHAT, bytes.len(), MAX_REQUEST_BYTES)?;
        let document = Document::decode(bytes);
        let fields = Fields::of_document(WHAT, &document)?;
        fields.closed(
            4.0,
            &[
                "version",
                "runId",
                "requestId",
                "ownerSessionId",
                "workspaceId",
                "agentLabel",
                "paneId",
                "kind",
                "askId",
                "text",
                "createdAt",
            ],
        )?;
        if run_id(&fields, "requestId")? != *id {
            return Err(fields.refuse(Rule::FileName, "has another id than its file"));
        }
        self.check_identity(&fields)?;
        text(&fields, "text")?;
        time(&fields, "createdAt")?;
        let kind = text(&fields, "kind")?;
        let asks = match fields.get("askId") {
            Some(_) => Some(run_id(&fields, "askId")?),
            None => None,
        };
        match (["task", "steer", "interrupt", "reply"].iter().any(|known| kind == *known), asks) {
            (true, asks) if (kind == "reply") == asks.is_some() => Ok(()),
            _ => {
                Err(fields.refuse(Rule::Kind, "has a kind of its own, or an askId that does not go with it"))
            }
        }
    }

    /// Whether what stands beside the state names the same agent.
    fn check_identity(&self, fields: &Fields<'_>) -> Result<(), Invalid> {
        for (key, own) in [
            ("runId", &self.run),
            ("ownerSessionId", self.owner.as_untrusted()),
            ("workspaceId", &self.workspace),
            ("agentLabel", &self.label),
            ("paneId", &self.pane),
        ] {
            if text(fields, key)? != *own {
                return Err(fields.refuse(Rule::Mailbox, &format!("has another {key} than the mailbox")));
            }
        }
        Ok(())
    }

    /// The name Herdr shows for a live run of this agent.
    pub fn herdr_name(&self) -> String {
        herdr_name(&self.workspace, &self.label, &self.run)
    }
}

/// The name Herdr shows for the run `run` of an agent.
pub fn herdr_name(workspace: &Untrusted, label: &Untrusted, run: &Untrusted) -> String {
    let named = format!("{}\0{}\0{}", workspace.to_str_lossy(), label.to_str_lossy(), run.to_str_lossy());
    format!("{}_{}", label.first_units(15).to_str_lossy(), &sha256_hex(named.as_bytes())[..16])
}

/// The directory an agent's mailbox stands in.
pub fn directory_name(workspace: &Untrusted, label: &Untrusted) -> String {
    let hash = sha256_hex(format!("{}\0{}", workspace.to_str_lossy(), label.to_str_lossy()).as_bytes());
    hash[..32].to_owned()
}

/// Whom a state that is not valid names all the same: its owner and its own session.
pub fn named_in(bytes: &[u8]) -> (Option<Untrusted>, Option<Untrusted>) {
    let document = Document::decode(bytes);
    let members = document.value().ok().and_then(|value| value.object()).unwrap_or_default();
    let named = |key: &str| {
        let value = members.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.string());
        value.filter(|text| !text.is_blank())
    };
    (named("ownerSessionId"), named("piSessionId"))
}

/// Whether a directory is named as mailboxes are.
pub fn is_directory_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn text(fields: &Fields<'_>, key: &str) -> Result<Untrusted, Invalid> {
    (fields.require(key)?.string())
        .filter(|text| !text.is_blank())
        .ok_or_else(|| fields.refuse(Rule::Mailbox, &format!("has no text as {key}")))
}

fn time(fields: &Fields<'_>, key: &str) -> Result<f64, Invalid> {
    (fields.require(key)?.number())
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| fields.refuse(Rule::Time, &format!("has no time ≥ 0 as {key}")))
}

/// A UUID of any version and case, variant 8–b.
fn run_id(fields: &Fields<'_>, key: &str) -> Result<Untrusted, Invalid> {
    let id = text(fields, key)?;
    let mut bytes = id.to_str_lossy().to_ascii_lowercase().into_bytes();
    if bytes.len() == 36 {
        bytes[14] = if bytes[14].is_ascii_hexdigit() { b'4' } else { b'-' };
    }
    if std::str::from_utf8(&bytes).ok().and_then(Uuid::parse).is_none() {
        return Err(fields.refuse(Rule::Uuid, &format!("has no UUID as {key}")));
    }
    Ok(id)
}

fn optional<T>(
    fields: &Fields<'_>,
    key: &str,
    read: impl Fn(&Fields<'_>, &str) -> Result<T, Invalid>,
) -> Result<Option<T>, Invalid> {
    if fields.get(key).is_some() { read(fields, key).map(Some) } else { Ok(None) }
}

fn flag(fields: &Fields<'_>, key: &str) -> Result<bool, Invalid> {
    (fields.require(key)?.bool())
        .ok_or_else(|| fields.refuse(Rule::Mailbox, &format!("does not say true or false as {key}")))
}

/// The id of the request that was answered for.
fn acknowledgement(outer: &Fields<'_>, key: &str) -> Result<Untrusted, Invalid> {
    let fields = Fields::of("the mailbox's lastAck", outer.require(key)?)?;
    fields.no_other_than(&["requestId", "accepted", "code", "message", "acknowledgedAt"])?;
    let id = run_id(&fields, "requestId")?;
    time(&fields, "acknowledgedAt")?;
    optional(&fields, "message", text)?;
    let code = optional(&fields, "code", text)?;
    let is_known = |code: &Untrusted| {
        ["busy", "idle", "invalid", "identity", "delivery"].iter().any(|known| code == *known)
    };
    match (flag(&fields, "accepted")?, code) {
        (true, None) => Ok(id),
        (false, Some(code)) if is_known(&code) => Ok(id),
        _ => Err(fields.refuse(Rule::Mailbox, "has a code that does not go with it")),
    }
}

/// Its message.
fn result_error(outer: &Fields<'_>, key: &str) -> Result<Untrusted, Invalid> {
    const SAME: [&str; 5] = ["runId", "ownerSessionId", "workspaceId", "agentLabel", "paneId"];
    let fields = Fields::of("the mailbox's resultError", outer.require(key)?)?;
    let mut known = vec!["code", "message", "requestId", "originalStatus", "attempts", "failedAt"];
    known.extend(["retrySafe", "cleanupSafe", "nextAction"]);
    known.extend(SAME);
    fields.no_other_than(&known)?;
    run_id(&fields, "requestId")?;
    text(&fields, "nextAction")?;
    time(&fields, "failedAt")?;
    for key in SAME {
        if text(&fields, key)? != text(outer, key)? {
            return Err(fields.refuse(Rule::Mailbox, &format!("has another {key} than the mailbox")));
        }
    }
    let status = text(&fields, "originalStatus")?;
    let attempts = fields.require("attempts")?.number().unwrap_or(0.0);
    let fits = text(&fields, "code")? == "write_failure"
        && (status == "completed" || status == "failed")
        && is_integer(attempts)
        && attempts >= 1.0
        && !flag(&fields, "retrySafe")?
        && flag(&fields, "cleanupSafe")?;
    if !fits {
        return Err(fields.refuse(Rule::Mailbox, "is none that an agent writes"));
    }
    text(&fields, "message")
}
