//! One module a verb.

pub mod roster;
