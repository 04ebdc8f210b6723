//! Herdr's inventory as facts: its snapshot, polled, and early when its event stream tells of a
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::chief::staff::Office;
use crate::contract::Untrusted;
use crate::disk::DiskThread;
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
        let mut poll = Poll { client, office, disk, facts, last: None, branches: Branches::default() };
        let mut backoff = Backoff::new();
        loop {
            let started = Instant::now();
            let pause = match poll.once(&snapshots).await {
                Ok(active) => {
                    backoff.reset();
                    (if active { ACTIVE } else { CALM }).max(started.elapsed() * SLOW_FACTOR)
                }
                Err(_) => backoff.pause(),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed.notified(), if poll.last.is_some() => tokio::time::sleep(BURST).await,
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
    branches: Branches,
}

impl Poll {
    /// Takes one snapshot and emits it where it differs; says whether anything works.
    async fn once(&mut self, snapshots: &watch::Sender<Option<Arc<Snapshot>>>) -> Result<bool, HerdrError> {
        let snapshot = match self.client.snapshot().await {
            Ok(snapshot) => Arc::new(snapshot),
            Err(error) => {
                self.last = None;
                self.facts.put(Fact::HerdrDown { reason: error.to_string() });
                return Err(error);
            }
        };
        self.branches.refresh(&self.client, &snapshot).await;
        let office = Arc::clone(&self.office);
        let branches = self.branches.known.clone();
        let taken = Arc::clone(&snapshot);
        let Ok(inventory) = self.disk.run(move || office.inventory(&taken, &branches)).await else {
            return Ok(false);
        };
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

/// What is checked out where: asked for each workspace, now and then.
#[derive(Default)]
pub struct Branches {
    known: BTreeMap<Untrusted, Branch>,
    asked: BTreeMap<Untrusted, Instant>,
}

impl Branches {
    /// By workspace.
    pub fn known(&self) -> &BTreeMap<Untrusted, Branch> {
        &self.known
    }

    /// Asks for those that are new or old by now.
    pub async fn refresh(&mut self, client: &Client, snapshot: &Snapshot) {
        let here = |id: &Untrusted| snapshot.workspaces.iter().any(|workspace| workspace.workspace_id == *id);
        self.known.retain(|id, _| here(id));
        self.asked.retain(|id, _| here(id));
        for workspace in &snapshot.workspaces {
            let id = &workspace.workspace_id;
            if self.asked.get(id).is_some_and(|asked| asked.elapsed() < BRANCHES) {
                continue;
            }
            self.asked.insert(id.clone(), Instant::now());
            match client.worktree_list(&id.to_str_lossy()).await {
                Ok(entries) => {
                    let entry =
                        entries.into_iter().find(|entry| entry.open_workspace_id.as_ref() == Some(id));
                    let repo = workspace.worktree.as_ref().and_then(|worktree| worktree.repo_name.clone());
                    self.known
                        .insert(id.clone(), Branch { repo, branch: entry.and_then(|entry| entry.branch) });
                }
                // No work tree, or an older Herdr: the label stands in.
                Err(HerdrError::Server { .. }) => {
                    self.known.remove(id);
                }
                // It failed as a whole: ask again with the next snapshot.
                Err(_) => {
                    self.asked.remove(id);
                    return;
                }
            }
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
            }
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}
