//! The logs of turns, read for what they say of each seat. A log may be of any length and be written
//! meanwhile, by us or by others: of each file only the end is read, then what is appended.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::failure::{Class, Failure};
use super::log::TurnLogs;
use super::metrics::{self, Outcome};
use super::running::{self, Running};
use super::statistics::{Seat, Turn};
use crate::contract::Timestamp;
use crate::disk::durable::{self, Unreadable};

/// Bytes read of a file at once; what lies before is passed over.
pub const MAX_READ: u64 = 8 << 20;
/// Turns of a seat counted in one file; older ones are not.
pub const MAX_TURNS: usize = 1_000;
/// Files read in one directory.
const MAX_FILES: usize = 500;
/// Seats counted in one file: it should have one.
const MAX_SEATS: usize = 100;

/// What the logs say, as of one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// By name.
    pub seats: Vec<Seat>,
    /// What could not be read, safe to print.
    pub troubles: Vec<String>,
}

/// What was read so far.
#[derive(Debug, Default)]
pub struct History {
    files: BTreeMap<PathBuf, Followed>,
}

/// One file.
#[derive(Debug, Default)]
struct Followed {
    /// Device and number: another file by the same name begins anew.
    identity: (u64, u64),
    /// Up to where it is read: a line's end.
    read: u64,
    /// By seat the newest turns, and whether older ones are not counted.
    turns: BTreeMap<String, (VecDeque<Turn>, bool)>,
    /// Whether something before is not counted, whose ever it is.
    is_partial: bool,
    /// Lines that are none of a turn.
    damaged: usize,
}

impl History {
    /// Reads what was appended since the last look. With `since`, only turns that ended then or later
    /// are counted.
    pub fn look(&mut self, logs: &TurnLogs, since: Option<Timestamp>) -> Picture {
        let mut troubles = Vec::new();
        let mut there = Vec::new();
        for directory in logs.directories() {
            match durable::list_at_most(directory, MAX_FILES * 2) {
                Ok((names, _)) => {
                    let names = names.into_iter().map(|name| directory.join(name));
                    let logs = names.filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
                    there.extend(logs.take(MAX_FILES));
                }
                Err(reason) => troubles.push(format!("{}: {reason}", durable::shown(directory))),
            }
        }
        self.files.retain(|path, _| there.contains(path));
        for path in there {
            let followed = self.files.entry(path.clone()).or_default();
            if let Err(reason) = followed.follow(&path) {
                troubles.push(format!("{}: {reason}", durable::shown(&path)));
            }
            if followed.damaged > 0 {
                let lines = if followed.damaged == 1 { "line is no turn" } else { "lines are no turns" };
                troubles.push(format!("{}: {} {lines}", durable::shown(&path), followed.damaged));
            }
        }
        let running = logs.directories().into_iter().flat_map(running::look).collect();
        Picture { seats: self.seats(running, since), troubles }
    }

    fn seats(&self, running: Vec<Running>, since: Option<Timestamp>) -> Vec<Seat> {
        let mut seats: BTreeMap<&str, (Vec<Turn>, bool, Vec<Running>)> = BTreeMap::new();
        for followed in self.files.values() {
            for (name, (turns, has_older)) in &followed.turns {
                let (all, is_partial, _) = seats.entry(name).or_default();
                all.extend(turns.iter().filter(|turn| since.is_none_or(|since| turn.at >= since)));
                *is_partial |= followed.is_partial || *has_older;
            }
        }
        for running in &running {
            seats.entry(&running.seat).or_default().2.push(running.clone());
        }
        let all = seats.into_iter().map(|(name, (mut turns, is_partial, running))| {
            turns.sort_by_key(|turn| turn.at);
            Seat::of(name.to_owned(), &turns, running, is_partial)
        });
        all.filter(|seat| seat.turns > 0 || !seat.running.is_empty()).collect()
    }
}

impl Followed {
    fn follow(&mut self, path: &Path) -> Result<(), Unreadable> {
        let mut file = durable::open_to_read(path)?;
        let read = self.read_more(&mut file);
        read.map_err(|error| Unreadable::Disk(durable::DiskError::io("read", path)(error)))
    }

    fn read_more(&mut self, file: &mut File) -> std::io::Result<()> {
        let found = file.metadata()?;
        let identity = (found.dev(), found.ino());
        if identity != self.identity || found.len() < self.read {
            *self = Self { identity, ..Self::default() };
        }
        if found.len() == self.read {
            return Ok(());
        }
        let skips = found.len() - self.read > MAX_READ;
        let from = if skips { found.len() - MAX_READ } else { self.read };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        // A line that is just being written, or was cut off, is not read yet.
        let Some(end) = memchr::memrchr(b'\n', &bytes) else {
            self.is_partial |= skips;
            self.read = if skips { from } else { self.read };
            return Ok(());
        };
        // The first one was begun before.
        let begin = if skips { memchr::memchr(b'\n', &bytes).map_or(0, |newline| newline + 1) } else { 0 };
        self.is_partial |= skips;
        for line in bytes[begin.min(end)..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.count(line);
        }
        self.read = from + end as u64 + 1;
        Ok(())
    }

    fn count(&mut self, line: &[u8]) {
        let Some((seat, turn)) = read(line) else {
            self.damaged += 1;
            return;
        };
        if !self.turns.contains_key(&seat) && self.turns.len() == MAX_SEATS {
            self.is_partial = true;
            return;
        }
        let (turns, has_older) = self.turns.entry(seat).or_default();
        if turns.len() == MAX_TURNS {
            turns.pop_front();
            *has_older = true;
        }
        turns.push_back(turn);
    }
}

/// A line, as far as it is read here; others may write more.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Logged {
    seat: String,
    ts: Option<Time>,
    turn_end: Option<Time>,
    duration_ms: Option<f64>,
    outcome: Option<String>,
    ok: bool,
    failure: Option<String>,
    failure_class: Option<String>,
    stalled: Option<bool>,
}

/// In milliseconds since the epoch, or as `2026-05-28T20:26:40.000Z`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time {
    Millis(f64),
    Text(String),
}

impl Time {
    fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Millis(millis) if *millis >= 0.0 => Some(Timestamp::from_millis(*millis as u64)),
            Self::Millis(_) => None,
            Self::Text(text) => {
                let at: jiff::Timestamp = text.parse().ok()?;
                u64::try_from(at.as_millisecond()).ok().map(Timestamp::from_millis)
            }
        }
    }
}

fn read(line: &[u8]) -> Option<(String, Turn)> {
    let read: Logged = serde_json::from_slice(line).ok()?;
    let at = [read.turn_end, read.ts].iter().flatten().find_map(Time::at)?;
    // Of a name that is not ours only that it is another one.
    let known = |name: Option<&str>, mut names: std::slice::Iter<'_, &'static str>| {
        let name = name?;
        Some(names.find(|known| **known == name).copied().unwrap_or("other"))
    };
    let turn = Turn {
        at,
        outcome: known(read.outcome.as_deref(), Outcome::ALL.map(Outcome::name).iter()).unwrap_or("other"),
        ok: read.ok,
        failure: known(read.failure.as_deref(), Failure::ALL.map(Failure::name).iter()),
        class: read.failure_class.as_deref().and_then(Class::named),
        stalled: read.stalled.unwrap_or(false),
        took: read.duration_ms.filter(|took| *took >= 0.0).unwrap_or(0.0) as u64,
    };
    Some((metrics::seat(&read.seat), turn)).filter(|(seat, _)| !seat.is_empty())
}
