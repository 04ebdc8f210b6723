//! `headman man`: one page for everything, so that it names no page that does not exist.

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::EXAMPLES;
use super::failure::MEANINGS;

/// What of the environment is looked at.
const ENVIRONMENT: [(&str, &str); 12] = [
    ("HERDR_SOCKET_PATH", "Herdr's socket, unless --socket names it"),
    ("HERDR_SESSION", "the session of Herdr whose socket is used where none is named"),
    (
        "HERDR_ENV, HERDR_PANE_ID, HERDR_TAB_ID, HERDR_WORKSPACE_ID",
        "set by Herdr in its panes; without them, or with TMUX set, the console can't be listed in Herdr",
    ),
    ("PI_CODING_AGENT_DIR", "Pi's agent directory, unless --agent-dir names it"),
    ("HEADMAN_STATE_DIR", "where headman keeps its own state, unless --state-dir names it"),
    ("XDG_CONFIG_HOME", "the directory of the configuration and of Herdr's default socket; else ~/.config"),
    ("XDG_STATE_HOME", "the directory of headman's own state; else ~/.local/state"),
    ("HOME", "the home directory"),
    ("TMPDIR", "where the demo makes its directory; else /tmp"),
    ("NO_COLOR", "if set, no colours are used"),
    ("TERM, COLORTERM", "what the terminal can do"),
    ("LC_ALL, LC_CTYPE, LANG", "without UTF-8 in the first of them that is set, signs are ASCII"),
];

/// The page, as roff.
///
/// # Errors
/// None that writing to memory can have.
pub fn page(command: Command) -> std::io::Result<Vec<u8>> {
    let mut command = command;
    command.build();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;

    let mut roff = Roff::new();
    roff.control("SH", ["VERBS"]);
    roff.text([roman("Without a verb the console is started.")]);
    for verb in command.get_subcommands_mut() {
        describe(&mut roff, verb);
    }
    roff.control("SH", ["OPTIONS"]);
    roff.text([roman("With every verb:")]);
    arguments(&mut roff, command.get_arguments());
    roff.control("SH", ["EXIT STATUS"]);
    list(&mut roff, MEANINGS.map(|(code, meaning)| (code.to_string(), meaning)));
    roff.control("SH", ["ENVIRONMENT"]);
    list(&mut roff, ENVIRONMENT.map(|(name, meaning)| (name.to_owned(), meaning)));
    roff.control("SH", ["FILES"]);
    list(
        &mut roff,
        [
            ("~/.config/headman/config.toml".to_owned(), "the configuration; it may be absent"),
            (
                "~/.local/state/headman".to_owned(),
                "who headman is on each Herdr, drafts, and the sessions of leads",
            ),
        ],
    );
    roff.control("SH", ["EXAMPLES"]);
    list(&mut roff, EXAMPLES.map(|(line, meaning)| (line.to_owned(), meaning)));
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// One verb, and those below it.
fn describe(roff: &mut Roff, verb: &mut Command) {
    if verb.get_name() == "help" {
        return;
    }
    let usage = verb.render_usage().to_string();
    roff.control("SS", [usage.trim_start_matches("Usage: ").trim()]);
    roff.text([roman(verb.get_about().map(ToString::to_string).unwrap_or_default())]);
    arguments(roff, verb.get_arguments().filter(|it| !it.is_global_set()));
    for below in verb.get_subcommands_mut() {
        describe(roff, below);
    }
}

fn list(roff: &mut Roff, items: impl IntoIterator<Item = (String, &'static str)>) {
    for (name, meaning) in items {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(meaning)]);
    }
}

fn arguments<'a>(roff: &mut Roff, all: impl Iterator<Item = &'a Arg>) {
    for argument in all.filter(|it| !it.is_hide_set() && it.get_id() != "help") {
        roff.control("TP", []);
        roff.text(heading(argument));
        let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let takes_values = argument.get_action().takes_values();
        let values: Vec<String> = (argument.get_possible_values().iter())
            .filter(|_| takes_values)
            .map(|value| value.get_name().to_owned())
            .collect();
        if !values.is_empty() {
            text += &format!(": {}", values.join(", "));
        }
        let defaults: Vec<_> = argument.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
        if takes_values && !defaults.is_empty() {
            text += &format!(" [default: {}]", defaults.join(" "));
        }
        roff.text([roman(text)]);
    }
}

fn heading(argument: &Arg) -> Vec<Inline> {
    let mut line = Vec::new();
    if let Some(short) = argument.get_short() {
        line.push(bold(format!("-{short}")));
        line.push(roman(", "));
    }
    if let Some(long) = argument.get_long() {
        line.push(bold(format!("--{long}")));
    }
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        if !line.is_empty() {
            line.push(roman(" "));
        }
        line.push(italic(names.collect::<Vec<_>>().join(" ")));
    }
    line
}
