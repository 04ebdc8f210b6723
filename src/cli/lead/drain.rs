//! `headman lead drain`: takes what is queued for a lead that nobody holds open, once.

use clap::Args;

use super::teller::{Silent, Teller};
use super::{Who, not_opened, not_up, of_unable};
use crate::cli::failure::{Exit, Failure};
use crate::cli::out::note;
use crate::cli::{block_on, located};
use crate::config::Places;
use crate::lead::coordination::Drain;
use crate::lead::{About, Coordination, NotUp, Opening, Place, Unable};

/// Whose messages.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    who: Who,
}

const WHAT: &str = "drain the inbox";

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the lead can't be opened, or nothing may be taken now.
pub(super) fn run(places: &Places, arguments: &Arguments) -> Result<Exit, Failure> {
    let socket = located(places, WHAT)?;
    let file = arguments.who.begin(places, &socket, WHAT)?;
    let failed = |error: std::io::Error| Failure::disk(WHAT, &error, "Try again");
    let mut teller = Teller::start().map_err(failed)?;
    let opening = Opening {
        agent_dir: places.agent_dir.clone(),
        socket: socket.path.clone(),
        // It is gone before anybody could be led to it.
        place: Place::none(),
        about: About::default(),
    };
    let mut lead = Coordination::open(opening, file).map_err(|error| not_opened(WHAT, &error))?;
    let drained = block_on(both(&mut lead, &mut teller));
    lead.close().map_err(|error| Failure::disk(WHAT, &error, "See `headman doctor`"))?;
    let waits = drained?.map_err(|error| of_unable(WHAT, &error))?;
    match teller.silent() {
        Some(Silent::Failed(failure)) => Err(failure),
        Some(Silent::Closed) => Ok(Exit::Done),
        None => waits.map_or(Ok(Exit::Done), |why| Err(not_up(WHAT, &why, &socket))),
    }
}

/// One batch of each inbox; why what the Chief sent stays, if it does.
async fn both(lead: &mut Coordination, teller: &mut Teller) -> Result<Option<NotUp>, Unable> {
    let Drain { waits, errors, .. } = lead.drain(|received| teller.tell(received)).await?;
    let from_peers = lead.drain_peers(|received| teller.tell(received))?;
    for error in errors.iter().chain(&from_peers.errors) {
        note(&format!("a message stays queued: {error}"));
    }
    Ok(waits)
}
