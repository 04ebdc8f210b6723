//! A process that uses the service of another: its requests go over the socket, and what becomes
//! known there comes back as facts, as if the service were its own.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::wire::{self, FromService, Hello, WireError};
use crate::chief::service::Request;
use crate::fact::{self, Answered, Desk, Fact, FactReceiver, FactSender, Outcome};

/// How the outcome begins of what was asked of a service that ended meanwhile.
pub const UNKNOWN: &str = "it is not known what became of it";
/// How long the first line may take.
const HELLO: Duration = Duration::from_secs(1);
/// How many lines of a service may be missing before it counts as silent.
const MISSED: u32 = 3;
/// How late a timer may be before it says that we did not run ourselves.
const LATE: Duration = Duration::from_millis(500);

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
/// ends with the connection, or with those that ask; that none answers any more is told then.
pub fn attach(
    connection: Connection,
    mut requests: mpsc::Receiver<Request>,
) -> (JoinHandle<()>, FactReceiver) {
    let (sender, facts) = fact::channel();
    let task = tokio::spawn(async move {
        let pid = connection.hello.pid;
        connection.pass(&mut requests, &sender).await;
        // Nobody takes its place.
        sender.put(Fact::Desk(Desk::Of { pid, answers: false }));
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

    /// Passes requests there and facts back until either side ends, and tells whether the service
    /// speaks. What was asked for and not answered by the end is answered so.
    pub(super) async fn pass(self, requests: &mut mpsc::Receiver<Request>, facts: &FactSender) -> Ended {
        let pid = self.hello.pid;
        facts.put(Fact::Desk(Desk::Of { pid, answers: true }));
        let mut line = Line {
            pid,
            silence: self.hello.again_ms.map(|again| Duration::from_millis(again.into()) * MISSED),
            facts,
            open: HashMap::new(),
            outgoing: VecDeque::new(),
            later: Vec::new(),
            is_silent: false,
        };
        let ended = line.pass_on(self.lines, self.write, requests).await;
        let why = match &ended {
            Ended::Gone(why) => why.as_str(),
            Ended::Shutdown(_) | Ended::Dropped => "this headman ended",
        };
        for (ticket, is_inquiry) in line.open {
            facts.put(match is_inquiry {
                true => {
                    let result = Err(format!("process {pid} ended before it answered ({why})"));
                    Fact::Answered(Answered { ticket, result })
                }
                false => {
                    let result = Err(format!(
                        "{UNKNOWN}: process {pid} ended before it said so ({why}). If it was written down, the next Chief sees to it"
                    ));
                    Fact::Outcome(Outcome { ticket, result })
                }
            });
        }
        ended
    }
}

/// What is under way on a connection.
struct Line<'a> {
    pid: u32,
    /// How long the service may say nothing; none where it promises nothing.
    silence: Option<Duration>,
    facts: &'a FactSender,
    /// Handed over and not answered, by ticket; whether nothing but an answer is wanted.
    open: HashMap<u64, bool>,
    /// What is still to be written.
    outgoing: VecDeque<u8>,
    /// What is handed over once the service speaks again: the latest of each kind.
    later: Vec<Request>,
    is_silent: bool,
}

impl Line<'_> {
    async fn pass_on(
        &mut self,
        mut lines: FramedRead<OwnedReadHalf, LinesCodec>,
        mut write: OwnedWriteHalf,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Ended {
        let mut heard = Instant::now();
        loop {
            let silent_at = self.silence.filter(|_| !self.is_silent).map(|silence| heard + silence);
            tokio::select! {
                // What was said is heard before anybody is called silent.
                biased;
                line = lines.next() => {
                    let said = match line {
                        None => return Ended::Gone("it closed the connection".to_owned()),
                        Some(Err(error)) => return Ended::Gone(error.to_string()),
                        Some(Ok(line)) => wire::said(&line),
                    };
                    heard = Instant::now();
                    let spoke = match said {
                        Ok(said) => self.speaks_again().and_then(|()| self.hear(said)),
                        Err(error) => Err(error.to_string()),
                    };
                    if let Err(why) = spoke {
                        return Ended::Gone(why);
                    }
                }
                written = write.write_buf(&mut self.outgoing), if !self.outgoing.is_empty() => {
                    if let Err(error) = written {
                        return Ended::Gone(error.to_string());
                    }
                }
                request = requests.recv(), if self.is_silent || self.outgoing.is_empty() => {
                    let asked = match request {
                        None => return Ended::Dropped,
                        Some(Request::Shutdown(done)) => return Ended::Shutdown(done),
                        Some(request) => self.ask(request),
                    };
                    if let Err(error) = asked {
                        return Ended::Gone(error.to_string());
                    }
                }
                () = at(silent_at) => {
                    if silent_at.is_some_and(|at| at.elapsed() > LATE) {
                        // We were stopped ourselves, and it may just be about to speak.
                        heard = Instant::now();
                        continue;
                    }
                    self.is_silent = true;
                    tracing::warn!(pid = self.pid, "the service of another process says nothing");
                    self.facts.put(Fact::Desk(Desk::Of { pid: self.pid, answers: false }));
                }
            }
        }
    }

    fn hear(&mut self, said: FromService) -> Result<(), String> {
        match said {
            FromService::Fact(told) => {
                let fact = Fact::from(told);
                if let Fact::Outcome(Outcome { ticket, .. }) | Fact::Answered(Answered { ticket, .. }) = &fact
                {
                    self.open.remove(ticket);
                }
                self.facts.put(fact);
                Ok(())
            }
            FromService::Hello(_) => Ok(()),
            FromService::Error(why) => Err(why),
        }
    }

    fn speaks_again(&mut self) -> Result<(), String> {
        if !self.is_silent {
            return Ok(());
        }
        self.is_silent = false;
        self.facts.put(Fact::Desk(Desk::Of { pid: self.pid, answers: true }));
        for request in std::mem::take(&mut self.later) {
            self.ask(request).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Hands a request over. To one that is silent none is that does something and has an outcome: it
    /// would be done who knows when. What only wants an answer may wait for it.
    fn ask(&mut self, mut request: Request) -> Result<(), WireError> {
        let is_inquiry = matches!(request, Request::Inquire { .. });
        match request.ticket_mut().copied() {
            Some(ticket) if self.is_silent && !is_inquiry => {
                let result = Err(format!(
                    "process {pid}, which serves, does not answer: it may be suspended. `kill -CONT {pid}` has it go on",
                    pid = self.pid
                ));
                self.facts.put(Fact::Outcome(Outcome { ticket, result }));
            }
            None if self.is_silent => {
                let kind = std::mem::discriminant(&request);
                self.later.retain(|earlier| std::mem::discriminant(earlier) != kind);
                self.later.push(request);
            }
            ticket => {
                self.outgoing.extend(wire::ask(request)?);
                self.open.extend(ticket.map(|ticket| (ticket, is_inquiry)));
            }
        }
        Ok(())
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
