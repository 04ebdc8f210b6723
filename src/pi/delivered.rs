//! Whether a message stands in a session file: the only proof that it was delivered.

use std::fs::File;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;

use super::session::{HeaderError, Stamp, open, read_at};
use crate::contract::Uuid;

/// Longest line looked into; a delivered message takes a tenth of this.
const MAX_LINE: usize = 256 * 1024;
/// Bytes read at once.
const CHUNK: usize = 1 << 20;
/// Bytes before the place where looking goes on that must still be the same.
const ANCHOR: u64 = 32;

/// Whether the session file at `path` holds a delivered message of any of `ids`; gives those it
/// holds. Reads the file from its beginning to its end, once.
///
/// # Errors
/// Those of the file.
pub fn delivered(path: &Path, ids: &[Uuid]) -> Result<Vec<Uuid>, HeaderError> {
    let mut found = Vec::new();
    let mut follower = Follower::from_beginning(path);
    let mut take = |id| {
        if ids.contains(&id) && !found.contains(&id) {
            found.push(id);
        }
    };
    while follower.look(usize::MAX, &mut take)? {}
    Ok(found)
}

/// Looks for delivered messages in one session file, in what was appended since the last look. A
/// file that was replaced or written anew is looked through from its beginning.
#[derive(Debug, Clone)]
pub struct Follower {
    path: PathBuf,
    /// What the file was at the last look, if all of it was looked through.
    seen: Option<Stamp>,
    file: Option<Stamp>,
    /// Where to go on: a line begins there, unless one is being passed over.
    offset: u64,
    /// What stood right before it.
    anchor: Vec<u8>,
    /// Whether the line that goes on at `offset` is no message: too long, or begun before we looked.
    passing: bool,
    read: u64,
}

impl Follower {
    /// One for which everything in the file at `path` is new.
    pub fn from_beginning(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: None,
            file: None,
            offset: 0,
            anchor: Vec::new(),
            passing: false,
            read: 0,
        }
    }

    /// One for which nothing in it is new; a file that can't be looked at is taken for empty.
    pub fn from_end(path: &Path) -> Self {
        let mut follower = Self::from_beginning(path);
        if let Ok((file, stamp)) = open(path)
            && follower.anchor_at(&file, stamp.size()).is_ok()
        {
            follower.passing = follower.anchor.last().is_some_and(|byte| *byte != b'\n');
            follower.file = Some(stamp);
        }
        follower
    }

    /// Bytes of lines read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Looks through what is new, `budget` bytes or a little more, and gives the id of every message
    /// found there; says whether there is more to look through. An unchanged file is not opened.
    ///
    /// # Errors
    /// Those of the file.
    pub fn look(&mut self, budget: usize, mut found: impl FnMut(Uuid)) -> Result<bool, HeaderError> {
        if self.seen.is_some() && self.seen == Some(Stamp::of_path(&self.path)?) {
            return Ok(false);
        }
        let (file, stamp) = open(&self.path)?;
        if !self.goes_on(&file, &stamp)? {
            *self = Self { read: self.read, ..Self::from_beginning(&self.path) };
        }
        self.file = Some(stamp);
        let finder = memmem::Finder::new(b"pi-herdsman-");
        let mut left = budget;
        loop {
            let rest = usize::try_from(stamp.size() - self.offset).unwrap_or(usize::MAX);
            let bytes = read_at(&file, self.offset, rest.min(CHUNK))?;
            self.read += bytes.len() as u64;
            left = left.saturating_sub(bytes.len());
            let is_end = bytes.len() >= rest || bytes.is_empty();
            let mut begin = 0;
            for end in memchr::memchr_iter(b'\n', &bytes) {
                let line = &bytes[begin..end];
                begin = end + 1;
                if !std::mem::take(&mut self.passing)
                    && line.len() <= MAX_LINE
                    && finder.find(line).is_some()
                    && let Some(id) = delivered_id(line)
                {
                    found(id);
                }
            }
            if bytes.len() - begin > MAX_LINE {
                // No message of ours is that long.
                self.passing = true;
                begin = bytes.len();
            }
            let offset = self.offset + begin as u64;
            if is_end || left == 0 {
                self.anchor_at(&file, offset)?;
                self.seen = is_end.then_some(stamp);
                return Ok(!is_end);
            }
            self.offset = offset;
        }
    }

    /// Whether the file is the one looked at last, with something appended if anything.
    fn goes_on(&self, file: &File, stamp: &Stamp) -> Result<bool, HeaderError> {
        let Some(before) = &self.file else { return Ok(true) };
        if !stamp.is_of_same_file(before) || stamp.size() < self.offset {
            return Ok(false);
        }
        Ok(read_at(file, self.offset - self.anchor.len() as u64, self.anchor.len())? == self.anchor)
    }

    fn anchor_at(&mut self, file: &File, offset: u64) -> Result<(), HeaderError> {
        let length = offset.min(ANCHOR);
        self.anchor = read_at(file, offset - length, length as usize)?;
        self.offset = offset;
        Ok(())
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

    fn message(id: Uuid) -> String {
        format!(
            "{{\"type\":\"custom_message\",\"customType\":\"pi-herdsman-chief_reply\",\"details\":{{\"id\":\"{id}\"}}}}\n"
        )
    }

    fn append(path: &Path, text: &str) {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn look(follower: &mut Follower) -> Vec<Uuid> {
        let mut found = Vec::new();
        while follower.look(CHUNK, |id| found.push(id)).unwrap() {}
        found
    }

    #[test]
    fn only_what_was_appended_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let [before, torn, whole] = [(); 3].map(|()| Uuid::random());
        let filling = format!("{}\n", "y".repeat(999)).repeat(5_000);
        let text = format!("{}{filling}{}", message(before), &message(torn)[..60]);
        std::fs::write(&path, &text).unwrap();
        let mut all = Follower::from_beginning(&path);
        let mut new = Follower::from_end(&path);
        assert_eq!(look(&mut all), [before]);
        assert!(all.bytes_read() < text.len() as u64 + 1_000_000);
        assert_eq!((look(&mut new), new.bytes_read()), (vec![], 0));
        // The line that was begun before is completed: whose look began in its middle does not see it.
        let more = format!("{}{}", &message(torn)[60..], message(whole));
        append(&path, &more);
        let read = all.bytes_read();
        assert_eq!(look(&mut all), [torn, whole]);
        assert_eq!(all.bytes_read() - read, 60 + more.len() as u64);
        assert_eq!((look(&mut new), new.bytes_read()), (vec![whole], more.len() as u64));
        assert_eq!((look(&mut all), look(&mut new)), (vec![], vec![]));
        assert_eq!(all.bytes_read() - read, 60 + more.len() as u64, "nothing changed, nothing is read");
        // A look is bounded.
        let mut slow = Follower::from_beginning(&path);
        assert!(slow.look(1, |_| ()).unwrap());
        assert_eq!(slow.bytes_read(), CHUNK as u64);
    }

    #[test]
    fn a_file_that_is_another_or_written_anew_is_looked_through_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let [one, two, three] = [(); 3].map(|()| Uuid::random());
        let filling = "y".repeat(500);
        std::fs::write(&path, format!("{filling}\n{}", message(one))).unwrap();
        let mut follower = Follower::from_end(&path);
        // In place, and longer than before.
        std::fs::write(&path, format!("{}{filling}\n{filling}\n", message(two))).unwrap();
        assert_eq!(look(&mut follower), [two]);
        // Shorter.
        std::fs::write(&path, message(three)).unwrap();
        assert_eq!(look(&mut follower), [three]);
        // Another one, which begins as that one did.
        std::fs::write(dir.path().join("new"), message(three) + &message(one)).unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(look(&mut follower), [three, one]);
        std::fs::remove_file(&path).unwrap();
        assert!(follower.look(CHUNK, |_| ()).is_err());
        std::fs::write(&path, message(two)).unwrap();
        assert_eq!(look(&mut follower), [two], "it is there again");
    }

    #[test]
    fn a_line_longer_than_any_message_is_passed_over_wherever_it_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let [told, within] = [(); 2].map(|()| Uuid::random());
        for length in [MAX_LINE - 1_000, MAX_LINE + 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let long = message(within).replacen('{', &format!("{{\"pad\":\"{}\",", "z".repeat(length)), 1);
            std::fs::write(&path, format!("{long}{}", message(told))).unwrap();
            let expected = if length < MAX_LINE { vec![within, told] } else { vec![told] };
            assert_eq!(look(&mut Follower::from_beginning(&path)), expected, "{length}");
        }
    }
}
