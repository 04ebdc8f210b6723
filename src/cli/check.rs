//! `headman check`: is this record valid?

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::failure::{Exit, Failure};
use super::input;
use super::out::Out;
use crate::contract::json::{Document, Json, ObjectWriter, reserialize};
use crate::contract::record::{Invalid, Rule};
use crate::contract::role::{CUSTOM_TYPE, RoleState};
use crate::contract::{
    Claim, Descriptor, LeadRecord, Message, PeerRecord, SessionId, Untrusted, lead, mailbox, message, peer,
};
use crate::disk::layout::InboxDir;
use crate::disk::lock::MAX_CLAIM_BYTES;

/// Largest role entry judged, in bytes.
const MAX_ROLE_BYTES: usize = 64 * 1024;

/// As what a record is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A message of an inbox.
    Message,
    /// A lead record.
    Lead,
    /// The Chief descriptor.
    Descriptor,
    /// A peer's presence.
    Peer,
    /// The owner file of a process lock.
    Claim,
    /// A managed agent's mailbox state.
    Mailbox,
    /// The data of a role entry, or the entry.
    Role,
}

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What kind of record it is to be
    #[arg(long = "as", value_name = "KIND", value_enum)]
    kind: Kind,
    /// The session it must fit
    #[arg(long, value_name = "SESSION", allow_hyphen_values = true)]
    session: Option<std::ffi::OsString>,
    /// Its file name (for a claim the owner file's)
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    name: Option<std::ffi::OsString>,
    /// The record; `-` is standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

/// What a record is judged with, besides its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fit {
    /// The session whose hash names its file.
    pub session: Option<SessionId>,
    /// The name of its file.
    pub name: Option<String>,
}

/// Judges `bytes`; the bytes that `JSON.stringify` of the record and a newline take.
///
/// # Errors
/// [`Invalid`]: the rule it breaks.
pub fn check(kind: Kind, bytes: &[u8], fit: &Fit) -> Result<usize, Invalid> {
    let limit = max_bytes(kind);
    if bytes.len() > limit {
        return Err(Invalid::new(Rule::TooLarge, format!("the record has more than {limit} bytes")));
    }
    let name = fit.name.as_deref();
    match kind {
        // A message may stand in any inbox under any id: who it is for is judged on delivery.
        Kind::Message => {
            if let Some(name) = name
                && InboxDir::message_id(name.as_ref()).is_none()
            {
                return Err(misnamed("a message file is named `<UUID>.json`"));
            }
            Message::parse(bytes).map(drop)?;
        }
        Kind::Lead => {
            LeadRecord::parse_any(bytes)?;
            if let Some(session) = &fit.session {
                LeadRecord::parse(bytes, session)?;
            }
            if let Some(name) = name {
                LeadRecord::parse_named(bytes, name)?;
            }
        }
        Kind::Descriptor => {
            let descriptor = Descriptor::parse(bytes)?;
            if name.is_some_and(|name| name != "chief.json") {
                return Err(misnamed("the Chief descriptor is named `chief.json`"));
            }
            if fit.session.as_ref().is_some_and(|session| *session != descriptor.session) {
                return Err(misnamed("the Chief descriptor is of another session"));
            }
        }
        Kind::Peer => {
            PeerRecord::parse_any(bytes)?;
            if let Some(session) = &fit.session {
                PeerRecord::parse(bytes, session)?;
            }
            if let Some(name) = name {
                PeerRecord::parse_named(bytes, name)?;
            }
        }
        Kind::Claim => match name {
            Some(name) => Claim::parse(bytes, name).map(drop)?,
            None => Claim::parse_any(bytes).map(drop)?,
        },
        Kind::Mailbox => {
            let state = mailbox::Mailbox::parse_any(bytes)?;
            if fit.session.as_ref().is_some_and(|session| *session != state.session) {
                return Err(misnamed("the mailbox is of another session"));
            }
            // The file's own name says nothing; its directory's does.
            match name {
                Some("state.json") | None => {}
                Some(directory) => {
                    let directory = directory.strip_suffix("/state.json").unwrap_or(directory);
                    mailbox::Mailbox::parse(bytes, directory.rsplit('/').next().unwrap_or(directory))?;
                }
            }
        }
        Kind::Role => {
            let document = Document::decode(bytes);
            RoleState::from_json(role_data(value(&document)?))?;
        }
    }
    Ok(reserialize(value(&Document::decode(bytes))?).len() + 1)
}

fn max_bytes(kind: Kind) -> usize {
    match kind {
        Kind::Message => message::MAX_BYTES,
        Kind::Lead => lead::MAX_BYTES,
        Kind::Descriptor => crate::contract::descriptor::MAX_BYTES,
        Kind::Peer => peer::MAX_BYTES,
        Kind::Claim => MAX_CLAIM_BYTES,
        Kind::Mailbox => mailbox::MAX_BYTES,
        Kind::Role => MAX_ROLE_BYTES,
    }
}

fn misnamed(message: &str) -> Invalid {
    Invalid::new(Rule::FileName, message)
}

fn value<'a>(document: &'a Document<'_>) -> Result<Json<'a>, Invalid> {
    document.value().map_err(|error| Invalid::new(Rule::NotJson, error.to_string()))
}

/// The data of a whole role entry, else the value itself.
fn role_data(value: Json<'_>) -> Json<'_> {
    let members = value.object().unwrap_or_default();
    let member = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let is_entry = member("customType").and_then(|it| it.string()).is_some_and(|it| it == CUSTOM_TYPE);
    member("data").filter(|_| is_entry).unwrap_or(value)
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the record can't be read; that it is not valid is an answer.
pub fn run(arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let text = |value: &std::ffi::OsString| Untrusted::from_bytes_lossy(value.as_encoded_bytes());
    let session = match &arguments.session {
        None => None,
        Some(session) => Some(SessionId::new(text(session)).ok_or_else(|| {
            Failure::usage(
                "can't check: --session is no session id",
                "Give 1 to 512 characters, exactly as in the record",
            )
        })?),
    };
    let name = arguments.name.as_ref().map(|name| text(name).to_str_lossy().into_owned());
    let bytes = input::read(&arguments.file, max_bytes(arguments.kind))?;
    match check(arguments.kind, &bytes, &Fit { session, name }) {
        Ok(size) => {
            if out.is_json() {
                out.json(&format!("{{\"valid\":true,\"reserialized_bytes\":{size}}}"))?;
            } else {
                out.text(&format!("valid: {size} bytes when written again"))?;
            }
            Ok(Exit::Done)
        }
        Err(invalid) => {
            if out.is_json() {
                let object = ObjectWriter::new()
                    .raw("valid", b"false")
                    .string("rule", &invalid.rule.as_str().into())
                    .string("message", &invalid.message.as_str().into())
                    .finish();
                out.json(&String::from_utf8_lossy(&object))?;
            } else {
                out.text(&format!("not valid: {invalid}"))?;
            }
            Ok(Exit::No)
        }
    }
}
