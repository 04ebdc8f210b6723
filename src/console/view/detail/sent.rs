//! What we sent to a lead and what became of it.

use std::time::Duration;

use super::Line;
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::paint::Pen;
use crate::console::text;
use crate::console::theme::Role;
use crate::contract::Kind;
use crate::contract::rendered::Parts;
use crate::fact::{Fate, Now, Sent};
use crate::herd::{Lead, State};
use crate::model::Model;

/// Messages listed.
const LISTED: usize = 10;
/// After how long a message that is still queued says why.
const PATIENCE: Duration = Duration::from_secs(5);
/// After how long one that is taken says that nothing shows it delivered.
const HAND_OVER: Duration = Duration::from_secs(60);

/// The messages to `lead`: how many have which fate, and the newest of them.
#[allow(clippy::too_many_arguments)]
pub(super) fn section(
    lines: &mut Vec<Line>,
    lead: &Lead,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) {
    let newest = model.sent_to(&lead.session);
    // What went out again is counted as what it became.
    let counts = model.sent_counts(&lead.session).filter(|(fate, _)| *fate != Fate::Again);
    let counts: Vec<String> = counts.map(|(fate, count)| format!("{count} {}", word(fate))).collect();
    if newest.is_empty() && counts.is_empty() {
        return;
    }
    let counts = text::line(&counts.join(&format!(" {} ", pen.glyphs().separator)));
    let title = text::line(format_args!("messages {counts}"));
    // The rule's own ends take six columns.
    if title.width() + 4 <= room {
        lines.push(Line::Rule(title, Role::Heading));
    } else {
        lines.push(Line::Rule(text::line("messages"), Role::Heading));
        lines.extend(counts.wrap(room).into_iter().map(|line| Line::plain(line, Role::Muted)));
    }
    let doubtful = model.doubtful(&lead.session).map(|sent| sent.id);
    for sent in newest.into_iter().take(LISTED) {
        lines.push(line(sent, room, now, ages));
        if let Some(why) = lack(sent, model, now) {
            let why = text::line(&why).wrap(room.saturating_sub(2));
            lines.extend(
                why.into_iter()
                    .map(|line| Line::Pieces(vec![(text::line("  "), Role::Text), (line, Role::Muted)])),
            );
        }
        if Some(sent.id) == doubtful {
            lines.push(again(sent, model, keymap));
        }
    }
}

/// What can be done about a message that the lead may not have.
pub fn again(sent: &Sent, model: &Model, keymap: &Keymap) -> Line {
    let asked = model.lead(&sent.lead).and_then(|lead| lead.pending_ask.as_ref()).map(|ask| ask.ask);
    if sent.kind == Kind::ChiefReply && asked != sent.ask {
        return Line::plain(text::line("  the ask it answers is gone"), Role::Muted);
    }
    Line::Pieces(vec![
        (text::line(format_args!("  {}", keymap.key_of(Intent::SendAgain))), Role::Key),
        (text::line(" send it again"), Role::Muted),
    ])
}

fn age(sent: &Sent, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(sent.at.as_millis()))
}

/// What is known of why a message is not delivered yet, if it should be by now.
pub fn lack(sent: &Sent, model: &Model, now: Now) -> Option<String> {
    let age = age(sent, now);
    let state = model.lead(&sent.lead).map(|lead| lead.state);
    if sent.fate == Fate::Taken && age > HAND_OVER {
        return Some("taken out of its inbox, but its session does not show it yet".to_owned());
    }
    if sent.fate != Fate::Queued || age <= PATIENCE {
        return None;
    }
    Some(match state {
        None => "it waits: the lead is not listed now, and takes it if it comes back".to_owned(),
        Some(_) if model.standing().lease().is_none() => {
            "it waits: it goes out again once you are Chief".to_owned()
        }
        Some(_) if !model.registration().can_write_up() => {
            "it waits: a lead takes nothing before it saw its Chief in Herdr once".to_owned()
        }
        Some(State::Working) => "it waits: the lead works, and takes it when its turn ends".to_owned(),
        Some(State::Blocked) => {
            "it waits: the lead is blocked, and takes it once somebody helped it in its pane".to_owned()
        }
        Some(State::Idle | State::Done) => {
            "it waits: the lead is idle and should have it; look at its pane".to_owned()
        }
        Some(state) => format!("it waits: the lead is {}", state.as_str()),
    })
}

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Unknown => "unknown",
        Fate::Again => "again",
        fate => fate.as_str(),
    }
}

/// The style of a fate.
fn role(fate: Fate) -> Role {
    match fate {
        Fate::Queued => Role::Notice,
        Fate::Taken | Fate::Delivered | Fate::Answered => Role::Good,
        Fate::Unknown | Fate::Unsent => Role::Warning,
        Fate::Again => Role::Muted,
    }
}

/// One message: its fate, its age, how it begins.
pub fn line(sent: &Sent, room: usize, now: Now, ages: &mut Ages) -> Line {
    let fate = text::line(format_args!("{:<9}", word(sent.fate)));
    let age = text::line(format_args!("{:>5}  ", ages.show(age(sent, now))));
    let begin =
        text::line(&Parts::of(&sent.text).said).truncate_end(room.saturating_sub(fate.width() + age.width()));
    Line::Pieces(vec![(fate, role(sent.fate)), (age, Role::Muted), (begin, Role::Text)])
}
