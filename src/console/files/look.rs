//! Looking at the files that a text mentions: which of them go along, how each will stand in the
//! record, and what that takes. The service does the same again as it sends.

use super::{Writing, mention};
use crate::chief::attach::{AttachError, Attached, FileArgument};
use crate::chief::staff::Office;
use crate::contract::{Untrusted, message};
use crate::disk::{Unreadable, named};

/// What was seen of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The text.
    pub text: String,
    /// The files it goes out with, in the order they are named; one that can't be attached among them.
    pub files: Vec<FileArgument>,
    /// How they will stand in the record, each once.
    pub attached: Vec<Attached>,
    /// What is mentioned and is no file: it is text alone.
    pub only_text: Vec<String>,
    /// Bytes that the record takes; none if that can't be told.
    pub bytes: Option<usize>,
    /// Bytes that it may take.
    pub limit: usize,
    /// Why it can't be sent so.
    pub problem: Option<String>,
}

impl Look {
    /// Whether the text mentions anything.
    pub fn mentions_any(&self) -> bool {
        !self.files.is_empty() || !self.only_text.is_empty()
    }
}

/// Looks. Blocking.
pub(super) fn look(writing: &Writing, text: String, office: &Office) -> Look {
    let mut files = Vec::new();
    let mut only_text = Vec::new();
    // What is longer can't be sent, whatever it mentions.
    if text.len() <= message::MAX_BYTES {
        for mention in mention::mentions(&text) {
            match mention.paths.iter().find_map(|path| file(writing, path)) {
                Some(file) => files.push(file),
                None => only_text.extend(mention.paths.into_iter().next_back()),
            }
        }
    }
    let said = Untrusted::from(text.as_str());
    let limit = office.limits().map_or(message::MAX_BYTES, |limits| limits.record);
    let (mut attached, mut bytes, mut problem) = (Vec::new(), None, None);
    match office.render(writing.kind(), &writing.key.session, &said, &files) {
        Ok(rendered) => (attached, bytes) = (rendered.files, Some(rendered.bytes)),
        // There is nothing to attach it to yet.
        Err(AttachError::Blank) => {}
        Err(error) => {
            if let AttachError::TooLarge { bytes: takes, .. } = &error {
                bytes = Some(*takes);
            }
            problem = Some(format!("{error}. {}", error.hint()));
        }
    }
    Look { text, files, attached, only_text, bytes, limit, problem }
}

/// The file that `path` names. What is there and can't be attached is one, too: to be refused by name
/// rather than left out. A directory is something to talk about.
fn file(writing: &Writing, path: &str) -> Option<FileArgument> {
    let path = writing.place.resolve(path)?;
    match named::look(&path) {
        Err(Unreadable::Missing | Unreadable::NotRegular("a directory")) => None,
        // A name before a slash that is a file, a name that is too long: no such file either.
        Err(Unreadable::Disk(error)) if error.names_nothing() => None,
        Ok(_) | Err(_) => Some(FileArgument::new(path, writing.place.from.clone())),
    }
}
