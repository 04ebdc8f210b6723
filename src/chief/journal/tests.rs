use super::*;

const NOV: u64 = 1_796_029_920_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn message(kind: Kind, text: &str) -> Message {
    let (lead, chief) = (SessionId::new("lead").unwrap(), SessionId::new("chief").unwrap());
    let down = matches!(kind, Kind::ChiefMessage | Kind::ChiefReply);
    Message {
        id: Uuid::random(),
        lease: Uuid::random(),
        kind,
        from: if down { chief.clone() } else { lead.clone() },
        to: if down { lead.clone() } else { chief },
        lead,
        ask: kind.has_ask().then(Uuid::random),
        text: text.into(),
        created_at: at(NOV - 5),
    }
}

fn received<'a>(message: &'a Message, bytes: &'a [u8]) -> Event<'a> {
    Event::Received { id: message.id, bytes, message: Some(message), refused: None }
}

#[test]
fn what_was_appended_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = Journal::open(&path).unwrap();
    let ask = message(Kind::LeadAsk, "Ship \u{1b}[2J it?");
    let reply = message(Kind::ChiefReply, "Yes.");
    let bytes = ask.to_bytes().unwrap();
    let refused = Uuid::random();
    journal
        .append(
            &[
                received(&ask, &bytes),
                Event::Received { id: refused, bytes: b"\xffno", message: None, refused: Some("not JSON") },
                Event::Sent(&reply),
                Event::Fate { id: reply.id, fate: Fate::Taken },
                Event::AskSeen { lead: &ask.lead, ask: refused },
            ],
            at(NOV),
        )
        .unwrap();
    journal.append(&[Event::Read(&[1])], at(NOV + 1)).unwrap();
    let again = Journal::open(&path).unwrap();
    for journal in [&journal, &again] {
        let index = journal.index();
        let all: Vec<_> = index.received().collect();
        assert_eq!(all.len(), 2);
        assert!(all[0].letter.read && all[0].letter.refused.is_none() && index.unread() == 0);
        assert_eq!(all[0].letter.preview, ask.text);
        assert_eq!(journal.record(all[0]).unwrap(), bytes);
        assert_eq!(all[1].letter.refused.as_deref(), Some("not JSON"));
        assert_eq!(journal.record(all[1]).unwrap(), b"\xffno");
        assert!(index.has(&ask) && index.has_ask(&ask.lead, ask.ask.unwrap()));
        assert_eq!(index.asked_at(&ask.lead, ask.ask.unwrap()), Some(at(NOV - 5)));
        assert_eq!(index.asked_at(&ask.lead, refused), Some(at(NOV)));
        let sent = index.sent_entry(reply.id).unwrap();
        assert_eq!((sent.message.as_ref(), sent.fate), (&reply, Some(Fate::Taken)));
        assert_eq!((index.damaged, index.unknown), (0, 0));
    }
    assert_eq!(again.index.next_seq, 7);
}

#[test]
fn a_torn_end_is_cut_and_everything_before_it_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let one = message(Kind::LeadMessage, "one");
    let two = message(Kind::LeadMessage, "two");
    let bytes = one.to_bytes().unwrap();
    journal.append(&[received(&one, &bytes)], at(NOV)).unwrap();
    let path = dir.path().join("2026-11.jsonl");
    let whole = std::fs::read(&path).unwrap();
    for cut in [1, 10, whole.len() / 2, whole.len() - 1] {
        let mut torn = whole.clone();
        torn.extend_from_slice(&whole[..cut]);
        std::fs::write(&path, &torn).unwrap();
        let mut journal = Journal::open(dir.path()).unwrap();
        assert_eq!(journal.index().received().count(), 1);
        assert_eq!(journal.index().damaged, 1);
        let bytes = two.to_bytes().unwrap();
        journal.append(&[received(&two, &bytes)], at(NOV)).unwrap();
        let again = Journal::open(dir.path()).unwrap();
        assert_eq!(again.index().received().count(), 2, "{cut}");
        assert_eq!(again.index().damaged, 0, "{cut}");
    }
}

#[test]
fn lines_of_later_releases_are_kept_and_broken_ones_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("2026-11.jsonl");
    let text = "{\"v\":1,\"seq\":7,\"at\":1,\"kind\":\"dreamt\"}\nnonsense\n{\"v\":2,\"seq\":9,\"at\":1,\"kind\":\"received\"}\n";
    std::fs::write(&path, text).unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    assert_eq!((journal.index().damaged, journal.index().unknown), (1, 2));
    journal.append(&[Event::Read(&[])], at(NOV)).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(text));
    assert_eq!(journal.index.next_seq, 9);
}

#[test]
fn months_are_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let month = 31 * 24 * 3600 * 1000;
    for (at_month, text) in ["old", "older", "new"].iter().enumerate() {
        let it = message(Kind::LeadMessage, text);
        let bytes = it.to_bytes().unwrap();
        journal.append(&[received(&it, &bytes)], at(NOV + at_month as u64 * month)).unwrap();
    }
    assert_eq!(journal.segments.len(), 3);
    let again = Journal::open(dir.path()).unwrap();
    let all: Vec<_> = again.index().received().map(|it| it.letter.preview.clone()).collect();
    assert_eq!(all, ["old", "older", "new"].map(Untrusted::from));
}

#[test]
fn a_message_sent_again_is_one_event_that_no_crash_can_halve() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let old = message(Kind::ChiefMessage, "carry me");
    let again = Message { id: Uuid::random(), lease: Uuid::random(), ..old.clone() };
    journal.append(&[Event::Sent(&old)], at(NOV)).unwrap();
    let path = dir.path().join("2026-11.jsonl");
    let before = std::fs::read(&path).unwrap().len();
    journal.append(&[Event::Requeued { old: old.id, again: &again }], at(NOV)).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for cut in [before, before + 1, whole.len() - 1, whole.len()] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let open: Vec<_> = journal.index().sent().filter(|entry| entry.is_open()).collect();
        let [open] = open[..] else { panic!("{cut}: {open:?}") };
        assert_eq!(*open.message, if cut == whole.len() { again.clone() } else { old.clone() }, "{cut}");
    }
    let entry = Journal::open(dir.path()).unwrap().index().sent_entry(old.id).unwrap().clone();
    assert_eq!((entry.again, entry.fate), (Some(again.id), Some(Fate::Again)));
}

#[test]
fn an_ask_is_listed_once_however_often_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let first = message(Kind::LeadAsk, "Ship it?");
    let later = Message { id: Uuid::random(), created_at: at(NOV), ..first.clone() };
    let bytes = first.to_bytes().unwrap();
    let refuse = |message: &'static str, it: &Message, journal: &mut Journal| {
        let event = Event::Received { id: it.id, bytes: &bytes, message: Some(it), refused: Some(message) };
        journal.append(&[event], at(NOV)).unwrap();
    };
    refuse("too early", &later, &mut journal);
    refuse("too early again", &first, &mut journal);
    let listed = |journal: &Journal| -> Vec<(Uuid, Option<String>)> {
        journal.index().received().map(|it| (it.letter.id, it.letter.refused.clone())).collect()
    };
    assert_eq!(listed(&journal), [(first.id, Some("too early again".to_owned()))]);
    assert_eq!(journal.index().unread(), 1, "somebody asked all the same");
    journal.append(&[received(&later, &bytes)], at(NOV)).unwrap();
    refuse("too late", &first, &mut journal);
    let again = Journal::open(dir.path()).unwrap();
    for journal in [&journal, &again] {
        assert_eq!(listed(journal), [(later.id, None)]);
        assert_eq!(journal.index().asked_at(&first.lead, first.ask.unwrap()), Some(first.created_at));
        assert_eq!(journal.index().damaged, 0);
    }
}
