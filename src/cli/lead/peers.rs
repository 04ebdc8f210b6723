//! `headman lead peers`: who a lead can write to. Needs neither Herdr nor that the lead is open.

use clap::Args;
use serde_json::{Value, json};

use super::Who;
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::Out;
use crate::config::Places;
use crate::contract::{NativeId, PeerRecord, Untrusted};
use crate::disk::durable;
use crate::herd::order;
use crate::lead::peer_mail;

/// Whose peers.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    who: Who,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the presence records can't be read at all.
pub(super) fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let session = arguments.who.session()?;
    // Peers are of all sockets: which one is the same.
    let runtime = places.agent_dir.runtime("".as_ref());
    let peers = peer_mail::reachable(&runtime, &session).map_err(|error| {
        let directory = durable::shown(&runtime.peer_records()).to_string();
        Failure::disk(&format!("list the peers: {directory}"), &error, "See `headman doctor`")
    })?;
    if out.is_json() {
        let peers: Vec<Value> = peers.iter().map(to_json).collect();
        let own = session.as_untrusted().to_str_lossy();
        out.json(&json!({"self": own, "peers": peers}).to_string())?;
    } else if peers.is_empty() {
        out.text("No peers.")?;
    } else {
        let line = |peer: &PeerRecord| {
            format!("{}  {}", order::peer_display_name(peer).escaped(), peer.session.escaped())
        };
        out.text(&peers.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(Exit::Done)
}

/// As `peer_list` of the contract has it: what is not known is empty.
fn to_json(peer: &PeerRecord) -> Value {
    let text = |text: &Untrusted| text.to_str_lossy().into_owned();
    let field = |id: &Option<NativeId>| id.as_ref().map(|id| text(id.as_untrusted())).unwrap_or_default();
    json!({
        "session": text(peer.session.as_untrusted()),
        "name": text(&order::peer_name(peer)),
        "cwd": field(&peer.cwd),
        "repo": field(&peer.repo),
        "branch": field(&peer.branch),
        "workspace_label": field(&peer.workspace_label),
    })
}
