//! What a lead's session file remembers.

use super::*;

fn at(dir: &tempfile::TempDir) -> (PathBuf, SessionFile) {
    let (path, session) = (dir.path().join("s.jsonl"), SessionId::new("s-1").unwrap());
    SessionFile::create(&path, &session, &"/w".into(), Timestamp::from_millis(1)).unwrap();
    let file = SessionFile::new(&path, session);
    (path, file)
}

fn ask(question: &str) -> PendingAsk {
    PendingAsk { ask: Uuid::random(), question: question.into(), text: question.into() }
}

const NOW: fn() -> Timestamp = || Timestamp::from_millis(1_796_026_361_029);

fn append_raw(path: &Path, bytes: &[u8]) {
    File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn what_one_writes_the_other_knows_and_hangs_its_entries_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut first) = at(&dir);
    let mut second = SessionFile::new(&path, first.session().clone());
    let (instance, asked) = (Uuid::random(), ask("Is \"this\" \u{e4}\n?"));
    let held = first.lock().unwrap();
    assert_eq!(first.state(), Ok(LeadState::default()));
    first.keep_state(&held, instance, None, NOW()).unwrap();
    drop(held);
    let held = second.lock().unwrap();
    second.keep_state(&held, instance, Some(&asked), NOW()).unwrap();
    drop(held);
    first.look().unwrap();
    let state = LeadState { instance: Some(instance), pending_ask: Some(asked) };
    assert_eq!(first.state(), Ok(state.clone()));
    assert_eq!(second.state(), Ok(state));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1]["parentId"], serde_json::Value::Null);
    assert_eq!(lines[2]["parentId"], lines[1]["id"]);
    assert_eq!(lines[1]["timestamp"], "2026-11-30T08:12:41.029Z");
}

#[test]
fn a_torn_line_is_ended_before_the_next_and_a_whole_one_without_an_end_counts() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = at(&dir);
    let id = Uuid::random();
    append_raw(&path, br#"{"type":"custom","customType":"pi-herdsman-lead-st"#);
    let held = file.lock().unwrap();
    file.keep_state(&held, id, None, NOW()).unwrap();
    drop(held);
    let mut again = SessionFile::new(&path, file.session().clone());
    again.look().unwrap();
    assert_eq!(again.state().unwrap().instance, Some(id));
    let other = Uuid::random();
    let whole = format!(
        r#"{{"type":"custom","customType":"{STATE_TYPE}","data":{{"instanceId":"{other}"}},"id":"00000009"}}"#
    );
    append_raw(&path, whole.as_bytes());
    again.look().unwrap();
    assert_eq!(again.state().unwrap().instance, Some(other));
    let held = again.lock().unwrap();
    again.keep_state(&held, id, None, NOW()).unwrap();
    drop(held);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.lines().last().unwrap().contains(r#""parentId":"00000009""#), "{text}");
}

#[test]
fn a_malformed_last_state_is_an_error_and_a_later_good_one_heals_it() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = at(&dir);
    for data in [
        "{}",
        r#"{"instanceId":"no"}"#,
        r#"{"more":1}"#,
        r#"{"pendingAsk":{"askId":"x","question":"q","text":"t"}}"#,
        "[]",
    ] {
        let line = format!("{{\"type\":\"custom\",\"customType\":\"{STATE_TYPE}\",\"data\":{data}}}\n");
        append_raw(&path, line.as_bytes());
        file.look().unwrap();
        let error = file.state();
        assert_eq!(error.is_err(), data != "{}", "{data}");
        assert!(error.err().is_none_or(|error| !error.is_passing()), "{data}");
    }
    append_raw(
        &path,
        format!("{{\"type\":\"custom\",\"customType\":\"{STATE_TYPE}\",\"data\":{{}}}}\n").as_bytes(),
    );
    file.look().unwrap();
    assert_eq!(file.state(), Ok(LeadState::default()));
}

#[test]
fn another_file_in_its_place_is_read_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = at(&dir);
    let held = file.lock().unwrap();
    file.keep_state(&held, Uuid::random(), Some(&ask("?")), NOW()).unwrap();
    drop(held);
    std::fs::remove_file(&path).unwrap();
    assert!(file.lock().unwrap_err().is_passing());
    let session = SessionId::new("s-1").unwrap();
    SessionFile::create(&path, &session, &"/w".into(), NOW()).unwrap();
    file.look().unwrap();
    assert_eq!(file.state(), Ok(LeadState::default()));
    std::fs::remove_file(&path).unwrap();
    let other = SessionId::new("s-2").unwrap();
    SessionFile::create(&path, &other, &"/w".into(), NOW()).unwrap();
    assert_eq!(file.lock().unwrap_err(), SessionError::OtherSession { path, found: other });
}

#[test]
fn a_reply_is_found_by_its_ask_with_its_text_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut file) = at(&dir);
    let lead = file.session().clone();
    let asked = Uuid::random();
    let reply = Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind: Kind::ChiefReply,
        from: SessionId::new("chief").unwrap(),
        to: lead.clone(),
        lead,
        ask: Some(asked),
        text: "From chief x to lead s-1: yes\n".into(),
        created_at: NOW(),
    };
    let held = file.lock().unwrap();
    file.hand_over(&held, &reply, NOW()).unwrap();
    assert!(file.delivered().contains(&reply.id));
    assert_eq!(file.reply_to(asked).unwrap(), Some((reply.id, reply.text)));
    assert_eq!(file.reply_to(Uuid::random()).unwrap(), None);
}
