//! All integration tests in one binary: linking takes longer than running them.

// Helpers outside a test function fail the test by panicking too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod herdr_client;
mod herdr_register;
mod herdr_wire;
mod support;
