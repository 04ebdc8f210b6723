//! The Chief service on a real disk and a simulated Herdr with real processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::attach::FileArgument;
use headman::chief::lease::Place;
use headman::chief::service::{self, Request, Setup};
use headman::chief::staff::{Office, Reply};
use headman::chief::state_dir::StateDir;
use headman::contract::role::Role;
use headman::contract::{Kind, LeadRecord, Message, PendingAsk, SessionId, Timestamp, Untrusted, Uuid};
use headman::disk::records::{self, Holding};
use headman::disk::{AgentDir, DiskThread, Runtime};
use headman::fact::{self, Done, Fact, FactReceiver, Fate, OtherChief, Standing};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::support::{DEADLINE, Herdr, Program, until};

/// A Herdr and an agent directory, with one lead in it.
pub(crate) struct World {
    pub(crate) herdr: Herdr,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) lead: Lead,
}

pub(crate) struct Lead {
    pub(crate) session: SessionId,
    pub(crate) record: LeadRecord,
    pane: String,
    pub(crate) session_file: PathBuf,
    _program: Program,
}

impl World {
    pub(crate) async fn new() -> Self {
        let herdr = Herdr::start().await;
        let dir = tempfile::tempdir().unwrap();
        let created = herdr.server.create_workspace("api", "/tmp", None, false);
        let program = Program::hinted();
        herdr.server.attach(&created.pane, program.pid(), true);
        let session = SessionId::new("lead-session-1").unwrap();
        let session_file = dir.path().join("session.jsonl");
        let header = r#"{"type":"session","version":3,"id":"lead-session-1","timestamp":"2026-11-30T08:00:00.000Z","cwd":"/"}"#;
        std::fs::write(&session_file, format!("{header}\n")).unwrap();
        let record = LeadRecord {
            instance: Uuid::random(),
            session: session.clone(),
            pending_ask: Some(PendingAsk {
                ask: Uuid::random(),
                question: "Ship it?".into(),
                text: "Ship it?".into(),
            }),
            updated_at: Timestamp::from_millis(1),
        };
        let lead = Lead { session, record, pane: created.pane, session_file, _program: program };
        let world = Self { herdr, dir, lead };
        world.report().await;
        let runtime = world.runtime();
        headman::disk::durable::ensure_directories(world.agent_dir().path(), &runtime.leads()).unwrap();
        world.write(&world.lead.record);
        world
    }

    /// The lead reports itself as its Pi does, until Herdr lists it.
    pub(crate) async fn report(&self) {
        let client = self.herdr.client();
        let path = self.lead.session_file.to_str().unwrap();
        let report = |method: &'static str, seq: u64| {
            let params = serde_json::json!({"pane_id": self.lead.pane, "source": "herdr:pi", "agent": "pi",
                "agent_session_path": path, "state": "idle", "seq": seq});
            let client = client.clone();
            async move { client.request(method, params).await.unwrap() }
        };
        report("pane.report_agent_session", 1).await;
        report("pane.report_agent", 2).await;
        until("the lead is listed", || async { client.snapshot().await.unwrap().agents.len() == 1 }).await;
    }

    pub(crate) fn agent_dir(&self) -> AgentDir {
        AgentDir::resolve(Some(self.dir.path().join("agent").as_os_str()), Path::new("/"))
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.agent_dir().runtime(self.herdr.socket.as_os_str())
    }

    pub(crate) fn write(&self, record: &LeadRecord) {
        records::write_lead(&self.runtime(), record).unwrap();
    }

    pub(crate) fn state(&self, name: &str) -> StateDir {
        StateDir::open(&self.dir.path().join(name), self.herdr.socket.as_os_str()).unwrap()
    }

    /// Makes the next start of that state directory resume as Chief.
    pub(crate) fn make_chief(&self, name: &str) {
        let state = self.state(name);
        let mut identity = state.identity().unwrap();
        identity.role = Role::Chief;
        state.write_identity(&identity).unwrap();
    }

    pub(crate) fn service(&self, name: &str) -> Service {
        self.service_keeping(name, None)
    }

    /// The same, which keeps what was received and sent for so many days.
    pub(crate) fn service_keeping(&self, name: &str, keep_days: Option<u32>) -> Service {
        let root = self.dir.path().join(name);
        let (state, identity) = StateDir::open_for_console(&root, self.herdr.socket.as_os_str()).unwrap();
        let session = identity.session();
        let office = Arc::new(Office::new(self.agent_dir(), self.runtime(), session, Instant::now()));
        let (facts, received) = fact::channel();
        let (requests, asked) = mpsc::channel(64);
        let mail_changed = Arc::new(Notify::new());
        let (snapshots, seen) = watch::channel(None);
        let client = self.herdr.client();
        let looking = tokio::spawn(async move {
            while !snapshots.is_closed() {
                snapshots.send_replace(client.snapshot().await.ok().map(Arc::new));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let disk = DiskThread::spawn().unwrap();
        let setup = Setup {
            office: Arc::clone(&office),
            disk: disk.clone(),
            state,
            keep_days,
            herdr: self.herdr.client().with_timeout(Duration::from_secs(2)),
            place: Place::none(),
            registrar: None,
            facts,
            lease_changed: Arc::new(Notify::new()),
            mail_changed: Arc::clone(&mail_changed),
            snapshots: seen,
        };
        let task = tokio::spawn(async move {
            let mut asked = asked;
            service::run(setup, &mut asked, mpsc::channel(1).1).await;
        });
        Service { office, disk, received, requests, task, looking, seen: Vec::new(), ticket: 0 }
    }

    pub(crate) fn reply(&self, lease: Uuid) -> Reply {
        Reply {
            lead: self.lead.session.clone(),
            instance: self.lead.record.instance,
            ask: self.lead.record.pending_ask.as_ref().unwrap().ask,
            question: "Ship it?".into(),
            lease,
            text: "Ship it.".into(),
            files: Vec::new(),
            id: None,
        }
    }

    pub(crate) fn inbox(&self) -> Vec<Message> {
        let inbox = self.runtime().inbox(&self.lead.session);
        headman::disk::inbox::list(&inbox)
            .unwrap()
            .into_iter()
            .map(|entry| match entry.content {
                headman::disk::inbox::Content::Valid(message) => *message,
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

pub(crate) struct Service {
    pub(crate) office: Arc<Office>,
    pub(crate) disk: DiskThread,
    received: FactReceiver,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) task: JoinHandle<()>,
    looking: JoinHandle<()>,
    pub(crate) seen: Vec<Fact>,
    ticket: u64,
}

impl Service {
    /// Waits for a fact that `wanted` turns into something.
    pub(crate) async fn wait<T>(&mut self, what: &str, wanted: impl Fn(&Fact) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen.iter().position(|fact| wanted(fact).is_some()) {
                let fact = self.seen.remove(at);
                return wanted(&fact).unwrap();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}; seen {:?}", self.seen);
            let _ = tokio::time::timeout(left, self.received.ready()).await;
            self.seen.extend(self.received.take());
        }
    }

    /// Whether a fact was told by now that `wanted` takes.
    pub(crate) fn has_told(&mut self, wanted: impl Fn(&Fact) -> bool) -> bool {
        self.seen.extend(self.received.take());
        self.seen.iter().any(wanted)
    }

    pub(crate) async fn standing(&mut self, what: &str, wanted: impl Fn(&Standing) -> bool) -> Standing {
        self.wait(what, |fact| match fact {
            Fact::Standing(standing) if wanted(standing) => Some(standing.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn chief(&mut self) -> Uuid {
        let standing =
            self.standing("to be Chief", |standing| matches!(standing, Standing::Chief { .. })).await;
        standing.lease().unwrap()
    }

    pub(crate) async fn ask(&mut self, request: impl FnOnce(u64) -> Request) -> Result<Done, String> {
        self.ticket += 1;
        let ticket = self.ticket;
        self.requests.send(request(ticket)).await.unwrap();
        self.wait("an outcome", move |fact| match fact {
            Fact::Outcome(outcome) if outcome.ticket == ticket => Some(outcome.result.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn send(&mut self, reply: Reply) -> Result<Done, String> {
        self.ask(|ticket| Request::Reply { ticket, reply }).await
    }

    pub(crate) async fn fate(&mut self, id: Uuid, wanted: Fate) {
        self.wait(wanted.as_str(), move |fact| match fact {
            Fact::Sent(sent) if sent.id == id && sent.fate == wanted => Some(()),
            _ => None,
        })
        .await;
    }

    pub(crate) async fn end(self) {
        let (done, ended) = oneshot::channel();
        self.requests.send(Request::Shutdown(done)).await.unwrap();
        ended.await.unwrap();
        self.task.await.unwrap();
        self.looking.abort();
    }
}

#[tokio::test]
async fn a_first_start_watches_and_a_later_one_resumes() {
    let world = World::new().await;
    let mut first = world.service("state");
    let standing = first.standing("to watch", |standing| !matches!(standing, Standing::Starting)).await;
    assert_eq!(standing, Standing::Observer { chief: OtherChief::None, refused: None });
    assert!(!world.runtime().lock().exists());

    assert_eq!(first.ask(|ticket| Request::BecomeChief { ticket }).await, Ok(Done::BecameChief));
    let lease = first.chief().await;
    let Holding::Held(descriptor) = records::read_holding(&world.runtime()).unwrap() else { panic!() };
    assert_eq!(descriptor.lease, lease);
    assert_eq!(descriptor.session, *first.office.session());
    assert_eq!(descriptor.tab, Some(Untrusted::from("none")));
    first.end().await;
    assert_eq!(records::read_holding(&world.runtime()).unwrap(), Holding::Free);
    assert!(!world.runtime().descriptor().exists());

    // The role stayed, and so did the session.
    let mut second = world.service("state");
    let again = second.chief().await;
    assert_ne!(again, lease);
    assert_eq!(descriptor.session, *second.office.session());
    assert_eq!(second.ask(|ticket| Request::Leave { ticket }).await, Ok(Done::Left));
    assert_eq!(records::read_holding(&world.runtime()).unwrap(), Holding::Free);
    second.end().await;
    assert_eq!(world.state("state").identity().unwrap().role, Role::Lead);
}

#[tokio::test]
async fn a_second_console_is_suspended_until_the_first_is_gone() {
    let world = World::new().await;
    world.make_chief("state");
    let mut first = world.service("state");
    first.chief().await;
    let mut second = world.service("state");
    let suspended =
        second.standing("to be suspended", |standing| matches!(standing, Standing::Suspended(_))).await;
    let Standing::Suspended(OtherChief::OwnConsole(descriptor)) = suspended else { panic!("{suspended:?}") };
    assert_eq!(descriptor.claim.pid.as_number(), f64::from(std::process::id()));
    // It can't be taken over.
    assert!(second.ask(|ticket| Request::BecomeChief { ticket }).await.is_err());

    first.end().await;
    second.standing("to see it free", |standing| *standing == Standing::Suspended(OtherChief::None)).await;
    assert_eq!(second.ask(|ticket| Request::BecomeChief { ticket }).await, Ok(Done::BecameChief));
    second.chief().await;
    second.end().await;
}

#[tokio::test]
async fn a_first_try_that_finds_it_occupied_leaves_everything_as_it_was() {
    let world = World::new().await;
    world.make_chief("one");
    let mut chief = world.service("one");
    chief.chief().await;
    let before = std::fs::read(world.runtime().descriptor()).unwrap();
    let mut other = world.service("two");
    other.standing("to watch", |standing| matches!(standing, Standing::Observer { .. })).await;
    let refused = other.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap_err();
    assert!(refused.contains(&std::process::id().to_string()), "{refused}");
    assert_eq!(std::fs::read(world.runtime().descriptor()).unwrap(), before);
    assert_eq!(world.state("two").identity().unwrap().role, Role::Lead);
    other.end().await;
    // Ending an observer releases nothing of another's.
    assert_eq!(std::fs::read(world.runtime().descriptor()).unwrap(), before);
    chief.end().await;
}

#[tokio::test]
async fn a_reply_goes_from_queued_over_taken_to_answered() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let Ok(Done::Sent(id)) = service.send(world.reply(lease)).await else { panic!() };
    let [message] = &world.inbox()[..] else { panic!("{:?}", world.inbox()) };
    assert_eq!(message.id, id);
    assert_eq!(message.kind, Kind::ChiefReply);
    assert_eq!(message.lease, lease);
    assert_eq!(message.from, *service.office.session());
    assert_eq!(message.to, world.lead.session);
    assert_eq!(message.lead, world.lead.session);
    assert_eq!(message.ask, Some(world.lead.record.pending_ask.as_ref().unwrap().ask));
    assert_eq!(message.text, "Ship it.");
    service.fate(id, Fate::Queued).await;

    // The lead removes it as the contract says, the marker first.
    headman::disk::inbox::remove(&world.runtime().inbox(&world.lead.session), id).unwrap();
    service.fate(id, Fate::Taken).await;
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    service.fate(id, Fate::Answered).await;
    service.end().await;
}

#[tokio::test]
async fn a_reply_with_files_is_queued_as_rendered_or_not_at_all() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let cwd = world.dir.path().canonicalize().unwrap();
    std::fs::write(cwd.join("plan.md"), "1. ship\n").unwrap();
    std::fs::write(cwd.join("core"), b"\0").unwrap();
    let with = |files: &[&str]| Reply {
        files: files.iter().map(|file| FileArgument::new(file, &cwd)).collect(),
        ..world.reply(lease)
    };

    // A file that can't be attached, limits that are not known: nothing is written.
    let refused = service.send(with(&["plan.md", "none.md"])).await.unwrap_err();
    assert_eq!(refused, "can't attach none.md: it is not there. Name a file that you can read");
    let config = world.agent_dir().data_root().join("config.json");
    std::fs::write(&config, r#"{"mailboxPayloadLimitBytes":1}"#).unwrap();
    for files in [&["plan.md"][..], &[]] {
        let refused = service.send(with(files)).await.unwrap_err();
        assert!(refused.contains("`mailboxPayloadLimitBytes`"), "{refused}");
    }
    std::fs::write(&config, r#"{"mailboxPayloadLimitBytes":1024}"#).unwrap();
    let long = Reply { text: "x".repeat(1_000).into(), ..with(&["plan.md"]) };
    let refused = service.send(long).await.unwrap_err();
    assert!(refused.contains("1024 are allowed"), "{refused}");
    std::fs::remove_file(&config).unwrap();
    assert_eq!(world.inbox(), []);

    let Ok(Done::Sent(id)) = service.send(with(&["plan.md", "./plan.md", "core"])).await else { panic!() };
    let here = cwd.to_str().unwrap();
    let expected = format!(
        "<file name=\"{here}/plan.md\" bytes=\"8\">\n1. ship\n\n</file>\n\n\
         <file name=\"{here}/core\" bytes=\"1\" />\n\nReply:\nShip it."
    );
    let inbox = world.inbox();
    assert_eq!((inbox.len(), &inbox[0].text), (1, &Untrusted::from(expected)));
    // What is remembered of it is what was sent.
    let sent = service.wait("the message", |fact| match fact {
        Fact::Sent(sent) if sent.id == id => Some(sent.text.clone()),
        _ => None,
    });
    assert_eq!(sent.await, inbox[0].text);
    service.end().await;
}

#[tokio::test]
async fn every_reply_that_no_lead_would_take_is_refused_before_it_is_written() {
    let world = World::new().await;
    let mut service = world.service("state");
    service.standing("to watch", |standing| matches!(standing, Standing::Observer { .. })).await;
    let good = world.reply(Uuid::random());
    let refused = service.send(good.clone()).await.unwrap_err();
    assert!(refused.contains("not Chief"), "{refused}");

    service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    let lease = service.chief().await;
    let good = Reply { lease, ..good };
    for (reply, word) in [
        (Reply { lease: Uuid::random(), ..good.clone() }, "lease changed"),
        (Reply { instance: Uuid::random(), ..good.clone() }, "restarted"),
        (Reply { ask: Uuid::random(), ..good.clone() }, "something else"),
        (Reply { question: "Drop it?".into(), ..good.clone() }, "something else"),
        (Reply { lead: SessionId::new("nobody").unwrap(), ..good.clone() }, "no lead"),
        (Reply { lead: service.office.session().clone(), ..good.clone() }, "no lead"),
        (Reply { text: " \n\u{feff}".into(), ..good.clone() }, "no text"),
        (Reply { text: "x".repeat(8_192).as_str().into(), ..good.clone() }, "bytes"),
    ] {
        let refused = service.send(reply).await.unwrap_err();
        assert!(refused.contains(word), "{word}: {refused}");
    }

    // The lead has just been answered elsewhere, shares its pane, or its record is broken.
    world.write(&LeadRecord { pending_ask: None, ..world.lead.record.clone() });
    assert!(service.send(good.clone()).await.unwrap_err().contains("not pending"));
    let path = world.runtime().lead(&world.lead.session);
    std::fs::write(&path, "{").unwrap();
    assert!(service.send(good.clone()).await.is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(service.send(good.clone()).await.is_err());
    world.write(&world.lead.record);

    // Herdr does not answer: the lead can't be verified.
    world.herdr.server.set_fault(headman::demo::server::Fault::Refuse).await.unwrap();
    let refused = service.send(good.clone()).await.unwrap_err();
    assert!(refused.contains("Herdr"), "{refused}");
    world.herdr.server.set_fault(headman::demo::server::Fault::None).await.unwrap();

    // Its inbox is a link to somewhere else.
    let inbox = world.runtime().inbox(&world.lead.session);
    std::fs::create_dir_all(inbox.path().parent().unwrap()).unwrap();
    let elsewhere = world.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, inbox.path()).unwrap();
    let refused = service.send(good.clone()).await.unwrap_err();
    assert!(refused.contains("inbox"), "{refused}");
    std::fs::remove_file(inbox.path()).unwrap();
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);

    assert!(!inbox.path().exists(), "something was written: {:?}", world.inbox());
    assert!(service.send(good).await.is_ok());
    service.end().await;
}

#[tokio::test]
async fn of_many_replies_to_one_ask_the_first_goes_out_and_the_others_are_refused_in_order() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    for ticket in 1..=20 {
        let reply = Reply { text: format!("{ticket}").as_str().into(), ..world.reply(lease) };
        service.requests.send(Request::Reply { ticket, reply }).await.unwrap();
    }
    let mut outcomes = Vec::new();
    while outcomes.len() < 20 {
        let outcome = service.wait("an outcome", |fact| match fact {
            Fact::Outcome(outcome) => Some(outcome.clone()),
            _ => None,
        });
        outcomes.push(outcome.await);
    }
    assert!(outcomes.is_sorted_by_key(|outcome| outcome.ticket));
    let (first, others) = outcomes.split_first().unwrap();
    assert!(matches!(first.result, Ok(Done::Sent(_))), "{first:?}");
    for outcome in others {
        assert!(outcome.result.as_ref().unwrap_err().contains("already"), "{outcome:?}");
    }
    let texts: Vec<Untrusted> = world.inbox().into_iter().map(|message| message.text).collect();
    assert_eq!(texts, [Untrusted::from("1")]);
    // Once the lead has taken it and still asks, it can be answered again.
    let id = world.inbox()[0].id;
    headman::disk::inbox::remove(&world.runtime().inbox(&world.lead.session), id).unwrap();
    service.fate(id, Fate::Taken).await;
    assert!(matches!(service.send(world.reply(lease)).await, Ok(Done::Sent(_))));
    service.end().await;
}

#[tokio::test]
async fn a_lease_that_is_lost_ends_all_authority() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let Ok(Done::Sent(id)) = service.send(world.reply(lease)).await else { panic!() };
    // Somebody removes the lock from under us.
    std::fs::remove_dir_all(world.runtime().lock()).unwrap();
    let refused = service.send(world.reply(lease)).await.unwrap_err();
    // The second where it was noticed before this was sent.
    assert!(refused.contains("lease") || refused.contains("not Chief"), "{refused}");
    service.standing("to notice", |standing| matches!(standing, Standing::Lost { .. })).await;
    service.fate(id, Fate::Unknown).await;
    assert!(service.send(world.reply(lease)).await.unwrap_err().contains("not Chief"));
    // It is taken back by key only, and as a new lease.
    assert_eq!(service.ask(|ticket| Request::BecomeChief { ticket }).await, Ok(Done::BecameChief));
    assert_ne!(service.chief().await, lease);
    service.end().await;
}

#[tokio::test]
async fn a_descriptor_of_someone_else_ends_all_authority_and_stays() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let mut theirs = records::read_descriptor(&world.runtime()).unwrap();
    theirs.lease = Uuid::random();
    records::write_descriptor(&world.runtime(), &theirs).unwrap();
    assert!(service.send(world.reply(lease)).await.is_err());
    service.standing("to notice", |standing| matches!(standing, Standing::Lost { .. })).await;
    assert_eq!(records::read_descriptor(&world.runtime()).unwrap(), theirs);
    assert!(world.inbox().is_empty());
    service.end().await;
}

#[tokio::test]
async fn a_message_that_stays_quarantined_may_have_been_discarded() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let Ok(Done::Sent(id)) = service.send(world.reply(lease)).await else { panic!() };
    headman::disk::inbox::quarantine(&world.runtime().inbox(&world.lead.session), id).unwrap();
    service.fate(id, Fate::Unknown).await;
    service.end().await;
}

#[tokio::test]
async fn our_own_pending_ask_forbids_to_become_chief() {
    let world = World::new().await;
    let mut service = world.service("state");
    let session = service.office.session().clone();
    world.write(&LeadRecord { session: session.clone(), ..world.lead.record.clone() });
    let refused = service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap_err();
    assert!(refused.contains("pending ask"), "{refused}");
    assert!(!world.runtime().lock().exists());
    // Without one, our record goes as we become Chief.
    world.write(&LeadRecord { session: session.clone(), pending_ask: None, ..world.lead.record.clone() });
    service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap();
    assert!(!world.runtime().lead(&session).exists());
    service.end().await;
}

/// Mounting needs root; elsewhere the case is not covered.
#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let inbox = world.runtime().inbox(&world.lead.session);
    std::fs::create_dir_all(inbox.path()).unwrap();
    let Some(mount) = Tmpfs::mount(inbox.path()) else { return };
    // What is left after this is less than a message takes.
    let mut filled = 0;
    while std::fs::write(inbox.path().join(format!("fill-{filled}")), vec![0; 4096]).is_ok() {
        filled += 1;
    }
    let refused = service.send(world.reply(lease)).await.unwrap_err();
    assert!(refused.contains("disk is full"), "{refused}");
    for entry in std::fs::read_dir(inbox.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("fill-"), "left behind: {name}");
    }
    for at in 0..filled {
        std::fs::remove_file(inbox.path().join(format!("fill-{at}"))).unwrap();
    }
    assert!(service.send(world.reply(lease)).await.is_ok());
    service.end().await;
    drop(mount);
}

pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,mode=0700", "none"])
            .arg(at)
            .stderr(std::process::Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}
