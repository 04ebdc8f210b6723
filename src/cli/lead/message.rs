//! `headman lead message` and `headman lead peer-message`: what an open lead tells the Chief, or
//! another lead.

use std::ffi::OsString;

use clap::Args;

use super::{Who, not_up, of_inbox, tell_if_unlisted};
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::Out;
use crate::cli::{block_on, letter, located};
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::{Kind, Message, SessionId, Untrusted};
use crate::lead::NotToPeer;

/// What is told.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    who: Who,
    /// The message; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// A file to attach, or a result as result:UUID; may be given again
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<OsString>,
}

/// What is written to whom.
#[derive(Debug, Args)]
pub struct ToPeer {
    #[command(flatten)]
    who: Who,
    /// The peer's whole session id, as `headman lead peers` lists it
    #[arg(value_name = "SESSION")]
    to: OsString,
    /// The message; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// A file to attach, or a result as result:UUID; may be given again
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<OsString>,
}

const WHAT: &str = "tell the Chief";
const TO_PEER: &str = "write to the peer";

/// Tells the Chief.
///
/// # Errors
/// [`Failure`]; nothing was sent then.
pub(super) fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let text = letter::text(WHAT, &arguments.text)?;
    let files = letter::files(&arguments.files)?;
    let socket = located(places, WHAT)?;
    let message = block_on(async {
        let mut lead = arguments.who.join(places, &socket, WHAT).await?;
        let rendered = lead
            .render(Kind::LeadMessage, None, &text, &files)
            .map_err(|error| letter::not_attached(WHAT, &error))?;
        letter::tell_references(&rendered);
        tell_if_unlisted(&mut lead).await;
        lead.tell(rendered.text).await.map_err(|error| not_up(WHAT, &error, &socket))
    })??;
    tell(&message, out)
}

/// Writes to a peer.
///
/// # Errors
/// [`Failure`]; nothing was sent then.
pub(super) fn run_to_peer(places: &Places, arguments: &ToPeer, out: &mut Out) -> Result<Exit, Failure> {
    let to =
        SessionId::new(Untrusted::from_bytes_lossy(arguments.to.as_encoded_bytes())).ok_or_else(|| {
            Failure::usage(format!("can't {TO_PEER}: that is no session id"), "See `headman lead peers`")
        })?;
    let text = letter::text(TO_PEER, &arguments.text)?;
    let files = letter::files(&arguments.files)?;
    let socket = located(places, TO_PEER)?;
    let message = block_on(async {
        let lead = arguments.who.join(places, &socket, TO_PEER).await?;
        let peer = lead.peer(&to).map_err(|error| not_to_peer(&error))?;
        let rendered = lead
            .render(Kind::PeerMessage, Some(&to), &text, &files)
            .map_err(|error| letter::not_attached(TO_PEER, &error))?;
        letter::tell_references(&rendered);
        lead.write_to_peer(&peer, &rendered.text).map_err(|error| not_to_peer(&error))
    })??;
    tell(&message, out)
}

fn not_to_peer(error: &NotToPeer) -> Failure {
    let message = format!("can't {TO_PEER}: {error}");
    match error {
        NotToPeer::Itself => Failure::usage(message, "See `headman lead peers`"),
        NotToPeer::Absent(_) => Failure::new(Exit::No, "not_found", message, "See `headman lead peers`"),
        NotToPeer::NotPresent => {
            Failure::new(Exit::No, "not_open", message, "Start `headman lead open` for that session again")
        }
        NotToPeer::Replaced => Failure::new(Exit::No, "replaced", message, "Try again"),
        NotToPeer::Inbox(error) => of_inbox(message, error),
    }
}

fn tell(message: &Message, out: &mut Out) -> Result<Exit, Failure> {
    if out.is_json() {
        let object = ObjectWriter::new()
            .string("id", &message.id.to_string().into())
            .string("session", message.from.as_untrusted())
            .string("to", message.to.as_untrusted())
            .string("fate", &"queued".into())
            .finish();
        out.json(&String::from_utf8_lossy(&object))?;
    } else {
        out.text(&format!("{} queued for {}", message.id, message.to.escaped()))?;
    }
    Ok(Exit::Done)
}
