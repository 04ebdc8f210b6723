//! Supervised turns: one run of an agent under a supervisor that guarantees that it settles, leaves
//! nothing running, and is told in one line of metadata. `docs/turns.md` says what is promised.

pub mod failure;
pub mod history;
mod lane;
pub mod ledger;
pub mod log;
pub mod metrics;
pub mod passage;
pub mod run;
pub mod running;
pub mod settings;
pub mod signals;
pub mod stage;
pub mod statistics;
pub mod tree;

pub use failure::{Advice, Class, Failure};
pub use metrics::{Line, Outcome};
pub use run::{Input, Job, Settled, run};
pub use settings::Settings;
