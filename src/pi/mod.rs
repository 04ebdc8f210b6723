//! Reading what Pi writes; never writing it, and never opening it through Pi.

pub mod activity;
pub mod branch;
pub mod delivered;
pub mod entry;
pub mod said;
pub mod session;
pub mod tail;
pub mod transcript;
