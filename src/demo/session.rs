//! What the demo's leads write into their sessions beside what every lead does: prompts, answers,
//! calls of tools, as Pi has them. After "session files" in `docs/contract.md`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::random::Random;
use crate::contract::{SessionId, Timestamp};
use crate::disk::DiskError;
use crate::lead::SessionError;
use crate::lead::session::{SessionFile, iso};

/// What the answers say they come from; nobody offers it.
const PROVIDER: &str = "demo";
const MODEL: &str = "demo-large";
/// Tokens of a conversation before its first word.
const CONTEXT: u64 = 3_200;

/// Why an entry could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The session file can't be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The conversation in a session file.
#[derive(Debug)]
pub struct Conversation {
    /// The time of the next entry where it is not now, in milliseconds since the epoch.
    at: Option<u64>,
    /// Tokens so far.
    context: u64,
    random: Random,
}

/// A call of a tool, with its result.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// What is said with it; may be empty.
    pub say: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments, a JSON object.
    pub arguments: &'a str,
    /// What it gave.
    pub result: &'a str,
    /// Whether it failed.
    pub failed: bool,
}

/// `<sessions>/--<cwd>--/<time>_<session>.jsonl` under the agent directory.
pub fn path_of(agent_dir: &Path, cwd: &str, session: &str, begun: u64) -> PathBuf {
    let encoded = cwd.strip_prefix('/').unwrap_or(cwd).replace(['/', '\\', ':'], "-");
    let time = iso(Timestamp::from_millis(begun)).replace([':', '.'], "-");
    agent_dir.join("sessions").join(format!("--{encoded}--")).join(format!("{time}_{session}.jsonl"))
}

impl Conversation {
    /// Begins a session in the file at `path`, whose directories are made; it must not exist. Chance
    /// for its entries' ids is `ids`.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn begin(
        path: &Path,
        session: SessionId,
        cwd: &str,
        begun: u64,
        random: Random,
        ids: Random,
    ) -> Result<(Self, SessionFile), WriteError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(DiskError::io("make", parent))?;
        }
        SessionFile::create(path, &session, &cwd.into(), Timestamp::from_millis(begun))?;
        let mut file = file_at(path, session, ids);
        let conversation = Self { at: Some(begun), context: CONTEXT, random };
        let model = [("provider", PROVIDER.into()), ("modelId", MODEL.into())];
        conversation.append(&mut file, "model_change", &model)?;
        conversation.append(&mut file, "thinking_level_change", &[("thinkingLevel", "medium".into())])?;
        Ok((conversation, file))
    }

    /// Takes a session up again, as it was left.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn resume(
        path: &Path,
        session: SessionId,
        random: Random,
        ids: Random,
    ) -> Result<(Self, SessionFile), WriteError> {
        let mut file = file_at(path, session, ids);
        file.look()?;
        let length = std::fs::metadata(path).map_err(DiskError::io("look at", path))?.len();
        Ok((Self { at: None, context: CONTEXT + length / 6, random }, file))
    }

    /// Has the next entries be of this time, in milliseconds since the epoch; none for now.
    pub fn set_time(&mut self, at: Option<u64>) {
        self.at = at;
    }

    /// A prompt of the user.
    ///
    /// # Errors
    /// [`WriteError`], as for all below.
    pub fn user(&mut self, file: &mut SessionFile, text: &str) -> Result<(), WriteError> {
        let time = self.time();
        self.context += text.len() as u64 / 4;
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": time});
        self.append(file, "message", &[("message", message)])
    }

    /// An answer that ends the turn.
    ///
    /// # Errors
    /// See [`Conversation::user`].
    pub fn says(&mut self, file: &mut SessionFile, text: &str) -> Result<(), WriteError> {
        self.assistant(file, vec![json!({"type": "text", "text": text})], "stop")
    }

    /// An answer that calls a tool; its id, for the result.
    ///
    /// # Errors
    /// See [`Conversation::user`].
    pub fn calls(&mut self, file: &mut SessionFile, call: &ToolCall<'_>) -> Result<String, WriteError> {
        let id = format!("call_{}", self.random.hex(11));
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or(Value::Null);
        let mut content = Vec::new();
        if !call.say.is_empty() {
            content.push(json!({"type": "text", "text": call.say}));
        }
        content.push(json!({"type": "toolCall", "id": id, "name": call.tool, "arguments": arguments}));
        self.assistant(file, content, "toolUse")?;
        Ok(id)
    }

    /// The result of the call that has this id.
    ///
    /// # Errors
    /// See [`Conversation::user`].
    pub fn result(
        &mut self,
        file: &mut SessionFile,
        id: &str,
        call: &ToolCall<'_>,
    ) -> Result<(), WriteError> {
        let took = self.random.between(20, 1_900);
        let time = self.time();
        self.context += call.result.len() as u64 / 4;
        let message = json!({
            "role": "toolResult", "toolCallId": id, "toolName": call.tool,
            "content": [{"type": "text", "text": call.result}],
            "isError": call.failed, "durationMs": took, "timestamp": time,
        });
        self.append(file, "message", &[("message", message)])
    }

    fn assistant(
        &mut self,
        file: &mut SessionFile,
        content: Vec<Value>,
        stop: &str,
    ) -> Result<(), WriteError> {
        let time = self.time();
        let took = self.random.between(600, 4_200);
        let output = 20 + content.iter().map(|block| block.to_string().len() as u64 / 4).sum::<u64>();
        let (input, read) = (self.random.between(180, 900), self.context);
        self.context += output;
        let cost = |tokens: u64, millionth: f64| tokens as f64 * millionth / 1e6;
        let (for_input, for_output, for_read) = (cost(input, 3.0), cost(output, 15.0), cost(read, 0.3));
        let message = json!({
            "role": "assistant", "content": content, "api": "demo", "provider": PROVIDER, "model": MODEL,
            "usage": {
                "input": input, "output": output, "cacheRead": read, "cacheWrite": 0,
                "totalTokens": input + output + read,
                "cost": {"input": for_input, "output": for_output, "cacheRead": for_read, "cacheWrite": 0,
                         "total": for_input + for_output + for_read},
            },
            "stopReason": stop, "timestamp": time.saturating_sub(took), "durationMs": took,
            "responseId": format!("demo-{}", self.random.hex(12)), "thinkingLevel": "medium",
        });
        self.append(file, "message", &[("message", message)])
    }

    /// A name for the session.
    ///
    /// # Errors
    /// See [`Conversation::user`].
    pub fn name(&mut self, file: &mut SessionFile, name: &str) -> Result<(), WriteError> {
        self.append(file, "session_info", &[("name", name.into())])
    }

    fn time(&self) -> u64 {
        self.at.unwrap_or_else(now)
    }

    fn append(&self, file: &mut SessionFile, kind: &str, own: &[(&str, Value)]) -> Result<(), WriteError> {
        let own: Vec<(&str, Vec<u8>)> =
            own.iter().map(|(key, value)| (*key, value.to_string().into_bytes())).collect();
        let held = file.lock()?;
        Ok(file.append(&held, kind, &own, Timestamp::from_millis(self.time()))?)
    }
}

fn file_at(path: &Path, session: SessionId, mut ids: Random) -> SessionFile {
    SessionFile::new(path, session).with_ids(move || ids.hex(8))
}

/// Milliseconds since the epoch.
pub(super) fn now() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}
