//! Several processes at once on one lease: never two Chiefs. Who holds it says so to a witness that knows
//! nothing of locks: a name that only one can have.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headman::chief::lease::{self, Lease, LeaseError, Place};
use headman::contract::{Claim, Pid, SessionId, Timestamp, Uuid};
use headman::disk::lock::{self, Holder, Liveness, LockError};
use headman::disk::records::Holding;
use headman::disk::{AgentDir, Runtime, crash, durable, sidecar};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::crashes::{dead_pid, write_lock};
use crate::programs::{Program, say, setting};
use crate::support::{self, DEADLINE, below, directory_in_memory};

/// How many fight for a lease.
const CONTENDERS: usize = 8;
/// How often each of them looks while it holds the lease.
const LOOKS: usize = 4;

/// Where a contender is at home.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Arena {
    root: PathBuf,
    /// Whose state directory it has.
    own: String,
}

impl Arena {
    fn agent_dir(&self, home: &str) -> AgentDir {
        AgentDir::resolve(Some(self.root.join(home).as_os_str()), Path::new("/"))
    }

    fn runtime(&self, home: &str) -> Runtime {
        self.agent_dir(home).runtime("socket".as_ref())
    }

    /// The file of the advisory lock of that state directory.
    fn sidecar(&self, home: &str, own: &str) -> PathBuf {
        self.root.join(home).join(format!("{own}.flock"))
    }

    /// What only one can have who holds the lease there.
    fn witness(&self, home: &str) -> PathBuf {
        self.root.join(home).join("the chief")
    }

    fn gate(&self) -> PathBuf {
        self.root.join("gate")
    }
}

/// Not a test: a process that claims leases and gives them back.
#[test]
#[ignore = "a program of other tests"]
fn contender_program() {
    let Some(arena) = setting::<Arena>() else { return };
    let mut contender = Contender { arena, lease: None };
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match contender.perform(verb, rest) {
            Ok(done) => say(format_args!("ok {verb} {done}")),
            Err(why) => say(format_args!("no {verb} {why}")),
        }
    }
}

struct Contender {
    arena: Arena,
    lease: Option<(Lease, String)>,
}

impl Contender {
    fn perform(&mut self, verb: &str, rest: &str) -> Result<&'static str, String> {
        match verb {
            // Together with all who wait at the gate.
            "claim" => {
                let gate = std::fs::File::open(self.arena.gate()).unwrap();
                say(format_args!("ready"));
                rustix::fs::flock(&gate, FlockOperation::LockShared).unwrap();
                drop(gate);
                Ok(if self.claim(rest)? { "held" } else { "refused" })
            }
            "release" => self.release().map(|()| ""),
            // Again and again, as fast as it can.
            "churn" => {
                let (home, times) = rest.split_once(' ').unwrap();
                let (mut left, end) = (times.parse::<usize>().unwrap(), Instant::now() + DEADLINE);
                while left > 0 {
                    if self.claim(home)? {
                        self.release()?;
                        left -= 1;
                    } else if Instant::now() > end {
                        return Err("it never gets its turn".to_owned());
                    }
                    std::thread::yield_now();
                }
                Ok("")
            }
            other => Err(format!("there is no {other}")),
        }
    }

    /// Whether it holds the lease now.
    fn claim(&mut self, home: &str) -> Result<bool, String> {
        let (runtime, data_root) = (self.arena.runtime(home), self.arena.agent_dir(home).data_root());
        let sidecar = self.arena.sidecar(home, &self.arena.own);
        let session = SessionId::new(self.arena.own.as_str()).unwrap();
        let now = Timestamp::from_millis(1);
        match Lease::claim(&runtime, &data_root, &sidecar, &session, &Place::none(), now) {
            Ok(lease) => {
                self.lease = Some((lease, home.to_owned()));
                self.testify(home)?;
                (0..LOOKS).try_for_each(|_| {
                    std::thread::yield_now();
                    self.verify()
                })?;
                Ok(true)
            }
            Err(error) if error.is_occupied() => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes the witness's name, which holds our pid from the first moment.
    fn testify(&self, home: &str) -> Result<(), String> {
        let (own, witness) = (self.arena.root.join(home).join(us()), self.arena.witness(home));
        std::fs::write(&own, us()).unwrap();
        loop {
            match std::fs::hard_link(&own, &witness) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{error}"),
            }
            // Of one that was killed, and waited for, as Chief.
            let other = std::fs::read_to_string(&witness).map_err(|error| format!("two Chiefs: {error}"))?;
            let pid = rustix::process::Pid::from_raw(other.parse().unwrap()).unwrap();
            if rustix::process::test_kill_process(pid).is_ok() {
                return Err(format!("two Chiefs: {other} and {}", us()));
            }
            std::fs::remove_file(&witness).unwrap();
        }
    }

    /// That everything says that it is we.
    fn verify(&self) -> Result<(), String> {
        let (lease, home) = self.lease.as_ref().unwrap();
        match lease.check() {
            Ok(Ok(())) => {}
            other => return Err(format!("not ours: {other:?}")),
        }
        match lease::holding(&self.arena.runtime(home)) {
            Ok(Holding::Held(descriptor)) if descriptor == *lease.descriptor() => {}
            other => return Err(format!("not held by us: {other:?}")),
        }
        match std::fs::read_to_string(self.arena.witness(home)) {
            Ok(pid) if pid == us() => Ok(()),
            other => Err(format!("the witness says {other:?}")),
        }
    }

    fn release(&mut self) -> Result<(), String> {
        self.verify()?;
        let (lease, home) = self.lease.take().unwrap();
        std::fs::remove_file(self.arena.witness(&home)).unwrap();
        lease.release().map_err(|error| error.to_string())
    }
}

fn us() -> String {
    std::process::id().to_string()
}

/// Several contenders before one gate.
struct Ring {
    directory: tempfile::TempDir,
    arena: Arena,
    gate: std::fs::File,
    contenders: Vec<Program>,
}

impl Ring {
    fn new(contenders: usize) -> Self {
        let directory = directory_in_memory();
        let arena = Arena { root: directory.path().to_owned(), own: String::new() };
        let gate = std::fs::File::create(arena.gate()).unwrap();
        let mut ring = Self { directory, arena, gate, contenders: Vec::new() };
        ring.contenders = (0..contenders).map(|at| ring.contender(at, &[])).collect();
        ring
    }

    /// The last two share a state directory.
    fn contender(&self, at: usize, variables: &[(&str, &str)]) -> Program {
        let own = format!("chief-{}", at.min(CONTENDERS - 2));
        Program::start("races::contender_program", &Arena { own, ..self.arena.clone() }, variables)
    }

    /// Another one, which waits at each of those points.
    fn waiting_at(&self, points: &[&str]) -> Program {
        for point in points {
            let (fifo, mode) = (self.fifo(point), Mode::from_raw_mode(0o600));
            rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
        }
        let (points, fifos) = (points.join(","), self.directory.path().to_str().unwrap());
        let own = Arena { own: "waits".to_owned(), ..self.arena.clone() };
        Program::start(
            "races::contender_program",
            &own,
            &[(crash::WAIT[0], &points), (crash::WAIT[1], fifos)],
        )
    }

    fn fifo(&self, point: &str) -> PathBuf {
        self.directory.path().join(point)
    }

    /// Waits until that point is reached; dropped, it has whoever waits there go on.
    fn reached(&self, point: &str) -> rustix::fd::OwnedFd {
        let end = Instant::now() + DEADLINE;
        loop {
            // As long as nobody reads it, it can't be opened.
            match rustix::fs::open(self.fifo(point), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
                Ok(writer) => return writer,
                Err(error) => assert_eq!(error, rustix::io::Errno::NXIO),
            }
            assert!(Instant::now() < end, "{point} is not reached");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn home(&self, name: &str) {
        let runtime = self.arena.runtime(name);
        durable::ensure_directories(&self.arena.root.join(name), runtime.root()).unwrap();
    }

    /// A lock whose process is dead, as a Chief leaves it that was killed.
    fn leave_stale(&self, home: &str) {
        let claim = Claim { pid: dead_pid(), id: Uuid::random() };
        write_lock(&self.arena.runtime(home).lock(), claim);
    }

    /// Has all of them claim the lease in the same moment: who holds it.
    fn race(&mut self, home: &str) -> Option<usize> {
        rustix::fs::flock(&self.gate, FlockOperation::LockExclusive).unwrap();
        for contender in &mut self.contenders {
            contender.ask(&format!("claim {home}"));
        }
        for contender in &self.contenders {
            contender.hear("ready").unwrap();
        }
        rustix::fs::flock(&self.gate, FlockOperation::Unlock).unwrap();
        let answers: Vec<bool> = self.contenders.iter().map(is_held).collect();
        assert!(answers.iter().filter(|held| **held).count() <= 1, "{answers:?}");
        answers.iter().position(|held| *held)
    }

    fn release(&mut self, holder: Option<usize>) {
        if let Some(holder) = holder {
            self.contenders[holder].does("release").unwrap();
        }
    }

    /// Nothing of any lease is left.
    fn assert_clean(&self, home: &str) {
        let left: Vec<_> = below(self.arena.runtime(home).root());
        assert!(left.iter().all(|path| !path.to_str().unwrap().contains("chief")), "{home}: {left:?}");
    }
}

/// What came of the claim that was asked for.
fn is_held(contender: &Program) -> bool {
    match contender.hear("ok claim").unwrap().as_str() {
        "ok claim held" => true,
        "ok claim refused" => false,
        other => panic!("{other}"),
    }
}

/// Turns of each contender that are waited for at once.
const CHURNED: usize = 10;

/// Rounds in which all begin at once: for a lease that is free, one that a dead process left, and one
/// whose Chief is killed; then each as often as it can.
fn fight(rounds: usize, times: usize) {
    let begun = Instant::now();
    let mut ring = Ring::new(CONTENDERS);
    let mut won = [0; CONTENDERS];
    let mut killed = 0;
    ring.home("ring");
    for round in 0..rounds {
        if round % 4 == 1 {
            ring.leave_stale("ring");
        }
        let holder = ring.race("ring").expect("somebody always gets it");
        won[holder] += 1;
        if round % 4 == 3 {
            ring.contenders[holder].kill();
            ring.contenders[holder] = ring.contender(holder, &[]);
            killed += 1;
        } else {
            ring.release(Some(holder));
        }
    }
    let raced = begun.elapsed();
    // A few at a time, so that a busy machine is not taken for one that stands still.
    for _ in 0..times / CHURNED {
        for contender in &mut ring.contenders {
            contender.ask(&format!("churn ring {CHURNED}"));
        }
        for contender in &ring.contenders {
            contender.hear("ok churn").unwrap();
        }
    }
    ring.assert_clean("ring");
    println!(
        "{rounds} rounds, {killed} Chiefs killed, won {won:?}, {raced:?}; {times} turns each, {:?} in all",
        begun.elapsed()
    );
}

#[test]
fn eight_processes_on_one_lease_never_make_two_chiefs() {
    fight(100, 10);
}

#[test]
#[ignore = "takes a minute"]
fn eight_processes_on_one_lease_never_make_two_chiefs_in_a_thousand_rounds() {
    fight(1_000, 200);
}

/// One stops at each point there is of claiming, recovering, describing and ending a lease, and others
/// come in between.
#[test]
fn whoever_stops_in_the_middle_of_a_claim_makes_no_second_chief() {
    let mut ring = Ring::new(2);
    let of_a_lease = ["lease:", "descriptor:", "release:"];
    let points = crash::POINTS.iter().filter(|point| of_a_lease.iter().any(|of| point.starts_with(of)));
    for (at, point) in points.enumerate() {
        let home = &format!("home-{at}");
        ring.home(home);
        ring.leave_stale(home);
        let mut stops = ring.waiting_at(&[point]);
        let ends = point.starts_with("release:");
        stops.ask(&format!("claim {home}"));
        if ends {
            assert!(is_held(&stops));
            stops.ask("release");
        }
        let goes_on = ring.reached(point);
        let between = ring.race(home);
        // Its own is there, or it is just about to take away that of the dead.
        let stands = match point.split_once(':').unwrap() {
            ("lease", step) => matches!(step, "stale_found" | "lock_published"),
            ("release", step) => step == "undescribed",
            _ => true,
        };
        assert_eq!(between.is_none(), stands, "{point}");
        drop(goes_on);
        let held = if ends {
            stops.hear("ok release").unwrap();
            false
        } else {
            is_held(&stops)
        };
        assert_eq!(held, stands && !ends, "{point}");
        ring.release(between);
        if held {
            stops.does("release").unwrap();
        }
        // Whatever that was, the next one gets it.
        let after = ring.race(home);
        assert!(after.is_some(), "{point}");
        ring.release(after);
        ring.assert_clean(home);
        stops.quit();
    }
}

/// One finds the lock of a dead process, and is late with moving it aside: what it moves is never the lock
/// of somebody who lives, whose name a third could take.
#[test]
fn a_recovery_that_is_late_moves_nobodys_lock() {
    let points = ["lease:stale_found", "lease:stale_aside"];
    let mut ring = Ring::new(2);
    ring.home("ring");
    ring.leave_stale("ring");
    let mut late = ring.waiting_at(&points);
    late.ask("claim ring");
    let found = ring.reached(points[0]);
    let mut held = Vec::new();
    let mut claims = |contender: &mut Program| {
        contender.ask("claim ring");
        held.push(is_held(contender));
    };
    claims(&mut ring.contenders[0]);
    drop(found);
    let aside = ring.reached(points[1]);
    claims(&mut ring.contenders[1]);
    drop(aside);
    held.push(is_held(&late));
    // The witness would have told of two at once.
    assert_eq!(held, [false, true, false]);
    ring.release(Some(1));
    ring.assert_clean("ring");
    late.quit();
    // And one that is killed there keeps nobody out.
    ring.leave_stale("ring");
    for point in points {
        std::fs::remove_file(ring.fifo(point)).unwrap();
    }
    let mut late = ring.waiting_at(&points);
    late.ask("claim ring");
    let found = ring.reached(points[0]);
    late.kill();
    drop(found);
    let holder = ring.race("ring");
    assert!(holder.is_some());
    ring.release(holder);
}

/// A program that does not know of the advisory lock recovers it in between, and lives: what is moved aside
/// then is its lock, and is given back.
#[test]
fn a_lock_that_another_program_recovered_in_between_is_given_back() {
    let point = "lease:stale_found";
    let ring = Ring::new(0);
    ring.home("ring");
    ring.leave_stale("ring");
    let mut late = ring.waiting_at(&[point]);
    late.ask("claim ring");
    let found = ring.reached(point);
    let lock = ring.arena.runtime("ring").lock();
    std::fs::remove_dir_all(&lock).unwrap();
    let living = Claim::own();
    write_lock(&lock, living);
    drop(found);
    assert!(!is_held(&late));
    assert_eq!(lock::holder(&lock).unwrap(), Holder::Claimed(living, Liveness::Alive));
    let beside = std::fs::read_dir(lock.parent().unwrap()).unwrap().map(|it| it.unwrap().path());
    assert_eq!(beside.collect::<Vec<_>>(), [lock], "nothing of it is left beside");
    late.quit();
}

/// One that is stopped while it recovers the lease of a dead one is named, by whoever wants it and by the
/// doctor, with what to do.
#[test]
fn whoever_stops_while_it_recovers_a_lease_is_named() {
    let point = "lease:stale_found";
    let ring = Ring::new(0);
    ring.home("ring");
    ring.leave_stale("ring");
    let mut stops = ring.waiting_at(&[point]);
    stops.ask("claim ring");
    let goes_on = ring.reached(point);
    let pid = stops.pid();
    let agent_dir = ring.arena.agent_dir("ring");
    let claim = |own: &str| {
        let (runtime, sidecar) = (ring.arena.runtime("ring"), ring.arena.sidecar("ring", own));
        let (session, now) = (SessionId::new(own).unwrap(), Timestamp::from_millis(1));
        Lease::claim(&runtime, &agent_dir.data_root(), &sidecar, &session, &Place::none(), now).unwrap_err()
    };
    let next = format!("`kill -CONT {pid}`");
    for (own, of_the_lock) in [("another", true), ("waits", false)] {
        let refused = claim(own);
        assert_eq!(matches!(refused, LeaseError::Lock(LockError::Recovering { .. })), of_the_lock);
        let said = refused.to_string();
        assert!(said.contains(&format!("process {pid}")) && said.contains(&next), "{said}");
    }
    let doctor = std::process::Command::new(env!("CARGO_BIN_EXE_headman"))
        .args(["doctor", "--json", "--socket", "socket", "--agent-dir"])
        .arg(agent_dir.path())
        .env_clear()
        .env("HOME", &ring.arena.root)
        .current_dir(&ring.arena.root)
        .output()
        .unwrap();
    let told: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let told = told.to_string();
    assert!(told.contains(&format!("\"recovered_by\":{pid}")) && told.contains(&next), "{told}");
    drop(goes_on);
    assert!(is_held(&stops));
    stops.does("release").unwrap();
    ring.assert_clean("ring");
    stops.quit();
}

/// What is known of a claim's process, and whether its lock is recovered though that pid lives.
struct Reused {
    case: &'static str,
    /// Makes of the line that the claim's console wrote what is to stand there.
    line: fn(&mut serde_json::Value, u64),
    recovered: bool,
}

/// A process that started later by at least one tick of the clock that tells it, and when.
fn started_after(start: u64) -> (support::Program, u64) {
    let tries = std::iter::repeat_with(support::Program::plain);
    let mut told = tries.map(|it| (sidecar::start_time(it.pid()).unwrap(), it));
    told.find(|(at, _)| *at > start).map(|(at, it)| (it, at)).unwrap()
}

/// A Chief is killed, and another process that lives has the pid which its lock names.
#[test]
fn a_lease_whose_pid_another_process_has_is_recovered_only_where_that_is_proven() {
    let cases = [
        Reused { case: "another start", line: |_, _| {}, recovered: true },
        Reused {
            case: "another boot, the same start",
            line: |line, start| {
                line["start"] = start.into();
                line["boot"] = "before".into();
            },
            recovered: true,
        },
        // As in the copy of a state directory whose console lives.
        Reused { case: "the same start", line: |line, start| line["start"] = start.into(), recovered: false },
        Reused {
            case: "no start and no boot",
            line: |line, _| {
                line["start"] = serde_json::Value::Null;
                line["boot"] = serde_json::Value::Null;
            },
            recovered: false,
        },
        Reused {
            case: "another claim",
            line: |line, _| line["claim"] = Uuid::random().to_string().into(),
            recovered: false,
        },
        Reused { case: "another pid", line: |line, _| line["pid"] = 1.into(), recovered: false },
    ];
    let ring = Ring::new(0);
    for (at, Reused { case, line, recovered }) in cases.into_iter().enumerate() {
        let home = &format!("home-{at}");
        ring.home(home);
        let mut killed = ring.contender(0, &[]);
        killed.ask(&format!("claim {home}"));
        assert!(is_held(&killed));
        killed.kill();
        let sidecar = ring.arena.sidecar(home, "chief-0");
        let mut known: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&sidecar).unwrap()).unwrap();
        // Another process has the pid now. No system can be asked for that, so what names it is changed.
        let (living, start) = started_after(known["start"].as_u64().unwrap());
        let pid = Pid::from_number(f64::from(living.pid())).unwrap();
        let lock = ring.arena.runtime(home).lock();
        let [entry] = &std::fs::read_dir(&lock).unwrap().collect::<Vec<_>>()[..] else { panic!("{case}") };
        let entry = entry.as_ref().unwrap();
        let name = entry.file_name().into_string().unwrap();
        let claim = Claim::parse(&std::fs::read(entry.path()).unwrap(), &name).unwrap();
        std::fs::remove_dir_all(&lock).unwrap();
        write_lock(&lock, Claim { pid, ..claim });
        known["pid"] = living.pid().into();
        line(&mut known, start);
        std::fs::write(&sidecar, format!("{known}\n")).unwrap();
        // Somebody else can't know, and touches nothing.
        let stands = || std::fs::read(lock.join(Claim { pid, ..claim }.file_name())).ok();
        let before = stands();
        assert!(before.is_some());
        for (own, wins) in [("of another", false), ("chief-0", recovered)] {
            let arena = Arena { own: own.to_owned(), ..ring.arena.clone() };
            let mut next = Program::start("races::contender_program", &arena, &[]);
            next.ask(&format!("claim {home}"));
            assert_eq!(is_held(&next), wins, "{case}, {own}");
            if wins {
                next.does("release").unwrap();
                ring.assert_clean(home);
            } else {
                assert_eq!(stands(), before, "{case}, {own}");
            }
            next.quit();
        }
    }
}
