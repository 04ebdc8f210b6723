//! Sessions and asks by the beginnings of their ids.

use crate::contract::{SessionId, Untrusted, Uuid};
use crate::herd::{Lead, Roster};

/// Characters that the beginning of an id must have to stand for it.
pub(super) const SHORTEST: usize = 8;

/// An ask's id or the beginning of one.
pub(super) fn ask_prefix(text: &str) -> Option<String> {
    let is_hex = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    let is_part = (SHORTEST..36).contains(&text.len()) && text.bytes().all(is_hex);
    (is_part || Uuid::parse(text).is_some()).then(|| text.to_ascii_lowercase())
}

/// The lead whose session is `wanted` or, if there is none, the only one whose session begins so.
pub(super) fn lead_of<'a>(roster: &'a Roster, wanted: &SessionId) -> Result<&'a Lead, String> {
    if let Some(lead) = roster.lead(wanted) {
        return Ok(lead);
    }
    if let Some(left_out) = roster.why_not(wanted) {
        return Err(left_out.sentence());
    }
    let found: Vec<&Lead> =
        roster.leads.iter().filter(|lead| is_meant(&lead.session, wanted.as_untrusted())).collect();
    match found[..] {
        [lead] => Ok(lead),
        [] if wanted.as_untrusted().utf16_len() < SHORTEST => Err(format!(
            "session {} is no lead that Herdr shows; the beginning of one has {SHORTEST} characters or more",
            wanted.escaped()
        )),
        [] => Err(format!("session {} is no lead that Herdr shows", wanted.escaped())),
        _ => {
            let sessions: Vec<_> = found.iter().map(|lead| lead.session.escaped().to_string()).collect();
            Err(format!("{} leads' sessions begin so: {}", found.len(), sessions.join(", ")))
        }
    }
}

/// Whether `session` is `wanted`, or begins so.
pub(super) fn is_meant(session: &SessionId, wanted: &Untrusted) -> bool {
    let session = session.as_untrusted();
    session == wanted || wanted.utf16_len() >= SHORTEST && session.as_wtf8().starts_with(wanted.as_wtf8())
}

/// The shortest beginning of `session` that stands for it among `all`.
pub(super) fn shortest<'a>(session: &SessionId, all: impl Iterator<Item = &'a SessionId>) -> Untrusted {
    let text = session.as_untrusted();
    let others: Vec<_> = all.filter(|other| *other != session).map(SessionId::as_untrusted).collect();
    let lengths = SHORTEST..text.utf16_len();
    let beginnings = lengths.map(|length| text.first_units(length));
    let is_alone = |it: &Untrusted| !others.iter().any(|other| other.as_wtf8().starts_with(it.as_wtf8()));
    beginnings.into_iter().find(is_alone).unwrap_or_else(|| text.clone())
}
