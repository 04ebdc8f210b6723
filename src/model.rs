//! The one model: facts folded by exact id. Pure: time is passed in, nothing is read or written.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::chief::staff::evidence_of;
use crate::contract::{SessionId, Timestamp, Uuid};
use crate::disk::mailboxes::Scan;
use crate::fact::{
    Answered, ChangesLost, Desk, Done, Fact, Fate, LeadRead, Mail, Now, Outcome, Peek, PeersRead, Reading,
    Searched, Sent, SentCounts, SessionFile, Standing, Watching,
};
use crate::herd::evidence::{Evidence, State, UnreadableRecord};
use crate::herd::inventory::Inventory;
use crate::herd::order::Names;
use crate::herd::state_block::Observed;
use crate::herd::surroundings::Surroundings;
use crate::herd::{Lead, Roster, project};
use crate::herdr::Registration;
use crate::turn::history::Picture;

pub mod sessions;
pub mod signals;
pub mod snoozes;

use sessions::Sessions;
use signals::Signals;
use snoozes::Snoozes;

/// Outcomes, and answers, kept until the views have seen them.
const MAX_OUTCOMES: usize = 64;

/// Messages of ours remembered; the oldest whose fate is final go first.
const MAX_SENT: usize = 500;

/// Leads listed no more whose names are remembered; who is gone longest goes first.
const MAX_GONE: usize = 500;

/// How Herdr answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HerdrState {
    /// It was not asked yet.
    Starting,
    /// It answers.
    Up,
    /// It does not: what is shown is as old as this.
    Down {
        /// On the monotonic clock.
        since: Duration,
        /// Why and what to do; safe to print.
        reason: String,
    },
}

/// When an ask was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    /// When we first saw it.
    seen: Now,
    /// When its message was written, where we have it.
    at: Option<Timestamp>,
}

/// Since when a lead is in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Since {
    state: State,
    mono: Duration,
    /// Whether we saw it change.
    seen: bool,
}

/// Everything known.
#[derive(Debug, Clone)]
pub struct Model {
    session: SessionId,
    inventory: Option<Arc<Inventory>>,
    herdr: HerdrState,
    records: BTreeMap<String, LeadRead>,
    mailboxes: Arc<Scan>,
    records_problem: Option<String>,
    records_known: bool,
    standing: Standing,
    registration: Registration,
    desk: Option<Desk>,
    watching: Watching,
    changes_lost: Option<ChangesLost>,
    peers: Option<Arc<PeersRead>>,
    turns: Option<Arc<Picture>>,
    peek: Option<Arc<Peek>>,
    sessions: Sessions,
    signals: Signals,
    reading: Option<Arc<Reading>>,
    surroundings: Option<Arc<Surroundings>>,
    searched: Option<Arc<Searched>>,
    sent: BTreeMap<Uuid, Sent>,
    asked: HashMap<(SessionId, Uuid), Asked>,
    asks: Option<(usize, usize)>,
    ask_times: HashMap<(SessionId, Uuid), Timestamp>,
    snoozes: Snoozes,
    mail: Arc<Mail>,
    mail_generation: u64,
    answers: VecDeque<Answered>,
    sent_counts: Arc<SentCounts>,
    since: HashMap<SessionId, Since>,
    outcomes: VecDeque<Outcome>,
    roster: Arc<Roster>,
    /// What those were called that were listed, who went last at the end.
    gone: VecDeque<(SessionId, Names)>,
    generation: u64,
}

impl Model {
    /// Nothing known yet, for a console of `session`.
    pub fn new(session: SessionId, registration: Registration) -> Self {
        Self {
            session,
            inventory: None,
            herdr: HerdrState::Starting,
            records: BTreeMap::new(),
            mailboxes: Arc::default(),
            records_problem: None,
            records_known: false,
            standing: Standing::Starting,
            registration,
            desk: None,
            watching: Watching::Notified,
            changes_lost: None,
            peers: None,
            turns: None,
            peek: None,
            sessions: Sessions::default(),
            signals: Signals::default(),
            reading: None,
            surroundings: None,
            searched: None,
            sent: BTreeMap::new(),
            asked: HashMap::new(),
            asks: None,
            ask_times: HashMap::new(),
            snoozes: Snoozes::default(),
            mail: Arc::default(),
            mail_generation: 0,
            answers: VecDeque::new(),
            sent_counts: Arc::default(),
            since: HashMap::new(),
            outcomes: VecDeque::new(),
            roster: Arc::default(),
            gone: VecDeque::new(),
            generation: 0,
        }
    }

    /// Folds facts in; what follows from several of them is found out once.
    pub fn fold(&mut self, facts: impl IntoIterator<Item = Fact>, now: Now) {
        let mut project_anew = false;
        for fact in facts {
            project_anew |= self.fold_one(fact, now);
        }
        if project_anew {
            self.project(now);
        }
    }

    /// Says whether the roster may be another now.
    fn fold_one(&mut self, fact: Fact, now: Now) -> bool {
        match fact {
            Fact::Inventory(inventory) => {
                self.inventory = Some(inventory);
                self.herdr = HerdrState::Up;
                true
            }
            Fact::HerdrDown { reason } => {
                let since = match &self.herdr {
                    HerdrState::Down { since, .. } => *since,
                    HerdrState::Starting | HerdrState::Up => now.mono,
                };
                self.herdr = HerdrState::Down { since, reason };
                false
            }
            Fact::Lead(hash, LeadRead::Absent) => self.records.remove(&hash).is_some(),
            Fact::Lead(hash, read) => {
                let changed = self.records.get(&hash) != Some(&read);
                self.records.insert(hash, read);
                changed
            }
            Fact::Leads(leads) => {
                let records: BTreeMap<_, _> =
                    leads.iter().filter(|(_, read)| *read != LeadRead::Absent).cloned().collect();
                let changed =
                    self.records != records || self.records_problem.is_some() || !self.records_known;
                self.records = records;
                self.records_problem = None;
                self.records_known = true;
                changed
            }
            Fact::LeadsUnreadable(why) => {
                self.records.clear();
                self.records_problem = Some(why);
                self.records_known = true;
                true
            }
            Fact::Mailboxes(mailboxes) => {
                let changed = self.mailboxes != mailboxes;
                self.mailboxes = mailboxes;
                changed
            }
            Fact::AskTimes(times) => {
                self.ask_times = times.iter().map(|time| ((time.lead.clone(), time.ask), time.at)).collect();
                true
            }
            Fact::Mail(mail) => {
                let changed = self.mail.asks != mail.asks;
                self.signals.follow_mail(&mail);
                self.mail = mail;
                self.mail_generation += 1;
                changed
            }
            Fact::Answered(answered) => {
                if self.answers.len() == MAX_OUTCOMES {
                    self.answers.pop_front();
                }
                self.answers.push_back(answered);
                false
            }
            Fact::Standing(standing) => {
                self.standing = standing;
                false
            }
            Fact::Registration(registration) => {
                self.registration = registration;
                false
            }
            Fact::Desk(desk) => {
                self.desk = Some(desk);
                false
            }
            Fact::Watching(watching) => {
                self.watching = watching;
                false
            }
            Fact::ChangesLost(lost) => {
                self.changes_lost = Some(lost);
                false
            }
            Fact::Peers(peers) => {
                self.peers = Some(peers);
                false
            }
            Fact::Turns(turns) => {
                self.turns = Some(turns);
                false
            }
            Fact::Peek(peek) => {
                self.peek = Some(peek);
                false
            }
            Fact::Activity(lead, read) => {
                // Of one that is not listed any more it is nobody's.
                if self.lead(&lead).is_some() {
                    self.signals.follow(&lead, &read);
                    self.sessions.fold(lead, read, now);
                }
                false
            }
            Fact::Signals(lead, sight) => {
                if let Some(instance) = self.lead(&lead).map(|lead| lead.instance) {
                    self.signals.fold(lead, instance, sight);
                }
                false
            }
            Fact::Reading(reading) => {
                self.reading = Some(reading);
                false
            }
            Fact::Surroundings(surroundings) => {
                self.surroundings = Some(surroundings);
                false
            }
            Fact::Searched(searched) => {
                self.searched = Some(searched);
                false
            }
            Fact::Sent(sent) => {
                self.sent.insert(sent.id, sent);
                if self.sent.len() > MAX_SENT {
                    let settled = self.sent.values().filter(|sent| sent.fate.is_final(sent.kind));
                    if let Some(oldest) = settled.min_by_key(|sent| (sent.at, sent.id)).map(|sent| sent.id) {
                        self.sent.remove(&oldest);
                    }
                }
                false
            }
            Fact::SentCounts(counts) => {
                self.sent_counts = counts;
                false
            }
            Fact::Snoozes(snoozes) => {
                self.snoozes.fold(&snoozes, now);
                true
            }
            Fact::Outcome(outcome) => {
                if self.outcomes.len() == MAX_OUTCOMES {
                    self.outcomes.pop_front();
                }
                self.outcomes.push_back(outcome);
                false
            }
        }
    }

    fn project(&mut self, now: Now) {
        let roster = Arc::new(project(&self.evidence()));
        let before = std::mem::replace(&mut self.roster, roster);
        self.date_asks(now);
        self.asks = self.count_asks(now);
        let mut since = HashMap::with_capacity(self.roster.leads.len());
        for lead in &self.roster.leads {
            let entry = match self.since.get(&lead.session) {
                Some(since) if since.state == lead.state => *since,
                Some(_) => Since { state: lead.state, mono: now.mono, seen: true },
                None => Since { state: lead.state, mono: now.mono, seen: false },
            };
            since.insert(lead.session.clone(), entry);
        }
        self.sessions.retain(|session| since.contains_key(session));
        self.signals.follow_leads(&self.roster.leads, |session| since.contains_key(session));
        self.since = since;
        self.remember_names(&before);
    }

    /// Keeps what those were called that are listed no more.
    fn remember_names(&mut self, before: &Roster) {
        let listed = &self.since;
        self.gone.retain(|(session, _)| !listed.contains_key(session));
        for lead in before.leads.iter().filter(|lead| !listed.contains_key(&lead.session)) {
            if self.gone.len() == MAX_GONE {
                self.gone.pop_front();
            }
            let names = Names {
                display_name: lead.display_name.clone(),
                workspace_label: lead.workspace_label.clone(),
                name: lead.name.clone(),
            };
            self.gone.push_back((lead.session.clone(), names));
        }
    }

    fn evidence(&self) -> Evidence {
        let nothing = Inventory::default();
        let inventory = self.inventory.as_deref().unwrap_or(&nothing);
        let mut evidence = evidence_of(inventory, &self.mailboxes, self.session.clone());
        for (hash, read) in &self.records {
            match read {
                LeadRead::Valid(record) => evidence.leads.push(record.clone()),
                LeadRead::Refused(why) => {
                    evidence
                        .unreadable_leads
                        .push(UnreadableRecord { hash: Some(hash.clone()), why: why.clone() });
                }
                LeadRead::Absent => {}
            }
        }
        evidence
    }

    /// How many need you, and where the one stands that asks longest. All ages grow alike, so it stays that
    /// one until the next projection; every frame asks for it.
    fn count_asks(&self, now: Now) -> Option<(usize, usize)> {
        let asking = || self.roster.leads.iter().enumerate().filter(|(_, lead)| self.needs_you(lead));
        // Of equal ones the first, as in the list.
        let oldest = asking().rev().max_by_key(|(_, lead)| self.ask_age(lead, now)).map(|(at, _)| at)?;
        Some((asking().count(), oldest))
    }

    /// Remembers since when each open ask is, and forgets the others.
    fn date_asks(&mut self, now: Now) {
        let mut asked = HashMap::new();
        for lead in &self.roster.leads {
            if let Some(ask) = &lead.pending_ask {
                let key = (lead.session.clone(), ask.ask);
                let mut entry = self.asked.get(&key).copied().unwrap_or(Asked { seen: now, at: None });
                let journalled =
                    || self.mail.asks.iter().find(|it| it.ask == ask.ask && it.lead == lead.session);
                // Its record was written when it was put, or later.
                let recorded = || match self.records.get(&lead.session.hash()) {
                    Some(LeadRead::Valid(record)) => Some(record.updated_at),
                    _ => None,
                };
                entry.at = (self.ask_times.get(&key).copied())
                    .or_else(|| journalled().map(|known| known.at))
                    .or(entry.at)
                    .or_else(recorded);
                asked.insert(key, entry);
            }
        }
        self.asked = asked;
        self.generation += 1;
    }

    /// Our session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Who is a lead, and what was left out.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Rises with every change of the roster or of when its asks were put.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What was received.
    pub fn mail(&self) -> &Mail {
        &self.mail
    }

    /// Rises with everything that becomes known of what was received.
    pub fn mail_generation(&self) -> u64 {
        self.mail_generation
    }

    /// Whether both Herdr and the records were looked at.
    pub fn is_complete(&self) -> bool {
        self.inventory.is_some() && self.records_known
    }

    /// The lead of `session`.
    pub fn lead(&self, session: &SessionId) -> Option<&Lead> {
        self.roster.lead(session)
    }

    /// What the lead of `session` was called when it was last listed, if it was in this run and is not
    /// now.
    pub fn last_names(&self, session: &SessionId) -> Option<&Names> {
        self.gone.iter().rev().find(|(gone, _)| gone == session).map(|(_, names)| names)
    }

    /// What Herdr shows, as of when it last answered.
    pub fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_deref()
    }

    /// How Herdr answers.
    pub fn herdr(&self) -> &HerdrState {
        &self.herdr
    }

    /// Why the lead records can't be read at all, if they can't.
    pub fn records_problem(&self) -> Option<&str> {
        self.records_problem.as_deref()
    }

    /// What we are.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Whether leads see us in Herdr.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Where the Chief service is, once that is known.
    pub fn desk(&self) -> Option<&Desk> {
        self.desk.as_ref()
    }

    /// The process that has the service and does not answer, if it does not.
    pub fn silent_desk(&self) -> Option<u32> {
        match self.desk {
            Some(Desk::Of { pid, answers: false }) => Some(pid),
            _ => None,
        }
    }

    /// How changes are noticed.
    pub fn watching(&self) -> &Watching {
        &self.watching
    }

    /// Changes that the system did not tell, if that ever happened.
    pub fn changes_lost(&self) -> Option<ChangesLost> {
        self.changes_lost
    }

    /// The leads' peers as they were last looked at, or why they can't be; nothing before the first
    /// look.
    pub fn peers(&self) -> Option<&PeersRead> {
        self.peers.as_deref()
    }

    /// How turns went, as of the last look; nothing before the first one.
    pub fn turns(&self) -> Option<&Picture> {
        self.turns.as_deref()
    }

    /// What is on the pane of `lead`, if that was looked at last.
    pub fn peek(&self, lead: &SessionId) -> Option<&Peek> {
        self.peek.as_deref().filter(|peek| peek.session == *lead)
    }

    /// What is known of `file`, if that was read last.
    pub fn reading(&self, file: &SessionFile) -> Option<&Arc<Reading>> {
        self.reading.as_ref().filter(|reading| reading.file == *file)
    }

    /// Forgets what was read: nobody looks at it any more.
    pub fn close_reading(&mut self) {
        self.reading = None;
    }

    /// Leads that are here and are not ours to see, once that was looked for.
    pub fn surroundings(&self) -> Option<&Surroundings> {
        self.surroundings.as_deref()
    }

    /// What the last search in sessions found so far.
    pub fn searched(&self) -> Option<&Searched> {
        self.searched.as_deref()
    }

    /// What the state block says: stale is what Herdr showed before it went silent.
    pub fn observed(&self) -> Observed<'_> {
        match &self.herdr {
            _ if self.records_problem.is_some() => Observed::Unavailable("records_unreadable"),
            _ if !self.is_complete() => Observed::Unavailable("not_looked_at_yet"),
            HerdrState::Down { .. } => Observed::Stale(&self.roster, "herdr_down"),
            HerdrState::Up | HerdrState::Starting => Observed::Fresh(&self.roster),
        }
    }

    /// How long the open ask of `lead` waits: from the time in its message where we have it, else
    /// since we saw it. Never negative, whatever the clocks do.
    pub fn ask_age(&self, lead: &Lead, now: Now) -> Option<Duration> {
        let key = (lead.session.clone(), lead.pending_ask.as_ref()?.ask);
        let asked = self.asked.get(&key)?;
        let before = match asked.at {
            Some(at) => Duration::from_millis(asked.seen.wall.as_millis().saturating_sub(at.as_millis())),
            None => Duration::ZERO,
        };
        Some(before + now.mono.saturating_sub(asked.seen.mono))
    }

    /// How long `lead` is in its state, and whether we saw that begin: else it is at least so long.
    pub fn state_age(&self, lead: &SessionId, now: Now) -> Option<(Duration, bool)> {
        self.since.get(lead).map(|since| (now.mono.saturating_sub(since.mono), since.seen))
    }

    /// How many leads need you, and the one that does so longest.
    pub fn asks(&self) -> Option<(usize, &Lead)> {
        let (count, oldest) = self.asks?;
        Some((count, self.roster.leads.get(oldest)?))
    }

    /// The leads that need you, the longest first.
    pub fn asking(&self, now: Now) -> Vec<&Lead> {
        let mut asking: Vec<_> = self.roster.leads.iter().filter(|lead| self.needs_you(lead)).collect();
        asking.sort_by_key(|lead| std::cmp::Reverse(self.ask_age(lead, now)));
        asking
    }

    /// What we sent to `lead`, the newest first.
    pub fn sent_to<'a>(&'a self, lead: &'a SessionId) -> Vec<&'a Sent> {
        let mut sent: Vec<_> = self.sent.values().filter(|sent| sent.lead == *lead).collect();
        sent.sort_by_key(|sent| std::cmp::Reverse((sent.at, sent.id)));
        sent
    }

    /// How many messages to `lead` have which fate, over the whole journal.
    pub fn sent_counts(&self, lead: &SessionId) -> impl Iterator<Item = (Fate, usize)> {
        self.sent_counts.get(lead).into_iter().flatten().map(|(fate, count)| (*fate, *count))
    }

    /// The newest message to `lead` that it may not have, and that can be sent again.
    pub fn doubtful(&self, lead: &SessionId) -> Option<&Sent> {
        let to_lead = self.sent.values().filter(|sent| sent.lead == *lead && sent.fate.is_doubtful());
        to_lead.max_by_key(|sent| (sent.at, sent.id))
    }

    /// The newest reply to that ask.
    pub fn reply_to(&self, lead: &SessionId, ask: Uuid) -> Option<&Sent> {
        let replies = self.sent.values().filter(|sent| sent.lead == *lead && sent.ask == Some(ask));
        // One that was sent again stands for itself no more.
        replies.filter(|sent| sent.fate != Fate::Again).max_by_key(|sent| (sent.at, sent.id))
    }

    /// The message that `old` was sent again as, the newest if it was so several times.
    pub fn successor(&self, old: &Sent) -> Option<&Sent> {
        let same =
            self.sent.values().filter(|it| (&it.lead, it.ask, &it.text) == (&old.lead, old.ask, &old.text));
        same.filter(|it| it.id != old.id && it.at >= old.at && it.fate != Fate::Again)
            .max_by_key(|it| (it.at, it.id))
    }

    /// What we sent under `id`.
    pub fn sent(&self, id: Uuid) -> Option<&Sent> {
        self.sent.get(&id)
    }

    /// Our messages that stand in inboxes.
    pub fn queued(&self) -> usize {
        self.sent.values().filter(|sent| sent.fate == Fate::Queued).count()
    }

    /// Takes the outcome of the request `ticket`, if it is known.
    pub fn take_outcome(&mut self, ticket: u64) -> Option<Result<Done, String>> {
        let at = self.outcomes.iter().position(|outcome| outcome.ticket == ticket)?;
        self.outcomes.remove(at).map(|outcome| outcome.result)
    }

    /// Takes the answers that came, with their tickets.
    pub fn take_answers(&mut self) -> Vec<Answered> {
        self.answers.drain(..).collect()
    }
}
