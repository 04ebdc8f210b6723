//! What leads write to each other: who can be reached, sending, and taking what came. The sections
//! "Presence of peers" and "A lead's part" of `docs/contract.md`.

use std::cell::RefCell;

use super::coordination::{Coordination, Drain, Received, is_empty, now};
use super::errors::Unable;
use super::session::Held;
use crate::contract::{Kind, Message, PeerRecord, SessionId, Untrusted};
use crate::disk::inbox::{self, InboxError, Verdict};
use crate::disk::records::{self, RecordError};
use crate::disk::{DiskError, Runtime, Unreadable};
use crate::herd::order;

/// Why nothing was written to a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotToPeer {
    /// It is the lead itself.
    #[error("a lead does not write to itself")]
    Itself,
    /// Nobody is present under that session.
    #[error("no peer of that session is present: {0}")]
    Absent(RecordError),
    /// The lead is not present itself.
    #[error("the lead itself is not present among its peers any more")]
    NotPresent,
    /// One of the two was started anew while the message was prepared.
    #[error("that peer was started anew just now")]
    Replaced,
    /// The peer's inbox can't be written.
    #[error("can't put it into the peer's inbox: {0}")]
    Inbox(#[from] InboxError),
}

/// The peers of `us` that can be reached, by name, then session. Presences that don't count hide
/// none.
///
/// # Errors
/// The directory of presences can't be used.
pub fn reachable(runtime: &Runtime, us: &SessionId) -> Result<Vec<PeerRecord>, Unreadable> {
    let mut peers: Vec<PeerRecord> = records::scan_peers(runtime)?
        .into_iter()
        .filter_map(|(_, peer)| peer.ok())
        .filter(|peer| peer.session != *us)
        .collect();
    peers.sort_by(|a, b| {
        order::collate(&order::peer_name(a), &order::peer_name(b)).then_with(|| a.session.cmp(&b.session))
    });
    Ok(peers)
}

impl Coordination {
    /// Who else can be reached.
    ///
    /// # Errors
    /// As [`reachable`].
    pub fn peers(&self) -> Result<Vec<PeerRecord>, Unreadable> {
        reachable(&self.runtime, &self.session)
    }

    /// The peer `to`, to write to.
    ///
    /// # Errors
    /// [`NotToPeer`].
    pub fn peer(&self, to: &SessionId) -> Result<PeerRecord, NotToPeer> {
        if *to == self.session {
            return Err(NotToPeer::Itself);
        }
        records::read_peer(&self.runtime, to).map_err(NotToPeer::Absent)
    }

    /// Writes to a peer. Its presence, like ours, must still be the one that was found.
    ///
    /// # Errors
    /// [`NotToPeer`]; nothing was written then.
    pub fn write_to_peer(&self, peer: &PeerRecord, text: &Untrusted) -> Result<Message, NotToPeer> {
        let ours = self.presence.claim();
        let message = self.message(Kind::PeerMessage, &peer.session, ours.id, text);
        // Right before the write. What is shown about a peer may have changed; its claim may not.
        match records::read_peer(&self.runtime, &self.session) {
            Ok(record) if record.claim == ours => {}
            _ => return Err(NotToPeer::NotPresent),
        }
        match records::read_peer(&self.runtime, &peer.session) {
            Ok(record) if record.claim == peer.claim => {}
            Ok(_) => return Err(NotToPeer::Replaced),
            Err(error) => return Err(NotToPeer::Absent(error)),
        }
        let inbox = self.runtime.peer_inbox(&peer.session);
        inbox::publish(self.agent_dir.path(), &inbox, &message)?;
        Ok(message)
    }

    /// Takes what peers wrote, as [`Coordination::drain`] does what the Chief sent; it neither
    /// matters under which claim it was written nor whether its sender still lives. While our own
    /// presence is not exactly what we wrote, everything stays.
    ///
    /// # Errors
    /// [`Unable`]; nothing was taken then.
    pub fn drain_peers(
        &mut self,
        mut tell: impl FnMut(&Received) -> Result<(), DiskError>,
    ) -> Result<Drain, Unable> {
        let mut drain = Drain::default();
        let inbox = self.runtime.peer_inbox(&self.session);
        if is_empty(&inbox)? {
            return Ok(drain);
        }
        let held = self.sync()?;
        // Another process holds it, and does this.
        if !self.presence.stands() {
            return Ok(drain);
        }
        let Drain { received, errors, .. } = &mut drain;
        // Judging and handing over look at the same state in turn, never at once.
        let lead = RefCell::new(self);
        let drained = inbox::drain(
            &inbox,
            |message| lead.borrow().judge_peer(message),
            |message| lead.borrow_mut().accept_from_peer(&held, message, received, &mut tell),
        )?;
        *errors = drained.errors;
        Ok(drain)
    }

    fn judge_peer(&self, message: &Message) -> Verdict {
        let is_ours = message.kind == Kind::PeerMessage
            && message.to == self.session
            && message.from != self.session
            && message.lead == message.from;
        if self.file.delivered().contains(&message.id) {
            Verdict::Delivered
        } else if is_ours {
            Verdict::Deliver
        } else {
            Verdict::Reject
        }
    }

    fn accept_from_peer(
        &mut self,
        held: &Held,
        message: &Message,
        received: &mut Vec<Received>,
        tell: &mut impl FnMut(&Received) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let new = Received { message: message.clone(), answers: None };
        tell(&new)?;
        self.file.hand_over(held, message, now())?;
        received.push(new);
        Ok(())
    }
}
