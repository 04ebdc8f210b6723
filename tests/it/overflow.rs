//! More changes than the system tells: a process that notices records, stopped while they come.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::staff::Office;
use headman::contract::text::sha256_hex;
use headman::contract::{LeadRecord, SessionId, Timestamp, Uuid};
use headman::disk::{AgentDir, DiskThread, Runtime, durable, records};
use headman::fact::{self, ChangesLost, Fact, Watching};
use headman::herd::evidence::{AgentSession, LiveAgent};
use headman::herd::inventory::Inventory;
use headman::herdr::Registration;
use headman::model::Model;
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

fn lead(nth: usize) -> SessionId {
    SessionId::new(format!("lead-{nth}")).unwrap()
}

/// A console's model, in which Herdr lists every lead that may have a record, each on a pane of its own.
fn model() -> Model {
    let mut inventory = Inventory::default();
    for nth in 0..2 * LEADS {
        let on = |what: &str| Some(format!("{what}{nth}").as_str().into());
        inventory.agents.push(LiveAgent {
            workspace: on("w"),
            tab: on("t"),
            pane: on("p"),
            ..LiveAgent::new(AgentSession::Known(lead(nth).as_untrusted().clone()))
        });
    }
    let mut model = Model::new(SessionId::new("chief").unwrap(), Registration::Registering);
    model.fold([Fact::Inventory(Arc::new(inventory))], at(0));
    model
}

/// What a console shows of the leads, in few characters.
fn digest(model: &Model) -> String {
    sha256_hex(format!("{:?}", model.roster()).as_bytes())
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
        let (mut model, mut lost) = (model(), None);
        loop {
            tokio::select! {
                _ = &mut ends => return,
                () = received.ready() => {}
            }
            model.fold(received.take(), at(0));
            if model.changes_lost() != lost {
                lost = model.changes_lost();
                lost.iter().for_each(|lost| say(format_args!("lost {}", lost.times)));
            }
            say(format_args!("knows {}", digest(&model)));
        }
    });
}

fn write(runtime: &Runtime, nth: usize) {
    let record = LeadRecord {
        instance: Uuid::random(),
        session: lead(nth),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    records::write_lead(runtime, &record).unwrap();
}

/// What a console says that has just read everything, and that it shows so many leads.
fn cold_scan(runtime: &Runtime, leads: usize) -> String {
    let mut model = model();
    model.fold([Fact::Leads(Arc::new(source::records::scan(runtime).unwrap()))], at(0));
    assert_eq!(model.roster().leads.len(), leads);
    format!("knows {}", digest(&model))
}

/// How long a process's threads ran so far.
fn processor_time(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ran = |thread: std::fs::DirEntry| -> u64 {
        // One may just be ending.
        let told = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
    };
    Duration::from_nanos(threads.flatten().map(ran).sum())
}

#[test]
fn after_more_changes_than_are_told_what_is_known_is_a_cold_scan() {
    let directory = directory_in_memory();
    let runtime = runtime(directory.path());
    durable::ensure_directories(directory.path(), &runtime.leads()).unwrap();
    (0..LEADS).for_each(|lead| write(&runtime, lead));
    let mut program = Program::start("overflow::noticing_program", &directory.path().to_owned(), &[]);
    program.hear(&cold_scan(&runtime, LEADS)).unwrap();
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
    for nth in 0..LEADS {
        match nth % 4 {
            0 => std::fs::remove_file(runtime.lead(&lead(nth))).unwrap(),
            1 => write(&runtime, nth),
            2 => write(&runtime, LEADS + nth),
            _ => {}
        }
    }
    let after = cold_scan(&runtime, LEADS);
    let (since, before) = (Instant::now(), processor_time(program.pid()));
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(program.hear("lost").as_deref(), Some("lost 1"));
    program.hear(&after).unwrap();
    // What a busy machine takes longer is not the program's. It was heard within 20 s; everything is read
    // again in any case only after 30 s.
    let took = processor_time(program.pid()).saturating_sub(before);
    println!("{CREATES} creates; {:?} to what a cold scan finds, {took:?} of it its own", since.elapsed());
    assert!(took < Duration::from_secs(1), "{took:?}");
    // And what comes after is told again.
    write(&runtime, 0);
    program.hear(&cold_scan(&runtime, LEADS + 1)).unwrap();
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
