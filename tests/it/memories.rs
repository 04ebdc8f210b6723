//! Lessons and orientation: their files, what may become one, what they are worth.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use headman::signals::memory::{Kind, Memory, Outcome, ranked, sanitised};
use headman::signals::store::Store;
use proptest::prelude::*;
use serde_json::Value;

use crate::cli_support::Place;
use crate::signals::session_file;

const DAY: u64 = 86_400_000;
/// 2026-03-01T12:30:45Z
const THEN: u64 = 1_772_368_245_000;

fn memory(title: &str, content: &str) -> Memory {
    Memory {
        title: title.into(),
        content: content.into(),
        kind: Kind::Lesson,
        importance: 0.9,
        confidence: 0.6,
        tags: vec!["git".into(), "a \"b\"".into()],
        source: "s-1#0000000a".into(),
        role: "developer:rust".into(),
        project: "api".into(),
        is_global: false,
        created: THEN,
    }
}

#[test]
fn a_file_says_everything_in_the_given_order() {
    let kept = memory("Never push: to main!", "Never push\nto main.");
    let file = "---\ntitle: \"Never push: to main!\"\ncontent: \"Never push\\nto main.\"\nmemory_type: \"lesson\"\n\
                importance: 0.9\nconfidence: 0.6\ntags: [\"git\",\"a \\\"b\\\"\"]\nsource: \"s-1#0000000a\"\n\
                role: \"developer:rust\"\nproject: \"api\"\nscope: \"project\"\ncreated: \"2026-03-01T12:30:45Z\"\n---\n";
    assert_eq!(kept.to_file(), file);
    assert_eq!(Memory::parse(file), Some(kept.clone()));
    assert_eq!(kept.place(), ["api", "developer"]);
    assert_eq!(kept.file_name(0), "20260301123045-never-push-to-main.md");
    assert_eq!(kept.file_name(1), "20260301123045-never-push-to-main-2.md");
    let everywhere = Memory { is_global: true, ..kept.clone() };
    assert_eq!(everywhere.place(), ["_"]);
    // What a person writes by hand.
    let by_hand = file.replace("\"Never push: to main!\"", "Never push") + "\nNotes of mine.\n";
    assert_eq!(Memory::parse(&by_hand).unwrap().title, "Never push");
    for (from, to) in [
        ("importance: 0.9", "importance: 9"),
        ("importance: 0.9", "importance: nan"),
        ("\"lesson\"", "\"story\""),
        ("\"project\"\ncreated", "\"mine\"\ncreated"),
        ("title: ", "name: "),
        ("[\"git\",", "[1,"),
        ("2026-03-01", "2026-13-01"),
        ("---\n", ""),
    ] {
        assert_eq!(Memory::parse(&file.replace(from, to)), None, "{to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_memory_says_its_file_is_read_back_and_stays_in_its_place(
        title in ".{0,60}", content in "(?s).{1,200}", project in ".{0,80}", role in ".{0,80}", nth in 0..99_usize,
    ) {
        let kept = Memory { project, role, ..memory(&title, &content) };
        prop_assert_eq!(Memory::parse(&kept.to_file()), Some(kept.clone()));
        let name = kept.file_name(nth);
        let slug = name.strip_prefix("20260301123045-").unwrap().strip_suffix(".md").unwrap();
        prop_assert!(!slug.is_empty() && slug.len() <= 40, "{}", slug);
        for part in kept.place().into_iter().chain([name]) {
            let is_plain = part.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
            prop_assert!(is_plain && !part.starts_with('.') && !part.is_empty() && part != "_" && part != "archive", "{}", part);
        }
    }
}

#[test]
fn no_name_leads_elsewhere_or_is_reserved() {
    for (name, wanted) in [
        ("api", "api"),
        ("../../etc", "-..-etc"),
        ("a/b", "a-b"),
        ("_", "__"),
        ("archive", "archive-"),
        ("..", "unnamed"),
        (" ", "unnamed"),
        (".git", "git"),
        ("\u{fc}ber", "-ber"),
    ] {
        assert_eq!(sanitised(name), wanted, "{name}");
    }
}

#[test]
fn runs_change_what_a_memory_is_worth_until_it_is_spent() {
    let mut it = memory("t", "c");
    for (outcome, wanted) in [
        (Outcome::Pass, 0.95),
        (Outcome::Pass, 1.0),
        (Outcome::Pass, 1.0),
        (Outcome::Exhausted, 0.85),
        (Outcome::Indeterminate, 0.8),
    ] {
        it.learn(outcome);
        assert_eq!(it.importance, wanted, "{outcome:?}");
    }
    for (importance, days, spent) in [
        (0.8, 1_000, false),
        (0.41, 1_000, false),
        (0.4, 90, false),
        (0.4, 91, true),
        (0.11, 0, false),
        (0.1, 0, true),
    ] {
        it.importance = importance;
        assert_eq!(it.is_spent(THEN + days * DAY), spent, "{importance} after {days}");
    }
    assert_eq!((Kind::Lesson.weights(), Kind::Orientation.weights()), ((0.9, 0.6), (0.8, 0.55)));
    for _ in 0..10 {
        it.learn(Outcome::Exhausted);
    }
    assert_eq!(it.importance, 0.0);
}

#[test]
fn what_fits_best_comes_first_and_never_more_than_five() {
    let old = |mut it: Memory, days: u64| {
        it.created = THEN - days * DAY;
        it
    };
    let all = vec![
        memory("parser", "the parser fails on tabs"),
        memory("deploy", "deploy only on monday"),
        memory("parser tests", "parser parser parser"),
        old(memory("tabs", "tabs break things"), 3_000),
        Memory { is_global: true, importance: 0.3, ..memory("parser", "everywhere, less") },
        Memory { is_global: true, importance: 0.8, ..memory("x", "everywhere, more") },
    ];
    let of = |text: &str, global| ranked(&all, text, THEN, global);
    // By hand: `parser` ranks 2 then 0, `tabs` 0 then 3 (equal counts go by place), times their age.
    assert_eq!(of("the parser and tabs", false), [0, 2, 3]);
    assert_eq!(of("parser", false), [2, 0]);
    assert_eq!(of("tabs", false), [0, 3]);
    assert_eq!(of("nothing like it", false), Vec::<usize>::new());
    assert_eq!(of("a an of", false), Vec::<usize>::new());
    assert_eq!(of("deploy", true), [1, 5, 4]);
    let many: Vec<Memory> = (0..20).map(|_| memory("parser", "parser")).collect();
    assert_eq!(ranked(&many, "parser", THEN, true), [0, 1, 2, 3, 4]);
    // The newer of equals wins only by its age: a first rank that is old against a second that is new.
    let two = [old(memory("tabs", "tabs tabs"), 3_000), memory("tabs", "once")];
    assert_eq!(ranked(&two, "tabs", THEN, false), [1, 0]);
}

fn place() -> Place {
    let place = Place::new();
    let request = "Never push to main, ask me before.\nUse the staging cluster for this.";
    fs::write(place.path("s.jsonl"), session_file(&[], request, Some("I will push to main anyway.")))
        .unwrap();
    place
}

fn add<'a>(quote: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["memory", "add", "--file", "s.jsonl", "--json", "--title", "No push", "--quote", quote];
    [&base[..], more].concat()
}

#[test]
fn only_what_an_operator_wrote_is_kept() {
    let place = place();
    for (quote, more, code, kind) in [
        ("Never push to master, ask", &[][..], 1, "not_quoted"),
        ("I will push to main anyway.", &[], 1, "not_quoted"),
        ("never push to main", &[], 1, "not_quoted"),
        ("Never", &[], 2, "usage"),
        ("password=hunter2 it is", &[], 1, "secret"),
        ("Never push to main", &["--type", "story"], 2, "usage"),
        ("Never push to main", &["--file", "absent"], 2, "usage"),
    ] {
        let ran = place.run(&add(quote, more));
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (code, &kind.into()), "{quote}: {}", ran.stderr);
    }
    assert!(!place.state_dir().exists(), "nothing was made");
    let ran = place.run(&add(
        "Never push to main, ask me before.\nUse the staging",
        &["--tag", "git", "--role", "dev:ops"],
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(
        (&json["source"], &json["project"], &json["role"]),
        (&"s-1#00000000".into(), &"w".into(), &"dev:ops".into())
    );
    let name = json["name"].as_str().unwrap();
    assert!(name.starts_with("w/dev/20") && name.ends_with("-no-push"), "{name}");
    let path = place.state_dir().join("learning").join(format!("{name}.md"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(Memory::parse(&fs::read_to_string(&path).unwrap()).is_some());
    // Three lessons and two orientations of one session, and no more; also within one second.
    for _ in 0..2 {
        assert_eq!(place.run(&add("Use the staging cluster", &[])).code, 0);
    }
    assert_eq!(place.run(&add("Use the staging cluster", &[])).json()["error"]["code"], "enough");
    for _ in 0..2 {
        assert_eq!(
            place.run(&add("Use the staging cluster", &["--type", "orientation", "--global"])).code,
            0
        );
    }
    let ran = place.run(&add("Use the staging cluster", &["--type", "orientation"]));
    assert_eq!(ran.json()["error"]["code"], "enough");
    assert_eq!(place.run(&["memory", "list"]).stdout.matches("No push").count(), 5);
}

#[test]
fn what_is_kept_is_found_shown_learnt_from_and_put_away() {
    let place = place();
    assert_eq!(place.run(&["memory", "list"]).stdout, "Nothing is kept.\n");
    assert!(!place.state_dir().exists(), "nothing was made");
    let name = |more: &[&str]| {
        place.run(&add("Never push to main", more)).json()["name"].as_str().unwrap().to_owned()
    };
    let (mine, everywhere) = (name(&[]), name(&["--global"]));
    let listed = |more: &[&str]| {
        let ran = place.run(&[&["memory", "list", "--json"][..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let lines = ran.stdout.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&[]), [everywhere.clone(), mine.clone()]);
    assert_eq!(listed(&["--project", "other"]), std::slice::from_ref(&everywhere));
    assert_eq!(listed(&["--for", "may I push?"]), [mine.clone(), everywhere.clone()]);
    let short = mine.rsplit('/').next().unwrap();
    let shown = place.run(&["memory", "show", &mine]);
    assert!(
        shown.stdout.starts_with("---\ntitle: \"No push\"\ncontent: \"Never push to main\"\n"),
        "{}",
        shown.stdout
    );
    assert_eq!(place.run(&["memory", "show", "nothing"]).code, 1);
    let learn = |outcome| place.run(&["memory", "learn", &mine, outcome, "--json"]);
    assert_eq!(learn("pass").json()["importance"], 0.95);
    for wanted in [0.8, 0.65, 0.5, 0.35, 0.2] {
        assert_eq!(learn("exhausted").json()["importance"], wanted);
    }
    let spent = learn("exhausted").json();
    assert_eq!((&spent["importance"], &spent["archived"]), (&0.05.into(), &true.into()));
    assert_eq!(spent["name"], format!("w/lead/archive/{short}"));
    assert_eq!(learn("pass").code, 1, "it is away");
    assert_eq!(
        place.run(&["memory", "archive", &everywhere, "--json"]).json()["name"],
        everywhere.replace("_/", "_/archive/")
    );
    assert_eq!(place.run(&["memory", "archive", &everywhere.replace("_/", "_/archive/")]).code, 1);
    assert_eq!((listed(&[]).len(), listed(&["--archived"]).len()), (0, 2));
}

#[test]
fn what_others_put_there_is_told_and_left_alone() {
    let place = place();
    let name = place.run(&add("Never push to main", &[])).json()["name"].as_str().unwrap().to_owned();
    let learning = place.state_dir().join("learning");
    fs::write(learning.join("w/lead/damaged.md"), "no front matter").unwrap();
    fs::write(learning.join("w/lead/large.md"), " ".repeat(70_000)).unwrap();
    std::os::unix::fs::symlink("/etc", learning.join("etc")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", learning.join("w/lead/passwd.md")).unwrap();
    let hostile = memory("a\u{1b}]0;x\u{7}b\u{202e}", "c").to_file();
    fs::write(learning.join("w/lead/hostile.md"), hostile).unwrap();
    let before = place.picture();
    let ran = place.run(&["memory", "list"]);
    ran.assert_harmless();
    assert_eq!(ran.code, 0);
    for name in ["damaged", "large", "passwd"] {
        assert!(ran.stderr.contains(&format!("w/lead/{name} can't be used")), "{}", ran.stderr);
    }
    assert!(ran.stdout.contains(&name));
    place.run(&["memory", "show", "hostile"]).assert_harmless();
    assert_eq!(place.run(&["memory", "show", "damaged"]).code, 1);
    assert_eq!(place.picture(), before, "only read");
    // A later release's directory is only looked at.
    fs::write(place.state_dir().join("VERSION"), "2\n").unwrap();
    let before = place.picture();
    assert_eq!(place.run(&["memory", "list"]).code, 0);
    for arguments in [
        &["memory", "archive", &name][..],
        &["memory", "learn", &name, "pass"],
        &add("Never push to main", &[]),
    ] {
        assert_eq!(place.run(arguments).code, 4, "{arguments:?}");
    }
    assert_eq!(place.picture(), before, "only read");
    assert!(Store::new(&place.path(""), place.path("nowhere")).list().unwrap().is_empty());
}
