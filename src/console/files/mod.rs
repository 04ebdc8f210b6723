//! Files that go along with a text: named in it by `@` and a path, offered while that is typed, and
//! shown as they will stand in the record.
//!
//! `mention` is pure. `list` and `look` read, and so run beside the loop, one of each at a time: a
//! directory may be large, and a disk slow.

pub mod list;
pub mod look;
pub mod mention;

use std::path::{Path, PathBuf};

use super::drafts::DraftKey;
use crate::chief::staff::Office;
use crate::contract::Kind;
use crate::disk::layout;
use list::Listing;
use look::Look;

/// Where paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory that relative ones begin at; absolute.
    pub from: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

impl Place {
    /// Where the path that was typed leads; none for `~` where there is no home.
    fn resolve(&self, typed: &str) -> Option<PathBuf> {
        let path = match typed.strip_prefix('~') {
            Some("") => self.home.clone()?,
            Some(rest) if rest.starts_with('/') => self.home.as_ref()?.join(rest.trim_start_matches('/')),
            _ => self.from.join(Path::new(typed)),
        };
        Some(layout::normalize(&path))
    }
}

/// What is written, and to whom: what a record depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Lead and ask.
    pub key: DraftKey,
    /// Where its paths begin.
    pub place: Place,
}

impl Writing {
    fn kind(&self) -> Kind {
        if self.key.ask.is_some() { Kind::ChiefReply } else { Kind::ChiefMessage }
    }
}

/// Something to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The paths that may be meant with what is typed.
    List(Writing, String),
    /// The files of this text, and what its record takes.
    Look(Writing, String),
}

/// What was found out.
#[derive(Debug)]
pub enum Answer {
    /// Of what is typed.
    List(DraftKey, Listing),
    /// Of a text.
    Look(DraftKey, Look),
}

impl Question {
    /// Finds it out, under the limits configured now. Blocking, for as long as the disk takes.
    pub fn answer(self, office: &Office) -> Answer {
        match self {
            Self::List(writing, typed) => {
                let listing = list::list(&writing, typed, office);
                Answer::List(writing.key, listing)
            }
            Self::Look(writing, text) => {
                let look = look::look(&writing, text, office);
                Answer::Look(writing.key, look)
            }
        }
    }
}

/// A size as people read it.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64;
    let mut unit = "";
    for next in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SessionId;
    use crate::disk::AgentDir;

    /// An office whose agent directory is in `dir`.
    pub(super) fn office(dir: &Path) -> Office {
        let agent_dir = AgentDir::resolve(Some(dir.join(".agent").as_os_str()), dir);
        let runtime = agent_dir.runtime("/run/h.sock".as_ref());
        let session = SessionId::new("chief").unwrap();
        Office::new(agent_dir, runtime, session, std::time::Instant::now())
    }

    /// A message whose paths begin in `dir`, which is the home directory, too.
    pub(super) fn writing(dir: &Path) -> Writing {
        let key = DraftKey { session: SessionId::new("lead").unwrap(), ask: None };
        Writing { key, place: Place { from: dir.to_owned(), home: Some(dir.to_owned()) } }
    }

    #[test]
    fn paths_begin_where_one_stands_or_at_home() {
        let place = Place { from: "/w/a".into(), home: Some("/h".into()) };
        let resolve = |typed| place.resolve(typed).unwrap();
        assert_eq!(resolve("x/../y"), Path::new("/w/a/y"));
        assert_eq!(resolve("../y"), Path::new("/w/y"));
        assert_eq!(resolve("/y"), Path::new("/y"));
        assert_eq!(
            (resolve("~"), resolve("~/x"), resolve("~//x")),
            ("/h".into(), "/h/x".into(), "/h/x".into())
        );
        assert_eq!(resolve("~x"), Path::new("/w/a/~x"));
        assert_eq!(Place { home: None, ..place }.resolve("~/x"), None);
    }

    #[test]
    fn sizes_are_read_at_a_glance() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, (1 << 40) * 5000];
        assert_eq!(sizes.map(size), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5000.0 TiB"]);
    }
}
