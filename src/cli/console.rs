//! No verb: the console.

use std::num::NonZeroU32;
use std::path::Path;

use super::{Exit, Failure, out};
use crate::config::{Config, Environment, Places};
use crate::console::files::Place;
use crate::console::gating::Supervision;
use crate::console::notify::delivery::Means;
use crate::console::run::{self, Ended, Options, Ourselves, RunError};
use crate::console::terminal::TerminalError;
use crate::console::theme::Theme;
use crate::herdr::PaneContext;
use crate::herdr::locate::{Located, pane_context};
use crate::herdr::reexec::{self, GoOn, Reexec, Stage};

/// Runs the console until it is quit.
///
/// # Errors
/// [`Failure`] where it can't start, or the terminal fails.
pub fn run(places: Places, socket: Located, config: Config, go_on: GoOn) -> Result<Exit, Failure> {
    let environment = Environment::of_process();
    let theme = Theme::load(config.theme.as_deref(), config.glyphs, |name| environment.text(name)).map_err(
        |error| {
            Failure::new(
                Exit::Usage,
                "theme",
                format!("can't start the console: {error}"),
                "Correct `theme` in the configuration",
            )
        },
    )?;
    let var = |name: &str| std::env::var_os(name);
    let pane = chief_pane(&go_on);
    let pid = std::process::id();
    let means = Means::of(&config.notify, |name| Environment::of_process().text(name));
    let ourselves = Ourselves { program: std::env::current_exe().ok(), options: places.to_options() };
    let options = Options {
        socket,
        agent_dir: places.agent_dir,
        sessions: places.sessions,
        state_dir: places.state_dir,
        keep_days: config.keep_days.map(NonZeroU32::get),
        notified: config.notifications,
        turn_logs: places.turn_logs,
        second_attempt: second_attempt(&pane),
        on_leaving: pane.as_ref().ok().map(|_| Reexec::without_hint(pid)),
        on_becoming_chief: (Stage::of(var, pid) == Some(Stage::Left)).then(|| Reexec::hinted(pid)),
        pane,
        mouse: config.mouse.is_on(|name| Environment::of_process().text(name)),
        notices: (config.notify, means),
        keys: config.keys,
        theme,
        editor: environment.editor(),
        snippets: config.snippets,
        place: Place {
            from: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            home: environment.home().map(Path::to_owned),
        },
        supervision: config.supervisor.as_ref().filter(|it| it.enabled).map_or_else(
            Supervision::default,
            |supervisor| Supervision {
                gate: supervisor.gate.enabled,
                git: supervisor.gate.git,
                learning: supervisor.learning.enabled,
            },
        ),
        ourselves,
        guided: std::env::var_os("HEADMAN_DEMO").is_some(),
    };
    match run::run(options) {
        Ok(Ended::Quit) => Ok(Exit::Done),
        Ok(Ended::Signal(signal)) => Ok(Exit::Code(signal.exit_code())),
        Ok(Ended::Again(again)) => {
            // The lease is released, the terminal given back.
            let error = again.exec(std::env::args_os().skip(1));
            out::note(&format!("{error}. Start headman again"));
            Ok(Exit::Unavailable)
        }
        Err(error) => Err(failure(error)),
    }
}

/// Our pane in Herdr, if leads can see us there; else why not.
pub(super) fn chief_pane(go_on: &GoOn) -> Result<PaneContext, String> {
    match go_on {
        GoOn::Hinted => pane_context(|name| std::env::var_os(name)).map_err(|why| why.to_string()),
        GoOn::Left => Err("you left Chief mode".to_owned()),
        GoOn::Failed(why) => Err(why.clone()),
        GoOn::SwitchedOff => Err("registering is switched off".to_owned()),
        GoOn::NoPane(why) => Err(why.to_string()),
    }
}

/// How to be taken for Pi, should Herdr not list us on `pane` in spite of the hint.
pub(super) fn second_attempt(pane: &Result<PaneContext, String>) -> Option<Reexec> {
    pane.as_ref().ok()?;
    reexec::second_attempt(|name| std::env::var_os(name), std::process::id())
}

fn failure(error: RunError) -> Failure {
    let what = "can't run the console";
    match error {
        RunError::Terminal(error) => {
            let (exit, code) = match error {
                TerminalError::NotATerminal { .. } => (Exit::Usage, "no_terminal"),
                _ => (Exit::Unavailable, "terminal"),
            };
            Failure::new(exit, code, format!("{what}: {error}"), error.hint())
        }
        RunError::Keys(mistakes) => {
            let mistakes = mistakes.iter().map(|mistake| format!("{what}: {mistake}")).collect();
            Failure::of_several(Exit::Usage, "keys", mistakes, "Correct `[keys]` in the configuration")
        }
        RunError::Snippets(mistakes) => {
            let mistakes = mistakes.iter().map(|mistake| format!("{what}: {mistake}")).collect();
            Failure::of_several(
                Exit::Usage,
                "snippets",
                mistakes,
                "Correct `[snippets]` in the configuration",
            )
        }
        RunError::State(error) => Failure::new(
            Exit::Unavailable,
            "state",
            format!("{what}: {error}"),
            "See `headman doctor`, or give another --state-dir",
        ),
        RunError::Unsaved(_) => Failure::new(
            Exit::Unavailable,
            "draft",
            format!("the console ended, and {error}"),
            "Free some space, or give another --state-dir",
        ),
        RunError::Io(error) => {
            Failure::new(Exit::Unavailable, "system", format!("{what}: {error}"), "Try again")
        }
    }
}
