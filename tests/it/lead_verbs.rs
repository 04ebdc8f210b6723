//! `headman lead`: any program as a lead, in real processes, under a Chief of the test's own.

use std::io::{Read, Write};
use std::process::Stdio;

use headman::contract::{Kind, Message, Uuid};
use headman::disk::{inbox, records};
use headman::herdr::Status;
use headman::herdr::client::AgentReport;
use headman::lead::{Coordination, NotToPeer, SessionFile};
use rustix::process::Signal;
use serde_json::Value;

use crate::lead_scene::{A, B, CHIEF, Open, Ran, Scene, now, session};
use crate::support::{Program, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_lead_is_published_and_listed_and_prints_what_comes() {
    let scene = Scene::new().await;
    let (lease, _program) = scene.chief().await;
    let lead = scene.open_in(&scene.panes[0], A, &["--name", "robot"]);
    scene.opened(A).await;
    lead.says("listed in Herdr: the Chief sees this lead").await;
    let file = scene.session_file(A);
    assert!(scene.lists("path", file.to_str().unwrap()).await);
    // Who looks as the Chief does sees it by all of that.
    let listed = scene.run(&["list", "--json"]).json();
    assert_eq!(listed["leads"].as_array().unwrap().len(), 1, "{listed}");
    let listed = &listed["leads"][0];
    assert_eq!((&listed["session"], &listed["runtime_state"]), (&A.into(), &"idle".into()));
    assert_eq!(listed["display_name"], "api/robots/robot");
    let peer = records::read_peer(&scene.runtime, &session(A)).unwrap();
    let shown = [&peer.name, &peer.repo, &peer.branch, &peer.workspace_label]
        .map(|it| it.as_ref().unwrap().as_untrusted().to_str_lossy().into_owned());
    assert_eq!(shown, ["robot", "api", "robots", "api"]);
    assert!(peer.cwd.unwrap().as_untrusted().to_str_lossy().ends_with("/work"));
    assert_eq!(peer.pane.as_untrusted(), &*scene.panes[0].pane);

    let sent = scene.send(A, lease.id(), "Stop \u{1b}[2J at noon.\n\u{202e}");
    let line = lead.printed(1).await.remove(0);
    until("it is taken", async || !scene.stands(&sent)).await;
    assert_eq!(line["id"], sent.id.to_string());
    assert_eq!((&line["kind"], &line["from"]), (&"chief_message".into(), &CHIEF.into()));
    assert_eq!(line["text"], "Stop \u{1b}[2J at noon.\n\u{202e}");
    assert_eq!(line["created_at"], sent.created_at.as_millis());
    let proof = scene.entries(A, "custom_message").remove(0);
    assert_eq!(proof["details"]["id"], sent.id.to_string());
    assert_eq!(scene.entries(A, "session")[0]["id"], A);
    // Nothing of it was readable for others.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_waits_for_its_reply_and_both_processes_have_it() {
    let scene = Scene::new().await;
    let (lease, program) = scene.chief().await;
    let lead = scene.open_in(&scene.panes[0], A, &[]);
    scene.opened(A).await;
    lead.says("listed in Herdr").await;
    // Once the Chief was verified its lease is enough: also that of a `reply` outside of Herdr.
    scene.send(A, lease.id(), "Hello.");
    lead.printed(1).await;
    lease.release().unwrap();
    drop(program);

    let asking =
        scene.command(&["lead", "ask", "--session", A, "--wait", "20s", "Deploy\nnow?"]).spawn().unwrap();
    until("it is asked", async || scene.record(A).is_ok_and(|record| record.pending_ask.is_some())).await;
    let record = scene.record(A).unwrap();
    let ask = record.pending_ask.clone().unwrap();
    assert_eq!((&ask.question, &ask.text), (&"Deploy\nnow?".into(), &"Deploy\nnow?".into()));
    assert_eq!(record.instance.to_string(), scene.entries(A, "custom")[0]["data"]["instanceId"]);
    let state = scene.entries(A, "custom").pop().unwrap();
    assert_eq!(state["data"]["pendingAsk"]["askId"], ask.ask.to_string());
    // One at a time.
    let second = scene.lead("ask", A, &["--json", "And then?"]);
    assert_eq!((second.code, &second.json()["error"]["code"]), (1, &"pending".into()));
    let told = second.stderr.lines().last().unwrap();
    assert_eq!(told, "headman: can't ask the Chief: an ask is pending already. Wait for its reply");
    until("Herdr shows that it waits", async || {
        let (agents, _) = scene.client.agent_list().await.unwrap();
        agents.iter().any(|agent| agent.agent_status == Status::Blocked)
    })
    .await;

    let reply = scene.run(&["reply", A, &ask.ask.to_string(), "Yes, now.", "--take-lease", "--wait", "15s"]);
    assert_eq!(reply.code, 0, "{}{}", reply.stdout, reply.stderr);
    let asked = asking.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!((asked.status.code(), &*String::from_utf8_lossy(&asked.stdout)), (Some(0), "Yes, now.\n"));
    assert!(said.contains("there is no message of it yet: there is no Chief to write to"), "{said}");
    let line = lead.printed(2).await.remove(1);
    assert_eq!((&line["kind"], &line["text"]), (&"chief_reply".into(), &"Yes, now.".into()));
    assert_eq!((&line["ask_id"], &line["question"]), (&ask.ask.to_string().into(), &"Deploy\nnow?".into()));
    let after = scene.record(A).unwrap();
    assert_eq!((after.pending_ask, after.instance), (None, record.instance));

    // Not waited for, and not answered in time.
    let asked = scene.lead("ask", A, &["Another?", "--wait", "300ms", "--json"]);
    assert_eq!((asked.code, &asked.json()["fate"]), (1, &"pending".into()));
    assert_eq!(scene.record(A).unwrap().pending_ask.unwrap().question, "Another?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_withdraws_on_every_way_out_and_keeps_what_is_queued() {
    let scene = Scene::new().await;
    // Under a lease of nobody: without a Chief it stays.
    let queued = scene.send(A, Uuid::random(), "for later");
    let file = scene.session_file(A).to_str().unwrap().to_owned();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 0), (Signal::HUP, 0)] {
        let mut lead = scene.open_in(&scene.panes[0], A, &[]);
        scene.opened(A).await;
        lead.says("listed in Herdr").await;
        lead.signal(signal);
        assert_eq!(lead.ended().await, Some(code), "{}", lead.said());
        assert!(scene.is_withdrawn(A), "{signal:?}");
        // Before the process was gone, not by its end.
        let calls = scene.herdr.server.calls();
        assert_eq!(calls.last().unwrap().method, "pane.clear_agent_authority", "{signal:?}");
        assert!(!scene.lists("path", &file).await);
        assert!(scene.stands(&queued) && lead.lines().is_empty());
    }

    // Whoever started it is gone.
    let mut command = scene.command(&["lead", "open", "--session", A]);
    let mut lead = Open::start(command.stdin(Stdio::piped()), true);
    scene.opened(A).await;
    lead.child.stdin.as_mut().unwrap().write_all(b"whatever\n").unwrap();
    drop(lead.child.stdin.take());
    assert_eq!(lead.ended().await, Some(0));
    assert!(scene.is_withdrawn(A) && scene.stands(&queued));

    // Nobody reads what it prints any more: what comes then is not accepted.
    let (lease, _program) = scene.chief().await;
    let mut command = scene.command(&["lead", "open", "--session", A]);
    let mut lead = Open::start(&mut command, false);
    scene.opened(A).await;
    drop(lead.child.stdout.take());
    let unread = scene.send(A, lease.id(), "Is anybody there?");
    assert_eq!(lead.ended().await, Some(0), "{}", lead.said());
    assert!(scene.is_withdrawn(A) && scene.stands(&unread));
    assert!(scene.entries(A, "custom_message").is_empty());
    lease.release().unwrap();

    // Killed: the record stays, the presence is void, and the next one takes up the ask.
    let lead = scene.open(A, &[]);
    let before = scene.opened(A).await;
    let asked = scene.lead("ask", A, &["Still there?"]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    drop(lead);
    assert_eq!(scene.record(A).unwrap().instance, before.instance);
    assert!(!scene.is_present(A));
    let refused = scene.lead("message", A, &["x", "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (1, &"not_open".into()));
    let _lead = scene.open(A, &[]);
    until("another instance", async || {
        scene.record(A).is_ok_and(|record| record.instance != before.instance)
    })
    .await;
    assert_eq!(scene.record(A).unwrap().pending_ask.unwrap().question, "Still there?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_state_makes_it_withdraw_and_say_why() {
    let scene = Scene::new().await;
    let mut lead = scene.open(A, &[]);
    scene.opened(A).await;
    let queued = scene.send(A, Uuid::random(), "for later");
    let entry = r#"{"type":"custom","customType":"pi-herdsman-lead-state","data":{"instanceId":7}}"#;
    let mut file = std::fs::File::options().append(true).open(scene.session_file(A)).unwrap();
    file.write_all(format!("{entry}\n").as_bytes()).unwrap();
    assert_eq!(lead.ended().await, Some(1));
    lead.says("can't go on being a lead, and has withdrawn: the state in the session file").await;
    lead.says("no UUID (version 1–5) as instanceId (uuid). Correct its last state entry").await;
    assert!(scene.is_withdrawn(A) && scene.stands(&queued));
    // Nor does it open with it.
    let mut again = scene.open(A, &["--json"]);
    assert_eq!(again.ended().await, Some(1));
    until("the error is printed", async || !again.lines().is_empty()).await;
    assert_eq!(again.lines()[0]["error"]["code"], "unhealthy");
    assert!(scene.is_withdrawn(A) && scene.stands(&queued));
    // A later entry that is right heals it.
    file.write_all(entry.replace("7", "\"6f1d1c39-4d0e-4c53-8f5c-0a1b2c3d4e5f\"").as_bytes()).unwrap();
    file.write_all(b"\n").unwrap();
    let _lead = scene.open(A, &[]);
    scene.opened(A).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_open_leads_write_to_each_other() {
    let scene = Scene::new().await;
    let first = scene.open_in(&scene.panes[0], A, &["--name", "robot"]);
    let second = scene.open(B, &[]);
    scene.opened(A).await;
    scene.opened(B).await;
    let peers = scene.lead("peers", B, &["--json"]).json();
    assert_eq!(peers["self"], B);
    let peer = &peers["peers"][0];
    assert_eq!(peers["peers"].as_array().unwrap().len(), 1, "{peers}");
    assert_eq!((&peer["session"], &peer["name"]), (&A.into(), &"robot".into()));
    let keys: Vec<&String> = peer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["branch", "cwd", "name", "repo", "session", "workspace_label"]);

    let note = scene.file("note.txt", "mind the gap\n");
    let sent = scene.lead("peer-message", B, &[A, "See there.", "--file", "note.txt", "--json"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let sent = sent.json();
    assert_eq!((&sent["session"], &sent["to"], &sent["fate"]), (&B.into(), &A.into(), &"queued".into()));
    let line = first.printed(1).await.remove(0);
    assert_eq!((&line["kind"], &line["from"], &line["id"]), (&"peer_message".into(), &B.into(), &sent["id"]));
    let text =
        format!("<file name=\"{note}\" bytes=\"13\">\nmind the gap\n\n</file>\n\nMessage:\nSee there.");
    assert_eq!(line["text"], text);
    until("it is taken", async || inbox::list(&scene.runtime.peer_inbox(&session(A))).unwrap().is_empty())
        .await;
    let proof = scene.entries(A, "custom_message").remove(0);
    assert_eq!(proof["customType"], "pi-herdsman-peer_message");
    assert_eq!(proof["content"], format!("Peer message from {B}: {text}"));
    // The lease of a peer's message is its presence.
    let claim = records::read_peer(&scene.runtime, &session(B)).unwrap().claim;
    assert_eq!(proof["details"]["leaseId"], claim.id.to_string());
    let back = scene.lead("peer-message", A, &[B, "-", "--json"]);
    assert_eq!(back.code, 2, "standard input is empty: {}", back.stdout);
    assert_eq!(scene.lead("peer-message", A, &[B, "Seen."]).code, 0);
    assert_eq!(second.printed(1).await[0]["text"], "Seen.");

    for (from, to, code, kind) in
        [(A, A, 2, "usage"), (A, "nobody", 1, "not_found"), ("nobody", A, 1, "not_open")]
    {
        let refused = scene.lead("peer-message", from, &[to, "x", "--json"]);
        assert_eq!((refused.code, &refused.json()["error"]["code"]), (code, &kind.into()), "{from} {to}");
    }
    // One that is gone is not written to, and hides nobody.
    drop(second);
    let refused = scene.lead("peer-message", A, &[B, "x", "--json"]);
    assert_eq!(refused.json()["error"]["code"], "not_found");
    assert_eq!(scene.lead("peers", A, &[]).stdout, "No peers.\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_started_anew_meanwhile_is_not_written_to() {
    let scene = Scene::new().await;
    let first = scene.open(A, &[]);
    let second = scene.open(B, &[]);
    scene.opened(A).await;
    scene.opened(B).await;
    let join = || {
        let file = SessionFile::new(&scene.session_file(A), session(A));
        Coordination::join(scene.agent_dir.clone(), scene.herdr.socket.clone().into(), file).unwrap()
    };
    let lead = join();
    let peer = lead.peer(&session(B)).unwrap();
    drop(second);
    assert!(matches!(lead.write_to_peer(&peer, &"x".into()), Err(NotToPeer::Absent(_))));
    let _second = scene.open(B, &[]);
    until("it is there again", async || scene.is_present(B)).await;
    assert_eq!(lead.write_to_peer(&peer, &"x".into()), Err(NotToPeer::Replaced));
    let peer = lead.peer(&session(B)).unwrap();
    drop(first);
    let _first = scene.open(A, &[]);
    until("it is there again", async || scene.is_present(A)).await;
    assert_eq!(lead.write_to_peer(&peer, &"x".into()), Err(NotToPeer::NotPresent));
    assert!(inbox::list(&scene.runtime.peer_inbox(&session(B))).unwrap().is_empty());
    scene.opened(A).await;
    let sent = join().write_to_peer(&peer, &"x".into()).unwrap();
    assert_eq!((&sent.to, &sent.from), (&session(B), &session(A)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_peers_message_to_it_is_removed_unread() {
    let scene = Scene::new().await;
    let lead = scene.open(A, &[]);
    scene.opened(A).await;
    let peer = |kind, from: &str, lead: &str, to: &str| Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind,
        from: session(from),
        to: session(to),
        lead: session(lead),
        ask: None,
        text: "x".into(),
        created_at: now(),
    };
    let inbox = scene.runtime.peer_inbox(&session(A));
    for wrong in [
        peer(Kind::PeerMessage, B, B, B),
        peer(Kind::PeerMessage, A, A, A),
        peer(Kind::PeerMessage, B, A, A),
        peer(Kind::ChiefMessage, B, A, A),
    ] {
        inbox::publish(scene.agent_dir.path(), &inbox, &wrong).unwrap();
    }
    // Its sender need not live, nor have lived.
    let right = peer(Kind::PeerMessage, B, B, A);
    inbox::publish(scene.agent_dir.path(), &inbox, &right).unwrap();
    assert_eq!(lead.printed(1).await[0]["id"], right.id.to_string());
    until("all are gone", async || inbox::list(&inbox).unwrap().is_empty()).await;
    assert_eq!(lead.lines().len(), 1);
    // The same once more, as a crash before its removal leaves it.
    until("its removal is over", async || inbox::publish(scene.agent_dir.path(), &inbox, &right).is_ok())
        .await;
    until("it is gone", async || inbox::list(&inbox).unwrap().is_empty()).await;
    assert_eq!(lead.lines().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_up_has_its_files_inline_or_by_reference() {
    let scene = Scene::new().await;
    let (lease, _program) = scene.chief().await;
    let _lead = scene.open(A, &[]);
    scene.opened(A).await;
    let plan = scene.file("plan.md", "1. a\n");
    let log = scene.file("build.log", &"line of a long log\n".repeat(9_000));
    let asked = scene.lead("ask", A, &["Go?", "--file", "plan.md", "--file", "build.log", "--json"]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(
        asked.stderr.contains("build.log goes by its path and size, because it is larger"),
        "{}",
        asked.stderr
    );
    let text = format!(
        "<file name=\"{plan}\" bytes=\"5\">\n1. a\n\n</file>\n\n<file name=\"{log}\" bytes=\"171000\" />\n\nQuestion:\nGo?"
    );
    let came = scene.came_up();
    assert_eq!((came.len(), &came[0].text), (1, &text.as_str().into()));
    let ask = scene.record(A).unwrap().pending_ask.unwrap();
    assert_eq!((&ask.question, &ask.text), (&"Go?".into(), &text.as_str().into()));
    assert_eq!(came[0].id, Uuid::of_ask(&session(A), ask.ask, lease.id()));
    assert_eq!(asked.json()["id"], came[0].id.to_string());

    let told = scene.lead("message", A, &["Done.", "--file", "plan.md"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let came = scene.came_up();
    let told = came.iter().find(|message| message.kind == Kind::LeadMessage).unwrap();
    assert!(told.text.to_str_lossy().ends_with("</file>\n\nMessage:\nDone."), "{:?}", told.text);
    assert_eq!((told.lease, &told.to, &told.lead), (lease.id(), &session(CHIEF), &session(A)));

    let long = "x".repeat(1_025);
    for (verb, more, code, kind) in [
        ("message", &["x", "--file", "nowhere"][..], 4, "disk"),
        ("message", &["x", "--file", "result:writer#1"], 2, "usage"),
        ("message", &[" "], 2, "usage"),
        ("ask", &["Go?"], 1, "pending"),
    ] {
        let refused = scene.lead(verb, A, &[more, &["--json"]].concat());
        assert_eq!((refused.code, &refused.json()["error"]["code"]), (code, &kind.into()), "{more:?}");
    }
    assert_eq!(scene.came_up().len(), 2);
    // A question is short; what is long goes along.
    let _other = scene.open(B, &[]);
    scene.opened(B).await;
    let refused = scene.lead("ask", B, &[&long, "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (1, &"question".into()));
    assert_eq!(scene.record(B).unwrap().pending_ask, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_up_without_a_chief_that_herdr_lists() {
    let scene = Scene::new().await;
    let _lead = scene.open(A, &[]);
    scene.opened(A).await;
    let refused = |code: &str| {
        let told: Ran = scene.lead("message", A, &["x", "--json"]);
        assert_eq!((told.code, &told.json()["error"]["code"]), (1, &code.into()), "{}", told.stderr);
        assert_eq!(told.stderr.contains("or run `headman serve`"), code == "no_chief", "{}", told.stderr);
    };
    refused("no_chief");
    let lease = scene.claim();
    refused("not_verified");
    let asked = scene.lead("ask", A, &["Go?", "--json"]);
    assert_eq!((asked.code, &asked.json()["id"]), (0, &Value::Null), "{}", asked.stdout);
    assert!(asked.stderr.contains("can't be verified"), "{}", asked.stderr);
    assert!(scene.came_up().is_empty());
    assert!(scene.record(A).unwrap().pending_ask.is_some(), "the Chief sees it by the record");
    drop(lease);
    // Who holds the lease is no lead.
    let _lease = scene.claim();
    let mut lead = scene.open(CHIEF, &["--json"]);
    assert_eq!(lead.ended().await, Some(3), "{}", lead.said());
    until("the error is printed", async || !lead.lines().is_empty()).await;
    assert_eq!(lead.lines()[0]["error"]["code"], "self_chief");
    assert!(scene.is_withdrawn(CHIEF));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_takes_one_batch_of_a_lead_that_is_not_open() {
    let scene = Scene::new().await;
    let sender = scene.open(B, &[]);
    scene.opened(B).await;
    // Written while it was there, taken while it is not.
    {
        let _lead = scene.open(A, &[]);
        scene.opened(A).await;
        let occupied = scene.lead("drain", A, &["--json"]);
        assert_eq!((occupied.code, &occupied.json()["error"]["code"]), (1, &"open".into()));
    }
    let from_peer = Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::PeerMessage,
        from: session(B),
        to: session(A),
        lead: session(B),
        ask: None,
        text: "from a peer".into(),
        created_at: now(),
    };
    inbox::publish(scene.agent_dir.path(), &scene.runtime.peer_inbox(&session(A)), &from_peer).unwrap();
    let lease = scene.claim();
    let all: Vec<Message> = (0..35).map(|nth| scene.send(A, lease.id(), &format!("number {nth}"))).collect();
    // Nobody has verified the Chief: only what the peer wrote is taken.
    let drained = scene.lead("drain", A, &[]);
    assert_eq!(drained.code, 1, "{}", drained.stderr);
    assert!(
        drained.stdout.contains("from a peer") && drained.stdout.lines().count() == 1,
        "{}",
        drained.stdout
    );
    assert!(
        drained.stderr.contains("can't drain the inbox: the Chief can't be verified"),
        "{}",
        drained.stderr
    );
    assert!(all.iter().all(|message| scene.stands(message)));

    let _program = scene.list_chief().await;
    for (count, left) in [(32, 3), (3, 0), (0, 0)] {
        let drained = scene.lead("drain", A, &[]);
        assert_eq!(drained.code, 0, "{}", drained.stderr);
        assert_eq!(drained.stdout.lines().count(), count);
        assert_eq!(all.iter().filter(|message| scene.stands(message)).count(), left);
        assert!(scene.is_withdrawn(A));
    }
    assert_eq!(scene.entries(A, "custom_message").len(), 36);
    assert!(sender.lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_that_is_not_listed_says_so_and_takes_no_other_programs_pane() {
    let scene = Scene::new().await;
    let outside = scene.open(A, &[]);
    outside.says("not listed in Herdr: not started in a Herdr pane; start it in one. The Chief").await;
    drop(outside);
    let off = scene.open_in(&scene.panes[0], A, &["--no-register"]);
    off.says("not listed in Herdr: registering is switched off").await;
    drop(off);

    // A Pi of another session runs there.
    let pane = &scene.panes[1];
    let program = Program::hinted();
    scene.herdr.server.attach(&pane.pane, program.pid(), true);
    let report = AgentReport {
        pane: &pane.pane,
        source: "herdr:pi",
        agent: "pi",
        state: Status::Idle,
        seq: now().as_millis() * 1_000,
        session: Some("somebody"),
    };
    scene.client.report_agent(report).await.unwrap();
    until("it is listed", async || scene.lists("id", "somebody").await).await;
    scene.herdr.server.forget_calls();
    let mut command = scene.command(&["lead", "open", "--session", A]);
    let mut lead = Open::start(command.envs(scene.herdr.server.environment(&pane.pane)), true);
    lead.says("not listed in Herdr: Herdr lists another session (pi) on this pane").await;
    scene.opened(A).await;
    lead.signal(Signal::TERM);
    assert_eq!(lead.ended().await, Some(0));
    let reported: Vec<_> =
        scene.herdr.server.calls().into_iter().filter(|call| call.method.starts_with("pane.")).collect();
    assert_eq!(reported, [], "nothing of the other's was touched");
    assert!(scene.lists("id", "somebody").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_herdr_does_not_take_it_for_a_pi_it_says_so_until_it_does() {
    let scene = Scene::new().await;
    let pane = &scene.panes[0];
    let mut command = scene.command(&["lead", "open", "--session", A]);
    // Nothing of it is in the pane's foreground.
    let mut lead = Open::start(command.envs(scene.herdr.server.environment(&pane.pane)), true);
    scene.opened(A).await;
    // Both signs that Herdr goes by.
    let of_process = |name| std::fs::read(format!("/proc/{}/{name}", lead.child.id())).unwrap();
    assert!(of_process("cmdline").starts_with(b"pi\0lead\0open\0"));
    assert!(of_process("environ").split(|byte| *byte == 0).any(|variable| variable == b"HERDR_AGENT=pi"));
    lead.says("not listed in Herdr: Herdr does not take this pane's program for Pi").await;
    scene.herdr.server.attach(&pane.pane, lead.child.id(), true);
    lead.says("listed in Herdr: the Chief sees this lead").await;
    lead.signal(Signal::TERM);
    assert_eq!(lead.ended().await, Some(0));
    assert!(scene.is_withdrawn(A));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_file_can_be_named_and_is_its_memory() {
    let scene = Scene::new().await;
    let (lease, _program) = scene.chief().await;
    let path = scene.directory.path().join("work/robot.jsonl");
    let named = ["--session-file", "robot.jsonl"];
    let lead = scene.open(A, &named);
    scene.opened(A).await;
    let sent = scene.send(A, lease.id(), "once");
    lead.printed(1).await;
    until("it is taken", async || !scene.stands(&sent)).await;
    // Without its name another file is looked at.
    let refused = scene.lead("ask", A, &["Go?", "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (2, &"usage".into()), "{}", refused.stdout);
    assert!(refused.stderr.contains("--session-file"), "{}", refused.stderr);
    let asked = scene.lead("ask", A, &[&["Go?"][..], &named[..]].concat());
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    drop(lead);
    // What it was told before is not told again, and what it asked is still asked.
    inbox::publish(scene.agent_dir.path(), &scene.runtime.inbox(&sent.to), &sent).unwrap();
    let lead = scene.open(A, &named);
    until("it is gone", async || !scene.stands(&sent)).await;
    assert_eq!(lead.lines(), [Value::Null; 0]);
    assert_eq!(scene.record(A).unwrap().pending_ask.unwrap().question, "Go?");
    assert!(!scene.session_file(A).exists());

    // Another session's file, one that is none, a link.
    let other = scene.lead("drain", B, &[&named[..], &["--json"]].concat());
    assert_eq!((other.code, &other.json()["error"]["code"]), (2, &"usage".into()), "{}", other.stdout);
    std::fs::write(scene.directory.path().join("work/text"), "hello\n").unwrap();
    std::os::unix::fs::symlink(&path, scene.directory.path().join("work/link")).unwrap();
    for name in ["text", "link", "no/such/directory"] {
        let other = scene.lead("drain", B, &["--session-file", name, "--json"]);
        assert_eq!((other.code, &other.json()["error"]["code"]), (4, &"disk".into()), "{}", other.stdout);
    }
    assert!(scene.is_withdrawn(B));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_ask_left_undone_is_finished() {
    let scene = Scene::new().await;
    let _lead = scene.open(A, &[]);
    let record = scene.opened(A).await;
    // As one leaves it that was killed after the session was written and before the record was.
    let entry = format!(
        r#"{{"type":"custom","customType":"pi-herdsman-lead-state","data":{{"instanceId":"{}","pendingAsk":{{"askId":"{}","question":"Go?","text":"Go?"}}}},"id":"0badcafe","parentId":null}}"#,
        record.instance,
        Uuid::random()
    );
    let mut file = std::fs::File::options().append(true).open(scene.session_file(A)).unwrap();
    file.write_all(format!("{entry}\n").as_bytes()).unwrap();
    until("the record has it", async || {
        scene.record(A).is_ok_and(|record| record.pending_ask.is_some_and(|ask| ask.question == "Go?"))
    })
    .await;
    assert_eq!(scene.record(A).unwrap().instance, record.instance);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_loses_nothing_and_does_not_keep_it_from_ending() {
    let scene = Scene::new().await;
    let (lease, _program) = scene.chief().await;
    let mut command = scene.command(&["lead", "open", "--session", B]);
    let mut lead = Open::start(&mut command, false);
    scene.opened(B).await;
    // More than a pipe holds.
    let text = "y".repeat(7_000);
    let send = || (0..20).map(|_| scene.send(B, lease.id(), &text)).collect::<Vec<Message>>();
    let all = send();
    lead.says("what is queued stays for now: Connection timed out").await;
    assert!(all.iter().any(|message| scene.stands(message)));
    // It goes on where it was: nothing is printed twice.
    lead.read();
    let printed = lead.printed(all.len()).await;
    until("all are taken", async || !all.iter().any(|message| scene.stands(message))).await;
    for message in &all {
        assert_eq!(printed.iter().filter(|line| line["id"] == message.id.to_string()).count(), 1);
    }
    assert_eq!(lead.lines().len(), all.len());
    drop(lead);

    let mut command = scene.command(&["lead", "open", "--session", B]);
    let mut lead = Open::start(&mut command, false);
    until("it is open again", async || scene.is_present(B)).await;
    let all = send();
    lead.says("what is queued stays for now: Connection timed out").await;
    lead.signal(Signal::TERM);
    assert_eq!(lead.ended().await, Some(0));
    assert!(scene.is_withdrawn(B));
    let mut printed = String::new();
    lead.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    for message in &all {
        let was_printed = printed.contains(&format!("\"id\":\"{}\"", message.id));
        assert!(was_printed || scene.stands(message), "{} is nowhere", message.id);
    }
    assert!(all.iter().any(|message| scene.stands(message)));
}
