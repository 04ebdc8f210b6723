//! What is done beside the loop for lessons and for the gate, since it reads and writes files and may take
//! long; and what came of it.

use std::path::PathBuf;

use crate::chief::state_dir::StateDir;
use crate::console::gating::Gated;
use crate::contract::{SessionId, Timestamp};
use crate::fact::SessionFile;
use crate::signals::claims::Claims;
use crate::signals::quote::{self, Wanted};
use crate::signals::store::{Kept, Store, StoreError};

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    /// Read all lessons, for their screen.
    List,
    /// Read them, and what was inserted before, for a message to this lead.
    Offer(SessionId),
    /// Put the lesson of this name away.
    Archive(String),
    /// Keep what an operator wrote in this session.
    Keep(SessionFile, Wanted, Timestamp),
    /// Remember that lessons went to this lead.
    Inserted {
        /// The lead.
        lead: SessionId,
        /// Their names.
        names: Vec<String>,
        /// Whether any of them holds everywhere.
        everywhere: bool,
    },
    /// Hold this lead's claim against the gate, letting git look at a working tree.
    Gate(SessionId, Option<PathBuf>),
    /// End the verifier that runs.
    EndGate,
}

/// What came of it; why it did not come about is safe to print.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    /// All lessons.
    Listed(Result<Vec<Kept>, String>),
    /// All lessons, and whether any that hold everywhere went to this lead before.
    Offered(SessionId, Result<(Vec<Kept>, bool), String>),
    /// The new name of what was put away.
    Archived(Result<String, String>),
    /// Where what was kept lies.
    Kept(Result<String, String>),
    /// Why what went along is not remembered.
    NotRemembered(String),
    /// What came of the gate; nothing where the verifier was ended from here.
    Gated(SessionId, Result<Option<Gated>, String>),
}

impl Errand {
    /// Does what files are enough for; blocking. Nothing comes of what only fails to be told.
    pub fn run(self, state: &StateDir) -> Option<Came> {
        let store = Store::new(state.root(), state.learning());
        let claims = Claims::new(state.root(), state.claims());
        match self {
            Errand::List => Some(Came::Listed(store.list().map_err(|error| error.to_string()))),
            Errand::Offer(lead) => {
                let read = store.list().map_err(|error| error.to_string()).and_then(|all| {
                    let remembered = claims.read(&lead).map_err(|error| error.to_string())?;
                    Ok((all, remembered.everywhere))
                });
                Some(Came::Offered(lead, read))
            }
            Errand::Archive(name) => {
                let kept = store.list().and_then(|all| {
                    let found = all.into_iter().find(|kept| kept.name == name);
                    store.archive(&found.ok_or(StoreError::Ambiguous(0))?)
                });
                Some(Came::Archived(kept.map_err(|error| error.to_string())))
            }
            Errand::Keep(file, wanted, now) => {
                let path = crate::chief::staff::path_of(&file.path);
                let kept = quote::quoted(&wanted, &path, Some(&file.session), now.as_millis())
                    .and_then(|memory| quote::keep(&store, &memory))
                    .map(|name| store.shown(&name))
                    .map_err(|why| why.to_string());
                Some(Came::Kept(kept))
            }
            Errand::Inserted { lead, names, everywhere } => {
                let error = claims.inserted(&lead, names, everywhere).err()?;
                Some(Came::NotRemembered(error.to_string()))
            }
            // These are processes, not files.
            Errand::Gate(..) | Errand::EndGate => None,
        }
    }
}
