//! What a long journal costs: at the start, at every look of a console that watches, in memory.
//!
//! Times depend on the machine, so only ratios within one run can fail.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use headman::chief::journal::{Event, Journal};
use headman::chief::state_dir::StateDir;
use headman::contract::{Kind, Message, SessionId, Timestamp, Uuid};
use headman::fact::Fate;
use serde::de::IgnoredAny;

const EVENTS: usize = 100_000;
/// Events made durable at once.
const BATCH: usize = 500;
const ROUNDS: usize = 9;
const BEGIN: u64 = 1_780_000_000_000;
const SOCKET: &str = "/nowhere/h.sock";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, verb, directory] = &arguments[..]
        && verb == "--memory"
    {
        memory(Path::new(directory));
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(&dir.path().join("long"), SOCKET.as_ref()).unwrap();
    StateDir::open(&dir.path().join("empty"), SOCKET.as_ref()).unwrap();
    let journal = state.journal();
    write(&journal);
    let bytes: u64 =
        std::fs::read_dir(&journal).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).sum();
    let received = Journal::open(&journal).unwrap().index().received().len();
    println!("{EVENTS} events, {received} of them received, {} MB", bytes / 1_000_000);

    let mut best = [Duration::MAX; 6];
    let mut followed = Journal::open(&journal).unwrap();
    for _ in 0..ROUNDS {
        let times = [
            timed(|| plain_pass(&journal)),
            timed(|| Journal::open(&journal).unwrap().index().unread()),
            timed(|| followed.follow().unwrap()),
            timed(|| Journal::open(&journal).unwrap().mail().total),
            timed(|| verb(&dir.path().join("long"))),
            timed(|| verb(&dir.path().join("empty"))),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    let [plain, open, follow, mail, long, empty] = best;
    println!("a plain pass over the same lines   {plain:>10.1?}");
    println!("open                               {open:>10.1?}");
    println!("open, and what the screens show    {mail:>10.1?}");
    println!("a look where nothing came          {follow:>10.1?}");
    println!("`inbox --unread`, more than empty  {:>10.1?}", long.saturating_sub(empty));
    measure(&journal);
    let mut failed = false;
    for (what, part, whole, limit) in
        [("open : plain pass", open, plain, 1.0), ("a look : open", follow, open, 0.01)]
    {
        let ratio = part.as_secs_f64() / whole.as_secs_f64();
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

/// What anybody has to do who looks at each line as JSON.
fn plain_pass(journal: &Path) -> usize {
    let mut lines = 0;
    for entry in std::fs::read_dir(journal).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &bytes) {
            let _: IgnoredAny = serde_json::from_slice(&bytes[from..end]).unwrap();
            from = end + 1;
            lines += 1;
        }
    }
    lines
}

/// A whole process that reads the journal and prints next to nothing.
fn verb(state_dir: &Path) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headman"));
    command.args(["inbox", "--unread", "--socket", SOCKET, "--state-dir"]).arg(state_dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success()
}

/// In a process of its own: what one that wrote before has freed would hide it.
fn measure(journal: &Path) {
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).arg("--memory").arg(journal).output().unwrap();
    print!("{}", String::from_utf8_lossy(&ran.stdout));
}

fn memory(journal: &Path) {
    let before = kib("VmRSS:");
    let mut journal = Journal::open(journal).unwrap();
    let open = kib("VmRSS:") - before;
    let mail = journal.mail();
    let with_mail = kib("VmRSS:") - before;
    let each = open * 1024 / EVENTS as u64;
    println!("the index                          {open:>7} KiB  {each} bytes an event");
    println!("with what the screens show         {with_mail:>7} KiB  {} messages", mail.newest.len());
    println!("at most while it was read          {:>7} KiB", kib("VmHWM:") - before);
}

/// A figure of this process; 0 where the system does not tell.
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Half a year of sixty leads: of each message a second line says that it was read, or what became
/// of it.
fn write(directory: &Path) {
    let words =
        ["refresh", "token", "the", "a", "rotate", "\"quoted\"", "line\nbreak", "schön", "build", "→"];
    let mut journal = Journal::open(directory).unwrap();
    let leads: Vec<SessionId> = (0..60).map(|_| SessionId::from(Uuid::random())).collect();
    let (chief, lease) = (SessionId::from(Uuid::random()), Uuid::random());
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for batch in 0..EVENTS / BATCH {
        let at = Timestamp::from_millis(BEGIN + batch as u64 * 80_000_000);
        let first = 1 + (batch * BATCH) as u64;
        let mut messages = Vec::new();
        for nth in 0..BATCH / 2 {
            let kind = match random(20) {
                0..=4 => Kind::LeadAsk,
                5..=13 => Kind::LeadMessage,
                14..=17 => Kind::ChiefReply,
                _ => Kind::ChiefMessage,
            };
            let lead = leads[random(leads.len())].clone();
            let is_up = matches!(kind, Kind::LeadAsk | Kind::LeadMessage);
            let (from, to) =
                if is_up { (lead.clone(), chief.clone()) } else { (chief.clone(), lead.clone()) };
            let length = 300 + random(1_700);
            let mut text = String::new();
            while text.len() < length {
                text += words[random(words.len())];
                text.push(' ');
            }
            let (id, ask) = (Uuid::random(), kind.has_ask().then(Uuid::random));
            let text = text.as_str().into();
            let message = Message { id, lease, kind, from, to, lead, ask, text, created_at: at };
            let bytes = message.to_bytes().unwrap();
            messages.push((message, bytes, is_up, [first + 2 * nth as u64]));
        }
        let mut events = Vec::new();
        for (message, bytes, is_up, seqs) in &messages {
            let id = message.id;
            if *is_up {
                events.push(Event::Received { id, bytes, message: Some(message), refused: None });
                events.push(Event::Read(seqs));
            } else {
                events.push(Event::Sent(message));
                events.push(Event::Fate { id, fate: Fate::Taken });
            }
        }
        journal.append(&events, at).unwrap();
    }
}
