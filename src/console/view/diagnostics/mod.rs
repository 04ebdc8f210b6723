//! What was left out and why, and how everything we depend on is doing.

use ratatui::layout::Rect;

use super::detail::{Line, draw_lines};
use super::list::Scroll;
use crate::console::app::App;
use crate::console::intent::Intent;
use crate::console::paint::Pen;
use crate::console::text;
use crate::console::theme::Role;
use crate::fact::{Now, OtherChief, Standing, Watching};
use crate::herd::left_out;
use crate::model::HerdrState;

/// What the operator sees of it.
#[derive(Debug, Default)]
pub struct State {
    scroll: Scroll,
}

impl State {
    /// What an intent does.
    pub fn intent(&mut self, intent: Intent) {
        self.scroll.intent(intent);
    }
}

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// As it should be.
    Good,
    /// To know.
    Note,
    /// To look at.
    Warning,
}

impl Gravity {
    fn role(self) -> Role {
        match self {
            Gravity::Good => Role::Good,
            Gravity::Note => Role::Notice,
            Gravity::Warning => Role::Warning,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Gravity::Good => "ok",
            Gravity::Note => "note",
            Gravity::Warning => "warn",
        }
    }
}

/// Everything to say, safe to print.
pub fn findings(app: &App, now: Now) -> Vec<(Gravity, String)> {
    let model = &app.model;
    let mut out = Vec::new();
    out.push(match model.standing() {
        Standing::Chief { lease, .. } => (Gravity::Good, format!("You are Chief, under lease {lease}.")),
        Standing::Starting => (Gravity::Note, "Starting.".to_owned()),
        Standing::Observer { refused: Some(why), .. } => (Gravity::Warning, format!("Not Chief: {why}.")),
        Standing::Barred { why, .. } => (Gravity::Warning, format!("Only watching: {why}.")),
        Standing::Observer { chief, .. } => (Gravity::Note, format!("Watching; {}.", chief_sentence(chief))),
        Standing::Suspended(chief) => (Gravity::Warning, format!("Suspended; {}.", chief_sentence(chief))),
        Standing::Lost { reason, .. } => (Gravity::Warning, format!("The Chief lease was lost: {reason}.")),
    });
    out.push(match model.herdr() {
        HerdrState::Starting => (Gravity::Note, "Herdr was not reached yet.".to_owned()),
        HerdrState::Up => {
            let version = model.inventory().and_then(|inventory| inventory.version.as_ref());
            let version = version.map(|version| format!(" {}", version.escaped())).unwrap_or_default();
            (Gravity::Good, format!("Herdr{version} answers."))
        }
        HerdrState::Down { since, reason } => {
            let age = now.mono.saturating_sub(*since).as_secs();
            (Gravity::Warning, format!("No answer from Herdr for {age} s: {reason}."))
        }
    });
    let registration = model.registration();
    let gravity = if registration.can_write_up() { Gravity::Good } else { Gravity::Note };
    out.push((gravity, format!("In Herdr's list: {registration}.")));
    out.push(match model.watching() {
        Watching::Notified => (Gravity::Good, "File notifications work.".to_owned()),
        Watching::Polling(why) => (
            Gravity::Warning,
            format!("The records are read once a second, since file notifications fail: {why}."),
        ),
    });
    if let Some(why) = model.records_problem() {
        out.push((Gravity::Warning, format!("The lead records can't be read: {why}.")));
    }
    if let Some(surroundings) = model.surroundings() {
        for elsewhere in &surroundings.elsewhere {
            out.push((Gravity::Warning, format!("{}.", elsewhere.sentence(&surroundings.socket))));
        }
        for newer in &surroundings.newer {
            let gravity = if newer.records > 0 { Gravity::Warning } else { Gravity::Note };
            out.push((gravity, format!("{}.", newer.sentence())));
        }
    }
    if let Some(inventory) = model.inventory() {
        if !inventory.other_agents.is_empty() {
            out.push((
                Gravity::Note,
                format!(
                    "Herdr also lists {} agents that are not Pi's; they are no leads.",
                    inventory.other_agents.len()
                ),
            ));
        }
        out.extend(inventory.dropped.iter().map(|what| (Gravity::Warning, what.clone())));
    }
    for draft in app.orphaned_drafts() {
        let begin = crate::contract::Untrusted::from(draft.text.as_str()).first_units(60);
        out.push((
            Gravity::Note,
            format!(
                "A draft is kept for an ask that session {} does not put any more: \"{}\".",
                draft.session.as_untrusted().first_units(40).escaped(),
                begin.escaped()
            ),
        ));
    }
    let (managed, left_out) = model.roster().managed_and_others();
    if managed > 0 {
        out.push((Gravity::Note, left_out::managed_sentence(managed)));
    }
    for left_out in left_out {
        let gravity = if left_out.reason.is_expected() { Gravity::Note } else { Gravity::Warning };
        out.push((gravity, left_out.sentence()));
    }
    out
}

/// Who is Chief instead, as the end of a sentence.
pub fn chief_sentence(chief: &OtherChief) -> String {
    match chief {
        OtherChief::None => "nobody is Chief".to_owned(),
        OtherChief::Held(descriptor) => format!(
            "session {} is Chief, on pane {}, process {}",
            descriptor.session.as_untrusted().first_units(40).escaped(),
            descriptor.pane.first_units(40).escaped(),
            descriptor.claim.pid
        ),
        OtherChief::OwnConsole(descriptor) => format!(
            "another headman of yours is Chief, process {} on pane {}",
            descriptor.claim.pid,
            descriptor.pane.first_units(40).escaped()
        ),
        OtherChief::InProgress => "another process is becoming Chief".to_owned(),
        OtherChief::Unverifiable(why) => format!("who is Chief can't be verified: {why}"),
    }
}

/// The same as plain lines, to be copied.
pub fn lines(app: &App, now: Now) -> Vec<String> {
    findings(app, now).into_iter().map(|(gravity, text)| format!("{} {text}", gravity.word())).collect()
}

/// Draws the diagnostics into `area`, frame included.
pub fn draw(state: &State, app: &App, now: Now, area: Rect, pen: &mut Pen<'_>) {
    let inside = pen.pane(area, &text::line("Diagnostics"), true);
    if inside.is_empty() {
        return;
    }
    let room = usize::from(inside.width).saturating_sub(8);
    let mut drawn = Vec::new();
    for (gravity, finding) in findings(app, now) {
        for (at, line) in text::line(&finding).wrap(room).into_iter().enumerate() {
            let word = if at == 0 { gravity.word() } else { "" };
            drawn.push(Line::Pieces(vec![(text::line(word).pad_end(5), gravity.role()), (line, Role::Text)]));
        }
    }
    draw_lines(&drawn, &state.scroll, inside, pen);
}
