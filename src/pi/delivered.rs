//! Whether a message stands in a session file: the only proof that it was delivered.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use memchr::memmem;
use rustix::io::Errno;
use serde::Deserialize;

use super::session::{HeaderError, open};
use crate::contract::Uuid;

/// Longest line looked into; a delivered message takes a tenth of this.
const MAX_LINE: u64 = 256 * 1024;

/// Whether the session file at `path` holds a delivered message of any of `ids`; gives those it
/// holds. Reads the file from its beginning to its end, once.
pub fn delivered(path: &Path, ids: &[Uuid]) -> Result<Vec<Uuid>, HeaderError> {
    let (file, _) = open(path)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let finder = memmem::Finder::new(b"pi-herdsman-");
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Ok(found),
            Ok(_) => {}
            Err(error) => {
                return Err(HeaderError::Unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
            }
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE {
            // No message of ours is that long: passed over to its end.
            if skip_line(&mut reader).is_err() {
                return Ok(found);
            }
            continue;
        }
        if finder.find(&line).is_some()
            && let Some(id) = delivered_id(&line)
            && ids.contains(&id)
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match memchr::memchr(b'\n', buffer) {
            Some(at) => {
                reader.consume(at + 1);
                return Ok(());
            }
            None => {
                let length = buffer.len();
                reader.consume(length);
            }
        }
    }
}

fn delivered_id(line: &[u8]) -> Option<Uuid> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(rename = "customType")]
        custom_type: &'a str,
        details: Details<'a>,
    }
    #[derive(Deserialize)]
    struct Details<'a> {
        id: &'a str,
    }
    let text = String::from_utf8_lossy(line);
    let entry: Entry<'_> = serde_json::from_str(text.trim_end()).ok()?;
    (entry.kind == "custom_message" && entry.custom_type.starts_with("pi-herdsman-"))
        .then(|| Uuid::parse(entry.details.id))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_delivered_message_is_proof() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let [told, mentioned, torn, absent] = [(); 4].map(|()| Uuid::random());
        let entry = |id: Uuid, kind: &str| {
            format!(
                r#"{{"type":"{kind}","customType":"pi-herdsman-chief_reply","content":"x","display":true,"details":{{"id":"{id}"}},"id":"00000001","parentId":null}}"#
            )
        };
        let long = format!(r#"{{"type":"message","text":"{}"}}"#, "y".repeat(600_000));
        let text = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"s\"}}\n{long}\n{}\n{}\n{}",
            entry(told, "custom_message"),
            entry(mentioned, "custom"),
            &entry(torn, "custom_message")[..120],
        );
        std::fs::write(&path, text).unwrap();
        assert_eq!(delivered(&path, &[absent, told, mentioned, torn]).unwrap(), [told]);
        assert!(delivered(&dir.path().join("gone"), &[told]).is_err());
    }
}
