//! The golden vectors.

use std::path::PathBuf;

use headman::contract::Untrusted;
use serde_json::Value;

/// A file of `tests/fixtures`.
pub(crate) fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// The golden vectors under `key`.
pub(crate) fn vectors(key: &str) -> Value {
    let bytes = std::fs::read(fixture("golden/vectors.json")).unwrap();
    let mut vectors: Value = serde_json::from_slice(&bytes).unwrap();
    vectors[key].take()
}

/// A string of the vectors: `{"text":…}`, or `{"utf16":[…]}` where it is not well-formed Unicode.
pub(crate) fn string(value: &Value) -> Untrusted {
    if let Some(text) = value["text"].as_str().or(value.as_str()) {
        return text.into();
    }
    let units: Vec<String> = value["utf16"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| format!("\\u{:04x}", unit.as_u64().unwrap()))
        .collect();
    serde_json::from_str(&format!("\"{}\"", units.concat())).unwrap()
}

/// The bytes in `raw_b64`.
pub(crate) fn raw(case: &Value) -> Vec<u8> {
    base64(case["raw_b64"].as_str().unwrap())
}

/// The bytes that `text` stands for.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        buffer = (buffer << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((buffer >> bits) as u8);
        }
    }
    out
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
