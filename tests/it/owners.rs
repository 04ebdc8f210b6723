//! Directories of another user: nothing in them is listed, and whoever needs them says whose they are.

use headman::contract::{Claim, LeadRecord, SessionId, Timestamp, Uuid};
use headman::disk::lock::{self, Holder};
use headman::disk::{AgentDir, Unreadable, durable, inbox, records};

use crate::golden::is_root;
use crate::support::directory_in_memory;

const OTHER: u32 = 12_345;

#[test]
fn a_directory_of_another_user_is_not_listed() {
    if !is_root() {
        println!("skipped: only root can give a directory to another user");
        return;
    }
    let directory = directory_in_memory();
    let runtime =
        AgentDir::resolve(Some(directory.path().as_os_str()), directory.path()).runtime("s".as_ref());
    let session = SessionId::new("s-1").unwrap();
    let inbox = runtime.inbox(&session);
    for path in [runtime.leads(), inbox.path().to_owned()] {
        durable::ensure_directories(directory.path(), &path).unwrap();
    }
    let record = LeadRecord {
        instance: Uuid::random(),
        session,
        pending_ask: None,
        updated_at: Timestamp::from_millis(1),
    };
    records::write_lead(&runtime, &record).unwrap();
    let claim = Claim::own();
    std::fs::create_dir(runtime.lock()).unwrap();
    std::fs::write(runtime.lock().join(claim.file_name()), claim.to_bytes()).unwrap();
    for (owner, is_ours) in [(OTHER, false), (0, true)] {
        for path in [runtime.leads(), runtime.lock(), inbox.path().to_owned()] {
            std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
            let listed = durable::list(&path);
            assert_eq!(
                listed.as_ref().err(),
                (!is_ours).then_some(&Unreadable::ForeignOwner(OTHER)),
                "{path:?}"
            );
        }
        let scanned = records::scan_leads(&runtime);
        assert_eq!(scanned.is_ok_and(|found| found.len() == 1), is_ours);
        assert_eq!(inbox::list(&inbox).is_ok(), is_ours);
        match lock::holder(&runtime.lock()).unwrap() {
            Holder::Claimed(found, _) => assert!(is_ours && found == claim),
            Holder::Unverifiable(why) => assert!(!is_ours && why.contains("user 12345"), "{why}"),
            Holder::Absent => panic!("it stands"),
        }
    }
}
