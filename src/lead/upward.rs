//! Whether a lead may write up: the section "Authority" of `docs/contract.md`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::coordination::Coordination;
use crate::contract::{Descriptor, Message, SessionId, Untrusted};
use crate::disk::inbox::{self, InboxError};
use crate::disk::layout::InboxDir;
use crate::disk::records::{self, Holding};
use crate::disk::{AgentDir, DiskError, Runtime};
use crate::herdr::{Agent, AgentSession, Client, HerdrError};
use crate::pi::session::HeaderCache;

/// How long another process gets that works on the message which we publish.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two tries.
const RETRY: Duration = Duration::from_millis(20);

/// Why nothing was written up. An ask then stays pending in the lead's record, where the Chief sees
/// it all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUp {
    /// Nobody holds the lease, or it can't be told who.
    #[error("there is no Chief to write to: {0}")]
    NoChief(String),
    /// This session is itself the Chief.
    #[error("this session is the Chief itself")]
    SelfChief,
    /// Herdr lists the Chief not at all, more than once, or where its descriptor does not say.
    #[error("the Chief can't be verified: {0}")]
    NotListed(String),
    /// Herdr does not answer.
    #[error("the Chief can't be verified: {0}")]
    Herdr(#[from] HerdrError),
    /// The lead's own record is not as it was written.
    #[error("the lead's own record is not as it was written: {0}. Start the lead again")]
    Unhealthy(String),
    /// The Chief's inbox can't be written.
    #[error("can't put it into the Chief's inbox: {0}")]
    Inbox(#[from] InboxError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The Chief whose lease stands: its descriptor, carried by the live claim of its lock.
pub(super) fn standing_chief(runtime: &Runtime, us: &SessionId) -> Result<Descriptor, NotUp> {
    let none = |why: &str| Err(NotUp::NoChief(why.to_owned()));
    match records::read_holding(runtime)? {
        Holding::Held(descriptor) if descriptor.session == *us => Err(NotUp::SelfChief),
        Holding::Held(descriptor) => Ok(descriptor),
        Holding::Free => none("nobody holds the lease"),
        Holding::InProgress(_) => none("the lease is just being taken"),
        Holding::Stale(claim) => none(&format!("process {}, which held the lease, is gone", claim.pid)),
        Holding::Unverifiable(why) => Err(NotUp::NoChief(why)),
    }
}

/// Puts the message of an ask into the Chief's inbox, unless it stands there. Another process of this
/// lead may just be doing the same, or the Chief be taking it out: that is waited for.
pub(super) async fn publish_ask(
    agent_dir: &AgentDir,
    chiefs: &InboxDir,
    message: &Message,
) -> Result<(), InboxError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match inbox::publish_ask(agent_dir.path(), chiefs, message) {
            Err(InboxError::Lock(error)) if error.is_occupied() && Instant::now() < deadline => {
                tokio::time::sleep(RETRY).await;
            }
            published => return published.map(drop),
        }
    }
}

/// Looks in Herdr, twice, for the one agent that is the Chief of `descriptor`, on its very pane.
pub(super) async fn verify_listed(
    client: &Client,
    headers: &mut HeaderCache,
    descriptor: &Descriptor,
) -> Result<(), NotUp> {
    let Some(tab) = &descriptor.tab else {
        return Err(NotUp::NotListed("its descriptor names no tab".to_owned()));
    };
    for _ in 0..2 {
        let (agents, _) = client.agent_list().await?;
        let mut found =
            agents.iter().filter(|agent| is_session(agent, &descriptor.session, headers)).collect::<Vec<_>>();
        let Some(agent) = found.pop() else {
            return Err(NotUp::NotListed("Herdr lists no agent of its session".to_owned()));
        };
        if !found.is_empty() {
            let count = found.len() + 1;
            return Err(NotUp::NotListed(format!("Herdr lists {count} agents of its session")));
        }
        let there = agent.pane_id == descriptor.pane
            && agent.tab_id == *tab
            && agent.workspace_id == descriptor.workspace;
        if !there {
            return Err(NotUp::NotListed("Herdr lists it on another pane than it says".to_owned()));
        }
    }
    Ok(())
}

impl Coordination {
    /// Whether Herdr lists this lead: a Chief refuses what others send.
    ///
    /// # Errors
    /// Herdr does not answer.
    pub async fn is_listed(&mut self) -> Result<bool, HerdrError> {
        let (agents, _) = self.client.agent_list().await?;
        Ok(agents.iter().any(|agent| is_session(agent, &self.session, &mut self.headers)))
    }
}

fn is_session(agent: &Agent, session: &SessionId, headers: &mut HeaderCache) -> bool {
    let Some(AgentSession { source, agent, kind, value }) = &agent.agent_session else { return false };
    if *source != "herdr:pi" || *agent != "pi" {
        return false;
    }
    match kind.as_wtf8() {
        b"id" => value == session.as_untrusted(),
        // A file whose header can't be read is of no known session, so not of the Chief's.
        b"path" => headers.header(&path_of(value)).is_ok_and(|header| header.session == *session),
        _ => false,
    }
}

fn path_of(path: &Untrusted) -> PathBuf {
    PathBuf::from(path.to_str_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Claim, Kind, Timestamp, Uuid};
    use crate::disk::ProcessLock;

    #[tokio::test]
    async fn an_ask_on_which_another_process_works_is_published_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), dir.path());
        let chief = SessionId::new("chief").unwrap();
        let lead = SessionId::new("lead").unwrap();
        let inbox = agent_dir.runtime("s".as_ref()).inbox(&chief);
        std::fs::create_dir_all(inbox.path()).unwrap();
        let message = Message {
            id: Uuid::random(),
            lease: Uuid::random(),
            kind: Kind::LeadAsk,
            from: lead.clone(),
            to: chief,
            lead,
            ask: Some(Uuid::random()),
            text: "Go on?".into(),
            created_at: Timestamp::from_millis(1),
        };
        let lock = ProcessLock::acquire(&inbox.lock(message.id), Claim::own(), &|_| false).unwrap();
        let publishing = publish_ask(&agent_dir, &inbox, &message);
        tokio::pin!(publishing);
        let waits = tokio::time::timeout(RETRY * 3, &mut publishing).await;
        assert!(waits.is_err(), "{waits:?}");
        assert!(!inbox.message(message.id).exists());
        lock.release().unwrap();
        publishing.await.unwrap();
        assert!(inbox.message(message.id).exists());
    }
}
