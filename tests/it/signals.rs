//! The supervisor's detectors, reports and advice: what a session shows by itself.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use headman::contract::Uuid;
use headman::pi::said::{self, Answer, Call, Given, Said, Step};
use headman::signals::detect::{Badge, Signal};
use headman::signals::dirty::Mark;
use headman::signals::fuse::{Advice, advise};
use headman::signals::self_report::{self, Circumstances, Report, State};
use headman::signals::watch::{Outcome, SILENCE, Watch};
use serde_json::{Value, json};

use crate::cli_support::{Herd, Place};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/signals/detectors.json");

fn golden() -> Vec<Value> {
    let golden: Value = serde_json::from_slice(&fs::read(GOLDEN).unwrap()).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

/// One call and what it gave, as the golden cases have them.
#[derive(Debug, Clone)]
pub(crate) struct Did {
    tool: String,
    arguments: Vec<(String, Value)>,
    result: String,
    is_error: bool,
}

impl Did {
    fn of(value: &Value) -> Self {
        Self {
            tool: value["tool"].as_str().unwrap().to_owned(),
            arguments: value["arguments"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            result: value["result"].as_str().unwrap().to_owned(),
            is_error: value["isError"].as_bool().unwrap(),
        }
    }

    pub(crate) fn new(tool: &str, argument: (&str, &str), result: &str, is_error: bool) -> Self {
        let arguments = vec![(argument.0.to_owned(), argument.1.into())];
        Self { tool: tool.to_owned(), arguments, result: result.to_owned(), is_error }
    }

    pub(crate) fn bash(command: &str, result: &str, is_error: bool) -> Self {
        Self::new("bash", ("command", command), result, is_error)
    }

    pub(crate) fn read(path: &str) -> Self {
        Self::new("read", ("path", path), path, false)
    }

    pub(crate) fn edit(path: &str, is_error: bool) -> Self {
        Self::new("edit", ("path", path), "the receipt", is_error)
    }
}

/// The steps of a round, whose entry is `entry`, that says `text`.
pub(crate) fn steps(entry: &str, text: &str, round: &[Did]) -> Vec<Step> {
    let step = |said| Step { entry: entry.to_owned(), offset: 0, at: None, said };
    let call = |(nth, did): (usize, &Did)| Call {
        id: format!("{entry}-{nth}"),
        tool: did.tool.clone(),
        arguments: did
            .arguments
            .iter()
            .map(|(name, value)| {
                (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect(),
    };
    let given = |(nth, did): (usize, &Did)| Given {
        call: format!("{entry}-{nth}"),
        text: did.result.clone(),
        images: Vec::new(),
        is_error: did.is_error,
    };
    let calls = round.iter().enumerate().map(call).collect();
    let mut all = vec![step(Said::Answer(Answer { text: text.to_owned(), calls, model: None }))];
    all.extend(round.iter().enumerate().map(|it| step(Said::Given(given(it)))));
    all
}

pub(crate) fn user(text: &str) -> Step {
    Step { entry: "u".to_owned(), offset: 0, at: None, said: Said::User(text.to_owned()) }
}

pub(crate) fn answer(text: &str) -> Step {
    Step {
        entry: "z".to_owned(),
        offset: 0,
        at: None,
        said: Said::Answer(Answer { text: text.to_owned(), calls: Vec::new(), model: None }),
    }
}

pub(crate) fn all(rounds: &[Vec<Did>]) -> Vec<Step> {
    let rounds = rounds.iter().enumerate().flat_map(|(at, round)| steps(&format!("{at:08x}"), "", round));
    std::iter::once(user("do it")).chain(rounds).collect()
}

pub(crate) fn watched(steps: &[Step]) -> (Watch, Vec<Outcome>) {
    let mut watch = Watch::default();
    let mut outcomes: Vec<Outcome> = steps.iter().filter_map(|step| watch.take(step)).collect();
    outcomes.extend(watch.close());
    (watch, outcomes)
}

/// A session file as Pi writes it.
pub(crate) fn session_file(rounds: &[Vec<Did>], request: &str, last: Option<&str>) -> String {
    let mut file = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n".to_owned();
    let mut count = 0_u32;
    let mut add = |message: Value| {
        let parent = if count == 0 { Value::Null } else { format!("{:08x}", count - 1).into() };
        let line = json!({
            "type": "message", "id": format!("{count:08x}"), "parentId": parent,
            "timestamp": "2026-01-02T03:04:05.006Z", "message": message,
        });
        writeln!(file, "{line}").unwrap();
        count += 1;
    };
    add(json!({"role": "user", "content": request}));
    for (at, round) in rounds.iter().enumerate() {
        let calls = round.iter().enumerate().map(|(nth, did)| {
            let arguments: serde_json::Map<String, Value> = did.arguments.iter().cloned().collect();
            json!({"type": "toolCall", "id": format!("{at}-{nth}"), "name": did.tool, "arguments": arguments})
        });
        add(
            json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "provider": "p", "model": "m"}),
        );
        for (nth, did) in round.iter().enumerate() {
            add(json!({
                "role": "toolResult", "toolCallId": format!("{at}-{nth}"), "toolName": did.tool,
                "content": [{"type": "text", "text": did.result}], "isError": did.is_error,
            }));
        }
    }
    if let Some(last) = last {
        add(json!({"role": "assistant", "content": [{"type": "text", "text": last}]}));
    }
    file
}

#[test]
fn golden_rounds_set_off_what_they_should() {
    let cases = golden();
    assert_eq!(cases.len(), 34);
    for case in cases {
        let rounds: Vec<Vec<Did>> = case["rounds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|round| round.as_array().unwrap().iter().map(Did::of).collect())
            .collect();
        let (_, outcomes) = watched(&all(&rounds));
        let found: Vec<Value> = outcomes
            .iter()
            .map(|outcome| outcome.signal.map_or(Value::Null, |signal| signal.as_str().into()))
            .collect();
        assert_eq!(Value::from(found), case["expect"], "{}", case["id"]);
    }
}

#[test]
fn the_verb_prints_a_line_for_each_round_and_one_of_advice() {
    let place = Place::new();
    for case in golden() {
        // A process each would take long: one of each kind.
        if !["L1", "N1", "R4", "L9"].iter().any(|id| case["id"] == *id) {
            continue;
        }
        let rounds: Vec<Vec<Did>> = case["rounds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|round| round.as_array().unwrap().iter().map(Did::of).collect())
            .collect();
        fs::write(place.path("s.jsonl"), session_file(&rounds, "do it", None)).unwrap();
        let before = place.picture();
        let ran = place.run(&["signals", "--file", "s.jsonl", "--json"]);
        ran.assert_harmless();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expect = case["expect"].as_array().unwrap();
        assert_eq!(lines.len(), expect.len() + 1);
        for (nth, (line, expect)) in lines.iter().zip(expect).enumerate() {
            let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys.len(), 6, "{keys:?}");
            assert_eq!((&line["round"], &line["detector"]), (&(nth + 1).into(), expect), "{}", case["id"]);
            assert_eq!(line["report"], Value::Null);
            assert!(line["novel"].is_boolean() && line["mutated"].is_boolean());
        }
        assert_eq!(lines[0]["entry"], "00000001");
        let last = lines.last().unwrap();
        assert_eq!(last.as_object().unwrap().len(), 2);
        let (advice, dirty) = match case["id"].as_str().unwrap() {
            "L9" => (Value::Null, true),
            _ => ("steer".into(), false),
        };
        assert_eq!(*last, json!({"advice": advice, "dirty": dirty}), "{}", case["id"]);
        let text = place.run(&["signals", "--file", "s.jsonl"]);
        text.assert_harmless();
        assert_eq!(text.stdout.contains("Draft: "), advice != Value::Null, "{}", text.stdout);
        assert_eq!(place.picture(), before, "only read");
    }
}

fn mark(rounds: &[Vec<Did>]) -> Mark {
    watched(&all(rounds)).0.mark()
}

#[test]
fn what_was_changed_is_marked_until_it_is_looked_at() {
    let ok = || Did::bash("cargo test", "ok", false);
    let fails = || Did::bash("cargo test", "1 failed\n\nCommand exited with code 101", true);
    let edit = || Did::edit("a", false);
    for (rounds, wanted) in [
        (vec![vec![edit()]], Mark::Dirty),
        (vec![vec![edit()], vec![ok()]], Mark::Clean),
        (vec![vec![edit()], vec![fails()]], Mark::Dirty),
        (vec![vec![edit()], vec![Did::read("b")]], Mark::Dirty),
        (vec![vec![edit()], vec![Did::read("a")]], Mark::ContentOnly),
        (vec![vec![edit(), ok()]], Mark::Dirty),
        (vec![vec![edit(), Did::read("a")]], Mark::Dirty),
        (vec![vec![Did::edit("a", true)]], Mark::Clean),
        (vec![vec![edit()], vec![ok()], vec![edit()]], Mark::Dirty),
        (vec![vec![edit()], vec![Did::read("a")], vec![ok()]], Mark::Clean),
        (vec![vec![edit()], vec![Did::read("a")], vec![fails()]], Mark::ContentOnly),
        (vec![vec![edit()], vec![Did::read("./a")]], Mark::ContentOnly),
        (vec![vec![edit()], vec![Did::new("read", ("path", "a"), "no such file", true)]], Mark::Dirty),
        (vec![vec![edit()], vec![Did::bash("rg x", "Command exited with code 1", true)]], Mark::Dirty),
        (vec![vec![Did::bash("echo x > y", "(no output)", false)]], Mark::Dirty),
        (vec![vec![Did::bash("echo x > /dev/null", "(no output)", false)]], Mark::Clean),
        (vec![vec![Did::bash("git push", "rejected", true)]], Mark::Dirty),
    ] {
        assert_eq!(mark(&rounds), wanted, "{rounds:?}");
    }
    let mut steps = all(&[vec![edit()]]);
    steps.push(user("and now"));
    assert_eq!(watched(&steps).0.mark(), Mark::Clean);
    // The same file by its whole path.
    let mut watch = Watch::new(Some("/w/".to_owned()));
    for step in all(&[vec![Did::edit("src/a", false)], vec![Did::read("/w/src//a")]]) {
        watch.take(&step);
    }
    assert_eq!(watch.mark(), Mark::ContentOnly);
}

fn report(text: &str) -> Option<Report> {
    self_report::read(text).report
}

#[test]
fn reports_are_read_and_taken_out_of_what_is_shown() {
    let good = "<sup>{\"state\":\"done\",\"focus\":\"f\",\"next\":null,\"carry\":[]}</sup>";
    let of = |state: &str| good.replace("done", state);
    // What is shown, and the state.
    for (text, shown, state) in [
        (format!("All good.\n{good}"), "All good.", Some(State::Done)),
        (format!("All good. {good}\n\n"), "All good.", Some(State::Done)),
        (of("EXPLORING"), "", Some(State::Exploring)),
        (of("progressing"), "", Some(State::Progressing)),
        (of("Blocked"), "", Some(State::Blocked)),
        (of("need_input"), "", Some(State::NeedInput)),
        (of("need-input"), "", Some(State::NeedInput)),
        (of("NeedInput"), "", Some(State::NeedInput)),
        (of("sleeping"), "", None),
        (format!("x\n{}\n{good}", of("blocked")), "x", Some(State::Done)),
        (format!("x\n{good}\n{}", of("sleeping")), "x", None),
        ("x<sup>blocked \u{b7} no disk</sup>".to_owned(), "x", Some(State::Blocked)),
        ("x<sup>nothing \u{b7} at all</sup>".to_owned(), "x<sup>nothing \u{b7} at all</sup>", None),
        ("10 m<sup>2</sup>".to_owned(), "10 m<sup>2</sup>", None),
        (format!("10 m<sup>2</sup>\n{good}"), "10 m<sup>2</sup>", Some(State::Done)),
        ("<sup>done</sup>".to_owned(), "<sup>done</sup>", None),
        (format!("{good}\nmore"), "{good}\nmore", None),
        ("x <sup>{\"state\":\"done\"}</sup>".to_owned(), "x", None),
        ("x <sup>{\"state\":}</sup>".to_owned(), "x", None),
        (good.replace("\"next\":null", "\"next\":1"), "", None),
        (good.replace("\"carry\":[]", "\"carry\":[1]"), "", None),
        (good.replace("\"carry\":[]", "\"carry\":\"a\""), "", None),
        (good.replace("\"focus\":\"f\"", "\"focus\":\"f\",\"mood\":\"good\""), "", None),
        (good.replace("\"focus\":\"f\"", "\"focus\":\"f\",\"plan\":[1]"), "", Some(State::Done)),
        (good.replace("\"f\"", &format!("\"{}\"", "f".repeat(20_000))), "", None),
        (good.replace("[]", &format!("{}{}", "[".repeat(8_000), "]".repeat(8_000))), "", None),
        ("</sup>".to_owned(), "</sup>", None),
    ] {
        let read = self_report::read(&text);
        let shown = shown.replace("{good}", good);
        assert_eq!((read.text, read.report.map(|it| it.state)), (shown, state), "{text:.300}");
    }
    let text = "<sup>{\"state\":\"blocked\",\"focus\":\"f\",\"next\":\"n\",\"carry\":[\"a\",\"password=hunter2\"],\"plan\":{\"x\": 1}}</sup>";
    assert_eq!(
        String::from_utf8(report(text).unwrap().to_json()).unwrap(),
        "{\"state\":\"blocked\",\"focus\":\"f\",\"next\":\"n\",\"carry\":[\"a\",\"password=[masked]\"],\"plan\":{\"x\":1}}"
    );
    assert_eq!(report("<sup>blocked \u{b7} no disk</sup>").unwrap().focus, "no disk");
}

#[test]
fn without_a_report_one_is_derived_and_says_so() {
    let derived = |seen: Circumstances<'_>| Report::derived(&seen).map(|report| report.state);
    let none = Circumstances::default();
    assert_eq!(derived(none), None);
    assert_eq!(derived(Circumstances { is_blocked: true, ..none }), Some(State::Blocked));
    let asks = Circumstances {
        pending_ask: Some("Deploy?"),
        is_blocked: true,
        is_working: false,
        last_message: Some("Done."),
    };
    assert_eq!(derived(asks), Some(State::NeedInput));
    for (message, state) in [
        ("Done: all tests pass.", Some(State::Done)),
        ("The migration is finished.", Some(State::Done)),
        ("It is not done yet.", None),
        ("I haven't finished.", None),
        ("Two things remain to be done.", None),
        ("Tell me when it is done.", None),
        ("Working on it.", None),
    ] {
        assert_eq!(derived(Circumstances { last_message: Some(message), ..none }), state, "{message}");
    }
    let watch = watched(&[user("x"), answer("I ask.")]).0;
    let standing = watch.standing(&asks);
    assert!(String::from_utf8(standing.report.unwrap().to_json()).unwrap().ends_with("\"derived\":true}"));
    // Whoever works has not stopped, and so claims nothing.
    let mut steps = all(&[vec![Did::edit("a", false)]]);
    steps.push(answer("Going on with that."));
    let watch = watched(&steps).0;
    assert_eq!(watch.standing(&none).advice, Some(Advice::Gate));
    assert_eq!(watch.standing(&Circumstances { is_working: true, ..none }).advice, None);
    // What the lead itself says comes first.
    let own = "<sup>{\"state\":\"exploring\",\"focus\":\"\",\"next\":null,\"carry\":[]}</sup>";
    let watch = watched(&[user("x"), answer(own)]).0;
    assert_eq!(watch.standing(&asks).report.unwrap().state, State::Exploring);
}

#[test]
fn signal_and_report_together_advise() {
    let steer = Some(Advice::Steer { disagrees: false });
    let differ = Some(Advice::Steer { disagrees: true });
    let gate = Some(Advice::Gate);
    let reports = [
        Some(State::Done),
        Some(State::Exploring),
        Some(State::Progressing),
        Some(State::Blocked),
        Some(State::NeedInput),
        None,
    ];
    let table = [
        (None, [gate, None, None, None, None, None]),
        (Some(Signal::NoProgress), [gate, Some(Advice::Wait), differ, steer, None, steer]),
        (Some(Signal::Loop), [gate, steer, steer, steer, steer, steer]),
        (Some(Signal::Recovery), [gate, steer, steer, steer, steer, steer]),
    ];
    for (signal, row) in table {
        for (report, wanted) in reports.into_iter().zip(row) {
            assert_eq!(advise(signal, report, false), wanted, "{signal:?} {report:?}");
            let stopped = if (signal, report) == (None, None) { gate } else { wanted };
            assert_eq!(advise(signal, report, true), stopped, "{signal:?} {report:?}");
        }
    }
}

#[test]
fn what_is_only_shown_is_shown_once_it_is_enough() {
    let turn = |nth: usize| vec![Did::read(if nth.is_multiple_of(2) { "a" } else { "b" })];
    let rounds: Vec<Vec<Did>> = (0..11).map(turn).collect();
    assert_eq!(watched(&all(&rounds[..10])).0.badges(), []);
    assert_eq!(watched(&all(&rounds)).0.badges(), [Badge::Alternation]);
    let mut broken = rounds.clone();
    broken[5] = vec![Did::read("c")];
    assert_eq!(watched(&all(&broken)).0.badges(), []);

    let says = |texts: &[&str]| {
        let steps: Vec<Step> =
            std::iter::once(user("x")).chain(texts.iter().map(|text| answer(text))).collect();
        watched(&steps).0.badges()
    };
    assert_eq!(says(&["On it.", "On it. ", " On it."]), [Badge::Monologue]);
    assert_eq!(says(&["On it.", "On it.", "Well."]), []);
    assert_eq!(says(&["", "", ""]), []);
    // Who is asked the same may answer the same.
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.extend([user("again"), answer("Yes.")]);
    }
    assert_eq!(watched(&steps).0.badges(), []);

    let compacted = || Step { entry: "c".to_owned(), offset: 0, at: None, said: Said::Compaction };
    let mut steps = all(&[vec![Did::read("a")]]);
    for nth in 0..3 {
        steps.push(compacted());
        steps.extend(self::steps(&format!("n{nth}"), "", &[Did::read("a")]));
    }
    assert_eq!(watched(&steps).0.badges(), [Badge::Compactions]);
    steps.extend(self::steps("new", "", &[Did::read("b")]));
    assert_eq!(watched(&steps).0.badges(), []);
}

#[test]
fn silence_is_of_who_has_something_to_do() {
    let at = |mut step: Step, at: u64| {
        step.at = Some(at);
        step
    };
    let asked = watched(&[at(user("x"), 1_000)]).0;
    assert_eq!(asked.silence(1_000 + SILENCE - 1), None);
    assert_eq!(asked.silence(1_000 + SILENCE), Some(SILENCE));
    assert_eq!(asked.silence(0), None, "a clock that was set back");
    let idle = watched(&[at(user("x"), 1_000), at(answer("Done."), 2_000)]).0;
    assert_eq!(idle.silence(u64::MAX), None);
}

#[test]
fn a_result_that_never_comes_is_a_failure_without_a_text() {
    let mut steps = all(&[vec![Did::bash("a", "x", false), Did::bash("b", "y", false)]]);
    let given = steps.pop().unwrap();
    let mut watch = Watch::default();
    assert!(steps.iter().all(|step| watch.take(step).is_none()), "not before all are there");
    let open = watch.clone();
    assert_eq!(watch.take(&given).unwrap().round, 1);
    // Instead of it the next message comes, or nothing.
    let mut watch = open.clone();
    assert_eq!(watch.take(&user("go on")).unwrap().entry, "00000000");
    let mut watch = open;
    let closed = watch.close().unwrap();
    assert_eq!((closed.round, watch.close()), (1, None));
    assert!(watch.rows().last().unwrap().starts_with("bash failed: b"));
    // Results of nobody's call, and of one that was answered, are passed over.
    let stray = Step {
        entry: "s".to_owned(),
        offset: 0,
        at: None,
        said: Said::Given(Given {
            call: "none".to_owned(),
            text: String::new(),
            images: Vec::new(),
            is_error: true,
        }),
    };
    assert_eq!(watch.take(&stray), None);
}

#[test]
fn the_samples_alarm_where_something_repeats_and_nowhere_else() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi");
    let mut alarms = Vec::new();
    let mut names: Vec<String> =
        fs::read_dir(&directory).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| name.ends_with(".jsonl"));
    assert!(names.len() > 30);
    for name in names {
        let begin = |_: &headman::pi::session::Header| (Watch::default(), Vec::new());
        let ((watch, outcomes), _) = said::fold(
            &directory.join(&name),
            None,
            begin,
            |(watch, outcomes): &mut (Watch, Vec<Outcome>), step| {
                outcomes.extend(watch.take(&step));
            },
        )
        .unwrap();
        let rounds: Vec<u64> =
            outcomes.iter().filter(|outcome| outcome.signal.is_some()).map(|outcome| outcome.round).collect();
        if !rounds.is_empty() || !watch.badges().is_empty() {
            alarms.push(format!("{} {rounds:?} {:?}", &name[..3], watch.badges()));
        }
        assert!(outcomes.iter().all(|outcome| outcome.signal.is_none_or(|signal| signal == Signal::Loop)));
    }
    // Each of them calls the same four times, and gets the same.
    let looped = ["03-", "03b", "20-", "20b", "20c", "30-", "30b", "30c"];
    assert_eq!(alarms, looped.map(|name| format!("{name} [3, 4] []")));
}

#[test]
fn a_leads_signals_are_read_from_the_file_that_herdr_names() {
    let session = "01a22b77-339a-7241-9ef5-b7ff2b23890b";
    let mut herd = Herd::new();
    let pane = herd.agent(session, "api", None);
    let path = herd.place.path("s.jsonl");
    fs::write(&path, session_file(&[], "x", Some("I ask.")).replace("s-1", session)).unwrap();
    herd.record(session, Some((Uuid::random(), "Deploy?")));
    let client = headman::herdr::Client::new(herd.server.socket().to_owned());
    for (method, seq) in [("pane.report_agent_session", 1_000_000), ("pane.report_agent", 1_000_001)] {
        let report = json!({
            "pane_id": pane, "source": "herdr:pi", "agent": "pi", "seq": seq, "state": "idle",
            "agent_session_path": path,
        });
        herd.block_on(client.request(method, report)).unwrap();
    }
    let before = herd.place.picture();
    let ran = herd.place.run(&["signals", "01a22b77"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("State: need_input, derived"), "{}", ran.stdout);
    let ran = herd.place.run(&["signals", session, "--json"]);
    assert_eq!(ran.json(), json!({"advice": null, "dirty": false}));
    for (arguments, code, kind) in [
        (&["signals", "nobody at all", "--json"][..], 1, "not_found"),
        (&["signals", "--file", "absent", "--json"], 4, "not_there"),
        (&["signals", "--json"], 2, "usage"),
        (&["signals", session, "--file", "s.jsonl", "--json"], 2, "usage"),
    ] {
        let ran = herd.place.run(arguments);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (code, &kind.into()), "{arguments:?}");
    }
    assert_eq!(herd.place.picture(), before, "only read");
}
