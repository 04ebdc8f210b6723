//! The loop: terminal events first, then facts; a frame only when something changed.

mod aside;
mod errands;
mod keeping;
mod paging;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEventKind};
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::app::{App, Effect, Settings};
use super::burst::{BurstGuard, Passed};
use super::clock;
use super::drafts::{self, Debounce};
use super::errand::Came;
use super::files::{Answer, Place};
use super::gating::Supervision;
use super::keymap::{Keymap, KeymapError};
use super::last_resort;
use super::notify;
use super::notify::delivery::{Means, Notices};
use super::pager;
use super::snippets::Snippets;
use super::terminal::{self, Events, Screen, Signal, Signals, TerminalError};
use super::text::Visible;
use super::theme::{Role, Theme};
use super::view::frame;
use crate::chief::service::Request;
use crate::chief::state_dir::StateError;
use crate::control::host::{self, Host, HostError};
use crate::control::socket::ControlSocket;
use crate::disk::AgentDir;
use crate::fact::Now;
use crate::herdr::reexec::Reexec;
use crate::herdr::{Client, Located, PaneContext, Registration};
use crate::model::Model;
use crate::pi::discover::SessionDirs;
use crate::source::sessions::Followed;
use crate::turn::log::TurnLogs;
use keeping::{Kept, Unsaved};

pub use errands::Ourselves;

/// Frames are at least this far apart.
const FRAME: Duration = Duration::from_millis(8);
/// How long ending may take before we end without it.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// How long a suspension waits for drafts.
const SUSPEND: Duration = Duration::from_secs(1);

/// What the console is started with.
pub struct Options {
    /// Herdr's socket.
    pub socket: Located,
    /// Pi's agent directory.
    pub agent_dir: AgentDir,
    /// Where Pi keeps its sessions.
    pub sessions: SessionDirs,
    /// Where our own state is.
    pub state_dir: PathBuf,
    /// Months of the journal that are older than so many days go as we become Chief.
    pub keep_days: Option<u32>,
    /// Whether changes of the records are to be told by the system, where it can.
    pub notified: bool,
    /// Where turns are logged.
    pub turn_logs: TurnLogs,
    /// Our pane in Herdr; else why leads can't see us there, safe to print.
    pub pane: Result<PaneContext, String>,
    /// Keys in place of the default ones.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Styles and glyphs.
    pub theme: Theme,
    /// Whether the terminal is to report the mouse.
    pub mouse: bool,
    /// Notices outside the screen, and the way they go.
    pub notices: (notify::Settings, Means),
    /// Texts that one key inserts, by number.
    pub snippets: BTreeMap<String, String>,
    /// Where the paths begin that a text mentions.
    pub place: Place,
    /// What long texts are written with, as the shell takes it.
    pub editor: OsString,
    /// What the configuration lets the console do for the supervisor.
    pub supervision: Supervision,
    /// How the gate is started.
    pub ourselves: Ourselves,
    /// Whether to name the next key to try, as the demo has it.
    pub guided: bool,
    /// How to be taken for Pi, should Herdr not list us in spite of the hint.
    pub second_attempt: Option<Reexec>,
    /// How to be no Pi any more, on leaving Chief mode.
    pub on_leaving: Option<Reexec>,
    /// How to be taken for Pi again, on becoming Chief after that.
    pub on_becoming_chief: Option<Reexec>,
}

/// Why the console could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The terminal can't be used.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// Our own state can't be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The keys configured are wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Keys(Vec<KeymapError>),
    /// The snippets configured are wrong.
    #[error("{}", .0.join("\n"))]
    Snippets(Vec<String>),
    /// A draft could not be kept.
    #[error("a draft is lost: {0}")]
    Unsaved(String),
    /// The system refused.
    #[error("can't start: {0}")]
    Io(#[from] std::io::Error),
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::State(error) => Self::State(error),
            HostError::Io(error) => Self::Io(error),
        }
    }
}

/// How the console ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The operator quit.
    Quit,
    /// A signal ended it.
    Signal(Signal),
    /// To be executed again: lease and terminal are given back.
    Again(Reexec),
}

/// Runs the console until it is quit.
pub fn run(options: Options) -> Result<Ended, RunError> {
    let keymap = Keymap::new(&options.keys).map_err(RunError::Keys)?;
    let snippets = Snippets::new(&options.snippets).map_err(RunError::Snippets)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(console(options, keymap, snippets));
    // What still waits for an answer of Herdr or the disk must not hold us up.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

async fn console(options: Options, keymap: Keymap, snippets: Snippets) -> Result<Ended, RunError> {
    // The terminal first: where there is none, nothing is written.
    let mut signals = Signals::listen()?;
    let mut screen =
        Screen::enter(terminal::Options { mouse: options.mouse, ..terminal::Options::default() })?;
    let mut events = Events::start()?;

    let control = ControlSocket::of_environment(&options.state_dir, &options.socket.path);
    let host = Host::start(host::Options {
        socket: options.socket.clone(),
        agent_dir: options.agent_dir,
        sessions: options.sessions,
        state_dir: options.state_dir,
        may_only_watch: true,
        keep_days: options.keep_days,
        notified: options.notified,
        turn_logs: Some(options.turn_logs),
        pane: options.pane,
        control,
    })?;
    let kept = {
        let state = host.state.clone();
        host.disk.run(move || Kept::load(&state)).await.unwrap_or_default()
    };
    let last_resort = tokio::spawn(last_resort::end(Arc::clone(&host.office), host.releaser.clone()));

    let settings = Settings {
        herdr_session: options.socket.session_name(),
        looked_for: options.socket.looked_for(),
        keymap,
        theme: options.theme,
        clock: clock::time,
        snippets,
        place: options.place,
        supervision: options.supervision,
        guided: options.guided,
    };
    let model = Model::new(host.office.session().clone(), host.registration.clone());
    let mut app = App::new(model, settings, kept.drafts);
    app.pin(kept.pins);
    let (notify, means) = options.notices;
    let notices = Notices::start(notify, means, Client::new(options.socket.path()));
    let (troubles, mut troubles_seen) = mpsc::unbounded_channel();
    // One answer of each kind at most is under way.
    let (found, answers) = mpsc::unbounded_channel();
    let (came, comes) = mpsc::unbounded_channel();
    // Of one broadcast at a time.
    let (kept_broadcast, broadcasts_kept) = mpsc::unbounded_channel();
    let mut console = Console {
        app,
        host,
        guard: BurstGuard::default(),
        notices,
        unsaved: BTreeMap::new(),
        save: Debounce::default(),
        title: Visible::default(),
        followed: None,
        dirty: true,
        next_frame: None,
        last_frame: None,
        troubles,
        second_attempt: options.second_attempt,
        on_leaving: options.on_leaving,
        on_becoming_chief: options.on_becoming_chief,
        editor: options.editor,
        found,
        answers,
        ourselves: options.ourselves,
        gate: None,
        came,
        comes,
        kept_broadcast,
        broadcasts_kept,
    };
    let now = console.now();
    if let Some(broadcast) = kept.broadcast {
        console.app.resume_broadcast(broadcast, now);
    }
    for skipped in kept.skipped {
        console.app.say(format_args!("{skipped}"), Role::Warning, now);
    }
    let turned = console.turn(&mut screen, &mut events, &mut signals, &mut troubles_seen);
    // Drafts, lease and registration matter after a panic, too.
    let ended = std::panic::AssertUnwindSafe(turned).catch_unwind().await;
    let unsaved = console.end().await;
    drop(events);
    drop(screen);
    last_resort.abort();
    let ended = match ended {
        // The next frame may have noticed it before the signal came.
        Ok(Err(RunError::Terminal(TerminalError::Gone))) => Ok(Ended::Signal(Signal::TerminalGone)),
        Ok(ended) => ended,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    match unsaved.into_iter().next() {
        Some(why) => Err(RunError::Unsaved(why)),
        None => ended,
    }
}

struct Console {
    app: App,
    host: Host,
    guard: BurstGuard,
    notices: Notices,
    unsaved: BTreeMap<PathBuf, Unsaved>,
    save: Debounce,
    title: Visible,
    /// The leads whose sessions are followed, by the roster's generation.
    followed: Option<u64>,
    dirty: bool,
    /// When the frame shown is out of date by itself.
    next_frame: Option<Instant>,
    last_frame: Option<Instant>,
    /// For the footer.
    troubles: mpsc::UnboundedSender<News>,
    second_attempt: Option<Reexec>,
    on_leaving: Option<Reexec>,
    on_becoming_chief: Option<Reexec>,
    editor: OsString,
    /// What is found out about files.
    found: mpsc::UnboundedSender<Answer>,
    answers: mpsc::UnboundedReceiver<Answer>,
    ourselves: Ourselves,
    gate: Option<errands::Running>,
    /// What came of errands.
    came: mpsc::UnboundedSender<Came>,
    comes: mpsc::UnboundedReceiver<Came>,
    /// Whether a broadcast that goes out is durable.
    kept_broadcast: mpsc::UnboundedSender<Result<(), String>>,
    broadcasts_kept: mpsc::UnboundedReceiver<Result<(), String>>,
}

/// What became of work nobody waits for.
struct News {
    text: String,
    role: Role,
    /// What could not be kept.
    unsaved: Option<Unsaved>,
    /// What was to be read in the pager, and the copy of it unless that failed.
    paged: Option<(pager::Paging, Option<pager::Copy>)>,
}

enum Turn {
    Go,
    Suspend,
    Redraw,
    Edit(String),
    End(Ended),
}

impl Console {
    fn now(&self) -> Now {
        self.host.office.now()
    }

    async fn turn(
        &mut self,
        screen: &mut Screen,
        events: &mut Events,
        signals: &mut Signals,
        troubles: &mut mpsc::UnboundedReceiver<News>,
    ) -> Result<Ended, RunError> {
        loop {
            if self.dirty && self.last_frame.is_none_or(|last| last.elapsed() >= FRAME) {
                self.draw(screen)?;
            }
            let wake = self.wake();
            let asleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                signal = signals.next() => match signal {
                    Signal::Continued => {
                        screen.take_back()?;
                        self.host.request(Request::RegisterAgain).await;
                        self.dirty = true;
                    }
                    signal => return Ok(Ended::Signal(signal)),
                },
                event = events.next() => {
                    let Some(mut read) = event else { return Ok(Ended::Signal(Signal::TerminalGone)) };
                    // Everything that is there before the next frame: a burst must look like one.
                    loop {
                        self.event(read.event, read.at);
                        match events.ready() {
                            Some(next) => read = next,
                            None => break,
                        }
                    }
                }
                () = self.host.facts.ready() => {
                    let now = self.now();
                    self.app.facts(self.host.facts.take(), now);
                    self.dirty = true;
                    if let Some(again) = self.try_the_other_name() {
                        return Ok(Ended::Again(again));
                    }
                }
                Some(news) = troubles.recv() => {
                    if let Some((paging, copy)) = news.paged {
                        let is_wanted = self.app.takes_page(&paging);
                        if let Some(copy) = copy {
                            if is_wanted && let Some(ended) = self.page(copy, screen, events, signals).await? {
                                return Ok(ended);
                            }
                            continue;
                        }
                    }
                    let now = self.now();
                    self.app.say(format_args!("{}", news.text), news.role, now);
                    if let Some(unsaved) = news.unsaved {
                        self.save_again(unsaved);
                    }
                    self.dirty = true;
                }
                Some(answer) = self.answers.recv() => {
                    let now = self.now();
                    self.app.found(answer, now);
                    self.dirty = true;
                }
                Some(came) = self.comes.recv() => {
                    let now = self.now();
                    self.app.came(came, now);
                    self.dirty = true;
                }
                Some(result) = self.broadcasts_kept.recv() => {
                    let now = self.now();
                    self.app.broadcast_kept(result, now);
                    self.dirty = true;
                }
                () = asleep => {}
            }
            self.pass_keys(self.now().mono);
            self.app.tick(self.now());
            let now = self.now();
            if let Some(bytes) = self.notices.turn(&mut self.app, clock::minute, now) {
                screen.notify(&bytes)?;
            }
            self.dirty |= self.app.settle(self.now());
            if self.next_frame.is_some_and(|at| at <= Instant::now()) {
                self.dirty = true;
            }
            let shows_peers = self.app.shows_peers();
            self.host
                .peers_shown
                .send_if_modified(|shown| std::mem::replace(shown, shows_peers) != shows_peers);
            let shows_turns = self.app.shows_turns();
            self.host
                .turns_shown
                .send_if_modified(|shown| std::mem::replace(shown, shows_turns) != shows_turns);
            let peeked = self.app.peeked();
            self.host.peeked.send_if_modified(|known| {
                let changed = *known != peeked;
                *known = peeked;
                changed
            });
            let searched_for = self.app.searched_for().cloned();
            self.host.searched_for.send_if_modified(|known| {
                let changed = *known != searched_for;
                *known = searched_for;
                changed
            });
            let listed = self.app.model.generation();
            if self.followed.replace(listed) != Some(listed) {
                self.host.followed.send_replace(Followed::of(&self.app.model));
            }
            let wanted = self.app.wanted();
            self.host.wanted.send_if_modified(|known| {
                let changed = *known != wanted;
                *known = wanted;
                changed
            });
            let turn = self.carry_out(screen).await;
            if self.save.take(self.now().mono) {
                self.save_drafts();
            }
            match turn {
                Turn::Go => {}
                Turn::Redraw => screen.redraw()?,
                Turn::Suspend => {
                    self.save_drafts();
                    // Whoever gets the terminal now may kill us.
                    let saved = self.host.disk.run(|| ());
                    let _ = tokio::time::timeout(SUSPEND, saved).await;
                    screen.suspend(signals).await?;
                    self.host.request(Request::RegisterAgain).await;
                    self.dirty = true;
                }
                Turn::Edit(text) => {
                    let ended = self.edit(&text, screen, events, signals).await?;
                    self.dirty = true;
                    // What was written is saved as at any other end.
                    self.carry_out(screen).await;
                    if let Some(signal) = ended {
                        return Ok(Ended::Signal(signal));
                    }
                }
                Turn::End(ended) => return Ok(ended),
            }
        }
    }

    /// What to be executed as, if Herdr never listed us in spite of the hint. Not while something is
    /// open: the screen would be gone under the operator. What is queued is sent again under the next
    /// lease, and may well wait for just this, since leads look for the Chief in Herdr.
    fn try_the_other_name(&mut self) -> Option<Reexec> {
        match self.app.model.registration() {
            Registration::Registered => {
                self.second_attempt = None;
                None
            }
            registration
                if registration.is_not_taken_for_pi()
                    && self.app.layers.is_empty()
                    && self.app.confirm.is_none() =>
            {
                self.second_attempt.take()
            }
            _ => None,
        }
    }

    fn wake(&self) -> Option<Instant> {
        let frame = match (self.dirty, self.last_frame) {
            (true, Some(last)) => Some(last + FRAME),
            (true, None) => Some(Instant::now()),
            (false, _) => self.next_frame,
        };
        let held = self.guard.deadline().map(|at| self.host.office.started() + at);
        let save = self.save.deadline().map(|at| self.host.office.started() + at);
        let enter = self.app.settle_at().map(|at| self.host.office.started() + at);
        let notice = self.notices.deadline().map(|at| self.host.office.started() + at);
        [frame, held, enter, save, notice].into_iter().flatten().min()
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<(), RunError> {
        let now = self.now();
        let mut due = None;
        screen.draw(|frame| due = frame::draw(&self.app, now, frame))?;
        let title = self.app.title();
        if title != self.title {
            screen.set_title(&title)?;
            self.title = title;
        }
        let drawn = Instant::now();
        self.last_frame = Some(drawn);
        self.next_frame = due.map(|due| drawn + due);
        self.dirty = false;
        Ok(())
    }

    fn event(&mut self, event: Event, at: Instant) {
        let now = self.now();
        match event {
            Event::Key(key) if self.app.context().takes_text() => {
                if key.kind != KeyEventKind::Release {
                    self.app.key(
                        key,
                        Now { mono: at.saturating_duration_since(self.host.office.started()), ..now },
                    );
                    self.dirty = true;
                }
            }
            Event::Key(key) => {
                let at = at.saturating_duration_since(self.host.office.started());
                self.guard.press(key, at);
                // Not by now: the next key may have been read with this one.
                self.pass_keys(at);
            }
            Event::Paste(text) => {
                self.app.paste(&text, now);
                self.dirty = true;
            }
            Event::Resize(..) => self.dirty = true,
            Event::FocusGained | Event::FocusLost => {
                self.app.focus(event == Event::FocusGained, now);
                self.dirty = true;
            }
            Event::Mouse(event) => self.dirty |= self.app.mouse(event, now),
        }
    }

    /// Hands over the keys that are known to be no part of a burst by that time.
    fn pass_keys(&mut self, by: Duration) {
        let now = self.now();
        while let Some(passed) = self.guard.next(by) {
            match passed {
                Passed::Key(key) => self.app.key(key, now),
                Passed::Dropped(keys) => self.app.dropped(keys, now),
            }
            self.dirty = true;
        }
    }

    async fn carry_out(&mut self, screen: &mut Screen) -> Turn {
        let mut turn = Turn::Go;
        for effect in self.app.take_effects() {
            match effect {
                Effect::Request(request) => self.host.request(request).await,
                Effect::SaveDraft(draft) => self.save_soon(Unsaved::Draft(draft)),
                Effect::SaveBroadcast(broadcast) => self.save_soon(Unsaved::Broadcast(broadcast)),
                Effect::KeepBroadcast(broadcast) => self.keep_broadcast(broadcast),
                Effect::RemoveBroadcast => self.remove_broadcast(),
                Effect::Pin(lead, pinned) => self.keep_pin(lead, pinned),
                Effect::SaveDraftsNow => self.save.at_once(self.now().mono),
                Effect::RemoveDraft(key) => {
                    let path = drafts::path(&self.host.state.drafts(), &key);
                    self.unsaved.remove(&path);
                    let directory = self.host.state.drafts();
                    let removed = self.host.disk.run(move || drafts::remove(&directory, &key));
                    self.tell_trouble("The draft of what was sent stays", None, removed);
                }
                Effect::Copy(text) => self.copy(text, screen),
                Effect::Find(question) => self.find(question),
                Effect::Errand(errand) => self.errand(errand),
                Effect::Page(paging) => self.write_copy(paging),
                Effect::Redraw => turn = Turn::Redraw,
                Effect::Edit(text) => turn = Turn::Edit(text),
                Effect::Suspend => turn = Turn::Suspend,
                Effect::Left => {
                    if let Some(again) = self.on_leaving.take() {
                        return Turn::End(Ended::Again(again));
                    }
                }
                Effect::BecameChief => {
                    if let Some(again) = self.on_becoming_chief.take() {
                        return Turn::End(Ended::Again(again));
                    }
                }
                Effect::Quit => return Turn::End(Ended::Quit),
            }
            self.dirty = true;
        }
        turn
    }

    /// Keeps drafts, releases lease and registration, within a bounded time; why drafts could not be
    /// kept.
    async fn end(mut self) -> Vec<String> {
        let mut unsaved = Vec::new();
        let gate = self.gate.take().map(errands::Running::stop);
        for kept in std::mem::take(&mut self.unsaved).into_values() {
            let state = self.host.state.clone();
            let saved = self.host.disk.run(move || kept.save(&state));
            match tokio::time::timeout(SHUTDOWN, saved).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => unsaved.push(error.to_string()),
                Ok(Err(error)) => unsaved.push(error.to_string()),
                Err(_) => unsaved.push("the disk does not answer".to_owned()),
            }
        }
        self.host.end().await;
        if let Some(ended) = gate {
            ended.await;
        }
        unsaved
    }
}
