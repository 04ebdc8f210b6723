//! The client's blocking twin, for exit paths on which no runtime can be relied on: a panic, a
//! signal, a lost terminal. Same wire, same checks, no thread and no task of its own.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::HerdrError;
use super::wire::{self, MAX_REPLY};

/// One request, one reply, within `timeout` over all: the raw `result` object.
///
/// # Errors
/// As [`super::Client::request`].
pub fn request(
    socket: &Path,
    timeout: Duration,
    method: &str,
    params: Value,
) -> Result<Box<RawValue>, HerdrError> {
    let deadline = Instant::now() + timeout;
    let timed_out = || HerdrError::TimedOut { method: method.to_owned(), after: timeout };
    let failed = |error: &std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => timed_out(),
        _ => HerdrError::Io { path: socket.to_path_buf(), why: error.to_string() },
    };
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(timed_out()) } else { Ok(left) }
    };
    let line = wire::request_line(method, params)?;
    let mut stream = loop {
        match connect(socket) {
            Ok(stream) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(left()?.min(Duration::from_millis(5)));
            }
            Err(error) => return Err(HerdrError::from_connect(socket, &error)),
        }
    };
    check_peer(&stream, socket)?;
    stream.set_write_timeout(Some(left()?)).map_err(|error| failed(&error))?;
    match stream.write_all(&line) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(failed(&error)),
        _ => {}
    }
    let mut reply = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left()?)).map_err(|error| failed(&error))?;
        let read = match stream.read(&mut chunk) {
            Ok(0) => return Err(HerdrError::Closed { method: method.to_owned() }),
            Ok(read) => &chunk[..read],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(&error)),
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        reply.extend_from_slice(&read[..end.unwrap_or(read.len())]);
        if reply.len() > MAX_REPLY {
            return Err(wire::too_large(method));
        }
        if end.is_some() {
            return wire::result_of(method, &reply);
        }
    }
}

/// Connects without ever blocking: a plain connect waits for ever while the listener's queue is full.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    match rustix::net::connect(&fd, &address) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Err(ErrorKind::WouldBlock.into()),
        Err(error) => return Err(error.into()),
    }
    rustix::io::ioctl_fionbio(&fd, false)?;
    Ok(UnixStream::from(fd))
}

#[cfg(target_os = "linux")]
fn check_peer(stream: &UnixStream, socket: &Path) -> Result<(), HerdrError> {
    let peer = rustix::net::sockopt::socket_peercred(stream)
        .map_err(|error| HerdrError::Io { path: socket.to_path_buf(), why: error.to_string() })?;
    ours_or_foreign(peer.uid.as_raw(), socket)
}

/// Without peer credentials in reach, the socket file's owner has to do.
#[cfg(not(target_os = "linux"))]
fn check_peer(_: &UnixStream, socket: &Path) -> Result<(), HerdrError> {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(socket)
        .map_err(|error| HerdrError::Io { path: socket.to_path_buf(), why: error.to_string() })?;
    ours_or_foreign(owner.uid(), socket)
}

fn ours_or_foreign(theirs: u32, socket: &Path) -> Result<(), HerdrError> {
    let ours = rustix::process::geteuid().as_raw();
    if theirs == ours {
        return Ok(());
    }
    Err(HerdrError::ForeignPeer { path: socket.to_path_buf(), theirs, ours })
}
