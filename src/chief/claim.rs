//! Becoming and ceasing to be Chief, on disk.

use std::path::PathBuf;

use super::journal::JournalError;
use super::lease::{self, Lease, LeaseError, Place};
use super::staff::Office;
use super::state_dir::{StateDir, StateError};
use crate::contract::Untrusted;
use crate::contract::role::Role;
use crate::disk::lock::{self, LockError};
use crate::disk::records::{self, Holding};
use crate::disk::thread::DiskThreadGone;
use crate::disk::{DiskError, mailboxes};
use crate::fact::{OtherChief, Standing};

/// Why we did not become Chief.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotChief {
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Gone(#[from] DiskThreadGone),
    #[error("the journal can't be read: {0}")]
    Journal(#[from] JournalError),
    #[error("this session itself has a pending ask as a lead: answer it first")]
    PendingAsk,
    #[error("our own lead record can't be read, so a pending ask can't be ruled out: {0}")]
    OwnRecord(String),
    #[error("this session owns the managed agent {0}: a Chief owns none, have it closed first")]
    OwnsAgent(String),
    #[error(
        "{0} can't be read, so it can't be ruled out that this session owns that agent: {1}. \
         Have its lead close it, or move it away"
    )]
    OwnMailbox(String, String),
}

/// Becomes Chief on disk: the lease, then the role; our own lead record goes.
pub(super) fn claim(
    office: &Office,
    state: &StateDir,
    sidecar: PathBuf,
    place: &Place,
) -> Result<Standing, NotChief> {
    let runtime = office.runtime();
    let own = match records::read_lead(runtime, office.session()) {
        Ok(record) if record.pending_ask.is_some() => return Err(NotChief::PendingAsk),
        Ok(record) => Some(record.instance),
        Err(error) if error.is_missing() => None,
        Err(error) => return Err(NotChief::OwnRecord(error.to_string())),
    };
    owns_no_agent(office)?;
    let data_root = office.agent_dir().data_root();
    let lease = Lease::claim(runtime, &data_root, &sidecar, office.session(), place, office.now().wall)?;
    let standing = Standing::Chief { lease: lease.id(), since: lease.descriptor().created_at };
    let finish = || -> Result<(), NotChief> {
        let before = state.identity()?;
        if before.role != Role::Chief {
            let mut chief = before.clone();
            chief.role = Role::Chief;
            state.write_identity(&chief)?;
        }
        if let Some(instance) = own
            && let Err(error) = records::remove_lead(runtime, office.session(), instance)
        {
            state.write_identity(&before)?;
            return Err(StateError::from(error).into());
        }
        Ok(())
    };
    match finish() {
        Ok(()) => {
            *office.lease() = Some(lease);
            Ok(standing)
        }
        Err(error) => {
            lease.release().map_err(StateError::from)?;
            Err(error)
        }
    }
}

/// Refuses unless it is certain that our session owns no managed agent.
fn owns_no_agent(office: &Office) -> Result<(), NotChief> {
    let us = office.session();
    let mailboxes = mailboxes::scan(&office.agent_dir().mailboxes());
    if let Some(own) = mailboxes.posts.iter().find(|post| post.mailbox.owner == *us) {
        return Err(NotChief::OwnsAgent(format!("\"{}\"", own.mailbox.label.escaped())));
    }
    if let Some(broken) = mailboxes.broken.iter().find(|broken| broken.could_be_of(us)) {
        let which = match &broken.directory {
            Some(directory) => format!("the mailbox {}", Untrusted::from(directory.as_str()).escaped()),
            None => "the directory of mailboxes".to_owned(),
        };
        return Err(NotChief::OwnMailbox(which, broken.error.to_string()));
    }
    Ok(())
}

pub(super) fn release(office: &Office) -> Result<(), DiskError> {
    match office.lease().take() {
        Some(lease) => lease.release(),
        None => Ok(()),
    }
}

pub(super) fn other_chief(office: &Office) -> OtherChief {
    match lease::holding(office.runtime()) {
        Ok(Holding::Held(descriptor)) if descriptor.session == *office.session() => {
            OtherChief::OwnConsole(Box::new(descriptor))
        }
        Ok(Holding::Held(descriptor)) => OtherChief::Held(Box::new(descriptor)),
        Ok(Holding::Free) => OtherChief::None,
        // That of a dead process: the next one's, which may be about to take it.
        Ok(Holding::Stale(claim)) => match lock::claimant(&office.runtime().lock(), claim.id) {
            Some(claim) => in_progress(lock::raw_pid(&claim)),
            None => OtherChief::None,
        },
        Ok(Holding::InProgress(claim)) => in_progress(lock::raw_pid(&claim)),
        Ok(Holding::Unverifiable(reason)) => OtherChief::Unverifiable(reason),
        Err(error) => OtherChief::Unverifiable(error.to_string()),
    }
}

/// Who kept us from the lease, where that process does not have it yet.
pub(super) fn about_to(refused: &NotChief) -> Option<OtherChief> {
    match refused {
        NotChief::Lease(LeaseError::OwnConsole { by }) => Some(in_progress(*by)),
        NotChief::Lease(LeaseError::Lock(LockError::Recovering { by, .. })) => {
            Some(in_progress(by.as_ref().and_then(lock::raw_pid)))
        }
        _ => None,
    }
}

fn in_progress(pid: Option<u32>) -> OtherChief {
    pid.map_or(OtherChief::InProgress, OtherChief::InProgressBy)
}
