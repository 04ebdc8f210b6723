//! A Herdr that means ill: whatever it answers, or does not, verbs end in time with the code they promise,
//! in bounded memory, and a console stays usable and says so.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use headman::contract::SessionId;
use headman::disk::records;
use serde_json::{Value, json};

use crate::cli_support::{Place, until};
use crate::control_flood::peak;
use crate::demo_console::{headman, press};
use crate::escapes::is_forbidden;
use crate::pty::Harness;

/// Seconds of the processor that a verb may take, on however busy a machine.
const WORK: usize = 10;
/// Seconds after which it hangs: what waits for Herdr in vain gives up long before, and says so.
const HANGS: &str = "120";
/// The address space a verb may have, in KiB. Of it 128 MiB are for threads and the program itself.
const SPACE: usize = 512 << 10;

/// The longest reply that is read, in bytes, and what the socket may hold beside it.
const LONGEST_REPLY: usize = 16 << 20;
const ON_THE_WAY: usize = 2 << 20;

pub(crate) type Answer = dyn Fn(&str, &mut UnixStream) -> std::io::Result<()> + Send + Sync;

/// Listens, and answers every request by `answer`, which is told the method.
pub(crate) struct Hostile {
    pub(crate) place: Place,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Hostile {
    pub(crate) fn new(answer: Arc<Answer>) -> Self {
        let mut place = Place::new();
        let socket = place.path("h.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        place.set("HERDR_SOCKET_PATH", socket.to_str().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let accepting = spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let answer = Arc::clone(&answer);
                // It ends at the latest when the other end is closed, as every write has an end then.
                spawn(move || {
                    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
                    let mut line = String::new();
                    let _ = BufReader::new(&stream).read_line(&mut line);
                    let request: Value = serde_json::from_str(&line).unwrap_or_default();
                    let _ = answer(request["method"].as_str().unwrap_or_default(), &mut { stream });
                });
            }
        });
        Self { place, stop, accepting: Some(accepting) }
    }

    /// The verb within bounded space.
    fn command(&self, arguments: &[&str]) -> Command {
        let asked = self.place.command(arguments);
        let mut command = Command::new("timeout");
        let bounds = format!("ulimit -v {SPACE}; ulimit -t {WORK}; exec \"$0\" \"$@\"");
        command.args(["-s", "KILL", HANGS, "sh", "-c", &bounds]);
        command.arg(asked.get_program()).args(asked.get_args()).env_clear();
        command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.place.path("")).stdin(std::process::Stdio::null());
        command
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(self.place.path("h.sock"));
        self.accepting.take().map(JoinHandle::join);
    }
}

fn reply(result: &Value) -> Vec<u8> {
    format!("{}\n", json!({"id": "x", "result": result})).into_bytes()
}

fn snapshot(parts: Value) -> Vec<u8> {
    let mut all =
        json!({"version": "1", "protocol": 20, "workspaces": [], "tabs": [], "panes": [], "agents": []});
    all.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    reply(&json!({"type": "session_snapshot", "snapshot": all}))
}

/// Waits until the other end gives up.
fn hold(stream: &UnixStream) -> std::io::Result<()> {
    BufReader::new(stream).read_line(&mut String::new()).map(drop)
}

fn filled(
    stream: &mut UnixStream,
    begin: &[u8],
    with: &[u8],
    bytes: usize,
    end: &[u8],
) -> std::io::Result<()> {
    stream.write_all(begin)?;
    let block = with.repeat((1 << 16) / with.len());
    let mut written = 0;
    while written < bytes {
        stream.write_all(&block)?;
        written += block.len();
    }
    stream.write_all(end)
}

fn bytes(answer: impl Into<Vec<u8>>) -> Arc<Answer> {
    let answer = answer.into();
    Arc::new(move |_, stream| stream.write_all(&answer))
}

const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}evil\u{200b}";
const EMPTY: &[u8] =
    b"{\"id\":\"x\",\"result\":{\"type\":\"session_snapshot\",\"snapshot\":{\"version\":\"1\",\
    \"protocol\":20,\"workspaces\":[],\"tabs\":[],\"panes\":[],\"agents\":";

/// A hundred megabytes, for whoever takes them; `taken` is how much somebody took at most.
fn mass(begin: &'static [u8], end: &'static [u8], taken: &Arc<AtomicUsize>) -> Arc<Answer> {
    let taken = Arc::clone(taken);
    Arc::new(move |_, stream| {
        stream.write_all(begin)?;
        let block = [b'y'; 1 << 16];
        for nth in 1..=(100 << 20) / block.len() {
            stream.write_all(&block)?;
            taken.fetch_max(nth * block.len(), Ordering::Relaxed);
        }
        stream.write_all(end)
    })
}

/// What it does, and what `headman list` calls it: the code of the failure, or none. `taken` is how much
/// was taken at most of those masses that are too large.
fn behaviours(taken: &Arc<AtomicUsize>) -> Vec<(&'static str, Option<&'static str>, Arc<Answer>)> {
    let deep = format!(
        "{{\"id\":\"x\",\"result\":{{\"snapshot\":{}1{}}}}}\n",
        "[".repeat(1 << 20),
        "]".repeat(1 << 20)
    );
    let deep_agents = [EMPTY, &[b'['].repeat(1 << 20), &[b']'].repeat(1 << 20), b"}}}\n"].concat();
    let twice = b"{\"id\":1,\"id\":2,\"result\":7,\"result\":{\"snapshot\":3,\"snapshot\":{\"protocol\":1,\"protocol\":20,\
        \"workspaces\":[1],\"workspaces\":[],\"tabs\":[],\"panes\":[],\"agents\":[]}}}\n";
    let error =
        format!("{}\n", json!({"id": "", "error": {"code": HOSTILE, "message": HOSTILE.repeat(1000)}}));
    let late = |method: &str, stream: &mut UnixStream| {
        std::thread::sleep(Duration::from_millis(2_500));
        let _ = method;
        stream.write_all(&snapshot(json!({})))
    };
    let dribbled = |_: &str, stream: &mut UnixStream| {
        snapshot(json!({})).chunks(1).try_for_each(|byte| {
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(byte)
        })
    };
    let workspaces: Vec<Value> =
        (0..400).map(|nth| json!({"workspace_id": format!("w{nth}"), "label": HOSTILE})).collect();
    let half_silent = move |method: &str, stream: &mut UnixStream| match method {
        "session.snapshot" => stream.write_all(&snapshot(json!({"workspaces": workspaces}))),
        _ => hold(stream),
    };
    vec![
        ("garbage", Some("herdr_garbage"), bytes([HOSTILE.as_bytes(), b"\xff\xfe\x9b31m\0\n"].concat())),
        ("an empty line", Some("herdr_garbage"), bytes(*b"\n\n\n")),
        ("half a line and the end", Some("herdr_closed"), bytes(*b"{\"id\":\"x\",\"resu")),
        ("nothing and the end", Some("herdr_closed"), bytes([])),
        (
            "half a line and silence",
            Some("herdr_timed_out"),
            Arc::new(|_, stream| stream.write_all(b"{\"id\"").and_then(|()| hold(stream))),
        ),
        ("silence", Some("herdr_timed_out"), Arc::new(|_, stream| hold(stream))),
        ("too late", Some("herdr_timed_out"), Arc::new(late)),
        ("byte by byte", Some("herdr_timed_out"), Arc::new(dribbled)),
        ("100 MB without an end", Some("herdr_too_large"), mass(b"", b"", taken)),
        ("100 MB of JSON", Some("herdr_too_large"), mass(b"{\"id\":\"", b"\"}\n", taken)),
        ("nested a million times", Some("herdr_garbage"), bytes(deep)),
        ("agents nested a million times", None, bytes(deep_agents)),
        ("an error with escapes", Some("herdr_error"), bytes(error)),
        ("another id, and keys twice", None, bytes(*twice)),
        (
            "4 MB of agents that are none",
            None,
            Arc::new(|_, stream| filled(stream, &[EMPTY, b"["].concat(), b"0,", 4 << 20, b"0]}}}\n")),
        ),
        (
            "4 MB of agents",
            None,
            Arc::new(|_, stream| {
                let agent = format!("{},", json!({"pane_id": "p", "tab_id": "t", "workspace_id": "w"}));
                filled(stream, &[EMPTY, b"["].concat(), agent.as_bytes(), 4 << 20, b"0]}}}\n")
            }),
        ),
        (
            "lines without an end after the answer",
            None,
            Arc::new(|_, stream| {
                stream.write_all(&snapshot(json!({})))?;
                filled(stream, b"", b"{\"event\":\"x\"}\n", usize::MAX, b"")
            }),
        ),
        ("an answer to the first question alone", None, Arc::new(half_silent)),
    ]
}

fn harmless(what: &str, output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(text).unwrap();
        let bad = text.chars().find(|it| *it != '\n' && is_forbidden(*it));
        assert_eq!(bad, None, "{what}: {text:?}");
        assert!(text.len() < 64 << 10, "{what}: {} bytes", text.len());
    }
}

#[test]
fn a_console_says_what_is_wrong_and_goes_on() {
    for (nth, (what, expected, answer)) in behaviours(&Arc::default()).into_iter().enumerate() {
        // Of those that look alike from here one each.
        if ![0, 2, 5, 8, 12, 16].contains(&nth) {
            continue;
        }
        let herdr = Hostile::new(answer);
        let home = herdr.place.path("home");
        let socket = herdr.place.path("h.sock").to_str().unwrap().to_owned();
        let environment = [("HERDR_SOCKET_PATH".to_owned(), socket)];
        let mut terminal = Harness::start_in(headman(&home, &[], &environment), 100, 30);
        match expected {
            Some(_) => terminal.wait_for("to say so", |it| it.shows("herdr down") && it.shows("Herdr ")),
            None => terminal.wait_for("a screen", |it| it.shows("headman")),
        }
        press(&mut terminal, "?", "the help", |it| it.shows("┌ Help"));
        let grown = peak(terminal.child.process_id().unwrap());
        println!("{what}: {} MiB at most", grown >> 20);
        assert!(grown < 128 << 20, "{what}: {grown} bytes");
        press(&mut terminal, "\u{1b}", "the roster", |it| !it.shows("┌ Help"));
        terminal.type_text("\u{3}");
        std::thread::sleep(Duration::from_millis(50));
        terminal.type_text("\u{3}");
        assert!(terminal.finish().success(), "{what}");
        assert!(!String::from_utf8_lossy(&terminal.raw).contains("owned\u{7}"), "{what}");
        terminal.assert_given_back();
    }
}

#[test]
fn verbs_end_in_time_in_little_space_and_with_the_code_they_promise() {
    let taken = Arc::default();
    let judged: Vec<_> = behaviours(&taken)
        .into_iter()
        .map(|(what, expected, answer)| {
            spawn(move || {
                let herdr = Hostile::new(answer);
                // What a message is sent through is not there, whatever Herdr says.
                for (arguments, answered, failed) in [
                    (&["list", "--json"][..], &[0][..], &[4][..]),
                    (&["state", "--json"], &[0], &[4]),
                    // It pings first, which some of them answer with something else.
                    (&["doctor", "--json"], &[0, 4], &[4]),
                    (&["message", "s", "x", "--json"], &[3], &[3]),
                    (&["message", "s", "x", "--json", "--take-lease"], &[1], &[4]),
                    (&["lead", "ask", "--session", "s", "x?", "--json"], &[1], &[1]),
                ] {
                    let verb = arguments[0];
                    // Nothing else comes of the same silence or mass, asked by another verb.
                    let is_slow = expected == Some("herdr_timed_out") || what.ends_with("alone");
                    if (is_slow || what.contains("MB")) && verb != "list" {
                        continue;
                    }
                    let codes = if expected.is_some() { failed } else { answered };
                    let output = herdr.command(arguments).output().unwrap();
                    harmless(what, &output);
                    let (code, said) =
                        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout));
                    // A machine at its limit may not get through such a mass in time. That no more of it
                    // is taken than is allowed is looked at below.
                    let is_mass = what.contains("MB") || what.contains("nested");
                    if is_mass && said.contains("herdr_timed_out") {
                        continue;
                    }
                    assert!(
                        codes.contains(&code),
                        "{what}, {verb}: {code}, {said} {}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                    if let Some(expected) = expected.filter(|_| verb == "list" || verb == "state") {
                        assert!(said.contains(expected), "{what}, {verb}: {said}");
                    }
                }
            })
        })
        .collect();
    let count = judged.len();
    let failed = judged.into_iter().filter_map(|it| it.join().err()).count();
    assert_eq!((count, failed), (18, 0));
    let taken = taken.load(Ordering::Relaxed);
    assert!((1..=LONGEST_REPLY + ON_THE_WAY).contains(&taken), "{taken} bytes of a mass were taken");
}

#[test]
fn a_lead_is_open_whatever_herdr_answers_and_ends_in_order() {
    for (nth, (what, _, answer)) in behaviours(&Arc::default()).into_iter().enumerate() {
        // Of those that look alike from here one each.
        if ![0, 2, 5, 8, 12, 16].contains(&nth) {
            continue;
        }
        let mut herdr = Hostile::new(answer);
        for (name, value) in [
            ("HERDR_ENV", "1"),
            ("HERDR_PANE_ID", "w1:p1"),
            ("HERDR_TAB_ID", "w1:t1"),
            ("HERDR_WORKSPACE_ID", "w1"),
        ] {
            herdr.place.set(name, value);
        }
        let runtime = herdr.place.agent_dir().runtime(herdr.place.path("h.sock").as_os_str());
        let session = SessionId::new("s").unwrap();
        let open = herdr.place.start(&["lead", "open", "--session", "s"]);
        until("the lead", || records::read_lead(&runtime, &session).is_ok());
        let pid = rustix::process::Pid::from_raw(i32::try_from(open.id()).unwrap()).unwrap();
        let grown = peak(open.id());
        assert!(grown < 128 << 20, "{what}: {grown} bytes");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let started = Instant::now();
        let output = open.wait_with_output().unwrap();
        println!("{what}: {} MiB, {:?}, {:?}", grown >> 20, started.elapsed(), output.status.code());
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        assert_eq!(output.status.code(), Some(0), "{what}: {output:?}");
        harmless(what, &output);
        assert!(records::read_lead(&runtime, &session).is_err(), "{what}: its record stays");
    }
}
