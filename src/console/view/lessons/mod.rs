//! Lessons on the screen: all that are kept, what of a text is to be kept, and those offered for a message.
//! Each is a list with a detail.

pub mod draw;

use ratatui::layout::Position;

use super::browse::Browser;
use crate::console::intent::{Context, Intent};
use crate::contract::SessionId;
use crate::fact::SessionFile;
use crate::signals::memory::{Kind, Memory};
use crate::signals::quote::{Wanted, title_of};
use crate::signals::store::Kept;

/// What the operator sees of them.
#[derive(Debug)]
pub struct State {
    what: What,
    browser: Browser<String>,
}

#[derive(Debug)]
enum What {
    /// All that are kept, once they are read; else why they can't be.
    Kept(Option<Result<Vec<Kept>, String>>),
    Quote(Quote),
    Offered(SessionId, Vec<Kept>),
}

/// What of a text is to be kept, and as what.
#[derive(Debug)]
struct Quote {
    file: SessionFile,
    /// What can be kept of it: the whole, and its sentences.
    parts: Vec<String>,
    kind: Kind,
    is_global: bool,
}

impl State {
    fn of(what: What) -> Self {
        let mut state = Self { what, browser: Browser::default() };
        state.follow();
        state
    }

    /// All lessons, which are still to be read.
    pub fn all() -> Self {
        Self::of(What::Kept(None))
    }

    /// What can be kept of a text in the session of `file`: one of `parts`.
    pub fn quote(file: SessionFile, parts: Vec<String>) -> Self {
        Self::of(What::Quote(Quote { file, parts, kind: Kind::Lesson, is_global: false }))
    }

    /// Those that fit a message to `lead`, the best first.
    pub fn offered(lead: SessionId, kept: Vec<Kept>) -> Self {
        Self::of(What::Offered(lead, kept))
    }

    /// Where keys go.
    pub fn context(&self) -> Context {
        match self.what {
            What::Kept(_) => Context::Lessons,
            What::Quote(_) => Context::Quote,
            What::Offered(..) => Context::Offered,
        }
    }

    /// Whether it is the screen of all lessons.
    pub fn shows_all(&self) -> bool {
        matches!(self.what, What::Kept(_))
    }

    /// Takes over what was read, if it is the screen of all lessons.
    pub fn listed(&mut self, mut read: Result<Vec<Kept>, String>) {
        let What::Kept(known) = &mut self.what else { return };
        if let Ok(all) = &mut read {
            all.sort_by(|a, b| {
                (Group::of(a), weight(b))
                    .partial_cmp(&(Group::of(b), weight(a)))
                    .unwrap_or(a.name.cmp(&b.name))
            });
        }
        *known = Some(read);
        self.follow();
    }

    fn follow(&mut self) {
        self.browser.follow(&self.keys());
    }

    fn kept(&self) -> &[Kept] {
        match &self.what {
            What::Kept(Some(Ok(all))) | What::Offered(_, all) => all,
            What::Kept(_) | What::Quote(_) => &[],
        }
    }

    fn keys(&self) -> Vec<String> {
        match &self.what {
            What::Quote(quote) => (0..quote.parts.len()).map(|at| at.to_string()).collect(),
            _ => self.kept().iter().map(|kept| kept.name.clone()).collect(),
        }
    }

    /// What an intent does.
    pub fn intent(&mut self, intent: Intent) {
        match (&mut self.what, intent) {
            (What::Quote(quote), Intent::LessonKind) => {
                quote.kind = match quote.kind {
                    Kind::Lesson => Kind::Orientation,
                    Kind::Orientation => Kind::Lesson,
                };
            }
            (What::Quote(quote), Intent::LessonScope) => quote.is_global = !quote.is_global,
            _ => {
                let keys = self.keys();
                self.browser.intent(intent, &keys);
            }
        }
    }

    /// Puts the cursor on what is drawn there.
    pub fn click(&mut self, at: Position) {
        let Some(row) = self.browser.click(at) else { return };
        if let Some(at) = draw::entry_of_row(self, row) {
            let keys = self.keys();
            self.browser.put(at, &keys);
        }
    }

    /// Backs out of the detail; says whether the list stays open.
    pub fn back(&mut self) -> bool {
        self.browser.back()
    }

    /// Whether something is under the cursor whose detail is not open.
    pub fn can_open(&self) -> bool {
        self.browser.selected().is_some() && !self.browser.is_in_detail()
    }

    /// The lesson under the cursor.
    pub fn selected(&self) -> Option<&Kept> {
        self.kept().get(self.browser.at()).filter(|kept| Some(&kept.name) == self.browser.selected())
    }

    /// The lead that lessons are offered for.
    pub fn lead(&self) -> Option<&SessionId> {
        match &self.what {
            What::Offered(lead, _) => Some(lead),
            What::Kept(_) | What::Quote(_) => None,
        }
    }

    /// The text under the cursor.
    pub fn text(&self) -> Option<&str> {
        match &self.what {
            What::Quote(quote) => quote.parts.get(self.browser.at()).map(String::as_str),
            _ => self.selected()?.memory.as_ref().ok().map(|memory| memory.content.as_str()),
        }
    }

    /// What is to be kept, and of which session.
    pub fn wanted(&self) -> Option<(SessionFile, Wanted)> {
        let What::Quote(quote) = &self.what else { return None };
        let text = self.text()?;
        let wanted = Wanted {
            quote: text.to_owned(),
            title: title_of(text),
            kind: quote.kind,
            project: None,
            role: "lead".to_owned(),
            is_global: quote.is_global,
            tags: Vec::new(),
        };
        Some((quote.file.clone(), wanted))
    }
}

/// What stands together in the list of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Everywhere,
    /// Project, then role.
    Project(String, String),
    PutAway,
    Unusable,
}

impl Group {
    fn of(kept: &Kept) -> Self {
        match &kept.memory {
            Err(_) => Self::Unusable,
            Ok(_) if kept.is_archived => Self::PutAway,
            Ok(Memory { is_global: true, .. }) => Self::Everywhere,
            Ok(memory) => {
                let role = memory.role.split(':').next().unwrap_or_default();
                Self::Project(memory.project.clone(), role.to_owned())
            }
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Everywhere => "EVERYWHERE".to_owned(),
            Self::Project(project, role) if role == "lead" => project.clone(),
            Self::Project(project, role) => format!("{project}, {role}"),
            Self::PutAway => "PUT AWAY".to_owned(),
            Self::Unusable => "CAN'T BE USED".to_owned(),
        }
    }
}

fn weight(kept: &Kept) -> f64 {
    kept.memory.as_ref().map_or(0.0, |memory| memory.importance)
}
