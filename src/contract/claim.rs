//! The claim of a process lock: a file `<pid>-<UUID>` holding `{"pid":…,"id":…}`.

use super::ids::{Pid, Uuid};
use super::json::{Document, Json, ObjectWriter};
use super::record::{Fields, Invalid, Rule};

/// Who holds a process lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The holding process.
    pub pid: Pid,
    /// Which of its claims.
    pub id: Uuid,
}

impl Claim {
    /// A fresh claim of this process.
    pub fn own() -> Self {
        Self { pid: Pid::own(), id: Uuid::random() }
    }

    /// Judges the owner file named `file_name` holding `bytes`.
    pub fn parse(bytes: &[u8], file_name: &str) -> Result<Self, Invalid> {
        let claim = Self::parse_any(bytes)?;
        if claim.file_name() != file_name {
            return Err(Invalid::new(Rule::FileName, "the claim is not the one its file name says"));
        }
        Ok(claim)
    }

    /// The same where the file's name is not known.
    pub fn parse_any(bytes: &[u8]) -> Result<Self, Invalid> {
        let document = Document::decode(bytes);
        let value = document.value().map_err(|error| Invalid::new(Rule::NotJson, error.to_string()))?;
        Self::from_json(value)
    }

    /// Judges a claim inside a record.
    pub(crate) fn from_json(value: Json<'_>) -> Result<Self, Invalid> {
        let fields = Fields::of("the claim", value)?;
        fields.no_other_than(&["pid", "id"])?;
        let pid = (fields.require("pid")?.number())
            .and_then(Pid::from_number)
            .ok_or_else(|| fields.refuse(Rule::Claim, "has no positive integer as pid"))?;
        Ok(Self { pid, id: fields.uuid("id", Rule::Claim)? })
    }

    /// The owner file's name.
    pub fn file_name(&self) -> String {
        format!("{}-{}", self.pid, self.id)
    }

    /// The owner file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        ObjectWriter::new()
            .number("pid", self.pid.as_number())
            .string("id", &self.id.to_string().into())
            .finish()
    }
}
