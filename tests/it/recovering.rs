//! A process that is about to recover the lease of a dead Chief, and does not get on: it is named, with
//! what to do, and whoever is Chief by its role goes on once it ended.

use std::path::PathBuf;

use headman::chief::service::Request;
use headman::chief::state_dir::StateDir;
use headman::contract::role::Role;
use headman::contract::{Claim, Pid, SessionId, Uuid};
use headman::disk::{Runtime, durable, leftovers};
use headman::fact::{Fact, OtherChief, Standing};
use rustix::fs::FlockOperation;
use serde_json::Value;

use crate::chief_service::World;
use crate::cli_support::Place;
use crate::crashes::{dead_pid, write_lock};
use crate::support::Program;

/// What such a process has on disk.
struct Recovering {
    program: Program,
    prepared: PathBuf,
    _recovery: std::fs::File,
}

impl Recovering {
    fn begin(runtime: &Runtime) -> Self {
        let (lock, program) = (runtime.lock(), Program::plain());
        write_lock(&lock, Claim { pid: dead_pid(), id: Uuid::random() });
        let claim = claim_of(program.pid());
        let prepared = durable::hidden(&lock, claim.id, "tmp");
        write_lock(&prepared, claim);
        let recovery = std::fs::File::open(&lock).unwrap();
        rustix::fs::flock(&recovery, FlockOperation::NonBlockingLockExclusive).unwrap();
        Self { program, prepared, _recovery: recovery }
    }

    fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// It is killed, and takes back nothing.
    fn end(self) {
        drop(self.program);
        assert!(self.prepared.exists());
    }
}

fn claim_of(pid: u32) -> Claim {
    Claim { pid: Pid::from_number(f64::from(pid)).unwrap(), id: Uuid::random() }
}

/// That much of a refusal is in sight on a terminal of 120 columns.
fn names_first(said: &str, pid: u32) {
    let seen: String = said.chars().take(105).collect();
    assert!(
        seen.starts_with(&format!("process {pid} ")) && seen.contains(&format!("`kill -CONT {pid}`")),
        "{said}"
    );
}

#[tokio::test]
async fn a_console_names_who_recovers_the_lease_and_resumes_once_that_ended() {
    let world = World::new().await;
    world.make_chief("state");
    let recovering = Recovering::begin(&world.runtime());
    let pid = recovering.pid();
    let mut service = world.service("state");
    let by = OtherChief::InProgressBy(pid);
    service.standing("to name it", |it| *it == Standing::Suspended(by.clone())).await;
    names_first(&by.sentence(), pid);
    let refused = service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap_err();
    names_first(&refused, pid);
    assert!(!service.has_told(|it| matches!(it, Fact::Standing(it) if it.lease().is_some())));
    recovering.end();
    service.chief().await;
    service.end().await;
}

/// Who watches is told the same, and becomes nothing by itself.
#[tokio::test]
async fn who_watches_is_told_who_recovers_the_lease() {
    let world = World::new().await;
    let recovering = Recovering::begin(&world.runtime());
    let mut service = world.service("state");
    let observer = |chief| Standing::Observer { chief, refused: None };
    let named = observer(OtherChief::InProgressBy(recovering.pid()));
    service.standing("to name it", |it| *it == named).await;
    recovering.end();
    service.standing("to see it free", |it| *it == observer(OtherChief::None)).await;
    service.end().await;
}

#[test]
fn serve_names_who_recovers_the_lease() {
    let mut place = Place::new();
    place.set("HERDR_SOCKET_PATH", "h.sock");
    let runtime = place.agent_dir().runtime("h.sock".as_ref());
    durable::ensure_directories(&place.path("home"), runtime.root()).unwrap();
    let recovering = Recovering::begin(&runtime);
    // First as one that was no Chief before, then as one that was.
    for role in [Role::Lead, Role::Chief] {
        let state = StateDir::open(&place.state_dir(), "h.sock".as_ref()).unwrap();
        let mut identity = state.identity().unwrap();
        identity.role = role;
        state.write_identity(&identity).unwrap();
        drop(state);
        let ran = place.run(&["serve", "--json"]);
        assert_eq!(ran.code, 3, "{role:?}: {}", ran.stderr);
        let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        let said = last["error"]["message"].as_str().unwrap_or_default().to_owned();
        let why = said
            .strip_prefix("can't serve: not Chief: ")
            .unwrap_or_else(|| panic!("{role:?}: {}", ran.stdout));
        names_first(why, recovering.pid());
    }
}

/// In an inbox of our own: what a dead process was about to take goes, what a living one is stays, and so
/// does what says of nobody.
#[test]
fn locks_that_the_dead_were_about_to_take_go_from_our_own_inbox() {
    let place = Place::new();
    let session = SessionId::new("us").unwrap();
    let inbox = place.agent_dir().runtime("h.sock".as_ref()).inbox(&session);
    durable::ensure_directories(&place.path("home"), inbox.path()).unwrap();
    let prepared = |claim: Option<Claim>| {
        let id = claim.map_or_else(Uuid::random, |claim| claim.id);
        let path = durable::hidden(&inbox.lock(Uuid::random()), id, "tmp");
        match claim {
            Some(claim) => write_lock(&path, claim),
            None => std::fs::create_dir(&path).unwrap(),
        }
        path
    };
    let living = Program::plain();
    let dead = prepared(Some(Claim { pid: dead_pid(), id: Uuid::random() }));
    let stay = [prepared(Some(claim_of(living.pid()))), prepared(None)];
    let mut swept = leftovers::Swept::default();
    leftovers::undo_removals(&inbox, Uuid::random(), &mut swept).unwrap();
    assert_eq!((swept.removed, swept.stays), (1, Vec::new()));
    assert!(!dead.exists() && stay.iter().all(|path| path.exists()));
}
