//! The console as a pure machine: facts and keys go in, effects and frames come out. No clock, no
//! file, no socket; `run` does what the effects say.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crossterm::event::KeyEvent;

use super::broadcast::Broadcast;
use super::drafts::{Draft, DraftKey};
use super::errand::Errand;
use super::files::{Place, Question};
use super::gating::{Gates, Supervision};
use super::guide::Guide;
use super::history::History;
use super::intent::{Context, Intent};
use super::keymap::{Keymap, Pressed, Sequence};
use super::lessons::Inserted;
use super::pager::Paging;
use super::snippets::Snippets;
use super::text::{self, Visible};
use super::theme::{Role, Theme};
use super::view::{
    ask, broadcast, diagnostics, help, inbox, lessons, peek, peers, roster, search, signals, timeline,
    transcript, turns,
};
use crate::chief::inspection::Subject;
use crate::chief::service::Request;
use crate::contract::{SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::{Fact, Now};
use crate::model::Model;
use crate::signals::recite::Recital;

/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(8);

/// What the console wants done.
#[derive(Debug)]
pub enum Effect {
    /// The service shall do this.
    Request(Request),
    /// This draft shall be durable.
    SaveDraft(Draft),
    /// Drafts that are not durable yet shall be, without waiting for the next key.
    SaveDraftsNow,
    /// This draft was sent.
    RemoveDraft(DraftKey),
    /// This broadcast shall be durable.
    SaveBroadcast(Broadcast),
    /// The broadcast that goes out shall be, at once; [`App::broadcast_kept`] is to be told.
    KeepBroadcast(Broadcast),
    /// No broadcast is to be kept.
    RemoveBroadcast,
    /// It shall be kept that this lead is pinned, or is not.
    Pin(SessionId, bool),
    /// This text shall be on the clipboard.
    Copy(Untrusted),
    /// This shall be found out about files.
    Find(Question),
    /// This shall be done for lessons or the gate.
    Errand(Errand),
    /// The operator's editor shall have this text.
    Edit(String),
    /// This shall be read in the pager.
    Page(Paging),
    /// Everything shall be drawn anew.
    Redraw,
    /// The shell shall have the terminal.
    Suspend,
    /// Chief mode was left.
    Left,
    /// We became Chief.
    BecameChief,
    /// The console shall end.
    Quit,
}

/// What does not change while the console runs.
pub struct Settings {
    /// The Herdr session's name, for the header.
    pub herdr_session: Untrusted,
    /// Where Herdr's socket was looked for.
    pub looked_for: String,
    /// Keys.
    pub keymap: Keymap,
    /// Styles and glyphs.
    pub theme: Theme,
    /// A time of day as the operator's clock shows it.
    pub clock: fn(Timestamp) -> String,
    /// Texts that one key inserts.
    pub snippets: Snippets,
    /// Where the paths begin that are mentioned.
    pub place: Place,
    /// What the configuration lets the console do for the supervisor.
    pub supervision: Supervision,
    /// Whether to name the next key to try.
    pub guided: bool,
}

/// One thing said in the footer.
#[derive(Debug, Clone)]
pub struct Notice {
    /// What.
    pub text: Visible,
    /// How grave.
    pub role: Role,
    until: Duration,
}

/// A question of the console's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirm {
    /// Leave Chief mode.
    Leave,
    /// Quit although messages are queued.
    Quit,
    /// Put the lesson of this name away.
    Archive(String),
    /// Send the broadcast.
    Broadcast,
    /// For how long to put this ask off.
    Snooze {
        /// Who asks.
        lead: SessionId,
        /// The ask.
        ask: Uuid,
    },
}

/// What lies over the roster, the last on top.
pub enum Layer {
    /// One ask.
    Ask(Box<ask::State>),
    /// The help.
    Help(help::State),
    /// The diagnostics.
    Diagnostics(diagnostics::State),
    /// What leads sent.
    Inbox(Box<inbox::State>),
    /// The peers.
    Peers(peers::State),
    /// How turns went.
    Turns(turns::State),
    /// What the leads' sessions show.
    Signals(signals::State),
    /// A lead's pane.
    Peek(peek::State),
    /// What happened.
    Timeline(timeline::State),
    /// What was said in a session.
    Transcript(Box<transcript::State>),
    /// The search in sessions.
    Search(Box<search::State>),
    /// Lessons, or what is to become one.
    Lessons(Box<lessons::State>),
    /// The broadcast.
    Broadcast,
}

/// What a request was for, while its outcome is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pending {
    Reply(DraftKey),
    BecomeChief,
    Leave,
    Focus,
    /// Of this message.
    Again(Uuid),
    Mark,
    Snooze {
        /// Whether the ask comes back by it.
        ends: bool,
    },
    /// The message of the broadcast to this lead.
    Broadcast(SessionId),
}

/// The console.
pub struct App {
    /// Everything known.
    pub model: Model,
    /// What does not change.
    pub settings: Settings,
    /// The roster and the detail beside it.
    pub roster: roster::State,
    /// What lies over it.
    pub layers: Vec<Layer>,
    /// A question, over everything.
    pub confirm: Option<Confirm>,
    pub(super) notice: Option<Notice>,
    pub(super) history: History,
    pub(super) sequence: Sequence,
    pub(super) drafts: HashMap<DraftKey, Draft>,
    pub(super) broadcast: Option<Box<broadcast::State>>,
    pub(super) pending: Vec<(u64, Pending)>,
    /// What was sent from which draft, while no lead is known to have it.
    pub(super) on_their_way: Vec<(Uuid, DraftKey)>,
    /// What was recited to each lead last.
    pub(super) recited: HashMap<SessionId, Recital>,
    /// Lessons that were inserted into which draft.
    pub(super) inserted: HashMap<DraftKey, Vec<Inserted>>,
    /// What the gate found.
    pub gates: Gates,
    pub(super) next_ticket: u64,
    pub(super) guide: Option<Guide>,
    /// What is being written out for the pager.
    pub(super) paging: Option<Paging>,
    pub(super) interrupted: Option<Duration>,
    waiting_told: Option<bool>,
    /// Whether the files of a text are being looked at, and paths listed.
    pub(super) finding: (bool, bool),
    pub(super) effects: VecDeque<Effect>,
}

impl App {
    /// A console that knows nothing yet but the drafts kept.
    pub fn new(model: Model, settings: Settings, drafts: impl IntoIterator<Item = Draft>) -> Self {
        let guide = settings.guided.then(Guide::default);
        Self {
            model,
            settings,
            roster: roster::State::default(),
            layers: Vec::new(),
            confirm: None,
            notice: None,
            history: History::default(),
            sequence: Sequence::default(),
            drafts: drafts.into_iter().map(|draft| (draft.key(), draft)).collect(),
            broadcast: None,
            pending: Vec::new(),
            on_their_way: Vec::new(),
            recited: HashMap::new(),
            inserted: HashMap::new(),
            gates: Gates::default(),
            next_ticket: 0,
            guide,
            paging: None,
            interrupted: None,
            waiting_told: None,
            finding: (false, false),
            effects: VecDeque::new(),
        }
    }

    /// What is to be done, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.effects.drain(..).collect()
    }

    /// Where keys go now.
    pub fn context(&self) -> Context {
        match self.confirm {
            Some(Confirm::Snooze { .. }) => return Context::Snooze,
            Some(_) => return Context::Confirm,
            None => {}
        }
        match self.layers.last() {
            Some(Layer::Ask(state)) => state.context(),
            Some(Layer::Help(state)) => state.context(),
            Some(Layer::Diagnostics(_)) => Context::Diagnostics,
            Some(Layer::Inbox(state)) => state.context(),
            Some(Layer::Peers(_)) => Context::Peers,
            Some(Layer::Turns(_)) => Context::Turns,
            Some(Layer::Signals(_)) => Context::Signals,
            Some(Layer::Peek(_)) => Context::Peek,
            Some(Layer::Timeline(_)) => Context::Timeline,
            Some(Layer::Transcript(state)) => state.context(),
            Some(Layer::Search(state)) => state.context(),
            Some(Layer::Lessons(state)) => state.context(),
            Some(Layer::Broadcast) => match &self.broadcast {
                Some(state) => state.context(),
                None => Context::Broadcast,
            },
            None => self.roster.context(),
        }
    }

    /// Folds facts in.
    pub fn facts(&mut self, facts: Vec<Fact>, now: Now) {
        for fact in &facts {
            self.recognise(fact);
        }
        self.model.fold(facts, now);
        let mut at = 0;
        while at < self.pending.len() {
            match self.model.take_outcome(self.pending[at].0) {
                Some(result) => {
                    let (_, pending) = self.pending.remove(at);
                    self.outcome(pending, result, now);
                }
                None => at += 1,
            }
        }
        self.remember(now);
        self.take_answers();
        self.drop_drafts_of_what_arrived();
        self.tell_broadcast(now);
        self.unmark_gone(now);
        self.follow(now);
    }

    /// Has the views take over what changed in the model.
    pub(super) fn follow(&mut self, now: Now) {
        let frozen = self.is_composing();
        self.roster.follow(&self.model, now, frozen);
        for layer in &mut self.layers {
            match layer {
                Layer::Ask(state) => state.follow(&self.model),
                Layer::Inbox(state) => state.follow(&self.model),
                Layer::Peers(state) => state.follow(&self.model),
                Layer::Turns(state) => state.follow(&self.model),
                Layer::Signals(state) => state.follow(&self.model),
                Layer::Timeline(state) => state.follow(self.history.timeline()),
                Layer::Search(state) => state.follow(&self.model),
                Layer::Help(_)
                | Layer::Diagnostics(_)
                | Layer::Peek(_)
                | Layer::Transcript(_)
                | Layer::Lessons(_)
                | Layer::Broadcast => {}
            }
        }
        self.follow_transcript(now);
        self.inquire();
        let waiting = self.model.asks().is_some();
        if self.waiting_told != Some(waiting) {
            self.waiting_told = Some(waiting);
            self.effects.push_back(Effect::Request(Request::Waiting(waiting)));
        }
    }

    /// Whether somebody looks at the peers, so that they have to be looked at.
    pub fn shows_peers(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer, Layer::Peers(_)))
    }

    /// Whether somebody looks at the turns, so that their logs have to be looked at.
    pub fn shows_turns(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer, Layer::Turns(_)))
    }

    /// Whose pane somebody looks at, so that it has to be looked at.
    pub fn peeked(&self) -> Option<Subject> {
        let Some(Layer::Peek(state)) = self.layers.last() else { return None };
        self.model.lead(state.lead()).map(Subject::of)
    }

    /// Whether there is a draft for `key`.
    pub fn keeps(&self, key: &DraftKey) -> bool {
        self.drafts.contains_key(key)
    }

    fn is_composing(&self) -> bool {
        self.layers.iter().any(|layer| match layer {
            Layer::Ask(state) => state.is_composing(),
            Layer::Broadcast => self.broadcast.as_ref().is_some_and(|state| state.is_writing()),
            _ => false,
        })
    }

    /// Says something in the footer for a while.
    pub fn say(&mut self, text: std::fmt::Arguments<'_>, role: Role, now: Now) {
        self.notice = Some(Notice { text: text::line(text), role, until: now.mono + NOTICE });
    }

    /// Says nothing in the footer any more.
    pub fn quiet(&mut self) {
        self.notice = None;
    }

    /// A key outside bursts.
    pub fn key(&mut self, key: KeyEvent, now: Now) {
        self.settle(now);
        self.touched(now);
        // It was seen, and hides the keys.
        self.notice = None;
        let context = self.context();
        match self.settings.keymap.press(context, &mut self.sequence, key) {
            Pressed::Intent(intent) => self.intent(intent, now),
            Pressed::Pending => {}
            Pressed::Unbound => self.typed(key, now),
        }
        self.inquire();
        self.find();
    }

    /// Remembers what is in the open composer, if it changed.
    pub(super) fn keep_draft(&mut self, now: Now) {
        if self.shows_broadcast() {
            return self.keep_broadcast(now);
        }
        if let Some(Layer::Ask(state)) = self.layers.last()
            && let Some(draft) = state.draft(now.wall)
        {
            let key = draft.key();
            let changed = match self.drafts.get(&key) {
                Some(known) => known.text != draft.text,
                None => !draft.text.is_empty(),
            };
            if changed {
                self.drafts.insert(key, draft.clone());
                self.effects.push_back(Effect::SaveDraft(draft));
            }
        }
    }

    pub(super) fn request(&mut self, pending: Pending, request: impl FnOnce(u64) -> Request) {
        self.next_ticket += 1;
        self.pending.push((self.next_ticket, pending));
        self.effects.push_back(Effect::Request(request(self.next_ticket)));
    }

    pub(super) fn intent(&mut self, intent: Intent, now: Now) {
        if let Some(guide) = &mut self.guide {
            guide.tried(intent);
        }
        if intent != Intent::Interrupt {
            self.interrupted = None;
        }
        match intent {
            Intent::Interrupt => self.interrupt(now),
            Intent::Suspend => self.effects.push_back(Effect::Suspend),
            Intent::Redraw => self.effects.push_back(Effect::Redraw),
            Intent::Yes | Intent::No => self.confirmed(intent == Intent::Yes, now),
            Intent::Back => self.back(now),
            Intent::Help => match self.layers.last() {
                Some(Layer::Help(_)) => drop(self.layers.pop()),
                _ => self.layers.push(Layer::Help(help::State::of(self.context()))),
            },
            Intent::Diagnostics => match self.layers.last() {
                Some(Layer::Diagnostics(_)) => drop(self.layers.pop()),
                _ => self.layers.push(Layer::Diagnostics(diagnostics::State::default())),
            },
            Intent::Inbox => self.toggle_inbox(),
            Intent::LeadOnly => self.lead_only(now),
            Intent::LeadInbox => self.lead_inbox(now),
            Intent::ToggleRead => self.toggle_read(now),
            Intent::ReadAll => self.read_all(now),
            Intent::NextMatch | Intent::PreviousMatch if self.transcript_on_top().is_none() => {
                self.next_match(intent == Intent::NextMatch, now)
            }
            Intent::SendAgain => self.send_again(now),
            Intent::Snooze => self.snooze(now),
            Intent::SnoozeShort | Intent::SnoozeHour | Intent::SnoozeChange => self.snooze_for(intent, now),
            Intent::Mark => self.roster.toggle_mark(),
            Intent::UnmarkAll => self.unmark_all(now),
            Intent::Pin => self.toggle_pin(now),
            Intent::Broadcast => self.open_broadcast(now),
            Intent::Forget => self.forget_broadcast(now),
            Intent::Peers => match self.layers.last() {
                Some(Layer::Peers(_)) => drop(self.layers.pop()),
                _ if self.shows_peers() => {}
                _ => self.layers.push(Layer::Peers(peers::State::open(&self.model))),
            },
            Intent::Turns => match self.layers.last() {
                Some(Layer::Turns(_)) => drop(self.layers.pop()),
                _ if self.shows_turns() => {}
                _ => self.layers.push(Layer::Turns(turns::State::open(&self.model))),
            },
            Intent::Peek => self.peek(now),
            Intent::Signals => self.toggle_signals(),
            Intent::Steer => self.steer(now),
            Intent::Recite => self.recite(now),
            Intent::Timeline => self.toggle_timeline(),
            Intent::Gate => self.gate(now),
            Intent::Lessons => self.toggle_lessons(),
            Intent::Learn => self.learn(now),
            Intent::KeepLesson => self.keep_lesson(now),
            Intent::OfferLessons => self.offer_lessons(now),
            Intent::InsertLesson => self.insert_lesson(now),
            Intent::ArchiveLesson => self.archive(now),
            Intent::Transcript => self.transcript(now),
            Intent::Page => self.page(now),
            Intent::SearchSessions => self.toggle_search(),
            Intent::Quit => self.quit(),
            Intent::ToggleChief => self.toggle_chief(),
            Intent::Reply => self.reply(now),
            Intent::Message => self.message(now),
            Intent::NextAsk => self.next_ask(true, now),
            Intent::PreviousAsk => self.next_ask(false, now),
            Intent::FocusPane => self.focus_pane(now),
            Intent::Copy => self.copy(now),
            Intent::Send => self.enter(now),
            Intent::Newline => {
                if let Some(state) = self.writer() {
                    state.newline(now.mono);
                }
                self.keep_draft(now);
            }
            Intent::Undo | Intent::Redo => self.undo(intent == Intent::Undo, now),
            Intent::Editor => self.edit(),
            Intent::Complete | Intent::NextPath | Intent::PreviousPath => self.paths(intent, now),
            Intent::Snippet(number) => self.snippet(number, now),
            Intent::Open => self.open(now),
            Intent::Up
            | Intent::Down
            | Intent::First
            | Intent::Last
            | Intent::HalfPageUp
            | Intent::HalfPageDown
            | Intent::PageUp
            | Intent::PageDown
            | Intent::NextPane
            | Intent::PreviousPane
            | Intent::WaitingOnly
            | Intent::UnreadOnly
            | Intent::Filter
            | Intent::Search
            | Intent::KeepFilter
            | Intent::Unfold
            | Intent::NextMatch
            | Intent::PreviousMatch
            | Intent::PreviousTurn
            | Intent::NextTurn
            | Intent::PreviousError
            | Intent::NextError
            | Intent::Branches
            | Intent::Thoughts
            | Intent::LessonKind
            | Intent::LessonScope => match self.layers.last_mut() {
                Some(Layer::Ask(state)) => state.intent(intent),
                Some(Layer::Help(state)) => state.intent(intent),
                Some(Layer::Diagnostics(state)) => state.intent(intent),
                Some(Layer::Inbox(state)) => state.intent(intent, &self.model),
                Some(Layer::Peers(state)) => state.intent(intent, &self.model),
                Some(Layer::Turns(state)) => state.intent(intent, &self.model),
                Some(Layer::Signals(state)) => state.intent(intent, &self.model),
                Some(Layer::Peek(state)) => state.intent(intent),
                Some(Layer::Timeline(state)) => state.intent(intent, self.history.timeline()),
                Some(Layer::Transcript(state)) => {
                    if let Some(said) = state.intent(intent, &self.model) {
                        self.say(format_args!("{said}"), Role::Notice, now);
                    }
                }
                Some(Layer::Search(state)) => state.intent(intent, &self.model),
                Some(Layer::Lessons(state)) => state.intent(intent),
                Some(Layer::Broadcast) => {
                    if let Some(state) = &mut self.broadcast {
                        state.intent(intent);
                    }
                }
                None => self.roster.intent(intent, &self.model, now),
            },
        }
    }

    /// The lead that an intent is about.
    pub fn selected(&self) -> Option<&SessionId> {
        match self.layers.last() {
            Some(Layer::Ask(state)) => Some(state.lead()),
            Some(Layer::Inbox(state)) => state.letter()?.lead.as_ref(),
            Some(Layer::Signals(state)) => state.lead(),
            Some(Layer::Peek(state)) => Some(state.lead()),
            Some(Layer::Transcript(state)) => state.lead(),
            Some(Layer::Search(state)) => state.hit(&self.model).map(|hit| &hit.session),
            _ => self.roster.selected(),
        }
    }

    /// When the next frame is due although nothing happens; `ages` is that of the ages drawn.
    pub fn next_frame(&self, ages: Option<Duration>, now: Now) -> Option<Duration> {
        let notice = self.notice.as_ref().map(|notice| notice.until.saturating_sub(now.mono));
        let away = self.history.until().map(|until| until.saturating_sub(now.mono));
        let wakes = self.model.wakes_at().map(|at| at.saturating_sub(now.mono));
        [ages, notice, away, wakes].into_iter().flatten().min()
    }

    /// Time passed: a notice may be over.
    pub fn tick(&mut self, now: Now) {
        self.history.tick(now);
        self.wake(now);
        if self.notice.as_ref().is_some_and(|notice| notice.until <= now.mono) {
            self.notice = None;
        }
    }
}
