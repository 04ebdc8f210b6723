//! Gating a claim: what speaks against it for free, the evidence, verdicts, and git in a hostile place.

use std::fs;
use std::path::Path;
use std::process::Command;

use headman::signals::gate::{Attempts, Evidence, MAX_VERDICT, Step, Verdict, Worthless, related, verdict};
use headman::signals::git::{self, GitError, MOST};
use serde_json::{Value, json};

use crate::cli_support::Place;
use crate::signals::{Did, session_file};

const DONE: &str =
    "All is well.\n<sup>{\"state\":\"done\",\"focus\":\"the parser\",\"next\":null,\"carry\":[]}</sup>";

fn place(rounds: &[Vec<Did>]) -> Place {
    let place = Place::new();
    fs::write(place.path("s.jsonl"), session_file(rounds, "Fix the parser", Some(DONE))).unwrap();
    place
}

fn gate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["gate", "--file", "s.jsonl", "--json"][..], more].concat()
}

fn edit() -> Vec<Did> {
    vec![Did::edit("src/a.rs", false)]
}

fn test() -> Vec<Did> {
    vec![Did::bash("cargo test", "ok", false)]
}

#[test]
fn what_speaks_against_a_claim_costs_nothing_to_find() {
    let codes = |place: &Place, more: &[&str]| {
        let ran = place.run(&gate(more));
        ran.assert_harmless();
        let json = ran.json();
        let codes: Vec<String> = json["objections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["code"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ran.code, i32::from(!codes.is_empty()), "{json}");
        (codes, json["content_only"] == true)
    };
    let dirty = place(&[edit()]);
    assert_eq!(codes(&dirty, &[]), (vec!["mutation_without_check".to_owned()], false));
    assert!(dirty.run(&gate(&[])).stdout.contains("src/a.rs"));
    assert_eq!(codes(&place(&[edit(), vec![Did::read("src/a.rs")]]), &[]), (vec![], true));
    let clean = place(&[edit(), test()]);
    assert_eq!(codes(&clean, &[]), (vec![], false));
    let plan = |text: &str| fs::write(clean.path("plan.md"), text).unwrap();
    for (text, wanted) in [
        ("# A\n- [x] a\n# B\n- [ ] b\n", vec![]),
        ("# A\n- [ ] a\n# B\n- [ ] b\n", vec!["open_phases"]),
        ("nothing\n", vec!["no_phases"]),
        ("- [x] a\nfile_exists: s.jsonl\nfile_absent: none\n", vec![]),
        ("- [x] a\nfile_exists: none\nfile_absent: s.jsonl\n", vec!["assumption", "assumption"]),
    ] {
        plan(text);
        let (found, _) = codes(&clean, &["--plan", "plan.md"]);
        assert_eq!(found, wanted, "{text}");
    }
    assert_eq!(clean.run(&gate(&["--plan", "absent.md"])).code, 4);
    // The verifier is not asked where something speaks against it already.
    let ran = dirty.run(&gate(&["--dry-run"]));
    assert!(ran.code == 1 && !ran.stdout.contains("final_answer"), "{}", ran.stdout);
    assert!(place(&[]).run(&["gate", "--file", "s.jsonl"]).stdout.contains("Nothing speaks against"));
}

#[test]
fn the_evidence_is_bounded_and_has_outcomes_only() {
    let mut rounds: Vec<Vec<Did>> = (0..200)
        .map(|nth| {
            let command = format!("./run {nth} --password=hunter2 {}\u{1b}[2J", "x".repeat(300));
            vec![Did::bash(&command, "the output of it", nth % 2 == 1)]
        })
        .collect();
    rounds.push(vec![Did::bash("cargo test", "boom\n\nCommand exited with code 101", true)]);
    rounds.push(test());
    let place = place(&rounds);
    let before = place.picture();
    let ran = place.run(&gate(&["--dry-run"]));
    ran.assert_harmless();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let json = ran.json();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    for key in ["request", "final_answer", "claim", "actions", "git_status", "git_diff", "earlier_gaps"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    assert_eq!((&json["request"], &json["final_answer"]), (&"Fix the parser".into(), &"All is well.".into()));
    assert_eq!((&json["claim"]["state"], &json["git_diff"]), (&"done".into(), &Value::Null));
    let actions = json["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 128);
    assert!(actions.iter().all(|row| row.as_str().unwrap().chars().count() <= 120));
    assert_eq!(actions[126], "bash exit 101: cargo test");
    assert_eq!(actions[127], "bash ok: cargo test");
    assert!(!ran.stdout.contains("hunter2") && !ran.stdout.contains("the output of it"));
    assert_eq!(place.picture(), before, "only read");
}

#[test]
fn a_long_answer_is_folded_where_that_is_configured() {
    let place = Place::new();
    let long: String = (0..3_000).map(|nth| format!("line {nth} of it\n")).collect();
    fs::write(place.path("s.jsonl"), session_file(&[], "x", Some(&long))).unwrap();
    let whole = place.run(&gate(&["--dry-run"])).json()["final_answer"].as_str().unwrap().to_owned();
    assert_eq!(whole, long);
    let config = "[supervisor]\nenabled = true\n[supervisor.learning]\n[supervisor.gate]\nenabled = true\n\
                  command = [\"verify\", \"--model\", \"m\"]\nmax_attempts = 2\n[supervisor.plan]\nenabled = true\n\
                  [supervisor.condense]\nenabled = true\ntokens_threshold = 5000\n";
    fs::write(place.path("c.toml"), config).unwrap();
    let ran = place.run(&gate(&["--dry-run", "--config", "c.toml"]));
    let folded = ran.json()["final_answer"].as_str().unwrap().to_owned();
    assert!(
        folded.contains("\nline 39 of it\n[... 2920 lines omitted]\nline 2960 of it\n"),
        "{folded:.2000}"
    );
    assert_eq!(ran.json()["final_entry"], "00000001");
    // The whole is written first, where that is wanted; what is not folded is not.
    fs::create_dir(place.path("spill")).unwrap();
    let ran = place.run(&gate(&["--dry-run", "--config", "c.toml", "--spill", "spill"]));
    assert_eq!(ran.json()["final_answer"], folded);
    let files: Vec<_> = fs::read_dir(place.path("spill")).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!((files.len(), fs::read_to_string(&files[0]).unwrap()), (1, long));
    assert_eq!(place.run(&gate(&["--dry-run", "--config", "c.toml", "--spill", "absent"])).code, 4);
    assert_eq!(place.run(&gate(&["--spill", "spill"])).code, 2);
}

#[test]
fn a_verdict_is_worth_what_it_quotes() {
    let evidence = Evidence {
        request: "Fix the parser and its tests".into(),
        actions: vec!["bash exit 101: cargo test --workspace".into()],
        git_diff: Some("+ let x = \"quoted in code\";\n- old".into()),
        earlier_gaps: vec!["only an earlier gap said so".into()],
        ..Evidence::default()
    };
    let of = |answer: &str| verdict(Ok(()), answer.as_bytes(), &evidence);
    let worthless = |why| Verdict::Indeterminate(why);
    let gaps = |gaps: &[&str]| Verdict::Gaps(gaps.iter().map(|gap| (*gap).to_owned()).collect());
    let good = "the row 'cargo test --workspace' failed last";
    for (answer, wanted) in [
        (json!({"verdict": "pass", "gaps": []}).to_string(), Verdict::Pass),
        (format!(" {}\n", json!({"gaps": [], "verdict": "pass"})), Verdict::Pass),
        (json!({"verdict": "gaps", "gaps": [good]}).to_string(), gaps(&[good])),
        (
            json!({"verdict": "gaps", "gaps": ["it's \u{201c}the parser and its tests\u{201d}", "no quote"]})
                .to_string(),
            gaps(&["it's \u{201c}the parser and its tests\u{201d}"]),
        ),
        (
            json!({"verdict": "gaps", "gaps": ["`let x = \"quoted in code\";`"]}).to_string(),
            gaps(&["`let x = \"quoted in code\";`"]),
        ),
        (json!({"verdict": "gaps", "gaps": ["'cargo test'"]}).to_string(), worthless(Worthless::Unfounded)),
        (
            json!({"verdict": "gaps", "gaps": ["'cargo test --everything'"]}).to_string(),
            worthless(Worthless::Unfounded),
        ),
        (
            json!({"verdict": "gaps", "gaps": ["'only an earlier gap said so'"]}).to_string(),
            worthless(Worthless::Unfounded),
        ),
        (
            json!({"verdict": "gaps", "gaps": ["'             '"]}).to_string(),
            worthless(Worthless::Unfounded),
        ),
        (json!({"verdict": "gaps", "gaps": []}).to_string(), worthless(Worthless::Contradiction)),
        (json!({"verdict": "pass", "gaps": ["x"]}).to_string(), worthless(Worthless::Contradiction)),
        (json!({"verdict": "PASS", "gaps": []}).to_string(), worthless(Worthless::Form)),
        (json!({"verdict": "pass"}).to_string(), worthless(Worthless::Form)),
        (json!({"verdict": "pass", "gaps": [], "why": "x"}).to_string(), worthless(Worthless::Form)),
        (json!({"verdict": "gaps", "gaps": [1]}).to_string(), worthless(Worthless::Form)),
        (json!({"verdict": "gaps", "gaps": vec![good; 33]}).to_string(), worthless(Worthless::Form)),
        (json!(["pass"]).to_string(), worthless(Worthless::Form)),
        ("{\"verdict\":\"pass\",\"gaps\":[]} pass".to_owned(), worthless(Worthless::Form)),
        ("The verdict is: pass".to_owned(), worthless(Worthless::Form)),
        (String::new(), worthless(Worthless::Form)),
        ("[".repeat(60_000), worthless(Worthless::Form)),
        (
            format!("{{\"verdict\":\"pass\",\"gaps\":[]}}{}", " ".repeat(MAX_VERDICT)),
            worthless(Worthless::TooLarge),
        ),
    ] {
        assert_eq!(of(&answer), wanted, "{answer:.200}");
    }
    let pass = b"{\"verdict\":\"pass\",\"gaps\":[]}";
    assert_eq!(verdict(Err(Worthless::Exit(1)), pass, &evidence), worthless(Worthless::Exit(1)));
    assert_eq!(
        verdict(Ok(()), b"{\"verdict\":\"pass\",\"gaps\":[]}\xff", &evidence),
        worthless(Worthless::Form)
    );
}

#[test]
fn the_budget_of_runs_ends() {
    let gaps = |gap: &str| Verdict::Gaps(vec![gap.to_owned()]);
    let form = Verdict::Indeterminate(Worthless::Form);
    let mut attempts = Attempts::default();
    assert_eq!(attempts.take(form.clone(), 1, 2), Step::Again(Worthless::Form));
    assert_eq!(attempts.take(form, 1, 2), Step::Exhausted);
    let mut attempts = Attempts::default();
    assert_eq!(attempts.take(gaps("a"), 5, 2), Step::Draft(vec!["a".to_owned()]));
    assert_eq!(attempts.take(Verdict::Pass, 6, 2), Step::Verified);
    let mut attempts = Attempts::default();
    attempts.take(gaps("No test of `x`."), 5, 9);
    assert_eq!(
        attempts.take(gaps("no  test of X"), 5, 9),
        Step::Draft(vec!["no  test of X".to_owned()]),
        "nothing was done"
    );
    assert_eq!(attempts.take(gaps("no test of x"), 6, 9), Step::SameGaps);
    let mut attempts = Attempts::default();
    attempts.take(gaps("a"), 5, 2);
    assert_eq!(attempts.take(gaps("b"), 6, 2), Step::Exhausted);
}

#[test]
fn an_answer_is_judged_by_the_verb() {
    let place = place(&[edit(), test()]);
    let gap = "nothing shows that 'Fix the parser' was done";
    let write = |name: &str, answer: Value| fs::write(place.path(name), answer.to_string()).unwrap();
    write("pass", json!({"verdict": "pass", "gaps": []}));
    write("gaps", json!({"verdict": "gaps", "gaps": [gap]}));
    write("other", json!({"verdict": "gaps", "gaps": ["other"]}));
    fs::write(place.path("nonsense"), "pass").unwrap();
    for (more, code, verdict, next) in [
        (&["--verdict", "pass"][..], 0, "pass", "verified"),
        (&["--verdict", "gaps"], 1, "gaps", "draft"),
        (&["--verdict", "nonsense"], 1, "indeterminate", "again"),
        (&["--verdict", "nonsense", "--earlier", "other"], 1, "indeterminate", "exhausted"),
        (&["--verdict", "gaps", "--earlier", "gaps"], 1, "gaps", "same_gaps"),
        (&["--verdict", "gaps", "--earlier", "other"], 1, "gaps", "exhausted"),
    ] {
        let ran = place.run(&gate(more));
        let json = ran.json();
        assert_eq!(
            (ran.code, &json["verdict"], &json["next"]),
            (code, &verdict.into(), &next.into()),
            "{more:?}"
        );
    }
    let ran = place.run(&["gate", "--file", "s.jsonl", "--verdict", "gaps"]);
    assert!(
        ran.stdout.contains(&format!("Draft: The work is not done yet. What is missing:\n- {gap}")),
        "{}",
        ran.stdout
    );
    let ran = place
        .run_with(&["gate", "--file", "s.jsonl", "--verdict", "-"], b"{\"verdict\":\"pass\",\"gaps\":[]}");
    assert!(ran.code == 0 && ran.stdout.contains("Verdict: pass"), "{}", ran.stdout);
    assert_eq!(place.run(&gate(&["--verdict", "absent"])).code, 4);
    assert_eq!(place.run(&gate(&["--verdict", "pass", "--earlier", "nonsense"])).code, 1);
    assert_eq!(place.run(&gate(&["--verdict", "pass", "--dry-run"])).code, 2);
    // Earlier gaps are part of what the verifier is told.
    let json = place.run(&gate(&["--dry-run", "--earlier", "gaps"])).json();
    assert_eq!(json["earlier_gaps"], json!([gap]));
}

#[test]
fn a_verifier_of_the_leads_own_family_is_told() {
    let command = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let models = ["anthropic/claude-sonnet-4", "gpt-5.1"];
    assert_eq!(related(&command("verify --model claude-opus"), models), Some("anthropic/claude-sonnet-4"));
    assert_eq!(related(&command("/usr/bin/verify -m openai/GPT-4o"), models), Some("gpt-5.1"));
    assert_eq!(related(&command("verify --model gemini-2"), models), None);
    assert_eq!(related(&command("claudette"), models), None);
    assert_eq!(related(&[], models), None);
}

/// Runs git to prepare a test; nothing of the caller's configuration.
fn prepare(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(directory).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "init.defaultBranch=main",
    ]);
    command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with a commit, or nothing where there is no git: then the test is skipped.
fn repository() -> Option<tempfile::TempDir> {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no git");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), &["init", "-q"]);
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    prepare(dir.path(), &["add", "-A"]);
    prepare(dir.path(), &["commit", "-q", "-m", "first"]);
    Some(dir)
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let Some(dir) = repository() else { return };
    let top = dir.path();
    let outside = tempfile::tempdir().unwrap();
    let mark = |name: &str| format!("sh -c 'echo {name} >> {}/ran; cat'", outside.path().display());
    let set = |directory: &Path, key: &str, value: &str| prepare(directory, &["config", key, value]);
    // A repository within, whose own configuration runs something as well.
    let inner = tempfile::tempdir().unwrap();
    prepare(inner.path(), &["init", "-q"]);
    prepare(inner.path(), &["commit", "-q", "--allow-empty", "-m", "inner"]);
    let from = inner.path().to_str().unwrap().to_owned();
    prepare(top, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    prepare(top, &["commit", "-q", "-m", "sub"]);
    set(&top.join("sub"), "core.fsmonitor", &mark("sub-fsmonitor"));
    fs::write(top.join("sub/new"), "x").unwrap();
    for (key, name) in [
        ("diff.external", "external"),
        ("diff.evil.textconv", "textconv"),
        ("diff.evil.command", "driver"),
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.diff", "pager-diff"),
        ("pager.status", "pager-status"),
        ("filter.evil.clean", "clean"),
        ("filter.evil.smudge", "smudge"),
        ("filter.evil.process", "process"),
        ("core.sshCommand", "ssh"),
        ("core.alternateRefsCommand", "alternate"),
        ("alias.status", "alias"),
        ("uploadpack.packObjectsHook", "pack"),
        ("interactive.diffFilter", "interactive"),
        ("gpg.program", "gpg"),
    ] {
        set(top, key, &mark(name));
    }
    set(top, "filter.evil.required", "true");
    set(top, "core.hooksPath", &outside.path().join("hooks").display().to_string());
    set(top, "diff.submodule", "diff");
    set(top, "status.submoduleSummary", "true");
    set(top, "core.worktree", "/");
    fs::create_dir(outside.path().join("hooks")).unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-auto-gc"] {
        let path = outside.path().join("hooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\necho hook >> {}/ran\n", outside.path().display())).unwrap();
        crate::cli_support::chmod(&path, 0o755);
    }
    fs::write(top.join(".gitattributes"), "*.txt diff=evil filter=evil\n").unwrap();
    fs::write(top.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(top.join("new.txt"), "x").unwrap();
    let index = fs::read(top.join(".git/index")).unwrap();
    let work = git::look(&top.join("sub").join("..")).unwrap();
    assert!(work.diff.contains("+two") && work.status.contains("?? new.txt"), "{work:?}");
    assert!(!outside.path().join("ran").exists(), "{:?}", fs::read_to_string(outside.path().join("ran")));
    assert_eq!(fs::read(top.join(".git/index")).unwrap(), index, "only read");
    // The traps work: plain git runs at least one of them.
    let _ =
        Command::new("git").args(["-C", top.to_str().unwrap(), "-c", "core.worktree=..", "diff"]).output();
    assert!(outside.path().join("ran").exists());
}

#[test]
fn what_git_says_is_bounded_and_its_refusals_are_told() {
    let Some(dir) = repository() else { return };
    let top = dir.path();
    assert_eq!(git::look(top).unwrap().diff, "");
    fs::create_dir(top.join("deep")).unwrap();
    fs::write(top.join("a.txt"), "\u{e4}\n".repeat(100_000)).unwrap();
    for nth in 0..500 {
        fs::write(top.join(format!("file-with-a-long-name-{nth}")), "").unwrap();
    }
    let work = git::look(&top.join("deep")).unwrap();
    let (status, diff) = (work.status.chars().count(), work.diff.chars().count());
    assert!(status <= 4_000 && status + diff <= MOST && diff > 9_000, "{status} {diff}");
    assert!(work.status.ends_with("is left out]") && work.diff.ends_with("is left out]"));
    // Before the first commit, and where there is no repository.
    let fresh = tempfile::tempdir().unwrap();
    assert!(matches!(git::look(fresh.path()), Err(GitError::NoRepository(_))));
    assert!(matches!(git::look(&fresh.path().join("absent")), Err(GitError::NoRepository(_))));
    prepare(fresh.path(), &["init", "-q"]);
    fs::write(fresh.path().join("b"), "b\n").unwrap();
    prepare(fresh.path(), &["add", "b"]);
    let work = git::look(fresh.path()).unwrap();
    assert!(work.status.contains("A  b") && work.diff.contains("+b"), "{work:?}");
    fs::write(fresh.path().join(".git/HEAD"), "garbage\n").unwrap();
    let error = git::look(fresh.path()).unwrap_err();
    assert!(matches!(error, GitError::Refused { .. }), "{error}");
    let left = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("headman-git-");
    let left: Vec<_> = fs::read_dir(std::env::temp_dir())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .filter(|it| left(it))
        .collect();
    // Other tests may look at the same time, each with one of its own.
    assert!(left.len() <= 4, "{left:?}");
    let place = place(&[edit(), test()]);
    prepare(&place.path(""), &["init", "-q", "repo"]);
    let json = place.run(&gate(&["--dry-run", "--repo", "repo"])).json();
    assert_eq!((&json["git_status"], &json["git_diff"]), (&"".into(), &"".into()));
    assert_eq!(place.run(&gate(&["--dry-run", "--repo", "home"])).code, 4);
}
