//! What several tests need: conditions with a deadline, processes that end with the test.

use std::future::Future;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use headman::demo::server::Server;
use headman::herdr::Client;

/// How long anything may take before a test fails: ample for a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Waits for a condition, asked every 10 ms.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = Instant::now() + DEADLINE;
    while !holds().await {
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A directory in memory, where there is such: for tests that sync again and again, and end processes
/// but not the system.
pub(crate) fn directory_in_memory() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hm").tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap()
}

/// Copies a tree of directories and files, with their modes.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The paths of everything below `root`, relative to it.
pub(crate) fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path.clone());
            }
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// A simulated Herdr in a directory of its own.
pub(crate) struct Herdr {
    pub(crate) server: Server,
    pub(crate) socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Herdr {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Socket paths are short: about 100 bytes.
        let socket = directory.path().join("h.sock");
        let server = Server::start(&socket).await.unwrap();
        Self { server, socket, _directory: directory }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.socket.clone()).with_timeout(Duration::from_secs(10))
    }
}

/// A process that does nothing, ended with the test.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    /// One that Herdr takes for Pi by the hint in its environment.
    pub(crate) fn hinted() -> Self {
        Self::start(sleep().env("HERDR_AGENT", "pi"))
    }

    /// One that Herdr takes for Pi by its name.
    pub(crate) fn named() -> Self {
        Self::start(sleep().arg0("pi"))
    }

    /// One that is nothing to Herdr.
    pub(crate) fn plain() -> Self {
        Self::start(&mut sleep())
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Already ended and waited for is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleep() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").env_remove("HERDR_AGENT");
    command
}
