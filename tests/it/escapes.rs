//! Text that drives terminals or hides, in every place where others' text is shown: nothing of it reaches
//! a terminal but what the backend itself makes, and JSON has it escaped.

use std::sync::Arc;

use crossterm::queue;
use crossterm::terminal::SetTitle;
use headman::chief::journal::{Event, Journal};
use headman::chief::state_dir::StateDir;
use headman::console::app::App;
use headman::console::text;
use headman::console::theme::Role;
use headman::console::view::frame;
use headman::contract::{
    Claim, Kind, LeadRecord, Message, NativeId, PeerRecord, PendingAsk, SessionId, Timestamp, Untrusted, Uuid,
};
use headman::disk::peers::{Peer, Queue};
use headman::disk::{durable, records};
use headman::fact::{Fact, LeadRead, OtherChief, Standing};
use headman::herd::evidence::{AgentSession, LiveAgent, Provenance, State};
use headman::herd::inventory::Inventory;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::Value;

use crate::hostile_herdr::Hostile;
use crate::inbox_screen::Desk;
use crate::screens::{START, app, at, press, uuid};
use crate::transcript_screen;

/// What is put around each piece.
const SHAPES: usize = 3;

/// The payloads: each piece alone, within words, or over and over; in all these shapes where `all` says so,
/// else in one of them.
fn payloads(all: bool) -> Vec<Untrusted> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    // What introduces a sequence, by ESC, as C1 of one character, and as the bare byte.
    for (seven, eight) in [
        ('[', 0x9B_u8),
        (']', 0x9D),
        ('P', 0x90),
        ('_', 0x9F),
        ('^', 0x9E),
        ('X', 0x98),
        ('N', 0x8E),
        ('O', 0x8F),
    ] {
        for rest in ["2J", "0;owned\u{7}", "52;c;b3duZWQ=\u{1b}\\", "?1049h"] {
            pieces.push(format!("\u{1b}{seven}{rest}").into_bytes());
            pieces.push(format!("{}{rest}", char::from(eight)).into_bytes());
            pieces.push([&[eight], rest.as_bytes()].concat());
        }
    }
    for text in
        ["\u{1b}", "\u{1b}c", "\u{1b}(0", "\u{1b}]8;;http://x\u{1b}\\l\u{1b}]8;;\u{1b}\\", "\u{1b}\u{1b}[31m"]
    {
        pieces.push(text.into());
    }
    pieces.extend((0..32_u8).chain([0x7F]).map(|control| vec![control]));
    for code in (0x80..=0x9F).chain([
        0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029,
        0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2060, 0x2061, 0x2066, 0x2067, 0x2068, 0x2069, 0x206A,
        0x206F, 0x2062, 0x2063, 0x2064, 0x20DD, 0x20E0, 0x489, 0x1ABE, 0x302A, 0x16FE4, 0xFE01, 0xE0020,
        0xE0030, 0x1F3FB, 0x3164, 0xFE00, 0xFE0E, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFE, 0x1D173, 0xE0001,
        0xE0041, 0xE007F, 0xE0100, 0x10FFFF,
    ]) {
        pieces.push(char::from_u32(code).unwrap().to_string().into());
    }
    for text in [
        "x\r\ny",
        "x\ry",
        "a\u{8}\u{8}b",
        "\t",
        "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
        "\u{FDFD}",
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}\u{200D}\u{1F466}\u{200D}\u{1F466}\u{200D}\u{1F466}\u{200D}\u{1F466}",
        "\u{1F1E6}",
        "\u{E01}\u{E33}",
        "\u{600}1",
        "\u{1100}\u{1161}\u{11A8}",
        "\u{5d0}\u{5d1}",
        "1\u{FE0F}\u{20E3}",
        "\u{FFFD}",
    ] {
        pieces.push(text.into());
    }
    // No UTF-8: overlong forms, bytes out of place.
    for bytes in [&b"\xc0\x9b"[..], b"\xe0\x82\x9b", b"\xf4\x90\x80\x80", b"\xff"] {
        pieces.push(bytes.to_vec());
    }
    let mut pieces: Vec<Untrusted> = pieces.iter().map(|it| Untrusted::from_bytes_lossy(it)).collect();
    for halves in ["\\ud800", "\\udc00", "\\udc00\\ud800"] {
        pieces.push(serde_json::from_str(&format!("\"{halves}\"")).unwrap());
    }
    let shapes = |it: &Untrusted| [it.clone(), around("ab ", it, " cd"), around(&json(it).repeat(7), it, "")];
    let mut payloads: Vec<Untrusted> = Vec::new();
    for (nth, piece) in pieces.iter().enumerate() {
        for (shape, payload) in shapes(piece).into_iter().enumerate() {
            if (all || shape == nth % SHAPES) && !payloads.contains(&payload) {
                payloads.push(payload);
            }
        }
    }
    payloads
}

/// As the inside of a JSON string.
fn json(text: &Untrusted) -> String {
    let mut bytes = Vec::new();
    text.write_json(&mut bytes);
    String::from_utf8(bytes[1..bytes.len() - 1].to_vec()).unwrap()
}

/// The text between two pieces of a JSON string.
fn around(before: &str, text: &Untrusted, after: &str) -> Untrusted {
    serde_json::from_str(&format!("\"{before}{}{after}\"", json(text))).unwrap()
}

/// Whether a character may never reach a terminal from outside. By the standards' lists, not by ours.
pub(crate) fn is_forbidden(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200C}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}'
            | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Only what the backend makes stands in `bytes`: where the cursor goes, whether it is seen, and colours.
fn scan(what: &str, payload: &Untrusted, bytes: &[u8]) {
    let drawn = std::str::from_utf8(bytes).unwrap();
    let mut rest = drawn;
    let wrong = |why: &str| panic!("{what}, {payload:?}: {why} in {drawn:?}");
    let mut marks = 0;
    while let Some(character) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let end =
                sequence.find(|it: char| !matches!(it, '0'..='9' | ';' | '?' | ':')).unwrap_or_default();
            let is_ours = match &sequence[end..=end] {
                "m" | "H" | "J" => !sequence[..end].contains('?'),
                "l" | "h" => &sequence[..end] == "?25",
                _ => false,
            };
            if !is_ours {
                wrong("a sequence that is not the backend's");
            }
            (rest, marks) = (&sequence[end + 1..], 0);
            continue;
        }
        if is_forbidden(character) {
            wrong("a forbidden character");
        }
        marks = if ('\u{300}'..='\u{36F}').contains(&character) { marks + 1 } else { 0 };
        if marks > 4 {
            wrong("a tower of marks");
        }
        rest = &rest[character.len_utf8()..];
    }
}

/// What goes to the terminal for a screen.
fn drawn(app: &App) -> Vec<u8> {
    let mut bytes = Vec::new();
    let viewport = Viewport::Fixed(Rect::new(0, 0, 90, 20));
    let options = TerminalOptions { viewport };
    let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut bytes), options).unwrap();
    terminal
        .draw(|frame| {
            frame::draw(app, at(300), frame);
        })
        .unwrap();
    drop(terminal);
    bytes
}

fn session(of: &Untrusted) -> SessionId {
    SessionId::new(around("s-", of, "")).unwrap()
}

fn letter(payload: &Untrusted) -> Message {
    Message {
        id: Uuid::random(),
        lease: uuid(900),
        kind: Kind::LeadMessage,
        from: session(payload),
        to: SessionId::new("chief").unwrap(),
        lead: session(payload),
        ask: None,
        text: payload.clone(),
        created_at: Timestamp::from_millis(START),
    }
}

fn record(payload: &Untrusted) -> LeadRecord {
    // What is blank is no question.
    let question = around("", payload, " ?");
    LeadRecord {
        instance: uuid(1),
        session: session(payload),
        pending_ask: Some(PendingAsk { ask: uuid(100), question: question.clone(), text: question }),
        updated_at: Timestamp::from_millis(1),
    }
}

fn presence(payload: &Untrusted) -> PeerRecord {
    let native = |prefix: &str| NativeId::new(around(prefix, payload, ""));
    PeerRecord {
        session: session(payload),
        pane: native("p").unwrap(),
        tab: native("t").unwrap(),
        workspace: native("w").unwrap(),
        claim: Claim::own(),
        updated_at: Timestamp::from_millis(1),
        name: native("n"),
        cwd: native("/"),
        repo: native("r"),
        branch: native("b"),
        workspace_label: native("l"),
    }
}

/// A console in which every text of others is the payload.
fn filled(payload: &Untrusted) -> App {
    let some = || Some(payload.clone());
    let workspace = Untrusted::from("w");
    let mut inventory =
        Inventory { version: some(), dropped: vec![payload.escaped().to_string()], ..Inventory::default() };
    let agent = |session| LiveAgent {
        workspace: Some(workspace.clone()),
        tab: Some("w:t".into()),
        pane: Some("w:p".into()),
        state: State::Blocked,
        token_name: some(),
        session_name: some(),
        herdr_name: some(),
        tab_label: some(),
        cwd: some(),
        ..LiveAgent::new(AgentSession::Known(session))
    };
    inventory.agents.push(agent(session(payload).as_untrusted().clone()));
    inventory.agents.push(agent(payload.clone()));
    let provenance = Provenance { repo: some(), branch: some(), label: some(), cwd: some() };
    inventory.provenance.insert(workspace, provenance);
    let record = record(payload);
    let peer = Peer {
        hash: record.session.hash(),
        record: Some(presence(payload)),
        presence: Ok(()),
        queue: Ok(Queue { waiting: 1, oldest: None, unusable: 1, messages: vec![letter(payload)] }),
        session: Some(record.session.clone()),
    };
    let mut app = app();
    let facts = vec![
        Fact::Inventory(Arc::new(inventory)),
        Fact::Leads(Arc::new(vec![(record.session.hash(), LeadRead::Valid(record))])),
        Fact::Peers(Arc::new(Ok(vec![peer]))),
    ];
    app.facts(facts, at(299));
    app
}

/// A session in which every text is the payload.
fn transcript(payload: &Untrusted) -> String {
    let it = format!("\"{}\"", json(payload));
    let mut lines = vec!["{\"type\":\"session\",\"version\":3,\"id\":\"s-1\"}".to_owned()];
    let message = |message: String| format!("\"type\":\"message\",\"message\":{{{message}}}");
    let text = format!("{{\"type\":\"text\",\"text\":{it}}}");
    let entries = [
        message(format!(
            "\"role\":\"user\",\"content\":[{text},{{\"type\":\"image\",\"mimeType\":{it},\"data\":{it}}}]"
        )),
        message(format!(
            "\"role\":\"assistant\",\"model\":{it},\"provider\":{it},\"stopReason\":\"error\",\"errorMessage\":{it},\
             \"content\":[{{\"type\":\"thinking\",\"thinking\":{it}}},{text},\
             {{\"type\":\"toolCall\",\"name\":{it},\"arguments\":{{{it}:{it}}}}}]"
        )),
        message(format!("\"role\":\"toolResult\",\"toolName\":{it},\"isError\":true,\"content\":[{text}]")),
        message(format!("\"role\":\"bashExecution\",\"command\":{it},\"output\":{it}")),
        format!("\"type\":\"custom_message\",\"customType\":{it},\"content\":{it},\"display\":true"),
        format!("\"type\":\"compaction\",\"summary\":{it}"),
        format!("\"type\":\"model_change\",\"provider\":{it},\"modelId\":{it}"),
        format!("\"type\":\"session_info\",\"name\":{it}"),
        format!("\"type\":\"label\",\"targetId\":\"00000001\",\"label\":{it}"),
    ];
    for (nth, entry) in entries.iter().enumerate() {
        lines.push(format!("{{\"id\":\"{:08x}\",\"parentId\":\"{nth:08x}\",{entry}}}", nth + 1));
    }
    lines.join("\n") + "\n"
}

#[test]
fn no_payload_reaches_the_terminal_on_any_screen() {
    on_every_screen(&payloads(false));
}

#[test]
#[ignore = "takes minutes"]
fn no_payload_in_any_shape_reaches_the_terminal_on_any_screen() {
    on_every_screen(&payloads(true));
}

fn on_every_screen(payloads: &[Untrusted]) {
    let mut screens = 0;
    let dir = tempfile::tempdir().unwrap();
    for payload in payloads {
        let lossy = payload.to_str_lossy();
        let mut check = |what: &str, app: &App| {
            scan(what, payload, &drawn(app));
            screens += 1;
        };
        let mut app = filled(payload);
        check("roster and detail", &app);
        press(&mut app, "n", at(299));
        check("the ask", &app);
        press(&mut app, "r", at(299));
        app.paste(&lossy, at(299));
        check("what is being written", &app);
        let mut app = filled(payload);
        press(&mut app, "/", at(299));
        app.paste(&lossy, at(299));
        check("the filter", &app);
        let mut app = filled(payload);
        press(&mut app, "d", at(299));
        check("diagnostics", &app);
        press(&mut app, "\u{1b}v", at(299));
        check("peers", &app);
        press(&mut app, "\n", at(299));
        check("a peer", &app);
        app.say(format_args!("{lossy}"), Role::Notice, at(299));
        check("a notice", &app);
        let refused = Some(lossy.clone().into_owned());
        let observer = Standing::Observer { chief: OtherChief::None, refused };
        app.facts(
            vec![Fact::Standing(observer), Fact::HerdrDown { reason: lossy.clone().into_owned() }],
            at(299),
        );
        press(&mut app, "\u{1b}\u{1b}", at(299));
        check("banners", &app);
        let mut desk =
            Desk::new(filled(payload), &[(letter(payload), None), (letter(payload), Some(&*lossy))]);
        desk.press("i", at(299));
        check("the inbox", &desk.app);
        desk.press("\n", at(299));
        check("a letter", &desk.app);
        let file = dir.path().join("s.jsonl");
        std::fs::write(&file, transcript(payload)).unwrap();
        let mut scene = transcript_screen::Scene::of(transcript_screen::file(&file, "s-1"));
        scene.screen(80, 60);
        check("a transcript", &scene.app);
        press(&mut scene.app, "T\n/", at(299));
        scene.app.paste(&lossy, at(299));
        scene.screen(80, 60);
        check("a transcript, searched", &scene.app);
        press(&mut scene.app, "\u{1b}b", at(299));
        scene.screen(80, 60);
        check("branches", &scene.app);
        let mut title = Vec::new();
        queue!(title, SetTitle(text::title(payload).as_str())).unwrap();
        let inside = title.strip_prefix(b"\x1b]0;").unwrap().strip_suffix(b"\x07").unwrap();
        scan("the title", payload, inside);
        screens += 1;
    }
    println!("{} payloads, {screens} screens", payloads.len());
    assert!(payloads.len() >= 200 && screens == 15 * payloads.len());
}

/// Herdr's snapshot of agents that are called as the payloads are.
fn herd(payloads: &[Untrusted]) -> String {
    let (mut workspaces, mut agents) = (Vec::new(), Vec::new());
    for (nth, payload) in payloads.iter().enumerate() {
        let text = format!("\"{}\"", json(payload));
        workspaces.push(format!(
            "{{\"workspace_id\":\"w{nth}\",\"label\":{text},\"worktree\":{{\"repo_name\":{text},\"checkout_path\":{text}}}}}"
        ));
        agents.push(format!(
            "{{\"pane_id\":\"w{nth}:p\",\"tab_id\":\"w{nth}:t\",\"workspace_id\":\"w{nth}\",\"agent\":\"pi\",\"name\":{text},\
             \"title\":{text},\"cwd\":{text},\"tokens\":{{\"pi_herdsman_name\":{text}}},\"agent_status\":\"idle\",\
             \"agent_session\":{{\"source\":\"herdr:pi\",\"agent\":\"pi\",\"kind\":\"id\",\"value\":\"{}\"}}}},{{\"pane_id\":{text}}}",
            json(session(payload).as_untrusted())
        ));
    }
    format!(
        "{{\"id\":\"x\",\"result\":{{\"snapshot\":{{\"version\":\"1\",\"protocol\":20,\"workspaces\":[{}],\"tabs\":[],\
         \"panes\":[],\"agents\":[{}]}},\"worktrees\":[],\"protocol\":20}}}}\n",
        workspaces.join(","),
        agents.join(",")
    )
}

fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|it| strings(it, into)),
        Value::Object(all) => all.iter().for_each(|(key, it)| {
            into.push(key.clone());
            strings(it, into);
        }),
        _ => {}
    }
}

#[test]
fn no_payload_reaches_the_terminal_from_any_verb_and_json_reads_back_exactly() {
    let payloads = payloads(false);
    let mut outputs = 0;
    for some in payloads.chunks(80) {
        let answer = herd(some);
        let herdr =
            Hostile::new(Arc::new(move |_, stream| std::io::Write::write_all(stream, answer.as_bytes())));
        let place = &herdr.place;
        let runtime = place.agent_dir().runtime(place.path("h.sock").as_os_str());
        let home = place.path("home");
        durable::ensure_directories(&home, &runtime.leads()).unwrap();
        durable::ensure_directories(&home, &runtime.peer_records()).unwrap();
        let state = StateDir::open(&place.state_dir(), place.path("h.sock").as_os_str()).unwrap();
        let mut journal = Journal::open(&state.journal()).unwrap();
        for payload in some {
            records::write_lead(&runtime, &record(payload)).unwrap();
            let path = runtime.peer(&session(payload));
            durable::publish(&path, &presence(payload).to_bytes().unwrap()).unwrap();
            let (message, lossy) = (letter(payload), payload.to_str_lossy());
            let bytes = message.to_bytes().unwrap();
            let event = Event::Received {
                id: message.id,
                bytes: &bytes,
                message: Some(&message),
                refused: Some(&lossy),
            };
            journal.append(&[event], message.created_at).unwrap();
        }
        let no_nul = some[0].to_str_lossy().replace('\0', "\u{1b}");
        for arguments in [
            &["list"][..],
            &["list", "--plain"],
            &["list", "--json"],
            &["state"],
            &["state", "--json"],
            &["peers"],
            &["peers", "--json"],
            &["inbox"],
            &["inbox", "--json"],
            &["doctor"],
            &["doctor", "--json"],
            &["message", &no_nul, &no_nul, "--log", "log"],
            &["lead", "ask", "--session", &no_nul, &no_nul],
            &["--socket", &no_nul, "list"],
            &["--config", &no_nul, "list"],
            &[&no_nul],
        ] {
            let ran = place.run(
                &[arguments, &["--log", "log"][..]].concat()
                    [..arguments.len() + if arguments.contains(&"--log") { 0 } else { 2 }],
            );
            let what = format!("{arguments:?}");
            for text in [&ran.stdout, &ran.stderr] {
                for line in text.lines() {
                    scan(&what, &some[0], line.as_bytes());
                }
            }
            outputs += 1;
            if arguments.contains(&"--json") && ran.code != 2 {
                let mut read = Vec::new();
                ran.stdout.lines().for_each(|line| match serde_json::from_str(line) {
                    Ok(value) => strings(&value, &mut read),
                    // A half of a surrogate is none of serde's.
                    Err(error) => assert!(line.contains("\\ud"), "{what}: {error}"),
                });
                // Halves of surrogates, which serde can't read, stand in lines with others here.
                let is_read = |it: &&Untrusted| !json(it).contains("\\ud") && !json(it).contains('\u{FFFD}');
                for payload in some.iter().filter(is_read) {
                    let wanted = match arguments[0] {
                        "inbox" => payload.clone(),
                        "list" | "peers" if !read.is_empty() => session(payload).as_untrusted().clone(),
                        _ => continue,
                    };
                    assert!(read.iter().any(|it| wanted == it.as_str()), "{what}: {payload:?} is not exact");
                }
            }
        }
        let log = std::fs::read_to_string(place.path("log")).unwrap();
        log.lines().for_each(|line| scan("the log", &some[0], line.as_bytes()));
    }
    println!("{} payloads, {outputs} outputs", payloads.len());
}
