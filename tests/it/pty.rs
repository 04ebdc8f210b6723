//! A real pseudo-terminal and the program in it.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::Pid;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A program in a pseudo-terminal, and what its terminal shows.
pub(crate) struct Harness {
    pub(crate) screen: vt100::Parser,
    pub(crate) raw: Vec<u8>,
    pub(crate) output: Receiver<Vec<u8>>,
    pub(crate) input: Option<Box<dyn Write + Send>>,
    pub(crate) master: Option<Box<dyn MasterPty + Send>>,
    pub(crate) child: Box<dyn Child + Send + Sync>,
}

impl Harness {
    /// Starts it in a terminal of 80 × 24.
    pub(crate) fn start(command: CommandBuilder) -> Self {
        Self::start_in(command, 80, 24)
    }

    pub(crate) fn start_in(command: CommandBuilder, cols: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        // The last one that is open must be the child's, or there is no end of its output.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            screen: vt100::Parser::new(cells(rows), cells(cols), 0),
            raw: Vec::new(),
            output,
            input: Some(pair.master.take_writer().unwrap()),
            master: Some(pair.master),
            child,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.process_id().unwrap() as i32).unwrap()
    }

    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen.screen().contents().contains(text)
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn wait_for(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(self) {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.raw.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
                Err(error) => panic!("no {what} ({error}):\n{}", self.screen.screen().contents()),
            }
        }
    }

    /// Everything up to the end of the output, and how the program ended.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.raw.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end:\n{}", self.screen.screen().contents()),
            }
        }
        self.wait_for_exit()
    }

    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the line discipline is the one the terminal started with.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = self.master.as_ref().unwrap().get_termios().unwrap();
        use std::fmt::Write;
        let mut flags = String::new();
        write!(flags, "{:?}", modes.local_flags).unwrap();
        flags.contains("ICANON") && flags.contains("ECHO")
    }

    pub(crate) fn assert_taken(&self) {
        let screen = self.screen.screen();
        assert!(screen.alternate_screen() && screen.bracketed_paste() && screen.hide_cursor());
        assert!(!self.is_cooked());
        let raw = String::from_utf8_lossy(&self.raw);
        for mode in ["\x1b[?1004h", "\x1b[>1u", "\x1b[?2026h"] {
            assert!(raw.contains(mode), "{mode:?}");
        }
        assert!(!raw.contains("\x1b[6n"), "it asked for the cursor");
    }

    pub(crate) fn assert_given_back(&self) {
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(self.is_cooked());
        let raw = String::from_utf8_lossy(&self.raw);
        for (on, off) in
            [("\x1b[?1004h", "\x1b[?1004l"), ("\x1b[>1u", "\x1b[<1u"), ("\x1b[?2026h", "\x1b[?2026l")]
        {
            assert!(raw.rfind(off) > raw.rfind(on), "{on:?} is not undone");
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // After a failed assertion it may still run.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

pub(crate) fn command(program: &str, arguments: &[&str]) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.args(arguments);
    command.env("TERM", "xterm-256color");
    command.env("RUST_BACKTRACE", "0");
    command.env("HEADMAN_TEST_TERMINAL", "1");
    command
}
