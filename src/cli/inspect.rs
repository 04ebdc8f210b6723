//! `headman inspect`: the last text on a lead's pane, and the programs there. Needs no lease, writes
//! nothing, and nothing reaches the pane.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use super::failure::{Exit, Failure};
use super::list::{self, Seen};
use super::out::Out;
use super::{block_on, located, prefix};
use crate::chief::inspection::{InspectError, Subject, Text, inspect};
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::{SessionId, Untrusted};
use crate::fact::{Foreground, Inspection, ProcessEvidence};
use crate::herd::Lead;
use crate::herdr::Client;

/// What fails.
const WHAT: &str = "inspect the lead";

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    session: OsString,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where there is no such lead, it is not where it was seen, or Herdr does not answer.
pub fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let wanted = SessionId::new(Untrusted::from_bytes_lossy(arguments.session.as_encoded_bytes()));
    let wanted = wanted.ok_or_else(|| {
        Failure::usage(format!("can't {WHAT}: that is no session id"), "See `headman list`")
    })?;
    let socket = located(places, WHAT)?;
    let Seen { roster, .. } = list::look(places, WHAT)?;
    let no = |code, why: &dyn std::fmt::Display, hint: &str| {
        Failure::new(Exit::No, code, format!("can't {WHAT}: {why}"), hint)
    };
    let lead =
        prefix::lead_of(&roster, &wanted).map_err(|why| no("not_found", &why, "See `headman list`"))?;
    let client = Client::new(PathBuf::from(&socket.path));
    let looked = block_on(inspect(&client, &Subject::of(lead), Text::Recent))?;
    let inspection = looked.map_err(|error| match &error {
        InspectError::Herdr(why) => Failure::herdr(WHAT, why, &socket),
        InspectError::NotThere(_) | InspectError::Changed(_) => no("changed", &error, "Look again"),
    })?;
    if out.is_json() {
        out.json(&to_json(lead, &inspection))?;
    } else {
        out.text(&plain(lead, &inspection))?;
    }
    Ok(Exit::Done)
}

fn to_json(lead: &Lead, inspection: &Inspection) -> String {
    lead.to_json_with(|object| {
        object
            .number("captured_at", inspection.captured_at.as_number())
            .string("recent_output", &inspection.output)
            .raw("recent_output_truncated", if inspection.truncated { b"true" } else { b"false" });
        match &inspection.process {
            Ok(process) => object.raw("process", &process_json(process)),
            Err(why) => object.string("process_error", &why.as_str().into()),
        };
    })
}

fn process_json(process: &ProcessEvidence) -> Vec<u8> {
    let mut object = ObjectWriter::new();
    for (key, value) in [("shell_pid", process.shell), ("foreground_process_group_id", process.group)] {
        if let Some(value) = value {
            object.number(key, value as f64);
        }
    }
    let foreground: Vec<Vec<u8>> = process.foreground.iter().map(program_json).collect();
    let foreground = [b"[".as_slice(), &foreground.join(&b','), b"]"].concat();
    object.raw("foreground_processes", &foreground).finish()
}

fn program_json(program: &Foreground) -> Vec<u8> {
    ObjectWriter::new()
        .number("pid", program.pid as f64)
        .optional("argv0", program.argv0.as_ref())
        .optional("cmdline", program.cmdline.as_ref())
        .optional("state", program.state.as_ref())
        .finish()
}

/// Lines to read: who it is and what runs there, then the text, indented so that no line of it can
/// pass for one of ours.
fn plain(lead: &Lead, inspection: &Inspection) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}  {}  pane {}  {}",
        lead.display_name.escaped(),
        lead.state.as_str(),
        lead.pane.escaped(),
        lead.session.escaped()
    );
    match &inspection.process {
        Ok(process) => {
            for (what, pid) in [("shell", process.shell), ("foreground group", process.group)] {
                if let Some(pid) = pid {
                    let _ = writeln!(out, "{what} {pid}");
                }
            }
            for program in &process.foreground {
                let command = program.cmdline.as_ref().or(program.argv0.as_ref());
                let command = command.map(|it| it.escaped().to_string()).unwrap_or_default();
                let state = program.state.as_ref().map(|it| format!(" ({})", it.escaped()));
                let _ = writeln!(out, "process {}{} {command}", program.pid, state.unwrap_or_default());
            }
        }
        Err(why) => {
            let _ = writeln!(out, "the programs there are not known: {why}");
        }
    }
    let more = if inspection.truncated { ", cut at its beginning" } else { "" };
    let _ = writeln!(out, "recent output{more}:");
    if inspection.output.is_empty() {
        out.push_str("    (none)");
    }
    for line in inspection.output.to_str_lossy().lines() {
        let _ = writeln!(out, "    {line}");
    }
    out.truncate(out.trim_end().len());
    out
}
