//! Safe, durable file operations on the records of `docs/contract.md`.
//!
//! Everything here is synchronous and is called on the service's disk thread, never by a screen.

#[cfg(debug_assertions)]
pub mod crash;
pub mod durable;
pub mod inbox;
pub mod layout;
pub mod leftovers;
pub mod lock;
pub mod mailboxes;
pub mod named;
pub mod peers;
pub mod records;
pub mod sidecar;
pub mod thread;

pub use durable::{DiskError, Unreadable};
pub use layout::{AgentDir, Runtime};
pub use lock::{LockError, ProcessLock};
pub use records::RecordError;
pub use thread::DiskThread;

/// A point at which a test may end the process: `disk/crash.rs`. Nothing in a release build.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::disk::crash::point($name);
    };
}

/// The same, named by what it is a step of.
macro_rules! crash_step {
    ($step:literal) => {
        #[cfg(debug_assertions)]
        $crate::disk::crash::step($step);
    };
}

/// What the steps in the rest of the block are a part of.
macro_rules! crash_steps_of {
    ($what:literal) => {
        #[cfg(debug_assertions)]
        let _part_of = $crate::disk::crash::PartOf::new($what);
    };
}

pub(crate) use {crash_point, crash_step, crash_steps_of};
