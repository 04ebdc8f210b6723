//! Peers as an onlooker sees them: who is present, and what is queued for whom. Reads only.

use std::collections::BTreeMap;

use super::durable::{self, Unreadable};
use super::inbox::{self, Content};
use super::layout::{InboxDir, Runtime};
use super::records::{self, RecordError};
use crate::contract::{Kind, Message, PeerRecord, SessionId, Timestamp};

/// Messages of one peer that are kept, the oldest; the others are counted.
pub const MAX_LISTED: usize = 32;

/// Messages kept in all, so that many full inboxes take a few megabytes at most.
const MAX_LISTED_IN_ALL: usize = 512;

/// One peer, or what is left of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// *sha256(session)*: always known, since its files are named by it.
    pub hash: String,
    /// Its presence record, also where it does not count.
    pub record: Option<PeerRecord>,
    /// Whether the record counts, or why not.
    pub presence: Result<(), RecordError>,
    /// What is queued for it, or why that can't be told.
    pub queue: Result<Queue, Unreadable>,
    /// Its session, where record or messages tell it.
    pub session: Option<SessionId>,
}

/// What stands in a peer's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Queue {
    /// Messages that wait.
    pub waiting: usize,
    /// When the oldest of them was written.
    pub oldest: Option<Timestamp>,
    /// Files that will not be delivered: quarantined, no messages to this peer, or not readable.
    pub unusable: usize,
    /// The oldest messages that wait, at most [`MAX_LISTED`].
    pub messages: Vec<Message>,
}

impl Peer {
    /// Why its presence does not count, if it doesn't; safe to print.
    pub fn absence(&self) -> Option<String> {
        match &self.presence {
            Ok(()) => None,
            Err(error) if error.is_missing() => Some("it has no presence record".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.waiting == 0 && self.unusable == 0
    }
}

/// Everyone with a presence file, and everyone without for whom something is queued; by hash.
/// A broken file or inbox hides no other.
///
/// # Errors
/// [`Unreadable`] where the directory of presence records can't be used.
pub fn look(runtime: &Runtime) -> Result<Vec<Peer>, Unreadable> {
    let mut peers: BTreeMap<String, Peer> = BTreeMap::new();
    for name in durable::list(&runtime.peer_records())? {
        let Some((record, presence)) = records::read_presence_named(runtime, &name) else { continue };
        // It went between the two looks.
        if presence.as_ref().is_err_and(RecordError::is_missing) {
            continue;
        }
        let hash = name.to_string_lossy().trim_end_matches(".json").to_owned();
        let session = record.as_ref().map(|record| record.session.clone());
        let queue = Ok(Queue::default());
        peers.insert(hash.clone(), Peer { hash, record, presence, queue, session });
    }
    let inboxes = match durable::list(&runtime.peer_inboxes()) {
        Ok(inboxes) => inboxes,
        Err(error) => {
            for peer in peers.values_mut() {
                peer.queue = Err(error.clone());
            }
            return Ok(peers.into_values().collect());
        }
    };
    let mut left = MAX_LISTED_IN_ALL;
    let mut hashes: Vec<String> = inboxes.into_iter().filter_map(|name| name.into_string().ok()).collect();
    hashes.sort();
    for hash in hashes.into_iter().filter(|name| records::is_hash(name)) {
        let queue = queue(&runtime.peer_inbox_of_hash(&hash), &hash, left);
        left -= queue.as_ref().map_or(0, |queue| queue.messages.len());
        match peers.get_mut(&hash) {
            Some(peer) => peer.queue = queue,
            None if queue.as_ref().is_ok_and(Queue::is_empty) => {}
            None => {
                let to = queue.as_ref().ok().and_then(|queue| queue.messages.first());
                let session = to.map(|message| message.to.clone());
                let presence = Err(Unreadable::Missing.into());
                peers.insert(hash.clone(), Peer { hash, record: None, presence, queue, session });
            }
        }
    }
    for peer in peers.values_mut() {
        if peer.session.is_none() {
            let messages = peer.queue.as_ref().map(|queue| queue.messages.as_slice()).unwrap_or_default();
            peer.session = messages.first().map(|message| message.to.clone());
        }
    }
    Ok(peers.into_values().collect())
}

fn queue(inbox: &InboxDir, hash: &str, most: usize) -> Result<Queue, Unreadable> {
    let mut queue = Queue::default();
    for entry in inbox::list(inbox)? {
        match entry.content {
            // Anything else its receiver refuses, whoever put it there.
            Content::Valid(message)
                if !entry.quarantined
                    && message.kind == Kind::PeerMessage
                    && message.from == message.lead
                    && message.from != message.to
                    && message.to.hash() == hash =>
            {
                queue.waiting += 1;
                queue.oldest.get_or_insert(message.created_at);
                if queue.messages.len() < MAX_LISTED.min(most) {
                    queue.messages.push(*message);
                }
            }
            _ => queue.unusable += 1,
        }
    }
    Ok(queue)
}
