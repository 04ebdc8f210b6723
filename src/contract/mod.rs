//! The records of `docs/contract.md` as types, and what makes one valid. Reads and writes nothing.

pub mod claim;
pub mod delivered;
pub mod descriptor;
pub mod ids;
pub mod json;
pub mod lead;
pub mod mailbox;
pub mod message;
pub mod peer;
pub mod record;
pub mod rendered;
pub mod role;
pub mod serial;
pub mod text;

pub use claim::Claim;
pub use descriptor::Descriptor;
pub use ids::{NativeId, Pid, SessionId, Timestamp, Uuid};
pub use lead::{LeadRecord, LeadState, PendingAsk};
pub use message::{Kind, Message};
pub use peer::PeerRecord;
pub use record::{Invalid, Rule};
pub use text::Untrusted;
