//! Where the lines of turns go: a file a seat, one append each.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::metrics::Line;
use crate::disk::durable::{self, DiskError, Unreadable};

/// Where turns are logged, and where logs are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLogs {
    /// Where ours are written.
    pub ours: PathBuf,
    /// Whether the user named that directory: then its mode is the user's, too.
    pub is_named: bool,
    /// Where other programs write theirs; only read.
    pub others: Vec<PathBuf>,
}

/// Why a line could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not one of ours alone.
    #[error("{}: {reason}", durable::shown(path))]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: Unreadable,
    },
}

impl TurnLogs {
    /// Every directory to read, ours first, none twice.
    pub fn directories(&self) -> Vec<&Path> {
        let mut all = vec![self.ours.as_path()];
        all.extend(self.others.iter().map(PathBuf::as_path).filter(|other| *other != self.ours));
        all
    }

    /// Makes our directory.
    ///
    /// # Errors
    /// The disk's.
    pub fn make(&self) -> Result<(), DiskError> {
        durable::ensure_directories(&self.ours, &self.ours)?;
        if self.is_named { Ok(()) } else { durable::ensure_directory(&self.ours) }
    }

    /// Opens the file of `seat`, made if missing, to append to it.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn open(&self, seat: &str) -> Result<(PathBuf, File), LogError> {
        let path = self.ours.join(format!("{seat}.jsonl"));
        match durable::open_to_append(&path) {
            Ok(file) => Ok((path, file)),
            Err(reason) => Err(LogError::Unusable { path, reason }),
        }
    }

    /// Appends `line` to its seat's file.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn append(&self, line: &Line) -> Result<(), LogError> {
        self.make()?;
        let (path, mut file) = self.open(&line.seat)?;
        let failed = |error| LogError::Disk(DiskError::io("append to", &path)(error));
        // A line that a crash cut off ends here, so that it takes no other with it.
        let mut bytes = if ends_within_a_line(&mut file).map_err(failed)? { vec![b'\n'] } else { Vec::new() };
        bytes.extend(line.to_bytes());
        file.write_all(&bytes).map_err(failed)
    }
}

fn ends_within_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    Ok(file.read(&mut last)? == 1 && last[0] != b'\n')
}
