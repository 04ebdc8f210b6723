//! `headman reply`: answers a lead's ask without a running Chief, for as long as it takes.

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
use crate::chief::lease::Place;
use crate::chief::service::{self, Request, Setup};
use crate::chief::staff::{self, Office, Reply};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::role::Role;
use crate::contract::{Kind, SessionId, Untrusted, Uuid, message};
use crate::disk::inbox::{self, Content};
use crate::disk::records::{self, Holding};
use crate::disk::{DiskThread, Runtime, durable};
use crate::fact::{self, Done, Fact, FactReceiver, Fate, Sent, Standing};
use crate::herdr::Client;
use crate::herdr::locate::Located;

/// More never fits into a record.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// How long becoming Chief, or one send, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Queued messages that are named one by one.
const NAMED: usize = 20;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The lead's whole session id
    session: OsString,
    /// The ask's id
    ask_id: String,
    /// The reply; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// Becomes Chief for as long as this takes, when nobody is
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
    let ask = Uuid::parse(&arguments.ask_id)
        .ok_or_else(|| Failure::usage("can't reply: that is no ask id", "See `headman list`"))?;
    let text = text(&arguments.text)?;
    let socket = located(places, WHAT)?;
    let runtime = places.agent_dir.runtime(&socket.path);
    free(&runtime, arguments.take_lease)?;
    let sent = block_on(send(places, &socket, lead, ask, text, arguments.wait))??;
    let (sent, interrupted) = sent;
    tell(&sent, out)?;
    Ok(match sent.fate {
        _ if interrupted => Exit::Interrupted,
        Fate::Taken | Fate::Answered => Exit::Done,
        Fate::Queued | Fate::Unknown | Fate::Again | Fate::Unsent => Exit::No,
    })
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

/// Says which messages that still stand in leads' inboxes a new lease makes void.
fn tell_voided(runtime: &Runtime) {
    let mut named = 0;
    let hashes = durable::list(&runtime.inboxes()).unwrap_or_default();
    for hash in hashes.iter().filter_map(|name| name.to_str()) {
        // What can't be listed can't be named; the lead judges it all the same.
        let entries = inbox::list(&runtime.inbox_of_hash(hash)).unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| !entry.quarantined) {
            let Content::Valid(message) = entry.content else { continue };
            if !matches!(message.kind, Kind::ChiefMessage | Kind::ChiefReply) {
                continue;
            }
            named += 1;
            if named <= NAMED {
                note(&format!(
                    "taking the lease voids message {} to {}, still queued under lease {}",
                    message.id,
                    message.to.escaped(),
                    message.lease
                ));
            }
        }
    }
    if named > NAMED {
        note(&format!("taking the lease voids {} more queued messages", named - NAMED));
    }
}

/// Becomes Chief, sends, and waits for what becomes of it.
async fn send(
    places: &Places,
    socket: &Located,
    lead: SessionId,
    ask: Uuid,
    text: Untrusted,
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
    let found = roster.lead(&lead).ok_or_else(|| {
        let left_out = roster.left_out.iter().find(|it| it.subject.session() == Some(lead.as_untrusted()));
        not_found(match left_out {
            Some(left_out) => left_out.sentence(),
            None => format!("session {} is no lead that Herdr shows", lead.escaped()),
        })
    })?;
    match &found.pending_ask {
        Some(pending) if pending.ask == ask => {}
        Some(pending) => {
            return Err(not_found(format!("that lead asks something else now, {}", pending.ask)));
        }
        None => return Err(not_found("that ask is not pending; it was answered or withdrawn".to_owned())),
    }
    let instance = found.instance;
    let bytes = staff::reply_bytes(office.session(), &lead, ask, &text.to_str_lossy());
    if bytes > message::MAX_BYTES {
        let message =
            format!("can't reply: its record would take {bytes} bytes, {} are allowed", message::MAX_BYTES);
        return Err(Failure::new(Exit::No, "too_large", message, "Shorten the text"));
    }

    // From here on an interruption gives the lease back first.
    let signals = Signals::new().map_err(|error| disk_failed(&error))?;
    tell_voided(&runtime);
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
    let mut desk = Desk { requests, receiver: &mut receiver, signals, lease: None, sent: None };
    let result = desk.exchange(Reply { lead, instance, ask, lease: ask, text }, wait).await;
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
    sent: Option<Sent>,
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
        self.ask(|ticket| Request::Reply { ticket, reply }, 2).await?.map_err(refused)?;
        // Apart, so that both can be waited for at once.
        let mut signals = std::mem::take(&mut self.signals);
        let interrupted = tokio::select! {
            () = self.settled() => false,
            () = tokio::time::sleep(wait) => false,
            () = signals.any() => true,
        };
        self.signals = signals;
        let sent = self.sent.clone().ok_or_else(|| refused("it is not known what was sent".to_owned()))?;
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
    async fn settled(&mut self) {
        loop {
            self.take(0);
            if self.sent.as_ref().is_some_and(|sent| sent.fate.is_final(sent.kind)) {
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
                Fact::Sent(sent) => self.sent = Some(sent),
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
        Fate::Queued => "the lead has not taken it; headman sends it again once it is Chief",
        Fate::Unknown => "ask the lead",
        Fate::Again => "it was sent again",
        Fate::Unsent => "it could not be put into the lead's inbox",
    };
    out.text(&format!("{} {}: {meaning}", sent.id, sent.fate.as_str()))
}
