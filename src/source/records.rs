//! The lead records and the asks in our inbox, as facts.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::watch::{Dirty, Noticing, Watch};
use crate::chief::staff::Office;
use crate::contract::Kind;
use crate::disk::inbox::{self, Content};
use crate::disk::records::{self, RecordError};
use crate::disk::{DiskThread, Runtime};
use crate::fact::{AskTime, ChangesLost, Fact, FactSender, LeadRead, Watching};

/// How often everything is read again where the system tells no changes.
const POLL: Duration = Duration::from_secs(1);

/// How often everything is read again all the same: some file systems tell no changes and give no
/// error either.
const SAFETY: Duration = Duration::from_secs(30);

/// Emits the records of `office` until the task is dropped. `lease_changed` is told when lock or
/// descriptor of the Chief may have changed, `mail_changed` when our inbox or a record may have. They
/// are read as the system tells of changes, where it can; else again and again.
pub async fn run(
    office: Arc<Office>,
    noticing: Noticing,
    disk: DiskThread,
    facts: FactSender,
    lease_changed: Arc<Notify>,
    mail_changed: Arc<Notify>,
) {
    let inbox = office.runtime().inbox(office.session());
    let polled = || Watch::polled(office.runtime(), &inbox);
    let (mut watch, mut watching) = match &noticing {
        Noticing::Told(notifier) => {
            let (watch, told) = Watch::new(notifier, office.runtime(), &inbox);
            (watch, state(told))
        }
        Noticing::Untold(why) => (polled(), Watching::Polling(why.clone())),
        Noticing::SwitchedOff => (polled(), Watching::SwitchedOff),
    };
    let mut overflows = 0;
    facts.put(Fact::Watching(watching.clone()));
    loop {
        let pause = if matches!(watching, Watching::Notified) { SAFETY } else { POLL };
        let dirty = match tokio::time::timeout(pause, watch.changed()).await {
            Ok((dirty, told)) => {
                let now = state(told);
                // A failure stays: the next change would not be told.
                if matches!(watching, Watching::Notified) && now != watching {
                    watching = now;
                    facts.put(Fact::Watching(watching.clone()));
                }
                dirty
            }
            Err(_) => Dirty::all(),
        };
        if dirty.overflowed {
            overflows += 1;
            facts.put(Fact::ChangesLost(ChangesLost { times: overflows, last: office.now() }));
        }
        if dirty.lease {
            lease_changed.notify_one();
        }
        if dirty.inbox || dirty.all_leads || !dirty.leads.is_empty() {
            mail_changed.notify_one();
        }
        let office = Arc::clone(&office);
        let facts = facts.clone();
        if disk.run(move || read(&office, &dirty, &facts)).await.is_err() {
            return;
        }
    }
}

fn state(told: Result<(), String>) -> Watching {
    match told {
        Ok(()) => Watching::Notified,
        Err(why) => Watching::Polling(why),
    }
}

/// Reads what is dirty. On the disk thread, so that reads of one file never overtake each other.
fn read(office: &Office, dirty: &Dirty, facts: &FactSender) {
    let runtime = office.runtime();
    if dirty.all_leads {
        facts.put(match scan(runtime) {
            Ok(leads) => Fact::Leads(Arc::new(leads)),
            Err(why) => Fact::LeadsUnreadable(why),
        });
    } else {
        for name in &dirty.leads {
            if let Some(read) = records::read_lead_named(runtime, name) {
                facts.put(Fact::Lead(hash_of(&name.to_string_lossy()), lead_read(read)));
            }
        }
    }
    if dirty.inbox
        && let Ok(entries) = inbox::list(&runtime.inbox(office.session()))
    {
        let times = entries.into_iter().filter_map(|entry| match entry.content {
            Content::Valid(message) if message.kind == Kind::LeadAsk && message.from == message.lead => {
                Some(AskTime { lead: message.lead.clone(), ask: message.ask?, at: message.created_at })
            }
            _ => None,
        });
        facts.put(Fact::AskTimes(Arc::new(times.collect())));
    }
}

/// Reads every lead record, each by the hash in its file name.
pub fn scan(runtime: &Runtime) -> Result<Vec<(String, LeadRead)>, String> {
    let records = records::scan_leads(runtime).map_err(|error| error.to_string())?;
    Ok(records.into_iter().map(|(name, read)| (hash_of(&name.to_string_lossy()), lead_read(read))).collect())
}

fn hash_of(name: &str) -> String {
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

fn lead_read(read: Result<crate::contract::LeadRecord, RecordError>) -> LeadRead {
    match read {
        Ok(record) => LeadRead::Valid(record),
        Err(error) if error.is_missing() => LeadRead::Absent,
        Err(error) => LeadRead::Refused(error.to_string()),
    }
}
