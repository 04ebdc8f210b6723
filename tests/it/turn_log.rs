//! The logs of turns: what is read of them, the verb, and the screen.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use headman::console::app::App;
use headman::contract::Timestamp;
use headman::fact::{self, Fact};
use headman::source;
use headman::turn::history::{History, MAX_TURNS, Picture};
use headman::turn::log::TurnLogs;
use headman::turn::metrics::time;
use headman::turn::running::{Left, Running};
use tokio::sync::watch;

use crate::cli_support::Place;
use crate::screens::{START, app, at, press, shown};
use crate::support::DEADLINE;

/// A line of `seat`, a failure where one is named.
fn line(seat: &str, millis: u64, took: u64, failure: Option<&str>) -> String {
    let (outcome, ok) = if failure.is_some() { ("failed", false) } else { ("delivered", true) };
    let value = serde_json::json!({
        "v": 1, "ts": time(millis), "seat": seat, "turnEnd": time(millis), "durationMs": took, "outcome": outcome, "ok": ok,
        "failure": failure, "failureClass": failure.map(|_| "runtime"), "stalled": failure == Some("stalled"),
    });
    format!("{value}\n")
}

struct Logs {
    dir: tempfile::TempDir,
    logs: TurnLogs,
}

impl Logs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let logs = TurnLogs {
            ours: dir.path().join("ours"),
            is_named: false,
            others: vec![dir.path().join("others"), dir.path().join("absent")],
        };
        std::fs::create_dir(&logs.ours).unwrap();
        std::fs::create_dir(&logs.others[0]).unwrap();
        Self { dir, logs }
    }

    fn append(&self, path: &str, text: &str) -> PathBuf {
        append(&self.dir.path().join(path), text)
    }
}

fn append(path: &Path, text: &str) -> PathBuf {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path.to_owned()
}

fn counts(picture: &Picture) -> Vec<(&str, usize, usize)> {
    picture.seats.iter().map(|seat| (seat.name.as_str(), seat.turns, seat.ok)).collect()
}

#[test]
fn lines_of_ours_and_of_others_are_counted_and_followed() {
    let logs = Logs::new();
    logs.append("ours/a.jsonl", &line("a", 1_000, 10, None));
    // Others write more, write times as numbers, and more than one seat into one file.
    let foreign = "{\"v\":7,\"more\":{\"x\":[1]},\"seat\":\"a\",\"ts\":2000,\"durationMs\":30.5,\"outcome\":\"odd\",\"ok\":false,\"failure\":\"odd\"}\n";
    logs.append("others/x.jsonl", &(foreign.to_owned() + &line("b/\u{1b}[31m", 3_000, 20, None)));
    logs.append("others/x.jsonl", "no json\n\n{\"seat\":\"a\"}\n[]\n");
    logs.append("others/x.txt", "not looked at");
    logs.append("ours/a.jsonl", "{\"v\":1,\"seat\":\"a\",\"ts\":40");
    std::os::unix::fs::symlink("/etc/passwd", logs.logs.ours.join("link.jsonl")).unwrap();

    let mut history = History::default();
    let picture = history.look(&logs.logs, None);
    assert_eq!(counts(&picture), [("a", 2, 1), ("b___31m", 1, 1)]);
    let last = picture.seats[0].last.unwrap();
    assert_eq!(
        (last.at, last.outcome, last.failure, last.took),
        (Timestamp::from_millis(2_000), "other", Some("other"), 30)
    );
    assert_eq!(picture.troubles.len(), 2, "{:?}", picture.troubles);
    assert!(picture.troubles.iter().any(|it| it.ends_with("link.jsonl: it is a symbolic link")));
    assert!(picture.troubles.iter().any(|it| it.ends_with("x.jsonl: 3 lines are no turns")));
    // The line that was being written is there now, and nothing is counted twice.
    logs.append("ours/a.jsonl", "00,\"ok\":true}\n");
    assert_eq!(counts(&history.look(&logs.logs, None))[0], ("a", 3, 2));
    assert_eq!(counts(&history.look(&logs.logs, Some(Timestamp::from_millis(2_000))))[0], ("a", 2, 1));
    assert_eq!(counts(&history.look(&logs.logs, Some(Timestamp::from_millis(9_000)))), []);
    // Another file in its place begins anew, a shorter one as well, and one that is gone counts no more.
    let other = logs.append("new", &line("a", 5_000, 1, None));
    std::fs::rename(other, logs.logs.ours.join("a.jsonl")).unwrap();
    assert_eq!(counts(&history.look(&logs.logs, None))[0], ("a", 2, 1));
    std::fs::write(logs.logs.others[0].join("x.jsonl"), "").unwrap();
    assert_eq!(counts(&history.look(&logs.logs, None)), [("a", 1, 1)]);
    std::fs::remove_file(logs.logs.ours.join("a.jsonl")).unwrap();
    assert_eq!(counts(&history.look(&logs.logs, None)), []);
}

#[test]
fn of_a_log_of_100_megabytes_only_the_end_is_read() {
    let logs = Logs::new();
    let path = logs.append("ours/big.jsonl", &line("big", 1, 1, None));
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // A hole costs no disk, and is no line.
    file.set_len(100 << 20).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let all: String = (0..MAX_TURNS as u64 + 5).map(|nth| line("big", 10 + nth, nth, None)).collect();
    file.write_all(format!("\n{all}").as_bytes()).unwrap();
    let mut history = History::default();
    let started = Instant::now();
    let picture = history.look(&logs.logs, None);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let seat = &picture.seats[0];
    assert_eq!((seat.turns, seat.is_partial), (MAX_TURNS, true));
    assert_eq!(seat.last.unwrap().took, MAX_TURNS as u64 + 4);
    logs.append("ours/big.jsonl", &line("big", 99_999, 7, Some("stalled")));
    let started = Instant::now();
    assert_eq!(history.look(&logs.logs, None).seats[0].failures, [("stalled", 1)]);
    assert!(started.elapsed() < Duration::from_secs(1), "it is read again: {:?}", started.elapsed());
    // As many as are counted are all, and one more of a seat takes nothing from another.
    let all: String = (0..MAX_TURNS as u64).map(|nth| line("full", nth, nth, None)).collect();
    logs.append("ours/full.jsonl", &(all + &line("more", 1, 1, None)));
    let partial = |history: &mut History| -> Vec<(String, bool)> {
        let seats = history.look(&logs.logs, None).seats;
        seats.into_iter().skip(1).map(|seat| (seat.name, seat.is_partial)).collect()
    };
    assert_eq!(partial(&mut history), [("full".to_owned(), false), ("more".to_owned(), false)]);
    logs.append("ours/full.jsonl", &line("full", 9_999, 1, None));
    assert_eq!(partial(&mut history), [("full".to_owned(), true), ("more".to_owned(), false)]);
}

#[test]
fn the_verb_tells_each_seat_in_both_forms_and_writes_nothing() {
    let place = Place::new();
    let ran = place.run(&["turns"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "No turns.\n"));
    assert!(!place.state_dir().exists(), "looking made a directory");
    let turns = place.state_dir().join("turns");
    let theirs = place.path("home/.commonly/state/turns");
    for directory in [&turns, &theirs] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let now = headman::turn::ledger::now().as_millis();
    append(
        &turns.join("api.jsonl"),
        &(line("api", now - 90_000_000, 4_000, None) + &line("api", now - 60_000, 8_000, None)),
    );
    append(
        &theirs.join("web.jsonl"),
        &(line("web", now - 9_000, 70, Some("stalled"))
            + &line("web", now - 5_000, 90, Some("adapter_exit"))),
    );
    let before = place.picture();
    let json = place.run(&["turns", "--json"]).json();
    let seats = json["seats"].as_array().unwrap();
    assert_eq!(seats.len(), 2);
    assert_eq!(
        seats[0],
        serde_json::json!({
            "seat": "api", "turns": 2, "ok": 2, "partial": false, "failures": {}, "stalls": 0, "median_ms": 4_000, "p95_ms": 8_000,
            "last": {"at": now - 60_000, "outcome": "delivered", "ok": true, "failure": null, "duration_ms": 8_000},
            "failed_in_a_row": 0, "retry_after_s": null, "circuit_open": false, "running": [],
        })
    );
    assert_eq!(seats[1]["failures"], serde_json::json!({"adapter_exit": 1, "stalled": 1}));
    assert_eq!(
        (&seats[1]["retry_after_s"], &seats[1]["failed_in_a_row"], &seats[1]["stalls"]),
        (&10.into(), &2.into(), &1.into())
    );
    let plain = place.run(&["turns"]);
    plain.assert_harmless();
    let lines: Vec<&str> = plain.stdout.lines().collect();
    assert_eq!(lines[0], "api  delivered 1m ago  ok 100% of 2  median 4.0s, p95 8.0s  \u{2584}\u{2588}");
    assert!(lines[1].starts_with("web  adapter_exit ") && lines[1].contains("ok 0% of 2"), "{}", lines[1]);
    assert_eq!(lines[2..], ["    adapter_exit 1", "    stalled 1", "    failed 2 in a row: wait 10s"]);
    assert_eq!(place.run(&["turns", "--since", "24h", "--json"]).json()["seats"][0]["turns"], 1);
    assert_eq!(place.run(&["turns", "--seat", "web"]).stdout.lines().count(), 4);
    let none = place.run(&["turns", "--seat", "nobody", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &"not_found".into()));
    assert_eq!(place.picture(), before, "it wrote something");
}

/// Nothing is read while nobody looks; once somebody does, changes come by themselves.
#[tokio::test]
async fn the_source_looks_only_while_the_screen_is_open() {
    let logs = Logs::new();
    logs.append("ours/a.jsonl", &line("a", 1, 1, None));
    let (facts, received) = fact::channel();
    let (open, is_open) = watch::channel(false);
    let task = tokio::spawn(source::turns::run(logs.logs.clone(), facts, is_open));
    let next = async |what: &str| {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(Fact::Turns(picture)) = received.take().pop() {
                return counts(&picture).first().map(|it| it.1);
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}");
            let _ = tokio::time::timeout(left, received.ready()).await;
        }
    };
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(received.take().is_empty(), "it looked although nobody did");
    open.send_replace(true);
    assert_eq!(next("the first look").await, Some(1));
    open.send_replace(false);
    logs.append("ours/a.jsonl", &line("a", 2, 1, None));
    open.send_replace(true);
    assert_eq!(next("what was appended").await, Some(2));
    drop(open);
    tokio::time::timeout(DEADLINE, task).await.expect("it ends with the screen").unwrap();
}

/// Seats of every kind: one runs, one has lost its supervisor, some fail, some go well.
fn some_turns() -> Picture {
    let logs = Logs::new();
    let ago = |seconds: u64| START - seconds * 1_000;
    let many = |seat: &str, count: u64, fails: fn(u64) -> Option<&'static str>| -> String {
        (0..count)
            .map(|nth| line(seat, ago((count - nth) * 60), 20_000 + nth * nth % 17 * 9_000, fails(nth)))
            .collect()
    };
    logs.append(
        "ours/auth-rewrite.jsonl",
        &many("auth-rewrite", 75, |nth| (nth % 9 == 4).then_some("stalled")),
    );
    logs.append(
        "ours/checkout.jsonl",
        &many("checkout", 12, |nth| {
            if nth > 8 {
                Some("adapter_exit")
            } else if nth == 2 {
                Some("wall_clock")
            } else {
                None
            }
        }),
    );
    logs.append(
        "others/flaky-tests-with-a-name-that-goes-on.jsonl",
        &many("flaky-tests-with-a-name-that-goes-on", 3, |_| None),
    );
    logs.append("others/one.jsonl", &line("one", ago(86_400 * 3), 340, None));
    logs.append("others/broken.jsonl", "no json\n");
    let mut picture = History::default().look(&logs.logs, None);
    let directory = logs.dir.path().to_str().unwrap().to_owned();
    picture.troubles.iter_mut().for_each(|trouble| *trouble = trouble.replace(&directory, "/home/ada"));
    // No process of this test is to be on the screen.
    let running = |left: Left, since: u64| Running {
        seat: String::new(),
        adapter: "codex".to_owned(),
        supervisor: 4_242,
        since: Some(Timestamp::from_millis(ago(since))),
        left,
        path: PathBuf::new(),
    };
    picture.seats[0].running = vec![running(Left::Supervised, 95)];
    picture.seats[1].running = vec![running(Left::Known(vec![4711, 4712]), 3_700)];
    picture
}

fn opened(picture: Picture) -> App {
    let mut app = app();
    app.facts(vec![Fact::Turns(Arc::new(picture))], at(0));
    press(&mut app, "o", at(0));
    app
}

#[test]
fn the_screen() {
    let mut app = opened(some_turns());
    for (width, height) in [(120, 40), (80, 24), (60, 30), (20, 6)] {
        insta::assert_snapshot!(format!("turns_{width}x{height}"), shown(&app, width, height, at(0)));
    }
    press(&mut app, "j", at(0));
    insta::assert_snapshot!("turns_failed_120x40", shown(&app, 120, 40, at(0)));
    press(&mut app, "j", at(0));
    insta::assert_snapshot!("turns_well_60x30", shown(&app, 60, 30, at(0)));
    press(&mut app, "\n", at(0));
    insta::assert_snapshot!("turns_detail_40x15", shown(&app, 40, 15, at(0)));
}

#[test]
fn what_stands_there_when_there_are_no_turns() {
    let mut app = app();
    press(&mut app, "o", at(0));
    insta::assert_snapshot!("turns_not_looked_80x12", shown(&app, 80, 12, at(0)));
    let troubles = vec!["/home/ada/turns: it is a symbolic link".to_owned()];
    app.facts(vec![Fact::Turns(Arc::new(Picture { seats: Vec::new(), troubles }))], at(0));
    insta::assert_snapshot!("turns_none_80x12", shown(&app, 80, 12, at(0)));
}

#[test]
fn it_opens_and_closes_and_is_looked_at_only_then() {
    let mut app = opened(some_turns());
    assert!(app.shows_turns());
    press(&mut app, "o", at(1));
    assert!(!app.shows_turns(), "the same key closes it");
    press(&mut app, "o?o", at(1));
    assert!(app.shows_turns() && app.layers.len() == 2, "it is still there below the help, once");
    press(&mut app, "\u{1b}y", at(1));
    let copied = app.take_effects().into_iter().find_map(|effect| match effect {
        headman::console::app::Effect::Copy(text) => Some(text.to_str_lossy().into_owned()),
        _ => None,
    });
    assert_eq!(copied.as_deref(), Some("auth-rewrite"));
    // A click selects the seat that is drawn there, and nothing on a heading.
    let screen = shown(&app, 120, 40, at(1));
    let row_of =
        |text: &str| u16::try_from(screen.lines().position(|line| line.contains(text)).unwrap()).unwrap();
    for text in ["checkout", "WELL"] {
        let kind = MouseEventKind::Down(MouseButton::Left);
        app.mouse(MouseEvent { kind, column: 8, row: row_of(text), modifiers: KeyModifiers::NONE }, at(1));
        assert!(shown(&app, 120, 40, at(1)).contains("\u{25b8}! checkout"), "{text}");
    }
    press(&mut app, "\n\u{1b}", at(1));
    assert!(app.shows_turns(), "only the detail was left");
    press(&mut app, "q", at(1));
    assert!(!app.shows_turns());
}
