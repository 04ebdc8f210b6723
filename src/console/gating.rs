//! The gate in the console: one claim at a time is held against it by a process of ours, and the verdict
//! stands beside the lead until that does anything more.

use std::collections::HashMap;

use super::age::Ages;
use super::app::{App, Effect};
use super::drafts::{Draft, DraftKey};
use super::errand::Errand;
use super::intent::Intent;
use super::keymap::Keymap;
use super::text;
use super::theme::Role;
use super::view::detail::Line;
use crate::chief::staff::path_of;
use crate::contract::json::{Document, Json};
use crate::contract::{SessionId, Timestamp};
use crate::fact::Now;
use crate::model::Model;
use crate::signals::gate;

/// Bytes of a draft that tells of gaps, so that the record has room for it.
const MAX_DRAFT: usize = 7_000;

/// What the configuration lets the console do for the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Supervision {
    /// Whether claims are held against the gate.
    pub gate: bool,
    /// Whether git may look at the directory that a lead works in.
    pub git: bool,
    /// Whether lessons are offered.
    pub learning: bool,
}

/// What came of the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gated {
    /// The verdict, or what stands in its place.
    pub outcome: Outcome,
    /// What else was said of it.
    pub notes: Vec<String>,
}

/// A verdict, or what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The verifier passed the claim.
    Verified,
    /// It found this missing.
    Gaps(Vec<String>, Next),
    /// Its answer is worth nothing, for this reason.
    Indeterminate(String, Next),
    /// Something speaks against the claim, so that it was not asked.
    Objections(Vec<String>),
    /// It was not asked: nothing is claimed, or the budget is used up.
    NotAsked(Next),
}

/// What the gate says is next, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next(pub String);

impl Next {
    fn sentence(&self) -> &'static str {
        match self.0.as_str() {
            "draft" | "again" => "It may be asked again.",
            "exhausted" => "Its runs are used up until the user's next turn.",
            "same_gaps" => "The same was missing before: it is not asked again until the user's next turn.",
            "no_claim" => "The lead neither claims to be done nor has stopped after a change.",
            "no_verifier" => "There is no verifier: name one with `command` of [supervisor.gate].",
            _ => "",
        }
    }
}

impl Gated {
    /// Reads what `headman gate --json` wrote.
    pub fn parse(json: &[u8], notes: Vec<String>) -> Option<Self> {
        let document = Document::decode(json);
        let members = document.value().ok()?.object()?;
        let get = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
        let string = |value: Json<'_>| value.string().map(|text| text.to_str_lossy().into_owned());
        let objections = get("objections")?.array()?.into_iter().map(|it| {
            let members = it.object()?;
            let message = members.into_iter().find(|(name, _)| name == "message")?.1;
            string(message)
        });
        let objections: Vec<String> = objections.collect::<Option<_>>()?;
        if !objections.is_empty() {
            return Some(Self { outcome: Outcome::Objections(objections), notes });
        }
        let next = Next(string(get("next")?)?);
        let outcome = match get("verdict").filter(|verdict| !verdict.is_null()).and_then(string).as_deref() {
            Some("pass") => Outcome::Verified,
            None if next.0 == "verified" => Outcome::Verified,
            Some("gaps") => {
                let gaps: Option<Vec<String>> = get("gaps")?.array()?.into_iter().map(string).collect();
                Outcome::Gaps(gaps?, next)
            }
            Some("indeterminate") => Outcome::Indeterminate(string(get("why")?)?, next),
            Some(_) => return None,
            None => Outcome::NotAsked(next),
        };
        Some(Self { outcome, notes })
    }

    /// The word for it in a list; none where nothing is claimed.
    fn word(&self) -> Option<String> {
        Some(match &self.outcome {
            Outcome::Verified => "verified".to_owned(),
            Outcome::Gaps(gaps, _) => format!("gaps {}", gaps.len()),
            Outcome::Indeterminate(..) => "indeterminate".to_owned(),
            Outcome::NotAsked(next) if next.0 == "no_claim" => return None,
            Outcome::Objections(_) | Outcome::NotAsked(_) => "unverified".to_owned(),
        })
    }

    fn role(&self) -> Role {
        if self.outcome == Outcome::Verified { Role::Good } else { Role::Warning }
    }

    /// The same in a sentence.
    fn sentence(&self) -> String {
        match &self.outcome {
            Outcome::Verified => "The verifier found nothing missing.".to_owned(),
            Outcome::Gaps(gaps, next) => {
                let things = if gaps.len() == 1 { "thing" } else { "things" };
                format!("The verifier found {} {things} missing. {}", gaps.len(), next.sentence())
            }
            Outcome::Indeterminate(why, next) => {
                format!("Indeterminate: {}. {}", why.trim_end_matches('.'), next.sentence())
            }
            Outcome::Objections(_) => "Not verified, since this speaks against it already:".to_owned(),
            Outcome::NotAsked(next) => format!("Not verified. {}", next.sentence()),
        }
    }
}

/// A verdict with what it rests on.
#[derive(Debug)]
struct Known {
    gated: Gated,
    /// What had been written to the session last when it was asked, and when that was.
    last: Option<Timestamp>,
    asked: Timestamp,
}

/// The claim that is held against it now.
#[derive(Debug)]
struct Running {
    lead: SessionId,
    since: Now,
    /// What had been written to the session last by then.
    last: Option<Timestamp>,
}

/// What the gate found, and where it looks now.
#[derive(Debug, Default)]
pub struct Gates {
    running: Option<Running>,
    known: HashMap<SessionId, Known>,
}

impl Gates {
    /// The lead whose claim is held against it now.
    pub fn running(&self) -> Option<&SessionId> {
        self.running.as_ref().map(|running| &running.lead)
    }

    /// What is known of `lead`, while it has done nothing since.
    fn known(&self, lead: &SessionId, model: &Model) -> Option<&Known> {
        let last = last(lead, model);
        self.known.get(lead).filter(|known| match known.last {
            Some(_) => last == known.last,
            // Nothing of its session was read by then.
            None => last.is_none_or(|last| last <= known.asked),
        })
    }

    /// The word for `lead` in the list.
    pub fn word(&self, lead: &SessionId, model: &Model) -> Option<(String, Role)> {
        if self.running() == Some(lead) {
            return Some(("verifying".to_owned(), Role::Working));
        }
        let gated = &self.known(lead, model)?.gated;
        Some((gated.word()?, gated.role()))
    }

    /// What stands beside `lead`.
    pub fn section(
        &self,
        lead: &SessionId,
        model: &Model,
        now: Now,
        keymap: &Keymap,
        room: usize,
        ages: &mut Ages,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut say = |what: &str, role: Role| {
            lines.extend(text::line(what).wrap(room).into_iter().map(|line| Line::plain(line, role)));
        };
        if let Some(running) = self.running.as_ref().filter(|running| running.lead == *lead) {
            let age = ages.show(now.mono.saturating_sub(running.since.mono));
            let key = keymap.key_of(Intent::Gate);
            say(&format!("The verifier looks at its claim since {age}; {key} ends it."), Role::Working);
        } else if let Some(known) = self.known(lead, model) {
            say(&known.gated.sentence(), known.gated.role());
            match &known.gated.outcome {
                Outcome::Gaps(all, _) | Outcome::Objections(all) => {
                    all.iter().for_each(|it| say(&format!("- {it}"), Role::Text));
                }
                _ => {}
            }
            known.gated.notes.iter().for_each(|note| say(note, Role::Notice));
        } else if self.known.contains_key(lead) {
            say("It has worked on since the verdict: that says nothing any more.", Role::Muted);
        }
        if !lines.is_empty() {
            lines.insert(0, Line::Rule(text::line("gate"), Role::Heading));
        }
        lines
    }
}

fn last(lead: &SessionId, model: &Model) -> Option<Timestamp> {
    model.sessions().activity(lead)?.last
}

impl App {
    /// Holds the selected lead's claim against the gate; where that is being done, ends it.
    pub(super) fn gate(&mut self, now: Now) {
        let Some(lead) = self.selected().and_then(|lead| self.model.lead(lead)) else {
            return self.say(format_args!("No lead is selected."), Role::Notice, now);
        };
        let session = lead.session.clone();
        let supervision = self.settings.supervision;
        if !supervision.gate {
            return self.say(
                format_args!(
                    "The gate is off: [supervisor.gate] in config.toml names a verifier and enables it."
                ),
                Role::Notice,
                now,
            );
        }
        match self.gates.running() {
            Some(running) if *running == session => {
                self.effects.push_back(Effect::Errand(Errand::EndGate));
                return self.say(format_args!("The verifier is being ended."), Role::Notice, now);
            }
            Some(running) => {
                let name = match self.model.lead(running) {
                    Some(lead) => text::line(&lead.display_name),
                    None => text::line("another lead"),
                };
                return self.say(
                    format_args!("The verifier looks at {name}; it looks at one claim at a time."),
                    Role::Notice,
                    now,
                );
            }
            None => {}
        }
        let repo = lead.cwd.as_ref().filter(|_| supervision.git).map(path_of);
        let last = last(&session, &self.model);
        self.gates.known.remove(&session);
        self.gates.running = Some(Running { lead: session.clone(), since: now, last });
        self.effects.push_back(Effect::Errand(Errand::Gate(session, repo)));
    }

    /// What came of the gate.
    pub(super) fn gated(&mut self, lead: SessionId, came: Result<Option<Gated>, String>, now: Now) {
        let Some(asked) = self.gates.running.take_if(|running| running.lead == lead) else { return };
        match came {
            Err(why) => self.say(format_args!("The gate failed: {why}."), Role::Warning, now),
            Ok(None) => {
                self.say(format_args!("The verifier was ended; that run is not counted."), Role::Notice, now)
            }
            Ok(Some(gated)) => {
                let role = gated.role();
                let mut said = gated.sentence();
                match &gated.outcome {
                    Outcome::Gaps(gaps, _) => said.push_str(self.draft_gaps(&lead, gaps, now)),
                    // Beside the lead all of them stand.
                    Outcome::Objections(all) => {
                        all.first().into_iter().for_each(|first| said.push_str(&format!(" {first}")));
                        if all.len() > 1 {
                            said.push_str(&format!(" And {} more.", all.len() - 1));
                        }
                    }
                    _ => {}
                }
                self.say(format_args!("{said}"), role, now);
                self.gates.known.insert(lead, Known { gated, last: asked.last, asked: asked.since.wall });
            }
        }
    }

    /// Makes a draft to `lead` that tells of `gaps`, unless one is kept already; what is to be said of it.
    fn draft_gaps(&mut self, lead: &SessionId, gaps: &[String], now: Now) -> &'static str {
        let key = DraftKey { session: lead.clone(), ask: None };
        let Some(known) = self.model.lead(lead) else { return "" };
        if self.drafts.contains_key(&key) || self.is_writing_to(lead) {
            return " A draft to it is kept already: the gaps stand beside the lead.";
        }
        let mut text = gate::draft(gaps);
        text.truncate(text.floor_char_boundary(MAX_DRAFT));
        let draft = Draft {
            session: lead.clone(),
            ask: None,
            instance: Some(known.instance),
            lease: self.model.standing().lease(),
            from: None,
            text,
            at: now.wall,
        };
        self.drafts.insert(key, draft.clone());
        self.effects.push_back(Effect::SaveDraft(draft));
        " A message to it is drafted."
    }
}
