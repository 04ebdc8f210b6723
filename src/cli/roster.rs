//! `headman roster --evidence FILE`: the projection of captured evidence.

use std::fmt::Write;

use crate::console::text::{self, Visible};
use crate::contract::Timestamp;
use crate::herd::left_out::managed_sentence;
use crate::herd::{Evidence, EvidenceError, Lead, Roster, order, project};

/// Columns that a name may widen its column to; a longer one stands out of line.
const WIDEST: usize = 48;

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
    let names: Vec<Visible> = order::shown_names(&roster.leads).iter().map(text::line).collect();
    let agents: Vec<Visible> = roster.leads.iter().map(|lead| text::line(&*agents_of(lead))).collect();
    let columns =
        |all: &[Visible]| all.iter().map(Visible::width).filter(|it| *it <= WIDEST).max().unwrap_or(0);
    let (name_columns, agents_columns) = (columns(&names), columns(&agents));
    let state_columns = roster.leads.iter().map(|lead| lead.state.as_str().len()).max().unwrap_or(0);
    let padded = |cell: &Visible, width: usize| cell.pad_end(width.max(cell.width())).as_str().to_owned();
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
            "{} {} {}  {:state_columns$}  {}  {}",
            if lead.needs_you() { order::NEEDS_YOU } else { ' ' },
            order::glyph(lead.state, lead.counts.active),
            padded(&names[at], name_columns),
            lead.state.as_str(),
            padded(&agents[at], agents_columns),
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

fn agents_of(lead: &Lead) -> String {
    let blocked = match lead.counts.blocked {
        0 => String::new(),
        blocked => format!(", {blocked} blocked"),
    };
    format!("{}/{} agents{blocked}", lead.counts.active, lead.counts.total)
}
