//! The detail of one lead: what it does, what it asks, its agents, what we sent it.

pub mod activity;
pub mod sent;
pub mod signals;

use std::collections::{HashMap, HashSet};

use ratatui::layout::Rect;

use super::list::Scroll;
use super::mark_of;
use crate::console::age::Ages;
use crate::console::gating::Gates;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};
use crate::contract::SessionId;
use crate::fact::Now;
use crate::herd::{Agent, Lead, State};
use crate::model::Model;
use crate::model::snoozes::Left;

/// Files listed.
const MAX_FILES: usize = 12;
/// Columns an agent's label may take.
const MAX_LABEL: usize = 32;
/// Columns of the longest word for a state.
const STATE_WORD: usize = 8;
/// Levels of the tree that move to the right; deeper ones stay there, so that labels keep some room.
const MAX_DEPTH: usize = 4;

/// One line of the detail, made before it is drawn, so that it can be scrolled.
#[derive(Debug)]
pub enum Line {
    /// A rule with a word in it.
    Rule(Visible, Role),
    /// Pieces one after the other.
    Pieces(Vec<(Visible, Role)>),
}

impl Line {
    /// One piece.
    pub fn plain(text: Visible, role: Role) -> Self {
        Line::Pieces(vec![(text, role)])
    }

    /// Nothing.
    pub fn empty() -> Self {
        Line::Pieces(Vec::new())
    }
}

/// Draws lines into `area`, from the scrolled one on.
pub fn draw_lines(lines: &[Line], scroll: &Scroll, area: Rect, pen: &mut Pen<'_>) {
    let height = usize::from(area.height);
    let top = scroll.top(lines.len(), height);
    for (y, line) in (area.y..).zip(lines.iter().skip(top).take(height)) {
        match line {
            Line::Rule(word, role) => pen.rule(area.x, y, area.right(), word, *role),
            Line::Pieces(pieces) => {
                let mut x = area.x + 1;
                for (piece, role) in pieces {
                    x = pen.put(x, y, area.right(), piece, *role);
                }
            }
        }
    }
    if top > 0 {
        pen.say(area.right() - 1, area.y, area.right(), pen.glyphs().more_above, Role::Key);
    }
    if top + height < lines.len() {
        pen.say(area.right() - 1, area.bottom() - 1, area.right(), pen.glyphs().more_below, Role::Key);
    }
}

/// Draws the detail of the selected lead into `area`, frame included.
#[allow(clippy::too_many_arguments)]
pub fn draw(
    lead: Option<&Lead>,
    scroll: &Scroll,
    model: &Model,
    gates: &Gates,
    now: Now,
    keymap: &Keymap,
    has_draft: bool,
    area: Rect,
    focused: bool,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let title = match lead {
        Some(lead) => text::line(&lead.display_name),
        None => text::line("Lead"),
    };
    let inside = pen.pane(area, &title, focused);
    if inside.is_empty() {
        return;
    }
    let Some(lead) = lead else { return };
    let lines = lines(lead, model, gates, now, keymap, has_draft, usize::from(inside.width), pen, ages);
    draw_lines(&lines, scroll, inside, pen);
}

#[allow(clippy::too_many_arguments)]
fn lines(
    lead: &Lead,
    model: &Model,
    gates: &Gates,
    now: Now,
    keymap: &Keymap,
    has_draft: bool,
    width: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) -> Vec<Line> {
    let separator = pen.glyphs().separator;
    let room = width.saturating_sub(2);
    let mut lines = vec![state_line(lead, model, now, pen, ages)];
    let mut place = format!("pi {separator} ");
    match (&lead.repo, &lead.branch) {
        (Some(repo), Some(branch)) => {
            place.push_str(&format!("repo {}, branch {} {separator} ", text::line(repo), text::line(branch)));
        }
        _ => place.push_str(&format!("{} {separator} ", text::line(&lead.workspace_label))),
    }
    place.push_str(&format!("pane {}", text::line(&lead.pane)));
    wrapped(&mut lines, &text::line(&place), room, Role::Muted);
    activity::summary(&mut lines, lead, model, now, room, pen, ages);
    if let Some(ask) = &lead.pending_ask {
        let age = model.ask_age(lead, now).map(|age| ages.show(age)).unwrap_or_default();
        lines.push(Line::Rule(text::line(format_args!("asks, {age} ago")), Role::NeedsYou));
        for line in text::wrap(&ask.question, room) {
            lines.push(Line::plain(line, Role::Text));
        }
        lines.push(Line::Pieces(vec![
            (text::line(format_args!("  {}", keymap.key_of(Intent::Reply))), Role::Key),
            (text::line(if has_draft { " reply (a draft is kept)" } else { " reply" }), Role::Muted),
        ]));
    }
    lines.extend(gates.section(&lead.session, model, now, keymap, room, ages));
    if let Some(unread) = model.mail().unread_by_lead.get(&lead.session) {
        let messages = if *unread == 1 { "message" } else { "messages" };
        lines.push(Line::Pieces(vec![
            (text::line(format_args!("  {}", keymap.key_of(Intent::LeadInbox))), Role::Key),
            (text::line(format_args!(" {unread} unread {messages} from it")), Role::Notice),
        ]));
    }
    signals::section(&mut lines, lead, model, now, keymap, room, ages);
    if lead.counts.total > 0 {
        let counts = &lead.counts;
        let long = format!(
            "agents {} active {separator} {} blocked {separator} {} total",
            counts.active, counts.blocked, counts.total
        );
        // The rule's own ends take six columns.
        let word = if text::line(&long).width() + 6 <= width {
            long
        } else {
            format!(
                "agents {} of {} active {separator} {} blocked",
                counts.active, counts.total, counts.blocked
            )
        };
        lines.push(Line::Rule(text::line(&word), Role::Heading));
        agents(&mut lines, lead, room, pen);
    }
    activity::files(&mut lines, lead, model, now, MAX_FILES, room, pen, ages);
    sent::section(&mut lines, lead, model, now, keymap, room, pen, ages);
    lines
}

/// What the lead does and since when, as glyph and word.
pub fn state_line(lead: &Lead, model: &Model, now: Now, pen: &Pen<'_>, ages: &mut Ages) -> Line {
    let mark = mark_of(lead.state, lead.counts.active);
    let since = match model.state_age(&lead.session, now) {
        Some((age, true)) => ages.show(age),
        // It was so when we came.
        Some((age, false)) if age.as_secs() >= 60 => format!("for at least {}", ages.show(age)),
        Some((_, false)) | None => String::new(),
    };
    let mut pieces = Vec::new();
    if let Some(left) = model.snoozed(lead, now) {
        let sign = pen.glyphs().mark(Mark::Snoozed);
        pieces.push((text::line(format_args!("{sign} {} ", snoozed(left, ages))), Role::Muted));
    } else if lead.needs_you() {
        pieces.push((
            text::line(format_args!("{} needs you ", pen.glyphs().mark(Mark::NeedsYou))),
            Role::NeedsYou,
        ));
    }
    pieces.push((text::line(format_args!("{} {}", pen.glyphs().mark(mark), mark.word())), mark.role()));
    pieces.push((text::line(format_args!(" {since}")), Role::Muted));
    if let Some(word) = signals::word(lead, model, now) {
        let gap = if since.is_empty() { "" } else { " " };
        pieces.push((text::line(format_args!("{gap}{}", word.as_str())), signals::role(word)));
    }
    Line::Pieces(pieces)
}

/// That an ask is put off, and how long: `snoozed, 8m left`.
fn snoozed(left: Left, ages: &mut Ages) -> String {
    match left {
        Left::Time(left) => format!("snoozed, {} left", ages.show_left(left)),
        Left::Change => "snoozed until it changes".to_owned(),
    }
}

fn wrapped(lines: &mut Vec<Line>, text: &Visible, width: usize, role: Role) {
    lines.extend(text.wrap(width).into_iter().map(|line| Line::plain(line, role)));
}

/// The agents as the tree their owners make, their states below each other.
fn agents(lines: &mut Vec<Line>, lead: &Lead, room: usize, pen: &Pen<'_>) {
    let listed: HashSet<&SessionId> = lead.agents.iter().map(|agent| &agent.session).collect();
    let mut children: HashMap<&SessionId, Vec<&Agent>> = HashMap::new();
    for agent in &lead.agents {
        // One whose owner is beyond the listed ones still has its line.
        let owner = if listed.contains(&agent.owner) { &agent.owner } else { &lead.session };
        children.entry(owner).or_default().push(agent);
    }
    let mut rows = Vec::new();
    branch(&mut rows, &children, &lead.session, &Visible::default(), 0, pen);
    let labels = rows.iter().map(|row| row.stem.width() + row.label.width().min(MAX_LABEL)).max();
    // Glyph and blanks around it, then the state.
    let column = labels.unwrap_or(0).min(room.saturating_sub(STATE_WORD + 3));
    for row in rows {
        let mark = mark_of(row.state, 0);
        let width = column.saturating_sub(row.stem.width());
        lines.push(Line::Pieces(vec![
            (row.stem, Role::Border),
            (text::line(format_args!("{} ", pen.glyphs().mark(mark))), mark.role()),
            (row.label.truncate_middle(width).pad_end(width + 1), Role::Text),
            (text::line(mark.word()), Role::Muted),
        ]));
    }
    let hidden = lead.counts.total.saturating_sub(lead.agents.len());
    if hidden > 0 {
        lines.push(Line::plain(text::line(format_args!("and {hidden} more")), Role::Muted));
    }
}

/// One line of the tree.
struct Row {
    stem: Visible,
    label: Visible,
    state: State,
}

fn branch(
    rows: &mut Vec<Row>,
    children: &HashMap<&SessionId, Vec<&Agent>>,
    owner: &SessionId,
    stem: &Visible,
    depth: usize,
    pen: &Pen<'_>,
) {
    let glyphs = pen.glyphs();
    let Some(agents) = children.get(owner) else { return };
    for (at, agent) in agents.iter().enumerate() {
        let last = at + 1 == agents.len();
        let own = text::line(format_args!("{stem}{}", if last { glyphs.last_branch } else { glyphs.branch }));
        rows.push(Row { stem: own, label: text::line(&agent.label), state: agent.state });
        let deeper = if depth < MAX_DEPTH {
            text::line(format_args!("{stem}{}", if last { "   " } else { glyphs.stem }))
        } else {
            stem.clone()
        };
        branch(rows, children, &agent.session, &deeper, depth + 1, pen);
    }
}
