//! `headman inbox`: what leads sent, from the journal. Printing it needs neither Herdr nor lease, and
//! writes nothing.

mod mark;
mod prune;

use std::ffi::OsString;
use std::fmt::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::prefix::{self, is_meant};
use super::{block_on, located};
use crate::chief::journal::{Journal, JournalError, Received};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::{Kind, SessionId, Timestamp, Untrusted};
use crate::disk::{DiskError, Runtime, records};
use crate::source::changes::Changes;

/// Characters of an id that are shown: as many as stand for it.
const ID_SHOWN: usize = prefix::SHORTEST;
/// How long a message waits at most where the system tells no changes.
const LOOK: Duration = Duration::from_secs(1);
const WHAT: &str = "read the inbox";

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    upkeep: Option<Upkeep>,
    /// Only what nobody has read
    #[arg(long)]
    unread: bool,
    /// Only what this lead sent: its session id, or the beginning of one, 8 characters or more
    #[arg(long, value_name = "SESSION")]
    lead: Option<OsString>,
    /// Then wait, and print what comes as it is journalled
    #[arg(long)]
    follow: bool,
    /// Print nothing, and mark these as read: ids, or the first 8 characters or more
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["unread", "lead", "follow"])]
    mark_read: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Upkeep {
    /// Remove whole months of what was received and sent
    Prune(prune::Arguments),
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the journal can't be read, or no lead is called so.
pub fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    if let Some(Upkeep::Prune(upkeep)) = &arguments.upkeep {
        let prints = arguments.unread || arguments.lead.is_some() || arguments.follow;
        if prints || !arguments.mark_read.is_empty() {
            let message =
                "can't read the command line: what is printed and what is pruned have nothing in common";
            return Err(Failure::usage(message, "Leave --unread, --lead, --follow and --mark-read out"));
        }
        return prune::run(places, upkeep, out);
    }
    if !arguments.mark_read.is_empty() {
        return mark::run(places, &arguments.mark_read, out);
    }
    let socket = located(places, WHAT)?;
    let state = StateDir::at(&places.state_dir, &socket.path);
    if let Err(error) = state.version() {
        // What this release understands is shown all the same.
        note(&error.to_string());
    }
    let journal = Journal::open(&state.journal()).map_err(|error| unreadable(&error))?;
    let lead = match &arguments.lead {
        Some(lead) => Some(lead_of(&journal, &places.agent_dir.runtime(&socket.path), lead)?),
        None => None,
    };
    let mut reading = Reading { journal, unread: arguments.unread, lead, printed: 0, told: 0 };
    reading.print(out)?;
    if !arguments.follow {
        if reading.is_empty() && !out.is_json() {
            out.text(if arguments.unread { "No unread messages." } else { "No messages." })?;
        }
        return Ok(Exit::Done);
    }
    block_on(reading.follow(Changes::of(state.journal()), out))?
}

fn unreadable(error: &JournalError) -> Failure {
    let hint = match error {
        JournalError::Disk(_) => "See `headman doctor`",
        JournalError::NotOurs { .. } => "Move it away, or make it yours alone",
    };
    Failure::disk(&format!("{WHAT}: the journal"), error, hint)
}

/// The lead whose session is `wanted` or, if there is none, the only one whose session begins so:
/// of those that anything came from, and those with a record.
fn lead_of(journal: &Journal, runtime: &Runtime, wanted: &OsString) -> Result<SessionId, Failure> {
    let wanted = Untrusted::from_bytes_lossy(wanted.as_encoded_bytes());
    let recorded = records::scan_leads(runtime).unwrap_or_default();
    let recorded = recorded.into_iter().filter_map(|(_, record)| Some(record.ok()?.session));
    let mut known: Vec<SessionId> = journal.index().leads().cloned().chain(recorded).collect();
    known.sort();
    known.dedup();
    if let Some(lead) = known.iter().find(|lead| *lead.as_untrusted() == wanted) {
        return Ok(lead.clone());
    }
    known.retain(|lead| is_meant(lead, &wanted));
    let not_found = |message: String| {
        Err(Failure::new(Exit::No, "not_found", format!("can't {WHAT}: {message}"), "See `headman list`"))
    };
    match &known[..] {
        [lead] => Ok(lead.clone()),
        [] => not_found(format!("nothing came from session {}, and no lead has it", wanted.escaped())),
        _ => {
            let sessions: Vec<_> = known.iter().map(|lead| lead.escaped().to_string()).collect();
            not_found(format!("{} leads' sessions begin so: {}", sessions.len(), sessions.join(", ")))
        }
    }
}

/// The journal as it is printed.
struct Reading {
    journal: Journal,
    unread: bool,
    lead: Option<SessionId>,
    /// The number of the last message that was looked at; numbers are never given twice.
    printed: u64,
    /// How many lines were told to be unreadable.
    told: usize,
}

impl Reading {
    fn shows(&self, received: &Received) -> bool {
        (!self.unread || received.is_unread())
            && self.lead.as_ref().is_none_or(|lead| received.lead.as_ref() == Some(lead))
    }

    fn is_empty(&self) -> bool {
        !self.journal.index().received().any(|received| self.shows(received))
    }

    /// Prints what came after what was printed.
    fn print(&mut self, out: &mut Out) -> Result<(), Failure> {
        let damaged = self.journal.damaged() + self.journal.later();
        if damaged > self.told {
            note(&format!("{damaged} lines of the journal can't be read; they are passed over"));
        }
        self.told = damaged;
        let printed = self.printed;
        for received in self.journal.index().received().filter(|it| it.seq > printed) {
            self.printed = received.seq;
            if out.is_closed() {
                return Ok(());
            }
            if self.shows(received) {
                let text = self.journal.text(received);
                if let Err(error) = &text {
                    note(&format!("message {} can't be read: {error}", received.id));
                }
                if out.is_json() {
                    out.json(&json(received, text.ok().as_ref()))?;
                } else {
                    out.text(&plain(received, &text))?;
                }
            }
        }
        Ok(())
    }

    /// Prints what comes, until the reader goes or interrupts.
    async fn follow(&mut self, mut changes: Changes, out: &mut Out) -> Result<Exit, Failure> {
        let mut interrupt =
            signal(SignalKind::interrupt()).map_err(|error| Failure::disk(WHAT, &error, "Try again"))?;
        loop {
            if out.is_closed() || out.has_lost_its_reader() {
                return Ok(Exit::Done);
            }
            tokio::select! {
                _ = interrupt.recv() => return Ok(Exit::Interrupted),
                () = changes.next(LOOK) => {}
            }
            if self.journal.follow().map_err(|error| unreadable(&error))? {
                self.print(out)?;
            }
        }
    }
}

fn kind(received: &Received) -> &'static str {
    match received.kind {
        Some(Kind::LeadAsk) => "ask",
        Some(_) => "message",
        None => "no message",
    }
}

/// A message as a reader sees it: a line of what it is, then its whole text.
fn plain(received: &Received, text: &Result<Untrusted, DiskError>) -> String {
    let state = match (&received.refused, received.read) {
        (Some(_), _) => "refused",
        (None, true) => "read",
        (None, false) => "unread",
    };
    let from = match &received.lead {
        Some(lead) => lead.escaped().to_string(),
        None => "nobody known".to_owned(),
    };
    let id = received.id.to_string();
    let mut out = format!(
        "{}  {state:<7}  {:<7}  from {from}  {}",
        local(received.at),
        kind(received),
        &id[..ID_SHOWN]
    );
    if let Some(ask) = received.ask.filter(|_| received.kind == Some(Kind::LeadAsk)) {
        let _ = write!(out, "  ask {}", &ask.to_string()[..ID_SHOWN]);
    }
    if let Some(why) = &received.refused {
        let _ = write!(out, "\n    Not accepted: {why}.");
    }
    match text {
        Ok(text) => {
            for line in text.to_str_lossy().lines() {
                let indent = if line.is_empty() { "" } else { "    " };
                let _ = write!(out, "\n{indent}{line}");
            }
        }
        Err(error) => {
            let _ = write!(out, "\n    Its text can't be read: {error}.");
        }
    }
    out.push_str("\n\n");
    out
}

/// A moment on the operator's clock, `2026-11-30 09:12`.
pub(super) fn local(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// A message as one object; what is not known is null.
fn json(received: &Received, text: Option<&Untrusted>) -> String {
    let literal = |text: Option<&Untrusted>| {
        let mut literal = Vec::new();
        match text {
            Some(text) => text.write_json(&mut literal),
            None => literal.extend_from_slice(b"null"),
        }
        literal
    };
    let number =
        |at: Option<Timestamp>| at.map_or_else(|| "null".to_owned(), |at| at.as_millis().to_string());
    let object = ObjectWriter::new()
        .string("id", &received.id.to_string().into())
        .number("seq", received.seq as f64)
        .raw("kind", &literal(received.kind.map(|kind| kind.as_str().into()).as_ref()))
        .raw("session", &literal(received.lead.as_ref().map(SessionId::as_untrusted)))
        .raw("ask_id", &literal(received.ask.map(|ask| ask.to_string().into()).as_ref()))
        .raw("created_at", number(received.created_at).as_bytes())
        .raw("received_at", number(Some(received.at)).as_bytes())
        .raw("read", received.read.to_string().as_bytes())
        .raw("refused", &literal(received.refused.as_deref().map(Untrusted::from).as_ref()))
        .raw("text", &literal(text))
        .finish();
    String::from_utf8_lossy(&object).into_owned()
}
