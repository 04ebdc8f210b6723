//! All integration tests in one binary: linking takes longer than running them.

mod herdr_client;
mod herdr_register;
mod herdr_wire;
mod support;
