//! Attachments: turning a text and the files named beside it into the text of a record, after
//! `docs/contract.md`, *Attachments*.
//!
//! A record holds text only. Each file stands in it as a reference (its path and size), or with its
//! content, where that is text and there is room.

pub mod limits;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use limits::{Limits, LimitsError};
use serde::{Deserialize, Serialize};

use crate::contract::{Kind, Untrusted, message};
use crate::disk::named::{self, Seen};
use crate::disk::{Unreadable, durable, layout};

/// What a file argument begins with that names a stored result.
const RESULT: &str = "result:";
const BOM: &str = "\u{FEFF}";

/// A file as somebody named it, and where they stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileArgument {
    given: OsString,
    /// As the system has it: serde takes paths that are UTF-8 only.
    from: OsString,
}

impl FileArgument {
    /// `given` is a path, or a result reference (`result:` and an id); `from` is the absolute
    /// directory that a relative path begins at.
    pub fn new(given: impl Into<OsString>, from: impl Into<OsString>) -> Self {
        Self { given: given.into(), from: from.into() }
    }

    /// As it was given, safe to print.
    fn shown(&self) -> String {
        durable::shown(Path::new(&self.given)).to_string()
    }
}

/// What stands above the text where there are files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    /// `Message:`
    Message,
    /// `Reply:`
    Reply,
    /// `Question:`
    Question,
}

impl Heading {
    /// That of a message.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::ChiefMessage | Kind::LeadMessage | Kind::PeerMessage => Self::Message,
            Kind::ChiefReply => Self::Reply,
            Kind::LeadAsk => Self::Question,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Message => "Message",
            Self::Reply => "Reply",
            Self::Question => "Question",
        }
    }
}

/// Why a text and its files make no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// There is nothing to say.
    #[error("there is no text to send")]
    Blank,
    /// A file can't be attached: it is not there, no regular file, or can't be read.
    #[error("can't attach {given}: {why}")]
    File {
        /// As it was named, safe to print.
        given: String,
        /// Why.
        why: Unreadable,
    },
    /// A file's real path is not UTF-8, so a message can't name it.
    #[error("can't attach {given}: its path is not UTF-8, so a message can't name it")]
    Unnameable {
        /// As it was named, safe to print.
        given: String,
    },
    /// A result reference whose id is none.
    #[error("can't attach {given}: a result is named by `result:` and its id, a lower-case UUID")]
    NoResultId {
        /// As it was named, safe to print.
        given: String,
    },
    /// A reference to the n-th result of an agent: only a Pi session knows whose n-th is which.
    #[error(
        "can't attach {given}: the results of an agent are counted within one Pi session, and this is none"
    )]
    ResultOfAgent {
        /// As it was named, safe to print.
        given: String,
    },
    /// No result with that id is stored.
    #[error("can't attach {given}: there is no such result")]
    UnknownResult {
        /// As it was named, safe to print.
        given: String,
    },
    /// Even with references alone the record is too large.
    #[error("the record would take {bytes} bytes, {limit} are allowed")]
    TooLarge {
        /// What it would take.
        bytes: usize,
        /// What is allowed.
        limit: usize,
        /// How many files there are.
        files: usize,
    },
    /// It is not known how much is allowed.
    #[error(transparent)]
    Limits(#[from] LimitsError),
}

impl AttachError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Blank => "Write some",
            Self::File { why: Unreadable::NotRegular(_), .. } => "Name a regular file",
            Self::File { .. } => "Name a file that you can read",
            Self::Unnameable { .. } => "Give it another name, or attach a copy",
            Self::NoResultId { .. } => {
                "Use the reference exactly as it was given to you, or ./result:… for a file of that name"
            }
            Self::ResultOfAgent { .. } => {
                "Name it by its id, as `result:` and a UUID, or by its file in pi-herdsman/results"
            }
            Self::UnknownResult { .. } => "Use a reference exactly as it was given to you",
            Self::TooLarge { limit, .. } if *limit < message::MAX_BYTES => {
                "Shorten it, or raise mailboxPayloadLimitBytes in Pi Herdsman's config.json"
            }
            Self::TooLarge { files: 0, .. } => "Shorten the text",
            Self::TooLarge { .. } => "Shorten the text, or attach fewer files",
            Self::Limits(error) => error.hint(),
        }
    }
}

/// How a file stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// With its content.
    Inline,
    /// By path and size.
    Reference(Why),
}

/// Why a file stands in a message without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// It is larger than the configured limit.
    OverInlineLimit,
    /// With it the record would be too large.
    NoRoom,
    /// It is not UTF-8, or holds a NUL.
    NotText,
    /// It changed while it was read, or holds more than its size says.
    Changed,
}

impl Why {
    /// In words, after "because".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OverInlineLimit => "it is larger than the configured limit",
            Self::NoRoom => "the record has no room for its content",
            Self::NotText => "it is not text",
            Self::Changed => "it changed while it was read",
        }
    }
}

/// One file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Its real path, or its result reference, as the message names it before escaping.
    pub name: Untrusted,
    /// Its size, in bytes.
    pub bytes: u64,
    /// How it stands there.
    pub form: Form,
}

/// A text with its files, as a record holds it; also what a composer shows before sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The record's text.
    pub text: Untrusted,
    /// What the record takes, in bytes, as measured.
    pub bytes: usize,
    /// The files in it, each once, in the order they were named.
    pub files: Vec<Attached>,
}

/// What is to be said, with what.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// The text.
    pub text: &'a Untrusted,
    /// What stands above it where there are files.
    pub heading: Heading,
    /// The files, in order.
    pub files: &'a [FileArgument],
}

/// Renders a draft. `data_root` is where results are; `measure` says how many bytes the record
/// takes with a given text, which are never fewer than the text's own.
///
/// Blocking: files are found and read. Not more than `limits` allow is held of them.
///
/// # Errors
/// [`AttachError`]. A file that merely has no room, or is no text, is none: it is a reference.
pub fn render(
    draft: &Draft<'_>,
    data_root: &Path,
    limits: Limits,
    measure: impl Fn(&Untrusted) -> usize,
) -> Result<Rendered, AttachError> {
    if draft.text.is_blank() {
        return Err(AttachError::Blank);
    }
    let files = find(draft.files, data_root)?;
    let mut sections: Vec<String> = files.iter().map(Found::reference).collect();
    let mut text = join(&sections, draft);
    let mut bytes = measure(&text);
    if bytes > limits.record {
        return Err(AttachError::TooLarge { bytes, limit: limits.record, files: files.len() });
    }
    let mut attached = Vec::with_capacity(files.len());
    for (at, file) in files.iter().enumerate() {
        let form = match file.content(limits)? {
            Err(why) => Form::Reference(why),
            Ok(content) => {
                let reference = std::mem::replace(&mut sections[at], file.inline(&content));
                let tried = join(&sections, draft);
                let tried_bytes = measure(&tried);
                if tried_bytes > limits.record {
                    sections[at] = reference;
                    Form::Reference(Why::NoRoom)
                } else {
                    (text, bytes) = (tried, tried_bytes);
                    Form::Inline
                }
            }
        };
        attached.push(Attached { name: file.name.as_str().into(), bytes: file.seen.bytes(), form });
    }
    Ok(Rendered { text, bytes, files: attached })
}

/// The sections, then the text under its heading, a blank line between each two; without a section
/// the text alone.
fn join(sections: &[String], draft: &Draft<'_>) -> Untrusted {
    if sections.is_empty() {
        return draft.text.clone();
    }
    let mut whole = Vec::new();
    for section in sections {
        whole.extend_from_slice(section.as_bytes());
        whole.extend_from_slice(b"\n\n");
    }
    whole.extend_from_slice(draft.heading.as_str().as_bytes());
    whole.extend_from_slice(b":\n");
    whole.extend_from_slice(draft.text.as_wtf8());
    Untrusted::from_wtf8(&whole)
}

/// A file that was found.
struct Found<'a> {
    argument: &'a FileArgument,
    seen: Seen,
    /// As the message names it.
    name: String,
    /// Where it is, if the name does not say so.
    path: Option<String>,
}

/// Finds the files, each once: whoever names one first names it.
fn find<'a>(arguments: &'a [FileArgument], data_root: &Path) -> Result<Vec<Found<'a>>, AttachError> {
    let mut known = HashSet::new();
    let mut files = Vec::new();
    for argument in arguments {
        let result = result_id(argument)?;
        let path = match &result {
            Some(id) => data_root.join("results").join(id),
            None => layout::normalize(&Path::new(&argument.from).join(&argument.given)),
        };
        let seen = named::look(&path).map_err(|why| refused(argument, result.is_some(), why))?;
        if !known.insert(seen.path().to_owned()) {
            continue;
        }
        let real = seen.path().to_str().map(str::to_owned);
        let real = real.ok_or_else(|| AttachError::Unnameable { given: argument.shown() })?;
        let (name, path) = match result {
            Some(id) => (format!("{RESULT}{id}"), Some(real)),
            None => (real, None),
        };
        files.push(Found { argument, seen, name, path });
    }
    Ok(files)
}

fn refused(argument: &FileArgument, is_result: bool, why: Unreadable) -> AttachError {
    let given = argument.shown();
    match why {
        Unreadable::Missing if is_result => AttachError::UnknownResult { given },
        why => AttachError::File { given, why },
    }
}

/// The id in a result reference; none where the argument is a path.
fn result_id(argument: &FileArgument) -> Result<Option<String>, AttachError> {
    let Some(id) = argument.given.as_bytes().strip_prefix(RESULT.as_bytes()) else { return Ok(None) };
    match OsStr::from_bytes(id).to_str() {
        Some(id) if is_result_id(id) => Ok(Some(id.to_owned())),
        Some(id) if is_of_agent(id) => Err(AttachError::ResultOfAgent { given: argument.shown() }),
        _ => Err(AttachError::NoResultId { given: argument.shown() }),
    }
}

/// Whether it is lower-case hex in groups of 8, 4, 4, 4 and 12, of any UUID version.
fn is_result_id(id: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_hex(byte),
        })
}

/// Whether it is an agent's label, `#` and a number.
fn is_of_agent(id: &str) -> bool {
    id.rsplit_once('#').is_some_and(|(label, number)| {
        !label.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl Found<'_> {
    fn reference(&self) -> String {
        let path = self.path.as_ref().map(|path| format!(" path=\"{}\"", escaped(path)));
        let (name, path) = (escaped(&self.name), path.unwrap_or_default());
        format!("<file name=\"{name}\"{path} bytes=\"{}\" />", self.seen.bytes())
    }

    fn inline(&self, content: &str) -> String {
        format!("<file name=\"{}\" bytes=\"{}\">\n{content}\n</file>", escaped(&self.name), self.seen.bytes())
    }

    /// The content to put into a message, or why it has none.
    fn content(&self, limits: Limits) -> Result<Result<String, Why>, AttachError> {
        if self.seen.bytes() > limits.inline as u64 {
            return Ok(Err(Why::OverInlineLimit));
        }
        // A byte of content takes at least one of the record; only a BOM takes none.
        let most = limits.record + BOM.len();
        if self.seen.bytes() > most as u64 {
            return Ok(Err(Why::NoRoom));
        }
        let is_result = self.path.is_some();
        let read = self.seen.read(most).map_err(|why| refused(self.argument, is_result, why))?;
        let Some(bytes) = read else { return Ok(Err(Why::Changed)) };
        Ok(match String::from_utf8(bytes) {
            Ok(text) if text.contains('\0') => Err(Why::NotText),
            Ok(text) => Ok(text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text)),
            Err(_) => Err(Why::NotText),
        })
    }
}

/// A value between quotes: markup and controls (C0, DEL, C1) as character references.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            control if control.is_control() => {
                // A string can always be written to.
                let _ = write!(out, "&#x{:x};", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_nothing_else_is_changed() {
        assert_eq!(escaped("/a b/ü'&\"<>"), "/a b/ü'&amp;&quot;&lt;&gt;");
        assert_eq!(
            escaped("\0\t\n\u{1f}\u{7f}\u{80}\u{9f}\u{a0}"),
            "&#x0;&#x9;&#xa;&#x1f;&#x7f;&#x80;&#x9f;\u{a0}"
        );
    }

    #[test]
    fn a_result_is_told_from_a_path_by_its_beginning() {
        let id = |given: &str| result_id(&FileArgument::new(given, "/"));
        let uuid = "0123abcd-1111-7222-c333-444444444444";
        assert_eq!(id(&format!("result:{uuid}")), Ok(Some(uuid.to_owned())), "of any version");
        for path in ["", "a", "./result:x", "results:x", "Result:x", "result"] {
            assert_eq!(id(path), Ok(None), "{path:?}");
        }
        let cut = format!("result:{}", &uuid[1..]);
        let longer = format!("result:{uuid}0");
        let upper = format!("result:{}", uuid.to_uppercase());
        let below = format!("result:../{}", &uuid[3..]);
        for none in
            ["result:", "result:nope", "result:#1", "result:a#", "result:a#x", &cut, &longer, &upper, &below]
        {
            assert!(matches!(id(none), Err(AttachError::NoResultId { .. })), "{none:?}");
        }
        for agent in ["result:writer#1", "result:a#b#12"] {
            assert!(matches!(id(agent), Err(AttachError::ResultOfAgent { .. })), "{agent:?}");
        }
    }

    #[test]
    fn a_text_with_a_lone_surrogate_stays_as_it_is() {
        let text: Untrusted = serde_json::from_str(r#""\udc00 \ud800""#).unwrap();
        let draft = Draft { text: &text, heading: Heading::Reply, files: &[] };
        let whole = join(&["<file />".to_owned()], &draft);
        assert_eq!(whole.utf16_len(), "<file />\n\nReply:\n".len() + 3);
        assert!(whole.as_wtf8().ends_with(text.as_wtf8()));
    }
}
