//! A session's branch in the operator's pager: a copy in which nothing drives a terminal.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::text;
use super::view::transcript::{sender, word};
use crate::chief::staff::path_of;
use crate::contract::{Untrusted, Uuid};
use crate::fact::SessionFile;
use crate::pi::body::{Body, Folding, Lines, PartKind};
use crate::pi::growth::{Branch, Growth, Item};
use crate::pi::session::HeaderError;
use crate::pi::tail::{Progress, Tail, Unsettled};
use crate::pi::transcript::TranscriptError;

/// What is tried without `$PAGER`.
const PAGER: &str = "less";

/// Why there is nothing to page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The session file can't be read.
    #[error(transparent)]
    Session(#[from] HeaderError),
    /// It is not the one that is meant.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// The copy can't be written.
    #[error("the copy can't be written to {}: {source}. Set TMPDIR to a directory with room", .at.escape_debug())]
    Copy {
        /// The directory.
        at: String,
        /// Why.
        source: io::Error,
    },
}

/// What is to be read in the pager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paging {
    /// The session.
    pub session: SessionFile,
    /// The branch of it.
    pub branch: Branch,
    /// What its lead is called.
    pub name: Untrusted,
    /// The entry under the cursor, by its offset.
    pub at: Option<u64>,
}

/// A copy to be read in the pager.
#[derive(Debug)]
pub struct Copy {
    file: File,
    /// The line, from 1, that is to be seen first.
    line: usize,
}

/// Writes what is said on the branch into a file of ours that has no name any more: whatever becomes of
/// us, nothing of it is left. Takes as long as the file is.
///
/// # Errors
/// [`PageError`]
pub fn write_out(paging: &Paging) -> Result<Copy, PageError> {
    let Paging { session, branch, name, at } = paging;
    let path = path_of(&session.path);
    let mut tail = Tail::new(&path);
    if tail.look(u64::MAX, Unsettled::AtOnce)? != Progress::Done {
        return Err(TranscriptError::Changing.into());
    }
    match tail.index().header() {
        Some(Ok(header)) if header.session == session.session => {}
        Some(Ok(_)) => return Err(TranscriptError::OtherSession.into()),
        Some(Err(error)) => return Err(error.clone().into()),
        None => return Err(TranscriptError::Empty.into()),
    }
    let mut growth = Growth::default();
    growth.follow(&tail, *branch);
    let lines = Lines::of(&path)?;
    let directory = std::env::temp_dir();
    let failed = |source| PageError::Copy { at: directory.to_string_lossy().into_owned(), source };
    let file = nameless(&directory).map_err(failed)?;
    let mut out = Counted { out: BufWriter::new(file), lines: 0 };
    writeln!(out, "{}\n", text::plain(name)).map_err(failed)?;
    let mut line_of_cursor = 1;
    for item in growth.items().iter() {
        let Some(line) = lines.read(item.offset, item.length)? else { continue };
        let Some(body) = Body::of(&line, item.kind, Folding::Whole) else { continue };
        if *at == Some(item.offset) {
            line_of_cursor = out.lines + 1;
        }
        write_entry(&mut out, item, &body).map_err(failed)?;
    }
    let mut file = out.out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    Ok(Copy { file, line: line_of_cursor })
}

/// Writes on, and counts the lines.
struct Counted<W> {
    out: W,
    lines: usize,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.lines += memchr::memchr_iter(b'\n', &bytes[..written]).count();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A file for us alone, without a name.
fn nameless(directory: &std::path::Path) -> io::Result<File> {
    let path = directory.join(format!("headman-page-{}", Uuid::random()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn write_entry(out: &mut impl Write, item: &Item, body: &Body) -> io::Result<()> {
    let mut heading = match &body.delivered {
        Some(delivered) => sender(delivered, None),
        None => word(item.kind).to_owned(),
    };
    for note in &body.notes {
        heading.push_str(&format!(" {note}"));
    }
    if body.delivered.is_none() && !body.title.is_empty() {
        heading.push_str(&format!(" {}", text::plain(&body.title)));
    }
    let at = i64::try_from(item.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    if let Some(at) = at.filter(|_| item.at > 0) {
        let at = at.to_zoned_datetime(jiff::tz::TimeZone::system());
        heading.push_str(&at.strftime(" %Y-%m-%d %H:%M:%S").to_string());
    }
    writeln!(out, "== {heading}")?;
    for part in body.parts.iter().filter(|part| part.kind != PartKind::Thought) {
        let sign = if part.kind == PartKind::Call { "-> " } else { "" };
        writeln!(out, "{sign}{}", text::plain_block(&part.head))?;
        if part.omitted_bytes > 0 {
            writeln!(out, "[{} more bytes]", part.omitted_bytes)?;
        }
    }
    writeln!(out)
}

/// Starts the operator's pager on `copy`; one that is `less` where the cursor was.
///
/// # Errors
/// Where there is no shell.
pub fn start(copy: Copy) -> io::Result<Child> {
    let pager = std::env::var_os("PAGER").filter(|pager| !pager.is_empty());
    let mut pager = pager.unwrap_or_else(|| OsString::from(PAGER));
    if is_less(&pager) {
        pager.push(format!(" +{}", copy.line));
    }
    // Through a shell, as others do it: it may have arguments.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::from(copy.file)).kill_on_drop(true);
    command.spawn()
}

/// Whether a command line starts `less`, and nothing beside it.
fn is_less(command: &OsStr) -> bool {
    let Some(command) = command.to_str() else { return false };
    let program = command.split_ascii_whitespace().next().unwrap_or_default();
    program.rsplit('/').next() == Some(PAGER) && !command.contains(['|', ';', '&', '<', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SessionId;

    #[test]
    fn a_copy_says_whose_it_is_and_knows_the_line_of_the_cursor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";
        let first = "{\"type\":\"message\",\"id\":\"00000001\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"one\\ntwo\"}}\n";
        let second = "{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"timestamp\":\"2026-11-30T08:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"three\"}}\n";
        std::fs::write(&path, [header, first, second].concat()).unwrap();
        let session =
            SessionFile { path: path.to_str().unwrap().into(), session: SessionId::new("s-1").unwrap() };
        let at = Some((header.len() + first.len()) as u64);
        let paging = Paging { session, branch: Branch::Latest, name: "a\u{1b}b".into(), at };
        let copy = write_out(&paging).unwrap();
        let text = io::read_to_string(copy.file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..6], ["a\u{241b}b", "", "== user", "one", "two", ""]);
        assert!(lines[copy.line - 1].starts_with("== user 2026-1"), "{} in {lines:?}", copy.line);
        assert_eq!(lines.get(copy.line), Some(&"three"));
    }

    #[test]
    fn only_less_is_told_where_to_begin() {
        for (command, is) in [
            ("less", true),
            ("/usr/bin/less -R", true),
            ("more", false),
            ("lessen", false),
            ("less | tee x", false),
            ("sh -c 'less'", false),
            ("", false),
        ] {
            assert_eq!(is_less(OsStr::new(command)), is, "{command}");
        }
    }
}
