//! Authority: who we are, whether we are Chief, and what we do as one.

pub mod attach;
mod claim;
pub mod inquiry;
pub mod inspection;
pub mod journal;
pub mod lease;
pub mod outbox;
pub mod reception;
pub mod requeue;
pub mod sent;
pub mod service;
pub mod snooze;
pub mod staff;
pub mod state_dir;
mod sweep;
pub mod upkeep;
