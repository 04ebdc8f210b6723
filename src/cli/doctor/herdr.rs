//! Herdr itself, and leads that call its socket by another name.

use std::os::unix::fs::FileTypeExt;
use std::time::Instant;

use serde_json::json;

use super::super::block_on;
use super::super::failure::Failure;
use super::Patient;
use super::report::{Level, Section};
use crate::chief::staff::Office;
use crate::config::Environment;
use crate::contract::SessionId;
use crate::herdr::locate::Origin;
use crate::herdr::{Client, Located, Snapshot};
use crate::source::surroundings;

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
    let mut runtimes = Vec::new();
    let env = |name: &str| environment.var(name);
    let shown = surroundings::sessions(&inventory);
    for elsewhere in surroundings::elsewhere(patient.agent_dir, &patient.runtime, patient.socket, &shown, env)
    {
        section.say(Level::Bad, elsewhere.sentence(&patient.socket.text()));
        let sessions = elsewhere.sessions.iter().map(|it| it.as_untrusted().to_str_lossy());
        runtimes.push(json!({
            "hash": elsewhere.hash,
            "sessions": sessions.collect::<Vec<_>>(),
            "spelling": elsewhere.spelling.map(|it| it.to_str_lossy().into_owned()),
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
