//! The paths that may be meant with what is typed behind an `@`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Writing, mention};
use crate::chief::attach::{FileArgument, Form};
use crate::chief::staff::Office;

/// Most names offered.
const OFFERED: usize = 50;
/// Most names of a directory read.
const READ: usize = 200_000;
/// How long a directory is read.
const WITHIN: Duration = Duration::from_secs(2);

/// What is offered for what is typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// What is typed.
    pub typed: String,
    /// The names that begin so, in order.
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub more: usize,
    /// How many can't be mentioned: not UTF-8, or with control characters.
    pub unwritable: usize,
    /// Whether the directory was read in part only.
    pub cut: bool,
    /// Why the directory can't be read.
    pub problem: Option<String>,
}

impl Listing {
    /// Whether there is nothing to show of it.
    pub fn is_empty(&self) -> bool {
        // What is typed whole needs no list.
        let is_typed = |entry: &Entry| entry.path == self.typed && entry.what != What::Directory;
        let entries = if let [only] = &self.entries[..] { !is_typed(only) } else { !self.entries.is_empty() };
        !entries && self.more == 0 && self.problem.is_none() && !self.cut
    }
}

/// One name that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path, in the way it was begun.
    pub path: String,
    /// Its last part, to be shown.
    pub name: String,
    /// What stands there.
    pub what: What,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A directory; more of the path follows.
    Directory,
    /// A file, its size in bytes, and how it would stand in a message of its own.
    File(u64, Form),
    /// It can't be attached; why.
    Not(String),
}

/// Lists. Blocking.
pub(super) fn list(writing: &Writing, typed: String, office: &Office) -> Listing {
    let (before, begins) = typed.split_at(typed.rfind('/').map_or(0, |slash| slash + 1));
    let mut listing = Listing { typed: typed.clone(), ..Listing::default() };
    // `~` alone is the directory to come.
    if typed == "~" && writing.place.home.is_some() {
        listing.entries.push(Entry { path: "~".to_owned(), name: "~".to_owned(), what: What::Directory });
        return listing;
    }
    let Some(directory) = writing.place.resolve(before) else { return listing };
    for (name, link_or_directory) in names(&directory, begins, &mut listing) {
        let path = format!("{before}{name}");
        let at = directory.join(&name);
        let is_directory = link_or_directory && std::fs::metadata(&at).is_ok_and(|found| found.is_dir());
        let what = if is_directory { What::Directory } else { file(writing, &at, office) };
        listing.entries.push(Entry { path, name, what });
    }
    listing
}

/// The names to be offered, in order, and whether each is a link or a directory.
fn names(directory: &Path, begins: &str, listing: &mut Listing) -> Vec<(String, bool)> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Vec::new(),
        Err(error) => {
            listing.problem = Some(error.to_string());
            return Vec::new();
        }
    };
    let until = Instant::now() + WITHIN;
    // Capitals are asked for by a capital.
    let ignores_case = !begins.chars().any(char::is_uppercase);
    let folded = |name: &str| if ignores_case { name.to_lowercase() } else { name.to_owned() };
    let begins = folded(begins);
    let mut kept = BTreeMap::new();
    for (at, entry) in entries.enumerate() {
        if at >= READ || Instant::now() > until {
            listing.cut = true;
            break;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                listing.problem = Some(error.to_string());
                break;
            }
        };
        let name = match writable(entry.file_name()) {
            Ok(name) => name,
            Err(shown) => {
                listing.unwritable += usize::from(is_offered(&shown, &begins, folded));
                continue;
            }
        };
        if !is_offered(&name, &begins, folded) {
            continue;
        }
        let follow = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        kept.insert((name.to_lowercase(), name), follow);
        if kept.len() > OFFERED {
            kept.pop_last();
            listing.more += 1;
        }
    }
    kept.into_iter().map(|((_, name), follow)| (name, follow)).collect()
}

/// Hidden names only where a dot asks for them.
fn is_offered(name: &str, begins: &str, folded: impl Fn(&str) -> String) -> bool {
    folded(name).starts_with(begins) && (begins.starts_with('.') || !name.starts_with('.'))
}

/// The name as text, if a text can mention it; else what there is of it.
fn writable(name: OsString) -> Result<String, String> {
    let name = name.into_string().map_err(|name| name.to_string_lossy().into_owned())?;
    if mention::written(&name, true).is_some() { Ok(name) } else { Err(name) }
}

fn file(writing: &Writing, path: &Path, office: &Office) -> What {
    let file = FileArgument::new(path, writing.place.from.clone());
    match office.render(writing.kind(), &writing.key.session, &".".into(), &[file]) {
        Ok(rendered) => match rendered.files.first() {
            Some(file) => What::File(file.bytes, file.form),
            None => What::Not("it is not there".to_owned()),
        },
        Err(crate::chief::attach::AttachError::File { why, .. }) => What::Not(why.to_string()),
        Err(error) => What::Not(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::super::tests::{office, writing};
    use super::*;
    use crate::chief::attach::Why;

    fn listed(dir: &Path, typed: &str) -> Listing {
        list(&writing(dir), typed.to_owned(), &office(dir))
    }

    fn paths(listing: &Listing) -> Vec<&str> {
        listing.entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn what_begins_as_typed_is_offered_with_how_it_would_go_along() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &[u8]| std::fs::write(dir.path().join(name), content).unwrap();
        std::fs::create_dir(dir.path().join("Docs")).unwrap();
        put("Docs/a b.md", b"x");
        put("data.bin", b"a\0");
        put("deep.txt", &[b'x'; 9000]);
        put(".hidden", b"");
        put("other", b"");
        std::os::unix::fs::symlink("Docs", dir.path().join("dl")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("dead")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("ds")).unwrap();
        let listing = listed(dir.path(), "d");
        let whats: Vec<(&str, &What)> =
            listing.entries.iter().map(|entry| (entry.path.as_str(), &entry.what)).collect();
        let not = |why: &str| What::Not(why.to_owned());
        assert_eq!(
            whats,
            [
                ("data.bin", &What::File(2, Form::Reference(Why::NotText))),
                ("dead", &not("it is not there")),
                ("deep.txt", &What::File(9000, Form::Reference(Why::NoRoom))),
                ("dl", &What::Directory),
                ("Docs", &What::Directory),
                ("ds", &not("it is a socket, not a regular file")),
            ]
        );
        drop(socket);
        assert_eq!(paths(&listed(dir.path(), "D")), ["Docs"], "a capital is meant");
        assert_eq!(paths(&listed(dir.path(), "Docs/")), ["Docs/a b.md"]);
        assert_eq!(listed(dir.path(), "Docs/").entries[0].what, What::File(1, Form::Inline));
        assert_eq!(paths(&listed(dir.path(), ".")), [".hidden"]);
        assert_eq!(listed(dir.path(), "").entries.len(), 7, "nothing hidden");
        assert_eq!(paths(&listed(dir.path(), "~")), ["~"]);
        assert_eq!(paths(&listed(dir.path(), "~/oth")), ["~/other"]);
        let absolute = format!("{}/oth", dir.path().display());
        assert_eq!(paths(&listed(dir.path(), &absolute)), [format!("{}/other", dir.path().display())]);
        for nothing in ["none", "nowhere/x", "other/x", "~nobody/", "dead/"] {
            let listing = listed(dir.path(), nothing);
            assert!(listing.is_empty() && listing.problem.is_none(), "{nothing}: {listing:?}");
        }
    }

    #[test]
    fn what_is_typed_whole_needs_no_list() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one"), "").unwrap();
        assert!(listed(dir.path(), "one").is_empty() && !listed(dir.path(), "on").is_empty());
        std::fs::write(dir.path().join("one more"), "").unwrap();
        assert!(!listed(dir.path(), "one").is_empty());
    }

    #[test]
    fn names_that_no_text_can_hold_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for name in [&b"a\x1b[2J"[..], b"a\n", b"a\xff", b"b\xff", b"ok"] {
            std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(name)), "").unwrap();
        }
        let listing = listed(dir.path(), "a");
        assert_eq!((listing.unwritable, listing.entries.len()), (3, 0));
    }

    #[test]
    fn of_a_large_directory_the_first_names_are_offered_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let many = 3_000;
        for number in 0..many {
            std::fs::write(dir.path().join(format!("f{number:05}")), "").unwrap();
        }
        let listing = listed(dir.path(), "f");
        assert_eq!((listing.entries.len(), listing.more, listing.cut), (OFFERED, many - OFFERED, false));
        assert_eq!((paths(&listing)[0], paths(&listing)[OFFERED - 1]), ("f00000", "f00049"));
        assert_eq!(paths(&listed(dir.path(), "f02999")), ["f02999"]);
    }
}
