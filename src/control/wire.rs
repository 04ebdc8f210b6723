//! What is said on the control socket: lines of JSON, after `docs/control.md`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chief::service::Request;
use crate::contract::SessionId;
use crate::contract::serial::pairs;
use crate::fact::{Answered, Fact, Mail, Outcome, Sent, SentCounts, Snooze, Standing};
use crate::herdr::Registration;

/// The version of the lines.
pub const VERSION: u32 = 1;
/// Longest line a client may send, in bytes: a text of 64 KiB, each byte escaped, and what is around it.
pub const MAX_REQUEST: usize = 512 * 1024;
/// Longest line the service sends, in bytes: the newest messages received, with how each begins.
pub const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// What a client says.
#[derive(Debug, Serialize, Deserialize)]
pub struct FromClient {
    v: u32,
    request: Request,
}

/// What the service says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromService {
    /// The first line, and said again while there is nothing else to say: it lives.
    Hello(Hello),
    /// One thing that became known.
    Fact(Told),
    /// A line was not understood, or no more are served; safe to print why. The connection ends.
    Error(String),
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub release: String,
    /// The Chief's session, the same for all of one state directory and Herdr socket.
    pub session: SessionId,
    /// Milliseconds after which this line is said again where nothing else was; none if it never is,
    /// and silence says nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_ms: Option<u32>,
}

/// The facts of the service, which are all that goes over the socket: what the others tell, every
/// process finds out itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// See [`Fact::Standing`].
    Standing(Standing),
    /// See [`Fact::Registration`].
    Registration(Registration),
    /// See [`Fact::Mail`].
    Mail(Arc<Mail>),
    /// See [`Fact::Answered`].
    Answered(Answered),
    /// See [`Fact::Sent`].
    Sent(Sent),
    /// See [`Fact::SentCounts`].
    SentCounts(#[serde(with = "pairs")] SentCounts),
    /// See [`Fact::Snoozes`].
    Snoozes(Arc<Vec<Snooze>>),
    /// See [`Fact::Outcome`].
    Outcome(Outcome),
}

impl Told {
    /// The fact as it is told, if it is one of the service.
    pub fn of(fact: &Fact) -> Option<Self> {
        Some(match fact {
            Fact::Standing(standing) => Told::Standing(standing.clone()),
            Fact::Registration(registration) => Told::Registration(registration.clone()),
            Fact::Mail(mail) => Told::Mail(Arc::clone(mail)),
            Fact::Answered(answered) => Told::Answered(answered.clone()),
            Fact::Sent(sent) => Told::Sent(sent.clone()),
            Fact::SentCounts(counts) => Told::SentCounts((**counts).clone()),
            Fact::Snoozes(snoozes) => Told::Snoozes(Arc::clone(snoozes)),
            Fact::Outcome(outcome) => Told::Outcome(outcome.clone()),
            _ => return None,
        })
    }
}

impl From<Told> for Fact {
    fn from(told: Told) -> Self {
        match told {
            Told::Standing(standing) => Fact::Standing(standing),
            Told::Registration(registration) => Fact::Registration(registration),
            Told::Mail(mail) => Fact::Mail(mail),
            Told::Answered(answered) => Fact::Answered(answered),
            Told::Sent(sent) => Fact::Sent(sent),
            Told::SentCounts(counts) => Fact::SentCounts(Arc::new(counts)),
            Told::Snoozes(snoozes) => Fact::Snoozes(snoozes),
            Told::Outcome(outcome) => Fact::Outcome(outcome),
        }
    }
}

/// Why a line is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is of another version.
    #[error(
        "the other headman speaks version {0} of the control socket, this one {VERSION}: use the same release"
    )]
    Version(u64),
    /// It is not understood.
    #[error("the line is not understood: {0}")]
    Malformed(String),
    /// It can't be written; a bug of ours.
    #[error("can't be written: {0}")]
    Unwritable(String),
}

#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Serialize)]
struct Sending<'a> {
    v: u32,
    #[serde(flatten)]
    said: &'a FromService,
}

/// The line that asks for `request`.
///
/// # Errors
/// [`WireError::Unwritable`] for what never goes over the socket.
pub fn ask(request: Request) -> Result<Vec<u8>, WireError> {
    line(&FromClient { v: VERSION, request })
}

/// The line that says it.
///
/// # Errors
/// [`WireError::Unwritable`].
pub fn say(said: &FromService) -> Result<Vec<u8>, WireError> {
    line(&Sending { v: VERSION, said })
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    let mut line = serde_json::to_vec(value).map_err(|error| WireError::Unwritable(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a client's line.
///
/// # Errors
/// [`WireError`].
pub fn asked(line: &str) -> Result<Request, WireError> {
    check_version(line)?;
    let said: FromClient = serde_json::from_str(line).map_err(malformed)?;
    Ok(said.request)
}

/// Reads a line of the service.
///
/// # Errors
/// [`WireError`].
pub fn said(line: &str) -> Result<FromService, WireError> {
    check_version(line)?;
    // Not flattened: that would take every value apart first, and lose lone surrogates.
    #[derive(Deserialize)]
    struct Said {
        hello: Option<Hello>,
        fact: Option<Told>,
        error: Option<String>,
    }
    let said: Said = serde_json::from_str(line).map_err(malformed)?;
    match said {
        Said { hello: Some(hello), .. } => Ok(FromService::Hello(hello)),
        Said { fact: Some(fact), .. } => Ok(FromService::Fact(fact)),
        Said { error: Some(error), .. } => Ok(FromService::Error(error)),
        _ => Err(WireError::Malformed("it says nothing".to_owned())),
    }
}

fn check_version(line: &str) -> Result<(), WireError> {
    match serde_json::from_str(line).map_err(malformed)? {
        Versioned { v } if v == u64::from(VERSION) => Ok(()),
        Versioned { v } => Err(WireError::Version(v)),
    }
}

fn malformed(error: serde_json::Error) -> WireError {
    WireError::Malformed(error.to_string())
}

#[cfg(test)]
mod tests;
