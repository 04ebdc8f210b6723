//! `headman message`: sends a message to a lead.

use std::ffi::OsString;

use clap::Args;

use super::failure::{Exit, Failure};
use super::out::Out;
use super::send::{self, Wanted};
use super::{block_on, located};
use crate::config::Places;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    session: OsString,
    #[command(flatten)]
    send: send::Options,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`]; nothing was sent then, unless it says otherwise.
pub fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let socket = located(places, "send")?;
    block_on(send::run(places, &socket, &arguments.session, Wanted::Message, &arguments.send, out))?
}
