//! What runs: a file for each supervisor that is at work. One that was killed leaves its file, and
//! the next one says what is left of its turn.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::metrics::{self, time};
use super::stage::MARK;
use super::tree;
use crate::contract::{Timestamp, Uuid};
use crate::disk::durable::{self, DiskError};

/// The directory below that of the logs.
const DIRECTORY: &str = "running";
/// Files looked at.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 4 * 1024;

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
    /// Its processes, where its supervisor was killed; none while that lives.
    pub left: Option<Vec<i32>>,
    /// Its file.
    pub path: PathBuf,
}

impl Running {
    /// What is to be said of it; `since` is for how long.
    pub fn told(&self, since: &str) -> String {
        let Self { adapter, supervisor, left, .. } = self;
        match left {
            None => format!("runs for {since} ({adapter}, supervisor {supervisor})"),
            Some(left) if left.is_empty() => {
                format!("begun {since} ago: its supervisor {supervisor} was killed, nothing of it runs")
            }
            Some(left) => {
                let left: Vec<String> = left.iter().map(ToString::to_string).collect();
                let left = left.join(", ");
                format!("begun {since} ago: its supervisor {supervisor} was killed, {left} still run")
            }
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
    // Of no use after a crash of the system, so it need not outlive one.
    let mut file =
        durable::open_private(&path).map_err(|reason| format!("{}: {reason}", durable::shown(&path)))?;
    let announced = Announced(path);
    let write =
        |file: &mut std::fs::File| file.set_len(0).and_then(|()| std::io::Write::write_all(file, &bytes));
    write(&mut file).map_err(|error| DiskError::io("write", &announced.0)(error).to_string())?;
    Ok(announced)
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
        None
    } else if same_boot {
        Some(marked(&written.turn))
    } else {
        Some(Vec::new())
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

/// The processes of `turn` that still run, by the variable they were started with.
fn marked(turn: &str) -> Vec<i32> {
    let variable = format!("{MARK}={turn}");
    let all = tree::all().unwrap_or_default();
    all.iter().filter(|it| !it.is_zombie && tree::has_variable(it, &variable)).map(|it| it.pid).collect()
}

/// What turns left whose supervisor was killed. Of which nothing runs any more is forgotten.
pub fn take_left(logs: &Path) -> Vec<Running> {
    let left: Vec<Running> = look(logs).into_iter().filter(|running| running.left.is_some()).collect();
    for running in left.iter().filter(|running| running.left.as_ref().is_some_and(Vec::is_empty)) {
        // Found again the next time.
        let _ = durable::unlink(&running.path);
    }
    left
}
