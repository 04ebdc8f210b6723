//! The one owner of the lease and of what we send: requests in, facts out.
//!
//! File work is done on the disk thread, Herdr is asked from here. Sends to one lead are done in
//! the order they were asked for; different leads don't wait for each other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::queue::Queue;
use self::sending::{Outgoing, SendResult};
use super::claim::{NotChief, about_to, claim, other_chief, release};
use super::inquiry::Which;
use super::lease::{Lease, Place};
use super::requeue::sent_of;
use super::staff::{Letter, Office, Reply};
use super::state_dir::{Identity, StateDir, StateError};
use crate::contract::role::Role;
use crate::contract::{SessionId, Untrusted, Uuid};
use crate::disk::DiskThread;
use crate::disk::thread::DiskThreadGone;
use crate::fact::{Done, Fact, FactSender, Fate, Inquiry, OtherChief, Outcome, Standing, Until};
use crate::herdr::{Client, Registrar, Snapshot};

mod mail;
mod queue;
mod sending;

/// How often lease and holder are looked at; changes of either are noticed earlier where the
/// system tells them.
const LOOK: Duration = Duration::from_secs(1);
/// How often a message that may still be taken is looked at.
const LOOK_AT_SENT: Duration = Duration::from_millis(150);

/// How long ending waits for sends under way.
const FINISH: Duration = Duration::from_secs(1);

/// What the service is asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Become Chief.
    BecomeChief {
        /// Comes back in the outcome.
        ticket: u64,
    },
    /// Leave Chief mode.
    Leave {
        /// Comes back in the outcome.
        ticket: u64,
    },
    /// Reply to an ask.
    Reply {
        /// Comes back in the outcome.
        ticket: u64,
        /// The reply.
        reply: Reply,
    },
    /// Send a message.
    Message {
        /// Comes back in the outcome.
        ticket: u64,
        /// The message.
        letter: Letter,
    },
    /// Send what may have been discarded, or was not sent, again.
    SendAgain {
        /// Comes back in the outcome.
        ticket: u64,
        /// To whom it was sent.
        lead: SessionId,
        /// The message.
        id: Uuid,
    },
    /// Tell something about what was received.
    Inquire {
        /// Comes back with the answer.
        ticket: u64,
        /// What is asked.
        inquiry: Inquiry,
    },
    /// The operator has seen what was received, or wants it to count as not seen.
    Mark {
        /// Comes back in the outcome.
        ticket: u64,
        /// What.
        which: Which,
        /// Whether it was seen.
        read: bool,
    },
    /// Put an ask off, or have it back.
    Snooze {
        /// Comes back in the outcome.
        ticket: u64,
        /// Who asks.
        lead: SessionId,
        /// The ask.
        ask: Uuid,
        /// Until when; none has it back.
        until: Option<Until>,
    },
    /// Bring the operator to a pane.
    Focus {
        /// Comes back in the outcome.
        ticket: u64,
        /// The pane.
        pane: Untrusted,
    },
    /// Whether an ask waits, for our own state in Herdr.
    Waiting(bool),
    /// Our entry in Herdr must be made anew: we were suspended.
    RegisterAgain,
    /// End: release the lease, keeping the role, and the registration. Never from another process.
    #[serde(skip)]
    Shutdown(oneshot::Sender<()>),
}

impl Request {
    /// The number under which its outcome or answer comes back, where it has one.
    pub fn ticket_mut(&mut self) -> Option<&mut u64> {
        match self {
            Request::BecomeChief { ticket }
            | Request::Leave { ticket }
            | Request::Reply { ticket, .. }
            | Request::Message { ticket, .. }
            | Request::SendAgain { ticket, .. }
            | Request::Inquire { ticket, .. }
            | Request::Mark { ticket, .. }
            | Request::Snooze { ticket, .. }
            | Request::Focus { ticket, .. } => Some(ticket),
            Request::Waiting(_) | Request::RegisterAgain | Request::Shutdown(_) => None,
        }
    }
}

/// What the service needs.
pub struct Setup {
    /// What the actions work on.
    pub office: Arc<Office>,
    /// Where file work is done.
    pub disk: DiskThread,
    /// Our own state.
    pub state: StateDir,
    /// Months of the journal that are older than so many days go as we become Chief; none goes
    /// without.
    pub keep_days: Option<u32>,
    /// Herdr.
    pub herdr: Client,
    /// Where we run, as leads see it.
    pub place: Place,
    /// Keeps us listed in Herdr, where that can be.
    pub registrar: Option<Arc<Registrar>>,
    /// Where facts go.
    pub facts: FactSender,
    /// Told when the lease on disk may have changed.
    pub lease_changed: Arc<Notify>,
    /// Told when our inbox or a lead's record may have changed.
    pub mail_changed: Arc<Notify>,
    /// Herdr's last snapshot; none while it does not answer.
    pub snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
}

/// Runs the service until it is asked to end or every requester of its own process is gone.
///
/// What other processes of ours ask for comes by `others`, so that however many they are, nobody in
/// this one waits behind more than one of theirs.
pub async fn run(setup: Setup, requests: &mut mpsc::Receiver<Request>, mut others: mpsc::Receiver<Request>) {
    let mut service = Service {
        setup,
        standing: Standing::Starting,
        resumes: false,
        sending: JoinSet::new(),
        queues: HashMap::new(),
        looking: false,
        queue: None,
        told: mail::Told::default(),
    };
    service.start().await;
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut look_at_sent = tokio::time::interval(LOOK_AT_SENT);
    look_at_sent.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let lease_changed = Arc::clone(&service.setup.lease_changed);
    let mail_changed = Arc::clone(&service.setup.mail_changed);
    loop {
        let carry_over_at = service.queue.as_ref().map(Queue::at);
        tokio::select! {
            request = requests.recv() => match request {
                None => break,
                Some(Request::Shutdown(done)) => {
                    service.shut_down().await;
                    // Whoever asked may have given up waiting.
                    let _ = done.send(());
                    return;
                }
                Some(request) => service.serve(request).await,
            },
            Some(request) = others.recv() => service.serve(request).await,
            Some(finished) = service.sending.join_next() => {
                if let Ok((lead, ticket, result)) = finished {
                    service.sent(&lead, ticket, result).await;
                    service.tell_journal_again().await;
                }
            }
            _ = look.tick() => {
                service.look().await;
                service.receive(false).await;
                if !service.looking {
                    service.look_at_sent().await;
                }
            }
            () = mail_changed.notified() => {
                service.receive(true).await;
                // A lead that was missed may be here.
                service.carry_over().await;
            }
            () = at(carry_over_at) => service.carry_over().await,
            () = lease_changed.notified() => service.look().await,
            _ = look_at_sent.tick(), if service.looking => service.look_at_sent().await,
        }
    }
    service.shut_down().await;
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

struct Service {
    setup: Setup,
    standing: Standing,
    /// While suspended: whether nobody had the lease but a process that was about to, so that we
    /// become Chief if it ends without.
    resumes: bool,
    sending: JoinSet<SendResult>,
    /// By lead: what waits for the send before it. An entry is there while one is under way.
    queues: HashMap<SessionId, VecDeque<(u64, Outgoing)>>,
    /// Whether anything sent may still be taken.
    looking: bool,
    /// What may not be delivered yet of earlier leases.
    queue: Option<Queue>,
    /// What was told of the journal last.
    told: mail::Told,
}

impl Service {
    async fn start(&mut self) {
        self.follow_journal().await;
        if let Some(barred) = self.setup.state.barred() {
            let why = barred.to_string();
            let chief = self.other_chief().await;
            return self.stand(Standing::Barred { why, chief });
        }
        self.tell_sent_before().await;
        let state = self.setup.state.clone();
        let identity = self.on_disk(move |_| state.identity()).await;
        match identity {
            Ok(Ok(Identity { role: Role::Chief, .. })) => {
                self.resume().await;
            }
            Ok(Ok(_)) => {
                let chief = self.other_chief().await;
                self.stand(Standing::Observer { chief, refused: None });
            }
            Ok(Err(error)) => {
                let chief = self.other_chief().await;
                self.stand(Standing::Observer { chief, refused: Some(error.to_string()) });
            }
            Err(error) => {
                let chief = self.other_chief().await;
                self.stand(Standing::Observer { chief, refused: Some(error.to_string()) });
            }
        }
    }

    /// Becomes Chief by itself, as its role says.
    async fn resume(&mut self) {
        let Err(error) = self.become_chief().await else { return };
        let chief = self.other_chief().await;
        let standing = match &error {
            NotChief::Lease(refused) if refused.is_occupied() => {
                let about_to = about_to(&error).filter(|_| chief == OtherChief::None);
                let chief = about_to.unwrap_or(chief);
                self.resumes = chief.is_in_progress();
                Standing::Suspended(chief)
            }
            _ => Standing::Observer { chief, refused: Some(error.to_string()) },
        };
        self.stand(standing);
    }

    async fn serve(&mut self, request: Request) {
        match request {
            Request::BecomeChief { ticket } => {
                let result = match &self.standing {
                    Standing::Chief { .. } => Ok(Done::BecameChief),
                    Standing::Barred { why, .. } => Err(why.clone()),
                    _ => self
                        .become_chief()
                        .await
                        .map(|()| Done::BecameChief)
                        .map_err(|error| error.to_string()),
                };
                self.tell(ticket, result);
            }
            Request::Leave { ticket } => {
                let result = self.leave().await.map(|()| Done::Left).map_err(|error| error.to_string());
                self.tell(ticket, result);
            }
            Request::Reply { ticket, reply } => self.queue(ticket, Outgoing::Reply(reply)),
            Request::Message { ticket, letter } => self.queue(ticket, Outgoing::Message(letter)),
            Request::SendAgain { ticket, lead, id } => {
                self.queue(ticket, Outgoing::Again { lead, id });
            }
            Request::Inquire { ticket, inquiry } => self.inquire(ticket, inquiry).await,
            Request::Mark { ticket, which, read } => self.mark(ticket, which, read).await,
            Request::Snooze { ticket, lead, ask, until } => self.snooze(ticket, lead, ask, until).await,
            Request::Focus { ticket, pane } => {
                let (herdr, facts) = (self.setup.herdr.clone(), self.setup.facts.clone());
                tokio::spawn(async move {
                    let focused = herdr.pane_focus(&pane.to_str_lossy()).await;
                    let result = focused.map(|()| Done::Focused).map_err(|error| error.to_string());
                    facts.put(Fact::Outcome(Outcome { ticket, result }));
                });
            }
            Request::Waiting(waiting) => {
                if let Some(registrar) = &self.setup.registrar {
                    registrar.set_waiting(waiting);
                }
            }
            Request::RegisterAgain => {
                if let Some(registrar) = &self.setup.registrar {
                    registrar.again();
                }
                self.look().await;
            }
            // Taken by the loop.
            Request::Shutdown(_) => {}
        }
    }

    fn tell(&self, ticket: u64, result: Result<Done, String>) {
        self.setup.facts.put(Fact::Outcome(Outcome { ticket, result }));
    }

    fn stand(&mut self, standing: Standing) {
        if self.standing == standing {
            return;
        }
        tracing::info!(standing = name_of(&standing), "standing");
        self.standing = standing;
        self.setup.facts.put(Fact::Standing(self.standing.clone()));
    }

    /// Does `work` on the disk thread.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Office) -> T + Send + 'static,
    ) -> Result<T, DiskThreadGone> {
        let office = Arc::clone(&self.setup.office);
        self.setup.disk.run(move || work(&office)).await
    }

    async fn become_chief(&mut self) -> Result<(), NotChief> {
        let state = self.setup.state.clone();
        let sidecar = state.sidecar();
        let place = self.setup.place.clone();
        let keep_days = self.setup.keep_days;
        let claimed = self.on_disk(move |office| {
            office.read_journal(&state.journal())?;
            // Before the new descriptor: leads delete what stands under the old one once it is there.
            let queued = office.queued();
            let standing = claim(office, &state, sidecar, &place)?;
            // Another console of ours may have written until the lease was ours.
            if let Err(error) = office.read_journal(&state.journal()) {
                release(office).map_err(StateError::from)?;
                return Err(NotChief::Journal(error));
            }
            if let Some(days) = keep_days {
                office.prune_older(days);
            }
            office.sweep(&state);
            office.follow_earlier();
            Ok((standing, office.undelivered(queued)))
        });
        let (standing, messages) = claimed.await??;
        for message in &messages {
            self.setup.facts.put(Fact::Sent(sent_of(message, Fate::Queued)));
        }
        self.queue = Queue::of(messages);
        self.stand(standing);
        self.tell_sent_before().await;
        if let Some(registrar) = &self.setup.registrar {
            registrar.register(self.setup.office.session().clone(), "headman");
        }
        Ok(())
    }

    async fn leave(&mut self) -> Result<(), NotChief> {
        self.unregister().await;
        let state = self.setup.state.clone();
        let left = self.on_disk(move |office| -> Result<(), StateError> {
            let released = release(office);
            let mut identity = state.identity()?;
            identity.role = Role::Lead;
            state.write_identity(&identity)?;
            released.map_err(StateError::from)
        });
        left.await??;
        let chief = self.other_chief().await;
        self.stand(Standing::Observer { chief, refused: None });
        self.look_at_sent().await;
        Ok(())
    }

    async fn shut_down(&mut self) {
        // What waits is not begun any more. What is being sent is finished, if Herdr lets it: its
        // text may be durable already. Nothing is written for what is ended before.
        self.queues.clear();
        let all = async {
            while let Some(finished) = self.sending.join_next().await {
                if let Ok((lead, ticket, result)) = finished {
                    self.sent(&lead, ticket, result).await;
                }
            }
        };
        if tokio::time::timeout(FINISH, all).await.is_err() {
            self.sending.shutdown().await;
        }
        self.unregister().await;
        match self.on_disk(release).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "releasing the lease"),
            Err(error) => tracing::warn!(%error, "releasing the lease"),
        }
    }

    async fn unregister(&self) {
        if let Some(registrar) = &self.setup.registrar
            && let Err(error) = registrar.release().await
        {
            tracing::warn!(%error, "releasing the registration");
        }
    }

    /// Checks the lease we hold, or who else does.
    async fn look(&mut self) {
        if self.standing.lease().is_none() {
            self.follow_journal().await;
        }
        match &self.standing {
            Standing::Starting => {}
            Standing::Barred { why, .. } => {
                let why = why.clone();
                let chief = self.other_chief().await;
                self.stand(Standing::Barred { why, chief });
            }
            Standing::Chief { .. } => self.check_lease().await,
            Standing::Observer { refused, .. } => {
                let refused = refused.clone();
                let chief = self.other_chief().await;
                self.stand(Standing::Observer { chief, refused });
            }
            Standing::Suspended(_) => {
                let chief = self.other_chief().await;
                self.resumes &= matches!(chief, OtherChief::None) || chief.is_in_progress();
                if self.resumes && chief == OtherChief::None {
                    self.resume().await;
                } else {
                    self.stand(Standing::Suspended(chief));
                }
            }
            Standing::Lost { reason, .. } => {
                let reason = reason.clone();
                let chief = self.other_chief().await;
                self.stand(Standing::Lost { reason, chief });
            }
        }
    }

    async fn check_lease(&mut self) {
        let checked = self.on_disk(|office| {
            let mut held = office.lease();
            let lost = match held.as_ref().map(Lease::check) {
                // The disk failed: every action checks for itself and refuses.
                Some(Err(_)) | Some(Ok(Ok(()))) => return None,
                Some(Ok(Err(lost))) => lost.to_string(),
                None => "it was released".to_owned(),
            };
            if let Some(lease) = held.take()
                && let Err(error) = lease.release()
            {
                tracing::warn!(%error, "releasing a lost lease");
            }
            Some(lost)
        });
        let lost = match checked.await {
            Ok(lost) => lost,
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = lost {
            self.unregister().await;
            let chief = self.other_chief().await;
            self.stand(Standing::Lost { reason, chief });
            self.look_at_sent().await;
        }
    }

    async fn other_chief(&self) -> OtherChief {
        self.on_disk(other_chief).await.unwrap_or_else(|error| OtherChief::Unverifiable(error.to_string()))
    }
}

fn name_of(standing: &Standing) -> &'static str {
    match standing {
        Standing::Starting => "starting",
        Standing::Observer { .. } => "observer",
        Standing::Barred { .. } => "barred",
        Standing::Chief { .. } => "chief",
        Standing::Suspended(_) => "suspended",
        Standing::Lost { .. } => "lost",
    }
}
