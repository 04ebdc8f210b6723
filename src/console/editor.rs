//! Writing a text in the operator's own editor: the file for it, and what came back.
//!
//! A file is removed once its text is in the draft. What could not be taken stays, and is named: it
//! may be an hour's work.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tokio::process::Command;

use super::composer::MAX_TEXT;
use super::text;
use crate::contract::Uuid;
use crate::disk::durable::{self, DiskError, Unreadable};
use crate::disk::named;

/// What shells say where there is no such program.
const NOT_FOUND: i32 = 127;

/// A text handed to an editor.
#[derive(Debug, Clone)]
pub struct Sheet {
    path: PathBuf,
    /// As it was handed over.
    written: Vec<u8>,
}

impl Sheet {
    /// Puts `text` into a new file in `directory`, 0600. Blocking.
    pub fn put(directory: &Path, text: &str) -> Result<Self, DiskError> {
        durable::ensure_directory(directory)?;
        // By its name editors know what it is.
        let path = directory.join(format!("{}.md", Uuid::random()));
        let mut written = text.as_bytes().to_vec();
        if !written.is_empty() {
            written.push(b'\n');
        }
        durable::create(&path, &written)?;
        Ok(Self { path, written })
    }

    /// `editor`, which may have arguments and variables before it, on that file; by the shell, as other
    /// programs have it. The shell does not stay between: what ends its process ends the editor.
    pub fn command(&self, editor: &OsStr) -> Command {
        let mut line = OsString::from("exec env ");
        line.push(editor);
        line.push(" \"$@\"");
        let mut command = Command::new("sh");
        command.kill_on_drop(true).arg("-c").arg(line).arg(editor).arg(&self.path);
        command
    }

    /// The text as it is now, and removes the file; none if nothing was changed. Blocking.
    ///
    /// # Errors
    /// Why the text can't be taken, in words. What there is of it stays.
    pub fn take(&self) -> Result<Option<String>, String> {
        let bytes = named::read(&self.path, 4 * MAX_TEXT).map_err(|why| match why {
            Unreadable::Missing => "its file is gone".to_owned(),
            why => format!("{}: {why}", self.shown()),
        })?;
        if bytes == self.written {
            self.remove();
            return Ok(None);
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", self.shown()))?;
        let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.ends_with('\n') {
            text.pop();
        }
        if text.len() > MAX_TEXT {
            return Err(format!("{} is more text than can ever be sent", self.shown()));
        }
        self.remove();
        Ok(Some(text))
    }

    /// Removes the file, unless something else than was handed over stands in it; then where that is.
    /// Blocking.
    pub fn drop_unless_changed(&self) -> Option<String> {
        match named::read(&self.path, self.written.len()) {
            Ok(bytes) if bytes == self.written => self.remove(),
            Err(Unreadable::Missing) => {}
            _ => return Some(self.shown()),
        }
        None
    }

    fn remove(&self) {
        if let Err(error) = durable::unlink(&self.path) {
            tracing::warn!(%error, "removing an editor's file");
        }
    }

    /// Its path, safe to print.
    fn shown(&self) -> String {
        durable::shown(&self.path).to_string()
    }
}

/// Why what an editor did is not taken; none if it ended as it should.
pub fn failed(editor: &OsStr, status: ExitStatus) -> Option<String> {
    let editor = text::line(&*editor.to_string_lossy());
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(NOT_FOUND), _) => Some(format!("there is no `{editor}`; set VISUAL or EDITOR")),
        (Some(code), _) => Some(format!("`{editor}` ended with {code}")),
        (None, Some(signal)) => Some(format!("`{editor}` was ended by signal {signal}")),
        (None, None) => Some(format!("`{editor}` ended, and nothing says how")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(text: &str) -> (tempfile::TempDir, Sheet) {
        let dir = tempfile::tempdir().unwrap();
        let sheet = Sheet::put(&dir.path().join("edit"), text).unwrap();
        (dir, sheet)
    }

    #[test]
    fn the_file_is_private_and_goes_once_its_text_is_taken() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, sheet) = sheet("one\ntwo");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&sheet.path), mode(sheet.path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(std::fs::read(&sheet.path).unwrap(), b"one\ntwo\n");
        std::fs::write(&sheet.path, "one\r\nthree\r\n\r\n").unwrap();
        assert_eq!(sheet.take(), Ok(Some("one\nthree\n".to_owned())), "a last line's end is the editor's");
        assert!(!sheet.path.exists());
    }

    #[test]
    fn what_was_not_changed_is_no_text_and_goes() {
        for text in ["", "one"] {
            let (_dir, sheet) = sheet(text);
            assert_eq!(sheet.take(), Ok(None));
            assert!(!sheet.path.exists());
        }
    }

    #[test]
    fn what_can_not_be_taken_stays_and_is_named() {
        let large = "x".repeat(MAX_TEXT + 1);
        let larger = "x".repeat(4 * MAX_TEXT + 1);
        for (bytes, why) in [
            (&b"\xff\xfe"[..], "is not UTF-8"),
            (large.as_bytes(), "is more text than can ever be sent"),
            (larger.as_bytes(), "more than"),
        ] {
            let (_dir, sheet) = sheet("one");
            std::fs::write(&sheet.path, bytes).unwrap();
            let refused = sheet.take().unwrap_err();
            assert!(refused.contains(why) && refused.contains(&sheet.shown()), "{refused}");
            assert_eq!(sheet.drop_unless_changed(), Some(sheet.shown()));
            assert_eq!(std::fs::read(&sheet.path).unwrap(), bytes);
        }
        let (_dir, sheet) = sheet("one");
        std::fs::remove_file(&sheet.path).unwrap();
        assert_eq!(sheet.take(), Err("its file is gone".to_owned()));
        assert_eq!(sheet.drop_unless_changed(), None);
        std::fs::create_dir(&sheet.path).unwrap();
        assert!(sheet.take().unwrap_err().contains("a directory"));
    }

    #[test]
    fn how_an_editor_failed_is_said_without_its_controls() {
        let code = |code: i32| ExitStatus::from_raw(code << 8);
        let why = |status| failed(OsStr::new("e\u{1b}d -w"), status);
        assert_eq!(why(code(0)), None);
        assert_eq!(why(code(1)).unwrap(), "`e␛d -w` ended with 1");
        assert_eq!(why(code(127)).unwrap(), "there is no `e␛d -w`; set VISUAL or EDITOR");
        assert_eq!(why(ExitStatus::from_raw(9)).unwrap(), "`e␛d -w` was ended by signal 9");
    }
}
