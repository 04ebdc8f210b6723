//! `headman lead ask`: what an open lead asks the Chief, and, if it waits, the reply.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use super::{Who, of_session, of_unable, tell_if_unlisted};
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::{Out, note};
use crate::cli::signals::Signals;
use crate::cli::{block_on, duration, letter, located};
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::{Kind, SessionId, Untrusted, Uuid};
use crate::lead::{AskError, Asked, Coordination, SessionError};

/// How often it is looked whether the reply came.
const LOOK: Duration = Duration::from_millis(100);

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    who: Who,
    /// The question, at most 1,024 bytes; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// A file to attach, or a result as result:UUID; may be given again
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<OsString>,
    /// Wait so long for the reply, as 30s, 500ms or 2m, and print it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
}

const WHAT: &str = "ask the Chief";

/// Runs the verb.
///
/// # Errors
/// [`Failure`]; nothing was asked then.
pub(super) fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let text = letter::text(WHAT, &arguments.text)?;
    let files = letter::files(&arguments.files)?;
    let socket = located(places, WHAT)?;
    block_on(async {
        let mut lead = arguments.who.join(places, &socket, WHAT).await?;
        let rendered = lead
            .render(Kind::LeadAsk, None, &text, &files)
            .map_err(|error| letter::not_attached(WHAT, &error))?;
        letter::tell_references(&rendered);
        tell_if_unlisted(&mut lead).await;
        let mut signals = Signals::new().map_err(|error| Failure::disk(WHAT, &error, "Try again"))?;
        let asked = lead.ask(text, rendered.text).await.map_err(|error| not_asked(&error))?;
        if let Err(why) = &asked.published {
            note(&format!("the ask is pending, but there is no message of it yet: {why}"));
        }
        let ended = match arguments.wait {
            None => Ended::Asked,
            Some(wait) => tokio::select! {
                ended = reply(&mut lead, asked.ask, wait) => ended?,
                _ = signals.any() => Ended::Interrupted,
            },
        };
        tell(&asked, &ended, lead.file().session(), out)?;
        Ok(match ended {
            Ended::Asked | Ended::Answered(..) => Exit::Done,
            Ended::NotYet => Exit::No,
            Ended::Interrupted => Exit::Interrupted,
        })
    })?
}

/// How the waiting ended.
enum Ended {
    /// It was not waited.
    Asked,
    /// The reply's id and text.
    Answered(Uuid, Untrusted),
    NotYet,
    Interrupted,
}

/// Waits until the open lead has the reply.
async fn reply(lead: &mut Coordination, ask: Uuid, wait: Duration) -> Result<Ended, Failure> {
    let deadline = Instant::now() + wait;
    let mut was_open = true;
    loop {
        match answered(lead, ask) {
            Ok(Some((id, text))) => return Ok(Ended::Answered(id, text)),
            Ok(None) => {}
            Err(error) if error.is_passing() => {}
            Err(error) => return Err(of_session("wait for the reply", &error)),
        }
        let is_open = lead.is_present();
        if was_open && !is_open {
            note("the lead is not open any more: its reply comes once it is opened again");
        }
        was_open = is_open;
        if Instant::now() >= deadline {
            return Ok(Ended::NotYet);
        }
        tokio::time::sleep_until((Instant::now() + LOOK).min(deadline)).await;
    }
}

/// The reply, once the session no longer waits for it.
fn answered(lead: &mut Coordination, ask: Uuid) -> Result<Option<(Uuid, Untrusted)>, SessionError> {
    let file = lead.file();
    file.look()?;
    if file.state()?.pending_ask.is_some_and(|pending| pending.ask == ask) {
        return Ok(None);
    }
    file.reply_to(ask)
}

fn not_asked(error: &AskError) -> Failure {
    let message = format!("can't {WHAT}: {error}");
    match error {
        AskError::Pending => Failure::new(Exit::No, "pending", message, "Wait for its reply"),
        AskError::Closed => {
            Failure::new(Exit::No, "not_open", message, "Start `headman lead open` for that session again")
        }
        AskError::Invalid(_) => {
            Failure::new(Exit::No, "question", message, "Ask in fewer words, and attach the rest with --file")
        }
        AskError::Session(error) => of_unable(WHAT, error),
        AskError::Record(_) | AskError::Disk(_) => {
            Failure::new(Exit::Unavailable, "disk", message, "See `headman doctor`")
        }
    }
}

fn tell(asked: &Asked, ended: &Ended, session: &SessionId, out: &mut Out) -> Result<(), Failure> {
    let fate = if matches!(ended, Ended::Answered(..)) { "answered" } else { "pending" };
    if !out.is_json() {
        return match ended {
            Ended::Answered(_, text) => out.text(&text.to_str_lossy()),
            _ => out.text(&format!("{} {fate}", asked.ask)),
        };
    }
    let mut object = ObjectWriter::new();
    object
        .string("session", session.as_untrusted())
        .string("ask_id", &asked.ask.to_string().into())
        .optional("id", asked.published.as_ref().ok().map(|id| id.to_string().into()).as_ref())
        .string("fate", &fate.into());
    if let Ended::Answered(id, text) = ended {
        let reply = ObjectWriter::new().string("id", &id.to_string().into()).string("text", text).finish();
        object.raw("reply", &reply);
    }
    out.json(&String::from_utf8_lossy(&object.finish()))
}
