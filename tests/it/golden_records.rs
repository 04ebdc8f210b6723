//! Every record vector: what the public implementation says of an input, we say too, or the
//! difference stands by name in `NAMED`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use headman::contract::lead::is_question;
use headman::contract::message::Kind;
use headman::contract::role::RoleState;
use headman::contract::{
    Claim, Descriptor, LeadRecord, Message, PeerRecord, Rule, SessionId, Timestamp, Untrusted, Uuid,
    delivered,
};
use headman::disk::inbox::{self, Verdict};
use headman::disk::lock::{self, Holder, Liveness, LockError};
use headman::disk::records;
use headman::disk::{AgentDir, ProcessLock};
use headman::lead::SessionFile;
use serde_json::Value;

use crate::golden::{fixture, is_root, raw, string, vectors};

/// The named differences of `docs/differences.md` that a record vector shows: (type, vector).
const NAMED: &[(&str, &str)] = &[("lead", "instanceId as one-element array")];

fn cases(kind: &str, count: usize) -> Vec<Value> {
    let cases = vectors("records")[kind].as_array().unwrap().clone();
    assert_eq!(cases.len(), count, "{kind} vectors");
    cases
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

/// Compares a verdict with the vector's, unless the vector is a named difference: then the two
/// must differ, so that the table can't outlive its reason.
fn judge(kind: &str, case: &Value, ours: bool) {
    let theirs = case["read"] == "ok";
    if NAMED.contains(&(kind, name(case))) {
        assert_ne!(ours, theirs, "{kind} {} agrees: it is no difference any more", name(case));
    } else {
        assert_eq!(ours, theirs, "{kind} {}", name(case));
    }
}

#[test]
fn messages() {
    let mut reserialized = 0;
    for case in cases("message", 177) {
        let parsed = Message::parse(&raw(&case));
        judge("message", &case, parsed.is_ok());
        let too_large = case["read"] == "Chief message record is too large";
        match parsed {
            Ok(message) => {
                reserialized += 1;
                assert_eq!(message.byte_len() as u64, case["reserialized_bytes"].as_u64().unwrap());
                let again = case["reserialized"].as_str().unwrap();
                assert_eq!(Message::parse(again.as_bytes()).unwrap(), message, "{}", name(&case));
                assert_eq!(Message::parse(&message.to_bytes().unwrap()).unwrap(), message);
            }
            Err(error) => assert_eq!(
                matches!(error.rule, Rule::TooLarge | Rule::ReserializedTooLarge),
                too_large,
                "{}: {error}",
                name(&case)
            ),
        }
    }
    assert_eq!(reserialized, 58);
}

/// What a drain does with each vector, authorised, unauthorised and unverifiable: at once, as each
/// waits for the disk.
#[test]
fn drains() {
    let cases = cases("message", 177);
    let verdicts = [
        ("drain_when_authorized", Verdict::Deliver),
        ("drain_when_unauthorized", Verdict::Reject),
        ("drain_when_unverifiable", Verdict::Keep),
    ];
    std::thread::scope(|scope| {
        for part in cases.chunks(45) {
            for (key, verdict) in verdicts {
                scope.spawn(move || part.iter().for_each(|case| drain(case, key, verdict)));
            }
        }
    });
    let of_another_release = cases.iter().filter(|case| is_of_another_release(case)).count();
    assert!(of_another_release >= 5, "{of_another_release}");
}

fn is_of_another_release(case: &Value) -> bool {
    Message::parse(&raw(case)).is_err_and(|error| error.is_of_another_release())
}

fn drain(case: &Value, key: &str, verdict: Verdict) {
    let session = SessionId::new(case["session"].as_str().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let runtime = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime(OsStr::new("s"));
    let inbox = runtime.inbox(&session);
    std::fs::create_dir_all(inbox.path()).unwrap();
    std::fs::write(inbox.path().join(case["file"].as_str().unwrap()), raw(case)).unwrap();
    let mut sent = Vec::new();
    let drained = inbox::drain(
        &inbox,
        |_| verdict,
        |message| {
            sent.push(message.clone());
            Ok(())
        },
    )
    .unwrap();
    let left: Vec<String> = std::fs::read_dir(inbox.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected_left: Vec<&str> = match key {
        "drain_when_unverifiable" => case["left_when_unverifiable"].as_array().unwrap().iter(),
        _ => case[key]["left"].as_array().unwrap().iter(),
    }
    .map(|name| name.as_str().unwrap())
    // A refused message under another name than its id: the public code leaves a marker of an id
    // that has no file; we write none.
    .filter(|name| !name.ends_with(".quarantine"))
    .collect();
    if is_of_another_release(case) {
        assert_eq!(left, [case["file"].as_str().unwrap()], "{} is never ours to remove", name(case));
        assert!(sent.is_empty());
        return;
    }
    assert_eq!(left, expected_left, "{} {key}", name(case));
    if key == "drain_when_authorized" {
        let expected = case[key]["sent"].as_array().unwrap();
        assert_eq!(sent.len(), expected.len(), "{}", name(case));
        for (message, expected) in sent.iter().zip(expected) {
            assert_eq!(delivered::custom_type(message.kind), expected["customType"].as_str().unwrap());
            assert_eq!(Untrusted::from(delivered::content(message)), string(&expected["content"]));
            assert_eq!(delivered::content(message).len() as u64, expected["content_bytes"].as_u64().unwrap());
            assert_details(message, &expected["details"]);
        }
        assert_eq!(
            drained.errors.is_empty(),
            case[key]["errors"].as_array().unwrap().is_empty(),
            "{}",
            name(case)
        );
    }
}

#[test]
fn descriptors() {
    for case in cases("descriptor", 134) {
        let parsed = Descriptor::parse(&raw(&case));
        judge("descriptor", &case, parsed.is_ok());
        if let Ok(descriptor) = parsed {
            let again = case["reserialized"].as_str().unwrap();
            assert_eq!(descriptor.to_bytes().len(), again.len(), "{}", name(&case));
            assert_eq!(Descriptor::parse(again.trim_end().as_bytes()).unwrap(), descriptor);
            let lock = &case["held_with_lock_claim"];
            let held = descriptor.claim.pid.as_number() == lock["pid"].as_f64().unwrap()
                && descriptor.claim.id.to_string() == lock["id"].as_str().unwrap();
            assert_eq!(held, case["held"].as_bool().unwrap(), "{}", name(&case));
        }
    }
}

#[test]
fn lead_records() {
    for case in cases("lead", 128) {
        let session = SessionId::new(case["session"].as_str().unwrap()).unwrap();
        let parsed = LeadRecord::parse(&raw(&case), &session);
        judge("lead", &case, parsed.is_ok());
        if let Ok(record) = parsed {
            let written = record.to_bytes();
            assert_eq!(written.is_ok(), case["write"] == "ok", "{}", name(&case));
            if let Ok(bytes) = written {
                assert_eq!(bytes.len(), case["reserialized"].as_str().unwrap().len(), "{}", name(&case));
                assert_eq!(LeadRecord::parse(&bytes, &session).unwrap(), record);
            }
            let file = format!("{}.json", session.hash());
            assert_eq!(LeadRecord::parse_named(&raw(&case), &file).unwrap(), record);
            assert!(LeadRecord::parse_named(&raw(&case), "x.json").is_err());
        }
    }
}

#[test]
fn peers() {
    // Those whose keys the vector has in the usual order.
    let mut exact = 0;
    for case in cases("peer", 150) {
        let session = SessionId::new(case["session"].as_str().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let runtime =
            AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime(OsStr::new("s"));
        std::fs::create_dir_all(runtime.peer_records()).unwrap();
        let file = match case["file"].as_str() {
            Some(file) => runtime.peer_records().join(file),
            None => runtime.peer(&session),
        };
        std::fs::write(file, raw(&case)).unwrap();
        match &case["lock"] {
            Value::Object(owner) => {
                std::fs::create_dir(runtime.peer_lock(&session)).unwrap();
                let owner_file = runtime.peer_lock(&session).join(owner["owner"].as_str().unwrap());
                std::fs::write(owner_file, owner["body"].as_str().unwrap()).unwrap();
            }
            Value::String(text) if text == "empty directory" => {
                std::fs::create_dir(runtime.peer_lock(&session)).unwrap();
            }
            _ => {}
        }
        let read = records::read_peer(&runtime, &session);
        let listed =
            records::scan_peers(&runtime).unwrap().into_iter().filter(|(_, peer)| peer.is_ok()).count();
        if !is_root() && case["read"] == "ok" {
            // Process 1 can't be asked about by a user: unverifiable, so not valid.
            assert!(read.is_err());
            continue;
        }
        judge("peer", &case, read.is_ok());
        assert_eq!(listed as u64, case["listed"].as_u64().unwrap(), "{}", name(&case));
        if let Ok(record) = read {
            let again = case["reserialized"].as_str().unwrap();
            let written = record.to_bytes().unwrap();
            assert_eq!(written.len(), again.len(), "{}", name(&case));
            exact += usize::from(written == again.as_bytes());
            assert_eq!(PeerRecord::parse(again.as_bytes(), &session).unwrap(), record);
        }
    }
    assert!(exact >= 40 || !is_root(), "{exact}");
}

#[test]
fn locks() {
    for case in cases("lock", 29) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chief.lock");
        match &case["entries"] {
            Value::Array(entries) => {
                std::fs::create_dir(&path).unwrap();
                for entry in entries {
                    let file = path.join(entry["file"].as_str().unwrap());
                    if entry["directory"] == true {
                        std::fs::create_dir(file).unwrap();
                    } else {
                        std::fs::write(file, raw(entry)).unwrap();
                    }
                }
            }
            Value::String(text) if text.starts_with("a file") => std::fs::write(&path, "x").unwrap(),
            _ => {}
        }
        let before = lock::holder(&path).unwrap();
        match &case["status"] {
            Value::Object(status) => {
                let claim = &status["claim"];
                let Holder::Claimed(found, liveness) = before else { panic!("{}: {before:?}", name(&case)) };
                assert_eq!(liveness == Liveness::Alive, status["live"].as_bool().unwrap());
                assert_eq!(found.pid.as_number(), claim["pid"].as_f64().unwrap());
                assert_eq!(found.id.to_string(), claim["id"].as_str().unwrap());
            }
            _ => assert!(
                match before {
                    Holder::Absent | Holder::Unverifiable(_) => true,
                    Holder::Claimed(_, liveness) => liveness == Liveness::Unverifiable,
                },
                "{}",
                name(&case)
            ),
        }
        let claim = Claim::own();
        match ProcessLock::acquire(&path, claim, &|_| false) {
            Ok(lock) => {
                assert_eq!(case["acquire"], "acquired", "{}", name(&case));
                assert!(lock.stands().unwrap());
                assert!(lock.release().unwrap());
                assert!(!path.exists());
            }
            Err(error) => {
                assert_ne!(case["acquire"], "acquired", "{}: {error}", name(&case));
                assert!(matches!(error, LockError::Unverifiable { .. }), "{}: {error}", name(&case));
            }
        }
        let left: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected: Vec<&str> =
            case["left_after"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(left, expected, "{}", name(&case));
    }
}

#[test]
fn hashes_and_paths() {
    for case in vectors("session_hash").as_array().unwrap() {
        let text = string(&case["session"]);
        assert_eq!(text.utf16_len() as u64, case["utf16_len"].as_u64().unwrap());
        let session = SessionId::new(text).unwrap();
        assert_eq!(session.hash(), case["sha256"].as_str().unwrap());
        let runtime = AgentDir::resolve(None, Path::new("/h")).runtime(OsStr::new("s"));
        for (key, path) in [
            ("lead_file", runtime.lead(&session)),
            ("inbox_dir", runtime.inbox(&session).path().to_owned()),
            ("peer_file", runtime.peer(&session)),
        ] {
            assert_eq!(path.file_name().unwrap().to_str(), case[key].as_str(), "{key}");
        }
    }
    for case in vectors("session_hash_invalid").as_array().unwrap() {
        assert_eq!(SessionId::new(string(&case["session"])), None);
    }
    let roots = vectors("runtime_root");
    assert_eq!(roots.as_array().unwrap().len(), 17);
    for case in roots.as_array().unwrap() {
        let agent_dir = AgentDir::resolve(
            case["PI_CODING_AGENT_DIR"].as_str().map(OsStr::new),
            Path::new(case["HOME"].as_str().unwrap()),
        );
        let runtime = agent_dir.runtime(OsStr::new(case["HERDR_SOCKET_PATH"].as_str().unwrap()));
        let session = SessionId::new("x").unwrap();
        for (key, path) in [
            ("root", runtime.root().to_owned()),
            ("lock", runtime.lock()),
            ("descriptor", runtime.descriptor()),
            ("inbox", runtime.inboxes()),
            ("leads", runtime.leads()),
            ("peers", runtime.peer_records()),
        ] {
            assert_eq!(path, Path::new(case[key].as_str().unwrap()), "{key} of {case}");
        }
        assert!(runtime.peer(&session).starts_with(case["peers_root"].as_str().unwrap()));
    }
}

#[test]
fn questions() {
    let cases = vectors("question_valid");
    assert_eq!(cases.as_array().unwrap().len(), 20);
    for case in cases.as_array().unwrap() {
        let question = string(&case["question"]);
        assert_eq!(question.utf16_len() as u64, case["utf16_len"].as_u64().unwrap());
        assert_eq!(question.utf8_len() as u64, case["utf8_len"].as_u64().unwrap());
        assert_eq!(is_question(&question), case["valid"].as_bool().unwrap(), "{question:?}");
    }
}

#[test]
fn message_bytes() {
    let cases = vectors("message_bytes");
    assert_eq!(cases.as_array().unwrap().len(), 11);
    for case in cases.as_array().unwrap() {
        let session = |text: &str| SessionId::new(text).unwrap();
        let message = Message {
            id: Uuid::parse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee").unwrap(),
            lease: Uuid::parse("11111111-2222-4333-8444-555555555555").unwrap(),
            kind: headman::contract::Kind::LeadMessage,
            from: session("lead"),
            to: session("chief"),
            lead: session("lead"),
            ask: None,
            text: string(&case["text"]),
            created_at: Timestamp::from_number(case["createdAt"].as_str().unwrap().parse().unwrap()).unwrap(),
        };
        assert_eq!(message.byte_len() as u64, case["bytes"].as_u64().unwrap(), "{case}");
        if let Some(written) = case["written"].as_str() {
            assert_eq!(message.to_bytes().unwrap(), written.as_bytes(), "{case}");
        }
    }
}

fn assert_details(message: &Message, expected: &Value) {
    let details = delivered::details(message);
    assert_eq!(details.id.to_string(), expected["id"]);
    assert_eq!(details.lease.to_string(), expected["leaseId"]);
    assert_eq!(details.lead.clone(), string(&expected["leadSessionId"]));
    assert_eq!(details.ask.map(|ask| ask.to_string()).as_deref(), expected["askId"].as_str());
}

#[test]
fn delivered_messages() {
    let cases = vectors("delivered");
    assert_eq!(cases.as_array().unwrap().len(), 11);
    let dir = tempfile::tempdir().unwrap();
    for case in cases.as_array().unwrap() {
        let message = Message::parse(case["record"].to_string().as_bytes()).unwrap();
        let content = delivered::content(&message);
        assert_eq!(content.len() as u64, case["content_bytes"].as_u64().unwrap());
        assert_eq!(Untrusted::from(content), string(&case["content"]));
        assert_eq!(message.to_bytes().is_ok(), case["write"] == "ok", "{}", name(case));
        // As a lead writes it into its session.
        let path = dir.path().join(format!("{}.jsonl", message.id));
        let to = message.to.clone();
        let now = Timestamp::from_millis(1);
        SessionFile::create(&path, &to, &"/tmp".into(), now).unwrap();
        let mut session = SessionFile::new(&path, to);
        let held = session.lock().unwrap();
        session.hand_over(&held, &message, now).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        let mut entry: Value = serde_json::from_str(written.lines().last().unwrap()).unwrap();
        assert_eq!(Untrusted::from(entry["content"].as_str().unwrap()), string(&case["content"]));
        assert_eq!(entry["type"], "custom_message");
        let expected = case["message"].as_object().unwrap();
        let entry = entry.as_object_mut().unwrap();
        entry.retain(|key, _| expected.contains_key(key));
        assert_eq!(entry, expected, "{}", name(case));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn roles() {
    let cases = vectors("role_state");
    assert_eq!(cases.as_array().unwrap().len(), 10);
    for case in cases.as_array().unwrap() {
        let text = case["entries"].to_string();
        let document = headman::contract::json::Document::decode(text.as_bytes());
        let entries = document.value().unwrap().array().unwrap();
        let state = RoleState::of_entries(entries.into_iter());
        match &case["result"] {
            Value::Null => assert_eq!(state.unwrap(), None),
            Value::String(_) => assert!(state.is_err()),
            expected => {
                let state = state.unwrap().unwrap();
                assert_eq!(state.role.as_str(), expected["role"].as_str().unwrap());
                let tools: Vec<String> =
                    state.lead_tools.iter().map(|tool| tool.to_str_lossy().into_owned()).collect();
                assert_eq!(serde_json::json!(tools), expected["leadTools"]);
            }
        }
    }
}

/// The order of a listing, and that 32 make a batch.
#[test]
fn inbox_order_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime(OsStr::new("s"));
    let session = SessionId::new("chief").unwrap();
    let inbox = runtime.inbox(&session);
    std::fs::create_dir_all(inbox.path()).unwrap();
    let case = &vectors("inbox_order")[0];
    for record in case["records"].as_array().unwrap() {
        let id = record["id"].as_str().unwrap();
        let text = format!(
            r#"{{"version":1,"id":"{id}","leaseId":"11111111-2222-4333-8444-555555555555","kind":"lead_message","fromSessionId":"lead","toSessionId":"chief","leadSessionId":"lead","text":"x","createdAt":{}}}"#,
            record["createdAt"].as_str().unwrap()
        );
        std::fs::write(inbox.path().join(format!("{id}.json")), text).unwrap();
    }
    for id in case["malformed"].as_array().unwrap() {
        std::fs::write(inbox.path().join(format!("{}.json", id.as_str().unwrap())), "no").unwrap();
    }
    let order: Vec<String> =
        inbox::list(&inbox).unwrap().iter().map(|entry| entry.name.to_string()).collect();
    assert_eq!(serde_json::json!(order), case["order"]);
    a_batch_is_of_32();

    let dir = tempfile::tempdir().unwrap();
    let names = vectors("inbox_names");
    for name in names["present"].as_array().unwrap() {
        std::fs::write(dir.path().join(name.as_str().unwrap()), "x").unwrap();
    }
    let mut listed: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name();
            headman::disk::layout::InboxDir::message_id(&name).map(|_| name.into_string().unwrap())
        })
        .collect();
    listed.sort();
    assert_eq!(serde_json::json!(listed), names["listed"]);
    assert!(fixture("golden/manifest.json").exists());
}

/// 40 valid messages, the last made first, and one that is malformed: it is deferred.
fn a_batch_is_of_32() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime(OsStr::new("s"));
    let inbox = runtime.inbox(&SessionId::new("chief").unwrap());
    let id = |nth: u64| format!("00000000-0000-4000-8000-{nth:012}");
    std::fs::create_dir_all(inbox.path()).unwrap();
    for nth in 1..=40 {
        let message = Message {
            id: Uuid::parse(&id(nth)).unwrap(),
            lease: Uuid::random(),
            kind: Kind::LeadMessage,
            from: SessionId::new("lead").unwrap(),
            to: SessionId::new("chief").unwrap(),
            lead: SessionId::new("lead").unwrap(),
            ask: None,
            text: "x".into(),
            created_at: Timestamp::from_millis(100 - nth),
        };
        inbox::publish(dir.path(), &inbox, &message).unwrap();
    }
    let malformed = inbox.path().join(format!("{}.json", id(99)));
    std::fs::write(&malformed, "no").unwrap();
    let drained = inbox::drain(&inbox, |_| Verdict::Deliver, |_| Ok(())).unwrap();
    let delivered: Vec<String> = drained.delivered.iter().map(ToString::to_string).collect();
    assert_eq!(serde_json::json!(delivered), vectors("inbox_order")[1]["order"]);
    assert!(drained.rejected.is_empty() && malformed.exists());
}

/// A live process of another user: a thread that is nobody's asks for process 1, where we may ask
/// for every process.
#[cfg(target_os = "linux")]
#[test]
fn a_claim_of_another_users_process_is_unverifiable() {
    let vector = vectors("lock_eperm");
    assert_eq!(vector["answer"]["cause"], "EPERM");
    // Made before, and open to nobody: where temporary files go may be closed to it.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = dir.path().join("chief.lock");
    let asked = std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        std::fs::create_dir(&path).unwrap();
        let claim = "1-aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
        let body = r#"{"pid":1,"id":"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}"#;
        std::fs::write(path.join(claim), body).unwrap();
        let held = lock::holder(&path).unwrap();
        let refused = ProcessLock::acquire(&path, Claim::own(), &|_| false).unwrap_err();
        (held, refused)
    });
    let (held, refused) = asked.join().unwrap();
    assert!(matches!(held, Holder::Claimed(_, Liveness::Unverifiable)), "{held:?}");
    assert!(matches!(refused, LockError::Unverifiable { .. }), "{refused}");
}

/// A claim's owner may be alive and not ours to ask: neither live nor dead, never recovered.
#[test]
fn a_claim_that_cant_be_asked_about_is_unverifiable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chief.lock");
    std::fs::create_dir(&path).unwrap();
    let claim = "9007199254740992-aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    let body = r#"{"pid":9007199254740992,"id":"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}"#;
    std::fs::write(path.join(claim), body).unwrap();
    assert!(matches!(lock::holder(&path).unwrap(), Holder::Claimed(_, Liveness::Unverifiable)));
    let error = ProcessLock::acquire(&path, Claim::own(), &|_| false).unwrap_err();
    assert!(matches!(error, LockError::Unverifiable { .. }), "{error}");
    // Known to be our own dead one, it is recovered.
    let lock = ProcessLock::acquire(&path, Claim::own(), &|claim| claim.pid.as_raw().is_none()).unwrap();
    assert!(lock.stands().unwrap());
}
