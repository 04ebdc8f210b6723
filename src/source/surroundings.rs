//! Leads that are here and that we don't see: of a later release, or under another spelling of the
//! socket; and inboxes that are blocked. They are named, and nothing of theirs is touched.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::chief::staff::Office;
use crate::contract::text::sha256_hex;
use crate::contract::{SessionId, Untrusted};
use crate::disk::inbox::{self, BATCH};
use crate::disk::layout::{InboxDir, without_dots};
use crate::disk::{AgentDir, DiskThread, Runtime, durable, records};
use crate::fact::{Fact, FactSender};
use crate::herd::AgentSession;
use crate::herd::inventory::Inventory;
use crate::herd::surroundings::{Blocked, Elsewhere, Newer, Surroundings};
use crate::herdr::locate::locate;
use crate::herdr::{Located, Snapshot};

/// Between two looks: neither comes about while somebody waits for it.
const PAUSE: Duration = Duration::from_secs(30);

/// Emits the surroundings of `office` on `socket`, whenever they changed, until the task is dropped.
pub async fn run(
    office: Arc<Office>,
    socket: Located,
    disk: DiskThread,
    facts: FactSender,
    mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
) {
    let mut told: Option<Surroundings> = None;
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        let is_first = snapshot.is_none();
        let (office, socket) = (Arc::clone(&office), socket.clone());
        let looked = disk.run(move || {
            let shown = match &snapshot {
                Some(snapshot) => sessions(&office.inventory(snapshot, &Default::default())),
                None => BTreeSet::new(),
            };
            let env = |name: &str| std::env::var_os(name);
            look(office.agent_dir(), office.runtime(), office.session(), &socket, &shown, env)
        });
        let Ok(found) = looked.await else { return };
        if told.as_ref() != Some(&found) {
            facts.put(Fact::Surroundings(Arc::new(found.clone())));
            told = Some(found);
        }
        if is_first {
            if snapshots.changed().await.is_err() {
                return;
            }
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Everything there is to say, with `shown` the sessions that Herdr shows on `socket`. Blocking.
pub fn look(
    agent_dir: &AgentDir,
    runtime: &Runtime,
    us: &SessionId,
    socket: &Located,
    shown: &BTreeSet<SessionId>,
    env: impl Fn(&str) -> Option<OsString>,
) -> Surroundings {
    Surroundings {
        socket: socket.text(),
        newer: newer(agent_dir, runtime),
        elsewhere: elsewhere(agent_dir, runtime, socket, shown, env),
        blocked: blocked(runtime, us, shown),
    }
}

/// The inboxes of leads that hold as many quarantined messages as a lead looks at, in the order of
/// their hashes. Our own passes them over. Blocking.
pub fn blocked(runtime: &Runtime, us: &SessionId, shown: &BTreeSet<SessionId>) -> Vec<Blocked> {
    let mut names = durable::list(&runtime.inboxes()).unwrap_or_default();
    names.sort();
    let own = us.hash();
    let mut found = Vec::new();
    for hash in names.iter().filter_map(|name| name.to_str()).filter(|name| *name != own) {
        let inbox = runtime.inbox_of_hash(hash);
        let ids = durable::list(inbox.path()).unwrap_or_default();
        let ids = ids.iter().filter_map(|name| InboxDir::message_id(name));
        let quarantined = ids.filter(|id| inbox::is_quarantined(&inbox, *id)).count();
        if quarantined >= BATCH {
            let session = shown.iter().find(|session| session.hash() == hash).cloned();
            let directory = durable::shown(inbox.path()).to_string();
            found.push(Blocked { hash: hash.to_owned(), session, directory, quarantined, batch: BATCH });
        }
    }
    found
}

/// The sessions that Herdr shows, where they are known.
pub fn sessions(inventory: &Inventory) -> BTreeSet<SessionId> {
    let known = inventory.agents.iter().filter_map(|agent| match &agent.session {
        AgentSession::Known(session) => SessionId::new(session.clone()),
        AgentSession::Unknown(_) => None,
    });
    known.collect()
}

/// What a later release keeps. Blocking.
pub fn newer(agent_dir: &AgentDir, runtime: &Runtime) -> Vec<Newer> {
    let there = |path: &PathBuf| matches!(durable::kind(path), Ok(Some(_)));
    let count = |path: PathBuf| {
        // By socket for supervision, for all sockets with peers.
        let here = path.join(runtime.hash());
        let ours = if here.is_dir() { here } else { path.clone() };
        let records = [ours.join("leads"), ours.join("peers")]
            .iter()
            .flat_map(|directory| durable::list(directory).unwrap_or_default())
            .filter(|name| name.to_string_lossy().ends_with(".json"))
            .count();
        Newer { directory: durable::shown(&path).to_string(), records }
    };
    agent_dir.newer_generations().into_iter().filter(there).map(count).collect()
}

/// Leads that Herdr shows and that have their record under another hash than ours. Blocking.
pub fn elsewhere(
    agent_dir: &AgentDir,
    runtime: &Runtime,
    socket: &Located,
    shown: &BTreeSet<SessionId>,
    env: impl Fn(&str) -> Option<OsString>,
) -> Vec<Elsewhere> {
    let missing: Vec<&SessionId> =
        shown.iter().filter(|session| records::read_lead(runtime, session).is_err()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut names = durable::list(&agent_dir.supervision_root()).unwrap_or_default();
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let Some(hash) = name.to_str().filter(|name| *name != runtime.hash()) else { continue };
        let theirs = agent_dir.runtime_of_hash(hash.to_owned());
        let sessions: Vec<SessionId> = (missing.iter())
            .filter(|session| records::read_lead(&theirs, session).is_ok())
            .map(|session| (*session).clone())
            .collect();
        if !sessions.is_empty() {
            let spelling = spelling_of(socket, hash, &env);
            let spelling = spelling.map(|it| Untrusted::from_bytes_lossy(it.as_encoded_bytes()));
            found.push(Elsewhere { hash: hash.to_owned(), sessions, spelling });
        }
    }
    found
}

/// A spelling of the socket whose hash this is, among those that are likely.
fn spelling_of(socket: &Located, hash: &str, env: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let path = socket.path();
    let mut candidates: Vec<OsString> = vec![path.as_os_str().to_owned(), without_dots(&path).into()];
    candidates.extend(std::fs::canonicalize(&path).map(OsString::from));
    candidates.extend(std::path::absolute(&path).map(OsString::from));
    candidates.extend(env("HERDR_SOCKET_PATH"));
    candidates.extend(locate(None, env).map(|found| found.path));
    let home = |name: &str| if name == "HOME" { env(name) } else { None };
    candidates.extend(locate(None, home).map(|found| found.path));
    for (from, to) in [("/private/", "/"), ("/var/run/", "/run/")] {
        for (from, to) in [(from, to), (to, from)] {
            let swapped: Vec<OsString> = (candidates.iter())
                .filter_map(|it| Some(format!("{to}{}", it.to_str()?.strip_prefix(from)?).into()))
                .collect();
            candidates.extend(swapped);
        }
    }
    let is_it = |it: &OsString| sha256_hex(OsStr::as_encoded_bytes(it)) == hash;
    candidates.into_iter().find(is_it)
}
