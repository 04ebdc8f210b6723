//! `headman grep`, and the search it is made of.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use headman::contract::SessionId;
use headman::herdr::Client;
use headman::pi::discover::SessionDirs;
use headman::pi::search::{Case, Filter, Hit, Pattern, Search, Syntax, Target};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::cli_support::{DEADLINE, Herd, Place, Ran, chmod, until};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
const SECOND: u64 = 1000;
/// 2026-11-30T07:59:30Z.
const BEGIN: u64 = 1_796_025_570_000;

fn header(session: &str) -> String {
    format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{session}\",\"cwd\":\"/w\"}}\n")
}

/// An entry of `message`, in JSON, the `nth` of its file.
fn entry(nth: u64, message: &str) -> String {
    let at = jiff::Timestamp::from_millisecond((BEGIN + nth * SECOND) as i64).unwrap();
    format!(
        "{{\"type\":\"message\",\"id\":\"{nth:08x}\",\"parentId\":null,\"timestamp\":\"{at}\",\"message\":{message}}}\n"
    )
}

fn said(nth: u64, text: &str) -> String {
    entry(nth, &json!({"role": "user", "content": text}).to_string())
}

/// Writes a session file, its directories too.
fn write(path: &Path, session: &str, entries: &[String]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, header(session) + &entries.concat()).unwrap();
}

fn hits(pattern: &Pattern, filter: Filter, files: &[PathBuf]) -> Vec<Hit> {
    let target = |file: &PathBuf| Target { file: file.clone(), session: None };
    let mut search = Search::new(pattern.clone(), filter, false, files.iter().map(target).collect());
    let mut hits = Vec::new();
    while search.step(&mut |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    }) {}
    hits
}

fn literal(text: &str) -> Pattern {
    Pattern::new(text, Syntax::Literal, Case::Smart).unwrap()
}

/// The lines of JSON that were printed.
fn objects(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(ran: &Ran) -> Vec<String> {
    objects(ran).iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect()
}

fn file_of(place: &Place, entries: &[String]) -> String {
    let path = place.path("s.jsonl");
    write(&path, "s-1", entries);
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_quick_look_loses_nothing_in_real_sessions() {
    let files: Vec<PathBuf> = fs::read_dir(SAMPLES)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    assert!(files.len() > 20);
    let everything = Filter { thinking: true, ..Filter::default() };
    let mut found = 0;
    for text in
        ["the", "The", "\"", "\n", "error", "/health", "é", "日", "😀", "\u{1b}[", ": ", "a\nb", "\\n", "${"]
    {
        let quick = hits(&literal(text), everything.clone(), &files);
        // As a regular expression each line is parsed.
        let case = format!("{}{}", if text == "The" { "(?-i)" } else { "" }, regex_of(text));
        let thorough =
            hits(&Pattern::new(&case, Syntax::Regex, Case::Smart).unwrap(), everything.clone(), &files);
        assert_eq!(quick, thorough, "{text:?}");
        for hit in &quick {
            let place = &hit.text[hit.place.clone()];
            assert_eq!(place.to_lowercase(), text.to_lowercase(), "{hit:?}");
        }
        found += quick.len();
    }
    assert!(found > 200, "{found}");
}

/// The text, each character by its number.
fn regex_of(text: &str) -> String {
    text.chars().map(|it| format!("\\x{{{:x}}}", u32::from(it))).collect()
}

#[test]
fn no_way_of_writing_json_hides_a_text() {
    let place = Place::new();
    let user = |nth, literal: &str| entry(nth, &format!("{{\"role\":\"user\",\"content\":\"{literal}\"}}"));
    let ways = [
        user(1, r"a caf\u00e9 here"),
        user(2, "a café here"),
        user(3, r"a \u0063af\u00E9 here"),
        user(4, r"a CAF\u00c9 here"),
        user(5, "a cafe here"),
        user(6, r#"say \"hi\"\nand\tgo to a\/b"#),
        user(7, r"a \ud83d\ude00 and a lone \ud83d"),
    ];
    let file = file_of(&place, &ways);
    for (pattern, count) in [
        ("café", 4),
        ("CAFÉ", 1),
        ("cafe", 1),
        ("\"hi\"", 1),
        ("hi\"\nand\tgo", 1),
        ("a/b", 1),
        ("😀", 1),
        ("lone \u{FFFD}", 1),
        ("u00e9", 0),
        ("\\n", 0),
    ] {
        let ran = place.run(&["grep", pattern, "--file", &file, "--json"]);
        assert_eq!(texts(&ran).len(), count, "{pattern:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, i32::from(count == 0), "{pattern:?}");
    }
    // What is said of one goes over its line no further than the line.
    let ran = place.run(&["grep", "hi\"\nand", "--file", &file, "--json"]);
    let hit = ran.json();
    assert_eq!((&hit["text"], &hit["match"]), (&json!("say \"hi\""), &json!([5, 8])));
}

#[test]
fn what_a_reader_sees_is_searched_and_nothing_else() {
    let place = Place::new();
    let line = |nth: u64, kind: &str, rest: Value| {
        let mut object = json!({"type": kind, "id": format!("{nth:08x}"), "parentId": null});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        format!("{object}\n")
    };
    let entries = [
        entry(
            1,
            r#"{"role":"user","content":[{"type":"text","text":"needle of a user"},{"type":"image","data":"needle"}]}"#,
        ),
        entry(
            2,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"needle thought"},{"type":"text","text":"needle said"},{"type":"toolCall","id":"needle","name":"bash","arguments":{"command":"echo \"needle\"","deep":[{"needle":"x"},["needle 2"]],"count":1.50,"none":null}}]}"#,
        ),
        entry(
            3,
            r#"{"role":"toolResult","toolCallId":"needle","toolName":"read","content":[{"type":"text","text":"needle read"}],"details":{"truncation":{"content":"needle again"}}}"#,
        ),
        entry(4, r#"{"role":"bashExecution","command":"grep needle","output":"no needle"}"#),
        entry(5, r#"{"role":"system","content":"needle of the system"}"#),
        entry(
            6,
            r#"{"role":"user","content":"__PI_HERDSMAN_AGENT_V4__:00000000-0000-4000-8000-000000000001"}"#,
        ),
        entry(7, r#"{"role":"of tomorrow","content":"needle"}"#),
        line(8, "compaction", json!({"summary": "needle summed up"})),
        line(9, "branch_summary", json!({"summary": "needle left"})),
        line(10, "custom_message", json!({"customType": "x", "content": "needle shown", "display": true})),
        line(11, "custom_message", json!({"customType": "x", "content": "needle hidden", "display": false})),
        line(12, "custom", json!({"customType": "x", "data": "needle"})),
        line(13, "of tomorrow", json!({"needle": "needle"})),
    ];
    let file = file_of(&place, &entries);
    let run = |options: &[&str]| {
        let ran = place.run(&[&["grep", "needle", "--file", &file, "--json"], options].concat());
        let told =
            |hit: &Value| format!("{}: {}", hit["role"].as_str().unwrap(), hit["text"].as_str().unwrap());
        objects(&ran).iter().map(told).collect::<Vec<_>>()
    };
    let all = [
        "custom: needle shown",
        "summary: needle left",
        "summary: needle summed up",
        "bash: grep needle",
        "bash: no needle",
        "tool_result: needle read",
        "assistant: needle said",
        "tool_call: echo \"needle\"",
        "tool_call: needle 2",
        "user: needle of a user",
    ];
    assert_eq!(run(&[]), all);
    assert_eq!(
        run(&["--role", "assistant", "--thinking"]),
        ["thinking: needle thought", "assistant: needle said"]
    );
    assert_eq!(run(&["--thinking"]).len(), all.len() + 1);
    assert_eq!(run(&["--role", "user"]), all[9..]);
    assert_eq!(run(&["--role", "tool"]), [all[3], all[4], all[5], all[7], all[8]]);
    assert_eq!(run(&["--role", "summary"]), all[1..3]);
    assert_eq!(run(&["--role", "custom"]), all[..1]);
    assert_eq!(run(&["--limit", "2"]), all[..2]);
    let number = |pattern: &str| place.run(&["grep", pattern, "--file", &file]).code;
    assert_eq!([number("1.50"), number("null"), number("HERDSMAN"), number("bash")], [0, 1, 1, 0]);
}

#[test]
fn one_object_says_what_was_found_where_and_lines_are_harmless() {
    let place = Place::new();
    let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}evil\u{200b} token\u{1b}[31m and token\r\nnext";
    let result = json!({"role": "toolResult", "toolName": "ba\u{1b}sh", "content": [{"type": "text", "text": format!("first\n{hostile}")}]});
    let named =
        "{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":null,\"name\":\"a\\u001b name\"}\n".to_owned();
    let file = file_of(&place, &[entry(1, &result.to_string()), named]);
    let ran = place.run(&["grep", "token", "--file", &file, "--json"]);
    ran.assert_harmless();
    let hit = ran.json();
    let text = hostile.lines().next().unwrap();
    let start = text.find("token").unwrap();
    let expected = json!({
        "session": "s-1", "name": "a\u{1b} name", "file": file, "entry": "00000001", "offset": header("s-1").len(),
        "timestamp": BEGIN + SECOND, "role": "tool_result", "tool": "ba\u{1b}sh", "text": text,
        "match": [start, start + 5], "matches": 2,
    });
    assert_eq!(hit, expected);
    let content = fs::read(&file).unwrap();
    assert_eq!(content[hit["offset"].as_u64().unwrap() as usize], b'{');
    let ran = place.run(&["grep", "token", "--file", &file]);
    ran.assert_harmless();
    assert_eq!(ran.stdout.lines().count(), 1);
    let parts: Vec<&str> = ran.stdout.trim_end().split(" · ").collect();
    assert_eq!((parts.len(), parts[0], parts[2]), (4, "a␛ name", "result ba␛sh"), "{}", ran.stdout);
    assert!(parts[3].ends_with("token␛[31m and token"), "{}", ran.stdout);
    // An old session has no ids, and a very long line is cut around the place.
    let old = place.path("old.jsonl");
    let long = format!("{}needle{}", "a".repeat(90_000), "é".repeat(90_000));
    let text = json!({"type": "message", "message": {"role": "user", "content": long}});
    fs::write(&old, format!("{{\"type\":\"session\",\"id\":\"old\"}}\n{text}\n")).unwrap();
    let ran = place.run(&["grep", "needle", "--file", old.to_str().unwrap(), "--json"]);
    let hit = ran.json();
    assert_eq!((&hit["entry"], &hit["timestamp"], &hit["tool"]), (&Value::Null, &Value::Null, &Value::Null));
    let text = hit["text"].as_str().unwrap();
    let range: Vec<usize> =
        hit["match"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap() as usize).collect();
    assert!(text.len() < 20_000 && &text[range[0]..range[1]] == "needle");
    let ran = place.run(&["grep", "needle", "--file", old.to_str().unwrap()]);
    assert!(
        ran.stdout.len() < 1000 && ran.stdout.contains("…a") && ran.stdout.contains("é…"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_can_not_be_searched_is_named_and_the_rest_is_searched() {
    let place = Place::new();
    let sessions = place.agent_dir().path().join("sessions");
    write(&sessions.join("--w--/good.jsonl"), "good", &[said(1, "needle one"), said(2, "needle two")]);
    let bad = |name: &str| sessions.join(name);
    fs::write(bad("text.jsonl"), "needle\n").unwrap();
    fs::write(bad("empty.jsonl"), "").unwrap();
    fs::write(bad("other.jsonl"), "{\"type\":\"needle\"}\n").unwrap();
    fs::create_dir(bad("directory.jsonl")).unwrap();
    mknodat(CWD, bad("pipe.jsonl"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    symlink(bad("--w--/good.jsonl"), bad("link.jsonl")).unwrap();
    // Whoever opens this waits for ever.
    mknodat(CWD, place.agent_dir().path().join("auth.json"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let outside = place.path("outside");
    write(&outside.join("o.jsonl"), "outside", &[said(1, "needle outside")]);
    symlink(&outside, bad("linked")).unwrap();
    write(&bad("locked.jsonl"), "locked", &[said(1, "needle locked")]);
    chmod(&bad("locked.jsonl"), 0);
    let is_root = rustix::process::geteuid().is_root();
    // A torn line, one with an entry fused to it, one that is not whole yet, and one that is far too long.
    let torn = said(3, "needle torn");
    let cut = torn.find(" torn").unwrap();
    let odd = [
        torn[..cut].to_owned() + "\n",
        torn[..cut].to_owned() + &said(4, "needle fused"),
        said(5, "needle unterminated"),
    ];
    write(&bad("odd.jsonl"), "odd", &odd);
    let odd_file = bad("odd.jsonl");
    let content = fs::read(&odd_file).unwrap();
    fs::write(&odd_file, &content[..content.len() - 1]).unwrap();
    write(&bad("long.jsonl"), "long", &[said(1, "needle before")]);
    let long = fs::OpenOptions::new().append(true).open(bad("long.jsonl")).unwrap();
    long.set_len((64 << 20) + 1_000).unwrap();
    let before: Vec<_> =
        place.picture().into_iter().filter(|(path, _)| !path.ends_with("long.jsonl")).collect();
    let ran = place.run(&["grep", "needle", "--all", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.assert_harmless();
    let mut found = texts(&ran);
    found.sort();
    let mut expected =
        vec!["needle before", "needle fused", "needle one", "needle two", "needle unterminated"];
    if is_root {
        expected.insert(2, "needle locked");
    }
    assert_eq!(found, expected);
    let count = |text: &str| ran.stderr.lines().filter(|line| line.contains(text)).count();
    for name in ["text", "empty", "other", "pipe", "link"] {
        assert_eq!(
            count(&format!("/{name}.jsonl is not searched: the session file")),
            1,
            "{name}: {}",
            ran.stderr
        );
    }
    assert_eq!(count("locked.jsonl is not searched"), usize::from(!is_root));
    assert_eq!(count("2 lines that may have it are no JSON"), 1, "{}", ran.stderr);
    assert_eq!(count("1 line of session files is too long to be searched"), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), if is_root { 7 } else { 8 }, "{}", ran.stderr);
    let after: Vec<_> =
        place.picture().into_iter().filter(|(path, _)| !path.ends_with("long.jsonl")).collect();
    assert_eq!(after, before, "only read");
}

#[test]
fn a_file_that_grows_meanwhile_is_searched_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    write(&path, "s-1", &[said(1, "needle")]);
    let target = Target { file: path.clone(), session: None };
    let mut search = Search::new(literal("needle"), Filter::default(), false, vec![target]);
    let mut found = 0;
    let mut steps = 0;
    loop {
        use std::io::Write;
        let more = search.step(&mut |_| {
            found += 1;
            ControlFlow::Continue(())
        });
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(said(2, "needle").as_bytes()).unwrap();
        steps += 1;
        if !more {
            break;
        }
    }
    assert_eq!((found, steps), (1, 2));
    // One that shrank says so.
    write(&path, "s-1", &[said(1, &"needle".repeat(400_000))]);
    let target = Target { file: path.clone(), session: None };
    let mut search = Search::new(literal("needle"), Filter::default(), false, vec![target]);
    let mut step = || search.step(&mut |_| ControlFlow::Continue(()));
    assert!(step() && step());
    fs::write(&path, "").unwrap();
    while step() {}
    let troubles = search.take_troubles();
    assert!(troubles[0].1.to_string().contains("written anew"), "{troubles:?}");
}

#[test]
fn what_forks_copied_is_shown_once_unless_all_is_asked_for() {
    let place = Place::new();
    let sessions = place.agent_dir().path().join("sessions/--w--");
    let shared = [said(1, "needle in both"), said(2, "other")];
    write(&sessions.join("a.jsonl"), "a", &[shared.concat(), said(3, "needle in one")]);
    // The same id at another time is another entry.
    write(
        &sessions.join("b.jsonl"),
        "b",
        &[shared.concat(), said(3, "needle in two").replace("07:59:33", "07:59:34")],
    );
    let run = |options: &[&str]| place.run(&[&["grep", "needle", "--all", "--json"], options].concat());
    let ran = run(&[]);
    let mut found = texts(&ran);
    found.sort();
    assert_eq!(found, ["needle in both", "needle in one", "needle in two"]);
    assert!(ran.stderr.contains("copies of 1 entry are not shown"), "{}", ran.stderr);
    let ran = run(&["--all-copies"]);
    assert_eq!((texts(&ran).len(), ran.stderr.as_str()), (4, ""));
}

#[test]
fn the_newest_file_comes_first_and_each_from_its_end() {
    let place = Place::new();
    let sessions = place.agent_dir().path().join("sessions");
    for (name, age) in [("old", 7_200), ("new", 60), ("middle", 3_000)] {
        let path = sessions.join(format!("{name}.jsonl"));
        let ago = |seconds: u64| {
            jiff::Timestamp::now().checked_sub(jiff::SignedDuration::from_secs(seconds as i64)).unwrap()
        };
        let at = |nth: u64, seconds: u64| {
            let begun = said(nth, &format!("needle {name} {nth}"));
            let stamp = jiff::Timestamp::from_millisecond((BEGIN + nth * SECOND) as i64).unwrap();
            begun.replace(&stamp.to_string(), &ago(seconds).to_string())
        };
        write(&path, name, &[at(1, age + 7_200), at(2, age)]);
        let modified = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
    let run =
        |options: &[&str]| texts(&place.run(&[&["grep", "needle", "--all", "--json"], options].concat()));
    let all = ["new 2", "new 1", "middle 2", "middle 1", "old 2", "old 1"].map(|it| format!("needle {it}"));
    assert_eq!(run(&[]), all);
    assert_eq!(run(&["--since", "1h"]), [&all[0], &all[2]].map(Clone::clone));
    assert_eq!(run(&["--since", "1d"]), all);
    assert_eq!(run(&["--limit", "3"]), all[..3]);
}

#[test]
fn it_ends_as_grep_does() {
    let place = Place::new();
    let file = file_of(&place, &[said(1, "Needle (x)")]);
    for (arguments, code) in [
        (&["needle"][..], 0),
        (&["NEEDLE"], 1),
        (&["NEEDLE", "-i"], 0),
        (&["needle.*x", "-e"], 0),
        (&["needle.*x"], 1),
        (&["e (x)"], 0),
        (&["--", "-x"], 1),
    ] {
        let ran = place.run(&[&["grep", "--file", &file], arguments].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{arguments:?}");
        assert_eq!(ran.stdout.is_empty(), code == 1, "{arguments:?}");
    }
    let session_dir = place.agent_dir().path().join("sessions");
    fs::create_dir_all(&session_dir).unwrap();
    for (arguments, code, why) in [
        (&["grep", "(", "-e", "--file", &file][..], "pattern", "unclosed group"),
        (&["grep", "", "--file", &file], "pattern", "it is empty"),
        (&["grep", "x", "--file", "/nowhere"], "nothing_to_search", "none of the files"),
        (&["grep", "x", "--all"], "nothing_to_search", "no session files"),
        (
            &["grep", "x", "--session", "nobody-at-all"],
            "nothing_to_search",
            "no file of session nobody-at-all",
        ),
        (&["grep"], "usage", "PATTERN"),
        (&["grep", "x", "--all", "--file", &file], "usage", "--all"),
        (&["grep", "x", "--limit", "0", "--file", &file], "usage", "limit"),
        (&["grep", "x", "--since", "soon", "--file", &file], "usage", "a time as"),
        (&["grep", "x", "--role", "system", "--file", &file], "usage", "system"),
    ] {
        let ran = place.run(&[arguments, &["--json"]].concat());
        let told = &ran.json()["error"];
        assert_eq!((ran.code, &told["code"]), (2, &json!(code)), "{arguments:?}: {}", ran.stderr);
        assert!(told["message"].as_str().unwrap().contains(why), "{arguments:?}: {told}");
    }
    // Leads can't be known without Herdr.
    let ran = place.run(&["grep", "x"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
}

#[test]
fn a_reader_that_goes_ends_it_at_once() {
    let place = Place::new();
    let entries: Vec<String> = (0..20_000).map(|nth| said(nth, "needle and more")).collect();
    let file = file_of(&place, &entries);
    let mut child =
        place.command(&["grep", "needle", "--file", &file]).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("needle"));
    drop(reader);
    let mut status = None;
    until("its end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.unwrap().code(), stderr.as_str()), (Some(0), ""), "within {DEADLINE:?}");
}

#[test]
fn sessions_are_found_wherever_pi_keeps_them_and_by_their_headers() {
    let mut place = Place::new();
    let agent_dir = place.agent_dir().path().to_owned();
    let put =
        |path: PathBuf, session: &str| write(&path, session, &[said(1, &format!("needle of {session}"))]);
    put(agent_dir.join("sessions/--w--/2026_nested.jsonl"), "nested");
    put(agent_dir.join("sessions/--w--/parent/run/x.jsonl"), "subagent");
    put(agent_dir.join("sessions/1/2/3/4/5/6/7/8/deep.jsonl"), "deep");
    put(agent_dir.join("sessions/1/2/3/4/5/6/7/8/9/deeper.jsonl"), "too deep");
    put(agent_dir.join("flat.jsonl"), "flat of an old Pi");
    put(agent_dir.join("pi-herdsman/x.jsonl"), "no session directory");
    put(place.path("home/from-env/e.jsonl"), "environment");
    put(place.path("home/from-settings/s.jsonl"), "settings");
    put(place.path("project/relative/r.jsonl"), "project");
    fs::write(agent_dir.join("settings.json"), r#"{"sessionDir":"~/from-settings"}"#).unwrap();
    fs::create_dir_all(place.path("project/.pi")).unwrap();
    fs::write(place.path("project/.pi/settings.json"), r#"{"sessionDir":"relative"}"#).unwrap();
    // Names that lie: the header decides.
    put(agent_dir.join("sessions/--w--/2026_nobody-0001.jsonl"), "01a22b77-339a-7241");
    put(agent_dir.join("sessions/--w--/2026_01a22b77-339a-7241.jsonl"), "somebody else");
    put(agent_dir.join("sessions/--w--/copy-1.jsonl"), "01a22b77-339a-7241");
    place.set("PI_CODING_AGENT_SESSION_DIR", "~/from-env");
    let ran = place.run(&["grep", "needle", "--all", "--all-copies", "--json"]);
    let mut found: Vec<String> =
        objects(&ran).iter().map(|hit| hit["session"].as_str().unwrap().to_owned()).collect();
    found.sort();
    let id = "01a22b77-339a-7241";
    assert_eq!(
        found,
        [
            id,
            id,
            "deep",
            "environment",
            "flat of an old Pi",
            "nested",
            "settings",
            "somebody else",
            "subagent"
        ]
    );
    assert!(ran.stderr.contains("7/8/9 is not searched: it is too deep"), "{}", ran.stderr);
    // What the project of a lead says counts for it.
    let dirs = SessionDirs { agent_dir: agent_dir.clone(), session_dir: None, home: place.path("home") };
    let files = dirs.files(&[place.path("project")]).files;
    assert!(files.contains(&place.path("project/relative/r.jsonl")), "{files:?}");
    assert!(!files.contains(&place.path("home/from-env/e.jsonl")));
    for wanted in [id, "01a22b77"] {
        let ran = place.run(&["grep", "needle", "--session", wanted, "--all-copies", "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(objects(&ran).iter().all(|hit| hit["session"] == id));
        assert_eq!(objects(&ran).len(), 2);
        assert!(
            ran.stderr.contains(&format!("2 files are of session {id}; all are searched")),
            "{}",
            ran.stderr
        );
    }
    put(agent_dir.join("sessions/--w--/z.jsonl"), "01a22b77-of another");
    let ran = place.run(&["grep", "needle", "--session", "01a22b77"]);
    assert!(ran.code == 2 && ran.stderr.contains("2 sessions begin so"), "{}", ran.stderr);
}

#[test]
fn the_leads_sessions_are_searched_where_herdr_names_them_and_elsewhere_by_their_ids() {
    let mut herd = Herd::new();
    let named = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let pane = herd.agent(named, "api", None);
    let path = herd.place.path("named.jsonl");
    write(&path, named, &[said(1, "needle named")]);
    let client = Client::new(herd.server.socket().to_owned());
    for (method, seq) in [("pane.report_agent_session", 1_000_000), ("pane.report_agent", 1_000_001)] {
        let report = json!({
            "pane_id": pane, "source": "herdr:pi", "agent": "pi", "seq": seq, "state": "idle",
            "agent_session_path": path,
        });
        herd.block_on(client.request(method, report)).unwrap();
    }
    herd.record(named, None);
    herd.agent("by-its-id", "web", None);
    herd.record("by-its-id", None);
    herd.agent("without-a-file", "docs", None);
    herd.record("without-a-file", None);
    let sessions = herd.place.agent_dir().path().join("sessions/--tmp--");
    write(&sessions.join("x.jsonl"), "by-its-id", &[said(2, "needle by id")]);
    write(&sessions.join("y.jsonl"), "no lead's", &[said(3, "needle of nobody")]);
    let before = herd.place.picture();
    let ran = herd.place.run(&["grep", "needle", "--json"]);
    let mut found: Vec<(String, String)> = objects(&ran)
        .iter()
        .map(|hit| (hit["name"].as_str().unwrap().to_owned(), hit["text"].as_str().unwrap().to_owned()))
        .collect();
    found.sort();
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((ran.code, texts), (0, vec!["needle named", "needle by id"]), "{}", ran.stderr);
    assert!(found[0].0.starts_with("api") && found[1].0.starts_with("web"), "{found:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no session file of docs"), "{}", ran.stderr);
    let ran = herd.place.run(&["grep", "needle", "--session", "01a22b77", "--json"]);
    assert_eq!((ran.code, &ran.json()["text"]), (0, &json!("needle named")));
    assert_eq!(herd.place.picture(), before, "only read");
    // A file that became another session's in between is not searched for that lead.
    let wanted = Some(SessionId::new("another").unwrap());
    let target = Target { file: path, session: wanted };
    let mut search = Search::new(literal("needle"), Filter::default(), false, vec![target]);
    while search.step(&mut |hit| panic!("{hit:?}")) {}
    assert!(search.take_troubles()[0].1.to_string().contains("is of another session"));
}
