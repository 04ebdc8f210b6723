//! A simulated herd: real sockets, real files and real processes under the real engine.

pub mod cast;
mod command;
pub mod crew;
pub mod environment;
mod foreground;
pub mod home;
pub mod lead;
pub mod pane;
pub mod random;
pub mod script;
pub mod server;
pub mod session;
pub mod stage;
pub mod world;

pub use world::{DemoError, Options, World, run};
