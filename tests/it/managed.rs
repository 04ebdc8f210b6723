//! What managed agents do, by their mailboxes and by Herdr.

use headman::contract::Untrusted;
use headman::contract::mailbox::{Mailbox, Post};
use headman::herd::evidence::{AgentSession, LiveAgent, State};
use headman::herd::inventory::{Inventory, OtherAgent};
use headman::herd::presence::{Presence, managed_agents, state};
use serde_json::{Value, json};

const RUN: &str = "019F951B-DEDA-7AD6-8303-D6F22DECCF3E";
pub(crate) const REQUEST: &str = "11111111-1111-4111-8111-111111111111";
pub(crate) const OTHER: &str = "22222222-2222-4222-8222-222222222222";

/// The state of `label`, an agent of the session `owner`, as its owner writes it.
pub(crate) fn state_of(label: &str, owner: &str) -> Value {
    json!({
        "version": 4, "runId": RUN, "ownerSessionId": owner, "workspaceId": "w1", "agentLabel": label,
        "paneId": format!("w1:{label}"), "piSessionId": format!("s-{label}"), "cwd": "/work",
        "updatedAt": 1_796_026_361_029_u64,
    })
}

pub(crate) fn with(mut value: Value, members: Value) -> Value {
    value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    value
}

pub(crate) fn ack(id: &str) -> Value {
    json!({"requestId": id, "accepted": true, "acknowledgedAt": 1})
}

pub(crate) fn result_error(state: &Value) -> Value {
    let mut error = json!({
        "code": "write_failure", "message": "no space", "requestId": REQUEST, "originalStatus": "completed",
        "attempts": 3, "failedAt": 1, "retrySafe": false, "cleanupSafe": true, "nextAction": "close it",
    });
    for key in ["runId", "ownerSessionId", "workspaceId", "agentLabel", "paneId"] {
        error[key] = state[key].clone();
    }
    error
}

pub(crate) fn request(state: &Value, id: &str) -> Value {
    let mut request =
        json!({"version": 4, "requestId": id, "kind": "task", "text": "look around", "createdAt": 1});
    for key in ["runId", "ownerSessionId", "workspaceId", "agentLabel", "paneId"] {
        request[key] = state[key].clone();
    }
    request
}

pub(crate) fn post(value: Value) -> Post {
    let mailbox = Mailbox::parse_any(value.to_string().as_bytes()).unwrap();
    Post {
        alias: mailbox.herdr_name().as_str().into(),
        real_cwd: mailbox.cwd.clone(),
        mailbox,
        unacknowledged: false,
        undelivered: false,
    }
}

/// What Herdr shows of the agent `post`, everything as it should be.
pub(crate) fn agent_of(post: &Post) -> LiveAgent {
    LiveAgent {
        workspace: Some(post.mailbox.workspace.clone()),
        tab: Some("w1:t2".into()),
        pane: Some(post.mailbox.pane.clone()),
        state: State::Working,
        herdr_name: Some(post.alias.clone()),
        cwd: Some(post.mailbox.cwd.clone()),
        ..LiveAgent::new(AgentSession::Known(post.mailbox.session.as_untrusted().clone()))
    }
}

pub(crate) fn inventory(agents: Vec<LiveAgent>) -> Inventory {
    let panes = vec![("w1".into(), "w1:scout".into()), ("w1".into(), "w1:p1".into())];
    Inventory { agents, panes, ..Inventory::default() }
}

pub(crate) fn shown(post: &Post, inventory: &Inventory) -> State {
    managed_agents(std::slice::from_ref(post), inventory)[0].state
}

#[test]
fn every_rule_of_a_state_is_applied_in_its_order() {
    use Presence::{Live, Lost, Unknown};
    let plain = post(state_of("scout", "lead"));
    let active = post(with(state_of("scout", "lead"), json!({"activeRequestId": REQUEST})));
    let asking =
        post(with(state_of("scout", "lead"), json!({"activeRequestId": REQUEST, "pendingAskId": OTHER})));
    let failed = {
        let state = state_of("scout", "lead");
        let error = result_error(&state);
        post(with(state, json!({"resultError": error})))
    };
    let finished = Post {
        undelivered: true,
        ..post(with(
            state_of("scout", "lead"),
            json!({"activeRequestId": OTHER, "completedRequestId": REQUEST}),
        ))
    };
    let waiting = |post: &Post| Post { unacknowledged: true, ..post.clone() };
    let live = [State::Working, State::Blocked, State::Idle, State::Done, State::Unknown];

    // An undelivered result and a result error come before everything.
    for presence in live.map(Live).into_iter().chain([Lost, Unknown]) {
        for post in [&finished, &waiting(&finished), &failed] {
            assert_eq!(state(post, presence, true), State::Settling, "{presence:?}");
        }
    }
    // Then what Herdr can't show, before a request that waits.
    for post in [&plain, &active, &asking, &waiting(&active)] {
        assert_eq!(state(post, Lost, true), State::Lost);
        assert_eq!(state(post, Unknown, true), State::Unknown);
    }
    // Then that request, whatever it works on.
    for post in [&plain, &active, &asking] {
        for lifecycle in live {
            assert_eq!(state(&waiting(post), Live(lifecycle), true), State::Settling, "{lifecycle:?}");
        }
    }
    // Then what it does.
    let table: [(&str, &Post, [State; 5]); 3] = [
        (
            "active",
            &active,
            [State::Working, State::Blocked, State::Settling, State::Settling, State::Unknown],
        ),
        ("asking", &asking, [State::Working, State::Blocked, State::Blocked, State::Blocked, State::Unknown]),
        (
            "nothing to do",
            &plain,
            [State::Unknown, State::Unknown, State::Settling, State::Settling, State::Unknown],
        ),
    ];
    for (what, post, expected) in table {
        assert_eq!(live.map(|lifecycle| state(post, Live(lifecycle), false)), expected, "{what}");
    }
    // Its own agents make it blocked only where it works on something and rests.
    assert_eq!(
        live.map(|lifecycle| state(&active, Live(lifecycle), true)),
        [State::Working, State::Blocked, State::Blocked, State::Blocked, State::Unknown]
    );
    assert_eq!(state(&plain, Live(State::Idle), true), State::Settling);
}

#[test]
fn an_agent_waits_for_its_own_agents_while_one_has_pending_work() {
    let parent = post(with(state_of("scout", "lead"), json!({"activeRequestId": REQUEST})));
    let idle = LiveAgent { state: State::Idle, ..agent_of(&parent) };
    let inventory = inventory(vec![idle]);
    let child = |members: Value| post(with(state_of("child", "s-scout"), members));
    let failed = {
        let state = state_of("child", "s-scout");
        let error = result_error(&state);
        child(json!({"resultError": error}))
    };
    let finished = child(json!({"completedRequestId": REQUEST}));
    let undelivered = Post { undelivered: true, ..finished.clone() };
    let elsewhere =
        post(with(state_of("child", "s-scout"), json!({"workspaceId": "w2", "activeRequestId": REQUEST})));
    for (what, child, expected) in [
        ("at work", child(json!({"activeRequestId": REQUEST})), State::Blocked),
        ("with a result to fetch", undelivered, State::Blocked),
        ("with an error to see", failed, State::Blocked),
        ("with nothing", child(json!({})), State::Settling),
        ("whose result was fetched", finished, State::Settling),
        ("of another workspace", elsewhere, State::Settling),
        (
            "of another owner",
            post(with(state_of("child", "lead"), json!({"activeRequestId": REQUEST}))),
            State::Settling,
        ),
    ] {
        let agents = managed_agents(&[parent.clone(), child], &inventory);
        assert_eq!(agents[0].state, expected, "a child {what}");
    }
}

#[test]
fn a_herdr_agent_is_the_mailboxs_if_nothing_contradicts() {
    let post = Post {
        real_cwd: "/real/work".into(),
        ..post(with(
            state_of("scout", "lead"),
            json!({"activeRequestId": REQUEST, "piSessionFile": "/s/scout.jsonl"}),
        ))
    };
    let right = agent_of(&post);
    let unread = |file: &str| LiveAgent {
        session: AgentSession::Unknown("not written yet".to_owned()),
        session_file: Some(file.into()),
        ..right.clone()
    };
    let table: Vec<(&str, Vec<LiveAgent>, State)> = vec![
        ("as it should be", vec![right.clone()], State::Working),
        ("without a name", vec![LiveAgent { herdr_name: None, ..right.clone() }], State::Working),
        (
            "with an empty name",
            vec![LiveAgent { herdr_name: Some("".into()), ..right.clone() }],
            State::Working,
        ),
        (
            "with another name",
            vec![LiveAgent { herdr_name: Some("scout".into()), ..right.clone() }],
            State::Unknown,
        ),
        ("without a directory", vec![LiveAgent { cwd: None, ..right.clone() }], State::Working),
        (
            "in the same directory by another path",
            vec![LiveAgent {
                cwd: Some("/link".into()),
                real_cwd: Some("/real/work".into()),
                ..right.clone()
            }],
            State::Working,
        ),
        (
            "in another directory",
            vec![LiveAgent {
                cwd: Some("/elsewhere".into()),
                real_cwd: Some("/elsewhere".into()),
                ..right.clone()
            }],
            State::Unknown,
        ),
        (
            "of another session",
            vec![LiveAgent { session: AgentSession::Known("x".into()), ..right.clone() }],
            State::Unknown,
        ),
        ("whose session file is not written yet", vec![unread("/s/scout.jsonl")], State::Working),
        ("whose unread session file is another", vec![unread("/s/other.jsonl")], State::Unknown),
        ("on another pane", vec![LiveAgent { pane: Some("w1:p1".into()), ..right.clone() }], State::Unknown),
        (
            "in another workspace",
            vec![LiveAgent { workspace: Some("w2".into()), ..right.clone() }],
            State::Unknown,
        ),
        ("twice", vec![right.clone(), right.clone()], State::Unknown),
        (
            "with its session also elsewhere",
            vec![right.clone(), LiveAgent { pane: Some("w1:p1".into()), herdr_name: None, ..right.clone() }],
            State::Unknown,
        ),
        (
            "with its name also elsewhere",
            vec![
                right.clone(),
                LiveAgent {
                    pane: Some("w1:p1".into()),
                    session: AgentSession::Known("x".into()),
                    ..right.clone()
                },
            ],
            State::Unknown,
        ),
        ("not at all, its pane still there", vec![], State::Unknown),
    ];
    for (what, agents, expected) in table {
        assert_eq!(shown(&post, &inventory(agents)), expected, "{what}");
    }

    // Without its pane it is lost, unless something of it is anywhere.
    let without = |agents: Vec<LiveAgent>| Inventory { agents, ..Inventory::default() };
    let stranger = LiveAgent::new(AgentSession::Known("x".into()));
    assert_eq!(shown(&post, &without(vec![])), State::Lost);
    assert_eq!(shown(&post, &without(vec![stranger])), State::Lost);
    assert_eq!(shown(&post, &without(vec![right.clone()])), State::Unknown);
    assert_eq!(shown(&post, &without(vec![unread("/s/scout.jsonl")])), State::Unknown);
    let other = |name: Option<&Untrusted>, pane: &str| Inventory {
        other_agents: vec![OtherAgent { name: name.cloned(), workspace: "w1".into(), pane: pane.into() }],
        ..Inventory::default()
    };
    assert_eq!(shown(&post, &other(None, "w1:p9")), State::Lost);
    assert_eq!(shown(&post, &other(Some(&post.alias), "w1:p9")), State::Unknown);
    assert_eq!(shown(&post, &other(None, "w1:scout")), State::Unknown);
    // Another kind of agent on its pane is not it.
    let taken = Inventory { panes: inventory(vec![]).panes, ..other(None, "w1:scout") };
    assert_eq!(shown(&post, &taken), State::Unknown);
}
