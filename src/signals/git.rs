//! What git says of a working tree that an agent can write to, its configuration included: nothing that
//! stands there is obeyed, and nothing is written there.
//!
//! git reads objects and index of the repository, but through a directory of ours with a configuration of
//! ours: so no filter, hook, pager, monitor, driver or alias of the repository's can run.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::contract::Uuid;
use crate::disk::durable::{self, DiskError};

/// Characters of status and diff together.
pub const MOST: usize = 14_000;
/// Characters of the status.
const STATUS: usize = 4_000;
/// How long git may take, for each question.
const PATIENCE: Duration = Duration::from_secs(10);

/// What git says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// `git status`, a line each.
    pub status: String,
    /// `git diff` against the commit that is checked out.
    pub diff: String,
}

/// Why git says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git can't be run: {0}")]
    NotRun(String),
    /// The directory is in no working tree.
    #[error("{} is in no working tree of git", .0.display())]
    NoRepository(PathBuf),
    /// git refused.
    #[error("git {what} ended with an error: {why}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Its first line of complaint.
        why: String,
    },
    /// git took too long.
    #[error("git {0} took more than 10 s")]
    TooLong(&'static str),
    /// Our own directory can't be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Asks git about the working tree that holds `directory`.
///
/// # Errors
/// [`GitError`]; nothing of ours is left behind.
pub fn look(directory: &Path) -> Result<Work, GitError> {
    let none = || GitError::NoRepository(directory.to_owned());
    let directory = std::fs::canonicalize(directory).map_err(|_| none())?;
    // Not what git takes for the top: the repository's configuration could name another.
    let top = directory.ancestors().find(|at| at.join(".git").exists()).ok_or_else(none)?;
    let told = |what: &'static str, arguments: &[&str]| {
        let mut command = git();
        command.arg("-C").arg(top).args(["--no-optional-locks", "rev-parse"]).args(arguments);
        run(command, what, 16 * 1024).map(|(text, _)| text)
    };
    let places = told(
        "rev-parse",
        &["--path-format=absolute", "--git-dir", "--git-common-dir", "--show-object-format"],
    )?;
    let mut lines = places.lines();
    let (Some(own), Some(common), Some(format)) = (lines.next(), lines.next(), lines.next()) else {
        return Err(none());
    };
    // Before the first commit there is none to compare with: then all that was added is new.
    let head = told("rev-parse", &["--verify", "--quiet", "HEAD"]).map(|head| head.trim().to_owned());
    let head = match head {
        Ok(head) if !head.is_empty() => Some(head),
        Ok(_) | Err(GitError::Refused { .. }) => None,
        Err(error) => return Err(error),
    };
    let ours = Ours::make(head.as_deref(), format)?;
    let ask = |what: &'static str, most: usize, arguments: &[&str]| {
        let mut command = git();
        command
            .current_dir(top)
            .env("GIT_DIR", &ours.0)
            .env("GIT_WORK_TREE", top)
            .env("GIT_OBJECT_DIRECTORY", Path::new(common).join("objects"))
            .env("GIT_INDEX_FILE", Path::new(own).join("index"))
            .args(["--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", what])
            .args(arguments);
        run(command, what, most * 4).map(|(text, cut)| shortened(&text, most, cut))
    };
    let status =
        ask("status", STATUS, &["--porcelain", "--ignore-submodules=all", "--untracked-files=normal"])?;
    let against = if head.is_some() { "HEAD" } else { "--cached" };
    let room = MOST - status.chars().count();
    let diff = ask(
        "diff",
        room,
        &["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", against, "--"],
    )?;
    Ok(Work { status, diff })
}

/// git with nothing of our environment that could lead it elsewhere, nor of the user's configuration.
fn git() -> Command {
    let mut command = Command::new("git");
    let inherited = std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"));
    for (name, _) in inherited {
        command.env_remove(name);
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A repository of ours with nothing in it but which commit is checked out.
struct Ours(PathBuf);

impl Ours {
    fn make(head: Option<&str>, format: &str) -> Result<Self, DiskError> {
        let path = std::env::temp_dir().join(format!("headman-git-{}", Uuid::random()));
        durable::create_directory(&path)?;
        let ours = Self(path);
        for directory in ["objects", "refs"] {
            durable::create_directory(&ours.0.join(directory))?;
        }
        let head = head.map_or_else(|| "ref: refs/heads/none\n".to_owned(), |head| format!("{head}\n"));
        durable::create(&ours.0.join("HEAD"), head.as_bytes())?;
        let format = if format == "sha256" { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
        let config = format!("[core]\n\trepositoryformatversion = 1\n\tbare = false\n{format}");
        durable::create(&ours.0.join("config"), config.as_bytes())?;
        Ok(ours)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // It lies in the directory for temporary files, where others clear up as well.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the command writes, up to `most` bytes, and whether there was more.
fn run(mut command: Command, what: &'static str, most: usize) -> Result<(String, bool), GitError> {
    let mut child = command.spawn().map_err(|error| GitError::NotRun(error.to_string()))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (said, complaint) = std::thread::scope(|scope| {
        let said = scope.spawn(move || read(out, most));
        let complaint = scope.spawn(move || read(err, 4096));
        let ended = wait(&mut child);
        (said.join().unwrap_or_default(), (complaint.join().unwrap_or_default(), ended))
    });
    let (complaint, ended) = complaint;
    let text = String::from_utf8_lossy(&said[..said.len().min(most)]).into_owned();
    let cut = said.len() > most;
    match ended {
        None => Err(GitError::TooLong(what)),
        // One that is cut short ends by the broken pipe.
        Some(ended) if ended.success() || cut => Ok((text, cut)),
        Some(_) => {
            let complaint = String::from_utf8_lossy(&complaint);
            let why = complaint.lines().next().unwrap_or("no word of why").chars().take(200).collect();
            Err(GitError::Refused { what, why })
        }
    }
}

/// At most `most` bytes, and one more if there is one.
fn read(from: Option<impl Read>, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What was read before an error is what there is.
        let _ = from.take(most as u64 + 1).read_to_end(&mut bytes);
    }
    bytes
}

/// How it ended; nothing where it had to be ended.
fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            _ => {
                // Either ended by itself just now, or is ended.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// At most `most` characters; says where some were left out.
fn shortened(text: &str, most: usize, cut: bool) -> String {
    const NOTE: &str = "\n[... the rest is left out]";
    let text = text.trim_end();
    if text.chars().count() <= most && !cut {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(NOTE.len())).collect();
    kept + NOTE
}
