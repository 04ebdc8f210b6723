//! Authority: who we are, whether we are Chief, and what we do as one.

pub mod lease;
pub mod state_dir;
