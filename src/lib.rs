//! headman: a terminal console through which one person is the Chief of many coding-agent leads.
//!
//! The way data flows and what belongs where is in `docs/architecture.md`.

pub mod chief;
pub mod cli;
pub mod config;
pub mod console;
pub mod contract;
pub mod control;
pub mod demo;
pub mod disk;
pub mod fact;
pub mod herd;
pub mod herdr;
pub mod lead;
pub mod model;
pub mod pi;
pub mod signals;
pub mod source;
pub mod turn;
