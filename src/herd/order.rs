//! What a lead is called and where it stands: names, their order, groups and glyphs, after
//! `docs/contract.md`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use icu_collator::options::CollatorOptions;
use icu_collator::{CollatorBorrowed, CollatorPreferences};

use super::evidence::{LiveAgent, Provenance, State};
use super::roster::Lead;
use crate::contract::{NativeId, PeerRecord, SessionId, Timestamp, Untrusted};

/// Fewest characters of a session that tell equal names apart.
pub const MIN_PREFIX: usize = 8;

/// Stands beside the state of a lead that waits for an answer, never in its place.
pub const NEEDS_YOU: char = '!';

/// What a lead is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Workspace label `/` name.
    pub display_name: Untrusted,
    /// Where it works.
    pub workspace_label: Untrusted,
    /// The lead's own name.
    pub name: Untrusted,
}

/// A lead's names. `provenance` is that of its workspace; one that is there and says nothing still
/// stands in the way of the agent's own directory.
pub fn names(
    agent: &LiveAgent,
    session: &SessionId,
    workspace: &NativeId,
    provenance: Option<&Provenance>,
) -> Names {
    let name = name(agent, session);
    let workspace_label = match provenance {
        Some(provenance) => provenance_label(provenance),
        None => agent.cwd.as_ref().and_then(last_part),
    };
    let workspace_label = workspace_label.unwrap_or_else(|| workspace.as_untrusted().clone());
    Names { display_name: joined(&workspace_label, "/", &name), workspace_label, name }
}

fn provenance_label(provenance: &Provenance) -> Option<Untrusted> {
    fn present(text: &Option<Untrusted>) -> Option<&Untrusted> {
        text.as_ref().filter(|text| !text.is_empty())
    }
    (present(&provenance.repo).zip(present(&provenance.branch)))
        .map(|(repo, branch)| joined(repo, "/", branch))
        .or_else(|| present(&provenance.label).cloned())
        .or_else(|| provenance.cwd.as_ref().and_then(last_part))
}

fn name(agent: &LiveAgent, session: &SessionId) -> Untrusted {
    let trimmed =
        |text: &Option<Untrusted>| text.as_ref().map(Untrusted::trim).filter(|text| !text.is_empty());
    trimmed(&agent.token_name)
        .or_else(|| trimmed(&agent.session_name))
        .or_else(|| {
            trimmed(&agent.herdr_name).filter(|name| name != session.as_untrusted() && !is_opaque(name))
        })
        .or_else(|| trimmed(&agent.tab_label))
        .unwrap_or_else(|| unnamed(session))
}

/// What a lead is called that has no name.
pub fn unnamed(session: &SessionId) -> Untrusted {
    joined(&Untrusted::from("lead-"), "", &session.as_untrusted().first_units(MIN_PREFIX))
}

/// What a peer calls itself.
pub fn peer_name(record: &PeerRecord) -> Untrusted {
    record.name.as_ref().map_or_else(|| unnamed(&record.session), |name| name.as_untrusted().clone())
}

/// What a peer is shown as of which not everything may be known.
pub fn peer_shown(record: Option<&PeerRecord>, session: Option<&SessionId>, hash: &str) -> Untrusted {
    match (record, session) {
        (Some(record), _) => peer_display_name(record),
        (None, Some(session)) => unnamed(session),
        (None, None) => Untrusted::from(hash).first_units(2 * MIN_PREFIX),
    }
}

/// What a peer is shown as: like a lead, by where it works and its name.
pub fn peer_display_name(record: &PeerRecord) -> Untrusted {
    let text = |id: &Option<NativeId>| id.as_ref().map(|id| id.as_untrusted().clone());
    let provenance = Provenance {
        repo: text(&record.repo),
        branch: text(&record.branch),
        label: text(&record.workspace_label),
        cwd: text(&record.cwd),
    };
    let label = provenance_label(&provenance).unwrap_or_else(|| record.workspace.as_untrusted().clone());
    joined(&label, "/", &peer_name(record))
}

/// A name that only a program could have given: it ends in `_` and 16 hex digits.
fn is_opaque(name: &Untrusted) -> bool {
    let bytes = name.as_wtf8();
    (bytes.len().checked_sub(17))
        .is_some_and(|start| bytes[start] == b'_' && bytes[start + 1..].iter().all(u8::is_ascii_hexdigit))
}

/// A tab's label, where it says more than the tab's number; for [`LiveAgent::tab_label`].
pub fn tab_label(label: &Untrusted, number: Option<u64>) -> Option<Untrusted> {
    let label = label.trim();
    let is_number = number.is_some_and(|number| label == number.to_string().as_str());
    (!label.is_empty() && !is_number).then_some(label)
}

/// The last part of a path, slashes at its end aside; nothing for the root.
fn last_part(path: &Untrusted) -> Option<Untrusted> {
    let bytes = path.as_wtf8();
    let end = bytes.iter().rposition(|byte| *byte != b'/')? + 1;
    let start = bytes[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    Some(Untrusted::from_wtf8(&bytes[start..end]))
}

fn joined(first: &Untrusted, between: &str, second: &Untrusted) -> Untrusted {
    Untrusted::from_wtf8(&[first.as_wtf8(), between.as_bytes(), second.as_wtf8()].concat())
}

/// The root collation, which is also that of en-US. Its data is compiled in, so it is always there.
static COLLATOR: LazyLock<Option<CollatorBorrowed<'static>>> = LazyLock::new(|| {
    CollatorBorrowed::try_new(CollatorPreferences::default(), CollatorOptions::default()).ok()
});

/// As ICU's root collation compares. Different texts may be equal: it does not see controls.
pub fn collate(a: &Untrusted, b: &Untrusted) -> Ordering {
    let (a, b) = (a.to_str_lossy(), b.to_str_lossy());
    match &*COLLATOR {
        Some(collator) => collator.compare(&a, &b),
        None => a.cmp(&b),
    }
}

/// The order of leads: by display name, then session, both as ICU does; what is equal to ICU, by
/// the very characters.
pub fn compare_leads(a: &Lead, b: &Lead) -> Ordering {
    collate(&a.display_name, &b.display_name)
        .then_with(|| collate(a.session.as_untrusted(), b.session.as_untrusted()))
        .then_with(|| a.session.cmp(&b.session))
}

/// Where a lead stands on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// It waits for an answer, whatever it does meanwhile.
    NeedsYou,
    /// It works.
    Working,
    /// It is blocked.
    Blocked,
    /// It is idle or done.
    Idle,
    /// Anything else.
    Unknown,
    /// It asks, and that is put off; of this only a console knows.
    Snoozed,
}

impl Group {
    /// A lead's group.
    pub fn of(lead: &Lead) -> Self {
        match lead.state {
            _ if lead.needs_you() => Group::NeedsYou,
            State::Working => Group::Working,
            State::Blocked => Group::Blocked,
            State::Idle | State::Done => Group::Idle,
            State::Unknown | State::Settling | State::Starting | State::Lost => Group::Unknown,
        }
    }

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::NeedsYou => "NEEDS YOU",
            Group::Working => "WORKING",
            Group::Blocked => "BLOCKED",
            Group::Idle => "IDLE",
            Group::Unknown => "UNKNOWN",
            Group::Snoozed => "SNOOZED",
        }
    }
}

/// The leads' positions in the order of attention: by group, among those that need you the oldest
/// ask first (one of unknown age last), then as they stand, which is by display name.
///
/// `asked_at` gives the time of a lead's pending ask; where it gives none, names decide alone.
pub fn by_attention(leads: &[Lead], asked_at: impl Fn(&Lead) -> Option<Timestamp>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..leads.len()).collect();
    order.sort_by_cached_key(|at| {
        let group = Group::of(&leads[*at]);
        let asked = if group == Group::NeedsYou { asked_at(&leads[*at]) } else { None };
        (group, asked.is_none(), asked, *at)
    });
    order
}

/// The glyph of a state; `active` is how many active agents it has, 0 for an agent.
pub fn glyph(state: State, active: usize) -> char {
    match state {
        State::Working => '●',
        State::Blocked => '◐',
        State::Settling | State::Starting => '◌',
        State::Idle | State::Done if active > 0 => '◉',
        State::Idle | State::Done => '○',
        State::Unknown => '?',
        State::Lost => '×',
    }
}

/// What each lead is shown as: its display name, and where that is not its alone, ` · ` and as much
/// of its session as tells it apart, at least [`MIN_PREFIX`] characters.
///
/// A lead that names itself after another's longer form gets one too.
pub fn shown_names(leads: &[Lead]) -> Vec<Untrusted> {
    // Characters of the session shown; 0: none.
    let mut shown: Vec<usize> = vec![0; leads.len()];
    loop {
        let names: Vec<Untrusted> =
            leads.iter().zip(&shown).map(|(lead, characters)| shown_name(lead, *characters)).collect();
        let mut of_name: HashMap<&Untrusted, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            of_name.entry(name).or_default().push(at);
        }
        let mut changed = false;
        for at in of_name.into_values().filter(|same| same.len() > 1).flatten() {
            // A session has no more characters than units.
            if shown[at] < leads[at].session.as_untrusted().utf16_len() {
                shown[at] = (shown[at] + 1).max(MIN_PREFIX);
                changed = true;
            }
        }
        if !changed {
            return names;
        }
    }
}

fn shown_name(lead: &Lead, characters: usize) -> Untrusted {
    if characters == 0 {
        return lead.display_name.clone();
    }
    let bytes = lead.session.as_untrusted().as_wtf8();
    let end = (bytes.iter().enumerate())
        .filter(|(_, byte)| **byte & 0xC0 != 0x80)
        .nth(characters)
        .map_or(bytes.len(), |(at, _)| at);
    joined(&lead.display_name, " · ", &Untrusted::from_wtf8(&bytes[..end]))
}
