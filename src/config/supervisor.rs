//! `[supervisor]`: all or nothing, so that nobody believes a gate to be on that is not.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The supervisor. Once it is there, all its sections have to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supervisor {
    /// Whether anything of it runs.
    pub enabled: bool,
    /// Lessons and orientation.
    pub learning: Learning,
    /// The verifier behind a claim to be done.
    pub gate: Gate,
    /// The plan that a claim is held against.
    pub plan: Plan,
    /// Folding of long texts.
    pub condense: Condense,
}

/// `[supervisor.learning]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Learning {
    /// Whether lessons are offered.
    pub enabled: bool,
    /// Where they are kept.
    pub backend: Backend,
}

impl Default for Learning {
    fn default() -> Self {
        Self { enabled: false, backend: Backend::File }
    }
}

/// Where lessons are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// In files below the state directory.
    File,
}

/// `[supervisor.gate]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Whether claims are verified.
    pub enabled: bool,
    /// The verifier's program and its arguments.
    pub command: Vec<String>,
    /// How often it may run for one claim.
    pub max_attempts: NonZeroU32,
    /// Whether the console lets git look at the directory that the lead works in.
    #[serde(default)]
    pub git: bool,
}

/// `[supervisor.plan]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Whether a claim is held against the plan that the operator names.
    pub enabled: bool,
}

/// `[supervisor.condense]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condense {
    /// Whether long texts are folded.
    pub enabled: bool,
    /// From how many estimated tokens on.
    pub tokens_threshold: NonZeroU32,
}

impl Supervisor {
    /// What can't be used of it, each beginning with its key.
    pub(super) fn mistakes(&self) -> Option<String> {
        let is_blank = self.gate.command.first().is_none_or(|program| program.trim().is_empty());
        (self.gate.enabled && is_blank)
            .then(|| "supervisor.gate.command: the gate is enabled, and there is no command".to_owned())
    }
}
