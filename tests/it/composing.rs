//! Writing with files and snippets: what is shown, what goes out, and what stays.

use std::collections::BTreeMap;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use headman::chief::attach::{Attached, FileArgument, Form, Why};
use headman::chief::service::Request;
use headman::chief::staff::{Letter, Office, Reply};
use headman::console::app::{App, Effect};
use headman::console::drafts::{Draft, DraftKey};
use headman::console::files::look::Look;
use headman::console::files::{Answer, Place, Question};
use headman::console::snippets::Snippets;
use headman::contract::{Kind, Timestamp, Untrusted};
use headman::disk::AgentDir;
use headman::fact::{Done, Fact, Fate, Now, Outcome, Sent};

use crate::screens::{START, app, at, press, session, shown, uuid};

/// A console that writes, and the disk beside it.
struct Desk {
    app: App,
    dir: tempfile::TempDir,
    office: Office,
    /// What it asked for besides files.
    effects: Vec<Effect>,
}

impl Desk {
    /// It writes a reply; paths begin in a directory with a few files in it.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        for (name, content) in [
            ("docs/plan one.md", &b"First this, then that.\n"[..]),
            ("data.bin", b"\0\x01"),
            ("draft.txt", b"A line.\n"),
            ("large.log", &[b'x'; 12_345]),
        ] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let agent_dir = AgentDir::resolve(Some(dir.path().join(".agent").as_os_str()), dir.path());
        let runtime = agent_dir.runtime("/run/h.sock".as_ref());
        let office = Office::new(agent_dir, runtime, session("chief"), Instant::now());
        let mut app = app();
        app.settings.place = Place { from: dir.path().to_owned(), home: None };
        let mut desk = Self { app, dir, office, effects: Vec::new() };
        desk.type_text("nr", 1);
        desk
    }

    /// What it asks of files is answered, until it asks nothing more.
    fn answer(&mut self, now: Now) {
        loop {
            let mut asked = Vec::new();
            for effect in self.app.take_effects() {
                match effect {
                    Effect::Find(question) => asked.push(question),
                    other => self.effects.push(other),
                }
            }
            if asked.is_empty() {
                return;
            }
            for question in asked {
                self.app.found(question.answer(&self.office), now);
            }
        }
    }

    fn type_text(&mut self, text: &str, seconds: u64) {
        press(&mut self.app, text, at(seconds));
        self.answer(at(seconds));
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers, seconds: u64) {
        self.app.key(KeyEvent::new(code, modifiers), at(seconds));
        self.answer(at(seconds));
    }

    fn screen(&self) -> String {
        shown(&self.app, 100, 30, at(9)).replace(self.dir.path().to_str().unwrap(), "/here")
    }

    fn shows(&self, text: &str) -> bool {
        self.screen().contains(text)
    }

    /// The last reply that was handed to the service.
    fn reply(&mut self) -> Option<(u64, Reply)> {
        let mut replies = std::mem::take(&mut self.effects).into_iter().filter_map(|effect| match effect {
            Effect::Request(Request::Reply { ticket, reply }) => Some((ticket, reply)),
            _ => None,
        });
        replies.next_back()
    }

    fn file(&self, name: &str) -> FileArgument {
        FileArgument::new(self.dir.path().join(name), self.dir.path())
    }
}

fn snapshot(name: &str, app: &App) {
    for (width, height) in [(120, 40), (80, 24), (60, 30)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), shown(app, width, height, at(9)));
    }
}

#[test]
fn paths_listed_while_one_is_typed() {
    let mut desk = Desk::new();
    desk.type_text("See @d", 2);
    desk.key(KeyCode::Down, KeyModifiers::NONE, 3);
    snapshot("paths", &desk.app);
}

#[test]
fn files_that_go_along_and_a_record_that_is_nearly_full() {
    let mut desk = Desk::new();
    let text = "See @draft.txt and @large.log, @nobody; @data.bin";
    press(&mut desk.app, text, at(2));
    let attached = |name: &str, bytes, form| Attached { name: name.into(), bytes, form };
    let look = Look {
        text: text.to_owned(),
        files: Vec::new(),
        attached: vec![
            attached("/work/api/draft.txt", 7_100, Form::Inline),
            attached(
                "/work/api/a/very/deep/directory/with/a/long/name/large.log",
                12_345,
                Form::Reference(Why::NoRoom),
            ),
            attached("/work/api/data.\u{202e}bin\u{1b}[2J", 2, Form::Reference(Why::NotText)),
        ],
        only_text: vec!["nobody".to_owned()],
        bytes: Some(7_801),
        limit: 8_192,
        problem: None,
    };
    desk.app.take_effects();
    let key = DraftKey { session: session("s-auth"), ask: Some(uuid(100)) };
    desk.app.found(Answer::Look(key.clone(), look.clone()), at(3));
    snapshot("attached", &desk.app);
    // One more character, until its files are seen: as many bytes more, and said to be so.
    press(&mut desk.app, "!", at(4));
    assert!(
        desk.shows("Reply 7802 / 8192 bytes as sent \u{2026}") && desk.shows("390 left"),
        "{}",
        desk.screen()
    );
    let problem = Some("the record would take 8200 bytes, 8192 are allowed. Shorten the text".to_owned());
    let look = Look { text: format!("{text}!"), bytes: Some(8_200), problem, ..look };
    desk.app.found(Answer::Look(key, look), at(5));
    assert!(desk.shows("8 too many") && desk.shows("8200 bytes, 8192 are allowed"), "{}", desk.screen());
}

#[test]
fn a_path_is_taken_by_tab_and_never_by_enter() {
    let mut desk = Desk::new();
    desk.type_text("See @do", 2);
    assert!(desk.shows("docs/") && desk.shows("tab take"), "{}", desk.screen());
    desk.type_text("\t", 3);
    assert!(desk.shows("See @docs/") && desk.shows("plan one.md"), "{}", desk.screen());
    desk.type_text("\t", 4);
    assert!(desk.shows("See @\"docs/plan one.md\"") && !desk.shows("tab take"), "{}", desk.screen());
    desk.type_text("and @", 5);
    for _ in 0..2 {
        desk.key(KeyCode::Down, KeyModifiers::NONE, 6);
    }
    desk.key(KeyCode::Up, KeyModifiers::NONE, 6);
    desk.key(KeyCode::Char('n'), KeyModifiers::CONTROL, 6);
    desk.type_text("\t", 7);
    assert!(desk.shows("one.md\" and @draft.txt"), "{}", desk.screen());
    assert!(
        desk.shows("+ /here/docs/plan one.md") && desk.shows("23 B, with its content"),
        "{}",
        desk.screen()
    );
    // Undone: the path goes, what was typed stays.
    desk.key(KeyCode::Char('u'), KeyModifiers::ALT, 8);
    assert!(desk.shows("and @") && !desk.shows("@draft.txt"), "{}", desk.screen());
    desk.key(KeyCode::Esc, KeyModifiers::NONE, 8);
    assert!(desk.shows("and @") && !desk.shows("tab take") && desk.shows("enter send"), "{}", desk.screen());
    desk.type_text("large", 9);
    assert!(!desk.shows("tab take"), "a closed list stays closed for that path");
    desk.type_text(" @large", 10);
    assert!(desk.shows("tab take"), "another path has its own");
    desk.type_text("\n", 11);
    let (_, reply) = desk.reply().unwrap();
    assert_eq!(reply.text, "See @\"docs/plan one.md\" and @large @large");
    assert_eq!(reply.files, [desk.file("docs/plan one.md")], "what names no file is text");
}

#[test]
fn a_tab_amid_a_paste_is_text_and_what_can_not_go_along_is_not_taken() {
    let mut desk = Desk::new();
    let _socket = std::os::unix::net::UnixListener::bind(desk.dir.path().join("sock")).unwrap();
    // As keys, all at once.
    for character in "@so".chars() {
        desk.key(KeyCode::Char(character), KeyModifiers::NONE, 2);
    }
    desk.key(KeyCode::Tab, KeyModifiers::NONE, 2);
    desk.key(KeyCode::Char('x'), KeyModifiers::NONE, 2);
    desk.type_text("\n", 3);
    assert_eq!(desk.reply().unwrap().1.text, "@so\tx");
    let mut desk = Desk::new();
    let _socket = std::os::unix::net::UnixListener::bind(desk.dir.path().join("sock")).unwrap();
    desk.type_text("@so", 2);
    assert!(desk.shows("can't go along: it is a socket"), "{}", desk.screen());
    desk.type_text("\t", 3);
    assert!(desk.shows("It can't be attached: it is a socket"), "{}", desk.screen());
    // Written out all the same: refused by name, the draft kept, at once and at every try.
    desk.type_text("ck", 4);
    for seconds in [5, 6] {
        desk.type_text("\n", seconds);
        assert!(desk.reply().is_none());
        assert!(desk.shows("Not sent, the draft is kept: can't attach /here/sock"), "{}", desk.screen());
    }
    std::fs::remove_file(desk.dir.path().join("sock")).unwrap();
    std::fs::write(desk.dir.path().join("sock"), "now a file").unwrap();
    desk.type_text("\n", 7);
    assert_eq!(desk.reply().unwrap().1.files, [desk.file("sock")], "seen anew");
}

#[test]
fn what_is_sent_waits_for_its_files_and_is_called_off_by_a_key() {
    for call_off in ["x", "\u{1b}"] {
        let mut desk = Desk::new();
        desk.type_text("See @draft.txt", 2);
        press(&mut desk.app, "\n", at(3));
        assert!(desk.shows("Looking at the files"), "{}", desk.screen());
        press(&mut desk.app, call_off, at(4));
        assert!(!desk.shows("Looking at the files") && desk.shows("8192 bytes"), "{}", desk.screen());
        desk.answer(at(5));
        assert!(desk.reply().is_none(), "{call_off:?}");
        desk.type_text("\n", 6);
        let (ticket, reply) = desk.reply().unwrap();
        assert_eq!(reply.files.len(), usize::from(call_off != "x"), "`draft.txtx` is none");
        let refused =
            Outcome { ticket, result: Err("can't attach /here/draft.txt: it is not there".to_owned()) };
        desk.app.facts(vec![Fact::Outcome(refused)], at(7));
        assert!(desk.shows("Not sent, the draft is kept: can't attach") && desk.shows("See @draft.txt"));
    }
}

#[test]
fn a_draft_keeps_where_its_paths_begin_and_goes_once_it_arrived_with_its_files() {
    let mut desk = Desk::new();
    desk.type_text("See @draft.txt", 2);
    let saved = |desk: &mut Desk| -> Draft {
        let mut drafts = std::mem::take(&mut desk.effects).into_iter().filter_map(|effect| match effect {
            Effect::SaveDraft(draft) => Some(draft),
            _ => None,
        });
        drafts.next_back().unwrap()
    };
    let draft = saved(&mut desk);
    assert_eq!(draft.from.as_deref(), Some(desk.dir.path()));
    let kept = desk.dir.path().join("kept");
    headman::console::drafts::save(&kept, &draft).unwrap();
    assert_eq!(headman::console::drafts::load_all(&kept).drafts, [draft]);
    // Taken up where one stands elsewhere: by the editor, say, of a console started there.
    desk.type_text("\u{1b}\u{1b}", 3);
    desk.app.settings.place.from = "/elsewhere".into();
    desk.type_text("r", 4);
    assert!(desk.shows("+ /here/draft.txt"), "{}", desk.screen());
    desk.type_text("\n", 5);
    let (ticket, reply) = desk.reply().unwrap();
    assert_eq!(reply.files, [desk.file("draft.txt")]);
    let lead = session("s-auth");
    let rendered = desk.office.render(Kind::ChiefReply, &lead, &reply.text, &reply.files).unwrap();
    let sent = |fate| {
        Fact::Sent(Sent {
            id: uuid(500),
            kind: Kind::ChiefReply,
            lead: lead.clone(),
            ask: Some(uuid(100)),
            text: rendered.text.clone(),
            at: Timestamp::from_millis(START + 5_000),
            fate,
        })
    };
    let outcome = Outcome { ticket, result: Ok(Done::Sent(uuid(500))) };
    desk.app.facts(vec![sent(Fate::Queued), Fact::Outcome(outcome)], at(6));
    let key = DraftKey { session: session("s-auth"), ask: Some(uuid(100)) };
    assert!(desk.app.keeps(&key));
    desk.app.facts(vec![sent(Fate::Taken)], at(7));
    assert!(!desk.app.keeps(&key));
    // After sending, straight to the next ask's field.
    desk.type_text("n", 8);
    assert!(desk.shows("checkout") && desk.shows("8192 bytes") && desk.shows("coupon"), "{}", desk.screen());
    // A text without files says nothing of directories.
    desk.type_text("Yes", 9);
    assert_eq!(saved(&mut desk).from, None);
}

#[test]
fn what_was_asked_of_files_for_another_text_is_not_taken_for_this_one() {
    let mut desk = Desk::new();
    press(&mut desk.app, "See @d", at(2));
    let asked: Vec<Question> = (desk.app.take_effects().into_iter())
        .filter_map(|effect| if let Effect::Find(question) = effect { Some(question) } else { None })
        .collect();
    assert!(
        matches!(asked[..], [Question::List(..), Question::Look(..)]),
        "one of a kind at a time: {asked:?}"
    );
    press(&mut desk.app, "\u{1b}\u{1b}", at(3));
    press(&mut desk.app, "nr", at(4));
    let before = desk.screen();
    for question in asked {
        desk.app.found(question.answer(&desk.office), at(5));
    }
    assert_eq!(desk.screen(), before);
    desk.answer(at(6));
    desk.type_text("@do", 7);
    assert!(desk.shows("docs/"), "it asks again: {}", desk.screen());
}

#[test]
fn a_snippet_is_inserted_as_if_pasted_and_the_help_shows_it() {
    let mut desk = Desk::new();
    let texts = [("1", "Go on,\r\nplease."), ("9", "a\u{1b}]0;x\u{7}b\u{202e}c")];
    let texts: BTreeMap<String, String> =
        texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    desk.app.settings.snippets = Snippets::new(&texts).unwrap();
    desk.key(KeyCode::Char('1'), KeyModifiers::ALT, 2);
    assert!(desk.shows("Go on,") && desk.shows("please."), "{}", desk.screen());
    desk.key(KeyCode::Char('9'), KeyModifiers::ALT, 3);
    assert!(desk.shows("Control characters were left out") && desk.shows("a]0;xb"), "{}", desk.screen());
    desk.key(KeyCode::Char('2'), KeyModifiers::ALT, 4);
    assert!(desk.shows("There is no snippet 2"), "{}", desk.screen());
    desk.type_text("\n", 5);
    assert_eq!(desk.reply().unwrap().1.text, Untrusted::from("Go on,\nplease.a]0;xb\u{202e}c"));
    desk.key(KeyCode::Char('1'), KeyModifiers::ALT, 6);
    desk.type_text("\u{1b}\u{1b}?", 7);
    desk.type_text("/insert", 8);
    assert!(desk.shows("alt-1") && desk.shows("Insert: Go on,") && !desk.shows("alt-2"), "{}", desk.screen());
    assert!(!desk.screen().contains(['\u{1b}', '\u{202e}', '\u{7}']));
}

#[test]
fn a_message_has_files_too() {
    let mut desk = Desk::new();
    desk.type_text("\u{1b}\u{1b}mSee @draft.txt", 2);
    desk.type_text("\n", 3);
    let letters: Vec<Letter> = std::mem::take(&mut desk.effects)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Request(Request::Message { letter, .. }) => Some(letter),
            _ => None,
        })
        .collect();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].files, [desk.file("draft.txt")]);
}
