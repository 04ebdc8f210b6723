//! A console whose state directory is of a later release: it watches, writes nothing, and says so.

use headman::fact::{Fact, OtherChief, Standing};

use crate::cli_support::Place;
use crate::pty::{self, Harness};
use crate::screens::{app, at, press, shown};

#[test]
fn what_it_shows_and_refuses() {
    let mut app = app();
    let why =
        "/home/u/.local/state/headman is of version 2, this headman writes version 1: use the newer one";
    let standing = |chief| Fact::Standing(Standing::Barred { why: why.to_owned(), chief });
    app.facts(vec![standing(OtherChief::None)], at(0));
    insta::assert_snapshot!("barred_120x40", shown(&app, 120, 40, at(0)));
    insta::assert_snapshot!("barred_40x15", shown(&app, 40, 15, at(0)));
    // No composer opens: nothing is written that could not be kept.
    for key in ["nr", "m"] {
        press(&mut app, key, at(1));
        let screen = shown(&app, 120, 40, at(1));
        assert!(
            screen.contains("You only watch: what you write could be neither sent nor kept."),
            "{screen}"
        );
        assert!(!screen.contains("bytes"), "{screen}");
    }
    press(&mut app, "d", at(2));
    assert!(
        shown(&app, 120, 40, at(2)).contains("Only watching: /home/u/.local/state/headman is of version 2")
    );
}

#[test]
fn it_starts_and_leaves_everything_as_it_is() {
    let place = Place::new();
    let state = place.state_dir();
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("VERSION"), "2\n").unwrap();
    let before = place.picture();
    let mut command = pty::command(env!("CARGO_BIN_EXE_headman"), &[]);
    command.env_clear();
    command.env("HOME", place.path("home"));
    command.env("HERDR_SOCKET_PATH", place.path("h.sock"));
    command.env("TERM", "xterm-256color");
    let mut terminal = Harness::start_in(command, 120, 30);
    terminal.wait_for("the banner", |it| it.shows("only watching") && it.shows("is of version 2"));
    terminal.type_text("c");
    terminal.wait_for("the refusal", |it| it.shows("Not Chief: ") && it.shows("use the newer one"));
    std::thread::sleep(std::time::Duration::from_millis(50));
    terminal.type_text("q");
    assert!(terminal.finish().success());
    assert_eq!(place.picture(), before);
}
