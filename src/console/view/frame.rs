//! The whole screen: header, what is wrong, the views, footer.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{
    ask, broadcast, detail, diagnostics, help, inbox, lessons, peek, peers, roster, search, signals,
    timeline, transcript, turns,
};
use crate::console::age::Ages;
use crate::console::app::{App, Confirm, Layer};
use crate::console::intent::Intent;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::roster::Pane;
use crate::fact::{Desk, Now, OtherChief, Standing, Watching};
use crate::model::HerdrState;

/// Below this nothing but one line is drawn.
const SMALLEST: (u16, u16) = (20, 6);
/// Below this height only alarms stand above the list.
const LOW: u16 = 10;
/// From this width on the detail stands beside the list.
const SIDE_BY_SIDE: u16 = 80;
/// From this width on it stands below.
const STACKED: u16 = 50;
/// How long the header tells that changes were lost.
const BADGE: Duration = Duration::from_secs(60);

/// Draws one frame, and says how long until it is out of date by itself.
pub fn draw(app: &App, now: Now, frame: &mut Frame<'_>) -> Option<Duration> {
    let area = frame.area();
    let mut ages = Ages::default();
    let cursor = {
        let mut pen = Pen::new(frame.buffer_mut(), &app.settings.theme);
        pen.fill(area, Role::Text);
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            let asks = app.model.asks().map_or(0, |(count, _)| count);
            pen.put(
                area.x,
                area.y,
                area.right(),
                &text::line(format_args!("{}: enlarge", counted(asks, "ask"))),
                Role::Text,
            );
            None
        } else {
            header(app, now, row(area, 0), &mut pen, &mut ages);
            // The views keep most of a low screen.
            let most = usize::from(area.height / 6).max(1);
            let room = usize::from(area.width).saturating_sub(2);
            let mut shown = 0;
            for (banner, role) in banners(app, now, &mut ages) {
                if area.height < LOW && role != Role::Alarm {
                    continue;
                }
                for line in banner.wrap(room) {
                    if shown < most {
                        let at = row(area, 1 + shown as u16);
                        pen.put(at.x + 1, at.y, at.right(), &line, role);
                        shown += 1;
                    }
                }
            }
            let top = 1 + shown as u16;
            let mut bottom = 1;
            let hint = app.hint().map(|hint| text::line(&hint).wrap(room)).unwrap_or_default();
            // Half a hint is none.
            if area.height >= LOW && hint.len() <= most.max(2) {
                for line in hint.iter().rev() {
                    bottom += 1;
                    let at = row(area, area.height - bottom);
                    pen.put(at.x + 1, at.y, at.right(), line, Role::Notice);
                }
            }
            if let Some(away) = app.away().filter(|_| area.height >= LOW) {
                bottom += 1;
                let at = row(area, area.height - bottom);
                let away = away.truncate_end(room);
                pen.put(at.x + 1, at.y, at.right(), &away, Role::Notice);
            }
            let body = Rect { y: area.y + top, height: area.height - top - bottom, ..area };
            let cursor = views(app, now, body, &mut pen, &mut ages);
            footer(app, body, row(area, area.height - 1), &mut pen);
            cursor
        }
    };
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
    app.next_frame(ages.next(), now)
}

/// What it means that the process which serves says nothing.
pub(super) fn silent(pid: u32) -> String {
    format!(
        "Process {pid}, which is the Chief service for this console, does not answer: it may be suspended. Nothing \
         is sent, and what it told may be old. To have it go on: kill -CONT {pid}. Once it has ended, this console \
         takes its place."
    )
}

fn row(area: Rect, at: u16) -> Rect {
    Rect { y: area.y + at, height: 1, ..area }
}

/// Who and where we are, whether Herdr answers, and what waits.
fn header(app: &App, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    pen.fill(line, Role::Title);
    let glyphs = pen.glyphs();
    let separator = text::line(format_args!(" {} ", glyphs.separator));
    let help_key = app.settings.keymap.keys_of(Intent::Help).into_iter().next();
    let help = help_key.map(|key| text::line(format_args!(" {key} help "))).unwrap_or_default();
    let end = line.right().saturating_sub(help.width() as u16);
    pen.put(end, line.y, line.right(), &help, Role::Key);

    let of = match app.model.desk() {
        Some(Desk::Of { pid, .. }) => format!(" (process {pid})"),
        _ => String::new(),
    };
    let (standing, standing_role) = match app.model.standing() {
        _ if let Some(pid) = app.model.silent_desk() => {
            (text::line(format_args!("{} no answer of process {pid}", glyphs.off)), Role::Alarm)
        }
        Standing::Starting => (text::line("starting"), Role::Muted),
        Standing::Observer { .. } => (text::line(format_args!("{} observer", glyphs.off)), Role::Notice),
        Standing::Barred { .. } => (text::line(format_args!("{} only watching", glyphs.off)), Role::Warning),
        Standing::Chief { .. } if line.width < STACKED => {
            (text::line(format_args!("{} chief", glyphs.on)), Role::Good)
        }
        Standing::Chief { since, .. } => (
            text::line(format_args!("{} chief since {}{of}", glyphs.on, (app.settings.clock)(*since))),
            Role::Good,
        ),
        Standing::Suspended(_) => (text::line(format_args!("{} suspended", glyphs.off)), Role::Warning),
        Standing::Lost { .. } => (text::line(format_args!("{} lease lost", glyphs.off)), Role::Alarm),
    };
    let (herdr, herdr_role) = match app.model.herdr() {
        HerdrState::Starting => (text::line("herdr \u{2026}"), Role::Muted),
        HerdrState::Up => (text::line("herdr ok"), Role::Good),
        HerdrState::Down { since, .. } => {
            let age = ages.show(now.mono.saturating_sub(*since));
            (text::line(format_args!("herdr down {age}")), Role::Alarm)
        }
    };
    let leads = app.model.roster().leads.len();
    let mut parts = vec![
        (text::line("headman"), Role::Title),
        (text::line(&app.settings.herdr_session), Role::Title),
        (standing, standing_role),
        (herdr, herdr_role),
        (text::line(format_args!("{leads} {}", if leads == 1 { "lead" } else { "leads" })), Role::Title),
    ];
    if let Some((count, oldest)) = app.model.asks() {
        let age = app.model.ask_age(oldest, now).map(|age| ages.show(age)).unwrap_or_default();
        let asks = counted(count, "ask");
        parts.push((text::line(format_args!("{asks} (oldest {age})")), Role::NeedsYou));
    }
    let snoozed = app.model.snoozed_asks();
    if snoozed > 0 {
        parts.push((text::line(format_args!("{snoozed} snoozed")), Role::Muted));
    }
    let badges = parts.len();
    if !matches!(app.model.watching(), Watching::Notified) {
        parts.push((text::line("polling"), Role::Warning));
    }
    if let Some(lost) = app.model.changes_lost() {
        let ago = now.mono.saturating_sub(lost.last.mono);
        if ago < BADGE {
            parts.push((text::line(format_args!("events lost {} ago", ages.show(ago))), Role::Warning));
        }
    }
    let badges = badges..parts.len();
    let unread = app.model.mail().unread;
    if unread > 0 {
        parts.push((text::line(format_args!("{unread} unread")), Role::Notice));
    }
    // What matters least goes first when the line is too short; the asks and what is wrong stay longest.
    let mut order = vec![1, 0, 4];
    if matches!(app.model.herdr(), HerdrState::Up) {
        order.insert(2, 3);
    }
    if unread > 0 {
        order.push(parts.len() - 1);
    }
    if snoozed > 0 {
        order.push(badges.start - 1);
    }
    order.extend(badges);
    let mut dropped: Vec<usize> = Vec::new();
    for droppable in order {
        let kept = parts.iter().enumerate().filter(|(at, _)| !dropped.contains(at));
        let width: usize = kept.map(|(_, (part, _))| part.width() + 3).sum();
        // Nothing comes after the last part, and half a number says nothing.
        let spare = if droppable + 1 == parts.len() && unread > 0 { 2 } else { 0 };
        if width > usize::from(end.saturating_sub(line.x)) + spare {
            dropped.push(droppable);
        }
    }
    let mut at = 0;
    parts.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    let mut x = line.x + 1;
    for (at, (part, role)) in parts.iter().enumerate() {
        if at > 0 {
            x = pen.put(x, line.y, end, &separator, Role::Muted);
        }
        x = pen.put(x, line.y, end, part, *role);
    }
}

/// What is not as it should be, the gravest first, with the next step.
fn banners(app: &App, now: Now, ages: &mut Ages) -> Vec<(Visible, Role)> {
    let model = &app.model;
    let key = |intent: Intent| app.settings.keymap.way_to(intent, app.context()).unwrap_or_default();
    let chief_key = key(Intent::ToggleChief);
    let mut out: Vec<(String, Role)> = Vec::new();
    if let Some(pid) = model.silent_desk() {
        out.push((silent(pid), Role::Alarm));
    }
    match model.standing() {
        // Who is what may have changed since.
        _ if model.silent_desk().is_some() => {}
        Standing::Lost { reason, chief } => out.push((
            format!(
                "The Chief lease was lost: {reason}. Nothing is sent, drafts are kept; {}.{}",
                chief.sentence(),
                if *chief == OtherChief::None {
                    format!(" {chief_key} takes it back.")
                } else {
                    String::new()
                }
            ),
            Role::Alarm,
        )),
        Standing::Suspended(OtherChief::None) => out.push((
            format!("Suspended; the lease is free now: press {chief_key} to become Chief."),
            Role::Warning,
        )),
        // It is nobody's yet to end, and tried again by itself.
        Standing::Suspended(chief) if chief.is_in_progress() => {
            out.push((format!("Suspended: {}.", chief.sentence()), Role::Warning));
        }
        Standing::Suspended(chief) => {
            let since = match chief {
                OtherChief::Held(descriptor) | OtherChief::OwnConsole(descriptor) => {
                    format!(", since {}", (app.settings.clock)(descriptor.created_at))
                }
                _ => String::new(),
            };
            out.push((
                format!(
                    "Suspended: {}{since}. It is never taken over; {chief_key} once it is free.",
                    chief.sentence()
                ),
                Role::Warning,
            ));
        }
        Standing::Observer { chief, refused } => {
            let refused = refused.as_ref().map(|why| format!("Not Chief: {why}. ")).unwrap_or_default();
            let next = match chief {
                OtherChief::None => format!("press {chief_key} to become Chief and answer"),
                chief => chief.sentence(),
            };
            out.push((format!("{refused}You are watching: {next}."), Role::Notice));
        }
        Standing::Barred { why, chief } => {
            let chief = match chief {
                OtherChief::None => String::new(),
                chief => format!(" Now {}.", chief.sentence()),
            };
            out.push((
                format!("You only watch, and nothing is kept: {why}, or give another --state-dir.{chief}"),
                Role::Warning,
            ));
        }
        Standing::Starting | Standing::Chief { .. } => {}
    }
    if let HerdrState::Down { since, reason } = model.herdr() {
        let age = ages.show(now.mono.saturating_sub(*since));
        let picture = if model.inventory().is_some() {
            format!(" What you see is as of {age} ago.")
        } else {
            String::new()
        };
        out.push((format!("{reason}.{picture}"), Role::Alarm));
    }
    if let Some(why) = model.records_problem() {
        out.push((format!("The lead records can't be read: {why}. See headman doctor."), Role::Alarm));
    }
    if let Some(why) = &model.mail().stopped {
        out.push((format!("Nothing is received: {why}."), Role::Alarm));
    }
    if let Some(surroundings) = model.surroundings().filter(|it| !it.banners().is_empty()) {
        let key = key(Intent::Diagnostics);
        let told = surroundings.banners();
        out.extend(told.into_iter().map(|it| (format!("{it}: {key} says more."), Role::Warning)));
    }
    if model.standing().lease().is_some() && !model.registration().can_write_up() {
        let told = model.registration().to_string();
        out.push((format!("L{}.", told.strip_prefix('l').unwrap_or(&told)), Role::Notice));
    }
    if let Watching::Polling(why) = model.watching() {
        out.push((
            format!("Reading the records once a second, since file notifications fail: {why}."),
            Role::Notice,
        ));
    }
    let warnings = model.roster().left_out.iter().filter(|left| !left.reason.is_expected()).count();
    if warnings > 0 && model.is_complete() {
        let key = key(Intent::Diagnostics);
        let what = if warnings == 1 { "thing is" } else { "things are" };
        out.push((format!("{warnings} {what} left out of the list: {key} says why."), Role::Notice));
    }
    // The gravest first, as they stand among equals.
    out.sort_by_key(|(_, role)| match role {
        Role::Alarm => 0,
        Role::Warning => 1,
        _ => 2,
    });
    out.into_iter().map(|(text, role)| (text::line(&text), role)).collect()
}

/// Draws what is open; gives the cursor's place where one is shown.
fn views(app: &App, now: Now, body: Rect, pen: &mut Pen<'_>, ages: &mut Ages) -> Option<(u16, u16)> {
    match app.layers.last() {
        Some(Layer::Ask(state)) => {
            return ask::draw::draw(state, &app.model, now, &app.settings.keymap, body, pen, ages)
                .filter(|_| app.confirm.is_none());
        }
        Some(Layer::Help(state)) => {
            help::draw(state, &app.settings.keymap, &app.settings.snippets, body, pen)
        }
        Some(Layer::Diagnostics(state)) => diagnostics::draw(state, app, now, body, pen),
        Some(Layer::Inbox(state)) => {
            inbox::draw::draw(state, &app.model, now, &app.settings.keymap, body, pen, ages)
        }
        Some(Layer::Peek(state)) => peek::draw::draw(state, &app.model, now, body, pen, ages),
        Some(Layer::Timeline(state)) => timeline::draw::draw(state, app, now, body, pen, ages),
        Some(Layer::Peers(state)) => peers::draw::draw(state, &app.model, now, body, pen, ages),
        Some(Layer::Turns(state)) => turns::draw::draw(state, &app.model, now, body, pen, ages),
        Some(Layer::Signals(state)) => {
            signals::draw::draw(state, &app.model, now, &app.settings.keymap, body, pen, ages)
        }
        Some(Layer::Transcript(state)) => {
            let scene = transcript::draw::Scene {
                model: &app.model,
                now,
                keymap: &app.settings.keymap,
                clock: app.settings.clock,
            };
            transcript::draw::draw(state, &scene, body, pen, ages);
        }
        Some(Layer::Search(state)) => search::draw::draw(state, &app.model, now, body, pen, ages),
        Some(Layer::Lessons(state)) => {
            lessons::draw::draw(state, &app.settings.keymap, now, body, pen, ages);
        }
        Some(Layer::Broadcast) => {
            let state = app.broadcast()?;
            let keymap = &app.settings.keymap;
            return broadcast::draw::draw(state, &app.model, now, keymap, body, pen, ages)
                .filter(|_| app.confirm.is_none());
        }
        None => home(app, now, body, pen, ages),
    }
    None
}

fn home(app: &App, now: Now, body: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    if app.model.roster().leads.is_empty() {
        nothing(app, body, pen);
        return;
    }
    let state = &app.roster;
    state.not_drawn();
    let lead = state.selected().and_then(|session| app.model.lead(session));
    let leads_focused = state.pane == Pane::Leads;
    let (list, beside) = split(body, state.rows().len(), state.detail_open);
    if let Some(list) = list {
        roster::draw::draw(state, &app.model, &app.gates, now, list, leads_focused, pen, ages);
    }
    if let Some(beside) = beside {
        let has_draft = lead.is_some_and(|lead| app.has_draft(lead));
        detail::draw(
            lead,
            &state.detail,
            &app.model,
            &app.gates,
            now,
            &app.settings.keymap,
            has_draft,
            beside,
            !leads_focused,
            pen,
            ages,
        );
    }
    if matches!(app.model.herdr(), HerdrState::Down { .. }) {
        // The last picture, and visibly so.
        pen.fill(body, Role::Muted);
    }
}

/// Where a list of `rows` and the detail of what is selected in it stand. Where there is room for one
/// only, `detail_open` says for which.
pub(super) fn split(body: Rect, rows: usize, detail_open: bool) -> (Option<Rect>, Option<Rect>) {
    if body.width >= SIDE_BY_SIDE {
        let width = (body.width * 9 / 20).clamp(38, 72);
        return (
            Some(Rect { width, ..body }),
            Some(Rect { x: body.x + width, width: body.width - width, ..body }),
        );
    }
    if body.width >= STACKED && body.height >= 12 {
        let wanted = u16::try_from(rows + 2).unwrap_or(u16::MAX);
        let height = wanted.clamp(5, body.height / 2);
        return (
            Some(Rect { height, ..body }),
            Some(Rect { y: body.y + height, height: body.height - height, ..body }),
        );
    }
    if detail_open { (None, Some(body)) } else { (Some(body), None) }
}

/// What stands in place of an empty list.
fn nothing(app: &App, body: Rect, pen: &mut Pen<'_>) {
    let inside = pen.pane(body, &text::line("Leads"), true);
    let looked_for = format!("Looked for: {}", app.settings.looked_for);
    let words: &[&str] = match (app.model.is_complete(), app.model.herdr()) {
        (_, HerdrState::Down { .. }) => &[
            "Herdr does not answer, so nobody can be seen.",
            &looked_for,
            "",
            "headman tries again by itself. To look around without a Herdr, run: headman demo",
        ],
        (false, _) => &["Looking for leads \u{2026}"],
        (true, _) => &[
            "No leads yet.",
            "",
            "A lead is a Pi session in a Herdr pane that publishes its lead record for this socket:",
            "start Pi with the pi-herdsman extension in a pane, and prompt it once.",
            "To see what this looks like with leads, run: headman demo",
        ],
    };
    let mut y = inside.y + 1;
    for word in words {
        let room = usize::from(inside.width.saturating_sub(4));
        for line in text::line(*word).wrap(room) {
            if y < inside.bottom() {
                pen.put(inside.x + 2, y, inside.right(), &line, Role::Text);
            }
            y += 1;
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A question, a notice, or the keys that do something here.
fn footer(app: &App, body: Rect, line: Rect, pen: &mut Pen<'_>) {
    if let Some(confirm) = &app.confirm {
        let asks = app.model.roster().leads.iter().filter(|lead| lead.needs_you()).count();
        let queued = app.model.queued();
        let key = |intent: Intent| app.settings.keymap.key_of(intent);
        let keys = format!("{} / {}", key(Intent::Yes), key(Intent::No));
        let asks = counted(asks, "open ask");
        let queued = counted(queued, "queued message");
        let question = match confirm {
            Confirm::Leave if app.model.queued() == 0 => {
                format!("Leave Chief mode? {asks} stay pending. {keys}")
            }
            Confirm::Leave => {
                format!("Leave Chief mode? {asks}, {queued}: sent again once you are Chief again. {keys}")
            }
            // They may have been taken since the question came.
            Confirm::Quit if app.model.queued() == 0 => format!("Quit? Nothing is queued any more. {keys}"),
            Confirm::Quit => format!("Quit? {queued}: sent again once you are Chief again. {keys}"),
            Confirm::Archive(name) => format!("Put {name} away? Nothing is deleted. {keys}"),
            Confirm::Broadcast => {
                let count = app.broadcast().map_or(0, |state| state.recipients().len());
                format!("Send it to {}? {keys}", counted(count, "lead"))
            }
            Confirm::Snooze { .. } => {
                let mut keys = app.settings.keymap.footer(app.context(), |_| true);
                // How it is left stands last.
                keys.sort_by_key(|(_, label)| *label == "back");
                let keys: Vec<_> = keys.into_iter().map(|(key, label)| format!("{key} {label}")).collect();
                format!("Put off? {}", keys.join("  "))
            }
        };
        pen.put(line.x + 1, line.y, line.right(), &text::line(&question), Role::Alarm);
        return;
    }
    if let Some(notice) = &app.notice {
        pen.put(line.x + 1, line.y, line.right(), &notice.text, notice.role);
        return;
    }
    let mut x = line.x + 1;
    if let Some(keys) = app.sequence.shown() {
        x = pen.put(x, line.y, line.right(), &text::line(format_args!("{keys} \u{2026}   ")), Role::Notice);
    }
    let (list, beside) = split(body, 0, false);
    let beside = list.is_some() && beside.is_some();
    for (key, label) in app.settings.keymap.footer(app.context(), |intent| app.offers(intent, beside)) {
        let key = text::line(&key);
        let label = text::line(format_args!(" {label}"));
        let width = (key.width() + label.width()) as u16;
        if x + width > line.right() {
            continue;
        }
        x = pen.put(x, line.y, line.right(), &key, Role::Key);
        x = pen.put(x, line.y, line.right(), &label, Role::Muted) + 2;
    }
}
