//! A session's branch in the operator's pager: a copy in which nothing drives a terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::text;
use super::view::transcript::word;
use crate::chief::staff::path_of;
use crate::contract::Uuid;
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

/// Writes what is said on the branch into a file of ours that has no name any more: whatever becomes of
/// us, nothing of it is left. Takes as long as the file is.
///
/// # Errors
/// [`PageError`]
pub fn write_out(session: &SessionFile, branch: Branch) -> Result<File, PageError> {
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
    growth.follow(&tail, branch);
    let lines = Lines::of(&path)?;
    let directory = std::env::temp_dir();
    let failed = |source| PageError::Copy { at: directory.to_string_lossy().into_owned(), source };
    let file = nameless(&directory).map_err(failed)?;
    let mut out = BufWriter::new(file);
    for item in growth.items().iter() {
        let Some(line) = lines.read(item.offset, item.length)? else { continue };
        let Some(body) = Body::of(&line, item.kind, Folding::Whole) else { continue };
        write_entry(&mut out, item, &body).map_err(failed)?;
    }
    let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    Ok(file)
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
    let mut heading = word(item.kind).to_owned();
    for note in &body.notes {
        heading.push_str(&format!(" {note}"));
    }
    let title = text::plain(&body.title);
    let at = i64::try_from(item.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.filter(|_| item.at > 0).map(|at| at.strftime(" %Y-%m-%d %H:%M:%SZ").to_string());
    writeln!(out, "== {heading} {title}{}", at.unwrap_or_default())?;
    for part in body.parts.iter().filter(|part| part.kind != PartKind::Thought) {
        let sign = if part.kind == PartKind::Call { "-> " } else { "" };
        writeln!(out, "{sign}{}", text::plain_block(&part.head))?;
        if part.omitted_bytes > 0 {
            writeln!(out, "[{} more bytes]", part.omitted_bytes)?;
        }
    }
    writeln!(out)
}

/// Starts the operator's pager on `copy`.
///
/// # Errors
/// Where there is no shell.
pub fn start(copy: File) -> io::Result<Child> {
    let pager = std::env::var_os("PAGER").filter(|pager| !pager.is_empty());
    let pager = pager.unwrap_or_else(|| OsString::from(PAGER));
    // Through a shell, as others do it: it may have arguments.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::from(copy)).kill_on_drop(true);
    command.spawn()
}
