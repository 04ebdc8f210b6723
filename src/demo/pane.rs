//! What the world sees of a lead of the demo: what it reports to Herdr, as Pi does, and what it
//! shows on its pane.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::lead::complain;
use super::session::ToolCall;
use crate::herdr::{Client, HerdrError, Status};

/// The lead's own reports to Herdr. They are repeated, so one that fails is only told of.
pub(super) struct Herdr {
    client: Client,
    pane: String,
    session_file: String,
    last_seq: u64,
    status: Status,
}

impl Herdr {
    pub(super) fn new(client: Client, pane: &str, session_file: &Path, status: Status) -> Self {
        let session_file = session_file.to_string_lossy().into_owned();
        Self { client, pane: pane.to_owned(), session_file, last_seq: 0, status }
    }

    /// What it was last said to do.
    pub(super) fn status(&self) -> Status {
        self.status
    }

    /// Reports that it does something else, if it does.
    pub(super) async fn show(&mut self, status: Status) {
        if std::mem::replace(&mut self.status, status) != status {
            self.report().await;
        }
    }

    /// Reports the session, the state and how it is called.
    pub(super) async fn begin(&mut self, name: &str) {
        let session = json!({
            "pane_id": self.pane, "source": "herdr:pi", "agent": "pi", "seq": self.seq(),
            "session_start_source": "new", "agent_session_path": self.session_file,
        });
        self.send("pane.report_agent_session", session).await;
        self.report().await;
        let metadata = json!({
            "pane_id": self.pane, "source": "pi-herdsman:lead", "seq": self.seq(), "title": name,
            "tokens": {"pi_herdsman_role": "lead", "pi_herdsman_name": name},
        });
        self.send("pane.report_metadata", metadata).await;
    }

    /// Repeats what it does.
    pub(super) async fn report(&mut self) {
        let report = json!({
            "pane_id": self.pane, "source": "herdr:pi", "agent": "pi", "state": self.status.as_str(),
            "seq": self.seq(), "agent_session_path": self.session_file,
        });
        self.send("pane.report_agent", report).await;
    }

    async fn send(&self, method: &str, params: serde_json::Value) {
        let sent: Result<_, HerdrError> = self.client.request(method, params).await;
        if let Err(error) = sent {
            complain(&error);
        }
    }

    /// Microseconds since the epoch, as every reporter counts, always rising.
    fn seq(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_seq = u64::try_from(now.as_micros()).unwrap_or(0).max(self.last_seq + 1);
        self.last_seq
    }
}

/// What stands before a pane that is gone, in place of a lead's number.
const GONE: &str = "gone";

/// What the lead shows on its pane: lines on standard output that begin with its number and a tab. A
/// pane whose agent died is named in the same way.
#[derive(Debug, Clone, Copy)]
pub struct Screen(pub usize);

/// What such a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    /// This lead shows a line of text.
    Line(usize, &'a str),
    /// This pane is gone.
    Gone(&'a str),
}

impl Screen {
    pub(super) fn shows(self, text: &str) {
        let mut lines = String::new();
        for line in text.lines() {
            lines += &format!("{}\t{line}\n", self.0);
        }
        write(&lines);
    }

    pub(super) fn shows_call(self, call: &ToolCall<'_>) {
        if !call.say.is_empty() {
            self.shows(call.say);
        }
        self.shows(&format!("● {} {}", call.tool, call.arguments));
        let result = call.result.lines().next_back().unwrap_or_default();
        self.shows(&format!("  {} {result}", if call.failed { "✗" } else { "└" }));
    }

    /// An agent of the lead died with its pane.
    pub(super) fn loses(self, pane: &str) {
        write(&format!("{GONE}\t{pane}\n"));
    }

    /// Takes such a line apart.
    pub fn read(line: &str) -> Option<Shown<'_>> {
        let (whose, text) = line.split_once('\t')?;
        if whose == GONE {
            return Some(Shown::Gone(text));
        }
        Some(Shown::Line(whose.parse().ok()?, text))
    }
}

fn write(lines: &str) {
    // Nobody may be looking any more.
    let _ = std::io::stdout().lock().write_all(lines.as_bytes());
}
