//! A Chief and a lead as processes of their own, that can be killed: this test binary, started again.
//! What they are to do comes as lines on standard input, and what came of it goes as lines to standard
//! output. Each is wired as in the real program, but for the screen and for waiting less.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use headman::chief::lease::Place;
use headman::chief::service::{self, Request, Setup};
use headman::chief::staff::{Letter, Office, Reply};
use headman::chief::state_dir::StateDir;
use headman::console::drafts::{self, Draft, DraftKey};
use headman::contract::{NativeId, SessionId, Timestamp, Uuid};
use headman::disk::inbox;
use headman::disk::{AgentDir, DiskThread};
use headman::fact::{self, Done, Fact, FactReceiver, Mail, Outcome, Standing};
use headman::herd::Lead;
use headman::herdr::register::Timing;
use headman::herdr::{Client, PaneContext, Registrar};
use headman::lead::session::SessionFile;
use headman::lead::{self, About, Coordination, Opening};
use headman::source;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use crate::support::DEADLINE;

const SETTING: &str = "HEADMAN_TEST_SETTING";
const CRASH_AT: &str = "HEADMAN_CRASH_AT";
/// What a line begins with that is said by a program and not by the test harness around it.
const SAID: &str = "@ ";

/// Where a program is at home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) socket: PathBuf,
    pub(crate) agent_dir: PathBuf,
    /// A Chief's state directory, or a lead's session file.
    pub(crate) state: PathBuf,
    pub(crate) pane: String,
    pub(crate) tab: String,
    pub(crate) workspace: String,
    /// Whether a Chief has itself listed in Herdr; else somebody else sees to that.
    pub(crate) registers: bool,
    /// A lead's session.
    pub(crate) session: String,
}

/// A program that runs.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Program {
    /// A Chief, which resumes as such if its identity says so. With `crash_at` it ends there.
    pub(crate) fn chief(setting: &Setting, crash_at: Option<&str>) -> Self {
        Self::start("programs::chief_program", setting, &crash(crash_at))
    }

    /// A lead.
    pub(crate) fn lead(setting: &Setting, crash_at: Option<&str>) -> Self {
        Self::start("programs::lead_program", setting, &crash(crash_at))
    }

    /// The program that is the ignored test of that name, with what it is to know and variables.
    pub(crate) fn start(name: &str, setting: &impl Serialize, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(SETTING, serde_json::to_string(setting).unwrap())
            .env("HERDR_AGENT", "pi")
            .env_remove(CRASH_AT)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(said) = line.strip_prefix(SAID)
                    && sender.send(said.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for something. One that was killed does not hear it.
    pub(crate) fn ask(&mut self, what: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{what}");
        }
    }

    /// The next line that begins so, what is said before it passed over; none if the program ended.
    pub(crate) fn hear(&self, beginning: &str) -> Option<String> {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(beginning) => return Some(line),
                Ok(line) if line.starts_with("no ") => panic!("{line}, waiting for {beginning}"),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("nothing of {beginning} was said"),
            }
        }
    }

    /// Asks for something, and waits until it is done; what came of it.
    pub(crate) fn does(&mut self, what: &str) -> Option<String> {
        self.ask(what);
        let verb = what.split(' ').next().unwrap();
        let answer = self.hear(&format!("ok {verb}"))?;
        Some(answer[3 + verb.len()..].trim().to_owned())
    }

    /// The same where it is to be refused: why.
    pub(crate) fn refuses(&mut self, what: &str) -> String {
        self.ask(what);
        let end = Instant::now() + DEADLINE;
        loop {
            let line = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).unwrap();
            assert!(!line.starts_with("ok "), "{line}");
            if let Some(why) = line.strip_prefix("no ") {
                return why.to_owned();
            }
        }
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }

    /// Ends its input, which has it end in order, and waits for that.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    /// The same, if it is to end well.
    pub(crate) fn quit(&mut self) {
        let status = self.ends();
        assert!(status.success(), "{status:?}");
    }

    /// Waits until it ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the program does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Already ended and waited for is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The variable that has a program end at that point.
fn crash(at: Option<&str>) -> Vec<(&str, &str)> {
    at.map(|at| (CRASH_AT, at)).into_iter().collect()
}

pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    // The harness may be in the middle of a line.
    println!("\n{SAID}{what}");
}

/// What a program is to know; none where it runs as a test.
pub(crate) fn setting<T: serde::de::DeserializeOwned>() -> Option<T> {
    Some(serde_json::from_str(&std::env::var(SETTING).ok()?).unwrap())
}

/// The lines of standard input; none at its end.
fn requests() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn run(program: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(program);
}

/// Not a test: the process of a Chief.
#[test]
#[ignore = "a program of other tests"]
fn chief_program() {
    if let Some(setting) = setting() {
        run(ChiefProgram::run(setting));
    }
}

struct ChiefProgram {
    office: Arc<Office>,
    state: StateDir,
    facts: FactReceiver,
    requests: tokio::sync::mpsc::Sender<Request>,
    snapshots: watch::Receiver<Option<Arc<headman::herdr::Snapshot>>>,
    lease: Option<Uuid>,
    mail: Arc<Mail>,
    outcome: Option<Outcome>,
    ticket: u64,
}

impl ChiefProgram {
    async fn run(setting: Setting) {
        let started = Instant::now();
        let state = StateDir::open(&setting.state, setting.socket.as_os_str()).unwrap();
        let session = state.identity().unwrap().session();
        let agent_dir = AgentDir::resolve(Some(setting.agent_dir.as_os_str()), Path::new("/"));
        let runtime = agent_dir.runtime(setting.socket.as_os_str());
        let office = Arc::new(Office::new(agent_dir, runtime, session, started));
        let disk = DiskThread::spawn().unwrap();
        drafts::take_up(&state.drafts());
        let (sender, facts) = fact::channel();
        let (requests, asked) = tokio::sync::mpsc::channel(64);
        let (snapshots, seen) = watch::channel(None);
        let (lease_changed, mail_changed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let client = Client::new(setting.socket.clone());
        let registrar = setting.registers.then(|| {
            let pane = PaneContext {
                pane: setting.pane.clone(),
                tab: setting.tab.clone(),
                workspace: setting.workspace.clone(),
            };
            Arc::new(Registrar::start(client.clone(), pane, Timing::default()))
        });
        tokio::spawn(source::inventory::run(
            client.clone(),
            Arc::clone(&office),
            disk.clone(),
            sender.clone(),
            snapshots,
        ));
        tokio::spawn(source::records::run(
            Arc::clone(&office),
            source::watch::Noticing::new(true),
            disk.clone(),
            sender.clone(),
            Arc::clone(&lease_changed),
            Arc::clone(&mail_changed),
        ));
        let (mut changes, told) = (seen.clone(), Arc::clone(&mail_changed));
        tokio::spawn(async move {
            // Without waiting for the next look.
            while changes.changed().await.is_ok() {
                told.notify_one();
            }
        });
        let setup = Setup {
            office: Arc::clone(&office),
            disk,
            state: state.clone(),
            keep_days: None,
            herdr: client,
            place: Place {
                pane: setting.pane.as_str().into(),
                tab: setting.tab.as_str().into(),
                workspace: setting.workspace.as_str().into(),
            },
            registrar,
            facts: sender,
            lease_changed,
            mail_changed,
            snapshots: seen.clone(),
        };
        let service = tokio::spawn(async move {
            let mut asked = asked;
            service::run(setup, &mut asked, tokio::sync::mpsc::channel(1).1).await;
        });
        let program = Self {
            office,
            state,
            facts,
            requests,
            snapshots: seen,
            lease: None,
            mail: Arc::default(),
            outcome: None,
            ticket: 0,
        };
        program.serve().await;
        service.await.unwrap();
    }

    async fn serve(mut self) {
        let mut asked = requests();
        loop {
            tokio::select! {
                () = self.facts.ready() => self.fold(),
                asked = asked.recv() => match asked {
                    None => break,
                    Some(asked) => {
                        let (verb, rest) = asked.split_once(' ').unwrap_or((&asked, ""));
                        match self.perform(verb, rest).await {
                            Ok(done) => say(format_args!("ok {verb} {done}")),
                            Err(why) => say(format_args!("no {verb} {why}")),
                        }
                    }
                },
            }
        }
        let (done, ended) = tokio::sync::oneshot::channel();
        self.requests.send(Request::Shutdown(done)).await.unwrap();
        ended.await.unwrap();
    }

    fn fold(&mut self) {
        for fact in self.facts.take() {
            match fact {
                Fact::Standing(standing) => {
                    self.lease = standing.lease();
                    match standing {
                        Standing::Chief { lease, .. } => say(format_args!("chief {lease}")),
                        other => say(format_args!("standing {other:?}")),
                    }
                }
                Fact::Mail(mail) => self.mail = mail,
                Fact::Outcome(outcome) => self.outcome = Some(outcome),
                _ => {}
            }
        }
    }

    async fn perform(&mut self, verb: &str, rest: &str) -> Result<String, String> {
        match verb {
            "become" => self.outcome(|ticket| Request::BecomeChief { ticket }).await,
            "leave" => self.outcome(|ticket| Request::Leave { ticket }).await,
            // Until that many were received.
            "mail" => {
                let wanted: usize = rest.parse().unwrap();
                self.until(|it| (it.mail.total >= wanted).then_some(())).await;
                Ok(format!("{} {}", self.mail.total, self.mail.unread))
            }
            "draft" => {
                drafts::save(&self.state.drafts(), &self.draft(rest)).unwrap();
                Ok(String::new())
            }
            "undraft" => {
                drafts::remove(&self.state.drafts(), &self.draft(rest).key()).unwrap();
                Ok(String::new())
            }
            "quarantine" => {
                let claim = self.office.lease().as_ref().unwrap().own_claim();
                let inbox = self.office.runtime().inbox(self.office.session()).worked_on_by(claim);
                inbox::quarantine(&inbox, Uuid::random()).unwrap();
                Ok(String::new())
            }
            "message" => {
                let (lease, lead) = self.lead(|_| true).await;
                let letter = Letter {
                    lead: lead.session,
                    instance: lead.instance,
                    lease,
                    text: rest.into(),
                    files: Vec::new(),
                    id: None,
                };
                self.outcome(|ticket| Request::Message { ticket, letter }).await
            }
            "reply" => {
                let (lease, lead) = self.lead(Lead::needs_you).await;
                let ask = lead.pending_ask.unwrap();
                let reply = Reply {
                    lead: lead.session,
                    instance: lead.instance,
                    ask: ask.ask,
                    question: ask.question,
                    lease,
                    text: rest.into(),
                    files: Vec::new(),
                    id: None,
                };
                self.outcome(|ticket| Request::Reply { ticket, reply }).await
            }
            // To an ask that may be over.
            "answer" => {
                let (ask, text) = rest.split_once(' ').unwrap();
                let (lease, lead) = self.lead(|_| true).await;
                let reply = Reply {
                    lead: lead.session,
                    instance: lead.instance,
                    ask: Uuid::parse(ask).unwrap(),
                    question: lead.pending_ask.map_or_else(|| "?".into(), |ask| ask.question),
                    lease,
                    text: text.into(),
                    files: Vec::new(),
                    id: None,
                };
                self.outcome(|ticket| Request::Reply { ticket, reply }).await
            }
            // Until our inbox is empty and no message of ours may still be delivered.
            "settled" => {
                let inbox = self.office.runtime().inbox(self.office.session());
                self.until(|it| {
                    let journal = it.office.journal();
                    let open = journal.as_ref()?.index().sent().any(|entry| entry.is_open());
                    (!open && inbox::list(&inbox).unwrap().is_empty()).then_some(())
                })
                .await;
                Ok(String::new())
            }
            other => Err(format!("there is no {other}")),
        }
    }

    fn draft(&self, text: &str) -> Draft {
        Draft {
            session: SessionId::new(LEAD).unwrap(),
            ask: None,
            instance: None,
            lease: self.lease,
            text: text.to_owned(),
            at: self.office.now().wall,
        }
    }

    /// Folds facts in until there is something.
    async fn until<T>(&mut self, mut wanted: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            self.fold();
            if let Some(found) = wanted(self) {
                return found;
            }
            let _ = tokio::time::timeout(Duration::from_millis(5), self.facts.ready()).await;
        }
    }

    /// The lease and a lead, as soon as there are both.
    async fn lead(&mut self, wanted: impl Fn(&Lead) -> bool) -> (Uuid, Lead) {
        self.until(|it| {
            let snapshot = it.snapshots.borrow().clone()?;
            let roster = it.office.roster(&snapshot).unwrap();
            Some((it.lease?, roster.leads.into_iter().find(&wanted)?))
        })
        .await
    }

    async fn outcome(&mut self, request: impl FnOnce(u64) -> Request) -> Result<String, String> {
        self.ticket += 1;
        let ticket = self.ticket;
        self.requests.send(request(ticket)).await.unwrap();
        let outcome = self.until(|it| it.outcome.clone().filter(|it| it.ticket == ticket)).await;
        outcome.result.map(|done| match done {
            Done::Sent(id) => id.to_string(),
            _ => String::new(),
        })
    }
}

/// The session of the lead that drafts are for.
pub(crate) const LEAD: &str = "01a22b77-339a-7241-9ef5-b7ff2b23890b";

/// The key of those drafts.
pub(crate) fn draft_key() -> DraftKey {
    DraftKey { session: SessionId::new(LEAD).unwrap(), ask: None }
}

/// Opens a lead's part, with what its session file remembers. It is begun if there is none.
pub(crate) fn open_lead(setting: &Setting) -> Coordination {
    let session = SessionId::new(setting.session.as_str()).unwrap();
    if !setting.state.exists() {
        SessionFile::create(&setting.state, &session, &"/tmp".into(), Timestamp::from_millis(1)).unwrap();
    }
    let id = |text: &str| NativeId::new(text).unwrap();
    let opening = Opening {
        agent_dir: AgentDir::resolve(Some(setting.agent_dir.as_os_str()), Path::new("/")),
        socket: OsString::from(&setting.socket),
        place: lead::Place {
            pane: id(&setting.pane),
            tab: id(&setting.tab),
            workspace: id(&setting.workspace),
        },
        about: About::default(),
    };
    Coordination::open(opening, SessionFile::new(&setting.state, session)).unwrap()
}

/// Not a test: the process of a lead, which looks into its inbox all the time.
#[test]
#[ignore = "a program of other tests"]
fn lead_program() {
    let Some(setting) = setting::<Setting>() else { return };
    run(async {
        let mut lead = open_lead(&setting);
        say(format_args!("instance {}", lead.instance()));
        let mut asked = requests();
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                _ = look.tick() => {
                    let drained = lead.drain(|_| Ok(())).await.unwrap();
                    for received in drained.received {
                        say(format_args!("received {}", received.message.text.to_str_lossy()));
                    }
                    for error in drained.errors {
                        say(format_args!("error {error}"));
                    }
                }
                asked = asked.recv() => match asked {
                    None => break,
                    Some(asked) => {
                        let (verb, rest) = asked.split_once(' ').unwrap_or((&asked, ""));
                        let done = match verb {
                            "ask" => lead.ask(rest, rest).await.map(|asked| {
                                format!("{} {}", asked.ask, asked.published.is_ok())
                            }).map_err(|error| error.to_string()),
                            "tell" => lead.tell(rest).await.map(|message| message.id.to_string()).map_err(|error| error.to_string()),
                            other => Err(format!("there is no {other}")),
                        };
                        match done {
                            Ok(done) => say(format_args!("ok {verb} {done}")),
                            Err(why) => say(format_args!("no {verb} {why}")),
                        }
                    }
                },
            }
        }
        lead.close().unwrap();
    });
}
