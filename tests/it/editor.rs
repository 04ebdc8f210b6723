//! The operator's own editor, in a real terminal: a shell script that does what its first word says.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::cli_support::until;
use crate::demo_console::{self, Served, headman, press};
use crate::pty::Harness;

/// Notes its file and process, then does the task that stands in `$HOME/task`.
const EDITOR: &str = r#"#!/bin/sh
printf '%s %s' "$$" "$1" > "$HOME/started.new"
mv "$HOME/started.new" "$HOME/started"
echo "the editor has the terminal"
read -r task < "$HOME/task"
case "$task" in
nothing) ;;
more) printf 'and more\r\nof \033[31mit\n' >> "$1" ;;
fail) echo half >> "$1"; exit 3 ;;
gone) rm "$1" ;;
large) head -c 70000 /dev/zero | tr '\0' x > "$1" ;;
killed) echo half >> "$1"; kill -9 $$ ;;
typed) read -r typed; printf '%s\n' "$typed" > "$1" ;;
waits) echo 'kept by the editor' >> "$1"; trap '' HUP TERM; echo waiting; while :; do sleep 0.05; done ;;
ends) trap 'echo "kept at the end" >> "$1"; exit 0' HUP; echo waiting; while :; do sleep 0.05; done ;;
esac
"#;

struct Desk {
    home: tempfile::TempDir,
    served: Served,
    editor: PathBuf,
}

impl Desk {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let home = demo_console::home();
        let editor = home.path().join("my editor");
        std::fs::write(&editor, EDITOR).unwrap();
        std::fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
        let served = Served::start(home.path(), &["--speed", "0"]);
        Self { home, served, editor }
    }

    fn environment(&self, editor: &str) -> Vec<(String, String)> {
        let mut environment = self.served.environment.clone();
        environment.push(("VISUAL".to_owned(), editor.to_owned()));
        environment.push(("EDITOR".to_owned(), "false".to_owned()));
        environment
    }

    /// A console that writes a reply, with `draft` in it.
    fn composing(&self, draft: &str) -> Harness {
        let editor = format!("'{}'", self.editor.display());
        let command = headman(self.home.path(), &[], &self.environment(&editor));
        let mut console = Harness::start_in(command, 120, 40);
        console.wait_for("an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
        press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
        press(&mut console, draft, "the draft", |it| it.shows(draft));
        console
    }

    /// Has the editor do that.
    fn task(&self, task: &str) {
        std::fs::write(self.home.path().join("task"), format!("{task}\n")).unwrap();
        let _ = std::fs::remove_file(self.home.path().join("started"));
    }

    /// The editor's process, and the file it works on.
    fn started(&self) -> (Pid, PathBuf) {
        let noted = self.home.path().join("started");
        until("the editor", || noted.exists());
        let noted = std::fs::read_to_string(noted).unwrap();
        let (pid, file) = noted.split_once(' ').unwrap();
        (Pid::from_raw(pid.parse().unwrap()).unwrap(), PathBuf::from(file))
    }

    fn drafts(&self) -> Vec<String> {
        let root = self.served.environment.iter().find(|(name, _)| name == "HEADMAN_STATE_DIR").unwrap();
        let files = crate::support::below(Path::new(&root.1));
        let drafts = files.into_iter().filter(|path| path.to_string_lossy().contains("/drafts/"));
        drafts.filter_map(|path| std::fs::read_to_string(Path::new(&root.1).join(path)).ok()).collect()
    }
}

fn is_taken(console: &Harness) -> bool {
    let screen = console.screen.screen();
    screen.alternate_screen()
        && screen.bracketed_paste()
        && screen.hide_cursor() != console.shows("8192 bytes")
}

#[test]
fn a_text_goes_to_the_editor_and_comes_back() {
    let desk = Desk::new();
    let mut console = desk.composing("Begun here");
    desk.task("typed");
    console.type_text("\x07");
    console.wait_for("the editor", |it| {
        !it.screen.screen().alternate_screen() && it.shows("the editor has the terminal")
    });
    assert!(console.is_cooked() && !console.screen.screen().bracketed_paste());
    let (_, file) = desk.started();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Begun here\n");
    assert!(desk.drafts().iter().any(|draft| draft.contains("Begun here")), "saved before");
    // What is typed now is the editor's, commands of the console among it.
    console.type_text("Written\x15Written there.\r");
    console.wait_for("the text", |it| is_taken(it) && it.shows("Written there."));
    assert!(!console.shows("Begun here") && !file.exists());

    desk.task("more");
    press(&mut console, "\x07", "what it added, without controls", |it| {
        it.shows("and more") && it.shows("of [31mit") && it.shows("Control characters were left out")
    });
    // One step, and the next.
    press(&mut console, "\x15", "the text before", |it| it.shows("Written there.") && !it.shows("and more"));
    press(&mut console, "\x1bu", "that before it", |it| it.shows("Begun here") && !it.shows("Written"));
    press(&mut console, "\x12", "the later one again", |it| it.shows("Written there."));
    desk.task("nothing");
    press(&mut console, "\x07", "to be told", |it| it.shows("changed nothing") && it.shows("Written there."));
    press(&mut console, "\r", "the answer", |it| it.shows("● answered") && it.shows("Written there."));
}

#[test]
fn an_editor_that_fails_leaves_the_draft_as_it_was() {
    let desk = Desk::new();
    let mut console = desk.composing("Begun here");
    for (task, told, stays) in [
        ("fail", "ended with 3; what it wrote is in", true),
        ("gone", "its file is gone", false),
        ("large", "more text than can ever be sent", true),
        ("killed", "signal 9; what it wrote is in", true),
    ] {
        desk.task(task);
        console.raw.clear();
        press(&mut console, "\x07", told, |it| {
            is_taken(it) && String::from_utf8_lossy(&it.raw).contains("kept as it was")
        });
        assert!(console.shows("Begun here"), "{task}: {}", console.screen.screen().contents());
        assert!(console.shows(told.split("; ").next().unwrap()) || console.shows("kept as it was"), "{task}");
        assert_eq!(desk.started().1.exists(), stays, "{task}");
    }
    // A key that ends the editor is no key of the console's.
    desk.task("ends");
    console.type_text("\x07");
    console.wait_for("the editor", |it| !it.screen.screen().alternate_screen() && it.shows("waiting"));
    console.type_text("\x03");
    console.wait_for("to be told", |it| is_taken(it) && it.shows("kept as it was"));
    press(&mut console, " still", "the console to go on", |it| it.shows("Begun here still"));
}

#[test]
fn an_editor_that_is_not_there_is_said_with_what_to_set() {
    let desk = Desk::new();
    let command = headman(desk.home.path(), &[], &desk.environment("/nowhere/ed -w"));
    let mut console = Harness::start_in(command, 120, 40);
    console.wait_for("an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "Begun here", "the draft", |it| it.shows("Begun here"));
    press(&mut console, "\x07", "to be told", |it| {
        is_taken(it) && it.shows("there is no `/nowhere/ed -w`; set VISUAL or EDITOR")
    });
    assert!(console.shows("Begun here"));
}

#[test]
fn a_signal_while_the_editor_runs_keeps_what_it_wrote_and_ends_both() {
    let desk = Desk::new();
    for (task, signal, kept) in
        [("waits", Signal::TERM, "kept by the editor"), ("ends", Signal::HUP, "kept at the end")]
    {
        let mut console = desk.composing("Begun here");
        desk.task(task);
        console.type_text("\x07");
        console.wait_for("the editor", |it| !it.screen.screen().alternate_screen() && it.shows("waiting"));
        let (editor, file) = desk.started();
        kill_process(console.pid(), signal).unwrap();
        assert_eq!(console.finish().exit_code(), 128 + u32::try_from(signal.as_raw()).unwrap());
        console.assert_given_back();
        assert!(test_kill_process(editor).is_err(), "the editor runs on");
        assert!(!file.exists());
        assert!(desk.drafts().iter().any(|draft| draft.contains(kept)), "{:?}", desk.drafts());
    }
}

#[test]
fn a_terminal_that_goes_while_the_editor_has_it_costs_nothing() {
    let desk = Desk::new();
    let mut console = desk.composing("Begun here");
    desk.task("ends");
    console.type_text("\x07");
    console.wait_for("the editor", |it| !it.screen.screen().alternate_screen() && it.shows("waiting"));
    let (editor, _) = desk.started();
    drop(console.input.take());
    drop(console.master.take());
    // The thread that reads the terminal holds it open: this is what closing it would send.
    for process in [editor, console.pid()] {
        kill_process(process, Signal::HUP).unwrap();
    }
    assert_eq!(console.wait_for_exit().exit_code(), 129);
    assert!(test_kill_process(editor).is_err(), "the editor runs on");
    assert!(desk.drafts().iter().any(|draft| draft.contains("Begun here")), "{:?}", desk.drafts());
}

#[test]
fn a_stop_in_the_editor_stops_the_console_and_the_shell_continues_both() {
    let Some(bash) = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists()) else {
        eprintln!("not run: there is no bash");
        return;
    };
    let desk = Desk::new();
    let editor = format!("'{}'", desk.editor.display());
    let mut shell = headman(desk.home.path(), &[], &desk.environment(&editor));
    let program = shell.get_argv()[0].clone().into_string().unwrap();
    *shell.get_argv_mut() = [bash, "--norc", "--noprofile", "-i"].map(Into::into).to_vec();
    shell.env("PS1", "shell> ");
    let mut console = Harness::start_in(shell, 120, 40);
    console.wait_for("prompt", |it| it.shows("shell> "));
    console.type_text(&format!("'{program}'\r"));
    console.wait_for("an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "Begun here", "the draft", |it| it.shows("Begun here"));
    desk.task("typed");
    console.type_text("\x07");
    console.wait_for("the editor", |it| it.shows("the editor has the terminal"));
    desk.started();
    console.type_text("\x1a");
    console.wait_for("the shell", |it| it.shows("Stopped"));
    console.type_text("echo $((6 * 7))0\r");
    console.wait_for("the shell's answer", |it| it.shows("420"));
    console.type_text("fg\r");
    console.wait_for("the job", |it| it.shows("fg"));
    console.type_text("Written after.\r");
    console.wait_for("the text", |it| is_taken(it) && it.shows("Written after."));
    press(&mut console, "\x03", "to be asked again", |it| it.shows("Ctrl-c again"));
    press(&mut console, "\x03", "the shell", |it| !it.screen.screen().alternate_screen());
    console.type_text("exit\r");
    console.finish();
}
