//! Leads that are here and are not ours to see: of a later release, or under another spelling of
//! the socket; and inboxes from which their leads take nothing. Nothing of theirs is ever touched.

use crate::contract::{SessionId, Untrusted};

/// Sessions named in a sentence; the others are counted.
const NAMED: usize = 8;

/// What else is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The socket as we spell it.
    pub socket: Untrusted,
    /// What a later release keeps.
    pub newer: Vec<Newer>,
    /// Leads under another spelling of the socket.
    pub elsewhere: Vec<Elsewhere>,
    /// Inboxes that old quarantined messages block.
    pub blocked: Vec<Blocked>,
}

/// A lead's inbox in which as many messages are quarantined as its lead looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The hash of the lead's session.
    pub hash: String,
    /// The session, if Herdr shows it.
    pub session: Option<SessionId>,
    /// Where it is; safe to print.
    pub directory: String,
    /// How many are quarantined.
    pub quarantined: usize,
    /// How many a lead looks at.
    pub batch: usize,
}

impl Blocked {
    /// Whose it is and what to do; safe to print.
    pub fn sentence(&self) -> String {
        let whose = match &self.session {
            Some(session) => format!("lead {}", session.escaped()),
            None => format!("a lead that Herdr does not show ({})", self.hash),
        };
        format!(
            "The inbox of {whose} is blocked, if that is a Pi: {} quarantined records, and it looks at {} at a \
             time. Move the old ones, each with its .quarantine file, out of {}",
            self.quarantined, self.batch, self.directory
        )
    }
}

/// A directory of a later release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newer {
    /// Its path; safe to print.
    pub directory: String,
    /// The records in it that concern this socket.
    pub records: usize,
}

/// Leads that Herdr shows here, and whose records stand under another hash than ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The hash.
    pub hash: String,
    /// The leads, in the order of their sessions.
    pub sessions: Vec<SessionId>,
    /// How they probably spell the socket.
    pub spelling: Option<Untrusted>,
}

impl Newer {
    /// What is there; safe to print.
    pub fn sentence(&self) -> String {
        format!(
            "{} belongs to a later release: its leads ({} records here) are not supervised, and nothing of \
             it is touched",
            self.directory, self.records
        )
    }
}

impl Elsewhere {
    /// Who is there and what to do; `ours` is how we spell the socket. Safe to print.
    pub fn sentence(&self, ours: &Untrusted) -> String {
        let (leads, one) = leads(self.sessions.len());
        let (spell, have) = if one { ("spells", "has its record") } else { ("spell", "have their records") };
        let mut named: Vec<String> =
            self.sessions.iter().take(NAMED).map(|session| session.escaped().to_string()).collect();
        if self.sessions.len() > NAMED {
            named.push(format!("and {} more", self.sessions.len() - NAMED));
        }
        let named = named.join(", ");
        let ours = ours.escaped();
        match &self.spelling {
            Some(spelling) => {
                let theirs = spelling.escaped();
                format!(
                    "{leads} that Herdr shows {spell} this socket {theirs}, we spell it {ours}. Start headman \
                     with --socket {theirs}, or those leads with our spelling: {named}"
                )
            }
            None => format!(
                "{leads} that Herdr shows {have} under another spelling of the socket ({}). \
                 Compare HERDR_SOCKET_PATH in their panes with {ours}: {named}",
                self.hash
            ),
        }
    }
}

impl Surroundings {
    /// Records of a later release that concern this socket.
    pub fn newer_records(&self) -> usize {
        self.newer.iter().map(|newer| newer.records).sum()
    }

    /// What to say above everything else: sentences without their full stops; safe to print.
    pub fn banners(&self) -> Vec<String> {
        let mut out = Vec::new();
        for elsewhere in &self.elsewhere {
            let (leads, one) = leads(elsewhere.sessions.len());
            let (uses, are) = if one { ("uses", "is") } else { ("use", "are") };
            let likely = match &elsewhere.spelling {
                Some(spelling) => format!(", likely {},", spelling.escaped()),
                None => String::new(),
            };
            out.push(format!(
                "{leads} {uses} another spelling of this socket{likely} and {are} not supervised here"
            ));
        }
        match &self.blocked[..] {
            [] => {}
            [_] => out.push("The inbox of 1 lead is blocked by old quarantined messages".to_owned()),
            all => out
                .push(format!("The inboxes of {} leads are blocked by old quarantined messages", all.len())),
        }
        if self.newer_records() > 0 {
            out.push("Leads of a newer generation are here and are not supervised".to_owned());
        }
        out
    }
}

/// How many, and whether it is one.
fn leads(count: usize) -> (String, bool) {
    if count == 1 { ("1 live lead".to_owned(), true) } else { (format!("{count} live leads"), false) }
}
