//! What an entry says: the screen, the search and the whole transcript say the same of it.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headman::contract::SessionId;
use headman::pi::body::{Body, Folding};
use headman::pi::search::{Case, Filter, Pattern, Search, Syntax, Target};
use headman::pi::tail::{Tail, Unsettled};
use headman::pi::transcript::{Extent, read};
use serde_json::{Value, json};

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":\"/w\"}\n";

/// Where a word of the session is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum In {
    /// On the screen, by the search, and in both transcripts.
    All,
    /// The same, but for the bounded transcript.
    Whole,
    /// On the screen, and by the search where it is asked for.
    Thoughts,
    /// Nowhere.
    None,
}

fn file(dir: &Path, entries: &[Value]) -> PathBuf {
    let path = dir.join("s.jsonl");
    let mut text = HEADER.to_owned();
    for (nth, entry) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        entry["id"] = json!(format!("{nth:08x}"));
        entry["parentId"] = nth.checked_sub(1).map_or(Value::Null, |nth| json!(format!("{nth:08x}")));
        text.push_str(&format!("{entry}\n"));
    }
    fs::write(&path, text).unwrap();
    path
}

/// What the screen has of each entry, unfolded.
fn bodies(path: &Path) -> Vec<Body> {
    let content = fs::read(path).unwrap();
    let mut tail = Tail::new(path);
    tail.look(u64::MAX, Unsettled::AtOnce).unwrap();
    let body = |entry: &headman::pi::entry::Entry| {
        let begin = entry.offset as usize;
        Body::of(&content[begin..begin + entry.length as usize], entry.kind, Folding::Whole).unwrap()
    };
    tail.index().entries().iter().map(body).collect()
}

fn is_found(path: &Path, word: &str, thinking: bool) -> bool {
    let pattern = Pattern::new(word, Syntax::Literal, Case::Smart).unwrap();
    let filter = Filter { thinking, ..Filter::default() };
    let mut search =
        Search::new(pattern, filter, true, vec![Target { file: path.to_owned(), session: None }]);
    let mut found = false;
    while search.step(&mut |_| {
        found = true;
        ControlFlow::Continue(())
    }) {}
    found
}

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

#[test]
fn screen_search_and_transcript_say_the_same_of_every_entry() {
    let blocks = |name: &str| {
        json!([
            {"type": "text", "text": format!("{name}-text")},
            {"type": "thinking", "thinking": format!("{name}-thought")},
            {"type": "toolCall", "id": "hidden-call", "name": format!("{name}-tool"),
                "arguments": {"path": format!("{name}-argument"), "deep": [{"er": format!("{name}-deep")}]}},
            {"type": "image", "mimeType": "image/png", "data": "hidden-image"},
            {"type": "of tomorrow", "text": "hidden-block"},
        ])
    };
    let mut words: Vec<(String, In)> = Vec::new();
    let mut entries = vec![
        message(json!({"role": "user", "content": "user-string"})),
        message(json!({"role": "assistant", "content": "assistant-string"})),
        message(
            json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "assistant-error"}),
        ),
        message(json!({"role": "toolResult", "toolName": "bash", "content": "result-string",
            "details": {"truncation": {"content": "hidden-detail"}}})),
        message(json!({"role": "bashExecution", "command": "bash-command", "output": "bash-output"})),
        message(json!({"role": "custom", "customType": "note", "content": "custom-string", "display": true})),
        message(
            json!({"role": "custom", "customType": "note", "content": "hidden-custom", "display": false}),
        ),
        message(
            json!({"role": "hookMessage", "customType": "note", "content": "hook-string", "display": true}),
        ),
        message(json!({"role": "hookMessage", "customType": "note", "content": "hidden-hook"})),
        message(json!({"role": "branchSummary", "summary": "message-branch", "fromId": "hidden-from"})),
        message(json!({"role": "compactionSummary", "summary": "message-compaction", "tokensBefore": 7})),
        message(json!({"role": "system", "content": "hidden-system"})),
        message(json!({"role": "of tomorrow", "content": "hidden-role"})),
        message(
            json!({"role": "user", "content": "__PI_HERDSMAN_AGENT_V4__:00000000-0000-4000-8000-000000000001"}),
        ),
        json!({"type": "branch_summary", "summary": "entry-branch", "fromId": "root"}),
        json!({"type": "custom_message", "customType": "note", "content": "entry-custom", "display": true}),
        json!({"type": "custom_message", "customType": "note", "content": "hidden-entry", "display": false,
            "message": {"role": "user", "content": "hidden-member"}}),
        json!({"type": "custom", "customType": "note", "data": {"text": "hidden-data"}}),
        json!({"type": "label", "targetId": "00000000", "label": "hidden-label"}),
        json!({"type": "usage", "kind": "hidden-usage"}),
        json!({"type": "context_edit", "targetId": "00000000", "replacement": {"content": "hidden-edit"}}),
        json!({"type": "of tomorrow", "text": "hidden-type"}),
    ];
    for (name, role) in [("user", "user"), ("assistant", "assistant"), ("result", "toolResult")] {
        let mut said = json!({"role": role, "content": blocks(&format!("{name}-block"))});
        if role == "toolResult" {
            said["toolName"] = json!("bash");
        }
        entries.push(message(said));
        let calls = if role == "assistant" { In::All } else { In::Whole };
        words.push((format!("{name}-block-text"), In::All));
        words.push((format!("{name}-block-thought"), In::Thoughts));
        for part in ["tool", "argument", "deep"] {
            words.push((format!("{name}-block-{part}"), calls));
        }
    }
    for word in ["user-string", "result-string", "entry-branch"] {
        words.push((word.to_owned(), In::All));
    }
    for word in [
        "assistant-string",
        "assistant-error",
        "bash-command",
        "bash-output",
        "custom-string",
        "hook-string",
        "message-branch",
        "message-compaction",
        "entry-custom",
    ] {
        words.push((word.to_owned(), In::Whole));
    }
    words.extend(["hidden", "HERDSMAN"].map(|word| (word.to_owned(), In::None)));

    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), &entries);
    let session = SessionId::new("s-1").unwrap();
    let screen: Vec<String> = bodies(&path)
        .iter()
        .filter(|body| !body.parts.is_empty())
        .map(|body| body.text().to_str_lossy().into_owned())
        .collect();
    let screen = screen.join("\n");
    let transcript = |extent| read(&path, &session, extent).unwrap().text;
    let (whole, bounded) = (transcript(Extent::Full), transcript(Extent::Bounded));
    assert!(words.len() > 25);
    for (word, of) in &words {
        let found = [
            screen.contains(word.as_str()),
            is_found(&path, word, true),
            is_found(&path, word, false),
            whole.contains(word.as_str()),
            bounded.contains(word.as_str()),
        ];
        let expected = match of {
            In::All => [true; 5],
            In::Whole => [true, true, true, true, false],
            In::Thoughts => [true, true, false, false, false],
            In::None => [false; 5],
        };
        assert_eq!(found, expected, "{word}, {of:?}");
    }
}

#[test]
fn messages_of_extensions_and_summaries_are_told_as_such() {
    let entries = [
        message(json!({"role": "hookMessage", "customType": "note", "display": true,
            "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "text"}]})),
        message(json!({"role": "compactionSummary", "summary": "what was before", "tokensBefore": 7})),
        message(json!({"role": "branchSummary", "summary": "what was left"})),
        message(
            json!({"role": "assistant", "content": [{"type": "text", "text": "half"}], "stopReason": "aborted",
            "errorMessage": " Request was aborted "}),
        ),
        message(json!({"role": "user", "content": "end"})),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), &entries);
    let session = SessionId::new("s-1").unwrap();
    assert_eq!(
        read(&path, &session, Extent::Full).unwrap().text,
        "custom note:\none text\n\ncompaction summary:\nwhat was before\n\nbranch summary:\nwhat was left\n\n\
         assistant:\nhalf\n\nassistant [error]:\nRequest was aborted\n\nuser:\nend"
    );
    // A summary that is a message replaces nothing, and the bounded transcript stays that of the contract.
    assert_eq!(read(&path, &session, Extent::Bounded).unwrap().text, "assistant:\nhalf\n\nuser:\nend");
    let bodies = bodies(&path);
    assert_eq!((&bodies[0].title, &bodies[1].notes[..]), (&"note".into(), &["of 7 tokens".to_owned()][..]));
}

#[test]
fn what_is_not_whole_is_marked_by_a_word() {
    let bash = |more: Value| {
        let mut bash = json!({"role": "bashExecution", "command": "ls", "output": "a"});
        bash.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message(bash)
    };
    let entries = [
        bash(json!({"truncated": false, "exitCode": 0})),
        bash(json!({"truncated": true, "exitCode": 0})),
        bash(json!({"truncated": true, "exitCode": 2, "fullOutputPath": "/tmp/all.log"})),
        message(json!({"role": "assistant", "content": [], "stopReason": "deferred"})),
        message(json!({"role": "assistant", "content": [], "stopReason": "length"})),
        message(json!({"role": "assistant", "content": [], "stopReason": "stop"})),
    ];
    let dir = tempfile::tempdir().unwrap();
    let notes: Vec<String> =
        bodies(&file(dir.path(), &entries)).iter().map(|body| body.notes.join("; ")).collect();
    assert_eq!(
        notes,
        ["", "cut off", "error, exit code 2; cut off, whole in /tmp/all.log", "deferred", "cut off", ""]
    );
}
