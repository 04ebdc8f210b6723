//! What the leads' sessions show by themselves: a row a lead, and below it the rounds that a signal is
//! about.

pub mod draw;

use super::listing::{Listing, Screen};
use crate::contract::SessionId;
use crate::herd::Lead;
use crate::model::Model;
use crate::model::signals::Judged;
use crate::signals::sight::Word;
use crate::signals::steer::Named;

/// The leads, and the entries of their rounds.
#[derive(Debug)]
pub struct Watched;

/// What the operator sees of them.
pub type State = Screen<Watched>;

impl Listing for Watched {
    /// The lead, and which round of it.
    type Key = (SessionId, Option<String>);

    fn keys(model: &Model) -> Vec<Self::Key> {
        listed(model).iter().map(Row::key).collect()
    }

    fn of_row(model: &Model, row: usize) -> Option<usize> {
        draw::listed_of_row(&listed(model), row)
    }
}

impl Screen<Watched> {
    /// The lead under the cursor, or whose round is.
    pub fn lead(&self) -> Option<&SessionId> {
        self.selected().map(|(lead, _)| lead)
    }

    /// The round under the cursor.
    pub fn entry<'a>(&self, model: &'a Model) -> Option<&'a Named> {
        let (lead, entry) = self.selected()?;
        let entry = entry.as_ref()?;
        model.signals().sight(lead)?.rounds.iter().find(|round| round.entry == *entry)
    }
}

/// What stands together in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Fired,
    Unverified,
    Noticed,
    Quiet,
    Unwatched,
}

impl Group {
    fn of(judged: Option<&Judged<'_>>) -> Self {
        match judged.map(|judged| judged.words.first()) {
            None => Self::Unwatched,
            Some(None) => Self::Quiet,
            Some(Some(word)) if word.is_signal() => Self::Fired,
            Some(Some(Word::Unverified)) => Self::Unverified,
            Some(Some(_)) => Self::Noticed,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Fired => "FIRED",
            Self::Unverified => "UNVERIFIED",
            Self::Noticed => "NOTICED",
            Self::Quiet => "QUIET",
            Self::Unwatched => "NOT WATCHED",
        }
    }
}

/// One thing that is listed.
enum Row<'a> {
    Lead { lead: &'a Lead, judged: Option<Judged<'a>> },
    Round { lead: &'a Lead, round: &'a Named },
}

impl Row<'_> {
    fn key(&self) -> (SessionId, Option<String>) {
        match self {
            Row::Lead { lead, .. } => (lead.session.clone(), None),
            Row::Round { lead, round } => (lead.session.clone(), Some(round.entry.clone())),
        }
    }
}

/// All of them in the order of the list.
fn listed(model: &Model) -> Vec<Row<'_>> {
    let leads = model.roster().leads.iter().map(|lead| (lead, model.judged(lead)));
    let mut leads: Vec<_> = leads.collect();
    leads.sort_by_key(|(_, judged)| Group::of(judged.as_ref()));
    let mut rows = Vec::new();
    for (lead, judged) in leads {
        let rounds = judged.as_ref().map(|judged| &judged.sight.rounds[..]).unwrap_or_default();
        rows.push(Row::Lead { lead, judged });
        rows.extend(rounds.iter().map(|round| Row::Round { lead, round }));
    }
    rows
}
