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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tests::{office, writing};
    use super::*;
    use crate::chief::attach::{Form, Why};

    fn looked(dir: &Path, text: &str) -> Look {
        look(&writing(dir), text.to_owned(), &office(dir))
    }

    #[test]
    fn files_go_along_once_and_anything_else_is_text() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("a.rs"), "fn").unwrap();
        std::fs::write(dir.path().join("b."), [0xff; 3]).unwrap();
        std::os::unix::fs::symlink("a.rs", dir.path().join("l")).unwrap();
        let text = "@a.rs, (@b.) @d @l @ op@a.rs `@a.rs` @nobody: @a.rs/x @~x";
        let look = looked(dir.path(), text);
        let attached: Vec<(String, u64, Form)> = (look.attached.iter())
            .map(|file| {
                (file.name.to_str_lossy().rsplit('/').next().unwrap().to_owned(), file.bytes, file.form)
            })
            .collect();
        assert_eq!(
            attached,
            [("a.rs".to_owned(), 2, Form::Inline), ("b.".to_owned(), 3, Form::Reference(Why::NotText))]
        );
        // Named three times: the record has it once.
        assert_eq!((look.files.len(), look.problem.as_deref()), (3, None));
        assert_eq!(look.only_text, ["d", "nobody", "a.rs/x", "~x"]);
        let plain = looked(dir.path(), "see").bytes.unwrap();
        assert!(look.bytes.unwrap() > plain + text.len());
    }

    #[test]
    fn what_is_there_and_can_not_go_along_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        let look = looked(dir.path(), "see @s");
        assert_eq!((look.files.len(), look.bytes), (1, None));
        let why = look.problem.unwrap();
        assert!(why.contains("/s: it is a socket") && why.ends_with("Name a regular file"), "{why}");
        drop(socket);
    }

    #[test]
    fn the_limits_are_those_configured_now() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        let office = office(dir.path());
        let root = office.agent_dir().data_root();
        std::fs::create_dir_all(&root).unwrap();
        let with = |config: &str, text: &str| {
            std::fs::write(root.join("config.json"), config).unwrap();
            look(&writing(dir.path()), text.to_owned(), &office)
        };
        let small = with(r#"{"mailboxPayloadLimitBytes":1024}"#, &"x".repeat(1000));
        assert_eq!(small.limit, 1024);
        assert!(small.problem.unwrap().contains("1024 are allowed"));
        assert!(small.bytes.unwrap() > 1024);
        let wrong = with(r#"{"mailboxPayloadLimitBytes":1}"#, "see @a");
        assert!(wrong.problem.unwrap().contains("mailboxPayloadLimitBytes"));
        // With nothing written there is nothing to send, and nothing to complain of.
        let blank = with("{}", " ");
        assert_eq!((blank.problem, blank.bytes), (None, None));
    }

    #[test]
    fn a_text_that_can_not_be_sent_anyway_has_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let look = looked(dir.path(), &"@x ".repeat(3000));
        assert!(!look.mentions_any() && look.problem.unwrap().contains("8192 are allowed"));
    }
}
