//! The inboxes of Chief, leads and peers.

use serde_json::{Value, json};

use super::Patient;
use super::report::{Level, Section};
use crate::disk::durable;
use crate::disk::inbox::{self, BATCH, Content};
use crate::disk::layout::InboxDir;

#[derive(Default)]
struct Counts {
    waiting: usize,
    quarantined: usize,
    malformed: usize,
    other_release: usize,
    unreadable: Vec<String>,
}

/// Counts, and what stands in the way.
pub(super) fn inboxes(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("inboxes", "Inboxes");
    let us = patient.us.as_ref().map(|us| us.hash());
    let chief_or_lead = patient.runtime.inboxes();
    let peers = patient.runtime.peer_inboxes();
    let mut all = Vec::new();
    let mut findings = Vec::new();
    let mut quiet = 0;
    for (kind, root) in [("supervision", &chief_or_lead), ("peers", &peers)] {
        let names = match durable::list(root) {
            Ok(mut names) => {
                names.sort();
                names
            }
            Err(error) => {
                section.unavailable = true;
                findings.push((Level::Bad, format!("{} can't be used: {error}", durable::shown(root))));
                continue;
            }
        };
        for name in names.iter().filter_map(|name| name.to_str()) {
            let inbox = match kind {
                "peers" => patient.runtime.peer_inbox_of_hash(name),
                _ => patient.runtime.inbox_of_hash(name),
            };
            let own = kind == "supervision" && us.as_deref() == Some(name);
            let whose = match (own, kind) {
                (true, _) => "our own inbox".to_owned(),
                (false, "peers") => format!("the peer inbox of {}", patient.named(name)),
                (false, _) => format!("the inbox of {}", patient.named(name)),
            };
            match look(&inbox) {
                Ok(counts) => {
                    // Our own drain passes quarantined records over first.
                    let blocked = !own && counts.quarantined >= BATCH;
                    let before = findings.len();
                    let directory = durable::shown(inbox.path()).to_string();
                    judge(&counts, &whose, &directory, blocked, &mut findings);
                    quiet += usize::from(findings.len() == before);
                    all.push(json!({
                        "kind": kind, "hash": name, "own": own,
                        "session": patient.sessions.get(name).map(|it| it.as_untrusted().to_str_lossy()),
                        "waiting": counts.waiting, "quarantined": counts.quarantined,
                        "malformed": counts.malformed, "other_release": counts.other_release,
                        "unreadable": counts.unreadable.len(), "blocked": blocked,
                    }));
                }
                Err(error) => {
                    findings.push((Level::Bad, format!("{whose} can't be used: {error}")));
                    all.push(json!({
                        "kind": kind, "hash": name, "own": own, "error": error.verdict(),
                        "session": patient.sessions.get(name).map(|it| it.as_untrusted().to_str_lossy()),
                    }));
                }
            }
        }
    }
    match quiet {
        0 if findings.is_empty() => section.say(Level::Ok, "there are no inboxes yet".to_owned()),
        0 => {}
        1 => section.say(Level::Ok, "1 inbox is empty".to_owned()),
        _ => section.say(Level::Ok, format!("{quiet} inboxes are empty")),
    }
    findings.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    section.say_each(findings, "findings about inboxes");
    section.set("inboxes", Value::from(all));
    section
}

fn look(inbox: &InboxDir) -> Result<Counts, durable::Unreadable> {
    let mut counts = Counts::default();
    for entry in inbox::list(inbox)? {
        if entry.quarantined {
            counts.quarantined += 1;
            continue;
        }
        match entry.content {
            Content::Valid(_) => counts.waiting += 1,
            Content::Malformed(invalid) if invalid.is_of_another_release() => counts.other_release += 1,
            Content::Malformed(_) => counts.malformed += 1,
            Content::Unreadable(error) => {
                counts.unreadable.push(format!("{}.json ({}): {error}", entry.name, error.verdict()));
            }
        }
    }
    Ok(counts)
}

fn judge(counts: &Counts, whose: &str, directory: &str, blocked: bool, findings: &mut Vec<(Level, String)>) {
    if blocked {
        findings.push((
            Level::Bad,
            format!(
                "{whose} is blocked, if its lead is a Pi: {} quarantined records, and it looks at {BATCH} at a \
                 time. Move the old ones, each with its .quarantine file, out of {directory}",
                counts.quarantined
            ),
        ));
    } else if counts.quarantined > 0 {
        findings.push((Level::Warn, format!("{whose} holds {} quarantined records", counts.quarantined)));
    }
    if counts.waiting > 0 {
        let messages = if counts.waiting == 1 { "message that waits" } else { "messages that wait" };
        findings.push((Level::Ok, format!("{whose} holds {} {messages}", counts.waiting)));
    }
    if counts.malformed > 0 {
        findings
            .push((Level::Warn, format!("{whose} holds {} files that are no messages", counts.malformed)));
    }
    if counts.other_release > 0 {
        let text = format!("{whose} holds {} messages of another release; they stay", counts.other_release);
        findings.push((Level::Warn, text));
    }
    for unreadable in &counts.unreadable {
        findings.push((Level::Bad, format!("{whose} holds {unreadable}")));
    }
}
