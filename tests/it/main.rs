//! All integration tests, in one binary. `tests/CATALOG.md` lists the cases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod golden_records;
mod golden_trees;
mod herd_vectors;
mod support;
