//! A text with files in it, taken apart again: what is said, and the files that stand before it.

use super::text::Untrusted;

/// What stands between the last file and what is said.
const HEADINGS: [&[u8]; 3] = [b"Message:\n", b"Reply:\n", b"Question:\n"];
/// What a byte order mark takes: it counts in a file's size and is left out of the text.
const BYTE_ORDER_MARK: usize = 3;

/// The text of a message in its two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// What its writer says.
    pub said: Untrusted,
    /// The files that go along, as they stand in the text; none where there are none.
    pub attached: Option<Untrusted>,
}

impl Parts {
    /// Takes `text` apart. Where it is not exactly of the form that files are put into, all of it is
    /// said: a writer may begin so, too.
    pub fn of(text: &Untrusted) -> Self {
        match said_at(text.as_wtf8()) {
            Some((files, said)) => Self {
                said: Untrusted::from_wtf8(&text.as_wtf8()[said..]),
                attached: Some(Untrusted::from_wtf8(&text.as_wtf8()[..files])),
            },
            None => Self { said: text.clone(), attached: None },
        }
    }
}

/// Whether a text that begins with `begin` may have files in it.
pub fn may_have_files(begin: &Untrusted) -> bool {
    begin.as_wtf8().starts_with(b"<file ")
}

/// Where the files end, and where what is said begins.
fn said_at(text: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    loop {
        let end = at + section(&text[at..])?;
        at = end + text[end..].strip_prefix(b"\n\n").map(|_| 2)?;
        if let Some(heading) = HEADINGS.iter().find(|heading| text[at..].starts_with(heading)) {
            return Some((end, at + heading.len()));
        }
    }
}

/// How long the file's section is that `text` begins with. Content is not escaped, so where it ends is
/// told by the file's size alone.
fn section(text: &[u8]) -> Option<usize> {
    if !text.starts_with(b"<file ") {
        return None;
    }
    // Within names and paths it is escaped.
    let head = &text[..=text.iter().position(|byte| *byte == b'>')?];
    let mut attributes = std::str::from_utf8(head).ok()?.strip_prefix("<file name=\"")?.split('"');
    let _name = attributes.next()?;
    let mut next = attributes.next()?;
    let has_path = next == " path=";
    if has_path {
        let _path = attributes.next()?;
        next = attributes.next()?;
    }
    let (size, close) = (attributes.next()?, attributes.next()?);
    let is_number = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
    if next != " bytes=" || !is_number || attributes.next().is_some() || head.contains(&b'\n') {
        return None;
    }
    match close {
        " />" => return Some(head.len()),
        ">" if !has_path => {}
        _ => return None,
    }
    let size: usize = size.parse().ok()?;
    [Some(size), size.checked_sub(BYTE_ORDER_MARK)].into_iter().flatten().find_map(|size| {
        let content = head.len() + 1;
        let end = content.checked_add(size)?;
        let closes = text.get(head.len()) == Some(&b'\n') && text.get(end..)?.starts_with(b"\n</file>");
        closes.then(|| end + "\n</file>".len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>) {
        let Parts { said, attached } = Parts::of(&text.into());
        (said.to_str_lossy().into_owned(), attached.map(|it| it.to_str_lossy().into_owned()))
    }

    #[test]
    fn files_are_told_from_what_is_said_by_their_size() {
        let inline = "<file name=\"/a\" bytes=\"3\">\nabc\n</file>";
        let empty = "<file name=\"/a\" bytes=\"0\">\n\n</file>";
        let marked = "<file name=\"/a\" bytes=\"6\">\nabc\n</file>";
        let reference = "<file name=\"/b &gt; c\" path=\"/r\" bytes=\"9\" />";
        // Its content looks like the end of it.
        let hostile = "<file name=\"/a\" bytes=\"27\">\nx\n</file>\n\nMessage:\n<file y\n</file>";
        for files in [inline, empty, marked, reference, hostile] {
            for heading in ["Message", "Reply", "Question"] {
                for files in
                    [files.to_owned(), format!("{files}\n\n{inline}"), format!("{reference}\n\n{files}")]
                {
                    let text = format!("{files}\n\n{heading}:\nReply:\n\n<file />");
                    assert_eq!(parts(&text), ("Reply:\n\n<file />".to_owned(), Some(files)), "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_of_the_form_is_said() {
        for text in [
            "",
            "Message:\nx",
            "<file name=\"/a\" bytes=\"3\" />",
            "<file name=\"/a\" bytes=\"3\" />\n\nmessage:\nx",
            "<file name=\"/a\" bytes=\"3\" />\nMessage:\nx",
            "<file name=\"/a\" bytes=\"4\">\nabc\n</file>\n\nMessage:\nx",
            "<file name=\"/a\" bytes=\"-1\">\nabc\n</file>\n\nMessage:\nx",
            "<file name=\"/a\" bytes=\"18446744073709551615\">\nabc\n</file>\n\nMessage:\nx",
            "<file name=\"/a\" bytes=\"3\">",
            "<file name=\"/a\"",
            " <file name=\"/a\" bytes=\"3\" />\n\nMessage:\nx",
            "<file PLEASE READ: production is down\" />\n\nMessage:\nx",
            "<file name=\"a\nb\" bytes=\"3\" />\n\nMessage:\nx",
            "<file name=\"/a\" bytes=\"+3\" />\n\nMessage:\nx",
            "<file name=\"/a\" bytes=\"3\" other=\"\" />\n\nMessage:\nx",
            "<file name=\"/a\" path=\"/b\" bytes=\"3\">\nabc\n</file>\n\nMessage:\nx",
        ] {
            assert_eq!(parts(text), (text.to_owned(), None));
        }
    }
}
