//! What comes as lines through sockets.

use headman::control::wire::{self, FromService};
use headman::herdr::wire::result_of;
use headman::herdr::{Agent, Event, HerdrError, Pane, Snapshot, api};
use serde_json::Value;
use serde_json::value::RawValue;

use super::is_safe_to_print;

/// A line of the control socket, of either side.
pub fn control(bytes: &[u8]) {
    // The socket's reader refuses anything else.
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    match wire::asked(line) {
        Ok(request) => {
            let wanted = format!("{request:?}");
            let written = wire::ask(request).expect("what came over the socket goes over it");
            let again = wire::asked(one_line(&written, bytes)).expect("what is written is understood");
            assert_eq!(format!("{again:?}"), wanted);
            assert_eq!(wire::ask(again).as_ref(), Ok(&written));
        }
        Err(error) => is_told(&error, bytes),
    }
    match wire::said(line) {
        Ok(said) => {
            let wanted = format!("{said:?}");
            let written = wire::say(&said).expect("what came over the socket goes over it");
            let again: FromService =
                wire::said(one_line(&written, bytes)).expect("what is written is understood");
            assert_eq!(format!("{again:?}"), wanted);
            assert_eq!(wire::say(&again).as_ref(), Ok(&written));
        }
        Err(error) => is_told(&error, bytes),
    }
}

/// The line without its end; it has no other, and is not much longer than the one it was made of.
fn one_line<'a>(written: &'a [u8], bytes: &[u8]) -> &'a str {
    let line = written.strip_suffix(b"\n").expect("a line end");
    assert!(line.iter().all(|byte| *byte >= b' '));
    assert!(line.len() <= 1_024 + 8 * bytes.len(), "{} bytes of {}", line.len(), bytes.len());
    std::str::from_utf8(line).expect("UTF-8")
}

/// Others show it through `console/text.rs`; here it need only be bounded.
fn is_told(error: &wire::WireError, bytes: &[u8]) {
    assert!(error.to_string().len() <= 512 + 8 * bytes.len());
}

/// A reply of Herdr, or a line of its events.
pub fn herdr(bytes: &[u8]) {
    let general = serde_json::from_str::<Value>(&String::from_utf8_lossy(bytes)).ok();
    let event = Event::of_line(bytes);
    if let Some(general) = &general {
        let name = event.as_ref().map(|event| event.name.to_str_lossy().into_owned());
        assert_eq!(name.as_deref(), general["event"].as_str());
        let pane = event.as_ref().and_then(|event| event.pane_id.as_ref());
        let wanted = event.as_ref().and(general["data"]["pane_id"].as_str());
        assert_eq!(pane.map(|it| it.to_str_lossy().into_owned()).as_deref(), wanted);
    }
    let result = result_of("a.method", bytes);
    if let Some(general) = &general {
        let refused = general.is_object() && !general["error"].is_null();
        assert_eq!(matches!(result, Err(HerdrError::Server { .. })), refused);
        assert_eq!(result.is_ok(), !refused && general["result"].is_object());
    }
    match &result {
        Ok(result) => reply(result, general.map(|mut general| general["result"].take())),
        // Of someone else's words a piece is shown, escaped.
        Err(error) => is_safe_to_print(&error.to_string(), &[0; 320]),
    }
}

fn reply(result: &RawValue, general: Option<Value>) {
    let snapshot = Snapshot::read(result);
    let agents = Agent::read_all(result);
    let (pane, pong) = (Pane::of_result(result), api::Pong::of_result(result));
    let read = api::PaneRead::of_result(result, "visible");
    let processes = api::ProcessInfo::of_result(result);
    let (shown, worktrees) = (api::Shown::of_result(result), api::WorktreeEntry::read_all(result));
    for dropped in snapshot.iter().flat_map(|it| &it.dropped).chain(agents.iter().flat_map(|it| &it.1)) {
        is_safe_to_print(&dropped.to_string(), &[0; 320]);
    }
    let Some(general) = general else { return };
    // A second reader's view: whatever stands in a list is read or named as left out.
    let length = |list: &Value| list.as_array().map_or(0, Vec::len);
    let raw = &general["snapshot"];
    assert_eq!(snapshot.is_some(), raw.is_object());
    if let Some(snapshot) = snapshot {
        let found = [
            ("workspace", snapshot.workspaces.len()),
            ("tab", snapshot.tabs.len()),
            ("pane", snapshot.panes.len()),
            ("agent", snapshot.agents.len()),
        ];
        for (what, found) in found {
            let list = &raw[format!("{what}s")];
            let dropped = snapshot.dropped.iter().filter(|it| it.what == what);
            let left_out = dropped.clone().filter(|it| it.at.is_some()).count();
            assert_eq!(found + left_out, length(list), "{what}");
            assert_eq!(dropped.filter(|it| it.at.is_none()).count(), usize::from(!list.is_array()), "{what}");
        }
    }
    let listed = &general["agents"];
    assert_eq!(agents.map(|(all, dropped)| all.len() + dropped.len()), listed.as_array().map(Vec::len));
    let ids = ["pane_id", "tab_id", "workspace_id"];
    assert_eq!(pane.is_some(), ids.iter().all(|id| general["pane"][id].is_string()));
    assert_eq!(pong.map(|it| it.protocol as f64), general["protocol"].as_f64().filter(|it| is_whole(*it)));
    assert_eq!(read.is_some(), general["read"]["text"].is_string());
    assert_eq!(shown.map(|it| it.shown), general["shown"].as_bool());
    let info = &general["process_info"];
    assert_eq!(processes.is_some(), info.is_object());
    let objects =
        |list: &Value| list.as_array().map_or(0, |all| all.iter().filter(|it| it.is_object()).count());
    let listed = processes.map_or(0, |it| it.foreground_processes.len());
    assert_eq!(listed, objects(&info["foreground_processes"]));
    assert_eq!(worktrees.len(), objects(&general["worktrees"]));
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)
}
