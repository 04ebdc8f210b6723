//! One entry in rows of a given width.

use std::sync::Arc;

use crate::console::text::{self, Visible};
use crate::console::theme::Role;
use crate::console::view::detail::Line;
use crate::console::view::found;
use crate::contract::Untrusted;
use crate::fact::{Needle, Sheet};
use crate::pi::body::{Body, Folding, Part, PartKind, size};
use crate::pi::entry::Kind;
use crate::pi::growth::Item;

/// Columns before what an entry says.
const INDENT: usize = 2;
/// Columns at the end of a heading for the time.
const TIME: usize = 7;

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
                for part in &body.parts {
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

/// What an entry of that kind is headed by.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Assistant => "assistant",
        Kind::ToolResult => "result",
        Kind::Bash => "command",
        Kind::Compaction => "compaction",
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
    let word = word(item.kind);
    let role = match item.kind {
        Kind::User => Role::NeedsYou,
        Kind::Assistant => Role::Good,
        Kind::ToolResult if item.is_error => Role::Alarm,
        Kind::Setting | Kind::Other => Role::Muted,
        _ => Role::Heading,
    };
    let none = Body::default();
    let body = match sheet {
        Some(Sheet::Body(body, _)) => body,
        _ => &none,
    };
    let mut pieces = vec![(text::line(word), role)];
    let mut room = known.width.saturating_sub(TIME + word.len());
    let mut add = |words: Visible, role: Role| {
        let words = text::line(format_args!(" {words}"));
        let words = words.truncate_end(room);
        room -= words.width();
        pieces.push((words, role));
    };
    if item.is_error && body.notes.is_empty() {
        add(text::line("error"), Role::Alarm);
    }
    for note in &body.notes {
        add(text::line(note), if item.is_error { Role::Alarm } else { Role::Muted });
    }
    if item.branches > 0 {
        add(text::line(format_args!("({} branches here)", item.branches)), Role::Notice);
    }
    if item.is_recovered {
        add(text::line("(behind a torn line)"), Role::Warning);
    }
    if let Some(label) = &known.label {
        add(text::line(format_args!("[{}]", text::line(label))), Role::Notice);
    }
    if !body.title.is_empty() {
        add(text::line(&body.title), Role::Muted);
    }
    pieces
}
