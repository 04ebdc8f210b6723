//! JSON, and the records of the contract.

use std::fmt::Debug;

use headman::contract::json::{Document, Json, reserialize};
use headman::contract::mailbox::{self, Mailbox, directory_name, named_in};
use headman::contract::rendered::Parts;
use headman::contract::role::RoleState;
use headman::contract::{
    Claim, Descriptor, Invalid, LeadRecord, LeadState, Message, PeerRecord, Rule, SessionId, Untrusted, Uuid,
};
use headman::contract::{delivered, descriptor, lead, message as messages, peer};
use serde_json::Value;

use super::{is_safe_to_print, judge};

/// What a number may take more when it is written as JavaScript does.
const NUMBER_GROWS: usize = 32;

/// JSON is read as a general reader reads it, and written so that it is the same.
pub fn json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let document = Document::decode(bytes);
    assert_eq!(document.decoded_len(), text.len());
    let general = serde_json::from_str::<Value>(&text);
    let value = match document.value() {
        Ok(value) => value,
        Err(error) => {
            assert!(general.is_err(), "{error}");
            return is_safe_to_print(&error.to_string(), bytes);
        }
    };
    let once = reserialize(value);
    let again = Document::decode(&once);
    let again = again.value().expect("what is written is JSON");
    assert_eq!(reserialize(again), once);
    // An escape is at most six bytes; a number at most as many as one takes.
    assert!(once.len() <= 6 * text.len() + NUMBER_GROWS * text.len().min(1 + text.len() / 2));
    match general {
        Ok(general) => {
            is_same(value, &general);
            is_same(again, &general);
        }
        // What it gives up on, and we don't.
        Err(_) => assert!(
            text.contains("\\u")
                || text.contains(['e', 'E'])
                || text.len() > 300
                || text.matches('[').count() > 100,
            "{text}"
        ),
    }
}

fn is_same(ours: Json<'_>, general: &Value) {
    match general {
        Value::Null => assert!(ours.is_null()),
        Value::Bool(flag) => assert_eq!(ours.bool(), Some(*flag)),
        Value::Number(number) => assert_eq!(ours.number(), number.as_f64()),
        Value::String(text) => assert!(ours.string().is_some_and(|it| it == text.as_str())),
        Value::Array(all) => {
            let elements = ours.array().expect("an array");
            assert_eq!(elements.len(), all.len());
            elements.iter().zip(all).for_each(|(ours, general)| is_same(*ours, general));
        }
        Value::Object(all) => {
            let members = ours.object().expect("an object");
            assert_eq!(members.len(), all.len());
            for (key, value) in members {
                is_same(value, all.get(&*key.to_str_lossy()).expect("the key"));
            }
        }
    }
}

/// Judged as the plain rules say, and refused in words that can be shown.
fn agrees<T: Debug>(bytes: &[u8], limit: usize, ours: &Result<T, Invalid>, rule: judge::Rule) {
    if let Err(invalid) = ours {
        is_safe_to_print(&invalid.to_string(), bytes);
        if matches!(invalid.rule, Rule::TooLarge | Rule::ReserializedTooLarge) {
            assert!(String::from_utf8_lossy(bytes).len() > limit - NUMBER_GROWS);
            return;
        }
    }
    assert!(ours.is_err() || bytes.len() <= limit);
    if let Ok(value) = serde_json::from_str::<Value>(&String::from_utf8_lossy(bytes)) {
        assert_eq!(ours.is_ok(), rule(&value), "{ours:?}");
    }
}

/// Lead record, presence, descriptor, and what a session keeps of its role.
pub fn record(bytes: &[u8]) {
    let record = LeadRecord::parse_any(bytes);
    agrees(bytes, lead::MAX_BYTES, &record, judge::lead);
    if let Ok(record) = record {
        let name = format!("{}.json", record.session.hash());
        assert_eq!(LeadRecord::parse(bytes, &record.session), Ok(record.clone()));
        assert_eq!(LeadRecord::parse_named(bytes, &name), Ok(record.clone()));
        assert!(LeadRecord::parse_named(bytes, &name[1..]).is_err());
        if is_written(bytes, lead::MAX_BYTES, &record, record.to_bytes(), LeadRecord::parse_any) {
            let written = record.to_bytes().expect("as before");
            assert_eq!(record.to_bytes(), LeadRecord::parse_any(&written).and_then(|it| it.to_bytes()));
        }
    }
    let record = PeerRecord::parse_any(bytes);
    agrees(bytes, peer::MAX_BYTES, &record, judge::presence);
    if let Ok(record) = record {
        let name = format!("{}.json", record.session.hash());
        assert_eq!(PeerRecord::parse(bytes, &record.session), Ok(record.clone()));
        assert_eq!(PeerRecord::parse_named(bytes, &name), Ok(record.clone()));
        is_written(bytes, peer::MAX_BYTES, &record, record.to_bytes(), PeerRecord::parse_any);
    }
    let record = Descriptor::parse(bytes);
    agrees(bytes, descriptor::MAX_BYTES, &record, judge::descriptor);
    if let Ok(record) = record {
        let written = record.to_bytes();
        let small = written.len() <= descriptor::MAX_BYTES;
        let written = if small { Ok(written) } else { Err(Invalid::new(Rule::TooLarge, "written")) };
        is_written(bytes, descriptor::MAX_BYTES, &record, written, Descriptor::parse);
    }
    let document = Document::decode(bytes);
    let Ok(value) = document.value() else { return };
    let state = LeadState::from_json(value);
    agrees(bytes, usize::MAX, &state, judge::lead_state);
    if let Ok(state) = state {
        let written = state.to_bytes();
        let document = Document::decode(&written);
        assert_eq!(LeadState::from_json(document.value().expect("JSON")), Ok(state));
    }
    let role = RoleState::from_json(value);
    agrees(bytes, usize::MAX, &role, judge::role);
    let again = reserialize(value);
    let document = Document::decode(&again);
    assert_eq!(RoleState::from_json(document.value().expect("JSON")).ok(), role.ok());
}

/// What was read is written within its limit, and reads the same; says whether it could be written. It
/// can't only where a number that was just short enough takes more.
fn is_written<T: Debug + PartialEq>(
    bytes: &[u8],
    limit: usize,
    record: &T,
    written: Result<Vec<u8>, Invalid>,
    parse: impl Fn(&[u8]) -> Result<T, Invalid>,
) -> bool {
    match written {
        Ok(written) => {
            assert!(written.len() <= limit);
            assert_eq!(written.iter().filter(|byte| **byte < b' ').count(), 1, "one line");
            assert_eq!(parse(&written).as_ref(), Ok(record));
            true
        }
        Err(invalid) => {
            assert!(bytes.len() > limit - 2 * NUMBER_GROWS, "{invalid}");
            false
        }
    }
}

/// A message, and what is made of it.
pub fn message(bytes: &[u8]) {
    let read = Message::parse(bytes);
    agrees(bytes, messages::MAX_BYTES, &read, judge::message);
    let Ok(message) = read else { return };
    let written = message.to_bytes().expect("it was judged so");
    assert_eq!(written.len(), message.byte_len());
    assert!(is_written(bytes, messages::MAX_BYTES, &message, Ok(written), Message::parse));
    let content = delivered::content(&message);
    assert!(content.len() <= delivered::MAX_CONTENT_BYTES);
    assert_eq!(delivered::details(&message).id, message.id);
    if let Some(ask) = message.ask {
        let id = Uuid::of_ask(&message.lead, ask, message.lease);
        assert_eq!(Uuid::parse(&id.to_string()), Some(id));
    }
    // Nothing is lost or made up where the files are told from what is said.
    let text = message.text.as_wtf8();
    let Parts { said, attached } = Parts::of(&message.text);
    assert!(text.ends_with(said.as_wtf8()));
    match attached {
        Some(files) => {
            let heading = &text[files.as_wtf8().len()..text.len() - said.as_wtf8().len()];
            assert!(text.starts_with(files.as_wtf8()) && files.as_wtf8().starts_with(b"<file "));
            assert!([&b"\n\nMessage:\n"[..], b"\n\nReply:\n", b"\n\nQuestion:\n"].contains(&heading));
        }
        None => assert_eq!(said, message.text),
    }
}

/// The claim of a lock.
pub fn claim(bytes: &[u8]) {
    let read = Claim::parse_any(bytes);
    agrees(bytes, usize::MAX, &read, judge::claim);
    let Ok(claim) = read else { return };
    let written = claim.to_bytes();
    assert_eq!(Claim::parse(&written, &claim.file_name()), Ok(claim));
    assert_eq!(Claim::parse(bytes, &claim.file_name()), Ok(claim));
    assert!(Claim::parse(bytes, &claim.file_name()[1..]).is_err());
    assert!(written.len() < 100 && !claim.file_name().contains('/'));
    if let Some(pid) = claim.pid.as_raw() {
        assert!(pid > 0 && f64::from(pid) == claim.pid.as_number());
    }
}

/// A mailbox; after the first line end, a request beside it.
pub fn mailbox(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (state, beside) = bytes.split_at(end.unwrap_or(bytes.len()));
    let read = Mailbox::parse_any(state);
    agrees(state, mailbox::MAX_BYTES, &read, judge::mailbox);
    let named = named_in(state);
    let Ok(mailbox) = read else { return };
    let sessions = [&mailbox.owner, &mailbox.session].map(|it| Some(it.as_untrusted().clone()));
    assert_eq!([named.0, named.1], sessions);
    let directory = directory_name(&mailbox.workspace, &mailbox.label);
    assert!(mailbox::is_directory_name(&directory));
    assert_eq!(Mailbox::parse(state, &directory), Ok(mailbox.clone()));
    let document = Document::decode(state);
    let again = reserialize(document.value().expect("JSON"));
    if again.len() <= mailbox::MAX_BYTES {
        assert_eq!(Mailbox::parse_any(&again), Ok(mailbox.clone()));
    }
    let name = mailbox.herdr_name();
    assert!(Untrusted::from(name).utf16_len() <= 15 + 1 + 16);
    let (Ok(general), Ok(state)) = (
        serde_json::from_str::<Value>(&String::from_utf8_lossy(beside)),
        serde_json::from_str::<Value>(&String::from_utf8_lossy(state)),
    ) else {
        return;
    };
    let id = Untrusted::from(general["requestId"].as_str().unwrap_or_default());
    let ours = mailbox.check_request(beside, &id);
    assert_eq!(ours.is_ok(), judge::request(&general, &state), "{ours:?}");
    assert!(
        SessionId::new(id)
            .is_none_or(|id| mailbox.check_request(beside, &format!("{}0", id.hash()).into()).is_err())
    );
}
