//! Files that a person names, to attach or to configure with: anybody's, of any mode, through
//! links. Only regular ones are opened, and never more is read than was asked for.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::durable::{DiskError, Unreadable, kind_name};

/// A regular file as it was found: where it really is, and how large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    path: PathBuf,
    bytes: u64,
    device: u64,
    inode: u64,
}

/// Finds the regular file that `path` leads to, over links. It can be opened for reading, but
/// nothing is read yet.
///
/// # Errors
/// [`Unreadable`]: `Missing`, `NotRegular` or `Disk`. A FIFO is not waited for, and neither a FIFO
/// nor a device is opened.
pub fn look(path: &Path) -> Result<Seen, Unreadable> {
    let (path, _, found) = open_at_its_end(path)?;
    Ok(Seen { path, bytes: found.len(), device: found.dev(), inode: found.ino() })
}

impl Seen {
    /// Its real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The whole content, of exactly [`Seen::bytes`] bytes; none if another file stands there by
    /// now, or its size changed since it was found or while it was read. What is overwritten in
    /// place meanwhile is not noticed.
    ///
    /// # Errors
    /// [`Unreadable`] as for [`look`], and `TooLarge` where it was found larger than `limit` bytes:
    /// then nothing is read.
    pub fn read(&self, limit: usize) -> Result<Option<Vec<u8>>, Unreadable> {
        let size = usize::try_from(self.bytes).ok().filter(|size| *size <= limit);
        let size = size.ok_or(Unreadable::TooLarge(limit))?;
        let (file, before) = open(&self.path)?;
        if (before.dev(), before.ino(), before.len()) != (self.device, self.inode, self.bytes) {
            return Ok(None);
        }
        let bytes = take(&file, &self.path, size)?;
        let after = file.metadata().map_err(|error| disk("look at", &self.path, &error))?;
        Ok((bytes.len() == size && after.len() == self.bytes).then_some(bytes))
    }
}

/// Reads the regular file that `path` leads to, over links, if it has at most `limit` bytes.
///
/// # Errors
/// [`Unreadable`] as for [`look`], and `TooLarge`.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let (path, file, _) = open_at_its_end(path)?;
    let bytes = take(&file, &path, limit)?;
    if bytes.len() > limit { Err(Unreadable::TooLarge(limit)) } else { Ok(bytes) }
}

/// At most `limit` bytes, and one more if there is one.
fn take(file: &File, path: &Path, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| disk("read", path, &error))?;
    Ok(bytes)
}

fn open_at_its_end(path: &Path) -> Result<(PathBuf, File, Metadata), Unreadable> {
    let real = std::fs::canonicalize(path).map_err(|error| disk("find", path, &error))?;
    let (file, found) = open(&real)?;
    Ok((real, file, found))
}

/// Opens a real path. What stood there is looked at first, because opening a device may set it to
/// work; and again once it is open, because it may have been replaced in between.
fn open(path: &Path) -> Result<(File, Metadata), Unreadable> {
    let regular = |found: Metadata| match FileType::from_raw_mode(found.mode()) {
        FileType::RegularFile => Ok(found),
        kind => Err(Unreadable::NotRegular(kind_name(kind))),
    };
    regular(std::fs::symlink_metadata(path).map_err(|error| disk("look at", path, &error))?)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(reason) => return Err(disk("open", path, &reason.into())),
    };
    let found = file.metadata().map_err(|error| disk("look at", path, &error))?;
    Ok((file, regular(found)?))
}

fn disk(operation: &'static str, path: &Path, error: &std::io::Error) -> Unreadable {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => Unreadable::Missing,
        reason => Unreadable::Disk(DiskError {
            operation,
            path: path.to_owned(),
            // What the system was not even asked: a path with a NUL in it.
            reason: reason.unwrap_or(Errno::INVAL),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &[u8]) -> (tempfile::TempDir, PathBuf, Seen) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, content).unwrap();
        let seen = look(&path).unwrap();
        (dir, path, seen)
    }

    #[test]
    fn a_file_is_read_as_it_was_found() {
        let (_dir, path, seen) = found(b"hello");
        assert_eq!((seen.bytes(), seen.path()), (5, std::fs::canonicalize(&path).unwrap().as_path()));
        assert_eq!(seen.read(5), Ok(Some(b"hello".to_vec())));
        assert_eq!(seen.read(4), Err(Unreadable::TooLarge(4)));
        assert_eq!(read(&path, 5), Ok(b"hello".to_vec()));
        assert_eq!(read(&path, 4), Err(Unreadable::TooLarge(4)));
    }

    #[test]
    fn a_file_that_changed_since_it_was_found_has_no_content() {
        for change in [&b"hello!"[..], b"hell", b""] {
            let (_dir, path, seen) = found(b"hello");
            std::fs::write(&path, change).unwrap();
            assert_eq!(seen.read(100), Ok(None), "{change:?}");
        }
        // Another file of the same size under the same name.
        let (dir, path, seen) = found(b"hello");
        std::fs::write(dir.path().join("b"), b"HELLO").unwrap();
        std::fs::rename(dir.path().join("b"), &path).unwrap();
        assert_eq!(seen.read(100), Ok(None));
    }

    #[test]
    fn what_went_or_became_something_else_is_refused() {
        let (dir, path, seen) = found(b"hello");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(seen.read(100), Err(Unreadable::Missing));
        std::fs::create_dir(&path).unwrap();
        assert_eq!(seen.read(100), Err(Unreadable::NotRegular("a directory")));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(dir.path().join("b"), b"HELLO").unwrap();
        std::os::unix::fs::symlink("b", &path).unwrap();
        assert_eq!(seen.read(100), Err(Unreadable::NotRegular("a symbolic link")));
        std::fs::remove_file(&path).unwrap();
        fs::mknodat(fs::CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(seen.read(100), Err(Unreadable::NotRegular("a FIFO")));
    }

    #[test]
    fn a_path_with_a_nul_is_an_error_like_any_other() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/a\0b"));
        let Err(Unreadable::Disk(error)) = look(path) else { panic!() };
        assert_eq!(error.reason, Errno::INVAL);
    }
}
