//! Whether what was changed was also looked at.

use std::collections::BTreeSet;

use super::rounds::{Act, Deed, Round};

/// How many paths are kept of those that were changed.
pub const PATHS: usize = 32;

/// What is known of the changes since the user's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Nothing was changed, or a check succeeded since.
    #[default]
    Clean,
    /// What was changed was read again, and no check succeeded: that shows content, not behaviour.
    ContentOnly,
    /// Something was changed, and neither checked nor read since.
    Dirty,
}

/// The mark, and what it hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    mark: Mark,
    /// The last paths that were changed, without those that did not fit.
    paths: BTreeSet<String>,
    /// What paths are shown relative to.
    cwd: Option<String>,
}

impl Changes {
    /// None yet, in a session that works in `cwd`.
    pub fn new(cwd: Option<String>) -> Self {
        Self { cwd, ..Self::default() }
    }

    /// The mark.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The paths that were changed since the last check; not those that only a shell knows.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// A user's turn begins anew.
    pub fn turn(&mut self) {
        self.mark = Mark::Clean;
        self.paths.clear();
    }

    /// Takes a round. In one that changes something it is not known what came first, so nothing in it
    /// counts as a look at the change.
    pub fn round(&mut self, round: &Round) {
        if round.mutated() {
            self.mark = Mark::Dirty;
            for path in round.acts.iter().filter(|act| act.edited()).flat_map(|act| &act.paths) {
                self.paths.insert(plain(path, self.cwd.as_deref()));
            }
            while self.paths.len() > PATHS {
                self.paths.pop_first();
            }
            return;
        }
        let succeeded = |act: &Act| matches!(act.deed, Deed::Check { failed: false, .. }) && !act.is_error;
        if round.acts.iter().any(succeeded) {
            self.turn();
        } else if self.mark == Mark::Dirty {
            let reads = round.acts.iter().filter(|act| act.deed == Deed::Read && !act.is_error);
            let mut read = reads.flat_map(|act| &act.paths).map(|path| plain(path, self.cwd.as_deref()));
            if read.any(|path| self.paths.contains(&path)) {
                self.mark = Mark::ContentOnly;
            }
        }
    }
}

/// One spelling of a path.
fn plain(path: &str, cwd: Option<&str>) -> String {
    let within = cwd.and_then(|cwd| path.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/'));
    let is_absolute = within.is_none() && path.starts_with('/');
    let parts = within.unwrap_or(path).split('/').filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<&str> = parts.collect();
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
}
