//! `headman list`: the roster as of now. Needs no lease and writes nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::{block_on, located, roster};
use crate::chief::staff::Office;
use crate::chief::state_dir::{Identity, StateDir};
use crate::config::Places;
use crate::contract::role::Role;
use crate::contract::{Kind, SessionId, Timestamp, Uuid};
use crate::disk::inbox::{self, Content};
use crate::disk::records::{self, Holding};
use crate::disk::{Runtime, durable};
use crate::herd::{Lead, Roster};
use crate::herdr::Client;
use crate::source::inventory::Branches;

/// The leads as of now.
pub(super) struct Seen {
    /// Who is a lead, and what was left out.
    pub roster: Roster,
    /// Of which runtime.
    pub runtime: Runtime,
    /// The session left out as the Chief's.
    us: Option<SessionId>,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where Herdr does not answer or the lead records can't be read.
pub fn run(places: &Places, out: &mut Out) -> Result<Exit, Failure> {
    let Seen { roster, runtime, us } = look(places, "list the leads")?;
    if out.is_json() {
        out.json(&roster.to_json_with_diagnostics())?;
    } else {
        let asked = us.map(|us| ask_times(&runtime, &us)).unwrap_or_default();
        out.text(&roster::plain(&roster, |lead: &Lead| {
            asked.get(&(lead.session.clone(), lead.pending_ask.as_ref()?.ask)).copied()
        }))?;
    }
    Ok(Exit::Done)
}

/// Looks at Herdr and the lead records, in order to do `what`. Parts of Herdr's answer that can't be
/// used are told on stderr.
///
/// # Errors
/// [`Failure`] where Herdr does not answer or the lead records can't be read.
pub(super) fn look(places: &Places, what: &str) -> Result<Seen, Failure> {
    let socket = located(places, what)?;
    let runtime = places.agent_dir.runtime(&socket.path);
    let client = Client::new(PathBuf::from(&socket.path));
    let (snapshot, branches) = block_on(async {
        let snapshot = client.snapshot().await?;
        let branches = Branches::all(&client, &snapshot).await;
        Ok((snapshot, branches))
    })?
    .map_err(|error| Failure::herdr(what, &error, &socket))?;

    let us = known_session(places, &socket.path, &runtime);
    // An identity that nobody has: nobody is left out as the Chief.
    let chief = us.clone().unwrap_or_else(|| Identity::new(Role::Lead).session());
    let office = Office::new(places.agent_dir.clone(), runtime.clone(), chief, Instant::now());
    let inventory = office.inventory(&snapshot, branches.known());
    let roster = office.roster_of(&inventory).map_err(|error| {
        let leads = durable::shown(&runtime.leads()).to_string();
        Failure::disk(&format!("{what}: {leads}"), &error, "See `headman doctor`")
    })?;
    for dropped in &inventory.dropped {
        note(dropped);
    }
    Ok(Seen { roster, runtime, us })
}

/// The session that the roster leaves out as the Chief's: whoever holds the lease, else ours.
fn known_session(places: &Places, socket: &std::ffi::OsStr, runtime: &Runtime) -> Option<SessionId> {
    if let Ok(Holding::Held(descriptor)) = records::read_holding(runtime) {
        return Some(descriptor.session);
    }
    match StateDir::at(&places.state_dir, socket).known_identity() {
        Ok(identity) => identity.map(|identity| identity.session()),
        Err(error) => {
            note(&error.to_string());
            None
        }
    }
}

/// When the asks in the Chief's inbox were written.
fn ask_times(runtime: &Runtime, chief: &SessionId) -> HashMap<(SessionId, Uuid), Timestamp> {
    // An inbox that can't be read tells no times; `doctor` tells why.
    let entries = inbox::list(&runtime.inbox(chief)).unwrap_or_default();
    let asks = entries.into_iter().filter_map(|entry| match entry.content {
        Content::Valid(message) if message.kind == Kind::LeadAsk => {
            Some(((message.lead.clone(), message.ask?), message.created_at))
        }
        _ => None,
    });
    asks.collect()
}
