//! What a lead's session tells of what it does: in one line, its files, and what was said last.

use super::Line;
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};
use crate::contract::Untrusted;
use crate::fact::{Now, SessionRead};
use crate::herd::{Lead, State};
use crate::model::Model;
use crate::pi::activity::{Activity, Said, Stop, Touched};
use crate::signals::self_report;

/// Columns a call's argument may take.
const MAX_ARGUMENT: usize = 40;
/// Columns the name of a tool or model may.
const MAX_NAME: usize = 24;
/// Columns that a path has at least beside who touched it, too.
const MIN_PATH: usize = 20;
/// Lines for what the lead was told, and for what it said.
const TOLD: usize = 3;
const SAID: usize = 6;
/// The same right below an ask that is answered.
const WORDS: usize = 2;

/// What it does, wrapped; why that is not known, where its session was looked at and can't be read.
pub fn summary(
    lines: &mut Vec<Line>,
    lead: &Lead,
    model: &Model,
    now: Now,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) {
    let activity = match model.sessions().read(&lead.session) {
        Some(SessionRead::Activity(activity)) => activity,
        Some(SessionRead::Unread(why)) => {
            return wrapped(lines, &format!("What it does is not known: {why}."), room, Role::Muted);
        }
        None => return,
    };
    let separator = format!(" {} ", pen.glyphs().separator);
    let parts = parts(activity, lead, model, now, ages);
    if !parts.is_empty() {
        wrapped(lines, &parts.join(&separator), room, Role::Muted);
    }
    if let Some(stop) = &activity.stop {
        let stop = match stop {
            Stop::Error(Some(why)) => format!("Its last answer failed: {}", text::line(why)),
            Stop::Error(None) => "Its last answer failed.".to_owned(),
            Stop::Aborted => "Its last answer was interrupted.".to_owned(),
            Stop::Length => "Its last answer became too long and ends in the middle.".to_owned(),
        };
        wrapped(lines, &stop, room, Role::Warning);
    }
}

fn parts(activity: &Activity, lead: &Lead, model: &Model, now: Now, ages: &mut Ages) -> Vec<String> {
    let mut age = |at| ages.show(model.sessions().age(&lead.session, at, now));
    let mut parts = Vec::new();
    if let Some(last) = activity.last {
        parts.push(format!("last activity {} ago", age(last)));
    }
    if let Some(call) = activity.running.first() {
        let mut part = text::line(&call.tool).truncate_end(MAX_NAME).to_string();
        if let Some(argument) = &call.argument {
            part.push_str(&format!(" `{}`", text::line(argument).truncate_end(MAX_ARGUMENT)));
        }
        if activity.running.len() > 1 {
            part.push_str(&format!(" and {} more", activity.running.len() - 1));
        }
        match (lead.state, call.since) {
            // Nobody waits for it any more.
            (State::Idle | State::Done | State::Lost, _) => part.push_str(" without a result"),
            (_, Some(since)) => part.push_str(&format!(" for {}", age(since))),
            (_, None) => part.push_str(" now"),
        }
        parts.push(part);
    }
    let least = if activity.is_whole { "" } else { "at least " };
    let mut count = |count: usize, one: &str, many: &str| {
        if count > 0 {
            parts.push(format!("{least}{count} {}", if count == 1 { one } else { many }));
        }
    };
    count(activity.errors as usize, "error", "errors");
    count(touched(activity), "file", "files");
    if let Some(tokens) = activity.context {
        parts.push(format!("{} context", tokens_text(tokens)));
    }
    if let Some(model) = &activity.model {
        parts.push(text::line(&model.id).truncate_end(MAX_NAME).to_string());
    }
    parts
}

/// How many files were touched since the turn began.
fn touched(activity: &Activity) -> usize {
    activity.files.iter().filter(|file| file.in_turn).count() + activity.more_files as usize
}

fn tokens_text(tokens: f64) -> String {
    match tokens {
        ..1e3 => format!("{tokens:.0}"),
        ..999_500.0 => format!("{:.0}k", tokens / 1e3),
        _ => format!("{:.1}M", tokens / 1e6),
    }
}

/// The files that were touched since the turn began, at most `most`, those first that another lead
/// touched not long ago.
#[allow(clippy::too_many_arguments)]
pub fn files(
    lines: &mut Vec<Line>,
    lead: &Lead,
    model: &Model,
    now: Now,
    most: usize,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) {
    let sessions = model.sessions();
    let Some(activity) = sessions.activity(&lead.session) else { return };
    let others = activity.files.iter().map(|file| (file, sessions.also_by(&lead.session, file, now)));
    let (shared, own): (Vec<_>, Vec<_>) = others.partition(|(_, others)| !others.is_empty());
    let own: Vec<_> = own.into_iter().filter(|(file, _)| file.in_turn).collect();
    let all = shared.len() + own.len() + activity.more_files as usize;
    if all == 0 {
        return;
    }
    lines.push(Line::Rule(text::line("files touched"), Role::Heading));
    let listed: Vec<_> = shared.into_iter().chain(own).take(most).collect();
    let hidden = all - listed.len();
    for (file, others) in listed {
        let name = shown_path(file, lead);
        let Some((other, age)) = others.first() else {
            let age = file.at.map(|at| ages.show(sessions.age(&lead.session, at, now)));
            let age = age.map(|age| text::line(format_args!("  {age} ago"))).unwrap_or_default();
            let name = name.truncate_middle(room.saturating_sub(age.width()));
            lines.push(Line::Pieces(vec![(name, Role::Text), (age, Role::Muted)]));
            continue;
        };
        let who = model.lead(other).map_or_else(Visible::default, |lead| text::line(&lead.display_name));
        let more = match others.len() {
            1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let mark = pen.glyphs().mark(Mark::Collision);
        let also = text::line(format_args!("{mark} also by {who} {} ago{more}  ", ages.show(*age)));
        let left = room.saturating_sub(also.width());
        if left >= MIN_PATH.min(name.width()) {
            let pieces = vec![(also, Role::Warning), (name.truncate_middle(left), Role::Warning)];
            lines.push(Line::Pieces(pieces));
        } else {
            wrapped(lines, also.as_str().trim_end(), room, Role::Warning);
            let name = name.truncate_middle(room.saturating_sub(2));
            lines.push(Line::Pieces(vec![(text::line("  "), Role::Warning), (name, Role::Warning)]));
        }
    }
    if hidden > 0 {
        lines.push(Line::plain(text::line(format_args!("+{hidden} more")), Role::Muted));
    }
}

/// The path from the lead's directory on, where it is in there or beside it.
fn shown_path(file: &Touched, lead: &Lead) -> Visible {
    let path = file.path.to_str_lossy();
    let cwd = lead.cwd.as_ref().map(Untrusted::to_str_lossy);
    let below = |directory: &str| path.strip_prefix(directory)?.strip_prefix('/').map(str::to_owned);
    let relative = cwd.and_then(|cwd| {
        let parent = cwd.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty());
        below(&cwd).or_else(|| Some(format!("../{}", below(parent?)?)))
    });
    text::line(&relative.unwrap_or_else(|| path.into_owned()))
}

/// What the lead was told last, how that begins, and what it said last, how that ends. After
/// [`last_words`], what these show whole is not said again.
pub fn exchange(lines: &mut Vec<Line>, lead: &Lead, model: &Model, room: usize, after_last_words: bool) {
    let Some(activity) = model.sessions().activity(&lead.session) else { return };
    let shown = |said: &Said| text::wrap(&said.text, room.saturating_sub(2));
    if let Some(told) = &activity.told {
        lines.push(Line::Rule(text::line("it was told"), Role::Heading));
        let mut all = shown(told);
        let more = told.is_cut || all.len() > TOLD;
        all.truncate(TOLD);
        lines.extend(all.into_iter().map(indented));
        if more {
            lines.push(ellipsis());
        }
    }
    let has_more =
        |said: &&Said| said.is_cut || text::wrap(&words(said), room.saturating_sub(2)).len() > WORDS;
    if let Some(said) = activity.said.as_ref().filter(|said| !after_last_words || has_more(said)) {
        said_last(lines, said, SAID, room);
    }
}

/// The end of what it said last, in few lines: what an ask is read with.
pub fn last_words(lines: &mut Vec<Line>, lead: &Lead, model: &Model, room: usize) {
    let activity = model.sessions().activity(&lead.session);
    if let Some(said) = activity.and_then(|activity| activity.said.as_ref()) {
        said_last(lines, said, WORDS, room);
    }
}

/// What it said, without what it reports of itself.
fn words(said: &Said) -> Untrusted {
    self_report::shown(&said.text.to_str_lossy(), said.is_cut).into()
}

fn said_last(lines: &mut Vec<Line>, said: &Said, most: usize, room: usize) {
    let words = words(said);
    if words.is_blank() && !said.is_cut {
        return;
    }
    lines.push(Line::Rule(text::line("it said last"), Role::Heading));
    let all = text::wrap(&words, room.saturating_sub(2));
    let dropped = all.len().saturating_sub(most);
    if said.is_cut || dropped > 0 {
        lines.push(ellipsis());
    }
    lines.extend(all.into_iter().skip(dropped).map(indented));
}

fn indented(line: Visible) -> Line {
    Line::Pieces(vec![(text::line("  "), Role::Text), (line, Role::Text)])
}

fn ellipsis() -> Line {
    Line::plain(text::line("  \u{2026}"), Role::Muted)
}

fn wrapped(lines: &mut Vec<Line>, what: &str, room: usize, role: Role) {
    lines.extend(text::line(what).wrap(room).into_iter().map(|line| Line::plain(line, role)));
}
