//! A lead's agents on the screen.

use std::sync::Arc;

use headman::console::app::App;
use headman::contract::mailbox::{Mailbox, Post};
use headman::disk::mailboxes::Scan;
use headman::fact::Fact;
use headman::herd::evidence::{AgentSession, LiveAgent, State};
use serde_json::{Value, json};

use crate::managed::state_of;
use crate::screens::{LEADS, app, at, inventory, press, shown};

const REQUEST: &str = "11111111-1111-4111-8111-111111111111";
const ASK: &str = "22222222-2222-4222-8222-222222222222";

/// An agent of the first lead, or of another agent of its; what Herdr shows of it, if anything.
fn agent(label: &str, owner: &str, members: Value, shows: Option<State>) -> (Post, Option<LiveAgent>) {
    let mut state = state_of(label, owner);
    state.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let mailbox = Mailbox::parse_any(state.to_string().as_bytes()).unwrap();
    let live = shows.map(|state| LiveAgent {
        workspace: Some(mailbox.workspace.clone()),
        tab: Some("w1:t2".into()),
        pane: Some(mailbox.pane.clone()),
        state,
        ..LiveAgent::new(AgentSession::Known(mailbox.session.as_untrusted().clone()))
    });
    let post = Post {
        alias: mailbox.herdr_name().as_str().into(),
        real_cwd: mailbox.cwd.clone(),
        undelivered: mailbox.completed_request.is_some(),
        unacknowledged: false,
        mailbox,
    };
    (post, live)
}

fn app_with(agents: Vec<(Post, Option<LiveAgent>)>) -> App {
    let mut app = app();
    let mut inventory = inventory(LEADS);
    let mut scan = Scan::default();
    for (post, live) in agents {
        if let Some(live) = live {
            inventory.panes.push((post.mailbox.workspace.clone(), post.mailbox.pane.clone()));
            inventory.agents.push(live);
        }
        scan.posts.push(post);
    }
    app.facts(vec![Fact::Mailboxes(Arc::new(scan)), Fact::Inventory(Arc::new(inventory))], at(0));
    app
}

fn of_all_states() -> App {
    let active = json!({"activeRequestId": REQUEST});
    let mut unsure = agent("unsure", "s-auth", active.clone(), Some(State::Working));
    unsure.1.as_mut().unwrap().session = AgentSession::Known("s-someone".into());
    app_with(vec![
        agent("architect", "s-auth", active.clone(), Some(State::Working)),
        agent("explorer", "s-architect", active.clone(), Some(State::Working)),
        agent(
            "explorer-of-the-token-store-and-its-migrations-2",
            "s-explorer",
            json!({"activeRequestId": REQUEST, "pendingAskId": ASK}),
            Some(State::Idle),
        ),
        agent("reviewer", "s-architect", json!({"completedRequestId": REQUEST}), Some(State::Idle)),
        agent("scout", "s-auth", active.clone(), None),
        agent("übersetzer-翻訳", "s-auth", active.clone(), Some(State::Done)),
        agent("waiting", "s-auth", active, Some(State::Blocked)),
        unsure,
        agent("\u{1b}[31m\u{202e}red", "s-unsure", json!({}), None),
    ])
}

#[test]
fn agents_of_every_state_are_a_tree() {
    let app = of_all_states();
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        let picture = shown(&app, width, height, at(0));
        assert!(!picture.contains('\u{1b}') && !picture.contains('\u{202e}'));
        insta::assert_snapshot!(format!("agents_{width}x{height}"), picture);
    }
}

#[test]
fn of_forty_agents_nested_deeply_each_listed_one_has_its_line_and_state() {
    // Owners that come after what they own, one below the other.
    let mut agents = Vec::new();
    for nth in 0..40 {
        let owner = if nth % 10 == 9 { "s-auth".to_owned() } else { format!("s-agent-{:02}", nth + 1) };
        let label = format!("agent-{nth:02}");
        agents.push(agent(&label, &owner, json!({"activeRequestId": REQUEST}), Some(State::Working)));
    }
    let mut app = app_with(agents);
    press(&mut app, "\t", at(1));
    for (width, height) in [(120, 40), (80, 24)] {
        insta::assert_snapshot!(format!("agents_40_{width}x{height}"), shown(&app, width, height, at(1)));
    }
    let mut seen = String::new();
    for _ in 0..12 {
        seen.push_str(&shown(&app, 80, 24, at(1)));
        press(&mut app, "jjjj", at(1));
    }
    for nth in 0..32 {
        let line = seen.lines().find(|line| line.contains(&format!("agent-{nth:02}")));
        assert!(line.is_some_and(|line| line.contains("working")), "{nth}: {line:?}");
    }
    assert!(seen.contains("and 8 more"));
}
