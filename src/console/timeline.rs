//! What happened, with times: found by comparing what is known now with what was known before.
//!
//! It is kept in memory only. What stood already when the console first saw the herd did not happen to
//! it: of that only the messages and asks of the journal are listed, marked as old.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::text::{self, Visible};
use crate::contract::{Kind, SessionId, Timestamp, Uuid};
use crate::fact::{Fate, Letter, Now, Standing};
use crate::herd::evidence::State;
use crate::herd::left_out::{Reason, Subject};
use crate::herd::{Lead, order};
use crate::model::Model;
use crate::signals::detect::Signal;
use crate::signals::sight::Word;

/// Events kept; the oldest go first.
pub const MAX_EVENTS: usize = 1000;
/// Asks remembered, so that none is told twice.
const MAX_ASKS: usize = 4 * MAX_EVENTS;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A lead put this ask.
    Asked(Uuid),
    /// It is gone after a reply of ours.
    Answered,
    /// It is gone, and no reply of ours is known.
    AnsweredElsewhere,
    /// A lead that worked does not any more, and asks nothing.
    Finished,
    /// A lead is blocked, and asks nothing.
    Blocked,
    /// A signal of its session began.
    Fired(Signal),
    /// One is over.
    Over(Signal),
    /// A lead is not listed any more, and did not withdraw.
    Lost,
    /// A lead withdrew.
    Left,
    /// A lead is listed that was not.
    Joined,
    /// A message came; its number in the journal.
    Message(u64),
    /// We became Chief.
    BecameChief,
    /// We left Chief mode.
    LeftChief,
    /// We were Chief and are not any more.
    LeaseLost,
}

/// Of what kind an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// See [`What::LeaseLost`]; the others likewise.
    LeaseLost,
    /// An ask was put.
    Asked,
    /// A lead was lost.
    Lost,
    /// A lead is blocked.
    Blocked,
    /// A lead has finished.
    Finished,
    /// A signal of its session began.
    Fired,
    /// One is over.
    Over,
    /// A reply of ours was taken.
    Answered,
    /// An ask went without us.
    AnsweredElsewhere,
    /// A message came.
    Message,
    /// A lead is there.
    Joined,
    /// A lead withdrew.
    Left,
    /// We became Chief.
    BecameChief,
    /// We left Chief mode.
    LeftChief,
}

impl EventKind {
    /// All of them in the order in which a summary counts them.
    const ALL: [Self; 14] = [
        EventKind::LeaseLost,
        EventKind::Asked,
        EventKind::Lost,
        EventKind::Blocked,
        EventKind::Fired,
        EventKind::Finished,
        EventKind::Answered,
        EventKind::AnsweredElsewhere,
        EventKind::Message,
        EventKind::Over,
        EventKind::Joined,
        EventKind::Left,
        EventKind::BecameChief,
        EventKind::LeftChief,
    ];

    /// What it is called in list, summary and notice.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::LeaseLost => "lease lost",
            EventKind::Asked => "asked",
            EventKind::Lost => "lost",
            EventKind::Blocked => "blocked",
            EventKind::Finished => "finished",
            EventKind::Fired => "signal",
            EventKind::Over => "signal over",
            EventKind::Answered => "answered",
            EventKind::AnsweredElsewhere => "answered elsewhere",
            EventKind::Message => "wrote",
            EventKind::Joined => "joined",
            EventKind::Left => "left",
            EventKind::BecameChief => "became Chief",
            EventKind::LeftChief => "left Chief mode",
        }
    }
}

impl What {
    /// Of what kind it is.
    pub fn kind(&self) -> EventKind {
        match self {
            What::Asked(_) => EventKind::Asked,
            What::Answered => EventKind::Answered,
            What::AnsweredElsewhere => EventKind::AnsweredElsewhere,
            What::Finished => EventKind::Finished,
            What::Blocked => EventKind::Blocked,
            What::Fired(_) => EventKind::Fired,
            What::Over(_) => EventKind::Over,
            What::Lost => EventKind::Lost,
            What::Left => EventKind::Left,
            What::Joined => EventKind::Joined,
            What::Message(_) => EventKind::Message,
            What::BecameChief => EventKind::BecameChief,
            What::LeftChief => EventKind::LeftChief,
            What::LeaseLost => EventKind::LeaseLost,
        }
    }
}

/// How many of each kind, the gravest first: `3 asked, 1 lost`; empty without any.
pub fn summary(kinds: impl Iterator<Item = EventKind>) -> String {
    let kinds: Vec<EventKind> = kinds.collect();
    let count = |kind| kinds.iter().filter(|it| **it == kind).count();
    let counts = EventKind::ALL.into_iter().map(|kind| (kind, count(kind)));
    let told = counts.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {}", kind.word()));
    told.collect::<Vec<_>>().join(", ")
}

/// One thing that happened, and when.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its own number; none is given twice.
    pub number: u64,
    /// What.
    pub what: What,
    /// To which lead.
    pub lead: Option<SessionId>,
    /// What that was called then.
    pub name: Visible,
    /// The question, the message's beginning, or the reason; may be empty.
    pub about: Visible,
    /// The time of day.
    pub at: Timestamp,
    /// When it became known to this console.
    pub seen: Now,
    /// Whether that is when it happened; else it is from the journal, or stood already.
    pub is_new: bool,
}

impl Event {
    /// How long ago it happened; the monotonic clock counts since it became known.
    pub fn age(&self, now: Now) -> Duration {
        let before = Duration::from_millis(self.seen.wall.as_millis().saturating_sub(self.at.as_millis()));
        before + now.mono.saturating_sub(self.seen.mono)
    }
}

/// What was known of a lead.
#[derive(Debug)]
struct Known {
    state: State,
    ask: Option<Uuid>,
    name: Visible,
    /// The round in which it was listed last.
    round: u64,
}

/// What happened, the oldest first.
#[derive(Debug, Default)]
pub struct Timeline {
    events: VecDeque<Event>,
    next: u64,
    since: Option<Now>,
    leads: HashMap<SessionId, Known>,
    round: u64,
    generation: Option<u64>,
    mail_generation: u64,
    newest_letter: Option<u64>,
    standing: Option<Standing>,
    signals_generation: u64,
    /// The signal of each lead whose session was watched.
    signals: HashMap<SessionId, Option<Signal>>,
    asks: HashSet<Uuid>,
    asks_in_order: VecDeque<Uuid>,
}

impl Timeline {
    /// Takes over what changed in the model.
    pub fn follow(&mut self, model: &Model, now: Now) {
        self.follow_standing(model.standing(), now);
        if self.mail_generation != model.mail_generation() {
            self.mail_generation = model.mail_generation();
            self.follow_mail(model, now);
        }
        // Records that can't be read are no leads that left.
        let readable = model.is_complete() && model.records_problem().is_none();
        if readable && self.generation != Some(model.generation()) {
            self.generation = Some(model.generation());
            self.follow_leads(model, now);
            self.name_old(model);
        }
        if readable && self.signals_generation != model.signals().generation() {
            self.signals_generation = model.signals().generation();
            self.follow_signals(model, now);
        }
    }

    /// What stood already when its lead was first watched did not happen to this console, unless it began
    /// since.
    fn follow_signals(&mut self, model: &Model, now: Now) {
        let mut before = std::mem::take(&mut self.signals);
        let since = self.since.map_or(now, |since| since).wall.as_millis();
        for lead in &model.roster().leads {
            let known = before.remove(&lead.session);
            let sight = model.signals().sight(&lead.session);
            if sight.is_none() && known.is_none() {
                continue;
            }
            let fired = sight.and_then(|sight| sight.fired);
            let signal = fired.map(|fired| fired.signal);
            let is_new = fired.is_some_and(|fired| fired.since.is_some_and(|at| at >= since));
            let known = known.unwrap_or(if is_new { None } else { signal });
            self.signals.insert(lead.session.clone(), signal);
            let (what, word) = match (known, signal) {
                (before, Some(signal)) if before != Some(signal) => (What::Fired(signal), Word::of(signal)),
                (Some(signal), None) => (What::Over(signal), Word::of(signal)),
                _ => continue,
            };
            let called = sight.and_then(|sight| sight.rounds.last()).filter(|_| signal.is_some());
            let called = called.map(|round| format!(": {}", text::line(&round.what))).unwrap_or_default();
            let about = text::notice(&format!("{}{called}", word.as_str()));
            self.happened(what, Some(lead.session.clone()), text::line(&lead.display_name), about, now);
        }
    }

    /// The events, the newest first.
    pub fn newest_first(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.events.iter().rev()
    }

    /// The event of that number, while it is kept.
    pub fn event(&self, number: u64) -> Option<&Event> {
        self.events.iter().rev().find(|event| event.number == number)
    }

    /// The number that the next event gets.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// What happened from number `from` on, as far as it is kept, the oldest first.
    pub fn new_from(&self, from: u64) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.is_new && event.number >= from)
    }

    /// Since when it is known what happened, once the herd was seen.
    pub fn since(&self) -> Option<Now> {
        self.since
    }

    fn follow_standing(&mut self, standing: &Standing, now: Now) {
        if self.standing.as_ref() == Some(standing) {
            return;
        }
        let lease = standing.lease();
        let before = self.standing.as_ref().and_then(Standing::lease);
        let (what, about) = match standing {
            Standing::Chief { .. } if lease != before => (What::BecameChief, String::new()),
            Standing::Lost { reason, .. } if before.is_some() => (What::LeaseLost, reason.clone()),
            Standing::Suspended(chief) if before.is_some() => (What::LeaseLost, chief.sentence()),
            Standing::Observer { .. } if before.is_some() => (What::LeftChief, String::new()),
            _ => {
                self.standing = Some(standing.clone());
                return;
            }
        };
        self.standing = Some(standing.clone());
        self.happened(what, None, Visible::default(), text::notice(&about), now);
    }

    fn follow_mail(&mut self, model: &Model, now: Now) {
        let known = self.newest_letter;
        for letter in &model.mail().newest {
            if known.is_some_and(|known| letter.seq <= known) {
                continue;
            }
            match (letter.kind, letter.ask) {
                (Some(Kind::LeadMessage), _) => {
                    let name = name_of(letter.lead.as_ref(), model);
                    let event = self.of_letter(letter, What::Message(letter.seq), name, now);
                    match known {
                        Some(_) => self.push(event),
                        None => self.insert_old(event),
                    }
                }
                // One that comes now is told by the lead's record.
                (Some(Kind::LeadAsk), Some(ask)) if known.is_none() && self.is_first(ask) => {
                    let name = name_of(letter.lead.as_ref(), model);
                    let event = self.of_letter(letter, What::Asked(ask), name, now);
                    self.insert_old(event);
                }
                _ => {}
            }
        }
        let newest = model.mail().newest.last().map_or(0, |letter| letter.seq);
        self.newest_letter = Some(newest.max(known.unwrap_or(0)));
    }

    fn of_letter(&self, letter: &Letter, what: What, name: Visible, now: Now) -> Event {
        Event {
            number: self.next,
            what,
            lead: letter.lead.clone(),
            name,
            about: text::notice(&letter.preview),
            at: letter.at,
            seen: now,
            is_new: self.newest_letter.is_some(),
        }
    }

    /// What is from the journal may be known before its lead is.
    fn name_old(&mut self, model: &Model) {
        for event in self.events.iter_mut().filter(|event| !event.is_new) {
            if let Some(lead) = event.lead.as_ref().and_then(|lead| model.lead(lead)) {
                event.name = text::line(&lead.display_name);
            }
        }
    }

    fn follow_leads(&mut self, model: &Model, now: Now) {
        let is_first_look = self.since.is_none();
        self.since.get_or_insert(now);
        self.round += 1;
        for lead in &model.roster().leads {
            match self.leads.get_mut(&lead.session) {
                Some(known) => {
                    known.round = self.round;
                    let ask = lead.pending_ask.as_ref().map(|ask| ask.ask);
                    let (state_before, ask_before) = (known.state, known.ask);
                    if (state_before, ask_before) != (lead.state, ask) {
                        known.state = lead.state;
                        known.ask = ask;
                        self.changed(lead, state_before, ask_before, model, now);
                    }
                }
                None => {
                    let name = text::line(&lead.display_name);
                    let ask = lead.pending_ask.as_ref().map(|ask| ask.ask);
                    let known = Known { state: lead.state, ask, name: name.clone(), round: self.round };
                    self.leads.insert(lead.session.clone(), known);
                    if is_first_look {
                        self.stood_already(lead, model, now);
                        continue;
                    }
                    self.happened(What::Joined, Some(lead.session.clone()), name, Visible::default(), now);
                    self.changed(lead, State::Unknown, None, model, now);
                }
            }
        }
        if self.leads.len() > model.roster().leads.len() {
            self.gone(model, now);
        }
    }

    /// A lead that was here before us: what it asks is listed, and is no news.
    fn stood_already(&mut self, lead: &Lead, model: &Model, now: Now) {
        let Some(ask) = &lead.pending_ask else { return };
        if !self.is_first(ask.ask) {
            return;
        }
        let age = model.ask_age(lead, now).unwrap_or_default();
        let at = now.wall.as_millis().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        self.insert_old(Event {
            number: self.next,
            what: What::Asked(ask.ask),
            lead: Some(lead.session.clone()),
            name: text::line(&lead.display_name),
            about: text::notice(&ask.question),
            at: Timestamp::from_millis(at),
            seen: now,
            is_new: false,
        });
    }

    fn changed(&mut self, lead: &Lead, state: State, ask: Option<Uuid>, model: &Model, now: Now) {
        let session = || Some(lead.session.clone());
        let name = text::line(&lead.display_name);
        if let Some(known) = self.leads.get_mut(&lead.session) {
            known.name = name.clone();
        }
        let pending = lead.pending_ask.as_ref();
        if let Some(before) = ask
            && pending.map(|pending| pending.ask) != Some(before)
        {
            let ours = model.reply_to(&lead.session, before);
            let what = match ours.map(|sent| sent.fate) {
                Some(fate) if !fate.is_doubtful() && fate != Fate::Again => What::Answered,
                _ => What::AnsweredElsewhere,
            };
            self.happened(what, session(), name.clone(), Visible::default(), now);
        }
        if let Some(pending) = pending {
            // It may have been told already, as of a lead that went and came back.
            if ask != Some(pending.ask) && self.is_first(pending.ask) {
                let about = text::notice(&pending.question);
                self.happened(What::Asked(pending.ask), session(), name, about, now);
            }
            return;
        }
        let what = match (state, lead.state) {
            (State::Blocked, State::Blocked) => return,
            (_, State::Blocked) => What::Blocked,
            (State::Working, State::Idle | State::Done) => What::Finished,
            _ => return,
        };
        self.happened(what, session(), name, Visible::default(), now);
    }

    /// Leads that are not listed any more.
    fn gone(&mut self, model: &Model, now: Now) {
        let round = self.round;
        let mut gone: Vec<SessionId> = self
            .leads
            .iter()
            .filter(|(_, known)| known.round != round)
            .map(|(lead, _)| lead.clone())
            .collect();
        gone.sort_unstable();
        // Looked up once for all: a herd that vanishes is as large as the list of what was left out.
        let left_out: HashMap<_, _> = (model.roster().left_out.iter())
            .filter(|left| !matches!(left.subject, Subject::ManagedAgent { .. }))
            .filter_map(|left| Some((left.subject.session()?, &left.reason)))
            .collect();
        for lead in gone {
            let Some(known) = self.leads.remove(&lead) else { continue };
            // Who withdraws removes the record first; a record that stays has lost its lead.
            let what = match left_out.get(lead.as_untrusted()) {
                None | Some(Reason::NoRecord | Reason::Managed | Reason::IsChief) => What::Left,
                Some(_) => What::Lost,
            };
            self.happened(what, Some(lead), known.name, Visible::default(), now);
        }
    }

    /// Whether this ask was not told yet; it is from now on.
    fn is_first(&mut self, ask: Uuid) -> bool {
        let first = self.asks.insert(ask);
        if first {
            self.asks_in_order.push_back(ask);
            if self.asks_in_order.len() > MAX_ASKS
                && let Some(oldest) = self.asks_in_order.pop_front()
            {
                self.asks.remove(&oldest);
            }
        }
        first
    }

    fn happened(&mut self, what: What, lead: Option<SessionId>, name: Visible, about: Visible, now: Now) {
        let number = self.next;
        self.push(Event { number, what, lead, name, about, at: now.wall, seen: now, is_new: true });
    }

    fn push(&mut self, event: Event) {
        self.next += 1;
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Puts in what happened before, where it belongs.
    fn insert_old(&mut self, event: Event) {
        self.next += 1;
        let at = self.events.iter().rposition(|known| known.at <= event.at).map_or(0, |at| at + 1);
        if self.events.len() < MAX_EVENTS {
            self.events.insert(at, event);
        }
    }
}

/// What the sender of a letter is called, or was.
fn name_of(lead: Option<&SessionId>, model: &Model) -> Visible {
    let Some(session) = lead else { return text::line("nobody known") };
    match (model.lead(session), model.last_names(session)) {
        (Some(lead), _) => text::line(&lead.display_name),
        (None, Some(names)) => text::line(&names.display_name),
        (None, None) => text::line(&session.as_untrusted().first_units(order::MIN_PREFIX)),
    }
}
