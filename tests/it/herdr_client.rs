//! The client against a Herdr that fails in every way, and against odd but valid replies.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use headman::contract::Untrusted;
use headman::demo::server::{Checkout, Fault};
use headman::herdr::api::Shown;
use headman::herdr::client::MIN_PROTOCOL;
use headman::herdr::{Client, HerdrError, Status, Subscription, blocking};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::support::{DEADLINE, Herdr, Program, until};

/// Asks the same through the async client and its blocking twin; both must fail alike.
async fn failure(socket: &Path, time: Duration) -> HerdrError {
    let error =
        Client::new(socket.to_path_buf()).with_timeout(time).request("ping", json!({})).await.unwrap_err();
    let path = socket.to_path_buf();
    let twin = tokio::task::spawn_blocking(move || blocking::request(&path, time, "ping", json!({})));
    assert_eq!(twin.await.unwrap().unwrap_err(), error);
    error
}

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn no_socket_and_nobody_listening_are_told_apart() {
    let herdr = Herdr::start().await;
    herdr.server.set_fault(Fault::Refuse).await.unwrap();
    let error = failure(&herdr.socket, DEADLINE).await;
    assert_eq!(error, HerdrError::Refused { path: herdr.socket.clone() });
    herdr.server.set_fault(Fault::Gone).await.unwrap();
    let error = failure(&herdr.socket, DEADLINE).await;
    assert_eq!(error, HerdrError::NoSocket { path: herdr.socket.clone() });
    assert!(error.to_string().contains(herdr.socket.to_str().unwrap()));
    herdr.server.set_fault(Fault::None).await.unwrap();
    herdr.client().ping().await.unwrap();
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_is_an_error_and_no_panic() {
    let path = Path::new("/tmp").join("x".repeat(200));
    for error in [
        Client::new(path.clone()).ping().await.unwrap_err(),
        blocking::request(&path, SHORT, "ping", json!({})).unwrap_err(),
    ] {
        assert!(matches!(error, HerdrError::Io { .. }), "{error}");
    }
}

#[tokio::test]
async fn silence_and_lateness_end_with_the_time_allowed() {
    let herdr = Herdr::start().await;
    for fault in [Fault::Silent, Fault::Late(Duration::from_secs(60))] {
        herdr.server.set_fault(fault).await.unwrap();
        let before = Instant::now();
        let error = failure(&herdr.socket, SHORT).await;
        assert_eq!(error, HerdrError::TimedOut { method: "ping".into(), after: SHORT });
        assert!(before.elapsed() >= 2 * SHORT && before.elapsed() < DEADLINE);
    }
    herdr.server.set_fault(Fault::Late(SHORT)).await.unwrap();
    herdr.client().ping().await.unwrap();
}

#[tokio::test]
async fn a_listener_that_never_accepts_costs_no_more_than_the_time_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&listener, &rustix::net::SocketAddrUnix::new(&socket).unwrap()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let waiting = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    assert_eq!(failure(&socket, SHORT).await, HerdrError::TimedOut { method: "ping".into(), after: SHORT });
    drop(waiting);
}

#[tokio::test]
async fn garbage_is_named_and_its_excerpt_is_safe_to_show() {
    let herdr = Herdr::start().await;
    for (bytes, why) in [
        (b"\x1b]0;owned\x07\xff\xfe\x9b31m\n".to_vec(), "not JSON"),
        (b"HTTP/1.1 400 Bad Request\n".to_vec(), "not JSON"),
        (b"\n".to_vec(), "not JSON"),
        (b"[1]\n".to_vec(), "not an object"),
        (b"{\"id\":\"x\"}\n".to_vec(), "neither result nor error"),
        (b"{\"id\":\"x\",\"result\":7}\n".to_vec(), "neither result nor error"),
        (format!("{}1{}\n", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(), "not an object"),
    ] {
        herdr.server.set_fault(Fault::Garbage(bytes)).await.unwrap();
        let error = failure(&herdr.socket, DEADLINE).await;
        let HerdrError::Garbage { why: found, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, why);
        let text = error.to_string();
        assert!(text.len() < 2000);
        assert!(!text.chars().any(headman::contract::text::is_unsafe_to_show), "{text}");
    }
}

#[tokio::test]
async fn a_connection_cut_short_is_no_answer() {
    let herdr = Herdr::start().await;
    for fault in [Fault::Cut, Fault::Garbage(b"{\"id\":\"x\",\"resu".to_vec())] {
        herdr.server.set_fault(fault).await.unwrap();
        assert_eq!(failure(&herdr.socket, DEADLINE).await, HerdrError::Closed { method: "ping".into() });
    }
}

#[tokio::test]
async fn a_hundred_megabytes_are_not_read() {
    let herdr = Herdr::start().await;
    herdr.server.set_fault(Fault::Huge(100 << 20)).await.unwrap();
    let error = failure(&herdr.socket, DEADLINE).await;
    assert!(
        matches!(error, HerdrError::TooLarge { what: "the reply", limit, .. } if limit == 16 << 20),
        "{error}"
    );
}

#[tokio::test]
async fn what_follows_the_first_line_is_not_read() {
    let herdr = Herdr::start().await;
    let reply = b"{\"id\":\"another\",\"result\":{\"type\":\"pong\",\"protocol\":20}}\nnonsense".to_vec();
    herdr.server.set_fault(Fault::Garbage(reply)).await.unwrap();
    assert_eq!(herdr.client().ping().await.unwrap().protocol, 20);
}

#[tokio::test]
async fn an_error_with_an_empty_id_is_the_answer() {
    let herdr = Herdr::start().await;
    let fault = Fault::Error { code: "server_unavailable".into(), message: "starting \u{1b}[2J".into() };
    herdr.server.set_fault(fault).await.unwrap();
    let error = failure(&herdr.socket, DEADLINE).await;
    assert_eq!(*error.code().unwrap(), "server_unavailable");
    assert_eq!(error.to_string(), "Herdr refused ping: starting \\u{1b}[2J (server_unavailable)");
    herdr.server.set_fault(Fault::None).await.unwrap();
    let error = herdr.client().pane_get("w9:p9").await.unwrap_err();
    assert_eq!(*error.code().unwrap(), "pane_not_found");
}

#[tokio::test]
async fn a_request_too_large_is_not_sent() {
    let herdr = Herdr::start().await;
    let error = herdr.client().request("ping", json!({"x": "x".repeat(1 << 20)})).await.unwrap_err();
    assert!(matches!(error, HerdrError::TooLarge { what: "the request", .. }), "{error}");
    assert_eq!(herdr.server.calls(), []);
    // Just below goes through, although no socket buffer takes it at once.
    herdr.client().request("ping", json!({"x": "x".repeat((1 << 20) - 200)})).await.unwrap();
}

#[tokio::test]
async fn older_protocols_are_refused_and_newer_ones_are_not() {
    let herdr = Herdr::start().await;
    herdr.server.set_protocol(MIN_PROTOCOL - 1);
    let expected = HerdrError::TooOld { protocol: 15, minimum: 16 };
    assert_eq!(herdr.client().ping().await.unwrap_err(), expected);
    assert_eq!(herdr.client().snapshot().await.unwrap_err(), expected);
    for protocol in [MIN_PROTOCOL, 99] {
        herdr.server.set_protocol(protocol);
        assert_eq!(herdr.client().ping().await.unwrap().protocol, protocol);
        assert_eq!(herdr.client().snapshot().await.unwrap().protocol, Some(protocol));
    }
}

#[cfg(target_os = "linux")]
/// A listener that is another user's. Only root can become one; as a user nothing is asserted.
#[tokio::test]
async fn another_users_listener_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let path = socket.clone();
    // The kernel notes the listener's user at this moment. Only this thread becomes another.
    let listener = std::thread::spawn(move || {
        let listener =
            rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None)
                .unwrap();
        rustix::net::bind(&listener, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
        let other = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(other, other, other).unwrap();
        rustix::net::listen(&listener, 8).unwrap();
        listener
    })
    .join()
    .unwrap();
    let expected = HerdrError::ForeignPeer { path: socket.clone(), theirs: 65534, ours: 0 };
    assert_eq!(failure(&socket, DEADLINE).await, expected);
    drop(listener);
}

/// Accepts one connection, reads once, answers.
async fn served_once<T>(answer: &str, ask: impl AsyncFnOnce(Client) -> T) -> (Vec<u8>, T) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let answer = answer.to_owned();
    let serve = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 1 << 16];
        let read = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        request.truncate(read);
        request
    };
    let client = Client::new(socket).with_timeout(DEADLINE);
    tokio::join!(serve, ask(client))
}

#[tokio::test]
async fn a_request_is_one_line_written_at_once() {
    let answer = "{\"id\":\"\",\"result\":{\"type\":\"pong\",\"protocol\":16}}\n";
    let (request, pong) = served_once(answer, async |client| client.ping().await).await;
    assert_eq!(pong.unwrap().version, None);
    assert_eq!(request.iter().filter(|byte| **byte == b'\n').count(), 1);
    let request: Value = serde_json::from_slice(&request).unwrap();
    assert!(request["id"].is_string());
    assert_eq!((&request["method"], &request["params"]), (&json!("ping"), &json!({})));
}

#[tokio::test]
async fn a_snapshot_is_read_field_by_field() {
    let answer = r#"{"id":"","result":{"type":"session_snapshot","snapshot":{"version":7,"protocol":20,"news":[1,{}],
      "workspaces":[{"workspace_id":"w1","label":["no"],"worktree":"no","agent_status":"resting"},{"label":"lost"}],
      "tabs":"none","panes":[{"pane_id":"w1:p1","tab_id":"w1:t1","workspace_id":"w1","scroll":{"max_offset_from_bottom":-1,"viewport_rows":39}}, 5],
      "agents":[
        {"pane_id":"w1:p1","tab_id":"w1:t1","workspace_id":"w1","agent_status":"idle","revision":"first","focused":"yes",
         "tokens":{"a":"1","b":2,"c":null},"agent_session":{"source":"herdr:pi","agent":"pi","kind":"id"},"title":"\ud83d","cwd":"\u0000"},
        {"pane_id":"w1:p2","workspace_id":"w1","agent_status":"idle"},
        {"pane_id":"w1:p3","tab_id":7,"workspace_id":"w1"},
        null,
        {"pane_id":"w1:p0","pane_id":"w1:p4","tab_id":"w1:t1","workspace_id":"w1","agent_status":"asleep","state_change_seq":1e400,
         "agent_session":{"source":"herdr:pi","agent":"pi","kind":"id","value":"s","more":[[[]]]}}]}}}"#;
    let answer = format!("{}\n", answer.replace('\n', " "));
    let (_, snapshot) = served_once(&answer, async |client| client.snapshot().await).await;
    let snapshot = snapshot.unwrap();
    assert_eq!((snapshot.version, snapshot.protocol), (None, Some(20)));
    assert_eq!(snapshot.workspaces.len(), 1);
    assert_eq!(snapshot.workspaces[0].label, None);
    assert_eq!(snapshot.workspaces[0].worktree, None);
    assert_eq!(snapshot.workspaces[0].agent_status, Status::Unknown);
    assert_eq!(snapshot.panes.len(), 1);
    assert_eq!((snapshot.panes[0].max_offset_from_bottom, snapshot.panes[0].viewport_rows), (None, Some(39)));
    let [first, second] = snapshot.agents.as_slice() else { panic!("{:?}", snapshot.agents) };
    assert_eq!((first.agent_status, first.revision, first.focused), (Status::Idle, None, None));
    assert_eq!(first.tokens.len(), 1);
    assert_eq!(first.agent_session, None);
    assert_eq!(first.title.as_ref().unwrap().utf16_len(), 1);
    assert_eq!(second.pane_id, "w1:p4");
    assert_eq!((second.agent_status, second.state_change_seq), (Status::Unknown, None));
    assert_eq!(second.agent_session.as_ref().unwrap().value, "s");
    let dropped: Vec<String> = snapshot.dropped.iter().map(ToString::to_string).collect();
    assert_eq!(
        dropped,
        [
            "workspace 2 of Herdr's snapshot has no usable workspace_id",
            "Herdr's snapshot has no list of tabs",
            "pane 2 of Herdr's snapshot has no usable pane_id",
            "agent 2 of Herdr's snapshot has no usable tab_id: w1:p2, w1",
            "agent 3 of Herdr's snapshot has no usable tab_id: w1:p3, w1",
            "agent 4 of Herdr's snapshot has no usable pane_id",
        ]
    );
}

#[tokio::test]
async fn an_inventory_without_a_snapshot_is_garbage_and_not_an_empty_one() {
    for answer in [
        "{\"id\":\"\",\"result\":{\"type\":\"session_snapshot\"}}\n",
        "{\"id\":\"\",\"result\":{\"type\":\"session_snapshot\",\"snapshot\":[]}}\n",
    ] {
        let (_, snapshot) = served_once(answer, async |client| client.snapshot().await).await;
        assert!(matches!(snapshot.unwrap_err(), HerdrError::Garbage { .. }));
    }
}

#[tokio::test]
async fn a_snapshot_says_what_is_open() {
    let herdr = Herdr::start().await;
    let checkout = Checkout {
        repo_name: "api".into(),
        repo_root: "/src/api".into(),
        path: "/src/api-auth".into(),
        branch: "auth".into(),
        is_linked: true,
    };
    let created = herdr.server.create_workspace("api", "/src/api-auth", Some(checkout), true);
    let program = Program::hinted();
    herdr.server.attach(&created.pane, program.pid(), true);
    let client = herdr.client();
    until("listed", async || client.snapshot().await.unwrap().agents.len() == 1).await;
    let snapshot = client.snapshot().await.unwrap();
    assert_eq!(snapshot.dropped, []);
    let worktree = snapshot.workspaces[0].worktree.clone().unwrap();
    assert_eq!(worktree.repo_root.unwrap(), "/src/api");
    assert_eq!(worktree.is_linked_worktree, Some(true));
    assert_eq!(snapshot.tabs[0].label.clone().unwrap(), "1");
    assert_eq!(snapshot.focused_pane_id.clone().unwrap(), *created.pane);
    assert_eq!(snapshot.agents[0].agent.clone().unwrap(), "pi");
    assert_eq!(snapshot.agents[0].agent_session, None);
    let entries = client.worktree_list(&created.workspace).await.unwrap();
    let own =
        entries.iter().find(|entry| entry.open_workspace_id == Some(Untrusted::from(&*created.workspace)));
    assert_eq!(own.unwrap().branch.clone().unwrap(), "auth");
    let info = client.pane_process_info(&created.pane).await.unwrap();
    assert_eq!(info.foreground_processes[0].pid, Some(u64::from(program.pid())));
    assert_eq!(info.foreground_processes[0].argv0.clone().unwrap(), "sleep");
}

#[tokio::test]
async fn reading_never_disturbs_a_full_screen_program() {
    let herdr = Herdr::start().await;
    let pane = herdr.server.create_workspace("one", "/tmp", None, true).pane;
    let client = herdr.client();
    herdr.server.set_scrollback(&pane, &["old one", "old two"]);
    herdr.server.set_screen(&pane, "on the screen");
    let read = client.pane_read(&pane).await.unwrap();
    assert_eq!(
        (read.source, read.text),
        ("recent_unwrapped", Untrusted::from("old one\nold two\non the screen"))
    );
    herdr.server.set_full_screen(&pane, true);
    let read = client.pane_read(&pane).await.unwrap();
    assert_eq!((read.source, read.text), ("visible", Untrusted::from("on the screen")));
    assert_eq!(client.pane_visible(&pane).await.unwrap().text, "on the screen");
    assert_eq!(herdr.server.disturbances(&pane), 0);
    // The counter does count.
    let careless = json!({"pane_id": pane, "source": "recent_unwrapped", "lines": 80});
    client.request("pane.read", careless).await.unwrap();
    assert_eq!(herdr.server.disturbances(&pane), 1);
}

#[tokio::test]
async fn focus_and_notices_go_through() {
    let herdr = Herdr::start().await;
    herdr.server.create_workspace("one", "/tmp", None, true);
    let second = herdr.server.create_workspace("two", "/tmp", None, false);
    let client = herdr.client();
    client.pane_focus(&second.pane).await.unwrap();
    assert_eq!(client.snapshot().await.unwrap().focused_pane_id.unwrap(), *second.pane);
    let shown = client.notification_show(&"ä".repeat(200), Some("body"), None).await.unwrap();
    assert_eq!(shown, Shown { shown: false, reason: Some(Untrusted::from("disabled")) });
    let call = herdr.server.calls().pop().unwrap();
    assert_eq!(call.params["title"].as_str().unwrap().chars().count(), 80);
    herdr.server.set_notices(true);
    assert!(client.notification_show("t", None, None).await.unwrap().shown);
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

#[tokio::test]
async fn events_come_old_ones_first_and_end_with_the_server() {
    let herdr = Herdr::start().await;
    let client = herdr.client();
    herdr.server.create_workspace("one", "/tmp", None, true);
    let mut events = client.subscribe(&Subscription::all_global()).await.unwrap();
    assert_eq!(events.refused(), [""; 0]);
    assert_eq!(within(events.next()).await.unwrap().name, "workspace_created");
    // A wait given up loses nothing.
    herdr.server.rename_workspace("w1", "renamed");
    let mut name = Untrusted::from("");
    while name != "workspace_renamed" {
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(50), events.next()).await {
            name = event.unwrap().name;
        }
    }
    herdr.server.set_fault(Fault::Refuse).await.unwrap();
    let ended = loop {
        if let Err(error) = within(events.next()).await {
            break error;
        }
    };
    assert_eq!(ended, HerdrError::Closed { method: "events.subscribe".into() });
}

#[tokio::test]
async fn a_kind_the_server_does_not_know_costs_only_itself() {
    let herdr = Herdr::start().await;
    herdr.server.set_unknown_kinds(&["workspace.reordered", "worktree.opened"]);
    let mut events = herdr.client().subscribe(&Subscription::all_global()).await.unwrap();
    let mut refused = events.refused().to_vec();
    refused.sort();
    assert_eq!(refused, ["workspace.reordered", "worktree.opened"]);
    herdr.server.create_workspace("one", "/tmp", None, true);
    assert_eq!(within(events.next()).await.unwrap().name, "workspace_created");
    let only = [Subscription::global("workspace.reordered")];
    let error = herdr.client().subscribe(&only).await.err().unwrap();
    assert_eq!(*error.code().unwrap(), "invalid_request");
}

#[tokio::test]
async fn a_panes_status_is_told_to_those_who_watch_it() {
    let herdr = Herdr::start().await;
    let client = herdr.client();
    let pane = herdr.server.create_workspace("one", "/tmp", None, true).pane;
    let mut events = client.subscribe(&[Subscription::status_of(&pane)]).await.unwrap();
    let report = json!({"pane_id": pane, "source": "custom:x", "agent": "x", "state": "blocked"});
    client.request("pane.report_agent", report).await.unwrap();
    let event = within(events.next()).await.unwrap();
    assert_eq!(event.name, "pane.agent_status_changed");
    assert_eq!(
        (event.pane_id.unwrap(), event.agent_status),
        (Untrusted::from(&*pane), Some(Status::Blocked))
    );
}

#[tokio::test]
async fn a_wait_given_up_within_a_line_loses_none_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let client = Client::new(socket).with_timeout(DEADLINE);
    let wanted = Subscription::all_global();
    let (accepted, events) = tokio::join!(
        async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream
                .write_all(b"{\"id\":\"\",\"result\":{\"type\":\"subscription_started\"}}\n")
                .await
                .unwrap();
            stream
        },
        client.subscribe(&wanted)
    );
    let (mut stream, mut events) = (accepted, events.unwrap());
    stream.write_all(b"{\"event\":\"tab_cl").await.unwrap();
    assert!(tokio::time::timeout(SHORT, events.next()).await.is_err());
    stream.write_all(b"osed\",\"data\":{}}\nno event\n{\"event\":\"last\"}\n").await.unwrap();
    assert_eq!(within(events.next()).await.unwrap().name, "tab_closed");
    // One that is none does not end the stream.
    assert!(matches!(within(events.next()).await, Err(HerdrError::Garbage { .. })));
    assert_eq!(within(events.next()).await.unwrap().name, "last");
}
