//! Being listed by Herdr as a Pi, after the section "Registering the Chief" of `docs/herdr.md`.
//!
//! Leads write up only to a Chief that Herdr lists under its session id, and a Chief sees only leads
//! that it lists. Herdr answers every report
//! with `ok` whether or not it uses it, so the list is read back, now and from time to time, and what
//! it says is what is shown. That the program is taken for Pi at all is [`super::reexec`]'s part.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::api::{Snapshot, Status};
use super::backoff::Backoff;
use super::client::{Client, Metadata, clear_params, metadata_params};
use super::entry::Entry;
use super::error::HerdrError;
use super::listing::{Listing, OnOurPane, Place, SOURCE};
use super::locate::PaneContext;
use super::{blocking, locate::NoPane};
use crate::contract::SessionId;

/// The source of what is shown about the pane.
pub const METADATA_SOURCE: &str = "pi-herdsman:lead";
/// The token that says what the pane's Pi is.
pub const ROLE_TOKEN: &str = "pi_herdsman_role";
/// The token with the name shown.
pub const NAME_TOKEN: &str = "pi_herdsman_name";

/// On the way out nobody waits long for a Herdr that does not answer.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(700);
/// How long a release waits for a report that is under way. One that comes later still is stale by
/// its sequence number.
const RELEASE_PATIENCE: Duration = Duration::from_millis(300);

/// Whether leads can write up, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Registration {
    /// Nothing is reported.
    NotTried {
        /// Why not.
        why: String,
    },
    /// Reported, and not yet seen in the list.
    Registering,
    /// Listed exactly once, on our pane.
    Registered,
    /// Reported and answered, but not in the list.
    NotListed {
        /// What is on our pane instead.
        instead: OnOurPane,
    },
    /// Listed, but where leads don't look.
    ListedElsewhere {
        /// Where.
        place: Place,
    },
    /// Listed more than once, which leads refuse. A Herdr that stopped while we were registered
    /// starts a Pi under our session id when it comes back.
    Duplicate {
        /// Where.
        places: Vec<Place>,
    },
    /// Herdr could not be asked, or refused.
    Failed {
        /// What failed.
        why: String,
    },
}

impl Registration {
    /// Not tried for want of a pane.
    pub fn no_pane(why: &NoPane) -> Self {
        Self::NotTried { why: why.to_string() }
    }

    /// Whether Herdr sees no Pi here at all, so that the one thing left is to try another name:
    /// [`super::reexec::second_attempt`].
    pub fn is_not_taken_for_pi(&self) -> bool {
        *self == Self::NotListed { instead: OnOurPane::Nothing }
    }

    /// Why Herdr does not list us as it should; none where it does. Safe to print.
    pub fn why_not(&self) -> Option<String> {
        Some(match self {
            Self::Registered => return None,
            Self::Registering => "registering in Herdr".to_owned(),
            Self::NotTried { why } | Self::Failed { why } => why.clone(),
            Self::NotListed { instead } => instead.to_string(),
            Self::ListedElsewhere { place } => {
                format!("Herdr lists it on pane {}", place.pane.first_units(64).escaped())
            }
            Self::Duplicate { places } => format!("Herdr lists it {} times", places.len()),
        })
    }

    /// Whether leads find this Chief.
    pub fn can_write_up(&self) -> bool {
        *self == Self::Registered
    }
}

/// One honest line for the status bar.
impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered => f.write_str("leads can write up"),
            Self::Registering => f.write_str("leads can't write up yet: registering in Herdr"),
            Self::NotTried { why } | Self::Failed { why } => write!(f, "leads can't write up: {why}"),
            Self::NotListed { instead } => write!(f, "leads can't write up: {instead}"),
            Self::ListedElsewhere { place } => {
                let pane = place.pane.first_units(64);
                write!(f, "leads can't write up: Herdr lists this Chief on pane {}", pane.escaped())
            }
            Self::Duplicate { places } => {
                write!(f, "leads can't write up: Herdr lists this Chief {} times, on ", places.len())?;
                for (nth, place) in places.iter().take(4).enumerate() {
                    let pane = place.pane.first_units(64);
                    write!(f, "{}{}", if nth == 0 { "" } else { ", " }, pane.escaped())?;
                }
                f.write_str(". Close the others")
            }
        }
    }
}

/// How often and how long; the defaults are what a console uses.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a report may take to show in the list. Herdr needs up to half a second.
    pub confirm_for: Duration,
    /// How often the list is read meanwhile.
    pub confirm_every: Duration,
    /// How often it is read once we are in it.
    pub check_every: Duration,
    /// How long title and tokens last without us: they outlive even a killed process.
    pub ttl: Duration,
    /// How often they are renewed.
    pub refresh_every: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            confirm_for: Duration::from_secs(3),
            confirm_every: Duration::from_millis(50),
            check_every: Duration::from_secs(3),
            ttl: Duration::from_secs(60),
            refresh_every: Duration::from_secs(20),
        }
    }
}

/// What the owner wants; the task follows it.
#[derive(Debug, Clone, Default)]
struct Wish {
    entry: Option<Entry>,
    waiting: bool,
    /// Counts requests to register anew.
    again: u64,
    /// Counts hints that the list should be read at once.
    look: u64,
}

struct Shared {
    client: Client,
    pane: PaneContext,
    timing: Timing,
    wish: watch::Sender<Wish>,
    status: watch::Sender<Registration>,
    /// Whether something was reported that has not been taken back.
    reported: AtomicBool,
    last_seq: AtomicU64,
    /// Held over a burst of requests, so that a release does not run into one.
    turn: Mutex<()>,
}

/// Keeps a Chief or lead listed. Ends its task when dropped, but takes nothing back then: release first.
pub struct Registrar {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Takes back what was reported, from wherever the program ends. Cheap to clone.
#[derive(Clone)]
pub struct Releaser(Arc<Shared>);

impl Registrar {
    /// Starts the task for this pane; nothing is reported before [`Registrar::register`]. Must be
    /// called within a tokio runtime.
    pub fn start(client: Client, pane: PaneContext, timing: Timing) -> Self {
        let initial = Registration::NotTried { why: "not the Chief".to_owned() };
        let shared = Arc::new(Shared {
            client,
            pane,
            timing,
            wish: watch::Sender::new(Wish::default()),
            status: watch::Sender::new(initial),
            reported: AtomicBool::new(false),
            last_seq: AtomicU64::new(0),
            turn: Mutex::new(()),
        });
        let task = tokio::spawn(run(Arc::clone(&shared)));
        Self { shared, task }
    }

    /// Wants the Chief `session` listed under `name` from now on.
    pub fn register(&self, session: SessionId, name: &str) {
        self.register_entry(Entry::chief(session, name));
    }

    /// Wants `entry` listed from now on.
    pub fn register_entry(&self, entry: Entry) {
        self.shared.publish(Registration::Registering);
        self.shared.wish.send_modify(|wish| wish.entry = Some(entry));
    }

    /// Where it stands; changes are awaited on the receiver.
    pub fn status(&self) -> watch::Receiver<Registration> {
        self.shared.status.subscribe()
    }

    /// Shows `blocked` while an ask waits, else `idle`.
    pub fn set_waiting(&self, waiting: bool) {
        self.shared.wish.send_if_modified(|wish| std::mem::replace(&mut wish.waiting, waiting) != waiting);
    }

    /// Registers anew, as is needed after a suspension: Herdr has then dropped the entry, and a
    /// report of the state alone does not bring it back.
    pub fn again(&self) {
        self.shared.wish.send_modify(|wish| wish.again += 1);
    }

    /// Tells what an inventory shows, so that a loss is noticed before the next own look.
    pub fn observe(&self, snapshot: &Snapshot) {
        let shared = &self.shared;
        let wish = shared.wish.borrow().clone();
        let Some(entry) = wish.entry else { return };
        let listing = entry.listing(&snapshot.agents, &shared.pane);
        let fine = matches!(listing, Listing::Here(status) if fits(status, wish.waiting));
        let look = match *shared.status.borrow() {
            Registration::Registered => !fine,
            Registration::Registering | Registration::NotTried { .. } => false,
            // Herdr answers again.
            Registration::Failed { .. } => true,
            _ => fine,
        };
        if look {
            shared.wish.send_modify(|wish| wish.look += 1);
        }
    }

    /// Takes everything back: title and tokens, then state and session. Does nothing the second
    /// time. Another [`Registrar::register`] may follow.
    ///
    /// # Errors
    /// The first request that failed; the other was tried nevertheless.
    pub async fn release(&self) -> Result<(), HerdrError> {
        let shared = &self.shared;
        shared.unwish();
        let _turn = timeout(RELEASE_PATIENCE, shared.turn.lock()).await;
        let mut outcome = Ok(());
        if shared.reported.swap(false, Ordering::SeqCst) {
            let client = shared.client.clone().with_timeout(shared.release_timeout());
            for (method, params) in shared.farewell() {
                outcome = outcome.and(client.request(method, params).await.map(drop));
            }
        }
        shared.publish(Registration::NotTried { why: "not the Chief any more".to_owned() });
        outcome
    }

    /// For exit paths that have no runtime, or can't be sure of it.
    pub fn releaser(&self) -> Releaser {
        Releaser(Arc::clone(&self.shared))
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Releaser {
    /// As [`Registrar::release`], without a runtime: blocks for at most twice 0.7 s.
    ///
    /// # Errors
    /// The first request that failed; the other was tried nevertheless.
    pub fn release_blocking(&self) -> Result<(), HerdrError> {
        let shared = &self.0;
        shared.unwish();
        if !shared.reported.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (method, params) in shared.farewell() {
            let sent = blocking::request(shared.client.socket(), shared.release_timeout(), method, params);
            outcome = outcome.and(sent.map(drop));
        }
        outcome
    }
}

impl Shared {
    fn publish(&self, now: Registration) {
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            if changed {
                tracing::info!(status = %now, "registration");
                *status = now;
            }
            changed
        });
    }

    fn unwish(&self) {
        self.wish.send_modify(|wish| wish.entry = None);
    }

    fn is_wanted(&self, entry: &Entry) -> bool {
        self.wish.borrow().entry.as_ref() == Some(entry)
    }

    /// Microseconds since the epoch, made to rise strictly even where the clock does not: what an
    /// earlier process reported must be older, and so must our own last report.
    fn seq(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_micros()).unwrap_or(0);
        let mut last = self.last_seq.load(Ordering::SeqCst);
        loop {
            let next = now.max(last + 1);
            match self.last_seq.compare_exchange(last, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return next,
                Err(newer) => last = newer,
            }
        }
    }

    fn release_timeout(&self) -> Duration {
        self.client.timeout().min(RELEASE_TIMEOUT)
    }

    /// What to send on leaving. `pane.release_agent` would be answered `ok` and change nothing.
    fn farewell(&self) -> [(&'static str, Value); 2] {
        let pane = &self.pane.pane;
        let clear = metadata_params(Metadata {
            pane,
            source: METADATA_SOURCE,
            seq: self.seq(),
            title: None,
            tokens: &[(ROLE_TOKEN, None), (NAME_TOKEN, None)],
            ttl: None,
        });
        [
            ("pane.report_metadata", clear),
            ("pane.clear_agent_authority", clear_params(pane, SOURCE, self.seq())),
        ]
    }
}

fn fits(status: Status, waiting: bool) -> bool {
    match status {
        Status::Blocked => waiting,
        Status::Idle | Status::Done => !waiting,
        Status::Working | Status::Unknown => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Everything is to be reported.
    Report,
    /// Reported; the list is read until it shows.
    Confirm,
    /// In the list.
    Steady,
    /// Did not work; reported again when due.
    Retry,
}

struct Work {
    entry: Option<Entry>,
    again: u64,
    look: u64,
    /// The state last reported.
    waiting: Option<bool>,
    phase: Phase,
    /// Until when absence from the list is no news.
    until: Instant,
    /// When to read the list, or to report again.
    due: Instant,
    /// When to renew title and tokens.
    refresh: Instant,
    backoff: Backoff,
}

async fn run(shared: Arc<Shared>) {
    let mut wishes = shared.wish.subscribe();
    let now = Instant::now();
    let mut work = Work {
        entry: None,
        again: 0,
        look: 0,
        waiting: None,
        phase: Phase::Report,
        until: now,
        due: now,
        refresh: now,
        backoff: Backoff::new(),
    };
    loop {
        let wish = wishes.borrow_and_update().clone();
        let next = work.step(&shared, &wish).await;
        let wait = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = wishes.changed() => if changed.is_err() { return },
            () = wait => {}
        }
    }
}

impl Work {
    /// Does what is due; when the next thing is.
    async fn step(&mut self, shared: &Shared, wish: &Wish) -> Option<Instant> {
        let Some(entry) = &wish.entry else {
            self.entry = None;
            return None;
        };
        let _turn = shared.turn.lock().await;
        let now = Instant::now();
        if std::mem::replace(&mut self.look, wish.look) != wish.look {
            self.due = now;
        }
        let anew = std::mem::replace(&mut self.again, wish.again) != wish.again;
        if anew || self.entry.as_ref() != Some(entry) {
            self.entry = Some(entry.clone());
            self.backoff.reset();
            self.phase = Phase::Report;
            shared.publish_for(entry, Registration::Registering);
        }
        if self.phase == Phase::Retry && now >= self.due {
            self.phase = Phase::Report;
        }
        if let Err(error) = self.advance(shared, entry, wish.waiting, now).await {
            shared.publish_for(entry, Registration::Failed { why: error.to_string() });
            self.retry();
        }
        Some(if self.phase == Phase::Retry { self.due } else { self.due.min(self.refresh) })
    }

    fn retry(&mut self) {
        self.phase = Phase::Retry;
        self.due = Instant::now() + self.backoff.pause();
    }

    async fn advance(
        &mut self,
        shared: &Shared,
        entry: &Entry,
        waiting: bool,
        now: Instant,
    ) -> Result<(), HerdrError> {
        if self.phase == Phase::Retry {
            return Ok(());
        }
        let report = self.phase == Phase::Report;
        if report {
            shared.report_session(entry).await?;
        }
        if report || self.waiting != Some(waiting) {
            shared.report_state(entry, waiting).await?;
            self.waiting = Some(waiting);
            self.until = now + shared.timing.confirm_for;
            self.due = now;
        }
        if report || now >= self.refresh {
            self.refresh = now + shared.timing.refresh_every;
            // Only for show: that it failed does not keep leads from writing up.
            if let Err(error) = shared.report_display(entry).await {
                tracing::warn!(%error, "title and tokens of our pane");
            }
        }
        if report {
            self.phase = Phase::Confirm;
        }
        if now >= self.due { self.read_back(shared, entry, waiting).await } else { Ok(()) }
    }

    async fn read_back(&mut self, shared: &Shared, entry: &Entry, waiting: bool) -> Result<(), HerdrError> {
        let (agents, _) = shared.client.agent_list().await?;
        let now = Instant::now();
        let listing = entry.listing(&agents, &shared.pane);
        let verdict = match listing {
            Listing::Here(status) => {
                shared.publish_for(entry, Registration::Registered);
                self.phase = Phase::Steady;
                self.backoff.reset();
                self.due = now + shared.timing.check_every;
                if !fits(status, waiting) {
                    if now < self.until {
                        self.due = now + shared.timing.confirm_every;
                    } else {
                        shared.report_state(entry, waiting).await?;
                    }
                }
                return Ok(());
            }
            Listing::Elsewhere(place) => Registration::ListedElsewhere { place },
            Listing::Several(places) => Registration::Duplicate { places },
            Listing::Absent(instead) => Registration::NotListed { instead },
        };
        let is_gone = matches!(verdict, Registration::NotListed { .. });
        if self.phase == Phase::Steady && is_gone {
            // We were in it: what is gone may come back by reporting, and is first tried so.
            shared.publish_for(entry, Registration::Registering);
            self.phase = Phase::Report;
            self.due = now;
        } else if self.phase == Phase::Confirm && now < self.until {
            self.due = now + shared.timing.confirm_every;
        } else {
            shared.publish_for(entry, verdict);
            self.retry();
        }
        Ok(())
    }
}

impl Shared {
    /// Publishes unless the owner has changed its mind meanwhile.
    fn publish_for(&self, entry: &Entry, status: Registration) {
        if self.is_wanted(entry) {
            self.publish(status);
        }
    }

    async fn report_session(&self, entry: &Entry) -> Result<(), HerdrError> {
        if !self.begin(entry) {
            return Ok(());
        }
        let params = entry.session_params(&self.pane.pane, self.seq());
        self.client.request("pane.report_agent_session", params).await.map(drop)
    }

    async fn report_state(&self, entry: &Entry, waiting: bool) -> Result<(), HerdrError> {
        if !self.begin(entry) {
            return Ok(());
        }
        let state = if waiting { Status::Blocked } else { Status::Idle };
        let params = entry.state_params(&self.pane.pane, state, self.seq());
        self.client.request("pane.report_agent", params).await.map(drop)
    }

    async fn report_display(&self, entry: &Entry) -> Result<(), HerdrError> {
        if !self.begin(entry) {
            return Ok(());
        }
        let metadata = Metadata {
            pane: &self.pane.pane,
            source: METADATA_SOURCE,
            seq: self.seq(),
            title: Some(&entry.title),
            tokens: &[(ROLE_TOKEN, Some(entry.role)), (NAME_TOKEN, Some(&entry.name))],
            ttl: Some(self.timing.ttl),
        };
        self.client.report_metadata(metadata).await
    }

    /// Whether to report at all. Noted before that is known and before the report goes out: a
    /// release that comes between, or an answer that is lost, must not leave anything behind.
    fn begin(&self, entry: &Entry) -> bool {
        self.reported.store(true, Ordering::SeqCst);
        self.is_wanted(entry)
    }
}
