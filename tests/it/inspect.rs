//! `headman inspect`: what stands on a lead's pane and what runs there, read without touching it.

use std::path::Path;

use headman::chief::inspection::{InspectError, MAX_BYTES, Subject, Text, inspect};
use headman::contract::{NativeId, SessionId, Uuid};
use headman::demo::server::{Fault, Server};
use headman::fact::Inspection;
use headman::herd::{Counts, Lead, State};
use headman::herdr::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;

use crate::cli_support::Herd;

const HOSTILE: &str = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\u{200b}";

/// Every method that tells Herdr to do nothing but answer.
const PASSIVE: [&str; 5] =
    ["session.snapshot", "worktree.list", "pane.get", "pane.read", "pane.process_info"];

fn assert_passive(server: &Server, pane: &str) {
    let calls = server.calls();
    assert!(calls.iter().any(|call| call.method == "pane.read"), "nothing was read");
    let touching: Vec<_> = calls.iter().filter(|call| !PASSIVE.contains(&&*call.method)).collect();
    assert!(touching.is_empty(), "{touching:?}");
    assert_eq!(server.disturbances(pane), 0);
}

#[test]
fn the_last_text_and_the_programs_are_told_in_both_forms_and_nothing_is_touched() {
    let mut herd = Herd::new();
    let session = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let pane = herd.agent(session, "api", Some("auth"));
    herd.record(session, None);
    let scrolled: Vec<String> = (0..100).map(|nth| format!("row {nth}")).collect();
    let rows: Vec<&str> = scrolled.iter().map(String::as_str).collect();
    herd.server.set_scrollback(&pane, &rows);
    herd.server.set_screen(&pane, &format!("{HOSTILE}\n\nthe end\n\n"));
    herd.server.forget_calls();
    let before = herd.place.picture();

    let ran = herd.place.run(&["inspect", "01a22b77-3", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.assert_harmless();
    let told = ran.json();
    assert_eq!((&told["session"], &told["pane_id"]), (&session.into(), &pane.as_str().into()));
    assert_eq!((&told["workspace_label"], &told["agents"]), (&"api/auth".into(), &json!([])));
    let output = told["recent_output"].as_str().unwrap();
    assert!(output.ends_with(&format!("\n{HOSTILE}\n\nthe end")), "exact, though escaped: {output:?}");
    assert!(output.starts_with("row ") && output.lines().count() <= 80, "{output:?}");
    assert_eq!(told["recent_output_truncated"], false);
    assert!(told["captured_at"].as_u64().unwrap() > 1_700_000_000_000);
    let process = &told["process"];
    assert_eq!(process["shell_pid"], std::process::id(), "the simulated Herdr's own");
    let one = &process["foreground_processes"][0];
    assert_eq!((&one["argv0"], &one["cmdline"]), (&"sleep".into(), &"sleep 600".into()));
    assert_eq!(one["pid"], process["foreground_process_group_id"]);
    assert!(one.get("state").is_none(), "none is made up");

    let ran = herd.place.run(&["inspect", session]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.assert_harmless();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].ends_with(&format!("  working  pane {pane}  {session}")), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("process {} sleep 600\n", one["pid"])), "{}", ran.stdout);
    assert_eq!(*lines.last().unwrap(), "    the end");
    let text = lines.iter().skip_while(|line| **line != "recent output:").skip(1);
    assert!(text.clone().count() > 10, "{}", ran.stdout);
    assert!(text.into_iter().all(|line| line.is_empty() || line.starts_with("    ")), "{}", ran.stdout);
    assert_passive(&herd.server, &pane);

    // On an alternate screen what is above it would be fetched with the program's wheel.
    herd.server.set_full_screen(&pane, true);
    herd.server.set_screen(&pane, &"x".repeat(MAX_BYTES + 1));
    let told = herd.place.run(&["inspect", session, "--json"]).json();
    assert_eq!(told["recent_output"].as_str().unwrap().len(), MAX_BYTES);
    assert_eq!(told["recent_output_truncated"], true);
    assert!(herd.place.run(&["inspect", session]).stdout.contains("recent output, cut at its beginning:"));
    assert_passive(&herd.server, &pane);
    assert_eq!(herd.place.picture(), before, "inspect wrote something");
}

#[test]
fn what_can_not_be_inspected_is_told_by_its_code() {
    let mut herd = Herd::new();
    let pane = herd.agent("s-1", "api", None);
    herd.record("s-1", None);
    herd.agent("no record", "ops", None);
    let failed = |herd: &Herd, session: &str, exit: i32, code: &str| {
        let ran = herd.place.run(&["inspect", session, "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (exit, &code.into()), "{}", ran.stderr);
        ran.assert_harmless();
        ran.stderr
    };
    failed(&herd, "nobody at all", 1, "not_found");
    assert!(failed(&herd, "no record", 1, "not_found").contains("no record"));
    failed(&herd, "", 2, "usage");

    let fault = |method, fault| herd.block_on(herd.server.set_fault_on(Some(method), fault)).unwrap();
    let refused = |code: &str| Fault::Error { code: code.to_owned(), message: "no\u{1b}[2J".to_owned() };
    fault("pane.get", refused("pane_not_found"));
    let why = failed(&herd, "s-1", 1, "changed");
    assert!(why.contains(&format!("the lead is not on pane {pane} any more")), "{why}");
    fault("pane.read", refused("internal"));
    failed(&herd, "s-1", 4, "herdr_error");
    fault("pane.read", Fault::Cut);
    failed(&herd, "s-1", 4, "herdr_closed");
    // Programs are told as far as they can be.
    fault("pane.process_info", refused("not_supported"));
    let ran = herd.place.run(&["inspect", "s-1", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = ran.json();
    assert!(told.get("process").is_none());
    assert!(told["process_error"].as_str().unwrap().contains("not_supported"), "{told}");
    assert!(herd.place.run(&["inspect", "s-1"]).stdout.contains("the programs there are not known: "));
    herd.block_on(herd.server.set_fault(Fault::Gone)).unwrap();
    failed(&herd, "s-1", 4, "no_socket");
}

pub(crate) fn lead(session_file: Option<&str>) -> Lead {
    let id = |text: &str| NativeId::new(text).unwrap();
    Lead {
        session: SessionId::new("s-1").unwrap(),
        instance: Uuid::random(),
        display_name: "api/x".into(),
        name: "x".into(),
        workspace: id("w1"),
        workspace_label: "api".into(),
        repo: None,
        branch: None,
        tab: id("w1:t1"),
        pane: id("w1:p1"),
        state: State::Idle,
        pending_ask: None,
        counts: Counts::default(),
        agents: Vec::new(),
        session_file: session_file.map(Into::into),
        cwd: None,
    }
}

type Change = fn(&mut Value);

/// What Herdr says of the pane.
fn pane(change: impl FnOnce(&mut Value)) -> Value {
    let mut pane = json!({"pane_id": "w1:p1", "tab_id": "w1:t1", "workspace_id": "w1", "terminal_id": "term_1",
        "agent_session": {"source": "herdr:pi", "agent": "pi", "kind": "id", "value": "s-1"}});
    change(&mut pane);
    pane
}

/// Inspects `lead` of a Herdr that answers like this one time after the other; which methods were
/// asked.
async fn answered(lead: &Lead, panes: [Value; 2]) -> (Vec<String>, Result<Inspection, InspectError>) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let serve = async move {
        let mut panes = panes.into_iter();
        let mut asked = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let request: Value = serde_json::from_str(&line).unwrap();
            let method = request["method"].as_str().unwrap().to_owned();
            let result = match &*method {
                "pane.get" => json!({"pane": panes.next().unwrap()}),
                "pane.read" => json!({"read": {"text": "secret of somebody", "truncated": false}}),
                "done" => return asked,
                _ => {
                    json!({"process_info": {"foreground_processes": [{"pid": 7, "argv": ["a"], "state": "S"}]}})
                }
            };
            asked.push(method);
            stream.write_all(format!("{}\n", json!({"id": "", "result": result})).as_bytes()).await.unwrap();
        }
    };
    let client = Client::new(socket).with_timeout(crate::support::DEADLINE);
    let ask = async {
        let looked = inspect(&client, &Subject::of(lead), Text::Visible).await;
        // It gets no answer, but ends who serves.
        let _ = client.request("done", json!({})).await;
        looked
    };
    tokio::join!(serve, ask)
}

#[tokio::test]
async fn the_lead_has_to_be_on_its_pane_before_and_after_the_read() {
    let is_read = ["pane.get", "pane.read", "pane.process_info", "pane.get"];
    let by_path = |pane: &mut Value| {
        pane["agent_session"]["kind"] = "path".into();
        pane["agent_session"]["value"] = "/s/1.jsonl".into();
    };
    let (asked, seen) = answered(&lead(None), [pane(|_| ()), pane(|_| ())]).await;
    assert_eq!(asked, is_read);
    let seen = seen.unwrap();
    assert_eq!(seen.output, "secret of somebody");
    let one = &seen.process.unwrap().foreground[0];
    assert_eq!((one.argv0.as_ref(), one.state.as_ref()), (Some(&"a".into()), Some(&"S".into())));
    let (_, seen) = answered(&lead(Some("/s/1.jsonl")), [pane(by_path), pane(by_path)]).await;
    assert!(seen.is_ok(), "{seen:?}");

    let strangers: [(&str, Change); 8] = [
        ("moved", |pane| pane["pane_id"] = "w2:p1".into()),
        ("tab", |pane| pane["tab_id"] = "w1:t2".into()),
        ("workspace", |pane| pane["workspace_id"] = "w2".into()),
        ("no agent", |pane| pane["agent_session"] = Value::Null),
        ("another session", |pane| pane["agent_session"]["value"] = "s-2".into()),
        ("another's word", |pane| pane["agent_session"]["source"] = "custom:x".into()),
        ("another kind of agent", |pane| pane["agent_session"]["agent"] = "claude".into()),
        ("a file nobody knows of", |pane| pane["agent_session"]["kind"] = "path".into()),
    ];
    for (what, change) in strangers {
        let (asked, seen) = answered(&lead(None), [pane(change), pane(|_| ())]).await;
        assert_eq!(
            (asked, seen),
            (vec!["pane.get".to_owned()], Err(InspectError::NotThere("w1:p1".into()))),
            "{what}"
        );
        let (asked, seen) = answered(&lead(None), [pane(|_| ()), pane(change)]).await;
        assert_eq!(
            (asked, seen),
            (is_read.map(String::from).to_vec(), Err(InspectError::Changed("w1:p1".into()))),
            "{what}"
        );
    }
    let restarted = |pane: &mut Value| pane["terminal_id"] = "term_2".into();
    let (_, seen) = answered(&lead(None), [pane(|_| ()), pane(restarted)]).await;
    assert_eq!(seen, Err(InspectError::Changed("w1:p1".into())));
    let other_file = |pane: &mut Value| {
        by_path(pane);
        pane["agent_session"]["value"] = "/s/2.jsonl".into();
    };
    let (_, seen) = answered(&lead(Some("/s/1.jsonl")), [pane(by_path), pane(other_file)]).await;
    assert_eq!(seen, Err(InspectError::Changed("w1:p1".into())));
}

/// The recordings of a real Herdr give what is asked of them.
#[test]
fn a_recorded_pane_tells_its_session() {
    use headman::herdr::Pane;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/herdr/pane_get.jsonl");
    let recorded = std::fs::read_to_string(path).unwrap();
    let sessions: Vec<_> = (recorded.lines())
        .filter_map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let result = serde_json::value::to_raw_value(&entry["response"]["result"]).unwrap();
            Pane::of_result(&result)?.agent_session
        })
        .collect();
    let kinds: Vec<_> = sessions.iter().map(|it| it.kind.to_str_lossy().into_owned()).collect();
    assert!(kinds.contains(&"path".to_owned()) && kinds.contains(&"id".to_owned()), "{kinds:?}");
    assert!(sessions.iter().all(|it| it.source == "herdr:pi" && it.agent == "pi"));
}
