//! A process that uses the service of another: its requests go over the socket, and what becomes
//! known there comes back as facts, as if the service were its own.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::wire::{self, FromService, Hello, WireError};
use crate::chief::service::Request;
use crate::fact::{self, Answered, Fact, FactReceiver, FactSender, Outcome};

/// How the outcome begins of what was asked of a service that ended meanwhile.
pub const UNKNOWN: &str = "it is not known what became of it";
/// How long the first line may take.
const HELLO: Duration = Duration::from_secs(1);
/// How long one request may take to be taken.
const WRITE: Duration = Duration::from_secs(5);

/// Why there is no talking to a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// It has the lock, and no socket.
    #[error("it does not listen")]
    NotListening,
    /// It is stopped, or hangs.
    #[error("it said nothing within {} s: it may be suspended", HELLO.as_secs())]
    TimedOut,
    /// It is another user's process.
    #[error("it belongs to user {0}")]
    Foreign(u32),
    /// It says something else.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It serves no more than so many.
    #[error("it refuses: {0}")]
    Refused(String),
    /// The connection failed.
    #[error("{0}")]
    Io(String),
}

impl ConnectError {
    fn io(error: &std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

/// A connection to a service that has said who it is.
pub struct Connection {
    hello: Hello,
    lines: FramedRead<OwnedReadHalf, LinesCodec>,
    write: OwnedWriteHalf,
}

/// Uses the service of another process, which nothing replaces when it ends: for a verb. The task
/// ends with the connection, or with those that ask.
pub fn attach(
    connection: Connection,
    mut requests: mpsc::Receiver<Request>,
) -> (JoinHandle<()>, FactReceiver) {
    let (sender, facts) = fact::channel();
    let task = tokio::spawn(async move {
        connection.pass(&mut requests, &sender).await;
    });
    (task, facts)
}

/// How a connection ended.
pub(super) enum Ended {
    /// We have to end. Whoever asked for it is told by this.
    Shutdown(oneshot::Sender<()>),
    /// Nobody is left to ask for anything.
    Dropped,
    /// The service ended, or does not go on.
    Gone(String),
}

impl Connection {
    pub(super) async fn begin(stream: UnixStream) -> Result<Self, ConnectError> {
        let theirs = stream.peer_cred().map_err(|error| ConnectError::io(&error))?.uid();
        if theirs != rustix::process::geteuid().as_raw() {
            return Err(ConnectError::Foreign(theirs));
        }
        let (read, write) = stream.into_split();
        let mut lines = FramedRead::new(read, LinesCodec::new_with_max_length(wire::MAX_ANSWER));
        let first = tokio::time::timeout(HELLO, lines.next()).await.map_err(|_| ConnectError::TimedOut)?;
        match first {
            None => Err(ConnectError::NotListening),
            Some(Err(error)) => Err(ConnectError::Io(error.to_string())),
            Some(Ok(line)) => match wire::said(&line)? {
                FromService::Hello(hello) => Ok(Self { hello, lines, write }),
                FromService::Error(why) => Err(ConnectError::Refused(why)),
                FromService::Fact(_) => Err(WireError::Malformed("it says no hello".to_owned()).into()),
            },
        }
    }

    /// Who answers.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Passes requests there and facts back until either side ends. What was asked for and not
    /// answered by then is answered so.
    pub(super) async fn pass(mut self, requests: &mut mpsc::Receiver<Request>, facts: &FactSender) -> Ended {
        let mut open = HashSet::new();
        let ended = self.pass_on(requests, facts, &mut open).await;
        let why = match &ended {
            Ended::Gone(why) => why.as_str(),
            Ended::Shutdown(_) | Ended::Dropped => "this headman ended",
        };
        for ticket in open {
            let result = Err(format!(
                "{UNKNOWN}: process {} ended before it said so ({why}). If it was written down, the next Chief sees to it",
                self.hello.pid
            ));
            facts.put(Fact::Outcome(Outcome { ticket, result }));
        }
        ended
    }

    async fn pass_on(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
        facts: &FactSender,
        open: &mut HashSet<u64>,
    ) -> Ended {
        loop {
            tokio::select! {
                line = self.lines.next() => {
                    let said = match line {
                        None => return Ended::Gone("it closed the connection".to_owned()),
                        Some(Err(error)) => return Ended::Gone(error.to_string()),
                        Some(Ok(line)) => wire::said(&line),
                    };
                    match said {
                        Ok(FromService::Fact(told)) => {
                            let fact = Fact::from(told);
                            if let Fact::Outcome(Outcome { ticket, .. }) | Fact::Answered(Answered { ticket, .. }) =
                                &fact
                            {
                                open.remove(ticket);
                            }
                            facts.put(fact);
                        }
                        Ok(FromService::Hello(_)) => {}
                        Ok(FromService::Error(why)) => return Ended::Gone(why),
                        Err(error) => return Ended::Gone(error.to_string()),
                    }
                }
                request = requests.recv() => {
                    let mut request = match request {
                        None => return Ended::Dropped,
                        Some(Request::Shutdown(done)) => return Ended::Shutdown(done),
                        Some(request) => request,
                    };
                    open.extend(request.ticket_mut().copied());
                    let line = match wire::ask(request) {
                        Ok(line) => line,
                        Err(error) => return Ended::Gone(error.to_string()),
                    };
                    match tokio::time::timeout(WRITE, self.write.write_all(&line)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return Ended::Gone(error.to_string()),
                        Err(_) => return Ended::Gone("it takes no more".to_owned()),
                    }
                }
            }
        }
    }
}
