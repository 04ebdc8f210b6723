//! The roster: every lead, what needs the person first.

pub mod draw;

use std::cell::Cell;
use std::collections::BTreeSet;

use crossterm::event::KeyEvent;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::layout::{Position, Rect};

use super::field::Field;
use super::list::Scroll;
use crate::console::intent::{Context, Intent};
use crate::console::text::{self, Visible};
use crate::contract::{SessionId, Timestamp};
use crate::fact::Now;
use crate::herd::{Lead, order};
use crate::model::Model;

/// Which pane has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pane {
    /// The list.
    #[default]
    Leads,
    /// The detail beside it.
    Detail,
}

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// The heading of a group.
    Group(order::Group),
    /// A lead.
    Lead {
        /// Its session.
        session: SessionId,
        /// Where it stood in the roster when the row was made.
        at: usize,
        /// Its name, told apart from equal ones.
        name: Visible,
    },
}

impl Row {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Row::Group(_) => None,
            Row::Lead { session, .. } => Some(session),
        }
    }

    /// The lead of the row, if it is still there.
    pub fn lead<'a>(&self, model: &'a Model) -> Option<&'a Lead> {
        let Row::Lead { session, at, .. } = self else { return None };
        let leads = &model.roster().leads;
        leads.get(*at).filter(|lead| lead.session == *session).or_else(|| model.lead(session))
    }
}

/// What the operator sees of the list.
#[derive(Debug, Default)]
pub struct State {
    selected: Option<SessionId>,
    /// Whether the operator put the cursor there, not we.
    placed: bool,
    rows: Vec<Row>,
    scroll: Scroll,
    waiting_only: bool,
    filter: Field,
    marks: BTreeSet<SessionId>,
    pins: BTreeSet<SessionId>,
    /// Which pane has the keys.
    pub pane: Pane,
    /// Whether a narrow screen shows the detail in place of the list.
    pub detail_open: bool,
    /// The detail's position.
    pub detail: Scroll,
    seen: Option<u64>,
    /// Where the rows were drawn last, and the first of them.
    drawn: Cell<(Rect, usize)>,
}

impl State {
    /// Where keys go.
    pub fn context(&self) -> Context {
        match self.pane {
            _ if self.filter.is_editing() => Context::Filter,
            Pane::Leads => Context::Roster,
            Pane::Detail => Context::Detail,
        }
    }

    /// The rows, in the order shown.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The lead under the cursor.
    pub fn selected(&self) -> Option<&SessionId> {
        self.selected.as_ref()
    }

    /// The lead under the cursor, if the operator put it there.
    pub fn placed(&self) -> Option<&SessionId> {
        self.selected.as_ref().filter(|_| self.placed)
    }

    /// No row is drawn, until one is.
    pub(super) fn not_drawn(&self) {
        self.drawn.set((Rect::default(), 0));
    }

    /// The lead whose row is drawn there.
    pub fn lead_at(&self, at: Position) -> Option<&SessionId> {
        let (area, top) = self.drawn.get();
        let row = area.contains(at).then(|| top + usize::from(at.y - area.y))?;
        self.rows.get(row)?.session()
    }

    /// Whether `lead` is marked.
    pub fn is_marked(&self, lead: &SessionId) -> bool {
        self.marks.contains(lead)
    }

    /// How many leads are marked, whether the filter shows them or not.
    pub fn marked(&self) -> usize {
        self.marks.len()
    }

    /// Marks the lead under the cursor, or not any more.
    pub fn toggle_mark(&mut self) {
        if let Some(lead) = &self.selected
            && !self.marks.remove(lead)
        {
            self.marks.insert(lead.clone());
        }
    }

    /// Marks no lead any more.
    pub fn unmark_all(&mut self) {
        self.marks.clear();
    }

    /// Takes the marks off these.
    pub fn unmark(&mut self, leads: &[SessionId]) {
        self.marks.retain(|lead| !leads.contains(lead));
    }

    /// Takes the marks off those that are not listed any more, and gives them.
    pub fn unmark_gone(&mut self, model: &Model) -> Vec<SessionId> {
        let gone: Vec<_> = self.marks.iter().filter(|lead| model.lead(lead).is_none()).cloned().collect();
        self.marks.retain(|lead| !gone.contains(lead));
        gone
    }

    /// The leads that a broadcast is to, the marked, else those that the filter shows. None
    /// without either.
    pub fn chosen(&self, model: &Model) -> Vec<SessionId> {
        if !self.marks.is_empty() {
            let listed = model.roster().leads.iter().map(|lead| &lead.session);
            return listed.filter(|lead| self.is_marked(lead)).cloned().collect();
        }
        let shown = || self.rows.iter().filter_map(Row::session).cloned().collect();
        if self.filter.text().is_empty() { Vec::new() } else { shown() }
    }

    /// Whether `lead` is pinned: it stands first in its group.
    pub fn is_pinned(&self, lead: &SessionId) -> bool {
        self.pins.contains(lead)
    }

    /// Pins leads, as they were pinned before.
    pub fn pin(&mut self, leads: impl IntoIterator<Item = SessionId>) {
        self.pins.extend(leads);
    }

    /// Pins the lead under the cursor, or not any more; which one, and whether it is pinned now.
    pub fn toggle_pin(&mut self, model: &Model, now: Now) -> Option<(SessionId, bool)> {
        let lead = self.selected.clone()?;
        let pinned = !self.pins.remove(&lead);
        if pinned {
            self.pins.insert(lead.clone());
        }
        // What moves is what the operator put the cursor on.
        self.placed = true;
        self.refilter(model, now);
        Some((lead, pinned))
    }

    /// What the list is filtered by.
    pub fn filter(&self) -> &Field {
        &self.filter
    }

    /// Whether only leads that wait are shown.
    pub fn is_waiting_only(&self) -> bool {
        self.waiting_only
    }

    /// Takes over what changed in the model. While `frozen`, no row moves: only what is gone goes.
    pub fn follow(&mut self, model: &Model, now: Now, frozen: bool) {
        if self.seen == Some(model.generation()) {
            return;
        }
        if frozen {
            self.rows.retain(|row| row.session().is_none_or(|session| model.lead(session).is_some()));
        } else {
            self.seen = Some(model.generation());
            self.arrange(model, now);
        }
        self.keep_selection();
    }

    fn arrange(&mut self, model: &Model, now: Now) {
        let was = self.selected_row();
        let leads = &model.roster().leads;
        let names = order::shown_names(leads);
        let matches = self.matcher();
        // The order needs no times of day, only which ask is older.
        let far = u64::MAX >> 12;
        let asked_at = |lead: &Lead| {
            let age = model.ask_age(lead, now)?;
            Some(Timestamp::from_millis(far.saturating_sub(age.as_millis() as u64)))
        };
        let group_of = |lead: &Lead| match lead.needs_you() && !model.needs_you(lead) {
            true => order::Group::Snoozed,
            false => order::Group::of(lead),
        };
        let mut order = order::by_attention(leads, asked_at);
        order.sort_by_key(|at| (group_of(&leads[*at]), !self.is_pinned(&leads[*at].session)));
        let mut rows = Vec::with_capacity(leads.len() + 6);
        let mut group = None;
        for at in order {
            let lead = &leads[at];
            if self.waiting_only && !model.needs_you(lead) {
                continue;
            }
            let name = text::line(&names[at]);
            if !matches(&name) {
                continue;
            }
            let its_group = group_of(lead);
            if group != Some(its_group) {
                group = Some(its_group);
                rows.push(Row::Group(its_group));
            }
            rows.push(Row::Lead { session: lead.session.clone(), at, name });
        }
        self.rows = rows;
        if let (Some(was), Some(row)) = (was, self.selected_row()) {
            self.scroll.keep_line(was, row);
        }
    }

    fn matcher(&self) -> impl Fn(&Visible) -> bool + use<> {
        let text = self.filter.text();
        let pattern =
            (!text.is_empty()).then(|| Pattern::parse(text, CaseMatching::Smart, Normalization::Smart));
        let matcher = std::cell::RefCell::new(Matcher::new(Config::DEFAULT.match_paths()));
        move |name| match &pattern {
            None => true,
            Some(pattern) => {
                let mut buffer = Vec::new();
                let haystack = Utf32Str::new(name.as_str(), &mut buffer);
                pattern.score(haystack, &mut matcher.borrow_mut()).is_some()
            }
        }
    }

    fn selected_row(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.iter().position(|row| row.session() == Some(selected))
    }

    /// The cursor stands on a lead as long as there is one.
    fn keep_selection(&mut self) {
        // Until the operator moves it, it stands on what needs them first.
        if !self.placed || self.selected_row().is_none() {
            self.selected = self.rows.iter().find_map(Row::session).cloned();
            self.placed = false;
        }
    }

    /// Puts the cursor on `lead`, showing it even if a filter hides it.
    pub fn select(&mut self, lead: &SessionId, model: &Model, now: Now) {
        self.placed = true;
        if self.selected.as_ref() == Some(lead) {
            return;
        }
        self.selected = Some(lead.clone());
        self.detail = Scroll::default();
        if self.selected_row().is_none() && model.lead(lead).is_some() {
            self.filter.clear();
            self.waiting_only = false;
            self.refilter(model, now);
        }
    }

    fn refilter(&mut self, model: &Model, now: Now) {
        self.arrange(model, now);
        self.keep_selection();
    }

    /// Pasted text goes into the filter as one line.
    pub fn pasted(&mut self, text: &str, model: &Model, now: Now) {
        if self.filter.pasted(text) {
            self.refilter(model, now);
        }
    }

    /// What a key that is text does to the filter.
    pub fn typed(&mut self, key: KeyEvent, model: &Model, now: Now) {
        if self.filter.typed(key) {
            self.refilter(model, now);
        }
    }

    /// Backs out of the innermost thing that is open.
    pub fn back(&mut self, model: &Model, now: Now) {
        if self.filter.clear() {
            self.refilter(model, now);
        } else if self.detail_open || self.pane == Pane::Detail {
            self.detail_open = false;
            self.pane = Pane::Leads;
        } else if self.waiting_only {
            self.waiting_only = false;
            self.refilter(model, now);
        }
    }

    /// Whether there is anything to back out of.
    pub fn can_back(&self) -> bool {
        self.filter.shown().is_some() || self.detail_open || self.pane == Pane::Detail || self.waiting_only
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent, model: &Model, now: Now) {
        match intent {
            Intent::NextPane | Intent::PreviousPane => {
                self.pane = if self.pane == Pane::Leads { Pane::Detail } else { Pane::Leads };
                self.detail_open = self.pane == Pane::Detail;
            }
            Intent::Open => {
                self.pane = Pane::Detail;
                self.detail_open = true;
            }
            Intent::WaitingOnly => {
                self.waiting_only = !self.waiting_only;
                self.refilter(model, now);
            }
            Intent::Filter => {
                self.pane = Pane::Leads;
                self.detail_open = false;
                self.filter.edit();
            }
            Intent::KeepFilter => self.filter.keep(),
            _ if self.pane == Pane::Detail => self.detail.intent(intent),
            _ => self.step(intent),
        }
    }

    fn step(&mut self, intent: Intent) {
        let leads: Vec<&SessionId> = self.rows.iter().filter_map(Row::session).collect();
        let Some(last) = leads.len().checked_sub(1) else { return };
        let at = (self.selected.as_ref())
            .and_then(|selected| leads.iter().position(|lead| *lead == selected))
            .unwrap_or(0);
        let next = match intent {
            Intent::First => 0,
            Intent::Last => last,
            _ => at.saturating_add_signed(self.scroll.step(intent)).min(last),
        };
        self.placed = true;
        if next != at {
            self.selected = Some(leads[next].clone());
            self.detail = Scroll::default();
        }
    }
}
