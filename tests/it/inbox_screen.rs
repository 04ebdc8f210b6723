//! The inbox on the screen, over a real journal: all of it can be reached, searched and read whole,
//! while only what is in sight is kept.

use std::time::Instant;

use headman::chief::inquiry::Which;
use headman::chief::journal::{Event, Journal};
use headman::chief::service::Request;
use headman::chief::staff::Office;
use headman::console::app::{App, Effect};
use headman::console::theme::{GlyphChoice, Theme};
use headman::contract::{Kind, Message, Timestamp, Uuid};
use headman::disk::AgentDir;
use headman::fact::{Answer, Answered, Fact, Found, Inquiry, Mail, Needle, Now, Query};

use crate::screens::{LEADS, START, app, app_in, at, inventory, press, records, session, shown, uuid};

/// A console over a journal, without a service: what the inbox asks is answered here.
pub(crate) struct Desk {
    pub(crate) app: App,
    office: Office,
    /// Everything that was asked.
    asked: Vec<Inquiry>,
    /// What else was wanted.
    requests: Vec<Request>,
    _dir: tempfile::TempDir,
}

fn letter(nth: u64, lead: &str, kind: Kind, text: &str) -> Message {
    Message {
        id: Uuid::random(),
        lease: uuid(900),
        kind,
        from: session(lead),
        to: session("chief"),
        lead: session(lead),
        ask: kind.has_ask().then(|| uuid(100)),
        text: text.into(),
        created_at: Timestamp::from_millis(START + nth),
    }
}

impl Desk {
    pub(crate) fn new(app: App, letters: &[(Message, Option<&str>)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::resolve(Some(dir.path().as_os_str()), dir.path());
        let runtime = agent_dir.runtime("/run/h.sock".as_ref());
        let office = Office::new(agent_dir, runtime, session("chief"), Instant::now());
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let at_once = if letters.len() < 100 { 1 } else { 1_000 };
        for letters in letters.chunks(at_once) {
            let bytes: Vec<Vec<u8>> = letters.iter().map(|(it, _)| it.to_bytes().unwrap()).collect();
            let events: Vec<Event<'_>> = (letters.iter().zip(&bytes))
                .map(|((message, refused), bytes)| Event::Received {
                    id: message.id,
                    bytes,
                    message: Some(message),
                    refused: *refused,
                })
                .collect();
            journal.append(&events, letters[0].0.created_at).unwrap();
        }
        *office.journal() = Some(journal);
        let mut desk = Self { app, office, asked: Vec::new(), requests: Vec::new(), _dir: dir };
        desk.tell(at(0));
        desk
    }

    /// What the service tells of the journal.
    fn tell(&mut self, now: Now) {
        let mail = self.office.journal().as_mut().unwrap().mail();
        self.app.facts(vec![Fact::Mail(mail)], now);
    }

    fn append(&mut self, event: &Event<'_>) {
        self.office
            .journal()
            .as_mut()
            .unwrap()
            .append(std::slice::from_ref(event), Timestamp::from_millis(START))
            .unwrap();
    }

    /// Answers one question; says whether there was one.
    fn answer(&mut self, now: Now) -> bool {
        let mut facts = Vec::new();
        for effect in self.app.take_effects() {
            match effect {
                Effect::Request(Request::Inquire { ticket, inquiry }) => {
                    let result = self.office.answer(&inquiry).map_err(|error| error.to_string());
                    self.asked.push(inquiry);
                    facts.push(Fact::Answered(Answered { ticket, result }));
                }
                Effect::Request(request) => self.requests.push(request),
                _ => {}
            }
        }
        let is_any = !facts.is_empty();
        self.app.facts(facts, now);
        is_any
    }

    pub(crate) fn press(&mut self, keys: &str, now: Now) {
        press(&mut self.app, keys, now);
        while self.answer(now) {}
    }

    fn screen(&self, width: u16, height: u16) -> String {
        shown(&self.app, width, height, at(300))
    }
}

const LONG: &str = "The migration of the address table is through. Of 41,310 rows 12 have no country, and I left \
    them as they are; they are listed in reports/no-country.csv. Everything else is in the new form, and the \
    old columns are still there until somebody says that they can go.\n\nOne thing to decide: the index over the \
    postal codes takes 2 GB. Without it a search takes longer: reports/index.md has 90 ms.";

fn letters() -> Vec<(Message, Option<&'static str>)> {
    let hostile = "late \u{1b}[2J\u{202e}evil";
    vec![
        (letter(1_000, "s-auth", Kind::LeadAsk, "Do we reject refresh tokens?"), None),
        (letter(2_000, "s-gone", Kind::LeadMessage, hostile), Some("it was written under an earlier lease")),
        (letter(120_000, "s-docs", Kind::LeadMessage, "The site is up, with the new search."), None),
        (letter(200_000, "s-auth", Kind::LeadMessage, LONG), None),
        (letter(230_000, "s-tf", Kind::LeadMessage, "Plan: 3 to add, 0 to destroy."), None),
    ]
}

fn desk() -> Desk {
    let mut desk = Desk::new(app(), &letters());
    desk.append(&Event::Read(&[1]));
    desk.tell(at(240));
    desk
}

fn snapshot(name: &str, desk: &Desk) {
    for (width, height) in [(120, 40), (80, 24), (60, 30), (40, 15), (20, 6)] {
        let screen = desk.screen(width, height);
        let bad = screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
        assert_eq!(bad, None, "{screen:?}");
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen);
    }
}

#[test]
fn it_opens_at_the_newest_unread_and_shows_each_letter_whole() {
    let mut desk = desk();
    desk.append(&Event::Read(&[5]));
    desk.tell(at(240));
    desk.press("i", at(240));
    // Nothing was marked by that, and nothing is cut.
    snapshot("inbox", &desk);
    assert!(desk.screen(120, 40).contains("reports/index.md"));
    assert!(desk.requests.iter().all(|request| !matches!(request, Request::Mark { .. })));
    let texts = desk.asked.iter().filter(|it| matches!(it, Inquiry::Text(4))).count();
    assert_eq!(texts, 1, "{:?}", desk.asked);
    desk.press("\n", at(241));
    assert!(
        matches!(desk.requests[..], [.., Request::Mark { which: Which::Letter(4), read: true, .. }]),
        "{:?}",
        desk.requests
    );
    snapshot("inbox_opened", &desk);
    // A short one is whole as it is, and is not asked for.
    desk.press("\u{1b}jj", at(242));
    assert!(desk.screen(120, 40).contains("Not verified: it was written under an earlier lease."));
    assert!(!desk.asked.iter().any(|it| matches!(it, Inquiry::Text(seq) if *seq != 4)), "{:?}", desk.asked);
    desk.press("i", at(243));
    assert!(desk.screen(80, 24).contains("NEEDS YOU"));
}

/// What a lead says stands first, in the list and beside it; a search goes through the files as well.
#[test]
fn what_is_said_stands_before_the_files_that_go_along() {
    let content = "The plan is long, and a needle is in it.\n".repeat(12);
    let files = format!("<file name=\"/w/plan.txt\" bytes=\"{}\">\n{content}\n</file>", content.len());
    let text = format!("{files}\n\nMessage:\nThe needle is in the plan.\nPlease read it.");
    let mut desk = Desk::new(app(), &[(letter(1_000, "s-docs", Kind::LeadMessage, &text), None)]);
    desk.press("i", at(240));
    let screen = desk.screen(120, 40);
    let row = screen.lines().find(|line| line.contains("\u{25b8}")).unwrap();
    assert!(row.contains("The needle is in") && !row.contains("<file"), "{screen}");
    let at_line = |what: &str| screen.lines().position(|line| line.contains(what)).unwrap();
    assert!(at_line("Please read it.") < at_line("attached"), "{screen}");
    assert!(at_line("attached") < at_line("/w/plan.txt"), "{screen}");
    assert!(!screen.contains("Message:"), "{screen}");
    // From what is said on to the files: 13 places, and no way leads beyond the last.
    desk.press("/needle\nnn", at(241));
    let top = |desk: &Desk| desk.screen(80, 24).contains("Please read it.");
    assert!(top(&desk));
    desk.press("nnnnnnnnnnnnnnnn", at(242));
    assert!(!top(&desk), "{}", desk.screen(80, 24));
    assert_eq!(Needle::new("needle").unwrap().places(&text).len(), 13);
}

#[test]
fn a_text_that_is_cut_says_so_until_the_rest_is_there_or_can_not_be_read() {
    let mut desk = desk();
    desk.press("i", at(240));
    press(&mut desk.app, "j", at(240));
    let screen = desk.screen(80, 24);
    assert!(
        screen.contains("\u{2026} (the rest is being read)") && !screen.contains("reports/index.md"),
        "{screen}"
    );
    // Nothing to copy before it is whole.
    press(&mut desk.app, "y", at(240));
    assert!(desk.screen(80, 24).contains("There is nothing to copy here."));
    let ticket = desk.app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Request(Request::Inquire { ticket, inquiry: Inquiry::Text(4) }) => Some(ticket),
        _ => None,
    });
    let failed =
        Answered { ticket: ticket.unwrap(), result: Err("can't read it: Input/output error".to_owned()) };
    desk.app.facts(vec![Fact::Answered(failed)], at(240));
    press(&mut desk.app, "", at(240));
    let screen = desk.screen(80, 24);
    assert!(screen.contains("The rest can't be read: can't"), "{screen}");
}

#[test]
fn it_is_narrowed_to_a_lead_to_what_is_unread_and_to_what_is_searched_for() {
    let mut desk = desk();
    desk.press("ij", at(240));
    desk.press("l", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("from api/main/auth-rewrite") && screen.contains("2 found"), "{screen}");
    assert!(!screen.contains("3 to add"));
    // The cursor stays on its letter.
    assert!(screen.contains("reports/index.md"), "{screen}");
    desk.press("u", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("unread \u{b7} from api") && screen.contains("1 found"), "{screen}");
    snapshot("inbox_narrowed", &desk);
    desk.press("ul", at(240));
    assert!(desk.screen(120, 40).contains("3 to add"));
    // Far beyond what the list knows of it.
    desk.press("/90 MS\n", at(240));
    assert!(desk.screen(80, 24).contains("Nothing matches."), "capitals stand for themselves");
    desk.press("/", at(240));
    for _ in 0..2 {
        desk.app.key(crossterm::event::KeyCode::Backspace.into(), at(240));
    }
    desk.press("ms", at(240));
    let screen = desk.screen(80, 24);
    assert!(screen.contains("/ 90 ms\u{2581}") && screen.contains("1 found") && screen.contains("90 ms."));
    snapshot("inbox_searched", &desk);
    // One layer at a time: the search, then what else narrows it, then the inbox.
    desk.press("\nu\u{1b}", at(240));
    let screen = desk.screen(80, 24);
    assert!(!screen.contains("/ 90 ms") && screen.contains("4 found"), "{screen}");
    desk.press("\u{1b}", at(240));
    assert!(!desk.screen(80, 24).contains("found"));
    desk.press("\u{1b}", at(240));
    assert!(desk.screen(80, 24).contains("NEEDS YOU"));
    // From the list of leads: what the selected one sent.
    desk.press("l", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("from api/main/auth-rewrite") && !screen.contains("3 to add"), "{screen}");
}

#[test]
fn n_goes_through_every_place_of_what_is_searched_for() {
    let text = |words: usize| format!("token {}token", "word ".repeat(words));
    let mut all: Vec<(Message, Option<&str>)> = vec![
        (letter(1_000, "s-auth", Kind::LeadMessage, &text(1)), None),
        (letter(2_000, "s-tf", Kind::LeadMessage, "nothing of it"), None),
    ];
    all.push((letter(3_000, "s-docs", Kind::LeadMessage, &text(500)), None));
    let mut desk = Desk::new(app(), &all);
    desk.press("in", at(240));
    assert!(desk.screen(80, 24).contains("Nothing is searched for: / begins."));
    desk.press("/token\n", at(240));
    assert!(desk.screen(80, 24).contains("2 found"));
    // The list says how each begins.
    let beside = |desk: &Desk| {
        let screen = desk.screen(80, 24);
        screen.lines().map(|line| line.chars().skip(38).chain(['\n']).collect::<String>()).collect::<String>()
    };
    let top = |desk: &Desk| desk.screen(80, 24).lines().nth(2).unwrap().contains("message received");
    assert!(top(&desk));
    desk.press("n", at(240));
    assert!(!top(&desk), "the second place is far below");
    desk.press("n", at(240));
    let text = beside(&desk);
    assert!(text.contains("token word token"), "the next letter that has it: {text}");
    desk.press("nn", at(240));
    assert!(beside(&desk).contains("token word token"), "there is none after it");
    desk.press("NN", at(240));
    assert!(!top(&desk) && !beside(&desk).contains("token word token"), "the last place of that before");
    desk.press("N", at(240));
    assert!(top(&desk));
}

#[test]
fn read_and_unread_are_marked_by_letter_and_by_lead() {
    let mut desk = desk();
    desk.press("iU", at(240));
    desk.press("jA", at(240));
    desk.press("jjU", at(240));
    let marks: Vec<_> = (desk.requests.iter())
        .filter_map(|request| match request {
            Request::Mark { which, read, .. } => Some((which.clone(), *read)),
            _ => None,
        })
        .collect();
    let of_lead = Which::Lead(session("s-auth"));
    assert_eq!(marks, [(Which::Letter(5), true), (of_lead, true), (Which::Letter(2), true)]);
    // What the journal tells is shown, in the list and of the letter itself.
    let unread = |desk: &Desk| {
        let screen = desk.screen(80, 24);
        let rows: Vec<bool> =
            (2..7).map(|row| screen.lines().nth(row).unwrap().chars().nth(2) == Some('\u{25cf}')).collect();
        (rows, screen.contains("enter marks it as read"))
    };
    desk.press("gg", at(240));
    assert_eq!(unread(&desk), (vec![true, true, true, true, false], true));
    desk.append(&Event::Read(&[5, 4]));
    desk.append(&Event::Unread(&[1]));
    desk.tell(at(241));
    while desk.answer(at(241)) {}
    assert_eq!(unread(&desk), (vec![false, false, true, true, true], false));
}

#[test]
fn the_lead_of_a_letter_is_answered_and_written_to_from_there() {
    let mut desk = desk();
    desk.press("iG", at(240));
    assert!(desk.screen(120, 40).contains("It still asks this: r replies."));
    desk.press("r", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("Reply") && screen.contains("refresh tokens that have expired"), "{screen}");
    desk.press("\u{1b}\u{1b}", at(240));
    assert!(desk.screen(120, 40).contains("Inbox"), "back where it was");
    // tf-upgrade asks nothing.
    desk.press("ggr", at(240));
    assert!(desk.screen(120, 40).contains("This lead asks nothing now."));
    desk.press("m", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("Message") && screen.contains("infra/main/tf-upgrade"), "{screen}");
    // s-gone is not listed.
    desk.press("\u{1b}\u{1b}jjjm", at(240));
    assert!(desk.screen(120, 40).contains("That lead is not listed now."));
}

/// Who is listed no more keeps its name, and what it asks now nobody knows.
#[test]
fn a_lead_that_is_gone_keeps_its_name_and_nothing_is_said_of_its_ask() {
    let mut desk = desk();
    desk.press("iG", at(240));
    assert!(desk.screen(120, 40).contains("It still asks this"));
    let gone = |desk: &mut Desk| {
        let others: Vec<_> = LEADS.iter().filter(|lead| lead.session != "s-auth").copied().collect();
        desk.app.facts(vec![Fact::Inventory(std::sync::Arc::new(inventory(&others)))], at(241));
    };
    gone(&mut desk);
    let screen = desk.screen(120, 40);
    assert!(screen.contains("\u{250c} api/main/auth-rewrite \u{2500}"), "{screen}");
    assert!(screen.contains("\u{25b8}  auth-rewrite "), "{screen}");
    assert!(screen.contains("Its lead is not listed now: s-auth."), "{screen}");
    assert!(!screen.contains("asks this"), "{screen}");
    desk.press("l", at(241));
    assert!(desk.screen(120, 40).contains("from api/main/auth-rewrite"));
    // Another that is called so now is not taken for it.
    let mut leads = LEADS.to_vec();
    leads[0].session = "s-new";
    leads[0].workspace = "w6";
    desk.app.facts(vec![Fact::Inventory(std::sync::Arc::new(inventory(&leads)))], at(242));
    desk.app.facts(vec![Fact::Leads(std::sync::Arc::new(records(&leads)))], at(242));
    desk.press("l", at(242));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("\u{25b8}  ap\u{2026}/auth-rewrite"), "{screen}");
    // Who was never listed has but its session.
    assert!(screen.contains(" s-gone "), "{screen}");
}

#[test]
fn an_observer_is_not_promised_that_the_inbox_answers_or_marks() {
    let mut desk = desk();
    let chief = headman::fact::OtherChief::None;
    let standing = headman::fact::Standing::Observer { chief, refused: None };
    desk.app.facts(vec![Fact::Standing(standing)], at(240));
    desk.press("ij", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("unread: become Chief (c) to mark it as read."), "{screen}");
    assert!(!screen.contains("marks it as read"), "{screen}");
    desk.press("G", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("It still asks this: become Chief (c) to reply."), "{screen}");
}

#[test]
fn what_comes_meanwhile_stands_above_and_the_cursor_stays() {
    let mut desk = desk();
    desk.press("ij", at(240));
    assert!(desk.screen(120, 40).contains("reports/index.md"));
    let new = letter(240_000, "s-ops", Kind::LeadMessage, "Something new.");
    let bytes = new.to_bytes().unwrap();
    desk.append(&Event::Received { id: new.id, bytes: &bytes, message: Some(&new), refused: None });
    desk.tell(at(241));
    while desk.answer(at(241)) {}
    let screen = desk.screen(120, 40);
    assert!(screen.contains("Something new.") && screen.contains("6 in all"), "{screen}");
    assert!(screen.contains("reports/index.md"), "{screen}");
}

#[test]
fn what_keeps_letters_out_is_told_above_everything_and_in_the_diagnostics() {
    let mut desk = desk();
    let mail = Mail {
        kept: vec!["message 0000: Herdr does not answer, so the lead can't be verified".to_owned()],
        stopped: Some(
            "the journal can't be written, what leads sent stays in the inbox: disk full".to_owned(),
        ),
        damaged: 2,
        ..desk.app.model.mail().clone()
    };
    desk.app.facts(vec![Fact::Mail(std::sync::Arc::new(mail))], at(240));
    assert!(desk.screen(120, 40).lines().nth(1).unwrap().contains("Nothing is received: the journal can't"));
    desk.press("d", at(240));
    for (width, height) in [(120, 40), (80, 24), (60, 30), (40, 15)] {
        let screen = desk.screen(width, height);
        insta::assert_snapshot!(format!("inbox_stopped_{width}x{height}"), screen);
    }
    // What is there already is shown all the same.
    desk.press("di", at(240));
    let screen = desk.screen(120, 40);
    assert!(screen.contains("Nothing is received") && screen.contains("3 to add"), "{screen}");
}

const MANY: u64 = 20_000;

/// 20,000 letters from three leads; every thousandth has a word at the end of a long text.
fn many() -> Desk {
    let filling = "It goes on as it did before. ".repeat(40);
    let text = |nth: u64| match nth {
        _ if nth.is_multiple_of(1_000) => format!("Number {nth}. {filling} Needle."),
        _ if nth.is_multiple_of(4) => format!("Number {nth}. {filling}"),
        _ => format!("Number {nth}."),
    };
    let leads = ["s-auth", "s-tf", "s-docs"];
    let letters: Vec<_> = (1..=MANY)
        .map(|nth| (letter(nth, leads[(nth % 3) as usize], Kind::LeadMessage, &text(nth)), None))
        .collect();
    Desk::new(app(), &letters)
}

#[test]
fn of_twenty_thousand_letters_each_is_reached_and_found_in_bounded_parts() {
    let mut desk = many();
    desk.press("i", at(240));
    let screen = desk.screen(80, 24);
    assert!(screen.contains("20000 unread, 20000 in all") && screen.contains("Number 20000."), "{screen}");
    // From end to end, and page by page: nothing is left out.
    desk.press("G", at(240));
    assert!(desk.screen(80, 24).contains("Number 1."));
    let end = crossterm::event::KeyCode::PageUp;
    for _ in 0..30 {
        desk.app.key(end.into(), at(240));
        while desk.answer(at(240)) {}
    }
    let screen = desk.screen(120, 40);
    assert!(!screen.contains("  \u{2026}  "), "every row is there: {screen}");
    desk.asked.clear();

    // A search reads in slices, and every key between two of them is heard.
    press(&mut desk.app, "/needle", at(240));
    let mut slices = 0;
    let begun = Instant::now();
    while desk.answer(at(240)) {
        slices += 1;
        if slices == 10 {
            press(&mut desk.app, "\n", at(240));
            let screen = desk.screen(80, 24);
            assert!(screen.contains("found \u{2026}") && screen.contains("/ needle"), "{screen}");
        }
    }
    let took = begun.elapsed();
    // Texts that are known whole take no reading: a quarter is read, 128 at a time.
    assert!((5_000 / 128..200).contains(&slices), "{slices}");
    assert!(took.as_secs() < 20, "{took:?}");
    let screen = desk.screen(80, 24);
    assert!(screen.contains("20 found") && !screen.contains("found \u{2026}"), "{screen}");
    assert!(screen.contains("Needle."), "the place is in sight: {screen}");
    for inquiry in &desk.asked {
        if let Inquiry::Letters(seqs) = inquiry {
            assert!(seqs.len() <= 400);
        }
    }
    desk.press("G", at(240));
    assert!(desk.screen(80, 40).contains("Number 1000."));
    // Of one lead only: every third.
    desk.press("\u{1b}", at(240));
    desk.press("l", at(240));
    let screen = desk.screen(80, 24);
    assert!(screen.contains("6667 found") && screen.contains("Number 1000."), "{screen}");

    // One answer reads and gives a bounded part.
    let find = |text: Option<&str>, below, above| {
        let query = Query { text: text.map(str::to_owned), ..Query::default() };
        match desk.office.answer(&Inquiry::Find { query, below, above }).unwrap() {
            Answer::Found(found) => found,
            other => panic!("{other:?}"),
        }
    };
    let all = find(None, u64::MAX, 0);
    assert_eq!((all.seqs.len(), all.rest), (20_000, None));
    let first = find(Some("needle"), u64::MAX, 0);
    assert_eq!(first.seqs, [20_000]);
    let rest = first.rest.unwrap();
    assert_eq!(rest, 20_001 - 512, "each text is read");
    // Going on below it leaves none out and gives none twice.
    let mut found = first.seqs;
    let mut next = Some(rest);
    while let Some(below) = next {
        let Found { seqs, rest } = find(Some("needle"), below, 0);
        found.extend(seqs);
        next = rest;
    }
    assert_eq!(found, (1..=20).rev().map(|nth| nth * 1_000).collect::<Vec<u64>>());
    // Between two numbers, without them.
    assert_eq!(find(None, 12, 9).seqs, [11, 10]);
    assert_eq!(find(None, 9, 12).seqs, [0; 0]);
    let Ok(Answer::Letters(letters)) = desk.office.answer(&Inquiry::Letters((1..=20_000).collect())) else {
        panic!()
    };
    assert_eq!(letters.len(), 400);
    let gone = desk.office.answer(&Inquiry::Text(99_999)).unwrap_err();
    assert!(gone.to_string().contains("not in the journal any more"));
}

#[test]
fn nothing_breaks_at_any_size_with_hostile_letters() {
    let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}evil\u{200b}\u{300}\u{300}\u{300}\u{300}日本\u{1f468}\u{200d}\u{1f469}\n\t\u{7f}";
    let letters: Vec<_> = (1..30u64)
        .map(|nth| {
            (letter(nth, &format!("{hostile}{nth}"), Kind::LeadMessage, &hostile.repeat(nth as usize)), None)
        })
        .collect();
    let ascii = Theme::load(None, GlyphChoice::Ascii, |_| None).unwrap();
    for (theme, is_ascii) in [(crate::screens::theme(), false), (ascii, true)] {
        let mut desk = Desk::new(app_in(theme), &letters);
        for keys in ["i", "/evil", "\n", "n", "N", "l", "u", "G", "\n", "\u{1b}", "\u{1b}", "/\u{202e}x"] {
            desk.press(keys, at(240));
            for (width, height) in [(1, 1), (19, 6), (20, 6), (21, 7), (49, 9), (50, 12), (79, 24), (200, 50)]
            {
                let screen = desk.screen(width, height);
                let bad =
                    screen.chars().find(|it| *it != '\n' && headman::contract::text::is_unsafe_to_show(*it));
                assert_eq!(bad, None, "{width}x{height}: {screen:?}");
                assert!(!is_ascii || screen.is_ascii() || keys.contains('\u{202e}'), "{screen}");
            }
        }
    }
}
