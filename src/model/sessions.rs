//! What the leads' sessions tell, and which files more than one of them touched.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use crate::contract::{SessionId, Timestamp, Untrusted};
use crate::fact::{Now, SessionRead};
use crate::pi::activity::{Activity, Touched};

/// Files that two leads touched longer ago, one of them at least, are nobody's concern.
pub const COLLISION: Duration = Duration::from_secs(60 * 60);

/// What is known of one session.
#[derive(Debug, Clone)]
struct Known {
    read: Arc<SessionRead>,
    /// When that became known.
    at: Now,
}

/// What is known of the sessions of the leads that are listed.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    known: HashMap<SessionId, Known>,
    /// Who touched the files, by where they really are.
    touched: HashMap<Untrusted, Vec<(SessionId, Timestamp)>>,
    /// Those of them that more than one touched.
    shared: BTreeSet<Untrusted>,
}

impl Model {
    /// What the leads' sessions tell.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }
}

impl Sessions {
    pub(super) fn fold(&mut self, session: SessionId, read: Arc<SessionRead>, at: Now) {
        self.forget(&session);
        for (real, touched) in places(&read) {
            let by = self.touched.entry(real.clone()).or_default();
            match by.iter_mut().find(|(who, _)| *who == session) {
                // The same file by two paths.
                Some((_, at)) => *at = touched.max(*at),
                None => by.push((session.clone(), touched)),
            }
            if by.len() > 1 {
                self.shared.insert(real.clone());
            }
        }
        self.known.insert(session, Known { read, at });
    }

    /// Keeps only those of which `is_listed` says so.
    pub(super) fn retain(&mut self, is_listed: impl Fn(&SessionId) -> bool) {
        let gone: Vec<_> = self.known.keys().filter(|session| !is_listed(session)).cloned().collect();
        gone.iter().for_each(|session| self.forget(session));
    }

    fn forget(&mut self, session: &SessionId) {
        let Some(known) = self.known.remove(session) else { return };
        for (real, _) in places(&known.read) {
            let Some(by) = self.touched.get_mut(real) else { continue };
            by.retain(|(who, _)| who != session);
            if by.len() < 2 {
                self.shared.remove(real);
            }
            if by.is_empty() {
                self.touched.remove(real);
            }
        }
    }

    /// What was read of the session of `lead`, if it was looked at.
    pub fn read(&self, lead: &SessionId) -> Option<&SessionRead> {
        self.known.get(lead).map(|known| &*known.read)
    }

    /// What the agent of `lead` does, if its session tells.
    pub fn activity(&self, lead: &SessionId) -> Option<&Activity> {
        match self.read(lead)? {
            SessionRead::Activity(activity) => Some(activity),
            SessionRead::Unread(_) => None,
        }
    }

    /// How long ago `at` was, which the session of `lead` says. Never negative, whatever the clocks do.
    pub fn age(&self, lead: &SessionId, at: Timestamp, now: Now) -> Duration {
        // As of when it became known: clocks that are set later change nothing.
        let known = self.known.get(lead).map_or(now, |known| known.at);
        let before = known.wall.as_millis().saturating_sub(at.as_millis());
        Duration::from_millis(before) + now.mono.saturating_sub(known.mono)
    }

    /// Who else touched a file that `lead` did, and how long ago, the last one first; both within
    /// [`COLLISION`].
    pub fn also_by(&self, lead: &SessionId, file: &Touched, now: Now) -> Vec<(&SessionId, Duration)> {
        let own = file.at.is_some_and(|at| self.age(lead, at, now) <= COLLISION);
        let Some(real) = file.real.as_ref().filter(|real| own && self.shared.contains(*real)) else {
            return Vec::new();
        };
        let mut others: Vec<_> = self.recent(real, now).filter(|(who, _)| *who != lead).collect();
        others.sort_by(|a, b| (a.1, a.0).cmp(&(b.1, b.0)));
        others
    }

    /// The leads that touched a file that another touched, too, each within [`COLLISION`].
    pub fn colliding(&self, now: Now) -> HashSet<&SessionId> {
        let by_file = self.shared.iter().map(|real| self.recent(real, now).map(|(who, _)| who).collect());
        by_file.filter(|by: &Vec<_>| by.len() > 1).flatten().collect()
    }

    fn recent(&self, real: &Untrusted, now: Now) -> impl Iterator<Item = (&SessionId, Duration)> {
        let by = self.touched.get(real).map(Vec::as_slice).unwrap_or_default();
        let aged = by.iter().map(move |(who, at)| (who, self.age(who, *at, now)));
        aged.filter(|(_, age)| *age <= COLLISION)
    }
}

/// Where the files really are that were touched, and when.
fn places(read: &SessionRead) -> impl Iterator<Item = (&Untrusted, Timestamp)> {
    let files: &[Touched] = match read {
        SessionRead::Activity(activity) => &activity.files,
        SessionRead::Unread(_) => &[],
    };
    files.iter().filter_map(|file| Some((file.real.as_ref()?, file.at?)))
}
