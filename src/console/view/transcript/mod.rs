//! The transcript of a session: reading only.
//!
//! Rows have no numbers: a place is an entry and a row of it, and only what is about to be seen is laid
//! out. So a long session costs no more than a short one.

mod branches;
pub mod draw;
mod layout;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crossterm::event::KeyEvent;

use super::field::Field;
use crate::console::intent::{Context, Intent};
use crate::contract::{SessionId, Untrusted};
use crate::fact::{Needle, Reading, SessionFile, Sheet, Wanted};
use crate::model::Model;
use crate::pi::entry::Kind;
use crate::pi::growth::{Branch, Item};
use branches::Branches;
pub use layout::word;
use layout::{Known, Layout};

/// Laid-out entries kept; more are begun anew.
const MAX_LAYOUTS: usize = 600;

/// An entry of a session file, to open its transcript there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where its text begins, in bytes from the file's beginning.
    pub offset: u64,
}

/// A row of an entry, whatever comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Anchor {
    offset: u64,
    row: usize,
}

/// The same among the items that are known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    item: usize,
    row: usize,
}

/// What the operator sees of it.
#[derive(Debug)]
pub struct State {
    lead: Option<SessionId>,
    file: Option<SessionFile>,
    /// The branch that was opened, and the one on the screen.
    home: Branch,
    branch: Branch,
    top: Cell<Anchor>,
    cursor: Cell<Anchor>,
    /// Whether the last row has the cursor, and keeps it when there is more.
    at_end: Cell<bool>,
    /// The newest item that was in sight.
    seen: Cell<Option<u64>>,
    unfolded: BTreeSet<u64>,
    thoughts: bool,
    search: Field,
    needle: Option<Needle>,
    /// The place of what is searched for that the cursor is on: entry, and number in it.
    current: Option<(u64, usize)>,
    /// Whether a place is still to be chosen, and whether the cursor is still to be put on it.
    seeks: bool,
    jumps: bool,
    branches: Option<Branches>,
    /// The entry that is being copied, and the number of that wish.
    copying: Option<(u64, u64)>,
    wishes: u64,
    layouts: RefCell<HashMap<u64, (Known, Rc<Layout>)>>,
    /// Columns and rows of the entries in the last frame.
    room: Cell<(usize, usize)>,
}

impl State {
    /// That of a lead, whose file may not be known yet, at its end.
    pub fn of_lead(lead: SessionId, file: Option<SessionFile>) -> Self {
        Self { lead: Some(lead), ..Self::of(file, Branch::Latest) }
    }

    /// That of a file, with the cursor on the entry at `place` if there is one.
    pub fn of_file(file: SessionFile, place: Option<Place>) -> Self {
        let branch = place.map_or(Branch::Latest, |place| Branch::Through(place.offset));
        let lead = Some(file.session.clone());
        let state = Self { lead, ..Self::of(Some(file), branch) };
        if let Some(place) = place {
            state.put(Anchor { offset: place.offset, row: 0 });
        }
        state
    }

    fn of(file: Option<SessionFile>, branch: Branch) -> Self {
        Self {
            lead: None,
            file,
            home: branch,
            branch,
            top: Cell::default(),
            cursor: Cell::default(),
            at_end: Cell::new(true),
            seen: Cell::default(),
            unfolded: BTreeSet::new(),
            thoughts: false,
            search: Field::default(),
            needle: None,
            current: None,
            seeks: false,
            jumps: false,
            branches: None,
            copying: None,
            wishes: 0,
            layouts: RefCell::default(),
            room: Cell::new((80, 20)),
        }
    }

    /// Whose session it is; it may not be listed any more.
    pub fn lead(&self) -> Option<&SessionId> {
        self.lead.as_ref()
    }

    /// The file, once it is known, and the branch on the screen.
    pub fn shown(&self) -> Option<(&SessionFile, Branch)> {
        self.file.as_ref().map(|file| (file, self.branch))
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        if self.search.is_editing() { Context::Filter } else { Context::Transcript }
    }

    /// Whether something is searched for.
    pub fn has_search(&self) -> bool {
        self.needle.is_some()
    }

    /// Whether the branches are listed.
    pub fn lists_branches(&self) -> bool {
        self.branches.is_some()
    }

    /// What is to be read for it.
    pub fn wanted(&self) -> Option<Wanted> {
        let file = self.file.clone()?;
        Some(Wanted {
            file,
            branch: self.branch,
            top: (!self.at_end.get()).then(|| self.top.get().offset),
            rows: u16::try_from(self.room.get().1).unwrap_or(u16::MAX),
            unfolded: self.unfolded.clone(),
            search: self.needle.as_ref().map(|_| self.search.text().to_owned()),
            thoughts: self.thoughts,
            tips: self.branches.is_some(),
            take: self.copying,
        })
    }

    /// What is known of the branch on the screen.
    fn reading<'a>(&self, model: &'a Model) -> Option<&'a Reading> {
        let reading = model.reading(self.file.as_ref()?)?;
        (reading.branch == self.branch).then_some(&**reading)
    }

    /// Takes over what is known now; gives the text to be copied once it is there, or why there is none.
    pub fn follow(&mut self, model: &Model) -> Option<Result<Untrusted, String>> {
        if self.file.is_none()
            && let Some(lead) = self.lead.as_ref().and_then(|lead| model.lead(lead))
        {
            self.file = file_of(lead);
        }
        let reading = self.reading(model)?;
        self.seek(reading);
        self.jump(reading);
        let (number, text) = reading.taken.as_ref()?;
        self.copying.take_if(|(_, wanted)| wanted == number).map(|_| text.clone())
    }

    /// Backs out of the branches, the search, or a branch that was chosen; says whether there was any.
    pub fn back(&mut self) -> bool {
        if self.branches.take().is_some() {
            return true;
        }
        if self.search.clear() {
            self.searched();
            return true;
        }
        let stays = self.branch != self.home;
        if stays {
            self.show(self.home);
        }
        stays
    }

    /// A key that is text.
    pub fn typed(&mut self, key: KeyEvent) {
        if self.search.typed(key) {
            self.searched();
        }
    }

    /// Pasted text.
    pub fn pasted(&mut self, text: &str) {
        if self.search.pasted(text) {
            self.searched();
        }
    }

    fn searched(&mut self) {
        self.needle = Needle::new(self.search.text());
        self.current = None;
        (self.seeks, self.jumps) = (false, false);
    }

    /// Shows another branch from its end.
    fn show(&mut self, branch: Branch) {
        self.branch = branch;
        self.at_end.set(true);
        self.seen.set(None);
        self.current = None;
    }

    /// Wants the entry under the cursor to be copied; says whether there is one.
    pub fn copy(&mut self, model: &Model) -> bool {
        let item = self.reading(model).and_then(|reading| self.item(reading));
        if let Some(item) = item {
            self.wishes += 1;
            self.copying = Some((item.offset, self.wishes));
        }
        item.is_some()
    }

    /// What an intent does; gives what there is to say about it.
    pub fn intent(&mut self, intent: Intent, model: &Model) -> Option<&'static str> {
        match intent {
            Intent::Search => self.search.edit(),
            Intent::KeepFilter => {
                self.search.keep();
                self.seeks = true;
            }
            Intent::Thoughts => self.thoughts = !self.thoughts,
            Intent::Branches if self.branches.take().is_none() => self.branches = Some(Branches::default()),
            _ => {}
        }
        let reading = self.reading(model)?;
        if let Some(branches) = &mut self.branches {
            if let Some(branch) = branches.intent(intent, reading) {
                self.branches = None;
                self.show(branch);
            }
            return None;
        }
        match intent {
            Intent::KeepFilter => self.seek(reading),
            Intent::First => self.put(Anchor { offset: 0, row: 0 }),
            Intent::Last => self.at_end.set(true),
            Intent::Up => self.scroll(reading, -1, false),
            Intent::Down => self.scroll(reading, 1, false),
            Intent::HalfPageUp => self.scroll(reading, -(self.page() / 2).max(1), true),
            Intent::HalfPageDown => self.scroll(reading, (self.page() / 2).max(1), true),
            Intent::PageUp => self.scroll(reading, -self.page(), true),
            Intent::PageDown => self.scroll(reading, self.page(), true),
            Intent::Unfold => self.fold(reading),
            Intent::PreviousTurn => return self.go(reading, false, |item| item.kind == Kind::User),
            Intent::NextTurn => return self.go(reading, true, |item| item.kind == Kind::User),
            Intent::PreviousError => return self.go(reading, false, |item| item.is_error),
            Intent::NextError => return self.go(reading, true, |item| item.is_error),
            Intent::NextMatch | Intent::PreviousMatch => {
                return self.next_match(reading, intent == Intent::NextMatch);
            }
            _ => {}
        }
        self.jump(reading);
        None
    }

    fn page(&self) -> isize {
        isize::try_from(self.room.get().1).unwrap_or(isize::MAX).max(1)
    }

    /// Puts the cursor there, at the top of the screen.
    fn put(&self, anchor: Anchor) {
        self.at_end.set(false);
        self.cursor.set(anchor);
        self.top.set(anchor);
    }

    /// Moves the cursor by so many rows, and the screen as well if it is paged.
    fn scroll(&self, reading: &Reading, by: isize, pages: bool) {
        let (Some(cursor), Some(top)) = (self.spot(reading), self.top_spot(reading)) else { return };
        self.at_end.set(false);
        self.cursor.set(self.anchor(reading, self.moved(reading, cursor, by)));
        let top = if pages { self.moved(reading, top, by) } else { top };
        self.top.set(self.anchor(reading, top));
        if self.spot(reading) == self.last(reading) {
            self.at_end.set(true);
        }
    }

    /// Unfolds the entry under the cursor, or folds it.
    fn fold(&mut self, reading: &Reading) {
        let Some(item) = self.item(reading) else { return };
        let offset = item.offset;
        if !self.unfolded.remove(&offset) {
            self.unfolded.insert(offset);
        }
        let top = self.top_spot(reading);
        let row = if Layout::has_gap(item.kind) { 1 } else { 0 };
        self.cursor.set(Anchor { offset, row });
        self.top.set(top.map_or(Anchor::default(), |top| self.anchor(reading, top)));
        self.at_end.set(false);
    }

    /// Goes to the next item, or the one before, that is `wanted`.
    fn go(&self, reading: &Reading, forward: bool, wanted: fn(&Item) -> bool) -> Option<&'static str> {
        let spot = self.spot(reading)?;
        let found = if forward {
            (spot.item + 1..reading.items.len()).find(|at| wanted(&reading.items[*at]))
        } else {
            // From within an item, its own beginning is the one before.
            let heading = usize::from(Layout::has_gap(reading.items[spot.item].kind));
            let end = if spot.row > heading { spot.item + 1 } else { spot.item };
            (0..end).rev().find(|at| wanted(&reading.items[*at]))
        };
        match found {
            Some(at) => {
                let item = &reading.items[at];
                let row = usize::from(Layout::has_gap(item.kind));
                self.put(Anchor { offset: item.offset, row });
                self.top.set(Anchor { offset: item.offset, row: 0 });
                None
            }
            None if !forward && !reading.is_whole => Some("Nothing before that is read so far."),
            None if forward => Some("There is none further down."),
            None => Some("There is none further up."),
        }
    }

    /// Goes to the next place of what is searched for, or the one before, over either end.
    fn next_match(&mut self, reading: &Reading, forward: bool) -> Option<&'static str> {
        let spot = self.spot(reading)?;
        let hits = reading.hits.as_deref().filter(|hits| hits.text == self.search.text());
        let Some(hits) = hits.filter(|_| self.needle.is_some()) else {
            return Some("Nothing is searched for.");
        };
        let (Some(first), Some(last)) = (hits.hits.first(), hits.hits.last()) else {
            return Some(if hits.percent < 100 {
                "Nothing was found so far."
            } else {
                "It stands nowhere here."
            });
        };
        let here = reading.items[spot.item].offset;
        let (offset, nth) = match self.current.filter(|(offset, _)| *offset == here) {
            Some(current) => current,
            // From here on, and not at the place in this very entry that was left.
            None if forward => (here, usize::MAX),
            None => (here, 0),
        };
        let at = hits.hits.partition_point(|hit| hit.offset < offset);
        let same = hits.hits.get(at).filter(|hit| hit.offset == offset);
        let next = if forward {
            match same {
                Some(hit) if nth.saturating_add(1) < hit.count as usize => (offset, nth + 1),
                same => hits
                    .hits
                    .get(at + usize::from(same.is_some()))
                    .map_or((first.offset, 0), |hit| (hit.offset, 0)),
            }
        } else if nth > 0 && same.is_some() {
            (offset, nth - 1)
        } else {
            let hit = at.checked_sub(1).map_or(last, |at| &hits.hits[at]);
            (hit.offset, (hit.count as usize).saturating_sub(1))
        };
        self.current = Some(next);
        self.jumps = true;
        self.jump(reading);
        None
    }

    /// Chooses the place nearest before the cursor, or the first after it.
    fn seek(&mut self, reading: &Reading) {
        if !self.seeks {
            return;
        }
        let Some(spot) = self.spot(reading) else { return };
        let Some(hits) = reading.hits.as_deref().filter(|hits| hits.text == self.search.text()) else {
            return;
        };
        let here = reading.items[spot.item].offset;
        let before = hits.hits.partition_point(|hit| hit.offset <= here);
        let hit = match before.checked_sub(1) {
            Some(at) => &hits.hits[at],
            None if hits.percent < 100 => return,
            None => match hits.hits.first() {
                Some(hit) => hit,
                None => return self.seeks = false,
            },
        };
        self.current = Some((hit.offset, (hit.count as usize).saturating_sub(1)));
        (self.seeks, self.jumps) = (false, true);
        self.jump(reading);
    }

    /// Puts the cursor on the current place, once its entry is read far enough.
    fn jump(&mut self, reading: &Reading) {
        let Some((offset, nth)) = self.current.filter(|_| self.jumps) else { return };
        let Ok(item) = reading.items.binary_search_by_key(&offset, |item| item.offset) else { return };
        let row = match reading.sheets.get(&offset).map(|sheet| &**sheet) {
            None => {
                // It is read where the screen is.
                return self.put(Anchor { offset, row: 0 });
            }
            Some(Sheet::Gone) => 0,
            Some(sheet) => {
                let places = &self.layout(reading, item).places;
                let is_folded = match sheet {
                    Sheet::Body(body, _) => body.is_folded,
                    Sheet::Large | Sheet::Gone => true,
                };
                if places.len() <= nth && is_folded {
                    self.unfolded.insert(offset);
                    return;
                }
                places.get(nth).or(places.last()).copied().unwrap_or(0)
            }
        };
        self.jumps = false;
        let spot = Spot { item, row };
        self.put(self.anchor(reading, spot));
        let top = self.moved(reading, spot, -(self.page() / 3));
        self.top.set(self.anchor(reading, top));
    }

    /// The item under the cursor.
    fn item<'a>(&self, reading: &'a Reading) -> Option<&'a Item> {
        self.spot(reading).map(|spot| &reading.items[spot.item])
    }

    /// Where the cursor is.
    fn spot(&self, reading: &Reading) -> Option<Spot> {
        if self.at_end.get() { self.last(reading) } else { self.spot_of(reading, self.cursor.get()) }
    }

    fn top_spot(&self, reading: &Reading) -> Option<Spot> {
        match self.at_end.get() {
            true => self.last(reading).map(|last| self.moved(reading, last, 1 - self.page())),
            false => self.spot_of(reading, self.top.get()),
        }
    }

    fn spot_of(&self, reading: &Reading, anchor: Anchor) -> Option<Spot> {
        let last = reading.items.len().checked_sub(1)?;
        let item = reading.items.partition_point(|item| item.offset < anchor.offset).min(last);
        let is_it = reading.items[item].offset == anchor.offset;
        let row = if is_it { anchor.row.min(self.height(reading, item) - 1) } else { 0 };
        Some(Spot { item, row })
    }

    fn last(&self, reading: &Reading) -> Option<Spot> {
        let item = reading.items.len().checked_sub(1)?;
        Some(Spot { item, row: self.height(reading, item) - 1 })
    }

    fn anchor(&self, reading: &Reading, spot: Spot) -> Anchor {
        Anchor { offset: reading.items.get(spot.item).map_or(0, |item| item.offset), row: spot.row }
    }

    /// So many rows further down, or up; not beyond either end.
    fn moved(&self, reading: &Reading, from: Spot, by: isize) -> Spot {
        let mut spot = from;
        let mut left = by.unsigned_abs();
        while left > 0 {
            if by > 0 {
                let below = self.height(reading, spot.item) - 1 - spot.row;
                if left <= below {
                    spot.row += left;
                    return spot;
                }
                if spot.item + 1 >= reading.items.len() {
                    spot.row += below;
                    return spot;
                }
                left -= below + 1;
                spot = Spot { item: spot.item + 1, row: 0 };
            } else {
                if left <= spot.row {
                    spot.row -= left;
                    return spot;
                }
                if spot.item == 0 {
                    spot.row = 0;
                    return spot;
                }
                left -= spot.row + 1;
                let item = spot.item - 1;
                spot = Spot { item, row: self.height(reading, item) - 1 };
            }
        }
        spot
    }

    /// Rows of an item; at least one.
    fn height(&self, reading: &Reading, item: usize) -> usize {
        self.layout(reading, item).lines.len().max(1)
    }

    fn layout(&self, reading: &Reading, at: usize) -> Rc<Layout> {
        let item = &reading.items[at];
        let known = Known {
            sheet: reading.sheets.get(&item.offset).cloned(),
            width: self.room.get().0,
            thoughts: self.thoughts,
            search: self.needle.as_ref().map(|_| self.search.text().to_owned()),
            current: self.current.filter(|(offset, _)| *offset == item.offset).map(|(_, nth)| nth),
            label: reading.labels.get(&item.offset).cloned(),
            branches: item.branches,
        };
        let mut layouts = self.layouts.borrow_mut();
        if let Some((of, layout)) = layouts.get(&item.offset)
            && *of == known
        {
            return Rc::clone(layout);
        }
        if layouts.len() >= MAX_LAYOUTS {
            layouts.clear();
        }
        let layout = Rc::new(Layout::of(item, &known, self.needle.as_ref()));
        layouts.insert(item.offset, (known, Rc::clone(&layout)));
        layout
    }
}

/// The session file of a lead, if Herdr names one.
pub fn file_of(lead: &crate::herd::Lead) -> Option<SessionFile> {
    let path = lead.session_file.clone()?;
    Some(SessionFile { path, session: lead.session.clone() })
}
