//! One text to several leads: to whom, the text while it is written, and what became of each message.

pub mod draw;

use crate::chief::attach::FileArgument;
use crate::chief::staff::Letter;
use crate::console::broadcast::{Addressee, Broadcast};
use crate::console::files::Place;
use crate::console::intent::{Context, Intent};
use crate::console::view::ask;
use crate::console::view::list::Scroll;
use crate::contract::{SessionId, Timestamp, Untrusted, Uuid};
use crate::fact::Fate;
use crate::model::Model;

/// Messages that are handed over at a time: the others wait, so that nothing else has to.
const AT_ONCE: usize = 4;

/// How far the message to one lead has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It was not handed over.
    Waiting,
    /// The service has it.
    Underway,
    /// It is in the lead's inbox, under this id; the model knows what became of it since.
    Sent(Uuid),
    /// It was not sent; safe to print why.
    Refused(String),
}

/// One of those it is to.
#[derive(Debug)]
pub struct Recipient {
    addressee: Addressee,
    /// The instance that it is sent to; none while that is not known.
    instance: Option<Uuid>,
    progress: Progress,
}

impl Recipient {
    fn new(lead: SessionId) -> Self {
        Self {
            addressee: Addressee { lead, id: Uuid::random() },
            instance: None,
            progress: Progress::Waiting,
        }
    }

    /// Its session.
    pub fn lead(&self) -> &SessionId {
        &self.addressee.lead
    }

    /// How far its message has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The text is written.
    Writing,
    /// It is made durable as it goes out.
    Keeping,
    /// It goes out, or did.
    Sending,
}

/// How many messages have come how far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Not handed over, or not answered for yet.
    pub open: usize,
    /// In inboxes, or further.
    pub sent: usize,
    /// Not sent.
    pub refused: usize,
}

/// A broadcast. It goes on while nobody looks.
pub struct State {
    /// The text field, addressed to nobody.
    pub(in crate::console) writer: ask::State,
    recipients: Vec<Recipient>,
    stage: Stage,
    text: Untrusted,
    files: Vec<FileArgument>,
    /// The lease it goes out under.
    lease: Option<Uuid>,
    /// The text that is kept, as far as is known.
    kept: String,
    /// Whether anything became known that was not told.
    has_news: bool,
    scroll: Scroll,
}

impl State {
    /// One to `leads`, to be written.
    pub fn to(model: &Model, leads: Vec<SessionId>, place: &Place) -> Self {
        let recipients: Vec<Recipient> = leads.into_iter().map(Recipient::new).collect();
        Self {
            writer: writer(model, &recipients, place),
            recipients,
            stage: Stage::Writing,
            text: "".into(),
            files: Vec::new(),
            lease: None,
            kept: String::new(),
            has_news: false,
            scroll: Scroll::default(),
        }
    }

    /// The one that was kept. Of one that was begun only what is asked for again goes out.
    pub fn resume(model: &Model, kept: Broadcast, place: &Place) -> Self {
        let mut state = Self::to(model, Vec::new(), place);
        state.recipients = (kept.to.into_iter())
            .map(|addressee| Recipient { addressee, instance: None, progress: Progress::Waiting })
            .collect();
        state.writer = writer(model, &state.recipients, place);
        state.writer.begin_with(&kept.text, kept.from.map(Into::into));
        state.text = kept.text.as_str().into();
        state.files = kept.files;
        state.kept = kept.text;
        if kept.begun {
            state.stage = Stage::Sending;
            for recipient in &mut state.recipients {
                recipient.progress = Progress::Refused("it is not known to be sent".to_owned());
            }
        }
        state
    }

    /// Has it be to `leads` instead, with the text as it is. Only before it is begun.
    pub fn readdress(&mut self, model: &Model, leads: Vec<SessionId>) {
        if self.recipients.iter().map(Recipient::lead).eq(&leads) {
            return;
        }
        self.recipients = leads.into_iter().map(Recipient::new).collect();
        let (text, place) = (self.writer.text(), self.writer.place().clone());
        self.writer = writer(model, &self.recipients, &place);
        self.writer.begin_with(&text, None);
        self.scroll = Scroll::default();
        // With its new recipients it is not kept.
        self.kept.clear();
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        match self.stage {
            Stage::Writing => self.writer.context(),
            Stage::Keeping | Stage::Sending => Context::Broadcast,
        }
    }

    /// Whether the text is being written.
    pub fn is_writing(&self) -> bool {
        self.stage == Stage::Writing
    }

    /// Those it is to.
    pub fn recipients(&self) -> &[Recipient] {
        &self.recipients
    }

    /// What goes out, or did.
    pub fn text(&self) -> &Untrusted {
        &self.text
    }

    /// How many messages have come how far.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for recipient in &self.recipients {
            match recipient.progress {
                Progress::Waiting | Progress::Underway => counts.open += 1,
                Progress::Sent(_) => counts.sent += 1,
                Progress::Refused(_) => counts.refused += 1,
            }
        }
        counts
    }

    /// Whether all have their message.
    pub fn is_done(&self) -> bool {
        self.counts().sent == self.recipients.len()
    }

    /// Whether any message may be on its way, so that nothing else may be done with it.
    pub fn is_under_way(&self) -> bool {
        self.stage == Stage::Keeping || (self.stage == Stage::Sending && self.counts().open > 0)
    }

    /// What is to be kept of it.
    pub fn broadcast(&self, at: Timestamp) -> Broadcast {
        let begun = self.stage != Stage::Writing;
        let from = self.writer.mentions_from();
        Broadcast {
            to: self.recipients.iter().map(|recipient| recipient.addressee.clone()).collect(),
            begun,
            from: from.and_then(|from| from.to_str()).map(str::to_owned),
            text: if begun { self.text.to_str_lossy().into_owned() } else { self.writer.text() },
            files: if begun { self.files.clone() } else { Vec::new() },
            at,
        }
    }

    /// What is to be kept of it, if its text changed since; an empty one is not to be kept at all.
    pub fn unkept(&mut self, at: Timestamp) -> Option<Broadcast> {
        let text = self.writer.text();
        if self.stage != Stage::Writing || text == self.kept {
            return None;
        }
        self.kept = text;
        Some(self.broadcast(at))
    }

    /// Takes over what is to be sent, once that is confirmed.
    pub fn prepare(&mut self, text: Untrusted, files: Vec<FileArgument>) {
        self.writer.hold();
        (self.text, self.files) = (text, files);
    }

    /// Begins to send it, to those who are listed now; it must be kept first.
    pub fn begin(&mut self, model: &Model) {
        self.stage = Stage::Keeping;
        self.scroll = Scroll::default();
        self.bind(model, |_| true);
    }

    /// It is kept, and goes out; or why it is not, and then it does not.
    pub fn kept(&mut self, result: Result<(), String>) {
        if self.stage != Stage::Keeping {
            return;
        }
        match result {
            Ok(()) => self.stage = Stage::Sending,
            Err(why) => {
                self.stage = Stage::Writing;
                self.writer.refused(why);
            }
        }
    }

    /// Sends what was refused again; says whether there was anything.
    pub fn retry(&mut self, model: &Model) -> bool {
        let any = self.counts().refused > 0 && self.stage == Stage::Sending;
        if any {
            self.bind(model, |progress| matches!(progress, Progress::Refused(_)));
        }
        any
    }

    /// Has those go out that `which` takes, under the lease that is held and to the instances that are
    /// there.
    fn bind(&mut self, model: &Model, which: impl Fn(&Progress) -> bool) {
        self.lease = model.standing().lease();
        for recipient in self.recipients.iter_mut().filter(|recipient| which(&recipient.progress)) {
            recipient.instance = model.lead(recipient.lead()).map(|lead| lead.instance);
            recipient.progress = Progress::Waiting;
        }
    }

    /// Goes on writing what nobody has; says whether it can be. The messages have new ids from then on.
    pub fn write_on(&mut self, model: &Model) -> bool {
        let may = self.stage == Stage::Sending && self.counts().refused == self.recipients.len();
        if may {
            let leads = self.recipients.iter().map(|recipient| recipient.lead().clone()).collect();
            self.recipients.clear();
            self.readdress(model, leads);
            self.stage = Stage::Writing;
        }
        may
    }

    /// The next message to be handed over, if one may be now.
    pub fn next_letter(&mut self) -> Option<Letter> {
        if self.stage != Stage::Sending {
            return None;
        }
        loop {
            let is = |wanted: &Progress| {
                let recipients = self.recipients.iter();
                recipients.filter(|recipient| recipient.progress == *wanted).count()
            };
            if is(&Progress::Underway) >= AT_ONCE {
                return None;
            }
            let next = self.recipients.iter_mut().find(|it| it.progress == Progress::Waiting)?;
            let (instance, lease) = match (next.instance, self.lease) {
                (Some(instance), Some(lease)) => (instance, lease),
                (None, _) => {
                    self.has_news = true;
                    next.progress = Progress::Refused("it is not listed now".to_owned());
                    continue;
                }
                (_, None) => {
                    self.has_news = true;
                    next.progress = Progress::Refused("you are not Chief".to_owned());
                    continue;
                }
            };
            next.progress = Progress::Underway;
            return Some(Letter {
                lead: next.addressee.lead.clone(),
                instance,
                lease,
                text: self.text.clone(),
                files: self.files.clone(),
                id: Some(next.addressee.id),
            });
        }
    }

    /// What became of the message to `lead`.
    pub fn outcome(&mut self, lead: &SessionId, result: Result<Uuid, String>) {
        if let Some(recipient) = self.recipients.iter_mut().find(|it| it.lead() == lead) {
            recipient.progress = match result {
                Ok(id) => Progress::Sent(id),
                Err(why) => Progress::Refused(why),
            };
            self.has_news = true;
        }
    }

    /// Takes over what changed in the model: what another run sent, and what could not be put into an
    /// inbox after all.
    pub fn follow(&mut self, model: &Model) {
        if self.stage != Stage::Sending {
            return;
        }
        for recipient in &mut self.recipients {
            let id = match recipient.progress {
                Progress::Sent(id) => id,
                Progress::Refused(_) => recipient.addressee.id,
                Progress::Waiting | Progress::Underway => continue,
            };
            let Some(sent) = model.sent(id) else { continue };
            let progress = match sent.fate {
                Fate::Unsent => Progress::Refused("it could not be put into the lead's inbox".to_owned()),
                Fate::Again => Progress::Sent(model.successor(sent).map_or(id, |next| next.id)),
                _ => Progress::Sent(id),
            };
            self.has_news |= std::mem::discriminant(&progress) != std::mem::discriminant(&recipient.progress);
            recipient.progress = progress;
        }
    }

    /// What came of it, once none is under way any more and it was not taken yet.
    pub fn take_news(&mut self) -> Option<Counts> {
        let counts = self.counts();
        let is_settled = self.stage == Stage::Sending && counts.open == 0;
        (is_settled && std::mem::take(&mut self.has_news)).then_some(counts)
    }

    /// Scrolls in the list.
    pub fn intent(&mut self, intent: Intent) {
        self.scroll.intent(intent);
    }
}

/// The text field for a text to these, which counts as the longest of their messages.
fn writer(model: &Model, recipients: &[Recipient], place: &Place) -> ask::State {
    let longest = recipients.iter().map(Recipient::lead).max_by_key(|lead| lead.as_untrusted().utf16_len());
    ask::State::to_nobody(model, longest, place)
}
