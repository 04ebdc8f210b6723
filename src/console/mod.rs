//! The running application: what the operator sees and does.

mod act;
pub mod age;
pub mod app;
pub mod burst;
pub mod composer;
pub mod drafts;
pub mod find;
pub mod guide;
pub mod intent;
pub mod keymap;
mod mail;
mod outcome;
pub mod pager;
pub mod paint;
mod reading;
pub mod run;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod view;
mod writing;
