//! Herdr's inventory as facts: its snapshot, polled, and early when its event stream tells of a
//! change. With each goes a look at the managed agents' mailboxes, which are nothing without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};

use crate::chief::staff::Office;
use crate::contract::Untrusted;
use crate::disk::DiskThread;
use crate::disk::mailboxes::Scan;
use crate::fact::{Fact, FactSender};
use crate::herd::evidence::State;
use crate::herd::inventory::{Branch, Inventory};
use crate::herdr::{Backoff, Client, HerdrError, Snapshot, Subscription};

/// Between two snapshots while nothing works.
const CALM: Duration = Duration::from_secs(1);
/// Between two snapshots while something does.
const ACTIVE: Duration = Duration::from_millis(500);
/// A snapshot may take this part of the time between two.
const SLOW_FACTOR: u32 = 10;
/// How old the branches of the workspaces may become.
const BRANCHES: Duration = Duration::from_secs(60);
/// How many workspaces are asked about at once.
const AT_ONCE: usize = 8;
/// How long the first picture waits for branches.
const FIRST_BRANCHES: Duration = Duration::from_millis(250);
/// How long whoever asks but once waits for all of them.
const ALL_BRANCHES: Duration = Duration::from_secs(3);
/// Events come in bursts: one snapshot for those within this time.
const BURST: Duration = Duration::from_millis(50);

/// Emits Herdr's inventory until the task is dropped; each snapshot also goes to `snapshots`.
pub async fn run(
    client: Client,
    office: Arc<Office>,
    disk: DiskThread,
    facts: FactSender,
    snapshots: watch::Sender<Option<Arc<Snapshot>>>,
) {
    let changed = Arc::new(Notify::new());
    let stream = follow(client.clone(), Arc::clone(&changed));
    let poll = async {
        let mut poll =
            Poll { client, office, disk, facts, last: None, mailboxes: None, branches: Branches::default() };
        let mut backoff = Backoff::new();
        loop {
            let started = Instant::now();
            let polled = poll.once(&snapshots).await;
            // A slow Herdr is not asked more often for sending events.
            let least = (started.elapsed() * SLOW_FACTOR).max(BURST);
            let pause = match polled {
                Ok(active) => {
                    backoff.reset();
                    (if active { ACTIVE } else { CALM }).max(least)
                }
                Err(_) => backoff.pause(),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed.notified(), if poll.last.is_some() => tokio::time::sleep(least).await,
            }
        }
    };
    tokio::join!(stream, poll);
}

struct Poll {
    client: Client,
    office: Arc<Office>,
    disk: DiskThread,
    facts: FactSender,
    /// What was emitted last, unless Herdr failed since.
    last: Option<Arc<Inventory>>,
    /// The mailboxes emitted last.
    mailboxes: Option<Arc<Scan>>,
    branches: Branches,
}

impl Poll {
    /// Takes one snapshot and emits it where it differs; says whether anything works.
    async fn once(&mut self, snapshots: &watch::Sender<Option<Arc<Snapshot>>>) -> Result<bool, HerdrError> {
        let snapshot = match self.client.snapshot().await {
            Ok(snapshot) => Arc::new(snapshot),
            Err(error) => {
                self.last = None;
                snapshots.send_replace(None);
                self.facts.put(Fact::HerdrDown { reason: error.to_string() });
                return Err(error);
            }
        };
        self.branches.refresh(&self.client, &snapshot).await;
        let office = Arc::clone(&self.office);
        let branches = self.branches.known.clone();
        let taken = Arc::clone(&snapshot);
        let look = move || (office.inventory(&taken, &branches), office.mailboxes());
        let Ok((inventory, mailboxes)) = self.disk.run(look).await else {
            return Ok(false);
        };
        // Before the inventory, so that no agent is seen without its mailbox first.
        if self.mailboxes.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &mailboxes)) {
            self.mailboxes = Some(Arc::clone(&mailboxes));
            self.facts.put(Fact::Mailboxes(mailboxes));
        }
        snapshots.send_replace(Some(snapshot));
        let active = inventory.agents.iter().any(|agent| agent.state == State::Working);
        if self.last.as_deref() != Some(&inventory) {
            let inventory = Arc::new(inventory);
            self.last = Some(Arc::clone(&inventory));
            self.facts.put(Fact::Inventory(inventory));
        }
        Ok(active)
    }
}

/// What is checked out where: asked for each workspace, now and then, beside the snapshots.
#[derive(Default)]
pub struct Branches {
    known: BTreeMap<Untrusted, Branch>,
    asked: BTreeMap<Untrusted, Instant>,
    answers: JoinSet<(Untrusted, Result<Branch, HerdrError>)>,
    waited: bool,
}

impl Branches {
    /// By workspace.
    pub fn known(&self) -> &BTreeMap<Untrusted, Branch> {
        &self.known
    }

    /// All of them that are told within a few seconds, for whoever asks but once.
    pub async fn all(client: &Client, snapshot: &Snapshot) -> Self {
        let mut branches = Self::default();
        let _ = tokio::time::timeout(ALL_BRANCHES, branches.answered(client, snapshot)).await;
        branches
    }

    /// Asks for those that are due, until none is under way.
    async fn answered(&mut self, client: &Client, snapshot: &Snapshot) {
        self.ask(client, snapshot);
        while let Some(answer) = self.answers.join_next().await {
            self.take(answer);
            self.ask(client, snapshot);
        }
    }

    /// Asks for those that are new or old by now, and takes what was answered meanwhile.
    async fn refresh(&mut self, client: &Client, snapshot: &Snapshot) {
        let here = |id: &Untrusted| snapshot.workspaces.iter().any(|workspace| workspace.workspace_id == *id);
        self.known.retain(|id, _| here(id));
        self.asked.retain(|id, _| here(id));
        self.ask(client, snapshot);
        // Names begin with the branch: the first picture waits for them, but not for long.
        if !std::mem::replace(&mut self.waited, true) {
            let _ = tokio::time::timeout(FIRST_BRANCHES, self.answered(client, snapshot)).await;
        }
        while let Some(answer) = self.answers.try_join_next() {
            self.take(answer);
        }
    }

    fn ask(&mut self, client: &Client, snapshot: &Snapshot) {
        for workspace in &snapshot.workspaces {
            let id = &workspace.workspace_id;
            if self.answers.len() >= AT_ONCE {
                return;
            }
            if self.asked.get(id).is_some_and(|asked| asked.elapsed() < BRANCHES) {
                continue;
            }
            self.asked.insert(id.clone(), Instant::now());
            let repo = workspace.worktree.as_ref().and_then(|worktree| worktree.repo_name.clone());
            let (client, id) = (client.clone(), id.clone());
            self.answers.spawn(async move {
                let branch = client.worktree_list(&id.to_str_lossy()).await.map(|entries| {
                    let entry =
                        entries.into_iter().find(|entry| entry.open_workspace_id.as_ref() == Some(&id));
                    Branch { repo, branch: entry.and_then(|entry| entry.branch) }
                });
                (id, branch)
            });
        }
    }

    fn take(&mut self, answer: Result<(Untrusted, Result<Branch, HerdrError>), JoinError>) {
        let Ok((id, branch)) = answer else { return };
        match branch {
            Ok(branch) => {
                self.known.insert(id, branch);
            }
            // No work tree, or a Herdr that can't say: the workspace's label stands in.
            Err(HerdrError::Server { .. }) => {
                self.known.remove(&id);
            }
            // It failed as a whole: what was known stays, and is asked for again in a while.
            Err(_) => {}
        }
    }
}

/// Follows the global event stream, telling `changed` of every event; begins again when it ends.
async fn follow(client: Client, changed: Arc<Notify>) {
    let mut backoff = Backoff::new();
    loop {
        if let Ok(mut events) = client.subscribe(&Subscription::all_global()).await {
            while events.next().await.is_ok() {
                backoff.reset();
                changed.notify_one();
                // A flood is read no faster than it is used.
                tokio::time::sleep(BURST).await;
            }
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}
