//! The tree of a session's entries, and the branch that its last entry ends.

use std::collections::{BTreeMap, HashMap};

use super::entry::{Entry, Fact, Id, Model, Usage};
use super::tail::Index;
use crate::contract::Untrusted;

/// Which entries count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Those that Pi sees.
    ByPi,
    /// Also those that were recovered from behind torn lines.
    WithRecovered,
}

/// Where the thinking level stands while nothing set it.
const NO_THINKING: &str = "off";

/// The tree. Entries are named by their number in [`Index::entries`].
#[derive(Debug)]
pub struct Tree<'a> {
    entries: &'a [Entry],
    seen: Seen,
    /// Of several entries of one id the last.
    by_id: HashMap<&'a Id, usize>,
}

/// How a tree is grown, for diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Entries that follow none, or none that is there.
    pub roots: usize,
    /// Those of them whose parent is missing.
    pub orphans: usize,
    /// Places where the tree goes on in several ways; the beginning is one where there are several
    /// entries without a parent.
    pub branch_points: usize,
}

impl<'a> Tree<'a> {
    /// The tree of the entries that count.
    pub fn of(index: &'a Index, seen: Seen) -> Self {
        let mut tree = Self { entries: index.entries(), seen, by_id: HashMap::new() };
        tree.by_id = tree.counting().map(|(at, entry)| (&entry.id, at)).collect();
        tree
    }

    fn counting(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Entry)> + use<'a> {
        let seen = self.seen;
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(_, entry)| seen == Seen::WithRecovered || !entry.is_recovered)
    }

    fn facts(&self) -> impl DoubleEndedIterator<Item = &'a Fact> + use<'a> {
        self.counting().filter_map(|(_, entry)| entry.fact.as_deref())
    }

    /// The entry `at`.
    pub fn entry(&self, at: usize) -> Option<&'a Entry> {
        self.entries.get(at)
    }

    /// The last entry in the file's order, whatever it is: what is written next follows it.
    pub fn leaf(&self) -> Option<usize> {
        self.counting().next_back().map(|(at, _)| at)
    }

    /// From the root to the leaf. Ends where a parent is missing, and where it would go in a circle.
    pub fn branch(&self) -> Vec<usize> {
        let mut branch = Vec::new();
        let mut visited = vec![false; self.entries.len()];
        let mut next = self.leaf();
        while let Some(at) = next.filter(|at| !std::mem::replace(&mut visited[*at], true)) {
            branch.push(at);
            next = self.entries[at].parent.as_ref().and_then(|parent| self.by_id.get(parent)).copied();
        }
        branch.reverse();
        branch
    }

    /// How it is grown.
    pub fn shape(&self) -> Shape {
        let mut shape = Shape::default();
        let mut children: HashMap<Option<&Id>, usize> = HashMap::new();
        for (at, entry) in self.counting() {
            if self.by_id.get(&entry.id) != Some(&at) {
                continue;
            }
            *children.entry(entry.parent.as_ref()).or_default() += 1;
            let is_orphan = entry.parent.as_ref().is_some_and(|parent| !self.by_id.contains_key(parent));
            shape.orphans += usize::from(is_orphan);
            shape.roots += usize::from(is_orphan || entry.parent.is_none());
        }
        shape.branch_points = children.values().filter(|count| **count > 1).count();
        shape
    }

    /// The labels that stand, by the entry they are of.
    pub fn labels(&self) -> BTreeMap<usize, Untrusted> {
        let mut labels = BTreeMap::new();
        for fact in self.facts() {
            let Fact::Label { target, label } = fact else { continue };
            let Some(at) = self.by_id.get(target) else { continue };
            match label {
                Some(label) => labels.insert(*at, label.clone()),
                None => labels.remove(at),
            };
        }
        labels
    }

    /// The session's name, unless there is none or it was cleared.
    pub fn name(&self) -> Option<Untrusted> {
        let mut names = self.facts().filter_map(|fact| match fact {
            Fact::Name(name) => Some(name.clone()),
            _ => None,
        });
        names.next_back().flatten()
    }

    /// The model in use at the end of `branch`: the one changed to, or that answered, last.
    pub fn model(&self, branch: &[usize]) -> Option<Model> {
        let facts = branch.iter().rev().filter_map(|at| self.entries[*at].fact.as_deref());
        facts.into_iter().find_map(|fact| match fact {
            Fact::Model(model) | Fact::Answer { model, .. } => Some((**model).clone()),
            _ => None,
        })
    }

    /// The thinking level at the end of `branch`.
    pub fn thinking(&self, branch: &[usize]) -> Untrusted {
        let facts = branch.iter().rev().filter_map(|at| self.entries[*at].fact.as_deref());
        let level = facts.into_iter().find_map(|fact| match fact {
            Fact::Thinking(level) => Some(level.clone()),
            _ => None,
        });
        level.unwrap_or_else(|| NO_THINKING.into())
    }

    /// What the whole file took, all branches of it: by model, and without one for tools and summaries.
    pub fn usage(&self) -> BTreeMap<Option<Model>, Usage> {
        let mut all: BTreeMap<Option<Model>, Usage> = BTreeMap::new();
        for fact in self.facts() {
            let (model, usage) = match fact {
                Fact::Answer { model, usage: Some(usage) } => (Some(model), usage),
                Fact::Spent { model, usage } => (model.as_ref(), usage),
                _ => continue,
            };
            let sum = all.entry(model.map(|model| (**model).clone())).or_default();
            sum.tokens += usage.tokens;
            sum.cost += usage.cost;
        }
        all
    }
}
