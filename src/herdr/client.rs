//! Asking Herdr: one request a connection, after the section "Wire" of `docs/herdr.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::api::{Agent, Dropped, Pane, PaneRead, Pong, ProcessInfo, Shown, Snapshot, Status, WorktreeEntry};
use super::error::{HerdrError, excerpt};
use super::events::{Events, Subscription};
use super::wire::{self, MAX_REPLY};

/// The oldest protocol that has what we use. A newer one is welcome: fields are read leniently.
pub const MIN_PROTOCOL: u64 = 16;
/// Time allowed for a request, from connecting to the last byte read.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Rows asked of a pane with scrollback. Blank rows of the grid count, so more than is shown.
pub const RECENT_LINES: u64 = 80;

/// What is reported about the program in a pane (`pane.report_agent`).
#[derive(Debug, Clone, Copy)]
pub struct AgentReport<'a> {
    /// The pane.
    pub pane: &'a str,
    /// Who reports, as `herdr:pi`.
    pub source: &'a str,
    /// The kind of agent, as `pi`.
    pub agent: &'a str,
    /// `done` can't be reported and is sent as `idle`.
    pub state: Status,
    /// Rises from report to report, across processes: microseconds since the epoch. One that
    /// does not rise changes nothing, although Herdr answers `ok`.
    pub seq: u64,
    /// Must be repeated every time: a report without it takes the session off the list.
    pub session: Option<&'a str>,
}

/// What is reported for display (`pane.report_metadata`).
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    /// The pane.
    pub pane: &'a str,
    /// Who reports: ASCII letters, digits, `:`, `.`, `_`, `-`.
    pub source: &'a str,
    /// Rises from report to report, as for [`AgentReport::seq`].
    pub seq: u64,
    /// The title; none clears it.
    pub title: Option<&'a str>,
    /// Tokens by name; none clears one.
    pub tokens: &'a [(&'a str, Option<&'a str>)],
    /// How long it lasts without being repeated. What has no end outlives our own.
    pub ttl: Option<Duration>,
}

/// A client of one Herdr. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    timeout: Duration,
    /// The whole inventory is dear: never two snapshots at once, among clones.
    one_snapshot: Arc<Mutex<()>>,
}

impl Client {
    /// Of the Herdr behind `socket`, with [`TIMEOUT`]. Nothing is connected yet.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, timeout: TIMEOUT, one_snapshot: Arc::default() }
    }

    /// The same with another time allowed for each request.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The time allowed for each request.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// One request, one reply: the raw `result` object.
    ///
    /// # Errors
    /// Every kind of [`HerdrError`] but [`HerdrError::TooOld`].
    pub async fn request(&self, method: &str, params: Value) -> Result<Box<RawValue>, HerdrError> {
        let line = wire::request_line(method, params)?;
        let exchange = async {
            let mut lines = self.send(method, &line).await?;
            lines.next(method).await
        };
        let reply =
            tokio::time::timeout(self.timeout, exchange).await.map_err(|_| self.timed_out(method))??;
        wire::result_of(method, &reply)
    }

    /// Connects, makes sure of the peer, and writes the whole line.
    async fn send(&self, method: &str, line: &[u8]) -> Result<Lines, HerdrError> {
        let mut stream = loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => break stream,
                // The listener's queue is full; the time-out around this ends the waiting.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => return Err(HerdrError::from_connect(&self.socket, &error)),
            }
        };
        let theirs = stream.peer_cred().map_err(|error| self.io(&error))?.uid();
        let ours = rustix::process::geteuid().as_raw();
        if theirs != ours {
            return Err(HerdrError::ForeignPeer { path: self.socket.clone(), theirs, ours });
        }
        match stream.write_all(line).await {
            // It may have answered and closed without reading everything: the answer says more.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(self.io(&error)),
            _ => {}
        }
        tracing::trace!(method, "asked Herdr");
        Ok(Lines {
            reader: BufReader::with_capacity(1 << 16, stream),
            part: Vec::new(),
            socket: self.socket.clone(),
        })
    }

    fn timed_out(&self, method: &str) -> HerdrError {
        HerdrError::TimedOut { method: method.to_owned(), after: self.timeout }
    }

    fn io(&self, error: &std::io::Error) -> HerdrError {
        HerdrError::Io { path: self.socket.clone(), why: error.to_string() }
    }

    async fn read<T>(
        &self,
        method: &str,
        params: Value,
        why: &'static str,
        of: impl FnOnce(&RawValue) -> Option<T>,
    ) -> Result<T, HerdrError> {
        let result = self.request(method, params).await?;
        of(&result).ok_or_else(|| HerdrError::Garbage {
            method: method.to_owned(),
            why,
            excerpt: excerpt(result.get().as_bytes()),
        })
    }

    /// Who is there.
    ///
    /// # Errors
    /// As [`Client::request`], and [`HerdrError::TooOld`] below [`MIN_PROTOCOL`].
    pub async fn ping(&self) -> Result<Pong, HerdrError> {
        let pong = self.read("ping", json!({}), "no protocol in it", Pong::of_result).await?;
        new_enough(Some(pong.protocol))?;
        Ok(pong)
    }

    /// The whole inventory. It is the caller's part never to have two of them under way at once.
    ///
    /// # Errors
    /// As [`Client::ping`].
    pub async fn snapshot(&self) -> Result<Snapshot, HerdrError> {
        let _alone = self.one_snapshot.lock().await;
        let snapshot = self.read("session.snapshot", json!({}), "no snapshot in it", Snapshot::read).await?;
        new_enough(snapshot.protocol)?;
        Ok(snapshot)
    }

    /// The agents alone, and what was left out of the list.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn agent_list(&self) -> Result<(Vec<Agent>, Vec<Dropped>), HerdrError> {
        self.read("agent.list", json!({}), "no agents in it", Agent::read_all).await
    }

    /// One pane. After a move the old id still finds it; the answer has the new one.
    ///
    /// # Errors
    /// As [`Client::request`]; an unknown pane is a [`HerdrError::Server`] `pane_not_found`.
    pub async fn pane_get(&self, pane: &str) -> Result<Pane, HerdrError> {
        self.read("pane.get", json!({"pane_id": pane}), "no pane in it", Pane::of_result).await
    }

    /// Brings the operator to the pane.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn pane_focus(&self, pane: &str) -> Result<(), HerdrError> {
        self.request("pane.focus", json!({"pane_id": pane})).await.map(drop)
    }

    /// The last text of the pane, without touching what runs in it: looks at the pane first and asks
    /// only for what Herdr can give from its own grid (see [`passive_read`]).
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn pane_read(&self, pane: &str) -> Result<PaneRead, HerdrError> {
        self.recent_text(&self.pane_get(pane).await?).await
    }

    /// The same for whoever has looked at the pane just now.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn recent_text(&self, pane: &Pane) -> Result<PaneRead, HerdrError> {
        let (source, lines) = passive_read(pane);
        self.read_pane(&pane.pane_id.to_str_lossy(), source, lines).await
    }

    /// What is on the pane's screen now.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn pane_visible(&self, pane: &str) -> Result<PaneRead, HerdrError> {
        self.read_pane(pane, "visible", RECENT_LINES).await
    }

    async fn read_pane(&self, pane: &str, source: &'static str, lines: u64) -> Result<PaneRead, HerdrError> {
        let params = json!({"pane_id": pane, "source": source, "lines": lines, "format": "text"});
        self.read("pane.read", params, "no text in it", |result| PaneRead::of_result(result, source)).await
    }

    /// The programs in the pane.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn pane_process_info(&self, pane: &str) -> Result<ProcessInfo, HerdrError> {
        let params = json!({"pane_id": pane});
        self.read("pane.process_info", params, "no process info in it", ProcessInfo::of_result).await
    }

    /// The checkouts of the workspace's repository; the workspace's own is the one whose
    /// `open_workspace_id` is it.
    ///
    /// # Errors
    /// As [`Client::request`]; outside a repository a [`HerdrError::Server`] `not_git_worktree`.
    pub async fn worktree_list(&self, workspace: &str) -> Result<Vec<WorktreeEntry>, HerdrError> {
        let result = self.request("worktree.list", json!({"workspace_id": workspace})).await?;
        Ok(WorktreeEntry::read_all(&result))
    }

    /// Reports what the program in a pane does. `ok` proves nothing: read the list back.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn report_agent(&self, report: AgentReport<'_>) -> Result<(), HerdrError> {
        self.request("pane.report_agent", report_params(report)).await.map(drop)
    }

    /// Reports that the program in a pane has begun a new session. `ok` proves nothing here either.
    /// The state is not part of it.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn report_agent_session(&self, report: AgentReport<'_>) -> Result<(), HerdrError> {
        self.request("pane.report_agent_session", session_params(report)).await.map(drop)
    }

    /// Reports what is shown about a pane.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn report_metadata(&self, metadata: Metadata<'_>) -> Result<(), HerdrError> {
        self.request("pane.report_metadata", metadata_params(metadata)).await.map(drop)
    }

    /// Takes back everything `source` reported about the program in a pane, session included.
    ///
    /// # Errors
    /// As [`Client::pane_get`].
    pub async fn clear_agent_authority(&self, pane: &str, source: &str, seq: u64) -> Result<(), HerdrError> {
        self.request("pane.clear_agent_authority", clear_params(pane, source, seq)).await.map(drop)
    }

    /// Asks for a notice. What is too long for Herdr (80 and 240 characters) is cut.
    ///
    /// # Errors
    /// As [`Client::request`]. That it was not shown is no error.
    pub async fn notification_show(
        &self,
        title: &str,
        body: Option<&str>,
        sound: Option<&str>,
    ) -> Result<Shown, HerdrError> {
        let mut params = Map::new();
        params.insert("title".into(), first_chars(title, 80).into());
        if let Some(body) = body {
            params.insert("body".into(), first_chars(body, 240).into());
        }
        if let Some(sound) = sound {
            params.insert("sound".into(), sound.into());
        }
        self.read("notification.show", params.into(), "no `shown` in it", Shown::of_result).await
    }

    /// Opens a stream of events. Where Herdr does not know a kind, it is left out and the rest asked
    /// for again; what was left out is in [`Events::refused`].
    ///
    /// # Errors
    /// As [`Client::request`]; the server's refusal if nothing is left to ask for.
    pub async fn subscribe(&self, wanted: &[Subscription]) -> Result<Events, HerdrError> {
        let mut kinds = wanted.to_vec();
        let mut refused = Vec::new();
        loop {
            match self.subscribe_exactly(&kinds).await {
                Ok(lines) => return Ok(Events::new(lines, refused)),
                Err(HerdrError::Server { code, message, method }) if code == "invalid_request" => {
                    let (kept, left_out) = Subscription::without_unknown(&kinds, &message);
                    if kept.is_empty() || left_out.is_empty() {
                        return Err(HerdrError::Server { code, message, method });
                    }
                    refused.extend(left_out);
                    kinds = kept;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn subscribe_exactly(&self, kinds: &[Subscription]) -> Result<Lines, HerdrError> {
        const METHOD: &str = "events.subscribe";
        let subscriptions: Vec<Value> = kinds.iter().map(Subscription::params).collect();
        let line = wire::request_line(METHOD, json!({"subscriptions": subscriptions}))?;
        let start = async {
            let mut lines = self.send(METHOD, &line).await?;
            let reply = lines.next(METHOD).await?;
            wire::result_of(METHOD, &reply)?;
            Ok(lines)
        };
        tokio::time::timeout(self.timeout, start).await.map_err(|_| self.timed_out(METHOD))?
    }
}

/// Which source of `pane.read`, and how many lines, leave the program in the pane alone.
///
/// On an alternate screen, which has no scrollback, anything above the viewport is fetched by
/// sending wheel movements to the program: so only the visible grid is read there. An agent that is
/// not at work may be full-screen with old scrollback behind it: no more than its viewport is read.
pub fn passive_read(pane: &Pane) -> (&'static str, u64) {
    let scrolled = pane.max_offset_from_bottom.is_some_and(|rows| rows > 0);
    let at_rest = pane.agent.is_some() && pane.agent_status != Status::Working;
    match (scrolled, at_rest, pane.viewport_rows) {
        (true, false, _) => ("recent_unwrapped", RECENT_LINES),
        (true, true, Some(rows)) if rows > 0 => ("recent_unwrapped", rows.min(RECENT_LINES)),
        _ => ("visible", RECENT_LINES),
    }
}

fn new_enough(protocol: Option<u64>) -> Result<(), HerdrError> {
    match protocol {
        Some(protocol) if protocol < MIN_PROTOCOL => {
            Err(HerdrError::TooOld { protocol, minimum: MIN_PROTOCOL })
        }
        _ => Ok(()),
    }
}

pub(super) fn report_params(report: AgentReport<'_>) -> Value {
    let state = if report.state == Status::Done { Status::Idle } else { report.state };
    let mut params = json!({
        "pane_id": report.pane, "source": report.source, "agent": report.agent,
        "state": state.as_str(), "seq": report.seq,
    });
    if let Some(session) = report.session {
        params["agent_session_id"] = session.into();
    }
    params
}

pub(super) fn session_params(report: AgentReport<'_>) -> Value {
    let mut params = json!({
        "pane_id": report.pane, "source": report.source, "agent": report.agent, "seq": report.seq,
        "session_start_source": "new",
    });
    if let Some(session) = report.session {
        params["agent_session_id"] = session.into();
    }
    params
}

pub(super) fn metadata_params(metadata: Metadata<'_>) -> Value {
    let tokens: Map<String, Value> =
        metadata.tokens.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let mut params = json!({
        "pane_id": metadata.pane, "source": metadata.source, "seq": metadata.seq, "tokens": tokens,
    });
    match metadata.title {
        Some(title) => params["title"] = title.into(),
        None => params["clear_title"] = true.into(),
    }
    if let Some(ttl) = metadata.ttl {
        params["ttl_ms"] = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).into();
    }
    params
}

pub(super) fn clear_params(pane: &str, source: &str, seq: u64) -> Value {
    json!({"pane_id": pane, "source": source, "seq": seq})
}

fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

/// Lines of one connection, each bounded. Dropping [`Lines::next`] half-way loses nothing.
pub(super) struct Lines {
    reader: BufReader<UnixStream>,
    part: Vec<u8>,
    socket: PathBuf,
}

impl Lines {
    /// The next line without its newline; never reads beyond it from what is already buffered.
    pub(super) async fn next(&mut self, method: &str) -> Result<Vec<u8>, HerdrError> {
        loop {
            let chunk = self.reader.fill_buf().await.map_err(|error| match error.kind() {
                std::io::ErrorKind::ConnectionReset => HerdrError::Closed { method: method.to_owned() },
                _ => HerdrError::Io { path: self.socket.clone(), why: error.to_string() },
            })?;
            if chunk.is_empty() {
                return Err(HerdrError::Closed { method: method.to_owned() });
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (taken, used) = end.map_or((chunk.len(), chunk.len()), |end| (end, end + 1));
            if self.part.len() + taken > MAX_REPLY {
                return Err(wire::too_large(method));
            }
            self.part.extend_from_slice(&chunk[..taken]);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(std::mem::take(&mut self.part));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(rest: &str) -> Pane {
        let text = format!(r#"{{"pane":{{"pane_id":"w1:p1","tab_id":"w1:t1","workspace_id":"w1",{rest}}}}}"#);
        Pane::of_result(&RawValue::from_string(text).unwrap()).unwrap()
    }

    #[test]
    fn reading_asks_only_for_what_leaves_the_program_alone() {
        let scroll =
            |rows: u64| format!(r#""scroll":{{"max_offset_from_bottom":{rows},"viewport_rows":24}}"#);
        let visible = ("visible", RECENT_LINES);
        let recent = |lines| ("recent_unwrapped", lines);
        assert_eq!(passive_read(&pane(&scroll(0))), visible);
        assert_eq!(passive_read(&pane(r#""agent_status":"working","agent":"pi""#)), visible);
        assert_eq!(passive_read(&pane(r#""scroll":{"max_offset_from_bottom":"many"}"#)), visible);
        assert_eq!(passive_read(&pane(&scroll(7))), recent(80));
        let working = format!(r#"{},"agent":"pi","agent_status":"working""#, scroll(7));
        assert_eq!(passive_read(&pane(&working)), recent(80));
        for status in ["idle", "done", "blocked", "unknown"] {
            let at_rest = format!(r#"{},"agent":"pi","agent_status":"{status}""#, scroll(7));
            assert_eq!(passive_read(&pane(&at_rest)), recent(24), "{status}");
        }
        let no_viewport = r#""agent":"pi","scroll":{"max_offset_from_bottom":3}"#;
        assert_eq!(passive_read(&pane(no_viewport)), visible);
    }

    #[test]
    fn notices_are_cut_at_whole_characters() {
        assert_eq!(first_chars("äöü", 2), "äö");
        assert_eq!(first_chars("äöü", 3), "äöü");
    }
}
