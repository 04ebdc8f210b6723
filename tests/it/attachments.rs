//! Attachments: what becomes of the files named beside a message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use headman::chief::attach::{
    self, AttachError, Attached, Draft, FileArgument, Form, Heading, Limits, LimitsError, Rendered, Why,
};
use headman::contract::{Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use headman::disk::Unreadable;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::golden::{base64, vectors};
use crate::support::DEADLINE;

/// A working directory and a data root beside it.
struct Desk {
    cwd: PathBuf,
    data_root: PathBuf,
    _dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let desk = Self { cwd: real.join("cwd"), data_root: real.join("agent/pi-herdsman"), _dir: dir };
        std::fs::create_dir(&desk.cwd).unwrap();
        std::fs::create_dir_all(desk.results()).unwrap();
        desk
    }

    fn results(&self) -> PathBuf {
        self.data_root.join("results")
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn config(&self, content: impl AsRef<[u8]>) {
        std::fs::write(self.data_root.join("config.json"), content).unwrap();
    }

    fn arguments<A: AsRef<OsStr>>(&self, files: &[A]) -> Vec<FileArgument> {
        files.iter().map(|file| FileArgument::new(file, &self.cwd)).collect()
    }

    fn limits(&self) -> Limits {
        Limits::load(&self.data_root).unwrap()
    }

    fn render<A: AsRef<OsStr>>(&self, files: &[A]) -> Result<Rendered, AttachError> {
        let draft = Draft { text: &"m".into(), heading: Heading::Message, files: &self.arguments(files) };
        attach::render(&draft, &self.data_root, self.limits(), |text| measure(Kind::ChiefMessage, text))
    }
}

/// The record behind the recorded byte counts.
fn measure(kind: Kind, text: &Untrusted) -> usize {
    let id = Uuid::random();
    Message {
        id,
        lease: id,
        kind,
        from: SessionId::new("chief").unwrap(),
        to: SessionId::new("lead").unwrap(),
        lead: SessionId::new("lead").unwrap(),
        ask: kind.has_ask().then_some(id),
        text: text.clone(),
        created_at: Timestamp::from_millis(1_796_026_361_029),
    }
    .byte_len()
}

/// Fails where `work` would wait for ever.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(DEADLINE).expect("it hangs or panicked")
}

fn forms(rendered: &Rendered) -> Vec<Form> {
    rendered.files.iter().map(|file| file.form).collect()
}

#[test]
fn every_vector_is_rendered_as_recorded() {
    let vectors = vectors("attachments");
    let desk = Desk::new();
    for (name, content) in vectors["files"].as_object().unwrap() {
        if vectors["links"].get(name).is_none() {
            desk.file(name, base64(content.as_str().unwrap()));
        }
    }
    for (name, target) in vectors["links"].as_object().unwrap() {
        symlink(target.as_str().unwrap(), desk.cwd.join(name)).unwrap();
    }
    for (id, content) in vectors["results"].as_object().unwrap() {
        std::fs::write(desk.results().join(id), base64(content.as_str().unwrap())).unwrap();
    }
    std::fs::create_dir(desk.cwd.join("dir")).unwrap();
    let cwd = desk.cwd.to_str().unwrap();

    let (mut rendered, mut refused) = (0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let number = |key: &str| usize::try_from(case[key].as_u64().unwrap()).unwrap();
        desk.config(format!(
            r#"{{"inlineAttachmentLimitBytes":{},"mailboxPayloadLimitBytes":{}}}"#,
            case["inlineAttachmentLimitBytes"], case["mailboxPayloadLimitBytes"]
        ));
        let files: Vec<&str> =
            case["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
        let heading = match case["heading"].as_str().unwrap() {
            "Message" => Heading::Message,
            "Reply" => Heading::Reply,
            "Question" => Heading::Question,
            other => panic!("{other}"),
        };
        let kind = match case["kind"].as_str().unwrap() {
            "chief_message" => Kind::ChiefMessage,
            "chief_reply" => Kind::ChiefReply,
            "lead_message" => Kind::LeadMessage,
            other => panic!("{other}"),
        };
        let text = Untrusted::from(case["message"].as_str().unwrap());
        let draft = Draft { text: &text, heading, files: &desk.arguments(&files) };
        let result = attach::render(&draft, &desk.data_root, desk.limits(), |text| measure(kind, text));
        let Some(error) = case["error"].as_str() else {
            let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
            let expected = case["text"].as_str().unwrap();
            assert_eq!(result.text, expected.replace("{CWD}", cwd).as_str(), "{name}");
            let grown = expected.matches("{CWD}").count() * cwd.len();
            let recorded = expected.matches("{CWD}").count() * number("cwd_len");
            assert_eq!(result.bytes + recorded, number("record_bytes_here") + grown, "{name}");
            rendered += 1;
            continue;
        };
        let given = (*files.last().unwrap_or(&"")).to_owned();
        let expected = if error.ends_with("not a regular file") {
            AttachError::File { given, why: Unreadable::NotRegular("a directory") }
        } else if error.contains("ENOENT") {
            AttachError::File { given, why: Unreadable::Missing }
        } else if error == "Message must not be empty" {
            AttachError::Blank
        } else if error.starts_with("Unknown result ref") {
            AttachError::UnknownResult { given }
        } else if error.ends_with("invalid result request id") {
            AttachError::NoResultId { given }
        } else {
            let mut numbers = error.split(' ').filter_map(|word| word.parse().ok());
            let (bytes, limit) = (numbers.next().unwrap(), numbers.next().unwrap());
            AttachError::TooLarge { bytes, limit, files: 0 }
        };
        assert_eq!(result, Err(expected), "{name}");
        refused += 1;
    }
    assert_eq!((rendered, refused), (15, 10));
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting_for_it() {
    let desk = Desk::new();
    mknodat(CWD, desk.cwd.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(desk.cwd.join("socket")).unwrap();
    symlink("fifo", desk.cwd.join("to-fifo")).unwrap();
    symlink("loop", desk.cwd.join("loop")).unwrap();
    desk.file("a", "x");
    mknodat(
        CWD,
        desk.results().join("0123abcd-1111-4222-8333-444444444444"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    in_time(move || {
        for (name, kind) in [
            ("fifo", "a FIFO"),
            ("to-fifo", "a FIFO"),
            ("socket", "a socket"),
            ("/dev/zero", "a device"),
            (".", "a directory"),
            ("", "a directory"),
            ("/", "a directory"),
            ("result:0123abcd-1111-4222-8333-444444444444", "a FIFO"),
        ] {
            let error = desk.render(&["a", name]).unwrap_err();
            let why = Unreadable::NotRegular(kind);
            assert_eq!(error, AttachError::File { given: name.to_owned(), why }, "{name}");
            assert_eq!(error.hint(), "Name a regular file");
        }
        for (name, reason) in [("loop", rustix::io::Errno::LOOP), ("a/b", rustix::io::Errno::NOTDIR)] {
            let Err(AttachError::File { why: Unreadable::Disk(error), .. }) = desk.render(&[name]) else {
                panic!("{name}")
            };
            assert_eq!(error.reason, reason);
        }
    });
}

#[test]
fn a_file_is_named_by_where_it_really_is() {
    let desk = Desk::new();
    let real = desk.file("a.md", "x");
    std::fs::create_dir_all(desk.cwd.join("d/e")).unwrap();
    std::fs::write(desk.cwd.join("d/a.md"), "in d").unwrap();
    symlink("a.md", desk.cwd.join("one")).unwrap();
    symlink(desk.cwd.join("one"), desk.cwd.join("d/two")).unwrap();
    symlink("d/e", desk.cwd.join("elsewhere")).unwrap();
    let here = desk.cwd.join("d/here");
    symlink(&desk.cwd, &here).unwrap();

    let all = ["d/two", "one", "a.md", ".//a.md", "a.md/", "none/../a.md", real.to_str().unwrap()];
    let rendered = desk.render(&all).unwrap();
    let only = [Attached { name: real.to_str().unwrap().into(), bytes: 1, form: Form::Inline }];
    assert_eq!(rendered.files, only);
    // The working directory itself may be a link; and `..` is resolved before links are followed.
    for argument in [
        FileArgument::new("a.md", &here),
        FileArgument::new("elsewhere/../a.md", &desk.cwd),
        FileArgument::new("d/two", desk.cwd.join("x/..")),
    ] {
        let draft = Draft { text: &"m".into(), heading: Heading::Message, files: &[argument] };
        let rendered = attach::render(&draft, &desk.data_root, desk.limits(), Untrusted::utf8_len).unwrap();
        assert_eq!(rendered.files, only);
    }

    let unnameable = OsStr::from_bytes(b"\xff.md");
    std::fs::write(desk.cwd.join(unnameable), "x").unwrap();
    let error = desk.render(&[unnameable]).unwrap_err();
    assert_eq!(error, AttachError::Unnameable { given: "\u{fffd}.md".to_owned() });
}

#[test]
fn a_result_keeps_its_reference_and_tells_its_path_while_it_is_not_inline() {
    let desk = Desk::new();
    let (text, binary) = ("0123abcd-1111-4222-8333-444444444444", "0123abcd-1111-7222-f333-555555555555");
    std::fs::write(desk.results().join(text), "done\n").unwrap();
    // It may be a link; the path told is the real one, escaped.
    let stored = desk.file("st&red", b"\xff");
    symlink(&stored, desk.results().join(binary)).unwrap();

    let rendered = desk.render(&[format!("result:{text}"), format!("result:{binary}")]).unwrap();
    let path = stored.to_str().unwrap().replace('&', "&amp;");
    let expected = format!(
        "<file name=\"result:{text}\" bytes=\"5\">\ndone\n\n</file>\n\n\
         <file name=\"result:{binary}\" path=\"{path}\" bytes=\"1\" />\n\nMessage:\nm"
    );
    assert_eq!(rendered.text, expected.as_str());
    assert_eq!(forms(&rendered), [Form::Inline, Form::Reference(Why::NotText)]);

    // By path it is the same file, and is named as it was named first.
    let by_path = desk.results().join(text).to_str().unwrap().to_owned();
    let both = [by_path.clone(), format!("result:{text}")];
    assert_eq!(desk.render(&both).unwrap().files[0].name, by_path.as_str());
    assert_eq!(desk.render(&both).unwrap().files.len(), 1);

    let error = desk.render(&["result:writer#2"]).unwrap_err();
    assert_eq!(error, AttachError::ResultOfAgent { given: "result:writer#2".to_owned() });
    let told = format!("{error}. {}", error.hint());
    assert!(told.contains("within one Pi session") && told.contains("by its id"), "{told}");
    // A file of such a name is named with its directory.
    desk.file("result:writer#2", "x");
    assert_eq!(forms(&desk.render(&["./result:writer#2"]).unwrap()), [Form::Inline]);
}

#[test]
fn files_become_inline_in_order_while_there_is_room() {
    let desk = Desk::new();
    let files = ["a", "b", "c", "d", "e"];
    for (name, size) in files.iter().zip([3_000, 4_000, 2_000, 1, 0]) {
        desk.file(name, "x".repeat(size));
    }
    let (inline, no_room) = (Form::Inline, Form::Reference(Why::NoRoom));
    let rendered = desk.render(&files).unwrap();
    assert_eq!(forms(&rendered), [inline, inline, no_room, inline, inline]);
    let reversed = desk.render(&["c", "b", "a", "d"]).unwrap();
    assert_eq!(forms(&reversed), [inline, inline, no_room, inline]);
    // To the byte: one less, and what was inline last is a reference.
    let draft = Draft { text: &"m".into(), heading: Heading::Message, files: &desk.arguments(&files) };
    let with = |record| {
        let limits = Limits { inline: 131_072, record };
        attach::render(&draft, &desk.data_root, limits, |text| measure(Kind::ChiefMessage, text))
    };
    assert_eq!(with(rendered.bytes).unwrap(), rendered);
    let less = with(rendered.bytes - 1).unwrap();
    assert_eq!(forms(&less), [inline, inline, no_room, inline, no_room]);
    // Not even references fit.
    let Err(AttachError::TooLarge { bytes, limit: 400, files: 5 }) = with(400) else { panic!() };
    assert!(bytes > 400);

    // What needs escapes in JSON takes more room than it has bytes.
    desk.file("quotes", "\"".repeat(4_100));
    desk.file("plain", "x".repeat(4_100));
    assert_eq!(forms(&desk.render(&["quotes"]).unwrap()), [no_room]);
    assert_eq!(forms(&desk.render(&["plain"]).unwrap()), [inline]);
}

#[test]
fn only_text_is_put_in_and_a_byte_order_mark_is_left_out() {
    let desk = Desk::new();
    for (content, form) in [
        (&b"a\0b"[..], Form::Reference(Why::NotText)),
        (b"a\xc0\x80", Form::Reference(Why::NotText)),
        (b"\xed\xa0\x80", Form::Reference(Why::NotText)),
        (b"\xff\xfea\0", Form::Reference(Why::NotText)),
        ("\u{feff}".as_bytes(), Form::Inline),
        ("\u{feff}\u{feff}a\u{feff}".as_bytes(), Form::Inline),
        ("\u{1}\u{1b}[2J\u{202e}\r\n".as_bytes(), Form::Inline),
    ] {
        let path = desk.file("f", content);
        let rendered = desk.render(&["f"]).unwrap();
        assert_eq!(forms(&rendered), [form], "{content:?}");
        if form == Form::Inline {
            let shown = std::str::from_utf8(content).unwrap();
            let shown = shown.strip_prefix('\u{feff}').unwrap_or(shown);
            let (path, bytes) = (path.to_str().unwrap(), content.len());
            let expected =
                format!("<file name=\"{path}\" bytes=\"{bytes}\">\n{shown}\n</file>\n\nMessage:\nm");
            assert_eq!(rendered.text, expected.as_str());
        }
    }
    // Three bytes more than the record has room for may still fit.
    let plain = measure(Kind::ChiefMessage, &desk.render(&[desk.file("f", "")]).unwrap().text);
    let room = 8_192 - plain - 3;
    desk.file("f", format!("\u{feff}{}", "x".repeat(room)));
    let rendered = desk.render(&["f"]).unwrap();
    assert_eq!((forms(&rendered), rendered.bytes), (vec![Form::Inline], 8_192));
}

#[test]
fn the_limits_are_those_the_user_configured() {
    let desk = Desk::new();
    assert_eq!(desk.limits(), Limits { inline: 131_072, record: 8_192 }, "without a file");
    for (config, inline, record) in [
        ("{}", 131_072, 8_192),
        (r#"{"inlineAttachmentLimitBytes":1024,"mailboxPayloadLimitBytes":1024}"#, 1_024, 1_024),
        (r#"{"inlineAttachmentLimitBytes":1048576,"mailboxPayloadLimitBytes":1048576}"#, 1_048_576, 8_192),
        (r#"{"inlineAttachmentLimitBytes":1,"inlineAttachmentLimitBytes":2e3}"#, 2_000, 8_192),
        (r#" {"mailboxPayloadLimitBytes" : 4096.0 }"#, 131_072, 4_096),
    ] {
        desk.config(config);
        assert_eq!(desk.limits(), Limits { inline, record }, "{config}");
    }
    let path = desk.data_root.join("config.json");
    for key in ["inlineAttachmentLimitBytes", "mailboxPayloadLimitBytes"] {
        for value in ["1023", "1048577", "2000.5", "-2000", "1e400", "\"2000\"", "null", "true", "[2000]"] {
            desk.config(format!(r#"{{"{key}":{value}}}"#));
            let error = Limits::load(&desk.data_root).unwrap_err();
            assert_eq!(error, LimitsError::Invalid { path: path.clone(), key }, "{value}");
            assert!(error.to_string().contains(key), "{error}");
        }
    }
    for broken in ["", "[]", "null", "{", "\u{feff}{}", "{\"a\":1}x"] {
        desk.config(broken);
        let expected = Err(LimitsError::NotObject { path: path.clone() });
        assert_eq!(Limits::load(&desk.data_root), expected, "{broken:?}");
    }
    desk.config(format!("{{}}{}", " ".repeat(1 << 20)));
    let unreadable = |why| Err(LimitsError::Unreadable { path: path.clone(), why });
    assert_eq!(Limits::load(&desk.data_root), unreadable(Unreadable::TooLarge(1 << 20)));

    // It may be a link; but nothing that is no file.
    std::fs::rename(&path, desk.cwd.join("elsewhere.json")).unwrap();
    symlink(desk.file("elsewhere.json", r#"{"mailboxPayloadLimitBytes":2048}"#), &path).unwrap();
    assert_eq!(desk.limits().record, 2_048);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(Limits::load(&desk.data_root), unreadable(Unreadable::NotRegular("a directory")));
    std::fs::remove_dir(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let data_root = desk.data_root.clone();
    let loaded = in_time(move || Limits::load(&data_root));
    assert_eq!(loaded, unreadable(Unreadable::NotRegular("a FIFO")));
}

#[test]
fn other_keys_of_the_configuration_are_not_looked_at() {
    let desk = Desk::new();
    desk.config(
        r#"{"spawnPlacement":"nowhere","contextRetirement":3,"ofALaterRelease":{"a":[]},
            "mailboxPayloadLimitBytes":2048}"#,
    );
    assert_eq!(desk.limits(), Limits { inline: 131_072, record: 2_048 });
}

#[test]
fn a_configured_limit_holds_for_a_text_alone() {
    let desk = Desk::new();
    desk.config(r#"{"mailboxPayloadLimitBytes":1024}"#);
    let with = |length: usize| {
        let text = Untrusted::from("x".repeat(length));
        let draft = Draft { text: &text, heading: Heading::Message, files: &[] };
        attach::render(&draft, &desk.data_root, desk.limits(), |text| measure(Kind::ChiefMessage, text))
    };
    let room = 1_024 - measure(Kind::ChiefMessage, &"".into());
    assert_eq!(with(room).unwrap().bytes, 1_024);
    let error = with(room + 1).unwrap_err();
    assert_eq!(error, AttachError::TooLarge { bytes: 1_025, limit: 1_024, files: 0 });
    assert!(error.hint().contains("mailboxPayloadLimitBytes"));
}

#[test]
fn a_huge_file_is_a_reference_at_once() {
    let desk = Desk::new();
    let path = desk.file("huge", "");
    // As large as the file system allows, without a block of it.
    let size = (40..63)
        .rev()
        .map(|bits| 1u64 << bits)
        .find(|size| std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(*size).is_ok());
    let size = size.unwrap();
    let rendered = in_time(move || desk.render(&["huge"])).unwrap();
    assert_eq!(rendered.files[0].bytes, size);
    assert_eq!(forms(&rendered), [Form::Reference(Why::OverInlineLimit)]);
    assert!(rendered.text.to_str_lossy().contains(&format!("bytes=\"{size}\" />")));
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_holds_more_than_its_size_says_is_a_reference() {
    let desk = Desk::new();
    let rendered = desk.render(&["/proc/version"]).unwrap();
    assert_eq!(rendered.text, "<file name=\"/proc/version\" bytes=\"0\" />\n\nMessage:\nm");
    assert_eq!(forms(&rendered), [Form::Reference(Why::Changed)]);
}

#[test]
fn a_file_that_grows_all_the_time_is_never_half_in_the_message() {
    let desk = Desk::new();
    let path = desk.file("log", "");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let stop = stop.clone();
        move || {
            use std::io::Write;
            let mut log = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                log.write_all(b"0123456789").unwrap();
                if log.metadata().unwrap().len() > 7_000 {
                    log.set_len(0).unwrap();
                }
            }
        }
    });
    let mut seen = std::collections::HashSet::new();
    let (mut rounds, end) = (0, std::time::Instant::now() + DEADLINE);
    while rounds < 500 || !seen.contains(&Form::Reference(Why::Changed)) {
        rounds += 1;
        assert!(std::time::Instant::now() < end, "nothing was written meanwhile");
        let rendered = desk.render(&["log"]).unwrap();
        let (form, bytes) = (rendered.files[0].form, rendered.files[0].bytes);
        seen.insert(form);
        if form == Form::Inline {
            let text = rendered.text.to_str_lossy().into_owned();
            let content = text.split_once(">\n").unwrap().1.split_once("\n</file>").unwrap().0;
            assert_eq!(content.len() as u64, bytes);
            assert!(content.bytes().zip((b'0'..=b'9').cycle()).all(|(read, written)| read == written));
        }
        assert!(matches!(form, Form::Inline | Form::Reference(Why::Changed)), "{form:?}");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

/// What files are called, and how a message writes that.
const NAMES: [(&str, &str); 5] = [
    ("a", "a"),
    ("q\"&<>", "q&quot;&amp;&lt;&gt;"),
    ("b\u{7}\u{85}", "b&#x7;&#x85;"),
    ("ünï", "ünï"),
    ("s p", "s p"),
];

fn any_content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "a",
        "word ",
        "\"",
        "\\",
        "\n",
        "\u{1}",
        "ü",
        "😀",
        "</file>",
        "\u{feff}",
        "<file name=\"x\" />",
    ]);
    let text = prop::collection::vec(piece, 0..1_200).prop_map(|pieces| pieces.concat().into_bytes());
    prop_oneof![
        6 => text.clone(),
        1 => text.prop_map(|text| [&text[..], b"\0"].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_record_never_exceeds_its_limit_and_every_file_is_in_it_once(
        contents in prop::collection::vec(any_content(), NAMES.len()),
        named in prop::collection::vec((0..NAMES.len(), 0..5usize), 0..9),
        text in prop::sample::select(vec!["m", "\u{feff} x\n\n", "Message:\n<file />", "\"\"\"\""]),
        inline in 0..6_000usize,
        record in 250..8_193usize,
    ) {
        let desk = Desk::new();
        let dir = desk.cwd.to_str().unwrap();
        for ((name, _), content) in NAMES.iter().zip(&contents) {
            desk.file(name, content);
            symlink(name, desk.cwd.join(format!("link {name}"))).unwrap();
        }
        let arguments: Vec<String> = named.iter().map(|(file, spelling)| {
            let name = NAMES[*file].0;
            match spelling {
                0 => name.to_owned(),
                1 => format!("./{name}"),
                2 => format!("{dir}/{name}"),
                3 => format!("none/../{name}"),
                _ => format!("link {name}"),
            }
        }).collect();
        let mut order: Vec<usize> = Vec::new();
        for (file, _) in &named {
            if !order.contains(file) {
                order.push(*file);
            }
        }

        let reference = |file: usize| {
            format!("<file name=\"{dir}/{}\" bytes=\"{}\" />\n\n", NAMES[file].1, contents[file].len())
        };
        let readable = |file: usize| {
            let content = std::str::from_utf8(&contents[file]).ok()?;
            let content = content.strip_prefix('\u{feff}').unwrap_or(content);
            let (name, bytes) = (NAMES[file].1, contents[file].len());
            (bytes <= inline && !content.contains('\0'))
                .then(|| format!("<file name=\"{dir}/{name}\" bytes=\"{bytes}\">\n{content}\n</file>\n\n"))
        };
        let whole = |sections: &[String]| {
            let heading = if sections.is_empty() { "" } else { "Reply:\n" };
            Untrusted::from(format!("{}{heading}{text}", sections.concat()))
        };
        let size = |text: &Untrusted| measure(Kind::ChiefReply, text);
        let mut sections: Vec<String> = order.iter().map(|file| reference(*file)).collect();

        let draft = Draft { text: &text.into(), heading: Heading::Reply, files: &desk.arguments(&arguments) };
        match attach::render(&draft, &desk.data_root, Limits { inline, record }, size) {
            Err(AttachError::TooLarge { bytes, limit, files }) => {
                prop_assert_eq!((bytes, limit, files), (size(&whole(&sections)), record, order.len()));
                prop_assert!(bytes > record);
            }
            Err(error) => prop_assert!(false, "{}", error),
            Ok(rendered) => {
                prop_assert!(size(&rendered.text) <= record);
                prop_assert_eq!(size(&rendered.text), rendered.bytes);
                prop_assert_eq!(rendered.files.len(), order.len());
                for (at, (file, attached)) in order.iter().zip(&rendered.files).enumerate() {
                    prop_assert_eq!(&attached.name, &Untrusted::from(format!("{dir}/{}", NAMES[*file].0)));
                    prop_assert_eq!(attached.bytes, contents[*file].len() as u64);
                    let before = readable(*file).map(|section| std::mem::replace(&mut sections[at], section));
                    let fits = before.is_some() && size(&whole(&sections)) <= record;
                    prop_assert_eq!(attached.form == Form::Inline, fits, "{:?}", attached);
                    if let (Some(before), false) = (before, fits) {
                        sections[at] = before;
                    }
                }
                prop_assert_eq!(rendered.text, whole(&sections));
            }
        }
    }
}
