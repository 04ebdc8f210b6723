//! How the command of a turn is started: on Linux by way of this program, which sees to it that the
//! command dies with its supervisor and then becomes it. Elsewhere nothing does that.
//!
//! The signal comes when the *thread* that started the process ends: whoever starts a turn must do so
//! on a thread that lives as long as it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::contract::Uuid;

/// What this program is called with to be that stage. No verb: help and completions don't know it.
pub const VERB: &str = "__turn-stage";

/// The variable that marks every process of a turn.
pub const MARK: &str = "HEADMAN_TURN_ID";

/// What is started.
pub(super) struct Start<'a> {
    /// The command and its arguments.
    pub(super) command: &'a [OsString],
    /// This program.
    #[cfg(target_os = "linux")]
    pub(super) program: &'a Path,
    pub(super) turn: Uuid,
    pub(super) stdin: Stdio,
    /// Whether it is to be in a process group of its own.
    pub(super) own_group: bool,
}

impl Start<'_> {
    fn spawn(self, mut command: Command) -> io::Result<Child> {
        command.env(MARK, self.turn.to_string());
        command.stdin(self.stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.own_group {
            command.process_group(0);
        }
        command.spawn()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) async fn start(start: Start<'_>) -> io::Result<Child> {
    let [program, arguments @ ..] = start.command else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut command = Command::new(program);
    command.args(arguments);
    start.spawn(command)
}

#[cfg(target_os = "linux")]
pub use linux::become_command;
#[cfg(target_os = "linux")]
pub(super) use linux::start;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::time::Duration;

    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::process::{
        Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, getppid, set_parent_process_death_signal, waitid,
    };
    use tokio::io::AsyncReadExt;
    use tokio::net::unix::pipe::Receiver;

    use super::super::signals::heed_interrupts;
    use super::{Child, Command, CommandExt, OsString, Start, VERB, io};

    /// What the stage says once it has reached its supervisor.
    const READY: u8 = b'r';
    /// How long it may take to say so.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Starts the command, and knows whether that came about: the stage writes to a pipe of ours,
    /// whose end closes as the stage becomes the command.
    pub(in crate::turn) async fn start(start: Start<'_>) -> io::Result<Child> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut command = Command::new(start.program);
        command.arg(VERB).arg(getpid().as_raw_nonzero().to_string()).arg(writer.as_raw_fd().to_string());
        command.args(start.command);
        let mut child = start.spawn(command)?;
        let mut reader = Receiver::from_owned_fd(reader)?;
        let mut writer = Some(writer);
        let mut said = Vec::new();
        let told = tokio::time::timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    length = reader.read_buf(&mut said) => match length? {
                        0 => return Ok(()),
                        _ => writer = None,
                    },
                    // As long as we hold the pipe open ourselves, its end tells nothing.
                    () = tokio::time::sleep(Duration::from_millis(20)), if writer.is_some() => {
                        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
                        if waitid(WaitId::Pid(Pid::from_child(&child)), look)?.is_some() {
                            writer = None;
                        }
                    }
                }
            }
        });
        let failed = match told.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Err(error) => Some(error),
            Ok(()) => match &said[..] {
                [READY] => None,
                [READY, number @ ..] => {
                    number.try_into().map(i32::from_le_bytes).ok().map(io::Error::from_raw_os_error)
                }
                _ => Some(io::Error::other("headman could not start itself for it")),
            },
        };
        match failed {
            None => Ok(child),
            Some(error) => {
                // It ends by itself; one that does not is ended.
                let _ = child.kill();
                child.wait()?;
                Err(error)
            }
        }
    }

    /// The stage: `arguments` are the supervisor's pid, the number of the pipe there, and the command.
    /// Returns only if it could not become the command.
    pub fn become_command(arguments: &[OsString]) -> u8 {
        let [supervisor, pipe, program, rest @ ..] = arguments else { return 2 };
        let supervisor = supervisor.to_str().and_then(|it| it.parse().ok()).and_then(Pid::from_raw);
        let (Some(supervisor), Some(pipe)) = (supervisor, pipe.to_str()) else { return 2 };
        let path = format!("/proc/{}/fd/{pipe}", supervisor.as_raw_nonzero());
        // Not to be waited for, should nobody read it any more.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let Ok(mut pipe) = File::options().write(true).custom_flags(flags).open(path) else { return 126 };
        if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(supervisor) {
            // It died before that could be told.
            return 126;
        }
        if pipe.write_all(&[READY]).is_err() {
            return 126;
        }
        // In a group of its own SIGINT comes from us alone, to ask it to end.
        if getpgrp() == getpid() {
            // Where that fails it is as deaf as without us, and killed after the grace.
            let _ = heed_interrupts();
        }
        let error = Command::new(program).args(rest).exec();
        let number = error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
        // Where nobody hears it nobody waits for it.
        let _ = pipe.write_all(&number.to_le_bytes());
        127
    }
}
