//! `headman signals`: what a lead's session shows by itself, round by round. Needs no lease and writes
//! nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::{list, prefix, transcript};
use crate::chief::journal::Journal;
use crate::chief::staff::path_of;
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::SessionId;
use crate::contract::json::{ObjectWriter, number_text};
use crate::herd::Lead;
use crate::herd::evidence::State as LeadState;
use crate::pi::said;
use crate::pi::tail::Fold;
use crate::signals::dirty::Mark;
use crate::signals::self_report::{Circumstances, Report};
use crate::signals::sight::Standing;
use crate::signals::watch::{Outcome, Watch};

/// Whose session is meant.
#[derive(Debug, Args)]
pub struct Subject {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    #[arg(value_name = "SESSION", required_unless_present = "file", conflicts_with = "file")]
    lead: Option<OsString>,
    /// Read this session file, whoever's it is; asks neither Herdr nor the leads' records
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A session that was read.
pub(super) struct Watched {
    /// What it shows.
    pub watch: Watch,
    /// Whose it is.
    pub session: SessionId,
    /// Its rounds.
    pub outcomes: Vec<Outcome>,
    /// The lead that has it; none where a file was named.
    pub lead: Option<Lead>,
    /// What the lead last wrote to the Chief, since the user's turn.
    last_message: Option<String>,
}

impl Subject {
    /// The session file that is meant, in order to do `what`, and the lead that has it unless the file was
    /// named.
    fn find(
        &self,
        what: &str,
        places: impl FnOnce() -> Result<Places, Failure>,
    ) -> Result<(PathBuf, Option<Lead>), Failure> {
        let no = |code, why: String, hint| Failure::new(Exit::No, code, format!("can't {what}: {why}"), hint);
        match (&self.file, &self.lead) {
            (Some(file), _) => Ok((file.clone(), None)),
            (None, Some(wanted)) => {
                let wanted = transcript::session_id(what, wanted)?;
                let seen = list::look(&places()?, what)?;
                let lead = prefix::lead_of(&seen.roster, &wanted)
                    .map_err(|why| no("not_found", why, "See `headman list`"))?;
                let Some(file) = &lead.session_file else {
                    let why = format!("Herdr names no session file of {}", lead.session.escaped());
                    return Err(no("no_file", why, "Wait for the session's first message"));
                };
                Ok((path_of(file), Some(lead.clone())))
            }
            (None, None) => Err(Failure::usage(
                format!("can't {what}: of which session is not said"),
                "Name a session, or a file with --file",
            )),
        }
    }

    /// The same, with the session that the file must be of.
    ///
    /// # Errors
    /// [`Failure`] where there is no such lead, or Herdr names no file of it.
    pub(super) fn file(
        &self,
        what: &str,
        places: impl FnOnce() -> Result<Places, Failure>,
    ) -> Result<(PathBuf, Option<SessionId>), Failure> {
        let (path, lead) = self.find(what, places)?;
        Ok((path, lead.map(|lead| lead.session)))
    }

    /// Reads the session that is meant, in order to do `what`.
    ///
    /// # Errors
    /// [`Failure`] where there is no such lead, or its file can't be read.
    pub(super) fn watch(
        &self,
        what: &str,
        places: impl Fn() -> Result<Places, Failure>,
    ) -> Result<Watched, Failure> {
        let (path, lead) = self.find(what, &places)?;
        let session: Option<&SessionId> = lead.as_ref().map(|lead| &lead.session);
        let begin = |header: &crate::pi::session::Header| (Watch::begin(header), Vec::new());
        let ((mut watch, mut outcomes), read) =
            said::fold(&path, session, begin, |(watch, outcomes), step| {
                outcomes.extend(watch.take(&step));
            })
            .map_err(|error| transcript::unread(what, &error))?;
        // Whoever looks but once can't wait for results.
        outcomes.extend(watch.close());
        for (count, what) in [(read.bad_lines, "no JSON"), (read.long_lines, "too long")] {
            if count > 0 {
                note(&format!("lines of the session file that are {what}: {count}"));
            }
        }
        let last_message = match &lead {
            Some(lead) => last_message(&places()?, &lead.session, watch.asked_at()),
            None => None,
        };
        let session = read.header.session;
        Ok(Watched { watch, session, outcomes, lead, last_message })
    }
}

impl Watched {
    /// What is advised.
    pub(super) fn standing(&self) -> Standing {
        let ask = self.lead.as_ref().and_then(|lead| lead.pending_ask.as_ref());
        let question = ask.map(|ask| ask.question.to_str_lossy());
        let is_in = |state| self.lead.as_ref().is_some_and(|lead| lead.state == state);
        self.watch.standing(&Circumstances {
            pending_ask: question.as_deref(),
            is_blocked: is_in(LeadState::Blocked),
            is_working: is_in(LeadState::Working),
            last_message: self.last_message.as_deref(),
        })
    }
}

/// What `lead` last wrote to the Chief, as the journal has it, at or after `since`.
fn last_message(places: &Places, lead: &SessionId, since: Option<u64>) -> Option<String> {
    let socket = places.socket.as_ref().ok()?;
    let state = StateDir::at(&places.state_dir, &socket.path);
    let told = |error: &dyn std::fmt::Display| note(&format!("what the lead wrote can't be read: {error}"));
    let journal = Journal::open(&state.journal()).map_err(|error| told(&error)).ok()?;
    let received = journal.index().received().rev().find(|it| it.lead.as_ref() == Some(lead))?;
    if received.at.as_millis() < since? {
        return None;
    }
    let text = journal.text(received).map_err(|error| told(&error)).ok()?;
    Some(text.to_str_lossy().into_owned())
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the session can't be read.
pub fn run(
    places: impl Fn() -> Result<Places, Failure>,
    subject: &Subject,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let watched = subject.watch("read the signals", places)?;
    let standing = watched.standing();
    if out.is_json() {
        for outcome in &watched.outcomes {
            out.json(&round_json(outcome))?;
        }
        out.json(&last_json(&standing, watched.watch.mark()))?;
    } else {
        out.text(&plain(&watched, &standing))?;
    }
    Ok(Exit::Done)
}

/// The time of day, in milliseconds since the epoch.
pub(super) fn now() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}

fn boolean(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

fn round_json(outcome: &Outcome) -> String {
    let mut object = ObjectWriter::new();
    object
        .raw("round", number_text(outcome.round as f64).as_bytes())
        .string("entry", &outcome.entry.as_str().into())
        .raw("novel", boolean(outcome.novel))
        .raw("mutated", boolean(outcome.mutated));
    match outcome.signal {
        Some(signal) => object.string("detector", &signal.as_str().into()),
        None => object.raw("detector", b"null"),
    };
    object.raw("report", &outcome.report.as_ref().map_or_else(|| b"null".to_vec(), Report::to_json));
    String::from_utf8_lossy(&object.finish()).into_owned()
}

fn last_json(standing: &Standing, mark: Mark) -> String {
    let mut object = ObjectWriter::new();
    match standing.advice {
        Some(advice) => object.string("advice", &advice.as_str().into()),
        None => object.raw("advice", b"null"),
    };
    object.raw("dirty", boolean(mark == Mark::Dirty));
    String::from_utf8_lossy(&object.finish()).into_owned()
}

/// The same for a reader, with what it rests on.
fn plain(watched: &Watched, standing: &Standing) -> String {
    let mut lines = Vec::new();
    for outcome in &watched.outcomes {
        let mut words = vec![if outcome.novel { "new" } else { "nothing new" }.to_owned()];
        if outcome.mutated {
            words.push("changes".to_owned());
        }
        words.extend(outcome.signal.map(|signal| signal.as_str().to_uppercase()));
        words.extend(outcome.report.as_ref().map(|report| format!("reports {}", report.state.as_str())));
        lines.push(format!("{:>5}  {}  {}", outcome.round, outcome.entry, words.join(", ")));
    }
    let watch = &watched.watch;
    let mark = match watch.mark() {
        Mark::Clean => "none that was not checked",
        Mark::ContentOnly => "read again but not checked: content, not behaviour",
        Mark::Dirty => "not checked",
    };
    lines.push(format!("Changes: {mark}"));
    let badges: Vec<&str> = watch.badges().into_iter().map(|badge| badge.as_str()).collect();
    if !badges.is_empty() {
        lines.push(format!("Also: {}", badges.join(", ")));
    }
    if let Some(quiet) = watch.silence(now()) {
        lines.push(format!("Silent for {} min, which is no fault by itself", quiet / 60_000));
    }
    if let Some(report) = &standing.report {
        let derived =
            if report.origin == crate::signals::self_report::Origin::Derived { ", derived" } else { "" };
        lines.push(format!("State: {}{derived}", report.state.as_str()));
    }
    lines.push(format!("Advice: {}", standing.advice.map_or("none", |advice| advice.as_str())));
    if let Some(draft) = &standing.draft {
        lines.push(format!("Draft: {draft}"));
    }
    if let Some(recital) = watch.recital() {
        lines.push(format!("Constraints from before a compaction:\n{}", recital.text.trim_end()));
    }
    lines.join("\n")
}
