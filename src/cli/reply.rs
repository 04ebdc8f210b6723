//! `headman reply`: answers a lead's ask without a running Chief, for as long as it takes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::{block_on, duration, input, located};
use crate::chief::attach::{AttachError, FileArgument, Form, LimitsError};
use crate::chief::lease::Place;
use crate::chief::service::{self, Request, Setup};
use crate::chief::staff::{Office, Reply};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::role::Role;
use crate::contract::{Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::disk::inbox::{self, Content};
use crate::disk::records::{self, Holding};
use crate::disk::{DiskThread, Runtime, durable};
use crate::fact::{self, Done, Fact, FactReceiver, Fate, Sent, Standing};
use crate::herd::{Lead, Roster};
use crate::herdr::Client;
use crate::herdr::locate::Located;

/// Characters that the beginning of an id must have to stand for it.
const SHORTEST: usize = 8;
/// More never fits into a record.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// How long becoming Chief, or one send, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is said of a reply that was not taken while we were Chief.
const QUEUED: &str = "not taken, and not valid any more, as the lease is given back; your next console that is Chief \
     sends it again. The lead is busy, or has \
     seen no Chief listed in Herdr since it started: answer from a console in a Herdr pane, or try a longer \
     --wait";
/// Queued messages that are named one by one.
const NAMED: usize = 20;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's session id, or the beginning of one: 8 characters or more that no other lead's has
    session: OsString,
    /// The id of its ask, or the first 8 characters or more
    ask_id: String,
    /// The reply; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// A file to attach, or a result as result:UUID; may be given again
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<OsString>,
    /// Become Chief for as long as this takes, when nobody is
    #[arg(long)]
    take_lease: bool,
    /// How long to wait for the lead to take it, as 30s, 500ms or 2m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    wait: Duration,
}

const WHAT: &str = "reply";

/// Runs the verb.
///
/// # Errors
/// [`Failure`]; nothing was sent then, unless it says otherwise.
pub fn run(places: &Places, arguments: &Arguments, out: &mut Out) -> Result<Exit, Failure> {
    let lead = SessionId::new(Untrusted::from_bytes_lossy(arguments.session.as_encoded_bytes()))
        .ok_or_else(|| Failure::usage("can't reply: that is no session id", "See `headman list`"))?;
    let ask = ask_prefix(&arguments.ask_id)
        .ok_or_else(|| Failure::usage("can't reply: that is no ask id", "See `headman list`"))?;
    let text = text(&arguments.text)?;
    let files = files(&arguments.files)?;
    let socket = located(places, WHAT)?;
    let runtime = places.agent_dir.runtime(&socket.path);
    free(&runtime, arguments.take_lease)?;
    let sent = block_on(send(places, &socket, lead, ask, text, files, arguments.wait))??;
    let (sent, interrupted) = sent;
    tell(&sent, out)?;
    Ok(match sent.fate {
        _ if interrupted => Exit::Interrupted,
        Fate::Taken | Fate::Answered => Exit::Done,
        Fate::Queued | Fate::Unknown | Fate::Again | Fate::Unsent => Exit::No,
    })
}

/// An ask's id or the beginning of one.
fn ask_prefix(text: &str) -> Option<String> {
    let is_hex = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    let is_part = (SHORTEST..36).contains(&text.len()) && text.bytes().all(is_hex);
    (is_part || Uuid::parse(text).is_some()).then(|| text.to_ascii_lowercase())
}

/// The lead whose session is `wanted` or, if there is none, the only one whose session begins so.
fn lead_of<'a>(roster: &'a Roster, wanted: &SessionId) -> Result<&'a Lead, String> {
    if let Some(lead) = roster.lead(wanted) {
        return Ok(lead);
    }
    let whole = wanted.as_untrusted();
    if let Some(left_out) = roster.why_not(wanted) {
        return Err(left_out.sentence());
    }
    let begins = |lead: &&Lead| lead.session.as_untrusted().as_wtf8().starts_with(whole.as_wtf8());
    let is_long_enough = whole.utf16_len() >= SHORTEST;
    let found: Vec<&Lead> = roster.leads.iter().filter(begins).filter(|_| is_long_enough).collect();
    match found[..] {
        [lead] => Ok(lead),
        [] => Err(format!("session {} is no lead that Herdr shows", wanted.escaped())),
        _ => {
            let sessions: Vec<_> = found.iter().map(|lead| lead.session.escaped().to_string()).collect();
            Err(format!("{} leads' sessions begin so: {}", found.len(), sessions.join(", ")))
        }
    }
}

fn text(argument: &OsString) -> Result<Untrusted, Failure> {
    let hint = "Give the reply as one argument, or on standard input with `-`";
    let bytes = if argument == "-" {
        let bytes = input::read(&PathBuf::from("-"), MAX_TEXT_BYTES)?;
        // The one that `echo` adds.
        bytes.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(bytes)
    } else {
        argument.as_encoded_bytes().to_vec()
    };
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Failure::usage("can't reply: the text is too long for a message", "Shorten it"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage("can't reply: the text is not UTF-8", hint))
        .map(Untrusted::from)?;
    if text.is_blank() {
        return Err(Failure::usage("can't reply: there is no text", hint));
    }
    Ok(text)
}

/// The files, bound to where we are: the service may be elsewhere.
fn files(arguments: &[OsString]) -> Result<Vec<FileArgument>, Failure> {
    if arguments.is_empty() {
        return Ok(Vec::new());
    }
    let here = std::env::current_dir()
        .map_err(|error| Failure::disk("find the working directory", &error, "Go to one that is there"))?;
    Ok(arguments.iter().map(|argument| FileArgument::new(argument, &here)).collect())
}

/// Why a text and its files make no message.
fn not_attached(error: &AttachError) -> Failure {
    let (exit, code) = match error {
        AttachError::Blank | AttachError::NoResultId { .. } | AttachError::ResultOfAgent { .. } => {
            (Exit::Usage, "usage")
        }
        AttachError::UnknownResult { .. } => (Exit::No, "not_found"),
        AttachError::TooLarge { .. } => (Exit::No, "too_large"),
        AttachError::Limits(LimitsError::NotObject { .. } | LimitsError::Invalid { .. }) => {
            (Exit::Usage, "configuration")
        }
        AttachError::File { .. }
        | AttachError::Unnameable { .. }
        | AttachError::Limits(LimitsError::Unreadable { .. }) => (Exit::Unavailable, "disk"),
    };
    Failure::new(exit, code, format!("can't reply: {error}"), error.hint())
}

/// Whether nobody is Chief, and we may become it.
fn free(runtime: &Runtime, take_lease: bool) -> Result<(), Failure> {
    let occupied = |message: String, hint: &str| {
        Err(Failure::new(Exit::NotChief, "lease_occupied", format!("can't reply: {message}"), hint))
    };
    let holding = records::read_holding(runtime)
        .map_err(|error| Failure::disk(WHAT, &error, "See `headman doctor`"))?;
    match holding {
        Holding::Held(chief) => occupied(
            format!(
                "session {} on pane {} (process {}) is Chief",
                chief.session.escaped(),
                chief.pane.escaped(),
                chief.claim.pid
            ),
            "Reply there, or leave Chief mode there first",
        ),
        Holding::InProgress(claim) => {
            occupied(format!("process {} is becoming Chief", claim.pid), "Try again in a moment")
        }
        Holding::Unverifiable(why) => {
            occupied(format!("it can't be told who is Chief: {why}"), "See `headman doctor`")
        }
        Holding::Free | Holding::Stale(_) if !take_lease => Err(Failure::new(
            Exit::NotChief,
            "not_chief",
            "can't reply: no Chief is running here",
            "Start the console with `headman`, or add --take-lease to be Chief for as long as this takes",
        )),
        Holding::Free | Holding::Stale(_) => Ok(()),
    }
}

/// Says which messages that still stand in leads' inboxes a new lease makes void: those of the lease
/// before it. What is left of earlier ones has been void since that began, and was told then.
fn tell_voided(runtime: &Runtime, state: &StateDir) {
    let mut queued: Vec<Message> = Vec::new();
    let hashes = durable::list(&runtime.inboxes()).unwrap_or_default();
    for hash in hashes.iter().filter_map(|name| name.to_str()) {
        // What can't be listed can't be named; the lead judges it all the same.
        let entries = inbox::list(&runtime.inbox_of_hash(hash)).unwrap_or_default();
        queued.extend(entries.into_iter().filter(|entry| !entry.quarantined).filter_map(|entry| {
            match entry.content {
                Content::Valid(message) if matches!(message.kind, Kind::ChiefMessage | Kind::ChiefReply) => {
                    Some(*message)
                }
                _ => None,
            }
        }));
    }
    let voided = of_the_last_lease(queued, last_claim(state));
    for message in voided.iter().take(NAMED) {
        note(&format!(
            "taking the lease voids message {} to {}, still queued under lease {}",
            message.id,
            message.to.escaped(),
            message.lease
        ));
    }
    if voided.len() > NAMED {
        note(&format!("taking the lease voids {} more queued messages", voided.len() - NAMED));
    }
}

/// When a console of this state directory last claimed the lease: the file is written at no other
/// time.
fn last_claim(state: &StateDir) -> Option<Timestamp> {
    let written = std::fs::metadata(state.sidecar()).and_then(|found| found.modified()).ok()?;
    let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(u64::try_from(since.as_millis()).ok()?))
}

/// Those that were sent under the lease of the latest, if that was sent after `claimed`. No record
/// says which lease was the last one, so this is as near as can be told.
fn of_the_last_lease(mut queued: Vec<Message>, claimed: Option<Timestamp>) -> Vec<Message> {
    queued.retain(|message| claimed.is_none_or(|claimed| message.created_at >= claimed));
    queued.sort_by_key(|message| (message.created_at, message.id));
    let last = queued.last().map(|message| message.lease);
    queued.retain(|message| Some(message.lease) == last);
    queued
}

/// Becomes Chief, sends, and waits for what becomes of it.
async fn send(
    places: &Places,
    socket: &Located,
    lead: SessionId,
    ask: String,
    text: Untrusted,
    files: Vec<FileArgument>,
    wait: Duration,
) -> Result<(Sent, bool), Failure> {
    let disk_failed = |error: &dyn std::fmt::Display| Failure::disk(WHAT, error, "See `headman doctor`");
    let herdr = Client::new(PathBuf::from(&socket.path));
    let snapshot = herdr.snapshot().await.map_err(|error| Failure::herdr(WHAT, &error, socket))?;
    let runtime = places.agent_dir.runtime(&socket.path);
    let state = StateDir::open(&places.state_dir, &socket.path).map_err(|error| disk_failed(&error))?;
    let identity = state.identity().map_err(|error| disk_failed(&error))?;
    let office =
        Arc::new(Office::new(places.agent_dir.clone(), runtime.clone(), identity.session(), Instant::now()));
    // Before anything is voided for it: the send itself looks again.
    let roster = office.roster(&snapshot).map_err(|error| disk_failed(&error))?;
    let not_found = |message: String| {
        Failure::new(Exit::No, "not_found", format!("can't reply: {message}"), "See `headman list`")
    };
    let found = lead_of(&roster, &lead).map_err(not_found)?;
    let lead = found.session.clone();
    let (ask, question) = match &found.pending_ask {
        Some(pending) if pending.ask.to_string().starts_with(&ask) => (pending.ask, pending.question.clone()),
        Some(pending) => {
            return Err(not_found(format!("that lead asks something else now, {}", pending.ask)));
        }
        None => return Err(not_found("that ask is not pending; it was answered or withdrawn".to_owned())),
    };
    let instance = found.instance;
    let rendered =
        office.render(Kind::ChiefReply, &lead, &text, &files).map_err(|error| not_attached(&error))?;
    for file in &rendered.files {
        if let Form::Reference(why) = file.form {
            let name = file.name.escaped();
            note(&format!("{name} goes by its path and size, because {}", why.as_str()));
        }
    }

    // From here on an interruption gives the lease back first.
    let signals = Signals::new().map_err(|error| disk_failed(&error))?;
    tell_voided(&runtime, &state);
    let (facts, mut receiver) = fact::channel();
    let (requests, queue) = mpsc::channel(8);
    let disk = DiskThread::spawn().map_err(|error| disk_failed(&error))?;
    let service = tokio::spawn(service::run(
        Setup {
            office,
            disk,
            state,
            herdr,
            place: Place::none(),
            registrar: None,
            facts,
            lease_changed: Arc::new(Notify::new()),
            mail_changed: Arc::new(Notify::new()),
            // Nothing is received here: what leads sent waits for a console.
            snapshots: watch::channel(None).1,
        },
        queue,
    ));
    let mut desk = Desk { requests, receiver: &mut receiver, signals, lease: None, sent: HashMap::new() };
    let result = desk.exchange(Reply { lead, instance, ask, question, lease: ask, text, files }, wait).await;
    // Resuming as Chief at the next start is for those who were Chief before.
    if identity.role == Role::Lead && desk.lease.is_some() {
        desk.ask(|ticket| Request::Leave { ticket }, 3).await.ok();
    }
    let (done, ended) = oneshot::channel();
    if desk.requests.send(Request::Shutdown(done)).await.is_ok() {
        // The service ends either way.
        ended.await.ok();
    }
    service.await.map_err(|error| disk_failed(&error))?;
    result
}

/// Where requests go in and facts come out.
struct Desk<'a> {
    requests: mpsc::Sender<Request>,
    receiver: &'a mut FactReceiver,
    signals: Signals,
    lease: Option<Uuid>,
    /// What is known of messages, also of earlier leases.
    sent: HashMap<Uuid, Sent>,
}

impl Desk<'_> {
    async fn exchange(&mut self, reply: Reply, wait: Duration) -> Result<(Sent, bool), Failure> {
        let occupied = |why: String| {
            let message = format!("can't reply: not Chief: {why}");
            Failure::new(Exit::NotChief, "lease_occupied", message, "See `headman doctor`")
        };
        self.ask(|ticket| Request::BecomeChief { ticket }, 1).await?.map_err(occupied)?;
        let lease = self.lease.ok_or_else(|| occupied("the disk thread ended".to_owned()))?;
        let reply = Reply { lease, ..reply };
        let refused = |why: String| {
            let message = format!("can't reply: {why}");
            Failure::new(Exit::No, "refused", message, "See `headman list`, then try again")
        };
        let not_known = || refused("it is not known what was sent".to_owned());
        let Done::Sent(id) =
            self.ask(|ticket| Request::Reply { ticket, reply }, 2).await?.map_err(refused)?
        else {
            return Err(not_known());
        };
        // Apart, so that both can be waited for at once.
        let mut signals = std::mem::take(&mut self.signals);
        let interrupted = tokio::select! {
            () = self.settled(id) => false,
            () = tokio::time::sleep(wait) => false,
            () = signals.any() => true,
        };
        self.signals = signals;
        let sent = self.sent.get(&id).cloned().ok_or_else(not_known)?;
        Ok((sent, interrupted))
    }

    /// Waits for the outcome of one request.
    async fn ask(
        &mut self,
        request: impl FnOnce(u64) -> Request,
        ticket: u64,
    ) -> Result<Result<Done, String>, Failure> {
        let gone = || Failure::disk(WHAT, &"the service ended", "Try again");
        self.requests.send(request(ticket)).await.map_err(|_| gone())?;
        let outcome = async {
            loop {
                if let Some(result) = self.take(ticket) {
                    return result;
                }
                self.receiver.ready().await;
            }
        };
        tokio::time::timeout(PATIENCE, outcome).await.map_err(|_| gone())
    }

    /// Waits until nothing more will become known of what was sent.
    async fn settled(&mut self, id: Uuid) {
        loop {
            self.take(0);
            if self.sent.get(&id).is_some_and(|sent| sent.fate.is_final(sent.kind)) {
                return;
            }
            self.receiver.ready().await;
        }
    }

    fn take(&mut self, ticket: u64) -> Option<Result<Done, String>> {
        let mut result = None;
        for fact in self.receiver.take() {
            match fact {
                Fact::Standing(Standing::Chief { lease, .. }) => self.lease = Some(lease),
                Fact::Sent(sent) => drop(self.sent.insert(sent.id, sent)),
                Fact::Outcome(outcome) if outcome.ticket == ticket => result = Some(outcome.result),
                _ => {}
            }
        }
        result
    }
}

/// The signals that end us.
#[derive(Default)]
struct Signals(Vec<Signal>);

impl Signals {
    fn new() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        kinds.into_iter().map(signal).collect::<std::io::Result<_>>().map(Self)
    }

    /// Waits for one of them.
    async fn any(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

fn tell(sent: &Sent, out: &mut Out) -> Result<(), Failure> {
    if out.is_json() {
        let object = ObjectWriter::new()
            .string("id", &sent.id.to_string().into())
            .string("session", sent.lead.as_untrusted())
            .optional("ask_id", sent.ask.map(|ask| ask.to_string().into()).as_ref())
            .string("fate", &sent.fate.name().into())
            .finish();
        return out.json(&String::from_utf8_lossy(&object));
    }
    let meaning = match sent.fate {
        Fate::Answered => "the lead went on",
        Fate::Taken => "the lead has it, and still shows its ask",
        Fate::Queued => QUEUED,
        Fate::Unknown => "ask the lead",
        Fate::Again => "it was sent again",
        Fate::Unsent => "it could not be put into the lead's inbox",
    };
    out.text(&format!("{} {}: {meaning}", sent.id, sent.fate.as_str()))
}
