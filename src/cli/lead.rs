//! `headman lead`: the other side of the contract, for any program. One process holds a lead open;
//! the other verbs work for one that is open, or take what is queued for one that is not.

mod ask;
mod drain;
mod message;
mod open;
mod peers;
mod teller;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::{SessionId, Timestamp, Untrusted};
use crate::disk::durable;
use crate::disk::inbox::InboxError;
use crate::herdr::Located;
use crate::herdr::reexec::GoOn;
use crate::lead::peers::PresenceError;
use crate::lead::{Coordination, JoinError, NotUp, OpenError, SessionError, SessionFile, Unable};

/// How long a lead that is just being opened is waited for.
const OPENS_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks whether it is.
const OPENS_POLL: Duration = Duration::from_millis(20);

/// How long one that is open is waited for to be listed in Herdr, which takes it half a second.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks whether it is.
const LISTED_POLL: Duration = Duration::from_millis(50);

/// What a lead, or somebody for it, does.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Be a lead until interrupted: a line of JSON for each message that comes
    Open(open::Arguments),
    /// Ask the Chief something for an open lead; one question at a time
    Ask(ask::Arguments),
    /// Tell the Chief something for an open lead
    Message(message::Arguments),
    /// Take what is queued for a lead that is not open, once
    Drain(drain::Arguments),
    /// List the other leads that can be written to
    Peers(peers::Arguments),
    /// Write to another lead for an open one
    PeerMessage(message::ToPeer),
}

impl Verb {
    /// Whether it is the one that holds a lead open.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// Which lead.
#[derive(Debug, Clone, Args)]
pub struct Who {
    /// The lead's session id: any text of 1 to 512 characters that no other lead has
    #[arg(long, value_name = "S")]
    session: OsString,
    /// Its session file, in Pi's format [default: one that headman keeps]
    #[arg(long, value_name = "FILE")]
    session_file: Option<PathBuf>,
}

/// Runs one of them. `go_on` says whether an open lead can be listed in Herdr.
///
/// # Errors
/// [`Failure`].
pub fn run(places: &Places, verb: &Verb, mut out: Out, go_on: GoOn) -> Result<Exit, Failure> {
    match verb {
        Verb::Open(arguments) => {
            // It prints from a thread of its own, as does the one below.
            drop(out);
            open::run(places, arguments, go_on)
        }
        Verb::Ask(arguments) => ask::run(places, arguments, &mut out),
        Verb::Message(arguments) => message::run(places, arguments, &mut out),
        Verb::Drain(arguments) => {
            drop(out);
            drain::run(places, arguments)
        }
        Verb::Peers(arguments) => peers::run(places, arguments, &mut out),
        Verb::PeerMessage(arguments) => message::run_to_peer(places, arguments, &mut out),
    }
}

impl Who {
    fn session(&self) -> Result<SessionId, Failure> {
        let text = Untrusted::from_bytes_lossy(self.session.as_encoded_bytes());
        // Among peers a session may not be blank, unlike elsewhere.
        SessionId::new(text).filter(|session| !session.as_untrusted().is_blank()).ok_or_else(|| {
            Failure::usage(
                "that is no session id: 1 to 512 characters, not all blank",
                "Give another --session",
            )
        })
    }

    /// Where its session file is, and whether that is headman's own place for it.
    fn path(&self, places: &Places, session: &SessionId, what: &str) -> Result<(PathBuf, bool), Failure> {
        match &self.session_file {
            Some(file) => {
                let path = std::path::absolute(file)
                    .map_err(|error| Failure::disk(what, &error, "Name the file by its whole path"))?;
                Ok((path, false))
            }
            None => {
                let state = StateDir::at(&places.state_dir, "".as_ref());
                Ok((state.leads().join(format!("{}.jsonl", session.hash())), true))
            }
        }
    }

    /// Its session file, begun if it does not exist.
    fn begin(&self, places: &Places, socket: &Located, what: &str) -> Result<SessionFile, Failure> {
        let session = self.session()?;
        let (path, is_own) = self.path(places, &session, what)?;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::disk(what, error, "Name a file in a directory that is there, with --session-file")
        };
        if is_own {
            let state = StateDir::open(&places.state_dir, &socket.path).map_err(|error| failed(&error))?;
            durable::ensure_directories(state.root(), &state.leads()).map_err(|error| failed(&error))?;
        }
        let cwd = std::env::current_dir().unwrap_or_default();
        let cwd = Untrusted::from_bytes_lossy(cwd.as_os_str().as_encoded_bytes());
        if durable::kind(&path).map_err(|error| failed(&error))?.is_none() {
            match SessionFile::create(&path, &session, &cwd, now()) {
                // Another process was faster.
                Err(error) if error.reason == rustix::io::Errno::EXIST => {}
                created => created.map_err(|error| failed(&error))?,
            }
        }
        Ok(SessionFile::new(&path, session))
    }

    /// Joins the lead that is open, in order to do `what`. One that is just being opened is waited
    /// for.
    async fn join(&self, places: &Places, socket: &Located, what: &str) -> Result<Coordination, Failure> {
        let session = self.session()?;
        let (path, _) = self.path(places, &session, what)?;
        let deadline = Instant::now() + OPENS_WITHIN;
        loop {
            let file = SessionFile::new(&path, session.clone());
            let error = match Coordination::join(places.agent_dir.clone(), socket.path.clone(), file) {
                Ok(lead) => return Ok(lead),
                Err(error) => error,
            };
            let may_pass =
                matches!(error, JoinError::NotOpen(_) | JoinError::Record(_) | JoinError::OtherFile(_));
            if !may_pass || Instant::now() >= deadline {
                return Err(not_joined(what, &error, &path));
            }
            tokio::time::sleep(OPENS_POLL).await;
        }
    }
}

/// Waits for a lead that is just being opened to be listed in Herdr, and says so where it is not: the
/// Chief refuses what it sends then.
async fn tell_if_unlisted(lead: &mut Coordination) {
    let deadline = Instant::now() + LISTED_WITHIN;
    // Where Herdr does not answer, sending tells.
    while let Ok(false) = lead.is_listed().await {
        if Instant::now() >= deadline {
            note(
                "this lead is not listed in Herdr: the Chief refuses what it sends until it is. Run its \
                 `headman lead open` in the foreground of a Herdr pane",
            );
            return;
        }
        tokio::time::sleep(LISTED_POLL).await;
    }
}

fn not_joined(what: &str, error: &JoinError, path: &Path) -> Failure {
    let other_file = "Name the session file that it was opened with, by --session-file";
    match error {
        JoinError::NotOpen(_) => Failure::new(
            Exit::No,
            "not_open",
            format!("can't {what}: {error}"),
            "Start `headman lead open` for that session first",
        ),
        JoinError::Record(_) => Failure::new(
            Exit::No,
            "unhealthy",
            format!("can't {what}: {error}"),
            "End its `headman lead open` and start it again",
        ),
        JoinError::OtherFile(_) => Failure::usage(format!("can't {what}: {error}"), other_file),
        JoinError::Session(SessionError::Unreadable { why: crate::disk::Unreadable::Missing, .. }) => {
            Failure::usage(
                format!("can't {what}: there is no session file {}", durable::shown(path)),
                other_file,
            )
        }
        JoinError::Session(error) => of_session(what, error),
    }
}

fn of_session(what: &str, error: &SessionError) -> Failure {
    let message = format!("can't {what}: {error}");
    match error {
        SessionError::OtherSession { .. } => Failure::usage(message, "Name its own, with --session-file"),
        SessionError::Malformed { .. } => {
            Failure::new(Exit::No, "unhealthy", message, "Correct its last state entry, or use another file")
        }
        error if error.is_passing() => Failure::new(Exit::Unavailable, "disk", message, "Try again"),
        _ => Failure::new(Exit::Unavailable, "disk", message, "Name another file with --session-file"),
    }
}

fn of_unable(what: &str, error: &Unable) -> Failure {
    match error {
        Unable::Session(error) => of_session(what, error),
        Unable::Inbox(_) => Failure::disk(what, error, "See `headman doctor`"),
        Unable::AnotherInstance => Failure::new(
            Exit::No,
            "unhealthy",
            format!("can't {what}: {error}"),
            "Let only one program open this session",
        ),
        Unable::Forgotten(_) | Unable::Withdrawn(_) => Failure::new(
            Exit::No,
            "unhealthy",
            format!("can't {what}: {error}"),
            "Open it again; what is queued for it stays",
        ),
    }
}

fn not_opened(what: &str, error: &OpenError) -> Failure {
    let message = format!("can't {what}: {error}");
    match error {
        OpenError::SelfChief => Failure::new(
            Exit::NotChief,
            "self_chief",
            message,
            "Leave Chief mode there, or be another session",
        ),
        OpenError::Session(error) => of_session(what, error),
        OpenError::Presence(PresenceError::Lock(error)) if error.is_occupied() => {
            Failure::new(Exit::No, "open", message, "Use the one that is open, or end it first")
        }
        OpenError::Presence(PresenceError::Record(crate::disk::RecordError::Invalid(_))) => {
            Failure::usage(message, "Give a session, name and directory that are not blank")
        }
        OpenError::Record(_) | OpenError::Disk(_) | OpenError::Presence(_) => {
            Failure::new(Exit::Unavailable, "disk", message, "See `headman doctor`")
        }
    }
}

/// Why nothing goes up.
fn not_up(what: &str, error: &NotUp, socket: &Located) -> Failure {
    let message = format!("can't {what}: {error}");
    match error {
        NotUp::NoChief(_) => Failure::new(
            Exit::No,
            "no_chief",
            message,
            "Start the console with `headman` and press `c` there, or run `headman serve` in a Herdr pane",
        ),
        NotUp::SelfChief => Failure::new(Exit::NotChief, "self_chief", message, "Do it from another session"),
        NotUp::NotListed(_) => {
            Failure::new(Exit::No, "not_verified", message, "Run the console in a Herdr pane of its own")
        }
        NotUp::Herdr(error) => Failure::herdr(what, error, socket),
        NotUp::Unhealthy(_) => {
            Failure::new(Exit::No, "unhealthy", message, "End its `headman lead open` and start it again")
        }
        NotUp::Inbox(error) => of_inbox(message, error),
        NotUp::Disk(_) => Failure::new(Exit::Unavailable, "disk", message, "See `headman doctor`"),
    }
}

/// Why a message could not be put into an inbox.
fn of_inbox(message: String, error: &InboxError) -> Failure {
    match error {
        InboxError::Invalid(_) => Failure::new(Exit::No, "too_large", message, "Shorten it"),
        InboxError::Conflict(_) | InboxError::Quarantined(_) | InboxError::Misnamed { .. } => {
            Failure::new(Exit::No, "refused", message, "See `headman doctor`")
        }
        error if error.is_disk_full() => {
            Failure::new(Exit::Unavailable, "disk_full", message, "Free some space, then try again")
        }
        _ => Failure::new(Exit::Unavailable, "disk", message, "See `headman doctor`"),
    }
}

fn now() -> Timestamp {
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}
