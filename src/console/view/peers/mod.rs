//! The leads' peers: who is present, and what is queued for whom. Looking only.

pub mod draw;

use super::listing::{Listing, Screen};
use crate::contract::Untrusted;
use crate::disk::peers::Peer;
use crate::model::Model;

/// The peers, each known by the hash that names its files.
#[derive(Debug)]
pub struct Peers;

/// What the operator sees of them.
pub type State = Screen<Peers>;

impl Listing for Peers {
    type Key = String;

    fn keys(model: &Model) -> Vec<String> {
        listed(model).into_iter().map(|peer| peer.hash.clone()).collect()
    }

    fn of_row(model: &Model, row: usize) -> Option<usize> {
        draw::peer_of_row(&listed(model), row)
    }
}

impl Screen<Peers> {
    /// The session of the peer under the cursor.
    pub fn session<'a>(&self, model: &'a Model) -> Option<&'a Untrusted> {
        self.peer(&listed(model)).and_then(|peer| peer.session.as_ref()).map(|it| it.as_untrusted())
    }

    fn peer<'a>(&self, peers: &[&'a Peer]) -> Option<&'a Peer> {
        let peer = peers.get(self.browser.at()).copied();
        peer.filter(|peer| Some(&peer.hash) == self.selected())
    }
}

/// The peers in the order of the list: those present first.
fn listed(model: &Model) -> Vec<&Peer> {
    let all = model.peers().and_then(|peers| peers.as_ref().ok()).map(Vec::as_slice).unwrap_or_default();
    let (present, others): (Vec<&Peer>, Vec<&Peer>) = all.iter().partition(|peer| peer.presence.is_ok());
    [present, others].concat()
}
