//! `headman inbox --mark-read`: asks the running Chief, who alone writes the journal.

use tokio::sync::mpsc;

use super::super::counter::{Counter, Seen, silent};
use super::super::failure::{Exit, Failure};
use super::super::out::Out;
use super::super::{block_on, located};
use super::{ID_SHOWN, unreadable};
use crate::chief::inquiry::Which;
use crate::chief::journal::{Index, Journal};
use crate::chief::service::Request;
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::control::client::{self, Connection};
use crate::control::socket::ControlSocket;
use crate::fact::Standing;

const WHAT: &str = "mark what was read";

/// Marks the messages whose ids are `ids`, or begin so.
///
/// # Errors
/// [`Failure`]; none is marked where one is not found.
pub(super) fn run(places: &Places, ids: &[String], out: &mut Out) -> Result<Exit, Failure> {
    let socket = located(places, WHAT)?;
    let state = StateDir::at(&places.state_dir, &socket.path);
    let journal = Journal::open(&state.journal()).map_err(|error| unreadable(&error))?;
    let mut seqs = Vec::new();
    for id in ids {
        seqs.extend(named(journal.index(), id)?);
    }
    let control = ControlSocket::of_environment(&places.state_dir, &socket.path);
    block_on(async {
        match control.connect().await.map_err(|error| silent(WHAT, &error))? {
            Some(connection) => mark(connection, &seqs).await,
            None => Err(Failure::new(
                Exit::NotChief,
                "not_chief",
                format!("can't {WHAT}: no Chief is running here"),
                "Start the console with `headman`, or `headman serve`",
            )),
        }
    })??;
    let count = seqs.len();
    if out.is_json() {
        let object = ObjectWriter::new().number("marked", count as f64).finish();
        out.json(&String::from_utf8_lossy(&object))?;
    } else {
        let messages = if count == 1 { "message" } else { "messages" };
        out.text(&format!("{count} {messages} marked as read."))?;
    }
    Ok(Exit::Done)
}

/// The numbers of what was received under that id: more than one where a refused message came again.
fn named(index: &Index, wanted: &str) -> Result<Vec<u64>, Failure> {
    let wanted = wanted.to_ascii_lowercase();
    let found: Vec<_> = (index.received())
        .filter(|it| it.kind.is_some() && it.id.to_string().starts_with(&wanted))
        .filter(|_| wanted.len() >= ID_SHOWN)
        .collect();
    let not_found = |message: String| {
        let message = format!("can't {WHAT}: {message}");
        Err(Failure::new(Exit::No, "not_found", message, "See `headman inbox`"))
    };
    match found.first() {
        None => not_found(format!("no message has the id {wanted}")),
        Some(first) if found.iter().any(|it| it.id != first.id) => {
            not_found(format!("several messages' ids begin with {wanted}"))
        }
        Some(_) => Ok(found.iter().map(|it| it.seq).collect()),
    }
}

async fn mark(connection: Connection, seqs: &[u64]) -> Result<(), Failure> {
    let pid = connection.hello().pid;
    let (requests, asked) = mpsc::channel(8);
    let (attached, facts) = client::attach(connection, asked);
    let mut counter = Counter { what: WHAT, requests: &requests, facts: &facts, seen: Seen::default() };
    counter.wait_for(|seen| seen.standing.as_ref().is_some_and(|it| *it != Standing::Starting)).await?;
    if counter.seen.lease().is_none() {
        return Err(Failure::new(
            Exit::NotChief,
            "not_chief",
            format!("can't {WHAT}: the running headman (process {pid}) is not Chief"),
            "Press c in it",
        ));
    }
    for seq in seqs {
        let which = Which::Letter(*seq);
        let marked = counter.ask(|ticket| Request::Mark { ticket, which, read: true }).await?;
        marked
            .map_err(|why| Failure::new(Exit::No, "refused", format!("can't {WHAT}: {why}"), "Try again"))?;
    }
    drop(requests);
    // Nothing more is said to us.
    attached.abort();
    Ok(())
}
