//! More changes than the system tells: a process that notices records, stopped while they come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::staff::Office;
use headman::contract::text::sha256_hex;
use headman::contract::{LeadRecord, SessionId, Timestamp, Uuid};
use headman::disk::{AgentDir, DiskThread, Runtime, durable, records};
use headman::fact::{self, ChangesLost, Fact, LeadRead, Watching};
use headman::source;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::programs::{Program, say, setting};
use crate::screens::{app, at, press, shown};
use crate::support::directory_in_memory;

/// How many files come while it is stopped. The system keeps 16,384 changes unless it is configured.
const CREATES: usize = 40_000;
/// How many leads there are.
const LEADS: usize = 200;

fn runtime(root: &Path) -> Runtime {
    AgentDir::resolve(Some(root.as_os_str()), Path::new("/")).runtime("socket".as_ref())
}

/// What is known of the leads, in few characters.
fn digest(leads: &BTreeMap<String, LeadRead>) -> String {
    sha256_hex(format!("{leads:?}").as_bytes())
}

/// Not a test: a process that says what it knows of the leads whenever that changed.
#[test]
#[ignore = "a program of other tests"]
fn noticing_program() {
    let Some(root) = setting::<PathBuf>() else { return };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let agent_dir = AgentDir::resolve(Some(root.as_os_str()), Path::new("/"));
        let chief = SessionId::new("chief").unwrap();
        let office = Arc::new(Office::new(agent_dir, runtime(&root), chief, Instant::now()));
        let (facts, received) = fact::channel();
        let disk = DiskThread::spawn().unwrap();
        tokio::spawn(source::records::run(
            office,
            source::watch::Noticing::new(true),
            disk,
            facts,
            Arc::default(),
            Arc::default(),
        ));
        let (ended, mut ends) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            drop(ended);
        });
        let mut leads = BTreeMap::new();
        loop {
            tokio::select! {
                _ = &mut ends => return,
                () = received.ready() => {}
            }
            for fact in received.take() {
                match fact {
                    Fact::Lead(hash, LeadRead::Absent) => drop(leads.remove(&hash)),
                    Fact::Lead(hash, read) => drop(leads.insert(hash, read)),
                    Fact::Leads(all) => leads = all.iter().cloned().collect(),
                    Fact::ChangesLost(ChangesLost { times, .. }) => say(format_args!("lost {times}")),
                    _ => {}
                }
            }
            say(format_args!("knows {}", digest(&leads)));
        }
    });
}

fn write(runtime: &Runtime, lead: usize) {
    let record = LeadRecord {
        instance: Uuid::random(),
        session: SessionId::new(format!("lead-{lead}")).unwrap(),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    records::write_lead(runtime, &record).unwrap();
}

fn cold_scan(runtime: &Runtime) -> BTreeMap<String, LeadRead> {
    source::records::scan(runtime).unwrap().into_iter().collect()
}

#[test]
fn after_more_changes_than_are_told_what_is_known_is_a_cold_scan() {
    let directory = directory_in_memory();
    let runtime = runtime(directory.path());
    durable::ensure_directories(directory.path(), &runtime.leads()).unwrap();
    (0..LEADS).for_each(|lead| write(&runtime, lead));
    let mut program = Program::start("overflow::noticing_program", &directory.path().to_owned(), &[]);
    let before = format!("knows {}", digest(&cold_scan(&runtime)));
    program.hear(&before).unwrap();
    // Nothing of it reads what the system tells.
    let pid = Pid::from_raw(i32::try_from(program.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    for nth in 0..CREATES {
        let file = runtime.leads().join(format!(".{nth}.tmp"));
        std::fs::File::create(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
    // The queue is full: of these nothing is told any more.
    for lead in 0..LEADS {
        match lead % 4 {
            0 => {
                std::fs::remove_file(runtime.lead(&SessionId::new(format!("lead-{lead}")).unwrap())).unwrap()
            }
            1 => write(&runtime, lead),
            2 => write(&runtime, LEADS + lead),
            _ => {}
        }
    }
    let after = format!("knows {}", digest(&cold_scan(&runtime)));
    let since = Instant::now();
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(program.hear("lost").as_deref(), Some("lost 1"));
    program.hear(&after).unwrap();
    let took = since.elapsed();
    println!("{CREATES} creates; {took:?} from the end of the storm to what a cold scan finds");
    assert!(took < Duration::from_secs(1), "{took:?}");
    // And what comes after is told again.
    write(&runtime, 0);
    program.hear(&format!("knows {}", digest(&cold_scan(&runtime)))).unwrap();
    program.quit();
}

#[test]
fn lost_changes_and_polling_are_told_in_the_diagnostics() {
    let mut app = app();
    press(&mut app, "d", at(0));
    for (facts, said) in [
        (
            vec![Fact::ChangesLost(ChangesLost { times: 1, last: at(1) })],
            "than the system tells, once, last at",
        ),
        (
            vec![Fact::ChangesLost(ChangesLost { times: 3, last: at(2) })],
            "than the system tells, 3 times, last",
        ),
        (vec![Fact::Watching(Watching::SwitchedOff)], "once a second: notifications = false in config.toml."),
    ] {
        app.facts(facts, at(3));
        let screen = shown(&app, 160, 40, at(3));
        assert!(screen.contains(said), "{screen}");
    }
}
