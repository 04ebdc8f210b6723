//! The demo's herd: real processes, on a simulated Herdr, in a directory of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use headman::chief::staff::Office;
use headman::chief::state_dir::StateDir;
use headman::contract::role::Role;
use headman::contract::{Claim, Descriptor, Kind, Message, Pid, SessionId, Timestamp, Uuid};
use headman::demo::{DemoError, Options, World};
use headman::disk::{AgentDir, ProcessLock, inbox, records};
use headman::herd::{Reason, Roster};
use headman::herdr::client::AgentReport;
use headman::herdr::{Client, Status};

use crate::support::{DEADLINE, Program, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headman");

/// Short, since sockets are made in it.
fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("hm-").tempdir_in("/tmp").unwrap()
}

fn options(directory: &tempfile::TempDir) -> Options {
    Options {
        dir: Some(directory.path().join("d")),
        program: Some(PROGRAM.into()),
        speed: 0.0,
        ..Options::default()
    }
}

/// What a Chief sees of a herd, from outside.
struct View {
    client: Client,
    office: Office,
}

impl View {
    fn new(socket: &Path, agent_dir: &AgentDir, chief: &SessionId) -> Self {
        let runtime = agent_dir.runtime(socket.as_os_str());
        Self {
            client: Client::new(socket.to_owned()).with_timeout(Duration::from_secs(10)),
            office: Office::new(agent_dir.clone(), runtime, chief.clone(), Instant::now()),
        }
    }

    fn of(world: &World) -> Self {
        Self::new(world.server().socket(), world.agent_dir(), &chief())
    }

    async fn roster(&self) -> Roster {
        self.office.roster(&self.client.snapshot().await.unwrap()).unwrap()
    }

    /// Waits until so many are projected as leads.
    async fn complete(&self, leads: usize) -> Roster {
        until("all leads are there", async || self.roster().await.leads.len() == leads).await;
        self.roster().await
    }

    /// The lead processes, by pane.
    async fn processes(&self) -> BTreeMap<String, u32> {
        let mut processes = BTreeMap::new();
        for lead in self.roster().await.leads {
            let pane = lead.pane.as_untrusted().to_str_lossy().into_owned();
            let info = self.client.pane_process_info(&pane).await.unwrap();
            let pid = info.foreground_processes[0].pid.unwrap();
            processes.insert(pane, u32::try_from(pid).unwrap());
        }
        processes
    }
}

fn chief() -> SessionId {
    SessionId::new("0a8b4f0e-5d5a-4c63-9a55-1d6a0f6e2b22").unwrap()
}

fn names(roster: &Roster) -> Vec<String> {
    roster.leads.iter().map(|lead| lead.display_name.to_str_lossy().into_owned()).collect()
}

/// Every file below a directory with what is in it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            all.insert(path, bytes);
        }
    }
    all
}

/// Whether a process runs; one that ended and was not waited for does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|it| it != "Z")
}

/// That nothing changes shows in nothing but time.
async fn nothing_changes(what: &str, directory: &Path) {
    let before = contents(directory);
    let end = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < end {
        assert!(contents(directory) == before, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seven_leads_are_projected_one_asks_and_at_speed_0_nothing_else_happens() {
    let directory = directory();
    let world = World::start(&options(&directory)).await.unwrap();
    let view = View::of(&world);
    let started = Instant::now();
    view.complete(7).await;
    until("one asks", async || view.roster().await.leads.iter().any(|lead| lead.needs_you())).await;
    assert!(started.elapsed() < Duration::from_secs(10), "that took {:?}", started.elapsed());
    until("all agents are shown", async || {
        let roster = view.roster().await;
        roster.leads.iter().map(|lead| lead.counts.active + lead.counts.blocked).sum::<usize>() == 15
    })
    .await;
    let roster = view.roster().await;
    // The live agents, and nothing else.
    assert_eq!(roster.left_out.len(), 15, "{:?}", roster.left_out);
    assert!(roster.left_out.iter().all(|left| left.reason == Reason::Managed), "{:?}", roster.left_out);
    let counts: Vec<_> = (roster.leads.iter())
        .map(|lead| (lead.counts.active, lead.counts.blocked, lead.counts.total))
        .collect();
    assert_eq!(counts, [(2, 1, 4), (2, 0, 2), (1, 1, 2), (3, 1, 5), (1, 0, 1), (2, 1, 3), (0, 0, 1)]);
    let states: BTreeSet<_> =
        roster.leads.iter().flat_map(|lead| &lead.agents).map(|agent| agent.state.as_str()).collect();
    assert_eq!(states, BTreeSet::from(["blocked", "lost", "settling", "working"]));
    assert_eq!(
        // Without the branches, which only a poll of the work trees tells.
        names(&roster),
        [
            "data-pipeline/backfill",
            "docs-site/übersetzung-翻訳",
            "infra/tf-upgrade",
            "orders-api/auth-rewrite",
            "orders-api/flaky-tests",
            "storefront/checkout",
            "storefront/offline-sync",
        ]
    );
    let entries = view.client.worktree_list("w2").await.unwrap();
    let branches: Vec<_> = entries.into_iter().filter_map(|entry| entry.branch).collect();
    assert_eq!(branches, ["main", "auth-rewrite", "flaky-replay"], "two leads share a repository");
    let states: BTreeSet<_> = roster.leads.iter().map(|lead| lead.state.as_str()).collect();
    assert_eq!(states, BTreeSet::from(["working", "idle"]));
    let ask = roster.leads.iter().find_map(|lead| lead.pending_ask.clone()).unwrap();

    // All sessions can be read and have something to show.
    for lead in &roster.leads {
        let file = PathBuf::from(lead.session_file.as_ref().unwrap().to_str_lossy().into_owned());
        let header = headman::pi::session::read_header(&file).unwrap();
        assert_eq!(header.session, lead.session);
        assert!(header.name.is_some());
        assert!(std::fs::read_to_string(&file).unwrap().lines().count() > 8);
    }
    let screen = view.client.pane_visible("w2:p1").await.unwrap().text.to_str_lossy().into_owned();
    assert!(screen.contains("Asking the Chief: Do we reject refresh tokens"), "{screen}");

    // The console will be Chief at once.
    let state =
        StateDir::open(&world.directory().join("state"), world.server().socket().as_os_str()).unwrap();
    assert_eq!(state.identity().unwrap().role, Role::Chief);

    nothing_changes("a script that stands still wrote something", &world.directory().join("agent")).await;
    assert_eq!(view.roster().await, roster);

    // Whoever holds the lease on the console's pane is what Herdr sees there, and may reply.
    let console = Program::hinted();
    let runtime = world.agent_dir().runtime(world.server().socket().as_os_str());
    let claim = Claim { pid: Pid::from_number(f64::from(console.pid())).unwrap(), id: Uuid::random() };
    let lock = ProcessLock::acquire(&runtime.lock(), claim, &|_| false).unwrap();
    let place = world.console().clone();
    let descriptor = Descriptor {
        lease: Uuid::random(),
        claim,
        session: chief(),
        pane: place.pane.as_str().into(),
        tab: Some(place.tab.as_str().into()),
        workspace: place.workspace.as_str().into(),
        created_at: Timestamp::from_millis(1),
    };
    records::write_descriptor(&runtime, &descriptor).unwrap();
    let report = AgentReport {
        pane: &place.pane,
        source: "herdr:pi",
        agent: "pi",
        state: Status::Idle,
        seq: 1,
        session: Some("0a8b4f0e-5d5a-4c63-9a55-1d6a0f6e2b22"),
    };
    view.client.report_agent(report).await.unwrap();
    let lead = roster.leads.iter().find(|lead| lead.needs_you()).unwrap().session.clone();
    let reply = Message {
        id: Uuid::random(),
        lease: descriptor.lease,
        kind: Kind::ChiefReply,
        from: chief(),
        to: lead.clone(),
        lead: lead.clone(),
        ask: Some(ask.ask),
        text: "Rejected.".into(),
        created_at: Timestamp::from_millis(2),
    };
    inbox::publish(world.agent_dir().path(), &runtime.inbox(&lead), &reply).unwrap();
    // With the marker and the lock of its removal.
    let is_empty = || std::fs::read_dir(runtime.inbox(&lead).path()).unwrap().next().is_none();
    until("the reply is taken", async || is_empty()).await;
    assert!(!view.roster().await.leads.iter().any(|lead| lead.needs_you()));
    nothing_changes("it went on after the reply", &world.directory().join("agent")).await;

    drop(lock);
    let pids = view.processes().await;
    let home = world.directory().to_owned();
    world.end().await;
    assert!(pids.values().all(|pid| !runs(*pid)));
    assert!(!home.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_at_work_grows_its_sessions_and_the_one_that_dies_comes_back_as_another_instance() {
    let directory = directory();
    let world = World::start(&Options { speed: 40.0, ..options(&directory) }).await.unwrap();
    let view = View::of(&world);
    let all = view.complete(7).await;
    let dying = all.leads.iter().find(|lead| lead.name == "backfill").unwrap();
    let pane = dying.pane.as_untrusted().to_str_lossy().into_owned();
    let (session, instance) = (dying.session.clone(), dying.instance);
    let pid = view.processes().await.get(&pane).copied();
    until("it came back", async || {
        view.roster().await.lead(&session).is_some_and(|lead| lead.instance != instance)
    })
    .await;
    assert_ne!(view.processes().await.get(&pane).copied(), pid);
    // Its ask outlived it.
    assert!(view.roster().await.lead(&session).unwrap().needs_you());
    // All wait for somebody in the end: everyone asks.
    until("all ask", async || {
        let roster = view.roster().await;
        roster.leads.len() == 7 && roster.leads.iter().all(|lead| lead.needs_you())
    })
    .await;
    let roster = view.roster().await;
    let asks: Vec<_> = roster.leads.iter().filter_map(|lead| lead.pending_ask.as_ref()).collect();
    assert!(asks.iter().any(|ask| ask.question.to_str_lossy().lines().count() > 3));
    assert!(
        asks.iter()
            .any(|ask| ask.text.to_str_lossy().starts_with("<file name=\"") && ask.text != ask.question)
    );
    assert!(asks.iter().any(|ask| !ask.question.to_str_lossy().is_ascii()));
    assert!(roster.leads.iter().any(|lead| lead.state.as_str() == "blocked"));
    assert!(world.trouble().borrow().is_empty(), "{:?}", world.trouble().borrow());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_go_on_from_state_to_state_and_every_record_of_theirs_is_valid() {
    let directory = directory();
    let world = World::start(&Options { speed: 60.0, ..options(&directory) }).await.unwrap();
    let view = View::of(&world);
    let seen = std::sync::Mutex::new(BTreeSet::new());
    let has = |label: &str, state: &'static str| seen.lock().unwrap().contains(&(label.to_owned(), state));
    until("an agent works, asks and finishes", async || {
        let roster = view.roster().await;
        assert!(!roster.left_out.iter().any(|left| left.reason.name() == "broken_mailbox"));
        for agent in roster.leads.iter().flat_map(|lead| &lead.agents) {
            seen.lock().unwrap().insert((agent.label.to_str_lossy().into_owned(), agent.state.as_str()));
        }
        ["working", "blocked", "settling"].iter().all(|state| has("scout", state))
    })
    .await;
    // One that waits for its own agents.
    assert!(has("reader", "blocked"), "{seen:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_leads_several_share_a_process() {
    let directory = directory();
    let world = World::start(&Options { leads: 40, ..options(&directory) }).await.unwrap();
    let view = View::of(&world);
    let roster = view.complete(40).await;
    assert!(roster.left_out.iter().all(|left| left.reason == Reason::Managed), "{:?}", roster.left_out);
    assert_eq!(names(&roster).into_iter().collect::<BTreeSet<_>>().len(), 40);
    let processes: BTreeSet<u32> = view.processes().await.into_values().collect();
    assert!((8..=32).contains(&processes.len()), "{}", processes.len());
    world.end().await;
    assert!(processes.iter().all(|pid| !runs(*pid)));
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_made() {
    let directory = directory();
    for wrong in [
        Options { leads: 0, ..options(&directory) },
        Options { leads: 401, ..options(&directory) },
        Options { speed: -1.0, ..options(&directory) },
        Options { speed: f64::NAN, ..options(&directory) },
    ] {
        assert!(matches!(World::start(&wrong).await, Err(DemoError::Option(_))));
    }
    let long = Options { dir: Some(directory.path().join("x".repeat(99))), ..options(&directory) };
    assert!(matches!(World::start(&long).await, Err(DemoError::Home(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_that_never_start_are_told_of_and_given_up() {
    let directory = directory();
    // It ends at once, and says nothing.
    let silent = Options { leads: 1, program: Some("/bin/false".into()), ..options(&directory) };
    let world = World::start(&silent).await.unwrap();
    let mut trouble = world.trouble();
    let told =
        tokio::time::timeout(DEADLINE, trouble.wait_for(|all| !all.is_empty())).await.unwrap().unwrap();
    assert!(told[0].contains("right after its start"), "{told:?}");
    drop(told);
    world.end().await;
    let missing = Options { leads: 1, program: Some("/nonexistent".into()), ..options(&directory) };
    let world = World::start(&missing).await.unwrap();
    let mut trouble = world.trouble();
    let told =
        tokio::time::timeout(DEADLINE, trouble.wait_for(|all| !all.is_empty())).await.unwrap().unwrap();
    assert!(told[0].contains("can't start") && told[0].contains("/nonexistent"), "{told:?}");
    drop(told);
    world.end().await;
}

/// `headman demo` itself, which ends with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // Already ended and waited for is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Demo {
    /// Starts it with its temporary directories in `base`.
    fn start(base: &Path, arguments: &[&str]) -> Self {
        let child = Command::new(PROGRAM)
            .arg("demo")
            .args(arguments)
            .env("TMPDIR", base)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines().map(Result::unwrap)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    async fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the demo does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The value in a line `export NAME='value'`.
fn exported(line: &str) -> (String, String) {
    let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
    (name.to_owned(), value.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap().to_owned())
}

fn homes(base: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_killed_takes_its_leads_along_and_is_swept_by_the_next() {
    let base = directory();
    let mut demo = Demo::start(base.path(), &["--serve", "--speed", "5"]);
    let mut told = String::new();
    BufReader::new(demo.0.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("run the lines above in another shell"), "{told}");
    let environment: BTreeMap<_, _> = demo.lines().take(7).map(|line| exported(&line)).collect();
    let names: Vec<_> = environment.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "HEADMAN_STATE_DIR",
            "HERDR_ENV",
            "HERDR_PANE_ID",
            "HERDR_SOCKET_PATH",
            "HERDR_TAB_ID",
            "HERDR_WORKSPACE_ID",
            "PI_CODING_AGENT_DIR"
        ]
    );
    let agent_dir = AgentDir::resolve(Some(environment["PI_CODING_AGENT_DIR"].as_ref()), base.path());
    let view = View::new(Path::new(&environment["HERDR_SOCKET_PATH"]), &agent_dir, &chief());
    view.complete(7).await;
    let pids = view.processes().await;
    assert_eq!(pids.values().collect::<BTreeSet<_>>().len(), 7);
    assert!(pids.values().all(|pid| runs(*pid)));
    let left = homes(base.path());
    assert_eq!(left.len(), 1);

    demo.0.kill().unwrap();
    demo.0.wait().unwrap();
    until("every lead has ended", async || !pids.values().any(|pid| runs(*pid))).await;
    assert!(left[0].exists(), "nobody was there to remove it");

    let mut next = Demo::start(base.path(), &["--leads", "1", "--", "true"]);
    assert!(next.ended().await.success());
    assert_eq!(homes(base.path()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_served_demo_ends_in_order_when_asked() {
    let base = directory();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut demo = Demo::start(base.path(), &["--serve", "--leads", "2"]);
        let environment: BTreeMap<_, _> = demo.lines().take(7).map(|line| exported(&line)).collect();
        let agent_dir = AgentDir::resolve(Some(environment["PI_CODING_AGENT_DIR"].as_ref()), base.path());
        let view = View::new(Path::new(&environment["HERDR_SOCKET_PATH"]), &agent_dir, &chief());
        view.complete(2).await;
        let pids = view.processes().await;
        demo.signal(signal);
        assert_eq!(demo.ended().await.code(), Some(0));
        assert!(!pids.values().any(|pid| runs(*pid)));
        assert!(homes(base.path()).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_gets_the_herds_environment_and_gives_its_exit_code() {
    let base = directory();
    let mut child = Command::new(PROGRAM)
        .args(["demo", "--leads", "1", "--", "sh", "-c", "env; exit 7"])
        .env("TMPDIR", base.path())
        .env("HOME", "/home/somebody")
        .env("HERDR_AGENT", "pi")
        .env("HERDR_PANE_ID", "w9:p9")
        .env("PI_CODING_AGENT_SESSION_DIR", "/srv/sessions")
        .env("XDG_STATE_HOME", "/srv/state")
        .env("TMUX", "/tmp/tmux-0/default,1,0")
        .env("SOME_CONFIG", "/home/somebody/.config/some")
        .env("KEPT", "this")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let found: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let home = found["HEADMAN_STATE_DIR"].strip_suffix("/state").unwrap();
    assert!(home.starts_with(base.path().to_str().unwrap()));
    assert_eq!(found["PI_CODING_AGENT_DIR"], format!("{home}/agent"));
    assert_eq!(found["HERDR_SOCKET_PATH"], format!("{home}/herdr/sessions/demo/herdr.sock"));
    assert_eq!(found["HOME"], format!("{home}/home"));
    assert_eq!((found["HERDR_ENV"], found["HERDR_PANE_ID"], found["KEPT"]), ("1", "w1:p1", "this"));
    for gone in ["HERDR_AGENT", "PI_CODING_AGENT_SESSION_DIR", "XDG_STATE_HOME", "TMUX", "SOME_CONFIG"] {
        assert!(!found.contains_key(gone), "{gone}");
    }
    assert!(homes(base.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_asks_the_demo_to_end_is_passed_on_to_the_command() {
    let base = directory();
    let wait = "trap 'exit 9' TERM; trap 'exit 8' HUP; echo ready; while :; do sleep 0.05; done";
    for (signal, code) in [(rustix::process::Signal::TERM, 9), (rustix::process::Signal::HUP, 8)] {
        let mut demo = Demo::start(base.path(), &["--leads", "1", "--", "sh", "-c", wait]);
        assert_eq!(demo.lines().next().unwrap(), "ready");
        demo.signal(signal);
        assert_eq!(demo.ended().await.code(), Some(code));
        assert!(homes(base.path()).is_empty());
    }
    let mut demo = Demo::start(base.path(), &["--leads", "1", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(demo.ended().await.code(), Some(137));
    let mut demo = Demo::start(base.path(), &["--leads", "1", "--", "/nonexistent/program"]);
    let status = demo.ended().await;
    assert_eq!((status.code(), status.signal()), (Some(2), None));
    let mut said = String::new();
    demo.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("/nonexistent/program") && said.contains("Check its name"), "{said}");
    assert!(homes(base.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_starts_once_all_leads_are_there() {
    let base = directory();
    let listed = Command::new(PROGRAM)
        .args(["demo", "--speed", "0", "--", PROGRAM, "list", "--json"])
        .env("TMPDIR", base.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(listed.status.code(), Some(0), "{}", String::from_utf8_lossy(&listed.stderr));
    let list: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(list["leads"].as_array().unwrap().len(), 7, "{list}");
    assert!(homes(base.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_takes_nothing_of_a_chief_that_herdr_has_never_listed() {
    let directory = directory();
    let world = World::start(&options(&directory)).await.unwrap();
    let view = View::of(&world);
    view.complete(7).await;
    until("one asks", async || view.roster().await.leads.iter().any(|lead| lead.needs_you())).await;
    let roster = view.roster().await;
    let lead = roster.leads.iter().find(|lead| lead.needs_you()).unwrap();
    let session = lead.session.as_untrusted().to_str_lossy().into_owned();
    let ask = lead.pending_ask.as_ref().unwrap().ask.to_string();
    let inbox_dir = world.agent_dir().runtime(world.server().socket().as_os_str()).inbox(&lead.session);
    // Outside of any pane, with a state of its own.
    let reply = async |wait: &str| {
        tokio::process::Command::new(PROGRAM)
            .args(["reply", &session, &ask[..8], "yes", "--take-lease", "--wait", wait])
            .env_clear()
            .env("HOME", directory.path())
            .env("HERDR_SOCKET_PATH", world.server().socket())
            .env("PI_CODING_AGENT_DIR", world.agent_dir().path())
            .output()
            .await
            .unwrap()
    };
    // The lead looks into its inbox twice a second.
    let ended = reply("3s").await;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr).into_owned());
    assert_eq!(ended.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains(" queued: ") && stdout.contains("seen no Chief listed in Herdr"), "{stdout}");
    assert!(!stderr.contains("voids"), "{stderr}");
    assert_eq!(inbox::list(&inbox_dir).unwrap().len(), 1, "it stays");
    assert!(view.roster().await.lead(&lead.session).unwrap().needs_you(), "and the lead still asks");
    // Each lease makes void what stands under the one before it, and no more.
    for _ in 0..2 {
        let stderr = String::from_utf8_lossy(&reply("0").await.stderr).into_owned();
        assert_eq!(stderr.matches("voids message").count(), 1, "{stderr}");
    }
    assert_eq!(inbox::list(&inbox_dir).unwrap().len(), 3);
    world.end().await;
}
