//! The end of a session file, read backwards: what its last screen shows, however long the file is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::entry::{Entry, Envelope, Id, Model, Told, fused};
use super::growth::Item;
use super::session::{Header, HeaderError, header_of_file, open, read_at};
use crate::contract::json::Document;

/// Bytes read at first; then as many as there are already.
const CHUNK: u64 = 64 << 10;
/// The most bytes read. What a longer line at the end says, the index will tell.
const BUDGET: usize = 4 << 20;

/// The end of a session's latest branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The file's header.
    pub header: Header,
    /// The branch's last items.
    pub items: Vec<Item>,
    /// The size of the file.
    pub size: u64,
    /// Whether `items` is the whole branch.
    pub is_whole: bool,
}

/// Reads the last items of the file at `path`, about `count` of them. A line that is not complete does
/// not count.
///
/// # Errors
/// Those of the file and its header.
pub fn read(path: &Path, count: usize) -> Result<Ending, HeaderError> {
    let (file, stamp) = open(path)?;
    let header = header_of_file(&file)?;
    let size = stamp.size();
    let is_linear = header.version.unwrap_or(1.0) < 2.0;
    let mut lines = Backwards::from(&file, size);
    let mut models = Vec::new();
    let (mut items, mut next, mut is_whole) = (Vec::new(), Next::Any, false);
    while items.len() < count {
        let Some((offset, line)) = lines.next()? else {
            is_whole = lines.is_at_beginning();
            break;
        };
        let Some(entry) = entry(&line, offset, &mut models) else { continue };
        let is_next = match &next {
            Next::Any => true,
            Next::Id(id) => *id == entry.id,
        };
        if !is_next {
            continue;
        }
        items.extend(Item::of(&entry));
        next = match entry.parent {
            _ if is_linear => Next::Any,
            Some(parent) => Next::Id(parent),
            None => {
                is_whole = true;
                break;
            }
        };
    }
    items.reverse();
    Ok(Ending { header, items, size, is_whole })
}

/// Which entry is looked for.
enum Next {
    Any,
    Id(Id),
}

/// The entry in the line at `offset`, or at its end behind a torn one.
fn entry(line: &[u8], offset: u64, models: &mut Vec<Arc<Model>>) -> Option<Entry> {
    let is_recovered = Document::decode(line).value().is_err();
    let begin = if is_recovered { fused(line)? } else { 0 };
    let document = Document::decode(&line[begin..]);
    let envelope = document.value().ok().and_then(Envelope::of)?;
    if envelope.text("type").is_some_and(|kind| kind == "session") {
        return None;
    }
    let Told { kind, fact, is_error, calls } = envelope.facts(models);
    Some(Entry {
        offset: offset + begin as u64,
        length: u32::try_from(line.len() - begin).unwrap_or(u32::MAX),
        // Without an id it is nobody's parent.
        id: envelope.id().unwrap_or(Id::Line(u32::MAX)),
        parent: envelope.parent(),
        kind,
        is_error,
        calls,
        at: envelope.at(),
        is_recovered,
        fact: fact.map(Box::new),
    })
}

/// The lines of a file from its end on.
struct Backwards<'a> {
    file: &'a File,
    /// What was read of the file and not given yet: from `begin` on.
    bytes: Vec<u8>,
    begin: u64,
    read: usize,
}

impl<'a> Backwards<'a> {
    fn from(file: &'a File, size: u64) -> Self {
        Self { file, bytes: Vec::new(), begin: size, read: 0 }
    }

    /// The line before, and where it begins; nothing at the beginning, and where the budget ends.
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, HeaderError> {
        loop {
            // The last byte is the end of the line that is looked for.
            let end = memchr::memrchr(b'\n', &self.bytes);
            if let Some(end) = end {
                if let Some(before) = memchr::memrchr(b'\n', &self.bytes[..end]) {
                    let line = self.bytes[before + 1..end].to_vec();
                    self.bytes.truncate(before + 1);
                    return Ok(Some((self.begin + before as u64 + 1, line)));
                }
                if self.begin == 0 {
                    let line = self.bytes[..end].to_vec();
                    self.bytes.clear();
                    return Ok(Some((0, line)));
                }
            }
            if self.begin == 0 || self.read >= BUDGET {
                return Ok(None);
            }
            let more = CHUNK.max(self.bytes.len() as u64).min(self.begin);
            let mut bytes = read_at(self.file, self.begin - more, more as usize)?;
            if (bytes.len() as u64) < more {
                // It shrank meanwhile: the index will tell.
                return Ok(None);
            }
            self.read += bytes.len();
            bytes.append(&mut self.bytes);
            self.bytes = bytes;
            self.begin -= more;
        }
    }

    fn is_at_beginning(&self) -> bool {
        self.begin == 0 && memchr::memrchr(b'\n', &self.bytes).is_none()
    }
}
