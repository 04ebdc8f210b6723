//! What headman itself keeps, after `docs/state.md`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::contract::json::ObjectWriter;
use crate::contract::role::Role;
use crate::contract::text::sha256_hex;
use crate::contract::{SessionId, Untrusted, Uuid};
use crate::disk::crash_steps_of;
use crate::disk::durable::{self, DiskError, Unreadable};

/// The layout version this release reads and writes.
pub const VERSION: u32 = 1;

const MAX_IDENTITY_BYTES: usize = 16 * 1024;

/// Why the state directory can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file of ours can't be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        reason: Unreadable,
    },
    /// A file of ours holds something else.
    #[error("{path} is damaged: {reason}. Move it away to start with a new one")]
    Damaged {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A later release wrote it.
    #[error("{path} is of version {found}, this headman writes version {VERSION}: use the newer one")]
    Newer {
        /// The directory.
        path: String,
        /// Its version.
        found: String,
    },
}

/// The state directory, with the part for one Herdr socket.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
    socket: PathBuf,
}

impl StateDir {
    /// Opens the state directory at `root` for the Herdr socket `socket`, making what is missing.
    pub fn open(root: &Path, socket: &OsStr) -> Result<Self, StateError> {
        let state = Self::at(root, socket);
        durable::ensure_directories(root, &state.drafts())?;
        durable::ensure_directory(root)?;
        state.check_version()?;
        Ok(state)
    }

    /// The same without making anything: what is missing stays missing, and the version is not
    /// checked. For those who only look.
    pub fn at(root: &Path, socket: &OsStr) -> Self {
        Self { root: root.to_owned(), socket: root.join(sha256_hex(socket.as_encoded_bytes())) }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The part for this socket.
    pub fn of_socket(&self) -> &Path {
        &self.socket
    }

    /// The version written there, if any is.
    pub fn version(&self) -> Result<Option<u32>, StateError> {
        let path = self.root.join("VERSION");
        let shown = || durable::shown(&path).to_string();
        match durable::read_private(&path, 64) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim();
                match text.parse() {
                    Ok(found) => Ok(Some(found)),
                    // Too large for a version of ours, and so a later one.
                    Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Err(StateError::Newer { path: shown(), found: text.to_owned() })
                    }
                    Err(_) => Err(StateError::Damaged {
                        path: shown(),
                        reason: "it holds no version number".to_owned(),
                    }),
                }
            }
            Err(Unreadable::Missing) => Ok(None),
            Err(reason) => Err(StateError::Unreadable { path: shown(), reason }),
        }
    }

    fn check_version(&self) -> Result<(), StateError> {
        match self.version()? {
            Some(found) if found > VERSION => Err(StateError::Newer {
                path: durable::shown(&self.root).to_string(),
                found: found.to_string(),
            }),
            Some(_) => Ok(()),
            None => {
                let path = self.root.join("VERSION");
                Ok(durable::publish(&path, format!("{VERSION}\n").as_bytes())?)
            }
        }
    }

    /// The advisory lock beside the Chief lease.
    pub fn sidecar(&self) -> PathBuf {
        self.socket.join("chief.flock")
    }

    /// The drafts of this socket.
    pub fn drafts(&self) -> PathBuf {
        self.socket.join("drafts")
    }

    /// The journal of this socket.
    pub fn journal(&self) -> PathBuf {
        self.socket.join("journal")
    }

    /// The session files of leads that keep none elsewhere: of all sockets, as sessions are.
    pub fn leads(&self) -> PathBuf {
        self.root.join("leads")
    }

    /// The text copied last.
    pub fn copied(&self) -> PathBuf {
        self.root.join("copied.txt")
    }

    /// Who we are on this socket.
    pub(super) fn identity_file(&self) -> PathBuf {
        self.socket.join("identity.json")
    }

    /// Reads who we are on this socket; made once, with the role of a lead, if there is none.
    pub fn identity(&self) -> Result<Identity, StateError> {
        match self.known_identity()? {
            Some(identity) => Ok(identity),
            None => {
                let identity = Identity::new(Role::Lead);
                self.write_identity(&identity)?;
                Ok(identity)
            }
        }
    }

    /// Reads who we are on this socket, if we ever were anybody.
    pub fn known_identity(&self) -> Result<Option<Identity>, StateError> {
        let path = self.identity_file();
        let shown = || durable::shown(&path).to_string();
        let damaged = |reason: String| StateError::Damaged { path: shown(), reason };
        let bytes = match durable::read_private(&path, MAX_IDENTITY_BYTES) {
            Ok(bytes) => bytes,
            Err(Unreadable::Missing) => return Ok(None),
            Err(reason) => return Err(StateError::Unreadable { path: shown(), reason }),
        };
        // First the version alone: what a later one looks like is not ours to judge.
        if let Ok(Versioned { v }) = serde_json::from_slice(&bytes)
            && v > f64::from(VERSION)
        {
            return Err(StateError::Newer { path: shown(), found: v.to_string() });
        }
        let file: IdentityFile =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let session =
            Uuid::parse(&file.session).ok_or_else(|| damaged("its session is no UUID".to_owned()))?;
        let role = Role::parse(&file.role.as_str().into())
            .ok_or_else(|| damaged("its role is neither lead nor chief".to_owned()))?;
        Ok(Some(Identity { session, role, lead_tools: file.lead_tools }))
    }

    /// Makes `identity` durable.
    pub fn write_identity(&self, identity: &Identity) -> Result<(), StateError> {
        crash_steps_of!("role");
        let mut tools = Vec::new();
        for tool in &identity.lead_tools {
            tools.push(if tools.is_empty() { b'[' } else { b',' });
            Untrusted::from(tool.as_str()).write_json(&mut tools);
        }
        tools.extend_from_slice(if tools.is_empty() { b"[]" } else { b"]" });
        let mut bytes = ObjectWriter::new()
            .number("v", f64::from(VERSION))
            .string("session", &identity.session.to_string().into())
            .string("role", &identity.role.as_str().into())
            .raw("leadTools", &tools)
            .finish();
        bytes.push(b'\n');
        Ok(durable::publish(&self.identity_file(), &bytes)?)
    }
}

#[derive(Deserialize)]
struct Versioned {
    v: f64,
}

#[derive(Deserialize)]
struct IdentityFile {
    session: String,
    role: String,
    #[serde(rename = "leadTools")]
    lead_tools: Vec<String>,
}

/// Who we are on one socket. The session stays for ever, so that what was addressed to it is ours
/// after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    session: Uuid,
    /// `chief`: the next start resumes as Chief.
    pub role: Role,
    /// The tool loadout that Chief mode displaced; a person's console has none.
    pub lead_tools: Vec<String>,
}

impl Identity {
    /// A new one.
    pub fn new(role: Role) -> Self {
        Self { session: Uuid::random(), role, lead_tools: Vec::new() }
    }

    /// Our session.
    pub fn session(&self) -> SessionId {
        self.session.into()
    }
}
