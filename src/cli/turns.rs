//! `headman turns`: what the logs of turns say of each seat, and what runs. Writes nothing.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use crate::config::Places;
use crate::console::age;
use crate::console::theme::UNICODE;
use crate::contract::Timestamp;
use crate::turn::history::History;
use crate::turn::running::{Left, Running};
use crate::turn::statistics::{Seat, heights, shown};
use crate::turn::{ledger, metrics};

/// Turns drawn one by one.
const BARS: usize = 20;

/// What it is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this seat
    #[arg(long, value_name = "NAME")]
    seat: Option<String>,
    /// Only turns that ended within this time, as 30m or 24h
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    since: Option<Duration>,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the seat that was asked for has no turns.
pub(super) fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let now = ledger::now();
    let before = |time: Duration| {
        Timestamp::from_millis(
            now.as_millis().saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        )
    };
    let mut picture = History::default().look(&places.turn_logs, arguments.since.map(before));
    picture.troubles.iter().for_each(|trouble| note(trouble));
    if let Some(name) = &arguments.seat {
        let name = metrics::seat(name);
        picture.seats.retain(|seat| seat.name == name);
        if picture.seats.is_empty() {
            let message = format!("can't show the turns: the seat {name} has none");
            return Err(Failure::new(Exit::No, "not_found", message, "`headman turns` lists the seats"));
        }
    }
    if out.is_json() {
        let seats: Vec<Value> = picture.seats.iter().map(to_json).collect();
        out.json(&json!({ "seats": seats }).to_string())?;
    } else {
        out.text(&plain(&picture.seats, now))?;
    }
    Ok(Exit::Done)
}

fn to_json(seat: &Seat) -> Value {
    let failures: Map<String, Value> =
        seat.failures.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
    let running = |running: &Running| {
        json!({
            "supervisor": running.supervisor,
            "adapter": running.adapter,
            "since": running.since.map(Timestamp::as_millis),
            "alive": running.left == Left::Supervised,
            "left": running.left.pids(),
        })
    };
    json!({
        "seat": seat.name,
        "turns": seat.turns,
        "ok": seat.ok,
        "partial": seat.is_partial,
        "last": seat.last.map(|last| json!({
            "at": last.at.as_millis(),
            "outcome": last.outcome,
            "ok": last.ok,
            "failure": last.failure,
            "duration_ms": last.took,
        })),
        "failures": failures,
        "stalls": seat.stalls,
        "median_ms": seat.median,
        "p95_ms": seat.p95,
        "failed_in_a_row": seat.in_a_row,
        "retry_after_s": seat.advice.map(|advice| advice.after.as_secs()),
        "circuit_open": seat.advice.is_some_and(|advice| advice.circuit_open),
        "running": seat.running.iter().map(running).collect::<Vec<_>>(),
    })
}

fn plain(seats: &[Seat], now: Timestamp) -> String {
    if seats.is_empty() {
        return "No turns.".to_owned();
    }
    let widest = seats.iter().map(|seat| seat.name.len()).max().unwrap_or(0);
    let ago =
        |at: Timestamp| age::shown(Duration::from_millis(now.as_millis().saturating_sub(at.as_millis())));
    let mut out = String::new();
    for seat in seats {
        let _ = write!(out, "{:widest$}", seat.name);
        if let (Some(last), Some(percent)) = (&seat.last, seat.ok_percent()) {
            let what = last.failure.unwrap_or(last.outcome);
            let more = if seat.is_partial { "+" } else { "" };
            let _ = write!(out, "  {what} {} ago  ok {percent}% of {}{more}", ago(last.at), seat.turns);
        }
        if let (Some(median), Some(p95)) = (seat.median, seat.p95) {
            let _ = write!(out, "  median {}, p95 {}", shown(median), shown(p95));
        }
        let bars: String =
            heights(&seat.bars, BARS).iter().map(|(height, _)| UNICODE.bars[*height]).collect();
        let _ = writeln!(out, "  {bars}");
        for (failure, count) in &seat.failures {
            let _ = writeln!(out, "    {failure} {count}");
        }
        if let Some(advice) = seat.advice {
            let circuit = if advice.circuit_open { ", nothing more until one goes well" } else { "" };
            let wait = advice.after.as_secs();
            let _ = writeln!(out, "    failed {} in a row: wait {wait}s{circuit}", seat.in_a_row);
        }
        for running in &seat.running {
            let since = running.since.map_or_else(|| "?".to_owned(), ago);
            let _ = writeln!(out, "    {}", running.told(&since));
        }
    }
    out.truncate(out.trim_end().len());
    out
}
