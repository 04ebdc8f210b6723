//! `headman transcript`: what was said in a lead's session, or in that of a named file. Needs no lease
//! and writes nothing; the path of the file is never part of the answer.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::{list, prefix};
use crate::chief::staff::path_of;
use crate::config::Places;
use crate::contract::json::{ObjectWriter, number_text};
use crate::contract::{SessionId, Untrusted};
use crate::disk::records::{self, Holding};
use crate::disk::{Runtime, durable};
use crate::herd::Lead;
use crate::pi::session::HeaderError;
use crate::pi::transcript::{self, Extent, Limit, Transcript, TranscriptError};

const WHAT: &str = "read the transcript";

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    #[arg(value_name = "SESSION", required_unless_present = "file", conflicts_with_all = ["file", "session"])]
    lead: Option<OsString>,
    /// Read this session file, whoever's it is; asks neither Herdr nor the leads' records
    #[arg(long, value_name = "FILE", requires = "session")]
    file: Option<PathBuf>,
    /// The id of the session that the file must be of
    #[arg(long, value_name = "ID", requires = "file")]
    session: Option<OsString>,
    /// Everything visible on the branch, however long
    #[arg(long)]
    full: bool,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where there is no such lead, its file can't be read or is none of its session, or
/// another is Chief or lead by the end of it.
pub fn run(
    places: impl FnOnce() -> Result<Places, Failure>,
    arguments: &Arguments,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let extent = if arguments.full { Extent::Full } else { Extent::Bounded };
    let (session, transcript) = match (&arguments.file, &arguments.session, &arguments.lead) {
        (Some(file), Some(session), _) => {
            let session = session_id(WHAT, session)?;
            let transcript =
                transcript::read(file, &session, extent).map_err(|error| unread(WHAT, &error))?;
            (session, transcript)
        }
        (_, _, Some(lead)) => of_lead(&places()?, &session_id(WHAT, lead)?, extent)?,
        _ => {
            return Err(Failure::usage(
                format!("can't {WHAT}: of which session is not said"),
                "See `headman transcript --help`",
            ));
        }
    };
    tell(&session, &transcript, extent, out)?;
    Ok(Exit::Done)
}

/// The session id that was given, in order to do `what`.
pub(super) fn session_id(what: &str, text: &OsString) -> Result<SessionId, Failure> {
    SessionId::new(Untrusted::from_bytes_lossy(text.as_encoded_bytes()))
        .ok_or_else(|| Failure::usage(format!("can't {what}: that is no session id"), "See `headman list`"))
}

/// The transcript of the lead that is `wanted`. That it is the lead, that the file is its file, and
/// that the same is Chief, is looked at before and again after.
fn of_lead(places: &Places, wanted: &SessionId, extent: Extent) -> Result<(SessionId, Transcript), Failure> {
    let no = |code, why: String, hint| Failure::new(Exit::No, code, format!("can't {WHAT}: {why}"), hint);
    let before = list::look(places, WHAT)?;
    let lead =
        prefix::lead_of(&before.roster, wanted).map_err(|why| no("not_found", why, "See `headman list`"))?;
    let Some(file) = &lead.session_file else {
        let why = format!("Herdr names no session file of {}", lead.session.escaped());
        return Err(no("no_file", why, "Wait for the session's first message"));
    };
    let holding = holding(&before.runtime)?;
    let transcript =
        transcript::read(&path_of(file), &lead.session, extent).map_err(|error| unread(WHAT, &error))?;
    let after = list::look(places, WHAT)?;
    let is_same = |now: &Lead| now.instance == lead.instance && now.session_file == lead.session_file;
    if !after.roster.lead(&lead.session).is_some_and(is_same) {
        let why = format!("{} was started anew or left meanwhile", lead.session.escaped());
        return Err(no("lead_changed", why, "See `headman list`, and try again"));
    }
    if self::holding(&after.runtime)? != holding {
        return Err(no("lease_changed", "who is Chief changed meanwhile".to_owned(), "Try again"));
    }
    Ok((lead.session.clone(), transcript))
}

fn holding(runtime: &Runtime) -> Result<Holding, Failure> {
    records::read_holding(runtime).map_err(|error| {
        let lock = durable::shown(&runtime.lock()).to_string();
        Failure::disk(&format!("{WHAT}: {lock}"), &error, "See `headman doctor`")
    })
}

/// Why `what` can't be done. The error says what is wrong and, in its last sentence, what to do.
pub(super) fn unread(what: &str, error: &TranscriptError) -> Failure {
    let (exit, code) = match error {
        TranscriptError::File(HeaderError::NotThere) => (Exit::Unavailable, "not_there"),
        TranscriptError::File(HeaderError::NotRegular(_)) => (Exit::Unavailable, "not_regular"),
        TranscriptError::File(HeaderError::Unreadable(_)) => (Exit::Unavailable, "unreadable"),
        TranscriptError::File(_) => (Exit::No, "no_session"),
        TranscriptError::Empty => (Exit::No, "empty"),
        TranscriptError::OtherSession => (Exit::No, "other_session"),
        TranscriptError::OtherVersion => (Exit::No, "other_version"),
        TranscriptError::Changing => (Exit::No, "changing"),
    };
    let text = error.to_string();
    let (why, hint) = text.rsplit_once(". ").unwrap_or((&text, "See `headman doctor`"));
    Failure::new(exit, code, format!("can't {what}: {why}"), hint)
}

fn tell(session: &SessionId, transcript: &Transcript, extent: Extent, out: &mut Out) -> Result<(), Failure> {
    for (count, what) in [(transcript.bad_lines, "no JSON"), (transcript.long_lines, "too long")] {
        match count {
            0 => {}
            1 => note(&format!("a line of the session file is {what}")),
            count => note(&format!("{count} lines of the session file are {what}")),
        }
    }
    if out.is_json() {
        return out.json(&to_json(session, transcript));
    }
    if transcript.is_truncated() && extent == Extent::Bounded {
        note(&format!("not all of {} bytes are shown; --full shows everything", transcript.full_bytes));
    }
    out.text(if transcript.text.is_empty() { "Nothing was said." } else { &transcript.text })
}

fn to_json(session: &SessionId, transcript: &Transcript) -> String {
    let bool = |value: bool| if value { "true".as_bytes() } else { b"false" };
    let mut object = ObjectWriter::new();
    object
        .string("session", session.as_untrusted())
        .string("transcript", &transcript.text.as_str().into())
        .raw("truncated", bool(transcript.is_truncated()))
        .raw("full_bytes", number_text(transcript.full_bytes as f64).as_bytes())
        .raw("tail_truncated", bool(transcript.truncated_by.is_some()))
        .raw("tool_truncated", bool(transcript.tool_truncated));
    let limit = transcript.truncated_by.map(Limit::as_str).map(Untrusted::from);
    match &limit {
        Some(limit) => object.string("truncated_by", limit),
        None => object.raw("truncated_by", b"null"),
    };
    String::from_utf8_lossy(&object.finish()).into_owned()
}
