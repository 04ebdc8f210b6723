//! The process of one lead of the demo, or of several: a real participant of the contract that
//! plays its [`super::script`].
//!
//! Its options come as the first line on its standard input. When that ends, for whatever reason, so
//! does the process: the demo can be killed without leaving anyone behind. What it would show on its
//! screen goes to its standard output, a line each, as [`Screen`] says.

use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::cast;
use super::crew::{Crew, Member};
use super::pane::{Herdr, Screen};
use super::random::Random;
use super::script::{Act, Attachment, Character, Question, Recipient, Script};
use super::session::{Conversation, ToolCall, WriteError, now};
use crate::chief::attach::{AttachError, FileArgument};
use crate::contract::{Kind, NativeId, PeerRecord, SessionId};
use crate::disk::{AgentDir, DiskError, Unreadable};
use crate::herdr::{Client, Status};
use crate::lead::coordination::{Coordination, Drain, Opening, Received};
use crate::lead::errors::{AskError, OpenError, Unable};
use crate::lead::mail::LOOK;
use crate::lead::{About, NotToPeer, NotUp, Place, SessionFile};

/// How often it repeats to Herdr what it does.
const REPEAT: Duration = Duration::from_secs(10);
/// How long it may take to withdraw.
const WITHDRAW: Duration = Duration::from_secs(3);
/// Longest options, in bytes.
const MAX_OPTIONS: u64 = 1 << 20;
/// Chance for the agents, apart from that of any lead.
const CREW_STREAMS: u64 = 1 << 32;
/// Chance for the ids of entries, apart from that for what is in them.
const ID_STREAMS: u64 = 1 << 33;
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
    Session(#[from] WriteError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("nothing was asked: {0}")]
    Ask(#[from] AskError),
    #[error("nothing was told: {0}")]
    Tell(#[from] NotUp),
    #[error("nothing was attached: {0}")]
    Attach(#[from] AttachError),
    #[error("the peers can't be listed: {0}")]
    Peers(#[from] Unreadable),
    #[error("nothing was written to a peer: {0}")]
    Write(#[from] NotToPeer),
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
    let script = Script::new(character.clone(), Random::new(options.seed, stream), options.speed);
    let screen = Screen(seat.nth);
    let begins = !seat.session_file.exists();
    let (conversation, file) =
        if begins { open_session(&options, &seat, &character, screen)? } else { resume(&options, &seat)? };
    let lead = Coordination::open(opening(&options, &seat, &character)?, file)?;
    let status = if begins { character.starts } else { Status::Idle };
    let client = Client::new(PathBuf::from(&options.socket));
    let herdr = Herdr::new(client.clone(), &seat.pane, &seat.session_file, status);
    let mut player = Player { seat, lead, conversation, script, herdr, screen, next: None, called: None };
    if !begins {
        player.take_up();
    }
    // The agents first: whoever sees the lead sees them with it.
    let random = Random::new(options.seed, stream ^ CREW_STREAMS);
    let Seat { nth, crew, .. } = &player.seat;
    let mut crew = Crew::new(*nth, crew, client, &options.agent_dir, random, options.speed);
    if let Err(error) = crew.begin().await {
        complain(&error);
    }
    player.herdr.begin(&character.name).await;

    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut repeat = tokio::time::interval_at(Instant::now() + REPEAT, REPEAT);
    repeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    player.plan();
    while !*ending.borrow() {
        let is_due = wait_until(player.next.as_ref().map(|(due, _)| *due));
        tokio::select! {
            changed = ending.changed() => if changed.is_err() { break },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = repeat.tick() => {
                player.herdr.report().await;
                crew.report().await;
            }
            () = wait_until(crew.due()) => {
                if let Err(error) = crew.go_on().await {
                    complain(&error);
                }
                for pane in crew.gone() {
                    screen.loses(&pane);
                }
            }
            _ = look.tick() => {
                if let Err(error) = player.receive(options.speed > 0.0).await {
                    complain(&error);
                    break;
                }
            }
            () = is_due => {
                let Some((_, act)) = player.next.take() else { continue };
                if let Err(error) = player.perform(act).await {
                    // As a full disk would be: it goes on, and so does the play.
                    complain(&error);
                }
                player.plan();
            }
        }
    }
    Ok(player.lead.close()?)
}

/// Waits for a moment, or for ever.
async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Begins the session with what went before the curtain rose.
fn open_session(
    options: &Options,
    seat: &Seat,
    character: &Character,
    screen: Screen,
) -> Result<(Conversation, SessionFile), LeadError> {
    let [random, ids] = chances(options.seed, seat);
    let session = session_of(seat)?;
    let (mut conversation, mut file) =
        Conversation::begin(&seat.session_file, session, &seat.cwd, seat.begun, random, ids)?;
    let steps = character.history.len() as u64 + 2;
    let each = now().saturating_sub(seat.begun) / steps;
    let time_of = |step: u64| Some(seat.begun + each * step);
    conversation.set_time(time_of(1));
    conversation.name(&mut file, &character.name)?;
    conversation.user(&mut file, &character.task)?;
    screen.shows(&format!("> {}", character.task));
    for (call, step) in character.history.iter().zip(2..) {
        conversation.set_time(time_of(step));
        let id = conversation.calls(&mut file, call)?;
        conversation.result(&mut file, &id, call)?;
        screen.shows_call(call);
    }
    conversation.set_time(None);
    Ok((conversation, file))
}

fn resume(options: &Options, seat: &Seat) -> Result<(Conversation, SessionFile), LeadError> {
    // Entries made now must not have the ids of those made before.
    let [random, ids] = chances(options.seed ^ now(), seat);
    Ok(Conversation::resume(&seat.session_file, session_of(seat)?, random, ids)?)
}

/// Chance for a session's entries, and for their ids.
fn chances(seed: u64, seat: &Seat) -> [Random; 2] {
    let stream = seat.nth as u64 * 2 + 1;
    [Random::new(seed, stream), Random::new(seed, stream ^ ID_STREAMS)]
}

fn session_of(seat: &Seat) -> Result<SessionId, LeadError> {
    SessionId::new(seat.session.as_str()).ok_or(LeadError::Id("the session"))
}

fn opening(options: &Options, seat: &Seat, character: &Character) -> Result<Opening, LeadError> {
    let id = |text: &str, what| NativeId::new(text).ok_or(LeadError::Id(what));
    Ok(Opening {
        agent_dir: AgentDir::resolve(Some(options.agent_dir.as_os_str()), &options.agent_dir),
        socket: options.socket.clone().into(),
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

/// Who plays one lead, and what comes next.
struct Player {
    seat: Seat,
    lead: Coordination,
    conversation: Conversation,
    script: Script,
    herdr: Herdr,
    screen: Screen,
    next: Option<(Instant, Act)>,
    /// The tool that runs, by the call's id.
    called: Option<(String, ToolCall<'static>)>,
}

impl Player {
    fn plan(&mut self) {
        self.next = self.script.next_act().map(|(pause, act)| (Instant::now() + pause, act));
    }

    /// Goes on with a session that was cut off.
    fn take_up(&mut self) {
        let pending = self.lead.pending_ask().is_some();
        self.script.resume(self.lead.file().asks(), pending);
        self.screen.shows("— taken up again —");
    }

    /// Looks into the inboxes; what comes next may change by it. What peers wrote is taken between
    /// turns, and by a lead that stands still never.
    async fn receive(&mut self, plays: bool) -> Result<(), Unable> {
        // Handing over is done with writing into the session.
        let mut received = taken(self.lead.drain(|_| Ok(())).await)?;
        if plays && self.herdr.status() == Status::Idle {
            received.extend(taken(self.lead.drain_peers(|_| Ok(())))?);
        }
        if received.is_empty() {
            return Ok(());
        }
        if let Some((due, act)) = self.next.take() {
            self.script.put_back(due.saturating_duration_since(Instant::now()), act);
        }
        for Received { message, answers } in received {
            let text = message.text.to_str_lossy();
            if message.kind == Kind::PeerMessage {
                self.screen.shows(&format!("From a peer: {text}"));
                self.script.peer_wrote(&message.from, &text);
            } else {
                self.screen.shows(&format!("From the Chief: {text}"));
                if answers.is_some() { self.script.replied(&text) } else { self.script.told() }
            }
        }
        self.plan();
        Ok(())
    }

    async fn perform(&mut self, act: Act) -> Result<(), LeadError> {
        // What it called before is done by now.
        if let Some((id, call)) = self.called.take_if(|_| !matches!(act, Act::Die)) {
            self.conversation.result(self.lead.file(), &id, &call)?;
        }
        match act {
            Act::Show(status) => self.herdr.show(status).await,
            Act::Call(call) => {
                self.screen.shows_call(&call);
                let id = self.conversation.calls(self.lead.file(), &call)?;
                self.called = Some((id, call));
            }
            Act::Say(text) => {
                self.screen.shows(&text);
                self.conversation.says(self.lead.file(), &text)?;
            }
            Act::Prompt(text) => {
                self.screen.shows(&format!("> {text}"));
                self.conversation.user(self.lead.file(), text)?;
            }
            Act::Ask(question) => {
                if let Err(error) = self.ask(question).await {
                    self.script.not_asked();
                    return Err(error);
                }
            }
            Act::Tell(tell) => {
                self.screen.shows(&format!("Telling the Chief: {}", tell.text));
                let files = self.files(tell.attached)?;
                let rendered = self.lead.render(Kind::LeadMessage, None, &tell.text.into(), &files)?;
                self.lead.tell(rendered.text).await?;
            }
            Act::Write(to, text) => self.write(&to, text)?,
            Act::Die => std::process::exit(DIED),
        }
        Ok(())
    }

    async fn ask(&mut self, question: Question) -> Result<(), LeadError> {
        self.screen.shows(&format!("Asking the Chief: {}", question.question));
        let files = self.files(question.attached)?;
        let text = question.question.into();
        let rendered = self.lead.render(Kind::LeadAsk, None, &text, &files)?;
        // Where nobody may be written to the Chief sees it by the lead's record.
        if let Err(why) = self.lead.ask(text, rendered.text).await?.published {
            complain(&why);
        }
        Ok(())
    }

    /// Writes to a peer that is there; else it stays unsaid.
    fn write(&mut self, to: &Recipient, text: &str) -> Result<(), LeadError> {
        let peers = self.lead.peers()?;
        let is_meant = |peer: &&PeerRecord| match to {
            Recipient::Named(name) => peer.name.as_ref().is_some_and(|it| *it.as_untrusted() == **name),
            Recipient::Session(session) => peer.session == *session,
        };
        let Some(peer) = peers.iter().find(is_meant) else { return Ok(()) };
        self.screen.shows(&format!("To a peer: {text}"));
        self.lead.write_to_peer(peer, &text.into())?;
        Ok(())
    }

    /// Writes the file that goes along into the working directory.
    fn files(&self, attached: Option<Attachment>) -> Result<Vec<FileArgument>, LeadError> {
        let Some(attached) = attached else { return Ok(Vec::new()) };
        let path = Path::new(&self.seat.cwd).join(attached.name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, attached.content.repeat(attached.times))?;
        Ok(vec![FileArgument::new(attached.name, &self.seat.cwd)])
    }
}

/// What was handed over; what failed is tried again, and told of.
fn taken(drained: Result<Drain, Unable>) -> Result<Vec<Received>, Unable> {
    match drained {
        Ok(drained) => {
            for error in &drained.errors {
                complain(error);
            }
            Ok(drained.received)
        }
        Err(error) if error.is_unhealthy() => Err(error),
        Err(error) => {
            complain(&error);
            Ok(Vec::new())
        }
    }
}

pub(super) fn complain(error: &dyn std::fmt::Display) {
    // Where nobody reads it there is nothing more to be done about it.
    let _ = writeln!(std::io::stderr().lock(), "demo lead: {error}");
}
