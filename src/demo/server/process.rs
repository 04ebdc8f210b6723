//! Whether the process in a pane is a Pi to Herdr.

/// The process in a pane's foreground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Tells it from a later process with the same id.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    started: Option<u64>,
    told_pi: bool,
}

impl Process {
    pub(super) fn new(pid: u32, told_pi: bool) -> Self {
        Self { pid, started: stat(pid).map(|(_, started)| started), told_pi }
    }

    /// Alive, in the foreground, and by hint or name a Pi. Looked at each time anew: a process that
    /// executes itself again stays the same process but may become a Pi.
    #[cfg(target_os = "linux")]
    pub(super) fn is_pi(&self) -> bool {
        let runs = stat(self.pid).is_some_and(|(state, started)| {
            !matches!(state, b'Z' | b'X' | b'T') && self.started == Some(started)
        });
        runs && (has_hint(self.pid)
            || arguments(self.pid).first().is_some_and(|name| base_name(name) == "pi"))
    }

    /// Without a process file system there is only what was told.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_pi(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        self.told_pi && pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }

    /// Its name, arguments and directory; empty where they can't be read.
    pub(super) fn describe(&self) -> (String, Vec<String>, String) {
        let arguments = arguments(self.pid);
        let fallback = if self.told_pi { "pi" } else { "program" };
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid))
            .map_or_else(|_| fallback.to_owned(), |name| name.trim_end().to_owned());
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", self.pid))
            .map_or_else(|_| String::new(), |cwd| cwd.to_string_lossy().into_owned());
        (name, arguments, cwd)
    }
}

/// The state letter and the start time in clock ticks.
fn stat(pid: u32) -> Option<(u8, u64)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, parentheses included.
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let rest = String::from_utf8_lossy(rest);
    let mut fields = rest.split_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(target_os = "linux")]
fn has_hint(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(|variable| variable == b"HERDR_AGENT=pi"))
}

fn arguments(pid: u32) -> Vec<String> {
    let all = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let all = all.strip_suffix(&[0]).unwrap_or(&all);
    if all.is_empty() {
        return Vec::new();
    }
    all.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[cfg(target_os = "linux")]
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
