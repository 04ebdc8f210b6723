//! What the fuzz targets assert, over the inputs that stand in `fuzz/corpus/`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

// Public for the targets.
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/checks/mod.rs"]
mod checks;

#[test]
fn every_input_of_the_corpora_passes_its_check() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut failed = Vec::new();
    let mut bytes_in_all = 0;
    for (target, check) in checks::ALL {
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpora.join(target)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            inputs += 1;
            bytes_in_all += bytes.len();
            if catch_unwind(AssertUnwindSafe(|| check(&bytes))).is_err() {
                failed.push(path.display().to_string());
            }
        }
        assert!(inputs >= 8, "{target} has only {inputs} inputs");
    }
    assert!(bytes_in_all < 1 << 20, "{bytes_in_all} bytes");
    assert_eq!(failed, [""; 0]);
}

#[test]
fn every_check_is_a_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (target, _) in checks::ALL {
        assert!(manifest.contains(&format!("name = \"{target}\"\n")), "{target}");
        let body = std::fs::read_to_string(fuzz.join(format!("fuzz_targets/{target}.rs"))).unwrap();
        assert!(body.contains(&format!("checks::{target}(bytes)")), "{target}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), checks::ALL.len());
    for entry in std::fs::read_dir(fuzz.join("corpus")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(checks::ALL.iter().any(|(target, _)| name == *target), "{name:?}");
    }
}
