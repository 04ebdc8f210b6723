//! The control socket: `headman serve`, the verbs that go through it, and who floods it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use headman::contract::{Kind, Message, SessionId, Uuid};
use headman::control::socket::ControlSocket;
use headman::disk::inbox::{self, Content};
use headman::disk::records::{self, Holding};

use crate::cli_support::{DEADLINE, Herd, until};

pub(crate) const ASK: &str = "99999999-8888-4777-a666-555555555555";

pub(crate) struct Serve<'a> {
    herd: &'a Herd,
    pub(crate) child: Child,
    lines: mpsc::Receiver<String>,
}

impl<'a> Serve<'a> {
    pub(crate) fn start(herd: &'a Herd) -> Self {
        Self::run(herd, herd.place.start(&["serve"]))
    }

    pub(crate) fn run(herd: &'a Herd, mut child: Child) -> Self {
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut serve = Self { herd, child, lines };
        serve.told("Chief under lease");
        serve
    }

    /// Waits until it says a line that holds `part`.
    pub(crate) fn told(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => panic!("it did not say {part:?}: {error}"),
            }
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(pid_of(&self.child), signal).unwrap();
    }

    pub(crate) fn end(mut self) -> (i32, String) {
        self.signal(rustix::process::Signal::TERM);
        let code = self.child.wait().unwrap().code().unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (code, told)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_of(self.herd)
    }

    pub(crate) fn connect(&self) -> (UnixStream, BufReader<UnixStream>) {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut hello = String::new();
        reader.read_line(&mut hello).unwrap();
        assert!(hello.starts_with(r#"{"v":1,"hello":{"pid":"#), "{hello}");
        (stream, reader)
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pid_of(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

pub(crate) fn socket_of(herd: &Herd) -> PathBuf {
    let runtime = herd.place.path("");
    ControlSocket::find(&herd.place.state_dir(), herd.server.socket().as_os_str(), Some(&runtime), &runtime)
        .path()
        .to_owned()
}

pub(crate) fn herd() -> Herd {
    let mut herd = Herd::new();
    herd.agent("s-1", "api", Some("auth"));
    herd.record("s-1", Some((Uuid::parse(ASK).unwrap(), "Rotate them?")));
    herd
}

pub(crate) fn inbox_of(herd: &Herd, session: &str) -> Vec<Message> {
    let inbox = herd.runtime().inbox(&SessionId::new(session).unwrap());
    let entries = inbox::list(&inbox).unwrap();
    entries
        .into_iter()
        .filter_map(|entry| match entry.content {
            Content::Valid(message) => Some(*message),
            _ => None,
        })
        .collect()
}

/// The lead takes what stands in its inbox.
pub(crate) fn take_all(herd: &Herd, session: &str) {
    let inbox = herd.runtime().inbox(&SessionId::new(session).unwrap());
    for message in inbox_of(herd, session) {
        // Whoever published it may still hold its lock.
        until("the message's lock", || inbox::remove(&inbox, message.id).is_ok());
    }
}

#[test]
fn verbs_go_through_the_running_chief_under_its_lease() {
    let herd = herd();
    let mut serve = Serve::start(&herd);
    let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    assert_eq!(chief.claim.pid.to_string(), serve.child.id().to_string());
    let socket = std::fs::symlink_metadata(serve.socket()).unwrap();
    assert_eq!(socket.mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(serve.socket().parent().unwrap()).unwrap().mode() & 0o777, 0o700);

    let ran = herd.place.run_with(&["message", "s-1", "-", "--json"], b"Have a look at the tests.\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = ran.json();
    assert_eq!((&told["session"], &told["fate"]), (&"s-1".into(), &"queued".into()));
    let ran = herd.place.run(&["reply", "s-1", &ASK[..8], "Rotate", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["ask_id"], ASK);
    // A second reply would be one too many.
    let ran = herd.place.run(&["reply", "s-1", ASK, "Rotate"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("inbox already: wait until the lead takes it, or write a message"),
        "{}",
        ran.stderr
    );

    let mut queued = inbox_of(&herd, "s-1");
    queued.sort_by_key(|message| message.kind == Kind::ChiefReply);
    assert_eq!(queued.len(), 2);
    assert!(queued.iter().all(|message| message.lease == chief.lease && message.from == chief.session));
    assert_eq!(queued[0].text, "Have a look at the tests.");
    assert_eq!(queued[1].text, "Rotate");
    assert_eq!(queued[1].ask, Uuid::parse(ASK));
    serve.told("queued");

    // Another lead's message waits for its taking; the lease stays with the one that serves.
    let waits = herd.place.start(&["message", "s-1", "and now?", "--wait", "10s"]);
    until("the message", || inbox_of(&herd, "s-1").len() == 3);
    take_all(&herd, "s-1");
    let waited = waits.wait_with_output().unwrap();
    assert_eq!(waited.status.code(), Some(0), "{waited:?}");
    assert!(String::from_utf8_lossy(&waited.stdout).contains("taken"), "{waited:?}");
    let ran = herd.place.run(&["message", "s-1", "nobody takes this", "--wait", "0s"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("queued: in the lead's inbox"), "{}", ran.stdout);
    let Holding::Held(still) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    assert_eq!(still, chief);

    let (code, told) = serve.end();
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(matches!(records::read_holding(&herd.runtime()).unwrap(), Holding::Free));
    let left: Vec<_> = std::fs::read_dir(socket_of(&herd).parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn without_a_chief_the_verbs_name_the_way_to_one() {
    let herd = herd();
    for arguments in [&["message", "s-1", "hello"][..], &["reply", "s-1", ASK, "yes"]] {
        let ran = herd.place.run(arguments);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("headman serve"), "{}", ran.stderr);
    }
    assert!(!herd.place.state_dir().exists(), "nothing is made for it");
    let serve = Serve::start(&herd);
    // Stopped, it answers nothing; killed, it leaves a socket that is nobody's.
    serve.signal(rustix::process::Signal::STOP);
    let ran = herd.place.run(&["message", "s-1", "hello"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains(&format!("process {}", serve.child.id())), "{}", ran.stderr);
    assert!(ran.stderr.contains("may be suspended"), "{}", ran.stderr);
    let socket = serve.socket();
    drop(serve);
    assert!(socket.exists());
    let ran = herd.place.run(&["message", "s-1", "hello"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("no Chief is running here"), "{}", ran.stderr);
    let serve = Serve::start(&herd);
    assert_eq!(herd.place.run(&["message", "s-1", "hello"]).code, 0);
    assert_eq!(serve.end().0, 0);
}

#[test]
fn only_one_serves_and_a_foreign_chief_is_respected() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let ran = herd.place.run(&["serve"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains(&format!("process {}", serve.child.id())), "{}", ran.stderr);
    // Of another state directory it is another's.
    let elsewhere = herd.place.path("elsewhere");
    let ran = herd.place.run(&["serve", "--state-dir", elsewhere.to_str().unwrap()]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("is Chief"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("Chief under lease"));
    let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    assert_eq!(chief.claim.pid.to_string(), serve.child.id().to_string());
    assert_eq!(serve.end().0, 0);
}

#[test]
fn a_line_that_is_none_ends_only_its_own_connection() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let long = vec![b'x'; 600 * 1024];
    for garbage in [
        &b"hello\n"[..],
        b"{\"v\":2,\"request\":\"register_again\"}\n",
        b"{\"v\":1,\"request\":{\"shutdown\":null}}\n",
        b"\xFF\xFE\n",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
        &long,
    ] {
        let (mut stream, reader) = serve.connect();
        // It may be closed before everything is written.
        let _ = stream.write_all(garbage);
        let last = reader.lines().map_while(Result::ok).last().unwrap_or_default();
        assert!(last.contains(r#""error":""#), "{last} after {:?}", &garbage[..garbage.len().min(40)]);
    }
    assert_eq!(herd.place.run(&["message", "s-1", "hello"]).code, 0);
    assert_eq!(serve.end().0, 0);
}

#[test]
fn who_floods_or_reads_nothing_holds_nobody_up() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let until_now = Instant::now();
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let (mut stream, reader) = serve.connect();
            stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
            std::thread::spawn(move || {
                let lines = b"{\"v\":1,\"request\":{\"waiting\":true}}\n".repeat(1000);
                // It takes them at its pace, and may not take all.
                let _ = (0..20).try_for_each(|_| stream.write_all(&lines));
                drop(reader);
            })
        })
        .collect();
    // More than are served at once: those beyond are told.
    let (held, refused): (Vec<_>, Vec<_>) =
        (0..40).map(|_| UnixStream::connect(serve.socket()).unwrap()).partition(|stream| {
            let mut line = String::new();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line.contains("hello")
        });
    assert!((20..=32).contains(&held.len()), "{}", held.len());
    assert!(!refused.is_empty());
    drop(held);
    drop(refused);
    for nth in 0..5 {
        let text = format!("message {nth}");
        until("to be served", || herd.place.run(&["message", "s-1", &text]).code == 0);
    }
    assert_eq!(inbox_of(&herd, "s-1").len(), 5);
    assert!(until_now.elapsed() < Duration::from_secs(60));
    assert_eq!(serve.end().0, 0);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
}

#[test]
fn a_chief_that_is_killed_is_replaced_by_the_next_to_serve() {
    let herd = herd();
    let serve = Serve::start(&herd);
    assert_eq!(herd.place.run(&["message", "s-1", "first"]).code, 0);
    let before = inbox_of(&herd, "s-1")[0].clone();
    // SIGKILL.
    drop(serve);
    let serve = Serve::start(&herd);
    // The lead's session can't be read, so whether it has the message is the operator's to judge.
    until("the old message to be settled", || {
        let ran = herd.place.run(&["message", "s-1", "second"]);
        ran.code == 0 && inbox_of(&herd, "s-1").iter().any(|it| it.lease != before.lease)
    });
    assert_eq!(serve.end().0, 0);
}

#[test]
fn json_lines_of_a_chief_without_a_screen() {
    let herd = herd();
    let mut child = herd.place.command(&["serve", "--json"]).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let settled = ["standing", "registration", "received"];
    while !settled.iter().all(|what| seen.iter().any(|it| it == what)) {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(line["at"].as_u64().unwrap() > 1_700_000_000_000 && line["text"].is_string());
        assert!(!line["text"].as_str().unwrap().contains("not the Chief"), "{line}");
        seen.push(line["what"].as_str().unwrap().to_owned());
    }
    // Before it is Chief neither says anything.
    let first = seen.iter().find(|what| settled.contains(&what.as_str()));
    assert_eq!(first.map(String::as_str), Some("standing"), "{seen:?}");
    rustix::process::kill_process(pid_of(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn another_user_is_not_served() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !crate::golden::is_root() {
        return;
    }
    let herd = herd();
    let serve = Serve::start(&herd);
    let socket = serve.socket();
    let as_nobody = || {
        let mut command = herd.place.command(&["message", "s-1", "hello", "--json"]);
        // It may not reach the program, wherever that was built.
        let output = command.uid(65534).gid(65534).output().ok()?;
        Some((output.status.code(), String::from_utf8(output.stderr).unwrap()))
    };
    for path in [herd.place.path(""), herd.place.path("home")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let Some((code, told)) = as_nobody() else { return };
    assert_eq!(code, Some(4), "{told}");
    assert!(told.contains("ermission denied"), "{told}");
    // Even where directory and socket let it in.
    std::fs::set_permissions(socket.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let Some((code, told)) = as_nobody() else { return };
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("belongs to user 0"), "{told}");
    assert!(inbox_of(&herd, "s-1").is_empty());
    assert_eq!(serve.end().0, 0);
}

#[test]
fn what_was_received_is_marked_as_read_by_the_running_chief() {
    let herd = herd();
    let lead = SessionId::new("s-1").unwrap();
    let serve = Serve::start(&herd);
    let unread = || {
        let ran = herd.place.run(&["inbox", "--json", "--unread"]);
        let lines = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let Holding::Held(chief) = records::read_holding(&herd.runtime()).unwrap() else { panic!() };
    let message = Message {
        id: Uuid::random(),
        lease: chief.lease,
        kind: Kind::LeadMessage,
        from: lead.clone(),
        to: chief.session.clone(),
        lead,
        ask: None,
        text: "done".into(),
        created_at: headman::contract::Timestamp::from_millis(1_796_043_600_000),
    };
    let inbox = herd.runtime().inbox(&chief.session);
    inbox::publish(herd.place.agent_dir().path(), &inbox, &message).unwrap();
    until("the message and the ask", || unread().len() == 2);
    let id = message.id.to_string();
    let ran = herd.place.run(&["inbox", "--mark-read", "ffffffff", &id]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no message has the id ffffffff"), "{}", ran.stderr);
    assert_eq!(unread().len(), 2, "none is marked then");
    let ran = herd.place.run(&["inbox", "--mark-read", &id[..8], "--json"]);
    assert_eq!((ran.code, ran.json()["marked"].as_u64()), (0, Some(1)), "{}", ran.stderr);
    assert!(!unread().contains(&id) && unread().len() == 1);
    assert_eq!(serve.end().0, 0);
    let ran = herd.place.run(&["inbox", "--mark-read", &id]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("headman serve"), "{}", ran.stderr);
}
