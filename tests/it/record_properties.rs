//! What holds of any valid record, and of any JSON.

use headman::contract::json::{Document, Json, is_integer, reserialize};
use headman::contract::{
    Claim, Descriptor, Invalid, Kind, LeadRecord, LeadState, Message, NativeId, PeerRecord, PendingAsk, Pid,
    Rule, SessionId, Timestamp, Untrusted, Uuid,
};
use headman::contract::{descriptor, lead, message, peer};
use proptest::prelude::*;
use serde_json::Value;

/// Pieces that JSON, JavaScript and terminals trip over, as JSON writes them.
fn any_text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = Untrusted> {
    let piece = prop_oneof![
        4 => "[ -!#-\\[\\]-~]{1,8}".prop_map(String::from),
        2 => prop::sample::select(vec![
            r"\u0000", r"\n", r"\t", r"\u001b", r#"\""#, r"\\", r"\/", r"\u007f", r"\ud83d\ude00", "😀", "é",
            "\u{202e}", "\u{feff}", "\u{85}", " ",
        ]).prop_map(String::from),
        1 => prop::sample::select(vec![r"\ud800", r"\udfff"]).prop_map(String::from),
    ];
    prop::collection::vec(piece, pieces)
        .prop_map(|pieces| serde_json::from_str(&format!("\"{}\"", pieces.concat())).unwrap())
}

fn any_session() -> impl Strategy<Value = SessionId> {
    any_text(1..8).prop_map(|text| SessionId::new(text).unwrap())
}

fn any_place() -> impl Strategy<Value = NativeId> {
    any_text(1..6).prop_filter_map("blank", NativeId::new)
}

fn any_uuid() -> impl Strategy<Value = Uuid> {
    (any::<u128>(), 1..=5_u8, prop::sample::select(vec!['8', '9', 'a', 'b'])).prop_map(
        |(bits, version, variant)| {
            let hex = format!("{bits:032x}");
            let parts = (&hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
            let (a, b, c, d, e) = parts;
            Uuid::parse(&format!("{a}-{b}-{version}{c}-{variant}{d}-{e}")).unwrap()
        },
    )
}

/// Any integer from 0 that a double holds.
fn any_time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (0..4_000_000_000_000_u64).prop_map(Timestamp::from_millis),
        any::<u64>().prop_map(Timestamp::from_millis),
        prop::num::f64::POSITIVE.prop_map(|it| Timestamp::from_number(it.trunc()).unwrap()),
    ]
}

fn any_claim() -> impl Strategy<Value = Claim> {
    (1..=1_u64 << 60, any_uuid())
        .prop_map(|(pid, id)| Claim { pid: Pid::from_number(pid as f64).unwrap(), id })
}

fn any_ask() -> impl Strategy<Value = Option<PendingAsk>> {
    let ask = (any_uuid(), any_text(1..20), any_text(1..20))
        .prop_filter("no question", |(_, question, _)| lead::is_question(question))
        .prop_map(|(ask, question, text)| PendingAsk { ask, question, text });
    prop::option::of(ask)
}

fn any_lead() -> impl Strategy<Value = LeadRecord> {
    (any_uuid(), any_session(), any_ask(), any_time()).prop_map(
        |(instance, session, pending_ask, updated_at)| LeadRecord {
            instance,
            session,
            pending_ask,
            updated_at,
        },
    )
}

fn any_peer() -> impl Strategy<Value = PeerRecord> {
    let place = (any_place(), any_place(), any_place(), any_place());
    let optional = || prop::option::of(any_place());
    let about = (optional(), optional(), optional(), optional(), optional());
    (place, any_claim(), any_time(), about).prop_map(
        |((session, pane, tab, workspace), claim, updated_at, about)| {
            let (name, cwd, repo, branch, workspace_label) = about;
            PeerRecord {
                session: SessionId::new(session.as_untrusted().clone()).unwrap(),
                pane,
                tab,
                workspace,
                claim,
                updated_at,
                name,
                cwd,
                repo,
                branch,
                workspace_label,
            }
        },
    )
}

fn any_descriptor() -> impl Strategy<Value = Descriptor> {
    let place = (any_text(1..6), prop::option::of(any_text(1..6)), any_text(1..6));
    (any_uuid(), any_claim(), any_session(), place, any_time()).prop_map(
        |(lease, claim, session, (pane, tab, workspace), created_at)| Descriptor {
            lease,
            claim,
            session,
            pane,
            tab,
            workspace,
            created_at,
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let kinds =
        [Kind::ChiefMessage, Kind::ChiefReply, Kind::LeadMessage, Kind::LeadAsk, Kind::PeerMessage].to_vec();
    let sessions = (any_session(), any_session(), any_session());
    let ids = (any_uuid(), any_uuid(), any_uuid());
    (ids, prop::sample::select(kinds), sessions, any_text(1..40), any_time()).prop_map(
        |((id, lease, ask), kind, (from, to, lead), text, created_at)| Message {
            id,
            lease,
            kind,
            from,
            to,
            lead,
            ask: kind.has_ask().then_some(ask),
            text,
            created_at,
        },
    )
}

/// `bytes` with white space after it, so that there are `length` of them.
fn padded(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(length, b' ');
    bytes
}

/// What is written reads the same, with any space around it up to the limit and not beyond.
fn goes_round<T: PartialEq + std::fmt::Debug>(
    record: &T,
    bytes: &[u8],
    limit: usize,
    parse: impl Fn(&[u8]) -> Result<T, Invalid>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(&parse(bytes).unwrap(), record);
    prop_assert_eq!(&parse(&padded(bytes, limit)).unwrap(), record);
    prop_assert_eq!(parse(&padded(bytes, limit + 1)).unwrap_err().rule, Rule::TooLarge);
    // One line, and no key that is not the type's own.
    prop_assert_eq!(bytes.iter().position(|byte| *byte < b' '), bytes.len().checked_sub(1));
    let more = [b"{\"more\":1,", &bytes[1..]].concat();
    prop_assert_eq!(parse(&more).unwrap_err().rule, Rule::UnknownKey);
    Ok(())
}

fn same(ours: Json<'_>, general: &Value) -> bool {
    match general {
        Value::Null => ours.is_null(),
        Value::Bool(flag) => ours.bool() == Some(*flag),
        Value::Number(number) => ours.number() == number.as_f64(),
        Value::String(text) => ours.string().is_some_and(|it| it == text.as_str()),
        Value::Array(all) => ours.array().is_some_and(|elements| {
            elements.len() == all.len() && elements.iter().zip(all).all(|(ours, it)| same(*ours, it))
        }),
        Value::Object(all) => ours.object().is_some_and(|members| {
            members.len() == all.len()
                && members
                    .iter()
                    .all(|(key, value)| all.get(&*key.to_str_lossy()).is_some_and(|it| same(*value, it)))
        }),
    }
}

/// JSON as somebody may write it: any spelling of numbers and strings, keys that come twice, white space.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "false", "\"\"", "{}", "[]"]).prop_map(String::from),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?",
        "\"([ -!#-\\[\\]-~é😀]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-cA-C][0-9a-fA-F]{3}|\\\\ud83d\\\\ude00){0,6}\"",
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop::sample::select(vec!["a", "b", "\\u0061", "0", "10", "2", ""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("[ {} ]", all.join(" ,\n"))),
            prop::collection::vec((key, inner), 0..6).prop_map(|all| {
                let members: Vec<String> =
                    all.iter().map(|(key, value)| format!("\"{key}\"\t:{value}")).collect();
                format!("{{{}\r}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn json_is_read_as_a_general_reader_reads_it_and_written_so_that_it_stays_so(text in any_json()) {
        let general: Value = serde_json::from_str(&text).unwrap();
        let document = Document::decode(text.as_bytes());
        let value = document.value().unwrap();
        prop_assert!(same(value, &general), "{}", text);
        let once = reserialize(value);
        let again: Value = serde_json::from_slice(&once).unwrap();
        prop_assert!(same(value, &again), "{}", text);
        prop_assert_eq!(reserialize(Document::decode(&once).value().unwrap()), once);
    }

    #[test]
    fn what_cuts_json_short_or_follows_it_makes_it_none(text in any_json(), at in any::<prop::sample::Index>()) {
        let whole = text.starts_with(['{', '[', '"']);
        let cut = &text.as_bytes()[..at.index(text.len())];
        prop_assert!(!whole || Document::decode(cut).value().is_err());
        let is_json = |text: String| Document::decode(text.as_bytes()).value().is_ok();
        let (closed, marked, spaced) = (format!("{text}}}"), format!("\u{feff}{text}"), format!(" \t\r\n{text} "));
        prop_assert!(!is_json(closed) && !is_json(marked) && is_json(spaced));
    }

    #[test]
    fn a_number_is_an_integer_as_its_double_is(number in any::<f64>().prop_filter("finite", |it| it.is_finite())) {
        let text = format!("{number:e}");
        let read = Document::decode(text.as_bytes()).value().unwrap().number().unwrap();
        prop_assert_eq!(read, number);
        prop_assert_eq!(is_integer(read), number.fract() == 0.0);
        let written = reserialize(Document::decode(text.as_bytes()).value().unwrap());
        prop_assert_eq!(Document::decode(&written).value().unwrap().number(), Some(number));
    }

    #[test]
    fn every_lead_record_goes_round(record in any_lead()) {
        let bytes = record.to_bytes().unwrap();
        goes_round(&record, &bytes, lead::MAX_BYTES, LeadRecord::parse_any)?;
        prop_assert_eq!(LeadRecord::parse(&bytes, &record.session), Ok(record.clone()));
        prop_assert_eq!(LeadRecord::parse_named(&bytes, &format!("{}.json", record.session.hash())), Ok(record.clone()));
        let state = LeadState { instance: Some(record.instance), pending_ask: record.pending_ask };
        let bytes = state.to_bytes();
        prop_assert_eq!(LeadState::from_json(Document::decode(&bytes).value().unwrap()), Ok(state));
    }

    #[test]
    fn every_presence_goes_round(record in any_peer()) {
        goes_round(&record, &record.to_bytes().unwrap(), peer::MAX_BYTES, PeerRecord::parse_any)?;
    }

    #[test]
    fn every_descriptor_goes_round_also_between_our_own_processes(record in any_descriptor()) {
        goes_round(&record, &record.to_bytes(), descriptor::MAX_BYTES, Descriptor::parse)?;
        let told = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Descriptor>(&told).unwrap(), record);
    }

    #[test]
    fn every_message_goes_round(record in any_message()) {
        let bytes = record.to_bytes().unwrap();
        prop_assert_eq!(bytes.len(), record.byte_len());
        goes_round(&record, &bytes, message::MAX_BYTES, Message::parse)?;
    }

    #[test]
    fn every_claim_goes_round(claim in any_claim()) {
        prop_assert_eq!(Claim::parse(&claim.to_bytes(), &claim.file_name()), Ok(claim));
        let other = Claim { pid: claim.pid, id: Uuid::random() };
        prop_assert_eq!(Claim::parse(&claim.to_bytes(), &other.file_name()).unwrap_err().rule, Rule::FileName);
    }

    #[test]
    fn every_time_is_the_same_between_our_own_processes(time in any_time()) {
        let told = serde_json::to_vec(&time).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Timestamp>(&told).unwrap(), time);
    }

    /// By the text alone, whose bytes are one more each.
    #[test]
    fn a_record_is_written_up_to_its_limit_and_not_beyond(message in any_message(), record in any_lead()) {
        let room = message::MAX_BYTES - Message { text: "".into(), ..message.clone() }.byte_len();
        let with = |text: String| Message { text: text.into(), ..message.clone() };
        let full = with("x".repeat(room));
        prop_assert_eq!(full.byte_len(), message::MAX_BYTES);
        prop_assert_eq!(Message::parse(&full.to_bytes().unwrap()), Ok(full));
        let refused = with("x".repeat(room + 1)).to_bytes().unwrap_err();
        prop_assert_eq!(refused.rule, Rule::ReserializedTooLarge);

        let ask = PendingAsk { ask: message.id, question: "?".into(), text: "".into() };
        let with = |text: String| {
            LeadRecord { pending_ask: Some(PendingAsk { text: text.into(), ..ask.clone() }), ..record.clone() }
        };
        let room = lead::MAX_BYTES - with(String::new()).to_bytes().unwrap().len();
        let full = with("x".repeat(room));
        prop_assert_eq!(LeadRecord::parse_any(&full.to_bytes().unwrap()), Ok(full));
        prop_assert_eq!(with("x".repeat(room + 1)).to_bytes().unwrap_err().rule, Rule::TooLarge);
    }

    /// Sessions and native ids by UTF-16 units, a question by bytes as well.
    #[test]
    fn ids_and_questions_are_as_long_as_they_may_be_and_not_longer(
        filler in prop::sample::select(vec![("x", 1, 1), ("é", 1, 2), ("日", 1, 3), ("😀", 2, 4)])
    ) {
        let (text, units, bytes) = filler;
        let of = |count: usize| Untrusted::from(format!("{}{}", text.repeat(count), "x".repeat(512 - units * count)));
        let full = of(512 / units);
        prop_assert_eq!(full.utf16_len(), 512);
        prop_assert!(SessionId::new(full.clone()).is_some() && NativeId::new(full.clone()).is_some());
        let more = Untrusted::from(format!("{}x", full.to_str_lossy()));
        prop_assert!(SessionId::new(more.clone()).is_none() && NativeId::new(more).is_none());
        let question = |length: usize| {
            let count = length / bytes;
            Untrusted::from(format!("{}{}", text.repeat(count), "x".repeat(length - bytes * count)))
        };
        prop_assert!(lead::is_question(&question(1_024)));
        prop_assert!(!lead::is_question(&question(1_025)));
    }
}
