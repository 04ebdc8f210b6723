//! `headman transcript`: what was said in a session, byte for byte as the contract has it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headman::chief::lease::{Lease, Place as Seat};
use headman::contract::{SessionId, Timestamp};
use headman::demo::server::Fault;
use headman::herdr::Client;
use headman::pi::transcript::{Extent, Limit, MAX_BYTES, Transcript, TranscriptError, read};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::cli_support::{Herd, Place, Ran, chmod, until};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi/golden");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, content).unwrap();
    (dir, path)
}

/// The transcript of messages that follow each other.
fn of(messages: &[&str], extent: Extent) -> Transcript {
    let (_dir, path) = file(lines(messages));
    read(&path, &session("s-1"), extent).unwrap()
}

fn lines(messages: &[&str]) -> String {
    let line = |(at, message): (usize, &&str)| {
        let parent = if at == 0 { "null".to_owned() } else { format!("\"{:08x}\"", at - 1) };
        format!("{{\"type\":\"message\",\"id\":\"{at:08x}\",\"parentId\":{parent},\"message\":{message}}}\n")
    };
    HEADER.to_owned() + &messages.iter().enumerate().map(line).collect::<String>()
}

#[test]
fn golden_sessions_have_their_transcripts_byte_for_byte() {
    let golden: Value =
        serde_json::from_slice(&fs::read(format!("{GOLDEN}/transcripts.json")).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 29);
    let mut refused = 0;
    for case in cases {
        let (name, text) = (&case["name"], |key: &str| case[key].as_str());
        let path = Path::new(GOLDEN).join(text("file").unwrap());
        let found = read(&path, &session(text("session").unwrap()), Extent::Bounded);
        let Some(expected) = text("transcript") else {
            refused += 1;
            let error = found.unwrap_err();
            // The two sentences of the contract stand for several of ours.
            let is_unavailable = matches!(
                error,
                TranscriptError::Empty | TranscriptError::File(headman::pi::session::HeaderError::NotThere)
            );
            assert_eq!(
                is_unavailable,
                text("error").unwrap().ends_with("file is unavailable"),
                "{name}: {error}"
            );
            continue;
        };
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.text, expected, "{name}");
        assert_eq!(found.is_truncated(), case["truncated"].as_bool().unwrap(), "{name}");
        assert_eq!(found.full_bytes as u64, case["full_bytes"].as_u64().unwrap(), "{name}");
        assert_eq!(found.truncated_by.is_some(), case["tail_truncated"].as_bool().unwrap(), "{name}");
        assert_eq!(found.tool_truncated, case["tool_truncated"].as_bool().unwrap(), "{name}");
        assert_eq!(found.truncated_by.map(Limit::as_str), text("truncated_by"), "{name}");
    }
    assert_eq!(refused, 5);
}

#[test]
fn contents_that_are_null_or_odd_say_nothing() {
    let found = of(
        &[
            "{\"role\":\"user\",\"content\":null}",
            "{\"role\":\"user\",\"content\":\" \\ufeff\\u2028 \"}",
            "{\"role\":\"assistant\",\"content\":\"a string\"}",
            "{\"role\":\"assistant\",\"content\":null}",
            "{\"role\":\"assistant\",\"content\":[null,7,{\"type\":\"text\"},{\"type\":\"toolCall\",\"name\":\"x\",\"arguments\":{\"b\":1.0,\"2\":[ ],\"b\":2}}]}",
            "{\"role\":\"toolResult\",\"toolName\":\"x\",\"content\":null}",
            "{\"role\":\"user\",\"content\":\"a\\ud800b\\u001b[2J\"}",
            "null",
            "{\"role\":\"of tomorrow\",\"content\":\"x\"}",
        ],
        Extent::Bounded,
    );
    assert_eq!(found.text, "tool x:\n{\"2\":[],\"b\":2}\n\ntool result x:\n\nuser:\na\u{FFFD}b\u{1b}[2J");
}

#[test]
fn the_end_of_very_much_is_that_of_the_whole() {
    for filling in ["é", "é\\n"] {
        let long = format!("{{\"role\":\"user\",\"content\":\"x{}\"}}", filling.repeat(700_000));
        let messages = [long.as_str(), "{\"role\":\"user\",\"content\":\"end\"}"];
        let (bounded, whole) = (of(&messages, Extent::Bounded), of(&messages, Extent::Full));
        assert_eq!((bounded.full_bytes, whole.full_bytes), (whole.text.len(), whole.text.len()));
        assert!(whole.text.ends_with(&bounded.text) && !whole.is_truncated());
        let is_of_lines = filling.ends_with('n');
        let limit = if is_of_lines { Limit::Lines } else { Limit::Bytes };
        assert_eq!(bounded.truncated_by, Some(limit));
        // The one long line does not fit, and what follows it does.
        let lines = bounded.text.matches('\n').count() + 1;
        assert_eq!(lines, if is_of_lines { 2000 } else { 3 }, "{:.80}", bounded.text);
    }
}

#[test]
fn the_whole_branch_has_what_the_bounded_one_leaves_out() {
    let long = "y".repeat(MAX_BYTES);
    let messages = [
        format!("{{\"role\":\"toolResult\",\"toolName\":\"bash\",\"content\":\"{long}\"}}"),
        "{\"role\":\"bashExecution\",\"command\":\"ls\",\"output\":\"a\\n\"}".to_owned(),
        "{\"role\":\"user\",\"content\":\"end\"}".to_owned(),
    ];
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let whole = of(&messages, Extent::Full);
    assert_eq!(whole.text, format!("tool result bash:\n{long}\n\nbash:\nls\na\n\nuser:\nend"));
    assert!(!whole.is_truncated());
    let bounded = of(&messages, Extent::Bounded);
    assert!(bounded.tool_truncated && bounded.text.ends_with("\n\nuser:\nend") && bounded.text.len() < 4200);
    // What came before a compaction, messages that extensions show, and what stood behind torn lines.
    let sample = |name: &str, id: &str, extent| read(&Path::new(SAMPLES).join(name), &session(id), extent);
    let (name, id) = ("12-custom-entries.jsonl", "01a22b77-683e-7364-8f41-7dfe5e5d7a47");
    let custom = sample(name, id, Extent::Full).unwrap().text;
    assert!(
        custom.contains("custom lab-note:\nremember the migration") && !custom.contains("hidden context")
    );
    assert!(!sample(name, id, Extent::Bounded).unwrap().text.contains("remember the migration"));
    let header = fs::read_to_string(Path::new(SAMPLES).join("20b-torn-then-same-writer.jsonl")).unwrap();
    let id = header.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let bounded = sample("20b-torn-then-same-writer.jsonl", &id, Extent::Bounded).unwrap();
    let whole = sample("20b-torn-then-same-writer.jsonl", &id, Extent::Full).unwrap();
    assert_eq!((bounded.bad_lines, whole.bad_lines), (1, 1));
    assert_eq!(bounded.text.matches("user:\n").count(), 0, "as Pi sees it: {}", bounded.text);
    assert!(whole.text.matches("user:\n").count() > 3);
    // An older version is read whole, and only so.
    let (name, id) = ("30-v1-pi-0.13.2.jsonl", "c4c4ca75-1ecc-4237-a7a9-339063ed4ba2");
    assert_eq!(sample(name, id, Extent::Bounded).unwrap_err(), TranscriptError::OtherVersion);
    let whole = sample(name, id, Extent::Full).unwrap().text;
    assert!(whole.starts_with("user:\nMake it pass.") && whole.contains("compaction summary:\nHello."));
}

/// A place with a session file in it, beside an `auth.json` that nobody can open in time.
fn place(content: impl AsRef<[u8]>) -> Place {
    let place = Place::new();
    fs::write(place.path("s.jsonl"), content).unwrap();
    fifo(&place.path("auth.json"));
    place
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn asked<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["transcript", "--file", file, "--session", "s-1"], more].concat()
}

#[test]
fn a_named_file_is_printed_as_text_and_as_json_and_nothing_else_is_touched() {
    let place =
        place(lines(&["{\"role\":\"user\",\"content\":\"a\\u001b]52;c;eA==\\u0007b\\u202e\\nsecond\"}"]));
    let before = place.picture();
    let ran = place.run(&asked("s.jsonl", &[]));
    ran.assert_harmless();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("user:\na") && ran.stdout.ends_with("\nsecond\n"), "{:?}", ran.stdout);
    let ran = place.run(&asked("s.jsonl", &["--json"]));
    ran.assert_harmless();
    let json = ran.json();
    assert_eq!(json["transcript"], "user:\na\u{1b}]52;c;eA==\u{7}b\u{202e}\nsecond");
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "session",
        "transcript",
        "truncated",
        "full_bytes",
        "tail_truncated",
        "tool_truncated",
        "truncated_by",
    ] {
        assert!(keys.contains(&key), "{key} of {keys:?}");
    }
    assert_eq!((keys.len(), &json["truncated_by"], &json["truncated"]), (7, &Value::Null, &false.into()));
    assert_eq!(json["full_bytes"], json["transcript"].as_str().unwrap().len());
    assert!(!ran.stdout.contains("s.jsonl"));
    assert_eq!(place.picture(), before, "only read");
    // Nothing said, and too much.
    fs::write(place.path("s.jsonl"), HEADER).unwrap();
    assert_eq!(place.run(&asked("s.jsonl", &[])).stdout, "Nothing was said.\n");
    let long = format!("{{\"role\":\"user\",\"content\":\"{}\"}}", "z\\n".repeat(3000));
    fs::write(place.path("s.jsonl"), lines(&[&long]) + "torn\n").unwrap();
    let ran = place.run(&asked("s.jsonl", &[]));
    assert_eq!(ran.stdout.lines().count(), 2000);
    assert!(
        ran.stderr.contains("--full shows everything") && ran.stderr.contains("is no JSON"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.run(&asked("s.jsonl", &["--full"])).stdout.lines().count(), 3001);
}

#[test]
fn what_could_not_be_read_and_a_newer_version_are_in_the_answer() {
    let message = "{\"role\":\"user\",\"content\":\"hi\"}";
    let place = place(lines(&[message]) + "torn\n");
    // What is no JSON is passed over by the contract's rule, whose members stay alone.
    let ran = place.run(&asked("s.jsonl", &["--json"]));
    assert_eq!((ran.json()["unreadable"].is_null(), ran.json().as_object().unwrap().len()), (true, 7));
    let unreadable = |ran: &Ran| ran.json()["unreadable"].clone();
    let ran = place.run(&asked("s.jsonl", &["--full", "--json"]));
    assert_eq!(unreadable(&ran), json!({"long_lines": 0, "bad_lines": 1}));
    // A line that is too long, and what follows it.
    let path = place.path("s.jsonl");
    fs::write(&path, lines(&[message])).unwrap();
    let long = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let end = long.metadata().unwrap().len() + (64 << 20) + 1;
    long.set_len(end).unwrap();
    let after = lines(&[message, message]).lines().last().unwrap().replace("hi", "after it");
    (&long).write_all(format!("\n{after}\n").replace("00000000", "ffffffff").as_bytes()).unwrap();
    for extent in [&["--json"][..], &["--full", "--json"]] {
        let ran = place.run(&asked("s.jsonl", extent));
        assert_eq!(unreadable(&ran), json!({"long_lines": 1, "bad_lines": 0}), "{}", ran.stdout);
        assert_eq!(ran.json()["transcript"], "user:\nafter it");
        assert!(ran.stderr.contains("a line of the session file is too long"), "{}", ran.stderr);
    }
    fs::write(&path, lines(&[message]).replace("\"version\":3", "\"version\":4")).unwrap();
    let ran = place.run(&asked("s.jsonl", &["--full", "--json"]));
    assert_eq!((&ran.json()["newer_version"], &ran.json()["transcript"]), (&json!(4), &"user:\nhi".into()));
    assert!(ran.stderr.contains("in version 4 of the format"), "{}", ran.stderr);
    fs::write(&path, lines(&[message])).unwrap();
    let ran = place.run(&asked("s.jsonl", &["--full", "--json"]));
    assert_eq!((ran.json().as_object().unwrap().len(), ran.stderr.as_str()), (7, ""));
}

#[test]
fn every_refusal_has_its_code_and_its_next_step_and_no_path() {
    let place = place(HEADER);
    fs::write(place.path("empty"), "").unwrap();
    fs::write(place.path("none"), "{\"type\":\"message\"}\n").unwrap();
    fs::write(place.path("text"), "hello\n").unwrap();
    fs::write(place.path("old"), HEADER.replace("\"version\":3,", "")).unwrap();
    fs::write(place.path("other"), HEADER.replace("s-1", "s-2")).unwrap();
    fs::create_dir(place.path("dir")).unwrap();
    std::os::unix::fs::symlink(place.path("s.jsonl"), place.path("link")).unwrap();
    for (file, exit, code) in [
        ("empty", 1, "empty"),
        ("none", 1, "no_session"),
        ("text", 1, "no_session"),
        ("old", 1, "other_version"),
        ("other", 1, "other_session"),
        ("dir", 4, "not_regular"),
        ("link", 4, "not_regular"),
        ("auth.json", 4, "not_regular"),
        ("absent", 4, "not_there"),
    ] {
        let ran = place.run(&asked(file, &["--json"]));
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (exit, &code.into()), "{file}: {}", ran.stderr);
        let hint = ran.json()["error"]["hint"].as_str().unwrap().to_owned();
        assert!(hint.len() > 10 && ran.stderr.trim_end().ends_with(&hint), "{file}: {}", ran.stderr);
        assert!(!ran.stderr.contains(place.dir.path().to_str().unwrap()), "{}", ran.stderr);
    }
    chmod(&place.path("s.jsonl"), 0);
    if fs::read(place.path("s.jsonl")).is_err() {
        let ran = place.run(&asked("s.jsonl", &["--json"]));
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (4, &"unreadable".into()));
    }
    for arguments in
        [&["transcript"][..], &["transcript", "--file", "s.jsonl"], &["transcript", "--session", "s"]]
    {
        assert_eq!(place.run(arguments).code, 2, "{arguments:?}");
    }
    assert_eq!(place.run(&["transcript", "s-1", "--file", "s.jsonl", "--session", "s-1"]).code, 2);
}

#[test]
fn a_file_that_grows_without_end_is_read_as_it_was() {
    let (_dir, path) = file(lines(&["{\"role\":\"user\",\"content\":\"hi\"}"]));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let (path, stop) = (path.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            let line = "{\"type\":\"custom\"}\n";
            // Bounded, should the test fail; and no faster than that the file stays small.
            for nth in 0..20_000 {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                file.write_all(line.as_bytes()).unwrap();
                if nth % 50 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        })
    };
    for _ in 0..20 {
        read(&path, &session("s-1"), Extent::Full).unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

/// A herd of one lead whose session is in a file.
fn herd_of(session: &str) -> Herd {
    let mut herd = Herd::new();
    let pane = herd.agent(session, "api", None);
    let path = herd.place.path("s.jsonl");
    fs::write(&path, lines(&["{\"role\":\"user\",\"content\":\"hi\"}"]).replace("s-1", session)).unwrap();
    herd.record(session, None);
    let client = Client::new(herd.server.socket().to_owned());
    for (method, seq) in [("pane.report_agent_session", 1_000_000), ("pane.report_agent", 1_000_001)] {
        let report = json!({
            "pane_id": pane, "source": "herdr:pi", "agent": "pi", "seq": seq, "state": "idle",
            "agent_session_path": path,
        });
        herd.block_on(client.request(method, report)).unwrap();
    }
    herd
}

#[test]
fn a_leads_transcript_is_read_from_the_file_that_herdr_names() {
    let session = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let mut herd = herd_of(session);
    herd.agent("by its id alone", "web", None);
    herd.record("by its id alone", None);
    let before = herd.place.picture();
    for wanted in [session, "01a22b77"] {
        let ran = herd.place.run(&["transcript", wanted, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!(
            (&ran.json()["session"], &ran.json()["transcript"]),
            (&session.into(), &"user:\nhi".into())
        );
        assert!(!ran.stdout.contains("s.jsonl"), "{}", ran.stdout);
    }
    for (wanted, code) in
        [("01a22b7", "not_found"), ("nobody at all", "not_found"), ("by its id alone", "no_file")]
    {
        let ran = herd.place.run(&["transcript", wanted, "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &code.into()), "{wanted}: {}", ran.stderr);
    }
    assert_eq!(herd.place.picture(), before, "only read");
}

/// Another console becomes Chief.
fn claim(herd: &Herd) -> Lease {
    let place = Seat { pane: "w7:p7".into(), tab: "w7:t7".into(), workspace: "w7".into() };
    let runtime = herd.runtime();
    let data_root = herd.place.agent_dir().data_root();
    let sidecar = herd.place.path("sidecar");
    Lease::claim(&runtime, &data_root, &sidecar, &session("chief"), &place, Timestamp::from_millis(1))
        .unwrap()
}

#[test]
fn a_lead_or_lease_that_changes_while_its_transcript_is_read_is_noticed() {
    let session = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let herd = herd_of(session);
    let during = |change: &dyn Fn()| {
        let snapshots =
            || herd.server.calls().iter().filter(|call| call.method == "session.snapshot").count();
        let before = snapshots();
        herd.block_on(herd.server.set_fault(Fault::Late(Duration::from_millis(400)))).unwrap();
        let child = herd.place.start(&["transcript", session, "--json"]);
        // The second look at Herdr is under way: everything was read.
        until("the second look", || snapshots() == before + 2);
        change();
        let output = child.wait_with_output().unwrap();
        herd.block_on(herd.server.set_fault(Fault::None)).unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), told["error"]["code"].as_str().map(str::to_owned))
    };
    assert_eq!(during(&|| ()), (Some(0), None));
    let changed = |code: &str| (Some(1), Some(code.to_owned()));
    // Another instance of the same session.
    assert_eq!(during(&|| drop(herd.record(session, None))), changed("lead_changed"));
    let held = std::cell::Cell::new(None);
    let claim = || held.set(Some(claim(&herd)));
    assert_eq!(during(&claim), changed("lease_changed"));
    assert!(held.take().is_some());
}
