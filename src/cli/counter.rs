//! How a verb uses the Chief service: its own or that of another process.

use std::time::Duration;

use tokio::sync::mpsc;

use super::failure::{Exit, Failure};
use crate::chief::service::Request;
use crate::contract::Uuid;
use crate::control::socket::SocketError;
use crate::fact::{Done, Fact, FactReceiver, Sent, Standing};

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
        let message =
            format!("can't {}: the Chief does not answer, so it is not known what became of it", self.what);
        Failure::new(Exit::Unavailable, "unknown", message, "Look at the lead before you try again")
    }

    fn take(&mut self) {
        for fact in self.facts.take() {
            match fact {
                Fact::Standing(standing) => self.seen.standing = Some(standing),
                Fact::Sent(sent) => {
                    self.seen.sent.retain(|known| known.id != sent.id);
                    self.seen.sent.push(sent);
                }
                Fact::Outcome(outcome) => self.seen.outcomes.push((outcome.ticket, outcome.result)),
                _ => {}
            }
        }
    }

    /// Waits until that holds.
    pub(super) async fn until(&mut self, holds: impl Fn(&Seen) -> bool) {
        loop {
            self.take();
            if holds(&self.seen) {
                return;
            }
            self.facts.ready().await;
        }
    }

    /// The same within a bounded time.
    pub(super) async fn wait_for(&mut self, holds: impl Fn(&Seen) -> bool) -> Result<(), Failure> {
        tokio::time::timeout(PATIENCE, self.until(holds)).await.map_err(|_| self.gone())
    }

    /// Asks, and waits for the outcome.
    pub(super) async fn ask(
        &mut self,
        request: impl FnOnce(u64) -> Request,
    ) -> Result<Result<Done, String>, Failure> {
        self.seen.next_ticket += 1;
        let ticket = self.seen.next_ticket;
        self.requests.send(request(ticket)).await.map_err(|_| self.gone())?;
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
