//! Reading what Pi writes; never writing it, and never opening it through Pi.

pub mod delivered;
pub mod session;
