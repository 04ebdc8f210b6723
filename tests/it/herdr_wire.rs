//! The simulated Herdr against what a real one was recorded to answer.
//!
//! The recorded requests are sent in their order, between them the world is brought to where it was.
//! Every reply must have the same keys and types all the way down, and the same values but for
//! [`OWN`]. Not compared: replies of methods that are not simulated, and times.

use std::collections::BTreeMap;
use std::path::Path;

use headman::demo::server::Checkout;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::{Herdr, Program, until};

/// Values that are each server's own; only their types are compared.
const OWN: [&str; 11] = [
    "terminal_id",
    "pid",
    "shell_pid",
    "foreground_process_group_id",
    "argv",
    "cmdline",
    "process_name",
    "process_cwd",
    "height",
    "x",
    "y",
];

struct Recorded {
    number: u32,
    method: String,
    /// As it stands in the record: the server names columns of it.
    request: String,
    response: Value,
}

fn records() -> Vec<Recorded> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let record: BTreeMap<String, Box<serde_json::value::RawValue>> =
                serde_json::from_str(line).unwrap();
            let Some(request) = record.get("request") else { continue };
            let parsed: Value = serde_json::from_str(request.get()).unwrap();
            let Some(number) = parsed["id"].as_str().unwrap().strip_prefix("lab:") else { continue };
            all.push(Recorded {
                number: number.parse().unwrap(),
                method: parsed["method"].as_str().unwrap().to_owned(),
                request: request.get().to_owned(),
                response: serde_json::from_str(record["response"].get()).unwrap(),
            });
        }
    }
    all.sort_by_key(|record| record.number);
    all
}

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/herdr"))
}

/// Sends one line, reads to the end: the server must close by itself.
async fn exchange(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let mut reply = String::new();
    tokio::time::timeout(crate::support::DEADLINE, stream.read_to_string(&mut reply)).await.unwrap().unwrap();
    assert_eq!(reply.matches('\n').count(), 1, "one line: {reply}");
    assert!(reply.ends_with('\n'));
    reply
}

async fn ask(socket: &Path, method: &str, params: Value) -> Value {
    let line = json!({"id": "t", "method": method, "params": params}).to_string();
    serde_json::from_str(&exchange(socket, &line).await).unwrap()
}

fn same(recorded: &Value, ours: &Value, path: &str, key: &str, differences: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            let keys: Vec<&String> = recorded.keys().collect();
            let our_keys: Vec<&String> = ours.keys().collect();
            if keys != our_keys {
                differences.push(format!("{path}: keys {keys:?}, ours {our_keys:?}"));
            }
            for (key, value) in recorded {
                // A process's name and directory are not an agent's.
                let role = match (path.contains("foreground_processes"), key.as_str()) {
                    (true, "name") => "process_name",
                    (true, "cwd") => "process_cwd",
                    (_, key) => key,
                };
                if let Some(ours) = ours.get(key) {
                    same(value, ours, &format!("{path}.{key}"), role, differences);
                }
            }
        }
        (Value::Array(recorded), Value::Array(ours)) => {
            let own = OWN.contains(&key);
            if recorded.len() != ours.len() && !own {
                differences.push(format!("{path}: {} elements, ours {}", recorded.len(), ours.len()));
            }
            for (nth, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                same(recorded, ours, &format!("{path}[{nth}]"), key, differences);
            }
        }
        _ => {
            let kind = |value: &Value| match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "fraction",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            if kind(recorded) != kind(ours) || (recorded != ours && !OWN.contains(&key)) {
                differences.push(format!("{path}: {recorded}, ours {ours}"));
            }
        }
    }
}

#[test]
fn the_comparison_sees_a_difference() {
    let recorded = json!({"a": [{"b": 1, "pid": 7}], "c": null});
    for ours in [
        json!({"a": [{"b": 1, "pid": 7}]}),
        json!({"a": [{"b": 1, "pid": 7}], "c": null, "d": 1}),
        json!({"a": [{"b": 2, "pid": 7}], "c": null}),
        json!({"a": [{"b": 1, "pid": "7"}], "c": null}),
        json!({"a": [], "c": null}),
        json!({"a": [{"b": 1, "pid": 7}], "c": false}),
    ] {
        let mut differences = Vec::new();
        same(&recorded, &ours, "", "", &mut differences);
        assert_eq!(differences.len(), 1, "{ours}: {differences:?}");
    }
    let mut differences = Vec::new();
    same(&recorded, &json!({"a": [{"b": 1, "pid": 8}], "c": null}), "", "", &mut differences);
    assert_eq!(differences, [""; 0]);
}

const PROJECTS: &str = "/home/op/lab/proj";
const SESSIONS: &str = "/home/op/.pi/agent/sessions";

/// The Pis of the recording, by pane.
struct World {
    herdr: Herdr,
    pis: BTreeMap<&'static str, Program>,
}

impl World {
    async fn start_pi(&mut self, pane: &'static str, session: (&str, String)) {
        let program = Program::hinted();
        let (key, value) = session;
        // In the recording it had reported before Herdr looked at its process. Seen first, it would be idle,
        // then unknown, then idle again: two changes more.
        self.tell("pane.report_agent_session", json!({"pane_id": pane, key: value})).await;
        self.report(pane, "idle", (key, value)).await;
        self.herdr.server.attach(pane, program.pid(), true);
        self.pis.insert(pane, program);
        until("the Pi is listed", async || !self.agent(pane).await["result"].is_null()).await;
    }

    async fn tell(&self, method: &str, mut params: Value) {
        params["source"] = "herdr:pi".into();
        params["agent"] = "pi".into();
        let reply = ask(&self.herdr.socket, method, params).await;
        assert_eq!(reply["result"]["type"], "ok", "{reply}");
    }

    async fn report(&self, pane: &str, state: &str, (key, value): (&str, String)) {
        self.tell("pane.report_agent", json!({"pane_id": pane, "state": state, key: value})).await;
    }

    async fn agent(&self, pane: &str) -> Value {
        ask(&self.herdr.socket, "agent.get", json!({"target": pane})).await
    }

    async fn quit_pi(&mut self, pane: &'static str, now: &str) {
        self.pis.remove(pane).unwrap().kill();
        until("the Pi is gone", async || self.agent(now).await["result"].is_null()).await;
    }

    /// What happened before the recorded request of this number.
    async fn before(&mut self, number: u32) {
        let path = |project: &str| format!("{PROJECTS}/{project}");
        let alpha = (
            "agent_session_path",
            format!(
                "{SESSIONS}/--tmp-herdr-lab-proj-alpha--/2026-11-30T08-16-17-000Z_127aae43-e110-4913-9747-0b8c0760ef16.jsonl"
            ),
        );
        let beta = (
            "agent_session_path",
            format!(
                "{SESSIONS}/--tmp-herdr-lab-proj-beta--/2026-11-30T08-16-18-000Z_646bfe92-04ca-4420-89ee-c998d3b0cc90.jsonl"
            ),
        );
        let gamma = (
            "agent_session_path",
            format!(
                "{SESSIONS}/--tmp-herdr-lab-proj-gamma--/2026-11-30T08-16-18-000Z_1ac11fe8-4ce8-41ab-831d-9402d7600245.jsonl"
            ),
        );
        let by_id = ("agent_session_id", "0198c0de-0000-7000-8000-000000000003".to_owned());
        let renewed = (
            "agent_session_path",
            format!(
                "{SESSIONS}/--tmp-herdr-lab-proj-alpha--/2026-11-30T08-16-31-000Z_7e72db06-8056-4c3c-9128-95b25cb93db9.jsonl"
            ),
        );
        let checkout = |path_of: &str, branch: &str, is_linked| Checkout {
            repo_name: "alpha".into(),
            repo_root: path("alpha"),
            path: path(path_of),
            branch: branch.into(),
            is_linked,
        };
        match number {
            8 => {
                self.herdr.server.create_workspace("alpha", &path("alpha"), None, true);
                self.herdr.server.create_workspace("beta", &path("beta"), None, false);
                self.herdr.server.create_workspace("gamma", &path("gamma"), None, false);
                self.herdr.server.create_pane("w2:t1", &path("beta")).unwrap();
                self.herdr.server.create_tab("w3", Some("logs"), &path("gamma")).unwrap();
            }
            19 => {
                self.start_pi("w1:p1", alpha).await;
                self.start_pi("w2:p1", beta).await;
                self.start_pi("w3:p1", gamma).await;
                self.start_pi("w2:p2", by_id).await;
            }
            29 => self.herdr.server.name_agent("w1:p1", Some("lead-alpha")),
            37 => self.herdr.server.set_workspace_tokens("w1", &[("goal", "ship v1")]),
            47 => {
                self.report("w1:p1", "blocked", alpha).await;
                self.report("w3:p1", "working", gamma).await;
                self.report("w2:p1", "working", beta).await;
            }
            51 => {
                let screen = "op@box:/home/op/lab/proj/alpha# /home/op/lab/fakepi/pi\nfake pi session 127aae43-e110-4913-9747-0b8c0760ef16 {'agent_session_path': '/home/op/lab/h\nome/.pi/agent/sessions/--tmp-herdr-lab-proj-alpha--/2026-11-30T08-16-17-000Z_127aae43-e110-49\n13-9747-0b8c0760ef16.jsonl'}\n[fakepi] idle  -> {'type': 'ok'}\n> /block May I push to main?\n[fakepi] blocked May I push to main? -> {'type': 'ok'}\n>";
                self.herdr.server.set_screen("w1:p1", screen);
                self.herdr.server.set_screen("w3:p2", "op@box:/home/op/lab/proj/gamma#");
            }
            64 => {
                // Their time is up.
                let cleared = json!({
                    "pane_id": "w1:p1", "source": "custom:chief", "clear_title": true,
                    "clear_display_agent": true, "clear_state_labels": true,
                    "tokens": {"summary": null, "ctx": null},
                });
                let reply = ask(&self.herdr.socket, "pane.report_metadata", cleared).await;
                assert_eq!(reply["result"]["type"], "ok");
                self.herdr.server.set_workspace_tokens("w1", &[]);
                self.report("w2:p1", "idle", beta).await;
                until("seen to have ended", async || {
                    self.agent("w2:p1").await["result"]["agent"]["agent_status"] == "done"
                })
                .await;
            }
            66 => self.herdr.server.focus("w2:p1"),
            77 => {
                self.herdr.server.focus("w1:p1");
                self.herdr.server.focus("w3:p1");
                self.report("w2:p2", "working", by_id.clone()).await;
                self.report("w2:p2", "idle", by_id).await;
                self.report("w1:p1", "working", alpha).await;
                self.tell("pane.report_agent_session", json!({"pane_id": "w1:p1", renewed.0: renewed.1}))
                    .await;
                self.report("w1:p1", "idle", renewed).await;
            }
            78 => {
                self.herdr.server.add_checkout(checkout("alpha", "main", false));
                self.herdr.server.add_checkout(checkout("alpha-wt", "feat", true));
            }
            82 => {
                self.herdr.server.show_worktree("w1");
                for (name, branch) in [("alpha-wt", "feat"), ("alpha-x", "lab/x")] {
                    let checkout = checkout(name, branch, true);
                    self.herdr.server.create_workspace(name, &path(name), Some(checkout), false);
                }
            }
            90 => {
                self.herdr.server.rename_workspace("w3", "gamma2");
                self.herdr.server.rename_tab("w3:t2", "logs2");
                self.herdr.server.rename_pane("w3:p2", "console");
                assert_eq!(self.herdr.server.move_pane("w2:p2", "moved").unwrap(), "w6:p1");
            }
            99 => self.quit_pi("w3:p1", "w3:p1").await,
            104 => {
                self.quit_pi("w2:p2", "w6:p1").await;
                self.herdr.server.close_pane("w6:p1");
                self.herdr.server.close_pane("w3:p2");
                self.herdr.server.close_workspace("w3");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn every_recorded_request_is_answered_as_recorded() {
    let mut world = World { herdr: Herdr::start().await, pis: BTreeMap::new() };
    let mut compared = BTreeMap::<String, usize>::new();
    let mut errors = 0;
    let mut differences = Vec::new();
    for record in records() {
        world.before(record.number).await;
        let ours: Value =
            serde_json::from_str(&exchange(&world.herdr.socket, &record.request).await).unwrap();
        let place = format!("{} {}", record.number, record.method);
        let (mut recorded, mut ours) = (record.response, ours);
        trim_text(&mut recorded);
        trim_text(&mut ours);
        same(&recorded, &ours, &place, "", &mut differences);
        errors += usize::from(recorded.get("error").is_some());
        *compared.entry(record.method).or_default() += 1;
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert_eq!(compared.len(), 20, "{compared:?}");
    assert_eq!(compared.values().sum::<usize>(), 60, "{compared:?}");
    assert_eq!(errors, 8);
}

/// Herdr ends the visible grid with a newline where blank rows follow; not worth imitating.
fn trim_text(reply: &mut Value) {
    if let Some(text) = reply.pointer_mut("/result/read/text") {
        *text = text.as_str().unwrap().trim_end().into();
    }
}

/// A value without its content: keys and types.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            // Names in these are free.
            .map(|(key, value)| match key.as_str() {
                "tokens" | "state_labels" => (key.clone(), json!("map")),
                _ => (key.clone(), shape(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(array) => array.first().map_or(json!([]), |first| json!([shape(first)])),
        Value::String(_) => json!("string"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("boolean"),
        Value::Null => json!("null"),
    }
}

fn recorded_events(file: &str) -> (Value, BTreeMap<String, Vec<Value>>) {
    let text = std::fs::read_to_string(fixtures().join(file)).unwrap();
    let mut events = BTreeMap::<String, Vec<Value>>::new();
    let mut request = Value::Null;
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        match record.get("event") {
            Some(event) => {
                events.entry(event["event"].as_str().unwrap().to_owned()).or_default().push(shape(event));
            }
            None => request = record["request"].clone(),
        }
    }
    (request, events)
}

/// Opens a recorded subscription and reads until nothing has come for a while.
async fn stream(herdr: &Herdr, request: &Value) -> UnixStream {
    let mut stream = UnixStream::connect(&herdr.socket).await.unwrap();
    stream.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    stream
}

/// Reads lines until one holds `last`.
async fn lines_until(stream: &mut UnixStream, last: &str) -> Vec<Value> {
    let mut text = String::new();
    let read = async {
        loop {
            let mut chunk = [0; 4096];
            let count = stream.read(&mut chunk).await.unwrap();
            assert!(count > 0, "ended early");
            text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
            if text.ends_with('\n') && text.contains(last) {
                return text;
            }
        }
    };
    let text = tokio::time::timeout(crate::support::DEADLINE, read).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn global_events_look_as_recorded_and_never_tell_a_status() {
    let (request, recorded) = recorded_events("events_global.jsonl");
    let mut world = World { herdr: Herdr::start().await, pis: BTreeMap::new() };
    for number in [8, 19] {
        world.before(number).await;
    }
    // Half of it is old, half is live.
    let mut stream = stream(&world.herdr, &request).await;
    let old = lines_until(&mut stream, "pane_agent_detected").await;
    assert_eq!(old[0], json!({"id": "sub-global", "result": {"type": "subscription_started"}}));
    for number in [37, 47, 64, 66, 77, 78, 82, 90, 99, 104] {
        world.before(number).await;
    }
    let live = lines_until(&mut stream, "workspace_closed").await;
    let ours: Vec<&Value> = old[1..].iter().chain(&live).collect();
    let mut seen = BTreeMap::<&str, usize>::new();
    for event in ours {
        let name = event["event"].as_str().unwrap();
        assert_ne!(name, "pane.agent_status_changed");
        assert_eq!(event["data"]["type"], name);
        *seen.entry(name).or_default() += 1;
        // Events about the pane that was moved carry layouts in the recording.
        if let Some(known) = recorded.get(name).filter(|_| name != "pane_moved") {
            assert!(known.contains(&shape(event)), "{event}\nis like none of\n{known:#?}");
        }
    }
    for name in [
        "workspace_created",
        "workspace_focused",
        "workspace_renamed",
        "workspace_closed",
        "workspace_updated",
        "tab_created",
        "tab_renamed",
        "pane_created",
        "pane_focused",
        "pane_closed",
        "pane_agent_detected",
        "pane_moved",
        "layout_updated",
    ] {
        assert!(seen.contains_key(name), "{name} is missing: {seen:?}");
    }
}

#[tokio::test]
async fn only_a_panes_own_subscription_tells_its_status() {
    let (request, recorded) = recorded_events("events_agent_status.jsonl");
    let mut world = World { herdr: Herdr::start().await, pis: BTreeMap::new() };
    for number in [8, 19] {
        world.before(number).await;
    }
    let mut stream = stream(&world.herdr, &request).await;
    // Its own start says nothing about the past.
    let started = lines_until(&mut stream, "subscription_started").await;
    assert_eq!(started.len(), 1);
    for number in [47, 64, 99] {
        world.before(number).await;
    }
    let events = lines_until(&mut stream, "\"unknown\"").await;
    let told: Vec<(&str, &str)> = events
        .iter()
        .map(|event| {
            assert!(recorded["pane.agent_status_changed"].contains(&shape(event)), "{event}");
            (event["data"]["pane_id"].as_str().unwrap(), event["data"]["agent_status"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("w1:p1", "blocked"),
            ("w3:p1", "working"),
            ("w2:p1", "working"),
            ("w2:p1", "done"),
            ("w3:p1", "unknown"),
        ]
    );
}

#[tokio::test]
async fn what_can_not_be_parsed_is_refused_with_an_empty_id() {
    let herdr = Herdr::start().await;
    for (line, words) in [
        ("nonsense", "expected"),
        (r#"{"id":"x","method":"no.such","params":{}}"#, "unknown variant `no.such`, expected one of `ping`"),
        (r#"{"id":"x","method":"ping"}"#, "missing field `params`"),
        (r#"{"id":7,"method":"ping","params":{}}"#, "invalid type"),
        (r#"{"id":"x","method":"pane.get","params":{}}"#, "missing field `pane_id`"),
        (
            r#"{"id":"x","method":"events.subscribe","params":{"subscriptions":[{"type":"pane.created"},{"type":"pane.sung"}]}}"#,
            "unknown variant `pane.sung`, expected one of",
        ),
    ] {
        let reply: Value = serde_json::from_str(&exchange(&herdr.socket, line).await).unwrap();
        assert_eq!(reply["id"], "", "{reply}");
        assert_eq!(reply["error"]["code"], "invalid_request", "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(words), "{reply}");
    }
}

#[tokio::test]
async fn old_events_are_told_up_to_five_hundred_and_twelve() {
    let herdr = Herdr::start().await;
    herdr.server.create_workspace("one", "/tmp", None, true);
    for nth in 0..600 {
        herdr.server.rename_workspace("w1", &format!("label {nth}"));
    }
    let request = json!({"id": "s", "method": "events.subscribe", "params": {"subscriptions": [{"type": "workspace.renamed"}]}});
    let mut stream = stream(&herdr, &request).await;
    let lines = lines_until(&mut stream, "label 599").await;
    assert_eq!(lines.len(), 1 + 512);
    assert_eq!(lines[1]["data"]["label"], "label 88");
}
