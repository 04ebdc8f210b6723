//! Which session files there are, and which belong to a session.
//!
//! Nothing but names is read here, and of files called `*.jsonl` their first lines. No link is followed
//! but at the directories that sessions are said to be in.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::search::Target;
use super::session::{HeaderError, read_identity};
use crate::contract::SessionId;
use crate::contract::json::Document;
use crate::disk::named;

/// So many directories below each other are looked into.
const MAX_DEPTH: usize = 8;
/// Files that are found at most.
const MAX_FILES: usize = 20_000;
/// Names that are looked at at most.
const MAX_NAMES: usize = 400_000;
/// Bytes of settings that are read.
const MAX_SETTINGS: usize = 1 << 20;

/// Where Pi keeps sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDirs {
    /// Its agent directory.
    pub agent_dir: PathBuf,
    /// What `PI_CODING_AGENT_SESSION_DIR` names.
    pub session_dir: Option<PathBuf>,
    /// The home directory, for settings that begin with `~`.
    pub home: PathBuf,
}

impl SessionDirs {
    /// All of them: those of the agent directory, the one of the environment, and what the settings say,
    /// the user's and those of projects in `cwds`. Directories that are not there are among them.
    pub fn roots(&self, cwds: &[PathBuf]) -> Vec<PathBuf> {
        let mut roots = vec![self.agent_dir.join("sessions")];
        roots.extend(self.session_dir.clone());
        let users = self.setting(&self.agent_dir.join("settings.json"));
        for cwd in cwds {
            let projects = self.setting(&cwd.join(".pi/settings.json"));
            roots.extend(users.iter().chain(&projects).map(|path| cwd.join(path)));
        }
        roots.extend(users.filter(|path| path.is_absolute()));
        let mut known = HashSet::new();
        roots.retain(|root| known.insert(root.clone()));
        roots
    }

    /// The `sessionDir` of these settings. Settings that can't be read say nothing, as to Pi.
    fn setting(&self, settings: &Path) -> Option<PathBuf> {
        let bytes = named::read(settings, MAX_SETTINGS).ok()?;
        let document = Document::decode(&bytes);
        let members = document.value().ok()?.object()?;
        let (_, value) = members.iter().find(|(key, _)| *key == "sessionDir")?;
        let path = PathBuf::from(value.string().filter(|text| !text.is_empty())?.to_str_lossy().into_owned());
        Some(match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path,
        })
    }

    /// The session files in all of them, in the order of their paths.
    pub fn files(&self, cwds: &[PathBuf]) -> Discovered {
        let mut walk = Walk::default();
        for root in self.roots(cwds) {
            // The root itself may be a link: somebody named it.
            walk.directory(&root, MAX_DEPTH);
        }
        // Where an old Pi kept them; what is below is something else.
        walk.files.extend(flat(&self.agent_dir));
        Discovered { files: walk.files.into_iter().collect(), left_out: walk.left_out }
    }
}

/// The files called `*.jsonl` in a directory, which may not be there.
fn flat(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MAX_FILES);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    files.map(|entry| entry.path()).filter(|path| is_named_so(path)).collect()
}

fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Files called `*.jsonl`, whatever is in them.
    pub files: Vec<PathBuf>,
    /// What was not looked into, and why; safe to print but for the path.
    pub left_out: Vec<(PathBuf, String)>,
}

impl Discovered {
    /// The files of the sessions that `is_wanted` takes, by their headers: a file's name may be wrong.
    /// Those that can't be read are none.
    pub fn of_sessions(&self, mut is_wanted: impl FnMut(&SessionId) -> bool) -> Vec<(SessionId, PathBuf)> {
        let identity =
            |path: &PathBuf| -> Result<SessionId, HeaderError> { Ok(read_identity(path)?.session) };
        let all = self.files.iter().filter_map(|path| Some((identity(path).ok()?, path.clone())));
        all.filter(|(session, _)| is_wanted(session)).collect()
    }
}

/// A session whose files are to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its id.
    pub session: SessionId,
    /// The file that somebody names for it.
    pub file: Option<PathBuf>,
    /// Where it works.
    pub cwd: Option<PathBuf>,
}

/// The files of wanted sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// What is to be searched.
    pub targets: Vec<Target>,
    /// Sessions that several files say they are of, and how many.
    pub several: Vec<(SessionId, usize)>,
    /// Sessions of which there is no file.
    pub without: Vec<SessionId>,
    /// As in [`Discovered`]; empty where nothing had to be looked for.
    pub left_out: Vec<(PathBuf, String)>,
}

impl SessionDirs {
    /// The files of these sessions: the one that is named, else those whose headers say so.
    pub fn choose(&self, wanted: &[Wanted]) -> Chosen {
        let mut chosen = Chosen::default();
        let mut unnamed: HashMap<&SessionId, Vec<PathBuf>> = HashMap::new();
        for lead in wanted {
            match &lead.file {
                Some(file) => {
                    let session = Some(lead.session.clone());
                    chosen.targets.push(Target { file: file.clone(), session });
                }
                None => drop(unnamed.insert(&lead.session, Vec::new())),
            }
        }
        if unnamed.is_empty() {
            return chosen;
        }
        let cwds: Vec<PathBuf> = wanted.iter().filter_map(|lead| lead.cwd.clone()).collect();
        let discovered = self.files(&cwds);
        for (session, file) in discovered.of_sessions(|session| unnamed.contains_key(session)) {
            if let Some(files) = unnamed.get_mut(&session) {
                files.push(file);
            }
        }
        for lead in wanted {
            match unnamed.remove(&lead.session) {
                None => {}
                Some(files) if files.is_empty() => chosen.without.push(lead.session.clone()),
                Some(files) => {
                    if files.len() > 1 {
                        chosen.several.push((lead.session.clone(), files.len()));
                    }
                    let target = |file| Target { file, session: Some(lead.session.clone()) };
                    chosen.targets.extend(files.into_iter().map(target));
                }
            }
        }
        chosen.left_out = discovered.left_out;
        chosen
    }
}

#[derive(Default)]
struct Walk {
    files: BTreeSet<PathBuf>,
    left_out: Vec<(PathBuf, String)>,
    names: usize,
    is_full: bool,
}

impl Walk {
    /// Takes the files in a directory, and in those below it unless it is the deepest to be looked into.
    fn directory(&mut self, path: &Path, levels_below: usize) {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.left_out.push((path.to_owned(), format!("can't be read: {error}"))),
        };
        let mut below = Vec::new();
        for entry in entries {
            self.names += 1;
            if self.names > MAX_NAMES || self.files.len() >= MAX_FILES {
                if !std::mem::replace(&mut self.is_full, true) {
                    self.left_out
                        .push((path.to_owned(), "there are too many files; the rest is left out".to_owned()));
                }
                return;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    return self.left_out.push((path.to_owned(), format!("can't be read: {error}")));
                }
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => below.push(entry.path()),
                // What is no regular file is named by whoever would open it.
                Ok(_) if is_named_so(&entry.path()) => drop(self.files.insert(entry.path())),
                Ok(_) | Err(_) => {}
            }
        }
        below.sort();
        match levels_below.checked_sub(1) {
            Some(levels) => below.iter().for_each(|path| self.directory(path, levels)),
            None => self.too_deep(below),
        }
    }

    fn too_deep(&mut self, directories: Vec<PathBuf>) {
        let told = |path| (path, "is too deep to be looked into".to_owned());
        self.left_out.extend(directories.into_iter().map(told));
    }
}
