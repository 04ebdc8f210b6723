//! The role entry of a Pi session: its last `custom` entry of type `pi-herdsman-role`.

use super::json::Json;
use super::record::{Fields, Invalid, Rule};
use super::text::Untrusted;

/// The entry's `customType`.
pub const CUSTOM_TYPE: &str = "pi-herdsman-role";

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It leads agents.
    Lead,
    /// It supervises leads.
    Chief,
}

impl Role {
    /// Its name on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Lead => "lead",
            Role::Chief => "chief",
        }
    }

    /// The role of that name.
    pub fn parse(text: &Untrusted) -> Option<Self> {
        [Role::Lead, Role::Chief].into_iter().find(|role| *text == role.as_str())
    }
}

/// A role and the tools that Chief mode displaced, restored on leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleState {
    /// The role.
    pub role: Role,
    /// Unique, none empty.
    pub lead_tools: Vec<Untrusted>,
}

impl RoleState {
    /// Judges the `data` of a role entry.
    pub fn from_json(value: Json<'_>) -> Result<Self, Invalid> {
        let fields = Fields::of("the role", value)?;
        fields.no_other_than(&["role", "leadTools"])?;
        let role = (fields.require("role")?.string())
            .and_then(|text| Role::parse(&text))
            .ok_or_else(|| fields.refuse(Rule::Role, "is neither lead nor chief"))?;
        let malformed = || fields.refuse(Rule::Role, "has no list of unique tool names as leadTools");
        let mut lead_tools = Vec::new();
        for tool in fields.require("leadTools")?.array().ok_or_else(malformed)? {
            let name = tool.string().filter(|name| !name.is_empty()).ok_or_else(malformed)?;
            if lead_tools.contains(&name) {
                return Err(malformed());
            }
            lead_tools.push(name);
        }
        Ok(Self { role, lead_tools })
    }

    /// The role a session's entries give: that of the last role entry. A malformed one is an
    /// error, not a default.
    pub fn of_entries<'a>(
        entries: impl DoubleEndedIterator<Item = Json<'a>>,
    ) -> Result<Option<Self>, Invalid> {
        let mut newest_first = entries.rev();
        newest_first
            .find_map(|entry| {
                let members = entry.object()?;
                let is = |key: &str, text: &str| {
                    members
                        .iter()
                        .any(|(name, value)| name == key && value.string().is_some_and(|it| it == *text))
                };
                if !(is("type", "custom") && is("customType", CUSTOM_TYPE)) {
                    return None;
                }
                let data = members.iter().find(|(name, _)| name == "data").map(|(_, value)| *value);
                Some(match data {
                    Some(data) => Self::from_json(data),
                    None => Err(Invalid::new(Rule::Role, "the role entry has no data")),
                })
            })
            .transpose()
    }
}
