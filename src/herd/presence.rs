//! What a managed agent does: from its mailbox, and from what Herdr shows of it. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::evidence::{AgentSession, LiveAgent, ManagedAgent, State};
use super::inventory::Inventory;
use crate::contract::Untrusted;
use crate::contract::mailbox::Post;

/// Whether Herdr shows the agent that a mailbox is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Exactly one agent is it, and nothing contradicts. Of the states only those that Herdr tells.
    Live(State),
    /// Neither its pane nor anything else of it is there.
    Lost,
    /// Something of it is there, and does not fit.
    Unknown,
}

/// The managed agents that `posts` are of, in their order.
pub fn managed_agents(posts: &[Post], inventory: &Inventory) -> Vec<ManagedAgent> {
    if posts.is_empty() {
        return Vec::new();
    }
    let sight = Sight::of(inventory);
    let waited_for: HashSet<_> = posts
        .iter()
        .filter(|post| post.has_pending_work())
        .map(|post| (&post.mailbox.workspace, &post.mailbox.owner))
        .collect();
    let managed = |post: &Post| {
        let mailbox = &post.mailbox;
        let waits_for_children = waited_for.contains(&(&mailbox.workspace, &mailbox.session));
        ManagedAgent {
            session: mailbox.session.clone(),
            owner: mailbox.owner.clone(),
            label: Some(mailbox.label.clone()),
            workspace: Some(mailbox.workspace.clone()),
            pane: Some(mailbox.pane.clone()),
            state: state(post, sight.presence(post), waits_for_children),
        }
    };
    posts.iter().map(managed).collect()
}

/// What it does; `waits_for_children` says whether an agent it owns itself has pending work. The
/// first rule that applies decides.
pub fn state(post: &Post, presence: Presence, waits_for_children: bool) -> State {
    let mailbox = &post.mailbox;
    if post.undelivered || mailbox.result_error.is_some() {
        return State::Settling;
    }
    let lifecycle = match presence {
        Presence::Live(lifecycle) => lifecycle,
        Presence::Lost => return State::Lost,
        Presence::Unknown => return State::Unknown,
    };
    if post.unacknowledged {
        return State::Settling;
    }
    let at_rest = matches!(lifecycle, State::Idle | State::Done);
    if mailbox.active_request.is_none() {
        return if at_rest { State::Settling } else { State::Unknown };
    }
    match lifecycle {
        State::Working => State::Working,
        State::Idle | State::Done | State::Blocked if mailbox.pending_ask.is_some() => State::Blocked,
        State::Blocked => State::Blocked,
        _ if at_rest && waits_for_children => State::Blocked,
        _ if at_rest => State::Settling,
        _ => State::Unknown,
    }
}

/// An agent of Herdr's, Pi's or not.
struct Seen<'a> {
    name: Option<&'a Untrusted>,
    place: Option<(&'a Untrusted, &'a Untrusted)>,
    pi: Option<&'a LiveAgent>,
}

impl Seen<'_> {
    /// Whether it shows the session: by its id, else, where nobody could read its file, by that.
    fn shows_session(&self, post: &Post) -> bool {
        match self.pi.map(|agent| (&agent.session, &agent.session_file)) {
            Some((AgentSession::Known(session), _)) => session == post.mailbox.session.as_untrusted(),
            Some((AgentSession::Unknown(_), Some(file))) => post.mailbox.session_file.as_ref() == Some(file),
            Some((AgentSession::Unknown(_), None)) | None => false,
        }
    }

    /// Whether everything it shows is the mailbox's.
    fn is_of(&self, post: &Post) -> bool {
        let own_name = self.name.is_none_or(|name| *name == post.alias);
        let at_home = self.pi.is_some_and(|agent| match agent.cwd.as_ref().filter(|cwd| !cwd.is_empty()) {
            None => true,
            Some(cwd) => *cwd == post.mailbox.cwd || *agent.real_cwd.as_ref().unwrap_or(cwd) == post.real_cwd,
        });
        own_name
            && self.place == Some((&post.mailbox.workspace, &post.mailbox.pane))
            && at_home
            && self.shows_session(post)
    }
}

/// What Herdr shows, found by each of the things that may tie it to a mailbox.
struct Sight<'a> {
    panes: HashSet<(&'a Untrusted, &'a Untrusted)>,
    seen: Vec<Seen<'a>>,
    /// By name, by session and by session file: any text may be each of them.
    by_text: HashMap<&'a Untrusted, Vec<usize>>,
    by_place: HashMap<(&'a Untrusted, &'a Untrusted), Vec<usize>>,
}

impl<'a> Sight<'a> {
    fn of(inventory: &'a Inventory) -> Self {
        let pi = inventory.agents.iter().map(|agent| Seen {
            name: agent.herdr_name.as_ref().filter(|name| !name.is_empty()),
            place: agent.workspace.as_ref().zip(agent.pane.as_ref()),
            pi: Some(agent),
        });
        let others = inventory.other_agents.iter().map(|agent| Seen {
            name: agent.name.as_ref().filter(|name| !name.is_empty()),
            place: Some((&agent.workspace, &agent.pane)),
            pi: None,
        });
        let mut sight = Self {
            panes: inventory.panes.iter().map(|(workspace, pane)| (workspace, pane)).collect(),
            seen: pi.chain(others).collect(),
            by_text: HashMap::new(),
            by_place: HashMap::new(),
        };
        for (at, seen) in sight.seen.iter().enumerate() {
            let session = seen.pi.and_then(|agent| match &agent.session {
                AgentSession::Known(session) => Some(session),
                AgentSession::Unknown(_) => agent.session_file.as_ref(),
            });
            for text in [seen.name, session].into_iter().flatten() {
                sight.by_text.entry(text).or_default().push(at);
            }
            if let Some(place) = seen.place {
                sight.by_place.entry(place).or_default().push(at);
            }
        }
        sight
    }

    fn presence(&self, post: &Post) -> Presence {
        let mailbox = &post.mailbox;
        let place = (&mailbox.workspace, &mailbox.pane);
        let mut near = BTreeSet::new();
        near.extend(self.by_place.get(&place).into_iter().flatten().copied());
        let texts = [Some(&post.alias), Some(mailbox.session.as_untrusted()), mailbox.session_file.as_ref()];
        for at in texts.into_iter().flatten().filter_map(|text| self.by_text.get(text)).flatten() {
            let seen = &self.seen[*at];
            if seen.name == Some(&post.alias) || seen.shows_session(post) {
                near.insert(*at);
            }
        }
        let has_pane = self.panes.contains(&place);
        let mut near = near.into_iter().map(|at| &self.seen[at]);
        match (near.next(), near.next()) {
            (None, _) if !has_pane => Presence::Lost,
            (Some(only), None) if has_pane && only.is_of(post) => {
                Presence::Live(only.pi.map_or(State::Unknown, |agent| agent.state))
            }
            _ => Presence::Unknown,
        }
    }
}
