//! Everything below a screen: the sources, and the Chief service of this process or another.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::desk;
use super::socket::ControlSocket;
use crate::chief::inspection::Subject;
use crate::chief::lease::Place;
use crate::chief::service::{Request, Setup};
use crate::chief::staff::Office;
use crate::chief::state_dir::{StateDir, StateError};
use crate::disk::{AgentDir, DiskThread};
use crate::fact::{self, FactReceiver, SearchQuery, Wanted};
use crate::herdr::register::{Releaser, Timing};
use crate::herdr::{Client, Located, PaneContext, Registrar, Registration, Snapshot};
use crate::pi::discover::SessionDirs;
use crate::source;
use crate::source::sessions::Followed;
use crate::source::watch::Noticing;
use crate::turn::log::TurnLogs;

/// How long ending may take before we end without it.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// Requests of this process that wait.
const REQUESTS: usize = 256;

/// What it is started with.
pub struct Options {
    /// Herdr's socket.
    pub socket: Located,
    /// Pi's agent directory.
    pub agent_dir: AgentDir,
    /// Where Pi keeps its sessions.
    pub sessions: SessionDirs,
    /// Where our own state is.
    pub state_dir: PathBuf,
    /// Months of the journal that are older than so many days go as we become Chief; none goes
    /// without.
    pub keep_days: Option<u32>,
    /// Whether changes of the records are to be told by the system, where it can.
    pub notified: bool,
    /// Whether a state directory of a later release is to be looked at: else it is an error.
    pub may_only_watch: bool,
    /// Where turns are logged, for one with a screen.
    pub turn_logs: Option<TurnLogs>,
    /// Our pane in Herdr; else why leads can't see us there, safe to print.
    pub pane: Result<PaneContext, String>,
    /// Where others of ours find the service.
    pub control: ControlSocket,
}

/// Why it could not be started.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Our own state can't be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refused.
    #[error("can't start: {0}")]
    Io(#[from] std::io::Error),
}

/// What runs below a screen, or without one.
pub struct Host {
    /// What the actions work on.
    pub office: Arc<Office>,
    /// Where file work is done.
    pub disk: DiskThread,
    /// Our own state.
    pub state: StateDir,
    /// Where requests go.
    pub requests: mpsc::Sender<Request>,
    /// What becomes known.
    pub facts: FactReceiver,
    /// Whether the peers have to be looked at.
    pub peers_shown: watch::Sender<bool>,
    /// Whether the logs of turns have to be looked at.
    pub turns_shown: watch::Sender<bool>,
    /// Whose pane has to be looked at.
    pub peeked: watch::Sender<Option<Subject>>,
    /// What is to be searched for in sessions.
    pub searched_for: watch::Sender<Option<Arc<SearchQuery>>>,
    /// Whose sessions have to be followed.
    pub followed: watch::Sender<Vec<Followed>>,
    /// What has to be read of which session file.
    pub wanted: watch::Sender<Option<Wanted>>,
    /// Whether leads see us in Herdr, as of the start.
    pub registration: Registration,
    /// Ends the registration when nothing else can.
    pub releaser: Option<Releaser>,
    tasks: JoinSet<()>,
    desk: JoinHandle<()>,
}

impl Host {
    /// Starts it, within a tokio runtime of several threads or one.
    ///
    /// # Errors
    /// [`HostError`]
    pub fn start(options: Options) -> Result<Self, HostError> {
        let started = Instant::now();
        let (state, identity) = if options.may_only_watch {
            StateDir::open_for_console(&options.state_dir, &options.socket.path)?
        } else {
            let state = StateDir::open(&options.state_dir, &options.socket.path)?;
            let identity = state.identity()?;
            (state, identity)
        };
        let session = identity.session();
        let runtime = options.agent_dir.runtime(&options.socket.path);
        let office = Arc::new(Office::new(options.agent_dir, runtime, session, started));
        let disk = DiskThread::spawn()?;
        let (facts, received) = fact::channel();
        let client = Client::new(options.socket.path());
        let (registrar, registration) = match &options.pane {
            Ok(pane) => {
                let registrar = Registrar::start(client.clone(), pane.clone(), Timing::default());
                let status = registrar.status();
                (Some(Arc::new(registrar)), status)
            }
            Err(why) => (None, watch::channel(Registration::NotTried { why: why.clone() }).1),
        };
        let place = match &options.pane {
            Ok(pane) => Place {
                pane: pane.pane.as_str().into(),
                tab: pane.tab.as_str().into(),
                workspace: pane.workspace.as_str().into(),
            },
            Err(_) => Place::none(),
        };
        let lease_changed = Arc::new(Notify::new());
        let mail_changed = Arc::new(Notify::new());
        let (snapshots, snapshots_seen) = watch::channel(None);
        let (requests, asked) = mpsc::channel(REQUESTS);
        let noticing = Noticing::new(options.notified);
        let mut tasks = JoinSet::new();
        tasks.spawn(source::inventory::run(
            client.clone(),
            Arc::clone(&office),
            disk.clone(),
            facts.clone(),
            snapshots,
        ));
        tasks.spawn(source::records::run(
            Arc::clone(&office),
            noticing.clone(),
            disk.clone(),
            facts.clone(),
            Arc::clone(&lease_changed),
            Arc::clone(&mail_changed),
        ));
        if let Some(registrar) = registrar.clone() {
            tasks.spawn(tell_registrar(registrar, snapshots_seen.clone()));
        }
        let (peers_shown, shows_peers) = watch::channel(false);
        tasks.spawn(source::peers::run(office.runtime().clone(), disk.clone(), facts.clone(), shows_peers));
        let (turns_shown, shows_turns) = watch::channel(false);
        if let Some(logs) = options.turn_logs {
            tasks.spawn(source::turns::run(logs, facts.clone(), shows_turns));
        }
        let (peeked, peeks_at) = watch::channel(None);
        tasks.spawn(source::peek::run(client.clone(), facts.clone(), peeks_at));
        let (searched_for, searches) = watch::channel(None);
        tasks.spawn(source::search::run(options.sessions, facts.clone(), searches));
        let (followed, follows) = watch::channel(Vec::new());
        let sessions = DiskThread::named("sessions")?;
        tasks.spawn(source::sessions::run(noticing, sessions, facts.clone(), follows));
        let (wanted, wants) = watch::channel(None);
        tasks.spawn(source::transcript::run(facts.clone(), wants));
        tasks.spawn(source::surroundings::run(
            Arc::clone(&office),
            options.socket.clone(),
            disk.clone(),
            facts.clone(),
            snapshots_seen.clone(),
        ));
        let now = registration.borrow().clone();
        let releaser = registrar.as_deref().map(Registrar::releaser);
        let open = desk::Open {
            socket: options.control,
            setup: Setup {
                office: Arc::clone(&office),
                disk: disk.clone(),
                state: state.clone(),
                keep_days: options.keep_days,
                herdr: client,
                place,
                registrar,
                facts: facts.clone(),
                lease_changed,
                mail_changed,
                snapshots: snapshots_seen,
            },
            registration,
        };
        let desk = tokio::spawn(desk::run(open, asked, facts));
        Ok(Self {
            office,
            disk,
            state,
            requests,
            facts: received,
            peers_shown,
            turns_shown,
            peeked,
            searched_for,
            followed,
            wanted,
            registration: now,
            releaser,
            tasks,
            desk,
        })
    }

    /// Asks the service.
    pub async fn request(&self, request: Request) {
        // The service ends only after us; if it is gone, its panic was told.
        let _ = self.requests.send(request).await;
    }

    /// Ends everything within a bounded time: lease and registration are released, if they are this
    /// process's.
    pub async fn end(mut self) {
        let (done, finished) = oneshot::channel();
        let released = tokio::time::timeout(SHUTDOWN, async {
            self.request(Request::Shutdown(done)).await;
            finished.await.is_ok()
        });
        if !released.await.unwrap_or(false) {
            tracing::warn!("the service did not end in time");
            self.desk.abort();
            if let Some(releaser) = self.releaser.take() {
                let released = tokio::task::spawn_blocking(move || releaser.release_blocking());
                // Title and tokens lapse by themselves if this fails, too.
                let _ = tokio::time::timeout(SHUTDOWN, released).await;
            }
            // The service was ended before it could: descriptor and lock go, if the disk answers.
            let office = Arc::clone(&self.office);
            let released = self.disk.run(move || drop(office.lease().take()));
            let _ = tokio::time::timeout(SHUTDOWN, released).await;
        }
        self.tasks.shutdown().await;
    }
}

async fn tell_registrar(registrar: Arc<Registrar>, mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>) {
    while snapshots.changed().await.is_ok() {
        let snapshot = snapshots.borrow_and_update().clone();
        if let Some(snapshot) = snapshot {
            registrar.observe(&snapshot);
        }
    }
}
