//! The contract's rules once more, as plainly as they read in `docs/contract.md`, over what a general
//! JSON reader makes of a record. It has no opinion where that reader gives up: lone surrogates, deep
//! nesting, numbers too large for a double.

use serde_json::{Map, Value};

pub(super) type Rule = fn(&Value) -> bool;

/// A closed object: every required key, no other than these, each as its rule says.
fn object(value: &Value, required: &[(&str, Rule)], optional: &[(&str, Rule)]) -> bool {
    let Some(members) = value.as_object() else { return false };
    let rule_of = |key: &str| required.iter().chain(optional).find(|(name, _)| *name == key);
    required.iter().all(|(key, _)| members.contains_key(*key))
        && members.iter().all(|(key, value)| rule_of(key).is_some_and(|(_, rule)| rule(value)))
}

fn units(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.encode_utf16().count())
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|it| it == '\u{feff}' || (it.is_whitespace() && it != '\u{85}'))
}

fn one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

fn four(value: &Value) -> bool {
    value.as_f64() == Some(4.0)
}

fn text(value: &Value) -> bool {
    units(value) > 0
}

fn written(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !is_blank(text))
}

/// A session, or a place of the descriptor.
fn session(value: &Value) -> bool {
    (1..=512).contains(&units(value))
}

fn native(value: &Value) -> bool {
    session(value) && written(value)
}

/// A written session.
fn owner(value: &Value) -> bool {
    session(value) && written(value)
}

fn number(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number >= 0.0)
}

fn time(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn pid(value: &Value) -> bool {
    time(value) && value.as_f64() != Some(0.0)
}

/// Five groups of hex digits whose third begins with one of `versions`.
fn grouped(text: &str, versions: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && groups.concat().chars().all(|it| "0123456789abcdef".contains(it))
        && groups[2].starts_with(|it| versions.contains(it))
        && groups[3].starts_with(['8', '9', 'a', 'b'])
}

fn uuid(value: &Value) -> bool {
    value.as_str().is_some_and(|text| grouped(text, "12345"))
}

/// A UUID of any version and case.
fn run(value: &Value) -> bool {
    value.as_str().is_some_and(|text| grouped(&text.to_ascii_lowercase(), "0123456789abcdef"))
}

fn flag(value: &Value) -> bool {
    value.is_boolean()
}

pub(super) fn claim(value: &Value) -> bool {
    object(value, &[("pid", pid), ("id", uuid)], &[])
}

pub(super) fn descriptor(value: &Value) -> bool {
    let required: [(&str, Rule); 7] = [
        ("version", one),
        ("leaseId", uuid),
        ("claim", claim),
        ("piSessionId", session),
        ("paneId", session),
        ("workspaceId", session),
        ("createdAt", time),
    ];
    object(value, &required, &[("tabId", session)])
}

pub(super) fn presence(value: &Value) -> bool {
    let required: [(&str, Rule); 7] = [
        ("version", one),
        ("piSessionId", native),
        ("paneId", native),
        ("tabId", native),
        ("workspaceId", native),
        ("claim", claim),
        ("updatedAt", time),
    ];
    let optional = ["name", "cwd", "repo", "branch", "workspaceLabel"].map(|key| (key, native as Rule));
    object(value, &required, &optional)
}

fn pending_ask(value: &Value) -> bool {
    let question = |value: &Value| written(value) && value.as_str().is_some_and(|text| text.len() <= 1_024);
    object(value, &[("askId", uuid), ("question", question), ("text", text)], &[])
}

pub(super) fn lead(value: &Value) -> bool {
    let required: [(&str, Rule); 4] =
        [("version", one), ("instanceId", uuid), ("piSessionId", session), ("updatedAt", time)];
    object(value, &required, &[("pendingAsk", pending_ask)])
}

pub(super) fn lead_state(value: &Value) -> bool {
    object(value, &[], &[("instanceId", uuid), ("pendingAsk", pending_ask)])
}

pub(super) fn role(value: &Value) -> bool {
    let tools = |value: &Value| {
        let Some(tools) = value.as_array() else { return false };
        tools.iter().enumerate().all(|(at, tool)| text(tool) && !tools[..at].contains(tool))
    };
    object(value, &[("role", |it| it == "lead" || it == "chief"), ("leadTools", tools)], &[])
}

pub(super) fn message(value: &Value) -> bool {
    let plain = |kind: &Value| kind == "chief_message" || kind == "lead_message" || kind == "peer_message";
    let of_ask = |kind: &Value| kind == "chief_reply" || kind == "lead_ask";
    let all: [(&str, Rule); 8] = [
        ("version", one),
        ("id", uuid),
        ("leaseId", uuid),
        ("fromSessionId", session),
        ("toSessionId", session),
        ("leadSessionId", session),
        ("text", text),
        ("createdAt", time),
    ];
    let with = |more: &[(&'static str, Rule)]| [&all[..], more].concat();
    object(value, &with(&[("kind", plain)]), &[])
        || object(value, &with(&[("kind", of_ask), ("askId", uuid)]), &[])
}

/// What names an agent, in its mailbox and beside it.
const SAME: [(&str, Rule); 5] = [
    ("runId", run),
    ("ownerSessionId", owner),
    ("workspaceId", written),
    ("agentLabel", written),
    ("paneId", written),
];

fn same(a: &Map<String, Value>, b: &Value) -> bool {
    SAME.iter().all(|(key, _)| a.get(*key) == b.get(key))
}

pub(super) fn mailbox(value: &Value) -> bool {
    let required: [(&str, Rule); 4] =
        [("version", four), ("piSessionId", owner), ("cwd", written), ("updatedAt", number)];
    let optional: [(&str, Rule); 8] = [
        ("piSessionFile", written),
        ("agentDefinition", written),
        ("activeRequestId", run),
        ("pendingAskId", run),
        ("completedRequestId", run),
        ("lastActivityAt", time),
        ("resultError", result_error),
        ("lastAck", acknowledgement),
    ];
    if !object(value, &[&required[..], &SAME].concat(), &optional) {
        return false;
    }
    let Some(members) = value.as_object() else { return false };
    let [active, ask, completed] =
        ["activeRequestId", "pendingAskId", "completedRequestId"].map(|key| members.get(key));
    (ask.is_none() || (active.is_some() && completed.is_none()))
        && (completed.is_none() || completed != active)
        && members
            .get("resultError")
            .is_none_or(|error| active.is_none() && completed.is_none() && same(members, error))
}

fn result_error(value: &Value) -> bool {
    let required: [(&str, Rule); 9] = [
        ("code", |it| it == "write_failure"),
        ("message", written),
        ("requestId", run),
        ("originalStatus", |it| it == "completed" || it == "failed"),
        ("attempts", pid),
        ("failedAt", number),
        ("retrySafe", |it| *it == false),
        ("cleanupSafe", |it| *it == true),
        ("nextAction", written),
    ];
    object(value, &[&required[..], &SAME].concat(), &[])
}

fn acknowledgement(value: &Value) -> bool {
    let code =
        |it: &Value| ["busy", "idle", "invalid", "identity", "delivery"].iter().any(|known| it == known);
    let required: [(&str, Rule); 3] = [("requestId", run), ("accepted", flag), ("acknowledgedAt", number)];
    object(value, &required, &[("message", written), ("code", code)])
        && (value["accepted"] == true) == value.get("code").is_none()
}

/// A request beside the mailbox `state`, under its own id.
pub(super) fn request(value: &Value, state: &Value) -> bool {
    let plain = |kind: &Value| kind == "task" || kind == "steer" || kind == "interrupt";
    let all: [(&str, Rule); 4] =
        [("version", four), ("requestId", run), ("text", written), ("createdAt", number)];
    let with = |more: &[(&'static str, Rule)]| [&all[..], &SAME, more].concat();
    (object(value, &with(&[("kind", plain)]), &[])
        || object(value, &with(&[("kind", |it| it == "reply"), ("askId", run)]), &[]))
        && value.as_object().is_some_and(|members| same(members, state))
}

/// The limits of attachments: of our two keys each an integer within bounds, or not there.
pub(super) fn limits(value: &Value) -> bool {
    let limit =
        |value: &Value| time(value) && (1_024.0..=1_048_576.0).contains(&value.as_f64().unwrap_or(0.0));
    value.is_object()
        && ["inlineAttachmentLimitBytes", "mailboxPayloadLimitBytes"]
            .iter()
            .all(|key| value.get(key).is_none_or(limit))
}
