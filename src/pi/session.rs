//! The head of a session file: which session it is, where it works, what it is called. After
//! "session files" in `docs/contract.md`.
//!
//! Reading is bounded and passive whatever the file turns out to be: at most [`HEAD_WINDOW`] bytes
//! from its beginning and [`TAIL_WINDOW`] from its end, through a read-only descriptor that follows
//! no link, waits for no other end and is of a regular file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::contract::json::{Document, Json};
use crate::contract::text::is_js_space;
use crate::contract::{SessionId, Timestamp, Untrusted};

/// The header must be complete within so many bytes from the beginning, blank and bad lines before
/// it included. Headers of real sessions take some 300.
pub const HEAD_WINDOW: usize = 64 * 1024;

/// The name is looked for in the head window and in so many bytes at the end. Only in a larger file
/// can one between the two be missed; [`Header::name_is_certain`] says so.
pub const TAIL_WINDOW: usize = 256 * 1024;

/// Where only the header is wanted, so many bytes are tried first.
const FIRST_LOOK: usize = 4 * 1024;

/// What the head of a session file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The session's id, whatever the file is called.
    pub session: SessionId,
    /// Its working directory; old files have none.
    pub cwd: Option<Untrusted>,
    /// The format's version; files of the first have none. Above 3 the file is of a newer Pi.
    pub version: Option<f64>,
    /// The newest name in the file's order, exactly as written; none where it was cleared.
    pub name: Option<Untrusted>,
    /// Whether no later name can stand in a part that was not read.
    pub name_is_certain: bool,
}

/// Why a file's header could not be read. Names no path: the caller knows it, others need not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Nothing stands there.
    #[error("the session file is not there. It appears with the session's first message")]
    NotThere,
    /// A directory, link, pipe, device or socket.
    #[error("the session file is {0}, not a regular file. Nothing of it is read")]
    NotRegular(&'static str),
    /// The system refused.
    #[error("the session file can't be read: {0}. Check its mode and owner")]
    Unreadable(Errno),
    /// The first line that is JSON is no header, or there is none.
    #[error("the session file has no header: {0}. It may be of something else than Pi")]
    NoHeader(&'static str),
    /// No header is complete within [`HEAD_WINDOW`].
    #[error(
        "the session file has no whole header in its first {HEAD_WINDOW} bytes. It may be of something else than Pi"
    )]
    HeaderTooLong,
    /// The header's id is empty or too long.
    #[error("the session file's id is not of 1–512 UTF-16 units. Start that agent with a new session")]
    UnusableId,
}

impl HeaderError {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => HeaderError::NotThere,
            Errno::LOOP => HeaderError::NotRegular("a symbolic link"),
            errno => HeaderError::Unreadable(errno),
        }
    }

    /// Whether it is the content that is wrong, which only another content can fix.
    fn is_of_content(&self) -> bool {
        matches!(self, HeaderError::NoHeader(_) | HeaderError::HeaderTooLong | HeaderError::UnusableId)
    }
}

/// Reads the header of the session file at `path`.
pub fn read_header(path: &Path) -> Result<Header, HeaderError> {
    let (file, stamp) = open(path)?;
    read(&file, stamp.size)
}

/// What the header alone says: the name is not looked for, so that little is read.
pub fn read_identity(path: &Path) -> Result<Header, HeaderError> {
    let (file, stamp) = open(path)?;
    identity(&file, stamp.size)
}

/// The same of a file that is open.
pub(super) fn identity(file: &File, size: u64) -> Result<Header, HeaderError> {
    for window in [FIRST_LOOK, HEAD_WINDOW] {
        let length = usize::try_from(size).unwrap_or(usize::MAX).min(window);
        let head = read_at(file, 0, length)?;
        match parse_header(&head, length as u64 == size) {
            Err(HeaderError::HeaderTooLong) if window == FIRST_LOOK => {}
            read => return read.map(|(header, _)| header),
        }
    }
    Err(HeaderError::HeaderTooLong)
}

/// The header with the name, of a file that is open.
pub(crate) fn header_of_file(file: &File) -> Result<Header, HeaderError> {
    let stamp = Stamp::of(&rustix::fs::fstat(file).map_err(HeaderError::of)?)?;
    read(file, stamp.size)
}

/// What tells whether a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// In nanoseconds since the epoch.
    modified: i128,
    /// Unlike the modification time, nobody can set it back.
    changed: i128,
}

/// Its type is another on other systems.
#[allow(clippy::unnecessary_cast)]
fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

impl Stamp {
    fn of(stat: &Stat) -> Result<Self, HeaderError> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                return Ok(Self {
                    device: device(stat),
                    inode: stat.st_ino,
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
                    changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
                });
            }
            FileType::Directory => "a directory",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "of an unknown kind",
        };
        Err(HeaderError::NotRegular(kind))
    }

    pub(super) fn of_path(path: &Path) -> Result<Self, HeaderError> {
        rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(HeaderError::of)
            .and_then(|stat| Self::of(&stat))
    }

    /// Whether the content was last changed before that.
    pub(super) fn is_older_than(&self, time: Timestamp) -> bool {
        self.modified < i128::from(time.as_millis()) * 1_000_000
    }

    /// When the content was last changed, in nanoseconds since the epoch.
    pub(super) fn modified(&self) -> i128 {
        self.modified
    }

    /// In bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is of the same file, whatever that holds.
    pub(super) fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether a file of this stamp is the one of `earlier` with something appended, as far as that
    /// can be told.
    fn grew_from(&self, earlier: &Self) -> bool {
        self.is_of_same_file(earlier) && self.size > earlier.size
    }
}

/// The parts are of different types on different systems.
fn nanoseconds(seconds: impl Into<i128>, nanoseconds: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + nanoseconds.into()
}

/// The kind is looked at before opening, since opening alone can move a device, and again after.
pub(super) fn open(path: &Path) -> Result<(File, Stamp), HeaderError> {
    Stamp::of_path(path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(HeaderError::of)?;
    let stamp = Stamp::of(&rustix::fs::fstat(&file).map_err(HeaderError::of)?)?;
    Ok((File::from(file), stamp))
}

fn read(file: &File, size: u64) -> Result<Header, HeaderError> {
    let whole = size <= (HEAD_WINDOW + TAIL_WINDOW) as u64;
    let first = if whole { HEAD_WINDOW + TAIL_WINDOW } else { HEAD_WINDOW };
    // Never more than the size that was seen: a file that grows meanwhile is read again anyway.
    let first = usize::try_from(size).unwrap_or(usize::MAX).min(first);
    let head = read_at(file, 0, first)?;
    let (mut header, rest) = parse_header(&head, whole)?;
    header.name_is_certain = whole;
    if whole {
        header.name = newest_name(&head[rest..]).flatten();
        return Ok(header);
    }
    // From one byte before the window, to see whether a line begins with it.
    let tail = read_at(file, size - TAIL_WINDOW as u64 - 1, TAIL_WINDOW + 1)?;
    let begin = tail.iter().position(|byte| *byte == b'\n').map_or(tail.len(), |at| at + 1);
    if let Some(name) = newest_name(&tail[begin..]) {
        (header.name, header.name_is_certain) = (name, true);
    } else {
        let end = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(rest).max(rest);
        header.name = newest_name(&head[rest..end]).flatten();
    }
    Ok(header)
}

/// Up to `length` bytes from `offset`; fewer where the file ends.
pub(super) fn read_at(file: &File, offset: u64, length: usize) -> Result<Vec<u8>, HeaderError> {
    let mut bytes = Vec::new();
    fill_at(file, offset, length, &mut bytes)?;
    Ok(bytes)
}

/// The same, into a buffer that may be used again: nothing is kept of what it held.
pub(super) fn fill_at<'a>(
    file: &File,
    offset: u64,
    length: usize,
    bytes: &'a mut Vec<u8>,
) -> Result<&'a [u8], HeaderError> {
    bytes.resize(length, 0);
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(HeaderError::Unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The header, and where the lines after it begin. Pi passes over blank and bad lines before it;
/// the first line that is JSON must be it. `whole` says that `head` ends where the file does.
pub(super) fn parse_header(head: &[u8], whole: bool) -> Result<(Header, usize), HeaderError> {
    let mut at = 0;
    while at < head.len() {
        let end = head[at..].iter().position(|byte| *byte == b'\n').map(|length| at + length);
        let line_end = match end {
            Some(end) => end,
            None if whole => head.len(),
            None => return Err(HeaderError::HeaderTooLong),
        };
        if line_end > HEAD_WINDOW {
            return Err(HeaderError::HeaderTooLong);
        }
        let text = String::from_utf8_lossy(&head[at..line_end]);
        // At the very beginning, and only there, Pi passes over what JavaScript calls blank: a BOM.
        let text = if at == 0 { text.trim_start_matches(is_js_space) } else { &text };
        if let Ok(value) = Document::decode(text.as_bytes()).value() {
            return Ok((header_of(value)?, line_end));
        }
        at = line_end + 1;
    }
    Err(if whole { HeaderError::NoHeader("no line of it is JSON") } else { HeaderError::HeaderTooLong })
}

pub(super) fn header_of(value: Json<'_>) -> Result<Header, HeaderError> {
    let members = value.object().ok_or(HeaderError::NoHeader("its first line is no object"))?;
    let get = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let text = |key: &str| get(key).and_then(|value| value.string());
    if text("type").is_none_or(|kind| kind != "session") {
        return Err(HeaderError::NoHeader("its first line is not of the type session"));
    }
    let id = text("id").ok_or(HeaderError::NoHeader("its first line has no id"))?;
    Ok(Header {
        session: SessionId::new(id).ok_or(HeaderError::UnusableId)?,
        cwd: text("cwd").filter(|cwd| !cwd.is_empty()),
        version: get("version").and_then(|value| value.number()),
        name: None,
        name_is_certain: false,
    })
}

/// The newest name in `lines`: nothing where none is set or cleared, `Some(None)` where the last
/// was cleared. Lines that don't parse, torn ones among them, are passed over as Pi does.
fn newest_name(lines: &[u8]) -> Option<Option<Untrusted>> {
    // JSON could write these letters as escapes; no writer of sessions does.
    const MARK: &str = "session_info";
    let text = String::from_utf8_lossy(lines);
    let mut end = text.len();
    while let Some(at) = text[..end].rfind(MARK) {
        let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
        let stop = text[at..].find('\n').map_or(text.len(), |length| at + length);
        if let Some(name) = name_of(&text[start..stop]) {
            return Some(name);
        }
        end = start;
    }
    None
}

fn name_of(line: &str) -> Option<Option<Untrusted>> {
    let document = Document::decode(line.as_bytes());
    let members = document.value().ok()?.object()?;
    let text = |key: &str| members.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.string());
    (text("type")? == "session_info").then(|| text("name").filter(|name| !name.is_blank()))
}

/// Headers read before, so that an unchanged file costs one `stat` and no opening. Also what is
/// wrong with a file's content is remembered.
#[derive(Debug, Default)]
pub struct HeaderCache {
    entries: HashMap<PathBuf, (Stamp, Result<Header, HeaderError>)>,
    opened: u64,
}

impl HeaderCache {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The header of the session file at `path`, read again only if the file is another or changed.
    ///
    /// A name that went out of both windows while the file grew is kept: nothing newer was seen.
    pub fn header(&mut self, path: &Path) -> Result<Header, HeaderError> {
        let known = self.entries.get(path);
        match (Stamp::of_path(path), known) {
            (Ok(stamp), Some((at, result))) if stamp == *at => return result.clone(),
            (Err(error), _) => {
                self.entries.remove(path);
                return Err(error);
            }
            _ => {}
        }
        self.opened += 1;
        let (file, stamp) = open(path)?;
        let mut result = read(&file, stamp.size);
        if let (Ok(header), Some((earlier, Ok(known)))) = (&mut result, known)
            && !header.name_is_certain
            && known.name_is_certain
            && known.session == header.session
            && stamp.grew_from(earlier)
            && stamp.size - earlier.size < TAIL_WINDOW as u64 / 2
        {
            // All that was appended lies in the tail window, with the line it may have completed
            // unless that is very long.
            (header.name, header.name_is_certain) = (known.name.clone(), true);
        }
        if result.as_ref().err().is_none_or(HeaderError::is_of_content) {
            self.entries.insert(path.to_owned(), (stamp, result.clone()));
        } else {
            self.entries.remove(path);
        }
        result
    }

    /// Forgets the files of which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(&Path) -> bool) {
        self.entries.retain(|path, _| keep(path));
    }

    /// How often a file was opened so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How many files are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
