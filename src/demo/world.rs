//! `headman demo`: a simulated Herdr, leads in its panes, and the console on them, all in a
//! directory of their own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::cast;
use super::command::{Signals, code_of, wait};
use super::crew::{self, Member};
use super::environment;
use super::foreground::{follow_chief, follow_lead};
use super::home::{Home, HomeError};
use super::lead::{Options as LeadOptions, Seat};
use super::random::Random;
use super::server::{Checkout, Created, Server};
use super::session::{self, now};
use super::stage::{self, Stage};
use crate::chief::staff::Office;
use crate::chief::state_dir::{Identity, StateDir, StateError};
use crate::contract::role::Role;
use crate::disk::AgentDir;
use crate::disk::durable::shown;
use crate::herd::Lead;
use crate::herdr::Client;

/// How many leads there can be.
pub const MAX_LEADS: usize = 400;
/// How many there are unless another number is wanted.
pub const LEADS: usize = cast::WRITTEN;
/// Up to so many leads have a process each; of more, those that are written out still do.
const OWN_PROCESS: usize = 32;
/// How long a command waits for the herd to stand.
const ASSEMBLED_WITHIN: Duration = Duration::from_secs(15);
/// How long the console does: it shows leads as they come.
const OPENS_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked whether it stands.
const ASSEMBLED_POLL: Duration = Duration::from_millis(15);
/// How long a lead stays away after it died, at speed 1.
const AWAY: Duration = Duration::from_secs(8);

/// What a served demo says of itself.
const SERVED: &str = "\
headman: the herd runs until this ends (Ctrl-C). To use it, run the lines above in another shell, or
headman: start it as `headman demo --serve > herd.env` and there run `. ./herd.env`; then `headman list`
headman: to be a lead of it, there: eval \"$HEADMAN_DEMO_FREE_PANE\"; headman lead open --session try-1
";

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to live; none for a fresh temporary directory. What is made is removed at the end.
    pub dir: Option<PathBuf>,
    /// How many times faster than life, 0–1,000; 0 stands still after the opening.
    pub speed: f64,
    /// How many leads, 1–[`MAX_LEADS`].
    pub leads: usize,
    /// Makes two herds alike.
    pub seed: u64,
    /// Print the environment and serve, rather than run a command.
    pub serve: bool,
    /// What to run in the herd; empty for the console.
    pub command: Vec<OsString>,
    /// Options for the console, where it is what is run.
    pub for_console: Vec<OsString>,
    /// headman itself; none for the running executable.
    pub program: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: None,
            speed: 1.0,
            leads: LEADS,
            seed: 1,
            serve: false,
            command: Vec::new(),
            for_console: Vec::new(),
            program: None,
        }
    }
}

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// There is no directory for it.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The simulated Herdr can't listen.
    #[error("the simulated Herdr can't listen at {}: {why}", shown(path))]
    Server {
        /// Its socket.
        path: PathBuf,
        /// The system's answer.
        why: io::Error,
    },
    /// A working directory can't be made.
    #[error("can't make {}: {why}", shown(path))]
    Directory {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        why: io::Error,
    },
    /// The console's state can't be prepared.
    #[error("the console's state can't be prepared: {0}")]
    State(#[from] StateError),
    /// The command can't be run.
    #[error("can't run {command}: {why}")]
    Command {
        /// Safe to print.
        command: String,
        /// The system's answer.
        why: io::Error,
    },
    /// The environment can't be printed.
    #[error("can't print the environment: {0}")]
    Print(io::Error),
    /// The system refused something basic.
    #[error("can't {0}: {1}")]
    System(&'static str, io::Error),
}

impl DemoError {
    /// The kind of failure: a stable name in snake case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Option(_) => "option",
            Self::Home(_) | Self::Directory { .. } => "directory",
            Self::Server { .. } => "socket",
            Self::State(_) => "state",
            Self::Command { .. } => "command",
            Self::Print(_) => "output",
            Self::System(..) => "system",
        }
    }

    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Option(_) => "See `headman demo --help`",
            Self::Home(error) => error.hint(),
            Self::Server { .. } | Self::Directory { .. } | Self::State(_) => {
                "Choose another directory with --dir"
            }
            Self::Command { .. } => "Check its name and that it may be executed",
            Self::Print(_) => "Check where standard output goes",
            Self::System(..) => "Try again",
        }
    }
}

/// A running herd. [`World::end`] ends it in order; dropped, its processes are killed and its
/// directory is removed all the same.
pub struct World {
    server: Arc<Server>,
    agent_dir: AgentDir,
    state_dir: PathBuf,
    console: Created,
    /// A pane where nothing runs, for a lead of the operator's own.
    free: Created,
    leads: usize,
    stage: Arc<Stage>,
    ending: watch::Sender<bool>,
    keeping: JoinSet<()>,
    following: [JoinHandle<()>; 2],
    /// The process the console's pane shows while nobody is Chief on it.
    console_pid: watch::Sender<Option<u32>>,
    // Last, so that it outlives everything in it.
    home: Home,
}

impl World {
    /// Starts the herd: when it returns, Herdr answers and the leads are on their way. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`DemoError`]; nothing is left then.
    pub async fn start(options: &Options) -> Result<Self, DemoError> {
        check(options)?;
        let program = match &options.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|why| DemoError::System("find headman itself", why))?,
        };
        let home = Home::make(options.dir.as_deref())?;
        let socket = home.socket();
        let server = Server::start(&socket).await;
        let server = Arc::new(server.map_err(|why| DemoError::Server { path: socket.clone(), why })?);
        let agent_dir = AgentDir::resolve(Some(home.part("agent").as_os_str()), home.path());
        let state_dir = home.part("state");
        StateDir::open(&state_dir, socket.as_os_str())?.write_identity(&Identity::new(Role::Chief))?;

        let work = home.part("work");
        let console = server.create_workspace("headman", &text(&work), None, true);
        server.rename_tab(&console.tab, "chief");
        let seats = seat_all(options, &server, &work, agent_dir.path())?;
        let free = server.create_workspace("free", &text(&work), None, false);

        let mut surroundings = environment::bare(std::env::vars_os());
        surroundings.push(("HOME".into(), home.part("home").into()));
        surroundings.push(("PI_CODING_AGENT_DIR".into(), agent_dir.path().into()));
        let stage = Arc::new(Stage {
            server: Arc::clone(&server),
            program,
            environment: surroundings,
            away: AWAY.div_f64(options.speed.clamp(1.0, 8.0)).mul_f64(if options.speed == 0.0 {
                0.1
            } else {
                1.0
            }),
            trouble: watch::Sender::new(Vec::new()),
        });
        let ending = watch::Sender::new(false);
        let mut keeping = JoinSet::new();
        for seats in casts(seats) {
            let options = LeadOptions {
                socket: text(&socket),
                agent_dir: agent_dir.path().to_owned(),
                speed: options.speed,
                seed: options.seed,
                seats,
            };
            keeping.spawn(stage::keep(Arc::clone(&stage), options, ending.subscribe()));
        }
        let console_pid = watch::Sender::new(None);
        let runtime = agent_dir.runtime(socket.as_os_str());
        let chief =
            follow_chief(Arc::clone(&server), runtime.clone(), console.pane.clone(), console_pid.subscribe());
        let lead = follow_lead(Arc::clone(&server), runtime, free.pane.clone());
        let following = [tokio::spawn(chief), tokio::spawn(lead)];
        Ok(Self {
            server,
            agent_dir,
            state_dir,
            console,
            free,
            leads: options.leads,
            stage,
            ending,
            keeping,
            following,
            console_pid,
            home,
        })
    }

    /// The simulated Herdr.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The agent directory shared by all.
    pub fn agent_dir(&self) -> &AgentDir {
        &self.agent_dir
    }

    /// The directory it all lives in.
    pub fn directory(&self) -> &Path {
        self.home.path()
    }

    /// The pane that is the console's.
    pub fn console(&self) -> &Created {
        &self.console
    }

    /// What went wrong with leads so far; changes are awaited on the receiver. Safe to print.
    pub fn trouble(&self) -> watch::Receiver<Vec<String>> {
        self.stage.trouble.subscribe()
    }

    /// The variables that make a program the console of this herd.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = self.server.environment(&self.console.pane);
        all.push(("PI_CODING_AGENT_DIR", text(self.agent_dir.path())));
        all.push(("HEADMAN_STATE_DIR", text(&self.state_dir)));
        all.push(("HEADMAN_DEMO", "1".to_owned()));
        all.push(("HEADMAN_DEMO_FREE_PANE", self.to_free_pane()));
        all
    }

    /// What a shell has to evaluate to be in the free pane.
    fn to_free_pane(&self) -> String {
        let Created { workspace, tab, pane } = &self.free;
        format!("unset TMUX; export HERDR_WORKSPACE_ID={workspace} HERDR_TAB_ID={tab} HERDR_PANE_ID={pane}")
    }

    /// Ends the herd: the leads withdraw or are killed, the directory is removed.
    pub async fn end(mut self) {
        self.ending.send_replace(true);
        while self.keeping.join_next().await.is_some() {}
        for following in self.following {
            following.abort();
        }
    }

    /// Waits until the herd stands, for some time and unless a lead was given up: every lead is
    /// listed and has its record, and where nothing moves, an ask stands. Whoever comes then finds
    /// what is promised. The signal that asked to end meanwhile.
    async fn assembled(&self, options: &Options, signals: &mut Signals) -> Option<Signal> {
        let socket = self.home.socket();
        let runtime = self.agent_dir.runtime(socket.as_os_str());
        let client = Client::new(socket);
        // An identity that nobody has: nobody is left out as the Chief.
        let chief = Identity::new(Role::Lead).session();
        let office = Office::new(self.agent_dir.clone(), runtime, chief, Instant::now());
        let all_there = async {
            loop {
                let snapshot = client.snapshot().await.ok();
                let roster = snapshot.and_then(|snapshot| office.roster(&snapshot).ok());
                if roster.is_some_and(|roster| {
                    roster.leads.len() >= self.leads
                        && (options.speed > 0.0 || roster.leads.iter().any(Lead::needs_you))
                }) {
                    return;
                }
                tokio::time::sleep(ASSEMBLED_POLL).await;
            }
        };
        let opens_console = options.command.is_empty() && !options.serve;
        let within = if opens_console { OPENS_WITHIN } else { ASSEMBLED_WITHIN };
        let mut trouble = self.trouble();
        tokio::select! {
            () = all_there => None,
            signal = signals.next() => Some(signal),
            _ = trouble.wait_for(|all| !all.is_empty()) => None,
            () = tokio::time::sleep(within) => None,
        }
    }

    /// Runs the command of `options` on this terminal, as the console of this herd, to its end.
    async fn run(&self, options: &Options, signals: &mut Signals) -> Result<u8, DemoError> {
        let (program, arguments) = match options.command.split_first() {
            Some((program, arguments)) => (program.as_os_str(), arguments),
            None => (self.stage.program.as_os_str(), &*options.for_console),
        };
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(environment::scrubbed(std::env::vars_os()))
            .env("HOME", self.home.part("home"))
            .envs(self.environment())
            .spawn()
            .map_err(|why| DemoError::Command { command: shown(Path::new(program)).to_string(), why })?;
        self.console_pid.send_replace(child.id());
        let ended = wait(&mut child, signals).await;
        self.console_pid.send_replace(None);
        Ok(code_of(ended.map_err(|why| DemoError::System("wait for the command", why))?))
    }

    /// Prints the environment and serves until a signal asks to end.
    async fn serve(&self, signals: &mut Signals) -> Result<u8, DemoError> {
        let mut lines = String::new();
        for (name, value) in self.environment() {
            lines += &format!("export {name}={}\n", environment::quoted(&value));
        }
        let print = |text: &str| {
            let mut output = io::stdout().lock();
            output.write_all(text.as_bytes()).and_then(|()| output.flush())
        };
        print(&lines).map_err(DemoError::Print)?;
        // Where nobody reads it nothing is lost.
        let _ = writeln!(io::stderr().lock(), "{}", SERVED.trim_end());
        let mut trouble = self.trouble();
        let mut told = 0;
        loop {
            tokio::select! {
                _ = signals.next() => return Ok(0),
                changed = trouble.changed() => if changed.is_err() { return Ok(0) },
            }
            told = complain(&trouble.borrow_and_update(), told);
        }
    }
}

/// Runs a demo to its end; the exit code is that of the command it ran, or 128 and the number of
/// the signal that ended it.
///
/// # Errors
/// [`DemoError`]; whatever was started has been ended then.
pub async fn run(options: Options) -> Result<u8, DemoError> {
    let mut signals = Signals::new().map_err(|why| DemoError::System("wait for signals", why))?;
    let world = World::start(&options).await?;
    if let Some(signal) = world.assembled(&options, &mut signals).await {
        world.end().await;
        let code = u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX);
        return Ok(if options.serve { 0 } else { code });
    }
    let ended =
        if options.serve { world.serve(&mut signals).await } else { world.run(&options, &mut signals).await };
    if !options.serve {
        // While the command ran, the terminal was its own.
        complain(&world.trouble().borrow(), 0);
    }
    world.end().await;
    ended
}

fn check(options: &Options) -> Result<(), DemoError> {
    if !(1..=MAX_LEADS).contains(&options.leads) {
        return Err(DemoError::Option(format!("--leads takes 1 to {MAX_LEADS}, not {}", options.leads)));
    }
    if !(0.0..=1_000.0).contains(&options.speed) {
        return Err(DemoError::Option(format!("--speed takes 0 to 1000, not {}", options.speed)));
    }
    Ok(())
}

/// Gives every lead its checkout, workspace and session.
fn seat_all(
    options: &Options,
    server: &Server,
    work: &Path,
    agent_dir: &Path,
) -> Result<Vec<Seat>, DemoError> {
    let mut repos = BTreeSet::new();
    let mut seats = Vec::new();
    for nth in 0..options.leads {
        // Beside the two streams that the lead itself uses.
        let mut random = Random::new(options.seed, (MAX_LEADS + nth) as u64 * 2);
        let character = cast::character(nth);
        let root = work.join(&*character.repo);
        if repos.insert(character.repo.to_string()) {
            make(&root)?;
            server.add_checkout(Checkout {
                repo_name: character.repo.to_string(),
                repo_root: text(&root),
                path: text(&root),
                branch: "main".to_owned(),
                is_linked: false,
            });
        }
        let checkout = work.join(format!("{}.{}", character.repo, character.branch.replace('/', "-")));
        make(&checkout)?;
        let cwd = text(&checkout);
        let place = server.create_workspace(
            &character.repo,
            &cwd,
            Some(Checkout {
                repo_name: character.repo.to_string(),
                repo_root: text(&root),
                path: cwd.clone(),
                branch: character.branch.to_string(),
                is_linked: true,
            }),
            false,
        );
        let begun = now().saturating_sub(random.between(8 * 60_000, 25 * 60_000));
        let session = random.session_id(begun);
        let crew = seat_crew(nth, server, &place, &cwd, &session, &mut random);
        seats.push(Seat {
            crew,
            nth,
            session_file: session::path_of(agent_dir, &cwd, &session, begun),
            session,
            begun,
            cwd,
            pane: place.pane,
            tab: place.tab,
            workspace: place.workspace,
            workspace_label: character.repo.to_string(),
        });
    }
    Ok(seats)
}

/// Gives every agent of a lead its pane, beside the lead's, and its session.
fn seat_crew(
    nth: usize,
    server: &Server,
    place: &Created,
    cwd: &str,
    lead: &str,
    random: &mut Random,
) -> Vec<Member> {
    let mut crew: Vec<Member> = Vec::new();
    let mut tab: Option<String> = None;
    for (at, part) in crew::parts(nth).iter().enumerate() {
        let pane = if part.beats.is_empty() {
            None
        } else if let Some(tab) = &tab {
            server.create_pane(tab, cwd)
        } else {
            server.create_tab(&place.workspace, Some("agents"), cwd).map(|made| {
                tab = Some(made.tab);
                made.pane
            })
        };
        let owner = part.owner.and_then(|owner| crew.get(owner)).map(|owner| owner.session.clone());
        let member = Member {
            part: at,
            run: crew::uuid(random),
            session: random.session_id(now()),
            owner: owner.unwrap_or_else(|| lead.to_owned()),
            workspace: place.workspace.clone(),
            pane: pane.clone().unwrap_or_else(|| format!("{}:p{}", place.workspace, 90 + at)),
            cwd: cwd.to_owned(),
        };
        if let Some(pane) = pane {
            server.name_agent(&pane, Some(&member.herdr_name(part.label)));
        }
        crew.push(member);
    }
    crew
}

/// Who plays in one process. Those who are written out always have their own, since one of them
/// dies.
fn casts(mut seats: Vec<Seat>) -> Vec<Vec<Seat>> {
    let own = if seats.len() <= OWN_PROCESS { seats.len() } else { cast::WRITTEN };
    let others = seats.split_off(own);
    let each = others.len().div_ceil(OWN_PROCESS - cast::WRITTEN).max(1);
    let mut all: Vec<Vec<Seat>> = seats.into_iter().map(|seat| vec![seat]).collect();
    all.extend(others.chunks(each).map(<[Seat]>::to_vec));
    all
}

/// Writes trouble from the `told`-th on to standard error; how much has been told now.
fn complain(trouble: &[String], told: usize) -> usize {
    for line in &trouble[told.min(trouble.len())..] {
        // Where nobody reads it there is nothing more to be done about it.
        let _ = writeln!(io::stderr().lock(), "headman: {line}");
    }
    trouble.len()
}

fn make(path: &Path) -> Result<(), DemoError> {
    std::fs::create_dir_all(path).map_err(|why| DemoError::Directory { path: path.to_owned(), why })
}

/// Below a directory whose path is text, of names that are.
fn text(path: impl AsRef<OsStr>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}
