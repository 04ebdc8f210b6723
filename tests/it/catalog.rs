//! The catalogue names every case.

use std::path::Path;

#[test]
fn every_test_stands_in_the_catalogue() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let catalogue = std::fs::read_to_string(root.join("CATALOG.md")).unwrap();
    let mut missing = Vec::new();
    let mut found = 0;
    for entry in std::fs::read_dir(root.join("it")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in source.lines() {
            let line = line.trim_start();
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(rest) = line.strip_prefix("async fn ").or(line.strip_prefix("fn "))
                && std::mem::take(&mut is_test)
            {
                let name = rest.split(['(', '<']).next().unwrap();
                let case = format!("{module}::{name}");
                found += 1;
                if !catalogue.contains(&format!("`{case}`")) {
                    missing.push(case);
                }
            }
        }
    }
    assert!(found > 150, "only {found} tests found");
    assert_eq!(missing, [""; 0], "not in tests/CATALOG.md");
}

#[test]
fn the_numbers_of_a_section_ascend_and_none_is_used_twice() {
    let catalogue =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/CATALOG.md")).unwrap();
    let (mut before, mut all) = (None, Vec::new());
    for line in catalogue.lines() {
        if line.starts_with("## ") {
            before = None;
        }
        let Some(row) = line.strip_prefix("| T") else { continue };
        let number: u32 = row.split(' ').next().unwrap().parse().unwrap();
        assert!(before.is_none_or(|before| before < number), "T{number} stands after T{before:?}");
        before = Some(number);
        all.push(number);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "a number is used twice");
}
