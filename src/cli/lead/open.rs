//! `headman lead open`: a lead for as long as this process runs.

use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::Args;
use rustix::fs::FileType;
use tokio::signal::unix::SignalKind;
use tokio::sync::{oneshot, watch};
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, timeout};

use super::teller::{Silent, Teller};
use super::{Who, not_opened, of_unable};
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::note;
use crate::cli::signals::Signals;
use crate::cli::{block_on, located};
use crate::config::Places;
use crate::contract::{NativeId, Untrusted};
use crate::disk::inbox::InboxError;
use crate::herdr::listing::{Listing, OnOurPane};
use crate::herdr::locate::{Located, pane_context};
use crate::herdr::reexec::GoOn;
use crate::herdr::register::Timing;
use crate::herdr::{Client, Entry, PaneContext, Registrar, Registration};
use crate::lead::coordination::Drain;
use crate::lead::mail::{LOOK, Mail};
use crate::lead::{About, Coordination, Opening, Place, Unable};

/// How long an earlier program of our pane may take to leave Herdr's list.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks whether it has.
const LEAVES_POLL: Duration = Duration::from_millis(50);

/// Which lead, and what it is called.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    who: Who,
    /// What it calls itself
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// How long a look, or ending, waits for who holds the session file.
const LOCK_PATIENCE: Duration = Duration::from_millis(250);
const WHAT: &str = "open the lead";

/// Why it ends.
enum End {
    Signal(SignalKind),
    /// What stands at the other end of standard input is gone.
    Input,
    Silent(Silent),
    Unhealthy(Unable),
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the lead can't be opened, or its coordination is unhealthy: record and presence
/// are withdrawn then.
pub(super) fn run(places: &Places, arguments: &Arguments, go_on: GoOn) -> Result<Exit, Failure> {
    let socket = located(places, WHAT)?;
    let end = block_on(open(places, &socket, arguments, go_on))??;
    match end {
        End::Signal(signal) if signal == SignalKind::interrupt() => Ok(Exit::Interrupted),
        // Being asked to end is how it ends.
        End::Signal(_) | End::Input | End::Silent(Silent::Closed) => Ok(Exit::Done),
        End::Silent(Silent::Failed(failure)) => Err(failure),
        End::Unhealthy(why) => Err(of_unable("go on being a lead, and has withdrawn", &why)),
    }
}

async fn open(places: &Places, socket: &Located, arguments: &Arguments, go_on: GoOn) -> Result<End, Failure> {
    let failed = |error: std::io::Error| Failure::disk(WHAT, &error, "Try again");
    let file = arguments.who.begin(places, socket, WHAT)?;
    let session = file.session().clone();
    let path = file.path().to_owned();
    // From here on everything is withdrawn, whatever ends it.
    let mut signals = Signals::new().map_err(failed)?;
    let mut teller = Teller::start().map_err(failed)?;
    let mut input = Input::watch().map_err(failed)?;

    let client = Client::new(PathBuf::from(&socket.path));
    let pane = pane_context(|name| std::env::var_os(name));
    let about = about(&client, pane.as_ref().ok(), arguments).await?;
    let name = about.name.as_ref().map_or_else(
        || crate::herd::order::unnamed(&session).to_str_lossy().into_owned(),
        |name| name.as_untrusted().to_str_lossy().into_owned(),
    );
    let place = pane.as_ref().ok().and_then(place_of).unwrap_or_else(Place::none);
    let opening = Opening { agent_dir: places.agent_dir.clone(), socket: socket.path.clone(), place, about };
    let mut lead = Coordination::open(opening, file).map_err(|error| not_opened(WHAT, &error))?;
    // Who holds the session file for long keeps neither a signal waiting nor the entry in Herdr.
    lead.file().set_patience(LOCK_PATIENCE);
    let listed = match path.to_str() {
        _ if !matches!(go_on, GoOn::Hinted) => Listed::never(&why_not_tried(&go_on)),
        None => Listed::never("its session file's path is not UTF-8, so Herdr can't be told of it"),
        Some(path) => match pane {
            Ok(pane) => Listed::start(client, pane, Entry::lead(session, path, &name)).await,
            Err(why) => Listed::never(&why.to_string()),
        },
    };
    let end = stay(&mut lead, listed, &mut signals, &mut teller, &mut input).await;
    // Its part in Herdr went before: whoever still sees the record sees no agent to it.
    lead.close().map_err(|error| Failure::disk("withdraw the lead", &error, "See `headman doctor`"))?;
    Ok(end)
}

/// Takes what comes until something ends it. What was reported to Herdr is taken back then.
async fn stay(
    lead: &mut Coordination,
    mut listed: Listed,
    signals: &mut Signals,
    teller: &mut Teller,
    input: &mut Input,
) -> End {
    let inboxes = lead.inboxes().map_or_else(
        |error| {
            // They are looked into all the same.
            tracing::warn!(%error, "inboxes can't be watched");
            Vec::new()
        },
        Vec::from,
    );
    let mail = Mail::watch(&inboxes);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trouble = Trouble::default();
    note(&format!("open as instance {}; what is sent to it is printed, a line each", lead.instance()));
    let end = loop {
        tokio::select! {
            // What ends it first, as a look is nearly always due.
            biased;
            signal = signals.any() => break End::Signal(signal),
            () = input.ends() => break End::Input,
            () = mail.came() => {}
            _ = looks.tick() => {}
            () = listed.changed() => {
                listed.tell().await;
                continue;
            }
        }
        let looked = look(lead, teller, &mut trouble).await;
        if let Some(silent) = teller.silent() {
            break End::Silent(silent);
        }
        if let Err(why) = looked {
            break End::Unhealthy(why);
        }
        listed.set_waiting(lead.pending_ask().is_some());
    };
    listed.release().await;
    end
}

/// Looks into both inboxes. Only what makes the lead unhealthy is an error.
async fn look(lead: &mut Coordination, teller: &mut Teller, trouble: &mut Trouble) -> Result<(), Unable> {
    let drained = lead.drain(|received| teller.tell(received)).await;
    trouble.of_chief(&drained);
    if let Ok(Drain { received, .. }) = &drained {
        teller.forget(received);
    }
    drained.map(drop).or_else(passing)?;
    let drained = lead.drain_peers(|received| teller.tell(received));
    trouble.of_peers(&drained);
    if let Ok(Drain { received, .. }) = &drained {
        teller.forget(received);
    }
    drained.map(drop).or_else(passing)
}

fn passing(error: Unable) -> Result<(), Unable> {
    if error.is_unhealthy() { Err(error) } else { Ok(()) }
}

/// What keeps messages waiting, told when it changes and not twice a second.
#[derive(Default)]
struct Trouble {
    chief: Option<String>,
    peers: Option<String>,
}

impl Trouble {
    fn of_chief(&mut self, drained: &Result<Drain, Unable>) {
        tell_new(&mut self.chief, drained);
    }

    fn of_peers(&mut self, drained: &Result<Drain, Unable>) {
        tell_new(&mut self.peers, drained);
    }
}

fn tell_new(told: &mut Option<String>, drained: &Result<Drain, Unable>) {
    let trouble = match drained {
        // It is what ends the lead, and told then.
        Err(error) if error.is_unhealthy() => return,
        Err(error) => Some(error.to_string()),
        Ok(Drain { errors, waits, .. }) => {
            // Who sent it holds its lock for a moment.
            let busy = |it: &&InboxError| matches!(it, InboxError::Lock(error) if error.is_occupied());
            let error = errors.iter().find(|it| !busy(it)).map(ToString::to_string);
            error.or_else(|| waits.as_ref().map(ToString::to_string))
        }
    };
    if *told != trouble {
        if let Some(trouble) = &trouble {
            note(&format!("what is queued stays for now: {trouble}"));
        }
        *told = trouble;
    }
}

/// Standard input, if it is a pipe or a socket: when it ends, whoever started us is gone. A terminal,
/// a file or `/dev/null` says nothing of the kind.
struct Input(Option<oneshot::Receiver<()>>);

impl Input {
    fn watch() -> std::io::Result<Self> {
        let stat = rustix::fs::fstat(std::io::stdin().as_fd())?;
        if !matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket) {
            return Ok(Self(None));
        }
        let (ended, ending) = oneshot::channel();
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            // What it says is not looked at; an error ends it as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            // Something else may have ended us already.
            let _ = ended.send(());
        })?;
        Ok(Self(Some(ending)))
    }

    /// Waits for its end, or for ever.
    async fn ends(&mut self) {
        match &mut self.0 {
            // However the thread ended.
            Some(ending) => drop(ending.await),
            None => std::future::pending().await,
        }
    }
}

fn place_of(pane: &PaneContext) -> Option<Place> {
    Some(Place {
        pane: NativeId::new(pane.pane.as_str())?,
        tab: NativeId::new(pane.tab.as_str())?,
        workspace: NativeId::new(pane.workspace.as_str())?,
    })
}

/// What peers are told: as much of it as Herdr knows.
async fn about(client: &Client, pane: Option<&PaneContext>, arguments: &Arguments) -> Result<About, Failure> {
    let name = match &arguments.name {
        None => None,
        Some(name) => Some(NativeId::new(name.as_str()).ok_or_else(|| {
            Failure::usage("can't open the lead: that name is blank or too long", "Give another --name")
        })?),
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let cwd = NativeId::new(Untrusted::from_bytes_lossy(cwd.as_os_str().as_encoded_bytes()));
    let mut about = About { name, cwd, ..About::default() };
    let Some(pane) = pane else { return Ok(about) };
    // Only for show: without it the lead is a lead all the same.
    let Ok(snapshot) = client.snapshot().await else { return Ok(about) };
    let workspace = snapshot.workspaces.iter().find(|it| it.workspace_id == *pane.workspace);
    let of = |text: &Option<Untrusted>| text.clone().and_then(NativeId::new);
    about.workspace_label = workspace.and_then(|it| of(&it.label));
    about.repo = workspace.and_then(|it| it.worktree.as_ref()).and_then(|it| of(&it.repo_name));
    if about.repo.is_some()
        && let Ok(worktrees) = client.worktree_list(&pane.workspace).await
    {
        let ours = worktrees
            .iter()
            .find(|it| it.open_workspace_id.as_ref().is_some_and(|open| *open == *pane.workspace));
        about.branch = ours.and_then(|it| of(&it.branch));
    }
    Ok(about)
}

fn why_not_tried(go_on: &GoOn) -> String {
    match go_on {
        GoOn::Hinted => String::new(),
        GoOn::Left => "it was executed without Herdr's hint".to_owned(),
        GoOn::SwitchedOff => "registering is switched off".to_owned(),
        GoOn::Failed(why) => why.clone(),
        GoOn::NoPane(why) => why.to_string(),
    }
}

/// Our entry in Herdr's list.
struct Listed {
    registrar: Option<Registrar>,
    status: watch::Receiver<Registration>,
    /// What was said of it last.
    told: Option<String>,
}

impl Listed {
    /// Not at all.
    fn never(why: &str) -> Self {
        let mut listed = Self {
            registrar: None,
            status: watch::channel(Registration::NotTried { why: why.to_owned() }).1,
            told: None,
        };
        listed.say(Some(why));
        listed
    }

    /// From now on, unless the pane is another program's.
    async fn start(client: Client, pane: PaneContext, entry: Entry) -> Self {
        if let Some(other) = another(&client, &pane, &entry).await {
            return Self::never(&other);
        }
        let registrar = Registrar::start(client, pane, Timing::default());
        let status = registrar.status();
        registrar.register_entry(entry);
        Self { registrar: Some(registrar), status, told: None }
    }

    /// Waits for another status.
    async fn changed(&mut self) {
        if self.registrar.is_none() || self.status.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Says how it stands.
    async fn tell(&mut self) {
        let status = self.status.borrow_and_update().clone();
        if status == Registration::Registering {
            return;
        }
        self.say(status.why_not().as_deref());
        if matches!(status, Registration::NotListed { instead: OnOurPane::Another { .. } }) {
            // Two programs that report on one pane would take it from each other for ever.
            self.release().await;
        }
    }

    fn say(&mut self, why_not: Option<&str>) {
        let text = match why_not {
            None => "listed in Herdr: the Chief sees this lead".to_owned(),
            Some(why) => format!(
                "not listed in Herdr: {why}. The Chief does not see this lead, and what it asks or tells is \
                 not accepted; its peers reach it all the same"
            ),
        };
        if self.told.as_ref() != Some(&text) {
            note(&text);
            self.told = Some(text);
        }
    }

    /// Shows `blocked` while an ask is pending.
    fn set_waiting(&self, waiting: bool) {
        if let Some(registrar) = &self.registrar {
            registrar.set_waiting(waiting);
        }
    }

    async fn release(&mut self) {
        if let Some(registrar) = self.registrar.take()
            && let Err(error) = registrar.release().await
        {
            // It lapses by itself once we are gone.
            tracing::info!(%error, "taking back what Herdr was told of the lead");
        }
    }
}

/// What else is on our pane, if anything is and stays.
async fn another(client: &Client, pane: &PaneContext, entry: &Entry) -> Option<String> {
    let deadline = Instant::now() + LEAVES_WITHIN;
    loop {
        let listing = match timeout(LEAVES_WITHIN, client.agent_list()).await {
            Ok(Ok((agents, _))) => entry.listing(&agents, pane),
            // Registering will tell what is wrong with it.
            _ => return None,
        };
        let Listing::Absent(other @ OnOurPane::Another { .. }) = listing else { return None };
        if Instant::now() >= deadline {
            return Some(other.to_string());
        }
        tokio::time::sleep(LEAVES_POLL).await;
    }
}
