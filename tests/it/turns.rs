//! Supervised turns: the real binary over real processes that end, hang, fork away and ignore what
//! they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use headman::contract::Uuid;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::cli_support::{Place, until};

/// A place whose turns carry a mark that finds what is left of them.
pub(crate) struct Turns {
    pub(crate) place: Place,
    mark: String,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let mut place = Place::new();
        let mark = Uuid::random().to_string();
        place.set("TEST_MARK", &mark);
        place.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        Self { place, mark }
    }

    pub(crate) fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let arguments = [&["turn", "--seat", "s"], options, &["--"], command].concat();
        self.place.command(&arguments)
    }

    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Output {
        self.command(options, command).output().unwrap()
    }

    /// The script as one that `sh` runs.
    pub(crate) fn sh(&self, options: &[&str], script: &str) -> (Option<i32>, Value) {
        let ran = self.run(options, &["sh", "-c", script]);
        (ran.status.code(), self.last())
    }

    /// A shell beside headman, with the environment and directory of these turns.
    fn shell(&self, script: &str) -> Command {
        let base = self.place.command(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.place.path("")).env_clear();
        command.envs(base.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let path = self.place.state_dir().join("turns/s.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn last(&self) -> Value {
        self.lines().pop().unwrap_or_default()
    }

    /// Processes of these turns that run.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let mark = format!("TEST_MARK={}", self.mark);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap() {
            let path = entry.unwrap().path();
            let environment = std::fs::read(path.join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()) {
                found.push(
                    std::fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " "),
                );
            }
        }
        found
    }

    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.survivors(), [""; 0]);
        let running = self.place.state_dir().join("turns/running");
        assert_eq!(std::fs::read_dir(running).unwrap().count(), 0, "a file of a supervisor is left");
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // What a failed test leaves must not run on: a mark is nobody else's.
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let pid = entry.file_name().to_str().and_then(|it| it.parse().ok()).and_then(Pid::from_raw);
            if let (Some(pid), true) = (pid, String::from_utf8_lossy(&environment).contains(&self.mark)) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

pub(crate) fn of(line: &Value, members: &[&str]) -> Vec<Value> {
    members.iter().map(|member| line[*member].clone()).collect()
}

fn pid_of(child: &std::process::Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn a_turn_that_ends_well_passes_everything_on_and_is_one_line() {
    let turns = Turns::new();
    let mut bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    bytes.extend(b"no newline at the end");
    let mut child =
        turns.command(&["--adapter", "a b", "--event", "chat"], &["sh", "-c", "cat; printf e\\\\0 >&2"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b"e\0"[..]));
    assert!(output.stdout == bytes, "{} bytes of {}", output.stdout.len(), bytes.len());

    let log = turns.place.state_dir().join("turns/s.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let mut at = 0;
    for member in [
        "v",
        "ts",
        "seat",
        "adapter",
        "path",
        "eventType",
        "turnStart",
        "turnEnd",
        "durationMs",
        "outcome",
        "ok",
        "failure",
        "failureSource",
        "failureClass",
        "stalled",
        "cancelled",
        "killed",
        "exitCode",
        "signal",
        "exitObserved",
        "childLeftRunning",
        "attempts",
        "stallMs",
        "cancelGraceMs",
        "timeoutMs",
    ] {
        let next = text[at..].find(&format!("\"{member}\":")).unwrap_or_else(|| panic!("{member}: {text}"));
        at += next + 1;
    }
    let line = turns.last();
    assert_eq!(line.as_object().unwrap().len(), 25);
    assert_eq!(
        of(
            &line,
            &[
                "v",
                "seat",
                "adapter",
                "path",
                "eventType",
                "outcome",
                "ok",
                "failure",
                "exitCode",
                "attempts"
            ]
        ),
        [
            1.into(),
            "s".into(),
            "a_b".into(),
            "supervised".into(),
            "chat".into(),
            "delivered".into(),
            true.into(),
            Value::Null,
            0.into(),
            1.into()
        ]
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    turns.assert_gone();
    assert_eq!(turns.sh(&[], "true").1["outcome"], "silent");
    // A line that a crash cut off takes no other with it.
    std::fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"{\"v\":1,\"ts").unwrap();
    turns.run(&[], &["true"]);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(serde_json::from_str::<Value>(text.lines().last().unwrap()).is_ok(), "{text}");
}

#[test]
fn what_ends_by_itself_is_told_as_it_ended() {
    let turns = Turns::new();
    for (script, code, failure, class) in [
        ("exit 3", 3, "adapter_exit", "runtime"),
        ("echo '429 insufficient_quota' >&2; exit 1", 1, "adapter_exit", "quota"),
        ("echo 'session limit' >&2; exit 1", 1, "adapter_exit", "quota"),
        ("echo 'rate limit' >&2; exit 1", 1, "adapter_exit", "rate_limit"),
        ("echo 'invalid api key' >&2; exit 1", 1, "adapter_exit", "configuration"),
        ("echo 'rate limit'; exit 1", 1, "adapter_exit", "runtime"),
        ("echo 'timed out after 30000ms' >&2; exit 1", 1, "adapter_timeout", "runtime"),
        ("kill -9 $$", 137, "adapter_error", "runtime"),
    ] {
        let (ended, line) = turns.sh(&[], script);
        assert_eq!(
            (ended, of(&line, &["outcome", "ok", "failure", "failureClass", "failureSource"])),
            (Some(code), vec!["failed".into(), false.into(), failure.into(), class.into(), "adapter".into()]),
            "{script}"
        );
    }
    assert_eq!(
        of(&turns.last(), &["exitCode", "signal", "exitObserved"]),
        [Value::Null, "SIGKILL".into(), true.into()]
    );
    // A writer of JSON lines says it there.
    let (_, line) = turns.sh(&["--adapter", "codex"], "echo '{\"error\":\"rate limit\"}'; exit 1");
    assert_eq!(line["failureClass"], "rate_limit");
    let both = "echo 'timed out after 5ms, insufficient_quota'; echo 'no such file' >&2; exit 1";
    let (_, line) = turns.sh(&["--adapter", "codex"], both);
    assert_eq!(of(&line, &["failure", "failureClass"]), ["adapter_timeout", "quota"]);

    let text = turns.place.path("text");
    std::fs::write(&text, "no program").unwrap();
    for (command, code) in [("no-such-command", 127), (text.to_str().unwrap(), 126)] {
        let ran = turns.run(&[], &[command]);
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert!(
            stderr.starts_with("headman: can't start the command: ") && stderr.lines().count() == 1,
            "{stderr}"
        );
        assert_eq!(ran.status.code(), Some(code), "{command}");
        assert_eq!(
            of(
                &turns.last(),
                &["outcome", "failure", "failureSource", "failureClass", "exitCode", "exitObserved"]
            ),
            [
                "failed".into(),
                "spawn_failed".into(),
                "supervisor".into(),
                "configuration".into(),
                Value::Null,
                false.into()
            ]
        );
    }
    assert_eq!(turns.lines().len(), 12);
    turns.assert_gone();
}

#[test]
fn silence_past_the_window_is_ended_by_asking_and_then_by_killing() {
    let turns = Turns::new();
    let fields = ["failure", "stalled", "cancelled", "killed", "signal", "exitCode", "childLeftRunning"];
    let options = ["--stall", "1s", "--grace", "5s"];
    let (code, line) = turns.sh(&options, "trap 'exit 7' INT; echo begun; sleep 600 & wait");
    assert_eq!(code, Some(124));
    let wanted =
        ["stalled".into(), true.into(), true.into(), false.into(), Value::Null, 7.into(), false.into()];
    assert_eq!(of(&line, &fields), wanted, "it honours that");
    assert!(line["durationMs"].as_u64().unwrap() < 5_500, "{line}");

    let options = ["--stall", "1s", "--grace", "300ms"];
    let (code, line) = turns.sh(&options, "trap '' INT TERM; while :; do sleep 600; done");
    let wanted = [
        "stalled".into(),
        true.into(),
        true.into(),
        true.into(),
        "SIGKILL".into(),
        Value::Null,
        false.into(),
    ];
    assert_eq!((code, of(&line, &fields)), (Some(124), wanted.to_vec()), "it does not");
    assert!(line["durationMs"].as_u64().unwrap() >= 1_300, "the grace is over first: {line}");

    // One that is known not to heed it is not asked.
    let config = turns.place.path("config.toml");
    std::fs::write(
        &config,
        "[turn.adapters.deaf]\nstall_ms = 100\ninterrupt = false\n[turn]\ncancel_grace_ms = 100\n",
    )
    .unwrap();
    let more = ["--adapter", "deaf", "--config", config.to_str().unwrap()];
    let (_, line) = turns.sh(&more, "trap 'exit 7' INT; sleep 600 & wait");
    assert_eq!(of(&line, &fields)[..4], ["stalled".into(), true.into(), false.into(), Value::Bool(true)]);
    assert_eq!(of(&line, &["stallMs", "cancelGraceMs"]), [100, 100]);
    turns.assert_gone();
}

#[test]
fn only_progress_counts_and_zero_is_no_window() {
    let turns = Turns::new();
    let slowly = "i=0; while [ $i -lt 10 ]; do echo x; sleep 0.25; i=$((i+1)); done";
    let (code, line) = turns.sh(&["--stall", "2s"], slowly);
    assert_eq!((code, &line["outcome"]), (Some(0), &"delivered".into()));
    // Bytes are no line.
    let dripping = "while :; do printf x; sleep 0.05; done";
    let (_, line) = turns.sh(&["--adapter", "codex", "--stall", "400ms", "--grace", "0"], dripping);
    // Without a grace nothing is asked first, which might end it before the kill.
    let fields = of(&line, &["failure", "cancelled", "killed", "signal"]);
    assert_eq!(fields, ["stalled".into(), false.into(), true.into(), Value::from("SIGKILL")]);
    let (_, line) = turns.sh(&["--adapter", "codex", "--startup=200ms", "--grace", "0"], "sleep 600");
    assert_eq!(of(&line, &["failure", "stallMs"]), ["stalled".into(), Value::from(900_000)]);
    let (code, _) = turns.sh(&["--adapter", "codex", "--startup=200ms"], "printf x; sleep 0.5");
    assert_eq!(code, Some(0), "the first byte is enough");

    let mut off = Turns::new();
    off.place.set("HEADMAN_TURN_STALL_MS_CODEX", "0");
    off.place.set("HEADMAN_TURN_WALL_BACKSTOP_MS", "300");
    off.place.set("HEADMAN_TURN_STALL_MS", "-1");
    off.place.set("HEADMAN_TURN_CANCEL_GRACE_MS", "1.5");
    let ran = off.run(&["--adapter", "codex", "--grace", "100ms"], &["sleep", "600"]);
    assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()), (Some(124), ""));
    let line = off.last();
    assert_eq!(
        of(&line, &["failure", "stalled", "stallMs"]),
        ["wall_clock".into(), false.into(), Value::from(0)]
    );
    let ran = off.run(&["--adapter", "pi", "--stall", "20m"], &["true"]);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(
        told.contains("HEADMAN_TURN_CANCEL_GRACE_MS is not") && told.contains("can't fire before"),
        "{told}"
    );
    off.assert_gone();
}

/// What processes do that do not want to end: leave the group and the session, lose their parent,
/// ignore signals, hold the pipes.
const ESCAPES: &str = "trap '' INT TERM HUP
    setsid sh -c 'trap \"\" INT TERM HUP; sleep 600 & sleep 600; :' &
    (setsid sh -c 'sleep 600 & exec sleep 600' &) &
    sh -c 'sleep 600 & sleep 600 & exit 0'
    (sleep 600; sleep 600) &";

#[test]
fn nothing_of_a_turn_outlives_it() {
    let turns = Turns::new();
    let script = format!("{ESCAPES}\nsleep 600; sleep 600");
    let (code, line) = turns.sh(&["--stall", "1s", "--grace", "100ms"], &script);
    assert_eq!(
        (code, of(&line, &["killed", "childLeftRunning"])),
        (Some(124), vec![true.into(), false.into()])
    );
    turns.assert_gone();
    // Nor one that ends by itself: its pipe is held open, and not waited for.
    let started = Instant::now();
    let (code, line) = turns.sh(&[], &format!("{ESCAPES}\necho reply; exit 0"));
    assert_eq!((code, of(&line, &["outcome", "killed"])), (Some(0), vec!["delivered".into(), false.into()]));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    turns.assert_gone();
}

#[test]
fn a_signal_ends_the_tree_and_the_line_is_written() {
    let turns = Turns::new();
    let begin = |command: &mut Command| {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        child
    };
    let script = format!("{ESCAPES}\necho begun; while :; do sleep 600; done");
    for (nth, (signal, code)) in
        [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)].into_iter().enumerate()
    {
        let mut child = begin(&mut turns.command(&["--grace", "200ms"], &["sh", "-c", &script]));
        rustix::process::kill_process(pid_of(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(turns.lines().len(), nth + 1);
        let fields = ["failure", "failureSource", "cancelled", "killed", "stalled"];
        let wanted = ["cancelled".into(), "supervisor".into(), true.into(), true.into(), Value::Bool(false)];
        assert_eq!(of(&turns.last(), &fields), wanted);
        turns.assert_gone();
    }
    // A second one waits for nothing.
    let mut child = begin(&mut turns.command(&["--grace", "2s"], &["sh", "-c", &script]));
    rustix::process::kill_process(pid_of(&child), Signal::TERM).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let again = Instant::now();
    rustix::process::kill_process(pid_of(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    assert!(again.elapsed() < Duration::from_millis(1_500), "{:?}", again.elapsed());
    // What was started to outlive its terminal does.
    let mut nohup = turns.place.command(&[]);
    let own = env!("CARGO_BIN_EXE_headman");
    let mut command = Command::new("nohup");
    command.args([own, "turn", "--seat", "s", "--", "sh", "-c", "echo begun; sleep 0.5"]);
    command.env_clear().envs(nohup.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut child = begin(command.stdin(Stdio::null()).stderr(Stdio::null()));
    nohup.stdin(Stdio::null());
    rustix::process::kill_process(pid_of(&child), Signal::HUP).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    turns.assert_gone();
}

#[test]
fn a_killed_supervisor_takes_the_root_along_and_the_next_one_says_what_is_left() {
    let turns = Turns::new();
    let script = "setsid sleep 600 & echo $!; echo $$; exec sleep 600";
    let mut child = turns.command(&[], &["sh", "-c", script]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let orphan: i32 = lines.next().unwrap().unwrap().parse().unwrap();
    let root = lines.next().unwrap().unwrap();
    let running = turns.place.run(&["turns", "--json"]).json();
    let seat = &running["seats"][0];
    assert_eq!((&seat["seat"], &seat["running"][0]["left"]), (&"s".into(), &Value::Null));
    assert_eq!(seat["running"][0]["supervisor"], child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let stat = format!("/proc/{root}/stat");
    until("the end of the root", || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z")));
    let left = turns.place.run(&["turns", "--json"]).json();
    assert_eq!(left["seats"][0]["running"][0]["left"], serde_json::json!([orphan]));
    let told = |ran: &Output| String::from_utf8_lossy(&ran.stderr).into_owned();
    let first = told(&turns.run(&[], &["true"]));
    assert!(
        first.contains("of a turn of s was killed; of its processes still run")
            && first.contains(&orphan.to_string()),
        "{first}"
    );
    rustix::process::kill_process(Pid::from_raw(orphan).unwrap(), Signal::KILL).unwrap();
    until("the end of the orphan", || turns.survivors().is_empty());
    let second = told(&turns.run(&[], &["true"]));
    assert!(second.contains("none that can be recognised still runs"), "{second}");
    assert_eq!(told(&turns.run(&[], &["true"])), "", "told once");
    turns.assert_gone();
}

#[test]
fn a_wrapper_says_what_became_of_the_reply() {
    let turns = Turns::new();
    let own = env!("CARGO_BIN_EXE_headman");
    // The wrapper reads until there is no more output, then says what became of it.
    let wrapped = |command: &str, says: &str| {
        let script = format!(
            "mkfifo f$$; {own} turn --seat s --outcome-fd 7 -- {command} 7<>f$$ 8>&- >out$$ & turn=$!; \
             exec 8>f$$; {says}; exec 8>&-; wait $turn"
        );
        (turns.shell(&script).output().unwrap().status.code(), turns.last())
    };
    for (says, outcome, code) in [
        ("echo delivered >&8", "delivered", 0),
        ("echo silent >&8; echo delivered >&8", "silent", 0),
        ("echo upstream_refused >&8", "upstream_refused", 1),
        ("echo failed >&8", "reply_lost", 1),
    ] {
        let (ended, line) = wrapped("echo reply", says);
        assert_eq!((ended, &line["outcome"]), (Some(code), &outcome.into()), "{says}");
        assert_eq!(line["ok"], code == 0);
    }
    let (ended, line) = wrapped("false", "echo delivered >&8");
    assert_eq!(
        (ended, of(&line, &["outcome", "failure"])),
        (Some(1), vec!["failed".into(), "adapter_exit".into()])
    );
    assert_eq!(turns.lines().len(), 5, "one line each");

    // A wrapper that dies in between has lost it; it sees the end of the output while headman waits.
    let script = format!(
        "mkfifo g; ({own} turn --seat s --outcome-fd 7 -- echo reply 7<g | cat; echo seen) & exec 8>g; wait"
    );
    let mut child = turns.shell(&script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "reply");
    until("the end of the output", || turns.lines().len() == 5 && turns.survivors().len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the line", || turns.lines().len() == 6);
    assert_eq!(
        of(&turns.last(), &["outcome", "ok", "exitCode"]),
        ["reply_lost".into(), false.into(), Value::from(0)]
    );
    let refused = turns.run(&["--outcome-fd", "9"], &["true"]);
    assert_eq!((refused.status.code(), turns.lines().len()), (Some(2), 6));
    until("the end of all", || turns.survivors().is_empty());
}

#[test]
fn a_reader_that_goes_away_or_is_slow_is_as_without_a_supervisor() {
    let turns = Turns::new();
    let mut child = turns.command(&[], &["yes"]).spawn().unwrap();
    let mut begin = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"y\ny\n");
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert_eq!(of(&turns.last(), &["failure", "signal"]), ["adapter_error", "SIGPIPE"]);
    // It has long ended when the last of it is read.
    let mut child = turns.command(&[], &["sh", "-c", "head -c 900000 /dev/zero; echo end"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    until("its end", || turns.survivors().len() <= 1);
    let mut all = Vec::new();
    stdout.read_to_end(&mut all).unwrap();
    assert_eq!((all.len(), &all[900_000..]), (900_004, &b"end\n"[..]));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(turns.last()["outcome"], "delivered");
    turns.assert_gone();
}

#[test]
fn no_secret_is_in_any_file() {
    let mut turns = Turns::new();
    let secret = "hunter2-Zq81";
    turns.place.set("API_KEY", secret);
    let script = "cat >/dev/null; echo $0; echo $0 rate limit >&2; exit 1";
    let ran = turns.place.run_with(
        &["turn", "--seat", "s", "--log", "log", "--", "sh", "-c", script, secret],
        secret.as_bytes(),
    );
    assert!(ran.stdout.contains(secret) && ran.stderr.contains(secret), "it is passed on");
    assert_eq!(turns.last()["failureClass"], "rate_limit");
    let files = crate::support::below(&turns.place.path(""));
    assert!(
        files.iter().any(|path| path.ends_with("turns/s.jsonl"))
            && files.iter().any(|path| path.ends_with("log"))
    );
    for path in files {
        let bytes = std::fs::read(turns.place.path("").join(&path)).unwrap_or_default();
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{}", path.display());
    }
}

#[test]
fn a_log_that_can_not_be_written_is_told_once_and_harms_no_turn() {
    let mut turns = Turns::new();
    std::fs::write(turns.place.path("file"), "").unwrap();
    turns.place.set("HEADMAN_TURN_LOG_DIR", turns.place.path("file").to_str().unwrap());
    let ran = turns.run(&[], &["sh", "-c", "echo out; echo err >&2; exit 5"]);
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(5), &b"out\n"[..]));
    assert_eq!(stderr.matches("the turn is not logged: ").count(), 1, "{stderr}");
    assert!(stderr.ends_with("err\n") && stderr.lines().count() == 2, "{stderr}");
    // Nor what a later release wrote.
    let newer = Turns::new();
    std::fs::create_dir_all(newer.place.state_dir()).unwrap();
    std::fs::write(newer.place.state_dir().join("VERSION"), "2\n").unwrap();
    let ran = newer.run(&[], &["true"]);
    assert!(String::from_utf8_lossy(&ran.stderr).contains("use the newer one"), "{ran:?}");
    assert_eq!((ran.status.code(), newer.lines().len()), (Some(0), 0));
    // Nor is it the end of the line that only the file beside the logs can't be written.
    let beside = Turns::new();
    beside.run(&[], &["true"]);
    let running = beside.place.state_dir().join("turns/running");
    std::fs::remove_dir(&running).unwrap();
    std::fs::write(&running, "").unwrap();
    let ran = beside.run(&[], &["true"]);
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(stderr.contains("should headman be killed") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!((ran.status.code(), beside.lines().len()), (Some(0), 2));
}

#[test]
fn a_file_that_may_not_grow_ends_no_turn() {
    let turns = Turns::new();
    turns.run(&[], &["true"]);
    let own = env!("CARGO_BIN_EXE_headman");
    let script =
        format!("ulimit -f 0; exec {own} turn --seat s -- sh -c 'sh -c \"echo x >f\"; echo $?; exit 5'");
    let ran = turns.shell(&script).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
    assert_eq!(stdout, "153\n", "the command has the default again");
    assert_eq!(stderr.matches("the turn is not logged: ").count(), 1, "{stderr}");
    assert_eq!(turns.lines().len(), 1);
    turns.assert_gone();
}

#[test]
fn a_command_in_the_background_of_a_shell_heeds_what_asks_it() {
    let turns = Turns::new();
    let own = env!("CARGO_BIN_EXE_headman");
    // As a shell without job control has them there.
    let script = format!(
        "trap '' INT QUIT; exec {own} turn --seat s -- sh -c 'trap \"exit 7\" INT; echo begun; sleep 600 & wait'"
    );
    let mut child = turns.shell(&script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    rustix::process::kill_process(pid_of(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let line = turns.last();
    let wanted = [true.into(), false.into(), Value::from(7)];
    assert_eq!(of(&line, &["cancelled", "killed", "exitCode"]), wanted, "{line}");
    turns.assert_gone();
}
