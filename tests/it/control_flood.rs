//! Who floods the control socket with lines, half lines, connections or questions it never hears the
//! answers to: the others are answered in time, and the service stays small.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use headman::chief::service::Request;
use headman::demo::server::Fault;
use headman::fact::Inquiry;
use serde_json::Value;

use crate::cli_support::until;
use crate::control::{Serve, herd};

/// The longest that an answer may take while others flood.
const ANSWER: Duration = Duration::from_secs(5);
/// By how much the service may grow, in bytes: the longest lines of all 32 that may be connected are half
/// of it.
const GROWTH: usize = 32 << 20;

/// How many requests of a connection may be under way.
const OPEN: u64 = 16;
/// The shortest time between two requests of a connection.
const PACE: Duration = Duration::from_millis(1);
/// How many are asked at once to see it.
const PACED: usize = 300;
/// What asks for nothing.
const WAITING: &str = "{\"v\":1,\"request\":{\"waiting\":true}}\n";

/// The line that asks something which is answered under `ticket`.
fn question(ticket: u64) -> String {
    let request = Request::Inquire { ticket, inquiry: Inquiry::Letters(vec![1; 50]) };
    format!("{{\"v\":1,\"request\":{}}}\n", serde_json::to_string(&request).unwrap())
}

/// Waits for the answer to a question.
fn answered(reader: &mut impl BufRead, ticket: u64) {
    let wanted = format!("\"ticket\":{ticket}");
    let mut line = String::new();
    while !(line.contains("\"answered\"") && line.contains(&wanted)) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the connection ended");
    }
}

/// The most memory that a process had so far, in bytes.
pub(crate) fn peak(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Floods until told to stop.
struct Flood {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    fn new(socket: PathBuf) -> Self {
        Self { socket, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() }
    }

    /// Does `once` over and over; says how often it did.
    fn with(&mut self, mut once: impl FnMut(&Path) + Send + 'static) -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        let (counted, stop, socket) = (Arc::clone(&count), Arc::clone(&self.stop), self.socket.clone());
        self.threads.push(spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                once(&socket);
                // On a machine of few processors the flood is not to be all that runs.
                std::thread::sleep(Duration::from_millis(1));
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }));
        count
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // The service does not take what it has no time for.
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    stream
}

/// All floods at once, until `connections` were made, while `questions` of another are answered.
fn flooded(connections: usize, questions: u64) {
    let herd = herd();
    let serve = Serve::start(&herd);
    let (mut asker, mut answers) = serve.connect();
    asker.write_all(question(1).as_bytes()).unwrap();
    answered(&mut answers, 1);
    let before = peak(serve.child.id());

    let mut flood = Flood::new(serve.socket());
    // Half a line, and silence.
    let halves: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = connect(&serve.socket());
            stream.write_all(&question(2).as_bytes()[..30]).unwrap();
            stream
        })
        .collect();
    let began = Instant::now();
    // Lines without number. Nothing is read, neither here nor below.
    let lines = WAITING.repeat(1_000_000).into_bytes();
    let (mut stream, mut at) = (connect(&serve.socket()), 0);
    flood.with(move |_| {
        at += stream.write(&lines[at..]).unwrap_or(0);
    });
    // Questions whose answers are never read.
    let (mut stream, mut ticket) = (connect(&serve.socket()), 0);
    flood.with(move |_| {
        ticket += 1;
        let _ = stream.write_all(question(ticket).as_bytes());
    });
    // A line without an end.
    let unending = flood.with(|socket| {
        let mut stream = connect(socket);
        let block = [b'x'; 1 << 16];
        while stream.write_all(&block).is_ok() {}
    });
    // Connections: most of them are refused, as some are kept: with the others above more than are
    // served at once.
    let mut kept = Vec::new();
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let connected = flood.with(move |socket| {
        let stream = connect(socket);
        if kept.len() < 24 {
            kept.push(stream);
        } else {
            let mut first = String::new();
            let _ = BufReader::new(stream).read_line(&mut first);
            counted.fetch_add(usize::from(first.contains("\"error\"")), Ordering::Relaxed);
        }
    });

    let mut slowest = Duration::ZERO;
    let mut ticket = 1;
    while ticket < questions || connected.load(Ordering::Relaxed) < connections {
        ticket += 1;
        let asked = Instant::now();
        asker.write_all(question(ticket).as_bytes()).unwrap();
        answered(&mut answers, ticket);
        slowest = slowest.max(asked.elapsed());
        assert!(slowest < ANSWER, "an answer took {slowest:?}");
    }
    for half in halves {
        let (mut told, mut lines) = (String::new(), BufReader::new(half).lines());
        while !told.contains("begun and not ended within 3 s") {
            assert!(began.elapsed() < Duration::from_secs(20), "half a line keeps its place: {told}");
            told = lines.next().expect("the connection ended before it was told why").unwrap();
        }
    }
    assert!(began.elapsed() >= Duration::from_secs(3));
    let grown = peak(serve.child.id()) - before;
    let counts = [&connected, &unending].map(|count| count.load(Ordering::Relaxed));
    assert!(refused.load(Ordering::Relaxed) > connections / 10, "{refused:?} refused");
    println!(
        "{ticket} answers, the slowest {slowest:?}; {counts:?} connections and lines; {grown} bytes more"
    );
    assert!(grown < GROWTH, "it grew by {grown} bytes");
    flood.end();
    drop((asker, answers));
    until("to be served", || herd.place.run(&["message", "s-1", "hello"]).code == 0);
    assert_eq!(serve.end().0, 0);
}

fn focus(ticket: u64) -> String {
    let request = Request::Focus { ticket, pane: "w1:p1".into() };
    format!("{{\"v\":1,\"request\":{}}}\n", serde_json::to_string(&request).unwrap())
}

/// What of one connection is not done yet is bounded: beyond that its next request is not even read, while
/// another's is answered.
#[test]
fn who_has_as_many_requests_under_way_as_are_allowed_waits_for_one_of_them() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let (mut flood, answers) = serve.connect();
    let (mut other, mut others) = serve.connect();
    herd.block_on(herd.server.set_fault(Fault::Silent)).unwrap();
    // None of these ends while Herdr says nothing; the question among them is the last that is allowed.
    let under_way = OPEN - 1;
    let mut lines: String = (1..=under_way).map(focus).collect();
    lines += &question(100);
    lines += &focus(under_way + 1);
    lines += &question(101);
    flood.write_all(lines.as_bytes()).unwrap();
    let mut order = Vec::new();
    let mut lines = answers.lines();
    let mut ended = false;
    while order.last() != Some(&101) {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let told = |kind: &str| line["fact"][kind]["ticket"].as_u64();
        order.extend(told("outcome").or(told("answered")));
        if !ended && order == [100] {
            // What is not held back is done by the time that another connection was answered so often.
            for ticket in 1..=20 {
                other.write_all(question(ticket).as_bytes()).unwrap();
                answered(&mut others, ticket);
            }
            herd.block_on(herd.server.set_fault(Fault::Refuse)).unwrap();
            ended = true;
        }
    }
    assert_eq!(order[0], 100, "{order:?}");
    assert!(order.len() > 2, "it was read while {OPEN} were under way: {order:?}");
}

/// Two requests of one connection never come closer than the pace, however many are written at once.
#[test]
fn requests_of_one_connection_are_taken_at_a_pace() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let (mut asker, mut answers) = serve.connect();
    // Nothing else takes time of the former, and none has an answer that would be waited for.
    let lines = WAITING.repeat(PACED) + &question(1);
    let asked = Instant::now();
    asker.write_all(lines.as_bytes()).unwrap();
    answered(&mut answers, 1);
    let took = asked.elapsed();
    println!("{PACED} requests in {took:?}");
    assert!(took >= PACE * u32::try_from(PACED).unwrap(), "{took:?}");
}

#[test]
fn floods_of_every_kind_at_once_hold_nobody_up() {
    flooded(1_000, 50);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_connections_hold_nobody_up() {
    flooded(10_000, 5_000);
}
