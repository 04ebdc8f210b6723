//! Managed agents in a herd: who is listed, who may be written to, who may become Chief.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::chief::service::Request;
use headman::chief::staff::Office;
use headman::contract::{SessionId, Timestamp, Uuid};
use headman::disk::DiskThread;
use headman::fact::{self, Done, Fact, Now, OtherChief, Standing};
use headman::herd::{Agent, State};
use headman::herdr::Registration;
use headman::model::Model;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::chief_service::World;
use crate::cli_support::Herd;
use crate::managed::state_of;
use crate::managed_mailboxes::Boxes;
use crate::support::DEADLINE;

const REQUEST: &str = "11111111-1111-4111-8111-111111111111";
const ASK: &str = "99999999-8888-4777-a666-555555555555";

/// The mailbox of an agent at work on `pane` of `herd`.
fn at_work(label: &str, owner: &str, session: &str, pane: &str) -> Value {
    let mut state = state_of(label, owner);
    state["paneId"] = pane.into();
    state["workspaceId"] = pane.split(':').next().into();
    state["piSessionId"] = session.into();
    state["cwd"] = "/tmp".into();
    state["activeRequestId"] = REQUEST.into();
    state
}

#[test]
fn agents_are_listed_with_their_lead_and_are_no_leads_themselves() {
    let mut herd = Herd::new();
    herd.agent("s-lead", "api", None);
    let pane = herd.agent("s-scout", "scouting", None);
    herd.record("s-lead", None);
    let ask = Uuid::parse(ASK).unwrap();
    herd.record("s-scout", Some((ask, "May I?")));
    let boxes = Boxes(herd.place.agent_dir().mailboxes());
    boxes.put(&at_work("scout", "s-lead", "s-scout", &pane));
    let mut gone = at_work("gone", "s-scout", "s-gone", "w9:p9");
    gone.as_object_mut().unwrap().remove("activeRequestId");
    boxes.put(&gone);
    boxes.put(&at_work("other", "another lead", "s-other", "w9:p8"));
    boxes.put_in(&boxes.0.join("0".repeat(32)), "state.json", b"{");
    let before = herd.place.picture();

    let list = herd.place.run(&["list", "--json"]).json();
    let leads = list["leads"].as_array().unwrap();
    assert_eq!(leads.len(), 1, "{list}");
    assert_eq!(leads[0]["agent_counts"], json!({"active": 1, "blocked": 0, "total": 2}));
    assert_eq!(
        leads[0]["agents"],
        json!([
            {"id": "s-gone", "label": "gone", "state": "lost"},
            {"id": "s-scout", "label": "scout", "state": "working"},
        ])
    );
    let reasons: Vec<_> = list["diagnostics"].as_array().unwrap().iter().map(|it| &it["reason"]).collect();
    assert_eq!(reasons, ["no_owner", "broken_mailbox", "managed"]);
    let plain = herd.place.run(&["list"]);
    plain.assert_harmless();
    assert!(plain.stdout.contains("1/2 agents"), "{}", plain.stdout);
    assert!(plain.stdout.contains("1 agent in Herdr is managed by leads"), "{}", plain.stdout);
    assert_eq!(herd.place.picture(), before, "something was written");

    // Nor is one written to, whatever it asks.
    let ran = herd.place.run(&["reply", "s-scout", ASK, "yes", "--take-lease"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("another session's managed agent"), "{}", ran.stderr);

    let report = herd.place.run(&["doctor", "--json"]).json();
    let section = &report["mailboxes"];
    assert_eq!(
        (&section["valid"], &section["owners"], &section["refused"]),
        (&3.into(), &3.into(), &1.into())
    );
    assert_eq!(section["broken"][0]["verdict"], "torn", "{section}");
    let bad: Vec<_> =
        section["findings"].as_array().unwrap().iter().filter(|it| it["level"] == "bad").collect();
    assert_eq!(bad.len(), 2, "{section}");
}

#[tokio::test]
async fn a_lead_that_turns_out_to_be_managed_is_not_written_to() {
    let world = World::new().await;
    world.make_chief("state");
    let mut service = world.service("state");
    let lease = service.chief().await;
    let boxes = Boxes(world.agent_dir().mailboxes());
    // Nothing about it need fit: that it stands in a mailbox is enough.
    let state = at_work("x", "someone", &world.lead.session.as_untrusted().to_str_lossy(), "w9:p9");
    let directory = boxes.put(&state);
    let refused = service.send(world.reply(lease)).await.unwrap_err();
    assert!(refused.contains("another session's managed agent"), "{refused}");
    assert!(world.inbox().is_empty());
    // Not even a mailbox that is broken, if it names the session.
    let mut later = state.clone();
    later["version"] = 5.into();
    boxes.put(&later);
    assert!(service.send(world.reply(lease)).await.is_err());
    std::fs::remove_dir_all(directory).unwrap();
    assert!(matches!(service.send(world.reply(lease)).await, Ok(Done::Sent(_))));
    service.end().await;
}

#[tokio::test]
async fn nobody_becomes_chief_who_may_own_agents() {
    let world = World::new().await;
    let boxes = Boxes(world.agent_dir().mailboxes());
    let mut service = world.service("state");
    service.standing("to watch", |standing| !matches!(standing, Standing::Starting)).await;
    let us = service.office.session().as_untrusted().to_str_lossy().into_owned();
    let own = boxes.put(&state_of("mine", &us));
    let refused = service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap_err();
    assert!(refused.contains("owns the managed agent \"mine\""), "{refused}");
    assert_eq!(world.state("state").identity().unwrap().role, headman::contract::role::Role::Lead);

    // One that can't be read could be ours; one that names another owner is not.
    std::fs::remove_dir_all(own).unwrap();
    let broken = boxes.0.join("0".repeat(32));
    for (what, bytes, is_ours) in [
        ("torn", b"{\"version\":4".to_vec(), true),
        (
            "ours, and of a later release",
            format!("{{\"version\":5,\"ownerSessionId\":\"{us}\"}}").into(),
            true,
        ),
        ("another's", b"{\"version\":5,\"ownerSessionId\":\"lead\"}".to_vec(), false),
    ] {
        boxes.put_in(&broken, "state.json", &bytes);
        let result = service.ask(|ticket| Request::BecomeChief { ticket }).await;
        assert_eq!(result.is_err(), is_ours, "{what}: {result:?}");
        if let Err(refused) = result {
            assert!(refused.contains(&"0".repeat(32)), "{refused}");
        }
    }
    assert_eq!(service.ask(|ticket| Request::Leave { ticket }).await, Ok(Done::Left));
    // Nor while the mailboxes can't be listed at all.
    std::fs::remove_dir_all(&boxes.0).unwrap();
    std::fs::write(&boxes.0, "no directory").unwrap();
    std::fs::set_permissions(&boxes.0, std::fs::Permissions::from_mode(0o600)).unwrap();
    let refused = service.ask(|ticket| Request::BecomeChief { ticket }).await.unwrap_err();
    assert!(refused.contains("the directory of mailboxes"), "{refused}");
    std::fs::remove_file(&boxes.0).unwrap();
    assert_eq!(service.ask(|ticket| Request::BecomeChief { ticket }).await, Ok(Done::BecameChief));
    service.end().await;
    // A start that would resume as Chief is refused the same way, and says so.
    boxes.put(&state_of("mine", &us));
    let mut again = world.service("state");
    let standing = again.standing("an answer", |it| !matches!(it, Standing::Starting)).await;
    let Standing::Observer { chief: OtherChief::None, refused: Some(why) } = standing else {
        panic!("{standing:?}")
    };
    assert!(why.contains("\"mine\""), "{why}");
    again.end().await;
}

#[tokio::test]
async fn the_source_tells_of_mailboxes_as_they_change_and_the_model_counts_them() {
    let world = World::new().await;
    let boxes = Boxes(world.agent_dir().mailboxes());
    let us = SessionId::new("chief").unwrap();
    let office = Arc::new(Office::new(
        world.agent_dir(),
        world.agent_dir().runtime(world.herdr.socket.as_os_str()),
        us.clone(),
        Instant::now(),
    ));
    let mut model = Model::new(us, Registration::Registered);
    let now = Now { wall: Timestamp::from_millis(1), mono: Duration::from_secs(1) };
    let records = headman::source::records::scan(office.runtime()).unwrap();
    model.fold([Fact::Leads(Arc::new(records))], now);
    let (facts, received) = fact::channel();
    let (snapshots, _seen) = watch::channel(None);
    let task = tokio::spawn(headman::source::inventory::run(
        world.herdr.client(),
        office,
        DiskThread::spawn().unwrap(),
        facts,
        snapshots,
    ));
    let lead = world.lead.session.clone();
    let owner = lead.as_untrusted().to_str_lossy().into_owned();
    let mut agents = async |what: &str, wanted: &dyn Fn(&[Agent]) -> bool| {
        let end = Instant::now() + DEADLINE;
        loop {
            model.fold(received.take(), now);
            if let Some(lead) = model.lead(&lead)
                && wanted(&lead.agents)
            {
                return lead.counts;
            }
            assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}: {:?}", model.roster());
            let _ = tokio::time::timeout(Duration::from_millis(100), received.ready()).await;
        }
    };
    agents("the lead", &|agents| agents.is_empty()).await;
    let mut state = at_work("x", &owner, "s-x", "w9:p9");
    let directory = boxes.put(&state);
    let counts = agents("its agent", &|agents| agents.iter().any(|it| it.state == State::Lost)).await;
    assert_eq!((counts.active, counts.total), (0, 1));
    state.as_object_mut().unwrap().remove("activeRequestId");
    state["completedRequestId"] = REQUEST.into();
    boxes.put_in(&directory, &format!("result-{REQUEST}.json"), b"{}");
    boxes.put(&state);
    let counts = agents("its result", &|agents| agents.iter().any(|it| it.state == State::Settling)).await;
    assert_eq!((counts.active, counts.total), (1, 1));
    std::fs::remove_dir_all(directory).unwrap();
    agents("its end", &|agents| agents.is_empty()).await;
    task.abort();
}
