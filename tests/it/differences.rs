//! The rows of `docs/differences.md` that no other test asserts.

use std::cmp::Ordering;
use std::path::Path;

use headman::chief::lease::{Lease, LeaseError, Place};
use headman::contract::{Claim, Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use headman::disk::inbox::{self, Verdict};
use headman::disk::lock::LockError;
use headman::disk::sidecar::Sidecar;
use headman::disk::{AgentDir, durable};
use headman::herd::{Evidence, State, order, project};

#[test]
fn a_state_nobody_knows_is_unknown() {
    let evidence =
        br#"{"agents":[{"sessionId":"s","sessionKind":"id","workspaceId":"w","paneId":"p","tabId":"t",
        "runtimeState":"dreaming"}],"coordinationStates":[{"version":1,
        "instanceId":"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee","piSessionId":"s","updatedAt":1}]}"#;
    let roster = project(&Evidence::from_json(evidence).unwrap());
    assert_eq!(roster.leads[0].state, State::Unknown);
    assert!(roster.to_json().contains(r#""runtime_state":"unknown""#));
}

#[test]
fn a_lone_surrogate_in_a_name_orders_as_the_replacement_character() {
    let lone: Untrusted = serde_json::from_str(r#""a\ud800""#).unwrap();
    assert_eq!(order::collate(&lone, &"a\u{fffd}".into()), Ordering::Equal);
    assert_ne!(order::collate(&lone, &"a".into()), Ordering::Equal);
}

#[test]
fn old_quarantined_messages_do_not_stop_an_inbox() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/")).runtime("s".as_ref());
    let session = SessionId::new("lead").unwrap();
    let inbox = runtime.inbox(&session);
    let message = |created_at| Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::ChiefMessage,
        from: SessionId::new("chief").unwrap(),
        to: session.clone(),
        lead: session.clone(),
        ask: None,
        text: "x".into(),
        created_at: Timestamp::from_millis(created_at),
    };
    for at in 0..40 {
        let old = message(at);
        inbox::publish(dir.path(), &inbox, &old).unwrap();
        inbox::quarantine(&inbox, old.id).unwrap();
    }
    let good = message(1000);
    inbox::publish(dir.path(), &inbox, &good).unwrap();
    let drained = inbox::drain(&inbox, |_| Verdict::Deliver, |_| Ok(())).unwrap();
    assert_eq!(drained.delivered, [good.id]);
    assert_eq!(inbox::list(&inbox).unwrap().len(), 40);
}

#[test]
fn a_claim_of_our_own_dead_console_is_recovered_whoever_has_its_pid() {
    let dir = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), Path::new("/"));
    let runtime = agent_dir.runtime("s".as_ref());
    let session = SessionId::new("chief").unwrap();
    let flock = dir.path().join("chief.flock");
    let claim = || {
        Lease::claim(
            &runtime,
            &agent_dir.data_root(),
            &flock,
            &session,
            &Place::none(),
            Timestamp::from_millis(1),
        )
    };
    // What a console that died left: its claim, with a pid that is alive again, as ours is.
    let dead = Claim::own();
    durable::ensure_directories(dir.path(), &runtime.lock()).unwrap();
    std::fs::write(runtime.lock().join(dead.file_name()), dead.to_bytes()).unwrap();
    std::fs::set_permissions(
        runtime.lock().join(dead.file_name()),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    assert!(matches!(claim(), Err(LeaseError::Lock(LockError::Occupied { .. }))), "no file remembers it");
    {
        let mut sidecar = Sidecar::take(&flock).unwrap().unwrap();
        sidecar.remember(&dead).unwrap();
        // While it lives, nobody takes its place.
        assert!(matches!(claim(), Err(LeaseError::OwnConsole { .. })));
    }
    // Nobody holds that lock, as in a copy of the state directory: no proof that its process is dead.
    assert!(matches!(claim(), Err(LeaseError::Lock(LockError::Occupied { .. }))), "it may be alive");
    // The process of that pid started at another time. A torn line after it changes nothing.
    let text = std::fs::read_to_string(&flock).unwrap();
    let of_the_dead = text.lines().find(|line| line.contains(&dead.id.to_string())).unwrap();
    let mut line: serde_json::Value = serde_json::from_str(of_the_dead).unwrap();
    line["start"] = serde_json::json!(line["start"].as_u64().unwrap() - 1);
    let text = format!("{line}\n{{\"v\":1,\"cla");
    std::fs::write(&flock, text).unwrap();
    let lease = claim().unwrap();
    assert_eq!(lease.check().unwrap(), Ok(()));
    lease.release().unwrap();
    assert!(!runtime.lock().exists());
}
