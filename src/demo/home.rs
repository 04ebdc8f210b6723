//! The directory a demo lives in, and the end of those whose demo is dead.
//!
//! A demo marks its directory with a file it holds a lock on for as long as it lives. Who gets that
//! lock knows that the demo is dead, however it died, and may sweep what it left.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::random::Random;
use super::session::now;
use crate::disk::durable::shown;

/// What directories made here are called, before a random part.
const PREFIX: &str = "headman-demo-";
/// The file that says a directory is a demo's.
const MARK: &str = ".headman-demo";
/// Its beginning; the rest names the process.
const MARK_TEXT: &str = "headman demo\n";
/// Where the socket is below the directory, as Herdr has it for a session named `demo`.
const SOCKET: &str = "herdr/sessions/demo/herdr.sock";
/// Longest path of a socket, in bytes: one less than the shortest `sun_path` in use.
const MAX_SOCKET: usize = 103;
/// What is made in a directory, and all that is swept from one that was given.
const PARTS: [&str; 5] = ["agent", "herdr", "home", "state", "work"];

/// Why there is no directory to live in.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The system refused.
    #[error("can't {operation} {}: {why}", shown(path))]
    Disk {
        /// What was tried.
        operation: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's answer.
        why: io::Error,
    },
    /// A socket in it would have too long a path.
    #[error("{} is {surplus} bytes too long for a socket in it", shown(path))]
    TooLong {
        /// The directory.
        path: PathBuf,
        /// By how many bytes.
        surplus: usize,
    },
    /// Its path is no text.
    #[error("{} is not UTF-8, which a lead could not be told", shown(.0))]
    NotText(PathBuf),
    /// Something else is in it.
    #[error("{} is not empty and no demo's", shown(.0))]
    Foreign(PathBuf),
    /// Another demo lives in it.
    #[error("another demo runs in {}", shown(.0))]
    Occupied(PathBuf),
}

impl HomeError {
    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Disk { .. } => "Choose another directory with --dir",
            Self::TooLong { .. } => "Choose a shorter one with --dir",
            Self::NotText(_) => "Choose another with --dir",
            Self::Foreign(_) => "Choose an empty or a new one with --dir",
            Self::Occupied(_) => "End it, or choose another directory with --dir",
        }
    }
}

fn on<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> HomeError + use<'a> {
    move |why| HomeError::Disk { operation, path: path.to_owned(), why }
}

/// A directory of this demo's own, until dropped.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    /// Held for its lock.
    _mark: File,
    made: bool,
}

impl Home {
    /// Makes a directory under the system's temporary one, after sweeping there what dead demos
    /// left; or uses `given`, which is made if missing and must otherwise be empty or a dead demo's.
    ///
    /// # Errors
    /// [`HomeError`].
    pub fn make(given: Option<&Path>) -> Result<Self, HomeError> {
        match given {
            Some(given) => Self::make_in(given),
            None => {
                // Another temporary directory only where a socket's path would not fit.
                let base = [std::env::temp_dir(), PathBuf::from("/tmp")]
                    .into_iter()
                    .find(|base| {
                        base.as_os_str().len() + 1 + PREFIX.len() + 8 + 1 + SOCKET.len() <= MAX_SOCKET
                    })
                    .unwrap_or_else(|| PathBuf::from("/tmp"));
                sweep(&base);
                let mut random = Random::new(now() ^ u64::from(std::process::id()), 0);
                loop {
                    let path = base.join(format!("{PREFIX}{}", random.hex(8)));
                    match DirBuilder::new().mode(0o700).create(&path) {
                        Ok(()) => return Self::mark(path, true),
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(on("make", &path)(error)),
                    }
                }
            }
        }
    }

    fn make_in(given: &Path) -> Result<Self, HomeError> {
        let path = std::path::absolute(given).map_err(on("find", given))?;
        if path.to_str().is_none() {
            return Err(HomeError::NotText(path));
        }
        let length = path.as_os_str().len() + 1 + SOCKET.len();
        if length > MAX_SOCKET {
            return Err(HomeError::TooLong { path, surplus: length - MAX_SOCKET });
        }
        let made = !path.exists();
        if made {
            DirBuilder::new().mode(0o700).recursive(true).create(&path).map_err(on("make", &path))?;
            return Self::mark(path, true);
        }
        let mark = path.join(MARK);
        if mark.symlink_metadata().is_ok() {
            let Some(_lock) = lock_dead(&mark) else { return Err(HomeError::Occupied(path)) };
            for part in PARTS {
                remove(&path.join(part)).map_err(on("remove", &path))?;
            }
            std::fs::remove_file(&mark).map_err(on("remove", &mark))?;
        } else if std::fs::read_dir(&path).map_err(on("list", &path))?.next().is_some() {
            return Err(HomeError::Foreign(path));
        }
        Self::mark(path, false)
    }

    /// Marks it, under another name until the lock is held: a mark without one says "dead".
    fn mark(path: PathBuf, made: bool) -> Result<Self, HomeError> {
        let new = path.join(format!("{MARK}.new"));
        let mut mark = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .map_err(on("create", &new))?;
        fs2::FileExt::try_lock_exclusive(&mark).map_err(on("lock", &new))?;
        mark.write_all(format!("{MARK_TEXT}{}\n", std::process::id()).as_bytes())
            .map_err(on("write", &new))?;
        std::fs::rename(&new, path.join(MARK)).map_err(on("move", &new))?;
        let home = Self { path, _mark: mark, made };
        for part in PARTS.into_iter().map(Path::new).chain(Path::new(SOCKET).parent()) {
            let part = home.path.join(part);
            DirBuilder::new().mode(0o700).recursive(true).create(&part).map_err(on("make", &part))?;
        }
        Ok(home)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where Herdr's socket is to be.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// One of the directories in it.
    pub fn part(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Home {
    /// Removes it, unless it was there before or somebody else put something into it.
    fn drop(&mut self) {
        if self.made
            && let Err(error) = remove_marked(&self.path)
        {
            // The next demo sweeps what is left.
            tracing::warn!(%error, "removing the demo's directory");
        }
    }
}

/// Removes what dead demos of this user left in `base`; how many directories that were.
pub fn sweep(base: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(base) else { return 0 };
    let leavings = entries.filter_map(Result::ok).filter(|entry| {
        let is_ours = |metadata: std::fs::Metadata| {
            metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
        };
        entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.path().symlink_metadata().is_ok_and(is_ours)
    });
    let mut swept = 0;
    for leaving in leavings {
        let path = leaving.path();
        let Some(_lock) = lock_dead(&path.join(MARK)) else { continue };
        // What can't be removed now keeps its mark, for the next time.
        swept += usize::from(remove_marked(&path).is_ok());
    }
    swept
}

/// The lock of a mark, if it is one, ours, and its demo is dead.
fn lock_dead(mark: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(mark).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    fs2::FileExt::try_lock_exclusive(&file).ok()?;
    let mut text = String::new();
    (&mut file).take(64).read_to_string(&mut text).ok()?;
    text.starts_with(MARK_TEXT).then_some(file)
}

/// Removes what a demo makes in its directory, its mark last, and then the directory, unless
/// something else is in it: that is somebody's, and stays with the directory.
fn remove_marked(path: &Path) -> io::Result<()> {
    for part in PARTS {
        remove(&path.join(part))?;
    }
    std::fs::remove_file(path.join(MARK))?;
    match std::fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => other,
    }
}

/// Removes whatever stands at `path`, if anything does, following no link.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("hm").tempdir_in("/tmp").unwrap()
    }

    #[test]
    fn only_a_dead_demos_own_directory_is_swept() {
        let base = temporary();
        let at = |name: &str| base.path().join(name);
        let make = |name: &str| std::fs::create_dir(at(name)).unwrap();
        // Alive: its lock is held.
        make("headman-demo-alive");
        let alive = Home::mark(at("headman-demo-alive"), true).unwrap();
        // Dead: marked, and nobody holds the lock.
        make("headman-demo-dead");
        drop(Home::mark(at("headman-demo-dead"), false).unwrap());
        std::fs::write(at("headman-demo-dead/work/file"), "x").unwrap();
        // Somebody's, whatever it is called.
        make("headman-demo-unmarked");
        make("headman-demo-forged");
        std::fs::write(at("headman-demo-forged").join(MARK), "something else\n").unwrap();
        make("other");
        std::fs::write(at("other").join(MARK), MARK_TEXT).unwrap();
        // A link to a marked directory.
        std::os::unix::fs::symlink(at("other"), at("headman-demo-link")).unwrap();

        assert_eq!(sweep(base.path()), 1);
        assert!(!at("headman-demo-dead").exists());
        for name in ["headman-demo-alive", "headman-demo-unmarked", "headman-demo-forged", "other"] {
            assert!(at(name).exists(), "{name}");
        }
        assert!(at("headman-demo-link").symlink_metadata().is_ok());
        drop(alive);
        assert!(!at("headman-demo-alive").exists());
    }

    #[test]
    fn a_given_directory_is_used_only_if_it_is_free_and_kept_if_it_was_there() {
        let base = temporary();
        let dir = base.path().join("d");
        let home = Home::make(Some(&dir)).unwrap();
        assert!(home.part("agent").is_dir());
        assert!(matches!(Home::make(Some(&dir)), Err(HomeError::Occupied(_))));
        drop(home);
        assert!(!dir.exists(), "made by the demo, so removed");

        std::fs::create_dir(&dir).unwrap();
        let home = Home::make(Some(&dir)).unwrap();
        std::fs::write(home.part("work").join("left"), "x").unwrap();
        drop(home);
        assert!(dir.join("work/left").exists());
        // A later demo takes over what a dead one left in it, and nothing else's place.
        let home = Home::make(Some(&dir)).unwrap();
        assert!(!dir.join("work/left").exists());
        drop(home);

        // What somebody puts beside the demo's own parts outlives it.
        std::fs::remove_dir_all(&dir).unwrap();
        let home = Home::make(Some(&dir)).unwrap();
        std::fs::write(dir.join("mine"), "x").unwrap();
        drop(home);
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);

        let foreign = base.path().join("f");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("mine"), "x").unwrap();
        assert!(matches!(Home::make(Some(&foreign)), Err(HomeError::Foreign(_))));
        assert!(foreign.join("mine").exists());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_by_its_surplus() {
        let base = temporary();
        let long = base.path().join("x".repeat(90));
        let Err(HomeError::TooLong { surplus, .. }) = Home::make(Some(&long)) else { panic!() };
        assert_eq!(long.as_os_str().len() + 1 + SOCKET.len() - surplus, MAX_SOCKET);
        assert!(!long.exists());
    }
}
