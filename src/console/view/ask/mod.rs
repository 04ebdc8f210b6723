//! Writing to one lead: the reply to its ask, with the question whole, or a message; and what became
//! of it.

pub mod draw;
mod files;
mod steered;

use std::cell::Cell;
use std::time::Duration;

use crossterm::event::KeyEvent;

use super::list::Scroll;
use crate::chief::attach::FileArgument;
use crate::chief::staff::{self, Letter, Reply};
use crate::console::composer::Composer;
use crate::console::drafts::{Draft, DraftKey};
use crate::console::files::list::Listing;
use crate::console::files::look::Look;
use crate::console::files::{Place, Question};
use crate::console::intent::{Context, Intent};
use crate::console::text::{self, Visible};
use crate::contract::{PendingAsk, SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::{Fate, Standing};
use crate::herd::{Lead, order};
use crate::model::Model;
use crate::signals::recite::Recital;

/// What sending came to, before the service is asked.
pub enum Sending {
    /// Not sent; why is shown.
    Refused,
    /// The same text is being sent already.
    Underway,
    /// The files that it mentions are to be seen first.
    Looking,
    /// To be handed to the service.
    Reply(Reply),
    /// To be handed to the service.
    Message(Letter),
}

/// What the operator sees of one ask, or of one message being written.
pub struct State {
    lead: SessionId,
    instance: Uuid,
    /// None: it is a message.
    ask: Option<PendingAsk>,
    name: Visible,
    /// The lease the text is written under.
    lease: Option<Uuid>,
    composer: Composer,
    composing: bool,
    underway: bool,
    sent: Option<Uuid>,
    /// What became of that, as far as it is known.
    fate: Option<Fate>,
    /// Whether the lead still asks this.
    pending: bool,
    /// Why sending was refused.
    problem: Option<String>,
    /// What to know of a draft that was written under other circumstances.
    note: Option<&'static str>,
    /// What the text began as, where a signal suggested it.
    steered: Option<steered::Steered>,
    /// What the lead's user said to hold, while it is offered to be inserted.
    recital: Option<Recital>,
    files: files::Files,
    scroll: Scroll,
    /// Rows of the question and what stands below it, in the last frame.
    rows: Cell<usize>,
}

impl State {
    /// The pending ask of `lead`; paths that are mentioned begin at `place`.
    pub fn open(model: &Model, lead: &SessionId, place: &Place) -> Option<Self> {
        let at = model.roster().leads.iter().position(|known| known.session == *lead)?;
        let lead = &model.roster().leads[at];
        let ask = lead.pending_ask.clone()?;
        let name = text::line(&order::shown_names(&model.roster().leads)[at]);
        let (us, session, ask_id) = (model.session().clone(), lead.session.clone(), ask.ask);
        let composer = {
            let session = session.clone();
            Composer::new(move |text| staff::reply_bytes(&us, &session, ask_id, text))
        };
        let sent = model.reply_to(&lead.session, ask_id);
        let key = DraftKey { session: session.clone(), ask: Some(ask_id) };
        Some(Self {
            lead: session,
            instance: lead.instance,
            ask: Some(ask),
            name,
            lease: model.standing().lease(),
            composer,
            composing: false,
            underway: false,
            sent: sent.map(|sent| sent.id),
            fate: sent.map(|sent| sent.fate),
            pending: true,
            problem: None,
            note: None,
            steered: None,
            recital: None,
            files: files::Files::new(key, place.clone()),
            scroll: Scroll::default(),
            rows: Cell::new(0),
        })
    }

    /// A message to `lead`, to be written; likewise.
    pub fn message(model: &Model, lead: &SessionId, place: &Place) -> Option<Self> {
        let at = model.roster().leads.iter().position(|known| known.session == *lead)?;
        let lead = &model.roster().leads[at];
        let (us, session) = (model.session().clone(), lead.session.clone());
        let composer = {
            let session = session.clone();
            Composer::new(move |text| staff::message_bytes(&us, &session, text))
        };
        let key = DraftKey { session: session.clone(), ask: None };
        Some(Self {
            lead: session,
            instance: lead.instance,
            ask: None,
            name: text::line(&order::shown_names(&model.roster().leads)[at]),
            lease: model.standing().lease(),
            composer,
            composing: true,
            underway: false,
            sent: None,
            fate: None,
            pending: false,
            problem: None,
            note: None,
            steered: None,
            recital: None,
            files: files::Files::new(key, place.clone()),
            scroll: Scroll::default(),
            rows: Cell::new(0),
        })
    }

    /// A text to be written that is addressed to nobody yet, and counts as a message to `measured`. Our own
    /// session, which nothing is written to, stands for its lead.
    pub fn to_nobody(model: &Model, measured: Option<&SessionId>, place: &Place) -> Self {
        let us = model.session().clone();
        let session = measured.unwrap_or(&us).clone();
        let composer = {
            let us = us.clone();
            Composer::new(move |text| staff::message_bytes(&us, &session, text))
        };
        Self {
            files: files::Files::new(DraftKey { session: us.clone(), ask: None }, place.clone()),
            lead: us,
            instance: Uuid::random(),
            ask: None,
            name: Visible::default(),
            lease: model.standing().lease(),
            composer,
            composing: true,
            underway: false,
            sent: None,
            fate: None,
            steered: None,
            recital: None,
            pending: false,
            problem: None,
            note: None,
            scroll: Scroll::default(),
            rows: Cell::new(0),
        }
    }

    /// Begins with a text, whose paths begin at `from` where that is given.
    pub fn begin_with(&mut self, text: &str, from: Option<std::path::PathBuf>) {
        self.composer.set_text(text);
        if let Some(from) = from {
            self.files.begin_at(from);
        }
    }

    /// What was written.
    pub fn text(&self) -> String {
        self.composer.text()
    }

    /// Where paths begin.
    pub fn place(&self) -> &Place {
        self.files.place()
    }

    /// Where the paths begin that the text mentions, if it does.
    pub fn mentions_from(&self) -> Option<&std::path::Path> {
        self.composer.mentions_any().then(|| self.files.place().from.as_path())
    }

    /// What was to be sent waits for a word of the operator.
    pub fn hold(&mut self) {
        self.underway = false;
    }

    /// It goes out under the lease that is held now, whichever it was begun under.
    pub fn rebind(&mut self, model: &Model) {
        self.lease = model.standing().lease();
        self.problem = None;
    }

    /// Whether it is a message, not a reply.
    pub fn is_message(&self) -> bool {
        self.ask.is_none()
    }

    fn ask_id(&self) -> Option<Uuid> {
        self.ask.as_ref().map(|ask| ask.ask)
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        match self.composing {
            true if self.files.is_listing(&self.composer) => Context::Paths,
            true => Context::Composer,
            false => Context::Ask,
        }
    }

    /// The lead that asks.
    pub fn lead(&self) -> &SessionId {
        &self.lead
    }

    /// The bare question, if it is an ask.
    pub fn question(&self) -> Option<&Untrusted> {
        self.ask.as_ref().map(|ask| &ask.question)
    }

    /// Its draft's key.
    pub fn key(&self) -> DraftKey {
        DraftKey { session: self.lead.clone(), ask: self.ask_id() }
    }

    /// Whether the composer is open.
    pub fn is_composing(&self) -> bool {
        self.composing
    }

    /// What was sent from here last.
    pub fn sent_id(&self) -> Option<Uuid> {
        self.sent
    }

    /// Whether it is on its way or there, so that no other is wanted as far as is known.
    pub fn is_sent(&self) -> bool {
        self.fate.is_some_and(|fate| fate == Fate::Queued || fate.has_arrived())
    }

    /// Whether a reply can be written: the lead asks this, and no reply stands in its inbox.
    pub fn may_reply(&self) -> bool {
        self.pending && self.fate != Some(Fate::Queued)
    }

    /// Whether a reply is wanted.
    pub fn wants_reply(&self) -> bool {
        self.pending && !self.is_sent()
    }

    /// Takes up a draft that was kept.
    pub fn resume(&mut self, draft: &Draft, model: &Model) {
        self.composer.set_text(&draft.text);
        if let Some(from) = &draft.from {
            self.files.begin_at(from.clone());
        }
        self.note = if draft.instance.is_some_and(|instance| instance != self.instance) {
            Some("This draft was begun before the lead was restarted: read the question again.")
        } else if draft.lease.is_some() && draft.lease != model.standing().lease() {
            Some("This draft was begun under an earlier lease; it goes out under the current one.")
        } else {
            None
        };
    }

    /// Opens the composer, bound to lead, ask and lease as they are now.
    pub fn compose(&mut self, model: &Model) {
        if let Some(lead) = model.lead(&self.lead)
            && (self.is_message() || lead.pending_ask.as_ref().map(|ask| ask.ask) == self.ask_id())
        {
            self.instance = lead.instance;
        }
        if self.fate.is_some_and(Fate::has_arrived) {
            // That text is there: this is another.
            self.composer.set_text("");
        }
        (self.sent, self.fate) = (None, None);
        self.lease = model.standing().lease();
        self.problem = None;
        self.composing = true;
    }

    /// Takes over what changed in the model.
    pub fn follow(&mut self, model: &Model) {
        if let Some(sent) = self.sent.and_then(|id| model.sent(id)) {
            self.fate = Some(sent.fate);
        }
        let ask = model.lead(&self.lead).and_then(|lead| lead.pending_ask.as_ref());
        self.pending = ask.is_some() && ask.map(|ask| ask.ask) == self.ask_id();
        self.follow_signal(model);
    }

    /// The draft as it is now.
    pub fn draft(&self, at: Timestamp) -> Option<Draft> {
        if self.sent.is_some() {
            return None;
        }
        let mentions = self.composer.mentions_any();
        Some(Draft {
            session: self.lead.clone(),
            ask: self.ask_id(),
            instance: Some(self.instance),
            lease: self.lease,
            from: mentions.then(|| self.files.place().from.clone()),
            text: self.kept_text(),
            at,
        })
    }

    /// Text for the composer; what can't be taken is said.
    pub fn typed(&mut self, key: KeyEvent, mono: Duration) -> Option<String> {
        if !self.composing || self.underway {
            return None;
        }
        self.problem = None;
        self.composer.key(key, mono).err().map(|refused| refused.to_string())
    }

    /// Pasted text for the composer; what can't be taken is said.
    pub fn pasted(&mut self, text: &str, mono: Duration) -> Option<String> {
        if self.underway {
            return None;
        }
        self.problem = None;
        self.composer.paste(text, mono).err().map(|refused| refused.to_string())
    }

    /// A new line in the composer.
    pub fn newline(&mut self, mono: Duration) {
        if self.composing && !self.underway {
            self.composer.newline(mono);
        }
    }

    /// Takes back what was written last, or does it again; says whether there was anything.
    pub fn undo(&mut self, back: bool, mono: Duration) -> bool {
        if !self.composing || self.underway {
            return true;
        }
        self.problem = None;
        if back { self.composer.undo(mono) } else { self.composer.redo(mono) }
    }

    /// The text, if it can be changed now.
    pub fn editable(&self) -> Option<String> {
        (self.composing && !self.underway).then(|| self.composer.text())
    }

    /// What stands before the cursor in its line.
    pub fn before_cursor(&self) -> String {
        self.composer.before_cursor().1
    }

    /// The text as an editor left it; what can't be taken is said.
    pub fn edited(&mut self, text: &str) -> Option<String> {
        self.problem = None;
        self.composer.replace(text).err().map(|refused| refused.to_string())
    }

    /// Enter in the composer.
    pub fn enter(&mut self, mono: Duration) {
        if self.composing && !self.underway {
            self.composer.enter(mono);
        }
    }

    /// Whether an Enter stood alone by `mono`, so that the text is to be sent.
    pub fn settle(&mut self, mono: Duration) -> bool {
        self.composing && self.composer.settle(mono)
    }

    /// When to ask [`State::settle`], should nothing be typed.
    pub fn settle_at(&self) -> Option<Duration> {
        self.composer.deadline()
    }

    /// What is to be found out about files now: those of the text, unless `look` is false, and the
    /// paths for what is typed, unless `list` is false.
    pub fn questions(&mut self, look: bool, list: bool) -> Vec<Question> {
        if !self.composing || self.underway {
            return Vec::new();
        }
        let look = look.then(|| self.files.look_question(&self.composer)).flatten();
        let list = list.then(|| self.files.list_question(&self.composer)).flatten();
        look.into_iter().chain(list).collect()
    }

    /// What may be meant with what is typed.
    pub fn listed(&mut self, listing: Listing) {
        self.files.listed(listing, &self.composer);
    }

    /// The files of a text; says whether that is to be sent now.
    pub fn looked(&mut self, look: Look) -> bool {
        self.files.looked(look);
        self.files.is_due(&self.composer.text()) && self.composing
    }

    /// Takes the chosen path, by a Tab of `mono`; what can't be done is said. While nothing is listed, or
    /// amid other input, which a paste may be, the Tab is text.
    pub fn complete(&mut self, mono: Duration) -> Option<String> {
        if self.underway {
            return None;
        }
        let amid = self.composer.is_amid_input(mono);
        match (!amid).then(|| self.files.take(&mut self.composer)).flatten() {
            None => self.typed(KeyEvent::from(crossterm::event::KeyCode::Tab), mono),
            Some(Ok(())) => None,
            Some(Err(why)) => Some(format!("It can't be attached: {}.", why.trim_end_matches('.'))),
        }
    }

    /// Chooses among the paths listed; while none are, the key moves the cursor.
    pub fn choose(&mut self, down: bool, mono: Duration) {
        if self.files.list().is_some() {
            self.files.choose(if down { 1 } else { -1 });
        } else {
            let code = if down { crossterm::event::KeyCode::Down } else { crossterm::event::KeyCode::Up };
            self.typed(KeyEvent::from(code), mono);
        }
    }

    /// Checks what is to be sent. With files, these are seen anew first, and `seen` says that they
    /// were.
    pub fn send(&mut self, model: &Model, seen: bool) -> Sending {
        if self.underway {
            return Sending::Underway;
        }
        if let Some(why) = self.withdraw(model) {
            self.problem = Some(why);
            return Sending::Refused;
        }
        let checked = self.check(model).and_then(|lease| Ok((lease, self.files_to_send(seen)?)));
        match checked {
            Ok((_, None)) => {
                self.problem = None;
                Sending::Looking
            }
            Ok((lease, Some(files))) => {
                self.problem = None;
                self.underway = true;
                let (lead, instance) = (self.lead.clone(), self.instance);
                let text = Untrusted::from(self.composer.text());
                match self.ask.clone() {
                    Some(PendingAsk { ask, question, .. }) => {
                        Sending::Reply(Reply { lead, instance, ask, question, lease, text, files, id: None })
                    }
                    None => Sending::Message(Letter { lead, instance, lease, text, files, id: None }),
                }
            }
            Err(why) => {
                self.problem = Some(why);
                Sending::Refused
            }
        }
    }

    /// The files that go along; none while they are still to be seen.
    fn files_to_send(&mut self, seen: bool) -> Result<Option<Vec<FileArgument>>, String> {
        if !self.composer.mentions_any() {
            return Ok(Some(Vec::new()));
        }
        let text = self.composer.text();
        match self.files.seen(&text).filter(|_| seen) {
            None => {
                self.files.send_once_seen(text);
                Ok(None)
            }
            Some(Look { problem: Some(why), .. }) => {
                Err(format!("Not sent, the draft is kept: {}.", why.trim_end_matches('.')))
            }
            Some(look) => Ok(Some(look.files.clone())),
        }
    }

    /// What can be known to be refused; the service checks everything again.
    fn check(&self, model: &Model) -> Result<Uuid, String> {
        let text = self.composer.text();
        if Untrusted::from(text.as_str()).is_blank() {
            return Err("There is no text to send.".to_owned());
        }
        let files::Count { bytes, limit, is_exact } = self.files.count(&self.composer);
        if is_exact && bytes > limit {
            return Err(format!(
                "The record would take {bytes} bytes, {limit} are allowed: shorten the text."
            ));
        }
        let lease = match model.standing() {
            Standing::Chief { lease, .. } => *lease,
            Standing::Starting => return Err("Still starting; try again in a moment.".to_owned()),
            _ => {
                return Err("You are not Chief: the draft is kept. Become Chief first, then send.".to_owned());
            }
        };
        if self.lease.is_some_and(|bound| bound != lease) {
            return Err(
                "The lease changed since this was opened: close and open it to send under the new one."
                    .to_owned(),
            );
        }
        if !self.pending && !self.is_message() {
            return Err("The lead does not ask this any more: the draft is kept.".to_owned());
        }
        Ok(lease)
    }

    /// The service made it durable in the lead's inbox.
    pub fn sent(&mut self, id: Uuid) {
        (self.sent, self.fate) = (Some(id), Some(Fate::Queued));
        self.underway = false;
        self.composing = false;
        self.problem = None;
        self.note = None;
    }

    /// The service refused.
    pub fn refused(&mut self, why: String) {
        self.underway = false;
        let why = why.trim_end_matches('.');
        self.problem = Some(match why.starts_with(crate::control::client::UNKNOWN) {
            true => format!("The draft is kept; {why}."),
            false => format!("Not sent, the draft is kept: {why}."),
        });
    }

    /// Has nothing go out by itself, and closes the list of paths; says whether there was anything to do.
    pub fn close_list(&mut self) -> bool {
        self.files.stay() || (self.composing && self.files.close(&self.composer))
    }

    /// Closes the composer; says whether the ask stays open.
    pub fn back(&mut self) -> bool {
        if self.close_list() {
            return true;
        }
        let stays = self.composing;
        self.composing = false;
        stays
    }

    /// Whether the question and what stands below it are more than a pane of them shows.
    pub fn has_more_question(&self) -> bool {
        self.composing && self.scroll.overflows(self.rows.get())
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent) {
        self.scroll.intent(intent);
    }

    fn lead_in<'a>(&self, model: &'a Model) -> Option<&'a Lead> {
        model.lead(&self.lead)
    }
}
