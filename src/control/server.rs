//! Serving: who is of our user may ask, within bounds, and is told.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::hub::{Connected, Hub};
use super::wire::{self, FromService, Hello, Told};
use crate::chief::service::Request;
use crate::fact::Fact;

/// Connections served at once.
const MAX_CONNECTIONS: usize = 32;
/// Requests of one connection whose outcome is not known yet.
const MAX_OPEN: usize = 16;
/// How long a client may take to take a line.
const WRITE: Duration = Duration::from_secs(10);
/// Shortest time between two requests of one connection: more than any hand, and a script that
/// floods leaves the service its time.
const PACE: Duration = Duration::from_millis(1);

/// Serves until dropped.
pub(super) async fn serve(
    listener: &UnixListener,
    hello: Hello,
    hub: Arc<Hub>,
    requests: mpsc::Sender<Request>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
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
    let mut writer = Writer(write);
    writer.say(&FromService::Hello(hello)).await?;
    let connected = hub.connect();
    let mut lines = FramedRead::new(read, LinesCodec::new_with_max_length(wire::MAX_REQUEST));
    let mut open = 0_usize;
    let mut next = tokio::time::Instant::now();
    loop {
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
            line = paced(&mut lines, next), if open < MAX_OPEN => {
                let request = match line {
                    None => return Ok(()),
                    Some(Ok(line)) => wire::asked(&line).map_err(|error| error.to_string()),
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                        Err(format!("a line is longer than {} bytes", wire::MAX_REQUEST))
                    }
                    Some(Err(error)) => Err(error.to_string()),
                };
                match request {
                    Ok(request) => {
                        open += usize::from(hand_on(request, &connected, &requests).await?);
                        next = tokio::time::Instant::now() + PACE;
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
async fn paced(lines: &mut Lines, next: tokio::time::Instant) -> Option<Result<String, LinesCodecError>> {
    tokio::time::sleep_until(next).await;
    lines.next().await
}

/// Says whether an outcome will come.
async fn hand_on(
    mut request: Request,
    connected: &Connected,
    requests: &mpsc::Sender<Request>,
) -> Result<bool, String> {
    let ticket = request.ticket_mut();
    let has_outcome = ticket.is_some();
    if let Some(ticket) = ticket {
        *ticket = connected.ticket(*ticket);
    }
    requests.send(request).await.map_err(|_| "the service ended".to_owned())?;
    Ok(has_outcome)
}

struct Writer(tokio::net::unix::OwnedWriteHalf);

impl Writer {
    async fn say(&mut self, said: &FromService) -> Result<(), String> {
        let line = wire::say(said).map_err(|error| error.to_string())?;
        match tokio::time::timeout(WRITE, self.0.write_all(&line)).await {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("it reads nothing".to_owned()),
        }
    }
}
