//! The list of leads on the screen.

use ratatui::layout::Rect;

use super::{Row, State};
use crate::console::age::Ages;
use crate::console::gating::Gates;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};
use crate::console::view::{detail, mark_of};
use crate::fact::Now;
use crate::herd::Lead;
use crate::model::Model;
use crate::model::snoozes::Left;
use crate::signals::sight::Word;

/// Columns of a name that are worth more than what stands beside it.
const MIN_NAME: usize = 8;
/// Columns of a word below which it says nothing.
const MIN_WORD: usize = 4;

/// Draws the list into `area`, frame included.
#[allow(clippy::too_many_arguments)]
pub fn draw(
    state: &State,
    model: &Model,
    gates: &Gates,
    now: Now,
    area: Rect,
    focused: bool,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let inside = pen.pane(area, &title(state), focused);
    if inside.is_empty() {
        return;
    }
    let rows = state.rows();
    let colliding = model.sessions().colliding(now);
    let selected = state.selected_row();
    let height = usize::from(inside.height);
    let top = match selected {
        // A group's heading above the first lead stays in sight.
        Some(at) => state.scroll.top_with(if at == 1 { 0 } else { at }, rows.len(), height),
        None => state.scroll.top(rows.len(), height),
    };
    state.drawn.set((inside, top));
    for (y, (at, row)) in (inside.y..).zip(rows.iter().enumerate().skip(top).take(height)) {
        let line = Rect { y, height: 1, ..inside };
        match row {
            Row::Group(group) => {
                pen.say(line.x + 1, y, line.right(), group.title(), Role::Heading);
            }
            Row::Lead { name, .. } => {
                if selected == Some(at) {
                    pen.fill(line, if focused { Role::Selection } else { Role::SelectionUnfocused });
                    pen.say(line.x, y, line.right(), pen.glyphs().cursor, Role::Key);
                }
                if let Some(lead) = row.lead(model) {
                    let collides = colliding.contains(&lead.session);
                    let signs = Signs {
                        collides,
                        marked: state.is_marked(&lead.session),
                        pinned: state.is_pinned(&lead.session),
                    };
                    draw_lead(lead, name, signs, model, gates, now, line, pen, ages);
                }
            }
        }
    }
    let right = area.right().saturating_sub(3);
    if top > 0 {
        pen.say(right, area.y, area.right(), pen.glyphs().more_above, Role::Key);
    }
    if top + height < rows.len() {
        pen.say(right, area.bottom() - 1, area.right(), pen.glyphs().more_below, Role::Key);
    }
    if rows.is_empty() && !model.roster().leads.is_empty() {
        pen.say(inside.x + 1, inside.y, inside.right(), "Nothing matches; Esc shows all.", Role::Muted);
    }
}

fn title(state: &State) -> Visible {
    let what = match (state.filter().shown(), state.is_waiting_only()) {
        (Some(filter), _) => format!("Leads {filter}"),
        (None, true) => "Leads that wait".to_owned(),
        (None, false) => "Leads".to_owned(),
    };
    match state.marked() {
        0 => text::line(&what),
        marked => text::line(format_args!("{what}, {marked} marked")),
    }
}

/// What stands beside a lead's state.
struct Signs {
    /// Whether it collides with another.
    collides: bool,
    marked: bool,
    pinned: bool,
}

/// One row: what it needs, whether it is marked, what it does, whether it is pinned, its name, whether it
/// collides with another, agents, what it shows by itself, and how long an ask waits, or is put off.
#[allow(clippy::too_many_arguments)]
fn draw_lead(
    lead: &Lead,
    name: &Visible,
    signs: Signs,
    model: &Model,
    gates: &Gates,
    now: Now,
    line: Rect,
    pen: &mut Pen<'_>,
    ages: &mut Ages,
) {
    let y = line.y;
    let end = line.right();
    let mut x = line.x + 1;
    let left = model.snoozed(lead, now);
    if left.is_some() {
        pen.mark(x, y, end, Mark::Snoozed);
    } else if lead.needs_you() {
        pen.mark(x, y, end, Mark::NeedsYou);
    }
    if signs.marked {
        pen.mark(x + 1, y, end, Mark::Marked);
    }
    x += 2;
    pen.mark(x, y, end, mark_of(lead.state, lead.counts.active));
    if signs.pinned {
        pen.mark(x + 1, y, end, Mark::Pinned);
    }
    x += 2;
    // From the right: age, signal, agents; what is left is the name's.
    let (age, role) = match left {
        None => (model.ask_age(lead, now).map(|age| ages.show(age)), Role::NeedsYou),
        Some(Left::Time(left)) => (Some(ages.show_left(left)), Role::Muted),
        Some(Left::Change) => (None, Role::Muted),
    };
    let age = age.map(|age| text::line(format_args!("{age:>4}")));
    let word = word(lead, model, gates, now);
    let mut right = end.saturating_sub(1);
    // Between the name and a word right beside it.
    let mut gap = 0;
    if let Some(age) = &age {
        right = right.saturating_sub(age.width() as u16);
        pen.put(right, y, end, age, role);
    }
    if let Some((word, role)) = word {
        // A long word gives way to a name of some characters.
        let end = right.saturating_sub(u16::from(age.is_some()));
        let room = usize::from(end.saturating_sub(x)).saturating_sub(2 * MIN_NAME);
        let shown = word.truncate_end(room);
        if shown.width() >= MIN_WORD {
            let at = end.saturating_sub(shown.width() as u16);
            pen.put(at, y, end, &shown, role);
            right = at;
            gap = 1;
        }
    } else if age.is_none() {
        right = right.saturating_sub(4);
    }
    let agents = text::line(format_args!("{}/{}", lead.counts.active, lead.counts.total));
    let blocked = (lead.counts.blocked > 0)
        .then(|| text::line(format_args!(" {}{}", pen.glyphs().mark(Mark::Blocked), lead.counts.blocked)));
    let room = usize::from(right.saturating_sub(x));
    let wanted = agents.width() + blocked.as_ref().map_or(0, Visible::width) + 2;
    // A name of a few characters says less than none of the numbers.
    if room > wanted + if gap > 0 { 2 * MIN_NAME } else { MIN_NAME } {
        gap = 0;
        let at = right.saturating_sub(wanted as u16 - 1);
        let next =
            pen.put(at, y, end, &agents, if lead.counts.active > 0 { Role::Working } else { Role::Muted });
        if let Some(blocked) = &blocked {
            pen.put(next, y, end, blocked, Role::Blocked);
        }
        right = at.saturating_sub(1);
    }
    right = right.saturating_sub(gap);
    if signs.collides && usize::from(right.saturating_sub(x)) > MIN_NAME {
        right -= 2;
        pen.mark(right + 1, y, end, Mark::Collision);
    }
    let room = usize::from(right.saturating_sub(x));
    pen.put(x, y, right, &name.truncate_middle(room), Role::Text);
}

/// The word at a row's end. A verdict of the gate stands for what would ask for one; nothing else that a
/// lead shows by itself gives way to it.
fn word(lead: &Lead, model: &Model, gates: &Gates, now: Now) -> Option<(Visible, Role)> {
    let signal = detail::signals::word(lead, model, now);
    let verdict = gates.word(&lead.session, model).map(|(word, role)| (text::line(&*word), role));
    match signal {
        Some(Word::Unverified) | None if verdict.is_some() => verdict,
        signal => signal.map(|word| (text::line(word.as_str()), detail::signals::role(word))),
    }
}
