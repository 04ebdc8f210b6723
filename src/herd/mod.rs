//! Who is a lead, what it is called, and where it stands among the others: the projection of
//! `docs/contract.md`. Pure: evidence goes in, a [`Roster`] comes out; no file, socket or clock.

pub mod evidence;
pub mod inventory;
pub mod json;
pub mod left_out;
pub mod managed;
pub mod order;
pub mod presence;
pub mod roster;
pub mod state_block;
pub mod surroundings;

pub use evidence::{AgentSession, Evidence, EvidenceError, LiveAgent, ManagedAgent, Provenance, State};
pub use left_out::{LeftOut, Reason, Subject};
pub use managed::{Agent, Counts};
pub use roster::{Lead, Roster, project};
