//! Named points at which a debug build kills itself, so that tests can end it between any two system
//! calls and look at what the next start makes of that. Release builds have no trace of them.
//!
//! `HEADMAN_CRASH_AT=NAME` has the process end by SIGKILL where it first reaches that point, and
//! `NAME:N` where it does so for the Nth time. A point is named by what is being done and the step of
//! it that is done by then. Shared operations name only their step; whoever calls them says what they
//! are a part of: `publish:lock_made` is that step of taking the lock while a message is published.
//!
//! `HEADMAN_WAIT_AT=NAME,…` has it wait instead where it first reaches each of those points, so that others
//! can do something in between: until whoever opens the FIFO of that name in the directory
//! `HEADMAN_WAIT_FOR` to write has closed it again.
//!
//! A point that is none ends `headman` with an error that names it.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The variable that names the point.
pub const VARIABLE: &str = "HEADMAN_CRASH_AT";
/// The variable that names the points to wait at, and the one that names the directory of FIFOs.
pub const WAIT: [&str; 2] = ["HEADMAN_WAIT_AT", "HEADMAN_WAIT_FOR"];

/// Every point there is. One that is reached and is not among them is a bug, and so is one that no
/// test reaches.
pub const POINTS: &[&str] = &[
    // The lease: claimed, that of a dead process recovered, described, ended.
    "lease:remembered",
    "lease:lock_made",
    "lease:lock_created",
    "lease:lock_written",
    "lease:stale_found",
    "lease:stale_aside",
    "lease:stale_emptied",
    "lease:stale_removed",
    "lease:lock_published",
    "descriptor:created",
    "descriptor:written",
    "descriptor:placed",
    "descriptor:synced",
    "release:undescribed",
    "release:lock_aside",
    "release:lock_emptied",
    "release:lock_removed",
    "role:created",
    "role:written",
    "role:placed",
    "role:synced",
    // What dead consoles left.
    "sweep:removed",
    "sweep:stale_found",
    "sweep:stale_aside",
    "sweep:stale_emptied",
    "sweep:stale_removed",
    "sweep:unmarked",
    "sweep:restored",
    // The journal.
    "journal:made",
    "journal:cut",
    "journal:written",
    "journal:synced",
    // From a lead.
    "reception:journalled",
    "remove:lock_made",
    "remove:lock_created",
    "remove:lock_written",
    "remove:stale_found",
    "remove:stale_aside",
    "remove:stale_emptied",
    "remove:stale_removed",
    "remove:lock_published",
    "marker:created",
    "marker:written",
    "marker:placed",
    "marker:synced",
    "remove:aside",
    "remove:unlinked",
    "remove:unmarked",
    "remove:synced",
    "remove:lock_aside",
    "remove:lock_emptied",
    "remove:lock_removed",
    "reception:removed",
    "quarantine:lock_made",
    "quarantine:lock_created",
    "quarantine:lock_written",
    "quarantine:lock_published",
    "quarantine:created",
    "quarantine:written",
    "quarantine:placed",
    "quarantine:synced",
    "quarantine:lock_aside",
    "quarantine:lock_emptied",
    "quarantine:lock_removed",
    // To a lead.
    "draft:created",
    "draft:written",
    "draft:placed",
    "draft:synced",
    "draft:removed",
    "send:journalled",
    "carry_over:journalled",
    "publish:lock_made",
    "publish:lock_created",
    "publish:lock_written",
    "publish:lock_published",
    "publish:created",
    "publish:written",
    "publish:placed",
    "publish:unmarked",
    "publish:synced",
    "publish:lock_aside",
    "publish:lock_emptied",
    "publish:lock_removed",
    "send:published",
    "carry_over:published",
    // An ask, by its lead or, where its message never came, by the Chief.
    "ask:lock_made",
    "ask:lock_created",
    "ask:lock_written",
    "ask:lock_published",
    "ask:created",
    "ask:written",
    "ask:placed",
    "ask:synced",
    "ask:lock_aside",
    "ask:lock_emptied",
    "ask:lock_removed",
    // A lead.
    "lead:ask_remembered",
    "lead:ask_recorded",
    "lead:handed_over",
    "lead:ask_forgotten",
    "lead:ask_cleared",
];

thread_local! {
    static PART_OF: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// For as long as it lives, what this thread does is a part of what it names.
#[derive(Debug)]
#[must_use]
pub struct PartOf(Option<&'static str>);

impl PartOf {
    /// What is done from now on is a part of `what`.
    pub fn new(what: &'static str) -> Self {
        Self(PART_OF.replace(Some(what)))
    }
}

impl Drop for PartOf {
    fn drop(&mut self) {
        PART_OF.set(self.0);
    }
}

/// A point is reached.
pub fn point(name: &str) {
    if let Some(plan) = plan() {
        plan.reached(name);
    }
}

/// A step of what is being done is done. It is no point where that has no name.
pub fn step(step: &str) {
    if let (Some(plan), Some(what)) = (plan(), PART_OF.get()) {
        plan.reached(&format!("{what}:{step}"));
    }
}

/// What is to be done at a point.
enum Plan {
    End {
        name: String,
        /// How many times it is still to be passed.
        left: AtomicU64,
    },
    Wait {
        /// Where still.
        names: Mutex<Vec<String>>,
        fifos: PathBuf,
    },
}

/// Where to end or to wait, if anywhere.
fn plan() -> Option<&'static Plan> {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let asked = asked(|name| std::env::var_os(name));
        assert!(asked.is_ok(), "{}", asked.err().unwrap_or_default());
        asked.ok().flatten()
    });
    plan.as_ref()
}

/// Whether the environment asks for something that can be done, so that a point which is misspelt is not
/// taken for one that is never reached.
///
/// # Errors
/// Which variable has what wrong.
pub fn check() -> Result<(), String> {
    asked(|name| std::env::var_os(name)).map(drop)
}

/// What is asked for by the variables of the environment, as `of` gives them.
fn asked(of: impl Fn(&str) -> Option<OsString>) -> Result<Option<Plan>, String> {
    let is_point = |name: &str| POINTS.contains(&name);
    let no_point = |variable: &str, name: &str| format!("{variable}: there is no point {name:?}");
    if let Some(at) = of(WAIT[0]) {
        let names: Vec<String> = at.to_string_lossy().split(',').map(str::to_owned).collect();
        if let Some(name) = names.iter().find(|name| !is_point(name)) {
            return Err(no_point(WAIT[0], name));
        }
        let fifos = of(WAIT[1]).ok_or_else(|| format!("{} needs {}", WAIT[0], WAIT[1]))?;
        return Ok(Some(Plan::Wait { names: Mutex::new(names), fifos: fifos.into() }));
    }
    let Some(wanted) = of(VARIABLE) else { return Ok(None) };
    let wanted = wanted.to_string_lossy();
    let (name, times) = match wanted.rsplit_once(':') {
        Some((name, times)) if is_point(name) => (name, times.parse::<u64>().ok()),
        _ => (&*wanted, Some(1)),
    };
    if !is_point(name) {
        return Err(no_point(VARIABLE, name));
    }
    let Some(left) = times.and_then(|times| times.checked_sub(1)) else {
        return Err(format!("{VARIABLE}: {wanted:?} does not end with a number from 1"));
    };
    Ok(Some(Plan::End { name: name.to_owned(), left: AtomicU64::new(left) }))
}

impl Plan {
    fn reached(&self, reached: &str) {
        assert!(POINTS.contains(&reached), "the point {reached} is not listed");
        match self {
            Self::End { name, left } if name == reached && left.fetch_sub(1, Ordering::SeqCst) == 0 => {
                // A process can't refuse this, and no destructor runs.
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                loop {
                    std::thread::park();
                }
            }
            Self::End { .. } => {}
            Self::Wait { names, fifos } => {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(at) = names.iter().position(|name| name == reached) {
                    names.remove(at);
                    // Opening it waits for the other end, and reading for its end.
                    let _ = std::fs::read(fifos.join(reached));
                }
            }
        }
    }
}
