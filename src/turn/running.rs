//! What runs: a file for each supervisor that is at work. One that was killed leaves its file, and
//! the next one says what is left of its turn.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::metrics::{self, time};
use super::stage::MARK;
use super::tree::{self, Process};
use crate::contract::{Timestamp, Uuid};
use crate::disk::durable::{self, DiskError};

/// The directory below that of the logs.
const DIRECTORY: &str = "running";
/// Files looked at.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 4 * 1024;
/// For so long a file may be one that is just being written.
const FRESH: Duration = Duration::from_secs(60);

/// One turn that runs, or ran when its supervisor was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    v: u8,
    turn: String,
    seat: String,
    adapter: String,
    /// Of the supervisor, with what tells it from another of that pid.
    pid: i32,
    start: u64,
    boot: String,
    turn_start: String,
}

/// A turn that runs, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Of which seat.
    pub seat: String,
    /// Run by what.
    pub adapter: String,
    /// Its supervisor.
    pub supervisor: i32,
    /// Since when; none where that is not told.
    pub since: Option<Timestamp>,
    /// What is left of it.
    pub left: Left,
    /// Its file.
    pub path: PathBuf,
}

/// What is known of the processes of a turn that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Its supervisor lives.
    Supervised,
    /// Its supervisor was killed; these still run, and whichever can't be recognised as its own.
    Known(Vec<i32>),
    /// Its supervisor was killed, and the processes could not be listed.
    Unknown,
}

impl Left {
    /// What of `turn` is among `all`, by the variable its processes were started with.
    fn of(turn: &str, all: io::Result<Vec<Process>>) -> Self {
        let variable = format!("{MARK}={turn}");
        let Ok(all) = all else { return Self::Unknown };
        let running = all.iter().filter(|it| !it.is_zombie && tree::has_variable(it, &variable));
        Self::Known(running.map(|it| it.pid).collect())
    }

    /// The processes that still run, where they are known.
    pub fn pids(&self) -> Option<&[i32]> {
        match self {
            Self::Known(pids) => Some(pids),
            Self::Supervised | Self::Unknown => None,
        }
    }

    /// What is to be said of them; nothing while the supervisor lives.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Supervised => None,
            Self::Known(pids) if pids.is_empty() => {
                Some("of its processes none that can be recognised still runs".to_owned())
            }
            Self::Known(pids) => {
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                Some(format!("of its processes still run {}", pids.join(", ")))
            }
            Self::Unknown => Some("whether its processes still run can't be told".to_owned()),
        }
    }
}

impl Running {
    /// What is to be said of it; `since` is for how long.
    pub fn told(&self, since: &str) -> String {
        let Self { adapter, supervisor, left, .. } = self;
        match left.told() {
            None => format!("runs for {since} ({adapter}, supervisor {supervisor})"),
            Some(left) => format!("begun {since} ago: its supervisor {supervisor} was killed; {left}"),
        }
    }
}

/// The file of this process, gone with it.
#[derive(Debug)]
pub struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        // What stays is recognised by its process.
        let _ = durable::unlink(&self.0);
    }
}

/// Says that this process supervises `turn`; `logs` is the directory of the logs.
///
/// # Errors
/// What the disk or the file says, safe to print.
pub fn announce(
    logs: &Path,
    seat: &str,
    adapter: &str,
    turn: Uuid,
    at: Timestamp,
) -> Result<Announced, String> {
    let directory = logs.join(DIRECTORY);
    durable::ensure_directory(&directory).map_err(|error| error.to_string())?;
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let written = Written {
        v: 1,
        turn: turn.to_string(),
        seat: seat.to_owned(),
        adapter: adapter.to_owned(),
        pid,
        start: tree::start_of(pid).unwrap_or(0),
        boot: tree::boot(),
        turn_start: time(at.as_millis()),
    };
    let path = directory.join(format!("{pid}.json"));
    let bytes = serde_json::to_vec(&written).map_err(|error| error.to_string())?;
    let temporary = durable::hidden(&path, turn, "tmp");
    let mut file = durable::open_private(&temporary)
        .map_err(|reason| format!("{}: {reason}", durable::shown(&temporary)))?;
    // Of no use after a crash of the system, so it need not outlive one.
    let written = file.write_all(&bytes).map_err(DiskError::io("write", &temporary));
    if let Err(error) = written.and_then(|()| durable::rename(&temporary, &path)) {
        // What stays is swept away some day.
        let _ = durable::unlink(&temporary);
        return Err(error.to_string());
    }
    Ok(Announced(path))
}

/// What runs, and what was left, by the files in `logs`. One that is not understood is passed over.
pub fn look(logs: &Path) -> Vec<Running> {
    let directory = logs.join(DIRECTORY);
    let Ok((names, _)) = durable::list_at_most(&directory, MAX_FILES) else { return Vec::new() };
    let mut all: Vec<Running> = names
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|it| it == "json"))
        .filter_map(|name| read(directory.join(name)))
        .collect();
    all.sort_by_key(|running| (running.since, running.supervisor));
    all
}

fn read(path: PathBuf) -> Option<Running> {
    let bytes = durable::read_private(&path, MAX_BYTES).ok()?;
    let written: Written = serde_json::from_slice(&bytes).ok().filter(|it: &Written| it.v == 1)?;
    let same_boot = written.boot == tree::boot();
    let lives = same_boot && tree::start_of(written.pid) == Some(written.start);
    let left = if lives {
        Left::Supervised
    } else if same_boot {
        Left::of(&written.turn, tree::all())
    } else {
        Left::Known(Vec::new())
    };
    Some(Running {
        seat: metrics::seat(&written.seat),
        adapter: metrics::adapter(&written.adapter),
        supervisor: written.pid,
        since: written.turn_start.parse().ok().map(|at: jiff::Timestamp| {
            Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap_or(0))
        }),
        left,
        path,
    })
}

/// What turns left whose supervisor was killed. Of which nothing that can be recognised runs any more
/// is forgotten, and so is a file that nobody finishes.
pub fn take_left(logs: &Path) -> Vec<Running> {
    let mut all = look(logs);
    all.retain(|running| running.left != Left::Supervised);
    for running in all.iter().filter(|running| running.left.pids().is_some_and(<[i32]>::is_empty)) {
        // Found again the next time.
        let _ = durable::unlink(&running.path);
    }
    sweep(&logs.join(DIRECTORY), SystemTime::now());
    all
}

/// Removes what was begun to be written in `directory` by a process that is gone.
fn sweep(directory: &Path, now: SystemTime) {
    let Ok((names, _)) = durable::list_at_most(directory, MAX_FILES) else { return };
    for name in names {
        let path = directory.join(&name);
        let Some(pid) = name.to_str().and_then(writer) else { continue };
        let written = std::fs::symlink_metadata(&path).and_then(|found| found.modified());
        let is_old = written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > FRESH));
        if is_old && tree::start_of(pid).is_none() && is_unfinished(&path) {
            // Found again the next time.
            let _ = durable::unlink(&path);
        }
    }
}

/// The process that writes the file `name`: `<pid>.json`, or the temporary file of that.
fn writer(name: &str) -> Option<i32> {
    let (pid, rest) = name.strip_prefix('.').unwrap_or(name).split_once('.')?;
    let is_ours = rest == "json" || (rest.starts_with("json.") && rest.ends_with(".tmp"));
    pid.parse().ok().filter(|pid| *pid > 0 && is_ours)
}

/// Whether it is a temporary file, or none that is whole. One that can't be read is left alone.
fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "tmp")
        || durable::read_private(path, MAX_BYTES)
            .is_ok_and(|bytes| serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_that_is_known_is_not_none_and_unlisted_processes_are_unknown() {
        let unlisted = Left::of("x", Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!((unlisted.pids(), &unlisted), (None, &Left::Unknown), "its file is kept");
        assert!(unlisted.told().unwrap().contains("can't be told"));
        let none = Left::of("x", Ok(Vec::new()));
        assert_eq!(none.pids(), Some(&[][..]));
        assert!(none.told().unwrap().contains("none that can be recognised"), "{none:?}");
        assert_eq!(Left::Supervised.told(), None);
    }

    #[test]
    fn only_what_nobody_finishes_is_swept_away() {
        let logs = tempfile::tempdir().unwrap();
        let directory = logs.path().join(DIRECTORY);
        durable::ensure_directory(&directory).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let gone_pid = gone.id();
        gone.wait().unwrap();
        let own = std::process::id();
        let write = |name: String, text: &str| {
            durable::create(&directory.join(&name), text.as_bytes()).unwrap();
            name
        };
        let _ = write(format!(".{gone_pid}.json.x.tmp"), "{}");
        let mut kept = vec![
            write(format!("{own}.json"), ""),
            write(format!(".{own}.json.x.tmp"), "{"),
            write("notes.json".to_owned(), ""),
            write(format!("{gone_pid}.txt"), ""),
        ];
        let names = || {
            let mut names: Vec<String> = std::fs::read_dir(&directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let later = || SystemTime::now() + FRESH + Duration::from_secs(1);
        for (text, is_kept) in [("", false), ("{\"v\":1,\"tu", false), ("{\"v\":2}", true)] {
            let name = write(format!("{gone_pid}.json"), text);
            sweep(&directory, SystemTime::now());
            assert!(names().contains(&name), "{text:?} may just be written");
            sweep(&directory, later());
            assert_eq!(names().contains(&name), is_kept, "{text:?}");
        }
        kept.push(format!("{gone_pid}.json"));
        kept.sort();
        assert_eq!(names(), kept);
    }

    #[test]
    fn a_file_stands_whole_under_its_name_and_is_gone_with_its_turn() {
        let logs = tempfile::tempdir().unwrap();
        let at = Timestamp::from_millis(1_000);
        let announced = announce(logs.path(), "s", "a", Uuid::random(), at).unwrap();
        let seen = look(logs.path());
        assert_eq!((seen.len(), &seen[0].left), (1, &Left::Supervised));
        drop(announced);
        let directory = logs.path().join(DIRECTORY);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        // What can't be moved into place leaves nothing either.
        std::fs::create_dir(directory.join(format!("{}.json", std::process::id()))).unwrap();
        assert!(announce(logs.path(), "s", "a", Uuid::random(), at).is_err());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    }
}
