//! Everything that looks outside and emits facts: record changes and Herdr's inventory.

pub mod inventory;
pub mod records;
pub mod watch;
