//! What it costs to follow a lead's session: a long one at the first look, and one that grows fast.
//!
//! Times depend on the machine, so only ratios within one run can fail.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use headman::contract::SessionId;
use headman::disk::DiskThread;
use headman::fact::{self, Fact, SessionRead};
use headman::pi::activity::Doings;
use headman::pi::tail::{Fold, Progress, Tail, Unsettled};
use headman::source::sessions::{self, Followed};
use headman::source::watch::Noticing;
use tokio::sync::watch;

/// Rounds of a turn: an answer with two calls, and their results.
const ROUNDS: usize = 8_000;
/// Rounds before the user says something again.
const TURN: usize = 20;
const TIMES: usize = 5;
/// Appends of one session, so many in a second.
const RATE: u32 = 1_000;
const SECONDS: u32 = 10;

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.jsonl");
    write(&path, ROUNDS);
    let size = std::fs::metadata(&path).unwrap().len();
    println!("{} entries, {} MB", ROUNDS * 3 + ROUNDS / TURN, size / 1_000_000);
    let mut best = [Duration::MAX; 4];
    for _ in 0..TIMES {
        let times = [
            timed(|| memchr::memchr_iter(b'\n', &std::fs::read(&path).unwrap()).count()),
            timed(|| read::<()>(&path, None)),
            timed(|| read::<Doings>(&path, None)),
            timed(|| read::<Doings>(&path, Some(1 << 20))),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    let [plain, index, fold, end] = best;
    let rate = size as f64 / 1e6 / fold.as_secs_f64();
    println!("reading it and finding its lines   {plain:>10.1?}");
    println!("the index                          {index:>10.1?}");
    println!("the index and the activity         {fold:>10.1?}  {rate:.0} MB a second");
    println!("the activity by its end            {end:>10.1?}");

    let grown = grow(&dir.path().join("grows.jsonl"));
    let mut failed = false;
    for (what, ratio, limit) in [
        ("the activity : the index", fold.as_secs_f64() / index.as_secs_f64(), 2.0),
        ("its end : all of it", end.as_secs_f64() / fold.as_secs_f64(), 0.2),
        ("bytes read : bytes appended", grown.read, 1.1),
        ("reading : time that passes", grown.busy, 0.5),
    ] {
        let verdict = if ratio <= limit { "ok" } else { "FAILED" };
        println!("{what:<34} {ratio:>10.4}  at most {limit}  {verdict}");
        failed |= ratio > limit;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

fn read<F: Fold>(path: &Path, window: Option<u64>) -> Tail<F> {
    let mut tail = Tail::folding(path, window);
    while tail.look(1 << 20, Unsettled::AtOnce).unwrap() == Progress::More {}
    tail
}

struct Grown {
    /// Bytes that were read for each that was appended.
    read: f64,
    /// The part of the time that passed in which they were read.
    busy: f64,
}

/// A session that grows by [`RATE`] entries a second: as the console follows it, and beside that by a
/// tail that is looked at as often, whose bytes can be counted.
fn grow(path: &Path) -> Grown {
    write(path, 1);
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    let mut tail = read::<Doings>(path, None);
    let before = (tail.bytes_read(), tail.size());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (facts, received) = fact::channel();
    let session = SessionId::new("bench").unwrap();
    let followed = Followed { session, file: Some(path.to_owned()), works: true, is_known: true };
    let (wanted, seen) = watch::channel(Vec::new());
    let reader = DiskThread::named("sessions").unwrap();
    runtime.spawn(sessions::run(Noticing::new(true), reader, facts, seen));
    wanted.send_replace(vec![followed]);

    let started = Instant::now();
    let (mut looks, mut told, mut reading, mut next) = (0, 0, Duration::ZERO, started);
    let mut parent = 3;
    for nth in 0..RATE * SECONDS {
        let due = started + Duration::from_secs(1) / RATE * nth;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        parent = result(&mut file, parent + 1, parent, nth as usize);
        if Instant::now() >= next {
            next += Duration::from_millis(100);
            looks += 1;
            reading += timed(|| while tail.look(1 << 20, Unsettled::AtOnce).unwrap() == Progress::More {});
            told += received.take().len();
        }
    }
    let took = started.elapsed();
    while tail.look(1 << 20, Unsettled::AtOnce).unwrap() == Progress::More {}
    let appended = tail.size() - before.1;
    // The console knows the end a moment later.
    let end = Instant::now() + Duration::from_secs(5);
    let last = tail.fold().activity(None).last;
    let mut late = None;
    while late.is_none() && Instant::now() < end {
        told += received.take().iter().map(|fact| late_of(fact, last, started + took, &mut late)).count();
        std::thread::sleep(Duration::from_millis(1));
    }
    println!(
        "{} appends, {} KB, in {took:.1?}: {looks} looks of a tail took {reading:.1?}; the console was told {told} times, the end {} later",
        RATE * SECONDS,
        appended / 1000,
        late.map_or("more than 5 s".to_owned(), |late| format!("{late:.0?}")),
    );
    let read = (tail.bytes_read() - before.0) as f64 / appended as f64;
    Grown { read, busy: reading.as_secs_f64() / took.as_secs_f64() }
}

fn late_of(
    fact: &Fact,
    last: Option<headman::contract::Timestamp>,
    end: Instant,
    late: &mut Option<Duration>,
) {
    if let Fact::Activity(_, read) = fact
        && let SessionRead::Activity(activity) = &**read
        && activity.last == last
    {
        *late = Some(end.elapsed());
    }
}

/// A session of so many rounds.
fn write(path: &Path, rounds: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    writeln!(file, "{{\"type\":\"session\",\"version\":3,\"id\":\"bench\",\"cwd\":\"/work\"}}").unwrap();
    let mut id = 0;
    for round in 0..rounds {
        if round % TURN == 0 {
            let message = format!("{{\"role\":\"user\",\"content\":\"Do {round}.\"}}");
            id = entry(&mut file, id + 1, id, round, &message);
        }
        let calls = format!(
            "{{\"type\":\"text\",\"text\":\"Looking at {round}.\"}},\
             {{\"type\":\"toolCall\",\"id\":\"a{round}\",\"name\":\"edit\",\"arguments\":{{\"path\":\"src/{round}.rs\",\"edits\":[{{\"oldText\":\"{}\",\"newText\":\"\"}}]}}}},\
             {{\"type\":\"toolCall\",\"id\":\"b{round}\",\"name\":\"bash\",\"arguments\":{{\"command\":\"make\"}}}}",
            "x".repeat(400)
        );
        let usage =
            "{\"input\":10,\"output\":5,\"cacheRead\":1000,\"cacheWrite\":0,\"cost\":{\"total\":0.1}}";
        let message = format!(
            "{{\"role\":\"assistant\",\"provider\":\"p\",\"model\":\"m\",\"content\":[{calls}],\"usage\":{usage},\"stopReason\":\"toolUse\"}}"
        );
        id = entry(&mut file, id + 1, id, round, &message);
        for call in ["a", "b"] {
            let text = format!("line {round}\\n").repeat(if call == "a" { 4 } else { 500 });
            let message = format!(
                "{{\"role\":\"toolResult\",\"toolCallId\":\"{call}{round}\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"isError\":false}}"
            );
            id = entry(&mut file, id + 1, id, round, &message);
        }
    }
    file.flush().unwrap();
}

/// A result, in one write as Pi makes it.
fn result(file: &mut File, id: usize, parent: usize, nth: usize) -> usize {
    let text = format!("line {nth}\\n").repeat(20);
    let message = format!(
        "{{\"role\":\"toolResult\",\"toolCallId\":\"c\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"isError\":false}}"
    );
    let mut line = Vec::new();
    let id = entry(&mut line, id, parent, nth, &message);
    file.write_all(&line).unwrap();
    id
}

fn entry(to: &mut impl Write, id: usize, parent: usize, nth: usize, message: &str) -> usize {
    let parent = if parent == 0 { "null".to_owned() } else { format!("\"{parent:08x}\"") };
    let time = jiff::Timestamp::from_millisecond(1_796_025_600_000 + nth as i64 * 1000).unwrap();
    writeln!(
        to,
        "{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":{parent},\"timestamp\":\"{time}\",\"message\":{message}}}"
    )
    .unwrap();
    id
}
