//! One run under supervision: what counts as progress, and the ladder that ends what makes none.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::failure::{self, Class, Failure};
use super::lane::{Feed, Lane, Step, Tail};
use super::ledger;
use super::passage::Passage;
use super::settings::Settings;
use super::stage::{self, Start};
use super::tree::{self, Process};
use crate::contract::{Timestamp, Uuid};

/// How long the end of what was killed is waited for.
const EXIT_WAIT: Duration = Duration::from_secs(3);
/// How long what was written before the end may take to come, if another process holds the pipe open.
const DRAIN: Duration = Duration::from_secs(1);
/// How long one that is ended from outside may take to end by itself.
const CANCELLED_GRACE: Duration = Duration::from_secs(2);
/// Woken so long after the stall window's end, we were stopped ourselves, or the system was: silence
/// meanwhile tells nothing.
const LATE: Duration = Duration::from_secs(1);
/// How long a key that ended what is run may take to reach us.
const KEY: Duration = Duration::from_millis(200);
/// Between two looks for processes that were left to us and have ended.
const REAP: Duration = Duration::from_secs(1);
/// Bytes of what was said last that its class is found in.
const SAID: usize = 8 * 1024;

/// Where the run's standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// From ours, as it stands.
    Inherited,
    /// These bytes, then its end.
    Bytes(Vec<u8>),
}

/// What is to be run.
pub struct Job<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// What holds for it.
    pub settings: &'a Settings,
    /// What marks its processes.
    pub turn: Uuid,
    /// Its standard input.
    pub input: Input,
    /// Where its standard output goes, besides what is kept of it.
    pub stdout: Option<Passage>,
    /// Where its standard error goes.
    pub stderr: Option<Passage>,
    /// How many of the last bytes of each are kept.
    pub keep: usize,
    /// Bytes of standard output after which it is ended; none where it may write what it likes.
    pub most: Option<u64>,
    /// Whether it stays in our process group, as one that reads a terminal must.
    pub in_our_group: bool,
    /// This program, to start it by.
    pub program: PathBuf,
}

/// Somebody wants a run to end; said a second time, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Whether it was told so as well, by a key at its terminal.
    pub is_told: bool,
}

/// What happened, for whoever looks; kept in memory only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// What.
    pub what: Event,
    /// When, since the run began.
    pub at: Duration,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `liveness.stalled`: the stall window fired.
    Stalled,
    /// `liveness.recovery`, `cancel`: it was asked to end.
    Cancel,
    /// `liveness.recovery`, `kill`: it is being killed.
    Kill,
    /// `run.settled`: the last one there is.
    Settled,
}

/// How a run ended.
#[derive(Debug)]
pub struct Settled {
    /// When it began, as a time of day.
    pub began: Timestamp,
    /// When it settled.
    pub ended: Timestamp,
    /// Between the two.
    pub took: Duration,
    /// What failed, if anything did.
    pub failure: Option<Failure>,
    /// What kind of trouble that is.
    pub class: Option<Class>,
    /// Why it could not be started.
    pub not_started: Option<io::Error>,
    /// Whether the stall window fired.
    pub stalled: bool,
    /// Whether it was asked to end.
    pub cancelled: bool,
    /// Whether it was killed.
    pub killed: bool,
    /// Its exit code or signal, once it was seen to end.
    pub status: Option<ExitStatus>,
    /// What of it still runs.
    pub left: Vec<Process>,
    /// Bytes it wrote to standard output.
    pub bytes: u64,
    /// The last of them.
    pub stdout: Tail,
    /// The last bytes of standard error.
    pub stderr: Tail,
    /// Where the two went, with what came at the end.
    pub passages: [Option<Passage>; 2],
    /// What happened.
    pub trace: Vec<Trace>,
}

impl Settled {
    /// Whether something of it may still run.
    pub fn left_running(&self) -> bool {
        !self.left.is_empty() || (self.not_started.is_none() && self.status.is_none())
    }
}

/// Runs `job` until it has settled. This process then has, and must have, no children but the run's:
/// on Linux those whose parent ended become ours. To be called on a thread that lives as long as the
/// run ([`stage`]).
pub async fn run(job: Job<'_>, asked: &mut mpsc::UnboundedReceiver<End>) -> Settled {
    let (began, started) = (ledger::now(), Instant::now());
    let keep = job.keep.max(SAID);
    let settings = *job.settings;
    match Running::start(job, keep).await {
        Err((error, passages)) => Settled {
            began,
            ended: ledger::now(),
            took: started.elapsed(),
            failure: Some(Failure::SpawnFailed),
            class: Some(Class::Configuration),
            not_started: Some(error),
            stalled: false,
            cancelled: false,
            killed: false,
            status: None,
            left: Vec::new(),
            bytes: 0,
            stdout: Tail::default(),
            stderr: Tail::default(),
            passages,
            trace: vec![Trace { what: Event::Settled, at: started.elapsed() }],
        },
        Ok(running) => {
            let ladder = Ladder::new(settings, Instant::now());
            running.supervise(ladder, asked).await.settle(began, started).await
        }
    }
}

/// The root of what runs.
struct Root {
    child: Child,
    pid: Pid,
    /// Tells that some child has ended.
    children: tokio::signal::unix::Signal,
}

impl Root {
    /// Whether it has ended. It is not waited for by that, so its pid stays its own.
    fn has_ended(&self) -> bool {
        // Or it was waited for.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), look), Ok(None))
    }
}

struct Running {
    root: Root,
    in_our_group: bool,
    most: Option<u64>,
    feed: Option<Feed>,
    out: Lane,
    err: Lane,
}

/// Why the ladder was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Stall,
    Wall,
    Outside,
}

/// When what is done.
struct Ladder {
    settings: Settings,
    began: Instant,
    progress: Instant,
    /// Since when its first byte is waited for.
    awaited: Instant,
    /// Whether anything came yet.
    has_begun: bool,
    cause: Option<Cause>,
    /// When it is killed.
    kill_at: Option<Instant>,
    cancelled: bool,
    killed: bool,
    trace: Vec<Trace>,
}

impl Ladder {
    fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            began: now,
            progress: now,
            awaited: now,
            has_begun: false,
            cause: None,
            kill_at: None,
            cancelled: false,
            killed: false,
            trace: Vec::new(),
        }
    }

    fn note(&mut self, what: Event) {
        self.trace.push(Trace { what, at: self.began.elapsed() });
    }

    fn stall_at(&self) -> Option<Instant> {
        let after = |ms: u64, from: Instant| (ms > 0).then(|| from + Duration::from_millis(ms));
        let startup = after(self.settings.startup_ms, self.awaited).filter(|_| !self.has_begun);
        [startup, after(self.settings.stall_ms, self.progress)].into_iter().flatten().min()
    }

    fn wall_at(&self) -> Option<Instant> {
        let wall = self.settings.wall_ms;
        (wall > 0).then(|| self.began + Duration::from_millis(wall))
    }

    /// When something has to be done next.
    fn due(&self) -> Option<Instant> {
        match self.cause {
            Some(_) => self.kill_at,
            None => [self.stall_at(), self.wall_at()].into_iter().flatten().min(),
        }
    }

    /// What came on standard output.
    fn came(&mut self, line_ended: bool) {
        self.has_begun = true;
        if line_ended || !self.settings.json_lines {
            self.progress = Instant::now();
        }
    }
}

impl Running {
    async fn start(job: Job<'_>, keep: usize) -> Result<Self, (io::Error, [Option<Passage>; 2])> {
        let Job { stdout, stderr, input, .. } = job;
        // Before the first child: one that loses its parent is ours from then on.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
            return Err((error.into(), [stdout, stderr]));
        }
        let children = match signal(SignalKind::child()) {
            Ok(children) => children,
            Err(error) => return Err((error, [stdout, stderr])),
        };
        let start = Start {
            command: job.command,
            #[cfg(target_os = "linux")]
            program: &job.program,
            turn: job.turn,
            stdin: if input == Input::Inherited { Stdio::inherit() } else { Stdio::piped() },
            own_group: !job.in_our_group,
        };
        let mut child = match stage::start(start).await {
            Ok(child) => child,
            Err(error) => return Err((error, [stdout, stderr])),
        };
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut passages = (stdout, stderr);
        let pid = Pid::from_child(&child);
        let connect = |root: Root| -> io::Result<Self> {
            let (stdin, Some(out), Some(err)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
            let feed = match (stdin, input) {
                (Some(to), Input::Bytes(bytes)) => Some(Feed::new(to.into(), bytes)?),
                _ => None,
            };
            let out = Lane::new(out.into(), passages.0.take(), keep)?;
            let err = Lane::new(err.into(), passages.1.take(), keep)?;
            Ok(Self { root, in_our_group: job.in_our_group, most: job.most, feed, out, err })
        };
        match connect(Root { child, pid, children }) {
            Ok(running) => Ok(running),
            Err(error) => {
                // It has hardly begun, and nobody could supervise it.
                end_all(pid).await;
                Err((error, [passages.0, passages.1]))
            }
        }
    }

    /// Until the root has ended, or was killed.
    async fn supervise(mut self, mut ladder: Ladder, asked: &mut mpsc::UnboundedReceiver<End>) -> Ended {
        let mut reaped = Instant::now();
        let mut nobody_asks = false;
        loop {
            let due = ladder.due();
            if due.is_some_and(|due| due <= Instant::now()) {
                // What ended just now was not killed.
                if self.root.has_ended() || self.climb(&mut ladder) {
                    break;
                }
                continue;
            }
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let feeding = async {
                match &mut self.feed {
                    Some(feed) => feed.step().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.root.children.recv() => {
                    if self.root.has_ended() {
                        break;
                    }
                    if reaped.elapsed() >= REAP {
                        reap(&tree::all().unwrap_or_default(), self.root.pid);
                        reaped = Instant::now();
                    }
                }
                told = asked.recv(), if !nobody_asks => match told {
                    None => nobody_asks = true,
                    Some(End { is_told }) => self.end_from_outside(&mut ladder, is_told),
                },
                () = sleep => {}
                step = self.out.step() => if let Step::Came { line_ended } = step {
                    ladder.came(line_ended);
                    if ladder.cause.is_none() && self.most.is_some_and(|most| self.out.bytes > most) {
                        self.end_from_outside(&mut ladder, false);
                    }
                },
                _ = self.err.step() => {}
                is_fed = feeding => if is_fed {
                    self.feed = None;
                },
            }
        }
        // A key reaches both at once, and what it ended may be seen first.
        let ended_well = matches!(self.root.child.try_wait(), Ok(Some(status)) if status.success());
        if self.in_our_group
            && !ended_well
            && ladder.cause.is_none()
            && let Ok(Some(End { is_told })) = tokio::time::timeout(KEY, asked.recv()).await
        {
            self.end_from_outside(&mut ladder, is_told);
        }
        // Killed or not: the turn is over, and nothing of it goes on.
        let left = if self.has_left_nothing() { Vec::new() } else { end_all(self.root.pid).await };
        Ended { running: self, ladder, left }
    }

    /// Whether the root has ended, and we have no other children. Then nothing is below us, as whoever
    /// loses its parent becomes our child. So it is for most turns, which saves walking.
    #[cfg(target_os = "linux")]
    fn has_left_nothing(&mut self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.root.has_ended()
            && matches!(self.root.child.try_wait(), Ok(Some(_)))
            && matches!(rustix::process::waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
    }

    #[cfg(not(target_os = "linux"))]
    fn has_left_nothing(&mut self) -> bool {
        false
    }

    /// The next rung; whether it is the last.
    fn climb(&mut self, ladder: &mut Ladder) -> bool {
        if ladder.cause.is_some() {
            ladder.killed = true;
            ladder.note(Event::Kill);
            return true;
        }
        let now = Instant::now();
        if let Some(at) = ladder.stall_at().filter(|at| *at <= now) {
            if now - at > LATE {
                (ladder.progress, ladder.awaited) = (now, now);
                return false;
            }
            ladder.cause = Some(Cause::Stall);
            ladder.note(Event::Stalled);
        } else {
            ladder.cause = Some(Cause::Wall);
        }
        self.cancel(ladder, false);
        ladder.kill_at = Some(now + Duration::from_millis(ladder.settings.grace_ms));
        false
    }

    /// Somebody wants it to end: soon, and at once if they say so twice.
    fn end_from_outside(&mut self, ladder: &mut Ladder, is_told: bool) {
        let now = Instant::now();
        let is_again = ladder.cause == Some(Cause::Outside);
        if ladder.cause.is_none() {
            ladder.cause = Some(Cause::Outside);
        }
        if !ladder.cancelled {
            self.cancel(ladder, is_told);
        }
        let grace = match ladder.cancelled && !is_again {
            true => CANCELLED_GRACE.min(Duration::from_millis(ladder.settings.grace_ms)),
            false => Duration::ZERO,
        };
        let kill_at = now + grace;
        ladder.kill_at = Some(ladder.kill_at.map_or(kill_at, |known| known.min(kill_at)));
    }

    /// Asks it to end, where it heeds that and has time to.
    fn cancel(&mut self, ladder: &mut Ladder, is_told: bool) {
        if !ladder.settings.interrupt || ladder.settings.grace_ms == 0 {
            return;
        }
        ladder.cancelled = true;
        ladder.note(Event::Cancel);
        if is_told && self.in_our_group {
            return;
        }
        if !self.in_our_group {
            // The root is not waited for yet, so the group's number is its own. It may be empty.
            let _ = rustix::process::kill_process_group(self.root.pid, Signal::INT);
            return;
        }
        let (us, group) = (own_pid(), rustix::process::getpgrp().as_raw_nonzero().get());
        for process in tree::below(us, &tree::all().unwrap_or_default()) {
            if process.is_in_group(group) {
                process.send(Signal::INT);
            }
        }
    }
}

struct Ended {
    running: Running,
    ladder: Ladder,
    left: Vec<Process>,
}

impl Ended {
    async fn settle(self, began: Timestamp, started: Instant) -> Settled {
        let Self { mut running, mut ladder, left } = self;
        // Its last thread may be about to end.
        let last = Instant::now() + EXIT_WAIT;
        while left.is_empty() && !running.root.has_ended() && Instant::now() < last {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let status = running.root.child.try_wait().ok().flatten();
        let end = Instant::now() + DRAIN;
        tokio::join!(running.out.drain(end), running.err.drain(end));
        let json_lines = ladder.settings.json_lines;
        let (stderr, stdout) = (said(&running.err.tail), said(&running.out.tail));
        // A writer of JSON lines says it there.
        let timed_out = || failure::timed_out(stderr) || (json_lines && failure::timed_out(stdout));
        let failure = match (ladder.cause, status) {
            (Some(Cause::Stall), _) => Some(Failure::Stalled),
            (Some(Cause::Wall), _) => Some(Failure::WallClock),
            (Some(Cause::Outside), _) => Some(Failure::Cancelled),
            (None, Some(status)) if status.success() => None,
            (None, Some(status)) if status.signal().is_some() => Some(Failure::AdapterError),
            (None, _) if timed_out() => Some(Failure::AdapterTimeout),
            (None, _) => Some(Failure::AdapterExit),
        };
        let class = failure.map(|failure| match failure.source() {
            failure::Source::Supervisor => Class::Runtime,
            failure::Source::Adapter => Class::of_both(stderr, stdout, json_lines),
        });
        ladder.note(Event::Settled);
        Settled {
            began,
            ended: ledger::now(),
            took: started.elapsed(),
            failure,
            class,
            not_started: None,
            stalled: ladder.cause == Some(Cause::Stall),
            cancelled: ladder.cancelled,
            killed: ladder.killed,
            status,
            left,
            bytes: running.out.bytes,
            stdout: std::mem::take(&mut running.out.tail),
            stderr: std::mem::take(&mut running.err.tail),
            passages: [running.out.into_passage(), running.err.into_passage()],
            trace: ladder.trace,
        }
    }
}

/// The last that was said on a stream.
fn said(tail: &Tail) -> &[u8] {
    let bytes = tail.bytes();
    &bytes[bytes.len().saturating_sub(SAID)..]
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Kills everything below us, walking again until twice nothing was found, for [`EXIT_WAIT`] at
/// most; what is left. The root itself is left to be waited for.
async fn end_all(root: Pid) -> Vec<Process> {
    let end = Instant::now() + EXIT_WAIT;
    let mut empty = 0;
    let mut pause = Duration::from_micros(500);
    loop {
        let Ok(all) = tree::all() else {
            // Without a list there is only the root, if it was not waited for: then its pid may be
            // another's.
            let own = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            if rustix::process::waitid(WaitId::Pid(root), own).is_ok() {
                let _ = rustix::process::kill_process_group(root, Signal::KILL);
                let _ = rustix::process::kill_process(root, Signal::KILL);
            }
            return Vec::new();
        };
        reap(&all, root);
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(root, Signal::KILL);
        let below = tree::below(own_pid(), &all);
        let alive: Vec<Process> = below.into_iter().filter(|it| !it.is_zombie).collect();
        for process in &alive {
            process.send(Signal::KILL);
        }
        empty = if alive.is_empty() { empty + 1 } else { 0 };
        if empty == 2 || Instant::now() >= end {
            return alive;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Waits for those that were left to us and have ended, one by one: whoever waits for any child may
/// get the root.
fn reap(all: &[Process], root: Pid) {
    let ended = all.iter().filter(|it| it.is_zombie && it.is_child_of(own_pid()));
    for pid in ended.filter_map(|it| Pid::from_raw(it.pid)).filter(|pid| *pid != root) {
        // It is there, or it is not ours after all.
        let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
    }
}
