//! The supervisor's detectors, reports and advice: what a session shows by itself.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use headman::pi::said::{self, Answer, Call, Given, Said, Step};
use headman::signals::detect::Signal;
use headman::signals::dirty::Mark;
use headman::signals::fuse::{Advice, advise};
use headman::signals::self_report::{self, Circumstances, Report, State};
use headman::signals::watch::{Outcome, Watch};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cli_support::Place;

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
fn steps(entry: &str, text: &str, round: &[Did]) -> Vec<Step> {
    let step = |said| Step { entry: entry.to_owned(), at: None, said };
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

fn user(text: &str) -> Step {
    Step { entry: "u".to_owned(), at: None, said: Said::User(text.to_owned()) }
}

fn answer(text: &str) -> Step {
    Step {
        entry: "z".to_owned(),
        at: None,
        said: Said::Answer(Answer { text: text.to_owned(), calls: Vec::new(), model: None }),
    }
}

fn all(rounds: &[Vec<Did>]) -> Vec<Step> {
    let rounds = rounds.iter().enumerate().flat_map(|(at, round)| steps(&format!("{at:08x}"), "", round));
    std::iter::once(user("do it")).chain(rounds).collect()
}

fn watched(steps: &[Step]) -> (Watch, Vec<Outcome>) {
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
        add(json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "provider": "p", "model": "m"}));
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
