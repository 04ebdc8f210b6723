//! What was left out and why, and how everything we depend on is doing.

use ratatui::layout::Rect;

use super::detail::{Line, draw_lines};
use super::frame::silent;
use super::list::Scroll;
use crate::console::app::App;
use crate::console::intent::Intent;
use crate::console::paint::Pen;
use crate::console::text;
use crate::console::theme::Role;
use crate::disk::durable;
use crate::fact::{Desk, Now, Standing, Watching};
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

/// What there is to say of one thing, safe to print.
type Findings = Vec<(Gravity, String)>;

/// Everything to say, by what it is about; what there is nothing to say of is not there.
fn sections(app: &App, now: Now) -> Vec<(&'static str, Findings)> {
    let mut sections = vec![
        ("Chief and Herdr", standing(app, now)),
        ("inbox", inbox(app)),
        ("who else is here", elsewhere(app)),
        ("notices", notices(app)),
        ("drafts", drafts(app)),
        ("left out of the list", left_out_of_the_list(app)),
    ];
    sections.retain(|(_, findings)| !findings.is_empty());
    sections
}

fn standing(app: &App, now: Now) -> Findings {
    let model = &app.model;
    let mut out = Vec::new();
    out.push(match model.standing() {
        Standing::Chief { lease, .. } => (Gravity::Good, format!("You are Chief, under lease {lease}.")),
        Standing::Starting => (Gravity::Note, "Starting.".to_owned()),
        Standing::Observer { refused: Some(why), .. } => (Gravity::Warning, format!("Not Chief: {why}.")),
        Standing::Barred { why, .. } => (Gravity::Warning, format!("Only watching: {why}.")),
        Standing::Observer { chief, .. } => (Gravity::Note, format!("Watching; {}.", chief.sentence())),
        Standing::Suspended(chief) => (Gravity::Warning, format!("Suspended; {}.", chief.sentence())),
        Standing::Lost { reason, .. } => (Gravity::Warning, format!("The Chief lease was lost: {reason}.")),
    });
    out.extend(model.desk().map(|desk| match desk {
        Desk::Own { socket } => {
            (Gravity::Good, format!("Verbs and other consoles use this one, by {}.", durable::shown(socket)))
        }
        Desk::Alone(why) => {
            (Gravity::Warning, format!("No verb and no other console can use this one: {why}."))
        }
        Desk::Of { pid, answers: false } => (Gravity::Warning, silent(*pid)),
        Desk::Of { pid, answers: true } => (
            Gravity::Note,
            format!(
                "The Chief is process {pid} of yours; this console uses it, and takes its place when it ends."
            ),
        ),
    }));
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
        Watching::SwitchedOff => (
            Gravity::Note,
            "The records are read once a second: notifications = false in config.toml.".to_owned(),
        ),
    });
    if let Some(lost) = model.changes_lost() {
        let times = if lost.times == 1 { "once".to_owned() } else { format!("{} times", lost.times) };
        let at = (app.settings.clock)(lost.last.wall);
        out.push((
            Gravity::Note,
            format!(
                "More files changed at once than the system tells, {times}, last at {at}; all was read again."
            ),
        ));
    }
    if let Some(why) = model.records_problem() {
        out.push((Gravity::Warning, format!("The lead records can't be read: {why}.")));
    }
    if let Some(inventory) = model.inventory() {
        out.extend(inventory.dropped.iter().map(|what| (Gravity::Warning, what.clone())));
    }
    out
}

fn inbox(app: &App) -> Findings {
    let mail = app.model.mail();
    let mut out = Vec::new();
    if let Some(why) = &mail.stopped {
        out.push((Gravity::Warning, format!("Nothing is received: {why}.")));
    }
    out.extend(mail.kept.iter().map(|what| (Gravity::Warning, format!("It stays in our inbox: {what}."))));
    if mail.damaged > 0 {
        let lines = if mail.damaged == 1 { "line" } else { "lines" };
        out.push((
            Gravity::Warning,
            format!("{} {lines} of the journal can't be read; they stay as they are.", mail.damaged),
        ));
    }
    out
}

fn elsewhere(app: &App) -> Findings {
    let mut out = Vec::new();
    if let Some(surroundings) = app.model.surroundings() {
        for elsewhere in &surroundings.elsewhere {
            out.push((Gravity::Warning, format!("{}.", elsewhere.sentence(&surroundings.socket))));
        }
        for blocked in &surroundings.blocked {
            out.push((Gravity::Warning, format!("{}.", blocked.sentence())));
        }
        for newer in &surroundings.newer {
            let gravity = if newer.records > 0 { Gravity::Warning } else { Gravity::Note };
            out.push((gravity, format!("{}.", newer.sentence())));
        }
    }
    let others = app.model.inventory().map_or(0, |inventory| inventory.other_agents.len());
    if others > 0 {
        out.push((
            Gravity::Note,
            format!("Herdr also lists {others} agents that are not Pi's; they are no leads."),
        ));
    }
    out
}

fn notices(app: &App) -> Findings {
    let Some(report) = app.notices() else { return Vec::new() };
    let mut out = vec![(Gravity::Note, report.way.clone())];
    out.extend(report.trouble.iter().map(|trouble| (Gravity::Warning, format!("{trouble}."))));
    out
}

fn drafts(app: &App) -> Findings {
    let told = app.orphaned_drafts().map(|draft| {
        let begin = crate::contract::Untrusted::from(draft.text.as_str()).first_units(60);
        let session = draft.session.as_untrusted().first_units(40);
        format!(
            "A draft is kept for an ask that session {} does not put any more: \"{}\".",
            session.escaped(),
            begin.escaped()
        )
    });
    told.map(|told| (Gravity::Note, told)).collect()
}

fn left_out_of_the_list(app: &App) -> Findings {
    let mut out = Vec::new();
    let (managed, left_out) = app.model.roster().managed_and_others();
    if managed > 0 {
        out.push((Gravity::Note, left_out::managed_sentence(managed)));
    }
    // Another place, or another process, is not told apart from us by the session alone.
    let us = match app.model.desk() {
        Some(Desk::Of { pid, .. }) => format!("the Chief that this console uses, process {pid}"),
        _ if app.model.registration().can_write_up() => "this console".to_owned(),
        _ => "the Chief itself".to_owned(),
    };
    for left_out in left_out {
        let gravity = if left_out.reason.is_expected() { Gravity::Note } else { Gravity::Warning };
        out.push((gravity, left_out.sentence_of_chief(&us)));
    }
    out
}

/// The same as plain lines, to be copied.
pub fn lines(app: &App, now: Now) -> Vec<String> {
    let findings = sections(app, now).into_iter().flat_map(|(_, findings)| findings);
    findings.map(|(gravity, text)| format!("{} {text}", gravity.word())).collect()
}

/// Draws the diagnostics into `area`, frame included.
pub fn draw(state: &State, app: &App, now: Now, area: Rect, pen: &mut Pen<'_>) {
    let sections = sections(app, now);
    let all = || sections.iter().flat_map(|(_, findings)| findings);
    let title = match all().filter(|(gravity, _)| *gravity == Gravity::Warning).count() {
        0 => text::line("Diagnostics"),
        1 => text::line("Diagnostics 1 warning"),
        warnings => text::line(format_args!("Diagnostics {warnings} warnings")),
    };
    let inside = pen.pane(area, &title, true);
    if inside.is_empty() {
        return;
    }
    let room = usize::from(inside.width).saturating_sub(8);
    let mut drawn = Vec::new();
    for (title, findings) in &sections {
        drawn.push(Line::Rule(text::line(*title), Role::Heading));
        for (gravity, finding) in findings {
            for (at, line) in text::line(finding).wrap(room).into_iter().enumerate() {
                let word = if at == 0 { gravity.word() } else { "" };
                drawn.push(Line::Pieces(vec![
                    (text::line(word).pad_end(5), gravity.role()),
                    (line, Role::Text),
                ]));
            }
        }
    }
    draw_lines(&drawn, &state.scroll, inside, pen);
}
