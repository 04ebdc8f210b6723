//! `headman state`: the state block as of now. Needs no lease and writes nothing.

use super::failure::{Exit, Failure};
use super::list;
use super::out::Out;
use crate::config::Places;
use crate::herd::state_block::{self, Observed};

/// Runs the verb. That nothing can be said of the leads is an answer as well: whoever puts the block
/// before a program must be able to replace an earlier one.
///
/// # Errors
/// [`Failure`] where the command line is wrong or the answer can't be written.
pub fn run(places: &Places, out: &mut Out) -> Result<Exit, Failure> {
    match list::look(places, "tell the state") {
        Ok(seen) => {
            print(Observed::Fresh(&seen.roster), out)?;
            Ok(Exit::Done)
        }
        Err(failure) if failure.exit == Exit::Unavailable => {
            print(Observed::Unavailable(failure.code), out)?;
            // Why stands on stderr only: the answer itself is on stdout.
            failure.tell(false);
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
    }
}

fn print(observed: Observed<'_>, out: &mut Out) -> Result<(), Failure> {
    if out.is_json() {
        // Its line feeds are layout only.
        out.json(&state_block::document(observed).replace('\n', ""))
    } else {
        // Line by line it is JSON, but for its tags.
        out.json(&state_block::block(observed))
    }
}
