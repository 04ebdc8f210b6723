//! The trees that real leads, a real Chief and crashes left: what is read from them, and what is
//! then done on a copy.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use headman::chief::lease::{Lease, Place};
use headman::contract::{Claim, Kind, LeadRecord, Message, SessionId, Timestamp, Uuid};
use headman::disk::inbox::{self, Content, Verdict};
use headman::disk::records::{self, Holding};
use headman::disk::{AgentDir, ProcessLock, Runtime, durable};
use serde_json::Value;

use crate::golden::{fixture, is_root};

fn manifest() -> Value {
    serde_json::from_slice(&std::fs::read(fixture("golden/manifest.json")).unwrap()).unwrap()
}

/// Rebuilds a tree with the directories and modes that version control does not keep.
fn rebuild(name: &str, tree: &Value, to: &Path) {
    for file in tree["files"].as_array().unwrap() {
        let path = to.join(file["path"].as_str().unwrap());
        if file["type"] == "directory" {
            std::fs::create_dir_all(&path).unwrap();
        } else {
            let from = fixture("golden").join(name).join(file["path"].as_str().unwrap());
            std::fs::copy(from, &path).unwrap();
        }
    }
    for file in tree["files"].as_array().unwrap() {
        let mode = u32::from_str_radix(file["mode"].as_str().unwrap(), 8).unwrap();
        let path = to.join(file["path"].as_str().unwrap());
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
}

struct World {
    agent_dir: AgentDir,
    runtime: Runtime,
    root: PathBuf,
    manifest: Value,
}

impl World {
    fn session(&self, name: &str) -> SessionId {
        SessionId::new(self.manifest["sessions"][name].as_str().unwrap()).unwrap()
    }

    fn left(&self) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        let runtime = self.root.join("agent/pi-herdsman/runtime");
        let mut pending = vec![runtime.join("peers-v1"), runtime.join("supervision")];
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                left.insert(path.strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned());
                if path.is_dir() {
                    pending.push(path);
                }
            }
        }
        left
    }
}

fn record_json(record: &LeadRecord) -> Value {
    serde_json::from_slice(&record.to_bytes().unwrap()).unwrap()
}

fn message_json(message: &Message) -> Value {
    serde_json::from_slice(&message.to_bytes().unwrap()).unwrap()
}

fn check(name: &str) {
    let manifest = manifest();
    let tree = &manifest["trees"][name];
    let dir = tempfile::tempdir().unwrap();
    rebuild(name, tree, dir.path());
    let agent_dir = AgentDir::resolve(Some(dir.path().join("agent").as_os_str()), Path::new("/"));
    let runtime = agent_dir.runtime(OsStr::new(manifest["socket"].as_str().unwrap()));
    let world = World { agent_dir, runtime, root: dir.path().to_owned(), manifest: manifest.clone() };
    let says = &tree["real_code_says"];
    // Process 1 is alive for root; for others it can't be asked about.
    let pid_one_unverifiable = name == "tree-pid1" && !is_root();

    let holding = records::read_holding(&world.runtime).unwrap();
    let held = matches!(holding, Holding::Held(_));
    assert_eq!(held, says["chief_held"].as_bool().unwrap() && !pid_one_unverifiable, "{name}: {holding:?}");
    match records::read_descriptor(&world.runtime) {
        Ok(descriptor) => {
            let written: Value = serde_json::from_slice(&descriptor.to_bytes()).unwrap();
            assert_eq!(written, says["descriptor"], "{name}");
        }
        Err(_) => assert!(says["descriptor"]["error"].is_array(), "{name}"),
    }
    for (lead, expected) in says["leads"].as_object().unwrap() {
        match records::read_lead(&world.runtime, &world.session(lead)) {
            Ok(record) => assert_eq!(record_json(&record), *expected, "{name} {lead}"),
            Err(error) => assert!(error.is_missing() && expected == "absent", "{name} {lead}: {error}"),
        }
    }
    for (kind, key) in [("inbox", "inbox"), ("peers", "peer_inbox")] {
        for (session, expected) in says[key].as_object().unwrap() {
            let session = world.session(session);
            let dir = if kind == "inbox" {
                world.runtime.inbox(&session)
            } else {
                world.runtime.peer_inbox(&session)
            };
            let entries = inbox::list(&dir).unwrap();
            let expected = expected.as_array().unwrap();
            assert_eq!(entries.len(), expected.len(), "{name} {key}");
            for (entry, expected) in entries.iter().zip(expected) {
                assert_eq!(format!("{}.json", entry.name), expected["file"].as_str().unwrap());
                assert_eq!(entry.quarantined, expected["quarantined"].as_bool().unwrap());
                let Content::Valid(message) = &entry.content else { panic!("{name}: {entry:?}") };
                assert_eq!(message_json(message), expected["record"]);
            }
        }
    }
    let peers: Vec<Value> = records::scan_peers(&world.runtime)
        .unwrap()
        .into_iter()
        .filter_map(|(_, peer)| Some(serde_json::from_slice(&peer.ok()?.to_bytes().unwrap()).unwrap()))
        .collect();
    if !pid_one_unverifiable {
        assert_eq!(Value::from(peers), says["peers"], "{name}");
        then(&world, &says["then"], name);
    }
}

/// What is done on a copy, in the order of the manifest.
fn then(world: &World, then: &Value, name: &str) {
    let base = world.agent_dir.path();
    let state = tempfile::tempdir().unwrap();
    let chief = world.session("chief");
    let claimed = Lease::claim(
        &world.runtime,
        &world.agent_dir.data_root(),
        &state.path().join("chief.flock"),
        &chief,
        &Place::none(),
        Timestamp::from_millis(1),
    );
    assert_eq!(claimed.is_ok(), then["new_chief_claims"]["claimed"] == true, "{name}: {claimed:?}");
    if let Ok(lease) = &claimed {
        assert_eq!(lease.check().unwrap(), Ok(()));
        assert!(matches!(records::read_holding(&world.runtime).unwrap(), Holding::Held(_)));
    }
    let lead_a = world.session("A");
    durable::ensure_directories(base, &world.runtime.peer_records()).unwrap();
    let peer_lock = ProcessLock::acquire(&world.runtime.peer_lock(&lead_a), Claim::own(), &|_| false);
    assert_eq!(peer_lock.is_ok(), then["peer_lock"]["acquired"] == true, "{name}: {peer_lock:?}");

    let id = Uuid::parse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee").unwrap();
    let inbox = world.runtime.inbox(&lead_a);
    let message = Message {
        id,
        lease: id,
        kind: Kind::ChiefMessage,
        from: chief,
        to: lead_a.clone(),
        lead: lead_a,
        ask: None,
        text: "again".into(),
        created_at: Timestamp::from_millis(1),
    };
    inbox::publish(base, &inbox, &message).unwrap();
    assert_eq!(
        inbox::is_quarantined(&inbox, id),
        then["message_aaaaaaaa_written_again"]["quarantined"].as_bool().unwrap()
    );
    let mut sent = Vec::new();
    let drained = inbox::drain(
        &inbox,
        |_| Verdict::Deliver,
        |message| {
            sent.push(message.id.to_string());
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(drained.errors, [], "{name}");
    assert_eq!(serde_json::json!(sent), then["lead_A_drains"]["sent"], "{name}");
    if let Ok(lease) = claimed {
        lease.release().unwrap();
    }
    if let Ok(lock) = peer_lock {
        lock.release().unwrap();
    }
    let expected: BTreeSet<String> =
        then["left"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    assert_eq!(world.left(), expected, "{name}");
}

#[test]
fn tree_as_a_live_herd_left_it() {
    check("tree");
}

#[test]
fn tree_whose_processes_are_alive() {
    check("tree-pid1");
}

#[test]
fn leftovers_of_crashes() {
    let manifest = manifest();
    let names: Vec<&String> =
        manifest["trees"].as_object().unwrap().keys().filter(|name| name.starts_with("leftovers/")).collect();
    assert_eq!(names.len(), 14);
    for name in names {
        check(name);
    }
}
