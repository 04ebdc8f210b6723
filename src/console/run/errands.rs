//! What is done beside the loop for lessons and for the gate. The gate is a process of ours, which has no
//! children but the verifier's: it can be supervised only so.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Console;
use crate::console::errand::{Came, Errand};
use crate::console::gating::Gated;
use crate::contract::SessionId;

/// Bytes of what the gate says that are read.
const MAX_SAID: u64 = 1 << 20;
/// Lines of its notes that are shown.
const MAX_NOTES: usize = 8;
/// How long it may take to end its verifier, and itself.
const END: Duration = Duration::from_secs(6);

/// How this program is run as another process on the same places.
#[derive(Debug, Clone)]
pub struct Ourselves {
    /// The program; none where the system does not tell.
    pub program: Option<PathBuf>,
    /// The options that name the places.
    pub options: Vec<OsString>,
}

/// The gate that runs.
pub(super) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Console {
    /// Sends somebody on an errand.
    pub(super) fn errand(&mut self, errand: Errand) {
        match errand {
            Errand::Gate(lead, repo) => {
                let (stop, stopped) = oneshot::channel();
                let gate = gate(self.ourselves.clone(), lead, repo, stopped, self.came.clone());
                self.gate = Some(Running { stop: Some(stop), task: tokio::spawn(gate) });
            }
            Errand::EndGate => {
                // Whoever was told already is ending.
                drop(self.gate.as_mut().and_then(|gate| gate.stop.take()));
            }
            errand => {
                let (state, came) = (self.host.state.clone(), self.came.clone());
                tokio::task::spawn_blocking(move || {
                    if let Some(told) = errand.run(&state) {
                        // The console may have ended meanwhile.
                        let _ = came.send(told);
                    }
                });
            }
        }
    }
}

impl Running {
    /// Tells it to end, with all that it started; what ends once it has.
    pub(super) fn stop(self) -> impl Future<Output = ()> {
        drop(self.stop);
        async {
            // It bounds its own end.
            let _ = self.task.await;
        }
    }
}

/// Holds a claim against the gate, until that is done or `stopped` ends.
async fn gate(
    ourselves: Ourselves,
    lead: SessionId,
    repo: Option<PathBuf>,
    stopped: oneshot::Receiver<()>,
    came: mpsc::UnboundedSender<Came>,
) {
    let gated = ask(ourselves, &lead, repo, stopped).await;
    // The console may have ended meanwhile.
    let _ = came.send(Came::Gated(lead, gated));
}

async fn ask(
    ourselves: Ourselves,
    lead: &SessionId,
    repo: Option<PathBuf>,
    stopped: oneshot::Receiver<()>,
) -> Result<Option<Gated>, String> {
    let program = ourselves.program.ok_or("headman can't find its own program")?;
    let mut command = Command::new(program);
    command.args(ourselves.options).args(["gate", "--json", "--ends-with-input"]);
    if let Some(repo) = repo {
        command.arg("--repo").arg(repo);
    }
    command.arg("--").arg(&*lead.as_untrusted().to_str_lossy());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A key at our terminal is not for it.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| format!("headman can't run itself: {error}"))?;
    // Its end tells that nobody wants to know any more, also where this process is killed.
    let input = child.stdin.take();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (out, err) = tokio::join!(read(out), read(err));
        (child.wait().await, out, err)
    };
    tokio::pin!(ended);
    let (ended, is_stopped) = tokio::select! {
        ended = &mut ended => (Some(ended), false),
        _ = stopped => {
            drop(input);
            (tokio::time::timeout(END, ended).await.ok(), true)
        }
    };
    let Some((status, out, err)) = ended else {
        return Err("the gate does not end".to_owned());
    };
    let status = status.map_err(|error| error.to_string())?;
    let lines = err.lines().map(|line| line.strip_prefix("headman: ").unwrap_or(line).to_owned());
    let mut notes: Vec<String> = lines.take(MAX_NOTES).collect();
    match Gated::parse(out.trim().as_bytes(), Vec::new()) {
        Some(gated) => Ok(Some(Gated { notes, ..gated })),
        None if is_stopped => Ok(None),
        None => Err(notes.pop().unwrap_or_else(|| format!("it ended with {status}"))),
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What was read before an error is what there is.
        let _ = from.take(MAX_SAID).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
