//! What the leads' sessions show by themselves, judged with what else is known of each lead.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use crate::contract::{Kind, SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::{Mail, Now, SessionRead};
use crate::herd::{Lead, State};
use crate::signals::self_report::Circumstances;
use crate::signals::sight::{Sight, Standing, Word};
use crate::signals::steer::Basis;
use crate::signals::watch::SILENCE;

/// Leads listed no more of which it is remembered what they were last seen doing.
const MAX_GONE: usize = 500;

/// What is known of one lead's session.
#[derive(Debug, Clone)]
struct Known {
    /// The instance of the lead that is, or was, listed.
    instance: Uuid,
    sight: Option<Arc<Sight>>,
    /// The last round that was seen.
    last: Option<String>,
    /// The last round before the lead was started anew: what it shows is not of this instance.
    before: Option<String>,
}

impl Known {
    fn of(instance: Uuid) -> Self {
        Self { instance, sight: None, last: None, before: None }
    }

    fn is_of(&mut self, instance: Uuid) {
        if self.instance != instance {
            self.instance = instance;
            self.before.clone_from(&self.last);
        }
    }

    fn sight(&self) -> Option<&Sight> {
        let is_before = |sight: &&Sight| sight.last_round.is_some() && sight.last_round == self.before;
        self.sight.as_deref().filter(|sight| !is_before(sight))
    }
}

/// What is known of all of them.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    known: HashMap<SessionId, Known>,
    /// What each lead wrote last, and when.
    wrote: HashMap<SessionId, (Timestamp, Untrusted)>,
    generation: u64,
}

impl Signals {
    pub(super) fn fold(&mut self, lead: SessionId, instance: Uuid, sight: Arc<Sight>) {
        let known = self.known.entry(lead).or_insert_with(|| Known::of(instance));
        known.is_of(instance);
        known.last.clone_from(&sight.last_round);
        known.sight = Some(sight);
        self.generation += 1;
    }

    /// Nothing is to be seen of a session that can't be read.
    pub(super) fn follow(&mut self, lead: &SessionId, read: &SessionRead) {
        if let (SessionRead::Unread(_), Some(known)) = (read, self.known.get_mut(lead)) {
            known.sight = None;
            self.generation += 1;
        }
    }

    /// Takes over who is listed.
    pub(super) fn follow_leads(&mut self, leads: &[Lead], is_listed: impl Fn(&SessionId) -> bool) {
        for lead in leads {
            if let Some(known) = self.known.get_mut(&lead.session) {
                known.is_of(lead.instance);
            }
        }
        for (_, known) in self.known.iter_mut().filter(|(session, _)| !is_listed(session)) {
            known.sight = None;
        }
        let mut room = MAX_GONE;
        self.known.retain(|session, _| {
            let stays = is_listed(session) || room > 0;
            room = room.saturating_sub(usize::from(!is_listed(session)));
            stays
        });
        self.generation += 1;
    }

    pub(super) fn follow_mail(&mut self, mail: &Mail) {
        self.wrote.clear();
        for letter in mail.newest.iter().filter(|letter| letter.kind == Some(Kind::LeadMessage)) {
            if let Some(lead) = &letter.lead {
                self.wrote.insert(lead.clone(), (letter.at, letter.preview.clone()));
            }
        }
        self.generation += 1;
    }

    /// Rises with everything that becomes known of them.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What the session of `lead` shows, if it was read; of one that was started anew only once there is
    /// something that this instance did.
    pub fn sight(&self, lead: &SessionId) -> Option<&Sight> {
        self.known.get(lead)?.sight()
    }
}

/// What is to be thought of one lead.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    /// What its session shows.
    pub sight: &'a Sight,
    /// What is advised.
    pub standing: Standing,
    /// What it is marked with, the gravest first; that it is silent is [`Model::silence`]'s.
    pub words: Vec<Word>,
}

impl Judged<'_> {
    /// Whether a draft that steers it is to be offered.
    pub fn offers_draft(&self) -> bool {
        self.standing.draft.is_some() && self.sight.fired.is_some_and(|fired| fired.is_offered)
    }
}

impl Model {
    /// What the leads' sessions show by themselves. What follows from it for one lead: [`Model::judged`].
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// What is to be thought of `lead`, if its session is watched.
    pub fn judged(&self, lead: &Lead) -> Option<Judged<'_>> {
        let sight = self.signals.sight(&lead.session)?;
        let standing = self.standing_of(lead, sight);
        let words = Word::all(sight, &standing);
        Some(Judged { sight, standing, words })
    }

    /// For how long nothing came from `lead`, if it works and that is long. Idle is not a fault.
    pub fn silence(&self, lead: &Lead, now: Now) -> Option<Duration> {
        let waits_since = self.signals.sight(&lead.session)?.waits_since;
        let since = waits_since.filter(|_| lead.state == State::Working)?;
        let quiet = self.sessions.age(&lead.session, Timestamp::from_millis(since), now);
        (quiet.as_millis() >= u128::from(SILENCE)).then_some(quiet)
    }

    fn standing_of(&self, lead: &Lead, sight: &Sight) -> Standing {
        let question = lead.pending_ask.as_ref().map(|ask| ask.question.to_str_lossy());
        let wrote = self.signals.wrote.get(&lead.session);
        let wrote = wrote.filter(|(at, _)| sight.asked_at.is_some_and(|asked| at.as_millis() >= asked));
        let wrote = wrote.map(|(_, text)| text.to_str_lossy());
        sight.standing(&Circumstances {
            pending_ask: question.as_deref(),
            is_blocked: lead.state == State::Blocked,
            is_working: lead.state == State::Working,
            last_message: wrote.as_deref(),
        })
    }

    /// What a draft that steers `lead` rests on now; nothing where it is not listed, or nobody of ours is
    /// Chief.
    pub fn basis(&self, lead: &SessionId) -> Option<Basis> {
        let lead = self.lead(lead)?;
        let sight = self.signals.sight(&lead.session);
        let signal = sight.and_then(|sight| sight.fired).map(|fired| fired.signal);
        Some(Basis { signal, instance: lead.instance, lease: self.standing.lease()? })
    }
}
