//! The console in a terminal, killed between two system calls.

use std::collections::BTreeSet;
use std::path::PathBuf;

use headman::chief::journal::{Index, Journal};
use headman::contract::{SessionId, Uuid};
use headman::disk::crash;

use crate::cli_support::until;
use crate::demo_console::{self, Served, press};
use crate::pty::Harness;
use crate::screens::session;
use crate::support::below;

/// Else it would look as if the point were never reached.
#[test]
fn a_point_that_is_none_ends_it_with_an_error() {
    let place = crate::cli_support::Place::new();
    for (variable, value, named) in [
        (crash::VARIABLE, "lease:lock_maed", "there is no point \"lease:lock_maed\""),
        (crash::VARIABLE, "lease:lock_made:x", "\"lease:lock_made:x\" does not end with a number"),
        (crash::VARIABLE, "lease:lock_made:0", "\"lease:lock_made:0\" does not end with a number"),
        (crash::WAIT[0], "lease:lock_made,nowhere", "there is no point \"nowhere\""),
        (crash::WAIT[0], "lease:lock_made", "needs HEADMAN_WAIT_FOR"),
    ] {
        let output = place.command(&["man"]).env(variable, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{value}: {said}");
        assert!(said.contains(variable) && said.contains(named), "{value}: {said}");
    }
    let output = place.command(&["man"]).env(crash::VARIABLE, "lease:lock_made:2").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The real console in a real terminal over the demo's leads, killed at a point.
struct Console {
    home: tempfile::TempDir,
    served: Served,
}

impl Console {
    fn new() -> Self {
        let home = demo_console::home();
        let served = Served::start(home.path(), &["--speed", "0"]);
        Self { home, served }
    }

    fn start(&self, crash_at: Option<&str>) -> Harness {
        let mut environment = self.served.environment.clone();
        environment.extend(crash_at.map(|at| (crash::VARIABLE.to_owned(), at.to_owned())));
        Harness::start_in(demo_console::headman(self.home.path(), &[], &environment), 120, 40)
    }

    fn variable(&self, name: &str) -> PathBuf {
        let all = self.served.environment.iter();
        all.filter(|(it, _)| it == name).map(|(_, value)| PathBuf::from(value)).next().unwrap()
    }

    fn state(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.variable("HEADMAN_STATE_DIR")).unwrap();
        let mut directories = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        directories.next().unwrap()
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.state().join("journal")).unwrap()
    }

    /// The session of the console.
    fn session(&self) -> SessionId {
        let identity = std::fs::read(self.state().join("identity.json")).unwrap();
        let identity: serde_json::Value = serde_json::from_slice(&identity).unwrap();
        session(identity["session"].as_str().unwrap())
    }

    /// How often a message says `text` in the sessions of all leads.
    fn handed_over(&self, text: &str) -> usize {
        let sessions = self.variable("PI_CODING_AGENT_DIR").join("sessions");
        let files =
            below(&sessions).into_iter().map(|path| sessions.join(path)).filter(|path| path.is_file());
        let count = |file: PathBuf| {
            let file = std::fs::read_to_string(file).unwrap();
            let messages = file.lines().filter(|line| line.contains(r#""custom_message""#));
            messages.filter(|line| line.contains(text)).count()
        };
        files.map(count).sum()
    }
}

#[test]
fn a_console_killed_between_journal_and_removal_has_an_ask_once() {
    let console = Console::new();
    let mut killed = console.start(Some("reception:journalled"));
    assert_eq!(killed.wait_for_exit().signal(), Some("Killed"));
    let asks = |index: &Index| -> Vec<(SessionId, Uuid)> {
        let asks = index.received().filter_map(|it| Some((it.lead.clone()?, it.ask?)));
        asks.collect()
    };
    assert!(!asks(console.journal().index()).is_empty());
    let runtimes = console.variable("PI_CODING_AGENT_DIR").join("pi-herdsman/runtime/supervision");
    let inbox = format!("inbox/{}/", console.session().hash());
    let is_ours = |path: &PathBuf| path.to_str().unwrap().contains(&inbox);
    assert!(below(&runtimes).iter().any(is_ours), "what is journalled still stands in the inbox");
    let mut again = console.start(None);
    again.wait_for("to be Chief", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    until("our inbox is empty", || !below(&runtimes).iter().any(is_ours));
    press(&mut again, "i", "the inbox", |it| it.shows("Inbox"));
    let listed = asks(console.journal().index());
    let distinct: BTreeSet<_> = listed.iter().collect();
    assert_eq!(distinct.len(), listed.len(), "{listed:?}");
}

#[test]
fn a_reply_whose_console_is_killed_while_it_is_sent_arrives_once() {
    std::thread::scope(|scope| {
        for point in ["send:journalled", "send:published"] {
            scope.spawn(move || {
                let console = Console::new();
                let mut killed = console.start(Some(point));
                killed.wait_for("an ask", |it| it.shows("asks,") && it.shows("chief since"));
                press(&mut killed, "r", "the composer", |it| it.shows("8192 bytes"));
                press(&mut killed, "Whatever happens.", "the text", |it| it.shows("happens."));
                let drafts = console.state().join("drafts");
                until("the draft is durable", || !below(&drafts).is_empty());
                killed.type_text("\r");
                assert_eq!(killed.wait_for_exit().signal(), Some("Killed"));

                let mut again = console.start(None);
                again.wait_for("to be Chief", |it| it.shows("chief since"));
                until("the lead has it", || console.handed_over("Whatever happens.") == 1);
                // What was sent is no draft any more.
                until("the draft is gone", || below(&drafts).is_empty());
                let open = || console.journal().index().sent().any(|entry| entry.is_open());
                until("what became of it is known", || !open());
                assert_eq!(console.handed_over("Whatever happens."), 1, "{point}");
            });
        }
    });
}
