//! What a projection leaves out, and why: nothing disappears without a name.

use crate::contract::{SessionId, Untrusted};

/// What was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A live agent, with what is known of it.
    Agent {
        /// Its session.
        session: Option<Untrusted>,
        /// Its workspace's id.
        workspace: Option<Untrusted>,
        /// Its tab's id.
        tab: Option<Untrusted>,
        /// Its pane's id.
        pane: Option<Untrusted>,
    },
    /// A lead record.
    Record {
        /// The session it is of, where it could be read.
        session: Option<SessionId>,
        /// *sha256(session)*, its file's name without the ending.
        hash: Option<String>,
    },
    /// An agent that some session owns.
    ManagedAgent {
        /// Its session.
        session: SessionId,
        /// What its owner calls it.
        label: Option<Untrusted>,
    },
    /// A managed agent's mailbox.
    Mailbox {
        /// Its directory's name.
        directory: Option<String>,
    },
}

impl Subject {
    /// Which kind of thing: a stable name.
    pub fn kind(&self) -> &'static str {
        match self {
            Subject::Agent { .. } => "agent",
            Subject::Record { .. } => "lead_record",
            Subject::ManagedAgent { .. } => "managed_agent",
            Subject::Mailbox { .. } => "mailbox",
        }
    }

    /// The session concerned, where it is known.
    pub fn session(&self) -> Option<&Untrusted> {
        match self {
            Subject::Agent { session, .. } => session.as_ref(),
            Subject::Record { session, .. } => session.as_ref().map(SessionId::as_untrusted),
            Subject::ManagedAgent { session, .. } => Some(session.as_untrusted()),
            Subject::Mailbox { .. } => None,
        }
    }

    /// Names it at the beginning of a sentence; safe to print.
    fn named(&self) -> String {
        let quoted = |text: &Untrusted| format!("\"{}\"", text.escaped());
        match self {
            Subject::Agent { session, pane, .. } => {
                let session = session.as_ref().map_or("of no known session".to_owned(), quoted);
                match pane {
                    Some(pane) => format!("The agent {session} in pane {}", quoted(pane)),
                    None => format!("The agent {session}"),
                }
            }
            Subject::Record { session: Some(session), .. } => {
                format!("The lead record of {}", quoted(session.as_untrusted()))
            }
            Subject::Record { hash: Some(hash), .. } => format!("The lead record {hash}"),
            Subject::Record { .. } => "A lead record".to_owned(),
            Subject::ManagedAgent { session, label } => match label {
                Some(label) => {
                    format!("The managed agent {} {}", quoted(label), quoted(session.as_untrusted()))
                }
                None => format!("The managed agent {}", quoted(session.as_untrusted())),
            },
            Subject::Mailbox { directory: Some(directory) } => format!("The mailbox {directory}"),
            Subject::Mailbox { directory: None } => "A mailbox".to_owned(),
        }
    }
}

/// Why it was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The lead record is there and not valid; the text says why.
    UnreadableRecord(String),
    /// Two lead records are of one session.
    DuplicateRecord,
    /// Another live agent shows the same session.
    DuplicateSession,
    /// Another session shows on the same pane.
    SharedPane,
    /// Nobody could find out which session the agent runs; the text says why.
    UnknownSession(String),
    /// The session is empty or too long.
    UnusableSession,
    /// The id named (`workspace`, `tab`, `pane`) is missing, blank or too long.
    UnusablePlace(&'static str),
    /// A live agent without a lead record.
    NoRecord,
    /// A lead record without a live agent.
    NoAgent,
    /// Two managed agents have one id, or its owner is such an agent.
    AmbiguousAgent,
    /// The owners of a managed agent run in a circle.
    AgentCycle,
    /// The owners of a managed agent lead to no lead.
    NoOwner,
    /// The same, and Herdr shows nothing of the agent either: it ran under another Herdr, or its
    /// lead ended without it.
    Elsewhere,
    /// The mailbox is there and not valid; the text says why.
    BrokenMailbox(String),
    /// Another session owns the agent.
    Managed,
    /// It is the Chief itself.
    IsChief,
}

impl Reason {
    /// The reason's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::UnreadableRecord(_) => "unreadable_record",
            Reason::DuplicateRecord => "duplicate_record",
            Reason::DuplicateSession => "duplicate_session",
            Reason::SharedPane => "shared_pane",
            Reason::UnknownSession(_) => "unknown_session",
            Reason::UnusableSession => "unusable_session",
            Reason::UnusablePlace(_) => "unusable_place",
            Reason::NoRecord => "no_record",
            Reason::NoAgent => "no_agent",
            Reason::AmbiguousAgent => "ambiguous_agent",
            Reason::AgentCycle => "agent_cycle",
            Reason::NoOwner | Reason::Elsewhere => "no_owner",
            Reason::BrokenMailbox(_) => "broken_mailbox",
            Reason::Managed => "managed",
            Reason::IsChief => "is_chief",
        }
    }

    /// Whether it is how things should be, and needs nobody's attention.
    pub fn is_expected(&self) -> bool {
        matches!(self, Reason::Managed | Reason::IsChief | Reason::Elsewhere)
    }

    /// What is so, and the next step.
    fn told(&self) -> String {
        let text = match self {
            Reason::UnreadableRecord(why) => {
                return format!(
                    "is not used, because {why}. If it is a lead of yours, restart it, so that it writes its record anew; a record of another version needs a headman of that version"
                );
            }
            Reason::BrokenMailbox(why) => {
                return format!("is not used, because {why}. The lead that owns the agent can start it anew");
            }
            Reason::UnknownSession(why) => {
                return format!(
                    "is no lead yet, because {why}. Prompt it once, so that its session is written and shown"
                );
            }
            Reason::UnusablePlace(which) => {
                return format!(
                    "is no lead, because Herdr gives it no usable {which} id. Move it to a pane of its own"
                );
            }
            Reason::DuplicateRecord => {
                "is one of several of one session. Restart that lead, so that one record is left"
            }
            Reason::DuplicateSession => {
                "shows a session that another live agent shows too. Close all but one of them"
            }
            Reason::SharedPane => {
                "shares its pane with another session. Move one of them to a pane of its own"
            }
            Reason::UnusableSession => {
                "has no usable session id: 1 to 512 UTF-16 units are. Start it with a new session"
            }
            Reason::NoRecord => {
                "publishes no lead record here. If it should be a lead, check that it has the leads' \
                 extension and names the Herdr socket by the same path"
            }
            Reason::NoAgent => {
                "belongs to no agent that Herdr shows. Resume that session in a Herdr pane, or leave it"
            }
            Reason::AmbiguousAgent => {
                "can't be told from another of the same id, on its way to its lead. Stop one of the two"
            }
            Reason::AgentCycle => "is owned, over others, by itself. Stop it, and let a lead start it anew",
            Reason::NoOwner => "is owned by no lead that is listed. See first why its owner is not",
            Reason::Elsewhere => {
                "is owned by no lead that is listed, and is not in this Herdr. Nothing needs to be done if it \
                 ran under another one; else resume its lead, which then clears it away"
            }
            Reason::Managed => "is another session's managed agent. Speak to the lead that owns it",
            Reason::IsChief => "is the Chief itself. Nothing needs to be done",
        };
        text.to_owned()
    }
}

/// One thing left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What.
    pub subject: Subject,
    /// Why.
    pub reason: Reason,
}

impl LeftOut {
    /// A sentence for the operator, with the next step; safe to print, without a path.
    pub fn sentence(&self) -> String {
        format!("{} {}.", self.subject.named(), self.reason.told())
    }

    /// The same where the Chief is known to be `who`.
    pub fn sentence_of_chief(&self, who: &str) -> String {
        match self.reason {
            Reason::IsChief => format!("{} is {who}. Nothing needs to be done.", self.subject.named()),
            _ => self.sentence(),
        }
    }
}

/// How many agents of Herdr's are left out for being managed: they need no line each.
pub fn managed_sentence(count: usize) -> String {
    let (verb, who) = if count == 1 { ("is", "that owns it") } else { ("are", "that own them") };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} agent{plural} in Herdr {verb} managed by leads; speak to the leads {who}.")
}
