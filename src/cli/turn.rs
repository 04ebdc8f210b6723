//! `headman turn`: runs a command as one turn of an agent, under supervision. `docs/turns.md` says what
//! is promised.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use clap::Args;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::failure::{Exit, Failure};
use super::out::note;
use crate::chief::state_dir::StateDir;
use crate::config::{Config, Environment, Places};
use crate::contract::Uuid;
use crate::turn::ledger::{self, Ledger};
use crate::turn::metrics::{self, Line, Outcome, time};
use crate::turn::passage::Passage;
use crate::turn::run::{self, End, Input, Job, Settled};
use crate::turn::settings::{Flags, Settings};
use crate::turn::signals::{is_ignored, outlive_file_limits};
use crate::turn::{Failure as TurnFailure, running};

/// How long a reader may take nothing of what was written for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take until it is said what became of the reply.
const DELIVERY: Duration = Duration::from_secs(60);
/// Bytes of what is said of it.
const MAX_WORD: usize = 64;

/// What it is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Whose turn it is; names the log
    #[arg(long, value_name = "NAME")]
    seat: String,
    /// What runs: codex, pi-json, claude, pi or any other name
    #[arg(long, value_name = "NAME", default_value = "command")]
    adapter: String,
    /// End it after so long without progress; 0: never [default: 15m for codex and pi-json]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    stall: Option<Duration>,
    /// End it if nothing came after so long [default when given without a time: 60s]
    #[arg(long, value_name = "TIME", value_parser = super::duration, num_args = 0..=1, require_equals = true, default_missing_value = "60s")]
    startup: Option<Duration>,
    /// The turn's budget; a minute above it the turn is ended; 0: none [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    timeout: Option<Duration>,
    /// Between asking it to end and killing it [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    grace: Option<Duration>,
    /// What kind of event it answers, for the log
    #[arg(long, value_name = "TYPE")]
    event: Option<String>,
    /// Which attempt it is, for the log
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
    /// Read from this descriptor, a pipe, what became of the reply
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    outcome_fd: Option<u32>,
    /// The command, and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<OsString>,
}

/// Runs the turn.
///
/// # Errors
/// [`Failure`] where there is nothing to supervise: a wrong name, or no way to supervise it.
pub(super) fn run(places: &Places, config: &Config, arguments: &Arguments) -> Result<Exit, Failure> {
    let event = event_type(arguments)?;
    let seat = metrics::seat(&arguments.seat);
    if seat.is_empty() {
        return Err(Failure::usage("can't run the turn: the seat has no name", "Give --seat a name"));
    }
    let adapter = metrics::adapter(&arguments.adapter);
    let delivery = arguments.outcome_fd.map(Delivery::open).transpose()?;
    let flags = Flags {
        timeout: arguments.timeout,
        stall: arguments.stall,
        startup: arguments.startup,
        grace: arguments.grace,
    };
    let environment = Environment::of_process();
    let (settings, warnings) =
        Settings::resolve(&adapter, &flags, |name| environment.var(name), &config.turn);
    warnings.iter().for_each(|warning| note(warning));
    let system = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, "system", format!("can't run the turn: {error}"), "Try again")
    };
    // Of one thread, which the command is started on and which lives as long as it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let turn = Turn { places, seat, adapter, event, attempts: arguments.attempt, settings };
    runtime.block_on(turn.run(&arguments.command, delivery)).map_err(system)
}

fn event_type(arguments: &Arguments) -> Result<Option<String>, Failure> {
    let Some(event) = &arguments.event else { return Ok(None) };
    metrics::event_type(event).map(Some).ok_or_else(|| {
        let message = "can't run the turn: --event is no name of 1 to 40 letters, digits, `.`, `_` or `-`";
        Failure::usage(message, "Give another, or leave --event out")
    })
}

/// A turn that is supervised: whose it is, for the log, and what holds for it.
pub(super) struct Turn<'a> {
    pub(super) places: &'a Places,
    pub(super) seat: String,
    pub(super) adapter: String,
    pub(super) event: Option<String>,
    pub(super) attempts: u32,
    pub(super) settings: Settings,
}

impl Turn<'_> {
    async fn run(&self, command: &[OsString], delivery: Option<Delivery>) -> std::io::Result<Exit> {
        let (mut asked, signals) = listen()?;
        let logs = &self.places.turn_logs;
        let mut log = Log::default();
        let id = Uuid::random();
        let (is_logged, announced) = self.announce(id, &mut log);
        let job = Job {
            command,
            settings: &self.settings,
            turn: id,
            input: Input::Inherited,
            stdout: Some(Passage::to(std::io::stdout())?),
            stderr: Some(Passage::to(std::io::stderr())?),
            keep: 0,
            most: None,
            in_our_group: std::io::stdin().is_terminal(),
            program: std::env::current_exe()?,
        };
        let mut settled = run::run(job, &mut asked).await;
        let line = self.line(&settled);
        let mut ledger = Ledger::new(|line: &Line| {
            if is_logged && let Err(error) = logs.append(line) {
                log.warn(&error.to_string());
            }
        });
        ledger.settled(line);
        if let Some(error) = &settled.not_started {
            note(&format!("can't start the command: {error}"));
        }
        if settled.left_running() {
            let pids: Vec<String> = settled.left.iter().map(|it| it.pid.to_string()).collect();
            note(&format!("something of the turn could not be ended: {}", pids.join(", ")));
        }
        let outcome = self.delivered(&mut settled, delivery, &mut asked).await;
        if settled.failure.is_none() {
            ledger.finish(outcome, ledger::now());
        }
        drop((ledger, announced));
        let ended_by = *signals.borrow();
        Ok(exit_of(&settled, outcome, ended_by))
    }

    /// Says that the turn runs, for as long as what is given lives, and whether it can be logged. What
    /// can't be written is told, and harms no turn.
    pub(super) fn announce(&self, id: Uuid, log: &mut Log) -> (bool, Option<running::Announced>) {
        if let Err(why) = self.make_logs() {
            log.warn(&why);
            return (false, None);
        }
        let logs = &self.places.turn_logs;
        running::take_left(&logs.ours).iter().for_each(tell_left);
        let why = match running::announce(&logs.ours, &self.seat, &self.adapter, id, ledger::now()) {
            Ok(announced) => return (true, Some(announced)),
            Err(why) => why,
        };
        // It may be only that file, or the directory of both.
        if let Err(error) = logs.open(&self.seat) {
            log.warn(&error.to_string());
            return (false, None);
        }
        note(&format!("should headman be killed, what it leaves of the turn will not be told: {why}"));
        (true, None)
    }

    fn make_logs(&self) -> Result<(), String> {
        let logs = &self.places.turn_logs;
        if !logs.is_named {
            StateDir::make(&self.places.state_dir).map_err(|error| error.to_string())?;
        }
        logs.make().map_err(|error| error.to_string())
    }

    /// What the log says of it, should it have failed.
    pub(super) fn line(&self, settled: &Settled) -> Line {
        let status = settled.status;
        let ended = time(settled.ended.as_millis());
        Line {
            v: 1,
            ts: ended.clone(),
            seat: self.seat.clone(),
            adapter: self.adapter.clone(),
            path: "supervised",
            event_type: self.event.clone(),
            turn_start: time(settled.began.as_millis()),
            turn_end: ended,
            duration_ms: u64::try_from(settled.took.as_millis()).unwrap_or(u64::MAX),
            outcome: Outcome::Failed,
            ok: false,
            failure: settled.failure,
            failure_source: settled.failure.map(TurnFailure::source),
            failure_class: settled.class,
            stalled: settled.stalled,
            cancelled: settled.cancelled,
            killed: settled.killed,
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()).map(metrics::signal_name),
            exit_observed: status.is_some(),
            child_left_running: settled.left_running(),
            attempts: self.attempts,
            stall_ms: self.settings.stall_ms,
            cancel_grace_ms: self.settings.grace_ms,
            timeout_ms: self.settings.timeout_ms,
        }
    }

    /// What became of the reply, once everything is passed on. A signal ends the wait.
    async fn delivered(
        &self,
        settled: &mut Settled,
        delivery: Option<Delivery>,
        asked: &mut mpsc::UnboundedReceiver<End>,
    ) -> Outcome {
        let [out, err] = std::mem::take(&mut settled.passages);
        let told = async {
            let passed_on = async |passage: Option<Passage>| match passage {
                Some(passage) => passage.finish(PATIENCE).await,
                None => true,
            };
            let (arrived, _) = tokio::join!(passed_on(out), passed_on(err));
            match delivery {
                _ if settled.failure.is_some() => Outcome::Failed,
                _ if !arrived => Outcome::ReplyLost,
                None if settled.bytes == 0 => Outcome::Silent,
                None => Outcome::Delivered,
                Some(delivery) => delivery.told().await,
            }
        };
        let ended = async {
            if asked.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            outcome = told => outcome,
            () = ended => Outcome::ReplyLost,
        }
    }
}

/// Warns once that a log can't be written.
#[derive(Default)]
pub(super) struct Log {
    warned: bool,
}

impl Log {
    pub(super) fn warn(&mut self, why: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            note(&format!("the turn is not logged: {why}"));
        }
    }
}

fn tell_left(left: &running::Running) {
    if let Some(told) = left.left.told() {
        note(&format!("the supervisor {} of a turn of {} was killed; {told}", left.supervisor, left.seat));
    }
}

/// Tells what asks a turn to end, and which signal was the first to do so. One that was ignored when we were started
/// (`nohup`) stays so. From then on a file that may not grow is an error and not our end.
pub(super) fn listen()
-> std::io::Result<(mpsc::UnboundedReceiver<End>, tokio::sync::watch::Receiver<Option<i32>>)> {
    outlive_file_limits()?;
    let (sender, asked) = mpsc::unbounded_channel();
    let (first, by) = tokio::sync::watch::channel(None);
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    for kind in kinds.into_iter().filter(|kind| !is_ignored(*kind)) {
        let mut signals = signal(kind)?;
        let (sender, first) = (sender.clone(), first.clone());
        tokio::spawn(async move {
            // The keys of a terminal reach everything in the foreground.
            let is_told = [SignalKind::interrupt(), SignalKind::quit()].contains(&kind);
            while signals.recv().await.is_some() {
                first.send_if_modified(|first| first.replace(first.unwrap_or(kind.as_raw_value())).is_none());
                if sender.send(End { is_told }).is_err() {
                    return;
                }
            }
        });
    }
    Ok((asked, by))
}

/// How we end: as what was run did, if it ended by itself.
fn exit_of(settled: &Settled, outcome: Outcome, ended_by: Option<i32>) -> Exit {
    let of_signal = |signal: i32| Exit::Code(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    match (settled.failure, settled.status) {
        (Some(TurnFailure::SpawnFailed), _) => {
            let missing = settled.not_started.as_ref().is_some_and(|it| it.kind() == ErrorKind::NotFound);
            Exit::Code(if missing { 127 } else { 126 })
        }
        (Some(TurnFailure::Stalled | TurnFailure::WallClock), _) => Exit::Code(124),
        (Some(TurnFailure::Cancelled), _) => ended_by.map_or(Exit::Interrupted, of_signal),
        (Some(_), Some(status)) => match status.code() {
            Some(code) => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
            None => status.signal().map_or(Exit::No, of_signal),
        },
        (Some(_), None) => Exit::No,
        (None, _) if outcome.is_ok() => Exit::Done,
        (None, _) => Exit::No,
    }
}

/// Where a wrapper says what became of the reply.
struct Delivery(File);

impl Delivery {
    /// The pipe that has the number `number` in this process.
    fn open(number: u32) -> Result<Self, Failure> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened = File::options().read(true).custom_flags(flags).open(format!("/dev/fd/{number}"));
        let is_pipe = |file: &File| file.metadata().is_ok_and(|found| found.file_type().is_fifo());
        let why = match opened {
            Ok(file) if is_pipe(&file) => return Ok(Self(file)),
            Ok(_) => "it is no pipe".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("can't run the turn: the descriptor {number} can't be read: {why}");
        Err(Failure::usage(message, "Give --outcome-fd the read end of a pipe"))
    }

    /// What is said there, once everybody can see that there will be no more output. Nothing, or
    /// nothing that is understood, and the reply is lost.
    async fn told(self) -> Outcome {
        let word = tokio::time::timeout(DELIVERY, async {
            let null = File::options().write(true).open("/dev/null")?;
            rustix::stdio::dup2_stdout(&null)?;
            let mut pipe = Receiver::from_file(self.0)?;
            let mut said = Vec::new();
            loop {
                if pipe.read_buf(&mut said).await? == 0 {
                    return Ok(said);
                }
                if said.contains(&b'\n') || said.len() > MAX_WORD {
                    return Ok(said);
                }
            }
        });
        let said: Vec<u8> = word.await.ok().and_then(std::io::Result::ok).unwrap_or_default();
        let word = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let word = std::str::from_utf8(word).unwrap_or_default().trim();
        Outcome::delivery(word).unwrap_or_else(|| {
            note("it was not told what became of the reply: it counts as lost");
            Outcome::ReplyLost
        })
    }
}
