//! What is noticed of records and inventory, on a real disk with the system's own watcher.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::staff::Office;
use headman::contract::{Kind, LeadRecord, Message, SessionId, Timestamp, Uuid};
use headman::disk::{AgentDir, DiskThread, Runtime, durable, inbox, records};
use headman::fact::{self, Fact, FactReceiver, LeadRead, Watching};
use headman::source;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::support::{DEADLINE, Herdr, Program, until};

struct Source {
    office: Arc<Office>,
    received: FactReceiver,
    lease_changed: Arc<Notify>,
    task: JoinHandle<()>,
    leads: std::collections::BTreeMap<String, LeadRead>,
    other: Vec<Fact>,
}

impl Source {
    fn start(agent_dir: &Path) -> Self {
        Self::start_with(agent_dir, true)
    }

    fn start_with(agent_dir: &Path, notified: bool) -> Self {
        let agent_dir = AgentDir::resolve(Some(agent_dir.as_os_str()), Path::new("/"));
        let runtime = agent_dir.runtime("socket".as_ref());
        let session = SessionId::new("chief").unwrap();
        let office = Arc::new(Office::new(agent_dir, runtime, session, Instant::now()));
        let (facts, received) = fact::channel();
        let lease_changed = Arc::new(Notify::new());
        let disk = DiskThread::spawn().unwrap();
        let task = tokio::spawn(source::records::run(
            Arc::clone(&office),
            source::watch::Noticing::new(notified),
            disk,
            facts,
            Arc::clone(&lease_changed),
            Arc::default(),
        ));
        Self { office, received, lease_changed, task, leads: Default::default(), other: Vec::new() }
    }

    fn runtime(&self) -> &Runtime {
        self.office.runtime()
    }

    fn take(&mut self) {
        for fact in self.received.take() {
            match fact {
                Fact::Lead(hash, LeadRead::Absent) => {
                    self.leads.remove(&hash);
                }
                Fact::Lead(hash, read) => {
                    self.leads.insert(hash, read);
                }
                Fact::Leads(all) => self.leads = all.iter().cloned().collect(),
                other => self.other.push(other),
            }
        }
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.take();
            if holds(self) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}: {:?}", self.leads);
            let _ = tokio::time::timeout(left, self.received.ready()).await;
        }
    }

    async fn quiet(&mut self) {
        self.until("the first scan", |it| it.other.iter().any(|fact| matches!(fact, Fact::AskTimes(_))))
            .await;
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn record(name: &str) -> LeadRecord {
    LeadRecord {
        instance: Uuid::random(),
        session: SessionId::new(name).unwrap(),
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    }
}

fn has(source: &Source, record: &LeadRecord) -> bool {
    source.leads.get(&record.session.hash()) == Some(&LeadRead::Valid(record.clone()))
}

/// Nothing is there at first, not even the agent directory; later it is made and filled at once.
#[tokio::test]
async fn directories_that_appear_later_are_watched_and_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start(&dir.path().join("agent"));
    source.quiet().await;
    assert!(source.other.iter().any(|fact| matches!(fact, Fact::Watching(Watching::Notified))));
    assert!(source.leads.is_empty());
    let one = record("one");
    durable::ensure_directories(&dir.path().join("agent"), &source.runtime().leads()).unwrap();
    records::write_lead(source.runtime(), &one).unwrap();
    source.until("the first lead", |it| has(it, &one)).await;
    let changed = LeadRecord { instance: Uuid::random(), ..one.clone() };
    records::write_lead(source.runtime(), &changed).unwrap();
    source.until("its change", |it| has(it, &changed)).await;
    records::remove_lead(source.runtime(), &one.session, changed.instance).unwrap();
    source.until("its end", |it| it.leads.is_empty()).await;
    // The whole runtime goes and comes again.
    std::fs::remove_dir_all(source.runtime().root()).unwrap();
    durable::ensure_directories(&dir.path().join("agent"), &source.runtime().leads()).unwrap();
    records::write_lead(source.runtime(), &one).unwrap();
    source.until("the lead in the new directory", |it| has(it, &one)).await;
}

#[tokio::test]
async fn asks_in_our_inbox_give_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start(dir.path());
    source.quiet().await;
    source.other.clear();
    let lead = SessionId::new("lead").unwrap();
    let chief = source.office.session().clone();
    let ask = Uuid::random();
    let message = Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::LeadAsk,
        from: lead.clone(),
        to: chief.clone(),
        lead: lead.clone(),
        ask: Some(ask),
        text: "Ship it?".into(),
        created_at: Timestamp::from_millis(1234),
    };
    let inbox = source.runtime().inbox(&chief);
    inbox::publish(dir.path(), &inbox, &message).unwrap();
    let times = fact::AskTime { lead, ask, at: Timestamp::from_millis(1234) };
    source
        .until("the ask's time", |it| {
            it.other.iter().any(|fact| matches!(fact, Fact::AskTimes(all) if all.contains(&times)))
        })
        .await;
}

#[tokio::test]
async fn a_change_of_the_lease_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start(dir.path());
    durable::ensure_directories(dir.path(), source.runtime().root()).unwrap();
    source.quiet().await;
    // What the directory's own appearance told.
    while tokio::time::timeout(Duration::from_millis(300), source.lease_changed.notified()).await.is_ok() {}
    std::fs::create_dir(source.runtime().lock()).unwrap();
    tokio::time::timeout(DEADLINE, source.lease_changed.notified()).await.unwrap();
}

/// However many changes come, what is known in the end is what a cold scan finds.
#[tokio::test]
async fn a_storm_ends_in_what_a_cold_scan_finds() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start(dir.path());
    durable::ensure_directories(dir.path(), &source.runtime().leads()).unwrap();
    source.quiet().await;
    let runtime = source.runtime().clone();
    let storm = std::thread::spawn(move || {
        for round in 0..20 {
            for lead in 0..50 {
                let record = record(&format!("lead-{lead}"));
                records::write_lead(&runtime, &record).unwrap();
                if (lead + round) % 7 == 0 {
                    records::remove_lead(&runtime, &record.session, record.instance).unwrap();
                }
            }
        }
    });
    tokio::task::spawn_blocking(move || storm.join().unwrap()).await.unwrap();
    let cold: std::collections::BTreeMap<_, _> =
        source::records::scan(source.runtime()).unwrap().into_iter().collect();
    assert!(cold.len() > 30);
    source.until("the cold scan", |it| it.leads == cold).await;
}

/// Without notifications what is known is what a cold scan finds, within two looks.
#[tokio::test]
async fn records_that_are_polled_are_those_of_a_cold_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start_with(dir.path(), false);
    source.quiet().await;
    assert!(source.other.iter().any(|fact| matches!(fact, Fact::Watching(Watching::SwitchedOff))));
    // The directories come later, too.
    durable::ensure_directories(dir.path(), &source.runtime().leads()).unwrap();
    for round in 0..2 {
        let gone = record("gone");
        for name in ["one", "two"] {
            records::write_lead(source.runtime(), &record(name)).unwrap();
        }
        if round == 0 {
            records::write_lead(source.runtime(), &gone).unwrap();
        } else {
            std::fs::remove_file(source.runtime().lead(&gone.session)).unwrap();
        }
        let cold: std::collections::BTreeMap<_, _> =
            source::records::scan(source.runtime()).unwrap().into_iter().collect();
        let since = Instant::now();
        source.until("the cold scan", |it| it.leads == cold).await;
        // One period of a second, and ample time to read three files.
        assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
        tokio::time::timeout(DEADLINE, source.lease_changed.notified()).await.unwrap();
    }
}

#[tokio::test]
async fn hostile_records_are_refused_by_name_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut source = Source::start(dir.path());
    let leads = source.runtime().leads();
    durable::ensure_directories(dir.path(), &leads).unwrap();
    let good = record("good");
    records::write_lead(source.runtime(), &good).unwrap();
    let bytes = good.to_bytes().unwrap();
    let path = |name: &str| leads.join(format!("{}.json", SessionId::new(name).unwrap().hash()));
    std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    std::fs::write(path("huge"), vec![b' '; 20_000]).unwrap();
    std::fs::write(path("torn"), &bytes[..40]).unwrap();
    std::fs::write(path("binary"), [0xFF, 0x00, 0xFE]).unwrap();
    std::fs::write(path("another"), &bytes).unwrap();
    std::fs::write(path("newer"), String::from_utf8_lossy(&bytes).replace(":1,", ":2,")).unwrap();
    std::fs::write(path("loose"), &bytes).unwrap();
    std::fs::set_permissions(path("loose"), std::os::unix::fs::PermissionsExt::from_mode(0o620)).unwrap();
    std::fs::write(path("twice"), &bytes).unwrap();
    std::fs::hard_link(path("twice"), leads.join("second-name")).unwrap();
    source.until("all ten", |it| it.leads.len() == 11).await;
    assert!(has(&source, &good));
    for (name, word) in [
        ("link", "symbolic link"),
        ("fifo", "FIFO"),
        ("directory", "directory"),
        ("huge", "more than 16384 bytes"),
        ("torn", "not JSON"),
        ("binary", "not JSON"),
        ("another", "another session"),
        ("newer", "another version"),
        ("loose", "mode 0620"),
        ("twice", "hard links"),
    ] {
        let hash = SessionId::new(name).unwrap().hash();
        let LeadRead::Refused(why) = &source.leads[&hash] else {
            panic!("{name}: {:?}", source.leads[&hash])
        };
        assert!(why.contains(word), "{name}: {why}");
        assert!(path(name).symlink_metadata().is_ok(), "{name} was removed");
    }
}

#[tokio::test]
async fn the_inventory_follows_herdr_down_and_up_again() {
    let herdr = Herdr::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/"));
    let runtime = agent_dir.runtime(herdr.socket.as_os_str());
    let office = Arc::new(Office::new(agent_dir, runtime, SessionId::new("chief").unwrap(), Instant::now()));
    let (facts, received) = fact::channel();
    let (snapshots, _seen) = watch::channel(None);
    let client = herdr.client().with_timeout(Duration::from_millis(500));
    let task =
        tokio::spawn(source::inventory::run(client, office, DiskThread::spawn().unwrap(), facts, snapshots));
    let mut seen = Vec::new();
    let mut until_fact = async |what: &str, wanted: &dyn Fn(&Fact) -> bool| {
        let end = Instant::now() + DEADLINE;
        loop {
            seen.extend(received.take());
            if let Some(at) = seen.iter().position(wanted) {
                seen.drain(..=at);
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}: {seen:?}");
            let _ = tokio::time::timeout(left, received.ready()).await;
        }
    };
    until_fact("an empty inventory", &|fact| matches!(fact, Fact::Inventory(it) if it.agents.is_empty()))
        .await;
    // A lead whose session is named by its file.
    let session_file = dir.path().join("session.jsonl");
    let header = r#"{"type":"session","version":3,"id":"the-session","timestamp":"2026-11-30T08:00:00.000Z","cwd":"/"}"#;
    std::fs::write(&session_file, format!("{header}\n")).unwrap();
    let created = herdr.server.create_workspace("api", "/tmp", None, false);
    let program = Program::hinted();
    herdr.server.attach(&created.pane, program.pid(), true);
    let reply = herdr
        .client()
        .request(
            "pane.report_agent_session",
            serde_json::json!({"pane_id": created.pane, "source": "herdr:pi", "agent": "pi", "seq": 1,
                "agent_session_path": session_file.to_str().unwrap()}),
        )
        .await;
    reply.unwrap();
    until("it is listed", || async { !herdr.client().snapshot().await.unwrap().agents.is_empty() }).await;
    until_fact("the lead", &|fact| {
        matches!(fact, Fact::Inventory(it) if it.agents.iter().any(|agent|
            agent.session == headman::herd::AgentSession::Known("the-session".into())))
    })
    .await;
    herdr.server.set_fault(headman::demo::server::Fault::Silent).await.unwrap();
    until_fact("that it is down", &|fact| matches!(fact, Fact::HerdrDown { .. })).await;
    herdr.server.set_fault(headman::demo::server::Fault::None).await.unwrap();
    until_fact("that it is up", &|fact| matches!(fact, Fact::Inventory(it) if it.agents.len() == 1)).await;
    herdr.server.set_fault(headman::demo::server::Fault::Gone).await.unwrap();
    until_fact(
        "that it is gone",
        &|fact| matches!(fact, Fact::HerdrDown { reason } if reason.contains("no socket")),
    )
    .await;
    task.abort();
}
