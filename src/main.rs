//! The `headman` command.

fn main() {}
