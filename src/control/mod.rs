//! The Chief service behind a private socket, so that every process of ours with the same state
//! directory and Herdr socket uses one and the same: console, `headman serve` and the verbs.
//! `docs/control.md` is what is said on it.

pub mod client;
mod desk;
pub mod host;
mod hub;
mod server;
pub mod socket;
pub mod wire;
