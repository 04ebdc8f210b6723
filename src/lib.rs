//! headman: a terminal console through which one person is the Chief of many coding-agent leads.
//!
//! The way data flows and what belongs where is in `docs/architecture.md`.

pub mod contract;
pub mod demo;
pub mod herdr;
