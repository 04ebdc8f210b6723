//! The running application: what the operator sees and does.

mod act;
pub mod age;
pub mod app;
pub mod away;
pub mod burst;
mod clock;
pub mod composer;
pub mod drafts;
pub mod guide;
mod history;
pub mod intent;
pub mod keymap;
mod mail;
pub mod mouse;
pub mod notify;
mod outcome;
pub mod paint;
pub mod run;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod timeline;
pub mod view;
mod writing;
