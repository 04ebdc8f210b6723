//! Where the control socket is, and who serves on it.
//!
//! Whoever has the lock beside the socket serves; the lock ends with its process, so a socket that
//! a crash left behind is known to be nobody's. Both files go when the one who serves ends.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{UnixListener, UnixStream};

use super::client::{ConnectError, Connection};
use crate::contract::text::sha256_hex;
use crate::disk::durable;

/// Longest path of a socket: what the smaller of the systems takes, with its end.
const MAX_PATH: usize = 103;
/// How long whoever has the lock may take until it listens.
const BINDS: Duration = Duration::from_secs(1);

/// Why nobody can be found on the socket, or served on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// Its directory is not ours alone.
    #[error("{} {why}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Its path is too long for a socket.
    #[error("{} is too long for a socket: set XDG_RUNTIME_DIR or TMPDIR to a shorter directory", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// It was removed from under us, and another process was there before it stood again.
    #[error("{} was removed, and {} now", path.display(), pid.map_or_else(|| "something else is there".to_owned(), |pid| format!("process {pid} has it")))]
    Taken {
        /// Who, where that is known.
        pid: Option<u32>,
        /// The socket.
        path: PathBuf,
    },
    /// Somebody serves there and does not answer.
    #[error("process {} serves on {} and does not answer: {why}", pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string()), path.display())]
    Silent {
        /// Who, where that is known.
        pid: Option<u32>,
        /// The socket.
        path: PathBuf,
        /// How it does not.
        why: ConnectError,
    },
}

impl SocketError {
    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            SocketError::Directory { .. } => "Remove it, or set XDG_RUNTIME_DIR to a directory of your own",
            SocketError::TooLong { .. } => "Set XDG_RUNTIME_DIR",
            SocketError::Io { .. } => "See `headman doctor`",
            SocketError::Taken { .. } => {
                "End that process, or remove what is there: the socket is made anew then"
            }
            SocketError::Silent { why: ConnectError::TimedOut, .. } => {
                "Bring it back to the foreground, or end it"
            }
            SocketError::Silent { .. } => "Try again in a moment",
        }
    }

    /// Whether somebody is there.
    pub fn is_silence(&self) -> bool {
        matches!(self, SocketError::Silent { .. })
    }
}

/// A control socket's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlSocket {
    path: PathBuf,
}

/// What we are to the service of a socket.
pub enum Door {
    /// We serve.
    Ours(Listening),
    /// Somebody else does.
    Theirs(Box<Connection>),
}

/// A socket we serve on, for as long as this lives.
pub struct Listening {
    pub(super) listener: UnixListener,
    place: ControlSocket,
    inode: u64,
    lock: File,
}

impl Listening {
    /// Where.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    fn has_socket(&self) -> bool {
        std::fs::symlink_metadata(self.path()).is_ok_and(|found| found.ino() == self.inode)
    }

    fn has_lock(&self) -> bool {
        (std::fs::symlink_metadata(self.place.lock_path()).ok().zip(self.lock.metadata().ok()))
            .is_some_and(|(there, ours)| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
    }

    /// Sees to it that lock and socket stand where others look for them: both may have been removed,
    /// with their directory, by whoever clears temporary files. Who is connected stays so.
    ///
    /// # Errors
    /// [`SocketError`]: they don't stand there, and can't now. What another has there is left to it.
    pub(super) async fn stand(&mut self) -> Result<(), SocketError> {
        let place = &self.place;
        if !self.has_lock() {
            place.ensure_directory()?;
            self.lock = place.take()?.ok_or_else(|| SocketError::Taken {
                pid: place.holder().filter(|pid| *pid != std::process::id()),
                path: place.path.clone(),
            })?;
        }
        if self.has_socket() {
            return Ok(());
        }
        let is_nobodys = match std::fs::symlink_metadata(&place.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(place.io(&error)),
            Ok(found) if found.file_type().is_socket() => {
                let connected = UnixStream::connect(&place.path).await;
                connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
            }
            Ok(_) => false,
        };
        if !is_nobodys {
            return Err(SocketError::Taken { pid: None, path: place.path.clone() });
        }
        (self.listener, self.inode) = place.bind()?;
        Ok(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Still under the lock, which goes last: nobody else of ours binds there now.
        if self.has_socket() {
            // One that stays is nobody's, and the next to have the lock removes it.
            let _ = std::fs::remove_file(self.path());
        }
        if self.has_lock() {
            let _ = std::fs::remove_file(self.place.lock_path());
        }
        // A process that another thread is just starting has this file too, until it is executed.
        let _ = fs2::FileExt::unlock(&self.lock);
    }
}

impl ControlSocket {
    /// That of the state directory `state` and the Herdr socket `herdr`: below `runtime`
    /// (`XDG_RUNTIME_DIR`), else in a directory of our own below `temporary`.
    pub fn find(state: &Path, herdr: &OsStr, runtime: Option<&Path>, temporary: &Path) -> Self {
        let state = real(state);
        let mut both = state.as_os_str().as_bytes().to_vec();
        both.push(0);
        both.extend_from_slice(herdr.as_bytes());
        let name = format!("{}.sock", &sha256_hex(&both)[..16]);
        let directory = match runtime.filter(|path| path.is_absolute()) {
            Some(runtime) => runtime.join("headman"),
            None => temporary.join(format!("headman-{}", rustix::process::geteuid().as_raw())),
        };
        Self { path: directory.join(name) }
    }

    /// That of this process's environment.
    pub fn of_environment(state: &Path, herdr: &OsStr) -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|it| !it.is_empty()).map(PathBuf::from);
        Self::find(state, herdr, runtime.as_deref(), &std::env::temp_dir())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects to who serves, if anybody does.
    ///
    /// # Errors
    /// [`SocketError`], [`SocketError::Silent`] among them.
    pub async fn connect(&self) -> Result<Option<Connection>, SocketError> {
        if self.path.as_os_str().len() > MAX_PATH {
            return Err(SocketError::TooLong { path: self.path.clone() });
        }
        let stream = match UnixStream::connect(&self.path).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(self.io(&error)),
        };
        let connection = Connection::begin(stream).await;
        connection.map(Some).map_err(|why| SocketError::Silent {
            pid: self.holder(),
            path: self.path.clone(),
            why,
        })
    }

    /// Serves, or connects to who does.
    ///
    /// # Errors
    /// [`SocketError`]: there is a service to be had by nobody else, or none that answers.
    pub async fn enter(&self) -> Result<Door, SocketError> {
        if self.path.as_os_str().len() > MAX_PATH {
            return Err(SocketError::TooLong { path: self.path.clone() });
        }
        self.ensure_directory()?;
        let began = std::time::Instant::now();
        loop {
            if let Some(lock) = self.take()? {
                return self.listen(lock).map(Door::Ours);
            }
            match self.connect().await? {
                Some(connection) => return Ok(Door::Theirs(Box::new(connection))),
                // It has the lock, and does not listen yet, or not any more.
                None if began.elapsed() < BINDS => tokio::time::sleep(Duration::from_millis(10)).await,
                None => {
                    return Err(SocketError::Silent {
                        pid: self.holder(),
                        path: self.path.clone(),
                        why: ConnectError::NotListening,
                    });
                }
            }
        }
    }

    fn ensure_directory(&self) -> Result<(), SocketError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let failed = |why: String| SocketError::Directory { path: directory.to_owned(), why };
        match std::fs::DirBuilder::new().mode(durable::DIRECTORY_MODE).create(directory) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(format!("can't be made: {error}"))),
        }
        // Not through a link: below a directory anybody may write to, it could be another's.
        let found = std::fs::symlink_metadata(directory).map_err(|error| failed(error.to_string()))?;
        if !found.is_dir() {
            return Err(failed("is no directory".to_owned()));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(failed(format!("belongs to user {}", found.uid())));
        }
        if found.mode() & 0o077 != 0 {
            let private = std::fs::Permissions::from_mode(durable::DIRECTORY_MODE);
            std::fs::set_permissions(directory, private).map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    fn lock_path(&self) -> PathBuf {
        self.path.with_extension("lock")
    }

    /// The lock, unless another process has it or has just removed it.
    fn take(&self) -> Result<Option<File>, SocketError> {
        let path = self.lock_path();
        let failed = |why: String| SocketError::Io { path: path.clone(), why };
        let mut file = durable::open_private(&path).map_err(|error| failed(error.to_string()))?;
        // By its full path: the standard library has methods of the same name.
        match fs2::FileExt::try_lock_exclusive(&file) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                return Ok(None);
            }
            Err(error) => return Err(failed(error.to_string())),
        }
        // The one who served before may have removed it between opening and locking.
        let is_there = (std::fs::symlink_metadata(&path).ok().zip(file.metadata().ok()))
            .is_some_and(|(there, ours)| there.ino() == ours.ino());
        if !is_there {
            return Ok(None);
        }
        let pid = format!("{}\n", std::process::id());
        let written = (file.set_len(0))
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(pid.as_bytes()));
        written.map_err(|error| failed(error.to_string()))?;
        Ok(Some(file))
    }

    /// Who has the lock, as it says itself.
    fn holder(&self) -> Option<u32> {
        let mut text = String::new();
        // Whatever stands there is not waited for.
        let file = durable::open_to_read(&self.lock_path()).ok()?;
        file.take(32).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    fn listen(&self, lock: File) -> Result<Listening, SocketError> {
        let (listener, inode) = self.bind()?;
        Ok(Listening { listener, place: self.clone(), inode, lock })
    }

    /// Listens, in place of what stands there.
    fn bind(&self) -> Result<(UnixListener, u64), SocketError> {
        match rustix::fs::unlink(&self.path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.io(&error.into())),
        }
        let listener = UnixListener::bind(&self.path).map_err(|error| self.io(&error))?;
        let private = std::fs::Permissions::from_mode(durable::FILE_MODE);
        std::fs::set_permissions(&self.path, private).map_err(|error| self.io(&error))?;
        let inode = std::fs::symlink_metadata(&self.path).map_err(|error| self.io(&error))?.ino();
        Ok((listener, inode))
    }

    fn io(&self, error: &std::io::Error) -> SocketError {
        SocketError::Io { path: self.path.clone(), why: error.to_string() }
    }
}

/// The same however the directory is spelt, and whether or not it is there yet.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(there) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (there.parent(), there.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                there = parent;
            }
            _ => return path.to_owned(),
        }
    }
}
