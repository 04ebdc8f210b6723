//! Every kind of file that headman reads by itself, in every hostile form, and while it is swapped for
//! one: a read gives the good content or refuses, never what a link leads to, and never waits.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use headman::chief::journal::{Event, Journal};
use headman::chief::state_dir::{Identity, StateDir};
use headman::config::Config;
use headman::console::drafts::{self, Draft};
use headman::contract::role::Role;
use headman::contract::{
    Claim, Descriptor, Kind, LeadRecord, Message, NativeId, PeerRecord, PendingAsk, SessionId, Timestamp,
    Untrusted, Uuid,
};
use headman::disk::sidecar::Sidecar;
use headman::disk::{AgentDir, inbox, lock, mailboxes, named, peers, records};
use headman::lead::session::SessionFile;
use headman::pi::session::read_header;
use rustix::fs::{CWD, FileType, Mode};

use crate::cli_support::chmod;
use crate::golden::is_root;
use crate::managed::state_of;
use crate::managed_mailboxes::Boxes;
use crate::support::directory_in_memory;

const GOOD: &str = "good-content";
const SECRET: &str = "secret-content";
/// Whatever reads longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(10);
const ID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

/// What a reader made of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Good,
    Secret,
    Refused,
}

fn verdict(read: &dyn Debug) -> Verdict {
    let read = format!("{read:?}");
    if read.contains(SECRET) {
        Verdict::Secret
    } else if read.contains(GOOD) {
        Verdict::Good
    } else {
        Verdict::Refused
    }
}

/// What shows the one or the other where the content itself can't be words of ours.
fn words(of: bool, other: bool) -> &'static str {
    match (of, other) {
        (_, true) => SECRET,
        (true, _) => GOOD,
        _ => "",
    }
}

type Reader = Arc<dyn Fn() -> Verdict + Send + Sync>;

/// One kind of file that is read.
struct Target {
    name: &'static str,
    path: PathBuf,
    good: Vec<u8>,
    secret: Vec<u8>,
    /// The forms in which it is read all the same, because its reader promises that.
    takes: &'static [&'static str],
    /// A private file of the same kind that belongs elsewhere, where the content tells.
    others: Option<Vec<u8>>,
    read: Reader,
}

/// One that is a record of our own or of the contract: nothing but a private file is read.
const NOTHING: &[&str] = &[];
/// Somebody else's file: whose it is and who may write it is theirs.
const ANYBODYS: &[&str] =
    &["hard link", "group-writable", "writable by all", "foreign", "oversize", "growing"];
/// The same, where a person says which, and links are followed; but it is small.
const NAMED: &[&str] = &["symlink", "hard link", "group-writable", "writable by all", "foreign"];

fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn letter(text: &str) -> Message {
    Message {
        id: Uuid::parse(ID).unwrap(),
        lease: Uuid::parse(ID).unwrap(),
        kind: Kind::LeadMessage,
        from: session("s"),
        to: session("chief"),
        lead: session("s"),
        ask: None,
        text: text.into(),
        created_at: at(1),
    }
}

fn target(
    name: &'static str,
    path: PathBuf,
    takes: &'static [&'static str],
    content: impl Fn(&str) -> Vec<u8>,
    read: impl Fn() -> Verdict + Send + Sync + 'static,
) -> Target {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Target {
        name,
        path,
        good: content(GOOD),
        secret: content(SECRET),
        takes,
        others: None,
        read: Arc::new(read),
    }
}

/// All of them, below `root`.
fn targets(root: &Path) -> Vec<Target> {
    let agent_dir = AgentDir::resolve(Some(root.join("agent").as_os_str()), root);
    let runtime = agent_dir.runtime("/run/h.sock".as_ref());
    let id = |text: &str| Some(NativeId::new(text).unwrap());
    let mut targets = Vec::new();

    let (by_session, by_name) = (runtime.clone(), runtime.clone());
    let record_of = |of: &str, text: &str| {
        let ask = PendingAsk { ask: Uuid::parse(ID).unwrap(), question: text.into(), text: text.into() };
        let record = LeadRecord {
            instance: Uuid::parse(ID).unwrap(),
            session: session(of),
            pending_ask: Some(ask),
            updated_at: at(1),
        };
        record.to_bytes().unwrap()
    };
    let record = |text: &str| record_of("s", text);
    let mut lead_record = target("lead record", runtime.lead(&session("s")), NOTHING, record, move || {
        verdict(&(records::read_lead(&by_session, &session("s")), records::scan_leads(&by_name)))
    });
    lead_record.others = Some(record_of("another", SECRET));
    targets.push(lead_record);

    let of = runtime.clone();
    let descriptor = |text: &str| {
        let descriptor = Descriptor {
            lease: Uuid::parse(ID).unwrap(),
            claim: Claim::parse_any(format!("{{\"pid\":1,\"id\":\"{ID}\"}}").as_bytes()).unwrap(),
            session: session("chief"),
            pane: text.into(),
            tab: None,
            workspace: "w".into(),
            created_at: at(1),
        };
        descriptor.to_bytes()
    };
    targets.push(target("descriptor", runtime.descriptor(), NOTHING, descriptor, move || {
        verdict(&records::read_descriptor(&of))
    }));

    // The name of a claim's file says all that is in it: there is no other content to be led to.
    let claim = Claim::own();
    let lock = runtime.lock();
    targets.push(target(
        "claim",
        lock.join(claim.file_name()),
        NOTHING,
        |_| claim.to_bytes(),
        move || {
            verdict(&words(
                matches!(lock::holder(&lock), Ok(lock::Holder::Claimed(found, _)) if found == claim),
                false,
            ))
        },
    ));

    let of = runtime.inbox(&session("chief"));
    let message = of.message(Uuid::parse(ID).unwrap());
    targets.push(target(
        "message",
        message,
        NOTHING,
        |text| letter(text).to_bytes().unwrap(),
        move || verdict(&inbox::list(&of)),
    ));

    let of = runtime.clone();
    let presence = |text: &str| {
        let record = PeerRecord {
            session: session("s"),
            pane: NativeId::new("p").unwrap(),
            tab: NativeId::new("t").unwrap(),
            workspace: NativeId::new("w").unwrap(),
            claim,
            updated_at: at(1),
            name: id(text),
            cwd: None,
            repo: None,
            branch: None,
            workspace_label: None,
        };
        record.to_bytes().unwrap()
    };
    targets.push(target("presence", runtime.peer(&session("s")), NOTHING, presence, move || {
        verdict(&peers::look(&of))
    }));

    let state = state_of("ann", "lead");
    let of = agent_dir.mailboxes();
    let path = of.join(Boxes::of(&state)).join("state.json");
    let mailbox = |text: &str| state_of("ann", text).to_string().into_bytes();
    targets.push(target("mailbox", path, NOTHING, mailbox, move || verdict(&mailboxes::scan(&of).posts)));

    let path = root.join("pi/s.jsonl");
    let of = path.clone();
    let header_of = |of: &str, text: &str| {
        format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{of}\",\"cwd\":\"/{text}\"}}\n").into_bytes()
    };
    let header = |text: &str| header_of("s", text);
    targets.push(target("session header", path, ANYBODYS, header, move || verdict(&read_header(&of))));

    let path = root.join("lead/s.jsonl");
    let of = path.clone();
    let lead_of = |of: &str, text: &str| {
        let state = format!(
            "{{\"type\":\"custom\",\"id\":\"00000001\",\"parentId\":null,\"timestamp\":\"x\",\"customType\":\
             \"pi-herdsman-lead-state\",\"data\":{{\"instanceId\":\"{ID}\",\"pendingAsk\":{{\"askId\":\"{ID}\",\
             \"question\":\"{text}\",\"text\":\"{text}\"}}}}}}\n"
        );
        [header_of(of, text), state.into_bytes()].concat()
    };
    let lead = |text: &str| lead_of("s", text);
    let mut lead_session = target("lead session", path, &["oversize", "growing"], lead, move || {
        let mut file = SessionFile::new(&of, session("s"));
        verdict(&file.look().and_then(|()| file.state()))
    });
    lead_session.others = Some(lead_of("another", SECRET));
    targets.push(lead_session);

    let journal = root.join("journal");
    let segment = |text: &str| {
        let (message, made) = (letter(text), directory_in_memory());
        let bytes = message.to_bytes().unwrap();
        let event = Event::Received { id: message.id, bytes: &bytes, message: Some(&message), refused: None };
        Journal::open(made.path()).unwrap().append(&[event], at(1)).unwrap();
        std::fs::read(made.path().join("1970-01.jsonl")).unwrap()
    };
    let path = journal.join("1970-01.jsonl");
    // A month has no size; what is no line of it is passed over.
    targets.push(target("journal", path, &["oversize", "growing"], segment, move || {
        verdict(&Journal::open(&journal).map(|mut journal| journal.mail()))
    }));

    let of = root.join("drafts");
    let draft = |text: &str| {
        let made = directory_in_memory();
        let draft = draft(text);
        drafts::save(made.path(), &draft).unwrap();
        std::fs::read(drafts::path(made.path(), &draft.key())).unwrap()
    };
    targets.push(target("draft", drafts::path(&of, &self::draft("").key()), NOTHING, draft, move || {
        verdict(&drafts::load_all(&of))
    }));

    let state = StateDir::at(&root.join("state"), "h".as_ref());
    let path = state.of_socket().join("identity.json");
    let identity = |text: &str| {
        let mut identity = Identity::new(Role::Chief);
        identity.lead_tools.push(text.to_owned());
        let made = directory_in_memory();
        let state = StateDir::open(made.path(), "h".as_ref()).unwrap();
        state.write_identity(&identity).unwrap();
        std::fs::read(state.of_socket().join("identity.json")).unwrap()
    };
    let of = state.clone();
    targets.push(target("identity", path, NOTHING, identity, move || verdict(&of.known_identity())));

    let path = state.root().join("VERSION");
    targets.push(target(
        "version",
        path,
        NOTHING,
        |_| b"1\n".to_vec(),
        move || verdict(&words(state.version() == Ok(Some(1)), false)),
    ));

    let ids = |text: &str| if text == GOOD { ID } else { "bbbbbbbb-bbbb-4ccc-8ddd-eeeeeeeeeeee" };
    let path = root.join("sidecar/chief.flock");
    let of = path.clone();
    // Of a process that no system has.
    let line = move |text: &str| {
        format!("{{\"v\":1,\"claim\":\"{}\",\"pid\":2147483646}}\n", ids(text)).into_bytes()
    };
    targets.push(target("advisory lock", path, &["oversize", "growing"], line, move || {
        let taken = Sidecar::take(&of);
        let dead = taken.ok().flatten().map(|lock| lock.dead()).unwrap_or_default();
        let has = |text| dead.contains(&Uuid::parse(ids(text)).unwrap());
        verdict(&words(has(GOOD), has(SECRET)))
    }));

    let path = root.join("config/config.toml");
    let of = path.clone();
    let config = |text: &str| format!("keep_days = {}\n", if text == GOOD { 11 } else { 22 }).into_bytes();
    targets.push(target("configuration", path, NAMED, config, move || {
        let days = Config::load(&of, true).ok().and_then(|it| it.keep_days).map(u32::from);
        verdict(&words(days == Some(11), days == Some(22)))
    }));

    let path = root.join("named/a.md");
    let of = path.clone();
    targets.push(target(
        "attachment",
        path,
        NAMED,
        |text| text.as_bytes().to_vec(),
        move || verdict(&named::read(&of, 8_192).map(|bytes| Untrusted::from_bytes_lossy(&bytes))),
    ));
    targets
}

fn draft(text: &str) -> Draft {
    Draft {
        session: session("s"),
        ask: None,
        instance: None,
        lease: None,
        from: None,
        text: text.into(),
        at: at(1),
    }
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    chmod(path, 0o600);
}

fn remove(path: &Path) {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir(path).unwrap(),
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

fn make(path: &Path, kind: FileType, device: u64) {
    rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device).unwrap();
}

/// A reader in a thread of its own, so that one which hangs is seen.
fn read_in_time(target: &Target, what: &str) -> Verdict {
    let (sender, done) = mpsc::channel();
    let read = Arc::clone(&target.read);
    std::thread::spawn(move || sender.send(read()));
    done.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{}, {what}: {error}", target.name))
}

/// Its name, and what makes it.
type Form = (&'static str, Box<dyn Fn(&Path)>);

/// The forms a file can have, each made at the path it is given.
fn forms(target: &Target, elsewhere: &Path) -> Vec<Form> {
    let secret = elsewhere.join("secret");
    put(&secret, &target.secret);
    let good = target.good.clone();
    let padded = [&good[..], &vec![b' '; 4 << 20], b"\n"].concat();
    let deep = [b"{\"x\":", &vec![b'['; 100_000][..], &vec![b']'; 100_000], b"}\n"].concat();
    let bare = [vec![b'['; 4_000], vec![b']'; 4_000]].concat();
    let toml = [b"x = ", &vec![b'['; 30_000][..], &vec![b']'; 30_000], b"\n"].concat();
    let with = |bytes: Vec<u8>, mode: u32| {
        move |path: &Path| {
            put(path, &bytes);
            chmod(path, mode);
        }
    };
    let is_claim = target.name == "claim";
    let mut forms: Vec<Form> = vec![
        ("symlink", Box::new(move |path| symlink(&secret, path).unwrap())),
        ("dangling link", Box::new(|path| symlink("nowhere", path).unwrap())),
        ("link to itself", Box::new(|path| symlink(path, path).unwrap())),
        ("link to a device", Box::new(|path| symlink("/dev/zero", path).unwrap())),
        ("FIFO", Box::new(|path| make(path, FileType::Fifo, 0))),
        ("socket", Box::new(|path| make(path, FileType::Socket, 0))),
        ("directory", Box::new(|path| std::fs::create_dir(path).unwrap())),
        ("empty", Box::new(with(Vec::new(), 0o600))),
        ("binary", Box::new(with((0..=255).rev().collect(), 0o600))),
        ("deep", Box::new(with(deep, 0o600))),
        ("deep and small", Box::new(with(bare, 0o600))),
        ("deep TOML", Box::new(with(toml, 0o600))),
        ("group-writable", Box::new(with(good.clone(), 0o620))),
        ("writable by all", Box::new(with(good.clone(), 0o602))),
        ("oversize", Box::new(with(if is_claim { vec![b' '; 4096] } else { padded }, 0o600))),
        ("sparse", {
            // A month of the journal is read to its end, however long.
            let size = if target.name == "journal" { 64 << 20 } else { 1_u64 << 40 };
            Box::new(move |path| {
                put(path, b"");
                std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(size).unwrap();
            })
        }),
    ];
    let (linked, other) = (good.clone(), elsewhere.join("other name"));
    forms.push((
        "hard link",
        Box::new(move |path| {
            put(path, &linked);
            remove(&other);
            std::fs::hard_link(path, &other).unwrap();
        }),
    ));
    if let Some(others) = target.others.clone() {
        forms.push(("another's", Box::new(with(others, 0o600))));
    }
    if is_root() {
        forms.push((
            "foreign",
            Box::new(move |path| {
                put(path, &good);
                std::os::unix::fs::chown(path, Some(12_345), None).unwrap();
            }),
        ));
        forms.push(("device", Box::new(|path| make(path, FileType::CharacterDevice, 0x105))));
    }
    forms
}

#[test]
fn every_file_that_is_read_is_refused_in_every_hostile_form() {
    let directory = directory_in_memory();
    let elsewhere = directory_in_memory();
    let targets = targets(directory.path());
    let mut cases = 0;
    let mut wrong = Vec::new();
    for target in &targets {
        put(&target.path, &target.good);
        assert_eq!(read_in_time(target, "good"), Verdict::Good, "{}", target.name);
        for (form, make) in forms(target, elsewhere.path()) {
            remove(&target.path);
            make(&target.path);
            // What a person leads to is what is meant.
            let expected = match (target.takes.contains(&form), form) {
                (true, "symlink") => Verdict::Secret,
                (true, _) => Verdict::Good,
                (false, _) => Verdict::Refused,
            };
            let found = read_in_time(target, form);
            if found != expected {
                wrong.push(format!("{}, {form}: {found:?} in place of {expected:?}", target.name));
            }
            cases += 1;
        }
        remove(&target.path);
        put(&target.path, &target.good);
        assert_eq!(read_in_time(target, "good again"), Verdict::Good, "{}", target.name);
        remove(&target.path);
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(cases, targets.len() * if is_root() { 19 } else { 17 } + 2);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_to_an_end() {
    let directory = directory_in_memory();
    for target in targets(directory.path()) {
        put(&target.path, &target.good);
        let (done, path) = (Arc::new(AtomicBool::new(false)), target.path.clone());
        let is_done = Arc::clone(&done);
        let (sender, begun) = mpsc::channel();
        // By holes, faster than anybody reads.
        let writer = std::thread::spawn(move || {
            let file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            let started = Instant::now();
            for megabytes in 2_u64.. {
                file.set_len(megabytes << 20).unwrap();
                let _ = sender.send(());
                std::thread::sleep(Duration::from_micros(100));
                if is_done.load(Ordering::Relaxed) || started.elapsed() > 2 * PATIENCE {
                    return;
                }
            }
        });
        begun.recv_timeout(PATIENCE).unwrap();
        let found = read_in_time(&target, "growing");
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        // By the time it is looked at, a session may be larger than one is ever read.
        if target.name != "lead session" || found == Verdict::Secret {
            let expected = if target.takes.contains(&"growing") { Verdict::Good } else { Verdict::Refused };
            assert_eq!(found, expected, "{}", target.name);
        }
        remove(&target.path);
    }
}

/// Reads each target over and over while what stands there is swapped `rounds` times, and more often
/// until both the good file and one that is refused were met.
fn swapped(rounds: usize) {
    let directory = directory_in_memory();
    let elsewhere = directory_in_memory();
    for target in targets(directory.path()) {
        let (secret, aside) = (elsewhere.path().join("secret"), elsewhere.path().join("aside"));
        put(&secret, &target.secret);
        put(&target.path, &target.good);
        let done = Arc::new(AtomicBool::new(false));
        let (sender, counted) = mpsc::channel();
        let met = Arc::new(AtomicUsize::new(0));
        let (read, is_done, meets) = (Arc::clone(&target.read), Arc::clone(&done), Arc::clone(&met));
        std::thread::spawn(move || {
            let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
            while !is_done.load(Ordering::Relaxed) {
                *counts.entry(read()).or_default() += 1;
                let both = [Verdict::Good, Verdict::Refused].iter().filter(|it| counts.contains_key(it));
                meets.store(both.count(), Ordering::Relaxed);
            }
            sender.send(counts)
        });
        let bigger = [&target.good[..], &vec![b' '; 300 << 10]].concat();
        let others = target.others.as_ref().unwrap_or(&bigger);
        let started = Instant::now();
        let mut swap = 0;
        while swap < rounds || (met.load(Ordering::Relaxed) < 2 && started.elapsed() < PATIENCE) {
            match swap % 8 {
                1 => symlink(&secret, &aside).unwrap(),
                3 => make(&aside, FileType::Fifo, 0),
                5 => put(&aside, others),
                7 => put(&aside, &bigger),
                _ => put(&aside, &target.good),
            }
            std::fs::rename(&aside, &target.path).unwrap();
            swap += 1;
        }
        done.store(true, Ordering::Relaxed);
        let counts = counted.recv_timeout(PATIENCE);
        let counts = counts.unwrap_or_else(|error| panic!("{}: it hangs ({error})", target.name));
        println!("{}: {counts:?} in {swap} swaps", target.name);
        let follows = target.takes.contains(&"symlink");
        assert!(follows || !counts.contains_key(&Verdict::Secret), "{}: {counts:?}", target.name);
        for verdict in [Verdict::Good, Verdict::Refused] {
            assert!(counts.contains_key(&verdict), "{} never {verdict:?}: {counts:?}", target.name);
        }
        remove(&target.path);
    }
}

#[test]
fn a_file_that_is_swapped_while_it_is_read_gives_its_own_content_or_none() {
    swapped(1_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_file_that_is_swapped_ten_thousand_times_gives_its_own_content_or_none() {
    swapped(10_000);
}
