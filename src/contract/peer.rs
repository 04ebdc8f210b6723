//! Peer presence, `peers-v1/peers/<sha256(session)>.json`.

use super::claim::Claim;
use super::ids::{NativeId, SessionId, Timestamp};
use super::json::{Document, ObjectWriter};
use super::record::{Fields, Invalid, Rule, check_size};

/// Largest presence record, in bytes.
pub const MAX_BYTES: usize = 4_096;

/// That a lead can be reached by its peers, and where it works. Valid only while its claim is the
/// live claim of its own process lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRecord {
    /// The lead's session: unlike elsewhere, a native id.
    pub session: SessionId,
    /// Its pane.
    pub pane: NativeId,
    /// Its tab.
    pub tab: NativeId,
    /// Its workspace.
    pub workspace: NativeId,
    /// The claim of its lock.
    pub claim: Claim,
    /// When it was written.
    pub updated_at: Timestamp,
    /// What it calls itself.
    pub name: Option<NativeId>,
    /// Its working directory.
    pub cwd: Option<NativeId>,
    /// Its repository.
    pub repo: Option<NativeId>,
    /// Its branch.
    pub branch: Option<NativeId>,
    /// Its workspace's label.
    pub workspace_label: Option<NativeId>,
}

impl PeerRecord {
    /// Judges the bytes of a presence record that stands under the hash of `session`.
    pub fn parse(bytes: &[u8], session: &SessionId) -> Result<Self, Invalid> {
        let record = Self::parse_any(bytes)?;
        if record.session != *session {
            return Err(Invalid::new(
                Rule::FileName,
                "the presence is of another session than its file name",
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
                "the presence is of another session than its file name",
            ));
        }
        Ok(record)
    }

    /// The same where neither session nor file name is known.
    pub fn parse_any(bytes: &[u8]) -> Result<Self, Invalid> {
        const WHAT: &str = "the presence";
        check_size(WHAT, bytes.len(), MAX_BYTES)?;
        let document = Document::decode(bytes);
        check_size(WHAT, document.decoded_len(), MAX_BYTES)?;
        let fields = Fields::of_document(WHAT, &document)?;
        fields.closed(
            1.0,
            &[
                "version",
                "piSessionId",
                "paneId",
                "tabId",
                "workspaceId",
                "claim",
                "updatedAt",
                "name",
                "cwd",
                "repo",
                "branch",
                "workspaceLabel",
            ],
        )?;
        fields.native_id("piSessionId")?;
        Ok(Self {
            session: fields.session("piSessionId")?,
            pane: fields.native_id("paneId")?,
            tab: fields.native_id("tabId")?,
            workspace: fields.native_id("workspaceId")?,
            claim: Claim::from_json(fields.require("claim")?)?,
            updated_at: fields.time("updatedAt")?,
            name: fields.optional_native_id("name")?,
            cwd: fields.optional_native_id("cwd")?,
            repo: fields.optional_native_id("repo")?,
            branch: fields.optional_native_id("branch")?,
            workspace_label: fields.optional_native_id("workspaceLabel")?,
        })
    }

    /// The file's content; refused when it would be too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Invalid> {
        fn text(id: &Option<NativeId>) -> Option<&super::text::Untrusted> {
            id.as_ref().map(NativeId::as_untrusted)
        }
        let mut bytes = ObjectWriter::new()
            .number("version", 1.0)
            .string("piSessionId", self.session.as_untrusted())
            .string("paneId", self.pane.as_untrusted())
            .string("tabId", self.tab.as_untrusted())
            .string("workspaceId", self.workspace.as_untrusted())
            .optional("name", text(&self.name))
            .optional("cwd", text(&self.cwd))
            .optional("repo", text(&self.repo))
            .optional("branch", text(&self.branch))
            .optional("workspaceLabel", text(&self.workspace_label))
            .raw("claim", &self.claim.to_bytes())
            .number("updatedAt", self.updated_at.as_number())
            .finish();
        bytes.push(b'\n');
        check_size("the presence", bytes.len(), MAX_BYTES)?;
        Ok(bytes)
    }
}
