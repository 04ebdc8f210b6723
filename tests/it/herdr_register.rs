//! Being listed as the Chief, with real processes in the panes.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use headman::contract::{SessionId, Untrusted};
use headman::demo::server::{Fault, Server};
use headman::herdr::api::Agent;
use headman::herdr::reexec::{self, Decision, GoOn, Stage};
use headman::herdr::register::Timing;
use headman::herdr::{Client, PaneContext, Registrar, Registration, Status};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{DEADLINE, Herdr, Program, until};

const SESSION: &str = "5f0c2f0e-9f3e-4a53-8d55-0d6a0f6e2b11";

/// Everything a little faster than at work.
fn quick() -> Timing {
    Timing {
        confirm_for: Duration::from_millis(600),
        confirm_every: Duration::from_millis(20),
        check_every: Duration::from_millis(100),
        ..Timing::default()
    }
}

/// Looks by itself only when registering: what happens later must have another cause.
fn blind() -> Timing {
    Timing { check_every: Duration::from_secs(3600), ..quick() }
}

struct Setting {
    herdr: Herdr,
    pane: PaneContext,
    client: Client,
}

impl Setting {
    async fn new() -> Self {
        let herdr = Herdr::start().await;
        let created = herdr.server.create_workspace("ops", "/tmp", None, true);
        let pane = PaneContext { pane: created.pane, tab: created.tab, workspace: created.workspace };
        let client = herdr.client();
        Self { herdr, pane, client }
    }

    fn server(&self) -> &Server {
        &self.herdr.server
    }

    fn attach(&self, program: &Program) {
        self.server().attach(&self.pane.pane, program.pid(), true);
    }

    fn registrar(&self, timing: Timing) -> Registrar {
        let registrar = Registrar::start(self.client.clone(), self.pane.clone(), timing);
        registrar.register(SessionId::new(SESSION).unwrap(), "headman");
        registrar
    }

    async fn agents(&self) -> Vec<Agent> {
        self.client.agent_list().await.unwrap().0
    }

    /// Our pane's entry, if it names our session.
    async fn entry(&self) -> Option<Agent> {
        self.agents().await.into_iter().find(|agent| {
            agent.pane_id == *self.pane.pane
                && agent.agent_session.as_ref().is_some_and(|session| session.value == SESSION)
        })
    }

    /// Drops the session from the list, as a report that does not repeat it does.
    async fn drop_session(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let report = json!({"pane_id": self.pane.pane, "source": "herdr:pi", "agent": "pi", "state": "idle",
                            "seq": u64::try_from(now.as_micros()).unwrap()});
        self.client.request("pane.report_agent", report).await.unwrap();
    }
}

/// Waits for a status, telling the last one if it never comes.
async fn reaches(registrar: &Registrar, what: &str, fits: impl Fn(&Registration) -> bool) -> Registration {
    let mut status = registrar.status();
    match tokio::time::timeout(DEADLINE, status.wait_for(|now| fits(now))).await {
        Ok(now) => now.unwrap().clone(),
        Err(_) => panic!("not {what}: {:?}", *registrar.status().borrow()),
    }
}

async fn registered(registrar: &Registrar) {
    reaches(registrar, "registered", Registration::can_write_up).await;
}

#[tokio::test]
async fn a_hinted_program_is_listed_and_its_state_followed() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    let entry = setting.entry().await.unwrap();
    let session = entry.agent_session.unwrap();
    assert_eq!((session.source, session.agent), (Untrusted::from("herdr:pi"), Untrusted::from("pi")));
    assert_eq!(session.kind, "id");
    assert_eq!(entry.title.unwrap(), "chief");
    assert_eq!(entry.tokens[&Untrusted::from("pi_herdsman_role")], "chief");
    assert_eq!(entry.tokens[&Untrusted::from("pi_herdsman_name")], "headman");
    for (waiting, status) in [(true, Status::Blocked), (false, Status::Idle), (true, Status::Blocked)] {
        registrar.set_waiting(waiting);
        until("the state is followed", async || setting.entry().await.unwrap().agent_status == status).await;
    }
    // Away from the operator's eyes idle reads as done, and is as good.
    let other = setting.server().create_workspace("other", "/tmp", None, true);
    registrar.set_waiting(false);
    until("done", async || setting.entry().await.unwrap().agent_status == Status::Done).await;
    setting.server().focus(&other.pane);
    assert!(registrar.status().borrow().can_write_up());
    assert_eq!(registrar.status().borrow().to_string(), "leads can write up");
}

#[tokio::test]
async fn a_program_named_pi_is_listed_too() {
    let setting = Setting::new().await;
    let program = Program::named();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    assert!(setting.entry().await.is_some());
}

#[tokio::test]
async fn every_report_repeats_the_session_and_raises_the_sequence() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    for waiting in [true, false, true] {
        registrar.set_waiting(waiting);
        let status = if waiting { Status::Blocked } else { Status::Idle };
        until("followed", async || setting.entry().await.unwrap().agent_status == status).await;
    }
    registrar.release().await.unwrap();
    let calls = setting.server().calls();
    let reports: Vec<_> = calls.iter().filter(|call| call.method == "pane.report_agent").collect();
    assert!(reports.len() >= 4, "{reports:?}");
    assert!(reports.iter().all(|call| call.params["agent_session_id"] == SESSION));
    let started = calls.iter().find(|call| call.method == "pane.report_agent_session").unwrap();
    assert_eq!(started.params["session_start_source"], "new");
    assert_eq!(started.params["agent_session_id"], SESSION);
    let seqs: Vec<u64> = calls.iter().filter_map(|call| call.params["seq"].as_u64()).collect();
    assert!(seqs.len() >= 7 && seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let year_2020 = 1_577_836_800_000_000;
    assert!(seqs[0] > year_2020, "microseconds since the epoch");
}

#[tokio::test]
async fn a_killed_program_is_gone_from_the_list_and_the_status_says_so() {
    let setting = Setting::new().await;
    let mut program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    program.kill();
    let killed = std::time::Instant::now();
    until("gone", async || setting.agents().await.is_empty()).await;
    assert!(killed.elapsed() < Duration::from_secs(2));
    let status = reaches(&registrar, "not listed", |now| matches!(now, Registration::NotListed { .. })).await;
    assert_eq!(status.to_string(), "leads can't write up: Herdr does not take this pane's program for Pi");
}

#[tokio::test]
async fn without_the_hint_ok_means_nothing() {
    let setting = Setting::new().await;
    let program = Program::plain();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    reaches(&registrar, "not listed", |now| matches!(now, Registration::NotListed { .. })).await;
    assert_eq!(setting.agents().await, []);
    assert!(setting.server().calls().iter().any(|call| call.method == "pane.report_agent"));
    // As soon as there is one, it is used.
    let hinted = Program::hinted();
    setting.attach(&hinted);
    registered(&registrar).await;
}

#[tokio::test]
async fn a_release_leaves_nothing_behind_and_happens_once() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    setting.server().forget_calls();
    registrar.release().await.unwrap();
    let [entry] = setting.agents().await.try_into().unwrap();
    assert_eq!((entry.title, entry.agent_session), (None, None));
    assert!(entry.tokens.is_empty());
    let told = |calls: &[headman::demo::server::Call]| -> Vec<String> {
        calls.iter().map(|call| call.method.clone()).filter(|method| method.starts_with("pane.")).collect()
    };
    assert_eq!(told(&setting.server().calls()), ["pane.report_metadata", "pane.clear_agent_authority"]);
    registrar.release().await.unwrap();
    registrar.releaser().release_blocking().unwrap();
    assert_eq!(told(&setting.server().calls()).len(), 2);
    assert!(matches!(&*registrar.status().borrow(), Registration::NotTried { .. }));
    // It may be Chief again.
    registrar.register(SessionId::new(SESSION).unwrap(), "headman");
    registered(&registrar).await;
    assert_eq!(setting.entry().await.unwrap().title.unwrap(), "chief");
}

#[tokio::test]
async fn a_release_without_a_runtime_does_the_same() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    let releaser = registrar.releaser();
    let release = std::thread::spawn(move || {
        assert!(tokio::runtime::Handle::try_current().is_err());
        releaser.release_blocking()
    });
    until("released", async || release.is_finished()).await;
    release.join().unwrap().unwrap();
    let [entry] = setting.agents().await.try_into().unwrap();
    assert_eq!((entry.title, entry.agent_session), (None, None));
    assert!(entry.tokens.is_empty());
    // The task does not undo it.
    setting.server().forget_calls();
    tokio::time::sleep(3 * quick().check_every).await;
    assert_eq!(setting.server().calls(), []);
}

#[tokio::test]
async fn a_release_from_a_herdr_that_is_silent_does_not_hang() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    setting.server().set_fault(Fault::Silent).await.unwrap();
    let before = std::time::Instant::now();
    assert!(registrar.release().await.is_err());
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test]
async fn nothing_was_reported_nothing_is_taken_back() {
    let setting = Setting::new().await;
    let registrar = Registrar::start(setting.client.clone(), setting.pane.clone(), quick());
    registrar.set_waiting(true);
    registrar.again();
    registrar.observe(&setting.client.snapshot().await.unwrap());
    setting.server().forget_calls();
    registrar.release().await.unwrap();
    registrar.releaser().release_blocking().unwrap();
    assert_eq!(setting.server().calls(), []);
}

#[tokio::test]
async fn a_stale_report_is_answered_ok_and_changes_nothing() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    // Someone reported from the future.
    let far = json!({"pane_id": setting.pane.pane, "source": "herdr:pi", "agent": "pi", "state": "idle",
                     "seq": u64::MAX, "agent_session_id": "someone-else"});
    setting.client.request("pane.report_agent", far).await.unwrap();
    let registrar = setting.registrar(quick());
    let status = reaches(&registrar, "not listed", |now| matches!(now, Registration::NotListed { .. })).await;
    assert_eq!(status.to_string(), "leads can't write up: Herdr lists another session (pi) on this pane");
    assert!(setting.entry().await.is_none());
}

#[tokio::test]
async fn a_session_dropped_by_another_report_is_repaired() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(blind());
    registered(&registrar).await;
    setting.drop_session().await;
    let [entry] = setting.agents().await.try_into().unwrap();
    assert_eq!(entry.agent_session, None, "still listed, but no lead finds it");
    // Only the inventory can tell, as it looks by itself but once an hour.
    registrar.observe(&setting.client.snapshot().await.unwrap());
    until("repaired", async || setting.entry().await.is_some()).await;
    registered(&registrar).await;
}

#[tokio::test]
async fn it_looks_by_itself_too() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    setting.drop_session().await;
    until("repaired", async || setting.entry().await.is_some()).await;
    registered(&registrar).await;
}

#[tokio::test]
async fn after_a_suspension_it_registers_again_when_told() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(blind());
    registered(&registrar).await;
    program.signal(Signal::STOP);
    until("delisted", async || setting.agents().await.is_empty()).await;
    program.signal(Signal::CONT);
    until("a Pi again", async || !setting.agents().await.is_empty()).await;
    assert!(setting.entry().await.is_none(), "by itself the session does not come back");
    registrar.again();
    until("listed again", async || setting.entry().await.is_some()).await;
    registered(&registrar).await;
}

#[tokio::test]
async fn a_second_entry_under_our_session_is_named() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    // As a restarted Herdr does: a Pi under our id in another pane.
    let other = setting.server().create_pane(&setting.pane.tab, "/tmp").unwrap();
    let second = Program::hinted();
    setting.server().attach(&other, second.pid(), true);
    let report = json!({"pane_id": other, "source": "herdr:pi", "agent": "pi", "state": "idle",
                        "agent_session_path": format!("/sessions/2026-11-30T08-16-17-000Z_{SESSION}.jsonl")});
    setting.client.request("pane.report_agent", report).await.unwrap();
    let status =
        reaches(&registrar, "a duplicate", |now| matches!(now, Registration::Duplicate { .. })).await;
    assert!(!status.can_write_up());
    assert_eq!(
        status.to_string(),
        "leads can't write up: Herdr lists this Chief 2 times, on w1:p1, w1:p2. Close the others"
    );
    drop(second);
    registered(&registrar).await;
}

#[tokio::test]
async fn a_pane_moved_away_is_not_where_leads_look() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    let moved = setting.server().move_pane(&setting.pane.pane, "moved").unwrap();
    let status =
        reaches(&registrar, "elsewhere", |now| matches!(now, Registration::ListedElsewhere { .. })).await;
    let Registration::ListedElsewhere { place } = status else { unreachable!() };
    assert_eq!(place.pane, *moved);
}

#[tokio::test]
async fn an_outage_is_told_and_survived() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let registrar = setting.registrar(quick());
    registered(&registrar).await;
    setting.server().set_fault(Fault::Refuse).await.unwrap();
    let status = reaches(&registrar, "failed", |now| matches!(now, Registration::Failed { .. })).await;
    assert!(status.to_string().starts_with("leads can't write up: Herdr refused the connection"), "{status}");
    setting.server().set_fault(Fault::None).await.unwrap();
    registered(&registrar).await;
}

#[tokio::test]
async fn title_and_tokens_last_while_renewed_and_end_by_themselves() {
    let setting = Setting::new().await;
    let mut program = Program::hinted();
    setting.attach(&program);
    let timing =
        Timing { ttl: Duration::from_millis(1500), refresh_every: Duration::from_millis(100), ..quick() };
    let registrar = setting.registrar(timing);
    registered(&registrar).await;
    let shows_title = async || {
        let reply = setting.client.request("pane.get", json!({"pane_id": setting.pane.pane})).await.unwrap();
        reply.get().contains("\"title\":\"chief\"")
    };
    until("shown", shows_title).await;
    let end = std::time::Instant::now() + 2 * timing.ttl;
    while std::time::Instant::now() < end {
        assert!(shows_title().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Killed outright: nobody takes it back.
    drop(registrar);
    program.kill();
    until("the agent is gone", async || setting.agents().await.is_empty()).await;
    assert!(shows_title().await, "outlives the process");
    until("the title has lapsed", async || !shows_title().await).await;
}

#[tokio::test]
async fn a_late_report_does_not_undo_a_release() {
    let setting = Setting::new().await;
    let program = Program::hinted();
    setting.attach(&program);
    let late = Fault::Late(Duration::from_millis(800));
    setting.server().set_fault_on(Some("pane.report_agent"), late).await.unwrap();
    let registrar = setting.registrar(quick());
    until("under way", async || {
        setting.server().calls().iter().any(|call| call.method == "pane.report_agent")
    })
    .await;
    registrar.release().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert!(setting.entry().await.is_none());
    assert!(matches!(&*registrar.status().borrow(), Registration::NotTried { .. }));
}

/// Not a test: what [`executed_again_a_program_becomes_a_pi`] starts. Executes itself as the console
/// does, then waits until its input ends.
#[test]
#[ignore = "a stage of another test"]
fn stage_of_reexecution() {
    let Ok(goal) = std::env::var("HEADMAN_TEST_GOAL") else { return };
    let env = |name: &str| std::env::var_os(name);
    let pid = std::process::id();
    let arguments = || std::env::args_os().skip(1);
    match reexec::decide(env, true, pid) {
        Decision::Again(again) => panic!("{}", again.exec(arguments())),
        Decision::GoOn(GoOn::Hinted) => {}
        Decision::GoOn(other) => panic!("{other:?}"),
    }
    if goal == "named" && Stage::of(env, pid) != Some(Stage::Named) {
        panic!("{}", reexec::second_attempt(env, pid).unwrap().exec(arguments()));
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[tokio::test]
async fn executed_again_a_program_becomes_a_pi() {
    for goal in ["hinted", "named"] {
        let setting = Setting::new().await;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "herdr_register::stage_of_reexecution", "--ignored"]);
        for name in reexec::strip_from_children() {
            command.env_remove(name);
        }
        command
            .env_remove("TMUX")
            .env("HEADMAN_TEST_GOAL", goal)
            .envs(setting.server().environment(&setting.pane.pane));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = Program(command.spawn().unwrap());
        setting.attach(&program);
        let registrar = setting.registrar(quick());
        registered(&registrar).await;
        if goal == "named" {
            until("renamed", async || {
                let info = setting.client.pane_process_info(&setting.pane.pane).await.unwrap();
                info.foreground_processes[0].argv0 == Some(Untrusted::from("pi"))
            })
            .await;
            // Executing again made it another program for a moment at most.
            registered(&registrar).await;
        }
    }
}

#[tokio::test]
async fn the_handle_can_be_shared() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let setting = Setting::new().await;
    let registrar = Arc::new(setting.registrar(quick()));
    shared(&registrar);
    shared(&registrar.releaser());
}
