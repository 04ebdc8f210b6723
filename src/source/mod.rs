//! Everything that looks outside and emits facts: record changes and Herdr's inventory.

pub mod changes;
pub mod inventory;
pub mod peek;
pub mod peers;
pub mod records;
pub mod search;
pub mod sessions;
pub mod surroundings;
pub mod transcript;
pub mod turns;
pub mod watch;
