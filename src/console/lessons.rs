//! Lessons: their screen, keeping what an operator wrote, and offering them for a message.

use super::app::{App, Confirm, Effect, Layer};
use super::drafts::DraftKey;
use super::errand::{Came, Errand};
use super::theme::Role;
use super::view::lessons::State;
use crate::contract::{SessionId, Untrusted};
use crate::fact::{Now, SessionFile};
use crate::signals::memory::{Memory, ranked, sanitised};
use crate::signals::quote::{parts, project_of};
use crate::signals::store::Kept;

/// The role that lessons for leads are kept for.
const ROLE: &str = "lead";

/// A lesson that was inserted into a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inserted {
    name: String,
    content: String,
    is_global: bool,
}

impl App {
    /// What came of an errand.
    pub fn came(&mut self, came: Came, now: Now) {
        match came {
            Came::Listed(read) => {
                for layer in &mut self.layers {
                    if let Layer::Lessons(state) = layer {
                        state.listed(read.clone());
                    }
                }
            }
            Came::Offered(lead, read) => self.offered(&lead, read, now),
            Came::Archived(Ok(name)) => {
                self.say(format_args!("Put away as {name}; nothing is deleted."), Role::Good, now);
                self.effects.push_back(Effect::Errand(Errand::List));
            }
            Came::Archived(Err(why)) => self.say(format_args!("Not put away: {why}."), Role::Warning, now),
            Came::Kept(Ok(path)) => self.say(format_args!("Kept in {path}"), Role::Good, now),
            Came::Kept(Err(why)) => self.say(format_args!("Not kept: {why}."), Role::Warning, now),
            Came::NotRemembered(why) => self.say(
                format_args!("The message is sent; that lessons went along is not remembered: {why}."),
                Role::Warning,
                now,
            ),
            Came::Gated(lead, came) => self.gated(lead, came, now),
        }
    }

    /// Shows all lessons; where they are shown, not any more.
    pub(super) fn toggle_lessons(&mut self) {
        if let Some(Layer::Lessons(state)) = self.layers.last()
            && state.shows_all()
        {
            self.layers.pop();
            return;
        }
        if !self.layers.iter().any(|layer| matches!(layer, Layer::Lessons(state) if state.shows_all())) {
            self.layers.push(Layer::Lessons(Box::new(State::all())));
            self.effects.push_back(Effect::Errand(Errand::List));
        }
    }

    fn lessons_on_top(&self) -> Option<&State> {
        match self.layers.last() {
            Some(Layer::Lessons(state)) => Some(state),
            _ => None,
        }
    }

    /// Asks whether the lesson under the cursor is to be put away.
    pub(super) fn archive(&mut self, now: Now) {
        if self.is_barred(now) {
            return;
        }
        match self.lessons_on_top().and_then(State::selected) {
            Some(Kept { is_archived: true, .. }) => {
                self.say(format_args!("It is put away already."), Role::Notice, now);
            }
            Some(kept) => self.confirm = Some(Confirm::Archive(kept.name.clone())),
            None => self.say(format_args!("No lesson is selected."), Role::Notice, now),
        }
    }

    /// Wants the text of the message under the transcript's cursor, to keep something of it.
    pub(super) fn learn(&mut self, now: Now) {
        if self.is_barred(now) {
            return;
        }
        let Some(Layer::Transcript(state)) = self.layers.last_mut() else { return };
        if !state.quote(&self.model) {
            self.say(
                format_args!("A lesson is quoted from a message of the user's or of the Chief's: put the cursor on one."),
                Role::Notice,
                now,
            );
        }
    }

    /// That text is there: what of it is to be kept is chosen next.
    pub(super) fn choose_quote(&mut self, file: SessionFile, text: &Untrusted, now: Now) {
        let text = text.to_str_lossy();
        let parts: Vec<String> = parts(&text).into_iter().map(str::to_owned).collect();
        if parts.is_empty() {
            self.say(format_args!("There is no sentence of 8 to 4,000 characters in it."), Role::Notice, now);
        } else if matches!(self.layers.last(), Some(Layer::Transcript(_))) {
            self.layers.push(Layer::Lessons(Box::new(State::quote(file, parts))));
        }
    }

    /// Keeps what was chosen.
    pub(super) fn keep_lesson(&mut self, now: Now) {
        let Some((file, wanted)) = self.lessons_on_top().and_then(State::wanted) else { return };
        self.layers.pop();
        self.effects.push_back(Effect::Errand(Errand::Keep(file, wanted, now.wall)));
    }

    /// Wants the lessons that fit what is being written.
    pub(super) fn offer_lessons(&mut self, now: Now) {
        let Some(Layer::Ask(state)) = self.layers.last() else { return };
        let lead = state.lead().clone();
        if self.settings.supervision.learning {
            self.effects.push_back(Effect::Errand(Errand::Offer(lead)));
        } else {
            self.say(
                format_args!("Lessons are not offered: [supervisor.learning] in config.toml enables them."),
                Role::Notice,
                now,
            );
        }
    }

    /// They are there: those that fit are listed, unless something else is on the screen by now.
    fn offered(&mut self, lead: &SessionId, read: Result<(Vec<Kept>, bool), String>, now: Now) {
        let Some(Layer::Ask(state)) = self.layers.last() else { return };
        let (Some(text), true) = (state.editable(), state.lead() == lead) else { return };
        let (all, everywhere) = match read {
            Ok(read) => read,
            Err(why) => {
                return self.say(format_args!("The lessons can't be read: {why}."), Role::Warning, now);
            }
        };
        let inserted = self.inserted.get(&state.key());
        let is_inserted = |kept: &Kept| inserted.is_some_and(|all| all.iter().any(|it| it.name == kept.name));
        let everywhere = everywhere || inserted.is_some_and(|all| all.iter().any(|it| it.is_global));
        let lead_now = self.model.lead(lead);
        let project = lead_now.and_then(|lead| lead.cwd.as_ref()).map(|cwd| project_of(&cwd.to_str_lossy()));
        let fits = |memory: &Memory| {
            let of_role = sanitised(memory.role.split(':').next().unwrap_or_default()) == ROLE;
            let of_project =
                project.as_ref().is_some_and(|project| sanitised(project) == sanitised(&memory.project));
            memory.is_global || of_role && of_project
        };
        let (kept, memories): (Vec<Kept>, Vec<Memory>) = all
            .into_iter()
            .filter(|kept| !kept.is_archived && !is_inserted(kept))
            .filter_map(|kept| {
                let memory = kept.memory.clone().ok().filter(fits)?;
                Some((kept, memory))
            })
            .unzip();
        // What is asked and what it was told say what the message is about before it is written.
        let asked = state.question().map(|question| question.to_str_lossy().into_owned());
        let told = self.model.sessions().activity(lead).and_then(|activity| activity.told.as_ref());
        let told = told.map(|told| told.text.to_str_lossy().into_owned());
        let about = [Some(text), asked, told].into_iter().flatten().collect::<Vec<_>>().join("\n");
        let chosen = ranked(&memories, &about, now.wall.as_millis(), !everywhere);
        if chosen.is_empty() {
            return self.say(format_args!("No lesson fits what is written here."), Role::Notice, now);
        }
        let chosen = chosen.into_iter().map(|at| kept[at].clone()).collect();
        self.layers.push(Layer::Lessons(Box::new(State::offered(lead.clone(), chosen))));
    }

    /// Inserts the lesson under the cursor into the message.
    pub(super) fn insert_lesson(&mut self, now: Now) {
        let Some(state) = self.lessons_on_top().filter(|state| state.lead().is_some()) else { return };
        let Some(Kept { name, memory: Ok(memory), .. }) = state.selected() else { return };
        let (content, is_global) = (memory.content.clone(), memory.is_global);
        let inserted = Inserted { name: name.clone(), content, is_global };
        self.layers.pop();
        let Some(Layer::Ask(state)) = self.layers.last() else { return };
        let (key, before) = (state.key(), state.before_cursor());
        let break_before = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        self.paste(&format!("{break_before}{}", inserted.content), now);
        if self.kept_text(&key).is_some_and(|text| text.contains(&inserted.content)) {
            self.inserted.entry(key).or_default().push(inserted);
        }
    }

    fn kept_text(&self, key: &DraftKey) -> Option<&str> {
        self.drafts.get(key).map(|draft| draft.text.as_str())
    }

    /// What was written under `key` was sent: the lessons that still stand in it went along.
    pub(super) fn lessons_sent(&mut self, key: &DraftKey) {
        let Some(mut inserted) = self.inserted.remove(key) else { return };
        let text = self.kept_text(key).unwrap_or_default();
        inserted.retain(|it| text.contains(&it.content));
        if !inserted.is_empty() {
            let everywhere = inserted.iter().any(|it| it.is_global);
            let names = inserted.into_iter().map(|it| it.name).collect();
            let lead = key.session.clone();
            self.effects.push_back(Effect::Errand(Errand::Inserted { lead, names, everywhere }));
        }
    }
}
