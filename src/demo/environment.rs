//! What the demo's children find in their environment: nothing that leads out of the demo.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables by which a child would find the user's own Herdr, agents or headman, or take itself to
/// be somewhere else than it is.
const PREFIXES: [&str; 5] = ["HERDR_", "PI_", "XDG_", "HEADMAN_", "TMUX"];
/// What names programs, or where one is, and is kept though it lies in the home directory.
const KEPT: [&str; 8] = ["PATH", "PWD", "SHELL", "EDITOR", "VISUAL", "PAGER", "TERMINFO", "TERMINFO_DIRS"];

/// The environment `all` without what would lead out of the demo: the above, and everything that
/// names a place in the user's home directory. `HOME` itself goes too.
pub fn scrubbed(all: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let all: Vec<_> = all.into_iter().collect();
    let home = all.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.clone());
    // A home at the root would make every path one of it.
    let home = home.filter(|home| Path::new(home).components().count() > 1);
    all.into_iter()
        .filter(|(name, value)| {
            let text = name.to_string_lossy();
            let leads_out = PREFIXES.iter().any(|prefix| text.starts_with(prefix)) || name == "HOME";
            let in_home = home.as_deref().is_some_and(|home| names_place_in(value, home));
            !leads_out && (!in_home || KEPT.iter().any(|kept| name == kept))
        })
        .collect()
}

fn names_place_in(value: &OsStr, home: &OsStr) -> bool {
    Path::new(value).starts_with(home)
}

/// What a lead process gets of the environment `all`: only what any program needs.
pub fn bare(all: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    const NEEDED: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM"];
    all.into_iter().filter(|(name, _)| NEEDED.iter().any(|needed| name == needed)).collect()
}

/// `value` as one word for a shell.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&str, &str)]) -> Vec<String> {
        let all = all.iter().map(|(name, value)| (name.into(), value.into()));
        scrubbed(all).into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_leads_out_of_the_demo() {
        let kept = names(&[
            ("HERDR_SOCKET_PATH", "/run/h.sock"),
            ("HERDR_AGENT", "pi"),
            ("PI_CODING_AGENT_DIR", "/srv/pi"),
            ("XDG_STATE_HOME", "/srv/state"),
            ("HEADMAN_STATE_DIR", "/srv/headman"),
            ("TMUX", "/tmp/tmux-1/default,1,0"),
            ("TMUX_PANE", "%1"),
            ("HOME", "/home/op"),
            ("SOME_CONFIG", "/home/op/.config/some"),
            ("OTHER_CONFIG", "/home/operator/.config"),
            ("PATH", "/home/op/bin:/usr/bin"),
            ("EDITOR", "/home/op/bin/ed"),
            ("TERM", "xterm"),
            ("LANG", "en_US.UTF-8"),
        ]);
        assert_eq!(kept, ["OTHER_CONFIG", "PATH", "EDITOR", "TERM", "LANG"]);
        assert_eq!(names(&[("HOME", "/"), ("A", "/srv/a")]), ["A"]);
    }

    #[test]
    fn a_value_stays_one_word() {
        assert_eq!(quoted("/tmp/a b"), "'/tmp/a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
