//! The whole console in a real terminal, over the simulated herd: what a person does and sees.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};

use crate::pty::Harness;

const HEADMAN: &str = env!("CARGO_BIN_EXE_headman");

/// A home of nobody's, for programs that must not see the user's own.
pub(crate) fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("hm").tempdir().unwrap()
}

fn environment(home: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("HOME", home.to_str().unwrap().to_owned()),
        ("TMPDIR", home.to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ]
}

pub(crate) fn headman(home: &Path, arguments: &[&str], more: &[(String, String)]) -> CommandBuilder {
    let mut command = CommandBuilder::new(HEADMAN);
    command.args(arguments);
    command.env_clear();
    for (name, value) in environment(home) {
        command.env(name, value);
    }
    for (name, value) in more {
        command.env(name, value);
    }
    command.cwd("/");
    command
}

fn lines(terminal: &Harness) -> Vec<String> {
    terminal.screen.screen().rows(0, 200).collect()
}

/// A person types and looks. Keys that come faster than from a hand are no commands, so this takes
/// a hand's time.
pub(crate) fn press(terminal: &mut Harness, key: &str, what: &str, seen: impl Fn(&Harness) -> bool) {
    std::thread::sleep(std::time::Duration::from_millis(50));
    terminal.type_text(key);
    terminal.wait_for(what, seen);
}

#[test]
fn a_person_answers_an_ask_and_the_lead_goes_back_to_work() {
    let home = home();
    let mut terminal = Harness::start_in(headman(home.path(), &["demo"], &[]), 120, 40);
    terminal.wait_for("an ask at the top with its age", |it| {
        let rows = lines(it);
        rows.get(2).is_some_and(|row| row.contains("NEEDS YOU"))
            && rows[3].contains("auth-rewrite")
            && rows[0].contains("chief since")
            && rows[0].contains("(oldest")
    });
    // Leads can write up: Herdr lists the console as the Chief.
    terminal.wait_for("to be registered", |it| !it.shows("can't write up"));
    press(&mut terminal, "r", "the composer", |it| it.shows("Reply") && it.shows("/ 8192 bytes"));
    press(&mut terminal, "Reject them, we announce it.", "the text", |it| it.shows("we announce it."));
    press(&mut terminal, "\r", "it queued", |it| it.shows("● queued"));
    terminal.wait_for("it taken, delivered and answered", |it| {
        it.shows("● taken") && it.shows("● delivered") && it.shows("● answered")
    });
    press(&mut terminal, "\u{1b}", "the roster", |it| it.shows("Leads"));
    terminal.wait_for("the lead back at work, its ask gone", |it| {
        let rows = lines(it);
        let Some(working) = rows.iter().position(|row| row.contains("WORKING")) else { return false };
        let lead = rows[working..].iter().find(|row| row.contains("auth-rewrite"));
        lead.is_some_and(|row| !row.contains('!'))
    });
    terminal.wait_for("what became of it in the detail", |it| it.shows("1 answered"));
    terminal.type_text("q");
    let status = terminal.finish();
    assert!(status.success(), "{status:?}");
    terminal.assert_given_back();
    // The herd's directory is gone with it.
    let left: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("headman-demo"))
        .collect();
    assert_eq!(left, [""; 0]);
}

/// A herd that serves, and the environment it prints.
pub(crate) struct Served {
    child: Child,
    pub(crate) environment: Vec<(String, String)>,
}

impl Served {
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(HEADMAN)
            .args(["demo", "--serve"])
            .args(arguments)
            .env_clear()
            .envs(environment(home))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut environment = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
            environment.push((name.to_owned(), value.trim_matches('\'').to_owned()));
            if name == "HEADMAN_STATE_DIR" {
                break;
            }
        }
        Self { child, environment }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Asked to end first, so that its leads end in order.
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_second_console_uses_the_first_and_takes_its_place_when_it_quits() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut first = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    first.wait_for("to be Chief with an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    let mut second = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    let of_the_first = format!("(process {})", first.pid().as_raw_pid());
    second.wait_for("to say whose service it uses", |it| {
        it.shows("● chief since") && it.shows(&of_the_first) && it.shows("NEEDS YOU")
    });
    press(&mut second, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut second, "Ye", "the text", |it| it.shows("Ye"));
    press(&mut second, "\u{1b}", "the draft", |it| it.shows("Draft"));
    press(&mut second, "\u{1b}", "the roster", |it| it.shows("Leads"));

    press(&mut first, "q", "anything", |_| true);
    assert!(first.finish().success());
    second.wait_for("to be Chief itself", |it| it.shows("● chief since") && !it.shows(&of_the_first));
    // The ask is still there, and so is the draft.
    assert!(second.shows("NEEDS YOU"));
    press(&mut second, "r", "the draft in the composer", |it| it.shows("Ye") && it.shows("8192 bytes"));
    press(&mut second, "s.", "the whole text", |it| it.shows("Yes."));
    press(&mut second, "\r", "the answer", |it| it.shows("● answered"));
    press(&mut second, "\u{3}", "to be asked again", |it| it.shows("Ctrl-c again"));
    press(&mut second, "\u{3}", "anything", |_| true);
    assert!(second.finish().success());
    second.assert_given_back();
}

#[test]
fn beside_a_console_that_is_stopped_another_is_suspended_and_takes_over_by_key_once_that_ended() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut first = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    first.wait_for("to be Chief with an ask", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    kill_process(first.pid(), Signal::STOP).unwrap();
    let mut second = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    second.wait_for("to be suspended and to say by whom", |it| {
        it.shows("○ suspended")
            && it.shows("another headman of yours is Chief, process")
            && it.shows("NEEDS YOU")
    });
    assert!(second.shows(&format!("process {}", first.pid().as_raw_pid())));
    // It may write, but not send.
    press(&mut second, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut second, "Yes.", "the text", |it| it.shows("Yes."));
    press(&mut second, "\r", "the refusal", |it| it.shows("not Chief"));
    press(&mut second, "\u{1b}", "the draft", |it| it.shows("Draft"));
    press(&mut second, "\u{1b}", "the roster", |it| it.shows("Leads"));

    kill_process(first.pid(), Signal::KILL).unwrap();
    first.wait_for_exit();
    second.wait_for("to see it free", |it| it.shows("the lease is free now"));
    press(&mut second, "c", "to be Chief", |it| it.shows("● chief since"));
    // The ask is still there, and so is the draft.
    assert!(second.shows("NEEDS YOU"));
    press(&mut second, "r", "the draft in the composer", |it| it.shows("Yes.") && it.shows("8192 bytes"));
    press(&mut second, "\r", "the answer", |it| it.shows("● answered"));
}

#[test]
fn a_draft_outlives_a_crash() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
    console.wait_for("an ask", |it| it.shows("NEEDS YOU") && it.shows("chief since"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "half a thou", "the text", |it| it.shows("half a thou"));
    let drafts = || {
        let state = served.environment.iter().find(|(name, _)| name == "HEADMAN_STATE_DIR").unwrap();
        let mut found = Vec::new();
        for socket in std::fs::read_dir(&state.1).unwrap().flatten() {
            for draft in std::fs::read_dir(socket.path().join("drafts")).into_iter().flatten().flatten() {
                // What is not in its place yet does not count.
                if draft.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                found.push(std::fs::read_to_string(draft.path()).unwrap_or_default());
            }
        }
        found
    };
    crate::cli_support::until("the draft is durable", || {
        drafts().iter().any(|it| it.contains("half a thou"))
    });
    kill_process(console.pid(), Signal::KILL).unwrap();
    console.wait_for_exit();

    let mut again = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
    again.wait_for("to be Chief again", |it| it.shows("chief since") && it.shows("NEEDS YOU"));
    press(&mut again, "r", "the draft", |it| it.shows("half a thou") && it.shows("earlier lease"));
    press(&mut again, "ght.", "the rest", |it| it.shows("half a thought."));
    press(&mut again, "\r", "the answer", |it| it.shows("● answered"));
    crate::cli_support::until("the draft is gone", || drafts().is_empty());
}

#[test]
fn what_was_received_and_sent_is_there_after_a_restart() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("an ask, received", |it| it.shows("NEEDS YOU") && it.shows("1 unread"));
    press(&mut console, "i", "the inbox", |it| it.shows("1 unread, 1 in all") && it.shows("still asks this"));
    press(&mut console, "/", "the search", |it| it.shows("/ \u{2581}"));
    press(&mut console, "refresh TOKENS", "nothing found", |it| it.shows("0 found"));
    press(&mut console, "\u{15}refresh tokens", "it found", |it| it.shows("1 found"));
    press(&mut console, "\r", "the search kept", |it| it.shows("/ refresh tokens"));
    press(&mut console, "\r", "it read", |it| it.shows("0 unread, 1 in all"));
    press(&mut console, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut console, "Rotate them.", "the text", |it| it.shows("Rotate them."));
    press(&mut console, "\r", "the answer", |it| it.shows("● answered"));
    press(&mut console, "\u{3}", "to be asked again", |it| it.shows("Ctrl-c again"));
    press(&mut console, "\u{3}", "anything", |_| true);
    assert!(console.finish().success());

    let mut again = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    again.wait_for("the leads", |it| it.shows("7 leads") && it.shows("chief since"));
    press(&mut again, "/", "the filter", |it| it.shows("/ \u{2581}"));
    press(&mut again, "auth", "the lead, and what it was sent", |it| {
        it.shows("messages 1 answered") && it.shows("Rotate them.")
    });
    press(&mut again, "\r", "the list", |it| it.shows("Leads / auth"));
    press(&mut again, "l", "what it sent", |it| {
        it.shows("0 unread, 1 in all") && it.shows("does not ask this any more")
    });
    press(&mut again, "q", "the roster", |it| it.shows("Leads"));
    press(&mut again, "\u{1b}", "all leads", |it| !it.shows("/ auth"));
    press(&mut again, "q", "anything", |_| true);
    assert!(again.finish().success());
}

#[test]
fn the_peers_are_those_of_the_herd() {
    use headman::contract::{Kind, Message, SessionId, Timestamp, Uuid};
    use headman::disk::peers::Peer;
    use headman::disk::{AgentDir, inbox};

    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let agent_dir = served.environment.iter().find(|(name, _)| name == "PI_CODING_AGENT_DIR").unwrap();
    let agent_dir = AgentDir::resolve(Some(agent_dir.1.as_ref()), home.path());
    let runtime = agent_dir.runtime("".as_ref());
    let mut peers = Vec::new();
    crate::cli_support::until("seven peers", || {
        peers = headman::source::peers::look(&runtime).unwrap();
        // What each works on, which decides its place, is written a moment after it is present.
        let is_whole = |peer: &&Peer| peer.record.as_ref().is_some_and(|it| it.branch.is_some());
        peers.iter().filter(|peer| peer.presence.is_ok()).filter(is_whole).count() == 7
    });
    let [to, from] = [0, 1].map(|at: usize| peers[at].session.clone().unwrap());

    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("the herd", |it| it.shows("7 leads"));
    let present = |it: &Harness| {
        let rows = lines(it);
        let heading = rows.iter().position(|row| row.contains("PRESENT"));
        heading.is_some_and(|at| (1..=7).all(|more| rows[at + more].contains('\u{25cf}')))
    };
    press(&mut console, "v", "seven peers", |it| {
        present(it) && !it.shows("NOT PRESENT") && it.shows("None waits.")
    });
    let message = Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::PeerMessage,
        from: from.clone(),
        to: SessionId::new(to.as_untrusted().clone()).unwrap(),
        lead: from,
        ask: None,
        text: "Mind the migration.".into(),
        created_at: Timestamp::from_millis(1),
    };
    inbox::publish(home.path(), &runtime.peer_inbox(&to), &message).unwrap();
    console.wait_for("what is queued", |it| it.shows("1 queued") && it.shows("Mind the migration."));
    inbox::remove(&runtime.peer_inbox(&to), message.id).unwrap();
    console.wait_for("it gone", |it| !it.shows("1 queued") && it.shows("None waits."));
    press(&mut console, "q", "the roster", |it| it.shows("Leads"));
    press(&mut console, "q", "anything", |_| true);
    assert!(console.finish().success());
}

#[test]
fn signals_release_lease_and_terminal() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    for signal in [Signal::TERM, Signal::HUP] {
        let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
        console.wait_for("to be Chief", |it| it.shows("chief since"));
        kill_process(console.pid(), signal).unwrap();
        let status = console.finish();
        assert_eq!(status.exit_code(), 128 + u32::try_from(signal.as_raw()).unwrap());
        console.assert_given_back();
    }
    // Nobody holds it: the next one is Chief at once.
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 80, 24);
    console.wait_for("to be Chief", |it| it.shows("chief since"));
}

#[test]
fn herdr_going_away_leaves_the_last_picture_with_its_age() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("the leads", |it| it.shows("7 leads"));
    served.signal(Signal::STOP);
    console.wait_for("it down", |it| it.shows("herdr down") && it.shows("What you see is as of"));
    assert!(console.shows("auth-rewrite"));
    served.signal(Signal::CONT);
    console.wait_for("it up", |it| it.shows("herdr ok"));
}

#[test]
fn programs_that_type_into_the_pane_command_nothing() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut console = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    console.wait_for("to be Chief with an ask", |it| it.shows("● chief since") && it.shows("NEEDS YOU"));
    // A prompt with q, r, c and more in it, at once.
    console.type_text("quick question: can you recheck?\r");
    console.wait_for("the burst to be told", |it| it.shows("faster than a hand types"));
    assert!(console.shows("● chief since") && console.shows("Leads") && !console.shows("8192 bytes"));
    press(&mut console, "?", "the help", |it| it.shows("┌ Help"));
}
