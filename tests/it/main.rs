//! All integration tests in one binary: linking dominates.

// Helpers of tests are tests, which the lints' own exceptions for tests don't see.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod herd_properties;
mod herd_rules;
mod herd_vectors;
mod pi_header;
