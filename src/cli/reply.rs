//! `headman reply`: answers a lead's ask.

use std::ffi::OsString;

use clap::Args;

use super::failure::{Exit, Failure};
use super::out::Out;
use super::prefix;
use super::send::{self, Wanted};
use super::{block_on, located};
use crate::config::Places;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    session: OsString,
    /// The id of its ask, or the first 8 characters or more
    ask_id: String,
    #[command(flatten)]
    send: send::Options,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`]; nothing was sent then, unless it says otherwise.
pub fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let ask = prefix::ask_prefix(&arguments.ask_id).ok_or_else(|| {
        let hint = "Give the id that `headman list` shows, or its first 8 characters or more";
        Failure::usage("can't reply: that is no ask id", hint)
    })?;
    let socket = located(places, "reply")?;
    block_on(send::run(places, &socket, &arguments.session, Wanted::Reply(ask), &arguments.send, out))?
}
