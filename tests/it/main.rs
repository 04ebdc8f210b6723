//! The integration tests, in one binary: linking takes longer than they do.

mod terminal_pty;
