//! `config.toml`: strict, so that a misspelt key is told instead of passed over.

pub mod paths;
pub mod supervisor;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::console::keymap::Keymap;
use crate::console::mouse::MouseChoice;
use crate::console::notify;
use crate::console::snippets::Snippets;
use crate::console::theme::{GlyphChoice, Theme};
use crate::contract::Untrusted;
use crate::disk::named;
use crate::turn::settings::TurnConfig;

pub use paths::{Environment, Places};
pub use supervisor::Supervisor;

/// Largest configuration read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// A configuration with every key, commented out.
pub const TEMPLATE: &str = include_str!("../assets/config.toml");

/// What can be configured. Every key is optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether the terminal reports the mouse.
    pub mouse: MouseChoice,
    /// Notices outside the screen.
    pub notify: notify::Settings,
    /// By number the texts that a key inserts; the console's snippets judge both.
    pub snippets: BTreeMap<String, String>,
    /// By action the keys that shall do it; the console's keymap judges both.
    pub keys: BTreeMap<String, Vec<String>>,
    /// What holds for supervised turns.
    pub turn: TurnConfig,
    /// The supervisor beside the leads; off without.
    pub supervisor: Option<Supervisor>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            register: true,
            theme: None,
            glyphs: GlyphChoice::Auto,
            notifications: true,
            keep_days: None,
            mouse: MouseChoice::Auto,
            notify: notify::Settings::default(),
            snippets: BTreeMap::new(),
            keys: BTreeMap::new(),
            turn: TurnConfig::default(),
            supervisor: None,
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
        mistakes.extend(Snippets::new(&self.snippets).err().unwrap_or_default());
        if let Err(error) = Theme::load(self.theme.as_deref(), self.glyphs, |_| None) {
            mistakes.push(format!("theme: {error}"));
        }
        mistakes.extend(self.supervisor.iter().flat_map(Supervisor::mistakes));
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
            "mouse = true\nregister = false\nnotifications = false\ntheme = \"dusk\"\nglyphs = \"ascii\"\nkeep_days = 90\n[keys]\nreply = [\"R\", \"ctrl-r\"]\n[snippets]\n1 = \"Go on.\"\n[notify]\nfinished = true\nquiet = \"22:00-07:30\"\nterminal = \"osc9\"\n",
        )
        .unwrap();
        assert!(!config.register && !config.notifications);
        assert_eq!(config.theme.as_deref(), Some("dusk"));
        assert_eq!(config.glyphs, GlyphChoice::Ascii);
        assert_eq!(config.keep_days, NonZeroU32::new(90));
        assert_eq!(config.keys["reply"], ["R", "ctrl-r"]);
        assert_eq!(config.mouse, MouseChoice::On);
        assert!(config.notify.finished && config.notify.ask && !config.notify.while_focused);
        let quiet = config.notify.quiet.unwrap();
        assert!(quiet.has(22 * 60) && quiet.has(0) && quiet.has(7 * 60 + 29) && !quiet.has(7 * 60 + 30));
        assert_eq!(config.snippets["1"], "Go on.");
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, place) in [
            ("theme = \"x\"\nregistr = true\n", "/c/config.toml, line 2, `registr`: "),
            ("\nregister = 1\n", "/c/config.toml, line 2, `register`: "),
            ("keep_days = 0\n", "/c/config.toml, line 1, `keep_days`: "),
            ("glyphs = \"emoji\"\n", "/c/config.toml, line 1, `glyphs`: "),
            ("mouse = \"on\"\n", "/c/config.toml, line 1, `mouse`: "),
            ("[notify]\nasks = true\n", "/c/config.toml, line 2, `notify.asks`: "),
            ("[notify]\nask = true\nquiet = \"22-7\"\n", "/c/config.toml, line 3, `notify.quiet`: "),
            ("[notify]\nterminal = \"osc99\"\n", "/c/config.toml, line 2, `notify.terminal`: "),
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

    const SUPERVISOR: &str = "[supervisor]\nenabled = true\n[supervisor.learning]\n[supervisor.gate]\nenabled = true\n\
         command = [\"verify\"]\nmax_attempts = 2\n[supervisor.plan]\nenabled = true\n[supervisor.condense]\n\
         enabled = true\ntokens_threshold = 5000\n";

    #[test]
    fn a_supervisor_is_whole_or_not_there() {
        let supervisor = parse(SUPERVISOR).unwrap().supervisor.unwrap();
        assert_eq!(supervisor.learning, supervisor::Learning::default());
        assert_eq!(supervisor.gate.command, ["verify"]);
        for (line, named) in [
            ("enabled = true\n[supervisor.learning]", "enabled"),
            ("[supervisor.learning]\n", "learning"),
            ("command = [\"verify\"]\n", "command"),
            ("max_attempts = 2\n", "max_attempts"),
            ("[supervisor.plan]\nenabled = true\n", "plan"),
            ("tokens_threshold = 5000\n", "tokens_threshold"),
            ("[supervisor.condense]\nenabled = true\ntokens_threshold = 5000\n", "condense"),
        ] {
            let kept = if named == "enabled" { "[supervisor.learning]" } else { "" };
            let error = parse(&SUPERVISOR.replacen(line, kept, 1)).unwrap_err();
            assert!(error.contains(&format!("missing field `{named}`")), "{named}: {error}");
        }
        for (from, to, named) in [
            ("max_attempts = 2", "max_attempts = 0", "`supervisor.gate.max_attempts`"),
            ("tokens_threshold = 5000", "tokens_threshold = -1", "`supervisor.condense.tokens_threshold`"),
            (
                "[supervisor.learning]",
                "[supervisor.learning]\nbackend = \"cloud\"",
                "`supervisor.learning.backend`",
            ),
            ("[supervisor.plan]", "[supervisor.plan]\nfile = \"x\"", "`supervisor.plan.file`"),
            ("[supervisor]", "[supervisor]\ndetectors = 1", "`supervisor.detectors`"),
            ("command = [\"verify\"]", "command = \"verify\"", "`supervisor.gate.command`"),
        ] {
            let error = parse(&SUPERVISOR.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(named), "{to}: {error}");
        }
        let without = parse(&SUPERVISOR.replace("[\"verify\"]", "[\" \"]")).unwrap();
        assert!(without.mistakes().iter().any(|it| it.starts_with("supervisor.gate.command: ")));
    }

    #[test]
    fn the_template_has_everything_and_changes_nothing() {
        assert_eq!(parse(TEMPLATE), Ok(Config::default()));
        let is_setting =
            |line: &&str| line.strip_prefix('#').is_some_and(|it| !it.is_empty() && !it.starts_with(' '));
        let settings: Vec<&str> = TEMPLATE.lines().filter(is_setting).map(|line| &line[1..]).collect();
        let all = parse(&settings.join("\n")).unwrap();
        assert_eq!(all.mistakes(), [""; 0]);
        let defaults = Config::default();
        assert_eq!((all.register, all.notifications, all.glyphs), (true, true, defaults.glyphs));
        assert!(all.theme.is_some() && all.keep_days.is_some() && !all.keys.is_empty());
        // Each key that there is stands in it.
        let whole = toml::to_string(&all).unwrap();
        for key in whole.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
            assert!(settings.iter().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
        }
        assert_eq!(parse(&whole), Ok(all));
    }

    #[test]
    fn keys_and_theme_are_judged_as_the_console_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(
            &path,
            "theme = \"none\"\n[keys]\nfrob = []\nreply = [\"nokey\", \"n\"]\n[snippets]\n0 = \"x\"\n",
        )
        .unwrap();
        let mistakes = Config::load(&path, false).unwrap_err().mistakes();
        let wanted = [
            "keys.frob: no such action",
            "keys.reply: `nokey`",
            "keys.reply: `n` collides",
            "keys.next-match: `n` collides with `n` of `reply` (Inbox)",
            "snippets.0: no such snippet",
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
