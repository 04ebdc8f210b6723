//! The operator's verifier behind the gate: a real process as a supervised turn, and what becomes of the
//! budget and of the lessons that went along.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use headman::contract::SessionId;
use headman::signals::claims::Claims;
use headman::signals::memory::{Kind, Memory};
use headman::signals::store::Store;
use serde_json::{Value, json};

use crate::cli_support::{Place, until};
use crate::signals::{Did, session_file};

const DONE: &str =
    "All is well.\n<sup>{\"state\":\"done\",\"focus\":\"the parser\",\"next\":null,\"carry\":[]}</sup>";
const PASS: &str = "echo '{\"verdict\":\"pass\",\"gaps\":[]}'";
const GAPS: &str = "echo '{\"verdict\":\"gaps\",\"gaps\":[\"nothing shows \\\"Fix the parser\\\"\"]}'";

fn tested() -> Vec<Vec<Did>> {
    vec![vec![Did::edit("src/a.rs", false)], vec![Did::bash("cargo test", "ok", false)]]
}

/// A place with a lead's claim in `s.jsonl` and a verifier, which runs what `v.sh` says.
fn place(rounds: &[Vec<Did>], attempts: u32) -> Place {
    let mut place = Place::new();
    place.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    session(&place, rounds);
    configure(&place, &["sh", "v.sh"], attempts, "");
    place
}

fn session(place: &Place, rounds: &[Vec<Did>]) {
    fs::write(place.path("s.jsonl"), session_file(rounds, "Fix the parser", Some(DONE))).unwrap();
}

fn configure(place: &Place, command: &[&str], attempts: u32, turn: &str) {
    let config = format!(
        "{turn}[supervisor]\nenabled = true\n[supervisor.learning]\n[supervisor.gate]\nenabled = true\n\
         command = {command:?}\nmax_attempts = {attempts}\n[supervisor.plan]\nenabled = true\n\
         [supervisor.condense]\nenabled = true\ntokens_threshold = 5000\n"
    );
    fs::write(place.path("c.toml"), config).unwrap();
}

const GATE: [&str; 6] = ["gate", "--file", "s.jsonl", "--json", "--config", "c.toml"];

/// The gate with this verifier: its code, and the verdict, the next step and why.
fn ask(place: &Place, script: &str) -> (i32, Value, Value, String) {
    fs::write(place.path("v.sh"), script).unwrap();
    let ran = place.run(&GATE);
    ran.assert_harmless();
    let json = ran.json();
    let why = json["why"].as_str().unwrap_or_default().to_owned();
    (ran.code, json["verdict"].clone(), json["next"].clone(), why)
}

fn log(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.state_dir().join("turns/gate.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn only_a_clean_pass_is_one_and_all_else_is_said() {
    let place = place(&tested(), 20);
    for (script, why) in [
        ("head -c 70000 /dev/zero | tr '\\0' x", "more than 65536 bytes"),
        ("yes", "more than 65536 bytes"),
        ("kill -9 $$", "signal 9"),
        (&format!("{PASS}; exit 3"), "exit code 3"),
        ("echo pass", "not of the form"),
        ("", "not of the form"),
        ("echo '{\"verdict\":\"gaps\",\"gaps\":[\"it lacks \\\"words of its own\\\"\"]}'", "no gap quotes"),
    ] {
        let (code, verdict, next, said) = ask(&place, script);
        assert_eq!((code, verdict, next), (1, "indeterminate".into(), "again".into()), "{script}");
        assert!(said.contains(why), "{script}: {said}");
    }
    let hang = "[turn]\nwall_backstop_ms = 150\ncancel_grace_ms = 50\n";
    configure(&place, &["sh", "v.sh"], 20, hang);
    let (_, verdict, _, said) = ask(&place, &format!("{PASS}; trap '' INT; sleep 60 & wait"));
    assert!(verdict == "indeterminate" && said.contains("too long"), "{said}");
    let (code, verdict, next, _) = ask(&place, &format!("cat > seen.json; {PASS}"));
    assert_eq!((code, verdict, next), (0, "pass".into(), "verified".into()));
    let seen: Value = serde_json::from_slice(&fs::read(place.path("seen.json")).unwrap()).unwrap();
    assert_eq!((&seen["request"], &seen["final_answer"]), (&"Fix the parser".into(), &"All is well.".into()));
    // Asked once more it need not run.
    let (code, verdict, next, _) = ask(&place, "touch ran");
    assert_eq!((code, verdict, next), (0, Value::Null, "verified".into()));
    assert!(!place.path("ran").exists());
    let lines = log(&place);
    let of = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(lines.len(), 9);
    assert!(of("seat").iter().all(|it| it == "gate") && of("eventType").iter().all(|it| it == "gate"));
    assert!(of("adapter").iter().all(|it| it == "verifier"), "{lines:?}");
    assert_eq!(of("attempts"), (1..=9).map(Value::from).collect::<Vec<_>>());
    assert_eq!((&lines[7]["failure"], &lines[8]["outcome"]), (&"wall_clock".into(), &"delivered".into()));
}

#[test]
fn a_claim_has_so_many_runs_over_restarts_and_the_same_gaps_end_it() {
    let place = place(&tested(), 2);
    assert_eq!(ask(&place, GAPS).2, "draft");
    assert_eq!(ask(&place, "echo nonsense").2, "exhausted");
    assert_eq!(ask(&place, PASS), (1, Value::Null, "exhausted".into(), String::new()));
    // Another turn of the user's has a budget of its own, and a new action of the lead makes a verdict old.
    let more = |count: usize| [tested(), vec![vec![Did::bash("cargo test x", "ok", false)]; count]].concat();
    let text = session_file(&more(0), "Fix the lexer", Some(DONE));
    fs::write(place.path("s.jsonl"), text.replace("2026", "2027")).unwrap();
    assert_eq!(ask(&place, PASS).2, "verified");
    session(&place, &more(0));
    configure(&place, &["sh", "v.sh"], 9, "");
    assert_eq!(ask(&place, GAPS).2, "draft");
    assert_eq!(ask(&place, GAPS).2, "draft", "the lead has done nothing since");
    session(&place, &more(1));
    let (code, verdict, next, _) = ask(&place, &format!("cat > seen.json; {GAPS}"));
    assert_eq!((code, verdict, next), (1, "gaps".into(), "same_gaps".into()));
    let seen: Value = serde_json::from_slice(&fs::read(place.path("seen.json")).unwrap()).unwrap();
    assert_eq!(seen["earlier_gaps"], json!(["nothing shows \"Fix the parser\""]));
    session(&place, &more(2));
    assert_eq!(ask(&place, PASS), (1, Value::Null, "same_gaps".into(), String::new()));
}

#[test]
fn where_there_is_no_verifier_or_no_claim_none_runs_and_the_next_step_is_said() {
    let place = place(&tested(), 2);
    fs::write(place.path("v.sh"), "touch ran").unwrap();
    let ran = place.run(&["gate", "--file", "s.jsonl"]);
    assert!(
        ran.code == 0 && ran.stdout.contains("Not verified: there is no verifier; name one"),
        "{}",
        ran.stdout
    );
    let ran = place.run(&[&GATE[..], &["--no-verifier"]].concat());
    assert_eq!((ran.code, ran.json().get("next")), (0, None));
    fs::write(place.path("s.jsonl"), session_file(&[], "Fix the parser", None)).unwrap();
    let ran = place.run(&GATE);
    assert_eq!((ran.code, &ran.json()["next"]), (1, &"no_claim".into()));
    session(&place, &tested()[..1]);
    assert_eq!(place.run(&GATE).json()["objections"][0]["code"], "mutation_without_check");
    assert!(!place.path("ran").exists());
    session(&place, &tested());
    configure(&place, &["/absent/verifier"], 2, "");
    let ran = place.run(&GATE);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &"verifier".into()));
}

#[test]
fn whoever_starts_it_ends_it_by_going_and_its_tree_is_gone() {
    let place = place(&tested(), 1);
    let script = "sh -c 'echo $$ > pid; exec sleep 60' & wait";
    fs::write(place.path("v.sh"), script).unwrap();
    let mut child =
        place.command(&[&GATE[..], &["--ends-with-input"]].concat()).stdin(Stdio::piped()).spawn().unwrap();
    until("the verifier runs", || fs::read_to_string(place.path("pid")).is_ok_and(|pid| pid.ends_with('\n')));
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    // Another gate of the same session waits for nothing.
    let ran = place.run(&GATE);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &"busy".into()));
    child.stdin.take().unwrap().flush().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    assert_eq!(log(&place)[0]["failure"], "cancelled");
    // That was no verdict, and is not counted.
    assert_eq!(ask(&place, PASS).2, "verified");
}

#[test]
fn lessons_that_went_along_learn_how_the_run_ended() {
    let place = place(&tested(), 2);
    let state = place.state_dir();
    assert_eq!(ask(&place, "echo nonsense").2, "again");
    let store = Store::new(&state, state.join("learning"));
    let memory = Memory {
        title: "Never push".into(),
        content: "Never push to main.".into(),
        kind: Kind::Lesson,
        importance: 0.9,
        confidence: 0.6,
        tags: vec![],
        source: "s#1".into(),
        role: "lead".into(),
        project: "api".into(),
        is_global: false,
        created: 1_772_368_245_000,
    };
    let name = store.add(&memory).unwrap();
    let claims = Claims::new(&state, state.join("claims"));
    let header: Value =
        serde_json::from_str(fs::read_to_string(place.path("s.jsonl")).unwrap().lines().next().unwrap())
            .unwrap();
    let session_id = SessionId::new(header["id"].as_str().unwrap()).unwrap();
    claims.inserted(&session_id, vec![name.clone()], false).unwrap();
    assert_eq!(ask(&place, "echo nonsense").2, "exhausted");
    let worth = || store.find(&name).unwrap().memory.unwrap().importance;
    assert_eq!(worth(), 0.75);
    assert_eq!(claims.read(&session_id).unwrap().inserted, [""; 0]);
    claims.inserted(&session_id, vec![name.clone(), "api/lead/absent".into()], false).unwrap();
    configure(&place, &["sh", "v.sh"], 4, "");
    assert_eq!(ask(&place, "echo nonsense").2, "again");
    assert_eq!(worth(), 0.7);
    fs::write(place.path("v.sh"), PASS).unwrap();
    let ran = place.run(&GATE);
    assert!(ran.stderr.contains("api/lead/absent learns nothing"), "{}", ran.stderr);
    assert_eq!(worth(), 0.75);
    let kept = state.join("claims").join(format!("{}.json", session_id.hash()));
    assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
}
