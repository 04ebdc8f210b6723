//! `headman roster --evidence FILE`: the projection of captured evidence.

use std::fmt::Write;

use crate::contract::Timestamp;
use crate::herd::left_out::managed_sentence;
use crate::herd::{Evidence, EvidenceError, Lead, Roster, order, project};

/// How the roster is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One line of JSON: the projection exactly, without what was left out.
    Json,
    /// Lines to read, with what was left out.
    Plain,
}

/// The roster of `evidence`, the bytes of a file as [`Evidence::from_json`] takes it. The text ends
/// without a newline and is safe to print.
pub fn run(evidence: &[u8], form: Form) -> Result<String, EvidenceError> {
    let roster = project(&Evidence::from_json(evidence)?);
    Ok(match form {
        Form::Json => roster.to_json(),
        Form::Plain => plain(&roster, |_| None),
    })
}

/// The roster in plain lines: groups in the order of attention, a line a lead and one for its ask,
/// then what was left out. `asked_at` is that of [`order::by_attention`].
pub fn plain(roster: &Roster, asked_at: impl Fn(&Lead) -> Option<Timestamp>) -> String {
    let names = order::shown_names(&roster.leads);
    let mut out = String::new();
    let mut group = None;
    for at in order::by_attention(&roster.leads, asked_at) {
        let lead = &roster.leads[at];
        let its_group = order::Group::of(lead);
        if group != Some(its_group) {
            group = Some(its_group);
            let _ = writeln!(out, "{}", its_group.title());
        }
        let _ = writeln!(
            out,
            "{} {} {}  {}  {}/{} agents{}  {}",
            if lead.needs_you() { order::NEEDS_YOU } else { ' ' },
            order::glyph(lead.state, lead.counts.active),
            names[at].escaped(),
            lead.state.as_str(),
            lead.counts.active,
            lead.counts.total,
            if lead.counts.blocked > 0 {
                format!(", {} blocked", lead.counts.blocked)
            } else {
                String::new()
            },
            lead.session.escaped(),
        );
        if let Some(ask) = &lead.pending_ask {
            let _ = writeln!(out, "    asks {}: {}", ask.ask, ask.question.escaped());
        }
    }
    if roster.leads.is_empty() {
        out.push_str("No leads.\n");
    }
    if !roster.left_out.is_empty() {
        out.push_str("LEFT OUT\n");
        let (managed, others) = roster.managed_and_others();
        for left_out in others {
            let _ = writeln!(out, "  {}", left_out.sentence());
        }
        if managed > 0 {
            let _ = writeln!(out, "  {}", managed_sentence(managed));
        }
    }
    out.truncate(out.trim_end().len());
    out
}
