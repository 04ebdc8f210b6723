//! Writing in a real terminal: files, and pastes of every kind.

use std::path::Path;

use portable_pty::CommandBuilder;

use crate::demo_console::{Served, headman, home, press};
use crate::pty::Harness;
use crate::support::below;

fn start(command: CommandBuilder) -> Harness {
    let mut console = Harness::start_in(command, 120, 40);
    console.wait_for("an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    console
}

#[test]
fn a_person_sends_files_with_a_reply() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let work = home.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("the plan.md"), "First the keys, then the rest.\n").unwrap();
    std::fs::write(work.join("core"), [0; 300]).unwrap();
    let mut command = headman(home.path(), &[], &served.environment);
    command.cwd(&work);
    let mut console = start(command);
    press(&mut console, "As in @", "both paths", |it| it.shows("the plan.md") && it.shows("core"));
    press(&mut console, "th", "the one", |it| it.shows("the plan.md") && !it.shows("core"));
    press(&mut console, "\t", "it taken and seen", |it| {
        it.shows("As in @\"the plan.md\"") && it.shows("31 B, with its content")
    });
    press(&mut console, "and @core.", "the other seen", |it| it.shows("300 B, by its path: it is not text"));
    press(&mut console, "\r", "the answer", |it| it.shows("● answered"));
    let sessions = served.environment.iter().find(|(name, _)| name == "PI_CODING_AGENT_DIR").unwrap();
    let sessions = Path::new(&sessions.1).join("sessions");
    let holds = |text: &str| {
        let files =
            below(&sessions).into_iter().map(|path| sessions.join(path)).filter(|path| path.is_file());
        files.filter(|file| std::fs::read_to_string(file).unwrap().contains(text)).count()
    };
    assert_eq!(holds("First the keys, then the rest."), 1);
    assert_eq!(holds(r#"bytes=\"300\" />"#), 1);
    assert_eq!(holds("As in @"), 1);
}

#[test]
fn pastes_are_text_whatever_they_hold_and_send_nothing() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = start(headman(home.path(), &[], &served.environment));
    // Within brackets: as much as is taken, with line ends and controls of every kind.
    let line = "0123456789abcdef \u{e4}\u{1b}[31m\u{7}\u{3}\u{1a}q\r\n";
    let text = line.repeat(1_900);
    console.type_text(&format!("\x1b[200~{text}\x1b[201~"));
    console.wait_for("it, without its controls", |it| {
        it.shows("Control characters were left out")
            && it.shows("too many")
            && it.shows("0123456789abcdef ä[31mq")
    });
    press(&mut console, "\x15", "it undone", |it| !it.shows("0123456789abcdef") && !it.shows("too many"));
    console.type_text(&format!("\x1b[200~{}\x1b[201~", "y".repeat(65_537)));
    console.wait_for("too much to be refused", |it| it.shows("more text than can ever be sent"));
    // As keys, line ends among them: no Enter of it sends, no key of it commands.
    let keys = "one @two\tthree q\r".repeat(240);
    console.type_text(&format!("{keys}the end"));
    console.wait_for("all of it", |it| it.shows("the end") && it.shows("one @two"));
    assert!(!console.shows("queued") && !console.shows("Sending") && console.shows("chief since"));
    press(&mut console, "\x1b", "the draft", |it| it.shows("Draft"));
    let root = &served.environment.iter().find(|(name, _)| name == "HEADMAN_STATE_DIR").unwrap().1;
    let drafts = || -> Vec<String> {
        let files =
            below(Path::new(root)).into_iter().filter(|path| path.to_string_lossy().contains("/drafts/"));
        files.filter_map(|path| std::fs::read_to_string(Path::new(root).join(path)).ok()).collect()
    };
    let all = "one @two\\tthree q\\n".repeat(240);
    crate::cli_support::until("the whole draft", || {
        drafts().iter().any(|draft| draft.contains(&format!("{all}the end")))
    });
}
