//! What a session tells of what its agent does, field by field.

use std::fs;
use std::path::Path;

use headman::contract::{Timestamp, Untrusted};
use headman::pi::activity::{Activity, Call, Doings, MAX_FILES, MAX_SAID, Stop};
use headman::pi::tail::{Progress, Tail, Unsettled};
use serde_json::{Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");
/// 2026-11-30T08:00:00Z.
const START: u64 = 1_796_025_600_000;

fn of_file(path: &Path) -> Activity {
    let mut tail: Tail<Doings> = Tail::folding(path, None);
    while tail.look(u64::MAX, Unsettled::AtOnce).unwrap() == Progress::More {}
    let header = tail.index().header().unwrap().as_ref().unwrap();
    tail.fold().activity(header.cwd.as_ref())
}

fn fixture(name: &str) -> Activity {
    of_file(&Path::new(FIXTURES).join(name))
}

/// A session, an entry a second.
#[derive(Default)]
struct Session {
    entries: Vec<Value>,
    leaf: Option<usize>,
}

impl Session {
    fn add(&mut self, kind: &str, own: Value) -> &mut Self {
        let at = self.entries.len();
        let parent = self.leaf.map(|leaf| format!("{leaf:08x}"));
        let second = format!("2026-11-30T08:{:02}:{:02}.000Z", at / 60, at % 60);
        let mut entry =
            json!({"type": kind, "id": format!("{at:08x}"), "parentId": parent, "timestamp": second});
        entry.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        self.entries.push(entry);
        self.leaf = Some(at);
        self
    }

    fn message(&mut self, message: Value) -> &mut Self {
        self.add("message", json!({"message": message}))
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.message(json!({"role": "user", "content": [{"type": "text", "text": text}]}))
    }

    fn answer(&mut self, content: Value, stop: &str) -> &mut Self {
        self.message(json!({
            "role": "assistant", "provider": "p", "model": "m-1", "content": content, "stopReason": stop,
            "usage": {"input": 10, "output": 5, "cacheRead": 1000, "cacheWrite": 200},
        }))
    }

    fn calls(&mut self, calls: &[(&str, &str, Value)]) -> &mut Self {
        let calls = calls.iter().map(
            |(id, name, arguments)| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments}),
        );
        self.answer(calls.collect(), "toolUse")
    }

    fn result(&mut self, id: &str, is_error: bool) -> &mut Self {
        self.message(json!({
            "role": "toolResult", "toolCallId": id, "toolName": "t",
            "content": [{"type": "text", "text": "out"}], "isError": is_error,
        }))
    }

    fn edit(&mut self, path: &str) -> &mut Self {
        self.calls(&[("c", "edit", json!({"path": path}))]).result("c", false)
    }

    /// Goes back to an entry, as `/tree` does.
    fn back_to(&mut self, at: usize) -> &mut Self {
        self.leaf = Some(at);
        self
    }

    fn text(&self) -> String {
        let header = json!({"type": "session", "version": 3, "id": "s-1", "cwd": "/home/op/api"});
        [&header].into_iter().chain(&self.entries).map(|entry| format!("{entry}\n")).collect()
    }

    fn activity(&self) -> Activity {
        of_text(&self.text())
    }
}

fn of_text(text: &str) -> Activity {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, text).unwrap();
    of_file(&path)
}

fn at(second: u64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(START + second * 1000))
}

fn paths(activity: &Activity) -> Vec<(&str, bool)> {
    let files = activity.files.iter();
    files.map(|file| (std::str::from_utf8(file.path.as_wtf8()).unwrap(), file.in_turn)).collect()
}

fn told(activity: &Activity) -> Untrusted {
    activity.told.as_ref().unwrap().text.clone()
}

fn said(activity: &Activity) -> Untrusted {
    activity.said.as_ref().unwrap().text.clone()
}

fn call(tool: &str, argument: Option<&str>, second: u64) -> Call {
    Call { tool: tool.into(), argument: argument.map(Untrusted::from), since: at(second) }
}

#[test]
fn a_turn_has_its_calls_errors_files_tokens_and_words() {
    let mut session = Session::default();
    session.user("  Fix it.\n");
    let activity = session.activity();
    assert_eq!((activity.last, activity.is_whole), (at(0), true));
    assert_eq!(told(&activity), "Fix it.");
    assert_eq!((activity.said, activity.context, activity.model), (None, None, None));
    session.answer(
        json!([
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Looking."}, {"type": "text", "text": " "}, {"type": "text", "text": "Now."},
            {"type": "toolCall", "id": "a", "name": "read", "arguments": {"path": "src/a.rs"}},
            {"type": "toolCall", "id": "b", "name": "bash", "arguments": {"timeout": 9, "command": "cargo test\n-q"}},
            {"type": "toolCall", "id": "c", "name": "edit", "arguments": {"path": "src/a.rs", "edits": []}},
            {"type": "toolCall", "id": "d", "name": "odd", "arguments": {"n": 1, "what": "this"}},
            {"type": "toolCall", "id": "e", "name": "none", "arguments": null},
        ]),
        "toolUse",
    );
    let activity = session.activity();
    assert_eq!(
        activity.running,
        [
            call("read", Some("src/a.rs"), 1),
            call("bash", Some("cargo test\n-q"), 1),
            call("edit", Some("src/a.rs"), 1),
            call("odd", Some("this"), 1),
            call("none", None, 1),
        ]
    );
    assert_eq!(said(&activity), "Looking.\n\nNow.");
    assert_eq!(activity.context, Some(1215.0));
    assert_eq!(activity.model.as_ref().unwrap().id, "m-1");
    // Reading is no touching; what is being edited is touched already.
    assert_eq!(paths(&activity), [("/home/op/api/src/a.rs", true)]);
    assert_eq!(activity.files[0].at, at(1));
    session.result("a", false).result("b", true).result("c", false).result("d", true);
    let activity = session.activity();
    assert_eq!((activity.running, activity.errors), (vec![call("none", None, 1)], 2));
    assert_eq!(activity.last, at(5));
    session.result("e", false).answer(json!([{"type": "text", "text": "Done."}]), "stop");
    let activity = session.activity();
    assert_eq!((activity.running.len(), activity.errors, said(&activity)), (0, 2, "Done.".into()));
    // The next turn: what was counted begins anew, the files are known still.
    session.user("And now?");
    let activity = session.activity();
    assert_eq!((activity.errors, paths(&activity)), (0, vec![("/home/op/api/src/a.rs", false)]));
    assert_eq!((told(&activity), said(&activity)), ("And now?".into(), "Done.".into()));
    assert_eq!(activity.context, Some(1215.0));
    // Who uses a command, or renames the session, is active, too; nobody else is told anything.
    session.add("session_info", json!({"name": "x"}));
    session.message(json!({"role": "bashExecution", "command": "ls", "output": ""}));
    let activity = session.activity();
    assert_eq!((activity.last, told(&activity)), (at(10), "And now?".into()));
    session.add("model_change", json!({"provider": "p", "modelId": "m-2"}));
    assert_eq!(session.activity().model.unwrap().id, "m-2");
}

#[test]
fn an_edit_that_failed_touched_nothing_and_one_without_a_result_may_have() {
    let mut session = Session::default();
    session.user("go");
    session.calls(&[("a", "edit", json!({"path": "a"})), ("b", "write", json!({"file_path": "b"}))]);
    session.result("a", true);
    assert_eq!(paths(&session.activity()), [("/home/op/api/b", true)]);
    // Killed within the call: the next answer does not wait for it.
    session.answer(json!([{"type": "text", "text": "again"}]), "stop");
    let activity = session.activity();
    assert_eq!((activity.running.len(), activity.errors), (0, 1));
    assert_eq!(paths(&activity), [("/home/op/api/b", true)]);
    // Nor does a user who says something else: it was of the turn before.
    session.calls(&[("c", "edit", json!({"path": "c"}))]).user("stop that");
    let activity = session.activity();
    assert_eq!((activity.running.len(), activity.errors), (0, 0));
    assert_eq!(paths(&activity), [("/home/op/api/c", false), ("/home/op/api/b", false)]);
}

#[test]
fn answers_that_failed_or_were_interrupted_call_nothing_and_say_why() {
    let mut session = Session::default();
    let calls = json!([{"type": "toolCall", "id": "a", "name": "write", "arguments": {"path": "x"}}]);
    session.user("go").answer(calls.clone(), "aborted");
    let activity = session.activity();
    assert_eq!((activity.stop, activity.running.len(), activity.files.len()), (Some(Stop::Aborted), 0, 0));
    session.message(json!({
        "role": "assistant", "provider": "p", "model": "m", "content": [], "stopReason": "error",
        "errorMessage": "overloaded", "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }));
    let activity = session.activity();
    assert_eq!(activity.stop, Some(Stop::Error(Some("overloaded".into()))));
    assert_eq!(activity.context, Some(1215.0), "what failed took nothing");
    session.answer(calls, "length");
    let activity = session.activity();
    assert_eq!((activity.stop, activity.running.len()), (Some(Stop::Length), 1));
    session.answer(json!([]), "stop");
    assert_eq!(session.activity().stop, None);
    session.answer(json!([]), "aborted").user("go on");
    assert_eq!(session.activity().stop, None, "said, and over");
}

#[test]
fn a_compaction_leaves_the_tokens_unknown_until_the_next_answer() {
    let mut session = Session::default();
    session.user("go").edit("a").answer(json!([]), "stop");
    assert_eq!(session.activity().context, Some(1215.0));
    session.add("compaction", json!({"summary": "s", "firstKeptEntryId": "00000001", "tokensBefore": 9}));
    let activity = session.activity();
    assert_eq!((activity.context, activity.files.len(), told(&activity)), (None, 1, "go".into()));
    session.answer(json!([]), "stop");
    assert_eq!(session.activity().context, Some(1215.0));
}

#[test]
fn what_is_on_another_branch_was_not_done() {
    let mut session = Session::default();
    session.user("one").edit("a").user("two").edit("b");
    session.calls(&[("x", "bash", json!({"command": "sleep"}))]).result("x", true);
    session.calls(&[("y", "bash", json!({"command": "sleep"}))]);
    let activity = session.activity();
    assert_eq!((activity.errors, activity.running.len()), (1, 1));
    assert_eq!(paths(&activity), [("/home/op/api/b", true), ("/home/op/api/a", false)]);
    // Back to the end of the first turn.
    session.back_to(2).user("three");
    let activity = session.activity();
    assert_eq!((activity.errors, activity.running.len(), told(&activity)), (0, 0, "three".into()));
    assert_eq!(paths(&activity), [("/home/op/api/a", false)]);
    // And to the second.
    let last = session.entries.len() - 2;
    session.back_to(last).add("label", json!({"targetId": "00000001", "label": "here"}));
    let activity = session.activity();
    assert_eq!((activity.errors, activity.running.len(), told(&activity)), (1, 1, "two".into()));
    // A branch whose beginning is missing: what is there, and that it may not be all.
    let mut session = Session { leaf: Some(0xfff), ..Session::default() };
    session.edit("a");
    let activity = session.activity();
    assert_eq!((activity.is_whole, activity.told), (false, None));
    session.user("go").answer(json!([{"type": "text", "text": "yes"}]), "stop");
    assert!(session.activity().is_whole);
}

#[test]
fn what_the_chief_wrote_begins_a_turn_as_what_the_user_wrote_does() {
    let mut session = Session::default();
    session.user("one").edit("a");
    let delivered = |kind: &str, content: &str| {
        json!({"customType": format!("pi-herdsman-{kind}"), "content": content, "display": true,
               "details": {"id": "00000000-0000-4000-8000-000000000001", "lead": "s-1"}})
    };
    session.add("custom_message", delivered("chief_reply", "From chief c to lead s-1: Rotate: them."));
    let activity = session.activity();
    assert_eq!((told(&activity), paths(&activity)[0].1), ("Rotate: them.".into(), false));
    session.edit("b").add("custom_message", delivered("peer_message", "Peer message from x: hi"));
    let activity = session.activity();
    assert_eq!(told(&activity), "Rotate: them.");
    assert_eq!(paths(&session.activity())[0], ("/home/op/api/b", true));
}

#[test]
fn paths_are_taken_as_the_tools_take_them_and_each_file_stands_once() {
    let mut session = Session::default();
    session.user("go");
    for path in ["src/a.rs", "./src//b/../a.rs", "@src/a.rs", "/home/op/api/src/a.rs"] {
        session.edit(path);
    }
    for path in ["../web/x.ts", "/../etc/../y", "~/notes", "", "   ", "/", "\u{202e}src/\u{1b}[2J"] {
        session.edit(path);
    }
    session.calls(&[
        ("1", "multi_edit", json!({"filePath": "m"})),
        ("2", "Write", json!({"file": "w"})),
        ("3", "str-replace", json!({"path": "r"})),
        ("4", "readwrite", json!({"path": "no"})),
        ("5", "bash", json!({"command": "rm x", "path": "no"})),
        ("6", "grep", json!({"path": "no"})),
        ("7", "edit", json!({"path": 7})),
        ("8", "edit", json!({"path": "x".repeat(5000)})),
    ]);
    let activity = session.activity();
    let shown: Vec<_> = paths(&activity).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        shown,
        [
            "/home/op/api/r",
            "/home/op/api/w",
            "/home/op/api/m",
            "/home/op/api/\u{202e}src/\u{1b}[2J",
            "/",
            "~/notes",
            "/y",
            "/home/op/web/x.ts",
            "/home/op/api/src/a.rs",
        ]
    );
    assert_eq!(activity.files[8].at, at(7), "the last time counts");
    // Without a directory a relative path stays one.
    let text = session.text().replacen(",\"id\":\"s-1\"", "", 1).replacen(
        "\"cwd\":\"/home/op/api\"",
        "\"id\":\"s\"",
        1,
    );
    let activity = of_text(&text);
    assert_eq!(paths(&activity)[0].0, "r");
}

#[test]
fn what_is_kept_is_bounded_and_says_so() {
    let mut session = Session::default();
    session.user(&"u".repeat(10_000));
    for at in 0..MAX_FILES + 50 {
        session.edit(&format!("f{at}"));
    }
    session.edit("f60");
    let long = "é".repeat(MAX_SAID);
    let many = |at: usize| {
        json!({"type": "toolCall", "id": format!("{at}{}", "i".repeat(9000)), "name": "n".repeat(9000),
               "arguments": {"command": "a".repeat(9000)}})
    };
    let mut content = vec![json!({"type": "text", "text": format!("{long}z")})];
    content.extend((0..200).map(many));
    session.answer(content.into(), "toolUse");
    session.result(&format!("7{}", "i".repeat(9000)), true);
    let activity = session.activity();
    assert_eq!((activity.files.len(), activity.more_files), (MAX_FILES, 50));
    assert_eq!(paths(&activity)[0], ("/home/op/api/f60", true));
    let told = activity.told.unwrap();
    assert_eq!((told.text.utf8_len(), told.is_cut), (MAX_SAID, true));
    let said = activity.said.unwrap();
    assert_eq!(
        (said.text.utf8_len(), said.is_cut, said.text.as_wtf8().last()),
        (MAX_SAID - 1, true, Some(&b'z'))
    );
    assert_eq!((activity.running.len(), activity.errors), (63, 1));
    let call = &activity.running[0];
    assert_eq!((call.tool.utf8_len(), call.argument.as_ref().unwrap().utf8_len()), (64, 256));
    // What went out of the list in an earlier turn is not missed in this one.
    session.user("more").edit("new");
    assert_eq!(session.activity().more_files, 0);
}

#[test]
fn odd_entries_say_nothing_and_break_nothing() {
    let mut session = Session::default();
    session.user("go").edit("a");
    let plain = session.activity();
    for odd in [
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": [null, 7, "x", {"type": "toolCall"}, {"type": 1}, []]}),
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "stopReason": 5}),
        json!({"role": "toolResult", "toolCallId": "nobody's", "isError": "true"}),
        json!({"role": "toolResult"}),
        json!({"role": "of tomorrow", "content": "x"}),
        json!({"content": "x"}),
        json!(null),
    ] {
        session.message(odd);
    }
    session.add("compaction of tomorrow", json!({}));
    let activity = session.activity();
    assert_eq!(activity, Activity { last: activity.last, ..plain });
    // Times that are none are not taken for any.
    for time in ["\"soon\"", "7", "null", "\"1969-12-31T23:59:59.000Z\"", "\"2026-11-30T09:00:00+01:00\""] {
        let entry = format!(
            "{{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"timestamp\":{time},\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n"
        );
        let activity = of_text(&format!("{{\"type\":\"session\",\"id\":\"s\"}}\n{entry}"));
        assert_eq!(activity.last, at(0).filter(|_| time.contains("+01:00")), "{time}");
    }
}

#[test]
fn a_torn_last_line_changes_nothing_until_it_is_whole() {
    let mut session = Session::default();
    session.user("go").edit("a");
    let before = session.activity();
    let text = session.text();
    session.calls(&[("x", "bash", json!({"command": "true"}))]);
    let whole = session.text();
    for end in text.len() + 1..whole.len() - 1 {
        if whole.is_char_boundary(end) {
            assert_eq!(of_text(&whole[..end]), before, "{end}");
        }
    }
    assert_eq!(of_text(whole.trim_end()).running.len(), 1);
}

#[test]
fn real_sessions_tell_what_their_agents_did() {
    let tools = fixture("02-tools.jsonl");
    assert!(tools.files.iter().any(|file| file.path == "/home/op/api/src/orders.js"), "{tools:?}");
    assert!(tools.is_whole && tools.running.is_empty() && tools.context.is_some_and(|it| it > 1000.0));
    assert!(told(&tools).to_str_lossy().starts_with("Fix the failing order total test."));
    let killed = fixture("19b-killed-in-tool.jsonl");
    assert_eq!(killed.running.iter().filter(|call| call.tool == "bash").count(), 2, "{:?}", killed.running);
    assert_eq!(fixture("19d-sigterm-in-tool.jsonl").stop, Some(Stop::Aborted));
    assert_eq!(fixture("08-aborted.jsonl").stop, None, "it went on");
    assert!(matches!(fixture("09-errors.jsonl").stop, Some(Stop::Error(Some(_))) | None));
    let compacted = fixture("05-compaction-manual.jsonl");
    assert!(compacted.is_whole && compacted.last.is_some());
    // The first two versions say the same as what Pi makes of them.
    for (old, new) in [
        ("30-v1-pi-0.13.2.jsonl", "30b-v1-migrated-on-open.jsonl"),
        ("31-v2-pi-0.31.1.jsonl", "31b-v2-migrated-on-open.jsonl"),
    ] {
        let (old, new) = (fixture(old), fixture(new));
        assert!(old.said.is_some() && old.context.is_some(), "{old:?}");
        // Opening it appended what it was opened with.
        assert_eq!(old, Activity { last: old.last, model: old.model.clone(), ..new });
    }
}
