//! Real session files: what Pi's own session manager makes of each, and what the reader does.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headman::pi::branch::{Seen, Tree};
use headman::pi::entry::Id;
use headman::pi::tail::{Progress, Tail, Unsettled};
use serde_json::{Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi");

fn tail_of(path: &Path) -> Tail {
    let mut tail = Tail::new(path);
    while tail.look(4096, Unsettled::AtOnce).unwrap() == Progress::More {}
    tail
}

/// In the form of the oracle.
fn told(tail: &Tail) -> Value {
    let index = tail.index();
    let header = index.header().unwrap().as_ref().unwrap();
    let tree = Tree::of(index, Seen::ByPi);
    let counting: Vec<usize> =
        (0..index.entries().len()).filter(|at| !index.entries()[*at].is_recovered).collect();
    // The oracle's numbers are of those that Pi sees.
    let number = |at: usize| counting.iter().position(|it| *it == at).unwrap();
    let branch = tree.branch();
    let shape = tree.shape();
    let model = tree.model(&branch).unwrap();
    let branch: Vec<usize> = branch.into_iter().map(number).collect();
    let is_all = branch.len() == counting.len();
    let labels: Vec<Value> =
        tree.labels().into_iter().map(|(at, label)| json!([number(at), label.to_str_lossy()])).collect();
    json!({
        "fileVersion": index.version().unwrap() as u64,
        "sessionId": header.session.as_untrusted().to_str_lossy(),
        "cwd": header.cwd.as_ref().map(|cwd| cwd.to_str_lossy()),
        "name": tree.name().map(|name| name.to_str_lossy().into_owned()),
        "entries": counting.len(),
        "leafEntryIndex": number(tree.leaf().unwrap()),
        "branchEntryIndexes": if is_all { json!("all") } else { json!(branch) },
        "roots": shape.roots,
        "branchPoints": shape.branch_points,
        "orphans": shape.orphans,
        "labels": labels,
        "model": {"provider": model.provider.to_str_lossy(), "modelId": model.id.to_str_lossy()},
        "thinkingLevel": tree.thinking(&tree.branch()).to_str_lossy(),
    })
}

/// Sums of floats are those of Pi to a billionth: the order of summing is not part of the format.
fn assert_usage(name: &str, tail: &Tail, expected: &Value) {
    let usage = Tree::of(tail.index(), Seen::ByPi).usage();
    let expected = expected.as_array().unwrap();
    assert_eq!(usage.len(), expected.len(), "{name}: {usage:?}");
    for (model, usage) in usage {
        let key = model.map_or("Tools/summaries".to_owned(), |model| {
            format!("{}/{}", model.provider.to_str_lossy(), model.id.to_str_lossy())
        });
        let of_key = expected.iter().find(|it| it["key"] == *key).unwrap_or_else(|| panic!("{name}: {key}"));
        assert_eq!(usage.tokens, of_key["tokens"].as_f64().unwrap(), "{name}: {key}");
        let cost = of_key["cost"].as_f64().unwrap();
        assert!((usage.cost - cost).abs() <= cost * 1e-9, "{name}: {key}: {} {cost}", usage.cost);
    }
}

/// The file `name`; the two largest are kept compressed, and unpacked into `unpacked`.
fn session_file(name: &str, unpacked: &Path) -> PathBuf {
    let path = Path::new(FIXTURES).join(name);
    let Ok(packed) = fs::File::open(path.with_extension("jsonl.zst")) else { return path };
    let path = unpacked.join(name);
    let mut reader = ruzstd::decoding::StreamingDecoder::new(packed).unwrap();
    io::copy(&mut reader, &mut fs::File::create(&path).unwrap()).unwrap();
    path
}

#[test]
fn real_session_files_have_the_trees_that_pi_finds() {
    let oracle: Value = serde_json::from_slice(&fs::read(format!("{FIXTURES}/trees.json")).unwrap()).unwrap();
    let oracle = oracle.as_object().unwrap();
    assert_eq!(oracle.len(), 41);
    let unpacked = tempfile::tempdir().unwrap();
    for (name, expected) in oracle {
        let path = session_file(name, unpacked.path());
        let times = |it: fs::Metadata| (it.len(), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
        let before = times(fs::metadata(&path).unwrap());
        let tail = tail_of(&path);
        let told = told(&tail);
        for (field, value) in told.as_object().unwrap() {
            assert_eq!(*value, expected[field], "{name}: {field}");
        }
        assert_usage(name, &tail, &expected["usageBreakdown"]);
        assert_eq!(times(fs::metadata(&path).unwrap()), before, "{name}: only read");
    }
}

#[test]
fn an_entry_behind_a_torn_line_is_recovered_and_marked() {
    let tail = tail_of(&Path::new(FIXTURES).join("20b-torn-then-same-writer.jsonl"));
    let entries = tail.index().entries();
    let recovered: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].is_recovered).collect();
    assert_eq!((recovered.as_slice(), tail.index().bad_lines()), (&[16][..], 1));
    // The entry after it follows it. Pi, which does not see it, has lost all that came before.
    assert_eq!(entries[16].id, Id::Hex(0x00ce_a50a));
    assert_eq!(entries[17].parent.as_ref(), Some(&entries[16].id));
    assert_eq!(Tree::of(tail.index(), Seen::ByPi).branch(), [17]);
    let whole: Vec<usize> = (0..entries.len()).collect();
    assert_eq!(Tree::of(tail.index(), Seen::WithRecovered).branch(), whole);
    assert_eq!(Tree::of(tail.index(), Seen::WithRecovered).shape().orphans, 0);
    // Torn and then closed by a new process: nothing is behind it.
    let closed = tail_of(&Path::new(FIXTURES).join("20c-torn-then-resumed.jsonl"));
    assert_eq!(closed.index().bad_lines(), 1);
    assert!(closed.index().entries().iter().all(|entry| !entry.is_recovered));
}
