//! Every path of `docs/contract.md`, in one place.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::contract::Claim;
use crate::contract::ids::{SessionId, Uuid};
use crate::contract::text::sha256_hex;

/// Pi's agent directory; the data root is the `pi-herdsman` directory in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDir(PathBuf);

impl AgentDir {
    /// As `PI_CODING_AGENT_DIR` names it: a leading `~` is the home directory, `.` and `..` are
    /// resolved lexically. Without a value it is `~/.pi/agent`.
    pub fn resolve(value: Option<&OsStr>, home: &Path) -> Self {
        let value = Path::new(value.filter(|value| !value.is_empty()).unwrap_or(OsStr::new("~/.pi/agent")));
        let expanded = match value.strip_prefix("~") {
            Ok(rest) => home.join(rest),
            Err(_) => value.to_owned(),
        };
        Self(normalize(&expanded))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The data root: `<agent directory>/pi-herdsman`.
    pub fn data_root(&self) -> PathBuf {
        self.0.join("pi-herdsman")
    }

    /// The runtime of the Herdr socket whose path string is `socket`, hashed exactly as given.
    pub fn runtime(&self, socket: &OsStr) -> Runtime {
        self.runtime_of_hash(sha256_hex(socket.as_encoded_bytes()))
    }

    /// The runtime in the directory `hash`, of a socket whose spelling may not be known.
    pub fn runtime_of_hash(&self, hash: String) -> Runtime {
        Runtime {
            root: self.supervision_root().join(&hash),
            peers: self.runtime_root().join("peers-v1"),
            hash,
        }
    }

    /// Where the runtimes of all sockets are.
    pub fn supervision_root(&self) -> PathBuf {
        self.runtime_root().join("supervision")
    }

    /// What a later release keeps, never ours to touch.
    pub fn newer_generations(&self) -> [PathBuf; 2] {
        [self.runtime_root().join("supervision-v2"), self.runtime_root().join("peers-v2")]
    }

    /// The agents' mailboxes, read only.
    pub fn mailboxes(&self) -> PathBuf {
        self.runtime_root().join("mailboxes-v4")
    }

    fn runtime_root(&self) -> PathBuf {
        self.data_root().join("runtime")
    }
}

/// Resolves `.` and `..` without looking at the disk, as the other side does; a relative path is
/// taken from the working directory.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let absolute = if path.is_absolute() {
        path.to_owned()
    } else {
        std::env::current_dir().unwrap_or_default().join(path)
    };
    without_dots(&absolute)
}

/// Without `.`, `..` and doubled slashes, as far as the text of the path tells.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The coordination of one Herdr socket, and the presence of the user's peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    root: PathBuf,
    peers: PathBuf,
    hash: String,
}

impl Runtime {
    /// The supervision runtime of the socket.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// *sha256(socket path string)*.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The Chief lease: a process lock.
    pub fn lock(&self) -> PathBuf {
        self.root.join("chief.lock")
    }

    /// The Chief descriptor.
    pub fn descriptor(&self) -> PathBuf {
        self.root.join("chief.json")
    }

    /// The lead records.
    pub fn leads(&self) -> PathBuf {
        self.root.join("leads")
    }

    /// The record of the lead `session`.
    pub fn lead(&self, session: &SessionId) -> PathBuf {
        self.leads().join(format!("{}.json", session.hash()))
    }

    /// The inboxes of Chief and leads.
    pub fn inboxes(&self) -> PathBuf {
        self.root.join("inbox")
    }

    /// What `session` is sent by Chief or lead.
    pub fn inbox(&self, session: &SessionId) -> InboxDir {
        InboxDir::new(self.inboxes().join(session.hash()))
    }

    /// The inbox in the directory `hash`, of a session that may not be known.
    pub fn inbox_of_hash(&self, hash: &str) -> InboxDir {
        InboxDir::new(self.inboxes().join(hash))
    }

    /// What all sockets share: the presence and inboxes of peers.
    pub fn peers(&self) -> &Path {
        &self.peers
    }

    /// The presence records of peers.
    pub fn peer_records(&self) -> PathBuf {
        self.peers.join("peers")
    }

    /// The presence of `session`.
    pub fn peer(&self, session: &SessionId) -> PathBuf {
        self.peer_records().join(format!("{}.json", session.hash()))
    }

    /// The process lock of the presence of `session`.
    pub fn peer_lock(&self, session: &SessionId) -> PathBuf {
        self.peer_records().join(format!("{}.json.lock", session.hash()))
    }

    /// The peer inbox in the directory `hash`, of a session that may not be known.
    pub fn peer_inbox_of_hash(&self, hash: &str) -> InboxDir {
        InboxDir::new(self.peer_inboxes().join(hash))
    }

    /// The inboxes of peers.
    pub fn peer_inboxes(&self) -> PathBuf {
        self.peers.join("inbox")
    }

    /// What `session` is sent by its peers.
    pub fn peer_inbox(&self, session: &SessionId) -> InboxDir {
        InboxDir::new(self.peer_inboxes().join(session.hash()))
    }
}

/// One session's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxDir {
    path: PathBuf,
    /// By which claim we work on it; a fresh one each time where there is none.
    claim: Option<Claim>,
}

impl InboxDir {
    fn new(path: PathBuf) -> Self {
        Self { path, claim: None }
    }

    /// The same, worked on by `claim`: locks and temporary files bear its id, so that it is known
    /// whose they were if its process dies.
    pub fn worked_on_by(self, claim: Claim) -> Self {
        Self { claim: Some(claim), ..self }
    }

    /// By which claim it is worked on.
    pub fn claim(&self) -> Claim {
        self.claim.unwrap_or_else(Claim::own)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the message `id`.
    pub fn message(&self, id: Uuid) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }

    /// Its process lock.
    pub fn lock(&self, id: Uuid) -> PathBuf {
        self.path.join(format!("{id}.json.lock"))
    }

    /// Its quarantine marker.
    pub fn quarantine(&self, id: Uuid) -> PathBuf {
        self.path.join(format!("{id}.json.quarantine"))
    }

    /// The name that `by` writes it under before it is moved into place.
    pub fn temporary(&self, id: Uuid, by: Uuid) -> PathBuf {
        self.path.join(format!(".{id}.{by}.tmp"))
    }

    /// A fresh name to move it to before it is unlinked.
    pub fn cleanup(&self, id: Uuid) -> PathBuf {
        self.path.join(format!(".{id}.{}.cleanup", Uuid::random()))
    }

    /// The message whose file is named `name`, if it is a message file's.
    pub fn message_id(name: &OsStr) -> Option<Uuid> {
        Uuid::parse(name.to_str()?.strip_suffix(".json")?)
    }
}
