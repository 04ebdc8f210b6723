//! One entry in rows of a given width.

use std::sync::Arc;

use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::Line;
use crate::console::view::found;
use crate::contract::{Kind as Message, Untrusted};
use crate::fact::{Needle, Sheet};
use crate::pi::body::{Body, Delivered, Folding, Part, PartKind, size};
use crate::pi::entry::Kind;
use crate::pi::growth::Item;
use crate::signals::self_report;

/// Columns before what an entry says.
const INDENT: usize = 2;
/// Columns at the end of a heading for the time.
const TIME: usize = 7;
/// Columns of a session's id that stands for a name.
const SHORT_ID: usize = 13;

/// What a layout depends on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) sheet: Option<Arc<Sheet>>,
    pub(super) width: usize,
    pub(super) thoughts: bool,
    pub(super) search: Option<String>,
    pub(super) current: Option<usize>,
    pub(super) label: Option<Untrusted>,
    pub(super) branches: u16,
    /// What the peer calls itself that wrote the entry.
    pub(super) peer: Option<Untrusted>,
}

/// The rows of an entry.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) lines: Vec<Line>,
    /// The row in which each place of what is searched for begins.
    pub(super) places: Vec<usize>,
}

impl Layout {
    /// Whether a blank row stands before an entry of that kind: before what begins something new.
    pub(super) fn has_gap(kind: Kind) -> bool {
        !matches!(kind, Kind::ToolResult | Kind::Setting)
    }

    pub(super) fn of(item: &Item, known: &Known, needle: Option<&Needle>) -> Self {
        let mut layout = Self { lines: Vec::new(), places: Vec::new() };
        if Self::has_gap(item.kind) {
            layout.lines.push(Line::empty());
        }
        let sheet = known.sheet.as_deref();
        layout.lines.push(Line::Pieces(heading(item, known, sheet)));
        let room = known.width.saturating_sub(INDENT).max(8);
        match sheet {
            Some(Sheet::Body(body, folding)) => {
                let current = known.current.unwrap_or(usize::MAX);
                let reports = reporting(body, item, *folding, needle);
                for (at, part) in body.parts.iter().enumerate() {
                    let part = reports.as_ref().filter(|(of, _)| *of == at).map_or(part, |(_, part)| part);
                    layout.part(part, item, known, *folding, needle, current, room);
                }
                let hides_all = body.parts.iter().all(|part| part.kind == PartKind::Thought);
                if hides_all && !body.parts.is_empty() && !known.thoughts {
                    layout.say("[thoughts]", Role::Muted);
                }
            }
            Some(Sheet::Large) => {
                layout.say(&format!("[{}: unfolded it is read]", size(item.length.into())), Role::Muted)
            }
            Some(Sheet::Gone) => layout.say("The file does not hold it any more.", Role::Warning),
            None => layout.say("\u{2026}", Role::Muted),
        }
        layout
    }

    fn say(&mut self, words: &str, role: Role) {
        self.lines.push(Line::Pieces(vec![(indent(), role), (text::line(words), role)]));
    }

    #[allow(clippy::too_many_arguments)]
    fn part(
        &mut self,
        part: &Part,
        item: &Item,
        known: &Known,
        folding: Folding,
        needle: Option<&Needle>,
        current: usize,
        room: usize,
    ) {
        let role = match part.kind {
            PartKind::Thought if !known.thoughts => return,
            PartKind::Thought | PartKind::Image => Role::Muted,
            PartKind::Said | PartKind::Command => Role::Text,
            PartKind::Call => Role::Key,
            PartKind::Output if item.is_error => Role::Warning,
            PartKind::Output => Role::Muted,
            PartKind::Failure => Role::Alarm,
        };
        let sign = match part.kind {
            PartKind::Call => "\u{2192} ",
            PartKind::Command => "$ ",
            _ => "",
        };
        let sign = text::line(sign);
        let room = room.saturating_sub(sign.width()).max(6);
        if part.kind == PartKind::Thought {
            self.say("[thought]", role);
        }
        let places = |line: &str| needle.map(|needle| needle.places(line)).unwrap_or_default();
        let begin = self.lines.len();
        // A call is one row until it is unfolded.
        if part.kind == PartKind::Call && folding == Folding::Folded {
            let line = text::line(&part.head).truncate_end(room);
            let before = self.lines.len();
            found::add(line.as_str(), &places, current, room, role, &mut self.lines, &mut self.places);
            self.lines.truncate(before + 1);
            self.places.iter_mut().for_each(|place| *place = (*place).min(before));
        } else {
            found::add(
                &part.head.to_str_lossy(),
                &places,
                current,
                room,
                role,
                &mut self.lines,
                &mut self.places,
            );
        }
        if part.omitted_bytes > 0 {
            let told = match part.omitted_lines {
                0 => format!("\u{2026} {} more", size(part.omitted_bytes as u64)),
                1 => "\u{2026} 1 more line".to_owned(),
                lines => format!("\u{2026} {lines} more lines, {}", size(part.omitted_bytes as u64)),
            };
            self.lines.push(Line::plain(text::line(&told), Role::Notice));
            found::add(
                &part.tail.to_str_lossy(),
                &places,
                current,
                room,
                role,
                &mut self.lines,
                &mut self.places,
            );
        }
        for (nth, line) in self.lines[begin..].iter_mut().enumerate() {
            let Line::Pieces(pieces) = line else { continue };
            let before = if nth == 0 { sign.clone() } else { text::line(" ".repeat(sign.width()).as_str()) };
            pieces.splice(0..0, [(indent(), role), (before, role)]);
        }
    }
}

/// Whether what the model reports of itself is left out of what is shown.
pub(super) fn hides_report(body: &Body, item: &Item, folding: Folding) -> bool {
    reporting(body, item, folding, None).is_some()
}

/// The part of a model's message that ends with what it reports of itself, and what is shown of it in
/// its place. Unfolded it stands as it was written, and so it does where something is searched for in it.
fn reporting(body: &Body, item: &Item, folding: Folding, needle: Option<&Needle>) -> Option<(usize, Part)> {
    if item.kind != Kind::Assistant || folding != Folding::Folded {
        return None;
    }
    let at = body.parts.iter().rposition(|part| part.kind == PartKind::Said)?;
    let part = &body.parts[at];
    let is_cut = part.omitted_bytes > 0;
    let end = if is_cut { &part.tail } else { &part.head };
    let written = end.to_str_lossy();
    let shown = self_report::shown(&written, is_cut);
    let taken = written.get(shown.len()..).filter(|taken| !taken.is_empty())?;
    let is_found = |needle: &Needle| taken.lines().any(|line| !needle.places(line).is_empty());
    if needle.is_some_and(is_found) {
        return None;
    }
    let mut part = part.clone();
    *(if is_cut { &mut part.tail } else { &mut part.head }) = shown.into();
    Some((at, part))
}

/// What a delivered message is headed by; `name` is what the lead calls itself, where that is known.
pub fn sender(delivered: &Delivered, name: Option<&Untrusted>) -> String {
    let lead = || match name {
        Some(name) => text::line(name).to_string(),
        None => text::line(&delivered.lead).truncate_end(SHORT_ID).to_string(),
    };
    match delivered.kind {
        Message::ChiefReply => "Chief's reply".to_owned(),
        Message::ChiefMessage => "Chief's message".to_owned(),
        Message::LeadAsk => format!("ask of lead {}", lead()),
        Message::LeadMessage => format!("from lead {}", lead()),
        Message::PeerMessage => format!("from peer {}", lead()),
    }
}

/// What an entry of that kind is headed by.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Assistant => "assistant",
        Kind::ToolResult => "result",
        Kind::Bash => "command",
        Kind::Compaction | Kind::CompactionSummary => "compaction",
        Kind::BranchSummary => "branch summary",
        Kind::CustomMessage => "message",
        Kind::Setting | Kind::Other => "set:",
    }
}

fn indent() -> Visible {
    text::line("  ")
}

/// What it is, of whom, and what else is to be said of it at once.
fn heading(item: &Item, known: &Known, sheet: Option<&Sheet>) -> Vec<(Visible, Role)> {
    let none = Body::default();
    let body = match sheet {
        Some(Sheet::Body(body, _)) => body,
        _ => &none,
    };
    let word = match &body.delivered {
        Some(delivered) => text::line(&sender(delivered, known.peer.as_ref())),
        None => text::line(word(item.kind)),
    };
    let role = match item.kind {
        Kind::User => Role::NeedsYou,
        Kind::Assistant => Role::Good,
        Kind::ToolResult if item.is_error => Role::Alarm,
        Kind::Setting | Kind::Other => Role::Muted,
        _ => Role::Heading,
    };
    let mut room = known.width.saturating_sub(TIME);
    let word = word.truncate_end(room);
    room -= word.width();
    let mut pieces = vec![(word, role)];
    let forks = match item.branches {
        0 => String::new(),
        branches => format!("({branches} branches here)"),
    };
    // A long title leaves it room.
    let tail = if forks.is_empty() { 0 } else { forks.len() + 1 };
    let mut add = |words: Visible, role: Role| {
        let words = text::line(format_args!(" {words}"));
        let words = words.truncate_end(room.saturating_sub(tail));
        room -= words.width();
        pieces.push((words, role));
    };
    if item.is_error && body.notes.is_empty() {
        add(text::line("error"), Role::Alarm);
    }
    for note in &body.notes {
        add(text::line(note), if item.is_error { Role::Alarm } else { Role::Muted });
    }
    if item.is_recovered {
        add(text::line("(behind a torn line)"), Role::Warning);
    }
    if let Some(label) = &known.label {
        add(text::line(format_args!("[{}]", text::line(label))), Role::Notice);
    }
    if !body.title.is_empty() && body.delivered.is_none() {
        add(text::line(&body.title), Role::Muted);
    }
    if !forks.is_empty() {
        pieces.push((text::line(format_args!(" {forks}")).truncate_end(room), Role::Notice));
    }
    pieces
}
