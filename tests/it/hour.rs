//! An hour of answering in fast motion: asks, broadcasts, consoles that come, go and crash. At its end what
//! the journal says, what the leads' sessions hold and what the screen shows are the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::demo_console::{Served, headman, home, press};
use crate::pty::Harness;
use crate::support::below;

const ANSWERS: usize = 20;
const BROADCASTS: usize = 3;

/// The texts of all files below a directory whose names end so.
fn texts(root: &str, ending: &str) -> Vec<String> {
    let files = below(Path::new(root)).into_iter().map(|file| Path::new(root).join(file));
    let files = files.filter(|file| file.is_file() && file.to_string_lossy().ends_with(ending));
    files.map(|file| std::fs::read_to_string(file).unwrap_or_default()).collect()
}

fn chief(home: &Path, served: &Served) -> Harness {
    let mut console = Harness::start_in(headman(home, &[], &served.environment), 120, 40);
    console.wait_for("to have a Chief", |it| it.shows("● chief since"));
    console
}

/// Opens the next ask and answers it. A lead that dies meanwhile and comes back is not written to before
/// its ask is opened again.
fn answer(console: &mut Harness, text: &str) {
    let taken = |it: &Harness| it.shows("● delivered") || it.shows("● answered");
    let refused = |it: &Harness| it.shows("to send under") || it.shows("Not sent");
    for _ in 0..3 {
        console.wait_for("an ask", |it| it.shows("NEEDS YOU"));
        press(console, "n", "the ask", |it| it.shows("r reply"));
        press(console, "r", "the composer", |it| it.shows("8192 bytes"));
        if !console.shows(text) {
            press(console, text, "the text", |it| it.shows(text));
        }
        press(console, "\r", "it taken, or refused", |it| taken(it) || refused(it));
        let is_taken = taken(console);
        if !is_taken {
            press(console, "\u{1b}", "the draft", |it| it.shows("Draft"));
        }
        press(console, "\u{1b}", "the list", |it| it.shows("┌ Leads"));
        if is_taken {
            return;
        }
    }
    panic!("{text} was refused three times");
}

fn broadcast(console: &mut Harness, text: &str) {
    press(console, "/", "the filter", |it| it.shows("Leads /"));
    // Every name has one.
    press(console, "/", "it", |it| it.shows("/ /"));
    press(console, "\r", "it kept", |it| it.shows("b broadcast"));
    press(console, "b", "to whom", |it| it.shows("Broadcast to "));
    press(console, text, "the text", |it| it.shows(text));
    press(console, "\r", "the question", |it| it.shows("Send it to"));
    press(console, "y", "all of it sent", |it| it.shows(" sent ─") && !it.shows("not sent"));
    press(console, "\u{1b}", "the list", |it| it.shows("┌ Leads"));
    press(console, "\u{1b}", "all leads", |it| !it.shows("Leads /"));
}

/// Also where something is queued still: the next console sends it.
fn quit(mut console: Harness) -> i32 {
    let pid = console.pid().as_raw_pid();
    press(&mut console, "q", "the end or a question", |it| {
        it.shows("Quit?") || !it.screen.screen().alternate_screen()
    });
    if console.shows("Quit?") {
        press(&mut console, "y", "the end", |it| !it.screen.screen().alternate_screen());
    }
    assert!(console.finish().success());
    pid
}

#[test]
#[ignore = "takes minutes"]
fn after_an_hour_journal_sessions_and_screen_agree() {
    let home = home();
    let served = Served::start(home.path(), &["--speed", "30"]);
    let environment = |name: &str| {
        let found = served.environment.iter().find(|(known, _)| known == name);
        found.unwrap().1.clone()
    };
    let (agents, state) = (environment("PI_CODING_AGENT_DIR"), environment("HEADMAN_STATE_DIR"));
    let began = Instant::now();
    let mut console = chief(home.path(), &served);
    let answers: Vec<String> = (0..ANSWERS).map(|nth| format!("Answer number {nth:02}.")).collect();
    let notes: Vec<String> = (0..BROADCASTS).map(|nth| format!("Note {nth} to everybody.")).collect();
    for (nth, text) in answers.iter().enumerate() {
        match nth {
            // Two that hand over to another that waits.
            5 | 10 => {
                let heir = chief(home.path(), &served);
                let of_the_other = format!("(process {})", quit(std::mem::replace(&mut console, heir)));
                console.wait_for("to be Chief itself", |it| {
                    it.shows("● chief since") && !it.shows(&of_the_other)
                });
            }
            // One that crashes.
            15 => {
                kill_process(console.pid(), Signal::KILL).unwrap();
                console.wait_for_exit();
                console = chief(home.path(), &served);
            }
            4 | 9 | 14 => broadcast(&mut console, &notes[nth / 5]),
            _ => {}
        }
        answer(&mut console, text);
    }
    let journal = || -> Vec<Value> {
        let lines = texts(&state, ".jsonl").concat();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    // By the text of a message, its ids; and of each id the last fate.
    let known = |lines: &[Value]| {
        let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut fates: BTreeMap<String, String> = BTreeMap::new();
        for line in lines {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            match text("kind").as_str() {
                "sent" | "requeued" => {
                    if line["old"].is_string() {
                        fates.insert(text("old"), "again".to_owned());
                    }
                    let record: Value = serde_json::from_str(&text("record")).unwrap();
                    sent.entry(record["text"].as_str().unwrap().to_owned()).or_default().push(text("id"));
                }
                "fate" => {
                    fates.insert(text("id"), text("fate"));
                }
                _ => {}
            }
        }
        (sent, fates)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let (sent, fates) = loop {
        let (sent, fates) = known(&journal());
        let is_open = |id: &String| {
            !matches!(fates.get(id).map(String::as_str), Some("delivered" | "answered" | "again"))
        };
        match sent.values().flatten().find(|id| is_open(id)) {
            None => break (sent, fates),
            Some(id) => {
                let lines = texts(&state, ".jsonl").concat();
                let of_it: Vec<&str> = lines.lines().filter(|line| line.contains(id.as_str())).collect();
                assert!(Instant::now() < deadline, "{of_it:#?}\n{}", console.screen.screen().contents());
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let sessions = texts(&agents, ".jsonl");
    let holding = |text: &str| {
        let lines = sessions.iter().map(|session| {
            session.lines().filter(|line| line.contains("\"custom_message\"") && line.contains(text)).count()
        });
        lines.filter(|count| *count > 0).collect::<Vec<_>>()
    };
    for text in &answers {
        assert_eq!(holding(text), [1], "{text}");
        assert_eq!(
            sent[text].iter().filter(|id| fates[*id] == "answered").count(),
            1,
            "{text}: {:?}",
            sent[text]
        );
    }
    for text in &notes {
        let ids = &sent[text];
        assert!(
            ids.len() >= 7 && holding(text).iter().all(|count| *count == 1),
            "{text}: {:?}",
            holding(text)
        );
        assert_eq!(holding(text).len(), ids.iter().filter(|id| fates[*id] == "delivered").count(), "{text}");
    }
    // The screen of a console that was not there says the same of each lead.
    quit(console);
    let mut console = chief(home.path(), &served);
    // All of them ask, and so none moves in the list any more.
    console.wait_for("all to ask", |it| it.shows("7 leads") && it.shows("7 asks"));
    press(&mut console, "\u{1b}[H", "the first", |it| {
        it.screen.screen().rows(0, 4).nth(3).is_some_and(|row| row.contains('▸'))
    });
    let said: Vec<&String> = answers.iter().chain(&notes).collect();
    let mut shown = 0;
    let detail = |it: &Harness| it.screen.screen().rows(54, 66).collect::<Vec<_>>();
    for nth in 0..7 {
        // A frame may come in parts.
        while let Ok(bytes) = console.output.recv_timeout(Duration::from_millis(200)) {
            console.screen.process(&bytes);
        }
        let rows = detail(&console);
        for row in &rows {
            let Some(text) = said.iter().find(|text| row.contains(text.as_str())) else { continue };
            let fate = row.trim_start_matches(['│', ' ']).split(' ').next().unwrap();
            assert!(sent[*text].iter().any(|id| fates[id] == fate), "{row}");
            shown += 1;
        }
        if nth < 6 {
            press(&mut console, "j", "the next lead", |it| detail(it)[1] != rows[1]);
        }
    }
    let answered = fates.values().filter(|fate| *fate == "answered").count();
    println!(
        "{} s: {} messages journalled, {answered} answered, {shown} rows on the screen, {} in sessions",
        began.elapsed().as_secs(),
        sent.values().map(Vec::len).sum::<usize>(),
        answers.iter().chain(&notes).map(|text| holding(text).len()).sum::<usize>(),
    );
    assert_eq!(answered, ANSWERS);
    assert!(shown > 7, "{shown}");
}
