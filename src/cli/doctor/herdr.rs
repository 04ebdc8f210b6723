//! Herdr itself, and leads that call its socket by another name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::super::block_on;
use super::super::failure::Failure;
use super::Patient;
use super::report::{Level, Section};
use crate::chief::staff::Office;
use crate::config::Environment;
use crate::contract::{SessionId, Untrusted};
use crate::disk::{durable, records};
use crate::herd::AgentSession;
use crate::herdr::locate::{Origin, locate};
use crate::herdr::{Client, Located, Snapshot};

/// Longest path a Unix socket can be bound to everywhere, in bytes.
const MAX_SOCKET_PATH: usize = 103;

/// Socket, protocol and inventory; also the snapshot, where there is one.
pub(super) fn herdr(socket: &Located) -> Result<(Section, Option<Snapshot>), Failure> {
    let mut section = Section::new("herdr", "Herdr");
    section.set("socket", &*socket.text().to_str_lossy());
    section.set(
        "origin",
        match socket.origin {
            Origin::Option => "option",
            Origin::Variable => "variable",
            Origin::Session(_) => "session",
            Origin::Default => "default",
        },
    );
    let path = socket.path();
    let found = std::fs::metadata(&path);
    section.set("exists", found.is_ok());
    match &found {
        Ok(metadata) if metadata.file_type().is_socket() => {
            section.say(Level::Ok, format!("socket {}", socket.looked_for()));
        }
        Ok(_) => section.say(Level::Bad, format!("no socket, but something else: {}", socket.looked_for())),
        Err(_) => section.say(
            Level::Bad,
            format!("no socket at {}. Start `herdr`, or name its socket with --socket", socket.looked_for()),
        ),
    }
    if socket.path.len() > MAX_SOCKET_PATH {
        section.say(Level::Warn, "the socket's path is too long for some systems");
    }
    let client = Client::new(path);
    let asked = block_on(async {
        let pong = client.ping().await?;
        let snapshot = client.snapshot().await?;
        Ok::<_, crate::herdr::HerdrError>((pong, snapshot))
    })?;
    section.set("answers", asked.is_ok());
    match asked {
        Err(error) => {
            section.unavailable = true;
            section.set("error", error.to_string());
            // Without a socket it was said above what to do.
            if found.is_ok() {
                section.say(Level::Bad, error.to_string());
            }
            Ok((section, None))
        }
        Ok((pong, snapshot)) => {
            let version = pong.version.as_ref().map(|version| version.to_str_lossy().into_owned());
            section.say(
                Level::Ok,
                format!(
                    "Herdr {} answers, protocol {}, as our own user",
                    version.as_deref().unwrap_or("of unknown version"),
                    pong.protocol
                ),
            );
            section.set("version", version);
            section.set("protocol", pong.protocol);
            section.set("peer_uid", rustix::process::geteuid().as_raw());
            section.set("workspaces", snapshot.workspaces.len());
            section.set("agents", snapshot.agents.len());
            section.say(
                Level::Ok,
                format!("{} workspaces, {} agents", snapshot.workspaces.len(), snapshot.agents.len()),
            );
            let dropped = snapshot.dropped.iter().map(|it| (Level::Warn, it.to_string())).collect();
            section.say_each(dropped, "parts of the snapshot that can't be used");
            Ok((section, Some(snapshot)))
        }
    }
}

/// Leads that Herdr shows and that have their records under another hash than ours.
pub(super) fn other_spellings(
    patient: &Patient<'_>,
    snapshot: Option<&Snapshot>,
    environment: &Environment<'_>,
) -> Section {
    let mut section = Section::new("other_spellings", "Other spellings of the socket");
    let Some(snapshot) = snapshot else {
        section.say(Level::Warn, "not known, as Herdr does not answer");
        section.set("runtimes", json!([]));
        return section;
    };
    let office = Office::new(
        patient.agent_dir.clone(),
        patient.runtime.clone(),
        patient.us.clone().unwrap_or_else(nobody),
        Instant::now(),
    );
    let inventory = office.inventory(snapshot, &Default::default());
    let shown: BTreeSet<SessionId> = (inventory.agents.iter())
        .filter_map(|agent| match &agent.session {
            AgentSession::Known(session) => SessionId::new(session.clone()),
            AgentSession::Unknown(_) => None,
        })
        .collect();
    let ours = sessions_of(patient, patient.runtime.hash());
    let mut runtimes = Vec::new();
    for name in durable::list(&patient.agent_dir.supervision_root()).unwrap_or_default() {
        let Some(hash) = name.to_str().filter(|name| *name != patient.runtime.hash()) else { continue };
        let theirs = sessions_of(patient, hash);
        let strayed: Vec<String> = (theirs.iter())
            .filter(|session| shown.contains(*session) && !ours.contains(*session))
            .map(|session| session.as_untrusted().to_str_lossy().into_owned())
            .collect();
        if strayed.is_empty() {
            continue;
        }
        let spelling = spelling_of(patient.socket, hash, environment);
        let spelling = spelling.map(|it| Untrusted::from_bytes_lossy(it.as_encoded_bytes()));
        section.say(
            Level::Bad,
            match &spelling {
                Some(spelling) => format!(
                    "{} leads that Herdr shows call this socket {}, we call it {}. Start headman with \
                     --socket {}, or those leads with our spelling: {}",
                    strayed.len(),
                    spelling.escaped(),
                    patient.socket.text().escaped(),
                    spelling.escaped(),
                    strayed.join(", "),
                ),
                None => format!(
                    "{} leads that Herdr shows have their records under another spelling of the socket \
                     ({hash}). Compare HERDR_SOCKET_PATH in their panes with {}: {}",
                    strayed.len(),
                    patient.socket.text().escaped(),
                    strayed.join(", "),
                ),
            },
        );
        runtimes.push(json!({
            "hash": hash,
            "sessions": strayed,
            "spelling": spelling.map(|it| it.to_str_lossy().into_owned()),
        }));
    }
    if runtimes.is_empty() {
        section.say(Level::Ok, "no lead that Herdr shows has its record elsewhere");
    }
    section.set("hash", patient.runtime.hash());
    section.set("runtimes", runtimes);
    section
}

/// A session that nobody has.
fn nobody() -> SessionId {
    crate::chief::state_dir::Identity::new(crate::contract::role::Role::Lead).session()
}

fn sessions_of(patient: &Patient<'_>, hash: &str) -> BTreeSet<SessionId> {
    let runtime = patient.agent_dir.runtime_of_hash(hash.to_owned());
    let records = records::scan_leads(&runtime).unwrap_or_default();
    records.into_iter().filter_map(|(_, read)| read.ok()).map(|record| record.session).collect()
}

/// A spelling of the socket whose hash this is, among those that are likely.
fn spelling_of(socket: &Located, hash: &str, environment: &Environment<'_>) -> Option<OsString> {
    let path = socket.path();
    let mut candidates: Vec<OsString> = vec![path.as_os_str().to_owned(), lexical(&path).into()];
    candidates.extend(std::fs::canonicalize(&path).map(OsString::from));
    candidates.extend(std::path::absolute(&path).map(OsString::from));
    candidates.extend(environment.var("HERDR_SOCKET_PATH"));
    candidates.extend(locate(None, |name| environment.var(name)).map(|found| found.path));
    candidates.extend(
        locate(None, |name| if name == "HOME" { environment.var(name) } else { None })
            .map(|found| found.path),
    );
    for (from, to) in [("/private/", "/"), ("/var/run/", "/run/")] {
        for (from, to) in [(from, to), (to, from)] {
            let swapped: Vec<OsString> = (candidates.iter())
                .filter_map(|it| Some(format!("{to}{}", it.to_str()?.strip_prefix(from)?).into()))
                .collect();
            candidates.extend(swapped);
        }
    }
    candidates.into_iter().find(|it| crate::contract::text::sha256_hex(it.as_encoded_bytes()) == hash)
}

/// Without `.`, `..` and doubled slashes.
fn lexical(path: &Path) -> PathBuf {
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
