//! `headman inbox prune`: removes whole months of the journal, once that is confirmed.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use super::{kind, local};
use crate::chief::journal::{Journal, Month, Plan};
use crate::chief::staff::Office;
use crate::chief::state_dir::{Identity, StateDir, StateError};
use crate::chief::upkeep::UpkeepError;
use crate::cli::failure::{Exit, Failure};
use crate::cli::located;
use crate::cli::out::{Out, note};
use crate::config::Places;
use crate::console::text;
use crate::contract::role::Role;
use crate::disk::records::{self, Holding};
use crate::disk::sidecar::Sidecar;

/// Unread messages that are named one by one.
const NAMED: usize = 20;
/// UTF-16 units of an unread message that are shown.
const BEGINNING: usize = 60;
const WHAT: &str = "prune the inbox";

/// What is asked.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Remove the months that lie wholly before this day: YYYY-MM-DD, or YYYY-MM
    #[arg(long, value_name = "DATE", value_parser = month)]
    before: Month,
    /// Don't ask
    #[arg(long)]
    yes: bool,
}

/// The month of a date: whole months lie before it if they lie before its first day.
fn month(text: &str) -> Result<Month, String> {
    let is_day = text.parse::<jiff::civil::Date>().is_ok() && text.len() == "2026-11-30".len();
    let month = if is_day { &text[.."2026-11".len()] } else { text };
    month.parse().map_err(|_| "a day as 2026-11-30 or a month as 2026-11 is needed".to_owned())
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where a console holds the lease, nobody can be asked, or the disk fails.
pub(super) fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let stdin = std::io::stdin();
    let can_ask = stdin.is_terminal() && std::io::stderr().is_terminal();
    if !arguments.yes && !can_ask {
        return Err(Failure::new(
            Exit::Usage,
            "no_terminal",
            format!("can't {WHAT}: there is no terminal to ask on"),
            "Add --yes to remove without being asked",
        ));
    }
    let socket = located(places, WHAT)?;
    let state = StateDir::at(&places.state_dir, &socket.path);
    let runtime = places.agent_dir.runtime(&socket.path);
    state.version().map_err(|error| unusable(&error))?;
    let identity = state.known_identity().map_err(|error| unusable(&error))?;
    let session = identity.unwrap_or_else(|| Identity::new(Role::Lead)).session();
    let office = Office::new(places.agent_dir.clone(), runtime, session, Instant::now());
    let read = |office: &Office| office.read_journal(&state.journal()).map_err(|error| failed(&error.into()));
    read(&office)?;
    if office.journal().as_ref().is_none_or(Journal::is_empty) {
        return tell(&Plan::default(), arguments.before, out);
    }
    // Whoever becomes Chief now would write to it.
    let _sidecar = match Sidecar::take(&state.sidecar()) {
        Ok(Some(sidecar)) => sidecar,
        Ok(None) => return Err(occupied(&office)),
        Err(error) => return Err(Failure::disk(WHAT, &error, "See `headman doctor`")),
    };
    read(&office)?;
    let plan = office.plan_pruning(arguments.before).map_err(|error| failed(&error))?;
    if !arguments.yes && !plan.gone.is_empty() {
        let mut asked = question(&office, &plan);
        asked.push_str("\nRemove this for ever? [y/N]");
        note_lines(&asked);
        let mut answer = String::new();
        let read = stdin.lock().read_line(&mut answer);
        let is_yes = read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        if !is_yes {
            note("nothing was removed");
            return Ok(Exit::No);
        }
    }
    office.prune(&plan).map_err(|error| failed(&error))?;
    tell(&plan, arguments.before, out)
}

fn unusable(error: &StateError) -> Failure {
    Failure::new(Exit::Unavailable, "state", format!("can't {WHAT}: {error}"), "See `headman doctor`")
}

fn failed(error: &UpkeepError) -> Failure {
    Failure::disk(WHAT, error, "See `headman doctor`")
}

/// A console of this state directory holds the lease, or is about to.
fn occupied(office: &Office) -> Failure {
    let who = match records::read_holding(office.runtime()) {
        Ok(Holding::Held(chief)) if chief.session == *office.session() => {
            format!(", process {} on pane {}", chief.claim.pid, chief.pane.escaped())
        }
        _ => String::new(),
    };
    Failure::new(
        Exit::NotChief,
        "lease_occupied",
        format!("can't {WHAT}: a headman with this state directory is Chief or becomes it now{who}"),
        "Leave Chief mode there, or quit it; then try again",
    )
}

fn note_lines(text: &str) {
    use std::io::Write;
    // Where this fails nobody answers either, and nothing is removed.
    let _ = writeln!(std::io::stderr().lock(), "{}", text::plain_block(text));
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What goes and what stays, a line each.
fn listed(plan: &Plan) -> String {
    let mut lines = String::new();
    for gone in &plan.gone {
        let _ = write!(
            lines,
            "{}  {}, {} received, {} sent",
            gone.month.segment(),
            counted(gone.tally.events, "event", "events"),
            counted(gone.received, "message", "messages"),
            gone.sent
        );
        if !gone.unread.is_empty() {
            let _ = write!(lines, ", {} never read", gone.unread.len());
        }
        if gone.tally.damaged > 0 {
            let _ = write!(lines, ", {} damaged", counted(gone.tally.damaged, "line", "lines"));
        }
        lines.push('\n');
    }
    for kept in &plan.kept {
        let _ = writeln!(lines, "{}  stays: {}", kept.month.segment(), kept.why);
    }
    lines
}

fn question(office: &Office, plan: &Plan) -> String {
    let mut asked = listed(plan);
    let unread: Vec<u64> = plan.gone.iter().flat_map(|gone| gone.unread.iter().copied()).collect();
    if unread.is_empty() {
        return asked;
    }
    let _ = writeln!(asked, "\n{} nobody has read:", counted(unread.len(), "message", "messages"));
    let journal = office.journal();
    let Some(journal) = journal.as_ref() else { return asked };
    for received in unread.iter().take(NAMED).filter_map(|seq| journal.index().received_as(*seq)) {
        let from = received.lead.as_ref().map(|lead| lead.escaped().to_string()).unwrap_or_default();
        let begins = match journal.letter(received) {
            Ok(letter) => letter.preview.first_units(BEGINNING).escaped().to_string(),
            Err(error) => format!("can't be read: {error}"),
        };
        let _ = writeln!(asked, "  {}  {} from {from}: {begins}", local(received.at), kind(received));
    }
    if unread.len() > NAMED {
        let _ = writeln!(asked, "  and {} more", unread.len() - NAMED);
    }
    asked
}

fn tell(plan: &Plan, before: Month, out: &mut Out) -> Result<Exit, Failure> {
    if out.is_json() {
        let gone = |gone: &crate::chief::journal::Gone| {
            json!({
                "segment": gone.month.segment(),
                "events": gone.tally.events,
                "received": gone.received,
                "sent": gone.sent,
                "unread": gone.unread.len(),
            })
        };
        let kept = plan.kept.iter().map(|kept| {
            json!({"segment": kept.month.segment(), "why": kept.why.name(), "message": kept.why.to_string()})
        });
        let removed: Vec<Value> = plan.gone.iter().map(gone).collect();
        let object = json!({"removed": removed, "kept": kept.collect::<Vec<_>>()});
        out.json(&object.to_string())?;
        return Ok(Exit::Done);
    }
    let events: usize = plan.gone.iter().map(|gone| gone.tally.events).sum();
    let first = match plan.gone.len() {
        0 => format!("Nothing was removed: no month before {before} may go."),
        files => format!(
            "Removed {} with {}:",
            counted(files, "file", "files"),
            counted(events, "event", "events")
        ),
    };
    out.text(&format!("{first}\n{}", listed(plan)))?;
    Ok(Exit::Done)
}
