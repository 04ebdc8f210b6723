//! The peers on the screen.

use std::collections::HashMap;
use std::time::Duration;

use ratatui::layout::Rect;

use super::{State, listed};
use crate::console::age::Ages;
use crate::console::paint::Pen;
use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::browse::draw_nothing;
use crate::console::view::detail::Line;
use crate::contract::{Timestamp, Untrusted};
use crate::disk::peers::{Peer, Queue};
use crate::fact::Now;
use crate::herd::order;
use crate::model::Model;

/// UTF-16 units of a session that tell equal names apart.
const PREFIX: usize = order::MIN_PREFIX;

/// Draws list and detail into `area`.
pub fn draw(state: &State, model: &Model, now: Now, area: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let peers = listed(model);
    if peers.is_empty() {
        nothing(model, area, pen);
        return;
    }
    let names = names(&peers);
    let (rows, cursor) = rows(&peers, state.browser.at());
    let (list, beside) = state.browser.split(area, rows.len());
    if let Some(list) = list {
        let title = text::line("Peers (read only)");
        state.browser.draw_list(&title, None, rows.len(), cursor, list, pen, |at, line, pen| {
            match &rows[at] {
                Row::Heading(word) => drop(pen.say(line.x + 1, line.y, line.right(), word, Role::Heading)),
                Row::Peer(peer) => draw_peer(peers[*peer], &names[*peer], now, line, pen, ages),
            }
        });
    }
    let Some(beside) = beside else { return };
    let peer = state.peer(&peers);
    let title = peer.map_or_else(|| text::line("Peer"), |peer| text::line(&shown(peer)));
    let Some(beside) = state.browser.draw_frame(&title, beside, pen) else { return };
    if let Some(peer) = peer {
        let lines = detail(peer, &peers, now, beside.room, pen, ages);
        state.browser.draw_detail(&lines, &beside, pen);
    }
}

fn shown(peer: &Peer) -> Untrusted {
    order::peer_shown(peer.record.as_ref(), peer.session.as_ref(), &peer.hash)
}

/// What each is called in the list; equal names get the beginning of their session.
fn names(peers: &[&Peer]) -> Vec<Visible> {
    let names: Vec<Untrusted> = peers.iter().map(|peer| shown(peer)).collect();
    let mut seen: HashMap<&Untrusted, usize> = HashMap::new();
    for name in &names {
        *seen.entry(name).or_default() += 1;
    }
    let name = |(peer, name): (&&Peer, &Untrusted)| match &peer.session {
        Some(session) if seen[name] > 1 => {
            let session = text::line(&session.as_untrusted().first_units(PREFIX));
            text::line(format_args!("{} \u{b7} {session}", text::line(name)))
        }
        _ => text::line(name),
    };
    peers.iter().zip(&names).map(name).collect()
}

enum Row {
    Heading(&'static str),
    Peer(usize),
}

/// The rows with the headings between them, and which one is that of peer `selected`.
fn rows(peers: &[&Peer], selected: usize) -> (Vec<Row>, usize) {
    let mut rows = Vec::new();
    let mut cursor = 0;
    for (at, peer) in peers.iter().enumerate() {
        let is_first = at == 0 || peers[at - 1].presence.is_ok() != peer.presence.is_ok();
        if is_first {
            rows.push(Row::Heading(if peer.presence.is_ok() { "PRESENT" } else { "NOT PRESENT" }));
        }
        if at == selected {
            cursor = rows.len();
        }
        rows.push(Row::Peer(at));
    }
    (rows, cursor)
}

/// The peer of row `at`, if that is no heading.
pub(super) fn peer_of_row(peers: &[&Peer], at: usize) -> Option<usize> {
    match rows(peers, 0).0.get(at) {
        Some(Row::Peer(peer)) => Some(*peer),
        Some(Row::Heading(_)) | None => None,
    }
}

/// One row: whether it is present, its name, how much is queued for it and for how long.
fn draw_peer(peer: &Peer, name: &Visible, now: Now, line: Rect, pen: &mut Pen<'_>, ages: &mut Ages) {
    let (y, end) = (line.y, line.right());
    let (glyph, role) = sign(peer, pen);
    pen.say(line.x + 1, y, end, glyph, role);
    let x = line.x + 3;
    let (queued, role) = match &peer.queue {
        Ok(Queue { waiting, oldest: Some(oldest), .. }) => {
            (text::line(format_args!("{waiting} queued {:>4}", ages.show(age(*oldest, now)))), Role::Notice)
        }
        Ok(_) => (Visible::default(), Role::Muted),
        Err(_) => (text::line("inbox?"), Role::Warning),
    };
    let mut right = end.saturating_sub(1);
    // A name of a few characters says less than no number.
    if usize::from(right.saturating_sub(x)) > queued.width() + 9 {
        right = right.saturating_sub(queued.width() as u16);
        pen.put(right, y, end, &queued, role);
        right = right.saturating_sub(1);
    }
    let room = usize::from(right.saturating_sub(x));
    pen.put(x, y, right, &name.truncate_middle(room), Role::Text);
}

fn sign(peer: &Peer, pen: &Pen<'_>) -> (&'static str, Role) {
    match &peer.presence {
        Ok(()) => (pen.glyphs().on, Role::Good),
        Err(_) => (pen.glyphs().off, Role::Muted),
    }
}

/// On the wall clock: others wrote the time.
fn age(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(now.wall.as_millis().saturating_sub(at.as_millis()))
}

fn detail(peer: &Peer, peers: &[&Peer], now: Now, room: usize, pen: &Pen<'_>, ages: &mut Ages) -> Vec<Line> {
    let mut lines = Vec::new();
    let (glyph, role) = sign(peer, pen);
    let presence = match peer.absence() {
        None => text::line(format_args!("{glyph} present")),
        Some(why) => text::line(format_args!("{glyph} not present: {why}")),
    };
    let role = if peer.presence.is_ok() { role } else { Role::Warning };
    lines.extend(presence.wrap(room).into_iter().map(|line| Line::plain(line, role)));
    let mut say = |what: &str, value: Visible| {
        let (label, indent) = (text::line(what).pad_end(9), 9);
        for (at, line) in value.wrap(room.saturating_sub(indent).max(8)).into_iter().enumerate() {
            let label = if at == 0 { label.clone() } else { Visible::default().pad_end(indent) };
            lines.push(Line::Pieces(vec![(label, Role::Muted), (line, Role::Text)]));
        }
    };
    match &peer.session {
        Some(session) => say("session", text::line(session)),
        None => say("session", text::line("not known")),
    }
    if let Some(record) = &peer.record {
        say("pane", text::line(&record.pane));
        if let Some(label) = &record.workspace_label {
            say("space", text::line(label));
        }
        if let Some(repo) = &record.repo {
            say("repo", text::line(repo));
        }
        if let Some(branch) = &record.branch {
            say("branch", text::line(branch));
        }
        if let Some(cwd) = &record.cwd {
            say("cwd", text::line(cwd));
        }
        say("process", text::line(format_args!("{}", record.claim.pid)));
    }
    match &peer.queue {
        Ok(queue) => queued(&mut lines, queue, peers, now, room, pen, ages),
        Err(why) => {
            lines.push(Line::Rule(text::line("queued messages"), Role::Heading));
            let told = text::line(format_args!("The inbox can't be read: {why}."));
            lines.extend(told.wrap(room).into_iter().map(|line| Line::plain(line, Role::Warning)));
        }
    }
    lines
}

fn queued(
    lines: &mut Vec<Line>,
    queue: &Queue,
    peers: &[&Peer],
    now: Now,
    room: usize,
    pen: &Pen<'_>,
    ages: &mut Ages,
) {
    let separator = pen.glyphs().separator;
    let word = match queue.oldest {
        Some(oldest) => {
            let age = ages.show(age(oldest, now));
            text::line(format_args!("queued messages {} {separator} oldest {age}", queue.waiting))
        }
        None => text::line("queued messages"),
    };
    lines.push(Line::Rule(word, Role::Heading));
    if queue.waiting == 0 {
        lines.push(Line::plain(text::line("None waits."), Role::Muted));
    }
    for message in &queue.messages {
        let from = match peers.iter().find(|peer| peer.session.as_ref() == Some(&message.from)) {
            Some(peer) => text::line(&shown(peer)),
            None => text::line(&message.from),
        };
        let ago = text::line(format_args!(" {}", ages.show(age(message.created_at, now))));
        let from = from.truncate_middle(room.saturating_sub(ago.width() + 5));
        lines.push(Line::Pieces(vec![
            (text::line("from "), Role::Muted),
            (from, Role::Heading),
            (ago, Role::Muted),
        ]));
        for line in text::wrap(&message.text, room.saturating_sub(2).max(8)) {
            lines.push(Line::Pieces(vec![(text::line("  "), Role::Text), (line, Role::Text)]));
        }
    }
    let hidden = queue.waiting - queue.messages.len();
    if hidden > 0 {
        lines.push(Line::plain(text::line(format_args!("and {hidden} more")), Role::Muted));
    }
    if queue.unusable > 0 {
        let files = if queue.unusable == 1 { "file" } else { "files" };
        let told = text::line(format_args!("Not to be delivered: {} {files}.", queue.unusable));
        lines.extend(told.wrap(room).into_iter().map(|line| Line::plain(line, Role::Warning)));
    }
}

/// What stands in place of an empty list.
fn nothing(model: &Model, area: Rect, pen: &mut Pen<'_>) {
    let why;
    let (words, role): (&[&str], Role) = match model.peers() {
        None => (&["Looking for peers \u{2026}"], Role::Text),
        Some(Ok(_)) => (
            &[
                "No peers.",
                "",
                "A lead is a peer while it publishes its presence; the Chief is none.",
                "What peers send each other is shown here until it is taken.",
            ],
            Role::Text,
        ),
        Some(Err(error)) => {
            why = format!("The peers can't be read: {error}. See headman doctor.");
            (&[&why], Role::Alarm)
        }
    };
    draw_nothing("Peers", words, role, area, pen);
}
