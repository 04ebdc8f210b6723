//! The documents name what there is.

use std::path::Path;

use headman::console::actions::ACTIONS;
use headman::console::theme::{ASCII, Mark, Theme, UNICODE};

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

#[test]
fn the_guide_lists_every_theme_action_and_sign() {
    let guide = document("guide.md");
    for name in Theme::names().into_iter().chain(ACTIONS.iter().map(|action| action.name)) {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide.md does not name `{name}`");
    }
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    for mark in Mark::ALL {
        let signs = format!("| `{}` | `{}` |", UNICODE.mark(mark), ASCII.mark(mark));
        let word = mark.word().split(',').next().unwrap();
        let row = rows.iter().find(|row| row.starts_with(&signs) && row.contains(word));
        assert!(row.is_some(), "docs/guide.md has no {signs} {word}");
    }
}

#[test]
fn the_command_line_document_has_every_option_of_the_demo() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_headman")).args(["demo", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let document = document("cli.md");
    let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
    for option in options.filter(|option| *option != "--help") {
        assert!(document.contains(&format!("`{option}")), "docs/cli.md does not have {option}");
    }
}
