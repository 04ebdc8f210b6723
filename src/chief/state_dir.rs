//! What headman itself keeps, after `docs/state.md`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
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
    /// Nothing says which release wrote it.
    #[error(
        "{path}: {why}, so it can't be told what wrote it: if this headman did, write {VERSION} into its \
         VERSION; else give another --state-dir"
    )]
    Unversioned {
        /// The directory.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// The state directory, with the part for one Herdr socket.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
    socket: PathBuf,
    /// Why nothing may be written there.
    barred: Option<StateError>,
}

impl StateDir {
    /// Opens the state directory at `root` for the Herdr socket `socket`, making what is missing.
    /// Where that is refused nothing was written.
    pub fn open(root: &Path, socket: &OsStr) -> Result<Self, StateError> {
        let state = Self::at(root, socket);
        let version = state.version_to_write()?;
        if let Err(newer @ StateError::Newer { .. }) = state.known_identity() {
            return Err(newer);
        }
        state.make_root(version)?;
        durable::ensure_directories(root, &state.drafts())?;
        Ok(state)
    }

    /// Makes the state directory at `root` itself, for what is of no socket.
    pub fn make(root: &Path) -> Result<(), StateError> {
        let state = Self::at(root, OsStr::new(""));
        let version = state.version_to_write()?;
        state.make_root(version)
    }

    fn version_to_write(&self) -> Result<Option<u32>, StateError> {
        if !matches!(durable::kind(&self.root)?, None | Some(FileType::Directory)) {
            // Says why that is no directory of ours.
            durable::ensure_directory(&self.root)?;
        }
        self.version()
    }

    fn make_root(&self, version: Option<u32>) -> Result<(), StateError> {
        durable::ensure_directories(&self.root, &self.root)?;
        durable::ensure_directory(&self.root)?;
        if version.is_none() {
            // Before anything else: a directory that holds something has a version.
            durable::publish(&self.root.join("VERSION"), format!("{VERSION}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Opens it for a console, which is somebody. One that a later release wrote is only looked at:
    /// [`StateDir::barred`] says why.
    pub fn open_for_console(root: &Path, socket: &OsStr) -> Result<(Self, Identity), StateError> {
        let opened = Self::open(root, socket).and_then(|state| Ok((state.identity()?, state)));
        match opened {
            Ok((identity, state)) => Ok((state, identity)),
            Err(newer @ StateError::Newer { .. }) => {
                let state = Self { barred: Some(newer), ..Self::at(root, socket) };
                // Who a later release says we are may be more than we understand: then nobody.
                let known = state.known_identity().ok().flatten();
                Ok((state, known.unwrap_or_else(|| Identity::new(Role::Lead))))
            }
            Err(error) => Err(error),
        }
    }

    /// The same without making anything: what is missing stays missing, and the version is not
    /// checked. For those who only look.
    pub fn at(root: &Path, socket: &OsStr) -> Self {
        let socket = root.join(sha256_hex(socket.as_encoded_bytes()));
        Self { root: root.to_owned(), socket, barred: None }
    }

    /// Why a console must not write there, nor become Chief.
    pub fn barred(&self) -> Option<&StateError> {
        self.barred.as_ref()
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The part for this socket.
    pub fn of_socket(&self) -> &Path {
        &self.socket
    }

    /// The version, if it is one that this release reads and writes; none where nothing was written
    /// yet.
    pub fn version(&self) -> Result<Option<u32>, StateError> {
        let path = self.root.join("VERSION");
        let unversioned = |why| StateError::Unversioned { path: durable::shown(&self.root).to_string(), why };
        let bytes = match durable::read_private(&path, 64) {
            Ok(bytes) => bytes,
            Err(Unreadable::Missing) if self.is_untouched()? => return Ok(None),
            Err(Unreadable::Missing) => return Err(unversioned("it holds files and no VERSION")),
            Err(reason) => {
                return Err(StateError::Unreadable { path: durable::shown(&path).to_string(), reason });
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unversioned("its VERSION holds no number"));
        }
        match text.parse() {
            Ok(0) => Err(unversioned("its VERSION is 0, which no release wrote")),
            Ok(found) if found <= VERSION => Ok(Some(found)),
            // Or too large for a version of ours, and so a later one.
            _ => {
                let path = durable::shown(&self.root).to_string();
                Err(StateError::Newer { path, found: text.to_owned() })
            }
        }
    }

    /// Whether nothing stands there but what an interrupted start leaves, which is hidden.
    fn is_untouched(&self) -> Result<bool, StateError> {
        match durable::list(&self.root) {
            Ok(names) => Ok(names.iter().all(|name| name.as_encoded_bytes().starts_with(b"."))),
            Err(reason) => {
                Err(StateError::Unreadable { path: durable::shown(&self.root).to_string(), reason })
            }
        }
    }

    /// The advisory lock beside the Chief lease.
    pub fn sidecar(&self) -> PathBuf {
        self.socket.join("chief.flock")
    }

    /// What the operator's editor works on.
    pub fn edits(&self) -> PathBuf {
        self.socket.join("edits")
    }

    /// The drafts of this socket.
    pub fn drafts(&self) -> PathBuf {
        self.socket.join("drafts")
    }

    /// Which leads are pinned.
    pub fn pins(&self) -> PathBuf {
        self.socket.join("pins.json")
    }

    /// The broadcast that is being written, or was not sent to all.
    pub fn broadcast(&self) -> PathBuf {
        self.socket.join("broadcast.json")
    }

    /// The journal of this socket.
    pub fn journal(&self) -> PathBuf {
        self.socket.join("journal")
    }

    /// The session files of leads that keep none elsewhere: of all sockets, as sessions are.
    pub fn leads(&self) -> PathBuf {
        self.root.join("leads")
    }

    /// Lessons and orientation.
    pub fn learning(&self) -> PathBuf {
        self.root.join("learning")
    }

    /// What is remembered of leads' claims.
    pub fn claims(&self) -> PathBuf {
        self.root.join("claims")
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
        if let Some(barred) = &self.barred {
            return Err(barred.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn open(root: &Path) -> Result<StateDir, StateError> {
        StateDir::open(root, OsStr::new("/h.sock"))
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            durable::list(root).unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_is_used_only_if_it_is_known_what_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/state");
        let state = open(&root).unwrap();
        assert_eq!(std::fs::read(root.join("VERSION")).unwrap(), b"1\n");
        assert_eq!(state.version(), Ok(Some(1)));
        open(&root).unwrap();
        // An interrupted first start leaves no more than this.
        std::fs::rename(root.join("VERSION"), root.join(".VERSION.x.tmp")).unwrap();
        std::fs::remove_dir_all(state.of_socket()).unwrap();
        open(&root).unwrap();
        for (version, why) in
            [("", "no number"), ("x", "no number"), ("0", "no release wrote"), ("-1", "no number")]
        {
            std::fs::write(root.join("VERSION"), version).unwrap();
            let error = open(&root).unwrap_err();
            assert!(
                matches!(error, StateError::Unversioned { .. }) && error.to_string().contains(why),
                "{error}"
            );
        }
        for version in ["2\n", "99999999999999999999"] {
            std::fs::write(root.join("VERSION"), version).unwrap();
            assert!(matches!(open(&root), Err(StateError::Newer { found, .. }) if found == version.trim()));
        }
        // Somebody's directory is not taken over: nothing is made there, and its mode stays.
        let theirs = dir.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("thesis.txt"), "").unwrap();
        let mode = || std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&theirs).unwrap());
        let before = mode();
        let error = open(&theirs).unwrap_err();
        assert!(error.to_string().contains("holds files and no VERSION"), "{error}");
        assert_eq!((names(&theirs), mode()), (vec!["thesis.txt".to_owned()], before));
        // Nor what a link leads to.
        std::os::unix::fs::symlink(&theirs, dir.path().join("link")).unwrap();
        assert!(matches!(open(&dir.path().join("link")), Err(StateError::Disk(_))));
    }

    #[test]
    fn where_a_later_release_wrote_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("VERSION"), "2\n").unwrap();
        let (state, identity) = StateDir::open_for_console(dir.path(), OsStr::new("/h.sock")).unwrap();
        assert!(matches!(state.barred(), Some(StateError::Newer { .. })));
        assert_eq!(identity.role, Role::Lead);
        assert!(matches!(state.write_identity(&identity), Err(StateError::Newer { .. })));
        assert!(matches!(open(dir.path()), Err(StateError::Newer { .. })));
        assert_eq!(names(dir.path()), ["VERSION"]);
    }
}
