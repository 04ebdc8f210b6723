//! What leads sent, as the journal keeps it: all of it, the newest first, narrowed to a lead, to what
//! is unread, or to what a search finds. Only numbers are kept of what is out of sight; letters and
//! texts are asked for as they are needed.

pub mod draw;

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};

use crossterm::event::KeyEvent;
use ratatui::layout::Position;

use super::browse::Browser;
use super::field::Field;
use super::found;
use crate::console::intent::{Context, Intent};
use crate::contract::{SessionId, Untrusted};
use crate::fact::{Answer, Answered, Inquiry, Letter, Needle, Query};
use crate::model::Model;

/// Rows on either side of the cursor whose letters are kept: more than any screen has.
const KEPT: usize = 190;
/// Rows on either side of it whose letters have to be there; beyond, they are asked for.
const NEEDED: usize = 110;
/// Texts kept.
const MAX_TEXTS: usize = 24;

/// A part of the journal that was not looked through yet: what is between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    above: u64,
    below: u64,
}

/// Which place of several in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    Nth(usize),
    /// The last one, once it is known which that is.
    Last,
    #[default]
    First,
}

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    browser: Browser<u64>,
    lead: Option<SessionId>,
    unread: bool,
    search: Field,
    /// What the search looks for.
    needle: Option<Needle>,
    /// The letters by number, the newest first.
    listed: Vec<u64>,
    /// What is to be looked through, the newest last.
    gaps: Vec<Gap>,
    /// The newest letter when the gaps were made.
    newest: u64,
    /// Those of them that are in sight, and some around.
    letters: HashMap<u64, Letter>,
    texts: VecDeque<(u64, Result<Untrusted, String>)>,
    /// Where the cursor is to be once that is listed.
    wanted: Option<u64>,
    /// The place of the search within the text.
    place: Place,
    /// Whether that place is to be brought in sight.
    jumps: Cell<bool>,
    /// What was asked for under which ticket, and is not answered.
    finding: Option<(u64, Gap)>,
    fetching: Option<(u64, Vec<u64>)>,
    reading: Option<(u64, u64)>,
    /// What was known of the mail when the letters were asked for.
    seen: u64,
    is_stale: bool,
    /// Why not everything is shown; safe to print.
    problem: Option<String>,
}

impl State {
    /// The whole inbox, the cursor on the newest that is unread; or what `lead` sent.
    pub fn open(model: &Model, lead: Option<SessionId>) -> Self {
        let mut newest = model.mail().newest.iter().rev().filter(|letter| letter.is_unread());
        let wanted = match &lead {
            None => model.mail().newest_unread,
            Some(lead) => newest.find(|letter| letter.lead.as_ref() == Some(lead)).map(|letter| letter.seq),
        };
        let mut state = Self { lead, wanted, ..Self::default() };
        state.list_anew(model);
        state
    }

    /// The whole inbox, the cursor on the letter of this number once that is listed.
    pub fn open_at(model: &Model, seq: u64) -> Self {
        let mut state = Self { wanted: Some(seq), ..Self::default() };
        state.list_anew(model);
        state
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        if self.search.is_editing() { Context::Filter } else { Context::Inbox }
    }

    /// Begins the list anew: what was told already is there at once, the rest is asked for.
    fn list_anew(&mut self, model: &Model) {
        let query = self.query();
        self.listed.clear();
        self.finding = None;
        self.problem = None;
        let told = &model.mail().newest;
        self.newest = told.last().map_or(0, |letter| letter.seq);
        let mut below = self.newest + 1;
        if query.text.is_none() {
            for letter in told.iter().rev() {
                below = letter.seq;
                if query.takes(letter.lead.as_ref(), letter.is_unread()) {
                    self.listed.push(letter.seq);
                    self.letters.insert(letter.seq, letter.clone());
                }
            }
        }
        self.gaps = (below > 1).then_some(Gap { above: 0, below }).into_iter().collect();
        self.seen = model.mail_generation();
        self.moved(|browser, listed| browser.put(0, listed));
        self.put_on_wanted();
    }

    fn query(&self) -> Query {
        let text = self.needle.is_some().then(|| self.search.text().to_owned());
        Query { lead: self.lead.clone(), unread: self.unread, text }
    }

    /// Has the cursor moved; another letter is shown from its first place on.
    fn moved(&mut self, by: impl FnOnce(&mut Browser<u64>, &[u64])) {
        let before = self.browser.selected().copied();
        by(&mut self.browser, &self.listed);
        if self.browser.selected().copied() != before {
            self.place = Place::First;
            self.jumps.set(true);
        }
    }

    fn put_on_wanted(&mut self) {
        if let Some(at) = self.wanted.and_then(|wanted| self.listed.iter().position(|seq| *seq == wanted)) {
            self.wanted = None;
            self.moved(|browser, listed| browser.put(at, listed));
        } else if self.gaps.is_empty() && self.finding.is_none() {
            // It is not among them.
            self.wanted = None;
        }
    }

    /// Takes over what changed in the model: the cursor stays on its letter.
    pub fn follow(&mut self, model: &Model) {
        if self.seen == model.mail_generation() {
            return;
        }
        self.seen = model.mail_generation();
        self.is_stale = true;
        let newest = model.mail().newest.last().map_or(0, |letter| letter.seq);
        if newest > self.newest {
            self.gaps.push(Gap { above: self.newest, below: newest + 1 });
            self.newest = newest;
        }
    }

    /// What is to be asked for next, if anything; `ticket` comes back with the answer.
    pub fn inquiry(&mut self, ticket: u64) -> Option<Inquiry> {
        if self.reading.is_none()
            && let Some(seq) = self.lacks_text()
        {
            self.reading = Some((ticket, seq));
            return Some(Inquiry::Text(seq));
        }
        if self.fetching.is_none() && (self.is_stale || self.lacks_letters()) {
            self.is_stale = false;
            let seqs = self.around(KEPT).to_vec();
            if !seqs.is_empty() {
                self.fetching = Some((ticket, seqs.clone()));
                return Some(Inquiry::Letters(seqs));
            }
        }
        if self.finding.is_none()
            && let Some(gap) = self.gaps.pop()
        {
            self.finding = Some((ticket, gap));
            return Some(Inquiry::Find { query: self.query(), below: gap.below, above: gap.above });
        }
        None
    }

    /// The letter under the cursor, if its text is not known whole.
    fn lacks_text(&self) -> Option<u64> {
        let letter = self.letter()?;
        (!letter.whole && self.known_text(letter.seq).is_none()).then_some(letter.seq)
    }

    fn lacks_letters(&self) -> bool {
        self.around(NEEDED).iter().any(|seq| !self.letters.contains_key(seq))
    }

    fn around(&self, rows: usize) -> &[u64] {
        let at = self.browser.at();
        &self.listed[at.saturating_sub(rows).min(self.listed.len())..(at + rows).min(self.listed.len())]
    }

    fn known_text(&self, seq: u64) -> Option<&Result<Untrusted, String>> {
        self.texts.iter().find(|(known, _)| *known == seq).map(|(_, text)| text)
    }

    /// Takes the answer to an inquiry of this state; answers to others change nothing.
    pub fn answered(&mut self, answered: Answered) {
        let ticket = answered.ticket;
        if self.reading.is_some_and(|(reading, _)| reading == ticket) {
            let Some((_, seq)) = self.reading.take() else { return };
            if self.texts.len() == MAX_TEXTS {
                self.texts.pop_front();
            }
            let text = match answered.result {
                Ok(Answer::Text(text)) => Ok(text),
                Ok(_) => return,
                Err(why) => Err(why),
            };
            self.texts.push_back((seq, text));
        } else if self.fetching.as_ref().is_some_and(|(fetching, _)| *fetching == ticket) {
            let Some((_, asked)) = self.fetching.take() else { return };
            match answered.result {
                Ok(Answer::Letters(letters)) => self.take_letters(&asked, letters),
                Ok(_) => {}
                Err(why) => self.problem = Some(why),
            }
        } else if self.finding.is_some_and(|(finding, _)| finding == ticket) {
            let Some((_, gap)) = self.finding.take() else { return };
            match answered.result {
                Ok(Answer::Found(found)) => {
                    if let Some(below) = found.rest {
                        self.gaps.push(Gap { below, ..gap });
                    }
                    self.list(found.seqs);
                }
                Ok(_) => {}
                Err(why) => {
                    self.gaps.clear();
                    self.problem = Some(why);
                }
            }
            self.put_on_wanted();
        }
    }

    fn take_letters(&mut self, asked: &[u64], letters: Vec<Letter>) {
        self.letters = letters.into_iter().map(|letter| (letter.seq, letter)).collect();
        if asked.iter().any(|seq| !self.letters.contains_key(seq)) {
            // What did not come is not there any more.
            let letters = &self.letters;
            self.listed.retain(|seq| letters.contains_key(seq) || !asked.contains(seq));
            self.moved(|browser, listed| browser.follow(listed));
        }
    }

    fn list(&mut self, seqs: Vec<u64>) {
        if let (Some(last), Some(first)) = (self.listed.last(), seqs.first())
            && first >= last
        {
            self.listed.extend(seqs);
            self.listed.sort_unstable_by(|a, b| b.cmp(a));
            self.listed.dedup();
        } else {
            self.listed.extend(seqs);
        }
        self.moved(|browser, listed| browser.follow(listed));
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model) {
        match intent {
            Intent::Search => self.search.edit(),
            Intent::KeepFilter => self.search.keep(),
            Intent::UnreadOnly => {
                self.unread = !self.unread;
                self.narrowed(model);
            }
            _ => {
                // The operator's own move: nothing else moves it then.
                self.wanted = None;
                self.moved(|browser, listed| browser.intent(intent, listed));
            }
        }
    }

    /// Puts the cursor on what is drawn there; it is read by opening it, not by that.
    pub fn click(&mut self, at: Position) {
        if let Some(row) = self.browser.click(at).filter(|row| *row < self.listed.len()) {
            self.wanted = None;
            self.moved(|browser, listed| browser.put(row, listed));
        }
    }

    /// Shows only what the lead of this letter sent, or everything again; says whether it did.
    pub fn narrow_to_lead(&mut self, model: &Model) -> bool {
        if self.lead.take().is_none() {
            self.lead = self.letter().and_then(|letter| letter.lead.clone());
            if self.lead.is_none() {
                return false;
            }
        }
        self.narrowed(model);
        true
    }

    fn narrowed(&mut self, model: &Model) {
        self.wanted = self.wanted.or(self.browser.selected().copied());
        self.list_anew(model);
    }

    /// What a key that is text does to the search.
    pub fn typed(&mut self, key: KeyEvent, model: &Model) {
        if self.search.typed(key) {
            self.searched(model);
        }
    }

    /// Pasted text goes into the search as one line.
    pub fn pasted(&mut self, text: &str, model: &Model) {
        if self.search.pasted(text) {
            self.searched(model);
        }
    }

    fn searched(&mut self, model: &Model) {
        self.needle = Needle::new(self.search.text());
        self.wanted = None;
        self.list_anew(model);
    }

    /// Goes to the next or previous place of what is searched for, in this letter or in the next one
    /// that has it; says whether anything is searched for.
    pub fn next_match(&mut self, forward: bool) -> bool {
        let Some(needle) = &self.needle else { return false };
        let count = self.text().map_or(0, |(text, _)| found::count(text, needle));
        let at = match self.place {
            Place::First => 0,
            Place::Nth(at) => at,
            Place::Last => count.saturating_sub(1),
        };
        let row = self.browser.at();
        if forward && at + 1 < count {
            self.place = Place::Nth(at + 1);
        } else if !forward && at > 0 {
            self.place = Place::Nth(at - 1);
        } else if forward && row + 1 < self.listed.len() {
            self.moved(|browser, listed| browser.put(row + 1, listed));
        } else if !forward && row > 0 {
            self.moved(|browser, listed| browser.put(row - 1, listed));
            self.place = Place::Last;
        }
        self.jumps.set(true);
        true
    }

    /// Gives the keys to the detail; the letter that is read by that, if it was not.
    pub fn read(&mut self) -> Option<u64> {
        self.moved(|browser, listed| browser.intent(Intent::Open, listed));
        self.letter().filter(|letter| letter.is_unread()).map(|letter| letter.seq)
    }

    /// Backs out of the innermost thing that is open; says whether the inbox stays open.
    pub fn back(&mut self, model: &Model) -> bool {
        if !self.search.is_editing() && self.browser.back() {
            return true;
        }
        if self.search.clear() {
            self.needle = None;
            self.narrowed(model);
            return true;
        }
        let was_narrowed = self.lead.take().is_some() | std::mem::take(&mut self.unread);
        if was_narrowed {
            self.narrowed(model);
        }
        was_narrowed
    }

    /// Whether anything is searched for.
    pub fn has_search(&self) -> bool {
        self.needle.is_some()
    }

    /// Whether more may be listed yet.
    fn is_searching(&self) -> bool {
        self.finding.is_some() || !self.gaps.is_empty()
    }

    /// The letter under the cursor, once it is known.
    pub fn letter(&self) -> Option<&Letter> {
        self.letters.get(self.browser.selected()?)
    }

    /// The text of the letter under the cursor, as far as it is known, and whether that is all.
    pub fn text(&self) -> Option<(&Untrusted, bool)> {
        let letter = self.letter()?;
        Some(match self.known_text(letter.seq) {
            Some(Ok(text)) => (text, true),
            _ => (&letter.preview, letter.whole),
        })
    }
}
