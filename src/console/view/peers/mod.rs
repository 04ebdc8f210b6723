//! The leads' peers: who is present, and what is queued for whom. Looking only.

pub mod draw;

use super::list::Scroll;
use crate::console::intent::Intent;
use crate::contract::Untrusted;
use crate::disk::peers::Peer;
use crate::model::Model;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    /// The peer under the cursor, by the hash that names its files.
    selected: Option<String>,
    /// Where it stood, for when it is gone.
    at: usize,
    list: Scroll,
    detail: Scroll,
    /// Whether the keys go to the detail.
    in_detail: bool,
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
        let peers = listed(model);
        match peers.iter().position(|peer| Some(&peer.hash) == self.selected.as_ref()) {
            Some(at) => self.at = at,
            None => self.select(self.at, &peers),
        }
    }

    fn select(&mut self, at: usize, peers: &[&Peer]) {
        self.at = at.min(peers.len().saturating_sub(1));
        let selected = peers.get(self.at).map(|peer| peer.hash.clone());
        if selected != self.selected {
            self.selected = selected;
            self.detail = Scroll::default();
        }
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        match intent {
            Intent::NextPane | Intent::PreviousPane => self.in_detail = !self.in_detail,
            Intent::Open => self.in_detail = true,
            _ if self.in_detail => self.detail.intent(intent),
            Intent::First => self.select(0, &listed(model)),
            Intent::Last => self.select(usize::MAX, &listed(model)),
            _ => self.select(self.at.saturating_add_signed(self.list.step(intent)), &listed(model)),
        }
    }

    /// Backs out of the detail; says whether the peers stay open.
    pub fn back(&mut self) -> bool {
        std::mem::take(&mut self.in_detail)
    }

    /// The session of the peer under the cursor.
    pub fn session<'a>(&self, model: &'a Model) -> Option<&'a Untrusted> {
        self.peer(&listed(model)).and_then(|peer| peer.session.as_ref()).map(|it| it.as_untrusted())
    }

    fn peer<'a>(&self, peers: &[&'a Peer]) -> Option<&'a Peer> {
        peers.get(self.at).copied().filter(|peer| Some(&peer.hash) == self.selected.as_ref())
    }
}

/// The peers in the order of the list: those present first.
fn listed(model: &Model) -> Vec<&Peer> {
    let all = model.peers().and_then(|peers| peers.as_ref().ok()).map(Vec::as_slice).unwrap_or_default();
    let (present, others): (Vec<&Peer>, Vec<&Peer>) = all.iter().partition(|peer| peer.presence.is_ok());
    [present, others].concat()
}
