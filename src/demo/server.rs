//! A simulated Herdr: a real server on a real socket that speaks the wire of `docs/herdr.md`, its
//! quirks included.
//!
//! The world behind it (workspaces, panes, which process runs in which pane) is driven in-process
//! through [`Server`]; everything else is asked and reported over the socket, as with the real one.
//! Processes are looked at, not simulated: a pane has a Pi in it as long as the process attached to
//! it is alive, in the foreground, and was started with the hint or under the name `pi`.

mod calls;
mod connection;
mod events;
mod methods;
mod process;
mod reports;
mod state;
mod view;

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use state::State;
pub use state::{Checkout, Created};

/// How often processes and lifetimes are looked at. The real one needs up to 0.2 s.
const TICK: Duration = Duration::from_millis(40);
/// How many requests are remembered.
const REMEMBERED: usize = 512;

/// A way to fail, for tests and for showing how the console takes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fault {
    /// None: answers.
    #[default]
    None,
    /// Accepts, reads, and never answers.
    Silent,
    /// Answers with these bytes and closes.
    Garbage(Vec<u8>),
    /// Answers rightly, but only after this long.
    Late(Duration),
    /// Answers with this many bytes and no newline among them.
    Huge(usize),
    /// Closes without an answer.
    Cut,
    /// Answers with this error, with an empty id as for a request it could not parse.
    Error {
        /// The code.
        code: String,
        /// The words.
        message: String,
    },
    /// The socket file stays, but nobody listens; open streams end.
    Refuse,
    /// The socket file is gone; open streams end.
    Gone,
}

/// One request that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// A running simulated Herdr. Dropping it ends it and removes its socket.
pub struct Server {
    shared: Arc<Shared>,
    socket: PathBuf,
    accepting: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    ticking: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    calls: Mutex<VecDeque<Call>>,
    /// The fault and the method it is confined to.
    fault: Mutex<(Fault, Option<String>)>,
    /// The number of the latest event, for those who stream.
    latest: watch::Sender<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, then wakes the streams.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (value, latest) = {
            let mut state = self.state();
            let value = change(&mut state);
            (value, state.latest_event())
        };
        self.latest.send_if_modified(|known| std::mem::replace(known, latest) != latest);
        value
    }

    fn fault_on(&self, method: &str) -> Fault {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if fault.1.as_deref().is_none_or(|only| only == method) { fault.0.clone() } else { Fault::None }
    }

    fn remember(&self, call: Call) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() == REMEMBERED {
            calls.pop_front();
        }
        calls.push_back(call);
    }
}

impl Server {
    /// Listens at `socket`, which must not exist yet. Needs a tokio runtime.
    ///
    /// # Errors
    /// What binding the socket fails with; a path beyond about 100 bytes can't be bound.
    pub async fn start(socket: &Path) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new()),
            calls: Mutex::new(VecDeque::new()),
            fault: Mutex::new((Fault::None, None)),
            latest: watch::Sender::new(0),
        });
        let listener = bind(socket)?;
        let accepting = tokio::spawn(connection::accept(listener, Arc::clone(&shared)));
        let ticking = tokio::spawn(tick(Arc::clone(&shared)));
        Ok(Self {
            shared,
            socket: socket.to_path_buf(),
            accepting: tokio::sync::Mutex::new(Some(accepting)),
            ticking,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Fails every request this way from now on; [`Fault::None`] heals it.
    ///
    /// # Errors
    /// What listening again fails with.
    pub async fn set_fault(&self, fault: Fault) -> io::Result<()> {
        self.set_fault_on(None, fault).await
    }

    /// The same for the requests of one method only.
    ///
    /// # Errors
    /// As [`Server::set_fault`].
    pub async fn set_fault_on(&self, method: Option<&str>, fault: Fault) -> io::Result<()> {
        let away = matches!(fault, Fault::Refuse | Fault::Gone);
        let gone = fault == Fault::Gone;
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) =
            (fault, method.map(str::to_owned));
        let mut accepting = self.accepting.lock().await;
        if away {
            if let Some(task) = accepting.take() {
                task.abort();
                // Only once it has ended is the listener closed.
                let _ = task.await;
            }
            if gone {
                std::fs::remove_file(&self.socket)?;
            }
        } else if accepting.is_none() {
            if self.socket.exists() {
                std::fs::remove_file(&self.socket)?;
            }
            let listener = bind(&self.socket)?;
            *accepting = Some(tokio::spawn(connection::accept(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    /// The requests that came in, oldest first; the last 512 of them.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Forgets the requests that came in.
    pub fn forget_calls(&self) {
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Speaks another protocol from now on.
    pub fn set_protocol(&self, protocol: u64) {
        self.shared.change(|state| state.protocol = protocol);
    }

    /// Does not know these kinds of event, as an older release.
    pub fn set_unknown_kinds(&self, kinds: &[&str]) {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.shared.change(|state| state.unknown_kinds = kinds);
    }

    /// Whether notices are shown; by default they are not, as with the real one.
    pub fn set_notices(&self, shown: bool) {
        self.shared.change(|state| state.notices = shown);
    }

    /// Opens a workspace with one tab and one pane.
    pub fn create_workspace(
        &self,
        label: &str,
        cwd: &str,
        worktree: Option<Checkout>,
        focus: bool,
    ) -> Created {
        self.shared.change(|state| state.create_workspace(label, cwd, worktree, focus))
    }

    /// Opens a tab with one pane; none if there is no such workspace.
    pub fn create_tab(&self, workspace: &str, label: Option<&str>, cwd: &str) -> Option<Created> {
        self.shared.change(|state| state.create_tab(workspace, label, cwd))
    }

    /// Splits the tab once more; the new pane's id, none if there is no such tab.
    pub fn create_pane(&self, tab: &str, cwd: &str) -> Option<String> {
        self.shared.change(|state| state.create_pane(tab, cwd))
    }

    /// Closes a pane, and with its last pane the tab, and with its last tab the workspace.
    pub fn close_pane(&self, pane: &str) {
        self.shared.change(|state| state.close_pane(pane));
    }

    /// Closes a workspace and all in it.
    pub fn close_workspace(&self, workspace: &str) {
        self.shared.change(|state| state.close_workspace(workspace));
    }

    /// Moves a pane into a new workspace. Its new id; the old one stays an alias of it.
    pub fn move_pane(&self, pane: &str, label: &str) -> Option<String> {
        self.shared.change(|state| state.move_pane(pane, label))
    }

    /// Brings the operator to a pane.
    pub fn focus(&self, pane: &str) {
        self.shared.change(|state| state.focus(pane));
    }

    /// Renames a workspace.
    pub fn rename_workspace(&self, workspace: &str, label: &str) {
        self.shared.change(|state| state.rename_workspace(workspace, label));
    }

    /// Renames a tab.
    pub fn rename_tab(&self, tab: &str, label: &str) {
        self.shared.change(|state| state.rename_tab(tab, label));
    }

    /// Labels a pane.
    pub fn rename_pane(&self, pane: &str, label: &str) {
        self.shared.change(|state| state.with_pane(pane, |it| it.label = Some(label.to_owned())));
    }

    /// Names the agent in a pane.
    pub fn name_agent(&self, pane: &str, name: Option<&str>) {
        self.shared.change(|state| state.with_pane(pane, |it| it.name = name.map(str::to_owned)));
    }

    /// Sets what a workspace shows beside its label.
    pub fn set_workspace_tokens(&self, workspace: &str, tokens: &[(&str, &str)]) {
        let tokens = tokens.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.shared.change(|state| state.set_workspace_tokens(workspace, tokens));
    }

    /// Knows of a checkout that no workspace need be open on.
    pub fn add_checkout(&self, checkout: Checkout) {
        self.shared.change(|state| state.add_checkout(checkout));
    }

    /// Shows the checkout a workspace stands in from now on.
    pub fn show_worktree(&self, workspace: &str) {
        self.shared.change(|state| state.show_worktree(workspace));
    }

    /// Sets the text on a pane's screen.
    pub fn set_screen(&self, pane: &str, text: &str) {
        self.shared.change(|state| {
            state.with_pane(pane, |it| it.screen = text.lines().map(str::to_owned).collect())
        });
    }

    /// Sets the rows scrolled out above it.
    pub fn set_scrollback(&self, pane: &str, rows: &[&str]) {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        self.shared.change(|state| state.with_pane(pane, |it| it.scrollback = rows));
    }

    /// Whether the program in the pane has taken the whole screen. Its scrollback is then out of
    /// sight, and reading more than the viewport sends it wheel movements.
    pub fn set_full_screen(&self, pane: &str, full_screen: bool) {
        self.shared.change(|state| state.with_pane(pane, |it| it.full_screen = full_screen));
    }

    /// How often reading has disturbed the program in the pane.
    pub fn disturbances(&self, pane: &str) -> usize {
        self.shared.state().pane(pane).map_or(0, |it| it.disturbed)
    }

    /// Has `pid` in the pane's foreground. Where processes can't be looked at, `is_pi` is believed.
    pub fn attach(&self, pane: &str, pid: u32, is_pi: bool) {
        let process = process::Process::new(pid, is_pi);
        self.shared.change(|state| state.with_pane(pane, |it| it.process = Some(process)));
    }

    /// Has the shell in the pane's foreground again.
    pub fn detach(&self, pane: &str) {
        self.shared.change(|state| state.with_pane(pane, |it| it.process = None));
    }

    /// Has `pid` for the pane's shell.
    pub fn set_shell(&self, pane: &str, pid: u32) {
        self.shared.change(|state| state.with_pane(pane, |it| it.shell_pid = pid));
    }

    /// What Herdr puts into the environment of what it starts in the pane; empty for an unknown one.
    pub fn environment(&self, pane: &str) -> Vec<(&'static str, String)> {
        let state = self.shared.state();
        let Some(it) = state.pane(pane) else { return Vec::new() };
        vec![
            ("HERDR_ENV", "1".to_owned()),
            ("HERDR_SOCKET_PATH", self.socket.to_string_lossy().into_owned()),
            ("HERDR_WORKSPACE_ID", it.workspace.clone()),
            ("HERDR_TAB_ID", it.tab.clone()),
            ("HERDR_PANE_ID", it.id.clone()),
        ]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ticking.abort();
        if let Some(task) = self.accepting.get_mut().take() {
            task.abort();
        }
        // It may be gone already, by a fault or with its directory.
        if let Err(error) = std::fs::remove_file(&self.socket)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "removing the simulated Herdr's socket");
        }
    }
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn tick(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.change(State::tick);
    }
}
