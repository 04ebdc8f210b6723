//! The files of lessons and orientation, below the state directory.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::memory::{EVERYWHERE, Memory, Outcome};
use crate::disk::durable::{self, DiskError, Unreadable};

/// Where what was put away lies, beside what is in use.
const ARCHIVE: &str = "archive";
/// Largest file read, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;
/// Files of one directory that are looked at, and directories.
const MAX_FILES: usize = 10_000;
/// Memories of the same second and title.
const MAX_SAME: usize = 99;

/// A memory with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Its path below the directory of all, without the ending.
    pub name: String,
    /// What it says, or why that can't be read.
    pub memory: Result<Memory, String>,
    /// Whether it was put away.
    pub is_archived: bool,
}

/// Why a memory can't be kept or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A directory of ours can't be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        why: Unreadable,
    },
    /// There is none, or there are several, of that name.
    #[error("{0} memories have a name that ends so")]
    Ambiguous(usize),
    /// It is put away already, or can't be read.
    #[error("{0}")]
    Unusable(String),
    /// So many of the same second and title are there.
    #[error("there are too many of that title")]
    TooMany,
}

/// All memories below one directory.
#[derive(Debug)]
pub struct Store {
    /// What is ours above it.
    base: PathBuf,
    root: PathBuf,
}

impl Store {
    /// Those below `root`, which is below `base`; it need not be there.
    pub fn new(base: &Path, root: PathBuf) -> Self {
        Self { base: base.to_owned(), root }
    }

    /// All of them, by name.
    ///
    /// # Errors
    /// [`StoreError`] where a directory can't be read; a file that can't be is among them.
    pub fn list(&self) -> Result<Vec<Kept>, StoreError> {
        let mut all = Vec::new();
        for project in self.directories(&self.root)? {
            let path = self.root.join(&project);
            if project == EVERYWHERE {
                self.files(&path, &mut all)?;
                continue;
            }
            for role in self.directories(&path)? {
                self.files(&path.join(role), &mut all)?;
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn names(&self, directory: &Path) -> Result<Vec<String>, StoreError> {
        let listed = durable::list_at_most(directory, MAX_FILES);
        let (names, _) = listed
            .map_err(|why| StoreError::Unreadable { path: durable::shown(directory).to_string(), why })?;
        Ok(names
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect())
    }

    fn directories(&self, directory: &Path) -> Result<Vec<String>, StoreError> {
        let mut names = self.names(directory)?;
        // A link leads elsewhere: nothing of ours.
        names.retain(|name| matches!(durable::kind(&directory.join(name)), Ok(Some(FileType::Directory))));
        Ok(names)
    }

    fn files(&self, directory: &Path, all: &mut Vec<Kept>) -> Result<(), StoreError> {
        for (directory, is_archived) in [(directory.to_owned(), false), (directory.join(ARCHIVE), true)] {
            for name in self.names(&directory)? {
                let Some(stem) = name.strip_suffix(".md") else { continue };
                let below = directory.strip_prefix(&self.root).unwrap_or(&directory).join(stem);
                let memory = match durable::read_private(&directory.join(&name), MAX_BYTES) {
                    Ok(bytes) => std::str::from_utf8(&bytes)
                        .ok()
                        .and_then(Memory::parse)
                        .ok_or_else(|| "its front matter is not what it should be".to_owned()),
                    Err(why) => Err(why.to_string()),
                };
                all.push(Kept { name: below.to_string_lossy().into_owned(), memory, is_archived });
            }
        }
        Ok(())
    }

    /// The one whose name ends with `wanted`, from a slash on; or whose whole name that is.
    ///
    /// # Errors
    /// [`StoreError`] where there is none or several.
    pub fn find(&self, wanted: &str) -> Result<Kept, StoreError> {
        let wanted = wanted.strip_suffix(".md").unwrap_or(wanted);
        let is_meant = |kept: &Kept| {
            kept.name.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let mut found: Vec<Kept> = self.list()?.into_iter().filter(is_meant).collect();
        match found.pop() {
            Some(kept) if found.is_empty() => Ok(kept),
            last => Err(StoreError::Ambiguous(found.len() + usize::from(last.is_some()))),
        }
    }

    /// The path of what is kept under `name`, safe to print.
    pub fn shown(&self, name: &str) -> String {
        durable::shown(&self.path(name)).to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.md"))
    }

    /// Keeps a new one; its name.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is kept then.
    pub fn add(&self, memory: &Memory) -> Result<String, StoreError> {
        let place = memory.place();
        let directory = place.iter().fold(self.root.clone(), |path, part| path.join(part));
        durable::ensure_directories(&self.base, &directory)?;
        let file = memory.to_file();
        for nth in 0..MAX_SAME {
            let path = directory.join(memory.file_name(nth));
            let temporary = durable::temporary(&path, "tmp");
            durable::create(&temporary, file.as_bytes())?;
            match durable::rename_new(&temporary, &path) {
                Ok(true) => {
                    durable::sync_parent(&path)?;
                    let below = path.strip_prefix(&self.root).unwrap_or(&path).with_extension("");
                    return Ok(below.to_string_lossy().into_owned());
                }
                other => {
                    durable::unlink(&temporary)?;
                    other?;
                }
            }
        }
        Err(StoreError::TooMany)
    }

    /// Writes `memory` in the place of what is kept under `name`.
    ///
    /// # Errors
    /// [`StoreError`]; what was there stays then.
    pub fn update(&self, name: &str, memory: &Memory) -> Result<(), StoreError> {
        Ok(durable::publish(&self.path(name), memory.to_file().as_bytes())?)
    }

    /// Has the memory `kept` learn how a run ended, and puts it away once it is spent at `now`, in
    /// milliseconds; how it stands then.
    ///
    /// # Errors
    /// [`StoreError`] where it is put away already, can't be used, or the disk fails.
    pub fn learn(&self, kept: &Kept, outcome: Outcome, now: u64) -> Result<Kept, StoreError> {
        let mut memory = kept.memory.clone().map_err(StoreError::Unusable)?;
        if kept.is_archived {
            return Err(StoreError::Unusable("it was put away".to_owned()));
        }
        memory.learn(outcome);
        self.update(&kept.name, &memory)?;
        let is_archived = memory.is_spent(now);
        let name = if is_archived { self.archive(kept)? } else { kept.name.clone() };
        Ok(Kept { name, memory: Ok(memory), is_archived })
    }

    /// Puts one away, deleting nothing; its new name.
    ///
    /// # Errors
    /// [`StoreError`]; it stays where it was then.
    pub fn archive(&self, kept: &Kept) -> Result<String, StoreError> {
        if kept.is_archived {
            return Err(StoreError::Unusable("it is put away already".to_owned()));
        }
        let from = self.path(&kept.name);
        let (Some(directory), Some(file)) = (from.parent(), from.file_name()) else {
            return Err(StoreError::Unusable("it has no name".to_owned()));
        };
        let archive = directory.join(ARCHIVE);
        durable::ensure_directories(&self.base, &archive)?;
        let to = archive.join(file);
        if !durable::rename_new(&from, &to)? {
            return Err(StoreError::Unusable("another of its name was put away before".to_owned()));
        }
        durable::sync_directory(directory)?;
        durable::sync_directory(&archive)?;
        let below = to.strip_prefix(&self.root).unwrap_or(&to).with_extension("");
        Ok(below.to_string_lossy().into_owned())
    }
}
