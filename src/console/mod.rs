//! The running application: what the operator sees and does.

pub mod text;
pub mod theme;
