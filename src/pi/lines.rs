//! The lines of a session file, read in order or in parts side by side.

use std::fs::File;
use std::sync::{Arc, LazyLock};
use std::thread;

use super::entry::{Envelope, Id, Model, Told, fused};
use super::session::{HeaderError, fill_at, read_at};
use super::tail::MAX_LINE;
use crate::contract::json::Document;

/// Bytes read at once: few enough to stay near the processor while they are looked through.
pub(super) const CHUNK: u64 = 64 << 10;
/// From so many bytes on, parts are read side by side.
pub(super) const WORTH_PARTS: u64 = 1 << 20;
/// Parts at most.
const MAX_PARTS: usize = 4;

/// What a line is, with the entry found in it.
#[derive(Debug)]
pub(super) enum Line {
    /// Nothing.
    Blank,
    /// No JSON; what was found stands at its end.
    Bad(Option<Found>),
    /// JSON; what was found is an object.
    Json(Option<Found>),
}

/// What a line says of its entry, wherever that stands.
#[derive(Debug)]
pub(super) struct Found {
    /// Whether it is a session's header.
    pub(super) is_header: bool,
    pub(super) id: Option<Id>,
    pub(super) parent: Option<Id>,
    pub(super) told: Told,
    /// In milliseconds since the epoch.
    pub(super) at: u64,
    /// Where it begins in the line, and the bytes of its text.
    pub(super) from: usize,
    pub(super) length: usize,
}

impl Found {
    fn of(envelope: &Envelope<'_>, from: usize, length: usize, models: &mut Vec<Arc<Model>>) -> Self {
        Self {
            is_header: envelope.lossy("type").is_some_and(|kind| kind == "session"),
            id: envelope.id(),
            parent: envelope.parent(),
            told: envelope.facts(models),
            at: envelope.at(),
            from,
            length,
        }
    }
}

/// Hands over what a line is, and its members. Only in one that is whole an entry is looked for behind
/// what is no JSON.
pub(super) fn read(
    line: &[u8],
    document: &Document<'_>,
    is_whole: bool,
    models: &mut Vec<Arc<Model>>,
    take: impl FnOnce(Line, Option<&Envelope<'_>>),
) {
    if let Ok(value) = document.value() {
        let envelope = Envelope::of(value);
        let found = envelope.as_ref().map(|envelope| Found::of(envelope, 0, line.len(), models));
        return take(Line::Json(found), envelope.as_ref());
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return take(Line::Blank, None);
    }
    let Some(from) = is_whole.then(|| fused(line)).flatten() else { return take(Line::Bad(None), None) };
    let document = Document::decode(&line[from..]);
    let envelope = document.value().ok().and_then(Envelope::of);
    let found = envelope.as_ref().map(|envelope| Found::of(envelope, from, line.len() - from, models));
    take(Line::Bad(found), envelope.as_ref());
}

/// What is met on the way through a file.
pub(super) enum Span<'a> {
    /// A line, and where it begins.
    Line(&'a [u8], u64),
    /// A line longer than [`MAX_LINE`].
    TooLong,
    /// The end of a line whose beginning is not known.
    End(u64),
}

/// A way through a file from one line end to the next.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    /// Where the line begins that is not complete, if that is known.
    pub(super) line: Option<u64>,
    /// Up to where that line was looked through for its end.
    pub(super) scanned: u64,
    /// Bytes read.
    pub(super) read: u64,
}

impl Sweep {
    /// Goes on up to `to`, or to the end of a file that shrank meanwhile.
    pub(super) fn over(
        &mut self,
        file: &File,
        to: u64,
        mut each: impl FnMut(Span<'_>),
    ) -> Result<(), HeaderError> {
        let mut buffer = Vec::new();
        while self.scanned < to {
            let from = self.scanned;
            let bytes = fill_at(file, from, (to - from).min(CHUNK) as usize, &mut buffer)?;
            if bytes.is_empty() {
                break;
            }
            self.read += bytes.len() as u64;
            for end in memchr::memchr_iter(b'\n', bytes) {
                self.end_line(file, from + end as u64, (bytes, from), &mut each)?;
            }
            self.scanned = from + bytes.len() as u64;
        }
        Ok(())
    }

    /// A line ends at `end`; `known` are bytes that are read already, and where they stand.
    pub(super) fn end_line(
        &mut self,
        file: &File,
        end: u64,
        (bytes, from): (&[u8], u64),
        mut each: impl FnMut(Span<'_>),
    ) -> Result<(), HeaderError> {
        match self.line {
            None => each(Span::End(end)),
            Some(line) if line >= from => {
                each(Span::Line(&bytes[(line - from) as usize..(end - from) as usize], line));
            }
            Some(line) if end - line > MAX_LINE => each(Span::TooLong),
            Some(line) => {
                let bytes = read_at(file, line, (end - line) as usize)?;
                self.read += bytes.len() as u64;
                each(Span::Line(&bytes, line));
            }
        }
        self.line = Some(end + 1);
        self.scanned = end + 1;
        Ok(())
    }
}

/// One of several parts of a file, read by itself.
#[derive(Debug)]
pub(super) struct Part {
    /// How far it came.
    pub(super) sweep: Sweep,
    /// The end of the line that goes over from the part before; the first part has none.
    pub(super) first_end: Option<u64>,
    /// The lines that stand wholly in it, and where they begin.
    pub(super) lines: Vec<(Line, u64)>,
    pub(super) long_lines: u32,
    /// The models that are named there, and those known before.
    pub(super) models: Vec<Arc<Model>>,
}

/// Reads from where `start` stands up to `end`, in as many parts as the machine can at once. They come in
/// the file's order and meet without a gap; what follows one that could not be read whole is left out, and
/// why is said.
pub(super) fn in_parts(
    file: &File,
    start: Sweep,
    end: u64,
    models: &[Arc<Model>],
) -> (Vec<Part>, Result<(), HeaderError>) {
    static AT_ONCE: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, |count| count.get().min(MAX_PARTS)));
    let begin = start.scanned;
    let share = (end - begin).div_ceil(*AT_ONCE as u64).max(1);
    let bounds: Vec<(u64, u64)> =
        (0..*AT_ONCE as u64).map(|nth| (begin + nth * share, end.min(begin + (nth + 1) * share))).collect();
    let read = thread::scope(|scope| {
        let others: Vec<_> = bounds[1..]
            .iter()
            .map(|(from, to)| {
                let sweep = Sweep { line: None, scanned: *from, read: 0 };
                scope.spawn(move || part(file, sweep, *to, models))
            })
            .collect();
        let mut read = vec![part(file, start, bounds[0].1, models)];
        // One that panicked is read again in a later step, which then says so.
        read.extend(others.into_iter().map_while(|other| other.join().ok()));
        read
    });
    let mut parts = Vec::new();
    for ((part, outcome), (_, to)) in read.into_iter().zip(bounds) {
        let is_whole = part.sweep.scanned >= to;
        parts.push(part);
        if outcome.is_err() || !is_whole {
            return (parts, outcome);
        }
    }
    (parts, Ok(()))
}

fn part(file: &File, mut sweep: Sweep, to: u64, models: &[Arc<Model>]) -> (Part, Result<(), HeaderError>) {
    let (mut first_end, mut lines, mut long_lines, mut models) = (None, Vec::new(), 0, models.to_vec());
    let outcome = sweep.over(file, to, |span| match span {
        Span::Line(line, offset) => {
            let document = Document::decode(line);
            read(line, &document, true, &mut models, |line, _| lines.push((line, offset)));
        }
        Span::TooLong => long_lines += 1,
        Span::End(end) => first_end = Some(end),
    });
    (Part { sweep, first_end, lines, long_lines, models }, outcome)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::entry::Entry;
    use super::super::tail::{Fold, Index, Progress, Tail, Unsettled};
    use super::*;

    /// A fold is shown the lines one after the other, so none of them is read beside another.
    #[derive(Clone, Default)]
    struct InOrder;

    impl Fold for InOrder {
        fn take(&mut self, _: &Entry, _: &Envelope<'_>) {}
    }

    fn lines(count: u32, version: u32) -> Vec<u8> {
        let mut text =
            format!("\n{{\"type\":\"session\",\"version\":{version},\"id\":\"s\"}}\n").into_bytes();
        for nth in 0..count {
            let filler = "x\\n".repeat((nth * 7919 % 1500) as usize);
            let entry = format!(
                "{{\"type\":\"message\",\"id\":\"{nth:08x}\",\"parentId\":\"{:08x}\",\"message\":\
                 {{\"role\":\"assistant\",\"provider\":\"p\",\"model\":\"m{}\",\"content\":\"{filler}\"}}}}",
                nth.wrapping_sub(1),
                nth % 3
            );
            let line = match nth % 11 {
                3 => format!("{{\"type\":\"message\",\"torn\":\"{filler}{entry}"),
                5 => " ".to_owned(),
                7 => format!("[{nth}]"),
                9 => filler,
                _ => entry,
            };
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        text
    }

    fn read_all<F: Fold>(path: &Path, budget: u64) -> Index {
        let mut tail = Tail::<F>::folding(path, None);
        while tail.look(budget, Unsettled::AtOnce).unwrap() == Progress::More {}
        tail.index().clone()
    }

    #[test]
    fn what_is_read_in_parts_is_what_is_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        // In the last ones no part but the first begins a line, or there is not even one.
        for (text, budget) in [
            (lines(4000, 3), 4 << 20),
            (lines(4000, 3), WORTH_PARTS),
            (lines(3000, 1), u64::MAX),
            ([lines(3, 3), vec![b'y'; 5 << 20], lines(40, 3)].concat(), 4 << 20),
            ([lines(3, 3), vec![b'{'; 3 << 20]].concat(), 4 << 20),
        ] {
            std::fs::write(&path, &text).unwrap();
            let (in_parts, in_order) = (read_all::<()>(&path, budget), read_all::<InOrder>(&path, budget));
            assert!(in_parts.entries().len() > 1);
            assert_eq!(in_parts.entries(), in_order.entries());
            assert_eq!(in_parts.bad_lines(), in_order.bad_lines());
            assert_eq!(in_parts.header(), in_order.header());
        }
    }
}
