//! Signals that a supervisor, or what is to become its command, treats otherwise than it found them.
//!
//! One that is caught is at its default again in whatever the process becomes by exec, or starts.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Whether this process ignores it, where the system tells.
pub fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// From now on a file that may not grow (`ulimit -f`) is an error of the write, not our end. To be
/// called within a runtime.
///
/// # Errors
/// The system's.
pub fn outlive_file_limits() -> io::Result<()> {
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    if !is_ignored(kind) {
        // It stays caught without anybody who listens.
        drop(signal(kind)?);
    }
    Ok(())
}

/// Sees to it that whatever this process becomes by exec heeds SIGINT and SIGQUIT, which a shell
/// without job control has ignored in its background.
///
/// # Errors
/// The system's.
#[cfg(target_os = "linux")]
pub(super) fn heed_interrupts() -> io::Result<()> {
    let kinds = [SignalKind::interrupt(), SignalKind::quit()];
    // One that is not ignored needs nothing, and is not to be lost.
    let ignored: Vec<SignalKind> = kinds.into_iter().filter(|kind| is_ignored(*kind)).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    ignored.into_iter().try_for_each(|kind| signal(kind).map(drop))
}
