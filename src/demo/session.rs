//! Session files as Pi writes them, of version 3: a header, then one entry a line, each appended
//! with one write to a file opened for it. After "session files" in `docs/contract.md`.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::random::Random;
use crate::contract::{Message, PendingAsk, Uuid, delivered};
use crate::disk::DiskError;
use crate::lead::{Remembered, STATE_TYPE, SessionLog};

/// What the answers say they come from; nobody offers it.
const PROVIDER: &str = "demo";
const MODEL: &str = "demo-large";

/// Largest file taken up again, in bytes. A demo that ran for days stays far below.
const MAX_RESUMED: u64 = 256 << 20;

/// A session file that is written to.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    /// The last entry, which the next one hangs on.
    leaf: Option<String>,
    /// Whether the last line may lack its end.
    torn: bool,
    /// The time of the next entry where it is not now, in milliseconds since the epoch.
    at: Option<u64>,
    /// Tokens of the conversation so far.
    context: u64,
    random: Random,
}

/// What a session file told when it was taken up again.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// What coordination needs.
    pub remembered: Remembered,
    /// How many different asks it tells of.
    pub asks: usize,
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
    let time = iso(begun).replace([':', '.'], "-");
    agent_dir.join("sessions").join(format!("--{encoded}--")).join(format!("{time}_{session}.jsonl"))
}

impl SessionFile {
    /// Begins the session `session` at `path`, whose directories are made; it must not exist.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(
        path: &Path,
        session: &str,
        cwd: &str,
        begun: u64,
        random: Random,
    ) -> Result<Self, DiskError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(on("make", parent))?;
        }
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(on("create", path))?;
        let header = Header { kind: "session", version: 3, id: session, timestamp: iso(begun), cwd };
        let mut line = serde_json::to_vec(&header).unwrap_or_default();
        line.push(b'\n');
        file.write_all(&line).map_err(on("write", path))?;
        let mut session =
            Self { path: path.to_owned(), leaf: None, torn: false, at: Some(begun), context: 3_200, random };
        session.append("model_change", json!({"provider": PROVIDER, "modelId": MODEL}))?;
        session.append("thinking_level_change", json!({"thinkingLevel": "medium"}))?;
        Ok(session)
    }

    /// Takes a session up again, as it was left.
    ///
    /// # Errors
    /// The disk's, also for a file that is too large.
    pub fn resume(path: &Path, random: Random) -> Result<(Self, Resumed), DiskError> {
        let length = std::fs::metadata(path).map_err(on("look at", path))?.len();
        if length > MAX_RESUMED {
            return Err(DiskError { operation: "take up", path: path.to_owned(), reason: Errno::FBIG });
        }
        let bytes = std::fs::read(path).map_err(on("read", path))?;
        let mut resumed = Resumed::default();
        let mut asks = HashSet::new();
        let mut leaf = None;
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(entry) = serde_json::from_slice::<Value>(line) else { continue };
            let of_type = |name: &str| entry["customType"].as_str().is_some_and(|it| it == name);
            match entry["type"].as_str() {
                Some("session") | None => continue,
                Some("custom") if of_type(STATE_TYPE) => {
                    let ask = pending_ask(&entry["data"]["pendingAsk"]);
                    asks.extend(ask.as_ref().map(|ask| ask.ask));
                    resumed.remembered.pending_ask = ask;
                }
                Some("custom_message") => {
                    let id = entry["details"]["id"].as_str().and_then(Uuid::parse);
                    resumed.remembered.delivered.extend(id);
                }
                Some(_) => {}
            }
            leaf = entry["id"].as_str().map(str::to_owned).or(leaf);
        }
        resumed.asks = asks.len();
        let torn = bytes.last().is_some_and(|last| *last != b'\n');
        let context = 3_200 + length / 6;
        Ok((Self { path: path.to_owned(), leaf, torn, at: None, context, random }, resumed))
    }

    /// Has the next entries be of this time, in milliseconds since the epoch; none for now.
    pub fn set_time(&mut self, at: Option<u64>) {
        self.at = at;
    }

    /// A prompt of the user.
    ///
    /// # Errors
    /// As for all below: the disk's.
    pub fn user(&mut self, text: &str) -> Result<(), DiskError> {
        let time = self.time();
        self.context += text.len() as u64 / 4;
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": time});
        self.append("message", json!({"message": message}))
    }

    /// An answer that ends the turn.
    ///
    /// # Errors
    /// See [`SessionFile::user`].
    pub fn says(&mut self, text: &str) -> Result<(), DiskError> {
        self.assistant(vec![json!({"type": "text", "text": text})], "stop")
    }

    /// An answer that calls a tool, and the tool's result.
    ///
    /// # Errors
    /// See [`SessionFile::user`].
    pub fn calls(&mut self, call: &ToolCall<'_>) -> Result<(), DiskError> {
        let id = format!("call_{}", self.random.hex(11));
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or(Value::Null);
        let mut content = Vec::new();
        if !call.say.is_empty() {
            content.push(json!({"type": "text", "text": call.say}));
        }
        content.push(json!({"type": "toolCall", "id": id, "name": call.tool, "arguments": arguments}));
        self.assistant(content, "toolUse")?;
        let took = self.random.between(20, 1_900);
        let time = self.time();
        self.context += call.result.len() as u64 / 4;
        let message = json!({
            "role": "toolResult", "toolCallId": id, "toolName": call.tool,
            "content": [{"type": "text", "text": call.result}],
            "isError": call.failed, "durationMs": took, "timestamp": time,
        });
        self.append("message", json!({"message": message}))
    }

    fn assistant(&mut self, content: Vec<Value>, stop: &str) -> Result<(), DiskError> {
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
        self.append("message", json!({"message": message}))
    }

    /// A name for the session.
    ///
    /// # Errors
    /// See [`SessionFile::user`].
    pub fn name(&mut self, name: &str) -> Result<(), DiskError> {
        self.append("session_info", json!({"name": name}))
    }

    fn time(&self) -> u64 {
        self.at.unwrap_or_else(now)
    }

    fn append(&mut self, kind: &'static str, fields: Value) -> Result<(), DiskError> {
        self.write(kind, fields, false)
    }

    /// Appends one entry: one write to a file opened for it, as others may write to it too.
    fn write(&mut self, kind: &'static str, fields: Value, durable: bool) -> Result<(), DiskError> {
        let id = self.random.hex(8);
        let entry = Entry {
            kind,
            fields: in_order(fields),
            id: &id,
            parent: self.leaf.as_deref(),
            timestamp: iso(self.time()),
            own_fields_first: kind.starts_with("custom"),
        };
        let mut line = if self.torn { b"\n".to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut line, &entry)
            .map_err(|error| on("write", &self.path)(io::Error::other(error)))?;
        line.push(b'\n');
        let mut file = OpenOptions::new()
            .append(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(&self.path)
            .map_err(on("open", &self.path))?;
        self.torn = true;
        file.write_all(&line).map_err(on("write", &self.path))?;
        self.torn = false;
        if durable {
            file.sync_data().map_err(on("sync", &self.path))?;
        }
        self.leaf = Some(id);
        Ok(())
    }
}

impl SessionLog for SessionFile {
    fn keep_state(&mut self, instance: Uuid, pending_ask: Option<&PendingAsk>) -> Result<(), DiskError> {
        let mut data = json!({"instanceId": instance.to_string()});
        if let Some(ask) = pending_ask {
            data["pendingAsk"] = json!({
                "askId": ask.ask.to_string(),
                "question": ask.question.to_str_lossy(),
                "text": ask.text.to_str_lossy(),
            });
        }
        self.write("custom", json!({"customType": STATE_TYPE, "data": data}), true)
    }

    fn hand_over(&mut self, message: &Message) -> Result<(), DiskError> {
        let about = delivered::details(message);
        let mut details = json!({
            "id": about.id.to_string(), "leaseId": about.lease.to_string(),
            "leadSessionId": about.lead.to_str_lossy(),
        });
        if let Some(ask) = about.ask {
            details["askId"] = ask.to_string().into();
        }
        let fields = json!({
            "customType": delivered::custom_type(message.kind), "content": delivered::content(message),
            "display": true, "details": details,
        });
        self.write("custom_message", fields, true)
    }
}

fn pending_ask(data: &Value) -> Option<PendingAsk> {
    Some(PendingAsk {
        ask: Uuid::parse(data["askId"].as_str()?)?,
        question: data["question"].as_str()?.into(),
        text: data["text"].as_str()?.into(),
    })
}

fn on<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> DiskError + use<'a> {
    move |error| DiskError {
        operation,
        path: path.to_owned(),
        reason: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}

/// Milliseconds since the epoch.
pub(super) fn now() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}

/// A time as sessions have it: `2026-11-30T07:59:22.011Z`.
fn iso(millis: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(millis).unwrap_or(0)).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    version: u8,
    id: &'a str,
    timestamp: String,
    cwd: &'a str,
}

struct Entry<'a> {
    kind: &'static str,
    fields: Vec<(String, Value)>,
    id: &'a str,
    parent: Option<&'a str>,
    timestamp: String,
    /// Extensions' entries have what is theirs before what all have.
    own_fields_first: bool,
}

/// The order in which Pi's writer has them, where it is not the alphabet's.
fn in_order(fields: Value) -> Vec<(String, Value)> {
    const FIRST: [&str; 2] = ["customType", "content"];
    let Value::Object(fields) = fields else { return Vec::new() };
    let mut fields: Vec<_> = fields.into_iter().collect();
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    fields.sort_by_key(|(key, _)| rank(key));
    fields
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind)?;
        let own = |map: &mut S::SerializeMap| {
            self.fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
        };
        if self.own_fields_first {
            own(&mut map)?;
        }
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("parentId", &self.parent)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        if !self.own_fields_first {
            own(&mut map)?;
        }
        map.end()
    }
}
