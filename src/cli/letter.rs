//! What verbs that write a message share: its text, the files that go along, what is said of them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::failure::{Exit, Failure};
use super::input;
use super::out::note;
use crate::chief::attach::{AttachError, FileArgument, Form, LimitsError, Rendered};
use crate::contract::Untrusted;

/// More never fits into a record.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The text that was given, or read from standard input; of what `what` is about.
///
/// # Errors
/// [`Failure`] where there is none, or it can't be read.
pub(super) fn text(what: &str, argument: &OsStr) -> Result<Untrusted, Failure> {
    let hint = "Give the text as one argument, or on standard input with `-`";
    let bytes = if argument == "-" {
        let bytes = input::read(Path::new("-"), MAX_TEXT_BYTES)?;
        // The one that `echo` adds.
        bytes.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(bytes)
    } else {
        argument.as_encoded_bytes().to_vec()
    };
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Failure::usage(
            format!("can't {what}: the text is too long for a message"),
            "Shorten it",
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("can't {what}: the text is not UTF-8"), hint))
        .map(Untrusted::from)?;
    if text.is_blank() {
        return Err(Failure::usage(format!("can't {what}: there is no text"), hint));
    }
    Ok(text)
}

/// The files, bound to where we are: whoever reads them may be elsewhere.
///
/// # Errors
/// [`Failure`] where we are nowhere.
pub(super) fn files(arguments: &[OsString]) -> Result<Vec<FileArgument>, Failure> {
    if arguments.is_empty() {
        return Ok(Vec::new());
    }
    let here = std::env::current_dir()
        .map_err(|error| Failure::disk("find the working directory", &error, "Go to one that is there"))?;
    Ok(arguments.iter().map(|argument| FileArgument::new(argument, &here)).collect())
}

/// Why a text and its files make no message.
pub(super) fn not_attached(what: &str, error: &AttachError) -> Failure {
    let (exit, code) = match error {
        AttachError::Blank | AttachError::NoResultId { .. } | AttachError::ResultOfAgent { .. } => {
            (Exit::Usage, "usage")
        }
        AttachError::UnknownResult { .. } => (Exit::No, "not_found"),
        AttachError::TooLarge { .. } => (Exit::No, "too_large"),
        AttachError::Limits(LimitsError::NotObject { .. } | LimitsError::Invalid { .. }) => {
            (Exit::Usage, "configuration")
        }
        AttachError::File { .. }
        | AttachError::Unnameable { .. }
        | AttachError::Limits(LimitsError::Unreadable { .. }) => (Exit::Unavailable, "disk"),
    };
    Failure::new(exit, code, format!("can't {what}: {error}"), error.hint())
}

/// Says which files go without their content.
pub(super) fn tell_references(rendered: &Rendered) {
    for file in &rendered.files {
        if let Form::Reference(why) = file.form {
            note(&format!("{} goes by its path and size, because {}", file.name.escaped(), why.as_str()));
        }
    }
}
