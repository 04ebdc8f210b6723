//! Serving: who is of our user may ask, within bounds, and is told.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::hub::Hub;
use super::socket::Listening;
use super::wire::{self, FromService, Hello, Told};
use crate::chief::service::Request;
use crate::fact::{Desk, Fact, FactSender};

/// Connections served at once.
const MAX_CONNECTIONS: usize = 32;
/// Requests of one connection whose outcome is not known yet.
const MAX_OPEN: usize = 16;
/// How long a connection may be silent: then it is told that we live. It hangs on nothing else we do,
/// least of all on the disk.
const SILENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether the socket still stands where others look for it.
const LOOK: Duration = Duration::from_secs(1);
/// How long a client may take to take a line.
const WRITE: Duration = Duration::from_secs(10);
/// How long a client may take to end a line it began: who hangs within one has a place that others
/// could have.
const LINE: Duration = Duration::from_secs(3);
/// Shortest time between two requests of one connection: more than any hand, and a script that
/// floods leaves the service its time.
const PACE: Duration = Duration::from_millis(1);

/// Serves until dropped, and tells of the socket what is to be told.
pub(super) async fn serve(
    mut listening: Listening,
    hello: Hello,
    hub: Arc<Hub>,
    requests: mpsc::Sender<Request>,
    facts: &FactSender,
) {
    let mut connections = JoinSet::new();
    let tell = |desk| facts.put(Fact::Desk(desk));
    let own = Desk::Own { socket: listening.path().to_owned() };
    tell(own.clone());
    let mut why_not: Option<String> = None;
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = look.tick() => {
                let now = listening.stand().await.err().map(|error| error.to_string());
                if now != why_not {
                    tracing::warn!(why = now.as_deref().unwrap_or("it stands again"), "the control socket");
                    tell(now.clone().map_or_else(|| own.clone(), Desk::Alone));
                    why_not = now;
                }
            }
            accepted = listening.listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    let (hello, hub, requests) = (hello.clone(), Arc::clone(&hub), requests.clone());
                    connections.spawn(async move {
                        if let Err(why) = attend(stream, hello, &hub, requests).await {
                            tracing::info!(why, "a control connection ended");
                        }
                    });
                }
                Ok((stream, _)) => refuse(&stream),
                // Out of descriptors, say: those connected may end.
                Err(error) => {
                    tracing::warn!(%error, "accepting on the control socket");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn refuse(stream: &UnixStream) {
    let why = format!("{MAX_CONNECTIONS} processes are connected already");
    if let Ok(line) = wire::say(&FromService::Error(why)) {
        // A new connection takes a line without waiting; if not, it sees that it is closed.
        let _ = stream.try_write(&line);
    }
}

async fn attend(
    stream: UnixStream,
    hello: Hello,
    hub: &Arc<Hub>,
    requests: mpsc::Sender<Request>,
) -> Result<(), String> {
    let theirs = stream.peer_cred().map_err(|error| error.to_string())?.uid();
    if theirs != rustix::process::geteuid().as_raw() {
        return Err(format!("it is of user {theirs}"));
    }
    let (read, write) = stream.into_split();
    let mut writer = Writer { stream: write, last: Instant::now() };
    let hello = FromService::Hello(Hello { again_ms: u32::try_from(SILENCE.as_millis()).ok(), ..hello });
    writer.say(&hello).await?;
    let connected = hub.connect();
    let mut lines = FramedRead::new(read, LinesCodec::new_with_max_length(wire::MAX_REQUEST));
    let mut open = 0_usize;
    let mut next = Instant::now();
    // What the service has no room for yet. Waiting for that keeps nothing else waiting.
    let mut held: Option<Request> = None;
    // Since when a line is waited for of which a part is there. It is looked at whenever the client is
    // told something, which is at least once a second.
    let mut begun: Option<Instant> = None;
    loop {
        let waits = held.is_none() && open < MAX_OPEN;
        let is_begun = waits && !lines.read_buffer().is_empty();
        begun = is_begun.then(|| begun.unwrap_or_else(Instant::now));
        if begun.is_some_and(|since| since.elapsed() > LINE) {
            let why = format!("a line was begun and not ended within {} s", LINE.as_secs());
            writer.say(&FromService::Error(why.clone())).await?;
            return Err(why);
        }
        tokio::select! {
            () = connected.facts.ready() => {
                for fact in connected.facts.take() {
                    if let Fact::Outcome(_) | Fact::Answered(_) = fact {
                        open = open.saturating_sub(1);
                    }
                    if let Some(told) = Told::of(&fact) {
                        writer.say(&FromService::Fact(told)).await?;
                    }
                }
            }
            () = tokio::time::sleep_until(writer.last + SILENCE) => writer.say(&hello).await?,
            room = requests.reserve(), if held.is_some() => {
                let room = room.map_err(|_| "the service ended".to_owned())?;
                if let Some(request) = held.take() {
                    room.send(request);
                }
                next = Instant::now() + PACE;
            }
            line = paced(&mut lines, next), if waits => {
                begun = None;
                let request = match line {
                    None => return Ok(()),
                    Some(Ok(line)) => wire::asked(&line).map_err(|error| error.to_string()),
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                        Err(format!("a line is longer than {} bytes", wire::MAX_REQUEST))
                    }
                    Some(Err(error)) => Err(error.to_string()),
                };
                match request {
                    Ok(mut request) => {
                        if let Some(ticket) = request.ticket_mut() {
                            *ticket = connected.ticket(*ticket);
                            open += 1;
                        }
                        held = Some(request);
                    }
                    Err(why) => {
                        writer.say(&FromService::Error(why.clone())).await?;
                        return Err(why);
                    }
                }
            }
        }
    }
}

type Lines = FramedRead<tokio::net::unix::OwnedReadHalf, LinesCodec>;

/// The next line, not before `next`.
async fn paced(lines: &mut Lines, next: Instant) -> Option<Result<String, LinesCodecError>> {
    tokio::time::sleep_until(next).await;
    lines.next().await
}

struct Writer {
    stream: tokio::net::unix::OwnedWriteHalf,
    /// When it was said something last.
    last: Instant,
}

impl Writer {
    async fn say(&mut self, said: &FromService) -> Result<(), String> {
        let line = wire::say(said).map_err(|error| error.to_string())?;
        let written = tokio::time::timeout(WRITE, self.stream.write_all(&line)).await;
        self.last = Instant::now();
        match written {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("it reads nothing".to_owned()),
        }
    }
}
