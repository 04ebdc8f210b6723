//! The journal: everything received and sent, for ever, after `docs/state.md`.
//!
//! One line an event, appended and fsynced, in a segment a month. One writer, the holder of the
//! lease; anybody of ours may read. What is kept in memory is an index; texts are read on demand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::contract::json::ObjectWriter;
use crate::contract::{Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::durable::{self, DiskError, Unreadable};
use crate::fact::{AskTime, Fate, Letter, Mail};

/// The version of a line.
const VERSION: f64 = 1.0;
/// Characters of a text kept in memory.
const PREVIEW: usize = 240;
/// Longest line read: a record of 8,192 bytes, escaped at worst, and what is around it.
const MAX_LINE: usize = 128 * 1024;

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    segment: usize,
    offset: u64,
    length: u32,
}

/// One message that came, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What is known of it.
    pub letter: Letter,
    place: Place,
}

/// One message of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEntry {
    /// What was written.
    pub message: Box<Message>,
    /// What is known of it; none while nothing but its writing is.
    pub fate: Option<Fate>,
    /// Under which id it was sent again.
    pub again: Option<Uuid>,
}

impl SentEntry {
    /// Whether it may not be delivered yet, and was not sent again.
    pub fn is_open(&self) -> bool {
        self.again.is_none() && matches!(self.fate, None | Some(Fate::Queued))
    }
}

/// What one event is about, to be appended.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A file of our inbox, byte for byte; why, if it was refused.
    Received {
        /// Its file's id.
        id: Uuid,
        /// Its bytes.
        bytes: &'a [u8],
        /// The message, if it is one.
        message: Option<&'a Message>,
        /// Why it was not accepted.
        refused: Option<&'a str>,
    },
    /// An ask that was seen in a lead's record.
    AskSeen {
        /// Who asks.
        lead: &'a SessionId,
        /// The ask.
        ask: Uuid,
    },
    /// A message of ours, before it is published.
    Sent(&'a Message),
    /// It is sent again under another id.
    Requeued {
        /// The old id.
        old: Uuid,
        /// The new one.
        new: Uuid,
    },
    /// What became of a message of ours.
    Fate {
        /// Which.
        id: Uuid,
        /// What.
        fate: Fate,
    },
    /// The operator has seen these.
    Read(&'a [u64]),
    /// They count as not seen again.
    Unread(&'a [u64]),
}

#[derive(Deserialize)]
struct Line<'a> {
    v: f64,
    seq: u64,
    at: f64,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    lead: Option<Untrusted>,
    #[serde(borrow, default)]
    ask: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "createdAt", default)]
    created_at: Option<f64>,
    #[serde(default)]
    preview: Option<Untrusted>,
    #[serde(borrow, default)]
    refused: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    record: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    new: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    fate: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    seqs: Vec<u64>,
}

/// What the journal holds, by what it is asked for.
#[derive(Debug, Default, Clone)]
pub struct Index {
    received: BTreeMap<u64, Received>,
    ids: HashSet<Uuid>,
    files: HashSet<Uuid>,
    asks: HashMap<(SessionId, Uuid), Timestamp>,
    accepted_asks: HashSet<(SessionId, Uuid)>,
    sent: BTreeMap<Uuid, SentEntry>,
    next_seq: u64,
    /// Lines that could not be read, or torn ends that were cut.
    pub damaged: usize,
    /// Lines of kinds that a later release writes.
    pub unknown: usize,
}

impl Index {
    /// What was received, the oldest first.
    pub fn received(&self) -> impl DoubleEndedIterator<Item = &Received> {
        self.received.values()
    }

    /// What was received under one number.
    pub fn letter(&self, seq: u64) -> Option<&Letter> {
        self.received.get(&seq).map(|it| &it.letter)
    }

    /// What was received under numbers between two, without them, the newest first.
    pub fn letters_between(&self, above: u64, below: u64) -> impl Iterator<Item = &Letter> {
        let between = above.saturating_add(1)..below.max(above.saturating_add(1));
        self.received.range(between).rev().map(|(_, it)| &it.letter)
    }

    /// Rises with every event.
    pub fn revision(&self) -> u64 {
        self.next_seq
    }

    /// How many were received and not seen yet; refused ones don't count.
    pub fn unread(&self) -> usize {
        self.received.values().filter(|it| it.letter.is_unread()).count()
    }

    /// What the screens show of it: the `newest` newest ones, and counts of all.
    pub fn mail(&self, newest: usize) -> Mail {
        let mut mail = Mail { total: self.received.len(), damaged: self.damaged, ..Mail::default() };
        for entry in self.received.values().filter(|it| it.letter.is_unread()) {
            mail.unread += 1;
            mail.newest_unread = Some(entry.letter.seq);
            if let Some(lead) = &entry.letter.lead {
                *mail.unread_by_lead.entry(lead.clone()).or_default() += 1;
            }
        }
        mail.newest = self.received.values().rev().take(newest).map(|it| it.letter.clone()).collect();
        mail.newest.reverse();
        // An ask that is older than so many others is not open any more.
        let mut asks: Vec<_> = self.asks.iter().map(|((lead, ask), at)| (*at, *ask, lead)).collect();
        asks.sort_by(|a, b| b.cmp(a));
        asks.truncate(newest);
        mail.asks =
            (asks.into_iter()).map(|(at, ask, lead)| AskTime { lead: lead.clone(), ask, at }).collect();
        mail
    }

    /// Whether this message was accepted before: an ask by lead and ask, another by its id.
    pub fn has(&self, message: &Message) -> bool {
        match message.ask {
            Some(ask) if message.kind == Kind::LeadAsk => self.has_ask(&message.lead, ask),
            _ => self.ids.contains(&message.id),
        }
    }

    /// Whether a file of that name was journalled, accepted or not: it only failed to be removed.
    pub fn has_file(&self, name: Uuid) -> bool {
        self.files.contains(&name)
    }

    /// Whether the message of that ask was accepted.
    pub fn has_ask(&self, lead: &SessionId, ask: Uuid) -> bool {
        self.accepted_asks.contains(&(lead.clone(), ask))
    }

    /// When that ask was put, as far as is known: its message's time, else when it was first seen.
    pub fn asked_at(&self, lead: &SessionId, ask: Uuid) -> Option<Timestamp> {
        self.asks.get(&(lead.clone(), ask)).copied()
    }

    /// Our messages by id.
    pub fn sent(&self) -> impl Iterator<Item = &SentEntry> {
        self.sent.values()
    }

    /// One of them.
    pub fn sent_entry(&self, id: Uuid) -> Option<&SentEntry> {
        self.sent.get(&id)
    }

    /// Folds one line in; says whether it could be read.
    fn fold(&mut self, text: &str, place: Place) -> bool {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return false };
        if line.v != VERSION {
            self.unknown += 1;
            return true;
        }
        let Some(at) = Timestamp::from_number(line.at) else { return false };
        self.next_seq = self.next_seq.max(line.seq + 1);
        let id = line.id.as_deref().and_then(Uuid::parse);
        let ask = line.ask.as_deref().and_then(Uuid::parse);
        let lead = line.lead.and_then(SessionId::new);
        match &*line.kind {
            "received" => {
                let Some(id) = id else { return false };
                let kind = line.message.as_deref().and_then(Kind::from_name);
                let created_at = line.created_at.and_then(Timestamp::from_number);
                self.files.insert(id);
                if line.refused.is_none() {
                    self.ids.insert(id);
                }
                if let (Some(Kind::LeadAsk), Some(lead), Some(ask)) = (kind, &lead, ask) {
                    let key = (lead.clone(), ask);
                    if line.refused.is_none() {
                        self.accepted_asks.insert(key.clone());
                    }
                    let asked = self.asks.entry(key).or_insert(at);
                    *asked = (*asked).min(created_at.unwrap_or(at));
                }
                let preview = line.preview.unwrap_or_else(|| "".into());
                let letter = Letter {
                    whole: kind.is_some() && preview.utf16_len() < PREVIEW,
                    seq: line.seq,
                    at,
                    id,
                    kind,
                    lead,
                    ask,
                    created_at,
                    preview,
                    refused: line.refused.map(std::borrow::Cow::into_owned),
                    read: false,
                };
                self.received.insert(line.seq, Received { letter, place });
            }
            "ask_seen" => {
                let (Some(lead), Some(ask)) = (lead, ask) else { return false };
                self.asks.entry((lead, ask)).or_insert(at);
            }
            "sent" => {
                let Some(message) = line.record.and_then(record_of) else { return false };
                let entry = SentEntry { message: Box::new(message), fate: None, again: None };
                self.sent.insert(entry.message.id, entry);
            }
            "requeued" => {
                let ids =
                    (line.old.as_deref().and_then(Uuid::parse), line.new.as_deref().and_then(Uuid::parse));
                let (Some(old), Some(new)) = ids else { return false };
                if let Some(entry) = self.sent.get_mut(&old) {
                    entry.again = Some(new);
                }
            }
            "fate" => {
                let (Some(id), Some(fate)) = (id, line.fate.as_deref().and_then(Fate::from_name)) else {
                    return false;
                };
                if let Some(entry) = self.sent.get_mut(&id) {
                    entry.fate = Some(fate);
                }
            }
            "read" | "unread" => {
                for seq in line.seqs {
                    if let Some(entry) = self.received.get_mut(&seq) {
                        entry.letter.read = line.kind == "read";
                    }
                }
            }
            _ => self.unknown += 1,
        }
        true
    }
}

fn record_of(raw: &RawValue) -> Option<Message> {
    let text: Untrusted = serde_json::from_str(raw.get()).ok()?;
    Message::parse(text.to_str_lossy().as_bytes()).ok()
}

/// The journal of one socket.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    segments: Vec<PathBuf>,
    index: Index,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    segment: usize,
    file: File,
    length: u64,
}

impl Journal {
    /// Reads the journal in `directory`, which is made with the first event.
    pub fn open(directory: &Path) -> Result<Self, DiskError> {
        let mut journal = Self {
            directory: directory.to_owned(),
            segments: Vec::new(),
            index: Index { next_seq: 1, ..Index::default() },
            writer: None,
        };
        let mut names = match durable::list(directory) {
            Ok(names) => names,
            Err(Unreadable::Disk(error)) => return Err(error),
            Err(_) => return Err(failed("list", directory)(std::io::ErrorKind::PermissionDenied.into())),
        };
        names.retain(|name| name.to_str().is_some_and(is_segment));
        names.sort();
        for name in names {
            journal.read_segment(directory.join(name))?;
        }
        Ok(journal)
    }

    fn read_segment(&mut self, path: PathBuf) -> Result<(), DiskError> {
        let segment = self.segments.len();
        let file = open_segment(&path, false)?;
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        self.segments.push(path.clone());
        let mut offset = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
            let read = read.map_err(failed("read", &path))?;
            if read == 0 {
                return Ok(());
            }
            let place = Place { segment, offset, length: read as u32 };
            offset += read as u64;
            let whole = line.last() == Some(&b'\n');
            let known =
                whole && std::str::from_utf8(&line).is_ok_and(|text| self.index.fold(text.trim_end(), place));
            if !known {
                self.index.damaged += 1;
                if !whole && read > MAX_LINE {
                    // Longer than anything we write: passed over up to its end.
                    let mut rest = Vec::new();
                    offset += reader.read_until(b'\n', &mut rest).map_err(failed("read", &path))? as u64;
                }
            }
        }
    }

    /// What it holds.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Appends events, durable once this returns. On an error none of them counts.
    pub fn append(&mut self, events: &[Event<'_>], at: Timestamp) -> Result<(), DiskError> {
        let mut bytes = Vec::new();
        let mut lengths = Vec::new();
        for (event, seq) in events.iter().zip(self.index.next_seq..) {
            let line = line_of(event, seq, at);
            lengths.push(line.len());
            bytes.extend_from_slice(&line);
        }
        let writer = self.writer(at)?;
        let begin = writer.length;
        let path = self.segments[self.writer.as_ref().map_or(0, |writer| writer.segment)].clone();
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        let written = writer.file.write_all(&bytes).and_then(|()| writer.file.sync_data());
        if let Err(error) = written {
            // A part of it may stand there: cut, or a later line would be fused to it.
            let cut = writer.file.set_len(begin).and_then(|()| writer.file.seek(SeekFrom::Start(begin)));
            if cut.is_err() {
                self.writer = None;
            }
            return Err(failed("append to", &path)(error));
        }
        writer.length += bytes.len() as u64;
        let segment = writer.segment;
        let mut offset = 0;
        for length in lengths {
            let place = Place { segment, offset: begin + offset as u64, length: length as u32 };
            let line = &bytes[offset..offset + length];
            offset += length;
            if let Ok(text) = std::str::from_utf8(line) {
                self.index.fold(text.trim_end(), place);
            }
        }
        Ok(())
    }

    /// The segment of the month of `at`, opened to append; its torn end is cut.
    fn writer(&mut self, at: Timestamp) -> Result<&mut Writer, DiskError> {
        let path = self.directory.join(segment_name(at));
        let current = self.writer.as_ref().is_some_and(|writer| self.segments[writer.segment] == path);
        if !current {
            durable::ensure_directory(&self.directory)?;
            let is_new = durable::kind(&path)?.is_none();
            let mut file = open_segment(&path, true)?;
            let length = cut_torn_end(&mut file).map_err(failed("repair", &path))?;
            if is_new {
                durable::sync_parent(&path)?;
            }
            let segment = match self.segments.iter().position(|known| *known == path) {
                Some(segment) => segment,
                None => {
                    self.segments.push(path.clone());
                    self.segments.len() - 1
                }
            };
            self.writer = Some(Writer { segment, file, length });
        }
        match &mut self.writer {
            Some(writer) => Ok(writer),
            None => Err(failed("open", &path)(std::io::ErrorKind::NotFound.into())),
        }
    }

    /// The whole message of a received event, as it came.
    pub fn record(&self, received: &Received) -> Result<Vec<u8>, DiskError> {
        let path = &self.segments[received.place.segment];
        let file = open_segment(path, false)?;
        let mut line = vec![0; received.place.length as usize];
        file.read_exact_at(&mut line, received.place.offset).map_err(failed("read", path))?;
        let text = String::from_utf8_lossy(&line);
        #[derive(Deserialize)]
        struct Record {
            #[serde(default)]
            record: Option<Untrusted>,
            #[serde(default)]
            hex: Option<String>,
        }
        let record: Record = serde_json::from_str(text.trim_end())
            .map_err(|error| failed("understand", path)(error.into()))?;
        Ok(match (record.record, record.hex) {
            (Some(text), _) => text.to_str_lossy().into_owned().into_bytes(),
            (None, Some(hex)) => unhex(&hex),
            (None, None) => Vec::new(),
        })
    }

    /// The text of what was received under a number, whole; of what is no message, its bytes.
    pub fn text(&self, seq: u64) -> Result<Option<Untrusted>, DiskError> {
        let Some(received) = self.index.received.get(&seq) else { return Ok(None) };
        let bytes = self.record(received)?;
        Ok(Some(match Message::parse(&bytes) {
            Ok(message) => message.text,
            Err(_) => Untrusted::from_bytes_lossy(&bytes),
        }))
    }
}

fn failed<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> DiskError + use<'a> {
    move |error| DiskError {
        operation,
        path: path.to_owned(),
        reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}

fn open_segment(path: &Path, write: bool) -> Result<File, DiskError> {
    OpenOptions::new()
        .read(true)
        // At its end, whatever anybody else of ours wrote meanwhile: a line is never written over.
        .append(write)
        .create(write)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(failed("open", path))
}

/// Cuts what follows the last line end, and gives the length then; the file stands at its end.
fn cut_torn_end(file: &mut File) -> std::io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut end = length;
    let mut block = [0; 4096];
    while end > 0 {
        let begin = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - begin) as usize];
        file.read_exact_at(part, begin)?;
        match part.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => {
                end = begin + at as u64 + 1;
                break;
            }
            None => end = begin,
        }
    }
    if end < length {
        file.set_len(end)?;
        file.sync_data()?;
    }
    file.seek(SeekFrom::Start(end))
}

fn is_segment(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() == "2026-11.jsonl".len()
        && name.ends_with(".jsonl")
        && bytes[4] == b'-'
        && [0, 1, 2, 3, 5, 6].iter().all(|at| bytes[*at].is_ascii_digit())
}

/// `YYYY-MM.jsonl` of the month of `at`, in UTC.
fn segment_name(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned_datetime(jiff::tz::TimeZone::UTC).strftime("%Y-%m.jsonl").to_string()
}

fn line_of(event: &Event<'_>, seq: u64, at: Timestamp) -> Vec<u8> {
    let mut line = ObjectWriter::new();
    line.number("v", VERSION).number("seq", seq as f64).number("at", at.as_number());
    let id = |id: Uuid| Untrusted::from(id.to_string());
    match event {
        Event::Received { id: file, bytes, message, refused } => {
            line.string("kind", &"received".into()).string("id", &id(*file));
            if let Some(message) = message {
                line.string("message", &message.kind.as_str().into())
                    .string("lead", message.lead.as_untrusted())
                    .number("createdAt", message.created_at.as_number())
                    .string("preview", &message.text.first_units(PREVIEW));
                if let Some(ask) = message.ask {
                    line.string("ask", &id(ask));
                }
            }
            if let Some(refused) = refused {
                line.string("refused", &Untrusted::from(*refused));
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => line.string("record", &text.into()),
                Err(_) => line.string("hex", &hex(bytes).into()),
            };
        }
        Event::AskSeen { lead, ask } => {
            line.string("kind", &"ask_seen".into())
                .string("lead", lead.as_untrusted())
                .string("ask", &id(*ask));
        }
        Event::Sent(message) => {
            line.string("kind", &"sent".into()).string("id", &id(message.id));
            // It was checked to be writable before.
            let bytes = message.to_bytes().unwrap_or_default();
            line.string("record", &Untrusted::from_bytes_lossy(&bytes));
        }
        Event::Requeued { old, new } => {
            line.string("kind", &"requeued".into()).string("old", &id(*old)).string("new", &id(*new));
        }
        Event::Fate { id: message, fate } => {
            line.string("kind", &"fate".into())
                .string("id", &id(*message))
                .string("fate", &fate.name().into());
        }
        Event::Read(seqs) | Event::Unread(seqs) => {
            let kind = if matches!(event, Event::Read(_)) { "read" } else { "unread" };
            let list = seqs.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            line.string("kind", &kind.into()).raw("seqs", format!("[{list}]").as_bytes());
        }
    }
    let mut bytes = line.finish();
    bytes.push(b'\n');
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|it| it as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests;
