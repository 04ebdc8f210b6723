//! How a verb uses the Chief service: its own or that of another process.

use std::time::Duration;

use tokio::sync::mpsc;

use super::failure::{Exit, Failure};
use crate::chief::service::Request;
use crate::contract::Uuid;
use crate::control::client;
use crate::control::socket::SocketError;
use crate::fact::{Desk, Done, Fact, FactReceiver, Sent, Standing};

/// How long becoming Chief, or one send, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nobody was found on the control socket who answers.
pub(super) fn silent(what: &str, error: &SocketError) -> Failure {
    let message = format!("can't {what}: {error}");
    match error.is_silence() {
        true => Failure::new(Exit::NotChief, "chief_silent", message, error.hint()),
        false => Failure::new(Exit::Unavailable, "control_socket", message, error.hint()),
    }
}

/// What the service has said.
#[derive(Default)]
pub(super) struct Seen {
    pub standing: Option<Standing>,
    outcomes: Vec<(u64, Result<Done, String>)>,
    sent: Vec<Sent>,
    next_ticket: u64,
    /// Whether something was asked for that does more than to take or leave the lease.
    has_acted: bool,
    /// The process that serves, while it says nothing.
    silent: Option<u32>,
}

impl Seen {
    /// One message of ours.
    pub(super) fn sent(&self, id: Uuid) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.id == id)
    }

    /// Our lease.
    pub(super) fn lease(&self) -> Option<Uuid> {
        self.standing.as_ref()?.lease()
    }
}

/// Where requests go in and facts come out.
pub(super) struct Counter<'a> {
    /// What is done there, for failures.
    pub what: &'static str,
    /// In.
    pub requests: &'a mpsc::Sender<Request>,
    /// Out.
    pub facts: &'a FactReceiver,
    /// What came out.
    pub seen: Seen,
}

impl Counter<'_> {
    /// The service does not answer.
    pub(super) fn gone(&self) -> Failure {
        let (who, hint) = match self.seen.silent {
            Some(pid) => (
                format!("process {pid}, which is the Chief service, does not answer: it may be suspended"),
                format!("Have it go on with `kill -CONT {pid}`, or end it"),
            ),
            None => ("the Chief does not answer".to_owned(), "See `headman doctor`".to_owned()),
        };
        let what = self.what;
        if self.seen.has_acted {
            let message = format!("can't {what}: {who}; {}", client::UNKNOWN);
            return Failure::new(Exit::No, "unknown", message, hint);
        }
        Failure::new(Exit::NotChief, "chief_silent", format!("can't {what}: {who}; nothing was asked"), hint)
    }

    fn take(&mut self) {
        for fact in self.facts.take() {
            match fact {
                Fact::Standing(standing) => self.seen.standing = Some(standing),
                Fact::Sent(sent) => {
                    self.seen.sent.retain(|known| known.id != sent.id);
                    self.seen.sent.push(sent);
                }
                Fact::Desk(Desk::Of { pid, answers }) => self.seen.silent = (!answers).then_some(pid),
                Fact::Outcome(outcome) => self.seen.outcomes.push((outcome.ticket, outcome.result)),
                _ => {}
            }
        }
    }

    /// Waits until that holds, or nobody is there who would tell.
    pub(super) async fn until(&mut self, holds: impl Fn(&Seen) -> bool) -> Result<(), Failure> {
        loop {
            self.take();
            if holds(&self.seen) {
                return Ok(());
            }
            if self.seen.silent.is_some() {
                return Err(self.gone());
            }
            self.facts.ready().await;
        }
    }

    /// The same within a bounded time.
    pub(super) async fn wait_for(&mut self, holds: impl Fn(&Seen) -> bool) -> Result<(), Failure> {
        match tokio::time::timeout(PATIENCE, self.until(holds)).await {
            Ok(held) => held,
            Err(_) => Err(self.gone()),
        }
    }

    /// Asks, and waits for the outcome.
    pub(super) async fn ask(
        &mut self,
        request: impl FnOnce(u64) -> Request,
    ) -> Result<Result<Done, String>, Failure> {
        self.seen.next_ticket += 1;
        let ticket = self.seen.next_ticket;
        let request = request(ticket);
        let acts = !matches!(request, Request::BecomeChief { .. } | Request::Leave { .. });
        self.requests.send(request).await.map_err(|_| self.gone())?;
        self.seen.has_acted |= acts;
        self.wait_for(|seen| seen.outcomes.iter().any(|(it, _)| *it == ticket)).await?;
        let at = self.seen.outcomes.iter().position(|(it, _)| *it == ticket);
        at.map(|at| self.seen.outcomes.remove(at).1).ok_or_else(|| self.gone())
    }

    /// Becomes Chief.
    pub(super) async fn become_chief(&mut self) -> Result<(), Failure> {
        let outcome = self.ask(|ticket| Request::BecomeChief { ticket }).await?;
        let what = self.what;
        outcome.map_err(|why| {
            let message = format!("can't {what}: not Chief: {why}");
            Failure::new(Exit::NotChief, "lease_occupied", message, "See `headman doctor`")
        })?;
        self.wait_for(|seen| seen.lease().is_some()).await
    }
}
