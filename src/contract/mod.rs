//! What is on disk and on the wire: types and their validity, after `docs/contract.md`. No I/O.

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
pub mod role;
pub mod text;

pub use claim::Claim;
pub use descriptor::Descriptor;
pub use ids::{NativeId, Pid, SessionId, Timestamp, Uuid};
pub use lead::{LeadRecord, PendingAsk};
pub use message::{Kind, Message};
pub use peer::PeerRecord;
pub use record::{Invalid, Rule};
pub use text::Untrusted;
