//! Safe, durable file operations on the records of `docs/contract.md`.
//!
//! Everything here is synchronous and is called on the service's disk thread, never by a screen.

pub mod durable;
pub mod inbox;
pub mod layout;
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
