//! `headman inbox`: what leads sent, read from the journal while another process writes it; its upkeep.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use headman::chief::journal::{Event, Journal, Month};
use headman::chief::state_dir::StateDir;
use headman::contract::{Kind, LeadRecord, Message, PendingAsk, SessionId, Timestamp, Uuid};
use headman::disk::sidecar::Sidecar;
use headman::disk::{durable, inbox, records};
use headman::fact::Fate;
use serde_json::{Value, json};

use crate::cli_support::{DEADLINE, Place, Ran};
use crate::pty::{self, Harness};

const LEAD: &str = "01a0f2aa-6b3c-4def-8123-456789abcdef";
const OTHER: &str = "01a0f2aa-ffff-4def-8123-456789abcdef";
const DAY: u64 = 24 * 3600 * 1000;
const HOSTILE: &str = "Build \u{1b}[2J done\n\n2026-01-01 00:00  unread   ask  from me\r\u{202e}\u{200b}x";

/// A place whose journal this test writes.
struct Post {
    place: Place,
    socket: PathBuf,
    state: StateDir,
}

impl Post {
    fn new() -> Self {
        let mut place = Place::new();
        let socket = place.path("h.sock");
        place.set("HERDR_SOCKET_PATH", socket.to_str().unwrap());
        place.set("TZ", "UTC");
        let state = StateDir::open(&place.state_dir(), socket.as_os_str()).unwrap();
        Self { place, socket, state }
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.state.journal()).unwrap()
    }

    fn chief(&self) -> SessionId {
        self.state.identity().unwrap().session()
    }

    fn runtime(&self) -> headman::disk::Runtime {
        self.place.agent_dir().runtime(self.socket.as_os_str())
    }

    fn segment(&self, at: Timestamp) -> PathBuf {
        self.state.journal().join(Month::of(at).segment())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let ran = self.place.run(&[&["inbox"], arguments].concat());
        ran.assert_harmless();
        ran
    }

    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let ran = self.run(&[&["--json"], arguments].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn now() -> Timestamp {
    Timestamp::from_millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
}

fn days_ago(days: u64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() - days * DAY)
}

fn up(lead: &str, kind: Kind, text: &str) -> Message {
    let lead = SessionId::new(lead).unwrap();
    Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind,
        from: lead.clone(),
        to: SessionId::new("chief").unwrap(),
        lead,
        ask: kind.has_ask().then(Uuid::random),
        text: text.into(),
        created_at: Timestamp::from_millis(1_796_029_920_000),
    }
}

fn down(text: &str) -> Message {
    let message = up(LEAD, Kind::ChiefMessage, text);
    Message { from: message.to.clone(), to: message.lead.clone(), ..message }
}

fn receive(journal: &mut Journal, message: &Message, refused: Option<&str>, at: Timestamp) {
    let bytes = message.to_bytes().unwrap();
    let event = Event::Received { id: message.id, bytes: &bytes, message: Some(message), refused };
    journal.append(&[event], at).unwrap();
}

#[test]
fn what_leads_sent_is_printed_whole_in_both_forms() {
    let post = Post::new();
    assert_eq!(post.run(&[]).stdout, "No messages.\n");
    // While a console is Chief.
    let _lease = Sidecar::take(&post.state.sidecar()).unwrap().unwrap();
    let mut journal = post.journal();
    let at = Timestamp::from_millis(1_796_029_920_000);
    let long = "word ".repeat(400);
    let messages = [
        up(LEAD, Kind::LeadAsk, &long),
        up(OTHER, Kind::LeadMessage, HOSTILE),
        up(LEAD, Kind::LeadMessage, "late"),
    ];
    receive(&mut journal, &messages[0], None, at);
    receive(&mut journal, &messages[1], None, at);
    receive(&mut journal, &messages[2], Some("it was written under an earlier lease"), at);
    let torn = Uuid::random();
    let event = Event::Received { id: torn, bytes: b"{\xff", message: None, refused: Some("not JSON") };
    journal.append(&[event, Event::Read(&[1])], at).unwrap();
    // The next one is just being written.
    let mut file = std::fs::OpenOptions::new().append(true).open(post.segment(at)).unwrap();
    file.write_all(b"{\"v\":1,\"seq\":6,\"at\":1,\"kind\":\"received\",\"id\":\"").unwrap();
    let before = post.place.picture();

    let all = post.lines(&[]);
    let wanted = |message: &Message, seq: u64, read: bool, refused: Value| {
        json!({"id": message.id.to_string(), "seq": seq, "kind": message.kind.as_str(),
            "session": message.lead.as_untrusted().to_str_lossy(), "ask_id": message.ask.map(|ask| ask.to_string()),
            "created_at": message.created_at.as_millis(), "received_at": at.as_millis(), "read": read,
            "refused": refused, "text": message.text.to_str_lossy()})
    };
    assert_eq!(all[0], wanted(&messages[0], 1, true, Value::Null));
    assert_eq!(all[1], wanted(&messages[1], 2, false, Value::Null));
    assert_eq!(all[2], wanted(&messages[2], 3, false, "it was written under an earlier lease".into()));
    assert_eq!(
        all[3],
        json!({"id": torn.to_string(), "seq": 4, "kind": null, "session": null, "ask_id": null, "created_at": null,
            "received_at": at.as_millis(), "read": false, "refused": "not JSON", "text": "{\u{fffd}"})
    );
    assert_eq!(all.len(), 4);

    let ran = post.run(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let id = |message: &Message| message.id.to_string()[..8].to_owned();
    let heads: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("2026-11-30")).collect();
    assert_eq!(
        heads,
        [
            format!(
                "2026-11-30 09:12  read     ask      from {LEAD}  {}  ask {}",
                id(&messages[0]),
                &messages[0].ask.unwrap().to_string()[..8]
            ),
            format!("2026-11-30 09:12  unread   message  from {OTHER}  {}", id(&messages[1])),
            format!("2026-11-30 09:12  refused  message  from {LEAD}  {}", id(&messages[2])),
            format!("2026-11-30 09:12  refused  no message  from nobody known  {}", &torn.to_string()[..8]),
        ]
    );
    // Whole, and nothing in a text can pass for another message.
    assert!(ran.stdout.contains(&format!("\n    {long}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n    2026-01-01 00:00  unread   ask  from me"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n    Not accepted: it was written under an earlier lease.\n    late\n"));

    let texts = |arguments: &[&str]| -> Vec<u64> {
        post.lines(arguments).iter().map(|it| it["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(texts(&["--unread"]), [2, 3]);
    assert_eq!(texts(&["--lead", LEAD]), [1, 3]);
    assert_eq!(texts(&["--lead", &OTHER[..13], "--unread"]), [2]);
    assert_eq!(texts(&["--lead", LEAD, "--unread"]), [3], "late, and still somebody's message");
    assert_eq!(post.place.picture(), before, "it only reads");
}

#[test]
fn what_can_not_be_read_or_found_is_told() {
    let post = Post::new();
    let mut journal = post.journal();
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "one"), None, now());
    receive(&mut journal, &up(OTHER, Kind::LeadMessage, "two"), None, now());
    for (lead, said) in [
        ("nobody-at-all", "nothing came from session nobody-at-all"),
        (&LEAD[..7], "nothing came from session 01a0f2a"),
        (&LEAD[..9], "2 leads' sessions begin so"),
    ] {
        let ran = post.run(&["--json", "--lead", lead]);
        assert_eq!(ran.code, 1);
        assert_eq!(ran.json()["error"]["code"], "not_found");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    // A lead that has sent nothing yet is one.
    let record = LeadRecord {
        instance: Uuid::random(),
        session: SessionId::new("quiet-lead-1").unwrap(),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    durable::ensure_directories(post.place.agent_dir().path(), &post.runtime().leads()).unwrap();
    records::write_lead(&post.runtime(), &record).unwrap();
    assert_eq!(post.run(&["--lead", "quiet-le"]).stdout, "No messages.\n");

    // Lines that can't be understood hide no other.
    let mut file = std::fs::OpenOptions::new().append(true).open(post.segment(now())).unwrap();
    file.write_all(b"nonsense\n{\"v\":7}\n").unwrap();
    let ran = post.run(&["--json"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 2));
    assert!(ran.stderr.contains("2 lines of the journal can't be read"), "{}", ran.stderr);
    // Nor does a later release, as far as this one understands it.
    std::fs::write(post.place.state_dir().join("VERSION"), "2\n").unwrap();
    let ran = post.run(&["--json"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 2));
    assert!(ran.stderr.contains("is of version 2"), "{}", ran.stderr);
    std::fs::write(post.place.state_dir().join("VERSION"), "1\n").unwrap();

    // A segment that is not ours alone is none; a FIFO holds nobody up.
    let fifo = post.state.journal().join("2020-01.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let ran = post.run(&["--json"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (4, Some("disk")));
    assert!(ran.stderr.contains("2020-01.jsonl: it is a FIFO"), "{}", ran.stderr);
    std::fs::remove_file(&fifo).unwrap();
    std::os::unix::fs::symlink(post.segment(now()), &fifo).unwrap();
    assert!(post.run(&[]).stderr.contains("it is a symbolic link"));
}

/// A follower, whose lines are read by a thread of their own.
struct Follower {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Follower {
    fn start(post: &Post, arguments: &[&str]) -> Self {
        let mut child = post.place.start(&[&["inbox", "--json", "--follow"], arguments].concat());
        let out = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("a line in time");
        serde_json::from_str(&line).unwrap()
    }

    fn code(&mut self) -> Option<i32> {
        let started = std::time::Instant::now();
        while started.elapsed() < DEADLINE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_follower_prints_each_as_it_is_journalled() {
    let post = Post::new();
    // Before there is a journal at all.
    let mut follower = Follower::start(&post, &[]);
    let mut journal = post.journal();
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "first"), None, days_ago(70));
    assert_eq!(follower.next()["text"], "first");
    receive(&mut journal, &up(OTHER, Kind::LeadAsk, HOSTILE), None, now());
    assert_eq!(follower.next()["text"], HOSTILE);
    let mut of_one = Follower::start(&post, &["--lead", LEAD, "--unread"]);
    assert_eq!(of_one.next()["text"], "first");
    // In two halves: it is one line, printed once it is whole.
    let third = up(LEAD, Kind::LeadMessage, "third");
    receive(&mut journal, &third, None, now());
    let segment = post.segment(now());
    let whole = std::fs::read(&segment).unwrap();
    let begins = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    assert_eq!(follower.next()["text"], "third");
    let again = String::from_utf8(whole[begins..].to_vec()).unwrap();
    let again = again.replace("\"seq\":3", "\"seq\":4").replace("third", "forth");
    let mut file = std::fs::OpenOptions::new().append(true).open(&segment).unwrap();
    file.write_all(&again.as_bytes()[..200]).unwrap();
    file.write_all(&again.as_bytes()[200..]).unwrap();
    assert_eq!((follower.next()["seq"].as_u64(), of_one.next()["seq"].as_u64()), (Some(4), Some(3)));
    assert_eq!(of_one.next()["text"], "forth");
    // What goes meanwhile takes nothing with it, and nothing is printed twice.
    let ran = post.run(&["prune", "--yes", "--before", &Month::of(now()).to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut journal = post.journal();
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "fifth"), None, now());
    assert_eq!((&follower.next()["text"], &of_one.next()["text"]), (&json!("fifth"), &json!("fifth")));
    for follower in [&mut follower, &mut of_one] {
        let pid = rustix::process::Pid::from_child(&follower.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(follower.code(), Some(130));
        assert!(follower.lines.recv().is_err(), "nothing more was printed");
    }
}

#[test]
fn a_follower_whose_reader_is_gone_ends_by_itself() {
    let post = Post::new();
    let mut journal = post.journal();
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "first"), None, now());
    let mut child = post.place.command(&["inbox", "--follow"]).stdin(Stdio::null()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut read = [0; 10];
    out.read_exact(&mut read).unwrap();
    // Nothing comes any more.
    drop(out);
    let (_, lines) = mpsc::channel();
    let mut follower = Follower { child, lines };
    assert_eq!(follower.code(), Some(0));
}

/// Three months that are over, of which the second has something unread, and this one.
fn months(post: &Post) -> Vec<Timestamp> {
    let times = vec![days_ago(155), days_ago(120), days_ago(85), now()];
    let mut journal = post.journal();
    for (nth, at) in times.iter().enumerate() {
        receive(&mut journal, &up(LEAD, Kind::LeadAsk, &format!("text {nth}")), None, *at);
        let seq = journal.index().received().last().unwrap().seq;
        if nth != 1 {
            journal.append(&[Event::Read(&[seq])], *at).unwrap();
        }
    }
    times
}

fn names(post: &Post) -> Vec<String> {
    let names = durable::list(&post.state.journal()).unwrap();
    let mut names: Vec<String> = names.into_iter().map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn whole_months_are_pruned_and_what_goes_is_told() {
    let post = Post::new();
    let times = months(&post);
    let segments: Vec<String> = times.iter().map(|at| Month::of(*at).segment()).collect();
    assert_eq!(names(&post), segments);
    let before = post.place.picture();
    // Without anybody to ask, or with no date, nothing goes.
    let ran = post.run(&["--json", "prune", "--before", "2099-01"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (2, Some("no_terminal")));
    for date in ["2026", "2026-13", "2026-02-30", "26-01-01", "tomorrow", ""] {
        let ran = post.run(&["prune", "--yes", "--before", date]);
        assert_eq!(ran.code, 2, "{date}");
    }
    for arguments in [&["prune", "--yes"][..], &["--unread", "prune", "--yes", "--before", "2099-01"]] {
        assert_eq!(post.run(arguments).code, 2);
    }
    assert_eq!(post.place.picture(), before);
    // Of the first month the last day is needed as well.
    let last_day = format!("{}-28", Month::of(times[0]));
    let ran = post.run(&["prune", "--yes", "--before", &last_day]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("Nothing was removed"), "{}", ran.stdout);
    assert_eq!(names(&post), segments);
    let ran = post.run(&["prune", "--yes", "--json", "--before", &format!("{}-01", Month::of(times[1]))]);
    let wanted = json!({"removed": [{"segment": segments[0], "events": 2, "received": 1, "sent": 0, "unread": 0}],
        "kept": []});
    assert_eq!(ran.json(), wanted);
    // This month stays, whatever is asked.
    let next = post.journal().index().received().last().unwrap().seq;
    let ran = post.run(&["prune", "--yes", "--before", "2099-01-01"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("Removed 2 files with 3 events:\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(&format!("{}  1 event, 1 message received, 0 sent, 1 never read", segments[1]))
    );
    assert_eq!(names(&post), segments[3..]);
    let mut journal = post.journal();
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "next"), None, now());
    assert!(journal.index().received().last().unwrap().seq > next, "no number is given twice");
}

#[test]
fn what_is_still_needed_is_not_pruned() {
    let post = Post::new();
    let times = months(&post);
    let segments: Vec<String> = times.iter().map(|at| Month::of(*at).segment()).collect();
    let kept = || {
        let ran = post.run(&["prune", "--yes", "--json", "--before", "2099-01"]);
        let kept = ran.json()["kept"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["why"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>();
        assert_eq!(names(&post), segments, "nothing went");
        kept
    };
    // The ask of the first month is still pending, or it can't be told.
    let ask = post.lines(&[])[0]["ask_id"].as_str().unwrap().to_owned();
    let record = LeadRecord {
        instance: Uuid::random(),
        session: SessionId::new(LEAD).unwrap(),
        pending_ask: Some(PendingAsk {
            ask: Uuid::parse(&ask).unwrap(),
            question: "?".into(),
            text: "?".into(),
        }),
        updated_at: Timestamp::from_millis(1),
    };
    let runtime = post.runtime();
    durable::ensure_directories(post.place.agent_dir().path(), &runtime.leads()).unwrap();
    records::write_lead(&runtime, &record).unwrap();
    assert_eq!(kept(), ["pending_ask", "refers_back", "refers_back"]);
    std::fs::write(runtime.lead(&record.session), "broken").unwrap();
    assert_eq!(kept(), ["unreadable_lead"; 3]);
    std::fs::remove_file(runtime.lead(&record.session)).unwrap();
    // Its file was journalled and never went from the inbox.
    let inbox_dir = runtime.inbox(&post.chief());
    let id = Uuid::parse(post.lines(&[])[0]["id"].as_str().unwrap()).unwrap();
    let message = Message { id, to: post.chief(), ..up(LEAD, Kind::LeadMessage, "text") };
    inbox::publish(post.place.agent_dir().path(), &inbox_dir, &message).unwrap();
    assert_eq!(kept(), ["in_inbox", "refers_back", "refers_back"]);
    std::fs::remove_file(inbox_dir.message(id)).unwrap();
    let ran = post.run(&["prune", "--yes", "--before", "2099-01"]);
    assert!(ran.stdout.starts_with("Removed 3 files"), "{}", ran.stdout);

    // One of ours that is not settled keeps its month; what went before goes.
    let post = Post::new();
    let mut journal = post.journal();
    let sent = down("open");
    receive(&mut journal, &up(LEAD, Kind::LeadMessage, "old"), None, times[0]);
    journal.append(&[Event::Sent(&sent)], times[1]).unwrap();
    let ran = post.run(&["prune", "--yes", "--before", "2099-01"]);
    assert!(ran.stdout.contains("Removed 1 file with 1 event:"), "{}", ran.stdout);
    let stays = format!("{}  stays: a message of yours in it is still queued", segments[1]);
    assert!(ran.stdout.contains(&stays), "{}", ran.stdout);
    let mut journal = post.journal();
    journal.append(&[Event::Fate { id: sent.id, fate: Fate::Taken }], now()).unwrap();
    post.run(&["prune", "--yes", "--before", "2099-01"]);
    assert_eq!(names(&post), segments[3..]);
}

#[test]
fn nothing_is_pruned_under_a_chief() {
    let post = Post::new();
    months(&post);
    let before = names(&post);
    let sidecar = Sidecar::take(&post.state.sidecar()).unwrap().unwrap();
    let ran = post.run(&["--json", "prune", "--yes", "--before", "2099-01"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (3, Some("lease_occupied")));
    assert!(
        ran.stderr.contains("is Chief") && ran.stderr.contains("Leave Chief mode there"),
        "{}",
        ran.stderr
    );
    assert_eq!(names(&post), before);
    drop(sidecar);
    // Nor where a later release wrote what is there.
    std::fs::write(post.place.state_dir().join("VERSION"), "2\n").unwrap();
    let ran = post.run(&["--json", "prune", "--yes", "--before", "2099-01"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (4, Some("state")));
    assert_eq!(names(&post), before);
    std::fs::write(post.place.state_dir().join("VERSION"), "1\n").unwrap();
    assert_eq!(post.run(&["prune", "--yes", "--before", "2099-01"]).code, 0);
    assert_eq!(names(&post).len(), 1);
    // Where there is nothing, nothing is made.
    let mut place = Place::new();
    place.set("HERDR_SOCKET_PATH", "/nowhere/h.sock");
    let ran = place.run(&["inbox", "prune", "--yes", "--before", "2099-01"]);
    assert_eq!((ran.code, ran.stdout.starts_with("Nothing was removed")), (0, true));
    assert!(!place.state_dir().exists());
}

#[test]
fn on_a_terminal_it_asks_and_names_what_nobody_has_read() {
    let post = Post::new();
    let times = months(&post);
    for (answer, code, left) in [("n\r", 1, 4), ("\r", 1, 4), ("y\r", 0, 1)] {
        let mut command =
            pty::command(env!("CARGO_BIN_EXE_headman"), &["inbox", "prune", "--before", "2099-01"]);
        command.env_clear();
        command.env("HOME", post.place.path("home"));
        command.env("HERDR_SOCKET_PATH", &post.socket);
        command.env("TERM", "xterm-256color");
        let mut terminal = Harness::start_in(command, 120, 30);
        terminal.wait_for("question", |terminal| terminal.shows("for ever? [y/N]"));
        let shown = terminal.screen.screen().contents();
        for part in [
            "1 message nobody has read:",
            &format!("ask from {LEAD}: text 1"),
            &Month::of(times[2]).segment(),
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("text 2"), "{shown}");
        terminal.type_text(answer);
        assert_eq!(terminal.finish().exit_code(), code);
        assert_eq!(names(&post).len(), left, "{answer:?}");
    }
}
