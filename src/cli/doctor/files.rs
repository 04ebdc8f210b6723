//! Directories: whose they are, with which modes, and what other releases keep beside them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use super::Patient;
use super::report::{Level, Section};
use crate::chief::journal::Journal;
use crate::chief::state_dir::StateError;
use crate::console::drafts;
use crate::disk::AgentDir;
use crate::disk::durable::{self, DIRECTORY_MODE, FILE_MODE};
use crate::source::surroundings;

/// Entries looked at in one walk; a herd of a thousand leads has fewer.
const MAX_ENTRIES: usize = 50_000;
/// Directories below each other; ours have four.
const MAX_DEPTH: usize = 8;
/// Entries named in the JSON form.
const LISTED: usize = 200;

/// The agent directory and the data root.
pub(super) fn agent_dir(agent_dir: &AgentDir) -> Section {
    let mut section = Section::new("agent_dir", "Agent directory");
    let root = agent_dir.data_root();
    for (key, path, what) in
        [("agent_dir", agent_dir.path(), "agent directory"), ("data_root", &*root, "data root")]
    {
        let shown = durable::shown(path).to_string();
        let mut entry = json!({"path": shown});
        match std::fs::metadata(path) {
            Ok(found) => {
                let mode = found.mode() & 0o7777;
                entry["exists"] = true.into();
                entry["uid"] = found.uid().into();
                entry["mode"] = format!("{mode:04o}").into();
                if !found.is_dir() {
                    section.say(Level::Bad, format!("{what} {shown} is not a directory"));
                } else if found.uid() != rustix::process::geteuid().as_raw() {
                    section.say(Level::Bad, format!("{what} {shown} belongs to user {}", found.uid()));
                } else if mode & 0o022 != 0 {
                    section.say(
                        Level::Bad,
                        format!("{what} {shown}: others may write it (mode {mode:04o}). chmod go-w it"),
                    );
                } else {
                    section.say(Level::Ok, format!("{what} {shown}, ours, mode {mode:04o}"));
                }
                if let Err(error) = std::fs::read_dir(path) {
                    section.unavailable = true;
                    section.say(Level::Bad, format!("{what} {shown} can't be listed: {error}"));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                entry["exists"] = false.into();
                section.say(Level::Warn, format!("no {what} {shown}: no lead has been started with it yet"));
            }
            Err(error) => {
                section.unavailable = true;
                section.say(Level::Bad, format!("{what} {shown} can't be looked at: {error}"));
            }
        }
        section.set(key, entry);
    }
    section
}

/// Entries of our runtime, of the peers' and of our state whose mode or owner differ.
pub(super) fn permissions(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("permissions", "Permissions");
    let mut walk = Walk { entries: 0, findings: Vec::new(), listed: Vec::new(), cut: false };
    for root in [patient.runtime.root(), patient.runtime.peers(), patient.state.root()] {
        walk.entry(root, 0);
    }
    section.set("looked_at", walk.entries);
    section.set("differing", walk.findings.len());
    section.set("entries", Value::from(walk.listed));
    if walk.findings.is_empty() {
        section.say(
            Level::Ok,
            format!("{} entries: directories 0700, files 0600, all of them ours", walk.entries),
        );
    }
    if walk.cut {
        section.say(Level::Warn, format!("only the first {MAX_ENTRIES} entries were looked at"));
    }
    walk.findings.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    section.say_each(walk.findings, "entries");
    section
}

struct Walk {
    entries: usize,
    findings: Vec<(Level, String)>,
    listed: Vec<Value>,
    cut: bool,
}

impl Walk {
    fn entry(&mut self, path: &Path, depth: usize) {
        let Ok(found) = std::fs::symlink_metadata(path) else { return };
        if self.entries == MAX_ENTRIES {
            self.cut = true;
            return;
        }
        self.entries += 1;
        let mode = found.mode() & 0o7777;
        let (kind, expected) = if found.is_dir() {
            ("directory", Some(DIRECTORY_MODE))
        } else if found.is_file() {
            ("file", Some(FILE_MODE))
        } else if found.is_symlink() {
            ("symbolic link", None)
        } else {
            ("special file", None)
        };
        let foreign = found.uid() != rustix::process::geteuid().as_raw();
        if foreign || expected != Some(mode) {
            let shown = durable::shown(path).to_string();
            let level =
                if foreign || expected.is_none() || mode & 0o022 != 0 { Level::Bad } else { Level::Warn };
            let text = match expected {
                _ if foreign => format!("{kind} {shown} belongs to user {}", found.uid()),
                None => format!("{shown} is a {kind}"),
                Some(expected) => format!("{kind} {shown} has mode {mode:04o}, {expected:04o} is right"),
            };
            self.findings.push((level, text));
            if self.listed.len() < LISTED {
                self.listed.push(json!({
                    "path": shown, "kind": kind, "mode": format!("{mode:04o}"), "uid": found.uid(),
                    "expected": expected.map(|expected| format!("{expected:04o}")),
                }));
            }
        }
        if found.is_dir() && depth < MAX_DEPTH {
            // A directory that can't be listed is named by those who need it.
            let mut names = durable::list(path).unwrap_or_default();
            names.sort();
            for name in names {
                self.entry(&path.join(name), depth + 1);
            }
        }
    }
}

/// What a later release keeps.
pub(super) fn newer_generations(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("newer_generations", "Newer generations");
    let mut found = Vec::new();
    for newer in surroundings::newer(patient.agent_dir, &patient.runtime) {
        section.say(Level::Warn, newer.sentence());
        found.push(json!({"path": newer.directory, "records": newer.records}));
    }
    if found.is_empty() {
        section.say(Level::Ok, "none");
    }
    section.set("found", found);
    section
}

/// Our own state.
pub(super) fn state_dir(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("state_dir", "State directory");
    let root = patient.state.root();
    let shown = durable::shown(root).to_string();
    section.set("path", shown.clone());
    let exists = matches!(durable::kind(root), Ok(Some(_)));
    section.set("exists", exists);
    if !exists {
        section.say(Level::Ok, format!("{shown} is not there yet: it is made when it is needed"));
        return section;
    }
    match patient.state.version() {
        Ok(Some(version)) => {
            section.set("version", version);
            section.say(Level::Ok, format!("{shown}, version {version}"));
        }
        Ok(None) => section.say(Level::Ok, format!("{shown} has nothing in it yet")),
        Err(error) => {
            if let StateError::Newer { found, .. } = &error {
                section.set("version", found.parse::<u64>().ok());
            }
            section.say(Level::Bad, error.to_string());
        }
    }
    match patient.state.known_identity() {
        Ok(Some(identity)) => {
            let session = identity.session();
            section.set("session", &*session.as_untrusted().to_str_lossy());
            section.set("role", identity.role.as_str());
            section.say(
                Level::Ok,
                format!("on this socket we are session {}, {}", session.escaped(), identity.role.as_str()),
            );
        }
        Ok(None) => section.say(Level::Ok, "on this socket we were nobody yet"),
        Err(error) => section.say(Level::Bad, error.to_string()),
    }
    journal(&patient.state.journal(), &mut section);
    let kept = drafts::load_all(&patient.state.drafts());
    section.set("drafts", kept.drafts.len());
    section.say(Level::Ok, format!("{} drafts", kept.drafts.len()));
    for skipped in kept.skipped {
        section
            .say(Level::Warn, format!("a draft is not used: {skipped}. Read it in its file, or remove it"));
    }
    section
}

fn journal(directory: &Path, section: &mut Section) {
    let journal = match Journal::open(directory) {
        Ok(journal) => journal,
        Err(error) => return section.say(Level::Bad, format!("the journal can't be read: {error}")),
    };
    let (received, unread) = (journal.index().received().len(), journal.index().unread());
    let (damaged, later) = (journal.damaged(), journal.later());
    section
        .set("journal", json!({"received": received, "unread": unread, "damaged": damaged, "later": later}));
    section.say(Level::Ok, format!("the journal has {received} messages received, {unread} unread"));
    if damaged > 0 {
        section
            .say(Level::Warn, format!("{damaged} lines of the journal can't be read; they are passed over"));
    }
    if later > 0 {
        section.say(Level::Warn, format!("{later} lines of the journal are of a later release"));
    }
}
