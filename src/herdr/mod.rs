//! Talking to Herdr, after `docs/herdr.md`: finding its socket, asking it, being listed by it.
//!
//! Nothing here keeps an inventory or decides who is a lead. A request is one connection, an answer
//! is read leniently, and a failure says which of the few kinds it is so that the caller can keep
//! its last picture instead of inventing a state.

mod answers;
pub mod api;
pub mod backoff;
pub mod blocking;
pub mod client;
pub mod entry;
pub mod error;
pub mod events;
mod fields;
pub mod listing;
pub mod locate;
pub mod reexec;
pub mod register;
pub mod wire;

pub use api::{Agent, AgentSession, Pane, Snapshot, Status};
pub use backoff::Backoff;
pub use client::Client;
pub use entry::Entry;
pub use error::HerdrError;
pub use events::{Event, Events, Subscription};
pub use locate::{Located, PaneContext};
pub use register::{Registrar, Registration};
