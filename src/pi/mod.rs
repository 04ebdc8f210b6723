//! Reading what Pi writes; never writing it, and never opening it through Pi.

pub mod activity;
pub mod body;
pub mod branch;
pub mod delivered;
pub mod discover;
pub mod ending;
pub mod entry;
pub mod growth;
mod lines;
pub mod said;
pub mod search;
pub mod session;
pub mod tail;
mod texts;
pub mod transcript;
