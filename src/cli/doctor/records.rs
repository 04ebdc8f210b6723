//! The lease, the lead records and the peers.

use serde_json::{Value, json};

use super::Patient;
use super::report::{Level, Section};
use crate::contract::{Claim, SessionId};
use crate::disk::records::{self, Holding, RecordError, Scanned};
use crate::disk::{Unreadable, durable, lock, mailboxes};
use crate::herdr::listing::{self, Listing};
use crate::herdr::{PaneContext, Snapshot};

fn level(error: &RecordError) -> Level {
    match error {
        RecordError::Invalid(invalid) if invalid.is_of_another_release() => Level::Warn,
        // A lead that crashed; peers pass it over.
        RecordError::Unclaimed(_) => Level::Ok,
        _ => Level::Bad,
    }
}

/// Who is Chief.
pub(super) fn lease(patient: &mut Patient<'_>, snapshot: Option<&Snapshot>) -> Section {
    let mut section = Section::new("lease", "Chief lease");
    section.set("lock", durable::shown(&patient.runtime.lock()).to_string());
    match records::read_holding(&patient.runtime) {
        Err(error) => {
            section.set("state", "unreadable");
            section.say(Level::Bad, error.to_string());
            section.unavailable = true;
        }
        Ok(Holding::Free) => {
            section.set("state", "free");
            section.say(
                Level::Ok,
                "free: nobody is Chief. Start the console and press c to become it, or run `headman serve`",
            );
        }
        Ok(Holding::Held(chief)) => {
            patient.learn(&chief.session);
            let ours = patient.us.as_ref() == Some(&chief.session);
            section.set("state", "held");
            section.set("ours", ours);
            section.set("session", &*chief.session.as_untrusted().to_str_lossy());
            section.set("pane_id", &*chief.pane.to_str_lossy());
            section.set("tab_id", chief.tab.as_ref().map(|tab| tab.to_str_lossy().into_owned()));
            section.set("workspace_id", &*chief.workspace.to_str_lossy());
            section.set("pid", number(chief.claim.pid.as_number()));
            section.set("lease_id", chief.lease.to_string());
            section.set("since", chief.created_at.as_millis());
            section.say(
                Level::Ok,
                format!(
                    "held by {}session {} on pane {}, process {}, since {}",
                    if ours { "our own " } else { "" },
                    chief.session.escaped(),
                    chief.pane.escaped(),
                    chief.claim.pid,
                    time(chief.created_at.as_millis()),
                ),
            );
            if let Some(snapshot) = snapshot {
                let place = |text: &crate::contract::Untrusted| text.to_str_lossy().into_owned();
                let here = PaneContext {
                    pane: place(&chief.pane),
                    tab: chief.tab.as_ref().map(place).unwrap_or_default(),
                    workspace: place(&chief.workspace),
                };
                let found = listing::find(&snapshot.agents, chief.session.as_untrusted(), &here);
                let listed = matches!(found, Listing::Here(_));
                section.set("listed_in_herdr", listed);
                match found {
                    Listing::Here(_) => section.say(Level::Ok, "listed in Herdr: leads can write up"),
                    Listing::Several(places) => section.say(
                        Level::Warn,
                        format!("leads can't write up: Herdr lists the Chief {} times", places.len()),
                    ),
                    Listing::Elsewhere(place) => section.say(
                        Level::Warn,
                        format!(
                            "leads can't write up: Herdr lists the Chief on pane {}",
                            place.pane.escaped()
                        ),
                    ),
                    Listing::Absent(_) => section.say(
                        Level::Warn,
                        "leads can't write up: Herdr does not list the Chief. Run it in a Herdr pane",
                    ),
                }
            }
        }
        Ok(Holding::InProgress(claim)) => {
            section.set("state", "in_progress");
            section.set("pid", number(claim.pid.as_number()));
            section.say(
                Level::Warn,
                format!(
                    "process {} holds the lock without a valid descriptor: it is becoming Chief, or can't",
                    claim.pid
                ),
            );
        }
        Ok(Holding::Stale(claim)) => {
            section.set("state", "stale");
            section.set("pid", number(claim.pid.as_number()));
            let by = lock::claimant(&patient.runtime.lock(), claim.id);
            section.set("recovered_by", by.map(|by| number(by.pid.as_number())));
            let next = match by {
                None => "The next Chief takes the lease over".to_owned(),
                Some(Claim { pid, .. }) => format!(
                    "Process {pid} is taking the lease over. If that lasts, it is stopped: continue it \
                     (`kill -CONT {pid}`) or end it"
                ),
            };
            section.say(Level::Warn, format!("stale: process {} is gone. {next}", claim.pid));
        }
        Ok(Holding::Unverifiable(why)) => {
            section.set("state", "unverifiable");
            section.set("why", why.clone());
            section.say(
                Level::Bad,
                format!(
                    "unverifiable: {why}. Nobody can become Chief; once you are sure that none runs, move {} away",
                    durable::shown(&patient.runtime.lock())
                ),
            );
        }
    }
    // A descriptor that is no use to anybody.
    match records::read_descriptor(&patient.runtime) {
        Ok(descriptor) => patient.learn(&descriptor.session),
        Err(error) if error.is_missing() => {}
        Err(error) => {
            section.set("descriptor", error.verdict());
            section.say(level(&error), format!("chief.json is not used ({}): {error}", error.verdict()));
        }
    }
    section
}

/// The lead records by verdict.
pub(super) fn leads(patient: &mut Patient<'_>) -> Section {
    let mut section = Section::new("lead_records", "Lead records");
    let directory = patient.runtime.leads();
    let scanned = records::scan_leads(&patient.runtime);
    if let Ok(records) = &scanned {
        for (_, read) in records {
            if let Ok(record) = read {
                patient.learn(&record.session);
            }
        }
    }
    told(&mut section, patient, &directory, scanned, "lead records", |record| record.session.hash());
    section
}

/// The presence records of peers by verdict.
pub(super) fn peers(patient: &mut Patient<'_>) -> Section {
    let mut section = Section::new("peers", "Peers");
    let directory = patient.runtime.peer_records();
    let scanned = records::scan_peers(&patient.runtime);
    if let Ok(records) = &scanned {
        for (_, read) in records {
            if let Ok(record) = read {
                patient.learn(&record.session);
            }
        }
    }
    told(&mut section, patient, &directory, scanned, "presence records", |record| record.session.hash());
    section
}

/// The managed agents' mailboxes by verdict.
pub(super) fn mailboxes(patient: &mut Patient<'_>) -> Section {
    let mut section = Section::new("mailboxes", "Managed agents");
    let directory = patient.agent_dir.mailboxes();
    let scan = mailboxes::scan(&directory);
    let shown = durable::shown(&directory).to_string();
    section.set("directory", shown.clone());
    let mut owners = std::collections::BTreeMap::new();
    for post in &scan.posts {
        patient.learn(&post.mailbox.session);
        *owners.entry(post.mailbox.owner.hash()).or_insert(0_usize) += 1;
    }
    let (mut files, mut findings) = (Vec::new(), Vec::new());
    for broken in &scan.broken {
        let verdict = broken.error.verdict();
        files.push(json!({
            "directory": broken.directory, "verdict": verdict, "message": broken.error.to_string(),
            "owner": broken.owner.as_ref().map(|owner| owner.to_str_lossy()),
        }));
        findings.push(match &broken.directory {
            Some(name) => {
                let name = crate::contract::Untrusted::from(name.as_str()).escaped().to_string();
                (level(&broken.error), format!("{name} is not used ({verdict}): {}", broken.error))
            }
            None => {
                section.unavailable = true;
                (Level::Bad, format!("{shown} can't be used ({verdict}): {}", broken.error))
            }
        });
    }
    section.set("valid", scan.posts.len());
    section.set("owners", owners.len());
    section.set("refused", scan.broken.len());
    section.set("broken", Value::from(files));
    let valid = scan.posts.len();
    section.say(
        Level::Ok,
        format!("{valid} valid mailboxes in {shown}, of agents of {} sessions", owners.len()),
    );
    let us = patient.us.clone();
    let own = |us: &SessionId| {
        scan.posts.iter().any(|post| post.mailbox.owner == *us)
            || scan.broken.iter().any(|broken| broken.could_be_of(us))
    };
    if us.as_ref().is_some_and(own) {
        section.say(
            Level::Bad,
            "our own session owns one of them, or it can't be ruled out: it can't become Chief",
        );
    }
    findings.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    section.say_each(findings, "mailboxes");
    section
}

fn told<T>(
    section: &mut Section,
    patient: &Patient<'_>,
    directory: &std::path::Path,
    scanned: Result<Scanned<T>, Unreadable>,
    what: &str,
    hash: impl Fn(&T) -> String,
) {
    section.set("directory", durable::shown(directory).to_string());
    let records = match scanned {
        Ok(records) => records,
        Err(error) => {
            section.set("error", error.verdict());
            section.unavailable = true;
            section.say(Level::Bad, format!("{} can't be used: {error}", durable::shown(directory)));
            return;
        }
    };
    let (mut valid, mut files, mut findings) = (0, Vec::new(), Vec::new());
    for (name, read) in &records {
        let name = name.to_string_lossy();
        let session = match read {
            Ok(record) => Some(patient.named(&hash(record))),
            Err(_) => name
                .strip_suffix(".json")
                .and_then(|hash| patient.sessions.get(hash))
                .map(|session| session.escaped().to_string()),
        };
        let verdict = match read {
            Ok(_) => "valid",
            // It went between the two looks.
            Err(error) if error.is_missing() => continue,
            Err(error) => error.verdict(),
        };
        let mut file = json!({"file": name, "session": session, "verdict": verdict});
        match read {
            Ok(_) => valid += 1,
            Err(error) => {
                file["message"] = error.to_string().into();
                findings.push((level(error), format!("{name} is not used ({verdict}): {error}")));
            }
        }
        files.push(file);
    }
    section.set("valid", valid);
    section.set("refused", findings.len());
    section.set("files", Value::from(files));
    section.say(Level::Ok, format!("{valid} valid {what} in {}", durable::shown(directory)));
    findings.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    section.say_each(findings, what);
}

fn time(millis: u64) -> String {
    i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).map_or_else(
        || format!("{millis} ms after the epoch"),
        |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}

/// A number as it stands in a record: without a fraction where it has none.
fn number(number: f64) -> serde_json::Value {
    let whole = number as i64;
    if whole as f64 == number { whole.into() } else { number.into() }
}
