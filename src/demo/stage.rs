//! Keeps one lead process running: starts it, attaches it to its panes, shows what it writes, starts
//! it again after it died.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::lead::{DIED, Options};
use super::pane::{Screen, Shown};
use super::server::Server;
use crate::contract::Untrusted;

/// The hidden verb under which headman is a lead of the demo.
pub const VERB: &str = "demo-lead";

/// How long a process may take to withdraw once its standard input ended.
const WITHDRAW: Duration = Duration::from_secs(2);
/// A process that dies sooner never came to play.
const TOO_SOON: Duration = Duration::from_secs(1);
/// How often in a row before it is given up.
const ATTEMPTS: usize = 4;
/// Rows kept of a pane.
const ROWS: usize = 36;
/// Longest piece of a line that is shown, in bytes.
const MAX_LINE: u64 = 4_096;

/// What all lead processes share.
pub(super) struct Stage {
    pub(super) server: Arc<Server>,
    /// headman itself.
    pub(super) program: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// How long a lead stays away after it died.
    pub(super) away: Duration,
    /// What went wrong so far; safe to print.
    pub(super) trouble: watch::Sender<Vec<String>>,
}

impl Stage {
    fn tell(&self, trouble: String) {
        self.trouble.send_modify(|all| all.push(trouble));
    }
}

/// Keeps a process for `options` until `ending` says true.
pub(super) async fn keep(stage: Arc<Stage>, options: Options, mut ending: watch::Receiver<bool>) {
    let mut failed = 0;
    while !*ending.borrow() {
        let started = Instant::now();
        let life = match perform(&stage, &options, &mut ending).await {
            Ok(Some(life)) => life,
            // It was asked to end.
            Ok(None) => return,
            Err(error) => {
                stage.tell(format!("can't start a lead of the demo ({}): {error}", stage.program.display()));
                return;
            }
        };
        let failure = started.elapsed() < TOO_SOON && !life.as_written;
        failed = if failure { failed + 1 } else { 0 };
        if failed == ATTEMPTS {
            let last = life.said.unwrap_or_else(|| "it said nothing".to_owned());
            stage.tell(format!("a lead of the demo ended {ATTEMPTS} times right after its start: {last}"));
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(stage.away) => {}
            _ = ending.wait_for(|ending| *ending) => return,
        }
    }
}

/// How a process ended by itself.
struct Life {
    /// Because its part says so.
    as_written: bool,
    /// The last thing it complained of.
    said: Option<String>,
}

/// One life of the process; none if it was asked to end.
async fn perform(
    stage: &Stage,
    options: &Options,
    ending: &mut watch::Receiver<bool>,
) -> std::io::Result<Option<Life>> {
    let (mut child, input, output, errors) = start(stage, options).await?;
    let pid = child.id().unwrap_or(0);
    for pane in panes(options) {
        stage.server.attach(pane, pid, true);
    }
    let last = Arc::new(Mutex::new(None));
    let listening = tokio::spawn(listen(errors, Arc::clone(&last)));
    let ended = tokio::select! {
        ended = child.wait() => Some(ended),
        () = show(stage, options, output) => None,
        _ = ending.wait_for(|ending| *ending) => None,
    };
    let asked = *ending.borrow();
    // The end of its input is what it waits for.
    drop(input);
    if ended.is_none() && tokio::time::timeout(WITHDRAW, child.wait()).await.is_err() {
        child.kill().await?;
    }
    for pane in panes(options) {
        stage.server.detach(pane);
    }
    // A child of its own may hold the pipe open.
    let _ = tokio::time::timeout(Duration::from_millis(200), listening).await;
    let said = last.lock().unwrap_or_else(PoisonError::into_inner).take();
    let as_written = matches!(ended, Some(Ok(status)) if status.code() == Some(DIED));
    Ok((!asked).then_some(Life { as_written, said }))
}

/// The panes of the leads and their agents; those that are gone do no harm.
fn panes(options: &Options) -> impl Iterator<Item = &str> {
    options
        .seats
        .iter()
        .flat_map(|seat| std::iter::once(&*seat.pane).chain(seat.crew.iter().map(|member| &*member.pane)))
}

async fn start(
    stage: &Stage,
    options: &Options,
) -> std::io::Result<(Child, ChildStdin, ChildStdout, ChildStderr)> {
    let first = options.seats.first();
    let pane = first.map(|seat| stage.server.environment(&seat.pane)).unwrap_or_default();
    let mut command = Command::new(&stage.program);
    command
        .arg(VERB)
        .env_clear()
        .envs(stage.environment.iter().map(|(name, value)| (name, value)))
        .envs(pane)
        .env("HERDR_AGENT", "pi")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Keys typed at the console's terminal are not for the leads.
        .process_group(0)
        .kill_on_drop(true);
    if let Some(seat) = first {
        command.current_dir(&seat.cwd);
    }
    let mut child = command.spawn()?;
    let (Some(mut input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(std::io::Error::other("it has no pipes"));
    };
    let mut line = serde_json::to_vec(options)?;
    line.push(b'\n');
    // One that died at once is seen by its end.
    match input.write_all(&line).await {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    Ok((child, input, output, errors))
}

/// Shows what the leads write on their panes, until their output ends.
async fn show(stage: &Stage, options: &Options, output: ChildStdout) {
    let mut screens: Vec<VecDeque<String>> = vec![VecDeque::new(); options.seats.len()];
    let mut output = BufReader::new(output);
    while let Some(line) = next_line(&mut output).await {
        let (nth, text) = match Screen::read(&line) {
            Some(Shown::Line(nth, text)) => (nth, text),
            Some(Shown::Gone(pane)) => {
                stage.server.close_pane(pane);
                continue;
            }
            None => continue,
        };
        let Some(at) = options.seats.iter().position(|seat| seat.nth == nth) else { continue };
        let rows = &mut screens[at];
        rows.push_back(text.to_owned());
        if rows.len() > ROWS {
            rows.pop_front();
        }
        let screen = rows.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        stage.server.set_screen(&options.seats[at].pane, &screen);
    }
    // Its end will be seen; nothing else is to be told by it.
    std::future::pending::<()>().await;
}

async fn listen(errors: ChildStderr, last: Arc<Mutex<Option<String>>>) {
    let mut errors = BufReader::new(errors);
    while let Some(line) = next_line(&mut errors).await {
        let shown = Untrusted::from(line.as_str()).escaped().to_string();
        tracing::debug!(line = shown, "a lead of the demo");
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }
}

/// The next line, or a piece of one that is too long; none at the end.
async fn next_line<R: tokio::io::AsyncRead + Unpin>(reader: &mut BufReader<R>) -> Option<String> {
    let mut line = Vec::new();
    let read = (&mut *reader).take(MAX_LINE).read_until(b'\n', &mut line).await;
    if !matches!(read, Ok(length) if length > 0) {
        return None;
    }
    Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
}
