//! The command line itself: usage, configuration, output, logs, and verbs that need no Herdr.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use headman::contract::json::{Document, Json};
use serde_json::Value;

use crate::cli_support::{Place, until};

#[test]
fn a_wrong_command_line_ends_with_two_and_says_what_to_do() {
    let place = Place::new();
    let id = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    for arguments in [
        &["--frob"][..],
        &["frob"],
        &["check", "--as", "lead"],
        &["check", "--as", "frob", "-"],
        &["roster"],
        &["reply", "s", "no-uuid", "text"],
        &["reply", "", id, "text"],
        &["reply", "s", id, "  "],
        &["reply", "s", id, "text", "--wait", "soon"],
        &["demo", "--speed", "-1"],
        &["demo", "--serve", "--", "ls"],
        &["completions", "frob"],
        &["list", "\u{1b}]0;x\u{7}\u{202e}"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.starts_with("headman: can't "), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(". "), "no next step: {}", ran.stderr);
        assert_eq!(ran.stderr.matches('\n').count(), 1, "{}", ran.stderr);
        ran.assert_harmless();

        let with_json = [&["--json"], arguments].concat();
        let ran = place.run(&with_json);
        assert_eq!(ran.code, 2, "{arguments:?}");
        let error = &ran.json()["error"];
        let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["code", "hint", "message"]);
        assert_eq!(error["code"], "usage");
        assert!(ran.stderr.starts_with("headman: "), "stderr stays for people: {}", ran.stderr);
        ran.assert_harmless();
    }
}

#[test]
fn help_version_completions_and_manual_go_to_stdout() {
    let place = Place::new();
    for (arguments, holds) in [
        (&["--help"][..], "doctor"),
        (&["help", "reply"], "--take-lease"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "_headman()"),
        (&["completions", "zsh"], "#compdef headman"),
        (&["completions", "fish"], "complete -c headman"),
        (&["man"], ".TH headman 1"),
    ] {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(ran.stdout.contains(holds), "{arguments:?}: {}", ran.stdout);
    }
    for arguments in [
        &["--help"][..],
        &["completions", "bash"],
        &["completions", "elvish"],
        &["completions", "fish"],
        &["completions", "powershell"],
        &["completions", "zsh"],
        &["man"],
    ] {
        let text = place.run(arguments).stdout;
        assert!(!text.contains("demo-lead") && !text.contains("demo__lead"), "{arguments:?}");
    }
}

#[test]
fn help_has_what_is_the_verbs_first_and_the_manual_names_no_page_that_is_not_there() {
    let place = Place::new();
    let help = place.run(&["reply", "--help"]).stdout;
    let at = |what: &str| help.find(what).unwrap_or_else(|| panic!("no {what}: {help}"));
    assert!(at("--take-lease") < at("\nGlobal options:") && at("\nGlobal options:") < at("--socket"));
    let help = place.run(&["--help"]).stdout;
    for holds in ["Exit codes:", "\n  130 ", "Examples:", "headman demo ", "Diagnose the setup (read-only)"] {
        assert!(help.contains(holds), "{holds}: {help}");
    }
    let page = place.run(&["man"]).stdout;
    for holds in [".SH \"EXIT STATUS\"", ".SH ENVIRONMENT", "HEADMAN_STATE_DIR", "take\\-lease", "130"] {
        assert!(page.contains(holds), "{holds}: {page}");
    }
    assert!(!page.contains("(1)"), "{page}");
}

#[test]
fn a_usage_error_names_the_help_of_its_verb_and_what_was_meant() {
    let place = Place::new();
    for (arguments, hint) in [
        (&["lst"][..], "Did you mean `list`? See `headman --help`\n"),
        (&["--socket", "demo", "reply", "x"], ". See `headman reply --help`\n"),
        (&["reply", "--tak-lease"], "Did you mean `--take-lease`? See `headman reply --help`\n"),
        (&["check", "--as", "led", "-"], "Did you mean `lead`? See `headman check --help`\n"),
        (&["demo", "--leads", "x"], ". See `headman demo --help`\n"),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.ends_with(hint), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("tip:"), "{}", ran.stderr);
    }
}

#[test]
fn what_is_nothing_to_the_demo_is_refused() {
    let place = Place::new();
    for arguments in [
        &["demo", "--socket", "x"][..],
        &["demo", "--agent-dir", "x"],
        &["demo", "--state-dir", "x"],
        &["demo", "--json"],
        &["demo", "--plain"],
        &["demo", "--no-register", "--serve"],
        &["demo", "--no-register", "--", "true"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("headman: can't run the demo: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(arguments[1]), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches('\n').count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    let mut child = place.start(&["completions", "bash"]);
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn output_that_can_not_be_written_is_a_failure() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = place.command(&["man"]).stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(ran.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&ran.stderr).starts_with("headman: can't write the answer: "));
}

#[test]
fn a_wrong_configuration_is_told_with_file_line_and_key() {
    let place = Place::new();
    let config = place.path("c.toml");
    std::fs::write(&config, "theme = \"dusk\"\nregistr = true\n").unwrap();
    let ran = place.run(&["--config", config.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.json()["error"]["code"], "configuration");
    assert!(ran.stderr.contains("c.toml, line 2, `registr`: unknown field"), "{}", ran.stderr);

    // A file that was named has to be there; the one that is looked for need not.
    let ran = place.run(&["--config", "gone.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("gone.toml is not there"), "{}", ran.stderr);
    for arguments in [&["list"][..], &["man"], &["check", "--as", "role", "-"], &["demo", "--", "true"]] {
        let ran = place.run(&[&["--config", "gone.toml"], arguments].concat());
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains("gone.toml is not there"), "{}", ran.stderr);
    }
    let ran = place.run(&[]);
    assert_eq!(
        ran.stderr,
        "headman: can't run the console: the console needs a terminal, and standard input is none. \
         Use `headman list` for the leads, or --plain for text that can be piped\n"
    );

    // Every wrong key, and the theme, has its line.
    let text = "theme = \"dawn\"\n[keys]\nfrob = [\"x\"]\nreply = [\"nokey\"]\nsend = [\"x\"]\n";
    std::fs::write(&config, text).unwrap();
    let named = config.to_str().unwrap();
    let ran = place.run(&["--config", named, "--json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.json()["error"]["code"], "configuration");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let keys = ["keys.frob: ", "keys.send: ", "keys.reply: ", "theme: "];
    assert_eq!(lines.len(), keys.len(), "{}", ran.stderr);
    for (line, key) in lines.iter().zip(keys) {
        let begins = format!("headman: can't use the configuration: {named}: {key}");
        assert!(line.starts_with(&begins), "{line}");
    }
    let ran = place.run(&["--config", named, "doctor"]);
    for key in keys {
        assert!(ran.stdout.contains(&format!("  bad   {named}: {key}")), "{key}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains(" is valid"), "{}", ran.stdout);
    let counts = ran.stdout.lines().last().unwrap();
    assert!(counts.contains(" bad, ") && counts.contains(" warn, ") && counts.ends_with(" ok"), "{counts}");

    let in_home = place.path("home/.config/headman");
    std::fs::create_dir_all(&in_home).unwrap();
    std::fs::write(in_home.join("config.toml"), "glyphs = 1\n").unwrap();
    let ran = place.run(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("line 1, `glyphs`: "), "{}", ran.stderr);
    // What needs none is not kept from working by it.
    assert_eq!(place.run_with(&["check", "--as", "role", "-"], b"{}").code, 1);
}

#[test]
fn without_a_home_directory_what_is_missing_is_named() {
    let place = Place::new();
    // A relative one is none: nothing is ever looked for or made below the working directory.
    let mut command = place.command(&["list"]);
    command.env("HOME", "relative").env("XDG_CONFIG_HOME", "also/relative");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        stderr,
        "headman: can't start: there is no home directory and --config is not given. Give --config\n"
    );
}

#[test]
fn a_log_is_private_and_never_through_a_link() {
    let place = Place::new();
    let log = place.path("headman.log");
    std::fs::write(&log, "").unwrap();
    crate::cli_support::chmod(&log, 0o644);
    let ran = place.run_with(&["--log", log.to_str().unwrap(), "check", "--as", "role", "-"], b"{}");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o7777, 0o600);

    let target = place.path("target");
    std::fs::write(&target, "x").unwrap();
    std::os::unix::fs::symlink(&target, place.path("link")).unwrap();
    let ran = place.run(&["--log", "link", "man"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(std::fs::read(&target).unwrap(), b"x");
}

#[test]
fn in_a_herdr_pane_the_console_executes_itself_at_most_once() {
    let mut place = Place::new();
    for (name, value) in [
        ("HERDR_ENV", "1"),
        ("HERDR_PANE_ID", "w1:p1"),
        ("HERDR_TAB_ID", "w1:t1"),
        ("HERDR_WORKSPACE_ID", "w1"),
        ("HERDR_SOCKET_PATH", "/nonexistent/herdr.sock"),
    ] {
        place.set(name, value);
    }
    let mut child = place.start(&[]);
    // A loop would never end, nor tell anything.
    until("the end", || child.try_wait().unwrap().is_some());
    // Other verbs are not executed again: they answer as ever.
    assert_eq!(place.run_with(&["check", "--as", "role", "-"], b"{}").code, 1);
}

fn member<'a>(value: Json<'a>, key: &str) -> Json<'a> {
    value.object().unwrap().into_iter().find(|(name, _)| name == key).unwrap().1
}

#[test]
fn every_captured_projection_is_printed_exactly() {
    let vectors = std::fs::read(crate::golden::fixture("golden/vectors.json")).unwrap();
    let document = Document::decode(&vectors);
    let cases = member(document.value().unwrap(), "projection").array().unwrap();
    assert_eq!(cases.len(), 33);
    let place = Place::new();
    for case in cases {
        let name = member(case, "name").string().unwrap();
        let ran =
            place.run_with(&["roster", "--json", "--evidence", "-"], member(case, "input").raw().as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name:?}");
        let expected: Value = serde_json::from_str(member(case, "serialized").raw()).unwrap();
        assert_eq!(ran.json(), expected, "{name:?}");
        // Order, spacing and all: both are written again by the same rules.
        let ours = headman::contract::json::reserialize(
            Document::decode(ran.stdout.trim_end().as_bytes()).value().unwrap(),
        );
        let theirs = headman::contract::json::reserialize(member(case, "serialized"));
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{name:?}");
        ran.assert_harmless();
    }
}

#[test]
fn evidence_that_is_none_is_refused() {
    let place = Place::new();
    for (evidence, why) in
        [("", "not JSON"), ("[]", "not a JSON object"), ("{\"agents\":1}", "agents is not a list")]
    {
        let ran = place.run_with(&["roster", "--json", "--evidence", "-"], evidence.as_bytes());
        assert_eq!(ran.code, 1, "{evidence}");
        assert_eq!(ran.json()["error"]["code"], "evidence");
        assert!(ran.stderr.contains(why), "{evidence}: {}", ran.stderr);
    }
    let ran = place.run(&["roster", "--evidence", "gone.json"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.starts_with("headman: can't read gone.json: "), "{}", ran.stderr);
    let plain = place.run_with(&["roster", "--evidence", "-"], b"{}");
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "No leads.\n"));
}
