//! All integration tests in one binary: linking dominates.

mod herd_vectors;
