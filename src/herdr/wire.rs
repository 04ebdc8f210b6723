//! The line that goes out and the line that comes back; shared by both clients.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::{HerdrError, REPLY, REQUEST, excerpt};
use super::fields::{members, text};
use crate::contract::Untrusted;

/// Herdr reads no longer request.
pub(super) const MAX_REQUEST: usize = 1 << 20;
/// A snapshot of 200 agents takes about 200 KB; beyond this it is no answer but an attack or a bug.
pub(super) const MAX_REPLY: usize = 16 << 20;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The whole request, newline included, so that one write sends it.
pub(super) fn request_line(method: &str, params: Value) -> Result<Vec<u8>, HerdrError> {
    // Params must be an object even where a method takes none.
    let params = if params.is_null() { json!({}) } else { params };
    let id = format!("headman:{}", NEXT_ID.fetch_add(1, Ordering::Relaxed));
    let mut line = json!({"id": id, "method": method, "params": params}).to_string().into_bytes();
    line.push(b'\n');
    if line.len() > MAX_REQUEST {
        return Err(HerdrError::TooLarge { method: method.to_owned(), what: REQUEST, limit: MAX_REQUEST });
    }
    Ok(line)
}

pub(super) fn too_large(method: &str) -> HerdrError {
    HerdrError::TooLarge { method: method.to_owned(), what: REPLY, limit: MAX_REPLY }
}

/// The `result` of a reply line, an object. The id is not looked at: errors may carry an empty one, and
/// there is only one request on a connection.
///
/// # Errors
/// [`HerdrError::Server`] where Herdr says no, [`HerdrError::Garbage`] for what is no reply.
pub fn result_of(method: &str, line: &[u8]) -> Result<Box<RawValue>, HerdrError> {
    let garbage = |why| HerdrError::Garbage { method: method.to_owned(), why, excerpt: excerpt(line) };
    let line_text = String::from_utf8_lossy(line);
    let raw: &RawValue = serde_json::from_str(&line_text).map_err(|_| garbage("not JSON"))?;
    let mut result = None;
    let mut error = None;
    let is_object = members(raw, |key, value| match key {
        b"result" => result = Some(value),
        b"error" => error = (value.get() != "null").then_some(value),
        _ => {}
    });
    if !is_object {
        return Err(garbage("not an object"));
    }
    if let Some(error) = error {
        let (mut code, mut message) = (None, None);
        members(error, |key, value| match key {
            b"code" => code = text(value),
            b"message" => message = text(value),
            _ => {}
        });
        return Err(HerdrError::Server {
            method: method.to_owned(),
            code: code.unwrap_or_else(|| Untrusted::from("no code")),
            message: message.unwrap_or_else(|| Untrusted::from("no message")),
        });
    }
    match result {
        Some(result) if result.get().starts_with('{') => Ok(result.to_owned()),
        _ => Err(garbage("neither result nor error")),
    }
}
