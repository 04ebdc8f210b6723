//! The running application: what the operator sees and does.

pub mod burst;
pub mod intent;
pub mod keymap;
pub mod text;
pub mod theme;
