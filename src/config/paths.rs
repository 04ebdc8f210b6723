//! Where things are: from the command line, else the environment, else the home directory. Pure
//! over [`Environment`], so that nothing here ever looks at a real home in a test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::disk::AgentDir;
use crate::herdr::locate::{self, Located, NotLocated};
use crate::pi::discover::SessionDirs;
use crate::turn::log::TurnLogs;

type Variable<'a> = Box<dyn Fn(&str) -> Option<OsString> + 'a>;

/// The environment, as a function, and the home directory.
pub struct Environment<'a> {
    var: Variable<'a>,
    home: Option<PathBuf>,
}

impl Environment<'static> {
    /// That of this process.
    pub fn of_process() -> Self {
        // Follows HOME where it is set, else the user database.
        let home = directories::BaseDirs::new().map(|base| base.home_dir().to_owned());
        let home = home.filter(|home| home.is_absolute());
        Self { var: Box::new(|name| std::env::var_os(name)), home }
    }
}

impl<'a> Environment<'a> {
    /// Another one, for tests.
    pub fn new(var: impl Fn(&str) -> Option<OsString> + 'a, home: Option<PathBuf>) -> Self {
        Self { var: Box::new(var), home }
    }

    /// A variable; an empty one counts as unset.
    pub fn var(&self, name: &str) -> Option<OsString> {
        (self.var)(name).filter(|value| !value.is_empty())
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.var(name)?.into_string().ok()
    }

    /// The home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// What the user edits texts with.
    pub fn editor(&self) -> OsString {
        self.var("VISUAL").or_else(|| self.var("EDITOR")).unwrap_or_else(|| "vi".into())
    }

    /// An XDG base directory; a relative one is void, as its specification says.
    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = self.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        set.or_else(|| self.home.as_ref().map(|home| home.join(below_home)))
    }
}

/// What the command line says of places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// `--socket`.
    pub socket: Option<OsString>,
    /// `--agent-dir`.
    pub agent_dir: Option<OsString>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The configuration file.
    pub config: PathBuf,
    /// Whether the user named it: then it has to be there.
    pub config_is_named: bool,
    /// Our own state.
    pub state_dir: PathBuf,
    /// Pi's agent directory.
    pub agent_dir: AgentDir,
    /// Where turns are logged.
    pub turn_logs: TurnLogs,
    /// Where Pi keeps its sessions.
    pub sessions: SessionDirs,
    /// Herdr's socket, or why no path leads to one.
    pub socket: Result<Located, NotLocated>,
}

/// No home directory, and nothing that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home directory and {0} is not given")]
pub struct NoHome(pub &'static str);

impl Places {
    /// Finds them.
    ///
    /// # Errors
    /// [`NoHome`] where a place would be below a home directory that is not known.
    pub fn find(named: &Named, environment: &Environment<'_>) -> Result<Self, NoHome> {
        let config = match &named.config {
            Some(path) => path.clone(),
            None => environment
                .base("XDG_CONFIG_HOME", ".config")
                .ok_or(NoHome("--config"))?
                .join("headman/config.toml"),
        };
        let state_dir = match (&named.state_dir, environment.var("HEADMAN_STATE_DIR")) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) => path.into(),
            (None, None) => environment
                .base("XDG_STATE_HOME", ".local/state")
                .ok_or(NoHome("--state-dir"))?
                .join("headman"),
        };
        let agent_dir = named.agent_dir.clone().or_else(|| environment.var("PI_CODING_AGENT_DIR"));
        let session_dir = environment.var("PI_CODING_AGENT_SESSION_DIR");
        let is_below_home = |path: &OsString| Path::new(path).starts_with("~");
        let needs_home =
            agent_dir.as_ref().is_none_or(is_below_home) || session_dir.as_ref().is_some_and(is_below_home);
        let home = match &environment.home {
            Some(home) => home.as_path(),
            None if needs_home => return Err(NoHome("--agent-dir")),
            None => Path::new("/"),
        };
        let home_var = |name: &str| match name {
            "HOME" => environment.home.clone().map(Into::into),
            _ => environment.var(name),
        };
        let agent_dir = AgentDir::resolve(agent_dir.as_deref(), home);
        let state_dir = absolute(state_dir);
        let named_logs = ["HEADMAN_TURN_LOG_DIR", "COMMONLY_TURN_LOG_DIR"];
        let named_logs = named_logs.into_iter().find_map(|name| environment.var(name)).map(PathBuf::from);
        let turn_logs = TurnLogs {
            is_named: named_logs.is_some(),
            ours: named_logs.map_or_else(|| state_dir.join("turns"), absolute),
            others: environment.home.iter().map(|home| home.join(".commonly/state/turns")).collect(),
        };
        let sessions = SessionDirs {
            agent_dir: agent_dir.path().to_owned(),
            session_dir: session_dir.map(|path| AgentDir::resolve(Some(&path), home).path().to_owned()),
            home: home.to_owned(),
        };
        Ok(Self {
            config,
            config_is_named: named.config.is_some(),
            turn_logs,
            state_dir,
            agent_dir,
            sessions,
            socket: locate::locate(named.socket.as_deref(), home_var),
        })
    }

    /// The options that name them to another process of ours.
    pub fn to_options(&self) -> Vec<OsString> {
        let socket = self.socket.as_ref().ok().map(|socket| ("--socket", socket.path.clone()));
        let config = self.config_is_named.then(|| ("--config", self.config.clone().into()));
        let always = [
            ("--agent-dir", self.agent_dir.path().to_owned().into()),
            ("--state-dir", self.state_dir.clone().into()),
        ];
        let named = socket.into_iter().chain(config).chain(always);
        named.flat_map(|(option, value): (&str, OsString)| [option.into(), value]).collect()
    }
}

/// From the working directory, where it is relative.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(named: &Named, vars: &[(&str, &str)], home: Option<&str>) -> Result<Places, NoHome> {
        let var = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Places::find(named, &Environment::new(var, home.map(PathBuf::from)))
    }

    #[test]
    fn without_anything_named_places_are_below_the_home_directory() {
        let places = find(&Named::default(), &[("XDG_STATE_HOME", "rel")], Some("/h")).unwrap();
        assert_eq!(places.config, Path::new("/h/.config/headman/config.toml"));
        assert!(!places.config_is_named);
        assert_eq!(places.state_dir, Path::new("/h/.local/state/headman"));
        assert_eq!(places.agent_dir.path(), Path::new("/h/.pi/agent"));
        assert_eq!(places.socket.unwrap().path, "/h/.config/herdr/herdr.sock");
    }

    #[test]
    fn the_command_line_comes_before_the_environment() {
        let vars = [
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "/s"),
            ("PI_CODING_AGENT_DIR", "~/a"),
            ("HERDR_SOCKET_PATH", "/sock"),
        ];
        let places = find(&Named::default(), &vars, Some("/h")).unwrap();
        assert_eq!(places.config, Path::new("/c/headman/config.toml"));
        assert_eq!(places.state_dir, Path::new("/s/headman"));
        assert_eq!(places.agent_dir.path(), Path::new("/h/a"));
        assert_eq!(places.socket.unwrap().path, "/sock");
        let more = [&vars[..], &[("HEADMAN_STATE_DIR", "/own")]].concat();
        assert_eq!(find(&Named::default(), &more, Some("/h")).unwrap().state_dir, Path::new("/own"));
        let named = Named {
            socket: Some("/n/./s".into()),
            agent_dir: Some("/n/agent".into()),
            state_dir: Some("/n/state".into()),
            config: Some("/n/c.toml".into()),
        };
        let places = find(&named, &more, None).unwrap();
        assert_eq!(places.socket.unwrap().path, "/n/./s", "the spelling is what is hashed");
        assert_eq!(places.agent_dir.path(), Path::new("/n/agent"));
        assert_eq!(places.state_dir, Path::new("/n/state"));
        assert!(places.config_is_named);
    }

    #[test]
    fn turns_are_logged_where_the_environment_says_else_with_our_state() {
        let logs = |vars: &[(&str, &str)]| find(&Named::default(), vars, Some("/h")).unwrap().turn_logs;
        let plain = logs(&[]);
        assert_eq!(
            (plain.ours.as_path(), plain.is_named),
            (Path::new("/h/.local/state/headman/turns"), false)
        );
        assert_eq!(plain.others, [Path::new("/h/.commonly/state/turns")]);
        let other = ("COMMONLY_TURN_LOG_DIR", "/h/.commonly/state/turns");
        let named = logs(&[other, ("HEADMAN_TURN_LOG_DIR", "/l")]);
        assert_eq!((named.ours.as_path(), named.is_named), (Path::new("/l"), true));
        assert_eq!(logs(&[other]).directories(), [Path::new("/h/.commonly/state/turns")], "none twice");
    }

    #[test]
    fn without_a_home_what_is_missing_is_named() {
        assert_eq!(find(&Named::default(), &[], None), Err(NoHome("--config")));
        let vars = [("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")];
        assert_eq!(find(&Named::default(), &vars, None), Err(NoHome("--agent-dir")));
    }
}
