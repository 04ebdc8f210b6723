//! Finding Herdr's socket and our own place in it, after the section "Finding it" of
//! `docs/herdr.md`. Pure: the environment is a function.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::contract::Untrusted;

/// The socket's path, and what led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Exactly as found, neither normalised nor made absolute: leads and Chief hash this spelling
    /// to name the directory they share.
    pub path: OsString,
    /// Which of the places named it.
    pub origin: Origin,
}

/// What named the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `--socket`.
    Option,
    /// `HERDR_SOCKET_PATH`.
    Variable,
    /// `HERDR_SESSION`, with its value.
    Session(OsString),
    /// Nothing: Herdr's own default place.
    Default,
}

/// Why there is no path to try at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLocated {
    /// `HERDR_SESSION` is not a plain name.
    #[error("HERDR_SESSION is `{}`, which can't be the name of a session", show(.0))]
    SessionName(OsString),
    /// No variable leads to a directory of the user.
    #[error(
        "no Herdr socket to look for: --socket, HERDR_SOCKET_PATH, XDG_CONFIG_HOME and HOME are all unset"
    )]
    NoHome,
}

impl NotLocated {
    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::SessionName(_) => "Correct it or use --socket",
            Self::NoHome => "Use --socket",
        }
    }
}

/// Finds the socket's path from `--socket` and the environment. An empty variable counts as unset.
///
/// # Errors
/// [`NotLocated`]; whether anything listens there is for the client to find out.
pub fn locate(option: Option<&OsStr>, env: impl Fn(&str) -> Option<OsString>) -> Result<Located, NotLocated> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(path) = option {
        return Ok(Located { path: path.to_owned(), origin: Origin::Option });
    }
    if let Some(path) = var("HERDR_SOCKET_PATH") {
        return Ok(Located { path, origin: Origin::Variable });
    }
    let config = match var("XDG_CONFIG_HOME") {
        Some(config) => config,
        None => in_directory(var("HOME").ok_or(NotLocated::NoHome)?, ".config"),
    };
    let herdr = in_directory(config, "herdr");
    match var("HERDR_SESSION") {
        Some(name) => {
            let is_plain = name != "." && name != ".." && !name.as_encoded_bytes().contains(&b'/');
            if !is_plain {
                return Err(NotLocated::SessionName(name));
            }
            let mut path = in_directory(herdr, "sessions/");
            path.push(&name);
            path.push("/herdr.sock");
            Ok(Located { path, origin: Origin::Session(name) })
        }
        None => Ok(Located { path: in_directory(herdr, "herdr.sock"), origin: Origin::Default }),
    }
}

/// Joined as text, as a shell script would: `Path::join` would be no different here, but says less
/// about the spelling being what counts.
fn in_directory(mut directory: OsString, name: &str) -> OsString {
    directory.push("/");
    directory.push(name);
    directory
}

impl Located {
    /// The path, for opening.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }

    /// The path as the text that is hashed; bytes that are no UTF-8 become U+FFFD, as the other
    /// side reads its environment.
    pub fn text(&self) -> Untrusted {
        Untrusted::from_bytes_lossy(self.path.as_encoded_bytes())
    }

    /// The name of the Herdr session for a headline: `HERDR_SESSION`, else the directory under
    /// `sessions`, else `default`.
    pub fn session_name(&self) -> Untrusted {
        let path = Path::new(&self.path);
        let directory = path.parent();
        let under_sessions = directory
            .filter(|directory| directory.parent().and_then(Path::file_name) == Some(OsStr::new("sessions")))
            .and_then(Path::file_name);
        match (&self.origin, under_sessions) {
            (Origin::Session(name), _) => Untrusted::from_bytes_lossy(name.as_encoded_bytes()),
            (_, Some(name)) => Untrusted::from_bytes_lossy(name.as_encoded_bytes()),
            _ => Untrusted::from("default"),
        }
    }

    /// What was looked for and why, in one line, for when nothing is there.
    pub fn looked_for(&self) -> String {
        let path = self.text();
        let why = match &self.origin {
            Origin::Option => "named by --socket".to_owned(),
            Origin::Variable => "named by HERDR_SOCKET_PATH".to_owned(),
            Origin::Session(name) => format!("of HERDR_SESSION={}", show(name)),
            Origin::Default => "the default, as HERDR_SOCKET_PATH and HERDR_SESSION are not set".to_owned(),
        };
        format!("{} ({why})", path.escaped())
    }
}

/// Where in Herdr this program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneContext {
    /// `HERDR_PANE_ID`.
    pub pane: String,
    /// `HERDR_TAB_ID`.
    pub tab: String,
    /// `HERDR_WORKSPACE_ID`.
    pub workspace: String,
}

/// Why this program has no pane to be listed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPane {
    /// `HERDR_ENV` is not `1`.
    OutsideHerdr,
    /// The pane's foreground program is tmux, whatever runs inside it.
    InsideTmux,
    /// A variable is missing, empty or no text.
    Missing(&'static str),
}

impl fmt::Display for NoPane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideHerdr => f.write_str("not started in a Herdr pane; start it in one"),
            Self::InsideTmux => {
                f.write_str("started inside tmux, which hides it from Herdr; start it in a pane without tmux")
            }
            Self::Missing(name) => write!(f, "Herdr's variable {name} is missing; start it in a fresh pane"),
        }
    }
}

/// Our pane, from the environment Herdr gives to what it starts.
///
/// # Errors
/// [`NoPane`] where there is none on which Herdr could see us.
pub fn pane_context(env: impl Fn(&str) -> Option<OsString>) -> Result<PaneContext, NoPane> {
    if env("HERDR_ENV").is_none_or(|value| value != "1") {
        return Err(NoPane::OutsideHerdr);
    }
    if env("TMUX").is_some_and(|value| !value.is_empty()) {
        return Err(NoPane::InsideTmux);
    }
    let var = |name: &'static str| {
        let value = env(name).and_then(|value| value.into_string().ok());
        value.filter(|value| !value.trim().is_empty()).ok_or(NoPane::Missing(name))
    };
    Ok(PaneContext {
        pane: var("HERDR_PANE_ID")?,
        tab: var("HERDR_TAB_ID")?,
        workspace: var("HERDR_WORKSPACE_ID")?,
    })
}

fn show(text: &OsStr) -> String {
    Untrusted::from_bytes_lossy(text.as_encoded_bytes()).first_units(160).escaped().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn the_first_place_that_names_a_socket_wins() {
        let all = [
            ("HERDR_SOCKET_PATH", "/run//h/./herdr.sock"),
            ("HERDR_SESSION", "work"),
            ("XDG_CONFIG_HOME", "/cfg"),
            ("HOME", "/home/op"),
        ];
        for (from, option, path) in [
            (0, Some("rel/../x.sock"), "rel/../x.sock"),
            (0, None, "/run//h/./herdr.sock"),
            (1, None, "/cfg/herdr/sessions/work/herdr.sock"),
            (3, None, "/home/op/.config/herdr/herdr.sock"),
        ] {
            let found = locate(option.map(OsStr::new), env(&all[from..])).unwrap();
            assert_eq!(found.path, path, "spelling kept");
        }
        let found = locate(None, env(&[("HERDR_SESSION", "work"), ("HOME", "/h/")])).unwrap();
        assert_eq!(found.path, "/h//.config/herdr/sessions/work/herdr.sock");
        assert_eq!(found.session_name(), "work");
        let empty =
            [("HERDR_SOCKET_PATH", ""), ("HERDR_SESSION", ""), ("XDG_CONFIG_HOME", ""), ("HOME", "/h")];
        let found = locate(None, env(&empty)).unwrap();
        assert_eq!(found.path, "/h/.config/herdr/herdr.sock");
        assert_eq!(found.origin, Origin::Default);
        assert_eq!(found.session_name(), "default");
    }

    #[test]
    fn no_path_is_made_up() {
        assert_eq!(locate(None, env(&[])), Err(NotLocated::NoHome));
        for name in ["../other", ".", "..", "a/b"] {
            let vars = [("HERDR_SESSION", name), ("HOME", "/h")];
            assert_eq!(locate(None, env(&vars)), Err(NotLocated::SessionName(name.into())));
        }
    }

    #[test]
    fn what_was_looked_for_can_be_shown() {
        let vars = [("HERDR_SOCKET_PATH", "/tmp/\u{1b}]0;x\u{7}")];
        let text = locate(None, env(&vars)).unwrap().looked_for();
        assert_eq!(text, "/tmp/\\u{1b}]0;x\\u{7} (named by HERDR_SOCKET_PATH)");
    }

    #[test]
    fn a_pane_needs_all_of_herdrs_variables_and_no_tmux() {
        let pane = [
            ("HERDR_ENV", "1"),
            ("HERDR_PANE_ID", "w1:p1"),
            ("HERDR_TAB_ID", "w1:t1"),
            ("HERDR_WORKSPACE_ID", "w1"),
        ];
        let context = pane_context(env(&pane)).unwrap();
        assert_eq!((&*context.pane, &*context.tab, &*context.workspace), ("w1:p1", "w1:t1", "w1"));
        assert_eq!(pane_context(env(&pane[1..])), Err(NoPane::OutsideHerdr));
        assert_eq!(pane_context(env(&pane[..3])), Err(NoPane::Missing("HERDR_WORKSPACE_ID")));
        let tmux = [&pane[..], &[("TMUX", "/tmp/tmux-0/default,1,0")]].concat();
        assert_eq!(pane_context(env(&tmux)), Err(NoPane::InsideTmux));
    }
}
