//! The processes below one, and how they are ended: only such as are known by pid and start time.

use std::io;

use rustix::process::{Pid, Signal};

/// One process, as it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// When it started, in the system's own unit; with the id that makes it this process. 0 where
    /// the system does not tell.
    pub start: u64,
    parent: i32,
    group: i32,
    /// Whether it has ended and only waits to be waited for.
    pub is_zombie: bool,
}

/// Those below `root`, itself not among them.
pub fn below(root: i32, all: &[Process]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|it| it.parent == parent && it.pid != root) {
            // The picture is no snapshot: a pid may stand in it twice.
            if !found.iter().any(|known| known.pid == process.pid) {
                found.push(*process);
                parents.push(process.pid);
            }
        }
    }
    found
}

impl Process {
    /// Whether it is a child of `parent`.
    pub fn is_child_of(&self, parent: i32) -> bool {
        self.parent == parent
    }

    /// Whether it is in the process group `group`.
    pub fn is_in_group(&self, group: i32) -> bool {
        self.group == group
    }

    /// Sends it `signal`, and no other process that has its pid by now.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // One that has ended meanwhile is what is wanted; one that can't be signalled is found again.
        let _ = send(pid, self.start, signal);
    }
}

#[cfg(target_os = "linux")]
use linux::send;
#[cfg(target_os = "linux")]
pub use linux::{all, boot, has_variable, start_of};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Read;

    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{Pid, Process, Signal, io};

    /// Bytes of an environment that are looked at.
    const MAX_ENVIRONMENT: u64 = 1 << 20;

    /// Every process.
    pub fn all() -> io::Result<Vec<Process>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let entry = entry?;
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // One that is gone meanwhile is not there.
            all.extend(pid.and_then(look));
        }
        Ok(all)
    }

    fn look(pid: i32) -> Option<Process> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, a `)` included.
        let rest = stat.rsplit(|byte| *byte == b')').next()?;
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// When the process of that id started; none where there is none, or it has ended.
    pub fn start_of(pid: i32) -> Option<u64> {
        look(pid).filter(|process| !process.is_zombie).map(|process| process.start)
    }

    pub(super) fn send(pid: Pid, start: u64, signal: Signal) -> io::Result<()> {
        // Opened first: whoever has the pid after that is not who it stands for.
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        if look(pid.as_raw_nonzero().get()).is_some_and(|now| now.start == start) {
            pidfd_send_signal(&process, signal)?;
        }
        Ok(())
    }

    /// What tells one run of the system from another.
    pub fn boot() -> String {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    /// Whether the process was started with `variable` (`NAME=value`) in its environment.
    pub fn has_variable(process: &Process, variable: &str) -> bool {
        let Ok(file) = std::fs::File::open(format!("/proc/{}/environ", process.pid)) else { return false };
        let mut environment = Vec::new();
        file.take(MAX_ENVIRONMENT).read_to_end(&mut environment).is_ok()
            && environment.split(|byte| *byte == 0).any(|it| it == variable.as_bytes())
    }
}

#[cfg(not(target_os = "linux"))]
use other::send;
#[cfg(not(target_os = "linux"))]
pub use other::{all, boot, has_variable, start_of};

/// Systems without `/proc`: processes are listed by `ps`, and known by their pid alone. One that left
/// its group and lost its parent is not found.
#[cfg(not(target_os = "linux"))]
mod other {
    use super::{Pid, Process, Signal, io};

    /// Every process.
    pub fn all() -> io::Result<Vec<Process>> {
        let mut ps = std::process::Command::new("ps");
        let ps = ps.args(["-axo", "pid=,ppid=,pgid=,stat="]).stdout(std::process::Stdio::piped()).spawn()?;
        // It is a child of ours as well, and lists itself.
        let own = Pid::from_child(&ps).as_raw_nonzero().get();
        let listed = ps.wait_with_output()?;
        let line = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            Some(Process {
                pid: fields.next()?.parse().ok()?,
                parent: fields.next()?.parse().ok()?,
                group: fields.next()?.parse().ok()?,
                is_zombie: fields.next()?.starts_with('Z'),
                start: 0,
            })
        };
        Ok(String::from_utf8_lossy(&listed.stdout)
            .lines()
            .filter_map(line)
            .filter(|it| it.pid != own)
            .collect())
    }

    /// 0 where there is such a process.
    pub fn start_of(pid: i32) -> Option<u64> {
        rustix::process::test_kill_process(Pid::from_raw(pid)?).is_ok().then_some(0)
    }

    pub(super) fn send(pid: Pid, _start: u64, signal: Signal) -> io::Result<()> {
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Not told here.
    pub fn boot() -> String {
        String::new()
    }

    /// Not told here.
    pub fn has_variable(_process: &Process, _variable: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, group: pid, start: 1, is_zombie: false }
    }

    #[test]
    fn below_is_who_descends_and_a_circle_ends() {
        let all = [
            process(2, 1),
            process(3, 2),
            process(4, 3),
            process(5, 9),
            process(6, 7),
            process(7, 6),
            process(3, 4),
        ];
        let pids = |root| {
            let mut pids: Vec<i32> = below(root, &all).iter().map(|it| it.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(1), [2, 3, 4]);
        assert_eq!(pids(6), [7]);
        assert!(pids(5).is_empty());
    }

    #[test]
    fn a_process_of_another_start_is_left_alone() {
        let mut sleep = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        let process = all().unwrap().into_iter().find(|it| it.pid == pid).unwrap();
        assert!(process.is_child_of(i32::try_from(std::process::id()).unwrap()));
        if cfg!(target_os = "linux") {
            Process { start: process.start + 1, ..process }.send(Signal::KILL);
            assert!(sleep.try_wait().unwrap().is_none(), "another process was killed");
        }
        assert_eq!(start_of(pid), Some(process.start));
        process.send(Signal::KILL);
        sleep.wait().unwrap();
        assert_eq!(start_of(pid), None);
    }
}
