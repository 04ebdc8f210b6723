//! The `headman` command.

use std::process::ExitCode;

use headman::cli::Invocation;

fn main() -> ExitCode {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    // Before threads, terminal and locks: it may replace this process.
    let go_on = invocation.reexecute();
    if let Err(error) = color_eyre::install() {
        eprintln!("headman: panics will be told without a trace: {error}");
    }
    invocation.run(go_on)
}
