//! What every record type shares: how its members are taken and how a refusal is named.

use std::fmt;

use super::ids::{NativeId, SessionId, Timestamp, Uuid};
use super::json::{Document, Json};
use super::text::Untrusted;

/// Which rule of the contract a record breaks. The names are stable: `headman check` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The bytes are no JSON text.
    NotJson,
    /// The JSON is no object.
    NotObject,
    /// Another record version.
    Version,
    /// A key the record type does not have.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// No UUID where one must stand.
    Uuid,
    /// No session id where one must stand.
    Session,
    /// No native id where one must stand.
    NativeId,
    /// No time where one must stand.
    Time,
    /// No message kind.
    Kind,
    /// `askId` present or absent where the kind says otherwise, or malformed.
    AskId,
    /// A question that is blank or too long.
    Question,
    /// A text that is empty or no string.
    Text,
    /// A claim that is none.
    Claim,
    /// A role or tool list that is none.
    Role,
    /// A mailbox member that is none, or two that exclude each other.
    Mailbox,
    /// The file is too large.
    TooLarge,
    /// Written again the record would be too large.
    ReserializedTooLarge,
    /// The file name does not fit the record.
    FileName,
}

impl Rule {
    /// The rule's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::NotJson => "not_json",
            Rule::NotObject => "not_object",
            Rule::Version => "version",
            Rule::UnknownKey => "unknown_key",
            Rule::MissingKey => "missing_key",
            Rule::Uuid => "uuid",
            Rule::Session => "session",
            Rule::NativeId => "native_id",
            Rule::Time => "time",
            Rule::Kind => "kind",
            Rule::AskId => "ask_id",
            Rule::Question => "question",
            Rule::Text => "text",
            Rule::Claim => "claim",
            Rule::Role => "role",
            Rule::Mailbox => "mailbox",
            Rule::TooLarge => "too_large",
            Rule::ReserializedTooLarge => "reserialized_too_large",
            Rule::FileName => "file_name",
        }
    }
}

/// Why a record is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The rule broken.
    pub rule: Rule,
    /// What exactly, safe to print.
    pub message: String,
}

impl Invalid {
    /// A refusal under `rule`.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }

    /// Whether the record may be valid for a later release: another version, or keys we don't
    /// know. Such a record is never moved, changed or removed.
    pub fn is_of_another_release(&self) -> bool {
        matches!(self.rule, Rule::Version | Rule::UnknownKey)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.rule.as_str())
    }
}

impl std::error::Error for Invalid {}

/// The members of one object, taken one by one under the rules of its record type.
pub(crate) struct Fields<'a> {
    what: &'static str,
    members: Vec<(Untrusted, Json<'a>)>,
}

impl<'a> Fields<'a> {
    /// The members of the object in `document`.
    pub(crate) fn of_document(what: &'static str, document: &'a Document<'_>) -> Result<Self, Invalid> {
        let value = document.value().map_err(|error| Invalid::new(Rule::NotJson, error.to_string()))?;
        Self::of(what, value)
    }

    /// The members of the object `value`.
    pub(crate) fn of(what: &'static str, value: Json<'a>) -> Result<Self, Invalid> {
        match value.object() {
            Some(members) => Ok(Self { what, members }),
            None => Err(Invalid::new(Rule::NotObject, format!("{what} is not a JSON object"))),
        }
    }

    /// Checks `version`, then that no key stands outside `known`.
    pub(crate) fn closed(&self, version: f64, known: &[&str]) -> Result<(), Invalid> {
        match self.get("version").and_then(|value| value.number()) {
            Some(found) if found == version => {}
            Some(_) => {
                return Err(self.refuse(Rule::Version, "has another version"));
            }
            None => return Err(self.refuse(Rule::Version, "has no version number")),
        }
        self.no_other_than(known)
    }

    /// Checks that no key stands outside `known`.
    pub(crate) fn no_other_than(&self, known: &[&str]) -> Result<(), Invalid> {
        match self.members.iter().find(|(key, _)| !known.iter().any(|name| key == name)) {
            Some((key, _)) => {
                Err(self.refuse(Rule::UnknownKey, &format!("has the unknown key \"{}\"", key.escaped())))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    pub(crate) fn require(&self, key: &str) -> Result<Json<'a>, Invalid> {
        self.get(key).ok_or_else(|| self.refuse(Rule::MissingKey, &format!("has no {key}")))
    }

    pub(crate) fn uuid(&self, key: &str, rule: Rule) -> Result<Uuid, Invalid> {
        // An array of one UUID passes the other side's pattern test for some keys; a record is
        // never written so, and is refused here (a named difference).
        (self.require(key)?.string())
            .and_then(|text| Uuid::from_untrusted(&text))
            .ok_or_else(|| self.refuse(rule, &format!("has no UUID (version 1–5) as {key}")))
    }

    pub(crate) fn session(&self, key: &str) -> Result<SessionId, Invalid> {
        (self.require(key)?.string()).and_then(SessionId::new).ok_or_else(|| {
            self.refuse(Rule::Session, &format!("has no session of 1–512 UTF-16 units as {key}"))
        })
    }

    pub(crate) fn native_id(&self, key: &str) -> Result<NativeId, Invalid> {
        (self.require(key)?.string())
            .and_then(NativeId::new)
            .ok_or_else(|| self.refuse(Rule::NativeId, &format!("has no id of 1–512 UTF-16 units as {key}")))
    }

    pub(crate) fn optional_native_id(&self, key: &str) -> Result<Option<NativeId>, Invalid> {
        if self.get(key).is_none() { Ok(None) } else { self.native_id(key).map(Some) }
    }

    pub(crate) fn time(&self, key: &str) -> Result<Timestamp, Invalid> {
        (self.require(key)?.number())
            .and_then(Timestamp::from_number)
            .ok_or_else(|| self.refuse(Rule::Time, &format!("has no integer time ≥ 0 as {key}")))
    }

    pub(crate) fn text(&self, key: &str) -> Result<Untrusted, Invalid> {
        (self.require(key)?.string())
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.refuse(Rule::Text, &format!("has no text as {key}")))
    }

    pub(crate) fn refuse(&self, rule: Rule, message: &str) -> Invalid {
        Invalid::new(rule, format!("{} {message}", self.what))
    }
}

/// Refuses a file over `limit` bytes.
pub(crate) fn check_size(what: &str, size: usize, limit: usize) -> Result<(), Invalid> {
    if size > limit {
        return Err(Invalid::new(Rule::TooLarge, format!("{what} has {size} bytes, {limit} are allowed")));
    }
    Ok(())
}
