//! The leads' peers: who is present, and what is queued for whom. Looking only.

pub mod draw;

use ratatui::layout::Position;

use super::browse::Browser;
use crate::console::intent::Intent;
use crate::contract::Untrusted;
use crate::disk::peers::Peer;
use crate::model::Model;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    /// A peer is known by the hash that names its files.
    browser: Browser<String>,
}

impl State {
    /// The peers as they were last looked at.
    pub fn open(model: &Model) -> Self {
        let mut state = Self::default();
        state.follow(model);
        state
    }

    /// Takes over what changed in the model: the cursor stays on its peer, or where that one stood.
    pub fn follow(&mut self, model: &Model) {
        self.browser.follow(&hashes(model));
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        self.browser.intent(intent, &hashes(model));
    }

    /// Puts the cursor on the peer that is drawn there.
    pub fn click(&mut self, at: Position, model: &Model) {
        let Some(row) = self.browser.click(at) else { return };
        if let Some(peer) = draw::peer_of_row(&listed(model), row) {
            self.browser.put(peer, &hashes(model));
        }
    }

    /// Whether a peer is under the cursor whose detail is not open.
    pub fn can_open(&self) -> bool {
        self.browser.selected().is_some() && !self.browser.is_in_detail()
    }

    /// Backs out of the detail; says whether the peers stay open.
    pub fn back(&mut self) -> bool {
        self.browser.back()
    }

    /// The session of the peer under the cursor.
    pub fn session<'a>(&self, model: &'a Model) -> Option<&'a Untrusted> {
        self.peer(&listed(model)).and_then(|peer| peer.session.as_ref()).map(|it| it.as_untrusted())
    }

    fn peer<'a>(&self, peers: &[&'a Peer]) -> Option<&'a Peer> {
        let peer = peers.get(self.browser.at()).copied();
        peer.filter(|peer| Some(&peer.hash) == self.browser.selected())
    }
}

fn hashes(model: &Model) -> Vec<String> {
    listed(model).into_iter().map(|peer| peer.hash.clone()).collect()
}

/// The peers in the order of the list: those present first.
fn listed(model: &Model) -> Vec<&Peer> {
    let all = model.peers().and_then(|peers| peers.as_ref().ok()).map(Vec::as_slice).unwrap_or_default();
    let (present, others): (Vec<&Peer>, Vec<&Peer>) = all.iter().partition(|peer| peer.presence.is_ok());
    [present, others].concat()
}
