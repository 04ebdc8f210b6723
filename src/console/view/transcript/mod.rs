//! The transcript of a session: reading only.
//!
//! Rows have no numbers: a place is an entry and a row of it, and only what is about to be seen is laid
//! out. So a long session costs no more than a short one.

mod branches;
pub mod draw;
mod layout;
mod seek;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crossterm::event::KeyEvent;

use super::field::Field;
use crate::console::intent::{Context, Intent};
use crate::console::pager::Paging;
use crate::contract::{Kind as Message, SessionId, Untrusted};
use crate::fact::{Needle, Reading, SessionFile, Sheet, Wanted};
use crate::model::Model;
use crate::pi::body::PartKind;
use crate::pi::entry::Kind;
use crate::pi::growth::{Branch, Item};
use branches::Branches;
use layout::{Known, Layout};
pub use layout::{sender, word};

/// Laid-out entries kept; more are begun anew.
const MAX_LAYOUTS: usize = 600;

/// An entry of a session file, to open its transcript there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where its text begins, in bytes from the file's beginning.
    pub offset: u64,
    /// What was searched for and found there.
    pub found: Option<Found>,
}

/// What a search found in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was searched for.
    pub text: String,
    /// The line of the entry in which it stands, or a part of that.
    pub line: String,
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

/// What the text of an entry is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be copied.
    Copy,
    /// To be quoted in a lesson.
    Quote,
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
    /// The line in which the place stands that is to be gone to first.
    line: Option<String>,
    /// Whether what is searched for was brought along, so that leaving it leaves all.
    brought: bool,
    /// What peers call themselves whose messages are near the screen.
    peers: HashMap<SessionId, Untrusted>,
    branches: Option<Branches>,
    /// The entry that is being copied, and the number of that wish.
    copying: Option<(u64, u64)>,
    /// What for.
    purpose: Purpose,
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
        let branch = place.as_ref().map_or(Branch::Latest, |place| Branch::Through(place.offset));
        let lead = Some(file.session.clone());
        let mut state = Self { lead, ..Self::of(Some(file), branch) };
        let Some(Place { offset, found }) = place else { return state };
        state.put(Anchor { offset, row: 0 });
        if let Some(Found { text, line }) = found {
            state.search = Field::with(&text);
            state.searched();
            (state.current, state.jumps) = (Some((offset, 0)), true);
            (state.line, state.brought) = (Some(line), true);
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
            line: None,
            brought: false,
            peers: HashMap::new(),
            branches: None,
            copying: None,
            purpose: Purpose::Copy,
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

    /// What is to be read in the pager, from the cursor on.
    pub fn paging(&self, model: &Model) -> Option<Paging> {
        let (session, branch) = (self.file.clone()?, self.branch);
        let at = self.reading(model).and_then(|reading| self.item(reading)).map(|item| item.offset);
        Some(Paging { session, branch, name: self.name(model), at })
    }

    /// Whose it is: the lead's name, the last one where it is not listed now, else the session's id.
    fn name(&self, model: &Model) -> Untrusted {
        let lead = self.lead.as_ref();
        if let Some(lead) = lead.and_then(|lead| model.lead(lead)) {
            return lead.display_name.clone();
        }
        if let Some(names) = lead.and_then(|lead| model.last_names(lead)) {
            return names.display_name.clone();
        }
        let session = self.file.as_ref().map(|file| &file.session).or(lead);
        session.map(|session| session.as_untrusted().clone()).unwrap_or_default()
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        match (self.search.is_editing(), self.lists_branches()) {
            (true, _) => Context::Filter,
            (false, true) => Context::Branches,
            (false, false) => Context::Transcript,
        }
    }

    /// Whether something was found of what is searched for.
    pub fn has_matches(&self, model: &Model) -> bool {
        let hits = self.reading(model).and_then(|reading| reading.hits.as_deref());
        self.needle.is_some() && hits.is_some_and(|hits| hits.text == self.search.text() && hits.places > 0)
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

    /// Takes over what is known now; gives the text that is wanted once it is there,
    /// or why there is none, and what for.
    pub fn follow(&mut self, model: &Model) -> Option<(Purpose, Result<Untrusted, String>)> {
        if self.file.is_none()
            && let Some(lead) = self.lead.as_ref().and_then(|lead| model.lead(lead))
        {
            self.file = file_of(lead);
        }
        let reading = self.reading(model)?;
        self.name_peers(reading, model);
        self.seek(reading);
        self.jump(reading);
        let (number, text) = reading.taken.as_ref()?;
        self.copying.take_if(|(_, wanted)| wanted == number).map(|_| (self.purpose, text.clone()))
    }

    /// Backs out of the branches, the search, or a branch that was chosen; says whether there was any.
    pub fn back(&mut self) -> bool {
        if self.branches.take().is_some() {
            return true;
        }
        if !self.brought && self.search.clear() {
            self.searched();
            return true;
        }
        let stays = self.branch != self.home;
        if stays {
            self.show(self.home);
        }
        stays
    }

    /// What those call themselves whose messages are near the screen, if they are leads that are listed.
    fn name_peers(&mut self, reading: &Reading, model: &Model) {
        let senders = reading.sheets.values().filter_map(|sheet| match &**sheet {
            Sheet::Body(body, _) => body.delivered.as_ref().map(|delivered| &delivered.lead),
            Sheet::Large | Sheet::Gone => None,
        });
        let name = |session: &SessionId| Some((session.clone(), model.lead(session)?.name.clone()));
        self.peers = senders.filter_map(name).filter(|(_, name)| !name.is_blank()).collect();
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
        (self.line, self.brought) = (None, false);
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
            self.purpose = Purpose::Copy;
        }
        item.is_some()
    }

    /// Wants the entry under the cursor to be quoted from; says whether an operator wrote it.
    pub fn quote(&mut self, model: &Model) -> bool {
        let is_by_operator = self.reading(model).is_some_and(|reading| {
            let Some(item) = self.item(reading) else { return false };
            let delivered = match reading.sheets.get(&item.offset).map(|sheet| &**sheet) {
                Some(Sheet::Body(body, _)) => body.delivered.as_ref().map(|delivered| delivered.kind),
                Some(Sheet::Large | Sheet::Gone) | None => None,
            };
            match delivered {
                Some(kind) => matches!(kind, Message::ChiefReply | Message::ChiefMessage),
                None => item.kind == Kind::User,
            }
        });
        let is_wanted = is_by_operator && self.copy(model);
        if is_wanted {
            self.purpose = Purpose::Quote;
        }
        is_wanted
    }

    /// What an intent does; gives what there is to say about it.
    pub fn intent(&mut self, intent: Intent, model: &Model) -> Option<&'static str> {
        match intent {
            Intent::Search => {
                self.search.edit();
                self.brought = false;
            }
            Intent::KeepFilter => {
                self.search.keep();
                self.seeks = true;
            }
            Intent::Thoughts => {
                self.thoughts = !self.thoughts;
                return Some(self.tell_thoughts(model));
            }
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
            Intent::Unfold => return self.fold(reading),
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
        let mut to = self.moved(reading, cursor, by);
        if by < 0 && to.item > 0 && Self::is_gap(reading, to) {
            // No row to be on: over it.
            to = self.moved(reading, to, -1);
        }
        self.cursor.set(self.anchor(reading, to));
        let top = if pages { self.moved(reading, top, by) } else { top };
        self.top.set(self.anchor(reading, top));
        if self.spot(reading) == self.last(reading) {
            self.at_end.set(true);
        }
    }

    /// What is to be said of the thoughts once they are shown, or hidden.
    fn tell_thoughts(&self, model: &Model) -> &'static str {
        let is_thought = |sheet: &Sheet| match sheet {
            Sheet::Body(body, _) => body.parts.iter().any(|part| part.kind == PartKind::Thought),
            Sheet::Large | Sheet::Gone => false,
        };
        let near = self.reading(model).is_some_and(|it| it.sheets.values().any(|sheet| is_thought(sheet)));
        match (self.thoughts, near) {
            (true, true) => "Thoughts are shown.",
            (true, false) => "Thoughts are shown where there are any; there are none near here.",
            (false, _) => "Thoughts are hidden.",
        }
    }

    /// Unfolds the entry under the cursor, or folds it.
    fn fold(&mut self, reading: &Reading) -> Option<&'static str> {
        let item = self.item(reading)?;
        let offset = item.offset;
        let sheet = reading.sheets.get(&offset).map(|sheet| &**sheet);
        let is_whole = match sheet {
            Some(Sheet::Body(body, folding)) => {
                !body.is_folded && !layout::hides_report(body, item, *folding)
            }
            Some(Sheet::Large | Sheet::Gone) => false,
            None => true,
        };
        if is_whole && !self.unfolded.contains(&offset) {
            return Some("It is shown whole already.");
        }
        if !self.unfolded.remove(&offset) {
            self.unfolded.insert(offset);
        }
        let top = self.top_spot(reading);
        let row = if Layout::has_gap(item.kind) { 1 } else { 0 };
        self.cursor.set(Anchor { offset, row });
        self.top.set(top.map_or(Anchor::default(), |top| self.anchor(reading, top)));
        self.at_end.set(false);
        None
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

    /// The item under the cursor.
    fn item<'a>(&self, reading: &'a Reading) -> Option<&'a Item> {
        self.spot(reading).map(|spot| &reading.items[spot.item])
    }

    /// Where the cursor is.
    fn spot(&self, reading: &Reading) -> Option<Spot> {
        if self.at_end.get() {
            return self.last(reading);
        }
        let spot = self.spot_of(reading, self.cursor.get())?;
        Some(if Self::is_gap(reading, spot) { Spot { row: 1, ..spot } } else { spot })
    }

    /// Whether it is the empty row before an entry.
    fn is_gap(reading: &Reading, spot: Spot) -> bool {
        spot.row == 0 && Layout::has_gap(reading.items[spot.item].kind)
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

    fn peer(&self, reading: &Reading, offset: u64) -> Option<Untrusted> {
        match &**reading.sheets.get(&offset)? {
            Sheet::Body(body, _) => self.peers.get(&body.delivered.as_ref()?.lead).cloned(),
            Sheet::Large | Sheet::Gone => None,
        }
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
            peer: self.peer(reading, item.offset),
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
