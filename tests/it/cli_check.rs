//! `headman check` against every record vector.

use headman::cli::check::{Fit, Kind, check};
use headman::contract::{Rule, SessionId};
use serde_json::{Value, json};

use crate::cli_support::Place;
use crate::golden::{raw, vectors};

const ID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

/// Vectors on which we differ on purpose, by the table of `docs/differences.md`.
const NAMED: &[(&str, &str)] = &[("lead", "instanceId as one-element array")];

/// One record vector, with what is expected of it.
struct Case {
    kind: Kind,
    word: &'static str,
    name: String,
    bytes: Vec<u8>,
    session: Option<String>,
    file: Option<String>,
    /// The text written again, where it is valid.
    written: Option<String>,
}

fn cases() -> Vec<Case> {
    let records = vectors("records");
    let mut all = Vec::new();
    for (kind, word) in [
        (Kind::Message, "message"),
        (Kind::Lead, "lead"),
        (Kind::Descriptor, "descriptor"),
        (Kind::Peer, "peer"),
    ] {
        for case in records[word].as_array().unwrap() {
            // There is no record to judge; or its lock decides, which is no part of the record.
            let read = case["read"].as_str().unwrap();
            if case["raw_b64"].is_null()
                || read == "absent"
                || read.contains("process lock")
                || read.contains("process-lock")
            {
                continue;
            }
            let text = |key: &str| case[key].as_str().map(str::to_owned);
            all.push(Case {
                kind,
                word,
                name: text("name").unwrap(),
                bytes: raw(case),
                session: text("session"),
                file: text("file"),
                written: text("reserialized").filter(|_| read == "ok"),
            });
        }
    }
    for case in records["lock"].as_array().unwrap() {
        let Some([entry]) = case["entries"].as_array().map(Vec::as_slice) else { continue };
        if entry["raw_b64"].is_null() {
            continue;
        }
        let claim = &case["status"]["claim"];
        let written = claim.is_object().then(|| {
            // The members in the order of the file, which the claim in the vector has, too.
            let first = if entry["raw"]
                .as_str()
                .unwrap()
                .trim_start_matches(['{', ' ', '\n'])
                .starts_with("\"id\"")
            {
                "id"
            } else {
                "pid"
            };
            let (pid, id) = (format!("\"pid\":{}", claim["pid"]), format!("\"id\":{}", claim["id"]));
            if first == "id" { format!("{{{id},{pid}}}\n") } else { format!("{{{pid},{id}}}\n") }
        });
        // Too large a number for a process id is a matter of the process, not of the record.
        let judged_by_process = case["name"].as_str().unwrap().starts_with("pid 1e21")
            || case["name"].as_str().unwrap().starts_with("pid 2^53");
        if judged_by_process {
            continue;
        }
        all.push(Case {
            kind: Kind::Claim,
            word: "claim",
            name: case["name"].as_str().unwrap().to_owned(),
            bytes: raw(entry),
            session: None,
            file: entry["file"].as_str().map(str::to_owned),
            written,
        });
    }
    all
}

fn is_named(case: &Case) -> bool {
    NAMED.contains(&(case.word, case.name.as_str()))
}

#[test]
fn every_record_vector_is_judged_as_recorded() {
    let cases = cases();
    assert!(cases.len() > 590, "{}", cases.len());
    let (mut valid, mut invalid) = (0, 0);
    for case in cases {
        let fit = Fit { session: case.session.as_deref().and_then(SessionId::new), name: case.file.clone() };
        let judged = check(case.kind, &case.bytes, &fit);
        assert_eq!(
            judged.is_ok(),
            case.written.is_some() && !is_named(&case),
            "{} {}: {judged:?}",
            case.word,
            case.name
        );
        match judged {
            Ok(size) => {
                valid += 1;
                assert_eq!(size, case.written.unwrap().len(), "{} {}", case.word, case.name);
            }
            Err(error) => {
                invalid += 1;
                assert!(!error.message.is_empty());
            }
        }
    }
    assert!(valid > 170 && invalid > 380, "{valid} {invalid}");
}

#[test]
fn the_binary_prints_exactly_the_two_shapes() {
    let place = Place::new();
    let file = place.path("record");
    let mut ran_any = [false; 2];
    for case in cases().iter().step_by(13) {
        std::fs::write(&file, &case.bytes).unwrap();
        let mut arguments = vec!["check", "--as", case.word, "--json"];
        if let Some(session) = &case.session {
            arguments.extend(["--session", session]);
        }
        if let Some(file) = &case.file {
            arguments.extend(["--name", file]);
        }
        arguments.push(file.to_str().unwrap());
        let ran = place.run(&arguments);
        ran.assert_harmless();
        assert_eq!(ran.stderr, "", "{} {}", case.word, case.name);
        match &case.written {
            Some(written) if !is_named(case) => {
                ran_any[0] = true;
                assert_eq!(ran.code, 0, "{} {}", case.word, case.name);
                let expected = format!("{{\"valid\":true,\"reserialized_bytes\":{}}}\n", written.len());
                assert_eq!(ran.stdout, expected, "{} {}", case.word, case.name);
            }
            _ => {
                ran_any[1] = true;
                assert_eq!(ran.code, 1, "{} {}", case.word, case.name);
                assert!(ran.stdout.starts_with("{\"valid\":false,\"rule\":\""), "{}", ran.stdout);
                let keys: Vec<String> = ran.json().as_object().unwrap().keys().cloned().collect();
                assert_eq!(keys, ["message", "rule", "valid"]);
            }
        }
    }
    assert_eq!(ran_any, [true, true]);
}

#[test]
fn roles_are_judged_as_recorded_alone_and_in_their_entry() {
    let mut judged = 0;
    for case in vectors("role_state").as_array().unwrap() {
        let Some([.., entry]) = case["entries"].as_array().map(Vec::as_slice) else { continue };
        if entry["customType"] != "pi-herdsman-role" || entry["data"].is_null() {
            continue;
        }
        judged += 1;
        let expected = case["result"].is_object();
        for value in [&entry["data"], entry] {
            let text = value.to_string();
            let result = check(Kind::Role, text.as_bytes(), &Fit::default());
            assert_eq!(result.is_ok(), expected, "{text}: {result:?}");
            if let Ok(size) = result {
                assert_eq!(size, text.len() + 1);
            }
        }
    }
    assert!(judged >= 7, "{judged}");
}

fn mailbox() -> Value {
    json!({
        "version": 4, "runId": "019F951B-DEDA-7AD6-8303-D6F22DECCF3E", "ownerSessionId": "lead",
        "workspaceId": "w1", "agentLabel": "scout", "paneId": "w1:p2", "piSessionId": "agent",
        "cwd": "/w", "updatedAt": 1.5,
    })
}

#[test]
fn mailboxes_fit_their_directory_and_session() {
    let directory = headman::contract::mailbox::directory_name(&"w1".into(), &"scout".into());
    let text = mailbox().to_string();
    let of = |session: Option<&str>, name: Option<&str>| {
        let fit = Fit { session: session.and_then(SessionId::new), name: name.map(str::to_owned) };
        check(Kind::Mailbox, text.as_bytes(), &fit).map_err(|error| error.rule)
    };
    assert_eq!(of(None, None), Ok(text.len() + 1));
    assert_eq!(of(Some("agent"), Some("state.json")), Ok(text.len() + 1));
    assert_eq!(of(None, Some(&directory)), Ok(text.len() + 1));
    assert_eq!(of(None, Some(&format!("x/{directory}/state.json"))), Ok(text.len() + 1));
    assert_eq!(of(None, Some("0123456789abcdef0123456789abcdef")), Err(Rule::FileName));
    assert_eq!(of(Some("lead"), None), Err(Rule::FileName));
    for (key, value, rule) in [
        ("version", json!(3), Rule::Version),
        ("x", json!(1), Rule::UnknownKey),
        ("pendingAskId", json!(ID), Rule::Mailbox),
        ("activeRequestId", json!("a"), Rule::Uuid),
        ("updatedAt", json!(-1), Rule::Time),
    ] {
        let mut broken = mailbox();
        broken[key] = value;
        let result = check(Kind::Mailbox, broken.to_string().as_bytes(), &Fit::default());
        assert_eq!(result.map_err(|error| error.rule), Err(rule), "{key}");
    }
}

#[test]
fn session_and_name_must_fit_the_record() {
    let lead =
        format!("{{\"version\":1,\"instanceId\":\"{ID}\",\"piSessionId\":\"lead\",\"updatedAt\":1}}\n");
    let place = Place::new();
    let hash = SessionId::new("lead").unwrap().hash();
    for (session, name, code) in [
        (None, None, 0),
        (Some("lead"), None, 0),
        (Some("other"), None, 1),
        (None, Some(format!("{hash}.json")), 0),
        (None, Some(hash.clone()), 1),
        (Some("lead"), Some("x.json".to_owned()), 1),
    ] {
        let mut arguments = vec!["check", "--as", "lead"];
        if let Some(session) = session {
            arguments.extend(["--session", session]);
        }
        if let Some(name) = &name {
            arguments.extend(["--name", name]);
        }
        arguments.push("-");
        let ran = place.run_with(&arguments, lead.as_bytes());
        assert_eq!(ran.code, code, "{session:?} {name:?}: {}", ran.stdout);
        let word = if code == 0 { "valid: " } else { "not valid: " };
        assert!(ran.stdout.starts_with(word), "{}", ran.stdout);
        assert_eq!(ran.stdout.matches('\n').count(), 1);
    }
    let descriptor = vectors("records")["descriptor"][0]["raw"].as_str().unwrap().to_owned();
    assert_eq!(
        place.run_with(&["check", "--as", "descriptor", "--name", "x", "-"], descriptor.as_bytes()).code,
        1
    );
    let message = vectors("records")["message"][0]["raw"].as_str().unwrap().to_owned();
    let named = |name: &str| {
        place.run_with(&["check", "--as", "message", "--name", name, "-"], message.as_bytes()).code
    };
    assert_eq!(named("bbbbbbbb-bbbb-4ccc-8ddd-eeeeeeeeeeee.json"), 0, "another id than inside");
    assert_eq!(named("x.json"), 1);
    assert_eq!(place.run_with(&["check", "--as", "lead", "--session", "", "-"], b"{}").code, 2);
}

#[test]
fn any_file_may_be_judged_and_none_is_read_without_end() {
    let place = Place::new();
    let ran = place.run(&["check", "--as", "message", "--json", "/dev/zero"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()["rule"], "too_large");
    let ran = place.run(&["check", "--as", "message", "gone"]);
    assert_eq!(ran.code, 4);
    let ran = place.run(&["check", "--as", "message", "home"]);
    assert_eq!(ran.code, 4, "a directory: {}", ran.stderr);
    // Modes, owners and links are a matter of where a record stands, not of what it says.
    let record = vectors("records")["message"][0]["raw"].as_str().unwrap().to_owned();
    std::fs::write(place.path("r"), record).unwrap();
    crate::cli_support::chmod(&place.path("r"), 0o666);
    std::os::unix::fs::symlink("r", place.path("l")).unwrap();
    assert_eq!(place.run(&["check", "--as", "message", "l"]).code, 0);
    // A key that drives a terminal is named, not used.
    let ran = place.run_with(
        &["check", "--as", "role", "-"],
        "{\"role\":\"lead\",\"leadTools\":[],\"\u{9b}31m\u{202e}\":1}".as_bytes(),
    );
    assert_eq!(ran.code, 1);
    ran.assert_harmless();
}
