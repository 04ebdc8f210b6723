//! What an operator meets on the screens of sessions: messages as they are read, going to what a search
//! found, the branches, and keys that say what they did.

use std::fs;

use headman::console::app::{App, Effect};
use headman::console::pager::Paging;
use headman::console::view::transcript::{Found, Place};
use headman::contract::{Kind, Message, SessionId, Timestamp, Uuid};
use headman::lead::session::SessionFile;
use headman::pi::activity::Doings;
use headman::pi::tail::{Progress, Tail, Unsettled};
use serde_json::json;

use crate::screens::{app, at, press, session, shown};
use crate::transcript_screen::{HEADER, Scene, cursor_row, entry, file, result, scene, user};

/// A message that is delivered to the session `s-1`.
fn message(kind: Kind, from: &str, lead: &str, text: &str) -> Message {
    let session = |text: &str| SessionId::new(text).unwrap();
    Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind,
        from: session(from),
        to: session("s-1"),
        lead: session(lead),
        ask: kind.has_ask().then(Uuid::random),
        text: text.into(),
        created_at: Timestamp::from_millis(1),
    }
}

#[test]
fn a_delivered_message_is_its_text_alone_under_a_heading_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, session) = (dir.path().join("s.jsonl"), SessionId::new("s-1").unwrap());
    let now = Timestamp::from_millis(1_796_025_600_000);
    SessionFile::create(&path, &session, &"/w".into(), now).unwrap();
    let mut written = SessionFile::new(&path, session);
    let held = written.lock().unwrap();
    for message in [
        message(Kind::PeerMessage, "s-checkout", "s-checkout", "Is the flag in: yes?"),
        message(Kind::PeerMessage, "0198-nobody-known", "0198-nobody-known", "hello"),
        message(Kind::ChiefMessage, "chief", "s-1", "Take your time."),
        message(Kind::ChiefReply, "chief", "s-1", "Reject them: all of them."),
    ] {
        written.hand_over(&held, &message, now).unwrap();
    }
    drop(held);
    // Beside the lead, and around its ask, stands what it was told.
    let mut tail: Tail<Doings> = Tail::folding(&path, None);
    while tail.look(u64::MAX, Unsettled::AtOnce).unwrap() == Progress::More {}
    let told = tail.fold().activity(None).told.unwrap().text;
    assert_eq!(told, "Reject them: all of them.");
    let mut scene = Scene::of(file(&path, "s-1"));
    let screen = scene.screen(80, 24);
    for heading in ["Chief's reply", "Chief's message", "from peer checkout", "from peer 0198-nobody-"] {
        assert!(screen.contains(heading), "{heading}: {screen}");
    }
    for raw in ["pi-herdsman", "From chief", "Peer message"] {
        assert!(!screen.contains(raw), "{raw}: {screen}");
    }
    // As it was written once it is unfolded.
    scene.keys("\n");
    let screen = scene.screen(80, 24);
    assert!(screen.contains("From chief chief to lead s-1: Reject them: all of them."), "{screen}");
    assert!(cursor_row(&screen).contains("Chief's reply"), "{screen}");
}

#[test]
fn a_hit_of_the_search_is_gone_to_with_the_search_set() {
    let long: Vec<String> = (1..=60).map(|nth| format!("row {nth}")).collect();
    let mut text = long.join("\n");
    text.push_str("\nneedle in the result\nafter");
    let call = json!({"role": "assistant", "model": "m", "content": [
        {"type": "text", "text": "a needle said before"},
        {"type": "toolCall", "id": "c", "name": "write", "arguments": {"content": "x\ny\nthe needle of the call", "path": "a"}}]});
    let content = format!(
        "{HEADER}{}{}{}{}",
        user(1, "go"),
        entry(2, &call.to_string()),
        result(3, &text),
        (4..60).map(|id| user(id, "later")).collect::<String>()
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, &content).unwrap();
    let offset_of = |id: &str| {
        let at = content.find(&format!("\"id\":\"{id}\"")).unwrap();
        content[..at].rfind('\n').unwrap() as u64 + 1
    };
    let open = |id: &str, line: &str| {
        let found = Some(Found { text: "needle".to_owned(), line: line.to_owned() });
        Scene::at(file(&path, "s-1"), Some(Place { offset: offset_of(id), found }))
    };
    for (id, line, nth) in [
        ("00000002", "a needle said before", 1),
        ("00000002", "the needle of the call", 2),
        ("00000003", "needle in the result", 3),
    ] {
        let mut scene = open(id, line);
        let screen = scene.screen(80, 24);
        assert!(cursor_row(&screen).contains(line), "{line}: {screen}");
        assert!(screen.contains(&format!("/ needle  {nth} of 3 matches")), "{line}: {screen}");
        // With what stands above it.
        let above = screen.lines().take_while(|row| !row.contains('▸')).count();
        assert!(above > 7, "{line}: {screen}");
    }
    let mut scene = open("00000002", "a needle said before");
    scene.screen(80, 24);
    scene.keys("n");
    assert!(cursor_row(&scene.screen(80, 24)).contains("the needle of the call"));
    // It came from there: one step back leaves it.
    scene.keys("\u{1b}");
    assert!(scene.app.layers.is_empty());
    // What is nowhere any more is no reason to go astray.
    let screen = open("00000002", "another needle by now").screen(80, 24);
    assert!(cursor_row(&screen).contains("a needle said before"), "{screen}");
}

#[test]
fn the_branches_have_keys_of_their_own_and_are_told_apart() {
    let say = |id: u32, parent: u32, role: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id:08x}\",\"parentId\":\"{parent:08x}\",\"timestamp\":\"2026-11-30T07:00:00.000Z\",\"message\":{}}}\n",
            json!({"role": role, "model": "m", "content": [{"type": "text", "text": text}]})
        )
    };
    let content = format!(
        "{HEADER}{}{}{}{}{}",
        say(1, 0, "user", "go"),
        say(2, 1, "user", "the first way"),
        say(3, 2, "assistant", "Done."),
        say(4, 1, "user", "the second way"),
        say(5, 4, "assistant", "Done.")
    );
    let (_dir, _path, mut scene) = scene(content);
    assert!(scene.screen(80, 24).contains("user (2 branches here)"));
    scene.keys("b");
    let screen = scene.screen(100, 24);
    insta::assert_snapshot!("session_branches_100x24", screen);
    for key in ["/", "T", "e", "n", "[", "{", "y"] {
        scene.keys(key);
        scene.keys("");
        let now = scene.screen(100, 24);
        if key != "y" {
            assert_eq!(now, screen, "{key} does nothing there");
        }
    }
    assert!(scene.screen(100, 24).contains("There is nothing to copy here."));
    scene.keys("j\n");
    assert!(scene.screen(100, 24).contains("the first way"));
}

#[test]
fn keys_of_the_transcript_say_what_they_did() {
    let thought = json!({"role": "assistant", "model": "m", "content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "openly"}]});
    let (_dir, _path, mut with) = scene(format!("{HEADER}{}", entry(1, &thought.to_string())));
    let (_dir, _path, mut without) = scene(format!("{HEADER}{}", user(1, "go")));
    with.screen(80, 24);
    without.screen(80, 24);
    with.keys("T");
    without.keys("T");
    assert!(with.screen(80, 24).contains("Thoughts are shown."));
    assert!(without.screen(80, 24).contains("there are none near here"));
    with.keys("T");
    assert!(with.screen(80, 24).contains("Thoughts are hidden."));
    without.keys("\n");
    assert!(without.screen(80, 24).contains("It is shown whole already."));
    // What finds nothing goes nowhere.
    without.keys("/nowhere\n");
    let footer = |screen: &str| screen.lines().last().unwrap_or_default().to_owned();
    let screen = without.screen(80, 24);
    assert!(screen.contains("0 matches") && !footer(&screen).contains("next match"), "{screen}");
    without.keys("\u{1b}/go\n");
    assert!(footer(&without.screen(80, 24)).contains("n next match"));
}

#[test]
fn the_cursor_is_never_on_an_empty_row() {
    let lines: String = (1..=12).map(|id| user(id, &format!("message {id}."))).collect();
    let (_dir, _path, mut scene) = scene(format!("{HEADER}{lines}"));
    scene.screen(80, 24);
    for keys in ["k", "j"] {
        if keys == "j" {
            scene.keys("gg");
        }
        let mut rows = Vec::new();
        for _ in 0..30 {
            let screen = scene.screen(80, 24);
            let row =
                cursor_row(&screen).trim_matches(|it: char| it == '│' || it == '▸' || it == ' ').to_owned();
            assert!(!row.is_empty(), "{screen}");
            rows.push(row);
            scene.keys(keys);
        }
        let last = if keys == "k" { "user" } else { "message 12." };
        assert!(rows.last().unwrap().starts_with(last), "{rows:?}");
    }
}

#[test]
fn the_last_words_stand_with_the_question_and_the_footer_offers_what_there_is() {
    let mut app = app();
    let footer = |screen: &str| screen.lines().last().unwrap_or_default().to_owned();
    assert!(footer(&shown(&app, 80, 24, at(0))).contains("t transcript"));
    press(&mut app, "nr", at(0));
    let low = shown(&app, 80, 12, at(0));
    assert!(footer(&low).contains("pagedown read on"), "{low}");
    let high = shown(&app, 120, 60, at(0));
    assert!(!footer(&high).contains("read on"), "{high}");
    press(&mut app, "\u{1b}\u{1b}", at(0));
    // Help begins with the screen it is asked for on.
    press(&mut app, "t?", at(0));
    let help = shown(&app, 80, 24, at(0));
    let place = |what: &str| help.find(what).unwrap_or(usize::MAX);
    assert!(place("Transcript") < place("Outside text fields"), "{help}");
}

#[test]
fn the_pager_shows_only_what_is_still_on_the_screen_and_once() {
    let mut app = app();
    let paged = |app: &mut App| -> Vec<Paging> {
        let effects = app.take_effects().into_iter();
        effects.filter_map(|it| if let Effect::Page(paging) = it { Some(paging) } else { None }).collect()
    };
    let file =
        |lead: &str| headman::fact::SessionFile { path: format!("/s/{lead}").into(), session: session(lead) };
    app.open_transcript(file("s-auth"), None);
    press(&mut app, "ee", at(0));
    let [first] = &paged(&mut app)[..] else { panic!("asked for twice, written once") };
    // Another's transcript by the time it is there: nothing of it is shown.
    app.open_transcript(file("s-tf"), None);
    assert!(!app.takes_page(first));
    press(&mut app, "e", at(1));
    let [second] = &paged(&mut app)[..] else { panic!("the other one") };
    assert!(app.takes_page(second) && !app.takes_page(second));
    press(&mut app, "e\u{1b}", at(2));
    let [third] = &paged(&mut app)[..] else { panic!("again") };
    assert!(!app.takes_page(third), "nothing is read any more");
}
