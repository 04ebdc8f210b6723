//! System calls that leave nothing half done: private files, no-follow opens, publication by
//! temporary file, fsync and rename.

use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use super::crash_step;
use crate::contract::{Untrusted, Uuid};

/// Mode of our directories.
pub const DIRECTORY_MODE: RawMode = 0o700;
/// Mode of our files.
pub const FILE_MODE: RawMode = 0o600;

/// A system call that failed: which, on what, why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: can't {operation} {}", path.display())]
pub struct DiskError {
    /// What was tried.
    pub operation: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// The system's answer.
    pub reason: Errno,
}

impl DiskError {
    /// Whether the disk (or a quota) is full.
    pub fn is_full(&self) -> bool {
        self.reason == Errno::NOSPC || self.reason == Errno::DQUOT
    }

    /// Whether what was worked on is not there.
    pub fn is_missing(&self) -> bool {
        self.reason == Errno::NOENT
    }

    /// That an advisory lock on `path` was refused, other than because another process has it.
    pub(crate) fn flock(path: &Path, reason: Errno) -> Self {
        let operation = match reason {
            Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS => "use flock, which its file system lacks, on",
            _ => "lock",
        };
        Self { operation, path: path.to_owned(), reason }
    }

    fn on<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(Errno) -> Self + use<'a> {
        move |reason| Self { operation, path: path.to_owned(), reason }
    }

    /// What the standard library says of `operation` on `path`.
    pub(crate) fn io<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<'a> {
        move |error| Self {
            operation,
            path: path.to_owned(),
            reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        }
    }
}

/// Why a file is not read: it is left where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not there.
    #[error("it is not there")]
    Missing,
    /// It is a symbolic link.
    #[error("it is a symbolic link")]
    Symlink,
    /// It is a directory, FIFO, socket or device.
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
    /// It is no directory, where one is needed.
    #[error("it is not a directory")]
    NotDirectory,
    /// Another user owns it.
    #[error("it belongs to user {0}")]
    ForeignOwner(u32),
    /// Group or others may write it.
    #[error("others may write it (mode {0:04o}); chmod 600 it if it is yours")]
    WritableByOthers(RawMode),
    /// It has another name besides this one.
    #[error("it has {0} names (hard links)")]
    HardLinked(u64),
    /// It has more bytes than its kind may have.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// It has more entries than are looked at.
    #[error("it has more than {0} entries")]
    TooMany(usize),
    /// The system refused.
    #[error(transparent)]
    Disk(DiskError),
}

impl Unreadable {
    /// Whether a later try may well succeed.
    pub fn is_passing(&self) -> bool {
        matches!(self, Unreadable::Disk(_) | Unreadable::Missing)
    }

    /// What is wrong: a stable name.
    pub fn verdict(&self) -> &'static str {
        match self {
            Unreadable::Missing => "missing",
            Unreadable::Symlink => "symlink",
            Unreadable::NotRegular(_) => "not_regular",
            Unreadable::NotDirectory => "not_a_directory",
            Unreadable::ForeignOwner(_) => "other_owner",
            Unreadable::WritableByOthers(_) => "writable_by_others",
            Unreadable::HardLinked(_) => "hard_linked",
            Unreadable::TooLarge(_) => "too_large",
            Unreadable::TooMany(_) => "too_many",
            Unreadable::Disk(_) => "unreadable",
        }
    }
}

/// Reads a private file of at most `limit` bytes: regular, ours, one name, not writable by others,
/// not through a symbolic link. Never blocks on a FIFO.
pub fn read_private(path: &Path, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let file = open_to_read(path)?;
    let length = file.metadata().map_or(0, |found| found.len() as usize);
    let mut bytes = Vec::with_capacity(length.min(limit + 1));
    file.take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Unreadable::Disk(DiskError::io("read", path)(error)))?;
    if bytes.len() > limit { Err(Unreadable::TooLarge(limit)) } else { Ok(bytes) }
}

/// Opens a private file to read; refuses what [`read_private`] does, but for its size.
pub fn open_to_read(path: &Path) -> Result<std::fs::File, Unreadable> {
    open_checked(path, OFlags::RDONLY)
}

/// Opens a private file to read and write, made if missing; refuses what [`read_private`] does.
/// Never blocks on a FIFO.
pub fn open_private(path: &Path) -> Result<std::fs::File, Unreadable> {
    open_checked(path, OFlags::RDWR | OFlags::CREATE)
}

/// The same, and whatever is written goes to its end, whoever else wrote there meanwhile.
pub fn open_to_append(path: &Path) -> Result<std::fs::File, Unreadable> {
    open_checked(path, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)
}

fn open_checked(path: &Path, flags: OFlags) -> Result<std::fs::File, Unreadable> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match fs::open(path, flags, Mode::from_raw_mode(FILE_MODE)) {
        Ok(fd) => fd,
        Err(Errno::NOENT) if !flags.contains(OFlags::CREATE) => return Err(Unreadable::Missing),
        Err(Errno::LOOP) => return Err(Unreadable::Symlink),
        Err(Errno::ISDIR) => return Err(Unreadable::NotRegular("a directory")),
        // What the open of a socket answers.
        Err(Errno::NXIO) => return Err(Unreadable::NotRegular("a socket")),
        Err(reason) => return Err(Unreadable::Disk(DiskError::on("open", path)(reason))),
    };
    let stat = fs::fstat(&fd).map_err(|reason| Unreadable::Disk(DiskError::on("look at", path)(reason)))?;
    check_private(&stat)?;
    Ok(fd.into())
}

/// The same for a file that exists.
pub fn open_existing_to_append(path: &Path) -> Result<std::fs::File, Unreadable> {
    open_checked(path, OFlags::RDWR | OFlags::APPEND)
}

fn check_private(stat: &fs::Stat) -> Result<(), Unreadable> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(Unreadable::NotRegular(kind_name(kind)));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Unreadable::ForeignOwner(stat.st_uid));
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Unreadable::WritableByOthers(mode));
    }
    // A file that was unlinked after the open has no name: what was read is still whole.
    // Its type is another on other systems.
    #[allow(clippy::unnecessary_cast)]
    let names = stat.st_nlink as u64;
    if names > 1 {
        return Err(Unreadable::HardLinked(names));
    }
    Ok(())
}

pub(crate) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}

/// What stands at a path, not following a link.
pub fn kind(path: &Path) -> Result<Option<FileType>, DiskError> {
    match fs::lstat(path) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(reason) => Err(DiskError::on("look at", path)(reason)),
    }
}

/// The names in a directory of ours, in no order; none where it does not exist.
pub fn list(path: &Path) -> Result<Vec<OsString>, Unreadable> {
    list_at_most(path, usize::MAX).map(|(names, _)| names)
}

/// The same, at most `limit` of them, and whether those are all.
pub fn list_at_most(path: &Path, limit: usize) -> Result<(Vec<OsString>, bool), Unreadable> {
    let dir = match open_directory(path) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok((Vec::new(), true)),
        Err(Errno::LOOP) => return Err(Unreadable::Symlink),
        Err(Errno::NOTDIR) => {
            return Err(match kind(path) {
                Ok(Some(FileType::Symlink)) => Unreadable::Symlink,
                _ => Unreadable::NotDirectory,
            });
        }
        Err(reason) => return Err(Unreadable::Disk(DiskError::on("open", path)(reason))),
    };
    let disk = |reason| Unreadable::Disk(DiskError::on("list", path)(reason));
    let stat = fs::fstat(&dir).map_err(disk)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Unreadable::ForeignOwner(stat.st_uid));
    }
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(&dir).map_err(disk)? {
        use std::os::unix::ffi::OsStringExt;
        let entry = entry.map_err(disk)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            if names.len() == limit {
                return Ok((names, false));
            }
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    Ok((names, true))
}

/// Where a directory really is, links followed; where that can't be found out, its path with `.` and
/// `..` resolved. Relative paths stay as they are.
pub fn real_directory(path: &Untrusted) -> Untrusted {
    use std::os::unix::ffi::OsStrExt;
    let text = path.to_str_lossy();
    let given = Path::new(text.as_ref());
    if !given.is_absolute() {
        return path.clone();
    }
    let real = std::fs::canonicalize(given).unwrap_or_else(|_| super::layout::normalize(given));
    Untrusted::from_bytes_lossy(real.as_os_str().as_bytes())
}

pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Makes the directories from below `base` to `path`, each 0700, restoring that mode where another
/// is found. Refuses one that is a link or another user's. `base` itself is made if missing but
/// otherwise left as it is.
pub fn ensure_directories(base: &Path, path: &Path) -> Result<(), DiskError> {
    if kind(base)?.is_none() {
        std::fs::DirBuilder::new().recursive(true).create(base).map_err(DiskError::io("make", base))?;
        set_mode(base, DIRECTORY_MODE)?;
    }
    let Ok(below) = path.strip_prefix(base) else {
        return Err(DiskError::on("make", path)(Errno::INVAL));
    };
    let mut current = base.to_owned();
    for part in below {
        current.push(part);
        ensure_directory(&current)?;
    }
    Ok(())
}

/// Makes one directory, or restores its mode.
pub fn ensure_directory(path: &Path) -> Result<(), DiskError> {
    match fs::mkdir(path, Mode::from_raw_mode(DIRECTORY_MODE)) {
        Ok(()) => return sync_parent(path),
        Err(Errno::EXIST) => {}
        Err(reason) => return Err(DiskError::on("make", path)(reason)),
    }
    let stat = fs::lstat(path).map_err(DiskError::on("look at", path))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(DiskError::on("use as a directory", path)(Errno::NOTDIR));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(DiskError::on("use another user's directory", path)(Errno::ACCESS));
    }
    if stat.st_mode & 0o7777 != DIRECTORY_MODE {
        set_mode(path, DIRECTORY_MODE)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: RawMode) -> Result<(), DiskError> {
    fs::chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
        .map_err(DiskError::on("set the mode of", path))
}

/// A private file of a name that is ours alone, not written yet.
pub(super) struct Created<'a> {
    fd: OwnedFd,
    path: &'a Path,
}

impl<'a> Created<'a> {
    /// One that must not exist.
    pub(super) fn new(path: &'a Path) -> Result<Self, DiskError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd =
            fs::open(path, flags, Mode::from_raw_mode(FILE_MODE)).map_err(DiskError::on("create", path))?;
        Ok(Self { fd, path })
    }

    /// Writes it and makes it durable; on an error it is gone.
    pub(super) fn write(self, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.path;
        let write = || -> Result<(), DiskError> {
            let mode = Mode::from_raw_mode(FILE_MODE);
            fs::fchmod(&self.fd, mode).map_err(DiskError::on("set the mode of", path))?;
            let mut file = std::fs::File::from(self.fd);
            file.write_all(bytes).map_err(DiskError::io("write", path))?;
            file.sync_all().map_err(DiskError::io("sync", path))
        };
        let written = write();
        if written.is_err() {
            // What can't be removed now harms nobody.
            let _ = fs::unlink(path);
        }
        written
    }
}

/// Creates a private file that must not exist, writes it and makes it durable.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let created = Created::new(path)?;
    crash_step!("created");
    created.write(bytes)?;
    crash_step!("written");
    Ok(())
}

/// Publishes `bytes` at `path`, replacing what stands there: temporary file, fsync, rename, fsync
/// of the directory. Whole or not at all.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    publish_through(&temporary(path, "tmp"), path, bytes)
}

/// The same through a temporary file of the caller's naming.
pub fn publish_through(temporary: &Path, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    place(temporary, path, bytes)?;
    sync_parent(path)?;
    crash_step!("synced");
    Ok(())
}

/// The same without the last step: on success it stands there, and [`sync_parent`] makes it last.
pub fn place(temporary: &Path, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    create(temporary, bytes)?;
    let placed = rename(temporary, path);
    if placed.is_err() {
        // The name is ours alone.
        let _ = fs::unlink(temporary);
    }
    placed?;
    crash_step!("placed");
    Ok(())
}

/// A fresh hidden sibling: `.<file name>.<UUID>.<suffix>`.
pub fn temporary(path: &Path, suffix: &str) -> PathBuf {
    hidden(path, Uuid::random(), suffix)
}

/// The hidden sibling of that id.
pub fn hidden(path: &Path, id: Uuid, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{id}.{suffix}"));
    path.with_file_name(name)
}

/// Renames, replacing a file at `to`.
pub fn rename(from: &Path, to: &Path) -> Result<(), DiskError> {
    fs::rename(from, to).map_err(DiskError::on("move into place", to))
}

/// Renames unless something stands at `to`, an empty directory included; says whether it did.
pub fn rename_new(from: &Path, to: &Path) -> Result<bool, DiskError> {
    match fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
        Err(reason) => Err(DiskError::on("move into place, replacing nothing,", to)(reason)),
    }
}

/// Unlinks a file; says whether it was there.
pub fn unlink(path: &Path) -> Result<bool, DiskError> {
    match fs::unlink(path) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(reason) => Err(DiskError::on("remove", path)(reason)),
    }
}

/// Removes an empty directory.
pub fn remove_directory(path: &Path) -> Result<(), DiskError> {
    fs::rmdir(path).map_err(DiskError::on("remove", path))
}

/// Makes a fresh private directory.
pub fn create_directory(path: &Path) -> Result<(), DiskError> {
    fs::mkdir(path, Mode::from_raw_mode(DIRECTORY_MODE)).map_err(DiskError::on("make", path))
}

/// Makes what was renamed, made or removed in the directory of `path` durable.
pub fn sync_parent(path: &Path) -> Result<(), DiskError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    sync_directory(parent)
}

/// Makes the entries of a directory durable.
pub fn sync_directory(path: &Path) -> Result<(), DiskError> {
    // Without NOFOLLOW: the parent may be a directory the user chose by link.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = fs::open(path, flags, Mode::empty()).map_err(DiskError::on("open", path))?;
    fs::fsync(&dir).map_err(DiskError::on("sync", path))
}

/// A path to show in a message, safe to print.
pub fn shown(path: &Path) -> impl fmt::Display {
    use std::os::unix::ffi::OsStrExt;
    Untrusted::from_bytes_lossy(path.as_os_str().as_bytes()).escaped().to_string()
}
