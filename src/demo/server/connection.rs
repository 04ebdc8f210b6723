//! One connection: one request, one answer, the end. Except a stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::calls::Request;
use super::events::Stream;
use super::methods::Answer;
use super::{Call, Fault, Shared};

/// Longest request that is read.
const MAX_REQUEST: usize = 1 << 20;
/// What it costs a client not to have written its request at once.
const LATE_BYTES: Duration = Duration::from_millis(100);

/// Accepts until aborted; every connection ends with it.
pub(super) async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        if let Err(error) = serve(stream, &shared).await {
                            tracing::debug!(%error, "a connection of the simulated Herdr");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting for the simulated Herdr");
                    tokio::time::sleep(LATE_BYTES).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let Some(line) = read_request(&mut stream).await? else {
        return refuse(&mut stream, "", "invalid_request", "invalid request: too long").await;
    };
    if line.is_empty() {
        return Ok(());
    }
    let called = called(&line);
    if let Some(call) = &called {
        shared.remember(call.clone());
    }
    let method = called.map(|call| call.method).unwrap_or_default();
    match shared.fault_on(&method) {
        Fault::None | Fault::Refuse | Fault::Gone => {}
        Fault::Silent => {
            // Until the client has had enough.
            while stream.read(&mut [0; 64]).await? > 0 {}
            return Ok(());
        }
        Fault::Garbage(bytes) => return stream.write_all(&bytes).await,
        Fault::Late(pause) => tokio::time::sleep(pause).await,
        Fault::Huge(bytes) => return write_much(&mut stream, bytes).await,
        Fault::Cut => return Ok(()),
        Fault::Error { code, message } => return refuse(&mut stream, "", &code, &message).await,
    }
    let request: Request = match serde_json::from_slice(&line) {
        Ok(request) => request,
        Err(error) => {
            return refuse(&mut stream, "", "invalid_request", &format!("invalid request: {error}")).await;
        }
    };
    match shared.change(|state| state.answer(request.method)) {
        Ok(Answer::Result(result)) => {
            write_line(&mut stream, &json!({"id": request.id, "result": result})).await
        }
        Ok(Answer::Stream(result, old, events)) => {
            write_line(&mut stream, &json!({"id": request.id, "result": result})).await?;
            tell(&mut stream, shared, old, events).await
        }
        // What the real one refuses while it reads a request has no id yet.
        Err((code @ "invalid_request", message)) => refuse(&mut stream, "", code, &message).await,
        Err((code, message)) => refuse(&mut stream, &request.id, code, &message).await,
    }
}

/// The request's line; none if it is too long, empty if there was none.
async fn read_request(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let mut chunk = vec![0; 1 << 16];
        let read = stream.read(&mut chunk).await?;
        if let Some(end) = chunk[..read].iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&chunk[..end]);
            return Ok((line.len() < MAX_REQUEST).then_some(line));
        }
        line.extend_from_slice(&chunk[..read]);
        if read == 0 {
            return Ok(Some(line));
        }
        if line.len() >= MAX_REQUEST {
            return Ok(None);
        }
        tokio::time::sleep(LATE_BYTES).await;
    }
}

fn called(line: &[u8]) -> Option<Call> {
    let request: Value = serde_json::from_slice(line).ok()?;
    Some(Call { method: request.get("method")?.as_str()?.to_owned(), params: request.get("params")?.clone() })
}

async fn write_line(stream: &mut UnixStream, line: &Value) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes()).await
}

async fn refuse(stream: &mut UnixStream, id: &str, code: &str, message: &str) -> io::Result<()> {
    write_line(stream, &json!({"id": id, "error": {"code": code, "message": message}})).await
}

async fn write_much(stream: &mut UnixStream, bytes: usize) -> io::Result<()> {
    let chunk = vec![b'x'; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(chunk.len());
        stream.write_all(&chunk[..now]).await?;
        left -= now;
    }
    Ok(())
}

async fn tell(
    stream: &mut UnixStream,
    shared: &Shared,
    old: Vec<String>,
    mut events: Stream,
) -> io::Result<()> {
    let mut latest = shared.latest.subscribe();
    let mut lines = old;
    // What happened since the subscription was opened wakes nobody any more.
    lines.extend(shared.state().news(&mut events));
    loop {
        for line in lines {
            stream.write_all(format!("{line}\n").as_bytes()).await?;
        }
        let mut chunk = [0; 64];
        tokio::select! {
            changed = latest.changed() => if changed.is_err() { return Ok(()) },
            // Nothing more is expected from the client but its end.
            read = stream.read(&mut chunk) => if read? == 0 { return Ok(()) },
        }
        lines = shared.state().news(&mut events);
    }
}
