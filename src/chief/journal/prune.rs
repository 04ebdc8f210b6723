//! Removing whole months from the journal, and which of them have to stay.

use std::collections::HashSet;
use std::fmt;

use super::segments::{JournalError, Month, Tally};
use super::{Event, Journal};
use crate::contract::{SessionId, Timestamp, Uuid};
use crate::disk::durable;

/// What else still needs what the journal knows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Needed {
    /// The names of the files that stand in our inbox: one of a removed event would be received
    /// again.
    pub in_inbox: HashSet<Uuid>,
    /// The asks that are pending: of one that is not known the message would be published again.
    pub pending: HashSet<(SessionId, Uuid)>,
    /// The leads whose records can't be read: any ask of theirs may be pending.
    pub unreadable: HashSet<SessionId>,
}

/// Why a segment stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// So many messages of ours are not settled.
    Queued(usize),
    /// So many asks are pending still.
    PendingAsk(usize),
    /// So many asks are of leads whose records can't be read.
    Unreadable(usize),
    /// So many received messages still stand in our inbox.
    InInbox(usize),
    /// So many lines are of a later release.
    LaterRelease(usize),
    /// It may say what became of what another one holds that stays.
    RefersBack,
}

impl Why {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Why::Queued(_) => "queued",
            Why::PendingAsk(_) => "pending_ask",
            Why::Unreadable(_) => "unreadable_lead",
            Why::InInbox(_) => "in_inbox",
            Why::LaterRelease(_) => "later_release",
            Why::RefersBack => "refers_back",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Queued(1) => f.write_str("a message of yours in it is still queued"),
            Why::Queued(count) => write!(f, "{count} messages of yours in it are still queued"),
            Why::PendingAsk(1) => f.write_str("an ask in it is still pending"),
            Why::PendingAsk(count) => write!(f, "{count} asks in it are still pending"),
            Why::Unreadable(1) => f.write_str("an ask in it is of a lead whose record can't be read"),
            Why::Unreadable(count) => {
                write!(f, "{count} asks in it are of leads whose records can't be read")
            }
            Why::InInbox(1) => f.write_str("a message in it still stands in the inbox"),
            Why::InInbox(count) => write!(f, "{count} messages in it still stand in the inbox"),
            Why::LaterRelease(1) => f.write_str("a line in it is of a later release"),
            Why::LaterRelease(count) => write!(f, "{count} lines in it are of a later release"),
            Why::RefersBack => f.write_str("it may say what became of messages in one that stays"),
        }
    }
}

/// A segment that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub month: Month,
    /// Its lines.
    pub tally: Tally,
    /// Messages received.
    pub received: usize,
    /// Messages sent.
    pub sent: usize,
    /// The numbers of those received that nobody has read.
    pub unread: Vec<u64>,
}

/// A segment that stays although it is old enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub month: Month,
    /// Why.
    pub why: Why,
}

/// What pruning does.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What goes, the oldest first: stopped halfway, what is left is a whole.
    pub gone: Vec<Gone>,
    /// What stays, by month.
    pub kept: Vec<Kept>,
}

impl Journal {
    /// What goes of the months before `before`. The month of `now` stays, what something else still
    /// needs stays, and all that was written after it: that may say what became of it.
    pub fn plan(&self, before: Month, needed: &Needed, now: Timestamp) -> Plan {
        let before = before.min(Month::of(now));
        let mut plan = Plan::default();
        for (at, segment) in self.segments.iter().enumerate().filter(|(_, it)| it.month < before) {
            let refers_back = (!plan.kept.is_empty()).then_some(Why::RefersBack);
            match self.why_kept(at, needed).or(refers_back) {
                Some(why) => plan.kept.push(Kept { month: segment.month, why }),
                None => plan.gone.push(self.gone(at)),
            }
        }
        plan
    }

    fn why_kept(&self, segment: usize, needed: &Needed) -> Option<Why> {
        let is_here = |at: u32| at as usize == segment;
        let open = self.index.sent().filter(|it| is_here(it.place.segment) && it.is_open()).count();
        let asks = || self.index.asks().filter(|(_, asked)| is_here(asked.segment)).map(|(ask, _)| ask);
        // Whoever removes that an ask is put off has it back.
        let snoozed =
            (self.index.snoozes()).filter(|(_, snoozed)| is_here(snoozed.segment)).map(|(ask, _)| ask);
        let pending: HashSet<_> = asks().chain(snoozed).filter(|ask| needed.pending.contains(*ask)).collect();
        let pending = pending.len();
        let unreadable = asks().filter(|(lead, _)| needed.unreadable.contains(lead)).count();
        let waiting = (self.index.received())
            .filter(|it| is_here(it.place.segment) && needed.in_inbox.contains(&it.id))
            .count();
        let later = self.segments[segment].tally.later;
        let whys = [
            (open, Why::Queued(open)),
            (pending, Why::PendingAsk(pending)),
            (unreadable, Why::Unreadable(unreadable)),
            (waiting, Why::InInbox(waiting)),
            (later, Why::LaterRelease(later)),
        ];
        whys.into_iter().find(|(count, _)| *count > 0).map(|(_, why)| why)
    }

    fn gone(&self, segment: usize) -> Gone {
        let received = || self.index.received().filter(move |it| it.place.segment as usize == segment);
        Gone {
            month: self.segments[segment].month,
            tally: self.segments[segment].tally,
            received: received().count(),
            sent: self.index.sent().filter(|it| it.place.segment as usize == segment).count(),
            unread: received().filter(|it| it.is_unread()).map(|it| it.seq).collect(),
        }
    }

    /// Removes what a plan says; first it is written down, so that no number is ever given twice.
    /// For the holder of the advisory lock alone.
    pub fn prune(&mut self, plan: &Plan, now: Timestamp) -> Result<(), JournalError> {
        if plan.gone.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = plan.gone.iter().map(|gone| gone.month.segment()).collect();
        self.append(&[Event::Pruned(&names)], now)?;
        let removed = names.iter().try_for_each(|name| durable::unlink(&self.directory.join(name)).map(drop));
        let synced = durable::sync_directory(&self.directory);
        *self = Self::open(&self.directory)?;
        removed.and(synced)?;
        Ok(())
    }
}
