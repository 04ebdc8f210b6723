//! The list of leads on the screen.

use ratatui::layout::Rect;

use super::{Row, State};
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::{Mark, Role};
use crate::console::view::mark_of;
use crate::fact::Now;
use crate::herd::Lead;
use crate::model::Model;
use crate::model::snoozes::Left;

/// Draws the list into `area`, frame included.
pub fn draw(
    state: &State,
    model: &Model,
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
                    draw_lead(lead, name, signs, model, now, line, pen, ages);
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
/// collides with another, agents, and how long an ask waits, or is put off.
#[allow(clippy::too_many_arguments)]
fn draw_lead(
    lead: &Lead,
    name: &Visible,
    signs: Signs,
    model: &Model,
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
    // From the right: age, then agents, then what is left is the name's.
    let (age, role) = match left {
        None => (model.ask_age(lead, now).map(|age| ages.show(age)), Role::NeedsYou),
        Some(Left::Time(left)) => (Some(ages.show_left(left)), Role::Muted),
        Some(Left::Change) => (None, Role::Muted),
    };
    let age = age.map(|age| text::line(format_args!("{age:>4}")));
    let mut right = end.saturating_sub(1);
    if let Some(age) = &age {
        right = right.saturating_sub(age.width() as u16);
        pen.put(right, y, end, age, role);
    } else {
        right = right.saturating_sub(4);
    }
    let agents = text::line(format_args!("{}/{}", lead.counts.active, lead.counts.total));
    let blocked = (lead.counts.blocked > 0)
        .then(|| text::line(format_args!(" {}{}", pen.glyphs().mark(Mark::Blocked), lead.counts.blocked)));
    let room = usize::from(right.saturating_sub(x));
    let wanted = agents.width() + blocked.as_ref().map_or(0, Visible::width) + 2;
    // A name of a few characters says less than none of the numbers.
    if room > wanted + 8 {
        let at = right.saturating_sub(wanted as u16 - 1);
        let next =
            pen.put(at, y, end, &agents, if lead.counts.active > 0 { Role::Working } else { Role::Muted });
        if let Some(blocked) = &blocked {
            pen.put(next, y, end, blocked, Role::Blocked);
        }
        right = at.saturating_sub(1);
    }
    if signs.collides && usize::from(right.saturating_sub(x)) > 8 {
        right -= 2;
        pen.mark(right + 1, y, end, Mark::Collision);
    }
    let room = usize::from(right.saturating_sub(x));
    pen.put(x, y, right, &name.truncate_middle(room), Role::Text);
}
