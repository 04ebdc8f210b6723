//! Being taken for Pi by Herdr: the console executes itself again, after the section "Registering
//! the Chief" of `docs/herdr.md`.
//!
//! Herdr looks at the program in the foreground of a pane. It takes it for Pi if it was started with
//! `HERDR_AGENT=pi`, and also if it is called `pi`. A program can't give itself either, so the
//! console replaces itself by itself, first thing in `main`: before threads, terminal and locks.
//! Its process id stays the same, which is what the loop guard relies on.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::locate::{NoPane, pane_context};

/// Herdr's documented hint.
pub const HINT: &str = "HERDR_AGENT";
/// The agent whose leads look for a Chief.
pub const PI: &str = "pi";
/// Our loop guard: `<stage>:<pid>`. A value with another process's id was inherited and says nothing.
pub const GUARD: &str = "HEADMAN_REEXEC";

/// Variables that are ours alone: a child that had them would be taken for Pi in turn.
pub fn strip_from_children() -> [&'static str; 2] {
    [HINT, GUARD]
}

/// How far this process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Executed with the hint in its environment.
    Hinted,
    /// Executed with the hint and under the name `pi`: there is nothing more to try.
    Named,
    /// Executed without either, after the Chief left.
    Left,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Self::Hinted => "hinted",
            Self::Named => "named",
            Self::Left => "left",
        }
    }

    /// What the guard says of this process.
    pub fn of(env: impl Fn(&str) -> Option<OsString>, pid: u32) -> Option<Self> {
        let guard = env(GUARD)?.into_string().ok()?;
        let word = guard.strip_suffix(&format!(":{pid}"))?;
        [Self::Hinted, Self::Named, Self::Left].into_iter().find(|stage| stage.word() == word)
    }
}

/// What to do first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Execute again, then start over.
    Again(Reexec),
    /// Go on as this process.
    GoOn(GoOn),
}

/// Why this process is the one that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoOn {
    /// It has the hint: registering is worth trying.
    Hinted,
    /// The Chief left; it is an observer until told otherwise.
    Left,
    /// `register = false` or `--no-register`.
    SwitchedOff,
    /// Executing it again failed; safe to print why.
    Failed(String),
    /// There is no pane to be listed on.
    NoPane(NoPane),
}

/// Decides by the environment alone; `register` is the switch of configuration and command line,
/// `pid` this process.
pub fn decide(env: impl Fn(&str) -> Option<OsString>, register: bool, pid: u32) -> Decision {
    let stage = Stage::of(&env, pid);
    if !register {
        return Decision::GoOn(GoOn::SwitchedOff);
    }
    if let Err(why) = pane_context(&env) {
        return Decision::GoOn(GoOn::NoPane(why));
    }
    match stage {
        Some(Stage::Left) => Decision::GoOn(GoOn::Left),
        Some(_) => Decision::GoOn(GoOn::Hinted),
        None if env(HINT).is_some_and(|hint| hint == PI) => Decision::GoOn(GoOn::Hinted),
        None => Decision::Again(Reexec::hinted(pid)),
    }
}

/// The second and last attempt, for when the reports were answered `ok` but nothing was listed in
/// spite of the hint. None once it was made. The terminal and every lock are to be given back first.
pub fn second_attempt(env: impl Fn(&str) -> Option<OsString>, pid: u32) -> Option<Reexec> {
    pane_context(&env).ok()?;
    match Stage::of(&env, pid) {
        Some(Stage::Named | Stage::Left) => None,
        _ => Some(Reexec::named(pid)),
    }
}

/// One execution of this program by itself: same arguments, other environment or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reexec {
    /// Variables to set.
    pub set: Vec<(&'static str, OsString)>,
    /// Variables to remove.
    pub unset: Vec<&'static str>,
    /// The name to be executed under; none for the executable's own path.
    pub name: Option<&'static str>,
}

impl Reexec {
    /// With the hint. Also the way back to being Chief after [`Reexec::without_hint`].
    pub fn hinted(pid: u32) -> Self {
        Self { set: vec![(HINT, PI.into()), guard(Stage::Hinted, pid)], unset: Vec::new(), name: None }
    }

    /// With the hint and under the name `pi`.
    pub fn named(pid: u32) -> Self {
        Self { set: vec![(HINT, PI.into()), guard(Stage::Named, pid)], unset: Vec::new(), name: Some(PI) }
    }

    /// Without either: for leaving Chief mode and staying. Otherwise the pane would go on being
    /// listed as a Pi without a session.
    pub fn without_hint(pid: u32) -> Self {
        Self { set: vec![guard(Stage::Left, pid)], unset: vec![HINT], name: None }
    }

    /// Executes; returns only if that failed, and then nothing has changed. `arguments` are those of
    /// the command line without the program's name.
    pub fn exec<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> ReexecError {
        // Through the resolved path: executed as /proc/self/exe the process would be called `exe`.
        let program = match std::env::current_exe() {
            Ok(program) => whole(program),
            Err(error) => return ReexecError { program: "its own executable".into(), error },
        };
        let mut command = Command::new(&program);
        command.args(arguments).envs(self.set.iter().map(|(name, value)| (name, value)));
        for name in &self.unset {
            command.env_remove(name);
        }
        if let Some(name) = self.name {
            command.arg0(name);
        }
        let error = command.exec();
        ReexecError { program, error }
    }
}

/// Why headman could not be executed again.
#[derive(Debug, thiserror::Error)]
#[error("can't execute {} again: {error}", .program.display())]
pub struct ReexecError {
    program: PathBuf,
    error: std::io::Error,
}

/// The path without what Linux adds once the file was replaced: what stands there now is the newer
/// release.
fn whole(program: PathBuf) -> PathBuf {
    let bytes = program.as_os_str().as_encoded_bytes();
    match bytes.strip_suffix(b" (deleted)") {
        Some(path) if !program.exists() => PathBuf::from(OsStr::from_bytes(path)),
        _ => program,
    }
}

fn guard(stage: Stage, pid: u32) -> (&'static str, OsString) {
    (GUARD, format!("{}:{pid}", stage.word()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANE: [(&str, &str); 4] = [
        ("HERDR_ENV", "1"),
        ("HERDR_PANE_ID", "w1:p1"),
        ("HERDR_TAB_ID", "w1:t1"),
        ("HERDR_WORKSPACE_ID", "w1"),
    ];

    fn env(more: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + use<> {
        let all: Vec<(String, String)> =
            PANE.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        move |name| all.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.into())
    }

    /// The environment after executing.
    fn after(reexec: &Reexec, pid: &str) -> impl Fn(&str) -> Option<OsString> + use<> {
        let set: Vec<(&str, &str)> =
            reexec.set.iter().map(|(key, value)| (*key, value.to_str().unwrap())).collect();
        assert!(set.iter().any(|(key, value)| *key == GUARD && value.ends_with(pid)));
        env(&set)
    }

    #[test]
    fn a_plain_start_in_a_pane_executes_once_and_then_goes_on() {
        let Decision::Again(first) = decide(env(&[]), true, 7) else { panic!() };
        assert_eq!(first, Reexec::hinted(7));
        assert_eq!(decide(after(&first, ":7"), true, 7), Decision::GoOn(GoOn::Hinted));
    }

    #[test]
    fn the_second_attempt_is_the_last() {
        let second = second_attempt(after(&Reexec::hinted(7), ":7"), 7).unwrap();
        assert_eq!(second.name, Some("pi"));
        assert_eq!(decide(after(&second, ":7"), true, 7), Decision::GoOn(GoOn::Hinted));
        assert_eq!(second_attempt(after(&second, ":7"), 7), None);
    }

    #[test]
    fn an_inherited_guard_does_not_count() {
        let inherited = [(GUARD, "hinted:6")];
        assert_eq!(decide(env(&inherited), true, 7), Decision::Again(Reexec::hinted(7)));
        assert_eq!(Stage::of(env(&[(GUARD, "hinted:17")]), 7), None);
        assert_eq!(Stage::of(env(&[(GUARD, "hinted")]), 7), None);
    }

    #[test]
    fn leaving_takes_the_hint_away_and_stays_left() {
        let left = Reexec::without_hint(7);
        assert_eq!(left.unset, [HINT]);
        assert_eq!(decide(after(&left, ":7"), true, 7), Decision::GoOn(GoOn::Left));
        assert_eq!(second_attempt(after(&left, ":7"), 7), None);
    }

    #[test]
    fn nothing_is_executed_where_it_could_not_help() {
        assert_eq!(decide(env(&[]), false, 7), Decision::GoOn(GoOn::SwitchedOff));
        assert_eq!(decide(env(&[(HINT, "pi")]), true, 7), Decision::GoOn(GoOn::Hinted));
        assert_eq!(decide(env(&[(HINT, "other")]), true, 7), Decision::Again(Reexec::hinted(7)));
        for (key, value, why) in [
            ("HERDR_ENV", "0", NoPane::OutsideHerdr),
            ("TMUX", "/tmp/t", NoPane::InsideTmux),
            ("HERDR_PANE_ID", "", NoPane::Missing("HERDR_PANE_ID")),
        ] {
            assert_eq!(decide(env(&[(key, value)]), true, 7), Decision::GoOn(GoOn::NoPane(why)));
            assert_eq!(second_attempt(env(&[(key, value)]), 7), None);
        }
    }
}
