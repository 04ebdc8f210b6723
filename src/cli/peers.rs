//! `headman peers`: who is present among the leads, and what is queued between them. Needs neither
//! Herdr nor lease, and writes nothing.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::failure::{Exit, Failure};
use super::out::Out;
use crate::config::Places;
use crate::console::age;
use crate::console::text::{self, Visible};
use crate::contract::rendered::Parts;
use crate::contract::{Message, NativeId, SessionId, Timestamp, Untrusted};
use crate::disk::durable;
use crate::disk::peers::{Peer, Queue};
use crate::herd::order;
use crate::source;

/// UTF-16 units of a message shown to a reader; JSON has all of it.
const BEGINNING: usize = 100;

/// Columns that a cell may widen its column to; a longer one stands out of line.
const WIDEST: usize = 48;

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the presence records can't be read at all.
pub fn run(places: &Places, out: &mut Out) -> Result<Exit, Failure> {
    // Peers are of all sockets: which one is the same.
    let runtime = places.agent_dir.runtime("".as_ref());
    let peers = source::peers::look(&runtime).map_err(|error| {
        let directory = durable::shown(&runtime.peer_records()).to_string();
        Failure::disk(&format!("list the peers: {directory}"), &error, "See `headman doctor`")
    })?;
    if out.is_json() {
        let peers: Vec<Value> = peers.iter().map(to_json).collect();
        out.json(&json!({ "peers": peers }).to_string())?;
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        out.text(&plain(&peers, now))?;
    }
    Ok(Exit::Done)
}

fn to_json(peer: &Peer) -> Value {
    let record = peer.record.as_ref();
    let text = |text: &Untrusted| text.to_str_lossy().into_owned();
    // As `peer_list` has it: what is not known is empty.
    let field = |id: Option<&NativeId>| id.map(|id| text(id.as_untrusted())).unwrap_or_default();
    let name = record.map(order::peer_name).or_else(|| peer.session.as_ref().map(order::unnamed));
    let mut object = json!({
        "session": peer.session.as_ref().map(|session| text(session.as_untrusted())),
        "name": name.as_ref().map(text).unwrap_or_default(),
        "cwd": field(record.and_then(|record| record.cwd.as_ref())),
        "repo": field(record.and_then(|record| record.repo.as_ref())),
        "branch": field(record.and_then(|record| record.branch.as_ref())),
        "workspace_label": field(record.and_then(|record| record.workspace_label.as_ref())),
        "workspace_id": field(record.map(|record| &record.workspace)),
        "tab_id": field(record.map(|record| &record.tab)),
        "pane_id": field(record.map(|record| &record.pane)),
        "hash": peer.hash,
        "presence": match &peer.presence {
            Ok(()) => "valid",
            Err(error) => error.verdict(),
        },
        "queued": match &peer.queue {
            Ok(queue) => queue_json(queue),
            Err(error) => json!({"error": error.verdict(), "message": error.to_string()}),
        },
    });
    if let Some(why) = peer.absence() {
        object["message"] = why.into();
    }
    object
}

fn queue_json(queue: &Queue) -> Value {
    let message = |message: &Message| {
        json!({
            "id": message.id.to_string(),
            "from": message.from.as_untrusted().to_str_lossy(),
            "created_at": message.created_at.as_millis(),
            "text": message.text.to_str_lossy(),
        })
    };
    json!({
        "count": queue.waiting,
        "oldest": queue.oldest.map(Timestamp::as_millis),
        "unusable": queue.unusable,
        "messages": queue.messages.iter().map(message).collect::<Vec<_>>(),
    })
}

/// The peers as lines to read.
fn plain(peers: &[Peer], now: Duration) -> String {
    if peers.is_empty() {
        return "No peers.".to_owned();
    }
    let names: HashMap<&SessionId, Untrusted> =
        peers.iter().filter_map(|peer| Some((peer.session.as_ref()?, shown(peer)))).collect();
    let age = |at: Timestamp| age::shown(now.saturating_sub(Duration::from_millis(at.as_millis())));
    let heads: Vec<[Visible; 4]> = peers.iter().map(|peer| head(peer, &age)).collect();
    // As wide as what stands in them, so that a column nobody has anything in is none.
    let columns: [usize; 4] = std::array::from_fn(|at| {
        heads.iter().map(|head| head[at].width()).filter(|it| *it <= WIDEST).max().unwrap_or(0)
    });
    let mut out = String::new();
    for (peer, head) in peers.iter().zip(&heads) {
        for (cell, columns) in head.iter().zip(columns).filter(|(_, columns)| *columns > 0) {
            let _ = write!(out, "{}  ", cell.pad_end(columns.max(cell.width())).as_str());
        }
        let session = peer.session.as_ref().map(|session| session.escaped().to_string());
        let _ = writeln!(out, "{}", session.as_deref().unwrap_or("session not known"));
        if let Err(error) = &peer.queue {
            let _ = writeln!(out, "    its inbox can't be read: {error}");
        }
        if let Some(why) = peer.absence() {
            let _ = writeln!(out, "    {why}");
        }
        let Ok(queue) = &peer.queue else { continue };
        for message in &queue.messages {
            let from = names.get(&message.from).unwrap_or_else(|| message.from.as_untrusted());
            let begin = Parts::of(&message.text).said.first_units(BEGINNING);
            let more = if begin == message.text { "" } else { " \u{2026}" };
            let _ = writeln!(
                out,
                "    from {}, {} ago: {}{more}",
                from.escaped(),
                age(message.created_at),
                begin.escaped()
            );
        }
        let hidden = queue.waiting - queue.messages.len();
        if hidden > 0 {
            let _ = writeln!(out, "    and {hidden} more");
        }
        if queue.unusable > 0 {
            let _ = writeln!(out, "    not to be delivered: {} files", queue.unusable);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// What stands before a peer's session: who it is, whether it is there, what is queued for it, where.
fn head(peer: &Peer, age: &impl Fn(Timestamp) -> String) -> [Visible; 4] {
    let queued = match &peer.queue {
        Ok(Queue { waiting, oldest: Some(oldest), .. }) => {
            text::line(format_args!("{waiting} queued, oldest {}", age(*oldest)))
        }
        Ok(_) | Err(_) => Visible::default(),
    };
    let pane = peer.record.as_ref().map(|record| text::line(format_args!("pane {}", record.pane.escaped())));
    [
        text::line(&shown(peer)),
        text::line(if peer.presence.is_ok() { "present" } else { "not present" }),
        queued,
        pane.unwrap_or_default(),
    ]
}

fn shown(peer: &Peer) -> Untrusted {
    order::peer_shown(peer.record.as_ref(), peer.session.as_ref(), &peer.hash)
}
