//! Whether a lead may write up is looked at again right before it writes.

use std::sync::{Arc, Mutex};

use headman::chief::lease::{Lease, Place as Seat};
use headman::contract::{Message, SessionId, Timestamp};
use headman::disk::inbox;
use headman::lead::session::SessionFile;
use headman::lead::{About, Coordination, NotUp, Opening, Place};
use serde_json::json;

use crate::hostile_herdr::Hostile;

/// What happens in Herdr's second answer: both list the Chief where its descriptor says.
type Change = Box<dyn FnOnce() + Send>;

/// Two Chiefs of one session on the same pane: what Herdr lists tells them not apart, only the lease does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_changes_while_herdr_is_asked_gets_nothing_written_up() {
    let during: Arc<Mutex<(usize, Option<Change>)>> = Arc::default();
    let asked = Arc::clone(&during);
    let agents = json!({"id": "x", "result": {"type": "agent_list", "agents": [{
        "pane_id": "p", "tab_id": "t", "workspace_id": "w", "agent": "pi", "agent_status": "idle",
        "agent_session": {"source": "herdr:pi", "agent": "pi", "kind": "id", "value": "chief"},
    }]}});
    let herdr = Hostile::new(Arc::new(move |method, stream| {
        assert_eq!(method, "agent.list");
        let mut during = asked.lock().unwrap();
        during.0 += 1;
        if during.0 == 2 {
            during.1.take().into_iter().for_each(|change| change());
        }
        std::io::Write::write_all(stream, format!("{agents}\n").as_bytes())
    }));
    let (agent_dir, socket) = (herdr.place.agent_dir(), herdr.place.path("h.sock").into_os_string());
    let runtime = agent_dir.runtime(&socket);
    let chief = SessionId::new("chief").unwrap();
    let (data_root, sidecar) = (agent_dir.data_root(), herdr.place.path("sidecar"));
    let claim = {
        let (runtime, chief) = (runtime.clone(), chief.clone());
        move || {
            let seat = Seat { pane: "p".into(), tab: "t".into(), workspace: "w".into() };
            Lease::claim(&runtime, &data_root, &sidecar, &chief, &seat, Timestamp::from_millis(1)).unwrap()
        }
    };
    let session = SessionId::new("lead").unwrap();
    let path = herdr.place.path("lead.jsonl");
    SessionFile::create(&path, &session, &"/".into(), Timestamp::from_millis(1)).unwrap();
    let opening =
        Opening { agent_dir: agent_dir.clone(), socket, place: Place::none(), about: About::default() };
    let mut lead = Coordination::open(opening, SessionFile::new(&path, session)).unwrap();
    let up = || -> Vec<Message> {
        let entries = inbox::list(&runtime.inbox(&chief)).unwrap();
        entries
            .into_iter()
            .map(|entry| match entry.content {
                inbox::Content::Valid(message) => *message,
                other => panic!("{other:?}"),
            })
            .collect()
    };

    let first = claim();
    lead.tell("under the first").await.unwrap();
    assert_eq!(up().len(), 1);
    let next = Arc::new(Mutex::new(None));
    let change: Change = {
        let next = Arc::clone(&next);
        Box::new(move || {
            first.release().unwrap();
            *next.lock().unwrap() = Some(claim());
        })
    };
    *during.lock().unwrap() = (0, Some(change));
    let told = lead.tell("under which?").await;
    assert!(matches!(&told, Err(NotUp::NoChief(why)) if why.contains("another just now")), "{told:?}");
    assert_eq!(up().len(), 1, "nothing is written");
    *during.lock().unwrap() = (0, None);
    let told = lead.tell("under the next").await.unwrap();
    assert_eq!(Some(told.lease), next.lock().unwrap().as_ref().map(Lease::id));
    assert_eq!(up().len(), 2);
    lead.close().unwrap();
}
