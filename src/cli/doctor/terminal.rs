//! The configuration, the terminal, our place in Herdr, and how changes are noticed.

use std::sync::Arc;

use serde_json::json;

use super::Patient;
use super::report::{Level, Section};

use crate::config::{Config, ConfigError, Environment, Places};
use crate::disk::durable;
use crate::herdr::locate::pane_context;
use crate::herdr::reexec::{Decision, GoOn, decide};
use crate::source::watch::{Notifier, Watch};

/// The configuration file.
pub(super) fn configuration(places: &Places, config: &Result<Config, ConfigError>) -> Section {
    let mut section = Section::new("configuration", "Configuration");
    let shown = durable::shown(&places.config).to_string();
    let exists = places.config.exists();
    section.set("path", shown.clone());
    section.set("exists", exists);
    section.set("valid", config.is_ok());
    match config {
        Ok(_) if exists => section.say(Level::Ok, format!("{shown} is valid")),
        Ok(_) => section.say(Level::Ok, format!("no {shown}: the defaults hold")),
        Err(error) => {
            for mistake in error.mistakes() {
                section.say(Level::Bad, format!("{mistake}. {}", error.hint()));
            }
        }
    }
    section
}

/// Whether the system tells changes of the records.
pub(super) fn watching(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("watching", "Noticing changes");
    let inbox = patient.us.as_ref().map_or_else(
        || patient.runtime.inbox_of_hash(patient.runtime.hash()),
        |us| patient.runtime.inbox(us),
    );
    let told =
        Notifier::new().and_then(|notifier| Watch::new(&Arc::new(notifier), &patient.runtime, &inbox).1);
    section.set("notified", told.is_ok());
    match told {
        Ok(()) => section.say(Level::Ok, "the system tells changes of records at once"),
        Err(why) => {
            section.set("why", why.clone());
            section.say(
                Level::Warn,
                format!("changes are looked for every second: the system does not tell them ({why})"),
            );
        }
    }
    section
}

/// The terminal, and whether the console can be listed in Herdr.
pub(super) fn terminal(environment: &Environment<'_>, register: bool) -> Section {
    let mut section = Section::new("terminal", "Terminal");
    let term = environment.text("TERM").unwrap_or_default();
    section.set("term", &*term);
    if term.is_empty() || term == "dumb" {
        section
            .say(Level::Warn, format!("TERM is `{term}`: use --plain, or a terminal that can show a screen"));
    } else {
        section.say(Level::Ok, format!("TERM {term}"));
    }
    let size =
        [rustix::termios::tcgetwinsize(std::io::stdout()), rustix::termios::tcgetwinsize(std::io::stdin())]
            .into_iter()
            .find_map(Result::ok);
    section.set("columns", size.map(|size| size.ws_col));
    section.set("rows", size.map(|size| size.ws_row));
    match size {
        Some(size) if size.ws_col < 20 || size.ws_row < 6 => section.say(
            Level::Warn,
            format!("{} columns, {} rows: too small for the console", size.ws_col, size.ws_row),
        ),
        Some(size) => section.say(Level::Ok, format!("{} columns, {} rows", size.ws_col, size.ws_row)),
        None => section.say(Level::Ok, "not on a terminal here"),
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| environment.text(name));
    let locale = locale.unwrap_or_default();
    let lower = locale.to_ascii_lowercase();
    let utf8 = lower.contains("utf-8") || lower.contains("utf8");
    section.set("locale", &*locale);
    section.set("utf8", utf8);
    if utf8 {
        section.say(Level::Ok, format!("locale {locale}"));
    } else {
        section.say(Level::Warn, format!("locale `{locale}` is not UTF-8: ASCII glyphs are used"));
    }
    let colours = match environment.text("COLORTERM") {
        _ if environment.var("NO_COLOR").is_some() || term == "dumb" => "none",
        Some(text) if matches!(text.as_str(), "truecolor" | "24bit") => "true",
        _ if term.contains("256color") => "256",
        _ => "16",
    };
    section.set("colours", colours);
    section.say(Level::Ok, format!("colours: {colours}"));
    section.set("tmux", environment.var("TMUX").is_some());
    registering(&mut section, environment, register);
    section
}

fn registering(section: &mut Section, environment: &Environment<'_>, register: bool) {
    let env = |name: &str| environment.var(name);
    let pane = pane_context(env);
    section.set(
        "pane",
        pane.as_ref()
            .ok()
            .map(|it| json!({"pane_id": it.pane, "tab_id": it.tab, "workspace_id": it.workspace})),
    );
    if let Ok(pane) = &pane {
        section.say(Level::Ok, format!("in Herdr, pane {}", pane.pane));
    }
    let why = match decide(env, register, std::process::id()) {
        Decision::Again(_) | Decision::GoOn(GoOn::Hinted) => None,
        Decision::GoOn(GoOn::Left) => Some("the Chief left here; start the console again".to_owned()),
        Decision::GoOn(GoOn::SwitchedOff) => {
            Some("it is switched off; leave out --no-register, and `register = false`".to_owned())
        }
        Decision::GoOn(GoOn::Failed(why)) => Some(why),
        Decision::GoOn(GoOn::NoPane(why)) => Some(why.to_string()),
    };
    section.set("can_register", why.is_none());
    section.set("why_not", why.clone());
    match why {
        None => section.say(Level::Ok, "a console here can be listed in Herdr: leads can write up"),
        Some(why) => {
            let text = format!("a console here can't be listed in Herdr, leads can't write up: {why}");
            section.say(Level::Warn, text);
        }
    }
}
