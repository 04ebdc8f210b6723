//! A simulated herd: real sockets, real files and real processes under the real engine.

pub mod server;
