//! Asking the operator's verifier, as a supervised turn, and what follows from its answer: the budget,
//! and what the lessons that went along are worth.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;

use crate::chief::state_dir::StateDir;
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::note;
use crate::cli::supervise::{Watched, now};
use crate::cli::turn::{self, Log, Turn};
use crate::config::{Config, Environment, Places};
use crate::contract::Uuid;
use crate::signals::claims::{Claims, ClaimsError, Remembered, Runs};
use crate::signals::gate::{self, Evidence, MAX_VERDICT, Step, Verdict, Worthless};
use crate::signals::memory::Outcome as RunEnded;
use crate::signals::store::Store;
use crate::turn::ledger::{self, Ledger};
use crate::turn::metrics::{Line, Outcome};
use crate::turn::run::{self, End, Input, Job, Settled};
use crate::turn::settings::{Flags, Settings};

const WHAT: &str = "ask the verifier";
/// What the log of turns calls it.
const SEAT: &str = "gate";
const ADAPTER: &str = "verifier";
const EVENT: &str = "gate";

/// What a verifier is asked about.
pub(super) struct Asking<'a> {
    pub places: &'a Places,
    pub config: &'a Config,
    pub watched: &'a Watched,
    /// Whether there is a claim to be verified.
    pub claims: bool,
}

/// Why it is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Why {
    /// None is configured.
    #[error("there is no verifier; name one in the configuration, with `command` of [supervisor.gate]")]
    NoVerifier,
    /// There is nothing to be verified.
    #[error("the lead neither claims to be done nor has stopped after a change")]
    NoClaim,
    /// It passed this very answer.
    #[error("it passed this answer already")]
    Verified,
    /// The budget is used up.
    #[error("its {0} runs for this turn of the user's are used up")]
    Exhausted(u32),
    /// The same was missing twice.
    #[error(
        "it found the same gaps again after the lead had worked on; this turn of the user's is not judged again"
    )]
    SameGaps,
}

impl Why {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Why::NoVerifier => "no_verifier",
            Why::NoClaim => "no_claim",
            Why::Verified => "verified",
            Why::Exhausted(_) => "exhausted",
            Why::SameGaps => "same_gaps",
        }
    }

    /// Whether nothing speaks against the claim all the same.
    pub(super) fn is_no_objection(&self) -> bool {
        matches!(self, Why::NoVerifier | Why::Verified)
    }
}

/// What came of it.
pub(super) enum Came {
    NotAsked(Why),
    /// It was ended from outside, which tells nothing and is not counted.
    Ended(Exit),
    Judged {
        verdict: Verdict,
        step: Step,
        used: u32,
        most: u32,
    },
}

fn failed(error: &ClaimsError) -> Failure {
    match error {
        ClaimsError::Busy => {
            Failure::new(Exit::No, "busy", format!("can't {WHAT}: {error}"), "Wait until it has ended")
        }
        ClaimsError::Other(_) => Failure::disk(WHAT, error, "Move that file away"),
        ClaimsError::Disk(_) | ClaimsError::Unreadable { .. } => {
            Failure::disk(WHAT, error, "See `headman doctor`")
        }
    }
}

impl Asking<'_> {
    /// Asks it, with the evidence that `evidence` makes of the gaps of before.
    ///
    /// # Errors
    /// [`Failure`] where it can't be started, or what came of it not be remembered.
    pub(super) fn ask(
        &self,
        ends_with_input: bool,
        evidence: impl FnOnce(Vec<String>) -> Result<Evidence, Failure>,
    ) -> Result<Came, Failure> {
        let gate = self.config.supervisor.as_ref().map(|supervisor| &supervisor.gate);
        let Some(gate) = gate.filter(|gate| !gate.command.is_empty()) else {
            return Ok(Came::NotAsked(Why::NoVerifier));
        };
        if !self.claims {
            return Ok(Came::NotAsked(Why::NoClaim));
        }
        let watch = &self.watched.watch;
        let session = &self.watched.session;
        let state = StateDir::at(&self.places.state_dir, std::ffi::OsStr::new(""));
        StateDir::make(&self.places.state_dir)
            .map_err(|error| Failure::disk(WHAT, &error, "See `headman doctor`"))?;
        let claims = Claims::new(state.root(), state.claims());
        let _held = claims.hold(session).map_err(|error| failed(&error))?;
        let remembered = claims.read(session).map_err(|error| failed(&error))?;
        let (turn, asked_at) = (watch.turns(), watch.asked_at());
        let of_before = remembered.runs.filter(|runs| runs.are_of(turn, asked_at));
        let mut runs = of_before.unwrap_or_else(|| Runs::new(turn, asked_at));
        let entry = watch.answer().map(|answer| answer.entry.as_str());
        let most = gate.max_attempts.get();
        match runs.next.as_str() {
            "verified" if runs.entry.as_deref() == entry => return Ok(Came::NotAsked(Why::Verified)),
            "same_gaps" => return Ok(Came::NotAsked(Why::SameGaps)),
            _ if runs.used >= most => return Ok(Came::NotAsked(Why::Exhausted(runs.used))),
            _ => {}
        }
        let evidence = evidence(runs.gaps.clone())?;
        let command: Vec<OsString> = gate.command.iter().map(OsString::from).collect();
        let answer = match self.run(&command, &evidence, runs.used + 1, ends_with_input)? {
            Ok(answer) => answer,
            Err(exit) => return Ok(Came::Ended(exit)),
        };
        let verdict = gate::verdict(answer.ended, &answer.said, &evidence);
        let mut attempts = runs.attempts();
        let step = attempts.take(verdict.clone(), watch.count(), most);
        runs.take(&verdict, step.as_str(), watch.count(), entry);
        // What was inserted meanwhile is not lost.
        let mut remembered = claims.read(session).map_err(|error| failed(&error))?;
        self.learn(&state, &mut remembered, &step);
        remembered.runs = Some(runs);
        claims.write(session, &remembered).map_err(|error| failed(&error))?;
        Ok(Came::Judged { verdict, step, used: attempts.used(), most })
    }

    /// Changes what the lessons are worth that went along.
    fn learn(&self, state: &StateDir, remembered: &mut Remembered, step: &Step) {
        let (ended, is_over) = match step {
            Step::Draft(_) => return,
            Step::Verified => (RunEnded::Pass, true),
            Step::Exhausted | Step::SameGaps => (RunEnded::Exhausted, true),
            Step::Again(_) => (RunEnded::Indeterminate, false),
        };
        let store = Store::new(state.root(), state.learning());
        for name in &remembered.inserted {
            let learnt = store.find(name).and_then(|kept| store.learn(&kept, ended, now()));
            if let Err(error) = learnt {
                note(&format!("the lesson {name} learns nothing from this: {error}"));
            }
        }
        if is_over {
            remembered.inserted.clear();
        }
    }

    /// Runs it; how we end where it was ended from outside.
    fn run(
        &self,
        command: &[OsString],
        evidence: &Evidence,
        attempt: u32,
        ends_with_input: bool,
    ) -> Result<Result<Answer, Exit>, Failure> {
        let environment = Environment::of_process();
        let (settings, warnings) =
            Settings::resolve(ADAPTER, &Flags::default(), |name| environment.var(name), &self.config.turn);
        warnings.iter().for_each(|warning| note(warning));
        let turn = Turn {
            places: self.places,
            seat: SEAT.to_owned(),
            adapter: ADAPTER.to_owned(),
            event: Some(EVENT.to_owned()),
            attempts: attempt,
            settings,
        };
        let system = |error: std::io::Error| {
            Failure::new(Exit::Unavailable, "system", format!("can't {WHAT}: {error}"), "Try again")
        };
        // Of one thread, which the command is started on and which lives as long as it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
        let (settled, ended_by) = runtime
            .block_on(supervised(&turn, command, evidence.to_json().into_bytes(), ends_with_input))
            .map_err(system)?;
        if let Some(error) = &settled.not_started {
            let program = command.first().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            return Err(Failure::new(
                Exit::Usage,
                "verifier",
                format!("can't start the verifier {}: {error}", program.escape_debug()),
                "Correct `command` of [supervisor.gate]",
            ));
        }
        if let Some(signal) = ended_by {
            return Ok(Err(signal));
        }
        let ended = match settled.status {
            _ if settled.bytes > MAX_VERDICT as u64 => Err(Worthless::TooLarge),
            _ if settled.stalled || settled.cancelled || settled.killed => Err(Worthless::TooLong),
            Some(status) if status.success() => Ok(()),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Err(Worthless::Exit(code)),
                (None, signal) => Err(Worthless::Signal(signal.unwrap_or(0))),
            },
            None => Err(Worthless::TooLong),
        };
        Ok(Ok(Answer { said: settled.stdout.bytes().to_vec(), ended }))
    }
}

/// What it wrote, and why its end alone makes that worth nothing.
struct Answer {
    said: Vec<u8>,
    ended: Result<(), Worthless>,
}

/// One run; how we end where that was ended from outside.
async fn supervised(
    turn: &Turn<'_>,
    command: &[OsString],
    evidence: Vec<u8>,
    ends_with_input: bool,
) -> std::io::Result<(Settled, Option<Exit>)> {
    let (mut asked, signals) = turn::listen()?;
    // What ends it beside signals; kept, so that waiting for it never ends by itself.
    let (ends, mut input_ended) = tokio::sync::mpsc::unbounded_channel();
    if ends_with_input {
        watch_input(ends.clone())?;
    }
    let id = Uuid::random();
    let mut log = Log::default();
    let (is_logged, announced) = turn.announce(id, &mut log);
    let job = Job {
        command,
        settings: &turn.settings,
        turn: id,
        input: Input::Bytes(evidence),
        stdout: None,
        stderr: None,
        keep: MAX_VERDICT + 1,
        most: Some(MAX_VERDICT as u64),
        in_our_group: false,
        program: std::env::current_exe()?,
    };
    let (both, mut either) = tokio::sync::mpsc::unbounded_channel();
    let is_gone = std::rc::Rc::new(std::cell::Cell::new(false));
    let forward = async {
        loop {
            let end = tokio::select! {
                Some(end) = asked.recv() => end,
                Some(()) = input_ended.recv() => {
                    is_gone.set(true);
                    End { is_told: false }
                }
                else => std::future::pending().await,
            };
            // It may have settled.
            let _ = both.send(end);
        }
    };
    let settled = tokio::select! {
        settled = run::run(job, &mut either) => settled,
        () = forward => std::future::pending().await,
    };
    drop(ends);
    let mut ledger = Ledger::new(|line: &Line| {
        if is_logged && let Err(error) = turn.places.turn_logs.append(line) {
            log.warn(&error.to_string());
        }
    });
    ledger.settled(turn.line(&settled));
    if settled.failure.is_none() {
        ledger.finish(if settled.bytes == 0 { Outcome::Silent } else { Outcome::Delivered }, ledger::now());
    }
    drop((ledger, announced));
    if settled.left_running() {
        let pids: Vec<String> = settled.left.iter().map(|it| it.pid.to_string()).collect();
        note(&format!("something of the verifier could not be ended: {}", pids.join(", ")));
    }
    let by_signal = *signals.borrow();
    let ended_by = by_signal
        .map(|signal| Exit::Code(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
        .or_else(|| is_gone.get().then_some(Exit::Interrupted));
    Ok((settled, ended_by))
}

/// Tells once standard input has ended: whoever started us is gone, or wants no answer any more.
fn watch_input(ends: tokio::sync::mpsc::UnboundedSender<()>) -> std::io::Result<()> {
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut some = [0; 256];
        while !matches!(std::io::stdin().lock().read(&mut some), Ok(0) | Err(_)) {}
        // The run may have settled.
        let _ = ends.send(());
    })?;
    Ok(())
}
