//! The process of one lead of the demo, or of several: a real participant of the contract that
//! plays its [`super::script`].
//!
//! Its options come as the first line on its standard input. When that ends, for whatever reason, so
//! does the process: the demo can be killed without leaving anyone behind. What it would show on its
//! screen goes to its standard output, a line each, as [`Screen`] says.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::cast;
use super::crew::{Crew, Member};
use super::random::Random;
use super::script::{Act, Character, Question, Script};
use super::session::{SessionFile, now};
use crate::contract::{NativeId, SessionId};
use crate::disk::{AgentDir, DiskError};
use crate::herdr::{Client, HerdrError, Status};
use crate::lead::coordination::{Coordination, OpenError, Opening};
use crate::lead::{About, Place, Remembered};

/// How often a lead looks into its inbox.
const LOOK: Duration = Duration::from_millis(500);
/// How often it repeats to Herdr what it does.
const REPEAT: Duration = Duration::from_secs(10);
/// How long it may take to withdraw.
const WITHDRAW: Duration = Duration::from_secs(3);
/// Longest options, in bytes.
const MAX_OPTIONS: u64 = 1 << 20;
/// Chance for the agents, apart from that of any lead.
const CREW_STREAMS: u64 = 1 << 32;
/// The exit code of a process that died because its part says so.
pub(super) const DIED: i32 = 9;

/// What a lead process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Herdr's socket, spelt as the console spells it.
    pub socket: String,
    /// The agent directory.
    pub agent_dir: PathBuf,
    /// How many times faster than life; 0 stands still after the opening.
    pub speed: f64,
    /// Makes two herds alike.
    pub seed: u64,
    /// The leads this process plays.
    pub seats: Vec<Seat>,
}

/// One lead's place in the herd.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Seat {
    /// Which character it is, see [`cast::character`].
    pub nth: usize,
    /// Its session.
    pub session: String,
    /// The file of it. If it exists the session is taken up again, else begun.
    pub session_file: PathBuf,
    /// When the session began, in milliseconds since the epoch.
    pub begun: u64,
    /// Its working directory.
    pub cwd: String,
    /// Its pane.
    pub pane: String,
    /// Its tab.
    pub tab: String,
    /// Its workspace.
    pub workspace: String,
    /// Its workspace's label.
    pub workspace_label: String,
    /// Its managed agents.
    #[serde(default)]
    pub crew: Vec<Member>,
}

/// What went wrong with one lead.
#[derive(Debug, thiserror::Error)]
enum LeadError {
    #[error("the options are no line of JSON with what is needed: {0}")]
    Options(String),
    #[error("{0} is no id of 1–512 UTF-16 units")]
    Id(&'static str),
    #[error("the session can't be written: {0}")]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("can't start: {0}")]
    Start(#[from] std::io::Error),
}

/// Plays the leads named on standard input until that ends, or a signal asks to end. The exit code
/// is 0 unless a lead could not be played: then 1.
pub fn run() -> u8 {
    start().unwrap_or_else(|error| {
        complain(&error);
        1
    })
}

fn start() -> Result<u8, LeadError> {
    let (ends, ending) = watch::channel(false);
    let (give, options) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("lifeline".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        // Whoever waits for the options may have gone on an error of its own.
        let _ = give.send(read_options(&mut input));
        // Nothing more is sent: this ends when the other end does.
        let _ = std::io::copy(&mut input, &mut std::io::sink());
        ends.send_replace(true);
        std::thread::sleep(WITHDRAW);
        std::process::exit(1);
    })?;
    let options = options.recv().map_err(|error| LeadError::Options(error.to_string()))??;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Ok(runtime.block_on(play(options, ending)))
}

fn read_options(input: &mut impl BufRead) -> Result<Options, LeadError> {
    let mut line = Vec::new();
    input.take(MAX_OPTIONS).read_until(b'\n', &mut line)?;
    serde_json::from_slice(&line).map_err(|error| LeadError::Options(error.to_string()))
}

async fn play(options: Options, ending: watch::Receiver<bool>) -> u8 {
    let mut playing = tokio::task::JoinSet::new();
    for seat in options.seats.clone() {
        playing.spawn(live(options.clone(), seat, ending.clone()));
    }
    let mut code = 0;
    while let Some(ended) = playing.join_next().await {
        let error = match ended {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        complain(&error);
        code = 1;
    }
    code
}

/// One lead from its opening to its withdrawal.
async fn live(options: Options, seat: Seat, mut ending: watch::Receiver<bool>) -> Result<(), LeadError> {
    if *ending.borrow() {
        return Ok(());
    }
    let stream = seat.nth as u64 * 2;
    let character = cast::character(seat.nth);
    let mut script = Script::new(character.clone(), Random::new(options.seed, stream), options.speed);
    let screen = Screen(seat.nth);
    let begins = !seat.session_file.exists();
    let (file, remembered) = if begins {
        let random = Random::new(options.seed, stream + 1);
        (open_session(&seat, &character, random, screen)?, Remembered::default())
    } else {
        // Entries made now must not have the ids of those made before.
        let random = Random::new(options.seed ^ now(), stream + 1);
        let (file, resumed) = SessionFile::resume(&seat.session_file, random)?;
        script.resume(resumed.asks, resumed.remembered.pending_ask.is_some());
        screen.shows("— taken up again —");
        (file, resumed.remembered)
    };
    let mut lead = Coordination::open(opening(&options, &seat, &character)?, file, remembered)?;
    let mut herdr = Herdr {
        client: Client::new(PathBuf::from(&options.socket)),
        pane: seat.pane.clone(),
        session_file: seat.session_file.to_string_lossy().into_owned(),
        last_seq: 0,
        status: if begins { character.starts } else { Status::Idle },
    };
    // The agents first: whoever sees the lead sees them with it.
    let random = Random::new(options.seed, stream ^ CREW_STREAMS);
    let mut crew =
        Crew::new(seat.nth, &seat.crew, herdr.client.clone(), &options.agent_dir, random, options.speed);
    if let Err(error) = crew.begin().await {
        complain(&error);
    }
    herdr.begin(&character.name).await;

    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut repeat = tokio::time::interval_at(Instant::now() + REPEAT, REPEAT);
    repeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut next = plan(&mut script);
    while !*ending.borrow() {
        let is_due = wait_until(next.as_ref().map(|(due, _)| *due));
        tokio::select! {
            changed = ending.changed() => if changed.is_err() { break },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = repeat.tick() => {
                herdr.report().await;
                crew.report().await;
            }
            () = wait_until(crew.due()) => {
                if let Err(error) = crew.go_on().await {
                    complain(&error);
                }
            }
            _ = look.tick() => {
                if receive(&mut lead, &mut script, &mut next, screen).await {
                    next = plan(&mut script);
                }
            }
            () = is_due => {
                let Some((_, act)) = next.take() else { continue };
                if let Err(error) = perform(act, &seat, &mut lead, &mut script, &mut herdr, screen).await {
                    // As a full disk would be: it goes on, and so does the play.
                    complain(&error);
                }
                next = plan(&mut script);
            }
        }
    }
    Ok(lead.close()?)
}

/// Waits for a moment, or for ever.
async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

type Due = Option<(Instant, Act)>;

fn plan(script: &mut Script) -> Due {
    script.next_act().map(|(pause, act)| (Instant::now() + pause, act))
}

/// Begins the session with what went before the curtain rose.
fn open_session(
    seat: &Seat,
    character: &Character,
    random: Random,
    screen: Screen,
) -> Result<SessionFile, DiskError> {
    let path = &seat.session_file;
    let mut file = SessionFile::create(path, &seat.session, &seat.cwd, seat.begun, random)?;
    let steps = character.history.len() as u64 + 2;
    let each = now().saturating_sub(seat.begun) / steps;
    let time_of = |step: u64| Some(seat.begun + each * step);
    file.set_time(time_of(1));
    file.name(&character.name)?;
    file.user(&character.task)?;
    screen.shows(&format!("> {}", character.task));
    for (call, step) in character.history.iter().zip(2..) {
        file.set_time(time_of(step));
        file.calls(call)?;
        screen.shows_call(call);
    }
    file.set_time(None);
    Ok(file)
}

fn opening(options: &Options, seat: &Seat, character: &Character) -> Result<Opening, LeadError> {
    let id = |text: &str, what| NativeId::new(text).ok_or(LeadError::Id(what));
    Ok(Opening {
        agent_dir: AgentDir::resolve(Some(options.agent_dir.as_os_str()), &options.agent_dir),
        socket: options.socket.clone().into(),
        session: SessionId::new(seat.session.as_str()).ok_or(LeadError::Id("the session"))?,
        place: Place {
            pane: id(&seat.pane, "the pane")?,
            tab: id(&seat.tab, "the tab")?,
            workspace: id(&seat.workspace, "the workspace")?,
        },
        about: About {
            name: NativeId::new(&*character.name),
            cwd: NativeId::new(seat.cwd.as_str()),
            repo: NativeId::new(&*character.repo),
            branch: NativeId::new(&*character.branch),
            workspace_label: NativeId::new(seat.workspace_label.as_str()),
        },
    })
}

/// Looks into the inbox; whether what comes next has changed by it.
async fn receive(
    lead: &mut Coordination<SessionFile>,
    script: &mut Script,
    next: &mut Due,
    screen: Screen,
) -> bool {
    let drained = match lead.drain().await {
        Ok(drained) => drained,
        Err(error) => {
            complain(&error);
            return false;
        }
    };
    for error in &drained.errors {
        complain(error);
    }
    if drained.received.is_empty() {
        return false;
    }
    if let Some((due, act)) = next.take() {
        script.put_back(due.saturating_duration_since(Instant::now()), act);
    }
    for received in drained.received {
        let text = received.message.text.to_str_lossy();
        screen.shows(&format!("From the Chief: {text}"));
        if received.answers.is_some() { script.replied(&text) } else { script.told() }
    }
    true
}

async fn perform(
    act: Act,
    seat: &Seat,
    lead: &mut Coordination<SessionFile>,
    script: &mut Script,
    herdr: &mut Herdr,
    screen: Screen,
) -> Result<(), LeadError> {
    match act {
        Act::Show(status) => {
            if std::mem::replace(&mut herdr.status, status) != status {
                herdr.report().await;
            }
        }
        Act::Call(call) => {
            screen.shows_call(&call);
            lead.log().calls(&call)?;
        }
        Act::Say(text) => {
            screen.shows(&text);
            lead.log().says(&text)?;
        }
        Act::Prompt(text) => {
            screen.shows(&format!("> {text}"));
            lead.log().user(text)?;
        }
        Act::Ask(question) => {
            screen.shows(&format!("Asking the Chief: {}", question.question));
            match lead.ask(question.question, &text_of(&question, seat)?).await {
                Ok(asked) => {
                    if let Err(why) = asked.published {
                        complain(&why);
                    }
                }
                Err(error) => {
                    script.not_asked();
                    complain(&error);
                }
            }
        }
        Act::Tell(text) => {
            screen.shows(&format!("Telling the Chief: {text}"));
            if let Err(why) = lead.tell(text).await {
                complain(&why);
            }
        }
        Act::Die => std::process::exit(DIED),
    }
    Ok(())
}

/// The question, with the file that goes with it written out and rendered as the contract's
/// "Attachments" says.
fn text_of(question: &Question, seat: &Seat) -> Result<String, LeadError> {
    let Some((name, content)) = question.attached else { return Ok(question.question.to_owned()) };
    let path = PathBuf::from(&seat.cwd).join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&path, content)?;
    let path = std::fs::canonicalize(&path)?;
    let shown = path.to_string_lossy().replace('&', "&#x26;").replace('"', "&#x22;");
    let shown = shown.replace('<', "&#x3c;").replace('>', "&#x3e;");
    let bytes = content.len();
    Ok(format!(
        "<file name=\"{shown}\" bytes=\"{bytes}\">\n{content}\n</file>\n\nQuestion:\n{}",
        question.question
    ))
}

/// The lead's own reports to Herdr. They are repeated, so one that fails is only told of.
struct Herdr {
    client: Client,
    pane: String,
    session_file: String,
    last_seq: u64,
    status: Status,
}

impl Herdr {
    async fn begin(&mut self, name: &str) {
        let session = json!({
            "pane_id": self.pane, "source": "herdr:pi", "agent": "pi", "seq": self.seq(),
            "session_start_source": "new", "agent_session_path": self.session_file,
        });
        self.send("pane.report_agent_session", session).await;
        self.report().await;
        let metadata = json!({
            "pane_id": self.pane, "source": "pi-herdsman:lead", "seq": self.seq(), "title": name,
            "tokens": {"pi_herdsman_role": "lead", "pi_herdsman_name": name},
        });
        self.send("pane.report_metadata", metadata).await;
    }

    async fn report(&mut self) {
        let report = json!({
            "pane_id": self.pane, "source": "herdr:pi", "agent": "pi", "state": self.status.as_str(),
            "seq": self.seq(), "agent_session_path": self.session_file,
        });
        self.send("pane.report_agent", report).await;
    }

    async fn send(&self, method: &str, params: serde_json::Value) {
        let sent: Result<_, HerdrError> = self.client.request(method, params).await;
        if let Err(error) = sent {
            complain(&error);
        }
    }

    /// Microseconds since the epoch, as every reporter counts, always rising.
    fn seq(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_seq = u64::try_from(now.as_micros()).unwrap_or(0).max(self.last_seq + 1);
        self.last_seq
    }
}

/// What the lead shows on its pane: lines on standard output that begin with its number and a tab.
#[derive(Debug, Clone, Copy)]
pub struct Screen(pub usize);

impl Screen {
    fn shows(self, text: &str) {
        let mut lines = String::new();
        for line in text.lines() {
            lines += &format!("{}\t{line}\n", self.0);
        }
        // Nobody may be looking any more.
        let _ = std::io::stdout().lock().write_all(lines.as_bytes());
    }

    fn shows_call(self, call: &super::session::ToolCall<'_>) {
        if !call.say.is_empty() {
            self.shows(call.say);
        }
        self.shows(&format!("● {} {}", call.tool, call.arguments));
        let result = call.result.lines().next_back().unwrap_or_default();
        self.shows(&format!("  {} {result}", if call.failed { "✗" } else { "└" }));
    }

    /// Takes such a line apart: whose it is, and its text.
    pub fn read(line: &str) -> Option<(usize, &str)> {
        let (nth, text) = line.split_once('\t')?;
        Some((nth.parse().ok()?, text))
    }
}

fn complain(error: &dyn std::fmt::Display) {
    // Where nobody reads it there is nothing more to be done about it.
    let _ = writeln!(std::io::stderr().lock(), "demo lead: {error}");
}
