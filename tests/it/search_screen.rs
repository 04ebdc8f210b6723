//! The search in sessions on the screen: what is drawn, what keys do, and what is searched meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::console::app::{App, Effect};
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{SessionId, Timestamp, Untrusted};
use headman::fact::{self, Fact, FactReceiver, MAX_HITS, SearchQuery, Searched};
use headman::pi::discover::{SessionDirs, Wanted};
use headman::pi::growth::Branch;
use headman::pi::search::{Hit, Progress, Role};
use headman::source;
use tokio::sync::watch;

use crate::demo_console::{self, Served, headman};
use crate::pty::Harness;
use crate::screens::{START, app, app_in, at, press, session, shown, theme};
use crate::support::DEADLINE;

const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}evil\u{200b}\ttoken <b>";

/// A hit of `lead` at the first token in `text`.
fn hit(lead: &str, ago: u64, role: Role, tool: Option<&str>, text: &str) -> Arc<Hit> {
    let start = text.to_lowercase().find("token").unwrap();
    Arc::new(Hit {
        session: session(lead),
        file: Path::new("/s").join(lead).into(),
        offset: 4711,
        entry: Some("00000001".into()),
        at: Some(Timestamp::from_millis(START - ago * 1000)),
        role,
        tool: tool.map(Untrusted::from),
        text: text.to_owned(),
        cut: (false, false),
        place: start..start + 5,
        places: text.to_lowercase().matches("token").count(),
    })
}

fn some_hits() -> Vec<Arc<Hit>> {
    let long = (1..=60).map(|nth| format!("line {nth} of the test log")).collect::<Vec<_>>().join("\n");
    vec![
        hit(
            "s-auth",
            20,
            Role::Assistant,
            None,
            "I reject expired refresh tokens.\n\nThe token check stands in two places; both now tell an expired Token apart from one that was never issued.",
        ),
        hit(
            "s-auth",
            95,
            Role::ToolCall,
            Some("bash"),
            "cargo test --workspace -- token_rotation --nocapture",
        ),
        hit("s-auth", 90, Role::ToolResult, Some("bash"), &format!("{long}\n{HOSTILE}\nafter it")),
        hit("s-checkout", 3_700, Role::User, None, "Mind the token budget."),
        hit("s-gone", 90_000, Role::Summary, None, "What was said of tokens before."),
    ]
}

fn told(app: &App, hits: Vec<Arc<Hit>>) -> Searched {
    let number = app.searched_for().unwrap().number;
    let progress = Progress { files: 5, searched: 5, bytes: 340_000_000, ..Progress::default() };
    Searched { number, hits, progress, is_done: true, ..Searched::default() }
}

fn tell(app: &mut App, searched: Searched) {
    app.facts(vec![Fact::Searched(Arc::new(searched))], at(0));
}

/// A search for `token` that found something.
fn searched() -> App {
    let mut app = app();
    press(&mut app, "g/token", at(0));
    let searched = told(&app, some_hits());
    tell(&mut app, searched);
    app
}

#[test]
fn the_screen() {
    let mut app = app();
    press(&mut app, "g/", at(0));
    insta::assert_snapshot!("search_empty_80x24", shown(&app, 80, 24, at(1)));
    let app = searched();
    for (width, height) in [(120, 40), (80, 24), (60, 30), (40, 15)] {
        insta::assert_snapshot!(format!("search_{width}x{height}"), shown(&app, width, height, at(1)));
    }
    // The third text is longer than the screen: the place is brought in sight.
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        let mut app = searched();
        press(&mut app, "\njj\t", at(1));
        let screen = shown(&app, width, height, at(1));
        insta::assert_snapshot!(format!("search_long_{width}x{height}"), screen);
    }
}

#[test]
fn what_stands_there_while_it_searches_and_when_nothing_is_found() {
    let mut app = app();
    press(&mut app, "g/token", at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("Searching …"));
    let progress = Progress { files: 30, searched: 12, bytes: 340_000_001, ..Progress::default() };
    let mut under_way = Searched { progress, is_done: false, ..told(&app, vec![]) };
    tell(&mut app, under_way.clone());
    let screen = shown(&app, 80, 24, at(0));
    assert!(screen.contains("Searched 12 of 30 files") && screen.contains("0 found"), "{screen}");
    assert!(shown(&app, 120, 24, at(0)).contains("Searched 12 of 30 files, 341 MB …"));
    under_way.troubles =
        vec!["/s/x.jsonl: the session file is a pipe, not a regular file. Nothing of it is read".to_owned()];
    under_way.is_done = true;
    tell(&mut app, under_way);
    let screen = shown(&app, 120, 24, at(0));
    assert!(
        screen.contains("Nothing is found.") && screen.contains("/s/x.jsonl: the session file is a pipe"),
        "{screen}"
    );
    let many = vec![some_hits()[0].clone(); MAX_HITS];
    let full = Searched { is_full: true, ..told(&app, many) };
    tell(&mut app, full);
    assert!(shown(&app, 80, 24, at(0)).contains("the first 500"));
    // Without leads there is nothing to search.
    let mut app = app_in(theme());
    app.facts(vec![Fact::Inventory(Arc::default())], at(0));
    press(&mut app, "g/x", at(0));
    assert!(shown(&app, 80, 24, at(0)).contains("There are no leads."));
}

#[test]
fn each_change_of_the_text_is_a_query_of_its_own_and_older_answers_are_none() {
    let mut app = app();
    assert_eq!(app.searched_for(), None);
    press(&mut app, "g/", at(0));
    assert_eq!(app.searched_for(), None, "nothing is searched for yet");
    press(&mut app, "toke", at(0));
    let first = app.searched_for().unwrap().clone();
    assert_eq!(first.text, "toke");
    let wanted: Vec<SessionId> = first.wanted.iter().map(|it| it.session.clone()).collect();
    assert_eq!(wanted.len(), 5);
    let older = told(&app, some_hits());
    press(&mut app, "n", at(0));
    let second = app.searched_for().unwrap().clone();
    assert!(second.number != first.number && second.text == "token");
    tell(&mut app, older);
    assert!(!shown(&app, 120, 40, at(0)).contains("I reject"));
    // Moving about and what else becomes known does not search anew.
    press(&mut app, "\njk?\u{1b}", at(1));
    app.facts(vec![Fact::Inventory(Arc::default())], at(1));
    assert_eq!(app.searched_for(), Some(&second));
    press(&mut app, "/", at(2));
    app.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL), at(2));
    assert_eq!(app.searched_for(), None, "blank");
    app.paste("to\nken", at(2));
    assert_eq!(app.searched_for().unwrap().text, "token");
    press(&mut app, "\u{1b}\u{1b}", at(3));
    assert_eq!((app.searched_for(), app.layers.len()), (None, 0), "closed, nothing is searched for");
}

#[test]
fn it_opens_closes_copies_and_goes_to_the_lead_of_what_was_found() {
    let mut app = searched();
    press(&mut app, "\njj", at(1));
    app.take_effects();
    press(&mut app, "y", at(1));
    let copied = app.take_effects().into_iter().find_map(|it| match it {
        Effect::Copy(text) => Some(text),
        _ => None,
    });
    assert_eq!(copied, Some(some_hits()[2].text.as_str().into()));
    // One layer after the other: the text, the list.
    press(&mut app, "\t\u{1b}", at(1));
    assert_eq!(app.layers.len(), 1);
    press(&mut app, "j\n", at(2));
    // The transcript of that file, at that entry, and from there back to the list.
    let hits = some_hits();
    let hit = hits.iter().find(|hit| hit.session == session("s-checkout")).unwrap();
    let wanted = app.wanted().unwrap();
    assert_eq!(wanted.file.path, hit.file.to_str().unwrap());
    assert_eq!((&wanted.file.session, wanted.branch), (&hit.session, Branch::Through(hit.offset)));
    assert_eq!((app.layers.len(), app.selected()), (2, Some(&session("s-checkout"))));
    press(&mut app, "\u{1b}", at(2));
    assert_eq!((app.layers.len(), app.wanted().is_none()), (1, true));
    press(&mut app, "\u{1b}", at(2));
    press(&mut app, "g/\u{1b}", at(4));
    assert_eq!(app.layers.len(), 0);
    press(&mut app, "?", at(5));
    let help = shown(&app, 120, 90, at(5));
    let line = help.lines().find(|line| line.contains("Search what was said in the sessions")).unwrap();
    assert!(line.contains("  g /  "), "{line}");
}

#[test]
fn nothing_breaks_at_any_size_with_hostile_texts() {
    let mono = Theme::load(None, GlyphChoice::Ascii, |_| None).unwrap();
    for theme in [theme(), mono] {
        let is_ascii = theme.ascii_text();
        let mut app = app_in(theme);
        press(&mut app, "g/token", at(0));
        let mut one = (*hit("s-auth", 0, Role::ToolResult, Some(HOSTILE), &HOSTILE.repeat(90))).clone();
        one.cut = (true, true);
        // From the future, and without any time.
        one.at = Some(Timestamp::from_millis(START * 2));
        let mut hits = Vec::from_iter(std::iter::repeat_n(Arc::new(one.clone()), 80));
        one.at = None;
        hits.push(Arc::new(one));
        let mut found = told(&app, hits);
        found.troubles = vec![HOSTILE.replace('\t', " "); 20];
        tell(&mut app, found);
        for keys in ["", "\n", "G", "\t", "G"] {
            press(&mut app, keys, at(1));
            for (width, height) in
                [(1, 1), (19, 6), (20, 6), (21, 7), (40, 15), (49, 9), (50, 12), (79, 24), (80, 7), (200, 50)]
            {
                let screen = shown(&app, width, height, at(9));
                let bad =
                    screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
                assert_eq!(bad, None, "{width}x{height}: {screen:?}");
                assert!(!is_ascii || screen.is_ascii(), "{screen}");
            }
        }
    }
}

fn session_file(dir: &Path, name: &str, entries: usize, text: &str) -> PathBuf {
    let path = dir.join(name);
    let mut content = format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{name}\",\"cwd\":\"/w\"}}\n");
    for nth in 0..entries {
        content += &format!(
            "{{\"type\":\"message\",\"id\":\"{nth:08x}\",\"parentId\":null,\"message\":{{\"role\":\"user\",\"content\":\"{text} {nth}\"}}}}\n"
        );
    }
    std::fs::write(&path, content).unwrap();
    path
}

async fn next(facts: &FactReceiver, what: &str, wanted: impl Fn(&Searched) -> bool) -> Arc<Searched> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(Fact::Searched(searched)) = facts.take().pop()
            && wanted(&searched)
        {
            return searched;
        }
        let left = end.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "not within {DEADLINE:?}: {what}");
        let _ = tokio::time::timeout(left.min(Duration::from_millis(50)), facts.ready()).await;
    }
}

#[tokio::test]
async fn the_source_searches_what_it_is_told_last_and_ends_at_another_query() {
    let dir = tempfile::tempdir().unwrap();
    let file = session_file(dir.path(), "one", 3, "needle");
    let dirs =
        SessionDirs { agent_dir: dir.path().to_owned(), session_dir: None, home: dir.path().to_owned() };
    let (sender, facts) = fact::channel();
    let (queries, asked) = watch::channel(None);
    let task = tokio::spawn(source::search::run(dirs, sender, asked));
    let wanted = |name: &str, file: Option<PathBuf>| Wanted { session: session(name), file, cwd: None };
    let ask = |number, text: &str, wanted: Vec<Wanted>| {
        queries.send_replace(Some(Arc::new(SearchQuery { number, text: text.to_owned(), wanted })));
    };
    let leads = vec![wanted("one", Some(file.clone())), wanted("none", None)];
    ask(1, "need", leads.clone());
    // It is typed on: what was begun is of no interest.
    ask(2, "needle", leads);
    let found = next(&facts, "what it found", |it| it.is_done).await;
    assert_eq!((found.number, found.hits.len(), found.progress.searched), (2, 3, 1));
    assert!(found.hits[0].text.ends_with('2'), "the newest first");
    assert_eq!(found.troubles, ["There is no file of session none yet"]);
    // At most so many, and then it is over.
    let many = session_file(dir.path(), "many", 2 * MAX_HITS, "needle");
    ask(3, "needle", vec![wanted("many", Some(many))]);
    let found = next(&facts, "as many as are kept", |it| it.is_done).await;
    assert_eq!((found.number, found.hits.len(), found.is_full), (3, MAX_HITS, true));
    // One is under way as another comes.
    let big = session_file(dir.path(), "big", 400_000, "nothing of interest stands here, again and again");
    ask(4, "absent", vec![wanted("big", Some(big))]);
    let begun = next(&facts, "that it began", |it| it.number == 4).await;
    ask(5, "needle", vec![wanted("one", Some(file))]);
    let found = next(&facts, "the other one", |it| it.number == 5 && it.is_done).await;
    assert_eq!(found.hits.len(), 3);
    assert!(!begun.is_done, "it was ended, not waited for: {:?}", begun.progress);
    drop(queries);
    tokio::time::timeout(DEADLINE, task).await.expect("it ends with the screen").unwrap();
}

#[test]
fn a_person_searches_and_reads_what_was_found() {
    let home = demo_console::home();
    let served = Served::start(home.path(), &["--speed", "0"]);
    let mut terminal = Harness::start_in(headman(home.path(), &[], &served.environment), 120, 40);
    terminal.wait_for("the leads", |it| it.shows("NEEDS YOU"));
    demo_console::press(&mut terminal, "g", "anything", |_| true);
    demo_console::press(&mut terminal, "/", "the search", |it| it.shows("Search in sessions"));
    demo_console::press(&mut terminal, "a", "what is found", |it| it.shows(" found") && it.shows("Searched"));
    terminal.wait_for("hits", |it| !it.shows(" 0 found") && !it.shows("Searching"));
    demo_console::press(&mut terminal, "\r", "the list", |it| it.shows("enter open"));
    demo_console::press(&mut terminal, "\r", "its place in the transcript", |it| it.shows("tool calls"));
    demo_console::press(&mut terminal, "\u{1b}", "the list again", |it| it.shows("enter open"));
    demo_console::press(&mut terminal, "q", "the leads again", |it| !it.shows("Search in sessions"));
    demo_console::press(&mut terminal, "q", "anything", |_| true);
    assert!(terminal.finish().success());
    terminal.assert_given_back();
}
