//! The supervisor beside the agents: what a lead's session shows by itself, without a model.
//!
//! Nothing here has a clock or a screen. [`watch::Watch`] folds a session entry by entry; only
//! [`claims`], [`git`] and [`store`] touch anything outside.

pub mod claims;
pub mod condense;
pub mod delegation;
pub mod detect;
pub mod dirty;
pub mod fuse;
pub mod gate;
pub mod git;
pub mod keys;
pub mod memory;
pub mod plan;
pub mod quote;
pub mod recite;
pub mod rounds;
pub mod secrets;
pub mod self_report;
pub mod shell;
pub mod sight;
pub mod steer;
pub mod store;
pub mod watch;
