//! The managed agents of a lead of the demo: their mailboxes, and what Herdr shows of them. The lead's
//! own process plays them; who they are is written out for the first seven leads.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::random::Random;
use super::session::now;
use crate::contract::mailbox::{directory_name, herdr_name};
use crate::disk::{AgentDir, DiskError, durable};
use crate::herdr::client::AgentReport;
use crate::herdr::{Client, Status};

/// What an agent does for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// Works on a request.
    Works,
    /// Has a request, and waits for its own agents.
    Waits,
    /// Asks its owner something.
    Asks,
    /// Its result lies there for its owner.
    Finished,
    /// Its pane is gone in the middle of its work; it does not come back.
    Dies,
}

/// One agent as it is written out.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is called.
    pub label: &'static str,
    /// The agent that owns it, by its place in the list; none if the lead does.
    pub owner: Option<usize>,
    /// What it does, over and over; nothing if its pane is gone.
    pub beats: &'static [Beat],
}

const fn part(label: &'static str, owner: Option<usize>, beats: &'static [Beat]) -> Part {
    Part { label, owner, beats }
}

/// The agents of the `nth` lead; a lead that is not written out has none.
pub fn parts(nth: usize) -> &'static [Part] {
    use Beat::{Asks, Dies, Finished, Waits, Works};
    match nth {
        0 => {
            const {
                &[
                    part("implementer", None, &[Works, Works, Waits, Works, Finished]),
                    part("tests", Some(0), &[Works, Works, Works, Finished]),
                    part("reviewer", None, &[Finished, Works, Works]),
                    part("scout", None, &[Asks, Works, Works, Finished]),
                    part("explorer", None, &[]),
                ]
            }
        }
        1 => {
            const {
                &[
                    part("migrator", None, &[Works, Works, Finished]),
                    part("browser", None, &[Works, Asks, Works, Dies]),
                    part("api-client", None, &[Asks, Works, Works, Works, Finished]),
                ]
            }
        }
        2 => {
            const {
                &[
                    part("planner", None, &[Asks, Works, Finished, Works]),
                    part("validator", None, &[Works, Works, Finished]),
                ]
            }
        }
        3 => const { &[part("bisect", None, &[Works, Works, Works, Works, Finished])] },
        4 => {
            const {
                &[
                    part("deutsch", None, &[Works, Works, Finished]),
                    part("日本語", None, &[Works, Works, Works, Asks, Works, Finished]),
                ]
            }
        }
        5 => {
            const {
                &[
                    part("reader", None, &[Waits, Waits, Works, Finished]),
                    part("day-14", Some(0), &[Works, Works, Works, Finished]),
                    part("day-15", Some(0), &[Works, Finished]),
                    part("day-13", Some(0), &[]),
                ]
            }
        }
        6 => const { &[part("docs", None, &[])] },
        _ => &[],
    }
}

/// How long a beat lasts, in seconds at speed 1.
const BEAT: f64 = 11.0;

/// An agent and where it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Member {
    /// Its place in [`parts`].
    pub part: usize,
    /// Which run of it this is.
    pub run: String,
    /// Its session.
    pub session: String,
    /// The session that owns it.
    pub owner: String,
    /// Its workspace.
    pub workspace: String,
    /// Its pane; of one whose pane is gone, what that was.
    pub pane: String,
    /// Its working directory.
    pub cwd: String,
}

impl Member {
    /// What Herdr calls the agent.
    pub fn herdr_name(&self, label: &str) -> String {
        herdr_name(&self.workspace.as_str().into(), &label.into(), &self.run.as_str().into())
    }
}

/// A UUID as `random` has it.
pub fn uuid(random: &mut Random) -> String {
    let digits = random.hex(30);
    format!(
        "{}-{}-4{}-8{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..15],
        &digits[15..18],
        &digits[18..30]
    )
}

/// One member in play.
struct Player {
    member: Member,
    part: Part,
    mailbox: PathBuf,
    beat: usize,
    /// When the next beat begins; never at speed 0.
    due: Option<Instant>,
    request: String,
}

/// All agents of one lead.
pub(super) struct Crew {
    players: Vec<Player>,
    /// Panes of those who died since it was last asked.
    gone: Vec<String>,
    client: Client,
    agent_dir: PathBuf,
    random: Random,
    speed: f64,
    last_seq: u64,
}

impl Crew {
    /// The agents `members` of the `nth` lead.
    pub(super) fn new(
        nth: usize,
        members: &[Member],
        client: Client,
        agent_dir: &Path,
        random: Random,
        speed: f64,
    ) -> Self {
        let mailboxes = AgentDir::resolve(Some(agent_dir.as_os_str()), agent_dir).mailboxes();
        let player = |member: &Member| {
            let part = *parts(nth).get(member.part)?;
            let directory = directory_name(&member.workspace.as_str().into(), &part.label.into());
            Some(Player {
                member: member.clone(),
                part,
                mailbox: mailboxes.join(directory),
                beat: 0,
                due: None,
                request: String::new(),
            })
        };
        let players = members.iter().filter_map(player).collect();
        Self {
            players,
            gone: Vec::new(),
            client,
            agent_dir: agent_dir.to_owned(),
            random,
            speed,
            last_seq: 0,
        }
    }

    /// Writes all mailboxes and tells Herdr of everyone.
    pub(super) async fn begin(&mut self) -> Result<(), DiskError> {
        for at in 0..self.players.len() {
            self.enter(at)?;
        }
        self.report().await;
        Ok(())
    }

    /// Repeats to Herdr what they do.
    pub(super) async fn report(&mut self) {
        for at in 0..self.players.len() {
            self.report_one(at).await;
        }
    }

    /// When there is something to do next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.players.iter().filter_map(|player| player.due).min()
    }

    /// Has everyone whose time has come go on.
    pub(super) async fn go_on(&mut self) -> Result<(), DiskError> {
        let now = Instant::now();
        for at in 0..self.players.len() {
            if self.players[at].due.is_some_and(|due| due <= now) {
                self.players[at].beat += 1;
                self.enter(at)?;
                self.report_one(at).await;
            }
        }
        Ok(())
    }

    /// The panes of those who died since it was last asked.
    pub(super) fn gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gone)
    }

    /// Writes what the present beat of one leaves on disk.
    fn enter(&mut self, at: usize) -> Result<(), DiskError> {
        let fresh = uuid(&mut self.random);
        let ask = uuid(&mut self.random);
        let pause: Duration = self.random.about(BEAT);
        let player = &mut self.players[at];
        let beat = player.beat();
        let goes_on = !matches!(beat, None | Some(Beat::Dies));
        player.due = (self.speed > 0.0 && goes_on).then(|| Instant::now() + pause.div_f64(self.speed));
        // A request lives from its beginning to its result; then comes another.
        if player.request.is_empty() || beat == Some(Beat::Works) && player.was(Beat::Finished) {
            player.request = fresh;
        }
        durable::ensure_directories(&self.agent_dir, &player.mailbox)?;
        let file = |kind: &str| player.mailbox.join(format!("{kind}-{}.json", player.request));
        let mut state = player.record(json!({
            "piSessionId": player.member.session, "cwd": player.member.cwd, "updatedAt": now(),
        }));
        match beat {
            None => {}
            Some(Beat::Works | Beat::Waits) => state["activeRequestId"] = player.request.clone().into(),
            Some(Beat::Dies) => {
                state["activeRequestId"] = player.request.clone().into();
                self.gone.push(player.member.pane.clone());
            }
            Some(Beat::Asks) => {
                state["activeRequestId"] = player.request.clone().into();
                state["pendingAskId"] = ask.clone().into();
                let record = player.record(json!({
                    "askId": ask, "requestId": player.request, "piSessionId": player.member.session,
                    "question": "May I go on with this?", "createdAt": now(),
                }));
                durable::publish(&player.mailbox.join("ask.json"), record.to_string().as_bytes())?;
            }
            Some(Beat::Finished) => {
                state["completedRequestId"] = player.request.clone().into();
                let record = player.record(json!({
                    "requestId": player.request, "status": "completed", "text": "Done, see above.",
                    "completedAt": now(),
                }));
                durable::publish(&file("result"), record.to_string().as_bytes())?;
            }
        }
        durable::publish(&player.mailbox.join("state.json"), state.to_string().as_bytes())?;
        // What belonged to beats before.
        for name in durable::list(&player.mailbox).unwrap_or_default() {
            let path = player.mailbox.join(&name);
            let name = name.to_string_lossy();
            let stale = match name.split(['-', '.']).next() {
                Some("ask") => beat != Some(Beat::Asks),
                Some("result") => beat != Some(Beat::Finished) || path != file("result"),
                _ => false,
            };
            if stale {
                durable::unlink(&path)?;
            }
        }
        Ok(())
    }

    async fn report_one(&mut self, at: usize) {
        let player = &self.players[at];
        let Some(beat) = player.beat().filter(|beat| *beat != Beat::Dies) else { return };
        let state = if beat == Beat::Works { Status::Working } else { Status::Idle };
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        self.last_seq = u64::try_from(micros).unwrap_or(0).max(self.last_seq + 1);
        let report = AgentReport {
            pane: &player.member.pane,
            source: "herdr:pi",
            agent: "pi",
            state,
            seq: self.last_seq,
            session: Some(&player.member.session),
        };
        // Repeated soon, so one that fails does not matter.
        let _ = self.client.report_agent(report).await;
    }
}

impl Player {
    fn beat(&self) -> Option<Beat> {
        self.part.beats.get(self.beat % self.part.beats.len().max(1)).copied()
    }

    /// Whether that was its beat before this one.
    fn was(&self, beat: Beat) -> bool {
        let before = self.beat.checked_sub(1).map(|before| before % self.part.beats.len().max(1));
        before.and_then(|before| self.part.beats.get(before)) == Some(&beat)
    }

    /// A record of this agent with `more` in it.
    fn record(&self, more: Value) -> Value {
        let mut record = json!({
            "version": 4, "runId": self.member.run, "ownerSessionId": self.member.owner,
            "workspaceId": self.member.workspace, "agentLabel": self.part.label, "paneId": self.member.pane,
        });
        if let (Some(record), Value::Object(more)) = (record.as_object_mut(), more) {
            record.extend(more);
        }
        record
    }
}
