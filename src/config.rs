//! `config.toml`: strict, so that a misspelt key is told instead of passed over.

pub mod paths;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::console::keymap::Keymap;
use crate::console::theme::{GlyphChoice, Theme};
use crate::contract::Untrusted;
use crate::disk::named;
use crate::turn::settings::TurnConfig;

pub use paths::{Environment, Places};

/// Largest configuration read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// What can be configured. Every key is optional.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether the console has itself listed in Herdr, so that leads can write up.
    pub register: bool,
    /// The theme's name; none for the default one.
    pub theme: Option<String>,
    /// Which glyphs the screen is made of.
    pub glyphs: GlyphChoice,
    /// Whether changes of the records are to be told by the system; else they are looked for.
    pub notifications: bool,
    /// How many days the journal keeps what was received and sent; for ever without.
    pub keep_days: Option<NonZeroU32>,
    /// By action the keys that shall do it; the console's keymap judges both.
    pub keys: BTreeMap<String, Vec<String>>,
    /// What holds for supervised turns.
    pub turn: TurnConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            register: true,
            theme: None,
            glyphs: GlyphChoice::Auto,
            notifications: true,
            keep_days: None,
            keys: BTreeMap::new(),
            turn: TurnConfig::default(),
        }
    }
}

/// Why the configuration can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file named by `--config` is not there.
    #[error("{} is not there", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// It can't be read.
    #[error("{} can't be read: {why}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// It says something that is not understood.
    #[error("{}, line {line}{}: {why}", path.display(), key.as_ref().map(|key| format!(", `{key}`")).unwrap_or_default())]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which key, where one stands on that line.
        key: Option<String>,
        /// What is wrong.
        why: String,
    },
    /// Keys or a theme that the console can't use.
    #[error("{}", self.mistakes().join("; "))]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is wrong, each beginning with its key.
        mistakes: Vec<String>,
    },
}

impl ConfigError {
    /// Everything that is wrong, each with the file.
    pub fn mistakes(&self) -> Vec<String> {
        match self {
            Self::Unusable { path, mistakes } => {
                mistakes.iter().map(|mistake| format!("{}: {mistake}", path.display())).collect()
            }
            other => vec![other.to_string()],
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "Create it, or leave --config out for the defaults",
            Self::Unreadable { .. } => "Make it readable, or name another file with --config",
            Self::Unusable { .. } => "Correct it; docs/guide.md lists themes and actions",
            Self::Invalid { .. } => "Correct or remove that line; docs/cli.md lists what can be configured",
        }
    }
}

impl Config {
    /// Reads the file at `path`. Where nothing stands there the defaults hold, unless the user
    /// named the file (`required`).
    ///
    /// # Errors
    /// [`ConfigError`], naming file, line and key.
    pub fn load(path: &Path, required: bool) -> Result<Self, ConfigError> {
        let unreadable = |why: String| ConfigError::Unreadable { path: path.to_owned(), why };
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(unreadable("it is not a regular file".to_owned())),
            Err(error) if is_absent(&error) && !required => return Ok(Self::default()),
            Err(error) if is_absent(&error) => return Err(ConfigError::Missing { path: path.to_owned() }),
            Err(error) => return Err(unreadable(error.to_string())),
        }
        // A link is followed: people keep their configuration elsewhere. A FIFO is not waited for,
        // even where one is put there just now.
        let bytes = named::read(path, MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            ConfigError::Invalid {
                path: path.to_owned(),
                line: line_at(error.as_bytes(), valid),
                key: None,
                why: "it is not UTF-8".to_owned(),
            }
        })?;
        let config = Self::parse(&text, path)?;
        let mistakes = config.mistakes();
        if mistakes.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Unusable { path: path.to_owned(), mistakes })
        }
    }

    /// What the console could not use of it, each beginning with its key.
    fn mistakes(&self) -> Vec<String> {
        let keys = Keymap::new(&self.keys).err().unwrap_or_default();
        let mut mistakes: Vec<String> = keys.iter().map(ToString::to_string).collect();
        if let Err(error) = Theme::load(self.theme.as_deref(), self.glyphs, |_| None) {
            mistakes.push(format!("theme: {error}"));
        }
        mistakes
    }

    /// Judges the form of `text`; `path` is only named in errors.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            // Both quote the file, which may hold anything.
            let shown = |text: String| Untrusted::from(text).escaped().to_string();
            ConfigError::Invalid {
                path: path.to_owned(),
                line: line_at(text.as_bytes(), at),
                key: key_at(text, at).map(shown),
                why: shown(error.message().trim().replace('\n', ", ")),
            }
        })
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The key of the line that holds the byte `at`, with its table before it.
fn key_at(text: &str, at: usize) -> Option<String> {
    let at = text.floor_char_boundary(at);
    let from = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[from..].lines().next()?.trim();
    if line.starts_with('[') {
        return Some(line.trim_matches(['[', ']']).trim().to_owned());
    }
    let key = line.split_once('=')?.0.trim().to_owned();
    let table = text[..from].lines().rev().map(str::trim).find(|line| line.starts_with('['));
    Some(match table {
        Some(table) => format!("{}.{key}", table.trim_matches(['[', ']']).trim()),
        None => key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("/c/config.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_configured_is_the_defaults() {
        assert_eq!(parse(""), Ok(Config::default()));
        assert!(Config::default().register);
    }

    #[test]
    fn what_is_configured_is_taken() {
        let config = parse(
            "register = false\nnotifications = false\ntheme = \"dusk\"\nglyphs = \"ascii\"\nkeep_days = 90\n[keys]\nreply = [\"R\", \"ctrl-r\"]\n",
        )
        .unwrap();
        assert!(!config.register && !config.notifications);
        assert_eq!(config.theme.as_deref(), Some("dusk"));
        assert_eq!(config.glyphs, GlyphChoice::Ascii);
        assert_eq!(config.keep_days, NonZeroU32::new(90));
        assert_eq!(config.keys["reply"], ["R", "ctrl-r"]);
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, place) in [
            ("theme = \"x\"\nregistr = true\n", "/c/config.toml, line 2, `registr`: "),
            ("\nregister = 1\n", "/c/config.toml, line 2, `register`: "),
            ("keep_days = 0\n", "/c/config.toml, line 1, `keep_days`: "),
            ("glyphs = \"emoji\"\n", "/c/config.toml, line 1, `glyphs`: "),
            ("[keys]\nreply = \"R\"\n", "/c/config.toml, line 2, `keys.reply`: "),
            ("register = true\n[sounds]\n", "/c/config.toml, line 2, `sounds`: "),
            ("register = true\nregister = true\n", "/c/config.toml, line 2, `register`: "),
            ("[turn]\nstall = 5\n", "/c/config.toml, line 2, `turn.stall`: "),
            (
                "[turn.adapters.codex]\nstall_ms = -1\n",
                "/c/config.toml, line 2, `turn.adapters.codex.stall_ms`: ",
            ),
            ("a b\n", "/c/config.toml, line 1: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(place), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn keys_and_theme_are_judged_as_the_console_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "theme = \"none\"\n[keys]\nfrob = []\nreply = [\"nokey\", \"n\"]\n").unwrap();
        let mistakes = Config::load(&path, false).unwrap_err().mistakes();
        let wanted = [
            "keys.frob: no such action",
            "keys.reply: `nokey`",
            "keys.reply: `n` collides",
            "keys.next-match: `n` collides with `n` of `reply` (Inbox)",
            "theme: no theme",
        ];
        assert_eq!(mistakes.len(), wanted.len(), "{mistakes:?}");
        for (mistake, wanted) in mistakes.iter().zip(wanted) {
            let begins = format!("{}: {wanted}", path.display());
            assert!(mistake.starts_with(&begins) && !mistake.contains('\n'), "{mistake}");
        }
    }

    #[test]
    fn a_missing_file_counts_only_where_it_was_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        assert_eq!(Config::load(&path, false), Ok(Config::default()));
        assert_eq!(Config::load(&path, true), Err(ConfigError::Missing { path: path.clone() }));
        assert!(matches!(Config::load(dir.path(), true), Err(ConfigError::Unreadable { .. })));
        std::fs::write(&path, b"theme = \"x\"\n# \xff\n").unwrap();
        let error = Config::load(&path, false).unwrap_err();
        assert!(matches!(error, ConfigError::Invalid { line: 2, .. }), "{error:?}");
    }
}
