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
use crate::herd::Lead;
use crate::herdr::Client;
use crate::source::inventory::Branches;

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where Herdr does not answer or the lead records can't be read.
pub fn run(places: &Places, out: &mut Out) -> Result<Exit, Failure> {
    const WHAT: &str = "list the leads";
    let socket = located(places, WHAT)?;
    let runtime = places.agent_dir.runtime(&socket.path);
    let client = Client::new(PathBuf::from(&socket.path));
    let (snapshot, branches) = block_on(async {
        let snapshot = client.snapshot().await?;
        let mut branches = Branches::default();
        branches.refresh(&client, &snapshot).await;
        Ok((snapshot, branches))
    })?
    .map_err(|error| Failure::herdr(WHAT, &error, &socket))?;

    let us = known_session(places, &socket.path, &runtime);
    // An identity that nobody has: nobody is left out as the Chief.
    let chief = us.clone().unwrap_or_else(|| Identity::new(Role::Lead).session());
    let office = Office::new(places.agent_dir.clone(), runtime, chief, Instant::now());
    let inventory = office.inventory(&snapshot, branches.known());
    let roster = office.roster_of(&inventory).map_err(|error| {
        let leads = durable::shown(&office.runtime().leads()).to_string();
        Failure::disk(&format!("{WHAT}: {leads}"), &error, "See `headman doctor`")
    })?;
    for dropped in &inventory.dropped {
        note(dropped);
    }
    if out.is_json() {
        out.json(&roster.to_json_with_diagnostics())?;
    } else {
        let asked = us.map(|us| ask_times(office.runtime(), &us)).unwrap_or_default();
        out.text(&roster::plain(&roster, |lead: &Lead| {
            asked.get(&(lead.session.clone(), lead.pending_ask.as_ref()?.ask)).copied()
        }))?;
    }
    Ok(Exit::Done)
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
