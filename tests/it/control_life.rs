//! Whether the process that serves still does: one that is stopped or hangs, one whose disk does, and a
//! control socket that was removed.

use std::io::BufRead;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use headman::chief::service::Request;
use headman::chief::staff::Letter;
use headman::contract::{SessionId, Uuid};
use headman::control::client;
use headman::control::host::{Host, Options};
use headman::control::socket::ControlSocket;
use headman::fact::{Desk, Done, Fact, FactReceiver, Inquiry, Outcome};
use headman::herdr::Located;
use headman::herdr::locate::Origin;
use headman::pi::discover::SessionDirs;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::cli_support::{Herd, until};
use crate::control::{Serve, herd, inbox_of, socket_of, take_all};
use crate::demo_console::{Served, headman, home, press};
use crate::pty::Harness;
use crate::support::DEADLINE;

#[test]
fn a_console_says_that_the_service_it_uses_is_stopped_and_goes_on_with_it() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut first = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    first.wait_for("to be Chief with an ask, and listed", |it| {
        it.shows("chief since") && it.shows("NEEDS YOU") && !it.shows("can't write up")
    });
    let mut second = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    let pid = first.pid().as_raw_pid();
    let of_the_first = format!("(process {pid})");
    second.wait_for("to use the first", |it| it.shows(&of_the_first) && it.shows("NEEDS YOU"));

    kill_process(first.pid(), Signal::STOP).unwrap();
    second.wait_for("to say so", |it| {
        it.shows(&format!("no answer of process {pid}"))
            && it.shows("may be suspended")
            && it.shows("may be old")
            && it.shows(&format!("kill -CONT {pid}"))
            && !it.shows("chief since")
    });
    press(&mut second, "r", "the composer", |it| it.shows("8192 bytes"));
    press(&mut second, "Yes.", "the text", |it| it.shows("Yes."));
    press(&mut second, "\r", "the refusal", |it| it.shows("Not sent, the draft is kept: process"));

    kill_process(first.pid(), Signal::CONT).unwrap();
    second.wait_for("to be as before", |it| {
        it.shows("● chief since") && it.shows(&of_the_first) && !it.shows("may be old")
    });
    press(&mut second, "\r", "the answer", |it| it.shows("● answered"));
}

/// The next of the facts that are told.
async fn next(facts: &FactReceiver) -> Fact {
    let told = async {
        loop {
            let mut told = facts.take();
            assert!(told.len() < 2, "{}", told.len());
            match told.pop() {
                Some(fact) => return fact,
                None => facts.ready().await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, told).await.unwrap()
}

#[tokio::test]
async fn silence_is_told_once_and_what_was_asked_meanwhile_is_neither_lost_nor_done_later() {
    let dir = tempfile::tempdir().unwrap();
    let socket = ControlSocket::find(dir.path(), "h".as_ref(), Some(dir.path()), dir.path());
    std::fs::create_dir(socket.path().parent().unwrap()).unwrap();
    let listener = tokio::net::UnixListener::bind(socket.path()).unwrap();
    let hello = "{\"v\":1,\"hello\":{\"pid\":7,\"release\":\"0\",\"session\":\"s\",\"again_ms\":300}}\n";
    let accepted = async {
        let (mut service, _) = listener.accept().await.unwrap();
        service.write_all(hello.as_bytes()).await.unwrap();
        service
    };
    let (connected, service) = tokio::join!(socket.connect(), accepted);
    let (lines, mut service) = service.into_split();
    let mut lines = tokio::io::BufReader::new(lines).lines();
    let (requests, asked) = mpsc::channel(8);
    let (attached, facts) = client::attach(connected.unwrap().unwrap(), asked);
    let spoken = |answers| move |fact: &Fact| matches!(fact, Fact::Desk(Desk::Of { pid: 7, answers: it }) if *it == answers);
    assert!(spoken(true)(&next(&facts).await));
    // What only says that it lives is no news.
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        service.write_all(hello.as_bytes()).await.unwrap();
    }
    assert_eq!(facts.take().len(), 0);
    let message = |ticket| Request::Message {
        ticket,
        letter: Letter {
            lead: SessionId::new("s").unwrap(),
            instance: Uuid::random(),
            lease: Uuid::random(),
            text: "x".into(),
            files: Vec::new(),
            id: None,
        },
    };
    requests.send(message(1)).await.unwrap();
    assert!(lines.next_line().await.unwrap().unwrap().contains("\"ticket\":1"));
    assert!(spoken(false)(&next(&facts).await));
    // Refused and not handed over; what has no outcome is handed over later, the latest of it.
    requests.send(message(2)).await.unwrap();
    let refused = next(&facts).await;
    assert!(
        matches!(&refused, Fact::Outcome(Outcome { ticket: 2, result: Err(why) }) if why.contains("kill -CONT 7"))
    );
    for waits in [true, false, true, false] {
        requests.send(Request::Waiting(waits)).await.unwrap();
    }
    requests.send(Request::Inquire { ticket: 3, inquiry: Inquiry::Text(1) }).await.unwrap();
    assert!(
        lines.next_line().await.unwrap().unwrap().contains("inquire"),
        "it may be answered whenever it likes"
    );
    service.write_all(hello.as_bytes()).await.unwrap();
    assert!(spoken(true)(&next(&facts).await));
    assert!(lines.next_line().await.unwrap().unwrap().contains("{\"waiting\":false}"));
    let done = "{\"v\":1,\"fact\":{\"outcome\":{\"ticket\":1,\"result\":{\"Ok\":\"Left\"}}}}\n";
    service.write_all(done.as_bytes()).await.unwrap();
    assert!(matches!(next(&facts).await, Fact::Outcome(Outcome { ticket: 1, result: Ok(Done::Left) })));
    // Whoever ends leaves nobody waiting.
    drop((service, lines));
    attached.await.unwrap();
    let told = facts.take();
    assert!(told.iter().any(
        |it| matches!(it, Fact::Answered(answered) if answered.ticket == 3 && answered.result.is_err())
    ));
    assert!(told.iter().any(spoken(false)));
    assert_eq!(told.len(), 2);
}

#[test]
fn a_verb_that_waits_ends_when_the_service_is_stopped_and_is_told_the_rest_by_its_id() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let pid = serve.child.id();
    let began = Instant::now();
    let waits = herd.place.start(&["message", "s-1", "hello", "--wait", "60s", "--json"]);
    until("the message", || inbox_of(&herd, "s-1").len() == 1);
    serve.signal(Signal::STOP);
    let waited = waits.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(waited.status.code(), Some(1), "{waited:?}");
    let told: serde_json::Value = serde_json::from_slice(&waited.stdout).unwrap();
    let (error, id) = (&told["error"], inbox_of(&herd, "s-1")[0].id.to_string());
    assert_eq!((&error["code"], &error["id"]), (&"unknown".into(), &id.as_str().into()));
    let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    assert!(message.contains(&format!("process {pid}")) && message.contains("may be suspended"), "{message}");
    assert!(hint.contains(&format!("kill -CONT {pid}")) && hint.contains(&format!("--id {id}")), "{hint}");

    serve.signal(Signal::CONT);
    take_all(&herd, "s-1");
    let ran = herd.place.run(&["message", "s-1", "hello", "--wait", "2s", "--json", "--id", &id]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!((&ran.json()["id"], &ran.json()["fate"]), (&id.as_str().into(), &"taken".into()));
    assert_eq!(inbox_of(&herd, "s-1"), []);
    assert_eq!(serve.end().0, 0);
}

#[test]
fn what_the_disk_holds_up_keeps_nobody_from_saying_that_it_lives() {
    let herd = Herd::new();
    let socket = herd.server.socket().as_os_str().to_owned();
    let control = ControlSocket::find(
        &herd.place.state_dir(),
        &socket,
        Some(&herd.place.path("")),
        &herd.place.path(""),
    );
    let path = control.path().to_owned();
    herd.block_on(async {
        let host = Host::start(Options {
            socket: Located { path: socket, origin: Origin::Option },
            agent_dir: herd.place.agent_dir(),
            sessions: SessionDirs {
                agent_dir: herd.place.agent_dir().path().to_owned(),
                session_dir: None,
                home: herd.place.path("home"),
            },
            state_dir: herd.place.state_dir(),
            keep_days: None,
            notified: true,
            turn_logs: None,
            may_only_watch: false,
            pane: Err("none".to_owned()),
            control,
        })
        .unwrap();
        crate::support::until("it serves", || async { path.exists() }).await;
        let (free, freed) = std::sync::mpsc::channel::<()>();
        let disk = host.disk.clone();
        let blocked = tokio::spawn(async move { disk.run(move || freed.recv()).await });
        let (lines, mut ask) = tokio::net::UnixStream::connect(&path).await.unwrap().into_split();
        let mut lines = tokio::io::BufReader::new(lines).lines();
        // More than the service has room for, and each needs the disk.
        for ticket in 0..40 {
            let line = format!(
                "{{\"v\":1,\"request\":{{\"inquire\":{{\"ticket\":{ticket},\"inquiry\":{{\"Text\":1}}}}}}}}\n"
            );
            ask.write_all(line.as_bytes()).await.unwrap();
        }
        let mut lived = 0;
        while lived < 3 {
            let line = tokio::time::timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
            assert!(!line.contains("answered"), "{line}");
            lived += usize::from(line.contains("\"hello\""));
        }
        free.send(()).unwrap();
        blocked.await.unwrap().unwrap().unwrap();
        let mut answered = 0;
        while answered < 40 {
            let line = tokio::time::timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
            answered += usize::from(line.contains("answered"));
        }
        host.end().await;
    });
}

#[test]
fn a_control_socket_that_was_removed_stands_again() {
    let herd = herd();
    let serve = Serve::start(&herd);
    let socket = socket_of(&herd);
    let (stream, mut connected) = serve.connect();
    let sends = |text: &str| until("to be found", || herd.place.run(&["message", "s-1", text]).code == 0);
    std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    sends("without its directory");
    let modes = [socket.parent().unwrap(), &socket]
        .map(|path| std::fs::symlink_metadata(path).unwrap().mode() & 0o777);
    assert_eq!(modes, [0o700, 0o600]);
    std::fs::remove_file(&socket).unwrap();
    sends("without its socket");
    // Without the lock alone another could come, and serve beside it.
    std::fs::remove_file(socket.with_extension("lock")).unwrap();
    until("the lock", || socket.with_extension("lock").exists());
    let inode = std::fs::symlink_metadata(&socket).unwrap().ino();
    let ran = herd.place.run(&["serve"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("process {}", serve.child.id())), "{}", ran.stderr);
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().ino(), inode);
    assert_eq!(inbox_of(&herd, "s-1").len(), 2);
    // Who was connected is so still.
    let mut told = 0;
    while told < 2 {
        let mut line = String::new();
        assert_ne!(connected.read_line(&mut line).unwrap(), 0);
        told += usize::from(line.contains("without its"));
    }
    drop(stream);
    assert_eq!(serve.end().0, 0);
    assert_eq!(std::fs::read_dir(socket.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn what_another_has_in_place_of_the_control_socket_is_left_to_it() {
    let herd = herd();
    let mut serve = Serve::start(&herd);
    let socket = socket_of(&herd);
    let beside = herd.place.path("beside.sock");
    let listener = UnixListener::bind(&beside).unwrap();
    std::fs::rename(&beside, &socket).unwrap();
    let theirs = std::fs::symlink_metadata(&socket).unwrap().ino();
    serve.told("no other of yours finds this Chief now");
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().ino(), theirs);
    // Somebody's who is gone it is nobody's.
    drop(listener);
    serve.told("others of yours find this Chief at");
    assert_eq!(herd.place.run(&["message", "s-1", "hello"]).code, 0);

    // A directory in place of it, where another has the lock.
    let (directory, other) = (socket.parent().unwrap(), herd.place.path("other"));
    std::fs::DirBuilder::new().mode(0o700).create(&other).unwrap();
    let lock_name = socket.with_extension("lock");
    let lock = std::fs::File::create(other.join(lock_name.file_name().unwrap())).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    renameat_with(CWD, directory, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    serve.told("no other of yours finds this Chief now");
    assert_eq!(std::fs::symlink_metadata(&lock_name).unwrap().ino(), lock.metadata().unwrap().ino());
    assert!(!socket.exists());
    drop(lock);
    serve.told("others of yours find this Chief at");
    assert_eq!(herd.place.run(&["message", "s-1", "hello"]).code, 0);
    assert_eq!(serve.end().0, 0);
}
