//! One branch of a session that grows, kept from look to look, so that following costs what was
//! appended and not what there is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::entry::{Entry, Fact, Id, Kind, Model, Usage};
use super::tail::{Tail, push};
use crate::contract::Untrusted;

/// Branches that are told of, the newest first.
const MAX_TIPS: usize = 200;
/// Entries that are gone back from a branch's end for its last words.
const MAX_WORDLESS: usize = 50;

/// Which branch is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Branch {
    /// The one that the file's last entry ends.
    #[default]
    Latest,
    /// The newest one that goes through the entry at this offset.
    Through(u64),
}

/// An entry that is shown, without what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Where its text begins, in bytes from the file's beginning. Names it within the file.
    pub offset: u64,
    /// When it was written, in milliseconds since the epoch; 0 where it does not say.
    pub at: u64,
    /// The bytes of its text.
    pub length: u32,
    /// How many tools it calls; 255 stand for more as well.
    pub calls: u8,
    /// In how many ways the session goes on after it, from two on; else 0.
    pub branches: u16,
    /// What it is.
    pub kind: Kind,
    /// Whether it tells of a failure.
    pub is_error: bool,
    /// Whether it stood behind a torn line, where Pi does not see it.
    pub is_recovered: bool,
}

impl Item {
    /// The entry, unless there is nothing of it to show.
    pub fn of(entry: &Entry) -> Option<Self> {
        (entry.kind != Kind::Other).then_some(Self {
            offset: entry.offset,
            at: entry.at,
            length: entry.length,
            calls: entry.calls,
            branches: 0,
            kind: entry.kind,
            is_error: entry.is_error,
            is_recovered: entry.is_recovered,
        })
    }
}

/// What the whole file holds, all branches of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Messages of the user.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Entries that tell of a failure.
    pub errors: u32,
    /// Beginnings: entries that follow none that is there.
    pub roots: u32,
    /// What it took, of the entries that Pi sees, as Pi sums it.
    pub usage: Usage,
}

/// The end of one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tip {
    /// Where its last entry begins.
    pub offset: u64,
    /// When that was written, in milliseconds since the epoch; 0 where it does not say.
    pub at: u64,
    /// Entries since it left the others.
    pub own: usize,
    /// Whether it is the branch that the file's last entry ends.
    pub is_latest: bool,
    /// When the entry was written after which it left the others; none where it left none, or that does
    /// not say.
    pub forked: Option<u64>,
    /// The first message of the user since then, else the first in which somebody speaks.
    pub first: Option<Item>,
    /// The last entry of it in which somebody speaks.
    pub words: Option<Item>,
}

/// The number of each entry; of several of one id the last.
#[derive(Debug, Default)]
struct Numbers {
    /// Of nearly all: they take the most of what is kept.
    hex: HashMap<u32, u32>,
    others: HashMap<Id, u32>,
}

impl Numbers {
    /// Says whether an entry of that id was known.
    fn insert(&mut self, id: &Id, number: u32) -> bool {
        match id {
            Id::Hex(id) => self.hex.insert(*id, number),
            other => self.others.insert(other.clone(), number),
        }
        .is_some()
    }

    fn of(&self, id: &Id) -> Option<u32> {
        match id {
            Id::Hex(id) => self.hex.get(id),
            other => self.others.get(other),
        }
        .copied()
    }
}

/// The branch.
#[derive(Debug, Default)]
pub struct Growth {
    wanted: Branch,
    withdrawn: u64,
    /// Entries taken from the index.
    taken: usize,
    numbers: Numbers,
    /// How many entries follow each.
    children: Vec<u16>,
    totals: Totals,
    labels: Arc<BTreeMap<u64, Untrusted>>,
    name: Option<Untrusted>,
    model: Option<Arc<Model>>,
    /// The last entry of the branch.
    end: Option<u32>,
    items: Arc<Vec<Item>>,
    rebuilt: u64,
}

impl Growth {
    /// Takes what is new in the index of `tail`, and makes the branch the one that is wanted.
    pub fn follow(&mut self, tail: &Tail, wanted: Branch) {
        let entries = tail.index().entries();
        let mut stale = wanted != self.wanted;
        if tail.withdrawn() != self.withdrawn || entries.len() < self.taken {
            *self = Self { rebuilt: self.rebuilt, withdrawn: tail.withdrawn(), ..Self::default() };
            stale = true;
        }
        self.wanted = wanted;
        for at in self.taken..entries.len() {
            stale |= !self.take(entries, at, stale);
        }
        self.taken = entries.len();
        if stale {
            self.rebuild(entries);
        }
    }

    /// Takes one entry; says whether the branch is still what it has to be.
    fn take(&mut self, entries: &[Entry], at: usize, is_stale: bool) -> bool {
        let entry = &entries[at];
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        let before = at.checked_sub(1).map(|before| (&entries[before].id, number - 1));
        let parent = entry.parent.as_ref().and_then(|parent| match before {
            Some((id, number)) if id == parent => Some(number),
            _ => self.numbers.of(parent),
        });
        let is_twin = self.numbers.insert(&entry.id, number);
        push(&mut self.children, 0);
        let mut is_fork = false;
        match parent {
            Some(parent) => {
                let children = &mut self.children[parent as usize];
                *children = children.saturating_add(1);
                is_fork = *children > 1;
            }
            None => self.totals.roots += 1,
        }
        self.totals.turns += u32::from(entry.kind == Kind::User);
        self.totals.calls += u32::from(entry.calls);
        self.totals.errors += u32::from(entry.is_error);
        self.fact(entries, entry);
        let goes_on = parent == self.end && (self.end.is_some() || at == 0) && !is_fork && !is_twin;
        if goes_on && !is_stale {
            self.end = Some(number);
            if let Some(item) = Item::of(entry) {
                push(Arc::make_mut(&mut self.items), item);
            }
            self.model_of(entry);
        }
        goes_on
    }

    fn fact(&mut self, entries: &[Entry], entry: &Entry) {
        let usage = match entry.fact.as_deref() {
            Some(Fact::Answer { usage: Some(usage), .. } | Fact::Spent { usage, .. }) => *usage,
            Some(Fact::Name(name)) => {
                self.name.clone_from(name);
                return;
            }
            Some(Fact::Label { target, label }) => {
                let Some(target) = self.numbers.of(target) else { return };
                let target = entries[target as usize].offset;
                let labels = Arc::make_mut(&mut self.labels);
                match label {
                    Some(label) => labels.insert(target, label.clone()),
                    None => labels.remove(&target),
                };
                return;
            }
            _ => return,
        };
        if !entry.is_recovered {
            self.totals.usage.tokens += usage.tokens;
            self.totals.usage.cost += usage.cost;
        }
    }

    fn model_of(&mut self, entry: &Entry) {
        if let Some(Fact::Model(model) | Fact::Answer { model, .. }) = entry.fact.as_deref() {
            self.model = Some(Arc::clone(model));
        }
    }

    fn parent(&self, entry: &Entry) -> Option<usize> {
        entry.parent.as_ref().and_then(|parent| self.numbers.of(parent)).map(|at| at as usize)
    }

    /// From `end` to its root. Ends where a parent is missing, and where it would go in a circle.
    fn up<'a>(&'a self, entries: &'a [Entry], end: Option<usize>) -> impl Iterator<Item = usize> + 'a {
        let mut visited = vec![false; entries.len()];
        let next = move |at: &usize| self.parent(&entries[*at]);
        std::iter::successors(end, next).take_while(move |at| !std::mem::replace(&mut visited[*at], true))
    }

    fn rebuild(&mut self, entries: &[Entry]) {
        self.rebuilt += 1;
        let end = match self.wanted {
            Branch::Latest => entries.len().checked_sub(1),
            Branch::Through(offset) => self.newest_through(entries, offset),
        };
        let mut path: Vec<usize> = self.up(entries, end).collect();
        path.reverse();
        let mut items: Vec<Item> = Vec::with_capacity(path.len());
        self.model = None;
        for at in path {
            items.extend(Item::of(&entries[at]));
            self.model_of(&entries[at]);
            // Where nothing is shown of the entry itself, the one before it stands for it.
            if self.children[at] > 1
                && let Some(item) = items.last_mut()
            {
                item.branches = item.branches.max(self.children[at]);
            }
        }
        self.items = Arc::new(items);
        self.end = end.and_then(|end| u32::try_from(end).ok());
    }

    /// The last entry that follows the one at `offset`, however far; that itself where none does.
    fn newest_through(&self, entries: &[Entry], offset: u64) -> Option<usize> {
        let target = entries.partition_point(|entry| entry.offset < offset);
        if entries.get(target).is_none_or(|entry| entry.offset != offset) {
            return entries.len().checked_sub(1);
        }
        let mut follows = vec![false; entries.len()];
        follows[target] = true;
        for at in target + 1..entries.len() {
            // What stands before its parent is no entry that Pi writes.
            follows[at] = self.parent(&entries[at]).is_some_and(|parent| follows[parent]);
        }
        follows.iter().rposition(|follows| *follows)
    }

    /// What is shown of the branch, from its root on.
    pub fn items(&self) -> &Arc<Vec<Item>> {
        &self.items
    }

    /// How often the branch became another one otherwise than by going on.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt
    }

    /// Whether it is the one that the file's last entry ends.
    pub fn is_latest(&self) -> bool {
        self.end.map(|end| end as usize) == self.taken.checked_sub(1)
    }

    /// What the file holds.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The labels that stand, by the offset of the entry they are of.
    pub fn labels(&self) -> &Arc<BTreeMap<u64, Untrusted>> {
        &self.labels
    }

    /// The session's name, unless there is none or it was cleared.
    pub fn name(&self) -> Option<&Untrusted> {
        self.name.as_ref()
    }

    /// The model at the branch's end: the one changed to, or that answered, last.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_deref()
    }

    /// The ends of all branches, the newest first.
    pub fn tips(&self, tail: &Tail) -> Vec<Tip> {
        let entries = &tail.index().entries()[..self.taken];
        let ends = (0..entries.len()).rev().filter(|at| self.children[*at] == 0);
        let tip = |end: usize| {
            let up = || self.up(entries, Some(end));
            let own = |at: &usize| self.children[*at] < 2;
            let fork = up().find(|at| !own(at)).map(|at| entries[at].at);
            let speaks = |at: &usize| matches!(entries[*at].kind, Kind::User | Kind::Assistant);
            let begun = up().take_while(own).filter(speaks).last();
            let asked = up().take_while(own).filter(|at| entries[*at].kind == Kind::User).last();
            Tip {
                offset: entries[end].offset,
                at: entries[end].at,
                own: up().take_while(own).count(),
                is_latest: end + 1 == entries.len(),
                forked: fork.filter(|at| *at > 0),
                first: asked.or(begun).and_then(|at| Item::of(&entries[at])),
                words: up().take(MAX_WORDLESS).find(speaks).and_then(|at| Item::of(&entries[at])),
            }
        };
        ends.take(MAX_TIPS).map(tip).collect()
    }
}
