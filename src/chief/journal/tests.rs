use std::collections::HashSet;
use std::io::Write;

use super::*;
use crate::contract::{Kind, SessionId, Uuid};
use crate::disk::durable;
use crate::fact::{Fate, Until};

const NOV: u64 = 1_796_029_920_000;
const MONTH: u64 = 30 * 24 * 3600 * 1000;

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
        assert!(all[0].read && all[0].refused.is_none() && index.unread() == 0);
        assert_eq!(journal.letter(all[0]).unwrap().preview, ask.text);
        assert_eq!(journal.text(all[0]).unwrap(), ask.text);
        assert_eq!(journal.record(all[0]).unwrap(), bytes);
        assert_eq!(all[1].refused.as_deref(), Some("not JSON"));
        assert_eq!(journal.record(all[1]).unwrap(), b"\xffno");
        assert!(index.has(&ask) && index.has_ask(&ask.lead, ask.ask.unwrap()));
        assert_eq!(index.asked_at(&ask.lead, ask.ask.unwrap()), Some(at(NOV - 5)));
        assert_eq!(index.asked_at(&ask.lead, refused), Some(at(NOV)));
        let sent = index.sent_entry(reply.id).unwrap();
        assert_eq!((journal.message(sent).unwrap(), sent.fate), (reply.clone(), Some(Fate::Taken)));
        assert_eq!((journal.damaged(), journal.later()), (0, 0));
    }
    assert_eq!(again.index.next_seq(), 7);
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
        // It may just be being written.
        assert_eq!(journal.damaged(), 0);
        let bytes = two.to_bytes().unwrap();
        journal.append(&[received(&two, &bytes)], at(NOV)).unwrap();
        assert_eq!(journal.damaged(), 1, "{cut}");
        let again = Journal::open(dir.path()).unwrap();
        assert_eq!(again.index().received().count(), 2, "{cut}");
        assert_eq!(again.damaged(), 0, "{cut}");
    }
}

#[test]
fn lines_of_later_releases_are_kept_and_broken_ones_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("2026-11.jsonl");
    let text = "{\"v\":1,\"seq\":7,\"at\":1,\"kind\":\"dreamt\"}\nnonsense\n{\"v\":2,\"seq\":9,\"at\":1,\"kind\":\"received\"}\n{\"v\":2}\n";
    std::fs::write(&path, text).unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    assert_eq!((journal.damaged(), journal.later()), (1, 3));
    journal.append(&[Event::Read(&[])], at(NOV)).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(text));
    // Nor is a number of theirs given again.
    assert_eq!(journal.index.next_seq(), 11);
}

#[test]
fn where_the_numbers_have_run_out_nothing_is_appended_that_nobody_could_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    durable::ensure_directory(&path).unwrap();
    let line = format!("{{\"v\":1,\"seq\":{},\"at\":1,\"kind\":\"read\",\"seqs\":[]}}\n", line::MAX_SEQ - 2);
    durable::create(&path.join(Month::of(at(NOV)).segment()), line.as_bytes()).unwrap();
    let mut journal = Journal::open(&path).unwrap();
    let (one, two) = ([Event::Read(&[])], [Event::Read(&[]), Event::Read(&[])]);
    journal.append(&one, at(NOV)).unwrap();
    assert_eq!(journal.append(&two, at(NOV)).unwrap_err().reason, Errno::OVERFLOW);
    journal.append(&one, at(NOV)).unwrap();
    assert_eq!(journal.append(&one, at(NOV)).unwrap_err().reason, Errno::OVERFLOW);
    let again = Journal::open(&path).unwrap();
    assert_eq!((again.segments[0].tally.events, again.damaged()), (3, 0));
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
    let all: Vec<_> = again.index().received().map(|it| again.text(it).unwrap()).collect();
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
        assert_eq!(
            journal.message(open).unwrap(),
            if cut == whole.len() { again.clone() } else { old.clone() },
            "{cut}"
        );
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
        journal.index().received().map(|it| (it.id, it.refused.as_deref().map(str::to_owned))).collect()
    };
    assert_eq!(listed(&journal), [(first.id, Some("too early again".to_owned()))]);
    assert_eq!(journal.index().unread(), 1, "somebody asked all the same");
    journal.append(&[received(&later, &bytes)], at(NOV)).unwrap();
    refuse("too late", &first, &mut journal);
    let again = Journal::open(dir.path()).unwrap();
    for journal in [&journal, &again] {
        assert_eq!(listed(journal), [(later.id, None)]);
        assert_eq!(journal.index().asked_at(&first.lead, first.ask.unwrap()), Some(first.created_at));
        assert_eq!(journal.damaged(), 0);
    }
}

/// Everything that a journal says, to be compared.
fn said(journal: &mut Journal) -> String {
    let texts: Vec<_> = journal.index().received().map(|it| (it.seq, journal.text(it).unwrap())).collect();
    let mut sent: Vec<_> = journal.index().sent().map(|it| (it.id, it.fate, it.again)).collect();
    sent.sort_by_key(|it| it.0);
    let damaged = journal.damaged();
    let next = journal.index().next_seq();
    format!("{texts:?} {sent:?} {damaged} {next} {:?}", journal.mail())
}

fn appended(directory: &Path, month: u64) -> std::fs::File {
    let path = directory.join(Month::of(at(month)).segment());
    std::fs::OpenOptions::new().append(true).open(path).unwrap()
}

#[test]
fn what_another_process_appends_is_followed_without_reading_all_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut reader = Journal::open(&path).unwrap();
    assert!(!reader.follow().unwrap());
    let mut writer = Journal::open(&path).unwrap();
    let first = message(Kind::LeadMessage, "first");
    let bytes = first.to_bytes().unwrap();
    writer.append(&[received(&first, &bytes)], at(NOV)).unwrap();
    assert!(reader.follow().unwrap());
    assert!(!reader.follow().unwrap(), "nothing came since");
    assert_eq!(reader.mail().unread, 1);
    writer.append(&[Event::Read(&[1])], at(NOV)).unwrap();
    assert!(reader.follow().unwrap());
    assert_eq!(reader.mail().unread, 0);
    // A line that is just being written is neither there nor damaged.
    let line = line::written(&received(&first, &bytes), 3, at(NOV));
    for part in [&line[..1], &line[1..300], &line[300..line.len() - 1]] {
        appended(&path, NOV).write_all(part).unwrap();
        reader.follow().unwrap();
        assert_eq!((reader.index().received().len(), reader.damaged()), (1, 0));
    }
    appended(&path, NOV).write_all(b"\n").unwrap();
    assert!(reader.follow().unwrap());
    assert_eq!(reader.index().received().len(), 2);
    // The next month; and that the month before ends torn is known for certain then.
    appended(&path, NOV).write_all(b"{\"v\":1").unwrap();
    let mut writer = Journal::open(&path).unwrap();
    writer.append(&[received(&first, &bytes)], at(NOV + MONTH)).unwrap();
    assert!(reader.follow().unwrap());
    assert_eq!((reader.index().received().len(), reader.damaged()), (3, 1));
    // One put in the place of another, and one that comes back: everything is read anew.
    let segment = path.join(Month::of(at(NOV)).segment());
    std::fs::write(path.join("other"), line::written(&Event::Read(&[3]), 9, at(NOV))).unwrap();
    std::fs::rename(path.join("other"), &segment).unwrap();
    assert!(reader.follow().unwrap());
    assert_eq!((reader.index().received().len(), reader.damaged()), (1, 0));
    std::fs::write(path.join("2026-01.jsonl"), line).unwrap();
    assert!(reader.follow().unwrap());
    assert_eq!(said(&mut reader), said(&mut Journal::open(&path).unwrap()));
}

#[test]
fn a_line_longer_than_any_of_ours_is_passed_over_however_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let one = message(Kind::LeadMessage, "one");
    let bytes = one.to_bytes().unwrap();
    let mut writer = Journal::open(dir.path()).unwrap();
    writer.append(&[received(&one, &bytes)], at(NOV)).unwrap();
    let mut reader = Journal::open(dir.path()).unwrap();
    for _ in 0..3 {
        appended(dir.path(), NOV).write_all(&[b'x'; 200 * 1024]).unwrap();
        reader.follow().unwrap();
        assert_eq!(reader.damaged(), 0, "it has no end yet");
    }
    appended(dir.path(), NOV).write_all(b"\nshorter\n").unwrap();
    let mut writer = Journal::open(dir.path()).unwrap();
    writer.append(&[received(&one, &bytes)], at(NOV)).unwrap();
    reader.follow().unwrap();
    for journal in [&reader, &writer, &Journal::open(dir.path()).unwrap()] {
        assert_eq!((journal.index().received().len(), journal.damaged()), (2, 2));
    }
    // And cut off again.
    appended(dir.path(), NOV).set_len(0).unwrap();
    reader.follow().unwrap();
    assert_eq!((reader.index().received().len(), reader.damaged()), (0, 0));
}

/// Whatever a writer does, crashes and full disks included, who follows knows the same as who
/// begins now.
#[test]
fn who_follows_knows_what_a_fresh_reader_knows() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for _ in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let mut follower = Journal::open(dir.path()).unwrap();
        let mut writer = Journal::open(dir.path()).unwrap();
        let mut now = NOV;
        let mut sent = Vec::new();
        for step in 0..60 {
            let up = message(Kind::LeadMessage, &"up ".repeat(1 + next(200) as usize));
            let bytes = up.to_bytes().unwrap();
            let down = message(Kind::ChiefMessage, &format!("down {step}"));
            match next(10) {
                0..=2 => writer.append(&[received(&up, &bytes)], at(now)).unwrap(),
                3 => {
                    sent.push(down.id);
                    writer.append(&[Event::Sent(&down), received(&up, &bytes)], at(now)).unwrap();
                }
                4 if !sent.is_empty() => {
                    let id = sent[next(sent.len() as u64) as usize];
                    writer.append(&[Event::Fate { id, fate: Fate::Taken }], at(now)).unwrap();
                }
                5 => writer.append(&[Event::Read(&[1 + next(20)])], at(now)).unwrap(),
                6 => now = if next(3) == 0 { now - MONTH } else { now + MONTH },
                7 if !writer.is_empty() => {
                    // A batch of which only a part came onto the disk: seen, and cut off again.
                    let path = writer.segments[writer.segments.len() - 1].path().to_owned();
                    let before = std::fs::metadata(&path).unwrap().len();
                    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                    let line = line::written(&received(&up, &bytes), writer.index().next_seq(), at(now));
                    file.write_all(&line).unwrap();
                    file.write_all(&line[..line.len() / 2]).unwrap();
                    follower.follow().unwrap();
                    file.set_len(before).unwrap();
                    // A crash: whoever is next begins anew.
                    writer = Journal::open(dir.path()).unwrap();
                }
                8 => {
                    let plan = writer.plan(Month::of(at(now)), &Needed::default(), at(now));
                    writer.prune(&plan, at(now)).unwrap();
                }
                _ => {}
            }
            if next(3) == 0 {
                follower.follow().unwrap();
                assert_eq!(said(&mut follower), said(&mut Journal::open(dir.path()).unwrap()), "{step}");
                assert_eq!(said(&mut follower), said(&mut writer), "{step}");
            }
        }
    }
}

/// A journal with one message received and one of ours that is settled in each of these months.
fn of_months(directory: &Path, months: &[u64]) -> (Journal, Vec<Message>, Vec<Message>) {
    let mut journal = Journal::open(directory).unwrap();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for month in months {
        let (asked, sent) = (message(Kind::LeadAsk, "asked"), message(Kind::ChiefMessage, "sent"));
        let bytes = asked.to_bytes().unwrap();
        let fate = Event::Fate { id: sent.id, fate: Fate::Taken };
        journal.append(&[received(&asked, &bytes), Event::Sent(&sent), fate], at(*month)).unwrap();
        up.push(asked);
        down.push(sent);
    }
    (journal, up, down)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        durable::list(directory).unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn whole_months_go_but_never_this_one_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let before = |text: &str| text.parse::<Month>().unwrap();
    let months = [NOV, NOV + MONTH, NOV + 2 * MONTH, NOV + 3 * MONTH];
    let (mut journal, up, down) = of_months(dir.path(), &months);
    let now = at(NOV + 3 * MONTH);
    assert_eq!(journal.plan(before("2026-11"), &Needed::default(), now), Plan::default());
    let plan = journal.plan(before("2027-01"), &Needed::default(), now);
    let gone: Vec<_> =
        plan.gone.iter().map(|it| (it.month.to_string(), it.received, it.sent, it.unread.clone())).collect();
    assert_eq!(gone, [("2026-11".to_owned(), 1, 1, vec![1]), ("2026-12".to_owned(), 1, 1, vec![4])]);
    assert_eq!((plan.gone[0].tally.events, plan.kept.len()), (3, 0));
    journal.prune(&plan, now).unwrap();
    assert_eq!(names(dir.path()), ["2027-01.jsonl", "2027-02.jsonl"]);
    assert_eq!(said(&mut journal), said(&mut Journal::open(dir.path()).unwrap()));
    assert_eq!((journal.index().received().len(), journal.later()), (2, 0));
    assert!(journal.index().file(up[1].id).is_none() && journal.index().file(up[2].id).is_some());
    assert!(journal.index().sent_entry(down[1].id).is_none());
    // Months that are to come don't bring forward the end of this one.
    let plan = journal.plan(before("2099-01"), &Needed::default(), now);
    assert_eq!(plan.gone.len(), 1);
    // A year later everything goes, and what comes has numbers of its own.
    let later = at(NOV + 15 * MONTH);
    let next = journal.index().next_seq();
    let plan = journal.plan(before("2028-01"), &Needed::default(), later);
    journal.prune(&plan, later).unwrap();
    assert_eq!(names(dir.path()), ["2028-02.jsonl"]);
    let text = std::fs::read_to_string(dir.path().join("2028-02.jsonl")).unwrap();
    assert!(text.contains(r#""kind":"pruned","segments":["2027-01.jsonl","2027-02.jsonl"]"#), "{text}");
    assert_eq!(Journal::open(dir.path()).unwrap().index().next_seq(), next + 1);
}

#[test]
fn a_segment_that_goes_as_it_is_read_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let (_, up, _) = of_months(dir.path(), &[NOV]);
    let path = dir.path().join("2020-01.jsonl");
    let bytes = up[0].to_bytes().unwrap();
    let line = line::written(&received(&up[0], &bytes), 1, at(1));
    std::thread::scope(|scope| {
        let pruning = scope.spawn(|| {
            for _ in 0..2000 {
                std::fs::write(&path, &line).unwrap();
                std::fs::remove_file(&path).unwrap();
            }
        });
        let mut follower = Journal::open(dir.path()).unwrap();
        while !pruning.is_finished() {
            follower.follow().unwrap();
            Journal::open(dir.path()).unwrap();
        }
    });
}

#[test]
fn what_is_still_needed_stays_with_all_that_came_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let months = [NOV, NOV + MONTH, NOV + 2 * MONTH, NOV + 3 * MONTH];
    let now = at(NOV + 3 * MONTH);
    let before = Month::of(now);
    let (journal, up, _) = of_months(dir.path(), &months);
    let key = |at: usize| (up[at].lead.clone(), up[at].ask.unwrap());
    let kept = |journal: &Journal, needed: &Needed| {
        let plan = journal.plan(before, needed, now);
        let gone: Vec<_> = plan.gone.iter().map(|it| it.month.to_string()).collect();
        (gone, plan.kept.into_iter().map(|it| (it.month.to_string(), it.why)).collect::<Vec<_>>())
    };
    let month = |month: &str| month.to_owned();
    let second = |why| vec![(month("2026-12"), why), (month("2027-01"), Why::RefersBack)];

    let needed = Needed { in_inbox: HashSet::from([up[1].id]), ..Needed::default() };
    assert_eq!(kept(&journal, &needed), (vec![month("2026-11")], second(Why::InInbox(1))));
    let needed = Needed { pending: HashSet::from([key(1), (key(0).0, Uuid::random())]), ..Needed::default() };
    assert_eq!(kept(&journal, &needed), (vec![month("2026-11")], second(Why::PendingAsk(1))));
    let needed = Needed { unreadable: HashSet::from([key(0).0]), ..Needed::default() };
    assert_eq!(kept(&journal, &needed).0, [""; 0], "each month has an ask of that lead");
    assert_eq!(kept(&journal, &needed).1[0], (month("2026-11"), Why::Unreadable(1)));

    // One of ours that was never settled.
    let dir = tempfile::tempdir().unwrap();
    let open = message(Kind::ChiefMessage, "open");
    let (mut journal, ..) = of_months(dir.path(), &months[..2]);
    journal.append(&[Event::Sent(&open)], at(months[1])).unwrap();
    let (mut journal, ..) = of_months(dir.path(), &months[2..]);
    assert_eq!(kept(&journal, &Needed::default()), (vec![month("2026-11")], second(Why::Queued(1))));
    journal.append(&[Event::Fate { id: open.id, fate: Fate::Taken }], now).unwrap();
    let all = vec![month("2026-11"), month("2026-12"), month("2027-01")];
    assert_eq!(kept(&journal, &Needed::default()), (all, vec![]), "it is settled now");

    // What nobody here understands is nobody's to remove; what nobody at all does, is.
    std::fs::write(dir.path().join("2026-10.jsonl"), "{\"v\":2}\n").unwrap();
    std::fs::write(dir.path().join("2026-09.jsonl"), "garbage\n").unwrap();
    journal.follow().unwrap();
    let plan = journal.plan(before, &Needed::default(), now);
    assert_eq!((plan.gone.len(), plan.gone[0].tally.damaged), (1, 1));
    assert_eq!((plan.kept.len(), plan.kept[0].why), (4, Why::LaterRelease(1)));
}

#[test]
fn a_clock_that_is_set_back_mixes_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let sent = message(Kind::ChiefMessage, "sent");
    journal.append(&[Event::Sent(&sent)], at(NOV + MONTH)).unwrap();
    journal.append(&[Event::Fate { id: sent.id, fate: Fate::Taken }], at(NOV)).unwrap();
    assert_eq!(names(dir.path()), ["2026-12.jsonl"]);
    let again = Journal::open(dir.path()).unwrap();
    assert_eq!(again.index().sent_entry(sent.id).unwrap().fate, Some(Fate::Taken));
}

#[test]
fn a_segment_that_is_moved_away_under_its_writer_is_noticed_with_the_next_event() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = Journal::open(&path).unwrap();
    let texts = |journal: &Journal| -> Vec<Untrusted> {
        journal.index().received().map(|it| journal.text(it).unwrap()).collect()
    };
    let put = |text: &str, journal: &mut Journal| {
        let message = message(Kind::LeadMessage, text);
        let bytes = message.to_bytes().unwrap();
        journal.append(&[received(&message, &bytes)], at(NOV))
    };
    put("first", &mut journal).unwrap();
    let segment = path.join(Month::of(at(NOV)).segment());
    std::fs::remove_file(&segment).unwrap();
    put("second", &mut journal).unwrap();
    assert_eq!(texts(&Journal::open(&path).unwrap()), ["second"].map(Untrusted::from));
    assert_eq!(journal.index().received().map(|it| it.seq).collect::<Vec<_>>(), [2], "numbers go on");
    // What is not ours alone, or no file at all, takes nothing.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&segment, std::fs::Permissions::from_mode(0o666)).unwrap();
    put("lost?", &mut journal).unwrap_err();
    std::fs::set_permissions(&segment, std::fs::Permissions::from_mode(0o600)).unwrap();
    put("third", &mut journal).unwrap();
    std::fs::rename(&segment, path.join("away")).unwrap();
    std::fs::create_dir(&segment).unwrap();
    put("lost?", &mut journal).unwrap_err();
    std::fs::remove_dir(&segment).unwrap();
    std::fs::rename(path.join("away"), &segment).unwrap();
    put("fourth", &mut journal).unwrap();
    assert_eq!(texts(&Journal::open(&path).unwrap()), ["second", "third", "fourth"].map(Untrusted::from));
}

#[test]
fn what_is_put_off_is_kept_until_it_is_over_or_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = Journal::open(&path).unwrap();
    let lead = SessionId::new("lead \u{1b}\"").unwrap();
    let asks = [Uuid::random(), Uuid::random(), Uuid::random()];
    let snoozed = |ask, until| Event::Snoozed { lead: &lead, ask, until };
    journal
        .append(&[snoozed(asks[0], Until::At(at(NOV + 600))), snoozed(asks[1], Until::Change)], at(NOV))
        .unwrap();
    journal.append(&[snoozed(asks[2], Until::At(at(NOV + 50)))], at(NOV + 1)).unwrap();
    journal
        .append(
            &[snoozed(asks[2], Until::At(at(NOV + 900))), Event::Unsnoozed { lead: &lead, ask: asks[1] }],
            at(NOV + 2),
        )
        .unwrap();
    let again = Journal::open(&path).unwrap();
    for journal in [&journal, &again] {
        let at_time = |now| -> Vec<_> {
            let told = journal.index().snoozed(10, at(now));
            told.into_iter().map(|it| (it.ask, it.at, it.until)).collect()
        };
        let (first, last) = (Until::At(at(NOV + 600)), Until::At(at(NOV + 900)));
        assert_eq!(at_time(NOV + 599), [(asks[0], at(NOV), first), (asks[2], at(NOV + 2), last)]);
        assert_eq!(at_time(NOV + 600), [(asks[2], at(NOV + 2), last)]);
        assert_eq!(at_time(NOV + 900), []);
        assert_eq!(journal.index().snoozed(1, at(NOV))[0].ask, asks[2], "of too many the newest");
        assert_eq!((journal.damaged(), journal.later()), (0, 0));
    }
    // A time that is none, or a lead or ask that is none, is damage, and nothing else is touched.
    let mut file = appended(&path, NOV);
    for rest in
        [r#""lead":"x","ask":"no""#, r#""lead":"x","ask":"00000000-0000-4000-8000-000000000001","until":-1"#]
    {
        writeln!(file, r#"{{"v":1,"seq":90,"at":1,"kind":"snoozed",{rest}}}"#).unwrap();
    }
    let again = Journal::open(&path).unwrap();
    assert_eq!((again.damaged(), again.index().snoozed(10, at(NOV)).len()), (2, 2));
}

#[test]
fn a_month_that_has_a_pending_ask_put_off_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = Journal::open(&path).unwrap();
    let lead = SessionId::new("lead").unwrap();
    let ask = Uuid::random();
    journal.append(&[Event::Snoozed { lead: &lead, ask, until: Until::Change }], at(NOV)).unwrap();
    journal.append(&[Event::Read(&[])], at(NOV + MONTH)).unwrap();
    let (now, before) = (at(NOV + MONTH), Month::of(at(NOV + MONTH)));
    let pending = HashSet::from([(lead, ask)]);
    let plan = journal.plan(before, &Needed { pending, ..Needed::default() }, now);
    assert_eq!(plan.kept, [Kept { month: Month::of(at(NOV)), why: Why::PendingAsk(1) }]);
    // Once it is answered, nothing depends on it.
    let plan = journal.plan(before, &Needed::default(), now);
    assert_eq!((plan.kept.len(), plan.gone.len()), (0, 1));
}
